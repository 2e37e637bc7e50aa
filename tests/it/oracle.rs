//! A network computed by the ops' oracles alone, in f64 within a node and f32 between nodes: what no
//! backend has computed.

use diptych::{Graph, HostTensor, Precision, Value};
use diptych_emit::emit::Operand;
use diptych_kernels::ops::Answer;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The outputs of `graph` for these inputs.
pub fn outputs(graph: &Graph, inputs: &[(&str, &HostTensor)]) -> Vec<Vec<f32>> {
    let mut values: BTreeMap<usize, Vec<f32>> = BTreeMap::new();
    for &input in graph.inputs() {
        let name = graph.name(input).expect("a value of the graph");
        let (_, tensor) = inputs.iter().find(|(given, _)| *given == name).expect("each input");
        values.insert(input.index(), tensor.to_nhwc().into_owned());
    }
    for node in graph.nodes() {
        let op = graph.op(node, Precision::F32).expect("a valid node").expect("an op that computes");
        let one = |&(operand, value): &(Operand, Value)| {
            let values = match graph.tensor(value).expect("a value of the graph") {
                Some(constant) => constant.to_nhwc(),
                None => Cow::Borrowed(values[&value.index()].as_slice()),
            };
            (operand, values)
        };
        let operands = node.inputs().iter().map(one).collect();
        let reference = op.reference(&operands, Answer::Exact).expect("operands of the op");
        let [output] = node.outputs() else { panic!("{}: wanted one output", node.name()) };
        let result = reference.value().iter().map(|&value| value as f32).collect();
        values.insert(output.index(), result);
    }
    graph.outputs().iter().map(|output| values[&output.index()].clone()).collect()
}
