//! The TUN devices of two network namespaces: whatever IP packet comes out of one goes into the other, multicast too.

use super::{
    capture::Tape,
    passage::{Doors, Entered, Taken},
    NEAR,
};
use crate::os::clock::RunClock;
use std::{
    fs::File,
    io::{Read, Write},
    os::fd::{AsRawFd, RawFd},
};
use tcps_core::time::Time;
use tcps_wire::{ip, pcapng::Seen};

/// Bytes of the link below IP. [model: wire size]
const LINK_BYTES: u32 = 26;

/// The devices of the near and of the far side; the number of a place is that of its side.
pub(super) struct TunDoors {
    devices: [File; 2],
    strangers: u64,
    unread: u64,
}

impl TunDoors {
    /// Between two devices.
    pub fn new(devices: [File; 2]) -> Self {
        Self { devices, strangers: 0, unread: 0 }
    }
}

impl Doors for TunDoors {
    fn descriptors(&self) -> Vec<RawFd> {
        self.devices.iter().map(|d| d.as_raw_fd()).collect()
    }

    fn changed(&mut self, _now: Time) -> bool {
        false
    }

    fn receive(&mut self, place: usize, clock: &mut RunClock, buffer: &mut [u8]) -> Taken {
        let Ok(len) = self.devices[place].read(buffer) else { return Taken::Empty };
        let arrived = clock.now();
        let Ok(packet) = ip::Packet::new_checked(&buffer[..len]) else {
            self.strangers += 1;
            return Taken::Stranger;
        };
        self.unread += u64::from(packet.hides_port());
        let (dscp, wire_bytes) = (packet.dscp(), len as u32 + LINK_BYTES);
        Taken::Packet(Entered { door: 0, from: place as u16, client: 0, arrived, len, dscp, wire_bytes })
    }

    fn deliver(&mut self, entered: &Entered, bytes: &[u8]) -> bool {
        let other = &mut self.devices[usize::from(entered.from == NEAR)];
        other.write(bytes).is_ok_and(|n| n == bytes.len())
    }

    fn tape(&self, tape: &mut Tape, at: Time, entered: &Entered, bytes: &[u8], seen: Seen) {
        let came = seen == Seen::Coming;
        tape.raw(at, if came { entered.from } else { 1 - entered.from }, bytes, seen);
    }

    fn stamps(&self) -> &'static str {
        "after the read"
    }

    fn troubles(&self) -> (u64, u64) {
        (0, self.strangers)
    }

    fn unread(&self) -> u64 {
        self.unread
    }

    fn clients(&self) -> usize {
        1
    }
}
