//! The emulator and its measurement between a user's own programs.
//!
//! ```text
//!  clients ◄─► doors ─┬─► tcps-net, real clock ─┬─► doors ◄─► servers
//!    (near)           └─── an account a door ───┘            (far)
//! ```
//! A door is a UDP port that hands datagrams on to a target (`udp`), the TUN devices of two network namespaces (`tun`), or
//! a TCP port, whose connections end here and therefore get delay and rate only (`tcp`, design: kernel's TCP). All doors share
//! one network, which can be exchanged while it runs; how far set and delivered delay differ is measured for every packet.

mod change;
mod control;
pub mod netns;
mod passage;
mod shared;

pub use crate::emu::{DoorKind, DoorPlan, Row};
pub use shared::{Outcome, Settings, Snapshot};

use crate::emu::{lock, Across, Devices, Lines, TcpDoor, UdpDoors};
use passage::passage;
use serde_json::Value;
use shared::Shared;
use std::{
    fs::File,
    net::SocketAddr,
    sync::{atomic::Ordering, Arc},
    thread::JoinHandle,
};
use tcps_plan::net::NetworkSpec;
use tcps_plan::RunError;

/// A proxy at work, in threads of its own.
pub struct Proxy {
    shared: Arc<Shared>,
    thread: JoinHandle<Outcome>,
    streams: Vec<TcpDoor>,
    addresses: Vec<SocketAddr>,
    seed: u64,
}

impl Proxy {
    /// Binds all doors and begins.
    pub fn start(settings: &Settings) -> Result<Self, RunError> {
        let (udp, tcp): (Vec<_>, Vec<_>) = settings.doors.iter().partition(|d| d.kind == DoorKind::Udp);
        let doors = UdpDoors::bind(&udp)?;
        let (network, line) = network(&settings.network, settings.seed)?;
        let listeners = tcp.iter().map(|d| TcpDoor::listen(d)).collect::<Result<Vec<_>, _>>()?;
        let names = udp.iter().map(|d| d.name.clone()).collect();
        let shared = Arc::new(Shared::default());
        let udp = doors.addresses()?;
        let passage = passage(settings, &network, Box::new(doors), names, &shared)?;
        // Only now do doors begin to work: nothing that the settings say can fail any more.
        let over = |(listener, door)| TcpDoor::over(listener, door, &line);
        let streams = listeners.into_iter().zip(tcp).map(over).collect::<Result<Vec<_>, _>>()?;
        let addresses = order(settings, udp, &streams);
        let thread = std::thread::spawn(passage);
        Ok(Self { shared, thread, streams, addresses, seed: settings.seed })
    }

    /// Where clients come, in the order of the doors.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Counts so far and delays of the last second.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = lock(&self.shared.snapshot).clone();
        self.streams.iter().for_each(|s| snapshot.doors.extend(s.rows()));
        snapshot
    }

    /// Puts another network in the place of the present one. Packets in flight finish as they began, unless only rates,
    /// delays and independent losses differ.
    pub fn change(&self, text: Value) -> Result<(), RunError> {
        let lines = change(&self.shared, text, self.seed)?;
        if let Some(door) = self.streams.first() {
            door.set(&lines);
        }
        Ok(())
    }

    /// Whether the loop has ended by itself.
    pub fn ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it.
    pub fn stop(self) -> Result<Outcome, RunError> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let rows: Vec<Row> = self.streams.into_iter().flat_map(TcpDoor::close).collect();
        let outcome = self.thread.join();
        let mut outcome = outcome.map_err(|_| RunError::bug("the proxy's loop died"))?;
        outcome.doors.extend(rows);
        Ok(outcome)
    }
}

/// The addresses of all doors in the order of the settings.
fn order(settings: &Settings, udp: Vec<SocketAddr>, tcp: &[TcpDoor]) -> Vec<SocketAddr> {
    let (mut udp, mut tcp) = (udp.into_iter(), tcp.iter().map(TcpDoor::address));
    let next = |d: &DoorPlan| if d.kind == DoorKind::Udp { udp.next() } else { tcp.next() };
    settings.doors.iter().filter_map(next).collect()
}

/// Reads a network that can be built and leads from one side to the other and back, with its lines.
fn network(text: &Value, seed: u64) -> Result<(NetworkSpec, Lines), RunError> {
    let spec: NetworkSpec =
        serde_json::from_value(text.clone()).map_err(|e| RunError::config(format!("network: {e}")))?;
    let lines = Lines::of(&spec, seed)?;
    Ok((spec, lines))
}

/// Leaves another network for the loop, if it can be built and leads both ways; its lines.
fn change(shared: &Shared, text: Value, seed: u64) -> Result<Lines, RunError> {
    let (spec, lines) = network(&text, seed)?;
    *lock(&shared.change) = Some((spec, text));
    Ok(lines)
}

/// The loop between two TUN devices, near and far, in a thread of its own.
fn between(
    settings: &Settings,
    devices: [File; 2],
    shared: &Arc<Shared>,
) -> Result<JoinHandle<Outcome>, RunError> {
    let (network, _) = network(&settings.network, settings.seed)?;
    let doors = Box::new(Devices::new(devices.into(), Across::default()));
    Ok(std::thread::spawn(passage(settings, &network, doors, vec!["ip".into()], shared)?))
}
