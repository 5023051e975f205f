//! Endpoints out of the registry, as the harness takes them.

use serde_json::Value;
use tcps_core::{
    endpoint::{Endpoint, EndpointStats, Input, Output},
    time::Time,
};
use tcps_transport::{endpoint, ChannelContext, Side};

/// An endpoint out of the registry.
pub struct Boxed(Box<dyn Endpoint>);

/// The endpoint of `transport` at `side`.
pub fn boxed(transport: &str, params: &Value, side: Side, ctx: &ChannelContext) -> Boxed {
    Boxed(endpoint(transport, params, side, ctx).unwrap())
}

impl Endpoint for Boxed {
    fn handle_input(&mut self, now: Time, input: Input<'_>) {
        self.0.handle_input(now, input)
    }
    fn poll_output(&mut self, buf: &mut Vec<u8>) -> Option<Output> {
        self.0.poll_output(buf)
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.0.poll_timeout()
    }
    fn stats(&self) -> EndpointStats {
        self.0.stats()
    }
}
