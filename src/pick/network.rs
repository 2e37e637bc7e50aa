//! The layout of every node of a network at once: its own time in each, and what the changes
//! between nodes cost.
//!
//! Each node `i` is in layout `x_i`, 0 or 1, at a time `t_i(x_i)`. A value that is wanted in the
//! layout that its producer does not write is changed once for all that read it so:
//!
//! ```text
//! minimize sum_i t_i(x_i) + sum_v [x_p(v) = 0, some consumer in 1] up(v)
//!                         + sum_v [x_p(v) = 1, some consumer in 0] down(v)
//! ```
//!
//! That is a minimum cut (a node's side is its layout; two helper nodes for each value express "some
//! consumer"), found exactly with blocking flows (Dinic, 1970).

use std::collections::VecDeque;
use std::time::Duration;

/// A value that one node writes and others read.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    /// The node that writes it.
    pub(crate) producer: usize,
    /// The nodes that read it.
    pub(crate) consumers: Vec<usize>,
    /// What it costs to change it from layout 0 to 1, and from 1 to 0.
    pub(crate) change: [Duration; 2],
}

/// Stands for a layout that a node cannot have.
const NEVER: u64 = u64::MAX / 1024;

/// The cheapest layout of each node, 0 or 1; `times` are those of each node in both, `None` where it
/// cannot run. Of several cheapest answers the one with the most nodes in layout 0.
pub(crate) fn cheapest(times: &[[Option<Duration>; 2]], edges: &[Edge]) -> Vec<usize> {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(NEVER).min(NEVER);
    let cost = |time: Option<Duration>| time.map_or(NEVER, nanoseconds);
    let (count, helpers) = (times.len(), 2 * edges.len());
    let (source, sink) = (count + helpers, count + helpers + 1);
    let mut flow = Flow::new(sink + 1);
    // On the source's side a node is in layout 0, and pays its edge to the sink.
    for (node, [zero, one]) in times.iter().enumerate() {
        // What both cost is paid in any case.
        let (zero, one) = (cost(*zero), cost(*one));
        flow.connect(node, sink, zero - zero.min(one));
        flow.connect(source, node, one - zero.min(one));
    }
    for (index, edge) in edges.iter().enumerate() {
        let [any_one, all_one] = [count + 2 * index, count + 2 * index + 1];
        flow.connect(edge.producer, any_one, nanoseconds(edge.change[0]));
        flow.connect(all_one, edge.producer, nanoseconds(edge.change[1]));
        for &consumer in &edge.consumers {
            flow.connect(any_one, consumer, NEVER);
            flow.connect(consumer, all_one, NEVER);
        }
    }
    while let Some(levels) = flow.levels(source, sink) {
        flow.block(&levels, source, sink);
    }
    // What the sink can still be reached from is on its side for certain; the rest may be layout 0.
    let reaches = flow.reaches(sink);
    (0..count).map(|node| usize::from(reaches[node])).collect()
}

/// A flow network; the reverse of each pipe is at the index with the last bit flipped.
struct Flow {
    from: Vec<Vec<usize>>,
    pipes: Vec<(usize, u64)>,
}

impl Flow {
    fn new(nodes: usize) -> Self {
        Flow { from: vec![Vec::new(); nodes], pipes: Vec::new() }
    }

    fn connect(&mut self, from: usize, to: usize, capacity: u64) {
        for (from, to, capacity) in [(from, to, capacity), (to, from, 0)] {
            self.from[from].push(self.pipes.len());
            self.pipes.push((to, capacity));
        }
    }

    /// How many pipes that are not full each node is from `source`; `None` if there is no way to `sink`.
    fn levels(&self, source: usize, sink: usize) -> Option<Vec<usize>> {
        let mut levels = vec![usize::MAX; self.from.len()];
        levels[source] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(node) = queue.pop_front() {
            for &pipe in &self.from[node] {
                let (to, left) = self.pipes[pipe];
                if left > 0 && levels[to] == usize::MAX {
                    levels[to] = levels[node] + 1;
                    queue.push_back(to);
                }
            }
        }
        (levels[sink] != usize::MAX).then_some(levels)
    }

    /// Sends what fits along ways from level to level, until each has a full pipe.
    fn block(&mut self, levels: &[usize], source: usize, sink: usize) {
        let mut next = vec![0; self.from.len()];
        let mut way: Vec<usize> = Vec::new();
        loop {
            let node = way.last().map_or(source, |&pipe| self.pipes[pipe].0);
            if node == sink {
                let most = way.iter().map(|&pipe| self.pipes[pipe].1).min().unwrap_or(0);
                for &pipe in &way {
                    self.pipes[pipe].1 -= most;
                    self.pipes[pipe ^ 1].1 += most;
                }
                let full = way.iter().position(|&pipe| self.pipes[pipe].1 == 0).unwrap_or(0);
                way.truncate(full);
                continue;
            }
            match self.from[node].get(next[node]) {
                Some(&pipe) => {
                    let (to, left) = self.pipes[pipe];
                    if left > 0 && levels[to] == levels[node] + 1 {
                        way.push(pipe);
                    } else {
                        next[node] += 1;
                    }
                }
                // Nothing more goes through this node.
                None => match way.pop() {
                    Some(pipe) => next[self.pipes[pipe ^ 1].0] += 1,
                    None => return,
                },
            }
        }
    }

    /// Whether each node has a way to `sink` that is not full.
    fn reaches(&self, sink: usize) -> Vec<bool> {
        let mut reaches = vec![false; self.from.len()];
        reaches[sink] = true;
        let mut queue = VecDeque::from([sink]);
        while let Some(node) = queue.pop_front() {
            for &pipe in &self.from[node] {
                let (other, back) = (self.pipes[pipe].0, self.pipes[pipe ^ 1].1);
                if back > 0 && !reaches[other] {
                    reaches[other] = true;
                    queue.push_back(other);
                }
            }
        }
        reaches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ns(time: u64) -> Duration {
        Duration::from_nanos(time)
    }

    fn total(times: &[[Option<Duration>; 2]], edges: &[Edge], layouts: &[usize]) -> Option<Duration> {
        let own: Option<Duration> = times.iter().zip(layouts).map(|(times, &layout)| times[layout]).sum();
        let changes = edges.iter().filter_map(|edge| {
            let from = layouts[edge.producer];
            edge.consumers.iter().any(|&consumer| layouts[consumer] != from).then_some(edge.change[from])
        });
        Some(own? + changes.sum())
    }

    #[test]
    fn a_gain_that_changes_of_layout_eat_up_is_none() {
        // The middle node would gain 4, and two changes cost 5.
        let times = [[Some(ns(10)), None], [Some(ns(10)), Some(ns(6))], [Some(ns(10)), None]];
        let edge = |producer, cost| Edge { producer, consumers: vec![producer + 1], change: [ns(cost); 2] };
        assert_eq!(cheapest(&times, &[edge(0, 3), edge(1, 2)]), [0, 0, 0]);
        assert_eq!(cheapest(&times, &[edge(0, 2), edge(1, 1)]), [0, 1, 0]);
        assert_eq!(cheapest(&times, &[edge(0, 2), edge(1, 2)]), [0, 0, 0], "equal: no change");
    }

    #[test]
    fn neighbours_share_a_change() {
        // Each of four readers alone would gain 2 for a change that costs 5.
        let times: Vec<_> = (0..5).map(|node| [Some(ns(10)), (node > 0).then_some(ns(8))]).collect();
        let edge = Edge { producer: 0, consumers: vec![1, 2, 3, 4], change: [ns(5); 2] };
        assert_eq!(cheapest(&times, &[edge]), [0, 1, 1, 1, 1]);
    }

    proptest! {
        #[test]
        fn it_is_the_cheapest_of_all(
            nodes in prop::collection::vec((0u64..50, 0u64..50, 0u8..6), 1..8),
            links in prop::collection::vec((0usize..8, 0u8..=255, 0u64..30, 0u64..30), 0..8),
        ) {
            let times: Vec<[Option<Duration>; 2]> = nodes
                .iter()
                .map(|&(zero, one, kind)| [
                    (kind != 0).then_some(ns(zero)),
                    (kind != 1).then_some(ns(one)),
                ])
                .collect();
            let edges: Vec<Edge> = links
                .iter()
                .filter_map(|&(producer, readers, up, down)| {
                    let consumers: Vec<usize> =
                        (producer + 1..times.len()).filter(|node| readers >> node & 1 == 1).collect();
                    (producer < times.len()).then(|| Edge { producer, consumers, change: [ns(up), ns(down)] })
                })
                .collect();
            let every = (0..1usize << times.len()).filter_map(|bits| {
                let layouts: Vec<usize> = (0..times.len()).map(|node| bits >> node & 1).collect();
                total(&times, &edges, &layouts)
            });
            let found = total(&times, &edges, &cheapest(&times, &edges));
            prop_assert_eq!(found, every.min());
        }
    }
}
