//! What a program becomes on a device: buffers, images and compiled kernels.

use super::memory::DeviceMemory;
use super::profile::MemoryUse;
use super::progress::Teller;
use super::shared::{Key, Shared, Uploaded};
use super::uploaded::{packed_constants, rounded_rows, upload};
use crate::alloc;
#[cfg(not(target_family = "wasm"))]
use crate::device::compile_planned_together;
use crate::device::{Buffer, Device, Dispatch, Memory, Pipeline, Resource, Slice, compile_planned_async};
use crate::dtype::DType;
use crate::emit::KernelSource;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::lower::{CompiledKernels, MIN_SHARED, OperandMemory, Part, Program, Step, Stored, Work, decisive};
use crate::ops::Launch;
use crate::task::Turns;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What the program's values and constants became.
#[derive(Debug, Clone)]
pub(super) struct Resources {
    /// Nothing for values of no elements, and for values in buffers that sessions for other extents use too, while it has let
    /// go of them.
    stored: Vec<Option<Resource>>,
    /// Those buffers, the largest first.
    slots: Vec<Arc<Buffer>>,
    /// Where each packed constant lies.
    constants: Vec<Slice>,
    /// Those that sessions for other extents have, too.
    _shared: Vec<Arc<Uploaded>>,
    /// States that another session has written.
    pub(super) written: HashSet<Stored>,
    pub(super) memory: MemoryUse,
}

impl Resources {
    /// A part of a buffer.
    pub(super) fn slice(&self, part: &Part) -> Result<Slice> {
        match self.stored(part.stored)? {
            Resource::Buffer(slice) => slice.buffer.slice(part.offset, part.bytes),
            Resource::Image(_) => Err(Error::Internal("a part of an image".to_owned())),
        }
    }

    fn stored(&self, stored: Stored) -> Result<&Resource> {
        let missing = || Error::Internal(format!("no memory for value {stored}"));
        self.stored.get(stored).and_then(Option::as_ref).ok_or_else(missing)
    }

    /// The buffers that sessions for other extents use, too.
    pub(super) fn slots(&self) -> &[Arc<Buffer>] {
        &self.slots
    }

    /// Lets go of them.
    pub(super) fn leave_slots(&mut self, memory: &DeviceMemory) {
        for &stored in &memory.shared {
            if let Some(own) = self.stored.get_mut(stored) {
                *own = None;
            }
        }
        self.slots.clear();
    }

    /// Takes these in their place.
    pub(super) fn take_slots(&mut self, memory: &DeviceMemory, slots: Vec<Arc<Buffer>>) {
        for (&stored, &place) in memory.shared.iter().zip(&memory.plan.place) {
            if let (Some(own), Some(buffer)) = (self.stored.get_mut(stored), slots.get(place)) {
                *own = Some((&**buffer).into());
            }
        }
        self.slots = slots;
    }
}

/// Allocates the memory and uploads the constants.
pub(super) async fn allocate(
    device: &dyn Device,
    program: &Program,
    memory: &DeviceMemory,
    shared_with: Option<&Shared>,
    teller: &Teller<'_>,
) -> Result<Resources> {
    let turns = &mut Turns::begin();
    let DeviceMemory { shared, plan: planned, .. } = memory;
    let alloc = |&bytes: &u64| device.alloc(bytes, Memory::Device).map(Arc::new);
    let buffers = match shared_with {
        Some(shared) => shared.slots.take(device, &planned.buffers)?,
        None => planned.buffers.iter().map(alloc).collect::<Result<Vec<_>>>()?,
    };
    let (mut held, mut spared, mut written) = (Vec::new(), 0, HashSet::new());
    let mut states = 0;
    let mut stored = Vec::with_capacity(program.stored.len());
    for (index, value) in program.stored.iter().enumerate() {
        if value.bytes == 0 {
            stored.push(None);
            continue;
        }
        let state = program.states.iter().position(|(part, _)| part.stored == index);
        if let Some((shared, key, state)) = state.and_then(|state| {
            let shared = shared_with?;
            Some((shared, shared.state_key(state, value.bytes)?, state))
        }) {
            let own = match shared.uploaded(&key) {
                Some(known) => {
                    written.insert(index);
                    known
                }
                None => {
                    let buffer = device.alloc(value.bytes, Memory::Device)?;
                    let whole = buffer.slice(0, value.bytes)?;
                    shared.keep(key, whole, program.states[state].1.clone())
                }
            };
            stored.push(Some(Resource::Buffer(own.slice.clone())));
            held.push(own);
            states += value.bytes;
            continue;
        }
        let constant = value.constant.as_ref().filter(|_| value.image.is_none());
        let rows = || constant.and_then(|tensor| rows_key(tensor, value.halves));
        let shelf = shared_with.and_then(|shared| Some((shared, rows()?)));
        if let Some(known) = shelf.as_ref().and_then(|(shared, key)| shared.uploaded(key)) {
            spared += value.bytes;
            stored.push(Some(Resource::Buffer(known.slice.clone())));
            held.push(known);
            continue;
        }
        let resource = match (value.image, shared.iter().position(|&shared| shared == index)) {
            (Some(([width, height], dtype)), _) => (&device.alloc_image(width, height, dtype)?).into(),
            (None, Some(place)) => (&*buffers[planned.place[place]]).into(),
            (None, None) => (&device.alloc(value.bytes, value.memory)?).into(),
        };
        if let (Some(tensor), Resource::Buffer(slice)) = (&value.constant, &resource) {
            let words: Cow<'_, [f32]>;
            let rows: Cow<'_, [u8]> = if value.halves {
                halves(tensor)?
            } else {
                words = tensor.words()?;
                bytemuck::cast_slice(&words).into()
            };
            teller.bytes(rows.len() as u64);
            upload(device, (&slice.buffer, 0), &rows, teller, turns).await?;
            if let Some((shared, key)) = shelf {
                held.push(shared.keep(key, slice.clone(), tensor.clone()));
            }
        }
        if let (true, Resource::Buffer(slice)) = (value.scratch, &resource) {
            let zeros = alloc::zeros(value.bytes as usize, "scratch memory")?;
            upload(device, (&slice.buffer, 0), &zeros, teller, turns).await?;
        }
        stored.push(Some(resource));
    }
    let packed = packed_constants(device, program, shared_with, teller, turns).await?;
    held.extend(packed.held);
    let memory = memory.with_packed(packed.bytes);
    let memory = MemoryUse {
        constants: memory.constants.saturating_sub(spared),
        planned: memory.planned.saturating_sub(states),
        ..memory
    };
    let slots = if shared_with.is_some() { buffers } else { Vec::new() };
    Ok(Resources { stored, slots, constants: packed.slices, _shared: held, written, memory })
}

/// The key of a constant that kernels read in rows; none where nothing is worth sharing.
fn rows_key(tensor: &HostTensor, halves: bool) -> Option<Key> {
    let (place, dims, dtype) = (tensor.place(), tensor.dims(), tensor.dtype());
    (dims.elements() >= MIN_SHARED).then_some(Key::Rows { place, dims, dtype, halves })
}

/// Rows in halves, in whole words.
fn halves(tensor: &HostTensor) -> Result<Cow<'_, [u8]>> {
    let own = tensor.bytes();
    if tensor.dtype() == DType::F16 && tensor.layout() == Layout::Nhwc && own.len().is_multiple_of(4) {
        return Ok(Cow::Borrowed(own));
    }
    Ok(rounded_rows(&tensor.words()?)?.into())
}

/// A kernel of the device.
struct DeviceStep<'a> {
    step: &'a Step,
    launch: &'a Launch,
    sources: &'a [OperandMemory],
}

fn own(steps: &[Step]) -> impl Iterator<Item = DeviceStep<'_>> {
    steps.iter().filter_map(|step| match &step.work {
        Work::Device { launch, sources } => Some(DeviceStep { step, launch, sources }),
        Work::Host { .. } => None,
    })
}

/// The device's kernels of a program, in the order of their steps.
pub(super) struct Kernels {
    pub(super) setup: Vec<Pipeline>,
    pub(super) steps: Vec<Pipeline>,
}

/// Compiles the device's kernels, several at a time.
pub(super) async fn kernels(
    device: &dyn Device,
    program: &Program,
    known: Option<&CompiledKernels>,
    teller: &Teller<'_>,
) -> Result<Kernels> {
    let turns = &mut Turns::begin();
    let dialect = program.limits.dialect;
    let all: Vec<DeviceStep<'_>> = own(&program.setup).chain(own(&program.steps)).collect();
    // Many steps and plans have one text, which takes longer to render than to look up.
    let (mut texts, mut rendered) = (Vec::with_capacity(all.len()), HashMap::new());
    for DeviceStep { step, launch, .. } in &all {
        let spec = &launch.spec;
        let own = decisive(spec);
        let found: Option<KernelSource> = match rendered.get(&own) {
            Some(&earlier) => texts.get(earlier).cloned(),
            None => known.and_then(|known| known.text(&own)),
        };
        rendered.entry(own).or_insert(texts.len());
        texts.push(match found {
            Some(found) => KernelSource { interface: spec.interface.clone(), ..found },
            None => spec.render_written(dialect).map_err(|error| error.at_node(&step.name))?,
        });
        turns.pass().await;
    }
    // Each text once: drivers take up to 100 ms for one, and compile side by side. What goes
    // wrong is reported below, by the first node it concerns.
    let distinct = all.iter().zip(&texts).map(|(own, text)| (text.text.as_str(), (own.launch, text)));
    let distinct = crate::sorted::map(distinct);
    teller.kernels(distinct.len());
    compile_all(device, distinct.into_values().collect(), teller, turns).await;
    let mut compiled = Vec::with_capacity(all.len());
    for (DeviceStep { step, launch, .. }, text) in all.iter().zip(&texts) {
        compiled.push(compile(device, launch, text).await.map_err(|error| error.at_node(&step.name))?);
        if let Some(known) = known {
            known.note(&launch.spec, text, dialect);
        }
    }
    let steps = compiled.split_off(own(&program.setup).count());
    Ok(Kernels { setup: compiled, steps })
}

/// Compiles kernels on the threads of the pool.
#[cfg(not(target_family = "wasm"))]
async fn compile_all(
    device: &dyn Device,
    kernels: Vec<(&Launch, &KernelSource)>,
    teller: &Teller<'_>,
    _turns: &mut Turns,
) {
    let planned = kernels.iter().filter(|(launch, _)| launch.spec.foreign.is_none());
    compile_planned_together(device, &planned.map(|(_, text)| *text).collect::<Vec<_>>());
    crate::parallel::each(kernels, |(launch, text)| {
        drop(crate::task::block_on(compile(device, launch, text)));
        teller.compiled();
    });
}

/// Has the browser compile all kernels, and awaits them.
#[cfg(target_family = "wasm")]
async fn compile_all(
    device: &dyn Device,
    kernels: Vec<(&Launch, &KernelSource)>,
    teller: &Teller<'_>,
    turns: &mut Turns,
) {
    let mut under_way: Vec<crate::task::Awaited<'_, Result<Pipeline>>> = Vec::with_capacity(kernels.len());
    for (launch, text) in kernels {
        let mut compiled: crate::task::Awaited<'_, _> = Box::pin(compile(device, launch, text));
        match crate::task::begun(&mut compiled).await {
            Some(_) => teller.compiled(),
            None => under_way.push(compiled),
        }
        turns.pass().await;
    }
    for compiled in under_way {
        drop(compiled.await);
        teller.compiled();
    }
}

/// Gives the kernels of `steps` their arguments.
pub(super) fn dispatches(
    steps: &[Step],
    kernels: &[Pipeline],
    resources: &Resources,
) -> Result<Vec<Dispatch>> {
    own(steps)
        .zip(kernels)
        .map(|(DeviceStep { step, launch, sources }, pipeline)| {
            let pipeline = pipeline.clone();
            let resources = sources.iter().map(|source| bound(source, launch, resources));
            let resources =
                resources.collect::<Result<Vec<_>>>().map_err(|error| error.at_node(&step.name))?;
            let (params, groups) = (launch.params.clone(), launch.groups());
            Ok(Dispatch { pipeline, resources, params, groups })
        })
        .collect()
}

/// An application's kernel is compiled with checks, the crate's own as they are.
pub(super) async fn compile(device: &dyn Device, launch: &Launch, source: &KernelSource) -> Result<Pipeline> {
    match launch.spec.foreign {
        Some(_) => device.compile_async(source).await,
        None => compile_planned_async(device, source).await,
    }
}

/// What an operand is given.
fn bound(source: &OperandMemory, launch: &Launch, resources: &Resources) -> Result<Resource> {
    match source {
        // A value's whole buffer may be larger than the value. The crate's kernels know their extents; an
        // application's asks for the length.
        OperandMemory::Stored(part) if part.offset == 0 && launch.spec.foreign.is_none() => {
            resources.stored(part.stored).cloned()
        }
        OperandMemory::Stored(part) => resources.slice(part).map(Resource::Buffer),
        OperandMemory::Constant(constant) => {
            let slice = resources.constants.get(*constant).cloned();
            let missing = || Error::Internal("a constant without a buffer".to_owned());
            slice.map(Resource::Buffer).ok_or_else(missing)
        }
    }
}
