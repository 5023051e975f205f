//! A header that can be parsed says where its parts are, inside the datagram, and comes out again as it went in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tcps_wire::header::{Packet, Repr, HEADER_BYTES};

fuzz_target!(|bytes: &[u8]| {
    let Ok(packet) = Packet::new_checked(bytes) else {
        assert!(bytes.len() < HEADER_BYTES);
        return;
    };
    let (payload, trailer) = (packet.payload(), packet.trailer());
    assert!(payload.len() + trailer.len() <= bytes.len() - HEADER_BYTES);
    let Ok(repr) = Repr::parse(&packet) else { return };
    assert_eq!(payload.len(), repr.payload_bytes());
    assert_eq!(payload.len() + trailer.len(), bytes.len() - HEADER_BYTES);
    assert!(repr.offset() + repr.payload_bytes() <= repr.length as usize);
    let mut again = Vec::new();
    repr.emit(&mut again);
    assert_eq!(again, bytes[..HEADER_BYTES]);
});
