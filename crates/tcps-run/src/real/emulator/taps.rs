//! TUN devices of nodes in network namespaces, as they come to the emulator.

use crate::os::handover;
use std::{collections::BTreeMap, fs::File, os::unix::net::UnixListener, path::Path};
use tcps_plan::RunError;

/// Waits for the nodes' devices.
pub(super) struct Listener(UnixListener);

impl Listener {
    /// Listens at a path.
    pub fn bind(path: Option<&Path>) -> Result<Self, RunError> {
        let path = path.ok_or_else(|| RunError::config("prepare: namespaces need \"taps\""))?;
        let fail = |e| RunError::system(path.display(), e);
        let listener = UnixListener::bind(path).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Self(listener))
    }

    /// The devices of all nodes, in order. Nodes hand theirs over before they are ready, so none is waited for.
    pub fn devices(self, nodes: usize) -> Result<Vec<File>, RunError> {
        let fail = |e: std::io::Error| RunError::system("a TUN device was not received", e);
        let mut devices = BTreeMap::new();
        for _ in 0..nodes {
            let (stream, _) = self.0.accept().map_err(fail)?;
            let (node, device) = handover::receive(&stream).map_err(fail)?;
            devices.insert(node, device);
        }
        if devices.keys().map(|node| node.index()).ne(0..nodes) {
            return Err(RunError::world("two TUN devices were received for one node"));
        }
        Ok(devices.into_values().collect())
    }
}
