//! Classes of packets: a flow has its number, what is no flow has those above.

use tcps_core::ids::TrafficId;

/// Class of datagrams outside channels: answers of echoes, clock exchanges.
pub const ASIDE_CLASS: u16 = 0x7fff;
/// Class of the packets of the first traffic entry; the others follow.
pub const TRAFFIC_BASE: u16 = 0x8000;

/// Class of the packets of a traffic entry.
#[inline]
pub fn traffic_class(traffic: TrafficId) -> u16 {
    TRAFFIC_BASE + traffic.0
}

/// The traffic entry whose packets have this class.
#[inline]
pub fn traffic_of_class(class: u16) -> Option<TrafficId> {
    class.checked_sub(TRAFFIC_BASE).map(TrafficId)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else the network would count the packets of one for another, or samples as background traffic.
    #[test]
    fn each_traffic_entry_has_a_class_that_is_no_flow() {
        for entry in [0, 1, 2, 0x7fff] {
            let class = traffic_class(TrafficId(entry));
            assert!(class > ASIDE_CLASS);
            assert_eq!(traffic_of_class(class), Some(TrafficId(entry)));
        }
        assert_eq!([0, 1, ASIDE_CLASS].map(traffic_of_class), [None; 3]);
    }
}
