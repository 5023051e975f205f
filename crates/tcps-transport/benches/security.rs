//! Time per sample of 64 B that security adds: sealed at one side, verified and opened at the other.

use serde_json::{json, Value};
use std::{hint::black_box, time::Instant};
use tcps_core::param::Named;
use tcps_transport::{
    security::{self, Association, Opened, Secret},
    Side,
};

/// Rounds are shorter than a time slice, so that a busy machine leaves most of them alone.
const SAMPLES: u32 = 5_000;
const ROUNDS: usize = 501;

/// Two sides that have agreed on keys.
fn pair(method: &Named) -> [Association; 2] {
    let side = |side| {
        security::association(method, "bench", side, Secret::seeded(1, "bench", side)).expect("a method")
    };
    let (mut a, mut b) = (side(Side::A), side(Side::B));
    let (mut message, mut payload) = (Vec::new(), Vec::new());
    a.want_keys(0);
    a.handle_timeout(0);
    for _ in 0..3 {
        while a.poll_message(&mut message) {
            b.open(0, &message, &mut payload);
        }
        while b.poll_message(&mut message) {
            a.open(0, &message, &mut payload);
        }
    }
    assert!(a.has_keys() && b.has_keys());
    [a, b]
}

/// Nanoseconds to seal, and to open.
#[allow(clippy::disallowed_methods)] // a benchmark measures
fn round(method: &Named) -> [f64; 2] {
    let [mut a, mut b] = pair(method);
    let (mut datagrams, mut payload) = (vec![Vec::with_capacity(128); SAMPLES as usize], Vec::new());
    let begin = Instant::now();
    for datagram in &mut datagrams {
        assert!(a.seal(1, black_box(&[7; 64]), datagram));
    }
    let sealed = begin.elapsed();
    let begin = Instant::now();
    for datagram in &datagrams {
        assert_eq!(b.open(1, black_box(datagram), &mut payload), Opened::Payload);
    }
    [sealed, begin.elapsed()].map(|t| t.as_nanos() as f64 / f64::from(SAMPLES))
}

fn main() {
    let ciphers = ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"];
    let aead = ciphers.map(|cipher| (cipher, Named::new("aead", json!({"cipher": cipher}))));
    for (name, method) in aead.into_iter().chain([("hmac", Named::new("hmac", Value::Null))]) {
        let mut rounds: Vec<_> = (0..ROUNDS).map(|_| round(&method)).collect();
        rounds.sort_by(|a, b| (a[0] + a[1]).total_cmp(&(b[0] + b[1])));
        let ([seal, open], [s, o]) = (rounds[ROUNDS / 2], rounds[0]);
        println!(
            "{name}: seal {seal:.0} ns, open {open:.0} ns, together {:.0} ns a sample (median of {ROUNDS}, least {:.0})",
            seal + open,
            s + o
        );
    }
}
