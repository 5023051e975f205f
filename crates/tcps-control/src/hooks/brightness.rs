//! Code `grey` and decode `brightness`: a value as the brightness of a picture, and found again in what is seen.
//!
//! ```text
//! grey        value a  ->  a picture of `pixels` bytes whose mean is a unit      levels between whole ones are dithered
//! brightness  picture  ->  mean / unit
//! ```
//! The feedback of a step by light (Polachan 2022).

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

use super::{emit, too_few};

/// Most pixels of a picture.
const MOST: f64 = 65_536.0;

params! {
    /// Parameters.
    #[derive(Copy)]
    pub(crate) struct Params {
        pixels: usize = Count, "20000", 1.0..=MOST, "pixels of a picture, a byte each";
        unit: f64 = Number, "50", POSITIVE, "grey level of the value 1";
    }
}

/// The code hook.
#[derive(Debug, Clone)]
pub struct Grey {
    params: Params,
    picture: Vec<u8>,
}

impl Grey {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        Ok(Self { params: Params::of(params)?, picture: Vec::new() })
    }
}

impl Hook for Grey {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let Some(&value) = input.x().first().filter(|v| v.is_finite()) else {
            return too_few("a value", input.x());
        };
        let level = (value * self.params.unit).clamp(0.0, 255.0);
        let (low, share) = (libm::floor(level), level - libm::floor(level));
        let brighter = libm::round(share * self.params.pixels as f64) as usize;
        self.picture.clear();
        self.picture.resize(self.params.pixels, low as u8);
        self.picture.iter_mut().take(brighter).for_each(|pixel| *pixel = pixel.saturating_add(1));
        output.set_bytes(&self.picture);
        Verdict::Emit
    }
}

/// The decode hook.
#[derive(Debug, Clone)]
pub struct Brightness {
    params: Params,
}

impl Brightness {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        Ok(Self { params: Params::of(params)? })
    }
}

impl Hook for Brightness {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let pixels = input.bytes().len();
        if pixels == 0 {
            return Verdict::Failed("needs a picture; found none".into());
        }
        let sum: u64 = input.bytes().iter().map(|pixel| u64::from(*pixel)).sum();
        emit(output, &[sum as f64 / pixels as f64 / self.params.unit])
    }
}
