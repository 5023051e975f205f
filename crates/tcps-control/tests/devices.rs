//! Operator's devices and the five-joint arm as hooks: glove, vibration motors, mouse, inverse kinematics.

use serde_json::{json, Value};
use tcps_control::hook;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    ids::FlowId,
    time::{Time, MS},
};

fn call(hook: &mut dyn Hook, at_ms: i64, x: &[f64]) -> Vec<f64> {
    let (mut y, mut bytes) = ([0.0; 64], [0u8; 8]);
    let mut output = HookOut::new(&mut y, &mut bytes);
    let t: Time = at_ms * MS;
    let verdict = hook.call(&HookIn::tick(t, t, at_ms as u32, FlowId(0)).with_sample(x, &[]), &mut output);
    assert_eq!(verdict, Verdict::Emit, "{x:?}");
    let n = output.written().0;
    y[..n].to_vec()
}

fn refuses(name: &str, x: &[f64]) {
    let (mut y, mut bytes) = ([0.0; 64], [0u8; 8]);
    let mut output = HookOut::new(&mut y, &mut bytes);
    let mut hook = hook(name, &Value::Null).unwrap();
    let verdict = hook.call(&HookIn::tick(0, 0, 0, FlowId(0)).with_sample(x, &[]), &mut output);
    assert!(matches!(verdict, Verdict::Failed(_)), "{name} takes {x:?}");
}

#[test]
fn what_is_short_or_not_finite_is_refused() {
    for name in ["arm5", "arm5_pose", "glove", "mouse", "vibration"] {
        refuses(name, &[]);
        refuses(name, &[f64::NAN; 14]);
    }
    refuses("glove", &[0.0; 13]);
    refuses("vibration", &[0.0; 17]);
}

/// [Wampler 1986] The inverse and the way back are one: 0.1 mm and 1 mrad, with what follows the pose untouched.
#[test]
fn poses_become_angles_and_angles_poses() {
    let mut inverse = hook("arm5", &json!({"speed_rad_s": 1e6})).unwrap();
    let mut forward = hook("arm5_pose", &Value::Null).unwrap();
    let wanted = [0.2, -0.1, 0.05, 1.5, 0.4, 0.02];
    call(&mut *inverse, 0, &wanted);
    let joints = call(&mut *inverse, 100, &wanted);
    let found = call(&mut *forward, 0, &joints);
    assert_eq!((joints.len(), found.len()), (6, 6));
    for (i, tolerance) in [1e-4, 1e-4, 1e-4, 1e-3, 1e-12, 0.0].into_iter().enumerate() {
        assert!((found[i] - wanted[i]).abs() <= tolerance, "value {i} of {found:?}");
    }
}

#[test]
fn no_joint_turns_faster_than_it_may() {
    let mut inverse = hook("arm5", &json!({"speed_rad_s": 2.0})).unwrap();
    let mut before = call(&mut *inverse, 0, &[0.22, 0.0, 0.09]);
    let mut fastest = 0.0f64;
    for t in 1..2_000 {
        let now = call(&mut *inverse, t, &[0.0, 0.22, 0.05]);
        for (a, b) in now.iter().zip(&before) {
            fastest = fastest.max((a - b).abs() / 1e-3);
        }
        before = now;
    }
    assert!(fastest <= 2.0 + 1e-9 && fastest > 1.99, "{fastest} rad/s");
    assert!((before[0] - std::f64::consts::FRAC_PI_2).abs() < 1e-3, "it gets there: {before:?}");
}

/// A motor reaches 63 % of its speed in its time constant, and its force grows with the square of the speed.
#[test]
fn motors_need_their_time_to_spin_up() {
    let mut motors = hook("vibration", &Value::Null).unwrap();
    call(&mut *motors, 0, &[0.0, 0.0]);
    let mut at_40 = Vec::new();
    for t in 1..=400 {
        let out = call(&mut *motors, t, &[4.0, 0.05]);
        if t == 40 {
            at_40 = out.clone();
        }
        if t == 400 {
            assert!((out[0] - 200.0).abs() < 0.1 && (out[1] - 0.505).abs() < 0.005, "{out:?}");
        }
        assert_eq!(&out[2..], [0.0, 0.0], "too weak to start a motor");
    }
    assert!((at_40[0] - 200.0 * (1.0 - libm::exp(-1.0))).abs() < 0.01, "{at_40:?}");
    assert!((at_40[1] / 0.505 - libm::pow(at_40[0] / 200.0, 2.0)).abs() < 0.01);
}

#[test]
fn the_left_button_turns_y_into_z() {
    let mut mouse = hook("mouse", &Value::Null).unwrap();
    let start = call(&mut *mouse, 0, &[100.0, 100.0, 0.0, 0.0]);
    assert_eq!(start[..3], [0.22, 0.0, 0.09]);
    let away = call(&mut *mouse, 8, &[100.0, 0.0, 0.0, 0.0]);
    assert!((away[0] - 0.24).abs() < 1e-12 && away[2] == 0.09, "up is away: {away:?}");
    let up = call(&mut *mouse, 16, &[150.0, -100.0, 1.0, 0.0]);
    assert!((up[2] - 0.11).abs() < 1e-12 && (up[0] - 0.24).abs() < 1e-12, "up is up: {up:?}");
    assert!((up[1] + 0.01).abs() < 1e-12, "right is right: {up:?}");
    let far = call(&mut *mouse, 24, &[150.0, -99_999.0, 1.0, 0.0]);
    assert!((far[2] - 0.165).abs() < 1e-12, "as far as the box reaches: {far:?}");
}

#[test]
fn the_wheel_goes_through_its_states_one_at_a_time() {
    let params = json!({"values": [-0.1, 0.0, 0.1], "state": 1});
    let mut mouse = hook("mouse", &params).unwrap();
    let mut wheel = |t: i64, counts: f64| call(&mut *mouse, t, &[0.0, 0.0, 0.0, counts])[5];
    assert_eq!(wheel(0, 7.0), 0.0, "what was counted before does not count");
    assert_eq!(wheel(8, 9.0), 0.1, "two clicks at once are one state");
    assert_eq!(wheel(16, 8.0), 0.1, "no click counts so soon after one that did");
    assert_eq!(wheel(100, 7.0), 0.0);
    assert_eq!(wheel(200, 6.0), -0.1);
    assert_eq!(wheel(300, 5.0), -0.1, "the last state is the last");
    assert_eq!(wheel(i64::MAX / 1_000_000, 6.0), 0.0);
    assert_eq!(wheel(i64::MIN / 1_000_000, 7.0), 0.1, "a click from the far future stops nothing");
    let mut fine = hook("mouse", &params).unwrap();
    let mut wheel = |t: i64, counts: f64| call(&mut *fine, t, &[0.0, 0.0, 0.0, counts])[5];
    assert_eq!([wheel(0, 0.0), wheel(100, 0.25), wheel(200, 0.75)], [0.0, 0.0, 0.1], "half a click counts");
    assert!(hook("mouse", &json!({"values": [1.0], "state": 1})).is_err());
}

/// [Polachan 2022] Wrist from the orientations of two links: the forearm lifts by 0.5 rad at 1 rad/s.
#[test]
fn the_glove_follows_a_forearm_that_lifts() {
    let g = 9.806_65;
    let mut glove = hook("glove", &json!({"reach_m": [1.0, 1.0, 1.0]})).unwrap();
    let sample = |angle: f64, rate: f64, bend: f64| {
        // The sensor's x is along the forearm; lifting turns about -y.
        let force = [g * libm::sin(angle), 0.0, g * libm::cos(angle)];
        let mut x = [0.0; 14];
        x[5] = g;
        x[7] = -rate;
        x[9..12].copy_from_slice(&force);
        (x[12], x[13]) = (bend, bend);
        x
    };
    let start = call(&mut *glove, 0, &sample(0.0, 0.0, 0.0));
    assert_eq!(start, [0.22, 0.0, 0.09, std::f64::consts::FRAC_PI_2, 0.0, 0.032]);
    let mut out = start;
    for t in 1..=500 {
        out = call(&mut *glove, t, &sample(t as f64 * 1e-3, 1.0, 0.0));
    }
    let (s, c) = (libm::sin(0.5), libm::cos(0.5));
    assert!((out[2] - 0.09 - 0.25 * s).abs() < 1e-3, "{out:?}");
    assert!((out[0] - 0.22 - 0.25 * (c - 1.0)).abs() < 1e-3 && out[1].abs() < 1e-6, "{out:?}");
    assert!(out[4].abs() < 1e-6, "no roll: {out:?}");
}

#[test]
fn bent_fingers_close_the_gripper() {
    let mut glove = hook("glove", &Value::Null).unwrap();
    let mut x = [0.0; 14];
    (x[5], x[11]) = (9.8, 9.8);
    let mut before = f64::MAX;
    for i in 0..=10 {
        (x[12], x[13]) = (f64::from(i) / 10.0, f64::from(i) / 10.0);
        let opening = call(&mut *glove, i64::from(i), &x)[5];
        assert!(opening < before, "{opening} m at {} of the bend", x[12]);
        before = opening;
    }
    assert!(before < 0.001, "{before} m with bent fingers");
}
