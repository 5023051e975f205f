//! Python code as `tcpsbed.hooks` hands it over: a table, and in it arrays that are made once.

#![expect(unsafe_code, reason = "arrays of numpy come as addresses")]

use crate::calls::label;
use pyo3::{prelude::*, types::PyDict};
use std::ffi::c_void;
use tcps_node::assets::Shape;
use tcps_plan::CodePlan;
use tcps_run::crash;

/// Watched from here on: Python code calls code in C.
pub fn load<'py>(
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

pub fn item<'py, T: for<'a> FromPyObject<'a, 'py>>(d: &Bound<'py, PyDict>, key: &str) -> PyResult<T> {
    let value = d.get_item(key)?.ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(key.to_owned()))?;
    value.extract().map_err(Into::into)
}

/// A numpy array made once, and a view of its first `len` entries that changes only when the length does.
pub struct Array {
    pub whole: Py<PyAny>,
    view: Py<PyAny>,
    pub data: *mut c_void,
    pub room: usize,
    len: usize,
    pub bytes: bool,
}

// SAFETY: the memory belongs to `whole`, which this owns; a hook is called by one thread at a time.
unsafe impl Send for Array {}

impl Array {
    pub fn new(d: &Bound<'_, PyDict>, name: &str, bytes: bool) -> PyResult<Self> {
        let whole: Py<PyAny> = item(d, name)?;
        let address: usize = item(d, &format!("{name}_address"))?;
        let room: usize = item(d, &format!("{name}_room"))?;
        let view = whole.clone_ref(d.py());
        Ok(Self { whole, view, data: address as *mut c_void, room, len: room, bytes })
    }

    pub fn load(&mut self, py: Python<'_>, values: &[f64], bytes: &[u8]) -> PyResult<&Py<PyAny>> {
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
