//! Rows and captures of a run on the machine's clock: drained from rings, merged.

use crate::errors::raised;
use pyo3::{exceptions::PyOSError, prelude::*};
use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};
use tcps_core::record::RECORD_BYTES;
use tcps_run::os::{capture, ring::Consumer};

/// Drains rings into files.
#[pyclass]
pub struct Drain {
    rings: Vec<(Consumer, File, PathBuf)>,
    buffer: Vec<u8>,
}

#[pymethods]
impl Drain {
    /// `pairs`: (ring, file) each. With `resume` the files hold what a process that is gone had drained.
    #[new]
    #[pyo3(signature = (pairs, *, resume=false))]
    fn new(pairs: Vec<(PathBuf, PathBuf)>, resume: bool) -> PyResult<Self> {
        let mut rings = Vec::new();
        for (ring, path) in pairs {
            let file = File::options().create(true).append(true).open(&path)?;
            // What a kill tore off is no row.
            let taken = if resume { file.metadata()?.len() / RECORD_BYTES as u64 } else { 0 };
            file.set_len(taken * RECORD_BYTES as u64)?;
            rings.push((Consumer::resume(&ring, taken).map_err(raised)?, file, path));
        }
        Ok(Self { rings, buffer: Vec::new() })
    }

    /// Moves all published rows to the files and returns them, unsorted.
    fn drain<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
        self.buffer.clear();
        for (ring, file, path) in &mut self.rings {
            let start = self.buffer.len();
            ring.drain(&mut self.buffer);
            if let Err(e) = file.write_all(&self.buffer[start..]) {
                let rows = file.metadata()?.len() / RECORD_BYTES as u64;
                file.set_len(rows * RECORD_BYTES as u64)?;
                return Err(named(&e, path));
            }
            ring.taken();
        }
        Ok(pyo3::types::PyBytes::new(py, &self.buffer))
    }

    /// How long the loop of each ring has not run, in ns; 0 before it has begun.
    fn silences_ns(&self) -> Vec<i64> {
        self.rings.iter().map(|(r, ..)| r.silence_ns()).collect()
    }

    /// Rows lost in all rings.
    fn lost(&self) -> u64 {
        self.rings.iter().map(|(r, ..)| r.lost()).sum()
    }
}

/// The error with its file, as Python's own have it.
fn named(error: &std::io::Error, path: &Path) -> PyErr {
    let said = error.to_string();
    PyOSError::new_err((
        error.raw_os_error(),
        said.split(" (os error").next().unwrap_or_default().to_owned(),
        path.to_owned(),
    ))
}

/// Merges captures of loops into one; returns the number of packets.
#[pyfunction]
pub fn merge_captures(py: Python<'_>, parts: Vec<PathBuf>, capture_path: PathBuf) -> PyResult<u64> {
    Ok(py.detach(|| capture::merge(&parts, &capture_path))?)
}
