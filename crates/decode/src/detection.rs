//! What a network found, and non-maximum suppression: one bounding box of many that are about the same thing.

/// A point of something that was found, such as a wrist. A detector without scores for its keypoints gives them the
/// detection's score.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Keypoint {
    /// Rightwards, in pixels.
    pub x: f32,
    /// Downwards, in pixels.
    pub y: f32,
    /// The network's confidence, from 0 to 1.
    pub score: f32,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Detection {
    /// The network's confidence, from 0 to 1.
    pub score: f32,
    /// What it is, by number.
    pub class: usize,
    /// Left, top, right, bottom.
    pub bounding_box: [f32; 4],
    /// Keypoints of it, such as the eyes of a face.
    pub keypoints: Vec<Keypoint>,
}

impl Keypoint {
    /// A keypoint at a position.
    pub fn new([x, y]: [f32; 2], score: f32) -> Self {
        Keypoint { x, y, score }
    }

    /// The keypoint in other coordinates.
    #[must_use]
    pub fn map(self, to: impl Fn([f32; 2]) -> [f32; 2]) -> Keypoint {
        let [x, y] = to([self.x, self.y]);
        Keypoint { x, y, ..self }
    }
}

impl Detection {
    /// A detection whose bounding box is the smallest one around the keypoints.
    pub fn of_keypoints(score: f32, keypoints: Vec<Keypoint>) -> Self {
        let all = [f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY];
        let bounding_box = keypoints.iter().fold(all, |[left, top, right, bottom], keypoint| {
            [left.min(keypoint.x), top.min(keypoint.y), right.max(keypoint.x), bottom.max(keypoint.y)]
        });
        Detection { score, class: 0, bounding_box, keypoints }
    }

    /// Whether coordinates and scores are all finite.
    pub fn is_finite(&self) -> bool {
        let keypoints = self.keypoints.iter().flat_map(|keypoint| [keypoint.x, keypoint.y, keypoint.score]);
        self.bounding_box.into_iter().chain([self.score]).chain(keypoints).all(f32::is_finite)
    }

    /// The detection in other coordinates: `to` is applied to its corners and keypoints, and must not turn the axes.
    #[must_use]
    pub fn map(&self, to: impl Fn([f32; 2]) -> [f32; 2]) -> Detection {
        let [left, top, right, bottom] = self.bounding_box;
        let ([left, top], [right, bottom]) = (to([left, top]), to([right, bottom]));
        let keypoints = self.keypoints.iter().map(|keypoint| keypoint.map(&to)).collect();
        Detection { bounding_box: [left, top, right, bottom], keypoints, ..*self }
    }
}

/// The bounding box with this centre and these extents.
pub(crate) fn centred([x, y]: [f32; 2], [width, height]: [f32; 2]) -> [f32; 4] {
    [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0]
}

/// What counts as found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The least score, from 0 to 1.
    pub score_threshold: f32,
    /// Bounding boxes of one class whose intersection over union is more are about the same thing.
    pub iou_threshold: f32,
    /// How many detections are returned at most.
    pub count: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { score_threshold: 0.5, iou_threshold: 0.45, count: 100 }
    }
}

/// Intersection over union of two bounding boxes.
pub fn intersection_over_union(a: &[f32; 4], b: &[f32; 4]) -> f32 {
    let size = |area: &[f32; 4]| (area[2] - area[0]).max(0.0) * (area[3] - area[1]).max(0.0);
    let common = size(&[a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]);
    let union = size(a) + size(b) - common;
    if union > 0.0 { common / union } else { 0.0 }
}

/// The detections that are finite, the highest score first.
fn sorted(mut detections: Vec<Detection>) -> Vec<Detection> {
    detections.retain(Detection::is_finite);
    detections.sort_by(|a, b| b.score.total_cmp(&a.score));
    detections
}

/// Non-maximum suppression: a detection is dropped if its intersection over union with a better one of its class is more than
/// `iou_threshold`. At most `count` are returned, the highest score first. Detections with numbers that are not finite are
/// dropped too.
pub fn non_maximum_suppression(
    detections: Vec<Detection>,
    iou_threshold: f32,
    count: usize,
) -> Vec<Detection> {
    let mut kept: Vec<Detection> = Vec::new();
    for detection in sorted(detections) {
        if kept.len() >= count {
            break;
        }
        let suppresses = |better: &Detection| {
            let iou = || intersection_over_union(&better.bounding_box, &detection.bounding_box);
            better.class == detection.class && iou() > iou_threshold
        };
        if !kept.iter().any(suppresses) {
            kept.push(detection);
        }
    }
    kept
}

/// Non-maximum suppression with means: each result is the mean of a detection and of those of its class whose intersection over
/// union with it is more than `iou_threshold`, weighted by score. Its score is the best one's. Results are in the order of their
/// scores, the highest first. Detections with numbers that are not finite are dropped.
///
/// Source: `NonMaxSuppressionCalculator` of MediaPipe with `algorithm: WEIGHTED`.
pub fn weighted_non_maximum_suppression(detections: Vec<Detection>, iou_threshold: f32) -> Vec<Detection> {
    let mut left = sorted(detections);
    let mut means = Vec::new();
    while let Some(best) = left.first().cloned() {
        let belongs = |one: &Detection| {
            let iou = || intersection_over_union(&one.bounding_box, &best.bounding_box);
            one.class == best.class && iou() > iou_threshold
        };
        // The best one belongs to its own group even if it has no area.
        let others = left.drain(..).skip(1);
        let (group, far): (Vec<_>, Vec<_>) = others.partition(belongs);
        left = far;
        means.push(mean(best, &group));
    }
    means
}

/// The mean of a detection and others, each weighted by its score.
fn mean(best: Detection, others: &[Detection]) -> Detection {
    let total: f32 = best.score + others.iter().map(|other| other.score).sum::<f32>();
    if total <= 0.0 {
        return best;
    }
    let mut mean = best.clone();
    mean.bounding_box = [0.0; 4];
    for keypoint in &mut mean.keypoints {
        (keypoint.x, keypoint.y) = (0.0, 0.0);
    }
    for one in std::iter::once(&best).chain(others) {
        let share = one.score / total;
        mean.bounding_box.iter_mut().zip(one.bounding_box).for_each(|(sum, value)| *sum += share * value);
        for (sum, keypoint) in mean.keypoints.iter_mut().zip(&one.keypoints) {
            sum.x += share * keypoint.x;
            sum.y += share * keypoint.y;
        }
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(score: f32, class: usize, bounding_box: [f32; 4]) -> Detection {
        let [x, y, ..] = bounding_box;
        Detection { score, class, bounding_box, keypoints: vec![Keypoint { x, y, score }] }
    }

    #[test]
    fn overlap_is_intersection_over_union() {
        let iou = intersection_over_union;
        assert_eq!(iou(&[0.0, 0.0, 2.0, 2.0], &[1.0, 0.0, 3.0, 2.0]), 1.0 / 3.0);
        assert_eq!(iou(&[0.0, 0.0, 2.0, 2.0], &[2.0, 0.0, 3.0, 2.0]), 0.0);
        assert_eq!(iou(&[0.0; 4], &[0.0; 4]), 0.0);
        assert_eq!(iou(&[0.0, 0.0, 4.0, 4.0], &[1.0, 1.0, 3.0, 3.0]), 0.25);
    }

    #[test]
    fn the_best_of_each_class_stays() {
        let found = vec![
            of(0.5, 1, [0.0, 0.0, 8.0, 4.0]),
            of(0.75, 1, [0.0, 0.0, 8.0, 8.0]),
            of(0.25, 2, [0.0, 0.0, 8.0, 8.0]),
            of(0.6, 1, [20.0, 0.0, 28.0, 8.0]),
            of(f32::NAN, 1, [40.0, 0.0, 48.0, 8.0]),
        ];
        let scores = |iou, count| -> Vec<f32> {
            non_maximum_suppression(found.clone(), iou, count).iter().map(|kept| kept.score).collect()
        };
        assert_eq!(scores(0.4, 9), [0.75, 0.6, 0.25]);
        // An overlap that is the limit does not suppress.
        assert_eq!(scores(0.5, 9), [0.75, 0.6, 0.5, 0.25]);
        assert_eq!(scores(0.4, 2), [0.75, 0.6]);
    }

    #[test]
    fn the_mean_of_each_group_is_weighted_by_score() {
        let found = vec![
            of(0.5, 0, [10.0, 0.0, 20.0, 10.0]),
            of(0.75, 0, [0.0, 0.0, 8.0, 8.0]),
            of(0.25, 0, [0.0, 0.0, 8.0, 4.0]),
            of(0.5, 0, [12.0, 0.0, 22.0, 10.0]),
        ];
        let mean = weighted_non_maximum_suppression(found, 0.3);
        assert_eq!(mean.len(), 2);
        assert_eq!((mean[0].score, mean[0].bounding_box), (0.75, [0.0, 0.0, 8.0, 7.0]));
        assert_eq!(mean[1].bounding_box, [11.0, 0.0, 21.0, 10.0]);
        assert_eq!([mean[1].keypoints[0].x, mean[1].keypoints[0].y], [11.0, 0.0]);
        assert!(weighted_non_maximum_suppression(Vec::new(), 0.3).is_empty());
        // Without an area it overlaps with nothing, itself neither, and stays.
        assert_eq!(weighted_non_maximum_suppression(vec![of(0.5, 0, [1.0; 4])], 0.3).len(), 1);
    }

    #[test]
    fn keypoints_have_a_bounding_box() {
        let points = [[3.0, 9.0], [5.0, 1.0]].map(|[x, y]| Keypoint { x, y, score: 1.0 });
        assert_eq!(Detection::of_keypoints(0.5, points.to_vec()).bounding_box, [3.0, 1.0, 5.0, 9.0]);
        assert!(!Detection::of_keypoints(0.5, Vec::new()).is_finite());
    }

    #[test]
    fn a_map_moves_corners_and_keypoints() {
        let moved = of(0.5, 3, [1.0, 2.0, 3.0, 4.0]).map(|[x, y]| [2.0 * x, y + 1.0]);
        assert_eq!((moved.bounding_box, moved.class), ([2.0, 3.0, 6.0, 5.0], 3));
        assert_eq!(moved.keypoints, [Keypoint { x: 2.0, y: 3.0, score: 0.5 }]);
    }
}
