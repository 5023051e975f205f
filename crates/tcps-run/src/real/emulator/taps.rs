//! TUN devices of nodes in network namespaces: ports of the emulator where the user is root.
//!
//! Whole IP packets pass unchanged, whatever they carry: time to live and code point stay as the sender set them. The
//! kernel puts no stamp on them: a packet enters at the moment right after it was read, so the time in which the
//! emulator wakes up adds to its delay and is not part of set against delivered.

use super::{Entered, Heard, Ports, Taken, Troubles};
use crate::{
    addresses,
    error::RunError,
    os::{clock::RunClock, handover},
    plan::Plan,
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixListener,
    },
    path::Path,
};
use tcps_wire::ip;

/// Bytes of the link below IP. [model: wire size]
const LINK_BYTES: u32 = 26;

/// Waits for the nodes' devices.
pub(super) struct Listener(UnixListener);

impl Listener {
    /// Listens at a path.
    pub fn bind(path: Option<&Path>) -> Result<Self, RunError> {
        let path = path.ok_or_else(|| RunError::new("prepare: namespaces need \"taps\""))?;
        let fail = |e: std::io::Error| RunError::new(format!("{}: {e}", path.display()));
        let listener = UnixListener::bind(path).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Self(listener))
    }

    /// The devices of all nodes, in order. Nodes hand theirs over before they are ready, so none is waited for.
    pub fn devices(self, nodes: usize) -> Result<Vec<File>, RunError> {
        let fail = |e: std::io::Error| RunError::new(format!("a TUN device did not come: {e}"));
        let mut devices = BTreeMap::new();
        for _ in 0..nodes {
            let (stream, _) = self.0.accept().map_err(fail)?;
            let (node, device) = handover::receive(&stream).map_err(fail)?;
            devices.insert(node, device);
        }
        if devices.keys().copied().ne(0..nodes as u16) {
            return Err(RunError::new("two TUN devices came for one node"));
        }
        Ok(devices.into_values().collect())
    }
}

/// One device a node; the number of a port is that of its node.
pub(super) struct Taps {
    devices: Vec<File>,
    heard: Heard,
    strangers: u64,
    unsent: u64,
}

impl Taps {
    /// Ports of nodes that listen as told.
    pub fn new(devices: Vec<File>, heard: Heard) -> Self {
        Self { devices, heard, strangers: 0, unsent: 0 }
    }

    /// Where a packet goes and what it is; nothing if it is for no other node.
    fn look(&self, plan: &Plan, from: u16, bytes: &[u8], arrived: i64) -> Option<Entered> {
        let packet = ip::Packet::new_checked(bytes).ok()?;
        let to = addresses::node_at(packet.destination())?;
        if usize::from(to) >= self.devices.len() || to == from {
            return None;
        }
        let (exit, len) = (usize::from(to), bytes.len());
        let (class, index, wire_bytes, dscp) =
            self.heard.account(plan, [from, to], &packet, bytes, len as u32 + LINK_BYTES);
        Some(Entered { from, to, exit, arrived, len, class, index, dscp, wire_bytes })
    }
}

impl Ports for Taps {
    fn descriptors(&self) -> Vec<RawFd> {
        self.devices.iter().map(|d| d.as_raw_fd()).collect()
    }

    fn receive(&mut self, plan: &Plan, port: usize, clock: &mut RunClock, buffer: &mut [u8]) -> Taken {
        let Ok(len) = self.devices[port].read(buffer) else { return Taken::Empty };
        let Some(entered) = self.look(plan, port as u16, &buffer[..len], clock.now()) else {
            self.strangers += 1;
            return Taken::Stranger;
        };
        Taken::Packet(entered)
    }

    fn deliver(&mut self, exit: usize, _to: u16, _dscp: u8, bytes: &[u8]) -> bool {
        let sent = self.devices[exit].write(bytes).is_ok_and(|n| n == bytes.len());
        self.unsent += u64::from(!sent);
        sent
    }

    fn stamps(&self) -> &'static str {
        "after the read"
    }

    fn troubles(&self) -> Troubles {
        Troubles {
            dropped: 0,
            unsent: self.unsent,
            strangers: self.strangers,
            unread: self.heard.unread.get(),
        }
    }
}
