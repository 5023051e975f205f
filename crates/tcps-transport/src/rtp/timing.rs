//! When RTCP is due (RFC 3550 §6.3 and A.7; RFC 4585 §3 for AVPF).
//!
//! ```text
//! T_d = max(T_min, members * average size / share of the bandwidth)     T = T_d * U(0.5, 1.5) / (e - 1.5)
//! AVP:  T_min 5 s, half of it before the first        AVPF: T_min 0, but not before T_rr * U(0.5, 1.5)
//! ```

use tcps_core::{
    seed::Stream,
    time::{Time, SECOND},
};

/// Shortest mean interval of the plain audio and video profile.
const LEAST_NS: Time = 5 * SECOND;
/// RTCP's share of the session bandwidth, and the share of that share that senders have while they are few.
const RTCP_SHARE: f64 = 0.05;
const SENDER_SHARE: f64 = 0.25;
/// Reconsideration makes intervals longer than drawn; this makes up for it.
const COMPENSATION: f64 = std::f64::consts::E - 1.5;
/// Bytes of UDP and IPv4 headers, which count.
const LOWER_BYTES: f64 = 28.0;

/// How reports are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// RTP/AVP: at least 5 s, or 360 s over the bandwidth in kbit/s if `reduced`.
    Avp {
        /// Whether the shorter least interval holds.
        reduced: bool,
    },
    /// RTP/AVPF: regular reports about every `T_rr`.
    Avpf {
        /// `T_rr`.
        report_ns: Time,
    },
}

/// Who takes part, as the rules count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    /// Sources that are known, own ones too.
    pub(crate) members: usize,
    /// Of these, those that have sent lately.
    pub(crate) senders: usize,
    /// Whether an own one is among them.
    pub(crate) we_sent: bool,
}

/// The clock of an endpoint's reports.
#[derive(Debug)]
pub(crate) struct Timing {
    profile: Profile,
    bandwidth_bps: f64,
    average_bytes: f64,
    last_ns: Time,
    next_ns: Option<Time>,
    initial: bool,
    stream: Stream,
}

impl Timing {
    pub(crate) fn new(profile: Profile, bandwidth_bps: f64, stream: Stream) -> Self {
        let average_bytes = 100.0 + LOWER_BYTES;
        Self { profile, bandwidth_bps, average_bytes, last_ns: 0, next_ns: None, initial: true, stream }
    }

    /// When to look again; `None` before the first start.
    pub(crate) fn next(&self) -> Option<Time> {
        self.next_ns
    }

    /// Begins to count. In unicast the first report may go out at once, which is the caller's to do.
    // [RFC 3550 §6.2]
    pub(crate) fn start(&mut self, now: Time, group: Group) {
        if self.next_ns.is_none() {
            self.last_ns = now;
            self.next_ns = Some(now + self.interval(group));
        }
    }

    /// Whether a report is due now, by timer reconsideration.
    // [RFC 3550 §6.3.6]
    pub(crate) fn is_due(&mut self, now: Time, group: Group) -> bool {
        if self.next_ns.is_none_or(|t| now < t) {
            return false;
        }
        let due = self.last_ns + self.interval(group);
        if due <= now {
            return true;
        }
        self.next_ns = Some(due);
        false
    }

    /// A compound of `bytes` was sent now.
    // [RFC 3550 §6.3.3]
    pub(crate) fn sent(&mut self, now: Time, bytes: usize, group: Group) {
        self.heard(bytes);
        (self.last_ns, self.initial) = (now, false);
        self.next_ns = Some(now + self.interval(group));
    }

    /// A compound of `bytes` came or went: the average of their sizes.
    // [RFC 3550 §6.3.3]
    pub(crate) fn heard(&mut self, bytes: usize) {
        self.average_bytes += ((bytes as f64 + LOWER_BYTES) - self.average_bytes) / 16.0;
    }

    /// The interval that the rules ask for, before it is drawn.
    // [RFC 3550 §6.3.1] [RFC 3550 §A.7] [RFC 3550]
    pub(crate) fn deterministic_ns(&self, group: Group) -> Time {
        let (mut count, mut share_bps) = (group.members, self.bandwidth_bps * RTCP_SHARE);
        if (group.senders as f64) <= group.members as f64 * SENDER_SHARE {
            if group.we_sent {
                (count, share_bps) = (group.senders, share_bps * SENDER_SHARE);
            } else {
                (count, share_bps) = (group.members - group.senders, share_bps * (1.0 - SENDER_SHARE));
            }
        }
        let by_bandwidth = 8e9 * self.average_bytes * count as f64 / share_bps.max(1.0);
        (by_bandwidth as Time).max(self.least_ns())
    }

    fn least_ns(&self) -> Time {
        let least = match self.profile {
            Profile::Avpf { .. } => return 0,
            Profile::Avp { reduced: true } => (360e12 / self.bandwidth_bps) as Time,
            Profile::Avp { reduced: false } => LEAST_NS,
        };
        if self.initial {
            least / 2
        } else {
            least
        }
    }

    // [RFC 3550 §A.7] [RFC 4585 §3.5.3]
    fn interval(&mut self, group: Group) -> Time {
        let drawn = self.deterministic_ns(group) as f64 * self.stream.uniform(0.5, 1.5) / COMPENSATION;
        match self.profile {
            Profile::Avp { .. } => drawn as Time,
            Profile::Avpf { report_ns } => {
                drawn.max(report_ns as f64 * self.stream.uniform(0.5, 1.5)) as Time
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    const PAIR: Group = Group { members: 2, senders: 1, we_sent: true };

    fn timing(profile: Profile, bandwidth_bps: f64) -> Timing {
        Timing::new(profile, bandwidth_bps, Stream::new(1, "timing"))
    }

    // [RFC 3550 §6.3.1] [RFC 3550 §A.7] [RFC 3550]
    #[test]
    fn intervals_have_the_least_or_grow_with_the_group() {
        let mut t = timing(Profile::Avp { reduced: false }, 1e6);
        assert_eq!(t.deterministic_ns(PAIR), 5 * SECOND / 2, "half before the first");
        t.initial = false;
        assert_eq!(t.deterministic_ns(PAIR), 5 * SECOND);
        let crowd = Group { members: 1000, senders: 1, we_sent: false };
        let share = 1e6 * 0.05 * 0.75;
        assert_eq!(t.deterministic_ns(crowd), (8e9 * 128.0 * 999.0 / share) as Time);
        t.profile = Profile::Avp { reduced: true };
        assert_eq!(t.deterministic_ns(PAIR), 360 * MS, "360 s over 1000 kbit/s");
    }

    // [RFC 3550 §A.7] [RFC 3550 §6.3.3] [RFC 3550 §6.3.6]
    #[test]
    fn reports_come_about_every_five_seconds_and_never_sooner_than_drawn() {
        let mut t = timing(Profile::Avp { reduced: false }, 1e6);
        t.start(0, PAIR);
        let (mut sent, mut last) = (Vec::new(), 0);
        while sent.len() < 400 {
            let now = t.next().unwrap();
            if t.is_due(now, PAIR) {
                sent.push(now - last);
                t.sent(now, 100, PAIR);
                last = now;
            }
        }
        let mean = sent.iter().skip(1).sum::<Time>() as f64 / 399.0 / SECOND as f64;
        assert!((4.3..5.7).contains(&mean), "{mean} s");
        let least = (2.5 / COMPENSATION * 1e9) as Time;
        assert!(sent.iter().skip(1).all(|s| *s >= least), "{:?}", sent.iter().min());
    }

    // [RFC 4585 §3.5.3] [RFC 3550]
    #[test]
    fn avpf_reports_twice_a_second() {
        let mut t = timing(Profile::Avpf { report_ns: 500 * MS }, 1e6);
        t.start(0, PAIR);
        let mut count = 0;
        while t.next().unwrap() < 100 * SECOND {
            let now = t.next().unwrap();
            if t.is_due(now, PAIR) {
                count += 1;
                t.sent(now, 100, PAIR);
            }
        }
        assert!((130..240).contains(&count), "{count} reports in 100 s");
    }

    // [RFC 3550 §6.2]
    #[test]
    fn a_second_start_changes_nothing() {
        let mut t = timing(Profile::Avpf { report_ns: MS }, 1e6);
        assert!(!t.is_due(0, PAIR));
        t.start(7, PAIR);
        let next = t.next();
        t.start(9, PAIR);
        assert_eq!(t.next(), next);
    }
}
