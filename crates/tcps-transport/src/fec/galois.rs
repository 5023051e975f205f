//! The field of 256 elements, by the polynomial x^8 + x^4 + x^3 + x^2 + 1.

const POLYNOMIAL: u16 = 0x11d;

/// Powers of the generator 2, twice in a row, and their logarithms.
const TABLES: ([u8; 512], [u8; 256]) = tables();

const fn tables() -> ([u8; 512], [u8; 256]) {
    let (mut power, mut log) = ([0u8; 512], [0u8; 256]);
    let (mut x, mut i) = (1u16, 0);
    while i < 255 {
        power[i] = x as u8;
        power[i + 255] = x as u8;
        log[x as usize] = i as u8;
        x <<= 1;
        if x & 0x100 != 0 {
            x ^= POLYNOMIAL;
        }
        i += 1;
    }
    (power, log)
}

/// Product.
#[inline]
pub(crate) fn times(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let (power, log) = (&TABLES.0, &TABLES.1);
    power[usize::from(log[usize::from(a)]) + usize::from(log[usize::from(b)])]
}

/// Inverse; that of 0 is 0.
#[inline]
pub(crate) fn inverse(a: u8) -> u8 {
    match a {
        0 => 0,
        _ => TABLES.0[255 - usize::from(TABLES.1[usize::from(a)])],
    }
}

/// Adds `factor` times `from` to `to`, as far as both reach.
#[inline]
pub(crate) fn add_times(to: &mut [u8], factor: u8, from: &[u8]) {
    match factor {
        0 => {}
        1 => to.iter_mut().zip(from).for_each(|(t, f)| *t ^= f),
        _ => to.iter_mut().zip(from).for_each(|(t, f)| *t ^= times(factor, *f)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_field() {
        assert_eq!(times(0x80, 2), 0x1d, "the polynomial");
        for a in 1..=255u8 {
            assert_eq!(times(a, inverse(a)), 1, "{a}");
            for b in [3, 7, 0x8e] {
                assert_eq!(times(a, b), times(b, a));
                assert_eq!(times(a, b ^ 0x55), times(a, b) ^ times(a, 0x55), "{a} {b}");
            }
        }
        assert_eq!((times(0, 9), times(9, 0), inverse(0)), (0, 0, 0));
    }
}
