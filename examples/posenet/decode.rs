//! One person: each part where its heatmap is highest.

use crate::heads::Heads;
use crate::skeleton::PARTS;

/// A body part found in a picture.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Keypoint {
    /// Rightwards from the centre of the left-most pixel, in pixels.
    pub x: f32,
    /// Downwards from the centre of the top-most pixel, in pixels.
    pub y: f32,
    /// The network's confidence, 0 to 1.
    pub score: f32,
}

/// A person: the parts in the order of [`crate::skeleton::NAMES`].
#[derive(Debug, Clone, PartialEq)]
pub struct Pose {
    pub keypoints: [Keypoint; PARTS],
    /// The mean score of the parts (of several people: of the parts that are this person's own).
    pub score: f32,
}

impl Pose {
    /// The pose in other coordinates: `to` is applied to the place of each keypoint.
    pub fn map(&self, to: impl Fn((f32, f32)) -> (f32, f32)) -> Pose {
        let keypoints = self.keypoints.map(|keypoint| {
            let (x, y) = to((keypoint.x, keypoint.y));
            Keypoint { x, y, ..keypoint }
        });
        Pose { keypoints, score: self.score }
    }
}

/// The pose of the one person in the picture, in input pixels: for each part the cell with the
/// highest logit, moved by the offset of that cell.
pub fn single(heads: &Heads) -> Pose {
    let mut keypoints = [Keypoint::default(); PARTS];
    for (part, keypoint) in keypoints.iter_mut().enumerate() {
        let (mut best, mut row, mut column) = (f32::NEG_INFINITY, 0, 0);
        for y in 0..heads.heatmap.h {
            for x in 0..heads.heatmap.w {
                // Logits, not their sigmoids: in f32 those of sure cells are all 1.
                let logit = heads.heatmap.at(y, x, part);
                if logit > best {
                    (best, row, column) = (logit, y, x);
                }
            }
        }
        let (x, y) = heads.position(row, column, part);
        *keypoint = Keypoint { x, y, score: heads.score(row, column, part) };
    }
    let score = keypoints.iter().map(|keypoint| keypoint.score).sum::<f32>() / PARTS as f32;
    Pose { keypoints, score }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::Map;

    #[test]
    fn a_part_is_its_best_cell_plus_that_cells_offset() {
        let (h, w) = (2, 3);
        let mut heatmap = vec![-3.0; h * w * PARTS];
        let mut offset = vec![100.0; h * w * 2 * PARTS];
        for part in 0..PARTS {
            let cell = part % (h * w);
            heatmap[cell * PARTS + part] = 30.0;
            // A second, lower cell, whose sigmoid rounds to 1 as well.
            heatmap[((cell + 1) % (h * w)) * PARTS + part] = 25.0;
            offset[cell * 2 * PARTS + part] = part as f32; // y
            offset[cell * 2 * PARTS + PARTS + part] = -(part as f32); // x
        }
        let heatmap = Map::new("heatmap", [1, h, w, PARTS], heatmap).expect("a heatmap");
        let offset = Map::new("offset", [1, h, w, 2 * PARTS], offset).expect("offsets");
        let heads = Heads::new([17, 33], heatmap, offset, None).expect("stride 16");
        for (part, found) in single(&heads).keypoints.iter().enumerate() {
            let cell = part % (h * w);
            let wanted = ((cell % w * 16) as f32 - part as f32, (cell / w * 16) as f32 + part as f32);
            assert_eq!((found.x, found.y, found.score), (wanted.0, wanted.1, 1.0), "part {part}");
        }
    }
}
