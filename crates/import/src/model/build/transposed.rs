//! Transposed convolutions in one to three dimensions.
//!
//! In three, there are zeros between the depths of the input, and along the depth the weights are turned around: that is a
//! convolution, the sum of transposed ones in two for each tap.

use super::after::{activated, finished};
use super::builder::Builder;
use super::convolution::{sum_of_depths, with_depths_around};
use super::filter::{Arranged, Filter, INPUTS, OUTPUTS, Weights};
use super::kind::Kind;
use super::moves::cut;
use super::operand::{Mapped, Operand, channels_last};
use super::unfolded::unfolded_transposed;
use super::windows::Windows;
use crate::emit::Activation;
use crate::graph::{Extras, Value};
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::transposed_conv2d::TransposedConv2d;

/// A transposed convolution of `x`, whose channels are behind the batch, to the spatial extents `output`; `after` is a
/// function of its sums.
pub(crate) fn transposed_convolution(
    b: &mut Builder,
    x: Operand,
    weights: Weights,
    windows: Windows,
    output: &[usize],
    after: Option<Function>,
) -> Result<Operand, Reason> {
    let own = b.shape(&x)?;
    let (filter, summand) = match weights {
        Weights::Known { filter, summand } => (filter, summand),
        Weights::Computed { weights, bias, groups } => {
            let mut order: Vec<usize> = (0..b.shape(&weights)?.len()).collect();
            order.swap(OUTPUTS, INPUTS);
            let weights = b.transposed(weights, &order)?;
            return finished(b, None, after, |b, activation| {
                let windows = (&windows, output);
                activated(b, activation, |b| {
                    unfolded_transposed(b, x, &own, weights, bias, windows, groups.count)
                })
            });
        }
    };
    let (extents, groups) = (filter.extents(), filter.groups.count);
    if extents.len() != own.len() || !(3..=5).contains(&own.len()) || extents[INPUTS] != own[1] {
        return refused!(
            "found weights {filter} for an input of {own:?}, wanted those of its channels, in one to three dimensions"
        );
    }
    if !own[1].is_multiple_of(groups) {
        return refused!("found {} channels in {groups} groups, wanted a multiple", own[1]);
    }
    finished(b, summand, after, |b, activation| {
        let mapped = b.mapped(x)?;
        let order = channels_last(own.len());
        let x = b.in_order(&mapped, &order)?;
        let value = match own.len() {
            3 => {
                let line = b.reshaped("line", x, &[own[0], 1, own[2], own[1]])?;
                let filter = filter.flat();
                let map = of_maps(b, "map", line, &filter, (&windows.flat(), &[1, output[0]]), activation)?;
                b.reshaped("", map, &[own[0], output[0], filter.channels()])?
            }
            4 => of_maps(b, "", x, &filter, (&windows, output), activation)?,
            _ => of_volumes(b, x, &own, &filter, (&windows, output), activation)?,
        };
        Ok(Operand::Value(Mapped { value, order, kind: mapped.kind }))
    })
}

/// A transposed convolution in two dimensions.
fn of_maps(
    b: &mut Builder,
    part: &str,
    x: Value,
    filter: &Filter,
    target: (&Windows, &[usize]),
    activation: Activation,
) -> Result<Value, Reason> {
    let (&[oc, _, _, _], Windows { dilation, .. }) = (filter.extents(), target.0) else {
        return refused!("found weights {filter}, wanted those of maps");
    };
    let (inputs, span) = (filter.inputs(), [target.0.span(0), target.0.span(1)]);
    let apart = [(2, dilation[0]), (3, dilation[1])];
    let weights = |b: &mut Builder, group: usize| {
        let ranges = [(INPUTS, [group * inputs, inputs])];
        let wanted = Arranged { ranges: &ranges, apart: &apart, ..Arranged::by(&[0, 2, 3, 1]) };
        filter.arranged(b, &wanted, &[oc, span[0], span[1], inputs])
    };
    by_groups(b, part, x, filter, filter.bias.as_deref(), &weights, (target.0, target.1, activation))
}

/// A node for each group, whose weights are `oc/groups kh kw ic/groups`.
fn by_groups(
    b: &mut Builder,
    part: &str,
    x: Value,
    filter: &Filter,
    bias: Option<&[f32]>,
    weights: &dyn Fn(&mut Builder, usize) -> Result<HostTensor, Reason>,
    (windows, output, activation): (&Windows, &[usize], Activation),
) -> Result<Value, Reason> {
    let (groups, outputs) = (filter.groups.count, filter.extents()[OUTPUTS]);
    let options = TransposedConv2d {
        stride: [windows.stride[0], windows.stride[1]],
        padding: windows.padding(),
        output: Some([output[0], output[1]]),
        activation,
    };
    let mut parts = Vec::with_capacity(groups);
    for group in 0..groups {
        let weights = weights(b, group)?;
        let bias = bias.map(|bias| bias[group * outputs..(group + 1) * outputs].to_vec());
        let bias = bias.map(HostTensor::vector).transpose()?;
        let extras = Extras { bias, ..Extras::default() };
        if groups == 1 {
            return b.add(part, |graph, name| graph.transposed_conv2d(name, x, weights, extras, options));
        }
        let dims = b.dims(x)?.shape();
        let (slot, inputs) = (Operand::Value(Mapped::plain(x, 4, Kind::F32)), dims.c / groups);
        let ranges = [(0, dims.n, 1), (0, dims.h, 1), (0, dims.w, 1), (group * inputs, inputs, 1)];
        let slot = cut(b, "group", slot, &ranges)?;
        let own = b.mapped(slot)?.value;
        parts
            .push(b.add("part", |graph, name| graph.transposed_conv2d(name, own, weights, extras, options))?);
    }
    b.add(part, |graph, name| graph.concat(name, &parts, -1))
}

/// A transposed convolution in three dimensions.
fn of_volumes(
    b: &mut Builder,
    x: Value,
    own: &[usize],
    filter: &Filter,
    (windows, output): (&Windows, &[usize]),
    activation: Activation,
) -> Result<Value, Reason> {
    let (&[oc, _, kd, _, _], &[n, c, depth, h, w]) = (filter.extents(), own) else {
        return refused!("found weights {filter} for an input of {own:?}, wanted those of volumes");
    };
    let (inputs, maps) = (filter.inputs(), windows.of_maps());
    let (step, span, count) = (windows.stride[0], windows.span(0), output[0]);
    let wide = depth.saturating_mul(step);
    b.budget.spend(wide.saturating_add(span).saturating_add(count))?;
    let mut x = x;
    if step > 1 {
        let apart = b.reshape("apart", x, &[n, depth, 1, h, w, c])?;
        let apart = b.extended("zeros", apart, 2, step - 1, 0.0)?;
        x = b.reshape("wide", apart, &[n, wide, h, w, c])?;
    }
    let before = span as i64 - 1 - windows.pads[0].0;
    let after = (count + span) as i64 - 1 - wide as i64 - before;
    let x = with_depths_around(b, x, &[n, c, wide, h, w], (before, after))?;
    let depths = Windows { stride: vec![1; 3], ..windows.clone() };
    let (height, width) = (maps.span(0), maps.span(1));
    let apart = [(3, maps.dilation[0]), (4, maps.dilation[1])];
    let sum = sum_of_depths(b, &x, &depths, count, activation, &mut |b, slices, tap| {
        let bias = filter.bias.as_deref().filter(|_| tap == 0);
        let weights = |b: &mut Builder, group: usize| {
            let ranges = [(INPUTS, [group * inputs, inputs]), (2, [kd - 1 - tap, 1])];
            let wanted = Arranged { ranges: &ranges, apart: &apart, ..Arranged::by(&[0, 3, 4, 2, 1]) };
            filter.arranged(b, &wanted, &[oc, height, width, inputs])
        };
        by_groups(b, "part", slices, filter, bias, &weights, (&maps, &output[1..], Activation::None))
    })?;
    b.reshaped("", sum, &[n, count, output[1], output[2], filter.channels()])
}
