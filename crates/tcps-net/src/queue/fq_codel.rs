//! Flow queues with controlled delay in each. [RFC 8290 §4.1] [RFC 8290 §4.2]
//!
//! Flows are hashed into buckets. Buckets that just became active (new) go before those that had a turn (old); each
//! turn is worth `quantum` bytes. When the limit is exceeded, half of the packets of the largest bucket, at most
//! 64, are dropped at its head.

use super::{
    codel::{self, Control},
    fifo::Fifo,
    round_robin::Turn,
    Context, Discipline, Limit, QueueDiscipline, Refused,
};
use crate::packet::InFlight;
use serde_json::Value;
use std::collections::VecDeque;
use tcps_core::{
    param::{Draws, Entry, Fault, Params},
    params,
    record::DropReason,
    time::Time,
};

params! {
    /// Of the buckets.
    pub struct Buckets {
        flows: u32 = Count, "1024", 1.0..=65536.0, "number of hash buckets (RFC 8290)";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Discipline> = Entry {
    id: 6,
    name: "fq-codel",
    doc: "flows are hashed to buckets, each with a queue and CoDel of its own (RFC 8290)",
    params: &[codel::Settings::TABLE, Turn::TABLE, Buckets::TABLE],
    draws: Draws::Yes,
    make: Discipline::new(|params, x| Ok(Box::new(FqCodel::new(params, x)?))),
};

/// Most packets dropped at once when the limit is exceeded. [RFC 8290 §4.1]
const DROP_BATCH: u64 = 64;

struct Bucket {
    fifo: Fifo,
    control: Control,
    deficit: i64,
    listed: bool,
}

/// A FQ-CoDel queue.
pub struct FqCodel {
    buckets: Vec<Bucket>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    limit: Limit,
    quantum: i64,
    salt: u64,
    packets: u64,
    bytes: u64,
}

impl FqCodel {
    /// Empty buckets; the hash is salted with the link's own random object.
    fn new(params: &Value, x: &Context<'_>) -> Result<Self, Fault> {
        let control = Control::read(params)?;
        let bucket =
            |_| Bucket { fifo: Fifo::default(), control: control.clone(), deficit: 0, listed: false };
        Ok(Self {
            buckets: (0..Buckets::read(params)?.flows).map(bucket).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            limit: x.limit,
            quantum: i64::from(Turn::read(params)?.quantum_bytes),
            salt: x.stream("fq_codel").bits(),
            packets: 0,
            bytes: 0,
        })
    }

    /// Bucket of a flow: its class, salted and mixed.
    fn bucket_of(&self, class: u16) -> usize {
        let mut h = (self.salt ^ u64::from(class)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h = (h ^ (h >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        ((u128::from(h) * self.buckets.len() as u128) >> 64) as usize
    }

    /// [RFC 8290 §4.1]
    fn drop_from_largest(&mut self, refused: &mut Vec<Refused>) {
        let largest = self.buckets.iter_mut().rev().max_by_key(|b| (b.fifo.bytes(), b.fifo.packets()));
        let Some(bucket) = largest else { return };
        for _ in 0..(bucket.fifo.packets() / 2).clamp(1, DROP_BATCH) {
            let Some(in_flight) = bucket.fifo.pop() else { return };
            self.packets -= 1;
            self.bytes -= u64::from(in_flight.packet.wire_bytes);
            refused.push((in_flight.packet, DropReason::Full));
        }
    }

    /// What a bucket gives in its turn, with the totals kept.
    fn serve(&mut self, place: usize, now: Time, refused: &mut Vec<Refused>) -> Option<InFlight> {
        let bucket = &mut self.buckets[place];
        let before = (bucket.fifo.packets(), bucket.fifo.bytes());
        let in_flight = bucket.control.dequeue(&mut bucket.fifo, now, refused);
        self.packets -= before.0 - bucket.fifo.packets();
        self.bytes -= before.1 - bucket.fifo.bytes();
        bucket.deficit -= in_flight.as_ref().map_or(0, |p| i64::from(p.packet.wire_bytes));
        in_flight
    }
}

impl QueueDiscipline for FqCodel {
    fn enqueue(&mut self, in_flight: InFlight, line_idle: bool, refused: &mut Vec<Refused>) {
        let place = self.bucket_of(in_flight.packet.class);
        let bucket = &mut self.buckets[place];
        if !bucket.listed {
            (bucket.listed, bucket.deficit) = (true, self.quantum);
            self.new.push_back(place);
        }
        let bytes = in_flight.packet.wire_bytes;
        let fits = line_idle || self.limit.admits(self.packets, self.bytes, bytes);
        bucket.fifo.push(in_flight);
        self.packets += 1;
        self.bytes += u64::from(bytes);
        if !fits {
            while self.packets > self.limit.packets || self.bytes > self.limit.bytes {
                self.drop_from_largest(refused);
            }
        }
    }

    /// [RFC 8290 §4.2]
    fn dequeue(&mut self, now: Time, refused: &mut Vec<Refused>) -> Option<InFlight> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let place = list.pop_front()?;
            if self.buckets[place].deficit <= 0 {
                self.buckets[place].deficit += self.quantum;
                self.old.push_back(place);
                continue;
            }
            if let Some(in_flight) = self.serve(place, now, refused) {
                let list = if is_new { &mut self.new } else { &mut self.old };
                list.push_front(place);
                return Some(in_flight);
            }
            if is_new {
                self.old.push_back(place);
            } else {
                self.buckets[place].listed = false;
            }
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    fn marked(&self) -> u64 {
        self.buckets.iter().map(|b| b.control.marked).sum()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::QUEUES;
    use serde_json::json;
    use tcps_core::param::Named;

    /// The share of flows that have a bucket for themselves, over many seeds.
    fn alone(flows: u32, buckets: u32, seeds: u64) -> f64 {
        let (_, params) = Named::new("fq-codel", json!({"flows": buckets})).of(QUEUES).expect("parameters");
        let mut alone = 0;
        for seed in 0..seeds {
            let x = Context { limit: Limit::of(None, None), flows: None, seed, link: "l" };
            let queue = FqCodel::new(&params, &x).expect("a queue");
            let mut met = vec![0; buckets as usize];
            (0..flows).for_each(|class| met[queue.bucket_of(class as u16)] += 1);
            alone += met.iter().filter(|n| **n == 1).count();
        }
        alone as f64 / (f64::from(flows) * seeds as f64)
    }

    /// Flows meet in a bucket as seldom as chance has it: of 100 flows in 1024 buckets 90.78 % are alone. Each of the others
    /// is elsewhere with 1 - 1/n, also where there are as many flows and buckets as there can be. [RFC 8290 §5.3]
    #[test]
    fn flows_share_a_bucket_only_by_chance() {
        for (flows, buckets, seeds, expected) in [
            (100, 1024, 2000, 0.9078),
            (65_536, 65_536, 20, libm::pow(1.0 - 1.0 / 65_536.0, 65_535.0)), // 36.8 %
        ] {
            let found = alone(flows, buckets, seeds);
            assert!((found / expected - 1.0).abs() < 0.003, "{flows} in {buckets}: {found}, not {expected}");
        }
    }
}
