//! The seventeen body parts of PoseNet, MoveNet and the data set COCO, the tree that multi-pose decoding walks, and the limbs
//! that drawings have.

/// How many body parts there are.
pub const PARTS: usize = 17;

/// The parts in the order of the heatmap's channels, by the names that PoseNet's authors give them.
pub const NAMES: [&str; PARTS] = [
    "nose",
    "leftEye",
    "rightEye",
    "leftEar",
    "rightEar",
    "leftShoulder",
    "rightShoulder",
    "leftElbow",
    "rightElbow",
    "leftWrist",
    "rightWrist",
    "leftHip",
    "rightHip",
    "leftKnee",
    "rightKnee",
    "leftAnkle",
    "rightAnkle",
];

/// The parts in the order of [`NAMES`], by the names that they have in COCO.
pub const COCO_NAMES: [&str; PARTS] = [
    "nose",
    "left_eye",
    "right_eye",
    "left_ear",
    "right_ear",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_wrist",
    "right_wrist",
    "left_hip",
    "right_hip",
    "left_knee",
    "right_knee",
    "left_ankle",
    "right_ankle",
];

/// Which side of the person a part or a limb belongs to, seen from the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The person's left.
    Left,
    /// The person's right.
    Right,
    /// Neither: the nose, and what joins both sides.
    Trunk,
}

/// The side of a part. After the nose, left and right alternate.
pub const fn side(part: usize) -> Side {
    match part {
        0 => Side::Trunk,
        odd if odd % 2 == 1 => Side::Left,
        _ => Side::Right,
    }
}

/// The tree of parts as (parent, child), rooted at the nose. Edge `e` is channel `e` (y) and
/// `16 + e` (x) of both displacement maps.
pub const TREE: [(usize, usize); PARTS - 1] = [
    (0, 1),
    (1, 3),
    (0, 2),
    (2, 4),
    (0, 5),
    (5, 7),
    (7, 9),
    (5, 11),
    (11, 13),
    (13, 15),
    (0, 6),
    (6, 8),
    (8, 10),
    (6, 12),
    (12, 14),
    (14, 16),
];

/// The limbs of the drawing.
pub const LIMBS: [(usize, usize); 12] = [
    (5, 6),
    (11, 12),
    (5, 11),
    (6, 12),
    (5, 7),
    (7, 9),
    (6, 8),
    (8, 10),
    (11, 13),
    (13, 15),
    (12, 14),
    (14, 16),
];

/// The side of a limb: trunk if its ends lie on different sides, or if it is a flank.
pub fn limb_side((a, b): (usize, usize)) -> Side {
    match (a, b) {
        (5, 11) | (6, 12) => Side::Trunk,
        _ if side(a) == side(b) => side(a),
        _ => Side::Trunk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sides_agree() {
        for (part, name) in NAMES.iter().enumerate() {
            let expected = match name {
                name if name.starts_with("left") => Side::Left,
                name if name.starts_with("right") => Side::Right,
                _ => Side::Trunk,
            };
            assert_eq!(side(part), expected, "{name}");
            let coco = COCO_NAMES[part].split('_').collect::<String>();
            assert_eq!(coco, name.to_ascii_lowercase());
        }
    }

    #[test]
    fn the_tree_reaches_every_part_once_and_parents_come_first() {
        let mut reached = [false; PARTS];
        reached[0] = true;
        for (parent, child) in TREE {
            assert!(reached[parent], "{} before its parent", NAMES[child]);
            assert!(!reached[child], "{} twice", NAMES[child]);
            reached[child] = true;
        }
        assert!(reached.iter().all(|&part| part));
    }

    #[test]
    fn limbs_join_neighbours_of_the_body() {
        let of = |side| LIMBS.iter().filter(|&&limb| limb_side(limb) == side).count();
        assert_eq!((of(Side::Left), of(Side::Right), of(Side::Trunk)), (4, 4, 4));
        for limb in LIMBS.iter().filter(|&&limb| limb_side(limb) != Side::Trunk) {
            assert!(TREE.contains(limb), "{} to {}", NAMES[limb.0], NAMES[limb.1]);
        }
    }
}
