//! Haptic events: contact that is made or lost shows as a jump of the force.
//!
//! ```text
//! event:  ||x - x_before|| > share · ||x_before||
//! ```
//! Samples are taken as 4-byte floats in network order; others are never an event.

/// The least length of a vector that a change is compared with, in the unit of the values.
const SMALL: f64 = 1e-5;

/// Compares each sample with the one before.
#[derive(Debug)]
pub(super) struct Contact {
    share: f64,
    last: Vec<f32>,
}

impl Contact {
    /// An event is a change by more than `share` of the vector before.
    pub(super) fn new(share: f64) -> Self {
        Self { share, last: Vec::new() }
    }

    /// Whether this sample is an event.
    // [Lee 2007]
    pub(super) fn is_event(&mut self, sample: &[u8]) -> bool {
        let is_event = self.differs_by(sample, self.share);
        self.keep(sample);
        is_event
    }

    /// Whether a sample is further than a share of the kept one's length from it.
    pub(super) fn differs_by(&self, sample: &[u8], share: f64) -> bool {
        let square = |v: f64| v * v;
        let off: f64 =
            floats(sample).zip(&self.last).map(|(new, old)| square(f64::from(new) - f64::from(*old))).sum();
        let long: f64 = self.last.iter().map(|v| square(f64::from(*v))).sum();
        self.is_comparable(sample) && off > square(share * (long.sqrt() + SMALL))
    }

    /// Whether a sample is a vector with as many values as the kept one.
    pub(super) fn is_comparable(&self, sample: &[u8]) -> bool {
        sample.len().is_multiple_of(4) && self.last.len() * 4 == sample.len()
    }

    /// Keeps a sample to compare with.
    pub(super) fn keep(&mut self, sample: &[u8]) {
        self.last.clear();
        self.last.extend(floats(sample));
    }
}

fn floats(sample: &[u8]) -> impl Iterator<Item = f32> + '_ {
    sample.chunks_exact(4).map(|b| f32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    // [Lee 2007]
    #[test]
    fn contact_and_release_are_events_and_a_slow_change_is_not() {
        let mut c = Contact::new(0.5);
        let force = |n: f32| [0.0f32, 0.0, n].map(f32::to_be_bytes).concat();
        let events: Vec<bool> = [0.0, 0.0, 2.0, 2.5, 3.0, 0.5, 0.0].map(|n| c.is_event(&force(n))).to_vec();
        assert_eq!(events, [false, false, true, false, false, true, true]);
        assert!(!c.is_event(&[1, 2, 3]) && !c.is_event(&[1, 2, 3]));
    }
}
