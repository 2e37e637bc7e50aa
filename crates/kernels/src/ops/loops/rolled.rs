//! Circular shifts, which files write as two slices and a concatenation: `concat(x[s:], x[:s])` is `x[(i + s) % n]`, one read
//! instead of a choice of two.

use super::index::{Index, Term};
use super::nest::{Guard, Nest, Node};

impl Nest {
    /// The nest with one read in the place of each choice of two that are a circular shift along an axis. It is for devices: the
    /// CPU copies the two parts faster, each as a whole.
    #[must_use]
    pub fn rolled(self) -> Nest {
        let reads: Vec<(usize, Node)> =
            (0..self.nodes.len()).filter_map(|id| Some((id, self.roll(id)?))).collect();
        if reads.is_empty() {
            return self;
        }
        let mut nest = self.clone();
        for (id, read) in reads {
            nest.nodes[id] = read;
        }
        nest.tidied().checked().unwrap_or(self)
    }

    /// What choice `id` reads, if it is `x[i + s]` for the first places of an axis and `x[i + s - n]` for the others.
    fn roll(&self, id: usize) -> Option<Node> {
        let Node::Choose { guards, then, otherwise } = self.nodes.get(id)? else { return None };
        let [guard] = &guards[..] else { return None };
        let axis = guard.index.plus(&Index::number(guard.index.constant()), -1);
        let Some(&Term::Axis(own)) = axis.as_term() else { return None };
        let extent = *self.extents.get(usize::from(own))? as i64;
        // The first places of the axis, and those behind them.
        let (first, [ahead, behind]) = match -guard.index.constant() {
            0 => (guard.below, [then, otherwise]),
            first if first > 0 && first + guard.below == extent => (first, [otherwise, then]),
            _ => return None,
        };
        let count = extent - first;
        let (
            Node::Read { source, at: ahead, guards: held, otherwise: number },
            Node::Read { source: same, at: behind, guards: held_behind, otherwise: same_number },
        ) = (self.nodes.get(*ahead)?, self.nodes.get(*behind)?)
        else {
            return None;
        };
        let last = Guard { index: axis.plus(&Index::number(first), -1), below: count };
        let without = |held: &[Guard], guard: &Guard| -> Vec<Guard> {
            held.iter().filter(|own| *own != guard).cloned().collect()
        };
        let left = without(held, &Guard { index: axis.clone(), below: first });
        if source != same || number != same_number || count <= 0 || left != without(held_behind, &last) {
            return None;
        }
        let within = |at: &Index, index: &Index, most: i64| match most {
            // Of one place there is no term.
            1 => None,
            _ => at.terms().get(&Term::Inside(Box::new(index.clone()), most)).copied(),
        };
        let factors = [within(behind, &last.index, count), within(ahead, &axis, first)];
        let factor = factors[0].or(factors[1])?;
        let rest = |at: &Index, index: &Index, most: i64| match most {
            1 => at.clone(),
            _ => at.plus(&Index::term(Term::Inside(Box::new(index.clone()), most)), -factor),
        };
        let (behind, ahead) = (rest(behind, &last.index, count), rest(ahead, &axis, first));
        if ahead != behind.plus(&Index::number(factor), count) {
            return None;
        }
        let place = axis.plus(&Index::number(count), 1).remainder(extent, &self.extents);
        let at = behind.plus(&place, factor);
        Some(Node::Read { source: *source, at, guards: left, otherwise: *number })
    }
}

#[cfg(test)]
mod tests {
    use crate::dims::Dims;
    use crate::emit::Bits;
    use crate::ops::loops::index::Index;
    use crate::ops::loops::nest::{Guard, Nest, Node, Nodes};

    /// `concat(x[begins[0]..], x[begins[1]..])` of `n` rows of four, `first + count = n`: a choice of the last part or else the first
    /// one, or the other way round.
    fn concatenated(first: i64, begins: [i64; 2], [count, n]: [i64; 2], last: bool) -> Nest {
        let extents = vec![n as usize, 4];
        let part = |begin: i64, along: Index, own: i64| {
            let guards = vec![Guard { index: along.clone(), below: own }];
            let row = along.inside(own, &extents).plus(&Index::number(begin), 1);
            (
                Node::Read {
                    source: 0,
                    at: Index::axis(1).plus(&row, 4),
                    guards: guards.clone(),
                    otherwise: Bits(0.0),
                },
                guards,
            )
        };
        let mut nodes = Nodes::default();
        let (ahead, guards_ahead) = part(begins[0], Index::axis(0), first);
        let (behind, guards) = part(begins[1], Index::axis(0).plus(&Index::number(-first), 1), count);
        let (ahead, behind) = (nodes.add(ahead), nodes.add(behind));
        let (guards, then, otherwise) =
            if last { (guards, behind, ahead) } else { (guards_ahead, ahead, behind) };
        let value = nodes.add(Node::Choose { guards, then, otherwise });
        let dims = Dims::new(&extents).expect("small");
        Nest::new(extents.clone(), vec![0, 1], vec![dims], nodes, value, dims).expect("a nest").rolled()
    }

    #[test]
    fn a_circular_shift_is_one_read() {
        for (first, count, last) in [(3, 2, true), (3, 2, false), (1, 4, true), (4, 1, false), (2, 2, false)]
        {
            let n = first + count;
            let nest = concatenated(first, [count, 0], [count, n], last);
            let [Node::Read { at, guards, .. }] = &nest.nodes[..] else { panic!("{:?}", nest.nodes) };
            assert!(guards.is_empty());
            for row in 0..n {
                let index: Vec<usize> = match nest.extents.len() {
                    1 => vec![4 * row as usize],
                    _ => vec![row as usize, 0],
                };
                assert_eq!(at.value(&index), 4 * ((row + count) % n), "{first} {count} {at}");
            }
        }
        // Parts that begin elsewhere.
        assert!(concatenated(3, [1, 0], [2, 5], true).nodes.len() > 1);
        assert!(concatenated(3, [2, 1], [2, 5], true).nodes.len() > 1);
    }
}
