//! A straight line through points that come one by one, by least squares.

/// The slope of the line.
#[derive(Debug, Clone, Default)]
pub struct Slope {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Slope {
    /// One more point.
    pub fn add(&mut self, x: f64, y: f64) {
        self.n += 1.0;
        let off = x - self.x;
        self.x += off / self.n;
        self.y += (y - self.y) / self.n;
        self.xx += off * (x - self.x);
        self.xy += off * (y - self.y);
    }

    /// The slope so far; none of points at a single `x`.
    pub fn slope(&self) -> Option<f64> {
        (self.xx > 0.0).then(|| self.xy / self.xx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_around_a_line_have_its_slope_and_one_place_has_none() {
        let mut line = Slope::default();
        line.add(1e6, 1.0);
        assert_eq!(line.slope(), None);
        for n in 1..100 {
            line.add(1e6 + f64::from(n), 1.0 - 2.0 * f64::from(n));
        }
        assert!(line.slope().is_some_and(|slope| (slope + 2.0).abs() < 1e-9));
    }
}
