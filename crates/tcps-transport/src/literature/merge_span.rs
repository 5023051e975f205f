//! Transport `merge-span`: the samples of a fixed span of time in one datagram (after Fujimoto & Ishibashi 2005).
//!
//! ```text
//! sample ──► run ──► 8 ms since the first was made? ──► datagram
//! ```
//! Eight samples at 1 kHz do not fit the 3 bits that the telehaptic header has for their number; a bundle counts to 255.
//! Samples over 256 B (frames of a picture) do not wait for others.

use super::bundling::{Bundler, PART_BYTES};
use crate::{
    channel::{ChannelContext, Side},
    params::{Overhead, Params, Transport, TransportError},
    udp::MAX_SAMPLE_BYTES,
};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    param::{Draws, Entry, Params as _},
    params,
    sample::Meta,
    time::{Time, MS},
};

/// A sample that is longer does not wait.
const LONGEST_BYTES: usize = 256;

params! {
    /// What is merged.
    pub(crate) struct Given {
        span_ns: Time = Ns, "8 ms", 1e6..=50e6, "span of the samples in a packet";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 5,
    name: "merge-span",
    doc: "puts the samples of a fixed span into one packet (after Fujimoto and Ishibashi 2005)",
    params: &[Overhead::TABLE, Given::TABLE],
    draws: Draws::No,
    make: Transport::of(|params, side, ctx| Ok(Box::new(MergeSpan::from_params(params, side, ctx)?))),
};

/// An endpoint of the transport.
#[derive(Debug)]
pub(crate) struct MergeSpan {
    bundler: Bundler,
    span_ns: Time,
    /// Shortest time between samples of a flow that leaves here.
    period_ns: Time,
    /// When the first of those that wait came.
    first_ns: Option<Time>,
    merged: u16,
}

impl MergeSpan {
    /// `span_ns`: samples of so much time travel together.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let periods = ctx.flows.iter().filter(|f| f.to != side).map(|f| f.period_ns);
        Ok(Self {
            bundler: Bundler::from_params(params, side, ctx)?,
            span_ns: params.read::<Given>()?.span_ns,
            period_ns: periods.min().unwrap_or(MS),
            first_ns: None,
            merged: 1,
        })
    }

    // [Fujimoto 2005] fixed merging over 8 ms
    fn send(&mut self, now: Time, meta: &Meta, sample: &[u8]) {
        if sample.len() > LONGEST_BYTES {
            return self.send_frame(meta, sample);
        }
        if !self.bundler.add(meta, sample) {
            self.flush();
            self.bundler.add(meta, sample);
        }
        // The last sample of a span leaves when it is made: its span is over one period later.
        let first_ns = *self.first_ns.get_or_insert(now);
        if now >= first_ns + self.span_ns - self.period_ns.min(self.span_ns) {
            self.flush();
        }
    }

    fn send_frame(&mut self, meta: &Meta, frame: &[u8]) {
        if frame.len() > MAX_SAMPLE_BYTES {
            self.bundler.stats.malformed += 1;
            return;
        }
        self.flush();
        for offset in (0..frame.len()).step_by(PART_BYTES) {
            self.bundler.add_part(meta, frame, offset, PART_BYTES.min(frame.len() - offset));
            self.bundler.flush();
        }
    }

    fn flush(&mut self) {
        self.first_ns = None;
        self.bundler.flush();
        self.merged = (self.span_ns / self.period_ns.max(1)).clamp(1, 255) as u16;
    }
}

impl Endpoint for MergeSpan {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Sample { meta, bytes } => self.send(now, &meta, bytes),
            Input::Datagram { bytes, received_ns, .. } => self.bundler.datagram(now, bytes, received_ns),
            Input::Timeout if self.poll_timeout().is_some_and(|t| t <= now) => self.flush(),
            Input::Timeout => {}
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.bundler.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.first_ns.map(|t| t + self.span_ns)
    }

    fn merging(&self) -> u16 {
        self.merged
    }

    fn stats(&self) -> EndpointStats {
        self.bundler.stats()
    }
}
