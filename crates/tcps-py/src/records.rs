//! Rows of a run: drained from rings, merged, analysed.

use crate::{plan_of, text};
use pyo3::{
    exceptions::{PyOSError, PyValueError},
    prelude::*,
};
use std::{
    fs::File,
    io::{BufReader, Read, Write},
    path::{Path, PathBuf},
};
use tcps_analysis as analysis;
use tcps_core::record::{DropReason, Kind, Record, StepKind, RECORD_BYTES};
use tcps_run::{
    os::{
        capture,
        merge::{Item, Merge},
        ring::Consumer,
    },
    recorder::Recorder,
};

type Named = (u8, &'static str, &'static str);

/// Kinds of rows, reasons of a drop and kinds of stages: number, name, and the list that a row's `point` counts in.
#[pyfunction]
pub fn record_names() -> (Vec<Named>, Vec<Named>, Vec<Named>) {
    (
        Kind::ALL.map(|kind| (kind as u8, kind.name(), kind.place().name())).to_vec(),
        DropReason::ALL.map(|reason| (reason as u8, reason.name(), reason.place().name())).to_vec(),
        StepKind::ALL.map(|kind| (kind as u8, kind.name(), kind.place().name())).to_vec(),
    )
}

/// Figures of a stream of rows, as JSON.
#[pyfunction]
#[pyo3(signature = (records_path, plan_json, warmup_ns=0, grace_ns=1_000_000_000))]
pub fn analyse(
    py: Python<'_>,
    records_path: PathBuf,
    plan_json: &str,
    warmup_ns: i64,
    grace_ns: i64,
) -> PyResult<String> {
    let plan = plan_of(plan_json)?;
    let file = File::open(&records_path)?;
    let options = analysis::Options { warmup_ns, grace_ns, ..analysis::Options::default() };
    py.detach(|| text(&analysis::analyse(BufReader::with_capacity(1 << 20, file), &plan, &options)?))
}

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
            let consumer =
                Consumer::resume(&ring, taken).map_err(|e| PyValueError::new_err(e.to_string()))?;
            rings.push((consumer, file, path));
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

/// Merges files of rows, each nearly in order of time, into one; returns the number of rows and the SHA-256.
#[pyfunction]
pub fn merge(py: Python<'_>, parts: Vec<PathBuf>, records_path: PathBuf) -> PyResult<(u64, String)> {
    py.detach(|| {
        let open = |part: &PathBuf| Ok(Rows(BufReader::with_capacity(1 << 18, File::open(part)?)));
        let streams = parts.iter().map(open).collect::<std::io::Result<Vec<_>>>()?;
        let fail = |e: tcps_plan::RunError| PyValueError::new_err(e.to_string());
        let mut recorder = Recorder::new(Some(&records_path)).map_err(fail)?;
        for row in Merge::new(streams)? {
            recorder.push(&row?);
            if recorder.failed() {
                break;
            }
        }
        let recorded = recorder.finish().map_err(fail)?;
        Ok((recorded.rows, recorded.sha256))
    })
}

/// Merges captures of loops into one; returns the number of packets.
#[pyfunction]
pub fn merge_captures(py: Python<'_>, parts: Vec<PathBuf>, capture_path: PathBuf) -> PyResult<u64> {
    Ok(py.detach(|| capture::merge(&parts, &capture_path))?)
}

/// The rows of a file; those of an unknown kind are passed over, a torn last row ends it.
struct Rows(BufReader<File>);

impl Iterator for Rows {
    type Item = Item<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = [0; RECORD_BYTES];
        loop {
            match self.0.read_exact(&mut bytes) {
                Ok(()) => {}
                Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return None,
                Err(e) => return Some(Err(e)),
            }
            if let Some(row) = Record::from_bytes(&bytes) {
                return Some(Ok((row.time_ns, row)));
            }
        }
    }
}
