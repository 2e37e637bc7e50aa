//! Tensors in host memory.

use crate::alloc;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::shape::Shape;
use half::f16;
use std::borrow::Cow;
use std::sync::Arc;

/// The elements of a [`HostTensor`].
#[derive(Debug, Clone, PartialEq)]
enum Data {
    F32(Arc<[f32]>),
    F16(Arc<[f16]>),
}

/// A feature map or a matrix in host memory, in [`Layout::Nhwc`] or [`Layout::Nchw`].
///
/// Cloning is cheap: the elements are shared and immutable.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTensor {
    dims: Dims,
    layout: Layout,
    data: Data,
}

impl HostTensor {
    /// A tensor of `shape` in NHWC order.
    ///
    /// ```
    /// use diptych::{HostTensor, Shape};
    ///
    /// let pixels = HostTensor::new(Shape::nhwc(1, 2, 2, 1), vec![0.0, 0.25, 0.5, 1.0])?;
    /// assert_eq!(pixels.shape(), Shape::nhwc(1, 2, 2, 1));
    /// let error = HostTensor::new(Shape::nhwc(1, 2, 2, 1), vec![0.0; 3]).unwrap_err();
    /// assert_eq!(error.to_string(), "host tensor: found 3 values, wanted 4 for shape 1x2x2x1");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `data` does not hold exactly `shape.elements()` values.
    pub fn new(shape: impl Into<Dims>, data: impl Into<Arc<[f32]>>) -> Result<Self> {
        Self::with_layout(shape, Layout::Nhwc, data)
    }

    /// A tensor of `shape` in the given host layout.
    ///
    /// ```
    /// use diptych::{HostTensor, Layout, Shape};
    ///
    /// // Two pixels of three channels, a plane for each channel.
    /// let planes = vec![0.0, 1.0, 10.0, 11.0, 20.0, 21.0];
    /// let tensor = HostTensor::with_layout(Shape::nhwc(1, 1, 2, 3), Layout::Nchw, planes)?;
    /// assert_eq!(*tensor.to_nhwc(), [0.0, 10.0, 20.0, 1.0, 11.0, 21.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `layout` is a device layout, or `data` has the wrong length.
    pub fn with_layout(shape: impl Into<Dims>, layout: Layout, data: impl Into<Arc<[f32]>>) -> Result<Self> {
        let (dims, data) = (shape.into(), data.into());
        check(dims, layout, data.len())?;
        Ok(HostTensor { dims, layout, data: Data::F32(data) })
    }

    /// A tensor of half floats in the given host layout.
    ///
    /// ```
    /// use diptych::{DType, HostTensor, Layout, Shape};
    /// use half::f16;
    ///
    /// let halves = [0.5, -2.0].map(f16::from_f32).to_vec();
    /// let tensor = HostTensor::from_f16(Shape::nhwc(1, 1, 1, 2), Layout::Nhwc, halves)?;
    /// assert_eq!(tensor.dtype(), DType::F16);
    /// assert_eq!(*tensor.to_f32(), [0.5, -2.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `layout` is a device layout, or `data` has the wrong length.
    pub fn from_f16(shape: impl Into<Dims>, layout: Layout, data: impl Into<Arc<[f16]>>) -> Result<Self> {
        let (dims, data) = (shape.into(), data.into());
        check(dims, layout, data.len())?;
        Ok(HostTensor { dims, layout, data: Data::F16(data) })
    }

    /// A batch of row-major matrices.
    ///
    /// ```
    /// use diptych::HostTensor;
    ///
    /// let matrix = HostTensor::matrix(1, 2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?; // one matrix of 2 rows and 3 columns
    /// assert_eq!(matrix.dims().elements(), 6);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `data` does not hold exactly `batch * rows * columns` values.
    pub fn matrix(batch: usize, rows: usize, columns: usize, data: impl Into<Arc<[f32]>>) -> Result<Self> {
        Self::new(Shape::matrix(batch, rows, columns), data)
    }

    /// A vector of one value per channel: a bias, or the slopes of a PReLU.
    ///
    /// ```
    /// use diptych::HostTensor;
    ///
    /// let bias = HostTensor::vector(vec![0.5, -0.5])?;
    /// assert_eq!(bias.shape().c, 2);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `data` is empty.
    pub fn vector(data: impl Into<Arc<[f32]>>) -> Result<Self> {
        let data = data.into();
        let shape = Shape::nhwc(1, 1, 1, data.len());
        Self::new(shape, data)
    }

    /// The shape.
    ///
    /// ```
    /// use diptych::{Dims, HostTensor, Shape};
    ///
    /// let tensor = HostTensor::new(Dims::new(&[5, 3])?, vec![0.0; 15])?;
    /// assert_eq!(tensor.shape(), Shape::nhwc(1, 1, 5, 3)); // missing leading extents are 1
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn shape(&self) -> Shape {
        self.dims.shape()
    }

    /// The dimensions.
    ///
    /// ```
    /// use diptych::{Dims, HostTensor};
    ///
    /// let tensor = HostTensor::new(Dims::new(&[5, 3])?, vec![0.0; 15])?;
    /// assert_eq!(tensor.dims().extents(), [5, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn dims(&self) -> Dims {
        self.dims
    }

    /// The same elements in other dimensions, not copied.
    ///
    /// ```
    /// use diptych::{Dims, HostTensor};
    ///
    /// let row = HostTensor::vector(vec![1.0, 2.0, 3.0, 4.0])?;
    /// let square = row.reshaped(Dims::new(&[2, 2])?)?;
    /// assert_eq!(square.dims().extents(), [2, 2]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more or fewer elements, or the layout is not NHWC.
    pub fn reshaped(self, dims: impl Into<Dims>) -> Result<Self> {
        let dims = dims.into();
        if dims.elements() != self.dims.elements() || self.layout != Layout::Nhwc {
            return Err(Error::shape(
                "host tensor",
                format!("{} in {}", self.dims, self.layout),
                format!("the elements of {dims} in nhwc"),
            ));
        }
        Ok(HostTensor { dims, ..self })
    }

    /// The order of the elements.
    ///
    /// ```
    /// use diptych::{HostTensor, Layout};
    ///
    /// assert_eq!(HostTensor::vector(vec![1.0])?.layout(), Layout::Nhwc);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The element type.
    ///
    /// ```
    /// use diptych::{DType, HostTensor};
    ///
    /// assert_eq!(HostTensor::vector(vec![1.0])?.dtype(), DType::F32);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        match self.data {
            Data::F32(_) => DType::F32,
            Data::F16(_) => DType::F16,
        }
    }

    /// The elements in their own layout, as f32 (exact for f16).
    ///
    /// ```
    /// use diptych::HostTensor;
    ///
    /// let tensor = HostTensor::vector(vec![1.0, 2.0])?;
    /// assert_eq!(*tensor.to_f32(), [1.0, 2.0]); // borrowed: f32 is not copied
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn to_f32(&self) -> Cow<'_, [f32]> {
        match &self.data {
            Data::F32(data) => Cow::Borrowed(data),
            Data::F16(data) => Cow::Owned(data.iter().map(|value| value.to_f32()).collect()),
        }
    }

    /// The elements in NHWC order, as f32.
    ///
    /// ```
    /// use diptych::{HostTensor, Layout, Shape};
    ///
    /// let planes = HostTensor::with_layout(Shape::nhwc(1, 1, 2, 2), Layout::Nchw, vec![1.0, 2.0, 10.0, 20.0])?;
    /// assert_eq!(*planes.to_nhwc(), [1.0, 10.0, 2.0, 20.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn to_nhwc(&self) -> Cow<'_, [f32]> {
        if self.layout == Layout::Nhwc {
            return self.to_f32();
        }
        let source = self.to_f32();
        let shape = self.shape();
        let Shape { n, h, w, c } = shape;
        let mut out = Vec::with_capacity(source.len());
        for b in 0..n {
            for y in 0..h {
                for x in 0..w {
                    out.extend((0..c).map(|k| source[self.layout.index(&shape, b, y, x, k)]));
                }
            }
        }
        Cow::Owned(out)
    }

    /// [`HostTensor::to_nhwc`], if there is memory for what is to be converted.
    pub(crate) fn try_nhwc(&self) -> Result<Cow<'_, [f32]>> {
        if self.layout != Layout::Nhwc || self.dtype() != DType::F32 {
            alloc::expect::<f32>(self.dims.elements(), "an input in NHWC order")?;
        }
        Ok(self.to_nhwc())
    }

    /// [`HostTensor::to_nhwc`], shared where there is nothing to convert.
    pub(crate) fn shared_nhwc(&self) -> Arc<[f32]> {
        match &self.data {
            Data::F32(data) if self.layout == Layout::Nhwc => Arc::clone(data),
            _ => Arc::from(&*self.to_nhwc()),
        }
    }

    /// Where its elements lie in memory, and how: the same as another tensor's that lives only if it shares them.
    pub(crate) fn place(&self) -> (usize, Layout) {
        (self.bytes().as_ptr().addr(), self.layout)
    }

    /// The raw bytes in their own layout, for an upload.
    ///
    /// ```
    /// use diptych::HostTensor;
    ///
    /// assert_eq!(HostTensor::vector(vec![1.0, 2.0])?.bytes().len(), 8);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::F32(data) => bytemuck::cast_slice(data),
            Data::F16(data) => bytemuck::cast_slice(data),
        }
    }
}

fn check(dims: Dims, layout: Layout, len: usize) -> Result<()> {
    dims.checked("host tensor")?;
    if !matches!(layout, Layout::Nhwc | Layout::Nchw) {
        return Err(Error::shape("host tensor", format!("layout {layout}"), "nhwc or nchw"));
    }
    if layout == Layout::Nchw && dims.rank() != 4 {
        return Err(Error::shape("host tensor", format!("rank {} in nchw", dims.rank()), "rank 4"));
    }
    if len != dims.elements() {
        return Err(Error::shape(
            "host tensor",
            format!("{len} values"),
            format!("{} for shape {dims}", dims.elements()),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_length_names_both_numbers() {
        let error = HostTensor::new(Shape::nhwc(1, 2, 2, 3), vec![0.0; 11]).expect_err("11 of 12");
        assert_eq!(error.to_string(), "host tensor: found 11 values, wanted 12 for shape 1x2x2x3");
    }

    #[test]
    fn nchw_is_read_in_nhwc_order() {
        let shape = Shape::nhwc(1, 1, 2, 3);
        let tensor = HostTensor::with_layout(shape, Layout::Nchw, vec![0.0, 1.0, 10.0, 11.0, 20.0, 21.0])
            .expect("six values");
        assert_eq!(&*tensor.to_nhwc(), &[0.0, 10.0, 20.0, 1.0, 11.0, 21.0]);
    }

    #[test]
    fn halves_read_as_f32() {
        let data: Vec<f16> = [0.5f32, -2.0].map(f16::from_f32).to_vec();
        let tensor = HostTensor::from_f16(Shape::nhwc(1, 1, 1, 2), Layout::Nhwc, data).expect("two values");
        assert_eq!((tensor.dtype(), &*tensor.to_f32()), (DType::F16, &[0.5, -2.0][..]));
        assert_eq!(tensor.bytes().len(), 4);
    }
}
