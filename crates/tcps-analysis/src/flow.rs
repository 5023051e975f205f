//! Everything that is counted of one flow.

use super::age::Age;
use super::fit::fit;
use super::flow_report::{Drops, FlowCdf, FlowReport, Verified};
use super::jitter::Jitter;
use super::leg::{self, Arrival, Leg};
use super::names;
use super::order::Order;
use super::path;
use super::series::Series;
use super::shown::Shown;
use super::snr;
use super::tally::{Distribution, Tally};
use super::window::REPEATED;
use crate::options::Options;
use std::collections::BTreeMap;
use tcps_core::{
    ids::{ChannelId, NodeId},
    record::{DropReason, Kind, Record},
    sample::PointId,
    time::Time,
};
use tcps_plan::{is_forged, FlowPlan, Plan};

/// Reason of samples that an endpoint took for copies or old ones, behind an attacker's sample with a later number.
pub const BEHIND_FORGED: &str = "behind forged";

/// A flow being watched.
#[derive(Debug)]
pub struct Flow {
    legs: Vec<Leg>,
    /// Points, each with the number of the leg that it is on.
    leg_of: Vec<(PointId, usize)>,
    ipdv: Tally,
    interarrival: Tally,
    jitter: Jitter,
    order: Order,
    age: Age,
    counts: Counts,
    /// By place.
    drops: BTreeMap<u16, [u64; DropReason::ALL.len()]>,
    /// What is dropped at a place beyond all that there are counts at this one.
    beyond: u16,
    last_arrival_ns: Option<Time>,
    /// Values at source and sink, and the points where they are recorded.
    values: Option<(snr::Log, [PointId; 2])>,
    /// Since when packets hold how many fragments.
    merging: Option<(Time, i64)>,
    shown: Option<Box<Shown>>,
    /// Whether somebody has sent samples in its name.
    attacked: bool,
    /// The number behind that of the newest forged sample; earlier ones are copies.
    forged_to: u32,
    /// Receiving nodes of its channels, each with the leg that ends behind it.
    inbound: Vec<(NodeId, ChannelId, usize)>,
}

#[derive(Debug, Default)]
struct Counts {
    delivered: u64,
    repeated: u64,
    delivered_again: u64,
    duplicates_dropped: u64,
    superseded: u64,
    suppressed: u64,
    beyond_window: u64,
    undated: u64,
    forged: u64,
    bytes: u64,
    verified: Verified,
}

/// What a flow has done so far.
#[derive(Debug)]
pub struct Totals {
    /// Samples that count.
    pub sent: u64,
    /// Of these, arrived.
    pub delivered: u64,
    /// Of those that are judged, not arrived.
    pub lost: u64,
    /// The same as a share, over all legs.
    pub loss: f64,
    /// Mean delay.
    pub delay_ns: Option<f64>,
}

/// What all rows of a flow need beside themselves.
#[derive(Debug)]
pub struct Around<'a> {
    /// Number of the flow.
    pub flow: usize,
    /// How to look.
    pub options: &'a Options,
    /// Curves over time.
    pub series: &'a mut Series,
}

impl Flow {
    /// Nothing seen yet.
    pub fn new(plan: &Plan, flow: &FlowPlan, options: &Options) -> Self {
        let legs = Leg::all(plan, flow, options);
        let numbered = legs.iter().enumerate();
        let leg_of: Vec<_> =
            numbered.flat_map(|(i, leg)| leg.join.numbers().iter().map(move |&p| (p, i))).collect();
        let inbound = inbound(plan, flow, &leg_of);
        Self {
            legs,
            leg_of,
            ipdv: Tally::default(),
            interarrival: Tally::default(),
            jitter: Jitter::default(),
            order: Order::default(),
            age: Age::default(),
            counts: Counts::default(),
            drops: BTreeMap::new(),
            beyond: plan.network.links.len().max(plan.components.len()).max(plan.channels.len()) as u16,
            last_arrival_ns: None,
            values: ends(plan, flow).map(|points| (snr::Log::default(), points)),
            merging: None,
            shown: flow.playout.as_ref().map(|_| Box::default()),
            attacked: false,
            forged_to: 0,
            inbound,
        }
    }

    /// Somebody sends samples in its name from now on.
    pub fn attack(&mut self) {
        self.attacked = true;
    }

    /// Whether a row is about a sample that an attacker made.
    #[inline]
    pub fn is_forged(&self, index: u32) -> bool {
        self.attacked && is_forged(index)
    }

    /// An attacker's sample came to the sink.
    pub fn forged(&mut self, row: &Record, options: &Options) {
        if is_forged(row.index) {
            if row.index < self.forged_to {
                return;
            }
            self.forged_to = row.index + 1;
        }
        self.counts.forged += u64::from(row.time_ns >= options.warmup_ns);
    }

    /// A `Sent` row.
    #[inline]
    pub fn sent(&mut self, row: &Record, around: Around) {
        let Some(leg) = self.legs.first_mut() else { return };
        let Around { flow, options, series } = around;
        leg.start(row, None, flow, options, series);
        if leg.start == leg.end {
            leg.arrive(&Record { value: 0, ..*row }, flow, options, series);
        }
    }

    /// Number of the leg that a point is on.
    #[inline]
    fn leg_of(&self, point: PointId) -> Option<usize> {
        self.leg_of.iter().rev().find(|on| on.0 == point).map(|on| on.1)
    }

    /// An `Enter` or `Exit` row.
    #[inline]
    pub fn pass(&mut self, row: &Record, around: Around) {
        let point = PointId(row.point);
        let Some(number) = self.leg_of(point) else { return };
        let last = self.legs.len().wrapping_sub(1);
        let Some(leg) = self.legs.get_mut(number) else { return };
        let Around { flow, options, series } = around;
        if number > 0 && point == leg.start {
            leg.start(row, Some(row.value), flow, options, series);
        } else if number < last && point == leg.end {
            leg.arrive(row, flow, options, series);
        } else {
            leg.pass(row);
        }
    }

    /// A `Delivered` row; none where the flow leads nowhere.
    #[inline]
    pub fn delivered(&mut self, row: &Record, bin: usize, around: Around) -> Option<Arrival> {
        let leg = self.legs.last_mut()?;
        let Around { flow, options, series } = around;
        let arrival = leg.arrive(row, flow, options, series);
        match arrival {
            Arrival::Stray | Arrival::Forged(false) => {}
            Arrival::Forged(true) => self.forged(row, options),
            Arrival::Beyond => self.counts.beyond_window += 1,
            Arrival::Again(counts) => self.counts.delivered_again += u64::from(counts),
            Arrival::First(counts) => {
                series.flows[flow][bin].deliver(row.value, row.size);
                self.renew(row, flow, options, series);
                if counts {
                    self.count_delivery(row);
                }
            }
            Arrival::Undated(counts) => {
                series.flows[flow][bin].bytes += u64::from(row.size);
                if counts {
                    self.counts.undated += 1;
                    self.count_arrival(row);
                }
            }
            Arrival::Repeated => {
                series.flows[flow][bin].bytes += u64::from(row.size);
                self.renew(row, flow, options, series);
                if row.time_ns >= options.warmup_ns {
                    self.counts.repeated += 1;
                    self.counts.bytes += u64::from(row.size);
                    self.note_gap(row.time_ns);
                }
            }
        }
        Some(arrival)
    }

    /// The receiver has data as old as this row says.
    #[inline]
    fn renew(&mut self, row: &Record, flow: usize, options: &Options, series: &mut Series) {
        let origin_ns = row.time_ns.saturating_sub(row.value);
        self.age.arrive(row.time_ns, origin_ns, options.warmup_ns, &series.line, &mut series.flows[flow]);
    }

    /// Time since the packet before; false if they came in one.
    #[inline]
    fn note_gap(&mut self, time_ns: Time) -> bool {
        let last_ns = self.last_arrival_ns.replace(time_ns);
        if let Some(last_ns) = last_ns.filter(|&last_ns| last_ns != time_ns) {
            self.interarrival.add(time_ns.saturating_sub(last_ns));
        }
        last_ns != Some(time_ns)
    }

    /// A periodic stage gave a sample of its own number; `detail` says whether there is anything new in it.
    fn renumbered(&mut self, row: &Record, around: Around) {
        let Around { flow, options, series } = around;
        let Some(behind) = self.legs.iter().skip(1).position(|leg| leg.owner().0 == row.point) else {
            return;
        };
        let [before, leg, ..] = &mut self.legs[behind..] else { return };
        let source = Record { index: row.value as u32, ..*row };
        if self.attacked && (is_forged(source.index) || !before.reaches(source.index)) {
            return leg.forged(row, row.detail != 0, flow, options, series);
        }
        let source = (row.detail != 0).then(|| before.used(&source, flow, options, series));
        if source.is_none_or(|source| source.is_some_and(|slot| slot.is(REPEATED))) {
            leg.repeat(row, flow, options, series);
        } else {
            leg.made(row, source.flatten(), flow, options, series);
        }
    }

    #[inline]
    fn count_delivery(&mut self, row: &Record) {
        self.vary(row);
        if self.count_arrival(row) {
            self.jitter.arrive(row.time_ns, row.value);
        }
    }

    /// A delivery, whatever its delay; false if it came in one packet with the one before.
    #[inline]
    fn count_arrival(&mut self, row: &Record) -> bool {
        self.counts.delivered += 1;
        self.counts.bytes += u64::from(row.size);
        self.order.arrive(row.index, row.time_ns);
        self.note_gap(row.time_ns)
    }

    /// Delay variation against the neighbours by number, whichever arrived first.
    // [RFC 3393 §2]
    #[inline]
    fn vary(&mut self, row: &Record) {
        let Some(leg) = self.legs.last() else { return };
        if let Some(before_ns) = leg.delay_of(row.index.checked_sub(1)) {
            self.ipdv.add(row.value.saturating_sub(before_ns));
        }
        if let Some(after_ns) = leg.delay_of(row.index.checked_add(1)) {
            self.ipdv.add(after_ns.saturating_sub(row.value));
        }
    }

    /// A value of a sample at a point.
    pub fn signal(&mut self, row: &Record) {
        if self.is_forged(row.index) {
            return;
        }
        match &mut self.values {
            Some((log, [source, _])) if row.point == source.0 => log.made(row),
            Some((log, [_, sink])) if row.point == sink.0 => log.shown(row),
            _ => {}
        }
    }

    /// A row that is only counted.
    pub fn count(&mut self, row: &Record, around: Around) {
        let late_enough = row.time_ns >= around.options.warmup_ns;
        if row.kind != Kind::Renumbered && self.is_forged(row.index) {
            return;
        }
        match row.kind {
            Kind::Superseded | Kind::Suppressed => self.given_up(row, around),
            Kind::Renumbered => self.renumbered(row, around),
            Kind::Merging => self.merges(row.time_ns, Some(row.value), around.flow, around.series),
            Kind::Verified => self.verified(row, late_enough),
            _ if !late_enough => {}
            Kind::Dropped => self.dropped(row),
            Kind::Duplicate => self.repeated(row),
            Kind::Played | Kind::Overdue | Kind::Skipped | Kind::Starved => {
                self.shown.iter_mut().for_each(|shown| shown.take(row));
            }
            _ => {}
        }
    }

    /// An endpoint dropped a copy; behind an attacker's numbers it may be the sample itself.
    fn repeated(&mut self, row: &Record) {
        if self.attacked {
            let to = self.inbound.iter().find(|one| one.0 == row.node).or(self.inbound.first());
            let leg = to.and_then(|(_, channel, leg)| Some((self.legs.get_mut(*leg)?, *channel)));
            if leg.is_some_and(|(leg, channel)| leg.refuse(row.index, channel)) {
                return;
            }
        }
        self.counts.duplicates_dropped += 1;
    }

    /// The checksum of a frame that came was compared.
    fn verified(&mut self, row: &Record, late_enough: bool) {
        if !self.legs.last().map_or(late_enough, |leg| leg.counts(row.index, late_enough)) {
            return;
        }
        let Verified { good, bad } = &mut self.counts.verified;
        *(if row.detail == 0 { bad } else { good }) += 1;
    }

    /// From now on packets hold so many fragments; `None` at the end.
    fn merges(&mut self, now_ns: Time, fragments: Option<i64>, flow: usize, series: &mut Series) {
        if let Some((since_ns, before)) = self.merging.take() {
            series.merged(flow, since_ns, now_ns, before);
        }
        self.merging = fragments.map(|k| (now_ns, k));
    }

    /// The row names the component: its sample is on the leg that leads there.
    fn given_up(&mut self, row: &Record, around: Around) {
        let number = row.point.checked_mul(2).and_then(|entry| self.leg_of(PointId(entry))).unwrap_or(0);
        if let Some(leg) = self.legs.get_mut(number) {
            let counts = leg.supersede(row, around.flow, around.options, around.series);
            let count = match row.kind {
                Kind::Suppressed => &mut self.counts.suppressed,
                _ => &mut self.counts.superseded,
            };
            *count += u64::from(counts);
        }
    }

    fn dropped(&mut self, row: &Record) {
        let reason = (row.detail as usize).wrapping_sub(1);
        if reason < DropReason::ALL.len() {
            self.drops.entry(row.point.min(self.beyond)).or_default()[reason] += 1;
        }
    }

    /// Judges what is left at the end of the run.
    pub fn finish(&mut self, flow: &FlowPlan, end_ns: Time, around: Around) {
        let Around { flow: number, options, series } = around;
        if self.merging.is_some() {
            self.merges(end_ns, None, number, series);
        }
        for leg in &mut self.legs {
            leg.finish(number, end_ns.saturating_sub(options.grace_ns), series);
        }
        let until_ns = flow.stop_ns.map_or(end_ns, |stop_ns| stop_ns.min(end_ns));
        self.age.until(until_ns, options.warmup_ns, &series.line, &mut series.flows[number]);
    }

    /// What the flow did.
    pub fn report(
        &self,
        plan: &Plan,
        flow: &FlowPlan,
        end_ns: Time,
        options: &Options,
        p: &[f64],
    ) -> FlowReport {
        let c = &self.counts;
        let nothing = Tally::default();
        let delay = self.legs.last().map_or(&nothing, |leg| leg.join.at_end());
        let delay_ns = delay.distribution();
        let total = |of: fn(&leg::Counts) -> u64| self.legs.iter().map(|leg| of(&leg.counts)).sum();
        let first = self.legs.first().map(|leg| leg.counts).unwrap_or_default();
        let duplicates_dropped = c.duplicates_dropped + total(|c| c.copies);
        FlowReport {
            name: flow.name.clone(),
            sent: first.sent,
            delivered: c.delivered,
            repeated: c.repeated,
            judged: first.judged,
            lost: total(|c| c.lost),
            loss: self.loss(),
            in_flight: total(|c| c.in_flight),
            duplicated: c.delivered_again + duplicates_dropped,
            duplicates_dropped,
            superseded: c.superseded,
            suppressed: c.suppressed,
            resampled_at: self.legs.iter().skip(1).map(|leg| names::component(plan, leg.owner())).collect(),
            beyond_window: c.beyond_window,
            undated: c.undated,
            forged: c.forged,
            reordering: self.order.summary(),
            drops: self.drops_by_place(plan),
            // [RFC 5481 §4.2]
            pdv_ns: delay_ns.as_ref().map(|d| d.shifted(-d.min)),
            snr_db: self.snr_db(options, delay_ns.as_ref()),
            delay_ns,
            jitter: self.jitter.summary(),
            ipdv_ns: self.ipdv.distribution(),
            interarrival_ns: self.interarrival.distribution(),
            interarrival_fits: fit(&self.interarrival),
            age_ns: self.age.summary(),
            payload_bytes: c.bytes,
            rate_bps: rate_bps(c.bytes, flow, end_ns, options),
            verified: c.verified,
            playout: self.shown.as_ref().map(|shown| shown.report()),
            points: self.legs.iter().flat_map(|leg| leg.join.points(plan)).collect(),
            path: path::report(plan, flow, &self.legs.iter().map(|leg| &leg.join).collect::<Vec<_>>()),
            cdf: FlowCdf { delay_ns: delay.curve(p), interarrival_ns: self.interarrival.curve(p) },
        }
    }

    fn snr_db(&self, options: &Options, delay_ns: Option<&Distribution>) -> Option<f64> {
        let resampled_ns = delay_ns.filter(|_| self.legs.len() > 1).map(|d| d.min as Time);
        self.values.as_ref()?.0.snr_db(options.warmup_ns, resampled_ns)
    }

    /// Share of samples that do not make it over all legs.
    fn loss(&self) -> f64 {
        loss_over(&self.legs.iter().map(|leg| [leg.counts.judged, leg.counts.lost]).collect::<Vec<_>>())
    }

    /// What it has done, with those judged that were sent until then.
    pub fn totals(&self, until_ns: Time) -> Totals {
        let judged: Vec<_> = self.legs.iter().map(|leg| leg.judged_until(until_ns)).collect();
        let (sent, delivered) = self.sent_and_delivered();
        let delay = self.legs.last().map(|leg| leg.join.at_end()).filter(|delay| delay.n() > 0);
        Totals {
            sent,
            delivered,
            lost: judged.iter().map(|[_, lost]| lost).sum(),
            loss: loss_over(&judged),
            delay_ns: delay.map(Tally::mean),
        }
    }

    /// Samples that count.
    pub fn sent_and_delivered(&self) -> (u64, u64) {
        (self.legs.first().map_or(0, |leg| leg.counts.sent), self.counts.delivered)
    }

    /// Share of the samples of a span that have not arrived; none where none was sent.
    pub fn loss_between(&self, from_ns: Time, to_ns: Time) -> Option<f64> {
        let judged: Vec<_> = self.legs.iter().map(|leg| leg.judged_between(from_ns, to_ns)).collect();
        judged.iter().any(|[sent, _]| *sent > 0).then(|| loss_over(&judged))
    }

    /// Samples that are in flight are lost from sight.
    pub fn forget(&mut self) {
        self.legs.iter_mut().for_each(Leg::forget);
    }

    fn drops_by_place(&self, plan: &Plan) -> Vec<Drops> {
        let mut drops: Vec<Drops> = Vec::new();
        for (&point, counts) in &self.drops {
            for (&reason, &packets) in DropReason::ALL.iter().zip(counts).filter(|(_, &n)| n > 0) {
                drops.push(Drops { at: names::place(plan, reason, point), reason: reason.name(), packets });
            }
        }
        for leg in self.legs.iter().filter(|leg| leg.counts.behind > 0) {
            let at = names::place(plan, DropReason::Replayed, leg.refused_in.0);
            drops.push(Drops { at, reason: BEHIND_FORGED, packets: leg.counts.behind });
        }
        drops
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        let shown = self.shown.as_ref().map_or(0, |shown| shown.heap_bytes());
        let tallies = self.ipdv.heap_bytes() + self.interarrival.heap_bytes() + shown;
        tallies + self.legs.iter().map(Leg::heap_bytes).sum::<usize>()
    }
}

/// Share of samples that do not make it over legs with these numbers of judged and lost ones.
fn loss_over(legs: &[[u64; 2]]) -> f64 {
    let share = |[judged, lost]: &[u64; 2]| *lost as f64 / (*judged).max(1) as f64;
    match legs {
        [leg] => share(leg),
        legs => 1.0 - legs.iter().map(|leg| 1.0 - share(leg)).product::<f64>(),
    }
}

/// Receiving nodes of a flow's channels, each with the leg that its samples are on there.
fn inbound(plan: &Plan, flow: &FlowPlan, leg_of: &[(PointId, usize)]) -> Vec<(NodeId, ChannelId, usize)> {
    let passes = flow.path.windows(2).filter_map(|w| Some((w[0].channel?, w[1].component)));
    passes
        .filter_map(|(channel, to)| {
            let leg = leg_of.iter().find(|on| on.0 == PointId::entry(to))?.1;
            Some((plan.components.get(to.index())?.node, channel, leg))
        })
        .collect()
}

/// Source and sink of a flow, if the plan has values recorded at both.
fn ends(plan: &Plan, flow: &FlowPlan) -> Option<[PointId; 2]> {
    let points = [PointId::entry(flow.path.first()?.component), PointId::exit(flow.path.last()?.component)];
    points.iter().all(|p| plan.signals.contains(p)).then_some(points)
}

/// Payload over the time from the warm-up (or the flow's start) to the end (or the flow's stop).
fn rate_bps(bytes: u64, flow: &FlowPlan, end_ns: Time, options: &Options) -> f64 {
    let from_ns = options.warmup_ns.max(flow.start_ns);
    let to_ns = flow.stop_ns.map_or(end_ns, |stop_ns| stop_ns.min(end_ns));
    let span_ns = to_ns.saturating_sub(from_ns);
    if span_ns > 0 {
        bytes as f64 * 8e9 / span_ns as f64
    } else {
        0.0
    }
}
