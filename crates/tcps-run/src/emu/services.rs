//! Services: the programs behind TUN devices told apart, by the port at which one of two ends listens.
//!
//! ```text
//!  first packet of a pair   41000 ─► 5004     5004 listens: everything to or from it is `udp :5004`
//!  its answer               5004 ─► 41000
//! ```
//! Who sends first is the client, as with every program that answers; ends that both send to a port of the other are two
//! services.

use std::fmt;
use tcps_core::ids::VertexId;
use tcps_wire::ip::{self, Transport};

/// Services that are told apart; packets of more are counted together.
const MOST: usize = 32;
/// Fragmented datagrams of a side whose later fragments are known by their identification.
const FRAGMENTS: usize = 64;

/// What is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// A port that somebody listens at.
    Port(Transport, u16),
    /// Echo requests and messages of the kernels.
    Icmp,
    /// What has no port that can be read, and what is beyond the most services.
    Others,
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(Transport::Udp, port) => write!(f, "udp :{port}"),
            Self::Port(Transport::Tcp, port) => write!(f, "tcp :{port}"),
            Self::Icmp => f.write_str("icmp"),
            Self::Others => f.write_str("others"),
        }
    }
}

/// The services whose packets have been seen, numbered from 1 in this order.
#[derive(Debug)]
pub struct Services {
    known: Vec<Service>,
    /// Identification and service of the newest fragmented datagrams of each side.
    fragments: [[(u16, Service); FRAGMENTS]; 2],
}

impl Default for Services {
    fn default() -> Self {
        Self { known: Vec::new(), fragments: [[(0, Service::Others); FRAGMENTS]; 2] }
    }
}

impl Services {
    /// All of them; the first has the number 1.
    pub fn all(&self) -> &[Service] {
        &self.known
    }

    /// The number of the service that a packet from a side is of.
    pub fn number(&mut self, from: VertexId, packet: &ip::Packet<'_>) -> u16 {
        let service = self.of(from, packet);
        let numbered = self.known.iter().position(|known| *known == service);
        let number = numbered.unwrap_or_else(|| {
            self.known.push(service);
            self.known.len() - 1
        });
        number as u16 + 1
    }

    fn of(&mut self, from: VertexId, packet: &ip::Packet<'_>) -> Service {
        let found = match packet.ports() {
            Some((transport, ports)) => self.listening(transport, ports),
            None if packet.is_icmp() => Service::Icmp,
            None => Service::Others,
        };
        let Some((id, first)) = packet.fragment() else { return found };
        let kept = &mut self.fragments[from.index() % 2][usize::from(id) % FRAGMENTS];
        if first {
            *kept = (id, found);
        }
        if kept.0 == id {
            kept.1
        } else {
            Service::Others
        }
    }

    fn listening(&self, transport: Transport, [source, destination]: [u16; 2]) -> Service {
        let [source, destination] = [source, destination].map(|port| Service::Port(transport, port));
        match destination {
            known if self.known.contains(&known) => known,
            _ if self.known.contains(&source) => source,
            new if self.ports() < MOST => new,
            _ => Service::Others,
        }
    }

    fn ports(&self) -> usize {
        self.known.iter().filter(|known| matches!(known, Service::Port(..))).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emu::{FAR, NEAR};

    /// An IPv4 packet with ports, as the fragment of a datagram: its identification, and flags with offset.
    fn packet(protocol: u8, [source, destination]: [u16; 2], (id, offset): (u16, u16)) -> Vec<u8> {
        let mut b = vec![0x45, 0, 0, 40];
        b.extend(id.to_be_bytes());
        b.extend(offset.to_be_bytes());
        b.extend([64, protocol, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
        b.extend(source.to_be_bytes());
        b.extend(destination.to_be_bytes());
        b.extend(20u16.to_be_bytes());
        b.resize(40, 0);
        b
    }

    const WHOLE: (u16, u16) = (0, 0x4000);
    const MORE: u16 = 0x2000;

    fn named(services: &mut Services, from: VertexId, bytes: &[u8]) -> String {
        let number = services.number(from, &ip::Packet::new_checked(bytes).unwrap());
        services.all()[usize::from(number) - 1].to_string()
    }

    #[test]
    fn packets_are_of_the_port_that_the_first_of_them_went_to() {
        let mut found = Services::default();
        assert_eq!(named(&mut found, NEAR, &packet(17, [41000, 5004], WHOLE)), "udp :5004");
        assert_eq!(named(&mut found, FAR, &packet(17, [5004, 41000], WHOLE)), "udp :5004");
        assert_eq!(named(&mut found, FAR, &packet(6, [41000, 5004], WHOLE)), "tcp :5004");
        assert_eq!(named(&mut found, NEAR, &packet(1, [0, 0], WHOLE)), "icmp");
        assert_eq!(named(&mut found, NEAR, &packet(47, [0, 0], WHOLE)), "others");
        assert_eq!(found.all().len(), 4);
    }

    #[test]
    fn later_fragments_are_of_the_service_of_the_first() {
        let mut found = Services::default();
        assert_eq!(named(&mut found, NEAR, &packet(17, [41000, 5004], (7, MORE))), "udp :5004");
        assert_eq!(named(&mut found, NEAR, &packet(17, [9, 9], (7, 185))), "udp :5004");
        assert_eq!(named(&mut found, FAR, &packet(17, [9, 9], (7, 185))), "others", "of the other side");
        assert_eq!(
            named(&mut found, NEAR, &packet(17, [9, 9], (8, 185))),
            "others",
            "its first was not seen"
        );
    }

    #[test]
    fn services_beyond_the_most_are_counted_together() {
        let mut found = Services::default();
        for port in 1..=100 {
            named(&mut found, NEAR, &packet(17, [41000, port], WHOLE));
        }
        assert_eq!(found.all().len(), MOST + 1);
        assert_eq!(named(&mut found, NEAR, &packet(17, [41000, 1], WHOLE)), "udp :1");
        assert_eq!(named(&mut found, NEAR, &packet(17, [41000, 99], WHOLE)), "others");
    }
}
