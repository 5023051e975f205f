//! Block codes over symbols of equal length: XOR, and Reed-Solomon by a Cauchy matrix (Blömer et al. 1995).
//!
//! ```text
//! parity r = sum over c of  data c / (x_r + y_c)      x_r = r, y_c = 128 + c, over GF(256)
//! ```
//! Any `k` of the `k + m` symbols give the data, because every square part of a Cauchy matrix has an inverse.

use super::galois::{add_times, inverse, times};

/// A code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// One parity symbol, the sum of all.
    Xor,
    /// Several.
    ReedSolomon,
}

impl Code {
    fn factor(self, row: usize, column: usize) -> u8 {
        match self {
            Code::Xor => 1,
            Code::ReedSolomon => inverse(row as u8 ^ (128 + column as u8)),
        }
    }

    /// Parity symbol `row` of `data`, as long as the longest.
    pub(crate) fn parity(self, row: usize, data: &[Vec<u8>]) -> Vec<u8> {
        let mut out = vec![0; data.iter().map(Vec::len).max().unwrap_or(0)];
        data.iter().enumerate().for_each(|(c, d)| add_times(&mut out, self.factor(row, c), d));
        out
    }

    /// Fills the gaps in `data` from parity symbols by row; false if there are too few.
    pub(crate) fn fill(self, data: &mut [Option<Vec<u8>>], parity: &[Option<Vec<u8>>]) -> bool {
        let missing: Vec<usize> = (0..data.len()).filter(|c| data[*c].is_none()).collect();
        let rows: Vec<usize> =
            (0..parity.len()).filter(|r| parity[*r].is_some()).take(missing.len()).collect();
        if rows.len() < missing.len() {
            return false;
        }
        let length = parity.iter().flatten().map(Vec::len).max().unwrap_or(0);
        let mut matrix: Vec<Vec<u8>> =
            rows.iter().map(|r| missing.iter().map(|c| self.factor(*r, *c)).collect()).collect();
        let mut right: Vec<Vec<u8>> = rows.iter().map(|r| self.rest(*r, data, &parity[*r], length)).collect();
        if !solve(&mut matrix, &mut right) {
            return false;
        }
        missing.iter().zip(right).for_each(|(c, symbol)| data[*c] = Some(symbol));
        true
    }

    /// A parity symbol without the data that is there.
    fn rest(self, row: usize, data: &[Option<Vec<u8>>], parity: &Option<Vec<u8>>, length: usize) -> Vec<u8> {
        let mut out = parity.clone().unwrap_or_default();
        out.resize(length, 0);
        for (c, d) in data.iter().enumerate() {
            add_times(&mut out, self.factor(row, c), d.as_deref().unwrap_or(&[]));
        }
        out
    }
}

/// Gauss and Jordan; false if the matrix has no inverse.
fn solve(matrix: &mut [Vec<u8>], right: &mut [Vec<u8>]) -> bool {
    let n = matrix.len();
    for i in 0..n {
        let Some(pivot) = (i..n).find(|r| matrix[*r][i] != 0) else { return false };
        matrix.swap(i, pivot);
        right.swap(i, pivot);
        let scale = inverse(matrix[i][i]);
        matrix[i].iter_mut().for_each(|x| *x = times(*x, scale));
        right[i].iter_mut().for_each(|x| *x = times(*x, scale));
        let (row, symbol) = (matrix[i].clone(), right[i].clone());
        for r in (0..n).filter(|r| *r != i) {
            let factor = matrix[r][i];
            add_times(&mut matrix[r], factor, &row);
            add_times(&mut right[r], factor, &symbol);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn xor_is_the_sum() {
        let data = [vec![1, 2, 3], vec![4, 5]];
        assert_eq!(Code::Xor.parity(0, &data), [5, 7, 3]);
    }

    proptest! {
        #[test]
        fn as_many_as_there_is_parity_come_back(
            data in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 20), 1..32),
            m in 1usize..8, holes in proptest::collection::vec(any::<proptest::sample::Index>(), 1..8),
            lost_rows in proptest::collection::vec(any::<bool>(), 8),
        ) {
            let parity: Vec<_> = (0..m)
                .map(|r| (!lost_rows[r]).then(|| Code::ReedSolomon.parity(r, &data)))
                .collect();
            let mut got: Vec<_> = data.iter().cloned().map(Some).collect();
            holes.iter().for_each(|h| got[h.index(data.len())] = None);
            let missing = got.iter().filter(|g| g.is_none()).count();
            let filled = Code::ReedSolomon.fill(&mut got, &parity);
            prop_assert_eq!(filled, missing <= parity.iter().flatten().count());
            if filled {
                prop_assert_eq!(got.into_iter().flatten().collect::<Vec<_>>(), data);
            }
        }
    }
}
