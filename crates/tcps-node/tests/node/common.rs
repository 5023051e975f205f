//! A world that keeps what a node tells it, and code that tells what it is given.

use serde_json::{json, Value};
use std::sync::{Arc, Mutex};
use tcps_core::{
    endpoint::{Endpoint, Transmit},
    hook::{Hook, HookIn, HookOut, HookState, Notice, State, Verdict},
    ids::{ChannelId, FlowId, NodeId},
    rate::{Feedback, RateController, Steers},
    record::{Kind, Record},
    robot::Robot,
    split::Parts,
    time::Time,
};
use tcps_node::{
    assets::{Assets, Shape},
    host::{BoardRequest, Host, Spare, Started, Task, Work},
    secrets::Seeded,
    Node,
};
use tcps_plan::{CodePlan, Places, Plan, RunError};
use tcps_transport::{ChannelContext, Side};

pub const MS: Time = 1_000_000;

/// The world of a node: what goes out of it is kept.
#[derive(Default)]
pub struct World {
    pub rows: Vec<Record>,
    pub datagrams: Vec<Vec<u8>>,
    pub wire_bytes: Vec<u32>,
    pub asides: Vec<(NodeId, Vec<u8>)>,
    pub tasks: Vec<(u16, Task)>,
    /// Flows of samples that came to a sink, and whose time is known.
    pub came: Vec<FlowId>,
    /// It has lines to boards.
    pub lines: bool,
    /// What went to boards: number, channel and board.
    pub rides: Vec<(u32, u8, usize)>,
    /// Workers have no room.
    pub full: bool,
    /// Each look at the clock finds it so much later than its caller was told.
    pub passes: Time,
    /// Processor time of each call.
    pub used: Time,
    /// When work on a core was over.
    pub done: Time,
    pub spare: Spare,
}

impl World {
    pub fn of(&self, kind: Kind) -> Vec<Record> {
        self.rows.iter().filter(|r| r.kind == kind).copied().collect()
    }
}

impl Host for World {
    fn transmit(&mut self, now: Time, _: ChannelId, _: NodeId, bytes: &[u8], datagram: &Transmit) -> Time {
        self.datagrams.push(bytes.to_vec());
        self.wire_bytes.push(datagram.wire_bytes);
        now
    }
    fn aside(&mut self, _: Time, to: NodeId, bytes: &[u8]) {
        self.asides.push((to, bytes.to_vec()));
    }
    fn spare(&mut self) -> &mut Spare {
        &mut self.spare
    }
    fn record(&mut self, row: Record) {
        self.rows.push(row);
    }
    fn work(&mut self, started: Started, _: u32, cost: Time, _: i32) -> Work {
        self.done = started.at + cost;
        Work::Done(self.done)
    }
    fn start(&mut self, now: Time) -> Started {
        Started { at: now, processor: 0 }
    }
    fn used(&mut self, _: Started) -> Time {
        self.used
    }
    fn now(&self, now: Time) -> Time {
        now.max(self.done) + self.passes
    }
    fn delegate(&mut self, worker: u16, task: Task) -> Result<(), Task> {
        if self.full {
            return Err(task);
        }
        self.tasks.push((worker, task));
        Ok(())
    }
    fn board(&mut self, _: Time, board: usize, ride: &BoardRequest<'_>) -> Option<bool> {
        self.lines.then(|| {
            self.rides.push((ride.job, ride.channel, board));
            true
        })
    }
    fn has_come(&mut self, flow: FlowId, _: &Parts, _: Time) {
        self.came.push(flow);
    }
}

/// What a hook was told.
#[derive(Debug, Clone, PartialEq)]
pub enum Saw {
    Called { hook: String, other: Vec<f64>, merging: u16 },
    Resumed { hook: String, values: Vec<f64> },
    Ended(String),
    Steers(String),
}

/// Makes an endpoint of its parameters.
pub type Maker = fn(&CodePlan) -> Box<dyn Endpoint>;

/// Code "in Python" that tells what it is given. Parameters: `gives` values; `states`: it has states;
/// `copies`: it gives out the bytes that it is given.
#[derive(Clone, Default)]
pub struct Code {
    pub log: Arc<Mutex<Vec<Saw>>>,
    /// What every file holds.
    pub file: Vec<u8>,
    /// Makes endpoints.
    pub endpoint: Option<Maker>,
}

impl Code {
    pub fn saw(&self) -> Vec<Saw> {
        self.log.lock().expect("nobody died").clone()
    }
}

struct Tap {
    name: String,
    gives: Vec<f64>,
    states: bool,
    copies: bool,
    pub log: Arc<Mutex<Vec<Saw>>>,
}

impl Tap {
    fn tell(&self, saw: Saw) {
        self.log.lock().expect("nobody died").push(saw);
    }
}

impl Hook for Tap {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        let (hook, other, merging) = (self.name.clone(), input.other().to_vec(), input.merging);
        self.tell(Saw::Called { hook, other, merging });
        if self.copies {
            output.set_bytes(input.bytes());
        } else {
            output.set(if self.gives.is_empty() { input.x() } else { &self.gives });
        }
        Verdict::Emit
    }
    fn notice(&mut self, notice: Notice<'_>) -> Result<(), String> {
        if let Notice::Resumed(former) = notice {
            self.tell(Saw::Resumed { hook: self.name.clone(), values: former.values.to_vec() });
        }
        Ok(())
    }
    fn told(&self) -> Option<HookState> {
        let told = HookState { state: State::Live, age_ns: 42, origin_ns: None, cause: "", limited: false };
        self.states.then_some(told)
    }
    fn end(&mut self) -> Vec<String> {
        self.tell(Saw::Ended(self.name.clone()));
        vec![format!("{} has a file left open", self.name)]
    }
}

/// A rate controller that changes nothing.
#[derive(Debug)]
struct Steady;

impl RateController for Steady {
    fn feedback(&mut self, _: Time, _: &Feedback) {}
}

impl Assets for Code {
    fn file(&mut self, _: &str) -> Result<Vec<u8>, RunError> {
        Ok(self.file.clone())
    }
    fn library(&mut self, _: &CodePlan) -> Result<Box<dyn Hook>, RunError> {
        unreachable!("no test has a library")
    }
    fn hook(&mut self, code: &CodePlan, _: Shape) -> Result<Box<dyn Hook>, RunError> {
        let gives = code.params["gives"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        let is = |param: &str| code.params[param].as_bool().unwrap_or(false);
        let (states, copies) = (is("states"), is("copies"));
        Ok(Box::new(Tap { name: code.name.clone(), gives, states, copies, log: self.log.clone() }))
    }
    fn robot(&mut self, _: &CodePlan) -> Result<Box<dyn Robot>, RunError> {
        unreachable!("no test has a robot")
    }
    fn endpoint(
        &mut self,
        code: &CodePlan,
        _: Side,
        _: &ChannelContext,
    ) -> Result<Box<dyn Endpoint>, RunError> {
        Ok(self.endpoint.expect("a test has endpoints")(code))
    }
    fn controller(
        &mut self,
        code: &CodePlan,
        _: Steers,
        _: Side,
        _: &ChannelContext,
    ) -> Result<Box<dyn RateController>, RunError> {
        self.log.lock().expect("nobody died").push(Saw::Steers(code.label()));
        Ok(Box::new(Steady))
    }
    fn again(&self) -> Box<dyn Assets + Send> {
        Box::new(self.clone())
    }
}

/// A hook of a kind.
pub fn tap(name: &str, kind: &str, params: Value) -> Value {
    json!({"kind": kind, "run": {"kind": "python", "name": name, "symbol": "Tap", "params": params}})
}

/// Two components, which the flow visits one after the other, at these nodes; a channel lies between nodes.
pub fn plan(at: [u16; 2]) -> Value {
    let channel = (at[0] != at[1]).then_some(0);
    json!({
        "name": "node", "seed": 1, "duration_ns": 1000 * MS, "sessions": ["main"],
        "nodes": [{"name": "here"}, {"name": "there"}],
        "components": [
            {"name": "first", "kind": "ms-com", "session": 0, "node": at[0]},
            {"name": "last", "kind": "ss-com", "session": 0, "node": at[1]}],
        "flows": [{
            "name": "kinematic", "session": 0, "direction": "forward", "period_ns": 10 * MS, "codec": "f32",
            "source": {"kind": "generated", "bytes": 8}, "sink": {"kind": "count"},
            "path": [{"component": 0, "channel": channel}, {"component": 1}]}],
        "channels": [{"name": "a", "session": 0, "a": 0, "b": 1, "transport": "udp"}],
    })
}

pub fn refused(plan: &Value, code: &mut Code) -> Option<String> {
    let plan: Plan = serde_json::from_value(plan.clone()).expect("a plan");
    let node = Node::new(&plan, &Places::new(&plan), NodeId(0), None, code, &mut Seeded(1));
    node.err().map(|e| e.to_string())
}

pub fn node_with(plan: &Value, id: u16, code: &mut Code) -> Node {
    let plan: Plan = serde_json::from_value(plan.clone()).expect("a plan");
    Node::new(&plan, &Places::new(&plan), NodeId(id), None, code, &mut Seeded(1)).expect("a node")
}

pub fn node(plan: &Value, id: u16) -> Node {
    node_with(plan, id, &mut Code::default())
}

/// Wakes a node at each moment that it asks for.
pub fn run(node: &mut Node, world: &mut World, until: Time) {
    while node.poll_timeout() < until {
        node.handle_timeout(node.poll_timeout(), world);
    }
}
