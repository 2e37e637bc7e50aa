//! The hand: 21 joints, and which hand it is.

use crate::fit::Window;

/// The joints, in the network's order.
pub const NAMES: [&str; 21] = [
    "wrist",
    "thumbCmc",
    "thumbMcp",
    "thumbIp",
    "thumbTip",
    "indexMcp",
    "indexPip",
    "indexDip",
    "indexTip",
    "middleMcp",
    "middlePip",
    "middleDip",
    "middleTip",
    "ringMcp",
    "ringPip",
    "ringDip",
    "ringTip",
    "littleMcp",
    "littlePip",
    "littleDip",
    "littleTip",
];

/// What is drawn between the joints: each finger, and the palm.
pub const BONES: [&[usize]; 6] = [
    &[0, 5, 9, 13, 17, 0],
    &[0, 1, 2, 3, 4],
    &[5, 6, 7, 8],
    &[9, 10, 11, 12],
    &[13, 14, 15, 16],
    &[17, 18, 19, 20],
];

/// Depths are divided by this: `normalize_z` of MediaPipe's `hand_landmark_cpu.pbtxt`.
const DEPTH: f32 = 0.4;

/// A hand, or what might have been one.
#[derive(Debug, Clone, PartialEq)]
pub struct Hand {
    /// The probability that there is a hand.
    pub score: f32,
    /// Whether that is enough to believe the rest.
    pub present: bool,
    /// Which hand, and the probability that it is this one.
    pub side: Option<(&'static str, f32)>,
    /// In pixels of the picture; the third is the depth, about as a length of the picture, less is nearer.
    pub joints: Vec<[f32; 3]>,
}

/// Reads the joints, given in pixels of the input, the score and the handedness.
///
/// The handedness is the probability that a picture as a mirror shows it has a left hand: so the network was
/// trained. In a picture that is not `mirrored` it is that of a right hand.
///
/// Source: `hand_landmark_cpu.pbtxt` of MediaPipe, and the labels in the file's metadata: Left, Right.
pub fn read(
    joints: &[f32],
    score: f32,
    handedness: Option<f32>,
    window: &Window,
    (least, mirrored): (f32, bool),
) -> Hand {
    let [[zero, _], [one, _]] = [0.0, 1.0].map(|x| window.to_picture([x, 0.0]));
    let joint = |at: &[f32]| {
        let [x, y] = window.to_picture([at[0], at[1]]);
        [x, y, at[2] * (one - zero) / DEPTH]
    };
    let side = handedness.map(|first| {
        let sides = if mirrored { ["left", "right"] } else { ["right", "left"] };
        if first >= 0.5 { (sides[0], first) } else { (sides[1], 1.0 - first) }
    });
    let joints = joints.chunks_exact(3).map(joint).collect();
    Hand { score, present: score >= least, side, joints }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Fit, Part};

    #[test]
    fn joints_are_in_the_pictures_pixels() {
        let part = Part { x: 100.0, y: 0.0, width: 448.0, height: 224.0 };
        let window = Window::of(part, [224, 224], Fit::Whole);
        let hand = read(&[112.0, 112.0, -4.0].repeat(21), 0.7, Some(0.9), &window, (0.5, false));
        // The middle of the part; two pixels make one.
        assert_eq!(hand.joints, [[324.0, 112.0, -20.0]; 21]);
        assert_eq!((hand.present, hand.side), (true, Some(("right", 0.9))));
        let mirrored = read(&[0.0; 63], 0.2, Some(0.25), &window, (0.5, true));
        assert_eq!((mirrored.present, mirrored.side), (false, Some(("right", 0.75))));
    }

    #[test]
    fn every_joint_has_a_bone() {
        let mut joined = [false; 21];
        BONES.iter().copied().flatten().for_each(|&joint| joined[joint] = true);
        assert_eq!(joined, [true; 21]);
        assert_eq!([NAMES[4], NAMES[8], NAMES[20]], ["thumbTip", "indexTip", "littleTip"]);
    }
}
