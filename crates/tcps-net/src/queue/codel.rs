//! Controlled delay. [RFC 8289 §5]
//!
//! A packet that waited less than `target`, or that leaves at most one full packet behind it, proves that there is
//! no standing queue. Without such proof for `interval` one packet is dropped at the head, and the next ones after
//! `interval / sqrt(count)` each, until the proof comes.

use super::{fifo::Fifo, Limit, QueueDiscipline, Refused};
use crate::packet::Parcel;
use tcps_core::{record::DropReason, time::Time};

/// Bytes on the wire of the largest Ethernet packet: 1500 and the link's header. [PROTOCOLS 1.2]
pub const MTU_WIRE_BYTES: u64 = 1526;

/// The control loop of one queue.
#[derive(Debug, Clone)]
pub struct Control {
    target_ns: Time,
    interval_ns: Time,
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Control {
    /// A loop at rest.
    pub fn new(target_ns: Time, interval_ns: Time) -> Self {
        let (first_above, drop_next) = (None, 0);
        Self { target_ns, interval_ns, first_above, drop_next, count: 0, last_count: 0, dropping: false }
    }

    /// Takes the packet that goes on the line at `now`, after dropping those that should be dropped. [RFC 8289 §5.5]
    pub fn dequeue(&mut self, fifo: &mut Fifo, now: Time, refused: &mut Vec<Refused>) -> Option<Parcel> {
        let (mut parcel, mut ok_to_drop) = self.take(fifo, now);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                refuse(parcel, refused);
                self.count = self.count.saturating_add(1);
                (parcel, ok_to_drop) = self.take(fifo, now);
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if ok_to_drop {
            refuse(parcel, refused);
            (parcel, _) = self.take(fifo, now);
            self.start_dropping(now);
        }
        parcel
    }

    /// The next packet, and whether the delay has been above the target for an interval. [RFC 8289 §5.6]
    fn take(&mut self, fifo: &mut Fifo, now: Time) -> (Option<Parcel>, bool) {
        let parcel = fifo.pop();
        let waited = parcel.as_ref().map_or(0, |p| now.saturating_sub(p.at));
        if parcel.is_none() || waited < self.target_ns || fifo.bytes() <= MTU_WIRE_BYTES {
            self.first_above = None;
            return (parcel, false);
        }
        let since = *self.first_above.get_or_insert(now.saturating_add(self.interval_ns));
        (parcel, now >= since)
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

fn refuse(parcel: Option<Parcel>, refused: &mut Vec<Refused>) {
    refused.extend(parcel.map(|p| (p.packet, DropReason::Managed)));
}

/// A queue with one control loop.
pub struct Codel {
    fifo: Fifo,
    limit: Limit,
    control: Control,
}

impl Codel {
    /// An empty queue.
    pub fn new(limit: Limit, target_ns: Time, interval_ns: Time) -> Self {
        Self { fifo: Fifo::default(), limit, control: Control::new(target_ns, interval_ns) }
    }
}

impl QueueDiscipline for Codel {
    fn enqueue(&mut self, parcel: Parcel, straight: bool, refused: &mut Vec<Refused>) {
        let bytes = parcel.packet.wire_bytes;
        if straight || self.limit.admits(self.fifo.packets(), self.fifo.bytes(), bytes) {
            self.fifo.push(parcel);
        } else {
            refused.push((parcel.packet, DropReason::Full));
        }
    }

    fn dequeue(&mut self, now: Time, refused: &mut Vec<Refused>) -> Option<Parcel> {
        self.control.dequeue(&mut self.fifo, now, refused)
    }

    fn packets(&self) -> u64 {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}
