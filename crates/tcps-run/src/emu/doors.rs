//! Doors of a proxy: ports that hand on to a target, and what is told of each.

use super::Account;
use serde::{Deserialize, Serialize};
use std::{io, net::SocketAddr};
use tcps_core::ids::{FlowId, VertexId};
use tcps_plan::{
    report::{Emulated, Recent},
    RunError,
};

/// Vertex of the clients.
pub const NEAR: VertexId = VertexId(0);
/// Vertex of the servers.
pub const FAR: VertexId = VertexId(1);
/// Names of the directions: away from the clients, and back.
pub const WAYS: [&str; 2] = ["near -> far", "far -> near"];

/// The other side.
pub fn opposite(side: VertexId) -> VertexId {
    match side {
        NEAR => FAR,
        _ => NEAR,
    }
}

/// Number of a door's flow from a side: a door has two, that of the clients first.
pub fn flow(door: u16, from: VertexId) -> FlowId {
    FlowId(2 * door + from.0)
}

/// A port that hands on to a target.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoorPlan {
    /// What the tables call it.
    pub name: String,
    /// What passes it.
    pub kind: DoorKind,
    /// Where clients come; port 0: a free one.
    pub listen: SocketAddr,
    /// Where the server is.
    pub target: SocketAddr,
}

/// What passes a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoorKind {
    /// Datagrams, with everything that the network does to them.
    Udp,
    /// Streams of bytes, with delay and rate.
    Tcp,
}

/// Why there is no socket where clients shall come, and where there can be one.
pub fn unheard(kind: &str, listen: SocketAddr, why: &io::Error) -> RunError {
    let remedy = match why.kind() {
        io::ErrorKind::AddrInUse => "; allowed: a free port (0 takes one)",
        io::ErrorKind::PermissionDenied => "; allowed: a port from 1024 on, or any one as root",
        io::ErrorKind::AddrNotAvailable => "; allowed: an address of this computer",
        _ => "",
    };
    RunError::world(format!("PORT: no {kind} socket on {listen}: {why}{remedy}"))
}

/// A door in one direction, as it is told.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The door.
    pub door: String,
    /// `near -> far` or `far -> near`.
    pub way: &'static str,
    /// Since the start; delays at the end only.
    #[serde(flatten)]
    pub told: Emulated,
    /// Connections of a TCP port that were closed at once: too many at a time, or no thread for them.
    pub refused: u64,
    /// Connections that were closed because the target did not take them; datagrams that came back from it.
    pub unreached: u64,
    /// The last second.
    #[serde(flatten)]
    pub recent: Recent,
}

impl Row {
    /// A door whose packets come from a side, with all that is known of it if it is the `whole`.
    pub fn of(door: &str, from: VertexId, account: &Account, whole: bool) -> Self {
        let (door, way) = (door.to_owned(), WAYS[usize::from(from != NEAR)]);
        Self { door, way, told: account.told(whole), refused: 0, unreached: 0, recent: account.recent() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, OutOfMemory, PermissionDenied};

    #[test]
    fn what_a_door_can_listen_at_follows_from_why_it_cannot() {
        let at = SocketAddr::from(([127, 0, 0, 1], 80));
        for (kind, remedy) in [
            (AddrInUse, "; allowed: a free port (0 takes one)"),
            (PermissionDenied, "; allowed: a port from 1024 on, or any one as root"),
            (AddrNotAvailable, "; allowed: an address of this computer"),
            (OutOfMemory, ""),
        ] {
            let why = io::Error::from(kind);
            let said = format!("PORT: no UDP socket on 127.0.0.1:80: {why}{remedy}");
            assert_eq!(unheard("UDP", at, &why).found, said);
        }
    }
}
