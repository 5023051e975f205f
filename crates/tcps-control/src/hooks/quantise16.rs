//! Codec `quantise16` and `dequantise16`: 16-bit fixed point in network order, half the size of 4-byte floats.
//!
//! `code = round(x / resolution)`, cut at ±32767 · resolution; a value that is not a number becomes 0. Both ends are given
//! the same resolution.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

use super::emit;

const MOST: f64 = i16::MAX as f64;

params! {
    /// Parameters.
    pub struct Params {
        resolution: f64 = Number, "1e-4", POSITIVE, "step between two codes, in the unit of the values";
    }
}

/// Values to bytes.
#[derive(Debug, Clone)]
pub struct Quantise16 {
    resolution: f64,
    bytes: Vec<u8>,
}

impl Quantise16 {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        Ok(Self { resolution: Params::of(params)?.resolution, bytes: Vec::new() })
    }
}

impl Hook for Quantise16 {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        self.bytes.clear();
        for x in input.x() {
            let code = libm::round(x / self.resolution).clamp(-MOST, MOST) as i16;
            self.bytes.extend_from_slice(&code.to_be_bytes());
        }
        output.set_bytes(&self.bytes);
        Verdict::Emit
    }
}

/// Bytes to values.
#[derive(Debug, Clone)]
pub struct Dequantise16 {
    resolution: f64,
    values: Vec<f64>,
}

impl Dequantise16 {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        Ok(Self { resolution: Params::of(params)?.resolution, values: Vec::new() })
    }
}

impl Hook for Dequantise16 {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let pairs = input.bytes().chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Verdict::Failed(format!("{} bytes: 2 a value", input.bytes().len()));
        }
        self.values.clear();
        self.values.extend(pairs.map(|pair| i16::from_be_bytes([pair[0], pair[1]]) as f64 * self.resolution));
        emit(output, &self.values)
    }
}
