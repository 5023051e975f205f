//! Receiver reports: mean delay, loss and jitter of each half second, for controllers that go by reports.

use super::receiver::Arrival;
use tcps_core::{
    rate::Report,
    time::{Time, MS},
};

const INTERVAL_NS: Time = 500 * MS;

/// What has arrived since the last report.
// [Gokhale 2017: reports]
#[derive(Debug, Default)]
pub(super) struct Reporter {
    due_ns: Option<Time>,
    delays_ns: i128,
    packets: i64,
    samples: u32,
    /// Number behind the newest sample, at the last report and now.
    next: Option<(u32, u32)>,
    last: Option<Time>,
    jitter_ns: f64,
}

impl Reporter {
    /// The first thing happens at this endpoint: reports count from here.
    pub(super) fn begin(&mut self, now: Time) {
        self.due_ns.get_or_insert(now + INTERVAL_NS);
    }

    /// When the next report is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.due_ns
    }

    /// A packet has arrived.
    // [RFC 3550 §6.4.1]
    pub(super) fn arrived(&mut self, arrival: &Arrival) {
        self.delays_ns += i128::from(arrival.delay_ns);
        self.packets += 1;
        self.samples += u32::from(arrival.fragments);
        let behind = arrival.index.wrapping_add(arrival.fragments.into());
        let (from, newest) = self.next.unwrap_or((arrival.index, behind));
        let newer = behind.wrapping_sub(newest) as i32 > 0;
        self.next = Some((from, if newer { behind } else { newest }));
        if let Some(last) = self.last.replace(arrival.delay_ns) {
            let step = arrival.delay_ns.saturating_sub(last).saturating_abs();
            self.jitter_ns += (step as f64 - self.jitter_ns) / 16.0;
        }
    }

    /// The report, if it is time for it and anything has arrived.
    pub(super) fn due(&mut self, now: Time) -> Option<Report> {
        let due_ns = self.due_ns.filter(|d| *d <= now)?;
        self.due_ns = Some(due_ns + INTERVAL_NS * ((now - due_ns) / INTERVAL_NS + 1));
        let (from, newest) = self.next?;
        let expected = newest.wrapping_sub(from);
        let lost = expected.saturating_sub(self.samples);
        let mean = self.delays_ns.checked_div(i128::from(self.packets))?;
        let report = Report {
            mean_delay_ns: mean as Time,
            loss: f64::from(lost) / f64::from(expected.max(1)),
            jitter_ns: self.jitter_ns as Time,
        };
        (self.delays_ns, self.packets, self.samples, self.next) = (0, 0, 0, Some((newest, newest)));
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(index: u32, delay_ms: Time) -> Arrival {
        Arrival { index, fragments: 2, delay_ns: delay_ms * MS, left_ns: 0 }
    }

    // [Gokhale 2017: reports]
    #[test]
    fn a_report_every_half_second_has_mean_delay_and_loss_of_that_half_second() {
        let mut r = Reporter::default();
        r.begin(3);
        r.arrived(&packet(0, 15));
        r.arrived(&packet(4, 25));
        assert_eq!((r.due(500 * MS), r.deadline()), (None, Some(500 * MS + 3)));
        let first = r.due(500 * MS + 3).unwrap();
        assert_eq!((first.mean_delay_ns, first.loss), (20 * MS, 2.0 / 6.0));
        assert_eq!((r.due(1000 * MS + 3), r.deadline()), (None, Some(1500 * MS + 3)), "nothing came");
        r.arrived(&packet(6, 15));
        assert_eq!(r.due(1500 * MS + 3).map(|r| (r.mean_delay_ns, r.loss)), Some((15 * MS, 0.0)));
    }

    // [RFC 3550 §6.4.1]
    #[test]
    fn jitter_takes_a_sixteenth_of_each_step() {
        let mut r = Reporter::default();
        r.begin(0);
        [15, 31, 31].iter().enumerate().for_each(|(i, d)| r.arrived(&packet(2 * i as u32, *d)));
        assert_eq!(r.due(INTERVAL_NS).map(|r| r.jitter_ns), Some(937_500), "16 ms / 16, then 15/16 of it");
    }
}
