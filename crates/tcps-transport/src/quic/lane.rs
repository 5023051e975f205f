//! The way of a flow's samples into streams: a queue, and the stream that its oldest sample goes into.

use crate::backlog::Backlog;
use bytes::Bytes;
use quinn_proto::{Connection, Dir, StreamId};
use tcps_core::ids::FlowId;

/// A flow that leaves here.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) flow: FlowId,
    pub(super) backlog: Backlog,
    stream: Option<StreamId>,
}

impl Lane {
    pub(super) fn new(flow: FlowId, queue_bytes: usize) -> Self {
        Self { flow, backlog: Backlog::new(queue_bytes), stream: None }
    }

    /// Writes what the connection takes, and tells of each sample and its last bytes, which the connection holds until they
    /// are acknowledged; with `one_each` every sample has a stream of its own.
    pub(super) fn fill(
        &mut self,
        connection: &mut Connection,
        one_each: bool,
        mut wrote: impl FnMut((FlowId, u32), Bytes),
    ) {
        while let Some(sample) = self.backlog.oldest() {
            let Some(id) = self.stream.or_else(|| connection.streams().open(Dir::Uni)) else { return };
            self.stream = Some(id);
            let mut last = Bytes::new();
            let write = |bytes: &[u8]| {
                last = Bytes::copy_from_slice(bytes);
                // A stream that the peer has stopped takes nothing any more.
                connection.send_stream(id).write_chunks(&mut [last.clone()]).map_or(0, |taken| taken.bytes)
            };
            if !self.backlog.drain_frame(write) {
                return;
            }
            wrote(sample, last);
            if one_each {
                // It is open, so that it can be finished.
                let _ = connection.send_stream(id).finish();
                self.stream = None;
            }
        }
    }

    /// The connection is lost, and a sample of which a part has gone.
    pub(super) fn forget(&mut self) -> Option<(FlowId, u32)> {
        self.stream = None;
        self.backlog.forget_part()
    }
}
