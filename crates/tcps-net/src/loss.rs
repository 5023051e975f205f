//! Random loss on a line: independent, or in bursts. A new model is its line in `LOSSES`.

use serde_json::Value;
use tcps_core::{
    model::LossModel,
    param::{Draws, Entry, Fault, Named, Params},
    params,
    seed::Stream,
    time::Time,
};

params! {
    /// Of independent loss.
    pub struct Each {
        p: f64 = Share, GIVEN, SHARE, "probability of a loss";
    }
}
params! {
    /// Of a good and a bad state.
    pub struct Bursts {
        p: f64 = Share, GIVEN, SHARE, "probability that the good state becomes bad, per packet";
        r: f64 = Share, GIVEN, SHARE, "probability that the bad state becomes good, per packet";
        loss_good: f64 = Share, "0 %", SHARE, "probability of a loss in the good state";
        loss_bad: f64 = Share, "100 %", SHARE, "probability of a loss in the bad state";
    }
}

/// How a model is made from its parameters, which are complete.
pub type MakeLoss = fn(&Value, Stream) -> Result<Box<dyn LossModel>, Fault>;

/// The models by name.
pub const LOSSES: &[&Entry<MakeLoss>] = &[
    &Entry {
        id: 0,
        name: "random",
        doc: "each packet is lost independently",
        params: &[Each::TABLE],
        draws: Draws::Yes,
        make: |params, stream| Ok(Box::new(RandomLoss { p: Each::read(params)?.p, stream })),
    },
    &Entry {
        id: 1,
        name: "gilbert-elliott",
        doc: "a good and a bad state, which may change at each packet",
        params: &[Bursts::TABLE],
        draws: Draws::Yes,
        make: |params, stream| {
            let Bursts { p, r, loss_good, loss_bad } = Bursts::read(params)?;
            Ok(Box::new(GilbertElliott { p, r, loss: [loss_good, loss_bad], bad: false, stream }))
        },
    },
];

/// The model of a line, with its random stream.
pub fn build(loss: &Named, stream: Stream) -> Result<Box<dyn LossModel>, Fault> {
    let (entry, params) = loss.of(LOSSES)?;
    (entry.make)(&params, stream)
}

/// The parameters of a model, checked and completed.
pub fn checked(loss: &Named) -> Result<Value, Fault> {
    let (entry, params) = loss.of(LOSSES)?;
    (entry.make)(&params, Stream::new(0, "")).map(|_| params)
}

/// Every packet is lost with the same probability.
pub struct RandomLoss {
    /// The probability.
    pub p: f64,
    /// Its random stream.
    pub stream: Stream,
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
