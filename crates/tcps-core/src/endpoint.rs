//! The contract that every transport endpoint keeps: bytes and time go in, bytes and deadlines come out.
//!
//! ```text
//!   sample ──► handle_input ─┐                    ┌─► Transmit (datagram in buf)
//! datagram ──► handle_input ─┼─► state machine ──►├─► Deliver  (sample in buf)
//!  time-out ─► handle_input ─┘    poll_output     └─► Record
//!                                 poll_timeout ───► when to come back
//! ```
//!
//! A driver calls `handle_input` once, then `poll_output` until it gives `None`, then waits for `poll_timeout`.

use crate::{ids::FlowId, record::Record, sample::Meta, time::Time};
use serde::Serialize;

/// What can happen to an endpoint.
#[derive(Debug)]
pub enum Input<'a> {
    /// The deadline of `poll_timeout` has passed.
    Timeout,
    /// A datagram has arrived.
    Datagram {
        /// Its bytes; they may come from anybody.
        bytes: &'a [u8],
        /// When the kernel had it (not when the thread woke up), on the node's clock.
        received_ns: Time,
        /// What its IP header says of congestion.
        ecn: Ecn,
    },
    /// The local side has a sample to send.
    Sample {
        /// Its identity.
        meta: Meta,
        /// Its bytes.
        bytes: &'a [u8],
    },
}

impl<'a> Input<'a> {
    /// A datagram that nobody has marked.
    pub fn datagram(bytes: &'a [u8], received_ns: Time) -> Self {
        Self::Datagram { bytes, received_ns, ecn: Ecn::NotCapable }
    }
}

/// What an endpoint wants done. The bytes of `Transmit` and `Deliver` are in the buffer given to `poll_output`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Output {
    /// Send the buffer to the peer.
    Transmit(Transmit),
    /// Hand the buffer to the local side as a sample.
    Deliver(Delivery),
    /// Write a row.
    Record(Record),
}

/// What of a datagram was sent before, as far as its endpoint knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Again {
    /// Nothing.
    #[default]
    Nothing,
    /// Samples of its flow that are older than the one that it is sent for.
    Older,
    /// All of it; or it is parity of what was.
    All,
}

/// A datagram to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Size that links and queues account for (model: wire size); it may differ from the bytes that are really sent.
    pub wire_bytes: u32,
    /// The flow that it is sent for.
    pub flow: FlowId,
    /// The (first) sample in it.
    pub index: u32,
    /// Its code point, where the endpoint chooses a path by it; none: that of its channel or flow.
    pub dscp: Option<u8>,
    /// Whether queues may mark it in place of dropping it.
    pub ecn: Ecn,
    /// What of it was sent before.
    pub again: Again,
}

impl Transmit {
    /// One with the code point of its channel or flow, which is not to be marked.
    pub fn new(wire_bytes: u32, flow: FlowId, index: u32) -> Self {
        Self { wire_bytes, flow, index, dscp: None, ecn: Ecn::NotCapable, again: Again::Nothing }
    }

    /// Of what was sent before.
    pub fn again(self, again: Again) -> Self {
        Self { again, ..self }
    }
}

/// What an IP header says of congestion; the numbers are the bits.
// [RFC 3168 §5]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// The packet is not to be marked.
    #[default]
    NotCapable = 0,
    /// The packet may be marked: ECT(1).
    Capable1 = 1,
    /// The packet may be marked: ECT(0).
    Capable = 2,
    /// The packet has met congestion.
    Met = 3,
}

impl Ecn {
    /// That of the byte of an IP header that has the code point too.
    pub fn of(tos: u8) -> Self {
        [Self::NotCapable, Self::Capable1, Self::Capable, Self::Met][usize::from(tos & 3)]
    }

    /// The byte of an IP header that has the code point in its upper six bits. [RFC 2474 §3]
    pub fn tos(self, dscp: u8) -> u8 {
        dscp << 2 | self as u8
    }

    /// Marks a packet that may be marked, and tells whether it was one.
    pub fn mark(&mut self) -> bool {
        let may = *self != Self::NotCapable;
        if may {
            *self = Self::Met;
        }
        may
    }
}

/// A sample that has completely arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Its identity.
    pub meta: Meta,
    /// When the datagram that completed it was received, on the node's clock.
    pub received_ns: Time,
}

/// Counters that every endpoint keeps; the report shows those that are not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndpointStats {
    /// Datagrams that were refused because their form is wrong.
    pub malformed: u64,
    /// Datagrams that repeat something already had.
    pub duplicates: u64,
    /// Samples given up because a part of them never came.
    pub incomplete: u64,
    /// Samples or packets that came only by redundancy: parity, copies in other packets.
    pub recovered: u64,
    /// Packets that never came, where the transport numbers them.
    pub lost: u64,
    /// Reports and feedback of the peer that were understood.
    pub reports: u64,
    /// The last round trip that the transport measured, in nanoseconds.
    pub rtt_ns: Option<Time>,
    /// Smoothed interarrival jitter of the worst flow that arrives (RFC 3550), in nanoseconds.
    pub jitter_ns: Option<Time>,
    /// Share that the peer last reported as lost, in 1/256.
    pub peer_fraction_lost: Option<u8>,
    /// Samples that the sending side had no room for.
    pub refused: u64,
    /// Datagrams that carry again what was sent before.
    pub retransmits: u64,
    /// Datagrams, or samples sent one at a time, whose acknowledgement was waited for in vain.
    pub unanswered: u64,
    /// What the peer tells of single packets, where it does.
    pub told: Option<FeedbackStats>,
    /// What its security counted, where its channel is secured.
    pub security: Option<SecurityStats>,
    /// What became of its connections, where it has some.
    pub connections: Option<ConnectionStats>,
}

/// What the security of one side of a channel counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SecurityStats {
    /// Sessions whose keys both sides hold.
    pub sessions: u64,
    /// How long the first handshake took here, in nanoseconds.
    pub handshake_ns: Option<Time>,
    /// Changes of the key of what is sent and of what is received.
    pub key_changes: u64,
    /// Datagrams that did not verify.
    pub unverified: u64,
    /// Messages that were not sealed at all: datagrams, or the first one of a connection.
    pub unsealed: u64,
    /// Messages of handshakes of another key or another channel, or changed ones.
    pub refused_handshakes: u64,
    /// Datagrams that had been received before, or whose number is too old to know.
    pub replayed: u64,
    /// Datagrams that were dropped because there was no key to send them.
    pub unkeyed: u64,
    /// Bytes that sealing added to what was sent, and those of handshakes.
    pub added_bytes: u64,
    /// Connections that this side ended, since a part of them did not verify.
    pub refused_connections: u64,
    /// Handshakes that this side gave up, since they took too long.
    pub expired_handshakes: u64,
    /// Connections that the other side ended, and proved that it was the one.
    pub alerts: u64,
    /// Handshakes that were ended by an alert: nothing proves who sent it.
    pub unproven_alerts: u64,
}

/// What became of the connections of one side of a channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionStats {
    /// Connections that stood.
    pub connections: u64,
    /// Connections that stood and were lost before the end of the run.
    pub connections_lost: u64,
    /// When the first of them was lost.
    pub first_lost_ns: Option<Time>,
    /// Since when there has been none again; none: one stands, or none ever did.
    pub down_since_ns: Option<Time>,
    /// The longest time from the loss of one to the next.
    pub longest_down_ns: Time,
    /// Samples that were in lost ones, and not acknowledged.
    pub lost_in_flight: u64,
    /// Times that nothing was acknowledged for 200 ms or more, one that lasts to the end among them.
    pub stalls: u64,
    /// The longest of them.
    pub longest_stall_ns: Time,
    /// The one that lasts to the end; 0 if none does.
    pub silent_at_end_ns: Time,
    /// Times that data waited for the peer's window to open, with nothing in flight.
    pub window_waits: u64,
    /// Connections that others than the peer asked for.
    pub strangers: u64,
}

/// What a peer has told of single packets that were sent to it.
// [RFC 8888 §3.1]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FeedbackStats {
    /// Packets of which it was told whether they came.
    pub packets: u64,
    /// Those that did not.
    pub lost: u64,
    /// How long those that came had queued on the average, in nanoseconds: their delay above the least of 60 s.
    pub queue_ns: Option<Time>,
    /// The rate that congestion control makes of it for all flows of the sender, in bit/s, where there is one.
    pub allowed_bps: Option<u64>,
}

/// A sans-IO transport endpoint: one side of a channel.
pub trait Endpoint: Send {
    /// Something happened at `now` (node clock).
    fn handle_input(&mut self, now: Time, input: Input<'_>);
    /// The next thing to do, with its bytes in `buf` (cleared first); `None` when there is nothing left.
    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output>;
    /// When `Input::Timeout` is wanted.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
    /// Samples of a flow that it merges into a packet now.
    fn merging(&self) -> u16 {
        1
    }
    /// What the network lets it send of a flow, in bit/s; `None` where it does not know.
    fn allowance_bps(&self, _flow: FlowId) -> Option<f64> {
        None
    }
    /// What was refused or given up so far.
    fn stats(&self) -> EndpointStats {
        EndpointStats::default()
    }
    /// What went wrong in its own code, if anything did.
    fn failure(&self) -> Option<String> {
        None
    }
}
