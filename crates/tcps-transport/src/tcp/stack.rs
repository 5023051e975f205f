//! One side of one TCP connection as a stream of bytes: a smoltcp interface with one socket, driven by our clock.
//!
//! ```text
//!  write ──► send buffer ──► segments ──► pop ──► IP packets
//!  read ◄── receive buffer ◄── segments ◄── receive ◄── IP packets
//! ```
//! smoltcp counts microseconds: `now` is rounded down to them and a deadline up, so that a deadline has come when
//! its moment has (DECISIONS 16). Initial sequence numbers come from the seed.

use super::wire::{Wire, PORT};
use crate::registry::Side;
use smoltcp::{
    iface::{Config, Interface, SocketHandle, SocketSet},
    socket::tcp::{CongestionControl, Socket, SocketBuffer, State},
    time::{Duration, Instant},
    wire::{HardwareAddress, IpCidr, IpListenEndpoint, Ipv4Address},
};
use tcps_core::time::{Time, US};

/// Bytes below IP on the wire: Ethernet with its preamble (PROTOCOLS 1.2).
pub const LINK_BYTES: u32 = 26;
/// Room before time 0 on the stack's clock, which must not be negative.
const BEGIN_US: i64 = 1_000_000;

/// Settings of a connection's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How the congestion window moves.
    pub congestion: Congestion,
    /// Whether small segments go out at once (no Nagle algorithm).
    pub no_delay: bool,
    /// Bytes that the sender keeps until they are acknowledged.
    pub send_buffer_bytes: usize,
    /// Bytes that the receiver keeps until they are read: the largest window that it offers.
    pub receive_buffer_bytes: usize,
    /// The most bytes of a packet, IP header included.
    pub mtu_bytes: usize,
}

/// Congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// NewReno (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// None: the peer's window alone limits.
    None,
}

/// One side of a connection.
pub struct Stack {
    side: Side,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    wire: Wire,
    /// Time at which the stack's clock shows `BEGIN_US`: that of its first call.
    base_ns: Option<Time>,
    wake_ns: Option<Time>,
}

impl Stack {
    /// A side that neither listens nor connects yet.
    pub fn new(settings: &Settings, side: Side, seed: u64) -> Self {
        let mut wire = Wire::new(settings.mtu_bytes);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            // An interface has room for one address at least.
            let _ = addresses.push(IpCidr::new(address(side).into(), 24));
        });
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(socket(settings));
        Self { side, interface, sockets, handle, wire, base_ns: None, wake_ns: None }
    }

    /// Asks the other side for a connection; what was open before is gone.
    // [RFC 9293 §3.5]
    pub fn connect(&mut self, now: Time) {
        self.abort(now);
        self.wire.leaving.forget_numbers();
        let remote = (address(self.side.other()), PORT);
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        // A closed socket with a port and an address can connect.
        let _ = socket.connect(self.interface.context(), remote, PORT);
        self.poll(now);
    }

    /// Waits for a connection; what was open before is gone.
    pub fn listen(&mut self, now: Time) {
        self.abort(now);
        self.wire.leaving.forget_numbers();
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        // A closed socket with a port can listen.
        let _ = socket.listen(IpListenEndpoint { addr: None, port: PORT });
        self.poll(now);
    }

    /// Sends no more; the connection ends when both sides have said so.
    pub fn close(&mut self, now: Time) {
        self.socket_mut().close();
        self.poll(now);
    }

    /// Ends the connection at once; the other side is told, if there is one.
    pub fn abort(&mut self, now: Time) {
        self.socket_mut().abort();
        self.poll(now);
    }

    /// Ends the connection at once without a word to the other side.
    pub fn forget(&mut self, now: Time) {
        self.abort(now);
        self.wire.leaving.clear();
    }

    /// A packet has arrived. False if it is none of this connection.
    pub fn receive(&mut self, now: Time, packet: &[u8]) -> bool {
        let known = self.wire.admit(packet, address(self.side.other()), address(self.side));
        if known {
            self.poll(now);
        }
        known
    }

    /// Does what is due at `now`.
    pub fn poll(&mut self, now: Time) {
        let base_ns = *self.base_ns.get_or_insert(now);
        let at_us = now.saturating_sub(base_ns).div_euclid(US).saturating_add(BEGIN_US).max(BEGIN_US);
        let at = Instant::from_micros(at_us);
        self.interface.poll(at, &mut self.wire, &mut self.sockets);
        self.wake_ns = self.interface.poll_at(at, &self.sockets).map(|due| {
            // Everything due has been done: what is left is later, at the earliest at the next microsecond.
            let due_us = due.total_micros().max(at_us + 1);
            base_ns.saturating_add((due_us - BEGIN_US).saturating_mul(US))
        });
    }

    /// When `poll` is wanted.
    pub fn wake_ns(&self) -> Option<Time> {
        self.wake_ns
    }

    /// Appends the oldest packet that is to be sent to `out`; false if there is none.
    pub fn pop(&mut self, out: &mut Vec<u8>) -> bool {
        self.wire.leaving.pop(out)
    }

    /// Puts bytes into the send buffer, as many as fit; how many these were. They leave at the next `poll`.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.socket_mut().send_slice(bytes).unwrap_or(0)
    }

    /// Hands out what has arrived in order, until there is nothing more.
    pub fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let mut more = true;
        while more {
            let got = self.socket_mut().recv(|bytes| {
                take(bytes);
                (bytes.len(), bytes.len())
            });
            more = got.is_ok_and(|n| n > 0);
        }
    }

    /// Whether bytes can be written and will be sent.
    pub fn is_established(&self) -> bool {
        self.socket().may_send()
    }

    /// Whether the other side has said that it sends no more, and everything that it sent has been read.
    pub fn is_over(&self) -> bool {
        let socket = self.socket();
        !socket.may_recv() && !matches!(socket.state(), State::Listen | State::SynSent | State::SynReceived)
    }

    /// Whether there is no connection, and none in the making.
    pub fn is_closed(&self) -> bool {
        !self.socket().is_open()
    }

    /// Segments sent that repeat what was sent before.
    pub fn retransmits(&self) -> u64 {
        self.wire.leaving.retransmits()
    }

    fn socket(&self) -> &Socket<'static> {
        self.sockets.get(self.handle)
    }

    fn socket_mut(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }
}

impl std::fmt::Debug for Stack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stack").field("side", &self.side).field("state", &self.socket().state()).finish()
    }
}

fn address(side: Side) -> Ipv4Address {
    match side {
        Side::A => Ipv4Address::new(192, 0, 2, 1),
        Side::B => Ipv4Address::new(192, 0, 2, 2),
    }
}

fn socket(settings: &Settings) -> Socket<'static> {
    let buffer = |bytes| SocketBuffer::new(vec![0; bytes]);
    let mut socket = Socket::new(buffer(settings.receive_buffer_bytes), buffer(settings.send_buffer_bytes));
    socket.set_nagle_enabled(!settings.no_delay);
    socket.set_ack_delay(Some(Duration::from_millis(10)));
    socket.set_congestion_control(match settings.congestion {
        Congestion::Reno => CongestionControl::Reno,
        Congestion::Cubic => CongestionControl::Cubic,
        Congestion::None => CongestionControl::None,
    });
    socket
}
