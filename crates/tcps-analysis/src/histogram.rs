//! A histogram with 3 significant digits over the whole range of 64 bits, in the layout of HdrHistogram.
//!
//! ```text
//! value   0 .. 2047   cells of width 1
//!      2048 .. 4095   1024 cells of width 2
//!      4096 .. 8191   1024 cells of width 4, and so on: a cell is at most 1/1024 of its value wide
//! ```
//! It is written out here because a row of the analysis adds to several: one shift and one increment each.

/// Significant digits.
pub const DIGITS: u8 = 3;
/// 2^10 cells from one power of two to the next.
const CELL_BITS: u32 = 10;

/// 2^8 cells lie together in memory, once one of them is met.
const PAGE_BITS: u32 = 8;
const PAGE: usize = 1 << PAGE_BITS;

/// Counts of values; memory follows how far they are spread.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    pages: Vec<Option<Box<[u32; PAGE]>>>,
}

/// The cell of a value.
#[inline]
fn cell_of(value: u64) -> usize {
    let shift = (u64::BITS - CELL_BITS - 1).saturating_sub(value.leading_zeros());
    ((shift as usize) << CELL_BITS) + (value >> shift) as usize
}

/// The smallest value of a cell, and how many values it spans.
fn span_of(cell: usize) -> (u64, u64) {
    let shift = (cell >> CELL_BITS).saturating_sub(1) as u32;
    let low = (cell - ((shift as usize) << CELL_BITS)) as u64;
    (low << shift, 1 << shift)
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let cell = cell_of(value);
        let counts = match self.pages.get_mut(cell >> PAGE_BITS) {
            Some(Some(page)) => page,
            _ => self.open(cell >> PAGE_BITS),
        };
        let count = &mut counts[cell & (PAGE - 1)];
        *count = count.saturating_add(1);
    }

    #[cold]
    fn open(&mut self, page: usize) -> &mut [u32; PAGE] {
        self.pages.resize_with(self.pages.len().max(page + 1), || None);
        self.pages[page].get_or_insert_with(|| Box::new([0; PAGE]))
    }

    /// Cells that are not empty: smallest and largest value, count.
    pub fn cells(&self) -> impl Iterator<Item = (f64, f64, u64)> + '_ {
        let pages = self.pages.iter().enumerate().filter_map(|(page, counts)| Some((page, counts.as_ref()?)));
        let cells = pages.flat_map(|(page, counts)| (page << PAGE_BITS..).zip(counts.iter().copied()));
        cells.filter(|(_, n)| *n > 0).map(|(cell, n)| {
            let (low, width) = span_of(cell);
            (low as f64, (low + (width - 1)) as f64, u64::from(n))
        })
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        let pages = self.pages.iter().flatten().count() * std::mem::size_of::<[u32; PAGE]>();
        pages + self.pages.capacity() * std::mem::size_of::<Option<Box<[u32; PAGE]>>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_cell_and_no_cell_is_wider_than_3_digits_allow() {
        let near =
            |bits: u32| [(1u64 << bits) - 1, 1 << bits, (1 << bits) + 1, (1 << bits) + (1 << bits) / 3];
        for value in (0..5000).chain((11..63).flat_map(near)).chain([u64::MAX, u64::MAX / 3]) {
            let (low, width) = span_of(cell_of(value));
            assert!(low <= value && value - low < width, "{value}: {low} + {width}");
            assert!(width == 1 || low / width >= 1024, "{value}");
        }
    }

    #[test]
    fn cells_follow_each_other_without_a_gap() {
        for cell in 0..20_000 {
            let (low, width) = span_of(cell);
            assert_eq!(span_of(cell + 1).0, low + width, "{cell}");
        }
    }

    #[test]
    fn it_is_the_histogram_of_the_reference_implementation() {
        let mut ours = Histogram::default();
        let mut theirs = hdrhistogram::Histogram::<u64>::new(DIGITS).unwrap();
        theirs.auto(true);
        let mut x = 1u64;
        for i in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = (x >> 30) >> (i % 20);
            ours.add(value);
            theirs.record(value).unwrap();
        }
        let edges = |cell: hdrhistogram::iterators::IterationValue<u64>| {
            let value = cell.value_iterated_to();
            (theirs.lowest_equivalent(value) as f64, value as f64, cell.count_at_value())
        };
        assert_eq!(ours.cells().collect::<Vec<_>>(), theirs.iter_recorded().map(edges).collect::<Vec<_>>());
    }
}
