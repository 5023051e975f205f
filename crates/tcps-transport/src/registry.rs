//! The transports by name.

use crate::{
    after,
    channel::{ChannelContext, Side},
    fec::{Parity, Repeat},
    kernel_tcp::{self, KernelTcp},
    params::{Params, TransportError},
    quic::Quic,
    rtp::Rtp,
    tcp::Tcp,
    telehaptic::{self, Telehaptic},
    udp::Udp,
};
use serde_json::Value;
use tcps_core::{
    endpoint::Endpoint,
    rate::{RateController, Steers},
};

type Make = fn(&Params<'_>, Side, &ChannelContext) -> Result<Box<dyn Endpoint>, TransportError>;

const MEMBERS: &[(&str, Make)] = &[
    ("udp", |params, side, ctx| Ok(Box::new(Udp::from_params(params, side, ctx)?))),
    ("alphan", |params, side, ctx| Ok(Box::new(after::alphan::Alphan::from_params(params, side, ctx)?))),
    ("coarse-copy", |p, side, ctx| Ok(Box::new(after::coarse_copy::CoarseCopy::from_params(p, side, ctx)?))),
    ("irtp", |params, side, ctx| Ok(Box::new(after::irtp::Irtp::from_params(params, side, ctx)?))),
    ("merge-span", |p, side, ctx| Ok(Box::new(after::merge_span::MergeSpan::from_params(p, side, ctx)?))),
    ("multipath", |p, side, ctx| Ok(Box::new(after::multipath::Multipath::from_params(p, side, ctx)?))),
    ("nack", |params, side, ctx| Ok(Box::new(after::nack::Nack::from_params(params, side, ctx)?))),
    ("smoothed-sctp", |p, s, ctx| Ok(Box::new(after::smoothed_sctp::SmoothedSctp::from_params(p, s, ctx)?))),
    ("visual-haptic", |p, s, ctx| Ok(Box::new(after::visual_haptic::VisualHaptic::from_params(p, s, ctx)?))),
    ("tcp", |params, side, ctx| Ok(Box::new(Tcp::from_params(params, side, ctx)?))),
    (kernel_tcp::NAME, |params, side, ctx| Ok(Box::new(KernelTcp::from_params(params, side, ctx)?))),
    ("quic", |params, side, ctx| Ok(Box::new(Quic::from_params(params, side, ctx)?))),
    ("parity", |params, side, ctx| Ok(Box::new(Parity::from_params(params, side, ctx)?))),
    ("repeat", |params, side, ctx| Ok(Box::new(Repeat::from_params(params, side, ctx)?))),
    ("rtp", |params, side, ctx| Ok(Box::new(Rtp::from_params(params, side, ctx)?))),
];

/// Whether the datagrams of a transport begin with the plain header, so that a packet's flow and sample can be read.
pub fn has_plain_header(name: &str) -> bool {
    matches!(name, "udp" | kernel_tcp::NAME)
}

/// Bytes of headers that are there on sockets only because the transport's own IP packets ride in UDP (design: streams).
pub fn encapsulation_bytes(name: &str) -> u32 {
    match name {
        "tcp" => 8 + 20,
        _ => 0,
    }
}

/// Names of the transports.
pub fn names() -> Vec<&'static str> {
    MEMBERS.iter().map(|(name, _)| *name).chain(telehaptic::MEMBERS.iter().map(|m| m.name)).collect()
}

/// Whether a transport sends telehaptic packets.
pub fn is_telehaptic(name: &str) -> bool {
    telehaptic::MEMBERS.iter().any(|m| m.name == name)
}

/// The parameters that may name a rate controller of the user's, and what it steers there.
const CONTROLLERS: [(&str, Steers); 2] = [("controller", Steers::Merging), ("congestion", Steers::Rate)];

/// The code of a rate controller that parameters name, as a plan has it.
pub fn controller(params: &Value) -> Option<(&Value, Steers)> {
    CONTROLLERS.iter().find_map(|(key, steers)| Some((params.get(key).filter(|c| c.is_object())?, *steers)))
}

/// The endpoint of the transport `name` with `params` (an object, or null for none) at one side of a channel.
pub fn endpoint(
    name: &str,
    params: &Value,
    side: Side,
    ctx: &ChannelContext,
) -> Result<Box<dyn Endpoint>, TransportError> {
    led(name, params, None, side, ctx)
}

/// The same with a rate controller that has been made elsewhere, from the code that the parameters name.
pub fn led(
    name: &str,
    params: &Value,
    controller: Option<Box<dyn RateController>>,
    side: Side,
    ctx: &ChannelContext,
) -> Result<Box<dyn Endpoint>, TransportError> {
    if let Some(member) = telehaptic::MEMBERS.iter().find(|m| m.name == name) {
        let params = Params::new(member.name, params).led(controller);
        return Ok(Box::new(Telehaptic::new(&params, side, ctx, member)?));
    }
    let Some((transport, make)) = MEMBERS.iter().find(|(known, _)| *known == name) else {
        return Err(TransportError::UnknownTransport { found: name.to_string(), known: names() });
    };
    make(&Params::new(transport, params).led(controller), side, ctx)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(name: &str, params: Value) -> String {
        match endpoint(name, &params, Side::A, &ChannelContext::default()) {
            Ok(_) => panic!("accepted"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn good_parameters_give_an_endpoint() {
        for params in [Value::Null, json!({}), json!({"mtu_bytes": 576, "overhead_bytes": 58})] {
            assert!(endpoint("udp", &params, Side::B, &ChannelContext::default()).is_ok(), "{params}");
        }
    }

    #[test]
    fn a_refusal_tells_what_was_found_and_what_is_allowed() {
        let known = names().join(", ");
        assert_eq!(refusal("udb", json!({})), format!("transport \"udb\" is not known; known: {known}"));
        assert_eq!(
            refusal("udp", json!({"mtu": 3})),
            "transport udp has no parameter \"mtu\"; allowed: mtu_bytes, overhead_bytes"
        );
        let mtu = |found: &str| {
            format!("transport udp: mtu_bytes is {found}; allowed: a whole number from 300 to 65507")
        };
        assert_eq!(refusal("udp", json!({"mtu_bytes": 299})), mtu("299"));
        assert_eq!(refusal("udp", json!({"mtu_bytes": -1})), mtu("-1"));
        assert_eq!(refusal("udp", json!({"mtu_bytes": "1200 B"})), mtu("\"1200 B\""));
        assert_eq!(refusal("udp", json!([1])), "transport udp: parameters are [1]; allowed: an object");
    }
}
