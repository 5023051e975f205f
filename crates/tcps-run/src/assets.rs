//! What plans name, from this machine's disk: files and shared libraries.

use crate::library;
use std::fs;
use tcps_core::{
    endpoint::Endpoint,
    hook::Hook,
    param::Named,
    rate::{RateController, Steers},
    robot::Robot,
};
use tcps_net::own::{DelayCode, ForeignCode, LossCode, QueueCode, SourceCode};
use tcps_node::assets::{Assets, Shape};
use tcps_plan::{CodeKind, CodePlan, RunError};
use tcps_transport::{ChannelContext, Side};

/// The bytes of a file.
pub fn file(path: &str) -> Result<Vec<u8>, RunError> {
    fs::read(path).map_err(|e| RunError::data(format!("{path}: {e}")))
}

/// The assets of a driver without Python: names the remedy where a plan asks for it.
#[derive(Debug, Default)]
pub struct Disk;

impl Assets for Disk {
    fn file(&mut self, path: &str) -> Result<Vec<u8>, RunError> {
        file(path)
    }
    fn library(&mut self, code: &CodePlan) -> Result<Box<dyn Hook>, RunError> {
        library::hook(code)
    }
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
    fn controller(
        &mut self,
        code: &CodePlan,
        _: Steers,
        _: Side,
        _: &ChannelContext,
    ) -> Result<Box<dyn RateController>, RunError> {
        Err(no_python(code))
    }
    fn again(&self) -> Box<dyn Assets + Send> {
        Box::new(Disk)
    }
}

impl ForeignCode for Disk {
    fn queue(&mut self, named: &Named, _: &str, _: u64) -> Result<Box<dyn QueueCode>, RunError> {
        in_library(named, library::queue)
    }

    fn loss(&mut self, named: &Named, _: &str, _: u64) -> Result<Box<dyn LossCode>, RunError> {
        in_library(named, library::loss)
    }

    fn delay(&mut self, named: &Named, _: &str, _: u64) -> Result<Box<dyn DelayCode>, RunError> {
        in_library(named, library::delay)
    }

    fn source(&mut self, named: &Named, _: &str, _: u64) -> Result<Box<dyn SourceCode>, RunError> {
        in_library(named, library::source)
    }
}

fn in_library<T>(named: &Named, load: fn(&CodePlan) -> Result<T, RunError>) -> Result<T, RunError> {
    let code = CodePlan::named(&named.kind, named.params.clone());
    match code.kind {
        CodeKind::Library => load(&code),
        _ => Err(no_python(&code)),
    }
}

fn no_python(code: &CodePlan) -> RunError {
    RunError::hook(format!("{}:{} needs Python, and this program runs without it", code.name, code.symbol))
}
