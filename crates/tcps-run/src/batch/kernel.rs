//! The loop at constant delays, 8 runs side by side: each tick is the same few operations on 8 numbers, which the
//! compiler turns into vector instructions.
//!
//! ```text
//! tick n    h_rx  <- h(n - back), where it arrives        I += Ki T (1 - h_rx)        k(n) = Kp (1 - h_rx) + I
//!                                                                                     or that of a linear controller
//!           k_rx  <- k(n - there), where it arrives       h(n) = s(n) y(k_rx) - d(n)  y(k) = k, or that of a plant
//! ```
//! Where commands are answered on arrival, value n of h is that of the moment at which command n arrives or would have
//! arrived, and `back` is the round trip. Where the far side's ticks have phases of their own, runs whose delays come to
//! the same numbers of ticks go side by side.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "one function is compiled for processors that have AVX2, and called only there"
    )
)]
#![expect(
    clippy::needless_range_loop,
    reason = "one index for several arrays is what becomes vector instructions"
)]

use super::{
    lanes::{bursts, choose, Bursty, Independent, Lane, LossLine, Mask, Random, Whole, LANES},
    observer::{Levels, Response},
    spec::{phase_ns, Answers, Cell, Loss, Spec, System},
};
use std::collections::BTreeMap;
use tcps_control::step::{
    linear::{Linear, Rule},
    Gains, Jump,
};
use tcps_net::loss::Each;

/// What all runs of a cell have in common.
#[derive(Debug, Clone)]
struct Shape {
    ticks: usize,
    there: usize,
    back: usize,
    /// Only commands that arrive are answered.
    on_command: bool,
    /// Factor and summand of y from the step on.
    after: (f64, f64),
    levels: Levels,
    /// Number of the first value of h after the step, and of the first that counts for the error.
    first: usize,
    last: usize,
    period_ms: f64,
}

/// Runs of a block: their generators, and the time of their value 0, in ms.
struct Block {
    random: Random,
    start_ms: Lane,
}

/// The response of every run of a cell.
pub(super) fn runs(spec: &Spec, cell: &Cell) -> Vec<Response> {
    let mut found = Vec::with_capacity(spec.runs as usize);
    let (plant, controller) = (Some(&spec.plant.0).filter(|plant| !plant.is_static()), &cell.controller);
    let ticked = |system: &Linear, rule| system.ticked(cell.period_ns(), rule);
    let plant = plant.map(|plant| ticked(plant, Rule::Held));
    let control = controller.as_ref().map(|System(system)| ticked(system, Rule::Bilinear));
    for (shape, runs) in groups(spec, cell) {
        for some in runs.chunks(LANES) {
            // What is left of the last block goes along and is not looked at.
            let of = |i: usize| some[i.min(some.len() - 1)];
            let block = Block {
                random: Random::new(spec.seed, std::array::from_fn(|i| of(i).0)),
                start_ms: std::array::from_fn(|i| of(i).1),
            };
            let loss = cell.loss.as_ref();
            let responses = match (&control, plant.as_ref()) {
                (None, None) => lossy(&shape, block, loss, Integrates::new(cell), AtOnce),
                (None, Some(plant)) => lossy(&shape, block, loss, Integrates::new(cell), Moved::new(plant)),
                (Some(by), None) => lossy(&shape, block, loss, Moved::new(by), AtOnce),
                (Some(by), Some(plant)) => lossy(&shape, block, loss, Moved::new(by), Moved::new(plant)),
            };
            found.extend(some.iter().zip(responses).map(|((run, _), response)| (*run, response)));
        }
    }
    found.sort_unstable_by_key(|(run, _)| *run);
    found.into_iter().map(|(_, response)| response).collect()
}

/// Runs by what they have in common, each with the time of its value 0, in ms.
fn groups(spec: &Spec, cell: &Cell) -> Vec<(Shape, Vec<(u32, f64)>)> {
    let mut groups: BTreeMap<_, (Shape, Vec<_>)> = BTreeMap::new();
    for run in 0..spec.runs {
        let phase_ms = phase_ns(spec, cell, run) as f64 * 1e-6;
        let (start_ms, shape) = Shape::new(spec, cell, phase_ms);
        let key = [shape.there, shape.back, shape.first, shape.last];
        groups.entry(key).or_insert_with(|| (shape, Vec::new())).1.push((run, start_ms));
    }
    groups.into_values().collect()
}

fn lossy<N: Near, P: Far>(
    shape: &Shape,
    some: Block,
    loss: Option<&Loss>,
    near: N,
    far: P,
) -> [Response; LANES] {
    let ends = (near, far);
    match loss {
        None | Some(Loss::Each(Each { p: 0.0 })) => block(shape, some, ends, Whole, Whole),
        Some(Loss::Each(Each { p })) => block(shape, some, ends, Independent::new(*p), Independent::new(*p)),
        Some(loss) => {
            let (p, r, good, bad) = bursts(loss);
            let line = || Bursty::new(p, r, good, bad);
            block(shape, some, ends, line(), line())
        }
    }
}

impl Shape {
    /// The shape of a run whose far side ticks at this phase, and the time of its value 0, in ms.
    fn new(spec: &Spec, cell: &Cell, phase_ms: f64) -> (f64, Self) {
        let t = cell.period_ms;
        let ticks = |ms: f64| (ms / t - 1e-9).ceil().max(0.0) as usize;
        let on_command = spec.answers == Answers::Commands;
        let (there, back, start_ms) = match on_command {
            true => (0, ticks(cell.there_ms + cell.back_ms), cell.there_ms),
            false => (ticks(cell.there_ms - phase_ms), ticks(cell.back_ms + phase_ms), phase_ms),
        };
        let n = ticks(spec.duration_ms);
        let levels = Levels::new(spec.c, spec.t0_ms, start_ms + n.saturating_sub(1) as f64 * t);
        let number = |ms: f64| ticks(ms - start_ms).min(n);
        let shape = Self {
            ticks: n,
            there,
            // What comes back at the very moment of a tick is used at the next one.
            back: back.max(1),
            on_command,
            after: Jump::after(spec.c, spec.disturbance),
            first: number(levels.t0_ms),
            last: number(levels.last_ms),
            levels,
            period_ms: t,
        };
        (start_ms, shape)
    }

    /// Time of a value after the step, in ms; not a number past the end.
    fn ms(&self, start_ms: f64, number: u64) -> f64 {
        match number < self.ticks as u64 {
            true => start_ms + number as f64 * self.period_ms - self.levels.t0_ms,
            false => f64::NAN,
        }
    }
}

/// The plants of 8 runs.
trait Far {
    /// y under the commands that hold, and a tick passes.
    fn answer(&mut self, k: &Lane) -> Lane;
}

/// Those that answer a command with itself.
struct AtOnce;

impl Far for AtOnce {
    #[inline(always)]
    fn answer(&mut self, k: &Lane) -> Lane {
        *k
    }
}

/// The controllers of 8 runs.
trait Near {
    /// k at these errors, and a tick passes.
    fn command(&mut self, e: &Lane) -> Lane;
}

/// Proportional and integral ones.
struct Integrates {
    kp: f64,
    /// Ki T.
    ki: f64,
    most: f64,
    integral: Lane,
}

impl Integrates {
    fn new(cell: &Cell) -> Self {
        let Gains { most, .. } = Gains::default();
        Self { kp: cell.kp, ki: cell.ki_per_ms * cell.period_ms, most, integral: [1.0; LANES] }
    }
}

impl Near for Integrates {
    // [Polachan 2022] I += Ki T e; k = Kp e + I
    #[inline(always)]
    fn command(&mut self, e: &Lane) -> Lane {
        let mut k = [0.0; LANES];
        for i in 0..LANES {
            let sum = self.integral[i] + self.ki * e[i];
            let sum = if sum > self.most { self.most } else { sum };
            self.integral[i] = if sum < -self.most { -self.most } else { sum };
            k[i] = self.kp * e[i] + self.integral[i];
        }
        k
    }
}

/// Linear systems from tick to tick: controllers, or plants with a memory.
struct Moved {
    ticked: Linear,
    x: Vec<Lane>,
    next: Vec<Lane>,
}

impl Moved {
    fn new(ticked: &Linear) -> Self {
        let x = vec![[0.0; LANES]; ticked.a.len()];
        Self { ticked: ticked.clone(), next: x.clone(), x }
    }

    /// 1 and the output, under these inputs.
    #[inline(always)]
    fn moved(&mut self, u: &Lane) -> Lane {
        let Self { ticked, x, next } = self;
        let Linear { a, b, c, d, .. } = &*ticked;
        let mut y: Lane = std::array::from_fn(|i| 1.0 + d * u[i]);
        for (c, x) in c.iter().zip(&*x) {
            (0..LANES).for_each(|i| y[i] += c * x[i]);
        }
        for ((row, b), next) in a.iter().zip(b).zip(&mut *next) {
            *next = std::array::from_fn(|i| b * u[i]);
            for (a, x) in row.iter().zip(&*x) {
                (0..LANES).for_each(|i| next[i] += a * x[i]);
            }
        }
        std::mem::swap(x, next);
        y
    }
}

impl Near for Moved {
    #[inline(always)]
    fn command(&mut self, e: &Lane) -> Lane {
        self.moved(e)
    }
}

impl Far for Moved {
    #[inline(always)]
    fn answer(&mut self, k: &Lane) -> Lane {
        self.moved(&std::array::from_fn(|i| k[i] - 1.0))
    }
}

/// What is seen of 8 runs.
struct Seen {
    most: Lane,
    least: Lane,
    sum: Lane,
    crossed: Mask,
    risen: Mask,
    /// Values before the rise, and up to the last one outside the band.
    low: Mask,
    settled: Mask,
}

impl Seen {
    fn new(first: usize) -> Self {
        Self {
            most: [1.0; LANES],
            least: [1.0; LANES],
            sum: [0.0; LANES],
            crossed: [0; LANES],
            risen: [0; LANES],
            low: [first as u64; LANES],
            settled: [first as u64; LANES],
        }
    }

    // [Polachan 2022: steps] rise time, overshoot, undershoot
    #[inline(always)]
    fn see(&mut self, number: usize, h: &Lane, levels: &Levels, counts: bool) {
        let all = |holds: bool| if holds { u64::MAX } else { 0 };
        for i in 0..LANES {
            self.risen[i] |= all(h[i] >= levels.rise);
            self.low[i] += !self.risen[i] & 1;
            self.most[i] = if h[i] > self.most[i] { h[i] } else { self.most[i] };
            self.crossed[i] |= all(h[i] >= 1.0);
            let lowest = if h[i] < self.least[i] { h[i] } else { self.least[i] };
            self.least[i] = choose(self.crossed[i], lowest, self.least[i]);
            let within = (h[i] - 1.0).abs() <= levels.band;
            let outside = all(!within); // also what has overflowed
            self.settled[i] = ((number as u64 + 1) & outside) | (self.settled[i] & !outside);
            if counts {
                self.sum[i] += h[i] - 1.0;
            }
        }
    }

    fn response(&self, i: usize, shape: &Shape, start_ms: f64) -> Response {
        let levels = &shape.levels;
        Response {
            rise_ms: shape.ms(start_ms, self.low[i]),
            overshoot: levels.percent(self.most[i] - 1.0),
            undershoot: levels.percent(1.0 - self.least[i]),
            settling_ms: match self.settled[i] <= shape.last as u64 {
                true => shape.ms(start_ms, self.settled[i]),
                false => f64::NAN,
            },
            error: levels.percent(self.sum[i] / (shape.ticks - shape.last) as f64),
        }
    }
}

/// A block of runs, with the widest vectors that this processor has: the operations and so the bits are the same.
fn block<N: Near, P: Far, L: LossLine>(
    shape: &Shape,
    some: Block,
    ends: (N, P),
    there: L,
    back: L,
) -> [Response; LANES] {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has these instructions.
        return unsafe { wide(shape, some, ends, there, back) };
    }
    plain(shape, some, ends, there, back)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn wide<N: Near, P: Far, L: LossLine>(
    shape: &Shape,
    some: Block,
    ends: (N, P),
    there: L,
    back: L,
) -> [Response; LANES] {
    plain(shape, some, ends, there, back)
}

// [Polachan 2022: steps] e = 1 - h; I += Ki T e; k = Kp e + I; h = s(t) k
#[inline(always)]
fn plain<N: Near, P: Far, L: LossLine>(
    shape: &Shape,
    some: Block,
    (mut near, mut far): (N, P),
    mut there: L,
    mut back: L,
) -> [Response; LANES] {
    let Block { mut random, start_ms } = some;
    let all = [u64::MAX; LANES];
    let mut commands = vec![([1.0; LANES], all); shape.there + 1];
    let mut answers = vec![([1.0; LANES], all); shape.back];
    let (mut h_rx, mut k_rx) = ([1.0; LANES], [1.0; LANES]);
    let (mut k_at, mut h_at, mut seen) = (0, 0, Seen::new(shape.first));
    for n in 0..shape.ticks {
        let (h, arrives) = &answers[h_at];
        let mut e = [0.0; LANES];
        for i in 0..LANES {
            h_rx[i] = choose(arrives[i], h[i], h_rx[i]);
            e[i] = 1.0 - h_rx[i];
        }
        let k = near.command(&e);
        commands[k_at] = (k, there.arrives(&mut random, &all));
        k_at = if k_at == shape.there { 0 } else { k_at + 1 };
        let (k, arrives) = &commands[k_at];
        let (scale, shift) = if n < shape.first { (1.0, 0.0) } else { shape.after };
        let mut h = [0.0; LANES];
        for i in 0..LANES {
            k_rx[i] = choose(arrives[i], k[i], k_rx[i]);
        }
        let y = far.answer(&k_rx);
        for i in 0..LANES {
            h[i] = scale * y[i] + shift;
        }
        if n >= shape.first {
            seen.see(n, &h, &shape.levels, n >= shape.last);
        }
        let sent = if shape.on_command { *arrives } else { all };
        answers[h_at] = (h, back.arrives(&mut random, &sent));
        h_at = if h_at + 1 == shape.back { 0 } else { h_at + 1 };
    }
    std::array::from_fn(|i| seen.response(i, shape, start_ms[i]))
}
