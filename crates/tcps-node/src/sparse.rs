//! Things by their numbers in the plan, of which a node has few out of many.

use std::ops::{Index, IndexMut};

/// Things by number, each beside its own. Most nodes have one: that is kept in place, where no other memory is touched. Where
/// numbers follow each other without a gap, the first look finds one.
#[derive(Debug)]
pub(super) struct Sparse<K, T> {
    first: Option<(K, T)>,
    others: Vec<(K, T)>,
}

impl<K, T> Default for Sparse<K, T> {
    fn default() -> Self {
        Self { first: None, others: Vec::new() }
    }
}

impl<K: Copy + Ord + Into<usize>, T> Sparse<K, T> {
    /// Adds a thing whose number is above all before it.
    pub(super) fn push(&mut self, number: K, thing: T) {
        debug_assert!(self.others.last().or(self.first.as_ref()).is_none_or(|last| last.0 < number));
        match self.first {
            None => self.first = Some((number, thing)),
            Some(_) => self.others.push((number, thing)),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// Where among all the thing with this number is, if it is here.
    #[inline]
    pub(super) fn place(&self, number: K) -> Option<usize> {
        let guess = number.into().checked_sub(self.first.as_ref()?.0.into())?;
        if guess == 0 || self.others.get(guess - 1).is_some_and(|thing| thing.0 == number) {
            return Some(guess);
        }
        self.others.binary_search_by_key(&number, |thing| thing.0).ok().map(|at| at + 1)
    }

    /// The thing at this place among all, which there is.
    #[inline]
    pub(super) fn at(&self, place: usize) -> &T {
        match &self.first {
            Some(first) if place == 0 => &first.1,
            _ => &self.others[place - 1].1,
        }
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn at_mut(&mut self, place: usize) -> &mut T {
        match &mut self.first {
            Some(first) if place == 0 => &mut first.1,
            _ => &mut self.others[place - 1].1,
        }
    }

    /// The thing with this number, if it is here.
    #[inline]
    pub(super) fn get(&self, number: K) -> Option<&T> {
        self.place(number).map(|place| self.at(place))
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, number: K) -> Option<&mut T> {
        self.place(number).map(|place| self.at_mut(place))
    }

    /// All of them with their numbers, which rise.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (K, &T)> {
        self.first.iter().chain(&self.others).map(|(number, thing)| (*number, thing))
    }

    /// The same, to be changed.
    pub(super) fn numbered_mut(&mut self) -> impl Iterator<Item = (K, &mut T)> {
        self.first.iter_mut().chain(&mut self.others).map(|(number, thing)| (*number, thing))
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.numbered().map(|(_, thing)| thing)
    }

    /// The same, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.numbered_mut().map(|(_, thing)| thing)
    }
}

impl<K: Copy + Ord + Into<usize>, T> FromIterator<(K, T)> for Sparse<K, T> {
    fn from_iter<I: IntoIterator<Item = (K, T)>>(things: I) -> Self {
        let mut all = Self::default();
        things.into_iter().for_each(|(number, thing)| all.push(number, thing));
        all
    }
}

/// Nothing asks for what is not here: numbers come from the node's own sources, channels and robots.
impl<K: Copy + Ord + Into<usize>, T> Index<K> for Sparse<K, T> {
    type Output = T;

    #[inline]
    fn index(&self, number: K) -> &T {
        self.at(self.place(number).unwrap_or(usize::MAX))
    }
}

impl<K: Copy + Ord + Into<usize>, T> IndexMut<K> for Sparse<K, T> {
    #[inline]
    fn index_mut(&mut self, number: K) -> &mut T {
        self.at_mut(self.place(number).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_core::ids::FlowId;

    #[test]
    fn what_is_here_is_found_with_and_without_gaps() {
        for numbers in [&[][..], &[7], &[3, 4, 5, 6], &[0, 1, 900, 901, 65_534]] {
            let mut all: Sparse<FlowId, u32> =
                numbers.iter().map(|n| (FlowId(*n), u32::from(*n) * 2)).collect();
            for number in 0..=u16::MAX {
                let here = numbers.contains(&number);
                assert_eq!(all.get(FlowId(number)).copied(), here.then_some(u32::from(number) * 2));
            }
            for (place, number) in numbers.iter().enumerate() {
                all[FlowId(*number)] += 1;
                *all.get_mut(FlowId(*number)).expect("it is here") += 1;
                let now: Vec<u32> = all.iter().copied().collect();
                let raised = |i: usize| u32::from(numbers[i]) * 2 + 2 * u32::from(i <= place);
                assert_eq!(now, (0..numbers.len()).map(raised).collect::<Vec<_>>());
            }
            assert_eq!(all.numbered().map(|(n, _)| n.0).collect::<Vec<_>>(), numbers);
        }
    }
}
