//! One side of one TCP connection as a stream of bytes.
//!
//! ```text
//!  write ──► Sender ──► segments ──► pop ──► IP packets
//!  read ◄── Receiver ◄── segments ◄── receive ◄── IP packets      Acks: when to acknowledge
//!
//!  Closed ─ connect ─► SynSent ──────────► Open ──► Over        close: FIN behind what was written
//!     └──── listen ──► Listen ► SynReceived ─┘
//! ```
//! Time is what it is told; initial sequence numbers come from the seed.

use super::{
    acks::Acks,
    expiry::Expiry,
    leaving::Leaving,
    receiver::Receiver,
    sender::{Limits, Segment, Sender},
    sequence::Numbers,
    settings::{Agreed, Settings, Stamps},
};
use crate::channel::Side;
use tcps_core::{
    endpoint::Again,
    seed::Stream,
    time::{Time, SECOND},
};
use tcps_wire::tcp::{Blocks, Ecn, Ends, Flags, Options, Repr};

pub use tcps_core::size::LINK_BYTES;
/// The port at both sides of a connection.
const PORT: u16 = 7;
/// SYN is repeated so often after the same time, and then after twice as long each time, as in Linux.
const EVEN_TRIES: u32 = 4;
const LONGEST_TRY: u32 = 7;

fn sender(settings: &Settings, agreed: &Agreed) -> Sender {
    let limits = Limits {
        segment_bytes: agreed.segment_bytes,
        no_delay: settings.no_delay,
        buffer_bytes: settings.send_buffer_bytes,
    };
    Sender::new(limits, settings.congestion.control())
}

fn address(side: Side) -> [u8; 4] {
    match side {
        Side::A => [192, 0, 2, 1],
        Side::B => [192, 0, 2, 2],
    }
}

/// State of a connection; what of it is closed is known by its halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Open,
    /// Both streams have ended; repeats of the peer's last segment are still answered.
    Over,
}

/// SYN, until it is acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handshake {
    pub(super) sent_ns: Time,
    pub(super) due_ns: Time,
    pub(super) repeats: u32,
}

/// One side of a connection.
#[derive(Debug)]
pub struct Stack {
    pub(super) settings: Settings,
    /// Packets that come, and those that go.
    pub(super) ends: [Ends; 2],
    chance: Stream,
    pub(super) state: State,
    pub(super) handshake: Option<Handshake>,
    pub(super) ours: Numbers,
    pub(super) theirs: Numbers,
    pub(super) stamps: Stamps,
    pub(super) agreed: Agreed,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) acks: Acks,
    /// What the peer was last told to have arrived.
    pub(super) told: u64,
    /// Whether a mark of congestion has been seen of which the peer has not said that it knows.
    pub(super) has_mark: bool,
    pub(super) challenged_ns: Option<Time>,
    pub(super) leaving: Leaving,
    repeats: u64,
    window_waits: u64,
    /// Segments dropped since they are old: what they say or carry had come, or was overtaken.
    pub(super) old: u64,
    /// Whether there has been a connection.
    pub(super) has_stood: bool,
}

impl Stack {
    /// A side that neither listens nor connects yet.
    pub fn new(settings: &Settings, side: Side, seed: u64) -> Self {
        let (here, there) = ((address(side), PORT), (address(side.other()), PORT));
        let agreed = Agreed::new(settings, &Options::default());
        Self {
            settings: *settings,
            ends: [Ends { from: there, to: here }, Ends { from: here, to: there }],
            chance: Stream::new(seed, "tcp"),
            state: State::Closed,
            handshake: None,
            ours: Numbers::default(),
            theirs: Numbers::default(),
            stamps: Stamps::default(),
            agreed,
            sender: sender(settings, &agreed),
            receiver: Receiver::new(settings.receive_buffer_bytes, agreed.segment_bytes),
            acks: Acks::default(),
            told: 0,
            has_mark: false,
            challenged_ns: None,
            leaving: Leaving::default(),
            repeats: 0,
            window_waits: 0,
            old: 0,
            has_stood: false,
        }
    }

    /// Asks the other side for a connection; what was open before is gone.
    // [RFC 9293 §3.5]
    pub fn connect(&mut self, now: Time) {
        self.abort(now);
        self.begin();
        self.state = State::SynSent;
        self.send_syn(now, 0);
    }

    /// Waits for a connection; what was open before is gone.
    pub fn listen(&mut self, now: Time) {
        self.abort(now);
        self.begin();
        self.state = State::Listen;
    }

    /// Numbers and memory of a new connection.
    // RFC 6528 §3 a number that nobody else knows, here by the seed
    fn begin(&mut self) {
        let bits = self.chance.bits();
        self.ours = Numbers::new(bits as u32);
        self.stamps = Stamps::new((bits >> 32) as u32);
        self.reset_halves(Agreed::new(&self.settings, &Options::default()));
    }

    pub(super) fn reset_halves(&mut self, agreed: Agreed) {
        self.repeats += self.sender.repeats();
        self.window_waits += self.sender.window_waits;
        self.agreed = agreed;
        self.sender = sender(&self.settings, &agreed);
        self.sender.ecn = agreed.ecn;
        self.receiver = Receiver::new(self.settings.receive_buffer_bytes, agreed.segment_bytes);
        self.acks = Acks::default();
        (self.told, self.has_mark, self.challenged_ns) = (0, false, None);
    }

    /// Sends no more; the connection ends when both sides have said so.
    pub fn close(&mut self, now: Time) {
        match self.state {
            State::Listen | State::SynSent => self.forget(),
            _ => self.sender.close(),
        }
        self.poll(now);
    }

    /// Ends the connection at once; the other side is told, if there is one.
    pub fn abort(&mut self, now: Time) {
        if matches!(self.state, State::SynReceived | State::Open) {
            let flags = Flags::RST.with(Flags::ACK, true);
            self.emit(now, self.sender.sent_to, flags);
        }
        self.end();
    }

    /// Ends the connection at once without a word to the other side.
    pub fn forget(&mut self) {
        self.end();
        self.leaving.clear();
    }

    /// There is no connection any more. What has arrived can still be read.
    pub(super) fn end(&mut self) {
        (self.state, self.handshake) = (State::Closed, None);
        self.sender.timer = None;
        self.acks = Acks::default();
    }

    /// Sends SYN, for the first time or again.
    pub(super) fn send_syn(&mut self, now: Time, repeats: u32) {
        let doublings = repeats.saturating_sub(EVEN_TRIES).min(LONGEST_TRY);
        let due_ns = now.saturating_add(SECOND << doublings);
        let first = self.handshake.map_or(now, |h| h.sent_ns);
        self.handshake = Some(Handshake { sent_ns: first, due_ns, repeats });
        self.repeats += u64::from(repeats > 0);
        let is_answer = self.state == State::SynReceived;
        let asks = !is_answer && self.settings.ecn;
        // [RFC 3168 §6.1.1]
        let flags = Flags::SYN
            .with(Flags::ACK, is_answer)
            .with(Flags::ECE, asks || is_answer && self.agreed.ecn)
            .with(Flags::CWR, asks);
        self.emit(now, 0, flags);
    }

    /// Does what is due at `now`.
    pub fn poll(&mut self, now: Time) {
        if let Some(handshake) = self.handshake.filter(|h| h.due_ns <= now) {
            self.send_syn(now, handshake.repeats.saturating_add(1));
        }
        self.acks.expire(now, self.sender.trips.timeout_ns());
        match self.state {
            State::Open => {
                self.send_all(now);
                self.finish();
            }
            State::Over => self.answer(now),
            _ => {}
        }
    }

    /// Acknowledges, if that is due.
    pub(super) fn answer(&mut self, now: Time) {
        if self.acks.is_due() {
            self.emit(now, self.sender.sent_to, Flags::ACK);
        }
    }

    /// Sends what may be sent: what timers ask for, data, and what is to be acknowledged.
    pub(super) fn send_all(&mut self, now: Time) {
        let mut has_new = false;
        self.fit();
        match self.sender.expire(now) {
            Some(Expiry::Segment(segment)) => {
                has_new |= !segment.is_repeat;
                self.send_segment(now, segment);
            }
            Some(Expiry::Question) => {
                let old = self.sender.acked.saturating_sub(1);
                self.emit(now, old, Flags::ACK);
            }
            Some(Expiry::Next) | None => {}
        }
        self.fit();
        while let Some(segment) = self.sender.next(now) {
            has_new |= !segment.is_repeat;
            self.send_segment(now, segment);
            self.fit();
        }
        self.sender.settle(now, has_new);
        self.answer(now);
    }

    fn fit(&mut self) {
        self.sender.fit(self.sack().bytes(self.agreed.stamps) as u64);
    }

    /// What the peer is to be told of that has come besides what is in order.
    fn sack(&self) -> Blocks {
        let mut sack = Blocks::default();
        if self.agreed.sack {
            self.receiver.blocks(|start, end| sack.push(self.theirs.wire(start), self.theirs.wire(end)));
        }
        sack
    }

    fn send_segment(&mut self, now: Time, segment: Segment) {
        let tells = !segment.is_repeat && std::mem::take(&mut self.sender.tells_reduced);
        let flags = Flags::ACK
            .with(Flags::PSH, segment.is_whole)
            .with(Flags::FIN, segment.is_last)
            .with(Flags::CWR, tells);
        let mut header = self.header(now, segment.start, flags);
        // Only what is sent for the first time may be marked. RFC 3168 §6.1.5
        if self.agreed.ecn && !segment.is_repeat {
            header.ecn = Ecn::Capable;
        }
        let content = self.sender.buffer.content(segment.start, segment.end);
        let again = if segment.is_repeat { Again::All } else { Again::Nothing };
        self.leaving.push(&self.ends[1], &header, content, again);
        self.acks.sent(now, true);
    }

    /// Sends a segment without content.
    pub(super) fn emit(&mut self, now: Time, position: u64, flags: Flags) {
        let header = self.header(now, position, flags);
        self.leaving.push(&self.ends[1], &header, [&[], &[]], Again::Nothing);
        self.acks.sent(now, false);
    }

    /// The header of a segment, which acknowledges all that has come.
    fn header(&mut self, now: Time, position: u64, flags: Flags) -> Repr {
        let is_syn = flags.has(Flags::SYN);
        let mut options = if is_syn { self.offer() } else { Options::default() };
        if is_syn || self.agreed.stamps {
            options.stamps = Some((self.stamps.at(now), self.stamps.recent));
        }
        if !flags.has(Flags::ACK) {
            let window = self.settings.receive_buffer_bytes.min(usize::from(u16::MAX)) as u16;
            return Repr { sequence: self.ours.wire(position), flags, window, options, ..Repr::default() };
        }
        self.told = self.receiver.expected();
        let shift = if is_syn { 0 } else { self.agreed.shifts[1] };
        let window = (self.receiver.window() >> shift).min(u64::from(u16::MAX)) as u16;
        if !is_syn {
            options.sack = self.sack();
            self.receiver.forget_duplicate();
        }
        let flags = flags.with(Flags::ECE, self.has_mark && !is_syn);
        let acknowledgement = self.theirs.wire(self.told);
        let sequence = self.ours.wire(position);
        Repr { sequence, acknowledgement, flags, window, options, ecn: Ecn::NotCapable }
    }

    /// What SYN offers; an answer only what was asked for.
    fn offer(&self) -> Options {
        let mut options = self.settings.offer();
        if self.state == State::SynReceived {
            options.sack_permitted = self.agreed.sack;
            options.scale = options.scale.filter(|_| self.agreed.scales);
        }
        options
    }

    /// When `poll` is wanted.
    pub fn wake_ns(&self) -> Option<Time> {
        let timer = self.sender.timer.map(|t| t.at());
        [self.handshake.map(|h| h.due_ns), timer, self.acks.wake_ns()].into_iter().flatten().min()
    }

    /// Appends the oldest packet that is to be sent to `out`, and tells whether its content was sent before.
    pub fn pop(&mut self, out: &mut Vec<u8>) -> Option<Again> {
        self.leaving.pop(out)
    }

    /// Puts bytes into the send buffer, as many as fit; how many these were. They leave at the next `poll`.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        if self.is_established() {
            self.sender.buffer.write(bytes)
        } else {
            0
        }
    }

    /// The positions in the stream up to which it is acknowledged, and up to which it is written.
    pub(super) fn reached(&self) -> [u64; 2] {
        [self.sender.acked, self.sender.buffer.end()]
    }

    /// Hands out what has arrived in order.
    pub fn read(&mut self, take: impl FnMut(&[u8])) {
        if self.receiver.read(take) > 0 && self.state == State::Open {
            let unacknowledged = self.receiver.expected().saturating_sub(self.told);
            self.acks.read(unacknowledged, self.receiver.has_opened());
        }
    }

    /// Whether bytes can be written and will be sent.
    pub fn is_established(&self) -> bool {
        self.state == State::Open && !self.sender.is_closing()
    }

    /// Whether the other side has said that it sends no more, and everything that it sent has been read.
    pub fn is_over(&self) -> bool {
        match self.state {
            State::Open | State::Over => self.receiver.is_over(),
            state => state == State::Closed,
        }
    }

    /// Whether there is no connection, and none in the making.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed | State::Over)
    }

    /// Segments that brought only what had come before, or came too late to say anything.
    pub fn duplicates(&self) -> u64 {
        self.old
    }

    /// Segments sent that repeat what was sent before.
    pub fn retransmits(&self) -> u64 {
        self.repeats + self.sender.repeats()
    }

    /// Times that data waited for the peer's window to open.
    pub fn window_waits(&self) -> u64 {
        self.window_waits + self.sender.window_waits
    }
}
