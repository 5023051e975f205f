//! Parameters that every telehaptic transport has.

use super::multiplexer::Order;
use crate::{
    congestion::Merging,
    params::{Media, Mtu, Overhead, Packing, Params, TransportError},
    udp::STACK_BYTES,
};
use tcps_wire::telehaptic;

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
        let Overhead { overhead_bytes } = params.read()?;
        let strict = params.read::<Packing>()?.strict_two_subheaders;
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
    /// Reads them.
    pub(super) fn read(params: &Params<'_>, merging: &Merging) -> Result<Self, TransportError> {
        let (Mtu { mtu_bytes }, Media { media_bytes }) = (params.read()?, params.read()?);
        let order = match params.read::<Packing>()?.multiplexer.as_deref() {
            Some("first-come") => Order::FirstCome,
            Some(_) => Order::Strict,
            None if merging.first_come => Order::FirstCome,
            None => Order::Strict,
        };
        if media_bytes > mtu_bytes - HAPTIC_BYTES {
            let most = mtu_bytes - HAPTIC_BYTES;
            return Err(params.refuse("media_bytes", &format!("at most {most} B, which the mtu leaves")));
        }
        Ok(Self {
            accounting: Accounting::read(params)?,
            media_bytes: media_bytes as usize,
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
