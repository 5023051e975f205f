//! The step experiment (Polachan 2022: steps): a controller at the operator holds a quantity of the far side at a reference,
//! through the network, while that quantity jumps.
//!
//! ```text
//! operator       e = 1 - h,  I += Ki T e,  k = Kp e + I      every T
//! teleoperator   h = s(t) k,  s = 1 before t0, 1/c from then on
//! ```

mod pi;
mod plant;

pub use pi::{Gains, Pi};
pub use plant::Plant;
