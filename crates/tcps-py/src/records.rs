//! Rows of a run: merged, analysed.

use crate::{
    errors::raised,
    json::{plan_of, text},
};
use pyo3::prelude::*;
use std::{
    fs::File,
    io::{BufReader, Read},
    path::PathBuf,
};
use tcps_analysis as analysis;
use tcps_core::record::{DropReason, Kind, Record, StepKind, RECORD_BYTES};
use tcps_run::{
    os::merge::{Item, Merge},
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

/// Merges files of rows, each nearly in order of time, into one; returns the number of rows and the SHA-256.
#[pyfunction]
pub fn merge(py: Python<'_>, parts: Vec<PathBuf>, records_path: PathBuf) -> PyResult<(u64, String)> {
    py.detach(|| {
        let open = |part: &PathBuf| Ok(Rows(BufReader::with_capacity(1 << 18, File::open(part)?)));
        let streams = parts.iter().map(open).collect::<std::io::Result<Vec<_>>>()?;
        let mut recorder = Recorder::new(Some(&records_path)).map_err(raised)?;
        for row in Merge::new(streams)? {
            recorder.push(&row?);
            if recorder.failed() {
                break;
            }
        }
        let recorded = recorder.finish().map_err(raised)?;
        Ok((recorded.rows, recorded.sha256))
    })
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
