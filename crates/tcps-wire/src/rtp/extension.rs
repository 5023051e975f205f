//! Elements of an RTP header extension (RFC 8285).
//!
//! ```text
//! one-byte form, profile 0xBEDE          two-byte form, profile 0x1000
//! +----+-----+-------- -+                +--------+--------+-------- -+
//! | id |len-1| data     |                |   id   |  len   | data     |
//! +----+-----+-------- -+                +--------+--------+-------- -+
//! ```
//! Elements of tcpsbed: 1 the identity of a sample (index, origin time), 2 an echo command, 3 the identity of a
//! sample in parts, 4 the identity of an older sample that comes again.

use crate::bytes::{i64_at, u16_at, u32_at, u8_at};
use tcps_core::{
    ids::NodeId,
    sample::{Echo, PointId},
    time::Time,
};

/// Profile number of the one-byte form.
pub const ONE_BYTE: u16 = 0xbede;
/// Profile number of the two-byte form; its low four bits are free.
pub const TWO_BYTE: u16 = 0x1000;
/// Element: index (32 bit) and origin time (64 bit, ns) of the sample in the packet.
pub const IDENTITY: u8 = 1;
/// Element: target (16), sequence (32), node that waits (16), injected time (64, ns) of an echo command.
pub const ECHO: u8 = 2;
/// Element: as [`IDENTITY`], then length of the sample (32), fragment (16) and fragments (16).
pub const PART: u8 = 3;
/// Element: as [`IDENTITY`], of the redundant block.
pub const OLDER: u8 = 4;

/// One element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    /// What it is: 1 to 14, or to 255 in the two-byte form.
    pub id: u8,
    /// Its data, 1 to 16 bytes, or 0 to 255 in the two-byte form.
    pub data: &'a [u8],
}

/// The elements of an extension, in order; padding is left out.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    wide: bool,
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Of an extension's profile number and data; `None` if it has no such elements.
    // [RFC 8285 §4.1.2]
    #[inline]
    pub fn new(profile: u16, data: &'a [u8]) -> Option<Self> {
        match profile {
            ONE_BYTE => Some(Self { wide: false, rest: data }),
            p if p & 0xfff0 == TWO_BYTE => Some(Self { wide: true, rest: data }),
            _ => None,
        }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    // [RFC 8285 §4.2] [RFC 8285 §4.3]
    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        while self.rest.first() == Some(&0) {
            self.rest = &self.rest[1..];
        }
        let first = *self.rest.first()?;
        let (id, length, head) = match self.wide {
            true => (first, usize::from(*self.rest.get(1)?), 2),
            false if first >> 4 == 15 => return None,
            false => (first >> 4, usize::from(first & 0x0f) + 1, 1),
        };
        let data = self.rest.get(head..head + length)?;
        self.rest = &self.rest[head + length..];
        (id != 0).then_some(Element { id, data })
    }
}

/// Appends an extension with `elements`, padded to whole words: in the one-byte form, where all fit it.
// [RFC 8285 §4.2] [RFC 8285 §4.3]
#[inline]
pub fn emit(elements: &[Element<'_>], out: &mut Vec<u8>) {
    let narrow = elements.iter().all(|e| (1..=14).contains(&e.id) && (1..=16).contains(&e.data.len()));
    out.extend_from_slice(&if narrow { ONE_BYTE } else { TWO_BYTE }.to_be_bytes());
    let at = out.len();
    out.extend_from_slice(&[0, 0]);
    for e in elements {
        let data = e.data.get(..255).unwrap_or(e.data);
        match narrow {
            true => out.push(e.id << 4 | (data.len() - 1) as u8),
            false => out.extend_from_slice(&[e.id, data.len() as u8]),
        }
        out.extend_from_slice(data);
    }
    out.resize(at + 2 + (out.len() - at - 2).next_multiple_of(4), 0);
    let words = ((out.len() - at - 2) / 4) as u16;
    out[at..at + 2].copy_from_slice(&words.to_be_bytes());
}

/// Which sample is in a packet, and which part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Number of the sample within its flow.
    pub index: u32,
    /// When it was made, in nanoseconds on its maker's clock.
    pub origin_ns: Time,
    /// Length of the whole sample, fragment and fragments, if it came in parts.
    pub part: Option<(u32, u16, u16)>,
}

impl Identity {
    /// Its element, with the bytes in `room`.
    #[inline]
    pub fn element<'a>(&self, room: &'a mut [u8; 20]) -> Element<'a> {
        room[..4].copy_from_slice(&self.index.to_be_bytes());
        room[4..12].copy_from_slice(&self.origin_ns.to_be_bytes());
        let Some((length, fragment, fragments)) = self.part else {
            return Element { id: IDENTITY, data: &room[..12] };
        };
        room[12..16].copy_from_slice(&length.to_be_bytes());
        room[16..18].copy_from_slice(&fragment.to_be_bytes());
        room[18..20].copy_from_slice(&fragments.to_be_bytes());
        Element { id: PART, data: &room[..] }
    }

    /// The identity in an element; `None` if it is another one or has the wrong length.
    #[inline]
    pub fn parse(e: &Element<'_>) -> Option<Self> {
        let part = match (e.id, e.data.len()) {
            (IDENTITY, 12) => None,
            (PART, 20) => Some((u32_at(e.data, 12), u16_at(e.data, 16), u16_at(e.data, 18))),
            _ => return None,
        };
        Some(Self { index: u32_at(e.data, 0), origin_ns: i64_at(e.data, 4), part })
    }
}

/// The element of the identity of a redundant block, with the bytes in `room`.
#[inline]
pub fn older_element(index: u32, origin_ns: Time, room: &mut [u8; 12]) -> Element<'_> {
    room[..4].copy_from_slice(&index.to_be_bytes());
    room[4..].copy_from_slice(&origin_ns.to_be_bytes());
    Element { id: OLDER, data: &room[..] }
}

/// The identity of a redundant block in an element; `None` if it is another one or has the wrong length.
#[inline]
pub fn older_of(e: &Element<'_>) -> Option<(u32, Time)> {
    (e.id == OLDER && e.data.len() == 12).then(|| (u32_at(e.data, 0), i64_at(e.data, 4)))
}

/// The element of an echo command, with the bytes in `room`.
// [Polachan 2022: echoes]
#[inline]
pub fn echo_element<'a>(echo: &Echo, room: &'a mut [u8; 16]) -> Element<'a> {
    room[..2].copy_from_slice(&echo.target.0.to_be_bytes());
    room[2..6].copy_from_slice(&echo.sequence.to_be_bytes());
    room[6..8].copy_from_slice(&echo.reply_to.0.to_be_bytes());
    room[8..].copy_from_slice(&echo.injected_ns.to_be_bytes());
    Element { id: ECHO, data: &room[..] }
}

/// The echo command in an element; `None` if it is another one or has the wrong length.
#[inline]
pub fn echo_of(e: &Element<'_>) -> Option<Echo> {
    (e.id == ECHO && e.data.len() == 16).then(|| Echo {
        target: PointId(u16_at(e.data, 0)),
        sequence: u32_at(e.data, 2),
        reply_to: NodeId(u16::from_be_bytes([u8_at(e.data, 6), u8_at(e.data, 7)])),
        injected_ns: i64_at(e.data, 8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of RFC 8285 §4.2: two one-byte elements, padding, and one with 4 bytes.
    const NARROW: [u8; 12] = [0x10, 0xaa, 0x21, 0xbb, 0xbb, 0x00, 0x00, 0x33, 0xcc, 0xcc, 0xcc, 0xcc];
    /// The example of RFC 8285 §4.3: an element of no bytes, one of 1 byte, padding, and one of 4.
    const WIDE: [u8; 12] = [0x01, 0x00, 0x02, 0x01, 0xbb, 0x00, 0x03, 0x04, 0xcc, 0xcc, 0xcc, 0xcc];

    // [RFC 8285 §4.2] [RFC 8285 §4.3] [RFC 8285 §4.1.2]
    #[test]
    fn the_examples_of_the_standard_are_read() {
        let read = |profile, data| {
            Elements::new(profile, data).unwrap().map(|e| (e.id, e.data.to_vec())).collect::<Vec<_>>()
        };
        let narrow = vec![(1, vec![0xaa]), (2, vec![0xbb; 2]), (3, vec![0xcc; 4])];
        assert_eq!(read(ONE_BYTE, &NARROW[..]), narrow);
        let wide = vec![(1, vec![]), (2, vec![0xbb]), (3, vec![0xcc; 4])];
        assert_eq!(read(TWO_BYTE | 5, &WIDE[..]), wide);
        assert!(Elements::new(0x2000, &WIDE).is_none());
        assert_eq!(read(ONE_BYTE, &[0xf0, 0x10, 0xaa][..]), vec![], "15 ends the elements");
        assert_eq!(read(ONE_BYTE, &[0x1f, 0xaa][..]), vec![], "longer than the extension");
    }

    // [Polachan 2022: echoes]
    #[test]
    fn identity_and_echo_fit_their_elements() {
        let echo = Echo { target: PointId(0x8007), sequence: 256, reply_to: NodeId(9), injected_ns: -3 };
        let (mut a, mut b, mut c, mut out) = ([0; 20], [0; 16], [0; 12], Vec::new());
        assert_eq!(older_of(&older_element(7, -9, &mut c)), Some((7, -9)));
        for part in [None, Some((7_000_000, 3, 4))] {
            let identity = Identity { index: 65_541, origin_ns: -2, part };
            out.clear();
            emit(&[identity.element(&mut a), echo_element(&echo, &mut b)], &mut out);
            assert_eq!(out.len() % 4, 0);
            let profile = u16_at(&out, 0);
            assert_eq!(profile, if part.is_none() { ONE_BYTE } else { TWO_BYTE });
            let mut elements = Elements::new(profile, &out[4..]).unwrap();
            let first = elements.next().unwrap();
            assert_eq!((Identity::parse(&first), echo_of(&first)), (Some(identity), None));
            assert_eq!(elements.next().as_ref().and_then(echo_of), Some(echo));
            assert_eq!(elements.next(), None);
        }
    }

    proptest! {
        #[test]
        fn elements_survive_their_bytes(
            raw in proptest::collection::vec((1u8..=255, proptest::collection::vec(any::<u8>(), 0..40)), 1..6),
        ) {
            let elements: Vec<_> = raw.iter().map(|(id, data)| Element { id: *id, data }).collect();
            let mut out = Vec::new();
            emit(&elements, &mut out);
            prop_assert_eq!(out.len(), 4 + 4 * u16_at(&out, 2) as usize);
            let back: Vec<_> = Elements::new(u16_at(&out, 0), &out[4..]).unwrap().collect();
            prop_assert_eq!(back, elements);
        }

        #[test]
        fn no_bytes_make_it_panic(profile: u16, data in proptest::collection::vec(any::<u8>(), 0..60)) {
            for p in [profile, ONE_BYTE, TWO_BYTE] {
                if let Some(elements) = Elements::new(p, &data) {
                    for e in elements {
                        let _ = (Identity::parse(&e), echo_of(&e));
                    }
                }
            }
        }
    }
}
