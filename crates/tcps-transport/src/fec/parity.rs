//! Transport `parity`: datagrams go out at once, and after `data` of them, or the window, parity for the block.
//!
//! ```text
//! loss after k of k + m:  p * P(at least m of the other k + m - 1 are lost)
//! ```
//! The window (at most 8 ms) bounds how long a lost sample can wait for its parity.

use super::{
    block::{symbol, Blocks},
    code::Code,
    inner,
};
use crate::{
    channel::{ChannelContext, Side},
    outbox::Outbox,
    params::{Params, TransportError},
    udp::{Udp, STACK_BYTES},
};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output, Transmit},
    time::{Time, MS},
};
use tcps_wire::fec::{Repr, FIRST_PARITY, HEADER_BYTES, MAX_DATA, MAX_PARITY};

/// An endpoint of the `parity` transport.
#[derive(Debug)]
pub(crate) struct Parity {
    inner: Udp,
    code: Code,
    data: u8,
    parity: u8,
    window_ns: Time,
    overhead_bytes: Option<u32>,
    block: u32,
    open: Vec<Vec<u8>>,
    closes_ns: Option<Time>,
    newest: (u16, u32),
    blocks: Blocks,
    out: Outbox,
    scratch: Vec<u8>,
    stats: EndpointStats,
}

impl Parity {
    /// The endpoint at `side`: `code`, `data` (k), `parity` (m), `window`; the rest is that of `udp`.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        params.allow(&["code", "data", "parity", "window_ns", "mtu_bytes", "overhead_bytes"])?;
        let code = match params.choice("code", &["xor", "reed_solomon"])? {
            Some("xor") => Code::Xor,
            _ => Code::ReedSolomon,
        };
        let most = if code == Code::Xor { 1 } else { u32::from(MAX_PARITY) };
        Ok(Self {
            inner: inner(params, side, ctx)?,
            code,
            data: params.integer("data", 1..=MAX_DATA.into())?.unwrap_or(4) as u8,
            parity: params.integer("parity", 1..=most)?.unwrap_or(1) as u8,
            window_ns: params.span_ns("window_ns", 0..=8 * MS)?.unwrap_or(8 * MS),
            overhead_bytes: params.integer("overhead_bytes", 0..=65_535)?,
            block: 0,
            open: Vec::new(),
            closes_ns: None,
            newest: (0, 0),
            blocks: Blocks::default(),
            out: Outbox::default(),
            scratch: Vec::new(),
            stats: EndpointStats::default(),
        })
    }

    /// Moves what the inner endpoint wants done; its datagrams join the open block.
    fn pump(&mut self, now: Time) {
        let mut scratch = std::mem::take(&mut self.scratch);
        while let Some(output) = self.inner.poll_output(&mut scratch) {
            match output {
                Output::Transmit(t) => self.send(now, &t, &scratch),
                other => self.out.push(other, |out| out.extend_from_slice(&scratch)),
            }
        }
        self.scratch = scratch;
    }

    fn send(&mut self, now: Time, t: &Transmit, datagram: &[u8]) {
        let place = self.open.len() as u8;
        let repr = Repr { place, data: 0, parity: self.parity, block: self.block };
        let header = if self.overhead_bytes.is_some() { 0 } else { HEADER_BYTES as u32 };
        let output = Output::Transmit(Transmit { wire_bytes: t.wire_bytes + header, ..*t });
        self.out.push(output, |out| {
            repr.emit(out);
            out.extend_from_slice(datagram);
        });
        self.open.push(symbol(datagram));
        self.newest = (t.flow, t.index);
        self.closes_ns = self.closes_ns.or(Some(now + self.window_ns));
        if self.open.len() == usize::from(self.data) {
            self.close();
        }
    }

    /// Sends the parity of the open block and begins the next one.
    // [Hudson 2001: repetition]
    fn close(&mut self) {
        let (flow, index) = self.newest;
        for row in 0..self.parity {
            let symbol = self.code.parity(row.into(), &self.open);
            let size = self.open.len() as u8;
            let repr = Repr { place: FIRST_PARITY + row, data: size, parity: self.parity, block: self.block };
            let wire_bytes =
                symbol.len() as u32 + self.overhead_bytes.unwrap_or(HEADER_BYTES as u32 + STACK_BYTES);
            self.out.push(Output::Transmit(Transmit { wire_bytes, flow, index }), |out| {
                repr.emit(out);
                out.extend_from_slice(&symbol);
            });
        }
        self.open.clear();
        self.closes_ns = None;
        self.block = self.block.wrapping_add(1);
    }

    fn receive(&mut self, now: Time, bytes: &[u8], received_ns: Time) {
        let parsed = Repr::parse(bytes);
        let Ok((repr, body)) = parsed else {
            self.stats.malformed += 1;
            return;
        };
        if repr.data == 0 {
            self.inner.handle_input(now, Input::Datagram { bytes: body, received_ns });
        }
        match self.blocks.add(self.code, &repr, body) {
            Err(_) => self.stats.malformed += 1,
            Ok(recovered) => {
                for datagram in recovered {
                    self.stats.recovered += 1;
                    self.inner.handle_input(now, Input::Datagram { bytes: &datagram, received_ns });
                }
            }
        }
    }
}

impl Endpoint for Parity {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram { bytes, received_ns } => self.receive(now, bytes, received_ns),
            Input::Sample { .. } => self.inner.handle_input(now, input),
            Input::Timeout => {
                if self.closes_ns.is_some_and(|t| t <= now) {
                    self.close();
                }
                if self.inner.poll_timeout().is_some_and(|t| t <= now) {
                    self.inner.handle_input(now, input);
                }
            }
        }
        self.pump(now);
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.out.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.closes_ns.into_iter().chain(self.inner.poll_timeout()).min()
    }

    fn stats(&self) -> EndpointStats {
        let inner = self.inner.stats();
        let malformed = inner.malformed + self.stats.malformed;
        EndpointStats { malformed, recovered: self.stats.recovered, ..inner }
    }
}
