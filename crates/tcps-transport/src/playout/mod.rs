//! Playout: when a receiver shows what has arrived (model: playout; Hudson 2001: monitoring; Gokhale 2017: zero-order hold).
//!
//! ```text
//! arrival ──► hold       newest at each tick, or one of those that came together a tick
//!         ──► schedule   at origin + delay: fixed, Ramjee 1994, Moon 1998
//!         ──► queue      one a period; QM(T, L) keeps it short, or a queue of one is overwritten
//!         ──► device     as fast as a device takes them; a newer request replaces a waiting one of the same key
//! ```
//! Every policy is fed arrivals and asked for what it does at its next moment; nothing waits.

mod device;
mod hold;
mod moon;
mod queue;
mod ramjee;
mod schedule;
mod updateable;

use crate::params::{Params, TransportError, PLAYOUT};
use serde_json::Value;
use tcps_core::time::{Time, MS, SECOND};

/// Samples that wait in a policy at most.
const MOST_WAITING: usize = 1024;

/// A sample that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival {
    /// When, on the receiver's clock.
    pub at_ns: Time,
    /// When it was made.
    pub origin_ns: Time,
    /// Its number.
    pub index: u32,
    /// What it replaces in an updateable queue: a waiting one with the same key.
    pub key: u64,
    /// What whoever plays knows it by.
    pub token: u32,
}

impl Arrival {
    /// Delay of the sample; what its header says may be anything.
    fn delay_ns(&self) -> Time {
        self.at_ns.saturating_sub(self.origin_ns)
    }
}

/// What playout did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A sample was shown.
    Played {
        /// When.
        at_ns: Time,
        /// Which.
        sample: Arrival,
    },
    /// A sample came after its moment.
    Late(Arrival),
    /// A sample was dropped to keep the delay down, or overwritten.
    Dropped(Arrival),
    /// There was nothing to show: the last sample was shown again.
    Gap {
        /// When.
        at_ns: Time,
    },
}

/// A policy.
pub trait Playout: std::fmt::Debug + Send {
    /// A sample arrived.
    fn arrive(&mut self, arrival: Arrival, acts: &mut Vec<Act>);
    /// The next moment at which it shows something, if it knows one.
    fn next(&self) -> Option<Time>;
    /// Does what is due at `now`, which may be later than that moment: ticks that were missed are left out.
    fn tick(&mut self, now: Time, acts: &mut Vec<Act>);
}

/// The names of policies.
pub const KINDS: [&str; 7] = ["hold", "fixed", "ramjee", "moon", "queue", "overwrite", "updateable"];

/// The policy that `params` name by `kind`.
///
/// # Errors
///
/// If there is no such policy, or if it has no such parameter.
///
/// | kind | parameters |
/// |---|---|
/// | `hold` | `period` (1 ms), `display` = `replay` or `burst` |
/// | `fixed` | `delay` |
/// | `ramjee` | `update` (50 ms) |
/// | `moon` | `update` (50 ms), `percentile` (99), `window` (2 s) |
/// | `queue` | `threshold` T and `length` L of QM(T, L), or `base` and `factor` from `length` on; `drop` = `arriving` or `oldest`; `shortest`, `longest` |
/// | `overwrite` | `shortest`, `longest` (bounds of the period) |
/// | `updateable` | `period` (20 ms) of the device; `key`, which the caller reads |
pub fn policy(params: &Value) -> Result<Box<dyn Playout>, TransportError> {
    let p = Params::new(PLAYOUT, params);
    let update_ns = || Ok(p.span_ns("update_ns", 0..=10 * SECOND)?.unwrap_or(50 * MS));
    Ok(match p.choice("kind", &KINDS)?.unwrap_or("hold") {
        "fixed" => {
            p.allow(&["kind", "delay_ns"])?;
            let delay_ns = p.span_ns("delay_ns", 0..=10 * SECOND)?.unwrap_or(20 * MS);
            Box::new(schedule::Schedule::new(schedule::Fixed { delay_ns }, 0))
        }
        "ramjee" => {
            p.allow(&["kind", "update_ns"])?;
            Box::new(schedule::Schedule::new(ramjee::Ramjee::default(), update_ns()?))
        }
        "moon" => {
            p.allow(&["kind", "update_ns", "percentile", "window_ns"])?;
            let share = p.number("percentile", 0.0..=100.0)?.unwrap_or(99.0) / 100.0;
            let window_ns = p.span_ns("window_ns", MS..=3600 * SECOND)?.unwrap_or(2 * SECOND);
            Box::new(schedule::Schedule::new(moon::Moon::new(share, window_ns), update_ns()?))
        }
        "queue" => {
            p.allow(&["kind", "threshold", "length", "base", "factor", "drop", "shortest_ns", "longest_ns"])?;
            let drop_oldest = p.choice("drop", &["arriving", "oldest"])? == Some("oldest");
            Box::new(queue::Queue::new(table(&p)?, drop_oldest, bounds(&p)?))
        }
        "overwrite" => {
            p.allow(&["kind", "shortest_ns", "longest_ns"])?;
            Box::new(queue::Queue::overwriting(bounds(&p)?))
        }
        "updateable" => {
            p.allow(&["kind", "period_ns", "key"])?;
            key(params)?;
            let period_ns = p.span_ns("period_ns", MS / 10..=60 * SECOND)?.unwrap_or(20 * MS);
            Box::new(device::Device::new(period_ns))
        }
        _ => {
            p.allow(&["kind", "period_ns", "display"])?;
            let period_ns = p.span_ns("period_ns", MS / 10..=SECOND)?.unwrap_or(MS);
            Box::new(hold::Hold::new(period_ns, p.choice("display", &["replay", "burst"])? == Some("burst")))
        }
    })
}

/// The number of the value (or byte) of a sample that says what it replaces, if `params` name one.
///
/// # Errors
///
/// If it is no number from 0 to 255.
pub fn key(params: &Value) -> Result<Option<usize>, TransportError> {
    Ok(Params::new(PLAYOUT, params).integer("key", 0..=255)?.map(|k| k as usize))
}

// [Hudson 2001: monitoring]
fn bounds(p: &Params<'_>) -> Result<[Time; 2], TransportError> {
    let shortest_ns = p.span_ns("shortest_ns", MS / 10..=SECOND)?.unwrap_or(queue::SHORTEST_NS);
    let longest_ns = p.span_ns("longest_ns", MS / 10..=60 * SECOND)?.unwrap_or(queue::LONGEST_NS);
    match shortest_ns <= longest_ns {
        true => Ok([shortest_ns, longest_ns]),
        false => Err(p.refuse("shortest_ns", "at most longest_ns")),
    }
}

// [Hudson 2001: monitoring]
fn table(p: &Params<'_>) -> Result<queue::Table, TransportError> {
    let length = p.integer("length", 1..=1000)?;
    Ok(match p.integer("base", 1..=1_000_000)? {
        Some(base) => {
            let factor = p.number("factor", 1.0..=1000.0)?.unwrap_or(2.0);
            queue::Table::Decay { base: base.into(), factor, from: length.unwrap_or(3) as usize }
        }
        None => queue::Table::Step {
            threshold: p.integer("threshold", 1..=1_000_000)?.unwrap_or(150),
            length: length.unwrap_or(2) as usize,
        },
    })
}

/// Everything that a policy does with arrivals in the order of their moments, up to `end_ns`.
pub fn play(policy: &mut dyn Playout, arrivals: &[Arrival], end_ns: Time) -> Vec<Act> {
    let mut acts = Vec::with_capacity(arrivals.len());
    for a in arrivals {
        run_to(policy, a.at_ns, &mut acts);
        policy.arrive(*a, &mut acts);
    }
    run_to(policy, end_ns, &mut acts);
    acts
}

/// Ticks before `end_ns`: what arrives at a tick is there for it.
fn run_to(policy: &mut dyn Playout, end_ns: Time, acts: &mut Vec<Act>) {
    while let Some(t) = policy.next().filter(|t| *t < end_ns) {
        policy.tick(t, acts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn policies_come_by_name_and_refuse_what_they_do_not_have() {
        for kind in KINDS {
            assert!(policy(&json!({"kind": kind})).is_ok(), "{kind}");
        }
        assert!(policy(&json!({"kind": "fixed", "window_ns": 5})).is_err());
        assert!(policy(&json!({"kind": "updateable", "key": -1})).is_err());
        assert!(policy(&json!({"kind": "queue", "shortest_ns": 300 * MS})).is_err());
        assert!(policy(&json!({"kind": "none"})).is_err());
    }

    #[test]
    fn every_sample_has_one_fate() {
        let arrival = |i: u32| {
            let origin_ns = Time::from(i) * 4 * MS;
            let at_ns = origin_ns + Time::from(i * 7 % 23) * MS;
            Arrival { at_ns, origin_ns, index: i, key: u64::from(i % 3), token: i }
        };
        let mut arrivals: Vec<_> = (0..500).map(arrival).collect();
        arrivals.sort_by_key(|a| a.at_ns);
        for kind in KINDS {
            let acts = play(policy(&json!({"kind": kind})).unwrap().as_mut(), &arrivals, 10 * SECOND);
            let mut fates: Vec<u32> = acts
                .iter()
                .filter_map(|a| match a {
                    Act::Played { sample, .. } | Act::Late(sample) | Act::Dropped(sample) => {
                        Some(sample.index)
                    }
                    Act::Gap { .. } => None,
                })
                .collect();
            fates.sort_unstable();
            assert_eq!(fates, (0..500).collect::<Vec<_>>(), "{kind}");
        }
    }

    #[test]
    fn forged_times_do_no_harm_and_nothing_waits_without_end() {
        for kind in KINDS {
            let mut policy = policy(&json!({"kind": kind})).unwrap();
            let mut acts = Vec::new();
            for i in 0..5000u32 {
                let origin_ns = [Time::MAX, Time::MIN, 0, Time::from(i) * MS][i as usize % 4];
                let at_ns = Time::from(i);
                policy.arrive(
                    Arrival { at_ns, origin_ns, index: i * 7, key: u64::from(i), token: i },
                    &mut acts,
                );
            }
            let waiting = 5000 - acts.iter().filter(|a| !matches!(a, Act::Gap { .. })).count();
            assert!(waiting <= MOST_WAITING, "{kind}: {waiting}");
        }
    }
}
