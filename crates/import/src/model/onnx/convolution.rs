//! Convolutions: weights and what follows them per channel are worked out while the file is read.

use super::filter::{follow, groups, outputs_first, weights};
use super::import::{Import, Op};
use crate::model::build::{Groups, Operand, Weights, Windows, convolution};
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

type Done = Result<(), Reason>;

impl Windows {
    /// The windows of an operator over `input` (spatial extents alone).
    pub(super) fn read(op: &Op<'_>, input: &[usize], kernel: &[usize]) -> Result<Self, Reason> {
        let rank = input.len();
        let list = |name: &str| -> Result<Vec<usize>, Reason> {
            match op.ints(name) {
                None => Ok(vec![1; rank]),
                Some(list) => {
                    let list: Option<Vec<usize>> = list
                        .iter()
                        .map(|&one| usize::try_from(one).ok().filter(|one| (1..1 << 15).contains(one)))
                        .collect();
                    let list = list.filter(|list| list.len() == rank);
                    list.ok_or_else(|| {
                        format!("found {name} {:?}, wanted {rank} numbers from 1 on", op.ints(name)).into()
                    })
                }
            }
        };
        let (stride, dilation) = (list("strides")?, list("dilations")?);
        if kernel.len() != rank || kernel.iter().any(|&taps| taps == 0 || taps >= 1 << 15) {
            return refused!(
                "found windows of {kernel:?} over {input:?}, wanted 1 to 32767 taps along each axis"
            );
        }
        let mut windows = Windows { stride, dilation, ..Windows::new(kernel) };
        match op.text("auto_pad", "NOTSET")? {
            "NOTSET" | "" => {
                if let Some(pads) = op.ints("pads") {
                    if pads.len() != 2 * rank || pads.iter().any(|pad| pad.unsigned_abs() >= 1 << 15) {
                        return refused!(
                            "found pads {pads:?} for {rank} axes, wanted two for each, below 32768"
                        );
                    }
                    windows.pads = (0..rank).map(|axis| (pads[axis], pads[rank + axis])).collect();
                }
            }
            "VALID" => (),
            mode @ ("SAME_UPPER" | "SAME_LOWER") => windows.surround(input, mode == "SAME_UPPER"),
            other => {
                return refused!("found auto_pad {other:?}, wanted NOTSET, VALID, SAME_UPPER or SAME_LOWER");
            }
        }
        Ok(windows)
    }
}

/// `Conv` in one to three dimensions.
pub(super) fn conv<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let mut weights = weights(i, op, &outputs_first(own.len()), false)?;
    let windows = Windows::read(op, own.get(2..).unwrap_or(&[]), &weights.kernel(i)?)?;
    let target = follow(i, op, &mut weights)?;
    let x = Operand::Value(i.mapped(op, 0)?);
    let y = convolution(i, x, weights, windows, None)?;
    i.set_name(target, y)
}

/// The sums of a convolution whose input, weights and bias are worked out by the caller.
pub(super) fn sums<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    x: Operand,
    weights: Operand,
    bias: Option<Operand>,
) -> Result<Operand, Reason> {
    let own = i.shape(&x)?;
    let weights = Weights::new(i, weights, bias, &outputs_first(own.len()), Groups::of(groups(op)?))?;
    let windows = Windows::read(op, own.get(2..).unwrap_or(&[]), &weights.kernel(i)?)?;
    convolution(i, x, weights, windows, None)
}

/// `FusedConv` of com.microsoft: a convolution, a summand, and a function.
pub(super) fn fused<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let bias = if op.has(2) { Some(i.slot(op, 2)?) } else { None };
    let (x, weights) = (i.slot(op, 0)?, i.slot(op, 1)?);
    let mut slot = sums(i, op, x, weights, bias)?;
    if op.has(3) {
        let summand = i.slot(op, 3)?;
        slot = i.apply("sum", Function::Add, &[slot.into(), summand.into()])?;
    }
    let numbers = op.floats("activation_params").unwrap_or(&[]);
    let number = |index: usize, default: f32| numbers.get(index).copied().unwrap_or(default);
    let slot = match op.text("activation", "")? {
        "" => slot,
        "Relu" => i.apply("", Function::Relu, &[slot.into()])?,
        "Sigmoid" => i.apply("", Function::Sigmoid, &[slot.into()])?,
        "Tanh" => i.apply("", Function::Tanh, &[slot.into()])?,
        "LeakyRelu" => i.apply("", Function::LeakyRelu, &[slot.into(), number(0, 0.01).into()])?,
        "Clip" => i.apply(
            "",
            Function::Clamp,
            &[slot.into(), number(0, f32::MIN).into(), number(1, f32::MAX).into()],
        )?,
        "HardSigmoid" => {
            let scaled = i.apply("scaled", Function::Mul, &[slot.into(), number(0, 0.2).into()])?;
            let moved = i.apply("moved", Function::Add, &[scaled.into(), number(1, 0.5).into()])?;
            i.apply("", Function::Clamp, &[moved.into(), 0.0.into(), 1.0.into()])?
        }
        other => return refused!("found the activation {other:?}"),
    };
    i.set(op, 0, slot)
}

/// A constant as a list of floats.
pub(super) fn floats_of(i: &mut Import<'_>, constant: &Constant) -> Result<Vec<f32>, Reason> {
    Ok(constant.floats(&mut i.budget)?.to_nhwc().into_owned())
}
