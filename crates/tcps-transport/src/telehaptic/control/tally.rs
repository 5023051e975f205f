//! Means over half a second out of arrivals: what a receiver report says, also where samples are left out.
//!
//! ```text
//! arrivals of 500 ms ─► mean delay, share lost
//! ```
//! A receiver that sees only numbers of samples takes those that were left out for lost; the sender knows its packets.

use tcps_core::{
    rate::Arrival,
    time::{Time, MS},
};

const INTERVAL_NS: Time = 500 * MS;

/// What packets met on their way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Met {
    /// Mean one-way delay in nanoseconds, with the clocks' offset.
    pub(super) delay_ns: f64,
    /// Share of packets lost, 0 to 1.
    pub(super) loss: f64,
}

/// Packets since the last report.
#[derive(Debug, Default)]
pub(super) struct Tally {
    began_ns: Option<Time>,
    delays_ns: f64,
    came: f64,
    lost: f64,
}

impl Tally {
    /// Adds a packet; the means of the interval, if that is over and anything came.
    // [PROTOCOLS 3.2]
    pub(super) fn add(&mut self, now: Time, arrival: &Arrival) -> Option<Met> {
        let began_ns = *self.began_ns.get_or_insert(now);
        let over = now.saturating_sub(began_ns) >= INTERVAL_NS && self.came > 0.0;
        let met = Met {
            delay_ns: self.delays_ns / self.came.max(1.0),
            loss: self.lost / (self.came + self.lost).max(1.0),
        };
        if over {
            *self = Self { began_ns: Some(now), ..Self::default() };
        }
        match arrival.arrived_ns {
            Some(arrived_ns) => {
                self.delays_ns += arrived_ns.saturating_sub(arrival.sent_ns) as f64;
                self.came += 1.0;
            }
            None => self.lost += 1.0,
        }
        over.then_some(met)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [PROTOCOLS 3.2]
    #[test]
    fn half_a_second_of_packets_gives_their_mean_delay_and_loss() {
        let mut tally = Tally::default();
        let mut hears = |ms: Time, delay_ms: Option<Time>| {
            let arrived_ns = delay_ms.map(|d| (ms + d) * MS);
            tally.add(ms * MS, &Arrival { sent_ns: ms * MS, wire_bytes: 137, arrived_ns, round_trip_ns: 0 })
        };
        assert_eq!([hears(0, Some(15)), hears(100, None), hears(200, None), hears(499, Some(25))], [None; 4]);
        assert_eq!(hears(500, Some(90)), Some(Met { delay_ns: 20e6, loss: 0.5 }));
        assert_eq!([hears(600, None), hears(999, None)], [None; 2]);
        assert_eq!(hears(1000, None), Some(Met { delay_ns: 90e6, loss: 2.0 / 3.0 }));
        assert_eq!([hears(1600, None), hears(2200, None)], [None; 2], "nothing has come");
    }
}
