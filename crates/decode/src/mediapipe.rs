//! MediaPipe's detectors: boxes and keypoints that are measured from anchors.

use crate::anchors::Anchor;
use crate::detection::{Detection, Keypoint, centred};

/// The probability that a logit stands for, clipped at 100 as in MediaPipe's graphs (`score_clipping_thresh`).
pub fn clipped_sigmoid(logit: f32) -> f32 {
    crate::sigmoid(logit.clamp(-100.0, 100.0))
}

/// The boxes of a MediaPipe detector that score at least `score_threshold`, in pixels of the input.
///
/// A row of `rows` is the centre's offset from the anchor (x, y), width and height, and the offsets of the
/// keypoints, all in units of the anchor's size over the input's size, which are pixels. `logits` has a number for
/// each row. Boxes of negative or no known size are left out.
///
/// Source: `TensorsToDetectionsCalculator` of MediaPipe, with `reverse_output_order`.
pub fn decode(rows: &[f32], logits: &[f32], anchors: &[Anchor], score_threshold: f32) -> Vec<Detection> {
    let coordinates = rows.len() / anchors.len().max(1);
    let scored = rows.chunks_exact(coordinates.max(4)).zip(logits).zip(anchors);
    let detections = scored.filter_map(|((row, &logit), anchor)| {
        let score = clipped_sigmoid(logit);
        let at = |point: &[f32]| [point[0] + anchor.x, point[1] + anchor.y];
        let size = [row[2], row[3]];
        let is_sound = size.iter().all(|&extent| extent >= 0.0);
        let bounding_box = centred(at(row), size);
        let keypoints = row[4..].chunks_exact(2).map(|point| Keypoint::new(at(point), score)).collect();
        (score >= score_threshold && is_sound).then_some(Detection {
            score,
            class: 0,
            bounding_box,
            keypoints,
        })
    });
    detections.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_measured_from_its_anchor() {
        let anchors = [Anchor { x: 12.0, y: 4.0, size: 128.0 }; 3];
        let row = [3.0, -1.0, 10.0, 20.0, 1.0, 2.0, -4.0, 0.5];
        let rows = [row, row, [0.0, 0.0, -1.0, 5.0, 0.0, 0.0, 0.0, 0.0]].concat();
        let found = decode(&rows, &[0.0, -0.01, 9.0], &anchors, 0.5);
        // The second scores less than a half, the third has a negative width.
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].score, found[0].bounding_box), (0.5, [10.0, -7.0, 20.0, 13.0]));
        assert_eq!(found[0].keypoints, [[13.0, 6.0], [8.0, 4.5]].map(|at| Keypoint::new(at, 0.5)));
    }

    #[test]
    fn scores_of_far_logits_are_0_and_1() {
        assert_eq!([-1e30, 0.0, 1e30].map(clipped_sigmoid), [0.0, 0.5, 1.0]);
        assert!((clipped_sigmoid(-2.0) - 0.119_202_92).abs() < 1e-7);
    }
}
