//! What a connection makes of a segment that arrives.
//!
//! Checks stand in the order of RFC 9293 §3.10.7: old or forged segments are answered by an acknowledgement at most
//! (RFC 5961), and what contradicts the connection is refused.

use super::{
    ack::Ack,
    acks::Taken,
    receiver::Content,
    sequence::Numbers,
    settings::Agreed,
    stack::{Stack, State},
};
use tcps_core::{
    endpoint::Again,
    time::{Time, MS},
};
use tcps_wire::tcp::{Blocks, Ecn, Flags, Repr};

/// Answers to segments that do not fit are at least so far apart, as in Linux.
// [RFC 5961 §7]
const CHALLENGE_NS: Time = 500 * MS;

impl Stack {
    /// A packet has arrived. False if it is none of this connection, or nothing that a peer would send.
    pub fn receive(&mut self, now: Time, packet: &[u8]) -> bool {
        self.receive_inside(now, packet, Ecn::NotCapable)
    }

    /// The same of a packet that came inside another one: a mark on that is a mark on this.
    // [RFC 6040 §4.2] of its rules that one: the emulator gives no other combination
    pub fn receive_inside(&mut self, now: Time, packet: &[u8], outer: Ecn) -> bool {
        let Ok((mut segment, content)) = Repr::parse(packet, &self.ends[0]) else { return false };
        if outer == Ecn::Met {
            segment.ecn.mark();
        }
        let is_good = match self.state {
            State::Closed => self.receive_stray(&segment, content),
            State::Listen => self.receive_syn(now, &segment, content),
            State::SynSent => self.receive_answer(now, &segment, content),
            State::SynReceived | State::Open | State::Over => self.receive_segment(now, &segment, content),
        };
        if self.state == State::Open {
            self.send_all(now);
            self.finish();
        } else if self.state == State::Over {
            self.answer(now);
        }
        is_good
    }

    /// Both streams have ended.
    pub(super) fn finish(&mut self) {
        if self.sender.is_done() && self.receiver.has_ended() {
            self.state = State::Over;
            self.sender.timer = None;
        }
    }

    /// There is no such connection. After another one the segment counts as late, which nobody can tell from forged.
    fn receive_stray(&mut self, segment: &Repr, content: &[u8]) -> bool {
        self.refuse(segment, content);
        self.old += u64::from(self.has_stood);
        self.has_stood
    }

    // RFC 9293 §3.5.2
    fn refuse(&mut self, segment: &Repr, content: &[u8]) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        let reset = if segment.flags.has(Flags::ACK) {
            Repr { sequence: segment.acknowledgement, flags: Flags::RST, ..Repr::default() }
        } else {
            let flags = Flags::RST.with(Flags::ACK, true);
            Repr { acknowledgement: behind(segment, content), flags, ..Repr::default() }
        };
        self.leaving.push(&self.ends[1], &reset, [&[], &[]], Again::Nothing);
    }

    // [RFC 9293 §3.10.7.2]
    fn receive_syn(&mut self, now: Time, segment: &Repr, content: &[u8]) -> bool {
        if segment.flags.has(Flags::RST) || segment.flags.has(Flags::ACK) || !segment.flags.has(Flags::SYN) {
            return self.receive_stray(segment, content);
        }
        self.agree(now, segment);
        self.state = State::SynReceived;
        self.send_syn(now, 0);
        true
    }

    /// The peer's SYN says what it understands.
    fn agree(&mut self, now: Time, segment: &Repr) {
        self.theirs = Numbers::new(segment.sequence);
        let mut agreed = Agreed::new(&self.settings, &segment.options);
        // [RFC 3168 §6.1.1]
        agreed.ecn = if segment.flags.has(Flags::ACK) {
            self.settings.ecn && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::CWR)
        } else {
            segment.flags.has(Flags::ECE) && segment.flags.has(Flags::CWR)
        };
        self.reset_halves(agreed);
        self.stamps.take(now, segment.options.stamps.map_or(0, |s| s.0));
        self.told = 1;
        self.sender.largest_window = u64::from(segment.window);
        self.sender.allowed_to = 1 + self.sender.largest_window;
    }

    // [RFC 9293 §3.10.7.3]
    fn receive_answer(&mut self, now: Time, segment: &Repr, content: &[u8]) -> bool {
        let flags = segment.flags;
        let acknowledges = flags.has(Flags::ACK);
        if acknowledges && segment.acknowledgement != self.ours.wire(1) {
            return self.receive_stray(segment, content);
        }
        if flags.has(Flags::RST) {
            if acknowledges {
                self.end();
            }
            return true;
        }
        if !flags.has(Flags::SYN) {
            return false;
        }
        self.agree(now, segment);
        if acknowledges {
            self.open(now);
            self.acks.demand();
        } else {
            self.state = State::SynReceived;
            self.send_syn(now, 0);
        }
        true
    }

    /// The connection stands.
    fn open(&mut self, now: Time) {
        (self.state, self.has_stood) = (State::Open, true);
        let Some(handshake) = self.handshake.take() else { return };
        if handshake.repeats == 0 {
            let rtt_ns = now - handshake.sent_ns;
            self.sender.trips.note_least(now, rtt_ns);
            self.sender.trips.measured(rtt_ns, 1, 1);
        } else {
            self.sender.trips.be_careful();
        }
        self.sender.begin(now, handshake.repeats);
    }

    // [RFC 9293 §3.10.7.4]
    fn receive_segment(&mut self, now: Time, segment: &Repr, content: &[u8]) -> bool {
        let flags = segment.flags;
        let Some(start) = self.theirs.position(segment.sequence, self.receiver.expected()) else {
            return self.challenge(now, flags.has(Flags::RST));
        };
        let end = start + content.len() as u64;
        let stamp = segment.options.stamps.filter(|_| self.agreed.stamps);
        let is_empty = content.is_empty() && !flags.has(Flags::FIN);
        // RFC 7323 §5.3
        if stamp.is_some_and(|s| self.stamps.is_old(now, s.0)) && !flags.has(Flags::RST) {
            self.old += u64::from(!is_empty);
            // Data overtook an acknowledgement: nobody has to be told, as in Linux.
            if !is_empty || start >= self.receiver.expected() {
                self.answer_old(now, start, content, is_empty);
            }
            return true;
        }
        if flags.has(Flags::RST) {
            return self.reset(now, start);
        }
        if flags.has(Flags::SYN) {
            return self.receive_syn_again(now, segment, start);
        }
        let is_old = end < self.told;
        if is_old || start > self.receiver.offered_to() {
            self.old += u64::from(is_old && !is_empty);
            self.answer_old(now, start, content, is_empty);
            return is_old;
        }
        if let Some(stamp) = stamp.filter(|_| start <= self.told) {
            self.stamps.take(now, stamp.0);
        }
        if !flags.has(Flags::ACK) {
            return false;
        }
        match self.acknowledged(now, segment, content) {
            Ok(position) => self.receive_acknowledgement(now, segment, position, start, content),
            Err(is_good) => return is_good,
        }
        if self.state != State::Over {
            return self.receive_content(now, segment, start, content);
        } else if !content.is_empty() || flags.has(Flags::FIN) {
            self.acks.demand();
        }
        true
    }

    /// What was received before, or a question if the window is open: the peer needs to know where we are.
    /// What is empty answers nothing of ours, and two ends that answered each other's would never stop.
    // [RFC 5961 §7]
    fn answer_old(&mut self, now: Time, start: u64, content: &[u8], is_empty: bool) {
        if is_empty {
            self.challenge(now, false);
            return;
        }
        if !content.is_empty() && start < self.receiver.expected() {
            self.acks.quicken();
            self.receiver.take(start, content, false);
        }
        self.acks.demand();
    }

    // [RFC 5961 §3.2]
    fn reset(&mut self, now: Time, start: u64) -> bool {
        if start == self.receiver.expected() {
            self.end();
            return true;
        }
        let is_near = start > self.told && start <= self.receiver.offered_to();
        self.challenge(now, !is_near)
    }

    /// SYN again: the answer was lost, or somebody forges.
    // [RFC 5961 §4.2]
    fn receive_syn_again(&mut self, now: Time, segment: &Repr, start: u64) -> bool {
        if start == 0 && self.state == State::SynReceived {
            // Both sides have asked at once, and this is the answer. [RFC 9293 §3.5]
            if segment.flags.has(Flags::ACK) && segment.acknowledgement == self.ours.wire(1) {
                self.open(now);
                self.acks.demand();
                return true;
            }
            let repeats = self.handshake.map_or(0, |h| h.repeats);
            self.send_syn(now, repeats + 1);
            return true;
        }
        self.challenge(now, false);
        start == 0
    }

    /// Asks the peer, unless `is_silent` or it was asked just now, what it is about. Always false: the segment is refused.
    fn challenge(&mut self, now: Time, is_silent: bool) -> bool {
        let is_early = self.challenged_ns.is_some_and(|t| now < t.saturating_add(CHALLENGE_NS));
        if !is_silent && !is_early {
            self.challenged_ns = Some(now);
            self.acks.demand();
        }
        false
    }

    /// What a segment acknowledges, as a position; if the segment is to be dropped, whether a peer would send it.
    fn acknowledged(&mut self, now: Time, segment: &Repr, content: &[u8]) -> Result<u64, bool> {
        let sender = &self.sender;
        let (acked, sent_to, largest) = (sender.acked, sender.sent_to, sender.largest_window);
        let position = self.ours.position(segment.acknowledgement, acked);
        match position.filter(|p| (1..=sent_to).contains(p)) {
            // [RFC 5961 §5.2]
            Some(position) if position.saturating_add(largest) < acked => {
                self.old += 1;
                Err(!self.challenge(now, false))
            }
            Some(position) => Ok(position),
            // [RFC 9293 §3.10.7.4]
            None if self.state == State::SynReceived => {
                self.refuse(segment, content);
                Err(false)
            }
            // [RFC 5961 §5.2]
            None => Err(self.challenge(now, false)),
        }
    }

    fn receive_acknowledgement(
        &mut self,
        now: Time,
        segment: &Repr,
        position: u64,
        start: u64,
        content: &[u8],
    ) {
        if self.state == State::SynReceived {
            self.open(now);
        }
        let (ours, near) = (self.ours, self.sender.acked);
        let mut blocks = [(0, 0); Blocks::MOST];
        let mut count = 0;
        for (first, behind) in segment.options.sack.as_slice().iter().filter(|_| self.agreed.sack) {
            if let (Some(first), Some(behind)) = (ours.position(*first, near), ours.position(*behind, near)) {
                blocks[count] = (first, behind);
                count += 1;
            }
        }
        let stamp = segment.options.stamps.filter(|_| self.agreed.stamps);
        let ack = Ack {
            position,
            sequence: start,
            window: u64::from(segment.window) << self.agreed.shifts[0],
            blocks: &blocks[..count],
            echo_ns: stamp.and_then(|s| self.stamps.time_of(s.1, now)),
            has_content: !content.is_empty(),
            has_mark: self.agreed.ecn && segment.flags.has(Flags::ECE),
        };
        self.sender.acknowledge(now, &ack);
    }

    /// False if there is no room for it: a peer keeps to the window.
    fn receive_content(&mut self, now: Time, segment: &Repr, start: u64, content: &[u8]) -> bool {
        let is_last = segment.flags.has(Flags::FIN);
        if content.is_empty() && !is_last {
            return true;
        }
        self.receive_mark(segment, content);
        let taken = self.receiver.take(start, content, is_last);
        let is_useless = taken == Content::Useless;
        let had_come =
            start + content.len() as u64 <= self.receiver.expected() || self.receiver.has_duplicate();
        self.old += u64::from(is_useless && had_come);
        let (rtt_ns, stamps) = (self.sender.trips.smoothed_ns(), self.agreed.stamps);
        self.acks.received(
            now,
            &Taken {
                // A full segment is one, however many blocks it tells of.
                bytes: (content.len() + segment.options.sack.bytes(stamps)) as u64,
                closes_gaps: taken == Content::InOrder { closes_gaps: true },
                has_gaps: self.receiver.has_gaps(),
                is_useless: is_useless || self.receiver.has_duplicate(),
                is_pushed: segment.flags.has(Flags::PSH),
                is_last: self.receiver.has_ended(),
                expected: self.receiver.expected(),
                told: self.told,
                rtt_ns,
                timeout_ns: self.sender.trips.timeout_ns(),
            },
        );
        !is_useless || had_come
    }

    /// The peer is told of a mark of congestion until it says that it knows.
    // [RFC 3168 §6.1.3]
    fn receive_mark(&mut self, segment: &Repr, content: &[u8]) {
        if !self.agreed.ecn || content.is_empty() {
            return;
        }
        if segment.flags.has(Flags::CWR) {
            self.has_mark = false;
        }
        if segment.ecn == Ecn::Met {
            if !self.has_mark {
                self.acks.quicken();
            }
            self.has_mark = true;
        }
    }
}

/// The number behind a segment.
fn behind(segment: &Repr, content: &[u8]) -> u32 {
    let controls = u32::from(segment.flags.has(Flags::SYN)) + u32::from(segment.flags.has(Flags::FIN));
    segment.sequence.wrapping_add(content.len() as u32).wrapping_add(controls)
}
