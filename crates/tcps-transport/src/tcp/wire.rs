//! What a TCP stack takes from the wire and puts on it: whole IPv4 packets, one at a time in, a queue of them out.

use smoltcp::{
    phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken},
    time::Instant,
    wire::{IpAddress, IpProtocol, Ipv4Address, Ipv4Packet, TcpPacket, TcpSeqNumber},
};
use std::collections::VecDeque;

/// The port at both sides of a connection.
pub(super) const PORT: u16 = 7;

/// The device of a stack.
#[derive(Debug)]
pub(super) struct Wire {
    mtu_bytes: usize,
    arrived: Vec<u8>,
    waits: bool,
    pub(super) leaving: Leaving,
}

/// Packets to be sent.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    packets: VecDeque<Vec<u8>>,
    /// Buffers that are used again.
    pool: Vec<Vec<u8>>,
    /// The number behind everything sent on this connection.
    sent_to: Option<TcpSeqNumber>,
    retransmits: u64,
}

impl Wire {
    /// Packets of at most `mtu_bytes`, IP header included.
    pub(super) fn new(mtu_bytes: usize) -> Self {
        Self { mtu_bytes, arrived: Vec::new(), waits: false, leaving: Leaving::default() }
    }

    /// Takes a packet that a peer would send: IPv4 in one piece, TCP, right addresses, ports and checksums. False
    /// if it is something else.
    pub(super) fn admit(&mut self, packet: &[u8], from: Ipv4Address, to: Ipv4Address) -> bool {
        if !is_segment(packet, from, to) {
            return false;
        }
        self.arrived.clear();
        self.arrived.extend_from_slice(packet);
        self.waits = true;
        true
    }
}

impl Leaving {
    /// Appends the oldest packet to `out`; false if there is none.
    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(packet) = self.packets.pop_front() else { return false };
        out.extend_from_slice(&packet);
        self.pool.push(packet);
        true
    }

    /// Drops what is to be sent.
    pub(super) fn clear(&mut self) {
        self.pool.extend(self.packets.drain(..));
    }

    /// Segments that repeat what was sent before.
    pub(super) fn retransmits(&self) -> u64 {
        self.retransmits
    }

    /// A new connection has numbers of its own.
    pub(super) fn forget_numbers(&mut self) {
        self.sent_to = None;
    }

    fn push(&mut self, packet: Vec<u8>) {
        if let Some((first, behind)) = numbers(&packet) {
            let sent_to = self.sent_to.unwrap_or(first);
            self.retransmits += u64::from(first < sent_to);
            self.sent_to = Some(if behind > sent_to { behind } else { sent_to });
        }
        self.packets.push_back(packet);
    }
}

// [RFC 9293 §3.1]
fn is_segment(packet: &[u8], from: Ipv4Address, to: Ipv4Address) -> bool {
    let Ok(ip) = Ipv4Packet::new_checked(packet) else { return false };
    let whole = ip.version() == 4 && !ip.more_frags() && ip.frag_offset() == 0;
    let ours = ip.src_addr() == from && ip.dst_addr() == to && ip.next_header() == IpProtocol::Tcp;
    if !whole || !ours || !ip.verify_checksum() {
        return false;
    }
    let Ok(tcp) = TcpPacket::new_checked(ip.payload()) else { return false };
    let ports = tcp.src_port() == PORT && tcp.dst_port() == PORT;
    ports && tcp.verify_checksum(&IpAddress::Ipv4(from), &IpAddress::Ipv4(to))
}

/// The numbers that a segment with content takes: its first, and the one behind it.
fn numbers(packet: &[u8]) -> Option<(TcpSeqNumber, TcpSeqNumber)> {
    let ip = Ipv4Packet::new_checked(packet).ok()?;
    let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
    let length = tcp.segment_len();
    (length > 0).then(|| (tcp.seq_number(), tcp.seq_number() + length))
}

impl Device for Wire {
    type RxToken<'a> = Packet<'a>;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Packet<'_>, Room<'_>)> {
        std::mem::take(&mut self.waits).then(|| (Packet(&self.arrived), Room(&mut self.leaving)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Room<'_>> {
        Some(Room(&mut self.leaving))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu_bytes;
        // What arrives has been checked by `admit`.
        capabilities.checksum.ipv4 = Checksum::Tx;
        capabilities.checksum.tcp = Checksum::Tx;
        capabilities
    }
}

/// A packet that has arrived.
pub(super) struct Packet<'a>(&'a [u8]);

impl RxToken for Packet<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

/// Room for a packet that is to be sent.
pub(super) struct Room<'a>(&'a mut Leaving);

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut packet = self.0.pool.pop().unwrap_or_default();
        packet.clear();
        packet.resize(length, 0);
        let result = write(&mut packet);
        self.0.push(packet);
        result
    }
}
