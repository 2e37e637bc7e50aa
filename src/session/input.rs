//! What a run is given for an input.

#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
use super::frame::Frames;
use super::ports::{every, unknown};
use crate::alloc;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::source::{Elements, GivenInput, Port};
use crate::word;
use std::borrow::Cow;

/// What [`Session::submit`](crate::Session::submit) is given for an input: a `&HostTensor`; a slice of as many f32 as the
/// input has, in the order of its dimensions; dimensions with such a slice; or [`Frames`](crate::Frames) of bytes. Nothing of a
/// slice is copied on the way to the device.
#[derive(Debug, Clone)]
pub struct RunInput<'a>(InputElements<'a>);

#[derive(Debug, Clone)]
enum InputElements<'a> {
    Tensor(&'a HostTensor),
    Owned(HostTensor),
    Slice(&'a [f32]),
    Shaped(Dims, &'a [f32]),
    #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
    Frames(Frames<'a, &'a [u8]>),
}

impl RunInput<'_> {
    /// The dimensions that it has, if it has some: a slice takes those of its input.
    pub(super) fn dims(&self) -> Option<Dims> {
        match &self.0 {
            InputElements::Tensor(tensor) => Some(tensor.dims()),
            InputElements::Owned(tensor) => Some(tensor.dims()),
            InputElements::Shaped(dims, _) => Some(*dims),
            InputElements::Slice(_) => None,
            #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
            InputElements::Frames(_) => None,
        }
    }

    /// Whether it could be an input of these dimensions.
    pub(super) fn could_be(&self, dims: Dims) -> bool {
        match &self.0 {
            InputElements::Tensor(tensor) => tensor.dims().elements() == dims.elements(),
            InputElements::Owned(tensor) => tensor.dims().elements() == dims.elements(),
            InputElements::Slice(elements) | InputElements::Shaped(_, elements) => {
                elements.len() == dims.elements()
            }
            #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
            InputElements::Frames(frames) => frames.places("frames", dims).is_ok(),
        }
    }

    /// What it is, for a message that says that it has no dimensions.
    pub(super) fn said(&self) -> String {
        match &self.0 {
            InputElements::Slice(elements) | InputElements::Shaped(_, elements) => {
                format!("a slice of {} elements", elements.len())
            }
            #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
            InputElements::Frames(frames) => format!("{} frames", frames.frames.len()),
            InputElements::Tensor(_) | InputElements::Owned(_) => "a tensor".to_owned(),
        }
    }

    /// It as a tensor of `dims`, which are of as many elements.
    pub(crate) fn tensor(&self, dims: Dims) -> Result<Cow<'_, HostTensor>> {
        match &self.0 {
            InputElements::Tensor(tensor) if tensor.dims() == dims => Ok(Cow::Borrowed(tensor)),
            InputElements::Tensor(tensor) => (*tensor).clone().reshaped(dims).map(Cow::Owned),
            InputElements::Owned(tensor) => tensor.clone().reshaped(dims).map(Cow::Owned),
            InputElements::Slice(elements) | InputElements::Shaped(_, elements) => {
                HostTensor::new(dims, *elements).map(Cow::Owned)
            }
            #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
            InputElements::Frames(frames) => frames.to_tensor(dims).map(Cow::Owned),
        }
    }

    /// A tensor of its own.
    pub(super) fn owned(tensor: HostTensor) -> Self {
        RunInput(InputElements::Owned(tensor))
    }
}

impl Elements for RunInput<'_> {
    fn tensor(&self, dims: Dims) -> Result<Cow<'_, HostTensor>> {
        RunInput::tensor(self, dims)
    }
}

/// What an input of a part of a network is given.
#[derive(Debug, Clone)]
pub(super) struct FedInput<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) dims: Dims,
    /// Nothing while a session is planned before its first run.
    pub(super) input: Option<RunInput<'a>>,
}

impl FedInput<'_> {
    /// Its elements, if they are there.
    pub(super) fn value(&self) -> Result<Option<Cow<'_, HostTensor>>> {
        self.input.as_ref().map(|input| input.tensor(self.dims)).transpose()
    }

    /// The inputs of a part as a source of graphs takes them.
    pub(super) fn given<'s>(given: &'s [FedInput<'_>]) -> Vec<GivenInput<'s>> {
        let input = |own: &'s FedInput<'_>| GivenInput {
            name: Cow::Borrowed(&*own.name),
            dims: own.dims,
            input: own.input.as_ref().map(|input| input as &dyn Elements),
        };
        given.iter().map(input).collect()
    }
}

impl<'a> From<&'a HostTensor> for RunInput<'a> {
    fn from(tensor: &'a HostTensor) -> Self {
        RunInput(InputElements::Tensor(tensor))
    }
}

impl<'a> From<&'a [f32]> for RunInput<'a> {
    fn from(elements: &'a [f32]) -> Self {
        RunInput(InputElements::Slice(elements))
    }
}

impl<'a> From<(Dims, &'a [f32])> for RunInput<'a> {
    fn from((dims, elements): (Dims, &'a [f32])) -> Self {
        RunInput(InputElements::Shaped(dims, elements))
    }
}

#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
impl<'a> From<Frames<'a, &'a [u8]>> for RunInput<'a> {
    fn from(frames: Frames<'a, &'a [u8]>) -> Self {
        RunInput(InputElements::Frames(frames))
    }
}

impl<'a> From<&'a Vec<f32>> for RunInput<'a> {
    fn from(elements: &'a Vec<f32>) -> Self {
        RunInput(InputElements::Slice(elements))
    }
}

impl<'a, const N: usize> From<&'a [f32; N]> for RunInput<'a> {
    fn from(elements: &'a [f32; N]) -> Self {
        RunInput(InputElements::Slice(elements))
    }
}

/// The elements of an input.
#[derive(Debug, Clone)]
pub(super) enum Input<'a> {
    Whole(Cow<'a, [f32]>),
    /// One behind the other. What is behind the last part is anything.
    #[cfg_attr(target_family = "wasm", expect(dead_code, reason = "services give them, which have threads"))]
    Parts(Vec<&'a [f32]>),
    /// Of a port of f32. They fit it.
    #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
    Frames(Box<(Frames<'a, &'a [u8]>, Port)>),
}

impl Input<'_> {
    pub(super) fn is_frames(&self) -> bool {
        match self {
            Input::Whole(_) | Input::Parts(_) => false,
            #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
            Input::Frames(_) => true,
        }
    }

    /// The input with elements of its own, which are copied if they are borrowed.
    pub(super) fn into_owned(self) -> Result<Input<'static>> {
        match self {
            Input::Whole(Cow::Owned(elements)) => Ok(Input::Whole(Cow::Owned(elements))),
            Input::Whole(Cow::Borrowed(elements)) => {
                alloc::copied(elements, "an input").map(|elements| Input::Whole(Cow::Owned(elements)))
            }
            Input::Parts(parts) => {
                let mut joined = alloc::reserved(parts.iter().map(|part| part.len()).sum(), "an input")?;
                parts.iter().for_each(|part| joined.extend_from_slice(part));
                Ok(Input::Whole(Cow::Owned(joined)))
            }
            #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
            Input::Frames(given) => {
                let (frames, port) = *given;
                frames.elements(&port.name, port.dims).map(|elements| Input::Whole(Cow::Owned(elements)))
            }
        }
    }
}

/// The inputs with so many elements each, in one piece.
pub(super) fn whole<'a>(inputs: &'a [Input<'_>], lengths: &[usize]) -> Result<Vec<Cow<'a, [f32]>>> {
    let whole = |(input, &length): (&'a Input<'_>, &usize)| match input {
        Input::Whole(elements) => Ok(Cow::Borrowed(&**elements)),
        Input::Parts(parts) => match parts[..] {
            [whole] if whole.len() == length => Ok(Cow::Borrowed(whole)),
            _ => {
                let mut joined = alloc::reserved(length, "an input")?;
                parts.iter().for_each(|part| joined.extend_from_slice(part));
                joined.resize(length, 0.0);
                Ok(Cow::Owned(joined))
            }
        },
        #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
        Input::Frames(given) => {
            let (frames, port) = &**given;
            frames.elements(&port.name, port.dims).map(Cow::Owned)
        }
    };
    inputs.iter().zip(lengths).map(whole).collect()
}

/// The inputs in the order of the ports.
///
/// `word` gives the type of the words in which a session keeps what is of a type.
pub(super) fn arranged<'a>(
    ports: &[Port],
    inputs: Vec<(&str, RunInput<'a>)>,
    word: &dyn Fn(DType) -> DType,
) -> Result<Vec<Input<'a>>> {
    let mut found = vec![None; ports.len()];
    for (name, RunInput(source)) in inputs {
        let of_name = ports.iter().zip(&mut found).find(|(port, _)| port.name == name);
        let (port, place) = of_name.ok_or_else(|| unknown("input", name, ports))?;
        #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
        if let (InputElements::Frames(frames), DType::F32, None) = (&source, word(port.dtype), &place) {
            frames.check(&port.name, port.dims)?;
            if port.dtype == DType::F32 {
                *place = Some(Input::Frames(Box::new((*frames, port.clone()))));
                continue;
            }
        }
        let (what, elements) = match source {
            InputElements::Tensor(tensor) => {
                port.takes(tensor)?;
                ("tensors", words(port, tensor, word)?)
            }
            InputElements::Owned(tensor) => {
                port.takes(&tensor)?;
                ("tensors", Cow::Owned(words(port, &tensor, word)?.into_owned()))
            }
            InputElements::Slice(elements) | InputElements::Shaped(_, elements) => {
                if let InputElements::Shaped(dims, _) = source {
                    port.takes_dims(dims)?;
                }
                let wanted = port.dims.elements();
                if elements.len() != wanted {
                    return Err(Error::input(
                        format!("input {name:?}"),
                        format!("a slice of {} elements", elements.len()),
                        format!("{wanted} for shape {}", port.dims),
                    ));
                }
                let elements = match word(port.dtype) {
                    DType::F32 => {
                        word::fit(elements, port.dtype, &format!("input {name:?}"))?;
                        Cow::Borrowed(elements)
                    }
                    _ => converted(port, elements, word)?,
                };
                ("slices", elements)
            }
            #[cfg(all(feature = "cpu", not(target_family = "wasm")))]
            InputElements::Frames(frames) => {
                let tensor = HostTensor::new(port.dims, frames.elements(&port.name, port.dims)?)?;
                ("frames", Cow::Owned(words(port, &tensor, word)?.into_owned()))
            }
        };
        if place.is_some() {
            return Err(Error::input(format!("input {name:?}"), format!("two {what}"), "one"));
        }
        *place = Some(Input::Whole(elements));
    }
    every("input", ports, found)
}

/// The elements of a tensor as the words that an input is kept in.
pub(super) fn words<'a>(
    port: &Port,
    tensor: &'a HostTensor,
    word: &dyn Fn(DType) -> DType,
) -> Result<Cow<'a, [f32]>> {
    word::of_tensor(tensor, word(port.dtype), port.dtype, &format!("input {:?}", port.name))
}

/// Numbers as the integers of an input.
fn converted<'a>(port: &Port, elements: &[f32], word: &dyn Fn(DType) -> DType) -> Result<Cow<'a, [f32]>> {
    let tensor = HostTensor::new(port.dims, elements)?;
    Ok(Cow::Owned(words(port, &tensor, word)?.into_owned()))
}
