//! Age of data: how old the newest sample is that the receiver has, at every instant (Kaul, Yates and Gruteser 2012).
//!
//! ```text
//! age  |   /|  /|     /|      rises with time, falls to the sample's delay when a newer one arrives
//!      |  / | / |   /  |      mean = area / time
//!      | /  |/  | /    |
//!      +----------------> t
//! ```

use super::jitter::MeanMax;
use super::series::{FlowBin, Timeline};
use tcps_core::time::Time;

/// Watches deliveries.
#[derive(Debug, Default)]
pub struct Age {
    /// Last instant looked at, and the origin of the newest sample then.
    state: Option<(Time, Time)>,
    area: f64,
    covered_ns: f64,
    max_ns: i64,
}

impl Age {
    /// At `time_ns` a sample arrived that was made at `origin_ns`; what lies before `warmup_ns` is drawn, not counted.
    // [Kaul 2012 §II]
    #[inline]
    pub fn arrive(
        &mut self,
        time_ns: Time,
        origin_ns: Time,
        warmup_ns: Time,
        line: &Timeline,
        bins: &mut [FlowBin],
    ) {
        let newest_ns = self.until(time_ns, warmup_ns, line, bins);
        self.state = Some((time_ns, newest_ns.map_or(origin_ns, |n| n.max(origin_ns))));
    }

    /// Lets the age grow up to `time_ns`; the newest sample's origin.
    pub fn until(
        &mut self,
        time_ns: Time,
        warmup_ns: Time,
        line: &Timeline,
        bins: &mut [FlowBin],
    ) -> Option<Time> {
        let (last_ns, newest_ns) = self.state?;
        if time_ns > last_ns {
            line.split(last_ns, time_ns, |bin, from_ns, to_ns| {
                let span_ns = to_ns.saturating_sub(from_ns) as f64;
                let cell = &mut bins[bin];
                cell.age_area += trapezium(from_ns, to_ns, newest_ns);
                cell.age_ns += span_ns;
            });
            if last_ns >= warmup_ns {
                self.count(last_ns, time_ns, newest_ns);
            }
            self.state = Some((time_ns, newest_ns));
        }
        Some(newest_ns)
    }

    #[inline]
    fn count(&mut self, from_ns: Time, to_ns: Time, newest_ns: Time) {
        self.area += trapezium(from_ns, to_ns, newest_ns);
        self.covered_ns += to_ns.saturating_sub(from_ns) as f64;
        self.max_ns = self.max_ns.max(to_ns.saturating_sub(newest_ns));
    }

    /// Mean over time and largest age in nanoseconds.
    pub fn summary(&self) -> Option<MeanMax> {
        (self.covered_ns > 0.0)
            .then(|| MeanMax { mean: self.area / self.covered_ns, max: self.max_ns as f64 })
    }
}

/// Area under the age between two instants.
#[inline]
fn trapezium(from_ns: Time, to_ns: Time, newest_ns: Time) -> f64 {
    let young = from_ns.saturating_sub(newest_ns) as f64;
    let old = to_ns.saturating_sub(newest_ns) as f64;
    (young + old) / 2.0 * to_ns.saturating_sub(from_ns) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    // [Kaul 2012 §II]
    #[test]
    fn a_regular_stream_has_the_age_delay_plus_half_a_period() {
        let (line, mut bins) = (Timeline::new(1_000_000, 10), vec![FlowBin::default(); 10]);
        let mut age = Age::default();
        for n in 0..1001 {
            age.arrive(n * 1000 + 300, n * 1000, 0, &line, &mut bins);
        }
        let s = age.summary().unwrap();
        assert!((s.mean - 800.0).abs() < 1e-9, "{}", s.mean);
        assert_eq!(s.max, 1300.0);
        let of_bins: f64 = bins.iter().map(|b| b.age_area).sum();
        assert!((of_bins - 800.0 * 1e6).abs() < 1.0);
    }

    #[test]
    fn an_older_sample_does_not_make_the_data_younger_or_older() {
        let (line, mut bins) = (Timeline::new(1000, 10), vec![FlowBin::default(); 10]);
        let mut age = Age::default();
        age.arrive(100, 90, 0, &line, &mut bins);
        age.arrive(110, 20, 0, &line, &mut bins);
        assert_eq!(age.until(120, 0, &line, &mut bins), Some(90));
        assert_eq!(age.summary().unwrap().max, 30.0);
    }
}
