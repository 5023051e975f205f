//! Curves over time in a fixed number of bins: when they run out, their width doubles and neighbours merge.
//!
//! Any duration fits without its length being known at the start, and the memory stays the same.

use serde::Serialize;
use tcps_core::time::Time;

/// The bins' common axis.
#[derive(Debug)]
pub struct Timeline {
    width_ns: Time,
    limit: usize,
    current: usize,
    start_ns: Time,
    end_ns: Time,
}

impl Timeline {
    /// At most `limit` bins over `span_ns`, with a round width (1, 2 or 5 times a power of ten).
    pub fn new(span_ns: Time, limit: usize) -> Self {
        let limit = limit.max(2);
        let width_ns = round_up(span_ns.max(1) / limit as Time + i64::from(span_ns % limit as Time != 0));
        Self { width_ns, limit, current: 0, start_ns: 0, end_ns: width_ns }
    }

    /// Width of a bin.
    pub fn width_ns(&self) -> Time {
        self.width_ns
    }

    fn bin_of(&self, time_ns: Time) -> usize {
        ((time_ns.max(0) / self.width_ns) as usize).min(self.limit - 1)
    }

    fn go_to(&mut self, time_ns: Time) {
        self.current = self.bin_of(time_ns);
        self.start_ns = self.width_ns * self.current as Time;
        self.end_ns = self.start_ns.saturating_add(self.width_ns);
    }

    fn holds(&self, time_ns: Time) -> bool {
        time_ns.max(0) / self.width_ns < self.limit as Time
    }

    /// Cuts a span at the edges of bins: bin, from, to.
    #[inline]
    pub fn split(&self, from_ns: Time, to_ns: Time, mut each: impl FnMut(usize, Time, Time)) {
        if from_ns >= self.start_ns && to_ns < self.end_ns {
            return each(self.current, from_ns, to_ns);
        }
        let (mut from_ns, to_ns) = (from_ns.max(0), to_ns.max(0));
        while from_ns < to_ns {
            let bin = self.bin_of(from_ns);
            let last = bin + 1 >= self.limit;
            let edge_ns = if last { to_ns } else { self.width_ns.saturating_mul(bin as Time + 1) };
            each(bin, from_ns, edge_ns.min(to_ns));
            from_ns = edge_ns;
        }
    }
}

/// The next of 1, 2, 5, 10, 20, 50 ...
fn round_up(span_ns: Time) -> Time {
    let mut power = 1i64;
    loop {
        for step in [1, 2, 5] {
            match power.checked_mul(step) {
                Some(width) if width >= span_ns => return width,
                Some(_) => {}
                None => return span_ns,
            }
        }
        power = power.saturating_mul(10);
    }
}

/// What happened to a flow in a bin.
#[derive(Debug, Clone, Copy, Default)]
pub struct FlowBin {
    /// Samples delivered in it.
    pub delivered: u64,
    /// Sum of their delays.
    pub delay_sum: i128,
    /// Smallest of their delays.
    pub delay_min: i64,
    /// Largest of them.
    pub delay_max: i64,
    /// Their payload.
    pub bytes: u64,
    /// Samples sent in it that were lost.
    pub lost: u64,
    /// Integral of the age of data.
    pub age_area: f64,
    /// Time that integral covers.
    pub age_ns: f64,
    /// Integral of the fragments that packets hold.
    pub merging_area: f64,
    /// Time that integral covers.
    pub merging_ns: f64,
}

impl FlowBin {
    fn merge(&mut self, other: Self) {
        (self.delay_min, self.delay_max) = match (self.delivered, other.delivered) {
            (0, _) => (other.delay_min, other.delay_max),
            (_, 0) => (self.delay_min, self.delay_max),
            _ => (self.delay_min.min(other.delay_min), self.delay_max.max(other.delay_max)),
        };
        self.delivered += other.delivered;
        self.delay_sum += other.delay_sum;
        self.bytes += other.bytes;
        self.lost += other.lost;
        self.age_area += other.age_area;
        self.age_ns += other.age_ns;
        self.merging_area += other.merging_area;
        self.merging_ns += other.merging_ns;
    }

    /// A sample arrived.
    #[inline]
    pub fn deliver(&mut self, delay_ns: i64, bytes: u32) {
        if self.delivered == 0 {
            (self.delay_min, self.delay_max) = (delay_ns, delay_ns);
        }
        (self.delay_min, self.delay_max) = (self.delay_min.min(delay_ns), self.delay_max.max(delay_ns));
        self.delivered += 1;
        self.delay_sum += i128::from(delay_ns);
        self.bytes += u64::from(bytes);
    }
}

/// What was seen of a queue in a bin.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueBin {
    looks: u64,
    bytes: u64,
    packets: u64,
    delay_ns: i128,
    bytes_max: u32,
}

impl QueueBin {
    fn merge(&mut self, other: Self) {
        self.looks += other.looks;
        self.bytes += other.bytes;
        self.packets += other.packets;
        self.delay_ns += other.delay_ns;
        self.bytes_max = self.bytes_max.max(other.bytes_max);
    }

    /// The queue was sampled.
    pub fn look(&mut self, bytes: u32, packets: u32, delay_ns: i64) {
        self.merge(Self {
            looks: 1,
            bytes: bytes.into(),
            packets: packets.into(),
            delay_ns: delay_ns.into(),
            bytes_max: bytes,
        });
    }
}

/// All bins.
#[derive(Debug)]
pub struct Series {
    /// Their axis.
    pub line: Timeline,
    /// By flow, then bin.
    pub flows: Vec<Vec<FlowBin>>,
    /// By link, then bin; none of a link without samples.
    queues: Vec<Vec<QueueBin>>,
    used: usize,
}

impl Series {
    /// Bins for so many flows and links.
    pub fn new(span_ns: Time, limit: usize, flows: usize, links: usize) -> Self {
        let line = Timeline::new(span_ns, limit);
        let limit = line.limit;
        Self {
            line,
            flows: vec![vec![FlowBin::default(); limit]; flows],
            queues: vec![Vec::new(); links],
            used: 0,
        }
    }

    /// The bin of a moment, after making it fit.
    #[inline]
    pub fn bin(&mut self, time_ns: Time) -> usize {
        if time_ns < self.line.start_ns || time_ns >= self.line.end_ns {
            self.move_to(time_ns);
        }
        self.line.current
    }

    fn move_to(&mut self, time_ns: Time) {
        while !self.line.holds(time_ns) {
            self.double();
        }
        self.line.go_to(time_ns);
        self.used = self.used.max(self.line.current + 1);
    }

    fn double(&mut self) {
        self.line.width_ns = self.line.width_ns.saturating_mul(2);
        self.used = self.used.div_ceil(2);
        self.flows.iter_mut().for_each(|bins| halve(bins, FlowBin::merge));
        self.queues.iter_mut().for_each(|bins| halve(bins, QueueBin::merge));
    }

    /// The queue of a link was sampled, in a bin.
    pub fn look(&mut self, link: usize, bin: usize, look: impl Fn(&mut QueueBin)) {
        let Some(bins) = self.queues.get_mut(link) else { return };
        if bins.is_empty() {
            bins.resize(self.line.limit, QueueBin::default());
        }
        look(&mut bins[bin]);
    }

    /// Packets of a flow held so many fragments from one moment to another.
    pub fn merged(&mut self, flow: usize, from_ns: Time, to_ns: Time, fragments: i64) {
        if to_ns <= from_ns {
            return;
        }
        self.bin(to_ns);
        let Some(bins) = self.flows.get_mut(flow) else { return };
        self.line.split(from_ns, to_ns, |bin, from_ns, to_ns| {
            let span_ns = (to_ns - from_ns) as f64;
            bins[bin].merging_area += fragments as f64 * span_ns;
            bins[bin].merging_ns += span_ns;
        });
    }

    /// Bin in which a sample sent then would be; nothing moves.
    pub fn bin_of(&self, time_ns: Time) -> usize {
        self.line.bin_of(time_ns)
    }

    /// The curves by name.
    pub fn curves<'a>(
        &self,
        flows: impl Iterator<Item = &'a str>,
        links: impl Iterator<Item = &'a str>,
    ) -> Curves {
        let used = self.used.max(1);
        let width_ns = self.line.width_ns;
        let start_s = |i: usize| (width_ns as f64 * i as f64) / 1e9;
        Curves {
            bin_s: width_ns as f64 / 1e9,
            t_s: (0..used).map(start_s).collect(),
            flows: flows
                .zip(&self.flows)
                .map(|(name, b)| FlowCurve::of(name, &b[..used], width_ns))
                .collect(),
            queues: links
                .zip(&self.queues)
                .filter(|(_, bins)| bins.iter().any(|b| b.looks > 0))
                .map(|(name, b)| QueueCurve::of(name, &b[..used]))
                .collect(),
        }
    }
}

fn halve<T: Copy + Default>(bins: &mut [T], merge: impl Fn(&mut T, T)) {
    for i in 0..bins.len() {
        let mut cell = bins.get(2 * i).copied().unwrap_or_default();
        merge(&mut cell, bins.get(2 * i + 1).copied().unwrap_or_default());
        bins[i] = cell;
    }
}

/// Curves over time, ready to draw; a bin without a value is null.
#[derive(Debug, Serialize)]
pub struct Curves {
    /// Width of a bin in seconds.
    pub bin_s: f64,
    /// Start of each bin in seconds.
    pub t_s: Vec<f64>,
    /// Flows in the plan's order.
    pub flows: Vec<FlowCurve>,
    /// Links whose queue was sampled.
    pub queues: Vec<QueueCurve>,
}

/// Curves of a flow.
#[derive(Debug, Serialize)]
pub struct FlowCurve {
    /// Its name.
    pub name: String,
    /// Mean delay of the samples delivered in a bin.
    pub delay_mean_ns: Vec<Option<f64>>,
    /// Smallest delay of the samples delivered in a bin.
    pub delay_min_ns: Vec<Option<i64>>,
    /// Largest of them.
    pub delay_max_ns: Vec<Option<i64>>,
    /// Delivered payload rate.
    pub rate_bps: Vec<f64>,
    /// Samples sent in a bin that were lost.
    pub lost: Vec<u64>,
    /// Mean age of data over a bin.
    pub age_ns: Vec<Option<f64>>,
    /// Mean fragments of a packet over a bin.
    pub fragments: Vec<Option<f64>>,
}

impl FlowCurve {
    fn of(name: &str, bins: &[FlowBin], width_ns: Time) -> Self {
        let per = |f: &dyn Fn(&FlowBin) -> Option<f64>| bins.iter().map(f).collect();
        Self {
            name: name.into(),
            delay_mean_ns: per(&|b| {
                (b.delivered > 0).then(|| super::tally::mean_of(b.delay_sum, b.delivered))
            }),
            delay_min_ns: bins.iter().map(|b| (b.delivered > 0).then_some(b.delay_min)).collect(),
            delay_max_ns: bins.iter().map(|b| (b.delivered > 0).then_some(b.delay_max)).collect(),
            rate_bps: bins.iter().map(|b| b.bytes as f64 * 8e9 / width_ns as f64).collect(),
            lost: bins.iter().map(|b| b.lost).collect(),
            age_ns: per(&|b| (b.age_ns > 0.0).then(|| b.age_area / b.age_ns)),
            fragments: per(&|b| (b.merging_ns > 0.0).then(|| b.merging_area / b.merging_ns)),
        }
    }
}

/// Curves of a queue.
#[derive(Debug, Serialize)]
pub struct QueueCurve {
    /// Name of its link.
    pub name: String,
    /// Mean bytes waiting.
    pub bytes: Vec<Option<f64>>,
    /// Most bytes waiting.
    pub bytes_max: Vec<Option<u32>>,
    /// Mean packets waiting.
    pub packets: Vec<Option<f64>>,
    /// Mean delay of a packet arriving then.
    pub delay_ns: Vec<Option<f64>>,
}

impl QueueCurve {
    fn of(name: &str, bins: &[QueueBin]) -> Self {
        let mean = |sum: &dyn Fn(&QueueBin) -> f64| {
            bins.iter().map(|b| (b.looks > 0).then(|| sum(b) / b.looks as f64)).collect()
        };
        Self {
            name: name.into(),
            bytes: mean(&|b| b.bytes as f64),
            bytes_max: bins.iter().map(|b| (b.looks > 0).then_some(b.bytes_max)).collect(),
            packets: mean(&|b| b.packets as f64),
            delay_ns: mean(&|b| b.delay_ns as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_round_and_the_span_fits() {
        for (span, width) in [(500_000_000_000, 2_000_000_000), (400, 1), (401, 2), (0, 1), (1_000_000, 5000)]
        {
            let line = Timeline::new(span, 400);
            assert_eq!(line.width_ns(), width, "{span}");
            assert!(width * 400 >= span);
        }
    }

    #[test]
    fn doubling_keeps_every_delivery_and_never_needs_another_bin() {
        let mut series = Series::new(4, 4, 1, 0);
        for t in 0..1000 {
            let bin = series.bin(t);
            series.flows[0][bin].deliver(t, 1);
            series.flows[0][bin].lost += 1;
            series.flows[0][bin].age_area += 7.0 * 2.0;
            series.flows[0][bin].age_ns += 2.0;
        }
        let curves = series.curves(["f"].into_iter(), [].into_iter());
        assert_eq!((curves.bin_s, curves.t_s.len()), (256e-9, 4));
        assert_eq!(series.flows[0].iter().map(|b| b.delivered).sum::<u64>(), 1000);
        assert_eq!(curves.flows[0].delay_mean_ns[1], Some(256.0 + 127.5));
        assert_eq!(curves.flows[0].delay_min_ns, [Some(0), Some(256), Some(512), Some(768)]);
        assert_eq!(curves.flows[0].delay_max_ns, [Some(255), Some(511), Some(767), Some(999)]);
        assert_eq!(curves.flows[0].lost, [256, 256, 256, 232]);
        assert_eq!(curves.flows[0].age_ns, [Some(7.0); 4]);
    }

    #[test]
    fn a_moment_at_the_end_of_time_fits() {
        let mut series = Series::new(1000, 400, 1, 1);
        assert!(series.bin(i64::MAX) < 400);
        assert_eq!(series.bin(i64::MIN), 0);
    }

    #[test]
    fn a_span_is_cut_at_the_edges_of_bins() {
        let line = Timeline::new(40, 4);
        let mut parts = Vec::new();
        line.split(5, 27, |bin, from, to| parts.push((bin, from, to)));
        assert_eq!(parts, [(0, 5, 10), (1, 10, 20), (2, 20, 27)]);
    }

    #[test]
    fn queues_show_means_and_bins_without_a_look_are_empty() {
        let mut series = Series::new(30, 3, 0, 1);
        for (t, bytes) in [(0, 100), (5, 300), (25, 7)] {
            let bin = series.bin(t);
            series.look(0, bin, |b| b.look(bytes, 2, 50));
        }
        let q = &series.curves([].into_iter(), ["l1"].into_iter()).queues[0];
        assert_eq!(q.bytes, [Some(200.0), None, Some(7.0)]);
        assert_eq!(q.bytes_max, [Some(300), None, Some(7)]);
    }

    #[test]
    fn bins_without_a_delivery_have_bytes_and_no_delay() {
        let mut series = Series::new(30, 3, 1, 0);
        for (t, delay_ns, bytes) in [(0, 3, 24), (5, -5, 24), (25, 7, 10)] {
            let bin = series.bin(t);
            series.flows[0][bin].deliver(delay_ns, bytes);
        }
        let f = &series.curves(["f"].into_iter(), [].into_iter()).flows[0];
        assert_eq!(f.delay_mean_ns, [Some(-1.0), None, Some(7.0)]);
        assert_eq!(f.delay_min_ns, [Some(-5), None, Some(7)]);
        assert_eq!(f.delay_max_ns, [Some(3), None, Some(7)]);
        assert_eq!(f.rate_bps, [48.0 * 8e8, 0.0, 10.0 * 8e8]);
        assert_eq!((&f.age_ns[..], &f.fragments[..]), (&[None; 3][..], &[None; 3][..]));
    }

    #[test]
    fn a_span_to_the_end_of_time_is_cut_at_the_edges_of_bins_too() {
        let mut series = Series::new(1000, 20, 1, 0);
        series.merged(0, 0, Time::MAX, 1);
        let covered: f64 = series.flows[0].iter().map(|b| b.merging_ns).sum();
        assert!((covered / Time::MAX as f64 - 1.0).abs() < 1e-9, "{covered}");
    }
}
