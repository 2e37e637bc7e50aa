//! A graph as text without its weights' values: what decides how long it runs.

use super::Graph;
use super::value::Origin;
use std::fmt::{Result, Write};

impl Graph {
    /// Writes operators, extents and types, and which value each operator reads. The text is the same for two graphs that
    /// were built alike.
    #[doc(hidden)]
    pub fn describe(&self, out: &mut dyn Write) -> Result {
        write!(out, "{:?} narrow {} dequantized {}", self.dimensions, self.narrow, self.dequantized)?;
        for value in &self.values {
            write!(out, "\n{} {} ", value.dims, value.dtype)?;
            match &value.origin {
                Origin::Input(declared) => write!(out, "input {:?} {declared:?}", value.name)?,
                Origin::Constant(tensor) => {
                    out.write_str("constant")?;
                    // Operators on quantized constants are computed on bytes.
                    if let Some(scales) = tensor.scales() {
                        write!(out, " {} scales along {}", scales.values.len(), scales.axis)?;
                    }
                }
                Origin::State => out.write_str("state")?,
                Origin::Node(node) => write!(out, "node {node}")?,
            }
        }
        for node in &self.nodes {
            write!(out, "\n{:?}", node.operator)?;
            for (operand, value) in &node.inputs {
                write!(out, " {} {}", operand.name(), value.index)?;
            }
        }
        self.outputs.iter().try_for_each(|output| write!(out, "\noutput {}", output.index))
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Graph;
    use crate::host::HostTensor;
    use crate::ops::pool::{Pool, Pooling};
    use crate::shape::Shape;

    fn text(width: usize, window: usize, output_first: bool, weight: f32) -> String {
        let mut graph = Graph::new();
        let x = graph.input("x", Shape::nhwc(1, 8, width, 2)).expect("an input");
        let bias = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![weight; 2]).expect("a constant");
        let sum = graph.pointwise("sum", x, bias, Default::default(), Default::default()).expect("a sum");
        let y = graph.pool("pool", sum, Pool::new(Pooling::Max, [window; 2])).expect("a pool");
        graph.output(if output_first { sum } else { y }).expect("an output");
        let mut text = String::new();
        graph.describe(&mut text).expect("text");
        text
    }

    #[test]
    fn a_description_tells_graphs_apart_by_all_but_values() {
        let own = text(8, 2, false, 1.0);
        assert_eq!(own, text(8, 2, false, 3.5));
        for other in [text(10, 2, false, 1.0), text(8, 4, false, 1.0), text(8, 2, true, 1.0)] {
            assert_ne!(own, other);
        }
    }
}
