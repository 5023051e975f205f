//! Where the time of a sample went: its age at every echo point of the path, joined sample by sample.
//!
//! ```text
//! Sent --component-- exit(c0) --link-- entry(c1) --component-- exit(c1) --link-- ... -- entry(cn)   exit(cn)
//!   0                  a0                a1                      a2                     delay       (a point only)
//! ```
//! Differences are taken when a sample arrives, over the samples that arrived, so that the means along the path add
//! up to the mean delay exactly; before a stage with a period of its own over those that it makes its samples of. The ages of the last few thousand samples wait in a ring. The first component has a
//! stretch of its own if it has stages; else a sample is sent at its exit. What the last component does comes after
//! the delivery: its exit is a point, not a part of the path.

use super::names;
use super::stretch::Stretch;
use super::tally::{mean_of, Distribution, Tally};
use serde::Serialize;
use tcps_core::sample::PointId;
use tcps_plan::{FlowPlan, Plan};

/// Samples whose ages wait at most.
const RING: usize = 4096;
const UNKNOWN: i64 = i64::MIN;

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
    /// Mean time spent there, ns.
    pub mean_ns: Option<f64>,
    /// Time spent there, ns; absent where samples become other samples (a periodic stage), which has a mean only.
    pub latency_ns: Option<Distribution>,
}

/// The way of a flow's samples.
#[derive(Debug, Serialize)]
pub struct PathReport {
    /// Samples known at every point.
    pub joined: u64,
    /// Mean delay of the joined ones: the sum of the means of the segments.
    pub delay_mean_ns: Option<f64>,
    /// Stretches in order.
    pub segments: Vec<Segment>,
}

/// Joins the ages of samples along one leg of a path.
#[derive(Debug)]
pub struct Join {
    /// Points of the leg, and on the last leg the exit of the last component if it has stages.
    points: Vec<PointId>,
    /// How many of them lead to the leg's end.
    length: usize,
    /// A sample that has arrived counts once it is said to be used.
    waits: bool,
    tags: Vec<u32>,
    ages: Vec<i64>,
    mask: usize,
    at_point: Vec<Tally>,
    /// Samples that started at age 0, which need no tally.
    newborn: u64,
    /// Spans between points; empty where the only one is the whole age.
    between: Vec<Tally>,
    joined: u64,
    /// Sums over the joined samples of their ages where the leg starts and ends.
    ends: [i128; 2],
}

impl Join {
    /// A join for these points, of which `length` lead to the end; samples are born at the start of a `first` leg, and
    /// may have to be used at the end of one that is not the `last`; `samples` fit into the window.
    pub fn new(points: Vec<PointId>, length: usize, [first, last]: [bool; 2], samples: usize) -> Self {
        let ring = samples.min(RING);
        let spans = if first && last && length == 2 { 0 } else { length.saturating_sub(1) };
        Self {
            length,
            waits: false,
            tags: vec![0; ring],
            ages: vec![UNKNOWN; ring * points.len()],
            mask: ring - 1,
            at_point: vec![Tally::default(); points.len()],
            newborn: 0,
            between: vec![Tally::default(); spans],
            points,
            joined: 0,
            ends: [0; 2],
        }
    }

    fn row(&mut self, index: u32) -> &mut [i64] {
        let at = index as usize & self.mask;
        let width = self.points.len();
        let row = &mut self.ages[at * width..(at + 1) * width];
        if self.tags[at] != index {
            self.tags[at] = index;
            row.fill(UNKNOWN);
        }
        row
    }

    /// A sample is made here.
    #[inline]
    pub fn born(&mut self, index: u32) {
        self.newborn += 1;
        if self.between.is_empty() {
            return;
        }
        let row = self.row(index);
        row.fill(UNKNOWN);
        row[0] = 0;
    }

    /// A sample starts on a later leg.
    pub fn start(&mut self, index: u32, age_ns: i64) {
        let row = self.row(index);
        row.fill(UNKNOWN);
        row[0] = age_ns;
        self.at_point[0].add(age_ns);
    }

    /// A sample passed a point between; copies after the first do not count.
    #[inline]
    pub fn pass(&mut self, index: u32, point: PointId, age_ns: i64) {
        let Some(position) = self.points.iter().position(|p| *p == point).filter(|p| *p > 0) else { return };
        let cell = &mut self.row(index)[position];
        if *cell == UNKNOWN {
            *cell = age_ns;
            self.at_point[position].add(age_ns);
        }
    }

    /// A sample arrived at the leg's end for the first time.
    #[inline]
    pub fn arrive(&mut self, index: u32, age_ns: i64) {
        let (length, width) = (self.length, self.points.len());
        self.at_point[length - 1].add(age_ns);
        if self.between.is_empty() {
            return self.join([0, age_ns]);
        }
        let at = index as usize & self.mask;
        if self.tags[at] == index {
            self.ages[at * width + length - 1] = age_ns;
        }
        if !self.waits {
            self.count(index);
        }
    }

    /// A sample that arrived is used. Where that is said, those count from then on that are.
    pub fn used(&mut self, index: u32) {
        if std::mem::replace(&mut self.waits, true) {
            self.count(index);
        }
    }

    #[inline]
    fn count(&mut self, index: u32) {
        let at = index as usize & self.mask;
        let row = &self.ages[at * self.points.len()..][..self.length];
        if self.tags[at] != index || row.contains(&UNKNOWN) {
            return;
        }
        for (tally, pair) in self.between.iter_mut().zip(row.windows(2)) {
            tally.add(pair[1].saturating_sub(pair[0]));
        }
        self.join([row[0], row[self.length - 1]]);
    }

    fn join(&mut self, ends: [i64; 2]) {
        self.joined += 1;
        self.ends[0] += i128::from(ends[0]);
        self.ends[1] += i128::from(ends[1]);
    }

    /// The points, by number.
    pub fn numbers(&self) -> &[PointId] {
        &self.points
    }

    /// Ages at the leg's end.
    pub fn at_end(&self) -> &Tally {
        &self.at_point[self.length - 1]
    }

    /// Ages at all points.
    pub fn points(&self, plan: &Plan) -> Vec<PointAges> {
        let ages = |(i, (&point, ages)): (usize, (&PointId, &Tally))| {
            let zero = (i == 0 && self.newborn > 0).then(|| Distribution::constant(self.newborn, 0.0));
            let age_ns = zero.or_else(|| ages.distribution());
            PointAges { point: names::point(plan, point), n: age_ns.as_ref().map_or(0, |d| d.n), age_ns }
        };
        self.points.iter().zip(&self.at_point).enumerate().map(ages).collect()
    }

    fn segments(&self, plan: &Plan, flow: &FlowPlan) -> Vec<Segment> {
        let spans =
            if self.between.is_empty() { std::slice::from_ref(self.at_end()) } else { &self.between[..] };
        let segment = |(pair, spans): (&[PointId], &Tally)| {
            let stretch = Stretch::between(plan, flow, pair[0], pair[1]);
            Segment {
                what: stretch.what(),
                name: stretch.name().into(),
                mean_ns: (spans.n() > 0).then(|| spans.mean()),
                latency_ns: spans.distribution(),
            }
        };
        self.points[..self.length].windows(2).zip(spans).map(segment).collect()
    }

    /// Mean ages of the joined samples where the leg starts and ends.
    fn mean_ends(&self) -> Option<[f64; 2]> {
        (self.joined > 0).then(|| self.ends.map(|sum| mean_of(sum, self.joined)))
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        let tallies = self.at_point.iter().chain(&self.between).map(Tally::heap_bytes).sum::<usize>();
        tallies + self.ages.len() * 8 + self.tags.len() * 4
    }
}

/// The path from end to end, over all legs. Between two legs lies a component whose periodic stage makes new samples of old
/// ones: it is given the difference of the mean ages, so that the means still add up.
pub fn report(plan: &Plan, flow: &FlowPlan, legs: &[&Join]) -> PathReport {
    let mut segments: Vec<Segment> = Vec::new();
    for (i, leg) in legs.iter().enumerate() {
        if let Some(before) = i.checked_sub(1).map(|b| legs[b]) {
            let mean_ns = before.mean_ends().zip(leg.mean_ends()).map(|(a, b)| b[0] - a[1]);
            let name = names::component(plan, leg.points[0].owner());
            segments.push(Segment { what: "component", name, mean_ns, latency_ns: None });
        }
        segments.extend(leg.segments(plan, flow));
    }
    let last = legs.last();
    PathReport {
        joined: last.map_or(0, |leg| leg.joined),
        delay_mean_ns: last.and_then(|leg| leg.mean_ends()).map(|ends| ends[1]),
        segments,
    }
}
