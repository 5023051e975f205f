//! Congestion control: what a sender makes of what it learns of its packets.
//!
//! ```text
//! RateController (tcps_core::rate)   how many samples a packet holds, and which are left out: telehaptic, one file each;
//!                                    or a rate in bit/s, which rtp keeps its flows within: `gcc`, code of the user's
//! window                             segments in flight: tcp
//! ```
//! Nothing here knows which transport asks. `window` has a trait of its own, since `RateController` decides how many samples
//! a packet merges, from delays and reports, and has neither a window nor a notion of a lost segment; a TCP sender asks for
//! nothing else.

mod arrival_filter;
mod contact;
pub(crate) mod dpm;
pub(crate) mod etp;
mod extreme;
pub(crate) mod fixed;
#[cfg(test)]
mod fluid;
pub(crate) mod gcc;
mod gcc_rate;
mod guard;
pub(crate) mod loss;
pub(crate) mod nafcah;
pub(crate) mod napas;
mod others;
pub(crate) mod own;
pub(crate) mod perception;
pub(crate) mod queue;
mod rates;
pub(crate) mod report;
pub(crate) mod scream;
mod scream_queue;
pub(crate) mod shares;
mod tally;
mod trend;
pub(crate) mod window;

pub(crate) use extreme::Extreme;

use crate::params::{Params, TransportError};
use tcps_core::{rate::RateController, time::Time};

/// A controller for samples of this period.
pub(crate) type Make = fn(&Params<'_>, Time) -> Result<Box<dyn RateController>, TransportError>;
