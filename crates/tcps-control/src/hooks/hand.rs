//! Feedback `hand`: the operator's hand as an impedance under the force that comes back, limited to what the device
//! can do.
//!
//! ```text
//! F = gain F_in, at most `most_n`         m x'' + b x' + P = F         out: F (N), x (m): 6 values
//! P = k x, at most `most_pull_n`: how hard the muscles pull the hand back to where it wants to be
//! |x| is at most `most_m`: there the device has its end
//! ```
//! The defaults are in the range of the human arm holding a handle (Hogan 1989; Tsuji et al. 1995: 1 to 2 kg, 5 to
//! 40 N s/m, 100 to 600 N/m at the hand).

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
    time::Time,
};

use super::{emit, too_few};
use crate::vector::{add, scale, shorten, sub, three, V3};

/// Longest step of the integration and longest gap that it bridges, in s.
const STEP_S: f64 = 0.001;
const LONGEST_GAP_S: f64 = 0.5;

params! {
    /// Parameters.
    pub struct Params {
        gain: f64 = Number, "1", NOT_NEGATIVE, "factor on the force";
        most_n: f64 = Number, "5", POSITIVE, "highest force, in N";
        mass_kg: f64 = Number, "1", POSITIVE, "mass of the hand, in kg";
        damping_n_s_m: f64 = Number, "20", NOT_NEGATIVE, "damping, in N s/m";
        stiffness_n_m: f64 = Number, "300", NOT_NEGATIVE, "stiffness, in N/m";
        most_pull_n: f64 = Number, "1000", POSITIVE, "highest force of that stiffness, in N";
        most_m: f64 = Number, "1000", POSITIVE, "farthest that force moves the hand, in m";
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Hand {
    params: Params,
    displaced: V3,
    velocity: V3,
    last_ns: Option<Time>,
}

impl Hand {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        // Semi-implicit Euler stays stable for w < 2 / step and damping rate < 1 / step.
        let fastest =
            (params.stiffness_n_m / params.mass_kg).sqrt().max(params.damping_n_s_m / params.mass_kg);
        if fastest * STEP_S > 0.5 {
            return Err(Fault::new(
                "stiffness_n_m",
                format!("a rate of {fastest:.0} 1/s, too fast for the integration"),
                format!("gains for the mass that stay below {:.0} 1/s", 0.5 / STEP_S),
            ));
        }
        Ok(Self { params, displaced: [0.0; 3], velocity: [0.0; 3], last_ns: None })
    }

    fn push(&mut self, force: V3, dt: f64) {
        let p = &self.params;
        let spring = shorten(scale(self.displaced, p.stiffness_n_m), p.most_pull_n);
        let pull = add(spring, scale(self.velocity, p.damping_n_s_m));
        self.velocity = add(self.velocity, scale(sub(force, pull), dt / p.mass_kg));
        let free = add(self.displaced, scale(self.velocity, dt));
        self.displaced = shorten(free, p.most_m);
        if self.displaced != free {
            self.velocity = [0.0; 3];
        }
    }
}

impl Hook for Hand {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let Some(felt) = three(input.x()) else {
            return too_few("a force of 3 values", input.x());
        };
        let force = shorten(scale(felt, self.params.gain), self.params.most_n);
        let last = self.last_ns.unwrap_or(input.now_ns);
        let gap = (input.now_ns.saturating_sub(last) as f64 * 1e-9).clamp(0.0, LONGEST_GAP_S);
        self.last_ns = Some(input.now_ns.max(last));
        let steps = libm::ceil(gap / STEP_S).max(1.0);
        for _ in 0..steps as u32 {
            self.push(force, gap / steps);
        }
        let ([fx, fy, fz], [x, y, z]) = (force, self.displaced);
        emit(output, &[fx, fy, fz, x, y, z])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_force_beyond_what_the_hand_pulls_with_pushes_it_on_and_on() {
        let displaced = |pull: f64| {
            let params = serde_json::json!({"most_n": 10, "most_pull_n": pull});
            let mut hand = Hand::new(&params).unwrap();
            (0..2000).for_each(|_| hand.push([8.0, 0.0, 0.0], STEP_S));
            hand.displaced[0]
        };
        assert!((displaced(1000.0) - 8.0 / 300.0).abs() < 1e-4, "where stiffness and force are equal");
        assert!(displaced(5.0) > 0.2, "3 N are left, against the damping alone");
    }

    #[test]
    fn the_device_has_an_end_and_the_hand_comes_back_from_it_at_once() {
        let mut hand = Hand::new(&serde_json::json!({"most_pull_n": 2, "most_m": 0.1})).unwrap();
        (0..20_000).for_each(|_| hand.push([5.0, 0.0, 0.0], STEP_S));
        assert!((hand.displaced[0] - 0.1).abs() < 1e-12 && hand.velocity == [0.0; 3], "{:?}", hand.displaced);
        (0..2000).for_each(|_| hand.push([0.0; 3], STEP_S));
        assert!(
            hand.displaced[0] < 0.01,
            "as long as it was pushed before, it would take 150 s: {:?}",
            hand.displaced
        );
    }
}
