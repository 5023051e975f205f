//! Transport `repeat`: FEC(n, t), every datagram n + 1 times, copies at least t apart (Hudson et al. 2001).
//!
//! ```text
//! message i at T_i     copy j is due at T_i + j t; of copies that are due together the older message goes first
//! loss after it        independent: p^(n+1); in bursts: p * P(lost at t | lost) * ...
//! ```
//! The receiver keeps the first copy and needs to know neither n nor t.

use super::inner;
use crate::{
    channel::{ChannelContext, Side},
    params::{Mtu, Overhead, Params, Transport, TransportError},
    udp::Udp,
};
use std::{cmp::Reverse, collections::BinaryHeap};
use tcps_core::{
    endpoint::{Again, Endpoint, EndpointStats, Input, Output, Transmit},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    params,
    time::Time,
};

/// A copy that waits: when it is due, its message, what it is accounted as, its bytes.
type Copy = Reverse<(Time, u64, u32, FlowId, u32, Vec<u8>)>;

params! {
    /// What is repeated.
    pub(crate) struct Given {
        copies: u32 = Count, "1", 0.0..=16.0, "repetitions of a datagram";
        spacing_ns: Time = Ns, "15 ms", 0.0..=10e9, "time between repetitions";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 14,
    name: "repeat",
    doc: "every datagram repeated at fixed intervals",
    params: &[Given::TABLE, Mtu::TABLE, Overhead::TABLE],
    draws: Draws::No,
    make: Transport::of(|params, side, ctx| Ok(Box::new(Repeat::from_params(params, side, ctx)?))),
};

/// An endpoint of the `repeat` transport.
#[derive(Debug)]
pub(crate) struct Repeat {
    inner: Udp,
    copies: u32,
    spacing_ns: Time,
    waiting: BinaryHeap<Copy>,
    messages: u64,
    now: Time,
}

impl Repeat {
    /// The endpoint at `side`: `copies` is n, `spacing` is t, the rest is that of `udp`.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let Given { copies, spacing_ns } = params.read()?;
        Ok(Self {
            inner: inner(params, side, ctx)?,
            copies,
            spacing_ns,
            waiting: BinaryHeap::new(),
            messages: 0,
            now: 0,
        })
    }

    fn due(&self) -> Option<Time> {
        self.waiting.peek().map(|Reverse(copy)| copy.0)
    }

    // [Hudson 2001: repetition]
    fn plan(&mut self, t: &Transmit, bytes: &[u8]) {
        for j in 1..=self.copies {
            let due_ns = self.now + Time::from(j) * self.spacing_ns;
            let copy = (due_ns, self.messages, t.wire_bytes, t.flow, t.index, bytes.to_vec());
            self.waiting.push(Reverse(copy));
        }
        self.messages += 1;
    }
}

impl Endpoint for Repeat {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        self.now = now;
        let inner_due = self.inner.poll_timeout().is_some_and(|t| t <= now);
        if !matches!(input, Input::Timeout) || inner_due {
            self.inner.handle_input(now, input);
        }
    }

    /// Copies that are due go before anything newer.
    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        if self.due().is_some_and(|t| t <= self.now) {
            let Reverse((_, _, wire_bytes, flow, index, bytes)) = self.waiting.pop()?;
            buf.clear();
            buf.extend_from_slice(&bytes);
            return Some(Output::Transmit(Transmit::new(wire_bytes, flow, index).again(Again::All)));
        }
        let output = self.inner.poll_output(buf);
        if let Some(Output::Transmit(t)) = &output {
            self.plan(t, buf);
        }
        output
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.due().into_iter().chain(self.inner.poll_timeout()).min()
    }

    fn stats(&self) -> EndpointStats {
        self.inner.stats()
    }
}
