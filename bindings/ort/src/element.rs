//! The types of elements, and numbers of types that Diptych does not have.

use crate::status::{Failure, unsupported, wrong};
use diptych::DType;
use half::bf16;
use ort_sys::ONNXTensorElementDataType as Element;

/// The type of ONNX Runtime's for one of Diptych's.
pub(crate) fn element(dtype: DType) -> Result<Element, Failure> {
    Ok(match dtype {
        DType::F32 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        DType::F16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
        DType::I64 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        DType::I32 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
        DType::I16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
        DType::I8 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
        DType::U32 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
        DType::U16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
        DType::U8 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
        DType::Bool => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
        other => {
            return Err(unsupported(format!("elements of type {other}"), "ONNX Runtime has no such type"));
        }
    })
}

/// The bytes of an element.
pub(crate) fn bytes(element: Element) -> Result<usize, Failure> {
    use Element as E;
    Ok(match element {
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8
        | E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8
        | E::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL => 1,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16
        | E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16
        | E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16
        | E::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 => 2,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
        | E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32
        | E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 => 4,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64
        | E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64
        | E::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE => 8,
        other => {
            let what = format!("a tensor of {}", name(other));
            return Err(unsupported(what, "wanted floats of 16, 32 or 64 bits, integers or booleans"));
        }
    })
}

/// A type's name, as ONNX writes it.
pub(crate) fn name(element: Element) -> String {
    let name = format!("{element:?}");
    name.strip_prefix("ONNX_TENSOR_ELEMENT_DATA_TYPE_").unwrap_or(&name).to_ascii_lowercase()
}

/// The type of Diptych's that holds an input's numbers, and their bytes in it where they are not the same bytes:
/// f64 is rounded to f32, bf16 is widened, and u64 must fit i64.
pub(crate) fn held(what: &str, element: Element, bytes: &[u8]) -> Result<(DType, Option<Vec<u8>>), Failure> {
    use Element as E;
    let dtype = match element {
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT => DType::F32,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 => DType::F16,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 => DType::I64,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 => DType::I32,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 => DType::I16,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 => DType::I8,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 => DType::U32,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 => DType::U16,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 => DType::U8,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL => DType::Bool,
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE => {
            let rounded = |chunk: &[u8; 8]| (f64::from_ne_bytes(*chunk) as f32).to_ne_bytes();
            return Ok((DType::F32, Some(bytes.as_chunks().0.iter().flat_map(rounded).collect())));
        }
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 => {
            let widened = |chunk: &[u8; 2]| bf16::from_ne_bytes(*chunk).to_f32().to_ne_bytes();
            return Ok((DType::F32, Some(bytes.as_chunks().0.iter().flat_map(widened).collect())));
        }
        E::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 => {
            let values = bytes.as_chunks().0.iter().map(|chunk| u64::from_ne_bytes(*chunk));
            if let Some(large) = values.clone().find(|&value| i64::try_from(value).is_err()) {
                return Err(wrong(what, format!("{large}"), format!("at most {}", i64::MAX)));
            }
            return Ok((DType::I64, Some(bytes.to_vec())));
        }
        other => {
            return Err(wrong(what, format!("elements of type {}", name(other)), "numbers or booleans"));
        }
    };
    Ok((dtype, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_types_that_diptych_does_not_have_are_held_by_another_one() {
        let held = |element, bytes: &[u8]| held("x", element, bytes);
        let double = Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE;
        let (dtype, floats) = held(double, &(1.0f64 / 3.0).to_ne_bytes()).expect("a number");
        assert_eq!((dtype, floats), (DType::F32, Some((1.0f32 / 3.0).to_ne_bytes().to_vec())));
        let brief = Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
        let (dtype, floats) = held(brief, &0xc020u16.to_ne_bytes()).expect("a number");
        assert_eq!((dtype, floats), (DType::F32, Some((-2.5f32).to_ne_bytes().to_vec())));
        let long = Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64;
        assert_eq!(held(long, &7u64.to_ne_bytes()).expect("a number").1, Some(7i64.to_ne_bytes().to_vec()));
        let refused = held(long, &u64::MAX.to_ne_bytes()).expect_err("too large");
        assert_eq!(refused.message, "x: found 18446744073709551615, wanted at most 9223372036854775807");
    }

    #[test]
    fn each_type_of_diptych_has_one_of_its_size() {
        for dtype in DType::ALL {
            let element = element(dtype).expect("a type");
            assert_eq!(bytes(element).expect("a size"), dtype.bytes(), "{dtype}");
            assert_eq!(held("x", element, &[]).expect("the same").0, dtype);
        }
        let refused = bytes(Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING).expect_err("no numbers");
        assert!(refused.message.starts_with("a tensor of string is not supported"), "{}", refused.message);
    }
}
