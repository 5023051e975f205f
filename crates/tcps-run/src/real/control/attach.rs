//! What the threads of a node process need of Python.

use crate::{assets::Disk, os::wait::Detach};
use tcps_net::ForeignCode;
use tcps_node::assets::Assets;
use tcps_plan::{report::CodeCost, Need};

/// Gives a thread what it needs for Python code, or what is needed without it.
pub trait Attach: Sync {
    /// Runs `body` in the calling thread; if the loop itself needs `python`, attached to the interpreter.
    fn attached(&self, python: Need, body: &mut dyn FnMut(&mut dyn Assets, &mut dyn Detach));
    /// What makes the code of the user's in the network.
    fn code(&self) -> Box<dyn ForeignCode> {
        Box::new(Disk)
    }
    /// What calls of that code took, once it is gone.
    fn costs(&self) -> Vec<CodeCost> {
        Vec::new()
    }
}
