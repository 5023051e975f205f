//! Where the time of a sample went: its age at every echo point of the path, joined sample by sample.
//!
//! ```text
//! Sent --component-- exit(c0) --link-- entry(c1) --component-- exit(c1) --link-- ... -- entry(cn)   exit(cn)
//!   0                  a0                a1                      a2                     delay       (a point only)
//! ```
//! The first component has a stretch of its own if it has stages; else a sample is sent at its exit. What the last
//! component does comes after the delivery: its exit is a point, not a part of the path.
//! Differences are taken when a sample arrives, over the samples that arrived, so that the means along the path add
//! up to the mean delay exactly. The ages of the last few thousand samples wait in a ring.

use super::interval::{Estimate, Estimator};
use super::names::{self, Stretch};
use super::tally::{Distribution, Tally};
use super::window::Window;
use crate::plan::{FlowPlan, Plan};
use serde::Serialize;
use tcps_core::sample::PointId;

/// Samples whose ages wait at most.
const RING: usize = 4096;
const UNKNOWN: i64 = i64::MIN;
const NOWHERE: u8 = u8::MAX;

/// Ages at a point.
#[derive(Debug, Clone, Serialize)]
pub struct PointAges {
    /// The point.
    pub point: String,
    /// Samples seen there.
    pub n: u64,
    /// Their age, ns.
    pub age_ns: Option<Distribution>,
}

/// Time spent on a stretch.
#[derive(Debug, Clone, Serialize)]
pub struct Segment {
    /// `component` or `link`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// Time spent there, ns.
    pub latency_ns: Option<Distribution>,
}

/// The way of a flow's samples.
#[derive(Debug, Serialize)]
pub struct PathReport {
    /// Samples known at every point.
    pub joined: u64,
    /// Samples delivered that are not.
    pub unjoined: u64,
    /// Mean delay of the joined ones: the sum of the means of the segments.
    pub delay_mean_ns: Option<f64>,
    /// Stretches in order.
    pub segments: Vec<Segment>,
}

/// Joins the ages of samples.
#[derive(Debug)]
pub struct Join {
    /// Points of the path, then the exit of the last component if it has stages.
    points: Vec<PointId>,
    /// How many of them are the path.
    length: usize,
    /// Position of a point by its number.
    position: Vec<u8>,
    tags: Vec<u32>,
    ages: Vec<i64>,
    mask: usize,
    at_point: Vec<Tally>,
    between: Vec<Tally>,
    whole: Tally,
    unjoined: u64,
}

impl Join {
    /// A join for the points of this flow.
    pub fn new(flow: &FlowPlan, window: &Window) -> Self {
        let (points, length) = names::points_of(flow);
        let mut position = vec![NOWHERE; points.iter().max().map_or(0, |&p| p as usize + 1)];
        for (i, &p) in points.iter().enumerate().rev() {
            position[p as usize] = i as u8;
        }
        let ring = window.len().min(RING);
        Self {
            position,
            length,
            tags: vec![0; ring],
            ages: vec![UNKNOWN; ring * points.len()],
            mask: ring - 1,
            at_point: vec![Tally::default(); points.len()],
            between: vec![Tally::default(); if length > 2 { length - 1 } else { 0 }],
            whole: Tally::default(),
            unjoined: 0,
            points,
        }
    }

    fn row(&mut self, index: u32) -> &mut [i64] {
        let at = index as usize & self.mask;
        let width = self.points.len();
        if self.tags[at] != index {
            self.tags[at] = index;
            self.ages[at * width..(at + 1) * width].fill(UNKNOWN);
        }
        &mut self.ages[at * width..(at + 1) * width]
    }

    /// A sample left its source.
    #[inline]
    pub fn sent(&mut self, index: u32) {
        if self.points.len() > 2 {
            let row = self.row(index);
            row.fill(UNKNOWN);
            row[0] = 0;
        }
    }

    /// A sample passed an intermediate point; copies after the first do not count.
    #[inline]
    pub fn pass(&mut self, index: u32, point: PointId, age_ns: i64) {
        let position = self.position.get(point as usize).copied().unwrap_or(NOWHERE) as usize;
        if position == 0 || position >= self.points.len() {
            return;
        }
        let cell = &mut self.row(index)[position];
        if *cell == UNKNOWN {
            *cell = age_ns;
            self.at_point[position].add(age_ns);
        }
    }

    /// A sample arrived for the first time.
    #[inline]
    pub fn delivered(&mut self, index: u32, delay_ns: i64) {
        if self.between.is_empty() {
            return;
        }
        let at = index as usize & self.mask;
        let start = at * self.points.len();
        let row = &mut self.ages[start..start + self.length];
        let same = self.tags[at] == index;
        if same {
            row[self.length - 1] = delay_ns;
        }
        if !same || row.contains(&UNKNOWN) {
            self.unjoined += 1;
            return;
        }
        for (tally, ends) in self.between.iter_mut().zip(row.windows(2)) {
            tally.add(ends[1].saturating_sub(ends[0]));
        }
        self.whole.add(delay_ns);
    }

    /// Ages at all points; where samples are sent and delivered they are known from the flow itself.
    pub fn points(&self, plan: &Plan, sent: u64, delay: &Tally) -> Vec<PointAges> {
        let zero =
            Distribution { n: sent, min: 0., mean: 0., sd: 0., p50: 0., p95: 0., p99: 0., p999: 0., max: 0. };
        let age = |i: usize| match i {
            0 => (sent > 0).then(|| zero.clone()),
            i if i + 1 == self.length => delay.distribution(),
            i => self.at_point[i].distribution(),
        };
        let ages = |(i, &p): (usize, &PointId)| {
            let age_ns = age(i);
            PointAges { point: names::point(plan, p), n: age_ns.as_ref().map_or(0, |d| d.n), age_ns }
        };
        self.points.iter().enumerate().map(ages).collect()
    }

    /// The path; where it is a single link, that takes all of the delay.
    pub fn report(&self, plan: &Plan, flow: &FlowPlan, delay: &Tally) -> PathReport {
        let parts = if self.between.is_empty() { std::slice::from_ref(delay) } else { &self.between[..] };
        let whole = if self.between.is_empty() { delay } else { &self.whole };
        let segment = |(ends, tally): (&[PointId], &Tally)| {
            let stretch = Stretch::between(plan, flow, ends[0], ends[1]);
            Segment { what: stretch.what(), name: stretch.name().into(), latency_ns: tally.distribution() }
        };
        PathReport {
            joined: whole.n(),
            unjoined: self.unjoined,
            delay_mean_ns: (whole.n() > 0).then(|| whole.mean()),
            segments: self.points[..self.length].windows(2).zip(parts).map(segment).collect(),
        }
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        let tallies = self.at_point.iter().chain(&self.between).map(Tally::heap_bytes).sum::<usize>();
        tallies + self.ages.len() * 8 + self.tags.len() * 4
    }
}

/// An estimate with the stretch it is of.
#[derive(Debug, Serialize)]
pub struct StretchEstimate {
    /// `component`, `link`, `actuation` or `span`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// Points at its ends.
    pub from: String,
    /// See `from`.
    pub to: String,
    /// Latency, ns; from one-way stamps where there are any.
    pub latency_ns: Option<Estimate>,
    /// `one_way` or `round_trip`.
    pub source: &'static str,
    /// Whether it is half the difference of the round trips.
    pub halved: bool,
    /// Difference of the round trips, ns, never halved.
    pub round_trip_difference_ns: Option<Estimate>,
}

impl StretchEstimate {
    /// From paired differences of round trips and of forward legs.
    ///
    /// One-way differences are taken as they are. Of round trips only a link's is halved, because its echo comes
    /// back over the same link; a component is passed by the forward leg alone.
    // [PROTOCOLS 6.1]
    pub fn of(stretch: Stretch, ends: (String, String), round_trip: &Estimator, one_way: &Estimator) -> Self {
        let has_one_way = one_way.n() > 0;
        let halved = !has_one_way && matches!(stretch, Stretch::Link(_, true));
        let source = if has_one_way { one_way } else { round_trip };
        Self {
            what: stretch.what(),
            name: stretch.name().into(),
            from: ends.0,
            to: ends.1,
            latency_ns: source.estimate(if halved { 0.5 } else { 1.0 }),
            source: if has_one_way { "one_way" } else { "round_trip" },
            halved,
            round_trip_difference_ns: round_trip.estimate(1.0),
        }
    }
}
