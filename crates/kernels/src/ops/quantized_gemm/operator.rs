//! A product with quantized weights as a node of a graph: `Src`, `Weights`, `Scales`, and where given `Zeros`, `Bias`, `Slope`
//! and `Residual`.

use super::{OP, OperandDims, QuantizedGemm, QuantizedGemmOp};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::{Activation, Operand};
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{self, Arguments, Lowered, Options};
use std::sync::Arc;

impl Options for QuantizedGemm {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let [bias, residual] = operator::extras(arguments);
        for (operand, wanted) in [(Operand::Weights, DType::U32), (Operand::Scales, DType::F32)] {
            let found = arguments.dtype(operand);
            if found != wanted {
                return Err(Error::shape(OP, format!("{} of {found}", operand.name()), wanted.to_string()));
            }
        }
        let given = OperandDims {
            src: arguments.need(OP, Operand::Src)?,
            weights: arguments.need(OP, Operand::Weights)?,
            scales: arguments.need(OP, Operand::Scales)?,
            zeros: arguments.get(Operand::Zeros).map(|dims| (dims, arguments.dtype(Operand::Zeros))),
            bias,
            residual,
        };
        Ok(Lowered::Op(Arc::new(QuantizedGemmOp::new(self, &given, precision.with_f32_sums())?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<QuantizedGemmOp>().map(|op| op.dst).into_iter().collect()
    }

    fn activated(&self, activation: Activation) -> Option<Self> {
        (self.activation == Activation::None).then_some(QuantizedGemm { activation, ..*self })
    }

    fn adds(&self) -> [bool; 2] {
        [true, true]
    }
}
