//! Bytes on their way through an emulated line: each part leaves at its moment; a full pipe makes the writer wait.

use super::lock;
use crate::os::clock::monotonic_ns;
use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};
use tcps_core::time::Time;

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// When it came.
    pub came: Time,
    /// When it is to leave (CLOCK_MONOTONIC).
    pub due: Time,
    /// Its number, of all in its direction of a door.
    pub index: u32,
    pub bytes: Vec<u8>,
}

/// The parts of one direction of a connection.
pub struct Pipe {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    parts: VecDeque<Part>,
    bytes: usize,
    /// No more comes.
    ended: bool,
    /// Nobody takes any more.
    broken: bool,
}

impl Pipe {
    /// Empty.
    pub fn new() -> Self {
        Self { state: Mutex::default(), moved: Condvar::new() }
    }

    /// Puts a part in once there are fewer than `limit` bytes in it; false when nobody takes any more.
    pub fn put(&self, part: Part, limit: usize) -> bool {
        let mut state = lock(&self.state);
        while state.bytes >= limit && !state.broken {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.broken {
            return false;
        }
        state.bytes += part.bytes.len();
        state.parts.push_back(part);
        self.moved.notify_all();
        true
    }

    /// The next part once its moment has come; nothing when the last one has gone.
    pub fn take(&self) -> Option<Part> {
        let mut state = lock(&self.state);
        loop {
            let wait_ns = match state.parts.front() {
                _ if state.broken => return None,
                Some(part) => part.due - monotonic_ns(),
                None if state.ended => return None,
                None => Time::MAX,
            };
            if wait_ns <= 0 {
                let part = state.parts.pop_front()?;
                state.bytes -= part.bytes.len();
                self.moved.notify_all();
                return Some(part);
            }
            let span = Duration::from_nanos(wait_ns as u64);
            state = self.moved.wait_timeout(state, span).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// No more comes: what is in it still leaves.
    pub fn end(&self) {
        lock(&self.state).ended = true;
        self.moved.notify_all();
    }

    /// Nobody takes any more: what is in it is thrown away.
    pub fn break_off(&self) {
        lock(&self.state).broken = true;
        self.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::scoped;
    use tcps_core::time::MS;

    fn part(due: Time, bytes: &[u8]) -> Part {
        Part { came: 0, due, index: 0, bytes: bytes.to_vec() }
    }

    #[test]
    fn parts_leave_in_order_and_not_before_their_moment() {
        let pipe = Pipe::new();
        let due = monotonic_ns() + 5 * MS;
        assert!(pipe.put(part(due, b"a"), 100) && pipe.put(part(due + MS, b"b"), 100));
        pipe.end();
        for wanted in [part(due, b"a"), part(due + MS, b"b")] {
            assert_eq!(pipe.take(), Some(wanted.clone()));
            assert!(monotonic_ns() >= wanted.due);
        }
        assert_eq!(pipe.take(), None);
    }

    #[test]
    fn a_full_pipe_makes_the_writer_wait_and_a_broken_one_lets_it_go() {
        let pipe = Pipe::new();
        let far = monotonic_ns() + 3600 * 1000 * MS;
        assert!(pipe.put(part(0, b"four"), 4));
        std::thread::scope(|scope| {
            let waits = scoped(scope, || pipe.put(part(far, b"more"), 4)).unwrap();
            assert_eq!(pipe.take().map(|p| p.bytes), Some(b"four".to_vec()));
            assert!(waits.join().unwrap());
            let refused = scoped(scope, || pipe.put(part(far, b"late"), 4)).unwrap();
            pipe.break_off();
            assert!(!refused.join().unwrap());
        });
        assert_eq!(pipe.take(), None, "what was in it is thrown away");
    }
}
