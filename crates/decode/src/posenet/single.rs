//! One person: each part where its heatmap is highest.

use super::Heads;
use crate::detection::Keypoint;
use crate::pose::Pose;
use crate::skeleton::PARTS;

/// The pose of the one person in the picture, in input pixels: for each part the cell with the
/// highest logit, moved by the offset of that cell.
pub fn single(heads: &Heads<'_>) -> Pose {
    let mut keypoints = [Keypoint::default(); PARTS];
    for (part, keypoint) in keypoints.iter_mut().enumerate() {
        let (mut best, mut row, mut column) = (f32::NEG_INFINITY, 0, 0);
        for y in 0..heads.heatmap().height() {
            for x in 0..heads.heatmap().width() {
                // Logits, not their sigmoids: in f32 those of sure cells are all 1.
                let logit = heads.heatmap().at(y, x, part);
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
    use crate::output::FeatureMap;

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
        let heatmap = FeatureMap::new("heatmap", [1, h, w, PARTS], heatmap).expect("a heatmap");
        let offset = FeatureMap::new("offset", [1, h, w, 2 * PARTS], offset).expect("offsets");
        let heads = Heads::new([17, 33], heatmap, offset, None).expect("stride 16");
        for (part, found) in single(&heads).keypoints.iter().enumerate() {
            let cell = part % (h * w);
            let wanted = ((cell % w * 16) as f32 - part as f32, (cell / w * 16) as f32 + part as f32);
            assert_eq!((found.x, found.y, found.score), (wanted.0, wanted.1, 1.0), "part {part}");
        }
    }
}
