//! What a door counts in each direction: since the start, and in the last second for the live table.

use crate::real::rate::Rates;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use tcps_core::{
    record::DropReason,
    report::histogram,
    time::{Time, SECOND},
};
use tcps_plan::report::Spread;

/// Length of the window of the live table.
const WINDOW: Time = SECOND;

/// A door in one direction, as it is told.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Row {
    /// The door.
    pub door: String,
    /// `near -> far` or `far -> near`.
    pub way: &'static str,
    /// Datagrams (of TCP: segments of at most 1448 bytes) that came in.
    pub packets: u64,
    /// Their bytes, without headers.
    pub bytes: u64,
    /// Those that went out, copies included.
    pub delivered: u64,
    /// Bytes that went out.
    pub delivered_bytes: u64,
    /// Those that the network lost, as it was set to.
    pub lost: u64,
    /// Why.
    pub drops: BTreeMap<&'static str, u64>,
    /// Those that the kernel would not take.
    pub unsent: u64,
    /// Connections of a TCP port that were closed at once: too many at a time, or no thread for them.
    pub refused: u64,
    /// Share of those decided that the network lost.
    pub set_loss: f64,
    /// Share of those decided that did not go out.
    pub delivered_loss: f64,
    /// Delay that the network gave.
    pub set_delay_ns: Spread,
    /// From the stamp of the kernel to the end of the send call.
    pub delivered_delay_ns: Spread,
    /// Delivered later than set.
    pub error_ns: Spread,
    /// Rate of payload behind the first packet, over the span from the first to the last, as the network let them out;
    /// none over less than a second.
    pub set_rate_bps: Option<f64>,
    /// The same as they were handed to the kernel: less what it refused, over a time as much longer as lateness grew.
    pub delivered_rate_bps: Option<f64>,
    /// Rate of what went out in the last second.
    pub rate_pps: f64,
    /// The same in bits.
    pub rate_bps: f64,
    /// Delivered delays of the last second.
    pub recent_delay_ns: Spread,
    /// Those lost in the last second.
    pub recent_lost: u64,
}

/// All doors at a moment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Snapshot {
    /// Seconds since the start.
    pub t_s: f64,
    /// Doors, both directions.
    pub doors: Vec<Row>,
    /// Clients that are known.
    pub clients: usize,
}

/// A packet that went out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery {
    /// When it came in, by the clock of its door.
    pub arrived: Time,
    /// Delay that the network gave.
    pub set_ns: Time,
    pub delivered_ns: Time,
    pub bytes: usize,
}

/// Counts of a door in one direction.
pub(super) struct Count {
    row: Row,
    set: Histogram<u64>,
    delivered: Histogram<u64>,
    error: Histogram<u64>,
    rates: Rates,
    window: Window,
    last: Window,
    /// Of the last window, found once: the loop shows it many times.
    recent: Spread,
}

/// What came in a span of time.
struct Window {
    begun: Time,
    length: Time,
    packets: u64,
    bytes: u64,
    lost: u64,
    delays: Histogram<u64>,
}

impl Window {
    fn new(begun: Time) -> Self {
        Self { begun, length: WINDOW, packets: 0, bytes: 0, lost: 0, delays: histogram() }
    }
}

impl Count {
    /// Nothing yet.
    pub fn new(door: &str, way: &'static str) -> Self {
        let row = Row { door: door.into(), way, ..Row::default() };
        let (window, last) = (Window::new(0), Window::new(0));
        Self {
            row,
            set: histogram(),
            delivered: histogram(),
            error: histogram(),
            rates: Rates::default(),
            window,
            last,
            recent: Spread::default(),
        }
    }

    /// A packet came in.
    pub fn came(&mut self, bytes: usize) {
        self.row.packets += 1;
        self.row.bytes += bytes as u64;
    }

    /// The network lost a packet.
    pub fn lost(&mut self, reason: DropReason) {
        self.row.lost += 1;
        self.window.lost += 1;
        *self.row.drops.entry(reason.name()).or_default() += 1;
    }

    /// The kernel would not take a packet that the network let out.
    pub fn unsent(&mut self, d: Delivery) {
        self.row.unsent += 1;
        self.rates.let_out(d.arrived + d.set_ns, d.bytes as u32);
        self.rates.refused(d.bytes as u32);
    }

    /// A connection was closed at once.
    pub fn refused(&mut self) {
        self.row.refused += 1;
    }

    /// A packet went out.
    pub fn went(&mut self, d: Delivery) {
        self.row.delivered += 1;
        self.row.delivered_bytes += d.bytes as u64;
        self.window.packets += 1;
        self.window.bytes += d.bytes as u64;
        self.rates.let_out(d.arrived + d.set_ns, d.bytes as u32);
        self.rates.handed_on(d.arrived + d.set_ns, d.delivered_ns - d.set_ns, d.bytes as u32);
        let _ = self.set.record(d.set_ns.max(0) as u64);
        let _ = self.delivered.record(d.delivered_ns.max(0) as u64);
        let _ = self.error.record((d.delivered_ns - d.set_ns).max(0) as u64);
        let _ = self.window.delays.record(d.delivered_ns.max(0) as u64);
    }

    /// Begins another window when it is time to.
    pub fn turn(&mut self, now: Time) {
        if now - self.window.begun >= WINDOW {
            self.window.length = now - self.window.begun;
            std::mem::swap(&mut self.window, &mut self.last);
            self.recent = Spread::of(&self.last.delays);
            (self.window.begun, self.window.packets, self.window.bytes, self.window.lost) = (now, 0, 0, 0);
            self.window.delays.reset();
        }
    }

    /// What is told of it; with the spreads over all its time only at the end.
    pub fn row(&self, whole: bool) -> Row {
        let seconds = self.last.length as f64 / 1e9;
        let decided = self.row.delivered + self.row.lost + self.row.unsent;
        let share = |n: u64| n as f64 / decided.max(1) as f64;
        let of = |h: &Histogram<u64>| if whole { Spread::of(h) } else { Spread::default() };
        Row {
            set_loss: share(self.row.lost),
            delivered_loss: share(self.row.lost + self.row.unsent),
            set_delay_ns: of(&self.set),
            delivered_delay_ns: of(&self.delivered),
            error_ns: of(&self.error),
            set_rate_bps: self.rates.set_bps(),
            delivered_rate_bps: self.rates.delivered_bps(),
            rate_pps: self.last.packets as f64 / seconds,
            rate_bps: self.last.bytes as f64 * 8.0 / seconds,
            recent_delay_ns: self.recent.clone(),
            recent_lost: self.last.lost,
            ..self.row.clone()
        }
    }
}

/// Names of the directions: away from the clients, and back.
pub(super) const WAYS: [&str; 2] = ["near -> far", "far -> near"];

/// The counts of all doors.
pub(super) struct Tally {
    counts: Vec<[Count; 2]>,
}

impl Tally {
    /// Nothing yet, of doors with these names.
    pub fn new(names: Vec<String>) -> Self {
        Self { counts: names.iter().map(|n| WAYS.map(|way| Count::new(n, way))).collect() }
    }

    /// Names of the doors.
    pub fn names(&self) -> Vec<String> {
        self.counts.iter().map(|pair| pair[0].row.door.clone()).collect()
    }

    /// A door in one direction.
    pub fn of(&mut self, door: u16, from: u16) -> &mut Count {
        &mut self.counts[usize::from(door)][usize::from(from != super::NEAR)]
    }

    /// What the live table shows.
    pub fn snapshot(&mut self, now: Time, clients: usize) -> Snapshot {
        let rows = self.counts.iter_mut().flatten().map(|c| {
            c.turn(now);
            c.row(false)
        });
        Snapshot { doors: rows.collect(), t_s: now as f64 / 1e9, clients }
    }

    /// What is told at the end.
    pub fn finish(self) -> Vec<Row> {
        self.counts.iter().flatten().map(|c| c.row(true)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    #[test]
    fn the_window_shows_the_last_second_and_the_end_everything() {
        let mut tally = Tally::new(vec!["a".into()]);
        let delivery =
            |ms: Time| Delivery { arrived: 0, set_ns: ms * MS, delivered_ns: ms * MS + 1000, bytes: 125 };
        (0..10).for_each(|_| tally.of(0, 0).went(delivery(5)));
        tally.of(0, 0).lost(DropReason::Loss);
        let first = tally.snapshot(SECOND, 1).doors.swap_remove(0);
        assert_eq!((first.rate_pps, first.rate_bps, first.recent_lost), (10.0, 10_000.0, 1));
        (0..4).for_each(|_| tally.of(0, 0).went(delivery(1)));
        let second = tally.snapshot(2 * SECOND, 1).doors.swap_remove(0);
        assert_eq!((second.rate_pps, second.recent_lost, second.delivered), (4.0, 0, 14));
        let whole = tally.finish().swap_remove(0);
        assert_eq!((whole.lost, whole.delivered, whole.drops["loss"]), (1, 14, 1));
        assert!((whole.set_loss - 1.0 / 15.0).abs() < 1e-9 && whole.set_loss == whole.delivered_loss);
    }

    #[test]
    fn a_loop_that_falls_behind_delivers_at_a_smaller_rate_than_is_set() {
        let mut count = Count::new("a", WAYS[0]);
        for n in 0..2000 {
            count.went(Delivery {
                arrived: n * MS,
                set_ns: 5 * MS,
                delivered_ns: 5 * MS + n * MS / 10,
                bytes: 125,
            });
        }
        let row = count.row(true);
        let (set, delivered) = (row.set_rate_bps.unwrap(), row.delivered_rate_bps.unwrap());
        assert!((set - 1e6).abs() < 1.0 && (delivered - 1e6 / 1.1).abs() < 1.0, "{set} {delivered}");
        let late = Delivery { arrived: 2000 * MS, set_ns: 5 * MS, delivered_ns: 5 * MS, bytes: 125 };
        count.unsent(late);
        assert_eq!(count.row(true).set_rate_bps.map(f64::round), Some(1e6), "it was let out");
        assert_eq!(Count::new("a", WAYS[0]).row(true).set_rate_bps, None);
    }

    #[test]
    fn directions_are_counted_apart() {
        let mut tally = Tally::new(vec!["a".into(), "b".into()]);
        tally.of(1, crate::proxy::FAR).came(7);
        let rows = tally.finish();
        let told: Vec<_> = rows.iter().map(|r| (r.door.as_str(), r.way, r.packets)).collect();
        let (there, back) = (WAYS[0], WAYS[1]);
        assert_eq!(told, [("a", there, 0), ("a", back, 0), ("b", there, 0), ("b", back, 1)]);
    }
}
