//! Pooling in one to three dimensions.

use super::import::{Import, Op};
use crate::emit::Bits;
use crate::graph::Value;
use crate::model::build::{
    Builder, Mapped, Operand, Windows, channels_last, cut, padded, reduced, root_of_powers,
};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::pool::{Pool, Pooling};
use crate::ops::reduce::Reduction;
use crate::ops::remap::PadMode;

type Done = Result<(), Reason>;

/// The most taps of windows whose taps are apart: each is a node.
const MAX_TAPS: usize = 256;

pub(super) fn max<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    pool(i, op, Pooling::Max)?;
    if !op.writes(1) {
        return Ok(());
    }
    let name = op.node.outputs.first().copied().filter(|name| !name.is_empty());
    let slot = i.find(name.ok_or("found no output of the largest elements")?)?;
    let outputs = i.shape(&slot)?;
    super::columns::largest(i, op, outputs.get(2..).unwrap_or(&[]))
}

pub(super) fn average<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    pool(i, op, Pooling::Average)
}

fn pool<'a>(i: &mut Import<'a>, op: &Op<'a>, pooling: Pooling) -> Done {
    let own = i.extents_of(op, 0)?;
    let (x, kind) = i.map_input(op, 0)?;
    let value = pooled(i, op, "", x, &own, pooling, Counted::of(op))?;
    i.write(op, 0, Mapped { value, order: channels_last(own.len()), kind })
}

/// The means of windows of a map whose channels are last.
pub(super) fn average_of(i: &mut Import<'_>, op: &Op<'_>, x: Value, own: &[usize]) -> Result<Value, Reason> {
    pooled(i, op, "mean", x, own, Pooling::Average, Counted::of(op))
}

/// `LpPool`: the root of the sum of the powers of a window's elements, of which those beyond the input are 0.
pub(super) fn lp<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let own = i.extents_of(op, 0)?;
    let (x, kind) = i.map_input(op, 0)?;
    let taps: usize =
        op.ints("kernel_shape").unwrap_or(&[]).iter().map(|&taps| taps.max(1) as usize).product();
    let order = channels_last(own.len());
    let x = Operand::Value(Mapped { value: x, order, kind });
    let slot = root_of_powers(i, x, op.int("p", 2) as f32, &mut |b, powers| {
        let mapped = b.mapped(powers)?;
        let value = pooled(b, op, "mean", mapped.value, &own, Pooling::Average, Counted::All)?;
        b.apply(
            "sum",
            Function::Mul,
            &[Operand::Value(Mapped { value, ..mapped }).into(), (taps as f32).into()],
        )
    })?;
    i.set(op, 0, slot)
}

/// `GlobalLpPool`: the same over all axes behind the channels.
pub(super) fn global_lp<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let rank = i.extents_of(op, 0)?.len();
    if rank < 3 {
        return refused!("found an input of rank {rank}, wanted at least 3");
    }
    let along: Vec<usize> = (2..rank).collect();
    let x = i.slot(op, 0)?;
    let slot = root_of_powers(i, x, op.int("p", 2) as f32, &mut |b, powers| {
        reduced(b, "sum", powers, Reduction::Sum, &along, true)
    })?;
    i.set(op, 0, slot)
}

/// Which elements of a window beyond the input count in a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    Inside,
    /// Those of the pads, but not what `ceil_mode` lets a window reach beyond them.
    Pads,
    All,
}

impl Counted {
    fn of(op: &Op<'_>) -> Self {
        if op.flag("count_include_pad", false) { Counted::Pads } else { Counted::Inside }
    }
}

/// The pooled map of `x`, whose channels are last and whose extents in the file's order are `own`.
fn pooled(
    i: &mut Builder,
    op: &Op<'_>,
    part: &str,
    x: Value,
    own: &[usize],
    pooling: Pooling,
    counted: Counted,
) -> Result<Value, Reason> {
    let rank = own.len();
    if !(3..=5).contains(&rank) {
        return refused!("found an input of {own:?}, wanted rank 3 to 5");
    }
    let kernel = crate::model::build::sizes(op.ints("kernel_shape").unwrap_or(&[]))?;
    let mut windows = Windows::read(op, &own[2..], &kernel)?;
    let (mut x, mut own) = (x, own.to_vec());
    let spread = windows.dilation.iter().any(|&step| step > 1);
    let ceil = op.flag("ceil_mode", false) && matches!(op.text("auto_pad", "NOTSET")?, "NOTSET" | "");
    let mut more: Vec<usize> =
        (0..rank - 2).map(|axis| if ceil { overhang(&windows, axis, own[2 + axis]) } else { 0 }).collect();
    if counted == Counted::All {
        for (pads, more) in windows.pads.iter_mut().zip(&mut more) {
            pads.1 += std::mem::take(more) as i64;
        }
    }
    let counts_pads = counted != Counted::Inside;
    let explicit = windows.pads.iter().any(|pads| *pads != (0, 0)) && (spread || counts_pads)
        || windows.pads.iter().any(|pads| pads.0 < 0 || pads.1 < 0);
    if explicit {
        if spread && pooling == Pooling::Average && !counts_pads {
            return refused!("found dilations and pads that do not count");
        }
        let fill = if pooling == Pooling::Max { f32::NEG_INFINITY } else { 0.0 };
        let mut around = vec![(0, 0); 2];
        around.extend(&windows.pads);
        let slot = Operand::Value(Mapped {
            value: x,
            order: channels_last(rank),
            kind: crate::model::build::Kind::F32,
        });
        let slot = padded(i, "pad", slot, &own, &around, PadMode::Constant(Bits(fill)))?;
        let mapped = i.mapped(slot)?;
        own = i.extents(&mapped)?;
        x = mapped.value;
        windows.pads.fill((0, 0));
    }
    if spread && pooling == Pooling::Max && rank > 3 {
        // The largest along one axis after the other.
        for axis in 0..rank - 2 {
            let only = |list: &[usize]| -> Vec<usize> {
                (0..rank - 2).map(|other| if other == axis { list[other] } else { 1 }).collect()
            };
            let line = Windows {
                kernel: only(&windows.kernel),
                stride: only(&windows.stride),
                dilation: only(&windows.dilation),
                pads: windows.pads.clone(),
            };
            let more: Vec<usize> =
                more.iter().enumerate().map(|(other, &more)| if other == axis { more } else { 0 }).collect();
            let last = axis == rank - 3;
            x = apart(i, if last { part } else { "line" }, x, &own, &line, &more, pooling)?;
            let stored = i.dims(x)?;
            own[2..].copy_from_slice(&stored.extents()[1..rank - 1]);
        }
        return Ok(x);
    }
    if spread {
        return apart(i, part, x, &own, &windows, &more, pooling);
    }
    for (pads, more) in windows.pads.iter_mut().zip(&more) {
        pads.1 += *more as i64;
    }
    match rank {
        3 => {
            let lines = i.reshaped("line", x, &[own[0], 1, own[2], own[1]])?;
            let value = flat(i, "map", lines, &windows.flat(), pooling)?;
            let dims = i.dims(value)?.shape();
            i.reshaped(part, value, &[own[0], dims.w, dims.c])
        }
        4 => flat(i, part, x, &windows, pooling),
        _ => {
            // First each slice of the depth, then along it.
            let mut map = windows.clone();
            for list in [&mut map.kernel, &mut map.stride, &mut map.dilation] {
                list.remove(0);
            }
            map.pads.remove(0);
            let maps = i.reshaped("maps", x, &[own[0] * own[2], own[3], own[4], own[1]])?;
            let maps = flat(i, "slices", maps, &map, pooling)?;
            let dims = i.dims(maps)?.shape();
            let columns = i.reshaped("columns", maps, &[own[0], own[2], dims.h * dims.w, own[1]])?;
            let depth = Windows {
                kernel: vec![windows.kernel[0], 1],
                stride: vec![windows.stride[0], 1],
                dilation: vec![1, 1],
                pads: vec![windows.pads[0], (0, 0)],
            };
            let columns = flat(i, "depth", columns, &depth, pooling)?;
            let depth = i.dims(columns)?.shape().h;
            i.reshaped(part, columns, &[own[0], depth, dims.h, dims.w, own[1]])
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

fn flat(i: &mut Builder, part: &str, x: Value, windows: &Windows, pooling: Pooling) -> Result<Value, Reason> {
    let options = Pool {
        stride: [windows.stride[0], windows.stride[1]],
        padding: windows.padding(),
        ..Pool::new(pooling, [windows.kernel[0], windows.kernel[1]])
    };
    i.add(part, |graph, name| graph.pool(name, x, options))
}

/// Windows whose taps are apart: a slice for each tap, combined.
fn apart(
    i: &mut Builder,
    part: &str,
    x: Value,
    own: &[usize],
    windows: &Windows,
    more: &[usize],
    pooling: Pooling,
) -> Result<Value, Reason> {
    let taps: usize = windows.kernel.iter().product();
    if taps > MAX_TAPS {
        return refused!(
            "found windows of {:?} with dilations, wanted at most {MAX_TAPS} taps",
            windows.kernel
        );
    }
    let order = channels_last(own.len());
    let mut slot =
        Operand::Value(Mapped { value: x, order: order.clone(), kind: crate::model::build::Kind::F32 });
    let mut own = own.to_vec();
    if more.iter().any(|&more| more > 0) {
        if pooling == Pooling::Average {
            return refused!("found dilations where the number of windows is rounded up");
        }
        let mut around = vec![(0, 0); 2];
        around.extend(more.iter().map(|&more| (0, more as i64)));
        slot = padded(i, "more", slot, &own, &around, PadMode::Constant(Bits(f32::NEG_INFINITY)))?;
        for (extent, more) in own.iter_mut().skip(2).zip(more) {
            *extent += more;
        }
    }
    let outputs: Option<Vec<usize>> = (0..own.len() - 2)
        .map(|axis| own[2 + axis].checked_sub(windows.span(axis)).map(|rest| rest / windows.stride[axis] + 1))
        .collect();
    let outputs = outputs.ok_or_else(|| format!("found windows of {:?} over {own:?}", windows.kernel))?;
    let mut result: Option<Value> = None;
    for tap in crate::model::constant::indices(&windows.kernel) {
        let mut ranges = vec![(0, own[0], 1), (0, own[1], 1)];
        ranges
            .extend((0..tap.len()).map(|axis| {
                (tap[axis] * windows.dilation[axis], outputs[axis], windows.stride[axis] as i64)
            }));
        let slice = cut(i, "tap", slot.clone(), &ranges)?;
        let slice = i.mapped(slice)?.value;
        let function = if pooling == Pooling::Max { Function::Maximum } else { Function::Add };
        result = Some(match result {
            None => slice,
            Some(result) => i.add("taps", |graph, name| {
                graph.elementwise(name, function, &[result.into(), slice.into()])
            })?,
        });
    }
    let result = result.ok_or("found no taps")?;
    let factor = if pooling == Pooling::Max { 1.0 } else { 1.0 / taps as f32 };
    i.add(part, |graph, name| graph.elementwise(name, Function::Mul, &[result.into(), factor.into()]))
}

/// `GlobalAveragePool` and the like: over all axes behind the channels.
pub(super) fn global<'a>(i: &mut Import<'a>, op: &Op<'a>, reduction: Reduction) -> Done {
    let mapped = i.mapped(op, 0)?;
    if mapped.rank() < 3 {
        return refused!("found an input of rank {}, wanted at least 3", mapped.rank());
    }
    let axes: Vec<isize> = (2..mapped.rank()).map(|axis| mapped.place(axis) as isize).collect();
    let value = i.add("", |graph, name| graph.reduce(name, mapped.value, reduction, &axes, true))?;
    i.write(op, 0, Mapped { value, ..mapped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_would_begin_behind_the_input_is_left_out() {
        let windows = |kernel: usize, stride: usize, pads| Windows {
            kernel: vec![kernel],
            stride: vec![stride],
            dilation: vec![1],
            pads: vec![pads],
        };
        assert_eq!(overhang(&windows(3, 2, (0, 0)), 0, 4), 1);
        assert_eq!(overhang(&windows(3, 2, (0, 0)), 0, 5), 0);
        assert_eq!(overhang(&windows(1, 2, (0, 0)), 0, 2), 0);
        assert_eq!(overhang(&windows(2, 3, (0, 1)), 0, 3), 0);
    }
}
