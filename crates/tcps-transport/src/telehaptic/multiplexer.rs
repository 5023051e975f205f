//! Media multiplexer: once for every haptic sample, the audio and video bytes that travel with it.
//!
//! ```text
//! audio frames ─► waiting ─┐  strict priority: audio first; or first come, first served
//! video frames ─► waiting ─┴─► at most `media_bytes` ─► fragment
//! ```
//! At the published rates it is exactly full: 40 ms carry 40 · 58 = 2 · 160 + 2000 bytes. So what waits is bounded:
//! when more than two frames of a medium have not begun, the oldest of them is dropped whole.

use std::collections::VecDeque;
use tcps_core::sample::Meta;

/// Frames of a medium that may wait without having begun.
const MOST_WAITING: usize = 2;
/// The largest frame in bytes.
pub(crate) const MOST_FRAME_BYTES: usize = 16_000_000;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    Audio = 0,
    Video = 1,
}

/// Both media, in the order of their priority.
pub(crate) const MEDIA: [Medium; 2] = [Medium::Audio, Medium::Video];

/// Who goes first.
// [Gokhale 2017: multiplexer] [Gokhale 2013]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Audio before video.
    Strict,
    /// The frame that came first.
    FirstCome,
}

/// A frame on its way into packets.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) meta: Meta,
    pub(crate) bytes: Vec<u8>,
    /// Bytes that are in packets already.
    pub(crate) sent: usize,
    /// Packets that it is in, modulo 256.
    pub(crate) parts: u8,
    /// The packet that has its newest bytes.
    pub(crate) packet: Option<u32>,
    arrival: u64,
}

/// The frames of both media that wait.
#[derive(Debug)]
pub(crate) struct Multiplexer {
    media_bytes: usize,
    order: Order,
    waiting: [VecDeque<Frame>; 2],
    spare: Vec<Vec<u8>>,
    arrivals: u64,
}

impl Multiplexer {
    pub(crate) fn new(media_bytes: usize, order: Order) -> Self {
        Self { media_bytes, order, waiting: Default::default(), spare: Vec::new(), arrivals: 0 }
    }

    /// Most bytes of a fragment beside its haptic sample.
    pub(crate) fn media_bytes(&self) -> usize {
        self.media_bytes
    }

    /// A frame has come; the one that had to make room, if any.
    pub(crate) fn offer(&mut self, medium: Medium, meta: Meta, bytes: &[u8]) -> Option<Meta> {
        let mut own = self.spare.pop().unwrap_or_default();
        own.clear();
        own.extend_from_slice(bytes);
        self.arrivals += 1;
        let queue = &mut self.waiting[medium as usize];
        queue.push_back(Frame { meta, bytes: own, sent: 0, parts: 0, packet: None, arrival: self.arrivals });
        let begun = queue.front().is_some_and(|f| f.sent > 0);
        if queue.len() - usize::from(begun) <= MOST_WAITING {
            return None;
        }
        let dropped = queue.remove(usize::from(begun))?;
        self.spare.push(dropped.bytes);
        Some(dropped.meta)
    }

    /// Gives at most `room` bytes to `add`, which tells how many it took, counts them in the frame, and takes some.
    pub(crate) fn take(&mut self, mut room: usize, mut add: impl FnMut(Medium, &mut Frame, usize) -> usize) {
        while room > 0 {
            let Some(medium) = self.next() else { return };
            let queue = &mut self.waiting[medium as usize];
            let Some(frame) = queue.front_mut() else { return };
            let taken = add(medium, frame, room);
            if taken == 0 {
                return;
            }
            room -= taken.min(room);
            if frame.sent == frame.bytes.len() {
                self.spare.extend(queue.pop_front().map(|f| f.bytes));
            }
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.next().is_none()
    }

    fn next(&self) -> Option<Medium> {
        let first = |m: &Medium| self.waiting[*m as usize].front();
        let mut some = MEDIA.into_iter().filter(|m| first(m).is_some());
        match self.order {
            Order::Strict => some.next(),
            Order::FirstCome => some.min_by_key(|m| first(m).map(|f| f.arrival)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packetizer::Pending;
    use super::*;
    use tcps_core::ids::FlowId;

    fn meta(flow: FlowId, index: u32) -> Meta {
        Meta { flow, index, origin_ns: 0, echo: None }
    }

    /// Audio and video bytes of each of `count` fragments.
    fn fragments(mux: &mut Multiplexer, count: usize) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        for _ in 0..count {
            let mut pending = Pending::default();
            pending.fill(usize::MAX, mux);
            out.push((pending.media_bytes(Medium::Audio), pending.media_bytes(Medium::Video)));
        }
        out
    }

    // [Gokhale 2017: multiplexer]
    #[test]
    fn an_audio_frame_takes_58_58_and_44_bytes_and_video_the_14_that_are_left() {
        let mut mux = Multiplexer::new(58, Order::Strict);
        assert_eq!(mux.offer(Medium::Video, meta(FlowId(2), 0), &[0; 2000]), None);
        assert_eq!(mux.offer(Medium::Audio, meta(FlowId(1), 0), &[0; 160]), None);
        assert_eq!(fragments(&mut mux, 4), [(58, 0), (58, 0), (44, 14), (0, 58)]);
    }

    // [Gokhale 2017: multiplexer]
    #[test]
    fn forty_fragments_carry_two_audio_frames_and_a_video_frame_and_nothing_is_left() {
        let mut mux = Multiplexer::new(58, Order::Strict);
        for ms in 0..200u32 {
            if ms % 40 == 0 {
                assert_eq!(mux.offer(Medium::Video, meta(FlowId(2), ms / 40), &[0; 2000]), None);
            }
            if ms % 20 == 0 {
                assert_eq!(mux.offer(Medium::Audio, meta(FlowId(1), ms / 20), &[0; 160]), None);
            }
            assert_eq!(fragments(&mut mux, 1).iter().map(|(a, v)| a + v).sum::<usize>(), 58, "{ms}");
        }
        assert_eq!(fragments(&mut mux, 1), [(0, 0)]);
    }

    // [Gokhale 2013]
    #[test]
    fn first_come_first_served_sends_a_begun_video_frame_before_audio() {
        let mut mux = Multiplexer::new(58, Order::FirstCome);
        mux.offer(Medium::Video, meta(FlowId(2), 0), &[0; 100]);
        mux.offer(Medium::Audio, meta(FlowId(1), 0), &[0; 160]);
        assert_eq!(fragments(&mut mux, 2), [(0, 58), (16, 42)]);
    }

    // [Gokhale 2017: multiplexer]
    #[test]
    fn a_third_frame_that_waits_drives_out_the_oldest_that_has_not_begun() {
        let mut mux = Multiplexer::new(58, Order::Strict);
        mux.offer(Medium::Video, meta(FlowId(2), 0), &[0; 2000]);
        fragments(&mut mux, 1);
        for index in 1..3 {
            assert_eq!(mux.offer(Medium::Video, meta(FlowId(2), index), &[0; 2000]), None, "{index}");
        }
        assert_eq!(mux.offer(Medium::Video, meta(FlowId(2), 3), &[0; 2000]), Some(meta(FlowId(2), 1)));
        assert_eq!(mux.offer(Medium::Video, meta(FlowId(2), 4), &[0; 2000]), Some(meta(FlowId(2), 2)));
    }

    // [Gokhale 2017: multiplexer]
    #[test]
    fn where_none_has_begun_two_wait_and_the_third_drives_out_the_first() {
        let mut mux = Multiplexer::new(58, Order::Strict);
        let dropped = [0, 1, 2, 3].map(|i| mux.offer(Medium::Video, meta(FlowId(2), i), &[0; 2000]));
        assert_eq!(dropped.map(|d| d.map(|m| m.index)), [None, None, Some(0), Some(1)]);
    }
}
