//! Things by their numbers in the plan, of which a node has few out of many.

use std::ops::{Index, IndexMut};

/// Things by number. Where numbers follow each other without a gap, the first look finds one.
#[derive(Debug)]
pub(super) struct Sparse<T> {
    numbers: Vec<u16>,
    things: Vec<T>,
}

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Self { numbers: Vec::new(), things: Vec::new() }
    }
}

impl<T> Sparse<T> {
    /// Adds a thing whose number is above all before it.
    pub(super) fn push(&mut self, number: u16, thing: T) {
        debug_assert!(self.numbers.last().is_none_or(|last| *last < number));
        self.numbers.push(number);
        self.things.push(thing);
    }

    #[inline]
    fn place(&self, number: usize) -> Option<usize> {
        let number = u16::try_from(number).ok()?;
        let guess = usize::from(number.checked_sub(*self.numbers.first()?)?);
        if self.numbers.get(guess) == Some(&number) {
            return Some(guess);
        }
        self.numbers.binary_search(&number).ok()
    }

    /// The thing with this number, if it is here.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&T> {
        self.place(number).map(|at| &self.things[at])
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.place(number).map(|at| &mut self.things[at])
    }

    /// All of them with their numbers, which rise.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (u16, &T)> {
        self.numbers.iter().copied().zip(&self.things)
    }

    /// The same, to be changed.
    pub(super) fn numbered_mut(&mut self) -> impl Iterator<Item = (u16, &mut T)> {
        self.numbers.iter().copied().zip(&mut self.things)
    }

    /// All of them.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.things.iter()
    }

    /// The same, to be changed.
    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.things.iter_mut()
    }
}

impl<T> FromIterator<(u16, T)> for Sparse<T> {
    fn from_iter<I: IntoIterator<Item = (u16, T)>>(things: I) -> Self {
        let (numbers, things) = things.into_iter().unzip();
        Self { numbers, things }
    }
}

/// Nothing asks for what is not here: numbers come from the node's own sources, channels and robots.
impl<T> Index<usize> for Sparse<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: usize) -> &T {
        &self.things[self.place(number).unwrap_or(usize::MAX)]
    }
}

impl<T> IndexMut<usize> for Sparse<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        let at = self.place(number).unwrap_or(usize::MAX);
        &mut self.things[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_here_is_found_with_and_without_gaps() {
        for numbers in [&[][..], &[7], &[3, 4, 5, 6], &[0, 1, 900, 901, 65_534]] {
            let mut all: Sparse<u32> = numbers.iter().map(|n| (*n, u32::from(*n) * 2)).collect();
            for number in 0..70_000 {
                let here = numbers.iter().any(|n| usize::from(*n) == number);
                assert_eq!(all.get(number).copied(), here.then_some(number as u32 * 2));
            }
            for (place, number) in numbers.iter().enumerate() {
                all[usize::from(*number)] += 1;
                *all.get_mut(usize::from(*number)).expect("it is here") += 1;
                let now: Vec<u32> = all.iter().copied().collect();
                let raised = |i: usize| u32::from(numbers[i]) * 2 + 2 * u32::from(i <= place);
                assert_eq!(now, (0..numbers.len()).map(raised).collect::<Vec<_>>());
            }
            assert_eq!(all.numbered().map(|(n, _)| n).collect::<Vec<_>>(), numbers);
        }
    }
}
