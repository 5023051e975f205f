//! Transports that are Python code: an endpoint is an object with `on_input(now_ns, kind, data, out)`.
//!
//! ```text
//! handle_input ─► Incoming (reused) ─► on_input ─► Outgoing (reused): transmit, deliver, wake_at ─► poll_output
//! ```
//! One call an event. What an endpoint wants done stays in Rust until the driver asks for it.

use crate::calls::{interrupted, label, times, told};
use pyo3::{exceptions::PyValueError, intern, prelude::*, types::PyBytes};
use std::{borrow::Cow, ffi::CStr};
use tcps_core::{
    endpoint::{Again, Delivery, Endpoint, EndpointStats, Input, Output, Transmit},
    ids::FlowId,
    sample::{Echo, Meta},
    time::Time,
};
use tcps_plan::{CodePlan, OVERHEAD_BYTES};
use tcps_run::crash;
use tcps_transport::{ChannelContext, Outbox, Side};
use tcps_wire::echo;

/// What has happened to an endpoint; valid during the call only.
#[pyclass(module = "tcpsbed._tcps")]
pub struct Incoming {
    /// The bytes of the sample or of the datagram.
    #[pyo3(get)]
    bytes: Py<PyBytes>,
    /// Of a sample: its flow.
    #[pyo3(get)]
    flow: u16,
    /// Of a sample: its number.
    #[pyo3(get)]
    index: u32,
    /// Of a sample: when it was made.
    #[pyo3(get)]
    origin_ns: i64,
    /// Of a sample: the echo command on it, for the other side; empty if there is none.
    #[pyo3(get)]
    echo: Py<PyBytes>,
    /// Of a datagram: when the kernel had it.
    #[pyo3(get)]
    received_ns: i64,
}

/// What an endpoint wants done.
#[pyclass(module = "tcpsbed._tcps")]
pub struct Outgoing {
    outbox: Outbox,
    received_ns: Time,
    wake_ns: Option<Time>,
    stats: EndpointStats,
}

#[pymethods]
impl Outgoing {
    /// Sends a datagram, for the flow and the (first) sample in it; links are charged `wire_bytes`. `again`: all of it was
    /// sent before.
    #[pyo3(signature = (datagram, flow, index, wire_bytes=None, again=false))]
    fn transmit(
        &mut self,
        datagram: Cow<'_, [u8]>,
        flow: u16,
        index: u32,
        wire_bytes: Option<u32>,
        again: bool,
    ) {
        let wire_bytes = wire_bytes.unwrap_or(datagram.len() as u32 + OVERHEAD_BYTES);
        let again = if again { Again::All } else { Again::Nothing };
        let output = Output::Transmit(Transmit::new(wire_bytes, FlowId(flow), index).again(again));
        self.outbox.push(output, |buffer| buffer.extend_from_slice(&datagram));
    }

    /// Hands a sample to the local side, with the echo command that came with it.
    #[pyo3(signature = (flow, index, origin_ns, sample, echo=None))]
    fn deliver(
        &mut self,
        flow: u16,
        index: u32,
        origin_ns: i64,
        sample: Cow<'_, [u8]>,
        echo: Option<&[u8]>,
    ) -> PyResult<()> {
        let echo = echo.filter(|e| !e.is_empty()).map(command).transpose()?;
        let meta = Meta { flow: FlowId(flow), index, origin_ns, echo };
        let output = Output::Deliver(Delivery { meta, received_ns: self.received_ns });
        self.outbox.push(output, |buffer| buffer.extend_from_slice(&sample));
        Ok(())
    }

    /// Asks for a call with `"timeout"` at `t_ns`; `None` takes it back.
    #[pyo3(signature = (t_ns))]
    fn wake_at(&mut self, t_ns: Option<i64>) {
        self.wake_ns = t_ns;
    }

    /// Counts a datagram that is not what it should be.
    fn malformed(&mut self) {
        self.stats.malformed += 1;
    }

    /// Counts a datagram that repeats something already had.
    fn duplicate(&mut self) {
        self.stats.duplicates += 1;
    }

    /// Counts a sample that is given up because a part of it never came.
    fn incomplete(&mut self) {
        self.stats.incomplete += 1;
    }
}

fn command(bytes: &[u8]) -> PyResult<Echo> {
    let packet = echo::Packet::new_checked(bytes).and_then(|p| echo::Repr::parse(&p, 0));
    packet.map(|r| r.echo).map_err(|e| PyValueError::new_err(format!("echo command: {e}")))
}

/// An endpoint whose state machine is a Python object.
struct PythonEndpoint {
    name: &'static CStr,
    on_input: Py<PyAny>,
    incoming: Py<Incoming>,
    outgoing: Py<Outgoing>,
    none: Py<PyBytes>,
    outbox: Outbox,
    wake_ns: Option<Time>,
    failures: u64,
    error: Option<String>,
}

/// Name, side, seed, and flows: number, whether it arrives here, name, period.
type Described<'c> = (&'c str, &'static str, u64, Vec<(u16, bool, &'c str, Time)>);

/// A channel as `tcpsbed.hooks` is told it.
pub fn described(side: Side, channel: &ChannelContext) -> Described<'_> {
    let flows = channel.flows.iter().map(|f| (f.flow.0, f.to == side, f.name.as_str(), f.period_ns));
    let at = if side == Side::A { "a" } else { "b" };
    (channel.name.as_str(), at, channel.seed, flows.collect())
}

/// The endpoint of `module:Class` at one side of a channel.
pub fn load(
    py: Python<'_>,
    code: &CodePlan,
    side: Side,
    channel: &ChannelContext,
) -> PyResult<Box<dyn Endpoint>> {
    crash::watch();
    let arguments = (&code.name, &code.symbol, code.params.to_string(), described(side, channel));
    let loader = py.import("tcpsbed.hooks")?.getattr("load_transport")?;
    let endpoint = crash::named(label("transport", code), || loader.call1(arguments))?;
    let none = PyBytes::new(py, &[]).unbind();
    let (bytes, echo) = (none.clone_ref(py), none.clone_ref(py));
    let incoming = Incoming { bytes, flow: 0, index: 0, origin_ns: 0, echo, received_ns: 0 };
    let stats = EndpointStats::default();
    let outgoing = Outgoing { outbox: Outbox::default(), received_ns: 0, wake_ns: None, stats };
    Ok(Box::new(PythonEndpoint {
        name: label("transport", code),
        on_input: endpoint.getattr(intern!(py, "on_input"))?.unbind(),
        incoming: Py::new(py, incoming)?,
        outgoing: Py::new(py, outgoing)?,
        none,
        outbox: Outbox::default(),
        wake_ns: None,
        failures: 0,
        error: None,
    }))
}

impl PythonEndpoint {
    /// Puts an input where the object sees it; returns its kind.
    fn show<'py>(&self, py: Python<'py>, input: &Input<'_>) -> &'py Bound<'py, pyo3::types::PyString> {
        let mut shown = self.incoming.bind(py).borrow_mut();
        match *input {
            Input::Timeout => {
                shown.bytes = self.none.clone_ref(py);
                intern!(py, "timeout")
            }
            Input::Datagram { bytes, received_ns, .. } => {
                shown.bytes = PyBytes::new(py, bytes).unbind();
                shown.received_ns = received_ns;
                intern!(py, "datagram")
            }
            Input::Sample { meta, bytes } => {
                shown.bytes = PyBytes::new(py, bytes).unbind();
                (shown.flow, shown.index, shown.origin_ns) = (meta.flow.0, meta.index, meta.origin_ns);
                shown.echo = meta.echo.map_or_else(|| self.none.clone_ref(py), |e| packed(py, e));
                intern!(py, "sample")
            }
        }
    }

    fn call(&mut self, py: Python<'_>, now: Time, input: &Input<'_>) {
        let kind = self.show(py, input);
        let (received_ns, timeout) = match input {
            Input::Datagram { received_ns, .. } => (*received_ns, false),
            Input::Timeout => (now, true),
            Input::Sample { .. } => (now, false),
        };
        let outgoing = self.outgoing.bind(py);
        {
            let mut out = outgoing.borrow_mut();
            std::mem::swap(&mut out.outbox, &mut self.outbox);
            out.received_ns = received_ns;
            out.wake_ns = self.wake_ns.filter(|_| !timeout);
        }
        let answer = crash::named(self.name, || {
            self.on_input.bind(py).call1((now, kind, self.incoming.bind(py), outgoing))
        });
        let mut out = outgoing.borrow_mut();
        std::mem::swap(&mut out.outbox, &mut self.outbox);
        // A deadline that has passed is met at the next nanosecond, so that time goes on.
        self.wake_ns = out.wake_ns.map(|t| t.max(now.saturating_add(1)));
        if let Err(e) = answer {
            self.failures += 1;
            out.stats.malformed += u64::from(matches!(input, Input::Datagram { .. }));
            self.error.get_or_insert(told(py, &e));
        }
    }
}

fn packed(py: Python<'_>, echo: Echo) -> Py<PyBytes> {
    let mut trailer = Vec::with_capacity(echo::trailer_bytes(1));
    echo::emit_count(1, &mut trailer);
    echo::Repr { sample: 0, echo }.emit(&mut trailer);
    PyBytes::new(py, &trailer).unbind()
}

impl Endpoint for PythonEndpoint {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        if !interrupted() {
            Python::attach(|py| self.call(py, now, &input));
        }
    }

    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.outbox.pop(buf)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.wake_ns
    }

    fn stats(&self) -> EndpointStats {
        Python::attach(|py| self.outgoing.bind(py).borrow().stats)
    }

    fn failure(&self) -> Option<String> {
        self.error.as_ref().map(|text| format!("{text}, {}", times(self.failures)))
    }
}
