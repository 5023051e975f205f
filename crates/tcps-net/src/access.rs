//! An NR-like radio access link: slots, their directions, and who may send in them.
//!
//! ```text
//!  pattern   D D D S U D D D S U …        one letter a slot: down, up, S neither, F both (FDD)
//!  down      ├─┤ next own slot, slot, processing
//!  up        ├── request ──┼── grant ──┤ next own slot, slot, processing       (scheduling request)
//!            ├─┤ next own slot of the configured period, slot, processing      (configured grant)
//! ```
//! A block that is not understood is sent again a fixed time later, up to a number of times (HARQ); what comes behind
//! it waits, so that the order is kept. The bytes of a slot are those of the link's rate in it.

use crate::turns::Turns;
use tcps_core::{
    seed::Stream,
    time::{Time, NEVER},
};
use tcps_plan::net::{AccessSpec, LinkSpec, NrSpec};

/// The own slots of one direction, as moments at which bytes leave the queue.
#[derive(Debug, Clone)]
pub struct Access {
    slot_ns: Time,
    /// Numbers of the slots that may be used, within a round of so many slots.
    usable: Vec<i64>,
    round: i64,
    /// Period of the chances to ask, and the time from asking to the first slot granted; absent: nothing is asked for.
    request: Option<(Time, Time)>,
    /// No slot that begins earlier may be used: its grant is not there.
    earliest: Time,
    /// Number of the slot that is used next.
    slot: i64,
    bytes: u32,
    left: u32,
}

impl Access {
    /// The slots of a link's direction.
    pub fn new(spec: &NrSpec, rate_bps: Option<f64>) -> Self {
        let own: Vec<bool> =
            spec.pattern.bytes().map(|c| c == b'F' || c == if spec.up { b'U' } else { b'D' }).collect();
        let bytes = rate_bps.map_or(f64::from(u32::MAX), |rate| rate * spec.slot_ns as f64 / 8e9);
        let (every, request) = match spec.access {
            _ if !spec.up => (1, None),
            AccessSpec::Request { period_ns, grant_ns } => (1, Some((period_ns, grant_ns))),
            AccessSpec::Configured { period_ns } => ((period_ns / spec.slot_ns).max(1), None),
        };
        let bytes = (bytes as u32).max(1);
        let round = own.len() as i64 * every;
        let is_own = |slot: i64| own[(slot % own.len() as i64) as usize];
        // Of a configured period only the first own slot is given.
        let given = |slot: &i64| is_own(*slot) && !(slot - slot % every..*slot).any(is_own);
        let usable: Vec<i64> = (0..round).filter(given).collect();
        let slot_ns = spec.slot_ns;
        let mut access = Self { slot_ns, usable, round, request, earliest: 0, slot: -1, bytes, left: bytes };
        access.pass();
        access
    }

    /// The usable slot `n` after the first one from `slot` on. `check` sees to it that there is one in a round.
    fn usable_from(&self, slot: i64, n: usize) -> i64 {
        let count = self.usable.len().max(1);
        let place = self.usable.partition_point(|s| *s < slot.rem_euclid(self.round)).saturating_add(n);
        let within = self.usable.get(place % count).copied().unwrap_or(0);
        let begin = slot - slot.rem_euclid(self.round);
        begin.saturating_add(self.round.saturating_mul((place / count) as i64)).saturating_add(within)
    }
}

impl Turns for Access {
    fn next(&self) -> Time {
        self.slot.saturating_mul(self.slot_ns)
    }

    fn after(&self, n: usize) -> Time {
        self.usable_from(self.slot, n).saturating_mul(self.slot_ns)
    }

    /// The buffer was empty and a packet has come. [TS 38.321 §5.4.4]
    fn skip_to(&mut self, now: Time) {
        self.earliest = match self.request {
            // The next chance to ask, then the grant.
            Some((period, grant)) => (now / period + 1).saturating_mul(period).saturating_add(grant),
            None => now.saturating_add(1),
        };
        if self.earliest >= NEVER / 2 {
            return;
        }
        let first = (self.earliest + self.slot_ns - 1) / self.slot_ns;
        self.slot = self.usable_from(first.max(self.slot), 0);
        self.left = self.bytes;
    }

    fn take(&mut self, want: u32) -> u32 {
        let got = want.min(self.left);
        self.left -= got;
        if self.left == 0 {
            self.pass();
        }
        got
    }

    /// While bytes wait, every own slot is granted: the buffer's state rides with the data. [TS 38.321 §5.4.5]
    fn pass(&mut self) {
        self.slot = self.usable_from(self.slot + 1, 0);
        self.left = self.bytes;
    }

    fn mean_ns(&self, bytes: u32) -> Time {
        let usable = self.usable.len().max(1);
        let per_byte = (self.round * self.slot_ns) as f64 / (usable as f64 * f64::from(self.bytes));
        (f64::from(bytes) * per_byte) as Time
    }

    fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// Blocks that are sent again until they are understood. [TS 38.321 §5.4.2]
pub(crate) struct Harq {
    error: f64,
    again_ns: Time,
    most: u32,
    stream: Stream,
}

impl Harq {
    /// That of a link, if it is a radio link.
    pub fn of(link: &LinkSpec, seed: u64) -> Option<Self> {
        let nr = link.radio.as_ref()?.nr()?;
        let stream = Stream::new(seed, &format!("links.{}.harq", link.name));
        Some(Self { error: nr.block_error, again_ns: nr.again_ns, most: nr.retransmissions, stream })
    }

    /// Time that retransmissions of a block take; nothing if it is given up.
    pub fn delay(&mut self) -> Option<Time> {
        let failed = (0..=self.most).take_while(|_| self.stream.chance(self.error)).count() as u32;
        (failed <= self.most).then(|| self.again_ns.saturating_mul(Time::from(failed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    fn nr(up: bool, access: AccessSpec) -> NrSpec {
        NrSpec {
            slot_ns: MS / 2,
            pattern: "DDDSU".into(),
            up,
            access,
            processing_ns: 0,
            block_error: 0.0,
            again_ns: 0,
            retransmissions: 0,
        }
    }

    const ASKED: AccessSpec = AccessSpec::Request { period_ns: 5 * MS, grant_ns: 2 * MS };

    #[test]
    fn only_slots_of_the_own_direction_are_used() {
        let mut down = Access::new(&nr(false, ASKED), None);
        let slots: Vec<Time> = std::iter::repeat_with(|| {
            let at = down.next();
            down.pass();
            at / (MS / 2)
        })
        .take(7)
        .collect();
        assert_eq!(slots, [0, 1, 2, 5, 6, 7, 10]);
        assert_eq!(Access::new(&nr(true, ASKED), None).next(), 4 * (MS / 2));
    }

    /// [TS 38.321 §5.4.4]
    #[test]
    fn an_empty_buffer_asks_first_and_a_filled_one_goes_on() {
        let mut up = Access::new(&nr(true, ASKED), Some(8e6)); // 500 bytes a slot
        up.skip_to(MS);
        // Asked at 5 ms, granted from 7 ms on; slot 14 begins there, and is followed by 19, the fourth of its round.
        assert_eq!(up.next(), 14 * (MS / 2));
        assert_eq!(up.take(800), 500);
        // [TS 38.321 §5.4.5] No second request for what is left.
        assert_eq!(up.next(), 19 * (MS / 2));
        assert_eq!((up.take(300), up.take(300)), (300, 200), "blocks share a slot");
        assert_eq!(up.next(), 24 * (MS / 2));
    }

    #[test]
    fn a_configured_grant_needs_no_request() {
        let configured = AccessSpec::Configured { period_ns: 5 * MS };
        let fdd = NrSpec { pattern: "F".into(), ..nr(true, configured) };
        let mut up = Access::new(&fdd, None);
        up.skip_to(MS);
        assert_eq!(up.next(), 5 * MS);
        assert_eq!((up.after(1), up.after(2)), (10 * MS, 15 * MS));
    }
}
