//! Random loss on a line: independent, or in bursts.

use tcps_core::{model::LossModel, seed::Stream, time::Time};
use tcps_plan::net::LossSpec;

/// The model of `spec` for the random object `name`.
pub fn build(spec: &LossSpec, seed: u64, name: &str) -> Box<dyn LossModel> {
    let stream = Stream::new(seed, name);
    match *spec {
        LossSpec::Random { p } => Box::new(RandomLoss { p, stream }),
        LossSpec::GilbertElliott { p, r, loss_good, loss_bad } => {
            Box::new(GilbertElliott { p, r, loss: [loss_good, loss_bad], bad: false, stream })
        }
    }
}

/// Every packet is lost with the same probability.
pub struct RandomLoss {
    p: f64,
    stream: Stream,
}

impl LossModel for RandomLoss {
    fn lose(&mut self, _now: Time) -> bool {
        self.stream.chance(self.p)
    }
}

/// Two states, each with its own loss; the state may change after each packet. Stationary share of the bad state
/// `p / (p + r)`, mean stay in it `1 / r` packets. [Gilbert 1960] [Elliott 1963]
pub struct GilbertElliott {
    p: f64,
    r: f64,
    loss: [f64; 2],
    bad: bool,
    stream: Stream,
}

impl LossModel for GilbertElliott {
    fn lose(&mut self, _now: Time) -> bool {
        let lost = self.stream.unit() < self.loss[self.bad as usize];
        let leave = if self.bad { self.r } else { self.p };
        self.bad ^= self.stream.unit() < leave;
        lost
    }
}
