//! A matrix product as a node of a graph: `A`, `B`, and where given `Bias`, `Slope` and `Residual`.

use super::{Gemm, GemmOp, PlacedGemm};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Activation, Operand};
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{self, Arguments, Lowered, Options, WithoutElements};
use crate::shape::Shape;
use std::sync::Arc;

const OP: &str = "gemm";

impl Options for Gemm {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let matrices = |operand: Operand| {
            let dims = arguments.need(OP, operand)?;
            dims.matrices().ok_or_else(|| {
                let wanted = "rows columns, batch rows columns, or batch 1 rows columns";
                Error::shape(OP, format!("{} of {dims}", operand.name()), wanted)
            })
        };
        let (a, b) = (matrices(Operand::A)?, matrices(Operand::B)?);
        let [bias, residual] = operator::extras(arguments);
        let op = GemmOp::of_matrices(a, b, self, bias, residual, precision.of_products())?;
        Ok(Lowered::Op(Arc::new(op)))
    }

    /// Of the rank of `A`.
    fn outputs(&self, arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        let rank = arguments.get(Operand::A).map_or(4, |dims| dims.rank());
        let of_rank = |shape: Shape| match rank {
            2 => Dims::new(&[shape.w, shape.c]),
            3 => Dims::new(&[shape.n, shape.w, shape.c]),
            _ => Ok(Dims::from(shape)),
        };
        crate::ops::outputs(op).map(|info| of_rank(info.shape).unwrap_or(Dims::from(info.shape))).collect()
    }

    fn without_elements(&self, _arguments: Arguments<'_>) -> Option<WithoutElements> {
        Some(WithoutElements::Filled(0.0))
    }

    fn activated(&self, activation: Activation) -> Option<Self> {
        (self.activation == Activation::None).then_some(Gemm { activation, ..*self })
    }

    fn adds(&self) -> [bool; 2] {
        [true, true]
    }
}

impl Options for PlacedGemm {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let places = self.op.places.as_ref();
        let wanted = places.map_or([0; 2], |places| [places.a.elements, places.b.elements]);
        for (operand, wanted) in [Operand::A, Operand::B].into_iter().zip(wanted) {
            let found = arguments.need(OP, operand)?;
            if found.elements() != wanted {
                return Err(Error::shape(
                    OP,
                    format!("{} of {found}", operand.name()),
                    format!("{wanted} elements"),
                ));
            }
        }
        let [bias, residual] = operator::extras(arguments);
        if bias != self.op.epilogue.bias || residual {
            let found = format!("bias {bias}, residual {residual}");
            return Err(Error::unsupported(OP, format!("a product with places, {found}")));
        }
        Ok(Lowered::Op(Arc::new(GemmOp { precision: precision.of_products(), ..self.op })))
    }

    fn outputs(&self, _arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        vec![self.target]
    }
}
