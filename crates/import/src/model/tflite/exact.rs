//! Operators on bytes whose sums of integers are computed in f32, exactly: no sum goes beyond 2^24. These are convolutions that the
//! ops of bytes do not have (groups, several outputs for each channel, weights of more than 8 bits less their zero point), transposed
//! convolutions, and products of two values.

use super::convolution::{BY_CHANNEL, MAPS};
use super::import::{Import, Op};
use super::names;
use super::windows::{of_file, positive, windows};
use crate::dims::Dims;
use crate::host::HostTensor;
use crate::model::build;
use crate::model::build::{
    Bytes, Grid, Groups, Kind, Mapped, Operand, Weights, Windows, channels_last, product, swapped,
    transposed_convolution,
};
use crate::model::constant::Constant;
use crate::model::reason::Reason;
use crate::ops::bytes::ByteRange;
use crate::ops::elementwise::Function;

/// Sums up to which f32 has all integers.
const MOST: i64 = 1 << 24;

/// The largest distance of a byte from the one that stands for 0.
const FARTHEST: i64 = 255;

/// Weights and a bias as whole numbers, and the factor of each output.
struct Whole {
    weights: Operand,
    bias: Option<Operand>,
    factors: Vec<f32>,
}

impl<'a> Import<'a> {
    /// The integers that bytes are from the one that stands for 0.
    fn whole_numbers(&mut self, op: &Op<'a>, x: &Bytes) -> Result<Operand, Reason> {
        let steps = Bytes { grid: Grid { scale: 1.0, ..x.grid }, ..x.clone() };
        let value = self.begin_bytes(op, |b| b.within("x", |b| b.bytes_as_floats("whole", &steps)))?;
        Ok(Operand::Value(Mapped::plain(value, x.extents.len(), Kind::F32)))
    }

    /// The weights at input 1 and the bias at another one, of so many outputs along an axis of the weights; `None` if they are no
    /// constants of integers, or sums may be too large.
    fn whole_weights(
        &mut self,
        op: &Op<'a>,
        (extents, axis, bias): (&[usize], usize, usize),
        [x, y]: [Grid; 2],
    ) -> Result<Option<Whole>, Reason> {
        let outputs = extents.get(axis).copied().unwrap_or(0);
        let Some(values) = self.stored_integers(op, 1)? else { return Ok(None) };
        let own = if op.has(bias) { self.stored_integers(op, bias)? } else { Some(vec![0; outputs]) };
        let scales = self.tensors.scales(self.tensors.position(op.input(1)?)?)?;
        let Some(own) = own.filter(|own| own.len() == outputs && outputs > 0) else { return Ok(None) };
        if values.len() != extents.iter().product::<usize>() || ![1, outputs].contains(&scales.len()) {
            return Ok(None);
        }
        let behind = extents.get(axis + 1..).unwrap_or_default().iter().product::<usize>().max(1);
        let mut sums: Vec<i64> = own.iter().map(|bias| bias.saturating_abs()).collect();
        for (at, value) in values.iter().enumerate() {
            if let Some(sum) = sums.get_mut(at / behind % outputs) {
                *sum = sum.saturating_add(FARTHEST.saturating_mul(value.saturating_abs()));
            }
        }
        if sums.iter().any(|&sum| sum > MOST) {
            return Ok(None);
        }
        self.build.budget.spend(4 * values.len())?;
        let weights = HostTensor::new(
            Dims::new(extents)?,
            values.iter().map(|&value| value as f32).collect::<Vec<f32>>(),
        )?;
        let list = HostTensor::vector(own.iter().map(|&bias| bias as f32).collect::<Vec<f32>>())?;
        let of = |tensor| Operand::Constant(Constant::Floats(tensor), Kind::F32);
        let factor = |o: usize| scales.get(o).or(scales.first()).map_or(0.0, |own| x.scale * own / y.scale);
        Ok(Some(Whole {
            weights: of(weights),
            bias: op.has(bias).then(|| of(list)),
            factors: (0..outputs).map(factor).collect(),
        }))
    }

    /// Output 0 as the bytes that sums times factors are rounded to.
    fn put_sums(
        &mut self,
        op: &Op<'a>,
        sums: Operand,
        factors: Vec<f32>,
        (grid, range): (Grid, ByteRange),
    ) -> Result<bool, Reason> {
        let bytes = self.begin_bytes(op, |b| {
            let sums = b.mapped(sums)?;
            let sums = b.logical(&sums)?;
            let factors = b.constant("factors", &[factors.len()], factors)?;
            let steps = b.each("steps", Function::Mul, &[sums.into(), factors.into()])?;
            let extents = b.dims(steps)?.extents().to_vec();
            let value = b.add("", |graph, name| graph.quantize(name, steps, 1.0, range))?;
            Ok(Bytes { value, extents, grid })
        })?;
        self.put_bytes(op, Some(bytes))
    }
}

/// `CONV_2D` and `DEPTHWISE_CONV_2D`.
pub(super) fn convolution<'a>(
    import: &mut Import<'a>,
    op: &Op<'a>,
    by_channel: bool,
) -> Result<bool, Reason> {
    if import.phases.contains_key(&op.index) {
        return Ok(false);
    }
    let (padding, stride, dilation, activation) = match by_channel {
        true => {
            let Some(table) = op.table.depthwise() else { return Ok(false) };
            let dilation = [table.dilation_h(), table.dilation_w()];
            (table.padding(), [table.stride_h(), table.stride_w()], dilation, table.activation())
        }
        false => {
            let Some(table) = op.table.conv2d() else { return Ok(false) };
            let dilation = [table.dilation_h(), table.dilation_w()];
            (table.padding(), [table.stride_h(), table.stride_w()], dilation, table.activation())
        }
    };
    let (stride, dilation) = (positive("stride", stride)?, positive("dilation", dilation)?);
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let Some(range) = grid.range(names::fused(activation)?) else { return Ok(false) };
    let Some(x) = import.bytes(op, 0)? else { return Ok(false) };
    let extents = import.tensors.extents(import.tensors.position(op.input(1)?)?)?;
    let (&[_, height, width, channels], &[outer, kernel_h, kernel_w, inner]) = (&x.extents[..], &extents[..])
    else {
        return Ok(false);
    };
    let (axis, order, groups) = match by_channel {
        true if outer == 1 && inner.is_multiple_of(channels.max(1)) => (3, BY_CHANNEL, channels),
        false if inner > 0 && channels.is_multiple_of(inner) => (0, MAPS, channels / inner),
        _ => return Ok(false),
    };
    let Some(whole) = import.whole_weights(op, (&extents, axis, 2), [x.grid, grid])? else {
        return Ok(false);
    };
    let windows = windows(padding, &[kernel_h, kernel_w], &stride, &dilation, &[height, width])?;
    let own = import.whole_numbers(op, &x)?;
    let sums = import.begin_bytes(op, |b| {
        b.within("sums", |b| {
            let mapped = Mapped { order: channels_last(4), ..b.mapped(own)? };
            let weights = Weights::new(b, whole.weights, whole.bias, &order, Groups::of(groups))?;
            let y = build::convolution(b, Operand::Value(mapped), weights, windows, None)?;
            let y = of_file(b, y)?;
            // Other sums than those of the formula are nearly whole.
            match by_channel {
                true => Ok(y),
                false => b.apply("rounded", Function::Round, &[y.into()]),
            }
        })
    })?;
    import.put_sums(op, sums, whole.factors, (grid, range))
}

/// `TRANSPOSE_CONV`.
pub(super) fn transposed<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    op.check(&[3, 4], 1)?;
    let Some(table) = op.table.transposed_conv() else { return Ok(false) };
    let stride = positive("stride", [table.stride_h(), table.stride_w()])?;
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let Some(range) = grid.range(names::fused(table.activation())?) else { return Ok(false) };
    let Some(x) = import.bytes(op, 2)? else { return Ok(false) };
    if import.is_computed(op, 0)? {
        return Ok(false);
    }
    let wanted: Option<Vec<usize>> =
        import.integers(op, 0)?.values.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let extents = import.tensors.extents(import.tensors.position(op.input(1)?)?)?;
    let (Some(&[_, y_h, y_w, y_c]), &[_, height, width, channels], &[outputs, kernel_h, kernel_w, inner]) =
        (wanted.as_deref(), &x.extents[..], &extents[..])
    else {
        return Ok(false);
    };
    if inner != channels || y_c != outputs || [kernel_h, kernel_w, height, width].contains(&0) {
        return Ok(false);
    }
    let Some(whole) = import.whole_weights(op, (&extents, 0, 3), [x.grid, grid])? else { return Ok(false) };
    let mut windows = Windows { stride: stride.to_vec(), ..Windows::new(&[kernel_h, kernel_w]) };
    for (axis, (input, output)) in [(height, y_h), (width, y_w)].into_iter().enumerate() {
        let steps = (input - 1).saturating_mul(windows.stride[axis]);
        let beyond = steps.saturating_add(windows.span(axis)).saturating_sub(output);
        windows.pads[axis] = ((beyond / 2) as i64, (beyond - beyond / 2) as i64);
    }
    let own = import.whole_numbers(op, &x)?;
    let sums = import.begin_bytes(op, |b| {
        b.within("sums", |b| {
            let mapped = Mapped { order: channels_last(4), ..b.mapped(own)? };
            let groups = Groups { count: 1, transposed: true };
            let weights = Weights::new(b, whole.weights, whole.bias, &MAPS, groups)?;
            let y = transposed_convolution(b, Operand::Value(mapped), weights, windows, &[y_h, y_w], None)?;
            of_file(b, y)
        })
    })?;
    import.put_sums(op, sums, whole.factors, (grid, range))
}

/// `BATCH_MATMUL` of two values.
pub(super) fn batch_matmul<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    op.check(&[2], 1)?;
    let flags =
        op.table.batch_matmul().map_or([false; 2], |table| [table.transpose_a(), table.transpose_b()]);
    let Some(grid) = import.grid_of(op.output(0)?)? else { return Ok(false) };
    let (Some(a), Some(b)) = (import.bytes(op, 0)?, import.bytes(op, 1)?) else { return Ok(false) };
    let depth = a.extents.iter().rev().nth(usize::from(flags[0])).copied().unwrap_or(0);
    let most = FARTHEST.saturating_mul(FARTHEST).saturating_mul(depth as i64);
    if a.extents.len() < 2 || b.extents.len() < 2 || most > MOST {
        return Ok(false);
    }
    let factor = a.grid.scale * b.grid.scale / grid.scale;
    let mut factors = Vec::with_capacity(2);
    for (own, transposed) in [a, b].iter().zip(flags) {
        let own = import.whole_numbers(op, own)?;
        factors.push(if transposed { swapped(&mut import.build, own)? } else { own });
    }
    let (Some(b), Some(a)) = (factors.pop(), factors.pop()) else { return Ok(false) };
    let sums = import.begin_bytes(op, |build| product(build, "sums", a, b))?;
    import.put_sums(op, sums, vec![factor], (grid, ByteRange::all(grid.zero)))
}
