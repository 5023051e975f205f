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

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox() -> Inbox {
        Inbox::new(Side::B, &ChannelContext::of(&[(1, Side::B, "video")]))
    }

    fn take(inbox: &mut Inbox, now: Time, part: &Repr) -> Result<bool, Error> {
        let payload = vec![0; part.payload_bytes()];
        inbox.take(now, part, &payload, &[]).map(|taken| matches!(taken, Taken::Kept))
    }

    fn part(fragment: u16, length: usize, fragments: u16) -> Repr {
        let (flow, length) = (FlowId(1), length as u32);
        Repr { flow, index: 0, origin_ns: 0, length, fragment, fragments, has_echo: false }
    }

    /// A receiver reserves what a header announces, so that anybody's header could fill its memory.
    #[test]
    fn no_part_makes_a_receiver_reserve_more_than_the_largest_sample() {
        let mut inbox = inbox();
        assert_eq!(take(&mut inbox, 0, &part(0, MAX_SAMPLE_BYTES + 1, 20_000)), Err(Error::TooLong));
        assert_eq!(inbox.poll_timeout(), None, "nothing of it is kept");
        assert_eq!(take(&mut inbox, 0, &part(0, MAX_SAMPLE_BYTES, 20_000)), Ok(true));
    }

    /// Otherwise samples of which a part is lost would hold their memory for ever.
    #[test]
    fn a_sample_in_parts_is_given_up_when_nothing_of_it_came_for_its_patience() {
        let mut inbox = inbox();
        for (now, fragment) in [(5, 0), (9, 1)] {
            assert_eq!(take(&mut inbox, now, &part(fragment, 300, 3)), Ok(true));
        }
        assert_eq!(inbox.poll_timeout(), Some(5 + PATIENCE_NS));
        inbox.expire(5 + PATIENCE_NS);
        assert_eq!((inbox.incomplete(), inbox.poll_timeout()), (0, Some(9 + PATIENCE_NS)));
        inbox.expire(9 + PATIENCE_NS);
        assert_eq!((inbox.incomplete(), inbox.poll_timeout()), (1, None));
    }
}
