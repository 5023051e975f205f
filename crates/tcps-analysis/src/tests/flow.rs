//! Numbers of a flow.

use super::*;
use crate::flow_report::Drops;
use tcps_core::record::DropReason;

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
    // [Gokhale 2017: jitters]: samples sent in the last second are not judged.
    assert_eq!((f.judged, f.lost, f.in_flight), (a_second_before(&a), 90, 10));
    assert_eq!((f.duplicated, f.duplicates_dropped), (101, 1));
    // [RFC 4737 §3.3]
    assert_eq!((f.reordering.reordered, f.reordering.max_extent), (100, 2));
    assert_eq!(f.drops, [Drops { at: "l1.forward".into(), reason: "full", packets: 200 }]);
    let d = f.delay_ns.as_ref().unwrap();
    assert_eq!((d.min, d.max), (3e6, 5.5e6));
    assert_eq!(d.mean, (9_800.0 * 3e6 + 100.0 * 5.5e6) / 9_900.0);
    // [RFC 5481 §4.2]
    let pdv = f.pdv_ns.as_ref().unwrap();
    assert_eq!((pdv.min, pdv.max), (0.0, 2.5e6));
    // [RFC 3393 §2]: pairs of neighbours by number; two a hundred have no partner.
    let ipdv = f.ipdv_ns.as_ref().unwrap();
    assert_eq!((ipdv.n, ipdv.min, ipdv.max, ipdv.mean), (9_999 - 200, -2.5e6, 2.5e6, 0.0));
    assert_eq!(f.rate_bps, 9_900.0 * 24.0 * 8e9 / a.end_ns as f64);
    let lost: u64 = a.series.flows[0].lost.iter().sum();
    assert_eq!(lost, 90);
}

/// One from before the run and one from the future, sent by a stranger or by a clock that was put forward or back.
#[test]
fn a_sample_with_an_absurd_origin_is_counted_and_has_no_delay() {
    let numbers = |absurd: &[(u32, Time)], extra: Value| {
        let mut tape = Tape::default();
        for i in 0..2_000u32 {
            let spans = [MS, MS, MS].map(Time::from);
            tape.whole(i, spans);
            let Some((_, origin_ns)) = absurd.iter().find(|(of, _)| *of == i) else { continue };
            for row in tape.0.iter_mut().rev().take(3) {
                row.value = row.time_ns.saturating_sub(*origin_ns);
            }
        }
        tape.analyse(&plan(2 * SECOND, extra), &Options::default()).flows.remove(0)
    };
    let far = [(500, Time::MIN), (501, Time::MAX), (600, -SECOND), (700, SECOND)];
    let f = numbers(&far, json!({}));
    assert_eq!((f.delivered, f.undated, f.lost), (2_000, 4, 0));
    let delay = f.delay_ns.as_ref().unwrap();
    assert_eq!((delay.n, delay.min, delay.max), (1_996, 3e6, 3e6));
    assert_eq!(f.path.joined, 1_996);
    assert_eq!(f.ipdv_ns.unwrap().max, 0.0);
    assert!(f.age_ns.unwrap().max < 7e6);
    assert!(f.points.iter().flat_map(|at| &at.age_ns).all(|age| age.max <= 3e6));
    let stepped = json!({"events": [{"at_ns": SECOND, "name": "step", "action": {"kind": "clock", "node": 2, "step_ns": SECOND}}]});
    assert_eq!(numbers(&far, stepped).undated, 2, "what the clocks of the scenario explain has a delay");
    let near = [(500, 500 * MS + 50 * MS), (50, -MS)];
    assert_eq!(numbers(&near, json!({})).undated, 0, "clocks may differ a little");
}

fn a_second_before(a: &Analysis) -> u64 {
    (a.end_ns - SECOND) as u64 / MS as u64 + 1
}

// [Polachan 2022: echoes]
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
    assert_eq!(f.path.joined, 3600);
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

// [Gokhale 2017: delay]
#[test]
fn stages_of_the_first_component_are_on_the_path_and_those_of_the_last_are_not() {
    let mut plan = plan(SECOND, json!({}));
    let work: tcps_plan::StepPlan = serde_json::from_value(json!({"kind": "work"})).unwrap();
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
        let came = i as Time * MS + if i < 1000 { 60 * MS } else { 3 * MS };
        tape.row(came, Kind::Verified, i, 0).detail = 1;
    }
    let options = Options { warmup_ns: SECOND, ..Options::default() };
    let a = tape.analyse(&plan, &options);
    let f = &a.flows[0];
    assert_eq!((f.sent, f.delivered, f.lost), (2000, 2000, 0));
    assert_eq!(
        f.verified.good, 2000,
        "those that were sent before it count nowhere, though they came behind it"
    );
    assert_eq!(f.delay_ns.as_ref().unwrap().max, 3e6);
    assert_eq!((f.points[0].n, f.points[1].n), (2000, 2000));
    let curve = &a.series.flows[0].delay_max_ns;
    assert_eq!(curve.iter().flatten().max(), Some(&(60 * MS)));
    let at = |s: f64| curve[(s / a.series.bin_s) as usize];
    assert_eq!([at(0.03), at(0.5), at(2.0)], [None, Some(60 * MS), Some(3 * MS)]);
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

// [Polachan 2022: edge]
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

// [Gokhale 2017: SNR]
#[test]
fn behind_an_edge_predictor_the_ratio_looks_for_the_newest_by_time_and_not_by_number() {
    let mut plan = plan(10 * SECOND, json!({"signals": [entry(0), exit(2), held(2)]}));
    plan.flows[0].period_ns = 10 * MS;
    let step = json!({"kind": "predict", "period_ns": MS, "run": {"kind": "builtin", "name": "zoh"}});
    plan.flows[0].path[1].steps.push(serde_json::from_value(step).unwrap());
    let mut tape = Tape::default();
    let signal = |tape: &mut Tape, at: Time, index: u32, point: u16, value: f64| {
        tape.row(at, Kind::Signal, index, value.to_bits() as i64).point = point;
    };
    for i in 0..500u32 {
        let (at, sign) = (i as Time * 10 * MS, if i % 2 == 0 { 1.0 } else { -1.0 });
        tape.row(at, Kind::Sent, i, at).point = exit(0);
        signal(&mut tape, at, i, entry(0), 10.0 * sign);
        tape.row(at + MS, Kind::Enter, i, MS).point = entry(1);
        for k in 0..10u32 {
            let (index, age) = (i * 10 + k, (k as i64 + 2) * MS);
            tape.row(at + age, Kind::Exit, index, age).point = exit(1);
            tape.row(at + age + 3 * MS, Kind::Delivered, index, age + 3 * MS).point = entry(2);
            signal(&mut tape, at + age + 3 * MS, index, exit(2), 9.0 * sign);
            signal(&mut tape, at + age + 3 * MS + 1, index, held(2), 77.0); // where the robot is, not what is displayed
        }
    }
    let f = &tape.analyse(&plan, &Options::default()).flows[0];
    assert!((f.snr_db.unwrap() - 20.0).abs() < 1e-9, "off by a tenth: {:?}", f.snr_db);
}

/// 1000 samples, one every 10 ms; srv gives one a millisecond, of which the first of ten is made of a new one.
pub(super) fn repeating(delay: Time) -> (Plan, Tape) {
    let mut plan = plan(10 * SECOND, json!({}));
    plan.flows[0].period_ns = 10 * MS;
    let step = json!({"kind": "predict", "period_ns": MS, "run": {"kind": "builtin", "name": "supervisor"}});
    plan.flows[0].path[1].steps.push(serde_json::from_value(step).unwrap());
    let mut tape = Tape::default();
    for i in 0..1000u32 {
        let at = i as Time * 10 * MS;
        tape.row(at, Kind::Sent, i, at).point = exit(0);
        tape.row(at + delay, Kind::Enter, i, delay).point = entry(1);
        for k in 0..10u32 {
            let (index, age) = (i * 10 + k, delay + k as Time * MS);
            let row = tape.row(at + age, Kind::Renumbered, index, i as i64);
            (row.point, row.detail) = (1, u8::from(k == 0));
            tape.row(at + age, Kind::Exit, index, age).point = exit(1);
            let row = tape.row(at + age, Kind::Delivered, index, age);
            (row.point, row.size) = (entry(2), 24);
        }
    }
    (plan, tape)
}

// [Kaul 2012 §II]
#[test]
fn what_a_periodic_stage_repeats_has_an_age_and_no_latency() {
    let (plan, tape) = repeating(MS);
    let mut a = tape.analyse(&plan, &Options::default());
    let f = a.flows.swap_remove(0);
    assert_eq!((f.sent, f.delivered, f.repeated, f.lost), (1000, 1000, 9000, 0));
    let delay = f.delay_ns.unwrap();
    assert_eq!((delay.min, delay.mean, delay.max), (1e6, 1e6, 1e6), "nothing but the way");
    assert_eq!(f.jitter.step_ns.max, 0.0);
    assert_eq!((f.path.joined, f.path.segments.iter().map(|s| s.mean_ns.unwrap()).sum::<f64>()), (1000, 1e6));
    let age = f.age_ns.unwrap();
    assert!((age.mean - 6e6).abs() < 1e4 && age.max >= 11e6, "{age:?}");
    assert_eq!(f.interarrival_ns.unwrap().mean, 1e6, "packets come once a period all the same");
    let curve = a.series.flows[0].rate_bps.iter().sum::<f64>() * a.series.bin_s / 8.0;
    assert!((curve - 240_000.0).abs() < 1e-3, "bytes of every packet: {curve}");
    assert_eq!(f.rate_bps, 240_000.0 * 8e9 / a.end_ns as f64);
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

#[test]
fn what_is_dropped_has_the_name_of_the_place_that_its_reason_means() {
    let plan = plan(10 * SECOND, json!({}));
    let mut tape = Tape::default();
    for reason in [DropReason::Full, DropReason::Hook, DropReason::Unkeyed] {
        let row = tape.row(1, Kind::Dropped, 0, 1);
        (row.point, row.detail) = (1, reason as u8);
    }
    let f = &tape.analyse(&plan, &Options::default()).flows[0];
    let places: Vec<_> = f.drops.iter().map(|d| (d.at.as_str(), d.reason)).collect();
    assert_eq!(places, [("l2.forward", "full"), ("srv", "hook"), ("c1", "unkeyed")]);
}

#[test]
fn only_the_row_of_its_source_says_that_a_sample_was_sent() {
    let plan = plan(10 * SECOND, json!({}));
    let mut tape = Tape::default();
    for i in 0..100 {
        if i < 90 {
            tape.whole(i, [MS, MS, MS]);
        }
        tape.row(i as Time * MS, Kind::Exit, i, 0).point = exit(0);
    }
    let f = &tape.analyse(&plan, &Options { grace_ns: 0, ..Options::default() }).flows[0];
    assert_eq!((f.sent, f.delivered, f.lost, f.points[0].n), (90, 90, 0, 90));
}
