//! Signal-to-noise ratio of a flow with values: what a zero-order hold displays, against what it would display over a
//! network with the smallest delay that was seen and without losses.
//!
//! ```text
//! sample n is displayed just before   t_n = time of n + 1 + smallest delay     x̂_n = the newest that had arrived before t_n
//! SNR = 10 log10( Σ x_n² / Σ (x_n - x̂_n)² ) dB,   vectors summed over their values
//! ```
//! The constant part of the delay does not count, nor a variation within one period: the display looks once a period, just
//! before the next sample could be there. Sampling, losses, queueing, merging and prediction count.

use tcps_core::{record::Record, time::Time};

/// What has been made and displayed of a flow. All of it is kept: 8 bytes a value and 24 a sample.
#[derive(Debug, Clone, Default)]
pub struct Log {
    made: Series,
    shown: Series,
}

/// Vectors over time.
#[derive(Debug, Clone, Default)]
struct Series {
    /// Run time, number of the sample, and where its values end.
    at: Vec<(Time, u32, usize)>,
    values: Vec<f64>,
}

impl Series {
    /// Adds a value; the first of a sample begins a vector.
    fn add(&mut self, row: &Record) {
        self.values.push(f64::from_bits(row.value as u64));
        match self.at.last_mut().filter(|_| row.detail > 0) {
            Some(last) => last.2 = self.values.len(),
            None => self.at.push((row.time_ns, row.index, self.values.len())),
        }
    }

    fn of(&self, i: usize) -> &[f64] {
        let from = i.checked_sub(1).and_then(|before| self.at.get(before)).map_or(0, |a| a.2);
        let to = self.at.get(i).map_or(from, |a| a.2);
        self.values.get(from..to).unwrap_or(&[])
    }
}

impl Log {
    /// A value of a sample that the source has made.
    pub fn made(&mut self, row: &Record) {
        self.made.add(row);
    }

    /// A value of a sample that has been displayed.
    pub fn shown(&mut self, row: &Record) {
        self.shown.add(row);
    }

    /// The ratio over the samples made from `warmup_ns` on. Where samples are numbered anew on the way, `resampled_ns` is
    /// the smallest delay, and what is displayed last is the newest.
    // [Gokhale 2017: SNR]
    pub fn snr_db(&self, warmup_ns: Time, resampled_ns: Option<Time>) -> Option<f64> {
        let least_ns = resampled_ns.or_else(|| self.least_delay_ns())?;
        let (mut signal, mut noise, mut next, mut newest) = (0.0, 0.0, 0, None::<usize>);
        let end = self.shown.at.last()?.0;
        for (i, pair) in self.made.at.windows(2).enumerate() {
            let (made_ns, due) = (pair[0].0, pair[1].0.saturating_add(least_ns) - 1);
            while self.shown.at.get(next).is_some_and(|s| s.0 <= due) {
                let index = |n: usize| self.shown.at[n].1;
                let older = newest.is_some_and(|n| resampled_ns.is_none() && index(next) < index(n));
                newest = if older { newest } else { Some(next) };
                next += 1;
            }
            let Some(shown) = newest.filter(|_| made_ns >= warmup_ns && due <= end) else { continue };
            for (x, y) in self.made.of(i).iter().zip(self.shown.of(shown)) {
                signal += x * x;
                noise += (x - y) * (x - y);
            }
        }
        (signal > 0.0 && noise > 0.0).then(|| 10.0 * libm::log10(signal / noise))
    }

    fn least_delay_ns(&self) -> Option<Time> {
        let made = &self.made.at;
        let delay = |&(shown_ns, index, _): &(Time, u32, usize)| {
            let at = made.binary_search_by_key(&index, |m| m.1).ok()?;
            Some(shown_ns.saturating_sub(made[at].0))
        };
        self.shown.at.iter().filter_map(delay).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::{record::Kind, time::MS};

    fn rows(at: Time, index: u32, values: &[f64]) -> Vec<Record> {
        let row = |(detail, value): (u8, &f64)| Record {
            value: value.to_bits() as i64,
            index,
            detail,
            ..Record::new(at, Kind::Signal)
        };
        (0u8..).zip(values).map(row).collect()
    }

    fn log(delays_ms: &[Option<i64>], x: impl Fn(i64) -> f64) -> Log {
        let mut log = Log::default();
        let mut shown = Vec::new();
        for (i, delay) in (0..).zip(delays_ms) {
            rows(i * MS, i as u32, &[x(i), 1.0]).iter().for_each(|r| log.made(r));
            shown.extend(delay.map(|d| ((i + d) * MS, i)));
        }
        shown.sort_unstable();
        for (t, i) in shown {
            rows(t, i as u32, &[x(i), 1.0]).iter().for_each(|r| log.shown(r));
        }
        log
    }

    // [Gokhale 2017: SNR]
    #[test]
    fn a_constant_delay_is_no_noise() {
        assert_eq!(log(&[Some(15); 100], |i| i as f64).snr_db(0, None), None);
    }

    // [Gokhale 2017: SNR]
    #[test]
    fn a_hold_over_every_other_sample_of_a_ramp_is_off_by_half_of_its_steps() {
        let delays: Vec<_> = (0..1000).map(|i| (i % 2 == 0).then_some(15)).collect();
        let got = log(&delays, |i| i as f64).snr_db(0, None).unwrap();
        let signal: f64 = (0..=997).map(|i| (i * i) as f64 + 1.0).sum();
        let expected = 10.0 * libm::log10(signal / 499.0);
        assert!((got - expected).abs() < 1e-9, "{got} {expected}");
    }

    // [Gokhale 2017: SNR]
    #[test]
    fn late_samples_are_noise_and_old_ones_are_not_displayed_after_new_ones() {
        let late: Vec<_> = (0..1000).map(|i| Some(if i < 10 { 15 } else { 18 })).collect();
        let steady = log(&late, |i| i as f64).snr_db(500 * MS, None).unwrap();
        let signal: f64 = (500..=999).map(|i| (i * i) as f64 + 1.0).sum();
        assert!((steady - 10.0 * libm::log10(signal / (500.0 * 9.0))).abs() < 0.1, "{steady}");
        let mut reordered = vec![Some(15); 1000];
        reordered[500] = Some(40);
        let one_lost = log(&reordered, |i| i as f64).snr_db(0, None).unwrap();
        let signal: f64 = (0..999).map(|i| (i * i) as f64 + 1.0).sum();
        assert!((one_lost - 10.0 * libm::log10(signal)).abs() < 1e-6, "{one_lost}");
    }

    #[test]
    fn nothing_displayed_has_no_ratio() {
        assert_eq!(Log::default().snr_db(0, None), None);
        assert_eq!(log(&[None; 9], |i| i as f64).snr_db(0, None), None);
    }

    #[test]
    fn what_is_displayed_of_no_signal_has_no_ratio() {
        let mut log = Log::default();
        for i in 0..9 {
            rows(i * MS, i as u32, &[0.0]).iter().for_each(|r| log.made(r));
            rows((i + 1) * MS, i as u32, &[0.5]).iter().for_each(|r| log.shown(r));
        }
        assert_eq!(log.snr_db(0, None), None);
    }
}
