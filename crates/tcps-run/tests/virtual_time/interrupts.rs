//! Interrupt coalescing at a receiving node: a model of packets and microseconds.

use crate::common::{chain, of, simulate, MS};
use serde_json::{json, Value};
use tcps_core::record::Kind;

const US: i64 = 1000;

/// Delays at the arm, whose card waits for so many datagrams or so long.
fn delays(period_ns: i64, interrupts: Value, name: &str) -> Vec<i64> {
    let mut plan = chain();
    plan["flows"][0]["sink"] = json!({"kind": "count"});
    plan["flows"][0]["period_ns"] = json!(period_ns);
    plan["duration_ns"] = json!(100 * MS);
    plan["nodes"][2]["interrupts"] = interrupts;
    let (_, rows) = simulate(&plan, name);
    of(&rows, Kind::Delivered).iter().map(|r| r.value).collect()
}

// [Polachan 2022: effects]
#[test]
fn a_lone_datagram_waits_for_the_timer_and_company_makes_it_faster() {
    let lone = delays(MS, json!({"packets": 8, "after_ns": 72 * US}), "lone");
    assert!(lone.len() > 80 && lone.iter().all(|d| *d == 10 * MS + 72 * US));
    let crowded = delays(5 * US, json!({"packets": 8, "after_ns": 72 * US}), "crowded");
    let ages: Vec<i64> = crowded.iter().take(8).map(|d| d - 10 * MS).collect();
    assert_eq!(ages, (0..8).map(|i| (7 - i) * 5 * US).collect::<Vec<_>>(), "the eighth raises it for all");
    let mean = crowded.iter().sum::<i64>() / crowded.len() as i64;
    assert!(mean < 10 * MS + 20 * US, "{mean}");
}

// [Polachan 2022: effects]
#[test]
fn one_packet_an_interrupt_is_no_coalescing() {
    let each = delays(MS, json!({"packets": 1, "after_ns": 72 * US}), "each");
    assert!(!each.is_empty() && each.iter().all(|d| *d == 10 * MS));
}
