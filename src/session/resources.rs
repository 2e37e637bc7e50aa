//! What a program becomes on a device: buffers, images and compiled kernels.

use super::build::Teller;
use super::memory::DeviceMemory;
use super::profile::MemoryUse;
#[cfg(not(target_family = "wasm"))]
use crate::device::compile_planned_together;
use crate::device::{Buffer, Device, Dispatch, Memory, Pipeline, Resource, Slice, compile_planned_async};
use crate::emit::KernelSource;
use crate::error::{Error, Result};
use crate::lower::{Part, Program, Source, Step, Work, pack};
use crate::ops::Launch;
use crate::task::Turns;

/// What the program's values and constants became.
#[derive(Debug)]
pub(super) struct Resources {
    stored: Vec<Resource>,
    constants: Option<Buffer>,
    /// Offset and length of each constant in it.
    places: Vec<(u64, u64)>,
    pub(super) memory: MemoryUse,
}

impl Resources {
    /// A part of a buffer.
    pub(super) fn slice(&self, part: &Part) -> Result<Slice> {
        match &self.stored[part.stored] {
            Resource::Buffer(slice) => slice.buffer.slice(part.offset, part.bytes),
            Resource::Image(_) => Err(Error::Internal("a part of an image".to_owned())),
        }
    }
}

/// Bytes of constants that are uploaded before the thread's other tasks have their turn.
const UPLOADED_AT_ONCE: usize = if cfg!(target_family = "wasm") { 4 << 20 } else { usize::MAX };

/// Writes `bytes` to the beginning of `buffer`.
async fn upload(
    device: &dyn Device,
    buffer: &Buffer,
    bytes: &[u8],
    teller: &Teller<'_>,
    turns: &mut Turns,
) -> Result<()> {
    let mut at = 0;
    for part in bytes.chunks(UPLOADED_AT_ONCE) {
        device.write(&buffer.slice(at, part.len() as u64)?, part)?;
        at += part.len() as u64;
        teller.uploaded(part.len() as u64);
        turns.pass().await;
    }
    Ok(())
}

/// Allocates the memory and uploads the constants.
pub(super) async fn allocate(
    device: &dyn Device,
    program: &Program,
    memory: &DeviceMemory,
    teller: &Teller<'_>,
) -> Result<Resources> {
    let turns = &mut Turns::new();
    let DeviceMemory { shared, plan: planned, .. } = memory;
    let buffers = planned
        .buffers
        .iter()
        .map(|&bytes| device.alloc(bytes, Memory::Device))
        .collect::<Result<Vec<_>>>()?;
    let mut stored = Vec::with_capacity(program.stored.len());
    for (index, value) in program.stored.iter().enumerate() {
        let resource = match (value.image, shared.iter().position(|&shared| shared == index)) {
            (Some(([width, height], dtype)), _) => (&device.alloc_image(width, height, dtype)?).into(),
            (None, Some(place)) => (&buffers[planned.place[place]]).into(),
            (None, None) => (&device.alloc(value.bytes, Memory::Device)?).into(),
        };
        if let (Some(tensor), Resource::Buffer(slice)) = (&value.constant, &resource) {
            let rows = tensor.words()?;
            let rows: &[u8] = bytemuck::cast_slice(&rows);
            teller.bytes(rows.len() as u64);
            upload(device, &slice.buffer, rows, teller, turns).await?;
        }
        stored.push(resource);
    }
    let packed = pack(&program.constants, program.constant_alignment(), turns).await?;
    let constants = match packed.bytes.len() as u64 {
        0 => None,
        bytes => {
            let buffer = device.alloc(bytes, Memory::Device)?;
            teller.bytes(bytes);
            upload(device, &buffer, &packed.bytes, teller, turns).await?;
            Some(buffer)
        }
    };
    let memory = memory.with_packed(packed.bytes.len() as u64);
    Ok(Resources { stored, constants, places: packed.places, memory })
}

/// A kernel of the device.
struct Own<'a> {
    step: &'a Step,
    launch: &'a Launch,
    sources: &'a [Source],
}

fn own(steps: &[Step]) -> impl Iterator<Item = Own<'_>> {
    steps.iter().filter_map(|step| match &step.work {
        Work::Device { launch, sources } => Some(Own { step, launch, sources }),
        Work::Host { .. } => None,
    })
}

/// The device's kernels of a program, in the order of their steps.
pub(super) struct Kernels {
    pub(super) setup: Vec<Pipeline>,
    pub(super) steps: Vec<Pipeline>,
}

/// Compiles the device's kernels, several at a time.
pub(super) async fn kernels(device: &dyn Device, program: &Program, teller: &Teller<'_>) -> Result<Kernels> {
    let turns = &mut Turns::new();
    let dialect = program.limits.dialect;
    let all: Vec<Own<'_>> = own(&program.setup).chain(own(&program.steps)).collect();
    let mut texts = Vec::with_capacity(all.len());
    for Own { step, launch, .. } in &all {
        texts.push(launch.spec.render_written(dialect).map_err(|error| error.at_node(&step.name))?);
        turns.pass().await;
    }
    // Each text once: drivers take up to 100 ms for one, and compile side by side. What goes
    // wrong is reported below, by the first node it concerns.
    let distinct = all.iter().zip(&texts).map(|(own, text)| (text.text.as_str(), (own.launch, text)));
    let distinct = crate::sorted::map(distinct);
    teller.kernels(distinct.len());
    compile_all(device, distinct.into_values().collect(), teller, turns).await;
    let mut compiled = Vec::with_capacity(all.len());
    for (Own { step, launch, .. }, text) in all.iter().zip(&texts) {
        compiled.push(compile(device, launch, text).await.map_err(|error| error.at_node(&step.name))?);
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
    kernels: Vec<Pipeline>,
    resources: &Resources,
) -> Result<Vec<Dispatch>> {
    own(steps)
        .zip(kernels)
        .map(|(Own { step, launch, sources }, pipeline)| {
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
fn bound(source: &Source, launch: &Launch, resources: &Resources) -> Result<Resource> {
    match (source, &resources.constants) {
        // A value's whole buffer may be larger than the value. The crate's kernels know their extents; an
        // application's asks for the length.
        (Source::Stored(part), _) if part.offset == 0 && launch.spec.foreign.is_none() => {
            Ok(resources.stored[part.stored].clone())
        }
        (Source::Stored(part), _) => resources.slice(part).map(Resource::Buffer),
        (Source::Constant(constant), Some(constants)) => {
            let (offset, bytes) = resources.places[*constant];
            constants.slice(offset, bytes).map(Resource::Buffer)
        }
        (Source::Constant(_), None) => Err(Error::Internal("a constant without a buffer".to_owned())),
    }
}
