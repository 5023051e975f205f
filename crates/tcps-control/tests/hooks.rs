//! Built-in hooks against closed forms, and what they do with bad input.

mod common;

use common::{call, values, Given};
use serde_json::{json, Value};
use tcps_control::{hook, names};
use tcps_core::{
    hook::{Hook, Verdict},
    seed::Stream,
    time::{Time, MS},
};

const G: f64 = 9.806_65;

fn make(name: &str, params: Value) -> Box<dyn Hook> {
    hook(name, &params).unwrap_or_else(|error| panic!("{error}"))
}

/// A tick of a periodic stage without a new sample.
fn tick(hook: &mut dyn Hook, now_ns: Time) -> (Verdict, Vec<f64>) {
    let answer = call(hook, Given { now_ns, ..Given::default() });
    (answer.verdict, answer.y)
}

/// [model: predictors] Nothing before the first sample, then the last one for ever.
#[test]
fn zoh_holds_the_last_sample() {
    let mut zoh = make("zoh", Value::Null);
    assert_eq!(tick(zoh.as_mut(), 0).0, Verdict::Nothing);
    assert_eq!(values(zoh.as_mut(), MS, &[1.0, 2.0]), [1.0, 2.0]);
    assert_eq!(tick(zoh.as_mut(), 900 * MS), (Verdict::Emit, vec![1.0, 2.0]));
    assert_eq!(values(zoh.as_mut(), 901 * MS, &[3.0]), [3.0]);
}

/// [Polachan 2022: edge] A gripper that toggles every 100 ms is commanded over a link that loses half of all packets. With a
/// zero-order hold repeating at 1 kHz before the link no toggle is lost, and it takes 2 packets on average.
#[test]
fn zoh_before_a_lossy_link_restores_the_toggling() {
    let (mut zoh, mut loss) = (make("zoh", Value::Null), Stream::new(1, "last mile"));
    let (mut seen, mut tries, mut toggles) = (f64::NAN, 0, 0);
    for ms in 0..100_000 {
        let gripper = f64::from((ms / 100) % 2);
        let y = if ms % 100 == 0 {
            values(zoh.as_mut(), ms.into(), &[gripper])
        } else {
            tick(zoh.as_mut(), ms.into()).1
        };
        tries += i32::from(seen != gripper);
        if loss.chance(0.5) {
            toggles += i32::from(seen != y[0]);
            seen = y[0];
        }
    }
    assert_eq!(toggles, 1000);
    let mean = f64::from(tries) / f64::from(toggles);
    assert!((mean - 2.0).abs() < 0.15, "{mean} packets a toggle");
}

/// What a predictor's hook adds, taken away.
fn unblended() -> Value {
    json!({"blend_ms": 0, "most_ms": 1e4})
}

/// [model: predictors] A correction is blended in over 3 ms: nothing jumps when a sample comes after a gap.
#[test]
fn a_correction_is_blended_in() {
    let mut linear = make("linear", Value::Null);
    for ms in 0..=10 {
        values(linear.as_mut(), ms * MS, &[ms as f64]);
    }
    let guessed = tick(linear.as_mut(), 20 * MS).1[0];
    assert!((guessed - 20.0).abs() < 1e-9, "{guessed}");
    assert!((values(linear.as_mut(), 20 * MS, &[14.0])[0] - 20.0).abs() < 1e-9);
    let slope = 8.0 / 14.0; // from sample 6 to sample 20
    for (ms, left) in [(1, 2.0 / 3.0), (2, 1.0 / 3.0), (3, 0.0), (4, 0.0)] {
        let y = tick(linear.as_mut(), (20 + ms) * MS).1[0];
        let want = 14.0 + slope * ms as f64 + 6.0 * left;
        assert!((y - want).abs() < 1e-9, "{ms} ms: {y}, {want}");
    }
}

/// [model: predictors] Ahead of the arrival by a given time, by the age on true clocks, and never beyond the longest horizon.
#[test]
fn a_predictor_answers_for_the_moment_that_was_asked_for() {
    let out = |params: Value| {
        let mut hook = make("linear", params);
        for ms in 0..=20 {
            let (now_ns, origin_ns) = ((ms + 30) * MS, ms * MS);
            call(hook.as_mut(), Given { now_ns, origin_ns, x: Some(&[ms as f64]), ..Given::default() });
        }
        [tick(hook.as_mut(), 60 * MS).1[0], tick(hook.as_mut(), 90 * MS).1[0]]
    };
    let near = |got: [f64; 2], want: [f64; 2]| {
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9), "{got:?}, {want:?}");
    };
    near(out(json!({"hold_ms": 100})), [30.0, 60.0]);
    near(out(json!({"hold_ms": 100, "ahead_ms": 5})), [35.0, 65.0]);
    near(out(json!({"hold_ms": 100, "to": "now"})), [60.0, 90.0]);
    near(out(json!({"hold_ms": 100, "to": "now", "most_ms": 60})), [60.0, 80.0]);
    assert!(hook("linear", &json!({"to": "then"})).is_err());
}

/// [model: predictors] A ramp is continued for 50 ms; then the slope decays with 30 ms, so that it ends 80 ms ahead.
#[test]
fn linear_continues_a_ramp_and_lets_it_fade() {
    let mut linear = make("linear", unblended());
    for ms in 0..=10 {
        values(linear.as_mut(), ms * MS, &[2.0 * ms as f64, 5.0]);
    }
    let mut ahead = |ms: Time| tick(linear.as_mut(), (10 + ms) * MS).1;
    for ms in [1, 20, 50] {
        assert!((ahead(ms)[0] - 2.0 * (10 + ms) as f64).abs() < 1e-9, "{ms} ms: {}", ahead(ms)[0]);
    }
    let faded = 20.0 + 2.0 * (50.0 + 30.0 * (1.0 - libm::exp(-1.0)));
    assert!((ahead(80)[0] - faded).abs() < 1e-9);
    assert!((ahead(5_000)[0] - (20.0 + 2.0 * 80.0)).abs() < 1e-6);
    assert_eq!(ahead(33)[1], 5.0);
}

/// [model: predictors] The slope is taken over 5 samples: one outlier in between has no weight.
#[test]
fn linear_takes_its_slope_from_two_samples_five_apart() {
    let mut linear = make("linear", unblended());
    for (ms, x) in [0.0, 9.0, -7.0, 3.0, 100.0, 5.0].into_iter().enumerate() {
        values(linear.as_mut(), ms as Time * MS, &[x]);
    }
    assert!((tick(linear.as_mut(), 6 * MS).1[0] - 6.0).abs() < 1e-9);
}

#[test]
fn linear_is_not_confused_by_late_samples_or_another_length() {
    let mut linear = make("linear", unblended());
    values(linear.as_mut(), 10 * MS, &[1.0]);
    values(linear.as_mut(), 20 * MS, &[2.0]);
    let late = Given { now_ns: 21 * MS, origin_ns: 15 * MS, x: Some(&[7.0]), ..Given::default() };
    let y = call(linear.as_mut(), late).y;
    assert!((y[0] - 2.1).abs() < 1e-9, "{y:?}");
    assert_eq!(values(linear.as_mut(), 30 * MS, &[4.0, 5.0]), [4.0, 5.0]);
    assert_eq!(tick(linear.as_mut(), 31 * MS).1, [4.0, 5.0]);
}

/// Rest, level, in any mounting: the wrist does not move.
#[test]
fn a_sensor_at_rest_leaves_the_wrist_in_the_centre() {
    for force in [[0.0, 0.0, G], [-G, 0.0, 0.0], [3.0, -5.0, -7.830_5]] {
        let mut wrist = make("imu_wrist", Value::Null);
        let mut y = Vec::new();
        for ms in 0..5_000 {
            y = values(wrist.as_mut(), ms * MS, &[0.0, 0.0, 0.0, force[0], force[1], force[2]]);
        }
        for (value, expected) in y.iter().zip([0.30, 0.0, 0.18, 0.0, 0.0, 0.0]) {
            assert!((value - expected).abs() < 1e-3, "{force:?}: {y:?}");
        }
    }
}

/// The leaky double integration is a band-pass: at its centre frequency a sine of acceleration A gives a sine of
/// position A / (2 w²) (critical damping), in phase opposite to a quarter turn.
#[test]
fn a_sine_of_acceleration_at_the_centre_frequency_gives_half_its_double_integral() {
    let (hz, amplitude) = (0.5, 0.05);
    let w = 2.0 * std::f64::consts::PI * hz;
    let free = json!({"forearm_m": 0.0, "tilt_gain": 0.0, "follow_time_s": 1e9, "reach_m": [1e3, 1e3, 1e3]});
    let mut wrist = make("imu_wrist", free);
    let mut most: f64 = 0.0;
    for ms in 0..20_000 {
        let a = amplitude * libm::sin(w * ms as f64 * 1e-3);
        let y = values(wrist.as_mut(), ms * MS, &[0.0, 0.0, 0.0, a, 0.0, G]);
        if ms > 10_000 {
            most = most.max(y[0] - 0.30);
        }
    }
    // The filter starts level with the first sample, which has no acceleration.
    assert!((most / (amplitude / (2.0 * w * w)) - 1.0).abs() < 0.01, "{most} m");
}

/// A turn of the forearm about a level axis by an angle that the trunk does not follow swings the wrist by it.
#[test]
fn a_raised_forearm_raises_the_wrist() {
    let still = json!({"gain": 0.0, "follow_time_s": 1e9, "reach_m": [1e3, 1e3, 1e3]});
    let mut wrist = make("imu_wrist", still);
    let mut y = Vec::new();
    for ms in 0..=500 {
        let angle = 0.001 * ms as f64;
        // Nose up about y by `angle`: up leans to +x in the sensor's frame.
        let force = [G * libm::sin(angle), 0.0, G * libm::cos(angle)];
        y = values(wrist.as_mut(), ms * MS, &[0.0, -1.0, 0.0, force[0], force[1], force[2]]);
    }
    assert!((y[2] - (0.18 + 0.25 * libm::sin(0.5))).abs() < 1e-4, "{y:?}");
    assert!((y[0] - (0.30 - 0.25 * (1.0 - libm::cos(0.5)))).abs() < 1e-4, "{y:?}");
}

#[test]
fn a_gap_or_a_late_sample_does_not_throw_the_wrist() {
    let mut wrist = make("imu_wrist", Value::Null);
    let pushed = [0.0, 0.0, 0.0, 3.0, 0.0, G];
    values(wrist.as_mut(), 0, &pushed);
    let before = values(wrist.as_mut(), 100 * MS, &pushed);
    let late = Given { now_ns: 101 * MS, origin_ns: 50 * MS, x: Some(&pushed), ..Given::default() };
    assert_eq!(call(wrist.as_mut(), late).y, before);
    let after = values(wrist.as_mut(), 60_000 * MS, &pushed);
    assert!(
        after.iter().all(|v| v.is_finite()) && (after[0] - before[0]).abs() < 0.02,
        "{before:?} {after:?}"
    );
}

#[test]
fn arm3_and_the_arm_agree_on_where_the_tip_is() {
    let mut inverse = make("arm3", Value::Null);
    let mut arm = tcps_control::robot("arm", &json!({"lag_s": 1e-6, "speed_rad_s": 1e9})).unwrap();
    let mut sense = [0.0; 7];
    for i in 0..200 {
        let t = i as f64 * 0.05;
        let target =
            [0.30 + 0.05 * libm::sin(t), 0.09 * libm::cos(1.3 * t), 0.18 + 0.07 * libm::sin(0.7 * t)];
        let joints = values(inverse.as_mut(), i * MS, &target);
        arm.step(i * MS, &joints, &mut sense);
        if i > 0 {
            for k in 0..3 {
                assert!((sense[3 + k] - target[k]).abs() < 2e-6, "{target:?} {sense:?}");
            }
        }
    }
}

/// Refused, and forgotten: what was found before is where the next search begins.
#[test]
fn a_place_that_no_arm_reaches_is_refused_and_leaves_no_trace() {
    let (near, mut inverse, mut other) =
        ([0.3, 0.0, 0.18], make("arm3", Value::Null), make("arm3", Value::Null));
    for far in [[-1.7e305, 0.0, 0.0], [0.3, 0.0, 100.0]] {
        let answer = call(inverse.as_mut(), Given { x: Some(&far), ..Given::default() });
        assert!(
            matches!(answer.verdict, Verdict::Failed(why) if why.contains("below 100") && why.contains("at index")),
            "{far:?}"
        );
    }
    assert_eq!(values(inverse.as_mut(), MS, &near), values(other.as_mut(), MS, &near));
}

#[test]
fn a_value_that_is_refused_is_named_with_its_place() {
    let said =
        |x: &[f64]| match call(make("arm3", Value::Null).as_mut(), Given { x: Some(x), ..Given::default() })
            .verdict
        {
            Verdict::Failed(why) => why,
            other => panic!("{other:?}"),
        };
    assert!(said(&[0.3, 1e9, 0.2, 0.0, 0.0, 0.0]).ends_with("found 1000000000.0 at index 1 of 6 values"));
    assert!(said(&[0.3, 0.0, f64::INFINITY]).ends_with("found inf at index 2 of 3 values"));
    assert!(said(&[0.3, 0.0]).ends_with("all finite; found 2 values"));
}

#[test]
fn force_takes_its_part_and_limit_keeps_the_direction() {
    let sense = [-3.0, 1.0, 2.0, 0.3, 0.0, 0.18, 1.0];
    assert_eq!(values(make("force", Value::Null).as_mut(), 0, &sense), [-3.0, 1.0, 2.0]);
    let last = json!({"first": 6, "count": 1, "scale": 2.0});
    assert_eq!(values(make("force", last).as_mut(), 0, &sense), [2.0]);
    let mut limit = make("limit", json!({"most": 5.0}));
    let short = values(limit.as_mut(), 0, &[6.0, 0.0, 8.0]);
    assert!((short[0] - 3.0).abs() < 1e-12 && (short[2] - 4.0).abs() < 1e-12);
    assert_eq!(values(limit.as_mut(), 0, &[1.0, 1.0]), [1.0, 1.0]);
}

/// The hand rests where its stiffness balances the force, and a force above the limit is felt as the limit.
#[test]
fn the_hand_yields_by_force_over_stiffness() {
    for (force, felt) in [(3.0, 3.0), (30.0, 5.0)] {
        let mut hand = make("hand", Value::Null);
        let mut y = Vec::new();
        for ms in 0..5_000 {
            y = values(hand.as_mut(), ms * MS, &[-force, 0.0, 0.0]);
        }
        assert!((y[0] + felt).abs() < 1e-12 && (y[3] + felt / 300.0).abs() < 1e-9, "{y:?}");
    }
}

#[test]
fn pose_picks_scales_and_moves() {
    let params = json!({"pick": [2, 0], "scale": [0.001, 2.0], "offset": [0.3]});
    assert_eq!(values(make("pose", params).as_mut(), 0, &[5.0, 6.0, 7000.0]), [7.3, 10.3]);
    assert_eq!(values(make("pose", Value::Null).as_mut(), 0, &[5.0, 6.0]), [5.0, 6.0]);
}

#[test]
fn the_mouse_spans_the_plane_and_its_button_pushes() {
    let mut mouse = make("mouse_xy", Value::Null);
    let near = |y: Vec<f64>, wanted: [f64; 3]| y.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(near(values(mouse.as_mut(), 0, &[960.0, 540.0, 0.0]), [0.30, 0.0, 0.18]));
    assert!(near(values(mouse.as_mut(), 0, &[1920.0, 0.0, 1.0]), [0.33, -0.12, 0.2475]));
    assert!(near(values(mouse.as_mut(), 0, &[-50.0, 9999.0]), [0.30, 0.12, 0.1125]));
}

#[test]
fn quantise16_returns_within_half_a_step_and_cuts_beyond() {
    let params = json!({"resolution": 0.001});
    let (mut code, mut decode) = (make("quantise16", params.clone()), make("dequantise16", params));
    let x = [0.0, 1.2344, -0.0006, 32.767, 99.0, -99.0, f64::NAN];
    let coded = call(code.as_mut(), Given { x: Some(&x), ..Given::default() });
    assert_eq!(coded.bytes.len(), 2 * x.len());
    assert_eq!(coded.bytes[2..6], [0x04, 0xd2, 0xff, 0xff]);
    let back = call(decode.as_mut(), Given { bytes: &coded.bytes, ..Given::default() });
    assert_eq!(back.verdict, Verdict::Emit);
    let expected = [0.0, 1.234, -0.001, 32.767, 32.767, -32.767, 0.0];
    assert!(back.y.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{:?}", back.y);
    let odd = call(decode.as_mut(), Given { bytes: &coded.bytes[..3], ..Given::default() });
    assert!(matches!(odd.verdict, Verdict::Failed(_)));
}

/// Whatever comes in, a hook answers; and one bad sample leaves no trace in what follows.
#[test]
fn bad_samples_are_refused_and_forgotten() {
    let good = [0.1, 0.2, 0.3, 0.1, 0.2, G, 0.5, 0.1, 0.3, 0.1, 0.2, G, 0.5, 0.5];
    let bad: [&[f64]; 5] = [&[], &[1.0], &[f64::NAN; 14], &[f64::INFINITY; 14], &[1e300; 14]];
    for name in names().0 {
        // Codecs of bytes and predictors that repeat what they get have nothing to refuse; samplers give nothing out.
        if ["uniform", "weber", "level_crossing", "network_deadband", "deadband"].contains(&name) {
            continue;
        }
        // Sound and pictures: tests/media.rs, tests/preview.rs.
        if ["conceal", "preview", "tone", "loudness", "grey", "brightness"].contains(&name) {
            continue;
        }
        if ["quantise16", "dequantise16", "zoh", "linear", "pose", "force"].contains(&name) {
            continue;
        }
        let mut hook = make(name, Value::Null);
        for x in bad {
            call(hook.as_mut(), Given { now_ns: MS, origin_ns: MS, x: Some(x), ..Given::default() });
        }
        for ms in 2..50 {
            let y = values(hook.as_mut(), ms * MS, &good);
            assert!(y.iter().all(|v| v.is_finite() && v.abs() < 250.0), "{name}: {y:?}");
        }
    }
}

#[test]
fn without_a_sample_only_predictors_speak() {
    for name in names().0 {
        assert_eq!(tick(make(name, Value::Null).as_mut(), MS).0, Verdict::Nothing, "{name}");
    }
}

#[test]
fn parameters_out_of_range_are_refused_with_their_name() {
    for (name, params, key) in [
        ("imu_wrist", json!({"hold_hz": 0}), "hold_hz"),
        ("imu_wrist", json!({"reach_m": [0.1, -1.0, 0.1]}), "reach_m"),
        ("linear", json!({"over": 0}), "over"),
        ("hand", json!({"mass_kg": 1e-6}), "too fast for the integration"),
        ("grip", json!({"into": [0.0, 0.0, 0.0]}), "into"),
        ("aim", json!({"radius_m": 0.0}), "radius_m"),
        ("limit", json!({"most": -1.0}), "most"),
        ("quantise16", json!({"resolution": 0}), "resolution"),
        ("arm3", json!({"start_rad": [9.0, 0.0, 0.0]}), "start_rad"),
        ("zoh", json!({"x": 1}), "x"),
    ] {
        let Err(error) = hook(name, &params) else { panic!("{name} takes {params}") };
        assert!(error.to_string().contains(key), "{error}");
    }
}

/// [Polachan 2022: steps] The controller of the step experiment against its difference equation, with the time between samples
/// that it finds and with its integral bounded.
#[test]
fn pi_is_the_difference_equation_and_winds_up_no_further_than_its_bound() {
    let mut pi = make("pi", json!({"kp": 0.2, "ki_per_ms": 0.1, "most": 2}));
    let mut out = |ms: Time, back: &[f64]| {
        let given =
            Given { now_ns: ms * MS, origin_ns: ms * MS, x: Some(&[0.0]), other: back, ..Given::default() };
        call(pi.as_mut(), given).y[0]
    };
    assert_eq!(out(0, &[]), 1.0);
    assert_eq!(out(1, &[]), 1.0);
    assert!((out(2, &[0.5]) - (0.1 + 1.05)).abs() < 1e-12, "T = 1 ms");
    assert!((out(12, &[0.5]) - (0.1 + 1.55)).abs() < 1e-12, "T = 10 ms");
    assert!((out(112, &[0.5]) - (0.1 + 2.0)).abs() < 1e-12, "bounded");
    let given = Given { x: Some(&[0.0]), other: &[f64::NAN], ..Given::default() };
    assert!(matches!(call(pi.as_mut(), given).verdict, Verdict::Failed(_)));
    assert!(hook("pi", &json!({"kp": -1})).is_err());
}
