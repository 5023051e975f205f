//! The transports by name.

use crate::{
    channel::{ChannelContext, Side},
    congestion,
    fec::{parity, repeat},
    kernel_tcp, literature,
    params::{Params, Transport, TransportError, AROUND},
    quic, rtp, tcp,
    telehaptic::Telehaptic,
    udp,
};
use serde_json::{json, Value};
use tcps_core::{
    endpoint::Endpoint,
    param::{self, Entry},
    rate::{RateController, Steers},
};

/// The transports; those that merge are in `congestion::CONTROLLERS`.
const TRANSPORTS: &[&Entry<Transport>] = &[
    &udp::ENTRY,
    &literature::alphan::ENTRY,
    &literature::coarse_copy::ENTRY,
    &literature::irtp::ENTRY,
    &literature::merge_span::ENTRY,
    &literature::multipath::ENTRY,
    &literature::nack::ENTRY,
    &literature::smoothed_sctp::ENTRY,
    &literature::visual_haptic::ENTRY,
    &tcp::ENTRY,
    &kernel_tcp::ENTRY,
    &quic::ENTRY,
    &parity::ENTRY,
    &repeat::ENTRY,
    &rtp::ENTRY,
];

/// All transports with their parameters and the methods of `security` that they may have, as JSON.
pub fn described() -> Value {
    let telehaptic: Vec<_> = congestion::merging().map(|(entry, _)| entry).collect();
    let lists = [param::described(TRANSPORTS), param::described(&telehaptic)];
    let mut all: Vec<_> =
        lists.into_iter().flat_map(|list| list.as_array().cloned().unwrap_or_default()).collect();
    for one in &mut all {
        one["security"] = json!(methods(one["name"].as_str().unwrap_or_default()));
    }
    all.into()
}

/// The rate controllers that say how fast flows may send, as JSON; their parameters are among those of the transport.
pub fn described_controllers() -> Value {
    congestion::pacing().map(|(entry, _)| Entry { params: &[], ..*entry }.described()).collect()
}

/// What stands behind a name, unless it merges.
fn known(name: &str) -> Option<&'static Transport> {
    TRANSPORTS.iter().find(|t| t.name == name).map(|t| &t.make)
}

/// Whether the datagrams of a transport begin with the plain header, so that a packet's flow and sample can be read.
pub fn has_plain_header(name: &str) -> bool {
    known(name).is_some_and(|t| t.has_plain_header)
}

/// Bytes of headers that are there on sockets only because the transport's own IP packets ride in UDP (design: streams).
pub fn encapsulation_bytes(name: &str) -> u32 {
    known(name).map_or(0, |t| t.encapsulation_bytes)
}

/// The methods of security that the channel of a transport may have, which is built in or a user's.
pub fn methods(name: &str) -> &'static [&'static str] {
    known(name).map_or(AROUND, |t| t.security)
}

/// Whether its datagrams mean something each by itself, and not only within a connection.
pub fn sends_datagrams(name: &str) -> bool {
    known(name).is_none_or(|t| t.sends_datagrams)
}

/// Names of the transports.
pub fn names() -> Vec<&'static str> {
    TRANSPORTS.iter().map(|t| t.name).chain(congestion::merging().map(|(m, _)| m.name)).collect()
}

/// The name of the transport with this id.
pub fn by_id(id: u16) -> Option<&'static str> {
    let merging = congestion::merging().map(|(entry, _)| (entry.id, entry.name));
    TRANSPORTS.iter().map(|t| (t.id, t.name)).chain(merging).find_map(|(at, name)| (at == id).then_some(name))
}

/// Whether a transport sends telehaptic packets.
pub fn is_telehaptic(name: &str) -> bool {
    congestion::merging().any(|(m, _)| m.name == name)
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
    if let Some((entry, merging)) = congestion::merging().find(|(m, _)| m.name == name) {
        let params = Params::new(entry.name, params).led(controller).known(entry)?;
        return Ok(Box::new(Telehaptic::new(&params, side, ctx, entry.name, &merging)?));
    }
    let Some(transport) = TRANSPORTS.iter().find(|known| known.name == name) else {
        return Err(TransportError::UnknownTransport { found: name.to_string(), known: names() });
    };
    (transport.make.make)(&Params::new(transport.name, params).led(controller).known(transport)?, side, ctx)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn connections_send_no_datagrams_that_an_attacker_could_replay() {
        let connections: Vec<_> = names().into_iter().filter(|name| !sends_datagrams(name)).collect();
        assert_eq!(connections, ["tcp", "kernel-tcp", "quic"]);
    }

    #[test]
    fn rate_controllers_that_merge_are_telehaptic_transports_and_no_others_are() {
        let telehaptic = |name: &&str| is_telehaptic(name);
        assert!(["no-merge", "hoip", "dpm", "dpm-q", "scream"].iter().all(telehaptic));
        assert!(!["udp", "merge-span", "tcp", "quic", "rtp", "of-a-user"].iter().any(telehaptic));
    }

    #[test]
    fn parameters_name_code_of_a_rate_controller_and_what_it_steers() {
        let code = json!({"python": "rule.py"});
        let found = |key: &str, value: &Value| {
            controller(&json!({"k_max": 4, key: value})).map(|(c, s)| (c.clone(), s))
        };
        assert_eq!(found("controller", &code), Some((code.clone(), Steers::Merging)));
        assert_eq!(found("congestion", &code), Some((code.clone(), Steers::Rate)));
        assert_eq!(found("congestion", &json!("gcc")), None, "that is one of ours");
        assert_eq!(controller(&Value::Null), None);
    }

    #[test]
    fn rate_controllers_are_described_by_name() {
        let found = described_controllers();
        let named = |name: &str| found.as_array().unwrap().iter().any(|one| one["name"] == name);
        assert!(named("gcc") && !named("telehaptic"), "{found}");
    }

    #[test]
    fn a_refusal_tells_what_was_found_and_what_is_allowed() {
        let known = names().join(", ");
        assert_eq!(refusal("udb", json!({})), format!("transport \"udb\" is not known; known: {known}"));
        assert_eq!(
            refusal("udp", json!({"mtu": 3})),
            "transport udp: found \"mtu\", which is not a parameter; allowed: mtu_bytes, overhead_bytes"
        );
        let mtu = |found: &str| {
            let allowed = "a size from 300 B to 65507 B, such as \"1200 B\"";
            format!("transport udp: mtu_bytes is {found}; allowed: {allowed}")
        };
        assert_eq!(refusal("udp", json!({"mtu_bytes": 299})), mtu("299 B"));
        assert_eq!(refusal("udp", json!({"mtu_bytes": -1})), mtu("-1 B"));
        assert_eq!(refusal("udp", json!({"mtu_bytes": "1200 B"})), mtu("\"1200 B\""));
        assert_eq!(refusal("udp", json!([1])), "transport udp: parameters are [1]; allowed: an object");
    }
}
