//! A flow that is sent: samples become packets, and the parity or the older payloads that protect them.

use super::{
    clock,
    format::{Format, Framing, FLEXFEC, RED, ULPFEC},
    motion::MOTION_BYTES,
    out::{Out, Ready},
    rtx::Kept,
    settings::{Redundancy, Settings},
};
use std::collections::VecDeque;
use tcps_core::{endpoint::Again, ids::FlowId, sample::Meta, seed::Stream, time::Time};
use tcps_wire::{
    header,
    rtcp::report::SenderInfo,
    rtp::{
        extension::{echo_element, older_element, Element, Identity},
        flexfec,
        parity::Parity,
        red, ulpfec, Repr, HEADER_BYTES,
    },
};

/// Bytes that headers of extensions, redundancy and parity may take beside the RTP header.
const HEADROOM_BYTES: usize = 64;

/// A flow that is sent.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) flow: FlowId,
    pub(crate) ssrc: u32,
    pub(crate) format: Format,
    repair_ssrc: u32,
    repair_sequence: u16,
    sequence: u16,
    timestamp_base: u32,
    started: bool,
    sent: SenderInfo,
    pub(crate) sent_ns: Option<Time>,
    older: VecDeque<(Meta, Vec<u8>)>,
    shield: Shield,
    kept: Option<Kept>,
    packet: Vec<u8>,
    repair: Vec<u8>,
}

/// Parity that is being gathered.
#[derive(Debug, Default)]
struct Shield {
    base: u16,
    count: u16,
    row: Parity,
    columns: Vec<Parity>,
}

impl Outbound {
    pub(crate) fn new(flow: FlowId, format: Format, ssrc: u32, mut chance: Stream) -> Self {
        Self {
            flow,
            ssrc,
            format,
            repair_ssrc: chance.bits() as u32,
            repair_sequence: chance.bits() as u16,
            sequence: chance.bits() as u16,
            timestamp_base: chance.bits() as u32,
            started: false,
            sent: SenderInfo::default(),
            sent_ns: None,
            older: VecDeque::new(),
            shield: Shield::default(),
            kept: None,
            packet: Vec::new(),
            repair: Vec::new(),
        }
    }

    /// Keeps what it sends, to be sent again by the source `ssrc` when somebody asks for it.
    pub(crate) fn keeping(mut self, ssrc: u32, sequence: u16) -> Self {
        self.kept = Some(Kept::new(ssrc, sequence));
        self
    }

    /// Sends a packet again, if it is still kept.
    // [RFC 4588 §4]
    pub(crate) fn send_again(&mut self, sequence: u16, out: &mut Out) {
        if let Some(again) = self.kept.as_mut().and_then(|k| k.again(sequence)) {
            out.stats.retransmits += 1;
            let (bytes, payload_bytes) = (&again.bytes[..], again.payload_bytes);
            out.transmit(Ready {
                bytes,
                payload_bytes,
                flow: self.flow,
                index: again.index,
                again: Again::All,
            });
        }
    }

    /// What it tells of itself in a report now: the stamps are those of the last tick of its clock.
    // [RFC 3550 §6.4.1]
    pub(crate) fn info(&self, now: Time) -> SenderInfo {
        let tick_ns = clock::tick_start(now, self.format.rate);
        SenderInfo { ntp: clock::ntp(tick_ns), timestamp: self.timestamp(tick_ns), ..self.sent }
    }

    /// The timestamp of a moment.
    pub(crate) fn timestamp(&self, at: Time) -> u32 {
        self.timestamp_base.wrapping_add(clock::ticks(at, self.format.rate))
    }

    /// Sends a sample at once.
    pub(crate) fn send(&mut self, now: Time, meta: Meta, sample: &[u8], settings: &Settings, out: &mut Out) {
        let mut send = |ready: Ready<'_>| out.transmit(ready);
        if !self.sample(now, meta, sample, settings, &mut send) {
            out.stats.malformed += 1;
        }
    }

    /// Sends a sample: every packet goes to `send`. False: it needs several packets and has no way to say so.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        meta: Meta,
        sample: &[u8],
        settings: &Settings,
        send: &mut dyn FnMut(Ready<'_>),
    ) -> bool {
        let thinned;
        // [Abdullah 2023]
        let sample = match settings.motion_every {
            Some(n) if !meta.index.is_multiple_of(n) && sample.len() > MOTION_BYTES => {
                thinned = [&[0; MOTION_BYTES], &sample[MOTION_BYTES..]].concat();
                &thinned[..]
            }
            _ => sample,
        };
        self.sent_ns = Some(now);
        let room = settings.mtu_bytes - HEADER_BYTES - HEADROOM_BYTES;
        let fragments = sample.len().div_ceil(room).max(1) as u16;
        if fragments > 1 && self.format.framing == Framing::Packet && !settings.identity {
            return false;
        }
        for fragment in 0..fragments {
            self.fragment(&meta, sample, (fragment, fragments), settings, send);
        }
        if fragments == 1 {
            self.keep(&meta, sample, settings);
        }
        true
    }

    fn fragment(
        &mut self,
        meta: &Meta,
        sample: &[u8],
        (fragment, fragments): (u16, u16),
        settings: &Settings,
        send: &mut dyn FnMut(Ready<'_>),
    ) {
        let length = sample.len() as u32;
        let cut = header::Repr {
            flow: meta.flow,
            index: meta.index,
            origin_ns: meta.origin_ns,
            length,
            fragment,
            fragments,
            has_echo: false,
        };
        let payload = &sample[cut.offset()..cut.offset() + cut.payload_bytes()];
        let last = fragment + 1 == fragments;
        let (mut a, mut b, mut c, mut elements) = ([0; 20], [0; 16], [0; 12], Vec::with_capacity(3));
        let old = self.due_again(meta, settings);
        let has_older = old.is_some();
        if let Some((old, _)) = old.as_ref().filter(|_| settings.identity) {
            elements.push(older_element(old.index, old.origin_ns, &mut c));
        }
        if settings.identity {
            let part = (fragments > 1).then_some((length, fragment, fragments));
            let identity = Identity { index: meta.index, origin_ns: meta.origin_ns, part };
            elements.push(identity.element(&mut a));
        }
        if let Some(echo) = meta.echo.as_ref().filter(|_| last) {
            elements.push(echo_element(echo, &mut b));
        }
        let marker = match self.format.framing {
            Framing::Marker => last,
            Framing::Packet => !self.started,
        };
        self.started = true;
        let repr = Repr {
            marker,
            payload_type: self.format.payload_type,
            sequence: self.sequence,
            timestamp: self.timestamp(meta.origin_ns),
            ssrc: self.ssrc,
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.emit(&repr, &elements, payload, old, settings);
        self.sent.packets = self.sent.packets.wrapping_add(1);
        self.sent.bytes = self.sent.bytes.wrapping_add(payload.len() as u32);
        let (flow, index) = (self.flow, meta.index);
        if let Some(kept) = &mut self.kept {
            kept.keep(repr.sequence, index, payload.len(), &self.packet);
        }
        let again = if has_older { Again::Older } else { Again::Nothing };
        send(Ready { bytes: &self.packet, payload_bytes: payload.len(), flow, index, again });
        self.protect(repr.sequence, meta.index, settings, send);
    }

    /// The sample that goes again beside this one.
    // [RFC 2198 §3] [RFC 2198]
    fn due_again(&self, meta: &Meta, settings: &Settings) -> Option<(Meta, Vec<u8>)> {
        let Redundancy::Red { distance } = settings.redundancy else { return None };
        let old = self.older.get(self.older.len().checked_sub(distance)?)?;
        let offset = self.timestamp(meta.origin_ns).wrapping_sub(self.timestamp(old.0.origin_ns));
        (offset <= red::MAX_OFFSET && old.1.len() <= red::MAX_BLOCK_BYTES).then(|| old.clone())
    }

    /// Writes a packet, with an older payload beside its own where that is wanted.
    // [RFC 2198 §3]
    fn emit(
        &mut self,
        repr: &Repr,
        elements: &[Element<'_>],
        payload: &[u8],
        old: Option<(Meta, Vec<u8>)>,
        settings: &Settings,
    ) {
        self.packet.clear();
        if !matches!(settings.redundancy, Redundancy::Red { .. }) {
            repr.emit(&[], elements, &mut self.packet);
            return self.packet.extend_from_slice(payload);
        }
        Repr { payload_type: RED, ..*repr }.emit(&[], elements, &mut self.packet);
        let payload_type = self.format.payload_type;
        let offset = |at: Time| repr.timestamp.wrapping_sub(self.timestamp(at));
        let old =
            old.as_ref().map(|(m, data)| red::Block { payload_type, offset: offset(m.origin_ns), data });
        let primary = red::Block { payload_type, offset: 0, data: payload };
        let blocks: Vec<_> = old.into_iter().chain([primary]).collect();
        red::emit(&blocks, &mut self.packet);
    }

    fn keep(&mut self, meta: &Meta, sample: &[u8], settings: &Settings) {
        if let Redundancy::Red { distance } = settings.redundancy {
            self.older.push_back((*meta, sample.to_vec()));
            if self.older.len() > distance {
                self.older.pop_front();
            }
        }
    }

    fn protect(&mut self, sequence: u16, index: u32, settings: &Settings, send: &mut dyn FnMut(Ready<'_>)) {
        match settings.redundancy {
            Redundancy::Ulpfec { columns } => self.ulpfec(sequence, index, columns, send),
            Redundancy::Flexfec { columns, rows } => self.flexfec(sequence, index, (columns, rows), send),
            _ => {}
        }
    }

    /// One parity packet after `columns` packets, with the next number of the same stream.
    // [RFC 5109 §8.1] [RFC 8627]
    fn ulpfec(&mut self, sequence: u16, index: u32, columns: u16, send: &mut dyn FnMut(Ready<'_>)) {
        let s = &mut self.shield;
        if s.count == 0 {
            s.base = sequence;
        }
        s.count += 1;
        if s.row.add(&self.packet).is_err() || s.count < columns {
            return;
        }
        let repr = Repr {
            marker: false,
            payload_type: ULPFEC,
            sequence: self.sequence,
            timestamp: tcps_wire::rtp::Packet::new_checked(&self.packet).map_or(0, |p| p.timestamp()),
            ssrc: self.ssrc,
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.sent.packets = self.sent.packets.wrapping_add(1);
        self.repair.clear();
        repr.emit(&[], &[], &mut self.repair);
        let mask = ((1u64 << columns) - 1) << (ulpfec::MAX_PACKETS - columns);
        ulpfec::Repr { base: s.base, mask, parity: std::mem::take(&mut s.row) }.emit(&mut self.repair);
        s.count = 0;
        let payload_bytes = self.repair.len() - HEADER_BYTES;
        send(Ready { bytes: &self.repair, payload_bytes, flow: self.flow, index, again: Again::All });
    }

    /// Row parity after each row, column parity after the last row.
    // [RFC 8627 §4.2.2.2] [RFC 8627]
    fn flexfec(
        &mut self,
        sequence: u16,
        index: u32,
        (columns, rows): (u8, u8),
        send: &mut dyn FnMut(Ready<'_>),
    ) {
        let s = &mut self.shield;
        if s.count == 0 {
            s.base = sequence;
            s.columns.clear();
            s.columns.resize(columns.into(), Parity::default());
        }
        let at = usize::from(s.count % u16::from(columns));
        s.count += 1;
        let bad = s.row.add(&self.packet).is_err();
        if rows > 1 {
            let _ = s.columns.get_mut(at).map(|c| c.add(&self.packet));
        }
        if bad || at + 1 < usize::from(columns) {
            return;
        }
        let base = sequence.wrapping_sub(u16::from(columns) - 1);
        let parity = std::mem::take(&mut s.row);
        let first = s.base;
        let whole = s.count >= u16::from(columns) * u16::from(rows);
        let repr = flexfec::Repr { base, columns, rows: u8::from(rows > 1), parity };
        self.repair_packet(&repr, index, send);
        if whole {
            self.shield.count = 0;
            let parities = std::mem::take(&mut self.shield.columns);
            for (i, parity) in (0u16..).zip(parities).filter(|_| rows > 1) {
                let repr = flexfec::Repr { base: first.wrapping_add(i), columns, rows, parity };
                self.repair_packet(&repr, index, send);
            }
        }
    }

    fn repair_packet(&mut self, payload: &flexfec::Repr, index: u32, send: &mut dyn FnMut(Ready<'_>)) {
        let timestamp = tcps_wire::rtp::Packet::new_checked(&self.packet).map_or(0, |p| p.timestamp());
        let repr = Repr {
            marker: false,
            payload_type: FLEXFEC,
            sequence: self.repair_sequence,
            timestamp,
            ssrc: self.repair_ssrc,
        };
        self.repair_sequence = self.repair_sequence.wrapping_add(1);
        self.repair.clear();
        repr.emit(&[self.ssrc], &[], &mut self.repair);
        payload.emit(&mut self.repair);
        let payload_bytes = self.repair.len() - HEADER_BYTES;
        send(Ready { bytes: &self.repair, payload_bytes, flow: self.flow, index, again: Again::All });
    }
}
