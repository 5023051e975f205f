//! Code of the user's in the network: it decides, and where it fails the packets go on and the failure is named.

mod common;

use common::{arrivals, drops, link, network, packet, run};
use serde_json::{json, Value};
use tcps_core::{
    ids::{LinkId, VertexId},
    param::Named,
    record::DropReason,
    time::{Time, MS, SECOND},
};
use tcps_net::{
    own::{DelayCode, ForeignCode, LossCode, Offer, QueueCode, SourceCode},
    Network,
};
use tcps_plan::{
    net::{
        DelaySpec, JitterSpec, LinkChange, LinkSpec, NetworkSpec, QueueSpec, QueueState, TrafficModel,
        TrafficSpec,
    },
    RunError,
};

/// What a queue answers: what it throws out and what it sends, from the numbers that wait.
type Answer = fn(&[u32], &mut Vec<u32>) -> Result<Option<u32>, String>;

/// An answer, then packets that arrive and their ms, packets that are thrown out, and the failure.
type Case = (Answer, &'static [(u32, Time)], &'static [u32], Option<&'static str>);

struct Queue {
    waiting: Vec<u32>,
    answer: Answer,
}

impl QueueCode for Queue {
    fn enqueue(&mut self, _: Time, offer: &Offer, _: &mut Vec<u32>) -> Result<(), String> {
        self.waiting.push(offer.number);
        Ok(())
    }

    fn dequeue(&mut self, _: Time, dropped: &mut Vec<u32>) -> Result<Option<u32>, String> {
        let answer = (self.answer)(&self.waiting, dropped);
        let sent = answer.clone().ok().flatten();
        self.waiting.retain(|n| Some(*n) != sent && !dropped.contains(n));
        answer
    }
}

/// Fails whatever it is asked.
struct Broken;

impl LossCode for Broken {
    fn lose(&mut self, _: Time, _: &Offer) -> Result<bool, String> {
        Err("no loss".into())
    }
}

impl DelayCode for Broken {
    fn delay(&mut self, _: Time, _: &Offer) -> Result<Time, String> {
        Ok(-1)
    }
}

impl SourceCode for Broken {
    fn next(&mut self) -> Result<Option<(Time, u32)>, String> {
        Err("no packet".into())
    }
}

struct Code(Answer);

impl ForeignCode for Code {
    fn queue(&mut self, _: &Named, _: &str, _: u64) -> Result<Box<dyn QueueCode>, RunError> {
        Ok(Box::new(Queue { waiting: Vec::new(), answer: self.0 }))
    }

    fn loss(&mut self, _: &Named, _: &str, _: u64) -> Result<Box<dyn LossCode>, RunError> {
        Ok(Box::new(Broken))
    }

    fn delay(&mut self, _: &Named, _: &str, _: u64) -> Result<Box<dyn DelayCode>, RunError> {
        Ok(Box::new(Broken))
    }

    fn source(&mut self, _: &Named, _: &str, _: u64) -> Result<Box<dyn SourceCode>, RunError> {
        Ok(Box::new(Broken))
    }
}

fn named(kind: &str) -> Named {
    Named::new(kind, json!({}))
}

/// Three packets of 1 ms at once: who arrives when, who is dropped, and which failure is named.
#[test]
fn a_queue_decides_and_what_it_does_wrong_is_named() {
    let table: [Case; 7] = [
        (|waiting, _| Ok(waiting.last().copied()), &[(0, 1), (2, 2), (1, 3)], &[], None),
        (
            |waiting, dropped| {
                dropped.extend(waiting);
                Ok(None)
            },
            &[],
            &[0, 1, 2],
            None,
        ),
        (
            |waiting, dropped| {
                dropped.extend(waiting.iter().filter(|n| **n == 1));
                Ok(waiting.iter().copied().find(|n| *n != 1))
            },
            &[(0, 1), (2, 2)],
            &[1],
            None,
        ),
        (|_, _| Ok(None), &[(0, 1), (1, 2), (2, 3)], &[], Some("sent nothing, and 1 packets wait, 3 times")),
        (
            |_, _| Ok(Some(9)),
            &[(0, 1), (1, 2), (2, 3)],
            &[],
            Some("sent packet 9, which does not wait, 3 times"),
        ),
        (|_, _| Err("no queue".into()), &[(0, 1), (1, 2), (2, 3)], &[], Some("no queue, 3 times")),
        (
            |waiting, dropped| {
                dropped.extend(waiting.iter().filter(|n| **n == 0).map(|_| 9));
                Ok(waiting.first().copied())
            },
            &[(0, 1), (1, 2), (2, 3)],
            &[],
            Some("dropped packet 9, which does not wait, once"),
        ),
    ];
    for (i, (answer, arrived, thrown, failure)) in table.into_iter().enumerate() {
        let queue = QueueSpec { discipline: named("./mine.py:Queue"), ..QueueSpec::default() };
        let spec = network(vec![LinkSpec { queue, ..link("l", 0, 1, Some(8e6), 0) }]);
        let mut net = Network::with(&spec, &[], 1, &mut Code(answer)).expect("a valid network");
        let events = run(&mut net, (0..3).map(|n| packet(n, 1, 1000, 0)), SECOND);
        let arrivals: Vec<_> = arrivals(&events).iter().map(|(p, at)| (p.index, at / MS)).collect();
        let drops: Vec<_> = drops(&events).iter().map(|(p, _, why)| (p.index, *why)).collect();
        assert_eq!(arrivals, arrived, "case {i}");
        assert_eq!(drops, thrown.iter().map(|n| (*n, DropReason::Managed)).collect::<Vec<_>>(), "case {i}");
        let failures: Vec<_> =
            failure.iter().map(|f| format!("queue ./mine.py:Queue of links.l: {f}")).collect();
        assert_eq!(net.failures(), failures, "case {i}");
    }
}

/// Packets in a queue of the user's are held to the limit of its link, and to a new one: what has left takes no room.
#[test]
fn a_queue_of_the_users_has_the_limit_of_its_link() {
    let discipline = named("./mine.py:Queue");
    let queue = QueueSpec { limit_bytes: Some(2000), discipline, ..QueueSpec::default() };
    let spec = network(vec![LinkSpec { queue, ..link("l", 0, 1, Some(8e6), 0) }]); // 1000 bytes take 1 ms
    let in_order: Answer = |waiting, _| Ok(waiting.first().copied());
    let mut net = Network::with(&spec, &[], 1, &mut Code(in_order)).expect("a valid network");
    let mut numbers = 0..;
    for (now, sent, waiting) in [(0, 4, 2), (MS, 3, 2), (2 * MS, 2, 1)] {
        if now == 2 * MS {
            let change = LinkChange { limit_packets: Some(1), ..LinkChange::default() };
            net.change_link(now, LinkId(0), &change).expect("a valid change");
        }
        for n in numbers.by_ref().take(sent) {
            net.send(now, VertexId(0), packet(n, 1, 1000, now));
        }
        let state =
            QueueState { packets: waiting, bytes: 1000 * waiting, wait_ns: (1 + waiting as Time) * MS };
        assert_eq!(net.queue(now, LinkId(0)), state, "at {now}");
    }
    let events = run(&mut net, [], SECOND);
    let arrived: Vec<_> = arrivals(&events).iter().map(|(p, at)| (p.index, at / MS)).collect();
    assert_eq!(arrived, [(0, 1), (1, 2), (2, 3), (4, 4)]);
    let drops: Vec<_> = drops(&events).iter().map(|(p, _, why)| (p.index, *why)).collect();
    assert_eq!(drops, [3, 5, 6, 7, 8].map(|n| (n, DropReason::Full)));
    assert_eq!(net.failures(), Vec::<String>::new());
}

/// Where a loss model or a delay model fails, packets go on without loss or delay; a failure stays named when another
/// model has taken its place.
#[test]
fn failures_of_a_line_and_of_a_source_are_named() {
    let delay = DelaySpec::Code(named("./mine.py:Delay"));
    let spec = LinkSpec {
        loss: Some(named("./mine.py:Loss")),
        jitter: Some(JitterSpec { delay, reorder: true }),
        ..link("l", 0, 1, Some(8e6), 0)
    };
    let mut spec = network(vec![spec]);
    spec.traffic = vec![TrafficSpec {
        name: "t".into(),
        from: VertexId(0),
        to: VertexId(1),
        start_ns: 0,
        stop_ns: None,
        dscp: 0,
        model: TrafficModel::source("./mine.py:Source", json!({})),
    }];
    let mut net = Network::with(&spec, &[], 1, &mut Code(|_, _| Ok(None))).expect("a valid network");
    let events = run(&mut net, (0..2).map(|n| packet(n, 1, 1000, 0)), SECOND);
    assert_eq!(arrivals(&events).iter().map(|a| a.1).collect::<Vec<_>>(), [MS, 2 * MS]);
    let told = [
        "loss ./mine.py:Loss of links.l: no loss, 2 times",
        "delay ./mine.py:Delay of links.l: delay() returned -1; allowed: nanoseconds from 0 to 3600000000000, an \
         hour, 2 times",
        "source ./mine.py:Source of traffic.t: no packet, once",
    ];
    assert_eq!(net.failures(), told);
    let dist = tcps_core::dist::Dist::new("uniform", json!({"low_ns": 0, "high_ns": MS})).expect("a delay");
    let jitter = Some(JitterSpec { delay: DelaySpec::Model(dist), reorder: true });
    let change = LinkChange { jitter, loss: Some(0.0), ..LinkChange::default() };
    net.change_link(SECOND, LinkId(0), &change).expect("a valid change");
    run(&mut net, [packet(2, 1, 1000, SECOND)], 2 * SECOND);
    assert_eq!(net.failures(), told);
}

/// Only code of the user's is ever named: a network of built-in parts reports no failure.
#[test]
fn built_in_parts_report_no_failure() {
    let delay = tcps_core::dist::Dist::new("uniform", json!({"low_ns": 0, "high_ns": MS})).expect("a delay");
    let l = LinkSpec {
        queue: QueueSpec { discipline: named("codel"), ..QueueSpec::default() },
        loss: Some(Named::new("random", json!({"p": 0.5}))),
        jitter: Some(JitterSpec { delay: DelaySpec::Model(delay), reorder: true }),
        ..link("l", 0, 1, Some(8e6), 0)
    };
    let mut spec = network(vec![l]);
    let (from, to) = (VertexId(0), VertexId(1));
    let model = TrafficModel::source("cbr", json!({"rate_bps": 1e6}));
    spec.traffic =
        vec![TrafficSpec { name: "t".into(), from, to, start_ns: 0, stop_ns: None, dscp: 0, model }];
    let mut net = Network::new(&spec, &[], 1).expect("a valid network");
    run(&mut net, (0..9).map(|n| packet(n, 1, 1000, 0)), SECOND);
    assert_eq!(net.failures(), Vec::<String>::new());
}

/// Answers from a list, then fails.
struct Listed(Vec<(Time, u32)>);

impl SourceCode for Listed {
    fn next(&mut self) -> Result<Option<(Time, u32)>, String> {
        let next = self.0.pop().ok_or("asked again")?;
        Ok(Some(next))
    }
}

/// Makes one source.
struct SourceOnly(Option<Listed>);

impl ForeignCode for SourceOnly {
    fn queue(&mut self, _: &Named, _: &str, _: u64) -> Result<Box<dyn QueueCode>, RunError> {
        Err(RunError::hook("no queue"))
    }

    fn loss(&mut self, _: &Named, _: &str, _: u64) -> Result<Box<dyn LossCode>, RunError> {
        Err(RunError::hook("no loss"))
    }

    fn delay(&mut self, _: &Named, _: &str, _: u64) -> Result<Box<dyn DelayCode>, RunError> {
        Err(RunError::hook("no delay"))
    }

    fn source(&mut self, _: &Named, _: &str, _: u64) -> Result<Box<dyn SourceCode>, RunError> {
        Ok(Box::new(self.0.take().ok_or_else(|| RunError::hook("one source"))?))
    }
}

/// A source sends what has a size that a datagram can have, in order of time and 100 000 at once at most, as otherwise its
/// run would not advance. The first packet that is none ends it, and is the one that is named: it is not asked again.
#[test]
fn a_source_ends_with_its_first_mistake() {
    let allowed = "allowed: 1 to 65535 B, in order of time, once";
    for (packets, sent, failure) in [
        (vec![(0, 1), (0, 65_535), (7, 20)], 3, "asked again, once".to_owned()),
        (
            vec![(5, 20), (4, 20), (6, 20)],
            1,
            format!("gave a packet of 20 B at 4 ns after one at 5 ns; {allowed}"),
        ),
        (vec![(-1, 20), (4, 20)], 0, format!("gave a packet of 20 B at -1 ns after one at 0 ns; {allowed}")),
        (vec![(5, 0), (6, 20)], 0, format!("gave a packet of 0 B at 5 ns after one at 0 ns; {allowed}")),
        (
            vec![(5, 65_536), (6, 9)],
            0,
            format!("gave a packet of 65536 B at 5 ns after one at 0 ns; {allowed}"),
        ),
        (
            [vec![(3, 9); 100_000], vec![(4, 9); 100_001], vec![(5, 9)]].concat(),
            200_000,
            "gave 100001 packets at 4 ns; allowed: at most 100000 at one time, once".to_owned(),
        ),
    ] {
        let (name, from, to) = ("t".into(), VertexId(0), VertexId(1));
        let model = TrafficModel::source("./mine.py:Source", json!({}));
        let entry = TrafficSpec { name, from, to, start_ns: 0, stop_ns: None, dscp: 0, model };
        let spec = NetworkSpec { traffic: vec![entry], ..network(vec![link("l", 0, 1, None, 0)]) };
        let mut code = SourceOnly(Some(Listed(packets.iter().rev().copied().collect())));
        let mut source = tcps_net::traffic::build(&spec, &spec.traffic[0], 1, &mut code).expect("a source");
        assert_eq!(source.mean_rate_bps(), 0.0, "nobody knows before what it will send");
        let given: Vec<_> = std::iter::from_fn(|| source.next()).collect();
        assert_eq!(given, packets[..sent]);
        assert_eq!(source.next(), None, "it has ended");
        assert_eq!(source.failure(), Some(format!("source ./mine.py:Source of traffic.t: {failure}")));
    }
}

/// What is wrong with built-in parts is told before any code of the user's is made, which may take its time or do anything.
#[test]
fn built_in_parts_are_checked_before_code_is_made() {
    let entry = |name: &str, model| {
        let (name, from, to) = (name.into(), VertexId(0), VertexId(1));
        TrafficSpec { name, from, to, start_ns: 0, stop_ns: None, dscp: 0, model }
    };
    let spec = |queue: Value, rate_bps: f64| {
        let discipline = Named::new("codel", queue);
        let queue = QueueSpec { discipline, ..QueueSpec::default() };
        let own = entry("own", TrafficModel::source("./mine.py:Source", json!({})));
        let built_in = entry("built-in", TrafficModel::source("cbr", json!({"rate_bps": rate_bps})));
        let links = vec![LinkSpec { queue, ..link("l", 0, 1, Some(8e6), 0) }];
        NetworkSpec { traffic: vec![own, built_in], ..network(links) }
    };
    for (spec, refused) in [
        (spec(json!({}), 1e6), None),
        (spec(json!({}), -1.0), Some("traffic.built-in.rate_bps: ")),
        (spec(json!({"target_ns": -1}), 1e6), Some("links.l.queue.target_ns: ")),
    ] {
        let mut code = SourceOnly(Some(Listed(vec![(0, 20)])));
        let told = Network::with(&spec, &[], 1, &mut code).err().map(|e| e.to_string());
        assert_eq!(code.0.is_some(), refused.is_some(), "code is made: {told:?}");
        let told = told.unwrap_or_default();
        assert!(told.starts_with(refused.unwrap_or_default()), "{told}");
    }
}

/// Code that cannot be made is named by its place, and keeps the kind of its error.
#[test]
fn code_that_cannot_be_made_is_refused() {
    let own = named("./mine.py:Mine");
    let plain = || link("l", 0, 1, Some(8e6), 0);
    let jitter = JitterSpec { delay: DelaySpec::Code(own.clone()), reorder: true };
    let queue = QueueSpec { discipline: own.clone(), ..QueueSpec::default() };
    for (place, spec) in [
        ("links.l.loss", LinkSpec { loss: Some(own.clone()), ..plain() }),
        ("links.l.jitter", LinkSpec { jitter: Some(jitter), ..plain() }),
        ("links.l.queue.discipline", LinkSpec { queue, ..plain() }),
    ] {
        let refused = Network::new(&network(vec![spec]), &[], 1).map(drop).expect_err(place);
        assert!(refused.to_string().starts_with(place), "{refused}");
        assert_eq!(RunError::from(refused).kind, RunError::hook("").kind, "{place}");
    }
}
