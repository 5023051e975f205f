//! Random early detection, gentle. [Floyd 1993 §4] [Floyd 2000]
//!
//! ```text
//! avg <- (1 - w) avg + w q           on arrival at a queue of q bytes
//! avg <- (1 - w)^m avg               after an idle time in which m packets could have been sent
//! pb   = max_p (avg - min) / (max - min)                 min <= avg < max
//! pb   = max_p + (1 - max_p) (avg - max) / max           max <= avg < 2 max   (gentle)
//! pa   = pb / (1 - count pb)         count: packets since the last drop
//! ```

use super::{fifo::Fifo, Discipline, Limit, QueueDiscipline, Refused};
use crate::packet::InFlight;
use tcps_core::{
    param::{Draws, Entry, Fault, Params},
    params,
    record::DropReason,
    seed::Stream,
    time::{serialisation_ns, Time},
};

params! {
    /// Of random early detection.
    pub struct Settings {
        min_bytes: f64 = Bytes, GIVEN, SIZE, "average queue below which no packet is dropped";
        max_bytes: f64 = Bytes, GIVEN, SIZE, "average queue at which the drop probability is `max_p`";
        max_p: f64 = Share, "10 %", SHARE, "drop probability at `max`";
        weight: f64 = Share, "0.2 %", SHARE, "weight of the moving average (Floyd and Jacobson 1993)";
        ecn: bool = Flag, "false", ANY, "whether ECN-capable packets are marked instead of dropped, below `max` (RFC 3168)";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Discipline> = Entry {
    id: 4,
    name: "red",
    doc: "random early detection, in its gentle form",
    params: &[Settings::TABLE],
    draws: Draws::Yes,
    make: Discipline::new(|params, x| {
        let Settings { min_bytes, max_bytes, max_p, weight, ecn } = Settings::read(params)?;
        if min_bytes >= max_bytes {
            return Err(Fault::new("min_bytes", "a minimum that is not below the maximum", "min below max"));
        }
        let curve = Curve { min_bytes, max_bytes, max_p };
        Ok(Box::new(Red { ecn, ..Red::new(x.limit, curve, weight, x.stream("red")) }))
    }),
};

/// Drop probability over the average queue.
#[derive(Debug, Clone, Copy)]
pub struct Curve {
    /// Average below which nothing is dropped, bytes.
    pub min_bytes: f64,
    /// Average at which the probability is `max_p`, bytes.
    pub max_bytes: f64,
    /// Probability there.
    pub max_p: f64,
}

impl Curve {
    /// The probability `pb` at an average queue. [Floyd 1993 §4] [Floyd 2000]
    pub fn probability(&self, average_bytes: f64) -> f64 {
        if average_bytes < self.min_bytes {
            0.0
        } else if average_bytes < self.max_bytes {
            self.max_p * (average_bytes - self.min_bytes) / (self.max_bytes - self.min_bytes)
        } else {
            (self.max_p + (1.0 - self.max_p) * (average_bytes - self.max_bytes) / self.max_bytes).min(1.0)
        }
    }
}

/// A RED queue; small packets are dropped as often as large ones. [RFC 7141 §2]
pub struct Red {
    fifo: Fifo,
    limit: Limit,
    curve: Curve,
    weight: f64,
    ecn: bool,
    marked: u64,
    rate_bps: f64,
    average: f64,
    idle_since: Time,
    since_drop: i64,
    stream: Stream,
}

impl Red {
    /// An empty queue.
    pub fn new(limit: Limit, curve: Curve, weight: f64, stream: Stream) -> Self {
        let (fifo, rate_bps) = (Fifo::default(), f64::INFINITY);
        Self {
            fifo,
            limit,
            curve,
            weight,
            ecn: false,
            marked: 0,
            rate_bps,
            average: 0.0,
            idle_since: 0,
            since_drop: -1,
            stream,
        }
    }

    /// The moving average of the queue in bytes.
    pub fn average_bytes(&self) -> f64 {
        self.average
    }

    fn update_average(&mut self, now: Time, packet_bytes: u32) {
        if self.fifo.packets() > 0 {
            self.average += self.weight * (self.fifo.bytes() as f64 - self.average);
            return;
        }
        let packet_ns = serialisation_ns(packet_bytes, self.rate_bps).max(1);
        let missed = now.saturating_sub(self.idle_since).max(0) as f64 / packet_ns as f64;
        self.average *= libm::pow(1.0 - self.weight, missed);
        self.idle_since = now;
    }

    /// Spreads drops uniformly over arrivals. [Floyd 1993 §7]
    fn decides_to_drop(&mut self) -> bool {
        let pb = self.curve.probability(self.average);
        if pb <= 0.0 {
            self.since_drop = -1;
            return false;
        }
        self.since_drop += 1;
        let left = 1.0 - self.since_drop as f64 * pb;
        if left <= pb || self.stream.unit() * left < pb {
            self.since_drop = 0;
            return true;
        }
        false
    }

    /// Marks a packet in place of dropping it: where that is wanted, the average is not above the maximum, and the packet may
    /// be marked. [RFC 3168 §7]
    fn marks(&mut self, in_flight: &mut InFlight) -> bool {
        let marks = self.ecn && self.average < self.curve.max_bytes && in_flight.packet.ecn.mark();
        self.marked += u64::from(marks);
        marks
    }
}

impl QueueDiscipline for Red {
    fn enqueue(&mut self, mut in_flight: InFlight, line_idle: bool, refused: &mut Vec<Refused>) {
        self.update_average(in_flight.at, in_flight.packet.wire_bytes);
        if self.decides_to_drop() && !self.marks(&mut in_flight) {
            refused.push((in_flight.packet, DropReason::Managed));
        } else if !self.fifo.offer(in_flight, line_idle, &self.limit, refused) {
            self.since_drop = 0;
        }
    }

    fn dequeue(&mut self, now: Time, _refused: &mut Vec<Refused>) -> Option<InFlight> {
        let in_flight = self.fifo.pop();
        if self.fifo.packets() == 0 {
            self.idle_since = now;
        }
        in_flight
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn packets(&self) -> u64 {
        self.fifo.packets()
    }

    fn marked(&self) -> u64 {
        self.marked
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn set_rate(&mut self, rate_bps: f64) {
        self.rate_bps = rate_bps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use tcps_core::{endpoint::Ecn, ids::VertexId};

    const CURVE: Curve = Curve { min_bytes: 5_000.0, max_bytes: 15_000.0, max_p: 0.1 };

    fn in_flight(at: Time) -> InFlight {
        let packet = Packet {
            payload: 0,
            class: 0,
            index: 0,
            dst: VertexId(0),
            dscp: 0,
            ecn: Default::default(),
            wire_bytes: 100,
            sent_ns: at,
        };
        InFlight::new(packet, at)
    }

    fn red(weight: f64) -> Red {
        let limit = Limit { bytes: u64::MAX / 2, packets: u64::MAX / 2 };
        Red::new(limit, CURVE, weight, Stream::new(1, "links.l.red"))
    }

    /// Arrivals find 0, b, 2b, ... bytes: avg(n) = b (n - (1 - w) / w (1 - (1 - w)^n)); then an idle time of m packets
    /// leaves (1 - w)^m of it. [Floyd 1993 §4]
    #[test]
    fn the_average_follows_its_recursion() {
        let (w, b, n) = (0.05, 100.0, 40);
        let mut queue = red(w);
        queue.set_rate(8e5); // 100 bytes take 1 ms
        (0..=n).for_each(|_| queue.enqueue(in_flight(0), false, &mut Vec::new()));
        let decay = libm::pow(1.0 - w, f64::from(n));
        let average = b * (f64::from(n) - (1.0 - w) / w * (1.0 - decay));
        assert!((queue.average_bytes() - average).abs() < 1e-6, "{} for {average}", queue.average_bytes());
        while queue.dequeue(1_000_000, &mut Vec::new()).is_some() {}
        queue.enqueue(in_flight(11_000_000), true, &mut Vec::new());
        let idle = average * libm::pow(1.0 - w, 10.0);
        assert!((queue.average_bytes() - idle).abs() < 1e-6, "{} for {idle}", queue.average_bytes());
        assert!(
            (queue.average_bytes() - average * libm::pow(1.0 - 1.1 * w, 10.0)).abs() > 1.0,
            "a wrong weight"
        );
    }

    /// [Floyd 1993 §4] up to the maximum, [Floyd 2000] (gentle) up to twice the maximum.
    #[test]
    fn the_curve_is_gentle() {
        let at = |average: f64| (CURVE.probability(average) * 1e9).round() / 1e9;
        assert_eq!([at(4_999.0), at(5_000.0), at(10_000.0)], [0.0, 0.0, 0.05]);
        assert_eq!([at(15_000.0), at(22_500.0), at(30_000.0), at(99_000.0)], [0.1, 0.55, 1.0, 1.0]);
    }

    /// [RFC 7141 §2]
    #[test]
    fn small_packets_are_dropped_as_often_as_large_ones() {
        let mut queue = red(1.0);
        (0..70).for_each(|_| queue.fifo.push(in_flight(0)));
        let mut drops = [0i32; 2];
        for n in 0..200_000 {
            let mut refused = Vec::new();
            let mut arrival = in_flight(0);
            arrival.packet.wire_bytes = if n % 7 < 3 { 1 } else { 1500 };
            queue.enqueue(arrival, false, &mut refused);
            drops[usize::from(n % 7 < 3)] += refused.len() as i32;
            if refused.is_empty() {
                queue.fifo.pop_newest();
            }
        }
        let ratio = f64::from(drops[1]) / f64::from(drops[0]);
        assert!((ratio / 0.75 - 1.0).abs() < 0.1, "3 to 4, not by size: {drops:?}");
    }

    /// Below the maximum packets that may be marked are marked, from it on all are dropped. [RFC 3168 §7]
    #[test]
    fn marks_take_the_place_of_drops_below_the_maximum() {
        for (waiting, marks) in [(100, true), (149, true), (150, false), (290, false)] {
            let mut queue = Red { ecn: true, ..red(1.0) };
            (0..waiting).for_each(|_| queue.fifo.push(in_flight(0)));
            let (mut refused, mut marked) = (Vec::new(), 0);
            for _ in 0..1000 {
                let mut arrival = in_flight(0);
                arrival.packet.ecn = Ecn::Capable;
                let before = refused.len();
                queue.enqueue(arrival, false, &mut refused);
                if refused.len() == before {
                    marked += u32::from(queue.fifo.pop_newest().is_some_and(|p| p.packet.ecn == Ecn::Met));
                }
            }
            assert_eq!((marked > 0, refused.is_empty()), (marks, marks), "{waiting}");
        }
    }

    /// The count of packets begins at 0 with the first one above the minimum, and at 1 behind a drop: the first is dropped with
    /// pb, the next one with pb / (1 - pb). [Floyd 1993 §4]
    #[test]
    fn the_count_begins_anew_below_the_minimum() {
        let pb = 0.3;
        let curve = Curve { max_p: 2.0 * pb, ..CURVE };
        let mut queue = Red { curve, ..red(1.0) }; // the average is the queue
        let rounds = 20_000;
        let (mut first, mut behind_drop) = (0, (0, 0));
        for round in 0..rounds {
            let mut dropped = || {
                let mut refused = Vec::new();
                queue.enqueue(in_flight(round), false, &mut refused);
                if refused.is_empty() {
                    queue.fifo.pop_newest();
                }
                !refused.is_empty()
            };
            if dropped() {
                first += 1;
                behind_drop.0 += i32::from(dropped());
                behind_drop.1 += 1;
            }
            // Below the minimum for one packet; full again before the next.
            while queue.fifo.pop().is_some() {}
            queue.enqueue(in_flight(round), false, &mut Vec::new());
            assert_eq!(queue.fifo.packets(), 1, "nothing is dropped below the minimum");
            (0..99).for_each(|_| queue.fifo.push(in_flight(round))); // 10000 bytes: half of max_p
        }
        for (met, all, expected) in
            [(first, rounds as i32, pb), (behind_drop.0, behind_drop.1, pb / (1.0 - pb))]
        {
            let share = f64::from(met) / f64::from(all);
            let half_width = 3.3 * libm::sqrt(expected * (1.0 - expected) / f64::from(all));
            assert!((share - expected).abs() < half_width, "{share} +- {half_width} for {expected}");
        }
    }

    /// Gaps between drops are uniform on 1 .. 1/pb - 1, with the mean 1/(2 pb). [Floyd 1993 §7]
    #[test]
    fn drops_are_spread_uniformly() {
        let mut queue = red(1.0); // the average is the queue
        let pb = 0.02;
        let (waiting, mut gaps, mut gap) = (70, Vec::new(), 0u32); // 7000 bytes: pb = 0.1 * 2000 / 10000
        (0..waiting).for_each(|_| queue.fifo.push(in_flight(0)));
        for _ in 0..200_000 {
            let mut refused = Vec::new();
            queue.enqueue(in_flight(0), false, &mut refused);
            gap += 1;
            if refused.is_empty() {
                queue.dequeue(0, &mut refused);
            } else {
                gaps.push(f64::from(std::mem::take(&mut gap)));
            }
        }
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let half_width = 3.3 * (1.0 / pb) / libm::sqrt(12.0 * n); // of a uniform variable
        let check = |expected: f64| (mean - expected).abs() < half_width;
        assert!(check(0.5 / pb), "{mean} +- {half_width}");
        assert!(!check(1.0 / pb), "the geometric gap must be refused");
        assert!(gaps.iter().all(|&g| g <= 1.0 / pb));
    }
}
