//! Recursive least squares with forgetting: `y = theta . row`, learned one sample at a time.
//!
//! ```text
//! k = P row / (lambda + row' P row)      theta += k (y - theta . row)      P = (P - k row' P) / lambda
//! ```

/// The estimator of N parameters.
#[derive(Debug, Clone)]
pub(crate) struct Rls<const N: usize> {
    theta: [f64; N],
    p: [[f64; N]; N],
    forgetting: f64,
    seen: u32,
}

impl<const N: usize> Rls<N> {
    /// Nothing learned: P is `p0` times the identity.
    pub(crate) fn new(forgetting: f64, p0: f64) -> Self {
        let mut p = [[0.0; N]; N];
        p.iter_mut().enumerate().for_each(|(i, row)| row[i] = p0);
        Self { theta: [0.0; N], p, forgetting, seen: 0 }
    }

    /// Learns a sample.
    pub(crate) fn learn(&mut self, row: [f64; N], y: f64) {
        let gain: [f64; N] = std::array::from_fn(|i| (0..N).map(|j| self.p[i][j] * row[j]).sum());
        let scale = self.forgetting + (0..N).map(|i| row[i] * gain[i]).sum::<f64>();
        let error = y - (0..N).map(|i| self.theta[i] * row[i]).sum::<f64>();
        (0..N).for_each(|i| self.theta[i] += gain[i] / scale * error);
        for i in 0..N {
            for j in 0..=i {
                let p = (self.p[i][j] - gain[i] * gain[j] / scale) / self.forgetting;
                (self.p[i][j], self.p[j][i]) = (p, p);
            }
        }
        self.seen = self.seen.saturating_add(1);
    }

    /// The parameters, once `enough` samples have taught them and all are finite.
    pub(crate) fn theta(&self, enough: u32) -> Option<[f64; N]> {
        (self.seen >= enough && self.theta.iter().all(|v| v.is_finite())).then_some(self.theta)
    }
}
