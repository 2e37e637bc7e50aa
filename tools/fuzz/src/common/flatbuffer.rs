//! TensorFlow Lite files as trees.

use super::mutate::Format;
use super::tree::Tree;

/// The format.
pub const FORMAT: Format = Format { read, write, words: super::words::tflite };

/// The deepest table, and the most values: offsets may make a small file stand for a large one.
const DEEPEST: usize = 12;
const MOST: usize = 20_000;

/// What a field is.
enum Kind {
    Scalar(u8),
    Vector(u8),
    Data,
    Table(&'static [Field]),
    Tables(&'static [Field]),
    /// The table of a sparse tensor's indices, which have as many bytes as the number before it says.
    Indices,
    /// A table without a description here: its fields are numbers, as wide as the place between them.
    Options,
}

type Field = (u32, Kind);

use Kind::{Data, Indices, Options, Scalar, Table, Tables, Vector};

static MODEL: [Field; 7] = [
    (0, Scalar(4)),
    (1, Tables(&[(0, Scalar(1)), (1, Data), (2, Scalar(4)), (3, Scalar(4))])),
    (2, Tables(&NETWORK)),
    (3, Data),
    (4, Tables(&[(0, Data), (1, Scalar(8)), (2, Scalar(8))])),
    (6, Tables(&NAMED)),
    (7, Tables(&[(0, Tables(&NAMED)), (1, Tables(&NAMED)), (4, Scalar(4))])),
];
static NAMED: [Field; 2] = [(0, Data), (1, Scalar(4))];
static NETWORK: [Field; 4] = [(0, Tables(&TENSOR)), (1, Vector(4)), (2, Vector(4)), (3, Tables(&OPERATOR))];
static TENSOR: [Field; 8] = [
    (0, Vector(4)),
    (1, Scalar(1)),
    (2, Scalar(4)),
    (3, Data),
    (4, Table(&[(2, Vector(4)), (3, Vector(8)), (6, Scalar(4))])),
    (5, Scalar(1)),
    (6, Table(&[(0, Vector(4)), (1, Vector(4)), (2, Tables(&LEVEL))])),
    (7, Vector(4)),
];
static LEVEL: [Field; 6] =
    [(0, Scalar(1)), (1, Scalar(4)), (2, Scalar(1)), (3, Indices), (4, Scalar(1)), (5, Indices)];
static OPERATOR: [Field; 8] = [
    (0, Scalar(4)),
    (1, Vector(4)),
    (2, Vector(4)),
    (3, Scalar(1)),
    (4, Options),
    (5, Data),
    (11, Scalar(1)),
    (12, Options),
];
/// Of the options with a list, its field, by the type of the options: RESHAPE, SQUEEZE, BUCKETIZE.
const LISTS: [(u64, u32); 3] = [(17, 0), (30, 0), (107, 0)];

struct Reader<'a> {
    bytes: &'a [u8],
    left: usize,
}

fn read(bytes: &[u8]) -> Option<Tree> {
    let mut reader = Reader { bytes, left: MOST };
    let root = reader.target(0)?;
    reader.table(root, &MODEL, 0)
}

impl Reader<'_> {
    fn number(&self, at: usize, width: usize) -> Option<u64> {
        let mut value = [0; 8];
        value[..width].copy_from_slice(self.bytes.get(at..at.checked_add(width)?)?);
        Some(u64::from_le_bytes(value))
    }

    fn target(&self, at: usize) -> Option<usize> {
        at.checked_add(self.number(at, 4)? as usize)
    }

    /// The places of a table's fields, by number, and where the table ends.
    fn places(&self, table: usize) -> Option<(Vec<(u32, usize)>, usize)> {
        let away = self.number(table, 4)? as u32 as i32;
        let list = usize::try_from(i64::try_from(table).ok()? - i64::from(away)).ok()?;
        let slots = (self.number(list, 2)? as usize).checked_sub(4)? / 2;
        let length = self.number(list + 2, 2)? as usize;
        let mut places = Vec::new();
        for slot in 0..slots {
            let within = self.number(list + 4 + 2 * slot, 2)? as usize;
            if within != 0 {
                places.push((slot as u32, table + within));
            }
        }
        Some((places, table + length))
    }

    fn table(&mut self, at: usize, kinds: &'static [Field], depth: usize) -> Option<Tree> {
        if depth > DEEPEST {
            return None;
        }
        let mut fields = Vec::new();
        let mut last = 0;
        for (number, place) in self.places(at)?.0 {
            let Some((_, kind)) = kinds.iter().find(|(known, _)| *known == number) else { continue };
            let value = self.value(place, kind, last, depth)?;
            if let Tree::Number { value, .. } = value {
                last = value;
            }
            fields.push((number, value));
        }
        Some(Tree::Table(fields))
    }

    fn value(&mut self, at: usize, kind: &'static Kind, tag: u64, depth: usize) -> Option<Tree> {
        self.left = self.left.checked_sub(1)?;
        Some(match kind {
            Scalar(width) => Tree::Number { value: self.number(at, usize::from(*width))?, width: *width },
            Vector(width) => self.vector(self.target(at)?, *width)?,
            Data => {
                let start = self.target(at)?;
                let end = (start + 4).checked_add(self.number(start, 4)? as usize)?;
                Tree::Bytes(self.bytes.get(start + 4..end)?.to_vec())
            }
            Table(kinds) => self.table(self.target(at)?, kinds, depth + 1)?,
            Tables(kinds) => {
                let start = self.target(at)?;
                let count = self.number(start, 4)? as usize;
                if count > self.left {
                    return None;
                }
                let tables = (0..count).map(|index| {
                    self.left = self.left.checked_sub(1)?;
                    self.table(self.target(start + 4 + 4 * index)?, kinds, depth + 1)
                });
                Tree::Tables(tables.collect::<Option<_>>()?)
            }
            Indices => {
                let (places, _) = self.places(self.target(at)?)?;
                let width = match tag {
                    2 => 2,
                    3 => 1,
                    _ => 4,
                };
                let fields = places
                    .into_iter()
                    .filter(|&(number, _)| number == 0)
                    .map(|(number, place)| Some((number, self.vector(self.target(place)?, width)?)));
                Tree::Table(fields.collect::<Option<_>>()?)
            }
            Options => self.options(self.target(at)?, tag)?,
        })
    }

    fn vector(&mut self, start: usize, width: u8) -> Option<Tree> {
        let count = self.number(start, 4)? as usize;
        self.left = self.left.checked_sub(count)?;
        let values =
            (0..count).map(|index| self.number(start + 4 + index * usize::from(width), width.into()));
        Some(Tree::Numbers { values: values.collect::<Option<_>>()?, width })
    }

    fn options(&mut self, at: usize, tag: u64) -> Option<Tree> {
        let (places, end) = self.places(at)?;
        let mut ends: Vec<usize> = places.iter().map(|&(_, place)| place).collect();
        ends.push(end);
        ends.sort_unstable();
        let mut fields = Vec::new();
        for (number, place) in places {
            let room = ends.iter().find(|&&end| end > place).map_or(1, |end| end - place);
            let value = if LISTS.contains(&(tag, number)) {
                self.vector(self.target(place)?, 4)?
            } else {
                let width = [8, 4, 2, 1].into_iter().find(|&width| width <= room && place % width == 0)?;
                Tree::Number { value: self.number(place, width)?, width: width as u8 }
            };
            fields.push((number, value));
        }
        Some(Tree::Table(fields))
    }
}

fn write(tree: &Tree) -> Vec<u8> {
    let mut out = vec![0; 8];
    out[4..].copy_from_slice(b"TFL3");
    let root = written(&mut out, tree);
    out[..4].copy_from_slice(&(root as u32).to_le_bytes());
    out
}

fn align(out: &mut Vec<u8>, to: usize, before: usize) {
    out.resize(out.len() + (to - (out.len() + before) % to) % to, 0);
}

/// Points the offset at `at` to `target`, which is behind it.
fn point(out: &mut [u8], at: usize, target: usize) {
    out[at..at + 4].copy_from_slice(&((target - at) as u32).to_le_bytes());
}

/// Appends a value, and gives its place.
fn written(out: &mut Vec<u8>, tree: &Tree) -> usize {
    match tree {
        // Only a table's own bytes have numbers.
        Tree::Number { .. } => out.len(),
        Tree::Bytes(bytes) => {
            align(out, 16, 4);
            let at = out.len();
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend(bytes);
            out.push(0);
            at
        }
        Tree::Numbers { values, width } => {
            let width = usize::from(*width).max(1);
            align(out, width.max(4), 4);
            let at = out.len();
            out.extend((values.len() as u32).to_le_bytes());
            values.iter().for_each(|value| out.extend(&value.to_le_bytes()[..width]));
            at
        }
        Tree::Tables(tables) => {
            align(out, 4, 0);
            let at = out.len();
            out.extend((tables.len() as u32).to_le_bytes());
            out.resize(out.len() + 4 * tables.len(), 0);
            for (index, table) in tables.iter().enumerate() {
                let target = written(out, table);
                point(out, at + 4 + 4 * index, target);
            }
            at
        }
        Tree::Table(fields) => table(out, fields),
    }
}

fn table(out: &mut Vec<u8>, fields: &[(u32, Tree)]) -> usize {
    let slots = fields.iter().map(|(number, _)| *number as usize + 1).max().unwrap_or(0);
    // A field that is there several times has its last value.
    let mut chosen: Vec<Option<&Tree>> = vec![None; slots];
    fields.iter().for_each(|(number, field)| chosen[*number as usize] = Some(field));
    align(out, 2, 0);
    let list = out.len();
    out.resize(list + 4 + 2 * slots, 0);
    align(out, 8, 0);
    let at = out.len();
    out.extend(((at - list) as u32).to_le_bytes());
    let mut offsets = Vec::new();
    for (slot, field) in chosen.iter().enumerate() {
        let Some(field) = field else { continue };
        let width = match field {
            Tree::Number { width, .. } => usize::from(*width).max(1),
            _ => 4,
        };
        align(out, width, 0);
        let place = out.len();
        match field {
            Tree::Number { value, .. } => out.extend(&value.to_le_bytes()[..width]),
            _ => {
                out.extend([0; 4]);
                offsets.push((place, *field));
            }
        }
        let within = (place - at) as u16;
        out[list + 4 + 2 * slot..][..2].copy_from_slice(&within.to_le_bytes());
    }
    let length = (out.len() - at) as u16;
    out[list..][..2].copy_from_slice(&((4 + 2 * slots) as u16).to_le_bytes());
    out[list + 2..][..2].copy_from_slice(&length.to_le_bytes());
    for (place, field) in offsets {
        let target = written(out, field);
        point(out, place, target);
    }
    at
}
