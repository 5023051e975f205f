//! `handle_input` of both ends of the clock synchronisation takes any datagram and any time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tcps_fuzz::{play, Script};
use tcps_transport::clocksync::{Client, Server};

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let mut client = Client::new(1 + i64::from(script.short()) * 1000);
    play(&mut client, &mut Script(script.0), &[0]);
    if let Some(estimate) = client.estimate() {
        assert!(estimate.bound_ns >= 0);
        let _ = client.to_reference(0);
    }
    play(&mut Server::default(), &mut script, &[0]);
});
