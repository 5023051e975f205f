//! The emulator: packets from ports into a network on the machine's clock, and out again when the network says so.
//!
//! ```text
//!  port ─┐                                                      ┌─► port
//!  port ─┴─► engine ─► tcps-net, or another program's ─► engine ─┴─► port
//!               └── an account for each way: set against delivered ──┘
//! ```
//! Ports are the UDP gates of nodes (`gates`), TUN and TAP devices (`devices`, `wires`), and the doors of a proxy: UDP
//! (`udp`), or TCP, whose connections end here and therefore have lines of their own (`tcp`). Whoever runs the engine is
//! its host: the network of a scenario between real nodes, or a proxy between a user's own programs. How far the
//! moment that the network set and the delivery differ is measured for every packet.

mod account;
mod devices;
mod doors;
mod engine;
mod flows;
mod gates;
mod layers;
mod pipe;
mod rates;
mod repairs;
mod services;
mod tape;
mod tcp;
mod udp;
mod wires;

pub use account::{Account, Accounts, Delivery, Path};
pub use devices::{Across, Devices, Nodes};
pub use doors::{flow, opposite, unheard, DoorKind, DoorPlan, Row, FAR, NEAR};
pub use engine::{Between, Ended, Engine, EngineHost, Pace, Transit};
pub use flows::Flows;
pub use gates::{GateAddress, Gates, Listeners};
pub use layers::Layers;
pub use repairs::Bytes;
pub use services::Service;
pub use tape::Tape;
pub use tcp::{Lines, Note, Segment, TcpDoor};
pub use udp::UdpDoors;
pub use wires::{Leads, WireSpec, Wires};

use crate::os::clock::RunClock;
use std::{
    os::fd::RawFd,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tcps_core::{
    endpoint::Ecn,
    ids::{ChannelId, FlowId, NodeId, VertexId},
    time::Time,
};
use tcps_wire::pcapng::Seen;

/// Where packets come in and go out. Ports are numbered as their descriptors.
pub trait Ports: Send {
    /// What can be waited for.
    fn descriptors(&self) -> Vec<RawFd>;
    /// Whether the descriptors are others than when this was last asked; also the moment to forget idle clients.
    fn changed(&mut self, _now: Time) -> bool {
        false
    }
    /// The next packet at a port, with its bytes in the buffer.
    fn receive(&mut self, port: usize, clock: &mut RunClock, buffer: &mut [u8]) -> Taken;
    /// Bytes of a datagram without headers.
    fn payload_bytes(&self, datagram: &Datagram) -> usize {
        datagram.len
    }
    /// Marks a whole packet that met congestion in the network; bytes of ports that carry payloads stay as they are.
    fn mark(&self, _bytes: &mut [u8]) {}
    /// Sends a packet that came out of the network; tells whether it went.
    fn deliver(&mut self, datagram: &Datagram, bytes: &[u8]) -> bool;
    /// Adds a packet to a capture: where it came in, or where it goes out.
    fn tape(&self, _tape: &mut Tape, _at: Time, _entered: &Datagram, _bytes: &[u8], _seen: Seen) {}
    /// What says when packets came in.
    fn stamps(&self) -> &'static str;
    /// What went wrong so far.
    fn troubles(&self) -> Troubles;
    /// The services that packets are of, where they are told apart; the first has the number 1.
    fn services(&self) -> &[Service] {
        &[]
    }
    /// Clients that are known.
    fn clients(&self) -> usize {
        1
    }
}

/// What a port gives.
pub enum Taken {
    /// Nothing more at the moment.
    Empty,
    /// A packet that is not for the network.
    Stranger,
    /// One that is.
    Packet(Datagram),
}

/// The flows that a datagram has samples of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Carries {
    /// None, as far as is known.
    #[default]
    Nothing,
    /// One.
    Flow(FlowId),
    /// Those that a node sends through a channel; of sound and picture those that are in it.
    Channel(ChannelId, NodeId, [bool; 2]),
}

/// A datagram that comes in, as ports read it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Datagram {
    /// Door of a proxy, of several between the same ends.
    pub door: u16,
    /// Number of the service that it is of, where those are told apart; 0: none.
    pub service: u16,
    /// Vertex that it comes from.
    pub from: VertexId,
    /// Vertex that it goes to.
    pub to: VertexId,
    /// The port that it leaves through, or the client that it is of.
    pub exit: u32,
    /// Run time.
    pub arrived: Time,
    /// Bytes of the buffer that are handed on.
    pub len: usize,
    /// Its channel between nodes, if it is of one.
    pub channel: Option<ChannelId>,
    /// Flow.
    pub class: u16,
    /// Sample.
    pub index: u32,
    /// Differentiated services code point.
    pub dscp: u8,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
    /// Size that links count.
    pub wire_bytes: u32,
    /// Size that rates are told of.
    pub rated_bytes: u32,
    /// The flows of a plan that it has samples of.
    pub carries: Carries,
    /// The bytes of a TCP segment, where whole packets pass between programs.
    pub segment: Option<Bytes>,
}

/// What ports count.
#[derive(Debug, Clone, Default)]
pub struct Troubles {
    /// Datagrams that the kernel dropped on the way in.
    pub dropped: u64,
    /// Packets that are for nobody.
    pub strangers: u64,
    /// Packets whose port cannot be read, so that no rule is theirs.
    pub unread: u64,
    /// Datagrams of each UDP door that came back, because nobody listens at its target.
    pub refused: Vec<u64>,
}

/// Locks, also after a thread that held the lock died: the data is plain counts.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
