//! The rate of packets over the time in which they went: as a network let them out, and as they were handed on.

use tcps_core::time::{Time, SECOND};

/// The shortest span of which a rate is told.
const SHORTEST_NS: Time = SECOND;

/// Bytes between the first and the last moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rate {
    span: Option<(Time, Time)>,
    /// Those behind the first packet.
    bytes: u64,
}

impl Rate {
    /// A packet of `bytes` at a moment.
    pub(crate) fn note(&mut self, at: Time, bytes: u32) {
        match &mut self.span {
            None => self.span = Some((at, at)),
            Some((first, last)) => {
                (*first, *last) = ((*first).min(at), (*last).max(at));
                self.bytes += u64::from(bytes);
            }
        }
    }

    /// In bit/s; none over less than the shortest span.
    pub(crate) fn bps(&self) -> Option<f64> {
        let span_ns = self.span.map(|(first, last)| last - first).filter(|ns| *ns >= SHORTEST_NS)?;
        Some(self.bytes as f64 * 8e9 / span_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    #[test]
    fn a_rate_is_bytes_over_the_span_between_the_first_and_the_last() {
        let mut rate = Rate::default();
        (0..=100).for_each(|n| rate.note(5 * MS + n * 10 * MS, 1250));
        assert_eq!(rate.bps(), Some(1e6), "1250 bytes every 10 ms");
        let mut short = Rate::default();
        (0..10).for_each(|n| short.note(n * 10 * MS, 1250));
        assert_eq!((short.bps(), Rate::default().bps()), (None, None), "too short to tell");
    }
}
