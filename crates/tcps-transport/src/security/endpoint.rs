//! A secured endpoint: seals what another endpoint transmits, and hands it only what verifies.

use super::association::{Association, Opened};
use crate::outbox::Outbox;
use std::collections::VecDeque;
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output, Transmit},
    ids::FlowId,
    record::{DropReason, Kind, Record},
    size::STACK_BYTES,
    time::Time,
};

/// Datagrams that wait for the first keys: the newest; at 1 kHz those of 64 ms.
pub(super) const MOST_HELD: usize = 64;

/// An endpoint inside an association.
pub(super) struct Secured {
    inner: Box<dyn Endpoint>,
    association: Association,
    /// The flow that messages of the association count for.
    flow: FlowId,
    now: Time,
    held: VecDeque<(Transmit, Vec<u8>)>,
    rows: Outbox,
    payload: Vec<u8>,
}

impl Secured {
    pub(super) fn new(inner: Box<dyn Endpoint>, association: Association, flow: FlowId) -> Self {
        let (held, rows, payload) = (VecDeque::new(), Outbox::default(), Vec::new());
        Self { inner, association, flow, now: 0, held, rows, payload }
    }

    fn row(&mut self, reason: DropReason, row: Record) {
        let row = Record { detail: reason as u8, ..row };
        self.rows.push(Output::Record(row), |_| {});
    }

    /// Gives up a datagram that no key may seal.
    fn unkeyed(&mut self, of: Transmit) {
        self.association.count_unkeyed();
        let row = Record::new(self.now, Kind::Dropped);
        self.row(DropReason::Unkeyed, Record { flow: of.flow, index: of.index, size: of.wire_bytes, ..row });
    }

    /// Keeps a datagram until there are keys; the oldest one goes if too many wait.
    fn hold(&mut self, transmit: Transmit, payload: &[u8]) {
        if self.held.len() == MOST_HELD {
            if let Some((old, _)) = self.held.pop_front() {
                self.unkeyed(old);
            }
        }
        self.held.push_back((transmit, payload.to_vec()));
    }

    /// The record or SRTP packet of a payload in `buf`.
    fn seal(&mut self, transmit: Transmit, payload: &[u8], buf: &mut Vec<u8>) -> Option<Output> {
        if !self.association.seal(self.now, payload, buf) {
            self.unkeyed(transmit);
            return None;
        }
        Some(Output::Transmit(Transmit { wire_bytes: buf.len() as u32 + STACK_BYTES, ..transmit }))
    }
}

impl Endpoint for Secured {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        self.now = now;
        self.association.handle_timeout(now);
        match input {
            Input::Timeout => {
                if self.inner.poll_timeout().is_some_and(|at| at <= now) {
                    self.inner.handle_input(now, Input::Timeout);
                }
            }
            Input::Datagram { bytes, received_ns, ecn } => {
                match self.association.open(now, bytes, &mut self.payload) {
                    Opened::Payload => {
                        self.inner
                            .handle_input(now, Input::Datagram { bytes: &self.payload, received_ns, ecn });
                    }
                    Opened::Own => {}
                    Opened::Refused(reason) => {
                        let size = bytes.len() as u32 + STACK_BYTES;
                        self.row(reason, Record { size, ..Record::new(now, Kind::Dropped) });
                    }
                }
            }
            sample @ Input::Sample { .. } => self.inner.handle_input(now, sample),
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        if let Some(row) = self.rows.pop(buf) {
            return Some(row);
        }
        if self.association.poll_message(buf) {
            return Some(Output::Transmit(Transmit::new(buf.len() as u32 + STACK_BYTES, self.flow, 0)));
        }
        while self.association.has_keys() {
            let Some((transmit, payload)) = self.held.pop_front() else { break };
            if let Some(output) = self.seal(transmit, &payload, buf) {
                return Some(output);
            }
        }
        let mut payload = std::mem::take(&mut self.payload);
        let mut found = None;
        while let Some(output) = self.inner.poll_output(&mut payload) {
            found = match output {
                Output::Transmit(transmit) if self.association.has_keys() => {
                    self.seal(transmit, &payload, buf)
                }
                Output::Transmit(transmit) => {
                    self.hold(transmit, &payload);
                    None
                }
                other => {
                    std::mem::swap(buf, &mut payload);
                    Some(other)
                }
            };
            if found.is_some() {
                break;
            }
        }
        self.payload = payload;
        found.or_else(|| self.rows.pop(buf))
    }

    fn poll_timeout(&self) -> Option<Time> {
        let both = [self.association.poll_timeout(), self.inner.poll_timeout()];
        both.into_iter().flatten().min()
    }

    fn merging(&self) -> u16 {
        self.inner.merging()
    }

    fn allowance_bps(&self, flow: FlowId) -> Option<f64> {
        self.inner.allowance_bps(flow)
    }

    fn stats(&self) -> EndpointStats {
        EndpointStats { security: Some(self.association.stats()), ..self.inner.stats() }
    }

    fn failure(&self) -> Option<String> {
        self.inner.failure()
    }
}
