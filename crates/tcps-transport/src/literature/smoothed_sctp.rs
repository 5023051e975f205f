//! Transport `smoothed-sctp`: key samples are sent until acknowledged, and the receiver evens out the delay (after Dodeller
//! & Georganas 2004).
//!
//! ```text
//! sender     key ──► copy kept until its acknowledgement        normal ──► sent once
//! receiver   played out at   origin + smallest transit so far + playout_ns,   in the order of origin
//! ```
//! What comes after its moment is delivered at once if it is a key or newer than what was played out last, else it counts
//! as superseded. The smallest transit takes up the difference of the clocks; a sample that is seconds off it is of another
//! clock and superseded, until there are many in a row.

use super::keys::{is_key, Keyed, Keys};
use crate::{
    channel::{ChannelContext, Side},
    numbered::Heard,
    params::{Mtu, Overhead, Params, Transport, TransportError},
};
use std::collections::BTreeMap;
use tcps_core::{
    endpoint::{Delivery, Endpoint, EndpointStats, Input, Output},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    params,
    record::Kind,
    sample::Meta,
    time::{Time, SECOND},
};
use tcps_wire::Error;

/// Samples that wait for their moment at most; more are played out at once.
const MOST_WAITING: usize = 1024;
/// A transit that differs by more from the smallest is of another clock: nothing is learnt from it.
const OTHER_CLOCK_NS: Time = 10 * SECOND;
/// So many of them in a row are a peer that began again.
const IN_A_ROW: u32 = 50;

params! {
    /// When samples are given out.
    pub(crate) struct Given {
        playout_ns: Time = Ns, "20 ms", 0.0..=100e6, "delay that playout adds to the smallest one";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 8,
    name: "smoothed-sctp",
    doc: "retransmits key samples; the receiver plays out in order (after Dodeller and Georganas 2004)",
    params: &[Mtu::TABLE, Overhead::TABLE, Given::TABLE, Keys::TABLE],
    draws: Draws::No,
    make: Transport::of(|params, side, ctx| Ok(Box::new(SmoothedSctp::from_params(params, side, ctx)?))),
};

/// An endpoint of the transport.
#[derive(Debug)]
pub(crate) struct SmoothedSctp {
    keyed: Keyed,
    playout_ns: Time,
    flows: Vec<Playing>,
    waiting: BTreeMap<(Time, FlowId, u32), (Delivery, Vec<u8>)>,
}

/// A flow at the receiver.
#[derive(Debug, Clone, Copy)]
struct Playing {
    flow: FlowId,
    least_transit_ns: Time,
    newest_origin_ns: Time,
    /// Samples in a row whose transit is of another clock.
    strange: u32,
}

impl SmoothedSctp {
    /// `playout_ns`: what the buffer adds to the smallest delay; `key_every`: every so many samples one is a key;
    /// `tries`: how often a key is sent again at most.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        Ok(Self {
            keyed: Keyed::from_params(params, side, ctx)?,
            playout_ns: params.read::<Given>()?.playout_ns,
            flows: Vec::new(),
            waiting: BTreeMap::new(),
        })
    }

    fn send(&mut self, now: Time, meta: &Meta, sample: &[u8]) {
        let key = self.keyed.is_key(meta);
        self.keyed.send(now, meta, sample, key, || {});
    }

    fn receive(&mut self, now: Time, bytes: &[u8], received_ns: Time) -> Result<(), Error> {
        match self.keyed.receive(now, bytes)? {
            Heard::Data { class, whole: Some(meta), .. } => self.take(now, meta, is_key(class), received_ns),
            Heard::Data { .. } | Heard::Ack { .. } => {}
            Heard::Report { .. } | Heard::Request { .. } => return Err(Error::Unknown),
        }
        Ok(())
    }

    /// A sample is complete: it waits for its moment, or that has passed.
    // [Dodeller 2004]
    fn take(&mut self, now: Time, meta: Meta, is_key: bool, received_ns: Time) {
        let transit_ns = received_ns.saturating_sub(meta.origin_ns);
        let at = match self.flows.iter().position(|f| f.flow == meta.flow) {
            Some(at) => at,
            None => {
                let (flow, least_transit_ns) = (meta.flow, transit_ns);
                self.flows.push(Playing { flow, least_transit_ns, newest_origin_ns: Time::MIN, strange: 0 });
                self.flows.len() - 1
            }
        };
        let flow = &mut self.flows[at];
        if transit_ns.saturating_sub(flow.least_transit_ns).saturating_abs() > OTHER_CLOCK_NS {
            flow.strange += 1;
            if flow.strange < IN_A_ROW {
                return self.keyed.stream.given_up(now, Kind::Superseded, &meta);
            }
            (flow.least_transit_ns, flow.newest_origin_ns) = (transit_ns, Time::MIN);
        }
        flow.strange = 0;
        flow.least_transit_ns = flow.least_transit_ns.min(transit_ns);
        let due = meta.origin_ns.saturating_add(flow.least_transit_ns).saturating_add(self.playout_ns);
        if due > now && self.waiting.len() < MOST_WAITING {
            let entry = (Delivery { meta, received_ns }, self.keyed.stream.sample.clone());
            self.waiting.insert((due, meta.flow, meta.index), entry);
        } else if is_key || meta.origin_ns > flow.newest_origin_ns {
            flow.newest_origin_ns = flow.newest_origin_ns.max(meta.origin_ns);
            self.keyed.stream.deliver(meta, received_ns);
        } else {
            self.keyed.stream.given_up(now, Kind::Superseded, &meta);
        }
    }

    fn play_out(&mut self, now: Time) {
        while let Some(entry) = self.waiting.first_entry().filter(|e| e.key().0 <= now) {
            let (delivery, bytes) = entry.remove();
            let origin_ns = delivery.meta.origin_ns;
            if let Some(flow) = self.flows.iter_mut().find(|f| f.flow == delivery.meta.flow) {
                flow.newest_origin_ns = flow.newest_origin_ns.max(origin_ns);
            }
            self.keyed.stream.outbox.push(Output::Deliver(delivery), |out| out.extend_from_slice(&bytes));
        }
    }
}

impl Endpoint for SmoothedSctp {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Sample { meta, bytes } => self.send(now, &meta, bytes),
            Input::Datagram { bytes, received_ns, .. } => {
                if self.receive(now, bytes, received_ns).is_err() {
                    self.keyed.stream.stats.malformed += 1;
                }
            }
            Input::Timeout => {
                self.keyed.expire(now);
            }
        }
        self.play_out(now);
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.keyed.stream.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        let due = self.waiting.first_key_value().map(|(key, _)| key.0);
        self.keyed.poll_timeout().into_iter().chain(due).min()
    }

    fn stats(&self) -> EndpointStats {
        self.keyed.stats()
    }
}
