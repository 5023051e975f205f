//! What always holds: packets and bytes are conserved, order is kept where promised, the same seed gives the same
//! run, and no specification or operation makes the network panic.

mod common;

use common::random::{discipline, flow_names, perform, perform_at_random, random_network, random_ops, Op};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use tcps_core::{
    ids::{LinkId, TrafficId, VertexId},
    param::Named,
    record::DropReason,
    seed::Stream,
    time::{Time, NEVER, SECOND},
};
use tcps_net::{
    own,
    packet::InFlight,
    queue::{self, is_timed, Flows},
    NetEvent, Network, Packet, MOST_USERS,
};
use tcps_plan::net::{LinkChange, LinkSpec, NetworkSpec, QueueSpec, TRAFFIC_BASE};

/// Long enough for everything that random operations have put into a network to leave it.
const DRAINED: Time = 600 * SECOND;

fn events_of(spec: &NetworkSpec, ops: &[(Time, Op)], seed: u64) -> (Network, Vec<NetEvent>) {
    let mut net = Network::new(spec, &flow_names(), seed).expect("a valid network");
    let mut events = perform(&mut net, ops, SECOND);
    TrafficId::each(&spec.traffic).for_each(|(t, _)| net.set_traffic(SECOND, t, false));
    events.extend(perform(&mut net, &[], DRAINED));
    (net, events)
}

/// Packets and bytes that enter and leave every vertex: what its links bring and what is sent there is delivered,
/// offered to a link, or has no route.
fn conserved_at_vertices(spec: &NetworkSpec, ops: &[(Time, Op)], net: &Network, events: &[NetEvent]) -> bool {
    let n = spec.vertices.len();
    let (mut inward, mut outward) = (vec![0u64; n], vec![0u64; n]);
    for (l, s) in spec.links.iter().zip(net.link_stats()) {
        assert_eq!((s.waiting_packets, s.waiting_bytes), (0, 0), "{} has not drained", s.name);
        inward[l.to] += s.packets + s.duplicated;
        outward[l.from] += s.offered_packets;
    }
    for (_, op) in ops {
        if let Op::Send { from, .. } = op {
            inward[*from] += 1;
        }
    }
    let mut without_route = 0;
    for e in events {
        match e {
            NetEvent::Arrived { packet, .. } => outward[packet.dst] += 1,
            NetEvent::Dropped { reason: DropReason::NoRoute, .. } => without_route += 1,
            NetEvent::Dropped { .. } | NetEvent::Duplicated { .. } => {}
        }
    }
    for (t, s) in spec.traffic.iter().zip(net.traffic_stats()) {
        inward[t.from] += s.packets;
        outward[t.to] += s.delivered_packets;
    }
    let (sum_in, sum_out): (u64, u64) = (inward.iter().sum(), outward.iter().sum());
    let on_links: u64 = net.link_stats().iter().map(|s| s.dropped_packets).sum();
    let lost_background: u64 = net.traffic_stats().iter().map(|t| t.dropped_packets).sum();
    let lost_own = events.iter().filter(|e| matches!(e, NetEvent::Dropped { .. })).count() as u64;
    let background_without_route = lost_background + lost_own - on_links - without_route;
    sum_in == sum_out + without_route + background_without_route
        && inward.iter().zip(&outward).all(|(i, o)| i >= o)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// In = out + dropped at every vertex of a drained network with every kind of link.
    #[test]
    fn packets_are_conserved(seed in any::<u64>()) {
        let mut s = Stream::new(seed, "conservation");
        let spec = random_network(&mut s, false);
        let ops = random_ops(&mut s, &spec, 400);
        let (net, events) = events_of(&spec, &ops, seed);
        prop_assert!(conserved_at_vertices(&spec, &ops, &net, &events));
        let duplicates: u64 = net.link_stats().iter().map(|l| l.duplicated).sum();
        let sent = ops.iter().filter(|o| matches!(o.1, Op::Send { .. })).count() as u64;
        if duplicates == 0 {
            prop_assert_eq!(events.len() as u64, sent, "each packet arrives or is dropped, once");
        }
        for t in net.traffic_stats() {
            prop_assert!(duplicates > 0 || t.packets == t.delivered_packets + t.dropped_packets);
        }
    }

    /// The same seed gives the same run, whenever the driver calls.
    #[test]
    fn the_same_seed_gives_the_same_run(seed in any::<u64>()) {
        let mut s = Stream::new(seed, "determinism");
        let spec = random_network(&mut s, false);
        let ops = random_ops(&mut s, &spec, 200);
        let (net, events) = events_of(&spec, &ops, 3);
        let mut other = Network::new(&spec, &flow_names(), 3).expect("a valid network");
        let mut told = perform_at_random(&mut other, &ops, SECOND, &mut s);
        TrafficId::each(&spec.traffic).for_each(|(t, _)| other.set_traffic(SECOND, t, false));
        told.extend(perform_at_random(&mut other, &[], DRAINED, &mut s));
        prop_assert_eq!(events, told);
        prop_assert_eq!(net.link_stats(), other.link_stats());
        prop_assert_eq!(net.traffic_stats(), other.traffic_stats());
    }

    /// Events come in order of time, and no packet of a flow overtakes another on a path that keeps the order.
    #[test]
    fn order_is_kept_where_promised(seed in any::<u64>()) {
        let mut s = Stream::new(seed, "order");
        let mut spec = random_network(&mut s, false);
        spec.links.iter_mut().filter_map(|l| l.jitter.as_mut()).for_each(|j| j.reorder = false);
        let mut ops = random_ops(&mut s, &spec, 300);
        ops.retain(|o| matches!(o.1, Op::Send { .. } | Op::Look { .. } | Op::Traffic { .. }));
        let (_, events) = events_of(&spec, &ops, seed);
        let sources: BTreeMap<u32, VertexId> = ops
            .iter()
            .filter_map(|(_, op)| match op {
                Op::Send { from, packet } => Some((packet.payload, *from)),
                _ => None,
            })
            .collect();
        let mut newest = BTreeMap::new();
        let mut last = 0;
        for e in &events {
            prop_assert!(e.at() >= last);
            last = e.at();
            let NetEvent::Arrived { packet: p, .. } = e else { continue };
            prop_assert!(e.at() >= p.sent_ns);
            let key = (sources[&p.payload], p.dst, p.class, p.dscp);
            let before = newest.insert(key, p.index);
            prop_assert!(before.is_none_or(|b| b <= p.index), "{} after {:?}", p.index, before);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// At every queue, packets and bytes in = out + dropped + waiting after every step; limits hold; the packets of a
    /// flow leave in order; `dequeue` gives nothing only when nothing waits.
    #[test]
    fn queues_conserve_packets_and_bytes(
        seed in any::<u64>(),
        (limit_bytes, limit_packets) in (prop::option::of(0u64..9000), prop::option::of(0u64..30)),
        steps in prop::collection::vec((any::<bool>(), 0u32..2000, 0u16..4, 0i64..3_000_000), 1..300),
    ) {
        let limits = QueueSpec { limit_bytes, limit_packets, discipline: discipline(&mut Stream::new(seed, "discipline")) };
        prop_assume!(!is_timed(&limits.discipline)); // has a limit per class, and nothing to give while gates are closed
        let per_flow = limits.discipline.kind == "round-robin";
        let link = LinkSpec { queue: limits, rate_bps: Some(8e6), ..LinkSpec::default() };
        let mut queue = queue::build(&link, &Flows::new(&flow_names(), vec![]), 1, &mut own::NoCode).expect("a valid queue");
        let (mut now, mut refused, mut newest) = (0, Vec::new(), [None; 4]);
        let (mut entered, mut left) = ((0u64, 0u64), (0u64, 0u64));
        for (n, (arrive, wire_bytes, class, step)) in (0u32..).zip(steps) {
            now += step;
            if arrive {
                let dscp = [46, 10, 0, 5][usize::from(class)];
                let packet = Packet { payload: n, class, index: n, dst: VertexId(1), dscp, ecn: Default::default(), wire_bytes, sent_ns: now };
                queue.enqueue(InFlight::new(packet, now), false, &mut refused);
                entered = (entered.0 + 1, entered.1 + u64::from(wire_bytes));
            } else if let Some(p) = queue.dequeue(now, &mut refused) {
                left = (left.0 + 1, left.1 + u64::from(p.packet.wire_bytes));
                let before = newest[usize::from(p.packet.class)].replace(p.packet.index);
                prop_assert!(before < Some(p.packet.index), "order within a flow");
            } else {
                prop_assert_eq!(queue.packets(), 0);
            }
            let bytes_dropped: u64 = refused.iter().map(|r| u64::from(r.0.wire_bytes)).sum();
            prop_assert_eq!(entered.0, left.0 + refused.len() as u64 + queue.packets());
            prop_assert_eq!(entered.1, left.1 + bytes_dropped + queue.bytes());
            if !per_flow {
                prop_assert!(limit_packets.is_none_or(|l| queue.packets() <= l));
                prop_assert!(limit_bytes.is_none_or(|l| queue.bytes() <= l));
            }
        }
    }

    /// Whatever moments, numbers and sizes a driver gives, and whatever changes it asks for, the network stands.
    #[test]
    fn no_operation_makes_it_panic(
        seed in any::<u64>(),
        ops in prop::collection::vec((any::<u8>(), -1_000i64..400_000_000, any::<u16>(), any::<u32>(), any::<f64>()), 0..120),
    ) {
        let spec = random_network(&mut Stream::new(seed, "panic"), false);
        let mut net = Network::new(&spec, &flow_names(), seed).expect("a valid network");
        for (kind, at, small, large, x) in ops {
            let packet = Packet { payload: large, class: small, index: large, dst: VertexId(small % 8), dscp: kind, ecn: Default::default(), wire_bytes: large % 70_000, sent_ns: at };
            match kind % 8 {
                0..=2 => drop(net.send(at, VertexId(small % 9), packet)),
                3 => net.handle_timeout(at),
                4 => {
                    let change = LinkChange {
                        rate_bps: (small % 2 == 0).then_some(x),
                        delay_ns: (small % 3 == 0).then_some(Time::from(large) - 1000),
                        loss: (small % 5 == 0).then_some(x % 2.0),
                        up: (small % 7 == 0).then_some(small % 2 == 0),
                        limit_packets: (small % 11 == 0).then_some(u64::from(large % 9)),
                        ..LinkChange::default()
                    };
                    let _ = net.change_link(at, LinkId(small % 16), &change);
                }
                5 => net.reroute(at),
                6 => net.set_traffic(at, TrafficId(small % 5), large % 2 == 0),
                _ => drop((net.queue(at, LinkId(small % 16)), net.link_stats(), net.traffic_stats(), net.route(VertexId(small % 9), VertexId(kind.into())))),
            }
            while net.poll_event().is_some() {}
        }
        prop_assert!(net.poll_timeout().is_none_or(|t| t < NEVER));
    }

    /// Whatever a specification says, it is refused with a message or gives a network.
    #[test]
    fn no_specification_makes_it_panic(seed in any::<u64>(), x in any::<f64>(), t in any::<i64>(), n in any::<u32>(), what in 0u8..22) {
        let mut spec = random_network(&mut Stream::new(seed, "specification"), false);
        spoil(&mut spec, what, x, t, n);
        match Network::new(&spec, &flow_names(), seed) {
            Ok(mut net) => {
                net.send(0, VertexId(0), Packet { payload: 0, class: 0, index: 0, dst: VertexId(1), dscp: 0, ecn: Default::default(), wire_bytes: n % 70_000, sent_ns: 0 });
                net.handle_timeout(SECOND / 10);
            }
            Err(e) => prop_assert!(e.to_string().contains("; "), "a message has a remedy: {}", e),
        }
    }
}

/// Puts a wild value somewhere.
fn spoil(spec: &mut NetworkSpec, what: u8, x: f64, t: Time, n: u32) {
    use tcps_plan::net::{DelaySpec, JitterSpec, Played, SlotSpec, TrafficModel};
    // What no model takes is refused before there is a specification.
    let jitter = |kind: &str, params, reorder| {
        tcps_core::dist::Dist::new(kind, params)
            .ok()
            .map(|delay| JitterSpec { delay: DelaySpec::Model(delay), reorder })
    };
    let l = &mut spec.links[0];
    match what {
        0 => l.rate_bps = Some(x),
        1 => l.delay_ns = t,
        2 => l.loss = Some(Named::new("random", json!({"p": x}))),
        3 => {
            l.loss =
                Some(Named::new("gilbert-elliott", json!({"p": x, "r": x, "loss_good": x, "loss_bad": x})))
        }
        4 => l.duplicate = x,
        5 => l.outages = vec![(t, 0), (t.wrapping_mul(3), t)],
        6 => l.opportunities_ns = Some(vec![0, t]),
        7 => {
            l.queue.discipline =
                Named::new("red", json!({"min_bytes": n, "max_bytes": t, "max_p": x, "weight": x}))
        }
        8 => l.queue.discipline = Named::new("codel", json!({"target_ns": t, "interval_ns": x})),
        9 => {
            let params = json!({"target_ns": 1, "interval_ns": t, "quantum_bytes": n % 9, "flows": n});
            l.queue.discipline = Named::new("fq-codel", params);
        }
        10 => {
            let classes = vec![vec![n as u8]; (n % 90) as usize];
            l.queue.discipline = Named::new("priority", json!({"classes": classes}));
        }
        11 => {
            let params = json!({"quantum_bytes": n, "flow_limits": {"nobody": 1}});
            l.queue.discipline = Named::new("round-robin", params);
        }
        12 => l.jitter = jitter("uniform", json!({"low_ns": t, "high_ns": -(t / 2)}), true),
        13 => l.jitter = jitter("pareto", json!({"scale_ns": t, "shape": x}), n.is_multiple_of(2)),
        14 => l.to = VertexId(n as u16),
        15 => l.queue.limit_bytes = Some(t as u64),
        16 => spec.vertices.clear(),
        20 => l.slots = Some(SlotSpec { cycle_ns: t, open: vec![(0, t / 2), (Time::from(n), t)] }),
        21 => {
            let params = json!({"classes": [[46], []], "gates": [[t, [0]], [n, [n % 3]]]});
            l.queue.discipline = Named::new("gates", params);
        }
        _ => {
            let Some(entry) = spec.traffic.first_mut() else { return };
            entry.start_ns = t;
            entry.model = match what {
                17 => TrafficModel::source("cbr", json!({"rate_bps": x % 1e8, "packet_bytes": n % 70_000})),
                18 => {
                    TrafficModel::source("vbr", json!({"rate_bps": x % 1e8, "spread": x, "piecewise_ns": t}))
                }
                _ => {
                    spec.recordings = vec![vec![(t, n), (0, n)].into()];
                    TrafficModel::Played(Played::Replay { recording: n as u16 % 2, loop_ns: Some(t) })
                }
            };
        }
    }
}

/// A network has at most 32767 vertices, links and traffic entries: their numbers share 16 bits with classes of packets.
#[test]
fn a_network_with_too_many_parts_is_refused() {
    let most = usize::from(TRAFFIC_BASE);
    let mut s = Stream::new(1, "parts");
    let mut spec = random_network(&mut s, true);
    while spec.traffic.is_empty() {
        spec = random_network(&mut s, true);
    }
    let (vertex, link, entry) = (spec.vertices[0].clone(), spec.links[0].clone(), spec.traffic[0].clone());
    for (key, wide) in [
        ("vertices", NetworkSpec { vertices: vec![vertex; most], ..spec.clone() }),
        ("links", NetworkSpec { links: vec![link; most], ..spec.clone() }),
        ("traffic", NetworkSpec { traffic: vec![entry; most], ..spec.clone() }),
    ] {
        let refused = Network::new(&wide, &flow_names(), 1).map(drop).expect_err(key).to_string();
        assert!(refused.contains(key) && refused.contains("fewer than 32768"), "{key}: {refused}");
    }
}

/// A parameter that is refused is named by its whole key.
#[test]
fn a_refused_parameter_is_named() {
    let mut s = Stream::new(1, "parameter");
    let link = LinkSpec { name: "l".into(), ..random_network(&mut s, true).links[0].clone() };
    let loss = Some(Named::new("random", json!({"p": 2})));
    let queue =
        QueueSpec { discipline: Named::new("codel", json!({"target_ns": -1})), ..QueueSpec::default() };
    for (key, link) in [
        ("links.l.loss.p: ", LinkSpec { loss, ..link.clone() }),
        ("links.l.queue.target_ns: ", LinkSpec { queue, ..link.clone() }),
        ("links.l.delay_ns: ", LinkSpec { delay_ns: -1, ..link }),
    ] {
        let spec =
            NetworkSpec { links: vec![link], ..random_network(&mut Stream::new(1, "parameter"), true) };
        let refused = Network::new(&spec, &flow_names(), 1).map(drop).expect_err(key).to_string();
        assert!(refused.starts_with(key), "{refused}");
    }
}

/// Users are refused outside the ranges that their keys have, and taken at both ends of them.
#[test]
fn users_have_ranges() {
    let users = |key: &str, value: f64, transport: &str| {
        let constant = |value: f64| json!({"kind": "constant", "value": value});
        let pages = json!({
            "request": constant(1.0), "main": constant(1.0), "embedded": constant(1.0),
            "object": constant(1.0), "parse": constant(1.0), "think": constant(1.0),
        });
        let mut spec = json!({
            "users": 1, "pages": pages, "drive": {"link": 0, "utilisation": 0.5}, "transport": transport,
            "congestion": "reno", "mtu_bytes": 1500, "buffer_bytes": 4096,
        });
        match key {
            "utilisation" => spec["drive"][key] = value.into(),
            _ => spec[key] = (value as u32).into(),
        }
        tcps_net::check_users(&serde_json::from_value(spec).expect("users"))
    };
    for (key, transport, refused, taken) in [
        ("users", "tcp", [0.0, f64::from(MOST_USERS) + 1.0], [1.0, f64::from(MOST_USERS)]),
        ("mtu_bytes", "tcp", [299.0, 65_508.0], [300.0, 65_507.0]),
        ("mtu_bytes", "quic", [1_227.0, 65_508.0], [1_228.0, 65_507.0]),
        ("buffer_bytes", "tcp", [4_095.0, 100_000_001.0], [4_096.0, 100_000_000.0]),
        ("utilisation", "tcp", [0.0, 1.001], [0.001, 1.0]),
    ] {
        for value in refused {
            let fault = users(key, value, transport).expect_err(key);
            assert_eq!(fault.key, key, "{value} {transport}");
        }
        for value in taken {
            assert!(users(key, value, transport).is_ok(), "{key} {value} {transport}");
        }
    }
}
