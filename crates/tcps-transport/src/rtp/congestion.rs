//! What a sender makes of feedback on each packet (RFC 8888): rows, counts, and the rate that its flows may have.
//!
//! ```text
//! packet leaves ─► ledger, meter of its flow ─┐
//! feedback ──────► news of each packet ───────┴─► queue = delay - least of 60 s ─► row `told`
//!                                              └► RateController ─► allowed ─► a flow: 0.9 (allowed - what the others take)
//! ```
//! The rate is of all flows of this side of the channel together, with all headers. When packets leave and for four periods
//! of feedback and a round trip nothing is told, it is halved, and again after as long a silence.

use super::ledger::{Ledger, Left, PacketFeedback};
use crate::{congestion::WindowedMin, meter::Meter};
use tcps_core::{
    endpoint::FeedbackStats,
    ids::FlowId,
    rate::{Feedback, RateController, Sent},
    record::{Kind, Record},
    time::{Time, SECOND},
};
use tcps_wire::rtcp::ccfb::Ccfb;

const BASE_NS: Time = 60 * SECOND;
/// Periods of feedback without any that are silence.
const SILENT_PERIODS: Time = 4;
/// Round trip before one is known, as for a first retransmission of TCP.
// [RFC 6298 §2]
const FIRST_ROUND_TRIP_NS: Time = SECOND;
/// Share of what is left for a flow that it may take: frames differ in size.
const SHARE: f64 = 0.9;

/// What keeps a rate within what the network carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    /// Least and most that are allowed, in bit/s.
    pub(crate) range_bps: [f64; 2],
    /// How often the peer tells of packets.
    pub(crate) feedback_ns: Time,
}

/// The sender's view of its packets.
#[derive(Debug)]
pub(crate) struct Congestion {
    ledger: Ledger,
    meters: Vec<(FlowId, Meter)>,
    rate: Option<(Box<dyn RateController>, Limits)>,
    least: WindowedMin,
    told: FeedbackStats,
    round_trip_ns: Time,
    /// When the first packet left since there was news of any, or since the rate was halved for want of it.
    waiting_ns: Option<Time>,
    /// Queues that were told, in nanoseconds, and their number.
    queues: (f64, u64),
}

impl Congestion {
    /// For the sources of these flows; with a controller a rate is derived.
    pub(crate) fn new(flows: &[(FlowId, u32)], mut rate: Option<(Box<dyn RateController>, Limits)>) -> Self {
        rate.iter_mut().for_each(|(rate, limits)| rate.keep_within(limits.range_bps));
        Self {
            ledger: Ledger::new(flows.iter().map(|f| f.1)),
            meters: flows.iter().map(|f| (f.0, Meter::default())).collect(),
            rate,
            least: WindowedMin::new(BASE_NS, 0.0, 1.0),
            told: FeedbackStats::default(),
            round_trip_ns: FIRST_ROUND_TRIP_NS,
            waiting_ns: None,
            queues: (0.0, 0),
        }
    }

    /// A packet leaves.
    pub(crate) fn sent(&mut self, ssrc: u32, sequence: u16, left: Left) {
        let is_told_of = self.ledger.add(ssrc, sequence, left);
        if let Some((_, meter)) = self.meters.iter_mut().find(|m| m.0 == left.flow) {
            meter.add(left.sent_ns, left.wire_bytes as usize);
        }
        if let Some((rate, _)) = &mut self.rate {
            let Left { sent_ns: generated_ns, wire_bytes, .. } = left;
            rate.sent(
                generated_ns,
                &Sent { generated_ns, fragments: 1, payload_bytes: wire_bytes, wire_bytes },
            );
            self.waiting_ns = self.waiting_ns.or(is_told_of.then_some(left.sent_ns));
        }
    }

    /// Feedback came: `row` hears of every packet of which there is news, and of a rate that has changed. False: it is
    /// refused.
    // [RFC 8888 §3.1] [RFC 8888] [draft-ietf-rmcat-gcc-02]
    pub(crate) fn heard(&mut self, now: Time, ccfb: &Ccfb, mut row: impl FnMut(Record)) -> bool {
        let before = self.allowed_bps();
        let Some(told) = self.ledger.told(now, ccfb) else { return false };
        for news in told {
            row(self.account(now, &news));
            self.waiting_ns = None;
            let tells = !news.corrects && (!news.came || news.arrival.arrived_ns.is_some());
            if let Some((rate, _)) = self.rate.as_mut().filter(|_| tells) {
                rate.feedback(now, &Feedback::Arrival(news.arrival));
            }
        }
        self.changed(now, before, &mut row);
        true
    }

    /// When silence has lasted so long that the rate is halved.
    // [RFC 8888 §5]
    pub(crate) fn next(&self) -> Option<Time> {
        let (_, limits) = self.rate.as_ref()?;
        Some(self.waiting_ns? + self.round_trip_ns + SILENT_PERIODS * limits.feedback_ns)
    }

    /// Halves the rate if it is time.
    // [RFC 8888 §5]
    pub(crate) fn timeout(&mut self, now: Time, mut row: impl FnMut(Record)) {
        if self.next().is_none_or(|t| now < t) {
            return;
        }
        let before = self.allowed_bps();
        self.waiting_ns = None;
        self.rate.iter_mut().for_each(|(rate, _)| rate.feedback(now, &Feedback::Silence));
        self.changed(now, before, &mut row);
    }

    /// A row of a rate that is another one than before.
    fn changed(&self, now: Time, before: Option<f64>, row: &mut impl FnMut(Record)) {
        let flow = self.meters.first().map_or(FlowId(0), |m| m.0);
        if let Some(bps) = self.allowed_bps().filter(|bps| Some(*bps) != before) {
            row(Record { flow, value: bps as i64, ..Record::new(now, Kind::Allowed) });
        }
    }

    /// Counts a packet, and gives its row.
    fn account(&mut self, now: Time, news: &PacketFeedback) -> Record {
        let Left { flow, index, wire_bytes, sent_ns } = news.left;
        if news.corrects {
            self.told.lost -= 1;
        } else {
            self.told.packets += 1;
            self.told.lost += u64::from(!news.came);
        }
        if news.arrival.arrived_ns.is_some() {
            self.round_trip_ns = news.arrival.round_trip_ns;
        }
        let queue_ns = news.arrival.arrived_ns.map(|arrived_ns| {
            let delay_ns = arrived_ns.saturating_sub(sent_ns) as f64;
            delay_ns - self.least.add(now, delay_ns)
        });
        if let Some(queue_ns) = queue_ns {
            self.queues = (self.queues.0 + queue_ns, self.queues.1 + 1);
        }
        let value = queue_ns.map_or(-1, |q| q as i64);
        let detail = u8::from(news.came);
        Record { flow, index, size: wire_bytes, value, detail, ..Record::new(now, Kind::Told) }
    }

    /// The rate that all flows may have together, if one is derived.
    fn allowed_bps(&self) -> Option<f64> {
        let (rate, limits) = self.rate.as_ref()?;
        let [least_bps, most_bps] = limits.range_bps;
        rate.rate_bps().map(|bps| bps.clamp(least_bps, most_bps))
    }

    /// What went wrong in the code of the controller, if anything did.
    pub(crate) fn failure(&self) -> Option<String> {
        self.rate.as_ref()?.0.failure()
    }

    /// What a flow of this side may have of it.
    pub(crate) fn allowance_bps(&self, now: Time, flow: FlowId) -> Option<f64> {
        self.meters.iter().find(|m| m.0 == flow)?;
        let others_bps: f64 = self.meters.iter().filter(|m| m.0 != flow).map(|m| m.1.mean_bps(now)).sum();
        Some(SHARE * (self.allowed_bps()? - others_bps).max(0.0))
    }

    /// What has been told so far.
    pub(crate) fn told(&self) -> FeedbackStats {
        let (sum_ns, packets) = self.queues;
        let queue_ns = (packets > 0).then(|| (sum_ns / packets as f64) as Time);
        FeedbackStats { queue_ns, allowed_bps: self.allowed_bps().map(|bps| bps as u64), ..self.told }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{congestion, params::Params};
    use serde_json::{json, Value};
    use std::collections::VecDeque;
    use tcps_core::time::MS;
    use tcps_wire::rtcp::ccfb::{Arrival, Stream};

    const PACKET_BYTES: u32 = 500;

    fn gcc(params: Value) -> Box<dyn RateController> {
        let (_, pacing) = congestion::pacing().find(|(entry, _)| entry.name == "gcc").unwrap();
        (pacing.make)(&Params::new("rtp", &params)).unwrap()
    }

    /// A sender of flow 3 that keeps to its allowance, a bottleneck, and feedback every 20 ms, 15 ms later.
    struct Line {
        c: Congestion,
        rows: Vec<Record>,
        now: Time,
        purse_bits: f64,
        queue_ns: f64,
        sequence: u16,
        /// Arrivals that are not told of: when, and the number.
        came: VecDeque<(Time, u16)>,
        told: VecDeque<(Time, Ccfb)>,
    }

    impl Line {
        fn new() -> Self {
            let limits = Limits { range_bps: [1e5, 4e6], feedback_ns: 20 * MS };
            let c = Congestion::new(
                &[(FlowId(3), 7), (FlowId(4), 8)],
                Some((gcc(json!({"target_ns": 20 * MS})), limits)),
            );
            let (rows, came, told) = (vec![], VecDeque::new(), VecDeque::new());
            Self { c, rows, now: 0, purse_bits: 0.0, queue_ns: 0.0, sequence: 0, came, told }
        }

        /// Mean of the allowance over so many milliseconds with a bottleneck of `bps`.
        fn run(&mut self, ms: Time, bps: f64) -> f64 {
            let mut sum_bps = 0.0;
            for _ in 0..ms {
                self.now += MS;
                self.queue_ns = (self.queue_ns - MS as f64).max(0.0);
                let allowed_bps = self.c.allowance_bps(self.now, FlowId(3)).unwrap_or(4e6);
                sum_bps += allowed_bps;
                self.purse_bits += allowed_bps / 1000.0;
                while self.purse_bits >= f64::from(8 * PACKET_BYTES) {
                    self.purse_bits -= f64::from(8 * PACKET_BYTES);
                    self.send(bps);
                }
                self.feed_back();
            }
            sum_bps / ms as f64
        }

        fn send(&mut self, bps: f64) {
            let left = Left {
                flow: FlowId(3),
                index: self.sequence.into(),
                wire_bytes: PACKET_BYTES,
                sent_ns: self.now,
            };
            self.c.sent(7, self.sequence, left);
            let own_ns = f64::from(8 * PACKET_BYTES) * 1e9 / bps;
            if self.queue_ns < 80e6 {
                self.queue_ns += own_ns;
                self.came.push_back((self.now + 15 * MS + self.queue_ns as Time, self.sequence));
            }
            self.sequence = self.sequence.wrapping_add(1);
        }

        fn feed_back(&mut self) {
            if self.now % (20 * MS) == 0 {
                let here = self.came.iter().take_while(|(at, _)| *at <= self.now).count();
                let arrived: Vec<_> = self.came.drain(..here).collect();
                let offset = |at: Time| ((self.now - at) * 1024 / SECOND) as u16;
                if let (Some((_, first)), Some((_, last))) = (arrived.first(), arrived.last()) {
                    let mut arrivals = vec![None; usize::from(last.wrapping_sub(*first)) + 1];
                    for (at, number) in &arrived {
                        let place = usize::from(number.wrapping_sub(*first));
                        arrivals[place] = Some(Arrival { ecn: 0, offset: offset(*at) });
                    }
                    let streams = vec![Stream { ssrc: 7, begin: *first, arrivals }];
                    let timestamp = (self.now * 65_536 / SECOND) as u32;
                    self.told.push_back((self.now + 15 * MS, Ccfb { sender: 9, streams, timestamp }));
                }
            }
            while self.told.front().is_some_and(|(at, _)| *at <= self.now) {
                let Some((_, ccfb)) = self.told.pop_front() else { break };
                self.c.heard(self.now, &ccfb, |row| self.rows.push(row));
            }
        }
    }

    // [RFC 8888 §3.1] [RFC 8888] [draft-ietf-rmcat-gcc-02]
    #[test]
    fn a_sender_finds_the_rate_of_a_bottleneck_and_follows_it() {
        let mut line = Line::new();
        line.run(40_000, 1e6);
        let before = line.rows.len();
        let mean_bps = line.run(20_000, 1e6);
        assert!(
            (0.6e6..1.0e6).contains(&mean_bps),
            "{mean_bps}: 8 % a second brought it back from the first overshoot"
        );
        let queued = line.rows[before..].iter().filter(|r| r.kind == Kind::Told && r.value > 40 * MS).count();
        assert!(queued < (line.rows.len() - before) / 20, "{queued}: the target is 20 ms");
        line.run(20_000, 3e6);
        let more_bps = line.run(20_000, 3e6);
        assert!(more_bps > 1.5 * mean_bps, "{more_bps} after {mean_bps}");
        assert!(line.rows.iter().any(|r| r.kind == Kind::Allowed));
    }

    // [RFC 8888 §5] [RFC 6298 §2]
    #[test]
    fn silence_halves_the_rate_only_while_packets_leave() {
        let limits = Limits { range_bps: [1e5, 4e6], feedback_ns: 50 * MS };
        let mut c = Congestion::new(&[(FlowId(3), 7)], Some((gcc(json!({})), limits)));
        let packet = |sent_ns| Left { flow: FlowId(3), index: 0, wire_bytes: 100, sent_ns };
        let mut rows = Vec::new();
        c.sent(9, 0, packet(0));
        assert_eq!(c.next(), None, "nobody tells of other sources, such as answers");
        c.sent(7, 0, packet(0));
        assert_eq!((c.next(), c.allowed_bps()), (Some(1200 * MS), Some(4e6)), "the round trip is not known");
        c.timeout(1199 * MS, |row| rows.push(row.value));
        c.timeout(1200 * MS, |row| rows.push(row.value));
        assert_eq!((c.next(), c.allowed_bps()), (None, Some(2e6)), "nothing has left since");
        c.sent(7, 1, packet(9 * SECOND));
        let arrivals = vec![Some(Arrival { ecn: 0, offset: 0 })];
        let ccfb =
            Ccfb { sender: 9, streams: vec![Stream { ssrc: 7, begin: 1, arrivals }], timestamp: 65_536 };
        assert!(c.heard(9 * SECOND + 40 * MS, &ccfb, |row| rows.push(row.value)));
        assert_eq!(c.next(), None);
        for at in (10..20).map(|s| s * SECOND) {
            c.sent(7, 2, packet(at));
            assert_eq!(c.next(), Some(at + 240 * MS), "four periods and a round trip");
            c.timeout(at + 240 * MS, |row| rows.push(row.value));
        }
        assert_eq!(c.allowed_bps(), Some(1e5), "the least");
        assert!(rows.contains(&2_000_000) && rows.contains(&100_000), "{rows:?}");
    }

    // [RFC 8888 §3.1]
    #[test]
    fn every_packet_has_a_row_and_counts() {
        let mut c = Congestion::new(&[(FlowId(3), 7)], None);
        for sequence in 0..4u16 {
            let left = Left { flow: FlowId(3), index: 10 + u32::from(sequence), wire_bytes: 100, sent_ns: 0 };
            c.sent(7, sequence, left);
        }
        let mut rows = Vec::new();
        for (timestamp, begin, arrivals) in [
            (
                65_536,
                0,
                vec![Some(Arrival { ecn: 0, offset: 102 }), None, Some(Arrival { ecn: 0, offset: 92 })],
            ),
            (2 * 65_536, 3, vec![Some(Arrival { ecn: 0, offset: 0x1fff })]),
        ] {
            let streams = vec![Stream { ssrc: 7, begin, arrivals }];
            c.heard(SECOND, &Ccfb { sender: 9, streams, timestamp }, |row| rows.push(row));
        }
        let told: Vec<_> = rows.iter().map(|r| (r.kind, r.index, r.detail, r.value / MS)).collect();
        let told_kinds =
            [(10, 1, 0), (12, 1, 9), (11, 0, 0), (13, 1, 0)].map(|(i, d, v)| (Kind::Told, i, d, v));
        assert_eq!(told, told_kinds);
        assert_eq!(rows[3].value, -1, "it came at a time that nobody knows");
        let FeedbackStats { packets, lost, queue_ns, allowed_bps } = c.told();
        assert_eq!((packets, lost, allowed_bps), (4, 1, None));
        assert!(queue_ns.is_some_and(|q| (4 * MS..6 * MS).contains(&q)), "{queue_ns:?}");
        assert_eq!(c.allowance_bps(SECOND, FlowId(3)), None, "no rate is derived");
    }

    #[test]
    fn a_flow_may_take_nine_tenths_of_what_the_other_flows_of_its_side_leave() {
        let beside = |bytes: u32| {
            let limits = Limits { range_bps: [1e5, 4e6], feedback_ns: 50 * MS };
            let mut c = Congestion::new(&[(FlowId(3), 7), (FlowId(4), 8)], Some((gcc(json!({})), limits)));
            for ms in 0..2000u16 {
                let sent_ns = Time::from(ms) * MS;
                c.sent(8, ms, Left { flow: FlowId(4), index: ms.into(), wire_bytes: bytes, sent_ns });
            }
            let kbps = |flow| c.allowance_bps(2 * SECOND, FlowId(flow)).map(|bps| (bps / 1e4).round() * 10.0);
            [3, 4, 5].map(kbps)
        };
        assert_eq!(beside(125), [Some(2700.0), Some(3600.0), None], "1 of 4 Mbit/s are taken");
        assert_eq!(beside(625)[0], Some(0.0), "an encoder cannot send less than nothing");
    }
}
