//! What rides on a packet in extensions of its header.

use tcps_core::{sample::Echo, time::Time};
use tcps_wire::rtp::{
    extension::{echo_of, older_of, Elements, Identity},
    Packet,
};

/// What rides on a packet beside its payload.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) identity: Option<Identity>,
    pub(super) echo: Option<Echo>,
    pub(super) older: Option<(u32, Time)>,
}

/// That of a packet.
pub(super) fn extras<T: AsRef<[u8]>>(packet: &Packet<T>) -> Extras {
    let elements = packet.extension().and_then(|(profile, data)| Elements::new(profile, data));
    let mut extras = Extras::default();
    for e in elements.into_iter().flatten() {
        extras.identity = extras.identity.or(Identity::parse(&e));
        extras.echo = extras.echo.or(echo_of(&e));
        extras.older = extras.older.or(older_of(&e));
    }
    extras
}
