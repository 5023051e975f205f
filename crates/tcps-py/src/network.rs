//! Queue disciplines, loss models, delay models and background sources that are Python code.

use crate::{
    assets::PythonHooks,
    calls::{failed, given, interrupted, label, told},
};
use hdrhistogram::Histogram;
use pyo3::{intern, prelude::*, types::PyList};
use std::{
    ffi::CStr,
    sync::{
        atomic::{AtomicBool, Ordering},
        Mutex,
    },
};
use tcps_core::{param::Named, report::histogram, time::Time};
use tcps_net::own::{DelayCode, ForeignCode, LossCode, Offer, QueueCode, SourceCode};
use tcps_plan::{report::CodeCost, CodeKind, CodePlan, RunError};
use tcps_run::{assets::Disk, crash, os::clock::monotonic_ns};

/// A packet that comes to a queue, or starts on a line.
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

impl Arriving {
    fn of(py: Python<'_>, offer: &Offer) -> PyResult<Py<Self>> {
        let &Offer { number, bytes, flow, dscp } = offer;
        Py::new(py, Self { number, bytes, flow, dscp })
    }
}

impl ForeignCode for PythonHooks {
    fn queue(&mut self, named: &Named, link: &str, seed: u64) -> Result<Box<dyn QueueCode>, RunError> {
        let code = CodePlan::named(&named.kind, named.params.clone());
        match code.kind {
            CodeKind::Python => made(&code, |py| PythonQueue::load(py, &code, link, seed)),
            _ => Disk.queue(named, link, seed),
        }
    }

    fn loss(&mut self, named: &Named, link: &str, seed: u64) -> Result<Box<dyn LossCode>, RunError> {
        let code = CodePlan::named(&named.kind, named.params.clone());
        match code.kind {
            CodeKind::Python => made(&code, |py| PythonLoss::load(py, &code, link, seed)),
            _ => Disk.loss(named, link, seed),
        }
    }

    fn delay(&mut self, named: &Named, link: &str, seed: u64) -> Result<Box<dyn DelayCode>, RunError> {
        let code = CodePlan::named(&named.kind, named.params.clone());
        match code.kind {
            CodeKind::Python => made(&code, |py| PythonDelay::load(py, &code, link, seed)),
            _ => Disk.delay(named, link, seed),
        }
    }

    fn source(&mut self, named: &Named, entry: &str, seed: u64) -> Result<Box<dyn SourceCode>, RunError> {
        let code = CodePlan::named(&named.kind, named.params.clone());
        match code.kind {
            CodeKind::Python => made(&code, |py| PythonSource::load(py, &code, entry, seed)),
            _ => Disk.source(named, entry, seed),
        }
    }
}

fn made<T>(code: &CodePlan, load: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, RunError> {
    Python::attach(load).map_err(|e| failed(code, &e))
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

/// Whether calls are measured: on sockets, where the network waits for them.
static MEASURED: AtomicBool = AtomicBool::new(false);
/// What calls of code that is gone took.
static COSTS: Mutex<Vec<CodeCost>> = Mutex::new(Vec::new());

/// From now on calls are measured.
pub fn measure() {
    MEASURED.store(true, Ordering::Relaxed);
}

/// What calls of all code that is gone took.
pub fn costs() -> Vec<CodeCost> {
    COSTS.lock().map(|mut costs| std::mem::take(&mut *costs)).unwrap_or_default()
}

/// Calls an object's methods under its name.
struct Caller {
    name: &'static CStr,
    took_ns: Option<Histogram<u64>>,
}

impl Caller {
    fn new(name: &'static CStr) -> Self {
        Self { name, took_ns: MEASURED.load(Ordering::Relaxed).then(histogram) }
    }

    /// What a call gave, or what went wrong in words.
    fn call<T>(&mut self, call: impl FnOnce(Python<'_>) -> PyResult<T>, otherwise: T) -> Result<T, String> {
        if interrupted() {
            return Ok(otherwise);
        }
        let begun = self.took_ns.as_ref().map(|_| monotonic_ns());
        let said = Python::attach(|py| crash::named(self.name, || call(py)).map_err(|e| told(py, &e)));
        if let (Some(took_ns), Some(begun)) = (&mut self.took_ns, begun) {
            let _ = took_ns.record((monotonic_ns() - begun).max(0) as u64);
        }
        said
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if let (Some(took_ns), Ok(mut costs)) = (&self.took_ns, COSTS.lock()) {
            costs.push(CodeCost::of(self.name.to_string_lossy().into_owned(), took_ns));
        }
    }
}

struct PythonQueue {
    caller: Caller,
    enqueue: Py<PyAny>,
    dequeue: Py<PyAny>,
    dropped: Py<PyList>,
}

impl PythonQueue {
    fn load(py: Python<'_>, code: &CodePlan, link: &str, seed: u64) -> PyResult<Box<dyn QueueCode>> {
        let (name, object) = load(py, "queue", code, link, seed)?;
        let (enqueue, dequeue) = (object.getattr("enqueue")?.unbind(), object.getattr("dequeue")?.unbind());
        let caller = Caller::new(name);
        Ok(Box::new(Self { caller, enqueue, dequeue, dropped: PyList::empty(py).unbind() }))
    }

    /// The numbers that the object has put into its list, which is then empty.
    fn take(list: &Bound<'_, PyList>, dropped: &mut Vec<u32>) -> PyResult<()> {
        if !list.is_empty() {
            dropped.extend(given::<Vec<u32>>(list, "the list dropped", "numbers of packets that wait")?);
            list.call_method0(intern!(list.py(), "clear"))?;
        }
        Ok(())
    }
}

impl QueueCode for PythonQueue {
    fn enqueue(&mut self, now: Time, offer: &Offer, dropped: &mut Vec<u32>) -> Result<(), String> {
        self.caller.call(
            |py| {
                self.enqueue.bind(py).call1((now, Arriving::of(py, offer)?, &self.dropped))?;
                Self::take(self.dropped.bind(py), dropped)
            },
            (),
        )
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Vec<u32>) -> Result<Option<u32>, String> {
        let oldest = None;
        self.caller.call(
            |py| {
                let said = self.dequeue.bind(py).call1((now, &self.dropped))?;
                Self::take(self.dropped.bind(py), dropped)?;
                given(&said, "dequeue", "the number of a packet that waits, or None if all were dropped")
            },
            oldest,
        )
    }
}

struct PythonLoss {
    caller: Caller,
    lose: Py<PyAny>,
}

impl PythonLoss {
    fn load(py: Python<'_>, code: &CodePlan, link: &str, seed: u64) -> PyResult<Box<dyn LossCode>> {
        let (name, object) = load(py, "loss", code, link, seed)?;
        Ok(Box::new(Self { caller: Caller::new(name), lose: object.getattr("lose")?.unbind() }))
    }
}

impl LossCode for PythonLoss {
    fn lose(&mut self, now: Time, offer: &Offer) -> Result<bool, String> {
        let lost = |py: Python<'_>| {
            let said = self.lose.bind(py).call1((now, Arriving::of(py, offer)?))?;
            given(&said, "lose", "True or False")
        };
        self.caller.call(lost, false)
    }
}

struct PythonDelay {
    caller: Caller,
    delay: Py<PyAny>,
}

impl PythonDelay {
    fn load(py: Python<'_>, code: &CodePlan, link: &str, seed: u64) -> PyResult<Box<dyn DelayCode>> {
        let (name, object) = load(py, "delay", code, link, seed)?;
        Ok(Box::new(Self { caller: Caller::new(name), delay: object.getattr("delay")?.unbind() }))
    }
}

impl DelayCode for PythonDelay {
    fn delay(&mut self, now: Time, offer: &Offer) -> Result<Time, String> {
        let span = |py: Python<'_>| {
            let said = self.delay.bind(py).call1((now, Arriving::of(py, offer)?))?;
            given(&said, "delay", "nanoseconds as a whole number, such as 2_000_000")
        };
        self.caller.call(span, 0)
    }
}

struct PythonSource {
    caller: Caller,
    next: Py<PyAny>,
}

impl PythonSource {
    fn load(py: Python<'_>, code: &CodePlan, entry: &str, seed: u64) -> PyResult<Box<dyn SourceCode>> {
        let (name, object) = load(py, "source", code, entry, seed)?;
        Ok(Box::new(Self { caller: Caller::new(name), next: object.getattr("next")?.unbind() }))
    }
}

impl SourceCode for PythonSource {
    fn next(&mut self) -> Result<Option<(Time, u32)>, String> {
        let allowed = "(ns since its start, bytes), such as (1_000_000, 1500), or None after the last packet";
        self.caller.call(|py| given(&self.next.bind(py).call0()?, "next", allowed), None)
    }
}
