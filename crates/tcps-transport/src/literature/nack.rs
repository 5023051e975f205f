//! Transport `nack`: what the receiver misses it asks for, once or twice.
//!
//! ```text
//! sender     keeps its last 512 datagrams ◄──────────────────── request: sequences
//! receiver   a gap in the sequence ──► wait for reordering ──► ask ──► ask again after a round trip, at least 20 ms
//! ```
//! What is asked for comes 1.5 to 2 round trips after it was first sent; a sample that comes late is delivered late.

use crate::{
    channel::{ChannelContext, Side},
    missing::Missing,
    numbered::{Heard, Numbered},
    params::{Mtu, Overhead, Params, Transport, TransportError},
};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output, Transmit},
    param::{Draws, Entry, Params as _},
    params,
    time::Time,
};
use tcps_wire::{
    stream::{Packet, Repr, MOST_REQUESTED},
    Error,
};

const KEPT: usize = 512;

params! {
    /// What is asked for.
    pub(crate) struct Given {
        reorder_ns: Time = Ns, "1 ms", 0.0..=1e9, "how long a gap may be due to reordering";
        tries: u32 = Count, "2", 1.0..=10.0, "most requests for a sample";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 7,
    name: "nack",
    doc: "the receiver requests missing sequence numbers",
    params: &[Mtu::TABLE, Overhead::TABLE, Given::TABLE],
    draws: Draws::No,
    make: Transport::of(|params, side, ctx| Ok(Box::new(Nack::from_params(params, side, ctx)?))),
};

/// An endpoint of the transport.
#[derive(Debug)]
pub(crate) struct Nack {
    stream: Numbered,
    kept: Vec<Kept>,
    missing: Missing,
}

#[derive(Debug, Clone)]
struct Kept {
    sequence: u16,
    transmit: Transmit,
    bytes: Vec<u8>,
}

impl Nack {
    /// `reorder_ns`: how long a gap may come from reordering; `tries`: how often it is asked for at most.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let Given { reorder_ns, tries } = params.read()?;
        Ok(Self {
            stream: Numbered::from_params(params, side, ctx, 0)?,
            kept: Vec::new(),
            missing: Missing::new(reorder_ns, tries),
        })
    }

    fn receive(&mut self, now: Time, bytes: &[u8], received_ns: Time) -> Result<(), Error> {
        match self.stream.receive(now, bytes, |_| 0)? {
            Heard::Data { sequence, whole, .. } => {
                if let Some(meta) = whole {
                    self.stream.deliver(meta, received_ns);
                }
                self.missing.note(now, sequence);
            }
            Heard::Request { count } => {
                let request = Packet::new_checked(bytes)?;
                (0..usize::from(count)).for_each(|i| self.again(request.requested(i)));
            }
            Heard::Ack { .. } | Heard::Report { .. } => return Err(Error::Unknown),
        }
        Ok(())
    }

    // [RFC 4588] retransmission on request
    fn ask(&mut self, now: Time) {
        loop {
            let numbers = self.missing.due(now, MOST_REQUESTED);
            if numbers.is_empty() {
                return;
            }
            self.stream.say(Repr::Request { count: numbers.len() as u8 }, &numbers);
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
            Input::Datagram { bytes, received_ns, .. } => {
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
        self.stream.inbox.poll_timeout().into_iter().chain(self.missing.poll_timeout()).min()
    }

    fn stats(&self) -> EndpointStats {
        self.stream.stats()
    }
}
