//! Problems that between them use every kernel, with and without a scale and a bias, computed and constant.

use super::{Normalize, NormalizeOp, OP};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Activation, Bits, Residual};
use crate::error::Result;
use crate::ops::examples::Numbers;
use crate::ops::op::Op;
use std::sync::Arc;

/// The examples in `precision`: over pixels, and over channels.
pub(crate) fn examples(precision: Precision) -> Result<Vec<Box<dyn Op>>> {
    let mut examples: Vec<Box<dyn Op>> = Vec::new();
    for (scale, bias) in [(false, false), (true, true), (true, false), (false, true)] {
        for axes in [vec![1, 2], vec![-1]] {
            let options = Normalize { axes, epsilon: Bits(1e-3), ..Normalize::default() };
            let dims = Dims::new(&[2, 7, 9, 6])?;
            examples.push(Box::new(NormalizeOp::new(dims, &options, scale, bias, precision)?));
        }
    }
    for axes in [vec![-1], vec![1, 2]] {
        let options = Normalize { axes, epsilon: Bits(1e-3), centred: false };
        let dims = Dims::new(&[2, 7, 9, 6])?;
        examples.push(Box::new(NormalizeOp::new(dims, &options, true, false, precision)?));
    }
    let (single, one) = (Normalize { axes: vec![1], ..Normalize::default() }, Dims::new(&[3, 1, 2])?);
    examples.push(Box::new(NormalizeOp::new(one, &single, true, true, precision)?));
    let of_map = |extras: bool, centred: bool| {
        let options = Normalize { axes: vec![1, 2], epsilon: Bits(1e-3), centred };
        NormalizeOp::new(Dims::new(&[2, 7, 9, 6])?, &options, extras, extras, precision)
    };
    let (none, relu, sigmoid) = (Activation::None, Activation::Relu, Activation::Sigmoid);
    examples.push(Box::new(of_map(false, true)?.finished([true; 2], relu, false)?));
    examples.push(Box::new(of_map(false, true)?.finished([true; 2], none, true)?));
    examples.push(Box::new(of_map(true, true)?.finished([false; 2], sigmoid, false)?));
    let last = Residual::BeforeActivation;
    examples.push(Box::new(of_map(false, false)?.finished([true; 2], relu, last)?));
    Ok(examples)
}

const NAMES: &str = "n,h,w,c";

/// Over height and width, with scale and bias.
pub(crate) const NUMBERS: Numbers =
    Numbers { names: NAMES, usual: &[1, 96, 96, 128], op: |extents, _, precision| of(extents, precision) };

fn of(extents: &[usize], precision: Precision) -> Result<Arc<dyn Op>> {
    let &[_, _, _, _] = extents else { return Numbers::refuse(OP, NAMES, extents) };
    let options = Normalize { axes: vec![1, 2], epsilon: Bits(1e-3), ..Normalize::default() };
    Ok(Arc::new(NormalizeOp::new(Dims::new(extents)?, &options, true, true, precision)?))
}
