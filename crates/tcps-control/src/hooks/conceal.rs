//! Predictor `conceal`: sound and pictures whose frame is missing (after the idea of ITU-T G.711 Appendix I).
//!
//! ```text
//! picture   the last frame again: it freezes
//! sound     16-bit samples, little-endian: the last pitch period again and again, fading to silence over `fade_ms`
//!           pitch = the lag within `pitch_hz` at which the last frames resemble themselves most
//! ```
//! It stands where frames arrive, with a period as long as that of frames: at a tick without a new one it gives its own.

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    param::{Fault, Params as _},
    params,
};

/// Sound that is kept to look for a period in, in samples.
const HISTORY: usize = 4096;
/// Bytes of a sample.
const SAMPLE: usize = 2;

/// What frames hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Medium {
    /// Bytes that may be shown again.
    Picture,
    /// Samples of 16 bits, one channel.
    Sound,
}

params! {
    /// Parameters.
    pub struct Params {
        medium: Medium = Choice(&["picture", "sound"]), "picture", ANY, "what frames hold";
        rate_hz: f64 = Number, "8000", POSITIVE, "sampling rate of the sound, in Hz";
        pitch_hz: [f64; 2] = Array(2, &Number), "[66, 400]", POSITIVE, "lowest and highest pitch of the search";
        fade_ms: f64 = Number, "60", POSITIVE, "time in which concealed sound fades to silence, in ms";
        most: u32 = Count, "10", 0.0..=4_294_967_295.0, "most frames concealed in a row; then there is no output";
    }
}

/// The hook.
#[derive(Debug, Clone)]
pub struct Conceal {
    params: Params,
    last: Vec<u8>,
    history: Vec<f64>,
    /// Samples concealed since the last frame, and the period that is repeated.
    gone: usize,
    period: Vec<f64>,
    missed: u32,
}

impl Conceal {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        let longest = p.rate_hz / p.pitch_hz[0];
        if p.pitch_hz[0] >= p.pitch_hz[1] || 2.0 * longest > HISTORY as f64 || p.rate_hz / p.pitch_hz[1] < 2.0
        {
            let allowed = format!("rising pitches, 2 to {} samples long", HISTORY / 2);
            return Err(Fault::new(
                "pitch_hz",
                format!("{:?} at rate_hz = {}", p.pitch_hz, p.rate_hz),
                allowed,
            ));
        }
        Ok(Self { params: p, last: Vec::new(), history: Vec::new(), gone: 0, period: Vec::new(), missed: 0 })
    }

    fn take(&mut self, frame: &[u8]) {
        self.last.clear();
        self.last.extend_from_slice(frame);
        (self.missed, self.gone) = (0, 0);
        self.period.clear();
        if self.params.medium == Medium::Sound {
            let sound = frame.chunks_exact(SAMPLE).map(|s| f64::from(i16::from_le_bytes([s[0], s[1]])));
            self.history.extend(sound);
            let beyond = self.history.len().saturating_sub(HISTORY);
            self.history.drain(..beyond);
        }
    }

    /// The newest sound, as long as its pitch: the lag at which it resembles what was before it most.
    fn find_period(&mut self) {
        let p = &self.params;
        let (least, most) = ((p.rate_hz / p.pitch_hz[1]) as usize, (p.rate_hz / p.pitch_hz[0]) as usize);
        let most = most.min(self.history.len() / 2);
        let window = &self.history[self.history.len() - most..];
        let alike = |lag: usize| {
            let before = &self.history[self.history.len() - most - lag..self.history.len() - lag];
            let (cross, power) = window
                .iter()
                .zip(before)
                .fold((0.0, 1.0), |(cross, power), (a, b)| (cross + a * b, power + b * b));
            cross / libm::sqrt(power)
        };
        let best = (least..=most).max_by(|a, b| alike(*a).total_cmp(&alike(*b))).unwrap_or(most);
        self.period.extend_from_slice(&self.history[self.history.len() - best..]);
    }

    /// A frame of sound as long as the last one.
    fn continued(&mut self) {
        if self.period.is_empty() {
            self.find_period();
        }
        let fade = self.params.fade_ms * 1e-3 * self.params.rate_hz;
        for sample in self.last.chunks_exact_mut(SAMPLE) {
            let loudness = (1.0 - self.gone as f64 / fade).max(0.0);
            let heard = self.period.get(self.gone % self.period.len().max(1)).map_or(0.0, |v| v * loudness);
            sample.copy_from_slice(&(heard as i16).to_le_bytes());
            self.gone += 1;
        }
    }
}

impl Hook for Conceal {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        if input.present != 0 {
            if input.bytes().is_empty() {
                return Verdict::Failed("needs frames of bytes: a flow with codec = \"raw\"".into());
            }
            self.take(input.bytes());
        } else {
            self.missed += 1;
            if self.last.is_empty() || self.missed > self.params.most {
                return Verdict::Nothing;
            }
            if self.params.medium == Medium::Sound {
                self.continued();
            }
        }
        output.set_bytes(&self.last);
        Verdict::Emit
    }
}
