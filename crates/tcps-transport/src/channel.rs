//! What an endpoint knows of its channel: its side, the flows, the names of random streams.

use std::fmt;
use tcps_core::{
    ids::FlowId,
    time::{Time, MS},
};

/// An end of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that the plan calls `a`.
    A,
    /// The one that the plan calls `b`.
    B,
}

impl Side {
    /// The end at the other side.
    pub fn other(self) -> Self {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// A flow on a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelFlow {
    /// Its number in the plan.
    pub flow: FlowId,
    /// The side that its samples are sent to.
    pub to: Side,
    /// Its name without the session: `kinematic`, `haptic`, `audio`, `video` or the user's own.
    pub name: String,
    /// Time between its samples.
    pub period_ns: Time,
}

/// What an endpoint knows of its channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelContext {
    /// The channel's name, which also names its random streams.
    pub name: String,
    /// Seed of the run.
    pub seed: u64,
    /// What the clock of its node shows when the run begins.
    pub start_ns: Time,
    /// The flows on it, both directions.
    pub flows: Vec<ChannelFlow>,
    /// What TLS in its transport follows from; absent: no TLS.
    pub tls: Option<TlsSecret>,
}

/// Where the keys of TLS come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TlsSecret {
    /// In virtual time: from the seed of the run.
    Seeded,
    /// On sockets: from what both sides share and no scenario says, and from the system's randomness.
    Shared([u8; 32]),
}

impl fmt::Debug for TlsSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seeded => "Seeded",
            Self::Shared(_) => "Shared",
        })
    }
}

impl ChannelContext {
    /// A channel with flows of 1 kHz, for tests and benchmarks.
    pub fn of(flows: &[(u16, Side, &str)]) -> Self {
        let flow = |&(flow, to, name): &(u16, Side, &str)| ChannelFlow {
            flow: FlowId(flow),
            to,
            name: name.into(),
            period_ns: MS,
        };
        let flows = flows.iter().map(flow).collect();
        Self { name: "channel".into(), seed: 1, start_ns: 0, flows, tls: None }
    }

    /// The flows whose samples arrive at `side`.
    pub fn arriving_at(&self, side: Side) -> impl Iterator<Item = FlowId> + '_ {
        self.flows.iter().filter(move |f| f.to == side).map(|f| f.flow)
    }
}
