//! Header of ALPHAN, as we write it down (after Al Osman 2007; the published header is not known in bits).
//!
//! ```text
//!  0               2               4               6       7       8
//! +-------------------------------+-------------------------------+
//! |            sequence           |         timestamp, us         |
//! +---------------+-------+-------+---------------+---------------+
//! |   object id   | type  |priorty|    length     |   reserved    |
//! +---------------+-------+-------+---------------+---------------+ 16
//! | if type bit 0: whole length (4), fragment (2), fragments (2) | payload | echo trailer, if type bit 1
//! ```
//! The timestamp is the time of origin modulo 2^32 us (71 min); `length` is that of the payload in this datagram.

use crate::{
    bytes::{u16_at, u32_at, u8_at},
    header, Error,
};
use tcps_core::{
    ids::FlowId,
    time::{Time, US},
};

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 16;
/// Length of what describes a fragment.
pub const FRAGMENT_BYTES: usize = 8;
const FRAGMENT: u8 = 1;
const ECHO: u8 = 2;

/// A view of a datagram that has at least a whole header.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// The view, if there are bytes for a header.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        if buffer.as_ref().len() < HEADER_BYTES {
            return Err(Error::Truncated);
        }
        Ok(Self { buffer })
    }

    fn kind(&self) -> u8 {
        u8_at(self.buffer.as_ref(), 10)
    }

    fn payload_at(&self) -> usize {
        HEADER_BYTES + if self.kind() & FRAGMENT != 0 { FRAGMENT_BYTES } else { 0 }
    }

    fn split(&self) -> Option<(&[u8], &[u8])> {
        let length = u16_at(self.buffer.as_ref(), 12).into();
        self.buffer.as_ref().get(self.payload_at()..)?.split_at_checked(length)
    }

    /// The part of the sample in this datagram; empty if the datagram is too short for it.
    pub fn payload(&self) -> &[u8] {
        self.split().map_or(&[], |s| s.0)
    }

    /// The bytes behind the payload.
    pub fn trailer(&self) -> &[u8] {
        self.split().map_or(&[], |s| s.1)
    }
}

/// The content of a header.
// [Al Osman 2007]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Which part of which sample.
    pub part: header::Repr,
    /// Its priority; 0 goes first.
    pub priority: u8,
}

impl Repr {
    /// The content, if type, lengths and fragment numbers agree. `now` says in which 71 minutes the sample was made.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>, now: Time) -> Result<Self, Error> {
        let b = packet.buffer.as_ref();
        if packet.kind() & !(FRAGMENT | ECHO) != 0 || u16_at(b, 14) != 0 {
            return Err(Error::Unknown);
        }
        let (payload, trailer) = packet.split().ok_or(Error::Truncated)?;
        let has_echo = packet.kind() & ECHO != 0;
        if has_echo == trailer.is_empty() {
            return Err(Error::Contradiction);
        }
        let (length, fragment, fragments) = match packet.kind() & FRAGMENT {
            0 => (payload.len() as u32, 0, 1),
            _ => (u32_at(b, 16), u16_at(b, 20), u16_at(b, 22)),
        };
        let origin_ns = near(now, u32_at(b, 4));
        let (flow, index) = (FlowId(u16_at(b, 8)), u32_at(b, 0));
        let part = header::Repr { flow, index, origin_ns, length, fragment, fragments, has_echo };
        let whole = packet.kind() & FRAGMENT == 0;
        let fits = fragment < fragments && part.payload_bytes() == payload.len();
        if !fits || (!whole && (fragments < 2 || payload.is_empty())) {
            return Err(Error::Contradiction);
        }
        Ok(Self { part, priority: u8_at(b, 11) })
    }

    /// Bytes of the header of this part.
    pub fn header_bytes(&self) -> usize {
        HEADER_BYTES + if self.part.fragments > 1 { FRAGMENT_BYTES } else { 0 }
    }

    /// Appends the header to `out`; payload and trailer are the caller's.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let p = &self.part;
        let kind = if p.fragments > 1 { FRAGMENT } else { 0 } | if p.has_echo { ECHO } else { 0 };
        out.extend_from_slice(&p.index.to_be_bytes());
        out.extend_from_slice(&(p.origin_ns.div_euclid(US) as u32).to_be_bytes());
        out.extend_from_slice(&p.flow.0.to_be_bytes());
        out.extend_from_slice(&[kind, self.priority]);
        out.extend_from_slice(&(p.payload_bytes() as u16).to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        if p.fragments > 1 {
            out.extend_from_slice(&p.length.to_be_bytes());
            out.extend_from_slice(&p.fragment.to_be_bytes());
            out.extend_from_slice(&p.fragments.to_be_bytes());
        }
    }
}

/// The moment nearest to `now` whose microseconds end like this.
fn near(now: Time, stamp_us: u32) -> Time {
    let now_us = now.div_euclid(US);
    let ahead = stamp_us.wrapping_sub(now_us as u32) as i32;
    now_us.saturating_add(ahead.into()).saturating_mul(US)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tcps_core::time::SECOND;

    const GOLDEN: [u8; 18] = [
        0x00, 0x01, 0x00, 0x02, // sequence 65538
        0x00, 0x0f, 0x42, 0x40, // 1,000,000 us
        0x00, 0x07, // object 7
        0x00, // a whole sample
        0x03, // priority 3
        0x00, 0x02, // 2 bytes
        0x00, 0x00, // reserved
        b'h', b'i',
    ];

    fn parse(bytes: &[u8], now: Time) -> Result<Repr, Error> {
        Repr::parse(&Packet::new_checked(bytes)?, now)
    }

    fn part(fragment: u16, fragments: u16, length: u32) -> header::Repr {
        header::Repr {
            flow: FlowId(7),
            index: 65538,
            origin_ns: SECOND,
            length,
            fragment,
            fragments,
            has_echo: false,
        }
    }

    // [Al Osman 2007]
    #[test]
    fn the_golden_datagram_is_read_and_written() {
        let repr = Repr { part: part(0, 1, 2), priority: 3 };
        assert_eq!(parse(&GOLDEN, SECOND + 5), Ok(repr));
        assert_eq!(Packet::new_checked(GOLDEN).unwrap().payload(), b"hi");
        let mut out = Vec::new();
        repr.emit(&mut out);
        assert_eq!((&out[..], repr.header_bytes()), (&GOLDEN[..16], 16));
    }

    #[test]
    fn the_time_of_origin_is_the_one_nearest_to_now() {
        let lap = (1i64 << 32) * US;
        for (now, made) in [(SECOND, -SECOND), (lap - 1, lap + SECOND), (5 * lap, 5 * lap - SECOND)] {
            assert_eq!(near(now, made.div_euclid(US) as u32), made);
        }
    }

    #[test]
    fn each_wrong_field_has_its_error() {
        let with = |at: usize, value: u8| {
            let mut bytes = GOLDEN;
            bytes[at] = value;
            parse(&bytes, 0)
        };
        assert_eq!(with(10, 4), Err(Error::Unknown), "type");
        assert_eq!(with(15, 1), Err(Error::Unknown), "reserved");
        assert_eq!(with(13, 3), Err(Error::Truncated), "3 bytes announced");
        assert_eq!(with(13, 1), Err(Error::Contradiction), "a byte too many");
        assert_eq!(with(10, 2), Err(Error::Contradiction), "no trailer");
        assert_eq!(with(10, 1), Err(Error::Truncated), "no fragment");
        assert_eq!(parse(&GOLDEN[..15], 0), Err(Error::Truncated));
    }

    proptest! {
        #[test]
        fn fragments_survive_their_bytes(length in 2u32..100_000, room in 256u32..2000, priority: u8) {
            let fragments = length.div_ceil(room).max(1) as u16;
            for fragment in 0..fragments {
                let repr = Repr { part: part(fragment, fragments, length), priority };
                let mut out = Vec::new();
                repr.emit(&mut out);
                out.resize(repr.header_bytes() + repr.part.payload_bytes(), 7);
                prop_assert_eq!(parse(&out, 0), Ok(repr));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), now: i64) {
            if let Ok(packet) = Packet::new_checked(&bytes) {
                let _ = (Repr::parse(&packet, now), packet.payload(), packet.trailer());
            }
        }
    }
}
