//! A recorded capture: its packets at their moments, once or in a loop.

use super::Arrivals;
use tcps_core::time::Time;
use tcps_plan::net::Recording;

/// A recording and the place in it.
pub struct Replay {
    packets: Recording,
    loop_ns: Option<Time>,
    place: usize,
    base: Time,
}

impl Replay {
    /// Packets in order of time; `loop_ns` is the length of a round.
    pub fn new(packets: Recording, loop_ns: Option<Time>) -> Self {
        Self { packets, loop_ns, place: 0, base: 0 }
    }
}

impl Arrivals for Replay {
    fn next(&mut self) -> Option<(Time, u32)> {
        if self.place >= self.packets.len() {
            self.base = self.base.checked_add(self.loop_ns?)?;
            self.place = 0;
        }
        let &(at, bytes) = self.packets.get(self.place)?;
        self.place += 1;
        Some((self.base.checked_add(at)?, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_follows_the_other() {
        let mut once = Replay::new(vec![(1, 10), (4, 20)].into(), None);
        assert_eq!([once.next(), once.next(), once.next()], [Some((1, 10)), Some((4, 20)), None]);
        let mut round = Replay::new(vec![(1, 10), (4, 20)].into(), Some(5));
        let times: Vec<_> = (0..5).filter_map(|_| round.next()).collect();
        assert_eq!(times, [(1, 10), (4, 20), (6, 10), (9, 20), (11, 10)]);
        assert_eq!(Replay::new(Recording::default(), Some(5)).next(), None);
    }
}
