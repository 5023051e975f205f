//! Telehaptic transport: force, sound and picture in one packet stream, merged as a rate controller asks.
//!
//! ```text
//! haptic sample ─► fragment ◄─ multiplexer ◄─ audio, video frames
//!                     │ k of them
//!                     ▼
//!                 packetizer ─► header with the delay of the way back ─► datagram
//!                     ▲ k                                                   │
//!               rate controller ◄─ notice ◄─ header ◄─ datagram ◄───────────┘ other side
//!                                    samples, frames ◄┘
//! ```
//! Of the flows of a channel those called `audio` and `video` are frames; the one other flow in each direction
//! is the stream of haptic samples that clocks the packets.

mod arrivals;
mod asides;
mod feedback;
mod frames;
pub(crate) mod multiplexer;
mod options;
mod packetizer;
mod prober;
mod receiver;
mod reporter;
mod roles;

use crate::{
    channel::{ChannelContext, Side},
    congestion::{self, Hears, Merging},
    outbox::Outbox,
    params::{Params, TransportError},
    udp::STACK_BYTES,
};
use asides::{is_aside, Aside, Asides};
use feedback::{Log, Notifier};
use multiplexer::{Multiplexer, MOST_FRAME_BYTES};
use options::{Accounting, Options};
use packetizer::Pending;
use receiver::Receiver;
use roles::Roles;
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output, Transmit},
    ids::FlowId,
    rate::{Feedback, RateController, Sent},
    record::{DropReason, Kind, Record},
    sample::Meta,
    time::{Time, MS},
};
use tcps_wire::{telehaptic, Error};

/// An endpoint of the telehaptic transports.
pub(crate) struct Telehaptic {
    leaving: Option<Roles>,
    accounting: Accounting,
    controller: Box<dyn RateController>,
    multiplexer: Multiplexer,
    /// Payload of a datagram above which a packet is sent before it is full.
    mtu_bytes: usize,
    pending: Pending,
    notifier: Notifier,
    log: Log,
    receiver: Option<Receiver>,
    asides: Asides,
    /// When the packet that is being filled leaves at the latest.
    held_ns: Option<Time>,
    outbox: Outbox,
    /// Fragments a packet held last; 0 before the first.
    fragments: u8,
    stats: EndpointStats,
}

impl Telehaptic {
    /// The endpoint at `side` with a controller of its own.
    pub(crate) fn new(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
        name: &'static str,
        merging: &Merging,
    ) -> Result<Self, TransportError> {
        let hears = congestion::learning(merging, params)?;
        let other = if side == Side::A { Side::B } else { Side::A };
        let leaving = Roles::of(name, ctx, other)?;
        let arriving = Roles::of(name, ctx, side)?;
        if hears == Hears::Delays && leaving.is_some() != arriving.is_some() {
            return Err(TransportError::Channel {
                transport: name,
                channel: ctx.name.clone(),
                found: "flows of one direction only".into(),
                needed: "flows in both directions, because delay is reported in packets of the return path, such as flows = [\"kinematic\", \"haptic\"]",
            });
        }
        let options = Options::read(params, merging)?;
        let asides = Asides::new(params, hears, leaving.is_some(), arriving.is_some())?;
        let period_ns = leaving.map_or(MS, |r| r.period_ns);
        let has_media = leaving.is_some_and(|r| r.media.iter().any(Option::is_some));
        let media_bytes = if has_media { options.media_bytes } else { 0 };
        Ok(Self {
            controller: (merging.make)(params, period_ns)?,
            leaving,
            accounting: options.accounting,
            multiplexer: Multiplexer::new(media_bytes, options.order),
            mtu_bytes: options.mtu_bytes,
            pending: Pending::new(period_ns),
            notifier: Notifier::default(),
            log: Log::default(),
            receiver: arriving.map(Receiver::new),
            asides,
            held_ns: None,
            outbox: Outbox::default(),
            fragments: 0,
            stats: EndpointStats::default(),
        })
    }

    fn sample(&mut self, now: Time, meta: Meta, bytes: &[u8]) {
        let Some(roles) = self.leaving else { return self.stats.malformed += 1 };
        match roles.medium(meta.flow) {
            Some(medium) if (1..=MOST_FRAME_BYTES).contains(&bytes.len()) => {
                if let Some(dropped) = self.multiplexer.offer(medium, meta, bytes) {
                    self.overloaded(now, &dropped);
                }
            }
            None if meta.flow == roles.haptic
                && bytes.len() + self.multiplexer.media_bytes() <= self.mtu_bytes =>
            {
                self.haptic(now, meta, bytes);
            }
            _ => self.stats.malformed += 1,
        }
    }

    /// A fragment is collected; a packet leaves when there are as many as the controller asks for now.
    // [Gokhale 2017: packetizer]
    fn haptic(&mut self, now: Time, meta: Meta, bytes: &[u8]) {
        let fragments = self.controller.fragments(now).clamp(1, telehaptic::MOST_FRAGMENTS);
        self.note_change(now, fragments);
        let larger =
            self.pending.payload_bytes() + bytes.len() + self.multiplexer.media_bytes() > self.mtu_bytes;
        // What carries an echo command, or the media of left-out samples to the MTU, goes.
        let must = larger || meta.echo.is_some();
        if !self.controller.admits(now, bytes, must) && !must {
            return self.leave_out(now, &meta);
        }
        if self.pending.fragments() > 0 && (larger || !self.pending.fits(bytes.len())) {
            self.flush(now);
        }
        if self.pending.fragments() == 0 {
            self.held_ns = self.controller.hold_ns().map(|hold_ns| now.saturating_add(hold_ns));
        }
        self.pending.add_sample(meta, bytes);
        if self.pending.payload_bytes() + self.multiplexer.media_bytes() <= self.mtu_bytes {
            self.fill(now);
        }
        let urgent = self.controller.urgent(bytes);
        if urgent || self.pending.fragments() >= usize::from(fragments) {
            self.flush(now);
        }
    }

    /// A sample does not go; sound and picture of its fragment do, with the next one.
    fn leave_out(&mut self, now: Time, meta: &Meta) {
        let row = Record { flow: meta.flow, index: meta.index, ..Record::new(now, Kind::Suppressed) };
        self.outbox.push(Output::Record(row), |_| {});
        self.fill(now);
    }

    /// Adds the sound and picture of a fragment.
    fn fill(&mut self, now: Time) {
        let room = self.controller.media_bytes(now).unwrap_or(usize::MAX);
        self.pending.fill(room, &mut self.multiplexer);
    }

    /// Rows tell when a controller merges otherwise than before.
    fn note_change(&mut self, now: Time, fragments: u8) {
        if fragments != self.fragments {
            self.fragments = fragments;
            let flow = self.leaving.map_or(FlowId(0), |r| r.haptic);
            let row = Record::new(now, Kind::Merging);
            let row = Record { flow, value: fragments.into(), detail: fragments, ..row };
            self.outbox.push(Output::Record(row), |_| {});
        }
    }

    fn flush(&mut self, now: Time) {
        let Self { pending, notifier, outbox, .. } = self;
        let Some(first) = pending.first() else { return };
        let payload_bytes = pending.payload_bytes();
        let wire_bytes = self.accounting.wire_bytes(payload_bytes, pending.sub_headers(), pending.echoes());
        let notice = notifier.next();
        let output = Output::Transmit(Transmit::new(wire_bytes, first.flow, first.index));
        outbox.push(output, |out| pending.emit(notice, out));
        let packet = Sent {
            generated_ns: first.origin_ns,
            fragments: pending.fragments() as u8,
            payload_bytes: payload_bytes as u32,
            wire_bytes,
        };
        pending.clear();
        self.held_ns = None;
        self.log.add(&packet);
        self.asides.sent(now, first.index, wire_bytes, self.controller.as_mut());
        self.controller.sent(now, &packet);
    }

    fn overloaded(&mut self, now: Time, dropped: &Meta) {
        let row = Record::new(now, Kind::Dropped);
        let (flow, index, value) = (dropped.flow, dropped.index, now - dropped.origin_ns);
        let row = Record { flow, index, value, detail: DropReason::Overload as u8, ..row };
        self.outbox.push(Output::Record(row), |_| {});
    }

    fn datagram(&mut self, now: Time, bytes: &[u8], received_ns: Time) -> Result<(), Error> {
        if is_aside(bytes) {
            let answer = self.asides.receive(now, bytes, self.controller.as_mut())?;
            answer.into_iter().for_each(|aside| self.say(&aside));
            return Ok(());
        }
        let packet = telehaptic::Packet::new_checked(bytes)?;
        let receiver = self.receiver.as_mut().ok_or(Error::Unknown)?;
        let Some(arrival) = receiver.receive(now, &packet, received_ns, &mut self.outbox)? else {
            self.stats.duplicates += 1;
            let row = Record { size: bytes.len() as u32, ..Record::new(now, Kind::Duplicate) };
            let row = Record { flow: receiver.haptic(), ..row };
            self.outbox.push(Output::Record(row), |_| {});
            return Ok(());
        };
        self.notifier.measure(arrival.delay_ns);
        self.asides.arrived(&arrival, received_ns);
        if let Some(field_us) = packet.delay_us() {
            let notice = self.log.notice(field_us, packet.repeated(), arrival.left_ns, arrival.delay_ns);
            self.controller.feedback(now, &Feedback::Delay(notice));
        }
        Ok(())
    }

    /// Sends a datagram without a sample.
    fn say(&mut self, aside: &Aside) {
        let flow = self.leaving.map_or(FlowId(0), |r| r.haptic);
        let wire_bytes = aside.bytes() as u32 + STACK_BYTES;
        self.outbox.push(Output::Transmit(Transmit::new(wire_bytes, flow, 0)), |out| aside.emit(out));
    }
}

impl Endpoint for Telehaptic {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        self.asides.begin(now);
        match input {
            Input::Sample { meta, bytes } => self.sample(now, meta, bytes),
            Input::Datagram { bytes, received_ns, .. } => {
                if self.datagram(now, bytes, received_ns).is_err() {
                    self.stats.malformed += 1;
                }
            }
            Input::Timeout => {
                if let Some(receiver) = &mut self.receiver {
                    receiver.expire(now);
                }
                if self.held_ns.is_some_and(|held_ns| held_ns <= now) {
                    self.flush(now);
                }
                self.asides.due(now).iter().flatten().for_each(|aside| self.say(aside));
            }
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        let frames = self.receiver.as_ref().and_then(Receiver::deadline);
        [frames, self.asides.deadline(), self.held_ns].into_iter().flatten().min()
    }

    fn failure(&self) -> Option<String> {
        self.controller.failure()
    }

    fn merging(&self) -> u16 {
        u16::from(self.fragments).max(1)
    }

    fn stats(&self) -> EndpointStats {
        let incomplete = self.receiver.as_ref().map_or(0, Receiver::incomplete);
        EndpointStats { incomplete, ..self.stats }
    }
}
