//! The rate of packets over the time in which they went: as a network let them out, and as they were handed on.
//!
//! ```text
//! lateness |            . .·            a loop that falls behind: the slope b; delivered = set / (1 + b)
//!          |      . ·˙                  one packet that is late, wherever it is: hardly any slope
//!          |.·˙____________ set moment
//! ```

use tcps_core::{
    fit::Slope,
    time::{Time, SECOND},
};

/// The shortest span of which a rate is told.
const SHORTEST_NS: Time = SECOND;

/// Packets set and handed on.
#[derive(Debug, Clone, Default)]
pub struct Rates {
    span: Option<(Time, Time)>,
    /// Those behind the first packet.
    bytes: u64,
    /// The same with all headers.
    wire_bytes: u64,
    handed: u64,
    refused: u64,
    lateness: Slope,
}

impl Rates {
    /// The network lets a packet of `bytes`, with all headers `wire_bytes`, out at a moment.
    pub fn let_out(&mut self, at: Time, bytes: u32, wire_bytes: u32) {
        match &mut self.span {
            None => self.span = Some((at, at)),
            Some((first, last)) => {
                (*first, *last) = ((*first).min(at), (*last).max(at));
                self.bytes += u64::from(bytes);
                self.wire_bytes += u64::from(wire_bytes);
            }
        }
    }

    /// It was handed on, so much later than the moment set.
    pub fn handed_on(&mut self, at: Time, late_ns: Time, bytes: u32) {
        self.handed += u64::from(bytes);
        let begun = self.span.map_or(at, |(first, _)| first);
        self.lateness.add((at - begun) as f64 / 1e9, late_ns as f64 / 1e9);
    }

    /// Nobody would take it.
    pub fn refused(&mut self, bytes: u32) {
        self.refused += u64::from(bytes);
    }

    /// When the network let the first packet out, and the last; none without any.
    pub fn span(&self) -> Option<(Time, Time)> {
        self.span
    }

    /// As set, in bit/s; none over less than the shortest span.
    pub fn set_bps(&self) -> Option<f64> {
        self.bps(self.bytes)
    }

    /// The same with all headers; none where there are no more.
    pub fn wire_bps(&self) -> Option<f64> {
        self.bps(self.wire_bytes).filter(|_| self.wire_bytes != self.bytes)
    }

    fn bps(&self, bytes: u64) -> Option<f64> {
        let span_ns = self.span.map(|(first, last)| last - first).filter(|ns| *ns >= SHORTEST_NS)?;
        Some(bytes as f64 * 8e9 / span_ns as f64)
    }

    /// As handed on: the rate set, less what was refused, over a time as much longer as lateness grew all along.
    pub fn delivered_bps(&self) -> Option<f64> {
        let set_bps = self.set_bps().filter(|_| self.handed > 0)?;
        let kept = self.handed as f64 / (self.handed + self.refused) as f64;
        Some(set_bps * kept / (1.0 + self.lateness.slope().unwrap_or(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    /// 1 Mbit/s for so many milliseconds, late as said of each packet.
    fn stream(ms: Time, late_ns: impl Fn(Time) -> Time) -> Rates {
        let mut rates = Rates::default();
        for n in 0..=ms {
            rates.let_out(n * MS, 125, 250);
            rates.handed_on(n * MS, late_ns(n), 125);
        }
        rates
    }

    #[test]
    fn a_rate_is_bytes_over_the_span_between_the_first_and_the_last() {
        let steady = stream(1000, |_| 7 * MS);
        assert_eq!((steady.set_bps(), steady.wire_bps()), (Some(1e6), Some(2e6)));
        assert!((steady.delivered_bps().unwrap() - 1e6).abs() < 1.0);
        assert_eq!(
            (stream(900, |_| 0).set_bps(), Rates::default().delivered_bps()),
            (None, None),
            "too short"
        );
    }

    #[test]
    fn a_packet_late_at_an_end_of_a_burst_says_nothing_of_its_rate() {
        let off = |rates: Rates| (rates.delivered_bps().unwrap() / 1e6 - 1.0).abs();
        assert!(off(stream(5000, |n| if n == 5000 { 100 * MS } else { 0 })) < 1e-3, "the last");
        assert!(off(stream(5000, |n| if n == 0 { 100 * MS } else { 0 })) < 1e-3, "the first");
        assert!(off(stream(5000, |n| (n - 4900).max(0) * MS / 2)) < 1e-2, "a pause of 50 ms at the end");
        assert!(off(stream(5000, |n| n * MS / 50)) > 1e-2, "2 % slower all along");
    }

    #[test]
    fn what_is_refused_is_not_delivered() {
        let mut rates = stream(1999, |_| 0);
        (0..100).for_each(|_| rates.refused(125));
        assert!((rates.delivered_bps().unwrap() / rates.set_bps().unwrap() - 2000.0 / 2100.0).abs() < 1e-9);
    }
}
