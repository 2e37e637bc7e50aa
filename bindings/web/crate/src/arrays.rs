//! JavaScript's typed arrays as tensors, and back.

use crate::error;
#[cfg(feature = "gpu")]
use diptych::Port;
use diptych::{DType, Dims, FileInput, HostTensor};
use js_sys::{
    Array, BigInt64Array, Float32Array, Int8Array, Int16Array, Int32Array, Reflect, Uint8Array,
    Uint8ClampedArray, Uint16Array, Uint32Array,
};
use wasm_bindgen::prelude::*;

/// The array for a type.
fn wanted(dtype: DType) -> &'static str {
    match dtype {
        DType::I64 => "BigInt64Array",
        DType::I32 => "Int32Array",
        DType::I16 => "Int16Array",
        DType::I8 => "Int8Array",
        DType::U32 => "Uint32Array",
        DType::U16 => "Uint16Array",
        DType::U8 | DType::Bool => "Uint8Array",
        _ => "Float32Array",
    }
}

/// The extents of what is given for an input: those that it says; else the file's, of which one may be open, because the
/// number of elements says what it is.
pub(crate) fn dims(own: &FileInput, value: &JsValue, said: &JsValue) -> Result<Dims, JsValue> {
    let name = &own.name;
    if let Some(said) = said.dyn_ref::<Array>() {
        let extents = said.iter().map(|extent| match extent.as_f64() {
            Some(whole) if whole >= 0.0 && whole.trunc() == whole && whole < f64::from(u32::MAX) => {
                Ok(whole as usize)
            }
            _ => Err(error(format!("input {name:?}: found the extent {extent:?}, wanted a whole number"))),
        });
        return Dims::new(&extents.collect::<Result<Vec<usize>, JsValue>>()?).map_err(error);
    }
    let open = |found: String| error(format!("input {name:?}: found {found}, wanted {{ data, dims }}"));
    let extents = own.extents.as_ref().ok_or_else(|| open("data of any number of extents".to_owned()))?;
    if own.open.len() > 1 {
        let names: Vec<&str> = own.open.iter().map(|open| open.name.as_str()).collect();
        return Err(open(format!("data without the extents {}", names.join(", "))));
    }
    let elements =
        Reflect::get(value, &"length".into()).ok().and_then(|length| length.as_f64()).unwrap_or(0.0);
    let fixed: usize = extents.iter().flatten().product();
    let rest = (elements as usize).checked_div(fixed).unwrap_or(0);
    Dims::new(&extents.iter().map(|extent| extent.unwrap_or(rest)).collect::<Vec<_>>()).map_err(error)
}

/// The elements of a typed array, for an input of this name and type.
pub(crate) fn tensor(own: (&str, DType), dims: Dims, value: &JsValue) -> Result<HostTensor, JsValue> {
    let (name, dtype) = own;
    macro_rules! first_of {
        ($($array:ty)*) => {
            $(if let Some(array) = value.dyn_ref::<$array>() {
                counted(name, dims, array.length())?;
                return HostTensor::of(dims, array.to_vec()).map_err(error);
            })*
        };
    }
    if dtype == DType::Bool
        && let Some(array) = value.dyn_ref::<Uint8Array>()
    {
        counted(name, dims, array.length())?;
        return HostTensor::from_bytes(dims, DType::Bool, &array.to_vec()).map_err(error);
    }
    first_of!(
        Float32Array BigInt64Array Int32Array Int16Array Int8Array Uint32Array Uint16Array Uint8Array Uint8ClampedArray
    );
    Err(error(format!("input {name:?}: found another type, wanted a {}", wanted(dtype))))
}

fn counted(name: &str, dims: Dims, found: u32) -> Result<(), JsValue> {
    let wanted = dims.elements();
    if found as usize == wanted {
        return Ok(());
    }
    Err(error(format!("input {name:?}: found {found} values, wanted {wanted} ({dims})")))
}

/// An output as the typed array for its type: a `Float32Array` of halves too, and a `Uint8Array` of 0 and 1 of booleans.
pub(crate) fn array(output: &HostTensor) -> JsValue {
    macro_rules! first_of {
        ($($array:ident $ty:ty),*) => {
            $(if let Some(elements) = output.elements::<$ty>() {
                return $array::from(elements).into();
            })*
        };
    }
    first_of!(
        Float32Array f32, BigInt64Array i64, Int32Array i32, Int16Array i16, Int8Array i8, Uint32Array u32,
        Uint16Array u16, Uint8Array u8
    );
    if output.dtype() == DType::Bool {
        return Uint8Array::from(output.bytes()).into();
    }
    Float32Array::from(&*output.to_f32()).into()
}

/// The words of 32 bits that a device's buffer holds of an input: integers of 32 and 64 bits as integers of 32, everything
/// else as f32.
#[cfg(feature = "gpu")]
pub(crate) fn words(port: &Port, tensor: &HostTensor) -> Result<Vec<u8>, JsValue> {
    let range = match port.dtype {
        DType::I64 | DType::I32 => [i64::from(i32::MIN), i64::from(i32::MAX)],
        DType::U32 => [0, i64::from(u32::MAX)],
        _ => return Ok(tensor.to_f32().iter().flat_map(|value| value.to_le_bytes()).collect()),
    };
    let integers = match tensor.to_i64() {
        Some(integers) => integers.into_owned(),
        None => {
            let whole = |(place, &value): (usize, &f32)| match value.trunc() == value && value.abs() < 9.3e18
            {
                true => Ok(value as i64),
                false => Err(misfit(port, value, place)),
            };
            tensor.to_f32().iter().enumerate().map(whole).collect::<Result<Vec<i64>, JsValue>>()?
        }
    };
    let mut bytes = Vec::with_capacity(4 * integers.len());
    for (place, integer) in integers.into_iter().enumerate() {
        if integer < range[0] || integer > range[1] {
            return Err(misfit(port, integer, place));
        }
        // The lowest 32 bits, which are all that are not the sign.
        bytes.extend((integer as u32).to_le_bytes());
    }
    Ok(bytes)
}

#[cfg(feature = "gpu")]
fn misfit(port: &Port, value: impl std::fmt::Display, place: usize) -> JsValue {
    let wanted = match port.dtype {
        DType::U32 => "a number of u32",
        _ => "an integer of 32 bits, which is what a GPU has",
    };
    error(format!("input {:?}: found {value} at element {place}, wanted {wanted}", port.name))
}
