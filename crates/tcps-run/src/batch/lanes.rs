//! Runs side by side: their random numbers, and which of their packets are lost.

use super::spec::Loss;
use tcps_core::seed::Stream;
use tcps_net::loss::{Bursts, Each};

/// Runs in a block.
pub(super) const LANES: usize = 8;
/// A value of each run.
pub(super) type Lane = [f64; LANES];
/// All bits set where something holds for a run.
pub(super) type Mask = [u64; LANES];

/// A random generator for each run: xoshiro128++. [Blackman and Vigna 2021]
#[derive(Debug, Clone)]
pub(super) struct Random([[u32; LANES]; 4]);

impl Random {
    /// The generators of these runs, started from their streams.
    pub(super) fn new(seed: u64, runs: [u32; LANES]) -> Self {
        let mut state = [[0; LANES]; 4];
        for (lane, run) in runs.into_iter().enumerate() {
            let mut stream = Stream::new(seed, &format!("step.run.{run}"));
            for pair in state.chunks_exact_mut(2) {
                let bits = stream.bits();
                (pair[0][lane], pair[1][lane]) = (bits as u32, (bits >> 32) as u32 | 1);
            }
        }
        Self(state)
    }

    // [Blackman and Vigna 2021] xoshiro128++ 1.0
    #[inline(always)]
    fn draw(&mut self) -> [u32; LANES] {
        let [a, b, c, d] = &mut self.0;
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = a[i].wrapping_add(d[i]).rotate_left(7).wrapping_add(a[i]);
            let t = b[i] << 9;
            c[i] ^= a[i];
            d[i] ^= b[i];
            b[i] ^= c[i];
            a[i] ^= d[i];
            c[i] ^= t;
            d[i] = d[i].rotate_left(11);
        }
        out
    }

    /// Where a draw is below a threshold.
    #[inline(always)]
    fn below(&mut self, threshold: u64) -> Mask {
        let (draws, mut mask) = (self.draw(), [0; LANES]);
        for i in 0..LANES {
            mask[i] = if u64::from(draws[i]) < threshold { u64::MAX } else { 0 };
        }
        mask
    }
}

/// What a draw of 32 bits is below with probability `p`.
fn threshold(p: f64) -> u64 {
    (p * 4_294_967_296.0).round() as u64
}

/// Whether packets of one direction arrive.
pub(super) trait LossLine {
    /// Where the next packet arrives; only runs in `sent` send one.
    fn arrives(&mut self, random: &mut Random, sent: &Mask) -> Mask;
}

/// Nothing is lost.
pub(super) struct Whole;

impl LossLine for Whole {
    #[inline(always)]
    fn arrives(&mut self, _: &mut Random, sent: &Mask) -> Mask {
        *sent
    }
}

/// Every packet is lost with the same probability.
pub(super) struct Independent(u64);

impl Independent {
    pub(super) fn new(p: f64) -> Self {
        Self(threshold(p))
    }
}

impl LossLine for Independent {
    #[inline(always)]
    fn arrives(&mut self, random: &mut Random, sent: &Mask) -> Mask {
        let mut kept = random.below(self.0);
        for i in 0..LANES {
            kept[i] = !kept[i] & sent[i];
        }
        kept
    }
}

/// Two states, each with its own loss. [Gilbert 1960] [Elliott 1963]
pub(super) struct Bursty {
    bad: Mask,
    leave: [u64; 2],
    loss: [u64; 2],
}

impl Bursty {
    /// All runs begin in the good state.
    pub(super) fn new(p: f64, r: f64, loss_good: f64, loss_bad: f64) -> Self {
        let [leave, loss] = [[p, r], [loss_good, loss_bad]].map(|pair| pair.map(threshold));
        Self { bad: [0; LANES], leave, loss }
    }
}

impl LossLine for Bursty {
    #[inline(always)]
    fn arrives(&mut self, random: &mut Random, sent: &Mask) -> Mask {
        let (draws, turns, mut kept) = (random.draw(), random.draw(), [0; LANES]);
        for i in 0..LANES {
            let pick = |pair: &[u64; 2]| (pair[1] & self.bad[i]) | (pair[0] & !self.bad[i]);
            let lost = if u64::from(draws[i]) < pick(&self.loss) { u64::MAX } else { 0 };
            let turn = if u64::from(turns[i]) < pick(&self.leave) { u64::MAX } else { 0 };
            self.bad[i] ^= turn & sent[i];
            kept[i] = !lost & sent[i];
        }
        kept
    }
}

/// `a` where the mask is set, else `b`.
#[inline(always)]
pub(super) fn choose(mask: u64, a: f64, b: f64) -> f64 {
    f64::from_bits((a.to_bits() & mask) | (b.to_bits() & !mask))
}

/// The four numbers of a loss: p, r and the losses of both states; none if nothing is lost.
pub(super) fn bursts(loss: &Loss) -> (f64, f64, f64, f64) {
    match *loss {
        Loss::Each(Each { p }) => (0.0, 1.0, p, p),
        Loss::Bursts(Bursts { p, r, loss_good, loss_bad }) => (p, r, loss_good, loss_bad),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [Blackman and Vigna 2021] The first numbers from the state 1, 2, 3, 4, as the authors' program gives them.
    #[test]
    fn the_generator_is_the_published_one() {
        let mut random = Random([[1; LANES], [2; LANES], [3; LANES], [4; LANES]]);
        let found: Vec<u32> = (0..4).map(|_| random.draw()[LANES - 1]).collect();
        assert_eq!(found, [641, 1_573_767, 3_222_811_527, 3_517_856_514]);
    }

    /// [Gilbert 1960] [Elliott 1963] Loss (p L_b + r L_g) / (p + r), bursts of 1 / r packets.
    #[test]
    fn losses_are_as_many_and_as_long_as_they_should_be() {
        let (n, all) = (50_000, [u64::MAX; LANES]);
        let count = |line: &mut dyn FnMut(&mut Random) -> Mask| {
            let (mut random, mut lost, mut bursts, mut before) =
                (Random::new(1, std::array::from_fn(|i| i as u32)), 0u32, 0u32, all);
            for _ in 0..n {
                let kept = line(&mut random);
                lost += kept.iter().filter(|k| **k == 0).count() as u32;
                bursts += kept.iter().zip(&before).filter(|(k, b)| **k == 0 && **b != 0).count() as u32;
                before = kept;
            }
            (f64::from(lost) / (n * LANES as u32) as f64, f64::from(lost) / f64::from(bursts))
        };
        let mut independent = Independent::new(0.3);
        let (share, _) = count(&mut |r| independent.arrives(r, &all));
        assert!((share - 0.3).abs() < 0.004, "{share}");
        let mut bursty = Bursty::new(0.02, 0.18, 0.0, 1.0);
        let (share, length) = count(&mut |r| bursty.arrives(r, &all));
        assert!((share - 0.1).abs() < 0.004 && (length - 1.0 / 0.18).abs() < 0.2, "{share}, {length}");
    }
}
