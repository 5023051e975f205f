//! Streams of several loops as one, in the order of time.
//!
//! A loop writes what it met in the order in which it met it: a datagram carries the kernel's stamp, a dropped packet the
//! moment of the network, and both may lie before what was written last. Each stream is therefore held back a little.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    io,
};
use tcps_core::time::Time;

/// Items of a stream that are held back; one may come so many places late.
const HELD: usize = 4096;

/// An item of a stream with its moment.
pub type Item<T> = io::Result<(Time, T)>;

/// Items of several streams in the order of time; of one moment, in the order of streams.
pub struct Merge<T, I> {
    streams: Vec<Ahead<T, I>>,
}

/// A stream with what was read ahead of it.
struct Ahead<T, I> {
    stream: I,
    held: BinaryHeap<Reverse<Held<T>>>,
    read: u64,
}

struct Held<T> {
    time_ns: Time,
    number: u64,
    item: T,
}

impl<T, I: Iterator<Item = Item<T>>> Merge<T, I> {
    /// Begins to read the streams.
    pub fn new(streams: impl IntoIterator<Item = I>) -> io::Result<Self> {
        let mut ahead = Vec::new();
        for stream in streams {
            let mut a = Ahead { stream, held: BinaryHeap::new(), read: 0 };
            a.fill()?;
            ahead.push(a);
        }
        Ok(Self { streams: ahead })
    }
}

impl<T, I: Iterator<Item = Item<T>>> Iterator for Merge<T, I> {
    type Item = io::Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        // A handful of loops: the earliest head is found by looking at all.
        let heads = self.streams.iter().enumerate().filter_map(|(i, s)| Some((s.held.peek()?.0.time_ns, i)));
        let earliest = heads.min()?.1;
        let stream = &mut self.streams[earliest];
        let Reverse(first) = stream.held.pop()?;
        Some(stream.fill().map(|()| first.item))
    }
}

impl<T, I: Iterator<Item = Item<T>>> Ahead<T, I> {
    fn fill(&mut self) -> io::Result<()> {
        while self.held.len() < HELD {
            let Some(next) = self.stream.next() else { return Ok(()) };
            let (time_ns, item) = next?;
            self.held.push(Reverse(Held { time_ns, number: self.read, item }));
            self.read += 1;
        }
        Ok(())
    }
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time_ns, self.number).cmp(&(other.time_ns, other.number))
    }
}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Held<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(streams: &[&[Time]]) -> Vec<(usize, Time)> {
        let streams: Vec<_> = (0..).zip(streams).collect();
        let streams = streams.iter().map(|(i, s)| s.iter().map(move |&t| Ok((t, (*i, t)))));
        Merge::new(streams).unwrap().collect::<io::Result<_>>().unwrap()
    }

    #[test]
    fn items_come_in_order_although_some_are_late() {
        let times = |m: Vec<(usize, Time)>| m.into_iter().map(|(_, t)| t).collect::<Vec<_>>();
        assert_eq!(times(merged(&[&[1, 5, 3, 9], &[2, 4, 4, 8], &[]])), [1, 2, 3, 4, 4, 5, 8, 9]);
        assert_eq!(merged(&[&[7], &[7], &[6]]), [(2, 6), (0, 7), (1, 7)]);
    }

    #[test]
    fn an_item_that_is_later_than_what_is_held_comes_late_and_is_not_lost() {
        let mut late: Vec<Time> = (1..=2 * HELD as Time).collect();
        late.push(0);
        let found = merged(&[&late]);
        assert_eq!(found.len(), late.len());
        assert_eq!(found.iter().position(|i| i.1 == 0), Some(HELD + 1));
    }
}
