//! Rate controllers that are Python code: an object with `on_feedback(now_ns, delay_ns, value, told)`.
//!
//! ```text
//! feedback ─► Observation ─► on_feedback ─► samples a packet, or bit/s ─► fragments, rate_bps
//! ```
//! One call for each thing that is learnt. What it answers holds until the next call.

use crate::{
    calls::{interrupted, label, times, told},
    transport::described,
};
use pyo3::{exceptions::PyValueError, intern, prelude::*, types::PyBool};
use std::ffi::CStr;
use tcps_core::{
    rate::{Feedback, RateController, Sent, Steers},
    time::Time,
};
use tcps_plan::CodePlan;
use tcps_run::crash;
use tcps_transport::{ChannelContext, Side};
use tcps_wire::telehaptic::MOST_FRAGMENTS;

/// What a sender has learnt of its packets.
#[pyclass(module = "tcpsbed._tcps", frozen, get_all)]
pub struct Observation {
    /// `delay`, `report`, `round_trip`, `arrival` or `silence`.
    kind: &'static str,
    /// Of a delay: false if the same measurement has been told before.
    fresh: bool,
    /// Of an arrival: true if the packet never came.
    lost: bool,
    /// Of an arrival: when the packet left; of a delay: when its earliest sample was made. On this node's clock.
    sent_ns: Option<Time>,
    /// Of an arrival: when it came, on the receiver's clock from a moment that nobody knows.
    arrived_ns: Option<Time>,
    /// The round trip, where one is known: of a delay it is the sum of both ways.
    round_trip_ns: Option<Time>,
    /// Size of the packet as links account for it.
    wire_bytes: u32,
    /// Of a delay: samples in the packet.
    fragments: u8,
    /// Of a report: share of packets lost.
    loss: Option<f64>,
    /// Of a report: smoothed jitter.
    jitter_ns: Option<Time>,
}

impl Observation {
    fn new(kind: &'static str) -> Self {
        Self {
            kind,
            fresh: true,
            lost: false,
            sent_ns: None,
            arrived_ns: None,
            round_trip_ns: None,
            wire_bytes: 0,
            fragments: 0,
            loss: None,
            jitter_ns: None,
        }
    }

    /// Feedback with the delay that it tells of.
    fn of(feedback: &Feedback) -> (Option<Time>, Self) {
        match *feedback {
            Feedback::Delay(d) => {
                let (sent_ns, round_trip_ns) =
                    (Some(d.generated_ns), Some(d.delay_ns.saturating_add(d.reverse_ns)));
                let (fresh, wire_bytes, fragments) = (d.fresh, d.wire_bytes, d.fragments);
                let told =
                    Self { fresh, sent_ns, round_trip_ns, wire_bytes, fragments, ..Self::new("delay") };
                (Some(d.delay_ns), told)
            }
            Feedback::Report(r) => {
                let told = Self { loss: Some(r.loss), jitter_ns: Some(r.jitter_ns), ..Self::new("report") };
                (Some(r.mean_delay_ns), told)
            }
            Feedback::RoundTrip(t) => (Some(t), Self { round_trip_ns: Some(t), ..Self::new("round_trip") }),
            Feedback::Arrival(a) => {
                let (lost, sent_ns) = (a.arrived_ns.is_none(), Some(a.sent_ns));
                let round_trip_ns = (!lost).then_some(a.round_trip_ns);
                let (arrived_ns, wire_bytes) = (a.arrived_ns, a.wire_bytes);
                let told =
                    Self { lost, sent_ns, arrived_ns, round_trip_ns, wire_bytes, ..Self::new("arrival") };
                (arrived_ns.map(|t| t.saturating_sub(a.sent_ns)), told)
            }
            Feedback::Silence => (None, Self::new("silence")),
        }
    }
}

/// What it steers, as it is now.
#[derive(Debug, Clone, Copy)]
enum Value {
    Fragments(u8),
    Bps(f64),
}

impl Value {
    /// What the object answers; `None` leaves it as it is.
    fn answered(self, name: &CStr, answer: &Bound<'_, PyAny>) -> PyResult<Self> {
        if answer.is_none() {
            return Ok(self);
        }
        let refused = |allowed: String| {
            let name = name.to_string_lossy();
            PyValueError::new_err(format!(
                "on_feedback of {name} returned {answer}; allowed: None or {allowed}"
            ))
        };
        let is_flag = answer.is_instance_of::<PyBool>();
        match self {
            Self::Fragments(_) => {
                let k = answer.extract::<u8>().ok().filter(|k| !is_flag && (1..=MOST_FRAGMENTS).contains(k));
                let allowed = || format!("a whole number of samples from 1 to {MOST_FRAGMENTS}");
                k.map(Self::Fragments).ok_or_else(|| refused(allowed()))
            }
            Self::Bps(_) => {
                let bps =
                    answer.extract::<f64>().ok().filter(|bps| !is_flag && bps.is_finite() && *bps >= 0.0);
                bps.map(Self::Bps).ok_or_else(|| refused("a finite rate in bit/s from 0 on".into()))
            }
        }
    }
}

/// A controller whose rule is a Python object.
struct PythonController {
    name: &'static CStr,
    on_feedback: Py<PyAny>,
    on_sent: Option<Py<PyAny>>,
    value: Value,
    failures: u64,
    error: Option<String>,
}

/// The rate controller of `module:Class` at one side of a channel.
pub fn load(
    py: Python<'_>,
    code: &CodePlan,
    steers: Steers,
    side: Side,
    channel: &ChannelContext,
) -> PyResult<Box<dyn RateController>> {
    crash::watch();
    let arguments = (&code.name, &code.symbol, code.params.to_string(), described(side, channel));
    let loader = py.import("tcpsbed.hooks")?.getattr("load_controller")?;
    let name = label("controller", code);
    let object = crash::named(name, || loader.call1(arguments))?;
    Ok(Box::new(PythonController {
        name,
        on_feedback: object.getattr(intern!(py, "on_feedback"))?.unbind(),
        on_sent: object.getattr_opt(intern!(py, "on_sent"))?.map(Bound::unbind),
        value: if steers == Steers::Rate { Value::Bps(f64::INFINITY) } else { Value::Fragments(1) },
        failures: 0,
        error: None,
    }))
}

impl PythonController {
    fn call(&mut self, call: impl FnOnce(&Self, Python<'_>) -> PyResult<Value>) {
        if interrupted() {
            return;
        }
        let name = self.name;
        Python::attach(|py| match crash::named(name, || call(self, py)) {
            Ok(value) => self.value = value,
            Err(e) => {
                self.failures += 1;
                let text = told(py, &e);
                self.error.get_or_insert(text);
            }
        });
    }

    /// The value as the object is told it.
    fn shown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.value {
            Value::Fragments(k) => Ok(k.into_pyobject(py)?.into_any()),
            Value::Bps(bps) => Ok(bps.into_pyobject(py)?.into_any()),
        }
    }
}

impl RateController for PythonController {
    fn feedback(&mut self, now: Time, feedback: &Feedback) {
        let (delay_ns, told) = Observation::of(feedback);
        self.call(|this, py| {
            let answer = this.on_feedback.bind(py).call1((now, delay_ns, this.shown(py)?, told))?;
            this.value.answered(this.name, &answer)
        });
    }

    fn sent(&mut self, now: Time, packet: &Sent) {
        if self.on_sent.is_some() {
            self.call(|this, py| {
                let on_sent = this.on_sent.as_ref().map(|f| f.bind(py));
                on_sent.map(|f| f.call1((now, packet.wire_bytes, packet.fragments))).transpose()?;
                Ok(this.value)
            });
        }
    }

    fn fragments(&mut self, _now: Time) -> u8 {
        match self.value {
            Value::Fragments(k) => k,
            Value::Bps(_) => 1,
        }
    }

    fn keep_within(&mut self, range_bps: [f64; 2]) {
        self.value = Value::Bps(range_bps[1]);
    }

    fn rate_bps(&self) -> Option<f64> {
        match self.value {
            Value::Fragments(_) => None,
            Value::Bps(bps) => Some(bps),
        }
    }

    fn failure(&self) -> Option<String> {
        self.error.as_ref().map(|text| format!("{text}, {}", times(self.failures)))
    }
}
