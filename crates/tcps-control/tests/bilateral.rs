//! Bilateral schemes over delay and bursts of loss: passive or not, stable or not, what is felt.

mod common;

use serde_json::json;
use tcps_control::bilateral::{
    bench::{run, Seen, Setup},
    schemes, Mailbox, Motion, SlaveParams,
};
use tcps_core::{
    hook::{Hook, Verdict},
    param::Params as _,
    time::MS,
};

const TICKS: usize = 10_000;

/// The hand goes to and fro, 40 mm deep: through free space and into the wall at 20 mm.
fn to_and_fro(s: f64) -> Motion {
    let w = 2.0 * std::f64::consts::PI * 0.7;
    Motion { x: 0.02 * (1.0 - libm::cos(w * s)), v: 0.02 * w * libm::sin(w * s) }
}

/// The hand goes to 30 mm within half a second and stays there: 10 mm into the wall.
fn press(s: f64) -> Motion {
    Motion { x: 0.03 * (s / 0.5).min(1.0), v: if s < 0.5 { 0.06 } else { 0.0 } }
}

fn seen(setup: &Setup, wanted: fn(f64) -> Motion) -> Vec<Seen> {
    run(setup, TICKS, wanted).unwrap_or_else(|error| panic!("{error}"))
}

fn least_energy(seen: &[Seen]) -> f64 {
    seen.iter().map(|s| s.energy_j).fold(0.0, f64::min)
}

/// Highest speed of the device between two times, in s.
fn speed(seen: &[Seen], from: f64, to: f64) -> f64 {
    let part = &seen[(from * 1e3) as usize..(to * 1e3) as usize];
    part.iter().map(|s| s.leader.v.abs()).fold(0.0, f64::max)
}

/// [Niemeyer 1991] [Ryu 2004] [model: wall tests] With 10 % of messages lost in bursts the energy that entered through
/// both ports together is at least -1 mJ at every tick, over all round trips, for either way of moving.
#[test]
fn waves_and_passivity_control_give_back_no_more_than_they_were_given() {
    for scheme in ["wave", "tdpa"] {
        for rtt_ms in [0, 20, 50, 100, 200] {
            for (burst, seed) in [(1.0, 1), (5.0, 2), (20.0, 3)] {
                let setup = Setup { loss: 0.1, burst, seed, ..Setup::new(scheme, rtt_ms) };
                for wanted in [to_and_fro, press] {
                    let least = least_energy(&seen(&setup, wanted));
                    assert!(least >= -1e-3, "{scheme}, {rtt_ms} ms, bursts of {burst}: {least} J");
                }
            }
        }
    }
}

/// [Ryu 2004] Over 200 ms a slave in free space follows, and a swing at the wall is felt as less than the wall, because the
/// damped device pays for the motion; without that the slave stands, and the hand with it.
#[test]
fn a_damped_device_keeps_passivity_control_moving_over_a_long_way() {
    // A millimetre at 0.5, 1, 2, 4 and 8 Hz at once.
    let swing = |about: f64| {
        move |s: f64| {
            let tones = (0..5).map(|n| (std::f64::consts::PI * f64::from(1 << n), f64::from(n)));
            let add = |at: Motion, (w, phase): (f64, f64)| Motion {
                x: at.x + 0.001 * libm::sin(w * s + phase),
                v: at.v + 0.001 * w * libm::cos(w * s + phase),
            };
            tones.fold(Motion { x: about * s.min(1.0), v: 0.0 }, add)
        }
    };
    let reach = |damping: f64, about: f64, of: fn(&Seen) -> f64| {
        let params = json!({"damping_n_s_m": damping});
        let found = run(&Setup { params, ..Setup::new("tdpa", 200) }, TICKS, swing(about)).unwrap();
        assert!(least_energy(&found) >= -1e-3);
        let last: Vec<f64> = found[TICKS - 4_000..].iter().map(of).collect();
        last.iter().fold(f64::MIN, |a, b| a.max(*b)) - last.iter().fold(f64::MAX, |a, b| a.min(*b))
    };
    let follows = |damping| reach(damping, 0.0, |s| s.slave.x) / reach(damping, 0.0, |s| s.leader.x);
    assert!(follows(5.0) > 0.9 && follows(0.0) < 0.5, "{}, {}", follows(5.0), follows(0.0));
    let moves = |damping| reach(damping, 0.035, |s| s.leader.x);
    assert!(moves(5.0) > 2.0 * moves(0.0), "{} m, {} m", moves(5.0), moves(0.0));
}

/// [model: position-force] [model: wall tests] Position forward and force back is at rest on the wall without delay. At 100 ms it
/// swings ever more and gives back energy that nobody put in.
#[test]
fn position_forward_is_unstable_at_100_ms() {
    let still = seen(&Setup::new("pd", 0), press);
    assert!(speed(&still, 8.0, 10.0) < 1e-3, "{}", speed(&still, 8.0, 10.0));
    let wild = seen(&Setup::new("pd", 100), press);
    let (early, late) = (speed(&wild, 0.6, 1.6), speed(&wild, 8.0, 10.0));
    assert!(late > 1.2 * early && late > 0.1, "{early}, {late}");
    assert!(least_energy(&wild) < -0.1, "{}", least_energy(&wild));
}

/// [model: wall tests] Where position forward swings, the other schemes come to rest on the wall.
#[test]
fn what_is_passive_comes_to_rest() {
    for scheme in ["wave", "tdpa", "mmt"] {
        for rtt_ms in [0, 100, 200] {
            let found = seen(&Setup::new(scheme, rtt_ms), press);
            let (rest, contact) = (speed(&found, 9.0, 10.0), found.last().unwrap().contact_n);
            assert!(rest < 0.02 && contact > 0.5, "{scheme}, {rtt_ms} ms: {rest} m/s, {contact} N");
        }
    }
}

/// [model: position-force] Position against position feels the wall through both springs, and is felt in free space, too.
#[test]
fn position_against_position_holds_the_hand() {
    let end = *seen(&Setup::new("position", 0), press).last().unwrap();
    assert!(end.force_n > 0.5 && end.contact_n > 0.5, "{end:?}");
    assert!((end.force_n - 200.0 * (end.leader.x - end.slave.x)).abs() < 0.01, "{end:?}");
}

/// [Niemeyer 1991] Without delay a wave is a stiff rod: the slave follows and the force is the same at both ends.
#[test]
fn waves_without_delay_or_loss_are_transparent() {
    let end = *seen(&Setup::new("wave", 0), press).last().unwrap();
    assert!((end.force_n - end.contact_n).abs() < 0.02 * end.contact_n.max(1.0), "{end:?}");
    assert!(end.contact_n > 1.0);
}

/// [Niemeyer 1991] Lost waves let the slave drift; a slow wave out of the credit takes it back.
#[test]
fn drift_of_lost_waves_is_taken_back() {
    let still = |s: f64| Motion { x: 0.01 * (s / 0.2).min(1.0), v: if s < 0.2 { 0.05 } else { 0.0 } };
    let apart = |correction: f64| {
        let params = json!({"correction_hz": correction, "lost": "zero"});
        let setup = Setup { loss: 0.3, burst: 10.0, params, ..Setup::new("wave", 20) };
        let end = *seen(&setup, still).last().unwrap();
        (end.leader.x - end.slave.x).abs()
    };
    let (left, corrected) = (apart(0.0), apart(5.0));
    assert!(left > 5e-4 && corrected < 0.3 * left, "{left} m, {corrected} m");
}

/// [Xu 2014] The model that the follower learns is the wall, whatever the delay; the force grows by at most 0.05 N
/// in a millisecond.
#[test]
fn the_model_is_the_wall() {
    for rtt_ms in [20, 200] {
        let seen = seen(&Setup::new("mmt", rtt_ms), press);
        let end = seen.last().unwrap();
        let felt = end.force_n / (end.leader.x - 0.02);
        assert!((felt - 500.0).abs() < 50.0, "{rtt_ms} ms: {felt} N/m");
        let jump = seen.windows(2).map(|w| (w[1].force_n - w[0].force_n).abs()).fold(0.0, f64::max);
        assert!(jump <= 0.05 + 1e-12, "{jump} N");
    }
}

/// All schemes run with the slave of two masses, and feel its wall.
#[test]
fn two_masses_with_a_joint_are_borne() {
    for scheme in schemes() {
        let slave = SlaveParams { second_kg: 0.1, ..SlaveParams::standard() };
        let seen = seen(&Setup { slave, ..Setup::new(scheme, 20) }, to_and_fro);
        let most = seen.iter().map(|s| s.contact_n).fold(0.0, f64::max);
        assert!(most > 0.5 && most < 50.0, "{scheme}: {most} N");
        assert!(seen.iter().all(|s| s.force_n.is_finite() && s.leader.x.abs() < 0.2), "{scheme}");
    }
}

/// Late, repeated, short and broken messages leave what was known as it was.
#[test]
fn only_newer_messages_count() {
    let mut mailbox = Mailbox::default();
    assert!(mailbox.open(&[]).is_none());
    let first = mailbox.open(&[5.0, 1.0, 2.0, 3.0]).unwrap();
    assert!(first.fresh && first.content == [1.0, 2.0, 3.0]);
    for old in
        [&[5.0, 9.0, 9.0, 9.0][..], &[4.0, 9.0, 9.0, 9.0], &[6.0, 9.0], &[6.0, f64::NAN, 9.0, 9.0], &[]]
    {
        let kept = mailbox.open(old).unwrap();
        assert!(!kept.fresh && kept.content == [1.0, 2.0, 3.0], "{old:?}");
    }
    assert!(mailbox.open(&[6.0, 1.5, 2.0, 3.0]).unwrap().fresh);
}

#[test]
fn nonsense_is_refused() {
    let fails = |setup: Setup| run(&setup, 1, press).expect_err("nonsense").to_string();
    assert!(fails(Setup::new("magic", 0)).contains("allowed: mmt, pd"));
    for scheme in schemes() {
        let params = json!({"colour": 1});
        assert!(fails(Setup { params, ..Setup::new(scheme, 0) }).contains("colour"), "{scheme}");
    }
    let params = json!({"impedance_n_s_m": 0});
    assert!(fails(Setup { params, ..Setup::new("wave", 0) }).contains("above 0"));
    let slave = SlaveParams { mass_kg: 1e-9, ..SlaveParams::standard() };
    assert!(fails(Setup { slave, ..Setup::new("pd", 0) }).contains("too fast for the integration"));
}

/// The hook `leader` and the robot `follower`, tick by tick without delay, are the runner's two sides: the same
/// energies and positions, up to the hand's velocity, which the hook takes from its samples.
#[test]
fn hook_and_robot_are_the_two_sides() {
    for scheme in schemes() {
        let params = json!({"scheme": scheme});
        let mut leader = tcps_control::hook("leader", &params).unwrap();
        let mut follower = tcps_control::robot("follower", &params).unwrap();
        let (mut back, mut energy) = (Vec::new(), 0.0);
        for n in 0..2_000i64 {
            let x = [0.0, to_and_fro(n as f64 * 1e-3).x];
            let given = common::Given {
                now_ns: n * MS,
                origin_ns: n * MS,
                x: Some(&x[1..]),
                other: &back,
                ..Default::default()
            };
            let message = common::call(leader.as_mut(), given).y;
            let mut sense = [0.0; 7];
            assert_eq!((message.len(), follower.step(n * MS, &message, &mut sense)), (7, 7));
            back = sense.to_vec();
            energy = message[6] + sense[6];
        }
        let wanted = |s: f64| {
            let (now, before) = (to_and_fro(s).x, to_and_fro((s - 1e-3).max(0.0)).x);
            Motion { x: now, v: (now - before) / 1e-3 }
        };
        let bench = run(&Setup::new(scheme, 0), 2_000, wanted).unwrap();
        let truth = bench.last().unwrap().energy_j;
        assert!((energy - truth).abs() < 1e-6 + 0.01 * truth.abs(), "{scheme}: {energy}, {truth}");
        assert!((back[4] - bench.last().unwrap().slave.x).abs() < 1e-4, "{scheme}");
    }
}

/// Three axes at once are three times one axis: each with its own motion, energies and wall.
#[test]
fn axes_are_independent() {
    let params = |axes| json!({"scheme": "wave", "axes": axes});
    let (mut three, mut one) = (
        tcps_control::hook("leader", &params(3)).unwrap(),
        tcps_control::hook("leader", &params(1)).unwrap(),
    );
    let (mut far, mut alone) = (
        tcps_control::robot("follower", &params(3)).unwrap(),
        tcps_control::robot("follower", &params(1)).unwrap(),
    );
    let (mut sense, mut sensed) = ([0.0; 21], [0.0; 7]);
    for n in 0..1_000i64 {
        let x = to_and_fro(n as f64 * 1e-3).x;
        let now_ns = n * MS;
        let tick = |hook: &mut dyn Hook, x: &[f64], other: &[f64]| {
            let given = common::Given { now_ns, origin_ns: now_ns, x: Some(x), other, ..Default::default() };
            common::call(hook, given).y
        };
        let message = tick(three.as_mut(), &[0.0, x, -x], &sense);
        let single = tick(one.as_mut(), &[x], &sensed);
        assert_eq!((message.len(), &message[7..14]), (21, &single[..]), "{n}");
        assert_eq!(far.step(now_ns, &message, &mut sense), 21);
        alone.step(now_ns, &single, &mut sensed);
        assert_eq!(sense[7..14], sensed, "{n}");
    }
    assert!(sense[0] == sensed[0] && sense[4] == 0.0, "an axis at rest stays there");
    assert!(sense[18] < -0.015, "the third goes the other way, where there is no wall: {}", sense[18]);
    for axes in [0, 17] {
        assert!(tcps_control::hook("leader", &params(axes)).is_err(), "{axes}");
        assert!(tcps_control::robot("follower", &params(axes)).is_err(), "{axes}");
    }
}

/// A hand that is no number, a message that is none, time that goes back: counted or left out, never a stop.
#[test]
fn broken_input_to_hook_and_robot_does_no_harm() {
    let mut leader = tcps_control::hook("leader", &json!({"scheme": "wave"})).unwrap();
    let given = common::Given { x: Some(&[f64::NAN]), ..Default::default() };
    assert!(matches!(common::call(leader.as_mut(), given).verdict, Verdict::Failed(_)));
    let mut follower = tcps_control::robot("follower", &json!({"scheme": "wave"})).unwrap();
    for (now, command) in
        [(5 * MS, &[1.0, f64::INFINITY, 0.0, 0.0][..]), (0, &[2.0, 1.0]), (0, &[3.0, 0.1, 0.0, 0.1])]
    {
        let mut sense = [0.0; 7];
        follower.step(now, command, &mut sense);
        assert!(sense.iter().all(|v| v.is_finite()), "{sense:?}");
        assert_eq!(follower.step(now, command, &mut []), 0);
    }
    assert!(tcps_control::robot("follower", &json!({"scheme": "magic"})).is_err());
}

/// [Ryu 2004] [Hinterseer 2008: deadband] With a deadband of 10 % and bursts of loss fewer messages go, and the energy bound holds:
/// energies travel with the messages that go.
#[test]
fn a_deadband_saves_messages_and_keeps_the_bound() {
    for scheme in ["wave", "tdpa"] {
        for rtt_ms in [0, 50, 200] {
            let setup = Setup { loss: 0.1, burst: 5.0, deadband: 0.1, ..Setup::new(scheme, rtt_ms) };
            for wanted in [to_and_fro, press] {
                let found = seen(&setup, wanted);
                let least = least_energy(&found);
                assert!(least >= -1e-3, "{scheme}, {rtt_ms} ms: {least} J");
                let share = found.iter().map(|s| f64::from(s.sent)).sum::<f64>() / (2.0 * found.len() as f64);
                assert!(share < 0.7, "{scheme}, {rtt_ms} ms: {share} of the messages went");
            }
        }
    }
}
