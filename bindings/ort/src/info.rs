//! Types and shapes.

use crate::element;
use crate::pointers::{hand_out, own, own_mut, put};
use crate::status::{Failure, calls, wrong};
use diptych::{DType, OpenAxis};
use diptych_pointers::{c_text, fill_from, out_slice, slice, texts};
use ort_sys::{
    ONNXTensorElementDataType, ONNXType, OrtMapTypeInfo, OrtOptionalTypeInfo, OrtSequenceTypeInfo,
    OrtTensorTypeAndShapeInfo, OrtTypeInfo, OrtValue,
};
use std::ffi::{CString, c_char};
use std::ptr::null;

/// The type and shape of a tensor.
#[derive(Debug, Clone)]
pub(crate) struct Info {
    element: ONNXTensorElementDataType,
    /// -1 for an extent that each run decides. Nothing where the rank is not known.
    extents: Option<Vec<i64>>,
    /// A name for each extent, empty where it has none.
    symbols: Vec<CString>,
}

impl Info {
    /// The type and shape of a port of a model.
    pub(crate) fn of_port(
        name: &str,
        dtype: DType,
        extents: Option<Vec<Option<usize>>>,
        open: &[OpenAxis],
    ) -> Result<Self, Failure> {
        let count = extents.as_ref().map_or(0, Vec::len);
        let symbol = |axis: usize| {
            let named = open.iter().find(|own| own.axis == axis).map_or("", |own| &own.name);
            // A name that Diptych made, for the file has none.
            c_text(if named == format!("{name}.{axis}") { "" } else { named })
        };
        let symbols = (0..count).map(symbol).collect();
        let extent = |own: Option<usize>| own.map_or(-1, |extent| extent as i64);
        let extents = extents.map(|extents| extents.into_iter().map(extent).collect());
        Ok(Info { element: element::element(dtype)?, extents, symbols })
    }

    /// The type of any tensor whose elements are of type `element`; its rank is not known.
    pub(crate) fn of_any(element: ONNXTensorElementDataType) -> Self {
        Info { element, extents: None, symbols: Vec::new() }
    }

    /// The type and shape of a value.
    ///
    /// # Safety
    /// `value` is NULL, or a value of this table.
    unsafe fn of_value(value: *const OrtValue) -> Result<Self, Failure> {
        // SAFETY: the caller promises that `value` is NULL, or of this table and not released; `own` refuses NULL.
        let tensor = &unsafe { own(value) }?.0;
        let symbols = vec![CString::default(); tensor.extents.len()];
        Ok(Info { element: tensor.element, extents: Some(tensor.extents.clone()), symbols })
    }

    fn extents(&self) -> &[i64] {
        self.extents.as_deref().unwrap_or_default()
    }
}

calls! {
    fn GetOnnxTypeFromTypeInfo(info: *const OrtTypeInfo, out: *mut ONNXType) {
        own(info)?;
        put("out", out, ONNXType::ONNX_TYPE_TENSOR)
    }

    /// What C is given lives as long as `info`, and is not released by itself.
    fn CastTypeInfoToTensorInfo(info: *const OrtTypeInfo, out: *mut *const OrtTensorTypeAndShapeInfo) {
        own(info)?;
        put("out", out, info.cast())
    }

    fn CastTypeInfoToMapTypeInfo(info: *const OrtTypeInfo, out: *mut *const OrtMapTypeInfo) {
        own(info)?;
        put("out", out, null())
    }

    fn CastTypeInfoToSequenceTypeInfo(info: *const OrtTypeInfo, out: *mut *const OrtSequenceTypeInfo) {
        own(info)?;
        put("out", out, null())
    }

    fn CastTypeInfoToOptionalTypeInfo(info: *const OrtTypeInfo, out: *mut *const OrtOptionalTypeInfo) {
        own(info)?;
        put("out", out, null())
    }

    fn GetDenotationFromTypeInfo(info: *const OrtTypeInfo, denotation: *mut *const c_char, length: *mut usize) {
        own(info)?;
        put("denotation", denotation, c"".as_ptr())?;
        put("length", length, 0)
    }

    fn GetTypeInfo(value: *const OrtValue, out: *mut *mut OrtTypeInfo) {
        hand_out(out, Info::of_value(value)?)
    }

    fn GetTensorTypeAndShape(value: *const OrtValue, out: *mut *mut OrtTensorTypeAndShapeInfo) {
        hand_out(out, Info::of_value(value)?)
    }

    fn CreateTensorTypeAndShapeInfo(out: *mut *mut OrtTensorTypeAndShapeInfo) {
        hand_out(out, Info::of_any(ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED))
    }

    fn SetTensorElementType(info: *mut OrtTensorTypeAndShapeInfo, element: ONNXTensorElementDataType) {
        own_mut(info)?.element = element;
        Ok(())
    }

    fn SetDimensions(info: *mut OrtTensorTypeAndShapeInfo, extents: *const i64, count: usize) {
        let info = own_mut(info)?;
        info.extents = Some(slice("dimensions", extents, count)?.to_vec());
        info.symbols.resize(count, CString::default());
        Ok(())
    }

    fn SetSymbolicDimensions(info: *mut OrtTensorTypeAndShapeInfo, names: *mut *const c_char, count: usize) {
        let info = own_mut(info)?;
        let wanted = info.extents().len();
        if count != wanted {
            return Err(wrong("symbolic dimensions", format!("{count} of them"), format!("{wanted}")));
        }
        info.symbols = texts("symbolic dimensions", names.cast_const(), count)?.into_iter().map(c_text).collect();
        Ok(())
    }

    fn GetTensorElementType(info: *const OrtTensorTypeAndShapeInfo, out: *mut ONNXTensorElementDataType) {
        put("out", out, own(info)?.element)
    }

    fn GetDimensionsCount(info: *const OrtTensorTypeAndShapeInfo, out: *mut usize) {
        put("out", out, own(info)?.extents().len())
    }

    fn GetDimensions(info: *const OrtTensorTypeAndShapeInfo, extents: *mut i64, count: usize) {
        let own = own(info)?.extents();
        fill_from(out_slice("dimensions", extents, count)?, own.iter().copied());
        Ok(())
    }

    /// The texts live as long as `info`.
    fn GetSymbolicDimensions(info: *const OrtTensorTypeAndShapeInfo, names: *mut *const c_char, count: usize) {
        let own = &own(info)?.symbols;
        fill_from(out_slice("symbolic dimensions", names, count)?, own.iter().map(|name| name.as_ptr()));
        Ok(())
    }

    /// The largest number where an extent is not known, as ONNX Runtime has it.
    fn GetTensorShapeElementCount(info: *const OrtTensorTypeAndShapeInfo, out: *mut usize) {
        let mut extents = own(info)?.extents().iter().map(|&extent| usize::try_from(extent).ok());
        let product = extents.try_fold(1usize, |product, extent| product.checked_mul(extent?));
        put("out", out, product.unwrap_or(usize::MAX))
    }
}

pub(crate) unsafe extern "system" fn TensorTypeAndShape_HasShape(
    info: *const OrtTensorTypeAndShapeInfo,
) -> bool {
    // SAFETY: the caller promises that `info` is NULL, or of this table and not released; `own` refuses NULL.
    unsafe { own(info) }.is_ok_and(|info| info.extents.is_some())
}
