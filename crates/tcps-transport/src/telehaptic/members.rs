//! The telehaptic transports: a rate controller of `congestion` each, one line each in [`MEMBERS`].

use super::multiplexer::Order;
use crate::congestion::{
    dpm, etp, fixed, gcc, loss, nafcah, napas, own, perception, queue, report, scream, shares, Make,
};
use crate::params::{Params, TransportError};

/// A telehaptic transport: a controller under a name.
#[derive(Clone, Copy)]
pub(crate) struct Member {
    /// The name in scenarios.
    pub(crate) name: &'static str,
    /// Keys of its parameters, with those that all have.
    pub(crate) keys: &'static [&'static str],
    /// Whether it goes by delays in headers of the way back.
    pub(crate) needs_way_back: bool,
    /// Who goes first among sound and picture, unless the scenario says so.
    pub(super) order: Order,
    /// Whether receivers send reports.
    pub(crate) reports: bool,
    /// Whether senders probe the round trip.
    pub(crate) probes: bool,
    /// Whether receivers tell when each packet arrived.
    pub(crate) arrivals: bool,
    /// Makes the controller.
    pub(crate) make: Make,
}

/// The keys that every member has, and some more.
macro_rules! keys {
    ($($key:literal),*) => {
        &["overhead_bytes", "strict_two_subheaders", "media_bytes", "mtu_bytes", "multiplexer", $($key),*]
    };
}

/// Those, the keys of the published rule (DPM), and some more.
macro_rules! trend_keys {
    ($($key:literal),*) => {
        keys!("k_max", "differences", "alpha", "tolerance", "settle", "trend", $($key),*)
    };
}

/// The transport whose controller is the user's.
const OWN: &str = "telehaptic";

impl Member {
    /// What it learns of its packets: parameters say it where the controller is the user's.
    pub(super) fn learning(&self, params: &Params<'_>) -> Result<Self, TransportError> {
        if self.name != OWN {
            return Ok(*self);
        }
        Ok(match params.choice("learns", &["delays", "reports", "round-trips", "arrivals"])? {
            Some("reports") => Self { reports: true, ..*self },
            Some("round-trips") => Self { probes: true, ..*self },
            Some("arrivals") => Self { arrivals: true, ..*self },
            _ => Self { needs_way_back: true, ..*self },
        })
    }
}

const PLAIN: Member = Member {
    name: "",
    keys: keys!(),
    needs_way_back: false,
    order: Order::Strict,
    reports: false,
    probes: false,
    arrivals: false,
    make: fixed::no_merge,
};

/// A member that goes by that rule.
const DPM: Member = Member { keys: trend_keys!("repeats"), needs_way_back: true, ..PLAIN };

/// The telehaptic transports.
pub(crate) const MEMBERS: [Member; 19] = [
    Member { name: "no-merge", ..PLAIN },
    // [Gokhale 2013] first come, first served; adaptive sampling is a hook (`weber`)
    Member { name: "hoip", order: Order::FirstCome, ..PLAIN },
    Member {
        name: "loss-triggered",
        keys: keys!("k_max", "loss", "persist", "event"),
        reports: true,
        make: loss::loss_triggered,
        ..PLAIN
    },
    Member { name: "fixed-k", keys: keys!("k"), make: fixed::fixed, ..PLAIN },
    Member { name: "timetable-k", keys: keys!("at_ms", "k"), make: fixed::timetable, ..PLAIN },
    Member { name: "dpm", make: dpm::step, ..DPM },
    Member { name: "dpm-multistep", make: dpm::multistep, ..DPM },
    Member { name: "dpm-holdup", keys: trend_keys!("repeats", "hold_ns"), make: dpm::holdup, ..DPM },
    Member {
        name: "dpm-g",
        keys: trend_keys!(
            "repeats",
            "steady_below_ns",
            "congested_above_ns",
            "bottleneck_bps",
            "hops",
            "increase",
            "hold_ns"
        ),
        make: dpm::guarded,
        ..DPM
    },
    Member {
        name: "dpm-q",
        keys: keys!(
            "k_max",
            "k_drain",
            "bottleneck_bps",
            "hops",
            "alarm_ns",
            "alarm_packets",
            "empty_ns",
            "window_ns",
            "window_packets",
            "spare_ns",
            "spare_packets",
            "stay_ns",
            "stay_packets",
            "trial_ns",
            "trial_packets",
            "calm_ns",
            "calm_packets",
            "retry_ns"
        ),
        needs_way_back: true,
        make: queue::by_queue,
        ..PLAIN
    },
    Member {
        name: "admux",
        keys: keys!("step_bytes", "congested_above_ns", "event", "event_span_ns"),
        needs_way_back: true,
        make: shares::admux,
        ..PLAIN
    },
    Member { name: "nafcah", keys: trend_keys!("probe_ns"), probes: true, make: nafcah::nafcah, ..PLAIN },
    Member { name: "napas", keys: trend_keys!("repeats", "hold_ns"), make: napas::napas, ..DPM },
    Member {
        name: "etp",
        keys: keys!("gap_ns", "congested", "clear"),
        needs_way_back: true,
        make: etp::etp,
        ..PLAIN
    },
    Member {
        name: "pahcp",
        keys: keys!("congested_above_ns", "clear_below_ns", "keep_ns"),
        needs_way_back: true,
        make: perception::pahcp,
        ..PLAIN
    },
    Member {
        name: "scream",
        keys: keys!("k_max", "target_ns", "feedback_ns"),
        arrivals: true,
        make: scream::scream,
        ..PLAIN
    },
    Member {
        name: "gcc",
        keys: keys!("k_max", "target_ns", "deltas", "feedback_ns"),
        arrivals: true,
        make: gcc::gcc,
        ..PLAIN
    },
    Member { name: "rtcp-report", reports: true, make: report::by_report, keys: keys!("k_max"), ..PLAIN },
    // A controller of the user's: `learning` makes what it learns of.
    Member {
        name: OWN,
        keys: keys!("controller", "learns", "probe_ns", "feedback_ns"),
        make: own::own,
        ..PLAIN
    },
];
