//! Convolutions in one to three dimensions.
//!
//! In three, a convolution is one in two: the elements that a window has along the depth become channels, and each depth
//! of the result is a map. Where each channel is by itself these would be groups of several channels, which have no fast
//! kernel; there the maps of each tap of the depth are added up.

use super::after::{finished, function_of};
use super::builder::Builder;
use super::filter::{Arranged, Filter, INPUTS, OUTPUTS, Weights};
use super::kind::Kind;
use super::moves::{cut, padded};
use super::operand::{Mapped, Operand, channels_last};
use super::unfolded::unfolded;
use super::windows::Windows;
use crate::emit::{Activation, Bits};
use crate::graph::{Extras, Value};
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::conv2d::Conv2d;
use crate::ops::depthwise::Depthwise;
use crate::ops::elementwise::Function;
use crate::ops::pointwise::Pointwise;
use crate::ops::remap::PadMode;

/// A convolution of `x`, whose channels are behind the batch; `after` is a function of its sums.
pub(crate) fn convolution(
    b: &mut Builder,
    x: Operand,
    weights: Weights,
    windows: Windows,
    after: Option<Function>,
) -> Result<Operand, Reason> {
    let own = b.shape(&x)?;
    let (filter, summand) = match weights {
        Weights::Known { filter, summand } => (filter, summand),
        Weights::Computed { weights, bias, groups } => {
            return finished(b, None, after, |b, activation| {
                let part = if activation == Activation::None { "" } else { "sums" };
                let sums = unfolded(b, part, x, &own, weights, bias, &windows, groups.count)?;
                activated(b, sums, activation)
            });
        }
    };
    check(&own, &filter)?;
    finished(b, summand, after, |b, activation| {
        let mapped = b.mapped(x)?;
        let order = channels_last(own.len());
        let x = b.in_order(&mapped, &order)?;
        let value = convolved(b, x, &own, filter, windows, activation)?;
        Ok(Operand::Value(Mapped { value, order, kind: mapped.kind }))
    })
}

/// The function that an activation is, as the operator's last node.
pub(super) fn activated(b: &mut Builder, x: Operand, activation: Activation) -> Result<Operand, Reason> {
    match function_of(activation) {
        Some(function) => b.apply("", function, &[x.into()]),
        None => Ok(x),
    }
}

fn check(own: &[usize], filter: &Filter) -> Result<(), Reason> {
    let (extents, groups) = (filter.extents(), filter.groups.count);
    if extents.len() != own.len() || !(3..=5).contains(&own.len()) {
        return refused!(
            "found weights {filter} for an input of {own:?}, wanted the same number of axes, 3 to 5"
        );
    }
    if own[1] != extents[INPUTS] * groups || !extents[OUTPUTS].is_multiple_of(groups) {
        return refused!(
            "found weights {filter} in {groups} groups for {} input channels, wanted groups of as many channels",
            own[1]
        );
    }
    Ok(())
}

/// A convolution of `x`, whose channels are last and whose extents in the file's order are `own`.
fn convolved(
    b: &mut Builder,
    x: Value,
    own: &[usize],
    filter: Filter,
    windows: Windows,
    activation: Activation,
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
            let value = of_maps(b, "map", lines, &filter.flat(), &windows.flat(), activation)?;
            let dims = b.dims(value)?;
            let &[n, _, l, c] = dims.extents() else { return refused!("found {dims}, wanted rank 4") };
            b.reshaped("", value, &[n, l, c])
        }
        4 => of_maps(b, "", x, &filter, &windows, activation),
        _ => of_volumes(b, x, &own, filter, windows, activation),
    }
}

/// A convolution in two dimensions.
fn of_maps(
    b: &mut Builder,
    part: &str,
    x: Value,
    filter: &Filter,
    windows: &Windows,
    activation: Activation,
) -> Result<Value, Reason> {
    let (&[oc, ic, kh, kw], groups) = (filter.extents(), filter.groups.count) else {
        return refused!("found weights {filter}, wanted those of maps");
    };
    if !is_by_channel(filter) {
        let weights = filter.arranged(b, &Arranged::by(&[0, 2, 3, 1]), &[oc, kh, kw, ic])?;
        return node(b, part, x, weights, filter.bias.clone(), (windows, groups, activation));
    }
    let weights = filter.arranged(b, &Arranged::by(&[1, 2, 3, 0]), &[1, kh, kw, oc])?;
    by_channel(b, part, x, weights, filter.bias.clone(), (windows, activation))
}

/// The node of a convolution of each channel by itself; its weights are `1 kh kw oc`.
fn by_channel(
    b: &mut Builder,
    part: &str,
    x: Value,
    weights: HostTensor,
    bias: Option<Vec<f32>>,
    (windows, activation): (&Windows, Activation),
) -> Result<Value, Reason> {
    let extras = extras(bias)?;
    let options = Depthwise {
        stride: [windows.stride[0], windows.stride[1]],
        dilation: [windows.dilation[0], windows.dilation[1]],
        padding: windows.padding(),
        activation,
    };
    b.add(part, |graph, name| graph.depthwise(name, x, weights, extras, options))
}

/// Whether each channel is by itself. One that is the only one may be a map as any other.
fn is_by_channel(filter: &Filter) -> bool {
    filter.extents()[INPUTS] == 1 && (filter.groups.count > 1 || filter.is_by_channel())
}

fn extras(bias: Option<Vec<f32>>) -> Result<Extras, Reason> {
    let bias = bias.map(HostTensor::vector).transpose()?;
    Ok(Extras { bias, ..Extras::default() })
}

/// The node of a convolution of maps; its weights are `oc kh kw ic/groups`.
fn node(
    b: &mut Builder,
    part: &str,
    x: Value,
    weights: HostTensor,
    bias: Option<Vec<f32>>,
    (windows, groups, activation): (&Windows, usize, Activation),
) -> Result<Value, Reason> {
    let extras = extras(bias)?;
    let (stride, dilation) =
        ([windows.stride[0], windows.stride[1]], [windows.dilation[0], windows.dilation[1]]);
    let own = weights.shape();
    if [own.h, own.w] == [1, 1] && stride == [1, 1] && groups == 1 && windows.is_bare() {
        return b
            .add(part, |graph, name| graph.pointwise(name, x, weights, extras, Pointwise { activation }));
    }
    let padding = windows.padding();
    let options = Conv2d { stride, dilation, padding, groups, activation, ..Conv2d::default() };
    b.add(part, |graph, name| graph.conv2d(name, x, weights, extras, options))
}

/// The elements that windows have along the depth of `x` (`n d h w c`, with its pads) as channels, in each group those of
/// one tap behind those of another: a map for each window.
pub(super) fn depths_as_channels(
    b: &mut Builder,
    x: Operand,
    windows: &Windows,
    count: usize,
    groups: usize,
) -> Result<Value, Reason> {
    let own = b.shape(&x)?;
    let &[n, c, _, h, w] = &own[..] else { return refused!("found {own:?}, wanted rank 5") };
    let taps = windows.kernel[0];
    let mut parts = Vec::with_capacity(taps);
    for tap in 0..taps {
        let part = one_depth(b, &x, (tap * windows.dilation[0], windows.stride[0]), count)?;
        parts.push(match groups {
            1 => part,
            _ => b.reshaped("groups", part, &[n * count * h * w, groups, c / groups])?,
        });
    }
    let joined = match (&parts[..], groups) {
        (&[part], _) => part,
        (_, 1) => b.concat("depths", &parts, 4)?,
        _ => b.concat("depths", &parts, 2)?,
    };
    b.reshaped("images", joined, &[n * count, h, w, taps * c])
}

/// Some of the depths of `x`, channels last.
fn one_depth(
    b: &mut Builder,
    x: &Operand,
    (first, step): (usize, usize),
    count: usize,
) -> Result<Value, Reason> {
    let own = b.shape(x)?;
    let mut ranges: Vec<(usize, usize, i64)> = own.iter().map(|&extent| (0, extent, 1)).collect();
    ranges[2] = (first, count, step as i64);
    let part = cut(b, "depth", x.clone(), &ranges)?;
    let mapped = b.mapped(part)?;
    b.in_order(&mapped, &channels_last(5))
}

/// A convolution in three dimensions.
fn of_volumes(
    b: &mut Builder,
    x: Value,
    own: &[usize],
    filter: Filter,
    windows: Windows,
    activation: Activation,
) -> Result<Value, Reason> {
    let (&[oc, ic, kd, kh, kw], groups) = (filter.extents(), filter.groups.count) else {
        return refused!("found weights {filter}, wanted those of volumes");
    };
    let &[n, c, depth, h, w] = own else { return refused!("found {own:?}, wanted rank 5") };
    let maps = windows.of_maps();
    let count = windows.count(0, depth).ok_or_else(|| {
        format!("found windows of depth {} over {own:?}, wanted none deeper than that", windows.span(0))
    })?;
    if [kh, kw] == [1, 1] && maps.stride == [1, 1] && maps.is_bare() {
        // Along the depth alone: depths are rows, and pixels are columns.
        let rows = b.reshaped("rows", x, &[n, depth, h * w, c])?;
        let filter = filter.without(4);
        let mut along = windows.of_maps();
        (along.kernel[0], along.stride[0], along.dilation[0]) = (kd, windows.stride[0], windows.dilation[0]);
        (along.pads[0], along.same) = (windows.pads[0], false);
        let value = of_maps(b, "columns", rows, &filter, &along, activation)?;
        return b.reshaped("", value, &[n, count, h, w, oc]);
    }
    let mut around = [(0, 0); 5];
    around[2] = windows.pads[0];
    let order = channels_last(5);
    let x = Operand::Value(Mapped { value: x, order, kind: Kind::F32 });
    let x = padded(b, "deep", x, own, &around, PadMode::Constant(Bits(0.0)))?;
    let value = match is_by_channel(&filter) && kd > 1 {
        true => sum_of_depths(b, &x, &filter, &windows, count, activation)?,
        false => {
            let images = depths_as_channels(b, x, &windows, count, groups)?;
            let wanted = Arranged::by(&[0, 3, 4, 2, 1]);
            let weights = filter.arranged(b, &wanted, &[oc, kh, kw, kd * ic])?;
            node(b, "maps", images, weights, filter.bias.clone(), (&maps, groups, activation))?
        }
    };
    let dims = b.dims(value)?;
    let &[_, h, w, c] = dims.extents() else { return refused!("found {dims}, wanted rank 4") };
    b.reshaped("", value, &[n, count, h, w, c])
}

/// The sum of the convolutions of each tap of the depth, for channels that are by themselves.
fn sum_of_depths(
    b: &mut Builder,
    x: &Operand,
    filter: &Filter,
    windows: &Windows,
    count: usize,
    activation: Activation,
) -> Result<Value, Reason> {
    let own = b.shape(x)?;
    let (&[oc, _, kd, kh, kw], maps) = (filter.extents(), windows.of_maps()) else {
        return refused!("found weights {filter}, wanted those of volumes");
    };
    let mut sum: Option<Value> = None;
    for tap in 0..kd {
        let slices = one_depth(b, x, (tap * windows.dilation[0], windows.stride[0]), count)?;
        let slices = b.reshaped("maps", slices, &[own[0] * count, own[3], own[4], own[1]])?;
        let wanted = Arranged { ranges: &[(2, [tap, 1])], ..Arranged::by(&[1, 3, 4, 2, 0]) };
        let weights = filter.arranged(b, &wanted, &[1, kh, kw, oc])?;
        let bias = if tap == 0 { filter.bias.clone() } else { None };
        let part = by_channel(b, "part", slices, weights, bias, (&maps, Activation::None))?;
        sum = Some(match sum {
            None => part,
            Some(sum) => b.each("sum", Function::Add, &[sum.into(), part.into()])?,
        });
    }
    let sum = sum.ok_or("found no taps")?;
    match function_of(activation) {
        Some(function) => b.each("activated", function, &[sum.into()]),
        None => Ok(sum),
    }
}
