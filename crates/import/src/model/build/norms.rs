//! Norms that both formats have.

use super::builder::Builder;
use super::operand::{Mapped, Operand};
use super::reductions::reduced;
use crate::emit::Bits;
use crate::graph::Extras;
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::normalize::Normalize;
use crate::ops::pointwise::Pointwise;
use crate::ops::reduce::Reduction;
use crate::shape::Shape;

/// A norm over neighbouring channels: `x / (bias + share sum x_j^2)^beta`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalResponse {
    /// How many channels before and after each one belong to it.
    pub(crate) reach: [usize; 2],
    pub(crate) share: f32,
    pub(crate) bias: f32,
    pub(crate) beta: f32,
}

impl LocalResponse {
    /// Of a map whose channels are axis `axis`. The sum is a product with a matrix that has the share beside its
    /// diagonal.
    pub(crate) fn of(self, b: &mut Builder, x: Operand, axis: usize) -> Result<Operand, Reason> {
        let LocalResponse { reach: [before, after], share, bias, beta } = self;
        if ![share, bias, beta].into_iter().all(f32::is_finite) {
            return refused!("found bias {bias}, share {share}, beta {beta}, wanted finite numbers");
        }
        let extents = b.shape(&x)?;
        if extents.len() != 4 {
            return refused!("found an input of {extents:?}, wanted a map of rank 4");
        }
        let channels = extents[axis];
        let mapped = b.mapped(x)?;
        let order: Vec<usize> = (0..4).filter(|&own| own != axis).chain([axis]).collect();
        let value = b.in_order(&mapped, &order)?;
        let mapped = Mapped { value, order, kind: mapped.kind };
        b.budget.spend(channels.saturating_mul(channels).saturating_mul(8))?;
        let near = |row: usize, column: usize| column + before >= row && column <= row + after;
        let matrix: Vec<f32> = (0..channels * channels)
            .map(|at| if near(at / channels, at % channels) { share } else { 0.0 })
            .collect();
        let weights = HostTensor::new(Shape::nhwc(channels, 1, 1, channels), matrix)?;
        let extras = Extras::bias(HostTensor::vector(vec![bias; channels])?);
        let squares =
            b.add("squares", |graph, name| graph.elementwise(name, Function::Square, &[value.into()]))?;
        let sum = b.add("sum", |graph, name| {
            graph.pointwise(name, squares, weights, extras, Pointwise::default())
        })?;
        let sum = Operand::Value(Mapped { value: sum, ..mapped.clone() });
        let factor = b.apply("factor", Function::Pow, &[sum.into(), (-beta).into()])?;
        b.apply("", Function::Mul, &[Operand::Value(mapped).into(), factor.into()])
    }
}

/// An operand divided along an axis by the sum of its elements' sizes, or with `square` by the root of the sum of their
/// squares; by `least` where that is less.
pub(crate) fn of_size_one(
    b: &mut Builder,
    x: Operand,
    axis: usize,
    square: bool,
    least: f32,
) -> Result<Operand, Reason> {
    let function = if square { Function::Square } else { Function::Abs };
    let sizes = b.apply("sizes", function, &[x.clone().into()])?;
    let mut sum = reduced(b, "sum", sizes, Reduction::Sum, &[axis], true)?;
    if square {
        sum = b.apply("root", Function::Sqrt, &[sum.into()])?;
    }
    let bounded = b.apply("bounded", Function::Maximum, &[sum.into(), least.into()])?;
    b.apply("", Function::Div, &[x.into(), bounded.into()])
}

/// `x / sqrt(mean(x^2) + epsilon)` over some axes, times `scale` where there is one.
pub(crate) fn root_mean_square(
    b: &mut Builder,
    part: &str,
    x: Operand,
    along: &[usize],
    epsilon: f32,
    scale: Option<Operand>,
) -> Result<Operand, Reason> {
    // The op refuses an epsilon of 0.
    let whole = epsilon.is_finite() && epsilon >= f32::MIN_POSITIVE;
    let mapped = b.mapped(x)?;
    let extents = b.shape(&Operand::Value(mapped.clone()))?;
    let last = extents.len().saturating_sub(1);
    // A constant for each place along the last axis, which is stored last, is the normalisation's own.
    let own = match &scale {
        Some(Operand::Constant(constant, kind))
            if whole && constant.extents()[..] == extents[last..] && mapped.place(last) == last =>
        {
            Some(b.tensor(constant, *kind)?)
        }
        _ => None,
    };
    let rest = scale.filter(|_| own.is_none());
    let first = if rest.is_some() { "normal" } else { part };
    let normal = if whole {
        let axes = along.iter().map(|&axis| mapped.place(axis) as isize).collect();
        let options = Normalize { axes, epsilon: Bits(epsilon), centred: false };
        let value = b.add(first, |graph, name| graph.normalize(name, mapped.value, options, own, None))?;
        Operand::Value(Mapped { value, ..mapped })
    } else {
        composed(b, first, Operand::Value(mapped), along, epsilon)?
    };
    match rest {
        Some(scale) => b.apply(part, Function::Mul, &[normal.into(), scale.into()]),
        None => Ok(normal),
    }
}

/// `x / sqrt(mean(x^2) + epsilon)` along the axes `along`, of elementwise functions and a mean: for an `epsilon` that the
/// op `normalize` refuses.
fn composed(
    b: &mut Builder,
    part: &str,
    x: Operand,
    along: &[usize],
    epsilon: f32,
) -> Result<Operand, Reason> {
    let squares = b.apply("squares", Function::Square, &[x.clone().into()])?;
    let mean = reduced(b, "mean", squares, Reduction::Mean, along, true)?;
    let more = b.apply("more", Function::Add, &[mean.into(), epsilon.into()])?;
    let inverse = b.apply("inverse", Function::Rsqrt, &[more.into()])?;
    b.apply(part, Function::Mul, &[x.into(), inverse.into()])
}
