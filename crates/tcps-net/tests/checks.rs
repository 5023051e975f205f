//! What a specification may say: at the ends of its range a key is taken, just outside it is refused, by its name and with
//! what was found. Links, queues and sources rely on it: they check nothing.

mod common;

use common::{link, network};
use serde_json::json;
use std::fmt::Debug;
use tcps_core::{
    dist::Dist,
    ids::{LinkId, VertexId},
    param::Named,
    time::{Time, MS, SECOND},
};
use tcps_net::{NetError, Network};
use tcps_plan::net::{
    AccessSpec, DelaySpec, JitterSpec, LinkChange, LinkSpec, NetworkSpec, NrSpec, Played, RadioSpec,
    SlotSpec, TrafficModel, TrafficSpec,
};

const LONGEST: Time = 1_000_000_000_000_000;

/// What is taken (`expected` is empty), or refused with this place, key and, at its beginning, what was found there.
fn check<T>(result: Result<T, NetError>, expected: &str, case: impl Debug) {
    let refused = result.err().map(|e| format!("{}.{}: {}", e.place, e.fault.key, e.fault.found));
    let found = refused.unwrap_or_default();
    assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{case:?}: {found:?}");
}

/// Values of a key of a link, and what is expected of each, without the link's name.
fn check_links<T: Debug + Clone>(
    set: impl Fn(&mut LinkSpec, T),
    cases: impl IntoIterator<Item = (T, Option<&'static str>)>,
) {
    for (value, refused) in cases {
        let mut spec = network(vec![link("l", 0, 1, Some(1e6), 0)]);
        set(&mut spec.links[0], value.clone());
        let expected = refused.map(|r| format!("links.l.{r}")).unwrap_or_default();
        check(Network::new(&spec, &[], 1), &expected, value);
    }
}

#[test]
fn numbers_of_a_link_have_ranges() {
    check_links(
        |l, (from, to)| (l.from, l.to) = (VertexId(from), VertexId(to)),
        [((0, 1), None), ((2, 1), Some("from: 2")), ((0, 2), Some("to: 2")), ((1, 1), Some("to: 1"))],
    );
    check_links(
        |l, bps| l.rate_bps = Some(bps),
        [
            (1.0, None),
            (1e12, None),
            (f64::INFINITY, None),
            (0.5, Some("rate_bps: 0.5 bit/s")),
            (2e12, Some("rate_bps: 2")),
            (f64::NAN, Some("rate_bps: ")),
            (f64::NEG_INFINITY, Some("rate_bps: ")),
        ],
    );
    check_links(
        |l, ns| l.delay_ns = ns,
        [(0, None), (LONGEST, None), (-1, Some("delay_ns: -1 ns")), (LONGEST + 1, Some("delay_ns: "))],
    );
    check_links(|l, dscp| l.dscp = Some(dscp), [(0, None), (63, None), (64, Some("dscp: 64"))]);
    check_links(
        |l, p| l.duplicate = p,
        [(0.0, None), (1.0, None), (-0.1, Some("duplicate: -0.1")), (1.1, Some("duplicate: 1.1"))],
    );
    check_links(
        |l, p| l.corrupt = p,
        [(0.0, None), (1.0, None), (-0.1, Some("corrupt: -0.1")), (1.1, Some("corrupt: 1.1"))],
    );
}

/// Outages and slots are looked for from the first on: each ends before the next begins, and slots end with their cycle.
#[test]
fn spans_follow_one_another() {
    let outages = |l: &mut LinkSpec, spans: &[(Time, Time)]| l.outages = spans.to_vec();
    check_links(
        outages,
        [
            (&[(0, 1), (1, 2), (5, Time::MAX)][..], None),
            (&[(SECOND, 3 * SECOND), (2 * SECOND, 4 * SECOND)], Some("outages: 2 s to 4 s")),
            (&[(SECOND, SECOND)], Some("outages: 1 s to 1 s")),
            (&[(3 * SECOND, 2 * SECOND)], Some("outages: 3 s to 2 s")),
            (&[(-1, 2)], Some("outages: -1 ns to 2 ns")),
        ],
    );
    let slots = |l: &mut LinkSpec, (cycle_ns, open): (Time, &[(Time, Time)])| {
        l.slots = Some(SlotSpec { cycle_ns, open: open.to_vec() });
    };
    check_links(
        slots,
        [
            ((MS, &[(0, 5), (5, MS)][..]), None),
            ((MS, &[(0, MS + 1)]), Some("slots.open: 0 ns to 1.000001 ms")),
            ((MS, &[(0, 5), (4, 9)]), Some("slots.open: 4 ns to 9 ns")),
            ((MS, &[]), Some("slots.open: no window")),
            ((0, &[(0, 5)]), Some("slots.cycle_ns: 0 ns")),
            ((LONGEST + 1, &[(0, 5)]), Some("slots.cycle_ns: ")),
        ],
    );
}

/// A trace is in order and starts again after its last moment, which therefore lies above 0.
#[test]
fn a_trace_has_a_period_and_is_in_order() {
    let trace = |l: &mut LinkSpec, moments: &[Time]| {
        (l.rate_bps, l.opportunities_ns) = (None, Some(moments.to_vec()));
    };
    check_links(
        trace,
        [
            (&[0, 0, 1][..], None),
            (&[LONGEST], None),
            (&[], Some("trace: 0 moments")),
            (&[5, 4], Some("trace: 2 moments")),
            (&[-1, 4], Some("trace: 2 moments")),
            (&[0], Some("trace: a last moment at 0 ns")),
            (&[LONGEST + 1], Some("trace: a last moment at ")),
        ],
    );
}

/// A link of a network that others run is held to the same ranges, its loss too. Code of the user's is judged when it is made.
#[test]
fn the_loss_of_a_link_is_checked_wherever_it_leads() {
    for (kind, params, refused) in [
        ("random", json!({"p": 1.0}), ""),
        ("random", json!({"p": 2.0}), "links.l.loss.p: 2"),
        ("gilbert-elliott", json!({"p": 0.1, "r": -1.0}), "links.l.loss.r: -1"),
        ("./mine.py:Loss", json!({}), ""),
    ] {
        let spec = LinkSpec { loss: Some(Named::new(kind, params)), ..link("l", 0, 1, None, 0) };
        check(tcps_net::check_link(&spec), refused, kind);
    }
}

fn nr() -> NrSpec {
    NrSpec {
        slot_ns: MS,
        pattern: "DDDSU".into(),
        up: true,
        access: AccessSpec::Request { period_ns: 5 * MS, grant_ns: MS },
        processing_ns: 0,
        block_error: 0.0,
        again_ns: 0,
        retransmissions: 0,
    }
}

#[test]
fn a_radio_link_has_slots_that_can_be_used() {
    let radio = |l: &mut LinkSpec, nr: NrSpec| l.radio = Some(RadioSpec::Nr(nr));
    let pattern = |text: &str| NrSpec { pattern: text.into(), ..nr() };
    let access = |access| NrSpec { access, ..nr() };
    let configured = |period_ns| access(AccessSpec::Configured { period_ns });
    let request = |period_ns, grant_ns| access(AccessSpec::Request { period_ns, grant_ns });
    check_links(
        radio,
        [
            (NrSpec { slot_ns: 1, ..nr() }, None),
            (NrSpec { slot_ns: 0, ..nr() }, Some("radio.slot_ns: 0 ns")),
            (NrSpec { processing_ns: -1, ..nr() }, Some("radio.processing_ns: -1 ns")),
            (NrSpec { again_ns: -1, ..nr() }, Some("radio.again_ns: -1 ns")),
            (NrSpec { block_error: 1.0, retransmissions: 64, ..nr() }, None),
            (NrSpec { block_error: 1.1, ..nr() }, Some("radio.block_error: 1.1")),
            (NrSpec { retransmissions: 65, ..nr() }, Some("radio.retransmissions: 65")),
            (pattern("F"), None),
            (pattern(&"F".repeat(1024)), None),
            (pattern(&"F".repeat(1025)), Some("radio.pattern: \"FF")),
            (pattern(""), Some("radio.pattern: \"\"")),
            (pattern("DUx"), Some("radio.pattern: \"DUx\"")),
            (pattern("UUS"), Some("radio.pattern: \"UUS\", without a downlink slot")),
            (pattern("DDS"), Some("radio.pattern: \"DDS\", without an uplink slot")),
            (configured(MS), None),
            (configured(256 * MS), None),
            (configured(257 * MS), Some("radio.configured_ns: 257 ms")),
            (configured(MS / 2), Some("radio.configured_ns: ")),
            (configured(3 * MS / 2), Some("radio.configured_ns: 1.5 ms")),
            (configured(0), Some("radio.configured_ns: 0 ns")),
            (request(0, 0), Some("radio.request_ns: 0 ns")),
            (request(1, 0), None),
            (request(1, -1), Some("radio.grant_ns: -1 ns")),
        ],
    );
}

/// What opens and closes a line needs it for itself, and a trace gives its rate: two of them are refused by both names.
#[test]
fn a_line_is_opened_and_closed_by_one_key_alone() {
    type Edit = fn(&mut LinkSpec);
    let edits: [(&str, Edit); 5] = [
        ("gates", |l| {
            let params = json!({"classes": [[46], []], "gates": [[MS, [0, 1]]]});
            l.queue.discipline = Named::new("gates", params);
        }),
        ("slots", |l| l.slots = Some(SlotSpec { cycle_ns: MS, open: vec![(0, 5)] })),
        ("trace", |l| (l.rate_bps, l.opportunities_ns) = (None, Some(vec![MS]))),
        ("radio", |l| l.radio = Some(RadioSpec::Nr(nr()))),
        ("medium", |l| l.medium = Some("hub".into())),
    ];
    for (i, (one, first)) in edits.iter().enumerate() {
        check_links(|l, ()| first(l), [((), None)]);
        for (other, second) in &edits[i + 1..] {
            let mut spec = network(vec![link("l", 0, 1, Some(1e6), 0)]);
            [first, second].iter().for_each(|edit| edit(&mut spec.links[0]));
            let key = if *one == "gates" { "queue.gates" } else { one };
            let expected = format!("links.l.{key}: both {one} and {other}");
            check(Network::new(&spec, &[], 1), &expected, "");
        }
    }
    let both = |l: &mut LinkSpec, ()| l.opportunities_ns = Some(vec![MS]);
    check_links(both, [((), Some("trace: both rate and trace"))]);
}

/// A packet of frames holds more than its headers and fits into a datagram; recordings are in order and fit into a round.
#[test]
fn what_is_played_is_checked_before() {
    let frames = |packet_bytes, overhead_bytes| Played::Frames {
        recording: 0,
        loop_ns: Some(9 * MS),
        packet_bytes,
        overhead_bytes,
    };
    let replay = |recording, loop_ns| Played::Replay { recording, loop_ns };
    for (played, refused) in [
        (frames(79, 78), None),
        (frames(65_535, 78), None),
        (frames(78, 78), Some("packet_bytes: 78")),
        (frames(65_536, 78), Some("packet_bytes: 65536")),
        (replay(0, None), None),
        (replay(0, Some(3 * MS)), None),
        (replay(0, Some(3 * MS - 1)), Some("loop_ns: 2.999999 ms")),
        (replay(1, Some(0)), Some("loop_ns: 0 ns")),
        (replay(1, Some(LONGEST + 1)), Some("loop_ns: ")),
        (replay(2, None), Some("packets: moments out of order")),
        (replay(3, None), Some("packets: moments out of order")),
        (replay(4, None), Some("packets: ")),
        (replay(5, None), Some("recording: 5")),
    ] {
        let mut spec = entry(TrafficModel::Played(played.clone()));
        spec.recordings = vec![
            vec![(0, 400), (0, 400), (3 * MS, 400)].into(),
            vec![].into(),
            vec![(2, 400), (1, 400)].into(),
            vec![(-1, 400)].into(),
            vec![(LONGEST + 1, 400)].into(),
        ];
        let expected = refused.map(|r| format!("traffic.t.{r}")).unwrap_or_default();
        check(Network::new(&spec, &[], 1), &expected, played);
    }
}

/// A link with a traffic entry.
fn entry(model: TrafficModel) -> NetworkSpec {
    let (name, start_ns, stop_ns) = ("t".into(), 0, None);
    let (from, to) = (VertexId(0), VertexId(1));
    let traffic = vec![TrafficSpec { name, from, to, start_ns, stop_ns, dscp: 0, model }];
    NetworkSpec { traffic, ..network(vec![link("l", 0, 1, Some(1e6), 0)]) }
}

#[test]
fn a_traffic_entry_is_between_vertices_that_there_are() {
    let silent = || TrafficModel::source("cbr", json!({"rate_bps": 0.0, "packet_bytes": 50}));
    for (from, to, start_ns, refused) in [
        (1, 0, LONGEST, ""),
        (2, 0, 0, "traffic.t.from: 2"),
        (0, 2, 0, "traffic.t.to: 2"),
        (0, 1, -1, "traffic.t.start_ns: -1 ns"),
    ] {
        let mut spec = entry(silent());
        let t = &mut spec.traffic[0];
        (t.from, t.to, t.start_ns) = (VertexId(from), VertexId(to), start_ns);
        check(Network::new(&spec, &[], 1), refused, (from, to, start_ns));
    }
}

/// A change is held to the ranges of the link's own keys; a link without a constant rate takes none, and code comes at the
/// start only.
#[test]
fn a_change_is_checked_as_the_link_was() {
    let traced = LinkSpec { opportunities_ns: Some(vec![MS]), ..link("traced", 0, 1, None, 0) };
    let radio = LinkSpec { radio: Some(RadioSpec::Nr(nr())), ..link("radio", 0, 1, Some(1e6), 0) };
    let spec = network(vec![link("l", 0, 1, Some(1e6), 0), traced, radio]);
    let net = Network::new(&spec, &[], 1).expect("a valid network");
    let none = LinkChange::default;
    let jitter = |delay| Some(JitterSpec { delay, reorder: true });
    let constant = DelaySpec::Model(Dist::new("constant", json!({"span_ns": 0})).expect("a delay"));
    let code = DelaySpec::Code(Named::new("./mine.py:Delay", json!({})));
    for (l, change, refused) in [
        (0, LinkChange { rate_bps: Some(1.0), delay_ns: Some(LONGEST), ..none() }, ""),
        (0, LinkChange { rate_bps: Some(0.5), ..none() }, "links.l.rate_bps: 0.5 bit/s"),
        (1, LinkChange { rate_bps: Some(1.0), ..none() }, "links.traced.rate_bps: 1 bit/s"),
        (2, LinkChange { rate_bps: Some(1.0), ..none() }, "links.radio.rate_bps: 1 bit/s"),
        (1, LinkChange { delay_ns: Some(0), ..none() }, ""),
        (0, LinkChange { delay_ns: Some(-1), ..none() }, "links.l.delay_ns: -1 ns"),
        (0, LinkChange { jitter: jitter(constant), ..none() }, ""),
        (0, LinkChange { jitter: jitter(code), ..none() }, "links.l.jitter: code of your own"),
        (0, LinkChange { duplicate: Some(1.0), loss: Some(1.0), ..none() }, ""),
        (0, LinkChange { duplicate: Some(1.1), ..none() }, "links.l.duplicate: 1.1"),
        (0, LinkChange { loss: Some(-0.1), ..none() }, "links.l.loss: -0.1"),
        (3, none(), "links.number: 3"),
    ] {
        check(net.check_link(LinkId(l), &change), refused, change);
    }
}
