//! Rows made by hand with known answers.

use super::*;
use proptest::prelude::*;
use serde_json::{json, Value};
use tcps_core::record::{DropReason, Record, RECORD_BYTES};
use tcps_core::sample::{entry, exit, HELD};
use tcps_core::time::MS;

/// hand -> srv -> robot with a channel on each hop, one flow at 1 kHz, one probe.
fn plan(duration_ns: Time, extra: Value) -> Plan {
    let component = |name: &str, node: u16| json!({"name": name, "kind": name, "session": 0, "node": node});
    let mut plan = json!({
        "name": "test", "seed": 1, "duration_ns": duration_ns, "sessions": ["main"],
        "nodes": [{"name": "n0"}, {"name": "n1"}, {"name": "n2", "clock": {"offset_ns": 7000, "drift_ppb": 50_000}}],
        "components": [component("hand", 0), component("srv", 1), component("robot", 2)],
        "flows": [{
            "name": "kinematic", "session": 0, "direction": "forward", "period_ns": MS, "codec": "f32",
            "source": {"kind": "generated", "bytes": 24}, "sink": {"kind": "count"},
            "path": [{"component": 0, "channel": 0}, {"component": 1, "channel": 1}, {"component": 2}],
        }],
        "channels": [
            {"name": "c0", "session": 0, "a": 0, "b": 1, "transport": "udp"},
            {"name": "c1", "session": 0, "a": 1, "b": 2, "transport": "udp"},
        ],
        "network": {"vertices": ["n0", "n1", "n2"], "links": [
            {"name": "l1.forward", "from": 0, "to": 1}, {"name": "l2.forward", "from": 1, "to": 2},
        ]},
        "events": [{"at_ns": 5, "name": "wall", "action": {"kind": "reroute"}}],
    });
    if let (Some(into), Value::Object(extra)) = (plan.as_object_mut(), extra) {
        into.extend(extra);
    }
    serde_json::from_value(plan).unwrap()
}

/// Rows in a buffer, sorted by time as a recorder leaves them.
#[derive(Default)]
struct Tape(Vec<Record>);

impl Tape {
    fn row(&mut self, time_ns: Time, kind: Kind, index: u32, value: i64) -> &mut Record {
        self.0.push(Record { index, value, flow: 0, node: 0, ..Record::new(time_ns, kind) });
        self.0.last_mut().unwrap()
    }

    fn sent(&mut self, index: u32) {
        let time_ns = index as Time * MS;
        let row = self.row(time_ns, Kind::Sent, index, time_ns);
        (row.point, row.size) = (exit(0), 24);
    }

    fn delivered(&mut self, index: u32, delay_ns: i64) {
        let row = self.row(index as Time * MS + delay_ns, Kind::Delivered, index, delay_ns);
        (row.point, row.size) = (entry(2), 24);
    }

    /// A sample that spends `spans` on link, srv, link.
    fn whole(&mut self, index: u32, spans: [i64; 3]) {
        self.sent(index);
        let (a, b) = (spans[0], spans[0] + spans[1]);
        self.row(index as Time * MS + a, Kind::Enter, index, a).point = entry(1);
        self.row(index as Time * MS + b, Kind::Exit, index, b).point = exit(1);
        self.delivered(index, b + spans[2]);
    }

    fn bytes(mut self) -> Vec<u8> {
        self.0.sort_by_key(|r| r.time_ns);
        self.0.iter().flat_map(Record::to_bytes).collect()
    }

    fn analyse(self, plan: &Plan, options: &Options) -> Analysis {
        analyse(&self.bytes()[..], plan, options).unwrap()
    }
}

#[test]
fn a_lossy_duplicated_reordered_stream_is_counted_exactly() {
    let plan = plan(10 * SECOND, json!({}));
    let mut tape = Tape::default();
    for i in 0..10_000u32 {
        tape.sent(i);
        match i {
            // Lost on the link, in two fragments.
            _ if i % 100 == 7 => {
                for _ in 0..2 {
                    let row = tape.row(i as Time * MS + 1, Kind::Dropped, i, 1);
                    (row.point, row.detail) = (0, DropReason::Full as u8);
                }
            }
            // Overtaken by the next two.
            _ if i % 100 == 50 => tape.delivered(i, 5 * MS + MS / 2),
            _ if i % 100 == 60 => {
                tape.delivered(i, 3 * MS);
                tape.delivered(i, 4 * MS + 1);
            }
            _ => tape.delivered(i, 3 * MS),
        }
    }
    tape.row(9 * SECOND, Kind::Duplicate, 5, 0);
    let a = tape.analyse(&plan, &Options::default());
    let f = &a.flows[0];
    assert_eq!((f.sent, f.delivered), (10_000, 9_900));
    // [PROTOCOLS 1.5]: samples sent in the last second are not judged.
    assert_eq!((f.judged, f.lost, f.in_flight), (a_second_before(&a), 90, 10));
    assert_eq!((f.duplicated, f.duplicates_dropped), (101, 1));
    // [RFC 4737 §3.3]
    assert_eq!((f.reordering.reordered, f.reordering.max_extent), (100, 2));
    assert_eq!(f.drops, [flow::Drops { at: "l1.forward".into(), reason: "full", packets: 200 }]);
    let d = f.delay_ns.as_ref().unwrap();
    assert_eq!((d.min, d.max), (3e6, 5.5e6));
    assert_eq!(d.mean, (9_800.0 * 3e6 + 100.0 * 5.5e6) / 9_900.0);
    // [RFC 5481 §4.2]
    assert_eq!(f.pdv_ns.as_ref().unwrap().max, 2.5e6);
    // [RFC 3393 §2]: pairs of neighbours by number; two a hundred have no partner.
    let ipdv = f.ipdv_ns.as_ref().unwrap();
    assert_eq!((ipdv.n, ipdv.min, ipdv.max, ipdv.mean), (9_999 - 200, -2.5e6, 2.5e6, 0.0));
    assert_eq!(f.rate_bps, 9_900.0 * 24.0 * 8e9 / a.end_ns as f64);
    let lost: u64 = a.series.flows[0].lost.iter().sum();
    assert_eq!(lost, 90);
}

fn a_second_before(a: &Analysis) -> u64 {
    (a.end_ns - SECOND) as u64 / MS as u64 + 1
}

// [PROTOCOLS 6.1]
#[test]
fn the_means_along_the_path_add_up_to_the_mean_delay() {
    let plan = plan(SECOND * 5, json!({}));
    let mut tape = Tape::default();
    let mut x = 9u32;
    for i in 0..4000 {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let spans = [1_000_000 + (x >> 12) as i64, 333_333, 2_000_001 + (x >> 20) as i64];
        if i % 10 == 3 {
            tape.sent(i);
            tape.row(i as Time * MS + spans[0], Kind::Enter, i, spans[0]).point = entry(1);
        } else {
            tape.whole(i, spans);
        }
    }
    let f = &tape.analyse(&plan, &Options::default()).flows[0];
    assert_eq!((f.path.joined, f.path.unjoined), (3600, 0));
    let names: Vec<_> = f.path.segments.iter().map(|s| (s.what, s.name.as_str())).collect();
    assert_eq!(names, [("link", "hand -> srv"), ("component", "srv"), ("link", "srv -> robot")]);
    let means = f.path.segments.iter().map(|s| s.latency_ns.as_ref().unwrap().mean);
    let sum: f64 = means.sum();
    assert!((sum - f.delay_ns.as_ref().unwrap().mean).abs() < 1e-6, "{sum}");
    assert_eq!(f.path.segments[1].latency_ns.as_ref().unwrap().mean, 333_333.0);
    assert_eq!(f.path.segments[1].latency_ns.as_ref().unwrap().sd, 0.0);
    let points: Vec<_> = f.points.iter().map(|p| (p.point.as_str(), p.n)).collect();
    assert_eq!(points, [("hand.exit", 4000), ("srv.entry", 4000), ("srv.exit", 3600), ("robot.entry", 3600)]);
}

// [PROTOCOLS 1.4]
#[test]
fn stages_of_the_first_component_are_on_the_path_and_those_of_the_last_are_not() {
    let mut plan = plan(SECOND, json!({}));
    let work: crate::plan::StepPlan = serde_json::from_value(json!({"kind": "work"})).unwrap();
    plan.flows[0].path[0].steps.push(work.clone());
    plan.flows[0].path[2].steps.push(work);
    let mut tape = Tape::default();
    for i in 0..500 {
        tape.whole(i, [3 * MS, MS, MS]);
        tape.row(i as Time * MS + 2 * MS, Kind::Exit, i, 2 * MS).point = exit(0);
        tape.row(i as Time * MS + 9 * MS, Kind::Exit, i, 9 * MS).point = exit(2);
    }
    let f = &tape.analyse(&plan, &Options::default()).flows[0];
    let means: Vec<_> =
        f.path.segments.iter().map(|s| (s.name.as_str(), s.latency_ns.as_ref().unwrap().mean)).collect();
    assert_eq!(means, [("hand", 2e6), ("hand -> srv", 1e6), ("srv", 1e6), ("srv -> robot", 1e6)]);
    let last = f.points.last().unwrap();
    assert_eq!((last.point.as_str(), last.age_ns.as_ref().unwrap().mean), ("robot.exit", 9e6));
    assert_eq!((f.points[0].point.as_str(), f.points[0].n), ("hand.entry", 500));
}

#[test]
fn the_warm_up_is_left_out_of_numbers_and_kept_in_curves() {
    let plan = plan(3 * SECOND, json!({}));
    let mut tape = Tape::default();
    for i in 0..3000 {
        tape.whole(i, if i < 1000 { [20 * MS; 3] } else { [MS, MS, MS] });
    }
    let options = Options { warmup_ns: SECOND, ..Options::default() };
    let a = tape.analyse(&plan, &options);
    let f = &a.flows[0];
    assert_eq!((f.sent, f.delivered, f.lost), (2000, 2000, 0));
    assert_eq!(f.delay_ns.as_ref().unwrap().max, 3e6);
    assert_eq!(f.points[1].n, 2000);
    assert_eq!(a.series.flows[0].delay_max_ns.iter().flatten().max(), Some(&(60 * MS)));
    assert!((f.rate_bps - 192_000.0).abs() / 192_000.0 < 0.01);
    assert!(f.age_ns.as_ref().unwrap().mean < 10e6);
}

#[test]
fn a_superseded_sample_is_not_lost_and_an_interrupted_run_ends_at_its_last_row() {
    let plan = plan(100 * SECOND, json!({}));
    let mut tape = Tape::default();
    for i in 0..5000 {
        tape.sent(i);
        match i % 4 {
            0 => tape.row(i as Time * MS + 5, Kind::Superseded, i, 0).point = 1,
            1 => {}
            _ => tape.delivered(i, MS),
        }
    }
    let a = tape.analyse(&plan, &Options::default());
    assert_eq!(a.end_ns, 5 * SECOND);
    let f = &a.flows[0];
    assert_eq!((f.superseded, f.lost, f.in_flight), (1250, 1000, 250));
}

#[test]
fn samples_of_one_packet_are_one_arrival_for_jitter() {
    let plan = plan(SECOND, json!({}));
    let mut tape = Tape::default();
    for i in 0..400u32 {
        tape.sent(i);
        tape.delivered(i, (3 - (i as i64 % 4)) * MS + MS);
    }
    let f = &tape.analyse(&plan, &Options::default()).flows[0];
    assert_eq!((f.jitter.step_ns.max, f.jitter.rfc3550_ns), (0.0, 0.0));
    let gaps = f.interarrival_ns.as_ref().unwrap();
    assert_eq!((gaps.n, gaps.min, gaps.max), (99, 4e6, 4e6));
    assert_eq!(f.interarrival_fits, None);
    assert_eq!(f.ipdv_ns.as_ref().unwrap().min, -1e6);
}

// [PROTOCOLS 6.3]
#[test]
fn an_edge_predictor_splits_the_way_into_two_legs_with_losses_of_their_own() {
    // Samples come every 10 ms to srv, which gives one a millisecond; half of these are lost behind it.
    let mut plan = plan(10 * SECOND, json!({}));
    plan.flows[0].period_ns = 10 * MS;
    let step = json!({"kind": "predict", "period_ns": MS, "run": {"kind": "builtin", "name": "zoh"}});
    plan.flows[0].path[1].steps.push(serde_json::from_value(step).unwrap());
    let mut tape = Tape::default();
    for i in 0..1000u32 {
        let at = i as Time * 10 * MS;
        tape.row(at, Kind::Sent, i, at).point = exit(0);
        if i % 10 != 9 {
            tape.row(at + MS, Kind::Enter, i, MS).point = entry(1);
        }
        for k in 0..10u32 {
            let (index, age) = (i * 10 + k, (k as i64 + 2) * MS);
            tape.row(at + age, Kind::Exit, index, age).point = exit(1);
            if k % 2 == 0 {
                tape.row(at + age + 3 * MS, Kind::Delivered, index, age + 3 * MS).point = entry(2);
            }
        }
    }
    let f = &tape.analyse(&plan, &Options::default()).flows[0];
    assert_eq!((f.sent, f.delivered, &f.resampled_at[..]), (1000, 5000, &["srv".to_string()][..]));
    // Of those judged 10 % are lost before srv and 50 % behind it: 55 % do not make it.
    assert!((f.loss - 0.55).abs() < 1e-3, "{}", f.loss);
    assert_eq!(f.path.joined, 5000);
    let means: Vec<f64> = f.path.segments.iter().map(|s| s.mean_ns.unwrap()).collect();
    assert_eq!(means, [1e6, 5e6, 3e6]);
    assert_eq!(means.iter().sum::<f64>(), f.delay_ns.as_ref().unwrap().mean);
}

/// Three points asked in turn: entry and exit of srv, entry of the robot, and its movement.
fn probe() -> Value {
    json!({"probes": [{"flow": 0, "points": [exit(1), entry(1), entry(2), exit(2), HELD | 2], "period_ns": 10 * MS, "reply_to": 0}]})
}

/// Forward leg to each point of the probe.
const LEGS: [i64; 5] = [3 * MS, 2 * MS, 8 * MS, 8 * MS + 1000, 118 * MS];

fn echo(tape: &mut Tape, sequence: u32, one_way: bool) {
    let turn = sequence as usize % 5;
    // What troubles a whole round: an offset that only pairs cancel.
    let trouble = (sequence / 5 % 7) as i64 * 100_000;
    let forward = LEGS[turn] + trouble;
    let back = [2, 2, 7, 7, 7][turn] * MS;
    let point = [exit(1), entry(1), entry(2), exit(2), HELD | 2][turn];
    let at = sequence as Time * 10 * MS + forward + back;
    tape.row(at, Kind::Echo, sequence, forward + back).point = point;
    if one_way {
        tape.row(at, Kind::EchoForward, sequence, forward).point = point;
        tape.row(at, Kind::EchoReturn, sequence, back).point = point;
    }
}

// [PROTOCOLS 6.1] [Polachan 2022]
#[test]
fn differences_of_round_trips_halve_links_only_and_say_so() {
    let plan = plan(100 * SECOND, probe());
    let mut tape = Tape::default();
    (0..5000).filter(|s| s % 5 != 2 || s % 50 != 2).for_each(|s| echo(&mut tape, s, false));
    let a = tape.analyse(&plan, &Options::default());
    let e = &a.echo[0];
    let names: Vec<_> = e.points.iter().map(|p| p.point.as_str()).collect();
    assert_eq!(names, ["srv.entry", "srv.exit", "robot.entry", "robot.exit", "robot.held"]);
    let got: Vec<_> = e
        .differences
        .iter()
        .map(|d| (d.what, d.name.as_str(), d.halved, d.latency_ns.as_ref().unwrap().distribution.mean))
        .collect();
    assert_eq!(
        got,
        [
            ("component", "srv", false, 1e6),
            ("link", "srv -> robot", true, 5e6),
            ("component", "robot", false, 1e3),
            ("actuation", "robot", false, 110e6 - 1e3),
        ]
    );
    let link = &e.differences[1];
    assert_eq!(
        (link.source, link.round_trip_difference_ns.as_ref().unwrap().distribution.mean),
        ("round_trip", 10e6)
    );
    // Paired differences cancel what troubled the round: no spread is left.
    assert_eq!(e.differences[0].latency_ns.as_ref().unwrap().distribution.sd, 0.0);
    assert!(e.points[0].round_trip_ns.as_ref().unwrap().ci95.unwrap() > 0.0);
    assert_eq!(e.points[2].n, 900);
    assert_eq!((e.points[0].lost, e.points[4].lost), (0, 0));
    // The last of the 100 unanswered commands was given in the last second and is not judged.
    assert_eq!(e.points[2].lost, 99);
}

// [PROTOCOLS 6.1]
#[test]
fn one_way_stamps_are_taken_as_they_are() {
    let plan = plan(100 * SECOND, probe());
    let mut tape = Tape::default();
    (0..1000).for_each(|s| echo(&mut tape, s, true));
    let e = &tape.analyse(&plan, &Options::default()).echo[0];
    let link = &e.differences[1];
    assert_eq!((link.source, link.halved), ("one_way", false));
    assert_eq!(link.latency_ns.as_ref().unwrap().distribution.mean, 5e6);
    assert_eq!(e.points[2].forward_ns.as_ref().unwrap().distribution.min, 8e6);
    assert_eq!(e.points[2].return_ns.as_ref().unwrap().distribution.mean, 7e6);
}

#[test]
fn commands_of_the_warm_up_are_neither_answered_nor_lost() {
    let plan = plan(100 * SECOND, probe());
    let mut tape = Tape::default();
    (0..1000).filter(|s| s % 100 != 0).for_each(|s| echo(&mut tape, s, true));
    let options = Options { warmup_ns: 2 * SECOND, ..Options::default() };
    let e = &tape.analyse(&plan, &options).echo[0];
    // Commands 200, 300 .. 900 to the exit of srv stay unanswered; 0 and 100 were given in the warm-up.
    assert_eq!(e.points.iter().map(|p| p.lost).collect::<Vec<_>>(), [0, 8, 0, 0, 0]);
    // 160 commands to each point, and those to the robot's movement that were given just before and came just after.
    let answered: Vec<_> = e.points.iter().map(|p| p.n).collect();
    assert_eq!(answered, [160, 152, 160, 160, 163]);
    assert_eq!(e.points[1].forward_ns.as_ref().unwrap().distribution.n, e.points[1].n);
}

// [DECISIONS 5]
#[test]
fn a_superseded_command_is_not_lost() {
    let plan = plan(100 * SECOND, probe());
    let mut tape = Tape::default();
    for s in 0..5000 {
        match s % 50 {
            2 => tape.row(s as Time * 10 * MS + MS, Kind::EchoSuperseded, s, MS).point = entry(2),
            7 => {}
            _ => echo(&mut tape, s, true),
        }
    }
    let a = tape.analyse(&plan, &Options::default());
    let fates: Vec<_> = a.echo[0].points.iter().map(|p| (p.n, p.lost, p.superseded)).collect();
    assert_eq!(fates[2].2, 100);
    assert!((98..=100).contains(&fates[2].1) && fates[2].0 + fates[2].1 + fates[2].2 >= 998, "{fates:?}");
    assert!(fates.iter().enumerate().all(|(i, f)| i == 2 || (f.1, f.2) == (0, 0)), "{fates:?}");
}

#[test]
fn copies_of_an_echo_answer_once_and_silence_is_counted_from_the_plan() {
    let plan_ = plan(10 * SECOND, probe());
    let mut tape = Tape::default();
    for _ in 0..2 {
        (0..100).for_each(|s| echo(&mut tape, s, true));
    }
    let e = &tape.analyse(&plan_, &Options::default()).echo[0];
    assert_eq!(e.points.iter().map(|p| p.n).collect::<Vec<_>>(), [20; 5]);
    let mut silent = Tape::default();
    silent.sent(9_999);
    let e = &silent.analyse(&plan_, &Options::default()).echo[0];
    // 10 ms apart up to 8.999 s: 900 commands, 180 for each point.
    assert_eq!(e.points.iter().map(|p| p.lost).collect::<Vec<_>>(), [180; 5]);
}

// [RFC 5905 §8]
#[test]
fn queues_clocks_nodes_and_events_are_reported() {
    let plan = plan(10 * SECOND, json!({}));
    let mut tape = Tape::default();
    for i in 0..10i64 {
        let row = tape.row(i * SECOND, Kind::Queue, 2, 800_000);
        (row.point, row.size) = (1, 100 * i as u32);
        // n0 estimates n2, whose clock is 7 us + 50 ppm ahead, and errs by 300 ns.
        let row = tape.row(i * SECOND, Kind::Sync, 0, 7_300 + 50_000 * i);
        (row.node, row.point, row.size) = (0, 2, 20_000 - i as u32);
    }
    tape.row(SECOND, Kind::Gap, 0, 2_500_000).node = 1;
    tape.row(SECOND, Kind::Late, 0, 40_000).node = 1;
    tape.row(5, Kind::Event, 0, 0);
    tape.row(6, Kind::Verified, 0, 0).detail = 1;
    tape.row(7, Kind::Verified, 1, 0);
    let a = tape.analyse(&plan, &Options::default());
    assert_eq!((a.queues[0].link.as_str(), a.queues[0].bytes.as_ref().unwrap().mean), ("l2.forward", 450.0));
    assert_eq!(a.series.queues[0].bytes.iter().flatten().count(), 10);
    let c = &a.clocks[0];
    assert_eq!((c.node.as_str(), c.peer.as_str(), c.bound_ns, c.true_error_ns), ("n0", "n2", 19_991, 300));
    assert!((c.drift_ppm.unwrap() - 50.0).abs() < 1e-9);
    assert_eq!((a.nodes[0].name.as_str(), a.nodes[0].gaps, a.nodes[0].longest_gap_ns), ("n1", 1, 2_500_000));
    assert_eq!(a.events[0].name, "wall");
    assert_eq!((a.flows[0].verified.good, a.flows[0].verified.bad), (1, 1));
}

/// Rows of `samples` samples over two hops, made while they are read.
struct Endless {
    next: u32,
    samples: u32,
    rows: Vec<u8>,
    at: usize,
}

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.at == self.rows.len() {
            self.rows.clear();
            self.at = 0;
            if self.next < self.samples {
                let mut tape = Tape::default();
                let jitter = (self.next.wrapping_mul(2_654_435_761) >> 14) as i64;
                tape.whole(self.next, [200_000 + jitter, 50_000, 300_000]);
                self.rows = tape.bytes();
                self.next += 1;
            }
        }
        let n = out.len().min(self.rows.len() - self.at);
        out[..n].copy_from_slice(&self.rows[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[test]
fn memory_does_not_grow_with_the_run() {
    let plan = plan(SECOND, json!({}));
    let mut analyser = Analyser::new(&plan, Options::default());
    let mut at = Vec::new();
    for samples in [100_000, 1_250_000] {
        let next = if samples == 100_000 { 0 } else { 100_000 };
        let source = Endless { next, samples, rows: Vec::new(), at: 0 };
        rows::Rows::new(source).for_each(|row| analyser.take(row)).unwrap();
        at.push(analyser.heap_bytes());
    }
    assert_eq!(at[0], at[1], "after 4e5 and after 5e6 rows");
    let a = analyser.finish(0);
    assert_eq!((a.rows, a.flows[0].path.joined), (5_000_000, 1_250_000));
    assert!(a.series.t_s.len() <= 400);
}

#[test]
fn a_torn_and_strange_file_is_read_to_its_end() {
    let plan = plan(SECOND, json!({}));
    let mut tape = Tape::default();
    tape.whole(0, [MS; 3]);
    tape.row(1, Kind::Delivered, 3, 5).flow = 77;
    let mut bytes = tape.bytes();
    bytes.extend([0xff; RECORD_BYTES + 11]);
    let a = analyse(&bytes[..], &plan, &Options::default()).unwrap();
    assert_eq!((a.rows, a.strange_rows, a.torn_bytes), (6, 2, 11));
    assert_eq!(a.flows[0].delivered, 1);
}

#[test]
fn a_number_that_changed_on_the_way_spoils_no_other_sample() {
    let plan = plan(2 * SECOND, json!({}));
    let mut tape = Tape::default();
    for i in 0..2000 {
        tape.whole(i, [MS, MS, MS]);
    }
    // The highest bit of sample 100 changed behind srv: it arrives as another one, which nobody sent.
    tape.0.retain(|r| r.index != 100 || r.kind != Kind::Delivered);
    let row = tape.row(103 * MS, Kind::Delivered, 100 | 1 << 31, 3 * MS);
    row.point = entry(2);
    let a = tape.analyse(&plan, &Options::default());
    let f = &a.flows[0];
    assert_eq!((f.sent, f.lost, f.beyond_window, a.strange_rows), (2000, 1, 0, 1));
    assert_eq!(f.delivered, 1999);
}

fn any_row() -> impl Strategy<Value = [u8; RECORD_BYTES]> {
    let small = prop_oneof![0u16..6, Just(u16::MAX), Just(HELD | 2), any::<u16>()];
    let index = prop_oneof![4 => 0u32..2000, 1 => any::<u32>()];
    let time = prop_oneof![4 => 0i64..4_000_000_000, 1 => any::<i64>()];
    let value = prop_oneof![2 => 0i64..50_000_000, 1 => any::<i64>()];
    (time, value, index, any::<u32>(), (0u16..2, small, 0u16..4), 0u8..21, any::<u8>()).prop_map(
        |(time_ns, value, index, size, (flow, point, node), kind, detail)| {
            let row =
                Record { value, index, size, flow, point, node, detail, ..Record::new(time_ns, Kind::Sent) };
            let mut bytes = row.to_bytes();
            bytes[30] = kind;
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_rows_never_panic_and_samples_are_conserved(rows in prop::collection::vec(any_row(), 0..300)) {
        let plan = plan(2 * SECOND, probe());
        let options = Options { warmup_ns: 100 * MS, bins: 5, ..Options::default() };
        let a = analyse(&rows.concat()[..], &plan, &options).unwrap();
        let f = &a.flows[0];
        prop_assert_eq!(a.rows as usize, rows.len());
        prop_assert!(f.lost <= f.judged && f.judged <= f.sent);
        prop_assert!(f.judged + f.in_flight <= f.sent);
        prop_assert!(serde_json::to_string(&a).is_ok());
    }
}

#[test]
fn the_curve_of_merging_is_the_mean_over_time_of_what_packets_held() {
    let plan = plan(10 * SECOND, json!({}));
    let mut tape = Tape::default();
    (0..9_900).for_each(|i| tape.whole(i, [MS, MS, MS]));
    for (at_ns, k) in [(0, 1), (5 * SECOND + 10 * MS, 4), (6 * SECOND, 3)] {
        tape.row(at_ns, Kind::Merging, 0, k);
    }
    let options = Options { bins: 500, ..Options::default() };
    let a = tape.analyse(&plan, &options);
    let (bin_s, curve) = (a.series.bin_s, &a.series.flows[0].fragments);
    assert_eq!(bin_s, 0.02);
    let at = |s: f64| curve[(s / bin_s) as usize];
    assert_eq!([at(1.0), at(5.03), at(7.0)], [Some(1.0), Some(4.0), Some(3.0)]);
    assert!((at(5.001).unwrap() - 2.5).abs() < 1e-9, "half of the bin 1, half 4");
}
