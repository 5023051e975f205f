//! Lines that several take turns on, and gates in front of classes, against closed forms.

mod common;

use common::{arrivals, check, drops, link, network, one_link, packet, run, Estimate};
use serde_json::{json, Value};
use tcps_core::{
    param::Named,
    record::DropReason,
    seed::Stream,
    time::{Time, MS, SECOND, US},
};
use tcps_net::{Network, Packet};
use tcps_plan::net::{LinkSpec, NetworkSpec, QueueSpec, SlotSpec};

const CYCLE_NS: Time = 10 * MS;
const RATE_BPS: f64 = 8e6; // 1000 bytes take 1 ms

/// A line that is open for the first 4 ms of every 10.
fn slotted(rate_bps: Option<f64>) -> NetworkSpec {
    let slots = Some(SlotSpec { cycle_ns: CYCLE_NS, open: vec![(0, 4 * MS)] });
    network(vec![LinkSpec { slots, ..link("l", 0, 1, rate_bps, 0) }])
}

/// Closed for c of T, a packet at any moment waits c² / 2T in the mean: it meets a closed line with c / T, and then
/// waits c / 2.
#[test]
fn a_packet_waits_for_its_slot_as_long_as_predicted() {
    let mut phases = Stream::new(1, "phases");
    let mut net = Network::new(&slotted(None), &[], 1).expect("a valid network");
    let at = |n: u32, phase: f64| Time::from(n) * CYCLE_NS + (phase * CYCLE_NS as f64) as Time;
    let packets: Vec<_> = (0..60_000).map(|n| packet(n, 1, 100, at(n, phases.unit()))).collect();
    let waits = arrivals(&run(&mut net, packets, Time::MAX / 4));
    let waits: Vec<f64> = waits.iter().map(|(p, at)| (at - p.sent_ns) as f64 / 1e6).collect();
    let (simulated, closed_ms, cycle_ms) = (Estimate::of(&waits), 6.0, 10.0);
    assert!(check(simulated, closed_ms * closed_ms / (2.0 * cycle_ms)), "{simulated:?}");
    assert!(!check(simulated, closed_ms / 2.0), "the wait of those that meet a closed line must be refused");
}

/// A full line carries as many packets a cycle as fit whole into its slot.
#[test]
fn a_slot_carries_whole_packets() {
    for (bytes, in_slot) in [(1000, 4), (1500, 2), (1501, 2), (3900, 1)] {
        let mut net = Network::new(&slotted(Some(RATE_BPS)), &[], 1).expect("a valid network");
        let carried = arrivals(&run(&mut net, (0..500).map(|n| packet(n, 1, bytes, 0)), SECOND - 1)).len();
        assert_eq!(carried, 100 * in_slot, "{bytes} B");
    }
}

/// What is longer than every slot is dropped and stops nobody.
#[test]
fn a_packet_that_fits_into_no_slot_is_dropped() {
    let mut net = Network::new(&slotted(Some(RATE_BPS)), &[], 1).expect("a valid network");
    let packets = [(0, 4001), (1, 4000), (2, 100)].map(|(n, bytes)| packet(n, 1, bytes, 0));
    let events = run(&mut net, packets, SECOND);
    let dropped: Vec<_> = drops(&events).iter().map(|d| (d.0.index, d.2)).collect();
    let arrived: Vec<_> = arrivals(&events).iter().map(|a| (a.0.index, a.1)).collect();
    assert_eq!(dropped, [(0, DropReason::Managed)]);
    assert_eq!(arrived, [(1, 4 * MS), (2, CYCLE_NS + 100 * US)]);
}

/// Two classes behind the gates of a list.
fn gated(gates: Value) -> Named {
    Named::new("gates", json!({"classes": [[46], []], "gates": gates}))
}

/// 1 ms of every 10 for urgent packets alone, the rest for bulk alone.
fn gates() -> Named {
    gated(json!([[MS, [0]], [9 * MS, [1]]]))
}

/// Urgent packets of 1 ms every cycle at a phase of its own, under a full load of bulk in packets of 1.4 ms.
fn loaded(discipline: Named) -> (Vec<Time>, usize, Vec<Packet>) {
    let queue = QueueSpec { discipline, limit_packets: Some(50), ..QueueSpec::default() };
    let mut net = Network::new(&one_link(RATE_BPS, queue), &[], 1).expect("a valid network");
    let urgent = |n: u32| Packet { dscp: 46, ..packet(n, 1, 1000, Time::from(n) * CYCLE_NS + 4_300 * US) };
    let bulk = |n: u32| packet(1000 + n, 1, 1400, Time::from(n) * MS);
    let mut packets: Vec<_> = (0..99).map(urgent).chain((0..999).map(bulk)).collect();
    packets.sort_by_key(|p| p.sent_ns);
    let events = run(&mut net, packets, SECOND - 1);
    let (urgent, bulk): (Vec<_>, Vec<_>) = arrivals(&events).into_iter().partition(|a| a.0.dscp == 46);
    let dropped = drops(&events).iter().map(|d| d.0).collect();
    (urgent.iter().map(|(p, at)| at - p.sent_ns).collect(), bulk.len(), dropped)
}

/// The gate of urgent packets opens on a free line: they leave at its opening to the nanosecond, whatever else there
/// is, and bulk gets as many packets a cycle as fit whole between. [IEEE 2015 §8.6.8.4]
#[test]
fn a_gate_opens_on_a_free_line() {
    let (delays, bulk, dropped) = loaded(gates());
    assert_eq!(delays.len(), 99);
    assert!(delays.iter().all(|d| *d == CYCLE_NS - 4_300 * US + MS), "{delays:?}");
    assert_eq!(bulk, 600, "six packets of 1.4 ms fit into 9 ms");
    assert!(!dropped.is_empty() && dropped.iter().all(|p| p.dscp == 0), "each class has its own limit");
    let (without, ..) = loaded(Named::new("priority", json!({"classes": [[46], []]})));
    assert!(without.iter().min() < without.iter().max(), "priority alone cannot keep the line free");
}

/// While a gate stays open long enough the most urgent class goes first; a packet that would not end before its gate
/// closes waits, and one of a class whose gate stays open goes ahead. [IEEE 2015 §8.6.8.4]
#[test]
fn a_packet_that_would_not_end_in_time_lets_others_pass() {
    let discipline = gated(json!([[2500 * US, [0, 1]], [7500 * US, [1]]]));
    let spec = one_link(RATE_BPS, QueueSpec { discipline, ..QueueSpec::default() });
    let mut net = Network::new(&spec, &[], 1).expect("a valid network");
    let urgent = (0..3).map(|n| Packet { dscp: 46, ..packet(n, 1, 1000, 0) });
    let events = run(&mut net, urgent.chain((3..5).map(|n| packet(n, 1, 1000, 0))), SECOND);
    let order: Vec<_> = arrivals(&events).iter().map(|a| (a.0.index, a.1 / MS)).collect();
    assert_eq!(order, [(0, 1), (1, 2), (3, 3), (4, 4), (2, 11)]);
}

#[test]
fn lists_that_would_let_a_class_wait_for_ever_are_refused() {
    let refused = |list: Vec<(Time, Vec<u8>)>| {
        let discipline = gated(json!(list));
        Network::new(&one_link(RATE_BPS, QueueSpec { discipline, ..QueueSpec::default() }), &[], 1).err()
    };
    for list in [vec![], vec![(MS, vec![0])], vec![(MS, vec![0, 1, 2])], vec![(0, vec![0, 1])]] {
        assert!(refused(list.clone()).is_some_and(|e| e.to_string().contains("queue.gates")), "{list:?}");
    }
    assert!(refused(vec![(MS, vec![1]), (MS, vec![0])]).is_none());
}
