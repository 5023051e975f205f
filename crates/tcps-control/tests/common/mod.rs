//! A hook as the runtime calls it.
#![allow(dead_code)] // each test file uses some of it

use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    ids::FlowId,
};

/// What a hook is given.
#[derive(Default)]
pub struct Given<'a> {
    pub now_ns: i64,
    pub origin_ns: i64,
    pub index: u32,
    pub x: Option<&'a [f64]>,
    pub bytes: &'a [u8],
    pub other: &'a [f64],
    pub tagged: bool,
    pub merging: u16,
}

/// What it answered.
pub struct Answer {
    pub verdict: Verdict,
    pub y: Vec<f64>,
    pub bytes: Vec<u8>,
}

/// Calls a hook with room for 32 values and 64 bytes.
pub fn call(hook: &mut dyn Hook, given: Given<'_>) -> Answer {
    let (mut y, mut bytes) = (vec![0.0; 32], vec![0u8; 64]);
    let mut input =
        HookIn::tick(given.now_ns, given.origin_ns, given.index, FlowId(0)).with_other(given.other);
    if given.x.is_some() || !given.bytes.is_empty() {
        input = input.with_sample(given.x.unwrap_or(&[]), given.bytes);
    }
    (input.tagged, input.merging) = (given.tagged.into(), given.merging);
    let mut output = HookOut::new(&mut y, &mut bytes);
    let verdict = hook.call(&input, &mut output);
    let (n, n_bytes) = output.written();
    y.truncate(n);
    bytes.truncate(n_bytes);
    Answer { verdict, y, bytes }
}

/// The values of a sample at time `t_ns`.
pub fn values(hook: &mut dyn Hook, t_ns: i64, x: &[f64]) -> Vec<f64> {
    let answer = call(hook, Given { now_ns: t_ns, origin_ns: t_ns, x: Some(x), ..Given::default() });
    assert_eq!(answer.verdict, Verdict::Emit);
    answer.y
}
