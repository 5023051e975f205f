//! What the follower does when commands fail: states, thresholds, and motion that never exceeds its limits.
//!
//! ```text
//!  ┌─ commands are followed ───────────────────────────┐
//!  │           commands bad                            │
//!  │  normal ────────────────► degraded                │
//!  │   ▲  ▲                     │   │  ▲               │  age > hold_ms          age > stop_ms
//!  │   │  └── good, and near ───┘   │  │ bad           │ ───────────────► hold ────────────────► safe stop
//!  │   │                  good, far │  │               │                   │                         │
//!  │   │                            ▼  │               │      commands good│      commands good, and │
//!  │   └──── near the command ── recovering ◄──────────┼───────────────────┴──────── as engage says ─┘
//!  └───────────────────────────────────────────────────┘
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
