//! Processor time a row of the analysis: a dumbbell flow (two rows a sample) and a flow over five components (ten rows).

use nix::time::{clock_gettime, ClockId};
use std::hint::black_box;
use tcps_analysis::{analyse, Options};
use tcps_core::{
    ids::{FlowId, NodeId},
    record::{Kind, Record},
};

const SAMPLES: u32 = 500_000;

fn plan(components: u16) -> String {
    let list = |f: &dyn Fn(u16) -> String| (0..components).map(f).collect::<Vec<_>>().join(",");
    let parts = list(&|i| format!(r#"{{"name":"c{i}","kind":"srv","session":0,"node":{i}}}"#));
    let nodes = list(&|i| format!(r#"{{"name":"n{i}"}}"#));
    let path = list(&|i| format!(r#"{{"component":{i}}}"#));
    format!(
        r#"{{"name":"bench","seed":1,"duration_ns":500000000000,"sessions":["main"],"nodes":[{nodes}],
        "components":[{parts}],"flows":[{{"name":"kinematic","session":0,"direction":"forward",
        "period_ns":1000000,"codec":"raw","source":{{"kind":"generated","bytes":24}},"sink":{{"kind":"count"}},
        "path":[{path}]}}]}}"#
    )
}

fn rows(components: u16) -> Vec<u8> {
    let mut rows: Vec<Record> = Vec::new();
    for index in 0..SAMPLES {
        let sent_ns = i64::from(index) * 1_000_000;
        let mut age_ns = 0;
        for point in 1..2 * components - 1 {
            let kind = match point {
                1 => Kind::Sent,
                p if p == 2 * components - 2 => Kind::Delivered,
                p if p % 2 == 0 => Kind::Enter,
                _ => Kind::Exit,
            };
            if kind != Kind::Sent {
                let noise = index.wrapping_mul(2_654_435_761).rotate_left(u32::from(point)) >> 16;
                age_ns += 20_000_000 + i64::from(noise);
            }
            let row = Record {
                value: age_ns,
                index,
                size: 24,
                flow: FlowId(0),
                point,
                node: NodeId(0),
                ..Record::new(sent_ns + age_ns, kind)
            };
            rows.push(row);
        }
    }
    rows.sort_by_key(|r| r.time_ns);
    rows.iter().flat_map(Record::to_bytes).collect()
}

/// Processor time of this thread: what others do on the machine does not count.
fn processor_ns() -> i64 {
    let t = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every thread has a clock");
    t.tv_sec() * 1_000_000_000 + t.tv_nsec()
}

fn main() {
    for components in [2, 6] {
        let plan = serde_json::from_str(&plan(components)).expect("the plan is valid");
        let bytes = rows(components);
        let n = bytes.len() / 32;
        let ns = (0..15).map(|_| {
            let start_ns = processor_ns();
            let analysis = analyse(&bytes[..], &plan, &Options::default()).expect("memory can be read");
            black_box(analysis);
            (processor_ns() - start_ns) as f64 / n as f64
        });
        let best = ns.fold(f64::INFINITY, f64::min);
        println!("{components} components: {n} rows, {best:.1} ns a row");
    }
}
