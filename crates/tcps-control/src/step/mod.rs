//! The step experiment (Polachan 2022: steps): a controller at the operator holds a quantity of the far side at a reference,
//! through the network, while that quantity jumps.
//!
//! ```text
//! operator       e = 1 - h,  I += Ki T e,  k = Kp e + I      every T
//! teleoperator   h = s(t) y(k),  s = 1 before t0, 1/c from then on;  y(k) = k, or that of a plant with a memory
//! ```

mod jump;
mod pi;
pub mod plant;

pub use jump::Jump;
pub use pi::{Gains, Pi};
