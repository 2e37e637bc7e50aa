//! A pooling as a node of a graph: `Src` alone.

use super::{OP, Pool, PoolOp};
use crate::dtype::Precision;
use crate::emit::{Activation, Operand};
use crate::error::Result;
use crate::ops::operator::{Arguments, Lowered, Operator, same};
use std::sync::Arc;

impl Operator for Pool {
    fn name(&self) -> &'static str {
        OP
    }

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let input = arguments.need(OP, Operand::Src)?.shape();
        Ok(Lowered::Op(Arc::new(PoolOp::new(input, self, precision)?)))
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let free = self.activation == Activation::None && activation != Activation::PRelu;
        free.then(|| Arc::new(Pool { activation, ..*self }) as Arc<dyn Operator>)
    }

    fn same(&self, other: &dyn Operator) -> bool {
        same(self, other)
    }
}
