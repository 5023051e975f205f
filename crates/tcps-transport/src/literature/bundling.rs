//! Datagrams of runs: what transports that mix flows in a datagram of their own have in common.
//!
//! ```text
//! sample ──► run of its flow, or a new one ─┐
//! part of a frame ──────────────────────────┴─► datagram ──► runs ──► samples, parts put together in their order
//! ```

use crate::{
    channel::{ChannelContext, Side},
    inbox::{Inbox, Taken},
    outbox::Outbox,
    params::{Overhead, Params, TransportError},
    udp::{deliver, repeated, MAX_SAMPLE_BYTES, STACK_BYTES},
};
use tcps_core::{
    endpoint::{EndpointStats, Output, Transmit},
    ids::FlowId,
    record::{DropReason, Kind, Record},
    sample::{Echo, Meta},
    time::{Time, MS},
};
use tcps_wire::{
    bundle::{emit_prefix, Part, Repr, Run, Runs, PREFIX_BYTES},
    header, Error,
};

/// Bytes of a datagram at most.
pub(crate) const MTU_BYTES: usize = 1200;
/// Bytes of a frame in a datagram that holds a part of one.
pub(crate) const PART_BYTES: usize = MTU_BYTES - 64;
/// Samples of a run are made within this time.
const LONGEST_RUN_NS: Time = 60 * MS;
const MOST_RUNS: usize = 255;

/// The runs that are being collected, and what arrives.
#[derive(Debug)]
pub(crate) struct Bundler {
    overhead_bytes: Option<u32>,
    sequence: u16,
    runs: Vec<Collecting>,
    used: usize,
    payload: usize,
    gathers: Vec<Gather>,
    incomplete: u64,
    inbox: Inbox,
    pub(crate) outbox: Outbox,
    pub(crate) stats: EndpointStats,
}

#[derive(Debug, Default)]
struct Collecting {
    repr: Option<Repr>,
    origins_ns: Vec<Time>,
    bytes: Vec<u8>,
}

/// A frame that arrives in parts.
#[derive(Debug)]
struct Gather {
    flow: FlowId,
    meta: Option<Meta>,
    /// Number and origin of the newest frame that was whole.
    done: Option<(u32, Time)>,
    length: u32,
    bytes: Vec<u8>,
}

impl Bundler {
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let gather = |flow| Gather { flow, meta: None, done: None, length: 0, bytes: Vec::new() };
        Ok(Self {
            overhead_bytes: params.read::<Overhead>()?.overhead_bytes,
            sequence: 0,
            runs: Vec::new(),
            used: 0,
            payload: 0,
            gathers: ctx.arriving_at(side).map(gather).collect(),
            incomplete: 0,
            inbox: Inbox::new(side, ctx),
            outbox: Outbox::default(),
            stats: EndpointStats::default(),
        })
    }

    /// Whether nothing has been collected.
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Bytes of samples collected.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.payload
    }

    /// What links are charged for a datagram with `payload` bytes more in one more run.
    // [model: wire size]
    pub(crate) fn charged(&self, payload: usize) -> usize {
        match self.overhead_bytes {
            Some(overhead_bytes) => self.payload + payload + overhead_bytes as usize,
            None => self.size() + Repr::header_bytes(&PLAIN) + 2 + payload + STACK_BYTES as usize,
        }
    }

    fn size(&self) -> usize {
        let runs = self.runs.iter().take(self.used);
        PREFIX_BYTES + runs.filter_map(|r| Some(r.repr?.header_bytes() + r.bytes.len())).sum::<usize>()
    }

    /// Adds a sample to the run of its flow; false if it does not fit into this datagram.
    pub(crate) fn add(&mut self, meta: &Meta, sample: &[u8]) -> bool {
        let longer = Repr { echo: meta.echo, ..PLAIN }.header_bytes() + sample.len();
        if self.used == MOST_RUNS || (self.used > 0 && self.size() + longer > MTU_BYTES) {
            return false;
        }
        let joins = |r: &&mut Collecting| r.repr.is_some_and(|repr| follows(&repr, meta, sample.len()));
        if let Some(run) = self.runs.iter_mut().take(self.used).find(joins) {
            if let Some(repr) = &mut run.repr {
                repr.count += 1;
            }
            run.origins_ns.push(meta.origin_ns);
            run.bytes.extend_from_slice(sample);
        } else {
            self.open(meta, sample.len() as u32, None, meta.echo).bytes.extend_from_slice(sample);
        }
        self.payload += sample.len();
        true
    }

    /// Adds a part of a frame; its echo command rides on the last one.
    pub(crate) fn add_part(&mut self, meta: &Meta, frame: &[u8], offset: usize, size: usize) {
        let content = frame.get(offset..offset + size).unwrap_or(&[]);
        let echo = meta.echo.filter(|_| offset + size == frame.len());
        let part = Part { offset: offset as u32, size: content.len() as u16 };
        self.open(meta, frame.len() as u32, Some(part), echo).bytes.extend_from_slice(content);
        self.payload += content.len();
    }

    fn open(&mut self, meta: &Meta, length: u32, part: Option<Part>, echo: Option<Echo>) -> &mut Collecting {
        if self.used == self.runs.len() {
            self.runs.push(Collecting::default());
        }
        self.used += 1;
        let run = &mut self.runs[self.used - 1];
        let Meta { flow, index, origin_ns, .. } = *meta;
        run.repr = Some(Repr { flow, count: 1, index, origin_ns, length, part, echo });
        run.origins_ns.clear();
        run.bytes.clear();
        run
    }

    /// Sends what has been collected; how many bytes links are charged.
    pub(crate) fn flush(&mut self) -> u32 {
        let Some(first) = self.runs.first().and_then(|r| r.repr).filter(|_| self.used > 0) else { return 0 };
        let wire_bytes = match self.overhead_bytes {
            Some(overhead_bytes) => self.payload as u32 + overhead_bytes,
            None => self.size() as u32 + STACK_BYTES,
        };
        let Self { runs, used, sequence, outbox, .. } = self;
        let output = Output::Transmit(Transmit::new(wire_bytes, first.flow, first.index));
        outbox.push(output, |out| {
            emit_prefix(*used as u8, *sequence, out);
            for run in runs.iter().take(*used) {
                if let Some(repr) = &run.repr {
                    repr.emit(run.origins_ns.iter().copied(), out);
                }
                out.extend_from_slice(&run.bytes);
            }
        });
        self.sequence = self.sequence.wrapping_add(1);
        (self.used, self.payload) = (0, 0);
        wire_bytes
    }

    /// A frame had to make room for a newer one.
    pub(crate) fn overloaded(&mut self, now: Time, dropped: &Meta) {
        let (flow, index, value) = (dropped.flow, dropped.index, now.saturating_sub(dropped.origin_ns));
        let row = Record {
            flow,
            index,
            value,
            detail: DropReason::Overload as u8,
            ..Record::new(now, Kind::Dropped)
        };
        self.outbox.push(Output::Record(row), |_| {});
    }

    /// Takes a datagram, or counts that it is malformed.
    pub(crate) fn datagram(&mut self, now: Time, bytes: &[u8], received_ns: Time) {
        if self.receive(now, bytes, received_ns).is_err() {
            self.stats.malformed += 1;
        }
    }

    /// Takes a datagram; nothing of one that is wrong in any place.
    fn receive(&mut self, now: Time, bytes: &[u8], received_ns: Time) -> Result<(), Error> {
        for run in Runs::new_checked(bytes)? {
            let run = run?;
            if run.repr.length as usize > MAX_SAMPLE_BYTES {
                return Err(Error::TooLong);
            }
            if !self.gathers.iter().any(|g| g.flow == run.repr.flow) {
                return Err(Error::Unknown);
            }
        }
        for run in Runs::new_checked(bytes)?.flatten() {
            match run.repr.part {
                Some(part) => self.take_part(now, &run, part, received_ns)?,
                None => (0..run.repr.count).try_for_each(|i| self.take_sample(now, &run, i, received_ns))?,
            }
        }
        Ok(())
    }

    fn take_sample(&mut self, now: Time, run: &Run<'_>, i: u8, received_ns: Time) -> Result<(), Error> {
        let (origin_ns, sample) = run.sample(i);
        let Repr { flow, index, echo, .. } = run.repr;
        let meta = Meta { flow, index: index.wrapping_add(i.into()), origin_ns, echo };
        self.take(now, meta, sample, received_ns)
    }

    /// Frames are put together in order; one whose parts do not follow each other is given up.
    fn take_part(&mut self, now: Time, run: &Run<'_>, part: Part, received_ns: Time) -> Result<(), Error> {
        let Repr { flow, index, origin_ns, length, echo, .. } = run.repr;
        let Some(gather) = self.gathers.iter_mut().find(|g| g.flow == flow) else { return Ok(()) };
        let repeated = gather.meta.is_some_and(|m| m.index == index && m.origin_ns == origin_ns)
            || gather.done == Some((index, origin_ns));
        if part.offset == 0 && !repeated {
            self.incomplete += u64::from(gather.meta.is_some());
            gather.meta = Some(Meta { flow, index, origin_ns, echo: None });
            gather.length = length;
            gather.bytes.clear();
        }
        let Some(meta) = gather.meta.filter(|m| m.index == index && m.origin_ns == origin_ns) else {
            return Ok(());
        };
        if gather.bytes.len() != part.offset as usize || gather.length != length {
            // A repeated part changes nothing; one too far on tells of a lost one.
            if part.offset as usize > gather.bytes.len() {
                gather.meta = None;
                self.incomplete += 1;
            }
            return Ok(());
        }
        gather.bytes.extend_from_slice(run.sample(0).1);
        if gather.bytes.len() < length as usize {
            return Ok(());
        }
        gather.meta = None;
        gather.done = Some((index, origin_ns));
        let frame = std::mem::take(&mut gather.bytes);
        let done = self.take(now, Meta { echo, ..meta }, &frame, received_ns);
        if let Some(gather) = self.gathers.iter_mut().find(|g| g.flow == flow) {
            gather.bytes = frame;
        }
        done
    }

    fn take(&mut self, now: Time, meta: Meta, sample: &[u8], received_ns: Time) -> Result<(), Error> {
        let part = header::Repr::whole(&meta, sample.len(), false);
        match self.inbox.take(now, &part, &[], &[])? {
            Taken::Repeated => repeated(now, &part, sample.len(), &mut self.outbox, &mut self.stats),
            _ => deliver(&mut self.outbox, meta, received_ns, sample),
        }
        Ok(())
    }

    pub(crate) fn stats(&self) -> EndpointStats {
        EndpointStats { incomplete: self.incomplete, ..self.stats }
    }
}

const PLAIN: Repr =
    Repr { flow: FlowId(0), count: 1, index: 0, origin_ns: 0, length: 0, part: None, echo: None };

/// Whether a sample continues a run.
fn follows(run: &Repr, meta: &Meta, bytes: usize) -> bool {
    let later_ns = meta.origin_ns.saturating_sub(run.origin_ns);
    run.flow == meta.flow
        && run.part.is_none()
        && run.echo.is_none()
        && meta.echo.is_none()
        && run.count < u8::MAX
        && run.length as usize == bytes
        && run.index.wrapping_add(run.count.into()) == meta.index
        && (0..LONGEST_RUN_NS).contains(&later_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tcps_core::{endpoint::Delivery, ids::NodeId, sample::PointId};

    fn bundler(side: Side) -> Bundler {
        let context = ChannelContext::of(&[(1, Side::B, "haptic"), (2, Side::B, "video")]);
        Bundler::from_params(&Params::new("merge-span", &Value::Null), side, &context).unwrap()
    }

    fn meta(flow: u16, index: u32) -> Meta {
        Meta { flow: FlowId(flow), index, origin_ns: MS * Time::from(index), echo: None }
    }

    /// The datagram of what has been collected.
    fn sent(a: &mut Bundler) -> Vec<u8> {
        let mut bytes = Vec::new();
        a.flush();
        assert!(matches!(a.outbox.pop(&mut bytes), Some(Output::Transmit(_))));
        bytes
    }

    /// The datagrams of a frame in two parts.
    fn parts(meta: &Meta, frame: &[u8]) -> [Vec<u8>; 2] {
        let mut a = bundler(Side::A);
        [0, PART_BYTES].map(|offset| {
            a.add_part(meta, frame, offset, PART_BYTES.min(frame.len() - offset));
            sent(&mut a)
        })
    }

    fn received(b: &mut Bundler, datagrams: &[&Vec<u8>]) -> Vec<(Meta, Vec<u8>)> {
        let (mut found, mut buf) = (Vec::new(), Vec::new());
        datagrams.iter().for_each(|bytes| b.datagram(0, bytes, 0));
        while let Some(output) = b.outbox.pop(&mut buf) {
            if let Output::Deliver(Delivery { meta, .. }) = output {
                found.push((meta, buf.clone()));
            }
        }
        found
    }

    #[test]
    fn samples_that_travel_together_keep_flow_number_moment_and_echo_command() {
        let echo = Some(Echo { target: PointId(5), sequence: 1, reply_to: NodeId(1), injected_ns: 3 });
        let tagged = Meta { echo, ..meta(1, 0) };
        // Of one size; numbers go on from flow to flow, behind an echo command, and over a gap.
        let all = [tagged, meta(1, 1), meta(2, 2), meta(1, 2), meta(1, 9), meta(2, 3)];
        let mut a = bundler(Side::A);
        assert!((0..).zip(&all).all(|(i, meta)| a.add(meta, &[i; 12])));
        let mut got = received(&mut bundler(Side::B), &[&sent(&mut a)]);
        got.sort_by_key(|(_, bytes)| bytes[0]);
        assert_eq!(got, (0..).zip(all).map(|(i, meta)| (meta, vec![i; 12])).collect::<Vec<_>>());
    }

    /// The moment and the length tell frames with one number apart.
    #[test]
    fn a_part_of_another_frame_is_passed_over_in_the_place_of_a_missing_one() {
        let (own, frame) = (meta(2, 7), vec![1; 2000]);
        let [first, second] = parts(&own, &frame);
        let [_, of_another_moment] = parts(&Meta { origin_ns: 0, ..own }, &[2; 2000]);
        let [_, of_a_longer_one] = parts(&own, &[3; 2100]);
        for other in [of_another_moment, of_a_longer_one] {
            let mut b = bundler(Side::B);
            assert_eq!(received(&mut b, &[&first, &other, &second]), [(own, frame.clone())]);
            assert_eq!(b.stats(), EndpointStats::default());
        }
    }
}
