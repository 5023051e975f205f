//! Values of samples and of robots as rows, at the points that the plan names.

use super::{
    job::{decoded, Job},
    Node,
};
use crate::outside::Outside;
use tcps_core::{
    record::{Kind, Record, NONE},
    sample::{PointId, HELD},
    time::Time,
};
use tcps_plan::Codec;

/// Most values of a sample that are recorded.
const MOST_VALUES: usize = 256;

impl Node {
    /// Records the values of a sample at a point of its way, if the plan asks for them.
    pub(super) fn show_sample<O: Outside>(&mut self, now: Time, point: PointId, job: &mut Job, out: &mut O) {
        let codec = self.flows[job.flow as usize].codec;
        if (codec != Codec::Raw || job.decoded) && self.shows(point) {
            decoded(codec, job);
            let row = Record { index: job.meta.index, flow: job.flow, ..self.signal_row(now, point) };
            show(&row, &job.values, out);
        }
    }

    /// Records what was measured on a picture or a piece of sound when it was shown. The first value is when it was
    /// taken, by the clock of the node that took it, and becomes its age.
    pub(super) fn show_shown<O: Outside>(&mut self, now: Time, point: PointId, job: &Job, out: &mut O) {
        if !job.decoded || !self.was_shown(job) {
            return;
        }
        let row = Record { index: job.meta.index, flow: job.flow, ..self.signal_row(now, point) };
        let mut values = job.values.clone();
        if let Some(taken_ns) = values.first_mut() {
            *taken_ns = self.clock.read(now) as f64 - *taken_ns;
        }
        show(&row, &values, out);
    }

    /// Records what a robot senses after a step, if the plan asks for it.
    pub(super) fn show_sense<O: Outside>(&self, robot: usize, now: Time, out: &mut O) {
        let robot = &self.robots[robot];
        let point = HELD | robot.component;
        if self.shows(point) {
            show(&self.signal_row(now, point), robot.senses(), out);
        }
    }

    /// Whether the values at a point are recorded.
    fn shows(&self, point: PointId) -> bool {
        self.signals.binary_search(&point).is_ok()
    }

    fn signal_row(&self, now: Time, point: PointId) -> Record {
        Record { flow: NONE, point, node: self.id, ..Record::new(now, Kind::Signal) }
    }
}

/// One row for each value; `detail` is its number.
fn show<O: Outside>(row: &Record, values: &[f64], out: &mut O) {
    for (number, value) in values.iter().take(MOST_VALUES).enumerate() {
        out.record(Record { value: value.to_bits() as i64, detail: number as u8, ..*row });
    }
}
