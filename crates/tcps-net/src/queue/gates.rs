//! Time-aware gates in front of classes of packets. [IEEE 2015 §8.6.8.4]
//!
//! ```text
//! list     |<-- 250 us: class 0 -->|<------ 750 us: class 1 ------>| and again from time 0
//! class 0 --/ --+
//!               +-- most urgent class whose gate is open long enough for its first packet --> line
//! class 1 --/ --+
//! ```
//! A packet starts only if its gate stays open until its last byte has left, so that what the list keeps free for a
//! class is free when its gate opens. Each class has a queue of its own, with the limit of the link.

use super::{by_code_point, fifo::Fifo, priority::Classes, Discipline, Limit, QueueDiscipline, Refused};
use crate::{packet::InFlight, windows::Windows};
use std::collections::BTreeSet;
use tcps_core::{
    param::{Draws, Entry, Fault, Params, SPAN},
    params,
    record::DropReason,
    time::{serialisation_ns, Time, NEVER},
};

/// Spans of a list, each with the classes whose gates are open during it.
pub type GateList = [(Time, Vec<u8>)];

params! {
    /// Of the gates.
    pub struct List {
        gates: Vec<(Time, Vec<u8>)> = List(&Pair(&Ns, &List(&Count))), "[]", 0.0..=1e15,
            "windows in their order, each as a span and the numbers (from 0) of the classes with open gates. The list \
             begins at 0 s and repeats";
    }
}

/// In a scenario.
pub const ENTRY: Entry<Discipline> = Entry {
    id: 2,
    name: "gates",
    doc: "classes with gates that open and close in turn (IEEE 802.1Qbv). Of the classes with open gates the most \
          urgent sends. A packet starts only if its gate stays open until its last byte has left. Each class has a \
          queue of its own with the `limit`. A packet that fits into no window of its class is dropped as `managed`",
    params: &[Classes::TABLE, List::TABLE],
    draws: Draws::No,
    make: Discipline::timed(|params, x| {
        let (classes, list) = (Classes::checked(params)?, List::read(params)?.gates);
        check(classes.len(), &list)?;
        Ok(Box::new(Gates::new(x.limit, &classes, &list)))
    }),
};

/// Every class has its gate open at some time, or its packets would wait for ever.
fn check(classes: usize, list: &GateList) -> Result<(), Fault> {
    let fault = |found: String, allowed: &str| Err(Fault::new("gates", found, allowed));
    if list.iter().all(|(_, open)| open.is_empty()) {
        return fault(
            "no open gate".into(),
            "spans and the classes open meanwhile, such as [[\"0.25 ms\", [0]]]",
        );
    }
    let cycle = list.iter().fold(0, |sum: Time, (span, _)| sum.saturating_add(*span));
    if list.iter().any(|(span, _)| *span < 1) || !SPAN.contains(&(cycle as f64)) {
        return fault(format!("a round of {cycle} ns"), "spans above 0, all of them at most 11 days");
    }
    let open: BTreeSet<usize> = list.iter().flat_map(|(_, classes)| classes).map(|&c| c.into()).collect();
    if !open.iter().copied().eq(0..classes) {
        let allowed = format!("each of the classes 0 to {} at least once, and no others", classes - 1);
        return fault(format!("gates of the classes {:?}", Vec::from_iter(open)), &allowed);
    }
    Ok(())
}

/// A queue and a gate per class, most urgent first.
pub struct Gates {
    queues: Vec<(Fifo, Windows)>,
    class_of: [u8; 256],
    limit: Limit,
    rate_bps: f64,
}

impl Gates {
    /// Classes by their code points, the last one taking the rest, behind the gates of a list.
    pub fn new(limit: Limit, classes: &[Vec<u8>], list: &GateList) -> Self {
        let queue = |class: usize| (Fifo::default(), windows(list, class));
        let queues = (0..classes.len()).map(queue).collect();
        Self { queues, class_of: by_code_point(classes), limit, rate_bps: f64::INFINITY }
    }

    /// When the first packet of a class may start; `None` if it fits into no window.
    fn start(&self, class: usize, now: Time, bytes: u32) -> Option<Time> {
        self.queues[class].1.start(now, serialisation_ns(bytes, self.rate_bps))
    }
}

/// When the gate of a class is open.
fn windows(list: &GateList, class: usize) -> Windows {
    let (mut open, mut at) = (Vec::new(), 0);
    for (span, classes) in list {
        if classes.iter().any(|&c| usize::from(c) == class) {
            open.push((at, at + span));
        }
        at += span;
    }
    Windows::new(at, &open)
}

impl QueueDiscipline for Gates {
    fn enqueue(&mut self, in_flight: InFlight, line_idle: bool, refused: &mut Vec<Refused>) {
        let bytes = in_flight.packet.wire_bytes;
        let class = usize::from(self.class_of[usize::from(in_flight.packet.dscp)]);
        let start = self.start(class, in_flight.at, bytes);
        let queue = &mut self.queues[class].0;
        let line_idle = line_idle && start == Some(in_flight.at);
        if start.is_none() {
            refused.push((in_flight.packet, DropReason::Managed));
        } else {
            queue.offer(in_flight, line_idle, &self.limit, refused);
        }
    }

    fn dequeue(&mut self, now: Time, refused: &mut Vec<Refused>) -> Option<InFlight> {
        for class in 0..self.queues.len() {
            while let Some(bytes) = self.queues[class].0.head_bytes() {
                match self.start(class, now, bytes) {
                    Some(start) if start <= now => return self.queues[class].0.pop(),
                    Some(_) => break,
                    // It came when the line was faster.
                    None => {
                        refused.extend(self.queues[class].0.pop().map(|p| (p.packet, DropReason::Managed)))
                    }
                }
            }
        }
        None
    }

    fn opens(&self, now: Time) -> Time {
        let start = |(class, (queue, _)): (usize, &(Fifo, Windows))| {
            queue.head_bytes().map(|bytes| self.start(class, now, bytes).unwrap_or(now))
        };
        self.queues.iter().enumerate().filter_map(start).min().unwrap_or(NEVER)
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn packets(&self) -> u64 {
        self.queues.iter().map(|q| q.0.packets()).sum()
    }

    fn bytes(&self) -> u64 {
        self.queues.iter().map(|q| q.0.bytes()).sum()
    }

    fn set_rate(&mut self, rate_bps: f64) {
        self.rate_bps = rate_bps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_opens_every_gate_for_some_time() {
        let (spans, classes) = ("spans above 0, all", "each of the classes 0 to 1");
        for (list, refused) in [
            (vec![(1, vec![0]), (1, vec![1])], None),
            (vec![(1, vec![0, 1]), (1, vec![])], None),
            (vec![(0, vec![0]), (1, vec![1])], Some(spans)),
            (vec![(-1, vec![0]), (2, vec![1])], Some(spans)),
            (vec![(Time::MAX, vec![0]), (1, vec![1])], Some(spans)),
            (vec![(1, vec![]), (1, vec![])], Some("spans and the classes open")),
            (vec![(1, vec![0])], Some(classes)),
            (vec![(1, vec![0, 1, 2])], Some(classes)),
        ] {
            let allowed = check(2, &list).err().map(|fault| fault.allowed);
            let agrees =
                allowed.as_ref().map_or(refused.is_none(), |a| refused.is_some_and(|r| a.starts_with(r)));
            assert!(agrees, "{list:?}: {allowed:?}");
        }
    }
}
