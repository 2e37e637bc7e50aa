//! A problem, its operands, and its expected result.

use diptych::emit::Operand;
use diptych::ops::conv2d::Conv2dOp;
use diptych::ops::convert::ConvertOp;
use diptych::ops::depthwise::DepthwiseOp;
use diptych::ops::gemm::GemmOp;
use diptych::ops::pointwise::PointwiseOp;
use diptych::ops::separable::{SeparableInputs, SeparableOp};
use diptych::ops::{
    Convolution, Inputs, Op, Reference, conv2d, convert, depthwise, gemm, pointwise, separable,
};
use diptych::{Activation, DType, Epilogue, Layout, Precision, Shape};
use std::collections::BTreeMap;

/// An op of concrete shapes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Problem {
    Conv2d(Conv2dOp),
    Depthwise(DepthwiseOp),
    Pointwise(PointwiseOp),
    Separable(SeparableOp),
    Gemm(GemmOp),
    Convert(ConvertOp),
}

/// Host values of each operand, in the op's public layout. For `gemm`, `C` is what the destination
/// holds before the run, and what lies between the rows of an operand is NaN.
pub(crate) type Operands = BTreeMap<Operand, Vec<f32>>;

/// What a run should give.
pub(crate) enum Expected {
    /// Within a tolerance, in the order of the destination's logical elements.
    Near(Reference),
    /// Exactly this, in the order of the target layout, zero lanes included.
    Exact(Vec<f32>),
}

/// Multiples of 1/512 in [-1, 1): exact in f16, never subnormal.
fn noise(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 54) as f32 / 512.0 - 1.0
        })
        .collect()
}

/// Values in [-1, 1) of full f32 precision, or exact in f16 where the problem stores halves.
fn values(precision: Precision, seed: u64, len: usize) -> Vec<f32> {
    let mut values = noise(seed, len);
    if precision.storage() == DType::F32 {
        let fine = noise(seed + 77, len);
        values.iter_mut().zip(fine).for_each(|(value, fine)| *value += fine / 1024.0);
    }
    values
}

/// Puts NaN into what lies between the rows of `used` values of a matrix.
fn gaps_are_nan(mut values: Vec<f32>, ld: usize, used: usize) -> Vec<f32> {
    for row in values.chunks_mut(ld) {
        row.iter_mut().skip(used).for_each(|value| *value = f32::NAN);
    }
    values
}

impl Problem {
    pub(crate) fn op(&self) -> &dyn Op {
        match self {
            Problem::Conv2d(op) => op,
            Problem::Depthwise(op) => op,
            Problem::Pointwise(op) => op,
            Problem::Separable(op) => op,
            Problem::Gemm(op) => op,
            Problem::Convert(op) => op,
        }
    }

    /// A convolution: of a pair, the second one, which writes the result.
    pub(crate) fn convolution(&self) -> Option<&Convolution> {
        match self {
            Problem::Conv2d(op) => Some(&op.0),
            Problem::Depthwise(op) => Some(&op.0),
            Problem::Pointwise(op) => Some(&op.0),
            Problem::Separable(op) => Some(op.pointwise()),
            Problem::Gemm(_) | Problem::Convert(_) => None,
        }
    }

    /// The shape of the feature map that a convolution reads.
    pub(crate) fn source(&self) -> Shape {
        match self {
            Problem::Separable(op) => op.depthwise().input,
            _ => self.convolution().expect("a convolution").input,
        }
    }

    pub(crate) fn epilogue(&self) -> Epilogue {
        match self {
            Problem::Gemm(op) => op.epilogue,
            Problem::Convert(_) => Epilogue::default(),
            _ => self.convolution().map(|conv| conv.epilogue).unwrap_or_default(),
        }
    }

    pub(crate) fn precision(&self) -> Precision {
        match self {
            Problem::Gemm(op) => op.precision,
            Problem::Convert(op) => op.precision,
            _ => self.convolution().map(|conv| conv.precision).unwrap_or_default(),
        }
    }

    /// The operands, the same at every call.
    pub(crate) fn operands(&self) -> Operands {
        let precision = self.precision();
        let mut operands = Operands::new();
        let mut put = |operand, seed, len| {
            operands.insert(operand, values(precision, seed, len));
        };
        let (channels, residual) = match self {
            Problem::Convert(op) => {
                // The lanes beyond the channels of a device layout are zero by contract.
                let nhwc = noise(1, op.shape.elements());
                let src = match ConvertOp::new(op.shape, Layout::Nhwc, op.from, precision) {
                    Ok(from_host) => convert::oracle(&from_host, &nhwc),
                    Err(_) => nhwc,
                };
                return Operands::from([(Operand::Src, src)]);
            }
            Problem::Gemm(op) => {
                let held = [
                    (Operand::A, op.elements_a(), op.lda, if op.transpose_a { op.m } else { op.k }),
                    (Operand::B, op.elements_b(), op.ldb, if op.transpose_b { op.k } else { op.n }),
                    (Operand::C, op.elements_c(), op.ldc, op.n),
                    (Operand::Residual, op.elements_c(), op.ldc, op.n),
                ];
                for (index, (operand, len, ld, used)) in held.into_iter().enumerate() {
                    let values = values(precision, index as u64 + 1, len);
                    operands.insert(operand, gaps_are_nan(values, ld, used));
                }
                if !op.epilogue.residual {
                    operands.remove(&Operand::Residual);
                }
                (op.n, 0)
            }
            _ => {
                let conv = self.convolution().expect("a convolution");
                let weights = conv.output.c * conv.kernel[0] * conv.kernel[1] * conv.group_inputs();
                put(Operand::Src, 1, self.source().elements());
                put(Operand::Weights, 2, weights);
                if let Problem::Separable(op) = self {
                    let window = op.depthwise();
                    put(Operand::Window, 3, window.kernel[0] * window.kernel[1] * window.input.c);
                    if window.epilogue.bias {
                        put(Operand::WindowBias, 4, window.input.c);
                    }
                }
                (conv.output.c, conv.output.elements())
            }
        };
        let epilogue = self.epilogue();
        let scaled = |seed, factor: f32| noise(seed, channels).iter().map(|value| value * factor).collect();
        if epilogue.bias {
            operands.insert(Operand::Bias, scaled(5, 4.0));
        }
        if epilogue.activation == Activation::PRelu {
            operands.insert(Operand::Slope, scaled(6, 2.0));
        }
        if epilogue.residual && residual > 0 {
            operands.insert(Operand::Residual, values(precision, 7, residual));
        }
        operands
    }

    /// The oracle's answer.
    pub(crate) fn expected(&self, operands: &Operands) -> Expected {
        let get = |operand| operands.get(&operand).map(Vec::as_slice);
        let need = |operand| get(operand).expect("an operand of the op");
        let inputs = || Inputs {
            src: need(Operand::Src),
            weights: need(Operand::Weights),
            bias: get(Operand::Bias),
            slope: get(Operand::Slope),
            residual: get(Operand::Residual),
        };
        Expected::Near(match self {
            Problem::Conv2d(op) => conv2d::oracle(op, &inputs()),
            Problem::Depthwise(op) => depthwise::oracle(op, &inputs()),
            Problem::Pointwise(op) => pointwise::oracle(op, &inputs()),
            Problem::Separable(op) => {
                let (window, window_bias) = (need(Operand::Window), get(Operand::WindowBias));
                separable::oracle(op, &SeparableInputs { window, window_bias, pointwise: inputs() })
            }
            Problem::Gemm(op) => gemm::oracle(
                op,
                need(Operand::A),
                need(Operand::B),
                get(Operand::C),
                get(Operand::Bias),
                get(Operand::Slope),
                get(Operand::Residual),
            ),
            Problem::Convert(op) => return Expected::Exact(convert::oracle(op, need(Operand::Src))),
        })
    }

    /// `expected` with the bound of a kernel that sums other terms than the op's own, if `variant` does.
    pub(crate) fn expected_of(
        &self,
        variant: &str,
        operands: &Operands,
        expected: &Expected,
    ) -> Option<Expected> {
        let (Problem::Conv2d(op), Expected::Near(exact)) = (self, expected) else { return None };
        let inputs = Inputs {
            src: &operands[&Operand::Src],
            weights: &operands[&Operand::Weights],
            bias: operands.get(&Operand::Bias).map(Vec::as_slice),
            slope: None,
            residual: None,
        };
        conv2d::winograd_reference(op, variant, &inputs, exact).map(Expected::Near)
    }

    /// Where in the destination, counted in stored elements, logical element `index` of the
    /// oracle's answer lies.
    pub(crate) fn place(&self, index: usize) -> usize {
        match self {
            Problem::Gemm(op) => {
                let (row, column) = (index / op.n, index % op.n);
                op.index_c(row / op.m, row % op.m, column)
            }
            Problem::Convert(_) => index,
            _ => {
                let shape = self.convolution().expect("a convolution").output;
                let (pixel, c) = (index / shape.c, index % shape.c);
                let (row, w) = (pixel / shape.w, pixel % shape.w);
                Layout::C4.index(&shape, row / shape.h, row % shape.h, w, c)
            }
        }
    }

    /// Compares `result`, in the order of the oracle's answer, with it.
    ///
    /// # Errors
    /// The first element that is off, and how many are.
    pub(crate) fn compare(
        &self,
        operands: &Operands,
        expected: &Expected,
        result: &[f32],
    ) -> Result<(), String> {
        let mut wrong = 0;
        let mut first = String::new();
        let mut off = |text: &dyn Fn() -> String| {
            wrong += 1;
            if first.is_empty() {
                first = text();
            }
        };
        match expected {
            Expected::Exact(values) => {
                if values.len() != result.len() {
                    return Err(format!("{} values instead of {}", result.len(), values.len()));
                }
                for (index, (&found, &wanted)) in result.iter().zip(values).enumerate() {
                    if found != wanted {
                        off(&|| format!("element {index} is {found}, wanted {wanted}"));
                    }
                }
            }
            Expected::Near(reference) => {
                if reference.value.len() != result.len() {
                    return Err(format!("{} values instead of {}", result.len(), reference.value.len()));
                }
                let slope = operands.get(&Operand::Slope).map_or(0.0, |slopes| {
                    slopes.iter().fold(0.0f64, |largest, slope| largest.max(f64::from(slope.abs())))
                });
                let residual = operands.get(&Operand::Residual);
                for (index, &found) in result.iter().enumerate() {
                    let at = if let Problem::Gemm(_) = self { self.place(index) } else { index };
                    let tolerance = reference.tolerance(
                        index,
                        self.epilogue().activation,
                        slope,
                        self.precision(),
                        residual.map(|residual| residual[at]),
                    );
                    let wanted = reference.value[index];
                    // What an infinite operand reaches is infinite or NaN.
                    if !wanted.is_finite() && !found.is_finite() {
                        continue;
                    }
                    let error = (f64::from(found) - wanted).abs();
                    // A NaN fails as well.
                    if !(error <= tolerance && tolerance.is_finite()) {
                        off(&|| format!("element {index} is {found}, wanted {wanted} +- {tolerance:.3e}"));
                    }
                }
            }
        }
        if wrong == 0 { Ok(()) } else { Err(format!("{wrong} of {} elements, first {first}", result.len())) }
    }
}
