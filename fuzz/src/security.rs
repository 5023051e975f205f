//! Security around a transport: against anybody, whatever it has heard, and against a network that loses, repeats and reorders.

use crate::script::Script;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use tcps_core::{param::Named, time::MS};
use tcps_transport::{
    security::{self, Association, Opened, Secret},
    Side,
};
use tcps_wire::rtp::Repr;

fn sides(method: &Named) -> [Association; 2] {
    [Side::A, Side::B].map(|side| {
        let secret = Secret::seeded(1, "fuzz", side);
        security::association(method, "fuzz", side, secret).expect("good parameters")
    })
}

/// Two sides, and somebody between who has all that they send: changes it, makes up more, and brings what it likes when it likes.
/// What is opened is what the other side sealed, once.
pub fn security(data: &[u8]) {
    let mut script = Script(data);
    let shape = script.number::<1>();
    let params = json!({"rekey_after_packets": 64 + shape / 4});
    let method = match shape % 4 {
        _ if shape >= SRTP => {
            let ciphers = ["aes-128-gcm", "aes-256-gcm", "aes-128-cm-hmac-sha1-80"];
            Named::new("srtp", json!({"cipher": ciphers[shape as usize % ciphers.len()]}))
        }
        0 => Named::new("hmac", params),
        1 => Named::new("aead", json!({"cipher": "chacha20-poly1305"})),
        2 => Named::new("aead", Value::Null),
        _ => Named::new("aead", params),
    };
    let mut sides = sides(&method);
    sides[0].want_keys(0);
    let (mut now, mut n, mut buf, mut payload) = (0, 0u32, Vec::new(), Vec::new());
    let mut heard: Vec<Vec<u8>> = Vec::new();
    let mut genuine = BTreeMap::new();
    let mut taken = BTreeSet::new();
    while let Some(step) = script.next() {
        let at = usize::from(step & 1);
        match step >> 1 & 7 {
            0 => now += MS * script.number::<2>() as i64,
            1 => {
                n += 1;
                if sides[at].seal(now, &payload_of(&method, n), &mut buf) {
                    genuine.insert((1 - at, buf.clone()), payload_of(&method, n));
                    heard.push(buf.clone());
                }
            }
            2 => {
                let forged = script.number::<1>() as usize;
                deliver(&mut sides[at], (now, at), script.take(forged), &genuine, &mut taken, &mut payload);
            }
            3 | 4 if !heard.is_empty() => {
                let mut bytes = heard[script.number::<1>() as usize % heard.len()].clone();
                let bit = script.number::<2>() as usize % (8 * bytes.len());
                bytes[bit / 8] ^= 1 << (bit % 8);
                deliver(&mut sides[at], (now, at), &bytes, &genuine, &mut taken, &mut payload);
            }
            _ if !heard.is_empty() => {
                let bytes = &heard[script.number::<1>() as usize % heard.len()];
                deliver(&mut sides[at], (now, at), bytes, &genuine, &mut taken, &mut payload);
            }
            _ => {}
        }
        for side in &mut sides {
            side.handle_timeout(now);
            assert!(side.poll_timeout().is_none_or(|t| t > now), "it would be called again at once");
            while side.poll_message(&mut buf) {
                heard.push(buf.clone());
            }
        }
        if heard.len() > 250 {
            heard.drain(..100);
        }
    }
}

/// From this shape on the method is SRTP.
const SRTP: u64 = 240;

/// The payload number n: RTP, whose sequence numbers soon wrap, and now and then RTCP where the method asks for them.
fn payload_of(method: &Named, n: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    match (method.kind.as_str(), n % 8) {
        ("srtp", 0) => payload.extend([0x80, 201, 0, 1, 0, 0, 0, 7]),
        ("srtp", _) => {
            let sequence = 65_500u16.wrapping_add(n as u16);
            Repr { marker: false, payload_type: 96, sequence, timestamp: n, ssrc: 7 }.emit(&[], &[], &mut payload);
        }
        _ => {}
    }
    payload.extend(n.to_be_bytes());
    payload
}

type Genuine = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

fn deliver(
    side: &mut Association,
    (now, at): (i64, usize),
    bytes: &[u8],
    genuine: &Genuine,
    taken: &mut BTreeSet<Vec<u8>>,
    payload: &mut Vec<u8>,
) {
    let before = side.stats();
    let opened = side.open(now, bytes, payload);
    let refused = side.stats().unverified + side.stats().replayed - before.unverified - before.replayed;
    assert_eq!(u64::from(matches!(opened, Opened::Refused(_))), refused);
    if opened == Opened::Payload {
        let sent = genuine.get(&(at, bytes.to_vec())).expect("a forgery was accepted");
        assert_eq!(payload, sent);
        assert!(taken.insert(sent.clone()), "a replay was accepted");
    }
}
