//! Rows about the network, the same in both worlds: packets that it dropped, and what waits at its links.

use tcps_core::{
    record::{DropReason, Kind, Record},
    time::Time,
};
use tcps_net::Packet;
use tcps_plan::net::{QueueState, ASIDE_CLASS};
use tcps_plan::Plan;

/// The row of a packet that link `link` dropped at `at`; none of a datagram outside channels, which is no sample.
pub(crate) fn dropped(at: Time, packet: &Packet, link: u16, reason: DropReason) -> Option<Record> {
    (packet.class != ASIDE_CLASS).then(|| Record {
        value: at - packet.sent_ns,
        index: packet.index,
        size: packet.wire_bytes,
        flow: packet.class,
        point: link,
        detail: reason as u8,
        ..Record::new(at, Kind::Dropped)
    })
}

/// The links whose queues are looked at: those with a rate, or a trace or radio slots in its place.
pub(crate) fn queued_links(plan: &Plan) -> impl Iterator<Item = u16> + '_ {
    let has_queue = |link: u16| {
        let spec = &plan.network.links[usize::from(link)];
        spec.rate_bps.is_some()
            || spec.opportunities_ns.is_some()
            || spec.radio.as_ref().is_some_and(|r| r.nr().is_some())
    };
    (0..plan.network.links.len() as u16).filter(move |&link| has_queue(link))
}

/// The row of a look at a link's queue.
pub(crate) fn queue(now: Time, link: u16, found: QueueState) -> Record {
    Record {
        value: found.wait_ns,
        index: found.packets as u32,
        size: found.bytes as u32,
        point: link,
        ..Record::new(now, Kind::Queue)
    }
}
