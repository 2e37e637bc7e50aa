//! Runs one kernel between canaries.
//!
//! Every operand lies in the middle of a larger buffer. Around it, and in all of the destination,
//! lies a pattern that is NaN both as f32 and as f16, so a read that strays gives NaN and a write
//! that strays is seen. The binding covers the guard behind the operand, because a driver may drop
//! or clamp what goes beyond a binding and so hide it. The lanes beyond the channels are zero in what is
//! read, and must be in what is written. Where an op multiplies its input by packed weights they hold 3
//! instead, which must not matter. Of a bias alone it would: what is left of a mean is some ulps, not zero.

use crate::problem::compare;
use diptych::Limits;
use diptych::{DType, Layout};
use diptych_base::layout::Form;
use diptych_device::device::{Buffer, Device, Dispatch, Memory, Pipeline, Recording, Resource, Slice};
use diptych_emit::emit::{Access, Binding, Element, KernelSource, Operand};
use diptych_kernels::ops::convert::ConvertOp;
use diptych_kernels::ops::{Answer, Choice, Op, OperandInfo, Operands, Reference, Role};
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
        DType::F32 | DType::I32 | DType::U32 => bytemuck::cast_slice(values).to_vec(),
        DType::F16 => {
            let halves: Vec<f16> = values
                .iter()
                .map(|&value| if value.is_nan() { f16::from_bits(0x7fc1) } else { f16::from_f32(value) })
                .collect();
            bytemuck::cast_slice(&halves).to_vec()
        }
        other => panic!("no values of {other}"),
    }
}

fn decode(bytes: &[u8], dtype: DType) -> Vec<f32> {
    match dtype {
        DType::F32 | DType::I32 | DType::U32 => bytemuck::pod_collect_to_vec(bytes),
        DType::F16 => bytemuck::pod_collect_to_vec::<u8, f16>(bytes).into_iter().map(f16::to_f32).collect(),
        other => panic!("no values of {other}"),
    }
}

/// What lies in the lanes beyond the channels of an input. They are zero, but an op that multiplies its
/// input by packed weights makes nothing of what is there.
fn beyond(op: &dyn Op, operand: Operand) -> f32 {
    let is_weight = |info: &OperandInfo| {
        info.role == Role::Constant && !matches!(info.operand, Operand::Bias | Operand::Slope)
    };
    if operand == Operand::Src && op.operands().iter().any(is_weight) { BEYOND } else { 0.0 }
}

/// The stored values of a binding before the run; of an image those that C4 has.
fn stored(
    op: &dyn Op,
    operands: &Operands<'_>,
    choice: &Choice,
    binding: &Binding,
) -> diptych::Result<Vec<f32>> {
    let operand = binding.operand;
    let kernel = op.kernel(choice.variant)?;
    let Some(form) = kernel.form(operand, choice) else {
        return kernel.pack(choice, operand, &operands[&operand]);
    };
    let info = info(op, operand);
    let canaries = || vec![f32::from_ne_bytes(CANARY); info.stored_elements(form)];
    match binding.access {
        // Nothing of it may be read before it is written, so all of it is NaN.
        Access::Write => Ok(canaries()),
        Access::ReadWrite if !operands.contains_key(&operand) => Ok(canaries()),
        Access::Read => info.stored(form, &operands[&operand], beyond(op, operand)),
        Access::ReadWrite => {
            let mut held = canaries();
            let given = info.stored(form, &operands[&operand], f32::NAN)?;
            // Of integers any word may be NaN.
            let is_given = |value: &f32| info.dtype != DType::F32 || !value.is_nan();
            for (slot, value) in held.iter_mut().zip(given).filter(|(_, value)| is_given(value)) {
                *slot = value;
            }
            Ok(held)
        }
    }
}

fn info(op: &dyn Op, operand: Operand) -> OperandInfo {
    op.operands().into_iter().find(|info| info.operand == operand).expect("an operand of the op")
}

/// Kernels that are compiled together, where the driver takes less time for it: few enough for the memory of a test.
pub(crate) const TOGETHER: usize = 32;

/// Compiles kernels ahead, together where the driver takes less time for it. What goes wrong is left to the runs that
/// want them.
pub(crate) fn compile_ahead(device: &dyn Device, sources: &[KernelSource]) {
    // SAFETY: that of `compiled`.
    unsafe { device.compile_together(&sources.iter().collect::<Vec<_>>()) }
}

/// The kernel of a choice as it is written.
pub(crate) fn written(device: &dyn Device, op: &dyn Op, choice: &Choice) -> diptych::Result<KernelSource> {
    let limits = &device.info().limits;
    op.plan(choice, limits)?.spec.render_written(limits.dialect)
}

/// What changes a kernel's text, and its work-groups along x, y and z.
type Change<'a> = &'a dyn Fn(&mut KernelSource, &mut [u32; 3]);

/// Compiles and binds `op`'s kernel.
async fn dispatch(
    device: &dyn Device,
    limits: &Limits,
    op: &dyn Op,
    choice: &Choice,
    mutate: Change<'_>,
    bind: &mut dyn FnMut(&Binding) -> diptych::Result<Resource>,
) -> diptych::Result<Dispatch> {
    let launch = op.plan(choice, limits)?;
    let mut source = launch.spec.render_written(limits.dialect)?;
    let mut groups = launch.groups();
    mutate(&mut source, &mut groups);
    let pipeline = compiled(device, &source).await?;
    let resources =
        launch.spec.interface.bindings.iter().map(bind).collect::<diptych::Result<Vec<Resource>>>()?;
    Ok(Dispatch { pipeline, resources, params: launch.params.clone(), groups })
}

/// Compiles as sessions do.
async fn compiled(device: &dyn Device, source: &KernelSource) -> diptych::Result<Pipeline> {
    // SAFETY: the kernel stays within its operands unless it is planted to stray, and then within the
    // guards around them, which is what is tested.
    #[cfg(not(target_family = "wasm"))]
    return unsafe { device.compile_unchecked(source) };
    // SAFETY: as above.
    #[cfg(target_family = "wasm")]
    unsafe { device.compile_unchecked_async(source) }.await
}

/// Runs as sessions do.
async fn executed(
    device: &dyn Device,
    writes: &[(&Slice, &[u8])],
    recording: &Recording,
    reads: &[&Slice],
) -> diptych::Result<Vec<Vec<u8>>> {
    #[cfg(not(target_family = "wasm"))]
    return device.run(writes, recording, reads);
    #[cfg(target_family = "wasm")]
    {
        let read = device.run_async(writes, recording, reads).await;
        // What nobody has awaited comes first: it may be why the run failed.
        device.settled().await?;
        read
    }
}

/// The default kernel of a conversion.
async fn conversion(
    device: &dyn Device,
    op: &ConvertOp,
    src: &Resource,
    dst: &Resource,
) -> diptych::Result<Dispatch> {
    let choice = {
        let kernels = op.kernels();
        let (kernel, tile) = kernels.space(&device.info().limits)[0];
        Choice::new(kernel.name(), tile, [8, 4, 1])
    };
    let mut bind =
        |binding: &Binding| Ok(if binding.operand == Operand::Dst { dst.clone() } else { src.clone() });
    dispatch(device, &device.info().limits, op, &choice, &|_, _| {}, &mut bind).await
}

/// Runs `choice` of `op`, its text changed by `mutate`, and compares with the oracle.
///
/// # Errors
/// What failed, or the first element that is off.
pub(crate) async fn check(
    device: &dyn Device,
    op: &dyn Op,
    operands: &Operands<'_>,
    expected: &Reference,
    choice: &Choice,
    mutate: &dyn Fn(&mut KernelSource),
) -> Result<(), String> {
    check_by(&compare, device, op, operands, expected, choice, mutate).await
}

/// Runs `choice` of `op` planned for a device of such limits, and compares with the oracle.
///
/// # Errors
/// What failed, or the first element that is off.
pub(crate) async fn check_within(
    device: &dyn Device,
    limits: &Limits,
    op: &dyn Op,
    operands: &Operands<'_>,
    expected: &Reference,
    choice: &Choice,
) -> Result<(), String> {
    let outcome = run(device, limits, op, operands, choice, &|_, _| {}).await;
    judged(&compare, op, operands, expected, choice, outcome)
}

/// Runs `choice` of `op` with one work-group fewer along `axis`, and compares with the oracle.
///
/// # Errors
/// What failed, or the first element that is off.
pub(crate) async fn check_with_fewer_groups(
    device: &dyn Device,
    op: &dyn Op,
    operands: &Operands<'_>,
    expected: &Reference,
    choice: &Choice,
    axis: usize,
) -> Result<(), String> {
    let fewer = |_: &mut KernelSource, groups: &mut [u32; 3]| groups[axis] -= 1;
    let outcome = run(device, &device.info().limits, op, operands, choice, &fewer).await;
    judged(&compare, op, operands, expected, choice, outcome)
}

/// How a result is compared with what was expected.
pub(crate) type Comparison<'a> = &'a dyn Fn(&dyn Op, &Reference, &[f32]) -> Result<(), String>;

/// Runs `choice` of `op`, changed by `mutate`, and compares the result with `expected` by `compare`.
///
/// # Errors
/// What failed, or the first element that is off.
pub(crate) async fn check_by(
    compare: Comparison<'_>,
    device: &dyn Device,
    op: &dyn Op,
    operands: &Operands<'_>,
    expected: &Reference,
    choice: &Choice,
    mutate: &dyn Fn(&mut KernelSource),
) -> Result<(), String> {
    let change = |source: &mut KernelSource, _: &mut [u32; 3]| mutate(source);
    let outcome = run(device, &device.info().limits, op, operands, choice, &change).await;
    judged(compare, op, operands, expected, choice, outcome)
}

/// What a run left, compared with what was expected.
fn judged(
    compare: Comparison<'_>,
    op: &dyn Op,
    operands: &Operands<'_>,
    expected: &Reference,
    choice: &Choice,
    outcome: diptych::Result<Ran>,
) -> Result<(), String> {
    let Ran { targets, scratch } = outcome.map_err(|error| error.to_string())?;
    if let Some((scratch, bytes)) = scratch {
        let left = scratch.values(&bytes)?.into_iter().position(|value| value.to_bits() != 0);
        if let Some(place) = left {
            return Err(format!("element {place} of the scratch memory was not left zero"));
        }
    }
    let kernel = op.kernel(choice.variant).map_err(|error| error.to_string())?;
    let own = kernel.entry().sums_otherwise.then(|| kernel.reference(operands, expected.clone())).transpose();
    let own = own.map_err(|error| error.to_string())?;
    let others = op.others();
    for (operand, target, bytes) in &targets {
        let other = others.iter().find(|(own, _)| own == operand);
        let text = |error: diptych::Error| error.to_string();
        let exact =
            other.map(|(_, other)| other.reference(operands, Answer::Exact)).transpose().map_err(text)?;
        let of = other.map_or(op, |(_, other)| &**other);
        let expected = exact.as_ref().or(own.as_ref()).unwrap_or(expected);
        let form = kernel.form(*operand, choice).expect("an output is stored");
        // What is compared with another run is the last result.
        let by: Comparison<'_> = if other.is_some() { &crate::problem::compare_other } else { compare };
        right(by, of, expected, (info(op, *operand), form), (target, bytes))
            .map_err(|error| if other.is_some() { format!("{}: {error}", operand.name()) } else { error })?;
    }
    Ok(())
}

/// Whether what lies in a target is the result, and nothing else was written.
fn right(
    compare: Comparison<'_>,
    op: &dyn Op,
    expected: &Reference,
    (output, form): (OperandInfo, Form),
    (target, bytes): (&Guarded, &[u8]),
) -> Result<(), String> {
    let stored = target.values(bytes)?;
    let place = |index| output.stored_place(form, index);
    let result: Vec<f32> = (0..output.shape.elements()).map(|index| stored[place(index)]).collect();
    compare(op, expected, &result)?;
    let mut logical = vec![false; stored.len()];
    (0..result.len()).for_each(|index| logical[place(index)] = true);
    for (place, value) in stored.iter().enumerate().filter(|&(place, _)| !logical[place]) {
        let untouched =
            if target.element.dtype() == DType::F16 { value.is_nan() } else { value.to_ne_bytes() == CANARY };
        if form == Form::Rows && !untouched {
            return Err(format!("element {place} between the rows became {value}"));
        }
        if form != Form::Rows && *value != 0.0 {
            return Err(format!("element {place}, a lane beyond the channels, is {value}"));
        }
    }
    Ok(())
}

/// A kernel's destinations and its scratch memory, with what their whole buffers held after a run.
struct Ran {
    targets: Vec<(Operand, Guarded, Vec<u8>)>,
    scratch: Option<(Guarded, Vec<u8>)>,
}

/// Runs the kernel.
async fn run(
    device: &dyn Device,
    limits: &Limits,
    op: &dyn Op,
    operands: &Operands<'_>,
    choice: &Choice,
    mutate: Change<'_>,
) -> diptych::Result<Ran> {
    let mut inputs: Vec<Guarded> = Vec::new();
    let mut targets: Vec<(Operand, Guarded)> = Vec::new();
    let mut scratch: Option<Guarded> = None;
    let (mut fills, mut fetches) = (Vec::new(), Vec::new());
    let main = dispatch(device, limits, op, choice, mutate, &mut |binding| {
        if let Some(bytes) = binding.scratch_bytes() {
            let guarded = Guarded::new(device, binding.element, &vec![0.0; bytes as usize / 4])?;
            return Ok(Resource::from(scratch.insert(guarded).slice.clone()));
        }
        let is_target = binding.access != Access::Read;
        let values = stored(op, operands, choice, binding)?;
        let image = matches!(binding.element, Element::Image2d(_));
        let element = if image { Element::Vec4(binding.element.dtype()) } else { binding.element };
        let guarded = Guarded::new(device, element, &values)?;
        let buffer = Resource::from(guarded.slice.clone());
        if !image {
            if is_target {
                targets.push((binding.operand, guarded));
            } else {
                inputs.push(guarded);
            }
            return Ok(buffer);
        }
        // By way of C4, so that the lanes beyond the channels are kept. A target holds NaN before: a pixel
        // that is left out is seen.
        let map = info(op, binding.operand).map;
        let [width, height] = Layout::image_extent(&map);
        let image = Resource::from(&device.alloc_image(width, height, element.dtype())?);
        let fill = ConvertOp::new(map, Layout::C4, Layout::Image2d, op.precision())?;
        fills.push((fill, buffer, image.clone()));
        inputs.push(guarded);
        if is_target {
            let guarded = Guarded::new(device, element, &values)?;
            let fetch = ConvertOp::new(map, Layout::Image2d, Layout::C4, op.precision())?;
            fetches.push((fetch, image.clone(), guarded.slice.clone().into()));
            targets.push((binding.operand, guarded));
        }
        Ok(image)
    })
    .await?;
    assert!(!targets.is_empty(), "every kernel writes something");
    let mut dispatches = Vec::new();
    for (fill, from, to) in &fills {
        dispatches.push(conversion(device, fill, from, to).await?);
    }
    dispatches.push(main);
    for (fetch, from, to) in &fetches {
        dispatches.push(conversion(device, fetch, from, to).await?);
    }
    let recording = device.record(&dispatches)?;
    let whole: Vec<(Slice, &[u8])> = inputs
        .iter()
        .chain(targets.iter().map(|(_, target)| target))
        .chain(&scratch)
        .map(|held| (held.buffer.whole(), held.bytes.as_slice()))
        .collect();
    let writes: Vec<(&Slice, &[u8])> = whole.iter().map(|(slice, bytes)| (slice, *bytes)).collect();
    let written = targets.iter().map(|(_, target)| target).chain(&scratch);
    let fetched: Vec<Slice> = written.map(|held| held.buffer.whole()).collect();
    let fetched: Vec<&Slice> = fetched.iter().collect();
    let mut read = executed(device, &writes, &recording, &fetched).await?;
    let left = scratch.map(|scratch| (scratch, read.pop().unwrap_or_default()));
    let targets = targets.into_iter().zip(read).map(|((operand, target), bytes)| (operand, target, bytes));
    Ok(Ran { targets: targets.collect(), scratch: left })
}
