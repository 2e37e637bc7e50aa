//! Units that the network does without: no output, no state's next value and no other unit needs what they compute.

use super::network::Network;
use crate::graph::Value;
use std::collections::HashSet;

/// Leaves them out.
pub(super) fn leave_out(network: &mut Network<'_>) {
    let mut read: HashSet<Value> = HashSet::new();
    let mut needed = vec![false; network.units().len()];
    for (place, unit) in network.units().iter().enumerate().rev() {
        needed[place] = unit.outputs.iter().any(|output| network.leaves(*output) || read.contains(output));
        if needed[place] {
            read.extend(unit.reads().map(|value| network.resolve(value).of));
        }
    }
    if needed.iter().all(|&needed| needed) {
        return;
    }
    let units = network.take_units();
    let kept = units.into_iter().zip(needed).filter(|(_, needed)| *needed).map(|(unit, _)| unit).collect();
    network.set_units(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::graph::Graph;
    use crate::ops::elementwise::Function;

    #[test]
    fn what_leads_nowhere_is_left_out() {
        let mut graph = Graph::new();
        let x = graph.input("x", Dims::new(&[3]).expect("small")).expect("an input");
        let mut function =
            |name: &str, x: Value| graph.elementwise(name, Function::Exp, &[x.into()]).expect("a node");
        let (y, unread) = (function("y", x), function("unread", x));
        let _behind = function("behind", unread);
        graph.output(y).expect("an output");
        let mut network = Network::of(&graph).expect("units");
        leave_out(&mut network);
        let names: Vec<&str> = network.units().iter().map(|unit| unit.name.as_str()).collect();
        assert_eq!(names, ["y"]);
    }
}
