//! What travels: a packet's accounted size and address, never its bytes.

use tcps_core::{
    endpoint::Ecn,
    ids::{LinkId, VertexId},
    record::DropReason,
    time::Time,
};

/// Handle of packets that no driver waits for: background traffic.
pub const BACKGROUND: u32 = u32::MAX;

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Handle chosen by the driver, or `BACKGROUND`.
    pub payload: u32,
    /// Flow number of the plan, `ASIDE_CLASS`, or the class of a traffic entry.
    pub class: u16,
    /// Sample number.
    pub index: u32,
    /// Vertex that it goes to.
    pub dst: VertexId,
    /// Differentiated services code point.
    pub dscp: u8,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
    /// Size on the wire, headers of all layers included (model: wire size).
    pub wire_bytes: u32,
    /// Moment at which it was sent.
    pub sent_ns: Time,
}

impl Packet {
    /// True for packets that are only counted.
    pub fn is_background(&self) -> bool {
        self.payload == BACKGROUND
    }
}

/// Where the time of a packet went on links; what is left of its time is propagation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// It waited for lines.
    pub queued_ns: Time,
    /// It was put on lines.
    pub serial_ns: Time,
    /// Radio links sent it again.
    pub again_ns: Time,
}

/// A packet on its way, with the moment that matters next: its entry into a queue, or its arrival.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// The packet.
    pub packet: Packet,
    /// The link that changed a bit of it.
    pub damaged_by: Option<LinkId>,
    /// Where its time went so far.
    pub spent: Spent,
    /// When it entered the queue, or when it arrives at the end of its pipe.
    pub at: Time,
    /// Its number among the packets that links have put into flight, modulo 2^32.
    pub number: u32,
}

impl InFlight {
    /// A packet that sets out now.
    pub fn new(packet: Packet, at: Time) -> Self {
        Self { packet, damaged_by: None, spent: Spent::default(), at, number: 0 }
    }
}

/// What the network tells its driver, about packets of the driver only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetEvent {
    /// A packet reached its vertex.
    Arrived {
        /// When.
        at: Time,
        /// Which.
        packet: Packet,
        /// Where its time went.
        spent: Spent,
    },
    /// A link made a second packet of one: it will be told of once more than it was sent.
    Duplicated {
        /// When.
        at: Time,
        /// Which.
        packet: Packet,
    },
    /// A packet was lost, or arrived with a checksum that is wrong.
    Dropped {
        /// When.
        at: Time,
        /// Which.
        packet: Packet,
        /// Number of the link (that which damaged it), or `LinkId::NONE` where no link leads on.
        link: LinkId,
        /// Why.
        reason: DropReason,
    },
}

impl NetEvent {
    /// When it happened.
    pub fn at(&self) -> Time {
        match self {
            NetEvent::Arrived { at, .. } | NetEvent::Duplicated { at, .. } | NetEvent::Dropped { at, .. } => {
                *at
            }
        }
    }
}
