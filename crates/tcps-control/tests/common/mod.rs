//! A hook as the runtime calls it.
#![allow(dead_code)] // each test file uses some of it

use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};

/// What a hook is given.
#[derive(Default)]
pub struct Given<'a> {
    pub now_ns: i64,
    pub origin_ns: i64,
    pub index: u32,
    pub x: Option<&'a [f64]>,
    pub bytes: &'a [u8],
    pub other: &'a [f64],
}

/// What it answered.
pub struct Answer {
    pub verdict: Verdict,
    pub y: Vec<f64>,
    pub bytes: Vec<u8>,
}

/// Calls a hook with room for 16 values and 64 bytes.
pub fn call(hook: &mut dyn Hook, given: Given<'_>) -> Answer {
    let (mut y, mut bytes) = (vec![0.0; 16], vec![0u8; 64]);
    let x = given.x.unwrap_or(&[]);
    let input = HookIn {
        now_ns: given.now_ns,
        origin_ns: given.origin_ns,
        index: given.index,
        flow: 0,
        present: u16::from(given.x.is_some() || !given.bytes.is_empty()),
        n: x.len() as u32,
        n_bytes: given.bytes.len() as u32,
        n_other: given.other.len() as u32,
        reserved: 0,
        x: x.as_ptr(),
        bytes: given.bytes.as_ptr(),
        other: given.other.as_ptr(),
    };
    let mut output = HookOut {
        n: 0,
        cap: y.len() as u32,
        n_bytes: 0,
        cap_bytes: bytes.len() as u32,
        y: y.as_mut_ptr(),
        bytes: bytes.as_mut_ptr(),
    };
    let verdict = hook.call(&input, &mut output);
    y.truncate(output.n as usize);
    bytes.truncate(output.n_bytes as usize);
    Answer { verdict, y, bytes }
}

/// The values of a sample at time `t_ns`.
pub fn values(hook: &mut dyn Hook, t_ns: i64, x: &[f64]) -> Vec<f64> {
    let answer = call(hook, Given { now_ns: t_ns, origin_ns: t_ns, x: Some(x), ..Given::default() });
    assert_eq!(answer.verdict, Verdict::Emit);
    answer.y
}
