//! What a loop has opened before it knows its peers, and where these are.

use crate::{
    addresses, kernel_tcp,
    os::{capture::Capture, ring::Producer, socket::Socket},
    real::{line::Lines, stream::Stream, worker::Crew},
};
use std::{collections::BTreeMap, net::SocketAddr};
use tcps_core::ids::{ChannelId, NodeId, SessionId};
use tcps_plan::{Plan, RunError};
use tcps_transport::Side;

/// Sockets of a loop by what they are for.
#[derive(Debug, Default, Clone)]
pub struct Addresses {
    /// Peer (or gate) per channel.
    pub channels: BTreeMap<ChannelId, SocketAddr>,
    /// Peers (or the gate) for datagrams outside channels, per node, in the order of its loops.
    pub asides: BTreeMap<NodeId, Vec<SocketAddr>>,
    /// Node behind each address that such datagrams come from: every loop of a peer, or its gate.
    pub aside_senders: BTreeMap<SocketAddr, NodeId>,
}

/// What a loop has opened before it knows its peers.
pub(super) struct Opened {
    pub(super) sockets: Sockets,
    pub(super) ring: Producer,
    pub(super) capture: Option<Capture>,
    pub(super) crew: Crew,
    pub(super) lines: Lines,
}

/// The sockets of a loop: one a channel, and one for everything else.
pub(super) struct Sockets {
    pub(super) all: Vec<Socket>,
    /// Channel of each socket, `NONE` for the last one.
    pub(super) channels: Vec<ChannelId>,
    /// Channels over the kernel's TCP.
    pub(super) streams: Vec<Stream>,
}

impl Sockets {
    /// A socket for each channel of some sessions that ends at node `id`, and one for everything else.
    pub(super) fn bind(plan: &Plan, id: NodeId, sessions: &[SessionId]) -> Result<Self, RunError> {
        let ip = addresses::address(&plan.real, id);
        let mut sockets = Self { all: Vec::new(), channels: Vec::new(), streams: Vec::new() };
        for (c, channel) in ChannelId::each(&plan.channels) {
            if !(sessions.contains(&channel.session) && (channel.a == id || channel.b == id)) {
                continue;
            }
            if let Some(settings) = kernel_tcp::settings(channel) {
                let side = if channel.a == id { Side::A } else { Side::B };
                let stream = Stream::prepare(c, side, ip, settings?, plan.duration_ns)?;
                sockets.streams.push(stream);
            } else {
                sockets.all.push(Socket::bind(ip)?);
                sockets.channels.push(c);
            }
        }
        sockets.all.push(Socket::bind(ip)?);
        sockets.channels.push(ChannelId::NONE);
        Ok(sockets)
    }
}
