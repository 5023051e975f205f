//! Updateable queue: an entry replaces a waiting one with the same key and goes to the tail (Hudson et al. 2001).

use std::collections::VecDeque;

/// The queue, for requests to a device that is slower than they come.
#[derive(Debug)]
pub(super) struct Updateable<K, V> {
    entries: VecDeque<(K, V)>,
}

impl<K, V> Default for Updateable<K, V> {
    fn default() -> Self {
        Self { entries: VecDeque::new() }
    }
}

// [Hudson 2001: updateable]
impl<K: PartialEq, V> Updateable<K, V> {
    /// Appends an entry; one with the same key that still waits is taken out and returned.
    pub(super) fn push(&mut self, key: K, value: V) -> Option<V> {
        let at = self.entries.iter().position(|(k, _)| *k == key);
        let old = at.and_then(|at| self.entries.remove(at)).map(|(_, v)| v);
        self.entries.push_back((key, value));
        old
    }

    /// Takes the oldest entry.
    pub(super) fn pop(&mut self) -> Option<(K, V)> {
        self.entries.pop_front()
    }

    /// Entries that wait.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [Hudson 2001: updateable]
    #[test]
    fn a_newer_entry_of_the_same_key_takes_the_place_of_the_older_at_the_tail() {
        let mut q = Updateable::default();
        let replaced = [("move", 1), ("scan", 2), ("move", 3)].map(|(key, value)| q.push(key, value));
        assert_eq!((q.len(), replaced), (2, [None, None, Some(1)]));
        assert_eq!([q.pop(), q.pop(), q.pop()], [Some(("scan", 2)), Some(("move", 3)), None]);
        assert!(q.is_empty());
    }
}
