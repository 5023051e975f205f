//! Clock synchronisation: a client at a node asks a server at the reference node, through the same network.
//!
//! ```text
//! client   T1 ─────►        ┌──► T4      offset = ((T2 - T1) + (T3 - T4)) / 2
//!             ╲             ╱            round trip = (T4 - T1) - (T3 - T2)
//! server       └──► T2   T3
//! ```
//! T2 and T4 are when the kernel had the packet, T1 and T3 when the endpoint made it. `clockfit` has the
//! rest.

use crate::{
    clockfit::{ClockFit, Exchange},
    outbox::Outbox,
    udp::STACK_BYTES,
};
use std::collections::VecDeque;
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output, Transmit},
    ids::FlowId,
    record::{Kind, Record},
    report::ClockEstimate,
    time::Time,
};
use tcps_wire::clock::{Repr, CLOCK_BYTES};

/// Requests that may be on their way at once.
const PENDING: usize = 64;
/// Answers that a server can give again: of a request that came twice, too, there is one answer.
const ANSWERED: usize = 64;

/// The side that wants to know.
#[derive(Debug)]
pub struct Client {
    period_ns: Time,
    next_ns: Time,
    sequence: u32,
    pending: [Pending; PENDING],
    fit: ClockFit,
    outbox: Outbox,
    stats: EndpointStats,
}

/// A request that was sent.
#[derive(Debug, Clone, Copy)]
struct Pending {
    sequence: u32,
    t1_ns: Time,
    /// T2 and T3 of the answer, once it came.
    answer: Option<(Time, Time)>,
}

impl Client {
    /// A client that asks every `period_ns` of its own clock, first at 0 or as soon as it is called after.
    pub fn new(period_ns: Time) -> Self {
        let nothing = Pending { sequence: u32::MAX, t1_ns: 0, answer: Some((0, 0)) };
        Self {
            period_ns: period_ns.max(1),
            next_ns: 0,
            sequence: 0,
            pending: [nothing; PENDING],
            fit: ClockFit::default(),
            outbox: Outbox::default(),
            stats: EndpointStats::default(),
        }
    }

    /// What is known after the last exchange; `None` before the first.
    pub fn estimate(&self) -> Option<ClockEstimate> {
        self.fit.estimate()
    }

    /// What the reference shows when the local clock shows `local_ns`; the same before the first exchange.
    pub fn to_reference(&self, local_ns: Time) -> Time {
        self.fit.to_reference(local_ns)
    }

    fn ask(&mut self, now: Time) {
        let sequence = self.sequence;
        self.pending[sequence as usize % PENDING] = Pending { sequence, t1_ns: now, answer: None };
        transmit(&mut self.outbox, sequence, Repr::Request { sequence, t1_ns: now });
        self.sequence = sequence.wrapping_add(1);
        let due = self.next_ns.saturating_add(self.period_ns);
        self.next_ns = if due > now { due } else { now.saturating_add(self.period_ns) };
    }

    /// Takes only the first answer to a request that was made, with the stamp that it had. Another one with other stamps is none
    /// of the server's.
    // [RFC 5905 §8]
    fn receive(&mut self, now: Time, bytes: &[u8], received_ns: Time) -> Option<()> {
        let Ok(Repr::Response { sequence, t1_ns, t2_ns, t3_ns }) = Repr::parse(bytes) else { return None };
        let pending = &mut self.pending[sequence as usize % PENDING];
        if pending.sequence != sequence || pending.t1_ns != t1_ns {
            return None;
        }
        if let Some(answer) = pending.answer {
            self.stats.duplicates += u64::from(answer == (t2_ns, t3_ns));
            return (answer == (t2_ns, t3_ns)).then_some(());
        }
        let exchange = Exchange::new(t1_ns, t2_ns, t3_ns, received_ns)?;
        pending.answer = Some((t2_ns, t3_ns));
        self.fit.add(exchange);
        let value = self.fit.estimate().map_or(0, |e| e.offset_ns);
        let size = (exchange.round_trip_ns() / 2).clamp(0, i64::from(u32::MAX)) as u32;
        let row = Record { value, index: sequence, size, ..Record::new(now, Kind::Sync) };
        self.outbox.push(Output::Record(row), |_| {});
        Some(())
    }
}

impl Endpoint for Client {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Timeout if now >= self.next_ns => self.ask(now),
            Input::Datagram { bytes, received_ns, .. } => {
                if self.receive(now, bytes, received_ns).is_none() {
                    self.stats.malformed += 1;
                }
            }
            Input::Timeout | Input::Sample { .. } => {}
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.next_ns)
    }

    fn stats(&self) -> EndpointStats {
        self.stats
    }
}

/// The side that is asked; each answer goes to where the request came from.
#[derive(Debug, Default)]
pub struct Server {
    answers: VecDeque<(u32, Time, Repr)>,
    outbox: Outbox,
    stats: EndpointStats,
}

impl Endpoint for Server {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        let Input::Datagram { bytes, received_ns, .. } = input else { return };
        match Repr::parse(bytes) {
            Ok(Repr::Request { sequence, t1_ns }) => {
                let known = self.answers.iter().find(|known| (known.0, known.1) == (sequence, t1_ns));
                let answer = known.map(|known| known.2).unwrap_or_else(|| {
                    let answer = Repr::Response { sequence, t1_ns, t2_ns: received_ns, t3_ns: now };
                    self.answers.truncate(ANSWERED - 1);
                    self.answers.push_front((sequence, t1_ns, answer));
                    answer
                });
                transmit(&mut self.outbox, sequence, answer);
            }
            _ => self.stats.malformed += 1,
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.outbox.pop(buf)
    }

    fn stats(&self) -> EndpointStats {
        self.stats
    }
}

fn transmit(outbox: &mut Outbox, index: u32, repr: Repr) {
    let wire_bytes = CLOCK_BYTES as u32 + STACK_BYTES;
    outbox.push(Output::Transmit(Transmit::new(wire_bytes, FlowId::NONE, index)), |out| repr.emit(out));
}
