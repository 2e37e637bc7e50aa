//! Tensors in the host's memory.

use crate::element;
use crate::memory::{allocate, default_allocator, free, host};
use crate::pointers::{boxed, hand_out, own, put};
use crate::status::{Failure, calls, wrong};
use diptych::{DType, Dims, HostTensor, RunInput};
use diptych_pointers::slice;
use ort_sys::{
    ONNXTensorElementDataType, ONNXType, OrtAllocator, OrtEnv, OrtMemoryInfo, OrtSyncStream, OrtValue,
};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// A tensor, which bindings share with C.
#[derive(Debug)]
pub(crate) struct Value(pub(crate) Arc<Tensor>);

/// Elements with their type and extents, the last axis being the fastest.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) element: ONNXTensorElementDataType,
    pub(crate) extents: Vec<i64>,
    data: *mut u8,
    bytes: usize,
    /// What `data` is given back to; NULL if it is the caller's.
    owner: *mut OrtAllocator,
}

// SAFETY: the elements are plain numbers. Who reads and writes them when is the caller's part of the contract.
unsafe impl Send for Tensor {}
// SAFETY: the same.
unsafe impl Sync for Tensor {}

impl Drop for Tensor {
    fn drop(&mut self) {
        if !self.owner.is_null() {
            // SAFETY: the block is of this allocator, which lives longer than its blocks.
            let freed = unsafe { free(self.owner, self.data.cast()) };
            // An allocator without a function to free keeps what it gave.
            drop(freed);
        }
    }
}

/// How many elements there are, and their bytes.
fn size(element: ONNXTensorElementDataType, extents: &[i64]) -> Result<(usize, usize), Failure> {
    let each = element::bytes(element)?;
    let found = || wrong("shape", format!("{extents:?}"), "extents of at least 0 that memory can hold");
    let mut count = 1usize;
    for &extent in extents {
        let extent = usize::try_from(extent).map_err(|_| found())?;
        count = count.checked_mul(extent).ok_or_else(found)?;
    }
    let bytes = count.checked_mul(each).filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(found)?;
    Ok((count, bytes))
}

impl Tensor {
    /// A tensor of zeros in memory of an allocator.
    ///
    /// # Safety
    /// `allocator` is NULL, or one that may be called for as long as the tensor lives.
    pub(crate) unsafe fn of_zeros(
        allocator: *mut OrtAllocator,
        element: ONNXTensorElementDataType,
        extents: &[i64],
    ) -> Result<Self, Failure> {
        let (_, bytes) = size(element, extents)?;
        // SAFETY: the caller promises that `allocator` is NULL, or one that may be called; `allocate` refuses NULL.
        let data = unsafe { allocate(allocator, bytes) }?;
        // SAFETY: `allocate` gave a block of so many bytes, and no NULL.
        unsafe { data.write_bytes(0, bytes) };
        Ok(Tensor { element, extents: extents.to_vec(), data, bytes, owner: allocator })
    }

    /// Elements where they lie, given back to `owner` unless that is NULL.
    fn at(
        element: ONNXTensorElementDataType,
        extents: &[i64],
        data: *mut u8,
        found: usize,
        owner: *mut OrtAllocator,
    ) -> Result<Self, Failure> {
        let (_, bytes) = size(element, extents)?;
        if found < bytes {
            let wanted = format!("{bytes} for {} of shape {extents:?}", element::name(element));
            return Err(wrong("data", format!("{found} bytes"), wanted));
        }
        if data.is_null() && bytes > 0 {
            return Err(wrong("data", "NULL", "a pointer"));
        }
        Ok(Tensor { element, extents: extents.to_vec(), data, bytes, owner })
    }

    /// A copy of what a run gave.
    pub(crate) fn copy_of(dims: Dims, dtype: DType, bytes: &[u8]) -> Result<Self, Failure> {
        let extents: Vec<i64> = dims.extents().iter().map(|&extent| extent as i64).collect();
        // SAFETY: the default allocator lives as long as the program.
        let copy = unsafe { Tensor::of_zeros(default_allocator(), element::element(dtype)?, &extents) }?;
        // SAFETY: nobody else has the new tensor.
        unsafe { copy.write(bytes) }?;
        Ok(copy)
    }

    /// A tensor of zeros of another one's type and shape.
    pub(crate) fn zeros_like(other: &Tensor) -> Result<Self, Failure> {
        // SAFETY: the default allocator lives as long as the program.
        unsafe { Tensor::of_zeros(default_allocator(), other.element, &other.extents) }
    }

    /// The elements.
    ///
    /// # Safety
    /// Nobody writes them during `'a`.
    pub(crate) unsafe fn bytes<'a>(&self) -> &'a [u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: the tensor has so many bytes, not none (checked above), and so no NULL (`Tensor::at` and
        // `Tensor::of_zeros`); the caller promises that nobody writes them during `'a`.
        unsafe { std::slice::from_raw_parts(self.data, self.bytes) }
    }

    /// Writes all elements.
    ///
    /// # Safety
    /// Nobody reads or writes them meanwhile, and `bytes` is other memory.
    pub(crate) unsafe fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        // SAFETY: `bytes` may be read as a slice, and the caller promises that nobody else uses the tensor's elements
        // meanwhile; `write_from` refuses another length.
        unsafe { self.write_from(bytes.as_ptr(), bytes.len()) }
    }

    /// Writes all elements of another tensor, which may lie in the same memory: an application may give an input as the
    /// place of an output, and copy a tensor to where it is. So there is no `&[u8]` of them.
    ///
    /// # Safety
    /// Nobody else writes either tensor meanwhile, nor reads this one.
    pub(crate) unsafe fn copy(&self, other: &Tensor) -> Result<(), Failure> {
        // SAFETY: the other tensor has so many bytes (`Tensor::at` and `Tensor::of_zeros`), and the caller promises that
        // nobody else writes either tensor meanwhile, nor reads this one; `write_from` refuses another length.
        unsafe { self.write_from(other.data, other.bytes) }
    }

    /// Writes all elements.
    ///
    /// # Safety
    /// From `from` on so many bytes may be read, and nobody else uses those of the tensor meanwhile.
    unsafe fn write_from(&self, from: *const u8, bytes: usize) -> Result<(), Failure> {
        if bytes != self.bytes {
            return Err(wrong("tensor", format!("{bytes} bytes"), format!("{} bytes", self.bytes)));
        }
        if bytes > 0 {
            // SAFETY: the caller promises that so many bytes may be read from `from` on; the tensor has as many (checked
            // above). `copy` allows that they overlap.
            unsafe { std::ptr::copy(from, self.data, bytes) };
        }
        Ok(())
    }

    /// An error unless a run's output fits.
    pub(crate) fn must_fit(&self, name: &str, dims: Dims, dtype: DType) -> Result<(), Failure> {
        let element = element::element(dtype)?;
        let same = self.extents.iter().map(|&extent| usize::try_from(extent).ok());
        if self.element == element && same.eq(dims.extents().iter().map(|&extent| Some(extent))) {
            return Ok(());
        }
        let found = format!("a tensor of {} and shape {:?}", element::name(self.element), self.extents);
        let wanted = format!("{} and {:?}", element::name(element), dims.extents());
        Err(wrong(&format!("output {name:?}"), found, wanted))
    }
}

/// What an input of a run is given.
pub(crate) enum Given<'a> {
    Floats(Dims, &'a [f32]),
    Tensor(HostTensor),
}

impl<'a> Given<'a> {
    /// Whether numbers of a tensor are rounded where they are given to an input.
    pub(crate) fn rounds(tensor: &Tensor) -> bool {
        tensor.element == ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE
    }

    /// The elements of a tensor: floats where they lie, everything else copied.
    ///
    /// # Safety
    /// Nobody writes them during `'a`.
    pub(crate) unsafe fn of(name: &str, tensor: &Tensor) -> Result<Self, Failure> {
        let name = format!("input {name:?}");
        let mut extents = Vec::with_capacity(tensor.extents.len());
        for &extent in &tensor.extents {
            let wanted = || wrong(&name, format!("shape {:?}", tensor.extents), "extents of at least 0");
            extents.push(usize::try_from(extent).map_err(|_| wanted())?);
        }
        let dims = Dims::new(&extents)?;
        // SAFETY: the caller promises that nobody writes the tensor's elements during `'a`.
        let bytes: &'a [u8] = unsafe { tensor.bytes() };
        let (dtype, other) = element::held(&name, tensor.element, bytes)?;
        if dtype == DType::F32
            && other.is_none()
            && let Ok(floats) = bytemuck::try_cast_slice(bytes)
        {
            return Ok(Given::Floats(dims, floats));
        }
        let bytes = other.as_deref().unwrap_or(bytes);
        Ok(Given::Tensor(HostTensor::from_bytes(dims, dtype, bytes)?))
    }

    pub(crate) fn input(&self) -> RunInput<'_> {
        match self {
            Given::Floats(dims, elements) => (*dims, *elements).into(),
            Given::Tensor(tensor) => tensor.into(),
        }
    }
}

/// A new handle of a tensor.
pub(crate) fn handle(tensor: &Arc<Tensor>) -> *mut OrtValue {
    boxed(Value(Arc::clone(tensor)))
}

calls! {
    fn CreateTensorAsOrtValue(
        allocator: *mut OrtAllocator,
        shape: *const i64,
        rank: usize,
        element: ONNXTensorElementDataType,
        out: *mut *mut OrtValue,
    ) {
        let tensor = Tensor::of_zeros(allocator, element, slice("shape", shape, rank)?)?;
        hand_out(out, Value(Arc::new(tensor)))
    }

    fn CreateTensorWithDataAsOrtValue(
        info: *const OrtMemoryInfo,
        data: *mut c_void,
        bytes: usize,
        shape: *const i64,
        rank: usize,
        element: ONNXTensorElementDataType,
        out: *mut *mut OrtValue,
    ) {
        own(info)?.must_be_host()?;
        let tensor = Tensor::at(element, slice("shape", shape, rank)?, data.cast(), bytes, null_mut())?;
        hand_out(out, Value(Arc::new(tensor)))
    }

    fn CreateTensorWithDataAndDeleterAsOrtValue(
        deleter: *mut OrtAllocator,
        data: *mut c_void,
        bytes: usize,
        shape: *const i64,
        rank: usize,
        element: ONNXTensorElementDataType,
        out: *mut *mut OrtValue,
    ) {
        if deleter.is_null() {
            return Err(wrong("deleter", "NULL", "a pointer"));
        }
        let tensor = Tensor::at(element, slice("shape", shape, rank)?, data.cast(), bytes, deleter)?;
        hand_out(out, Value(Arc::new(tensor)))
    }

    fn IsTensor(value: *const OrtValue, out: *mut c_int) {
        own(value)?;
        put("out", out, 1)
    }

    fn IsSparseTensor(value: *const OrtValue, out: *mut c_int) {
        own(value)?;
        put("out", out, 0)
    }

    fn HasValue(value: *const OrtValue, out: *mut c_int) {
        own(value)?;
        put("out", out, 1)
    }

    fn GetValueType(value: *const OrtValue, out: *mut ONNXType) {
        own(value)?;
        put("out", out, ONNXType::ONNX_TYPE_TENSOR)
    }

    fn GetTensorMutableData(value: *mut OrtValue, out: *mut *mut c_void) {
        put("out", out, own(value)?.0.data.cast())
    }

    fn GetTensorData(value: *const OrtValue, out: *mut *const c_void) {
        put("out", out, own(value)?.0.data.cast_const().cast())
    }

    fn GetTensorSizeInBytes(value: *const OrtValue, out: *mut usize) {
        put("out", out, own(value)?.0.bytes)
    }

    fn GetTensorMemoryInfo(value: *const OrtValue, out: *mut *const OrtMemoryInfo) {
        own(value)?;
        put("out", out, host())
    }

    fn GetTensorElementTypeAndShapeDataReference(
        value: *const OrtValue,
        element: *mut ONNXTensorElementDataType,
        shape: *mut *const i64,
        rank: *mut usize,
    ) {
        let tensor = &own(value)?.0;
        put("element type", element, tensor.element)?;
        put("shape", shape, tensor.extents.as_ptr())?;
        put("rank", rank, tensor.extents.len())
    }

    fn TensorAt(value: *mut OrtValue, place: *const i64, rank: usize, out: *mut *mut c_void) {
        let tensor = &own(value)?.0;
        let place = slice("place", place, rank)?;
        let within = place.len() == tensor.extents.len()
            && place.iter().zip(&tensor.extents).all(|(at, extent)| (0..*extent).contains(at));
        if !within {
            return Err(wrong("place", format!("{place:?}"), format!("one in shape {:?}", tensor.extents)));
        }
        let at = place.iter().zip(&tensor.extents).fold(0, |at, (own, extent)| at * extent + own);
        let offset = at as usize * element::bytes(tensor.element)?;
        // The place is within the shape, and so the offset within the elements.
        put("out", out, tensor.data.add(offset).cast())
    }

    fn CopyTensors(
        env: *mut OrtEnv,
        from: *const *const OrtValue,
        to: *mut *const OrtValue,
        stream: *mut OrtSyncStream,
        count: usize,
    ) {
        own(env)?;
        if !stream.is_null() {
            return Err(crate::status::unsupported("a stream", "all values lie in the host's memory"));
        }
        let to = slice("destinations", to.cast_const(), count)?;
        for (&from, &to) in slice("sources", from, count)?.iter().zip(to) {
            let (from, to) = (&own(from)?.0, &own(to)?.0);
            if (from.element, &from.extents) != (to.element, &to.extents) {
                let show = |tensor: &Tensor| format!("{} of {:?}", element::name(tensor.element), tensor.extents);
                return Err(wrong("destination", show(to), show(from)));
            }
            to.copy(from)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_is_copied_onto_itself_and_onto_its_neighbour() {
        // On Miri this checks as well that no `&[u8]` of the memory lives while it is written.
        let mut memory = [1.0f32, 2.0, 3.0];
        let data = memory.as_mut_ptr();
        let float = ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
        let at = |place: usize, count: usize| {
            Tensor::at(float, &[count as i64], data.wrapping_add(place).cast(), 4 * count, null_mut())
        };
        let (first, again, last) =
            (at(0, 2).expect("a tensor"), at(0, 2).expect("a tensor"), at(1, 2).expect("a tensor"));
        // SAFETY: nobody else uses the memory.
        unsafe { first.copy(&again) }.expect("the same");
        // SAFETY: the same.
        unsafe { last.copy(&first) }.expect("one element on");
        // SAFETY: the same.
        let error = unsafe { last.copy(&at(0, 1).expect("a tensor")) }.expect_err("another length");
        assert_eq!(error.message, "tensor: found 4 bytes, wanted 8 bytes");
        assert_eq!(memory, [1.0, 1.0, 2.0]);
    }
}
