//! Line and board where there are none: what the firmware does with samples (`firmware/core/board.c`), at the moments that a
//! timetable gives.
//!
//! ```text
//! ride ──► held until its exit ──► values that are no numbers mended ──► on the way up until it is through ──► BoardEvent
//!                                  drive: outputs, watchdog fed
//! ```

use super::timetable::Timetable;
use crate::host::{BoardEvent, BoardRequest};
use std::collections::VecDeque;
use tcps_core::time::{Time, MS, NEVER};
use tcps_plan::{BoardPlan, SafeOutput};
use tcps_wire::board::{Role, ANSWER_OVERHEAD, MAX_CHANNELS, MAX_PAYLOAD, SAFE_OVERHEAD};

/// Samples that may be on a line and in its board at once; more are dropped.
pub const MOST_RIDING: usize = 64;

/// Bytes of a value, a float in network order.
const VALUE: usize = 4;

type Values = [u8; MAX_PAYLOAD];

/// A board that is modelled, with its line.
#[derive(Debug)]
pub struct Model {
    table: Timetable,
    up_free: Time,
    watchdog_ns: Option<Time>,
    safe: SafeOutput,
    held: VecDeque<Held>,
    coming: VecDeque<(Time, BoardEvent)>,
    /// What the outputs are, and how many of their bytes were driven last.
    outputs: Values,
    driven: usize,
    /// The last readings of each channel.
    last: [Values; MAX_CHANNELS],
    /// When the watchdog acts.
    barks_ns: Time,
    refused: u32,
}

/// A sample before its exit.
#[derive(Debug)]
struct Held {
    job: u32,
    channel: u8,
    role: Role,
    entry_ns: Time,
    exit_ns: Time,
    bytes: Vec<u8>,
}

impl Model {
    /// A board at power-on, on a line of its rate.
    pub fn new(plan: &BoardPlan) -> Self {
        Self {
            table: Timetable::new(plan.rate_bps, plan.work_us),
            up_free: 0,
            watchdog_ns: (plan.watchdog_ms > 0).then_some(Time::from(plan.watchdog_ms) * MS),
            safe: plan.safe.clone(),
            held: VecDeque::new(),
            coming: VecDeque::new(),
            outputs: [0; MAX_PAYLOAD],
            driven: 0,
            last: [[0; MAX_PAYLOAD]; MAX_CHANNELS],
            barks_ns: NEVER,
            refused: 0,
        }
    }

    /// Sends a sample of at most `MAX_PAYLOAD` bytes; false if too many are in flight, or it would not be back in time.
    pub fn ride(&mut self, now: Time, ride: &BoardRequest<'_>, role: Role) -> bool {
        if self.held.len() + self.coming.len() >= MOST_RIDING {
            return false;
        }
        let Some(trip) = self.table.take(now, ride.bytes.len()) else { return false };
        let (job, channel, bytes) = (ride.job, ride.channel, ride.bytes.to_vec());
        let (entry_ns, exit_ns) = (trip.entry_ns, trip.exit_ns);
        self.held.push_back(Held { job, channel, role, entry_ns, exit_ns, bytes });
        true
    }

    /// When something happens next.
    pub fn next(&self) -> Time {
        let exit = self.held.front().map_or(NEVER, |h| h.exit_ns);
        let come = self.coming.front().map_or(NEVER, |c| c.0);
        exit.min(come).min(self.barks_ns)
    }

    /// The next event that is there by `now`. An exit comes before the watchdog that it feeds.
    pub fn work(&mut self, now: Time) -> Option<BoardEvent> {
        while self.next() <= now {
            let at = self.next();
            if self.coming.front().is_some_and(|c| c.0 == at) {
                return self.coming.pop_front().map(|c| c.1);
            }
            match self.held.front() {
                Some(h) if h.exit_ns == at => self.finish(),
                _ => self.bark(at),
            }
        }
        None
    }

    /// Values that were no numbers.
    pub fn refused(&self) -> u32 {
        self.refused
    }

    /// The next sample leaves the board.
    fn finish(&mut self) {
        let Some(held) = self.held.pop_front() else { return };
        let Held { job, channel, role, entry_ns, exit_ns, mut bytes } = held;
        let n = bytes.len();
        let last = &mut self.last[usize::from(channel) % MAX_CHANNELS];
        match role {
            Role::Relay => {}
            Role::Capture => {
                self.refused += mend(&mut bytes, last);
                last[..n].copy_from_slice(&bytes);
            }
            Role::Drive => {
                self.refused += mend(&mut bytes, &self.outputs);
                self.outputs[..n].copy_from_slice(&bytes);
                self.driven = n;
                self.barks_ns = self.watchdog_ns.map_or(NEVER, |w| exit_ns + w);
            }
            Role::Sense => self.refused += mend(&mut bytes, &[0; MAX_PAYLOAD]),
        }
        self.say(exit_ns, n + ANSWER_OVERHEAD, BoardEvent::Answered { job, entry_ns, exit_ns, bytes });
    }

    /// The watchdog acts.
    fn bark(&mut self, at: Time) {
        if let SafeOutput::Values(values) = &self.safe {
            self.outputs = [0; MAX_PAYLOAD];
            let bytes = values.iter().flat_map(|v| v.to_be_bytes());
            self.outputs.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        }
        self.barks_ns = NEVER;
        let values = self.outputs[..self.driven].to_vec();
        self.say(at, self.driven + SAFE_OVERHEAD, BoardEvent::Safe(values));
    }

    fn say(&mut self, at: Time, bytes: usize, event: BoardEvent) {
        self.up_free = self.table.through(at.max(self.up_free), bytes);
        self.coming.push_back((self.up_free, event));
    }
}

/// Puts others in the place of values that are no numbers (IEEE 754: all bits of the exponent are set); how many.
fn mend(values: &mut [u8], others: &Values) -> u32 {
    let mut mended = 0;
    for (value, other) in values.chunks_exact_mut(VALUE).zip(others.chunks_exact(VALUE)) {
        if value[0] & 0x7f == 0x7f && value[1] & 0x80 != 0 {
            value.copy_from_slice(other);
            mended += 1;
        }
    }
    mended
}

#[cfg(test)]
mod tests {
    use super::{super::timetable::LOST_NS, *};
    use proptest::prelude::*;

    const MICRO: Time = 1_000;
    const ROLES: [Role; 4] = [Role::Relay, Role::Capture, Role::Drive, Role::Sense];

    /// 1 Mbit/s, so that a byte takes 10 us: 4 B are through after 120 us, and back 220 us after their exit.
    fn plan(watchdog_ms: u16, work_us: u32, safe: SafeOutput) -> BoardPlan {
        BoardPlan { rate_bps: 1e6, watchdog_ms, safe, work_us, attached: None }
    }

    fn ride(model: &mut Model, now: Time, role: Role, values: &[f32]) -> bool {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
        model.ride(now, &BoardRequest { job: 7, channel: role as u8, bytes: &bytes }, role)
    }

    /// Everything that comes by `until`, each with when it is there.
    fn come(model: &mut Model, until: Time) -> Vec<(Time, BoardEvent)> {
        let mut found = Vec::new();
        while model.next() <= until {
            let at = model.next();
            found.extend(model.work(at).map(|event| (at, event)));
        }
        found
    }

    fn floats(bytes: &[u8]) -> Vec<f32> {
        bytes.chunks_exact(VALUE).map(|b| f32::from_be_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    #[test]
    fn a_sample_goes_down_through_the_board_and_up_again() {
        let mut model = Model::new(&plan(0, 30, SafeOutput::Hold));
        assert!(ride(&mut model, 0, Role::Relay, &[1.0]));
        let bytes = 1f32.to_be_bytes().to_vec();
        let (entry_ns, exit_ns) = (120 * MICRO, 150 * MICRO);
        let answered = BoardEvent::Answered { job: 7, entry_ns, exit_ns, bytes };
        assert_eq!(come(&mut model, MS), [(370 * MICRO, answered)]);
    }

    #[test]
    fn what_is_no_number_moves_nothing() {
        let nan_after_one = |role| {
            let mut model = Model::new(&plan(0, 0, SafeOutput::Hold));
            ride(&mut model, 0, role, &[1.0, 2.0]);
            ride(&mut model, 0, role, &[f32::NAN, f32::NEG_INFINITY]);
            let last = come(&mut model, MS).pop().map(|c| c.1);
            let Some(BoardEvent::Answered { bytes, .. }) = last else { panic!("{last:?}") };
            (floats(&bytes), model.refused())
        };
        assert_eq!(nan_after_one(Role::Capture), (vec![1.0, 2.0], 2));
        assert_eq!(nan_after_one(Role::Drive), (vec![1.0, 2.0], 2));
        assert_eq!(nan_after_one(Role::Sense), (vec![0.0, 0.0], 2));
        let (relayed, refused) = nan_after_one(Role::Relay);
        assert!(relayed[0].is_nan() && refused == 0);
    }

    #[test]
    fn the_watchdog_is_fed_when_a_drive_leaves_the_board_not_when_it_is_sent() {
        let mut model = Model::new(&plan(5, 3_000, SafeOutput::Values(vec![0.5])));
        ride(&mut model, 0, Role::Drive, &[1.0, 2.0]);
        let first_exit = 160 * MICRO + 3 * MS;
        ride(&mut model, first_exit + 4 * MS, Role::Drive, &[3.0, 4.0]); // still held when the watchdog looks
        let events = come(&mut model, 20 * MS);
        let safe: Vec<_> = events.iter().filter(|n| matches!(n.1, BoardEvent::Safe(_))).collect();
        let barked = first_exit + 5 * MS;
        let bytes = [0.5f32, 0.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        assert_eq!(*safe[0], (barked + 200 * MICRO, BoardEvent::Safe(bytes)));
        assert_eq!(safe.len(), 2, "once for each silence");
        assert_eq!(model.next(), NEVER, "it does not bark again");
    }

    #[test]
    fn a_board_that_holds_keeps_its_outputs() {
        let mut model = Model::new(&plan(5, 0, SafeOutput::Hold));
        ride(&mut model, 0, Role::Drive, &[1.0]);
        let events = come(&mut model, 1_000 * MS);
        assert_eq!(events.last().map(|n| &n.1), Some(&BoardEvent::Safe(1f32.to_be_bytes().to_vec())));
    }

    #[test]
    fn a_line_that_is_full_takes_no_more() {
        let mut model = Model::new(&plan(0, 0, SafeOutput::Hold));
        let taken = (0..100).filter(|_| ride(&mut model, 0, Role::Relay, &[])).count();
        assert_eq!(taken, MOST_RIDING);
        assert_eq!(come(&mut model, MS * 100).len(), MOST_RIDING);
    }

    proptest! {
        #[test]
        fn each_sample_that_is_taken_comes_back_once_in_order_and_in_time(
            rate_bps in 5e3f64..1e8, work_us in 0u32..50_000, watchdog_ms in 0u16..40,
            samples in proptest::collection::vec((0i64..20 * MS, 0usize..4, 0usize..59, any::<u32>()), 1..120),
        ) {
            let plan = BoardPlan { rate_bps, ..plan(watchdog_ms, work_us, SafeOutput::Hold) };
            let mut model = Model::new(&plan);
            let (mut now, mut sent, mut events) = (0, Vec::new(), Vec::new());
            for (job, (pause, role, values, bits)) in samples.into_iter().enumerate() {
                now += pause;
                events.extend(come(&mut model, now));
                let bytes = bits.to_be_bytes().repeat(values);
                let ride = BoardRequest { job: job as u32, channel: role as u8, bytes: &bytes };
                if model.ride(now, &ride, ROLES[role]) {
                    sent.push((now, job as u32, ROLES[role]));
                }
                prop_assert!(model.held.len() + model.coming.len() <= MOST_RIDING + 1);
            }
            events.extend(come(&mut model, NEVER - 1));
            prop_assert!(events.windows(2).all(|n| n[0].0 <= n[1].0));
            let barks = events.iter().filter(|n| matches!(n.1, BoardEvent::Safe(_))).count() as Time;
            prop_assert!(watchdog_ms > 0 || barks == 0);
            let safe_ns = barks * model.table.through(0, MAX_PAYLOAD + SAFE_OVERHEAD);
            let answers = events.iter().filter_map(|(at, n)| match n {
                BoardEvent::Answered { job, entry_ns, exit_ns, bytes } => Some((*at, *job, *entry_ns, *exit_ns, bytes)),
                _ => None,
            });
            let answers: Vec<_> = answers.collect();
            prop_assert_eq!(answers.len(), sent.len());
            for ((sent_at, job, role), (at, answered, entry, exit, bytes)) in sent.into_iter().zip(answers) {
                prop_assert_eq!(job, answered);
                prop_assert!(sent_at <= entry && entry <= exit && exit <= at && at <= sent_at + LOST_NS + safe_ns);
                prop_assert!(role == Role::Relay || floats(bytes).iter().all(|v| v.is_finite()));
            }
        }
    }
}
