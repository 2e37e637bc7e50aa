//! An instance normalisation of a feature map as a node of a network, with what the lowering gives it: factors that
//! are computed, an activation, a residual.

use super::{Normalize, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Activation, Operand, Residual};
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Operator, Options};
use std::sync::Arc;

/// `Src`; `Weights` or `Arg(0)`, the scale; `Bias` or `Arg(1)`; `Residual`.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    pub normalize: Normalize,
    pub(crate) activation: Activation,
    /// Whether the activation is applied to the sum with the residual.
    pub(crate) last: bool,
}

impl Finished {
    pub fn new(normalize: Normalize) -> Self {
        Finished { normalize, activation: Activation::None, last: false }
    }
}

impl Options for Finished {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let op = self.normalize.of(arguments, precision)?;
        let given = [0, 1].map(|place| arguments.has(Operand::Arg(place)));
        let residual = match (arguments.has(Operand::Residual), self.last) {
            (false, _) => Residual::None,
            (true, false) => Residual::AfterActivation,
            (true, true) => Residual::BeforeActivation,
        };
        let op = op.finished(given, self.activation, residual)?;
        for info in Op::operands(&op) {
            let vector = matches!(info.operand, Operand::Weights | Operand::Bias);
            let found = arguments.get(info.operand).filter(|_| !vector);
            if let Some(found) = found.filter(|found| found.shape() != info.shape) {
                let found = format!("{} of {found}", info.operand.name());
                return Err(Error::shape(OP, found, format!("one of {}", info.shape)));
            }
        }
        Ok(Lowered::Op(Arc::new(op)))
    }

    fn outputs(&self, arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        arguments.get(Operand::Src).into_iter().collect()
    }

    fn activated(&self, activation: Activation) -> Option<Self> {
        (self.activation == Activation::None && activation != Activation::PRelu)
            .then(|| Finished { activation, ..self.clone() })
    }

    fn with_activation_last(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None && activation != Activation::PRelu;
        free.then(|| Arc::new(Finished { activation, last: true, ..self.clone() }) as Arc<dyn Operator>)
    }

    fn adds(&self) -> [bool; 2] {
        [false, true]
    }
}
