//! The emulator and its measurement between a user's own programs.
//!
//! ```text
//!  clients ◄─► doors ─┬─► tcps-net, real clock ─┬─► doors ◄─► servers
//!    (near)           └─── an account a door ───┘            (far)
//! ```
//! A door is a UDP port that hands datagrams on to a target (`udp`), the TUN devices of two network namespaces (`tun`), or
//! a TCP port, whose connections end here and therefore get delay and rate only (`tcp`, design: kernel's TCP). All doors share
//! one network, which can be exchanged while it runs; how far set and delivered delay differ is measured for every packet.

mod beside;
mod change;
mod control;
pub mod netns;
mod passage;
mod shared;

pub use crate::emu::{DoorKind, DoorPlan, Row};
pub use shared::{Outcome, Record, Settings, Snapshot};

use crate::{
    emu::{flow, lock, opposite, Across, Devices, Lines, Note, Segment, TcpDoor, UdpDoors},
    os::ring::Producer,
    recording::{ring, Foreign},
    threads,
};
use passage::passage;
use serde_json::Value;
use shared::{Order, Shared};
use std::{
    fs::File,
    net::SocketAddr,
    sync::{atomic::Ordering, mpsc::Receiver, Arc, Mutex},
    thread::JoinHandle,
};
use tcps_core::time::Time;
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
        let names: Vec<String> = udp.iter().map(|d| d.name.clone()).collect();
        let (shared, orders) = Shared::begin();
        let (shared, datagrams) = (Arc::new(shared), names.len() as u16);
        let udp = doors.addresses()?;
        let passage = passage(settings, &network, Box::new(doors), names, (&shared, orders))?;
        let rows = settings.record.as_ref().map(|record| ring(&record.streams)).transpose()?;
        let rows = rows.map(|rows| Arc::new(Mutex::new(rows)));
        // Only now do doors begin to work: nothing that the settings say can fail any more.
        let over = |(number, (listener, door))| {
            let note = rows.as_ref().map(|rows| note(rows.clone(), number, shared.start));
            TcpDoor::over(listener, door, &line, note)
        };
        let numbered = (datagrams..).zip(listeners.into_iter().zip(tcp));
        let streams = numbered.map(over).collect::<Result<Vec<_>, _>>()?;
        let addresses = order(settings, udp, &streams);
        let thread = threads::start(passage)?;
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

    /// When run time was 0 (CLOCK_MONOTONIC).
    pub fn start_ns(&self) -> Time {
        self.shared.start
    }

    /// Puts another network in the place of the present one. Packets in flight finish as they began, unless only rates,
    /// delays and independent losses differ. Where it is recorded, the row has the number of this `event`.
    pub fn change(&self, text: Value, event: Option<u32>) -> Result<(), RunError> {
        self.set(&change(&self.shared, text, self.seed, event)?);
        Ok(())
    }

    /// Asks for an event of the record's plan, after which the network is `text`.
    pub fn event(&self, line: Value, text: Value) -> Result<(), RunError> {
        self.set(&steer(&self.shared, line, text, self.seed)?);
        Ok(())
    }

    fn set(&self, lines: &Lines) {
        self.streams.first().into_iter().for_each(|door| door.set(lines));
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

/// Records the segments of a TCP door, the numbers of whose flows follow from its own.
fn note(rows: Arc<Mutex<Producer>>, door: u16, start: Time) -> Note {
    Box::new(move |s: Segment| {
        let (flow, ends) = (flow(door, s.from), [s.from, opposite(s.from)]);
        let sample = Foreign { flow, index: s.index, bytes: s.bytes, ends, came: s.came - start };
        lock(&rows).push(&s.sent.map_or_else(|| sample.sent(), |at| sample.delivered(at - start)));
    })
}

/// Leaves another network for the loop, if it can be built and leads both ways; its lines.
fn change(shared: &Shared, text: Value, seed: u64, event: Option<u32>) -> Result<Lines, RunError> {
    let (spec, lines) = network(&text, seed)?;
    shared.order(Order::Change(Box::new(spec), text, event));
    Ok(lines)
}

/// Leaves an event for the loop, if the network that it leads to can be built; its lines.
fn steer(shared: &Shared, line: Value, text: Value, seed: u64) -> Result<Lines, RunError> {
    let (_, lines) = network(&text, seed)?;
    shared.order(Order::Event(line, text));
    Ok(lines)
}

/// The loop between two TUN devices, near and far, in a thread of its own.
fn between(
    settings: &Settings,
    devices: [File; 2],
    shared: (&Arc<Shared>, Receiver<Order>),
) -> Result<JoinHandle<Outcome>, RunError> {
    let (network, _) = network(&settings.network, settings.seed)?;
    let doors = Box::new(Devices::new(devices.into(), Across::default()));
    threads::start(passage(settings, &network, doors, vec!["ip".into()], shared)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::ring::Consumer;
    use serde_json::json;
    use std::net::UdpSocket;
    use tcps_core::{
        record::{Kind, Record, RECORD_BYTES},
        time::MS,
    };

    fn network(delay_ns: Time) -> Value {
        let link =
            |name: &str, from: u16| json!({"name": name, "from": from, "to": 1 - from, "delay_ns": delay_ns});
        json!({"vertices": ["near", "far"], "links": [link("there", 0), link("back", 1)]})
    }

    fn plan(network: &Value) -> Value {
        let node = |name: &str| json!({"name": name});
        let component = |n: u16, name: &str| json!({"name": name, "kind": "srv", "session": 0, "node": n});
        let flow = |name: &str, direction: &str, path: [u16; 2]| {
            let path = json!([{"component": path[0], "channel": 0}, {"component": path[1]}]);
            json!({"name": name, "session": 0, "direction": direction, "period_ns": 0, "codec": "raw",
                   "source": {"kind": "generated", "bytes": 12}, "sink": {"kind": "count"}, "path": path})
        };
        json!({"name": "p", "seed": 1, "duration_ns": 1, "sessions": ["a"], "records": "packets",
               "nodes": [node("near"), node("far")], "components": [component(0, "near"), component(1, "far")],
               "flows": [flow("out", "forward", [0, 1]), flow("back", "backward", [1, 0])], "network": network,
               "channels": [{"name": "c", "session": 0, "a": 0, "b": 1, "transport": "udp"}]})
    }

    #[test]
    fn a_recorded_proxy_leaves_a_row_where_a_packet_came_in_passed_a_link_and_went_on_and_of_every_event() {
        let (server, client) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        }
        let ring =
            |name: &str| std::env::temp_dir().join(format!("tcps-proxy-{name}-{}", std::process::id()));
        let door = json!({"name": "a", "kind": "udp", "listen": "127.0.0.1:0", "target": server.local_addr().unwrap()});
        let record = json!({"plan": plan(&network(MS)), "ring": ring("rows"), "streams": ring("streams")});
        let settings = json!({"network": network(MS), "seed": 1, "doors": [door], "waiting": "timer", "spin_ns": 0,
                              "capture": null, "record": record});
        let proxy = Proxy::start(&serde_json::from_value(settings).unwrap()).unwrap();
        let mut buffer = [0; 16];
        client.send_to(b"hand", proxy.addresses()[0]).unwrap();
        let (_, from) = server.recv_from(&mut buffer).unwrap();
        server.send_to(b"force", from).unwrap();
        client.recv_from(&mut buffer).unwrap();
        let action = json!({"kind": "link", "links": [0], "delay_ns": 5 * MS});
        proxy.event(json!({"number": 0, "name": "e", "action": action}), network(5 * MS)).unwrap();
        proxy.change(network(7 * MS), Some(1)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        client.send_to(b"again", proxy.addresses()[0]).unwrap();
        server.recv_from(&mut buffer).unwrap();
        let outcome = proxy.stop().unwrap();
        assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
        let mut bytes = Vec::new();
        Consumer::open(&ring("rows")).unwrap().drain(&mut bytes);
        ["rows", "streams"].iter().for_each(|name| std::fs::remove_file(ring(name)).unwrap());
        let rows = bytes.chunks_exact(RECORD_BYTES);
        let rows: Vec<Record> =
            rows.map(|row| Record::from_bytes(row.try_into().unwrap()).unwrap()).collect();
        let of = |kind: Kind| {
            rows.iter().filter(|r| r.kind == kind).map(|r| (r.flow.0, r.index, r.size)).collect::<Vec<_>>()
        };
        let came = [(0, 0, 4), (1, 0, 5), (0, 1, 5)];
        assert_eq!((of(Kind::Sent), of(Kind::Delivered)), (came.to_vec(), came.to_vec()));
        assert_eq!(of(Kind::Event).iter().map(|e| e.1).collect::<Vec<_>>(), [0, 1]);
        let delays: Vec<Time> =
            rows.iter().filter(|r| r.kind == Kind::Delivered).map(|r| r.value / MS).collect();
        assert!(delays[..2].iter().all(|ms| *ms < 5) && delays[2] >= 7, "{delays:?}");
        let told = serde_json::to_value(outcome.report).unwrap();
        assert_eq!(told["nodes"][0]["name"], "emulator");
        assert!(told["split"].as_array().unwrap().iter().any(|s| s["flow"] == "out" && s["samples"] == 2));
    }
}
