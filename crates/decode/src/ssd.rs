//! Files that end in `TFLite_Detection_PostProcess`: the file itself has applied non-maximum suppression.

use crate::detection::{Detection, Limits};

/// The first `count` detections with the scores that `limits` wants, in pixels of a picture of height and width.
///
/// `boxes` has top, left, bottom and right of each, in shares of the picture.
pub fn decode(
    boxes: &[f32],
    classes: &[f32],
    scores: &[f32],
    count: usize,
    [height, width]: [usize; 2],
    limits: &Limits,
) -> Vec<Detection> {
    let [height, width] = [height as f32, width as f32];
    let found = boxes.chunks_exact(4).zip(classes).zip(scores).take(count);
    let detections = found.filter_map(|((sides, &class), &score)| {
        let &[top, left, bottom, right] = sides else { return None };
        let bounding_box = [left * width, top * height, right * width, bottom * height];
        let class = class.max(0.0) as usize;
        let is_found = score >= limits.score_threshold;
        is_found.then_some(Detection { score, class, bounding_box, keypoints: Vec::new() })
    });
    detections.filter(Detection::is_finite).take(limits.count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { score_threshold: 0.5, iou_threshold: 0.4, count: 10 };

    #[test]
    fn the_suppression_of_the_file_is_kept() {
        let boxes = [0.1, 0.2, 0.3, 0.4, 0.0, 0.0, 1.0, 1.0, 0.5, 0.5, 0.6, 0.6];
        let found = decode(&boxes, &[17.0, 0.0, 3.0], &[0.9, 0.2, 0.8], 2, [10, 100], &LIMITS);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].bounding_box, found[0].class), ([20.0, 1.0, 40.0, 3.0], 17));
    }

    #[test]
    fn a_box_without_a_position_does_not_count() {
        let boxes = [f32::NAN, 0.2, 0.3, 0.4, 0.1, 0.2, 0.3, 0.4];
        let limits = Limits { count: 1, ..LIMITS };
        let found = decode(&boxes, &[1.0, 2.0], &[0.9, 0.8], 2, [10, 100], &limits);
        assert_eq!(found.iter().map(|found| found.class).collect::<Vec<_>>(), [2]);
    }
}
