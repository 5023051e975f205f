//! UDP sockets with kernel receive stamps and counted drops.

#![expect(unsafe_code, reason = "stamps and code points go by control messages of the kernel")]

use super::clock::RunClock;
use std::{
    io,
    mem::{size_of, zeroed},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::fd::{AsRawFd, RawFd},
};
use tcps_core::{
    endpoint::Ecn,
    time::{Time, SECOND},
};
use tcps_plan::RunError;

const RECEIVE_BUFFER: i32 = 4 << 20;
/// Largest datagram.
pub const MAX_DATAGRAM: usize = 65_536;

/// A non-blocking UDP socket.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    /// Code point and mark of what is sent, as in its IP header.
    tos: u8,
    /// Datagrams that the kernel dropped here for want of room.
    drops: u32,
    /// Datagrams that came back because nobody listens where they went, if it hears of them.
    refused: u64,
}

/// A received datagram: its length, its sender, and when the kernel had it (CLOCK_REALTIME, if it says so).
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Bytes.
    pub len: usize,
    /// Sender.
    pub from: SocketAddr,
    /// Kernel stamp.
    pub stamp_ns: Option<Time>,
    /// Differentiated services code point of its IP header.
    pub dscp: u8,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
}

impl Socket {
    /// Binds to a free port of an address.
    pub fn bind(ip: IpAddr) -> Result<Self, RunError> {
        Self::bind_to((ip, 0).into())
    }

    /// Binds to an address and port.
    pub fn bind_to(address: SocketAddr) -> Result<Self, RunError> {
        let fail = |e: io::Error| RunError::system(format!("no UDP socket on {address}"), e);
        let socket = UdpSocket::bind(address).map_err(fail)?;
        Self::over(socket).map_err(fail)
    }

    /// Over a socket that is bound already.
    pub fn over(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let ip = socket.local_addr()?.ip();
        let s = Self { socket, tos: 0, drops: 0, refused: 0 };
        let (level, option) = match ip {
            IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVTOS),
            IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
        };
        s.set(level, option, 1);
        for (option, value) in [
            (libc::SO_TIMESTAMPNS, 1),
            (libc::SO_RXQ_OVFL, 1),
            (libc::SO_RCVBUF, RECEIVE_BUFFER),
            (libc::SO_RCVBUFFORCE, RECEIVE_BUFFER),
        ] {
            // Without an option the run goes on: no stamp means the loop's own time, and that is reported.
            s.set(libc::SOL_SOCKET, option, value);
        }
        Ok(s)
    }

    fn set(&self, level: i32, option: i32, value: i32) -> bool {
        let p: *const i32 = &value;
        // SAFETY: the pointer and length describe one i32 that outlives the call.
        unsafe { libc::setsockopt(self.fd(), level, option, p.cast(), size_of::<i32>() as u32) == 0 }
    }

    /// Its address.
    pub fn address(&self) -> Result<SocketAddr, RunError> {
        self.socket.local_addr().map_err(|e| RunError::system("socket without address", e))
    }

    /// Errors tell from now on of datagrams that come back because nobody listens where they went.
    pub fn report_refusals(&self) {
        match self.socket.local_addr() {
            Ok(SocketAddr::V4(_)) => self.set(libc::IPPROTO_IP, libc::IP_RECVERR, 1),
            _ => self.set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
        };
    }

    /// Its descriptor, for polling.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends with a code point and a mark in the byte of the IP header for both; a full buffer or an absent peer loses the datagram, as a network would. Tells
    /// whether it went.
    pub fn send(&mut self, bytes: &[u8], to: SocketAddr, tos: u8) -> bool {
        if tos != self.tos {
            // [RFC 3168 §5]
            let (level, option) = match to {
                SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
                SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            };
            self.set(level, option, i32::from(tos));
            self.tos = tos;
        }
        match self.socket.send_to(bytes, to) {
            // What came back is told of one before; this one goes now.
            Err(e) if self.came_back(&e) => self.socket.send_to(bytes, to).is_ok(),
            sent => sent.is_ok(),
        }
    }

    /// Takes what came back off the queue of errors, which would wake the loop for ever; whether anything did.
    fn came_back(&mut self, why: &io::Error) -> bool {
        if why.kind() == io::ErrorKind::WouldBlock {
            return false;
        }
        let (mut back, flags) = (0, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT);
        // SAFETY: nothing is written into a buffer of length 0.
        while unsafe { libc::recv(self.fd(), std::ptr::null_mut(), 0, flags) } >= 0 {
            back += 1;
        }
        self.refused += if why.kind() == io::ErrorKind::ConnectionRefused { back } else { 0 };
        back > 0
    }

    /// Datagrams that came back because nobody listens where they went.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Datagrams that the kernel dropped here.
    pub fn drops(&self) -> u32 {
        self.drops
    }

    /// The next datagram, if one is there.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<Received> {
        #[repr(align(8))]
        struct Control([u8; 128]);
        let mut control = Control([0; 128]);
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: all-zero bytes are valid for these plain C structures.
        let (mut name, mut message): (libc::sockaddr_storage, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len();
        // SAFETY: every pointer in `message` is to a live local buffer with its right length.
        let len = unsafe { libc::recvmsg(self.fd(), &raw mut message, libc::MSG_DONTWAIT) };
        if len < 0 {
            self.came_back(&io::Error::last_os_error());
            return None;
        }
        let (stamp_ns, tos) = self.read_control(&message);
        // The code point is the upper six bits of the byte. [RFC 2474 §3]
        let (dscp, ecn) = (tos >> 2, Ecn::of(tos));
        Some(Received { len: len as usize, from: address(&name)?, stamp_ns, dscp, ecn })
    }

    /// The next datagram, and the run time at which the kernel had it: now, where it does not say.
    pub fn receive_at(&mut self, clock: &mut RunClock, buffer: &mut [u8]) -> Option<(Received, Time)> {
        let got = self.receive(buffer)?;
        let now = clock.now();
        Some((got, got.stamp_ns.map_or(now, |stamp| clock.of_stamp(stamp, now))))
    }

    /// Stamp of what was received, and the byte of its IP header with code point and mark.
    fn read_control(&mut self, message: &libc::msghdr) -> (Option<Time>, u8) {
        let (mut stamp, mut tos) = (None, 0);
        // SAFETY: the kernel has filled the control buffer; the CMSG macros stay inside it.
        unsafe {
            let mut c = libc::CMSG_FIRSTHDR(message);
            while !c.is_null() {
                let data = libc::CMSG_DATA(c);
                match ((*c).cmsg_level, (*c).cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let t: libc::timespec = data.cast::<libc::timespec>().read_unaligned();
                        stamp = Some(t.tv_sec * SECOND + t.tv_nsec);
                    }
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => self.drops = data.cast::<u32>().read_unaligned(),
                    (libc::IPPROTO_IP, libc::IP_TOS) => tos = data.read(),
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        tos = data.cast::<i32>().read_unaligned() as u8;
                    }
                    _ => {}
                }
                c = libc::CMSG_NXTHDR(message, c);
            }
        }
        (stamp, tos)
    }
}

fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let p: *const libc::sockaddr_storage = name;
    // SAFETY: the family tells which of the two structures the kernel wrote; both fit in a sockaddr_storage.
    unsafe {
        match name.ss_family as i32 {
            libc::AF_INET => {
                let a = &*p.cast::<libc::sockaddr_in>();
                Some((Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr)), u16::from_be(a.sin_port)).into())
            }
            libc::AF_INET6 => {
                let a = &*p.cast::<libc::sockaddr_in6>();
                Some((Ipv6Addr::from(a.sin6_addr.s6_addr), u16::from_be(a.sin6_port)).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ip: IpAddr) {
        let (mut a, mut b) = match (Socket::bind(ip), Socket::bind(ip)) {
            (Ok(a), Ok(b)) => (a, b),
            _ if ip.is_ipv6() => return eprintln!("skipped: no IPv6 loopback here"),
            other => panic!("{other:?}"),
        };
        assert!(a.send(b"hand", b.address().unwrap(), Ecn::Met.tos(46)));
        let mut buffer = [0; 64];
        let got = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_micros(100));
            b.receive(&mut buffer)
        });
        let got = got.expect("a datagram");
        assert_eq!((&buffer[..got.len], got.from), (&b"hand"[..], a.address().unwrap()));
        // [RFC 2474 §3] [RFC 3168 §5]
        assert_eq!((got.dscp, got.ecn), (46, Ecn::Met));
        assert!(got.stamp_ns.is_some_and(|t| t > 1_600_000_000 * SECOND));
    }

    #[test]
    fn datagrams_carry_a_kernel_stamp() {
        round(Ipv4Addr::LOCALHOST.into());
        round(Ipv6Addr::LOCALHOST.into());
    }
}
