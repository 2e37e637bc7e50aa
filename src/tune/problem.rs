//! An op of concrete shapes with operands, and the result that a correct kernel gives.
//!
//! **Operands** are seeded noise in [-1, 1), multiples of 1/512: exact in f16, never subnormal.
//!
//! **The expected result** is that of the CPU backend in f32, of every element: an oracle in f64
//! would take longer than the tuning. Its own error is bounded as a kernel's is
//! ([`Reference::tolerance`]), so a kernel may be off by the sum of both bounds. The magnitudes that
//! the bound needs are the same product of the operands' absolute values, run by the same backend.
//! Tests hold this against the f64 oracles.

use crate::cpu::{
    Conv2dKernel, DepthwiseKernel, GemmKernel, PointwiseKernel, SeparableConstants, SeparableKernel,
};
use crate::dtype::{DType, Precision};
use crate::emit::{Activation, Bits, Epilogue, Operand};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::conv2d::{Conv2dOp, winograd_reference};
use crate::ops::convert::{self, ConvertOp};
use crate::ops::depthwise::DepthwiseOp;
use crate::ops::gemm::GemmOp;
use crate::ops::pointwise::PointwiseOp;
use crate::ops::separable::SeparableOp;
use crate::ops::{Convolution, Inputs, Op, Reference};
use crate::shape::Shape;
use crate::tune::bench::Check;
use std::collections::BTreeMap;

/// An op that can be tuned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Problem {
    /// A 2D convolution.
    Conv2d(Conv2dOp),
    /// A depthwise 2D convolution.
    Depthwise(DepthwiseOp),
    /// A 1x1 convolution.
    Pointwise(PointwiseOp),
    /// A depthwise and a 1x1 convolution as one.
    Separable(SeparableOp),
    /// A matrix product.
    Gemm(GemmOp),
    /// A change of layout between buffers.
    Convert(ConvertOp),
}

/// Host values of each operand, in the op's public layout.
pub(super) type Operands = BTreeMap<Operand, Vec<f32>>;

fn noise(seed: u64, len: usize) -> Vec<f32> {
    let mut random = super::random::Random::new(seed);
    (0..len).map(|_| (random.next() >> 54) as f32 / 512.0 - 1.0).collect()
}

fn absolute(values: &[f32]) -> Vec<f32> {
    values.iter().map(|value| value.abs()).collect()
}

impl Problem {
    /// The op.
    pub fn op(&self) -> &dyn Op {
        match self {
            Problem::Conv2d(op) => op,
            Problem::Depthwise(op) => op,
            Problem::Pointwise(op) => op,
            Problem::Separable(op) => op,
            Problem::Gemm(op) => op,
            Problem::Convert(op) => op,
        }
    }

    /// A convolution: what writes the result. The input of `separable` is its window's.
    pub(super) fn convolution(&self) -> Option<&Convolution> {
        match self {
            Problem::Conv2d(Conv2dOp(problem))
            | Problem::Depthwise(DepthwiseOp(problem))
            | Problem::Pointwise(PointwiseOp(problem)) => Some(problem),
            Problem::Separable(op) => Some(op.pointwise()),
            Problem::Gemm(_) | Problem::Convert(_) => None,
        }
    }

    /// The shape of the feature map that a convolution reads.
    pub(super) fn source(&self) -> Option<Shape> {
        match self {
            Problem::Separable(op) => Some(op.depthwise().input),
            _ => self.convolution().map(|conv| conv.input),
        }
    }

    fn epilogue(&self) -> Epilogue {
        match (self, self.convolution()) {
            (Problem::Gemm(op), _) => op.epilogue,
            (_, Some(problem)) => problem.epilogue,
            _ => Epilogue::default(),
        }
    }

    /// Storage and arithmetic.
    pub fn precision(&self) -> Precision {
        match (self, self.convolution()) {
            (Problem::Gemm(op), _) => op.precision,
            (Problem::Convert(op), _) => op.precision,
            (_, problem) => problem.map(|problem| problem.precision).unwrap_or_default(),
        }
    }

    /// The operands, the same at every call.
    pub(super) fn operands(&self) -> Result<Operands> {
        let mut lengths = Vec::new();
        let mut channels = 0;
        match (self, self.convolution()) {
            (Problem::Gemm(op), _) => {
                lengths.push((Operand::A, op.elements_a()));
                lengths.push((Operand::B, op.elements_b()));
                lengths.push((Operand::C, op.elements_c()));
                lengths.extend(op.epilogue.residual.then_some((Operand::Residual, op.elements_c())));
                channels = op.n;
            }
            (Problem::Convert(op), _) => {
                let nhwc = noise(1, op.shape.elements());
                let src = match ConvertOp::new(op.shape, Layout::Nhwc, op.from, Precision::F32) {
                    Ok(through) => convert::oracle(&through, &nhwc),
                    Err(_) => nhwc,
                };
                return Ok(Operands::from([(Operand::Src, src)]));
            }
            (_, Some(conv)) => {
                let taps = conv.kernel[0] * conv.kernel[1];
                lengths.push((Operand::Src, self.source().map_or(0, |shape| shape.elements())));
                if let Problem::Separable(op) = self {
                    let window = op.depthwise();
                    lengths.push((Operand::Window, window.kernel[0] * window.kernel[1] * window.input.c));
                    lengths.extend(window.epilogue.bias.then_some((Operand::WindowBias, window.input.c)));
                }
                lengths.push((Operand::Weights, conv.output.c * taps * conv.group_inputs()));
                lengths.extend(conv.epilogue.residual.then_some((Operand::Residual, conv.output.elements())));
                channels = conv.output.c;
            }
            (_, None) => {}
        }
        let epilogue = self.epilogue();
        lengths.extend(epilogue.bias.then_some((Operand::Bias, channels)));
        lengths.extend((epilogue.activation == Activation::PRelu).then_some((Operand::Slope, channels)));
        Ok(lengths.into_iter().map(|(operand, len)| (operand, noise(operand as u64 + 1, len))).collect())
    }

    /// The same problem without activation and residual, all factors positive: its result on
    /// absolute values is the magnitude of what is summed. Of `separable` the second half, which
    /// reads the first one's result.
    fn magnitudes(&self) -> Problem {
        let plain = |epilogue: Epilogue| Epilogue { bias: epilogue.bias, ..Epilogue::default() };
        let conv = |problem: &Convolution| Convolution { epilogue: plain(problem.epilogue), ..*problem };
        match self {
            Problem::Conv2d(op) => Problem::Conv2d(Conv2dOp(conv(&op.0))),
            Problem::Depthwise(op) => Problem::Depthwise(DepthwiseOp(conv(&op.0))),
            Problem::Pointwise(op) => Problem::Pointwise(PointwiseOp(conv(&op.0))),
            Problem::Separable(op) => Problem::Pointwise(PointwiseOp(conv(op.pointwise()))),
            Problem::Gemm(op) => Problem::Gemm(GemmOp {
                alpha: Bits(op.alpha.0.abs()),
                beta: Bits(op.beta.0.abs()),
                epilogue: plain(op.epilogue),
                ..*op
            }),
            Problem::Convert(op) => Problem::Convert(*op),
        }
    }

    /// The CPU backend's result, in the destination's public layout: NHWC, or `C` with its leading
    /// dimension.
    fn on_cpu(&self, operands: &Operands) -> Result<Vec<f32>> {
        let get = |operand| operands.get(&operand).map(Vec::as_slice);
        let need = |operand: Operand| {
            get(operand).ok_or_else(|| Error::Internal(format!("no {} to tune with", operand.name())))
        };
        let epilogue = self.epilogue();
        let (bias, slope) = (
            get(Operand::Bias).filter(|_| epilogue.bias),
            get(Operand::Slope).filter(|_| epilogue.activation == Activation::PRelu),
        );
        let residual = get(Operand::Residual).filter(|_| epilogue.residual);
        let mut dst = vec![0.0; self.convolution().map_or(0, |problem| problem.output.elements())];
        match self {
            Problem::Conv2d(op) => Conv2dKernel::new(op, need(Operand::Weights)?, bias, slope)?.run(
                need(Operand::Src)?,
                residual,
                &mut dst,
            )?,
            Problem::Depthwise(op) => DepthwiseKernel::new(op, need(Operand::Weights)?, bias, slope)?.run(
                need(Operand::Src)?,
                residual,
                &mut dst,
            )?,
            Problem::Pointwise(op) => PointwiseKernel::new(op, need(Operand::Weights)?, bias, slope)?.run(
                need(Operand::Src)?,
                residual,
                &mut dst,
            )?,
            Problem::Separable(op) => {
                let (window, window_bias) = (need(Operand::Window)?, get(Operand::WindowBias));
                let weights = need(Operand::Weights)?;
                let constants = SeparableConstants { window, window_bias, weights, bias, slope };
                SeparableKernel::new(op, constants)?.run(need(Operand::Src)?, residual, &mut dst)?;
            }
            Problem::Gemm(op) => {
                dst = need(Operand::C)?.to_vec();
                GemmKernel::new(op, bias, slope)?.run(
                    need(Operand::A)?,
                    need(Operand::B)?,
                    residual,
                    &mut dst,
                )?;
            }
            Problem::Convert(op) => dst = convert::oracle(op, need(Operand::Src)?),
        }
        Ok(dst)
    }

    /// Where the destination's logical elements lie: in the public layout, and as stored on the
    /// device.
    fn places(&self) -> Vec<[usize; 2]> {
        match (self, self.convolution()) {
            (Problem::Gemm(op), _) => (0..op.batch * op.m * op.n)
                .map(|index| {
                    let (row, column) = (index / op.n, index % op.n);
                    [op.index_c(row / op.m, row % op.m, column); 2]
                })
                .collect(),
            (Problem::Convert(op), _) => (0..op.to.elements(&op.shape)).map(|index| [index; 2]).collect(),
            (_, Some(conv)) => (0..conv.output.elements())
                .map(|index| {
                    let (pixel, c) = (index / conv.output.c, index % conv.output.c);
                    let (row, w) = (pixel / conv.output.w, pixel % conv.output.w);
                    let (n, h) = (row / conv.output.h, row % conv.output.h);
                    [index, Layout::C4.index(&conv.output, n, h, w, c)]
                })
                .collect(),
            (_, None) => Vec::new(),
        }
    }

    /// Terms of one sum.
    fn terms(&self) -> usize {
        let bias = usize::from(self.epilogue().bias);
        match (self, self.convolution()) {
            (Problem::Gemm(op), _) => op.k + bias + usize::from(op.beta.0 != 0.0),
            (_, Some(conv)) => conv.kernel[0] * conv.kernel[1] * conv.group_inputs() + bias,
            _ => 0,
        }
    }
}

/// What a correct kernel stores, with how far it may be off.
#[derive(Debug)]
pub(super) struct Expectation {
    /// Place as stored, value, tolerance.
    elements: Vec<(usize, f32, f64)>,
}

impl Expectation {
    /// Of a kernel that sums the op's own terms.
    pub(super) fn new(problem: &Problem, operands: &Operands) -> Result<Self> {
        match problem {
            Problem::Separable(op) => Self::of_separable(op, operands),
            _ => Expectation::of(problem, operands, None, &[]),
        }
    }

    /// One half after the other: the second one's input is the first one's result, and brings along
    /// by how far that may be off.
    fn of_separable(op: &SeparableOp, operands: &Operands) -> Result<Self> {
        let roles = [
            (Operand::Src, Operand::Src),
            (Operand::Window, Operand::Weights),
            (Operand::WindowBias, Operand::Bias),
        ];
        let given = |(from, to): (Operand, Operand)| Some((to, operands.get(&from)?.clone()));
        let first = Problem::Depthwise(DepthwiseOp(*op.depthwise()));
        let between = Self::new(&first, &roles.into_iter().filter_map(given).collect())?;
        let (mut second, mut offs) = (operands.clone(), operands.clone());
        second.insert(Operand::Src, between.elements.iter().map(|(_, value, _)| *value).collect());
        offs.insert(Operand::Src, between.elements.iter().map(|(_, _, off)| *off as f32).collect());
        offs.insert(Operand::Weights, absolute(operands.get(&Operand::Weights).map_or(&[], Vec::as_slice)));
        let plain = Convolution { epilogue: Epilogue::default(), ..*op.pointwise() };
        let carried = Problem::Pointwise(PointwiseOp(plain)).on_cpu(&offs)?;
        // Itself computed in f32: a thousandth more covers its own rounding.
        let carried: Vec<f64> = carried.into_iter().map(|off| 1.001 * f64::from(off)).collect();
        Expectation::of(&Problem::Pointwise(PointwiseOp(*op.pointwise())), &second, None, &carried)
    }

    /// Of a kernel that sums other terms, as a Winograd convolution does; `None` if `variant` does not.
    pub(super) fn of_variant(problem: &Problem, operands: &Operands, variant: &str) -> Result<Option<Self>> {
        let Problem::Conv2d(op) = problem else { return Ok(None) };
        let get = |operand| operands.get(&operand).map(Vec::as_slice);
        let (Some(src), Some(weights)) = (get(Operand::Src), get(Operand::Weights)) else { return Ok(None) };
        let inputs = Inputs { src, weights, bias: get(Operand::Bias), slope: None, residual: None };
        let own = winograd_reference(op, variant, &inputs, &Reference::default());
        own.map(|own| Expectation::of(problem, operands, Some(&own), &[])).transpose()
    }

    /// `own` are the sums of a kernel that sums other terms, `carried` is by how much each sum is off
    /// because its terms are.
    fn of(problem: &Problem, operands: &Operands, own: Option<&Reference>, carried: &[f64]) -> Result<Self> {
        let values = problem.on_cpu(operands)?;
        let places = problem.places();
        if let Problem::Convert(_) = problem {
            let store = if problem.precision().storage() == DType::F32 { 0.0 } else { 1e-3 };
            let exact = |[place, stored]: [usize; 2]| {
                let value = values.get(place).copied().unwrap_or_default();
                (stored, value, store * f64::from(value.abs()))
            };
            return Ok(Expectation { elements: places.into_iter().map(exact).collect() });
        }
        let positive = operands.iter().map(|(operand, values)| (*operand, absolute(values))).collect();
        let magnitudes = problem.magnitudes().on_cpu(&positive)?;
        let epilogue = problem.epilogue();
        let slope = operands.get(&Operand::Slope).map_or(0.0, |slopes| {
            slopes.iter().fold(0.0f64, |largest, slope| largest.max(f64::from(slope.abs())))
        });
        let residuals = operands.get(&Operand::Residual);
        let mut elements = Vec::with_capacity(places.len());
        let mut reference = Reference { terms: problem.terms(), ..Default::default() };
        for [place, stored] in places {
            let (Some(&value), Some(&magnitude)) = (values.get(place), magnitudes.get(place)) else {
                return Err(Error::Internal(format!("no element {place} of the expected result")));
            };
            reference.value = vec![f64::from(value)];
            // Itself summed in f32: a thousandth more covers its own rounding.
            reference.magnitude = vec![1.001 * f64::from(magnitude)];
            reference.carried = carried.get(place).copied().into_iter().collect();
            let residual = residuals.and_then(|residuals| residuals.get(place)).copied();
            let bound = |reference: &Reference, precision| {
                reference.tolerance(0, epilogue.activation, slope, precision, residual)
            };
            let of_the_cpu = bound(&reference, Precision::F32);
            let kernel = match own {
                Some(own) => Reference {
                    value: reference.value.clone(),
                    magnitude: own.magnitude.get(place).copied().into_iter().collect(),
                    terms: own.terms,
                    ..Default::default()
                },
                None => reference.clone(),
            };
            let mut tolerance = bound(&kernel, problem.precision());
            if !tolerance.is_finite() {
                // Beyond a thousand f16 terms no order of summation is safe in the worst case; the
                // usual error grows with the root of the terms (Higham and Mary, *A New Approach
                // to Probabilistic Rounding Error Analysis*, 2019, with lambda 6).
                let unit = 2.0 * problem.precision().accumulator().unit_roundoff();
                let usual = 6.0 * (kernel.terms as f64).sqrt() * unit * kernel.magnitude[0];
                let usual = usual + kernel.carried.first().copied().unwrap_or_default();
                tolerance =
                    epilogue.activation.lipschitz(slope) * usual + bound(&kernel, Precision::F16Storage);
            }
            elements.push((stored, value, tolerance + of_the_cpu));
        }
        Ok(Expectation { elements })
    }

    /// Compares what a kernel stored.
    pub(super) fn compare(&self, stored: &[f32]) -> Check {
        let mut wrong = 0usize;
        let mut first = String::new();
        for &(place, wanted, tolerance) in &self.elements {
            let found = stored.get(place).copied().unwrap_or(f32::NAN);
            let error = (f64::from(found) - f64::from(wanted)).abs();
            // NaN, which an unwritten element holds, is not within.
            if error <= tolerance {
                continue;
            }
            if wrong == 0 {
                first = format!("stored element {place} is {found}, wanted {wanted} +- {tolerance:.2e}");
            }
            wrong += 1;
        }
        if wrong == 0 {
            return Check::Correct;
        }
        Check::Wrong { detail: format!("{first}; {wrong} of {} elements are off", self.elements.len()) }
    }
}

#[cfg(test)]
mod tests;
