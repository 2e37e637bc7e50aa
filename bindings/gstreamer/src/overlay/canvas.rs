//! Lines, discs and masks on a frame of red, green and blue, anti-aliased. Places are pixels from the frame's corner: the
//! centre of the first pixel is (0.5, 0.5).

/// Red, green and blue.
pub(super) type Colour = [u8; 3];

/// A frame to draw on.
pub(super) struct Canvas<'a> {
    pub(super) data: &'a mut [u8],
    /// Bytes from one row to the next.
    pub(super) stride: usize,
    /// Bytes from one pixel to the next.
    pub(super) step: usize,
    /// Where red, green and blue lie in a pixel.
    pub(super) offsets: [usize; 3],
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Canvas<'_> {
    /// Mixes a colour into a pixel; a share of 1 hides what is there.
    fn blend(&mut self, x: usize, y: usize, colour: Colour, share: f32) {
        let pixel = y * self.stride + x * self.step;
        for (offset, colour) in self.offsets.into_iter().zip(colour) {
            if let Some(byte) = self.data.get_mut(pixel + offset) {
                let old = f32::from(*byte);
                *byte = (old + (f32::from(colour) - old) * share).round() as u8;
            }
        }
    }

    /// A line with round ends.
    pub(super) fn line(&mut self, from: [f32; 2], to: [f32; 2], width: f32, colour: Colour, opacity: f32) {
        if ![from, to].iter().flatten().all(|v| v.is_finite()) {
            return;
        }
        let radius = width / 2.0;
        // A pixel that the edge goes through is covered in part.
        let reach = radius + 0.5;
        let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
        let square = dx * dx + dy * dy;
        let rows = span(from[1].min(to[1]) - reach, from[1].max(to[1]) + reach, self.height);
        for y in rows {
            let middle = y as f32 + 0.5;
            // The part of the line that this row may touch.
            let (begin, end) = if dy == 0.0 {
                (0.0, 1.0)
            } else {
                let at = |v: f32| ((v - from[1]) / dy).clamp(0.0, 1.0);
                (at(middle - reach), at(middle + reach))
            };
            let (a, b) = (from[0] + begin * dx, from[0] + end * dx);
            for x in span(a.min(b) - reach, a.max(b) + reach, self.width) {
                let [px, py] = [x as f32 + 0.5 - from[0], middle - from[1]];
                let along = if square > 0.0 { ((px * dx + py * dy) / square).clamp(0.0, 1.0) } else { 0.0 };
                let distance = (px - along * dx).hypot(py - along * dy);
                let covered = (reach - distance).clamp(0.0, 1.0);
                if covered > 0.0 {
                    self.blend(x, y, colour, covered * opacity);
                }
            }
        }
    }

    /// A filled disc.
    pub(super) fn disc(&mut self, at: [f32; 2], radius: f32, colour: Colour, opacity: f32) {
        self.line(at, at, 2.0 * radius, colour, opacity);
    }

    /// The edges of a rectangle: left, top, right, bottom.
    pub(super) fn rectangle(&mut self, area: [f32; 4], width: f32, colour: Colour) {
        let [left, top, right, bottom] = area;
        let corners = [[left, top], [right, top], [right, bottom], [left, bottom]];
        for (edge, &from) in corners.iter().enumerate() {
            self.line(from, corners[(edge + 1) % 4], width, colour, 1.0);
        }
    }

    /// Mixes a colour into each pixel for which `colour` gives one.
    pub(super) fn paint(&mut self, opacity: f32, colour: impl Fn(usize, usize) -> Option<Colour>) {
        for y in 0..self.height {
            for x in 0..self.width {
                if let Some(colour) = colour(x, y) {
                    self.blend(x, y, colour, opacity);
                }
            }
        }
    }
}

/// The pixels that lie between two places, within the frame.
fn span(from: f32, to: f32, extent: usize) -> std::ops::Range<usize> {
    // A cast of a float saturates.
    let end = (to.ceil() as usize).min(extent);
    (from.floor() as usize).min(end)..end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A black frame of BGRx whose rows have four bytes of padding.
    fn drawn(width: usize, height: usize, draw: impl FnOnce(&mut Canvas<'_>)) -> Vec<Vec<[u8; 4]>> {
        let stride = 4 * width + 4;
        let mut data = vec![0; stride * height];
        draw(&mut Canvas { data: &mut data, stride, step: 4, offsets: [2, 1, 0], width, height });
        let pixel = |pixel: &[u8]| [pixel[0], pixel[1], pixel[2], pixel[3]];
        let row = |row: &[u8]| {
            assert_eq!(row[4 * width..], [0; 4], "padding");
            row[..4 * width].chunks_exact(4).map(pixel).collect()
        };
        data.chunks_exact(stride).map(row).collect()
    }

    #[test]
    fn a_line_covers_what_is_within_half_its_width() {
        let rows = drawn(6, 5, |canvas| canvas.line([1.0, 2.5], [5.0, 2.5], 1.0, [200, 100, 50], 1.0));
        assert_eq!(rows[2][1..5], [[50, 100, 200, 0]; 4]);
        // The round ends reach half of what lies before and behind.
        assert!(rows[2][0][2] > 0 && rows[2][0][2] < 200 && rows[2][5] == rows[2][0]);
        for row in [0, 1, 3, 4] {
            assert_eq!(rows[row], [[0; 4]; 6], "row {row}");
        }
        let half = drawn(6, 5, |canvas| canvas.line([1.0, 2.5], [5.0, 2.5], 1.0, [200, 100, 50], 0.5));
        assert_eq!(half[2][2], [25, 50, 100, 0]);
    }

    #[test]
    fn a_steep_line_is_the_same_turned_round() {
        let flat = drawn(9, 9, |canvas| canvas.line([1.5, 2.0], [7.5, 5.0], 1.5, [9, 99, 199], 1.0));
        let steep = drawn(9, 9, |canvas| canvas.line([2.0, 1.5], [5.0, 7.5], 1.5, [9, 99, 199], 1.0));
        for (y, row) in flat.iter().enumerate() {
            for (x, pixel) in row.iter().enumerate() {
                for (a, b) in pixel.iter().zip(steep[x][y]) {
                    assert!(a.abs_diff(b) <= 1, "{x} {y}: {pixel:?} {:?}", steep[x][y]);
                }
            }
        }
    }

    #[test]
    fn what_lies_beyond_the_frame_is_left_out() {
        let rows = drawn(4, 4, |canvas| {
            canvas.rectangle([-10.0, -10.0, 1.5, 1.5], 1.0, [255; 3]);
            canvas.disc([1e9, -1e9], 3.0, [255; 3], 1.0);
            canvas.line([f32::NAN, 0.0], [4.0, 4.0], 2.0, [255; 3], 1.0);
        });
        assert_eq!((rows[0][1][0], rows[1][0][0], rows[1][1][0]), (255, 255, 255));
        assert_eq!((rows[0][0][0], rows[3][3][0], rows[2][2][0]), (0, 0, 0));
    }

    #[test]
    fn a_disc_is_round_and_a_mask_mixes() {
        let rows = drawn(7, 7, |canvas| canvas.disc([3.5, 3.5], 2.0, [255; 3], 1.0));
        assert_eq!((rows[3][3][0], rows[3][2][0], rows[3][0][0], rows[1][1][0]), (255, 255, 0, 0));
        assert_eq!(rows[3][1], rows[1][3]);
        let rows = drawn(2, 1, |canvas| canvas.paint(0.5, |x, _| (x == 1).then_some([0, 200, 0])));
        assert_eq!(rows[0], [[0; 4], [0, 100, 0, 0]]);
    }
}
