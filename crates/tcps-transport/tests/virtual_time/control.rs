//! The rate controllers that have feedback or an action of their own, each in its endpoint between two ends.

use crate::{
    boxed::boxed,
    pair::{Boxed, Conditions, Pair},
    session::meta,
};
use serde_json::{json, Value};
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    ids::{FlowId, NodeId},
    rate::{Feedback, RateController, Sent},
    record::Kind,
    sample::{Echo, Meta, PointId},
    time::{NodeClock, Time, MS, SECOND, US},
};
use tcps_transport::{led, ChannelContext, Side};

const KINEMATIC: u16 = 0;
const HAPTIC: u16 = 1;
const AUDIO: u16 = 2;
const VIDEO: u16 = 3;
const STILL: Conditions = Conditions { latency_ns: 15 * MS, jitter_ns: 0, loss: 0.0, duplication: 0.0 };

/// The client sends force, sound and picture, the server commands.
fn pair(name: &str, params: &Value, forward: Conditions) -> Pair<Boxed, Boxed> {
    let context = ChannelContext::of(&[
        (KINEMATIC, Side::A, "kinematic"),
        (HAPTIC, Side::B, "haptic"),
        (AUDIO, Side::B, "audio"),
        (VIDEO, Side::B, "video"),
    ]);
    let side = |side| boxed(name, params, side, &context);
    Pair::new(5, side(Side::A), side(Side::B), forward, STILL)
}

/// A force of three values.
fn force(newtons: f32) -> Vec<u8> {
    [newtons, 0.0, 0.0].map(f32::to_be_bytes).concat()
}

/// Millisecond `i` of a session: force in each, a frame of sound in 20 and of a picture in 40.
fn tick(pair: &mut Pair<Boxed, Boxed>, i: u32, newtons: f32) {
    pair.run_until(Time::from(i) * MS);
    let now = pair.client.clock.read(pair.time);
    if i.is_multiple_of(20) {
        pair.send(meta(AUDIO, i / 20, now), &[1; 160]);
    }
    if i.is_multiple_of(40) {
        pair.send(meta(VIDEO, i / 40, now), &[2; 2000]);
    }
    pair.send(meta(HAPTIC, i, now), &force(newtons));
    pair.send_back(meta(KINEMATIC, i, pair.server.clock.read(pair.time)), &[3; 24]);
}

/// Fragments a packet, as the rows tell.
fn merging(pair: &Pair<Boxed, Boxed>) -> i64 {
    pair.client.records.iter().rev().find(|r| r.kind == Kind::Merging).map_or(1, |r| r.value)
}

fn left_out(pair: &Pair<Boxed, Boxed>) -> usize {
    pair.client.records.iter().filter(|r| r.kind == Kind::Suppressed).count()
}

fn arrived(pair: &Pair<Boxed, Boxed>, flow: u16) -> usize {
    pair.server.delivered.iter().filter(|(d, _)| d.meta.flow.0 == flow).count()
}

/// A queue of 60 ms that grows from 1 s on by `slope_us` a ms and is gone at 2.5 s; k at each ms.
fn congestion(pair: &mut Pair<Boxed, Boxed>, slope_us: Time, end_ms: u32) -> Vec<i64> {
    let mut ks = Vec::new();
    for i in 0..end_ms {
        let grown_ns = Time::from(i.saturating_sub(1000)) * slope_us * US;
        let noise_ns = Time::from(i * 7919 % 5) * 10 * US;
        let queue_ns = if i < 2500 { grown_ns.min(60 * MS) } else { 0 };
        pair.client.sends.latency_ns = 15 * MS + noise_ns + queue_ns;
        tick(pair, i, 1.0 + i as f32);
        ks.push(merging(pair));
    }
    ks
}

// [Kokkonis 2015] [model: approximations]
#[test]
fn nafcah_probes_100_times_a_second_and_merges_by_the_round_trip() {
    let mut p = pair("nafcah", &Value::Null, STILL);
    p.client.clock = NodeClock { offset_ns: 3 * SECOND, drift_ppb: 0 };
    let ks = congestion(&mut p, 100, 3000);
    assert!(ks[..1000].iter().all(|k| *k == 1));
    let first = ks.iter().position(|k| *k == 2).unwrap();
    assert!((1100..1300).contains(&first), "{first}: 9 probes of 10 ms and half a round trip");
    assert_eq!(ks.iter().max(), Some(&4));
    let probes = p.client.transmitted.iter().filter(|t| t.wire_bytes == 62);
    assert!(probes.clone().all(|t| t.flow.0 == HAPTIC), "they are counted where their sender's packets are");
    let probes = probes.count();
    assert!((2 * 290..=2 * 300).contains(&probes), "{probes}: its own and its answers");
    assert_eq!(p.server.endpoint.stats().malformed + p.client.endpoint.stats().malformed, 0);
}

// [Wirz 2008] [model: approximations]
#[test]
fn etp_leaves_samples_out_under_congestion_and_loses_no_sound() {
    let mut p = pair("etp", &Value::Null, STILL);
    congestion(&mut p, 300, 6000);
    let rows = p.client.records.iter().filter(|r| r.kind == Kind::Suppressed);
    assert!(rows.clone().all(|r| r.flow.0 == HAPTIC));
    let times: Vec<u32> = rows.map(|r| r.index).collect();
    assert!(times.first().is_some_and(|i| (1000..1100).contains(i)), "{:?}", times.first());
    let late = times.iter().filter(|i| (1500..2500).contains(*i)).count();
    assert!(late > 1000 * 14 / 16, "{late}: one in 16 ms");
    let last = times.last().copied().unwrap_or_default();
    assert!((3500..5500).contains(&last), "{last}: 8 headers and a round trip for each of 15 steps");
    assert!(
        arrived(&p, HAPTIC) + times.len() >= 6000 - 20,
        "what was not left out has come, or is on its way"
    );
    assert!(
        arrived(&p, AUDIO) >= 296 && arrived(&p, VIDEO) >= 145,
        "{} {}",
        arrived(&p, AUDIO),
        arrived(&p, VIDEO)
    );
}

// [Polachan 2022: echoes]
#[test]
fn a_sample_with_an_echo_command_is_never_left_out() {
    for name in ["etp", "pahcp"] {
        let mut p = pair(name, &Value::Null, STILL);
        let echo =
            |sequence| Some(Echo { target: PointId(5), sequence, reply_to: NodeId(1), injected_ns: 3 });
        for i in 0..2000u32 {
            p.run_until(Time::from(i) * MS);
            p.client.sends.latency_ns = 15 * MS + Time::from(i.min(500)) * 100 * US;
            let tagged = Meta { echo: (i % 7 == 0).then(|| echo(i)).flatten(), ..meta(HAPTIC, i, p.time) };
            p.send(tagged, &force(1.0));
            p.send_back(meta(KINEMATIC, i, p.time), &[3; 24]);
        }
        p.run_until(3 * SECOND);
        let tags = p.server.delivered.iter().filter(|(d, _)| d.meta.echo.is_some()).count();
        assert_eq!(tags, 2000usize.div_ceil(7), "{name}");
        assert!(left_out(&p) > 200, "{name}: {}", left_out(&p));
    }
}

// [Gokhale 2018] [model: approximations]
#[test]
fn napas_merges_as_dpm_but_holds_a_sparse_sample_for_4_ms_at_most() {
    let longest = |name: &str| {
        let mut p = pair(name, &json!({"settle": "never"}), STILL);
        for i in 0..3000u32 {
            let grown_ns = Time::from(i) * 50 * US;
            p.run_until(Time::from(i) * MS);
            p.client.sends.latency_ns = 15 * MS + grown_ns;
            if i < 1000 || i % 3 == 0 {
                p.send(meta(HAPTIC, i, p.time), &force(1.0 + i as f32));
            }
            p.send_back(meta(KINEMATIC, i, p.time), &[3; 24]);
        }
        assert_eq!(merging(&p), 4, "{name}");
        let mut arrivals: Vec<_> = p.server.delivered.iter().filter(|(d, _)| d.meta.index > 1000).collect();
        arrivals.retain(|(d, _)| d.meta.flow.0 == HAPTIC);
        let waits = arrivals.iter().map(|(d, _)| {
            let left_ns = d.received_ns - d.meta.origin_ns;
            // Of the delay, what is neither the way nor its growth until the packet left.
            left_ns - 15 * MS - Time::from(d.meta.index) * 50 * US
        });
        waits.max().unwrap()
    };
    let (napas, dpm) = (longest("napas"), longest("dpm"));
    assert!((3 * MS..5 * MS).contains(&napas), "{napas}");
    assert!(dpm > 8 * MS, "{dpm}: four samples 3 ms apart");
}

// [Eid 2011] [Lee 2007] [model: PAHCP] [model: approximations] [Hinterseer 2008: deadband]
#[test]
fn pahcp_leaves_out_what_nobody_feels_and_more_of_it_under_congestion() {
    let mut p = pair("pahcp", &Value::Null, STILL);
    let mut at = [0; 3];
    for i in 0..3000u32 {
        p.client.sends.latency_ns = 15 * MS + if i >= 1000 { 20 * MS } else { 0 };
        tick(&mut p, i, 1.0 + (i % 300).abs_diff(150) as f32 / 75.0);
        at[i as usize / 1000] = left_out(&p);
    }
    let (calm, congested) = (at[0], at[2] - at[1]);
    assert!(calm > 700 && congested > calm + 50, "{calm} {congested} of 1000");
    assert!(p.client.transmitted.iter().all(|t| t.wire_bytes <= 1200 + 62 + 13), "within the MTU");
    assert!(
        arrived(&p, AUDIO) >= 146 && arrived(&p, VIDEO) >= 68,
        "{} {}",
        arrived(&p, AUDIO),
        arrived(&p, VIDEO)
    );
}

/// A controller as a user writes it: three samples a packet, 2 Mbit/s, and a fault in its third packet.
#[derive(Default)]
struct Own {
    packets: u32,
}

impl RateController for Own {
    fn feedback(&mut self, _now: Time, _feedback: &Feedback) {}

    fn sent(&mut self, _now: Time, _packet: &Sent) {
        self.packets += 1;
    }

    fn fragments(&mut self, _now: Time) -> u8 {
        3
    }

    fn rate_bps(&self) -> Option<f64> {
        Some(2e6)
    }

    fn failure(&self) -> Option<String> {
        (self.packets > 2).then(|| "division by zero".into())
    }
}

/// A run that went on without it would show results of no controller under its name.
#[test]
fn a_controller_of_the_users_rules_and_its_failure_is_that_of_its_endpoint() {
    let context = ChannelContext::of(&[(KINEMATIC, Side::A, "kinematic"), (HAPTIC, Side::B, "haptic")]);
    let code = json!({"path": "mine.py", "name": "Own"});
    for (name, params, samples) in [
        ("telehaptic", json!({"controller": code}), 9),
        ("rtp", json!({"congestion": code, "feedback_ns": 20 * MS, "bandwidth_bps": 4_000_000}), 3),
    ] {
        let own: Box<dyn RateController> = Box::new(Own::default());
        let mut endpoint = led(name, &params, Some(own), Side::A, &context).unwrap();
        let (mut packets, mut buf) = (Vec::new(), Vec::new());
        for i in 0..samples {
            assert_eq!(endpoint.failure(), None, "{name} {i}");
            let now = Time::from(i) * MS;
            endpoint.handle_input(now, Input::Sample { meta: meta(HAPTIC, i, now), bytes: &force(1.0) });
            while let Some(output) = endpoint.poll_output(&mut buf) {
                packets.extend(matches!(output, Output::Transmit(_)).then_some(i));
            }
        }
        assert_eq!(endpoint.failure().as_deref(), Some("division by zero"), "{name}");
        match name {
            "telehaptic" => assert_eq!((packets, endpoint.merging()), (vec![2, 5, 8], 3)),
            _ => assert_eq!(endpoint.allowance_bps(FlowId(HAPTIC)), Some(0.9 * 2e6)),
        }
    }
}

// [RFC 8298] [draft-ietf-rmcat-gcc-02] [RFC 8888 §3.1]
#[test]
fn scream_and_gcc_merge_when_arrivals_tell_of_a_queue_and_stop_when_it_is_gone() {
    for (name, params, offset_ns, k) in [
        ("scream", json!({"target_ns": 10 * MS}), -2 * SECOND, 1),
        ("gcc", json!({}), 0, 2),
        // From near its limit it comes back by half a packet a response time: not in these 4.5 s.
        ("gcc", json!({"target_ns": 10 * MS}), 3 * SECOND, 4),
    ] {
        let mut p = pair(name, &params, STILL);
        p.server.clock = NodeClock { offset_ns, drift_ppb: 20_000 };
        let ks = congestion(&mut p, 300, 7000);
        assert!(ks[500..1000].iter().all(|k| *k == 1), "{name} {params}");
        assert!(ks[1000..2600].iter().any(|k| *k > 1), "{name} {params}");
        assert!(ks[6900..].iter().all(|last| *last <= k), "{name} {params}: {:?}", ks.last());
        assert_eq!(p.server.endpoint.stats().malformed + p.client.endpoint.stats().malformed, 0);
    }
}

// [RFC 8888 §3.1]
#[test]
fn losses_are_told_by_feedback_too() {
    let mut p = pair("scream", &Value::Null, Conditions { loss: 0.05, ..STILL });
    p.server.sends.loss = 0.05;
    for i in 0..2000 {
        tick(&mut p, i, i as f32);
    }
    let (clean, lossy) = (pair_bytes(&Value::Null), p.client.transmitted.len());
    assert!(lossy < clean, "{lossy} {clean}: a window cut at each loss merges");
}

/// Packets of a session without losses.
fn pair_bytes(params: &Value) -> usize {
    let mut p = pair("scream", params, STILL);
    for i in 0..2000 {
        tick(&mut p, i, i as f32);
    }
    p.client.transmitted.len()
}
