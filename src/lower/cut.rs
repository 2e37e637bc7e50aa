//! Which units are worth f16: those that save more than the conversions between them and others cost, as a minimum cut.
//!
//! A unit in f16 saves so much; a value of which some units use halves and others do not is converted, at a cost. The set
//! of units in f16 that saves most, conversions paid, is one side of a minimum cut (project selection: Picard, *Maximal
//! closure of a graph and applications to combinatorial problems*, 1976), which a maximum flow finds (Dinic, 1970).

use std::collections::VecDeque;

/// More than any sum of what units save.
const ENDLESS: u64 = u64::MAX / 4;

const SOURCE: usize = 0;
const SINK: usize = 1;

/// An edge, and how much more may flow along it. Edge `e ^ 1` goes back.
#[derive(Debug)]
struct Edge {
    to: usize,
    left: u64,
}

/// What is known of units and values.
#[derive(Debug, Default)]
pub(super) struct Cut {
    edges: Vec<Edge>,
    /// The edges from each node.
    from: Vec<Vec<usize>>,
    units: usize,
}

impl Cut {
    /// Units that save so much in f16; none where one stays in f32.
    pub(super) fn new(saves: &[Option<u64>]) -> Self {
        let mut cut = Cut { edges: Vec::new(), from: vec![Vec::new(); 2 + saves.len()], units: saves.len() };
        for (unit, saves) in saves.iter().enumerate() {
            match saves {
                Some(saves) => cut.join(SOURCE, 2 + unit, *saves),
                None => cut.join(2 + unit, SINK, ENDLESS),
            }
        }
        cut
    }

    /// A value that these units write or read, and what it costs to convert it.
    pub(super) fn value(&mut self, units: &[usize], cost: u64) {
        if units.len() < 2 {
            return;
        }
        // Cut between the two if one unit is on either side.
        let (first, second) = (self.from.len(), self.from.len() + 1);
        self.from.extend([Vec::new(), Vec::new()]);
        self.join(first, second, cost);
        for unit in units {
            self.join(2 + unit, first, ENDLESS);
            self.join(second, 2 + unit, ENDLESS);
        }
    }

    fn join(&mut self, from: usize, to: usize, capacity: u64) {
        for (from, to, left) in [(from, to, capacity), (to, from, 0)] {
            self.from[from].push(self.edges.len());
            self.edges.push(Edge { to, left });
        }
    }

    /// Whether each unit is in f16.
    pub(super) fn narrow(mut self) -> Vec<bool> {
        while let Some(levels) = self.levels() {
            self.block(&levels);
        }
        // What cannot reach the sink: where it makes no difference, a unit is in f16.
        let mut wide = vec![false; self.from.len()];
        wide[SINK] = true;
        let mut queue = VecDeque::from([SINK]);
        while let Some(node) = queue.pop_front() {
            for &edge in &self.from[node] {
                let before = self.edges[edge].to;
                if self.edges[edge ^ 1].left > 0 && !wide[before] {
                    wide[before] = true;
                    queue.push_back(before);
                }
            }
        }
        wide[2..2 + self.units].iter().map(|wide| !wide).collect()
    }

    /// How many edges each node is from the source, if the sink can be reached.
    fn levels(&self) -> Option<Vec<usize>> {
        let mut levels = vec![usize::MAX; self.from.len()];
        levels[SOURCE] = 0;
        let mut queue = VecDeque::from([SOURCE]);
        while let Some(node) = queue.pop_front() {
            for &edge in &self.from[node] {
                let Edge { to, left } = self.edges[edge];
                if left > 0 && levels[to] == usize::MAX {
                    levels[to] = levels[node] + 1;
                    queue.push_back(to);
                }
            }
        }
        (levels[SINK] != usize::MAX).then_some(levels)
    }

    /// Sends along all shortest paths what they take.
    fn block(&mut self, levels: &[usize]) {
        let mut next = vec![0; self.from.len()];
        let mut path: Vec<usize> = Vec::new();
        loop {
            let node = path.last().map_or(SOURCE, |&edge| self.edges[edge].to);
            if node == SINK {
                let least = path.iter().map(|&edge| self.edges[edge].left).min().unwrap_or_default();
                for &edge in &path {
                    self.edges[edge].left -= least;
                    self.edges[edge ^ 1].left += least;
                }
                path.clear();
                continue;
            }
            match self.from[node].get(next[node]) {
                Some(&edge) => {
                    let Edge { to, left } = self.edges[edge];
                    if left > 0 && levels[to] == levels[node] + 1 {
                        path.push(edge);
                    } else {
                        next[node] += 1;
                    }
                }
                // A dead end: the edge that leads here is not tried again.
                None => match path.pop() {
                    Some(edge) => next[self.edges[edge ^ 1].to] += 1,
                    None => return,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What f16 saves in all.
    fn worth(saves: &[Option<u64>], values: &[(Vec<usize>, u64)], narrow: &[bool]) -> i64 {
        let saved: u64 =
            saves.iter().zip(narrow).filter(|(_, narrow)| **narrow).filter_map(|(s, _)| *s).sum();
        let split = |units: &[usize]| units.iter().any(|&unit| narrow[unit] != narrow[units[0]]);
        let paid: u64 = values.iter().filter(|(units, _)| split(units)).map(|(_, cost)| cost).sum();
        saved as i64 - paid as i64
    }

    #[test]
    fn a_part_stays_where_the_whole_would_not_pay() {
        // A chain in which unit 3 is in f32: the two behind it do not save what their conversion costs, those before do.
        let saves = [Some(30), Some(30), Some(30), None, Some(30), Some(30)];
        let mut cut = Cut::new(&saves);
        (0..5).for_each(|unit| cut.value(&[unit, unit + 1], 70));
        assert_eq!(cut.narrow(), [true, true, true, false, false, false]);
        // What costs as much as it saves is in f16.
        let mut cut = Cut::new(&[Some(7), None]);
        cut.value(&[0, 1], 7);
        assert_eq!(cut.narrow(), [true, false]);
        // Nothing is converted where all may be.
        let mut cut = Cut::new(&[Some(0), Some(1)]);
        cut.value(&[0, 1], 1000);
        assert_eq!(cut.narrow(), [true, true]);
    }

    proptest! {
        #[test]
        fn nothing_saves_more(
            saves in prop::collection::vec(prop::option::weighted(0.8, 0u64..100), 1..9),
            values in prop::collection::vec((prop::collection::btree_set(0usize..9, 1..5), 0u64..120), 0..14),
        ) {
            let within = |(units, cost): &(std::collections::BTreeSet<usize>, u64)| {
                (units.iter().copied().filter(|&unit| unit < saves.len()).collect::<Vec<_>>(), *cost)
            };
            let values: Vec<(Vec<usize>, u64)> =
                values.iter().map(within).filter(|(units, _)| !units.is_empty()).collect();
            let mut cut = Cut::new(&saves);
            values.iter().for_each(|(units, cost)| cut.value(units, *cost));
            let found = cut.narrow();
            prop_assert!(found.iter().zip(&saves).all(|(narrow, saves)| !narrow || saves.is_some()));
            let all = (0..1u32 << saves.len()).map(|set| {
                let narrow: Vec<bool> =
                    saves.iter().enumerate().map(|(unit, s)| s.is_some() && set >> unit & 1 == 1).collect();
                worth(&saves, &values, &narrow)
            });
            prop_assert_eq!(Some(worth(&saves, &values, &found)), all.max());
        }
    }
}
