//! Classes of packets: a flow has its number, what is no flow has those above.

/// Class of datagrams outside channels: answers of echoes, clock exchanges.
pub const ASIDE_CLASS: u16 = 0x7fff;
/// Class of the packets of the first traffic entry; entry `i` has `TRAFFIC_BASE + i`.
pub const TRAFFIC_BASE: u16 = 0x8000;
