//! Motion within limits: towards a command, to a stop, back along the way, or to zero at once.

use std::collections::VecDeque;

use super::Workspace;

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
    /// Goes back the way it came, within the workspace, then stays.
    Retreat,
    /// Gives out zeros: for forces.
    Zero,
    /// Goes where the emergency agent says, slowly and within its reach; without a word from it, comes to rest.
    Agent,
}

/// Limits of every value.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Highest speed, in units a second.
    pub speed: f64,
    /// Highest acceleration when coming to rest, in units a second squared.
    pub acceleration: f64,
    /// Where values may be.
    pub workspace: Workspace,
}

/// Moves values.
#[derive(Debug, Clone, Default)]
pub struct Mover {
    at: Vec<f64>,
    velocity: Vec<f64>,
    path: VecDeque<Vec<f64>>,
}

impl Mover {
    /// Where the values are; empty before it has begun.
    pub fn at(&self) -> &[f64] {
        &self.at
    }

    /// Begins at these values, at rest.
    pub fn begin(&mut self, at: &[f64]) {
        self.at = at.to_vec();
        self.velocity = vec![0.0; at.len()];
        self.path.clear();
    }

    /// Comes to rest at once.
    pub fn rest(&mut self) {
        self.velocity.fill(0.0);
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
            Action::Hold => self.rest(),
            Action::Zero => {
                self.at.fill(0.0);
                self.rest();
            }
            Action::Decelerate | Action::Agent => {
                let change = limits.acceleration * dt;
                for (i, (at, v)) in self.at.iter_mut().zip(&mut self.velocity).enumerate() {
                    *v -= v.clamp(-change, change);
                    *at = limits.workspace.held(i, *at, *at + *v * dt);
                }
            }
            Action::Retreat => self.back(dt, limits),
        }
    }

    fn remember(&mut self) {
        let mut place =
            if self.path.len() >= PATH { self.path.pop_front() } else { None }.unwrap_or_default();
        place.clear();
        place.extend_from_slice(&self.at);
        self.path.push_back(place);
    }

    fn back(&mut self, dt: f64, limits: &Limits) {
        self.rest();
        let Some(goal) = self.path.back() else { return };
        let most = limits.speed * dt;
        let mut there = true;
        for (i, (at, goal)) in self.at.iter_mut().zip(goal).enumerate() {
            *at = limits.workspace.held(i, *at, *at + (goal - *at).clamp(-most, most));
            there &= *at == *goal;
        }
        if there {
            self.path.pop_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(bounds: Vec<[f64; 2]>) -> Limits {
        Limits { speed: 1.0, acceleration: 10.0, workspace: Workspace::new(bounds).unwrap() }
    }

    fn moving() -> Mover {
        let mut mover = Mover::default();
        mover.begin(&[0.0, 0.5]);
        (0..100).for_each(|_| mover.follow(&[1.0, 0.5], 1e-3, 1.0));
        mover
    }

    fn near(found: &[f64], wanted: &[f64]) -> bool {
        found.len() == wanted.len() && found.iter().zip(wanted).all(|(f, w)| (f - w).abs() < 1e-9)
    }

    #[test]
    fn it_follows_at_its_speed_and_arrives() {
        let mut mover = moving();
        assert!(near(mover.at(), &[0.1, 0.5]) && (mover.distance(&[1.0, 0.4]) - 0.9).abs() < 1e-9);
        mover.follow(&[0.1004, 0.5], 1e-3, 1.0);
        assert!(near(mover.at(), &[0.1004, 0.5]) && near(&mover.velocity, &[0.4, 0.0]));
        mover.follow(&[9.0, 0.5], 0.0, 1.0);
        assert!(near(mover.at(), &[0.1004, 0.5]) && near(&mover.velocity, &[0.4, 0.0]), "no time, no motion");
        mover.begin(&[7.0]);
        assert!(mover.at() == [7.0] && mover.velocity == [0.0] && mover.path.is_empty());
    }

    /// v^2 / 2a = 0.05 from 1/s at 10/s^2, in 100 ms.
    #[test]
    fn it_comes_to_rest_within_its_acceleration() {
        for action in [Action::Decelerate, Action::Agent] {
            let mut mover = moving();
            mover.without(action, 1e-3, &limits(Vec::new()));
            assert!(near(&mover.velocity, &[0.99, 0.0]) && near(mover.at(), &[0.10099, 0.5]));
            (0..98).for_each(|_| mover.without(action, 1e-3, &limits(Vec::new())));
            assert!(mover.velocity[0] > 0.0);
            (0..3).for_each(|_| mover.without(action, 1e-3, &limits(Vec::new())));
            assert!(
                mover.velocity[0].abs() < 1e-12 && (mover.at()[0] - 0.1495).abs() < 1e-9,
                "{:?}",
                mover.at()
            );
        }
    }

    #[test]
    fn it_comes_to_rest_inside_the_workspace() {
        let mut mover = moving();
        (0..200).for_each(|_| mover.without(Action::Decelerate, 1e-3, &limits(vec![[-0.12, 0.12]])));
        assert!(near(mover.at(), &[0.12, 0.5]), "where one was outside it goes no farther: {:?}", mover.at());
    }

    #[test]
    fn hold_is_at_once_and_zero_gives_zeros() {
        let mut mover = moving();
        mover.without(Action::Hold, 1e-3, &limits(Vec::new()));
        assert!(near(mover.at(), &[0.1, 0.5]) && mover.velocity == [0.0, 0.0]);
        let mut mover = moving();
        mover.without(Action::Zero, 1e-3, &limits(Vec::new()));
        assert!(mover.at() == [0.0, 0.0] && mover.velocity == [0.0, 0.0]);
    }

    #[test]
    fn it_goes_back_the_way_it_came_and_no_farther() {
        let mut mover = moving();
        (0..20).for_each(|_| mover.follow(&[0.1, 0.0], 1e-3, 1.0));
        mover.without(Action::Retreat, 1e-3, &limits(Vec::new()));
        assert!(near(mover.at(), &[0.1, 0.481]) && mover.velocity == [0.0, 0.0], "{:?}", mover.at());
        (0..19).for_each(|_| mover.without(Action::Retreat, 1e-3, &limits(Vec::new())));
        assert!(near(mover.at(), &[0.1, 0.5]));
        (0..50).for_each(|_| mover.without(Action::Retreat, 1e-3, &limits(Vec::new())));
        assert!(near(mover.at(), &[0.05, 0.5]), "at the speed that it came with: {:?}", mover.at());
        (0..200).for_each(|_| mover.without(Action::Retreat, 1e-3, &limits(Vec::new())));
        assert!(near(mover.at(), &[0.0, 0.5]) && mover.path.is_empty());
    }

    /// At half the speed that it came with: along the way, and to its beginning.
    #[test]
    fn it_goes_back_within_its_speed() {
        let mut mover = moving();
        (0..100).for_each(|_| mover.follow(&[0.1, 1.0], 1e-3, 1.0));
        let slow = Limits { speed: 0.5, ..limits(Vec::new()) };
        let mut before = mover.at().to_vec();
        for _ in 0..800 {
            mover.without(Action::Retreat, 1e-3, &slow);
            assert!(mover.distance(&before) <= 0.5e-3 + 1e-9, "{before:?} to {:?}", mover.at());
            let [x, y] = mover.at() else { panic!("two values") };
            assert!(*y < 0.5 + 1e-9 || (x - 0.1).abs() < 1e-9, "round the corner that it came by: {x}, {y}");
            before = mover.at().to_vec();
        }
        assert!(near(mover.at(), &[0.0, 0.5]), "{:?}", mover.at());
    }

    #[test]
    fn it_remembers_so_much_of_the_way() {
        let mut mover = Mover::default();
        mover.begin(&[0.0]);
        (0..PATH + 50).for_each(|_| mover.follow(&[9.0], 1e-3, 1.0));
        assert_eq!(mover.path.len(), PATH);
        assert!(near(&mover.path[0], &[0.05]), "the oldest are forgotten: {:?}", mover.path[0]);
        assert!(near(&mover.path[PATH - 1], &[2.049]) && near(mover.at(), &[2.05]), "{:?}", mover.at());
    }
}
