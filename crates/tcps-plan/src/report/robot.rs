//! How robots with loops of their own kept their time.

use serde::Serialize;
use tcps_core::robot::Pace;

/// What a robot with a loop of its own tells about itself.
#[derive(Debug, Clone, Serialize)]
pub struct RobotSelf {
    component: String,
    node: String,
    ticks: u64,
    /// Skipped ticks: its loop was late; one step made up for them.
    missed_ticks: u64,
    late_ns: RobotLate,
    gaps_over_1ms: u64,
    /// Times its watchdog found that commands had ceased.
    watchdog: u64,
}

/// How late a robot's loop woke up, in nanoseconds.
#[derive(Debug, Clone, Serialize)]
struct RobotLate {
    p50: u64,
    p99: u64,
    max: u64,
}

impl RobotSelf {
    /// The robot of a component at a node.
    pub(super) fn new(component: &str, node: &str, pace: Pace) -> Self {
        Self {
            component: component.into(),
            node: node.into(),
            ticks: pace.ticks,
            missed_ticks: pace.missed_ticks,
            late_ns: RobotLate { p50: pace.p50_ns, p99: pace.p99_ns, max: pace.max_ns },
            gaps_over_1ms: pace.gaps_over_1ms,
            watchdog: pace.watchdog,
        }
    }
}
