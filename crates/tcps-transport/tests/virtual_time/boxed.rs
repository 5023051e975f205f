//! Endpoints out of the registry, as the harness takes them.

use crate::pair::Boxed;
use serde_json::Value;
use tcps_transport::{endpoint, ChannelContext, Side};

/// The endpoint of `transport` at `side`.
pub fn boxed(transport: &str, params: &Value, side: Side, ctx: &ChannelContext) -> Boxed {
    Boxed(endpoint(transport, params, side, ctx).unwrap())
}
