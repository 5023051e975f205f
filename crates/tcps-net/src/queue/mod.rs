//! Queue disciplines: who goes first and who is dropped. A new one is a file here and its line in `QUEUES`.

pub mod codel;
mod discipline;
pub mod drop_tail;
pub mod fifo;
pub mod fq_codel;
pub mod gates;
mod own;
pub mod priority;
pub mod red;
pub mod round_robin;

pub use discipline::{by_code_point, Context, Discipline, Flows, Limit, QueueDiscipline, Refused};

use crate::{error::NetError, own::ForeignCode};
use serde_json::Value;
use tcps_core::param::{named, Entry, Fault, Named};
use tcps_plan::net::LinkSpec;

/// The disciplines by name.
pub const QUEUES: &[&Entry<Discipline>] = &[
    &drop_tail::ENTRY,
    &priority::ENTRY,
    &gates::ENTRY,
    &round_robin::ENTRY,
    &red::ENTRY,
    &codel::ENTRY,
    &fq_codel::ENTRY,
];

/// Whether a discipline opens and closes by the clock.
pub fn is_timed(discipline: &Named) -> bool {
    named(QUEUES, &discipline.kind).is_ok_and(|entry| entry.make.timed)
}

/// The parameters of a discipline, checked as a link would check them, and completed.
pub fn checked(discipline: &Named) -> Result<Value, Fault> {
    let (entry, params) = discipline.of(QUEUES)?;
    let limit = Limit::of(None, None);
    (entry.make.make)(&params, &Context { limit, flows: None, seed: 0, link: "" })?;
    Ok(params)
}

/// The discipline of a link.
pub fn build(
    link: &LinkSpec,
    flows: &Flows,
    seed: u64,
    code: &mut dyn ForeignCode,
) -> Result<Box<dyn QueueDiscipline>, NetError> {
    let context = Context {
        limit: Limit::of(link.queue.limit_bytes, link.queue.limit_packets),
        flows: Some(flows),
        seed,
        link: &link.name,
    };
    let (named, place) = (&link.queue.discipline, format!("links.{}", link.name));
    let mut queue: Box<dyn QueueDiscipline> = if named.is_code() {
        let queue = code.queue(named, &link.name, seed);
        let queue = queue.map_err(|e| NetError::code(&place, "queue.discipline", e))?;
        Box::new(own::OwnQueue::new(queue, &named.kind, &context))
    } else {
        let made = named.of(QUEUES).and_then(|(entry, params)| (entry.make.make)(&params, &context));
        made.map_err(|fault| NetError::of(place, "queue", fault))?
    };
    queue.set_rate(link.rate_bps.unwrap_or(f64::INFINITY));
    Ok(queue)
}
