//! TUN and TAP devices: ports through which whole packets pass unchanged, whatever they carry.
//!
//! Time to live and code point stay as the sender set them. The kernel puts no stamp on a packet of a device: it enters
//! at the moment right after it was read, so the time in which the engine wakes up adds to its delay and is not part of
//! set against delivered.

use super::{
    flow, opposite, services::Services, Bytes, Carries, Datagram, Flows, Ports, Service, Taken, Tape,
    Troubles,
};
use crate::{addresses, os::clock::RunClock};
use std::{
    fs::File,
    hash::{DefaultHasher, Hash, Hasher},
    io::{Read, Write},
    os::fd::{AsRawFd, RawFd},
};
use tcps_core::{
    ids::{NodeId, VertexId},
    size::LINK_BYTES,
    time::Time,
};
use tcps_wire::{
    ip::{self, Transport},
    pcapng::Seen,
};

/// What packets of devices are, and which device each goes to.
pub trait Sort: Send {
    /// A packet that was read from a device; nothing if it is for nobody.
    fn look(&mut self, device: usize, bytes: &[u8]) -> Option<Datagram>;
    /// Packets whose port could not be read.
    fn unread(&self) -> u64;
    /// The services that it tells apart.
    fn services(&self) -> &[Service] {
        &[]
    }
    /// Bytes of a packet without headers.
    fn payload_bytes(&self, datagram: &Datagram) -> usize {
        datagram.len
    }
    /// Bytes before the IP packet.
    fn before_ip(&self) -> usize {
        0
    }
}

/// Devices; the number of a port is that of its device. Without any, a program behind the emulator holds them itself, and
/// packets never come here.
pub struct Devices<S> {
    files: Vec<File>,
    sort: S,
    strangers: u64,
}

impl<S> Devices<S> {
    /// Between devices.
    pub fn new(files: Vec<File>, sort: S) -> Self {
        Self { files, sort, strangers: 0 }
    }
}

impl<S: Sort> Ports for Devices<S> {
    fn descriptors(&self) -> Vec<RawFd> {
        self.files.iter().map(|f| f.as_raw_fd()).collect()
    }

    fn receive(&mut self, port: usize, clock: &mut RunClock, buffer: &mut [u8]) -> Taken {
        let Ok(len) = self.files[port].read(buffer) else { return Taken::Empty };
        let arrived = clock.now();
        match self.sort.look(port, &buffer[..len]) {
            Some(datagram) => Taken::Packet(Datagram { arrived, len, ..datagram }),
            None => {
                self.strangers += 1;
                Taken::Stranger
            }
        }
    }

    fn payload_bytes(&self, datagram: &Datagram) -> usize {
        self.sort.payload_bytes(datagram)
    }

    fn mark(&self, bytes: &mut [u8]) {
        ip::mark(bytes.get_mut(self.sort.before_ip()..).unwrap_or_default());
    }

    fn deliver(&mut self, e: &Datagram, bytes: &[u8]) -> bool {
        self.files[e.exit as usize].write(bytes).is_ok_and(|n| n == bytes.len())
    }

    fn tape(&self, tape: &mut Tape, at: Time, e: &Datagram, bytes: &[u8], seen: Seen) {
        tape.raw(at, if seen == Seen::Coming { e.from } else { e.to }, bytes, seen);
    }

    fn stamps(&self) -> &'static str {
        "after the read"
    }

    fn services(&self) -> &[Service] {
        self.sort.services()
    }

    fn troubles(&self) -> Troubles {
        Troubles { strangers: self.strangers, unread: self.sort.unread(), ..Troubles::default() }
    }
}

/// TUN devices of nodes in network namespaces, one a node: a packet goes to the node that has its address.
pub struct Nodes<'a> {
    nodes: usize,
    flows: Flows<'a>,
}

impl<'a> Nodes<'a> {
    /// Of so many nodes.
    pub fn new(nodes: usize, flows: Flows<'a>) -> Self {
        Self { nodes, flows }
    }
}

impl Sort for Nodes<'_> {
    fn look(&mut self, device: usize, bytes: &[u8]) -> Option<Datagram> {
        let packet = ip::Packet::new_checked(bytes).ok()?;
        let from = NodeId(device as u16);
        let to =
            addresses::node_at(packet.destination()).filter(|to| to.index() < self.nodes && *to != from)?;
        let datagram = self.flows.of_packet([from, to], &packet, bytes, bytes.len() as u32 + LINK_BYTES);
        Some(Datagram { from: from.into(), to: to.into(), exit: to.0.into(), ..datagram })
    }

    fn unread(&self) -> u64 {
        self.flows.unread
    }
}

/// The bytes of a packet's TCP segment, if it is one.
fn segment(packet: &ip::Packet<'_>) -> Option<Bytes> {
    let (Transport::Tcp, ports) = packet.ports()? else { return None };
    let tcp = packet.tcp()?;
    let mut of = DefaultHasher::new();
    (packet.source(), packet.destination(), ports).hash(&mut of);
    Some(Bytes {
        stream: of.finish(),
        first: tcp.sequence,
        end: tcp.sequence.wrapping_add(tcp.length),
        opens: tcp.opens,
        resets: tcp.resets,
    })
}

/// The TUN devices of two network namespaces, near and far: whatever IP packet comes out of one goes into the other,
/// multicast too.
#[derive(Default)]
pub struct Across {
    unread: u64,
    services: Services,
    /// Packets that came from each side.
    came: [u32; 2],
}

impl Sort for Across {
    fn look(&mut self, device: usize, bytes: &[u8]) -> Option<Datagram> {
        let packet = ip::Packet::new_checked(bytes).ok()?;
        self.unread += u64::from(packet.hides_port());
        let from = VertexId(device as u16);
        let (dscp, ecn, rated_bytes) = (packet.dscp(), packet.ecn(), packet.payload_bytes() as u32);
        let (to, flow, wire_bytes) = (opposite(from), flow(0, from), bytes.len() as u32 + LINK_BYTES);
        let came = &mut self.came[usize::from(from)];
        let index = std::mem::replace(came, came.wrapping_add(1));
        Some(Datagram {
            from,
            to,
            service: self.services.number(from, &packet),
            exit: to.0.into(),
            class: flow.0,
            index,
            carries: Carries::Flow(flow),
            dscp,
            ecn,
            wire_bytes,
            rated_bytes,
            segment: segment(&packet),
            ..Datagram::default()
        })
    }

    fn services(&self) -> &[Service] {
        self.services.all()
    }

    fn payload_bytes(&self, datagram: &Datagram) -> usize {
        datagram.rated_bytes as usize
    }

    fn unread(&self) -> u64 {
        self.unread
    }
}
