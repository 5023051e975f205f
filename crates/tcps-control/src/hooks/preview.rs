//! Predictor `preview`: the picture at the operator, live while it comes and predicted while it does not: the picture of a
//! predictive display.
//!
//! ```text
//! in     decoded pictures, 3 bytes a pixel     other   the newest known position of the tool, and the force
//! live   as it arrived
//! stale  the last picture, older than `stale_ms`, every period: moved by `pixels` for each unit that the tool has moved
//!        since it was taken; or, with `tool`, as it was, with the tool drawn where it must be now (a ring) beside where
//!        it was then
//! mark   a frame around it, and at its lower edge PICTURE PREDICTED with the age, FORCE PREDICTED with the force
//! ```
//! Rows with the code of time and number stay where they are: what is read of them is the age of what is shown.
//! (After the phantom robot of Bejczy, Kim and Venema 1990, who draw a model over the delayed picture.)

use serde_json::Value;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, HookState, State, Verdict},
    param::{Fault, Params as _},
    params,
    time::{Time, MS},
};

use crate::{
    canvas::{Canvas, Colour, Place, DEPTH},
    glyphs,
    track::Track,
};

const MARK: Colour = [255, 128, 0];
const SEEN: Colour = [160, 160, 160];
const BAND: Colour = [0, 0, 0];
const UNKNOWN: Colour = [48, 48, 48];
/// The code in a picture: so many blocks in a row, rows, and pixels of the smallest block.
const CODE: (usize, usize, usize) = (40, 2, 4);
/// Farthest place that is drawn at, in pixels.
const FAR: f64 = 100_000.0;

params! {
    /// Parameters.
    pub struct Params {
        width: usize = Count, "640", 1.0..=65_535.0, "pixels in a row of a picture, of one eye";
        height: usize = Count, "480", 1.0..=65_535.0, "rows of a picture";
        eyes: usize = Count, "1", 1.0..=2.0, "2 for pictures of two eyes side by side";
        position: Vec<usize> = List(&Count), "[]", NOT_NEGATIVE, "numbers of the values of the other flows that are the tool's position";
        pixels: Vec<[f64; 2]> = List(&Array(2, &Number)), "[]", ANY, "for each of them, pixels to the right and down per unit, of the picture or the tool in it";
        tool: Option<[f64; 2]> = Array(2, &Number), ABSENT, ANY, "pixel of the tool at position zero; without it the picture moves";
        force: Vec<usize> = List(&Count), "[]", NOT_NEGATIVE, "numbers of the values that are the force, in N";
        mark: Option<usize> = Count, ABSENT, NOT_NEGATIVE, "number of the value that says, when above 0.5, that force and position are predicted";
        stale_ms: f64 = Number, "100", POSITIVE, "age from which a picture counts as stale, in ms";
    }
}

/// The hook.
pub struct Preview {
    params: Params,
    last: Vec<u8>,
    /// Where the tool has been, by `run_ns`.
    track: Track,
    /// Where the tool was when the last picture was taken.
    seen: Option<Vec<f64>>,
    shown: Vec<u8>,
    age_ns: Time,
    now_ns: Time,
    /// Time that has passed here; it does not go back.
    run_ns: Time,
    state: State,
}

impl Preview {
    /// Reads its parameters.
    pub fn new(params: &Value) -> Result<Self, Fault> {
        let p = Params::of(params)?;
        if p.position.len() != p.pixels.len() {
            let found = format!("{} pairs", p.pixels.len());
            let allowed = format!("a pair for each value of position, which are {}", p.position.len());
            return Err(Fault::new("pixels", found, allowed));
        }
        Ok(Self {
            params: p,
            last: Vec::new(),
            track: Track::default(),
            seen: None,
            shown: Vec::new(),
            age_ns: 0,
            now_ns: 0,
            run_ns: 0,
            state: State::Live,
        })
    }

    fn bytes(&self) -> usize {
        let p = &self.params;
        p.width.saturating_mul(p.height).saturating_mul(p.eyes * DEPTH)
    }

    /// Where the tool is by now, if all of it is known.
    fn position(&self, other: &[f64]) -> Option<Vec<f64>> {
        let values = self.params.position.iter().map(|i| other.get(*i).copied().filter(|v| v.is_finite()));
        values.collect()
    }

    /// What a position is in pixels.
    fn pixels(&self, position: &[f64]) -> [f64; 2] {
        let sum = |c: usize| position.iter().zip(&self.params.pixels).map(|(x, to)| x * to[c]).sum::<f64>();
        [sum(0), sum(1)]
    }

    /// Takes a picture. Its tool is where it was known to be when the picture was taken, a delay ago by the clocks of both
    /// nodes; one from the future counts as of now.
    fn take(&mut self, input: &HookIn) {
        self.last.clear();
        self.last.extend_from_slice(input.bytes());
        let delay_ns = input.now_ns.saturating_sub(input.origin_ns).max(0);
        self.seen = self.track.at(self.run_ns.saturating_sub(delay_ns));
        self.age_ns = 0;
    }

    /// Lets the time pass that has passed, and notes where the tool is.
    fn pass(&mut self, input: &HookIn) {
        // A clock that is put back tells nothing; one that is put forward looks like a loop that was away.
        let passed = input.now_ns.saturating_sub(std::mem::replace(&mut self.now_ns, input.now_ns)).max(0);
        self.age_ns = self.age_ns.saturating_add(passed);
        self.run_ns = self.run_ns.saturating_add(passed);
        if let Some(place) = self.position(input.other()) {
            self.track.put(self.run_ns, place);
        }
    }

    /// The picture as it must be now, with its marks; `age_ms` of one that is stale.
    fn draw(&mut self, other: &[f64], age_ms: Option<Time>) {
        let Params { width, eyes, .. } = self.params;
        self.shown.clone_from(&self.last);
        let mut shown = std::mem::take(&mut self.shown);
        for eye in 0..eyes {
            let mut canvas = Canvas::new(&mut shown, width * eyes, eye * width, width);
            if age_ms.is_some() {
                self.predict(&mut canvas, other);
                self.frame(&mut canvas);
            }
            self.tell(&mut canvas, other, age_ms);
        }
        self.shown = shown;
    }

    /// What has moved since the last picture was taken.
    fn predict(&self, canvas: &mut Canvas<'_>, other: &[f64]) {
        let (Some(before), Some(now)) = (&self.seen, self.position(other)) else { return };
        let (before, now) = (self.pixels(before), self.pixels(&now));
        let Some(tool) = self.params.tool else {
            let by = whole([now[0] - before[0], now[1] - before[1]]);
            return canvas.shift(&self.last, self.code_rows(), by, UNKNOWN);
        };
        let radius = 6 * self.scale();
        let at = |moved: [f64; 2]| whole([tool[0] + moved[0], tool[1] + moved[1]]);
        canvas.ring(at(before), radius, self.scale(), SEEN);
        canvas.line(at(before), at(now), SEEN);
        canvas.ring(at(now), radius, 2 * self.scale(), MARK);
    }

    /// A frame that says from afar that this is no live picture.
    fn frame(&self, canvas: &mut Canvas<'_>) {
        let (width, height) = (self.params.width as i64, self.params.height as i64);
        let (thick, top) = (2 * self.scale(), self.code_rows() as i64);
        for (x, y, w, h) in [
            (0, top, width, thick),
            (0, height - thick, width, thick),
            (0, top, thick, height),
            (width - thick, top, thick, height),
        ] {
            canvas.fill((x, y), w, h, MARK);
        }
    }

    /// What is predicted, in words at the lower edge.
    fn tell(&self, canvas: &mut Canvas<'_>, other: &[f64], age_ms: Option<Time>) {
        let predicted = self.params.mark.and_then(|i| other.get(i)).is_some_and(|v| *v > 0.5);
        let mut lines = Vec::new();
        lines.extend(age_ms.map(|age| format!("PICTURE PREDICTED {age} MS")));
        if let Some(force_n) = self.force(other).filter(|_| predicted || age_ms.is_some()) {
            let word = if predicted { "FORCE PREDICTED" } else { "FORCE" };
            lines.push(format!("{word} {force_n:.2} N"));
        }
        let scale = self.scale();
        let step = (glyphs::HEIGHT as i64 + 3) * scale;
        for (n, line) in lines.iter().rev().enumerate() {
            let top = self.params.height as i64 - (n as i64 + 1) * step - 2 * scale;
            canvas.fill((2 * scale, top), self.params.width as i64 - 4 * scale, step, BAND);
            canvas.text((4 * scale, top + 2 * scale), scale, line, MARK);
        }
    }

    /// Size of the force, if it is known.
    fn force(&self, other: &[f64]) -> Option<f64> {
        let parts: Option<Vec<f64>> = self.params.force.iter().map(|i| other.get(*i).copied()).collect();
        let size = parts.filter(|p| !p.is_empty())?.iter().map(|v| v * v).sum::<f64>().sqrt();
        size.is_finite().then_some(size)
    }

    /// Pixels a cell of a letter: as large as picture and text allow.
    fn scale(&self) -> i64 {
        (self.params.height / 160).min(self.params.width / 160).max(1) as i64
    }

    /// Rows that hold the code of time and number.
    fn code_rows(&self) -> usize {
        let (columns, rows, least) = CODE;
        let side = self.params.width * self.params.eyes / columns;
        if side >= least {
            (rows * side).min(self.params.height)
        } else {
            0
        }
    }
}

/// The nearest pixel, at most `FAR` away.
fn whole([x, y]: [f64; 2]) -> Place {
    let near = |v: f64| libm::round(v.clamp(-FAR, FAR)) as i64;
    (near(x), near(y))
}

// [Bejczy et al. 1990] what is predicted is drawn over the last picture, and marked
impl Hook for Preview {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        self.pass(input);
        if input.present != 0 {
            let (found, wanted) = (input.bytes().len(), self.bytes());
            if found != wanted || output.room_bytes().len() < wanted {
                let Params { width, height, eyes, .. } = self.params;
                return Verdict::Failed(format!(
                    "needs decoded pictures of {eyes} x {width} x {height} pixels, {wanted} B; found {found} B"
                ));
            }
            self.take(input);
        }
        let stale = self.age_ns > (self.params.stale_ms * MS as f64) as Time;
        self.state = if stale && !self.last.is_empty() { State::Predicted } else { State::Live };
        if self.last.is_empty() || (input.present == 0 && !stale) {
            return Verdict::Nothing;
        }
        self.draw(input.other(), stale.then_some(self.age_ns / MS));
        output.set_bytes(&self.shown);
        Verdict::Emit
    }

    fn told(&self) -> Option<HookState> {
        let age_ns = if self.last.is_empty() { Time::MAX } else { self.age_ns };
        let cause = if self.state == State::Live { "pictures came" } else { "pictures are late" };
        Some(HookState { state: self.state, age_ns, origin_ns: None, cause, limited: false })
    }
}
