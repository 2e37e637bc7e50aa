//! A depthwise convolution as a node of a graph: `Src`, `Weights`, and where given `Bias`, `Slope` and `Residual`.

use super::{Depthwise, DepthwiseOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Activation, Operand, Residual};
use crate::error::{Error, Result};
use crate::ops::activated;
use crate::ops::op::Op;
use crate::ops::operator::{self, Arguments, Lowered, Operator, Options};
use crate::shape::Border;
use std::sync::Arc;

impl Options for Depthwise {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        activated::lower(self, Residual::AfterActivation, arguments, precision)
    }

    fn with_border(&self, border: Border, extents: [usize; 4]) -> Option<Self> {
        let zeros = border == Border::Zeros;
        Some(Depthwise { padding: self.padding.with_border(extents).filter(|_| zeros)?, ..*self })
    }

    fn activated(&self, activation: Activation) -> Option<Self> {
        (self.activation == Activation::None).then_some(Depthwise { activation, ..*self })
    }

    fn with_activation_last(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        activated::last(self, activation)
    }

    fn adds(&self) -> [bool; 2] {
        [true, true]
    }
}

/// A depthwise convolution of a map within a value of rows, as a node of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DepthwiseInRows {
    op: DepthwiseOp,
    /// The dimensions of the result.
    target: Dims,
}

impl DepthwiseInRows {
    /// The node of `op`, whose map lies in rows, with a result of these dimensions.
    ///
    /// # Errors
    /// If it lies elsewhere, or the result has other elements.
    #[doc(hidden)]
    pub fn new(op: DepthwiseOp, target: Dims) -> Result<Self> {
        match op.0.rows {
            Some(_) if op.0.output.elements() == target.elements() => Ok(DepthwiseInRows { op, target }),
            place => Err(Error::shape(OP, format!("{place:?} to {target}"), op.0.output.to_string())),
        }
    }
}

impl Options for DepthwiseInRows {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let wanted = self.op.0.rows.map_or(0, |place| place.elements);
        let found = arguments.need(OP, Operand::Src)?;
        if found.elements() != wanted {
            return Err(Error::shape(OP, found.to_string(), format!("{wanted} elements")));
        }
        let (extras, own) = (operator::extras(arguments), &self.op.0.epilogue);
        if extras != [own.bias, own.residual.is_some()] {
            let found = format!("bias {}, residual {}", extras[0], extras[1]);
            return Err(Error::unsupported(OP, format!("a convolution in rows, {found}")));
        }
        Ok(Lowered::Op(Arc::new(DepthwiseOp::of(self.op.0.with_precision(precision)))))
    }

    fn outputs(&self, _arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        vec![self.target]
    }
}
