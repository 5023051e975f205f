//! Transport `coarse-copy`: each datagram carries a coarser copy of an earlier sample of its flow.
//!
//! ```text
//! datagram of sample i    prefix, class = length of the copy │ copy of sample i - distance │ header │ sample i
//! copy                    index difference (1) │ origin difference, ns (4) │ the upper half of each 4-byte word
//! ```
//! The upper half of a 4-byte float has its sign, its exponent and 7 bits of its fraction: an error below 0.4 %. A lost
//! sample is replaced by its copy `distance` samples later; samples of other lengths than words, or over 256 B, travel
//! without a copy.

use crate::{
    channel::{ChannelContext, ChannelFlow, Side},
    inbox::Taken,
    numbered::{Heard, Numbered},
    params::{Mtu, Overhead, Params, Transport, TransportError},
};
use std::collections::VecDeque;
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    params,
    sample::Meta,
    time::Time,
};
use tcps_wire::{header, stream::Packet, Error};

const MOST_BYTES: usize = 256;
const BEFORE_COPY: usize = 5;
/// Bytes that a copy adds to a datagram at most.
const MOST_EXTRA: usize = BEFORE_COPY + MOST_BYTES / 2;
/// The lower half of a word of a copy: the middle of what it may have been.
const MIDDLE: [u8; 2] = [0x80, 0];

params! {
    /// How far back it looks.
    pub(crate) struct Given {
        distance: usize = Count, "2", 1.0..=32.0, "age of the copied sample, in samples";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 3,
    name: "coarse-copy",
    doc: "each packet also carries the upper halves of the 4-byte values of an earlier sample",
    params: &[Mtu::TABLE, Overhead::TABLE, Given::TABLE],
    draws: Draws::No,
    make: Transport::of(|params, side, ctx| Ok(Box::new(CoarseCopy::from_params(params, side, ctx)?))),
};

/// An endpoint of the transport.
#[derive(Debug)]
pub(crate) struct CoarseCopy {
    stream: Numbered,
    distance: usize,
    flows: Vec<Outbound>,
    extra: Vec<u8>,
    restored: Vec<u8>,
}

/// The last samples of a flow, coarse.
#[derive(Debug, Default)]
struct Outbound {
    flow: FlowId,
    coarse: VecDeque<(u32, Time, Vec<u8>)>,
}

impl CoarseCopy {
    /// `distance`: how many samples later the copy of a sample is sent.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let outbound = |f: &ChannelFlow| Outbound { flow: f.flow, ..Outbound::default() };
        Ok(Self {
            stream: Numbered::from_params(params, side, ctx, MOST_EXTRA)?,
            distance: params.read::<Given>()?.distance,
            flows: ctx.flows.iter().filter(|f| f.to != side).map(outbound).collect(),
            extra: Vec::new(),
            restored: Vec::new(),
        })
    }

    // [model: coarse copy] redundancy with a coarser copy of the sample
    fn send(&mut self, meta: &Meta, sample: &[u8]) {
        self.extra.clear();
        if let Some(flow) = self.flows.iter_mut().find(|f| f.flow == meta.flow) {
            flow.copy(meta, self.distance, &mut self.extra);
            flow.remember(meta, sample, self.distance);
        }
        self.stream.send(meta, sample, self.extra.len() as u8, &self.extra, |_, _, _| {});
    }

    fn receive(&mut self, now: Time, bytes: &[u8], received_ns: Time) -> Result<(), Error> {
        let Heard::Data { class, whole, .. } = self.stream.receive(now, bytes, usize::from)? else {
            return Err(Error::Unknown);
        };
        let Some(meta) = whole else { return Ok(()) };
        if class > 0 {
            let body = Packet::new_checked(bytes)?;
            self.restore(now, &meta, body.body().get(..class.into()).unwrap_or(&[]), received_ns)?;
        }
        self.stream.deliver(meta, received_ns);
        Ok(())
    }

    /// Delivers the sample of a copy, unless it has been had.
    fn restore(&mut self, now: Time, meta: &Meta, copy: &[u8], received_ns: Time) -> Result<(), Error> {
        let (Some((&[back, a, b, c, d], coarse)), true) = (copy.split_first_chunk(), copy.len() % 2 == 1)
        else {
            return Err(Error::Contradiction);
        };
        self.restored.clear();
        for half in coarse.chunks_exact(2) {
            self.restored.extend_from_slice(half);
            self.restored.extend_from_slice(&MIDDLE);
        }
        let index = meta.index.wrapping_sub(back.into());
        let origin_ns = meta.origin_ns.saturating_sub(u32::from_be_bytes([a, b, c, d]).into());
        let part = header::Repr::whole(&Meta { index, origin_ns, ..*meta }, self.restored.len(), false);
        if let Taken::Whole(meta, _) = self.stream.inbox.take(now, &part, &[], &[])? {
            std::mem::swap(&mut self.stream.sample, &mut self.restored);
            self.stream.deliver(meta, received_ns);
            std::mem::swap(&mut self.stream.sample, &mut self.restored);
        }
        Ok(())
    }
}

impl Outbound {
    /// Writes the copy that travels with the sample.
    fn copy(&self, meta: &Meta, distance: usize, out: &mut Vec<u8>) {
        let Some((index, origin_ns, coarse)) = self.coarse.front().filter(|_| self.coarse.len() == distance)
        else {
            return;
        };
        let back = u8::try_from(meta.index.wrapping_sub(*index));
        let ago = u32::try_from(meta.origin_ns.saturating_sub(*origin_ns));
        if let (Ok(back), Ok(ago)) = (back, ago) {
            out.push(back);
            out.extend_from_slice(&ago.to_be_bytes());
            out.extend_from_slice(coarse);
        }
    }

    fn remember(&mut self, meta: &Meta, sample: &[u8], distance: usize) {
        if sample.is_empty() || !sample.len().is_multiple_of(4) || sample.len() > MOST_BYTES {
            return self.coarse.clear();
        }
        let full = self.coarse.len() == distance;
        let mut room = if full { self.coarse.pop_front() } else { None }.unwrap_or_default();
        (room.0, room.1) = (meta.index, meta.origin_ns);
        room.2.clear();
        sample.chunks_exact(4).for_each(|word| room.2.extend_from_slice(&word[..2]));
        self.coarse.push_back(room);
    }
}

impl Endpoint for CoarseCopy {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Sample { meta, bytes } => self.send(&meta, bytes),
            Input::Datagram { bytes, received_ns, .. } => {
                if self.receive(now, bytes, received_ns).is_err() {
                    self.stream.stats.malformed += 1;
                }
            }
            Input::Timeout => self.stream.expire(now),
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.stream.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.stream.inbox.poll_timeout()
    }

    fn stats(&self) -> EndpointStats {
        self.stream.stats()
    }
}
