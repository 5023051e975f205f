//! Rate controllers: one file each, one line each in [`MEMBERS`].

mod dpm;
mod fixed;
mod guard;
mod loss;
mod queue;
mod report;
mod trend;

use super::multiplexer::Order;
use crate::params::{Params, TransportError};
use tcps_core::{rate::RateController, time::Time};

/// A controller for samples of this period.
type Make = fn(&Params<'_>, Time) -> Result<Box<dyn RateController>, TransportError>;

/// A telehaptic transport: a controller under a name.
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
    /// Makes the controller.
    pub(crate) make: Make,
}

/// The keys that every member has, and some more.
macro_rules! keys {
    ($($key:literal),*) => {
        &["overhead_bytes", "strict_two_subheaders", "media_bytes", "mtu_bytes", "multiplexer", $($key),*]
    };
}

const PLAIN: Member = Member {
    name: "",
    keys: keys!(),
    needs_way_back: false,
    order: Order::Strict,
    reports: false,
    make: fixed::no_merge,
};

/// Keys of the published rule.
const DPM: Member = Member {
    keys: keys!("k_max", "differences", "alpha", "tolerance", "settle", "trend", "repeats"),
    needs_way_back: true,
    ..PLAIN
};

/// The telehaptic transports.
pub(crate) const MEMBERS: [Member; 11] = [
    Member { name: "no-merge", ..PLAIN },
    // [PROTOCOLS 3.8] first come, first served; adaptive sampling is a hook (`weber`)
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
    Member {
        name: "dpm-holdup",
        keys: keys!("k_max", "differences", "alpha", "tolerance", "settle", "trend", "repeats", "hold_ns"),
        make: dpm::holdup,
        ..DPM
    },
    Member {
        name: "dpm-g",
        keys: keys!(
            "k_max",
            "differences",
            "alpha",
            "tolerance",
            "settle",
            "trend",
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
            "alarm_jumps",
            "steady_ns",
            "steady_jumps",
            "watch_ns",
            "watch_jumps",
            "retry_ns"
        ),
        needs_way_back: true,
        make: queue::by_queue,
        ..PLAIN
    },
    Member { name: "rtcp-report", reports: true, make: report::by_report, keys: keys!("k_max"), ..PLAIN },
];
