//! Links whose times are known ahead: first in, first out, at a constant rate. [model: FIFO link]
//!
//! ```text
//! start(n) = max(arrival(n), end(n - 1))      end(n) = start(n) + 8 bytes(n) / rate
//! waiting at t: admitted packets with start > t
//! ```

use crate::queue::Limit;
use std::collections::VecDeque;
use tcps_core::time::Time;

/// A first-in-first-out queue at a constant rate whose departures are known on arrival.
#[derive(Debug)]
pub(crate) struct Ahead {
    limit: Limit,
    starts: VecDeque<(Time, u32)>,
    waiting_bytes: u64,
}

impl Ahead {
    pub fn new(limit: Limit) -> Self {
        Self { limit, starts: VecDeque::new(), waiting_bytes: 0 }
    }

    /// The start of a packet that arrives at `now`, or `None` if it does not fit. Departures come before arrivals
    /// of the same moment; a packet that finds the line free never counts against the limit. [model: FIFO link]
    #[inline]
    pub fn admit(&mut self, now: Time, busy_until: Time, bytes: u32) -> Option<Time> {
        if busy_until <= now {
            self.starts.clear();
            self.waiting_bytes = 0;
            return Some(now);
        }
        while let Some(&(start, b)) = self.starts.front() {
            if start > now {
                break;
            }
            self.waiting_bytes -= u64::from(b);
            self.starts.pop_front();
        }
        if !self.limit.admits(self.starts.len() as u64, self.waiting_bytes, bytes) {
            return None;
        }
        self.starts.push_back((busy_until, bytes));
        self.waiting_bytes += u64::from(bytes);
        Some(busy_until)
    }

    /// Packets and bytes that wait after the last admission.
    #[inline]
    pub fn load(&self) -> (u64, u64) {
        (self.starts.len() as u64, self.waiting_bytes)
    }

    /// Packets and bytes that wait at `now`.
    pub fn waiting(&self, now: Time) -> (u64, u64) {
        let later = self.starts.iter().rev().take_while(|s| s.0 > now);
        later.fold((0, 0), |(n, b), s| (n + 1, b + u64::from(s.1)))
    }
}
