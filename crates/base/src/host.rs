//! Tensors in host memory.

#[cfg(any(feature = "ndarray", feature = "image"))]
mod conversions;
mod scales;
mod watch;

pub use scales::Scales;
pub use watch::Watch;

use crate::alloc;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::shape::Shape;
use crate::word;
use half::f16;
use half::slice::HalfFloatSliceExt;
use std::borrow::Cow;
use std::sync::Arc;

/// The elements of a [`HostTensor`].
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    F32(Arc<[f32]>),
    F16(Arc<[f16]>),
    I64(Arc<[i64]>),
    I32(Arc<[i32]>),
    I16(Arc<[i16]>),
    I8(Arc<[i8]>),
    U32(Arc<[u32]>),
    U16(Arc<[u16]>),
    U8(Arc<[u8]>),
    Bool(Arc<[bool]>),
}

/// Does the same to the elements of any type.
macro_rules! each_type {
    ($data:expr, $elements:ident => $do:expr) => {
        match $data {
            Data::F32($elements) => $do,
            Data::F16($elements) => $do,
            Data::I64($elements) => $do,
            Data::I32($elements) => $do,
            Data::I16($elements) => $do,
            Data::I8($elements) => $do,
            Data::U32($elements) => $do,
            Data::U16($elements) => $do,
            Data::U8($elements) => $do,
            Data::Bool($elements) => $do,
        }
    };
}

mod sealed {
    use crate::host::Data;
    use std::sync::Arc;

    pub trait Sealed: Sized {
        fn data(elements: Arc<[Self]>) -> Data;
        fn of(data: &Data) -> Option<&Arc<[Self]>>;
        /// The element as f32, rounded to nearest.
        fn float(self) -> f32;
        /// The element as an integer; `None` of a float.
        fn integer(self) -> Option<i64>;
        /// The integer as this type, if it is one of it.
        fn from_integer(value: i64) -> Option<Self>;
    }
}
use sealed::Sealed;

/// A type that elements of a [`HostTensor`] have: `f32`, `half::f16`, an integer of 8 to 64 bits other than `u64`, or `bool`.
///
/// ```
/// use diptych::{DType, TensorElement};
///
/// assert_eq!((i64::DTYPE, bool::DTYPE), (DType::I64, DType::Bool));
/// ```
pub trait TensorElement: Sealed + bytemuck::NoUninit {
    /// The type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($ty:ident $name:ident: $float:expr, $integer:expr, $from:expr;)*) => {$(
        impl TensorElement for $ty {
            const DTYPE: DType = DType::$name;
        }
        impl Sealed for $ty {
            fn data(elements: Arc<[Self]>) -> Data {
                Data::$name(elements)
            }
            fn of(data: &Data) -> Option<&Arc<[Self]>> {
                if let Data::$name(elements) = data { Some(elements) } else { None }
            }
            fn float(self) -> f32 {
                let float: fn(Self) -> f32 = $float;
                float(self)
            }
            fn integer(self) -> Option<i64> {
                let integer: fn(Self) -> Option<i64> = $integer;
                integer(self)
            }
            fn from_integer(value: i64) -> Option<Self> {
                let from: fn(i64) -> Option<Self> = $from;
                from(value)
            }
        }
    )*};
}
macro_rules! integers {
    ($($ty:ident $name:ident)*) => {
        elements!($($ty $name: |value| value as f32, |value| Some(i64::from(value)), |value| $ty::try_from(value).ok();)*);
    };
}
integers!(i64 I64 i32 I32 i16 I16 i8 I8 u32 U32 u16 U16 u8 U8);
elements! {
    bool Bool: |value| f32::from(u8::from(value)), |value| Some(i64::from(value)), |value| Some(value != 0);
    f32 F32: |value| value, |_| None, |_| None;
    f16 F16: f16::to_f32, |_| None, |_| None;
}

/// A feature map or a matrix in host memory, in [`Layout::Nhwc`] or [`Layout::Nchw`].
///
/// Cloning is cheap: the elements are shared and immutable.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTensor {
    dims: Dims,
    layout: Layout,
    data: Data,
    scales: Option<Arc<Scales>>,
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
        Ok(HostTensor { dims, layout, data: Data::F32(data), scales: None })
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
        Ok(HostTensor { dims, layout, data: Data::F16(data), scales: None })
    }

    /// A tensor of elements of any type in NHWC order: token ids, masks, pictures of bytes.
    ///
    /// ```
    /// use diptych::{DType, Dims, HostTensor};
    ///
    /// let ids = HostTensor::of(Dims::new(&[1, 3])?, vec![101_i64, 7_592, 102])?;
    /// assert_eq!(ids.dtype(), DType::I64);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `data` does not hold exactly as many values as `shape` has elements.
    pub fn of<T: TensorElement>(shape: impl Into<Dims>, data: impl Into<Arc<[T]>>) -> Result<Self> {
        let (dims, data) = (shape.into(), data.into());
        check(dims, Layout::Nhwc, data.len())?;
        Ok(HostTensor { dims, layout: Layout::Nhwc, data: T::data(data), scales: None })
    }

    /// A tensor of elements of this type in NHWC order, from their bytes in the machine's own order: of any address, as
    /// other languages and files have them. A byte of a boolean is true unless it is 0.
    ///
    /// ```
    /// use diptych::{DType, Dims, HostTensor};
    ///
    /// let bytes = [7_i64, -1].map(i64::to_ne_bytes).concat();
    /// let ids = HostTensor::from_bytes(Dims::new(&[2])?, DType::I64, &bytes)?;
    /// assert_eq!(ids.elements::<i64>(), Some(&[7, -1][..]));
    /// let error = HostTensor::from_bytes(Dims::new(&[2])?, DType::I32, &bytes).unwrap_err();
    /// assert_eq!(error.to_string(), "host tensor: found 16 bytes, wanted 8 for i32 of shape 2");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are not exactly as many bytes as the elements of `shape` take, or there is no memory for a copy.
    pub fn from_bytes(shape: impl Into<Dims>, dtype: DType, bytes: &[u8]) -> Result<Self> {
        fn of<T: TensorElement + bytemuck::AnyBitPattern>(dims: Dims, bytes: &[u8]) -> Result<HostTensor> {
            let whole = bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>);
            let elements: Arc<[T]> = match bytemuck::try_cast_slice(bytes) {
                Ok(aligned) => Arc::from(aligned),
                Err(_) => whole.collect(),
            };
            HostTensor::of(dims, elements)
        }
        let dims = shape.into();
        dims.checked_or_empty("host tensor")?;
        let wanted = dims.elements().checked_mul(dtype.bytes());
        if wanted != Some(bytes.len()) {
            let (found, elements) = (format!("{} bytes", bytes.len()), dims.elements() as u128);
            let wanted = format!("{} for {dtype} of shape {dims}", elements * dtype.bytes() as u128);
            return Err(Error::shape("host tensor", found, wanted));
        }
        alloc::expect::<u8>(bytes.len(), "a host tensor")?;
        match dtype {
            DType::F32 => of::<f32>(dims, bytes),
            DType::F16 => of::<f16>(dims, bytes),
            DType::I64 => of::<i64>(dims, bytes),
            DType::I32 => of::<i32>(dims, bytes),
            DType::I16 => of::<i16>(dims, bytes),
            DType::I8 => of::<i8>(dims, bytes),
            DType::U32 => of::<u32>(dims, bytes),
            DType::U16 => of::<u16>(dims, bytes),
            DType::U8 => of::<u8>(dims, bytes),
            DType::Bool => HostTensor::of(dims, bytes.iter().map(|&byte| byte != 0).collect::<Arc<[bool]>>()),
        }
    }

    /// The elements in their own layout, if they are of this type.
    ///
    /// ```
    /// use diptych::{Dims, HostTensor};
    ///
    /// let ids = HostTensor::of(Dims::new(&[2])?, vec![3_i32, -4])?;
    /// assert_eq!(ids.elements::<i32>(), Some(&[3, -4][..]));
    /// assert_eq!(ids.elements::<f32>(), None); // `to_f32` converts
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn elements<T: TensorElement>(&self) -> Option<&[T]> {
        T::of(&self.data).map(|elements| &**elements)
    }

    /// The integers or booleans in their own layout; none of a tensor of floats.
    ///
    /// ```
    /// use diptych::{Dims, HostTensor};
    ///
    /// let mask = HostTensor::of(Dims::new(&[2])?, vec![true, false])?;
    /// assert_eq!(mask.to_i64().as_deref(), Some(&[1, 0][..]));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn to_i64(&self) -> Option<Cow<'_, [i64]>> {
        if let Data::I64(elements) = &self.data {
            return Some(Cow::Borrowed(elements));
        }
        let integers: Option<Vec<i64>> =
            each_type!(&self.data, elements => elements.iter().map(|&element| element.integer()).collect());
        integers.map(Cow::Owned)
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

    /// The tensor in other dimensions: its elements keep their order and are not copied.
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
        let scales = self.scales().and_then(|own| own.reshaped(self.dims.extents(), dims.extents()));
        let scales = scales.map(Arc::new);
        Ok(HostTensor { dims, scales, ..self })
    }

    /// The elements from `first` on, as many as `dims` has, if it has them.
    #[cfg(not(target_family = "wasm"))]
    #[doc(hidden)]
    pub fn part(&self, first: usize, dims: Dims) -> Option<HostTensor> {
        fn part<T: TensorElement>(elements: &[T], first: usize, dims: Dims) -> Option<Data> {
            Some(T::data(Arc::from(elements.get(first..)?.get(..dims.elements())?)))
        }
        let data = each_type!(&self.data, elements => part(elements, first, dims))?;
        Some(HostTensor { dims, layout: self.layout, data, scales: None })
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
        fn of<T: TensorElement>(_: &[T]) -> DType {
            T::DTYPE
        }
        each_type!(&self.data, elements => of(elements))
    }

    /// The elements in their own layout, as f32: exact but for integers of more than 24 bits, which are rounded.
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
            // By the processor's own instructions, several at a time.
            Data::F16(data) => Cow::Owned(data.to_f32_vec()),
            other => {
                each_type!(other, elements => elements.iter().map(|&element| element.float()).collect())
            }
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
        Cow::Owned(self.in_nhwc(&self.to_f32()))
    }

    /// Elements of this tensor's layout in NHWC order.
    fn in_nhwc<T: Copy>(&self, source: &[T]) -> Vec<T> {
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
        out
    }

    /// [`HostTensor::to_nhwc`], if there is memory for what is to be converted.
    #[doc(hidden)]
    pub fn try_nhwc(&self) -> Result<Cow<'_, [f32]>> {
        if self.layout != Layout::Nhwc || self.dtype() != DType::F32 {
            alloc::expect::<f32>(self.dims.elements(), "an input in NHWC order")?;
        }
        Ok(self.to_nhwc())
    }

    /// Its elements in NHWC order as words of its own type ([`DType::word`]).
    #[doc(hidden)]
    pub fn words(&self) -> Result<Cow<'_, [f32]>> {
        word::of_tensor(self, self.dtype().word(), self.dtype(), "a tensor")
    }

    /// [`HostTensor::words`], shared where there is nothing to convert.
    #[doc(hidden)]
    pub fn into_words(self) -> Result<Arc<[f32]>> {
        match &self.data {
            Data::F32(data) if self.layout == Layout::Nhwc => Ok(Arc::clone(data)),
            // Where they stay: a copy would want as much once more.
            Data::F16(data) if self.layout == Layout::Nhwc => {
                let mut words =
                    alloc::shared(std::iter::repeat_n(0.0, data.len()), "a tensor's elements as f32")?;
                if let Some(words) = Arc::get_mut(&mut words) {
                    data.convert_to_f32_slice(words);
                }
                Ok(words)
            }
            _ => Ok(Arc::from(&*self.words()?)),
        }
    }

    /// Where its elements lie in memory, and how: the same as another tensor's that lives only if it shares them.
    #[doc(hidden)]
    pub fn place(&self) -> (usize, Layout) {
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
        each_type!(&self.data, elements => bytemuck::cast_slice(elements))
    }
}

fn check(dims: Dims, layout: Layout, len: usize) -> Result<()> {
    dims.checked_or_empty("host tensor")?;
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
    fn every_type_comes_back_from_its_bytes_at_any_address() {
        let dims = Dims::new(&[3]).expect("small");
        let tensors = [
            HostTensor::of(dims, vec![1.5f32, -0.0, f32::MAX]),
            HostTensor::of(dims, [1.5f32, -0.0, 65504.0].map(f16::from_f32).to_vec()),
            HostTensor::of(dims, vec![i64::MIN, -1, (1 << 53) + 1]),
            HostTensor::of(dims, vec![i32::MIN, -1, i32::MAX]),
            HostTensor::of(dims, vec![i16::MIN, -1, i16::MAX]),
            HostTensor::of(dims, vec![i8::MIN, -1, i8::MAX]),
            HostTensor::of(dims, vec![0, 1, u32::MAX]),
            HostTensor::of(dims, vec![0, 1, u16::MAX]),
            HostTensor::of(dims, vec![0, 1, u8::MAX]),
            HostTensor::of(dims, vec![false, true, true]),
        ]
        .map(|tensor| tensor.expect("three"));
        assert_eq!(tensors.each_ref().map(HostTensor::dtype), DType::ALL);
        for tensor in tensors {
            for offset in 0..2 {
                let moved = [&[0; 8][..offset], tensor.bytes()].concat();
                let back = HostTensor::from_bytes(dims, tensor.dtype(), &moved[offset..]).expect("as many");
                assert_eq!(back, tensor, "{} at {offset}", tensor.dtype());
                assert!(
                    HostTensor::from_bytes(dims, tensor.dtype(), &moved[..moved.len() - 1 - offset]).is_err()
                );
            }
        }
        let truths = HostTensor::from_bytes(dims, DType::Bool, &[0, 2, 255]).expect("three");
        assert_eq!(truths.elements::<bool>(), Some(&[false, true, true][..]));
    }

    #[test]
    fn halves_read_as_f32() {
        let data: Vec<f16> = [0.5f32, -2.0].map(f16::from_f32).to_vec();
        let tensor = HostTensor::from_f16(Shape::nhwc(1, 1, 1, 2), Layout::Nhwc, data).expect("two values");
        assert_eq!((tensor.dtype(), &*tensor.to_f32()), (DType::F16, &[0.5, -2.0][..]));
        assert_eq!(tensor.bytes().len(), 4);
    }
}
