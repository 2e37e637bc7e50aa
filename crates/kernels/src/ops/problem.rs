//! One line of text for a problem: what [`super::Op::problem_key`] gives.
//!
//! Words separated by spaces. An extent is its name and a number (`h9`, `c1024`); what is at its
//! ordinary value (a stride of 1, packed rows, no padding) is left out; everything else is a word
//! of its own. Two ops have the same text if and only if the same kernels run them with the same
//! extents.

use super::convolution::Convolution;
use crate::emit::{Activation, Epilogue, Residual};
use crate::shape::Border;

/// The names of extents. Numbers that belong to other words (`relu6`, `groups2`) are none.
pub const EXTENTS: [&str; 11] = ["n", "h", "w", "c", "o", "m", "k", "batch", "lda", "ldb", "ldc"];

/// The words of `epilogue`, each after a space.
pub(super) fn epilogue(epilogue: &Epilogue) -> String {
    let mut text = String::new();
    if epilogue.bias {
        text.push_str(" bias");
    }
    if epilogue.residual == Residual::BeforeActivation {
        text.push_str(" residual");
    }
    match epilogue.activation {
        Activation::None => {}
        Activation::LeakyRelu(slope) => text.push_str(&format!(" leaky{}", slope.0)),
        activation => {
            text.push(' ');
            text.push_str(activation.name());
        }
    }
    if epilogue.residual == Residual::AfterActivation {
        text.push_str(" residual");
    }
    text
}

/// The words of a convolution, `channels` being those about its output channels and groups.
///
/// The padding is given as zeros above, below, left and right; zeros at the end that no window
/// reaches do not count.
pub(super) fn convolution(problem: &Convolution, channels: &str) -> String {
    let input = problem.input;
    let mut text = format!("n{} h{} w{} c{} {channels}", input.n, input.h, input.w, input.c);
    for (name, pair) in
        [("kernel", problem.kernel), ("stride", problem.stride), ("dilation", problem.dilation)]
    {
        if pair != [1, 1] {
            text.push_str(&format!(" {name}{}x{}", pair[0], pair[1]));
        }
    }
    let after = |axis: usize, input: usize, output: usize| {
        let span = problem.kernel[axis].saturating_sub(1) * problem.dilation[axis] + 1;
        (output.saturating_sub(1) * problem.stride[axis] + span).saturating_sub(input + problem.before[axis])
    };
    let [top, left] = problem.before;
    let (bottom, right) = (after(0, input.h, problem.output.h), after(1, input.w, problem.output.w));
    if [top, bottom, left, right] != [0; 4] {
        text.push_str(&format!(" pad{top},{bottom},{left},{right}"));
        if problem.border != Border::Zeros {
            text.push_str(&format!(" {}", problem.border.name()));
        }
    }
    text + &epilogue(&problem.epilogue)
}

#[cfg(test)]
mod tests {
    use crate::dtype::Precision;
    use crate::emit::{Activation, Bits};
    use crate::layout::Layout;
    use crate::ops::Op;
    use crate::ops::conv2d::{Conv2d, Conv2dOp};
    use crate::ops::convert::ConvertOp;
    use crate::ops::depthwise::{Depthwise, DepthwiseOp};
    use crate::ops::gemm::{Gemm, GemmOp};
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::{Padding, Shape};
    use std::collections::BTreeMap;

    fn stem(height: usize, padding: Padding) -> String {
        let options = Conv2d { stride: [2, 2], padding, ..Default::default() };
        let (input, weights) = (Shape::nhwc(1, height, 257, 3), Shape::nhwc(24, 3, 3, 3));
        Conv2dOp::new(input, weights, &options, true, false, Precision::F32)
            .expect("a valid convolution")
            .problem_key()
    }

    #[test]
    fn each_op_has_one_readable_line() {
        let f32 = Precision::F32;
        let map = Shape::nhwc(1, 9, 9, 1024);
        let relu6 = Pointwise { activation: Activation::Relu6 };
        let down = Depthwise { stride: [2, 2], padding: Padding::Same, ..Default::default() };
        let leaky = Activation::LeakyRelu(Bits(0.125));
        let grouped = Conv2d { groups: 2, dilation: [2, 1], activation: leaky, ..Default::default() };
        let product = Gemm { beta: Bits(2.0), transpose_a: true, ldc: Some(40), ..Default::default() };
        let rows: [(Box<dyn Op>, &str); 6] = [
            (
                Box::new(
                    PointwiseOp::new(map, Shape::nhwc(1024, 1, 1, 1024), &relu6, true, false, f32)
                        .expect("pointwise"),
                ),
                "n1 h9 w9 c1024 o1024 bias relu6",
            ),
            (
                Box::new(
                    DepthwiseOp::new(map, Shape::nhwc(1, 3, 3, 2048), &down, false, true, f32)
                        .expect("depthwise"),
                ),
                "n1 h9 w9 c1024 mult2 kernel3x3 stride2x2 pad1,1,1,1 residual",
            ),
            (
                Box::new(
                    Conv2dOp::new(map, Shape::nhwc(10, 3, 2, 512), &grouped, false, false, f32)
                        .expect("conv2d"),
                ),
                "n1 h9 w9 c1024 o10 groups2 kernel3x2 dilation2x1 leaky0.125",
            ),
            (Box::new(GemmOp::packed(32, 64, 128)), "m32 n64 k128"),
            (
                Box::new(GemmOp::new(7, 31, 5, 3, &product, true, false, f32).expect("gemm")),
                "m7 n31 k5 batch3 ta ldc40 beta bias",
            ),
            (
                Box::new(
                    ConvertOp::new(Shape::nhwc(2, 3, 5, 7), Layout::Nhwc, Layout::C4, f32).expect("convert"),
                ),
                "n2 h3 w5 c7 nhwc-to-c4",
            ),
        ];
        for (op, wanted) in rows {
            assert_eq!(op.problem_key(), wanted, "{}", op.name());
        }
    }

    #[test]
    fn padding_is_reported_by_its_effect() {
        assert!(stem(257, Padding::Same).ends_with("pad1,1,1,1 bias"), "{}", stem(257, Padding::Same));
        assert!(stem(224, Padding::Same).contains("pad0,1,1,1"), "{}", stem(224, Padding::Same));
        assert!(!stem(257, Padding::Valid).contains("pad"));
        // An even height leaves the last row of zeros out of every window.
        let zeros = |bottom| Padding::Explicit { top: 1, bottom, left: 0, right: 0 };
        assert_eq!(stem(256, zeros(0)), stem(256, zeros(1)));
        assert_ne!(stem(257, zeros(0)), stem(257, zeros(1)));
    }

    #[test]
    fn different_examples_have_different_texts() {
        for entry in crate::ops::all() {
            let mut seen = BTreeMap::new();
            for op in (entry.examples)(Precision::F32).expect("examples") {
                let text = format!("{op:?}");
                let other = seen.insert(op.problem_key(), text.clone());
                assert_eq!(other, None, "{} has the key of {text}", op.problem_key());
            }
        }
    }
}
