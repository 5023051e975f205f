//! Hooks: user code in the path of a sample, behind one C interface.
//!
//! ```c
//! int   hook(void *state, const tcps_in *in, tcps_out *out);  // 0 emit, 1 emit nothing, negative: error
//! void *hook_init(const char *params_json);                   // optional
//! void  hook_free(void *state);                               // optional
//! ```
//! Built-in Rust hooks, C functions, numba functions and Python classes all see these two structures.

#![expect(unsafe_code, reason = "the C interface of hooks lends memory by its address")]

use crate::ids::FlowId;
use std::{marker::PhantomData, mem::offset_of};

/// What a hook is given; `tcps_in` in C.
#[repr(C)]
#[derive(Debug)]
pub struct HookIn<'a> {
    /// The node's clock.
    pub now_ns: i64,
    /// When the sample was made, on the clock of the node that made it.
    pub origin_ns: i64,
    /// Number of the sample within its flow.
    pub index: u32,
    /// Flow number.
    pub flow: FlowId,
    /// 1 if there is a sample, 0 if a periodic stage ticks without a new one.
    pub present: u16,
    n: u32,
    n_bytes: u32,
    n_other: u32,
    /// 1 if an echo command rides on the sample, which then must not be kept back; else 0.
    pub tagged: u16,
    /// Samples that the transport on the way out merges into a packet now; 1 where it never does.
    pub merging: u16,
    x: *const f64,
    bytes: *const u8,
    other: *const f64,
    /// What the transport on the way out allows the flow, in bit/s; negative where it does not say.
    pub allowed_bps: f64,
    slices: PhantomData<(&'a [f64], &'a [u8])>,
}

/// What a hook gives back; `tcps_out` in C. It writes at most as many values and bytes as there is room for, and says
/// how many.
#[repr(C)]
#[derive(Debug)]
pub struct HookOut<'a> {
    n: u32,
    cap: u32,
    n_bytes: u32,
    cap_bytes: u32,
    y: *mut f64,
    bytes: *mut u8,
    slices: PhantomData<(&'a mut [f64], &'a mut [u8])>,
}

/// Names of fields and their offsets.
macro_rules! layout {
    ($kind:ident, $($field:ident),+) => { &[$((stringify!($field), offset_of!($kind<'static>, $field))),+] };
}

impl<'a> HookIn<'a> {
    /// Fields of `tcps_in` with their offsets, for the test of the C header.
    pub const LAYOUT: &'static [(&'static str, usize)] = layout!(
        HookIn,
        now_ns,
        origin_ns,
        index,
        flow,
        present,
        n,
        n_bytes,
        n_other,
        tagged,
        merging,
        x,
        bytes,
        other,
        allowed_bps
    );

    /// A tick without a sample.
    pub fn tick(now_ns: i64, origin_ns: i64, index: u32, flow: FlowId) -> Self {
        let (x, bytes, other): (&[f64], &[u8], &[f64]) = (&[], &[], &[]);
        Self {
            now_ns,
            origin_ns,
            index,
            flow,
            present: 0,
            n: 0,
            n_bytes: 0,
            n_other: 0,
            tagged: 0,
            merging: 1,
            x: x.as_ptr(),
            bytes: bytes.as_ptr(),
            other: other.as_ptr(),
            allowed_bps: -1.0,
            slices: PhantomData,
        }
    }

    /// With a sample: its values and its coded bytes, of which one may be empty.
    pub fn with_sample(self, x: &'a [f64], bytes: &'a [u8]) -> Self {
        let (n, n_bytes) = (x.len() as u32, bytes.len() as u32);
        Self { present: 1, n, n_bytes, x: x.as_ptr(), bytes: bytes.as_ptr(), ..self }
    }

    /// With the newest values of other flows seen at this component: those that its scenario names, or the newest of the other
    /// direction.
    pub fn with_other(self, other: &'a [f64]) -> Self {
        Self { n_other: other.len() as u32, other: other.as_ptr(), ..self }
    }

    /// The decoded sample.
    pub fn x(&self) -> &'a [f64] {
        // SAFETY: pointer and number come from one slice that lives for 'a.
        unsafe { std::slice::from_raw_parts(self.x, self.n as usize) }
    }

    /// The coded sample.
    pub fn bytes(&self) -> &'a [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.bytes, self.n_bytes as usize) }
    }

    /// The newest values of other flows: those that its scenario names, or the newest of the other direction.
    pub fn other(&self) -> &'a [f64] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.other, self.n_other as usize) }
    }
}

impl<'a> HookOut<'a> {
    /// Fields of `tcps_out` with their offsets, for the test of the C header.
    pub const LAYOUT: &'static [(&'static str, usize)] =
        layout!(HookOut, n, cap, n_bytes, cap_bytes, y, bytes);

    /// Room for values and bytes, with nothing written.
    pub fn new(y: &'a mut [f64], bytes: &'a mut [u8]) -> Self {
        let (cap, cap_bytes) = (y.len() as u32, bytes.len() as u32);
        let (y, bytes) = (y.as_mut_ptr(), bytes.as_mut_ptr());
        Self { n: 0, cap, n_bytes: 0, cap_bytes, y, bytes, slices: PhantomData }
    }

    /// Room for values.
    pub fn room(&mut self) -> &mut [f64] {
        // SAFETY: pointer and number come from one slice that is borrowed for 'a.
        unsafe { std::slice::from_raw_parts_mut(self.y, self.cap as usize) }
    }

    /// Room for bytes.
    pub fn room_bytes(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.bytes, self.cap_bytes as usize) }
    }

    /// Writes values, cut at the room there is.
    pub fn set(&mut self, values: &[f64]) {
        let n = values.len().min(self.cap as usize);
        self.room()[..n].copy_from_slice(&values[..n]);
        self.n = n as u32;
    }

    /// Writes bytes, cut at the room there is.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        let n = bytes.len().min(self.cap_bytes as usize);
        self.room_bytes()[..n].copy_from_slice(&bytes[..n]);
        self.n_bytes = n as u32;
    }

    /// So many values of `room` have been written.
    pub fn wrote(&mut self, n: usize) {
        self.n = n.min(self.cap as usize) as u32;
    }

    /// So many bytes of `room_bytes` have been written.
    pub fn wrote_bytes(&mut self, n: usize) {
        self.n_bytes = n.min(self.cap_bytes as usize) as u32;
    }

    /// Has foreign code write here by a copy of this: of that, only how much it says it wrote is taken over.
    pub fn lend<T>(&mut self, call: impl FnOnce(*mut HookOut<'a>) -> T) -> T {
        let mut lent = Self { ..*self };
        let answer = call(&mut lent);
        (self.n, self.n_bytes) = (lent.n, lent.n_bytes);
        answer
    }

    /// Whether foreign code says that it wrote more than there was room for.
    pub fn overrun(&self) -> bool {
        self.n > self.cap || self.n_bytes > self.cap_bytes
    }

    /// Values and bytes written.
    pub fn written(&self) -> (usize, usize) {
        (self.n.min(self.cap) as usize, self.n_bytes.min(self.cap_bytes) as usize)
    }
}

/// What a hook decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Go on with what is in `HookOut`.
    Emit,
    /// The sample ends here on purpose; it counts as suppressed, not as lost.
    Nothing,
    /// The hook failed; the text goes into the report.
    Failed(String),
    /// What the hook works with has died; the text is the reason for which the run ends.
    Dead(String),
}

/// States that a hook which watches over a flow may be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// Commands are followed.
    Normal = 0,
    /// Commands come badly: they are followed slowly.
    Degraded = 1,
    /// The newest command is too old: the action is taken.
    Hold = 2,
    /// It has been for so long that the follower stays where it is.
    SafeStop = 3,
    /// Commands have come back: the follower goes to where they are, slowly.
    Recovering = 4,
    /// What is shown is what came.
    Live = 5,
    /// What is shown is predicted.
    Predicted = 6,
}

impl State {
    /// All states in the order of their numbers.
    pub const ALL: [State; 7] = [
        State::Normal,
        State::Degraded,
        State::Hold,
        State::SafeStop,
        State::Recovering,
        State::Live,
        State::Predicted,
    ];

    /// What reports call it.
    pub fn name(self) -> &'static str {
        match self {
            State::Normal => "normal",
            State::Degraded => "degraded",
            State::Hold => "hold",
            State::SafeStop => "safe stop",
            State::Recovering => "recovering",
            State::Live => "live",
            State::Predicted => "predicted",
        }
    }

    /// The state with this number.
    pub fn from_u8(n: u8) -> Option<State> {
        State::ALL.get(n as usize).copied()
    }
}

/// What a hook that watches over a flow says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookState {
    /// The state that it is in.
    pub state: State,
    /// Age of the newest good sample, in ns.
    pub age_ns: i64,
    /// Origin of that sample, by which a hook that is restarted knows older ones; none where it does not go by it.
    pub origin_ns: Option<i64>,
    /// What has led to the state, in words.
    pub cause: &'static str,
    /// Whether limits of its own keep what it gives out away from what it is sent.
    pub limited: bool,
}

/// The last call of a hook that has states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Former<'a> {
    /// When it was, on the node's clock.
    pub now_ns: i64,
    /// What was given out last; empty before anything was. Whoever follows it still does.
    pub values: &'a [f64],
    /// What the hook told.
    pub told: HookState,
}

/// What the runtime tells a hook beside samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Notice<'a> {
    /// It is called at this period (ns), or once a sample; said before the first call.
    Period(Option<i64>),
    /// Its component was restarted, and this is how far it had come.
    Resumed(Former<'a>),
    /// A sample came that it is not given, for a newer one came until its tick: it was not lost.
    Superseded {
        /// Its number.
        index: u32,
        /// When it was made, on the clock of the node that made it.
        origin_ns: i64,
        /// Whether the newer one came first.
        overtaken: bool,
    },
    /// Something that it works for has died, or the run is being ended.
    Halt,
}

/// A piece of user code in the path of a sample.
pub trait Hook: Send {
    /// Handles one sample.
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict;
    /// Takes note of something; refuses what it cannot work with.
    fn notice(&mut self, _notice: Notice<'_>) -> Result<(), String> {
        Ok(())
    }
    /// What was wrong with the last call although it gave something out.
    fn complaint(&mut self) -> Option<String> {
        None
    }
    /// The state after the last call, of a hook that has states: a change is a row of the record.
    fn told(&self) -> Option<HookState> {
        None
    }
    /// Ends what it works with, after the last call; what was wrong with that end.
    fn end(&mut self) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_is_what_a_hook_sees_and_room_is_never_left() {
        let (x, bytes, other) = ([1.0, 2.0], [3u8, 4, 5], [6.0]);
        let input = HookIn::tick(7, 8, 9, FlowId(10)).with_sample(&x, &bytes).with_other(&other);
        assert_eq!((input.x(), input.bytes(), input.other()), (&x[..], &bytes[..], &other[..]));
        assert_eq!((input.present, HookIn::tick(7, 8, 9, FlowId(10)).present), (1, 0));
        let (mut y, mut b) = ([0.0; 2], [0u8; 2]);
        let mut output = HookOut::new(&mut y, &mut b);
        output.set(&[1.0, 2.0, 3.0]);
        output.set_bytes(&bytes);
        assert_eq!(output.written(), (2, 2));
        output.wrote(5);
        assert!(output.written() == (2, 2) && !output.overrun());
        assert_eq!((y, b), ([1.0, 2.0], [3, 4]));
    }

    #[test]
    fn foreign_code_that_claims_too_much_is_found_out() {
        let (mut y, mut b) = ([0.0; 2], [0u8; 2]);
        let mut output = HookOut::new(&mut y, &mut b);
        // SAFETY: what is lent lives as long as the call.
        output.lend(|lent| unsafe {
            let mut elsewhere = [0.0; 8];
            ((*lent).n, (*lent).cap, (*lent).y) = (8, 8, elsewhere.as_mut_ptr());
            ((*lent).n_bytes, (*lent).cap_bytes) = (1, 0);
        });
        assert!(output.overrun());
        assert_eq!(output.written(), (2, 1));
        assert_eq!((output.room().len(), output.room_bytes().len()), (2, 2));
    }
}
