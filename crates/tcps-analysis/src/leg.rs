//! A part of a flow's way on which samples keep their numbers.
//!
//! A flow has one leg, unless a stage works at a period of its own (an edge predictor): it takes samples of one
//! numbering and gives samples of another, so that one leg ends at its component's entry and another starts at the
//! exit. A sample can be lost on either. What comes of a sample counts if that was sent after the warm-up.

use super::path::Join;
use super::series::Series;
use super::window::{
    Slot, Window, BEHIND, COUNTED, DELIVERED, FORGED, MADE, REPEATED, SENT, SUPERSEDED, UNDATED, USED,
};
use crate::options::Options;
use tcps_core::{
    ids::{ChannelId, ComponentId},
    record::Record,
    sample::PointId,
    time::{Time, MS},
};
use tcps_plan::{FlowPlan, Plan, VisitPlan};

/// Components of a flow that are told apart.
const MOST_VISITS: usize = 120;
/// How far clocks may differ beside what the plan says.
const CLOCKS_NS: Time = 100 * MS;

/// Counts of a leg.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Samples that started after the warm-up.
    pub sent: u64,
    /// Of these, whose fate is known.
    pub judged: u64,
    /// Of these, neither arrived nor given up on purpose.
    pub lost: u64,
    /// Started within the grace time and not arrived.
    pub in_flight: u64,
    /// Of those lost or in flight: taken for copies or old ones, behind an attacker's number.
    pub behind: u64,
    /// Copies of parts of samples that came nevertheless.
    pub copies: u64,
}

impl Counts {
    fn judge(&mut self, slot: &Slot, done: u16, flow: usize, series: &mut Series) {
        let missing = slot.missing(done);
        if missing {
            let bin = series.bin_of(slot.sent_ns);
            series.flows[flow][bin].lost += 1;
        }
        if slot.is(COUNTED) {
            self.judged += 1;
            self.lost += u64::from(missing);
            self.behind += u64::from(missing && slot.is(BEHIND));
        }
    }
}

/// What an arrival is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The first of its number; whether it counts.
    First(bool),
    /// A copy; whether it counts.
    Again(bool),
    /// The first of its number, with nothing new in it.
    Repeated,
    /// The first of its number, from before the run or from the future: it has no delay. Whether it counts.
    Undated(bool),
    /// Its number left the window long ago.
    Beyond,
    /// Nothing with its number can have started: a bit of it changed on the way.
    Stray,
    /// A periodic stage made it of an attacker's sample; whether that was a new one.
    Forged(bool),
}

/// A leg being watched.
#[derive(Debug)]
pub struct Leg {
    window: Window,
    /// Ages along it.
    pub join: Join,
    /// What was counted.
    pub counts: Counts,
    /// Where samples were refused behind an attacker's.
    pub refused_in: ChannelId,
    /// Where it starts.
    pub start: PointId,
    /// Where it ends.
    pub end: PointId,
    /// The mark of a sample that came through: `DELIVERED`, or `USED` where rows say which the next leg was made of.
    done: u16,
    /// How far the clocks of two nodes may differ.
    clocks_ns: Time,
}

impl Leg {
    /// The legs of a flow in a run; none if it leads nowhere.
    pub fn all(plan: &Plan, flow: &FlowPlan, options: &Options) -> Vec<Self> {
        let visits: Vec<&VisitPlan> =
            flow.path.iter().filter(|v| v.component.0 < PointId::HELD / 2).collect();
        if visits.len() < 2 {
            return Vec::new();
        }
        let parts = parts_of(&visits);
        let periods = visits.iter().filter_map(|v| period_of(v));
        let periods: Vec<Time> = std::iter::once(flow.period_ns).chain(periods).collect();
        let ends_with = |i| if i + 1 == parts.len() { visits.last() } else { None };
        let legs = parts.iter().zip(periods).enumerate();
        let window = |period_ns| Window::new(period_ns, options.grace_ns, plan.duration_ns);
        let nodes = visits.iter().map(|v| plan.components[v.component].node);
        let clocks_ns = plan.clocks_apart_ns(nodes).saturating_add(CLOCKS_NS);
        legs.map(|(i, (points, period_ns))| {
            Self::new(points, i == 0, ends_with(i), window(period_ns), clocks_ns)
        })
        .collect()
    }

    fn new(
        points: &[PointId],
        first: bool,
        last: Option<&&VisitPlan>,
        window: Window,
        clocks_ns: Time,
    ) -> Self {
        let (start, end) = (points[0], points[points.len() - 1]);
        let after = last.filter(|v| !v.steps.is_empty()).map(|v| PointId::exit(v.component));
        let all = points.iter().copied().chain(after).collect();
        let join = Join::new(all, points.len(), [first, last.is_some()], window.size());
        Self {
            join,
            window,
            counts: Counts::default(),
            refused_in: ChannelId::NONE,
            start,
            end,
            done: DELIVERED,
            clocks_ns,
        }
    }

    /// Whether the row's sample can have been made at its origin: in the run, and not in the future.
    #[inline]
    fn dates(&self, row: &Record) -> bool {
        (-self.clocks_ns..=row.time_ns.saturating_add(self.clocks_ns)).contains(&row.value)
    }

    /// The sample's slot; samples that leave the window are judged.
    #[inline]
    fn slot(
        &mut self,
        row: &Record,
        flow: usize,
        options: &Options,
        series: &mut Series,
    ) -> Option<&mut Slot> {
        let (counts, done) = (&mut self.counts, self.done);
        let slot = self.window.touch(row.index, |old| counts.judge(old, done, flow, series))?;
        if slot.marks == 0 && row.time_ns >= options.warmup_ns {
            slot.marks = COUNTED;
        }
        Some(slot)
    }

    /// A sample starts: `age_ns` is none where it is made.
    #[inline]
    pub fn start(
        &mut self,
        row: &Record,
        age_ns: Option<i64>,
        flow: usize,
        options: &Options,
        series: &mut Series,
    ) {
        let Some(slot) = self.slot(row, flow, options, series) else { return };
        if slot.is(FORGED) || (slot.is(SENT) && !slot.is(MADE)) {
            return;
        }
        if !slot.is(MADE) {
            slot.sent_ns = row.time_ns;
        }
        slot.marks = (slot.marks | SENT) & !MADE;
        let (counted, arrived) = (slot.is(COUNTED), slot.is(DELIVERED));
        self.counts.sent += u64::from(counted);
        match age_ns {
            _ if !counted || arrived => {}
            Some(age_ns) => self.join.start(row.index, age_ns),
            None => self.join.born(row.index),
        }
    }

    /// A sample passes a point between.
    #[inline]
    pub fn pass(&mut self, row: &Record) {
        if self.dates(row) && self.window.get(row.index).is_some_and(|slot| slot.is(COUNTED)) {
            self.join.pass(row.index, PointId(row.point), row.value);
        }
    }

    /// A sample arrives at the end.
    #[inline]
    pub fn arrive(&mut self, row: &Record, flow: usize, options: &Options, series: &mut Series) -> Arrival {
        if !self.window.reaches(row.index) {
            return Arrival::Stray;
        }
        let dated = self.dates(row);
        if self
            .window
            .get(row.index)
            .is_some_and(|s| s.marks & (BEHIND | DELIVERED | COUNTED) == BEHIND | COUNTED)
        {
            self.counts.copies += 1;
        }
        let Some(slot) = self.slot(row, flow, options, series) else { return Arrival::Beyond };
        let counted = slot.is(COUNTED);
        if slot.is(FORGED) {
            let is_new = slot.marks & (DELIVERED | REPEATED) == 0;
            slot.marks |= DELIVERED;
            return Arrival::Forged(is_new);
        }
        if slot.is(DELIVERED) {
            return Arrival::Again(counted);
        }
        slot.marks |= DELIVERED;
        slot.delay_ns = row.value;
        if !dated {
            slot.marks |= UNDATED;
            return Arrival::Undated(counted);
        }
        if slot.is(REPEATED) {
            return Arrival::Repeated;
        }
        if counted {
            self.join.arrive(row.index, row.value);
        }
        Arrival::First(counted)
    }

    /// The stage that ends the leg has made another sample of this one; what is known of it, if it is in the window.
    pub fn used(
        &mut self,
        row: &Record,
        flow: usize,
        options: &Options,
        series: &mut Series,
    ) -> Option<Slot> {
        self.done = USED;
        let slot = self.window.reaches(row.index).then(|| self.slot(row, flow, options, series)).flatten()?;
        slot.marks |= USED;
        let slot = *slot;
        if slot.marks & (COUNTED | DELIVERED | REPEATED | UNDATED) == COUNTED | DELIVERED {
            self.join.used(row.index);
        }
        Some(slot)
    }

    /// The stage that starts the leg gives a sample made of `source`, and counts as that does.
    pub fn made(
        &mut self,
        row: &Record,
        source: Option<Slot>,
        flow: usize,
        options: &Options,
        series: &mut Series,
    ) {
        let Some(slot) = self.slot(row, flow, options, series) else { return };
        slot.sent_ns = source.filter(|s| s.is(SENT)).map_or(row.time_ns, |s| s.sent_ns);
        slot.marks = SENT | MADE | (source.unwrap_or(*slot).marks & COUNTED);
    }

    /// The stage that starts the leg gives a sample that is made of none but those before: it has an age and no latency.
    pub fn repeat(&mut self, row: &Record, flow: usize, options: &Options, series: &mut Series) {
        if let Some(slot) = self.slot(row, flow, options, series) {
            slot.marks = REPEATED;
        }
    }

    /// The stage that starts the leg gives a sample that is made of an attacker's, which may have been made of it before.
    pub fn forged(
        &mut self,
        row: &Record,
        is_new: bool,
        flow: usize,
        options: &Options,
        series: &mut Series,
    ) {
        if let Some(slot) = self.slot(row, flow, options, series) {
            slot.marks = if is_new { FORGED } else { FORGED | REPEATED };
        }
    }

    /// An endpoint dropped a sample that it took for a copy or an old one; whether it is the first of its number to come.
    pub fn refuse(&mut self, index: u32, channel: ChannelId) -> bool {
        let Some(slot) = self.window.get_mut(index).filter(|slot| !slot.is(DELIVERED) && slot.is(SENT))
        else {
            return false;
        };
        slot.marks |= BEHIND;
        self.refused_in = channel;
        true
    }

    /// Whether a sample with this number can have been made.
    pub fn reaches(&self, index: u32) -> bool {
        self.window.reaches(index)
    }

    /// A sample is replaced or kept back on purpose; whether that counts.
    pub fn supersede(&mut self, row: &Record, flow: usize, options: &Options, series: &mut Series) -> bool {
        let Some(slot) =
            self.window.reaches(row.index).then(|| self.slot(row, flow, options, series)).flatten()
        else {
            return false;
        };
        let first = slot.marks & (SUPERSEDED | REPEATED | COUNTED) == COUNTED;
        slot.marks |= SUPERSEDED;
        first
    }

    /// Delay of a counted sample with this number that arrived.
    #[inline]
    pub fn delay_of(&self, index: Option<u32>) -> Option<i64> {
        let slot = self.window.get(index?)?;
        (slot.marks & (DELIVERED | COUNTED | UNDATED) == DELIVERED | COUNTED).then_some(slot.delay_ns)
    }

    /// Judges what is left at the end of the run.
    pub fn finish(&mut self, flow: usize, last_judged_ns: Time, series: &mut Series) {
        for slot in self.window.remaining() {
            if slot.sent_ns <= last_judged_ns {
                self.counts.judge(slot, self.done, flow, series);
            } else if slot.is(COUNTED) && slot.missing(self.done) {
                self.counts.in_flight += 1;
                self.counts.behind += u64::from(slot.is(BEHIND));
            }
        }
    }

    /// Samples that count and were sent until then, and how many of them are lost.
    pub fn judged_until(&self, until_ns: Time) -> [u64; 2] {
        let [sent, lost] = self.judged(|slot| slot.is(COUNTED) && slot.sent_ns <= until_ns);
        [self.counts.judged + sent, self.counts.lost + lost]
    }

    /// Samples with something new that were sent in a span, and how many of them have not come.
    pub fn judged_between(&self, from_ns: Time, to_ns: Time) -> [u64; 2] {
        self.judged(|slot| !slot.is(REPEATED) && (from_ns..to_ns).contains(&slot.sent_ns))
    }

    fn judged(&self, chosen: impl Fn(&Slot) -> bool) -> [u64; 2] {
        let chosen = self.window.remaining().filter(|slot| chosen(slot));
        chosen.fold([0, 0], |[sent, lost], slot| [sent + 1, lost + u64::from(slot.missing(self.done))])
    }

    /// Samples that have not come are no longer looked for.
    pub fn forget(&mut self) {
        self.window.forget(self.done);
    }

    /// Whether what is told of a sample that came counts: as the sample does, if that is still known.
    #[inline]
    pub fn counts(&self, index: u32, late_enough: bool) -> bool {
        match self.window.get(index) {
            Some(slot) if slot.marks != 0 && !slot.is(REPEATED) => slot.is(COUNTED),
            _ => late_enough,
        }
    }

    /// The component that starts the leg.
    pub fn owner(&self) -> ComponentId {
        self.start.owner()
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.join.heap_bytes() + self.window.size() * std::mem::size_of::<Slot>()
    }
}

/// The points of each leg: up to the entry of a component with a periodic stage, and on from its exit.
fn parts_of(visits: &[&VisitPlan]) -> Vec<Vec<PointId>> {
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    for (i, visit) in visits.iter().enumerate().take(MOST_VISITS) {
        if i > 0 || !visit.steps.is_empty() {
            part.push(PointId::entry(visit.component));
        }
        if i + 1 < visits.len() {
            if period_of(visit).is_some() {
                parts.push(std::mem::take(&mut part));
            }
            part.push(PointId::exit(visit.component));
        }
    }
    parts.push(part);
    parts
}

/// Output period of the last periodic stage of a visit.
fn period_of(visit: &VisitPlan) -> Option<Time> {
    visit.steps.iter().filter_map(|s| s.period_ns).next_back()
}
