//! Hooks and robots that are Python code.
//!
//! `tcpsbed.hooks.load` finds the code and gives back either an address (numba compiled it) or a callable with its
//! arrays; numbers are copied into those arrays, so that a call makes no array.

use crate::{rate, transport};
use pyo3::{
    exceptions::{PyKeyboardInterrupt, PyValueError},
    intern,
    prelude::*,
    types::PyDict,
};
use std::{
    ffi::{c_void, CStr, CString},
    sync::atomic::{AtomicBool, Ordering},
};
use tcps_core::{
    endpoint::Endpoint,
    hook::{Hook, HookIn, HookOut, Verdict},
    rate::{RateController, Steers},
    record::StepKind,
    robot::{Pace, Robot},
    time::Time,
};
use tcps_node::assets::{Assets, Shape};
use tcps_plan::{CodePlan, RunError};
use tcps_run::{assets, crash, library};
use tcps_transport::{ChannelContext, Side};

/// Makes hooks of Python code.
pub struct PythonHooks;

impl Assets for PythonHooks {
    fn file(&mut self, path: &str) -> Result<Vec<u8>, RunError> {
        assets::file(path)
    }

    fn library(&mut self, code: &CodePlan) -> Result<Box<dyn Hook>, RunError> {
        library::hook(code)
    }

    fn hook(&mut self, code: &CodePlan, shape: Shape) -> Result<Box<dyn Hook>, RunError> {
        Python::attach(|py| load_hook(py, code, shape)).map_err(|e| failed(code, &e))
    }

    fn robot(&mut self, code: &CodePlan) -> Result<Box<dyn Robot>, RunError> {
        Python::attach(|py| load_robot(py, code)).map_err(|e| failed(code, &e))
    }

    fn endpoint(
        &mut self,
        code: &CodePlan,
        side: Side,
        channel: &ChannelContext,
    ) -> Result<Box<dyn Endpoint>, RunError> {
        Python::attach(|py| transport::load(py, code, side, channel)).map_err(|e| failed(code, &e))
    }

    fn controller(
        &mut self,
        code: &CodePlan,
        steers: Steers,
        side: Side,
        channel: &ChannelContext,
    ) -> Result<Box<dyn RateController>, RunError> {
        Python::attach(|py| rate::load(py, code, steers, side, channel)).map_err(|e| failed(code, &e))
    }

    fn again(&self) -> Box<dyn Assets + Send> {
        Box::new(PythonHooks)
    }
}

/// Ctrl-C arrived while Python code ran: that is no failure of the code, it ends the run.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether Ctrl-C arrived in Python code since the last question.
pub fn take_interrupt() -> bool {
    INTERRUPTED.swap(false, Ordering::Relaxed)
}

/// What went wrong in a call, in words.
pub fn told(py: Python<'_>, e: &PyErr) -> String {
    if e.is_instance_of::<PyKeyboardInterrupt>(py) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    let place = |value: &Bound<'_, PyAny>| -> PyResult<String> {
        py.import("tcpsbed.hooks")?.getattr("told")?.call1((value,))?.extract()
    };
    // Only a value on its own carries the traceback.
    place(e.clone_ref(py).into_value(py).bind(py).as_any()).unwrap_or_else(|_| e.to_string())
}

/// Whether the run ends, so that no more code is called that was interrupted.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The name under which code is called.
pub fn label(what: &str, code: &CodePlan) -> &'static CStr {
    crash::lasting(CString::new(format!("{what} {}:{}", code.name, code.symbol)).unwrap_or_default())
}

/// What becomes of a call that raised: a hook whose own process has died cannot go on.
fn failure(py: Python<'_>, e: &PyErr) -> Verdict {
    let died = py.import("tcpsbed.errors").and_then(|m| Ok(e.matches(py, m.getattr("ProcessDied")?)?));
    match died.unwrap_or(false) {
        true => Verdict::Dead(told(py, e)),
        false => Verdict::Failed(told(py, e)),
    }
}

/// Errors of tcpsbed name the code themselves; any other is given its name.
pub fn failed(code: &CodePlan, e: &PyErr) -> RunError {
    let own = Python::attach(|py| -> PyResult<Option<String>> {
        let ours = py.import("tcpsbed.errors")?.getattr("TcpsbedError")?;
        Ok(e.matches(py, ours)?.then(|| e.value(py).to_string()))
    });
    let named = || format!("{}: {e}", code.label());
    RunError::new(own.ok().flatten().unwrap_or_else(named))
}

/// Watched from here on: Python code calls code in C.
fn load<'py>(
    py: Python<'py>,
    function: &str,
    code: &CodePlan,
    shape: Option<Shape>,
) -> PyResult<Bound<'py, PyDict>> {
    crash::watch();
    let module = py.import("tcpsbed.hooks")?;
    let loader = module.getattr(function)?;
    let params = code.params.to_string();
    let what = if function == "load_robot" { "robot" } else { "hook" };
    let loaded = crash::named(label(what, code), || match shape {
        Some(Shape { bytes_in, bytes_out, most_bytes }) => loader.call1((
            &code.name,
            &code.symbol,
            params,
            bytes_in,
            bytes_out,
            most_bytes,
            code.interval_ns,
        )),
        None => loader.call1((&code.name, &code.symbol, params)),
    })?;
    Ok(loaded.cast_into::<PyDict>()?)
}

fn item<'py, T: for<'a> FromPyObject<'a, 'py>>(d: &Bound<'py, PyDict>, key: &str) -> PyResult<T> {
    let value = d.get_item(key)?.ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(key.to_owned()))?;
    value.extract().map_err(Into::into)
}

fn load_hook(py: Python<'_>, code: &CodePlan, shape: Shape) -> PyResult<Box<dyn Hook>> {
    let Shape { bytes_in, bytes_out, .. } = shape;
    let d = load(py, "load_hook", code, Some(shape))?;
    let owner: Py<PyAny> = d.clone().into_any().unbind();
    if d.contains("address")? {
        let address: usize = item(&d, "address")?;
        let state: usize = item(&d, "state")?;
        // SAFETY: tcpsbed.hooks compiled a function of exactly this type; `owner` keeps it and its state alive.
        let call = unsafe { std::mem::transmute::<usize, CompiledFn>(address) };
        return Ok(Box::new(CompiledHook {
            name: label("hook", code),
            call,
            state: state as *mut f64,
            bytes_in,
            bytes_out,
            _owner: owner,
        }));
    }
    Ok(Box::new(PythonHook {
        name: label("hook", code),
        call: item(&d, "call")?,
        x: Array::new(&d, "x", bytes_in)?,
        other: Array::new(&d, "other", false)?,
        y: Array::new(&d, "y", bytes_out)?,
        _owner: owner,
    }))
}

/// What numba compiles: `(t_ns, index, x, n, other, n_other, state, y, room) -> values written`, pointers by address.
type CompiledFn =
    unsafe extern "C" fn(i64, i64, *const c_void, i64, *const f64, i64, *mut f64, *mut c_void, i64) -> i64;

struct CompiledHook {
    name: &'static CStr,
    call: CompiledFn,
    state: *mut f64,
    bytes_in: bool,
    bytes_out: bool,
    _owner: Py<PyAny>,
}

// SAFETY: the state belongs to this hook alone; the compiled code needs no interpreter.
unsafe impl Send for CompiledHook {}

impl Hook for CompiledHook {
    fn call(&mut self, i: &HookIn, o: &mut HookOut) -> Verdict {
        let (x, n) = match self.bytes_in {
            true => (i.bytes().as_ptr().cast(), i.bytes().len()),
            false => (i.x().as_ptr().cast(), i.x().len()),
        };
        let (y, room): (*mut c_void, usize) = match self.bytes_out {
            true => (o.room_bytes().as_mut_ptr().cast(), o.room_bytes().len()),
            false => (o.room().as_mut_ptr().cast(), o.room().len()),
        };
        // SAFETY: pointers and lengths are those of the runtime's buffers; the function was compiled for this type.
        let call = || unsafe {
            (self.call)(
                i.now_ns,
                i.index as i64,
                x,
                n as i64,
                i.other().as_ptr(),
                i.other().len() as i64,
                self.state,
                y,
                room as i64,
            )
        };
        let written = crash::named(self.name, call);
        give(written, room, self.bytes_out, o)
    }
}

/// How often, in words.
pub fn times(count: u64) -> String {
    if count == 1 {
        "once".into()
    } else {
        format!("{count} times")
    }
}

/// Notes how many values (or bytes) were written.
fn give(written: i64, room: usize, bytes: bool, o: &mut HookOut) -> Verdict {
    match written {
        0 => Verdict::Nothing,
        n if n < 0 || n > room as i64 => Verdict::Failed(format!("said that it wrote {n} of {room} values")),
        n if bytes => {
            o.wrote_bytes(n as usize);
            Verdict::Emit
        }
        n => {
            o.wrote(n as usize);
            Verdict::Emit
        }
    }
}

/// A numpy array made once, and a view of its first `len` entries that changes only when the length does.
struct Array {
    whole: Py<PyAny>,
    view: Py<PyAny>,
    data: *mut c_void,
    room: usize,
    len: usize,
    bytes: bool,
}

// SAFETY: the memory belongs to `whole`, which this owns; a hook is called by one thread at a time.
unsafe impl Send for Array {}

impl Array {
    fn new(d: &Bound<'_, PyDict>, name: &str, bytes: bool) -> PyResult<Self> {
        let whole: Py<PyAny> = item(d, name)?;
        let address: usize = item(d, &format!("{name}_address"))?;
        let room: usize = item(d, &format!("{name}_room"))?;
        let view = whole.clone_ref(d.py());
        Ok(Self { whole, view, data: address as *mut c_void, room, len: room, bytes })
    }

    fn load(&mut self, py: Python<'_>, values: &[f64], bytes: &[u8]) -> PyResult<&Py<PyAny>> {
        let len = if self.bytes { bytes.len() } else { values.len() }.min(self.room);
        // SAFETY: `data` has room for `room` entries of its kind, and `len` is at most that.
        unsafe {
            if self.bytes {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.data.cast(), len);
            } else {
                std::ptr::copy_nonoverlapping(values.as_ptr(), self.data.cast(), len);
            }
        }
        if len != self.len {
            let slice = pyo3::types::PySlice::new(py, 0, len as isize, 1);
            self.view = self.whole.bind(py).get_item(slice)?.unbind();
            self.len = len;
        }
        Ok(&self.view)
    }
}

struct PythonHook {
    name: &'static CStr,
    call: Py<PyAny>,
    x: Array,
    other: Array,
    y: Array,
    _owner: Py<PyAny>,
}

impl PythonHook {
    fn try_call(&mut self, py: Python<'_>, i: &HookIn, o: &mut HookOut) -> PyResult<Verdict> {
        let other = self.other.load(py, i.other(), &[])?.bind(py).clone();
        let written = if i.present == 1 {
            let x = self.x.load(py, i.x(), i.bytes())?.bind(py).clone();
            self.call.bind(py).call1((i.now_ns, i.index, x, other, self.y.whole.bind(py)))?
        } else {
            self.call.bind(py).call1((i.now_ns, i.index, py.None(), other, self.y.whole.bind(py)))?
        };
        let written: i64 = written.extract()?;
        let room = if self.y.bytes { o.room_bytes().len() } else { o.room().len() };
        let verdict = give(written, room.min(self.y.room), self.y.bytes, o);
        if verdict == Verdict::Emit {
            // SAFETY: `give` has checked the number against the room on both sides.
            unsafe {
                if self.y.bytes {
                    o.set_bytes(std::slice::from_raw_parts(self.y.data.cast(), written as usize));
                } else {
                    o.set(std::slice::from_raw_parts(self.y.data.cast(), written as usize));
                }
            }
        }
        Ok(verdict)
    }
}

impl Hook for PythonHook {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if interrupted() {
            return Verdict::Failed("interrupted".into());
        }
        let name = self.name;
        Python::attach(|py| {
            crash::named(name, || self.try_call(py, input, output)).unwrap_or_else(|e| failure(py, &e))
        })
    }
}

struct PythonRobot {
    object: Py<PyAny>,
    step: Py<PyAny>,
    command: Array,
    sense: Array,
    name: &'static CStr,
    failure: Option<String>,
    failures: u64,
    /// Ends the process of a robot that has one, and tells how that kept its time.
    close: Option<Py<PyAny>>,
}

fn load_robot(py: Python<'_>, code: &CodePlan) -> PyResult<Box<dyn Robot>> {
    let d = load(py, "load_robot", code, None)?;
    let object: Py<PyAny> = item(&d, "robot")?;
    let step = object.getattr(py, intern!(py, "step"))?;
    let (command, sense) = (Array::new(&d, "x", false)?, Array::new(&d, "y", false)?);
    let close = d.get_item("close")?.map(Bound::unbind);
    let name = label("robot", code);
    Ok(Box::new(PythonRobot { object, step, command, sense, name, failure: None, failures: 0, close }))
}

impl PythonRobot {
    /// Counts a failure and keeps the first: nothing was written, and nothing has been carried out.
    fn failed<T: Default>(&mut self, error: String) -> T {
        self.failures += 1;
        self.failure.get_or_insert(error);
        T::default()
    }
}

/// What the process of a robot said at its end, if it said it.
fn pace(told: &Bound<'_, PyDict>) -> PyResult<Pace> {
    let late = item::<Bound<'_, PyDict>>(told, "late_ns")?;
    Ok(Pace {
        ticks: item(told, "ticks")?,
        missed_ticks: item(told, "missed_ticks")?,
        gaps_over_1ms: item(told, "gaps_over_1ms")?,
        watchdog: item(told, "watchdog")?,
        p50_ns: item(&late, "p50")?,
        p99_ns: item(&late, "p99")?,
        max_ns: item(&late, "max")?,
    })
}

impl Robot for PythonRobot {
    fn step(&mut self, now: Time, command: &[f64], sense: &mut [f64]) -> usize {
        if interrupted() {
            return 0;
        }
        let name = self.name;
        let written = Python::attach(|py| {
            let mut step = || -> PyResult<usize> {
                let x = self.command.load(py, command, &[])?.bind(py).clone();
                let written: i64 =
                    self.step.bind(py).call1((now, x, self.sense.whole.bind(py)))?.extract()?;
                let room = sense.len().min(self.sense.room);
                usize::try_from(written).ok().filter(|n| *n <= room).ok_or_else(|| {
                    let text =
                        format!("step said that it wrote {written} values; allowed: 0 to {room} (senses)");
                    PyValueError::new_err(text)
                })
            };
            crash::named(name, &mut step).map_err(|e| told(py, &e))
        });
        match written {
            Ok(n) => {
                // SAFETY: the array has room for at least `n` values.
                sense[..n].copy_from_slice(unsafe { std::slice::from_raw_parts(self.sense.data.cast(), n) });
                n
            }
            Err(e) => self.failed(e),
        }
    }

    fn arrived(&mut self) -> bool {
        if interrupted() {
            return false;
        }
        let name = self.name;
        let arrived = Python::attach(|py| {
            let ask = || self.object.bind(py).call_method0(intern!(py, "arrived"))?.is_truthy();
            crash::named(name, ask).map_err(|e| told(py, &e))
        });
        arrived.unwrap_or_else(|e| self.failed(e))
    }

    fn failure(&self) -> Option<String> {
        self.failure.as_ref().map(|text| format!("{text}, {}", times(self.failures)))
    }

    fn pace(&mut self) -> Option<Pace> {
        let close = self.close.take()?;
        Python::attach(|py| {
            let told = close.bind(py).call0().ok()?;
            pace(told.cast::<PyDict>().ok()?).ok()
        })
    }
}

/// Nanoseconds per call of a hook that stays attached, one figure for each of `rounds` blocks of 1000 calls.
#[pyfunction]
pub fn time_hook(py: Python<'_>, code_json: &str, rounds: usize) -> PyResult<Vec<f64>> {
    let fail = |e: String| PyValueError::new_err(e);
    let code: CodePlan = serde_json::from_str(code_json).map_err(|e| fail(e.to_string()))?;
    let mut hook = tcps_node::assets::hook(&code, Shape::of(StepKind::Work), &mut PythonHooks)
        .map_err(|e| fail(e.to_string()))?;
    let (x, mut y, mut bytes) = ([0.5; 6], [0.0; 256], [0u8; 64]);
    let mut figures = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = tcps_run::os::clock::monotonic_ns();
        for index in 0..1000 {
            let input = HookIn::tick(i64::from(index) * 1_000_000, 0, index, 0).with_sample(&x, &[]);
            let mut output = HookOut::new(&mut y, &mut bytes);
            if let Verdict::Failed(text) = hook.call(&input, &mut output) {
                return Err(fail(text));
            }
        }
        figures.push((tcps_run::os::clock::monotonic_ns() - start) as f64 / 1000.0);
        py.check_signals()?;
    }
    Ok(figures)
}
