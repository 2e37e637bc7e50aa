//! Sums of integers that are computed in f32, exactly: no sum goes beyond 2^24. These are of convolutions that the ops of bytes do
//! not have (groups, several outputs for each channel, weights of more than 8 bits less their zero point), transposed
//! convolutions, and products of two values.

use super::products::{integers, whole_bias};
use super::values::{activation_bounds, both, operator};
use super::windows::{constant, reads_only};
use super::{Bytes, Grid, Pass};
use crate::dims::Dims;
use crate::emit::{Activation, Operand};
use crate::error::Result;
use crate::graph::{Derived, Value};
use crate::host::HostTensor;
use crate::lower::unit::Unit;
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::elementwise::{Elementwise, Function, Program, Source};
use crate::ops::gemm::Gemm;
use crate::ops::pointwise::Pointwise;
use crate::ops::transposed_conv2d::TransposedConv2d;
use crate::shape::Border;

/// Sums up to which f32 has all integers.
const MOST: i64 = 1 << 24;

/// The largest distance of a byte from the one that stands for 0.
const FARTHEST: i64 = 255;

/// Weights and a bias as whole numbers, and the factor of each output.
struct Whole {
    weights: HostTensor,
    bias: Option<HostTensor>,
    factors: Vec<f32>,
}

/// The whole weights and bias of a unit, whose outputs are counted along an axis of the weights; nothing if they are no constants of
/// integers, or sums may be too large.
fn whole_weights(
    derived: &Derived,
    unit: &Unit,
    operand: Operand,
    (axis, [x, y]): (usize, [Grid; 2]),
) -> Option<Whole> {
    let weights = constant(unit, operand)?;
    let dims = weights.dims();
    let outputs = *dims.extents().get(axis)?;
    let scales = weights.scales().filter(|own| own.values.len() == 1 || own.axis == axis)?;
    let values = integers(weights)?;
    let bias = whole_bias(constant(unit, Operand::Bias), &scales.values, x.scale)?;
    let behind = dims.extents().iter().skip(axis + 1).product::<usize>().max(1);
    let mut sums = vec![0i64; outputs];
    for (sum, bias) in sums.iter_mut().zip(bias.iter().flatten()) {
        *sum = i64::from(*bias).abs();
    }
    for (at, value) in values.iter().enumerate() {
        if let Some(sum) = sums.get_mut(at / behind % outputs) {
            *sum = sum.saturating_add(FARTHEST.saturating_mul(i64::from(*value).abs()));
        }
    }
    if sums.iter().any(|&sum| sum > MOST) || bias.as_ref().is_some_and(|bias| bias.len() != outputs) {
        return None;
    }
    let floats = |list: &[i32]| list.iter().map(|&value| value as f32).collect::<Vec<f32>>();
    let factor = |output: usize| {
        let own = if scales.values.len() == 1 { scales.values.first() } else { scales.values.get(output) };
        own.map_or(0.0, |own| x.scale * own / y.scale)
    };
    Some(Whole {
        weights: derived
            .joined("whole numbers of scales", &[weights], |_, _| HostTensor::new(dims, floats(&values)))
            .ok()?,
        bias: bias.map(|list| HostTensor::vector(floats(&list))).transpose().ok()?,
        factors: (0..outputs).map(factor).collect(),
    })
}

impl Pass<'_, '_> {
    /// The bytes of sums of integers in f32.
    pub(super) fn exact(
        &mut self,
        name: &str,
        unit: &Unit,
        (grid, bounds): (Grid, [f32; 2]),
    ) -> Result<Option<Bytes>> {
        let none = Activation::None;
        if let Some(&own) = operator::<Gemm>(unit) {
            return self.product_of_two(name, unit, own, (grid, bounds));
        }
        let Some(x) = self.source(unit, Operand::Src) else { return Ok(None) };
        let (axis, activation) = if let Some(own) = operator::<Conv2d>(unit) {
            if own.border != Border::Zeros {
                return Ok(None);
            }
            (0, own.activation)
        } else if let Some(own) = operator::<Pointwise>(unit) {
            (0, own.activation)
        } else if let Some(own) = operator::<Depthwise>(unit) {
            (3, own.activation)
        } else if let Some(own) = operator::<TransposedConv2d>(unit) {
            (0, own.activation)
        } else {
            return Ok(None);
        };
        let Some(own) = activation_bounds(activation) else { return Ok(None) };
        if !reads_only(unit, &[Operand::Src, Operand::Weights]) {
            return Ok(None);
        }
        let derived = self.network.graph.derived();
        let Some(whole) = whole_weights(derived, unit, Operand::Weights, (axis, [x.grid, grid])) else {
            return Ok(None);
        };
        let Some(bytes) = self.bytes_of(x)? else { return Ok(None) };
        let numbers = self.whole_numbers(&format!("{name}/whole"), bytes, x.grid)?;
        let mut inputs = vec![(Operand::Src, numbers), (Operand::Weights, self.constant(whole.weights))];
        if let Some(bias) = whole.bias {
            inputs.push((Operand::Bias, self.constant(bias)));
        }
        let part = format!("{name}/sums");
        let mut sums = if let Some(&own) = operator::<Conv2d>(unit) {
            self.add(&part, Conv2d { activation: none, ..own }, &inputs)?
        } else if operator::<Pointwise>(unit).is_some() {
            self.add(&part, Pointwise { activation: none }, &inputs)?
        } else if let Some(&own) = operator::<Depthwise>(unit) {
            self.add(&part, Depthwise { activation: none, ..own }, &inputs)?
        } else if let Some(&own) = operator::<TransposedConv2d>(unit) {
            self.add(&part, TransposedConv2d { activation: none, ..own }, &inputs)?
        } else {
            return Ok(None);
        };
        // Other sums than those of the formula are nearly whole.
        if operator::<Conv2d>(unit).is_some() || operator::<Pointwise>(unit).is_some() {
            let round = Program::of(Function::Round, vec![Source::Input(0)])?;
            sums =
                self.add(&format!("{name}/rounded"), Elementwise::new(round), &[(Operand::Arg(0), sums)])?;
        }
        self.steps(name, sums, whole.factors, (grid, both(own, bounds))).map(Some)
    }

    /// Sums times factors, rounded to bytes.
    fn steps(
        &mut self,
        name: &str,
        sums: Value,
        factors: Vec<f32>,
        (grid, bounds): (Grid, [f32; 2]),
    ) -> Result<Bytes> {
        let program = Program::of(Function::Mul, vec![Source::Input(0), Source::Input(1)])?;
        let factors = self.constant(HostTensor::new(Dims::new(&[factors.len()])?, factors)?);
        let inputs = [(Operand::Arg(0), sums), (Operand::Arg(1), factors)];
        let steps = self.add(&format!("{name}/steps"), Elementwise::new(program), &inputs)?;
        self.rounded(name, steps, 1.0, grid.range(bounds))
    }

    /// The product of two quantized values.
    fn product_of_two(
        &mut self,
        name: &str,
        unit: &Unit,
        options: Gemm,
        (grid, bounds): (Grid, [f32; 2]),
    ) -> Result<Option<Bytes>> {
        let plain = Gemm {
            transpose_a: options.transpose_a,
            transpose_b: options.transpose_b,
            activation: options.activation,
            ..Gemm::default()
        };
        let Some(own) = activation_bounds(options.activation).filter(|_| options == plain) else {
            return Ok(None);
        };
        if unit.inputs.len() != 2 {
            return Ok(None);
        }
        let (Some(a), Some(b)) = (self.source(unit, Operand::A), self.source(unit, Operand::B)) else {
            return Ok(None);
        };
        let extents = self.network.dims(a.value)?;
        let depth =
            extents.extents().iter().rev().nth(usize::from(options.transpose_a)).copied().unwrap_or(0);
        if FARTHEST * FARTHEST * depth as i64 > MOST {
            return Ok(None);
        }
        let (Some(of_a), Some(of_b)) = (self.bytes_of(a)?, self.bytes_of(b)?) else { return Ok(None) };
        let factor = a.grid.scale * b.grid.scale / grid.scale;
        let of_a = self.whole_numbers(&format!("{name}/a"), of_a, a.grid)?;
        let of_b = self.whole_numbers(&format!("{name}/b"), of_b, b.grid)?;
        let inputs = [(Operand::A, of_a), (Operand::B, of_b)];
        let options = Gemm { activation: Activation::None, ..options };
        let sums = self.add(&format!("{name}/sums"), options, &inputs)?;
        self.steps(name, sums, vec![factor], (grid, both(own, bounds))).map(Some)
    }
}
