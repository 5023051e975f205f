//! What a plan names of Python code, as nodes ask for it.

use crate::{calls::failed, hooks::load_hook, rate, robot::load_robot, transport};
use pyo3::prelude::*;
use tcps_core::{
    endpoint::Endpoint,
    hook::Hook,
    rate::{RateController, Steers},
    robot::Robot,
};
use tcps_node::assets::{Assets, Shape};
use tcps_plan::{CodePlan, RunError};
use tcps_run::{assets, library};
use tcps_transport::{ChannelContext, Side};

/// Makes what a plan names of Python code.
pub struct PythonHooks;

impl Assets for PythonHooks {
    fn file(&mut self, path: &str) -> Result<Vec<u8>, RunError> {
        assets::file(path)
    }

    fn library(&mut self, code: &CodePlan) -> Result<Box<dyn Hook>, RunError> {
        library::hook(code)
    }

    fn hook(&mut self, code: &CodePlan, shape: Shape) -> Result<Box<dyn Hook>, RunError> {
        Python::attach(|py| load_hook(py, code, shape)).map_err(|e| failed(code, &e))
    }

    fn robot(&mut self, code: &CodePlan) -> Result<Box<dyn Robot>, RunError> {
        Python::attach(|py| load_robot(py, code)).map_err(|e| failed(code, &e))
    }

    fn endpoint(
        &mut self,
        code: &CodePlan,
        side: Side,
        channel: &ChannelContext,
    ) -> Result<Box<dyn Endpoint>, RunError> {
        Python::attach(|py| transport::load(py, code, side, channel)).map_err(|e| failed(code, &e))
    }

    fn controller(
        &mut self,
        code: &CodePlan,
        steers: Steers,
        side: Side,
        channel: &ChannelContext,
    ) -> Result<Box<dyn RateController>, RunError> {
        Python::attach(|py| rate::load(py, code, steers, side, channel)).map_err(|e| failed(code, &e))
    }

    fn again(&self) -> Box<dyn Assets + Send> {
        Box::new(PythonHooks)
    }
}
