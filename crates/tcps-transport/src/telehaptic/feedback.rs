//! Network feedback: delays of arriving packets go back in the headers of departing ones.
//!
//! ```text
//! arrival ─► delay ─► next packet on the way back ─► notice + own log ─► RateController
//! ```
//! Only the newest measurement is told. The header has 24 bits of microseconds; clocks that differ make delays that
//! are negative or far too long, so the field is a number modulo 2^24, read as -4.19 s to 12.58 s.

use std::collections::VecDeque;
use tcps_core::{
    rate::{DelayNotice, Sent},
    time::{Time, MS, US},
};
use tcps_wire::telehaptic::NO_DELAY;

/// Packets that a sender remembers.
const REMEMBERED: usize = 512;
/// How much older than it seems a packet may be: a queue that grows by a packet of cross traffic delays the next ones more.
const DOUBT_NS: Time = 16 * MS;
const FIELD: Time = 1 << 24;
const MOST_US: Time = FIELD / 4 * 3;

/// Says the delays of packets that arrived.
#[derive(Debug, Default)]
pub(super) struct Notifier {
    delay_us: Option<u32>,
    fresh: bool,
}

impl Notifier {
    /// A packet has arrived after this long.
    pub(super) fn measure(&mut self, delay_ns: Time) {
        self.delay_us = Some(field(delay_ns));
        self.fresh = true;
    }

    /// What the next header says: the delay, and whether that has been told before.
    // [Gokhale 2017: notification]
    pub(super) fn next(&mut self) -> (Option<u32>, bool) {
        let repeated = self.delay_us.is_some() && !self.fresh;
        self.fresh = false;
        (self.delay_us, repeated)
    }
}

/// A delay as the header has it.
fn field(delay_ns: Time) -> u32 {
    let us = delay_ns.div_euclid(US).clamp(MOST_US - FIELD, MOST_US - 1);
    (us.rem_euclid(FIELD) as u32).min(NO_DELAY - 1)
}

/// The delay that a header means.
fn delay_ns(field_us: u32) -> Time {
    let us = Time::from(field_us);
    (if us >= MOST_US { us - FIELD } else { us }) * US
}

/// The sender's own packets, as far back as a notice may reach.
#[derive(Debug, Default)]
pub(super) struct Log {
    sent: VecDeque<(Time, u8, u32)>,
}

impl Log {
    /// A packet has left.
    pub(super) fn add(&mut self, packet: &Sent) {
        if self.sent.back().is_some_and(|(at, ..)| packet.generated_ns < *at) {
            self.sent.clear(); // the clock has been put back
        }
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back((packet.generated_ns, packet.fragments, packet.wire_bytes));
    }

    /// What a header with `field_us` says, if it came in a packet that left at `left_ns` of the other clock and was
    /// `reverse_ns` on its way.
    ///
    /// The packet that it speaks of is the newest that, after this delay, had arrived when the header was written.
    /// Offset of the clocks cancels: the delay holds it already.
    pub(super) fn notice(
        &self,
        field_us: u32,
        repeated: bool,
        left_ns: Time,
        reverse_ns: Time,
    ) -> DelayNotice {
        let delay_ns = delay_ns(field_us);
        let sent_ns = left_ns.saturating_sub(delay_ns);
        let after = self.sent.partition_point(|(generated_ns, ..)| *generated_ns <= sent_ns);
        let newest = after.checked_sub(1).and_then(|i| self.sent.get(i)).copied();
        let (generated_ns, fragments, wire_bytes) = newest.unwrap_or((sent_ns, 1, 0));
        let mut before = self.sent.range(..after).rev();
        let certain = newest.is_some()
            && before
                .by_ref()
                .take_while(|(at, ..)| *at > generated_ns - DOUBT_NS)
                .all(|(_, k, _)| *k == fragments);
        DelayNotice {
            delay_ns,
            fresh: !repeated,
            generated_ns,
            fragments,
            wire_bytes,
            certain,
            reverse_ns,
            left_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::SECOND;

    fn packet(generated_ns: Time) -> Sent {
        Sent { generated_ns, fragments: 2, payload_bytes: 0, wire_bytes: 0 }
    }

    // [Gokhale 2017: notification]
    #[test]
    fn only_the_newest_delay_is_told_and_once_as_new() {
        let mut n = Notifier::default();
        assert_eq!(n.next(), (None, false));
        n.measure(15 * MS);
        n.measure(16 * MS + 999);
        assert_eq!((n.next(), n.next()), ((Some(16_000), false), (Some(16_000), true)));
        n.measure(17 * MS);
        assert_eq!(n.next(), (Some(17_000), false));
    }

    #[test]
    fn delays_between_clocks_that_differ_survive_the_24_bits() {
        for delay in [0, -2 * US, -4 * SECOND, 29_541 * US, 12 * SECOND] {
            assert_eq!(delay_ns(field(delay)), delay);
        }
        assert_eq!(delay_ns(field(Time::MAX)), (MOST_US - 1) * US);
        assert_eq!(delay_ns(field(Time::MIN)), (MOST_US - FIELD) * US);
        assert_eq!(delay_ns(field(-US)), -2 * US, "-1 us is the pattern that means none");
    }

    #[test]
    fn a_notice_finds_its_packet_whatever_the_clocks_say() {
        for offset in [0, 3 * SECOND, -2 * SECOND] {
            let mut log = Log::default();
            (0..600).for_each(|i| log.add(&packet(i * MS)));
            // The packet of 500 ms came after 15.2 ms; the header left at 516 ms, with 501 ms still on its way.
            let field_us = field(15_200 * US + offset);
            let notice = log.notice(field_us, false, 516 * MS + offset, 0);
            assert_eq!((notice.generated_ns, notice.fragments), (500 * MS, 2), "{offset}");
            assert_eq!(notice.delay_ns, 15_200 * US + offset);
        }
    }

    /// A controller that takes a packet for one with another k sees a queue that is not there, or none where one is.
    #[test]
    fn a_notice_is_certain_if_all_packets_of_16_ms_before_held_as_many_fragments() {
        let mut log = Log::default();
        assert!(!log.notice(0, false, 0, 0).certain, "nothing has left");
        let merged = |ms: Time| (ms * MS, 4);
        let single = |ms: Time| (ms * MS, 1);
        for (generated_ns, fragments) in (50..100).map(single).chain((103..130).step_by(4).map(merged)) {
            log.add(&Sent { fragments, ..packet(generated_ns) });
        }
        let certain = [98, 103, 111, 115, 119].map(|ms| log.notice(0, false, ms * MS, 0).certain);
        assert_eq!(certain, [true, false, false, true, true]);
    }
}
