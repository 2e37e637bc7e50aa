//! Several people: the greedy decoding published with PoseNet (Papandreou et al., "PersonLab",
//! ECCV 2018, section 3.2, and the description of the multi-pose decoder in tfjs-models).
//!
//! 1. Every cell that is the highest of its neighbourhood in a part's heatmap, and high enough,
//!    may be the root of a person. Roots are tried from the surest down.
//! 2. A root close to the same part of a person already found belongs to that person.
//! 3. From the root the tree of parts is walked in both directions: the displacement at the cell
//!    of a part points to its neighbour, and the offsets near there point more precisely.
//! 4. A person's score is the mean over all parts, counting only those that are not close to the
//!    same part of an earlier person. People below a score are dropped.

use super::Heads;
use crate::detection::Keypoint;
use crate::error::{Error, Result};
use crate::output::FeatureMap;
use crate::pose::Pose;
use crate::skeleton::{PARTS, TREE};

/// A root is the highest cell among those at most this far away in rows and in columns.
const LOCAL_MAXIMUM_RADIUS: usize = 1;

/// How often a position is moved to where the offsets of its cell point.
const REFINEMENTS: usize = 2;

/// What counts as a person.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// At most this many people.
    pub max_poses: usize,
    /// A root scores at least this, 0 to 1.
    pub min_root_score: f32,
    /// A person scores at least this, 0 to 1.
    pub min_pose_score: f32,
    /// Two of the same part this close, in input pixels, are one.
    pub nms_radius: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { max_poses: 10, min_root_score: 0.5, min_pose_score: 0.15, nms_radius: 20.0 }
    }
}

/// The people in the picture in input pixels, the highest score first.
///
/// # Errors
/// If the model has no displacement heads.
pub fn multi(heads: &Heads<'_>, settings: &Settings) -> Result<Vec<Pose>> {
    let displacements = heads.displacements().ok_or_else(|| {
        let needed = "the outputs displacement_fwd and displacement_bwd";
        Error::new(format!("several people need {needed}; this model lacks them"))
    })?;
    let mut poses: Vec<Pose> = Vec::new();
    for root in roots(heads, settings.min_root_score) {
        if poses.len() >= settings.max_poses {
            break;
        }
        let (x, y) = heads.position(root.row, root.column, root.part);
        let keypoint = Keypoint { x, y, score: root.score };
        if claimed(&poses, root.part, &keypoint, settings.nms_radius) {
            continue;
        }
        let keypoints = grow(heads, displacements, root.part, keypoint);
        let own = keypoints.iter().enumerate();
        let own = own.filter(|(part, keypoint)| !claimed(&poses, *part, keypoint, settings.nms_radius));
        let score = own.map(|(_, keypoint)| keypoint.score).sum::<f32>() / PARTS as f32;
        if score >= settings.min_pose_score {
            poses.push(Pose { keypoints, score });
        }
    }
    poses.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(poses)
}

/// A cell that a person may be grown from.
#[derive(Debug, Clone, Copy)]
struct Root {
    part: usize,
    row: usize,
    column: usize,
    score: f32,
}

/// The local maxima of all heatmaps, the surest first.
fn roots(heads: &Heads<'_>, min_score: f32) -> Vec<Root> {
    let mut roots = Vec::new();
    for row in 0..heads.heatmap().height() {
        for column in 0..heads.heatmap().width() {
            for part in 0..PARTS {
                let score = heads.score(row, column, part);
                if score >= min_score && highest_around(heads.heatmap(), row, column, part) {
                    roots.push(Root { part, row, column, score });
                }
            }
        }
    }
    roots.sort_by(|a, b| b.score.total_cmp(&a.score));
    roots
}

/// Whether no cell around is higher.
fn highest_around(heatmap: &FeatureMap<'_>, row: usize, column: usize, part: usize) -> bool {
    let around = |at: usize, count: usize| {
        at.saturating_sub(LOCAL_MAXIMUM_RADIUS)..(at + LOCAL_MAXIMUM_RADIUS + 1).min(count)
    };
    let logit = heatmap.at(row, column, part);
    around(row, heatmap.height())
        .all(|y| around(column, heatmap.width()).all(|x| heatmap.at(y, x, part) <= logit))
}

/// Whether a person already found has this part there.
fn claimed(poses: &[Pose], part: usize, keypoint: &Keypoint, radius: f32) -> bool {
    poses.iter().any(|pose| {
        let other = &pose.keypoints[part];
        let (dx, dy) = (other.x - keypoint.x, other.y - keypoint.y);
        dx * dx + dy * dy <= radius * radius
    })
}

/// The whole person from one part: up the tree to the nose, then down to all other parts.
fn grow(
    heads: &Heads<'_>,
    [forward, backward]: &[FeatureMap<'_>; 2],
    part: usize,
    root: Keypoint,
) -> [Keypoint; PARTS] {
    let mut found = [None; PARTS];
    found[part] = Some(root);
    for (edge, &(parent, child)) in TREE.iter().enumerate().rev() {
        if let (Some(source), None) = (found[child], found[parent]) {
            found[parent] = Some(step(heads, backward, edge, &source, parent));
        }
    }
    for (edge, &(parent, child)) in TREE.iter().enumerate() {
        if let (Some(source), None) = (found[parent], found[child]) {
            found[child] = Some(step(heads, forward, edge, &source, child));
        }
    }
    // The tree joins all parts, so every one has been found.
    found.map(Option::unwrap_or_default)
}

/// From one part along an edge of the tree to the part `target`.
fn step(
    heads: &Heads<'_>,
    displacement: &FeatureMap<'_>,
    edge: usize,
    source: &Keypoint,
    target: usize,
) -> Keypoint {
    let (row, column) = heads.cell((source.x, source.y));
    let (dx, dy) = displacement.vector(row, column, edge);
    let mut at = (source.x + dx, source.y + dy);
    for _ in 0..REFINEMENTS {
        let (row, column) = heads.cell(at);
        at = heads.position(row, column, target);
    }
    let (row, column) = heads.cell(at);
    Keypoint { x: at.0, y: at.1, score: heads.score(row, column, target) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Person = [(f32, f32); PARTS];

    /// A standing person whose nose is at `x`, `y`; `size` is a quarter of the height.
    fn person(x: f32, y: f32, size: f32) -> Person {
        let at = |dx: f32, dy: f32| (x + dx * size, y + dy * size);
        let mut parts = [at(0.0, 0.0); PARTS];
        for (left, dx, dy) in [
            (1, 0.1, -0.1),
            (3, 0.25, 0.0),
            (5, 0.5, 0.5),
            (7, 0.7, 1.1),
            (9, 0.8, 1.7),
            (11, 0.35, 1.8),
            (13, 0.35, 2.7),
            (15, 0.4, 3.6),
        ] {
            parts[left] = at(dx, dy);
            parts[left + 1] = at(-dx, dy);
        }
        parts
    }

    /// Heads as the network would return them for these people: in each cell the vectors of the
    /// person whose part is nearest, and a logit that falls with the distance to it.
    fn planted(people: &[Person], grid: usize, stride: usize, with_displacements: bool) -> Heads<'static> {
        let cells = grid * grid;
        let (mut heat, mut offset) = (vec![0.0; cells * PARTS], vec![0.0; cells * 2 * PARTS]);
        let edges = TREE.len();
        let mut displacements = [vec![0.0; cells * 2 * edges], vec![0.0; cells * 2 * edges]];
        for cell in 0..cells {
            let (cx, cy) = ((cell % grid * stride) as f32, (cell / grid * stride) as f32);
            let distance = |p: (f32, f32)| (p.0 - cx).hypot(p.1 - cy);
            let nearest = |part: usize| {
                let near = |a: &&Person, b: &&Person| distance(a[part]).total_cmp(&distance(b[part]));
                people.iter().min_by(near).expect("somebody")
            };
            for part in 0..PARTS {
                let (x, y) = nearest(part)[part];
                heat[cell * PARTS + part] = 5.0 - 6.0 * distance((x, y)) / stride as f32;
                offset[cell * 2 * PARTS + part] = y - cy;
                offset[cell * 2 * PARTS + PARTS + part] = x - cx;
            }
            for (edge, &(parent, child)) in TREE.iter().enumerate() {
                for (map, (from, to)) in displacements.iter_mut().zip([(parent, child), (child, parent)]) {
                    let person = nearest(from);
                    // Mid-range vectors are coarse: these miss by 3 pixels, which the offsets mend.
                    map[cell * 2 * edges + edge] = person[to].1 - person[from].1 + 3.0;
                    map[cell * 2 * edges + edges + edge] = person[to].0 - person[from].0 - 3.0;
                }
            }
        }
        let map = |c: usize, data| FeatureMap::new("planted", [1, grid, grid, c], data).expect("a map");
        let size = (grid - 1) * stride + 1;
        let pair = displacements.map(|data| map(2 * edges, data));
        Heads::new([size; 2], map(PARTS, heat), map(2 * PARTS, offset), with_displacements.then_some(pair))
            .expect("heads")
    }

    fn worst_distance(pose: &Pose, person: &Person) -> f32 {
        let each = pose.keypoints.iter().zip(person).map(|(k, p)| (k.x - p.0).hypot(k.y - p.1));
        each.fold(0.0, f32::max)
    }

    #[test]
    fn two_people_are_found_and_their_parts_kept_apart() {
        // Side by side; overlapping arms; one behind and above the other.
        let cases = [
            [person(70.0, 60.0, 45.0), person(180.0, 70.0, 45.0)],
            [person(90.0, 60.0, 45.0), person(150.0, 64.0, 45.0)],
            [person(110.0, 30.0, 40.0), person(140.0, 100.0, 40.0)],
        ];
        for (case, people) in cases.iter().enumerate() {
            let poses = multi(&planted(people, 17, 16, true), &Settings::default()).expect("displacements");
            assert_eq!(poses.len(), 2, "case {case}");
            for person in people {
                let hits = poses.iter().filter(|pose| worst_distance(pose, person) < 0.01).count();
                assert_eq!(hits, 1, "case {case}: {poses:?}");
            }
            assert!(poses[0].score >= poses[1].score && poses[1].score > 0.7, "case {case}");
        }
    }

    #[test]
    fn one_person_is_one_pose_though_every_part_is_a_root() {
        let heads = planted(&[person(128.0, 50.0, 50.0)], 17, 16, true);
        assert!(roots(&heads, 0.5).len() >= PARTS);
        assert_eq!(multi(&heads, &Settings::default()).expect("displacements").len(), 1);
    }

    #[test]
    fn settings_bound_number_and_score() {
        let people = [person(70.0, 60.0, 45.0), person(180.0, 70.0, 45.0)];
        let heads = planted(&people, 17, 16, true);
        let count = |settings: Settings| multi(&heads, &settings).expect("displacements").len();
        assert_eq!(count(Settings { max_poses: 1, ..Default::default() }), 1);
        assert_eq!(count(Settings { max_poses: 0, ..Default::default() }), 0);
        assert_eq!(count(Settings { min_root_score: 0.9999, ..Default::default() }), 0);
        assert_eq!(count(Settings { min_pose_score: 0.9999, ..Default::default() }), 0);
    }

    #[test]
    fn a_model_without_displacements_is_refused() {
        let heads = planted(&[person(128.0, 50.0, 50.0)], 17, 16, false);
        assert!(multi(&heads, &Settings::default()).is_err());
    }
}
