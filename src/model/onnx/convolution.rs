//! Convolutions: weights and what follows them per channel are worked out while the file is read.

use super::filter::{computed_weights, filter, follow, groups};
use super::import::{Import, Op};
use crate::host::HostTensor;
use crate::model::build::{Filter, Mapped, Operand, Windows, channels_last, convolved, unfolded};
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
        let mut windows = Windows { kernel: kernel.to_vec(), stride, dilation, pads: vec![(0, 0); rank] };
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
            mode @ ("SAME_UPPER" | "SAME_LOWER") => {
                for (axis, &extent) in input.iter().enumerate() {
                    let output = extent.div_ceil(windows.stride[axis]);
                    let span = output.saturating_sub(1) * windows.stride[axis] + windows.span(axis);
                    let whole = span.saturating_sub(extent) as i64;
                    let (less, more) = (whole / 2, whole - whole / 2);
                    windows.pads[axis] = if mode == "SAME_UPPER" { (less, more) } else { (more, less) };
                }
            }
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
    if let Some((weights, bias)) = computed_weights(i, op)? {
        let kernel = i.shape(&weights)?;
        let windows = Windows::read(op, own.get(2..).unwrap_or(&[]), kernel.get(2..).unwrap_or(&[]))?;
        let (x, groups) = (i.slot(op, 0)?, groups(op)?);
        let result = match (weights, bias) {
            // The convolution that known weights have, and the bias behind it.
            (Operand::Constant(..), Some(bias)) => {
                let weights = i.tensor(op, 1)?;
                let sum = sums(i, op, x, &weights, None)?;
                let mut of_channels = vec![1; own.len()];
                of_channels[1] = kernel[0];
                let bias = i.with_extents("bias", bias, &of_channels)?;
                i.apply("", Function::Add, &[sum.into(), bias.into()])?
            }
            (weights, bias) => unfolded(i, x, &own, weights, bias, &windows, groups)?,
        };
        return i.set(op, 0, result);
    }
    let mut filter = filter(i, op, 0)?;
    let (windows, groups) = checked(op, &own, &filter)?;
    let target = follow(i, op, &mut filter, groups)?;
    let (x, kind) = i.map_input(op, 0)?;
    let value = convolved(i, x, &own, filter, windows, groups)?;
    let mapped = Mapped { value, order: channels_last(own.len()), kind };
    i.set_name(target, Operand::Value(mapped))
}

/// The windows and groups of a convolution of an input of extents `own`.
fn checked(op: &Op<'_>, own: &[usize], filter: &Filter) -> Result<(Windows, usize), Reason> {
    let rank = own.len();
    if filter.extents.len() != rank || !(3..=5).contains(&rank) {
        return refused!(
            "found weights {:?} for an input of {own:?}, wanted the same number of axes",
            filter.extents
        );
    }
    let groups = groups(op)?;
    if !filter.extents[0].is_multiple_of(groups) {
        return refused!("found {} output channels in {groups} groups, wanted a multiple", filter.extents[0]);
    }
    Ok((Windows::read(op, own.get(2..).unwrap_or(&[]), filter.extents.get(2..).unwrap_or(&[]))?, groups))
}

/// The sums of a convolution whose input and weights are worked out by the caller.
pub(super) fn sums<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    x: Operand,
    weights: &HostTensor,
    bias: Option<Vec<f32>>,
) -> Result<Operand, Reason> {
    let own = i.shape(&x)?;
    let extents = weights.dims().extents().to_vec();
    let filter = Filter::new(weights.clone(), extents, bias);
    let (windows, groups) = checked(op, &own, &filter)?;
    let mapped = i.mapped_slot(x, None)?;
    let order = channels_last(own.len());
    let x = i.in_order(&mapped, &order)?;
    let value = convolved(i, x, &own, filter, windows, groups)?;
    Ok(Operand::Value(Mapped { value, order, kind: mapped.kind }))
}

/// `FusedConv` of com.microsoft: a convolution, a summand, and a function.
pub(super) fn fused<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let weights = i.tensor(op, 1)?;
    let bias = if op.has(2) { Some(i.list(op, 2)?) } else { None };
    let x = i.slot(op, 0)?;
    let mut slot = sums(i, op, x, &weights, bias)?;
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
