//! Where the keys of secured channels come from, which differs between virtual time and sockets.

use tcps_core::ids::ChannelId;
use tcps_plan::RunError;
use tcps_transport::{security::Secret, Shared, Side};

/// Hands out pre-shared keys and randomness.
pub trait Secrets {
    /// For one side of a channel, or, without one, of what travels outside channels; `name` is the same at both sides.
    fn secret(&mut self, channel: Option<ChannelId>, name: &str, side: Side) -> Result<Secret, RunError>;

    /// What both sides of a channel know, for a transport with TLS; none in virtual time.
    fn shared(&self, _channel: ChannelId) -> Option<Shared> {
        None
    }
}

/// Those of virtual time, which follow from the scenario's seed.
pub struct Seeded(pub u64);

impl Secrets for Seeded {
    fn secret(&mut self, _: Option<ChannelId>, name: &str, side: Side) -> Result<Secret, RunError> {
        Ok(Secret::seeded(self.0, name, side))
    }
}
