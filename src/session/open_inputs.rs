//! What a run is given for a network whose extents it decides, and how the network says what it wants.

use super::input::{FedInput, RunInput};
use crate::dims::Dims;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::options::SessionOptions;
use crate::source::Port;
use crate::source::{GraphSource, OpenInput};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// An input as it is shown before the first run: open extents are 1.
pub(super) fn shown(input: &OpenInput) -> Result<Port> {
    let extents = input.extents.iter().flatten().map(|extent| extent.unwrap_or(1));
    let dims = Dims::new(&extents.collect::<Vec<usize>>())?;
    Ok(Port {
        name: input.name.clone(),
        shape: dims.shape(),
        dims,
        dtype: input.dtype,
        open: input.open.clone(),
    })
}

/// The extents of an input as the file has them.
pub(super) fn declared(input: &OpenInput) -> String {
    let Some(extents) = &input.extents else { return "any dimensions".to_owned() };
    let name = |axis: usize| input.open.iter().find(|open| open.axis == axis).map_or("?", |open| &open.name);
    let extents = extents.iter().enumerate().map(|(axis, extent)| match extent {
        Some(extent) => extent.to_string(),
        None => name(axis).to_owned(),
    });
    match extents.collect::<Vec<_>>().join("x") {
        none if none.is_empty() => "one number".to_owned(),
        extents => extents,
    }
}

/// The extents of what a run is given, by the names of open axes.
pub(super) fn known_extents<'s>(
    source: &'s Arc<dyn GraphSource>,
    given: &[FedInput<'_>],
) -> Vec<(&'s str, usize)> {
    let of = |own: &FedInput<'_>| {
        let (dims, input) = (own.dims, source.inputs().iter().find(|input| *own.name == input.name));
        let open = input.into_iter().flat_map(|input| &input.open);
        open.filter_map(move |open| Some((open.name.as_str(), *dims.extents().get(open.axis)?)))
            .collect::<Vec<_>>()
    };
    given.iter().flat_map(of).collect()
}

/// What a part is given of the results of the one before it.
pub(super) fn given_of(tensors: &[(String, HostTensor)]) -> Vec<FedInput<'_>> {
    let given = tensors.iter().map(|(name, tensor)| FedInput {
        name: Cow::Borrowed(name.as_str()),
        dims: tensor.dims(),
        input: Some(RunInput::from(tensor)),
    });
    given.collect()
}

/// Refuses options that leave a dimension open which no input has.
pub(super) fn check_open(inputs: &[OpenInput], options: &SessionOptions) -> Result<()> {
    let open = inputs.iter().flat_map(|input| &input.open);
    let known: BTreeSet<&str> = open.map(|open| open.name.as_str()).collect();
    match options.open.keys().find(|name| !known.contains(name.as_str())) {
        Some(name) => {
            let wanted = format!("one of {known:?}, which inputs have");
            Err(Error::input("open dimension", format!("{name:?}"), wanted))
        }
        None => Ok(()),
    }
}
