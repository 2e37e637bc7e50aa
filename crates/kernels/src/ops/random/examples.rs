//! Problems of every distribution, whole blocks and parts of one.

use super::{OP, Random, RandomOp, mixed};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples: the same in every precision.
pub(crate) fn examples(_precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    let all = [
        // The longest text first.
        Random::normal(0.0, 1.0),
        Random::uniform(0.0, 1.0),
        Random::uniform(-3.0, 5.5),
        Random::normal(-2.0, 0.25),
        Random::gumbel(),
    ];
    for (options, stream) in all.into_iter().zip(0..) {
        let dims = if stream % 2 == 0 { Dims::new(&[1031])? } else { Dims::new(&[2, 4, 16])? };
        examples.push(Box::new(RandomOp::new(options, mixed(stream), dims)?));
    }
    examples.push(Box::new(RandomOp::new(Random::uniform(2.0, 2.0), 0, Dims::new(&[1])?)?));
    examples.push(Box::new(RandomOp::next_key()?));
    Ok(examples)
}

const NAMES: &str = "elements";

pub(crate) const NUMBERS: Numbers = Numbers { names: NAMES, usual: &[65536], op: of };

fn of(extents: &[usize], _kernel: Option<&str>, _precision: Precision) -> Result<Arc<dyn Op>> {
    let &[elements] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    Ok(Arc::new(RandomOp::new(Random::normal(0.0, 1.0), 0, Dims::new(&[elements])?)?))
}
