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
    params::{Mtu, Overhead, Params, Transport, TransportError},
    udp::{Udp, STACK_BYTES},
};
use tcps_core::{
    endpoint::{Again, Endpoint, EndpointStats, Input, Output, Transmit},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    params,
    time::Time,
};
use tcps_wire::fec::{Repr, FIRST_PARITY, HEADER_BYTES, MAX_DATA, MAX_PARITY};

params! {
    /// Of its blocks.
    pub(crate) struct Given {
        code: String = Choice(&["reed_solomon", "xor"]), "reed_solomon", ANY, "code of the parity";
        data: u8 = Count, "4", 1.0..=MAX_DATA as f64, "packets of a block";
        parity: u8 = Count, "1", 1.0..=MAX_PARITY as f64, "parity packets per block; 1 with xor";
        window_ns: Time = Ns, "8 ms", 0.0..=8e6, "longest time until a block is closed";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 13,
    name: "parity",
    doc: "parity packets after each block",
    params: &[Given::TABLE, Mtu::TABLE, Overhead::TABLE],
    draws: Draws::No,
    make: Transport::of(|params, side, ctx| Ok(Box::new(Parity::from_params(params, side, ctx)?))),
};

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
    newest: (FlowId, u32),
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
        let Given { code, data, parity, window_ns } = params.read()?;
        let code = if code == "xor" { Code::Xor } else { Code::ReedSolomon };
        if code == Code::Xor && parity > 1 {
            return Err(params.refuse("parity", "1 with code = xor"));
        }
        Ok(Self {
            inner: inner(params, side, ctx)?,
            code,
            data,
            parity,
            window_ns,
            overhead_bytes: params.read::<Overhead>()?.overhead_bytes,
            block: 0,
            open: Vec::new(),
            closes_ns: None,
            newest: (FlowId(0), 0),
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
            let transmit = Transmit::new(wire_bytes, flow, index).again(Again::All);
            self.out.push(Output::Transmit(transmit), |out| {
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
            self.inner.handle_input(now, Input::datagram(body, received_ns));
        }
        match self.blocks.add(self.code, &repr, body) {
            Err(_) => self.stats.malformed += 1,
            Ok(recovered) => {
                for datagram in recovered {
                    self.stats.recovered += 1;
                    self.inner.handle_input(now, Input::datagram(&datagram, received_ns));
                }
            }
        }
    }
}

impl Endpoint for Parity {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram { bytes, received_ns, .. } => self.receive(now, bytes, received_ns),
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
