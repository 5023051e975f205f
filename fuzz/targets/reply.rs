//! The answer to an echo command that can be parsed comes out again with the same content.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tcps_wire::reply::{Packet, Repr};

fuzz_target!(|bytes: &[u8]| {
    let Ok(packet) = Packet::new_checked(bytes) else { return };
    let repr = Repr::parse(&packet);
    let mut again = Vec::new();
    repr.emit(&mut again);
    let Ok(packet) = Packet::new_checked(&again) else { panic!("what was emitted cannot be parsed") };
    assert_eq!(Repr::parse(&packet).0, repr.0);
});
