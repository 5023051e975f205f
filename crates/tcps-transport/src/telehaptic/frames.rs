//! Audio or video frames put together again from the packets that each has bytes in.
//!
//! A frame begins with its start in a trailer, which says how long it is; its parts are numbered, so they may come
//! in any order. At most [`OPEN`] frames of a medium are open: one more gives up the oldest.

use super::multiplexer::MOST_FRAME_BYTES;
use tcps_core::{
    ids::FlowId,
    sample::{Echo, Meta},
    time::{Time, SECOND},
};
use tcps_wire::telehaptic::trailer::FrameStart;

/// Frames of a medium that may be open at once.
const OPEN: usize = 4;
/// How long a frame waits for its next part.
pub(super) const PATIENCE_NS: Time = 2 * SECOND;

/// Some bytes of a frame, where they lie in [`Open::bytes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    part: u16,
    from: usize,
    to: usize,
}

#[derive(Debug, Default)]
struct Open {
    frame: u16,
    start: Option<(FrameStart, Option<Echo>)>,
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
    touched_ns: Time,
}

/// Frames of one medium.
#[derive(Debug, Default)]
pub(super) struct Frames {
    open: Vec<Open>,
    spare: Vec<Open>,
    whole: Vec<u8>,
    incomplete: u64,
}

impl Frames {
    /// Frames given up so far.
    pub(super) fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// When the frame that has waited longest is given up.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.open.iter().map(|o| o.touched_ns + PATIENCE_NS).min()
    }

    /// Gives up what has waited too long.
    pub(super) fn expire(&mut self, now: Time) {
        while let Some(at) = self.open.iter().position(|o| now - o.touched_ns >= PATIENCE_NS) {
            self.give_up(at);
        }
    }

    /// Adds a part of frame `frame`; the frame, if it is whole now.
    pub(super) fn add(
        &mut self,
        now: Time,
        frame: u16,
        part: u8,
        start: Option<(FrameStart, Option<Echo>)>,
        bytes: &[u8],
    ) -> Option<(Meta, &[u8])> {
        let at = match self.open.iter().position(|o| o.frame == frame) {
            Some(at) => at,
            None => self.begin(frame),
        };
        let open = &mut self.open[at];
        open.touched_ns = now;
        open.start = open.start.or(start);
        if open.bytes.len() + bytes.len() > MOST_FRAME_BYTES {
            self.give_up(at);
            return None;
        }
        open.keep(part, bytes);
        let (start, echo) = open.start?;
        let most = open.start.map_or(0, |(s, _)| s.length as usize);
        if open.bytes.len() > most {
            self.give_up(at);
            return None;
        }
        if open.bytes.len() < most || !open.has_all_parts() {
            return None;
        }
        let open = self.open.remove(at);
        self.whole.clear();
        for p in &open.pieces {
            self.whole.extend_from_slice(open.bytes.get(p.from..p.to).unwrap_or(&[]));
        }
        self.spare.push(open);
        let meta = Meta { flow: FlowId(0), index: start.index, origin_ns: start.origin_ns, echo };
        Some((meta, &self.whole))
    }

    fn begin(&mut self, frame: u16) -> usize {
        if self.open.len() == OPEN {
            self.give_up(0);
        }
        let mut open = self.spare.pop().unwrap_or_default();
        (open.frame, open.start) = (frame, None);
        open.pieces.clear();
        open.bytes.clear();
        self.open.push(open);
        self.open.len() - 1
    }

    fn give_up(&mut self, at: usize) {
        self.incomplete += 1;
        self.spare.push(self.open.remove(at));
    }
}

impl Open {
    /// Parts stay in the order of their numbers; a number counts on from the nearest one that is there.
    fn keep(&mut self, part: u8, bytes: &[u8]) {
        let newest = self.pieces.last().map_or(0, |p| p.part);
        let ahead = Time::from(part.wrapping_sub(newest as u8) as i8);
        let Ok(part) = u16::try_from(Time::from(newest) + ahead) else { return };
        let Err(place) = self.pieces.binary_search_by_key(&part, |p| p.part) else { return };
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.pieces.insert(place, Piece { part, from, to: self.bytes.len() });
    }

    fn has_all_parts(&self) -> bool {
        self.pieces.last().is_some_and(|p| usize::from(p.part) + 1 == self.pieces.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn start(index: u32, length: u32) -> FrameStart {
        FrameStart { video: true, at: 0, index, length, origin_ns: 7 }
    }

    #[test]
    fn parts_in_any_order_make_the_frame() {
        let mut f = Frames::default();
        assert!(f.add(0, 9, 2, None, b"ef").is_none());
        assert!(f.add(0, 9, 2, None, b"ef").is_none(), "again");
        assert!(f.add(0, 9, 0, Some((start(9, 6), None)), b"ab").is_none());
        let (meta, bytes) = f.add(0, 9, 1, None, b"cd").unwrap();
        assert_eq!((meta.index, meta.origin_ns, bytes), (9, 7, &b"abcdef"[..]));
        assert_eq!((f.deadline(), f.incomplete()), (None, 0));
    }

    #[test]
    fn a_frame_that_lacks_a_part_is_given_up_after_two_seconds_or_by_a_fifth_frame() {
        let mut f = Frames::default();
        f.add(0, 1, 0, Some((start(1, 4), None)), b"ab");
        f.expire(PATIENCE_NS - 1);
        assert_eq!((f.deadline(), f.incomplete()), (Some(PATIENCE_NS), 0));
        f.expire(PATIENCE_NS);
        assert_eq!((f.deadline(), f.incomplete()), (None, 1));
        for frame in 2..7 {
            f.add(9, frame, 0, Some((start(frame.into(), 4), None)), b"ab");
        }
        assert_eq!(f.incomplete(), 2);
    }

    #[test]
    fn a_frame_without_a_start_cannot_grow_beyond_the_largest() {
        let mut f = Frames::default();
        let part = vec![0; MOST_FRAME_BYTES / 100];
        for number in 0..150 {
            f.add(0, 1, number, None, &part);
        }
        assert_eq!(f.incomplete(), 1);
    }

    #[test]
    fn more_bytes_than_the_start_says_are_refused() {
        let mut f = Frames::default();
        assert!(f.add(0, 1, 0, Some((start(1, 3), None)), b"abcd").is_none());
        assert_eq!(f.incomplete(), 1);
    }

    proptest! {
        #[test]
        fn frames_of_any_number_of_parts_are_put_together(parts in 1usize..700, swap in 1usize..100) {
            let mut order: Vec<usize> = (0..parts).collect();
            order.chunks_mut(swap).for_each(|c| c.reverse());
            let mut f = Frames::default();
            let mut whole = None;
            for i in order {
                let start = (i == 0).then(|| (start(3, 3 * parts as u32), None));
                let bytes = [i as u8, (i >> 8) as u8, 1];
                whole = f.add(0, 3, i as u8, start, &bytes).map(|(_, b)| b.to_vec()).or(whole);
            }
            let expected: Vec<u8> = (0..parts).flat_map(|i| [i as u8, (i >> 8) as u8, 1]).collect();
            prop_assert_eq!(whole, Some(expected));
        }
    }
}
