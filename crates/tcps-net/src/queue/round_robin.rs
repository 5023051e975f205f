//! A queue per flow, served by deficit round robin. [Shreedhar 1995]
//!
//! A flow in its turn gets `quantum` bytes of credit and sends while its head fits; what is left is kept for its next
//! turn, and lost when it has nothing more to send. Each flow has its own limit: the one given for it in packets, or
//! the limit of the queue. A small buffer for the telehaptic flow alone is the remedy for bloated buffers in
//! [Polachan 2022].

use super::{fifo::Fifo, Context, Discipline, Flows, Limit, QueueDiscipline, Refused};
use crate::packet::InFlight;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use tcps_core::{
    param::{Draws, Entry, Fault, Params},
    params,
    time::Time,
};

params! {
    /// Of a flow in its turn.
    pub struct Turn {
        quantum_bytes: u32 = Bytes, "1514 B", SIZE, "bytes that a flow may send in a turn";
    }
}
params! {
    /// Of flows.
    pub struct Limits {
        flow_limits: BTreeMap<String, u64> = Table(&Packets), "{}", 0.0..=4_294_967_295.0,
            "largest number of waiting packets of each named flow, such as `kinematic` or, for background traffic, `\"traffic.cbr\"`";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Discipline> = Entry {
    id: 3,
    name: "round-robin",
    doc: "deficit round robin, with one queue for each flow and each entry of background traffic",
    params: &[Turn::TABLE, Limits::TABLE],
    draws: Draws::No,
    make: Discipline::new(|params, x| Ok(Box::new(RoundRobin::new(params, x)?))),
};

struct FlowQueue {
    fifo: Fifo,
    /// Its own, in place of that of all.
    own: Option<Limit>,
    deficit: u64,
    in_turn: bool,
}

/// Deficit round robin over flows.
pub struct RoundRobin {
    flows: Flows,
    queues: Vec<FlowQueue>,
    active: VecDeque<usize>,
    limit: Limit,
    quantum: u64,
    packets: u64,
    bytes: u64,
}

impl RoundRobin {
    /// Empty queues for all flows.
    fn new(params: &Value, x: &Context<'_>) -> Result<Self, Fault> {
        let flows = x.flows.cloned().unwrap_or_default();
        let queue = |_| FlowQueue { fifo: Fifo::default(), own: None, deficit: 0, in_turn: false };
        let mut queues: Vec<_> = (0..flows.count()).map(queue).collect();
        for (name, packets) in Limits::read(params)?.flow_limits {
            let places = flows.named(&name);
            if places.is_empty() && x.flows.is_some() {
                return Err(Fault::new("flow_limits", name, "a flow, or traffic as traffic.NAME"));
            }
            for place in places {
                queues[place].own = Some(Limit::of(None, Some(packets)));
            }
        }
        let quantum = u64::from(Turn::read(params)?.quantum_bytes);
        Ok(Self { flows, queues, active: VecDeque::new(), limit: x.limit, quantum, packets: 0, bytes: 0 })
    }
}

impl QueueDiscipline for RoundRobin {
    fn enqueue(&mut self, in_flight: InFlight, line_idle: bool, refused: &mut Vec<Refused>) {
        let place = self.flows.place(in_flight.packet.class);
        let queue = &mut self.queues[place];
        let limit = queue.own.as_ref().unwrap_or(&self.limit);
        if !queue.fifo.offer(in_flight, line_idle, limit, refused) {
            return;
        }
        if queue.fifo.packets() == 1 {
            self.active.push_back(place);
        }
        self.packets += 1;
        self.bytes += u64::from(in_flight.packet.wire_bytes);
    }

    fn dequeue(&mut self, _now: Time, _refused: &mut Vec<Refused>) -> Option<InFlight> {
        loop {
            let queue = &mut self.queues[*self.active.front()?];
            if !queue.in_turn {
                queue.deficit += self.quantum;
                queue.in_turn = true;
            }
            let head = u64::from(queue.fifo.head_bytes().unwrap_or(0));
            if head > queue.deficit {
                queue.in_turn = false;
                self.active.rotate_left(1);
                continue;
            }
            let in_flight = queue.fifo.pop()?;
            queue.deficit -= head;
            if queue.fifo.packets() == 0 {
                (queue.deficit, queue.in_turn) = (0, false);
                self.active.pop_front();
            }
            self.packets -= 1;
            self.bytes -= head;
            return Some(in_flight);
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
