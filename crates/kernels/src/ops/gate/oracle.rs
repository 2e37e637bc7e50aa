//! Both convolutions and the product in f64.
//!
//! What lies between the convolutions is off by as much as the first may be, stored or not, and a factor `g` by
//! `e_g`, what that makes of it and its own sum. With `v = 2u` (see `ops/tolerance.rs`), and `s` what storing a
//! value rounds by, a product is off by `(abs(x) + e_x) e_g + e_x abs(g)`, `e_x = s abs(x)`, and both operations
//! round once.

use super::{FIRST, GateOp, SECOND};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::ops::operands::{Operands, Renamed, get};
use crate::ops::pointwise::{self, PointwiseOp};
use crate::ops::reference::Reference;
use crate::ops::tolerance::smallest_normal;

/// The result, in the order of the rows.
pub(super) fn oracle(op: &GateOp, operands: &Operands<'_>) -> Reference {
    let precision = op.second.precision;
    let (hidden, offs): (Vec<f64>, Vec<f64>) = match op.first {
        Some(first) => {
            let hidden = pointwise::oracle(&PointwiseOp::of(first), &operands.renamed(FIRST));
            let offs = (0..hidden.value.len()).map(|at| hidden.tolerance(at, precision)).collect();
            (hidden.value, offs)
        }
        // The rounding of what is stored is that of the second convolution's operands.
        None => get(operands, Operand::Src).into_iter().flatten().map(|&x| (f64::from(x), 0.0)).unzip(),
    };
    let channels = op.second.output.c;
    let factors = pointwise::sums(&op.second, &operands.renamed(SECOND), &hidden, &offs);
    let unit = 2.0 * DType::F32.unit_roundoff();
    let tiny = smallest_normal(DType::F32);
    let (store, stored_tiny) = match precision.storage() {
        DType::F16 => (2.0 * DType::F16.unit_roundoff(), smallest_normal(DType::F16)),
        _ => (0.0, 0.0),
    };
    let x = get(operands, Operand::Arg(0)).unwrap_or_default();
    let residual = get(operands, Operand::Residual);
    let plane = op.map.h * op.map.w;
    let (mut value, mut bound) = (Vec::with_capacity(x.len()), Vec::with_capacity(x.len()));
    for (at, &x) in x.iter().enumerate() {
        let (image, channel) = (at / (plane * channels), at % channels);
        let factor = image * channels + channel;
        let (g, of_factor) = (factors.value[factor], factors.tolerance(factor, precision));
        let (x, z) = (f64::from(x), residual.and_then(|all| all.get(at)).map_or(0.0, |&z| f64::from(z)));
        let of_x = store * x.abs() + stored_tiny;
        let product = (x.abs() + of_x) * (g.abs() + of_factor);
        let error = (x.abs() + of_x) * of_factor
            + of_x * g.abs()
            + store * z.abs()
            + stored_tiny
            + 2.0 * unit * (product + z.abs())
            + 2.0 * tiny;
        let result = x * g + z;
        value.push(result);
        bound.push(error + store * (result.abs() + error) + stored_tiny);
    }
    Reference::Bounded { value, bound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::Activation;
    use crate::ops::operands::of;
    use crate::ops::pointwise::Pointwise;
    use crate::shape::Shape;

    fn op(pixel: Shape, hidden: usize, map: Shape) -> crate::error::Result<GateOp> {
        let f32 = Precision::F32;
        let relu = Pointwise { activation: Activation::Relu };
        let relu6 = Pointwise { activation: Activation::Relu6 };
        let first = PointwiseOp::new(pixel, Shape::nhwc(hidden, 1, 1, pixel.c), &relu, true, false, f32)?;
        let weights = Shape::nhwc(2, 1, 1, hidden);
        let second = PointwiseOp::new(first.0.output, weights, &relu6, true, false, f32)?;
        GateOp::new(Some(first), second, map, true)
    }

    #[test]
    fn two_pixels_worked_out_by_hand() {
        let op = op(Shape::nhwc(1, 1, 1, 2), 1, Shape::nhwc(1, 1, 2, 2)).expect("they fit");
        let operands = of(&[
            (Operand::Src, &[1.0, 2.0]),
            (Operand::Window, &[3.0, -1.0]),
            (Operand::WindowBias, &[1.0]),
            (Operand::Weights, &[2.0, -1.0]),
            (Operand::Bias, &[0.5, 4.0]),
            (Operand::Arg(0), &[1.0, 2.0, -1.0, 0.5]),
            (Operand::Residual, &[0.0, 10.0, 0.0, 1.0]),
        ]);
        // Between: 3 - 2 + 1 = 2; the factors: 4.5 and 2.
        assert_eq!(oracle(&op, &operands).value(), [4.5, 14.0, -4.5, 2.0]);
    }

    #[test]
    fn without_the_first_convolution_the_pixel_is_its_result() {
        let relu6 = Pointwise { activation: Activation::Relu6 };
        let (pixel, weights) = (Shape::nhwc(1, 1, 1, 1), Shape::nhwc(2, 1, 1, 1));
        let second =
            PointwiseOp::new(pixel, weights, &relu6, true, false, Precision::F32).expect("a product");
        let op = GateOp::new(None, second, Shape::nhwc(1, 1, 2, 2), false).expect("they fit");
        let operands = of(&[
            (Operand::Src, &[2.0]),
            (Operand::Weights, &[2.0, -1.0]),
            (Operand::Bias, &[0.5, 4.0]),
            (Operand::Arg(0), &[1.0, 2.0, -1.0, 0.5]),
        ]);
        assert_eq!(oracle(&op, &operands).value(), [4.5, 4.0, -4.5, 1.0]);
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused_with_what_is_wrong() {
        let pixel = Shape::nhwc(1, 1, 1, 2);
        for (found, words) in [
            (op(Shape::nhwc(1, 1, 2, 2), 1, Shape::nhwc(1, 3, 2, 2)), "from a pixel"),
            (op(pixel, 1, Shape::nhwc(1, 3, 2, 3)), "one for each channel of 1x3x2x3"),
            (op(pixel, 1, Shape::nhwc(2, 3, 2, 2)), "one for each channel of 2x3x2x2"),
        ] {
            let text = found.expect_err(words).to_string();
            assert!(text.contains(words), "{text}");
        }
    }
}
