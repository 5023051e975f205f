//! Cross traffic through a bottleneck, worked out of the residual queueing delays of a sender's own packets.
//!
//! ```text
//! q, q'   residual delays of two packets sent dt apart            own   work of what this sender sent from one to the other
//! most  = q' - q + dt - own                  all of it, and the time in which the line stood idle
//! least = q' - max(0, q + own - dt)          what cannot be anything else
//! ```
//! Both are cross traffic, in the time that the line takes for it; while there is a queue they are the same. They do not
//! depend on how the sender merges, so that they need not settle after a change. The work of one packet of it is seen
//! between packets that were sent one sample apart; of packets further apart only what is far above the average counts.

use super::windowed::WindowedMin;
use std::collections::VecDeque;
use tcps_core::{
    rate::{DelayNotice, Sent},
    time::{Time, MS, SECOND},
};

const BASE_NS: Time = 60 * SECOND;
/// The drift that a base follows upwards, that of two crystals of 50 ppm and some more; downwards it follows any.
const DRIFT: f64 = 120e-6;
/// Packets of its own that a sender remembers.
const REMEMBERED: usize = 512;
/// Packets that were told of that it remembers.
const MOST_TOLD: usize = 4096;
/// Work that may be an idle moment, a clock's step or rounding: less is no packet.
const LEAST_PACKET_NS: f64 = 250e3;
/// Most that a packet counts for, in bytes on the wire.
const MOST_PACKET_BYTES: f64 = 1500.0;
/// For so long a packet of cross traffic tells how large the next will be.
const MEASURED_FOR_NS: Time = 10 * SECOND;
/// Weights of a packet that is larger than the average, and of one that is smaller: two at once are rare.
const LARGER: f64 = 1.0 / 8.0;
const SMALLER: f64 = 1.0 / 32.0;
/// By how much more than the time between two headers a notice may be older than it seems.
const DOUBT_NS: Time = 2 * MS;

/// A packet of the sender's own: when its earliest sample was made, fragments, and the work of all before it.
#[derive(Debug, Clone, Copy)]
struct Own {
    generated_ns: Time,
    fragments: u8,
    before_ns: f64,
    /// The same time of the newest packet before it that had another number of fragments.
    other_ns: Time,
}

impl Own {
    /// Whether all packets that a fresh notice may be of had as many fragments: what came between two headers is told in the
    /// second.
    fn is_surely_of(&self, notice: &DelayNotice, gap_ns: Time) -> bool {
        let oldest_ns = notice.generated_ns.saturating_sub(gap_ns).saturating_sub(DOUBT_NS);
        self.fragments == notice.fragments && self.other_ns <= oldest_ns
    }
}

/// Work of cross traffic until a packet was sent.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    sent_ns: Time,
    least_ns: f64,
    most_ns: f64,
}

/// What a notice says of the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// When the packet left, on the sender's clock.
    pub(super) sent_ns: Time,
    /// The queue that it met.
    pub(super) queue_ns: f64,
}

/// The observer. All work is in nanoseconds of the bottleneck's time.
#[derive(Debug)]
pub(super) struct Others {
    period_ns: Time,
    byte_ns: f64,
    base: WindowedMin,
    own: VecDeque<Own>,
    own_ns: f64,
    /// Queue and own work before the newest packet that was told of.
    last: Option<(f64, f64)>,
    now: Work,
    window: VecDeque<Work>,
    packet_ns: f64,
    /// When the last packet of theirs was measured.
    measured_ns: Time,
    /// When the newest header left, on the other clock.
    left_ns: Time,
    /// Payload bytes of a fragment, and bytes of headers of a packet.
    fragment_bytes: f64,
    overhead_bytes: f64,
}

impl Others {
    /// For samples of this period; `byte_ns` is the time that a byte takes on the bottleneck, times the hops that serialise.
    pub(super) fn new(period_ns: Time, byte_ns: f64) -> Self {
        Self {
            period_ns,
            byte_ns,
            base: WindowedMin::new(BASE_NS, DRIFT, 1.0),
            own: VecDeque::new(),
            own_ns: 0.0,
            last: None,
            now: Work::default(),
            window: VecDeque::new(),
            packet_ns: 0.0,
            measured_ns: 0,
            left_ns: Time::MIN,
            fragment_bytes: 0.0,
            overhead_bytes: 0.0,
        }
    }

    /// A packet of the sender's own has left.
    pub(super) fn sent(&mut self, packet: &Sent) {
        let merging_ns = Time::from(packet.fragments) * self.period_ns;
        let newest_ns = packet.generated_ns.saturating_add(merging_ns);
        if self.own.back().is_some_and(|own| newest_ns < own.generated_ns) {
            *self = Self::new(self.period_ns, self.byte_ns); // the clock has been put back
        }
        if self.own.len() == REMEMBERED {
            self.own.pop_front();
        }
        let Sent { generated_ns, fragments, .. } = *packet;
        let other_ns = match self.own.back() {
            Some(own) if own.fragments == fragments => own.other_ns,
            Some(own) => own.generated_ns,
            None => Time::MIN,
        };
        self.own.push_back(Own { generated_ns, fragments, before_ns: self.own_ns, other_ns });
        self.own_ns += f64::from(packet.wire_bytes) * self.byte_ns;
        self.fragment_bytes = f64::from(packet.payload_bytes) / f64::from(packet.fragments.max(1));
        self.overhead_bytes = f64::from(packet.wire_bytes) - f64::from(packet.payload_bytes);
    }

    /// What a notice says; nothing if it has been told before, came in a header that was overtaken, is of a packet that was not
    /// sent after the one before, or may be of a packet with another k. Such a notice moves no base.
    pub(super) fn notice(&mut self, now: Time, notice: &DelayNotice) -> Option<Seen> {
        let gap_ns = notice.left_ns.saturating_sub(std::mem::replace(&mut self.left_ns, notice.left_ns));
        if gap_ns < 0 {
            return None;
        }
        let place = self.own.partition_point(|own| own.generated_ns <= notice.generated_ns).checked_sub(1)?;
        let own = self.own[place];
        let merging_ns = (Time::from(notice.fragments) - 1) * self.period_ns;
        let sent_ns = notice.generated_ns.saturating_add(merging_ns);
        let is_newer = self.last.is_none() || sent_ns > self.now.sent_ns;
        if !notice.fresh || !is_newer || !own.is_surely_of(notice, gap_ns) {
            return None;
        }
        let bare_ns =
            notice.delay_ns.saturating_sub(merging_ns) as f64 - f64::from(notice.wire_bytes) * self.byte_ns;
        let queue_ns = bare_ns - self.base.add(now, bare_ns);
        let seen = Seen { sent_ns, queue_ns };
        self.add(seen, own.before_ns);
        Some(seen)
    }

    /// Accounts for what others sent since the packet before.
    fn add(&mut self, seen: Seen, before_ns: f64) {
        let Seen { sent_ns, queue_ns } = seen;
        let Some((queue, own)) = self.last else {
            self.last = Some((queue_ns, before_ns));
            self.now.sent_ns = sent_ns;
            self.window.push_back(self.now);
            return;
        };
        let span_ns = sent_ns.saturating_sub(self.now.sent_ns) as f64;
        let own_ns = before_ns - own;
        let most_ns = (queue_ns - queue + span_ns - own_ns).max(0.0);
        let least_ns = (queue_ns - (queue + own_ns - span_ns).max(0.0)).clamp(0.0, most_ns);
        self.measure(&seen, span_ns, least_ns, most_ns);
        // A packet that is larger than the room between two of our own cannot hide there.
        let hidden = least_ns < LEAST_PACKET_NS / 5.0 && self.packet_ns > span_ns - own_ns;
        let most_ns = if hidden { least_ns } else { most_ns };
        self.now =
            Work { sent_ns, least_ns: self.now.least_ns + least_ns, most_ns: self.now.most_ns + most_ns };
        self.window.push_back(self.now);
        self.last = Some((queue_ns, before_ns));
    }

    /// What came between two packets may be a packet: averages how large those are. Several packets of cross
    /// traffic may have come between packets that are further apart: what is far above their share counts, and what is less
    /// than one, the idle time with it.
    fn measure(&mut self, seen: &Seen, span_ns: f64, least_ns: f64, most_ns: f64) {
        let is_next = span_ns < 2.0 * self.period_ns as f64;
        let is_small = most_ns < self.packet_ns;
        let is_stale = seen.sent_ns.saturating_sub(self.measured_ns) > MEASURED_FOR_NS;
        let is_one =
            is_next || is_small || is_stale || least_ns > 2.0 * self.packet_ns + self.share() * span_ns;
        if least_ns <= LEAST_PACKET_NS || !is_one {
            return;
        }
        let work_ns =
            if is_next || is_small { most_ns } else { least_ns }.min(MOST_PACKET_BYTES * self.byte_ns);
        let weight = match work_ns > self.packet_ns {
            _ if is_stale || self.packet_ns == 0.0 => 1.0,
            true => LARGER,
            false => SMALLER,
        };
        self.packet_ns += weight * (work_ns - self.packet_ns);
        self.measured_ns = seen.sent_ns;
    }

    /// What others sent at most of late, as a share of the line.
    fn share(&self) -> f64 {
        let begin = self.window.front().copied().unwrap_or(self.now);
        let span_ns = self.now.sent_ns.saturating_sub(begin.sent_ns).max(1) as f64;
        (self.now.most_ns - begin.most_ns) / span_ns
    }

    /// Work of a packet of cross traffic: the jump that it makes.
    pub(super) fn packet_ns(&self) -> f64 {
        self.packet_ns
    }

    /// Forgets everything before the newest packet that was told of.
    pub(super) fn forget(&mut self) {
        self.window.clear();
        self.window.push_back(self.now);
    }

    /// The last `span_ns`, or what there is of them: their length, and what others sent at least and at most.
    pub(super) fn of_late(&mut self, span_ns: f64) -> (f64, f64, f64) {
        let sent_ns = self.now.sent_ns;
        let is_old = |work: &Work| sent_ns.saturating_sub(work.sent_ns) as f64 >= span_ns;
        while self.window.len() > MOST_TOLD || self.window.get(1).is_some_and(is_old) {
            self.window.pop_front();
        }
        let begin = self.window.front().copied().unwrap_or(self.now);
        let span_ns = sent_ns.saturating_sub(begin.sent_ns) as f64;
        (span_ns, self.now.least_ns - begin.least_ns, self.now.most_ns - begin.most_ns)
    }

    /// The share of the line that k fragments a packet leave to others.
    pub(super) fn room(&self, k: u8) -> f64 {
        let bytes = self.fragment_bytes + self.overhead_bytes / f64::from(k.max(1));
        1.0 - bytes * self.byte_ns / self.period_ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTE_NS: f64 = 8e9 / 1.5e6;

    /// Packets of one fragment (137 B) every ms, and what is told of each: the queues that they met.
    fn told(queues_ms: &[f64]) -> Others {
        let mut others = Others::new(MS, BYTE_NS);
        for (ms, queue_ms) in queues_ms.iter().enumerate() {
            let generated_ns = ms as Time * MS;
            others.sent(&Sent { generated_ns, fragments: 1, payload_bytes: 70, wire_bytes: 137 });
            others.notice(generated_ns + 30 * MS, &notice(generated_ns, *queue_ms));
        }
        others
    }

    fn notice(generated_ns: Time, queue_ms: f64) -> DelayNotice {
        let delay_ns = 15 * MS + (137.0 * BYTE_NS + queue_ms * 1e6) as Time;
        let (fragments, wire_bytes, reverse_ns, left_ns) =
            (1, 137, 15 * MS, generated_ns.saturating_add(15 * MS));
        let (fresh, certain) = (true, true);
        DelayNotice { delay_ns, fresh, generated_ns, fragments, wire_bytes, certain, reverse_ns, left_ns }
    }

    #[test]
    fn while_there_is_a_queue_all_that_others_send_is_known() {
        // One ms brings 0.7307 ms of our own; 2 ms of cross traffic come between the second and the third packet.
        let own_ms = 137.0 * BYTE_NS / 1e6;
        let queues = [0.0, 0.0, 1.0 + own_ms, 2.0 * own_ms, 3.0 * own_ms - 1.0];
        let (span_ns, least_ns, most_ns) = told(&queues[1..]).of_late(1e9);
        assert_eq!(span_ns, 3e6);
        assert!((least_ns - (1.0 + own_ms) * 1e6).abs() < 1e3, "idle for 0.27 ms, perhaps: {least_ns}");
        assert!((most_ns - 2e6).abs() < 1e3, "the base has drifted by 120 ns a ms: {most_ns}");
    }

    #[test]
    fn the_packets_of_others_are_measured_and_two_at_once_count_little() {
        let jump = |ms: f64| [0.0, 0.0, ms - 0.27, 0.0];
        let queues: Vec<f64> = (0..50).flat_map(|i| jump(if i % 20 == 19 { 5.0 } else { 2.5 })).collect();
        let packet_ns = told(&queues).packet_ns();
        assert!((2.4e6..3.2e6).contains(&packet_ns), "{packet_ns}");
    }

    /// Packets of four fragments (347 B) every 4 ms, of which each meets as long a queue as the one before.
    fn merged(others: &mut Others, from_ms: Time, packets: Time) {
        for i in 0..packets {
            let generated_ns = (from_ms + 4 * i) * MS;
            others.sent(&Sent { generated_ns, fragments: 4, payload_bytes: 280, wire_bytes: 347 });
            let delay_ns = 19 * MS + (347.0 * BYTE_NS) as Time;
            let told = DelayNotice { delay_ns, fragments: 4, wire_bytes: 347, ..notice(generated_ns, 0.0) };
            others.notice(generated_ns + 33 * MS, &told);
            others.of_late(40e6);
        }
    }

    #[test]
    fn several_packets_of_others_between_two_of_our_own_are_not_taken_for_one() {
        // 0.27 ms of cross traffic in every ms, behind a queue of 1 ms; then 2.15 ms in every 4 ms.
        let mut others = told(&[&[0.0][..], &[1.0; 300]].concat());
        let alone_ns = others.packet_ns();
        assert!((0.26e6..0.28e6).contains(&alone_ns), "{alone_ns}");
        merged(&mut others, 301, 250);
        assert!(others.packet_ns() < 0.6e6, "{}", others.packet_ns());
    }

    #[test]
    fn packets_that_become_smaller_are_learnt_from_notices_that_are_far_apart_too() {
        // A queue without end that 0.73 ms of cross traffic in every 4 ms keep up, after one of 8 ms.
        let mut others = told(&[0.0, 0.0, 7.8]);
        assert!(others.packet_ns() > 7.9e6);
        let (own_ms, mut queue_ms, mut now_ms) = (137.0 * BYTE_NS / 1e6, 7.8, 2);
        for _ in 0..500 {
            for ms in 1..=4 {
                let generated_ns = (now_ms + ms) * MS;
                others.sent(&Sent { generated_ns, fragments: 1, payload_bytes: 70, wire_bytes: 137 });
            }
            now_ms += 4;
            queue_ms = f64::max(queue_ms + 0.73 + 4.0 * own_ms - 4.0, 0.73);
            others.notice((now_ms + 40) * MS, &notice(now_ms * MS, queue_ms));
        }
        assert!(others.packet_ns() < 2e6, "{}", others.packet_ns());
    }

    #[test]
    fn a_clock_that_is_put_back_begins_anew() {
        let mut others = told(&[0.0, 0.0, 4.0]);
        for (ms, queue_ms) in [(-3_000, 0.0), (-2_999, 0.5)] {
            let generated_ns = ms * MS;
            others.sent(&Sent { generated_ns, fragments: 1, payload_bytes: 70, wire_bytes: 137 });
            let seen = others.notice(40 * MS, &notice(generated_ns, queue_ms));
            assert!(seen.is_some_and(|seen| (seen.queue_ns - queue_ms * 1e6).abs() < 1e4), "{seen:?}");
        }
    }

    #[test]
    fn the_size_of_a_packet_is_forgotten_after_ten_seconds_without_any() {
        let mut others = told(&[0.0, 0.0, 4.0]);
        assert!(others.packet_ns() > 4e6);
        for (ms, queue_ms) in [(11_000, 0.0), (11_001, 0.5)] {
            let generated_ns = ms * MS;
            others.sent(&Sent { generated_ns, fragments: 1, payload_bytes: 70, wire_bytes: 137 });
            others.notice(generated_ns + 30 * MS, &notice(generated_ns, queue_ms));
        }
        assert!((0.5e6..0.8e6).contains(&others.packet_ns()), "{}", others.packet_ns());
    }

    #[test]
    fn what_was_not_sent_later_or_was_told_before_says_nothing() {
        let mut others = told(&[0.0, 0.0, 1.0]);
        let before = others.of_late(1e9);
        // All of them are 9 ms below the base.
        assert_eq!(others.notice(33 * MS, &notice(MS, -9.0)), None, "older than the newest");
        let again = DelayNotice { fresh: false, ..notice(2 * MS, -9.0) };
        assert_eq!(others.notice(33 * MS, &again), None);
        others.sent(&Sent { generated_ns: 3 * MS, fragments: 1, payload_bytes: 70, wire_bytes: 137 });
        let merged = DelayNotice { fragments: 4, ..notice(3 * MS, -9.0) };
        assert_eq!(others.notice(33 * MS, &merged), None, "no such packet");
        let overtaken = DelayNotice { left_ns: 5 * MS, ..notice(3 * MS, -9.0) };
        assert_eq!(others.notice(33 * MS, &overtaken), None);
        assert_eq!(others.of_late(1e9), before);
        let queue_ns = others.notice(33 * MS, &notice(3 * MS, 2.0)).map(|seen| seen.queue_ns);
        assert!(queue_ns.is_some_and(|queue_ns| (queue_ns - 2e6).abs() < 1e3), "the base is that of before");
    }

    #[test]
    fn a_notice_is_passed_over_if_one_that_it_may_be_of_had_another_k() {
        let mut others = told(&[0.0, 0.0, 0.0]);
        let merged = |generated_ns| Sent { generated_ns, fragments: 4, payload_bytes: 280, wire_bytes: 347 };
        let told_of = |sent: Sent| DelayNotice {
            delay_ns: 18 * MS + (347.0 * BYTE_NS) as Time,
            fragments: 4,
            wire_bytes: 347,
            ..notice(sent.generated_ns, 0.0)
        };
        let seen = [0, 1, 2, 3].map(|i| {
            let packet = merged((3 + 4 * i) * MS);
            others.sent(&packet);
            others.notice(packet.generated_ns + 33 * MS, &told_of(packet))
        });
        // A header comes every 4 ms, and a notice may be 2 ms older than that.
        assert_eq!(seen.map(|seen| seen.is_some()), [false, false, true, true]);
        let last = seen[3].unwrap();
        assert_eq!(last.sent_ns, 18 * MS, "with the sample of 18 ms, the last of four");
        assert!(last.queue_ns.abs() < 1e4, "{}: merging is no queue", last.queue_ns);
    }

    #[test]
    fn the_room_for_others_is_what_own_packets_leave() {
        let others = told(&[0.0]);
        let shares = [1, 2, 3, 4].map(|k| (others.room(k) * 1500.0).round());
        // [Gokhale 2017: streams] 1096, 828, 738.67 and 694 of 1500 kbit/s
        assert_eq!(shares, [404.0, 672.0, 761.0, 806.0]);
    }

    #[test]
    fn numbers_out_of_all_bounds_are_survived() {
        let mut others = told(&[0.0, 1.0]);
        for generated_ns in [Time::MIN, -1, Time::MAX] {
            others.sent(&Sent { generated_ns, fragments: 7, payload_bytes: 490, wire_bytes: u32::MAX });
            for left_ns in [Time::MIN, 0, Time::MAX] {
                for delay_ns in [Time::MIN, Time::MAX] {
                    let wild = DelayNotice { left_ns, delay_ns, fragments: 7, ..notice(generated_ns, 0.0) };
                    others.notice(Time::MAX, &wild);
                    others.notice(Time::MIN, &wild);
                }
            }
        }
        let (span_ns, least_ns, most_ns) = others.of_late(1e9);
        assert!(span_ns >= 0.0 && 0.0 <= least_ns && least_ns <= most_ns && most_ns.is_finite());
        assert!(others.room(7).is_finite());
    }

    #[test]
    fn an_old_notice_says_nothing_in_a_newer_header_either() {
        let mut others = told(&[0.0, 0.0, 1.0]);
        others.sent(&Sent { generated_ns: 3 * MS, fragments: 1, payload_bytes: 70, wire_bytes: 137 });
        let left_ns = 18 * MS;
        let again = DelayNotice { fresh: false, left_ns, ..notice(3 * MS, 2.0) };
        assert_eq!(others.notice(33 * MS, &again), None, "told before, in a header that said nothing");
        let older = DelayNotice { left_ns, ..notice(MS, 2.0) };
        assert_eq!(others.notice(33 * MS, &older), None, "of a packet before the newest");
        assert!(others.notice(33 * MS, &DelayNotice { left_ns, ..notice(3 * MS, 2.0) }).is_some());
    }

    #[test]
    fn a_packet_far_above_the_share_of_others_counts_between_notices_that_are_far_apart() {
        // 0.27 ms of cross traffic in every ms, behind a queue of 1 ms; then 3 ms within 4 ms.
        let mut others = told(&[&[0.0][..], &[1.0; 300]].concat());
        let usual_ns = others.packet_ns();
        for ms in 301..=304 {
            let generated_ns = ms * MS;
            others.sent(&Sent { generated_ns, fragments: 1, payload_bytes: 70, wire_bytes: 137 });
        }
        let told = DelayNotice { left_ns: 319 * MS, ..notice(304 * MS, 3.0) };
        assert!(others.notice(334 * MS, &told).is_some());
        let grown_ns = others.packet_ns() - usual_ns;
        assert!((grown_ns - (3e6 - usual_ns) / 8.0).abs() < 1e4, "{grown_ns}: an eighth of what is more");
    }
}
