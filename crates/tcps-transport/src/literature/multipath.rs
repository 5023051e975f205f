//! Transport `multipath`: two ways at once (after MTIP and multipath TCP; their texts leave bits and schedules open).
//!
//! ```text
//!                         ┌─ code point of the flow ──► first way
//! sample ──► udp datagrams┤        duplicate: both, the receiver keeps what comes first
//!                         └─ `dscp` ─────────────────► second way     split: `share` of them
//! ```
//! A datagram's way is its code point: links that are for one (`dscp` of a link) carry those datagrams alone. Where no link
//! is, both go the same way. What goes out is the format of `udp`; nothing is learnt of the ways.

use crate::{
    channel::{ChannelContext, Side},
    fec::inner,
    params::{Mtu, Overhead, Params, Transport, TransportError},
    udp::Udp,
};
use tcps_core::{
    endpoint::{Again, Endpoint, EndpointStats, Input, Output, Transmit},
    param::{Draws, Entry, Params as _},
    params,
    time::Time,
};

/// What goes which way.
#[derive(Debug, Clone, Copy)]
enum Mode {
    /// Every datagram both ways.
    Duplicate,
    /// This share of them the second way.
    Split(f64),
}

// Code point 3 is one for local use (RFC 2474 §6, pool 2).
params! {
    /// Which way datagrams go.
    pub(crate) struct Given {
        mode: String = Choice(&["duplicate", "split"]), "duplicate", ANY, "every datagram over both paths, or each over one";
        share: Option<f64> = Share, ABSENT, 0.0..=1.0, "with `split`: share of datagrams on the second path; default `\"50 %\"` with `split`";
        // One for local use: RFC 2474 §6, pool 2.
        dscp: u8 = CodePoint, "3", 0.0..=63.0, "code point of packets on the second path";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 6,
    name: "multipath",
    doc: "sends every datagram over two paths, or a share of them over the second",
    params: &[Given::TABLE, Mtu::TABLE, Overhead::TABLE],
    draws: Draws::No,
    make: Transport::of(|params, side, ctx| Ok(Box::new(Multipath::from_params(params, side, ctx)?))),
};

/// An endpoint of the transport.
#[derive(Debug)]
pub(crate) struct Multipath {
    inner: Udp,
    mode: Mode,
    dscp: u8,
    /// The copy that goes the second way next.
    copy: Option<Transmit>,
    datagram: Vec<u8>,
    /// Datagrams that the second way is owed.
    owed: f64,
}

impl Multipath {
    /// `mode`: duplicate or split; `share`: of the second way when split; `dscp`: its code point; the rest is `udp`'s.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let Given { mode, share, dscp } = params.read()?;
        let split = mode == "split";
        if share.is_some() && !split {
            return Err(params.refuse("share", "with mode \"split\" only"));
        }
        Ok(Self {
            inner: inner(params, side, ctx)?,
            mode: if split { Mode::Split(share.unwrap_or(0.5)) } else { Mode::Duplicate },
            dscp,
            copy: None,
            datagram: Vec::new(),
            owed: 0.0,
        })
    }

    /// Chooses the way of a datagram.
    // [model: several paths] several paths: duplicate or split over two links
    fn choose(&mut self, transmit: &mut Transmit, bytes: &[u8]) {
        match self.mode {
            Mode::Duplicate => {
                self.copy = Some(transmit.again(Again::All));
                self.datagram.clear();
                self.datagram.extend_from_slice(bytes);
            }
            Mode::Split(share) => {
                self.owed += share;
                if self.owed >= 1.0 {
                    self.owed -= 1.0;
                    transmit.dscp = Some(self.dscp);
                }
            }
        }
    }
}

impl Endpoint for Multipath {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        self.inner.handle_input(now, input);
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        if let Some(transmit) = self.copy.take() {
            buf.clear();
            buf.extend_from_slice(&self.datagram);
            return Some(Output::Transmit(Transmit { dscp: Some(self.dscp), ..transmit }));
        }
        let mut output = self.inner.poll_output(buf);
        if let Some(Output::Transmit(transmit)) = &mut output {
            self.choose(transmit, buf);
        }
        output
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn stats(&self) -> EndpointStats {
        self.inner.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};
    use tcps_core::{ids::FlowId, sample::Meta};

    /// Code points of the datagrams of five samples, and how many of what arrives is new.
    fn ways(params: Value) -> (Vec<Option<u8>>, usize, u64) {
        let ctx = ChannelContext::of(&[(1, Side::B, "haptic")]);
        let make = |side| Multipath::from_params(&Params::new("multipath", &params), side, &ctx).unwrap();
        let (mut a, mut b, mut buf, mut ways, mut new) =
            (make(Side::A), make(Side::B), Vec::new(), Vec::new(), 0);
        for index in 0..5 {
            let meta = Meta { flow: FlowId(1), index, origin_ns: 0, echo: None };
            a.handle_input(0, Input::Sample { meta, bytes: &[7; 12] });
            let mut datagram = Vec::new();
            while let Some(Output::Transmit(transmit)) = a.poll_output(&mut datagram) {
                ways.push(transmit.dscp);
                b.handle_input(0, Input::datagram(&datagram, 0));
                while let Some(output) = b.poll_output(&mut buf) {
                    new += usize::from(matches!(output, Output::Deliver(_)) && buf == [7; 12]);
                }
            }
        }
        (ways, new, b.stats().duplicates)
    }

    // [model: several paths]
    #[test]
    fn datagrams_go_both_ways_or_each_its_own() {
        assert_eq!(ways(json!({})), ([None, Some(3)].repeat(5), 5, 5));
        let split = [None, Some(9), None, Some(9), None];
        assert_eq!(ways(json!({"mode": "split", "dscp": 9})), (split.to_vec(), 5, 0));
        assert_eq!(ways(json!({"mode": "split", "share": 0.0})).0, [None; 5]);
        let ctx = ChannelContext::default();
        let params = json!({"share": 0.5});
        assert!(Multipath::from_params(&Params::new("multipath", &params), Side::A, &ctx).is_err());
    }
}
