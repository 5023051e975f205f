//! Rows of a run: drained from rings, merged, analysed.

use crate::{plan_of, text};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::{
    fs::File,
    io::{BufReader, BufWriter, Read, Write},
    path::PathBuf,
};
use tcps_core::record::{Record, RECORD_BYTES};
use tcps_run::{analysis, real::ring::Consumer, recorder::Recorder};

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
    rings: Vec<(Consumer, BufWriter<File>)>,
    buffer: Vec<u8>,
}

#[pymethods]
impl Drain {
    /// `pairs`: (ring, file) each.
    #[new]
    fn new(pairs: Vec<(PathBuf, PathBuf)>) -> PyResult<Self> {
        let mut rings = Vec::new();
        for (ring, file) in pairs {
            let consumer = Consumer::open(&ring).map_err(|e| PyValueError::new_err(e.to_string()))?;
            rings.push((consumer, BufWriter::new(File::create(file)?)));
        }
        Ok(Self { rings, buffer: Vec::new() })
    }

    /// Moves all published rows to the files and returns them, unsorted.
    fn drain<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
        self.buffer.clear();
        for (ring, file) in &mut self.rings {
            let start = self.buffer.len();
            ring.drain(&mut self.buffer);
            file.write_all(&self.buffer[start..])?;
            file.flush()?;
        }
        Ok(pyo3::types::PyBytes::new(py, &self.buffer))
    }

    /// Rows lost in all rings.
    fn lost(&self) -> u64 {
        self.rings.iter().map(|(r, _)| r.lost()).sum()
    }
}

/// Merges files of rows, each in order of time, into one; returns the number of rows and the SHA-256.
#[pyfunction]
pub fn merge(py: Python<'_>, parts: Vec<PathBuf>, records_path: PathBuf) -> PyResult<(u64, String)> {
    py.detach(|| {
        let mut streams = Vec::new();
        for part in &parts {
            streams.push(Stream::open(part)?);
        }
        let fail = |e: tcps_run::error::RunError| PyValueError::new_err(e.to_string());
        let mut recorder = Recorder::new(Some(&records_path)).map_err(fail)?;
        // A handful of loops: the smallest head is found by looking at all.
        while let Some(s) =
            streams.iter_mut().filter(|s| s.head.is_some()).min_by_key(|s| s.head.map(|r| r.time_ns))
        {
            if let Some(row) = s.head {
                recorder.push(&row);
            }
            if recorder.failed() {
                break;
            }
            s.advance()?;
        }
        let recorded = recorder.finish().map_err(fail)?;
        Ok((recorded.rows, recorded.sha256))
    })
}

struct Stream {
    file: BufReader<File>,
    head: Option<Record>,
}

impl Stream {
    fn open(path: &PathBuf) -> std::io::Result<Self> {
        let mut s = Self { file: BufReader::with_capacity(1 << 18, File::open(path)?), head: None };
        s.advance()?;
        Ok(s)
    }

    /// The next row; rows of an unknown kind are passed over, a torn last row ends the stream.
    fn advance(&mut self) -> std::io::Result<()> {
        let mut bytes = [0; RECORD_BYTES];
        loop {
            match self.file.read_exact(&mut bytes) {
                Ok(()) => {}
                Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                    self.head = None;
                    return Ok(());
                }
                Err(e) => return Err(e),
            }
            if let Some(row) = Record::from_bytes(&bytes) {
                self.head = Some(row);
                return Ok(());
            }
        }
    }
}
