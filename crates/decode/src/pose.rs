//! A person as seventeen keypoints.

use crate::detection::{Detection, Keypoint};
use crate::skeleton::PARTS;

/// A person: the keypoints in the order of [`crate::skeleton::NAMES`].
#[derive(Debug, Clone, PartialEq)]
pub struct Pose {
    /// Where each part is. A coordinate counts from the centre of the first pixel.
    pub keypoints: [Keypoint; PARTS],
    /// The mean score of the parts (of several people: of the parts that are this person's own).
    pub score: f32,
}

impl Pose {
    /// The pose in other coordinates: `to` is applied to the position of each keypoint.
    pub fn map(&self, to: impl Fn((f32, f32)) -> (f32, f32)) -> Pose {
        let keypoints = self.keypoints.map(|keypoint| {
            let (x, y) = to((keypoint.x, keypoint.y));
            Keypoint { x, y, ..keypoint }
        });
        Pose { keypoints, score: self.score }
    }

    /// The pose with the smallest bounding box around its keypoints, in coordinates that count from the outer corner of the
    /// first pixel.
    pub fn detection(&self) -> Detection {
        let pose = self.map(|(x, y)| (x + 0.5, y + 0.5));
        Detection::of_keypoints(pose.score, pose.keypoints.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detection_counts_from_the_corner_of_the_first_pixel() {
        let mut pose = Pose { keypoints: [Keypoint { x: 2.0, y: 3.0, score: 0.5 }; PARTS], score: 0.75 };
        pose.keypoints[4].x = 6.0;
        let found = pose.detection();
        assert_eq!((found.score, found.bounding_box), (0.75, [2.5, 3.5, 6.5, 3.5]));
        assert_eq!(found.keypoints[4], Keypoint { x: 6.5, y: 3.5, score: 0.5 });
    }
}
