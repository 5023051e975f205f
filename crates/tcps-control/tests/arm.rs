//! The built-in arm against closed forms.

use serde_json::{json, Value};
use tcps_control::robot;
use tcps_core::{robot::Robot, time::MS};

/// The pose that the arm starts from.
const START: [f64; 3] = [0.0, -0.33, 0.57];

struct Bench {
    arm: Box<dyn Robot>,
    t_ms: i64,
    sense: [f64; 7],
}

impl Bench {
    fn new(params: &Value) -> Self {
        let mut bench = Self { arm: robot("arm", params).unwrap(), t_ms: 0, sense: [0.0; 7] };
        bench.step(&[]);
        bench
    }

    fn step(&mut self, command: &[f64]) {
        assert_eq!(self.arm.step(self.t_ms * MS, command, &mut self.sense), 7);
        self.t_ms += 1;
    }

    fn steps(&mut self, ms: i64, command: &[f64]) {
        (0..ms).for_each(|_| self.step(command));
    }

    fn tip(&self) -> [f64; 3] {
        [self.sense[3], self.sense[4], self.sense[5]]
    }
}

#[test]
fn at_rest_in_the_wall_the_force_is_stiffness_times_depth() {
    let mut bench = Bench::new(&json!({"command": "position", "stiffness_n_m": 400.0, "damping_n_s_m": 5.0}));
    bench.steps(2_000, &[0.33, 0.0, 0.18]);
    let [fx, fy, fz, x, _, _, contact] = bench.sense;
    assert!((x - 0.33).abs() < 1e-5, "{x}");
    assert!((fx + 400.0 * (x - 0.32)).abs() < 1e-6, "{fx} N at {x} m");
    assert!((fx + 4.0).abs() < 0.01 && fy == 0.0 && fz == 0.0 && contact == 1.0);
}

#[test]
fn the_damping_of_the_wall_resists_entry_and_never_pulls() {
    let still = json!({"command": "position", "damping_n_s_m": 0.0});
    let damped = json!({"command": "position", "damping_n_s_m": 50.0});
    let (mut a, mut b) = (Bench::new(&still), Bench::new(&damped));
    let mut harder = 0;
    for x in [0.34, 0.28] {
        for _ in 0..150 {
            a.step(&[x, 0.0, 0.18]);
            b.step(&[x, 0.0, 0.18]);
            assert!(a.sense[0] <= 0.0 && b.sense[0] <= 0.0, "a wall that pulls");
            harder += i32::from(x == 0.34 && b.sense[0] < a.sense[0] - 0.1);
        }
    }
    assert!(harder > 5 && a.sense[6] == 0.0 && a.sense[0] == 0.0);
}

#[test]
fn a_large_step_turns_at_the_speed_of_the_servo() {
    let mut bench = Bench::new(&Value::Null);
    bench.steps(200, &[2.0, START[1], START[2]]);
    let [x, y, _] = bench.tip();
    let angle = libm::atan2(y, x);
    // 200 steps of 1 ms at 4.573 rad/s, far enough from the goal that the lag does not slow it.
    assert!((angle - 4.573 * 0.2).abs() < 1e-9, "{angle} rad");
}

#[test]
fn a_small_step_follows_the_lag_exactly_whatever_the_tick() {
    for tick_ms in [1, 4] {
        let mut arm = robot("arm", &json!({"lag_s": 0.05, "speed_rad_s": 100.0})).unwrap();
        let mut sense = [0.0; 7];
        for k in 0..=60 / tick_ms {
            arm.step(k * tick_ms * MS, &[0.1, START[1], START[2]], &mut sense);
        }
        let angle = libm::atan2(sense[4], sense[3]);
        let expected = 0.1 * (1.0 - libm::exp(-0.06 / 0.05));
        assert!((angle - expected).abs() < 1e-12, "{angle} rad, expected {expected}, tick {tick_ms} ms");
    }
}

/// [Polachan 2022] 1 cm forth and back, to 1 mm each, takes the published 110 ms.
#[test]
fn a_centimetre_forth_and_back_takes_110_ms() {
    let mut bench = Bench::new(&json!({"command": "position"}));
    bench.steps(1_000, &[0.29, 0.0, 0.18]);
    let start = bench.t_ms;
    for x in [0.30, 0.29] {
        bench.step(&[x, 0.0, 0.18]);
        assert!(!bench.arm.arrived());
        while !bench.arm.arrived() {
            bench.step(&[x, 0.0, 0.18]);
        }
    }
    let took = bench.t_ms - start;
    assert!((105..=115).contains(&took), "{took} ms");
}

#[test]
fn joints_stop_at_their_limits_and_the_arm_counts_as_arrived_there() {
    let mut bench = Bench::new(&Value::Null);
    bench.steps(3_000, &[9.0, START[1], START[2]]);
    let [x, y, _] = bench.tip();
    assert!((libm::atan2(y, x) - 2.6).abs() < 1e-6 && bench.arm.arrived());
}

#[test]
fn a_command_that_is_short_or_not_finite_changes_nothing() {
    let mut bench = Bench::new(&Value::Null);
    bench.steps(500, &START);
    let before = bench.sense;
    for bad in [&[][..], &[0.3][..], &[f64::NAN, 0.0, 0.0][..], &[0.0, f64::INFINITY, 0.0][..]] {
        bench.steps(10, bad);
        assert_eq!(bench.sense, before);
    }
}

#[test]
fn hammering_at_the_wall_for_a_minute_stays_within_the_stiffest_answer() {
    let mut bench =
        Bench::new(&json!({"command": "position", "stiffness_n_m": 5000.0, "damping_n_s_m": 20.0}));
    for i in 0..60_000 {
        let x = if (i / 40) % 2 == 0 { 0.40 } else { 0.25 };
        bench.step(&[x, 0.0, 0.18]);
        assert!(bench.sense.iter().all(|v| v.is_finite()));
        // Depth at most 8 cm, tip at most 0.47 m away from joints that turn at 4.573 rad/s: two of them add up.
        assert!(bench.sense[0] >= -(5000.0 * 0.08 + 20.0 * 2.0 * 4.573 * 0.47), "{} N", bench.sense[0]);
    }
}
