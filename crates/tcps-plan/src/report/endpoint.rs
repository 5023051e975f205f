//! What transport endpoints counted.

use crate::Plan;
use serde::Serialize;
use tcps_core::{
    endpoint::{ConnectionStats, EndpointStats, FeedbackStats, SecurityStats},
    ids::{ChannelId, NodeId},
    time::Time,
};

/// An endpoint's counters.
#[derive(Debug, Clone, Serialize)]
pub struct Endpoint {
    channel: String,
    side: String,
    malformed: u64,
    duplicates: u64,
    incomplete: u64,
    recovered: u64,
    lost: u64,
    reports: u64,
    rtt_ns: Option<Time>,
    jitter_ns: Option<Time>,
    /// Share, 0 to 1.
    peer_loss: Option<f64>,
    refused: u64,
    retransmits: u64,
    unanswered: u64,
    #[serde(flatten)]
    told: Option<PacketFeedback>,
    #[serde(flatten)]
    security: Option<Security>,
    #[serde(flatten)]
    connections: Option<ConnectionStats>,
}

/// What a peer has told of single packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct PacketFeedback {
    told: u64,
    told_lost: u64,
    told_queue_ns: Option<Time>,
    allowed_bps: Option<u64>,
}

impl From<FeedbackStats> for PacketFeedback {
    fn from(told: FeedbackStats) -> Self {
        let FeedbackStats { packets, lost, queue_ns, allowed_bps } = told;
        Self { told: packets, told_lost: lost, told_queue_ns: queue_ns, allowed_bps }
    }
}

/// What the security of a channel has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Security {
    secure_sessions: u64,
    handshake_ns: Option<Time>,
    key_changes: u64,
    unverified: u64,
    unsealed: u64,
    refused_handshakes: u64,
    replayed: u64,
    unkeyed: u64,
    security_bytes: u64,
    refused_connections: u64,
    expired_handshakes: u64,
    alerts: u64,
    unproven_alerts: u64,
}

impl From<SecurityStats> for Security {
    fn from(s: SecurityStats) -> Self {
        Self {
            secure_sessions: s.sessions,
            handshake_ns: s.handshake_ns,
            key_changes: s.key_changes,
            unverified: s.unverified,
            unsealed: s.unsealed,
            refused_handshakes: s.refused_handshakes,
            replayed: s.replayed,
            unkeyed: s.unkeyed,
            security_bytes: s.added_bytes,
            refused_connections: s.refused_connections,
            expired_handshakes: s.expired_handshakes,
            alerts: s.alerts,
            unproven_alerts: s.unproven_alerts,
        }
    }
}

impl Endpoint {
    /// The endpoint of a channel at a node; `strays` are samples of flows that do not come there.
    pub(super) fn new(plan: &Plan, node: NodeId, channel: ChannelId, s: EndpointStats, strays: u64) -> Self {
        Self {
            channel: plan.channels[channel].name.clone(),
            side: plan.nodes[node].name.clone(),
            malformed: s.malformed + strays,
            duplicates: s.duplicates,
            incomplete: s.incomplete,
            recovered: s.recovered,
            lost: s.lost,
            reports: s.reports,
            rtt_ns: s.rtt_ns,
            jitter_ns: s.jitter_ns,
            peer_loss: s.peer_fraction_lost.map(|f| f64::from(f) / 256.0),
            refused: s.refused,
            retransmits: s.retransmits,
            unanswered: s.unanswered,
            told: s.told.map(PacketFeedback::from),
            security: s.security.map(Security::from),
            connections: s.connections,
        }
    }
}
