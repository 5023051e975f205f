//! What a proxy is told, what it tells, and what its loop shares with whoever looks at it.

use crate::emu::{DoorPlan, Row};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    path::PathBuf,
    sync::{
        atomic::{AtomicBool, Ordering},
        Mutex,
    },
};
use tcps_core::time::Time;
use tcps_plan::{
    net::NetworkSpec,
    report::{Link, RealSelf},
    Waiting,
};

/// What a proxy is to do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The network: vertex 0 is the clients' side, vertex 1 the servers'.
    pub network: Value,
    /// Seed of every random stream.
    pub seed: u64,
    /// The doors; none where TUN devices are joined.
    #[serde(default)]
    pub doors: Vec<DoorPlan>,
    /// How the loop waits.
    pub waiting: Waiting,
    /// Length of the spin at the end of a hybrid wait.
    pub spin_ns: Time,
    /// Ask for SCHED_FIFO.
    #[serde(default)]
    pub realtime: bool,
    /// Where packets are captured (pcapng); absent: nowhere.
    pub capture: Option<PathBuf>,
}

/// How a proxy went.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Counts and delays of all doors since the start, set against delivered.
    pub doors: Vec<Row>,
    /// Links of the network as it was last.
    pub links: Vec<Link>,
    /// What the loop tells about itself.
    pub own: RealSelf,
    /// What failed, in words.
    pub errors: Vec<String>,
    /// How long it ran.
    pub duration_s: f64,
}

/// All doors at a moment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Snapshot {
    /// Seconds since the start.
    pub t_s: f64,
    /// Doors, both directions.
    pub doors: Vec<Row>,
    /// Clients that are known.
    pub clients: usize,
}

/// What the loop shares with whoever looks at it.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    /// A network that takes the place of the present one.
    pub(super) change: Mutex<Option<(NetworkSpec, Value)>>,
    pub(super) snapshot: Mutex<Snapshot>,
}

impl Shared {
    /// Whether the loop is to end.
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
