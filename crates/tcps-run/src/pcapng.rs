//! Packets of a run as a capture that Wireshark opens: node `i` is 10.0.0.(i+1), channel `c` is UDP port 47000 + c.

use crate::{error::RunError, plan::Plan};
use std::{
    fs::File,
    io::{BufWriter, Write},
    net::{Ipv4Addr, SocketAddrV4},
    path::{Path, PathBuf},
};
use tcps_core::{record::NONE, time::Time};
use tcps_wire::pcapng;

/// First port of channels.
const PORT: u16 = 47_000;
/// Port of datagrams outside channels.
const ASIDE_PORT: u16 = 47_999;

/// A capture being written: one interface a node.
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
        let file = File::create(path).map_err(|e| RunError::new(format!("{}: {e}", path.display())))?;
        let mut block = Vec::new();
        pcapng::section_header(&mut block, concat!("tcpsbed ", env!("CARGO_PKG_VERSION")));
        plan.nodes.iter().for_each(|n| pcapng::interface(&mut block, &n.name));
        let mut capture = Self { path: path.into(), file: BufWriter::new(file), block, failed: None };
        capture.flush_block();
        Ok(capture)
    }

    /// A datagram that node `from` sends at `now`.
    pub fn packet(&mut self, now: Time, from: u16, to: u16, channel: u16, dscp: u8, bytes: &[u8]) {
        let port = if channel == NONE { ASIDE_PORT } else { PORT + channel };
        let path = pcapng::Path::V4 {
            source: SocketAddrV4::new(address(from), port),
            target: SocketAddrV4::new(address(to), port),
        };
        // A datagram too long for IP cannot be sent either; transports keep to their MTU.
        if pcapng::packet(&mut self.block, from as u32, now, &path, dscp, bytes).is_ok() {
            self.flush_block();
        }
    }

    /// Whether packets cannot be written any more: `finish` says why.
    pub fn failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(), RunError> {
        let result = self.failed.take().map_or_else(|| self.file.flush(), Err);
        result.map_err(|e| RunError::new(format!("{}: {e}", self.path.display())))
    }

    fn flush_block(&mut self) {
        if let Err(e) = self.file.write_all(&self.block) {
            self.failed.get_or_insert(e);
        }
        self.block.clear();
    }
}

fn address(node: u16) -> Ipv4Addr {
    let n = node + 1;
    Ipv4Addr::new(10, 0, (n >> 8) as u8, n as u8)
}
