//! Packets of a run as a capture that Wireshark opens: node `i` is 10.0.0.(i+1), channel `c` is UDP port 47000 + c
//! (one more from 999 on, for 47999 is of what belongs to no channel).

use std::{
    fs::File,
    io::{BufWriter, Write},
    net::{Ipv4Addr, SocketAddrV4},
    path::{Path, PathBuf},
};
use tcps_core::{
    endpoint::Ecn,
    ids::{ChannelId, NodeId},
    time::Time,
};
use tcps_plan::{Plan, RunError};
use tcps_wire::pcapng::{self, Seen};

/// First port of channels.
const PORT: u16 = 47_000;
/// Port of datagrams outside channels.
const ASIDE_PORT: u16 = 47_999;

/// A datagram between two nodes, as a capture tells of it.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// Node that sends it.
    pub from: NodeId,
    /// Node that it is for.
    pub to: NodeId,
    /// Its channel, or `NONE`.
    pub channel: ChannelId,
    /// Differentiated services code point.
    pub dscp: u8,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
    /// Its payload.
    pub bytes: &'a [u8],
}

impl Datagram<'_> {
    /// Appends its block, as node `at` saw it; a datagram too long for IP is left out, for it cannot be sent either.
    pub fn append(&self, block: &mut Vec<u8>, now: Time, at: NodeId, seen: Seen) {
        let port = port_of(self.channel);
        let path = pcapng::Path::V4 {
            source: SocketAddrV4::new(address(self.from), port),
            target: SocketAddrV4::new(address(self.to), port),
        };
        let _ = pcapng::packet(block, at.0.into(), now, &path, self.ecn.tos(self.dscp), self.bytes, seen);
    }
}

/// The blocks that begin a capture: one interface a node.
pub fn beginning(plan: &Plan) -> Vec<u8> {
    let mut block = Vec::new();
    pcapng::section_header(&mut block, concat!("tcpsbed ", env!("CARGO_PKG_VERSION")));
    plan.nodes.iter().for_each(|n| pcapng::interface(&mut block, &n.name));
    block
}

/// A capture being written.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    file: BufWriter<File>,
    block: Vec<u8>,
    failed: Option<std::io::Error>,
}

impl Capture {
    /// Begins the file.
    pub fn create(path: &Path, plan: &Plan) -> Result<Self, RunError> {
        let file = File::create(path).map_err(|e| RunError::system(path.display(), e))?;
        let block = beginning(plan);
        let mut capture = Self { path: path.into(), file: BufWriter::new(file), block, failed: None };
        capture.flush_block();
        Ok(capture)
    }

    /// A datagram that its sender sends at `now`.
    pub fn packet(&mut self, now: Time, datagram: &Datagram<'_>) {
        datagram.append(&mut self.block, now, datagram.from, Seen::Somewhere);
        self.flush_block();
    }

    /// Whether packets cannot be written any more: `finish` says why.
    pub fn failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(), RunError> {
        let result = self.failed.take().map_or_else(|| self.file.flush(), Err);
        result.map_err(|e| RunError::system(self.path.display(), e))
    }

    fn flush_block(&mut self) {
        if let Err(e) = self.file.write_all(&self.block) {
            self.failed.get_or_insert(e);
        }
        self.block.clear();
    }
}

/// The port of a channel, or of what belongs to none.
fn port_of(channel: ChannelId) -> u16 {
    match (channel, PORT + channel.0.min(ASIDE_PORT - PORT)) {
        (ChannelId::NONE, _) => ASIDE_PORT,
        (ChannelId(number), ASIDE_PORT) => PORT + 1 + number,
        (_, port) => port,
    }
}

fn address(node: NodeId) -> Ipv4Addr {
    let n = node.0 + 1;
    Ipv4Addr::new(10, 0, (n >> 8) as u8, n as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_channel_has_a_port_of_its_own() {
        assert_eq!(
            [0, 998, 999, 1_000, 16_383, ChannelId::NONE.0].map(|c| port_of(ChannelId(c))),
            [47_000, 47_998, 48_000, 48_001, 63_384, 47_999]
        );
        let ports: BTreeSet<u16> =
            (0..1 << 14).chain([ChannelId::NONE.0]).map(|c| port_of(ChannelId(c))).collect();
        assert_eq!(ports.len(), (1 << 14) + 1);
    }
}
