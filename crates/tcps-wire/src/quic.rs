//! Long headers of QUIC packets, as far as they tell which packets a datagram has.

/// The bit of a long header, and the bits of its type.
const LONG: u8 = 0x80;
const TYPE: u8 = 0x30;
const INITIAL: u8 = 0x00;
const RETRY: u8 = 0x30;

/// Whether a packet of the datagram is a Retry or a Version Negotiation: anybody can make one, no key seals it.
// [RFC 9000 §17.2.1] [RFC 9000 §17.2.5] [RFC 9000 §12.2]
pub fn has_unsealed_packet(datagram: &[u8]) -> bool {
    let mut rest = datagram;
    while let Some((first, version, after)) = long_header(rest) {
        if version == [0; 4] || first & TYPE == RETRY {
            return true;
        }
        let Some(next) = behind(first, after) else { return false };
        rest = next;
    }
    false
}

/// The first byte of a long header, its version, and what is behind them.
fn long_header(packet: &[u8]) -> Option<(u8, [u8; 4], &[u8])> {
    let (first, rest) = packet.split_first().filter(|(first, _)| **first & LONG != 0)?;
    let (version, rest) = rest.split_first_chunk()?;
    Some((*first, *version, rest))
}

/// The packet behind one of which this is what follows the version: numbers of the connection, token, length, content.
fn behind(first: u8, after: &[u8]) -> Option<&[u8]> {
    let id = |bytes| skip(bytes, |b: &[u8]| b.split_first().map(|(n, rest)| (u64::from(*n), rest)));
    let rest = id(id(after)?)?;
    let rest = if first & TYPE == INITIAL { skip(rest, varint)? } else { rest };
    skip(rest, varint)
}

/// What is behind a length, read by `length`, and as many bytes.
fn skip(bytes: &[u8], length: impl Fn(&[u8]) -> Option<(u64, &[u8])>) -> Option<&[u8]> {
    let (count, rest) = length(bytes)?;
    rest.get(usize::try_from(count).ok()?..)
}

/// A number of 1, 2, 4 or 8 bytes, and what is behind it.
// [RFC 9000 §16]
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = 1 << (bytes.first()? >> 6);
    let (number, rest) = bytes.split_at_checked(length)?;
    let value = number.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((value & (u64::MAX >> 2 >> (64 - 8 * length)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of a type with a content of so many bytes.
    fn packet(first: u8, content: usize) -> Vec<u8> {
        let token: &[u8] = if first & TYPE == INITIAL { &[0x40, 2, 9, 9] } else { &[] };
        let length = [0x40 | (content >> 8) as u8, content as u8];
        [&[first, 0, 0, 0, 1, 2, 7, 7, 1, 8], token, &length, &vec![0xff; content]].concat()
    }

    // [RFC 9000 §16]
    #[test]
    fn numbers_are_those_of_the_rfc() {
        let of = |bytes: &[u8]| varint(bytes).map(|(value, rest)| (value, rest.len()));
        assert_eq!(of(&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]), Some((151_288_809_941_952_652, 0)));
        assert_eq!(of(&[0x9d, 0x7f, 0x3e, 0x7d]), Some((494_878_333, 0)));
        assert_eq!(of(&[0x7b, 0xbd, 1]), Some((15_293, 1)));
        assert_eq!((of(&[0x25]), of(&[]), of(&[0x40])), (Some((37, 0)), None, None));
    }

    // [RFC 9000 §12.2] [RFC 9000 §17.2.1] [RFC 9000 §17.2.5]
    #[test]
    fn a_packet_that_no_key_seals_is_found_wherever_it_is() {
        let sealed = [packet(0xc0, 300), packet(0xe0, 40), packet(0xd0, 5)].concat();
        assert!(
            !has_unsealed_packet(&sealed) && !has_unsealed_packet(&[0x4f; 30]) && !has_unsealed_packet(&[])
        );
        for forged in [[0xf5, 0, 0, 0, 1, 0, 0], [0xca, 0, 0, 0, 0, 0, 0]] {
            assert!(has_unsealed_packet(&forged));
            assert!(has_unsealed_packet(&[&sealed[..], &forged].concat()));
            assert!(
                !has_unsealed_packet(&[&[0x40], &forged[..]].concat()),
                "a short header reaches to the end"
            );
        }
        (0..sealed.len()).for_each(|n| assert!(!has_unsealed_packet(&sealed[..n])));
    }
}
