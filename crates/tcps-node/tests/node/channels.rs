//! Channels at a node, and what travels outside them.

use crate::common::{node, node_with, plan, refused, run, tap, Code, Saw, World, MS};
use serde_json::{json, Value};
use std::collections::VecDeque;
use tcps_core::{
    endpoint::{ConnectionStats, Delivery, Ecn, Endpoint, EndpointStats, Input, Output},
    ids::{ChannelId, FlowId, NodeId},
    record::{DropReason, Kind, Record},
    sample::{EchoReply, Meta, PointId},
    time::{Time, NEVER},
};
use tcps_node::Node;
use tcps_plan::CodePlan;
use tcps_wire::reply;

/// An endpoint with a timer at a moment of its clock, at which it tells of a packet and of a sample that were dropped.
struct Teller {
    timer_ns: Option<Time>,
    rows: VecDeque<Output>,
}

fn teller(code: &CodePlan) -> Box<dyn Endpoint> {
    Box::new(Teller { timer_ns: code.params["timer_ns"].as_i64(), rows: VecDeque::new() })
}

impl Endpoint for Teller {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        if matches!(input, Input::Timeout) && self.timer_ns.take_if(|at| *at <= now).is_some() {
            let row = |why, point, flow| Record {
                value: 5,
                detail: why as u8,
                point,
                flow: FlowId(flow),
                ..Record::new(now, Kind::Dropped)
            };
            self.rows.extend(
                [row(DropReason::Unverified, 77, 3), row(DropReason::Overload, 77, 3)].map(Output::Record),
            );
        }
        if let Input::Datagram { bytes, received_ns, .. } = input {
            let meta = Meta { flow: FlowId(bytes[0].into()), index: 0, origin_ns: 0, echo: None };
            self.rows.push_back(Output::Deliver(Delivery { meta, received_ns }));
        }
    }
    fn poll_output(&mut self, _: &mut Vec<u8>) -> Option<Output> {
        self.rows.pop_front()
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.timer_ns
    }
    fn merging(&self) -> u16 {
        4
    }
    fn stats(&self) -> EndpointStats {
        let at = |ns: Time| Some(ns + 3000 * MS);
        let connections = ConnectionStats {
            connections: 2,
            first_lost_ns: at(7),
            down_since_ns: at(9),
            ..Default::default()
        };
        EndpointStats { lost: 6, connections: Some(connections), ..EndpointStats::default() }
    }
}

fn code() -> Code {
    Code { endpoint: Some(teller), ..Code::default() }
}

/// A plan with so many channels of such endpoints, at a node whose clock is 3 s ahead; their timers end at run times.
fn told(timers: &[Time]) -> Value {
    let mut plan = plan([0, 1]);
    plan["nodes"][0]["clock"] = json!({"offset_ns": 3000 * MS, "drift_ppb": 0});
    plan["flows"][0]["start_ns"] = json!(500 * MS);
    let channel = |at: &Time| {
        json!({"name": at.to_string(), "session": 0, "a": 0, "b": 1, "transport": "mine:Teller",
            "params": {"timer_ns": at + 3000 * MS}})
    };
    plan["channels"] = timers.iter().map(channel).collect();
    plan
}

/// Rows of an endpoint have the time of the run and the node that wrote them: the stream is in the order of time, and the clock of
/// an endpoint is any.
#[test]
fn what_an_endpoint_tells_of_is_written_with_run_time_node_and_channel() {
    let mut world = World::default();
    run(&mut node_with(&told(&[NEVER / 4, 20 * MS]), 0, &mut code()), &mut world, 30 * MS);
    let told: Vec<_> =
        world.of(Kind::Dropped).iter().map(|r| (r.time_ns, r.node, r.point, r.flow, r.value)).collect();
    let row = |point| (20 * MS, NodeId(0), point, FlowId(3), 5);
    assert_eq!(told, [row(1), row(77)], "a packet's at its channel, a sample's at its component");
}

/// A transport that is not called when it asks sends nothing again and connects to nobody.
#[test]
fn every_endpoint_of_a_node_is_called_when_it_asks() {
    let timers: Vec<Time> = (0..12).map(|n| (12 - n) * MS).collect();
    let mut world = World::default();
    run(&mut node_with(&told(&timers), 0, &mut code()), &mut world, 30 * MS);
    let called: Vec<_> =
        world.of(Kind::Dropped).iter().filter(|r| r.point != 77).map(|r| (r.time_ns / MS, r.point)).collect();
    assert_eq!(called, (1..=12).map(|t| (t, 12 - t as u16)).collect::<Vec<_>>());
}

#[test]
fn connections_are_lost_at_times_of_the_run() {
    let (channel, stats, strays) = &node_with(&told(&[MS]), 0, &mut code()).report().endpoints[0];
    assert_eq!((channel.0, stats.lost, *strays), (0, 6, 0));
    let connections = stats.connections.expect("it has some");
    assert_eq!(
        (connections.connections, connections.first_lost_ns, connections.down_since_ns),
        (2, Some(7), Some(9))
    );
}

/// A sampler thins out less where the transport merges samples.
#[test]
fn a_hook_is_told_how_many_samples_its_channel_merges() {
    let merging = |mut plan: Value| {
        plan["flows"][0]["start_ns"] = json!(0);
        plan["flows"][0]["path"][0]["steps"] = json!([tap("tap", "code", json!({}))]);
        let mut code = code();
        run(&mut node_with(&plan, 0, &mut code), &mut World::default(), MS);
        code.saw()
    };
    let saw = |merging| [Saw::Called { hook: "tap".into(), other: vec![], merging }];
    assert_eq!(merging(told(&[500 * MS])), saw(4));
    assert_eq!(merging(plan([0, 0])), saw(1), "no channel");
}

/// A peer with another scenario sends samples of flows that this channel does not carry, or not to here.
#[test]
fn samples_that_do_not_arrive_through_a_channel_are_counted_as_strays() {
    let (mut node, mut world) = (node_with(&told(&[500 * MS]), 0, &mut code()), World::default());
    for flow in [0, 1, 200] {
        node.handle_datagram(MS, ChannelId(0), (MS, Ecn::NotCapable), &[flow], &mut world);
    }
    assert_eq!(node.report().endpoints[0].2, 3);
    assert!(world.rows.is_empty(), "{:?}", world.rows);
}

#[test]
fn a_transport_is_steered_by_the_python_class_that_its_parameters_name() {
    let with = |kind: &str| {
        let mut plan = plan([0, 1]);
        plan["channels"][0]["transport"] = json!("telehaptic");
        let mut back = plan["flows"][0].clone();
        (back["name"], back["direction"]) = (json!("haptic"), json!("backward"));
        back["path"] = json!([{"component": 1, "channel": 0}, {"component": 0}]);
        plan["flows"].as_array_mut().expect("flows").push(back);
        let controller = json!({"kind": kind, "name": "mine", "symbol": "Mine"});
        plan["channels"][0]["params"] = json!({"controller": controller});
        plan
    };
    let mut code = Code::default();
    node_with(&with("python"), 0, &mut code);
    assert_eq!(code.saw(), [Saw::Steers("mine:Mine".into())]);
    let text = refused(&with("library"), &mut code).unwrap_or_default();
    assert!(text.contains("channels.a") && text.contains("a rate controller is a Python class"), "{text}");
}

/// Sends what a node has for a channel to its other side.
fn carry(from: &World, to: &mut Node, now: Time, world: &mut World, order: &[usize]) {
    for n in order {
        to.handle_datagram(now, ChannelId(0), (now, Ecn::NotCapable), &from.datagrams[*n], world);
    }
}

#[test]
fn a_packet_leaves_a_row_of_the_same_size_at_both_ends() {
    let mut plan = plan([0, 1]);
    plan["records"] = json!("packets");
    let (mut sender, mut receiver) = (World::default(), World::default());
    run(&mut node(&plan, 0), &mut sender, 25 * MS);
    carry(&sender, &mut node(&plan, 1), 30 * MS, &mut receiver, &[0, 1, 2]);
    let rows = |world: &World, kind| {
        world.of(kind).iter().map(|r| (r.flow.0, r.index, r.size, r.point, r.node.0)).collect::<Vec<_>>()
    };
    assert!(sender.wire_bytes.len() == 3 && sender.wire_bytes[0] > 8);
    let expected = |node| (0..3).map(|n| (0, n, sender.wire_bytes[n as usize], 0, node)).collect::<Vec<_>>();
    assert_eq!(rows(&sender, Kind::Transmit), expected(0));
    assert_eq!(rows(&receiver, Kind::Receive), expected(1));
}

/// The newest sample is the one with the highest number, not the one that came last.
#[test]
fn a_stage_with_a_period_takes_the_newest_sample_whatever_the_network_reorders() {
    let mut plan = plan([0, 1]);
    plan["flows"][0]["path"][1]["steps"] =
        json!([{"kind": "predict", "run": {"kind": "builtin", "name": "zoh"}, "period_ns": 10 * MS}]);
    let (mut sender, mut world) = (World::default(), World::default());
    run(&mut node(&plan, 0), &mut sender, 45 * MS);
    let mut node = node(&plan, 1);
    carry(&sender, &mut node, 50 * MS, &mut world, &[0]);
    run(&mut node, &mut world, 51 * MS);
    carry(&sender, &mut node, 55 * MS, &mut world, &[1, 4, 2, 3]);
    run(&mut node, &mut world, 61 * MS);
    assert_eq!(world.of(Kind::Renumbered).iter().map(|r| r.value).collect::<Vec<_>>(), [0, 4]);
    assert_eq!(world.of(Kind::Superseded).iter().map(|r| r.index).collect::<Vec<_>>(), [1, 2, 3]);
}

/// A world that does not know where the time of a sample went says so, and not what the sample before it in the same memory had.
#[test]
fn a_sample_of_which_nothing_is_known_comes_with_no_account_of_its_time() {
    let mut plan = plan([0, 1]);
    let mut here = plan["flows"][0].clone();
    (here["name"], here["path"]) = (json!("here"), json!([{"component": 1}]));
    plan["flows"].as_array_mut().expect("flows").push(here);
    let (mut sender, mut world) = (World::default(), World::default());
    run(&mut node(&plan, 0), &mut sender, MS);
    let mut node = node(&plan, 1);
    run(&mut node, &mut world, MS);
    carry(&sender, &mut node, 5 * MS, &mut world, &[0]);
    run(&mut node, &mut world, 11 * MS);
    assert_eq!(world.of(Kind::Delivered).len(), 1);
    assert_eq!(world.came, [FlowId(1), FlowId(1)]);
    assert_eq!(
        node.report().visits.iter().map(|v| (v.1 .0, v.2.samples)).collect::<Vec<_>>(),
        [(0, 0), (1, 2)]
    );
}

fn answer(sequence: u32) -> Vec<u8> {
    let reply = EchoReply { point: PointId(2), flow: FlowId(0), sequence, injected_ns: 1, reached_ns: 3 };
    let mut bytes = Vec::new();
    reply::Repr(reply).emit(&mut bytes);
    bytes
}

/// Somebody else's traffic on a node's port shows in the report, and nowhere else.
#[test]
fn what_a_node_does_not_understand_is_counted() {
    let mut node = node(&plan([0, 1]), 0);
    let mut world = World::default();
    for n in [3, 9] {
        node.handle_datagram(MS, ChannelId(n), (MS, Ecn::NotCapable), &[1, 2, 3], &mut world);
    }
    assert_eq!(node.report().asides_refused, 2, "channels that are not here");
    node.handle_aside(MS, NodeId(1), 7, &answer(4), &mut world);
    assert_eq!(node.report().asides_refused, 2, "an answer is understood");
    assert_eq!(world.of(Kind::Echo).iter().map(|r| (r.index, r.value)).collect::<Vec<_>>(), [(4, 6)]);
    for bytes in [&b"nothing"[..], &[], &answer(5)[..31]] {
        node.handle_aside(MS, NodeId(1), 7, bytes, &mut world);
    }
    assert_eq!(node.report().asides_refused, 5);
    assert_eq!(world.of(Kind::Echo).len(), 1);
}

/// Two nodes with a secured channel; one answers the echoes of the other.
fn sealed() -> Value {
    let mut plan = plan([0, 1]);
    plan["channels"][0]["security"] = json!({"kind": "aead"});
    plan["duration_ns"] = json!(9000 * MS);
    plan["probes"] = json!([{"flow": 0, "points": [2], "period_ns": 1000 * MS, "reply_to": 0}]);
    plan
}

/// Passes on everything between two nodes, whose links lose the first datagrams outside channels, and those before a
/// moment; what node 0 wrote down.
fn exchange(plan: &Value, (lost, lossy_ns): (usize, Time), until: Time) -> World {
    let mut nodes = [node(plan, 0), node(plan, 1)];
    let mut worlds = [World::default(), World::default()];
    let (mut now, mut left) = (0, lost);
    while now < until {
        for n in 0..2 {
            nodes[n].handle_timeout(now, &mut worlds[n]);
        }
        for n in [0, 1, 0, 1, 0, 1, 0, 1] {
            for bytes in std::mem::take(&mut worlds[n].datagrams) {
                let received = (now, Ecn::NotCapable);
                nodes[1 - n].handle_datagram(now, ChannelId(0), received, &bytes, &mut worlds[1 - n]);
            }
            for (to, bytes) in std::mem::take(&mut worlds[n].asides) {
                assert_eq!(usize::from(to.0), 1 - n);
                if left > 0 || now < lossy_ns {
                    left = left.saturating_sub(1);
                    continue;
                }
                nodes[1 - n].handle_aside(now, NodeId(n as u16), now, &bytes, &mut worlds[1 - n]);
            }
        }
        now += MS;
    }
    assert_eq!(nodes[0].report().asides_refused + nodes[1].report().asides_refused, 0);
    worlds.into_iter().next().expect("two")
}

/// The first handshake of an association may be lost: it is begun again when its timer runs out, and answers wait for it.
#[test]
fn answers_arrive_sealed_although_the_network_loses_the_first_handshakes() {
    for lost in [0, 1, 2] {
        let world = exchange(&sealed(), (lost, 0), 9000 * MS);
        let answers: Vec<_> = world.of(Kind::Echo).iter().map(|r| (r.index, r.time_ns / MS)).collect();
        assert!(answers.iter().map(|a| a.0).eq(0..9), "{lost}: {answers:?}");
        assert!(answers[0].1 < 1000, "begun again before the next command wants keys: {lost}: {answers:?}");
    }
}

/// While the network is down answers wait, but not without end: the oldest make room.
#[test]
fn the_sixteen_newest_answers_wait_for_keys() {
    let mut plan = sealed();
    plan["probes"][0]["period_ns"] = json!(10 * MS);
    for (given, arrive) in [(16, 0..16), (17, 1..17), (40, 24..40)] {
        plan["probes"][0]["count"] = json!(given);
        let world = exchange(&plan, (0, 500 * MS), 3000 * MS);
        let answers: Vec<_> = world.of(Kind::Echo).iter().map(|r| r.index).collect();
        assert_eq!(answers, arrive.collect::<Vec<_>>(), "of {given}");
    }
}

/// Whoever can send to a port could else say how long a path takes.
#[test]
fn a_node_with_a_secured_channel_takes_no_answer_in_plain_text() {
    let mut node = node(&sealed(), 0);
    let mut world = World::default();
    node.handle_aside(MS, NodeId(1), MS, &answer(0), &mut world);
    assert_eq!((world.rows.len(), node.report().asides_refused), (0, 1));
}

/// A client's clock is what it wants to know: its rows are in the time of the run, like all others.
#[test]
fn a_clock_exchange_is_written_with_run_time_and_both_nodes() {
    let mut plan = plan([0, 1]);
    plan["nodes"][1]["clock"] = json!({"offset_ns": 3000 * MS, "drift_ppb": 0});
    plan["sync"] = json!({"reference": 0, "period_ns": 100 * MS});
    let (mut client, mut server) = (node(&plan, 1), node(&plan, 0));
    let (mut asked, mut answered) = (World::default(), World::default());
    client.handle_timeout(client.poll_timeout().max(0), &mut asked);
    let (to, request) = asked.asides.pop().expect("a request");
    assert_eq!(to, NodeId(0));
    server.handle_aside(5 * MS, NodeId(1), 5 * MS, &request, &mut answered);
    let (to, response) = answered.asides.pop().expect("a response");
    assert_eq!(to, NodeId(1));
    client.handle_aside(10 * MS, NodeId(0), 10 * MS, &response, &mut asked);
    let rows: Vec<_> = asked.of(Kind::Sync).iter().map(|r| (r.time_ns, r.node, r.point, r.value)).collect();
    assert_eq!(rows, [(10 * MS, NodeId(1), 0, -3000 * MS)]);
    assert_eq!(client.report().asides_refused + server.report().asides_refused, 0);
}
