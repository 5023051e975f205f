//! Both sides of a scheme with a line between them: constant delay, and losses in bursts.

use std::collections::VecDeque;

use serde_json::Value;
use tcps_core::{
    param::{Fault, Params as _},
    seed::Stream,
};

use super::{arm::ArmParams, FollowerSide, LeaderSide, Motion, SlaveParams, VALUES};

/// Period of both sides, in s.
pub const TICK_S: f64 = 0.001;

/// What is run.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Name of the scheme.
    pub scheme: String,
    /// Its parameters.
    pub params: Value,
    /// Round trip, in ticks of 1 ms; half of it each way.
    pub rtt_ms: usize,
    /// Share of messages lost each way.
    pub loss: f64,
    /// Mean length of a loss burst, in messages.
    pub burst: f64,
    /// A message goes if its first value differs by this share from that of the last one that went; 0: all go.
    pub deadband: f64,
    /// Operator and slave.
    pub arm: ArmParams,
    /// The slave with its wall.
    pub slave: SlaveParams,
    /// Seed of the losses.
    pub seed: u64,
}

impl Setup {
    /// A scheme over a round trip without loss, with the defaults of everything else.
    pub fn new(scheme: &str, rtt_ms: usize) -> Self {
        Self {
            scheme: scheme.into(),
            params: Value::Null,
            rtt_ms,
            loss: 0.0,
            burst: 1.0,
            deadband: 0.0,
            arm: ArmParams::standard(),
            slave: SlaveParams::standard(),
            seed: 1,
        }
    }
}

/// What is seen at a tick.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Device.
    pub leader: Motion,
    /// Slave.
    pub slave: Motion,
    /// Force of the device on the hand, in N.
    pub force_n: f64,
    /// Force of the wall, in N.
    pub contact_n: f64,
    /// Energy that has gone into the channel at both ports, in J.
    pub energy_j: f64,
    /// Messages that went at this tick, at most one each way.
    pub sent: u8,
}

/// Runs a scheme for `ticks`; `wanted` says where the hand wants to be, by time in s.
pub fn run(setup: &Setup, ticks: usize, wanted: impl Fn(f64) -> Motion) -> Result<Vec<Seen>, Fault> {
    let mut leader = LeaderSide::new(&setup.scheme, &setup.params, setup.arm)?;
    let mut follower = FollowerSide::new(&setup.scheme, &setup.params, setup.slave)?;
    let mut there = DelayLine::new(setup, setup.rtt_ms / 2, "there");
    let mut back = DelayLine::new(setup, setup.rtt_ms - setup.rtt_ms / 2, "back");
    let mut seen = Vec::with_capacity(ticks);
    for n in 0..ticks {
        let message = leader.tick(TICK_S, wanted(n as f64 * TICK_S), back.newest(n));
        let went = there.send(n, message);
        let message = follower.tick(TICK_S, there.newest(n));
        let came = back.send(n, message);
        seen.push(Seen {
            leader: leader.at(),
            slave: follower.at(),
            force_n: leader.force_n,
            contact_n: follower.contact_n(),
            energy_j: leader.energy_j + follower.energy_j,
            sent: u8::from(went) + u8::from(came),
        });
    }
    Ok(seen)
}

/// Longest time without a message, in ticks, and the least difference that is worth one. [Hinterseer 2008: deadband]
const KEEP_ALIVE: usize = 100;
const FLOOR: f64 = 1e-5;

/// A line with delay, Gilbert's losses [Gilbert 1960], and a deadband before it.
struct DelayLine {
    delay: usize,
    deadband: f64,
    /// When the last message went, and its first value.
    went: Option<(usize, f64)>,
    enter: f64,
    leave: f64,
    bad: bool,
    stream: Stream,
    flying: VecDeque<(usize, [f64; VALUES])>,
    newest: Vec<f64>,
}

impl DelayLine {
    fn new(setup: &Setup, delay: usize, name: &str) -> Self {
        let leave = 1.0 / setup.burst.max(1.0);
        Self {
            delay,
            deadband: setup.deadband,
            went: None,
            enter: leave * setup.loss / (1.0 - setup.loss),
            leave,
            bad: false,
            stream: Stream::new(setup.seed, name),
            flying: VecDeque::new(),
            newest: Vec::new(),
        }
    }

    /// Whether the message goes; what goes may be lost.
    // [Hinterseer 2008: deadband] [Ryu 2004] with a deadband, energies travel with the messages that go
    fn send(&mut self, now: usize, message: [f64; VALUES]) -> bool {
        let [_, value, ..] = message;
        let same = |(at, last): (usize, f64)| {
            now - at < KEEP_ALIVE && (value - last).abs() <= (self.deadband * last.abs()).max(FLOOR)
        };
        if self.deadband > 0.0 && self.went.is_some_and(same) {
            return false;
        }
        self.went = Some((now, value));
        if !self.bad {
            self.flying.push_back((now + self.delay, message));
        }
        let turn = self.stream.unit() < if self.bad { self.leave } else { self.enter };
        self.bad ^= turn;
        true
    }

    fn newest(&mut self, now: usize) -> &[f64] {
        while let Some((_, message)) = self.flying.front().filter(|(at, _)| *at <= now) {
            self.newest.clear();
            self.newest.extend_from_slice(message);
            self.flying.pop_front();
        }
        &self.newest
    }
}
