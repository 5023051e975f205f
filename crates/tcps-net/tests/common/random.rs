//! Random networks and random operations on them.

use super::{between, link, network, packet};
use serde_json::{json, Value};
use tcps_core::{
    dist::Dist,
    ids::{LinkId, TrafficId, VertexId},
    param::{Named, Unit},
    seed::Stream,
    time::{Time, MS},
};
use tcps_net::{
    queue::{is_timed, QUEUES},
    traffic::SOURCES,
    NetEvent, Network, Packet,
};
use tcps_plan::net::{
    DelaySpec, JitterSpec, LinkChange, LinkSpec, NetworkSpec, Played, QueueSpec, Routing, SlotSpec,
    TrafficModel, TrafficSpec, TRAFFIC_BASE,
};

/// Names of the flows in random networks.
pub fn flow_names() -> Vec<String> {
    ["kinematic", "haptic", "video"].map(String::from).to_vec()
}

/// Parameters of disciplines that must be given, and such that make more happen in a small network.
fn some_params(kind: &str, s: &mut Stream) -> Value {
    let (target_ns, interval_ns, quantum_bytes) = (5 * MS, 50 * MS, between(s, 50, 1514));
    let classes = json!([[46], [10, 34], []]);
    match kind {
        "priority" => json!({"classes": classes}),
        "gates" => {
            let mut span = |classes: &[u8]| json!([between(s, 1, 9_000_000), classes]);
            json!({"classes": classes, "gates": [span(&[0]), span(&[]), span(&[1, 2]), span(&[0, 2])]})
        }
        "round-robin" => {
            json!({"quantum_bytes": quantum_bytes, "flow_limits": {"kinematic": between(s, 0, 9)}})
        }
        "red" => json!({"min_bytes": 500, "max_bytes": 3000, "max_p": 0.2, "weight": 0.2}),
        "codel" => json!({"target_ns": target_ns, "interval_ns": interval_ns}),
        "fq-codel" => json!({
            "target_ns": target_ns, "interval_ns": interval_ns,
            "quantum_bytes": quantum_bytes, "flows": between(s, 1, 8),
        }),
        _ => Value::Null,
    }
}

/// Any discipline that there is.
pub fn discipline(s: &mut Stream) -> Named {
    let kind = QUEUES[s.below(QUEUES.len() as u64) as usize].name;
    Named::new(kind, some_params(kind, s))
}

fn disturb(s: &mut Stream, l: &mut LinkSpec) {
    l.queue.discipline = discipline(s);
    let opens = is_timed(&l.queue.discipline);
    match s.below(if opens { 6 } else { 9 }) {
        0 => l.loss = Some(Named::new("random", json!({"p": 0.1}))),
        1 => {
            l.loss = Some(Named::new(
                "gilbert-elliott",
                json!({"p": 0.1, "r": 0.3, "loss_good": 0.0, "loss_bad": 0.9}),
            ))
        }
        2 => l.jitter = Some(random_jitter(s)),
        3 => l.duplicate = 0.2,
        4 => l.corrupt = 0.2,
        5 => l.outages = vec![(20 * MS, 40 * MS), (100 * MS, 101 * MS)],
        6 => l.medium = Some(format!("hub{}", s.below(2))),
        7 => l.slots = Some(SlotSpec { cycle_ns: 20 * MS, open: vec![(MS, 3 * MS), (7 * MS, 19 * MS)] }),
        _ => {
            let mut at = 0;
            let mut step = || {
                at += between(s, 0, 5_000_000) as Time;
                at
            };
            l.opportunities_ns = Some((0..20).map(|_| step()).chain([200 * MS]).collect());
            l.rate_bps = None;
        }
    }
}

/// A plain link: infinitely fast, or first in first out at a rate, perhaps with limits.
fn plain_link(s: &mut Stream, i: usize, vertices: u64) -> LinkSpec {
    let from = s.below(vertices) as u16;
    let to = (u64::from(from) + between(s, 1, vertices - 1)) % vertices;
    let rate = s.chance(0.6).then(|| s.uniform(2e5, 2e7));
    let mut l = link(&format!("l{i}"), from, to as u16, rate, between(s, 0, 9_000_000) as Time);
    l.queue = QueueSpec {
        limit_bytes: s.chance(0.5).then(|| between(s, 0, 20_000)),
        limit_packets: s.chance(0.3).then(|| between(s, 0, 30)),
        ..QueueSpec::default()
    };
    l.dscp = s.chance(0.1).then_some(46);
    l
}

fn any_vertex(s: &mut Stream, vertices: u64) -> VertexId {
    VertexId(s.below(vertices) as u16)
}

fn traffic(s: &mut Stream, i: usize, vertices: u64) -> TrafficSpec {
    let packet_bytes = between(s, 1, 1500) as u32;
    let rate_bps = s.uniform(0.0, 3e6);
    let size = json!({"packet_bytes": packet_bytes});
    let model = match s.below(SOURCES.len() as u64 + 2) as usize {
        0 => TrafficModel::Played(Played::Replay { recording: 1, loop_ns: Some(7 * MS + 1) }),
        1 => TrafficModel::Played(Played::Frames {
            recording: 0,
            loop_ns: Some(9 * MS),
            packet_bytes: 78 + packet_bytes,
            overhead_bytes: 78,
        }),
        n => {
            let entry = SOURCES[n - 2];
            let mut params = if entry.params().any(|p| p.key == "packet_bytes") { size } else { json!({}) };
            for param in entry.params() {
                match param.unit {
                    Unit::Bps => params[param.key] = rate_bps.into(),
                    Unit::Choice(names) => {
                        params[param.key] = names[s.below(names.len() as u64) as usize].into()
                    }
                    _ => {}
                }
            }
            TrafficModel::source(entry.name, params)
        }
    };
    TrafficSpec {
        name: format!("t{i}.forward"),
        from: any_vertex(s, vertices),
        to: any_vertex(s, vertices),
        start_ns: between(s, 0, 50_000_000) as Time,
        stop_ns: s.chance(0.5).then_some(150 * MS),
        dscp: [0, 10, 34, 46][s.below(4) as usize],
        model,
    }
}

/// A random network; with `plain`, only of links whose times are known ahead.
pub fn random_network(s: &mut Stream, plain: bool) -> NetworkSpec {
    let vertices = between(s, 2, 6);
    let mut links: Vec<_> = (0..between(s, 1, 14) as usize).map(|i| plain_link(s, i, vertices)).collect();
    if !plain {
        links.iter_mut().for_each(|l| {
            if s.chance(0.6) {
                disturb(s, l);
            }
        });
    }
    let mut spec = network(links);
    spec.vertices = (0..vertices).map(|i| format!("v{i}")).collect();
    spec.recordings = vec![
        vec![(0, 4000), (3 * MS, 0), (4 * MS, 900)].into(),
        vec![(0, 40), (3 * MS, 1500), (3 * MS, 9)].into(),
    ];
    spec.routing = [Routing::Hops, Routing::Delay, Routing::Load][s.below(3) as usize];
    spec.traffic = (0..s.below(4) as usize).map(|i| traffic(s, i, vertices)).collect();
    spec
}

/// Something that a driver may do at a moment.
#[derive(Debug, Clone)]
pub enum Op {
    Send { from: VertexId, packet: Packet },
    Change { link: LinkId, change: LinkChange },
    Reroute,
    Traffic { entry: TrafficId, running: bool },
    Look { link: LinkId },
}

/// Random operations at increasing moments within 200 ms; mostly sends.
pub fn random_ops(s: &mut Stream, spec: &NetworkSpec, count: u32) -> Vec<(Time, Op)> {
    let (vertices, links) = (spec.vertices.len() as u64, spec.links.len() as u64);
    let mut at = 0;
    let mut op = |n| {
        at += between(s, 0, 2 * 200_000_000 / u64::from(count)) as Time;
        let link = LinkId(s.below(links) as u16);
        let op = match s.below(100) {
            0..=93 => Op::Send { from: any_vertex(s, vertices), packet: random_packet(s, n, vertices, at) },
            94..=95 => Op::Change { link, change: random_change(s) },
            96 => Op::Reroute,
            97 => Op::Traffic { entry: TrafficId(s.below(4) as u16), running: s.chance(0.5) },
            _ => Op::Look { link },
        };
        (at, op)
    };
    (0..count).map(&mut op).collect()
}

fn random_packet(s: &mut Stream, n: u32, vertices: u64, at: Time) -> Packet {
    let class = [0, 1, 2, 7, TRAFFIC_BASE + 9][s.below(5) as usize];
    let dscp = [0, 10, 34, 46][s.below(4) as usize];
    Packet { class, dscp, ..packet(n, s.below(vertices) as u16, between(s, 1, 3000) as u32, at) }
}

fn random_jitter(s: &mut Stream) -> JitterSpec {
    let delay = Dist::new("uniform", json!({"low_ns": 0, "high_ns": 20 * MS})).expect("a delay");
    JitterSpec { delay: DelaySpec::Model(delay), reorder: s.chance(0.5) }
}

fn random_change(s: &mut Stream) -> LinkChange {
    LinkChange {
        rate_bps: s.chance(0.4).then(|| s.uniform(2e5, 2e7)),
        delay_ns: s.chance(0.4).then(|| between(s, 0, 9_000_000) as Time),
        loss: s.chance(0.2).then(|| s.unit()),
        up: s.chance(0.4).then(|| s.chance(0.7)),
        jitter: s.chance(0.1).then(|| random_jitter(s)),
        limit_packets: s.chance(0.2).then(|| s.below(20)),
        ..LinkChange::default()
    }
}

/// Does the operations, calling the network at random moments: before anything is due, or long after.
pub fn perform_at_random(net: &mut Network, ops: &[(Time, Op)], end: Time, s: &mut Stream) -> Vec<NetEvent> {
    let (mut events, mut last) = (Vec::new(), 0);
    for (at, op) in ops {
        for _ in 0..s.below(4) {
            // A call at the moment of an operation is work before it, which is another run.
            last += s.below((at - last).max(1) as u64) as Time;
            if last < *at {
                net.handle_timeout(last);
            }
            if s.chance(0.5) {
                events.extend(std::iter::from_fn(|| net.poll_event()));
            }
        }
        act(net, *at, op);
        last = *at;
    }
    net.handle_timeout(last + s.below((end - last) as u64) as Time);
    net.handle_timeout(end);
    events.extend(std::iter::from_fn(|| net.poll_event()));
    events
}

fn act(net: &mut Network, at: Time, op: &Op) {
    match op {
        Op::Send { from, packet } => drop(net.send(at, *from, *packet)),
        Op::Change { link, change } => drop(net.change_link(at, *link, change)),
        Op::Reroute => net.reroute(at),
        Op::Traffic { entry, running } => net.set_traffic(at, *entry, *running),
        Op::Look { link } => drop(net.queue(at, *link)),
    }
}

/// Does the operations, calling the network when it asks for it, and everything in it up to `end`.
pub fn perform(net: &mut Network, ops: &[(Time, Op)], end: Time) -> Vec<NetEvent> {
    let mut events = Vec::new();
    for (at, op) in ops {
        super::call_until(net, at - 1, &mut events);
        act(net, *at, op);
        events.extend(std::iter::from_fn(|| net.poll_event()));
    }
    super::call_until(net, end, &mut events);
    events
}
