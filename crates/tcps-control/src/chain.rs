//! The geometry of the five-joint arm (`mujoco-arm`): lengths of a PhantomX Reactor.
//!
//! ```text
//!            elbow o--- 0.1535 ---o wrist --- 0.071 ---o roll --- 0.095 ---> tip       z up, x to the front
//!   0.0385 forward |              q4 pitch             q5 about the tool
//!   0.1445 up      |        q1 turns the base about z (to the left),
//!         shoulder o        q2 pitches the upper arm, q3 the forearm, q4 the wrist (down is positive)
//!      base 0.1075 |
//! ```
//! A pose is the tip's position, the pitch of the tool below the horizontal and its roll. A tool of five joints stays in
//! the vertical plane through its base, so that a pose has no heading of its own.

use std::f64::consts::{FRAC_PI_2, PI};

use crate::vector::{add, cross, dot, norm, scale, sub, Quaternion, V3};

/// Joints.
pub(crate) const JOINTS: usize = 5;
/// Angles.
pub(crate) type Q = [f64; JOINTS];
/// Lowest and highest angle of each joint.
pub(crate) const LIMITS_RAD: [[f64; 2]; JOINTS] =
    [[-PI, PI], [-FRAC_PI_2, FRAC_PI_2], [-FRAC_PI_2, FRAC_PI_2], [-1.7, 1.9], [-PI, PI]];
/// A pose in front of the arm with the tool pointing down, away from all limits.
pub(crate) const START_RAD: Q = [0.0, 0.207, -0.305, 1.669, 0.0];
/// Where each joint is in the frame of the one before, and about what it turns.
const LINKS: [(V3, V3); JOINTS] = [
    ([0.0, 0.0, 0.081], [0.0, 0.0, 1.0]),
    ([0.0, 0.0, 0.0265], [0.0, 1.0, 0.0]),
    ([0.0385, 0.0, 0.1445], [0.0, 1.0, 0.0]),
    ([0.1535, 0.0, 0.0], [0.0, 1.0, 0.0]),
    ([0.071, 0.0, 0.0], [1.0, 0.0, 0.0]),
];
const TOOL_M: f64 = 0.095;
/// Joints that the inverse moves; the roll is taken as it is.
const FREE: usize = 4;
/// A radian of direction counts as much as this length.
const RADIAN_M: f64 = 0.1;
/// The damping of the inverse: small against the lengths, large against rounding.
const DAMPING_M: f64 = 0.005;
const LONGEST_STEP_RAD: f64 = 0.3;
const ROUNDS: usize = 60;
const CLOSE_M: f64 = 1e-6;
/// A place that is missed by more than this is out of reach, or the search ran into a limit on its way.
const MISSED_M: f64 = 0.001;

/// Position of the tip (m), pitch of the tool below the horizontal and its roll (rad).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pose {
    pub(crate) at: V3,
    pub(crate) pitch: f64,
    pub(crate) roll: f64,
}

/// The angles within their limits.
pub(crate) fn within_limits(q: Q) -> Q {
    std::array::from_fn(|i| q[i].clamp(LIMITS_RAD[i][0], LIMITS_RAD[i][1]))
}

/// The pose of some angles.
pub(crate) fn pose(q: Q) -> Pose {
    let state = State::new(q);
    Pose { at: state.tip, pitch: q[1] + q[2] + q[3], roll: q[4] }
}

/// Where joints, axes and tip are for some angles.
struct State {
    joints: [V3; FREE],
    axes: [V3; FREE],
    tip: V3,
    tool: V3,
}

impl State {
    fn new(q: Q) -> Self {
        let (mut at, mut turned) = ([0.0; 3], Quaternion::turn([0.0; 3]));
        let (mut joints, mut axes) = ([[0.0; 3]; FREE], [[0.0; 3]; FREE]);
        for (i, (offset, axis)) in LINKS.iter().enumerate() {
            at = add(at, turned.rotate(*offset));
            if i < FREE {
                (joints[i], axes[i]) = (at, turned.rotate(*axis));
            }
            turned = turned.after(Quaternion::turn(scale(*axis, q[i])));
        }
        let tool = turned.rotate([1.0, 0.0, 0.0]);
        Self { joints, axes, tip: add(at, scale(tool, TOOL_M)), tool }
    }

    /// How tip and direction of the tool (times `radian_m`) move with each joint; turning about the tool moves neither.
    fn jacobian(&self, radian_m: f64) -> [[f64; 6]; FREE] {
        std::array::from_fn(|i| {
            let v = cross(self.axes[i], sub(self.tip, self.joints[i]));
            let w = sub(self.axes[i], scale(self.tool, dot(self.axes[i], self.tool)));
            let w = scale(w, radian_m);
            [v[0], v[1], v[2], w[0], w[1], w[2]]
        })
    }

    /// What is missing to a pose, in the same six numbers.
    fn missing(&self, at: V3, tool: V3, radian_m: f64) -> [f64; 6] {
        let (v, w) = (sub(at, self.tip), scale(cross(self.tool, tool), radian_m));
        [v[0], v[1], v[2], w[0], w[1], w[2]]
    }
}

/// Angles for a pose, found from the angles `from`. Where that search ends away from the place, as after a jump over the base
/// or against a limit, one from in front of the place counts if it comes closer: no arm stays folded beside a place in reach.
pub(crate) fn solve(wanted: Pose, from: Q) -> Q {
    let missed = |q: Q| norm(sub(wanted.at, State::new(q).tip));
    let near = search(wanted, from);
    if missed(near) <= MISSED_M {
        return near;
    }
    let heading = libm::atan2(wanted.at[1], wanted.at[0]);
    let afresh = search(wanted, [heading, START_RAD[1], START_RAD[2], START_RAD[3], wanted.roll]);
    if missed(afresh) + MISSED_M < missed(near) {
        afresh
    } else {
        near
    }
}

// [Wampler 1986]
/// Damped least squares, `dq = (J'J + d² I)^-1 J' e`. Where limits and lengths forbid the pitch, the position counts; where they
/// forbid that too, the nearest place on the way does.
fn search(wanted: Pose, from: Q) -> Q {
    let mut q = within_limits(from);
    q[4] = wanted.roll.clamp(LIMITS_RAD[4][0], LIMITS_RAD[4][1]);
    for radian_m in [RADIAN_M, 0.0] {
        for _ in 0..ROUNDS {
            let state = State::new(q);
            let heading = if libm::hypot(wanted.at[0], wanted.at[1]) > 1e-6 {
                libm::atan2(wanted.at[1], wanted.at[0])
            } else {
                q[0]
            };
            let (s, c) = (libm::sin(wanted.pitch), libm::cos(wanted.pitch));
            let tool = [c * libm::cos(heading), c * libm::sin(heading), -s];
            let missing = state.missing(wanted.at, tool, radian_m);
            if missing.iter().map(|e| e * e).sum::<f64>().sqrt() < CLOSE_M {
                break;
            }
            let step = free_step(&q, state.jacobian(radian_m), &missing);
            let length = step.iter().map(|d| d * d).sum::<f64>().sqrt();
            let part = if length > LONGEST_STEP_RAD { LONGEST_STEP_RAD / length } else { 1.0 };
            for i in 0..FREE {
                q[i] += step[i] * part;
            }
            q = within_limits(q);
        }
    }
    q
}

/// One step of the inverse; a joint that it would push through its limit takes no part.
fn free_step(q: &Q, mut j: [[f64; 6]; FREE], missing: &[f64; 6]) -> [f64; FREE] {
    let mut step = damped_step(&j, missing);
    for _ in 0..FREE {
        let stuck = (0..FREE).find(|&i| {
            let [low, high] = LIMITS_RAD[i];
            (q[i] <= low && step[i] < 0.0) || (q[i] >= high && step[i] > 0.0)
        });
        let Some(i) = stuck else { break };
        j[i] = [0.0; 6];
        step = damped_step(&j, missing);
    }
    step
}

/// `(J'J + d² I)^-1 J' e` by Cholesky's decomposition; `j` has the columns of J.
fn damped_step(j: &[[f64; 6]; FREE], e: &[f64; 6]) -> [f64; FREE] {
    let product = |a: &[f64; 6], b: &[f64; 6]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut l = [[0.0; FREE]; FREE];
    let mut y: [f64; FREE] = std::array::from_fn(|i| product(&j[i], e));
    for i in 0..FREE {
        for k in 0..=i {
            let mut sum = product(&j[i], &j[k]);
            if i == k {
                sum += DAMPING_M * DAMPING_M;
            }
            sum -= (0..k).map(|m| l[i][m] * l[k][m]).sum::<f64>();
            l[i][k] = if i == k { sum.max(1e-18).sqrt() } else { sum / l[k][k] };
        }
        y[i] = (y[i] - (0..i).map(|m| l[i][m] * y[m]).sum::<f64>()) / l[i][i];
    }
    for i in (0..FREE).rev() {
        y[i] = (y[i] - (i + 1..FREE).map(|m| l[m][i] * y[m]).sum::<f64>()) / l[i][i];
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_zero_the_tool_points_to_the_front() {
        let p = pose([0.0; JOINTS]);
        assert!(norm(sub(p.at, [0.358, 0.0, 0.252])) < 1e-12 && p.pitch == 0.0, "{p:?}");
    }

    #[test]
    fn the_jacobian_is_the_derivative_of_tip_and_tool() {
        for q in [[0.3, 0.2, 0.4, 0.1, 0.5], [-1.1, -0.4, 1.2, -0.9, 0.0]] {
            let j = State::new(q).jacobian(1.0);
            for (i, column) in j.iter().enumerate() {
                let (mut up, mut down) = (q, q);
                up[i] += 1e-6;
                down[i] -= 1e-6;
                let (a, b) = (State::new(up), State::new(down));
                let tip = scale(sub(a.tip, b.tip), 0.5e6);
                // The tool turns by w x tool.
                let tool = scale(sub(a.tool, b.tool), 0.5e6);
                let turned = cross([column[3], column[4], column[5]], State::new(q).tool);
                assert!(norm(sub(tip, [column[0], column[1], column[2]])) < 1e-8, "joint {i}");
                assert!(norm(sub(tool, turned)) < 1e-8, "joint {i}");
            }
        }
    }

    /// [Wampler 1986] Inverse after forward kinematics is the identity, to 2 um and 0.1 mrad, from angles that are up to
    /// 0.3 rad away: so far no joint turns between two samples.
    #[test]
    fn the_inverse_finds_a_pose_from_one_nearby() {
        for i in 0..2_000 {
            let part = |k: f64| 2.0 * (f64::from(i) * k).fract() - 1.0;
            let q = [
                1.5 * part(0.618_034),
                0.9 * part(0.754_878),
                0.5 + 0.8 * part(0.569_840),
                0.4 + 0.9 * part(0.819_173),
                part(0.671_044),
            ];
            let wanted = pose(q);
            if wanted.at[0] * libm::cos(q[0]) + wanted.at[1] * libm::sin(q[0]) < 0.05 {
                continue; // bent back over the axis of the base, where two turns of it give the same tip
            }
            let from = std::array::from_fn(|k| q[k] + 0.3 * part(0.437 + 0.1 * k as f64));
            let found = pose(solve(wanted, from));
            let off = norm(sub(found.at, wanted.at));
            assert!(off < 2e-6 && (found.pitch - wanted.pitch).abs() < 1e-4, "{i}: {wanted:?} -> {found:?}");
        }
    }

    #[test]
    fn a_pitch_that_cannot_be_had_leaves_the_position() {
        let wanted = Pose { at: [0.40, 0.0, 0.25], pitch: FRAC_PI_2, roll: 0.0 };
        let q = solve(wanted, START_RAD);
        assert_eq!(q, within_limits(q));
        assert!(norm(sub(pose(q).at, wanted.at)) < 1e-4, "{:?}", pose(q));
    }

    #[test]
    fn out_of_reach_is_answered_by_the_nearest_direction_within_limits() {
        let q = solve(Pose { at: [2.0, 0.0, 0.1075], pitch: 0.0, roll: 9.0 }, START_RAD);
        assert_eq!(q, within_limits(q));
        let p = pose(q);
        assert!(p.at[0] > 0.46 && p.at[1].abs() < 1e-9, "{p:?}");
    }

    /// From angles at which the search alone stays folded at its limits: beside the base, low in front, and bent back over it.
    #[test]
    fn the_arm_does_not_stay_folded_beside_a_place_in_reach() {
        for (from, at) in [
            ([2.459_793, -0.355_844, 1.042_222, 1.655_214, 0.0], [0.092_612, -0.231_767, 0.04]),
            ([0.459_861, 1.555_0, -1.344_531, -0.069_547, 0.0], [0.191_142, -0.020_660, 0.273_588]),
            ([-2.334_416, -1.530_707, 1.488_377, 1.121_181, 0.0], [0.111_822, 0.188_759, 0.160_487]),
        ] {
            let wanted = Pose { at, pitch: 0.8, roll: 0.0 };
            let off = |q: Q| norm(sub(pose(q).at, at));
            assert!(off(search(wanted, search(wanted, from))) > 0.03, "a dead end: {at:?}");
            assert!(off(solve(wanted, from)) < 1e-3, "{at:?}: {:?}", pose(solve(wanted, from)));
        }
    }
}
