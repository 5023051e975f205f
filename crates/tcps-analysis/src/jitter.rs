//! The jitters of [Gokhale 2017: jitters], each under its own name.
//!
//! All but the delay variations look at packets: samples that arrive at one instant came in one packet and the
//! first of them stands for it. `d` is the delay of that sample.
//!
//! ```text
//! step        |d(n) - d(n-1)|
//! displayed   |displayed instant - (origin + previous display delay)|, shown at the next tick of a 1 kHz display
//! rfc3550     J += (|d(n) - d(n-1)| - J) / 16
//! pdv         d - min d: the delays' distribution, shifted
//! ```

use super::tally::mean_of;
use serde::Serialize;
use tcps_core::time::{Time, MS};

/// Period of the display.
const DISPLAY_TICK_NS: Time = MS;

/// Mean and maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct MeanMax {
    /// Mean.
    pub mean: f64,
    /// Largest.
    pub max: f64,
}

/// Jitters in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Jitters {
    /// Of one packet against the one before.
    pub step_ns: MeanMax,
    /// Of the displayed instants against the previous display delay held.
    pub displayed_ns: MeanMax,
    /// Smoothed, at the end of the run.
    pub rfc3550_ns: f64,
    /// Smoothed, its largest value.
    pub rfc3550_max_ns: f64,
}

#[derive(Debug, Default)]
struct Magnitudes {
    n: u64,
    sum: i128,
    max: i64,
}

impl Magnitudes {
    #[inline]
    fn add(&mut self, value: i64) {
        self.n += 1;
        self.sum += i128::from(value);
        self.max = self.max.max(value);
    }

    fn summary(&self) -> MeanMax {
        MeanMax { mean: mean_of(self.sum, self.n), max: self.max as f64 }
    }
}

/// Watches packets.
#[derive(Debug, Default)]
pub struct Jitter {
    /// Delay and display delay of the packet before.
    previous: Option<(i64, i64)>,
    step: Magnitudes,
    displayed: Magnitudes,
    smoothed_ns: f64,
    largest_smoothed_ns: f64,
}

impl Jitter {
    /// A packet arrived at `time_ns` whose first sample took `delay_ns`.
    // [Gokhale 2017: jitters] [RFC 3550 §6.4.1]
    #[inline]
    pub fn arrive(&mut self, time_ns: Time, delay_ns: i64) {
        let wait_ns = (-time_ns).rem_euclid(DISPLAY_TICK_NS);
        let shown_ns = delay_ns.saturating_add(wait_ns);
        if let Some((before_ns, shown_before_ns)) = self.previous.replace((delay_ns, shown_ns)) {
            let step_ns = delay_ns.saturating_sub(before_ns).saturating_abs();
            self.step.add(step_ns);
            self.displayed.add(shown_ns.saturating_sub(shown_before_ns).saturating_abs());
            self.smoothed_ns += (step_ns as f64 - self.smoothed_ns) / 16.0;
            self.largest_smoothed_ns = self.largest_smoothed_ns.max(self.smoothed_ns);
        }
    }

    /// What was found.
    pub fn summary(&self) -> Jitters {
        Jitters {
            step_ns: self.step.summary(),
            displayed_ns: self.displayed.summary(),
            rfc3550_ns: self.smoothed_ns,
            rfc3550_max_ns: self.largest_smoothed_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [Gokhale 2017: jitters] [RFC 3550 §6.4.1]
    #[test]
    fn delays_of_5_9_5_ms_step_by_4() {
        let mut j = Jitter::default();
        for (n, delay_ms) in [5, 9, 5].into_iter().enumerate() {
            j.arrive((n as i64 * 20 + delay_ms) * MS, delay_ms * MS);
        }
        let s = j.summary();
        assert_eq!(s.step_ns, MeanMax { mean: 4e6, max: 4e6 });
        assert_eq!(s.displayed_ns, s.step_ns, "arrivals on the tick are shown at once");
        assert!((s.rfc3550_ns - (4e6 / 16.0 + (4e6 - 4e6 / 16.0) / 16.0)).abs() < 1e-6);
        assert_eq!(s.rfc3550_max_ns, s.rfc3550_ns);
    }

    // [Gokhale 2017: jitters]
    #[test]
    fn the_display_rounds_up_to_its_tick() {
        // Origins on the tick, delays of 1.2 and 1.9 ms: both are shown after 2 ms. 2.1 ms: after 3 ms.
        let mut j = Jitter::default();
        for (n, delay_us) in [1200, 1900, 2100].into_iter().enumerate() {
            j.arrive(n as i64 * 10 * MS + delay_us * 1000, delay_us * 1000);
        }
        let s = j.summary();
        assert_eq!((s.displayed_ns.mean, s.displayed_ns.max), (0.5e6, 1e6));
        assert_eq!((s.step_ns.mean, s.step_ns.max), (0.45e6, 0.7e6));
    }

    // [Gokhale 2017: display jitter]
    #[test]
    fn merging_four_samples_after_single_ones_is_displayed_three_ticks_late() {
        // k = 1 until sample 9, then packets of 4: the first sample of a packet waits for 3 more.
        let mut j = Jitter::default();
        for n in 0..10 {
            j.arrive(n * MS + MS, MS);
        }
        j.arrive((10 + 3) * MS + MS, 4 * MS);
        assert_eq!(j.summary().displayed_ns.max, 3e6);
    }
}
