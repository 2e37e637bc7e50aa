//! The mean and the product in f64.
//!
//! With `v = 2u` (see `ops/tolerance.rs`), `t` pixels and `s` what storing a value rounds by, a mean is off by at most
//! `e[c] = (gamma(t + 1) + s) mean(abs(x))`: `t` terms in any order and a division. The product carries `sum_c abs(w) e[c]`.

use super::SqueezeOp;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::operands::{Operands, get};
use crate::ops::pointwise;
use crate::ops::reference::Sum;
use crate::ops::tolerance::smallest_normal;

/// The result, in the order of the rows.
pub(super) fn oracle(op: &SqueezeOp, operands: &Operands<'_>) -> Sum {
    let (channels, plane) = (op.map.c, op.plane());
    let src = get(operands, Operand::Src).unwrap_or_default();
    let unit = 2.0 * DType::F32.unit_roundoff();
    let tiny = smallest_normal(DType::F32);
    let (store, stored_tiny) = match op.dense.precision.storage() {
        DType::F16 => (2.0 * DType::F16.unit_roundoff(), smallest_normal(DType::F16)),
        _ => (0.0, 0.0),
    };
    let terms = (plane + 1) as f64 * unit;
    let relative = terms / (1.0 - terms) + store;
    let images = src.len() / (plane * channels).max(1);
    let (mut means, mut offs) = (vec![0.0; images * channels], vec![0.0; images * channels]);
    for (image, src) in src.chunks_exact(plane * channels).enumerate() {
        let own = image * channels..(image + 1) * channels;
        let (Some(means), Some(offs)) = (means.get_mut(own.clone()), offs.get_mut(own)) else { continue };
        for pixel in src.chunks_exact(channels) {
            for ((mean, off), &x) in means.iter_mut().zip(&mut *offs).zip(pixel) {
                *mean += f64::from(x) / plane as f64;
                *off += f64::from(x).abs() / plane as f64;
            }
        }
    }
    offs.iter_mut().for_each(|off| *off = relative * *off + 2.0 * tiny + stored_tiny);
    pointwise::sums(&op.dense, operands, &means, &offs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::Activation;
    use crate::ops::operands::of;
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::Shape;

    fn op(map: Shape, mean: Shape) -> crate::error::Result<SqueezeOp> {
        let relu = Pointwise { activation: Activation::Relu };
        let weights = Shape::nhwc(2, 1, 1, mean.c);
        SqueezeOp::new(map, PointwiseOp::new(mean, weights, &relu, true, false, Precision::F32)?, false)
    }

    #[test]
    fn two_images_worked_out_by_hand() {
        let op = op(Shape::nhwc(2, 1, 2, 2), Shape::nhwc(2, 1, 1, 2)).expect("they fit");
        let operands = of(&[
            (Operand::Src, &[1.0, 2.0, 3.0, 6.0, -1.0, 0.0, -3.0, 8.0]),
            (Operand::Weights, &[1.0, 0.5, -1.0, 2.0]),
            (Operand::Bias, &[0.5, -10.0]),
        ]);
        // The means: 2 and 4; -2 and 4. The sums: 4.5 and -4; 0.5 and 0.
        let found = oracle(&op, &operands);
        assert_eq!(found.value, [4.5, 0.0, 0.5, 0.0]);
        assert_eq!(found.magnitude, [4.5, 20.0, 4.5, 20.0]);
    }

    #[test]
    fn a_product_of_something_else_is_refused() {
        let map = Shape::nhwc(2, 3, 5, 4);
        for mean in [Shape::nhwc(2, 1, 1, 3), Shape::nhwc(1, 1, 1, 4), Shape::nhwc(2, 1, 2, 4)] {
            let error = op(map, mean).expect_err("another shape").to_string();
            assert!(error.contains("the mean of 2x3x5x4"), "{error}");
        }
    }
}
