//! The NR-like link against closed forms: alignment with slots, requests, configured grants, retransmissions.

mod common;

use common::{arrivals, check, drops, link, network, packet, run, Estimate};
use tcps_core::{
    ids::{FlowId, LinkId, VertexId},
    seed::Stream,
    time::{Time, MS, SECOND, US},
};
use tcps_net::{NetEvent, Network};
use tcps_plan::net::{AccessSpec, Hop, LinkSpec, NrSpec, RadioSpec};

const SLOT: Time = 500 * US;
const REQUEST: AccessSpec = AccessSpec::Request { period_ns: 5 * MS, grant_ns: 2 * MS };

fn nr(up: bool) -> NrSpec {
    NrSpec {
        slot_ns: SLOT,
        pattern: "DDDSU".into(),
        up,
        access: REQUEST,
        processing_ns: 300 * US,
        block_error: 0.0,
        again_ns: 4 * MS,
        retransmissions: 3,
    }
}

fn spec(nr: NrSpec, rate_bps: Option<f64>) -> LinkSpec {
    LinkSpec { radio: Some(RadioSpec::Nr(nr)), ..link("air", 0, 1, rate_bps, 0) }
}

/// Delays in slots of small packets that come at random moments, far apart, less the slot and the processing.
fn waits(nr: NrSpec) -> Estimate {
    let beside = (nr.slot_ns + nr.processing_ns) as f64;
    let mut net = Network::new(&network(vec![spec(nr, None)]), &[], 1).expect("a valid network");
    let mut stream = Stream::new(1, "moments");
    let packets = (0..20_000u32).map(|n| {
        let at = Time::from(n) * 50 * MS + (stream.unit() * 20e6) as Time;
        packet(n, 1, 100, at)
    });
    let events = run(&mut net, packets.collect::<Vec<_>>(), 2000 * SECOND);
    let wait = |(p, at): &(tcps_net::Packet, Time)| ((at - p.sent_ns) as f64 - beside) / SLOT as f64;
    Estimate::of(&arrivals(&events).iter().map(wait).collect::<Vec<_>>())
}

/// The mean wait for the next of slots with gaps g is the sum of g² over twice the sum of g: (1 + 1 + 9) / 10 down.
#[test]
fn a_packet_waits_for_the_next_slot_down() {
    let simulated = waits(nr(false));
    assert!(check(simulated, 1.1), "{simulated:?}");
    assert!(!check(simulated, 0.5), "as if every slot went down");
}

/// Up with every fifth slot given for good: half of five slots. [TS 38.321 §5.8.2]
#[test]
fn a_configured_grant_waits_for_its_own_slot_only() {
    let configured = |slots: Time| AccessSpec::Configured { period_ns: slots * SLOT };
    let simulated = waits(NrSpec { access: configured(5), ..nr(true) });
    assert!(check(simulated, 2.5), "{simulated:?}");
    assert!(!check(simulated, 9.0), "as if it had to be asked for");
    let fdd = NrSpec { pattern: "F".into(), access: configured(8), ..nr(true) };
    assert!(check(waits(fdd), 4.0), "half of eight slots");
}

/// Up on request: half a period until the packet can be asked for, the grant, and what is left to the next own slot: asked
/// at a multiple of 10 slots, granted 4 slots later, which is the first slot up of its round. [TS 38.321 §5.4.4]
#[test]
fn a_request_waits_for_its_chance_and_for_the_grant() {
    let simulated = waits(nr(true));
    assert!(check(simulated, 5.0 + 4.0), "{simulated:?}");
    assert!(!check(simulated, 2.5), "as if it needed no request");
}

/// Repetitions: p (1 + p (1 + p)) of `again`, given that the block was understood at last; lost with p^4. [TS 38.321 §5.4.2]
#[test]
fn blocks_that_are_not_understood_come_again_later() {
    let p: f64 = 0.3;
    let simulated = waits(NrSpec { block_error: p, ..nr(false) });
    let weights: Vec<f64> = (0..4).map(|k| libm::pow(p, f64::from(k)) * (1.0 - p)).collect();
    let mean =
        weights.iter().zip(0..).map(|(w, k)| w * f64::from(k)).sum::<f64>() / weights.iter().sum::<f64>();
    assert!(check(simulated, 1.1 + mean * 8.0), "{simulated:?} {mean}");
    assert!(!check(simulated, 1.1), "as if every block were understood");
    let given_up = NrSpec { block_error: 0.3, retransmissions: 0, ..nr(false) };
    let mut net = Network::new(&network(vec![spec(given_up, None)]), &[], 1).expect("a valid network");
    let events = run(&mut net, (0..30_000).map(|n| packet(n, 1, 100, Time::from(n) * 10 * MS)), 400 * SECOND);
    let lost = drops(&events).len() as f64 / 30_000.0;
    assert!((lost - 0.3).abs() < 4.0 * (0.3f64 * 0.7 / 30_000.0).sqrt(), "{lost}");
}

/// A full buffer leaves at the rate within the own slots: 3 of 5 down, 1 of 5 up.
#[test]
fn a_full_buffer_leaves_at_the_share_of_its_slots() {
    for (up, share) in [(false, 0.6), (true, 0.2)] {
        let mut net =
            Network::new(&network(vec![spec(nr(up), Some(80e6))]), &[], 1).expect("a valid network");
        let events = run(&mut net, (0..20_000).map(|n| packet(n, 1, 1000, 0)), SECOND);
        let delivered = arrivals(&events).len() as f64 * 8e3;
        assert!((delivered / (share * 80e6) - 1.0).abs() < 0.02, "{up} {delivered}");
    }
}

/// 1000 B at 80 Mbit/s take a fifth of a slot. The slot of now is missed: 11 packets leave in two more and the next round.
#[test]
fn what_waits_is_said_by_its_slots() {
    let mut net = Network::new(&network(vec![spec(nr(false), Some(80e6))]), &[], 1).expect("a valid network");
    for n in 0..11 {
        net.send(0, VertexId(0), packet(n, 1, 1000, 0));
    }
    let found = net.queue(0, LinkId(0));
    assert_eq!((found.packets, found.bytes, found.wait_ns), (11, 11_000, 5 * SLOT));
    let left = net.queue(2 * SLOT + SLOT / 2, LinkId(0));
    assert_eq!(left.wait_ns, found.wait_ns - (2 * SLOT + SLOT / 2), "the end does not move");
    assert_eq!(net.queue(found.wait_ns, LinkId(0)).packets, 0);
    assert_eq!(net.queue(found.wait_ns, LinkId(0)).wait_ns, 0);
}

/// Packets keep their order, and none comes before the slot that carried it is over.
#[test]
fn order_is_kept_behind_a_repeated_block() {
    let spec = spec(NrSpec { block_error: 0.4, ..nr(true) }, Some(20e6));
    let mut net = Network::new(&network(vec![spec]), &[], 3).expect("a valid network");
    let events = run(&mut net, (0..5000).map(|n| packet(n, 1, 200, Time::from(n) * MS)), 20 * SECOND);
    let came = arrivals(&events);
    assert!(came.windows(2).all(|w| w[0].0.index < w[1].0.index && w[0].1 <= w[1].1));
    assert!(came.iter().all(|(p, at)| at - p.sent_ns >= SLOT + 300 * US));
}

/// What a link says of a flow is the sum of what its packets say, and together it is all of their time.
#[test]
fn a_link_sums_where_the_time_of_packets_went() {
    let spec = spec(NrSpec { block_error: 0.4, ..nr(true) }, Some(20e6));
    let mut net = Network::new(&network(vec![spec]), &[], 3).expect("a valid network");
    let events = run(&mut net, (0..500).map(|n| packet(n, 1, 2000, Time::from(n) * MS)), 20 * SECOND);
    let mut sum = Hop::default();
    for event in &events {
        let NetEvent::Arrived { at, packet, spent } = event else { continue };
        sum.packets += 1;
        sum.queued_ns += spent.queued_ns;
        sum.serial_ns += spent.serial_ns;
        sum.again_ns += spent.again_ns;
        sum.propagated_ns += at - packet.sent_ns - spent.queued_ns - spent.serial_ns - spent.again_ns;
    }
    assert!(sum.again_ns > 0 && sum.queued_ns > 0 && sum.serial_ns > 0, "{sum:?}");
    assert_eq!(net.hops()[0].of(FlowId(0)), Some(&sum));
}

#[test]
fn what_cannot_be_is_refused_with_what_is_allowed() {
    let refused = |radio: RadioSpec| {
        let link = LinkSpec { radio: Some(radio), ..link("air", 0, 1, None, 0) };
        Network::new(&network(vec![link]), &[], 1).map(|_| ()).expect_err("refused").to_string()
    };
    assert!(refused(RadioSpec::Lte {}).contains("a run over ns-3"));
    assert!(refused(RadioSpec::Nr(NrSpec { pattern: "DDD".into(), ..nr(true) })).contains("both directions"));
    let odd = AccessSpec::Configured { period_ns: 700 * US };
    assert!(refused(RadioSpec::Nr(NrSpec { access: odd, ..nr(true) })).contains("whole slots"));
}
