//! Queue disciplines and background sources that are Python code.

use crate::hooks::{failed, interrupted, label, told, PythonHooks};
use pyo3::{intern, prelude::*, types::PyList};
use std::ffi::CStr;
use tcps_core::{param::Named, time::Time};
use tcps_net::own::{ForeignCode, Offer, QueueCode, SourceCode};
use tcps_plan::{CodeKind, CodePlan};
use tcps_run::{assets::Disk, crash};

/// A packet that comes to a queue.
#[pyclass(module = "tcpsbed._tcps", frozen, get_all)]
pub struct Arriving {
    /// What it is called from now on.
    number: u32,
    /// Its size on the wire.
    bytes: u32,
    /// Its flow, or 32768 plus the number of the traffic entry.
    flow: u16,
    /// Its code point.
    dscp: u8,
}

impl ForeignCode for PythonHooks {
    fn queue(&mut self, named: &Named, link: &str, seed: u64) -> Result<Box<dyn QueueCode>, String> {
        let code = CodePlan::named(&named.kind, named.params.clone());
        if code.kind != CodeKind::Python {
            return Disk.queue(named, link, seed);
        }
        Python::attach(|py| PythonQueue::load(py, &code, link, seed))
            .map_err(|e| failed(&code, &e).to_string())
    }

    fn source(&mut self, named: &Named, entry: &str, seed: u64) -> Result<Box<dyn SourceCode>, String> {
        let code = CodePlan::named(&named.kind, named.params.clone());
        if code.kind != CodeKind::Python {
            return Disk.source(named, entry, seed);
        }
        Python::attach(|py| PythonSource::load(py, &code, entry, seed))
            .map_err(|e| failed(&code, &e).to_string())
    }
}

/// The object of `module:Class`, made by a function of `tcpsbed.hooks`.
fn load<'py>(
    py: Python<'py>,
    what: &str,
    code: &CodePlan,
    place: &str,
    seed: u64,
) -> PyResult<(&'static CStr, Bound<'py, PyAny>)> {
    crash::watch();
    let loader = py.import("tcpsbed.hooks")?.getattr(format!("load_{what}"))?;
    let name = label(what, code);
    let arguments = (&code.name, &code.symbol, code.params.to_string(), place, seed);
    Ok((name, crash::named(name, || loader.call1(arguments))?))
}

/// What a call gave, or what went wrong in words.
fn called<T>(
    name: &'static CStr,
    call: impl FnOnce(Python<'_>) -> PyResult<T>,
    otherwise: T,
) -> Result<T, String> {
    if interrupted() {
        return Ok(otherwise);
    }
    Python::attach(|py| crash::named(name, || call(py)).map_err(|e| told(py, &e)))
}

struct PythonQueue {
    name: &'static CStr,
    enqueue: Py<PyAny>,
    dequeue: Py<PyAny>,
    dropped: Py<PyList>,
}

impl PythonQueue {
    fn load(py: Python<'_>, code: &CodePlan, link: &str, seed: u64) -> PyResult<Box<dyn QueueCode>> {
        let (name, object) = load(py, "queue", code, link, seed)?;
        let (enqueue, dequeue) = (object.getattr("enqueue")?.unbind(), object.getattr("dequeue")?.unbind());
        Ok(Box::new(Self { name, enqueue, dequeue, dropped: PyList::empty(py).unbind() }))
    }

    /// The numbers that the object has put into its list, which is then empty.
    fn take_dropped(&self, py: Python<'_>, dropped: &mut Vec<u32>) -> PyResult<()> {
        let list = self.dropped.bind(py);
        if !list.is_empty() {
            dropped.extend(list.extract::<Vec<u32>>()?);
            list.call_method0(intern!(py, "clear"))?;
        }
        Ok(())
    }
}

impl QueueCode for PythonQueue {
    fn enqueue(&mut self, now: Time, offer: &Offer, dropped: &mut Vec<u32>) -> Result<(), String> {
        let &Offer { number, bytes, flow, dscp } = offer;
        called(
            self.name,
            |py| {
                let packet = Py::new(py, Arriving { number, bytes, flow, dscp })?;
                self.enqueue.bind(py).call1((now, packet, &self.dropped))?;
                self.take_dropped(py, dropped)
            },
            (),
        )
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Vec<u32>) -> Result<Option<u32>, String> {
        let oldest = None;
        called(
            self.name,
            |py| {
                let number = self.dequeue.bind(py).call1((now, &self.dropped))?.extract()?;
                self.take_dropped(py, dropped).map(|()| number)
            },
            oldest,
        )
    }
}

struct PythonSource {
    name: &'static CStr,
    next: Py<PyAny>,
}

impl PythonSource {
    fn load(py: Python<'_>, code: &CodePlan, entry: &str, seed: u64) -> PyResult<Box<dyn SourceCode>> {
        let (name, object) = load(py, "source", code, entry, seed)?;
        Ok(Box::new(Self { name, next: object.getattr("next")?.unbind() }))
    }
}

impl SourceCode for PythonSource {
    fn next(&mut self) -> Result<Option<(Time, u32)>, String> {
        called(self.name, |py| self.next.bind(py).call0()?.extract(), None)
    }
}
