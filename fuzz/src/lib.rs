//! Bodies of the fuzz targets: functions of bytes that panic when something is wrong.
//!
//! ```text
//! fuzz_targets/NAME.rs ──► tcps_fuzz::NAME ◄── tests/replay.rs
//! libFuzzer, by coverage                       seeds in corpus/NAME, and random changes of them
//! ```
//! Transports, queues, losses and sources are played by their ids. Another new target is a function here, a line in [`TARGETS`], a file in `fuzz_targets` and a `[[bin]]`.

mod board;
mod hooks;
mod line;
mod parts;
mod rtp;
mod script;
mod security;
mod streams;
mod sync;
mod tcp;
mod telehaptic;
mod tls;
mod transport;
mod udp;
mod wire;

use serde_json::json;
use tcps_core::{
    endpoint::Ecn,
    ids::VertexId,
    param::{Entry, Named},
};
use tcps_net::{loss::LOSSES, queue::QUEUES, traffic::SOURCES, Network, Packet};
use tcps_plan::net::{LinkSpec, NetworkSpec, QueueSpec, TrafficModel, TrafficSpec, TRAFFIC_BASE};

pub use board::board;
pub use hooks::hooks;
pub use line::line;
pub use parts::parts;
pub use rtp::{fec, rtcp, rtp};
pub use security::security;
pub use streams::{kernel_tcp, quic, tcp, tls};
pub use sync::clocksync;
pub use tcp::{segment, tcp_any};
pub use telehaptic::{telehaptic, telehaptic_any, telehaptic_pair};
pub use tls::tls_record;
pub use transport::transport;
pub use udp::{udp, udp_pair};
pub use wire::{bundle, clock, echo, header, ip, stream};

/// A fuzz target: panics if something is wrong with what the bytes lead to.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: [(&str, Target); 29] = [
    ("board", board),
    ("line", line),
    ("hooks", hooks),
    ("bundle", bundle),
    ("stream", stream),
    ("header", header),
    ("echo", echo),
    ("clock", clock),
    ("ip", ip),
    ("telehaptic", telehaptic),
    ("telehaptic_any", telehaptic_any),
    ("telehaptic_pair", telehaptic_pair),
    ("transport", transport),
    ("udp", udp),
    ("udp_pair", udp_pair),
    ("tcp", tcp),
    ("tls", tls),
    ("tls_record", tls_record),
    ("segment", segment),
    ("tcp_any", tcp_any),
    ("kernel_tcp", kernel_tcp),
    ("quic", quic),
    ("rtcp", rtcp),
    ("rtp", rtp),
    ("fec", fec),
    ("security", security),
    ("clocksync", clocksync),
    ("network", network),
    ("parts", parts),
];

/// The network of a plan, as JSON, that carries packets where it is not refused. After a byte of 0, 1 or 2: an entry of the room of queues,
/// losses or sources by its id, and its parameters as JSON, in such a network.
pub fn network(data: &[u8]) {
    let link = LinkSpec { name: "l".into(), to: VertexId(1), rate_bps: Some(8e6), ..LinkSpec::default() };
    let mut spec = NetworkSpec { vertices: vec!["a".into(), "b".into()], ..NetworkSpec::default() };
    let mut end_ns = 1_000_000_000;
    match data {
        [0, id, params @ ..] => {
            let Some(discipline) = entry(QUEUES, *id, params) else { return };
            let queue = QueueSpec { discipline, limit_packets: Some(20), ..QueueSpec::default() };
            spec.links = vec![LinkSpec { queue, ..link }];
        }
        [1, id, params @ ..] => spec.links = vec![LinkSpec { loss: entry(LOSSES, *id, params), ..link }],
        [2, id, params @ ..] => {
            let Some(source) = entry(SOURCES, *id, params) else { return };
            let traffic = json!({"name": "t", "from": 0, "to": 1, "model": {"kind": source.kind}});
            let Ok(mut traffic) = serde_json::from_value::<TrafficSpec>(traffic) else { return };
            traffic.model = TrafficModel::Source(source);
            (spec.links, spec.traffic) = (vec![link], vec![traffic]);
        }
        _ => {
            let Ok(read) = serde_json::from_slice(data) else { return };
            (spec, end_ns) = (read, 10_000_000); // a radio cell may have slots of 1 us
        }
    }
    let Ok(mut network) = Network::new(&spec, &["kinematic".into()], 1) else { return };
    if spec.vertices.len() < 2 {
        return;
    }
    for n in 0..50 {
        let (class, dscp) = (n as u16 % 2 * TRAFFIC_BASE, [0, 46, 10][n as usize % 3]);
        let packet = Packet {
            payload: n,
            class,
            index: n,
            dst: VertexId(1),
            dscp,
            ecn: Ecn::of(n as u8),
            wire_bytes: 100 + n * 20,
            sent_ns: 0,
        };
        network.send(0, VertexId(0), packet);
    }
    network.handle_timeout(1_000); // a source of 1 Tbit/s has made 10^5 packets by then
    if spec.traffic.is_empty() {
        network.handle_timeout(end_ns);
    }
}

/// An entry of a room by its id, which stays as it is, with parameters as JSON.
fn entry<M>(room: &[&'static Entry<M>], id: u8, params: &[u8]) -> Option<Named> {
    let entry = room.iter().find(|e| e.id == u16::from(id))?;
    Some(Named::new(entry.name, serde_json::from_slice(params).ok()?))
}
