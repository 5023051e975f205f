//! The pace of a line: bytes leave one after the other, each in its time.

use std::collections::VecDeque;
use tcps_core::time::Time;

/// One direction of a line. What is put in comes out when its last byte would have come through.
#[derive(Debug)]
pub struct Pace<T> {
    byte_ns: f64,
    free_ns: Time,
    waiting: VecDeque<(Time, T)>,
}

impl<T> Pace<T> {
    /// A direction on which a byte takes so long; 0 where the line itself takes its time.
    pub fn new(byte_ns: f64) -> Self {
        Self { byte_ns, free_ns: Time::MIN, waiting: VecDeque::new() }
    }

    /// Something of so many bytes goes in.
    pub fn put(&mut self, now: Time, bytes: usize, what: T) {
        self.free_ns = now.max(self.free_ns).saturating_add((self.byte_ns * bytes as f64) as Time);
        self.waiting.push_back((self.free_ns, what));
    }

    /// How many are on their way.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// When the next one is through.
    pub fn due(&self) -> Option<Time> {
        self.waiting.front().map(|w| w.0)
    }

    /// The next one that is through by `now`.
    pub fn take(&mut self, now: Time) -> Option<T> {
        self.due().filter(|due| *due <= now)?;
        self.waiting.pop_front().map(|w| w.1)
    }

    /// Forgets what is on its way.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_bits_a_byte_one_after_the_other() {
        let mut pace = Pace::new(10_000.0); // 1 Mbit/s
        pace.put(0, 30, 'a');
        pace.put(100_000, 10, 'b');
        assert_eq!(pace.len(), 2);
        pace.put(900_000, 10, 'c');
        let mut found = Vec::new();
        while let Some(due) = pace.due() {
            assert_eq!(pace.take(due - 1), None);
            found.push((due, pace.take(due).unwrap()));
        }
        assert_eq!(found, [(300_000, 'a'), (400_000, 'b'), (1_000_000, 'c')]);
    }

    #[test]
    fn a_line_with_a_pace_of_its_own_is_not_held_up() {
        let mut pace = Pace::new(0.0);
        pace.put(5, 1_000, ());
        assert_eq!(pace.due(), Some(5));
    }
}
