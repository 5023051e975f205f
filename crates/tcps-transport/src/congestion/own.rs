//! A rate controller of the user's, made by whoever knows its language.

use crate::params::{Params, TransportError};
use tcps_core::{rate::RateController, time::Time};

/// `telehaptic`.
pub(crate) fn own(params: &Params<'_>, _: Time) -> Result<Box<dyn RateController>, TransportError> {
    params.controller().ok_or_else(|| params.refuse("controller", "a class such as \"./mine.py:Mine\""))
}
