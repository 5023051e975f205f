//! Loops of a node process with Python code: attached once, let go only while they wait.

#![expect(unsafe_code, reason = "a loop stays attached to the interpreter")]

use crate::{assets::PythonHooks, network};
use hdrhistogram::Histogram;
use pyo3::prelude::*;
use tcps_core::report::histogram;
use tcps_net::ForeignCode;
use tcps_node::assets::Assets;
use tcps_plan::{report::CodeCost, Need};
use tcps_run::{
    assets::Disk,
    os::{
        clock::monotonic_ns,
        wait::{Detach, NothingToDetach},
    },
    real::control::Attach,
};

/// Attaches loops that run Python code themselves to the interpreter, and leaves the others alone.
pub struct Interpreter;

impl Attach for Interpreter {
    fn code(&self) -> Box<dyn ForeignCode> {
        network::measure();
        Box::new(PythonHooks)
    }

    fn costs(&self) -> Vec<CodeCost> {
        network::costs()
    }

    fn attached(&self, python: Need, body: &mut dyn FnMut(&mut dyn Assets, &mut dyn Detach)) {
        match python {
            Need::Loop => Python::attach(|_| body(&mut PythonHooks, &mut LetGo { waits: histogram() })),
            // Hooks attach by themselves, when they are made and in their threads.
            Need::Workers => body(&mut PythonHooks, &mut NothingToDetach),
            Need::None => body(&mut Disk, &mut NothingToDetach),
        }
    }
}

/// Releases the GIL while a loop waits, and notes how long it took to get it back.
struct LetGo {
    waits: Histogram<u64>,
}

/// A closure that another thread will not run; `detach` only asks for `Send` to keep Python objects out.
struct Shielded<'a>(&'a mut dyn FnMut());

// SAFETY: `Python::detach` runs the closure in the same thread; it holds no Python object (it polls sockets).
unsafe impl Send for Shielded<'_> {}

impl Detach for LetGo {
    fn detached(&mut self, wait: &mut dyn FnMut()) {
        // SAFETY: `attached` has attached this thread for the whole life of the loop.
        let py = unsafe { Python::assume_attached() };
        let shielded = Shielded(wait);
        let waited = py.detach(move || {
            let whole = shielded;
            (whole.0)();
            monotonic_ns()
        });
        let _ = self.waits.record((monotonic_ns() - waited).max(0) as u64);
    }

    fn at_barrier(&mut self) {
        // SAFETY: as in `detached`.
        let py = unsafe { Python::assume_attached() };
        // Other threads give the interpreter back within 0.1 ms; what exists now is never looked at by collections.
        // Where Python refuses, the run goes on: its interpreter waits and gaps tell.
        let calm = || -> PyResult<()> {
            py.import("sys")?.call_method1("setswitchinterval", (1e-4,))?;
            let gc = py.import("gc")?;
            gc.call_method0("collect")?;
            gc.call_method0("freeze")?;
            Ok(())
        };
        let _ = calm();
    }

    fn interpreter_waits(&self) -> Option<&Histogram<u64>> {
        Some(&self.waits)
    }
}
