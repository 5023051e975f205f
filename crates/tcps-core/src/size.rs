//! What a packet takes on the wire beside its own bytes: queues and rates count it. [model: wire size]

/// Ethernet around IP: preamble 8, header 14, check sequence 4. The gap between frames is not counted.
pub const LINK_BYTES: u32 = 8 + 14 + 4;
/// UDP, IPv4 and the link, around a datagram.
pub const STACK_BYTES: u32 = 8 + 20 + LINK_BYTES;
