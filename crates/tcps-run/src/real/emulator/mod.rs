//! The emulator of a run: an engine with the network of the scenario between real nodes.
//!
//! ```text
//!  node a ──► port a ─┐                        ┌─► port b ──► node b
//!                     └─► tcps-net, real clock ─┘
//! ```
//! Ports are UDP gates on loopback, without root, or the TUN devices of nodes in network namespaces of their own, or the
//! TAP devices that are the links between Mininet's switches, or none, where another program holds the devices: what
//! is left then is to start that program, tell it of events, ask it for queues, and hear how it ends.

mod scenario;
mod taps;

use crate::{
    attack::{self, Attacker},
    carrier::{Carrier, ForeignSpec},
    emu::{
        Accounts, Devices, Engine, Flows, GateAddress, Gates, Layers, Leads, Listeners, Nodes, Pace, Ports,
        WireSpec, Wires,
    },
    kernel_tcp,
    os::ring::Producer,
    recording,
};
use scenario::{report, ScenarioHost};
use serde_json::Value;
use std::{
    fs::File,
    path::Path,
    sync::{atomic::AtomicBool, mpsc::Receiver},
};
use tcps_core::{ids::VertexId, time::Time};
use tcps_net::ForeignCode;
use tcps_plan::{report::Report, Isolation, Plan, RunError};

/// The emulator, before nodes have told where they listen.
pub struct Emulator<'a> {
    plan: &'a Plan,
    entrance: Entrance<'a>,
    network: Carrier,
    attacker: Option<Attacker>,
    ring: Producer,
}

enum Entrance<'a> {
    Gates(Gates<'a>),
    Taps(taps::Listener),
    /// The devices of links, which link leaves each, and what ends of links are called.
    Wires(&'a WireSpec, Vec<File>, Leads, Vec<String>),
    /// Where the program that simulates the network takes the devices.
    Beyond,
}

impl<'a> Emulator<'a> {
    /// Builds the network, or has another program build it, and its ports; TUN devices are taken at `taps`.
    pub fn prepare(
        plan: &'a Plan,
        ring: &Path,
        taps: Option<&Path>,
        foreign: Option<&ForeignSpec>,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, RunError> {
        let network = Carrier::new(plan, foreign, true, code)?;
        let mut attacker = None;
        let entrance = match plan.real.network {
            Isolation::Gates => {
                kernel_tcp::refuse(plan, "the emulator's gates carry datagrams of UDP only")?;
                attacker = Some(Attacker::new(plan, &|from, to| network.route(from, to))?);
                Entrance::Gates(Gates::bind(plan)?)
            }
            Isolation::Namespaces if plan.real.frames => Entrance::Beyond,
            Isolation::Namespaces => Entrance::Taps(taps::Listener::bind(taps)?),
        };
        if attacker.is_none() {
            attack::refuse(plan)?;
        }
        Ok(Self { plan, entrance, network, attacker, ring: recording::ring(ring)? })
    }

    /// Builds the links of a plan between devices of this process's network namespace; `alone` is the plan of
    /// [`WireSpec::plan`].
    pub fn wired(
        plan: &Plan,
        alone: &'a Plan,
        ring: &Path,
        wires: &'a WireSpec,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, RunError> {
        let network = Carrier::new(alone, None, true, code)?;
        let (devices, leads) = wires.open(plan)?;
        let place = |v: VertexId| plan.network.vertices.get(v.index()).cloned().unwrap_or_default();
        let ends = plan.network.links.iter().flat_map(|l| [place(l.from), place(l.to)]).collect();
        let entrance = Entrance::Wires(wires, devices, leads, ends);
        Ok(Self { plan: alone, entrance, network, attacker: None, ring: recording::ring(ring)? })
    }

    /// The gates that nodes send to; without gates, nodes send to each other.
    pub fn gates(&self) -> Result<Vec<GateAddress>, RunError> {
        match &self.entrance {
            Entrance::Gates(g) => g.addresses(),
            Entrance::Taps(_) | Entrance::Wires(..) | Entrance::Beyond => Ok(Vec::new()),
        }
    }

    /// Joins the nodes, and runs to the end of the plan or until `stop`, with the events that it is asked for meanwhile.
    /// Run time is 0 at `start` (CLOCK_MONOTONIC).
    pub fn run(
        self,
        listeners: &Listeners,
        start: Time,
        stop: &AtomicBool,
        steering: Receiver<Value>,
    ) -> Result<Report, RunError> {
        let (plan, nodes) = (self.plan, self.plan.nodes.len());
        let flows = Flows::new(plan, &listeners.channels);
        let mut names = plan.nodes.iter().map(|n| n.name.clone()).collect();
        let mut wired = None;
        let ports: Box<dyn Ports + 'a> = match self.entrance {
            Entrance::Gates(gates) => Box::new(gates.joined(plan, listeners)),
            Entrance::Taps(listener) => {
                Box::new(Devices::new(listener.devices(nodes)?, Nodes::new(nodes, flows)))
            }
            Entrance::Wires(spec, devices, leads, ends) => {
                (wired, names) = (Some(spec), ends);
                Box::new(Devices::new(devices, Wires::new(leads, flows)))
            }
            Entrance::Beyond => Box::new(Devices::new(Vec::new(), Nodes::new(0, flows))),
        };
        let traffic = plan.network.traffic.len() as u16;
        let network = Layers::new(self.network).stopping(traffic, plan.duration_ns);
        let ways =
            plan.channels.iter().flat_map(|c| [(0, c.a.into(), c.b.into()), (0, c.b.into(), c.a.into())]);
        let real = &plan.real;
        let pace = Pace { waiting: real.waiting, spin_ns: real.spin_ns, realtime: real.realtime };
        let host = ScenarioHost::new(plan, self.ring, self.attacker, stop, steering);
        let ended = Engine::new(host, ports, network, Accounts::new(ways, false), start, pace).run();
        Ok(report(ended, &names, |link| wired.is_none_or(|w| w.carries(link))))
    }
}
