//! NumPy's arrays of every type that tensors have.

use crate::errors::exception;
use crate::pixels::PixelsOf;
use diptych::{DType, Dims, Error, HostTensor, Outputs, RunInput};
use half::f16;
use numpy::{
    PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

/// What NumPy calls a type.
pub(crate) fn name(dtype: DType) -> PyResult<&'static str> {
    Ok(match dtype {
        DType::F32 => "float32",
        DType::F16 => "float16",
        DType::I64 => "int64",
        DType::I32 => "int32",
        DType::I16 => "int16",
        DType::I8 => "int8",
        DType::U32 => "uint32",
        DType::U16 => "uint16",
        DType::U8 => "uint8",
        DType::Bool => "bool",
        other => return Err(exception(Error::Internal(format!("NumPy has no name for the type {other}")))),
    })
}

macro_rules! types {
    ($($name:ident $ty:ty),* $(,)?) => {
        /// An array to read.
        #[derive(FromPyObject)]
        pub(crate) enum Array<'py> {
            $($name(PyReadonlyArrayDyn<'py, $ty>),)*
        }

        /// An array to write.
        #[derive(FromPyObject)]
        pub(crate) enum Target<'py> {
            $($name(PyReadwriteArrayDyn<'py, $ty>),)*
        }

        /// The elements of an array, where they lie.
        #[derive(Clone, Copy)]
        pub(crate) enum Elements<'a> {
            $($name(&'a [$ty]),)*
        }

        /// Room for elements, where an array lies.
        pub(crate) enum Room<'a> {
            $($name(&'a mut [$ty]),)*
        }

        impl Array<'_> {
            pub(crate) fn shape(&self) -> &[usize] {
                match self {
                    $(Array::$name(array) => array.shape(),)*
                }
            }

            pub(crate) fn elements(&self) -> PyResult<Elements<'_>> {
                Ok(match self {
                    $(Array::$name(array) => Elements::$name(array.as_slice()?),)*
                })
            }
        }

        impl Target<'_> {
            fn shape(&self) -> &[usize] {
                match self {
                    $(Target::$name(array) => array.shape(),)*
                }
            }

            fn room(&mut self) -> PyResult<Room<'_>> {
                Ok(match self {
                    $(Target::$name(array) => Room::$name(array.as_slice_mut()?),)*
                })
            }
        }

        impl Elements<'_> {
            /// A copy as a tensor.
            pub(crate) fn tensor(self, dims: Dims) -> Result<HostTensor, Error> {
                match self {
                    $(Elements::$name(elements) => HostTensor::of(dims, elements),)*
                }
            }
        }

        /// A tensor as a new array of its type.
        fn array<'py>(py: Python<'py>, tensor: &HostTensor) -> PyResult<Bound<'py, PyAny>> {
            let extents = tensor.dims().extents().to_vec();
            $(if let Some(elements) = tensor.elements::<$ty>() {
                return Ok(PyArray1::from_slice(py, elements).reshape(extents)?.into_any());
            })*
            Err(exception(Error::Internal(format!("NumPy has no name for the type {}", tensor.dtype()))))
        }

        impl Room<'_> {
            /// Copies a tensor's elements there, which are as many and of the same type.
            pub(crate) fn fill(&mut self, tensor: &HostTensor) -> Result<(), Error> {
                let (found, filled) = match self {
                    $(Room::$name(to) => (to.len(), copied(to, tensor.elements())),)*
                };
                let wanted = || format!("{} of {}", tensor.dims().elements(), tensor.dtype());
                if filled { Ok(()) } else { Err(Error::input("outputs", format!("{found} elements"), wanted())) }
            }
        }
    };
}

types!(F32 f32, F16 f16, I64 i64, I32 i32, I16 i16, I8 i8, U32 u32, U16 u16, U8 u8, Bool bool);

fn copied<T: Copy>(to: &mut [T], from: Option<&[T]>) -> bool {
    match from {
        Some(from) if from.len() == to.len() => {
            to.copy_from_slice(from);
            true
        }
        _ => false,
    }
}

/// The elements of arrays, where they lie.
pub(crate) fn read<'a>(arrays: &'a [Array<'_>]) -> PyResult<Vec<Elements<'a>>> {
    arrays.iter().map(Array::elements).collect()
}

/// Room for outputs, where the arrays lie; none for those that nobody wants.
pub(crate) fn rooms<'a>(arrays: &'a mut [Option<Target<'_>>]) -> PyResult<Vec<Option<Room<'a>>>> {
    arrays.iter_mut().map(|array| array.as_mut().map(Target::room).transpose()).collect()
}

/// An array that is given to an input.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    dims: Dims,
    elements: Elements<'a>,
}

/// Arrays by the names of inputs.
pub(crate) fn named<'a>(arrays: &'a [(String, Array<'_>)]) -> PyResult<Vec<Named<'a>>> {
    let named = |(name, array): &'a (String, Array<'_>)| {
        let dims = Dims::new(array.shape()).map_err(exception)?;
        Ok(Named { name, dims, elements: array.elements()? })
    };
    arrays.iter().map(named).collect()
}

impl<'a> Named<'a> {
    /// A copy as a tensor: bytes of a picture as floats.
    pub(crate) fn tensor(self, pixels: &PixelsOf) -> Result<HostTensor, Error> {
        self.elements.scaled(self.name, self.dims, pixels)
    }

    /// What a run is given: floats where they lie, and copies of everything else.
    pub(crate) fn given(self, pixels: &PixelsOf) -> Result<Given<'a>, Error> {
        Ok(match self.elements {
            Elements::F32(elements) => Given::Floats(self.dims, elements),
            _ => Given::Tensor(self.tensor(pixels)?),
        })
    }
}

impl Elements<'_> {
    /// A copy as a tensor for an input: bytes of a picture as floats.
    pub(crate) fn scaled(self, name: &str, dims: Dims, pixels: &PixelsOf) -> Result<HostTensor, Error> {
        let tensor = self.tensor(dims)?;
        match self {
            Elements::U8(_) => Ok(pixels.scaled(name, &tensor)?.unwrap_or(tensor)),
            _ => Ok(tensor),
        }
    }
}

/// What a run is given for an input.
pub(crate) enum Given<'a> {
    Floats(Dims, &'a [f32]),
    Tensor(HostTensor),
}

impl Given<'_> {
    pub(crate) fn input(&self) -> RunInput<'_> {
        match self {
            Given::Floats(dims, elements) => (*dims, *elements).into(),
            Given::Tensor(tensor) => tensor.into(),
        }
    }
}

/// An array for an output, by its place.
pub(crate) type Placed<'py> = (usize, Target<'py>);

/// Copies outputs of a run to arrays, while other Python threads run. Nothing is copied if one has another shape or type.
pub(crate) fn fill(py: Python<'_>, outputs: &Outputs, given: &mut [Placed<'_>]) -> PyResult<()> {
    /// Where an output's elements come from.
    enum From<'a> {
        Floats(&'a [f32]),
        Tensor(HostTensor),
    }
    let mut copies = Vec::with_capacity(given.len());
    for (place, target) in given {
        let port = outputs.ports().get(*place).ok_or_else(|| exception(no_output(*place)))?;
        if target.shape() != port.dims.extents() {
            let name = format!("output '{}'", port.name);
            let found = format!("an array of shape {:?}", target.shape());
            return Err(exception(Error::input(name, found, format!("{:?}", port.dims.extents()))));
        }
        let from = match port.dtype {
            DType::F32 => From::Floats(outputs.get(*place).map_err(exception)?),
            _ => From::Tensor(outputs.tensor(*place).map_err(exception)?),
        };
        copies.push((port.name.as_str(), target.room()?, from));
    }
    let filled = py.detach(|| {
        copies.into_iter().try_for_each(|(name, mut room, from)| match (&mut room, from) {
            (Room::F32(to), From::Floats(from)) if to.len() == from.len() => {
                to.copy_from_slice(from);
                Ok(())
            }
            (_, From::Floats(_)) => Err(Error::input(format!("output '{name}'"), "another type", "float32")),
            (room, From::Tensor(tensor)) => room.fill(&tensor),
        })
    });
    filled.map_err(exception)
}

fn no_output(place: usize) -> Error {
    Error::Internal(format!("a run has no output {place}"))
}

/// Outputs of a run as new arrays, by their places. They are copied while other Python threads run.
pub(crate) fn outputs<'py>(
    py: Python<'py>,
    outputs: &Outputs,
    places: &[usize],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut arrays = Vec::with_capacity(places.len());
    let mut floats = Vec::new();
    for &index in places {
        let port = outputs.ports().get(index).ok_or_else(|| exception(no_output(index)))?;
        if port.dtype == DType::F32 {
            let array = PyArrayDyn::<f32>::zeros(py, port.dims.extents().to_vec(), false);
            floats.push((array.readwrite(), outputs.get(index).map_err(exception)?));
            arrays.push(array.into_any());
        } else {
            arrays.push(self::array(py, &outputs.tensor(index).map_err(exception)?)?);
        }
    }
    let mut copies = Vec::with_capacity(floats.len());
    for (array, from) in &mut floats {
        copies.push((array.as_slice_mut()?, *from));
    }
    let copied = py.detach(|| copies.into_iter().all(|(to, from)| copied(to, Some(from))));
    drop(floats);
    match copied {
        true => Ok(arrays),
        false => Err(exception(Error::Internal("outputs of other lengths than their ports".to_owned()))),
    }
}

/// Copies outputs to their rooms.
pub(crate) fn fill_all(rooms: &mut [Option<Room<'_>>], tensors: &[HostTensor]) -> Result<(), Error> {
    if rooms.len() != tensors.len() {
        return Err(Error::input("outputs", rooms.len().to_string(), tensors.len().to_string()));
    }
    let wanted = rooms.iter_mut().zip(tensors).filter_map(|(room, tensor)| Some((room.as_mut()?, tensor)));
    wanted.into_iter().try_for_each(|(room, tensor)| room.fill(tensor))
}
