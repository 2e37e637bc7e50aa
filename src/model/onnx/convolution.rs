//! Convolutions: weights and what follows them per channel are worked out while the file is read.

use super::import::{Import, Op, Slot};
use super::kind::Kind;
use super::moves::{cut, padded};
use super::order::{Mapped, channels_last};
use super::schema::Node;
use crate::emit::Bits;
use crate::graph::{Extras, Value};
use crate::host::HostTensor;
use crate::model::budget::Reason;
use crate::model::constant::{Constant, dims_of};
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::elementwise::Function;
use crate::ops::pointwise::Pointwise;
use crate::ops::remap::PadMode;
use crate::ops::transposed_conv2d::TransposedConv2d;
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
                        format!("found {name} {:?}, wanted {rank} numbers from 1 on", op.ints(name))
                    })
                }
            }
        };
        let (stride, dilation) = (list("strides")?, list("dilations")?);
        if kernel.len() != rank || kernel.iter().any(|&taps| taps == 0 || taps >= 1 << 15) {
            return Err(format!("found windows of {kernel:?} over {input:?}"));
        }
        let mut windows = Windows { kernel: kernel.to_vec(), stride, dilation, pads: vec![(0, 0); rank] };
        match op.text("auto_pad", "NOTSET")? {
            "NOTSET" | "" => {
                if let Some(pads) = op.ints("pads") {
                    if pads.len() != 2 * rank || pads.iter().any(|pad| pad.unsigned_abs() >= 1 << 15) {
                        return Err(format!("found pads {pads:?} for {rank} axes"));
                    }
                    windows.pads = (0..rank).map(|axis| (pads[axis], pads[rank + axis])).collect();
                }
            }
            "VALID" => (),
            mode @ ("SAME_UPPER" | "SAME_LOWER") => {
                for axis in 0..rank {
                    let output = input[axis].div_ceil(windows.stride[axis]);
                    let span = (output - 1) * windows.stride[axis] + windows.span(axis);
                    let whole = span.saturating_sub(input[axis]) as i64;
                    let (less, more) = (whole / 2, whole - whole / 2);
                    windows.pads[axis] = if mode == "SAME_UPPER" { (less, more) } else { (more, less) };
                }
            }
            other => return Err(format!("found auto_pad {other:?}")),
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

/// Weights `oc ic/groups taps..` of f32, and one summand per output channel.
struct Filter {
    weights: Vec<f32>,
    extents: Vec<usize>,
    bias: Option<Vec<f32>>,
    /// Which axis of the weights counts output channels: 1 for transposed convolutions, where they are in groups.
    outputs: usize,
}

impl Filter {
    fn channels(&self, groups: usize) -> usize {
        if self.outputs == 0 { self.extents[0] } else { self.extents[1] * groups }
    }

    /// Multiplies the sums of each output channel, and adds to them.
    fn scale(&mut self, groups: usize, factor: &[f32], summand: &[f32]) {
        let channels = self.channels(groups);
        let taps: usize = self.extents[2..].iter().product();
        let (inner, own) = (self.extents[1], self.extents[0]);
        for (at, weight) in self.weights.iter_mut().enumerate() {
            let (row, column) = (at / (inner * taps), at / taps % inner);
            let channel = if self.outputs == 0 { row } else { row / (own / groups) * inner + column };
            *weight *= factor[channel % factor.len()];
        }
        let bias = self.bias.get_or_insert_with(|| vec![0.0; channels]);
        for (channel, bias) in bias.iter_mut().enumerate() {
            *bias = *bias * factor[channel % factor.len()] + summand[channel % summand.len()];
        }
    }
}

/// `Conv` in one to three dimensions.
pub(super) fn conv<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let filter = filter(i, op, 0)?;
    let rank = own.len();
    if filter.extents.len() != rank || !(3..=5).contains(&rank) {
        return Err(format!("found weights {:?} for an input of {own:?}", filter.extents));
    }
    let groups = groups(op)?;
    if !filter.extents[0].is_multiple_of(groups) {
        return Err(format!("found {} output channels in {groups} groups", filter.extents[0]));
    }
    let windows = Windows::read(op, &own[2..], &filter.extents[2..])?;
    let mut filter = filter;
    let target = follow(i, op, &mut filter, groups)?;
    let (x, kind) = i.map_input(op, 0)?;
    let value = convolved(i, x, &own, filter, windows, groups)?;
    let mapped = Mapped { value, order: channels_last(rank), kind };
    i.set_name(target, Slot::Value(mapped))
}

fn groups(op: &Op<'_>) -> Result<usize, Reason> {
    usize::try_from(op.int("group", 1))
        .ok()
        .filter(|groups| *groups > 0)
        .ok_or_else(|| format!("found {} groups", op.int("group", 1)))
}

fn filter<'a>(i: &mut Import<'a>, op: &Op<'a>, outputs: usize) -> Result<Filter, Reason> {
    let tensor = i.tensor(op, 1)?;
    let extents = tensor.dims().extents().to_vec();
    if extents.len() < 3 {
        return Err(format!("found weights of {extents:?}, wanted rank 3 to 5"));
    }
    i.budget.spend(4 * tensor.dims().elements())?;
    let bias = if op.has(2) { Some(i.list(op, 2)?) } else { None };
    let filter = Filter { weights: tensor.to_nhwc().into_owned(), extents, bias, outputs };
    if let Some(bias) = &filter.bias
        && bias.len() != filter.channels(groups(op)?)
    {
        return Err(format!("found a bias of {} for {} channels", bias.len(), filter.channels(groups(op)?)));
    }
    Ok(filter)
}

/// Takes what alone reads the result and only changes its channels into the weights: a normalisation by constants,
/// factors and summands. Returns the name of what is computed then.
fn follow<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    filter: &mut Filter,
    groups: usize,
) -> Result<&'a str, Reason> {
    let mut target = *op.node.outputs.first().ok_or("found no output")?;
    loop {
        let scope = i.scopes.last().ok_or("found no scope")?;
        let Some(readers) = scope.readers.get(target).filter(|readers| readers.count == 1) else { break };
        let Some(node) = op.nodes.get(readers.last) else { break };
        let (index, channels) = (readers.last, filter.channels(groups));
        let rank = filter.extents.len();
        let next = i.op(op.nodes, node)?;
        let Some((factor, summand)) = affine(i, &next, node, target, channels, rank)? else { break };
        filter.scale(groups, &factor, &summand);
        target = *node.outputs.first().ok_or("found no output")?;
        if let Some(scope) = i.scopes.last_mut() {
            scope.absorbed.insert(index);
        }
        i.current = i.output_name(&next)?;
    }
    Ok(target)
}

/// The factor and the summand of each channel, if a node applies such constants alone.
fn affine<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    node: &Node<'a>,
    source: &str,
    channels: usize,
    rank: usize,
) -> Result<Option<(Vec<f32>, Vec<f32>)>, Reason> {
    if !node.domain.is_empty() {
        return Ok(None);
    }
    let known = |i: &Import<'a>, index: usize| matches!(i.slot(op, index), Ok(Slot::Constant(..)));
    if node.op == "BatchNormalization" && node.inputs.first() == Some(&source) {
        if !(1..5).all(|index| known(i, index)) || op.flag("training_mode", false) {
            return Ok(None);
        }
        let (factor, summand) = super::norms::batch_constants(i, op)?;
        return Ok((factor.len() == channels).then_some((factor, summand)));
    }
    let other = match (node.op, &node.inputs[..]) {
        ("Add" | "Mul", [first, second]) if *first == source && *second != source => 1,
        ("Add" | "Mul", [first, second]) if *second == source && *first != source => 0,
        ("Sub" | "Div", [first, second]) if *first == source && *second != source => 1,
        _ => return Ok(None),
    };
    if !known(i, other) {
        return Ok(None);
    }
    let constant = i.constant(op, other)?;
    let extents = constant.extents();
    let place = (extents.len() + 1).checked_sub(rank);
    let per_channel = extents.len() <= rank
        && extents
            .iter()
            .enumerate()
            .all(|(axis, &extent)| extent == 1 || (Some(axis) == place && extent == channels));
    if !per_channel || constant.elements() == 0 {
        return Ok(None);
    }
    let values = constant.floats(&mut i.budget)?.to_nhwc().into_owned();
    Ok(Some(match node.op {
        "Add" => (vec![1.0], values),
        "Sub" => (vec![1.0], values.iter().map(|value| -value).collect()),
        "Mul" => (values, vec![0.0]),
        _ if values.contains(&0.0) => return Ok(None),
        _ => (values.iter().map(|value| 1.0 / value).collect(), vec![0.0]),
    }))
}

/// A convolution of `x`, whose channels are last and whose extents in the file's order are `own`.
fn convolved(
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
        let slot = Slot::Value(Mapped { value: x, order, kind: Kind::F32 });
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
            let &[n, _, l, c] = dims.extents() else { return Err(format!("found {dims}, wanted rank 4")) };
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
        return Err(format!("found weights of {:?}", filter.extents));
    };
    i.budget.spend(4 * filter.weights.len())?;
    let channels = i.dims(x)?.shape().c;
    let bias = filter.bias.map(HostTensor::vector).transpose().map_err(|error| error.to_string())?;
    let extras = Extras { bias, ..Extras::default() };
    let (stride, dilation) =
        ([windows.stride[0], windows.stride[1]], [windows.dilation[0], windows.dilation[1]]);
    let padding = windows.padding();
    let told = |error: crate::Error| error.to_string();
    let depthwise = groups == channels && ic == 1 && groups > 1;
    let weights = filter.weights;
    if depthwise {
        let own: Vec<f32> =
            (0..kh * kw).flat_map(|tap| weights.iter().skip(tap).step_by(kh * kw).copied()).collect();
        let weights = HostTensor::new(Shape::nhwc(1, kh, kw, oc), own).map_err(told)?;
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
    let weights = HostTensor::new(Shape::nhwc(oc, kh, kw, ic), own).map_err(told)?;
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
    let slot = Slot::Value(Mapped { value: x, order, kind: Kind::F32 });
    let slot = padded(i, "deep", slot, own, &around, PadMode::Constant(Bits(0.0)))?;
    let Slot::Value(mapped) = &slot else { return Err("found a constant".to_owned()) };
    let depth = i.extents(mapped)?[2];
    let span = windows.span(0);
    let outputs = depth.checked_sub(span).map(|rest| rest / windows.stride[0] + 1);
    let outputs = outputs.ok_or_else(|| format!("found windows of {span} over a depth of {depth}"))?;
    let map = Windows {
        kernel: windows.kernel[1..].to_vec(),
        stride: windows.stride[1..].to_vec(),
        dilation: windows.dilation[1..].to_vec(),
        pads: windows.pads[1..].to_vec(),
    };
    let &[oc, ic, kd, kh, kw] = &filter.extents[..] else { return Err("found no weights".to_owned()) };
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
    let &[_, h, w, c] = dims.extents() else { return Err(format!("found {dims}, wanted rank 4")) };
    i.reshaped("", sum, &[own[0], outputs, h, w, c])
}

/// `ConvTranspose` in one and two dimensions.
pub(super) fn transposed<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let mut filter = filter(i, op, 1)?;
    let rank = own.len();
    if filter.extents.len() != rank || !(3..=4).contains(&rank) || filter.extents[0] != own[1] {
        return Err(format!(
            "found weights {:?} for an input of {own:?}, wanted 1 or 2 dimensions",
            filter.extents
        ));
    }
    let groups = groups(op)?;
    if !own[1].is_multiple_of(groups) {
        return Err(format!("found {} channels in {groups} groups", own[1]));
    }
    let (windows, output) = transposed_windows(op, &own[2..], &filter.extents[2..])?;
    let target = follow(i, op, &mut filter, groups)?;
    let (mut x, kind) = i.map_input(op, 0)?;
    let (mut windows, mut output) = (windows, output);
    let line = rank == 3;
    if line {
        x = i.reshaped("line", x, &[own[0], 1, own[2], own[1]])?;
        filter.extents.insert(2, 1);
        windows = windows.flat();
        output.insert(0, 1);
    }
    let part = if line { "map" } else { "" };
    let mut value = transposed_groups(i, part, x, &filter, &windows, &output, groups)?;
    if line {
        let channels = filter.channels(groups);
        value = i.reshaped("", value, &[own[0], output[1], channels])?;
    }
    i.set_name(target, Slot::Value(Mapped { value, order: channels_last(rank), kind }))
}

/// The windows, and the extents of the output.
fn transposed_windows(
    op: &Op<'_>,
    input: &[usize],
    kernel: &[usize],
) -> Result<(Windows, Vec<usize>), Reason> {
    let mode = op.text("auto_pad", "NOTSET")?;
    let mut windows = Windows::read(op, input, kernel)?;
    let rank = input.len();
    let more = op.ints("output_padding").map_or_else(|| vec![0; rank], <[i64]>::to_vec);
    let given = op.ints("output_shape");
    let given = given.map(|list| list.get(list.len().saturating_sub(rank)..).unwrap_or(&[]));
    if more.len() != rank || given.is_some_and(|given| given.len() != rank) {
        return Err(format!("found output_padding {more:?}, output_shape {given:?} for {rank} axes"));
    }
    let mut output = Vec::new();
    for axis in 0..rank {
        let whole =
            (input[axis] as i64 - 1) * windows.stride[axis] as i64 + more[axis] + windows.span(axis) as i64;
        let wanted = match (given, mode) {
            (Some(given), _) => Some(given[axis]),
            (None, "SAME_UPPER" | "SAME_LOWER") => Some((input[axis] * windows.stride[axis]) as i64),
            _ => None,
        };
        if let Some(wanted) = wanted {
            let surplus = whole - wanted;
            let half = surplus.div_euclid(2);
            let before = if mode == "SAME_UPPER" { half } else { surplus - half };
            windows.pads[axis] = (before, surplus - before);
        }
        let (before, after) = windows.pads[axis];
        let extent =
            usize::try_from(whole - before - after).ok().filter(|extent| (1..1 << 20).contains(extent));
        output.push(
            extent.ok_or_else(|| format!("found pads {:?} of an output of {whole}", windows.pads[axis]))?,
        );
        if before < 0 {
            return Err(format!("found pads {:?}, wanted none below 0", windows.pads));
        }
    }
    Ok((windows, output))
}

fn transposed_groups(
    i: &mut Import<'_>,
    part: &str,
    x: Value,
    filter: &Filter,
    windows: &Windows,
    output: &[usize],
    groups: usize,
) -> Result<Value, Reason> {
    let &[ic, oc, kh, kw] = &filter.extents[..] else { return Err("found no weights".to_owned()) };
    let inner = ic / groups;
    let span = [windows.span(0), windows.span(1)];
    i.budget.spend(ic.saturating_mul(oc).saturating_mul(span[0] * span[1]).saturating_mul(4))?;
    let options = TransposedConv2d {
        stride: [windows.stride[0], windows.stride[1]],
        padding: windows.padding(),
        output: Some([output[0], output[1]]),
        ..TransposedConv2d::default()
    };
    let told = |error: crate::Error| error.to_string();
    let mut parts = Vec::with_capacity(groups);
    for group in 0..groups {
        // Taps that are apart have zeros between them.
        let mut own = vec![0.0; oc * span[0] * span[1] * inner];
        for (c, o) in (0..inner).flat_map(|c| (0..oc).map(move |o| (c, o))) {
            for (y, x) in (0..kh).flat_map(|y| (0..kw).map(move |x| (y, x))) {
                let from = (((group * inner + c) * oc + o) * kh + y) * kw + x;
                let (row, column) = (y * windows.dilation[0], x * windows.dilation[1]);
                own[((o * span[0] + row) * span[1] + column) * inner + c] = filter.weights[from];
            }
        }
        let weights = HostTensor::new(dims_of(&[oc, span[0], span[1], inner])?, own).map_err(told)?;
        let bias = filter.bias.as_ref().map(|bias| bias[group * oc..(group + 1) * oc].to_vec());
        let bias = bias.map(HostTensor::vector).transpose().map_err(told)?;
        let extras = Extras { bias, ..Extras::default() };
        if groups == 1 {
            return i.add(part, |graph, name| graph.transposed_conv2d(name, x, weights, extras, options));
        }
        let dims = i.dims(x)?.shape();
        let slot = Slot::Value(Mapped::plain(x, 4, Kind::F32));
        let ranges = [(0, dims.n, 1), (0, dims.h, 1), (0, dims.w, 1), (group * inner, inner, 1)];
        let slot = cut(i, "group", slot, &ranges)?;
        let own = i.mapped_slot(slot, None)?.value;
        parts
            .push(i.add("part", |graph, name| graph.transposed_conv2d(name, own, weights, extras, options))?);
    }
    i.add(part, |graph, name| graph.concat(name, &parts, -1))
}

/// A constant as a list of floats.
pub(super) fn floats_of(i: &mut Import<'_>, constant: &Constant) -> Result<Vec<f32>, Reason> {
    Ok(constant.floats(&mut i.budget)?.to_nhwc().into_owned())
}
