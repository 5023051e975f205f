//! The flows of one direction of a channel, by what they hold.

use super::multiplexer::{Medium, MEDIA};
use crate::{
    channel::{ChannelContext, Side},
    params::TransportError,
};
use tcps_core::{
    ids::FlowId,
    time::{Time, MS},
};

/// The flows that leave or arrive here, by what they hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Roles {
    pub(super) haptic: FlowId,
    pub(super) period_ns: Time,
    pub(super) media: [Option<FlowId>; 2],
}

impl Roles {
    /// The flows to `side`; none if no flow goes there.
    pub(super) fn of(
        transport: &'static str,
        ctx: &ChannelContext,
        side: Side,
    ) -> Result<Option<Self>, TransportError> {
        let named = |name: &str| ctx.flows.iter().find(|f| f.to == side && f.name == name).map(|f| f.flow);
        let media = [named("audio"), named("video")];
        let mut rest = ctx.flows.iter().filter(|f| f.to == side && !media.contains(&Some(f.flow)));
        let refuse = |found: String, needed: &'static str| {
            Err(TransportError::Channel { transport, channel: ctx.name.clone(), found, needed })
        };
        let Some(haptic) = rest.next() else {
            return match media.iter().flatten().count() {
                0 => Ok(None),
                _ => refuse("sound or picture alone".into(), "a flow of haptic samples with them"),
            };
        };
        if let Some(more) = rest.next() {
            let found = format!("the flows {} and {}", haptic.name, more.name);
            return refuse(found, "one flow beside audio and video in each direction");
        }
        if haptic.period_ns < MS {
            let found = format!("{} at {} Hz", haptic.name, 1_000_000_000 / haptic.period_ns.max(1));
            return refuse(found, "at most 1 kHz: its header has milliseconds");
        }
        Ok(Some(Self { haptic: haptic.flow, period_ns: haptic.period_ns, media }))
    }

    /// What a flow holds besides haptic samples.
    pub(super) fn medium(&self, flow: FlowId) -> Option<Medium> {
        MEDIA.into_iter().find(|m| self.media[*m as usize] == Some(flow))
    }
}
