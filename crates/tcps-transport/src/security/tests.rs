use super::{
    association::{Association, Opened, Protection},
    handshake,
    keys::{expand, Chain, Key, Method},
    record::{Limits, Opener, Sealer, AHEAD},
    secret::Secret,
    Profile, Protects, METHODS,
};
use crate::channel::Side;
use ring::{aead, hkdf};
use serde_json::json;
use tcps_core::{
    param::Named,
    record::DropReason,
    time::{MS, SECOND},
};
use tcps_wire::secure::{Record, Repr};

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// What a key makes of a payload behind a header, and that it verifies; any changed bit does not.
fn known_answer(method: Method, key: &str, iv: &str, header: &str, payload: &str, sealed: &str) {
    let key = Key::new(method, &bytes(key), bytes(iv).try_into().unwrap()).unwrap();
    let (mut datagram, header) = (bytes(header), header.len() / 2);
    datagram.extend(bytes(payload));
    assert!(key.seal(0, header, &mut datagram));
    assert_eq!(datagram[header..], bytes(sealed)[..], "{method:?}");
    let mut opened = Vec::new();
    assert!(key.open(0, header, &datagram, &mut opened) && opened == bytes(payload));
    for bit in 0..8 * datagram.len() {
        datagram[bit / 8] ^= 1 << (bit % 8);
        assert!(!key.open(0, header, &datagram, &mut opened) && opened.is_empty(), "bit {bit}");
        datagram[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(!key.open(1, header, &datagram, &mut opened) || method == Method::Hmac, "another number");
    (0..datagram.len()).for_each(|n| assert!(!key.open(0, header, &datagram[..n], &mut opened)));
}

// [RFC 8439 §2.8.2]
#[test]
fn chacha20_poly1305_gives_the_answer_of_its_rfc() {
    known_answer(
        Method::Aead(&aead::CHACHA20_POLY1305),
        "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        "070000004041424344454647",
        "50515253c0c1c2c3c4c5c6c7",
        "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966204920636f756c64206f6666657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73637265656e20776f756c642062652069742e",
        "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691",
    );
}

const GALLIA: &str = "47616c6c696120657374206f6d6e69732064697669736120696e207061727465732074726573";

// [RFC 7714 §16.1.1]
#[test]
fn aes_128_gcm_gives_the_answer_of_its_rfc() {
    known_answer(
        Method::Aead(&aead::AES_128_GCM),
        "000102030405060708090a0b0c0d0e0f",
        "51753c6580c2726f20718414",
        "8040f17b8041f8d35501a0b2",
        GALLIA,
        "f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833899d7f27beb16a9152cf765ee4390cce",
    );
}

// [RFC 7714 §16.2.1]
#[test]
fn aes_256_gcm_gives_the_answer_of_its_rfc() {
    known_answer(
        Method::Aead(&aead::AES_256_GCM),
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "51753c6580c2726f20718414",
        "8040f17b8041f8d35501a0b2",
        GALLIA,
        "32b1de78a822fe12ef9f78fa332e33aab18012389a58e2f3b50b2a0276ffae0f1ba63799b87b7aa3db36dfffd6b0f9bb7878d7a76c13",
    );
}

// [RFC 4868 §2.7.2.1]
#[test]
fn hmac_sha_256_128_gives_the_answers_of_its_rfc() {
    let iv = "000000000000000000000000";
    known_answer(
        Method::Hmac,
        &"0b".repeat(32),
        iv,
        "4869205468657265",
        "",
        "198a607eb44bfbc69903a0f1cf2bbdc5",
    );
    let jefe = "4a656665".repeat(8);
    known_answer(
        Method::Hmac,
        &jefe,
        iv,
        "7768617420646f20",
        "79612077616e7420666f72206e6f7468696e673f",
        "79612077616e7420666f72206e6f7468696e673f167f928588c5cc2eef8e3093caa0e87c",
    );
}

// [RFC 5869 §A.1]
#[test]
fn keys_are_expanded_as_the_rfc_says() {
    let prk = bytes("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
    let prk = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &prk);
    let mut okm = [0; 42];
    expand(&prk, &bytes("f0f1f2f3f4f5f6f7f8f9"), &mut okm);
    assert_eq!(
        okm[..],
        bytes("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
    );
}

// [RFC 8446 §5.3]
#[test]
fn the_nonce_is_the_number_under_the_vector_of_the_key() {
    let seal = |iv: &str, number| {
        let key = bytes("000102030405060708090a0b0c0d0e0f");
        let key = Key::new(Method::Aead(&aead::AES_128_GCM), &key, bytes(iv).try_into().unwrap()).unwrap();
        let mut datagram = vec![7; 40];
        assert!(key.seal(number, 8, &mut datagram));
        datagram
    };
    let iv = "51753c6580c2726f20718414";
    assert_eq!(seal(iv, 0x0102_0304), seal("51753c6580c2726f21738710", 0));
    assert_ne!(seal(iv, 1), seal(iv, 2));
}

#[test]
fn every_secret_of_a_chain_has_a_key_of_its_own() {
    for method in [Method::Aead(&aead::AES_128_GCM), Method::Hmac] {
        let mut chain = Chain::new(method, &[7; 32]);
        let mut tags = Vec::new();
        for _ in 0..300 {
            let mut datagram = vec![0; 8];
            assert!(chain.key().unwrap().seal(0, 8, &mut datagram));
            assert!(!tags.contains(&datagram));
            tags.push(datagram);
            chain.step();
        }
    }
}

/// Sizes do not show it: a weaker cipher in its place would go unnoticed, since both sides would take the same one.
#[test]
fn the_cipher_that_is_asked_for_is_the_one_that_seals() {
    let protection = |kind: &str, cipher: &str| {
        let (entry, params) = Named::new(kind, json!({"cipher": cipher})).of(METHODS).unwrap();
        let Protects::Datagrams(make) = &entry.make else { panic!("{kind} seals no datagrams") };
        make(&params).unwrap()
    };
    for (cipher, algorithm) in [
        ("chacha20-poly1305", &aead::CHACHA20_POLY1305),
        ("aes-128-gcm", &aead::AES_128_GCM),
        ("aes-256-gcm", &aead::AES_256_GCM),
    ] {
        let Protection { method, profile, .. } = protection("aead", cipher);
        assert!(method == Method::Aead(algorithm) && profile.is_none(), "{cipher}: {method:?}");
    }
    for (cipher, profile) in [
        ("aes-128-gcm", Profile::Aes128Gcm),
        ("aes-256-gcm", Profile::Aes256Gcm),
        ("aes-128-cm-hmac-sha1-80", Profile::Aes128CmHmacSha1),
    ] {
        assert_eq!(protection("srtp", cipher).profile, Some(profile));
    }
}

fn halves(packets: u32) -> (Sealer, Opener) {
    let (method, limits) = (Method::Aead(&aead::AES_128_GCM), Limits { packets, time_ns: SECOND });
    (Sealer::new(method, &[1; 32], 5, 0, limits).unwrap(), Opener::new(method, &[1; 32]).unwrap())
}

fn open(opener: &mut Opener, datagram: &[u8]) -> Result<Vec<u8>, DropReason> {
    let Ok(Repr::Record(record)) = Repr::parse(datagram) else { panic!("no record") };
    let mut payload = Vec::new();
    opener.open(record, datagram, &mut payload).map(|_| payload)
}

#[test]
fn keys_change_after_packets_or_time_and_nothing_is_lost_that_is_late_by_one_key() {
    let (mut sealer, mut opener) = halves(3);
    let seal = |sealer: &mut Sealer, now, n: u8| {
        let mut datagram = Vec::new();
        let changed = sealer.seal(now, false, &[n], &mut datagram).unwrap();
        (changed, datagram)
    };
    let sent: Vec<_> = (0..8).map(|n| seal(&mut sealer, 0, n)).collect();
    let changed: Vec<_> = sent.iter().map(|s| s.0).collect();
    assert_eq!(changed, [false, false, false, true, false, false, true, false]);
    for n in [1, 4, 0, 2, 6, 3, 5, 7] {
        assert_eq!(open(&mut opener, &sent[n].1), Ok(vec![n as u8]), "record {n}");
        assert_eq!(open(&mut opener, &sent[n].1), Err(DropReason::Replayed));
    }
    assert_eq!(open(&mut opener, &sent[1].1), Err(DropReason::Unverified), "two keys ago");
    assert!(seal(&mut sealer, SECOND, 8).0, "by time");
    let (mut idle, _) = halves(3);
    assert!(!seal(&mut idle, SECOND, 0).0, "a key by which nothing was sealed stays");
    let (mut sealer, mut opener) = halves(1);
    let sent: Vec<_> = (0..2 * AHEAD).map(|n| seal(&mut sealer, 0, n).1).collect();
    assert_eq!(
        open(&mut opener, &sent[usize::from(AHEAD) + 1]),
        Err(DropReason::Unverified),
        "too far ahead"
    );
    assert_eq!(open(&mut opener, &sent[usize::from(AHEAD)]), Ok(vec![AHEAD]));
}

#[test]
fn a_refused_record_moves_nothing() {
    let (mut sealer, mut opener) = halves(1_000);
    let mut good = Vec::new();
    sealer.seal(0, false, b"good", &mut good).unwrap();
    for phase in 0..=u8::MAX {
        for number in [0, 1, 5_000, u32::MAX] {
            let mut forged = Record { asks: false, phase, session: 5, number }.to_bytes().to_vec();
            forged.extend([0; 24]);
            assert_eq!(open(&mut opener, &forged), Err(DropReason::Unverified));
        }
    }
    assert_eq!(open(&mut opener, &good), Ok(b"good".to_vec()));
}

#[test]
fn a_handshake_needs_the_same_key_and_the_same_channel() {
    let guard = |key, channel: &[u8]| handshake::Guard::new(&[key; 32], channel);
    let own = guard(1, b"channel");
    let answer = |key: u8, channel: &[u8], hello: &[u8]| {
        handshake::answer(&guard(key, channel), &[key; 32], channel, [3; 32], hello)
    };
    let mut a = handshake::Initiator::new(&own, &[1; 32], b"channel", [2; 32]).unwrap();
    assert!(answer(9, b"channel", &a.hello).is_none(), "another key");
    assert!(answer(1, b"other", &a.hello).is_none(), "another channel");
    let (answered, b_roots) = answer(1, b"channel", &a.hello).unwrap();
    for bit in 0..8 * answered.len() {
        let mut forged = answered;
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(a.take(&own, &forged).is_none(), "bit {bit}");
        let mut forged = a.hello;
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(!own.admits(&forged), "bit {bit}");
    }
    let other = handshake::Initiator::new(&own, &[1; 32], b"channel", [4; 32]).unwrap();
    let (stale, _) = answer(1, b"channel", &other.hello).unwrap();
    assert!(a.take(&own, &stale).is_none(), "an answer to another hello");
    assert!(own.admits(&a.hello) && !own.admits(&answered), "an answer is no hello");
    let a_roots = a.take(&own, &answered).expect("forged answers spoil nothing");
    assert!(a_roots == b_roots && a_roots.forward != a_roots.backward);
}

/// Whoever has the key can put a right code behind anything, such as another implementation behind a handshake of its own.
#[test]
fn a_hello_with_a_right_code_that_is_no_handshake_of_the_channel_is_refused_and_holds_up_no_other() {
    let guard = handshake::Guard::new(&[1; 32], b"channel");
    let hello = |channel: &[u8], drawn| {
        let hello = handshake::Initiator::new(&guard, &[1; 32], channel, drawn).unwrap().hello;
        assert!(guard.admits(&hello));
        let mut datagram = Vec::new();
        Repr::Hello.emit(&mut datagram);
        datagram.extend(hello);
        datagram
    };
    let limits = Limits { packets: 64, time_ns: SECOND };
    let protection = Protection { method: Method::Hmac, limits, profile: None };
    let secret = Secret { key: [1; 32], ..Secret::seeded(1, "channel", Side::B) };
    let mut b = Association::new(Side::B, protection, b"channel".to_vec(), secret);
    let (mut message, mut payload) = (Vec::new(), Vec::new());
    for n in 1..=3 {
        let refused = b.open(0, &hello(b"other", [n; 32]), &mut payload);
        assert_eq!(refused, Opened::Refused(DropReason::Unverified));
        assert_eq!((b.stats().refused_handshakes, b.stats().unverified), (n.into(), n.into()));
    }
    while b.poll_message(&mut message) {
        assert!(matches!(Repr::parse(&message), Ok(Repr::Request)), "it answers none of them");
    }
    assert_eq!(b.open(0, &hello(b"channel", [9; 32]), &mut payload), Opened::Own);
    assert!(b.poll_message(&mut message) && matches!(Repr::parse(&message), Ok(Repr::Answer)), "at once");
    // Each costs it two multiplications on the curve.
    for (now, is_answered) in [(1, false), (10 * MS - 1, false), (10 * MS, true)] {
        assert_eq!(b.open(now, &hello(b"channel", [10; 32]), &mut payload), Opened::Own);
        assert_eq!(b.poll_message(&mut message), is_answered, "another one after {now} ns");
    }
}
