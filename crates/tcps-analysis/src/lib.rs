//! From the rows of a run to its numbers: one pass, with memory that does not depend on how long the run was.
//!
//! ```text
//! records.bin -> Rows -> by flow   Window (lost, twice)  Order  Jitter  Age  Tally (percentiles)  Join (where the time went)
//!                        by probe  Echoes (round trips, legs, differences)
//!                        by event  Effects (attacks)
//!                        by link   queues         by node  Clocks, Nodes        over time  Series
//! ```
//! Spans are in nanoseconds as the clocks of the nodes gave them. Rows of the warm-up are left out of all numbers
//! and kept in the curves; a sample belongs to the warm-up if it was sent in it.

#![forbid(unsafe_code)]

pub mod age;
pub mod clock;
pub mod echo;
pub mod effect;
pub mod fit;
pub mod flow;
pub mod flow_report;
pub mod giver;
pub mod histogram;
pub mod interval;
pub mod jitter;
pub mod leg;
pub mod live;
pub mod names;
pub mod node;
mod options;
pub mod order;
pub mod path;
pub mod queue;
pub mod rows;
pub mod series;
pub mod shown;
pub mod snr;
pub mod state;
pub mod stretch;
pub mod tally;
pub mod window;

pub use options::Options;

use leg::Arrival;
use serde::Serialize;
use std::io::{Read, Result};
use tcps_core::{
    record::{Kind, Record},
    sample::PointId,
    time::Time,
};
use tcps_plan::Plan;

/// Events that are listed at most.
const LISTED_EVENTS: usize = 10_000;

/// Bins of all curves of flows together, at most: where there are more than 500 flows, curves are coarser.
const MOST_BINS: usize = 200_000;
/// Bins of a curve that there are in any case.
const FEWEST_BINS: usize = 20;

/// A scenario event that took place.
#[derive(Debug, Serialize)]
pub struct EventReport {
    /// When, seconds.
    pub t_s: f64,
    /// Its name.
    pub name: String,
}

/// The numbers of a run.
#[derive(Debug, Serialize)]
pub struct Analysis {
    /// Rows read.
    pub rows: u64,
    /// Rows of an unknown kind, or about a flow that the plan does not have.
    pub strange_rows: u64,
    /// Bytes of an unfinished last row.
    pub torn_bytes: usize,
    /// Rows out of the order of time.
    pub unordered_rows: u64,
    /// End of the run: the planned one, or the last row if that came earlier.
    pub end_ns: Time,
    /// Significant digits of percentiles.
    pub digits: u8,
    /// Flows in the plan's order.
    pub flows: Vec<flow_report::FlowReport>,
    /// Probes in the plan's order.
    pub echo: Vec<echo::EchoReport>,
    /// Links whose queue was sampled.
    pub queues: Vec<queue::QueueReport>,
    /// Channels whose packets were recorded.
    pub channels: Vec<queue::ChannelReport>,
    /// Clock synchronisation.
    pub clocks: Vec<clock::ClockReport>,
    /// Nodes that stalled.
    pub nodes: Vec<node::NodeReport>,
    /// Events in the order in which they took place.
    pub events: Vec<EventReport>,
    /// States of hooks that watch over a flow.
    pub states: Vec<state::StateReport>,
    /// What changes of links and attacks did.
    pub effects: Vec<effect::EffectReport>,
    /// Curves over time.
    pub series: series::Curves,
    /// Probabilities of all cumulative curves.
    pub p: Vec<f64>,
}

/// Reads all rows once and says what they mean.
pub fn analyse(records: impl Read, plan: &Plan, options: &Options) -> Result<Analysis> {
    let mut analyser = Analyser::new(plan, options.clone());
    let mut rows = rows::Rows::new(records);
    rows.for_each(|row| analyser.take(row))?;
    analyser.strange += rows.unknown;
    analyser.rows += rows.unknown;
    Ok(analyser.finish(rows.torn_bytes))
}

/// The state of a pass.
#[derive(Debug)]
pub struct Analyser<'a> {
    plan: &'a Plan,
    options: Options,
    flows: Vec<flow::Flow>,
    echoes: Vec<echo::Echoes>,
    /// By flow: its first probe.
    probe_of: Vec<Option<usize>>,
    queues: queue::Queues,
    channels: queue::Channels,
    clocks: clock::Clocks,
    nodes: node::Nodes,
    events: Vec<EventReport>,
    states: state::States,
    effects: effect::Effects,
    series: series::Series,
    rows: u64,
    strange: u64,
    unordered: u64,
    last_ns: Time,
}

impl<'a> Analyser<'a> {
    /// Nothing read yet.
    pub fn new(plan: &'a Plan, options: Options) -> Self {
        let links = plan.network.links.len();
        let bins = options.bins.min(MOST_BINS / plan.flows.len().max(1)).max(FEWEST_BINS.min(options.bins));
        let series = series::Series::new(plan.duration_ns, bins, plan.flows.len(), links);
        Self {
            flows: plan.flows.iter().map(|f| flow::Flow::new(plan, f, &options)).collect(),
            echoes: plan.probes.iter().map(|p| echo::Echoes::new(plan, p)).collect(),
            probe_of: first_probes(plan),
            queues: queue::Queues::new(links),
            channels: queue::Channels::new(plan.channels.len()),
            clocks: clock::Clocks::default(),
            nodes: node::Nodes::new(plan.nodes.len()),
            events: Vec::new(),
            states: state::States::default(),
            effects: effect::Effects::new(plan),
            series,
            rows: 0,
            strange: 0,
            unordered: 0,
            last_ns: Time::MIN,
            plan,
            options,
        }
    }

    /// The next row.
    #[inline]
    pub fn take(&mut self, row: &Record) {
        self.rows += 1;
        if row.kind == Kind::Hop {
            return; // It is of the moment at which a packet came to a link, and written when it has left.
        }
        self.unordered += u64::from(row.time_ns < self.last_ns);
        self.last_ns = self.last_ns.max(row.time_ns);
        match row.kind {
            Kind::Sent | Kind::Delivered | Kind::Enter | Kind::Exit => self.sample(row),
            _ => self.other(row),
        }
    }

    #[inline]
    fn sample(&mut self, row: &Record) {
        let number = row.flow.index();
        if !self.effects.is_empty() && self.effects.sample(row) {
            if let Some(flow) = self.flows.get_mut(number).filter(|_| row.kind == Kind::Delivered) {
                flow.forged(row, &self.options);
            }
            return;
        }
        let Some(flow) = self.flows.get_mut(number) else {
            self.strange += 1;
            return;
        };
        let bin = if row.kind == Kind::Delivered { self.series.bin(row.time_ns) } else { 0 };
        let around = flow::Around { flow: number, options: &self.options, series: &mut self.series };
        match row.kind {
            Kind::Enter | Kind::Exit => flow.pass(row, around),
            Kind::Sent => flow.sent(row, around),
            _ => match flow.delivered(row, bin, around) {
                Some(Arrival::Stray) if self.effects.changed(row.flow) => flow.forged(row, &self.options),
                Some(Arrival::Stray) => self.strange += 1,
                Some(Arrival::First(true)) if !self.effects.is_empty() => self.effects.arrived(row),
                _ => {}
            },
        }
    }

    fn other(&mut self, row: &Record) {
        let counts = row.time_ns >= self.options.warmup_ns;
        if !self.effects.is_empty() {
            self.effects.take(row);
            let sends_samples = row.kind == Kind::Attack && PointId(row.point) != PointId::NONE;
            if let Some(flow) = self.flows.get_mut(row.flow.index()).filter(|_| sends_samples) {
                flow.attack();
            }
        }
        match row.kind {
            Kind::Queue => {
                self.queues.take(row, counts, &mut self.series);
            }
            Kind::Event => self.event(row),
            Kind::State => self.strange += u64::from(!self.states.take(row)),
            Kind::Dropped
            | Kind::Superseded
            | Kind::Suppressed
            | Kind::Duplicate
            | Kind::Verified
            | Kind::Merging
            | Kind::Played
            | Kind::Overdue
            | Kind::Skipped
            | Kind::Starved
            | Kind::Renumbered => {
                let number = row.flow.index();
                if let Some(flow) = self.flows.get_mut(number) {
                    let around =
                        flow::Around { flow: number, options: &self.options, series: &mut self.series };
                    flow.count(row, around);
                }
            }
            Kind::Signal => {
                if let Some(flow) = self.flows.get_mut(row.flow.index()) {
                    flow.signal(row);
                }
            }
            Kind::Echo | Kind::EchoForward | Kind::EchoReturn | Kind::EchoSuperseded => {
                self.echo(row, counts)
            }
            Kind::Sync => {
                self.echoes.iter_mut().for_each(|e| e.synchronise(row));
                if counts {
                    self.clocks.take(row, self.plan, self.effects.lies_ns(row));
                }
            }
            _ if !counts => {}
            Kind::Gap => self.nodes.take(row),
            Kind::Transmit | Kind::Receive => self.channels.take(row),
            _ => {}
        }
    }

    fn echo(&mut self, row: &Record, counts: bool) {
        let first = self.probe_of.get(usize::from(row.flow)).copied().flatten().unwrap_or(self.echoes.len());
        match self.echoes[first..].iter_mut().find(|e| e.owns(row)) {
            Some(echoes) if counts => echoes.take(row),
            Some(echoes) => echoes.warm_up(row),
            None => self.strange += 1,
        }
    }

    fn event(&mut self, row: &Record) {
        if self.events.len() < LISTED_EVENTS {
            let planned = self.plan.events.get(row.index as usize);
            let name = planned.map_or_else(|| format!("event {}", row.index), |e| e.name.clone());
            self.events.push(EventReport { t_s: row.time_ns as f64 / 1e9, name });
        }
    }

    /// Judges what is left and writes the numbers down.
    pub fn finish(mut self, torn_bytes: usize) -> Analysis {
        let plan = self.plan;
        let end_ns = plan.duration_ns.min(self.last_ns.max(0));
        for (number, (flow, planned)) in self.flows.iter_mut().zip(&plan.flows).enumerate() {
            let around = flow::Around { flow: number, options: &self.options, series: &mut self.series };
            flow.finish(planned, end_ns, around);
        }
        let p = probabilities();
        let flows = self.flows.iter().zip(&plan.flows);
        let echoes = self.echoes.iter().zip(&plan.probes);
        let names = plan.flows.iter().map(|f| f.name.as_str());
        Analysis {
            rows: self.rows,
            strange_rows: self.strange,
            torn_bytes,
            unordered_rows: self.unordered,
            end_ns,
            digits: histogram::DIGITS,
            flows: flows.map(|(f, planned)| f.report(plan, planned, end_ns, &self.options, &p)).collect(),
            echo: echoes.map(|(e, probe)| e.report(plan, probe, end_ns, self.options.grace_ns, &p)).collect(),
            queues: self.queues.report(plan),
            channels: self.channels.report(plan),
            clocks: self.clocks.report(plan),
            nodes: self.nodes.report(plan),
            series: self.series.curves(names, plan.network.links.iter().map(|l| l.name.as_str())),
            events: self.events,
            states: self.states.report(plan, end_ns),
            effects: self.effects.report(plan),
            p,
        }
    }

    /// Bytes held on the heap by the parts that could grow.
    pub fn heap_bytes(&self) -> usize {
        self.flows.iter().map(flow::Flow::heap_bytes).sum()
    }
}

/// The first probe of each flow.
fn first_probes(plan: &Plan) -> Vec<Option<usize>> {
    let mut first = vec![None; plan.flows.len()];
    for (number, probe) in plan.probes.iter().enumerate() {
        first.get_mut(usize::from(probe.flow)).into_iter().for_each(|place| _ = place.get_or_insert(number));
    }
    first
}

/// Every percent, and the upper tail to 99.99 %.
fn probabilities() -> Vec<f64> {
    let tail = [0.992, 0.995, 0.997, 0.998, 0.999, 0.9995, 0.9999, 1.0];
    (0..100).map(|i| f64::from(i) / 100.0).chain(tail).collect()
}

#[cfg(test)]
mod tests;
