//! Time per packet of a telehaptic endpoint pair without merging, and per decision of each rate controller.
//!
//! ```text
//! sample ──► sender ──► packet ──► receiver ──► sample      feedback ──► controller ──► k
//!           └────────── timed ──────────────┘               └──────── by difference ────┘
//! ```
//! The decision is timed inside the endpoint: a packet whose header brings a new delay against one that repeats it.

use serde_json::Value;
use std::{hint::black_box, time::Instant};
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::FlowId,
    sample::Meta,
    time::{Time, MS},
};
use tcps_transport::{endpoint, ChannelContext, Side};

/// Rounds are shorter than a time slice, so that a busy machine leaves most of them alone.
const PACKETS: u32 = 5_000;
const ROUNDS: usize = 401;
const ON_THEIR_WAY: u32 = 50;

fn side(name: &str, side: Side) -> Box<dyn Endpoint> {
    let ctx = ChannelContext::of(&[(1, Side::B, "haptic"), (2, Side::A, "kinematic")]);
    endpoint(name, &Value::Null, side, &ctx).expect("the transport is known")
}

fn send(from: &mut dyn Endpoint, flow: u16, index: u32, buf: &mut Vec<u8>) {
    let now = Time::from(index) * MS;
    let meta = Meta { flow: FlowId(flow), index, origin_ns: now, echo: None };
    from.handle_input(now, Input::Sample { meta, bytes: black_box(&[7; 24]) });
    while let Some(output) = from.poll_output(buf) {
        if matches!(output, Output::Transmit(_)) {
            return;
        }
    }
}

fn take(to: &mut dyn Endpoint, now: Time, datagram: &[u8], buf: &mut Vec<u8>) {
    to.handle_input(now, Input::datagram(black_box(datagram), now));
    while let Some(output) = to.poll_output(buf) {
        black_box((&output, &buf));
    }
}

/// Nanoseconds for each packet through a pair.
#[allow(clippy::disallowed_methods)] // a benchmark measures
fn through_a_pair() -> f64 {
    let (mut a, mut b) = (side("no-merge", Side::A), side("no-merge", Side::B));
    let (mut datagram, mut buf) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    for index in 0..PACKETS {
        send(a.as_mut(), 1, index, &mut datagram);
        take(b.as_mut(), Time::from(index) * MS + 15 * MS, &datagram, &mut buf);
    }
    begin.elapsed().as_nanos() as f64 / f64::from(PACKETS)
}

/// Nanoseconds for each packet with a new delay in its header, at the endpoint that the delay is for; so many are on their way
/// that all of them are still remembered.
#[allow(clippy::disallowed_methods)] // a benchmark measures
fn with_news(name: &str) -> f64 {
    let (mut a, mut b) = (side(name, Side::A), side("no-merge", Side::B));
    let (mut there, mut back, mut buf) = (Vec::new(), Vec::new(), Vec::new());
    let mut nanoseconds = 0;
    for flight in 0..PACKETS / ON_THEIR_WAY {
        let indices = flight * ON_THEIR_WAY..(flight + 1) * ON_THEIR_WAY;
        let mut datagrams = Vec::new();
        for index in indices.clone() {
            send(a.as_mut(), 1, index, &mut there);
            let noise = Time::from(index * 7919 % 13) * 50_000;
            take(b.as_mut(), Time::from(index) * MS + 15 * MS + noise, &there, &mut buf);
            send(b.as_mut(), 2, index, &mut back);
            datagrams.push(back.clone());
        }
        let begin = Instant::now();
        for (index, datagram) in indices.zip(&datagrams) {
            take(a.as_mut(), Time::from(index) * MS + 30 * MS, datagram, &mut buf);
        }
        nanoseconds += begin.elapsed().as_nanos();
    }
    nanoseconds as f64 / f64::from(PACKETS)
}

/// Nanoseconds for each answer to a probe; without a name those of the empty loop.
#[allow(clippy::disallowed_methods)] // a benchmark measures
fn with_probes(name: Option<&str>) -> f64 {
    let mut a = side(name.unwrap_or("no-merge"), Side::A);
    let mut buf = Vec::new();
    send(a.as_mut(), 1, 0, &mut buf);
    let answer = |index: u32| {
        let left_us = index * 10_000;
        [&[0xc1, 0][..], &(index as u16).to_be_bytes(), &left_us.to_be_bytes()].concat()
    };
    let answers: Vec<Vec<u8>> = (0..PACKETS).map(answer).collect();
    let begin = Instant::now();
    for (index, datagram) in (0i64..).zip(&answers) {
        let noise = index * 7919 % 13 * 50_000;
        if name.is_some() {
            take(a.as_mut(), index * 10 * MS + 30 * MS + noise, datagram, &mut buf);
        }
    }
    begin.elapsed().as_nanos() as f64 / f64::from(PACKETS)
}

/// Nanoseconds for each packet that feedback tells of, at the endpoint that sent it.
#[allow(clippy::disallowed_methods)] // a benchmark measures
fn with_arrivals(name: &str) -> f64 {
    let (mut a, mut b) = (side(name, Side::A), side(name, Side::B));
    let (mut there, mut buf) = (Vec::new(), Vec::new());
    let mut feedback: Vec<(Time, Vec<u8>)> = Vec::new();
    let mut nanoseconds = 0;
    for index in 0..PACKETS {
        let now = Time::from(index) * MS;
        send(a.as_mut(), 1, index, &mut there);
        take(b.as_mut(), now + 15 * MS, &there, &mut buf);
        b.handle_input(now + 15 * MS, Input::Timeout);
        while let Some(output) = b.poll_output(&mut buf) {
            if matches!(output, Output::Transmit(_)) {
                feedback.push((now + 30 * MS, buf.clone()));
            }
        }
        let begin = Instant::now();
        if let Some((at, datagram)) = feedback.pop() {
            take(a.as_mut(), at, &datagram, &mut buf);
            nanoseconds += begin.elapsed().as_nanos();
        }
    }
    nanoseconds as f64 / f64::from(PACKETS)
}

/// Median and least of many rounds.
fn rounds(run: impl Fn() -> f64) -> (f64, f64) {
    let mut ns: Vec<f64> = (0..ROUNDS).map(|_| run()).collect();
    ns.sort_by(f64::total_cmp);
    (ns[ROUNDS / 2], ns[0])
}

fn main() {
    let (median, least) = rounds(through_a_pair);
    let rate = 1e3 / median;
    println!("telehaptic pair: {median:.1} ns a packet (median of {ROUNDS}, least {least:.1}), {rate:.2} M packets/s");
    for name in ["dpm", "dpm-holdup", "dpm-g", "dpm-q", "napas", "etp"] {
        // In turns, so that what the machine does besides takes from both.
        let (median, _) = rounds(|| with_news(name) - with_news("no-merge"));
        println!("telehaptic {name}: a decision takes {median:.1} ns");
    }
    let (deaf, _) = rounds(|| with_probes(None));
    let (median, _) = rounds(|| with_probes(Some("nafcah")));
    println!("telehaptic nafcah: an answer to a probe takes {:.1} ns, reading included", median - deaf);
    for name in ["scream", "gcc"] {
        let (median, _) = rounds(|| with_arrivals(name));
        println!(
            "telehaptic {name}: {median:.1} ns a packet that is told of, reading of the feedback included"
        );
    }
}
