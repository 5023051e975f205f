//! Requests to a device that is slower than they come: one a period, each key at most once in the queue
//! (Hudson et al. 2001).
//!
//! ```text
//! request ──► [key 0 | key 2 | key 1] ──► device, free again a period later
//!    a newer request takes the waiting one of its key out and goes to the tail
//! ```

use super::{
    policy::{Act, Arrival, Playout, MOST_WAITING},
    updateable::Updateable,
};
use tcps_core::time::Time;

/// The device with what waits for it.
#[derive(Debug)]
pub(super) struct Device {
    period_ns: Time,
    queue: Updateable<u64, Arrival>,
    /// When it takes the next request.
    free_ns: Time,
}

impl Device {
    pub(super) fn new(period_ns: Time) -> Self {
        Self { period_ns, queue: Updateable::default(), free_ns: Time::MIN }
    }
}

// [Hudson 2001: updateable]
impl Playout for Device {
    fn arrive(&mut self, arrival: Arrival, acts: &mut Vec<Act>) {
        self.free_ns = self.free_ns.max(arrival.at_ns);
        acts.extend(self.queue.push(arrival.key, arrival).map(Act::Dropped));
        if self.queue.len() > MOST_WAITING {
            acts.extend(self.queue.pop().map(|(_, oldest)| Act::Dropped(oldest)));
        }
    }

    fn next(&self) -> Option<Time> {
        (!self.queue.is_empty()).then_some(self.free_ns)
    }

    fn tick(&mut self, now: Time, acts: &mut Vec<Act>) {
        if let Some((_, sample)) = self.queue.pop() {
            self.free_ns = now + self.period_ns;
            acts.push(Act::Played { at_ns: now, sample });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playout::play;
    use tcps_core::time::MS;

    // [Hudson 2001: updateable]
    #[test]
    fn the_rate_of_requests_scales_to_that_of_the_device_and_a_rare_one_has_its_turn() {
        let request = |i: u32| {
            let at_ns = Time::from(i) * MS;
            Arrival { at_ns, origin_ns: at_ns, index: i, key: u64::from(i % 50 == 5), token: i }
        };
        let requests: Vec<_> = (0..100).map(request).collect();
        let acts = play(&mut Device::new(20 * MS), &requests, 200 * MS);
        let taken: Vec<_> = acts
            .iter()
            .filter_map(|a| match a {
                Act::Played { at_ns, sample } => Some((at_ns / MS, sample.index)),
                _ => None,
            })
            .collect();
        assert_eq!(taken, [(0, 0), (20, 5), (40, 40), (60, 55), (80, 80), (100, 99)]);
        assert_eq!(acts.len(), 100, "the others were replaced before the device was free");
    }

    // [Hudson 2001: updateable]
    #[test]
    fn of_more_requests_than_may_wait_the_oldest_is_dropped() {
        let request = |i: u32| Arrival { at_ns: 0, origin_ns: 0, index: i, key: i.into(), token: i };
        let (mut device, mut acts) = (Device::new(20 * MS), Vec::new());
        (0..1024).for_each(|i| device.arrive(request(i), &mut acts));
        assert_eq!(acts, []);
        (1024..1026).for_each(|i| device.arrive(request(i), &mut acts));
        assert_eq!(acts, [0, 1].map(|i| Act::Dropped(request(i))));
    }
}
