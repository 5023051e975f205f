//! A rate controller of the user's, made by whoever knows its language.

use super::{
    control::{with, Controller, Hears, Merging},
    fixed,
};
use crate::params::{Params, Probing, Telling, TransportError};
use tcps_core::{
    param::{Draws, Entry},
    params,
    rate::RateController,
    time::Time,
};

params! {
    /// What a controller of the user's is.
    struct Code {
        controller: Option<String> = Text, ABSENT, ANY, "a class in Python, with params beside it";
    }
}
params! {
    /// What it learns.
    pub(crate) struct Learning {
        learns: String = Choice(&["delays", "reports", "round-trips", "arrivals"]), "delays", ANY, "feedback that the controller receives besides delays";
    }
}

/// `telehaptic`; without a controller nothing is merged.
fn own(params: &Params<'_>, period_ns: Time) -> Result<Box<dyn RateController>, TransportError> {
    match params.controller() {
        Some(controller) => Ok(controller),
        None if params.has("controller") => Err(params.refuse("controller", "a class in Python")),
        None => fixed::no_merge(params, period_ns),
    }
}

/// In a scenario.
pub(crate) const ENTRY: Entry<Controller> = Entry {
    id: 38,
    name: "telehaptic",
    doc: "sets k by a rate controller of your own",
    params: with!(Code, Learning, Probing, Telling),
    draws: Draws::No,
    make: Controller {
        merging: Some(Merging { hears: Hears::Nothing, first_come: false, make: own }),
        pacing: None,
    },
};

/// What a controller learns of its packets: parameters say it where it is the user's.
pub(crate) fn learning(merging: &Merging, params: &Params<'_>) -> Result<Hears, TransportError> {
    Ok(match params.read::<Learning>()?.learns.as_str() {
        "reports" => Hears::Reports,
        "round-trips" => Hears::RoundTrips,
        "arrivals" => Hears::Arrivals,
        _ if params.is_led() => Hears::Delays,
        _ => merging.hears,
    })
}
