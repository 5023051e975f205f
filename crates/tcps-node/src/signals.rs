//! Values of samples and of robots as rows, at the points that the plan names.

use super::{
    context::Context,
    job::{decoded, Job},
};
use crate::host::Host;
use tcps_core::{
    record::{Kind, Record},
    sample::PointId,
    time::Time,
};
use tcps_plan::Codec;

/// Most values of a sample that are recorded.
const MOST_VALUES: usize = 256;

impl<O: Host> Context<'_, O> {
    /// Records the values of a sample at a point of its way, if the plan asks for them.
    pub(super) fn show_sample(&mut self, now: Time, point: PointId, job: &mut Job) {
        if (job.codec != Codec::Raw || job.decoded) && self.here.shows(point) {
            decoded(job);
            let row = Record { index: job.meta.index, flow: job.flow, ..self.signal_row(now, point) };
            self.show(&row, &job.values);
        }
    }

    /// Records what was measured on a picture or a piece of sound when it was shown. The first value is when it was
    /// taken, by the clock of the node that took it, and becomes its age.
    pub(super) fn show_shown(&mut self, now: Time, point: PointId, job: &Job) {
        let row = Record { index: job.meta.index, flow: job.flow, ..self.signal_row(now, point) };
        let mut values = job.values.clone();
        if let Some(taken_ns) = values.first_mut() {
            *taken_ns = self.read(now) as f64 - *taken_ns;
        }
        self.show(&row, &values);
    }

    /// Records what is sensed at a point, if the plan asks for it.
    pub(super) fn show_sense(&mut self, now: Time, point: PointId, senses: &[f64]) {
        if self.here.shows(point) {
            self.show(&self.signal_row(now, point), senses);
        }
    }

    fn signal_row(&self, now: Time, point: PointId) -> Record {
        Record { point: point.0, ..self.here.row(now, Kind::Signal) }
    }

    /// One row for each value; `detail` is its number.
    fn show(&mut self, row: &Record, values: &[f64]) {
        for (number, value) in values.iter().take(MOST_VALUES).enumerate() {
            self.out.record(Record { value: value.to_bits() as i64, detail: number as u8, ..*row });
        }
    }
}
