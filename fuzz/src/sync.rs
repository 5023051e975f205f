//! Clock synchronisation with a server that lies and a network that does what it likes.

use crate::script::Script;
use tcps_core::{
    endpoint::{Endpoint, Input},
    time::Time,
};
use tcps_transport::clocksync::{Client, Server};

/// Whatever comes, the estimate stays a number with a bound, and both ends keep going.
pub fn clocksync(data: &[u8]) {
    let (mut script, mut now, mut buf) = (Script(data), 0 as Time, Vec::new());
    let (mut client, mut server) = (Client::new(1000), Server::default());
    let mut datagram = Vec::new();
    while let Some(step) = script.next() {
        match step % 8 {
            0 => now += script.number::<4>() as Time,
            1 => {
                client.handle_input(now, Input::Timeout);
                keep(&mut client, &mut buf, &mut datagram);
            }
            2 => {
                let at = now + script.number::<8>() as i64 / 4;
                server.handle_input(at, Input::datagram(&datagram, at));
                keep(&mut server, &mut buf, &mut datagram);
            }
            3 => {
                let (at, value) = (script.number::<1>() as usize, script.number::<1>() as u8);
                if let Some(byte) = datagram.get_mut(at) {
                    *byte ^= value;
                }
            }
            4 => {
                let bytes = script.take(36);
                client.handle_input(now, Input::datagram(bytes, now));
                server.handle_input(now, Input::datagram(bytes, now));
                keep(&mut server, &mut buf, &mut Vec::new());
            }
            _ => client.handle_input(now, Input::datagram(&datagram, now)),
        }
        check(&mut client, now, &mut buf);
    }
}

/// The last datagram that the endpoint wants sent, if any.
fn keep(endpoint: &mut dyn Endpoint, buf: &mut Vec<u8>, datagram: &mut Vec<u8>) {
    while endpoint.poll_output(buf).is_some() {
        if !buf.is_empty() {
            datagram.clone_from(buf);
        }
    }
}

fn check(client: &mut Client, now: Time, buf: &mut Vec<u8>) {
    while client.poll_output(buf).is_some() {}
    client.to_reference(now);
    if let Some(e) = client.estimate() {
        assert!(e.drift_ppb.abs() <= 500_001.0 && e.bound_ns >= 0 && e.exchanges > 0, "{e:?}");
    }
}
