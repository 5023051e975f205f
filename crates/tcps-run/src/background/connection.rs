//! A connection between a user and his server, both ends of which are here: a stream of bytes each way.

use tcps_core::time::Time;

/// What users load over. What goes to the client are answers, what goes to the server are requests.
pub(super) trait Connection: Send {
    /// Bytes that a packet takes on the wire besides those that `pop` gives.
    fn below_bytes(&self) -> u32;
    /// Begins a new connection; what was open before is gone.
    fn open(&mut self, now: Time);
    /// Ends the connection: everything has come.
    fn close(&mut self, now: Time);
    /// Drops the connection without a word.
    fn forget(&mut self, now: Time);
    /// Whether the connection is given up and has to be opened again.
    fn is_lost(&self, now: Time) -> bool;
    /// Writes up to `left` bytes; how many these were.
    fn write(&mut self, now: Time, to_client: bool, left: u64) -> u64;
    /// Reads all that is there; how many bytes this was.
    fn read(&mut self, to_client: bool) -> u64;
    /// A packet has arrived.
    fn receive(&mut self, now: Time, to_client: bool, packet: &[u8]);
    /// Does what is due at `now`.
    fn poll(&mut self, now: Time);
    /// When `poll` is wanted.
    fn wake_ns(&self) -> Option<Time>;
    /// The next packet that an end wants sent, in `out`, which is empty before; tells whether it goes to the client.
    fn pop(&mut self, out: &mut Vec<u8>) -> Option<bool>;
}
