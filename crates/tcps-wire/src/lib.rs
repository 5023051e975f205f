//! Byte formats of tcpsbed, in network order unless a file says otherwise.
//!
//! ```text
//! first byte
//!   0x01  header   sample, or a fragment of one ──► [ payload ] [ echo trailer ]
//!   0xEC  reply    answer to an echo command, 32 bytes
//!   0xCC  clock    exchange of clock stamps, 36 bytes
//!   0xFE  fec      place in a block ──► a datagram, or parity
//!   0xDA  secure   sealed datagram outside channels; 0xD1 to 0xD5 those of a secured channel
//!   0xC0  probe    question for a round trip, 8 bytes; 0xC1 its answer
//!   0x04..  telehaptic  merged samples and media ──► [ payload ] [ trailer ]
//! ```
//! Some transports have formats of their own on their own channels: `stream` (numbered datagrams, acknowledgements,
//! requests), `alphan`, `bundle` (runs of samples of several flows); `tcp` has whole IP packets.
//!
//! The first bytes of replies, clock exchanges and probes can begin neither an RTP packet (version 2: 0x80 to 0xBF)
//! nor a telehaptic header (0x00 to 0x7F; 0 fragments do not exist), so that all of them may share a port.
//!
//! Each format is a file with a `Packet` view, whose accessors cannot panic, and a `Repr` that is parsed and
//! emitted. `rtp`, `rtcp` and `srtcp` speak the standards' formats; of
//! `quic` there is what tells packets of a datagram apart. `pcapng` writes capture files; `ip` looks into the
//! packets of TUN devices. `board` is no datagram: frames on a serial line.

#![forbid(unsafe_code)]

pub mod alphan;
pub mod board;
pub mod bundle;
mod bytes;
pub mod clock;
pub mod echo;
mod error;
pub mod fec;
pub mod header;
pub mod ip;
pub mod pcapng;
pub mod probe;
pub mod quic;
pub mod reply;
pub mod report;
pub mod rtcp;
pub mod rtp;
pub mod secure;
pub mod srtcp;
pub mod stream;
pub mod tcp;
pub mod telehaptic;

pub use error::Error;

/// What a datagram claims to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A sample or a fragment of one (`header`).
    Sample,
    /// The answer to an echo command (`reply`).
    Reply,
    /// An exchange of clock stamps (`clock`).
    Clock,
    /// Merged samples and media (`telehaptic`).
    Telehaptic,
    /// A sealed datagram outside channels (`secure`).
    Secured,
}

/// The format that the first byte announces; the rest may still be malformed.
#[inline]
pub fn format(datagram: &[u8]) -> Option<Format> {
    match *datagram.first()? {
        header::VERSION => Some(Format::Sample),
        reply::FIRST_BYTE => Some(Format::Reply),
        clock::FIRST_BYTE => Some(Format::Clock),
        secure::ASIDE_BYTE => Some(Format::Secured),
        first if first < 0x80 && first & 0x1c != 0 => Some(Format::Telehaptic),
        _ => None,
    }
}
