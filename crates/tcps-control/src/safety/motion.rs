//! Motion within limits: towards a command, to a stop, back along the way, or to zero at once.

use std::collections::VecDeque;

/// Positions that are remembered for the way back.
const PATH: usize = 2000;

/// What is done while commands are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Stays where it is, at once.
    Hold,
    /// Comes to rest as fast as the acceleration allows.
    Decelerate,
    /// Goes back the way it came, then stays.
    Retreat,
    /// Gives out zeros: for forces.
    Zero,
    /// Goes where the emergency agent says, slowly and within its reach; without a word from it, comes to rest.
    Agent,
}

/// Limits of every value.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Highest speed, in units a second.
    pub speed: f64,
    /// Highest acceleration when coming to rest, in units a second squared.
    pub acceleration: f64,
}

/// Moves values.
#[derive(Debug, Clone, Default)]
pub struct Mover {
    at: Vec<f64>,
    velocity: Vec<f64>,
    path: VecDeque<Vec<f64>>,
}

impl Mover {
    /// Where the values are; empty before the first command.
    pub fn at(&self) -> &[f64] {
        &self.at
    }

    /// Begins at these values, at rest.
    pub fn begin(&mut self, at: &[f64]) {
        self.at = at.to_vec();
        self.velocity = vec![0.0; at.len()];
        self.path.clear();
    }

    /// Largest distance of a value from where it is to be.
    pub fn distance(&self, goal: &[f64]) -> f64 {
        self.at.iter().zip(goal).map(|(a, g)| (a - g).abs()).fold(0.0, f64::max)
    }

    /// Towards a goal for `dt` seconds, at most at `speed`.
    pub fn follow(&mut self, goal: &[f64], dt: f64, speed: f64) {
        self.remember();
        let most = speed * dt;
        for ((at, v), goal) in self.at.iter_mut().zip(&mut self.velocity).zip(goal) {
            let step = (goal - *at).clamp(-most, most);
            *at += step;
            *v = if dt > 0.0 { step / dt } else { *v };
        }
    }

    /// What is done without commands, for `dt` seconds.
    pub fn without(&mut self, action: Action, dt: f64, limits: &Limits) {
        match action {
            Action::Hold => self.velocity.fill(0.0),
            Action::Zero => {
                self.at.fill(0.0);
                self.velocity.fill(0.0);
            }
            Action::Decelerate | Action::Agent => {
                for (at, v) in self.at.iter_mut().zip(&mut self.velocity) {
                    let change = limits.acceleration * dt;
                    *v -= v.clamp(-change, change);
                    *at += *v * dt;
                }
            }
            Action::Retreat => self.back(dt, limits.speed),
        }
    }

    fn remember(&mut self) {
        let mut place =
            if self.path.len() >= PATH { self.path.pop_front() } else { None }.unwrap_or_default();
        place.clear();
        place.extend_from_slice(&self.at);
        self.path.push_back(place);
    }

    fn back(&mut self, dt: f64, speed: f64) {
        self.velocity.fill(0.0);
        let Some(goal) = self.path.back() else { return };
        let most = speed * dt;
        let mut there = true;
        for (at, goal) in self.at.iter_mut().zip(goal) {
            *at += (goal - *at).clamp(-most, most);
            there &= *at == *goal;
        }
        if there {
            self.path.pop_back();
        }
    }
}
