//! Code `tone` and decode `loudness`: a value as the loudness of a tone, and found again in what is heard.
//!
//! ```text
//! tone      value a  ->  a unit 32767 sin(2 pi pitch t)      frames of `samples` of 16 bits, little-endian
//! loudness  frame    ->  sqrt(2 mean(s^2)) / (unit 32767)
//! ```
//! The feedback of a step by sound (Polachan 2022). Frames hold whole periods of the tone, so that nothing but rounding is lost.

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

use super::{emit, too_few};

const FULL: f64 = 32_767.0;
/// Bytes of a sample.
const SAMPLE: usize = 2;
/// Most samples in a frame.
const MOST: f64 = 16_384.0;

params! {
    /// Parameters.
    #[derive(Copy)]
    pub(crate) struct Params {
        samples: usize = Count, "160", 4.0..=MOST, "samples in a frame";
        periods: u32 = Count, "8", 1.0..=4096.0, "periods of the tone in a frame";
        unit: f64 = Number, "0.2", POSITIVE, "share of full scale for the value 1";
    }
}

fn read(params: &Value) -> Result<Params, Fault> {
    let p = Params::of(params)?;
    match 4 * p.periods as usize <= p.samples {
        true => Ok(p),
        false => {
            Err(Fault::new("periods", p.periods, format!("at most a fourth of samples = {}", p.samples)))
        }
    }
}

/// The code hook.
#[derive(Debug, Clone)]
pub struct Tone {
    params: Params,
    frame: Vec<u8>,
}

impl Tone {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        Ok(Self { params: read(params)?, frame: Vec::new() })
    }
}

impl Hook for Tone {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let Some(&value) = input.x().first().filter(|v| v.is_finite()) else {
            return too_few("a value", input.x());
        };
        let p = self.params;
        let loudest = value * p.unit * FULL;
        let turn = 2.0 * std::f64::consts::PI * f64::from(p.periods) / p.samples as f64;
        self.frame.clear();
        for n in 0..p.samples {
            let heard = libm::round(loudest * libm::sin(turn * n as f64)).clamp(-FULL, FULL);
            self.frame.extend_from_slice(&(heard as i16).to_le_bytes());
        }
        output.set_bytes(&self.frame);
        Verdict::Emit
    }
}

/// The decode hook.
#[derive(Debug, Clone)]
pub struct Loudness {
    params: Params,
}

impl Loudness {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        Ok(Self { params: read(params)? })
    }
}

impl Hook for Loudness {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present == 0 {
            return Verdict::Nothing;
        }
        let samples = input.bytes().len() / SAMPLE;
        if samples == 0 {
            return Verdict::Failed("needs a frame of sound; found none".into());
        }
        let sound = input.bytes().chunks_exact(SAMPLE).map(|s| f64::from(i16::from_le_bytes([s[0], s[1]])));
        let power = sound.map(|s| s * s).sum::<f64>() / samples as f64;
        emit(output, &[libm::sqrt(2.0 * power) / (self.params.unit * FULL)])
    }
}
