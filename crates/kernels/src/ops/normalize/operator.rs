//! A normalisation as a node of a graph: `Src`, and where given `Weights`, the scale, and `Bias`.

use super::{Finished, Normalize, NormalizeOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Activation, Operand};
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Operator, Options};
use crate::sorted;
use std::sync::Arc;

impl Normalize {
    /// The normalisation of `arguments`.
    pub(super) fn of(&self, arguments: Arguments<'_>, precision: Precision) -> Result<NormalizeOp> {
        let dims = arguments.need(OP, Operand::Src)?;
        let channels = dims.shape().c;
        for (operand, what) in [(Operand::Weights, "scale"), (Operand::Bias, "bias")] {
            if let Some(found) = arguments.get(operand).filter(|found| found.elements() != channels) {
                return Err(Error::shape(OP, format!("a {what} of {found}"), format!("{channels} values")));
            }
        }
        let [scale, bias] = [Operand::Weights, Operand::Bias].map(|operand| arguments.has(operand));
        NormalizeOp::new(dims, self, scale, bias, precision)
    }

    /// The normalisation as an operator that has an activation and a residual, if it is one of a feature map.
    fn of_map(&self) -> Option<Finished> {
        let mut axes = self.axes.clone();
        sorted::sort(&mut axes, Ord::cmp);
        matches!(axes[..], [1, 2] | [-3, -2]).then(|| Finished::new(self.clone()))
    }
}

impl Options for Normalize {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        Ok(Lowered::Op(Arc::new(self.of(arguments, precision)?)))
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        Options::with_activation(&self.of_map()?, activation)
    }

    fn with_activation_last(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        Options::with_activation_last(&self.of_map()?, activation)
    }

    fn with_residual(&self) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(self.of_map()?))
    }

    fn outputs(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        arguments.get(Operand::Src).into_iter().collect()
    }
}
