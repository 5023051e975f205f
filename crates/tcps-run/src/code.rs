//! From the code named in a plan to something that can be called.

use crate::{
    error::RunError,
    library,
    plan::{CodeKind, CodePlan, WorkerPlan},
};
use serde_json::Value;
use tcps_core::{endpoint::Endpoint, hook::Hook, record::StepKind, robot::Robot};
use tcps_transport::{ChannelContext, Side};

/// The hook whose parameters may name further code.
const SUPERVISOR: &str = "supervisor";

/// Which sides of a hook are coded bytes, and how many bytes there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// It is given bytes, not values.
    pub bytes_in: bool,
    /// It gives out bytes, not values.
    pub bytes_out: bool,
    /// Most bytes on either side.
    pub most_bytes: usize,
}

/// Most bytes of a sample that a hook in the loop is given or may write.
pub const MOST_BYTES: usize = 1 << 16;

impl Shape {
    /// Values on both sides.
    const VALUES: Self = Self { bytes_in: false, bytes_out: false, most_bytes: MOST_BYTES };

    /// A hook of this kind of stage that works in the loop.
    pub fn of(kind: StepKind) -> Self {
        Self { bytes_in: kind == StepKind::Decode, bytes_out: kind == StepKind::Code, most_bytes: MOST_BYTES }
    }

    /// A hook of this kind of stage that works in a thread of its own: pictures and sound are bytes all the way.
    pub fn of_worker(kind: StepKind, worker: &WorkerPlan) -> Self {
        Self {
            bytes_in: kind != StepKind::Capture,
            bytes_out: kind != StepKind::Show,
            most_bytes: worker.most_bytes as usize,
        }
    }
}

/// Makes hooks, robots and endpoints of Python code; only `tcps-py` can.
pub trait PythonCode {
    /// A hook from `module:name`.
    fn hook(&mut self, code: &CodePlan, shape: Shape) -> Result<Box<dyn Hook>, RunError>;
    /// A robot from `module:Class`.
    fn robot(&mut self, code: &CodePlan) -> Result<Box<dyn Robot>, RunError>;
    /// An endpoint from `module:Class`.
    fn endpoint(
        &mut self,
        code: &CodePlan,
        side: Side,
        channel: &ChannelContext,
    ) -> Result<Box<dyn Endpoint>, RunError>;
    /// Another one of itself, for components that are restarted.
    fn again(&self) -> Box<dyn PythonCode + Send>;
}

/// For drivers without Python: names the remedy.
#[derive(Debug, Default)]
pub struct NoPython;

impl PythonCode for NoPython {
    fn hook(&mut self, code: &CodePlan, _: Shape) -> Result<Box<dyn Hook>, RunError> {
        Err(no_python(code))
    }
    fn robot(&mut self, code: &CodePlan) -> Result<Box<dyn Robot>, RunError> {
        Err(no_python(code))
    }
    fn endpoint(
        &mut self,
        code: &CodePlan,
        _: Side,
        _: &ChannelContext,
    ) -> Result<Box<dyn Endpoint>, RunError> {
        Err(no_python(code))
    }
    fn again(&self) -> Box<dyn PythonCode + Send> {
        Box::new(NoPython)
    }
}

fn no_python(code: &CodePlan) -> RunError {
    RunError::new(format!("{}:{} needs Python, and this program runs without it", code.name, code.symbol))
}

/// The hook of a step.
pub fn hook(code: &CodePlan, shape: Shape, python: &mut dyn PythonCode) -> Result<Box<dyn Hook>, RunError> {
    match code.kind {
        CodeKind::Builtin => builtin(code, python),
        CodeKind::Library => library::hook(code),
        CodeKind::Python => python.hook(code, shape),
    }
}

/// A built-in hook; the emergency agent of a supervisor may be any code.
fn builtin(code: &CodePlan, python: &mut dyn PythonCode) -> Result<Box<dyn Hook>, RunError> {
    let refused = |e: tcps_control::ControlError| RunError::new(e.to_string());
    let agent = code.params.get("agent").filter(|_| code.name == SUPERVISOR);
    let Some(agent) = agent else { return tcps_control::hook(&code.name, &code.params).map_err(refused) };
    let agent: CodePlan = serde_json::from_value(agent.clone())
        .map_err(|e| RunError::new(format!("parameters of '{SUPERVISOR}': agent: {e}")))?;
    let agent = hook(&agent, Shape::VALUES, python)?;
    tcps_control::supervised(&code.params, agent).map_err(refused)
}

/// The robot of a component.
pub fn robot(code: &CodePlan, python: &mut dyn PythonCode) -> Result<Box<dyn Robot>, RunError> {
    match code.kind {
        CodeKind::Builtin => {
            tcps_control::robot(&code.name, &code.params).map_err(|e| RunError::new(e.to_string()))
        }
        CodeKind::Library => {
            Err(RunError::new(format!("{}: a robot is built in or a Python class", code.name)))
        }
        CodeKind::Python => python.robot(code),
    }
}

/// The endpoint of a transport, which is built in or a Python class `module:Class`, at one side of a channel.
pub fn endpoint(
    transport: &str,
    params: &Value,
    side: Side,
    channel: &ChannelContext,
    python: &mut dyn PythonCode,
) -> Result<Box<dyn Endpoint>, RunError> {
    let code = CodePlan::named(transport, params.clone());
    match code.kind {
        CodeKind::Builtin => tcps_transport::endpoint(transport, params, side, channel)
            .map_err(|e| RunError::new(e.to_string())),
        CodeKind::Library => {
            Err(RunError::new(format!("{transport}: a transport is built in or a Python class")))
        }
        CodeKind::Python => python.endpoint(&code, side, channel),
    }
}
