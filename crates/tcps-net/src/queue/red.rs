//! Random early detection, gentle. [Floyd 1993] [Floyd 2000]
//!
//! ```text
//! avg <- (1 - w) avg + w q           on arrival at a queue of q bytes
//! avg <- (1 - w)^m avg               after an idle time in which m packets could have been sent
//! pb   = max_p (avg - min) / (max - min)                 min <= avg < max
//! pb   = max_p + (1 - max_p) (avg - max) / max           max <= avg < 2 max   (gentle)
//! pa   = pb / (1 - count pb)         count: packets since the last drop
//! ```

use super::{fifo::Fifo, Limit, QueueDiscipline, Refused};
use crate::packet::Parcel;
use tcps_core::{
    record::DropReason,
    seed::Stream,
    time::{serialisation_ns, Time},
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

/// A RED queue; drops count packets, not bytes. [RFC 7141 §2]
pub struct Red {
    fifo: Fifo,
    limit: Limit,
    curve: Curve,
    weight: f64,
    rate_bps: f64,
    average: f64,
    idle_since: Time,
    since_drop: i64,
    stream: Stream,
}

impl Red {
    /// An empty queue.
    pub fn new(limit: Limit, curve: Curve, weight: f64, seed: u64, name: &str) -> Self {
        let stream = Stream::new(seed, name);
        let (fifo, rate_bps) = (Fifo::default(), f64::INFINITY);
        Self { fifo, limit, curve, weight, rate_bps, average: 0.0, idle_since: 0, since_drop: -1, stream }
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
}

impl QueueDiscipline for Red {
    fn enqueue(&mut self, parcel: Parcel, straight: bool, refused: &mut Vec<Refused>) {
        let bytes = parcel.packet.wire_bytes;
        self.update_average(parcel.at, bytes);
        if self.decides_to_drop() {
            refused.push((parcel.packet, DropReason::Managed));
        } else if !straight && !self.limit.admits(self.fifo.packets(), self.fifo.bytes(), bytes) {
            self.since_drop = 0;
            refused.push((parcel.packet, DropReason::Full));
        } else {
            self.fifo.push(parcel);
        }
    }

    fn dequeue(&mut self, now: Time, _refused: &mut Vec<Refused>) -> Option<Parcel> {
        let parcel = self.fifo.pop();
        if self.fifo.packets() == 0 {
            self.idle_since = now;
        }
        parcel
    }

    fn packets(&self) -> u64 {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn set_rate(&mut self, rate_bps: f64) {
        self.rate_bps = rate_bps;
    }
}
