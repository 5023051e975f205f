//! TUN devices of nodes in network namespaces, as they come to the emulator.

use crate::os::handover;
use std::{collections::BTreeMap, fs::File, os::unix::net::UnixListener, path::Path};
use tcps_plan::RunError;

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
