//! Rows about the network, the same in both worlds: packets that it dropped or that its links took, and what waits there.

use tcps_core::{
    ids::{FlowId, LinkId},
    record::{DropReason, Kind, Record},
    time::Time,
};
use tcps_net::{Packet, Passage};
use tcps_plan::net::{LinkSpec, QueueState, ASIDE_CLASS};
use tcps_plan::Plan;

/// The row of a packet that link `link` dropped at `at`; none of a datagram outside channels, which is no sample.
pub(crate) fn dropped(at: Time, packet: &Packet, link: LinkId, reason: DropReason) -> Option<Record> {
    (packet.class != ASIDE_CLASS).then(|| Record {
        value: at - packet.sent_ns,
        index: packet.index,
        size: packet.wire_bytes,
        flow: FlowId(packet.class),
        point: link.0,
        detail: reason as u8,
        ..Record::new(at, Kind::Dropped)
    })
}

/// The row of a packet that a link took; none of a datagram outside channels, which is no sample.
pub(crate) fn hop(p: &Passage) -> Option<Record> {
    let size = u32::try_from(p.serial_ns);
    (p.packet.class < ASIDE_CLASS).then(|| Record {
        value: p.queued_ns,
        index: p.packet.index,
        size: size.unwrap_or(u32::MAX),
        flow: FlowId(p.packet.class),
        point: p.link.0,
        detail: u8::from(size.is_err()),
        ..Record::new(p.entered_ns, Kind::Hop)
    })
}

/// The links whose queues are sampled: those with a rate, or a trace or radio slots in its place.
pub(crate) fn queued_links(plan: &Plan) -> impl Iterator<Item = LinkId> + '_ {
    let has_queue = |spec: &LinkSpec| {
        spec.rate_bps.is_some()
            || spec.opportunities_ns.is_some()
            || spec.radio.as_ref().is_some_and(|r| r.nr().is_some())
    };
    LinkId::each(&plan.network.links).filter(move |(_, spec)| has_queue(spec)).map(|(link, _)| link)
}

/// The row of a sample of a link's queue.
pub(crate) fn queue(now: Time, link: LinkId, found: QueueState) -> Record {
    Record {
        value: found.wait_ns,
        index: found.packets as u32,
        size: found.bytes as u32,
        point: link.0,
        ..Record::new(now, Kind::Queue)
    }
}
