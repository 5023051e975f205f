//! Channels that the kernel's TCP carries.

use tcps_plan::{ChannelPlan, Plan, RunError};
use tcps_transport::{
    kernel_tcp::{Settings, NAME},
    TransportError,
};

/// What is set at the sockets of a channel, if the kernel's TCP carries it.
pub(crate) fn settings(channel: &ChannelPlan) -> Option<Result<Settings, RunError>> {
    let error = |e: TransportError| RunError::of(&e, e.fault()).within(format!("channels.{}", channel.name));
    (channel.transport == NAME).then(|| Settings::new(&channel.params).map_err(error))
}

/// Refuses such channels where nodes have no IP network between them; `found` says what is there.
pub(crate) fn refuse(plan: &Plan, found: &str) -> Result<(), RunError> {
    let channel = plan.channels.iter().find(|c| c.transport == NAME);
    channel.map_or(Ok(()), |c| {
        Err(RunError::config(format!(
            "channels.{}: transport is \"{NAME}\", and {found}; allowed: --world namespaces, mininet or hosts, or the \
             transport \"tcp\", which runs in every world",
            c.name,
        )))
    })
}
