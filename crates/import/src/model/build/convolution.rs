//! Convolutions in one to three dimensions.
//!
//! In three, it is the sum of those in two, one for each tap of the depth, over the depths that the tap meets. Slices of the
//! depth are views where there is one image, and sums are part of the convolutions. One convolution of all taps as channels
//! took as long on the CPU and on PoCL, and longer where there are few channels or each is by itself.

use super::after::{activated, finished, function_of};
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
                activated(b, activation, |b| unfolded(b, x, &own, weights, bias, &windows, groups.count))
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
        _ => of_volumes(b, x, &own, &filter, &windows, activation),
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

/// A convolution in three dimensions.
fn of_volumes(
    b: &mut Builder,
    x: Value,
    own: &[usize],
    filter: &Filter,
    windows: &Windows,
    activation: Activation,
) -> Result<Value, Reason> {
    let (&[oc, ic, _, kh, kw], groups) = (filter.extents(), filter.groups.count) else {
        return refused!("found weights {filter}, wanted those of volumes");
    };
    let &[n, _, depth, _, _] = own else { return refused!("found {own:?}, wanted rank 5") };
    let count = windows.count(0, depth).ok_or_else(|| {
        format!("found windows of depth {} over {own:?}, wanted none deeper than that", windows.span(0))
    })?;
    let maps = windows.of_maps();
    let x = with_depths_around(b, x, own, windows.pads[0])?;
    let sum = sum_of_depths(b, &x, windows, count, activation, &mut |b, slices, tap| {
        let bias = if tap == 0 { filter.bias.clone() } else { None };
        let ranges = [(2, [tap, 1])];
        if is_by_channel(filter) {
            let wanted = Arranged { ranges: &ranges, ..Arranged::by(&[1, 3, 4, 2, 0]) };
            let weights = filter.arranged(b, &wanted, &[1, kh, kw, oc])?;
            return by_channel(b, "part", slices, weights, bias, (&maps, Activation::None));
        }
        let wanted = Arranged { ranges: &ranges, ..Arranged::by(&[0, 3, 4, 2, 1]) };
        let weights = filter.arranged(b, &wanted, &[oc, kh, kw, ic])?;
        node(b, "part", slices, weights, bias, (&maps, groups, Activation::None))
    })?;
    let dims = b.dims(sum)?;
    let &[_, h, w, c] = dims.extents() else { return refused!("found {dims}, wanted rank 4") };
    b.reshaped("", sum, &[n, count, h, w, c])
}

/// Volumes, channels last, with zeros before and behind their depths.
pub(super) fn with_depths_around(
    b: &mut Builder,
    x: Value,
    own: &[usize],
    pads: (i64, i64),
) -> Result<Operand, Reason> {
    let mut around = [(0, 0); 5];
    around[2] = pads;
    let more = pads.0.max(0).saturating_add(pads.1.max(0));
    b.budget.spend(usize::try_from(more).unwrap_or(usize::MAX))?;
    let x = Operand::Value(Mapped { value: x, order: channels_last(5), kind: Kind::F32 });
    padded(b, "deep", x, own, &around, PadMode::Constant(Bits(0.0)))
}

/// The sum of what `part` makes of each tap of the depth: of the maps at `count` depths of `x` that the tap meets.
pub(super) fn sum_of_depths(
    b: &mut Builder,
    x: &Operand,
    windows: &Windows,
    count: usize,
    activation: Activation,
    part: &mut dyn FnMut(&mut Builder, Value, usize) -> Result<Value, Reason>,
) -> Result<Value, Reason> {
    let own = b.shape(x)?;
    let &[n, c, _, h, w] = &own[..] else { return refused!("found {own:?}, wanted rank 5") };
    let mut sum: Option<Value> = None;
    for tap in 0..windows.kernel[0] {
        let mut ranges: Vec<(usize, usize, i64)> = own.iter().map(|&extent| (0, extent, 1)).collect();
        ranges[2] = (tap * windows.dilation[0], count, windows.stride[0] as i64);
        let slices = cut(b, "slices", x.clone(), &ranges)?;
        let slices = b.mapped(slices)?;
        let slices = b.in_order(&slices, &channels_last(5))?;
        let slices = b.reshaped("maps", slices, &[n * count, h, w, c])?;
        let own = part(b, slices, tap)?;
        sum = Some(match sum {
            None => own,
            Some(sum) => b.each("sum", Function::Add, &[sum.into(), own.into()])?,
        });
    }
    let sum = sum.ok_or("found no taps")?;
    match function_of(activation) {
        Some(function) => b.each("activated", function, &[sum.into()]),
        None => Ok(sum),
    }
}
