//! Rate control: what a sender learns of its packets, and what a controller makes of it.
//!
//! ```text
//!   packets ──► network ──► receiver ──► delay, report, round trip, arrivals ──► RateController ──► fragments
//! ```
//! A controller decides how many fragments a packet holds and which samples are left out, or what rate flows keep within.

use crate::time::Time;
use std::fmt;

/// Something that a sender has learnt about its own packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Feedback {
    /// The delay of one packet, told in the header of a packet that came back.
    Delay(DelayNotice),
    /// What a receiver has gathered since its last report.
    Report(Report),
    /// A probe has come back after this many nanoseconds.
    RoundTrip(Time),
    /// What the receiver has told of one packet, the oldest packet first.
    Arrival(Arrival),
    /// Packets leave, and for so long nothing has been told of any that half the rate is due.
    Silence,
}

/// The delay of one of the sender's packets.
// [Gokhale 2017: notification]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelayNotice {
    /// Arrival minus generation of the packet's earliest sample, each on its own node's clock, in nanoseconds.
    pub delay_ns: Time,
    /// False if the same measurement has been told before.
    pub fresh: bool,
    /// When the packet's earliest sample was made, on the sender's clock.
    pub generated_ns: Time,
    /// Fragments that the packet held.
    pub fragments: u8,
    /// Its size as links account for it.
    pub wire_bytes: u32,
    /// Whether all packets that it may have been were alike.
    pub certain: bool,
    /// Delay of the packet that brought the notice, on the same two clocks: the sum of both is a round trip.
    pub reverse_ns: Time,
    /// When that packet left, on the other node's clock.
    pub left_ns: Time,
}

/// Means over a reporting interval.
// [Gokhale 2017: reports]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// Mean one-way delay in nanoseconds.
    pub mean_delay_ns: Time,
    /// Share of packets lost, 0 to 1.
    pub loss: f64,
    /// Smoothed interarrival jitter of RFC 3550 in nanoseconds.
    pub jitter_ns: Time,
}

/// What became of one packet.
// [RFC 8888 §3.1]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it left, on the sender's clock.
    pub sent_ns: Time,
    /// Its size as links account for it.
    pub wire_bytes: u32,
    /// When it arrived, on the receiver's clock from a moment that nobody knows; absent if it never came.
    pub arrived_ns: Option<Time>,
    /// From its leaving to the arrival of what tells of it, without what that waited at the receiver; 0 if it never came.
    pub round_trip_ns: Time,
}

/// A packet that has just left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// When its earliest sample was made, on the sender's clock.
    pub generated_ns: Time,
    /// Fragments in it.
    pub fragments: u8,
    /// Bytes of samples and frames in it.
    pub payload_bytes: u32,
    /// Its size as links account for it.
    pub wire_bytes: u32,
}

/// What a controller is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steers {
    /// How many fragments a packet holds.
    Merging,
    /// The rate of all flows of a sender.
    Rate,
}

/// Decides how a sender merges, or how fast it sends.
pub trait RateController: Send {
    /// Feedback has come at `now` (sender's clock).
    fn feedback(&mut self, now: Time, feedback: &Feedback);
    /// A packet has left at `now`.
    fn sent(&mut self, _now: Time, _packet: &Sent) {}
    /// Fragments a packet is to hold from `now` on, at least 1.
    fn fragments(&mut self, _now: Time) -> u8 {
        1
    }
    /// Its rate is kept within this, least and most in bit/s, and begins at the most.
    fn keep_within(&mut self, _range_bps: [f64; 2]) {}
    /// The rate that it allows, in bit/s; absent where it knows none.
    fn rate_bps(&self) -> Option<f64> {
        None
    }
    /// Whether the packet with this haptic sample must leave at once, however few fragments it holds.
    fn urgent(&mut self, _sample: &[u8]) -> bool {
        false
    }
    /// Whether a haptic sample that is made at `now` goes into a packet; those that do not are left out for good. One
    /// with `must` goes whatever the answer is.
    fn admits(&mut self, _now: Time, _sample: &[u8], _must: bool) -> bool {
        true
    }
    /// Bytes of sound and picture that the fragment made at `now` may hold; absent if as many as there is room for.
    fn media_bytes(&mut self, _now: Time) -> Option<usize> {
        None
    }
    /// The longest time that a sample waits for others to be merged with; absent if it waits as long as it takes.
    fn hold_ns(&self) -> Option<Time> {
        None
    }
    /// What went wrong in its own code, if anything did.
    fn failure(&self) -> Option<String> {
        None
    }
}

impl fmt::Debug for dyn RateController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RateController")
    }
}
