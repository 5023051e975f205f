//! Background traffic. A new model is a file here and a line in `build`.

pub mod cbr;
pub mod frames;
pub mod poisson;
pub mod replay;
pub mod vbr;

use crate::packet::{Packet, BACKGROUND};
use tcps_core::{
    seed::Stream,
    time::{Time, NEVER},
};
use tcps_plan::net::{NetworkSpec, TrafficModel, TrafficSpec, TRAFFIC_BASE};

/// When packets come, and how large they are on the wire.
pub trait Arrivals: Send {
    /// The next packet as (time since the start of the source, bytes), in order of time; `None` after the last.
    fn next(&mut self) -> Option<(Time, u32)>;
}

/// The model of a traffic entry of a network.
pub fn build(network: &NetworkSpec, spec: &TrafficSpec, seed: u64) -> Box<dyn Arrivals> {
    let stream = || Stream::new(seed, &format!("traffic.{}", spec.name));
    let played = |number: u16| network.recordings.get(usize::from(number)).cloned().unwrap_or_default();
    match &spec.model {
        TrafficModel::Cbr { rate_bps, packet_bytes } => Box::new(cbr::Cbr::new(*rate_bps, *packet_bytes)),
        TrafficModel::Poisson { rate_bps, packet_bytes, exponential_size } => {
            Box::new(poisson::Poisson::new(*rate_bps, *packet_bytes, *exponential_size, stream()))
        }
        TrafficModel::Vbr { low_bps, high_bps, packet_bytes, vary } => {
            vbr::build((*low_bps, *high_bps), *packet_bytes, vary, stream())
        }
        TrafficModel::Frames { recording, loop_ns, packet_bytes, overhead_bytes } => {
            Box::new(frames::Frames::new(played(*recording), *loop_ns, *packet_bytes, *overhead_bytes))
        }
        TrafficModel::Users(_) => Box::new(cbr::Cbr::new(0.0, 1)),
        TrafficModel::Replay { recording, loop_ns } => {
            Box::new(replay::Replay::new(played(*recording), *loop_ns))
        }
    }
}

/// Time between packets of `bytes` at `rate_bps`; infinite for a silent source.
pub fn spacing_ns(bytes: u32, rate_bps: f64) -> f64 {
    f64::from(bytes) * 8e9 / rate_bps
}

/// A moment as whole nanoseconds, or `None` beyond the end of time.
fn moment(ns: f64) -> Option<Time> {
    (ns < NEVER as f64 / 2.0).then_some((ns + 0.5) as Time)
}

/// A traffic entry in action. While it is stopped its clock runs on: what it would have sent is left out.
pub(crate) struct Source {
    pub from: u16,
    arrivals: Box<dyn Arrivals>,
    start_ns: Time,
    stop_ns: Time,
    template: Packet,
    due: (Time, u32),
    pub running: bool,
}

impl Source {
    /// Entry number `i` of a network at its start.
    pub fn new(network: &NetworkSpec, i: usize, seed: u64) -> Self {
        let spec = &network.traffic[i];
        let template = Packet {
            payload: BACKGROUND,
            class: TRAFFIC_BASE + i as u16,
            index: u32::MAX,
            dst: spec.to,
            dscp: spec.dscp,
            wire_bytes: 0,
            sent_ns: 0,
        };
        let mut source = Self {
            from: spec.from,
            arrivals: build(network, spec, seed),
            start_ns: spec.start_ns,
            stop_ns: spec.stop_ns.unwrap_or(NEVER),
            template,
            due: (NEVER, 0),
            running: true,
        };
        source.advance();
        source
    }

    #[inline]
    fn advance(&mut self) {
        let next = self.arrivals.next().map(|(t, b)| (self.start_ns.saturating_add(t), b));
        self.due = next.filter(|n| n.0 < self.stop_ns).unwrap_or((NEVER, 0));
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
