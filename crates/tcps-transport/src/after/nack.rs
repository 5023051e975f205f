//! Transport `nack`: what the receiver misses it asks for, once or twice.
//!
//! ```text
//! sender     keeps its last 512 datagrams ◄──────────────────── request: sequences
//! receiver   a gap in the sequence ──► wait for reordering ──► ask ──► ask again after a round trip, at least 20 ms
//! ```
//! What is asked for comes 1.5 to 2 round trips after it was first sent; a sample that comes late is delivered late.

use crate::{
    numbered::{Heard, Numbered},
    params::{Params, TransportError},
    registry::{ChannelContext, Side},
};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output, Transmit},
    time::{Time, MS},
};
use tcps_wire::{
    stream::{Packet, Repr, MOST_REQUESTED},
    Error,
};

const KEPT: usize = 512;
/// A gap that is longer than this is a new start, not a loss.
const LONGEST_GAP: i16 = 256;
const LEAST_WAIT_NS: Time = 20 * MS;

/// An endpoint of the transport.
#[derive(Debug)]
pub(crate) struct Nack {
    stream: Numbered,
    kept: Vec<Kept>,
    newest: Option<u16>,
    missing: Vec<Missing>,
    reorder_ns: Time,
    tries: u32,
    round_trip_ns: Time,
}

#[derive(Debug, Clone)]
struct Kept {
    sequence: u16,
    transmit: Transmit,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Missing {
    sequence: u16,
    due_ns: Time,
    asked_ns: Time,
    asked: u32,
}

impl Nack {
    /// `reorder_ns`: how long a gap may come from reordering; `tries`: how often it is asked for at most.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        params.allow(&["mtu_bytes", "overhead_bytes", "reorder_ns", "tries"])?;
        Ok(Self {
            stream: Numbered::from_params(params, side, ctx, 0)?,
            kept: Vec::new(),
            newest: None,
            missing: Vec::new(),
            reorder_ns: params.integer("reorder_ns", 0..=1_000_000_000)?.unwrap_or(1_000_000).into(),
            tries: params.integer("tries", 1..=10)?.unwrap_or(2),
            round_trip_ns: LEAST_WAIT_NS,
        })
    }

    fn receive(&mut self, now: Time, bytes: &[u8], received_ns: Time) -> Result<(), Error> {
        match self.stream.hear(now, bytes, |_| 0)? {
            Heard::Data { sequence, whole, .. } => {
                if let Some(meta) = whole {
                    self.stream.deliver(meta, received_ns);
                }
                self.note(now, sequence);
            }
            Heard::Request { count } => {
                let request = Packet::new_checked(bytes)?;
                (0..usize::from(count)).for_each(|i| self.again(request.requested(i)));
            }
            Heard::Ack { .. } | Heard::Report { .. } => return Err(Error::Unknown),
        }
        Ok(())
    }

    /// Notes an arrival and the gap before it.
    fn note(&mut self, now: Time, sequence: u16) {
        let newest = *self.newest.get_or_insert(sequence);
        let ahead = sequence.wrapping_sub(newest) as i16;
        if ahead <= 0 {
            return self.found(now, sequence);
        }
        self.newest = Some(sequence);
        if ahead > LONGEST_GAP || self.missing.len() > usize::from(LONGEST_GAP.unsigned_abs()) {
            return self.missing.clear();
        }
        let due_ns = now + self.reorder_ns;
        let gap = (1..ahead as u16).map(|i| newest.wrapping_add(i));
        self.missing.extend(gap.map(|sequence| Missing { sequence, due_ns, asked_ns: 0, asked: 0 }));
    }

    /// A missing one is here: if it was asked for once, that took a round trip.
    fn found(&mut self, now: Time, sequence: u16) {
        if let Some(at) = self.missing.iter().position(|m| m.sequence == sequence) {
            let missing = self.missing.remove(at);
            if missing.asked == 1 {
                self.round_trip_ns = (now - missing.asked_ns).max(0);
            }
        }
    }

    // [PROTOCOLS 3.12] retransmission on request
    fn ask(&mut self, now: Time) {
        let again_ns = now + self.round_trip_ns.max(LEAST_WAIT_NS);
        let tries = self.tries;
        self.missing.retain(|m| m.due_ns > now || m.asked < tries);
        let mut due = self.missing.iter_mut().filter(|m| m.due_ns <= now).peekable();
        while due.peek().is_some() {
            let (mut sequences, mut count) = ([0; MOST_REQUESTED], 0);
            for (place, m) in sequences.iter_mut().zip(&mut due) {
                *place = m.sequence;
                count += 1;
                *m = Missing { due_ns: again_ns, asked_ns: now, asked: m.asked + 1, ..*m };
            }
            self.stream.say(Repr::Request { count }, &sequences[..count.into()]);
        }
    }

    fn again(&mut self, sequence: u16) {
        let kept = self.kept.get(usize::from(sequence) % KEPT).filter(|k| k.sequence == sequence);
        if let Some(Kept { transmit, bytes, .. }) = kept {
            self.stream.send_again(*transmit, bytes);
        }
    }
}

/// Puts a copy of a datagram into its place.
fn keep(kept: &mut Vec<Kept>, sequence: u16, transmit: &Transmit, datagram: &[u8]) {
    let at = usize::from(sequence) % KEPT;
    if at == kept.len() {
        kept.push(Kept { sequence, transmit: *transmit, bytes: Vec::new() });
    }
    if let Some(place) = kept.get_mut(at) {
        (place.sequence, place.transmit) = (sequence, *transmit);
        place.bytes.clear();
        place.bytes.extend_from_slice(datagram);
    }
}

impl Endpoint for Nack {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Sample { meta, bytes } => {
                let Self { stream, kept, .. } = self;
                stream.send(&meta, bytes, 0, &[], |sequence, t, datagram| keep(kept, sequence, t, datagram));
            }
            Input::Datagram { bytes, received_ns } => {
                if self.receive(now, bytes, received_ns).is_err() {
                    self.stream.stats.malformed += 1;
                }
            }
            Input::Timeout => {
                self.stream.expire(now);
                self.ask(now);
            }
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.stream.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        let due = self.missing.iter().map(|m| m.due_ns).min();
        self.stream.inbox.poll_timeout().into_iter().chain(due).min()
    }

    fn stats(&self) -> EndpointStats {
        self.stream.stats()
    }
}
