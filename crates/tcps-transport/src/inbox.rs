//! Samples that arrive on a channel, whole or in parts, each once.

use crate::{
    channel::{ChannelContext, Side},
    had::Had,
    reassembly::{Outcome, Reassembly, PATIENCE_NS},
    udp::{tag, MAX_SAMPLE_BYTES},
};
use tcps_core::{ids::FlowId, sample::Meta, time::Time};
use tcps_wire::{header::Repr, Error};

/// The flows that arrive at one side.
#[derive(Debug)]
pub(crate) struct Inbox {
    flows: Vec<Inbound>,
    wake_ns: Option<Time>,
}

#[derive(Debug)]
struct Inbound {
    flow: FlowId,
    had: Had,
    parts: Reassembly,
}

/// What became of a part of a sample.
#[derive(Debug)]
pub(crate) enum Taken<'a> {
    /// Kept until the rest comes, or too late for that.
    Kept,
    /// It has been had.
    Repeated,
    /// With it a sample is complete.
    Whole(Meta, &'a [u8]),
}

impl Inbox {
    pub(crate) fn new(side: Side, ctx: &ChannelContext) -> Self {
        let inbound = |flow| Inbound { flow, had: Had::new(), parts: Reassembly::new() };
        Self { flows: ctx.arriving_at(side).map(inbound).collect(), wake_ns: None }
    }

    /// Takes a part; the error is that no such part can be.
    pub(crate) fn take<'a>(
        &'a mut self,
        now: Time,
        part: &Repr,
        payload: &'a [u8],
        trailer: &[u8],
    ) -> Result<Taken<'a>, Error> {
        if part.length as usize > MAX_SAMPLE_BYTES {
            return Err(Error::TooLong);
        }
        let echo = if part.has_echo { Some(tag(trailer)?) } else { None };
        let inbound = self.flows.iter_mut().find(|i| i.flow == part.flow).ok_or(Error::Unknown)?;
        if !inbound.had.is_new(part.index, part.origin_ns) {
            return Ok(Taken::Repeated);
        }
        if part.fragments == 1 {
            inbound.had.mark(part.index, part.origin_ns);
            let meta = Meta { flow: part.flow, index: part.index, origin_ns: part.origin_ns, echo };
            return Ok(Taken::Whole(meta, payload));
        }
        self.wake_ns.get_or_insert(now + PATIENCE_NS);
        Ok(match inbound.parts.add(now, part, payload, echo)? {
            Outcome::Kept | Outcome::TooLate => Taken::Kept,
            Outcome::Repeated => Taken::Repeated,
            Outcome::Complete(meta, sample) => {
                inbound.had.mark(part.index, part.origin_ns);
                Taken::Whole(meta, sample)
            }
        })
    }

    /// Gives up samples that wait in vain.
    pub(crate) fn expire(&mut self, now: Time) {
        if self.wake_ns.is_some_and(|t| t <= now) {
            self.wake_ns = self.flows.iter_mut().filter_map(|i| i.parts.expire(now)).min();
        }
    }

    /// When `expire` is wanted; it may find nothing to do.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.wake_ns
    }

    /// Samples given up so far.
    pub(crate) fn incomplete(&self) -> u64 {
        self.flows.iter().map(|i| i.parts.incomplete()).sum()
    }
}
