//! NumPy's arrays of every type that tensors have.

use crate::errors::exception;
use diptych::{DType, Dims, Error, HostTensor, Port, RunInput};
use half::f16;
use numpy::{PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArrayMethods};
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

        impl Room<'_> {
            /// Copies a tensor's elements there, which are as many and of the same type; to floats of any type.
            pub(crate) fn fill(&mut self, tensor: &HostTensor) -> Result<(), Error> {
                let (found, filled) = match self {
                    Room::F32(to) if tensor.dtype() != DType::F32 => (to.len(), copied(to, Some(&tensor.to_f32()))),
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

impl<'a> Elements<'a> {
    /// The elements, if they are of f32.
    pub(crate) fn floats(self) -> Option<&'a [f32]> {
        if let Elements::F32(elements) = self { Some(elements) } else { None }
    }
}

/// The elements of arrays, where they lie.
pub(crate) fn read<'a>(arrays: &'a [Array<'_>]) -> PyResult<Vec<Elements<'a>>> {
    arrays.iter().map(Array::elements).collect()
}

/// Room for outputs, where the arrays lie.
pub(crate) fn rooms<'a>(arrays: &'a mut [Target<'_>]) -> PyResult<Vec<Room<'a>>> {
    arrays.iter_mut().map(Target::room).collect()
}

/// What a run is given: floats where they lie, and copies of everything else.
pub(crate) enum Given<'a> {
    Slice(&'a [f32]),
    Tensor(HostTensor),
}

impl<'a> Given<'a> {
    pub(crate) fn of(elements: Elements<'a>, port: &Port) -> Result<Self, Error> {
        Ok(match elements {
            Elements::F32(elements) => Given::Slice(elements),
            other => Given::Tensor(other.tensor(port.dims)?),
        })
    }

    pub(crate) fn input(&self) -> RunInput<'_> {
        match self {
            Given::Slice(elements) => (*elements).into(),
            Given::Tensor(tensor) => tensor.into(),
        }
    }
}

/// Room for floats alone, by the outputs' names; nothing if an array has another type.
pub(crate) fn of_floats<'a, 'b>(
    names: impl Iterator<Item = &'a str>,
    rooms: &'b mut [Room<'_>],
) -> Option<Vec<(&'a str, &'b mut [f32])>> {
    let floats =
        rooms.iter_mut().map(|room| if let Room::F32(room) = room { Some(&mut **room) } else { None });
    names.zip(floats).map(|(name, room)| Some((name, room?))).collect()
}

/// Copies outputs to their rooms.
pub(crate) fn fill_all(rooms: &mut [Room<'_>], tensors: &[HostTensor]) -> Result<(), Error> {
    if rooms.len() != tensors.len() {
        return Err(Error::input("outputs", rooms.len().to_string(), tensors.len().to_string()));
    }
    rooms.iter_mut().zip(tensors).try_for_each(|(room, tensor)| room.fill(tensor))
}
