//! Extra delay per packet, with the order kept or not.

use crate::{
    own::{ForeignCode, OwnDelay},
    packet::Packet,
};
use tcps_core::{dist::Sampler, time::Time};
use tcps_plan::{
    net::{DelaySpec, JitterSpec},
    RunError,
};

/// Whoever keeps the order delays a packet to the arrival of the one before it, which raises the mean above that of the
/// delay model.
pub(crate) struct Jitter {
    delays: Delays,
    reorder: bool,
}

enum Delays {
    Drawn(Sampler),
    Own(OwnDelay),
}

impl Jitter {
    /// The jitter of a link.
    pub fn new(
        spec: &JitterSpec,
        link: &str,
        seed: u64,
        code: &mut dyn ForeignCode,
    ) -> Result<Self, RunError> {
        let delays = match &spec.delay {
            DelaySpec::Model(dist) => {
                Delays::Drawn(Sampler::new(dist.clone(), seed, &format!("links.{link}.jitter")))
            }
            DelaySpec::Code(named) => {
                Delays::Own(OwnDelay::new(code.delay(named, link, seed)?, &named.kind, link))
            }
        };
        Ok(Self { delays, reorder: spec.reorder })
    }

    /// Extra delay of the packet that is wholly on the line at `now`.
    pub fn delay(&mut self, now: Time, packet: &Packet) -> Time {
        match &mut self.delays {
            Delays::Drawn(sampler) => sampler.draw(),
            Delays::Own(code) => code.delay(now, packet),
        }
    }

    /// Whether a packet may overtake the one before it.
    pub fn reorders(&self) -> bool {
        self.reorder
    }

    /// What code of the user's did wrong.
    pub fn failure(&self) -> Option<String> {
        match &self.delays {
            Delays::Drawn(_) => None,
            Delays::Own(code) => code.failure(),
        }
    }
}
