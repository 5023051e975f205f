//! The geometry of the built-in arm: three joints of a small desktop arm in the proportions of a PhantomX Reactor.
//!
//! ```text
//!            elbow o------ forearm 0.1535 + wrist and gripper 0.166 ------> tip     z up, x to the front
//!   0.0385 forward |
//!   0.1445 up      |            q1 turns the base about z (to the left),
//!         shoulder o            q2 pitches the upper arm, q3 the forearm (down is positive)
//!      base 0.1075 |
//! ```
//! Lengths in m, angles in rad; at zero the upper arm stands and the forearm points to the front.

use std::f64::consts::FRAC_PI_2;

use crate::vector::{add, cross, dot, norm, scale, shorten, sub, V3};

const BASE_M: f64 = 0.1075;
const UPPER_M: [f64; 2] = [0.0385, 0.1445];
const FOREARM_M: f64 = 0.3195;
/// Lowest and highest angle of each joint.
pub(crate) const LIMITS_RAD: [[f64; 2]; 3] = [[-2.6, 2.6], [-FRAC_PI_2, FRAC_PI_2], [-FRAC_PI_2, FRAC_PI_2]];
/// A pose with the tip in front of the arm, away from all limits.
#[cfg(test)]
pub(crate) const START_RAD: V3 = [0.0, -0.33, 0.57];
/// The damping of the inverse: small against the lengths, large against rounding.
const DAMPING_M: f64 = 0.01;
const LONGEST_STEP_RAD: f64 = 0.3;
const ROUNDS: usize = 40;
const CLOSE_M: f64 = 1e-6;

/// The angles within their limits.
pub(crate) fn within_limits(q: V3) -> V3 {
    std::array::from_fn(|i| q[i].clamp(LIMITS_RAD[i][0], LIMITS_RAD[i][1]))
}

/// Position of the tip in m.
pub(crate) fn tip(q: V3) -> V3 {
    let plane = Plane::new(q);
    [plane.r * plane.c1, plane.r * plane.s1, plane.z]
}

/// The arm seen in the vertical plane through it.
struct Plane {
    s1: f64,
    c1: f64,
    /// Tip: distance from the axis of the base, height.
    r: f64,
    z: f64,
    /// The forearm in the plane.
    forearm: [f64; 2],
}

impl Plane {
    fn new(q: V3) -> Self {
        let (s2, c2) = (libm::sin(q[1]), libm::cos(q[1]));
        let (s23, c23) = (libm::sin(q[1] + q[2]), libm::cos(q[1] + q[2]));
        let forearm = [FOREARM_M * c23, -FOREARM_M * s23];
        Self {
            s1: libm::sin(q[0]),
            c1: libm::cos(q[0]),
            r: UPPER_M[0] * c2 + UPPER_M[1] * s2 + forearm[0],
            z: BASE_M - UPPER_M[0] * s2 + UPPER_M[1] * c2 + forearm[1],
            forearm,
        }
    }

    /// Columns of the Jacobian: how the tip moves with each joint.
    fn jacobian(&self) -> [V3; 3] {
        // A pitch down turns (r, z) about the shoulder into (z, -r).
        let pitch = |r: f64, z: f64| [z * self.c1, z * self.s1, -r];
        [
            [-self.r * self.s1, self.r * self.c1, 0.0],
            pitch(self.r, self.z - BASE_M),
            pitch(self.forearm[0], self.forearm[1]),
        ]
    }
}

// [Wampler 1986]
/// Angles whose tip is at `target`, or near it where limits and lengths forbid, found from the angles `from` by damped least
/// squares, `dq = J' (J J' + d² I)^-1 e` (Wampler 1986; Nakamura & Hanafusa 1986).
pub(crate) fn solve(target: V3, from: V3) -> V3 {
    let mut q = within_limits(from);
    for _ in 0..ROUNDS {
        let plane = Plane::new(q);
        let error = sub(target, [plane.r * plane.c1, plane.r * plane.s1, plane.z]);
        if norm(error) < CLOSE_M {
            break;
        }
        let step = shorten(free_step(q, plane.jacobian(), error), LONGEST_STEP_RAD);
        q = within_limits(add(q, step));
    }
    q
}

/// One step of the inverse; a joint that it would push through its limit takes no part.
fn free_step(q: V3, mut j: [V3; 3], error: V3) -> V3 {
    let step = damped_step(&j, error);
    let mut free = true;
    for i in 0..3 {
        let [low, high] = LIMITS_RAD[i];
        if (q[i] <= low && step[i] < 0.0) || (q[i] >= high && step[i] > 0.0) {
            j[i] = [0.0; 3];
            free = false;
        }
    }
    if free {
        step
    } else {
        damped_step(&j, error)
    }
}

fn damped_step(j: &[V3; 3], error: V3) -> V3 {
    let y = solve_symmetric(damped_square(j), error);
    std::array::from_fn(|i| dot(j[i], y))
}

/// `J J' + d² I` from the columns of J.
fn damped_square(j: &[V3; 3]) -> [V3; 3] {
    std::array::from_fn(|a| {
        std::array::from_fn(|b| {
            let sum: f64 = j.iter().map(|column| column[a] * column[b]).sum();
            sum + if a == b { DAMPING_M * DAMPING_M } else { 0.0 }
        })
    })
}

/// Solves `m y = e` for a symmetric, positive definite `m` by its adjugate.
fn solve_symmetric(m: [V3; 3], e: V3) -> V3 {
    let rows = [cross(m[1], m[2]), cross(m[2], m[0]), cross(m[0], m[1])];
    let determinant = dot(m[0], rows[0]);
    let columns = [scale(rows[0], e[0]), scale(rows[1], e[1]), scale(rows[2], e[2])];
    std::array::from_fn(|i| (columns[0][i] + columns[1][i] + columns[2][i]) / determinant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: V3, b: V3, tolerance: f64) -> bool {
        norm(sub(a, b)) < tolerance
    }

    #[test]
    fn at_zero_the_forearm_points_to_the_front() {
        assert!(near(tip([0.0; 3]), [0.358, 0.0, 0.252], 1e-12));
        // A quarter turn to the left; a quarter pitch down from the shoulder brings (r, z) to (z, -r).
        assert!(near(tip([FRAC_PI_2, 0.0, 0.0]), [0.0, 0.358, 0.252], 1e-12));
        assert!(near(tip([0.0, FRAC_PI_2, 0.0]), [0.1445, 0.0, 0.1075 - 0.358], 1e-12));
    }

    #[test]
    fn the_jacobian_is_the_derivative_of_the_tip() {
        for q in [[0.3, 0.2, 0.4], [-1.1, -0.4, 1.2], [2.0, 0.9, -0.7]] {
            let j = Plane::new(q).jacobian();
            for i in 0..3 {
                let (mut up, mut down) = (q, q);
                up[i] += 1e-6;
                down[i] -= 1e-6;
                let difference = scale(sub(tip(up), tip(down)), 0.5e6);
                assert!(near(j[i], difference, 1e-8), "joint {i} at {q:?}");
            }
        }
    }

    /// [Wampler 1986] Inverse after forward kinematics is the identity in front of the base, to 2 um at the tip.
    #[test]
    fn the_inverse_finds_every_position_in_front() {
        for i in 0..2_000 {
            let part = |k: f64| 2.0 * (i as f64 * k).fract() - 1.0;
            let q = [1.5 * part(0.618_034), 1.0 * part(0.754_878), 0.45 + 0.9 * part(0.569_840)];
            let target = tip(q);
            if Plane::new(q).r < 0.03 {
                continue; // bent back over the axis of the base, where two turns of it give the same tip
            }
            let found = solve(target, START_RAD);
            assert!(
                near(tip(found), target, 2e-6),
                "{i}: {q:?} -> {found:?}, off by {:?}",
                sub(tip(found), target)
            );
        }
    }

    #[test]
    fn out_of_reach_is_answered_by_the_nearest_direction_within_limits() {
        let q = solve([2.0, 0.0, BASE_M], START_RAD);
        assert_eq!(q, within_limits(q));
        let p = tip(q);
        let reach = (UPPER_M[0] * UPPER_M[0] + UPPER_M[1] * UPPER_M[1]).sqrt() + FOREARM_M;
        assert!(p[0] > 0.99 * reach && p[1].abs() < 1e-9, "{p:?}, reach {reach}");
    }
}
