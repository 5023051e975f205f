use super::{
    super::replay::WINDOW,
    transform::{derive, Kind, Place, Profile, Transform},
    *,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// Both ends of a direction.
fn ends(profile: Profile) -> [Srtp; 2] {
    let master: Vec<u8> = (0..profile.master_bytes() as u8).collect();
    [0, 1].map(|_| Srtp::new(profile, &master).unwrap())
}

fn rtp(ssrc: u32, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let [a, b] = sequence.to_be_bytes();
    let mut packet = vec![0x80, 96, a, b, 0, 0, 0, 9];
    packet.extend(ssrc.to_be_bytes());
    packet.extend(payload);
    packet
}

fn rtcp(ssrc: u32, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x80, 201, 0, 1];
    packet.extend(ssrc.to_be_bytes());
    packet.extend(payload);
    packet
}

fn sealed(end: &mut Srtp, packet: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(end.seal(packet, &mut out));
    out
}

fn opened(end: &mut Srtp, packet: &[u8]) -> Result<Vec<u8>, DropReason> {
    let mut out = Vec::new();
    let found = end.open(packet, &mut out);
    assert!(found.is_ok() || out.is_empty(), "what is refused leaves nothing");
    found.map(|()| out)
}

// [RFC 3711 §4.3]: the answers of appendix B.3
#[test]
fn keys_are_derived_as_the_rfc_says() {
    let master = bytes("e1f97a0d3e018be0d64fa32c06de4139");
    let salt = bytes("0ec675ad498afeebb6960b3aabe6").try_into().unwrap();
    for (label, answer) in [
        (0, "c61e7a93744f39ee10734afe3ff7a087"),
        (1, "cebe321f6ff7716b6fd4ab49af256a156d38baa4"),
        (2, "30cbbc08863d8c85d49db34a9ae1"),
    ] {
        let mut out = vec![7; answer.len() / 2];
        derive(&master, &salt, label, &mut out);
        assert_eq!(out, bytes(answer), "label {label}");
    }
}

// [RFC 3711 §4.1.1]: the answers of appendix B.2
#[test]
fn the_keystream_is_that_of_the_rfc() {
    let (key, salt) = (bytes("2b7e151628aed2a6abf7158809cf4f3c"), bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfd"));
    let transform = Transform::new(Profile::Aes128CmHmacSha1, &key, &[0; 20], &salt).unwrap();
    let place = |ssrc, index| Place { kind: Kind::Media, ssrc, index };
    let stream = |place| {
        let mut packet = vec![0; 65_282 * 16];
        assert!(transform.seal(place, 0, &mut packet));
        packet
    };
    let found = stream(place(0, 0));
    let first =
        "e03ead0935c95e80e166b16dd92b4eb4d23513162b02d0f72a43a2fe4a5f97ab41e95b3bb0a2e8dd477901e4fca894c0";
    let last =
        "ec8cdf7398607cb0f2d21675ea9ea1e4362b7c3c6773516318a077d7fc5073ae6a2cc3787889374fbeb4c81b17ba6c44";
    assert_eq!(found[..48], bytes(first));
    assert_eq!(found[65_279 * 16..65_282 * 16], bytes(last));
    // Source and number stand in the vector: the same bits in the salt give the same stream.
    let moved = bytes("f0f1f2f3f5f7f5f3f8f9fafbfdff"); // ^ 01020304 at byte 4, ^ 0102 at byte 12
    let other = Transform::new(Profile::Aes128CmHmacSha1, &key, &[0; 20], &moved).unwrap();
    let mut packet = vec![0; 65_282 * 16];
    assert!(other.seal(place(0, 0), 0, &mut packet));
    let found = stream(place(0x0102_0304, 0x0102));
    assert_ne!(found[..48], bytes(first));
    let signed = packet.len() - 10;
    assert_eq!(found[..signed], packet[..signed]);
}

const KEYS: [(Profile, &str); 2] = [
    (Profile::Aes128Gcm, "000102030405060708090a0b0c0d0e0f"),
    (Profile::Aes256Gcm, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"),
];

/// A direction by the session keys of RFC 7714.
fn gcm(profile: Profile, key: &str) -> Srtp {
    let [media, control] = [0, 1]
        .map(|_| Transform::new(profile, &bytes(key), &[], &bytes("517569642070726f2071756f")).unwrap());
    Srtp::of(media, control)
}

// [RFC 7714 §16.1.1] [RFC 7714 §16.1.2] [RFC 7714 §16.2.1] [RFC 7714 §8.1] [RFC 7714 §8.2]
#[test]
fn srtp_gives_the_answers_of_its_rfc() {
    let packet = "8040f17b8041f8d35501a0b247616c6c696120657374206f6d6e69732064697669736120696e207061727465732074726573";
    let answers = [
        "f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833899d7f27beb16a9152cf765ee4390cce",
        "32b1de78a822fe12ef9f78fa332e33aab18012389a58e2f3b50b2a0276ffae0f1ba63799b87b7aa3db36dfffd6b0f9bb7878d7a76c13",
    ];
    for ((profile, key), answer) in KEYS.into_iter().zip(answers) {
        let answer = bytes(&format!("{}{answer}", &packet[..24]));
        assert_eq!(sealed(&mut gcm(profile, key), &bytes(packet)), answer, "{profile:?}");
        assert_eq!(opened(&mut gcm(profile, key), &answer), Ok(bytes(packet)), "{profile:?}");
    }
}

// [RFC 7714 §17.1] [RFC 7714 §17.2] [RFC 7714 §9.1] [RFC 7714 §9.2]
#[test]
fn srtcp_gives_the_answers_of_its_rfc() {
    let packet = bytes(
        "81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
    );
    let answers = [
        "63e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b4686303ded0bb9275bc84aa45896cf4d2fc5abf87245d9eade800005d4",
        "d50ae4d1f5ce5d304ba297e47d470c282c3ece5dbffe0a50a2eaa5c1110555be8415f658c61de0476f1b6fad1d1eb30c4446839f57ff6f6cb26ac3be800005d4",
    ];
    for ((profile, key), answer) in KEYS.into_iter().zip(answers) {
        let answer = [&packet[..8], &bytes(answer)].concat();
        assert_eq!(opened(&mut gcm(profile, key), &answer), Ok(packet.clone()), "{profile:?}");
        let mut end = gcm(profile, key);
        (0..0x5d4).for_each(|_| drop(sealed(&mut end, &packet)));
        assert_eq!(sealed(&mut end, &packet), answer, "{profile:?}");
    }
    // [RFC 7714 §17.3]: it is genuine, but anybody can read it.
    let bare = [&packet[..], &bytes("841dd9683dd78ec92ae58790125f62b3000005d4")].concat();
    let (profile, key) = KEYS[0];
    assert_eq!(opened(&mut gcm(profile, key), &bare), Err(DropReason::Unverified));
}

// [RFC 7714 §11] [RFC 7714 §12] [RFC 5764 §4.2]
#[test]
fn a_master_key_has_the_length_of_its_profile_and_a_short_salt_ends_with_zeros() {
    let lengths = Profile::ALL.map(Profile::master_bytes);
    assert_eq!(lengths, [28, 44, 30]);
    for (profile, length) in Profile::ALL.into_iter().zip(lengths) {
        for wrong in [0, 1, length - 1, length + 1] {
            assert!(Srtp::new(profile, &vec![7; wrong]).is_none(), "{profile:?}: {wrong} bytes");
        }
    }
    let (mut key, mut salt) = ([0; 16], [0; 12]);
    let padded = *b"\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\0\0";
    derive(&[7; 16], &padded, 0, &mut key);
    derive(&[7; 16], &padded, 2, &mut salt);
    let by_hand = Transform::new(Profile::Aes128Gcm, &key, &[], &salt).unwrap();
    let mut by_hand = Srtp::of(by_hand, Transform::new(Profile::Aes128Gcm, &key, &[], &salt).unwrap());
    let mut derived = Srtp::new(Profile::Aes128Gcm, &[&[7; 16][..], &[9; 12]].concat()).unwrap();
    let packet = rtp(1, 2, b"payload");
    assert_eq!(sealed(&mut derived, &packet), sealed(&mut by_hand, &packet));
    assert_ne!(
        sealed(&mut derived, &rtcp(1, b"same"))[8..12],
        sealed(&mut by_hand, &rtcp(1, b"same"))[8..12]
    );
}

/// What libsrtp 2 makes of one packet and its first report (number 1), by the master key 0, 1, 2 …
// [RFC 3711 §4.3]
#[test]
fn every_key_is_the_one_of_libsrtp() {
    for (profile, media, report) in [
        (
            Profile::Aes128Gcm,
            "8060000700000009000000058fe1044b5bf5134ee487e0fcf77f2d338d8e92d5f52222",
            "80c90001000000059d017e55eeeab85af3c605387597e8cf16145f096b7b2f0180000001",
        ),
        (
            Profile::Aes256Gcm,
            "80600007000000090000000564f097d2146de8860e3b0076ac8afa8247923c78ea2828",
            "80c90001000000058539b658f5b9aada656ab4518808c48699f78a968124eab680000001",
        ),
        (
            Profile::Aes128CmHmacSha1,
            "8060000700000009000000056fb499189c881010e87793ae58a3d682d1",
            "80c9000100000005b55d4ae5ea71880c8000000181b0873388a82bb56d5f",
        ),
    ] {
        let [mut a, mut b] = ends(profile);
        let packet = rtp(5, 7, b"payload");
        assert_eq!(sealed(&mut a, &packet), bytes(media), "{profile:?}");
        assert_eq!(opened(&mut b, &bytes(media)), Ok(packet), "{profile:?}");
        assert_eq!(opened(&mut b, &bytes(report)), Ok(rtcp(5, b"report\0\0")), "{profile:?}");
    }
}

// [RFC 3711 §3.3.1]
#[test]
fn the_index_is_the_nearest_with_that_sequence_number() {
    for (greatest, sequence, index) in [
        (None, 65_535, 65_535),
        (Some(65_535), 0, 65_536),
        (Some(65_536), 65_535, 65_535),
        (Some(3 << 16 | 10), 11, 3 << 16 | 11),
        (Some(3 << 16 | 10), 32_778, 3 << 16 | 32_778),
        (Some(3 << 16 | 10), 32_779, 2 << 16 | 32_779),
        (Some(3 << 16 | 32_768), 0, 3 << 16),
        (Some(3 << 16 | 40_000), 7_232, 3 << 16 | 7_232),
        (Some(3 << 16 | 40_000), 7_231, 4 << 16 | 7_231),
        (Some(10), 60_000, 60_000), // nothing stands before the first cycle
    ] {
        assert_eq!(nearest(greatest, sequence), index, "{greatest:?} {sequence}");
    }
}

// [RFC 3711 §4.2]
#[test]
fn every_changed_bit_and_every_shorter_packet_is_refused_and_moves_nothing() {
    for profile in Profile::ALL {
        let [mut a, mut b] = ends(profile);
        for packet in [rtp(5, 65_535, b"payload"), rtp(5, 0, b""), rtcp(5, b"report"), rtcp(5, b"")] {
            let good = sealed(&mut a, &packet);
            for bit in 0..8 * good.len() {
                let mut forged = good.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                assert!(opened(&mut b, &forged).is_err(), "{profile:?}, bit {bit}");
            }
            (0..good.len()).for_each(|n| assert!(opened(&mut b, &good[..n]).is_err(), "{n} bytes"));
            assert_eq!(opened(&mut b, &good), Ok(packet), "{profile:?}");
            assert_eq!(opened(&mut b, &good), Err(DropReason::Replayed), "{profile:?}");
        }
    }
}

#[test]
fn a_number_seals_once_and_what_is_no_rtp_never() {
    let [mut a, _] = ends(Profile::Aes128Gcm);
    let mut out = Vec::new();
    assert!(a.seal(&rtp(1, 7, b"one"), &mut out));
    assert!(!a.seal(&rtp(1, 7, b"two"), &mut out), "the same key and nonce for two payloads");
    assert!(a.seal(&rtp(2, 7, b"two"), &mut out), "of another source");
    for no in [&b""[..], b"payload of udp", &[0x80; 11], &[0x80, 201, 0, 1, 0, 0, 0]] {
        assert!(!a.seal(no, &mut out));
    }
}

/// A number more would reach into the source in the vector: source 4 would seal under the key and nonce of source 5.
// [RFC 3711 §3.3.1] [RFC 3711 §3.4]
#[test]
fn behind_the_last_number_of_a_source_nothing_is_sealed_or_opened() {
    for profile in Profile::ALL {
        let [mut a, mut b] = ends(profile);
        for end in [&mut a, &mut b] {
            end.sources.entry(4).or_insert_with(Replay::new).mark(MOST_PACKETS - 2);
            end.reporters.entry(4).or_insert_with(Replay::new).mark(u64::from(srtcp::MOST_PACKETS) - 2);
        }
        for (last, more) in
            [(rtp(4, 65_535, b"last"), rtp(4, 0, b"more")), (rtcp(4, b"last"), rtcp(4, b"more"))]
        {
            let datagram = sealed(&mut a, &last);
            assert_eq!(opened(&mut b, &datagram), Ok(last), "{profile:?}");
            assert!(!a.seal(&more, &mut Vec::new()), "{profile:?}");
        }
        // Of a sender that goes on.
        let mut packet = rtp(4, 0, b"more");
        assert!(a.media.seal(Place { kind: Kind::Media, ssrc: 4, index: MOST_PACKETS }, 12, &mut packet));
        assert_eq!(opened(&mut b, &packet), Err(DropReason::Unverified), "{profile:?}");
    }
}

#[test]
fn after_a_loss_of_98_302_packets_and_at_the_start_the_next_one_is_found() {
    for (first, before, lost) in [
        (65_000, 1, 65_535),
        (65_000, 1, 98_302),
        (5, 1, 98_302),
        (65_000, 0, 66_000),
        (65_000, 40_000, 32_769),
    ] {
        let [mut a, mut b] = ends(Profile::Aes128Gcm);
        for at in 0..=before + lost {
            let packet = rtp(1, (first + at) as u16, &[1]);
            let arrives = at < before || at == before + lost;
            if arrives || at % 20_000 == 0 {
                let datagram = sealed(&mut a, &packet);
                if arrives {
                    let found = opened(&mut b, &datagram);
                    assert_eq!(found, Ok(packet), "from {first}, {lost} lost after {before}: {at}");
                }
            }
        }
    }
}

proptest! {
    /// Over loss, duplication, reordering and wraps of SEQ: what was sent is opened once, if it is not later than the window; what
    /// somebody between changes or repeats never.
    #[test]
    fn what_is_genuine_is_opened_once_and_nothing_else(
        profile in prop::sample::select(&Profile::ALL[..]),
        first: u16,
        steps in prop::collection::vec((0u16..3, 0u64..60, 0u8..10, any::<u16>()), 1..300),
        jumps in prop::collection::vec((0usize..300, 1u16..32_000), 0..3),
    ) {
        let [mut a, mut b] = ends(profile);
        let mut sequence = [first, first.wrapping_add(40_000), 65_500];
        let mut flight: Vec<(u64, u64, Vec<u8>, Vec<u8>)> = Vec::new();
        for (at, (source, late, fate, noise)) in steps.into_iter().enumerate() {
            let next = &mut sequence[usize::from(source)];
            let jump = jumps.iter().find(|(when, _)| *when == at).map_or(0, |(_, jump)| *jump);
            *next = next.wrapping_add(1 + jump);
            let content = [noise.to_be_bytes(); 8].concat();
            let packet = match at % 7 {
                0 => rtcp(source.into(), &content),
                _ => rtp(source.into(), *next, &content),
            };
            let datagram = sealed(&mut a, &packet);
            prop_assert!(!datagram.windows(content.len()).any(|w| w == content), "it can be read");
            let (at, late) = (at as u64, if jumps.is_empty() { late } else { 0 });
            match fate {
                0 => {}
                1 => flight.extend([(at + late, at, packet.clone(), datagram.clone()), (at + 1, at, packet, datagram)]),
                2 => {
                    let mut forged = datagram.clone();
                    let bit = usize::from(noise) % (8 * forged.len());
                    forged[bit / 8] ^= 1 << (bit % 8);
                    prop_assert!(opened(&mut b, &forged).is_err(), "bit {}", bit);
                    flight.push((at + late, at, packet, datagram));
                }
                _ => flight.push((at + late, at, packet, datagram)),
            }
        }
        flight.sort_by_key(|f| (f.0, f.1));
        prop_assert!(WINDOW > 300);
        let mut had = BTreeSet::new();
        for (_, at, packet, datagram) in flight {
            match had.insert(at) {
                true => prop_assert_eq!(opened(&mut b, &datagram), Ok(packet)),
                false => prop_assert_eq!(opened(&mut b, &datagram), Err(DropReason::Replayed)),
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_are_accepted(bytes in prop::collection::vec(any::<u8>(), 0..60), rtcp: bool) {
        for profile in Profile::ALL {
            let mut bytes = bytes.clone();
            if let [first, second, ..] = &mut bytes[..] {
                (*first, *second) = (0x80 | *first & 0x1f, if rtcp { 200 } else { *second });
            }
            prop_assert!(opened(&mut ends(profile)[1], &bytes).is_err());
        }
    }
}
