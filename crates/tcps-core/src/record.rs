//! The rows that a run leaves: 32 bytes each, little-endian, in one canonical stream.
//!
//! ```text
//!  0        8        16     20     24     26     28     30    31    32
//!  | time   | value  | index| size | flow | point| node | kind|detail|
//! ```
//! `time` is the run's time (true in virtual time, the host's monotonic clock on sockets); `value` depends on the
//! kind and is measured with the clocks of the nodes.

use crate::{
    ids::{FlowId, NodeId, NONE},
    time::Time,
};
use serde::Deserialize;

/// Length of a row in bytes.
pub const RECORD_BYTES: usize = 32;

/// What a row's `point` numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Nothing: the kind leaves it empty.
    Nowhere,
    /// An echo point: an entry, an exit or a held point of a component.
    Point,
    /// A link of the network.
    Link,
    /// A component.
    Component,
    /// A node.
    Node,
    /// A channel.
    Channel,
}

impl Place {
    /// The plan's list that the number counts in; empty for `Nowhere`.
    pub fn name(self) -> &'static str {
        match self {
            Place::Nowhere => "",
            Place::Point => "points",
            Place::Link => "links",
            Place::Component => "components",
            Place::Node => "nodes",
            Place::Channel => "channels",
        }
    }
}

/// A numbered list with the name that reports and exports use, and the place that `point` stands for. Numbers and names are
/// in files that were written: they are never given again.
macro_rules! numbered {
    ($(#[$about:meta])* $list:ident { $($(#[doc = $doc:literal])* $item:ident = $number:literal, $name:literal at $place:ident;)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $list {
            $($(#[doc = $doc])* $item = $number,)*
        }

        impl $list {
            /// All of them in the order of their numbers.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$item),*];

            /// What reports and exports call it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$item => $name,)*
                }
            }

            /// What `point` numbers in a row of it.
            pub fn place(self) -> Place {
                match self {
                    $(Self::$item => Place::$place,)*
                }
            }
        }
    };
}

numbered! {
    /// What a row tells. The place of `Dropped` is that of its reason.
    Kind {
        /// A source made a sample. `point` exit of the first component, `size` bytes, `value` its origin time.
        Sent = 1, "sent" at Point;
        /// A sample reached its sink. `point` entry of the last component, `value` one-way delay.
        Delivered = 2, "delivered" at Point;
        /// A packet of a sample was dropped. `point` the link or, by the `DropReason` in `detail`, the component; `value` its age.
        Dropped = 3, "dropped" at Link;
        /// A sample entered a component. `value` its age.
        Enter = 4, "enter" at Point;
        /// A sample left a component. `value` its age.
        Exit = 5, "exit" at Point;
        /// An echo came back. `index` the command, `point` the target, `value` round trip.
        Echo = 6, "echo" at Point;
        /// The same echo, outward: `value` from injection to the point (node clocks).
        EchoForward = 7, "echo_forward" at Point;
        /// The same echo, homeward: `value` from the point to the giver (node clocks).
        EchoReturn = 8, "echo_return" at Point;
        /// A hook ran. `point` the component, `detail` the step's number, `value` processor time.
        Stage = 9, "stage" at Component;
        /// A queue was sampled. `point` the link, `index` packets, `size` bytes, `value` delay of a packet arriving now.
        Queue = 10, "queue" at Link;
        /// A scenario event took place. `index` its number.
        Event = 11, "event" at Nowhere;
        /// A clock exchange. `node` who estimates, `point` the peer node, `value` estimated offset, `size` half RTT.
        Sync = 12, "sync" at Node;
        /// A sink compared a frame with its checksum. `detail` 1 good, 0 bad.
        Verified = 13, "verified" at Component;
        /// A loop stalled for over 1 ms. `value` how long.
        Gap = 14, "gap" at Nowhere;
        /// A periodic stage replaced an unsent sample. `point` the component.
        Superseded = 15, "superseded" at Component;
        /// A packet left a node. `size` wire bytes, `point` the channel.
        Transmit = 16, "transmit" at Channel;
        /// A packet reached a node. `size` wire bytes, `point` the channel.
        Receive = 17, "receive" at Channel;
        /// A tick was late. `value` how late.
        Late = 18, "late" at Nowhere;
        /// A repeated sample or datagram was dropped by an endpoint.
        Duplicate = 19, "duplicate" at Nowhere;
        /// An endpoint merges otherwise from now on. `value` fragments a packet.
        Merging = 20, "merging" at Nowhere;
        /// A value of a sample, or of what a robot senses, at `point`. `value` the bits of the f64, `detail` its number.
        Signal = 21, "signal" at Point;
        /// A periodic stage gave a sample of its own number. `index` that number, `value` the number of the newest sample
        /// that it was made of, `detail` 1 if this one was new, `point` the component.
        Renumbered = 22, "renumbered" at Component;
        /// A newer sample or command took the place of one with an echo command before that was answered. `index` the
        /// command, `point` the target, `value` its age.
        EchoSuperseded = 23, "echo_superseded" at Point;
        /// A sampler or an endpoint kept a sample back on purpose. `point` the component, or `NONE` of an endpoint.
        Suppressed = 24, "suppressed" at Component;
        /// Playout has shown a sample. `point` the component, `value` its age, `size` its bytes.
        Played = 33, "played" at Component;
        /// A sample came after the moment at which playout would have shown it. `point` the component, `value` its age.
        Overdue = 34, "overdue" at Component;
        /// Playout left a sample out: to keep its queue short, or for a newer one. `point` the component, `value` its age.
        Skipped = 35, "skipped" at Component;
        /// A tick of playout with nothing new: `index`, the sample shown last, stays. `point` the component.
        Starved = 36, "starved" at Component;
        /// A hook that watches over a flow went into another state. `detail` that state's number, `size` the former one's,
        /// `value` the age of the newest good sample, `point` the component.
        State = 38, "state" at Component;
        /// What became of a connection of a transport. `point` its channel, `detail` 0 lost, 1 stands, 2 silent no longer;
        /// `value` how long it stood (0) or was silent (2).
        Connection = 40, "connection" at Channel;
        /// The peer has told of a packet of a sample. `size` its bytes on the wire, `detail` 1 came, 0 did not, `value` how long it
        /// queued (delay above the least of 60 s), -1 if that is not known.
        Told = 43, "told" at Nowhere;
        /// Congestion control allows another rate from now on, of all flows of the sender. `value` bit/s.
        Allowed = 44, "allowed" at Nowhere;
        /// What a component works with (its robot, a worker, another program) has died: the run ends. `point` the component, or `NONE` of the network simulator.
        Died = 45, "died" at Component;
        /// A packet of a sample came to a link, at `time`, which may lie before that of rows before it. `value` how long it waited
        /// for the line, `size` how many nanoseconds it took to be put on the line, `detail` 1 if these were more than fit there,
        /// `point` the link.
        Hop = 46, "hop" at Link;
        /// An attacker sent a datagram, or changed one that passed. `value` the event's number, `index` the sample, `size` wire
        /// bytes, `point` the entry point that the sample is for, `node` whom the datagram is for. `detail` 2: if it is
        /// accepted, a row of `detail` 1 says so, with the moment; 0: no row does.
        Attack = 47, "attack" at Point;
    }
}

numbered! {
    /// Why a packet was lost.
    DropReason {
        /// The queue was full.
        Full = 1, "full" at Link;
        /// Active queue management decided so.
        Managed = 2, "managed" at Link;
        /// Random loss on the link.
        Loss = 3, "loss" at Link;
        /// The link was down.
        Outage = 4, "outage" at Link;
        /// The path does not lead anywhere.
        NoRoute = 5, "no route" at Link;
        /// A component on the way is dead.
        Dead = 6, "dead" at Component;
        /// The bytes were not what they should be.
        Malformed = 7, "malformed" at Component;
        /// A hook failed on it.
        Hook = 8, "hook" at Component;
        /// Too many samples waited for a busy stage.
        Overload = 9, "overload" at Component;
        /// A link had changed a bit, and the receiver's checksum found it.
        Corrupt = 10, "corrupt" at Link;
        /// The serial line to a board, or the board itself, lost it.
        Line = 11, "line" at Component;
        /// A secured channel could not verify it: another key, another session, other bytes, or not sealed at all.
        Unverified = 12, "unverified" at Channel;
        /// A secured channel had received it before, or later ones for too long.
        Replayed = 13, "replayed" at Channel;
        /// A secured channel had no keys yet to send it.
        Unkeyed = 14, "unkeyed" at Channel;
        /// The connection that it had gone into was lost before the other side had acknowledged it.
        Connection = 15, "connection" at Channel;
    }
}

numbered! {
    /// What a stage does; the `detail` of its rows.
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    StepKind {
        /// Bytes to values.
        Decode = 0, "decode" at Component;
        /// Devices to poses.
        Kinematics = 1, "kinematics" at Component;
        /// Poses to joints.
        InverseKinematics = 2, "inverse_kinematics" at Component;
        /// Estimates at its own period.
        Predict = 3, "predict" at Component;
        /// Robot to feeling.
        Sense = 4, "sense" at Component;
        /// Feeling to hand.
        Feedback = 5, "feedback" at Component;
        /// Values to bytes.
        Code = 6, "code" at Component;
        /// Only costs.
        Work = 7, "work" at Component;
        /// A tick to a picture or a piece of sound.
        Capture = 8, "capture" at Component;
        /// A picture or a piece of sound to the operator, and what was measured on it.
        Show = 9, "show" at Component;
    }
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Run time.
    pub time_ns: Time,
    /// See `Kind`.
    pub value: i64,
    /// Sample, command or event number.
    pub index: u32,
    /// Bytes.
    pub size: u32,
    /// Flow, or `NONE`.
    pub flow: FlowId,
    /// Echo point, link, component or node, by kind.
    pub point: u16,
    /// Node that wrote the row, or `NONE`.
    pub node: NodeId,
    /// What happened.
    pub kind: Kind,
    /// Detail by kind.
    pub detail: u8,
}

impl DropReason {
    /// The reason with this number.
    pub fn from_u8(n: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == n)
    }
}

impl Record {
    /// What `point` numbers here: of what was dropped that follows from the reason.
    pub fn place(&self) -> Place {
        let reason = DropReason::from_u8(self.detail).filter(|_| self.kind == Kind::Dropped);
        reason.map_or(self.kind.place(), DropReason::place)
    }

    /// A row of the given kind with everything else empty.
    pub fn new(time_ns: Time, kind: Kind) -> Self {
        Self {
            time_ns,
            value: 0,
            index: 0,
            size: 0,
            flow: FlowId::NONE,
            point: NONE,
            node: NodeId::NONE,
            kind,
            detail: 0,
        }
    }

    /// The row's bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let mut b = [0u8; RECORD_BYTES];
        b[0..8].copy_from_slice(&self.time_ns.to_le_bytes());
        b[8..16].copy_from_slice(&self.value.to_le_bytes());
        b[16..20].copy_from_slice(&self.index.to_le_bytes());
        b[20..24].copy_from_slice(&self.size.to_le_bytes());
        b[24..26].copy_from_slice(&self.flow.0.to_le_bytes());
        b[26..28].copy_from_slice(&self.point.to_le_bytes());
        b[28..30].copy_from_slice(&self.node.0.to_le_bytes());
        b[30] = self.kind as u8;
        b[31] = self.detail;
        b
    }

    /// The row in these bytes; `None` if the kind is unknown.
    #[inline]
    pub fn from_bytes(b: &[u8; RECORD_BYTES]) -> Option<Self> {
        let u16_at = |i: usize| u16::from_le_bytes([b[i], b[i + 1]]);
        let u32_at = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        let i64_at = |i: usize| i64::from_le_bytes(b[i..i + 8].try_into().unwrap_or_default());
        Some(Self {
            time_ns: i64_at(0),
            value: i64_at(8),
            index: u32_at(16),
            size: u32_at(20),
            flow: FlowId(u16_at(24)),
            point: u16_at(26),
            node: NodeId(u16_at(28)),
            kind: Kind::from_u8(b[30])?,
            detail: b[31],
        })
    }
}

impl Kind {
    /// The kind with this number.
    #[inline]
    pub fn from_u8(n: u8) -> Option<Kind> {
        BY_NUMBER.get(n as usize).copied().flatten()
    }
}

/// Kinds by their numbers, some of which are not given.
const BY_NUMBER: [Option<Kind>; 64] = {
    let mut table = [None; 64];
    let mut i = 0;
    while i < Kind::ALL.len() {
        table[Kind::ALL[i] as usize] = Some(Kind::ALL[i]);
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_survives_its_bytes() {
        for kind in Kind::ALL {
            let r = Record {
                value: -5,
                index: 9,
                size: 137,
                flow: FlowId(1),
                point: 7,
                node: NodeId(2),
                detail: 3,
                ..Record::new(-1, kind)
            };
            assert_eq!(Record::from_bytes(&r.to_bytes()), Some(r));
        }
    }

    #[test]
    fn unknown_kinds_are_refused() {
        let mut b = Record::new(0, Kind::Sent).to_bytes();
        for bad in [0, 25, 63, 64, 255] {
            b[30] = bad;
            assert_eq!(Record::from_bytes(&b), None);
        }
    }
}
