//! What may happen on a line: opportunities, outages, copies, changed bits, a shared medium.

mod common;

use common::{arrivals, call_until, check, check_exact, drops, link, network, packet, run, Estimate};
use serde_json::json;
use tcps_core::{
    dist::Dist,
    ids::{LinkId, TrafficId, VertexId},
    param::Named,
    record::DropReason,
    time::{Time, MS, SECOND},
};
use tcps_net::{NetEvent, Network, Packet, Spent, BACKGROUND};
use tcps_plan::net::LinkChange;
use tcps_plan::net::{
    AccessSpec, DelaySpec, JitterSpec, LinkSpec, NetworkSpec, NrSpec, QueueSpec, QueueState, RadioSpec,
    SlotSpec, TrafficModel, TrafficSpec,
};

fn one(spec: LinkSpec) -> Network {
    Network::new(&network(vec![spec]), &[], 1).expect("a valid network")
}

fn times(events: &[NetEvent]) -> Vec<(u32, Time)> {
    arrivals(events).iter().map(|(p, at)| (p.index, *at)).collect()
}

/// 1500 bytes per moment; small packets share one, a large one takes two, unused ones are lost, and the trace starts
/// again after its last moment. [Netravali 2015]
#[test]
fn a_trace_of_opportunities_is_followed() {
    let trace = vec![2 * MS, 2 * MS, 5 * MS, 10 * MS];
    let mut net = one(LinkSpec { opportunities_ns: Some(trace), ..link("cell", 0, 1, None, MS) });
    let sizes_at = [
        (700, 0), // 0, 1 share the first opportunity at 2
        (800, 0),
        (1600, 0),      // takes the second at 2 and 100 bytes of that at 5
        (1400, 0),      // fills that at 5
        (1, 0),         // the one at 10
        (500, 11 * MS), // those at 12 (twice): the second is unused
        (500, 12 * MS), // too late for 12: 15
        (500, 99 * MS), // 100 is the last of the tenth round
    ];
    let events = run(&mut net, sizes_at.iter().zip(0..).map(|(&(b, at), n)| packet(n, 1, b, at)), SECOND);
    let expected = [(0, 3), (1, 3), (2, 6), (3, 6), (4, 11), (5, 13), (6, 16), (7, 101)];
    assert_eq!(times(&events), expected.map(|(n, ms)| (n, ms * MS)));
    let spent: Vec<_> = events
        .iter()
        .filter_map(|e| match e {
            NetEvent::Arrived { spent, .. } => Some((spent.queued_ns / MS, spent.serial_ns / MS)),
            _ => None,
        })
        .collect();
    let expected = [(2, 0), (2, 0), (2, 3), (5, 0), (10, 0), (1, 0), (3, 0), (1, 0)];
    assert_eq!(
        spent, expected,
        "waits end with the first byte, and packets are on the line until their last one"
    );
}

/// A saturated trace delivers 1500 bytes per moment, no more and no less.
#[test]
fn a_saturated_trace_delivers_its_rate() {
    let trace: Vec<Time> = (1..=12).map(|k| k * k * MS).collect();
    let mut net = one(LinkSpec { opportunities_ns: Some(trace), ..link("cell", 0, 1, None, 0) });
    let packets = (0..4000).map(|n| packet(n, 1, 300, 0));
    let delivered = arrivals(&run(&mut net, packets, 10 * 144 * MS)).len() as f64 * 300.0;
    assert!(check_exact(delivered, 10.0 * 12.0 * 1500.0, 1e-9), "{delivered}");
    assert!(!check_exact(delivered, 10.0 * 12.0 * 1504.0, 1e-9));
}

/// Packets that would start during an outage are lost; those on the way arrive; the line's timing does not change.
#[test]
fn an_outage_loses_what_starts_in_it() {
    let outages = vec![(10 * MS, 20 * MS), (30 * MS, 31 * MS)];
    let mut net = one(LinkSpec { outages, ..link("l", 0, 1, Some(8e6), 50 * MS) });
    let events = run(&mut net, (0..40).map(|n| packet(n, 1, 1000, Time::from(n) * MS)), SECOND);
    let lost: Vec<u32> = drops(&events).iter().map(|d| d.0.index).collect();
    assert_eq!(lost, (10..20).chain([30]).collect::<Vec<_>>());
    assert!(drops(&events).iter().all(|d| d.2 == DropReason::Outage && d.1 == d.0.sent_ns));
    assert!(arrivals(&events).iter().all(|(p, at)| *at == p.sent_ns + 51 * MS));
}

/// An event takes the link down and up again, in the middle of a folded path too.
#[test]
fn a_link_that_goes_down_loses_packets_until_it_is_up() {
    for down in 0..3 {
        let links = vec![
            link("a", 0, 1, None, 5 * MS),
            link("b", 1, 2, Some(8e6), 5 * MS),
            link("c", 2, 3, None, 5 * MS),
        ];
        let mut net = Network::new(&network(links), &[], 1).expect("a valid network");
        let mut events = Vec::new();
        for n in 0..60 {
            let now = Time::from(n) * MS + 1;
            call_until(&mut net, now - 1, &mut events);
            if n == 20 || n == 40 {
                net.change_link(
                    now - 1,
                    LinkId(down),
                    &LinkChange { up: Some(n == 40), ..LinkChange::default() },
                )
                .expect("valid");
            }
            net.send(now, VertexId(0), packet(n, 3, 1000, now));
        }
        call_until(&mut net, SECOND, &mut events);
        let lost: Vec<u32> = drops(&events).iter().map(|d| d.0.index).collect();
        let first = 20 - [0, 5, 11][usize::from(down)]; // ms from the source to that link
        assert_eq!(lost, (first..first + 20).collect::<Vec<_>>(), "link {down}");
        assert!(arrivals(&events).iter().all(|(p, at)| *at == p.sent_ns + 16 * MS));
    }
}

/// A full line that has turns in place of a rate is busy all the time: as long as it takes to send what it carried.
#[test]
fn a_full_line_with_turns_is_busy() {
    let nr = NrSpec {
        slot_ns: MS,
        pattern: "DDDSU".into(), // of 500 bytes a slot
        up: false,
        access: AccessSpec::Configured { period_ns: MS },
        processing_ns: 0,
        block_error: 0.0,
        again_ns: 0,
        retransmissions: 0,
    };
    let radio = LinkSpec { radio: Some(RadioSpec::Nr(nr)), ..link("air", 0, 1, Some(4e6), 0) };
    let cell =
        LinkSpec { opportunities_ns: Some(vec![2 * MS, 2 * MS, 5 * MS]), ..link("cell", 0, 1, None, 0) };
    for (spec, bytes) in [(radio, 500), (cell, 1500)] {
        let mut net = one(spec); // three packets in 5 ms
        run(&mut net, (0..300).map(|n| packet(n, 1, bytes, 0)), SECOND);
        let stats = &net.link_stats()[0];
        assert_eq!(stats.packets, 300);
        assert!(check_exact(stats.busy_ns as f64, 0.5e9, 1e-6), "{}: {}", stats.name, stats.busy_ns);
    }
}

/// A sender that blocks is told when its packet will have left the first link; one whose packet is dropped does not wait.
#[test]
fn a_sender_learns_when_its_packet_will_have_left() {
    let codel = || Named::new("codel", json!({}));
    let queue = QueueSpec { discipline: codel(), ..QueueSpec::default() };
    let trace = Some(vec![2 * MS, 5 * MS, 6 * MS, 9 * MS]);
    for spec in [
        link("pure", 0, 1, None, 0),
        link("ahead", 0, 1, Some(12e6), 0), // 1500 bytes take 1 ms
        LinkSpec { queue, ..link("served", 0, 1, Some(12e6), 0) },
        LinkSpec { opportunities_ns: trace, ..link("turns", 0, 1, None, 0) },
    ] {
        let name = spec.name.clone();
        let mut net = one(spec);
        let told: Vec<_> = (0..4).map(|n| (n, net.send(0, VertexId(0), packet(n, 1, 1500, 0)))).collect();
        let mut events = Vec::new();
        call_until(&mut net, SECOND, &mut events);
        assert_eq!(told, times(&events), "{name}");
    }
    for discipline in [Named::new("drop-tail", json!({})), codel()] {
        let queue = QueueSpec { discipline, limit_packets: Some(1), ..QueueSpec::default() };
        let mut net = one(LinkSpec { queue, ..link("full", 0, 1, Some(12e6), 0) });
        let told = [0, 1, 2].map(|n| net.send(0, VertexId(0), packet(n, 1, 1500, 0)));
        assert_eq!(told, [MS, 2 * MS, 0]);
    }
}

/// Lines that are open at some moments only and begin closed: a trace, a radio link downward, and slots.
fn closed_lines() -> [LinkSpec; 3] {
    let nr = NrSpec {
        slot_ns: 5 * MS,
        pattern: "SDU".into(),
        up: false,
        access: AccessSpec::Configured { period_ns: 15 * MS },
        processing_ns: 0,
        block_error: 0.0,
        again_ns: 0,
        retransmissions: 0,
    };
    let slots = SlotSpec { cycle_ns: 15 * MS, open: vec![(5 * MS, 10 * MS)] };
    let l = |name, rate_bps| link(name, 0, 1, rate_bps, 0);
    [
        LinkSpec { opportunities_ns: Some(vec![5 * MS, 15 * MS]), ..l("trace", None) },
        LinkSpec { radio: Some(RadioSpec::Nr(nr)), ..l("radio", Some(8e6)) },
        LinkSpec { slots: Some(slots), ..l("slots", Some(8e6)) },
    ]
}

/// What finds a closed line waits for it, also when nobody else does: it counts against the limit, by packets and by bytes.
#[test]
fn a_limit_counts_what_waits_for_a_closed_line() {
    for spec in closed_lines() {
        for (limit_packets, limit_bytes, waiting) in
            [(Some(2), None, 2), (Some(0), None, 0), (None, Some(2500), 2), (None, Some(999), 0)]
        {
            let queue = QueueSpec { limit_packets, limit_bytes, ..QueueSpec::default() };
            let mut net = one(LinkSpec { queue, ..spec.clone() });
            for n in 0..5 {
                net.send(MS, VertexId(0), packet(n, 1, 1000, MS));
            }
            assert_eq!(net.queue(MS, LinkId(0)).packets, waiting, "{} {limit_packets:?}", spec.name);
            let s = net.link_stats().remove(0);
            assert_eq!((s.dropped_packets, s.drops[DropReason::Full as usize]), (5 - waiting, 5 - waiting));
        }
    }
}

/// A line whose turns nobody waits for asks for no call: otherwise every slot of an idle radio link would be an event, and a
/// run that has nothing left to do would not end.
#[test]
fn an_idle_line_asks_for_no_call() {
    for spec in closed_lines() {
        let mut net = one(spec.clone());
        for round in 0..3 {
            let now = round * SECOND;
            net.send(now, VertexId(0), packet(0, 1, 1000, now));
            assert!(net.poll_timeout().is_some_and(|at| at > now), "{}: a packet waits", spec.name);
            let mut calls = 0;
            while let Some(at) = net.poll_timeout() {
                net.handle_timeout(at);
                calls += 1;
                assert!(calls < 10, "{}: it never ends", spec.name);
            }
            let events: Vec<_> = std::iter::from_fn(|| net.poll_event()).collect();
            assert_eq!(arrivals(&events).len(), 1, "{}", spec.name);
        }
    }
}

/// Links that only delay are passed without a stop: a packet costs one event however many of them lie on its path, and one of
/// background traffic, of which nobody is to learn, none.
#[test]
fn links_that_only_delay_cost_no_events() {
    let first = link("first", 0, 1, Some(8e6), MS); // 1000 bytes take 1 ms
    let links = (1..9).map(|i| link(&format!("l{i}"), i, i + 1, None, MS));
    let mut net =
        Network::new(&network(std::iter::once(first).chain(links).collect()), &[], 1).expect("valid");
    net.keep_passages();
    net.send(0, VertexId(0), Packet { payload: BACKGROUND, ..packet(1, 9, 1000, 0) });
    assert_eq!(net.poll_timeout(), None, "background");
    net.send(MS, VertexId(0), packet(0, 9, 1000, MS));
    assert_eq!(net.poll_timeout(), Some(11 * MS));
    net.handle_timeout(11 * MS);
    assert_eq!(times(&std::iter::from_fn(|| net.poll_event()).collect::<Vec<_>>()), [(0, 11 * MS)]);
    assert_eq!(net.poll_timeout(), None);
    let carried: Vec<_> = net.link_stats().iter().map(|l| (l.packets, l.bytes)).collect();
    assert_eq!(carried, [(2, 2000); 9], "they count what passed them");
    net.settle_passages();
    let passages: Vec<_> =
        std::iter::from_fn(|| net.poll_passage()).map(|p| (p.link.0, p.entered_ns)).collect();
    let entered = (1..9).map(|l| (l, Time::from(l + 2) * MS));
    assert_eq!(passages, [(0, MS)].into_iter().chain(entered).collect::<Vec<_>>(), "and say when");
}

/// Whoever sets the same loss or the same jitter again begins a fresh stream: a repeated event must not repeat the very
/// draws, which would make its losses and delays depend on one another.
#[test]
fn a_repeated_change_draws_anew() {
    let uniform = Dist::new("uniform", json!({"low_ns": 0, "high_ns": MS})).expect("a delay");
    let jitter = Some(JitterSpec { delay: DelaySpec::Model(uniform), reorder: true });
    let changes = [
        LinkChange { jitter, ..LinkChange::default() },
        LinkChange { loss: Some(0.5), ..LinkChange::default() },
    ];
    for change in changes {
        let mut net = one(link("l", 0, 1, None, 0));
        let mut drawn = |round: Time| {
            let now = round * SECOND;
            net.change_link(now, LinkId(0), &change).expect("a valid change");
            let events = run(&mut net, (0..50).map(|n| packet(n, 1, 100, now)), now + SECOND - 1);
            let mut delays: Vec<_> = times(&events).iter().map(|(n, at)| (*n, at - now)).collect();
            delays.sort_unstable();
            delays
        };
        let rounds = [0, 1, 2].map(&mut drawn);
        assert!(rounds.iter().all(|r| r.len() > 10), "{rounds:?}");
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            assert_ne!(rounds[a], rounds[b], "{change:?}: changes {a} and {b}");
        }
    }
}

/// Packets that have started keep their times, those that wait see the new rate and the new delay.
#[test]
fn a_new_rate_is_for_those_that_wait() {
    let mut net = one(link("l", 0, 1, Some(8e6), 10 * MS)); // 1000 bytes take 1 ms
    for n in 0..4 {
        net.send(0, VertexId(0), packet(n, 1, 1000, 0));
    }
    let change = LinkChange { rate_bps: Some(4e6), delay_ns: Some(20 * MS), ..LinkChange::default() };
    net.change_link(MS + MS / 2, LinkId(0), &change).expect("valid");
    let mut events = Vec::new();
    call_until(&mut net, SECOND, &mut events);
    assert_eq!(times(&events), [(0, 11 * MS), (1, 12 * MS), (2, 24 * MS), (3, 26 * MS)]);
    assert_eq!(net.link_stats()[0].busy_ns, 6 * MS);
}

/// Every discipline, with parameters by which it drops nothing here of its own.
fn disciplines() -> [Named; 7] {
    let (classes, bounds) = (json!([[46], []]), json!({"min_bytes": 90_000, "max_bytes": 99_000}));
    [
        ("drop-tail", json!({})),
        ("codel", json!({})),
        ("fq-codel", json!({})),
        ("gates", json!({"classes": classes, "gates": [[MS, [0, 1]]]})),
        ("priority", json!({"classes": classes})),
        ("red", bounds),
        ("round-robin", json!({})),
    ]
    .map(|(kind, params)| Named::new(kind, params))
}

/// Packets and bytes that wait, and how long whoever comes now has to wait for them, are told alike of every discipline.
#[test]
fn what_waits_is_told_whatever_the_discipline() {
    for discipline in disciplines() {
        let kind = discipline.kind.clone();
        let queue = QueueSpec { discipline, ..QueueSpec::default() };
        let mut net = one(LinkSpec { queue, ..link("l", 0, 1, Some(8e6), 0) });
        for (n, bytes) in (0..).zip([1000, 500, 300]) {
            net.send(0, VertexId(0), packet(n, 1, bytes, 0)); // on the line for 1, 0.5 and 0.3 ms
        }
        for (now, packets, bytes, wait_ns) in
            [(0, 2, 800, 1_800_000), (MS, 1, 300, 800_000), (2 * MS, 0, 0, 0)]
        {
            let state = QueueState { packets, bytes, wait_ns };
            assert_eq!(net.queue(now, LinkId(0)), state, "{kind} at {now}");
        }
        assert_eq!(net.link_stats()[0].max_queue_bytes, 800, "{kind}");
    }
}

/// A packet that finds the line free does not wait, so that no limit applies to it. [model: FIFO link]
#[test]
fn an_idle_line_takes_what_is_above_the_limit() {
    for discipline in disciplines() {
        let kind = discipline.kind.clone();
        let queue = QueueSpec { discipline, limit_bytes: Some(999), ..QueueSpec::default() };
        let mut net = one(LinkSpec { queue, ..link("l", 0, 1, Some(8e6), 0) });
        let events = run(&mut net, [(0, 0), (1, 0), (2, MS)].map(|(n, at)| packet(n, 1, 1000, at)), SECOND);
        assert_eq!(times(&events), [(0, MS), (2, 2 * MS)], "{kind}");
    }
}

/// Every discipline keeps the new limit, also one that had none.
#[test]
fn a_new_limit_holds_whatever_the_discipline() {
    for discipline in disciplines() {
        let kind = discipline.kind.clone();
        let queue = QueueSpec { discipline, ..QueueSpec::default() };
        let mut net = one(LinkSpec { queue, ..link("l", 0, 1, Some(8e6), 0) }); // 1000 bytes take 1 ms
        net.send(0, VertexId(0), packet(0, 1, 1000, 0));
        let change = LinkChange { limit_packets: Some(2), ..LinkChange::default() };
        net.change_link(MS / 2, LinkId(0), &change).expect("valid");
        for n in 1..=10 {
            net.send(MS / 2, VertexId(0), packet(n, 1, 1000, MS / 2));
            assert_eq!(net.queue(MS / 2, LinkId(0)).packets, u64::from(n.min(2)), "{kind}");
        }
    }
}

/// What waits stays, also where it is more than the new limit; who comes later finds no room.
#[test]
fn a_new_limit_is_for_those_that_arrive() {
    let classes = json!({"classes": [[46], []]});
    for (kind, params) in
        [("drop-tail", json!({})), ("codel", json!({})), ("priority", classes), ("round-robin", json!({}))]
    {
        let queue = QueueSpec { discipline: Named::new(kind, params), ..QueueSpec::default() };
        let mut net = one(LinkSpec { queue, ..link("l", 0, 1, Some(8e6), 0) }); // 1000 bytes take 1 ms
        for n in 0..4 {
            net.send(0, VertexId(0), packet(n, 1, 1000, 0));
        }
        let change = LinkChange { limit_packets: Some(2), ..LinkChange::default() };
        net.change_link(MS / 2, LinkId(0), &change).expect("valid");
        net.send(MS - 1, VertexId(0), packet(4, 1, 1000, MS - 1));
        net.send(3 * MS - 1, VertexId(0), packet(5, 1, 1000, 3 * MS - 1));
        let mut events = Vec::new();
        call_until(&mut net, SECOND, &mut events);
        assert_eq!(drops(&events).len(), 1, "{kind}");
        assert_eq!(arrivals(&events).len(), 5, "{kind}");
    }
}

#[test]
fn a_new_jitter_is_for_those_that_have_not_started() {
    let mut net = one(link("l", 0, 1, Some(8e6), 10 * MS));
    for n in 0..2 {
        net.send(0, VertexId(0), packet(n, 1, 1000, 0));
    }
    let later = |ms| {
        Some(JitterSpec {
            delay: DelaySpec::Model(Dist::new("constant", json!({"span_ns": ms * MS})).unwrap()),
            reorder: false,
        })
    };
    net.change_link(MS / 2, LinkId(0), &LinkChange { jitter: later(3), ..LinkChange::default() })
        .expect("valid");
    let mut events = Vec::new();
    call_until(&mut net, 30 * MS, &mut events);
    net.change_link(30 * MS, LinkId(0), &LinkChange { jitter: later(0), ..LinkChange::default() })
        .expect("valid");
    net.send(30 * MS, VertexId(0), packet(2, 1, 1000, 30 * MS));
    call_until(&mut net, SECOND, &mut events);
    assert_eq!(times(&events), [(0, 11 * MS), (1, 15 * MS), (2, 41 * MS)]);
}

/// A shorter delay never lets a packet overtake on a link that keeps the order.
#[test]
fn a_shorter_delay_keeps_the_order() {
    let mut net = one(link("l", 0, 1, None, 10 * MS));
    net.send(0, VertexId(0), packet(0, 1, 100, 0));
    net.change_link(MS, LinkId(0), &LinkChange { delay_ns: Some(MS), ..LinkChange::default() })
        .expect("valid");
    net.send(2 * MS, VertexId(0), packet(1, 1, 100, 2 * MS));
    net.send(20 * MS, VertexId(0), packet(2, 1, 100, 20 * MS));
    let mut events = Vec::new();
    call_until(&mut net, SECOND, &mut events);
    assert_eq!(times(&events), [(0, 10 * MS), (1, 10 * MS), (2, 21 * MS)]);
}

#[test]
fn copies_and_changed_bits_have_their_probabilities() {
    let mut net = one(LinkSpec { duplicate: 0.1, corrupt: 0.05, ..link("l", 0, 1, Some(1e9), MS) });
    let events = run(&mut net, (0..200_000).map(|n| packet(n, 1, 100, Time::from(n) * 1000)), SECOND);
    let mut copies = vec![0.0; 200_000];
    for event in &events {
        if let NetEvent::Arrived { packet, .. } | NetEvent::Dropped { packet, .. } = event {
            copies[packet.index as usize] += 1.0;
        }
    }
    assert!(check(Estimate::of(&copies), 1.1));
    assert!(!check(Estimate::of(&copies), 1.11));
    let corrupt =
        |e: &NetEvent| matches!(e, NetEvent::Dropped { link: LinkId(0), reason: DropReason::Corrupt, .. });
    let bit = |e: &NetEvent| f64::from(u8::from(corrupt(e)));
    let arrived = events.iter().filter(|e| matches!(e, NetEvent::Arrived { .. }) || corrupt(e));
    let changed = Estimate::of(&arrived.map(bit).collect::<Vec<_>>());
    assert!(check(changed, 0.05), "{changed:?}");
    assert!(!check(changed, 0.055));
    let stats = &net.link_stats()[0];
    assert_eq!(stats.duplicated as usize + 200_000, arrivals(&events).len() + stats.corrupted as usize);
    assert_eq!(stats.corrupted as f64, events.iter().map(bit).sum::<f64>());
}

/// Routers pass a changed bit on; the receiver's checksum finds it, and the link that did it is named. [RFC 768]
#[test]
fn a_changed_bit_is_found_at_the_end_of_the_path() {
    let links = vec![
        LinkSpec { corrupt: 1.0, ..link("a", 0, 1, None, MS) },
        link("b", 1, 2, Some(1e6), MS),
        link("c", 2, 3, None, 0),
    ];
    let mut net = Network::new(&network(links), &[], 1).expect("a valid network");
    let events = run(&mut net, [packet(0, 3, 100, 0)], SECOND);
    let found = NetEvent::Dropped {
        at: 2_800_000,
        packet: packet(0, 3, 100, 0),
        link: LinkId(0),
        reason: DropReason::Corrupt,
    };
    assert_eq!(events, [found]);
    let carried: Vec<_> =
        net.link_stats().iter().map(|l| (l.packets, l.corrupted, l.dropped_packets)).collect();
    assert_eq!(carried, [(1, 1, 0), (1, 0, 0), (1, 0, 0)]);
}

fn hub(rates: &[f64]) -> NetworkSpec {
    let station = |(i, &rate): (usize, &f64)| {
        let from = i as u16 + 1;
        LinkSpec { medium: Some("hub".into()), ..link(&format!("s{from}"), from, 0, Some(rate), 0) }
    };
    network(rates.iter().enumerate().map(station).collect())
}

/// One transmission at a time: stations that always have something to send take turns, and together get one line.
#[test]
fn stations_on_a_hub_take_turns() {
    let mut net = Network::new(&hub(&[8e6, 8e6, 8e6]), &[], 1).expect("a valid network");
    for n in 0..300u32 {
        net.send(0, VertexId(1 + (n % 3) as u16), packet(n, 0, 1000, 0));
    }
    let mut events = Vec::new();
    call_until(&mut net, 150 * MS, &mut events);
    let expected: Vec<_> = (0..150).map(|n| (n, Time::from(n + 1) * MS)).collect();
    assert_eq!(times(&events), expected);
}

/// A slow station takes its time: with turns by packet, both get the same packets, and the fast one waits.
#[test]
fn a_slow_station_holds_up_a_fast_one() {
    let mut net = Network::new(&hub(&[8e6, 2e6]), &[], 1).expect("a valid network");
    for n in 0..1000u32 {
        net.send(0, VertexId(1 + (n % 2) as u16), packet(n, 0, 1000, 0));
    }
    let mut events = Vec::new();
    call_until(&mut net, SECOND, &mut events);
    let fast = arrivals(&events).iter().filter(|(p, _)| p.index % 2 == 0).count() as f64;
    assert!(check_exact(fast, 200.0, 0.01), "1 ms and 4 ms in turn: {fast}");
    assert!(!check_exact(fast, 500.0, 0.01), "equal time must be refused");
    let busy: Time = net.link_stats().iter().map(|l| l.busy_ns).sum();
    assert_eq!(busy, SECOND);
}

/// Random loss occupies the line: the packets behind it are not earlier.
#[test]
fn a_lost_packet_takes_its_time_on_the_line() {
    let loss = Some(Named::new("random", json!({"p": 0.5})));
    let mut net = one(LinkSpec { loss, ..link("l", 0, 1, Some(8e6), 0) });
    let events = run(&mut net, (0..100).map(|n| packet(n, 1, 1000, 0)), SECOND);
    assert!(arrivals(&events).iter().all(|(p, at)| *at == Time::from(p.index + 1) * MS));
    assert!(drops(&events).iter().all(|d| d.2 == DropReason::Loss && d.1 == Time::from(d.0.index) * MS));
}

/// Each random object has a stream of its own: adding jitter changes no loss, adding a link changes nothing.
#[test]
fn random_objects_do_not_disturb_each_other() {
    let lossy = |jitter, more: Option<LinkSpec>| {
        let loss = Some(Named::new("random", json!({"p": 0.2})));
        let l = LinkSpec { loss, jitter, ..link("l", 0, 1, Some(8e6), 0) };
        let mut net =
            Network::new(&network([Some(l), more].into_iter().flatten().collect()), &[], 7).expect("valid");
        let events = run(&mut net, (0..500).map(|n| packet(n, 1, 1000, 0)), 10 * SECOND);
        drops(&events).iter().map(|d| d.0.index).collect::<Vec<_>>()
    };
    let plain = lossy(None, None);
    let delay = Dist::new("exponential", json!({"mean_ns": 1_000_000})).expect("a delay");
    let jitter = JitterSpec { delay: DelaySpec::Model(delay), reorder: true };
    assert!(!plain.is_empty());
    assert_eq!(plain, lossy(Some(jitter), None));
    let other = LinkSpec { loss: Some(Named::new("random", json!({"p": 0.5}))), ..link("m", 1, 0, None, 0) };
    assert_eq!(plain, lossy(None, Some(other)));
}

/// A stopped source keeps its clock: what it would have sent is left out, nothing shifts.
#[test]
fn stopped_traffic_goes_on_in_its_own_beat() {
    let mut spec = network(vec![link("l", 0, 1, Some(8e6), 0)]);
    let model = TrafficModel::source("cbr", json!({"rate_bps": 400e3, "packet_bytes": 50}));
    spec.traffic.push(TrafficSpec {
        name: "t".into(),
        from: VertexId(0),
        to: VertexId(1),
        start_ns: 0,
        stop_ns: None,
        dscp: 0,
        model,
    });
    let mut net = Network::new(&spec, &[], 1).expect("a valid network");
    net.set_traffic(10 * MS, TrafficId(0), false);
    net.set_traffic(20 * MS + 1, TrafficId(0), true);
    let mut counts = Vec::new();
    for ms in [9, 20, 21, 30] {
        net.handle_timeout(ms * MS);
        counts.push(net.traffic_stats()[0].packets);
    }
    assert_eq!(counts, [10, 10, 11, 20]);
}

/// Without links, all vertices reach each other at once; without a path, the packet is reported.
#[test]
fn no_links_and_no_path() {
    let mut net = Network::new(&NetworkSpec::default(), &[], 1).expect("valid");
    net.send(5, VertexId(0), packet(0, 3, 100, 5));
    assert_eq!(
        net.poll_event(),
        Some(NetEvent::Arrived { at: 5, packet: packet(0, 3, 100, 5), spent: Spent::default() })
    );
    let mut net = one(link("l", 0, 1, None, 0));
    let lost = |packet: Packet, net: &mut Network| {
        net.send(packet.sent_ns, VertexId(1), packet);
        net.poll_event()
            == Some(NetEvent::Dropped {
                at: packet.sent_ns,
                packet,
                link: LinkId::NONE,
                reason: DropReason::NoRoute,
            })
    };
    assert!(lost(packet(0, 0, 100, 5), &mut net));
    assert!(lost(packet(1, 900, 100, 6), &mut net), "a vertex that does not exist");
}
