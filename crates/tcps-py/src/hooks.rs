//! Hooks that are Python code.
//!
//! `tcpsbed.hooks.load` finds the code and gives back either an address (numba compiled it) or a callable with its
//! arrays; numbers are copied into those arrays, so that a call makes no array.

#![expect(unsafe_code, reason = "functions of numba and what arrays hold come as addresses")]

use crate::{
    calls::{given, interrupted, label, told},
    loaded::{item, load, Array},
};
use pyo3::prelude::*;
use std::ffi::{c_void, CStr};
use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};
use tcps_node::assets::Shape;
use tcps_plan::CodePlan;
use tcps_run::crash;

/// The hook of `module:name`.
pub fn load_hook(py: Python<'_>, code: &CodePlan, shape: Shape) -> PyResult<Box<dyn Hook>> {
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
        allowance: item(&d, "allowance")?,
        sample: item(&d, "sample")?,
        end: item(&d, "end")?,
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

/// What a call of a Python hook gives back.
const WRITTEN: &str = "how many values it wrote into y, such as return len(x), or 0: the sample ends here";

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

/// What becomes of a call that raised: a hook whose own process has died cannot go on.
fn failure(py: Python<'_>, e: &PyErr) -> Verdict {
    let died = py.import("tcpsbed.errors").and_then(|m| Ok(e.matches(py, m.getattr("ProcessDied")?)?));
    match died.unwrap_or(false) {
        true => Verdict::Dead(told(py, e)),
        false => Verdict::Failed(told(py, e)),
    }
}

struct PythonHook {
    name: &'static CStr,
    call: Py<PyAny>,
    /// Is told before each call what the transport allows.
    allowance: Option<Py<PyAny>>,
    /// Is told before each call what only hooks in C are told of a sample.
    sample: Option<Py<PyAny>>,
    /// Ends its process, and says what was wrong with that.
    end: Option<Py<PyAny>>,
    x: Array,
    other: Array,
    y: Array,
    _owner: Py<PyAny>,
}

impl PythonHook {
    fn try_call(&mut self, py: Python<'_>, i: &HookIn, o: &mut HookOut) -> PyResult<Verdict> {
        if let Some(allowance) = &self.allowance {
            allowance.call1(py, ((i.allowed_bps >= 0.0).then_some(i.allowed_bps),))?;
        }
        if let Some(sample) = &self.sample {
            sample.call1(py, (i.origin_ns, i.flow.0, i.tagged, i.merging))?;
        }
        let other = self.other.load(py, i.other(), &[])?.bind(py).clone();
        let written = if i.present == 1 {
            let x = self.x.load(py, i.x(), i.bytes())?.bind(py).clone();
            self.call.bind(py).call1((i.now_ns, i.index, x, other, self.y.whole.bind(py)))?
        } else {
            self.call.bind(py).call1((i.now_ns, i.index, py.None(), other, self.y.whole.bind(py)))?
        };
        let written: i64 = given(&written, "__call__", WRITTEN)?;
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

    fn end(&mut self) -> Vec<String> {
        let Some(end) = self.end.take() else { return Vec::new() };
        Python::attach(|py| {
            let told = end.bind(py).call0().and_then(|told| told.extract());
            told.unwrap_or_else(|e| vec![crate::calls::told(py, &e)])
        })
    }
}
