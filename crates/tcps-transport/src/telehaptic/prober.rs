//! Probes of the round trip, for controllers that go by it.
//!
//! ```text
//! every 10 ms ─► probe ─► other side ─► answer ─► now - time in it
//! ```

use tcps_core::time::{Time, SECOND, US};
use tcps_wire::probe::Repr;

/// A round trip that is longer is none.
const LONGEST_NS: Time = 10 * SECOND;

/// Asks, and reads answers.
#[derive(Debug)]
pub(super) struct Prober {
    every_ns: Option<Time>,
    due_ns: Option<Time>,
    sequence: u16,
}

impl Prober {
    /// A probe every `every_ns`; none if only the other side asks.
    pub(super) fn new(every_ns: Option<Time>) -> Self {
        Self { every_ns, due_ns: None, sequence: 0 }
    }

    /// The first thing happens at this endpoint: probes count from here.
    pub(super) fn begin(&mut self, now: Time) {
        if let Some(every_ns) = self.every_ns {
            self.due_ns.get_or_insert(now.saturating_add(every_ns));
        }
    }

    /// When the next probe is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.due_ns
    }

    /// The probe, if it is time for it.
    // [Kokkonis 2015]
    pub(super) fn due(&mut self, now: Time) -> Option<Repr> {
        let (due_ns, every_ns) = (self.due_ns.filter(|d| *d <= now)?, self.every_ns?);
        self.due_ns = Some(due_ns + every_ns * ((now - due_ns) / every_ns + 1));
        self.sequence = self.sequence.wrapping_add(1);
        Some(Repr { answers: false, sequence: self.sequence, left_us: stamp_us(now) })
    }

    /// The round trip that an answer shows; none if that cannot be.
    pub(super) fn answered(&self, now: Time, answer: &Repr) -> Option<Time> {
        let round_trip_ns = Time::from(stamp_us(now).wrapping_sub(answer.left_us)) * US;
        (self.every_ns.is_some() && round_trip_ns <= LONGEST_NS).then_some(round_trip_ns)
    }
}

fn stamp_us(now: Time) -> u32 {
    now.div_euclid(US) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    // [Kokkonis 2015]
    #[test]
    fn a_probe_every_10_ms_and_its_round_trip_across_a_wrap_of_the_stamp() {
        let start = (Time::from(u32::MAX) - 5_000) * US;
        let mut p = Prober::new(Some(10 * MS));
        p.begin(start);
        assert_eq!(p.due(start + 9 * MS), None);
        let probe = p.due(start + 10 * MS).unwrap();
        assert_eq!((probe.sequence, p.deadline()), (1, Some(start + 20 * MS)));
        assert_eq!(p.answered(start + 40 * MS, &probe), Some(30 * MS));
        assert_eq!(p.answered(start + 11 * SECOND, &probe), None, "longer than any");
        assert_eq!(p.answered(start, &probe), None, "from the future");
        assert_eq!(p.due(start + 55 * MS).map(|p| p.sequence), Some(2), "missed ones are passed over");
        assert_eq!(p.deadline(), Some(start + 60 * MS));
        assert_eq!(Prober::new(None).answered(start, &probe), None, "nobody here asks");
    }
}
