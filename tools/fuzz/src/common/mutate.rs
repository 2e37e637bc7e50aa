//! Changes to a file, field by field.

use super::noise::Noise;
use super::tree::Tree;

/// The largest list that a mutation makes longer.
const LONGEST: usize = 64;

/// A format of files.
pub struct Format {
    pub read: fn(&[u8]) -> Option<Tree>,
    pub write: fn(&Tree) -> Vec<u8>,
    /// Texts that mean something in it.
    pub words: fn() -> &'static [&'static str],
}

/// `file` with some of its fields changed; none if it cannot be read as `format`.
pub fn mutate(format: &Format, file: &[u8], noise: &mut Noise) -> Option<Vec<u8>> {
    let mut tree = (format.read)(file)?;
    for _ in 0..1 + noise.below(4).min(noise.below(4)) {
        change(&mut tree, format, noise);
    }
    let mut bytes = (format.write)(&tree);
    // Now and then what no writer writes: a wrong length, offset or tag.
    if noise.once_in(8) && !bytes.is_empty() {
        let place = noise.below(bytes.len());
        bytes[place] = number(u64::from(bytes[place]), 1, noise) as u8;
    }
    Some(bytes)
}

/// `file` with one of its fields replaced by one of the same kind in `other`, or with that one added.
pub fn cross(format: &Format, file: &[u8], other: &[u8], noise: &mut Noise) -> Option<Vec<u8>> {
    let (mut tree, other) = ((format.read)(file)?, (format.read)(other)?);
    let mut paths: Vec<Vec<u32>> = Vec::new();
    tree.walk(&mut Vec::new(), &mut |path, _| paths.push(path.to_vec()));
    for _ in 0..4 {
        let place = noise.below(paths.len());
        let mut found = Vec::new();
        other.walk(&mut Vec::new(), &mut |path, value| {
            if path == paths[place] {
                found.push(value);
            }
        });
        let (Some(&value), Some(own)) = (noise.of(&found), tree.at(&mut { place })) else { continue };
        match (own, value) {
            (Tree::Table(own), Tree::Table(fields)) if noise.once_in(2) => {
                let Some((number, field)) = noise.of(fields) else { continue };
                own.push((*number, field.clone()));
            }
            (Tree::Tables(own), Tree::Tables(tables)) => own.extend(noise.of(tables).cloned()),
            (own, value) => *own = value.clone(),
        }
        return Some((format.write)(&tree));
    }
    None
}

fn change(tree: &mut Tree, format: &Format, noise: &mut Noise) {
    let size = tree.size();
    let place = noise.below(size);
    // A value like it, from elsewhere in the file: that is how names and indices come to be right.
    let donor = tree.at(&mut noise.below(size)).map(|donor| donor.clone());
    let Some(value) = tree.at(&mut { place }) else { return };
    match value {
        Tree::Number { value, width } => {
            *value = match donor {
                Some(Tree::Number { value, .. }) if noise.once_in(3) => value,
                _ => number(*value, *width, noise),
            };
        }
        Tree::Numbers { values, width } => match donor {
            Some(Tree::Numbers { values: other, .. }) if noise.once_in(3) => *values = other,
            _ => list(values, noise, |noise, old| number(old.copied().unwrap_or(1), *width, noise)),
        },
        Tree::Bytes(bytes) => match donor {
            Some(Tree::Bytes(other)) if noise.once_in(3) => *bytes = other,
            _ => data(bytes, format, noise),
        },
        Tree::Table(fields) => match donor {
            Some(Tree::Table(other)) if noise.once_in(4) => *fields = other,
            Some(other) if noise.once_in(8) => fields.push((noise.below(26) as u32, other)),
            _ => list(fields, noise, |noise, old| match old.cloned() {
                Some((number, field)) if noise.once_in(4) => {
                    (if noise.once_in(2) { number + 1 } else { noise.below(26) as u32 }, field)
                }
                Some(field) => field,
                None => (noise.below(26) as u32, Tree::Number { value: 1, width: 0 }),
            }),
        },
        Tree::Tables(tables) => {
            list(tables, noise, |_, old| old.cloned().unwrap_or_else(|| Tree::Table(Vec::new())))
        }
    }
}

/// Removes, adds, swaps or changes an element.
fn list<T: Clone>(values: &mut Vec<T>, noise: &mut Noise, mut new: impl FnMut(&mut Noise, Option<&T>) -> T) {
    let (one, other) = (noise.below(values.len()), noise.below(values.len()));
    match noise.below(6) {
        0 if !values.is_empty() => drop(values.remove(one)),
        1 if !values.is_empty() => values.swap(one, other),
        2 if !values.is_empty() => values[one] = values[other].clone(),
        3 if values.len() < LONGEST => {
            let value = new(noise, values.get(one));
            values.insert(noise.below(values.len() + 1), value);
        }
        4 => values.truncate(one),
        _ if !values.is_empty() => values[one] = new(noise, Some(&values[one].clone())),
        _ => {}
    }
}

fn data(bytes: &mut Vec<u8>, format: &Format, noise: &mut Noise) {
    if let Some(word) = noise.of((format.words)()).filter(|_| noise.once_in(3)) {
        *bytes = word.as_bytes().to_vec();
        return;
    }
    let width = [1, 4, 8][noise.below(3)];
    if bytes.len() < width || noise.once_in(6) {
        return list(bytes, noise, |noise, _| noise.next() as u8);
    }
    let count = bytes.len() / width;
    let first = noise.below(count) * width;
    match noise.below(6) {
        0 => bytes.truncate(first),
        1 => bytes.extend_from_within(first..first + width),
        _ => {
            let mut old = [0; 8];
            old[..width].copy_from_slice(&bytes[first..first + width]);
            let new = number(u64::from_le_bytes(old), width as u8, noise).to_le_bytes();
            bytes[first..first + width].copy_from_slice(&new[..width]);
        }
    }
}

/// Numbers at which something ends.
const EDGES: [u64; 26] = [
    0,
    1,
    2,
    3,
    4,
    8,
    16,
    127,
    128,
    255,
    256,
    1 << 15,
    (1 << 16) - 1,
    1 << 16,
    1 << 20,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 40,
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// Floats at which something ends: of f32, and their doubles.
const FLOATS: [f32; 12] =
    [0.0, -0.0, 0.5, 1.0, -1.0, 1e-45, 1.17e-38, 1e9, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];

fn number(old: u64, width: u8, noise: &mut Noise) -> u64 {
    match noise.below(10) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => old.wrapping_mul(2),
        3 => old / 2,
        4 => 0u64.wrapping_sub(noise.below(5) as u64),
        5 => old ^ (1 << noise.below(if width == 0 { 64 } else { 8 * usize::from(width) })),
        6 => EDGES[noise.below(EDGES.len())],
        7 if width == 4 => u64::from(FLOATS[noise.below(FLOATS.len())].to_bits()),
        7 if width == 8 => f64::from(FLOATS[noise.below(FLOATS.len())]).to_bits(),
        8 => noise.below(211) as u64,
        _ => noise.below(9) as u64,
    }
}
