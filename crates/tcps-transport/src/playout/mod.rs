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
mod policy;
mod queue;
mod ramjee;
mod schedule;
mod updateable;

pub use policy::{Act, Arrival, Playout};

use crate::params::{Params, TransportError, PLAYOUT};
use serde_json::Value;
use std::ops::RangeInclusive;
use tcps_core::{
    param::{self, Draws, Entry, Param, Params as _},
    params,
    time::Time,
};

type Make = fn(&Params<'_>) -> Result<Box<dyn Playout>, TransportError>;

const PERIOD: RangeInclusive<f64> = 1e5..=1e9;
const LONG: RangeInclusive<f64> = 1e5..=60e9;

params! {
    struct Held {
        period_ns: Time = Ns, "1 ms", PERIOD, "time between ticks";
        display: String = Choice(&["replay", "burst"]), "replay", ANY, "samples that arrived together: `replay` shows one per tick, `burst` only the newest";
    }
}
params! {
    struct Late {
        delay_ns: Time = Ns, "20 ms", 0.0..=10e9, "time from a sample's origin to its display";
    }
}
params! {
    struct Updated {
        update_ns: Time = Ns, "50 ms", 0.0..=10e9, "time between updates of the delay";
    }
}
params! {
    struct Measured {
        percentile: f64 = Number, "99", 0.0..=100.0, "percentile of delays, in percent";
        window_ns: Time = Ns, "2 s", 1e6..=3.6e12, "time over which delays count";
    }
}
params! {
    struct Monitored {
        threshold: u32 = Count, "150", 1.0..=1e6, "periods for which a queue must be long before it is shortened: T of QM(T, L)";
        length: Option<u32> = Count, ABSENT, 1.0..=1000.0, "queue length, in samples, that counts as long: L; default `2`, or `3` if `base` is given";
        base: Option<u32> = Count, ABSENT, 1.0..=1e6, "`threshold` of a queue of `length` samples, in periods; `factor` lowers it for longer queues";
        factor: f64 = Number, "2", 1.0..=1000.0, "with `base`: the threshold is divided by this for each further sample in the queue";
        drop: String = Choice(&["arriving", "oldest"]), "arriving", ANY, "which sample is dropped";
    }
}
params! {
    struct Bounds {
        shortest_ns: Time = Ns, "16666666 ns", PERIOD, "shortest period, at most longest";
        longest_ns: Time = Ns, "200 ms", LONG, "longest period";
    }
}
params! {
    struct Taken {
        period_ns: Time = Ns, "20 ms", LONG, "time that the device needs for a sample";
    }
}
params! {
    struct Key {
        key: Option<usize> = Count, ABSENT, 0.0..=255.0, "number of the value, or byte, by which samples are compared: a newer sample replaces a waiting one with the same value";
    }
}

const fn entry(
    id: u16,
    name: &'static str,
    doc: &'static str,
    params: &'static [&'static [Param]],
    make: Make,
) -> Entry<Make> {
    Entry { id, name, doc, params, draws: Draws::No, make }
}

/// The policies.
static POLICIES: [Entry<Make>; 7] = [
    entry(
        0,
        "hold",
        "a sample at each tick: the newest, or the next of several that arrived together",
        &[Held::TABLE],
        |p| {
            let Held { period_ns, display } = p.read()?;
            Ok(Box::new(hold::Hold::new(period_ns, display == "burst")))
        },
    ),
    entry(1, "fixed", "at a fixed delay after a sample's origin", &[Late::TABLE], |p| {
        let Late { delay_ns } = p.read()?;
        Ok(Box::new(schedule::Schedule::new(schedule::Fixed { delay_ns }, 0)))
    }),
    entry(
        2,
        "ramjee",
        "at a delay that follows the mean and the variation of delays (Ramjee 1994)",
        &[Updated::TABLE],
        |p| {
            let Updated { update_ns } = p.read()?;
            Ok(Box::new(schedule::Schedule::new(ramjee::Ramjee::default(), update_ns)))
        },
    ),
    entry(
        3,
        "moon",
        "at a percentile of recent delays (Moon 1998)",
        &[Updated::TABLE, Measured::TABLE],
        |p| {
            let (Updated { update_ns }, Measured { percentile, window_ns }) = (p.read()?, p.read()?);
            Ok(Box::new(schedule::Schedule::new(moon::Moon::new(percentile / 100.0, window_ns), update_ns)))
        },
    ),
    entry(
        4,
        "queue",
        "a sample per period, from a queue that monitoring keeps short (Hudson 2001)",
        &[Monitored::TABLE, Bounds::TABLE],
        |p| {
            let given: Monitored = p.read()?;
            Ok(Box::new(queue::Queue::new(table(&given), given.drop == "oldest", bounds(p)?)))
        },
    ),
    entry(5, "overwrite", "a sample per period, from a queue of one sample", &[Bounds::TABLE], |p| {
        Ok(Box::new(queue::Queue::overwriting(bounds(p)?)))
    }),
    entry(
        6,
        "updateable",
        "as fast as the device accepts samples; a newer sample replaces a waiting one with the same key",
        &[Taken::TABLE, Key::TABLE],
        |p| {
            let (Taken { period_ns }, Key { .. }) = (p.read()?, p.read()?);
            Ok(Box::new(device::Device::new(period_ns)))
        },
    ),
];

/// The policies with their parameters, as JSON.
pub fn described() -> Value {
    param::described(&POLICIES.iter().collect::<Vec<_>>())
}

/// The policy that `params` name by `kind`: `hold` if they name none.
///
/// # Errors
///
/// If there is no such policy, or if it has no such parameter.
pub fn policy(params: &Value) -> Result<Box<dyn Playout>, TransportError> {
    let mut given = params.clone();
    let kind = given.as_object_mut().and_then(|given| given.remove("kind")).unwrap_or_else(|| "hold".into());
    let Some(entry) = POLICIES.iter().find(|known| kind == known.name) else {
        let names: Vec<_> = POLICIES.iter().map(|known| known.name).collect();
        return Err(Params::new(PLAYOUT, params).refuse("kind", &names.join(", ")));
    };
    (entry.make)(&Params::new(PLAYOUT, &given).known(entry)?)
}

/// The number of the value (or byte) of a sample that says what it replaces, if `params` name one.
///
/// # Errors
///
/// If it is no number from 0 to 255.
pub fn key(params: &Value) -> Result<Option<usize>, TransportError> {
    Ok(Params::new(PLAYOUT, params).read::<Key>()?.key)
}

// [Hudson 2001: monitoring]
fn bounds(p: &Params<'_>) -> Result<[Time; 2], TransportError> {
    let Bounds { shortest_ns, longest_ns } = p.read()?;
    match shortest_ns <= longest_ns {
        true => Ok([shortest_ns, longest_ns]),
        false => Err(p.refuse("shortest_ns", "at most longest_ns")),
    }
}

// [Hudson 2001: monitoring]
fn table(given: &Monitored) -> queue::Table {
    let Monitored { threshold, length, base, factor, .. } = *given;
    match base {
        Some(base) => queue::Table::Decay { base: base.into(), factor, from: length.unwrap_or(3) as usize },
        None => queue::Table::Step { threshold, length: length.unwrap_or(2) as usize },
    }
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
    use super::policy::MOST_WAITING;
    use super::*;
    use serde_json::json;
    use tcps_core::time::{MS, SECOND};

    #[test]
    fn policies_come_by_name_and_refuse_what_they_do_not_have() {
        for kind in POLICIES.iter().map(|known| known.name) {
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
        for kind in POLICIES.iter().map(|known| known.name) {
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
        for kind in POLICIES.iter().map(|known| known.name) {
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
