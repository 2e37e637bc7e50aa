//! A nest as a node of a network: `Arg(0)`, `Arg(1)`, ...

use super::nest::word_of;
use super::{LoopsOp, Nest, OP, OperandSet};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

/// A nest, of inputs with as many elements as its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loops {
    nest: Arc<Nest>,
    halves: OperandSet,
    maps: OperandSet,
}

impl Loops {
    /// The operator that computes `nest`: operands of `halves` are stored in halves where a network stores those, operands of
    /// `maps` are feature maps in slices of four channels.
    ///
    /// # Errors
    /// If its texts have more scalars than a kernel takes, or there are none with maps in slices.
    #[doc(hidden)]
    pub fn new(nest: Nest, halves: OperandSet, maps: OperandSet) -> Result<Self> {
        let operator = Loops { nest: Arc::new(nest), halves, maps };
        match operator.op(Precision::F32)?.has_scalars_for_all() {
            true => Ok(operator),
            false => Err(Error::unsupported(OP, "more scalars than a kernel takes")),
        }
    }

    /// The operator that computes `nest` on the CPU, whose kernel takes no scalars.
    #[doc(hidden)]
    pub fn on_cpu(nest: Nest) -> Self {
        Loops { nest: Arc::new(nest), halves: OperandSet::NONE, maps: OperandSet::NONE }
    }

    /// The op.
    pub(in crate::ops) fn op(&self, precision: Precision) -> Result<LoopsOp> {
        LoopsOp::new(Arc::clone(&self.nest), self.halves, self.maps, precision)
    }

    /// Which operands are stored in halves where a network stores those, and which are feature maps in slices of four channels.
    #[doc(hidden)]
    pub const fn stored(&self) -> [OperandSet; 2] {
        [self.halves, self.maps]
    }

    /// What it computes.
    #[doc(hidden)]
    pub fn nest(&self) -> &Nest {
        &self.nest
    }
}

impl Options for Loops {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        for (place, dims) in self.nest.sources.iter().enumerate() {
            let found = arguments.need(OP, Operand::Arg(place as u8))?;
            if found.elements() != dims.elements() {
                return Err(Error::shape(OP, found.to_string(), format!("the elements of {dims}")));
            }
        }
        Ok(Lowered::Op(Arc::new(self.op(precision)?)))
    }

    fn types(&self, _arguments: Arguments<'_>, _op: &dyn Op) -> Vec<DType> {
        let count = self.nest.targets().count();
        (0..count).rev().map(|order| word_of(self.nest.result_type(order))).collect()
    }

    fn outputs(&self, _arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        let mut targets: Vec<Dims> = self.nest.targets().collect();
        // What is written last is the first result.
        targets.reverse();
        targets
    }
}
