//! Lines given as a trace of delivery opportunities, as recorded on cellular links. [Netravali 2015]
//!
//! At each moment of the trace 1500 bytes may leave; what is not used then is lost. Small packets share an
//! opportunity, large ones take several. After the last moment the trace starts again, that moment being its period.

use crate::turns::Turns;
use tcps_core::time::Time;

/// Bytes that may leave at each moment.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// A trace and the place in it.
#[derive(Debug, Clone)]
pub struct Opportunities {
    moments: Vec<Time>,
    base: Time,
    index: usize,
    left: u32,
}

impl Opportunities {
    /// A trace of ordered moments; the last one, above zero, is the period.
    pub fn new(moments: &[Time]) -> Self {
        Self { moments: moments.to_vec(), base: 0, index: 0, left: OPPORTUNITY_BYTES }
    }

    fn period(&self) -> Time {
        self.moments.last().copied().unwrap_or(1).max(1)
    }
}

impl Turns for Opportunities {
    fn next(&self) -> Time {
        self.after(0)
    }

    fn after(&self, n: usize) -> Time {
        let (place, len) = (self.index.saturating_add(n), self.moments.len().max(1));
        let rounds = (place / len) as Time;
        let moment = self.moments.get(place % len).copied().unwrap_or(0);
        self.base.saturating_add(rounds.saturating_mul(self.period())).saturating_add(moment)
    }

    fn skip_to(&mut self, now: Time) {
        if self.next() > now {
            return;
        }
        let period = self.period();
        self.base = now.max(0) / period * period;
        // A moment may equal the period, so the previous round is looked at as well.
        self.base = (self.base - period).max(0);
        self.index = 0;
        self.left = OPPORTUNITY_BYTES;
        while self.next() <= now {
            let within = now - self.base;
            let first_later = self.moments.partition_point(|&m| m <= within);
            if first_later < self.moments.len() {
                self.index = first_later;
            } else {
                self.base = self.base.saturating_add(period);
                self.index = 0;
            }
        }
    }

    fn take(&mut self, want: u32) -> u32 {
        let got = want.min(self.left);
        self.left -= got;
        if self.left == 0 {
            self.pass();
        }
        got
    }

    fn pass(&mut self) {
        self.left = OPPORTUNITY_BYTES;
        self.index += 1;
        if self.index >= self.moments.len() {
            self.index = 0;
            self.base = self.base.saturating_add(self.period());
        }
    }

    fn mean_ns(&self, bytes: u32) -> Time {
        let per_byte =
            self.period() as f64 / (self.moments.len().max(1) as f64 * f64::from(OPPORTUNITY_BYTES));
        (f64::from(bytes) * per_byte) as Time
    }

    fn bytes(&self) -> u32 {
        OPPORTUNITY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_repeats_after_its_last_moment() {
        let mut o = Opportunities::new(&[2, 2, 5]);
        let mut seen = Vec::new();
        for _ in 0..7 {
            seen.push(o.next());
            o.take(1500);
        }
        assert_eq!(seen, [2, 2, 5, 7, 7, 10, 12]);
    }

    #[test]
    fn skipping_agrees_with_passing_one_by_one() {
        for trace in [vec![2, 2, 5], vec![0, 3], vec![7], vec![0, 0, 1, 9, 9]] {
            for now in 0..60 {
                let (mut a, mut b) = (Opportunities::new(&trace), Opportunities::new(&trace));
                a.skip_to(now);
                while b.next() <= now {
                    b.pass();
                }
                assert_eq!(
                    (a.next(), a.after(1), a.after(9)),
                    (b.next(), b.after(1), b.after(9)),
                    "{trace:?} {now}"
                );
            }
        }
    }
}
