//! Attacks: what somebody does who stands at a link and has no keys.

use serde::Deserialize;
use tcps_core::{
    ids::{FlowId, LinkId},
    time::Time,
};

/// An attack from the moment of its event on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackPlan {
    /// The link at whose start the attacker is: it hears what is to pass this link, and sends from there.
    pub link: LinkId,
    /// How long it lasts.
    pub duration_ns: Time,
    /// What is done.
    pub what: Attack,
}

/// Number of the first forged sample: numbers of a source stay below it. [RFC 1982 §3.2]
pub const FIRST_FORGED: u32 = 0x7000_0000;

/// Whether a sample with this number is an attacker's, in a run with attacks.
pub fn is_forged(index: u32) -> bool {
    (FIRST_FORGED..u32::MAX).contains(&index)
}

/// `detail` of a row of an attack: nothing will say whether the datagram was accepted.
pub const SENT: u8 = 0;
/// It was accepted.
pub const ACCEPTED: u8 = 1;
/// It was sent, and another row will say if it was accepted.
pub const FOLLOWED: u8 = 2;

/// Kinds of attacks.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Attack {
    /// Datagrams of a flow's own transport with samples that its source never made.
    Forge {
        /// Number of the flow.
        flow: FlowId,
        /// Time between them.
        period_ns: Time,
        /// Values of each sample; empty: its bytes are random.
        #[serde(default)]
        values: Vec<f64>,
    },
    /// Datagrams that were heard are sent once more.
    Replay {
        /// Number of the flow.
        flow: FlowId,
        /// This long after they were heard.
        after_ns: Time,
        /// Share of them.
        share: f64,
    },
    /// A bit of datagrams is changed on the way, and all checksums with it.
    Tamper {
        /// Number of the flow.
        flow: FlowId,
        /// Share of them.
        share: f64,
    },
    /// Random datagrams to where a flow's samples go.
    Flood {
        /// Number of the flow.
        flow: FlowId,
        /// Rate on the wire.
        rate_bps: f64,
        /// Bytes of a datagram, without headers.
        bytes: u32,
    },
    /// Segments that end the connection of the flow's channel, as if the sender of its samples had sent them.
    Reset {
        /// Number of the flow.
        flow: FlowId,
        /// Time between them.
        period_ns: Time,
        /// With FIN in place of RST.
        fin: bool,
    },
    /// The reference's stamps in answers of clock exchanges are changed.
    ClockLie {
        /// What is added to them.
        offset_ns: Time,
    },
}

impl Attack {
    /// What rows and reports call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Forge { .. } => "forge",
            Self::Replay { .. } => "replay",
            Self::Tamper { .. } => "tamper",
            Self::Flood { .. } => "flood",
            Self::Reset { .. } => "reset",
            Self::ClockLie { .. } => "clock-lie",
        }
    }

    /// The flow that it is about.
    pub fn flow(&self) -> Option<FlowId> {
        match self {
            Self::Forge { flow, .. }
            | Self::Replay { flow, .. }
            | Self::Tamper { flow, .. }
            | Self::Flood { flow, .. }
            | Self::Reset { flow, .. } => Some(*flow),
            Self::ClockLie { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The attacker finds the packets by the flow, and rows and reports are looked up by the name.
    #[test]
    fn each_attack_has_its_name_and_its_flow() {
        for (what, name, flow) in [
            (json!({"kind": "forge", "flow": 3, "period_ns": 1}), "forge", Some(3)),
            (json!({"kind": "replay", "flow": 4, "after_ns": 1, "share": 0.5}), "replay", Some(4)),
            (json!({"kind": "tamper", "flow": 5, "share": 0.5}), "tamper", Some(5)),
            (json!({"kind": "flood", "flow": 6, "rate_bps": 1.0, "bytes": 1}), "flood", Some(6)),
            (json!({"kind": "reset", "flow": 7, "period_ns": 1, "fin": true}), "reset", Some(7)),
            (json!({"kind": "clock_lie", "offset_ns": 1}), "clock-lie", None),
        ] {
            let attack: Attack = serde_json::from_value(what).expect("an attack");
            assert_eq!((attack.name(), attack.flow()), (name, flow.map(FlowId)));
        }
    }

    /// Else the samples of a source would count as accepted forgeries, or forgeries as samples of the source.
    #[test]
    fn numbers_of_forged_samples_are_above_those_of_a_source_and_below_that_of_none() {
        for (index, forged) in
            [(0, false), (0x6fff_ffff, false), (0x7000_0000, true), (u32::MAX - 1, true), (u32::MAX, false)]
        {
            assert_eq!(is_forged(index), forged, "{index:#x}");
        }
    }
}
