//! First in, first out: exact times, the byte-exact limit, and the drain slopes of the dumbbell.

mod common;

use common::{arrivals, check_exact, drops, link, network, one_link, packet, run};
use serde_json::json;
use tcps_core::{
    ids::{FlowId, LinkId, VertexId},
    record::DropReason,
    split::Choice,
    time::{Time, MS, SECOND},
};
use tcps_net::{NetEvent, Network, Packet};
use tcps_plan::net::{
    Hop, LinkChange, LinkSpec, QueueSpec, QueueState, TrafficModel, TrafficSpec, TrafficStats, TRAFFIC_BASE,
};

fn limited(limit_bytes: Option<u64>, limit_packets: Option<u64>) -> Network {
    let queue = QueueSpec { limit_bytes, limit_packets, ..QueueSpec::default() };
    Network::new(&one_link(8e6, queue), &[], 1).expect("a valid network") // 1000 bytes take 1 ms
}

/// A packet that would make the waiting bytes exceed the limit is dropped whole; one that just fills it is taken; the
/// one in service does not count. [model: FIFO link]
#[test]
fn the_limit_is_exact_to_the_byte() {
    let mut net = limited(Some(2000), None);
    let sizes = [5000, 1000, 1001, 1000, 1]; // in service, waits, too large, just fits, too much
    let events = run(&mut net, sizes.iter().zip(0..).map(|(&b, n)| packet(n, 1, b, 0)), SECOND);
    let dropped: Vec<u32> = drops(&events).iter().map(|d| d.0.index).collect();
    assert_eq!(dropped, [2, 4]);
    let times: Vec<Time> = arrivals(&events).iter().map(|a| a.1).collect();
    assert_eq!(times, [5 * MS, 6 * MS, 7 * MS]);
    assert_eq!(net.link_stats()[0].max_queue_bytes, 2000);
    assert_eq!(net.link_stats()[0].drops[DropReason::Full as usize], 2);
}

#[test]
fn a_packet_limit_counts_packets() {
    let mut net = limited(None, Some(2));
    let events = run(&mut net, (0..5).map(|n| packet(n, 1, 1000, 0)), SECOND);
    assert_eq!(arrivals(&events).len(), 3);
    assert_eq!(net.link_stats()[0].max_queue_packets, 2);
}

/// Room is free again at the very moment at which a transmission starts: departures come before arrivals, however the link
/// is computed, and whether or not its driver has called it for that moment.
#[test]
fn departures_come_before_arrivals_of_the_same_moment() {
    let queue = QueueSpec { limit_packets: Some(1), ..QueueSpec::default() };
    let ahead = LinkSpec { queue, ..link("l", 0, 1, Some(8e6), 0) };
    let served = LinkSpec { outages: vec![(SECOND, 2 * SECOND)], ..ahead.clone() };
    let hub = LinkSpec { medium: Some("hub".into()), ..ahead.clone() };
    for (name, spec) in [("ahead", ahead), ("served", served), ("hub", hub)] {
        for called in [true, false] {
            let mut net = Network::new(&network(vec![spec.clone()]), &[], 1).expect("a valid network");
            for (n, at) in [(0, 0), (1, 0), (2, MS), (3, MS)] {
                if called {
                    net.handle_timeout(at);
                }
                net.send(at, VertexId(0), packet(n, 1, 1000, at));
            }
            let dropped: Vec<u32> = drops(&run(&mut net, [], SECOND)).iter().map(|d| d.0.index).collect();
            assert_eq!(dropped, [3], "{name}, called: {called}");
        }
    }
}

/// What a blocking send waits for: the end of its own transmission.
#[test]
fn send_tells_when_the_link_has_taken_the_packet() {
    let mut net = limited(None, Some(1));
    assert_eq!(net.send(0, VertexId(0), packet(0, 1, 1000, 0)), MS);
    assert_eq!(net.send(0, VertexId(0), packet(1, 1, 500, 0)), MS + MS / 2);
    assert_eq!(net.send(0, VertexId(0), packet(2, 1, 500, 0)), 0, "a dropped packet holds nobody");
    assert_eq!(net.send(0, VertexId(1), packet(3, 1, 500, 0)), 0, "a packet to its own vertex is there");
}

#[test]
fn the_queue_at_a_moment_is_what_has_not_started() {
    let mut net = limited(None, None);
    for n in 0..4 {
        net.send(0, VertexId(0), packet(n, 1, 1000, 0));
    }
    assert_eq!(net.queue(0, LinkId(0)), QueueState { packets: 3, bytes: 3000, wait_ns: 4 * MS });
    assert_eq!(net.queue(MS, LinkId(0)), QueueState { packets: 2, bytes: 2000, wait_ns: 3 * MS });
    assert_eq!(net.queue(10 * MS, LinkId(0)), QueueState::default());
    assert_eq!(net.link_stats()[0].busy_ns, 4 * MS);
}

/// What a link carried is what was offered less what waits and what was dropped, in packets and in bytes, at every moment:
/// counters are read while packets wait.
#[test]
fn counters_leave_out_what_waits() {
    let queue = QueueSpec { limit_packets: Some(2), ..QueueSpec::default() };
    let ahead = LinkSpec { queue, ..link("l", 0, 1, Some(8e6), 0) };
    let served = LinkSpec { outages: vec![(SECOND, 2 * SECOND)], ..ahead.clone() };
    for spec in [ahead, served] {
        let mut net = Network::new(&network(vec![spec]), &[], 1).expect("a valid network");
        // 700 B dropped, 1000 B on the line for 1 ms, then 500 B for 0.5 ms, then 300 B.
        for (n, bytes) in (0..).zip([1000, 500, 300, 700]) {
            net.send(0, VertexId(0), packet(n, 1, bytes, 0));
        }
        for (now, carried, waiting) in
            [(0, (1, 1000), (2, 800)), (MS, (2, 1500), (1, 300)), (2 * MS, (3, 1800), (0, 0))]
        {
            net.handle_timeout(now);
            let s = net.link_stats().remove(0);
            let dropped = (s.dropped_packets, s.dropped_bytes);
            let found = ((s.packets, s.bytes), (s.waiting_packets, s.waiting_bytes), dropped);
            assert_eq!(found, (carried, waiting, (1, 700)), "at {now}");
        }
    }
}

/// A long run accounts for a part of its samples: each link adds up those and no others, also where a change takes back what
/// was known ahead.
#[test]
fn links_account_for_followed_samples_only() {
    let followed = Choice::of(1 << 18); // a quarter
    let ahead = link("l", 0, 1, Some(8e6), MS);
    let served = LinkSpec { outages: vec![(SECOND, 2 * SECOND)], ..ahead.clone() };
    for (spec, changes) in [(&ahead, false), (&ahead, true), (&served, true)] {
        let mut net = Network::new(&network(vec![spec.clone()]), &[], 1).expect("a valid network");
        net.follow(followed);
        for n in 0..40 {
            net.send(0, VertexId(0), packet(n, 1, 1000, 0));
        }
        if changes {
            let change = LinkChange { rate_bps: Some(4e6), ..LinkChange::default() };
            net.change_link(10 * MS, LinkId(0), &change).expect("a valid change");
        }
        let mut sum = Hop::default();
        for event in run(&mut net, [], SECOND) {
            let NetEvent::Arrived { packet, spent, .. } = event else { continue };
            if followed.takes(packet.index) {
                sum.packets += 1;
                sum.queued_ns += spent.queued_ns;
                sum.serial_ns += spent.serial_ns;
                sum.propagated_ns += MS;
            }
        }
        assert!((5..20).contains(&sum.packets), "{} of 40 are followed", sum.packets);
        assert_eq!(net.hops()[0].of(FlowId(0)), Some(&sum), "changes: {changes}");
    }
}

/// One direction of the dumbbell, with one packet of `67 + 70 k` bytes every `k` ms against CBR and VBR. Returns
/// (moment, delay) in ms of each packet.
fn dumbbell(k: u32, start_backlog_bytes: u32, end: Time) -> Vec<(f64, f64)> {
    let bottleneck = QueueSpec { limit_bytes: Some(15_000), ..QueueSpec::default() };
    let mut spec = network(vec![
        link("access", 0, 1, None, 5 * MS),
        LinkSpec { queue: bottleneck, ..link("l1", 1, 2, Some(1.5e6), 5 * MS) },
        link("egress", 2, 3, None, 5 * MS),
    ]);
    for name in ["cbr", "vbr"] {
        let model = TrafficModel::source("cbr", json!({"rate_bps": 400e3, "packet_bytes": 50}));
        let (name, start_ns, stop_ns) = (name.into(), 0, None);
        spec.traffic.push(TrafficSpec {
            name,
            from: VertexId(1),
            to: VertexId(2),
            start_ns,
            stop_ns,
            dscp: 0,
            model,
        });
    }
    let mut net = Network::new(&spec, &[], 1).expect("a valid network");
    if start_backlog_bytes > 0 {
        net.send(0, VertexId(1), packet(u32::MAX - 1, 2, start_backlog_bytes, 0));
    }
    let packets =
        (0..).map(|n| packet(n, 3, 67 + 70 * k, Time::from(n * k) * MS)).take_while(|p| p.sent_ns < end);
    let arrived = arrivals(&run(&mut net, packets, end + SECOND));
    let own = arrived.iter().filter(|(p, _)| p.dst == VertexId(3));
    own.map(|(p, at)| (p.sent_ns as f64 / 1e6, (at - p.sent_ns) as f64 / 1e6)).collect()
}

/// Growth of the delay in ms per ms between two moments.
fn slope(delays: &[(f64, f64)], from_ms: f64, to_ms: f64) -> f64 {
    let at = |t: f64| delays.iter().find(|d| d.0 >= t).copied().unwrap_or_default();
    let (a, b) = (at(from_ms), at(to_ms));
    (b.1 - a.1) / (b.0 - a.0)
}

/// Queue slope (load - 1500) / 1500 at R_cbr 400: k = 1 +0.264, k = 3 +0.0258, k = 4 -0.004 (10 ms need 2.5 s).
/// [Gokhale 2017: dumbbell]
#[test]
fn drain_slopes_are_the_published_ones() {
    let growth = slope(&dumbbell(1, 0, SECOND), 20.0, 240.0);
    assert!(check_exact(growth, 0.264, 0.001), "{growth}");
    assert!(!check_exact(growth, 0.2587, 0.001), "2 % less must be refused");
    let slow = slope(&dumbbell(3, 0, SECOND), 60.0, 960.0);
    assert!(check_exact(slow, 0.0258, 0.01), "{slow}");
    let backlog = dumbbell(4, 10 * 1500 / 8 + 1000, 3 * SECOND);
    let drain = slope(&backlog, 100.0, 1900.0);
    assert!(check_exact(drain, -0.004, 0.01), "{drain}");
}

/// The empty dumbbell: 15 ms of propagation and the serialisation of 137 bytes; the buffer adds at most 80 ms and
/// the packet in service. [Gokhale 2017: dumbbell]
#[test]
fn the_first_and_the_worst_delay_of_the_dumbbell() {
    let delays = dumbbell(1, 0, 2 * SECOND);
    assert_eq!(delays[0].1, 15.0 + 0.730_667);
    let worst = delays.iter().map(|d| d.1).fold(0.0, f64::max);
    assert!((95.0..=15.0 + 80.0 + 2.0 * 0.731).contains(&worst), "{worst}");
}

/// Background packets are counted when they arrive, not before.
#[test]
fn background_traffic_is_counted_to_the_nanosecond() {
    let mut spec = network(vec![link("a", 0, 1, Some(400e3), 7 * MS), link("b", 1, 2, None, 3 * MS)]);
    let model = TrafficModel::source("cbr", json!({"rate_bps": 200e3, "packet_bytes": 50})); // every 2 ms, on the line for 1 ms
    spec.traffic.push(TrafficSpec {
        name: "t".into(),
        from: VertexId(0),
        to: VertexId(2),
        start_ns: 0,
        stop_ns: Some(20 * MS),
        dscp: 0,
        model,
    });
    let mut net = Network::new(&spec, &[], 1).expect("a valid network");
    for (now, entered_b, delivered) in
        [(8 * MS - 1, 0, 0), (8 * MS, 1, 0), (11 * MS - 1, 2, 0), (11 * MS, 2, 1), (99 * MS, 10, 10)]
    {
        net.handle_timeout(now);
        assert_eq!(net.link_stats()[1].offered_packets, entered_b, "at {now}");
        let entry = net.traffic_stats().remove(0);
        assert_eq!(entry.delivered_packets, delivered, "at {now}");
        assert_eq!(entry.bytes, entry.packets * 50, "at {now}");
    }
    assert_eq!(net.poll_timeout(), None, "nothing to see");
}

/// Packets that a driver sends in the name of a traffic entry, as it does for users over TCP, count there.
#[test]
fn packets_of_a_driver_count_at_their_traffic_entry() {
    let limits = QueueSpec { limit_packets: Some(1), ..QueueSpec::default() };
    let mut spec = one_link(8e6, limits);
    spec.traffic = vec![TrafficSpec {
        name: "users".into(),
        from: VertexId(0),
        to: VertexId(1),
        start_ns: SECOND,
        stop_ns: None,
        dscp: 0,
        model: TrafficModel::source("cbr", json!({"rate_bps": 1e6, "packet_bytes": 100})),
    }];
    let mut net = Network::new(&spec, &[], 1).expect("a valid network");
    run(&mut net, (0..3).map(|n| Packet { class: TRAFFIC_BASE, ..packet(n, 1, 1000, 0) }), SECOND - 1);
    let counted = net.traffic_stats().remove(0);
    let expected = TrafficStats {
        name: "users".into(),
        packets: 3,
        bytes: 3000,
        delivered_packets: 2,
        dropped_packets: 1,
    };
    assert_eq!(counted, expected);
}
