//! The result that a correct kernel gives, found quickly: an oracle in f64 would take longer than the
//! tuning that it is needed for.
//!
//! The values are those of the CPU's kernels in f32, whose error is bounded as a kernel's is. The
//! magnitudes that the bound needs are the same sums of the operands' absolute values, by the same
//! kernels. Tests compare this with the oracles.

use super::op::Op;
use super::operands::{self, Operands, Role};
use super::reference::{Reference, Sum};
use crate::dtype::Precision;
use crate::emit::{Epilogue, Operand};
use crate::error::{Error, Result};
use crate::sorted;
use std::borrow::Cow;

/// What covers the rounding of a bound that was itself computed in f32: a thousandth more.
const ROUNDED: f64 = 1.001;

/// How far the result of a correct kernel in `precision` may be from `expected`, which is what
/// [`Answer::Quick`](super::Answer::Quick) gave. `own` is that of a kernel that forms other sums.
pub fn tolerance(expected: &Reference, own: Option<&Reference>, index: usize, precision: Precision) -> f64 {
    let kernel = own.unwrap_or(expected).usual_tolerance(index, precision);
    match expected {
        // The CPU's own error.
        Reference::Sum(_) => kernel + expected.tolerance(index, Precision::F32),
        Reference::Bounded { .. } => kernel,
    }
}

/// The sums of `op`. `plain` is the op without activation and residual, all factors positive.
pub(super) fn of_sum(
    op: &dyn Op,
    plain: &dyn Op,
    terms: usize,
    epilogue: &Epilogue,
    operands: &Operands<'_>,
) -> Result<Reference> {
    let infos = op.operands();
    let output = infos.iter().rfind(|info| matches!(info.role, Role::Output | Role::Update));
    let output = output.ok_or_else(|| Error::Internal(format!("{} writes nothing", op.name())))?;
    let mut sum = Sum::begin(terms, epilogue, operands, output);
    sum.value = on_cpu(op, operands)?.into_iter().map(f64::from).collect();
    let magnitude = on_cpu(plain, &absolute(operands))?;
    sum.magnitude = magnitude.into_iter().map(|magnitude| ROUNDED * f64::from(magnitude)).collect();
    Ok(Reference::Sum(sum))
}

fn absolute<'a>(operands: &Operands<'_>) -> Operands<'a> {
    let absolute = |values: &[f32]| Cow::Owned(values.iter().map(|value| value.abs()).collect());
    sorted::map(operands.iter().map(|(operand, values)| (*operand, absolute(values))))
}

/// The destination's elements, without gaps between rows, as the CPU computes them. Operands that `op`
/// does not have are left out.
pub fn on_cpu(op: &dyn Op, operands: &Operands<'_>) -> Result<Vec<f32>> {
    let infos = op.operands();
    let need = |operand: Operand| {
        let values = operands::get(operands, operand);
        values.ok_or_else(|| Error::input(format!("{} {}", op.name(), operand.name()), "none", "values"))
    };
    let (mut constants, mut inputs, mut outputs) = (Operands::new(), Vec::new(), Vec::new());
    for info in &infos {
        match info.role {
            Role::Constant => drop(constants.insert(info.operand, Cow::Borrowed(need(info.operand)?))),
            Role::Input => inputs.push((info.operand, need(info.operand)?)),
            Role::Output => outputs.push((info, vec![0.0; info.elements()])),
            Role::Update => outputs.push((info, need(info.operand)?.to_vec())),
        }
    }
    let kernel = op.cpu(&constants)?;
    let mut slices: Vec<(Operand, &mut [f32])> =
        outputs.iter_mut().map(|(info, values)| (info.operand, values.as_mut_slice())).collect();
    kernel.run(&inputs, &mut slices)?;
    let Some((info, values)) = outputs.last() else {
        return Err(Error::Internal(format!("{} writes nothing", op.name())));
    };
    Ok((0..info.shape.elements()).filter_map(|index| values.get(info.place(index)).copied()).collect())
}
