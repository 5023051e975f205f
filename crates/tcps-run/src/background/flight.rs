//! Packets of users on their way.

/// Packets of users on their way.
#[derive(Default)]
pub(super) struct Flights {
    all: Vec<Flight>,
    pub(super) free: Vec<u32>,
}

/// A packet of a user on its way.
#[derive(Default)]
pub(super) struct Flight {
    pub(super) user: u16,
    pub(super) to_client: bool,
    /// Number of the user's connection: packets of earlier ones are stale.
    pub(super) connection: u32,
    pub(super) bytes: Vec<u8>,
    copies: u16,
}

impl Flights {
    /// A buffer for the bytes of a packet.
    pub(super) fn room(&mut self) -> (u32, &mut Flight) {
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(Flight::default());
            self.all.len() as u32 - 1
        });
        let flight = &mut self.all[id as usize];
        flight.bytes.clear();
        flight.copies = 0;
        (id, flight)
    }

    pub(super) fn copied(&mut self, id: u32) {
        if let Some(flight) = self.all.get_mut(id as usize) {
            flight.copies += 1;
        }
    }

    /// A packet that has come to its end; its place is free unless copies are on their way.
    pub(super) fn take(&mut self, id: u32) -> Option<Flight> {
        let flight = self.all.get_mut(id as usize)?;
        let (user, to_client, connection) = (flight.user, flight.to_client, flight.connection);
        let bytes = match flight.copies.checked_sub(1) {
            Some(left) => {
                flight.copies = left;
                flight.bytes.clone()
            }
            None => {
                self.free.push(id);
                std::mem::take(&mut flight.bytes)
            }
        };
        Some(Flight { user, to_client, connection, bytes, copies: 0 })
    }

    /// Uses the memory of a packet again.
    pub(super) fn pool(&mut self, flight: Flight) {
        if let Some(room) = self.free.last().and_then(|id| self.all.get_mut(*id as usize)) {
            if room.bytes.capacity() == 0 {
                room.bytes = flight.bytes;
            }
        }
    }
}
