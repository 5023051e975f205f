//! Orientation of an inertial sensor by a complementary filter on the rotation group (Mahony, Hamel & Pflimlin 2008,
//! "Nonlinear complementary filters on the special orthogonal group", IEEE TAC 53(5), section IV-C: gravity only).
//!
//! ```text
//! e  = a/|a| x R'z                      angle between measured and estimated up
//! w' = w + k e                          corrected rate, in the sensor's frame
//! R <- R exp(w' dt)
//! ```
//! Gravity says nothing about the heading, whose drift would turn the operator's hand away from the robot for ever. It
//! is measured against the operator's trunk instead, which follows the hand with a time constant: a leak.

use crate::vector::{add, cross, norm, scale, Quaternion, V3};

/// Standard gravity in m/s².
pub(crate) const GRAVITY: f64 = 9.806_65;
const UP: V3 = [0.0, 0.0, 1.0];

/// The filter.
#[derive(Debug, Clone)]
pub(crate) struct Orientation {
    rotation: Quaternion,
    heading: f64,
    gain: f64,
    heading_time_s: f64,
}

impl Orientation {
    /// Starts at rest with the measured specific force pointing up. `gain` in 1/s; `heading_time_s` of the leak.
    pub(crate) fn new(force: V3, gain: f64, heading_time_s: f64) -> Self {
        let rotation =
            if norm(force) > 0.0 { Quaternion::between(force, UP) } else { Quaternion::turn([0.0; 3]) };
        Self { rotation, heading: 0.0, gain, heading_time_s }
    }

    // [Mahony 2008]
    /// Goes on by `dt` seconds with the rates (rad/s) and the specific force (m/s²) measured in the sensor's frame.
    pub(crate) fn update(&mut self, dt: f64, rate: V3, force: V3) {
        let corrected = add(rate, scale(self.tilt_error(force), self.gain));
        self.heading += self.rotation.rotate(corrected)[2] * dt;
        let leak = self.heading * (1.0 - libm::exp(-dt / self.heading_time_s));
        self.heading -= leak;
        let turned = self.rotation.after(Quaternion::turn(scale(corrected, dt)));
        self.rotation = Quaternion::turn([0.0, 0.0, -leak]).after(turned).unit();
    }

    /// Nothing while the hand accelerates so hard that the force does not show where up is.
    fn tilt_error(&self, force: V3) -> V3 {
        let length = norm(force);
        if !(0.5 * GRAVITY..=1.5 * GRAVITY).contains(&length) {
            return [0.0; 3];
        }
        cross(scale(force, 1.0 / length), self.to_sensor(UP))
    }

    /// From the sensor's frame to the world's.
    pub(crate) fn to_world(&self, x: V3) -> V3 {
        self.rotation.rotate(x)
    }

    /// From the world's frame to the sensor's.
    pub(crate) fn to_sensor(&self, x: V3) -> V3 {
        self.rotation.inverse().rotate(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LEAK: f64 = 1e12;

    /// [Mahony 2008] A sensor that turns about a horizontal axis at a constant rate is followed to 0.1 degree.
    #[test]
    fn a_steady_rotation_is_followed() {
        let rate = 0.8;
        let mut filter = Orientation::new([0.0, 0.0, GRAVITY], 1.0, NO_LEAK);
        for i in 1..=10_000 {
            let angle = rate * i as f64 * 1e-3;
            // Up as a sensor sees it that has turned by `angle` about x.
            let force = [0.0, GRAVITY * libm::sin(angle), GRAVITY * libm::cos(angle)];
            filter.update(1e-3, [rate, 0.0, 0.0], force);
        }
        let up = filter.to_sensor(UP);
        assert!((up[1] - libm::sin(8.0)).abs() < 2e-3 && (up[2] - libm::cos(8.0)).abs() < 2e-3, "{up:?}");
    }

    /// [Mahony 2008] A wrong tilt decays with the gain: after 5 time constants less than 1 % of it is left.
    #[test]
    fn a_wrong_start_is_forgotten_with_the_gain() {
        let tilt = 0.3;
        let wrong = [0.0, GRAVITY * libm::sin(tilt), GRAVITY * libm::cos(tilt)];
        let mut filter = Orientation::new(wrong, 2.0, NO_LEAK);
        for _ in 0..2_500 {
            filter.update(1e-3, [0.0; 3], [0.0, 0.0, GRAVITY]);
        }
        let left = norm(cross(filter.to_sensor(UP), UP));
        assert!(left < 0.01 * tilt, "{left} rad left of {tilt}");
    }

    /// [Mahony 2008] Without correction a biased rate runs away; with it the error stays below bias / gain.
    #[test]
    fn a_bias_of_the_rate_is_bounded() {
        let bias = 0.02;
        let mut filter = Orientation::new([0.0, 0.0, GRAVITY], 1.0, NO_LEAK);
        for _ in 0..60_000 {
            filter.update(1e-3, [bias, 0.0, 0.0], [0.0, 0.0, GRAVITY]);
        }
        let error = norm(cross(filter.to_sensor(UP), UP));
        assert!((error - bias).abs() < 1e-4, "{error} rad at a bias of {bias} rad/s and a gain of 1/s");
    }

    #[test]
    fn the_heading_comes_back_with_its_time_constant() {
        let mut filter = Orientation::new([0.0, 0.0, GRAVITY], 1.0, 0.5);
        for _ in 0..500 {
            filter.update(1e-3, [0.0, 0.0, 1.0], [0.0, 0.0, GRAVITY]);
        }
        let front = filter.to_world([1.0, 0.0, 0.0]);
        let heading = libm::atan2(front[1], front[0]);
        let expected = 0.5 * (1.0 - libm::exp(-1.0));
        assert!((heading - expected).abs() < 1e-3, "{heading} rad, expected {expected}");
    }
}
