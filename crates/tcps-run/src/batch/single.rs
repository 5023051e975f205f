//! The loop run by run, with delays of their own for each packet.
//!
//! ```text
//! command n leaves at n T       arrives after `there` + jitter       next tick of the far side, or at once
//! answer    leaves then         arrives after `back` + jitter        next tick of the controller
//! ```
//! Of what arrives between two ticks, the last to arrive counts.

use super::{
    lanes::bursts,
    observer::{Levels, Observer, Response},
    spec::{phase_ns, Answers, Cell, Spec, System},
};
use tcps_control::step::{
    linear::{Motion, Rule},
    Controller, Gains, Jump, Pi,
};
use tcps_core::{dist::Sampler, seed::Stream, time::Time};

/// One direction of the network.
struct Direction {
    delay_ns: Time,
    jitter: Option<Sampler>,
    reorder: bool,
    latest: Time,
    bad: bool,
    bursts: (f64, f64, f64, f64),
    stream: Stream,
}

impl Direction {
    fn new(spec: &Spec, cell: &Cell, run: u32, name: &str, delay_ms: f64) -> Self {
        let named = |what: &str| format!("step.run.{run}.{name}.{what}");
        Self {
            delay_ns: ns(delay_ms),
            jitter: cell.jitter.clone().map(|d| Sampler::new(d, spec.seed, &named("jitter"))),
            reorder: cell.reorder,
            latest: 0,
            bad: false,
            bursts: cell.loss.as_ref().map_or((0.0, 1.0, 0.0, 0.0), bursts),
            stream: Stream::new(spec.seed, &named("loss")),
        }
    }

    /// When a packet that leaves at `now` arrives, if it does.
    fn carry(&mut self, now: Time) -> Option<Time> {
        let (p, r, good, bad) = self.bursts;
        let lost = self.stream.unit() < if self.bad { bad } else { good };
        self.bad ^= self.stream.unit() < if self.bad { r } else { p };
        let extra = self.jitter.as_mut().map_or(0, Sampler::draw);
        let at = now + self.delay_ns + extra;
        if lost {
            return None;
        }
        self.latest = self.latest.max(at);
        Some(if self.reorder { at } else { self.latest })
    }
}

/// Values that arrive until the next tick: the last one of each tick is kept.
struct Inbox {
    period_ns: Time,
    phase_ns: Time,
    slots: Vec<Option<(Time, f64)>>,
}

impl Inbox {
    fn new(period_ns: Time, phase_ns: Time, ticks: usize) -> Self {
        Self { period_ns, phase_ns, slots: vec![None; ticks] }
    }

    /// Puts a value where it is found at the first tick from `at` on, but not before tick `from`.
    fn put(&mut self, at: Time, value: f64, from: usize) {
        let tick = ticks_until(at - self.phase_ns, self.period_ns);
        if let Some(slot) = self.slots.get_mut(tick.max(from)) {
            if slot.is_none_or(|(before, _)| at >= before) {
                *slot = Some((at, value));
            }
        }
    }

    fn take(&mut self, tick: usize) -> Option<f64> {
        self.slots[tick].map(|(_, value)| value)
    }
}

/// The response of one run.
pub(super) fn run(spec: &Spec, cell: &Cell, run: u32) -> Response {
    let period = ns(cell.period_ms).max(1);
    let ticks = ticks_until(ns(spec.duration_ms), period);
    let mut directions = [("there", cell.there_ms), ("back", cell.back_ms)]
        .map(|(name, delay)| Direction::new(spec, cell, run, name, delay));
    let far = Inbox::new(period, phase_ns(spec, cell, run), ticks);
    let mut seen = match spec.answers {
        Answers::Commands => on_commands(spec, cell, period, ticks, &mut directions),
        Answers::Ticks => on_ticks(spec, cell, far, &mut directions),
    };
    // Packets that overtake others are seen in the order in which they arrive.
    seen.sort_by_key(|(at, _)| *at);
    let end_ms = seen.last().map_or(0.0, |(at, _)| *at as f64 * 1e-6);
    let mut observer = Observer::new(Levels::new(spec.c, spec.t0_ms, end_ms));
    seen.iter().for_each(|(at, h)| observer.see(*at as f64 * 1e-6, *h));
    observer.response()
}

/// h where each command arrives, with its moment.
fn on_commands(
    spec: &Spec,
    cell: &Cell,
    period: Time,
    ticks: usize,
    [there, back]: &mut [Direction; 2],
) -> Vec<(Time, f64)> {
    let (jump, mut controller, mut motion) = (jump(spec), controller(cell), plant(spec));
    let (mut h_rx, mut near) = (1.0, Inbox::new(period, 0, ticks));
    let mut seen = Vec::with_capacity(ticks + 1);
    seen.push((jump.t0_ns, 1.0 / jump.c));
    for n in 0..ticks {
        h_rx = near.take(n).unwrap_or(h_rx);
        let k = controller.update(cell.period_ms, 1.0 - h_rx);
        if let Some(at) = there.carry(n as Time * period) {
            let h = jump.h(at, motion.obey(k));
            seen.push((at, h));
            if let Some(home) = back.carry(at) {
                near.put(home, h, n + 1);
            }
        }
    }
    seen
}

/// h at each tick of the far side.
fn on_ticks(
    spec: &Spec,
    cell: &Cell,
    mut far: Inbox,
    [there, back]: &mut [Direction; 2],
) -> Vec<(Time, f64)> {
    let (jump, mut controller, period, ticks) =
        (jump(spec), controller(cell), far.period_ns, far.slots.len());
    let (mut motion, mut h_rx, mut k_rx) = (plant(spec), 1.0, 1.0);
    let mut near = Inbox::new(period, 0, ticks);
    let mut seen = Vec::with_capacity(ticks);
    for n in 0..ticks {
        h_rx = near.take(n).unwrap_or(h_rx);
        let k = controller.update(cell.period_ms, 1.0 - h_rx);
        if let Some(at) = there.carry(n as Time * period) {
            far.put(at, k, n);
        }
        k_rx = far.take(n).unwrap_or(k_rx);
        let at = n as Time * period + far.phase_ns;
        let h = jump.h(at, motion.obey(k_rx));
        motion.pass(period);
        seen.push((at, h));
        if let Some(home) = back.carry(at) {
            near.put(home, h, n + 1);
        }
    }
    seen
}

fn jump(spec: &Spec) -> Jump {
    Jump { c: spec.c, t0_ns: ns(spec.t0_ms), disturbance: spec.disturbance }
}

fn plant(spec: &Spec) -> Motion {
    Motion::new(spec.plant.0.clone(), Rule::Held)
}

fn controller(cell: &Cell) -> Controller {
    match &cell.controller {
        Some(System(system)) => Controller::linear(system.clone()),
        None => {
            let gains = Gains { kp: cell.kp, ki_per_ms: cell.ki_per_ms, ..Gains::default() };
            Controller::Pi(gains, Pi::default())
        }
    }
}

/// Ticks before `span` is over.
fn ticks_until(span: Time, period: Time) -> usize {
    ((span.max(0) + period - 1) / period) as usize
}

fn ns(ms: f64) -> Time {
    (ms * 1e6).round() as Time
}
