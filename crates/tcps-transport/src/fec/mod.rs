//! Forward error correction around the plain `udp` transport.
//!
//! ```text
//! repeat   each datagram n + 1 times, t apart                       FEC(n, t), Hudson et al. 2001
//! parity   after k datagrams or 8 ms: m parity datagrams            XOR (m = 1) or Reed-Solomon over GF(256)
//! ```

mod block;
mod code;
mod galois;
pub(crate) mod parity;
pub(crate) mod repeat;

use crate::{
    channel::{ChannelContext, Side},
    params::{Params, TransportError},
    udp::Udp,
};

/// The `udp` endpoint inside, with the parameters that are its own.
pub(crate) fn inner(params: &Params<'_>, side: Side, ctx: &ChannelContext) -> Result<Udp, TransportError> {
    Udp::from_params(params, side, ctx)
}
