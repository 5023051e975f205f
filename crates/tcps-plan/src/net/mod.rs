//! What a network is made of, in SI units, as the scenario compiler hands it over.

mod class;
mod hops;
mod recording;
mod stats;

pub use class::{traffic_class, traffic_of_class, ASIDE_CLASS, TRAFFIC_BASE};
pub use hops::{Hop, Hops};
pub use recording::Recording;
pub use stats::{LinkStats, QueueState, TrafficStats};
pub use tcps_core::law::Law;

use serde::Deserialize;
use serde_json::Value;
use tcps_core::{
    dist::Dist,
    ids::{LinkId, VertexId},
    param::{Fault, Named},
    time::Time,
};

/// A graph of vertices and unidirectional links, its routing, and its background traffic.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Names of the vertices: nodes of the scenario first, then routers and switches.
    #[serde(default)]
    pub vertices: Vec<String>,
    /// Unidirectional links (a full-duplex link of the scenario is two).
    #[serde(default)]
    pub links: Vec<LinkSpec>,
    /// How paths are chosen.
    #[serde(default)]
    pub routing: Routing,
    /// Background traffic.
    #[serde(default)]
    pub traffic: Vec<TrafficSpec>,
    /// What background traffic plays, by number.
    #[serde(default)]
    pub recordings: Vec<Recording>,
}

impl NetworkSpec {
    /// What it names of the user's code: queue disciplines, loss and delay models, and background sources.
    pub fn codes(&self) -> impl Iterator<Item = &Named> {
        let sources = self.traffic.iter().filter_map(|t| match &t.model {
            TrafficModel::Source(source) => Some(source),
            TrafficModel::Played(_) => None,
        });
        let links = self.links.iter().flat_map(|l| {
            let delay = l.jitter.as_ref().and_then(|jitter| jitter.delay.code());
            [Some(&l.queue.discipline), l.loss.as_ref(), delay].into_iter().flatten()
        });
        links.chain(sources).filter(|named| named.is_code())
    }
}

/// A routing policy; ties go to the link that is named first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// Fewest hops.
    #[default]
    Hops,
    /// Smallest sum of propagation and serialisation of a 100-byte packet.
    Delay,
    /// Smallest sum of offered background load over rate, then hops.
    Load,
}

/// A unidirectional link.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Its name in records and reports, for example `l1.forward`.
    pub name: String,
    /// Vertex it leaves.
    pub from: VertexId,
    /// Vertex it reaches.
    pub to: VertexId,
    /// Rate; absent for an infinitely fast link.
    pub rate_bps: Option<f64>,
    /// Propagation.
    #[serde(default)]
    pub delay_ns: Time,
    /// Code point of the packets that it is for; absent: for all.
    pub dscp: Option<u8>,
    /// Half-duplex medium (hub) that this link shares with all links that name it.
    pub medium: Option<String>,
    /// The queue in front of it.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Random loss.
    pub loss: Option<Named>,
    /// Extra delay.
    pub jitter: Option<JitterSpec>,
    /// Probability that a packet is delivered twice.
    #[serde(default)]
    pub duplicate: f64,
    /// Probability that a packet is delivered with one bit changed.
    #[serde(default)]
    pub corrupt: f64,
    /// Spans during which nothing passes: packets that would start then are lost.
    #[serde(default)]
    pub outages: Vec<(Time, Time)>,
    /// Windows in which packets may start, as in a line that several take turns on; absent: at any time.
    pub slots: Option<SlotSpec>,
    /// Delivery opportunities of 1500 bytes each (mahimahi): moments, repeated after the last one; replaces the rate.
    pub opportunities_ns: Option<Vec<Time>>,
    /// Radio access.
    pub radio: Option<RadioSpec>,
}

/// Radio access of one direction of a link.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RadioSpec {
    /// Slots, grants and retransmissions as in 5G; built in.
    Nr(NrSpec),
    /// LTE with its core network; only where another program simulates the network.
    Lte {},
    /// Wi-Fi; only where another program simulates the network.
    Wifi {},
}

impl RadioSpec {
    /// The built-in kind.
    pub fn nr(&self) -> Option<&NrSpec> {
        match self {
            Self::Nr(nr) => Some(nr),
            _ => None,
        }
    }
}

/// One direction of an NR-like link.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct NrSpec {
    /// Length of a slot.
    pub slot_ns: Time,
    /// A letter a slot, repeated: D down, U up, S neither, F both.
    pub pattern: String,
    /// Whether this is the direction to the base station.
    pub up: bool,
    /// How the right to send upward is had.
    pub access: AccessSpec,
    /// Time that sender and receiver take for a packet, together.
    pub processing_ns: Time,
    /// Probability that a block is not understood.
    pub block_error: f64,
    /// Time from a block to its repetition.
    pub again_ns: Time,
    /// Most repetitions of a block.
    pub retransmissions: u32,
}

/// How the right to send upward is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AccessSpec {
    /// Asked for by a scheduling request whenever the buffer was empty.
    Request {
        /// Period of the chances to ask.
        period_ns: Time,
        /// From asking to the first slot that may be used.
        grant_ns: Time,
    },
    /// Slots that are given for good.
    Configured {
        /// Period of these slots.
        period_ns: Time,
    },
}

/// Windows that repeat from time 0 on. A packet starts where all of it fits; one that fits nowhere is dropped.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotSpec {
    /// Length of the cycle.
    pub cycle_ns: Time,
    /// From and to within the cycle, in order.
    pub open: Vec<(Time, Time)>,
}

/// Name of the discipline of queues that name none.
pub const DROP_TAIL: &str = "drop-tail";

/// A queue with its limit and discipline.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Most bytes that may wait (the packet in service does not count, model: FIFO link); absent: no limit.
    pub limit_bytes: Option<u64>,
    /// Most packets that may wait; absent: no limit.
    pub limit_packets: Option<u64>,
    /// Who goes first and who is dropped.
    #[serde(default = "drop_tail")]
    pub discipline: Named,
}

fn drop_tail() -> Named {
    Named::new(DROP_TAIL, Value::Null)
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self { limit_bytes: None, limit_packets: None, discipline: drop_tail() }
    }
}

/// Extra delay per packet.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterSpec {
    /// Where it comes from.
    pub delay: DelaySpec,
    /// Whether packets may overtake. If not, the order is kept, and the *mean* delay grows with it.
    #[serde(default)]
    pub reorder: bool,
}

/// A delay model: a built-in one, or code of the user's.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Named")]
pub enum DelaySpec {
    /// Built in.
    Model(Dist),
    /// The user's.
    Code(Named),
}

impl DelaySpec {
    /// The code, if it is the user's.
    pub fn code(&self) -> Option<&Named> {
        match self {
            Self::Model(_) => None,
            Self::Code(code) => Some(code),
        }
    }
}

impl TryFrom<Named> for DelaySpec {
    type Error = Fault;

    fn try_from(model: Named) -> Result<Self, Fault> {
        if model.is_code() {
            return Ok(Self::Code(model));
        }
        model.try_into().map(Self::Model)
    }
}

/// A background flow.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Its name, for example `cbr.forward`; the part before the point names the scenario's entry.
    pub name: String,
    /// Vertex where it enters.
    pub from: VertexId,
    /// Vertex where it leaves.
    pub to: VertexId,
    /// First moment.
    #[serde(default)]
    pub start_ns: Time,
    /// No packet at or after this moment.
    pub stop_ns: Option<Time>,
    /// Code point.
    #[serde(default)]
    pub dscp: u8,
    /// When and how many bytes.
    pub model: TrafficModel,
}

/// When a packet comes and how many bytes it has on the wire.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Named")]
pub enum TrafficModel {
    /// A source by name.
    Source(Named),
    /// What a scenario's compiler makes of files and users.
    Played(Played),
}

impl TrafficModel {
    /// A source with its parameters.
    pub fn source(kind: &str, params: Value) -> Self {
        Self::Source(Named::new(kind, params))
    }
}

impl TryFrom<Named> for TrafficModel {
    type Error = serde_json::Error;

    fn try_from(mut model: Named) -> Result<Self, Self::Error> {
        if !["replay", "frames", "users"].contains(&model.kind.as_str()) {
            return Ok(Self::Source(model));
        }
        model.params["kind"] = model.kind.into();
        serde_json::from_value(model.params).map(Self::Played)
    }
}

/// What files and users send.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Played {
    /// A recorded capture.
    Replay {
        /// Number of the recording of its packets, with their bytes on the wire.
        recording: u16,
        /// Length of one round when it is repeated; absent: it plays once.
        loop_ns: Option<Time>,
    },
    /// Video as a trace of frame sizes.
    Frames {
        /// Number of the recording of its frames.
        recording: u16,
        /// Length of one round when it is repeated; absent: it plays once.
        loop_ns: Option<Time>,
        /// Largest packet on the wire.
        packet_bytes: u32,
        /// Headers in each packet.
        overhead_bytes: u32,
    },
    /// Users and transfers over connections. The driver makes their packets; the network counts them.
    Users(Box<UsersSpec>),
}

/// Users that load from a server at `from` to a client at `to`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsersSpec {
    /// How many of them.
    pub users: u16,
    /// What they ask for; absent: one transfer each that never ends.
    pub pages: Option<PagesSpec>,
    /// Whether each object has a connection of its own (HTTP/1.0), or each page (HTTP/1.1).
    #[serde(default)]
    pub connection_per_object: bool,
    /// The link that they are to fill, and how far.
    pub drive: Option<DriveSpec>,
    /// What their connections are of.
    #[serde(default)]
    pub transport: ConnectionSpec,
    /// Congestion control.
    pub congestion: CongestionSpec,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Send and receive buffer of each side of a connection.
    pub buffer_bytes: u32,
}

/// The laws of a user's pages.
// [Mah 1997] [3GPP TR 25.892 §A.2]
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PagesSpec {
    /// Bytes of a request.
    pub request: Law,
    /// Bytes of the main object.
    pub main: Law,
    /// Number of embedded objects.
    pub embedded: Law,
    /// Bytes of an embedded object.
    pub object: Law,
    /// Seconds between the main object and the first request for an embedded one.
    pub parse: Law,
    /// Seconds between the end of a page and the next one.
    pub think: Law,
}

/// A link that is to be used to a wanted share, all its traffic together.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// Number of the link.
    pub link: LinkId,
    /// Share of the time in which its line is to be busy.
    pub utilisation: f64,
}

/// What connections are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionSpec {
    /// TCP.
    #[default]
    Tcp,
    /// QUIC.
    Quic,
}

/// Congestion control of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CongestionSpec {
    /// NewReno (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// None: the peer's window alone limits; of TCP only.
    None,
}

/// What changes on links; absent keys stay as they are.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkChange {
    /// Numbers of the links.
    pub links: Vec<LinkId>,
    /// New rate. Packets that have started keep their times; those that wait see the new rate.
    pub rate_bps: Option<f64>,
    /// New propagation, for packets that have not started.
    pub delay_ns: Option<Time>,
    /// New independent loss.
    pub loss: Option<f64>,
    /// New extra delay, of a built-in model, for packets that have not started.
    pub jitter: Option<JitterSpec>,
    /// New probability that a packet is delivered twice.
    pub duplicate: Option<f64>,
    /// New limit of the queue, in place of the former one. What waits stays, also where it is more.
    pub limit_bytes: Option<u64>,
    /// The same in packets.
    pub limit_packets: Option<u64>,
    /// Down: packets that would start are lost. Or up again.
    pub up: Option<bool>,
}

impl LinkChange {
    /// Whether the queue has another limit.
    pub fn has_limit(&self) -> bool {
        self.limit_bytes.is_some() || self.limit_packets.is_some()
    }

    /// Whether everything stays as it is.
    pub fn is_none(&self) -> bool {
        let numbers = self.rate_bps.is_none() && self.delay_ns.is_none() && self.loss.is_none();
        let rare = self.jitter.is_none() && self.duplicate.is_none();
        numbers && rare && !self.has_limit() && self.up.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_key_of_a_change_is_a_change() {
        let change = |of| serde_json::from_value::<LinkChange>(of).expect("a change");
        assert!(change(json!({"links": [0]})).is_none());
        let jitter = json!({"delay": {"kind": "constant", "span_ns": 1}});
        for (key, value) in [
            ("rate_bps", json!(1.0)),
            ("delay_ns", json!(1)),
            ("loss", json!(0.1)),
            ("jitter", jitter),
            ("duplicate", json!(0.1)),
            ("limit_bytes", json!(1)),
            ("limit_packets", json!(1)),
            ("up", json!(true)),
        ] {
            assert!(!change(json!({"links": [0], key: value})).is_none(), "{key}");
        }
    }

    /// What is not found here is never loaded, and a run with it goes without the interpreter.
    #[test]
    fn code_of_the_user_is_found_wherever_a_network_names_it() {
        let network = |discipline: &str, loss: &str, delay: Value, source: &str| -> NetworkSpec {
            let link = json!({"name": "l", "from": 0, "to": 1, "queue": {"discipline": {"kind": discipline}},
                              "loss": {"kind": loss}, "jitter": {"delay": delay}});
            let traffic = json!({"name": "t", "from": 0, "to": 1, "model": {"kind": source}});
            let played =
                json!({"name": "p", "from": 0, "to": 1, "model": {"kind": "replay", "recording": 0}});
            serde_json::from_value(json!({"links": [link], "traffic": [traffic, played]})).expect("a network")
        };
        let found = |network: NetworkSpec| network.codes().map(|c| c.kind.clone()).collect::<Vec<_>>();
        let constant = json!({"kind": "constant", "span_ns": 1});
        assert_eq!(found(network("red", "bernoulli", constant, "cbr")), [""; 0]);
        let mine = network("q:Q", "l:L", json!({"kind": "/d.so:d"}), "s:S");
        assert_eq!(found(mine), ["q:Q", "l:L", "/d.so:d", "s:S"]);
    }

    /// The built-in network runs a link of which it gets none here as one without radio.
    #[test]
    fn only_the_built_in_radio_has_slots() {
        let nr = json!({"kind": "nr", "slot_ns": 500, "pattern": "DU", "up": true, "processing_ns": 1, "block_error": 0.1,
                        "access": {"kind": "configured", "period_ns": 1}, "again_ns": 1, "retransmissions": 1});
        for (radio, slot_ns) in
            [(nr, Some(500)), (json!({"kind": "lte"}), None), (json!({"kind": "wifi"}), None)]
        {
            let radio: RadioSpec = serde_json::from_value(radio).expect("radio access");
            assert_eq!(radio.nr().map(|nr| nr.slot_ns), slot_ns);
        }
    }
}
