//! A rate controller of the user's, made by whoever knows its language.

use super::fixed;
use crate::params::{Params, TransportError};
use tcps_core::{rate::RateController, time::Time};

/// `telehaptic`; without a controller nothing is merged.
pub(crate) fn own(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    match params.controller() {
        Some(controller) => Ok(controller),
        None if params.has("controller") => Err(params.refuse("controller", "a class in Python")),
        None => fixed::no_merge(params, period_ns),
    }
}
