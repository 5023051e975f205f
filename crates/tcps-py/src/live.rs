//! Rows of a run that goes on.

use crate::json::plan_of;
use pyo3::{prelude::*, types::PyBytes};
use tcps_analysis::{live::Live, Options};
use tcps_core::{
    record::{Kind, Record, RECORD_BYTES},
    time::Time,
};

/// Sent, delivered, lost, the share that is lost, the mean delay in ns.
type Totals = (u64, u64, u64, f64, Option<f64>);

/// What became of the samples of all flows so far.
#[pyclass(module = "tcpsbed._tcps")]
pub struct Ledger(Live);

#[pymethods]
impl Ledger {
    #[new]
    fn new(plan_json: &str, warmup_ns: Time, grace_ns: Time) -> PyResult<Self> {
        let options = Options { warmup_ns, grace_ns, ..Options::default() };
        Ok(Self(Live::new(&plan_of(plan_json)?, options)))
    }

    /// Takes rows; a byte for each says whether it is an arrival and of what sort.
    fn add<'py>(&mut self, py: Python<'py>, rows: &[u8]) -> Bound<'py, PyBytes> {
        let unknown = || Record::new(0, Kind::Hop);
        let row = |bytes: &[u8]| bytes.try_into().ok().and_then(Record::from_bytes).unwrap_or_else(unknown);
        let rows: Vec<_> = rows.chunks_exact(RECORD_BYTES).map(row).collect();
        PyBytes::new(py, &self.0.add(&rows))
    }

    fn totals(&self, now_ns: Time) -> Vec<Totals> {
        let told = self.0.totals(now_ns);
        told.map(|t| (t.sent, t.delivered, t.lost, t.loss, t.delay_ns)).collect()
    }

    fn counts(&self) -> Vec<(u64, u64)> {
        self.0.counts().collect()
    }

    fn losses(&self, from_ns: Time, to_ns: Time) -> Vec<Option<f64>> {
        self.0.losses(from_ns, to_ns).collect()
    }

    fn forget(&mut self) {
        self.0.forget();
    }

    #[getter]
    fn last_ns(&self) -> Time {
        self.0.last_ns
    }
}
