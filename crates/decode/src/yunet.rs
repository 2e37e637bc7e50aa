//! YuNet: faces with five keypoints, by prior boxes in the files of 2021 and by cells in those of 2023.

use crate::anchors::Anchor;
use crate::detection::{Detection, Keypoint, centred};

/// The faces of YuNet that score at least `score_threshold`, in pixels of the input.
///
/// The score is the root of the probability of a face (the second of `classes`) times the expected overlap,
/// clipped to 0 and 1. A row of `rows` is the centre, the logarithms of width and height and five points; the
/// variances are 0.1 and 0.2.
///
/// Source: libfacedetection.train, 2021, as OpenCV's `FaceDetectorYN` 4.5.4 decodes it.
pub fn decode_priors(
    rows: &[f32],
    classes: &[f32],
    overlaps: &[f32],
    priors: &[Anchor],
    score_threshold: f32,
) -> Vec<Detection> {
    let scored = rows.chunks_exact(14).zip(classes.chunks_exact(2)).zip(overlaps).zip(priors);
    let detections = scored.filter_map(|(((row, class), overlap), prior)| {
        let score = (class[1] * overlap.clamp(0.0, 1.0)).sqrt();
        let at =
            |point: &[f32]| [prior.x + point[0] * 0.1 * prior.size, prior.y + point[1] * 0.1 * prior.size];
        let size = [row[2], row[3]].map(|log| prior.size * (0.2 * log).exp());
        let bounding_box = centred(at(row), size);
        let keypoints = row[4..].chunks_exact(2).map(|point| Keypoint::new(at(point), score)).collect();
        (score >= score_threshold).then_some(Detection { score, class: 0, bounding_box, keypoints })
    });
    detections.collect()
}

/// The outputs of YuNet of one stride: a class, an overlap, a box and points for each cell.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    /// Pixels between cells.
    pub stride: usize,
    /// Cells of a row.
    pub columns: usize,
    /// A probability of a face for each cell.
    pub classes: &'a [f32],
    /// The expected overlap of each cell's box.
    pub overlaps: &'a [f32],
    /// Four numbers for each cell.
    pub boxes: &'a [f32],
    /// Ten numbers for each cell, five keypoints.
    pub points: &'a [f32],
}

/// The faces of YuNet without priors that score at least `score_threshold`, in pixels of the input.
///
/// The score is the root of the class times the overlap, both clipped to 0 and 1. A box is the centre's offset from
/// the cell's corner and the logarithms of width and height, points are offsets, all in units of the stride.
///
/// Source: libfacedetection.train, 2023, as OpenCV's `FaceDetectorYN` 4.8 decodes it.
pub fn decode_cells(cells: &Cells<'_>, score_threshold: f32) -> Vec<Detection> {
    let (stride, columns) = (cells.stride as f32, cells.columns.max(1));
    let scores = cells.classes.iter().zip(cells.overlaps);
    let rows = cells.boxes.chunks_exact(4).zip(cells.points.chunks_exact(10));
    let detections = scores.zip(rows).enumerate().filter_map(|(cell, ((class, overlap), (area, points)))| {
        let score = (class.clamp(0.0, 1.0) * overlap.clamp(0.0, 1.0)).sqrt();
        let (row, column) = ((cell / columns) as f32, (cell % columns) as f32);
        let at = |point: &[f32]| [(column + point[0]) * stride, (row + point[1]) * stride];
        let size = [area[2], area[3]].map(|log| log.exp() * stride);
        let bounding_box = centred(at(area), size);
        let keypoints = points.chunks_exact(2).map(|point| Keypoint::new(at(point), score)).collect();
        (score >= score_threshold).then_some(Detection { score, class: 0, bounding_box, keypoints })
    });
    detections.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yunets_rows_are_scaled_by_its_variances() {
        let prior = [Anchor { x: 40.0, y: 24.0, size: 10.0 }];
        let mut row = vec![2.0, -1.0, 0.0, 5.0 * 2.0f32.ln()];
        row.extend([1.0, 1.0].repeat(5));
        let found = decode_priors(&row, &[0.19, 0.81], &[1.7], &prior, 0.6);
        let [left, top, right, bottom] = found[0].bounding_box;
        assert!((found[0].score - 0.9).abs() < 1e-6);
        // Centre (42, 23), 10 wide and 20 high.
        for (found, wanted) in [(left, 37.0), (top, 13.0), (right, 47.0), (bottom, 33.0)] {
            assert!((found - wanted).abs() < 1e-4, "{:?}", (left, top, right, bottom));
        }
        assert_eq!(positions(&found[0]), [[41.0, 25.0]; 5]);
        assert!(decode_priors(&row, &[0.19, 0.81], &[-0.2], &prior, 0.6).is_empty());
    }

    #[test]
    fn yunets_cells_are_measured_from_their_corners() {
        let (classes, overlaps) = ([0.0, 0.81, 0.3, 1.2], [1.0, 1.0, 0.3, 1.7]);
        let boxes = [0.5, 0.25, 0.0, 2.0f32.ln()].repeat(4);
        let points = [0.5, 1.0].repeat(20);
        let cells = Cells {
            stride: 16,
            columns: 2,
            classes: &classes,
            overlaps: &overlaps,
            boxes: &boxes,
            points: &points,
        };
        let found = decode_cells(&cells, 0.6);
        assert_eq!(found.len(), 2);
        assert!((found[0].score - 0.9).abs() < 1e-6 && found[1].score == 1.0);
        // The second cell of the first row: centre (24, 4), 16 wide and 32 high.
        for (found, wanted) in found[0].bounding_box.iter().zip([16.0, -12.0, 32.0, 20.0]) {
            assert!((found - wanted).abs() < 1e-4, "{found}, wanted {wanted}");
        }
        assert_eq!(positions(&found[0]), [[24.0, 16.0]; 5]);
        assert_eq!(positions(&found[1]), [[24.0, 32.0]; 5]);
    }

    fn positions(found: &Detection) -> Vec<[f32; 2]> {
        found.keypoints.iter().map(|keypoint| [keypoint.x, keypoint.y]).collect()
    }
}
