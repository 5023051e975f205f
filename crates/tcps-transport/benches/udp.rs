//! Time per sample of 64 B in the plain `udp` transport: `handle_input` and every `poll_output` after it.
//!
//! ```text
//! sample ──► sender ──► datagram ──► receiver ──► sample
//!           └ timed ┘              └── timed ──┘
//! ```

use serde_json::Value;
use std::{hint::black_box, time::Instant};
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::FlowId,
    sample::Meta,
};
use tcps_transport::{endpoint, ChannelContext, Side};

/// Rounds are shorter than a time slice, so that a busy machine leaves most of them alone.
const SAMPLES: u32 = 10_000;
const ROUNDS: usize = 501;

fn side(side: Side) -> Box<dyn Endpoint> {
    let ctx = ChannelContext::of(&[(1, Side::B, "kinematic")]);
    endpoint("udp", &Value::Null, side, &ctx).expect("the transport is known")
}

fn drain(endpoint: &mut dyn Endpoint, buf: &mut Vec<u8>) {
    while let Some(output) = endpoint.poll_output(buf) {
        black_box((&output, &buf));
    }
}

/// Nanoseconds for each sample at the sender.
#[allow(clippy::disallowed_methods)] // a benchmark measures
fn sender() -> f64 {
    let (mut a, mut buf, sample) = (side(Side::A), Vec::new(), [7u8; 64]);
    let begin = Instant::now();
    for index in 0..SAMPLES {
        let meta = Meta { flow: FlowId(1), index, origin_ns: i64::from(index), echo: None };
        a.handle_input(meta.origin_ns, Input::Sample { meta, bytes: black_box(&sample) });
        drain(a.as_mut(), &mut buf);
    }
    begin.elapsed().as_nanos() as f64 / f64::from(SAMPLES)
}

/// Nanoseconds for each datagram at the receiver.
#[allow(clippy::disallowed_methods)] // a benchmark measures
fn receiver() -> f64 {
    let (mut a, mut b, mut buf) = (side(Side::A), side(Side::B), Vec::new());
    let meta = Meta { flow: FlowId(1), index: 0, origin_ns: 0, echo: None };
    a.handle_input(0, Input::Sample { meta, bytes: &[7; 64] });
    assert!(matches!(a.poll_output(&mut buf), Some(Output::Transmit(_))));
    let mut datagram = buf.clone();
    let begin = Instant::now();
    for index in 0..SAMPLES {
        datagram[4..8].copy_from_slice(&index.to_be_bytes());
        let received_ns = i64::from(index);
        b.handle_input(received_ns, Input::datagram(black_box(&datagram), received_ns));
        drain(b.as_mut(), &mut buf);
    }
    begin.elapsed().as_nanos() as f64 / f64::from(SAMPLES)
}

fn main() {
    for (name, run) in [("sender", sender as fn() -> f64), ("receiver", receiver)] {
        let mut ns: Vec<f64> = (0..ROUNDS).map(|_| run()).collect();
        ns.sort_by(f64::total_cmp);
        println!("udp {name}: {:.1} ns a sample (median of {ROUNDS}, least {:.1})", ns[ROUNDS / 2], ns[0]);
    }
}
