//! Seventeen points of each person: PoseNet's heatmaps, and MoveNet's rows.

use super::found::{Detection, Keypoint, sigmoid, suppress};
use super::outputs::{Feature, Map, list};
use super::{Limits, PARTS};
use crate::failure::Failure;
use crate::tensors::Tensors;

/// The tree of parts as (parent, child), rooted at the nose. Edge `e` is channel `e` (y) and `16 + e` (x) of both
/// displacement maps.
const TREE: [(usize, usize); PARTS.len() - 1] = [
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

/// Two of the same part this close, in pixels of the network's picture, are one.
const NEAR: f32 = 20.0;

/// A person scores at least this share of what a part does that a person is found by.
const OF_ALL_PARTS: f32 = 0.3;

/// How often a place is moved to where the offsets of its cell point.
const REFINEMENTS: usize = 2;

/// Pixels between cells of the heatmaps that PoseNets have.
const STRIDES: [usize; 4] = [4, 8, 16, 32];

/// The outputs of a PoseNet.
///
/// | output | channels | a cell has |
/// |---|---|---|
/// | heatmap | 17 | the logit that the part lies near the cell |
/// | offset | 34 | from the cell to the part, in pixels: 17 y, then 17 x |
/// | displacement_fwd, displacement_bwd | 32 | from a part to its child (parent), in pixels: 16 y, then 16 x |
pub(super) struct PoseNet<'t> {
    heatmap: Feature<'t>,
    offset: Feature<'t>,
    displacements: Option<[Feature<'t>; 2]>,
    stride: f32,
}

impl<'t> PoseNet<'t> {
    /// Finds the outputs by their names, or by their channels where the names do not say which they are.
    pub(super) fn of(tensors: &'t Tensors, [width, height]: [u32; 2]) -> Result<Self, Failure> {
        let all = tensors.all();
        let mut maps = Vec::new();
        for tensor in all {
            maps.push((tensor.name.to_ascii_lowercase().replace('-', "_"), Map::of(tensor)));
        }
        let refused = || {
            let found = list(all);
            let wanted =
                "heatmap 1xHxWx17, offset 1xHxWx34 and, for several people, two displacements 1xHxWx32";
            Failure::model(format!("a PoseNet: found outputs {found}, wanted {wanted}"))
        };
        let mut features = Vec::new();
        for (name, map) in maps {
            if let Ok(map) = map.feature_map(tensors.is_planar()) {
                features.push((name, map));
            }
        }
        let mut take = |part: &str, channels: usize| {
            let named = features.iter().position(|(name, map)| name.contains(part) && map.c == channels);
            let place = named.or_else(|| features.iter().position(|(_, map)| map.c == channels))?;
            Some(features.swap_remove(place).1)
        };
        let heatmap = take("heatmap", PARTS.len()).ok_or_else(refused)?;
        let offset = take("offset", 2 * PARTS.len()).ok_or_else(refused)?;
        let forward = take("displacement_fwd", 2 * TREE.len());
        let displacements = forward.zip(take("displacement_bwd", 2 * TREE.len()));
        let displacements = displacements.map(|(forward, backward)| [forward, backward]);
        let grid = |map: &Feature<'_>| [map.w, map.h];
        let others = [&offset].into_iter().chain(displacements.iter().flatten());
        if others.into_iter().any(|map| grid(map) != grid(&heatmap)) {
            return Err(refused());
        }
        let size = [width as usize, height as usize];
        let cells = |stride: &usize| size.map(|extent| extent.div_ceil(*stride)) == grid(&heatmap);
        let stride = STRIDES.into_iter().find(cells).ok_or_else(|| {
            let text = format!(
                "a PoseNet: found a picture of {width}x{height} and heatmaps of {}x{}, wanted one of {STRIDES:?} pixels \
                 between cells",
                heatmap.w, heatmap.h
            );
            Failure::model(text)
        })?;
        Ok(PoseNet { heatmap, offset, displacements, stride: stride as f32 })
    }

    /// The people in the picture: several if the network has displacements and more than one is wanted.
    pub(super) fn people(&self, limits: &Limits) -> Vec<Detection> {
        let people = match &self.displacements {
            Some(displacements) if limits.count > 1 => self.several(displacements, limits),
            _ => self.one(limits),
        };
        // Cells count from pixels' centres, places from pixels' corners.
        let shifted = people.into_iter().map(|mut person| {
            for point in &mut person.points {
                point.x += 0.5;
                point.y += 0.5;
            }
            Detection::of_points(person.score, person.points)
        });
        shifted.filter(Detection::is_finite).collect()
    }

    /// Each part where its heatmap is highest.
    fn one(&self, limits: &Limits) -> Vec<Detection> {
        let point = |part: usize| {
            let cells = (0..self.heatmap.h).flat_map(|y| (0..self.heatmap.w).map(move |x| (y, x)));
            let logit = |&(y, x): &(usize, usize)| self.heatmap.at(y, x, part);
            let best = cells.max_by(|a, b| logit(a).total_cmp(&logit(b)));
            best.map_or_else(Keypoint::default, |(y, x)| self.point(y, x, part))
        };
        let points: Vec<Keypoint> = (0..PARTS.len()).map(point).collect();
        let score = points.iter().map(|point| point.score).sum::<f32>() / PARTS.len() as f32;
        let person = Detection { score, points, ..Detection::default() };
        if score >= limits.threshold * OF_ALL_PARTS { vec![person] } else { Vec::new() }
    }

    /// The greedy decoding published with PoseNet (Papandreou et al., "PersonLab", ECCV 2018, section 3.2): from each cell that
    /// is the highest around it, the surest first, the tree of parts is walked along the displacements. A person's score is the
    /// mean of the parts that are not those of an earlier person.
    fn several(&self, displacements: &[Feature<'_>; 2], limits: &Limits) -> Vec<Detection> {
        let mut people: Vec<Detection> = Vec::new();
        let is_known = |people: &[Detection], part: usize, point: &Keypoint| {
            people
                .iter()
                .filter_map(|person| person.points.get(part))
                .any(|known| (known.x - point.x).powi(2) + (known.y - point.y).powi(2) <= NEAR * NEAR)
        };
        for (part, root) in self.roots(limits.threshold) {
            if people.len() >= limits.count {
                break;
            }
            if is_known(&people, part, &root) {
                continue;
            }
            let points = self.grow(displacements, part, root);
            let own = points.iter().enumerate().filter(|&(part, point)| !is_known(&people, part, point));
            let score = own.map(|(_, point)| point.score).sum::<f32>() / PARTS.len() as f32;
            if score >= limits.threshold * OF_ALL_PARTS {
                people.push(Detection { score, points, ..Detection::default() });
            }
        }
        people.sort_by(|a, b| b.score.total_cmp(&a.score));
        people
    }

    /// The cells that no neighbour is higher than, the surest first.
    fn roots(&self, threshold: f32) -> Vec<(usize, Keypoint)> {
        let (h, w) = (self.heatmap.h, self.heatmap.w);
        let around = |at: usize, count: usize| at.saturating_sub(1)..(at + 2).min(count);
        let mut roots = Vec::new();
        for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
            for part in 0..PARTS.len() {
                let logit = self.heatmap.at(y, x, part);
                let is_highest =
                    || around(y, h).all(|y| around(x, w).all(|x| self.heatmap.at(y, x, part) <= logit));
                if sigmoid(logit) >= threshold && is_highest() {
                    roots.push((part, self.point(y, x, part)));
                }
            }
        }
        roots.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score));
        roots
    }

    /// All parts from one: up the tree to the nose, then down to the others.
    fn grow(&self, [forward, backward]: &[Feature<'_>; 2], part: usize, root: Keypoint) -> Vec<Keypoint> {
        let mut found = [None; PARTS.len()];
        found[part] = Some(root);
        for (edge, &(parent, child)) in TREE.iter().enumerate().rev() {
            if let (Some(from), None) = (found[child], found[parent]) {
                found[parent] = Some(self.step(backward, edge, &from, parent));
            }
        }
        for (edge, &(parent, child)) in TREE.iter().enumerate() {
            if let (Some(from), None) = (found[parent], found[child]) {
                found[child] = Some(self.step(forward, edge, &from, child));
            }
        }
        // The tree has all parts.
        found.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// From one part along an edge of the tree to the part `target`.
    fn step(&self, displacement: &Feature<'_>, edge: usize, from: &Keypoint, target: usize) -> Keypoint {
        let (y, x) = self.cell([from.x, from.y]);
        let [dx, dy] = vector(displacement, y, x, edge);
        let mut at = [from.x + dx, from.y + dy];
        for _ in 0..REFINEMENTS {
            let (y, x) = self.cell(at);
            let Keypoint { x, y, .. } = self.point(y, x, target);
            at = [x, y];
        }
        let (y, x) = self.cell(at);
        Keypoint { x: at[0], y: at[1], score: sigmoid(self.heatmap.at(y, x, target)) }
    }

    /// A part near a cell: where the cell's offset points.
    fn point(&self, y: usize, x: usize, part: usize) -> Keypoint {
        let [dx, dy] = vector(&self.offset, y, x, part);
        let score = sigmoid(self.heatmap.at(y, x, part));
        Keypoint { x: x as f32 * self.stride + dx, y: y as f32 * self.stride + dy, score }
    }

    /// The cell (row, column) that is nearest to a place.
    fn cell(&self, [x, y]: [f32; 2]) -> (usize, usize) {
        // A cast of a float saturates, so that places beyond the left and upper edge, and NaN, become 0.
        let nearest = |v: f32, count: usize| ((v / self.stride).round() as usize).min(count - 1);
        (nearest(y, self.heatmap.h), nearest(x, self.heatmap.w))
    }
}

/// The vector whose y lies in channel `k`, and whose x in the second half of the channels.
fn vector(map: &Feature<'_>, y: usize, x: usize, k: usize) -> [f32; 2] {
    [map.at(y, x, map.c / 2 + k), map.at(y, x, k)]
}

/// MoveNet's people, in shares of its picture: one as 17 rows of y, x and score, or six rows of 17 times the same, the box (top,
/// left, bottom, right) and the person's score.
pub(super) fn movenet(
    map: &Map<'_>,
    [width, height]: [f32; 2],
    limits: &Limits,
) -> Result<Vec<Detection>, Failure> {
    let points = |row: &[f32]| -> Vec<Keypoint> {
        let points = row.chunks_exact(3).take(PARTS.len());
        points.map(|point| Keypoint { x: point[1] * width, y: point[0] * height, score: point[2] }).collect()
    };
    let least = limits.threshold * OF_ALL_PARTS;
    let people = match *map.extents.as_slice() {
        [1, 17, 3] => {
            let points = points(&map.values);
            let score = points.iter().map(|point| point.score).sum::<f32>() / PARTS.len() as f32;
            vec![Detection::of_points(score, points)]
        }
        [_, 56] => {
            let person = |row: &[f32]| Detection {
                score: row[55],
                class: 0,
                area: [row[52] * width, row[51] * height, row[54] * width, row[53] * height],
                points: points(row),
            };
            map.values.chunks_exact(56).map(person).collect()
        }
        _ => return Err(map.refused("1x1x17x3 or 1xNx56")),
    };
    let people = people.into_iter().filter(|person| person.score >= least).collect();
    Ok(suppress(people, limits.overlap, limits.count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::Tensor;
    use diptych::{Dims, HostTensor};

    const LIMITS: Limits = Limits { threshold: 0.5, overlap: 0.5, count: 10 };
    const STRIDE: usize = 16;
    const GRID: usize = 17;

    type Person = [[f32; 2]; PARTS.len()];

    /// A person of a quarter of this height, whose nose is there, in pixels from the centre of the first.
    fn person(x: f32, y: f32, size: f32) -> Person {
        let at = |dx: f32, dy: f32| [x + dx * size, y + dy * size];
        let mut parts = [at(0.0, 0.0); PARTS.len()];
        let pairs = [
            (0.1, -0.1),
            (0.25, 0.0),
            (0.5, 0.5),
            (0.7, 1.1),
            (0.8, 1.7),
            (0.35, 1.8),
            (0.35, 2.7),
            (0.4, 3.6),
        ];
        for (pair, (dx, dy)) in pairs.into_iter().enumerate() {
            parts[2 * pair + 1] = at(dx, dy);
            parts[2 * pair + 2] = at(-dx, dy);
        }
        parts
    }

    fn tensor(name: &str, shape: &[usize], values: Vec<f32>) -> Tensor {
        let data = HostTensor::new(Dims::new(shape).expect("dimensions"), values).expect("a tensor");
        Tensor { name: name.to_owned(), data, labels: Default::default() }
    }

    /// What a network gives for these people: in each cell the vectors of the one whose part is nearest, and a logit that falls
    /// with the distance to it. Displacements miss by three pixels, which the offsets mend.
    fn planted(people: &[Person], is_planar: bool, with_displacements: bool) -> Tensors {
        let (parts, edges) = (PARTS.len(), TREE.len());
        let mut maps = [parts, 2 * parts, 2 * edges, 2 * edges].map(|c| (c, vec![0.0; GRID * GRID * c]));
        for cell in 0..GRID * GRID {
            let (cx, cy) = ((cell % GRID * STRIDE) as f32, (cell / GRID * STRIDE) as f32);
            let nearest = |part: usize| {
                let distance = |person: &&Person| (person[part][0] - cx).hypot(person[part][1] - cy);
                let best = people.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
                best.map(|best| (best, distance(&best))).expect("somebody")
            };
            let mut put = |map: usize, channel: usize, value: f32| {
                let (c, values) = &mut maps[map];
                let place = if is_planar { channel * GRID * GRID + cell } else { cell * *c + channel };
                values[place] = value;
            };
            for part in 0..parts {
                let (person, distance) = nearest(part);
                put(0, part, 5.0 - 6.0 * distance / STRIDE as f32);
                put(1, part, person[part][1] - cy);
                put(1, parts + part, person[part][0] - cx);
            }
            for (edge, &(parent, child)) in TREE.iter().enumerate() {
                for (map, from, to) in [(2, parent, child), (3, child, parent)] {
                    let (person, _) = nearest(from);
                    put(map, edge, person[to][1] - person[from][1] + 3.0);
                    put(map, edges + edge, person[to][0] - person[from][0] - 3.0);
                }
            }
        }
        let names = ["net/heatmap", "net/offset", "net/displacement_fwd", "net/displacement_bwd"];
        let tensors = maps.into_iter().zip(names).map(|((c, values), name)| {
            let shape = if is_planar { [1, c, GRID, GRID] } else { [1, GRID, GRID, c] };
            tensor(name, &shape, values)
        });
        let count = if with_displacements { 4 } else { 2 };
        Tensors::new("net", is_planar, tensors.take(count).collect())
    }

    const SIZE: [u32; 2] = [((GRID - 1) * STRIDE + 1) as u32; 2];

    fn assert_is(found: &Detection, person: &Person) {
        for (part, (point, wanted)) in found.points.iter().zip(person).enumerate() {
            let apart = (point.x - 0.5 - wanted[0]).hypot(point.y - 0.5 - wanted[1]);
            assert!(apart < 0.01, "{}: {point:?}, wanted {wanted:?}", PARTS[part]);
        }
    }

    #[test]
    fn two_people_are_kept_apart() {
        let people = [person(70.0, 60.0, 45.0), person(180.0, 70.0, 45.0)];
        for is_planar in [false, true] {
            let tensors = planted(&people, is_planar, true);
            let mut found = PoseNet::of(&tensors, SIZE).expect("a PoseNet").people(&LIMITS);
            assert_eq!(found.len(), 2);
            assert!(found.iter().all(|person| person.score > 0.7));
            found.sort_by(|a, b| a.points[0].x.total_cmp(&b.points[0].x));
            found.iter().zip(&people).for_each(|(found, person)| assert_is(found, person));
        }
    }

    #[test]
    fn one_person_needs_no_displacements() {
        let someone = person(128.0, 50.0, 50.0);
        let limits = Limits { count: 1, ..LIMITS };
        for with_displacements in [false, true] {
            let tensors = planted(&[someone], false, with_displacements);
            let found = PoseNet::of(&tensors, SIZE).expect("a PoseNet").people(&limits);
            assert_eq!(found.len(), 1);
            assert_is(&found[0], &someone);
        }
        let tensors = planted(&[someone], false, true);
        let strict = Limits { threshold: 1.0, ..LIMITS };
        assert!(PoseNet::of(&tensors, SIZE).expect("a PoseNet").people(&strict).is_empty());
    }

    #[test]
    fn other_outputs_are_refused_with_their_dimensions() {
        let tensors = Tensors::new("net", false, vec![tensor("softmax", &[1, 1001], vec![0.0; 1001])]);
        let refused = PoseNet::of(&tensors, SIZE).map(|_| ()).expect_err("a classifier").text;
        assert!(refused.contains("\"softmax\" 1x1001") && refused.contains("heatmap 1xHxWx17"), "{refused}");
        let tensors = planted(&[person(128.0, 50.0, 50.0)], false, true);
        let refused = PoseNet::of(&tensors, [100, 100]).map(|_| ()).expect_err("no stride").text;
        assert!(refused.contains("100x100 and heatmaps of 17x17"), "{refused}");
    }

    #[test]
    fn movenets_rows_are_shares() {
        let row: Vec<f32> = (0..17).flat_map(|part| [0.5, part as f32 / 16.0, 0.75]).collect();
        let read = |extents: &[usize], values: Vec<f32>| {
            let map = Map { name: "out", extents: extents.to_vec(), values: values.into() };
            movenet(&map, [64.0, 32.0], &LIMITS)
        };
        let found = read(&[1, 17, 3], row.clone()).expect("one");
        assert_eq!((found.len(), found[0].score, found[0].area), (1, 0.75, [0.0, 16.0, 64.0, 16.0]));
        assert_eq!(found[0].points[8], Keypoint { x: 32.0, y: 16.0, score: 0.75 });
        let several = [row, vec![0.25, 0.125, 0.75, 0.875, 0.9], vec![0.0; 56]].concat();
        let found = read(&[2, 56], several).expect("one of two");
        assert_eq!((found.len(), found[0].score, found[0].area), (1, 0.9, [8.0, 8.0, 56.0, 24.0]));
        assert!(read(&[17, 3], vec![0.0; 51]).is_err());
    }
}
