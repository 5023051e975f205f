//! A file as a whole: what else it tells, how long it may be, and what may be wrong with it.

use super::*;
use proptest::prelude::*;
use tcps_core::{
    hook::State,
    ids::{FlowId, NodeId},
    record::RECORD_BYTES,
};

// [RFC 5905 §8]
#[test]
fn queues_clocks_nodes_and_events_are_reported() {
    let plan = plan(10 * SECOND, json!({}));
    let mut tape = Tape::default();
    for i in 0..10i64 {
        let row = tape.row(i * SECOND, Kind::Queue, 2, 800_000);
        (row.point, row.size) = (1, 100 * i as u32);
        // n0 estimates n2, whose clock is 7 us + 50 ppm ahead, and errs by 300 ns.
        let row = tape.row(i * SECOND, Kind::Sync, 0, 7_300 + 50_000 * i);
        (row.node, row.point, row.size) = (NodeId(0), 2, 20_000 - i as u32);
    }
    tape.row(SECOND, Kind::Gap, 0, 2_500_000).node = NodeId(1);
    for (number, length_ns) in [(3, 4), (4, 5), (NodeId::NONE.0, 6)] {
        tape.row(SECOND, Kind::Gap, 0, length_ns).node = NodeId(number);
    }
    tape.row(5, Kind::Event, 0, 0);
    tape.row(6, Kind::Verified, 0, 0).detail = 1;
    tape.row(7, Kind::Verified, 1, 0);
    let a = tape.analyse(&plan, &Options::default());
    assert_eq!((a.queues[0].link.as_str(), a.queues[0].bytes.as_ref().unwrap().mean), ("l2.forward", 450.0));
    assert_eq!(a.series.queues[0].bytes.iter().flatten().count(), 10);
    let c = &a.clocks[0];
    assert_eq!((c.node.as_str(), c.peer.as_str(), c.bound_ns, c.true_error_ns), ("n0", "n2", 19_991, 300));
    assert!((c.drift_ppm.unwrap() - 50.0).abs() < 1e-9);
    assert_eq!((a.nodes[0].name.as_str(), a.nodes[0].gaps, a.nodes[0].longest_gap_ns), ("n1", 1, 2_500_000));
    let beyond = &a.nodes[1];
    assert_eq!((beyond.name.as_str(), beyond.gaps, beyond.longest_gap_ns), ("emulator", 3, 6));
    assert_eq!(a.events[0].name, "wall");
    assert_eq!((a.flows[0].verified.good, a.flows[0].verified.bad), (1, 1));
}

#[test]
fn curves_have_every_percent_and_the_upper_tail() {
    let plan = plan(10 * SECOND, json!({}));
    let mut tape = Tape::default();
    for i in 0..1000 {
        tape.sent(i);
        tape.delivered(i, i as i64 + 1);
    }
    let a = tape.analyse(&plan, &Options::default());
    assert_eq!((a.p[0], a.p[1], a.p[50], a.p[99], a.p[107]), (0.0, 0.01, 0.5, 0.99, 1.0));
    assert!(a.p.windows(2).all(|p| p[0] < p[1]), "{:?}", a.p);
    let curve = &a.flows[0].cdf.delay_ns;
    let expected = [1.0, 10.0, 500.0, 990.0, 1000.0];
    assert_eq!([0, 1, 50, 99, 107].map(|i| curve[i]), expected);
}

#[test]
fn states_last_from_the_beginning_to_the_end_and_a_row_that_names_none_is_strange() {
    let plan = plan(10 * SECOND, json!({}));
    let mut tape = Tape::default();
    let [normal, hold] = [State::Normal, State::Hold].map(|state| state as u8);
    // The first state, two changes, and a number that no state has.
    for (at, from, to) in [(1, normal, normal), (3, normal, hold), (4, hold, normal), (5, 99, hold)] {
        let row = tape.row(at * SECOND, Kind::State, 0, 20 * MS);
        (row.point, row.size, row.detail) = (2, from.into(), to);
    }
    tape.sent(10_000);
    let a = tape.analyse(&plan, &Options::default());
    assert_eq!((a.states.len(), a.strange_rows), (1, 1));
    let s = &a.states[0];
    assert_eq!((s.component.as_str(), s.flow.as_str(), s.count), ("robot", "kinematic", 2));
    assert_eq!((s.first.t_s, s.first.state), (1.0, "normal"));
    let changes: Vec<_> = s.changes.iter().map(|c| (c.t_s, c.from, c.to, c.age_ms)).collect();
    assert_eq!(changes, [(3.0, "normal", "hold", 20.0), (4.0, "hold", "normal", 20.0)]);
    assert_eq!(s.spent_s, [("normal", 9.0), ("hold", 1.0)].into());
}

/// Rows of `samples` samples over two hops, made while they are read.
struct Endless {
    next: u32,
    samples: u32,
    rows: Vec<u8>,
    at: usize,
}

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.at == self.rows.len() {
            self.rows.clear();
            self.at = 0;
            if self.next < self.samples {
                let mut tape = Tape::default();
                let jitter = (self.next.wrapping_mul(2_654_435_761) >> 14) as i64;
                tape.whole(self.next, [200_000 + jitter, 50_000, 300_000]);
                self.rows = tape.bytes();
                self.next += 1;
            }
        }
        let n = out.len().min(self.rows.len() - self.at);
        out[..n].copy_from_slice(&self.rows[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[test]
fn memory_does_not_grow_with_the_run() {
    let plan = plan(SECOND, json!({}));
    let mut analyser = Analyser::new(&plan, Options::default());
    // Twice the samples of the run have room.
    assert!(analyser.heap_bytes() <= 2048 * 64, "{}", analyser.heap_bytes());
    let mut at = Vec::new();
    for samples in [100_000, 1_250_000] {
        let next = if samples == 100_000 { 0 } else { 100_000 };
        let source = Endless { next, samples, rows: Vec::new(), at: 0 };
        rows::Rows::new(source).for_each(|row| analyser.take(row)).unwrap();
        at.push(analyser.heap_bytes());
    }
    assert_eq!(at[0], at[1], "after 4e5 and after 5e6 rows");
    assert!((100_000..300_000).contains(&at[0]), "{}", at[0]);
    let a = analyser.finish(0);
    assert_eq!((a.rows, a.flows[0].path.joined), (5_000_000, 1_250_000));
    assert!(a.series.t_s.len() <= 400);
}

#[test]
fn a_torn_and_strange_file_is_read_to_its_end() {
    let plan = plan(SECOND, json!({}));
    let mut tape = Tape::default();
    tape.whole(0, [MS; 3]);
    tape.row(1, Kind::Delivered, 3, 5).flow = FlowId(77);
    let mut bytes = tape.bytes();
    bytes.extend([0xff; RECORD_BYTES + 11]);
    let a = analyse(&bytes[..], &plan, &Options::default()).unwrap();
    assert_eq!((a.rows, a.strange_rows, a.torn_bytes), (6, 2, 11));
    assert_eq!(a.flows[0].delivered, 1);
}

#[test]
fn a_number_that_changed_on_the_way_spoils_no_other_sample() {
    let plan = plan(2 * SECOND, json!({}));
    let mut tape = Tape::default();
    for i in 0..2000 {
        tape.whole(i, [MS, MS, MS]);
    }
    // The highest bit of sample 100 changed behind srv: it arrives as another one, which nobody sent.
    tape.0.retain(|r| r.index != 100 || r.kind != Kind::Delivered);
    let row = tape.row(103 * MS, Kind::Delivered, 100 | 1 << 31, 3 * MS);
    row.point = entry(2);
    let a = tape.analyse(&plan, &Options::default());
    let f = &a.flows[0];
    assert_eq!((f.sent, f.lost, f.beyond_window, a.strange_rows), (2000, 1, 0, 1));
    assert_eq!(f.delivered, 1999);
}

fn any_row() -> impl Strategy<Value = [u8; RECORD_BYTES]> {
    let small = prop_oneof![0u16..6, Just(u16::MAX), Just(held(2)), any::<u16>()];
    let index = prop_oneof![4 => 0u32..2000, 1 => any::<u32>()];
    let time = prop_oneof![4 => 0i64..4_000_000_000, 1 => any::<i64>()];
    let value = prop_oneof![2 => 0i64..50_000_000, 1 => any::<i64>()];
    (time, value, index, any::<u32>(), (0u16..2, small, 0u16..4), 0u8..21, any::<u8>()).prop_map(
        |(time_ns, value, index, size, (flow, point, node), kind, detail)| {
            let row = Record {
                value,
                index,
                size,
                flow: FlowId(flow),
                point,
                node: NodeId(node),
                detail,
                ..Record::new(time_ns, Kind::Sent)
            };
            let mut bytes = row.to_bytes();
            bytes[30] = kind;
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_rows_never_panic_and_samples_are_conserved(rows in prop::collection::vec(any_row(), 0..300)) {
        let plan = plan(2 * SECOND, probe());
        let options = Options { warmup_ns: 100 * MS, bins: 5, ..Options::default() };
        let a = analyse(&rows.concat()[..], &plan, &options).unwrap();
        let f = &a.flows[0];
        prop_assert_eq!(a.rows as usize, rows.len());
        prop_assert!(f.lost <= f.judged && f.judged <= f.sent);
        prop_assert!(f.judged + f.in_flight <= f.sent);
        prop_assert!(serde_json::to_string(&a).is_ok());
    }
}
