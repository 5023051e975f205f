//! Setting up a virtual run costs memory, and with it work, in proportion to what its plan holds.

#![expect(unsafe_code, reason = "an allocator that counts")]

use serde_json::{json, Value};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};
use tcps_plan::Plan;
use tcps_run::{
    assets::Disk,
    virtual_time::{run, Options},
};

struct Counting;

thread_local! {
    /// Of this thread alone: the test harness has others.
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.set(BYTES.get() + layout.size());
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

/// Operators at a router on the left, each with a flow to a node of its own on the right, over one bottleneck.
fn operators(count: usize) -> Plan {
    let (left, right) = (2 * count, 2 * count + 1);
    let nodes: Vec<Value> = (0..2 * count).map(|n| json!({"name": format!("n{n}")})).collect();
    let components: Vec<Value> = (0..2 * count)
        .map(|n| json!({"name": format!("c{n}"), "kind": "x", "session": n % count, "node": n}))
        .collect();
    let flow = |i: usize| {
        json!({"name": format!("f{i}"), "session": i, "direction": "forward", "period_ns": 10_000_000, "codec": "raw",
               "source": {"kind": "generated", "bytes": 24}, "sink": {"kind": "count"},
               "path": [{"component": i, "channel": i}, {"component": count + i}]})
    };
    let channel =
        |i: usize| json!({"name": format!("f{i}"), "session": i, "a": i, "b": count + i, "transport": "udp"});
    let ends = |i: usize| [(i, left), (left, i), (count + i, right), (right, count + i)];
    let joined = (0..count).flat_map(ends).chain([(left, right), (right, left)]).enumerate();
    let links: Vec<Value> = joined
        .map(
            |(i, (from, to))| json!({"name": format!("l{i}"), "from": from, "to": to, "delay_ns": 1_000_000}),
        )
        .collect();
    let vertices: Vec<String> = (0..2 * count + 2).map(|v| format!("v{v}")).collect();
    serde_json::from_value(json!({
        "name": "p", "seed": 1, "duration_ns": 30_000_000, "nodes": nodes, "components": components,
        "sessions": (0..count).map(|i| format!("s{i}")).collect::<Vec<_>>(),
        "flows": (0..count).map(flow).collect::<Vec<_>>(), "channels": (0..count).map(channel).collect::<Vec<_>>(),
        "network": {"vertices": vertices, "links": links},
    }))
    .expect("a plan")
}

#[test]
fn twice_the_operators_take_twice_the_memory() {
    let asked = |count: usize| {
        let plan = operators(count);
        let before = BYTES.get();
        let options = Options { records: None, pcapng: None, progress: None, every_ns: None };
        assert_eq!(run(&plan, &mut Disk, options).expect("a run").records, 6 * count as u64);
        (BYTES.get() - before) as f64
    };
    let [few, some, many] = [200, 400, 800].map(asked);
    assert!(many - some < 2.1 * (some - few), "{few} B, {some} B, {many} B for twice as many each");
}
