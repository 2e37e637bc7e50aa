//! Normalisations.

use super::import::{Import, Op};
use crate::emit::Bits;
use crate::host::HostTensor;
use crate::model::build::{Arg, LocalResponse, Mapped, Operand, axis, channels_last, of_size_one, reduced};
use crate::model::constant::{Constant, dims_of};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::normalize::Normalize;
use crate::ops::reduce::Reduction;

type Done = Result<(), Reason>;

/// The factor and the summand of each channel of a `BatchNormalization` by constants.
pub(super) fn batch_constants<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<(Vec<f32>, Vec<f32>), Reason> {
    let lists = (1..5).map(|index| i.list(op, index)).collect::<Result<Vec<_>, _>>()?;
    let [scale, bias, mean, variance] = &lists[..] else { return refused!("found no statistics") };
    if lists.iter().any(|list| list.len() != scale.len()) {
        return refused!(
            "found lists of {:?} elements, wanted one length",
            lists.iter().map(Vec::len).collect::<Vec<_>>()
        );
    }
    let epsilon = f64::from(op.epsilon()?);
    let factor: Vec<f32> = scale
        .iter()
        .zip(variance)
        .map(|(&scale, &variance)| (f64::from(scale) / (f64::from(variance) + epsilon).sqrt()) as f32)
        .collect();
    let summand =
        bias.iter().zip(mean).zip(&factor).map(|((bias, mean), factor)| bias - mean * factor).collect();
    Ok((factor, summand))
}

/// A list with one element for each channel of a tensor of rank `rank`.
fn per_channel(list: Vec<f32>, rank: usize) -> Result<Operand, Reason> {
    let mut extents = vec![1; rank];
    match extents.get_mut(1) {
        Some(extent) => *extent = list.len(),
        None => extents = vec![list.len()],
    }
    let tensor = HostTensor::new(dims_of(&extents)?, list)?;
    Ok(Operand::Constant(Constant::Floats(tensor), crate::model::build::Kind::F32))
}

/// `BatchNormalization` that no convolution takes.
pub(super) fn batch<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    if op.flag("training_mode", false) {
        return batch_of_itself(i, op);
    }
    let rank = i.extents_of(op, 0)?.len();
    let x = i.slot(op, 0)?;
    let constant = (1..5).all(|index| matches!(i.slot(op, index), Ok(Operand::Constant(..))));
    if !constant {
        return batch_of_values(i, op, x, rank);
    }
    let (factor, summand) = batch_constants(i, op)?;
    let (factor, summand) = (per_channel(factor, rank)?, per_channel(summand, rank)?);
    let scaled = i.apply("scaled", Function::Mul, &[x.into(), factor.into()])?;
    let slot = i.apply("", Function::Add, &[scaled.into(), summand.into()])?;
    i.set(op, 0, slot)
}

fn batch_of_values<'a>(i: &mut Import<'a>, op: &Op<'a>, x: Operand, rank: usize) -> Done {
    let mut lists = Vec::new();
    for index in 1..5 {
        let (value, kind) = i.value(op, index)?;
        let mut extents = vec![1; rank];
        let channels = extents.get_mut(1);
        *channels.ok_or_else(|| format!("found an input of rank {rank}, wanted at least 2"))? =
            i.dims(value)?.elements();
        let value = i.reshaped("channels", value, &extents)?;
        lists.push(Operand::Value(Mapped::plain(value, rank, kind)));
    }
    let Ok([scale, bias, mean, variance]) = <[Operand; 4]>::try_from(lists) else {
        return refused!("found no statistics");
    };
    let centred = i.apply("centred", Function::Sub, &[x.into(), mean.into()])?;
    let more = i.apply("more", Function::Add, &[variance.into(), op.epsilon()?.into()])?;
    let root = i.apply("root", Function::Rsqrt, &[more.into()])?;
    let factor = i.apply("factor", Function::Mul, &[root.into(), scale.into()])?;
    let scaled = i.apply("scaled", Function::Mul, &[centred.into(), factor.into()])?;
    let slot = i.apply("", Function::Add, &[scaled.into(), bias.into()])?;
    i.set(op, 0, slot)
}

/// `BatchNormalization` in training: by the mean and the variance of each channel over the batch, of which `1 - momentum` parts
/// come into the second and the third result. Exporters write the standardisation of weights so.
fn batch_of_itself<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let rank = own.len();
    let &[_, channels, ..] = &own[..] else {
        return refused!("found an input of rank {rank}, wanted at least 2");
    };
    for index in 1..5 {
        let found = i.extents_of(op, index)?;
        if found != [channels] {
            return refused!(
                "input {index}: found {found:?}, wanted a number for each of {channels} channels"
            );
        }
    }
    let (x, kind) = i.map_input(op, 0)?;
    let order = channels_last(rank);
    if op.writes(1) || op.writes(2) {
        let x = Operand::Value(Mapped { value: x, order: order.clone(), kind });
        running(i, op, x)?;
    }
    normalised_by_channel(i, op, Mapped { value: x, order, kind }, 0)
}

/// The running mean and variance that a `BatchNormalization` in training writes.
fn running<'a>(i: &mut Import<'a>, op: &Op<'a>, x: Operand) -> Done {
    let momentum = op.float("momentum", 0.9);
    let along: Vec<usize> = (0..i.shape(&x)?.len()).filter(|&axis| axis != 1).collect();
    let [most, rest, variance] = moments(i, x, &along)?;
    let mean = i.apply("mean", Function::Add, &[most.into(), rest.into()])?;
    for (index, current) in [(1, mean), (2, variance)].into_iter().filter(|(index, _)| op.writes(*index)) {
        let before = i.slot(op, index + 2)?;
        let channels = i.shape(&before)?;
        let current = i.with_extents("list", current, &channels)?;
        let kept = i.apply("kept", Function::Mul, &[before.into(), momentum.into()])?;
        let added = i.apply("added", Function::Mul, &[current.into(), (1.0 - momentum).into()])?;
        let slot = i.apply("running", Function::Add, &[kept.into(), added.into()])?;
        i.set(op, index, slot)?;
    }
    Ok(())
}

/// `InstanceNormalization`: of each channel of each image.
pub(super) fn instance<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let rank = i.extents_of(op, 0)?.len();
    if rank < 3 {
        return refused!("found an input of rank {rank}, wanted at least 3");
    }
    let (value, kind) = i.map_input(op, 0)?;
    normalised_by_channel(i, op, Mapped { value, order: channels_last(rank), kind }, 1)
}

/// Normalises a map whose channels are last over all axes from `first` on but the channels, with the scale and the bias of each
/// channel that are inputs 1 and 2.
fn normalised_by_channel<'a>(i: &mut Import<'a>, op: &Op<'a>, x: Mapped, first: isize) -> Done {
    let Mapped { value: x, order, kind } = x;
    let rank = order.len();
    let axes: Vec<isize> = (first..rank as isize - 1).collect();
    let options = Normalize { axes, epsilon: Bits(op.epsilon()?), ..Normalize::default() };
    let constant = (1..3).all(|index| matches!(i.slot(op, index), Ok(Operand::Constant(..))));
    if constant {
        let (scale, bias) = (HostTensor::vector(i.list(op, 1)?)?, HostTensor::vector(i.list(op, 2)?)?);
        let value = i.add("", |graph, name| graph.normalize(name, x, options, Some(scale), Some(bias)))?;
        return i.write(op, 0, Mapped { value, order, kind });
    }
    let value = i.add("normal", |graph, name| graph.normalize(name, x, options, None, None))?;
    let normal = Operand::Value(Mapped { value, order, kind });
    let slot = scaled_by_channel(i, op, normal, rank, 1)?;
    i.set(op, 0, slot)
}

/// A slot times one input per channel plus the next.
fn scaled_by_channel<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    x: Operand,
    rank: usize,
    first: usize,
) -> Result<Operand, Reason> {
    let channels = |i: &mut Import<'a>, index: usize| -> Result<Arg, Reason> {
        let mut extents = vec![1; rank];
        extents[1] = i.extents_of(op, index)?.iter().product();
        Ok(match i.slot(op, index)? {
            Operand::Constant(constant, kind) => Operand::Constant(constant.reshaped(&extents)?, kind).into(),
            Operand::Value(mapped) => {
                let value = i.logical(&mapped)?;
                let value = i.reshaped("channels", value, &extents)?;
                Operand::Value(Mapped::plain(value, rank, mapped.kind)).into()
            }
        })
    };
    let scale = channels(i, first)?;
    let scaled = i.apply("scaled", Function::Mul, &[x.into(), scale])?;
    let bias = channels(i, first + 1)?;
    i.apply("", Function::Add, &[scaled.into(), bias])
}

/// `GroupNormalization`: of groups of channels of each image.
pub(super) fn group<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let rank = own.len();
    let groups = op.int("num_groups", 1);
    let count = usize::try_from(groups)
        .ok()
        .filter(|&groups| groups > 0 && rank >= 3 && own[1].is_multiple_of(groups));
    let groups = count.ok_or_else(|| format!("found {groups} groups of {own:?}"))?;
    let (x, kind) = i.map_input(op, 0)?;
    let stored = i.dims(x)?.extents().to_vec();
    let pixels: usize = own[2..].iter().product();
    let split = i.reshaped("groups", x, &[own[0], pixels, groups, own[1] / groups])?;
    let options = Normalize { axes: vec![1, 3], epsilon: Bits(op.epsilon()?), ..Normalize::default() };
    let value = i.add("normal", |graph, name| graph.normalize(name, split, options, None, None))?;
    let value = i.reshaped("joined", value, &stored)?;
    let normal = Operand::Value(Mapped { value, order: channels_last(rank), kind });
    // Until version 21 there is a factor for each group.
    let per_group = i.extents_of(op, 1)?.iter().product::<usize>() == groups && groups != own[1];
    if !per_group {
        let slot = scaled_by_channel(i, op, normal, rank, 1)?;
        return i.set(op, 0, slot);
    }
    let spread = |i: &mut Import<'a>, index: usize| -> Result<Operand, Reason> {
        let list = i.list(op, index)?;
        let each = own[1] / groups;
        per_channel(list.iter().flat_map(|&one| std::iter::repeat_n(one, each)).collect(), rank)
    };
    let scale = spread(i, 1)?;
    let scaled = i.apply("scaled", Function::Mul, &[normal.into(), scale.into()])?;
    let bias = spread(i, 2)?;
    let slot = i.apply("", Function::Add, &[scaled.into(), bias.into()])?;
    i.set(op, 0, slot)
}

/// `LayerNormalization`: over an axis and those behind it.
pub(super) fn layer<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = i.slot(op, 0)?;
    layer_of(i, op, x, [1, 2], op.int("axis", -1))
}

/// `SkipLayerNormalization` of com.microsoft: of the sum of two inputs and a bias.
pub(super) fn skip_layer<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (x, skip) = (i.slot(op, 0)?, i.slot(op, 1)?);
    let mut sum = i.apply("sum", Function::Add, &[x.into(), skip.into()])?;
    if op.has(4) {
        let bias = i.slot(op, 4)?;
        sum = i.apply("biased", Function::Add, &[sum.into(), bias.into()])?;
    }
    i.set(op, 3, sum.clone())?;
    layer_of(i, op, sum, [2, 3], -1)
}

pub(super) fn layer_of<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    x: Operand,
    inputs: [usize; 2],
    place: i64,
) -> Done {
    let mapped = i.mapped_slot(x, None)?;
    let (rank, kind) = (mapped.rank(), mapped.kind);
    let first = axis(place, rank)?;
    let x = i.logical(&mapped)?;
    let own = i.dims(x)?.extents().to_vec();
    let options = Normalize {
        axes: (first as isize..rank as isize).collect(),
        epsilon: Bits(op.epsilon()?),
        ..Normalize::default()
    };
    if op.writes(1) || op.writes(2) {
        let plain = Operand::Value(Mapped::plain(x, rank, kind));
        statistics(i, op, plain, first)?;
    }
    let last = own[rank - 1];
    let constant = |i: &Import<'a>, index: usize| -> Result<bool, Reason> {
        Ok(!op.has(index)
            || matches!(i.slot(op, index)?, Operand::Constant(..)) && i.extents_of(op, index)? == [last])
    };
    if constant(i, inputs[0])? && constant(i, inputs[1])? {
        let list = |i: &mut Import<'a>, index: usize| -> Result<Option<HostTensor>, Reason> {
            if !op.has(index) {
                return Ok(None);
            }
            HostTensor::vector(i.list(op, index)?).map(Some).map_err(Reason::from)
        };
        let (scale, bias) = (list(i, inputs[0])?, list(i, inputs[1])?);
        let value = i.add("", |graph, name| graph.normalize(name, x, options, scale, bias))?;
        return i.write_plain(op, 0, value, kind);
    }
    let value = i.add("normal", |graph, name| graph.normalize(name, x, options, None, None))?;
    let mut slot = Operand::Value(Mapped::plain(value, rank, kind));
    for (index, function, part) in [(inputs[0], Function::Mul, "scaled"), (inputs[1], Function::Add, "")] {
        if op.has(index) {
            let own = i.slot(op, index)?;
            slot = i.apply(part, function, &[slot.into(), own.into()])?;
        }
    }
    i.set(op, 0, slot)
}

/// The mean and one over the deviation, where an output wants them.
fn statistics<'a>(i: &mut Import<'a>, op: &Op<'a>, x: Operand, first: usize) -> Done {
    let rank = i.extents_of(op, 0)?.len();
    let along: Vec<usize> = (first..rank).collect();
    let [most, rest, variance] = moments(i, x, &along)?;
    if op.writes(1) && !op.node.domain.contains("microsoft") {
        let mean = i.apply("mean", Function::Add, &[most.into(), rest.into()])?;
        i.set(op, 1, mean)?;
    }
    let more = i.apply("more", Function::Add, &[variance.into(), op.epsilon()?.into()])?;
    let inverse = i.apply("inverse", Function::Rsqrt, &[more.into()])?;
    if op.writes(2) && !op.node.domain.contains("microsoft") {
        i.set(op, 2, inverse)?;
    }
    Ok(())
}

/// The mean along some axes in two summands, and the variance: a sum of large values loses bits of small deviations, so that what
/// is left of the mean is that of the differences from it.
fn moments(i: &mut Import<'_>, x: Operand, along: &[usize]) -> Result<[Operand; 3], Reason> {
    let most = reduced(i, "most", x.clone(), Reduction::Mean, along, true)?;
    let apart = i.apply("apart", Function::Sub, &[x.into(), most.clone().into()])?;
    let rest = reduced(i, "rest", apart.clone(), Reduction::Mean, along, true)?;
    let squares = i.apply("squares", Function::SquaredDifference, &[apart.into(), rest.clone().into()])?;
    let variance = reduced(i, "variance", squares, Reduction::Mean, along, true)?;
    Ok([most, rest, variance])
}

/// `RMSNormalization` and `SimplifiedLayerNormalization`: `x / sqrt(mean(x^2) + epsilon) * scale`.
pub(super) fn root_mean_square<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let x = i.slot(op, 0)?;
    root_of(i, op, x, op.int("axis", -1), 1)
}

/// `x / sqrt(mean(x^2) + epsilon) * scale` along the axes of `x` from `place` on; the scale is the operator's input of number
/// `scale`, if it has one.
pub(super) fn root_of<'a>(i: &mut Import<'a>, op: &Op<'a>, x: Operand, place: i64, scale: usize) -> Done {
    let rank = i.shape(&x)?.len();
    let first = axis(place, rank)?;
    let along: Vec<usize> = (first..rank).collect();
    let scale = if op.has(scale) { Some(i.slot(op, scale)?) } else { None };
    let slot = crate::model::build::root_mean_square(i, "", x, &along, op.epsilon()?, scale)?;
    i.set(op, 0, slot)
}

/// `MeanVarianceNormalization` over any axes.
pub(super) fn mean_variance<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let mapped = i.mapped(op, 0)?;
    let listed = op.ints("axes").map_or_else(|| vec![0, 2, 3], <[i64]>::to_vec);
    let along = crate::model::build::axes(&listed, mapped.rank())?;
    let axes = along.iter().map(|&axis| mapped.place(axis) as isize).collect();
    let options = Normalize { axes, epsilon: Bits(1e-9), ..Normalize::default() };
    let value = i.add("", |graph, name| graph.normalize(name, mapped.value, options, None, None))?;
    i.write(op, 0, Mapped { value, ..mapped })
}

/// `LpNormalization`: divided by the sum of sizes, or the root of the sum of squares, along an axis.
pub(super) fn lp<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let place = axis(op.int("axis", -1), i.extents_of(op, 0)?.len())?;
    let x = i.slot(op, 0)?;
    let slot = of_size_one(i, x, place, op.int("p", 2) == 2, f32::MIN_POSITIVE)?;
    i.set(op, 0, slot)
}

/// `LRN`: `x / (bias + alpha / size sum x_j^2)^beta` over neighbouring channels.
pub(super) fn local_response<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let (alpha, beta, bias) = (op.preset("alpha")?, op.preset("beta")?, op.preset("bias")?);
    let size = usize::try_from(op.int("size", 1)).ok().filter(|&size| size > 0).ok_or("found no size")?;
    let before = (size - 1) / 2;
    let norm = LocalResponse { reach: [before, size - 1 - before], share: alpha / size as f32, bias, beta };
    let x = i.slot(op, 0)?;
    let slot = norm.of(i, x, 1)?;
    i.set(op, 0, slot)
}
