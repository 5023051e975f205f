//! TCP: a stack at each end.

use super::connection::Connection;
use tcps_core::{seed::Stream, time::Time};
use tcps_plan::net::{CongestionSpec, UsersSpec};
use tcps_transport::{
    tcp::{Congestion, Settings, Stack, LINK_BYTES},
    Side,
};

/// What requests and objects consist of.
const FILLER: [u8; 4096] = [0; 4096];
/// Receive buffer of a server and send buffer of a client, which carry only requests.
const SMALL_BUFFER_BYTES: usize = 4_096;

/// A connection over TCP.
pub(super) struct Tcp {
    client: Stack,
    server: Stack,
}

impl Tcp {
    pub(super) fn new(tcp: &UsersSpec, name: &str, seed: u64) -> Self {
        let mut seeds = Stream::new(seed, &format!("{name}.tcp"));
        let large = tcp.buffer_bytes as usize;
        let settings = |send_buffer_bytes, receive_buffer_bytes| Settings {
            congestion: match tcp.congestion {
                CongestionSpec::Reno => Congestion::Reno,
                CongestionSpec::Cubic => Congestion::Cubic,
                CongestionSpec::None => Congestion::None,
            },
            no_delay: true,
            send_buffer_bytes,
            receive_buffer_bytes,
            mtu_bytes: tcp.mtu_bytes as usize,
            ecn: false,
        };
        Self {
            client: Stack::new(&settings(SMALL_BUFFER_BYTES, large), Side::A, seeds.bits()),
            server: Stack::new(&settings(large, SMALL_BUFFER_BYTES), Side::B, seeds.bits()),
        }
    }

    fn end(&mut self, is_client: bool) -> &mut Stack {
        match is_client {
            true => &mut self.client,
            false => &mut self.server,
        }
    }
}

impl Connection for Tcp {
    fn below_bytes(&self) -> u32 {
        LINK_BYTES
    }

    fn open(&mut self, now: Time) {
        self.server.forget();
        self.client.forget();
        self.server.listen(now);
        self.client.connect(now);
    }

    fn close(&mut self, now: Time) {
        self.client.close(now);
        self.server.close(now);
    }

    fn forget(&mut self, _now: Time) {
        self.client.forget();
        self.server.forget();
    }

    fn is_lost(&self, _now: Time) -> bool {
        false
    }

    fn write(&mut self, _now: Time, to_client: bool, left: u64) -> u64 {
        let stack = self.end(!to_client);
        let mut wrote = 0;
        while wrote < left {
            let part = FILLER.len().min(usize::try_from(left - wrote).unwrap_or(FILLER.len()));
            let took = stack.write(&FILLER[..part]);
            wrote += took as u64;
            if took < part {
                break;
            }
        }
        wrote
    }

    fn read(&mut self, to_client: bool) -> u64 {
        let mut bytes = 0;
        self.end(to_client).read(|part| bytes += part.len() as u64);
        bytes
    }

    fn receive(&mut self, now: Time, to_client: bool, packet: &[u8]) {
        self.end(to_client).receive(now, packet);
    }

    fn poll(&mut self, now: Time) {
        self.client.poll(now);
        self.server.poll(now);
    }

    fn wake_ns(&self) -> Option<Time> {
        [self.client.wake_ns(), self.server.wake_ns()].into_iter().flatten().min()
    }

    fn pop(&mut self, out: &mut Vec<u8>) -> Option<bool> {
        if self.client.pop(out).is_some() {
            return Some(false);
        }
        self.server.pop(out).map(|_| true)
    }
}
