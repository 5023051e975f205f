//! Kalman filter of a signal whose motion has N derivatives, for one value a sample at any spacing.
//!
//! ```text
//! predict  x = F(T) x,  P = F P F' + Q(T)          update  K = P H' / (H P H' + R),  H = (1, 0, ..)
//! ahead    F(h) x
//! ```
//! The covariance knows times and not values: all values of a sample share it.

use serde_json::Value;
use tcps_core::{
    model::Predictor,
    param::{Fault, Params as _},
    params,
    time::Time,
};

use super::{seconds, usable};

/// A square matrix.
pub type Square<const N: usize> = [[f64; N]; N];

/// How a signal moves: transition and process noise over `s` seconds.
pub trait Motion<const N: usize>: Send {
    /// F.
    fn transition(&self, s: f64) -> Square<N>;
    /// Q.
    fn noise(&self, s: f64) -> Square<N>;
}

/// A motion of which white noise drives the highest derivative.
pub trait Driven<const N: usize>: Motion<N> {
    /// Density of the noise where none is given.
    const PROCESS: f64;

    /// The motion with this density.
    fn with(density: f64) -> Self;
}

params! {
    /// Parameters of a driven motion, in the unit of the signal (here m). Only process / sd^2 has an effect: larger follows
    /// faster and smooths less.
    pub(crate) struct Params {
        process: Option<f64> = Number, ABSENT, POSITIVE, "spectral density of the noise, in (m/s^N)^2 s";
        sd: f64 = Number, "1e-4", POSITIVE, "standard deviation of a measurement, in m";
    }
}

/// The filter.
#[derive(Debug, Clone)]
pub struct Kalman<M, const N: usize> {
    motion: M,
    /// Variance of a measurement.
    r: f64,
    at: Option<Time>,
    states: Vec<[f64; N]>,
    p: Square<N>,
}

/// The derivatives' standard deviations at the first sample: that of the measurement in each millisecond.
const FIRST_HZ: f64 = 1e3;

impl<M: Driven<N>, const N: usize> Kalman<M, N> {
    /// Reads the parameters of a driven motion.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        let process = p.process.unwrap_or(M::PROCESS);
        Ok(Self::of(M::with(process), p.sd))
    }
}

impl<M: Motion<N>, const N: usize> Kalman<M, N> {
    /// A filter for measurements with standard deviation `sd`.
    pub(super) fn of(motion: M, sd: f64) -> Self {
        Self { motion, r: sd * sd, at: None, states: Vec::new(), p: [[0.0; N]; N] }
    }

    fn begin(&mut self, x: &[f64]) {
        self.states = x.iter().map(|v| std::array::from_fn(|i| if i == 0 { *v } else { 0.0 })).collect();
        self.p = [[0.0; N]; N];
        let mut variance = self.r;
        for (i, row) in self.p.iter_mut().enumerate() {
            row[i] = variance;
            variance *= FIRST_HZ * FIRST_HZ;
        }
    }

    fn step(&mut self, s: f64, x: &[f64]) {
        let f = self.motion.transition(s);
        self.p = sandwich(&f, &self.p, &self.motion.noise(s));
        let scale = self.p[0][0] + self.r;
        let gain: [f64; N] = std::array::from_fn(|i| self.p[i][0] / scale);
        for (state, measured) in self.states.iter_mut().zip(x) {
            let ahead = apply(&f, state);
            *state = std::array::from_fn(|i| ahead[i] + gain[i] * (measured - ahead[0]));
        }
        let first = self.p[0];
        for (row, k) in self.p.iter_mut().zip(gain) {
            row.iter_mut().zip(first).for_each(|(p, p0)| *p -= k * p0);
        }
    }
}

// [model: predictors] Kalman, constant velocity and its relatives
impl<M: Motion<N>, const N: usize> Predictor for Kalman<M, N> {
    /// A missing sample leaves the filter as it is, and the next one finds a longer gap.
    fn update(&mut self, at: Time, sample: Option<&[f64]>) {
        let Some(x) = usable(self.at, at, sample) else { return };
        match self.at {
            Some(last) if self.states.len() == x.len() => self.step(seconds(last, at), x),
            _ => self.begin(x),
        }
        self.at = Some(at);
    }

    fn predict(&self, at: Time, out: &mut [f64]) -> bool {
        let Some(last) = self.at else { return false };
        let f = self.motion.transition(seconds(last, at));
        for (y, state) in out.iter_mut().zip(&self.states) {
            *y = f[0].iter().zip(state).map(|(a, b)| a * b).sum();
        }
        true
    }
}

fn apply<const N: usize>(f: &Square<N>, x: &[f64; N]) -> [f64; N] {
    std::array::from_fn(|i| (0..N).map(|j| f[i][j] * x[j]).sum())
}

/// F P F' + Q, symmetric.
fn sandwich<const N: usize>(f: &Square<N>, p: &Square<N>, q: &Square<N>) -> Square<N> {
    let fp: Square<N> =
        std::array::from_fn(|i| std::array::from_fn(|j| (0..N).map(|k| f[i][k] * p[k][j]).sum()));
    let mut out = *q;
    for i in 0..N {
        for j in 0..=i {
            let v = q[i][j] + (0..N).map(|k| fp[i][k] * f[j][k]).sum::<f64>();
            (out[i][j], out[j][i]) = (v, v);
        }
    }
    out
}
