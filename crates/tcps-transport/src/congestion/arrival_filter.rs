//! Arrival-time filter of Google congestion control (draft-ietf-rmcat-gcc-02 §5.2, §5.3): the trend of the queue by groups.
//!
//! ```text
//! packets sent within 5 ms ─► group      d = (t_i - t_i-1) - (T_i - T_i-1)      z = d - m,  at most 3 deviations
//! m += z k      k = (e + q) / (v + e + q)      e = (1 - k)(e + q)      v = a v + (1 - a) z², at least 1 ms²
//! ```
//! T is when the last packet of a group left, t when it arrived. Units are milliseconds.

use tcps_core::time::{Time, MS};

const BURST_NS: Time = 5 * MS;
const Q: f64 = 1e-3;
const E_0: f64 = 0.1;
/// How fast the variance of the noise follows, in [0.001, 0.1].
const CHI: f64 = 0.01;
/// Groups a second that `CHI` is for.
const NOMINAL_HZ: f64 = 30.0;

/// What a new group says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Group {
    /// The estimated growth of the delay from group to group, in milliseconds.
    pub(super) m_ms: f64,
    /// Groups so far.
    pub(super) groups: u32,
    /// Time between the arrivals of this group and the one before.
    pub(super) gone_ns: Time,
}

/// The filter.
#[derive(Debug)]
pub(super) struct Filter {
    /// When the group began to leave, when its newest packet left and arrived.
    open: Option<(Time, Time, Time)>,
    /// When the newest packet of the last whole group left and arrived.
    last: Option<(Time, Time)>,
    m_ms: f64,
    e: f64,
    variance: f64,
    groups: u32,
}

impl Default for Filter {
    fn default() -> Self {
        Self { open: None, last: None, m_ms: 0.0, e: E_0, variance: 1.0, groups: 0 }
    }
}

impl Filter {
    /// A packet that left at `sent_ns` came at `arrived_ns`; packets that come out of order are passed over. The group
    /// before is whole when the first packet of the next one comes.
    // [draft-ietf-rmcat-gcc-02]
    pub(super) fn add(&mut self, sent_ns: Time, arrived_ns: Time) -> Option<Group> {
        let Some((began_ns, newest_ns, came_ns)) = self.open else {
            self.open = Some((sent_ns, sent_ns, arrived_ns));
            return None;
        };
        if sent_ns < newest_ns {
            return None;
        }
        if sent_ns.saturating_sub(began_ns) < BURST_NS {
            self.open = Some((began_ns, sent_ns, came_ns.max(arrived_ns)));
            return None;
        }
        self.open = Some((sent_ns, sent_ns, arrived_ns));
        let before = self.last.replace((newest_ns, came_ns))?;
        let gone_ns = came_ns.saturating_sub(before.1).max(0);
        let apart_ns = newest_ns.saturating_sub(before.0);
        self.update((gone_ns as f64 - apart_ns as f64) / 1e6, apart_ns as f64 / 1e6);
        self.groups = self.groups.saturating_add(1);
        Some(Group { m_ms: self.m_ms, groups: self.groups, gone_ns })
    }

    // [draft-ietf-rmcat-gcc-02]
    fn update(&mut self, d_ms: f64, apart_ms: f64) {
        let most_ms = 3.0 * self.variance.sqrt();
        let z = (d_ms - self.m_ms).clamp(-most_ms, most_ms);
        let rate_hz = 1000.0 / apart_ms.max(1.0);
        let keep = libm::pow(1.0 - CHI, NOMINAL_HZ / rate_hz);
        self.variance = (keep * self.variance + (1.0 - keep) * z * z).max(1.0);
        let gain = (self.e + Q) / (self.variance + self.e + Q);
        self.m_ms += z * gain;
        self.e = (1.0 - gain) * (self.e + Q);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter says of packets 1 ms apart whose delay grows by `slope` ms a ms.
    fn after(
        filter: &mut Filter,
        from_ms: Time,
        to_ms: Time,
        slope: f64,
        delay_ms: &mut f64,
    ) -> Option<Group> {
        let mut newest = None;
        for ms in from_ms..to_ms {
            *delay_ms += slope;
            newest = filter.add(ms * MS, ms * MS + (*delay_ms * 1e6) as Time).or(newest);
        }
        newest
    }

    // [draft-ietf-rmcat-gcc-02]
    #[test]
    fn groups_are_5_ms_of_packets_and_m_goes_to_their_growth() {
        let (mut filter, mut delay_ms) = (Filter::default(), 15.0);
        let calm = after(&mut filter, 0, 1000, 0.0, &mut delay_ms).unwrap();
        assert_eq!(
            (calm.groups, calm.gone_ns),
            (198, 5 * MS),
            "the first opens, the second begins, the last is open"
        );
        assert!(calm.m_ms.abs() < 1e-9);
        let m_ms = after(&mut filter, 1000, 3000, 0.264, &mut delay_ms).unwrap().m_ms;
        assert!((m_ms - 1.32).abs() < 0.05, "{m_ms}: 5 ms at 0.264 ms a ms");
        let m_ms = after(&mut filter, 3000, 5000, 0.0, &mut delay_ms).unwrap().m_ms;
        assert!(m_ms.abs() < 0.05, "{m_ms}");
    }

    // [draft-ietf-rmcat-gcc-02]
    #[test]
    fn one_late_packet_counts_for_three_deviations_and_one_out_of_order_not_at_all() {
        let (mut filter, mut delay_ms) = (Filter::default(), 15.0);
        after(&mut filter, 0, 1000, 0.0, &mut delay_ms);
        assert_eq!(filter.add(900 * MS, 2000 * MS), None);
        filter.add(1010 * MS, 1525 * MS);
        let late = filter.add(1020 * MS, 1535 * MS).unwrap();
        assert!(late.m_ms > 0.0 && late.m_ms < 0.6, "{}: 500 ms late, counted as 3 ms", late.m_ms);
    }
}
