//! How long TCP waited for what the network lost: from the loss of a segment until its bytes came out at the other side.
//!
//! ```text
//!  sent       1 2 3 4 5 ·· 2
//!  lost         ✗                       from here
//!  came out   1   3 4 5 ·· 2            to here; 3, 4 and 5 waited for it in the receiver
//! ```
//! Everything follows from the packets that pass: their sequence numbers, and what became of them. [RFC 9293 §3.4]

use std::collections::BTreeMap;
use tcps_core::time::Time;

/// Directions of connections that are known; those without a loss are forgotten when there are more.
const STREAMS: usize = 4096;
/// Spans of bytes that a direction keeps apart, of those that came out early and of those that were lost.
const SPANS: usize = 1024;

/// The bytes of a TCP segment; those that open and close a connection count as one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes {
    /// Which direction of which connection.
    pub stream: u64,
    /// Number of the first one.
    pub first: u32,
    /// Number of the one behind the last.
    pub end: u32,
    /// Whether a connection opens with it.
    pub opens: bool,
    /// Whether a connection is torn down with it.
    pub resets: bool,
}

/// A direction of a connection.
#[derive(Debug, Default)]
struct Stream {
    /// All bytes before this one have come out.
    next: u32,
    /// Spans that came out beyond it.
    early: Vec<(u32, u32)>,
    /// Spans that were lost and have not come out since.
    lost: Vec<(u32, u32, Time)>,
}

/// Whether a sequence number is before another; they wrap. [RFC 9293 §3.4]
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Stream {
    fn out(&self, first: u32, end: u32) -> bool {
        !before(self.next, end) || self.early.iter().any(|(a, b)| !before(first, *a) && !before(*b, end))
    }

    /// A span came out.
    fn take(&mut self, first: u32, end: u32) {
        self.early.push((first, end));
        while let Some(place) = self.early.iter().position(|(a, _)| !before(self.next, *a)) {
            let (_, end) = self.early.swap_remove(place);
            if before(self.next, end) {
                self.next = end;
            }
        }
        self.early.sort_unstable_by_key(|(a, _)| a.wrapping_sub(self.next));
        self.early.dedup_by(|b, a| {
            let joins = !before(a.1, b.0);
            if joins && before(a.1, b.1) {
                a.1 = b.1;
            }
            joins
        });
        self.early.truncate(SPANS);
    }
}

/// Losses of all connections.
#[derive(Debug, Default)]
pub struct Repairs(BTreeMap<u64, Stream>);

impl Repairs {
    fn stream(&mut self, bytes: &Bytes) -> &mut Stream {
        if self.0.len() >= STREAMS && !self.0.contains_key(&bytes.stream) {
            self.0.retain(|_, stream| !stream.lost.is_empty());
            if self.0.len() >= STREAMS {
                self.0.clear();
            }
        }
        let begun = Stream { next: bytes.first, ..Stream::default() };
        let stream = self.0.entry(bytes.stream).or_insert(begun);
        // A new connection over the ports of an old one.
        if bytes.opens
            && !stream.lost.iter().any(|(first, ..)| *first == bytes.first)
            && stream.next != bytes.end
        {
            *stream = Stream { next: bytes.first, ..Stream::default() };
        }
        stream
    }

    /// The network lost a segment.
    pub fn lost(&mut self, bytes: &Bytes, at: Time) {
        let Bytes { first, end, .. } = *bytes;
        let stream = self.stream(bytes);
        let known = stream.lost.iter().any(|(a, b, _)| !before(first, *a) && !before(*b, end));
        if first != end && !known && !stream.out(first, end) && stream.lost.len() < SPANS {
            stream.lost.push((first, end, at));
        }
    }

    /// A segment came out; the longest time for which a lost span that it completes was missing.
    pub fn came(&mut self, bytes: &Bytes, at: Time) -> Option<Time> {
        if bytes.resets {
            self.0.remove(&bytes.stream);
            return None;
        }
        let stream = self.stream(bytes);
        if stream.lost.is_empty() && stream.early.is_empty() && bytes.first == stream.next {
            stream.next = bytes.end;
            return None;
        }
        stream.take(bytes.first, bytes.end);
        let lost = std::mem::take(&mut stream.lost);
        let (done, left): (Vec<_>, _) = lost.into_iter().partition(|(a, b, _)| stream.out(*a, *b));
        stream.lost = left;
        done.iter().map(|(.., since)| at - since).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::time::MS;

    fn span(first: u32, end: u32) -> Bytes {
        Bytes { stream: 1, first, end, opens: false, resets: false }
    }

    /// [RFC 9293 §3.4]
    #[test]
    fn a_lost_segment_waits_until_all_its_bytes_have_come_out_also_where_numbers_wrap() {
        for start in [1000, u32::MAX - 150] {
            let at = |n: u32| start.wrapping_add(n);
            let s = |a, b| span(at(a), at(b));
            let mut found = Repairs::default();
            assert_eq!(found.came(&s(0, 100), MS), None);
            found.lost(&s(100, 200), 2 * MS);
            assert_eq!(found.came(&s(200, 300), 3 * MS), None);
            found.lost(&s(300, 400), 4 * MS);
            found.lost(&s(100, 200), 8 * MS); // the repetition, too: it waits since the first time
            assert_eq!(found.came(&s(300, 400), 9 * MS), Some(5 * MS), "behind a gap");
            assert_eq!(found.came(&s(100, 150), 10 * MS), None, "the first half");
            assert_eq!(found.came(&s(150, 200), 12 * MS), Some(10 * MS));
            found.lost(&s(200, 300), 13 * MS); // nobody misses bytes that were delivered before
            assert_eq!(found.came(&s(400, 500), 14 * MS), None);
            assert_eq!((found.0[&1].next, found.0[&1].early.len()), (at(500), 0));
        }
    }

    #[test]
    fn the_first_segment_of_a_connection_and_one_at_its_end_are_waited_for() {
        let mut found = Repairs::default();
        let open = Bytes { opens: true, ..span(7, 8) };
        found.lost(&open, MS);
        assert_eq!(found.came(&open, 1001 * MS), Some(1000 * MS));
        found.lost(&span(8, 9), 1002 * MS);
        let again = Bytes { opens: true, ..span(5000, 5001) };
        assert_eq!(found.came(&again, 1003 * MS), None, "another connection over the same ports");
        found.lost(&span(5001, 5002), 1004 * MS);
        assert_eq!(found.came(&Bytes { resets: true, ..span(5001, 5001) }, 1005 * MS), None);
        assert_eq!(found.came(&span(5001, 5002), 1006 * MS), None, "nobody waited any more");
    }

    #[test]
    fn acknowledgements_alone_are_nothing_to_wait_for_and_streams_have_a_limit() {
        let mut found = Repairs::default();
        found.lost(&span(9, 9), MS);
        assert_eq!(found.came(&span(9, 9), 2 * MS), None);
        for stream in 0..3 * STREAMS as u64 {
            found.lost(&Bytes { stream, ..span(0, 9) }, MS);
        }
        assert!(found.0.len() <= STREAMS);
    }
}
