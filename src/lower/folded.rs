//! Nodes of a graph that need no unit: views of values, and what is computed of constants alone.

use super::unit::{Alias, Input, Network};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::graph::{Node, TensorType};
use crate::host::HostTensor;
use crate::ops::operator::View;
use crate::ops::quantization::Linear;
use crate::ops::{Op, Role};
use crate::sorted;
use crate::word;
use std::sync::Arc;

impl Network<'_> {
    pub(super) fn view(&mut self, node: &Node, inputs: &[(Operand, Input)], view: View) -> Result<()> {
        let (Some((_, input)), &[output]) = (inputs.first(), node.outputs()) else {
            return Err(Error::Internal("a view without an input and an output".to_owned()));
        };
        match input {
            Input::Value(value) => {
                let Alias { of, offset } = self.resolve(*value);
                self.aliases.insert(output, Alias { of, offset: offset + view.offset });
            }
            Input::Constant(tensor, _) => {
                let dtype = tensor.dtype();
                let (words, each) = (tensor.words()?, dtype.word().words());
                let shown = words.get(each * view.offset..each * (view.offset + view.dims.elements()));
                let shown = shown.ok_or_else(|| Error::Internal(format!("a view beyond {tensor:?}")))?;
                let tensor = word::to_tensor(view.dims, dtype, dtype.word(), shown)?;
                self.constants.insert(output, tensor);
            }
        }
        Ok(())
    }

    /// Computes a node of constants on the CPU, once.
    pub(super) fn fold(&mut self, node: &Node, op: &dyn Op, inputs: &[(Operand, Input)]) -> Result<()> {
        let constant = |(operand, input): &(Operand, Input)| match input {
            Input::Constant(tensor, _) => Some((*operand, tensor.clone())),
            Input::Value(_) => None,
        };
        let tensors: Vec<(Operand, HostTensor)> = inputs.iter().filter_map(constant).collect();
        let infos = op.operands();
        let role = |operand: Operand| infos.iter().find(|info| info.operand == operand).map(|info| info.role);
        let of = |wanted: Role| tensors.iter().filter(move |(operand, _)| role(*operand) == Some(wanted));
        let constants = of(Role::Constant).map(|(operand, tensor)| Ok((*operand, tensor.words()?)));
        let constants = sorted::map(constants.collect::<Result<Vec<_>>>()?);
        let kernel = op.cpu(&constants)?;
        let words = |(operand, tensor): &(Operand, HostTensor)| Ok((*operand, tensor.clone().into_words()?));
        let given = of(Role::Input).map(words).collect::<Result<Vec<(Operand, Arc<[f32]>)>>>()?;
        let given: Vec<(Operand, &[f32])> =
            given.iter().map(|(operand, values)| (*operand, &**values)).collect();
        let mut written: Vec<(Operand, Vec<f32>)> =
            crate::ops::outputs(op).map(|info| (info.operand, vec![0.0; info.words()])).collect();
        let mut slots: Vec<(Operand, &mut [f32])> =
            written.iter_mut().map(|(operand, values)| (*operand, values.as_mut_slice())).collect();
        kernel.run(&given, &mut slots)?;
        for (&value, (_, words)) in node.outputs().iter().zip(written) {
            let TensorType { dtype, dims } = self.graph.tensor_type(value)?;
            let tensor = word::to_tensor(dims, dtype, dtype.word(), &words)?;
            let tensor = match node.operator.linear() {
                Some(Linear::Dequantize(own)) => tensor.with_scales(vec![own.scale.0], 0),
                _ => tensor,
            };
            self.constants.insert(value, tensor);
        }
        Ok(())
    }
}
