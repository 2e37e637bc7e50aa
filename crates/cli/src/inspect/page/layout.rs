//! Where the boxes of a graph are drawn and how its edges run: in layers, each box below all that it reads.
//!
//! Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures", 1981. An
//! edge that passes layers has a place of its own in each, so that it passes no box; edges of the same value share it. Tall
//! drawings are cut into columns beside each other.

use std::collections::{BTreeMap, BTreeSet};

/// A box, in the drawing's units.
pub(super) const WIDTH: f64 = 200.0;
pub(super) const HEIGHT: f64 = 56.0;
/// Between two boxes of a layer, and between two layers.
const GAP: [f64; 2] = [22.0, 40.0];
/// What an edge takes in a layer that it passes.
const THREAD: f64 = 14.0;
/// Between two edges that run beside each other from one column to the next.
const TRACK: f64 = 7.0;
/// Around the drawing, and between columns beside the tracks.
const MARGIN: f64 = 30.0;
/// Width to height that columns are cut for: that of most windows.
const ASPECT: f64 = 1.7;
/// How often the layers are ordered and placed by those beside them.
const SWEEPS: usize = 12;

/// A place in a layer: of a box, or of a value that passes the layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Box(usize),
    Thread { source: usize, layer: usize },
}

/// The drawing: its size, the corner of each box, and each edge as the text of an SVG path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drawing {
    pub(super) size: [f64; 2],
    pub(super) boxes: Vec<[f64; 2]>,
    pub(super) edges: Vec<Edge>,
}

/// A stretch from one layer to the next: the box whose value it carries, the boxes that read it over this stretch, and its
/// path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edge {
    pub(super) source: usize,
    pub(super) readers: Vec<usize>,
    /// Whether a box begins to read here: the stretch ends with an arrow.
    pub(super) ends: bool,
    pub(super) path: String,
}

/// Layers of places, each with its centre, and what joins them.
struct Layers {
    layers: Vec<Vec<Item>>,
    centres: BTreeMap<Item, f64>,
    /// The items of the next layer that each item leads to (`below`), and those that lead to it (`above`).
    below: BTreeMap<Item, Vec<Item>>,
    above: BTreeMap<Item, Vec<Item>>,
    /// The boxes that a stretch leads to in the end.
    readers: BTreeMap<(Item, Item), Vec<usize>>,
}

/// Lays out `count` boxes, whose `edges` lead from earlier ones to later ones.
pub(super) fn layout(count: usize, edges: &[(usize, usize)]) -> Drawing {
    let mut layers = Layers::new(count, edges);
    layers.order();
    layers.place();
    layers.draw(count)
}

/// The layer of each box: after those it reads. What reads nothing is just before what reads it.
fn ranks(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut ranks: Vec<usize> = vec![0; count];
    let mut readers = vec![Vec::new(); count];
    let mut reads = vec![false; count];
    for &(from, to) in edges {
        readers[from].push(to);
        reads[to] = true;
    }
    for from in 0..count {
        for &to in &readers[from] {
            ranks[to] = ranks[to].max(ranks[from] + 1);
        }
    }
    for from in (0..count).filter(|&from| !reads[from]) {
        if let Some(first) = readers[from].iter().map(|&to| ranks[to]).min() {
            ranks[from] = first.saturating_sub(1);
        }
    }
    ranks
}

impl Layers {
    fn new(count: usize, edges: &[(usize, usize)]) -> Self {
        let ranks = ranks(count, edges);
        let mut found = Layers {
            layers: vec![Vec::new(); ranks.iter().map(|rank| rank + 1).max().unwrap_or(0)],
            centres: BTreeMap::new(),
            below: BTreeMap::new(),
            above: BTreeMap::new(),
            readers: BTreeMap::new(),
        };
        for (index, &rank) in ranks.iter().enumerate() {
            found.layers[rank].push(Item::Box(index));
        }
        for &(source, reader) in edges.iter().collect::<BTreeSet<_>>() {
            let mut from = Item::Box(source);
            for layer in ranks[source] + 1..=ranks[reader] {
                let to =
                    if layer == ranks[reader] { Item::Box(reader) } else { Item::Thread { source, layer } };
                let known = found.below.entry(from).or_default();
                if !known.contains(&to) {
                    known.push(to);
                    let above = found.above.entry(to).or_default();
                    if above.is_empty() && matches!(to, Item::Thread { .. }) {
                        found.layers[layer].push(to);
                    }
                    above.push(from);
                }
                found.readers.entry((from, to)).or_default().push(reader);
                from = to;
            }
        }
        found
    }

    /// Orders each layer by the mean place of what its items are joined with, from above and from below in turn.
    fn order(&mut self) {
        let mut places: BTreeMap<Item, f64> = BTreeMap::new();
        let note = |places: &mut BTreeMap<Item, f64>, layer: &[Item]| {
            let middle = layer.len() as f64 / 2.0;
            places.extend(layer.iter().enumerate().map(|(at, &item)| (item, at as f64 - middle)));
        };
        self.layers.iter().for_each(|layer| note(&mut places, layer));
        let mut best = (self.crossings(), self.layers.clone());
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let joined = if down { &self.above } else { &self.below };
            for step in 0..self.layers.len() {
                let layer = if down { step } else { self.layers.len() - 1 - step };
                let mean = |item: &Item| match joined.get(item) {
                    Some(beside) => beside.iter().map(|one| places[one]).sum::<f64>() / beside.len() as f64,
                    None => places[item],
                };
                let mut keyed: Vec<(f64, Item)> =
                    self.layers[layer].iter().map(|item| (mean(item), *item)).collect();
                keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
                self.layers[layer] = keyed.into_iter().map(|(_, item)| item).collect();
                note(&mut places, &self.layers[layer]);
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    /// How many pairs of stretches cross.
    fn crossings(&self) -> usize {
        let mut count = 0;
        for pair in self.layers.windows(2) {
            let place: BTreeMap<Item, usize> =
                pair[1].iter().enumerate().map(|(at, &item)| (item, at)).collect();
            let ends = pair[0].iter().flat_map(|item| {
                let mut ends: Vec<usize> =
                    self.below.get(item).into_iter().flatten().map(|to| place[to]).collect();
                ends.sort_unstable();
                ends
            });
            let ends: Vec<usize> = ends.collect();
            for (at, end) in ends.iter().enumerate() {
                count += ends[at + 1..].iter().filter(|later| *later < end).count();
            }
        }
        count
    }

    /// Gives each item its centre: as near as there is room to what it is joined with.
    fn place(&mut self) {
        for layer in &self.layers {
            let mut at = 0.0;
            for &item in layer {
                self.centres.insert(item, at + extent(item) / 2.0);
                at += extent(item) + GAP[0];
            }
        }
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            for step in 0..self.layers.len() {
                let layer = if down { step } else { self.layers.len() - 1 - step };
                let joined = if down { &self.above } else { &self.below };
                let wanted = |item: &Item| {
                    let mut beside: Vec<f64> =
                        joined.get(item).into_iter().flatten().map(|one| self.centres[one]).collect();
                    beside.sort_by(f64::total_cmp);
                    // Of two the left one, so that a chain runs straight beside the edges that skip its boxes.
                    let middle = beside.get(beside.len().saturating_sub(1) / 2);
                    middle.copied().unwrap_or(self.centres[item])
                };
                // An edge runs straight through the layers that it passes, and bends where it begins and ends: there the
                // box that it skips stays in line.
                let weight = |item: &Item| match (item, joined.get(item).and_then(|beside| beside.first())) {
                    (Item::Box(_), _) | (_, None) => 1.0,
                    (Item::Thread { .. }, Some(Item::Thread { .. })) => 4.0,
                    (Item::Thread { .. }, Some(Item::Box(_))) => 0.1,
                };
                let items = &self.layers[layer];
                let wanted: Vec<(f64, f64)> = items.iter().map(|item| (wanted(item), weight(item))).collect();
                let placed = apart(items, &wanted);
                self.centres.extend(items.iter().copied().zip(placed));
            }
        }
    }
}

/// What an item takes of its layer's width.
fn extent(item: Item) -> f64 {
    match item {
        Item::Box(_) => WIDTH,
        Item::Thread { .. } => THREAD,
    }
}

/// The centres nearest to those wanted (weighted least squares) with which the items keep their order and their distances.
fn apart(items: &[Item], wanted: &[(f64, f64)]) -> Vec<f64> {
    let mut offsets = Vec::with_capacity(items.len());
    let mut at = 0.0;
    for (index, &item) in items.iter().enumerate() {
        if index > 0 {
            at += (extent(items[index - 1]) + extent(item)) / 2.0 + GAP[0];
        }
        offsets.push(at);
    }
    // Without the distances it is an isotonic regression, which merging neighbours that violate the order solves.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (&(wanted, weight), &offset) in wanted.iter().zip(&offsets) {
        let mut block = (wanted - offset, weight, 1);
        while let Some(&(mean, before, count)) = blocks.last().filter(|last| last.0 > block.0) {
            let sum = before + block.1;
            block = ((mean * before + block.0 * block.1) / sum, sum, count + block.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    let means = blocks.into_iter().flat_map(|(mean, _, count)| std::iter::repeat_n(mean, count));
    means.zip(offsets).map(|(mean, offset)| mean + offset).collect()
}

/// A part of the layers that is drawn as a column.
struct Column {
    layers: std::ops::Range<usize>,
    /// From the items' centres to the drawing's.
    shift: f64,
    right: f64,
}

impl Layers {
    /// The least and the largest coordinate of some layers.
    fn span(&self, layers: std::ops::Range<usize>) -> [f64; 2] {
        let items = self.layers[layers].iter().flatten();
        items.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &item| {
            let (centre, half) = (self.centres[&item], extent(item) / 2.0);
            [low.min(centre - half), high.max(centre + half)]
        })
    }

    /// How many stretches lead into a layer.
    fn entering(&self, layer: usize) -> usize {
        self.layers[layer].iter().filter_map(|item| self.above.get(item)).map(Vec::len).sum()
    }

    /// The layers that each column has: of the numbers of columns the one whose drawing is most like a window, cut where few
    /// edges are.
    fn cuts(&self) -> Vec<std::ops::Range<usize>> {
        let count = self.layers.len();
        let cut = |columns: usize| -> Vec<std::ops::Range<usize>> {
            let mut starts = vec![0];
            for column in 1..columns {
                let ideal = column * count / columns;
                let slack = count / columns / 6;
                let low = (ideal - slack).max(starts[column - 1] + 1);
                let choices = low..=(ideal + slack).max(low).min(count - 1);
                let best = choices.min_by_key(|&layer| (self.entering(layer), layer.abs_diff(ideal)));
                starts.push(best.unwrap_or(ideal));
            }
            starts.iter().zip(starts.iter().skip(1).chain([&count])).map(|(&from, &to)| from..to).collect()
        };
        let shape = |columns: &Vec<std::ops::Range<usize>>| {
            let width: f64 = columns
                .iter()
                .map(|layers| {
                    let [low, high] = self.span(layers.clone());
                    high - low + MARGIN + TRACK * self.entering(layers.start) as f64
                })
                .sum();
            let tallest = columns.iter().map(|layers| layers.len()).max().unwrap_or(1);
            (width / (tallest as f64 * (HEIGHT + GAP[1])) / ASPECT).ln().abs()
        };
        let tried = (1..=count.div_ceil(4).clamp(1, 40)).map(cut);
        tried.min_by(|one, other| shape(one).total_cmp(&shape(other))).unwrap_or_default()
    }

    fn draw(&self, count: usize) -> Drawing {
        if self.layers.is_empty() {
            return Drawing { size: [2.0 * MARGIN; 2], boxes: Vec::new(), edges: Vec::new() };
        }
        let cuts = self.cuts();
        let most = cuts.iter().skip(1).map(|layers| self.entering(layers.start)).max().unwrap_or(0) as f64;
        let top = MARGIN + TRACK * most;
        let mut columns: Vec<Column> = Vec::new();
        let mut right = 0.0;
        for layers in cuts {
            // The tracks of what enters this column are on its left.
            let tracks = if layers.start > 0 { TRACK * self.entering(layers.start) as f64 } else { 0.0 };
            let left = right + MARGIN + tracks;
            let [low, high] = self.span(layers.clone());
            right = left + high - low;
            columns.push(Column { layers, shift: left - low, right });
        }
        let place = |item: Item, layer: usize| {
            let column = columns.iter().find(|column| column.layers.contains(&layer));
            let (shift, first) = column.map_or((0.0, 0), |column| (column.shift, column.layers.start));
            [self.centres[&item] + shift, top + (layer - first) as f64 * (HEIGHT + GAP[1])]
        };
        let mut boxes = vec![[0.0; 2]; count];
        let mut edges = Vec::new();
        let tallest = columns.iter().map(|column| column.layers.len()).max().unwrap_or(1) as f64;
        let bottom = top + tallest * (HEIGHT + GAP[1]) - GAP[1];
        for (layer, items) in self.layers.iter().enumerate() {
            let breaks = columns.iter().position(|column| column.layers.end == layer + 1);
            let mut track = 0.0;
            for &from in items {
                let [x, y] = place(from, layer);
                if let Item::Box(index) = from {
                    boxes[index] = [x - WIDTH / 2.0, y];
                }
                let source = match from {
                    Item::Box(source) | Item::Thread { source, .. } => source,
                };
                for &to in self.below.get(&from).into_iter().flatten() {
                    let end = place(to, layer + 1);
                    // A thread is drawn through its layer.
                    let start = [x, y + HEIGHT];
                    let through = match from {
                        Item::Thread { .. } => format!("M{x:.1} {y:.1}V{:.1}", start[1]),
                        Item::Box(_) => format!("M{x:.1} {:.1}", start[1]),
                    };
                    let path = match breaks.filter(|&column| column + 1 < columns.len()) {
                        None => through + &curve(start, end),
                        Some(column) => {
                            track += 1.0;
                            let side = columns[column].right + MARGIN / 2.0 + TRACK * track;
                            through + &around(start, end, side, TRACK * track)
                        }
                    };
                    let readers = self.readers.get(&(from, to)).cloned().unwrap_or_default();
                    edges.push(Edge { source, readers, ends: matches!(to, Item::Box(_)), path });
                }
            }
        }
        Drawing { size: [right + MARGIN, bottom + TRACK * most + MARGIN], boxes, edges }
    }
}

/// Down to the next layer.
fn curve([x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) -> String {
    if (x1 - x2).abs() < 0.5 {
        return format!("V{y2:.1}");
    }
    let middle = (y1 + y2) / 2.0;
    format!("C{x1:.1} {middle:.1} {x2:.1} {middle:.1} {x2:.1} {y2:.1}")
}

/// A path to the top of the next column: below the layer, up beside the column, and in from above, with round corners.
fn around([x1, y1]: [f64; 2], [x2, y2]: [f64; 2], side: f64, track: f64) -> String {
    let (low, high) = (y1 + 8.0 + track, y2 - 8.0 - track);
    let r = 5.0;
    let in_to = if x2 >= side { r } else { -r };
    format!(
        "V{:.1}Q{x1:.1} {low:.1} {:.1} {low:.1}H{:.1}Q{side:.1} {low:.1} {side:.1} {:.1}V{:.1}Q{side:.1} {high:.1} {:.1} \
         {high:.1}H{:.1}Q{x2:.1} {high:.1} {x2:.1} {:.1}V{y2:.1}",
        low - r,
        x1 + r,
        side - r,
        low - r,
        high + r,
        side + in_to,
        x2 - in_to,
        high + r
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end points and control points of a path, through which or near which it runs.
    fn points(path: &str) -> Vec<[f64; 2]> {
        let (mut points, mut at) = (Vec::new(), [0.0; 2]);
        let spaced: String = path
            .chars()
            .map(|letter| if letter.is_alphabetic() { format!(" {letter} ") } else { letter.to_string() })
            .collect();
        let mut words = spaced.split_whitespace().peekable();
        while let Some(command) = words.next() {
            let mut numbers = Vec::new();
            while let Some(number) = words.peek().and_then(|word| word.parse::<f64>().ok()) {
                numbers.push(number);
                words.next();
            }
            match (command, &numbers[..]) {
                ("V", &[y]) => at[1] = y,
                ("H", &[x]) => at[0] = x,
                (_, numbers) => {
                    for pair in numbers.chunks(2) {
                        at = [pair[0], pair[1]];
                        points.push(at);
                    }
                }
            }
            points.push(at);
        }
        points
    }

    /// A chain with a skip over each third box, and one edge over all.
    fn chain(count: usize) -> Vec<(usize, usize)> {
        let mut edges: Vec<(usize, usize)> = (1..count).map(|to| (to - 1, to)).collect();
        edges.extend((0..count.saturating_sub(4)).step_by(3).map(|from| (from, from + 4)));
        edges.push((0, count - 1));
        edges
    }

    #[test]
    fn no_edge_runs_behind_a_box_and_no_two_boxes_overlap() {
        for count in [2, 7, 40, 150] {
            let edges = chain(count);
            let drawing = layout(count, &edges);
            let inside = |[x, y]: [f64; 2], [left, top]: [f64; 2]| {
                x > left + 1.0 && x < left + WIDTH - 1.0 && y > top + 1.0 && y < top + HEIGHT - 1.0
            };
            for edge in &drawing.edges {
                for pair in points(&edge.path).windows(2) {
                    // Straight between these, or nearer to the line than to their box's other side.
                    for part in 0..=20 {
                        let share = f64::from(part) / 20.0;
                        let point =
                            [0, 1].map(|axis| pair[0][axis] + share * (pair[1][axis] - pair[0][axis]));
                        let hit = drawing.boxes.iter().position(|&corner| inside(point, corner));
                        assert_eq!(hit, None, "{count}: {} at {point:?}", edge.path);
                    }
                    assert!(
                        pair.iter().all(|[x, y]| (0.0..=drawing.size[0]).contains(x)
                            && (0.0..=drawing.size[1]).contains(y))
                    );
                }
            }
            for (index, one) in drawing.boxes.iter().enumerate() {
                for other in &drawing.boxes[index + 1..] {
                    let apart = (one[0] - other[0]).abs() >= WIDTH || (one[1] - other[1]).abs() >= HEIGHT;
                    assert!(apart, "{count}: {one:?} and {other:?}");
                }
            }
        }
    }

    #[test]
    fn every_reader_is_led_to_from_what_it_reads() {
        let edges = chain(40);
        let drawing = layout(40, &edges);
        for &(from, to) in &edges {
            let stretches =
                drawing.edges.iter().filter(|edge| edge.source == from && edge.readers.contains(&to));
            assert!(stretches.clone().any(|edge| edge.ends), "{from} to {to}");
            let first = stretches.map(|edge| points(&edge.path)[0]).any(|[x, y]| {
                let [left, top] = drawing.boxes[from];
                (x - left - WIDTH / 2.0).abs() < 1.0 && (y - top - HEIGHT).abs() < 1.0
            });
            assert!(first, "{from} to {to} does not begin at its box");
        }
    }

    #[test]
    fn a_long_chain_is_about_as_wide_as_tall() {
        let edges: Vec<(usize, usize)> = (1..120).map(|to| (to - 1, to)).collect();
        let [width, height] = layout(120, &edges).size;
        assert!((0.8..3.5).contains(&(width / height)), "{width} x {height}");
        assert_eq!(layout(0, &[]).boxes.len(), 0);
    }

    #[test]
    fn what_reads_nothing_stands_before_its_reader() {
        // 0 -> 1 -> 2 -> 4, and 3 -> 4.
        assert_eq!(ranks(5, &[(0, 1), (1, 2), (2, 4), (3, 4)]), [0, 1, 2, 2, 3]);
    }
}
