//! What a proxy is told, what it tells, and what its loop shares with whoever looks at it.

use crate::{
    emu::{DoorPlan, Row, Service},
    os::clock::monotonic_ns,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{channel, Receiver, Sender},
        Mutex,
    },
};
use tcps_core::time::Time;
use tcps_plan::{
    net::NetworkSpec,
    report::{Link, RealSelf, Report},
    Plan, Waiting,
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
    /// Where it leaves rows; absent: nowhere.
    #[serde(default)]
    pub record: Option<Record>,
}

/// The record of a proxy.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Two flows a door, that of the clients first, of UDP doors before those of TCP; components, nodes and vertices 0
    /// and 1 are the sides.
    pub plan: Plan,
    /// The ring that the loop makes.
    pub ring: PathBuf,
    /// The ring of all TCP doors.
    pub streams: PathBuf,
}

/// How a proxy went.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Counts and delays of all doors since the start, set against delivered.
    pub doors: Vec<Row>,
    /// The same of the services that the doors' packets are of, where they are told apart.
    pub services: Vec<Row>,
    /// Links of the network, also of those before it.
    pub links: Vec<Link>,
    /// What the loop tells about itself.
    pub own: RealSelf,
    /// What failed, in words.
    pub errors: Vec<String>,
    /// How long it ran.
    pub duration_s: f64,
    /// What a run tells about itself beside its rows; absent without a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<Report>>,
}

/// All doors at a moment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Snapshot {
    /// Seconds since the start.
    pub t_s: f64,
    /// Doors, both directions.
    pub doors: Vec<Row>,
    /// Services, both directions, where they are told apart.
    pub services: Vec<Row>,
    /// Clients that are known.
    pub clients: usize,
}

/// What others ask of the loop.
pub(super) enum Order {
    /// A network that takes the place of the present one, and the number of this event in rows.
    Change(Box<NetworkSpec>, Value, Option<u32>),
    /// An event of the record's plan, and the network as it is after it.
    Event(Value, Value),
}

/// What the loop shares with whoever looks at it.
pub(super) struct Shared {
    /// When run time was 0 (CLOCK_MONOTONIC).
    pub(super) start: Time,
    pub(super) stop: AtomicBool,
    orders: Sender<Order>,
    pub(super) snapshot: Mutex<Snapshot>,
    /// The program of each service that was seen, once it is known.
    pub(super) programs: Mutex<BTreeMap<Service, Option<String>>>,
}

impl Shared {
    /// What is shared from now on, and what the loop hears of it.
    pub(super) fn begin() -> (Self, Receiver<Order>) {
        let (orders, heard) = channel();
        let (start, stop) = (monotonic_ns(), AtomicBool::new(false));
        let (snapshot, programs) = (Mutex::default(), Mutex::default());
        (Self { start, stop, orders, snapshot, programs }, heard)
    }

    /// Whether the loop is to end.
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks the loop for something; one that has ended does nothing any more.
    pub(super) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }
}
