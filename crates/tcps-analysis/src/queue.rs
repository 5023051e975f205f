//! Sampled queues, and packets on channels.

use super::names;
use super::series::Series;
use super::tally::{Distribution, Tally};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use tcps_core::{
    ids::{LinkId, NodeId},
    record::{Kind, Record},
    time::{Time, MS},
};
use tcps_plan::Plan;

/// A queue over the run.
#[derive(Debug, Serialize)]
pub struct QueueReport {
    /// Name of its link.
    pub link: String,
    /// Bytes waiting at a sample.
    pub bytes: Option<Distribution>,
    /// Packets waiting at a sample.
    pub packets: Option<Distribution>,
    /// Delay of a packet arriving then, ns.
    pub delay_ns: Option<Distribution>,
}

#[derive(Debug, Default)]
struct QueueState {
    bytes: Tally,
    packets: Tally,
    delay: Tally,
}

/// All queues.
#[derive(Debug)]
pub struct Queues {
    links: Vec<QueueState>,
}

impl Queues {
    /// So many links.
    pub fn new(links: usize) -> Self {
        Self { links: (0..links).map(|_| QueueState::default()).collect() }
    }

    /// A `Queue` row; `counts` is false in the warm-up, which is drawn only.
    pub fn take(&mut self, row: &Record, counts: bool, series: &mut Series) {
        let Some(queue) = self.links.get_mut(row.point as usize) else { return };
        let bin = series.bin(row.time_ns);
        series.look(row.point.into(), bin, |b| b.look(row.size, row.index, row.value));
        if counts {
            queue.bytes.add(row.size.into());
            queue.packets.add(row.index.into());
            queue.delay.add(row.value);
        }
    }

    /// Sampled queues.
    pub fn report(&self, plan: &Plan) -> Vec<QueueReport> {
        let report = |(i, q): (usize, &QueueState)| QueueReport {
            link: names::link(plan, LinkId(i as u16)),
            bytes: q.bytes.distribution(),
            packets: q.packets.distribution(),
            delay_ns: q.delay.distribution(),
        };
        self.links.iter().enumerate().filter(|(_, q)| q.bytes.n() > 0).map(report).collect()
    }
}

/// Packets of a channel at its nodes (level `packets`).
#[derive(Debug, Serialize)]
pub struct ChannelReport {
    /// Its name.
    pub name: String,
    /// Packets that left a node.
    pub sent_packets: u64,
    /// Their wire bytes.
    pub sent_bytes: u64,
    /// Packets that reached a node.
    pub received_packets: u64,
    /// Their wire bytes.
    pub received_bytes: u64,
    /// Most packets that left a node within any 100 ms.
    pub peak_packets: u64,
}

/// Length of the window in which packets are counted for the peak.
// [model: rate reduction]
const PEAK_NS: Time = 100 * MS;

/// Packets of one node on one channel within the last 100 ms.
#[derive(Debug, Default)]
struct Burst {
    left_ns: VecDeque<Time>,
    peak: usize,
}

impl Burst {
    fn add(&mut self, at: Time) {
        while self.left_ns.front().is_some_and(|t| at - t >= PEAK_NS) {
            self.left_ns.pop_front();
        }
        self.left_ns.push_back(at);
        self.peak = self.peak.max(self.left_ns.len());
    }
}

/// All channels: packets and bytes, out and in.
#[derive(Debug)]
pub struct Channels {
    counts: Vec<[(u64, u64); 2]>,
    /// By channel and node.
    bursts: BTreeMap<(u16, NodeId), Burst>,
}

impl Channels {
    /// So many channels.
    pub fn new(count: usize) -> Self {
        Self { counts: vec![Default::default(); count], bursts: BTreeMap::new() }
    }

    /// A `Transmit` or `Receive` row.
    pub fn take(&mut self, row: &Record) {
        if let Some(counts) = self.counts.get_mut(row.point as usize) {
            let (packets, bytes) = &mut counts[usize::from(row.kind == Kind::Receive)];
            *packets += 1;
            *bytes += u64::from(row.size);
            if row.kind == Kind::Transmit {
                self.bursts.entry((row.point, row.node)).or_default().add(row.time_ns);
            }
        }
    }

    /// Channels whose packets were recorded.
    pub fn report(&self, plan: &Plan) -> Vec<ChannelReport> {
        let of = |c: u16| self.bursts.range((c, NodeId(0))..=(c, NodeId::NONE));
        let peak = |c: usize| of(c as u16).map(|(_, b)| b.peak).max().unwrap_or(0);
        let report = |c: usize, [sent, received]: &[(u64, u64); 2], name: &String| ChannelReport {
            name: name.clone(),
            sent_packets: sent.0,
            sent_bytes: sent.1,
            received_packets: received.0,
            received_bytes: received.1,
            peak_packets: peak(c) as u64,
        };
        let named = self.counts.iter().zip(plan.channels.iter().map(|c| &c.name));
        let used = named.enumerate().filter(|(_, (counts, _))| counts.iter().any(|c| c.0 > 0));
        used.map(|(c, (counts, name))| report(c, counts, name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [model: rate reduction]
    #[test]
    fn the_peak_is_of_one_node_in_any_100_ms_wherever_they_begin() {
        let mut channels = Channels::new(1);
        let mut send = |at_ms: Time, node: NodeId, kind: Kind| {
            channels.take(&Record { point: 0, node, size: 100, ..Record::new(at_ms * MS, kind) });
        };
        for ms in (0..1000).step_by(10) {
            send(ms, NodeId(0), Kind::Transmit);
            send(ms, NodeId(1), Kind::Receive);
            // A burst over the edge of a tenth of a second, from 950 on, beside what comes every 10 ms.
            if ms >= 950 {
                (0..4).for_each(|_| send(ms, NodeId(0), Kind::Transmit));
                send(ms, NodeId(1), Kind::Transmit);
            }
        }
        (1000..1040).for_each(|ms| send(ms, NodeId(0), Kind::Transmit));
        let peaks: Vec<usize> = channels.bursts.values().map(|b| b.peak).collect();
        // From 940 to 1039: six of those every 10 ms, five times four more, and forty.
        assert_eq!(peaks, [6 + 20 + 40, 5]);
    }
}
