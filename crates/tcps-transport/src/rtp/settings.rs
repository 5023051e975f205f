//! Parameters of the `rtp` transport.

use super::{congestion::Limits, repair::KEPT, timing::Profile};
use crate::params::{Params, TransportError};
use tcps_core::time::{Time, MS, SECOND};

/// Protection against loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redundancy {
    /// None.
    None,
    /// Each packet repeats the sample `distance` before (RFC 2198).
    Red {
        /// Samples back.
        distance: usize,
    },
    /// A parity packet after every `columns` packets, in the same stream (RFC 5109).
    Ulpfec {
        /// Packets that one protects.
        columns: u16,
    },
    /// Parity of rows of `columns` packets and, if `rows > 1`, of the columns of `rows` rows, in a stream of its
    /// own (RFC 8627).
    Flexfec {
        /// Packets in a row.
        columns: u8,
        /// Rows; 1 for row parity alone.
        rows: u8,
    },
}

/// Parameters of the `rtp` transport.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) mtu_bytes: usize,
    pub(crate) overhead_bytes: Option<u32>,
    pub(crate) identity: bool,
    pub(crate) stop_and_wait: bool,
    pub(crate) motion_every: Option<u32>,
    pub(crate) redundancy: Redundancy,
    pub(crate) profile: Profile,
    pub(crate) bandwidth_bps: u32,
    pub(crate) feedback_ns: Option<Time>,
    /// Of a rate that is derived from feedback.
    pub(crate) limits: Option<Limits>,
    pub(crate) extended: bool,
    pub(crate) nack: Option<Nack>,
}

/// Asking for what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nack {
    /// How often a packet is asked for at most.
    pub(crate) tries: u32,
    /// How long a gap may come from reordering.
    pub(crate) reorder_ns: Time,
}

impl Settings {
    /// Reads and checks them.
    pub(crate) fn from_params(params: &Params<'_>) -> Result<Self, TransportError> {
        params.allow(&[
            "mtu_bytes",
            "overhead_bytes",
            "identity",
            "mode",
            "motion_every",
            "redundancy",
            "distance",
            "columns",
            "rows",
            "profile",
            "report_ns",
            "bandwidth_bps",
            "feedback_ns",
            "congestion",
            "least_bps",
            "target_ns",
            "extended",
            "nack",
            "reorder_ns",
        ])?;
        let stop_and_wait = params.choice("mode", &["stream", "stop_and_wait"])? == Some("stop_and_wait");
        let redundancy = redundancy(params)?;
        if stop_and_wait && matches!(redundancy, Redundancy::Ulpfec { .. } | Redundancy::Flexfec { .. }) {
            return Err(params.refuse("redundancy", "none or rfc2198 with mode stop_and_wait"));
        }
        Ok(Self {
            mtu_bytes: params.integer("mtu_bytes", 300..=65_507)?.unwrap_or(1200) as usize,
            overhead_bytes: params.integer("overhead_bytes", 0..=65_535)?,
            identity: params.boolean("identity")?.unwrap_or(true),
            stop_and_wait,
            motion_every: params.integer("motion_every", 1..=8_000)?,
            redundancy,
            profile: profile(params)?,
            bandwidth_bps: bandwidth_bps(params)?,
            feedback_ns: params.span_ns("feedback_ns", MS..=10 * SECOND)?,
            limits: limits(params)?,
            extended: params.boolean("extended")?.unwrap_or(false),
            nack: nack(params)?,
        })
    }
}

fn redundancy(params: &Params<'_>) -> Result<Redundancy, TransportError> {
    let distance = params.integer("distance", 1..=15)?;
    let columns = params.integer("columns", 1..=48)?;
    let rows = params.integer("rows", 1..=48)?;
    if (columns.unwrap_or(4) * rows.unwrap_or(1)) as usize > KEPT {
        return Err(params.refuse("columns", "at most 256 packets in columns times rows"));
    }
    Ok(match params.choice("redundancy", &["none", "rfc2198", "ulpfec", "flexfec"])? {
        Some("rfc2198") => Redundancy::Red { distance: distance.unwrap_or(1) as usize },
        Some("ulpfec") => Redundancy::Ulpfec { columns: columns.unwrap_or(4) as u16 },
        Some("flexfec") => {
            Redundancy::Flexfec { columns: columns.unwrap_or(4) as u8, rows: rows.unwrap_or(1) as u8 }
        }
        _ => Redundancy::None,
    })
}

// [PROTOCOLS 3.12] retransmission on request
fn nack(params: &Params<'_>) -> Result<Option<Nack>, TransportError> {
    let reorder_ns = params.span_ns("reorder_ns", 0..=SECOND)?;
    let tries = params.integer("nack", 0..=10)?.filter(|n| *n > 0);
    match (tries, reorder_ns) {
        (None, Some(_)) => Err(params.refuse("reorder_ns", "with nack, which asks for what is missing")),
        (tries, _) => Ok(tries.map(|tries| Nack { tries, reorder_ns: reorder_ns.unwrap_or(MS) })),
    }
}

fn bandwidth_bps(params: &Params<'_>) -> Result<u32, TransportError> {
    Ok(params.integer("bandwidth_bps", 8_000..=4_000_000_000)?.unwrap_or(1_000_000))
}

// [RFC 8888 §3.1] [PROTOCOLS 12.5]
fn limits(params: &Params<'_>) -> Result<Option<Limits>, TransportError> {
    let most_bps = bandwidth_bps(params)?;
    let least_bps = params.integer("least_bps", 1_000..=most_bps)?;
    let target_ns = params.span_ns("target_ns", MS..=SECOND)?;
    let feedback_ns = params.span_ns("feedback_ns", MS..=10 * SECOND)?;
    match (params.choice("congestion", &["none", "gcc"])?, feedback_ns) {
        (Some("gcc"), Some(feedback_ns)) => {
            let least_bps = least_bps.unwrap_or(100_000.min(most_bps));
            Ok(Some(Limits { range_bps: [least_bps.into(), most_bps.into()], target_ns, feedback_ns }))
        }
        (Some("gcc"), None) => {
            Err(params.refuse("congestion", "gcc with feedback, which tells of each packet"))
        }
        _ if least_bps.is_some() => Err(params.refuse("least_bps", "with congestion = gcc")),
        _ if target_ns.is_some() => Err(params.refuse("target_ns", "with congestion = gcc")),
        _ => Ok(None),
    }
}

fn profile(params: &Params<'_>) -> Result<Profile, TransportError> {
    let report_ns = params.span_ns("report_ns", 10 * MS..=60 * SECOND)?.unwrap_or(500 * MS);
    Ok(match params.choice("profile", &["avp", "avp_reduced", "avpf"])? {
        Some("avp") => Profile::Avp { reduced: false },
        Some("avp_reduced") => Profile::Avp { reduced: true },
        _ => Profile::Avpf { report_ns },
    })
}
