//! What is seen of h at the far side of a loop, in runs of the batch and of the testbed alike.

use serde::Serialize;

/// Share of the step within which a response counts as settled.
const BAND: f64 = 0.05;
/// Share of the time after the step, at its end, over which the error is averaged, and all of which a response that has
/// settled is within the band: one that still swings is there as well whenever it passes 1.
const LAST: f64 = 0.1;
/// A level counts as reached from this close: rounding does not decide.
const TOUCH: f64 = 1e-12;

/// One response; what it does not have is not a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Response {
    /// From t0 until h first reaches 90 % of the step, in ms.
    pub rise_ms: f64,
    /// Above 1, in percent of the step.
    pub overshoot: f64,
    /// Below 1 after h first crossed 1, in percent of the step.
    pub undershoot: f64,
    /// From t0 until h stays within 5 % of the step about 1, in ms; this has to be for the last tenth of the time at least.
    pub settling_ms: f64,
    /// Mean of h less 1 over the last tenth of the time after t0, in percent of the step.
    pub error: f64,
}

/// The levels of an experiment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Levels {
    pub(super) height: f64,
    pub(super) rise: f64,
    pub(super) band: f64,
    /// Moment of the step, and of the beginning of what counts for the error, in ms.
    pub(super) t0_ms: f64,
    pub(super) last_ms: f64,
}

impl Levels {
    /// Of a run whose last value of h is that of `end_ms`.
    pub(super) fn new(c: f64, t0_ms: f64, end_ms: f64) -> Self {
        let height = 1.0 - 1.0 / c;
        let (rise, band) = (1.0 - 0.1 * height - TOUCH, BAND * height);
        let last_ms = t0_ms + (1.0 - LAST) * (end_ms - t0_ms);
        Self { height, rise, band, t0_ms, last_ms }
    }

    /// Percent of the step.
    pub(super) fn percent(&self, h: f64) -> f64 {
        100.0 * h / self.height
    }
}

/// The response of a run that has these values of h from these moments on; of one that ends before the step nothing is
/// a number.
pub fn response(c: f64, t0_ms: f64, moments_ms: &[f64], values: &[f64]) -> Response {
    let end_ms = moments_ms.last().copied().unwrap_or(f64::NEG_INFINITY);
    if end_ms < t0_ms {
        let none = f64::NAN;
        return Response { rise_ms: none, overshoot: none, undershoot: none, settling_ms: none, error: none };
    }
    let mut observer = Observer::new(Levels::new(c, t0_ms, end_ms));
    moments_ms.iter().zip(values).for_each(|(ms, h)| observer.see(*ms, *h));
    observer.response()
}

/// Sees one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observer {
    levels: Levels,
    most: f64,
    least: f64,
    risen_ms: f64,
    crossed: bool,
    settled_ms: f64,
    /// Whether it is outside the band in the last tenth.
    swings: bool,
    sum: f64,
    count: u32,
}

impl Observer {
    pub(super) fn new(levels: Levels) -> Self {
        let (risen_ms, settled_ms) = (f64::NAN, f64::NAN);
        let (crossed, swings) = (false, false);
        Self { levels, most: 1.0, least: 1.0, risen_ms, crossed, settled_ms, swings, sum: 0.0, count: 0 }
    }

    /// h from `ms` on; times rise, and those before the step are left out.
    // [Polachan 2022: steps] rise time, overshoot, undershoot
    pub(super) fn see(&mut self, ms: f64, h: f64) {
        let l = &self.levels;
        if ms < l.t0_ms {
            return;
        }
        if h >= l.rise && self.risen_ms.is_nan() {
            self.risen_ms = ms;
        }
        self.most = self.most.max(h);
        self.crossed |= h >= 1.0;
        if self.crossed {
            self.least = self.least.min(h);
        }
        let within = (h - 1.0).abs() <= l.band;
        if !within {
            self.settled_ms = f64::NAN; // also what has overflowed
        } else if self.settled_ms.is_nan() {
            self.settled_ms = ms;
        }
        if ms >= l.last_ms {
            self.swings |= !within;
            self.sum += h - 1.0;
            self.count += 1;
        }
    }

    pub(super) fn response(&self) -> Response {
        let l = &self.levels;
        Response {
            rise_ms: self.risen_ms - l.t0_ms,
            overshoot: l.percent(self.most - 1.0),
            undershoot: l.percent(1.0 - self.least),
            settling_ms: if self.swings { f64::NAN } else { self.settled_ms - l.t0_ms },
            error: l.percent(self.sum / f64::from(self.count)),
        }
    }
}
