//! A trailer of echo commands that can be parsed comes out again as it went in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tcps_wire::echo::{emit_count, Packet, Repr};

fuzz_target!(|bytes: &[u8]| {
    let Ok(packet) = Packet::new_checked(bytes) else { return };
    let count = packet.count();
    let commands: Result<Vec<_>, _> = (0..usize::from(count)).map(|i| Repr::parse(&packet, i)).collect();
    assert!(Repr::parse(&packet, usize::from(count)).is_err());
    let Ok(commands) = commands else { return };
    let mut again = Vec::new();
    emit_count(count, &mut again);
    commands.iter().for_each(|c| c.emit(&mut again));
    assert_eq!(again, bytes);
});
