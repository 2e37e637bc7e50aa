//! Convolutions: weights and what follows them per channel are worked out while the file is read.

use super::filter::{Filter, filter, follow, groups};
use super::import::{Import, Op};
use crate::emit::Bits;
use crate::graph::{Extras, Value};
use crate::host::HostTensor;
use crate::model::build::{Kind, Mapped, Operand, channels_last, cut, padded};
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::elementwise::Function;
use crate::ops::pointwise::Pointwise;
use crate::ops::remap::PadMode;
use crate::shape::{Padding, Shape};

type Done = Result<(), Reason>;

/// How a window moves along the spatial axes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Windows {
    pub(super) kernel: Vec<usize>,
    pub(super) stride: Vec<usize>,
    pub(super) dilation: Vec<usize>,
    /// Before and after each axis; a negative one cuts.
    pub(super) pads: Vec<(i64, i64)>,
}

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

    /// The elements from the first tap to the last.
    pub(super) fn span(&self, axis: usize) -> usize {
        (self.kernel[axis] - 1) * self.dilation[axis] + 1
    }

    fn has_negative_pads(&self) -> bool {
        self.pads.iter().any(|&(before, after)| before < 0 || after < 0)
    }

    /// The padding of a map; both axes have pads from 0 on.
    pub(super) fn padding(&self) -> Padding {
        let size = |pad: i64| pad.max(0) as usize;
        match self.pads[..] {
            [(top, bottom), (left, right)] => Padding::Explicit {
                top: size(top),
                bottom: size(bottom),
                left: size(left),
                right: size(right),
            },
            _ => Padding::Valid,
        }
    }

    /// The same with a height of one before, so that there are two axes.
    pub(super) fn flat(mut self) -> Self {
        self.kernel.insert(0, 1);
        self.stride.insert(0, 1);
        self.dilation.insert(0, 1);
        self.pads.insert(0, (0, 0));
        self
    }
}

/// `Conv` in one to three dimensions.
pub(super) fn conv<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let mut filter = filter(i, op, 0)?;
    let own = i.extents_of(op, 0)?;
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
    let filter = Filter { weights: weights.to_nhwc().into_owned(), extents, bias, outputs: 0 };
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

/// A convolution of `x`, whose channels are last and whose extents in the file's order are `own`.
pub(super) fn convolved(
    i: &mut Import<'_>,
    x: Value,
    own: &[usize],
    filter: Filter,
    windows: Windows,
    groups: usize,
) -> Result<Value, Reason> {
    let (mut x, mut own, mut windows) = (x, own.to_vec(), windows);
    if windows.has_negative_pads() {
        let order = channels_last(own.len());
        let mut around = vec![(0, 0); 2];
        around.extend(windows.pads.iter().map(|pads| (pads.0.min(0), pads.1.min(0))));
        let slot = Operand::Value(Mapped { value: x, order, kind: Kind::F32 });
        let slot = padded(i, "cut", slot, &own, &around, PadMode::Constant(Bits(0.0)))?;
        let mapped = i.mapped_slot(slot, None)?;
        own = i.extents(&mapped)?;
        x = mapped.value;
        windows.pads = windows.pads.iter().map(|pads| (pads.0.max(0), pads.1.max(0))).collect();
    }
    match own.len() {
        3 => {
            let lines = i.reshaped("line", x, &[own[0], 1, own[2], own[1]])?;
            let mut filter = filter;
            filter.extents.insert(2, 1);
            let value = flat(i, "map", lines, filter, &windows.flat(), groups)?;
            let dims = i.dims(value)?;
            let &[n, _, l, c] = dims.extents() else { return refused!("found {dims}, wanted rank 4") };
            i.reshaped("", value, &[n, l, c])
        }
        4 => flat(i, "", x, filter, &windows, groups),
        _ => deep(i, x, &own, filter, &windows, groups),
    }
}

/// A convolution in two dimensions.
fn flat(
    i: &mut Import<'_>,
    part: &str,
    x: Value,
    filter: Filter,
    windows: &Windows,
    groups: usize,
) -> Result<Value, Reason> {
    let &[oc, ic, kh, kw] = &filter.extents[..] else {
        return refused!("found weights of {:?}", filter.extents);
    };
    i.budget.spend(8 * filter.weights.len())?;
    let channels = i.dims(x)?.shape().c;
    let bias = filter.bias.map(HostTensor::vector).transpose()?;
    let extras = Extras { bias, ..Extras::default() };
    let (stride, dilation) =
        ([windows.stride[0], windows.stride[1]], [windows.dilation[0], windows.dilation[1]]);
    let padding = windows.padding();
    let depthwise = groups == channels && ic == 1 && groups > 1;
    let weights = filter.weights;
    if depthwise {
        let own: Vec<f32> =
            (0..kh * kw).flat_map(|tap| weights.iter().skip(tap).step_by(kh * kw).copied()).collect();
        let weights = HostTensor::new(Shape::nhwc(1, kh, kw, oc), own)?;
        let options = Depthwise { stride, dilation, padding, ..Depthwise::default() };
        return i.add(part, |graph, name| graph.depthwise(name, x, weights, extras, options));
    }
    let taps = kh * kw;
    let mut own = Vec::with_capacity(weights.len());
    for row in weights.chunks(ic * taps) {
        for tap in 0..taps {
            own.extend(row.iter().skip(tap).step_by(taps));
        }
    }
    let weights = HostTensor::new(Shape::nhwc(oc, kh, kw, ic), own)?;
    let bare = windows.pads.iter().all(|&pads| pads == (0, 0));
    if taps == 1 && stride == [1, 1] && groups == 1 && bare {
        return i.add(part, |graph, name| graph.pointwise(name, x, weights, extras, Pointwise::default()));
    }
    let options = Conv2d { stride, dilation, padding, groups, ..Conv2d::default() };
    i.add(part, |graph, name| graph.conv2d(name, x, weights, extras, options))
}

/// A convolution in three dimensions: the sum of those of two, one for each tap of the depth, whose slices are the batch.
fn deep(
    i: &mut Import<'_>,
    x: Value,
    own: &[usize],
    filter: Filter,
    windows: &Windows,
    groups: usize,
) -> Result<Value, Reason> {
    let (before, after) = windows.pads[0];
    let order = channels_last(5);
    let around = [(0, 0), (0, 0), (before, after), (0, 0), (0, 0)];
    let slot = Operand::Value(Mapped { value: x, order, kind: Kind::F32 });
    let slot = padded(i, "deep", slot, own, &around, PadMode::Constant(Bits(0.0)))?;
    let Operand::Value(mapped) = &slot else { return refused!("found a constant") };
    let depth = i.extents(mapped)?[2];
    let span = windows.span(0);
    let outputs = depth.checked_sub(span).map(|rest| rest / windows.stride[0] + 1);
    let outputs = outputs
        .ok_or_else(|| format!("found windows of {span} over a depth of {depth}, wanted at most that"))?;
    let map = Windows {
        kernel: windows.kernel[1..].to_vec(),
        stride: windows.stride[1..].to_vec(),
        dilation: windows.dilation[1..].to_vec(),
        pads: windows.pads[1..].to_vec(),
    };
    let &[oc, ic, kd, kh, kw] = &filter.extents[..] else { return refused!("found no weights") };
    let mut sum: Option<Value> = None;
    for tap in 0..kd {
        let ranges = [
            (0, own[0], 1),
            (0, own[1], 1),
            (tap * windows.dilation[0], outputs, windows.stride[0] as i64),
            (0, own[3], 1),
            (0, own[4], 1),
        ];
        let slot = cut(i, "slices", slot.clone(), &ranges)?;
        let slices = i.mapped_slot(slot, None)?;
        let maps = i.reshaped("maps", slices.value, &[own[0] * outputs, own[3], own[4], own[1]])?;
        let weights = filter.weights.chunks(kh * kw).skip(tap).step_by(kd).flatten().copied().collect();
        let bias = if tap == 0 { filter.bias.clone() } else { None };
        let own = Filter { weights, extents: vec![oc, ic, kh, kw], bias, outputs: 0 };
        let part = flat(i, "part", maps, own, &map, groups)?;
        sum = Some(match sum {
            None => part,
            Some(sum) => i.add("sum", |graph, name| {
                graph.elementwise(name, Function::Add, &[sum.into(), part.into()])
            })?,
        });
    }
    let sum = sum.ok_or("found no taps")?;
    let dims = i.dims(sum)?;
    let &[_, h, w, c] = dims.extents() else { return refused!("found {dims}, wanted rank 4") };
    i.reshaped("", sum, &[own[0], outputs, h, w, c])
}

/// A constant as a list of floats.
pub(super) fn floats_of(i: &mut Import<'_>, constant: &Constant) -> Result<Vec<f32>, Reason> {
    Ok(constant.floats(&mut i.budget)?.to_nhwc().into_owned())
}
