//! UDP doors: datagrams of many clients, each with a socket of its own towards the target, by which answers find back.
//!
//! ```text
//!  client A ─► 127.0.0.1:7000 ═ network ═► socket of A ─► target
//!  client B ─►        "       ═ network ═► socket of B ─►   "
//! ```

use super::{flow, opposite, unheard, Carries, Datagram, DoorPlan, Ports, Taken, Tape, Troubles, FAR, NEAR};
use crate::os::{clock::RunClock, socket::Socket};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::fd::RawFd,
};
use tcps_core::{
    ids::VertexId,
    time::{Time, SECOND},
};
use tcps_plan::{RunError, OVERHEAD_BYTES};
use tcps_wire::pcapng::Seen;

/// A client that has been silent this long, in both directions, is forgotten. [RFC 4787 §4.3]
const IDLE_NS: Time = 300 * SECOND;
/// Most clients of all doors; the one silent longest makes room.
const MOST: usize = 1000;

/// All UDP doors of a proxy.
pub struct UdpDoors {
    doors: Vec<Door>,
    clients: BTreeMap<u32, Client>,
    by_address: BTreeMap<(u16, SocketAddr), u32>,
    /// Client behind each descriptor after those of the doors.
    places: Vec<u32>,
    next: u32,
    changed: bool,
    /// When idle clients were last looked for.
    swept: Time,
    strangers: u64,
    /// Drops, and refusals of each door, counted by sockets that are gone.
    dropped: u64,
    refused: Vec<u64>,
}

struct Door {
    socket: Socket,
    listen: SocketAddr,
    target: SocketAddr,
    /// Datagrams that came from each side.
    came: [u32; 2],
}

struct Client {
    door: u16,
    address: SocketAddr,
    socket: Socket,
    own: SocketAddr,
    heard: Time,
}

impl UdpDoors {
    /// Binds the doors.
    pub fn bind(plans: &[&DoorPlan]) -> Result<Self, RunError> {
        let open = |p: &&DoorPlan| {
            let bound = UdpSocket::bind(p.listen).and_then(Socket::over);
            let socket = bound.map_err(|e| unheard("UDP", p.listen, &e))?;
            Ok(Door { listen: socket.address()?, socket, target: p.target, came: [0; 2] })
        };
        Ok(Self {
            doors: plans.iter().map(open).collect::<Result<_, RunError>>()?,
            clients: BTreeMap::new(),
            by_address: BTreeMap::new(),
            places: Vec::new(),
            next: 0,
            changed: false,
            swept: 0,
            strangers: 0,
            dropped: 0,
            refused: vec![0; plans.len()],
        })
    }

    /// Where clients come.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, RunError> {
        self.doors.iter().map(|d| d.socket.address()).collect()
    }

    /// The client at an address, made if it is new; nothing if it can have no socket.
    fn client(&mut self, door: u16, address: SocketAddr, now: Time) -> Option<u32> {
        if let Some(id) = self.by_address.get(&(door, address)) {
            self.clients.entry(*id).and_modify(|c| c.heard = c.heard.max(now));
            return Some(*id);
        }
        if self.clients.len() >= MOST {
            self.make_room();
        }
        let from = towards(self.doors[usize::from(door)].target);
        let socket = Socket::bind(from).or_else(|_| {
            // There may be no more descriptors.
            self.make_room();
            Socket::bind(from)
        });
        let socket = socket.ok()?;
        socket.report_refusals();
        let own = socket.address().ok()?;
        let id = self.next;
        self.next += 1;
        self.clients.insert(id, Client { door, address, socket, own, heard: now });
        self.by_address.insert((door, address), id);
        self.changed = true;
        Some(id)
    }

    /// Forgets the client that has been silent longest.
    fn make_room(&mut self) {
        let longest = self.clients.iter().min_by_key(|(_, c)| c.heard).map(|(id, _)| *id);
        longest.into_iter().for_each(|id| self.forget(id));
    }

    fn forget(&mut self, id: u32) {
        if let Some(c) = self.clients.remove(&id) {
            self.by_address.remove(&(c.door, c.address));
            self.dropped += u64::from(c.socket.drops());
            self.refused[usize::from(c.door)] += c.socket.refused();
            self.changed = true;
        }
    }

    /// The door and the client of what came from an address at a port, and the side that it came from.
    fn look(&mut self, port: usize, from: SocketAddr, now: Time) -> Option<(u16, u32, VertexId)> {
        let Some(place) = port.checked_sub(self.doors.len()) else {
            return Some((port as u16, self.client(port as u16, from, now)?, NEAR));
        };
        let id = self.places[place];
        let c = self.clients.get(&id)?;
        (self.doors[usize::from(c.door)].target == from).then_some((c.door, id, FAR))
    }
}

impl Ports for UdpDoors {
    fn descriptors(&self) -> Vec<RawFd> {
        let doors = self.doors.iter().map(|d| d.socket.fd());
        doors.chain(self.places.iter().filter_map(|id| Some(self.clients.get(id)?.socket.fd()))).collect()
    }

    fn changed(&mut self, now: Time) -> bool {
        if now - self.swept > SECOND {
            self.swept = now;
            let idle = self.clients.iter().filter(|(_, c)| now - c.heard > IDLE_NS);
            let idle: Vec<u32> = idle.map(|(id, _)| *id).collect();
            idle.into_iter().for_each(|id| self.forget(id));
        }
        let changed = std::mem::take(&mut self.changed);
        if changed {
            self.places = self.clients.keys().copied().collect();
        }
        changed
    }

    fn receive(&mut self, port: usize, clock: &mut RunClock, buffer: &mut [u8]) -> Taken {
        let socket = match port.checked_sub(self.doors.len()) {
            None => Some(&mut self.doors[port].socket),
            // It may have been forgotten since the wait began.
            Some(place) => self.clients.get_mut(&self.places[place]).map(|c| &mut c.socket),
        };
        let Some((got, arrived)) = socket.and_then(|s| s.receive_at(clock, buffer)) else {
            return Taken::Empty;
        };
        let Some((door, exit, from)) = self.look(port, got.from, arrived) else {
            self.strangers += 1;
            return Taken::Stranger;
        };
        let (len, dscp, ecn, size) = (got.len, got.dscp, got.ecn, got.len as u32);
        let (flow, wire_bytes, rated_bytes) = (flow(door, from), size + OVERHEAD_BYTES, size);
        let (to, came) = (opposite(from), &mut self.doors[usize::from(door)].came[usize::from(from)]);
        let index = std::mem::replace(came, came.wrapping_add(1));
        Taken::Packet(Datagram {
            door,
            service: 0,
            channel: None,
            from,
            to,
            exit,
            arrived,
            len,
            class: flow.0,
            index,
            dscp,
            ecn,
            wire_bytes,
            rated_bytes,
            carries: Carries::Flow(flow),
            segment: None,
        })
    }

    fn deliver(&mut self, e: &Datagram, bytes: &[u8]) -> bool {
        let Some(client) = self.clients.get_mut(&e.exit) else { return false };
        let door = &mut self.doors[usize::from(e.door)];
        client.heard = e.arrived.max(client.heard);
        let tos = e.ecn.tos(e.dscp);
        match e.from {
            NEAR => client.socket.send(bytes, door.target, tos),
            _ => door.socket.send(bytes, client.address, tos),
        }
    }

    fn tape(&self, tape: &mut Tape, at: Time, e: &Datagram, bytes: &[u8], seen: Seen) {
        let Some(client) = self.clients.get(&e.exit) else { return };
        let door = &self.doors[usize::from(e.door)];
        let (near, far) = ((client.address, door.listen), (client.own, door.target));
        let side = if seen == Seen::Coming { e.from } else { e.to };
        let ends = if side == NEAR { near } else { far };
        let ends = if e.from == NEAR { ends } else { (ends.1, ends.0) };
        tape.datagram(at, side, ends, e.ecn.tos(e.dscp), bytes, seen);
    }

    fn stamps(&self) -> &'static str {
        "kernel"
    }

    fn troubles(&self) -> Troubles {
        let sockets = self.doors.iter().map(|d| &d.socket).chain(self.clients.values().map(|c| &c.socket));
        let dropped = self.dropped + sockets.map(|s| u64::from(s.drops())).sum::<u64>();
        let mut refused = self.refused.clone();
        self.clients.values().for_each(|c| refused[usize::from(c.door)] += c.socket.refused());
        Troubles { dropped, strangers: self.strangers, unread: 0, refused }
    }

    fn clients(&self) -> usize {
        self.clients.len()
    }
}

/// The address of a socket from which a target can be reached.
fn towards(target: SocketAddr) -> IpAddr {
    match target.ip() {
        ip if ip.is_loopback() => ip,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{emu::DoorKind, os::clock::monotonic_ns};
    use std::net::UdpSocket;

    fn door(target: SocketAddr) -> DoorPlan {
        let listen = "127.0.0.1:0".parse().unwrap();
        DoorPlan { name: "a".into(), kind: DoorKind::Udp, listen, target }
    }

    fn socket() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    /// What comes in at a port, once it is there.
    fn take(doors: &mut UdpDoors, port: usize, clock: &mut RunClock, buffer: &mut [u8]) -> Datagram {
        for _ in 0..10_000 {
            match doors.receive(port, clock, buffer) {
                Taken::Packet(datagram) => return datagram,
                Taken::Stranger => panic!("a stranger"),
                Taken::Empty => std::thread::sleep(std::time::Duration::from_millis(1)),
            }
        }
        panic!("nothing came");
    }

    #[test]
    fn each_client_has_a_socket_of_its_own_and_answers_find_back() {
        let (server, target) = socket();
        let mut doors = UdpDoors::bind(&[&door(target)]).unwrap();
        let at = doors.addresses().unwrap()[0];
        let (mut clock, mut buffer) = (RunClock::new(monotonic_ns()), [0; 64]);
        let clients = [socket(), socket()];
        let mut froms = Vec::new();
        for (i, (client, _)) in clients.iter().enumerate() {
            client.send_to(&[i as u8], at).unwrap();
            let datagram = take(&mut doors, 0, &mut clock, &mut buffer);
            assert!(doors.deliver(&datagram, &buffer[..datagram.len]));
            let mut got = [0; 8];
            let (len, from) = server.recv_from(&mut got).unwrap();
            assert_eq!(got[..len], [i as u8]);
            froms.push(from);
        }
        assert_ne!(froms[0], froms[1]);
        assert!(doors.changed(0), "there are more sockets to wait for");
        for (i, (client, _)) in clients.iter().enumerate() {
            server.send_to(&[10 + i as u8], froms[i]).unwrap();
            let datagram = take(&mut doors, 1 + i, &mut clock, &mut buffer);
            assert_eq!(datagram.from, FAR);
            assert!(doors.deliver(&datagram, &buffer[..datagram.len]));
            let mut got = [0; 8];
            assert_eq!(client.recv_from(&mut got).unwrap(), (1, at));
            assert_eq!(got[0], 10 + i as u8);
        }
    }

    // [RFC 4787 §4.3]
    #[test]
    fn a_silent_client_is_forgotten_after_five_minutes_and_what_is_under_way_to_it_goes_nowhere() {
        let (_server, target) = socket();
        let mut doors = UdpDoors::bind(&[&door(target)]).unwrap();
        let at = doors.addresses().unwrap()[0];
        let (mut clock, mut buffer) = (RunClock::new(monotonic_ns()), [0; 64]);
        socket().0.send_to(b"hand", at).unwrap();
        let datagram = take(&mut doors, 0, &mut clock, &mut buffer);
        assert!(doors.changed(299 * SECOND) && doors.clients() == 1);
        assert!(doors.changed(302 * SECOND + datagram.arrived) && doors.clients() == 0);
        assert_eq!(doors.descriptors().len(), 1);
        assert!(!doors.deliver(&datagram, b"hand"));
    }

    #[test]
    fn a_client_is_not_silent_while_it_sends_though_nothing_arrives() {
        let (_server, target) = socket();
        let mut doors = UdpDoors::bind(&[&door(target)]).unwrap();
        let address = socket().1;
        for at in [0, 200, 400] {
            assert_eq!(doors.client(0, address, at * SECOND), Some(0));
            doors.changed(at * SECOND + 2 * SECOND);
        }
        assert_eq!(doors.clients(), 1);
    }
}
