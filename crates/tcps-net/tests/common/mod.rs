//! Small networks, a driver, and the two checks that all statistical tests use.
#![allow(dead_code)] // every test binary uses its own part

pub mod random;

use tcps_core::{ids::VertexId, record::DropReason, seed::Stream, time::Time};
use tcps_net::{NetEvent, Network, Packet};
use tcps_plan::net::{LinkSpec, NetworkSpec, QueueSpec};

/// A link between two vertices.
pub fn link(name: &str, from: u16, to: u16, rate_bps: Option<f64>, delay_ns: Time) -> LinkSpec {
    LinkSpec {
        name: name.into(),
        from: VertexId(from),
        to: VertexId(to),
        rate_bps,
        delay_ns,
        ..LinkSpec::default()
    }
}

/// A network of these links.
pub fn network(links: Vec<LinkSpec>) -> NetworkSpec {
    let n = links.iter().map(|l| l.from.max(l.to)).max().map_or(0, VertexId::index) + 1;
    NetworkSpec { vertices: (0..n).map(|i| format!("v{i}")).collect(), links, ..NetworkSpec::default() }
}

/// One link of the given rate and queue.
pub fn one_link(rate_bps: f64, queue: QueueSpec) -> NetworkSpec {
    network(vec![LinkSpec { queue, ..link("l", 0, 1, Some(rate_bps), 0) }])
}

/// A packet for a vertex.
pub fn packet(n: u32, dst: u16, wire_bytes: u32, sent_ns: Time) -> Packet {
    let dst = VertexId(dst);
    Packet { payload: n, class: 0, index: n, dst, dscp: 0, ecn: Default::default(), wire_bytes, sent_ns }
}

/// Sends packets (in order of time, from vertex 0) and returns everything that happened, in order.
pub fn run(net: &mut Network, packets: impl IntoIterator<Item = Packet>, end: Time) -> Vec<NetEvent> {
    let mut events = Vec::new();
    for p in packets {
        call_until(net, p.sent_ns, &mut events);
        net.send(p.sent_ns, VertexId(0), p);
    }
    call_until(net, end, &mut events);
    events
}

/// Calls the network whenever it asks for it, up to `end`.
pub fn call_until(net: &mut Network, end: Time, events: &mut Vec<NetEvent>) {
    while let Some(at) = net.poll_timeout().filter(|&t| t <= end) {
        net.handle_timeout(at);
        events.extend(std::iter::from_fn(|| net.poll_event()));
    }
    net.handle_timeout(end);
    events.extend(std::iter::from_fn(|| net.poll_event()));
}

/// Arrivals as (packet, time).
pub fn arrivals(events: &[NetEvent]) -> Vec<(Packet, Time)> {
    let arrival = |e: &NetEvent| match e {
        NetEvent::Arrived { at, packet, .. } => Some((*packet, *at)),
        NetEvent::Dropped { .. } | NetEvent::Duplicated { .. } => None,
    };
    events.iter().filter_map(arrival).collect()
}

/// Drops as (packet, time, reason).
pub fn drops(events: &[NetEvent]) -> Vec<(Packet, Time, DropReason)> {
    let drop = |e: &NetEvent| match e {
        NetEvent::Dropped { at, packet, reason, .. } => Some((*packet, *at, *reason)),
        NetEvent::Arrived { .. } | NetEvent::Duplicated { .. } => None,
    };
    events.iter().filter_map(drop).collect()
}

/// A mean with the half-width of its 99.9 % interval from 30 batch means.
#[derive(Debug, Clone, Copy)]
pub struct Estimate {
    pub mean: f64,
    pub half_width: f64,
}

impl Estimate {
    pub fn of(values: &[f64]) -> Self {
        let size = values.len() / 30;
        let batches: Vec<f64> =
            values.chunks_exact(size).take(30).map(|b| b.iter().sum::<f64>() / size as f64).collect();
        let mean = batches.iter().sum::<f64>() / 30.0;
        let variance = batches.iter().map(|b| (b - mean) * (b - mean)).sum::<f64>() / 29.0;
        Self { mean, half_width: 3.66 * (variance / 30.0).sqrt() } // Student's t, 29 degrees of freedom
    }
}

/// A simulated mean agrees with theory if theory is within its interval, and the interval within 5 %.
pub fn check(simulated: Estimate, expected: f64) -> bool {
    simulated.half_width < 0.05 * expected.abs() && (simulated.mean - expected).abs() <= simulated.half_width
}

/// A deterministic value agrees with theory within a relative tolerance.
pub fn check_exact(simulated: f64, expected: f64, tolerance: f64) -> bool {
    (simulated - expected).abs() <= tolerance * expected.abs()
}

/// Uniform integers for generators of random networks.
pub fn between(s: &mut Stream, low: u64, high: u64) -> u64 {
    low + s.below(high - low + 1)
}
