//! Where the time of a sample went between its making and its sink.
//!
//! ```text
//! made ─ waiting · working · … ─ hand-over ─ merging · retransmission ─ queueing · serialisation · propagation ─ held ─ playout ─ … ─ sink
//! ```
//! A sample carries one sum for each part and the moment up to which everything is attributed, so that the parts add up to
//! its true time by construction; clocks of nodes do not enter.

use crate::time::{Time, NEVER};

macro_rules! parts {
    ($($(#[doc = $doc:literal])* $item:ident = $name:literal;)*) => {
        /// What the time of a sample is spent on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Part {
            $($(#[doc = $doc])* $item,)*
        }

        impl Part {
            /// All of them, in the order of a sample's way.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$item),*];

            /// What reports call it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$item => $name,)*
                }
            }
        }
    };
}

parts! {
    /// It waited at a component: for its turn, for a core, for the tick of a stage, for a send that blocks.
    Waiting = "waiting";
    /// Stages used a core for it.
    Working = "working";
    /// Delays that stages were given.
    Delay = "delay";
    /// It went to a board and came back.
    Board = "board";
    /// Its endpoint kept it until it was sent for the first time: to merge it with others, to pace, or for room.
    Merging = "merging";
    /// It had been sent, and was sent again or repaired: what it waited for that.
    Retransmission = "retransmission";
    /// Between loop and network: the costs that `nodes` are given for sending and receiving.
    System = "system";
    /// It waited for lines.
    Queueing = "queueing";
    /// It was put on lines.
    Serialisation = "serialisation";
    /// Delays of links, and their jitter.
    Propagation = "propagation";
    /// Radio links sent it again.
    Radio = "radio";
    /// In a network that does not tell its parts.
    Unsplit = "unsplit";
    /// Its endpoint at the other side kept it: for what comes before it, or for what was lost.
    Held = "held";
    /// Playout kept it until its moment.
    Playout = "playout";
}

/// Which samples are followed: all, or where there are many, one of `2^bits` in no step with anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choice {
    bits: u32,
}

impl Choice {
    /// Samples of a run that are about to be followed: they take a tenth of a microsecond each.
    const ENOUGH: u64 = 1 << 16;

    /// That for a run of so many samples.
    pub fn of(samples: u64) -> Self {
        Self { bits: samples.div_ceil(Self::ENOUGH).next_power_of_two().ilog2().min(31) }
    }

    /// Whether this sample is followed.
    #[inline]
    pub fn takes(self, index: u32) -> bool {
        // Fibonacci hashing: every run of numbers is met evenly.
        index.wrapping_mul(0x9e37_79b1) & !(u32::MAX >> self.bits) == 0
    }
}

/// Sums of a sample, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// When it was made, in true time; `NEVER` if it stands for none that was.
    pub made: Time,
    /// Up to when everything is attributed.
    pub since: Time,
    spent: [Time; Part::ALL.len()],
}

impl Parts {
    /// Of nothing that was made.
    pub const NONE: Self = Self { made: NEVER, since: 0, spent: [0; Part::ALL.len()] };

    /// Of a sample of which nothing is known.
    #[inline]
    pub fn unknown(now: Time) -> Self {
        Self { since: now, ..Self::NONE }
    }

    /// Nothing is known of it from now on; what it was before does not matter.
    #[inline]
    pub fn forget(&mut self, now: Time) {
        (self.made, self.since) = (NEVER, now);
    }

    /// Of a sample that is made now.
    #[inline]
    pub fn new(now: Time) -> Self {
        Self { made: now, since: now, ..Self::NONE }
    }

    /// Whether nothing but the time since its making is to be told of it.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.spent == Self::NONE.spent
    }

    /// Whether it is of a sample that was made.
    #[inline]
    pub fn is_known(&self) -> bool {
        self.made != NEVER
    }

    /// Everything up to now went there.
    #[inline]
    pub fn spend(&mut self, part: Part, now: Time) {
        if now != self.since {
            self.spent[part as usize] += now - self.since;
            self.since = now;
        }
    }

    /// So much of the time from now on went there.
    #[inline]
    pub fn take(&mut self, part: Part, span: Time) {
        self.spend(part, self.since + span);
    }

    /// What went there.
    #[inline]
    pub fn of(&self, part: Part) -> Time {
        self.spent[part as usize]
    }

    /// True time from its making until everything is attributed.
    #[inline]
    pub fn total(&self) -> Time {
        self.since - self.made
    }
}

/// Sums and percentiles of a span over samples, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Spans {
    /// All of them together.
    pub sum: Time,
    /// The longest.
    pub most: Time,
    /// The one before, and its bucket.
    last: (Time, usize),
    /// How many are longer than nothing, by their bucket: 32 to each doubling.
    counts: Vec<u32>,
}

/// Buckets for each doubling, and their logarithm.
const FINE: usize = 32;
const FINE_BITS: u32 = FINE.ilog2();

impl Spans {
    /// Adds a span.
    #[inline]
    pub fn add(&mut self, span: Time) {
        if span <= 0 {
            self.sum += span;
            return;
        }
        self.sum += span;
        // Many parts are the same for all packets of a size.
        if span != self.last.0 {
            self.most = self.most.max(span);
            self.last = (span, bucket(span as u64));
            if self.last.1 >= self.counts.len() {
                self.counts.resize(self.last.1 + 1, 0);
            }
        }
        self.counts[self.last.1] += 1;
    }

    /// The span that a share of `samples` does not exceed, within 2 %.
    pub fn quantile(&self, share: f64, samples: u64) -> Time {
        let longer: u64 = self.counts.iter().map(|n| u64::from(*n)).sum();
        // Those that took nothing come first.
        let mut left =
            ((share * samples as f64).ceil() as u64).saturating_sub(samples.saturating_sub(longer));
        for (bucket, count) in self.counts.iter().enumerate() {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(u64::from(*count));
            if left == 0 {
                return middle(bucket).min(self.most);
            }
        }
        0
    }
}

#[inline]
fn bucket(span: u64) -> usize {
    let shift = (63 - span.leading_zeros()).saturating_sub(FINE_BITS);
    (shift as usize) * FINE + (span >> shift) as usize
}

fn middle(bucket: usize) -> Time {
    let shift = (bucket / FINE).saturating_sub(1);
    (((bucket - shift * FINE) as Time) << shift) + ((1 << shift) >> 1)
}

/// Where the time of a flow's samples went that came to their sink.
#[derive(Debug, Clone, Default)]
pub struct FlowSplit {
    /// How many came.
    pub samples: u64,
    /// True time from making to sink, all together.
    pub total: Time,
    /// What clocks of nodes add to it in ages that are stamped.
    pub clock: Time,
    /// By part.
    pub parts: [Spans; Part::ALL.len()],
}

impl FlowSplit {
    /// A sample has come to its sink; its age by clocks is wrong by `clock`.
    pub fn add(&mut self, parts: &Parts, clock: Time) {
        debug_assert_eq!(parts.spent.iter().sum::<Time>(), parts.total(), "parts add up");
        debug_assert!(parts.spent.iter().all(|t| *t >= 0), "no part is below nothing: {parts:?}");
        self.samples += 1;
        self.clock += clock;
        self.total += parts.total();
        for (spans, span) in self.parts.iter_mut().zip(parts.spent) {
            if span != 0 {
                spans.add(span);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Stream;

    #[test]
    fn percentiles_are_near_those_of_the_sorted_spans() {
        let mut stream = Stream::new(1, "spans");
        for most in [3, 100, 70_000, 5_000_000_000] {
            let mut all: Vec<Time> = (0..500).map(|_| stream.below(most) as Time).collect();
            let mut spans = Spans::default();
            all.iter().for_each(|s| spans.add(*s));
            all.sort_unstable();
            for share in [0.01, 0.5, 0.99, 1.0] {
                let exact = all[(f64::ceil(share * 500.0) as usize) - 1];
                let told = spans.quantile(share, 500);
                assert!((told - exact).abs() <= exact / 50, "{share} below {most}: {told} for {exact}");
            }
            assert_eq!(spans.sum, all.iter().sum::<Time>());
        }
    }

    #[test]
    fn many_samples_are_followed_evenly_and_few_all() {
        assert!((0..1000).all(|i| Choice::of(1000).takes(i)));
        let choice = Choice::of(1_000_000);
        for (first, step) in [(0, 1), (7, 40), (3, 1000), (5, 4096)] {
            let taken = (0..80_000u32).filter(|i| choice.takes(first + i * step)).count();
            assert!((4_750..5_250).contains(&taken), "{taken} of every {step}th");
        }
    }

    #[test]
    fn parts_add_up_to_the_true_time() {
        let mut parts = Parts::new(5);
        parts.spend(Part::Waiting, 7);
        parts.take(Part::Queueing, 10);
        parts.spend(Part::Propagation, 30);
        assert_eq!(Part::ALL.map(|p| parts.of(p)).iter().sum::<Time>(), parts.total());
        assert_eq!((parts.total(), parts.of(Part::Propagation)), (25, 13));
    }
}
