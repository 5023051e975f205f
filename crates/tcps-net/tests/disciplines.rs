//! Disciplines in front of a line: shares, priorities, own limits.

mod common;

use common::{arrivals, check_exact, drops, one_link, packet, run};
use serde_json::json;
use tcps_core::{
    endpoint::Ecn,
    ids::VertexId,
    param::Named,
    record::DropReason,
    time::{Time, MS, SECOND},
};
use tcps_net::{Network, Packet};
use tcps_plan::net::{NetworkSpec, QueueSpec, TrafficModel, TrafficSpec, TRAFFIC_BASE};

fn flow(class: u16, bytes: u32, n: u32, at: Time) -> Packet {
    Packet { class, ..packet(n, 1, bytes, at) }
}

fn queue(discipline: Named, limit_packets: Option<u64>) -> NetworkSpec {
    one_link(8e6, QueueSpec { limit_packets, discipline, ..QueueSpec::default() })
    // 1000 bytes take 1 ms
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| n.to_string()).collect()
}

/// Bytes per flow that arrived while all flows had something to send.
fn shares(discipline: Named, sizes: &[u32]) -> Vec<f64> {
    let mut net =
        Network::new(&queue(discipline, None), &names(&["a", "b", "c"]), 1).expect("a valid network");
    let flows = sizes.iter().zip(0..);
    let packets = flows.flat_map(|(&b, class)| (0..2_000_000 / b).map(move |n| flow(class, b, n, 0)));
    let mut bytes = vec![0.0; sizes.len()];
    for (p, _) in arrivals(&run(&mut net, packets, SECOND)) {
        bytes[usize::from(p.class)] += f64::from(p.wire_bytes);
    }
    bytes
}

/// Flows with packets of different sizes get equal bytes, whatever the quantum. [Shreedhar 1995]
#[test]
fn round_robin_shares_bytes_equally() {
    for quantum_bytes in [500, 1500] {
        let bytes =
            shares(Named::new("round-robin", json!({"quantum_bytes": quantum_bytes})), &[100, 400, 1500]);
        for b in &bytes {
            assert!(check_exact(*b, 1e6 / 3.0, 0.01), "{bytes:?}");
            assert!(!check_exact(*b, 1e6 * 400.0 / 2000.0, 0.01), "the share by packets must be refused");
        }
    }
}

/// A packet that just fits into the credit of a turn is sent in it. [Shreedhar 1995]
#[test]
fn a_turn_sends_what_fits_exactly() {
    let discipline = Named::new("round-robin", json!({"quantum_bytes": 1000}));
    let mut net = Network::new(&queue(discipline, None), &names(&["a", "b", "c"]), 1).expect("valid");
    let sent = [(2, 1000), (0, 500), (0, 500), (0, 500), (0, 500), (1, 1000), (1, 1000)]; // c goes on the line
    let packets = sent.iter().zip(0..).map(|(&(class, bytes), n)| flow(class, bytes, n, 0));
    let order: Vec<_> = arrivals(&run(&mut net, packets, SECOND)).iter().map(|a| a.0.class).collect();
    assert_eq!(order, [2, 0, 0, 1, 0, 0, 1]);
}

/// The same holds for flow queues with controlled delay while nothing is dropped. [RFC 8290 §4.2]
#[test]
fn fq_codel_shares_bytes_equally() {
    let discipline = Named::new("fq-codel", json!({"target_ns": 10 * SECOND, "interval_ns": SECOND}));
    let bytes = shares(discipline, &[100, 400, 1500]);
    assert!(bytes.iter().all(|b| check_exact(*b, 1e6 / 3.0, 0.01)), "{bytes:?}");
}

/// A flow that sends less than its share is new again at each packet, and waits for one packet of the bulk flow.
/// [RFC 8290 §4.2]
#[test]
fn fq_codel_lets_sparse_flows_pass() {
    let discipline = Named::new("fq-codel", json!({}));
    let mut net =
        Network::new(&queue(discipline, None), &names(&["bulk", "haptic"]), 1).expect("a valid network");
    let bulk = (0..900).map(|n| flow(0, 1000, n, 0));
    let haptic = (1..800).map(|n| flow(1, 50, n, Time::from(n) * MS));
    let events = run(&mut net, bulk.chain(haptic), SECOND);
    let worst = arrivals(&events).iter().filter(|(p, _)| p.class == 1).map(|(p, at)| at - p.sent_ns).max();
    assert!(worst.is_some_and(|w| w <= MS + 4 * 50_000), "{worst:?}");
    assert!(drops(&events).iter().all(|(p, _, r)| p.class == 0 && *r == DropReason::Managed));
    assert!(!drops(&events).is_empty(), "the bulk flow stands in its queue");
}

/// When the limit is exceeded, the largest flow pays, at its head, with half of its packets, at most 64.
/// [RFC 8290 §4.1]
#[test]
fn fq_codel_drops_from_the_head_of_the_largest_flow() {
    let discipline = Named::new("fq-codel", json!({}));
    let mut net =
        Network::new(&queue(discipline, Some(40)), &names(&["bulk", "haptic"]), 1).expect("a valid network");
    let packets = (0..41).map(|n| flow(0, 1000, n, 0)).chain([flow(1, 50, 0, 0)]);
    let events = run(&mut net, packets, 1);
    let dropped: Vec<_> = drops(&events).iter().map(|(p, _, r)| (p.class, p.index, *r)).collect();
    let expected: Vec<_> = (1..=20).map(|n| (0, n, DropReason::Full)).collect(); // packet 0 is on the line
    assert_eq!(dropped, expected);
}

/// What just fills the limit stays: of three packets that wait for two places, or for the bytes of two, one goes.
/// [RFC 8290 §4.1]
#[test]
fn fq_codel_keeps_what_just_fits() {
    for (limit_packets, limit_bytes) in [(Some(2), None), (None, Some(2000))] {
        let discipline = Named::new("fq-codel", json!({}));
        let queue = QueueSpec { limit_packets, limit_bytes, discipline };
        let mut net = Network::new(&one_link(8e6, queue), &names(&["bulk"]), 1).expect("a valid network");
        let events = run(&mut net, (0..4).map(|n| flow(0, 1000, n, 0)), SECOND); // packet 0 is on the line
        let dropped: Vec<_> = drops(&events).iter().map(|d| d.0.index).collect();
        assert_eq!(dropped, [1], "{limit_packets:?} {limit_bytes:?}");
    }
}

/// A small buffer for the telehaptic flow alone: its own limit in packets, the others have the limit of the queue.
/// [Polachan 2022]
#[test]
fn a_flow_has_its_own_limit() {
    let params = json!({"quantum_bytes": 1500, "flow_limits": {"kinematic": 3, "traffic.cbr": 5}});
    let mut spec = queue(Named::new("round-robin", params), Some(50));
    for name in ["cbr.forward", "vbr.forward"] {
        let model = TrafficModel::source("cbr", json!({"rate_bps": 0.0, "packet_bytes": 50}));
        spec.traffic.push(TrafficSpec {
            name: name.into(),
            from: VertexId(0),
            to: VertexId(1),
            start_ns: 0,
            stop_ns: None,
            dscp: 0,
            model,
        });
    }
    let mut net = Network::new(&spec, &names(&["kinematic", "haptic"]), 1).expect("a valid network");
    // The first packet goes on the line. Two classes that nobody knows share one queue, and nobody else's.
    let unknown = [2, TRAFFIC_BASE + 2];
    let classes = [1, 0, TRAFFIC_BASE, TRAFFIC_BASE + 1, unknown[0], unknown[1]];
    let packets = classes.iter().flat_map(|&c| (0..60).map(move |n| flow(c, 100, n, 0)));
    let arrived = arrivals(&run(&mut net, packets, SECOND));
    let count = |class| arrived.iter().filter(|(p, _)| p.class == class).count();
    assert_eq!([count(0), count(1), count(TRAFFIC_BASE), count(TRAFFIC_BASE + 1)], [3, 51, 5, 50]);
    assert_eq!(unknown.map(count), [50, 0]);
}

/// Urgent packets go first, and a full queue of others makes room for them. [RFC 2474 §4.2.2]
#[test]
fn priority_serves_urgent_packets_first_and_throws_out_others() {
    let discipline = Named::new("priority", json!({"classes": [[46], [34], []]}));
    let mut net = Network::new(&queue(discipline, Some(4)), &[], 1).expect("a valid network");
    let dscps = [0, 0, 34, 0, 0, 46, 46, 10]; // the first goes on the line; then 4 fit
    let packets = dscps.iter().zip(0..).map(|(&dscp, n)| Packet { dscp, ..packet(n, 1, 1000, 0) });
    let events = run(&mut net, packets, SECOND);
    let order: Vec<u32> = arrivals(&events).iter().map(|a| a.0.index).collect();
    let dropped: Vec<u32> = drops(&events).iter().map(|d| d.0.index).collect();
    assert_eq!(order, [0, 5, 6, 2, 1]);
    assert_eq!(dropped, [4, 3, 7]);
}

/// The same where the limit is one of bytes: a large urgent packet throws out as many others as it needs, the newest of the
/// least urgent class first, and nothing of its own class.
#[test]
fn priority_makes_room_by_bytes() {
    let discipline = Named::new("priority", json!({"classes": [[46], [34], []]}));
    let queue = QueueSpec { limit_bytes: Some(4000), discipline, ..QueueSpec::default() };
    let mut net = Network::new(&one_link(8e6, queue), &[], 1).expect("a valid network");
    let offered = [(0, 100), (0, 1000), (34, 1000), (0, 1000), (0, 900), (46, 1500), (46, 1500), (34, 1001)];
    let packets = offered.iter().zip(0..).map(|(&(dscp, b), n)| Packet { dscp, ..packet(n, 1, b, 0) });
    let events = run(&mut net, packets, SECOND);
    let order: Vec<u32> = arrivals(&events).iter().map(|a| a.0.index).collect();
    let dropped: Vec<u32> = drops(&events).iter().map(|d| d.0.index).collect();
    // 3900 B wait: 5 needs 1400 B of them, for which 4 and 3 go; 6 takes the place of 1; for 7 none is less urgent.
    assert_eq!(order, [0, 5, 6, 2]);
    assert_eq!(dropped, [4, 3, 1, 7]);
}

/// Below its minimum RED never drops; with a standing average above twice its maximum it drops everything.
/// [Floyd 2000]
#[test]
fn red_on_a_line_drops_between_its_bounds_only() {
    let discipline = Named::new("red", json!({"min_bytes": 3_000, "max_bytes": 9_000, "weight": 1}));
    let mut net = Network::new(&queue(discipline, None), &[], 1).expect("a valid network");
    let events = run(&mut net, (0..200).map(|n| packet(n, 1, 1000, 0)), SECOND);
    let dropped = drops(&events);
    assert!(dropped.iter().all(|d| d.2 == DropReason::Managed && d.0.index > 3));
    let waiting = 200 - dropped.len() - 1;
    assert!((10..=18).contains(&waiting), "{waiting} wait");
    assert!(dropped.iter().rev().take(150).map(|d| d.0.index).eq((50..200).rev()), "nothing fits any more");
}

/// On a line that is overloaded by 2 %, CoDel keeps the standing delay near its target. [RFC 8289 §5]
#[test]
fn codel_on_a_line_controls_the_delay() {
    let discipline = Named::new("codel", json!({}));
    let mut net = Network::new(&queue(discipline, None), &[], 1).expect("a valid network");
    let packets = (0..120_000).map(|n| packet(n, 1, 500, Time::from(n) * MS * 50 / 102)); // 1.02 of the rate
    let events = run(&mut net, packets, 60 * SECOND);
    let late: Vec<f64> = arrivals(&events)
        .iter()
        .filter(|(p, _)| p.sent_ns > 15 * SECOND)
        .map(|(p, at)| (at - p.sent_ns) as f64 / 1e6)
        .collect();
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    assert!((4.0..40.0).contains(&mean), "{mean} ms");
    let lost = drops(&events).iter().filter(|d| d.0.sent_ns > 15 * SECOND).count() as f64;
    let share = lost / (lost + late.len() as f64);
    assert!(check_exact(share, 0.02 / 1.02, 0.1), "what does not fit must go: {share}");
}

/// Disciplines with `ecn` mark what is capable of it, and drop it without. [RFC 3168 §5]
#[test]
fn ecn_of_a_discipline_marks_what_it_would_drop() {
    let red = json!({"min_bytes": 5_000, "max_bytes": 5_000_000, "weight": 1.0});
    for (name, params) in [("codel", json!({})), ("fq-codel", json!({})), ("red", red)] {
        for ecn in [true, false] {
            let mut params = params.clone();
            params["ecn"] = json!(ecn);
            let mut net = Network::new(&queue(Named::new(name, params), None), &names(&["a"]), 1).unwrap();
            // Twice what the line takes.
            let packets = (0..4_000)
                .map(|n| Packet { ecn: Ecn::Capable, ..packet(n, 1, 1000, Time::from(n) * MS / 2) });
            let events = run(&mut net, packets, 9 * SECOND);
            let marked = arrivals(&events).iter().filter(|(p, _)| p.ecn == Ecn::Met).count();
            assert_eq!((marked > 0, drops(&events).is_empty()), (ecn, ecn), "{name}: {marked} marked");
            assert_eq!(net.link_stats()[0].marked, marked as u64, "{name}");
        }
    }
}
