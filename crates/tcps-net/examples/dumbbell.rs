//! Speed of the dumbbell, and its delays: `cargo run --release -p tcps-net --example dumbbell [SECONDS]`.
//!
//! ```text
//! op --5 ms--> n1 ==1.5 Mbit/s, 5 ms, 15000 B==> n2 --5 ms--> top      forward; the same backward
//!               ^ CBR, VBR: 50 B every ms each
//! ```
// [Gokhale 2017: dumbbell]

use serde_json::json;
use std::time::Instant;
use tcps_core::{
    ids::{LinkId, VertexId},
    time::{Time, MS, SECOND},
};
use tcps_net::{NetEvent, Network, Packet};
use tcps_plan::net::{LinkSpec, NetworkSpec, QueueSpec, TrafficModel, TrafficSpec};

const OP: VertexId = VertexId(0);
const N1: VertexId = VertexId(1);
const N2: VertexId = VertexId(2);
const TOP: VertexId = VertexId(3);

fn link(name: &str, from: VertexId, to: VertexId, rate_bps: Option<f64>) -> LinkSpec {
    let limit_bytes = rate_bps.map(|_| 15_000);
    LinkSpec {
        name: name.into(),
        from,
        to,
        rate_bps,
        delay_ns: 5 * MS,
        queue: QueueSpec { limit_bytes, ..QueueSpec::default() },
        ..LinkSpec::default()
    }
}

fn traffic(name: &str, from: VertexId, to: VertexId) -> TrafficSpec {
    let model = TrafficModel::source("cbr", json!({"rate_bps": 400e3, "packet_bytes": 50}));
    TrafficSpec { name: name.into(), from, to, start_ns: 0, stop_ns: None, dscp: 0, model }
}

fn dumbbell() -> NetworkSpec {
    let mut links = Vec::new();
    for (name, hops) in [("forward", [OP, N1, N2, TOP]), ("backward", [TOP, N2, N1, OP])] {
        for (part, i, rate) in [("access", 0, None), ("bottleneck", 1, Some(1.5e6)), ("egress", 2, None)] {
            links.push(link(&format!("{part}.{name}"), hops[i], hops[i + 1], rate));
        }
    }
    let traffic = vec![
        traffic("cbr.forward", N1, N2),
        traffic("vbr.forward", N1, N2),
        traffic("cbr.backward", N2, N1),
        traffic("vbr.backward", N2, N1),
    ];
    let vertices = ["op", "n1", "n2", "top"].map(String::from).to_vec();
    NetworkSpec { vertices, links, traffic, ..NetworkSpec::default() }
}

/// A packet each way every millisecond; returns (packets that arrived, sum of their delays).
fn run(net: &mut Network, end: Time) -> (u64, Time) {
    let (mut arrived, mut delay, mut n, mut next) = (0, 0, 0, 0);
    while next < end {
        let due = net.poll_timeout().unwrap_or(Time::MAX);
        if due <= next {
            net.handle_timeout(due);
        } else {
            for (from, dst, wire_bytes) in [(OP, TOP, 87), (TOP, OP, 87)] {
                let packet = Packet {
                    payload: n,
                    class: from.0,
                    index: n,
                    dst,
                    dscp: 0,
                    ecn: Default::default(),
                    wire_bytes,
                    sent_ns: next,
                };
                net.send(next, from, packet);
            }
            n += 1;
            next += MS;
        }
        while let Some(event) = net.poll_event() {
            if let NetEvent::Arrived { at, packet, .. } = event {
                arrived += 1;
                delay += at - packet.sent_ns;
            }
        }
    }
    net.handle_timeout(end);
    (arrived, delay)
}

#[allow(clippy::disallowed_methods)] // it measures its own speed
fn main() {
    let seconds: Time = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(500);
    for served in [false, true] {
        let Ok(mut net) = Network::new(&dumbbell(), &[], 1) else { return };
        if served {
            for l in 0..6 {
                let same = tcps_plan::net::LinkChange { up: Some(true), ..Default::default() };
                net.change_link(0, LinkId(l), &same).unwrap_or_default();
            }
        }
        let clock = Instant::now();
        let (arrived, delay) = run(&mut net, seconds * SECOND);
        let took = clock.elapsed().as_secs_f64();
        let sent: u64 =
            net.traffic_stats().iter().map(|t| t.packets).sum::<u64>() + 2 * seconds as u64 * 1000;
        println!(
            "{}: {sent} packets in {took:.3} s, {:.1} M/s; mean delay {:.3} ms, {arrived} arrived",
            if served { "one by one" } else { "ahead" },
            sent as f64 / took / 1e6,
            delay as f64 / arrived.max(1) as f64 / 1e6,
        );
    }
}
