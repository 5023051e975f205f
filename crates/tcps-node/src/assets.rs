//! From the code and files named in a plan to what a node calls and reads; who gets at them is a driver's business.

use serde_json::Value;
use tcps_control::ControlError;
use tcps_core::{
    endpoint::Endpoint,
    hook::Hook,
    rate::{RateController, Steers},
    record::StepKind,
    robot::Robot,
};
use tcps_plan::{CodeKind, CodePlan, RunError, WorkerPlan};
use tcps_transport::{ChannelContext, Side};

/// The hook whose parameters may name further code.
const SUPERVISOR: &str = "supervisor";
/// The parameter of a hook that has a process of its own, which Python makes: its limits.
const ISOLATED: &str = "tcpsbed:isolate";
/// The robot whose plant may be further code.
const STEP: &str = "step";
/// The kind of a plant that is code.
const CODE: &str = "code";

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

/// What a plan names and a node is handed: files, and code that is not built in. Only drivers can get at it.
pub trait Assets {
    /// The bytes of a file.
    fn file(&mut self, path: &str) -> Result<Vec<u8>, RunError>;
    /// A hook from a function of a shared library.
    fn library(&mut self, code: &CodePlan) -> Result<Box<dyn Hook>, RunError>;
    /// A hook from `module:name` in Python.
    fn hook(&mut self, code: &CodePlan, shape: Shape) -> Result<Box<dyn Hook>, RunError>;
    /// A robot from `module:Class` in Python.
    fn robot(&mut self, code: &CodePlan) -> Result<Box<dyn Robot>, RunError>;
    /// An endpoint from `module:Class` in Python.
    fn endpoint(
        &mut self,
        code: &CodePlan,
        side: Side,
        channel: &ChannelContext,
    ) -> Result<Box<dyn Endpoint>, RunError>;
    /// A rate controller from `module:Class` in Python.
    fn controller(
        &mut self,
        code: &CodePlan,
        steers: Steers,
        side: Side,
        channel: &ChannelContext,
    ) -> Result<Box<dyn RateController>, RunError>;
    /// Another one of itself, for components that are restarted.
    fn again(&self) -> Box<dyn Assets + Send>;
}

/// The hook of a step.
pub fn hook(code: &CodePlan, shape: Shape, assets: &mut dyn Assets) -> Result<Box<dyn Hook>, RunError> {
    match code.kind {
        CodeKind::Builtin => builtin(code, assets),
        CodeKind::Library if code.params.get(ISOLATED).is_none() => assets.library(code),
        CodeKind::Library | CodeKind::Python => assets.hook(code, shape),
    }
}

/// A built-in hook; the emergency agent of a supervisor may be any code.
fn builtin(code: &CodePlan, assets: &mut dyn Assets) -> Result<Box<dyn Hook>, RunError> {
    let agent = code.params.get("agent").filter(|_| code.name == SUPERVISOR);
    let Some(agent) = agent else { return tcps_control::hook(&code.name, &code.params).map_err(refused) };
    let agent: CodePlan = serde_json::from_value(agent.clone())
        .map_err(|e| RunError::config(format!("parameters of '{SUPERVISOR}': agent: {e}")))?;
    let agent = hook(&agent, Shape::VALUES, assets)?;
    tcps_control::supervised(&code.params, agent).map_err(refused)
}

fn refused(e: ControlError) -> RunError {
    RunError::of(&e, e.fault())
}

/// The robot of a component.
pub fn robot(code: &CodePlan, assets: &mut dyn Assets) -> Result<Box<dyn Robot>, RunError> {
    match code.kind {
        CodeKind::Builtin => builtin_robot(code, assets),
        CodeKind::Library => {
            Err(RunError::hook(format!("{}: a robot is built in or a Python class", code.name)))
        }
        CodeKind::Python => assets.robot(code),
    }
}

/// A built-in robot; the plant of a step may be any hook that turns k into y.
fn builtin_robot(code: &CodePlan, assets: &mut dyn Assets) -> Result<Box<dyn Robot>, RunError> {
    let plant = code.params.get("plant").filter(|plant| code.name == STEP && plant["kind"] == CODE);
    let Some(plant) = plant else { return tcps_control::robot(&code.name, &code.params).map_err(refused) };
    let plant: CodePlan = serde_json::from_value(plant["run"].clone())
        .map_err(|e| RunError::config(format!("parameters of '{STEP}': plant: {e}")))?;
    let plant = hook(&plant, Shape::VALUES, assets)?;
    tcps_control::moved(&code.params, plant).map_err(refused)
}

/// The endpoint of a transport, which is built in or a Python class `module:Class`, at one side of a channel.
pub fn endpoint(
    transport: &str,
    params: &Value,
    side: Side,
    channel: &ChannelContext,
    assets: &mut dyn Assets,
) -> Result<Box<dyn Endpoint>, RunError> {
    let code = CodePlan::named(transport, params.clone());
    match code.kind {
        CodeKind::Builtin => {
            let controller = controller(params, side, channel, assets)?;
            tcps_transport::led(transport, params, controller, side, channel)
                .map_err(|e| RunError::of(&e, e.fault()))
        }
        CodeKind::Library => {
            Err(RunError::hook(format!("{transport}: a transport is built in or a Python class")))
        }
        CodeKind::Python => assets.endpoint(&code, side, channel),
    }
}

/// The rate controller that the parameters of a transport name, if they do.
fn controller(
    params: &Value,
    side: Side,
    channel: &ChannelContext,
    assets: &mut dyn Assets,
) -> Result<Option<Box<dyn RateController>>, RunError> {
    let Some((code, steers)) = tcps_transport::controller(params) else { return Ok(None) };
    let code: CodePlan =
        serde_json::from_value(code.clone()).map_err(|e| RunError::config(format!("controller: {e}")))?;
    match code.kind {
        CodeKind::Python => assets.controller(&code, steers, side, channel).map(Some),
        _ => Err(RunError::hook(format!("{}: a rate controller is a Python class", code.label()))),
    }
}

/// For tests without files and code.
#[cfg(test)]
pub(crate) struct Nothing;

#[cfg(test)]
impl Assets for Nothing {
    fn file(&mut self, _: &str) -> Result<Vec<u8>, RunError> {
        unreachable!("no test reads a file")
    }
    fn library(&mut self, _: &CodePlan) -> Result<Box<dyn Hook>, RunError> {
        unreachable!("no test has a library")
    }
    fn hook(&mut self, _: &CodePlan, _: Shape) -> Result<Box<dyn Hook>, RunError> {
        unreachable!("no test has Python")
    }
    fn robot(&mut self, _: &CodePlan) -> Result<Box<dyn Robot>, RunError> {
        unreachable!("no test has Python")
    }
    fn endpoint(&mut self, _: &CodePlan, _: Side, _: &ChannelContext) -> Result<Box<dyn Endpoint>, RunError> {
        unreachable!("no test has Python")
    }
    fn controller(
        &mut self,
        _: &CodePlan,
        _: Steers,
        _: Side,
        _: &ChannelContext,
    ) -> Result<Box<dyn RateController>, RunError> {
        unreachable!("no test has Python")
    }
    fn again(&self) -> Box<dyn Assets + Send> {
        Box::new(Nothing)
    }
}
