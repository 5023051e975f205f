//! Good-byes (RFC 3550 §6.6) and packets of an application's own (§6.7).
//!
//! ```text
//! BYE  SSRC, count of them │ optional: length (8), reason
//! APP  SSRC │ name, 4 letters │ data
//! ```

use super::{push_u32, Packet};
use crate::{bytes::u32_at, Error};

/// Packet type of a good-bye.
pub const BYE: u8 = 203;
/// Packet type of an application's own packet.
pub const APP: u8 = 204;

/// Sources that leave, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bye<'a> {
    /// The sources, at most 31.
    pub ssrc: Vec<u32>,
    /// The reason, if one is given; at most 255 bytes.
    pub reason: &'a [u8],
}

impl<'a> Bye<'a> {
    /// The content of a packet of type 203.
    // [RFC 3550 §6.6]
    pub fn parse(packet: &Packet<'a>) -> Result<Self, Error> {
        let count = usize::from(packet.count);
        let (sources, rest) = packet.body.split_at_checked(4 * count).ok_or(Error::Truncated)?;
        let reason = match rest.split_first() {
            None => &[][..],
            Some((&length, text)) => text.get(..usize::from(length)).ok_or(Error::Truncated)?,
        };
        Ok(Self { ssrc: sources.chunks_exact(4).map(|c| u32_at(c, 0)).collect(), reason })
    }

    /// Appends the packet to `out`.
    // [RFC 3550 §6.6]
    pub fn emit(&self, out: &mut Vec<u8>) {
        let ssrc = self.ssrc.get(..31).unwrap_or(&self.ssrc);
        let reason = self.reason.get(..255).unwrap_or(self.reason);
        super::emit(BYE, ssrc.len() as u8, out, |out| {
            ssrc.iter().for_each(|s| push_u32(out, *s));
            if !reason.is_empty() {
                out.push(reason.len() as u8);
                out.extend_from_slice(reason);
            }
        });
    }
}

/// A packet of an application's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct App<'a> {
    /// Its subtype, 0 to 31.
    pub subtype: u8,
    /// Who sends it.
    pub ssrc: u32,
    /// Four letters.
    pub name: [u8; 4],
    /// Whole words of data.
    pub data: &'a [u8],
}

impl<'a> App<'a> {
    /// The content of a packet of type 204.
    // [RFC 3550 §6.7]
    pub fn parse(packet: &Packet<'a>) -> Result<Self, Error> {
        let data = packet.body.get(8..).ok_or(Error::Truncated)?;
        let name = u32_at(packet.body, 4).to_be_bytes();
        Ok(Self { subtype: packet.count, ssrc: u32_at(packet.body, 0), name, data })
    }

    /// Appends the packet to `out`.
    // [RFC 3550 §6.7]
    pub fn emit(&self, out: &mut Vec<u8>) {
        super::emit(APP, self.subtype, out, |out| {
            push_u32(out, self.ssrc);
            out.extend_from_slice(&self.name);
            out.extend_from_slice(self.data);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::Packets;
    use proptest::prelude::*;

    // [RFC 3550 §6.6]
    #[test]
    fn the_golden_good_bye_is_read_and_written() {
        let golden = [0x82, 203, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 3, b'e', b'n', b'd'];
        let packet = Packets::reduced(&golden).unwrap().next().unwrap();
        let bye = Bye { ssrc: vec![1, 2], reason: b"end" };
        assert_eq!(Bye::parse(&packet), Ok(bye.clone()));
        let mut out = Vec::new();
        bye.emit(&mut out);
        assert_eq!(out, golden);
        assert_eq!(Bye::parse(&Packet { count: 4, ..packet }), Err(Error::Truncated), "more sources");
        let long = [0, 0, 0, 1, 9, b'x', 0, 0];
        assert_eq!(Bye::parse(&Packet { kind: BYE, count: 1, body: &long }), Err(Error::Truncated));
    }

    // [RFC 3550 §6.7]
    #[test]
    fn the_golden_application_packet_is_read_and_written() {
        let golden = [0x83, 204, 0, 3, 0, 0, 0, 9, b't', b'c', b'p', b's', 1, 2, 3, 4];
        let packet = Packets::reduced(&golden).unwrap().next().unwrap();
        let app = App { subtype: 3, ssrc: 9, name: *b"tcps", data: &[1, 2, 3, 4] };
        assert_eq!(App::parse(&packet), Ok(app));
        let mut out = Vec::new();
        app.emit(&mut out);
        assert_eq!(out, golden);
        assert_eq!(App::parse(&Packet { body: &golden[4..11], ..packet }), Err(Error::Truncated));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(count in 0u8..32, body in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Bye::parse(&Packet { kind: BYE, count, body: &body });
            let _ = App::parse(&Packet { kind: APP, count, body: &body });
        }
    }
}
