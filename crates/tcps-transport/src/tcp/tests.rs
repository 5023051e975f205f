//! What tests of the parts of a sender begin with.

use super::{
    ack::Ack,
    sender::{Limits, Sender},
};
use crate::congestion::window::Reno;
use tcps_core::time::{Time, MS};

/// A sender whose round trip is 40 ms, and so many segments of ten bytes from position 1 on, sent 1 ms apart.
pub(super) fn in_flight(count: u64) -> Sender {
    let limits = Limits { segment_bytes: 10, no_delay: true, buffer_bytes: 10_000 };
    let mut sender = Sender::new(limits, Some(Box::new(Reno)));
    sender.allowed_to = 10_001;
    sender.begin(0, 0);
    sender.trips.note_least(0, 40 * MS);
    sender.trips.measured(40 * MS, 1, 1);
    (0..count).for_each(|i| burst(&mut sender, i as Time * MS, 1));
    sender
}

/// An acknowledgement of everything before `position`.
pub(super) fn ack(position: u64) -> Ack<'static> {
    let (sequence, window) = (1, 10_000);
    Ack { position, sequence, window, blocks: &[], echo_ns: None, has_content: false, has_mark: false }
}

/// So many segments are written, and sent as far as they may be.
pub(super) fn burst(sender: &mut Sender, now: Time, segments: usize) {
    assert_eq!(sender.buffer.write(&vec![0; 10 * segments]), 10 * segments);
    let sent = std::iter::from_fn(|| sender.next(now)).count();
    sender.settle(now, sent > 0);
}
