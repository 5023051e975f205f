//! The step experiment (Polachan 2022: steps): a controller at the operator holds a quantity of the far side at a reference,
//! through the network, while that quantity jumps.
//!
//! ```text
//! operator       e = 1 - h,  I += Ki T e,  k = Kp e + I      every T; or k = 1 + C e of a linear controller
//! teleoperator   h = s(t) y(k),  s = 1 before t0, 1/c from then on;  y(k) = k, or that of a plant with a memory
//!                or h = y(k) - d(t),  d = 0 before t0, 1 - 1/c from then on
//! ```

mod controller;
mod jump;
pub mod linear;
mod pi;
pub mod plant;

pub use controller::Controller;
pub use jump::{Disturbance, Jump};
pub use pi::{Gains, Pi};
