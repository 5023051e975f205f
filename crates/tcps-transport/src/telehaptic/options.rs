//! Parameters that every telehaptic transport has.

use super::{members::Member, multiplexer::Order};
use crate::{
    params::{Params, TransportError},
    udp::STACK_BYTES,
};
use tcps_wire::telehaptic::{self, MEDIA_BYTES};

/// Payload of a datagram that no path cuts.
const MTU_BYTES: u32 = 1200;
/// Room that sound and picture leave for a haptic sample.
const HAPTIC_BYTES: u32 = 200;

/// What links account for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accounting {
    overhead_bytes: Option<u32>,
    strict: bool,
}

impl Accounting {
    fn read(params: &Params<'_>) -> Result<Self, TransportError> {
        let overhead_bytes = params.integer("overhead_bytes", 0..=65_535)?;
        let strict = params.boolean("strict_two_subheaders")?.unwrap_or(false);
        if strict && overhead_bytes.is_some() {
            return Err(params.refuse("strict_two_subheaders", "false with overhead, which replaces it"));
        }
        Ok(Self { overhead_bytes, strict })
    }

    /// Size on the wire.
    // [model: wire size] [Gokhale 2017: streams]
    pub(super) fn wire_bytes(&self, payload_bytes: usize, sub_headers: usize, echoes: usize) -> u32 {
        match self.overhead_bytes {
            Some(overhead_bytes) => payload_bytes as u32 + overhead_bytes,
            None => {
                telehaptic::accounted_bytes(payload_bytes, sub_headers, echoes, self.strict) as u32
                    + STACK_BYTES
            }
        }
    }
}

/// Parameters of an endpoint beside those of its controller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub(super) accounting: Accounting,
    pub(super) media_bytes: usize,
    /// Payload of a datagram above which a packet is sent before it is full.
    pub(super) mtu_bytes: usize,
    pub(super) order: Order,
}

impl Options {
    /// Reads them; refuses keys that the member does not have.
    pub(super) fn read(params: &Params<'_>, member: &Member) -> Result<Self, TransportError> {
        params.allow(member.keys)?;
        let order = match params.choice("multiplexer", &["strict", "first-come"])? {
            Some("first-come") => Order::FirstCome,
            Some(_) => Order::Strict,
            None => member.order,
        };
        let mtu_bytes = params.integer("mtu_bytes", 300..=65_507)?.unwrap_or(MTU_BYTES);
        Ok(Self {
            accounting: Accounting::read(params)?,
            media_bytes: params
                .integer("media_bytes", 1..=mtu_bytes - HAPTIC_BYTES)?
                .map_or(MEDIA_BYTES, |n| n as usize),
            mtu_bytes: mtu_bytes as usize,
            order,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    // [Gokhale 2017: streams]
    #[test]
    fn sub_headers_beside_an_overhead_that_replaces_them_are_refused() {
        let read =
            |params: Value| Accounting::read(&Params::new("no-merge", &params)).map_err(|e| e.to_string());
        let says = "transport no-merge: strict_two_subheaders is true; allowed: false with overhead, which replaces it";
        let both = json!({"strict_two_subheaders": true, "overhead_bytes": 62});
        assert_eq!(read(both), Err(says.into()));
        let one = json!({"strict_two_subheaders": true});
        assert_eq!(read(one), Ok(Accounting { overhead_bytes: None, strict: true }));
        let other = json!({"strict_two_subheaders": false, "overhead_bytes": 62});
        assert_eq!(read(other), Ok(Accounting { overhead_bytes: Some(62), strict: false }));
    }
}
