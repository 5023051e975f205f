//! A run that goes on: what became of its samples so far, by the rules for a finished one.

use crate::{
    flow::{Around, Flow, Totals},
    leg::Arrival,
    options::Options,
    series::Series,
};
use tcps_core::{
    record::{Kind, Record},
    sample::PointId,
    time::Time,
};
use tcps_plan::Plan;

/// The first of its number, with a delay.
pub const FIRST: u8 = 1;
/// The sink has other data since.
pub const RENEWING: u8 = 2;
/// Its bytes count.
pub const PAID: u8 = 4;
/// It was sent after the warm-up; of those that a stage repeats, it came after it.
pub const COUNTED: u8 = 8;

/// The samples of all flows.
#[derive(Debug)]
pub struct Live {
    flows: Vec<Flow>,
    series: Series,
    options: Options,
    /// The time of the newest row.
    pub last_ns: Time,
}

impl Live {
    /// Nothing seen yet.
    pub fn new(plan: &Plan, options: Options) -> Self {
        let flows = plan.flows.iter().map(|f| Flow::new(plan, f, &options)).collect();
        Self { flows, series: Series::new(plan.duration_ns, 2, plan.flows.len(), 0), options, last_ns: 0 }
    }

    /// Takes rows, in any order; for each whether it is an arrival and of what sort, as `FIRST` and so on.
    pub fn add(&mut self, rows: &[Record]) -> Vec<u8> {
        let mut order: Vec<_> = (0..rows.len()).collect();
        order.sort_by_key(|i| rows[*i].time_ns);
        let mut sorts = vec![0; rows.len()];
        order.into_iter().for_each(|i| sorts[i] = self.take(&rows[i]));
        sorts
    }

    fn take(&mut self, row: &Record) -> u8 {
        if row.kind == Kind::Hop {
            return 0; // of the moment at which a packet came to a link
        }
        self.last_ns = self.last_ns.max(row.time_ns);
        let number = row.flow.index();
        let Some(flow) = self.flows.get_mut(number) else { return 0 };
        match row.kind {
            Kind::Attack if PointId(row.point) != PointId::NONE => flow.attack(),
            Kind::Delivered if flow.is_forged(row.index) => flow.forged(row, &self.options),
            _ => {}
        }
        let bin = self.series.bin(row.time_ns);
        let late_enough = row.time_ns >= self.options.warmup_ns;
        let around = Around { flow: number, options: &self.options, series: &mut self.series };
        match row.kind {
            Kind::Sent => flow.sent(row, around),
            Kind::Enter | Kind::Exit => flow.pass(row, around),
            Kind::Superseded | Kind::Suppressed | Kind::Renumbered => flow.count(row, around),
            Kind::Delivered => {
                return match flow.delivered(row, bin, around) {
                    Some(Arrival::First(counts)) => {
                        FIRST | RENEWING | PAID | if counts { COUNTED } else { 0 }
                    }
                    Some(Arrival::Undated(counts)) => PAID | if counts { COUNTED } else { 0 },
                    Some(Arrival::Repeated) => RENEWING | PAID | if late_enough { COUNTED } else { 0 },
                    _ => 0,
                }
            }
            _ => {}
        }
        0
    }

    /// By flow, as if the run ended now.
    pub fn totals(&self, now_ns: Time) -> impl Iterator<Item = Totals> + '_ {
        let until_ns = now_ns.min(self.last_ns).saturating_sub(self.options.grace_ns);
        self.flows.iter().map(move |flow| flow.totals(until_ns))
    }

    /// By flow: samples sent and delivered since the warm-up.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.flows.iter().map(Flow::sent_and_delivered)
    }

    /// Share of each flow's samples of a span that have not arrived; none where none was sent.
    pub fn losses(&self, from_ns: Time, to_ns: Time) -> impl Iterator<Item = Option<f64>> + '_ {
        self.flows.iter().map(move |flow| flow.loss_between(from_ns, to_ns))
    }

    /// Rows are missing: of samples that are in flight nobody knows what became of them.
    pub fn forget(&mut self) {
        self.flows.iter_mut().for_each(Flow::forget);
    }
}
