//! Nodes in an order in which each reads what those before it write.

use super::schema::{Node, captures};
use crate::model::budget::Budget;
use crate::model::reason::Reason;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The nodes of a file, numbered as they lie in it, and in their order if that is one to compute them in; else in the
/// nearest such order. Where nodes wait for each other the order stays, and what reads a tensor too early is refused.
pub(super) fn sorted<'a>(mut nodes: Vec<Node<'a>>, budget: &mut Budget) -> Result<Vec<Node<'a>>, Reason> {
    let mut writers: HashMap<&str, usize> = HashMap::new();
    budget.spend(64 * nodes.len())?;
    for (index, node) in nodes.iter_mut().enumerate() {
        node.index = index;
        for &name in node.outputs.iter().filter(|name| !name.is_empty()) {
            writers.entry(name).or_insert(index);
        }
    }
    // For each node those that wait for it, and for how many it waits.
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut open = vec![0usize; nodes.len()];
    let mut is_sorted = true;
    let mut read = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        read.clear();
        read.extend(node.inputs.iter().copied());
        captures(node, &mut read);
        budget.spend(32 * read.len())?;
        let needed = read.iter().filter_map(|name| writers.get(name).copied());
        for writer in needed.filter(|&writer| writer != index) {
            is_sorted &= writer < index;
            waiting[writer].push(index);
            open[index] += 1;
        }
    }
    if is_sorted {
        return Ok(nodes);
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..nodes.len()).filter(|&index| open[index] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for &next in &waiting[index] {
            open[next] -= 1;
            if open[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    if order.len() < nodes.len() {
        return Ok(nodes);
    }
    let mut places = vec![0; nodes.len()];
    order.iter().enumerate().for_each(|(place, &index)| places[index] = place);
    crate::sorted::sort_by_key(&mut nodes, |node| places[node.index]);
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(input: &'static str, output: &'static str) -> Node<'static> {
        Node { inputs: vec![input], outputs: vec![output], ..Node::default() }
    }

    fn order(nodes: Vec<Node<'static>>) -> Vec<usize> {
        let sorted = sorted(nodes, &mut Budget::new(1 << 20)).expect("few nodes");
        sorted.iter().map(|node| node.index).collect()
    }

    #[test]
    fn each_node_comes_behind_those_that_it_reads() {
        assert_eq!(order(vec![node("x", "a"), node("a", "b"), node("b", "c")]), [0, 1, 2]);
        assert_eq!(order(vec![node("b", "c"), node("a", "b"), node("x", "a")]), [2, 1, 0]);
        // What needs not move stays in the file's order.
        assert_eq!(order(vec![node("x", "p"), node("q", "r"), node("x", "s"), node("x", "q")]), [0, 2, 3, 1]);
    }

    #[test]
    fn nodes_that_wait_for_each_other_stay() {
        assert_eq!(order(vec![node("b", "a"), node("a", "b"), node("x", "c")]), [0, 1, 2]);
    }
}
