//! Pooling in one to three dimensions.

use super::after::{activated, finished};
use super::builder::Builder;
use super::kind::Kind;
use super::moves::{cut, padded};
use super::operand::{Mapped, Operand, channels_last};
use super::windows::Windows;
use crate::emit::{Activation, Bits};
use crate::graph::Value;
use crate::model::constant::{elements_of, indices};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::pool::{Pool, Pooling};
use crate::ops::remap::PadMode;

/// The most taps of windows whose taps are apart: each is a node.
const MAX_TAPS: usize = 256;

/// Which elements of a window beyond the input count in a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Inside,
    /// The pads count, but not what a window has beyond them because the number of windows was rounded up.
    Pads,
    All,
}

/// How elements of windows are pooled.
#[derive(Debug, Clone)]
pub(crate) struct Pools {
    pub(crate) pooling: Pooling,
    pub(crate) windows: Windows,
    pub(crate) counted: Counted,
    /// Whether the number of windows is rounded up.
    pub(crate) ceil: bool,
}

/// Pools `x`, whose channels are behind the batch; `after` is a function of what is pooled.
pub(crate) fn pooled(
    b: &mut Builder,
    part: &str,
    x: Operand,
    pools: &Pools,
    after: Option<Function>,
) -> Result<Operand, Reason> {
    let own = b.shape(&x)?;
    if !(3..=5).contains(&own.len()) || pools.windows.kernel.len() + 2 != own.len() {
        let windows = &pools.windows.kernel;
        return refused!("found windows of {windows:?} over {own:?}, wanted rank 3 to 5 and as many axes");
    }
    finished(b, None, after, |b, activation| {
        let mapped = b.mapped(x)?;
        let order = channels_last(own.len());
        let x = b.in_order(&mapped, &order)?;
        let make = |b: &mut Builder, activation: Activation| {
            let value = of_windows(b, part, x, &own, pools.clone(), activation)?;
            Ok(Operand::Value(Mapped { value, order, kind: mapped.kind }))
        };
        // Windows of maps without dilations are one node.
        match own.len() == 4 && pools.windows.dilation == [1, 1] {
            true => make(b, activation),
            false => activated(b, activation, |b| make(b, Activation::None)),
        }
    })
}

/// The root of the sum or of the mean of the powers of each window's elements; those beyond the input are 0.
pub(crate) fn powers_pooled(
    b: &mut Builder,
    x: Operand,
    (p, is_sum): (f32, bool),
    windows: Windows,
    (ceil, counted): (bool, Counted),
) -> Result<Operand, Reason> {
    let taps = elements_of(&windows.kernel)?;
    let pools = Pools { pooling: Pooling::Average, windows, counted, ceil };
    root_of_powers(b, x, p, &mut |b, powers| {
        let mean = pooled(b, "mean", powers, &pools, None)?;
        if is_sum { b.apply("sum", Function::Mul, &[mean.into(), (taps as f32).into()]) } else { Ok(mean) }
    })
}

/// `(sum |x|^p)^(1/p)`, where `sum` adds up the powers of windows or of axes.
pub(crate) fn root_of_powers(
    b: &mut Builder,
    x: Operand,
    p: f32,
    sum: &mut dyn FnMut(&mut Builder, Operand) -> Result<Operand, Reason>,
) -> Result<Operand, Reason> {
    if !(p.is_finite() && p > 0.0) {
        return refused!("found p {p}, wanted a number above 0");
    }
    let powers = match p {
        1.0 => b.apply("sizes", Function::Abs, &[x.into()])?,
        2.0 => b.apply("squares", Function::Square, &[x.into()])?,
        _ => {
            let sizes = b.apply("sizes", Function::Abs, &[x.into()])?;
            b.apply("powers", Function::Pow, &[sizes.into(), p.into()])?
        }
    };
    let sum = sum(b, powers)?;
    match p {
        1.0 => b.apply("", Function::Abs, &[sum.into()]),
        2.0 => b.apply("", Function::Sqrt, &[sum.into()]),
        _ => b.apply("", Function::Pow, &[sum.into(), (1.0 / p).into()]),
    }
}

/// The pooled map of `x`, whose channels are last and whose extents in the file's order are `own`.
fn of_windows(
    b: &mut Builder,
    part: &str,
    x: Value,
    own: &[usize],
    pools: Pools,
    activation: Activation,
) -> Result<Value, Reason> {
    let (rank, Pools { pooling, mut windows, counted, ceil }) = (own.len(), pools);
    let (mut x, mut own) = (x, own.to_vec());
    let spread = windows.dilation.iter().any(|&step| step > 1);
    let mut more: Vec<usize> =
        (0..rank - 2).map(|axis| if ceil { overhang(&windows, axis, own[2 + axis]) } else { 0 }).collect();
    if counted == Counted::All {
        for (pads, more) in windows.pads.iter_mut().zip(&mut more) {
            pads.1 += std::mem::take(more) as i64;
        }
    }
    let counts_pads = counted != Counted::Inside;
    let explicit = !windows.is_bare() && (spread || counts_pads) || windows.has_negative_pads();
    if explicit {
        if spread && pooling == Pooling::Average && !counts_pads {
            return refused!("found dilations and pads that do not count");
        }
        let fill = if pooling == Pooling::Max { f32::NEG_INFINITY } else { 0.0 };
        let mut around = vec![(0, 0); 2];
        around.extend(&windows.pads);
        let slot = Operand::Value(Mapped { value: x, order: channels_last(rank), kind: Kind::F32 });
        let slot = padded(b, "pad", slot, &own, &around, PadMode::Constant(Bits(fill)))?;
        let mapped = b.mapped(slot)?;
        own = b.extents(&mapped)?;
        x = mapped.value;
        windows = windows.bare();
    }
    if spread && pooling == Pooling::Max && rank > 3 {
        // The largest along one axis after the other.
        for axis in 0..rank - 2 {
            let mut line = Windows { pads: windows.pads.clone(), ..Windows::new(&vec![1; rank - 2]) };
            (line.kernel[axis], line.stride[axis], line.dilation[axis]) =
                (windows.kernel[axis], windows.stride[axis], windows.dilation[axis]);
            let more: Vec<usize> =
                more.iter().enumerate().map(|(other, &more)| if other == axis { more } else { 0 }).collect();
            let last = axis == rank - 3;
            x = apart(b, if last { part } else { "line" }, x, &own, &line, &more, pooling)?;
            let stored = b.dims(x)?;
            own[2..].copy_from_slice(&stored.extents()[1..rank - 1]);
        }
        return Ok(x);
    }
    if spread {
        return apart(b, part, x, &own, &windows, &more, pooling);
    }
    for (pads, more) in windows.pads.iter_mut().zip(&more) {
        pads.1 += *more as i64;
    }
    match rank {
        3 => {
            let lines = b.reshaped("line", x, &[own[0], 1, own[2], own[1]])?;
            let value = node(b, "map", lines, &windows.flat(), pooling, activation)?;
            let dims = b.dims(value)?.shape();
            b.reshaped(part, value, &[own[0], dims.w, dims.c])
        }
        4 => node(b, part, x, &windows, pooling, activation),
        _ => {
            // First each slice of the depth, then along it.
            let maps = b.reshaped("maps", x, &[own[0] * own[2], own[3], own[4], own[1]])?;
            let maps = node(b, "slices", maps, &windows.of_maps(), pooling, Activation::None)?;
            let dims = b.dims(maps)?.shape();
            let columns = b.reshaped("columns", maps, &[own[0], own[2], dims.h * dims.w, own[1]])?;
            let mut depth = Windows::new(&[windows.kernel[0], 1]);
            (depth.stride[0], depth.pads[0]) = (windows.stride[0], windows.pads[0]);
            let columns = node(b, "depth", columns, &depth, pooling, activation)?;
            let depth = b.dims(columns)?.shape().h;
            b.reshaped(part, columns, &[own[0], depth, dims.h, dims.w, own[1]])
        }
    }
}

/// How far the last window reaches beyond the pads, if the number of windows is rounded up.
fn overhang(windows: &Windows, axis: usize, input: usize) -> usize {
    let (before, after) = windows.pads[axis];
    let (stride, span) = (windows.stride[axis] as i64, windows.span(axis) as i64);
    let whole = input as i64 + before + after;
    let mut last = (whole - span + stride - 1).div_euclid(stride);
    // A window that would begin behind the input is left out.
    if last * stride >= input as i64 + before {
        last -= 1;
    }
    (last * stride + span - whole).max(0) as usize
}

fn node(
    b: &mut Builder,
    part: &str,
    x: Value,
    windows: &Windows,
    pooling: Pooling,
    activation: Activation,
) -> Result<Value, Reason> {
    let options = Pool {
        stride: [windows.stride[0], windows.stride[1]],
        padding: windows.padding(),
        activation,
        ..Pool::new(pooling, [windows.kernel[0], windows.kernel[1]])
    };
    b.add(part, |graph, name| graph.pool(name, x, options))
}

/// Windows whose taps are apart: a slice for each tap, combined.
fn apart(
    b: &mut Builder,
    part: &str,
    x: Value,
    own: &[usize],
    windows: &Windows,
    more: &[usize],
    pooling: Pooling,
) -> Result<Value, Reason> {
    let taps = elements_of(&windows.kernel)?;
    if taps > MAX_TAPS {
        return refused!(
            "found windows of {:?} with dilations, wanted at most {MAX_TAPS} taps",
            windows.kernel
        );
    }
    let mut slot = Operand::Value(Mapped { value: x, order: channels_last(own.len()), kind: Kind::F32 });
    let mut own = own.to_vec();
    if more.iter().any(|&more| more > 0) {
        if pooling == Pooling::Average {
            return refused!("found dilations where the number of windows is rounded up");
        }
        let mut around = vec![(0, 0); 2];
        around.extend(more.iter().map(|&more| (0, more as i64)));
        slot = padded(b, "more", slot, &own, &around, PadMode::Constant(Bits(f32::NEG_INFINITY)))?;
        for (extent, more) in own.iter_mut().skip(2).zip(more) {
            *extent += more;
        }
    }
    let outputs: Option<Vec<usize>> = (0..own.len() - 2)
        .map(|axis| own[2 + axis].checked_sub(windows.span(axis)).map(|rest| rest / windows.stride[axis] + 1))
        .collect();
    let outputs = outputs.ok_or_else(|| format!("found windows of {:?} over {own:?}", windows.kernel))?;
    let mut result: Option<Value> = None;
    for tap in indices(&windows.kernel) {
        let mut ranges = vec![(0, own[0], 1), (0, own[1], 1)];
        ranges
            .extend((0..tap.len()).map(|axis| {
                (tap[axis] * windows.dilation[axis], outputs[axis], windows.stride[axis] as i64)
            }));
        let slice = cut(b, "tap", slot.clone(), &ranges)?;
        let slice = b.mapped(slice)?.value;
        let function = if pooling == Pooling::Max { Function::Maximum } else { Function::Add };
        result = Some(match result {
            None => slice,
            Some(result) => b.add("taps", |graph, name| {
                graph.elementwise(name, function, &[result.into(), slice.into()])
            })?,
        });
    }
    let result = result.ok_or("found no taps")?;
    let factor = if pooling == Pooling::Max { 1.0 } else { 1.0 / taps as f32 };
    b.add(part, |graph, name| graph.elementwise(name, Function::Mul, &[result.into(), factor.into()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_would_begin_behind_the_input_is_left_out() {
        let windows = |kernel: usize, stride: usize, pads| Windows {
            stride: vec![stride],
            pads: vec![pads],
            ..Windows::new(&[kernel])
        };
        assert_eq!(overhang(&windows(3, 2, (0, 0)), 0, 4), 1);
        assert_eq!(overhang(&windows(3, 2, (0, 0)), 0, 5), 0);
        assert_eq!(overhang(&windows(1, 2, (0, 0)), 0, 2), 0);
        assert_eq!(overhang(&windows(2, 3, (0, 1)), 0, 3), 0);
    }
}
