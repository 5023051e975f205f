//! A running `udp` endpoint asks for no memory.

use serde_json::Value;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};
use tcps_core::{
    endpoint::{Endpoint, Input, Output},
    sample::Meta,
};
use tcps_transport::{endpoint, ChannelContext, Side};

struct Counting;

thread_local! {
    /// Of this thread alone: the test harness has others.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Sends one sample from `a` to `b`, delivering every part twice; how many samples came out.
fn pass(
    a: &mut dyn Endpoint,
    b: &mut dyn Endpoint,
    bufs: &mut [Vec<u8>; 2],
    index: u32,
    sample: &[u8],
) -> u32 {
    let [datagram, out] = bufs;
    let meta = Meta { flow: 1, index, origin_ns: 0, echo: None };
    let mut delivered = 0;
    a.handle_input(0, Input::Sample { meta, bytes: sample });
    while a.poll_output(datagram).is_some() {
        for _ in 0..2 {
            b.handle_input(0, Input::Datagram { bytes: datagram, received_ns: 0 });
            while let Some(output) = b.poll_output(out) {
                delivered += u32::from(matches!(output, Output::Deliver(_)));
            }
        }
    }
    delivered
}

#[test]
fn after_the_first_samples_no_memory_is_asked_for() {
    let ctx = ChannelContext::of(&[(1, Side::B, "kinematic")]);
    let make = |side| endpoint("udp", &Value::Null, side, &ctx).unwrap();
    let (mut a, mut b, mut bufs) = (make(Side::A), make(Side::B), [Vec::new(), Vec::new()]);
    let sample = vec![1u8; 20_000];
    let size = |index: u32| if index.is_multiple_of(10) { 20_000 } else { 64 };
    pass(a.as_mut(), b.as_mut(), &mut bufs, 0, &sample);
    let before = CALLS.get();
    let delivered: u32 =
        (1..2000).map(|i| pass(a.as_mut(), b.as_mut(), &mut bufs, i, &sample[..size(i)])).sum();
    let asked = CALLS.get() - before;
    assert_eq!((delivered, asked), (1999, 0));
}
