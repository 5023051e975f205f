//! Key samples: which they are, and sending them until they are acknowledged.
//!
//! ```text
//! key      every n-th sample of a flow by its number, and the first after a pause (a state change that passed a sampler)
//! again    after max(1.25 round trips, 20 ms) without an acknowledgement, at most `tries` times; 200 ms at first;
//!          marked as sent again, so that its arrival does not hide the loss of the first
//! ```

use crate::{
    channel::{ChannelContext, Side},
    numbered::{Heard, Numbered},
    params::{Params, TransportError},
};
use tcps_core::{
    endpoint::{EndpointStats, Transmit},
    ids::FlowId,
    params,
    sample::Meta,
    time::{Time, MS},
};
use tcps_wire::{
    stream::{Repr, CLASS_AT},
    Error,
};

/// Class of a datagram that is to be acknowledged.
const KEY: u8 = 1;
/// Class of all others.
const NORMAL: u8 = 0;
/// Beside the class: it was sent before.
pub(crate) const AGAIN: u8 = 2;
const LEAST_WAIT_NS: Time = 20 * MS;
const FIRST_WAIT_NS: Time = 200 * MS;
/// Key datagrams that wait for an acknowledgement at most; the oldest gives way.
const MOST_PENDING: usize = 256;

/// A numbered stream whose key samples are acknowledged.
#[derive(Debug)]
pub(crate) struct Keyed {
    pub(crate) stream: Numbered,
    rule: KeyRule,
    pending: Pending,
}

params! {
    /// Of key samples.
    pub(crate) struct Keys {
        key_every: u32 = Count, "10", 1.0..=1e6, "every n-th sample of a flow is a key sample";
        tries: u32 = Count, "2", 0.0..=10.0, "most retransmissions of a key sample";
    }
}

impl Keyed {
    /// `key_every`: every so many samples one is a key; `tries`: how often a key is sent again at most.
    pub(crate) fn from_params(
        params: &Params<'_>,
        side: Side,
        ctx: &ChannelContext,
    ) -> Result<Self, TransportError> {
        let Keys { key_every, tries } = params.read()?;
        Ok(Self {
            stream: Numbered::from_params(params, side, ctx, 0)?,
            rule: KeyRule { every: key_every, last: Vec::new() },
            pending: Pending::new(tries),
        })
    }

    /// Whether a sample that is about to be sent is a key.
    pub(crate) fn is_key(&mut self, meta: &Meta) -> bool {
        self.rule.is_key(meta)
    }

    /// Sends a sample, as a key or not; `sent` is called for each datagram.
    pub(crate) fn send(&mut self, now: Time, meta: &Meta, sample: &[u8], key: bool, mut sent: impl FnMut()) {
        let Self { stream, pending, .. } = self;
        let class = if key { KEY } else { NORMAL };
        stream.send(meta, sample, class, &[], |sequence, transmit, datagram| {
            sent();
            if key {
                pending.keep(now, sequence, transmit, datagram);
            }
        });
    }

    /// Reads a datagram: keys and what acknowledges them are seen to, and what is left for the transport is given back.
    // [Dodeller 2004]
    pub(crate) fn receive(&mut self, now: Time, bytes: &[u8]) -> Result<Heard, Error> {
        let heard = self.stream.receive(now, bytes, |_| 0)?;
        match heard {
            Heard::Data { class, sequence, .. } if is_key(class) => {
                self.stream.say(Repr::Ack { sequence }, &[])
            }
            Heard::Ack { sequence } => self.pending.acknowledge(now, sequence),
            _ => {}
        }
        Ok(heard)
    }

    /// The smoothed round trip, once there has been an acknowledgement.
    pub(crate) fn round_trip_ns(&self) -> Option<Time> {
        self.pending.round_trip_ns
    }

    /// Does what is due.
    pub(crate) fn expire(&mut self, now: Time) {
        self.stream.expire(now);
        self.pending.expire(now, &mut self.stream);
    }

    /// When `expire` is wanted.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.stream.inbox.poll_timeout().into_iter().chain(self.pending.poll_timeout()).min()
    }

    /// Counters with what was never acknowledged.
    pub(crate) fn stats(&self) -> EndpointStats {
        EndpointStats { unanswered: self.pending.given_up, ..self.stream.stats() }
    }
}

/// Tells key samples from others.
#[derive(Debug)]
struct KeyRule {
    every: u32,
    last: Vec<(FlowId, u32)>,
}

impl KeyRule {
    /// Whether a sample is one.
    // [Dodeller 2004]
    fn is_key(&mut self, meta: &Meta) -> bool {
        let before = self.last.iter_mut().find(|l| l.0 == meta.flow);
        let after_pause = match before {
            Some(last) => meta.index.wrapping_sub(std::mem::replace(&mut last.1, meta.index)) > 1,
            None => {
                self.last.push((meta.flow, meta.index));
                true
            }
        };
        after_pause || meta.index.is_multiple_of(self.every)
    }
}

/// Key datagrams on their way, and the round trip that their acknowledgements show, smoothed by 1/8.
#[derive(Debug)]
struct Pending {
    tries: u32,
    waiting: Vec<Waiting>,
    spare: Vec<Vec<u8>>,
    round_trip_ns: Option<Time>,
    given_up: u64,
}

#[derive(Debug)]
struct Waiting {
    sequence: u16,
    transmit: Transmit,
    bytes: Vec<u8>,
    first_ns: Time,
    sent_ns: Time,
    repeats: u32,
}

impl Pending {
    /// A datagram is sent again `tries` times at most.
    fn new(tries: u32) -> Self {
        Self { tries, waiting: Vec::new(), spare: Vec::new(), round_trip_ns: None, given_up: 0 }
    }

    /// Keeps a datagram that has just been sent.
    fn keep(&mut self, now: Time, sequence: u16, transmit: &Transmit, datagram: &[u8]) {
        if self.waiting.len() == MOST_PENDING {
            self.spare.push(self.waiting.remove(0).bytes);
            self.given_up += 1;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(datagram);
        let (first_ns, sent_ns) = (now, now);
        self.waiting.push(Waiting { sequence, transmit: *transmit, bytes, first_ns, sent_ns, repeats: 0 });
    }

    /// A datagram has been acknowledged. The round trip counts from its first sending: too long if that was lost, which
    /// later ones mend, but never too short, so that a path that grows longer is noticed.
    fn acknowledge(&mut self, now: Time, sequence: u16) {
        if let Some(at) = self.waiting.iter().position(|w| w.sequence == sequence) {
            let done = self.waiting.remove(at);
            let took_ns = (now - done.first_ns).max(0);
            let smooth_ns = self.round_trip_ns.map_or(took_ns, |old| old + (took_ns - old) / 8);
            self.round_trip_ns = Some(smooth_ns);
            self.spare.push(done.bytes);
        }
    }

    /// Sends again what has waited long enough, and gives up what has been sent often enough.
    // [Dodeller 2004]
    fn expire(&mut self, now: Time, stream: &mut Numbered) {
        let patience_ns = self.patience_ns();
        let tries = self.tries;
        for w in self.waiting.iter_mut().filter(|w| w.sent_ns + patience_ns <= now) {
            if w.repeats < tries {
                mark_again(&mut w.bytes);
                stream.send_again(w.transmit, &w.bytes);
            }
            (w.sent_ns, w.repeats) = (now, w.repeats + 1);
        }
        let waiting = self.waiting.len();
        self.waiting.retain(|w| w.repeats <= tries);
        self.given_up += (waiting - self.waiting.len()) as u64;
    }

    /// When `expire` is wanted.
    fn poll_timeout(&self) -> Option<Time> {
        self.waiting.iter().map(|w| w.sent_ns + self.patience_ns()).min()
    }

    fn patience_ns(&self) -> Time {
        self.round_trip_ns.map_or(FIRST_WAIT_NS, |t| (t + t / 4).max(LEAST_WAIT_NS))
    }
}

/// Whether a datagram of this class is to be acknowledged.
pub(crate) fn is_key(class: u8) -> bool {
    class & KEY != 0
}

/// Says in the class of a datagram that it was sent before.
fn mark_again(datagram: &mut [u8]) {
    if let Some(class) = datagram.get_mut(CLASS_AT) {
        *class |= AGAIN;
    }
}
