//! The clock of a board, which shows microseconds in 32 bits, in our time.

use tcps_core::time::{Time, SECOND};
use tcps_transport::clockfit::{ClockFit, Exchange};

/// Of the exchanges in this time the fastest one is used.
const LOOK_NS: Time = SECOND / 8;

/// What is known of a board's clock.
#[derive(Debug, Default)]
pub struct BoardClock {
    fit: ClockFit,
    /// The newest moment, unfolded.
    newest_us: Option<i64>,
    /// The fastest exchange of late, and when the look at it began.
    fastest: Option<Exchange>,
    since: Time,
}

impl BoardClock {
    /// A frame was written, the board had it from a moment on for so long, and its answer came.
    pub fn exchange(&mut self, written: Time, entry_us: u32, work_ns: Time, now: Time) {
        let entry_us = self.unfold(entry_us);
        self.newest_us = Some(entry_us);
        let entry_ns = entry_us.saturating_mul(1_000);
        let Some(exchange) = Exchange::new(written, entry_ns, entry_ns.saturating_add(work_ns), now) else {
            return;
        };
        if self.fastest.is_none_or(|f| exchange.round_trip_ns() < f.round_trip_ns()) {
            self.fastest = Some(exchange);
        }
        if self.fit.estimate().is_none() || now - self.since >= LOOK_NS {
            self.fastest.take().into_iter().for_each(|e| self.fit.add(e));
            self.since = now;
        }
    }

    /// Our moment of one of the board's.
    pub fn of_board(&self, us: u32) -> Time {
        let board_ns = self.unfold(us).saturating_mul(1_000);
        let Some(e) = self.fit.estimate() else { return board_ns };
        let about = board_ns.saturating_sub(e.offset_ns);
        about.saturating_sub((e.drift_ppb * 1e-9 * about.saturating_sub(e.at_ns) as f64).round() as Time)
    }

    /// How wrong our moments of it can be; `None` before the first exchange.
    pub fn bound_ns(&self) -> Option<Time> {
        self.fit.estimate().map(|e| e.bound_ns)
    }

    /// A moment of the board, which is less than half an hour from the newest one.
    fn unfold(&self, us: u32) -> i64 {
        self.newest_us
            .map_or(i64::from(us), |newest| newest + i64::from(us.wrapping_sub(newest as u32) as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    #[test]
    fn a_clock_of_32_bits_goes_on_when_it_begins_anew() {
        let mut clock = BoardClock::default();
        for i in 0..100 {
            let us = (u32::MAX - 50_000).wrapping_add(1_000 * i as u32);
            let sent = i * MS;
            clock.exchange(sent, us, 0, sent + 2_000);
            assert!((clock.of_board(us) - sent - 1_000).abs() < 3_000, "{i}");
        }
        assert!(clock.bound_ns().is_some_and(|b| b < 5_000));
    }
}
