//! Runs one kernel between canaries.
//!
//! Every operand lies in the middle of a larger buffer. Around it, and in all of the destination,
//! lies a pattern that is NaN both as f32 and as f16, so a read that strays gives NaN and a write
//! that strays is seen. The binding covers the guard behind the operand, because a driver may drop
//! or clamp what goes beyond a binding and so hide it. In the inputs of a convolution, in buffers or in
//! images, the lanes beyond the channels hold 3: a previous op's activation may leave any finite value
//! there, and it must not matter.
//! Those lanes of a convolution's output must be finite; those of a conversion's must be zero.

use crate::problem::{Expected, Operands, Problem};
use diptych::device::{Buffer, Device, Dispatch, Memory, Resource, Slice};
use diptych::emit::{Binding, Dialect, Element, KernelSource, Operand};
use diptych::ops::convert::ConvertOp;
use diptych::ops::{Choice, Op};
use diptych::{DType, Layout, Shape};
use half::f16;

/// NaN as one f32 and as each of two f16.
const CANARY: [u8; 4] = 0x7fc1_7fc1u32.to_ne_bytes();

/// Bytes of canaries on each side: more than a whole plane of the mistakes in `planted`, so that
/// they corrupt nothing else.
const GUARD: usize = 4096;

/// What lies in the lanes beyond the channels of a convolution's inputs.
const BEYOND: f32 = 3.0;

/// A buffer's contents between guards.
struct Guarded {
    buffer: Buffer,
    /// What is bound: the contents and the guard behind them.
    slice: Slice,
    /// What is written to the whole buffer before the run.
    bytes: Vec<u8>,
    guard: usize,
    element: Element,
    /// Stored values, without the padding to whole words.
    len: usize,
}

impl Guarded {
    fn new(device: &dyn Device, element: Element, values: &[f32]) -> diptych::Result<Self> {
        let content = encode(values, element.dtype());
        let alignment = device.info().limits.binding_alignment.max(16) as usize;
        let guard = GUARD.next_multiple_of(alignment);
        let used = content.len().next_multiple_of(4);
        let mut bytes: Vec<u8> =
            CANARY.iter().copied().cycle().take((2 * guard + used).next_multiple_of(16)).collect();
        bytes[guard..guard + content.len()].copy_from_slice(&content);
        let buffer = device.alloc(bytes.len() as u64, Memory::Device)?;
        let slice = buffer.slice(guard as u64, (bytes.len() - guard) as u64)?;
        Ok(Guarded { buffer, slice, bytes, guard, element, len: values.len() })
    }

    /// The stored values of what was read back.
    ///
    /// # Errors
    /// If a guard changed.
    fn values(&self, read: &[u8]) -> Result<Vec<f32>, String> {
        let end = self.guard + self.len * self.element.dtype().bytes();
        for (at, (found, wanted)) in read.iter().zip(&self.bytes).enumerate() {
            if !(self.guard..end).contains(&at) && found != wanted {
                let place = at as i64 - self.guard as i64;
                return Err(format!(
                    "a canary was overwritten, {place} bytes from the start of {}",
                    end - self.guard
                ));
            }
        }
        Ok(decode(&read[self.guard..end], self.element.dtype()))
    }
}

fn encode(values: &[f32], dtype: DType) -> Vec<u8> {
    match dtype {
        DType::F32 => bytemuck::cast_slice(values).to_vec(),
        DType::F16 => {
            let halves: Vec<f16> = values
                .iter()
                .map(|&value| if value.is_nan() { f16::from_bits(0x7fc1) } else { f16::from_f32(value) })
                .collect();
            bytemuck::cast_slice(&halves).to_vec()
        }
    }
}

fn decode(bytes: &[u8], dtype: DType) -> Vec<f32> {
    match dtype {
        DType::F32 => bytemuck::pod_collect_to_vec(bytes),
        DType::F16 => bytemuck::pod_collect_to_vec::<u8, f16>(bytes).into_iter().map(f16::to_f32).collect(),
    }
}

/// NHWC values in C4, `beyond` in the lanes beyond the channels.
fn to_c4(shape: &Shape, nhwc: &[f32], beyond: f32) -> Vec<f32> {
    let mut out = vec![beyond; Layout::C4.elements(shape)];
    for (index, &value) in nhwc.iter().enumerate() {
        let (pixel, c) = (index / shape.c, index % shape.c);
        let (row, w) = (pixel / shape.w, pixel % shape.w);
        out[Layout::C4.index(shape, row / shape.h, row % shape.h, w, c)] = value;
    }
    out
}

impl Problem {
    /// The stored values that a buffer binding is given before the run.
    fn stored(&self, operands: &Operands, choice: &Choice, binding: &Binding) -> diptych::Result<Vec<f32>> {
        let canaries = |len: usize| vec![f32::from_ne_bytes(CANARY); len];
        let given = operands.get(&binding.operand);
        Ok(match (self, binding.operand) {
            (
                _,
                Operand::Weights | Operand::Bias | Operand::Slope | Operand::Window | Operand::WindowBias,
            ) => self.op().pack(choice, binding.operand, given.expect("a constant of the op"))?,
            (Problem::Convert(op), Operand::Dst) => canaries(op.to.elements(&op.shape)),
            (Problem::Convert(_), _) => given.expect("a source").clone(),
            // With beta 0 nothing may be read, so all of it is NaN.
            (Problem::Gemm(op), Operand::C) if op.beta.0 == 0.0 => canaries(op.elements_c()),
            (Problem::Gemm(op), Operand::C) => {
                let mut held = canaries(op.elements_c());
                for (slot, value) in held.iter_mut().zip(given.expect("C")) {
                    if !value.is_nan() {
                        *slot = *value;
                    }
                }
                held
            }
            (Problem::Gemm(_), _) => given.expect("an operand of the op").clone(),
            (_, Operand::Dst) => {
                let shape = self.convolution().expect("a convolution").output;
                canaries(Layout::C4.elements(&shape))
            }
            // A kernel that reads NHWC rows.
            (_, Operand::Src) if matches!(binding.element, Element::Scalar(_)) => {
                given.expect("a feature map").clone()
            }
            (_, operand) => {
                let conv = self.convolution().expect("a convolution");
                let shape = if operand == Operand::Src { self.source() } else { conv.output };
                to_c4(&shape, given.expect("a feature map"), BEYOND)
            }
        })
    }

    /// The feature map that an image binding holds, with its NHWC values if it is read.
    fn image(&self, operands: &Operands, operand: Operand) -> (Shape, Option<Vec<f32>>) {
        match self {
            Problem::Convert(op) if operand == Operand::Dst => (op.shape, None),
            Problem::Convert(op) => {
                let shape = op.shape;
                let stored = &operands[&operand];
                let at = |i: usize| {
                    let (pixel, c) = (i / shape.c, i % shape.c);
                    let (row, w) = (pixel / shape.w, pixel % shape.w);
                    op.from.index(&shape, row / shape.h, row % shape.h, w, c)
                };
                (shape, Some((0..shape.elements()).map(|i| stored[at(i)]).collect()))
            }
            Problem::Gemm(op) => {
                // Row `term` of `B` is a row of pixels.
                let matrices = if op.shared_b { 1 } else { op.batch };
                let stored = &operands[&operand];
                let rows = (0..matrices * op.k)
                    .flat_map(|row| (0..op.n).map(move |column| (row, column)))
                    .map(|(row, column)| stored[op.index_b(row / op.k, row % op.k, column)]);
                (Shape::nhwc(matrices, op.k, 1, op.n), Some(rows.collect()))
            }
            _ => {
                let conv = self.convolution().expect("a convolution");
                match operand {
                    Operand::Src => (self.source(), operands.get(&operand).cloned()),
                    Operand::Dst => (conv.output, Some(vec![f32::NAN; conv.output.elements()])),
                    _ => (conv.output, operands.get(&operand).cloned()),
                }
            }
        }
    }
}

/// Compiles and binds `op`'s kernel.
fn dispatch(
    device: &dyn Device,
    op: &dyn Op,
    choice: &Choice,
    mutate: &dyn Fn(&mut KernelSource),
    bind: &mut dyn FnMut(&Binding) -> diptych::Result<Resource>,
) -> diptych::Result<Dispatch> {
    let limits = &device.info().limits;
    let launch = op.plan(choice, limits)?;
    let mut source = launch.spec.render_written(limits.dialect)?;
    mutate(&mut source);
    let source = if limits.dialect == Dialect::OpenClC { source.into_opencl()? } else { source };
    // SAFETY: the kernel stays within its operands unless it is planted to stray, and then within the
    // guards around them, which is what is tested.
    let pipeline = unsafe { device.compile_unchecked(&source) }?;
    let resources =
        launch.spec.interface.bindings.iter().map(bind).collect::<diptych::Result<Vec<Resource>>>()?;
    Ok(Dispatch { pipeline, resources, params: launch.params.clone(), groups: launch.groups() })
}

/// The default kernel of a conversion.
fn conversion(
    device: &dyn Device,
    op: &ConvertOp,
    src: &Resource,
    dst: &Resource,
) -> diptych::Result<Dispatch> {
    let (variant, tile) = op.space(&device.info().limits)[0];
    let choice = Choice::new(variant, tile, [8, 4, 1]);
    dispatch(device, op, &choice, &|_| {}, &mut |binding| {
        Ok(if binding.operand == Operand::Dst { dst.clone() } else { src.clone() })
    })
}

/// Runs `choice` of `problem`, its text changed by `mutate`, and compares with the oracle.
///
/// # Errors
/// What failed, or the first element that is off.
pub(crate) fn check(
    device: &dyn Device,
    problem: &Problem,
    operands: &Operands,
    expected: &Expected,
    choice: &Choice,
    mutate: &dyn Fn(&mut KernelSource),
) -> Result<(), String> {
    let outcome = run(device, problem, operands, choice, mutate);
    let (target, read) = outcome.map_err(|error| error.to_string())?;
    let stored = target.values(&read)?;
    let own = problem.expected_of(choice.variant, operands, expected);
    let expected = own.as_ref().unwrap_or(expected);
    let Expected::Near(reference) = expected else {
        return match (problem, target.element) {
            // An image was read back through C4.
            (Problem::Convert(op), _) if op.to == Layout::Image2d => {
                let through = ConvertOp::new(op.shape, Layout::Nhwc, Layout::C4, op.precision);
                let (_, nhwc) = problem.image(operands, Operand::Src);
                let through = through.map_err(|error| error.to_string())?;
                let wanted = diptych::ops::convert::oracle(&through, &nhwc.expect("a source"));
                problem.compare(operands, &Expected::Exact(wanted), &stored)
            }
            _ => problem.compare(operands, expected, &stored),
        };
    };
    let places: Vec<usize> = (0..reference.value.len()).map(|index| problem.place(index)).collect();
    let result: Vec<f32> = places.iter().map(|&place| stored[place]).collect();
    problem.compare(operands, expected, &result)?;
    let mut logical = vec![false; stored.len()];
    places.iter().for_each(|&place| logical[place] = true);
    for (place, value) in stored.iter().enumerate().filter(|&(place, _)| !logical[place]) {
        let untouched =
            if target.element.dtype() == DType::F16 { value.is_nan() } else { value.to_ne_bytes() == CANARY };
        if matches!(problem, Problem::Gemm(_)) && !untouched {
            return Err(format!("element {place} between the rows became {value}"));
        }
        if !matches!(problem, Problem::Gemm(_)) && !value.is_finite() {
            return Err(format!("element {place}, a lane beyond the channels, is {value}"));
        }
    }
    Ok(())
}

/// Runs the kernel and returns its destination and what the whole buffer held afterwards.
fn run(
    device: &dyn Device,
    problem: &Problem,
    operands: &Operands,
    choice: &Choice,
    mutate: &dyn Fn(&mut KernelSource),
) -> diptych::Result<(Guarded, Vec<u8>)> {
    let precision = problem.precision();
    let mut inputs: Vec<Guarded> = Vec::new();
    let mut target: Option<Guarded> = None;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let main = dispatch(device, problem.op(), choice, mutate, &mut |binding| {
        let is_target = matches!(binding.operand, Operand::Dst | Operand::C);
        if let Element::Image2d(dtype) = binding.element {
            let (shape, values) = problem.image(operands, binding.operand);
            let [width, height] = Layout::image_extent(&shape);
            let image = Resource::from(&device.alloc_image(width, height, dtype)?);
            if is_target {
                let element = Element::Vec4(precision.storage());
                let canaries = vec![f32::from_ne_bytes(CANARY); Layout::C4.elements(&shape)];
                let guarded = Guarded::new(device, element, &canaries)?;
                let op = ConvertOp::new(shape, Layout::Image2d, Layout::C4, precision)?;
                after.push(conversion(device, &op, &image, &guarded.slice.clone().into())?);
                target = Some(guarded);
            }
            // What is read, or NaN where a convolution writes: a pixel that it leaves out is seen.
            // By way of C4 the lanes beyond the channels are kept; those of a conversion are zero.
            if let Some(values) = values {
                let beyond = if is_target { f32::NAN } else { BEYOND };
                let (from, element, stored) = match problem {
                    Problem::Convert(_) => (Layout::Nhwc, Element::Scalar(DType::F32), values),
                    _ => (Layout::C4, Element::Vec4(dtype), to_c4(&shape, &values, beyond)),
                };
                let guarded = Guarded::new(device, element, &stored)?;
                let op = ConvertOp::new(shape, from, Layout::Image2d, precision)?;
                before.push(conversion(device, &op, &guarded.slice.clone().into(), &image)?);
                inputs.push(guarded);
            }
            return Ok(image);
        }
        let values = problem.stored(operands, choice, binding)?;
        let guarded = Guarded::new(device, binding.element, &values)?;
        let resource = guarded.slice.clone().into();
        if is_target {
            target = Some(guarded);
        } else {
            inputs.push(guarded);
        }
        Ok(resource)
    })?;
    let target = target.expect("every kernel writes something");
    let dispatches: Vec<Dispatch> = before.into_iter().chain([main]).chain(after).collect();
    let recording = device.record(&dispatches)?;
    let whole: Vec<(Slice, &[u8])> =
        inputs.iter().chain([&target]).map(|held| (held.buffer.whole(), held.bytes.as_slice())).collect();
    let writes: Vec<(&Slice, &[u8])> = whole.iter().map(|(slice, bytes)| (slice, *bytes)).collect();
    let mut read = device.run(&writes, &recording, &[&target.buffer.whole()])?;
    let bytes = read.pop().unwrap_or_default();
    Ok((target, bytes))
}
