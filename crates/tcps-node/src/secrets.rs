//! Where the keys of secured channels come from, which differs between virtual time and sockets.

use tcps_core::ids::ChannelId;
use tcps_plan::RunError;
use tcps_transport::{security::Secret, Side, TlsSecret};

/// Hands out pre-shared keys and randomness.
pub trait Secrets {
    /// For one side of a channel, or, without one, of what travels outside channels; `name` is the same at both sides.
    fn secret(&mut self, channel: Option<ChannelId>, name: &str, side: Side) -> Result<Secret, RunError>;

    /// What TLS in the transport of a channel follows from.
    fn tls(&self, channel: ChannelId, name: &str) -> Result<TlsSecret, RunError>;
}

/// Those of virtual time, which follow from the scenario's seed.
pub struct Seeded(pub u64);

impl Secrets for Seeded {
    fn secret(&mut self, _: Option<ChannelId>, name: &str, side: Side) -> Result<Secret, RunError> {
        Ok(Secret::seeded(self.0, name, side))
    }

    fn tls(&self, _: ChannelId, _: &str) -> Result<TlsSecret, RunError> {
        Ok(TlsSecret::Seeded)
    }
}
