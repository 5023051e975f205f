//! How well commands come: the age of the newest, and loss, order and rate over the last 64.

use std::collections::VecDeque;

use tcps_core::time::Time;

/// Commands that are looked back on.
const WINDOW: usize = 64;
/// A number that is this far behind belongs to a sender that has started again.
const RESTARTED: u32 = 2000;

/// What is too much.
#[derive(Debug, Clone, Copy)]
pub struct Thresholds {
    /// Share of commands lost.
    pub loss: f64,
    /// Share of commands that came after a newer one.
    pub reordered: f64,
    /// Fewest commands a second; 0: any.
    pub least_hz: f64,
}

/// Keeps account of commands.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// Numbers and moments of the newest commands.
    window: VecDeque<(u32, Time)>,
    /// For the newest arrivals, whether each came after a newer one.
    late: VecDeque<bool>,
    newest: Option<u32>,
    /// Origin of the newest sample that commands were made of.
    origin_ns: Option<Time>,
    age_ns: Time,
}

/// What a command is that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Older than one that came before.
    Old,
    /// A predictor's: newer, but of a sample that was known already.
    Predicted,
    /// Of a sample that was not known.
    New,
}

impl Health {
    /// Time goes on by `dt`.
    pub fn pass(&mut self, dt: Time) {
        self.age_ns = self.age_ns.saturating_add(dt);
    }

    /// A command with a number came at `now`, made of the sample of this origin. One of a sample that was known is no
    /// sign of life: the age goes on.
    pub fn arrive(&mut self, now: Time, number: u32, origin_ns: Time) -> Arrival {
        let behind = self.newest.map_or(0, |n| n.wrapping_sub(number));
        let newer = self.newest.is_none_or(|n| number.wrapping_sub(n).wrapping_sub(1) < u32::MAX / 2);
        let restarted = !newer && behind > RESTARTED;
        if restarted {
            self.window.clear();
        }
        self.late.push_back(!newer && !restarted);
        if self.late.len() > WINDOW {
            self.late.pop_front();
        }
        if !newer && !restarted {
            return Arrival::Old;
        }
        self.newest = Some(number);
        self.window.push_back((number, now));
        if self.window.len() > WINDOW {
            self.window.pop_front();
        }
        if self.origin_ns.replace(origin_ns) == Some(origin_ns) {
            return Arrival::Predicted;
        }
        self.age_ns = 0;
        Arrival::New
    }

    /// Time since the newest command; endless before the first.
    pub fn age_ns(&self) -> Time {
        self.newest.map_or(Time::MAX, |_| self.age_ns)
    }

    /// True if commands come worse than a share of what the thresholds allow.
    pub fn poor(&self, limits: &Thresholds, share: f64) -> bool {
        let (Some(first), Some(last)) = (self.window.front(), self.window.back()) else { return false };
        let came = (self.window.len() - 1) as f64;
        let meant = f64::from(last.0.wrapping_sub(first.0)).max(1.0);
        let seconds = (last.1.saturating_sub(first.1)) as f64 * 1e-9;
        let late = self.late.iter().filter(|l| **l).count() as f64 / self.late.len().max(1) as f64;
        (self.window.len() > 1 && 1.0 - came / meant > share * limits.loss)
            || late > share * limits.reordered
            || (seconds > 0.0 && came / seconds < limits.least_hz / share)
    }
}
