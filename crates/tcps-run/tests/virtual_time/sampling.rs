//! Samplers, sources with buffers, and the ratio of signal to noise, in runs.

use crate::common::{chain, of, simulate, MS};
use serde_json::json;
use tcps_analysis::{analyse, Options};
use tcps_core::record::Kind;
use tcps_plan::Plan;

#[test]
fn what_a_sampler_keeps_back_is_suppressed_and_not_lost_and_tagged_samples_go() {
    // [Hinterseer 2008: deadband] [design: echo commands]: every echo command is answered although one sample in ten goes.
    let mut plan = chain();
    plan["flows"][0]["sink"] = json!({"kind": "count"});
    plan["flows"][0]["path"][0]["steps"] = json!([{"kind": "code", "run": {"kind": "builtin", "name": "uniform", "symbol": "", "params": {"every": 10}}}]);
    plan["probes"] = json!([{"flow": 0, "points": [2], "period_ns": 7 * MS, "reply_to": 0}]);
    let (_, rows) = simulate(&plan, "sampler");
    let went: Vec<u32> = of(&rows, Kind::Exit).iter().filter(|r| r.point == 1).map(|r| r.index).collect();
    assert_eq!(went.len(), (0..1000).filter(|i| i % 10 == 0 || i % 7 == 0).count());
    assert_eq!(of(&rows, Kind::Suppressed).len(), 1000 - went.len());
    assert!(of(&rows, Kind::Suppressed).iter().all(|r| r.point == 0 && r.flow.0 == 0));
    assert_eq!((of(&rows, Kind::Dropped).len(), of(&rows, Kind::Echo).len()), (0, 142));
    let plan: Plan = serde_json::from_value(plan).unwrap();
    let bytes: Vec<u8> = rows.iter().flat_map(|r| r.to_bytes()).collect();
    let options = Options { grace_ns: 100 * MS, ..Default::default() };
    let flow = &analyse(&bytes[..], &plan, &options).unwrap().flows[0];
    assert_eq!((flow.lost, flow.suppressed), (0, 1000 - went.len() as u64));
}

#[test]
fn a_source_with_one_buffer_copies_then_sends_and_with_two_copies_while_sending() {
    // [Al-Mouhamed] 24 ms of copying in one component, 25.6 ms on the link in the next: period = sum, or maximum.
    let period_ms = |buffers: u32| {
        let mut plan = chain();
        plan["duration_ns"] = json!(3000 * MS);
        plan["components"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "com", "kind": "ms-com", "session": 0, "node": 0}));
        plan["flows"][0]["buffers"] = json!(buffers);
        plan["flows"][0]["blocking_send"] = json!(true);
        plan["flows"][0]["codec"] = json!("raw");
        plan["flows"][0]["source"] = json!({"kind": "generated", "bytes": 300_000});
        let copy = json!([{"kind": "work", "cost": {"kind": "constant", "span_ns": 24 * MS}}]);
        plan["flows"][0]["path"] = json!([
            {"component": 0, "steps": copy}, {"component": 3, "channel": 0}, {"component": 1, "channel": 1}, {"component": 2}]);
        plan["network"]["links"][0]["rate_bps"] = json!(100_000_000);
        let (_, rows) = simulate(&plan, &format!("buffers{buffers}"));
        let at: Vec<i64> = of(&rows, Kind::Delivered).iter().map(|r| r.time_ns).collect();
        assert!(at.len() > 20, "{}", at.len());
        let steps: Vec<i64> = at.windows(2).map(|w| (w[1] - w[0]) / MS).collect();
        (*steps.iter().min().unwrap(), *steps.iter().max().unwrap())
    };
    assert_eq!((period_ms(1), period_ms(2)), ((50, 50), (25, 25)));
}

#[test]
fn the_ratio_of_signal_to_noise_is_that_of_holding_every_tenth_sample() {
    // [Gokhale 2017: SNR] A triangle of period 1 s and height 1, held for 10 ms: steps of 0.004, signal 1/3.
    let mut plan = chain();
    plan["signals"] = json!([0, 5]);
    plan["flows"][0]["sink"] = json!({"kind": "count"});
    plan["flows"][0]["path"][0]["steps"] = json!([{"kind": "code", "run": {"kind": "builtin", "name": "uniform", "symbol": "", "params": {"every": 10}}}]);
    let (_, rows) = simulate(&plan, "snr");
    let plan: Plan = serde_json::from_value(plan).unwrap();
    let bytes: Vec<u8> = rows.iter().flat_map(|r| r.to_bytes()).collect();
    let analysis = analyse(&bytes[..], &plan, &Default::default()).unwrap();
    let got = analysis.flows[0].snr_db.unwrap();
    let noise: f64 = (0..10).map(|i| 0.004 * f64::from(i)).map(|x| x * x).sum::<f64>() / 10.0;
    assert!((got - 10.0 * libm::log10(1.0 / 3.0 / noise)).abs() < 0.1, "{got}");
}
