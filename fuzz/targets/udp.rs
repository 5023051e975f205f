//! `handle_input` of the plain `udp` transport takes any datagram, any sample and any time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use tcps_fuzz::{play, Script};
use tcps_transport::{endpoint, ChannelContext, ChannelFlow, Side};

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let to = if script.byte() % 2 == 0 { Side::A } else { Side::B };
    let flows = vec![ChannelFlow { flow: 0, to }, ChannelFlow { flow: 1, to: Side::A }];
    let params = json!({ "mtu_bytes": 64 + u64::from(script.short() % 2000) });
    let Ok(mut udp) = endpoint("udp", &params, Side::A, &ChannelContext { flows }) else { return };
    play(udp.as_mut(), &mut script, &[0, 1, 2]);
    let stats = udp.stats();
    assert!(stats.malformed <= 1 << 16 && stats.duplicates <= 1 << 16);
});
