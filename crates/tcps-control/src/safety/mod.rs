//! What the follower does when commands fail: states, thresholds, and motion that never breaks its limits.
//!
//! ```text
//!            age, loss, order, rate                age > hold                 age > stop
//!  normal ◄─────────────────────► degraded ──┐  ┌──────────► hold ─────────────────────► safe stop
//!    ▲                                       ▼  │             │ fresh for a while          │ and near, if asked for
//!    └──────────── near the command ──────── recovering ◄─────┴────────────────────────────┘
//! ```

mod health;
mod motion;
mod supervisor;
mod workspace;

pub use health::{Arrival, Health, Thresholds};
pub use motion::{Action, Limits, Mover};
pub use supervisor::{Command, Engage, Origin, Settings, Supervisor, Timing};
pub use tcps_core::hook::State;
pub use workspace::{Workspace, MOST};
