//! Feedback on each packet (RFC 8888): what the receiver notes of arrivals, and what the sender makes of it.
//!
//! ```text
//! packet ─► arrivals: number, time ─► every 20 ms: which came, how long ago ─► ledger ─► Arrival ─► RateController
//! ```
//! A packet has no sequence number; its samples have numbers, and the low 16 bits of them stand for it: each sample of a packet
//! has an entry, all alike. A report tells of what came since the last but one, so that one report may be lost; what is missing
//! in two reports, or has left their span, counts as lost.

use crate::rtp::clock::{from_short, middle, ntp, short};
use std::collections::VecDeque;
use tcps_core::{
    rate,
    time::{Time, SECOND},
};
use tcps_wire::{
    rtcp::{
        ccfb::{self, Ccfb, Stream},
        feedback::TRANSPORT,
        Packets,
    },
    Error,
};

/// First byte of feedback: version 2, format 11.
pub(super) const FIRST_BYTE: u8 = 0x80 | ccfb::FORMAT;
/// Most samples that a report tells of.
const MOST_TOLD: u32 = 512;
/// Packets that a sender remembers.
const REMEMBERED: usize = 1024;

/// Bytes of a report with one stream.
pub(super) fn bytes(ccfb: &Ccfb) -> usize {
    let entries: usize = ccfb.streams.iter().map(|s| 8 + (2 * s.arrivals.len()).next_multiple_of(4)).sum();
    12 + entries
}

/// What has arrived of late.
#[derive(Debug)]
pub(super) struct Arrivals {
    every_ns: Time,
    due_ns: Option<Time>,
    had: VecDeque<(u32, u8, Time)>,
    /// Number behind the newest sample that came, now, at the last report and at the one before.
    ends: Option<[u32; 3]>,
}

impl Arrivals {
    pub(super) fn new(every_ns: Time) -> Self {
        Self { every_ns, due_ns: None, had: VecDeque::new(), ends: None }
    }

    /// The first thing happens at this endpoint: reports count from here.
    pub(super) fn begin(&mut self, now: Time) {
        self.due_ns.get_or_insert(now.saturating_add(self.every_ns));
    }

    /// When the next report is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.due_ns
    }

    /// A packet with `fragments` samples from `index` on has arrived.
    pub(super) fn arrived(&mut self, index: u32, fragments: u8, received_ns: Time) {
        let behind = index.wrapping_add(fragments.into());
        let ends = self.ends.get_or_insert([behind, index, index]);
        if behind.wrapping_sub(ends[0]) as i32 > 0 {
            ends[0] = behind;
        }
        if self.had.len() == MOST_TOLD as usize {
            self.had.pop_front();
        }
        self.had.push_back((index, fragments, received_ns));
    }

    /// The report, if it is time for it and anything has come since the last one.
    // [RFC 8888 §3.1]
    pub(super) fn due(&mut self, now: Time) -> Option<Ccfb> {
        let due_ns = self.due_ns.filter(|d| *d <= now)?;
        self.due_ns = Some(due_ns + self.every_ns * ((now - due_ns) / self.every_ns + 1));
        let [end, last, before] = self.ends?;
        if end == last {
            return None;
        }
        self.ends = Some([end, end, last]);
        let count = end.wrapping_sub(before).min(MOST_TOLD);
        let begin = end.wrapping_sub(count);
        let mut arrivals = vec![None; count as usize];
        for &(index, fragments, received_ns) in &self.had {
            let units = short(now.saturating_sub(received_ns)) >> 6;
            let offset = units.min(ccfb::OVER_RANGE.into()) as u16;
            for i in 0..u32::from(fragments) {
                let at = index.wrapping_add(i).wrapping_sub(begin) as usize;
                if let Some(place) = arrivals.get_mut(at) {
                    *place = Some(ccfb::Arrival { ecn: 0, offset });
                }
            }
        }
        self.had.retain(|(index, ..)| index.wrapping_sub(last) as i32 >= 0);
        let streams = vec![Stream { ssrc: 0, begin: begin as u16, arrivals }];
        Some(Ccfb { sender: 0, streams, timestamp: middle(ntp(now)) })
    }
}

/// A packet on its way.
#[derive(Debug)]
struct Entry {
    number: u16,
    sent_ns: Time,
    wire_bytes: u32,
    missed: bool,
    told: bool,
}

/// The sender's packets of which nothing has been told.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    sent: VecDeque<Entry>,
    /// Timestamp of the newest report, and the time that it stands for: the receiver's clock from the first report on.
    clock: Option<(u32, Time)>,
}

impl Ledger {
    /// A packet has left whose first sample is `index`; returns the one that is forgotten for it, lost, if nothing has
    /// been told of that.
    pub(super) fn add(&mut self, now: Time, index: u32, wire_bytes: u32) -> Option<rate::Arrival> {
        let full = self.sent.len() == REMEMBERED;
        let forgotten = if full { self.sent.pop_front() } else { None };
        let (missed, told) = (false, false);
        self.sent.push_back(Entry { number: index as u16, sent_ns: now, wire_bytes, missed, told });
        forgotten.filter(|e| !e.told).map(|e| lost(&e))
    }

    /// A report came: `tell` hears of every packet of which there is news, the oldest first.
    // [RFC 8888 §3.1]
    pub(super) fn told(
        &mut self,
        now: Time,
        datagram: &[u8],
        mut tell: impl FnMut(rate::Arrival),
    ) -> Result<(), Error> {
        let packet =
            Packets::reduced(datagram)?.next().filter(|p| p.kind == TRANSPORT).ok_or(Error::Unknown)?;
        let ccfb = Ccfb::parse(&packet)?;
        let [stream] = ccfb.streams.as_slice() else { return Err(Error::Contradiction) };
        if stream.arrivals.len() > MOST_TOLD as usize {
            return Err(Error::TooLong);
        }
        let Some(made_ns) = self.made_ns(ccfb.timestamp) else { return Ok(()) };
        for entry in self.sent.iter_mut().filter(|e| !e.told) {
            let Some(found) = arrival(entry, stream, now, made_ns) else { continue };
            entry.told = true;
            tell(found);
        }
        while self.sent.front().is_some_and(|e| e.told) {
            self.sent.pop_front();
        }
        Ok(())
    }

    /// The receiver's time at which a report was made; none if a newer one has come.
    fn made_ns(&mut self, timestamp: u32) -> Option<Time> {
        let (newest, at_ns) = *self.clock.get_or_insert((timestamp, 0));
        let ahead = timestamp.wrapping_sub(newest);
        if (ahead as i32) < 0 {
            return None;
        }
        let made_ns = at_ns.saturating_add(from_short(ahead));
        self.clock = Some((timestamp, made_ns));
        Some(made_ns)
    }
}

fn lost(entry: &Entry) -> rate::Arrival {
    let Entry { sent_ns, wire_bytes, .. } = *entry;
    rate::Arrival { sent_ns, wire_bytes, arrived_ns: None, round_trip_ns: 0 }
}

/// What a report says of a packet; none if it leaves that open.
fn arrival(entry: &mut Entry, stream: &Stream, now: Time, made_ns: Time) -> Option<rate::Arrival> {
    let sent_ns = entry.sent_ns;
    let place = entry.number.wrapping_sub(stream.begin);
    let lost = lost(entry);
    match stream.arrivals.get(usize::from(place)) {
        Some(Some(arrival)) => {
            let ago_ns = Time::from(arrival.offset) * SECOND / 1024;
            let round_trip_ns = now.saturating_sub(sent_ns).saturating_sub(ago_ns).max(0);
            Some(rate::Arrival { arrived_ns: Some(made_ns.saturating_sub(ago_ns)), round_trip_ns, ..lost })
        }
        Some(None) => std::mem::replace(&mut entry.missed, true).then_some(lost),
        None => ((place as i16) < 0).then_some(lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    /// Packets of two samples every 2 ms that arrive after `delay_ms` unless they are in `lost`, and what is told.
    fn session(packets: u32, lost: &[u32], drop_reports: &[usize], offset_ns: Time) -> Vec<rate::Arrival> {
        let (mut arrivals, mut ledger, mut told) = (Arrivals::new(20 * MS), Ledger::default(), Vec::new());
        let (mut reports, mut buf) = (0, Vec::new());
        arrivals.begin(offset_ns);
        for ms in 0..Time::from(packets) * 2 + 60 {
            let now = ms * MS;
            if ms % 2 == 0 && ms / 2 < Time::from(packets) {
                ledger.add(now, (ms / 2) as u32 * 2, 207);
            }
            let came = (ms - 15) / 2;
            if ms >= 15 && ms % 2 == 1 && came < Time::from(packets) && !lost.contains(&(came as u32)) {
                arrivals.arrived(came as u32 * 2, 2, now + offset_ns);
            }
            if let Some(ccfb) = arrivals.due(now + offset_ns) {
                buf.clear();
                ccfb.emit(&mut buf);
                assert_eq!(buf.len(), bytes(&ccfb));
                assert_eq!(buf[0], FIRST_BYTE);
                reports += 1;
                if !drop_reports.contains(&reports) {
                    ledger.told(now + 15 * MS, &buf, |a| told.push(a)).unwrap();
                }
            }
        }
        told
    }

    // [RFC 8888 §3.1] [RFC 8888]
    #[test]
    fn every_packet_is_told_of_once_with_its_delay_to_a_1024th_of_a_second() {
        for offset_ns in [0, 3 * SECOND, -SECOND] {
            let told = session(200, &[], &[], offset_ns);
            assert_eq!(told.len(), 200);
            let sent: Vec<Time> = told.iter().map(|a| a.sent_ns / MS / 2).collect();
            assert_eq!(sent, (0..200).collect::<Vec<_>>());
            let delays: Vec<Time> = told.iter().map(|a| a.arrived_ns.unwrap() - a.sent_ns).collect();
            let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
            assert!(most - least <= MS, "{least} {most}");
            assert!(told.iter().all(|a| (a.round_trip_ns - 30 * MS).abs() <= MS), "{:?}", told[0]);
        }
    }

    // [RFC 8888 §3.1]
    #[test]
    fn a_packet_that_two_reports_miss_is_lost_and_one_report_may_be() {
        let told = session(200, &[50, 51, 120], &[], 0);
        let lost: Vec<Time> =
            told.iter().filter(|a| a.arrived_ns.is_none()).map(|a| a.sent_ns / MS / 2).collect();
        assert_eq!((told.len(), lost), (200, vec![50, 51, 120]));
        let told = session(200, &[], &[7], 0);
        assert_eq!(told.iter().filter(|a| a.arrived_ns.is_some()).count(), 200, "a lost report is made good");
        let told = session(200, &[], &[7, 8], 0);
        assert_eq!(told.iter().filter(|a| a.arrived_ns.is_none()).count(), 10, "20 ms that nobody told of");
    }

    #[test]
    fn a_packet_that_is_forgotten_before_anything_is_told_of_it_is_lost() {
        let mut ledger = Ledger::default();
        let forgotten: Vec<_> =
            (0..REMEMBERED as u32 + 2).filter_map(|i| ledger.add(i.into(), i, 137)).collect();
        let told: Vec<_> = forgotten.iter().map(|a| (a.sent_ns, a.wire_bytes, a.arrived_ns)).collect();
        assert_eq!(told, [(0, 137, None), (1, 137, None)]);
    }

    #[test]
    fn what_is_no_report_or_an_old_one_is_refused_or_passed_over() {
        let mut ledger = Ledger::default();
        ledger.add(0, 0, 137);
        let report = |streams: usize, timestamp| {
            let arrivals = vec![Some(ccfb::Arrival { ecn: 0, offset: 0 })];
            let mut out = Vec::new();
            let stream = Stream { ssrc: 0, begin: 0, arrivals };
            Ccfb { sender: 0, streams: vec![stream; streams], timestamp }.emit(&mut out);
            out
        };
        let mut count = 0;
        assert_eq!(ledger.told(0, &report(2, 9), |_| count += 1), Err(Error::Contradiction));
        assert_eq!(ledger.told(0, &report(1, 9)[..10], |_| count += 1), Err(Error::Truncated));
        assert_eq!(ledger.told(0, &[0x8b, 206, 0, 0], |_| count += 1), Err(Error::Unknown));
        ledger.add(0, 1, 137);
        assert_eq!(ledger.told(0, &report(1, 9), |_| count += 1), Ok(()));
        ledger.add(0, 0, 137);
        assert_eq!(ledger.told(0, &report(1, 8), |_| count += 1), Ok(()));
        assert_eq!(count, 1, "a report from before the newest says nothing");
    }
}
