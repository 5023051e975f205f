//! Playout: when a receiver shows what has arrived (PROTOCOLS 11.4, 4.3, 1.6).
//!
//! ```text
//! arrival ──► hold       newest at each tick, or one of those that came together a tick
//!         ──► schedule   at origin + delay: fixed, Ramjee 1994, Moon 1998
//!         ──► queue      one a period; QM(T, L) keeps it short, or a queue of one is overwritten
//! ```
//! Every policy is fed arrivals and asked for what it does at its next moment; nothing waits.

mod hold;
mod moon;
mod queue;
mod ramjee;
mod schedule;
mod updateable;

pub use updateable::Updateable;

use crate::params::{Params, TransportError};
use serde_json::Value;
use tcps_core::time::{Time, MS, SECOND};

/// A sample that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When, on the receiver's clock.
    pub at_ns: Time,
    /// When it was made.
    pub origin_ns: Time,
    /// Its number.
    pub index: u32,
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
    /// The next moment at which it shows something.
    fn next(&self) -> Option<Time>;
    /// Does what is due at that moment.
    fn tick(&mut self, now: Time, acts: &mut Vec<Act>);
}

/// The policy that `params` name by `kind`.
///
/// | kind | parameters |
/// |---|---|
/// | `hold` | `period` (1 ms), `display` = `replay` or `burst` |
/// | `fixed` | `delay` |
/// | `ramjee` | `update` (50 ms) |
/// | `moon` | `update` (50 ms), `percentile` (99), `window` (2 s) |
/// | `queue` | `threshold` T and `length` L of QM(T, L), or `base` and `factor` from `length` on; `drop` = `arriving` or `oldest` |
/// | `overwrite` | none |
pub fn policy(params: &Value) -> Result<Box<dyn Playout>, TransportError> {
    let p = Params::new("playout", params);
    let kinds = ["hold", "fixed", "ramjee", "moon", "queue", "overwrite"];
    let update_ns = || Ok(p.span_ns("update_ns", 0..=10 * SECOND)?.unwrap_or(50 * MS));
    Ok(match p.choice("kind", &kinds)?.unwrap_or("hold") {
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
            p.allow(&["kind", "threshold", "length", "base", "factor", "drop"])?;
            Box::new(queue::Queue::new(
                table(&p)?,
                p.choice("drop", &["arriving", "oldest"])? == Some("oldest"),
            ))
        }
        "overwrite" => {
            p.allow(&["kind"])?;
            Box::new(queue::Queue::overwriting())
        }
        _ => {
            p.allow(&["kind", "period_ns", "display"])?;
            let period_ns = p.span_ns("period_ns", MS / 10..=SECOND)?.unwrap_or(MS);
            Box::new(hold::Hold::new(period_ns, p.choice("display", &["replay", "burst"])? == Some("burst")))
        }
    })
}

// [PROTOCOLS 4.3]
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
        for kind in ["hold", "fixed", "ramjee", "moon", "queue", "overwrite"] {
            assert!(policy(&json!({"kind": kind})).is_ok(), "{kind}");
        }
        assert!(policy(&json!({"kind": "fixed", "window_ns": 5})).is_err());
        assert!(policy(&json!({"kind": "none"})).is_err());
    }

    #[test]
    fn every_sample_has_one_fate() {
        let arrival = |i: u32| {
            let origin_ns = Time::from(i) * 4 * MS;
            Arrival { at_ns: origin_ns + Time::from(i * 7 % 23) * MS, origin_ns, index: i }
        };
        let mut arrivals: Vec<_> = (0..500).map(arrival).collect();
        arrivals.sort_by_key(|a| a.at_ns);
        for kind in ["hold", "fixed", "ramjee", "moon", "queue", "overwrite"] {
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
}
