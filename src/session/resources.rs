//! What a draft becomes on a device: buffers, images and compiled kernels.

use super::draft::{Draft, Source, Step, Stored};
use crate::device::{Buffer, Device, Dispatch, Memory, Resource, Slice};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::plan::plan;

/// What the draft's values and constants became.
pub(super) struct Resources {
    stored: Vec<Resource>,
    constants: Option<Buffer>,
    pub(super) planned_bytes: u64,
}

impl Resources {
    /// The buffer of an input or output.
    pub(super) fn slice(&self, stored: Stored, bytes: u64) -> Result<Slice> {
        match &self.stored[stored] {
            Resource::Buffer(slice) => slice.buffer.slice(0, bytes),
            Resource::Image(_) => Err(Error::Internal("an image as an input or output".to_owned())),
        }
    }
}

/// Plans the memory, allocates it and uploads the constants.
pub(super) fn allocate(device: &dyn Device, draft: &Draft<'_>) -> Result<Resources> {
    let lifetimes = draft.lifetimes();
    let shared: Vec<Stored> =
        (0..draft.stored.len()).filter(|&stored| !draft.stored[stored].pinned).collect();
    let planned = plan(&shared.iter().map(|&stored| lifetimes[stored]).collect::<Vec<_>>());
    let buffers = planned
        .buffers
        .iter()
        .map(|&bytes| device.alloc(bytes, Memory::Device))
        .collect::<Result<Vec<_>>>()?;
    let mut planned_bytes = planned.buffers.iter().sum();
    let mut stored = Vec::with_capacity(draft.stored.len());
    for (index, value) in draft.stored.iter().enumerate() {
        let resource = match (value.image, shared.iter().position(|&shared| shared == index)) {
            (Some([width, height]), _) => (&device.alloc_image(width, height, DType::F32)?).into(),
            (None, Some(place)) => (&buffers[planned.place[place]]).into(),
            (None, None) => {
                planned_bytes += value.bytes;
                (&device.alloc(value.bytes, Memory::Device)?).into()
            }
        };
        stored.push(resource);
    }
    let constants = match draft.constants.len() as u64 {
        0 => None,
        bytes => {
            let buffer = device.alloc(bytes, Memory::Device)?;
            device.write(&buffer.slice(0, bytes)?, &draft.constants)?;
            Some(buffer)
        }
    };
    Ok(Resources { stored, constants, planned_bytes })
}

/// Compiles the kernels of `steps` and gives them their arguments.
pub(super) fn dispatches(
    device: &dyn Device,
    draft: &Draft<'_>,
    steps: &[Step],
    resources: &Resources,
) -> Result<Vec<Dispatch>> {
    let dialect = draft.limits.dialect;
    steps
        .iter()
        .map(|step| {
            let bind = || -> Result<Dispatch> {
                let pipeline = device.compile(&step.launch.spec.render(dialect)?)?;
                let resources = step
                    .sources
                    .iter()
                    .map(|(_, source)| match (source, &resources.constants) {
                        (Source::Stored(stored), _) => Ok(resources.stored[*stored].clone()),
                        (Source::Constant { offset, bytes }, Some(constants)) => {
                            constants.slice(*offset, *bytes).map(Resource::Buffer)
                        }
                        (Source::Constant { .. }, None) => {
                            Err(Error::Internal("a constant without a buffer".to_owned()))
                        }
                    })
                    .collect::<Result<Vec<_>>>()?;
                let (params, groups) = (step.launch.params.clone(), step.launch.groups());
                Ok(Dispatch { pipeline, resources, params, groups })
            };
            bind().map_err(|error| error.at_node(&step.name))
        })
        .collect()
}
