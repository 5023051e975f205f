//! Where things stand: computers, components, robots.

use super::CodePlan;
use serde::Deserialize;
use std::path::PathBuf;
use tcps_core::{
    dist::Dist,
    ids::{NodeId, SessionId},
    time::{NodeClock, Time},
};

/// A computer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodePlan {
    /// Its name.
    pub name: String,
    /// Processor cores that its stages compete for.
    #[serde(default = "one")]
    pub cores: u16,
    /// How they compete (virtual time).
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Its clock.
    #[serde(default)]
    pub clock: NodeClock,
    /// How late its loop wakes up (virtual time; measured by `tcpsbed calibrate`, as the next two).
    pub wakeup: Option<Dist>,
    /// What a send call takes.
    pub send: Option<Dist>,
    /// How long a datagram waits in its socket.
    pub receive: Option<Dist>,
    /// How its network card gathers arrivals (virtual time).
    pub interrupts: Option<Interrupts>,
}

/// A model of interrupt coalescing: arrivals wait until there are so many, or until the first has waited so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupts {
    /// Datagrams that raise an interrupt at once.
    pub packets: u32,
    /// Time after which one alone does.
    pub after_ns: Time,
}

fn one() -> u16 {
    1
}

/// How stages on one node compete for its cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Scheduling {
    /// First come, first served, to completion.
    #[default]
    RunToCompletion,
    /// Each takes a core for at most a quantum, then queues again.
    RoundRobin {
        /// Length of a turn.
        quantum_ns: Time,
    },
    /// The flow with the highest priority runs; it pre-empts others.
    Priority,
}

/// A component instance.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentPlan {
    /// Its id.
    pub name: String,
    /// Its kind, for example `ms-com`.
    pub kind: String,
    /// Number of its session.
    pub session: SessionId,
    /// Number of its node.
    pub node: NodeId,
    /// The robot, at a tactile-teleoperator.
    pub robot: Option<RobotPlan>,
    /// The board that does its work, at an embsys.
    pub board: Option<BoardPlan>,
}

/// A board at the end of a serial line.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardPlan {
    /// Rate of the line, of which a byte takes ten bits.
    pub rate_bps: f64,
    /// Silence of the flow that drives it after which it goes to its safe output; 0: never.
    pub watchdog_ms: u16,
    /// What its outputs then are.
    pub safe: SafeOutput,
    /// Least time that it holds a sample.
    pub work_us: u32,
    /// What is at the other end of the line on sockets; absent: line and board are modelled there too.
    pub attached: Option<Attached>,
}

/// Outputs of a board whose commands have stopped.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SafeOutput {
    /// They stay.
    Hold,
    /// These, and 0 where there are no more.
    Values(Vec<f32>),
}

/// What is at the other end of a serial line.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Attached {
    /// A program of this machine, which is given the name of a terminal.
    Program {
        /// The program.
        path: PathBuf,
    },
    /// An image for QEMU's machine lm3s6965evb, on a unix socket.
    Qemu {
        /// The image.
        path: PathBuf,
    },
    /// A board at a serial port, or one that listens at a unix socket.
    Port {
        /// The device or socket.
        path: PathBuf,
    },
}

/// A robot and its tick.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RobotPlan {
    /// The code.
    pub run: CodePlan,
    /// Time between steps.
    pub period_ns: Time,
    /// The moment of the first step.
    #[serde(default)]
    pub start_ns: Time,
    /// Room for sensed values.
    pub senses: u16,
    /// Whom it obeys, where several operators command it.
    #[serde(default)]
    pub authority: Authority,
}

/// Whom a robot with several operators obeys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authority {
    /// The mean of all, by the weights of their flows.
    #[default]
    Weight,
    /// The one that holds the token: it passes on when its holder is silent, or rests while another moves.
    Token,
}

#[cfg(test)]
mod tests {
    /// With none, no stage would ever run.
    #[test]
    fn a_node_has_one_core() {
        assert!(crate::tests::plan(&[]).nodes.iter().all(|node| node.cores == 1));
    }
}
