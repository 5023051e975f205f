//! The rows that a run leaves: 32 bytes each, little-endian, in one canonical stream.
//!
//! ```text
//!  0        8        16     20     24     26     28     30    31    32
//!  | time   | value  | index| size | flow | point| node | kind|detail|
//! ```
//! `time` is the run's time (true in virtual time, the host's monotonic clock on sockets); `value` depends on the
//! kind and is measured with the clocks of the nodes.

use crate::time::Time;

/// Length of a row in bytes.
pub const RECORD_BYTES: usize = 32;
/// No flow, point or node applies.
pub const NONE: u16 = u16::MAX;

/// What a row tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A source made a sample. `point` exit of the first component, `size` bytes, `value` its origin time.
    Sent = 1,
    /// A sample reached its sink. `point` entry of the last component, `value` one-way delay.
    Delivered = 2,
    /// A packet of a sample was dropped. `point` the link, `detail` the `DropReason`, `value` its age.
    Dropped = 3,
    /// A sample entered a component. `value` its age.
    Enter = 4,
    /// A sample left a component. `value` its age.
    Exit = 5,
    /// An echo came back. `index` the command, `point` the target, `value` round trip.
    Echo = 6,
    /// The same echo, outward: `value` from injection to the point (node clocks).
    EchoForward = 7,
    /// The same echo, homeward: `value` from the point to the giver (node clocks).
    EchoReturn = 8,
    /// A hook ran. `point` the component, `detail` the step's number, `value` processor time.
    Stage = 9,
    /// A queue was looked at. `point` the link, `index` packets, `size` bytes, `value` delay of a packet arriving now.
    Queue = 10,
    /// A scenario event took place. `index` its number.
    Event = 11,
    /// A clock exchange. `node` who estimates, `point` the peer node, `value` estimated offset, `size` half RTT.
    Sync = 12,
    /// A sink compared a frame with its checksum. `detail` 1 good, 0 bad.
    Verified = 13,
    /// A loop stood still for over 1 ms. `value` how long.
    Gap = 14,
    /// A periodic stage replaced an unsent sample. `point` the component.
    Superseded = 15,
    /// A packet left a node. `size` wire bytes, `point` the channel.
    Transmit = 16,
    /// A packet reached a node. `size` wire bytes, `point` the channel.
    Receive = 17,
    /// A tick was late. `value` how late.
    Late = 18,
    /// A repeated sample or datagram was dropped by an endpoint.
    Duplicate = 19,
    /// An endpoint merges otherwise from now on. `value` fragments a packet.
    Merging = 20,
    /// A value of a sample, or of what a robot senses, at `point`. `value` the bits of the f64, `detail` its number.
    Signal = 21,
    /// A periodic stage gave a sample of its own number. `index` that number, `value` the number of the newest sample
    /// that it was made of, `detail` 1 if this one was new, `point` the component.
    Renumbered = 22,
    /// A newer sample or command took the place of one with an echo command before that was answered. `index` the
    /// command, `point` the target, `value` its age.
    EchoSuperseded = 23,
    /// A sampler or an endpoint kept a sample back on purpose. `point` the component, or `NONE` of an endpoint.
    Suppressed = 24,
    /// Playout has shown a sample. `point` the component, `value` its age, `size` its bytes.
    Played = 33,
    /// A sample came after the moment at which playout would have shown it. `point` the component, `value` its age.
    Overdue = 34,
    /// Playout left a sample out: to keep its queue short, or for a newer one. `point` the component, `value` its age.
    Skipped = 35,
    /// A tick of playout with nothing new: `index`, the sample shown last, stays. `point` the component.
    Starved = 36,
    /// A hook that watches over a flow went into another state. `detail` that state's number, `size` the former one's,
    /// `value` the age of the newest good sample, `point` the component.
    State = 38,
    /// What became of a connection that the kernel holds. `point` its channel, `detail` 0 lost, 1 stands, 2 silent no
    /// longer; `value` how long it stood (0) or was silent (2).
    Connection = 40,
    /// The peer has told of a packet of a sample. `size` its bytes on the wire, `detail` 1 came, 0 did not, `value` how long it
    /// queued (delay above the least of 60 s), -1 if that is not known.
    Told = 43,
    /// Congestion control allows another rate from now on, of all flows of the sender. `value` bit/s.
    Allowed = 44,
}

/// Why a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was full.
    Full = 1,
    /// Active queue management decided so.
    Managed = 2,
    /// Random loss on the link.
    Loss = 3,
    /// The link was down.
    Outage = 4,
    /// The path does not lead anywhere.
    NoRoute = 5,
    /// A component on the way is dead.
    Dead = 6,
    /// The bytes were not what they should be.
    Malformed = 7,
    /// A hook failed on it.
    Hook = 8,
    /// Too many samples waited for a busy stage.
    Overload = 9,
    /// A link had changed a bit, and the receiver's checksum found it.
    Corrupt = 10,
    /// The serial line to a board, or the board itself, lost it.
    Line = 11,
}

impl DropReason {
    /// All reasons in the order of their numbers.
    pub const ALL: [DropReason; 11] = [
        DropReason::Full,
        DropReason::Managed,
        DropReason::Loss,
        DropReason::Outage,
        DropReason::NoRoute,
        DropReason::Dead,
        DropReason::Malformed,
        DropReason::Hook,
        DropReason::Overload,
        DropReason::Corrupt,
        DropReason::Line,
    ];

    /// What reports call it.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::Full => "full",
            DropReason::Managed => "managed",
            DropReason::Loss => "loss",
            DropReason::Outage => "outage",
            DropReason::NoRoute => "no route",
            DropReason::Dead => "dead",
            DropReason::Malformed => "malformed",
            DropReason::Hook => "hook",
            DropReason::Overload => "overload",
            DropReason::Corrupt => "corrupt",
            DropReason::Line => "line",
        }
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
    pub flow: u16,
    /// Echo point, link, component or node, by kind.
    pub point: u16,
    /// Node that wrote the row, or `NONE`.
    pub node: u16,
    /// What happened.
    pub kind: Kind,
    /// Detail by kind.
    pub detail: u8,
}

impl Record {
    /// A row of the given kind with everything else empty.
    pub fn new(time_ns: Time, kind: Kind) -> Self {
        Self { time_ns, value: 0, index: 0, size: 0, flow: NONE, point: NONE, node: NONE, kind, detail: 0 }
    }

    /// The row's bytes.
    #[inline]
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let mut b = [0u8; RECORD_BYTES];
        b[0..8].copy_from_slice(&self.time_ns.to_le_bytes());
        b[8..16].copy_from_slice(&self.value.to_le_bytes());
        b[16..20].copy_from_slice(&self.index.to_le_bytes());
        b[20..24].copy_from_slice(&self.size.to_le_bytes());
        b[24..26].copy_from_slice(&self.flow.to_le_bytes());
        b[26..28].copy_from_slice(&self.point.to_le_bytes());
        b[28..30].copy_from_slice(&self.node.to_le_bytes());
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
            flow: u16_at(24),
            point: u16_at(26),
            node: u16_at(28),
            kind: Kind::from_u8(b[30])?,
            detail: b[31],
        })
    }
}

impl Kind {
    /// All kinds in the order of their numbers.
    pub const ALL: [Kind; 32] = [
        Kind::Sent,
        Kind::Delivered,
        Kind::Dropped,
        Kind::Enter,
        Kind::Exit,
        Kind::Echo,
        Kind::EchoForward,
        Kind::EchoReturn,
        Kind::Stage,
        Kind::Queue,
        Kind::Event,
        Kind::Sync,
        Kind::Verified,
        Kind::Gap,
        Kind::Superseded,
        Kind::Transmit,
        Kind::Receive,
        Kind::Late,
        Kind::Duplicate,
        Kind::Merging,
        Kind::Signal,
        Kind::Renumbered,
        Kind::EchoSuperseded,
        Kind::Suppressed,
        Kind::Played,
        Kind::Overdue,
        Kind::Skipped,
        Kind::Starved,
        Kind::State,
        Kind::Connection,
        Kind::Told,
        Kind::Allowed,
    ];

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
                flow: 1,
                point: 7,
                node: 2,
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
