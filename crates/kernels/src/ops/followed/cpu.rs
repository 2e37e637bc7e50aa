//! The op and then the function, on the CPU.

use super::{FollowedOp, operand};
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::elementwise::Program;
use crate::ops::operands::Operands;

/// Elements of which the function is computed at once.
const AT_ONCE: usize = 1024;

/// The op's kernel, and what comes behind it.
#[derive(Debug)]
pub(super) struct FollowedOnCpu {
    op: &'static str,
    kernel: Box<dyn CpuKernel>,
    program: Program,
    result: Operand,
    /// Numbers of channels.
    vectors: Vec<Vec<f32>>,
    /// Operands that have elements of the same places.
    elements: Vec<Operand>,
}

impl FollowedOnCpu {
    pub(super) fn new(op: &FollowedOp, kernel: Box<dyn CpuKernel>, constants: &Operands<'_>) -> Result<Self> {
        let vector = |place: usize| constants.get(&operand(place)).map(|values| values.to_vec());
        let [channels, elements] = op.inputs();
        Ok(FollowedOnCpu {
            op: op.op.name(),
            kernel,
            program: op.program.clone(),
            result: op.result()?.operand,
            vectors: channels.filter_map(vector).collect(),
            elements: elements.map(operand).collect(),
        })
    }
}

impl CpuKernel for FollowedOnCpu {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        self.kernel.run(inputs, outputs)?;
        let dst = output(self.op, outputs, self.result)?;
        let channels = self.vectors.first().map_or(AT_ONCE, Vec::len).max(1);
        // Whole rows of channels, so that each vector is read from its first number on.
        let at_once = channels * (AT_ONCE / channels).max(1);
        let repeated: Vec<Vec<f32>> = self
            .vectors
            .iter()
            .map(|vector| vector.iter().copied().cycle().take(at_once).collect())
            .collect();
        let mut elements = Vec::with_capacity(self.elements.len());
        for &operand in &self.elements {
            let values = input(self.op, inputs, operand)?;
            check_len(self.op, operand.name(), values.len(), dst.len())?;
            elements.push(values);
        }
        for (order, part) in dst.chunks_mut(at_once).enumerate() {
            let (x, first) = (part.to_vec(), order * at_once);
            let vectors = repeated.iter().filter_map(|vector| vector.get(..x.len()));
            let elements = elements.iter().filter_map(|values| values.get(first..first + x.len()));
            let given: Vec<&[f32]> = [&x[..]].into_iter().chain(vectors).chain(elements).collect();
            self.program.apply(&given, part);
        }
        Ok(())
    }
}
