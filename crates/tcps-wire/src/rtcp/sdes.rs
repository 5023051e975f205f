//! Source descriptions (RFC 3550 §6.5): who an SSRC is.
//!
//! ```text
//! chunk:  SSRC │ items: type (8), length (8), text │ one to four zeros, to a whole word
//! ```

use super::{push_u32, Packet};
use crate::{bytes::u32_at, Error};

/// Packet type.
pub const SDES: u8 = 202;
/// Item: the canonical name, which every compound datagram must carry.
pub const CNAME: u8 = 1;
/// Item: the name of the program.
pub const TOOL: u8 = 6;

/// An item of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    /// What it is.
    pub kind: u8,
    /// At most 255 bytes of UTF-8.
    pub text: &'a [u8],
}

/// What is said of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The source.
    pub ssrc: u32,
    /// Items in order.
    pub items: Vec<Item<'a>>,
}

impl Chunk<'_> {
    /// Its canonical name, if it has one.
    pub fn cname(&self) -> Option<&[u8]> {
        self.items.iter().find(|i| i.kind == CNAME).map(|i| i.text)
    }
}

/// The chunks of a packet of type 202.
// [RFC 3550 §6.5]
pub fn parse<'a>(packet: &Packet<'a>) -> Result<Vec<Chunk<'a>>, Error> {
    let (mut chunks, mut at) = (Vec::new(), 0);
    for _ in 0..packet.count {
        if packet.body.len() < at + 8 {
            return Err(Error::Truncated);
        }
        let ssrc = u32_at(packet.body, at);
        let (items, end) = items(packet.body, at + 4)?;
        at = end.next_multiple_of(4);
        chunks.push(Chunk { ssrc, items });
    }
    Ok(chunks)
}

/// The items from `at` on, and the place behind the zero that ends them.
fn items(body: &[u8], mut at: usize) -> Result<(Vec<Item<'_>>, usize), Error> {
    let mut items = Vec::new();
    loop {
        let kind = *body.get(at).ok_or(Error::Truncated)?;
        if kind == 0 {
            return Ok((items, at + 1));
        }
        let length = usize::from(*body.get(at + 1).ok_or(Error::Truncated)?);
        let text = body.get(at + 2..at + 2 + length).ok_or(Error::Truncated)?;
        items.push(Item { kind, text });
        at += 2 + length;
    }
}

/// Appends a packet with at most 31 chunks to `out`.
// [RFC 3550 §6.5]
pub fn emit(chunks: &[Chunk<'_>], out: &mut Vec<u8>) {
    let chunks = chunks.get(..31).unwrap_or(chunks);
    super::emit(SDES, chunks.len() as u8, out, |out| {
        for chunk in chunks {
            let at = out.len();
            push_u32(out, chunk.ssrc);
            for item in &chunk.items {
                let text = item.text.get(..255).unwrap_or(item.text);
                out.extend_from_slice(&[item.kind, text.len() as u8]);
                out.extend_from_slice(text);
            }
            out.push(0);
            out.resize(at + (out.len() - at).next_multiple_of(4), 0);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::Packets;
    use proptest::prelude::*;

    const GOLDEN: [u8; 28] = [
        0x82, 202, 0x00, 0x06, // two chunks, 7 words
        0x00, 0x00, 0x00, 0x01, 0x01, 0x02, b'm', b's', // SSRC 1: CNAME "ms"
        0x06, 0x02, b't', b'c', 0x00, 0x00, 0x00, 0x00, // TOOL "tc", end, padding
        0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, // SSRC 2: nothing
    ];

    // [RFC 3550 §6.5]
    #[test]
    fn the_golden_packet_is_read_and_written() {
        let packet = Packets::reduced(&GOLDEN).unwrap().next().unwrap();
        let chunks = parse(&packet).unwrap();
        let items = vec![Item { kind: CNAME, text: b"ms" }, Item { kind: TOOL, text: b"tc" }];
        assert_eq!(chunks, [Chunk { ssrc: 1, items }, Chunk { ssrc: 2, items: vec![] }]);
        assert_eq!((chunks[0].cname(), chunks[1].cname()), (Some(&b"ms"[..]), None));
        let mut out = Vec::new();
        emit(&chunks, &mut out);
        assert_eq!(out, GOLDEN);
        assert_eq!(parse(&Packet { count: 3, ..packet }), Err(Error::Truncated));
        assert_eq!(parse(&Packet { body: &GOLDEN[4..13], ..packet }), Err(Error::Truncated));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(count in 0u8..32, body in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(chunks) = parse(&Packet { kind: SDES, count, body: &body }) {
                prop_assert_eq!(chunks.len(), usize::from(count));
                let mut out = Vec::new();
                emit(&chunks, &mut out);
                let packet = Packets::reduced(&out).unwrap().next().unwrap();
                prop_assert_eq!(parse(&packet), Ok(chunks));
            }
        }
    }
}
