//! What a rate controller is to the transports that have one.

use crate::params::{Params, TransportError};
use tcps_core::{
    param::{Draws, Entry, Param},
    rate::RateController,
    time::Time,
};

/// A controller for samples of this period.
pub(crate) type Make = fn(&Params<'_>, Time) -> Result<Box<dyn RateController>, TransportError>;

/// What a controller learns of its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hears {
    /// Nothing.
    Nothing,
    /// Delays in headers of the way back.
    Delays,
    /// Reports of receivers.
    Reports,
    /// Round trips of probes.
    RoundTrips,
    /// When each packet arrived.
    Arrivals,
}

/// A controller that a scenario names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Controller {
    /// As a telehaptic transport of its name, which has the entry's parameters.
    pub(crate) merging: Option<Merging>,
    /// As `congestion` of `rtp`.
    pub(crate) pacing: Option<Pacing>,
}

/// Says how many samples a packet holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merging {
    /// What it goes by.
    pub(crate) hears: Hears,
    /// Whether sound and picture go in the order in which they came, unless the scenario says so.
    pub(crate) first_come: bool,
    /// Makes it.
    pub(crate) make: Make,
}

/// Says how fast flows may send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pacing {
    /// Its parameters among those of the transport.
    pub(crate) params: &'static [Param],
    /// Makes it.
    pub(crate) make: fn(&Params<'_>) -> Result<Box<dyn RateController>, TransportError>,
}

/// The entry of a controller that merges.
pub(crate) const fn merging(
    id: u16,
    name: &'static str,
    doc: &'static str,
    params: &'static [&'static [Param]],
    hears: Hears,
    make: Make,
) -> Entry<Controller> {
    let merging = Some(Merging { hears, first_come: false, make });
    let make = Controller { merging, pacing: None };
    Entry { id, name, doc, params, draws: Draws::No, make }
}

/// The parameters that every telehaptic transport has, and some more.
macro_rules! with {
    ($($table:ty),*) => {
        &[
            <$crate::params::Overhead as tcps_core::param::Params>::TABLE,
            <$crate::params::Packing as tcps_core::param::Params>::TABLE,
            <$crate::params::Media as tcps_core::param::Params>::TABLE,
            <$crate::params::Mtu as tcps_core::param::Params>::TABLE,
            $(<$table as tcps_core::param::Params>::TABLE),*
        ]
    };
}
pub(super) use with;
