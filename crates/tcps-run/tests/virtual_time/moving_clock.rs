//! A node in a world whose clock moves while it works, as sockets have it.

use crate::common::{chain, MS};
use serde_json::json;
use std::cell::Cell;
use tcps_core::{
    endpoint::{Ecn, Transmit},
    ids::{ChannelId, NodeId},
    record::{Kind, Record},
    time::Time,
};
use tcps_node::{
    host::{Host, Spare, Started, Work},
    secrets::Seeded,
    Node,
};
use tcps_plan::{Places, Plan};
use tcps_run::assets::Disk;

/// Each look at the clock takes a while; datagrams are kept.
#[derive(Default)]
struct TestHost {
    clock: Cell<Time>,
    rows: Vec<Record>,
    datagrams: Vec<Vec<u8>>,
    stamps: u32,
    spare: Spare,
}

impl Host for TestHost {
    fn transmit(&mut self, now: Time, _: ChannelId, _: NodeId, bytes: &[u8], _: &Transmit) -> Time {
        self.datagrams.push(bytes.to_vec());
        now
    }
    fn aside(&mut self, _: Time, _: NodeId, _: &[u8]) {}
    fn spare(&mut self) -> &mut Spare {
        &mut self.spare
    }
    fn record(&mut self, row: Record) {
        self.rows.push(row);
    }
    fn work(&mut self, _: Started, _: u32, cost: Time, _: i32) -> Work {
        self.clock.set(self.clock.get() + cost);
        Work::Done(self.clock.get())
    }
    fn start(&mut self, now: Time) -> Started {
        self.stamps += 1;
        Started { at: now, processor: 0 }
    }
    fn used(&mut self, _: Started) -> Time {
        self.stamps += 1;
        0
    }
    fn now(&self, _: Time) -> Time {
        self.clock.set(self.clock.get() + 100);
        self.clock.get()
    }
}

fn node(plan: &serde_json::Value, id: u16) -> Node {
    let plan: Plan = serde_json::from_value(plan.clone()).expect("a plan");
    Node::new(&plan, &Places::new(&plan), NodeId(id), None, &mut Disk, &mut Seeded(1)).expect("a node")
}

/// Wakes a node as late as its loop might.
fn run(node: &mut Node, world: &mut TestHost, until: Time) {
    while node.poll_timeout() < until {
        world.clock.set(world.clock.get().max(node.poll_timeout() + 5_000));
        node.handle_timeout(world.clock.get(), world);
    }
}

#[test]
fn rows_of_a_loop_are_in_the_order_of_time() {
    // All that one moment can hold: a robot, its sensing, a delayed sample, a command that is answered at home.
    let mut plan = chain();
    let one = |c: u16| json!({"component": c, "steps": [{"kind": "work", "cost": {"kind": "constant", "span_ns": 1000}}]});
    let delayed = json!({"kind": "work", "delay": {"kind": "constant", "span_ns": MS}});
    plan["records"] = json!("packets");
    plan["components"] = json!([
        {"name": "operator", "kind": "tactile-operator", "session": 0, "node": 0},
        {"name": "srv", "kind": "srv", "session": 0, "node": 0},
        {"name": "arm", "kind": "tactile-teleoperator", "session": 0, "node": 0,
         "robot": {"run": {"kind": "builtin", "name": "wall_mass"}, "period_ns": MS, "senses": 3}}]);
    plan["flows"][0]["sink"] = json!({"kind": "robot"});
    plan["flows"][0]["path"] = json!([one(0), {"component": 1, "steps": [delayed]}, one(2)]);
    let mut back = plan["flows"][0].clone();
    back["source"] = json!({"kind": "robot"});
    back["sink"] = json!({"kind": "count"});
    back["path"] = json!([one(2), one(0)]);
    plan["flows"].as_array_mut().expect("flows").push(back);
    plan["channels"] = json!([]);
    plan["sync"] = json!({"reference": 1, "period_ns": 125 * MS});
    plan["probes"] = json!([{"flow": 0, "points": [1, 2, 3, 0x8002], "period_ns": 2 * MS, "reply_to": 0}]);
    let mut world = TestHost::default();
    run(&mut node(&plan, 0), &mut world, 200 * MS);
    let kinds = [Kind::Sent, Kind::Exit, Kind::Delivered, Kind::Echo, Kind::Late];
    assert!(kinds.iter().all(|k| world.rows.iter().filter(|r| r.kind == *k).count() > 20));
    for w in world.rows.windows(2) {
        assert!(w[0].time_ns <= w[1].time_ns, "{:?} after {:?}", w[1], w[0]);
    }
}

#[test]
fn a_late_tick_leaves_a_row_where_packets_do() {
    let mut plan = chain();
    let late = |plan: &serde_json::Value| {
        let mut world = TestHost::default();
        run(&mut node(plan, 0), &mut world, 10 * MS);
        world.rows.into_iter().filter(|r| r.kind == Kind::Late).collect::<Vec<_>>()
    };
    assert!(late(&plan).is_empty());
    plan["records"] = json!("packets");
    let rows = late(&plan);
    assert_eq!(rows.iter().map(|r| r.index).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert!(rows.iter().all(|r| (5_000..6_000).contains(&r.value) && r.flow.0 == 0));
}

#[test]
fn a_stage_without_code_and_cost_is_not_timed() {
    let mut plan = chain();
    plan["flows"][0]["path"][0]["steps"] =
        json!([{"kind": "work", "delay": {"kind": "constant", "span_ns": MS}}]);
    let mut world = TestHost::default();
    let mut node = node(&plan, 0);
    run(&mut node, &mut world, 10 * MS);
    assert_eq!(world.stamps, 0);
    assert_eq!(node.report().stages[0].4.calls, 10);
}

#[test]
fn a_sample_has_arrived_when_the_kernel_had_it() {
    let plan = chain();
    let mut sender = TestHost::default();
    run(&mut node(&plan, 0), &mut sender, MS);
    let mut relay = TestHost::default();
    node(&plan, 1).handle_datagram(
        3 * MS,
        ChannelId(0),
        (2 * MS, Ecn::NotCapable),
        &sender.datagrams[0],
        &mut relay,
    );
    let mut receiver = TestHost::default();
    receiver.clock.set(9 * MS);
    node(&plan, 2).handle_datagram(
        9 * MS,
        ChannelId(1),
        (7 * MS, Ecn::NotCapable),
        &relay.datagrams[0],
        &mut receiver,
    );
    let delivered = receiver.rows.iter().find(|r| r.kind == Kind::Delivered).expect("delivered");
    let origin = sender.rows.iter().find(|r| r.kind == Kind::Sent).expect("sent").value;
    assert_eq!(delivered.value, 7 * MS - origin);
    assert!(delivered.time_ns >= 9 * MS);
}

#[test]
fn a_loop_makes_up_for_its_ticks_unless_it_stood_still_for_a_millisecond() {
    let mut plan = chain();
    plan["flows"][0]["period_ns"] = json!(MS / 8);
    let woken_at = |late: Time| {
        let (mut world, mut node) = (TestHost::default(), node(&plan, 0));
        world.clock.set(late);
        node.handle_timeout(late, &mut world);
        let sent = world.rows.iter().filter(|r| r.kind == Kind::Sent).map(|r| r.index);
        (sent.collect::<Vec<_>>(), node.report().missed_ticks)
    };
    assert_eq!(woken_at(6 * MS / 10), ((0..5).collect(), 0), "late, but all of them");
    assert_eq!(woken_at(12 * MS / 10), (vec![9], 9), "the newest one; the others are left out and counted");
}
