//! Controlled delay. [RFC 8289 §5]
//!
//! A packet that waited less than `target`, or that leaves at most one full packet behind it, proves that there is
//! no standing queue. Without such proof for `interval` one packet is dropped at the head, and the next ones after
//! `interval / sqrt(count)` each, until the proof comes.

use super::{fifo::Fifo, Discipline, Limit, QueueDiscipline, Refused};
use crate::packet::InFlight;
use serde_json::Value;
use tcps_core::{
    param::{Draws, Entry, Fault, Params},
    params,
    record::DropReason,
    size::LINK_BYTES,
    time::Time,
};

params! {
    /// Of a control loop.
    pub struct Settings {
        target_ns: Time = Ns, "5 ms", SPAN, "acceptable queueing delay (RFC 8289)";
        interval_ns: Time = Ns, "100 ms", SPAN, "time for which the delay must exceed `target` before a packet is dropped";
        ecn: bool = Flag, "false", ANY, "whether ECN-capable packets are marked instead of dropped (RFC 3168)";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Discipline> = Entry {
    id: 5,
    name: "codel",
    doc: "controlled delay (RFC 8289)",
    params: &[Settings::TABLE],
    draws: Draws::No,
    make: Discipline::new(|params, x| Ok(Box::new(Codel::new(x.limit, Control::read(params)?)))),
};

/// Bytes on the wire of the largest Ethernet packet. [model: wire size]
pub const MTU_WIRE_BYTES: u64 = 1500 + LINK_BYTES as u64;

/// The control loop of one queue.
#[derive(Debug, Clone)]
pub struct Control {
    target_ns: Time,
    interval_ns: Time,
    ecn: bool,
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// Packets that it marked in place of dropping them.
    pub marked: u64,
}

impl Control {
    /// A loop at rest.
    pub fn new(target_ns: Time, interval_ns: Time) -> Self {
        let (first_above, drop_next) = (None, 0);
        Self {
            target_ns,
            interval_ns,
            ecn: false,
            first_above,
            drop_next,
            count: 0,
            last_count: 0,
            dropping: false,
            marked: 0,
        }
    }

    /// A loop with the parameters of a scenario.
    pub fn read(params: &Value) -> Result<Self, Fault> {
        let Settings { target_ns, interval_ns, ecn } = Settings::read(params)?;
        Ok(Self { ecn, ..Self::new(target_ns, interval_ns) })
    }

    /// Takes the packet that goes on the line at `now`, after dropping those that should be dropped. [RFC 8289 §5.5]
    pub fn dequeue(&mut self, fifo: &mut Fifo, now: Time, refused: &mut Vec<Refused>) -> Option<InFlight> {
        let (mut in_flight, mut ok_to_drop) = self.take(fifo, now);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if self.marks(&mut in_flight) {
                    self.drop_next = self.control_law(self.drop_next);
                    return in_flight;
                }
                refuse(in_flight, refused);
                (in_flight, ok_to_drop) = self.take(fifo, now);
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if ok_to_drop {
            if !self.marks(&mut in_flight) {
                refuse(in_flight, refused);
                (in_flight, _) = self.take(fifo, now);
            }
            self.start_dropping(now);
        }
        in_flight
    }

    /// Marks a packet in place of dropping it, where that is wanted and the packet may be marked. [RFC 3168 §5]
    fn marks(&mut self, in_flight: &mut Option<InFlight>) -> bool {
        let marks = self.ecn && in_flight.as_mut().is_some_and(|p| p.packet.ecn.mark());
        self.marked += u64::from(marks);
        marks
    }

    /// The next packet, and whether the delay has been above the target for an interval. [RFC 8289 §5.6]
    fn take(&mut self, fifo: &mut Fifo, now: Time) -> (Option<InFlight>, bool) {
        let in_flight = fifo.pop();
        let waited = in_flight.as_ref().map_or(0, |p| now.saturating_sub(p.at));
        if in_flight.is_none() || waited < self.target_ns || fifo.bytes() <= MTU_WIRE_BYTES {
            self.first_above = None;
            return (in_flight, false);
        }
        let since = *self.first_above.get_or_insert(now.saturating_add(self.interval_ns));
        (in_flight, now >= since)
    }

    /// Enters the dropping state at the rate that was right a moment ago.
    fn start_dropping(&mut self, now: Time) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.drop_next) < self.interval_ns.saturating_mul(16);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.control_law(now);
        self.last_count = self.count;
    }

    fn control_law(&self, t: Time) -> Time {
        t.saturating_add((self.interval_ns as f64 / f64::from(self.count.max(1)).sqrt()) as Time)
    }
}

fn refuse(in_flight: Option<InFlight>, refused: &mut Vec<Refused>) {
    refused.extend(in_flight.map(|p| (p.packet, DropReason::Managed)));
}

/// A queue with one control loop.
pub struct Codel {
    fifo: Fifo,
    limit: Limit,
    control: Control,
}

impl Codel {
    /// An empty queue.
    pub fn new(limit: Limit, control: Control) -> Self {
        Self { fifo: Fifo::default(), limit, control }
    }
}

impl QueueDiscipline for Codel {
    fn enqueue(&mut self, in_flight: InFlight, line_idle: bool, refused: &mut Vec<Refused>) {
        self.fifo.offer(in_flight, line_idle, &self.limit, refused);
    }

    fn dequeue(&mut self, now: Time, refused: &mut Vec<Refused>) -> Option<InFlight> {
        self.control.dequeue(&mut self.fifo, now, refused)
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn packets(&self) -> u64 {
        self.fifo.packets()
    }

    fn marked(&self) -> u64 {
        self.control.marked
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use tcps_core::{endpoint::Ecn, ids::VertexId, time::MS};

    fn in_flight(index: u32, at: Time) -> InFlight {
        let packet = Packet {
            payload: 0,
            class: 0,
            index,
            dst: VertexId(0),
            dscp: 0,
            ecn: Default::default(),
            wire_bytes: 1526,
            sent_ns: at,
        };
        InFlight::new(packet, at)
    }

    /// Moments in ms at which packets are dropped when one leaves every ms for `until_ms` and `backlog` wait at 0.
    fn drop_times(control: &mut Control, fifo: &mut Fifo, from_ms: i64, until_ms: i64) -> Vec<i64> {
        let mut times = Vec::new();
        for ms in from_ms..until_ms {
            let mut refused = Vec::new();
            control.dequeue(fifo, ms * MS, &mut refused);
            times.extend(refused.iter().map(|_| ms));
        }
        times
    }

    fn backlog(packets: u32) -> Fifo {
        let mut fifo = Fifo::default();
        (0..packets).for_each(|i| fifo.push(in_flight(i, 0)));
        fifo
    }

    /// Sums of 100 ms / sqrt(count) from the first drop on, as seen by a line that is free every whole ms.
    fn control_law_ms(first_ms: i64, count: u32, drops: usize, exponent: f64) -> Vec<i64> {
        let mut next = first_ms as f64;
        let mut times = vec![first_ms];
        for k in (count..).take(drops - 1) {
            next += 100.0 / libm::pow(f64::from(k), exponent);
            times.push(libm::ceil(next - 1e-6) as i64);
        }
        times
    }

    /// Worked by hand: the delay passes 5 ms at 5, stays above for 100, so the first drop is at 105; the next come
    /// after 100, 70.7, 57.7, 50, 44.7, 40.8, 37.8, 35.4, 33.3, 31.6 ms. [RFC 8289 §5]
    #[test]
    fn drops_follow_the_trace_worked_by_hand() {
        let mut control = Control::new(5 * MS, 100 * MS);
        let times = drop_times(&mut control, &mut backlog(2000), 0, 620);
        assert_eq!(times, [105, 205, 276, 334, 384, 429, 469, 507, 543, 576, 608]);
    }

    /// Packets that may be marked are marked at the moments at which others are dropped, and go. [RFC 3168 §5]
    #[test]
    fn marks_follow_the_same_trace_as_drops() {
        let mut control = Control { ecn: true, ..Control::new(5 * MS, 100 * MS) };
        let mut fifo = Fifo::default();
        (0..2000).for_each(|i| {
            let mut capable = in_flight(i, 0);
            capable.packet.ecn = Ecn::Capable;
            fifo.push(capable);
        });
        let (mut marked, mut refused) = (Vec::new(), Vec::new());
        for ms in 0..620 {
            let gone = control.dequeue(&mut fifo, ms * MS, &mut refused).unwrap();
            marked.extend((gone.packet.ecn == Ecn::Met).then_some(ms));
        }
        assert_eq!((marked, refused), (vec![105, 205, 276, 334, 384, 429, 469, 507, 543, 576, 608], vec![]));
        let mut control = Control { ecn: true, ..Control::new(5 * MS, 100 * MS) };
        let times = drop_times(&mut control, &mut backlog(2000), 0, 300);
        assert_eq!(times, [105, 205, 276], "packets that may not be marked are dropped");
    }

    /// The distance of drops shrinks with the square root of their count. [RFC 8289 §5.5]
    #[test]
    fn drops_follow_the_control_law_and_no_other() {
        let mut control = Control::new(5 * MS, 100 * MS);
        let times = drop_times(&mut control, &mut backlog(4000), 0, 3000);
        assert_eq!(times, control_law_ms(105, 1, times.len(), 0.5));
        assert_ne!(times, control_law_ms(105, 1, times.len(), 0.45), "a wrong exponent must be refused");
    }

    /// Soon after a dropping state with `count` drops more than it began with, the next one begins at that rate;
    /// after 16 intervals it begins anew. [RFC 8289 §5.5]
    #[test]
    fn the_drop_rate_is_remembered_for_sixteen_intervals() {
        for (pause_ms, first_gap) in [(500, 50), (1700, 100)] {
            let mut control = Control::new(5 * MS, 100 * MS);
            let first = drop_times(&mut control, &mut backlog(2000), 0, 400); // 105 205 276 334 384: count 5, began with 1
            assert_eq!(first.len(), 5);
            let start = 400 + pause_ms;
            let mut fifo = Fifo::default();
            fifo.push(in_flight(0, start * MS)); // no waiting: leaves the dropping state
            control.dequeue(&mut fifo, start * MS, &mut Vec::new());
            let mut fifo = Fifo::default();
            (0..900).for_each(|i| fifo.push(in_flight(i, start * MS)));
            let again = drop_times(&mut control, &mut fifo, start, start + 300);
            assert_eq!(again[..2], [start + 105, start + 105 + first_gap], "{pause_ms}");
        }
    }

    /// With one full packet or less behind it, no packet is dropped however long it waited. [RFC 8289 §5.6]
    #[test]
    fn the_last_full_packet_is_never_dropped() {
        let mut control = Control::new(5 * MS, 100 * MS);
        let mut fifo = Fifo::default();
        for ms in (0..1000).step_by(10) {
            fifo.push(in_flight(0, (ms - 50) * MS));
            fifo.push(in_flight(0, (ms - 50) * MS));
            let mut refused = Vec::new();
            while control.dequeue(&mut fifo, ms * MS, &mut refused).is_some() {}
            assert!(refused.is_empty(), "at {ms}");
        }
    }

    /// The rate of a moment ago is that of the last dropping state less than 16 intervals ago, if it dropped more than
    /// one packet. [RFC 8289 §5.5]
    #[test]
    fn only_the_rate_of_a_moment_ago_goes_on() {
        let recent = 16 * 100 * MS;
        for (dropped, since, count) in [(5, recent - 1, 5), (5, recent, 1), (2, 0, 2), (1, 0, 1)] {
            let mut control = Control::new(5 * MS, 100 * MS);
            (control.count, control.last_count, control.drop_next) = (3 + dropped, 3, MS);
            control.start_dropping(MS + since);
            assert_eq!((control.count, control.last_count), (count, count), "{dropped} {since}");
        }
    }
}
