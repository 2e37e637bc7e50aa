//! What a network found, in pixels of its picture, and which of several boxes are about the same thing.

/// A point of something that was found, such as a wrist.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Keypoint {
    pub(super) x: f32,
    pub(super) y: f32,
    /// How sure the network is, from 0 to 1.
    pub(super) score: f32,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Detection {
    /// From 0 to 1.
    pub(super) score: f32,
    /// What it is, by number.
    pub(super) class: usize,
    /// Left, top, right, bottom.
    pub(super) area: [f32; 4],
    pub(super) points: Vec<Keypoint>,
}

impl Detection {
    /// A detection whose area is the smallest one around the points.
    pub(super) fn of_points(score: f32, points: Vec<Keypoint>) -> Self {
        let all = [f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY];
        let area = points.iter().fold(all, |[left, top, right, bottom], point| {
            [left.min(point.x), top.min(point.y), right.max(point.x), bottom.max(point.y)]
        });
        Detection { score, class: 0, area, points }
    }

    /// Whether it has a place and a score.
    pub(super) fn is_finite(&self) -> bool {
        let points = self.points.iter().flat_map(|point| [point.x, point.y, point.score]);
        self.area.into_iter().chain([self.score]).chain(points).all(f32::is_finite)
    }
}

/// A class for each pixel of the network's map, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mask {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) classes: Vec<u8>,
}

/// What a network found in a frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    Detections(Vec<Detection>),
    Mask(Mask),
}

/// `1 / (1 + exp(-x))`
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// Intersection over union.
fn overlap(a: &[f32; 4], b: &[f32; 4]) -> f32 {
    let size = |area: &[f32; 4]| (area[2] - area[0]).max(0.0) * (area[3] - area[1]).max(0.0);
    let common = size(&[a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]);
    let union = size(a) + size(b) - common;
    if union > 0.0 { common / union } else { 0.0 }
}

/// The best of those of one class that overlap by more than `most`, `count` of them at most, the best first. Those without a place
/// or a score count for nothing.
pub(super) fn suppress(mut detections: Vec<Detection>, most: f32, count: usize) -> Vec<Detection> {
    detections.retain(Detection::is_finite);
    detections.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut kept: Vec<Detection> = Vec::new();
    for detection in detections {
        if kept.len() >= count {
            break;
        }
        let is_known = |known: &Detection| {
            known.class == detection.class && overlap(&known.area, &detection.area) > most
        };
        if !kept.iter().any(is_known) {
            kept.push(detection);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(score: f32, class: usize, area: [f32; 4]) -> Detection {
        Detection { score, class, area, points: Vec::new() }
    }

    #[test]
    fn overlap_is_intersection_over_union() {
        assert_eq!(overlap(&[0.0, 0.0, 2.0, 2.0], &[1.0, 0.0, 3.0, 2.0]), 1.0 / 3.0);
        assert_eq!(overlap(&[0.0, 0.0, 2.0, 2.0], &[2.0, 0.0, 3.0, 2.0]), 0.0);
        assert_eq!(overlap(&[0.0; 4], &[0.0; 4]), 0.0);
    }

    #[test]
    fn the_best_of_each_class_stays() {
        let found = vec![
            of(0.5, 1, [0.0, 0.0, 8.0, 4.0]),
            of(0.75, 1, [0.0, 0.0, 8.0, 8.0]),
            of(0.25, 2, [0.0, 0.0, 8.0, 8.0]),
            of(0.6, 1, [20.0, 0.0, 28.0, 8.0]),
        ];
        let scores = |most, count| -> Vec<f32> {
            suppress(found.clone(), most, count).iter().map(|kept| kept.score).collect()
        };
        assert_eq!(scores(0.4, 9), [0.75, 0.6, 0.25]);
        // An overlap that is the limit does not suppress.
        assert_eq!(scores(0.5, 9), [0.75, 0.6, 0.5, 0.25]);
        assert_eq!(scores(0.4, 2), [0.75, 0.6]);
    }

    #[test]
    fn points_have_an_area() {
        let points = [[3.0, 9.0], [5.0, 1.0]].map(|[x, y]| Keypoint { x, y, score: 1.0 });
        assert_eq!(Detection::of_points(0.5, points.to_vec()).area, [3.0, 1.0, 5.0, 9.0]);
        assert!(!Detection::of_points(0.5, Vec::new()).is_finite());
    }
}
