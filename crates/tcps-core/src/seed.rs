//! One random stream per named object, so that adding a probe or a plot changes no draw elsewhere.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A deterministic random stream. Transcendental functions come from `libm`, whose bits are the same everywhere.
#[derive(Debug, Clone)]
pub struct Stream {
    rng: Pcg64Mcg,
    spare_normal: Option<f64>,
}

impl Stream {
    /// The stream of the object `name` in a run with `seed`: FNV-1a of the name, mixed with the seed by SplitMix64.
    pub fn new(seed: u64, name: &str) -> Self {
        let mut h: u64 = 0xcbf2_9ce4_8422_2325;
        for b in name.bytes() {
            h = (h ^ b as u64).wrapping_mul(0x0100_0000_01b3);
        }
        let state = splitmix(h ^ splitmix(seed));
        let mut key = [0u8; 16];
        key[..8].copy_from_slice(&state.to_le_bytes());
        key[8..].copy_from_slice(&splitmix(state).to_le_bytes());
        Self { rng: Pcg64Mcg::from_seed(key), spare_normal: None }
    }

    /// Uniform 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Uniform in `[0, 1)` with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `[low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform integer in `0..n` (Lemire's multiply-shift; `n` must be positive).
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.bits() as u128 * n as u128) >> 64) as u64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit() < p
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Standard normal (Box-Muller, both values used).
    pub fn normal(&mut self) -> f64 {
        if let Some(z) = self.spare_normal.take() {
            return z;
        }
        let r = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        let a = 2.0 * std::f64::consts::PI * self.unit();
        self.spare_normal = Some(r * libm::sin(a));
        r * libm::cos(a)
    }
}

fn splitmix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_two_names_differ_and_repeat() {
        let draw = |seed, name| Stream::new(seed, name).bits();
        assert_eq!(draw(1, "links.l1.loss"), draw(1, "links.l1.loss"));
        assert_ne!(draw(1, "links.l1.loss"), draw(1, "links.l2.loss"));
        assert_ne!(draw(1, "links.l1.loss"), draw(2, "links.l1.loss"));
    }

    #[test]
    fn moments_are_those_of_the_named_distributions() {
        let mut s = Stream::new(3, "moments");
        let n = 200_000;
        let (mut sum, mut squares, mut expo) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let z = s.normal();
            sum += z;
            squares += z * z;
            expo += s.exponential(2.0);
        }
        let n = n as f64;
        assert!((sum / n).abs() < 0.01, "mean {}", sum / n);
        assert!((squares / n - 1.0).abs() < 0.02, "variance {}", squares / n);
        assert!((expo / n - 2.0).abs() < 0.02, "mean {}", expo / n);
    }
}
