//! The model with which `ort` copies tensors.
//!
//! `ort` clones a tensor, and copies it to another place, by a session of a model of one node `Identity`, which it has
//! in ONNX Runtime's own format, with the type of the elements written into it. It is known by its bytes.

use crate::status::{Failure, unsupported};
use ort_sys::ONNXTensorElementDataType as Element;

/// Where a file of this format has its identifier.
const IDENTIFIER: (std::ops::Range<usize>, &[u8]) = (4..8, b"ORTM");

/// The length of the model, and where it has the type of its elements.
const LENGTH: usize = 1032;
const TYPES: [usize; 2] = [544, 604];

/// The FNV-1a hash of all other bytes, with zeros in the place of the types.
const HASH: u64 = 0xd9b2_4e9e_7c04_b322;

const ELEMENTS: [Element; 13] = [
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
    Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
];

/// The type of the tensors that a model copies, if it is that one. Any other model of the format is an error.
pub(crate) fn element(bytes: &[u8]) -> Result<Option<Element>, Failure> {
    if bytes.get(IDENTIFIER.0) != Some(IDENTIFIER.1) {
        return Ok(None);
    }
    let kinds = TYPES.map(|at| bytes.get(at).copied().unwrap_or(0));
    let element = ELEMENTS.into_iter().find(|&own| kinds == [own as u8; 2]);
    if bytes.len() == LENGTH
        && hash(bytes) == HASH
        && let Some(element) = element
    {
        return Ok(Some(element));
    }
    Err(unsupported("a model in ONNX Runtime's own format", "give the ONNX file that it was made of"))
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().fold(0xcbf2_9ce4_8422_2325, |hash, (at, &byte)| {
        let byte = if TYPES.contains(&at) { 0 } else { byte };
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_models_of_the_format_are_refused() {
        assert_eq!(element(b"\x08\x07 an ONNX file").expect("no such file"), None);
        let mut model = vec![0; LENGTH];
        model[IDENTIFIER.0].copy_from_slice(IDENTIFIER.1);
        let refused = element(&model).expect_err("another model");
        assert_eq!(
            refused.message,
            "a model in ONNX Runtime's own format is not supported: give the ONNX file that it was made of"
        );
    }
}
