//! What becomes of the connections of a channel, one after another: rows, counters, and the samples that go down with one.
//!
//! ```text
//! none ── stands ──► sent … progress (what is acknowledged, silence) ── lose ──► none again
//! ```

use bytes::Bytes;
use std::collections::VecDeque;
use tcps_core::{
    endpoint::ConnectionStats,
    ids::FlowId,
    record::{DropReason, Kind, Record},
    time::{Time, MS},
};

/// Silence after which a connection counts as stalled: the least retransmission time-out of Linux.
pub const STALL_NS: Time = 200 * MS;

/// What a row tells of a connection.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Lost = 0,
    Stands = 1,
    Stalled = 2,
}

fn row(now: Time, phase: Phase, value: Time) -> Record {
    Record { detail: phase as u8, value, ..Record::new(now, Kind::Connection) }
}

/// What shows that a sample has been acknowledged.
#[derive(Debug)]
pub(crate) enum Mark {
    /// The acknowledged bytes reach so far.
    Reached(i64),
    /// The connection has released its last byte, so that nobody else holds it.
    Released(Bytes),
}

impl Mark {
    fn is_acknowledged(&self, acknowledged: i64) -> bool {
        match self {
            Self::Reached(end) => *end <= acknowledged,
            Self::Released(bytes) => bytes.is_unique(),
        }
    }
}

/// The connections of one side of a channel.
#[derive(Debug, Default)]
pub struct Standing {
    since_ns: Option<Time>,
    /// Samples in the connection, of which the oldest is not acknowledged.
    flight: VecDeque<(Mark, FlowId, u32)>,
    /// Whether samples without a mark have gone since the last acknowledgement.
    is_unanswered: bool,
    acknowledged: i64,
    /// Since when samples wait and nothing has been acknowledged.
    waits_ns: Option<Time>,
    silence_ns: Time,
    stats: ConnectionStats,
}

impl Standing {
    /// A connection stands; no row if it has done so before.
    pub fn stands(&mut self, now: Time) -> Option<Record> {
        if self.since_ns.is_some() {
            return None;
        }
        self.since_ns = Some(now);
        self.stats.connections += 1;
        if let Some(down) = self.stats.down_since_ns.take() {
            self.stats.longest_down_ns = self.stats.longest_down_ns.max(now - down);
        }
        (self.acknowledged, self.waits_ns, self.silence_ns) = (0, None, 0);
        Some(row(now, Phase::Stands, 0))
    }

    /// A sample has gone into the connection.
    pub(crate) fn sent(&mut self, mark: Mark, (flow, index): (FlowId, u32)) {
        self.flight.push_back((mark, flow, index));
    }

    /// A sample has gone, with which the bytes of the connection reach so far.
    pub fn sent_to(&mut self, end: i64, sample: (FlowId, u32)) {
        self.sent(Mark::Reached(end), sample);
    }

    /// A sample has gone that is not lost with the connection.
    pub(crate) fn sent_unmarked(&mut self) {
        self.is_unanswered = true;
    }

    /// So much is acknowledged by now: bytes, or any number that each acknowledgement changes. Nothing new for `patience_ns`
    /// or longer, while samples wait for it, is a silence.
    pub(crate) fn progress(&mut self, now: Time, acknowledged: i64, patience_ns: Time) -> Option<Record> {
        let moved = self.acknowledged(acknowledged);
        self.is_unanswered &= !moved;
        let since_ns = self.waits_ns.filter(|_| !moved).unwrap_or(now);
        self.waits_ns = (self.is_unanswered || !self.flight.is_empty()).then_some(since_ns);
        let silence_ns = self.waits_ns.map_or(0, |since| now - since);
        self.silent(now, if silence_ns < patience_ns { 0 } else { silence_ns })
    }

    /// So much is acknowledged by now; whether that is news.
    pub fn acknowledged(&mut self, acknowledged: i64) -> bool {
        while self.flight.front().is_some_and(|(mark, ..)| mark.is_acknowledged(acknowledged)) {
            self.flight.pop_front();
        }
        std::mem::replace(&mut self.acknowledged, acknowledged) != acknowledged
    }

    /// Nothing has been acknowledged for so long; a row says so of a stall that has ended.
    pub fn silent(&mut self, now: Time, silence_ns: Time) -> Option<Record> {
        let before_ns = std::mem::replace(&mut self.silence_ns, silence_ns);
        if silence_ns >= before_ns || before_ns < STALL_NS {
            return None;
        }
        self.stats.stalls += 1;
        self.stats.longest_stall_ns = self.stats.longest_stall_ns.max(before_ns);
        Some(row(now, Phase::Stalled, before_ns))
    }

    /// The connection is lost, and with it what was in flight and samples of which `parts` had gone. Nothing if none stood.
    pub fn lose(&mut self, now: Time, parts: impl IntoIterator<Item = (FlowId, u32)>) -> Vec<Record> {
        let Some(since_ns) = self.since_ns.take() else { return Vec::new() };
        let mut rows: Vec<_> = self.silent(now, 0).into_iter().collect();
        rows.push(row(now, Phase::Lost, now - since_ns));
        self.is_unanswered = false;
        let lost = |(mark, ..): &(Mark, _, _)| !mark.is_acknowledged(self.acknowledged);
        let flight = std::mem::take(&mut self.flight).into_iter().filter(lost);
        let flight = flight.map(|(_, flow, index)| (flow, index)).chain(parts);
        let detail = DropReason::Connection as u8;
        let dropped = |(flow, index)| Record { flow, index, detail, ..Record::new(now, Kind::Dropped) };
        let before = rows.len();
        rows.extend(flight.map(dropped));
        self.stats.lost_in_flight += (rows.len() - before) as u64;
        self.stats.connections_lost += 1;
        self.stats.first_lost_ns.get_or_insert(now);
        self.stats.down_since_ns = Some(now);
        rows
    }

    /// Somebody else than the peer asked for one.
    pub fn stranger(&mut self) {
        self.stats.strangers += 1;
    }

    /// What was counted; a silence that has not ended counts as long as it is by now.
    pub fn stats(&self) -> ConnectionStats {
        let standing = if self.silence_ns >= STALL_NS { self.silence_ns } else { 0 };
        ConnectionStats {
            stalls: self.stats.stalls + u64::from(standing > 0),
            longest_stall_ns: self.stats.longest_stall_ns.max(standing),
            silent_at_end_ns: standing,
            ..self.stats
        }
    }
}
