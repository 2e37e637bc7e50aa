//! Problems of every function, on integers of 32 bits.

use super::{Argument, IntegerFunction, IntegerOp, OP};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

fn of(function: IntegerFunction, word: DType, extents: &[&[usize]], to: DType) -> Result<IntegerOp> {
    let condition = function == IntegerFunction::Select;
    let typed = |place: usize| if condition && place == 0 { DType::Bool } else { word };
    let inputs = extents.iter().take(function.arity()).enumerate();
    let inputs = inputs.map(|(place, extents)| Ok((Dims::new(extents)?, typed(place))));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let arguments = (0..function.arity()).map(|place| Argument::Input(place as u8)).collect();
    IntegerOp::new(function, arguments, &inputs, to)
}

/// The examples: the same in every precision.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let shapes: &[&[usize]] = &[&[3, 4, 5], &[4, 1], &[3, 1, 5]];
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for &function in IntegerFunction::ALL {
        for word in [DType::I32, DType::U32] {
            if function == IntegerFunction::Convert {
                let other = if word == DType::I32 { DType::U32 } else { DType::I32 };
                examples.push(Box::new(of(function, word, shapes, DType::F32)?));
                examples.push(Box::new(of(function, word, shapes, other)?));
                examples.push(Box::new(of(function, DType::F32, shapes, word)?));
            } else {
                examples.push(Box::new(of(function, word, shapes, DType::F32)?));
            }
        }
    }
    let dims = Dims::new(&[257])?;
    let number = vec![Argument::Input(0), Argument::Number(65_536)];
    let inputs = [(dims, DType::I32)];
    examples.push(Box::new(IntegerOp::new(IntegerFunction::FloorMod, number, &inputs, DType::F32)?));
    Ok(examples)
}

const NAMES: &str = "elements";

pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[65536], op: of_extents };

fn of_extents(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[elements] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    Ok(Arc::new(of(IntegerFunction::Add, DType::I32, &[&[elements], &[elements]], DType::F32)?))
}
