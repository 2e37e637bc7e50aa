//! Transposed convolutions of weights that are known.

use super::builder::Builder;
use super::convolution::{Filter, convolved};
use super::kind::Kind;
use super::moves::{cut, padded};
use super::operand::{Mapped, Operand, channels_last};
use super::windows::Windows;
use crate::emit::Bits;
use crate::graph::{Extras, Value};
use crate::host::HostTensor;
use crate::model::constant::dims_of;
use crate::model::reason::Reason;
use crate::ops::remap::PadMode;
use crate::ops::transposed_conv2d::TransposedConv2d;

/// A transposed convolution of a map in two dimensions, whose channels are last, a node for each group.
pub(crate) fn transposed_map(
    b: &mut Builder,
    part: &str,
    x: Value,
    filter: &Filter,
    windows: &Windows,
    output: &[usize],
    groups: usize,
) -> Result<Value, Reason> {
    let &[ic, oc, kh, kw] = &filter.extents[..] else { return refused!("found no weights") };
    let inner = ic / groups;
    let span = [windows.span(0), windows.span(1)];
    b.budget.spend(ic.saturating_mul(oc).saturating_mul(span[0] * span[1]).saturating_mul(8))?;
    let options = TransposedConv2d {
        stride: [windows.stride[0], windows.stride[1]],
        padding: windows.padding(),
        output: Some([output[0], output[1]]),
        ..TransposedConv2d::default()
    };
    let mut parts = Vec::with_capacity(groups);
    for group in 0..groups {
        let what = format!("transposed {group} by {:?} {}", windows.dilation, filter.words(groups));
        let weights = b.derived(&filter.weights, &what, |_| {
            // Taps that are apart have zeros between them.
            let source = filter.scaled(groups);
            let mut own = vec![0.0; oc * span[0] * span[1] * inner];
            for (c, o) in (0..inner).flat_map(|c| (0..oc).map(move |o| (c, o))) {
                for (y, x) in (0..kh).flat_map(|y| (0..kw).map(move |x| (y, x))) {
                    let from = (((group * inner + c) * oc + o) * kh + y) * kw + x;
                    let (row, column) = (y * windows.dilation[0], x * windows.dilation[1]);
                    own[((o * span[0] + row) * span[1] + column) * inner + c] = source[from];
                }
            }
            Ok(HostTensor::new(dims_of(&[oc, span[0], span[1], inner])?, own)?)
        })?;
        let bias = filter.bias.as_ref().map(|bias| bias[group * oc..(group + 1) * oc].to_vec());
        let bias = bias.map(HostTensor::vector).transpose()?;
        let extras = Extras { bias, ..Extras::default() };
        if groups == 1 {
            return b.add(part, |graph, name| graph.transposed_conv2d(name, x, weights, extras, options));
        }
        let dims = b.dims(x)?.shape();
        let slot = Operand::Value(Mapped::plain(x, 4, Kind::F32));
        let ranges = [(0, dims.n, 1), (0, dims.h, 1), (0, dims.w, 1), (group * inner, inner, 1)];
        let slot = cut(b, "group", slot, &ranges)?;
        let own = b.mapped(slot)?.value;
        parts
            .push(b.add("part", |graph, name| graph.transposed_conv2d(name, own, weights, extras, options))?);
    }
    b.add(part, |graph, name| graph.concat(name, &parts, -1))
}

/// A transposed convolution in three dimensions: a convolution with the weights turned round, of the input with zeros
/// between its elements.
pub(crate) fn transposed_volume(
    b: &mut Builder,
    x: Operand,
    filter: Filter,
    windows: Windows,
    output: &[usize],
    groups: usize,
) -> Result<Value, Reason> {
    let mut own = b.shape(&x)?;
    let mut slot = x;
    let mut pads = Vec::with_capacity(3);
    for (axis, &wanted) in output.iter().enumerate() {
        let (place, stride, span) = (2 + axis, windows.stride[axis], windows.span(axis));
        let (outer, extent, inner): (usize, usize, usize) =
            (own[..place].iter().product(), own[place], own[place + 1..].iter().product());
        let wide = (extent - 1) * stride + 1;
        if stride > 1 {
            let split = [outer, extent, 1, inner];
            slot = b.with_extents("apart", slot, &split)?;
            let around = [(0, 0), (0, 0), (0, stride as i64 - 1), (0, 0)];
            slot = padded(b, "apart", slot, &split, &around, PadMode::Constant(Bits(0.0)))?;
            slot = b.with_extents("apart", slot, &[outer, extent * stride, inner])?;
            slot = cut(b, "apart", slot, &[(0, outer, 1), (0, wide, 1), (0, inner, 1)])?;
        }
        own[place] = wide;
        let before = span as i64 - 1 - windows.pads[axis].0;
        pads.push((before, (wanted + span) as i64 - 1 - wide as i64 - before));
    }
    let slot = b.with_extents("apart", slot, &own)?;
    let mapped = b.mapped(slot)?;
    let x = b.in_order(&mapped, &channels_last(5))?;
    let (ic, oc) = (filter.extents[0], filter.extents[1]);
    let (taps, inner) = (filter.extents[2..].iter().product::<usize>(), ic / groups);
    let source = filter.scaled(groups);
    b.budget.spend(source.len().saturating_mul(8))?;
    let mut weights = vec![0.0; source.len()];
    for (at, &weight) in source.iter().enumerate() {
        let (c, o, tap) = (at / (oc * taps), at / taps % oc, at % taps);
        let row = c / inner * oc + o;
        weights[(row * inner + c % inner) * taps + taps - 1 - tap] = weight;
    }
    let mut extents = vec![oc * groups, inner];
    extents.extend_from_slice(&filter.extents[2..]);
    let filter = Filter::new(HostTensor::new(dims_of(&extents)?, weights)?, extents, filter.bias.clone());
    let windows = Windows { stride: vec![1; 3], pads, ..windows };
    convolved(b, x, &own, filter, windows, groups)
}
