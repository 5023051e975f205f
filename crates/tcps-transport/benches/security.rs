//! Processor time per sample that security adds, with 95 % intervals of the median.
//!
//! ```text
//! records      a payload is sealed at one side, verified and opened at the other
//! transports   a sample goes into an endpoint and comes out at the other side: with security less without, round by round
//! ```
//! The last line is all of it as JSON, for tools/security_cost.py.

use serde_json::{json, Value};
use std::{hint::black_box, time::Instant};
use tcps_core::{
    endpoint::{Ecn, Endpoint, Input, Output},
    ids::FlowId,
    param::Named,
    sample::Meta,
    time::{Time, MS},
};
use tcps_transport::{
    endpoint,
    security::{self, Association, Opened, Profile, Secret},
    ChannelContext, Side, TlsSecret,
};

/// Rounds are shorter than a time slice, so that a busy machine leaves most of them alone.
const RECORDS: u32 = 1_000;
const SAMPLES: u32 = 1_000;
const ROUNDS: usize = 501;
const SAMPLE_BYTES: usize = 64;
const RTP_HEADER: [u8; 12] = [0x80, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

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
fn records(method: &Named, bytes: usize) -> [f64; 2] {
    let [mut a, mut b] = pair(method);
    let media = method.kind == "srtp";
    let header: &[u8] = if media { &RTP_HEADER } else { &[] };
    let mut sample = [header, &vec![7; bytes]].concat();
    let mut payload = Vec::with_capacity(2048);
    let mut datagrams: Vec<Vec<u8>> = (0..RECORDS).map(|_| Vec::with_capacity(bytes + 96)).collect();
    let begin = Instant::now();
    for (sequence, datagram) in (0u16..).zip(&mut datagrams) {
        if media {
            sample[2..4].copy_from_slice(&sequence.to_be_bytes());
        }
        assert!(a.seal(1, black_box(&sample), datagram));
    }
    let sealed = begin.elapsed();
    let begin = Instant::now();
    for datagram in &datagrams {
        assert_eq!(b.open(1, black_box(datagram), &mut payload), Opened::Payload);
    }
    [sealed, begin.elapsed()].map(|t| t.as_nanos() as f64 / f64::from(RECORDS))
}

/// Both endpoints of a channel of a transport.
fn channel(transport: &str, params: &Value, method: Option<&Named>) -> [Box<dyn Endpoint>; 2] {
    let tls = method.filter(|named| security::is_inside(named)).map(|_| TlsSecret::Seeded);
    let flows = ChannelContext::of(&[(0, Side::B, "kinematic"), (1, Side::A, "haptic")]);
    let context = ChannelContext { tls, ..flows };
    [Side::A, Side::B].map(|side| {
        let inner = endpoint(transport, params, side, &context).expect("a transport");
        match method {
            Some(named) if tls.is_none() => {
                let secret = Secret::seeded(1, "bench", side);
                security::secured(inner, named, side, &context, secret).expect("a method")
            }
            _ => inner,
        }
    })
}

/// Takes datagrams across until nothing is left to do at `now`; samples that came out.
fn exchange(now: Time, sides: &mut [Box<dyn Endpoint>; 2], buffer: &mut Vec<u8>, delivered: &mut u32) {
    let mut idle = 0;
    for at in [0, 1].into_iter().cycle() {
        let (before, mut moved) = (sides[at].poll_timeout(), false);
        if before.is_some_and(|due| due <= now) {
            sides[at].handle_input(now, Input::Timeout);
        }
        while let Some(output) = sides[at].poll_output(buffer) {
            match output {
                Output::Transmit(_) => {
                    let input = Input::Datagram { bytes: buffer, received_ns: now, ecn: Ecn::NotCapable };
                    sides[1 - at].handle_input(now, input);
                    moved = true;
                }
                Output::Deliver(_) => *delivered += 1,
                Output::Record(_) => {}
            }
        }
        idle = if moved { 0 } else { idle + 1 };
        if idle == 2 {
            return;
        }
    }
}

/// Nanoseconds of both sides together for each sample of a round at 1 kHz in each direction.
#[allow(clippy::disallowed_methods)] // a benchmark measures
fn samples(transport: &str, params: &Value, method: Option<&Named>) -> f64 {
    let mut sides = channel(transport, params, method);
    let (mut buffer, mut delivered, mut now) = (Vec::new(), 0, 0);
    while now < 100 * MS {
        exchange(now, &mut sides, &mut buffer, &mut delivered); // the handshake
        now += MS;
    }
    let begin = Instant::now();
    for index in 0..SAMPLES {
        for (side, flow) in [(0, 0), (1, 1)] {
            let meta = Meta { flow: FlowId(flow), index, origin_ns: now, echo: None };
            sides[side].handle_input(now, Input::Sample { meta, bytes: black_box(&[7; SAMPLE_BYTES]) });
        }
        exchange(now, &mut sides, &mut buffer, &mut delivered);
        now += MS;
    }
    let took = begin.elapsed().as_nanos() as f64 / f64::from(2 * SAMPLES);
    assert!(delivered > 2 * SAMPLES - 100, "{transport}: {delivered} came");
    took
}

/// Median and the bounds of its 95 % interval, by order statistics.
fn median(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let (n, half) = (values.len() as f64, 0.98 * (values.len() as f64).sqrt());
    [n / 2.0, n / 2.0 - half, n / 2.0 + half].map(|rank| values[(rank as usize).min(values.len() - 1)])
}

fn main() {
    let ciphers = ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"];
    let sealed_by =
        |kind: &str, cipher: &str| (format!("{kind}, {cipher}"), Named::new(kind, json!({"cipher": cipher})));
    let aead = ciphers.map(|cipher| sealed_by("aead", cipher));
    let srtp = Profile::ALL.map(|profile| sealed_by("srtp", profile.name()));
    let hmac = [("hmac".to_owned(), Named::new("hmac", Value::Null))];
    let methods: Vec<_> = aead.into_iter().chain(hmac).chain(srtp).collect();
    let mut sealed = Vec::new();
    for bytes in [SAMPLE_BYTES, 1000] {
        let mut rounds = vec![Vec::new(); methods.len()];
        for _ in 0..ROUNDS {
            rounds.iter_mut().zip(&methods).for_each(|(all, (_, method))| all.push(records(method, bytes)));
        }
        for (all, (name, _)) in rounds.iter().zip(&methods) {
            let [seal, open] = [0, 1].map(|i| median(all.iter().map(|r| r[i]).collect()));
            let both = median(all.iter().map(|r| r[0] + r[1]).collect());
            println!(
                "{name}, {bytes} B: seal {:.0} ns, open {:.0} ns, together {both:.0?} ns",
                seal[0], open[0]
            );
            sealed.push(
                json!({"method": name, "bytes": bytes, "seal_ns": seal, "open_ns": open, "both_ns": both}),
            );
        }
    }
    let mut carried = Vec::new();
    let transports = [
        ("udp", Value::Null),
        ("repeat", Value::Null),
        ("parity", Value::Null),
        ("rtp", Value::Null),
        ("no-merge", Value::Null),
        ("fixed-k", json!({"k": 4})),
        ("dpm", Value::Null),
        ("tcp", Value::Null),
        ("quic", Value::Null),
    ];
    let named = ["hmac", "aead", "srtp", "tls"].map(|kind| Named::new(kind, Value::Null));
    let of = |transport: &str| {
        let methods = tcps_transport::methods(transport);
        named.iter().filter(move |named| methods.contains(&named.kind.as_str()))
    };
    let mut rounds = vec![Vec::new(); transports.len()];
    for _ in 0..ROUNDS {
        for (all, (transport, params)) in rounds.iter_mut().zip(&transports) {
            let bare = samples(transport, params, None);
            let mut round = vec![bare];
            round.extend(of(transport).map(|method| samples(transport, params, Some(method)) - bare));
            all.push(round);
        }
    }
    for (rounds, (transport, _)) in rounds.iter().zip(&transports) {
        let mut row = json!({"transport": transport});
        let names = std::iter::once("none").chain(of(transport).map(|named| named.kind.as_str()));
        for (i, method) in names.enumerate() {
            let added = median(rounds.iter().map(|r| r[i]).collect());
            println!("{transport}, {method}: {added:.0?} ns a sample{}", if i > 0 { " more" } else { "" });
            row[format!("{method}_ns")] = json!(added);
        }
        carried.push(row);
    }
    println!(
        "{}",
        json!({"rounds": ROUNDS, "sample_bytes": SAMPLE_BYTES, "records": sealed, "transports": carried})
    );
}
