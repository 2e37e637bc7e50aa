//! Floats that are rounded to bytes at each run, for products with weights of bytes.

use super::after::finished;
use super::builder::{Builder, Ranged};
use super::operand::{Mapped, Operand, channels_last};
use super::windows::Windows;
use crate::dims::Dim;
use crate::emit::Activation;
use crate::graph::Term;
use crate::graph::{DynamicWeights, Extras, Value};
use crate::host::HostTensor;
use crate::model::constant::dims_of;
use crate::model::reason::Reason;
use crate::ops::bytes::{LANES, words_of_rows};
use crate::ops::dynamic_conv2d::DynamicConv2d;
use crate::ops::dynamic_range::{NUMBERS_OF_RANGE, RangeRule};
use crate::ops::elementwise::Function;

/// Weights of bytes that meet bytes of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunWeights {
    /// `o kh kw ceil(c / 4)` words.
    pub(crate) words: HostTensor,
    /// `o kh kw c`.
    pub(crate) extents: [usize; 4],
    /// One for each output.
    pub(crate) scale: HostTensor,
}

impl RunWeights {
    /// The weights in words whose bytes are signed, with a scale for each output or one for all.
    pub(crate) fn of(values: &[i8], extents: [usize; 4], scales: &[f32]) -> Result<Self, Reason> {
        let [outputs, height, width, channels] = extents;
        let values: Vec<u8> = values.iter().map(|value| value.cast_unsigned()).collect();
        let scale = match scales {
            &[scale] => vec![scale; outputs],
            scales => scales.to_vec(),
        };
        let packed = dims_of(&[outputs, height, width, channels.div_ceil(LANES)])?;
        Ok(RunWeights {
            words: HostTensor::of::<u32>(packed, words_of_rows(&values, channels, 0))?,
            extents,
            scale: HostTensor::vector(scale)?,
        })
    }
}

impl Builder {
    /// The ranges of a value that has its own order, as XNNPACK finds them; one for each, of all that read it.
    fn ranges(&mut self, x: Value, ranged: Ranged) -> Result<Value, Reason> {
        if let Some(&known) = self.ranges.get(&(x, ranged)) {
            return Ok(known);
        }
        let extents = self.dims(x)?.extents().to_vec();
        let rows = match (ranged, extents.split_first()) {
            (Ranged::Batches, Some((_, behind))) if behind.len() != 1 => {
                let whole = behind.iter().product();
                self.with_rest("whole", x, &[whole])?
            }
            _ => x,
        };
        let ranges = self.add("ranges", |graph, name| graph.dynamic_range(name, rows, RangeRule::Nearer))?;
        self.ranges.insert((x, ranged), ranges);
        Ok(ranges)
    }

    /// The bytes of a value with its ranges, once for all that read them.
    fn bytes_at_run(&mut self, x: Value, ranged: Ranged) -> Result<[Value; 2], Reason> {
        let ranges = self.ranges(x, ranged)?;
        if let Some(&known) = self.bytes_at_run.get(&(x, ranged)) {
            return Ok([known, ranges]);
        }
        let bytes = self.add("bytes", |graph, name| graph.dynamic_quantize(name, x, ranges, false))?;
        self.bytes_at_run.insert((x, ranged), bytes);
        Ok([bytes, ranges])
    }

    /// The floats that a value's bytes would stand for.
    pub(crate) fn rounded_at_run(&mut self, x: Operand, ranged: Ranged) -> Result<Operand, Reason> {
        let mapped = self.mapped(x)?;
        let rank = mapped.rank();
        let own = match ranged {
            Ranged::Rows => self.logical(&mapped)?,
            Ranged::Batches => self.in_order(&mapped, &channels_last(rank))?,
        };
        let order = if ranged == Ranged::Rows { (0..rank).collect() } else { channels_last(rank) };
        let ranges = self.ranges(own, ranged)?;
        let last = self.dims(ranges)?.rank().saturating_sub(1);
        let mut parts = Vec::with_capacity(NUMBERS_OF_RANGE);
        for index in 0..NUMBERS_OF_RANGE {
            let part = self.slice("range", ranges, last, [index, index + 1])?;
            parts.push(match ranged {
                Ranged::Rows => part,
                Ranged::Batches => self.with_rest("of_batch", part, &vec![1; rank.saturating_sub(1)])?,
            });
        }
        let &[scale, zero, factor] = &parts[..] else { return refused!("found {} parts", parts.len()) };
        let low = self.each("low", Function::Neg, &[zero.into()])?;
        let high = self.each("high", Function::Add, &[low.into(), 255.0.into()])?;
        let steps = self.each("steps", Function::Mul, &[own.into(), factor.into()])?;
        let above = self.each("above", Function::Maximum, &[steps.into(), low.into()])?;
        let within = self.each("within", Function::Minimum, &[above.into(), high.into()])?;
        let whole = self.each("whole", Function::Round, &[within.into()])?;
        let value = self.each("rounded", Function::Mul, &[Term::from(whole), scale.into()])?;
        Ok(Operand::Value(Mapped { value, order, kind: mapped.kind }))
    }

    /// The convolution of bytes `n h w c` of these ranges with weights `o kh kw c`, and a bias.
    fn convolved_at_run(
        &mut self,
        part: &str,
        [bytes, ranges]: [Value; 2],
        weights: &RunWeights,
        bias: Option<HostTensor>,
        (windows, activation): (&Windows, Activation),
    ) -> Result<Value, Reason> {
        self.budget.spend(2 * weights.words.dims().elements())?;
        let (of_words, scale) = (weights.words.clone(), weights.scale.clone());
        let weights = self.add("weights", |graph, name| Ok(graph.constant(name, of_words)))?;
        let scale = Some(self.add("scale", |graph, name| Ok(graph.constant(name, scale)))?);
        let pair = |list: &[usize]| [list.first().copied().unwrap_or(1), list.get(1).copied().unwrap_or(1)];
        let (stride, dilation) = (pair(&windows.stride), pair(&windows.dilation));
        let options = DynamicConv2d { stride, dilation, padding: windows.padding(), sums: false, activation };
        let extras = Extras { bias, ..Extras::default() };
        let weights = DynamicWeights { weights, scale };
        self.add(part, |graph, name| graph.dynamic_conv2d(name, bytes, ranges, weights, extras, options))
    }
}

/// `f(x W^T + bias)` of weights `o 1 1 c`: the rows of `x`, `... c`, are rounded to bytes, each by its own range.
pub(crate) fn product_at_run(
    b: &mut Builder,
    x: Operand,
    weights: &RunWeights,
    bias: Option<Operand>,
    after: Option<Function>,
) -> Result<Operand, Reason> {
    let [outputs, _, _, channels] = weights.extents;
    let shape = b.shape(&x)?;
    if shape.last() != Some(&channels) {
        return refused!("found rows {shape:?}, wanted rows of {channels} elements");
    }
    let (own, summand) = own_bias(b, bias, outputs)?;
    let mapped = b.mapped(x)?;
    let x = b.logical(&mapped)?;
    let (rank, kind) = (shape.len(), mapped.kind);
    finished(b, summand, after, |b, activation| {
        let [bytes, ranges] = b.bytes_at_run(x, Ranged::Rows)?;
        let packed = b.dims(bytes)?.extents().last().copied().unwrap_or(1);
        let one_row = [Dim::Fixed(1), Dim::Fixed(1), Dim::Rest, Dim::Fixed(packed)];
        let rows = b.add("rows", |graph, name| graph.reshape(name, bytes, &one_row))?;
        let windows = Windows::new(&[1, 1]);
        let sums = b.convolved_at_run("sums", [rows, ranges], weights, own, (&windows, activation))?;
        let mut behind = shape.get(1..).unwrap_or_default().to_vec();
        if let Some(last) = behind.last_mut() {
            *last = outputs;
        }
        let value = match rank {
            1 => b.reshape("", sums, &[outputs])?,
            _ => b.with_rest("", sums, &behind)?,
        };
        Ok(Operand::Value(Mapped::plain(value, rank, kind)))
    })
}

/// A convolution of `x`, whose channels are behind the batch, with weights `o kh kw c`: each image is rounded to bytes by its own
/// range, and each pixel where windows are one pixel next to each other, as XNNPACK does.
pub(crate) fn convolution_at_run(
    b: &mut Builder,
    x: Operand,
    weights: &RunWeights,
    bias: Option<Operand>,
    windows: &Windows,
    after: Option<Function>,
) -> Result<Operand, Reason> {
    let (own, summand) = own_bias(b, bias, weights.extents[0])?;
    let mapped = b.mapped(x)?;
    let order = channels_last(mapped.rank());
    let x = b.in_order(&mapped, &order)?;
    finished(b, summand, after, |b, activation| {
        let pixels = [&windows.kernel, &windows.stride].iter().all(|list| list.iter().all(|&one| one == 1));
        let ranged = if pixels && windows.is_bare() { Ranged::Rows } else { Ranged::Batches };
        let bytes = b.bytes_at_run(x, ranged)?;
        let value = b.convolved_at_run("", bytes, weights, own, (windows, activation))?;
        Ok(Operand::Value(Mapped { value, order, kind: mapped.kind }))
    })
}

/// A bias that is a constant of one number for each output, or what is added behind.
fn own_bias(
    b: &mut Builder,
    bias: Option<Operand>,
    outputs: usize,
) -> Result<(Option<HostTensor>, Option<Operand>), Reason> {
    Ok(match bias {
        Some(Operand::Constant(constant, _))
            if constant.elements() == outputs && constant.extents().last() == Some(&outputs) =>
        {
            let list = constant.floats(&mut b.budget)?.to_nhwc().into_owned();
            (Some(HostTensor::vector(list)?), None)
        }
        other => (None, other),
    })
}
