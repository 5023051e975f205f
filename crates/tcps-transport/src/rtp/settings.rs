//! Parameters of the `rtp` transport.

use super::{repair::KEPT, timing::Profile};
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
    pub(crate) extended: bool,
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
            "extended",
        ])?;
        Ok(Self {
            mtu_bytes: params.integer("mtu_bytes", 300..=65_507)?.unwrap_or(1200) as usize,
            overhead_bytes: params.integer("overhead_bytes", 0..=65_535)?,
            identity: params.boolean("identity")?.unwrap_or(true),
            stop_and_wait: params.choice("mode", &["stream", "stop_and_wait"])? == Some("stop_and_wait"),
            motion_every: params.integer("motion_every", 1..=8_000)?,
            redundancy: redundancy(params)?,
            profile: profile(params)?,
            bandwidth_bps: params.integer("bandwidth_bps", 8_000..=4_000_000_000)?.unwrap_or(1_000_000),
            feedback_ns: params.span_ns("feedback_ns", MS..=10 * SECOND)?,
            extended: params.boolean("extended")?.unwrap_or(false),
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

fn profile(params: &Params<'_>) -> Result<Profile, TransportError> {
    let report_ns = params.span_ns("report_ns", 10 * MS..=60 * SECOND)?.unwrap_or(500 * MS);
    Ok(match params.choice("profile", &["avp", "avp_reduced", "avpf"])? {
        Some("avp") => Profile::Avp { reduced: false },
        Some("avp_reduced") => Profile::Avp { reduced: true },
        _ => Profile::Avpf { report_ns },
    })
}
