//! Background traffic. A new source is a file here and its line in `SOURCES`.

mod arrivals;
pub mod cbr;
pub mod frames;
mod own;
pub mod poisson;
pub mod replay;
pub mod vbr;

pub use arrivals::{spacing_ns, Arrivals, MakeSource};

use crate::error::NetError;
use crate::own::ForeignCode;
use crate::packet::{Packet, BACKGROUND};
use serde_json::Value;
use tcps_core::{
    endpoint::Ecn,
    ids::{TrafficId, VertexId},
    param::{Entry, Fault, Named},
    seed::Stream,
    time::{Time, NEVER},
};
use tcps_plan::net::{traffic_class, NetworkSpec, Played, TrafficModel, TrafficSpec};

/// The sources by name.
pub const SOURCES: &[&Entry<MakeSource>] = &[&cbr::ENTRY, &poisson::ENTRY, &vbr::ENTRY];

/// The parameters of a source, checked and completed.
pub fn checked(source: &Named) -> Result<Value, Fault> {
    let (entry, params) = source.of(SOURCES)?;
    (entry.make)(&params, Stream::new(0, "")).map(|_| params)
}

/// The model of a traffic entry of a network.
pub fn build(
    network: &NetworkSpec,
    spec: &TrafficSpec,
    seed: u64,
    code: &mut dyn ForeignCode,
) -> Result<Box<dyn Arrivals>, NetError> {
    let place = format!("traffic.{}", spec.name);
    let played = |number: u16| network.recordings.get(usize::from(number)).cloned().unwrap_or_default();
    Ok(match &spec.model {
        TrafficModel::Source(source) if source.is_code() => {
            let made = code.source(source, &spec.name, seed);
            let made = made.map_err(|e| NetError::code(place, "kind", e))?;
            Box::new(own::OwnSource::new(made, &source.kind, &spec.name))
        }
        TrafficModel::Source(source) => {
            let stream = Stream::new(seed, &place);
            let made = source.of(SOURCES).and_then(|(entry, params)| (entry.make)(&params, stream));
            made.map_err(|fault| NetError::at(place, fault))?
        }
        TrafficModel::Played(Played::Frames { recording, loop_ns, packet_bytes, overhead_bytes }) => {
            Box::new(frames::Frames::new(played(*recording), *loop_ns, *packet_bytes, *overhead_bytes))
        }
        TrafficModel::Played(Played::Users(_)) => Box::new(cbr::Cbr::new(0.0, 1)),
        TrafficModel::Played(Played::Replay { recording, loop_ns }) => {
            Box::new(replay::Replay::new(played(*recording), *loop_ns))
        }
    })
}

/// A traffic entry in action. While it is stopped its clock runs on: what it would have sent is left out.
pub(crate) struct Source {
    pub from: VertexId,
    arrivals: Box<dyn Arrivals>,
    start_ns: Time,
    stop_ns: Time,
    template: Packet,
    due: (Time, u32),
    pub running: bool,
}

impl Source {
    /// Entry number `i` of a network at its start.
    pub fn new(
        network: &NetworkSpec,
        i: TrafficId,
        seed: u64,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, NetError> {
        let spec = &network.traffic[i];
        let template = Packet {
            payload: BACKGROUND,
            class: traffic_class(i),
            index: u32::MAX,
            dst: spec.to,
            dscp: spec.dscp,
            ecn: Ecn::NotCapable,
            wire_bytes: 0,
            sent_ns: 0,
        };
        let mut source = Self {
            from: spec.from,
            arrivals: build(network, spec, seed, code)?,
            start_ns: spec.start_ns,
            stop_ns: spec.stop_ns.unwrap_or(NEVER),
            template,
            due: (NEVER, 0),
            running: true,
        };
        source.advance();
        Ok(source)
    }

    #[inline]
    fn advance(&mut self) {
        let next = self.arrivals.next().map(|(t, b)| (self.start_ns.saturating_add(t), b));
        self.due = next.filter(|n| n.0 < self.stop_ns).unwrap_or((NEVER, 0));
    }

    /// What code of the user's did wrong.
    pub fn failure(&self) -> Option<String> {
        self.arrivals.failure()
    }

    /// When its next packet is due; `NEVER` while it is stopped.
    pub fn next(&self) -> Time {
        if self.running {
            self.due.0
        } else {
            NEVER
        }
    }

    /// The packet that is due.
    #[inline]
    pub fn take(&mut self) -> Packet {
        self.template.index = self.template.index.wrapping_add(1);
        let packet = Packet { wire_bytes: self.due.1, sent_ns: self.due.0, ..self.template };
        self.advance();
        packet
    }

    /// Leaves out what was due before `now`.
    pub fn skip_to(&mut self, now: Time) {
        while self.due.0 < now {
            self.advance();
        }
    }
}
