//! Packets of an engine as a capture: each where it came in and where it went out, on the wall clock.

use crate::os::{capture::Capture, clock::monotonic_ns};
use std::{
    net::{IpAddr, SocketAddr, SocketAddrV6},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};
use tcps_core::{ids::VertexId, time::Time};
use tcps_plan::RunError;
use tcps_wire::pcapng::{self, Seen};

/// A capture with one interface a side.
pub struct Tape {
    capture: Capture,
    /// Wall clock minus CLOCK_MONOTONIC.
    wall_ns: Time,
}

impl Tape {
    /// Begins a file; `raw` where whole IP packets pass.
    pub fn begin(path: &Path, raw: bool) -> Result<Self, RunError> {
        let mut blocks = Vec::new();
        pcapng::section_header(&mut blocks, concat!("tcpsbed ", env!("CARGO_PKG_VERSION")));
        let interface = if raw { pcapng::raw_interface } else { pcapng::interface };
        ["near", "far"].iter().for_each(|name| interface(&mut blocks, name));
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as Time);
        Ok(Self { capture: Capture::begin(path, &blocks)?, wall_ns: wall - monotonic_ns() })
    }

    /// A datagram that was seen at a side at this moment of CLOCK_MONOTONIC, with the byte of its code point and mark. One too long for IP is left out.
    pub fn datagram(
        &mut self,
        at: Time,
        side: VertexId,
        ends: (SocketAddr, SocketAddr),
        tos: u8,
        bytes: &[u8],
        seen: Seen,
    ) {
        let (time, path) = (at + self.wall_ns, path(ends.0, ends.1));
        self.capture.block(time, |out| {
            let _ = pcapng::packet(out, u32::from(side.0), time, &path, tos, bytes, seen);
        });
    }

    /// A whole IP packet that was seen at a side.
    pub fn raw(&mut self, at: Time, side: VertexId, bytes: &[u8], seen: Seen) {
        let time = at + self.wall_ns;
        self.capture.block(time, |out| pcapng::raw_packet(out, u32::from(side.0), time, bytes, seen));
    }

    /// Ends the file; what went wrong, in words.
    pub fn finish(self) -> Option<String> {
        self.capture.finish()
    }
}

fn path(source: SocketAddr, target: SocketAddr) -> pcapng::Path {
    if let (SocketAddr::V4(source), SocketAddr::V4(target)) = (source, target) {
        return pcapng::Path::V4 { source, target };
    }
    pcapng::Path::V6 { source: v6(source), target: v6(target) }
}

/// Addresses of both kinds in one packet can only be told as IPv6.
fn v6(address: SocketAddr) -> SocketAddrV6 {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    SocketAddrV6::new(ip, address.port(), 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddrV4;

    #[test]
    fn addresses_of_both_kinds_are_told_as_ipv6() {
        let (a, b): (SocketAddr, SocketAddr) = ("127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap());
        let want = |s: &str| s.parse::<SocketAddrV6>().unwrap();
        let both = pcapng::Path::V6 { source: want("[::ffff:127.0.0.1]:1"), target: want("[::1]:2") };
        assert_eq!(path(a, b), both);
        let (SocketAddr::V4(source), true) = (a, b.is_ipv6()) else { unreachable!() };
        assert_eq!(path(a, a), pcapng::Path::V4 { source, target: SocketAddrV4::new(*source.ip(), 1) });
    }
}
