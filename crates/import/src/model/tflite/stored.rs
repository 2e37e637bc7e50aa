//! The elements of constants, as a file stores them.

use super::constant::{Constant, Integers, dims_of, elements_of};
use super::names::{self, element};
use super::schema::{Quantization, Tensor};
use super::sparse;
use super::tables::at;
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::model::budget::Budget;
use crate::model::numbers::{copied, each};
use crate::model::reason::Reason;
use half::f16;
use std::sync::Arc;

/// Whether the integers of a tensor stand for floats.
pub(super) fn is_quantised(tensor: &Tensor<'_>) -> bool {
    let scales = tensor.quantization().and_then(|quantization| quantization.scale());
    let integers =
        [element::INT8, element::UINT8, element::INT16, element::INT32, element::INT64, element::INT4];
    integers.contains(&tensor.element_type()) && scales.is_some_and(|scales| !scales.is_empty())
}

/// Elements as they are stored.
pub(super) enum Stored {
    F32(Arc<[f32]>),
    F16(Arc<[f16]>),
    Integers(Vec<i64>),
}

pub(super) fn read(
    tensor: &Tensor<'_>,
    extents: &[usize],
    bytes: &[u8],
    budget: &mut Budget,
) -> Result<Constant, Reason> {
    let elements = elements_of(extents)?;
    let kind = tensor.element_type();
    let wanted = match (tensor.sparsity(), kind) {
        (Some(_), _) => None,
        (None, element::INT4) => Some(elements.div_ceil(2)),
        (None, _) => width(kind)?.checked_mul(elements),
    };
    if tensor.sparsity().is_none() && wanted != Some(bytes.len()) {
        let shape = extents.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        return refused!(
            "found {} bytes, wanted {} for shape {shape} in {}",
            bytes.len(),
            wanted.map_or_else(|| "fewer elements (32-bit indices)".to_owned(), |bytes| bytes.to_string()),
            names::element_type(kind)
        );
    }
    budget.spend(bytes.len())?;
    let quantised = tensor.quantization().filter(|_| is_quantised(tensor));
    let mut stored = decode(kind, bytes, elements, budget)?;
    if let Some(sparsity) = tensor.sparsity() {
        let zero = quantised.and_then(|q| q.zero_point()).and_then(|zeros| at(zeros, 0)).unwrap_or(0);
        stored = match stored {
            Stored::F32(v) => Stored::F32(sparse::densify(&sparsity, extents, &v, 0.0, budget)?.into()),
            Stored::F16(v) => Stored::F16(sparse::densify(&sparsity, extents, &v, f16::ZERO, budget)?.into()),
            Stored::Integers(v) => Stored::Integers(sparse::densify(&sparsity, extents, &v, zero, budget)?),
        };
    }
    let tensor = match (stored, quantised) {
        (Stored::F32(values), _) => HostTensor::new(dims_of(extents)?, values),
        (Stored::F16(values), _) => HostTensor::from_f16(dims_of(extents)?, Layout::Nhwc, values),
        (Stored::Integers(values), Some(quantization)) => {
            let values = dequantise(&quantization, extents, &values, budget)?;
            let scales: Vec<f32> =
                quantization.scale().map_or_else(Vec::new, |scales| scales.iter().collect());
            let axis = if scales.len() == 1 { 0 } else { usize::try_from(quantization.axis()).unwrap_or(0) };
            let positive = scales.iter().all(|&scale| scale > 0.0 && scale.is_finite());
            let tensor = HostTensor::new(dims_of(extents)?, values);
            tensor.map(|tensor| if positive { tensor.with_scales(scales, axis) } else { tensor })
        }
        (Stored::Integers(values), None) => {
            return Ok(Constant::Integers(Integers::new(extents.to_vec(), values)));
        }
    };
    tensor.map(Constant::Floats).map_err(Reason::from)
}

/// The bytes of an element.
fn width(kind: i8) -> Result<usize, Reason> {
    match kind {
        element::BOOL | element::INT8 | element::UINT8 => Ok(1),
        element::FLOAT16 | element::BFLOAT16 | element::INT16 | element::UINT16 => Ok(2),
        element::FLOAT32 | element::INT32 | element::UINT32 => Ok(4),
        element::FLOAT64 | element::INT64 => Ok(8),
        other => refused!("found a constant of {}, wanted numbers", names::element_type(other)),
    }
}

pub(super) fn decode(kind: i8, bytes: &[u8], elements: usize, budget: &mut Budget) -> Result<Stored, Reason> {
    let integers = |values: Vec<i64>| Stored::Integers(values);
    if !matches!(kind, element::FLOAT32 | element::FLOAT16) {
        budget.spend(bytes.len().saturating_mul(8))?;
    }
    Ok(match kind {
        element::FLOAT32 => Stored::F32(copied(bytes, f32::from_le_bytes)),
        element::FLOAT16 => Stored::F16(copied(bytes, f16::from_le_bytes)),
        element::FLOAT64 => Stored::F32(each(bytes, |chunk| f64::from_le_bytes(chunk) as f32).into()),
        element::BFLOAT16 => {
            Stored::F32(each(bytes, |[low, high]| f32::from_le_bytes([0, 0, low, high])).into())
        }
        element::BOOL => integers(each(bytes, |[byte]| i64::from(byte != 0))),
        element::UINT8 => integers(each(bytes, |[byte]| i64::from(byte))),
        element::INT8 => integers(each(bytes, |chunk| i64::from(i8::from_le_bytes(chunk)))),
        element::INT16 => integers(each(bytes, |chunk| i64::from(i16::from_le_bytes(chunk)))),
        element::UINT16 => integers(each(bytes, |chunk| i64::from(u16::from_le_bytes(chunk)))),
        element::INT32 => integers(each(bytes, |chunk| i64::from(i32::from_le_bytes(chunk)))),
        element::UINT32 => integers(each(bytes, |chunk| i64::from(u32::from_le_bytes(chunk)))),
        element::INT64 => integers(each(bytes, i64::from_le_bytes)),
        // Two in a byte, the first one in the low half; in two's complement.
        element::INT4 => {
            let halves = bytes.iter().flat_map(|&byte| [byte << 4, byte]);
            integers(halves.map(|half| i64::from(half as i8 >> 4)).take(elements).collect())
        }
        other => return refused!("found a constant of {}, wanted numbers", names::element_type(other)),
    })
}

/// `scale * (q - zero)`, with one scale for all, or one for each index along an axis.
fn dequantise(
    quantization: &Quantization<'_>,
    extents: &[usize],
    values: &[i64],
    budget: &mut Budget,
) -> Result<Vec<f32>, Reason> {
    let scales: Vec<f32> = quantization.scale().map_or_else(Vec::new, |scales| scales.iter().collect());
    let zeros: Vec<i64> = quantization.zero_point().map_or_else(Vec::new, |zeros| zeros.iter().collect());
    budget.spend(4 * (values.len() + scales.len() + 2 * zeros.len()))?;
    let axis = usize::try_from(quantization.axis()).unwrap_or(usize::MAX);
    let (along, inner) = match (scales.len(), extents.get(axis)) {
        (1, _) => (1, values.len().max(1)),
        (count, Some(&extent)) if count == extent => (extent, extents[axis + 1..].iter().product()),
        (count, _) => {
            return refused!(
                "found {count} scales along axis {axis} of {extents:?}, wanted one for each index"
            );
        }
    };
    if !matches!(zeros.len(), 0 | 1) && zeros.len() != along {
        return refused!("found {} zero points, wanted 1 or {along}", zeros.len());
    }
    let zero = |index: usize| zeros.get(if zeros.len() == 1 { 0 } else { index }).copied().unwrap_or(0);
    let real = |(at, &value): (usize, &i64)| {
        let index = at / inner % along;
        scales[index] * value.saturating_sub(zero(index)) as f32
    };
    Ok(values.iter().enumerate().map(real).collect())
}
