//! The recording that ships, through the default hooks, to the default robot.

mod common;

use common::values;
use serde_json::Value;
use tcps_control::{hook, robot};
use tcps_core::time::MS;

/// Rates and forces of `hand.csv` at 1 kHz, interpolated linearly.
fn hand() -> Vec<[f64; 6]> {
    let text = include_str!("../../../python/tcpsbed/data/hand.csv");
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|field| field.parse().unwrap()).collect())
        .collect();
    let mut at = 0;
    let last = rows.last().unwrap()[0];
    (0..(last * 1e3) as usize)
        .map(|ms| {
            let t = ms as f64 * 1e-3;
            while rows[at + 1][0] < t {
                at += 1;
            }
            let part = (t - rows[at][0]) / (rows[at + 1][0] - rows[at][0]);
            std::array::from_fn(|i| rows[at][i + 1] + part * (rows[at + 1][i + 1] - rows[at][i + 1]))
        })
        .collect()
}

/// Wrist (6 values) and sense (7 values) at each millisecond of a minute, for which the recording loops.
fn run() -> Vec<(Vec<f64>, [f64; 7])> {
    let mut wrist = hook("imu_wrist", &Value::Null).unwrap();
    let mut inverse = hook("arm3", &Value::Null).unwrap();
    let mut arm = robot("arm", &Value::Null).unwrap();
    let mut sense = [0.0; 7];
    let step = |(i, row): (usize, &[f64; 6])| {
        let t = i as i64 * MS;
        let pose = values(wrist.as_mut(), t, row);
        let joints = values(inverse.as_mut(), t, &pose);
        assert_eq!(arm.step(t, &joints, &mut sense), 7);
        (pose, sense)
    };
    hand().iter().cycle().take(60_000).enumerate().map(step).collect()
}

#[test]
fn the_wrist_stays_in_its_reach_and_moves_smoothly() {
    let path = run();
    for three in path.windows(3) {
        for i in 0..3 {
            let [a, b, c] = [three[0].0[i], three[1].0[i], three[2].0[i]];
            assert!((c - [0.30, 0.0, 0.18][i]).abs() <= [0.05, 0.09, 0.07][i]);
            assert!((c - b).abs() < 2.5e-3, "{} m in 1 ms", c - b);
            // Rates of the recording go by 1.03 rad/s in 1 ms, at a forearm of 0.25 m; forces reach 5 g.
            assert!(
                (c - 2.0 * b + a).abs() < 3.1e-4,
                "a jump of the speed by {} m/s",
                (c - 2.0 * b + a) * 1e3
            );
        }
    }
}

#[test]
fn in_every_ten_seconds_the_hand_touches_the_wall_several_times_with_a_few_newtons() {
    let path = run();
    for part in path.chunks(10_000) {
        let touching: Vec<bool> = part.iter().map(|(_, sense)| sense[6] > 0.5).collect();
        let share = touching.iter().filter(|t| **t).count() as f64 / part.len() as f64;
        let contacts = touching.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let most = part.iter().map(|(_, sense)| -sense[0]).fold(0.0, f64::max);
        assert!((0.1..=0.6).contains(&share), "in contact {:.0} % of the time", 100.0 * share);
        assert!((3..=40).contains(&contacts), "{contacts} contacts");
        assert!((1.0..=5.0).contains(&most), "{most} N");
    }
}

#[test]
fn the_same_recording_gives_the_same_bits() {
    let bits = |path: Vec<(Vec<f64>, [f64; 7])>| -> Vec<u64> {
        path.iter().flat_map(|(wrist, sense)| wrist.iter().chain(sense)).map(|v| v.to_bits()).collect()
    };
    assert!(bits(run()) == bits(run()));
}
