//! Everything that is counted of one flow.

use super::age::Age;
use super::fit::{fit, Fits};
use super::jitter::{Jitter, Jitters, MeanMax};
use super::names;
use super::order::{Order, Reordering};
use super::path::{Join, PathReport, PointAges};
use super::series::Series;
use super::tally::{Distribution, Tally};
use super::window::{Slot, Window, COUNTED, DELIVERED, SENT, SUPERSEDED};
use super::Options;
use crate::plan::{FlowPlan, Plan};
use serde::Serialize;
use tcps_core::{
    record::{DropReason, Kind, Record},
    time::Time,
};

/// Packets of a flow dropped at a place for a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// Link or component.
    pub at: String,
    /// Why.
    pub reason: &'static str,
    /// Packets.
    pub packets: u64,
}

/// Frames compared with their checksum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// As sent.
    pub good: u64,
    /// Not as sent.
    pub bad: u64,
}

/// Quantiles at `p` of the analysis.
#[derive(Debug, Serialize)]
pub struct FlowCdf {
    /// Of the delay, ns.
    pub delay_ns: Vec<f64>,
    /// Of the time between packets, ns.
    pub interarrival_ns: Vec<f64>,
}

/// What a flow did.
#[derive(Debug, Serialize)]
pub struct FlowReport {
    /// Its name.
    pub name: String,
    /// Samples sent after the warm-up.
    pub sent: u64,
    /// Of these, delivered (each once).
    pub delivered: u64,
    /// Sent early enough that their fate is known.
    pub judged: u64,
    /// Of these, neither delivered nor superseded.
    pub lost: u64,
    /// `lost / judged`.
    pub loss: f64,
    /// Sent within the grace time and not delivered by the end.
    pub in_flight: u64,
    /// Copies: delivered again, or recognised and dropped by an endpoint.
    pub duplicated: u64,
    /// Of these, dropped by an endpoint.
    pub duplicates_dropped: u64,
    /// Replaced on purpose by a periodic stage.
    pub superseded: u64,
    /// Deliveries so late that the sample had already been counted as lost.
    pub beyond_window: u64,
    /// Order of arrival.
    pub reordering: Reordering,
    /// Packets dropped on the way.
    pub drops: Vec<Drops>,
    /// One-way delay, ns.
    pub delay_ns: Option<Distribution>,
    /// Jitters.
    pub jitter: Jitters,
    /// Delay above the smallest delay, ns.
    pub pdv_ns: Option<Distribution>,
    /// Delay of a sample minus that of the one sent before it, ns.
    pub ipdv_ns: Option<Distribution>,
    /// Time between packets, ns.
    pub interarrival_ns: Option<Distribution>,
    /// Laws fitted to it.
    pub interarrival_fits: Option<Fits>,
    /// Age of data over time, ns.
    pub age_ns: Option<MeanMax>,
    /// Payload delivered.
    pub payload_bytes: u64,
    /// Its rate while the flow ran.
    pub rate_bps: f64,
    /// Checksums.
    pub verified: Verified,
    /// Ages at the echo points.
    pub points: Vec<PointAges>,
    /// Where the time went.
    pub path: PathReport,
    /// Cumulative curves.
    pub cdf: FlowCdf,
}

/// A flow being watched.
#[derive(Debug)]
pub struct Flow {
    window: Window,
    join: Join,
    delay: Tally,
    ipdv: Tally,
    interarrival: Tally,
    jitter: Jitter,
    order: Order,
    age: Age,
    counts: Counts,
    drops: Vec<[u64; DropReason::ALL.len()]>,
    last_arrival_ns: Option<Time>,
}

#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    delivered: u64,
    judged: u64,
    lost: u64,
    in_flight: u64,
    delivered_again: u64,
    duplicates_dropped: u64,
    superseded: u64,
    beyond_window: u64,
    bytes: u64,
    verified: Verified,
}

impl Counts {
    fn judge(&mut self, slot: &Slot, lost: &mut impl FnMut(Time)) {
        let missing = slot.missing();
        if missing {
            lost(slot.sent_ns);
        }
        if slot.is(COUNTED) {
            self.judged += 1;
            self.lost += u64::from(missing);
        }
    }
}

impl Flow {
    /// Nothing seen yet.
    pub fn new(plan: &Plan, flow: &FlowPlan, options: &Options) -> Self {
        let window = Window::new(flow.period_ns, options.grace_ns);
        Self {
            join: Join::new(flow, &window),
            window,
            delay: Tally::default(),
            ipdv: Tally::default(),
            interarrival: Tally::default(),
            jitter: Jitter::default(),
            order: Order::default(),
            age: Age::default(),
            counts: Counts::default(),
            drops: vec![Default::default(); plan.network.links.len().max(plan.components.len()) + 1],
            last_arrival_ns: None,
        }
    }

    /// The sample's slot; samples that leave the window are judged.
    #[inline]
    fn slot(
        &mut self,
        row: &Record,
        number: usize,
        options: &Options,
        series: &mut Series,
    ) -> Option<&mut Slot> {
        let counts = &mut self.counts;
        let retire = |old: &Slot| {
            counts.judge(old, &mut |sent_ns| {
                let bin = series.bin_of(sent_ns);
                series.flows[number][bin].lost += 1;
            });
        };
        let slot = self.window.touch(row.index, retire)?;
        if slot.marks == 0 && row.time_ns >= options.warmup_ns {
            slot.marks = COUNTED;
        }
        Some(slot)
    }

    /// A `Sent` row.
    #[inline]
    pub fn sent(&mut self, row: &Record, number: usize, options: &Options, series: &mut Series) {
        let Some(slot) = self.slot(row, number, options, series) else { return };
        if slot.is(SENT) {
            return;
        }
        slot.sent_ns = row.time_ns;
        slot.marks |= SENT;
        let (counted, arrived) = (slot.is(COUNTED), slot.is(DELIVERED));
        self.counts.sent += u64::from(counted);
        if counted && !arrived {
            self.join.sent(row.index);
        }
    }

    /// An `Enter` or `Exit` row.
    #[inline]
    pub fn pass(&mut self, row: &Record) {
        if self.window.get(row.index).is_some_and(|slot| slot.is(COUNTED)) {
            self.join.pass(row.index, row.point, row.value);
        }
    }

    /// A `Delivered` row.
    #[inline]
    pub fn delivered(
        &mut self,
        row: &Record,
        number: usize,
        bin: usize,
        options: &Options,
        series: &mut Series,
    ) {
        let Some(slot) = self.slot(row, number, options, series) else {
            self.counts.beyond_window += 1;
            return;
        };
        let counted = slot.is(COUNTED);
        if slot.is(DELIVERED) {
            self.counts.delivered_again += u64::from(counted);
            return;
        }
        slot.marks |= DELIVERED;
        slot.delay_ns = row.value;
        let bins = &mut series.flows[number];
        bins[bin].deliver(row.value, row.size);
        let origin_ns = row.time_ns.saturating_sub(row.value);
        self.age.arrive(row.time_ns, origin_ns, options.warmup_ns, &series.line, bins);
        if counted {
            self.count_delivery(row);
        }
    }

    #[inline]
    fn count_delivery(&mut self, row: &Record) {
        self.counts.delivered += 1;
        self.counts.bytes += u64::from(row.size);
        self.delay.add(row.value);
        self.order.arrive(row.index, row.time_ns);
        self.join.delivered(row.index, row.value);
        self.vary(row);
        if self.last_arrival_ns != Some(row.time_ns) {
            self.jitter.arrive(row.time_ns, row.value);
            if let Some(last_ns) = self.last_arrival_ns.replace(row.time_ns) {
                self.interarrival.add(row.time_ns.saturating_sub(last_ns));
            }
        }
    }

    /// Delay variation against the neighbours by number, whichever arrived first.
    // [RFC 3393 §2]
    #[inline]
    fn vary(&mut self, row: &Record) {
        let delay_of = |index: Option<u32>| {
            let slot = self.window.get(index?)?;
            (slot.is(DELIVERED) && slot.is(COUNTED)).then_some(slot.delay_ns)
        };
        let before = delay_of(row.index.checked_sub(1));
        let after = delay_of(row.index.checked_add(1));
        if let Some(before_ns) = before {
            self.ipdv.add(row.value.saturating_sub(before_ns));
        }
        if let Some(after_ns) = after {
            self.ipdv.add(after_ns.saturating_sub(row.value));
        }
    }

    /// A row that is only counted.
    pub fn count(&mut self, row: &Record, number: usize, options: &Options, series: &mut Series) {
        let late_enough = row.time_ns >= options.warmup_ns;
        match row.kind {
            Kind::Superseded => self.superseded(row, number, options, series),
            _ if !late_enough => {}
            Kind::Dropped => self.dropped(row),
            Kind::Duplicate => self.counts.duplicates_dropped += 1,
            Kind::Verified if row.detail == 0 => self.counts.verified.bad += 1,
            Kind::Verified => self.counts.verified.good += 1,
            _ => {}
        }
    }

    fn superseded(&mut self, row: &Record, number: usize, options: &Options, series: &mut Series) {
        if let Some(slot) = self.slot(row, number, options, series) {
            let first = !slot.is(SUPERSEDED) && slot.is(COUNTED);
            slot.marks |= SUPERSEDED;
            self.counts.superseded += u64::from(first);
        }
    }

    fn dropped(&mut self, row: &Record) {
        let reason = (row.detail as usize).wrapping_sub(1);
        let last = self.drops.len() - 1;
        if let Some(count) = self.drops[(row.point as usize).min(last)].get_mut(reason) {
            *count += 1;
        }
    }

    /// Judges what is left at the end of the run.
    pub fn finish(
        &mut self,
        flow: &FlowPlan,
        number: usize,
        end_ns: Time,
        options: &Options,
        series: &mut Series,
    ) {
        let last_judged_ns = end_ns.saturating_sub(options.grace_ns);
        for slot in self.window.remaining() {
            if slot.sent_ns <= last_judged_ns {
                self.counts.judge(slot, &mut |sent_ns| {
                    let bin = series.bin_of(sent_ns);
                    series.flows[number][bin].lost += 1;
                });
            } else if slot.is(COUNTED) && slot.missing() {
                self.counts.in_flight += 1;
            }
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
        let delay_ns = self.delay.distribution();
        let curve = |t: &Tally| p.iter().map(|&q| t.quantile(q)).collect();
        FlowReport {
            name: flow.name.clone(),
            sent: c.sent,
            delivered: c.delivered,
            judged: c.judged,
            lost: c.lost,
            loss: c.lost as f64 / c.judged.max(1) as f64,
            in_flight: c.in_flight,
            duplicated: c.delivered_again + c.duplicates_dropped,
            duplicates_dropped: c.duplicates_dropped,
            superseded: c.superseded,
            beyond_window: c.beyond_window,
            reordering: self.order.summary(),
            drops: self.drops_by_place(plan),
            // [RFC 5481 §4.2]
            pdv_ns: delay_ns.as_ref().map(|d| d.shifted(-d.min)),
            delay_ns,
            jitter: self.jitter.summary(),
            ipdv_ns: self.ipdv.distribution(),
            interarrival_ns: self.interarrival.distribution(),
            interarrival_fits: fit(&self.interarrival),
            age_ns: self.age.summary(),
            payload_bytes: c.bytes,
            rate_bps: rate_bps(c.bytes, flow, end_ns, options),
            verified: c.verified,
            points: self.join.points(plan, c.sent, &self.delay),
            path: self.join.report(plan, flow, &self.delay),
            cdf: FlowCdf { delay_ns: curve(&self.delay), interarrival_ns: curve(&self.interarrival) },
        }
    }

    fn drops_by_place(&self, plan: &Plan) -> Vec<Drops> {
        let mut drops: Vec<Drops> = Vec::new();
        for (point, counts) in (0u16..).zip(&self.drops) {
            for (&reason, &packets) in DropReason::ALL.iter().zip(counts).filter(|(_, &n)| n > 0) {
                drops.push(Drops { at: names::place(plan, reason, point), reason: reason.name(), packets });
            }
        }
        drops
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        let tallies =
            [&self.delay, &self.ipdv, &self.interarrival].map(Tally::heap_bytes).iter().sum::<usize>();
        tallies + self.join.heap_bytes() + self.window.len() * std::mem::size_of::<Slot>()
    }
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
