//! Video as the sizes of its frames: each is sent at its moment, cut into packets one right behind the other.

use super::Arrivals;
use tcps_core::time::Time;
use tcps_plan::net::Recording;

/// A trace of frames and the place in it.
pub struct Frames {
    /// Moment and bytes of each frame.
    frames: Recording,
    loop_ns: Option<Time>,
    packet_bytes: u32,
    overhead_bytes: u32,
    place: usize,
    base: Time,
    /// Bytes of the frame at `place` that have been sent.
    sent: u32,
}

impl Frames {
    /// Frames in order of time in packets of at most `packet_bytes` on the wire, of which `overhead_bytes` are
    /// headers; `loop_ns` is the length of a round.
    pub fn new(frames: Recording, loop_ns: Option<Time>, packet_bytes: u32, overhead_bytes: u32) -> Self {
        Self { frames, loop_ns, packet_bytes, overhead_bytes, place: 0, base: 0, sent: 0 }
    }
}

impl Arrivals for Frames {
    fn next(&mut self) -> Option<(Time, u32)> {
        if self.place >= self.frames.len() {
            self.base = self.base.checked_add(self.loop_ns?)?;
            self.place = 0;
        }
        let &(at, bytes) = self.frames.get(self.place)?;
        let content = (bytes - self.sent).min(self.packet_bytes - self.overhead_bytes);
        self.sent += content;
        if self.sent >= bytes {
            (self.place, self.sent) = (self.place + 1, 0);
        }
        Some((self.base.checked_add(at)?, content + self.overhead_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_cut_into_packets_and_repeated() {
        let mut film = Frames::new(vec![(0, 250), (40, 100), (80, 0)].into(), Some(120), 150, 50);
        let packets: Vec<_> = (0..6).filter_map(|_| film.next()).collect();
        assert_eq!(packets, [(0, 150), (0, 150), (0, 100), (40, 150), (80, 50), (120, 150)]);
        let mut once = Frames::new(vec![(0, 10)].into(), None, 150, 50);
        assert_eq!([once.next(), once.next()], [Some((0, 60)), None]);
    }
}
