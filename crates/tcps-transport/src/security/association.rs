//! The security association of one side with the other: agrees on keys, seals, opens, and counts.

use super::{
    handshake::{self, Guard, Initiator, Message, Roots},
    keys::{expand, Method},
    record::{Limits, Opener, Sealer},
    secret::Secret,
    srtp::{Profile, Srtp},
};
use crate::channel::Side;
use ring::hkdf;
use std::collections::{BTreeSet, VecDeque};
use tcps_core::{
    endpoint::SecurityStats,
    record::DropReason,
    time::{Time, MS, SECOND},
};
use tcps_wire::{
    rtp::{is_media, is_rtcp},
    secure::{Repr, MESSAGE_BYTES},
};

/// A message of a handshake is sent again after this time at first, then after twice as long each time.
const FIRST_RETRY_NS: Time = MS / 2;
const LAST_RETRY_NS: Time = SECOND;
/// Side b answers one new hello in this time at most: each costs it two multiplications on the curve. Only hellos of who has the key
/// take this time: those of strangers cost a hash.
const ANSWER_NS: Time = 10 * MS;
/// After this time without an answer side a begins anew: a late hello of an earlier process of its own may have taken the place of
/// this one at side b, which then refuses it.
const HELLO_NS: Time = 10 * SECOND;
/// Times that side a sends a hello again within `LAST_RETRY_NS`; then once in each.
const FIRST_COPIES: Time = 11;
/// Silence after which what does not verify makes a side look for a new session, and how often it does.
const RESYNC_NS: Time = SECOND;
/// Hellos that side b remembers: at one a second those of an hour.
const MOST_FORMER: usize = 4_096;

/// What a datagram led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// A payload that the other side sent.
    Payload,
    /// Something of the association itself.
    Own,
    /// Nothing: it is dropped.
    Refused(DropReason),
}

/// What protects the datagrams of a channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Protection {
    /// Of records.
    pub(super) method: Method,
    pub(super) limits: Limits,
    /// Of RTP and RTCP, which then go in packets of their own in place of records.
    pub(super) profile: Option<Profile>,
}

/// A session: both directions of what a handshake gave.
#[derive(Debug)]
struct Session {
    number: u16,
    sealer: Sealer,
    opener: Opener,
    media: Option<Media>,
}

/// Both directions of RTP and RTCP.
#[derive(Debug)]
struct Media {
    out: Srtp,
    back: Srtp,
}

/// The keys of a direction of RTP and RTCP.
fn srtp(profile: Profile, root: &[u8; 32]) -> Option<Srtp> {
    let mut master = [0; 64];
    let master = &mut master[..profile.master_bytes()];
    expand(&hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, root), b"tcpsbed srtp", master);
    Srtp::new(profile, master)
}

/// A hello that side b answered.
#[derive(Debug)]
struct Answered {
    hello: Message,
    answer: Message,
    since_ns: Time,
    copies: Time,
    /// When a record of its session verified: side a has the answer.
    confirmed_ns: Option<Time>,
}

impl Answered {
    /// Whether another copy of the hello may be one that side a itself has sent, for want of an answer, or late.
    fn may_come(&mut self, now: Time) -> bool {
        let most = FIRST_COPIES + now.saturating_sub(self.since_ns) / LAST_RETRY_NS;
        let is_old = self.confirmed_ns.is_some_and(|at| now.saturating_sub(at) >= LAST_RETRY_NS);
        let may = self.copies < most && !is_old;
        self.copies += Time::from(may);
        may
    }
}

/// One side of an association.
pub struct Association {
    side: Side,
    protection: Protection,
    secret: Secret,
    prologue: Vec<u8>,
    guard: Guard,
    /// Side a: the handshake whose answer it waits for.
    opening: Option<Initiator>,
    opened_ns: Time,
    /// Side a: the hello that was answered last.
    opened: Option<Message>,
    /// Side a: times that it sent its hello and had no answer yet. Each of them is answered once at most.
    unanswered: u64,
    /// Side b: the hello that it answered last.
    answered: Option<Answered>,
    /// Side b: the newest hellos that it answered before that one, and their order. A repeated one would push the present
    /// handshake out.
    former: BTreeSet<Message>,
    order: VecDeque<Message>,
    /// Side b: the session of that answer, in which the other side has not sent yet.
    offered: Option<Session>,
    /// The session in which it sends.
    present: Option<Session>,
    /// The one before, for what is late.
    before: Option<Session>,
    retry_at: Option<Time>,
    pause_ns: Time,
    begun_ns: Option<Time>,
    answers_from_ns: Time,
    verified_ns: Time,
    /// When an RTP packet verified: RTCP, which carries its index, does so even where that of RTP is lost.
    media_ns: Time,
    resynced_ns: Time,
    messages: VecDeque<Vec<u8>>,
    stats: SecurityStats,
}

impl Association {
    pub(super) fn new(side: Side, protection: Protection, prologue: Vec<u8>, secret: Secret) -> Self {
        let guard = Guard::new(&secret.key, &prologue);
        Self {
            guard,
            side,
            protection,
            secret,
            prologue,
            opening: None,
            opened_ns: 0,
            opened: None,
            unanswered: 0,
            answered: None,
            former: BTreeSet::new(),
            order: VecDeque::new(),
            offered: None,
            present: None,
            before: None,
            retry_at: None,
            pause_ns: FIRST_RETRY_NS,
            begun_ns: None,
            answers_from_ns: Time::MIN,
            verified_ns: Time::MIN,
            media_ns: Time::MIN,
            resynced_ns: Time::MIN,
            messages: VecDeque::new(),
            stats: SecurityStats::default(),
        }
    }

    /// Whether payloads can be sealed.
    pub fn has_keys(&self) -> bool {
        self.present.is_some()
    }

    /// What it counted.
    pub fn stats(&self) -> SecurityStats {
        self.stats
    }

    /// Counts a payload that was given up for want of a key that may seal it.
    pub fn count_unkeyed(&mut self) {
        self.stats.unkeyed += 1;
    }

    /// Wants keys from `at` on, unless it has them or is about to.
    pub fn want_keys(&mut self, at: Time) {
        if self.present.is_none() && self.retry_at.is_none() {
            (self.retry_at, self.pause_ns) = (Some(at), FIRST_RETRY_NS);
        }
    }

    /// When `handle_timeout` is wanted.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.retry_at
    }

    /// Sends again what was not answered.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.retry_at.is_none_or(|at| at > now) {
            return;
        }
        match self.side {
            Side::A if self.opening.is_some() && now.saturating_sub(self.opened_ns) < HELLO_NS => {
                self.say_hello()
            }
            Side::A if self.opening.is_some() => self.open_handshake(now),
            Side::A if self.present.is_none() => self.open_handshake(now),
            Side::A => self.say_sealed(now, false),
            Side::B => self.push(Repr::Request, &[]),
        }
        self.retry_at = Some(now.saturating_add(self.pause_ns));
        self.pause_ns = (2 * self.pause_ns).min(LAST_RETRY_NS);
    }

    /// Its next own message goes into `buf`; false: there is none.
    pub fn poll_message(&mut self, buf: &mut Vec<u8>) -> bool {
        let Some(message) = self.messages.pop_front() else { return false };
        self.stats.added_bytes += message.len() as u64;
        buf.clear();
        buf.extend_from_slice(&message);
        true
    }

    /// The record or SRTP packet of a payload goes into `datagram`; false: there are no keys, or it is no payload that they seal.
    pub fn seal(&mut self, now: Time, payload: &[u8], datagram: &mut Vec<u8>) -> bool {
        let Some(session) = &mut self.present else { return false };
        let changed = match &mut session.media {
            Some(media) => media.out.seal(payload, datagram).then_some(false),
            None => session.sealer.seal(now, false, payload, datagram),
        };
        let Some(changed) = changed else { return false };
        self.stats.key_changes += u64::from(changed);
        self.stats.added_bytes += (datagram.len() - payload.len()) as u64;
        true
    }

    /// A datagram from anybody; what the other side sent in it goes into `payload`.
    pub fn open(&mut self, now: Time, datagram: &[u8], payload: &mut Vec<u8>) -> Opened {
        if self.protection.profile.is_some() && is_media(datagram) {
            let opened = self.open_in(now, |session| {
                session.media.as_mut().map(|media| media.back.open(datagram, payload).map(|()| 0))
            });
            let is_rtp = !is_rtcp(datagram);
            return match opened {
                Ok(is_current) => {
                    if is_rtp && is_current {
                        self.media_ns = now;
                    }
                    Opened::Payload
                }
                Err(reason) => {
                    if self.present.is_none() && self.offered.is_none() {
                        self.stats.unsealed += 1; // nobody with the key has answered
                    }
                    if is_rtp && reason != DropReason::Replayed {
                        self.resync(now, self.media_ns);
                    }
                    self.refuse(now, reason)
                }
            };
        }
        let Ok(repr) = Repr::parse(datagram) else {
            self.stats.unsealed += 1;
            return self.refuse(now, DropReason::Unverified);
        };
        match (repr, self.side) {
            (Repr::Record(record), _) => match self.open_in(now, |session| {
                let own = session.number == record.session;
                own.then(|| session.opener.open(record, datagram, payload))
            }) {
                Ok(_) if record.asks => {
                    self.renew(now);
                    Opened::Own
                }
                Ok(_) if payload.is_empty() => {
                    if self.side == Side::B {
                        self.say_sealed(now, false);
                    }
                    Opened::Own
                }
                Ok(_) => Opened::Payload,
                Err(reason) => self.refuse(now, reason),
            },
            (Repr::Hello, Side::B) => self.take_hello(now, &datagram[MESSAGE_BYTES..]),
            (Repr::Answer, Side::A) => self.take_answer(now, &datagram[MESSAGE_BYTES..]),
            (Repr::Request, Side::A) => {
                match self.present {
                    None => self.want_keys(now),
                    Some(_) => self.resync(now, self.verified_ns),
                }
                Opened::Own
            }
            _ => self.refuse(now, DropReason::Unverified),
        }
    }

    fn refuse(&mut self, now: Time, reason: DropReason) -> Opened {
        match reason {
            DropReason::Replayed => self.stats.replayed += 1,
            _ => {
                self.stats.unverified += 1;
                self.resync(now, self.verified_ns);
            }
        }
        Opened::Refused(reason)
    }

    /// Looks for a new session where nothing has verified for long: the other side may have begun anew, or this one has lost
    /// track of its keys or numbers.
    fn resync(&mut self, now: Time, verified_ns: Time) {
        if now.saturating_sub(verified_ns) >= RESYNC_NS {
            self.renew(now);
        }
    }

    /// Looks for a new session, unless it has just done so. Side b asks for it in its present one, so that side a believes it
    /// whatever arrives there.
    fn renew(&mut self, now: Time) {
        if now.saturating_sub(self.resynced_ns) < RESYNC_NS {
            return;
        }
        self.resynced_ns = now;
        match self.side {
            Side::A if self.opening.is_none() && self.present.is_some() => {
                self.open_handshake(now);
                self.pause_ns = FIRST_RETRY_NS;
                self.retry_at = Some(now.saturating_add(self.pause_ns));
            }
            Side::A => {}
            Side::B if self.present.is_some() => self.say_sealed(now, true),
            Side::B => self.push(Repr::Request, &[]),
        }
    }

    fn open_handshake(&mut self, now: Time) {
        self.begun_ns.get_or_insert(now);
        self.opened_ns = now;
        let drawn = self.secret.random.draw();
        self.opening =
            drawn.and_then(|drawn| Initiator::new(&self.guard, &self.secret.key, &self.prologue, drawn));
        self.unanswered = 0;
        self.say_hello();
    }

    fn say_hello(&mut self) {
        if let Some(hello) = self.opening.as_ref().map(|opening| opening.hello) {
            self.unanswered += 1;
            self.push(Repr::Hello, &hello);
        }
    }

    /// An empty record, by which the other side learns that the session stands, or that this one asks for another.
    fn say_sealed(&mut self, now: Time, asks: bool) {
        let mut record = Vec::new();
        let sealed = self.present.as_mut().and_then(|s| s.sealer.seal(now, asks, &[], &mut record));
        if let Some(changed) = sealed {
            self.stats.key_changes += u64::from(changed);
            self.messages.push_back(record);
        }
    }

    fn push(&mut self, repr: Repr, body: &[u8]) {
        let mut message = Vec::with_capacity(MESSAGE_BYTES + body.len());
        repr.emit(&mut message);
        message.extend_from_slice(body);
        self.messages.push_back(message);
    }

    fn take_hello(&mut self, now: Time, hello: &[u8]) -> Opened {
        if let Some(answered) = self.answered.as_mut().filter(|answered| answered.hello == hello) {
            if !answered.may_come(now) {
                return self.refuse(now, DropReason::Replayed);
            }
            if answered.confirmed_ns.is_none() {
                let answer = answered.answer;
                self.push(Repr::Answer, &answer);
            }
            return Opened::Own;
        }
        if self.former.contains(hello) {
            return self.refuse(now, DropReason::Replayed);
        }
        if !self.guard.admits(hello) {
            self.stats.refused_handshakes += 1;
            return self.refuse(now, DropReason::Unverified);
        }
        if now < self.answers_from_ns {
            return Opened::Own;
        }
        let Some(drawn) = self.secret.random.draw() else { return Opened::Own };
        let answer = handshake::answer(&self.guard, &self.secret.key, &self.prologue, drawn, hello);
        let Some((answer, roots)) = answer else {
            self.stats.refused_handshakes += 1;
            return self.refuse(now, DropReason::Unverified);
        };
        self.begun_ns.get_or_insert(now);
        self.answers_from_ns = now.saturating_add(ANSWER_NS);
        if let Some(Answered { hello, .. }) = self.answered.take() {
            self.former.insert(hello);
            self.order.push_back(hello);
        }
        if self.order.len() > MOST_FORMER {
            self.order.pop_front().map(|oldest| self.former.remove(&oldest));
        }
        let hello = hello.try_into().ok();
        self.answered =
            hello.map(|hello| Answered { hello, answer, since_ns: now, copies: 0, confirmed_ns: None });
        self.offered = self.session(&roots, now);
        self.push(Repr::Answer, &answer);
        Opened::Own
    }

    fn take_answer(&mut self, now: Time, answer: &[u8]) -> Opened {
        let roots = match (&mut self.opening, &self.opened) {
            (Some(opening), _) => opening.take(&self.guard, answer),
            (None, Some(hello)) if self.guard.answers(hello, answer) => {
                if self.unanswered == 0 {
                    return self.refuse(now, DropReason::Replayed);
                }
                self.unanswered -= 1;
                return Opened::Own;
            }
            (None, _) => None,
        };
        let Some(roots) = roots else {
            self.stats.refused_handshakes += 1;
            return self.refuse(now, DropReason::Unverified);
        };
        self.unanswered = self.unanswered.saturating_sub(1);
        self.opened = self.opening.take().map(|opening| opening.hello);
        let session = self.session(&roots, now);
        self.begin(session, now);
        self.say_sealed(now, false);
        self.pause_ns = FIRST_RETRY_NS;
        self.retry_at = Some(now.saturating_add(self.pause_ns));
        Opened::Own
    }

    fn session(&self, roots: &Roots, now: Time) -> Option<Session> {
        let (out, back) = match self.side {
            Side::A => (&roots.forward, &roots.backward),
            Side::B => (&roots.backward, &roots.forward),
        };
        let Protection { method, limits, profile } = self.protection;
        let media = match profile {
            Some(profile) => Some(Media { out: srtp(profile, out)?, back: srtp(profile, back)? }),
            None => None,
        };
        let sealer = Sealer::new(method, out, roots.session, now, limits)?;
        Some(Session { number: roots.session, sealer, opener: Opener::new(method, back)?, media })
    }

    /// Sends in a session from now on.
    fn begin(&mut self, session: Option<Session>, now: Time) {
        self.before = self.present.take();
        self.present = session;
        (self.verified_ns, self.media_ns) = (now, now);
        self.stats.sessions += 1;
        let took_ns = self.begun_ns.map(|begun| now.saturating_sub(begun));
        self.stats.handshake_ns = self.stats.handshake_ns.or(took_ns);
        self.retry_at = None;
    }

    /// Tries the sessions, until one opens a datagram and says how many keys it left behind; `None`: it is not one of that session.
    /// Whether that was no former session: what is late says nothing of the one in which this side sends.
    fn open_in(
        &mut self,
        now: Time,
        mut open: impl FnMut(&mut Session) -> Option<Result<u8, DropReason>>,
    ) -> Result<bool, DropReason> {
        let mut found = Err(DropReason::Unverified);
        let sessions = [&mut self.present, &mut self.offered, &mut self.before];
        for (which, session) in sessions.into_iter().enumerate() {
            match session.as_mut().and_then(&mut open) {
                Some(Ok(changes)) => {
                    found = Ok((which, changes));
                    break;
                }
                Some(Err(DropReason::Replayed)) => found = Err(DropReason::Replayed),
                _ => {}
            }
        }
        let (which, changes) = found?;
        self.stats.key_changes += u64::from(changes);
        let is_current = which < 2;
        if is_current {
            self.verified_ns = now;
        }
        self.verified(which, now);
        Ok(is_current)
    }

    /// A record has verified in the present (0), the offered (1) or the former session (2).
    fn verified(&mut self, which: usize, now: Time) {
        match which {
            0 if self.opening.is_none() => self.retry_at = None, // the other side has the keys
            1 => {
                let offered = self.offered.take();
                self.begin(offered, now);
                self.answered.iter_mut().for_each(|answered| answered.confirmed_ns = Some(now));
            }
            _ => {}
        }
    }
}
