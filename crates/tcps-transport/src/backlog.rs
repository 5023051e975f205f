//! Samples that wait for room in a stream: framed, in order, at most so many bytes.

use crate::{
    framing::{frame, framed_bytes},
    udp::MAX_SAMPLE_BYTES,
};
use std::collections::VecDeque;
use tcps_core::{ids::FlowId, sample::Meta};

/// The queue in front of a stream.
#[derive(Debug)]
pub struct Backlog {
    bytes: VecDeque<u8>,
    /// Length, flow and number of each frame in it, and how much of the first has gone.
    frames: VecDeque<(usize, FlowId, u32)>,
    gone: usize,
    limit_bytes: usize,
    newest: u32,
}

impl Backlog {
    /// A queue for at most `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Self { bytes: VecDeque::new(), frames: VecDeque::new(), gone: 0, limit_bytes, newest: 0 }
    }

    fn has_room(&self, length: usize) -> bool {
        self.bytes.is_empty() || self.bytes.len() + length <= self.limit_bytes
    }

    /// Adds a frame of the sample `index` of a flow; false if there is no room for all of it. An empty queue takes any.
    pub fn push_frame(&mut self, flow: FlowId, index: u32, frame: &[u8]) -> bool {
        let room = self.has_room(frame.len());
        if room {
            self.bytes.extend(frame);
            self.frames.push_back((frame.len(), flow, index));
        }
        room
    }

    /// Adds a sample; false if there is no room for all of it. An empty queue takes any sample that may be sent.
    pub(crate) fn push(&mut self, meta: &Meta, sample: &[u8]) -> bool {
        let length = framed_bytes(meta, sample);
        if sample.len() > MAX_SAMPLE_BYTES || !self.has_room(length) {
            return false;
        }
        frame(meta, sample, |part| self.bytes.extend(part));
        self.frames.push_back((length, meta.flow, meta.index));
        true
    }

    /// Gives the bytes of the oldest sample to `write`, which tells how many it took, until it takes no more. True
    /// if all of the sample has gone, false if there is none or something is left.
    pub fn drain_frame(&mut self, mut write: impl FnMut(&[u8]) -> usize) -> bool {
        let Some(&(length, _, index)) = self.frames.front() else { return false };
        while self.gone < length {
            let part = self.bytes.as_slices().0;
            let took = write(&part[..part.len().min(length - self.gone)]);
            if took == 0 {
                return false;
            }
            self.newest = index;
            self.bytes.drain(..took);
            self.gone += took;
        }
        self.gone = 0;
        self.frames.pop_front();
        true
    }

    /// Flow and number of the oldest sample in it.
    pub fn oldest(&self) -> Option<(FlowId, u32)> {
        self.frames.front().map(|&(_, flow, index)| (flow, index))
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Number of the newest sample of which bytes have gone; 0 before the first.
    pub(crate) fn newest(&self) -> u32 {
        self.newest
    }

    /// Drops the rest of a sample of which bytes have gone, since its stream is lost: its flow and number.
    pub fn forget_part(&mut self) -> Option<(FlowId, u32)> {
        let gone = std::mem::take(&mut self.gone);
        if gone == 0 {
            return None;
        }
        let (length, flow, index) = self.frames.pop_front()?;
        self.bytes.drain(..length - gone);
        Some((flow, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(index: u32) -> Meta {
        Meta { flow: FlowId(1), index, origin_ns: 0, echo: None }
    }

    #[test]
    fn a_full_queue_refuses_and_an_empty_one_takes_what_is_larger() {
        let mut backlog = Backlog::new(100);
        assert!(backlog.push(&meta(0), &[0; 200]), "larger than the limit, but alone");
        assert!(!backlog.push(&meta(1), &[]));
        assert!(backlog.drain_frame(|bytes| bytes.len()));
        assert!(backlog.push(&meta(1), &[0; 76]));
        assert!(!backlog.push(&meta(2), &[]), "one frame of 100 bytes fills it");
        assert_eq!(backlog.newest(), 0);
    }

    #[test]
    fn after_a_lost_stream_the_next_sample_is_whole() {
        let mut backlog = Backlog::new(1000);
        backlog.push(&meta(5), &[5; 10]);
        backlog.push(&meta(6), &[6; 10]);
        let mut room = 30;
        assert!(!backlog.drain_frame(|bytes| std::mem::take(&mut room).min(bytes.len())));
        assert_eq!(backlog.newest(), 5, "30 of 34 bytes have gone");
        assert_eq!(backlog.forget_part(), Some((FlowId(1), 5)));
        let mut rest = Vec::new();
        assert!(backlog.drain_frame(|bytes| {
            rest.extend_from_slice(bytes);
            bytes.len()
        }));
        assert!(backlog.is_empty());
        assert_eq!((rest.len(), rest[33]), (34, 6));
    }
}
