//! Drawing into a picture of 3 bytes a pixel, or into a part of it from top to bottom: what lies outside is left out.

use crate::glyphs;

/// Red, green, blue.
pub(crate) type Colour = [u8; 3];

/// Bytes a pixel.
pub(crate) const DEPTH: usize = 3;

/// A place in pixels, to the right and down.
pub(crate) type Place = (i64, i64);

/// A picture, or the columns of it that belong to one eye.
pub(crate) struct Canvas<'a> {
    pixels: &'a mut [u8],
    /// Pixels in a row of the whole picture.
    stride: usize,
    left: usize,
    width: usize,
    height: usize,
}

impl<'a> Canvas<'a> {
    /// Column `left` and the next `width` of a picture whose rows are `stride` long; `pixels` is the whole picture.
    pub(crate) fn new(pixels: &'a mut [u8], stride: usize, left: usize, width: usize) -> Self {
        let height = pixels.len() / (DEPTH * stride.max(1));
        Self { pixels, stride, left, width, height }
    }

    fn at(&mut self, (x, y): Place, colour: Colour) {
        let inside = |v: i64, most: usize| usize::try_from(v).ok().filter(|v| *v < most);
        if let (Some(x), Some(y)) = (inside(x, self.width), inside(y, self.height)) {
            let from = DEPTH * (y * self.stride + self.left + x);
            self.pixels[from..from + DEPTH].copy_from_slice(&colour);
        }
    }

    /// A filled rectangle from a corner on.
    pub(crate) fn fill(&mut self, corner: Place, width: i64, height: i64, colour: Colour) {
        let (right, bottom) = (self.width as i64, self.height as i64);
        for y in corner.1.max(0)..(corner.1 + height).min(bottom) {
            for x in corner.0.max(0)..(corner.0 + width).min(right) {
                self.at((x, y), colour);
            }
        }
    }

    /// A ring `thick` pixels wide about a place.
    pub(crate) fn ring(&mut self, (x, y): Place, radius: i64, thick: i64, colour: Colour) {
        let squares = |r: i64| r * r;
        for v in -radius..=radius {
            for u in -radius..=radius {
                let far = squares(u) + squares(v);
                if far <= squares(radius) && far > squares(radius - thick) {
                    self.at((x + u, y + v), colour);
                }
            }
        }
    }

    /// A line between two places, both within the picture or near it.
    pub(crate) fn line(&mut self, from: Place, to: Place, colour: Colour) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let steps = dx.abs().max(dy.abs()).max(1);
        for n in 0..=steps {
            self.at((from.0 + dx * n / steps, from.1 + dy * n / steps), colour);
        }
    }

    /// A line of letters, each cell `scale` pixels wide and high.
    pub(crate) fn text(&mut self, corner: Place, scale: i64, text: &str, colour: Colour) {
        for (n, letter) in text.chars().enumerate() {
            let left = corner.0 + n as i64 * glyphs::ADVANCE as i64 * scale;
            for (v, row) in glyphs::rows(letter).iter().enumerate() {
                for u in (0..5).filter(|u| row & (0b10000 >> u) != 0) {
                    self.fill((left + u * scale, corner.1 + v as i64 * scale), scale, scale, colour);
                }
            }
        }
    }

    /// The rows from `top` on moved by so many pixels to the right and down; where nothing is known there is `unknown`.
    pub(crate) fn shift(&mut self, picture: &[u8], top: usize, by: Place, unknown: Colour) {
        let (width, height) = (self.width as i64, self.height as i64);
        let (dx, dy) = (by.0.clamp(-width, width), by.1.clamp(-height, height));
        let kept = (width - dx.abs()) as usize * DEPTH;
        for y in top as i64..height {
            self.fill((0, y), width, 1, unknown);
            let from = y - dy;
            if from >= top as i64 && from < height && kept > 0 {
                let start = |row: i64, x: i64| DEPTH * (row as usize * self.stride + self.left + x as usize);
                let (to, from) = (start(y, dx.max(0)), start(from, (-dx).max(0)));
                self.pixels[to..to + kept].copy_from_slice(&picture[from..from + kept]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: Colour = [255; 3];

    /// A picture of 8 x 6 whose pixels hold their place.
    fn marked() -> Vec<u8> {
        (0..6).flat_map(|y| (0..8).flat_map(move |x| [x, y, 0])).collect()
    }

    fn pixel(picture: &[u8], x: usize, y: usize) -> [u8; 3] {
        [0, 1, 2].map(|c| picture[DEPTH * (8 * y + x) + c])
    }

    #[test]
    fn a_shift_moves_the_rows_below_the_top_and_leaves_the_rest_unknown() {
        let (picture, mut moved) = (marked(), marked());
        Canvas::new(&mut moved, 8, 0, 8).shift(&picture, 1, (2, -1), WHITE);
        assert_eq!(pixel(&moved, 3, 0), [3, 0, 0], "above the top nothing moves");
        assert_eq!(pixel(&moved, 3, 1), [1, 2, 0]);
        assert_eq!((pixel(&moved, 1, 1), pixel(&moved, 7, 5)), (WHITE, WHITE), "nothing is known there");
        let mut gone = marked();
        Canvas::new(&mut gone, 8, 0, 8).shift(&picture, 0, (i64::MAX, i64::MIN), WHITE);
        assert!(gone.iter().all(|byte| *byte == 255));
    }

    #[test]
    fn an_eye_is_drawn_into_alone_and_nothing_outside_is_touched() {
        let mut picture = marked();
        let mut eye = Canvas::new(&mut picture, 8, 4, 4);
        eye.fill((-5, 4), 100, 100, WHITE);
        eye.ring((40, -40), 3, 1, WHITE);
        eye.line((0, 0), (9, 0), WHITE);
        assert_eq!((pixel(&picture, 3, 5), pixel(&picture, 4, 5)), ([3, 5, 0], WHITE));
        assert_eq!((pixel(&picture, 3, 0), pixel(&picture, 7, 0)), ([3, 0, 0], WHITE));
        assert_eq!(pixel(&picture, 4, 3), [4, 3, 0]);
    }

    #[test]
    fn letters_grow_with_their_scale() {
        let (width, height) = (13, 8);
        let written = |scale: usize| {
            let mut picture = vec![0; DEPTH * width * height * scale * scale];
            Canvas::new(&mut picture, width * scale, 0, width * scale).text(
                (1, 1),
                scale as i64,
                "E4",
                WHITE,
            );
            picture
        };
        let lit =
            |picture: &[u8], scale: usize, x: usize, y: usize| picture[DEPTH * (width * scale * y + x)] > 0;
        let (small, large) = (written(1), written(3));
        let top: Vec<usize> = (0..width).filter(|&x| lit(&small, 1, x, 1)).collect();
        assert_eq!(top, [1, 2, 3, 4, 5, 10], "the upper rows of an E and of a 4");
        for (x, y) in (0..7 * 3).flat_map(|y| (0..12 * 3).map(move |x| (x, y))) {
            assert_eq!(lit(&large, 3, 1 + x, 1 + y), lit(&small, 1, 1 + x / 3, 1 + y / 3), "{x} {y}");
        }
    }
}
