//! Sockets of the kernel's TCP: made with their settings, and what the kernel tells of a connection.

#![expect(unsafe_code, reason = "what the kernel knows of a connection has no safe function")]

use nix::{
    errno::Errno,
    sys::socket::{
        bind, connect, setsockopt, socket, sockopt, AddressFamily, SockFlag, SockType, SockaddrStorage,
    },
};
use std::{
    ffi::OsString,
    fs, io,
    mem::{size_of, zeroed},
    net::{IpAddr, SocketAddr, TcpStream},
    os::fd::{AsRawFd, OwnedFd},
};
use tcps_core::time::{Time, MS};
use tcps_plan::RunError;
use tcps_transport::kernel_tcp::Settings;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// What the kernel tells of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct TcpInfo {
    /// Segments sent again.
    pub retransmits: u64,
    /// Smoothed round trip.
    pub rtt_ns: Time,
    /// Segments that are not acknowledged.
    pub unacknowledged: u32,
    /// Time since the newest acknowledgement.
    pub silent_ns: Time,
}

/// A socket with an address and a channel's settings; an accepted connection inherits those of its listener.
pub(super) fn bound(address: SocketAddr, settings: &Settings) -> Result<OwnedFd, RunError> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fail = |e: Errno| RunError::system(format!("no TCP socket on {address}"), e);
    let made = socket(family, SockType::Stream, flags, None).map_err(fail)?;
    set(&made, settings).map_err(fail)?;
    if let Some(name) = &settings.congestion {
        setsockopt(&made, sockopt::TcpCongestion, &OsString::from(name)).map_err(|e| no_control(name, e))?;
    }
    bind(made.as_raw_fd(), &SockaddrStorage::from(address)).map_err(fail)?;
    Ok(made)
}

fn set(made: &OwnedFd, settings: &Settings) -> Result<(), Errno> {
    let give_up_ms = (settings.give_up_ns / MS) as u32;
    setsockopt(made, sockopt::ReuseAddr, &true)?;
    setsockopt(made, sockopt::TcpNoDelay, &settings.no_delay)?;
    // [RFC 5482 §3]
    setsockopt(made, sockopt::TcpUserTimeout, &give_up_ms)?;
    // Closing resets the connection: nothing of it is left that could hold its ports.
    setsockopt(made, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 })?;
    if let Some(bytes) = settings.send_buffer_bytes {
        setsockopt(made, sockopt::SndBuf, &(bytes as usize))?;
    }
    if let Some(bytes) = settings.receive_buffer_bytes {
        setsockopt(made, sockopt::RcvBuf, &(bytes as usize))?;
    }
    Ok(())
}

fn no_control(name: &str, error: Errno) -> RunError {
    let there = fs::read_to_string(AVAILABLE).unwrap_or_default();
    RunError::config(format!(
        "transport kernel-tcp: congestion is \"{name}\" ({error}); allowed: what this kernel has ({}), or modprobe \
         tcp_{name}",
        there.split_whitespace().collect::<Vec<_>>().join(", ")
    ))
}

/// Asks for a connection, without waiting for it.
pub(super) fn asked(made: OwnedFd, peer: SocketAddr) -> io::Result<TcpStream> {
    match connect(made.as_raw_fd(), &SockaddrStorage::from(peer)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(made)),
        Err(e) => Err(e.into()),
    }
}

/// Sets the code point of what is sent.
pub(super) fn set_dscp(connection: &TcpStream, peer: IpAddr, dscp: u8) {
    // The code point is the upper six bits of the field in the IP header. [RFC 2474 §3]
    let field = i32::from(dscp) << 2;
    // A connection that has gone meanwhile is noticed when it is read.
    let _ = match peer {
        IpAddr::V4(_) => setsockopt(connection, sockopt::Ipv4Tos, &field),
        IpAddr::V6(_) => setsockopt(connection, sockopt::Ipv6TClass, &field),
    };
}

/// What the kernel tells of a connection; nothing of one that has gone.
pub(super) fn told(connection: &TcpStream) -> Option<TcpInfo> {
    // SAFETY: all-zero bytes are valid for this plain C structure, and the kernel writes at most `length` of it.
    let info = unsafe {
        let mut info: libc::tcp_info = zeroed();
        let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
        let at = (&raw mut info).cast();
        let fd = connection.as_raw_fd();
        (libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut length) == 0).then_some(info)
    }?;
    Some(TcpInfo {
        retransmits: u64::from(info.tcpi_total_retrans),
        rtt_ns: Time::from(info.tcpi_rtt) * 1_000,
        unacknowledged: info.tcpi_unacked,
        silent_ns: Time::from(info.tcpi_last_ack_recv) * MS,
    })
}

/// Bytes that the kernel has taken and that the other side's has not acknowledged, also of a connection that is lost.
pub(super) fn held_bytes(connection: &TcpStream) -> Option<u32> {
    let mut held: libc::c_int = 0;
    // SAFETY: the kernel writes one number there, and the descriptor is open.
    let done = unsafe { libc::ioctl(connection.as_raw_fd(), libc::TIOCOUTQ, &raw mut held) == 0 };
    u32::try_from(held).ok().filter(|_| done)
}
