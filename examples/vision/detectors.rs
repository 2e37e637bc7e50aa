//! MediaPipe's detectors, with the options of the graphs that its authors run them in.

use crate::fit::range;
use diptych_decode::anchors::{self, Anchor};

/// Boxes that overlap by more than this are about the same thing: `min_suppression_threshold` in each graph.
pub const SAME: f32 = 0.3;

/// A network whose outputs are a row for each anchor and a logit for each anchor.
#[derive(Debug, PartialEq)]
pub struct Detector {
    /// Height and width of the input.
    pub size: usize,
    /// The layers' strides and the anchors in a cell of each.
    pub strides: &'static [usize],
    pub per_layer: usize,
    /// What black and white are in the input.
    pub range: (f32, f32),
    /// `min_score_thresh`.
    pub least: f32,
    /// What it finds.
    pub what: &'static str,
    /// The points of it.
    pub points: &'static [&'static str],
}

const FACE: &[&str] = &["rightEye", "leftEye", "noseTip", "mouth", "rightEar", "leftEar"];

/// The two that say how large and how far turned the body is lie on circles about the hips and the shoulders.
const PERSON: &[&str] = &["hips", "fullBody", "shoulders", "upperBody"];

const PALM: &[&str] = &["wrist", "indexMcp", "middleMcp", "ringMcp", "littleMcp", "thumbCmc", "thumbMcp"];

/// The detectors, distinguished by their input's size, the number of anchors and that of the points.
///
/// Sources, all in MediaPipe's `mediapipe/modules/`: `face_detection/face_detection_short_range_common.pbtxt`,
/// `face_detection/face_detection_full_range.pbtxt`, `pose_detection/pose_detection_cpu.pbtxt` (of 2020 for the
/// input of 128, commit d7c287c4, and of 2021 for that of 224), `palm_detection/palm_detection_cpu.pbtxt`.
pub const DETECTORS: [Detector; 5] = [
    Detector {
        size: 128,
        strides: &[8, 16, 16, 16],
        per_layer: 2,
        range: (-1.0, 1.0),
        least: 0.5,
        what: "face",
        points: FACE,
    },
    Detector {
        size: 192,
        strides: &[4],
        per_layer: 1,
        range: (-1.0, 1.0),
        least: 0.6,
        what: "face",
        points: FACE,
    },
    Detector {
        size: 128,
        strides: &[8, 16, 16, 16],
        per_layer: 2,
        range: (-1.0, 1.0),
        least: 0.5,
        what: "person",
        points: PERSON,
    },
    Detector {
        size: 224,
        strides: &[8, 16, 32, 32, 32],
        per_layer: 2,
        range: (-1.0, 1.0),
        least: 0.2,
        what: "person",
        points: PERSON,
    },
    Detector {
        size: 192,
        strides: &[8, 16, 16, 16],
        per_layer: 2,
        range: (0.0, 1.0),
        least: 0.5,
        what: "palm",
        points: PALM,
    },
];

impl Detector {
    pub fn anchors(&self) -> Vec<Anchor> {
        anchors::ssd(self.size, self.strides, self.per_layer)
    }

    /// Numbers in a row: the box and the points.
    pub fn coordinates(&self) -> usize {
        4 + 2 * self.points.len()
    }

    pub fn normalisation(&self) -> [(f32, f32); 3] {
        range(self.range.0, self.range.1)
    }

    /// Its outputs, in words.
    pub fn describe(&self) -> String {
        let anchors = self.anchors().len();
        let (size, coordinates) = (self.size, self.coordinates());
        format!("{anchors}x{coordinates} and {anchors}x1 of an input {size}x{size} ({})", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_distinguished_by_its_numbers() {
        let of = |detector: &Detector| (detector.size, detector.anchors().len(), detector.coordinates());
        let found: Vec<_> = DETECTORS.iter().map(of).collect();
        let wanted = [(128, 896, 16), (192, 2304, 16), (128, 896, 12), (224, 2254, 12), (192, 2016, 18)];
        assert_eq!(found, wanted);
    }
}
