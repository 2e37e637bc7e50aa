//! Convolutions in one to three dimensions, of weights that are known.

use super::builder::Builder;
use super::kind::Kind;
use super::moves::{cut, padded};
use super::operand::{Mapped, Operand, channels_last};
use super::windows::Windows;
use crate::emit::Bits;
use crate::graph::{Extras, Value};
use crate::host::HostTensor;
use crate::model::constant::dims_of;
use crate::model::reason::Reason;
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::elementwise::Function;
use crate::ops::pointwise::Pointwise;
use crate::ops::remap::PadMode;
use crate::shape::Shape;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};

/// Weights `oc ic/groups taps..` of f32, and one summand per output channel.
pub(crate) struct Filter {
    pub(crate) weights: HostTensor,
    pub(crate) extents: Vec<usize>,
    pub(crate) bias: Option<Vec<f32>>,
    /// Which axis of the weights counts output channels: 1 for transposed convolutions, where they are in groups.
    pub(crate) outputs: usize,
    /// What the weights of each output channel are multiplied by; none for as they are.
    pub(crate) factors: Vec<f32>,
}

impl Filter {
    /// Of these weights, whose output channels are the first axis.
    pub(crate) fn new(weights: HostTensor, extents: Vec<usize>, bias: Option<Vec<f32>>) -> Self {
        Filter { weights, extents, bias, outputs: 0, factors: Vec::new() }
    }

    /// Multiplies the sums of each output channel, and adds to them: a factor and a summand for each, or one for all.
    pub(crate) fn scale(&mut self, groups: usize, factor: &[f32], summand: &[f32]) {
        let channels = self.channels(groups);
        let of = |list: &[f32], channel: usize| list.get(channel % list.len().max(1)).copied();
        if factor.iter().any(|&factor| factor != 1.0) {
            self.factors.resize(channels, 1.0);
            for (channel, own) in self.factors.iter_mut().enumerate() {
                *own *= of(factor, channel).unwrap_or(1.0);
            }
        }
        let bias = self.bias.get_or_insert_with(|| vec![0.0; channels]);
        for (channel, bias) in bias.iter_mut().enumerate() {
            *bias = *bias * of(factor, channel).unwrap_or(1.0) + of(summand, channel).unwrap_or(0.0);
        }
    }

    /// The weights, each multiplied by the factor of its output channel.
    pub(crate) fn scaled(&self, groups: usize) -> Cow<'_, [f32]> {
        let weights = self.weights.to_nhwc();
        if self.factors.is_empty() {
            return weights;
        }
        let mut weights = weights.into_owned();
        let taps: usize = self.extents.iter().skip(2).product();
        let (own, inner) = (self.extents[0], self.extents[1]);
        for (row, weights) in weights.chunks_mut((inner * taps).max(1)).enumerate() {
            for (column, weights) in weights.chunks_mut(taps.max(1)).enumerate() {
                let grouped = || row / (own / groups).max(1) * inner + column;
                let channel = if self.outputs == 0 { row } else { grouped() };
                let factor = self.factors.get(channel).copied().unwrap_or(1.0);
                weights.iter_mut().for_each(|weight| *weight *= factor);
            }
        }
        Cow::Owned(weights)
    }

    /// All that [`Filter::scaled`] makes of the weights, in words.
    pub(crate) fn words(&self, groups: usize) -> String {
        let mut hashes = [0u64, 1].map(|seed| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(seed);
            hasher
        });
        for factor in &self.factors {
            hashes.iter_mut().for_each(|hash| hash.write_u32(factor.to_bits()));
        }
        let [a, b] = hashes.map(|hash| hash.finish());
        let (outputs, extents) = (self.outputs, &self.extents);
        format!("{extents:?} of {groups} along {outputs} times {} {a:x} {b:x}", self.factors.len())
    }

    pub(crate) fn channels(&self, groups: usize) -> usize {
        if self.outputs == 0 { self.extents[0] } else { self.extents[1] * groups }
    }
}

/// A convolution of `x`, whose channels are last and whose extents in the file's order are `own`.
pub(crate) fn convolved(
    b: &mut Builder,
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
        let slot = padded(b, "cut", slot, &own, &around, PadMode::Constant(Bits(0.0)))?;
        let mapped = b.mapped(slot)?;
        own = b.extents(&mapped)?;
        x = mapped.value;
        windows.pads = windows.pads.iter().map(|pads| (pads.0.max(0), pads.1.max(0))).collect();
    }
    match own.len() {
        3 => {
            let lines = b.reshaped("line", x, &[own[0], 1, own[2], own[1]])?;
            let mut filter = filter;
            filter.extents.insert(2, 1);
            let value = flat(b, "map", lines, filter, &windows.flat(), groups)?;
            let dims = b.dims(value)?;
            let &[n, _, l, c] = dims.extents() else { return refused!("found {dims}, wanted rank 4") };
            b.reshaped("", value, &[n, l, c])
        }
        4 => flat(b, "", x, filter, &windows, groups),
        _ => deep(b, x, &own, filter, &windows, groups),
    }
}

/// A convolution in two dimensions.
fn flat(
    b: &mut Builder,
    part: &str,
    x: Value,
    filter: Filter,
    windows: &Windows,
    groups: usize,
) -> Result<Value, Reason> {
    let &[oc, ic, kh, kw] = &filter.extents[..] else {
        return refused!("found weights of {:?}", filter.extents);
    };
    b.budget.spend(8 * filter.weights.dims().elements())?;
    let channels = b.dims(x)?.shape().c;
    let bias = filter.bias.clone().map(HostTensor::vector).transpose()?;
    let extras = Extras { bias, ..Extras::default() };
    let (stride, dilation) =
        ([windows.stride[0], windows.stride[1]], [windows.dilation[0], windows.dilation[1]]);
    let padding = windows.padding();
    let depthwise = groups == channels && ic == 1 && groups > 1;
    let taps = kh * kw;
    if depthwise {
        let weights = b.derived(&filter.weights, &format!("taps {}", filter.words(groups)), |_| {
            let weights = filter.scaled(groups);
            let own = (0..taps).flat_map(|tap| weights.iter().skip(tap).step_by(taps).copied());
            HostTensor::new(Shape::nhwc(1, kh, kw, oc), own.collect::<Vec<f32>>()).map_err(Reason::from)
        })?;
        let options = Depthwise { stride, dilation, padding, ..Depthwise::default() };
        return b.add(part, |graph, name| graph.depthwise(name, x, weights, extras, options));
    }
    let weights = b.derived(&filter.weights, &format!("filter {}", filter.words(groups)), |_| {
        let weights = filter.scaled(groups);
        let mut own = Vec::with_capacity(weights.len());
        for row in weights.chunks((ic * taps).max(1)) {
            for tap in 0..taps {
                own.extend(row.iter().skip(tap).step_by(taps));
            }
        }
        HostTensor::new(Shape::nhwc(oc, kh, kw, ic), own).map_err(Reason::from)
    })?;
    let bare = windows.pads.iter().all(|&pads| pads == (0, 0));
    if taps == 1 && stride == [1, 1] && groups == 1 && bare {
        return b.add(part, |graph, name| graph.pointwise(name, x, weights, extras, Pointwise::default()));
    }
    let options = Conv2d { stride, dilation, padding, groups, ..Conv2d::default() };
    b.add(part, |graph, name| graph.conv2d(name, x, weights, extras, options))
}

/// A convolution in three dimensions: the sum of those of two, one for each tap of the depth, whose slices are the batch.
fn deep(
    b: &mut Builder,
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
    let slot = padded(b, "deep", slot, own, &around, PadMode::Constant(Bits(0.0)))?;
    let Operand::Value(mapped) = &slot else { return refused!("found a constant") };
    let depth = b.extents(mapped)?[2];
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
    let weights = filter.scaled(groups);
    let mut sum: Option<Value> = None;
    for tap in 0..kd {
        let ranges = [
            (0, own[0], 1),
            (0, own[1], 1),
            (tap * windows.dilation[0], outputs, windows.stride[0] as i64),
            (0, own[3], 1),
            (0, own[4], 1),
        ];
        let slot = cut(b, "slices", slot.clone(), &ranges)?;
        let slices = b.mapped(slot)?;
        let maps = b.reshaped("maps", slices.value, &[own[0] * outputs, own[3], own[4], own[1]])?;
        let own: Vec<f32> = weights.chunks(kh * kw).skip(tap).step_by(kd).flatten().copied().collect();
        let bias = if tap == 0 { filter.bias.clone() } else { None };
        let own = HostTensor::new(dims_of(&[oc, ic, kh, kw])?, own)?;
        let own = Filter::new(own, vec![oc, ic, kh, kw], bias);
        let part = flat(b, "part", maps, own, &map, groups)?;
        sum = Some(match sum {
            None => part,
            Some(sum) => b.add("sum", |graph, name| {
                graph.elementwise(name, Function::Add, &[sum.into(), part.into()])
            })?,
        });
    }
    let sum = sum.ok_or("found no taps")?;
    let dims = b.dims(sum)?;
    let &[_, h, w, c] = dims.extents() else { return refused!("found {dims}, wanted rank 4") };
    b.reshaped("", sum, &[own[0], outputs, h, w, c])
}
