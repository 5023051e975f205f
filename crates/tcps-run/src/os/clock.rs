//! The machine's clocks: run time is CLOCK_MONOTONIC since the barrier, kernel stamps are CLOCK_REALTIME.

use nix::time::{clock_gettime, ClockId};
use tcps_core::time::{Time, MS, SECOND};

/// Nanoseconds of a clock of the kernel.
fn read(id: ClockId) -> Time {
    // These clocks exist on every Linux; the call cannot fail for them.
    clock_gettime(id).map_or(0, |t| t.tv_sec() * SECOND + t.tv_nsec())
}

/// CLOCK_MONOTONIC.
pub fn monotonic_ns() -> Time {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Processor time of the calling thread.
pub fn thread_cpu_ns() -> Time {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Run time, and the conversion of kernel stamps to it.
#[derive(Debug)]
pub struct RunClock {
    start: Time,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    offset: Time,
    sampled: Time,
    steps: u64,
}

impl RunClock {
    /// A clock that shows 0 at `start` on CLOCK_MONOTONIC.
    pub fn new(start: Time) -> Self {
        Self { start, offset: offset(), sampled: monotonic_ns(), steps: 0 }
    }

    /// Run time now.
    pub fn now(&self) -> Time {
        monotonic_ns() - self.start
    }

    /// Run time of a reading of CLOCK_MONOTONIC.
    pub fn of_monotonic(&self, monotonic_ns: Time) -> Time {
        monotonic_ns - self.start
    }

    /// Run time of a kernel stamp; never later than `now`.
    pub fn of_stamp(&mut self, realtime_ns: Time, now: Time) -> Time {
        if now + self.start - self.sampled > SECOND {
            self.sample(now);
        }
        (realtime_ns - self.offset - self.start).min(now)
    }

    /// The same by the wall clock as it is set at `now`.
    pub fn of_stamp_anew(&mut self, realtime_ns: Time, now: Time) -> Time {
        self.sample(now);
        self.of_stamp(realtime_ns, now)
    }

    fn sample(&mut self, now: Time) {
        let offset = offset();
        // Slewing moves the clocks apart by microseconds a second; more is a step of the wall clock.
        self.steps += ((offset - self.offset).abs() > MS) as u64;
        (self.offset, self.sampled) = (offset, now + self.start);
    }

    /// Steps of the wall clock seen so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// The tightest of a few readings of one clock between two of the other.
fn offset() -> Time {
    let reading = |_| {
        let (before, wall, after) = (monotonic_ns(), read(ClockId::CLOCK_REALTIME), monotonic_ns());
        (after - before, wall - (before + after) / 2)
    };
    (0..5).map(reading).min().map_or(0, |(_, offset)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_of_now_is_now() {
        let mut clock = RunClock::new(monotonic_ns() - SECOND);
        // However long the machine does something else, the stamp lies between the readings around it.
        let before = clock.now();
        let wall = read(ClockId::CLOCK_REALTIME);
        let now = clock.now();
        let stamp = clock.of_stamp(wall, now);
        assert!(before >= SECOND && stamp <= now && stamp > before - MS, "{before} {stamp} {now}");
    }
}
