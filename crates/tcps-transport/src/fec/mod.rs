//! Forward error correction around the plain `udp` transport.
//!
//! ```text
//! repeat   each datagram n + 1 times, t apart                       FEC(n, t), Hudson et al. 2001
//! parity   after k datagrams or 8 ms: m parity datagrams            XOR (m = 1) or Reed-Solomon over GF(256)
//! ```

mod block;
mod code;
mod galois;
mod parity;
mod repeat;

pub(crate) use parity::Parity;
pub(crate) use repeat::Repeat;

use crate::{
    channel::{ChannelContext, Side},
    params::{Params, TransportError},
    udp::Udp,
};
use serde_json::{Map, Value};

/// The `udp` endpoint inside, with the parameters that are its own.
pub(crate) fn inner(params: &Params<'_>, side: Side, ctx: &ChannelContext) -> Result<Udp, TransportError> {
    let own = |key: &'static str| Ok(params.integer(key, 0..=65_535)?.map(|n| (key.to_string(), n.into())));
    let keys = [own("mtu_bytes")?, own("overhead_bytes")?];
    let map: Map<String, Value> = keys.into_iter().flatten().collect();
    Udp::from_params(&Params::new("udp", &Value::Object(map)), side, ctx)
}
