//! Transport `visual-haptic`: force at once, sound and picture in what is left of a known capacity (after Cizmeci 2014).
//!
//! ```text
//! slot of 1 ms, budget capacity · 1 ms, two of which may be saved up: at least a packet of force and a small one
//! haptic sample ──► opens a packet at once ──► the rest of the budget: audio, then video bytes ──► datagram
//! no sample     ──► audio and video alone, a budget's worth
//! ```
//! The flows called `audio` and `video` are media; all others are haptic samples and always go, so that a sampler (`weber`)
//! decides what is left for the picture. When more than two frames of a medium wait, the oldest is dropped whole.

use super::bundling::{Bundler, MTU_BYTES, PART_BYTES};
use crate::{
    channel::{ChannelContext, ChannelFlow, Side},
    meter::Meter,
    params::{Overhead, Params, Transport, TransportError},
    telehaptic::multiplexer::{Medium, Multiplexer, Order, MOST_FRAME_BYTES},
};
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    ids::FlowId,
    param::{Draws, Entry, Params as _},
    params,
    sample::Meta,
    time::{Time, MS, SECOND},
};

const SLOT_NS: Time = MS;
/// Slots whose budget may be saved up.
const DEPTH: i64 = 2;
/// Bytes of sound and picture that are worth a packet.
const LEAST_BYTES: usize = 16;
/// The longest haptic sample.
const MOST_SAMPLE_BYTES: usize = 1000;

/// How often what is left for pictures is looked at while nothing comes.
const REVIEW_NS: Time = 100 * MS;
/// Force and sound that count as silent, in bit/s.
const SILENT_BPS: f64 = 1000.0;
/// Share of what is left for pictures that they may take: frames differ in size.
const SHARE: f64 = 0.9;

params! {
    /// What the line carries.
    pub(crate) struct Given {
        capacity_bps: f64 = Bps, "1 Mbit/s", 1e4..=4_294_967_295.0, "rate of the line, with all headers";
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Transport> = Entry {
    id: 9,
    name: "visual-haptic",
    doc: "force leaves at once; sound, then picture fill the rest of a known capacity (after Cizmeci 2014)",
    params: &[Overhead::TABLE, Given::TABLE],
    draws: Draws::No,
    make: Transport::of(|params, side, ctx| Ok(Box::new(VisualHaptic::from_params(params, side, ctx)?))),
};

/// An endpoint of the transport.
#[derive(Debug)]
pub(crate) struct VisualHaptic {
    bundler: Bundler,
    multiplexer: Multiplexer,
    media: Vec<(FlowId, Medium)>,
    capacity_bps: i64,
    /// What goes before pictures.
    urgent: Meter,
    /// Bits times a second over nanoseconds: what may still be sent.
    budget: i64,
    /// What may be saved up, and what may be owed.
    most: i64,
    filled_ns: Time,
    next_slot_ns: Option<Time>,
    /// The last input.
    now: Time,
}

impl VisualHaptic {
    /// `capacity_bps`: what the link carries.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let medium = |f: &ChannelFlow| match f.name.as_str() {
            "audio" => Some((f.flow, Medium::Audio)),
            "video" => Some((f.flow, Medium::Video)),
            _ => None,
        };
        let bundler = Bundler::from_params(params, side, ctx)?;
        let capacity_bps = params.read::<Given>()?.capacity_bps as i64;
        let least = (bundler.charged(0) + LEAST_BYTES) as i64 * 8 * SECOND;
        Ok(Self {
            bundler,
            multiplexer: Multiplexer::new(MTU_BYTES, Order::Strict),
            media: ctx.flows.iter().filter_map(medium).collect(),
            capacity_bps,
            urgent: Meter::default(),
            budget: 0,
            most: least.max(DEPTH * SLOT_NS * capacity_bps),
            filled_ns: 0,
            next_slot_ns: None,
            now: 0,
        })
    }

    fn send(&mut self, now: Time, meta: &Meta, sample: &[u8]) {
        let medium = self.media.iter().find(|m| m.0 == meta.flow).map(|m| m.1);
        match medium {
            Some(medium) if (1..=MOST_FRAME_BYTES).contains(&sample.len()) => {
                if medium == Medium::Audio {
                    self.urgent.add(now, sample.len());
                }
                if let Some(dropped) = self.multiplexer.offer(medium, *meta, sample) {
                    self.bundler.overloaded(now, &dropped);
                }
                self.next_slot_ns.get_or_insert((now.div_euclid(SLOT_NS) + 1) * SLOT_NS);
            }
            None if sample.len() <= MOST_SAMPLE_BYTES => {
                let bytes = self.bundler.charged(sample.len());
                self.most =
                    self.most.max((bytes + self.bundler.charged(0) + LEAST_BYTES) as i64 * 8 * SECOND);
                self.refill(now);
                self.urgent.add(now, bytes);
                self.bundler.add(meta, sample);
                self.fill_and_flush();
            }
            _ => self.bundler.stats.malformed += 1,
        }
    }

    /// A slot begins: sound and picture go alone if no sample has taken its budget.
    // [Cizmeci 2014]
    fn slot(&mut self, now: Time) {
        self.urgent.add(now, 0);
        self.refill(now);
        self.fill_and_flush();
        let next_ns = (now.div_euclid(SLOT_NS) + 1) * SLOT_NS;
        self.next_slot_ns = (!self.multiplexer.is_empty()).then_some(next_ns);
    }

    fn refill(&mut self, now: Time) {
        let gone_ns = (now - self.filled_ns).clamp(0, DEPTH * SLOT_NS);
        self.filled_ns = now;
        self.budget = (self.budget + gone_ns * self.capacity_bps).min(self.most);
    }

    /// Bytes of media that the budget allows in one more run of the datagram.
    fn room(&self) -> usize {
        let allowed = (self.budget / (8 * SECOND)).max(0) as usize;
        let most = PART_BYTES.saturating_sub(self.bundler.payload_bytes());
        allowed.saturating_sub(self.bundler.charged(0)).min(most)
    }

    // [Cizmeci 2014] audio, then video, in the rest of the budget
    fn fill_and_flush(&mut self) {
        loop {
            self.fill();
            if self.bundler.is_empty() {
                return;
            }
            self.budget -= i64::from(self.bundler.flush()) * 8 * SECOND;
            self.budget = self.budget.max(-self.most);
        }
    }

    /// Fills one datagram as far as budget and MTU allow.
    fn fill(&mut self) {
        while !self.multiplexer.is_empty() && self.room() >= LEAST_BYTES {
            let (room, mut taken) = (self.room(), false);
            let Self { multiplexer, bundler, .. } = self;
            multiplexer.take(room, |_, frame, room| {
                if std::mem::replace(&mut taken, true) {
                    return 0;
                }
                let size = room.min(frame.bytes.len() - frame.sent);
                bundler.add_part(&frame.meta, &frame.bytes, frame.sent, size);
                frame.sent += size;
                size
            });
        }
    }
}

impl Endpoint for VisualHaptic {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        self.now = now;
        match input {
            Input::Sample { meta, bytes } => self.send(now, &meta, bytes),
            Input::Datagram { bytes, received_ns, .. } => self.bundler.datagram(now, bytes, received_ns),
            Input::Timeout if self.next_slot_ns.is_some_and(|t| t <= now) => self.slot(now),
            Input::Timeout => {}
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.bundler.outbox.pop(buf)
    }

    /// The next slot; without one, a look at what force and sound take as long as they are not forgotten.
    fn poll_timeout(&self) -> Option<Time> {
        let review = || (self.urgent.mean_bps(self.now) > SILENT_BPS).then_some(self.now + REVIEW_NS);
        self.next_slot_ns.or_else(review)
    }

    /// What force and sound leave of the capacity for pictures.
    fn allowance_bps(&self, flow: FlowId) -> Option<f64> {
        let video = self.media.contains(&(flow, Medium::Video));
        video.then(|| SHARE * (self.capacity_bps as f64 - self.urgent.mean_bps(self.now)).max(0.0))
    }

    fn stats(&self) -> EndpointStats {
        self.bundler.stats()
    }
}
