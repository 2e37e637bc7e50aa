//! Boxes with their scores: what detectors' numbers mean, and one box of many that are about the same thing.

use crate::anchors::Anchor;

/// Something that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Detection {
    /// From 0 to 1.
    pub score: f32,
    /// Left, top, right, bottom.
    pub area: [f32; 4],
    /// Points of it, such as the eyes of a face.
    pub points: Vec<[f32; 2]>,
    /// What it is, by number.
    pub class: usize,
}

impl Detection {
    /// The detection in other coordinates: `to` is applied to its corners and points, and must not turn the axes.
    pub fn map(&self, to: impl Fn([f32; 2]) -> [f32; 2]) -> Detection {
        let [left, top, right, bottom] = self.area;
        let ([left, top], [right, bottom]) = (to([left, top]), to([right, bottom]));
        let points = self.points.iter().map(|&at| to(at)).collect();
        Detection { area: [left, top, right, bottom], points, ..self.clone() }
    }
}

/// The probability that a logit stands for, clipped at 100 as in MediaPipe's graphs
/// (`score_clipping_thresh`).
pub fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit.clamp(-100.0, 100.0)).exp())
}

/// The boxes of a MediaPipe detector that score at least `least`, in pixels of the input.
///
/// A row of `rows` is the centre's offset from the anchor (x, y), width and height, and the offsets of the
/// points, all in units of the anchor's size over the input's size, which are pixels. `logits` has a number for
/// each row. Boxes of negative or no known size are left out.
///
/// Source: `TensorsToDetectionsCalculator` of MediaPipe, with `reverse_output_order`.
pub fn anchored(rows: &[f32], logits: &[f32], anchors: &[Anchor], least: f32) -> Vec<Detection> {
    let coordinates = rows.len() / anchors.len().max(1);
    let scored = rows.chunks_exact(coordinates.max(4)).zip(logits).zip(anchors);
    let detections = scored.filter_map(|((row, &logit), anchor)| {
        let score = sigmoid(logit);
        let at = |point: &[f32]| [point[0] + anchor.x, point[1] + anchor.y];
        let ([x, y], [width, height]) = (at(row), [row[2], row[3]]);
        let area = [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0];
        let sound = width >= 0.0 && height >= 0.0;
        let points = row[4..].chunks_exact(2).map(at).collect();
        (score >= least && sound).then_some(Detection { score, area, points, class: 0 })
    });
    detections.collect()
}

/// The faces of YuNet that score at least `least`, in pixels of the input.
///
/// The score is the root of the probability of a face (the second of `classes`) times the expected overlap,
/// clipped to 0 and 1. A row of `rows` is the centre, the logarithms of width and height and five points; the
/// variances are 0.1 and 0.2.
///
/// Source: libfacedetection.train, 2021, as OpenCV's `FaceDetectorYN` 4.5.4 decodes it.
pub fn yunet(
    rows: &[f32],
    classes: &[f32],
    overlaps: &[f32],
    priors: &[Anchor],
    least: f32,
) -> Vec<Detection> {
    let scored = rows.chunks_exact(14).zip(classes.chunks_exact(2)).zip(overlaps).zip(priors);
    let detections = scored.filter_map(|(((row, class), overlap), prior)| {
        let score = (class[1] * overlap.clamp(0.0, 1.0)).sqrt();
        let at =
            |point: &[f32]| [prior.x + point[0] * 0.1 * prior.size, prior.y + point[1] * 0.1 * prior.size];
        let [x, y] = at(row);
        let [width, height] = [row[2], row[3]].map(|log| prior.size * (0.2 * log).exp());
        let area = [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0];
        let points = row[4..].chunks_exact(2).map(at).collect();
        (score >= least).then_some(Detection { score, area, points, class: 0 })
    });
    detections.collect()
}

/// The outputs of YuNet of one stride: a class, an overlap, a box and points for each cell.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    pub stride: usize,
    /// Cells of a row.
    pub columns: usize,
    pub classes: &'a [f32],
    pub overlaps: &'a [f32],
    pub boxes: &'a [f32],
    pub points: &'a [f32],
}

/// The faces of YuNet without priors that score at least `least`, in pixels of the input.
///
/// The score is the root of the class times the overlap, both clipped to 0 and 1. A box is the centre's offset from
/// the cell's corner and the logarithms of width and height, points are offsets, all in units of the stride.
///
/// Source: libfacedetection.train, 2023, as OpenCV's `FaceDetectorYN` 4.8 decodes it.
pub fn cells(cells: &Cells<'_>, least: f32) -> Vec<Detection> {
    let (stride, columns) = (cells.stride as f32, cells.columns.max(1));
    let scores = cells.classes.iter().zip(cells.overlaps);
    let rows = cells.boxes.chunks_exact(4).zip(cells.points.chunks_exact(10));
    let detections = scores.zip(rows).enumerate().filter_map(|(cell, ((class, overlap), (area, points)))| {
        let score = (class.clamp(0.0, 1.0) * overlap.clamp(0.0, 1.0)).sqrt();
        let (row, column) = ((cell / columns) as f32, (cell % columns) as f32);
        let at = |point: &[f32]| [(column + point[0]) * stride, (row + point[1]) * stride];
        let [x, y] = at(area);
        let [width, height] = [area[2], area[3]].map(|log| log.exp() * stride);
        let area = [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0];
        let points = points.chunks_exact(2).map(at).collect();
        (score >= least).then_some(Detection { score, area, points, class: 0 })
    });
    detections.collect()
}

/// The boxes of a file that ends in `TFLite_Detection_PostProcess`, in shares of the input: top, left, bottom,
/// right in `areas`. The file itself has chosen one of many.
pub fn processed(areas: &[f32], classes: &[f32], scores: &[f32], count: usize, least: f32) -> Vec<Detection> {
    let found = areas.chunks_exact(4).zip(classes).zip(scores).take(count);
    let detections = found.filter_map(|((area, &class), &score)| {
        let area = [area[1], area[0], area[3], area[2]];
        (score >= least).then_some(Detection {
            score,
            area,
            points: Vec::new(),
            class: class.max(0.0) as usize,
        })
    });
    detections.collect()
}

/// Intersection over union.
pub fn overlap(a: &[f32; 4], b: &[f32; 4]) -> f32 {
    let size = |area: &[f32; 4]| (area[2] - area[0]).max(0.0) * (area[3] - area[1]).max(0.0);
    let common = size(&[a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]);
    let union = size(a) + size(b) - common;
    if union > 0.0 { common / union } else { 0.0 }
}

/// The best box of each group that overlaps by more than `most`, the best first.
pub fn suppress(detections: Vec<Detection>, most: f32) -> Vec<Detection> {
    groups(detections, most).map(|mut group| group.swap_remove(0)).collect()
}

/// The mean box of each group that overlaps its best one by more than `most`, each box as heavy as its score;
/// the score is the best one's.
///
/// Source: `NonMaxSuppressionCalculator` of MediaPipe with `algorithm: WEIGHTED`.
pub fn blend(detections: Vec<Detection>, most: f32) -> Vec<Detection> {
    let mean = |group: Vec<Detection>| {
        let total: f32 = group.iter().map(|detection| detection.score).sum();
        let mut mean = group[0].clone();
        if total > 0.0 {
            mean.area = [0.0; 4];
            mean.points.fill([0.0; 2]);
            for one in &group {
                let share = one.score / total;
                mean.area.iter_mut().zip(one.area).for_each(|(sum, value)| *sum += share * value);
                let points = mean.points.iter_mut().flatten().zip(one.points.iter().flatten());
                points.for_each(|(sum, value)| *sum += share * value);
            }
        }
        mean
    };
    groups(detections, most).map(mean).collect()
}

/// The best box and those that overlap it by more than `most`, then the same of what is left.
fn groups(mut left: Vec<Detection>, most: f32) -> impl Iterator<Item = Vec<Detection>> {
    left.sort_by(|a, b| b.score.total_cmp(&a.score));
    std::iter::from_fn(move || {
        let best = left.first()?.area;
        let mut others = left.drain(..).enumerate();
        let mut group: Vec<Detection> = others.next().map(|(_, best)| best).into_iter().collect();
        let (near, far): (Vec<_>, Vec<_>) =
            others.map(|(_, one)| one).partition(|one| overlap(&one.area, &best) > most);
        group.extend(near);
        left = far;
        Some(group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(score: f32, area: [f32; 4]) -> Detection {
        Detection { score, area, points: vec![[area[0], area[1]]], class: 0 }
    }

    #[test]
    fn a_row_is_measured_from_its_anchor() {
        let anchors = [Anchor { x: 12.0, y: 4.0, size: 128.0 }; 3];
        let row = [3.0, -1.0, 10.0, 20.0, 1.0, 2.0, -4.0, 0.5];
        let rows = [row, row, [0.0, 0.0, -1.0, 5.0, 0.0, 0.0, 0.0, 0.0]].concat();
        let found = anchored(&rows, &[0.0, -0.01, 9.0], &anchors, 0.5);
        // The second scores less than a half, the third has a negative width.
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].score, found[0].area), (0.5, [10.0, -7.0, 20.0, 13.0]));
        assert_eq!(found[0].points, [[13.0, 6.0], [8.0, 4.5]]);
    }

    #[test]
    fn scores_of_far_logits_are_0_and_1() {
        assert_eq!([-1e30, 0.0, 1e30].map(sigmoid), [0.0, 0.5, 1.0]);
        assert!((sigmoid(-2.0) - 0.119_202_92).abs() < 1e-7);
    }

    #[test]
    fn yunets_rows_are_scaled_by_its_variances() {
        let prior = [Anchor { x: 40.0, y: 24.0, size: 10.0 }];
        let mut row = vec![2.0, -1.0, 0.0, 5.0 * 2.0f32.ln()];
        row.extend([1.0, 1.0].repeat(5));
        let found = yunet(&row, &[0.19, 0.81], &[1.7], &prior, 0.6);
        let [left, top, right, bottom] = found[0].area;
        assert!((found[0].score - 0.9).abs() < 1e-6);
        // Centre (42, 23), 10 wide and 20 high.
        for (found, wanted) in [(left, 37.0), (top, 13.0), (right, 47.0), (bottom, 33.0)] {
            assert!((found - wanted).abs() < 1e-4, "{:?}", (left, top, right, bottom));
        }
        assert_eq!(found[0].points, [[41.0, 25.0]; 5]);
        assert!(yunet(&row, &[0.19, 0.81], &[-0.2], &prior, 0.6).is_empty());
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
        let found = super::cells(&cells, 0.6);
        assert_eq!(found.len(), 2);
        assert!((found[0].score - 0.9).abs() < 1e-6 && found[1].score == 1.0);
        // The second cell of the first row: centre (24, 4), 16 wide and 32 high.
        for (found, wanted) in found[0].area.iter().zip([16.0, -12.0, 32.0, 20.0]) {
            assert!((found - wanted).abs() < 1e-4, "{found}, wanted {wanted}");
        }
        assert_eq!(found[0].points, [[24.0, 16.0]; 5]);
        assert_eq!(found[1].points, [[24.0, 32.0]; 5]);
    }

    #[test]
    fn overlap_is_intersection_over_union() {
        assert_eq!(overlap(&[0.0, 0.0, 2.0, 2.0], &[1.0, 0.0, 3.0, 2.0]), 1.0 / 3.0);
        assert_eq!(overlap(&[0.0, 0.0, 2.0, 2.0], &[2.0, 0.0, 3.0, 2.0]), 0.0);
        assert_eq!(overlap(&[0.0, 0.0, 0.0, 0.0], &[0.0, 0.0, 0.0, 0.0]), 0.0);
        assert_eq!(overlap(&[0.0, 0.0, 4.0, 4.0], &[1.0, 1.0, 3.0, 3.0]), 0.25);
    }

    #[test]
    fn the_best_of_each_group_stays_or_their_mean() {
        let found = vec![
            of(0.5, [10.0, 0.0, 20.0, 10.0]),
            of(0.75, [0.0, 0.0, 8.0, 8.0]),
            of(0.25, [0.0, 0.0, 8.0, 4.0]),
            of(0.5, [12.0, 0.0, 22.0, 10.0]),
        ];
        let kept = suppress(found.clone(), 0.3);
        assert_eq!([kept[0].area, kept[1].area], [[0.0, 0.0, 8.0, 8.0], [10.0, 0.0, 20.0, 10.0]]);
        let mean = blend(found.clone(), 0.3);
        assert_eq!(mean.len(), 2);
        assert_eq!((mean[0].score, mean[0].area), (0.75, [0.0, 0.0, 8.0, 7.0]));
        assert_eq!((mean[1].area, mean[1].points[0]), ([11.0, 0.0, 21.0, 10.0], [11.0, 0.0]));
        // An overlap that is the limit does not suppress.
        assert_eq!(suppress(found, 0.5).len(), 3);
        assert!(blend(Vec::new(), 0.3).is_empty());
    }

    #[test]
    fn what_a_file_chose_is_taken_as_it_is() {
        let areas = [0.1, 0.2, 0.3, 0.4, 0.0, 0.0, 1.0, 1.0, 0.5, 0.5, 0.6, 0.6];
        let found = processed(&areas, &[17.0, 0.0, 3.0], &[0.9, 0.2, 0.8], 2, 0.5);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].area, found[0].class), ([0.2, 0.1, 0.4, 0.3], 17));
    }
}
