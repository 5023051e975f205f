//! The record layer of a session: numbers, keys that change, and what is accepted.

use super::{
    keys::{Chain, Key, Method},
    replay::Replay,
};
use std::collections::VecDeque;
use tcps_core::{record::DropReason, time::Time};
use tcps_wire::secure::{Record, RECORD_BYTES};

/// Keys ahead of the present one that a receiver looks for. Where more than so many are lost in a row it asks for a new session.
pub(super) const AHEAD: u8 = 8;

/// After what a sender changes its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) packets: u32,
    pub(super) time_ns: Time,
}

/// The sending half.
#[derive(Debug)]
pub(super) struct Sealer {
    chain: Chain,
    key: Key,
    session: u16,
    phase: u8,
    next: u32,
    since_ns: Time,
    limits: Limits,
}

impl Sealer {
    pub(super) fn new(
        method: Method,
        root: &[u8; 32],
        session: u16,
        now: Time,
        limits: Limits,
    ) -> Option<Self> {
        let chain = Chain::new(method, root);
        let key = chain.key()?;
        Some(Self { chain, key, session, phase: 0, next: 0, since_ns: now, limits })
    }

    /// The record of a payload, or of none that `asks` for a new session, in `datagram`; whether the key changed before it.
    /// `None`: it cannot be sealed.
    pub(super) fn seal(
        &mut self,
        now: Time,
        asks: bool,
        payload: &[u8],
        datagram: &mut Vec<u8>,
    ) -> Option<bool> {
        let age_ns = now.saturating_sub(self.since_ns);
        let changes = self.next >= self.limits.packets || (age_ns >= self.limits.time_ns && self.next > 0);
        if changes {
            self.chain.step();
            self.key = self.chain.key()?;
            (self.phase, self.next, self.since_ns) = (self.phase.wrapping_add(1), 0, now);
        }
        let record = Record { asks, phase: self.phase, session: self.session, number: self.next };
        datagram.clear();
        datagram.extend_from_slice(&record.to_bytes());
        datagram.extend_from_slice(payload);
        if !self.key.seal(record.number, RECORD_BYTES, datagram) {
            return None;
        }
        self.next += 1;
        Some(changes)
    }
}

/// The receiving half: the newest key that the sender has used, the one before it for what is late, and those to come that were
/// looked for: each is made once, whatever is forged.
#[derive(Debug)]
pub(super) struct Opener {
    phase: u8,
    newest: Keyed,
    before: Option<Keyed>,
    coming: VecDeque<Key>,
    /// At the last key of all these.
    chain: Chain,
}

#[derive(Debug)]
struct Keyed {
    key: Key,
    replay: Replay,
}

impl Keyed {
    fn open(&mut self, record: Record, datagram: &[u8], payload: &mut Vec<u8>) -> Result<(), DropReason> {
        if !self.replay.is_new(record.number.into()) {
            return Err(DropReason::Replayed);
        }
        if !self.key.open(record.number, RECORD_BYTES, datagram, payload) {
            return Err(DropReason::Unverified);
        }
        self.replay.mark(record.number.into());
        Ok(())
    }
}

impl Opener {
    pub(super) fn new(method: Method, root: &[u8; 32]) -> Option<Self> {
        let chain = Chain::new(method, root);
        let newest = Keyed { key: chain.key()?, replay: Replay::new() };
        Some(Self { phase: 0, newest, before: None, coming: VecDeque::with_capacity(AHEAD.into()), chain })
    }

    /// The payload of a record goes into `payload`; how many keys were left behind for it.
    pub(super) fn open(
        &mut self,
        record: Record,
        datagram: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<u8, DropReason> {
        match record.phase.wrapping_sub(self.phase) {
            0 => self.newest.open(record, datagram, payload).map(|()| 0),
            u8::MAX => match &mut self.before {
                Some(before) => before.open(record, datagram, payload).map(|()| 0),
                None => Err(DropReason::Unverified),
            },
            ahead @ 1..=AHEAD => {
                let key = self.coming_key(ahead.into()).ok_or(DropReason::Unverified)?;
                if !key.open(record.number, RECORD_BYTES, datagram, payload) {
                    return Err(DropReason::Unverified);
                }
                let key =
                    self.coming.drain(..usize::from(ahead)).next_back().ok_or(DropReason::Unverified)?;
                let mut newest = Keyed { key, replay: Replay::new() };
                newest.replay.mark(record.number.into());
                let old = std::mem::replace(&mut self.newest, newest);
                self.before = (ahead == 1).then_some(old);
                self.phase = record.phase;
                Ok(ahead)
            }
            _ => Err(DropReason::Unverified),
        }
    }

    /// The key so many after the newest one.
    fn coming_key(&mut self, ahead: usize) -> Option<&Key> {
        while self.coming.len() < ahead {
            self.chain.step();
            self.coming.push_back(self.chain.key()?);
        }
        self.coming.get(ahead - 1)
    }
}
