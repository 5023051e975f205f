//! Sampler `level_crossing`: a sample goes if a value of it has crossed a level since the last one.
//!
//! ```text
//! levels   0, ±floor, ±floor (1 + δ), ±floor (1 + δ)^2 …        cell of a value: which levels it lies between
//! ```
//! The error at a receiver that holds is below δ of the value, or below the floor. Nothing keeps a signal that trembles
//! around a level from going at every crossing.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

use super::{must_go, verdict, SHARES};

params! {
    /// Parameters.
    pub struct Params {
        delta: f64 = Number, "0.10", SHARES, "share by which each level exceeds the previous one";
        floor: f64 = Number, "0.01", POSITIVE, "the lowest level, in the unit of the values";
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct LevelCrossing {
    params: Params,
    last: Vec<i32>,
    cells: Vec<i32>,
}

impl LevelCrossing {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let params = Params::of(params)?;
        Ok(Self { params, last: Vec::new(), cells: Vec::new() })
    }

    /// 0 around zero, then 1, 2 … upwards and -1, -2 … downwards.
    fn cell(&self, value: f64) -> i32 {
        let above = value.abs() / self.params.floor;
        if above < 1.0 {
            return 0;
        }
        let level = 1.0 + libm::floor(libm::log(above) / libm::log1p(self.params.delta));
        libm::copysign(level, value) as i32
    }
}

// [model: level crossing] geometric grid with ratio 1 + δ
impl Hook for LevelCrossing {
    fn call(&mut self, input: &HookIn, _output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let mut cells = std::mem::take(&mut self.cells);
        cells.clear();
        cells.extend(input.x().iter().map(|&v| self.cell(v)));
        let crossed = cells != self.last;
        self.cells = std::mem::replace(&mut self.last, cells);
        verdict(crossed || must_go(input))
    }
}
