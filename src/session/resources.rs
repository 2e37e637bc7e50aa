//! What a program becomes on a device: buffers, images and compiled kernels.

use super::profile::MemoryUse;
use crate::device::{Buffer, Device, Dispatch, Memory, Pipeline, Resource, Slice, compile_planned};
use crate::emit::KernelSource;
use crate::error::{Error, Result};
use crate::lower::{Part, Program, Source, Step, Stored, Work, least, pack, plan};
use crate::ops::Launch;
use rayon::prelude::*;
use std::collections::BTreeMap;

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

/// Plans the memory, allocates it and uploads the constants.
pub(super) fn allocate(device: &dyn Device, program: &Program) -> Result<Resources> {
    let lifetimes = program.lifetimes();
    let shared: Vec<Stored> =
        (0..program.stored.len()).filter(|&stored| !program.stored[stored].pinned).collect();
    let shared_lifetimes: Vec<_> = shared.iter().map(|&stored| lifetimes[stored]).collect();
    let planned = plan(&shared_lifetimes);
    let buffers = planned
        .buffers
        .iter()
        .map(|&bytes| device.alloc(bytes, Memory::Device))
        .collect::<Result<Vec<_>>>()?;
    let mut own_bytes = 0;
    let mut stored = Vec::with_capacity(program.stored.len());
    for (index, value) in program.stored.iter().enumerate() {
        let resource = match (value.image, shared.iter().position(|&shared| shared == index)) {
            (Some(([width, height], dtype)), _) => {
                own_bytes += value.bytes;
                (&device.alloc_image(width, height, dtype)?).into()
            }
            (None, Some(place)) => (&buffers[planned.place[place]]).into(),
            (None, None) => {
                own_bytes += value.bytes;
                (&device.alloc(value.bytes, Memory::Device)?).into()
            }
        };
        if let (Some(tensor), Resource::Buffer(slice)) = (&value.constant, &resource) {
            let rows = tensor.to_nhwc();
            device.write(&slice.buffer.slice(0, value.bytes)?, bytemuck::cast_slice(&rows))?;
        }
        stored.push(resource);
    }
    let packed = pack(&program.constants, program.limits.binding_alignment.max(256))?;
    let constants = match packed.bytes.len() as u64 {
        0 => None,
        bytes => {
            let buffer = device.alloc(bytes, Memory::Device)?;
            device.write(&buffer.slice(0, bytes)?, &packed.bytes)?;
            Some(buffer)
        }
    };
    let memory = MemoryUse {
        planned: planned.buffers.iter().sum::<u64>() + own_bytes,
        unshared: program.stored.iter().map(|stored| stored.bytes).sum(),
        least: least(&shared_lifetimes) + own_bytes,
        constants: packed.bytes.len() as u64,
        ..MemoryUse::default()
    };
    Ok(Resources { stored, constants, places: packed.places, memory })
}

/// A kernel of the device.
struct Own<'a> {
    step: &'a Step,
    launch: &'a Launch,
    sources: &'a [Source],
}

/// Compiles the device's kernels of `steps`, several at a time, and gives them their arguments.
pub(super) fn dispatches(
    device: &dyn Device,
    program: &Program,
    steps: &[Step],
    resources: &Resources,
) -> Result<Vec<Dispatch>> {
    let dialect = program.limits.dialect;
    let own = steps.iter().filter_map(|step| match &step.work {
        Work::Device { launch, sources } => Some(Own { step, launch, sources }),
        Work::Host { .. } => None,
    });
    let own: Vec<Own<'_>> = own.collect();
    let mut texts = Vec::with_capacity(own.len());
    for Own { step, launch, .. } in &own {
        texts.push(launch.spec.render_written(dialect).map_err(|error| error.at_node(&step.name))?);
    }
    // Each text once: drivers take up to 100 ms for one, and compile side by side. What goes
    // wrong is reported below, by the first node it concerns.
    let distinct: BTreeMap<&str, (&Launch, &KernelSource)> =
        own.iter().zip(&texts).map(|(own, text)| (text.text.as_str(), (own.launch, text))).collect();
    distinct.into_par_iter().for_each(|(_, (launch, text))| drop(compile(device, launch, text)));
    own.iter()
        .zip(&texts)
        .map(|(Own { step, launch, sources }, text)| {
            let pipeline = compile(device, launch, text).map_err(|error| error.at_node(&step.name))?;
            let resources = sources.iter().map(|source| bound(source, launch, resources));
            let resources =
                resources.collect::<Result<Vec<_>>>().map_err(|error| error.at_node(&step.name))?;
            let (params, groups) = (launch.params.clone(), launch.groups());
            Ok(Dispatch { pipeline, resources, params, groups })
        })
        .collect()
}

/// An application's kernel is compiled with checks, the crate's own as they are.
pub(super) fn compile(device: &dyn Device, launch: &Launch, source: &KernelSource) -> Result<Pipeline> {
    match launch.spec.foreign {
        Some(_) => device.compile(source),
        None => compile_planned(device, source),
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
