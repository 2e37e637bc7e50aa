//! Tensors as arrays of the crate `ndarray`, and arrays as tensors.

use crate::alloc;
use crate::dims::Dims;
use crate::error::{Error, Result};
use crate::host::{HostTensor, TensorElement};
use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};
use std::sync::Arc;

/// Copies an array or a view in its logical order, whatever its strides.
///
/// ```
/// use diptych::HostTensor;
/// use ndarray::array;
///
/// let rows = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// let tensor = HostTensor::try_from(&rows.t())?;
/// assert_eq!(tensor.dims().extents(), [3, 2]);
/// assert_eq!(*tensor.to_f32(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # Ok::<(), diptych::Error>(())
/// ```
///
/// # Errors
/// If the array has more axes or elements than a tensor, or there is no memory for a copy.
impl<T: TensorElement, S: Data<Elem = T>, D: Dimension> TryFrom<&ArrayBase<S, D>> for HostTensor {
    type Error = Error;

    fn try_from(array: &ArrayBase<S, D>) -> Result<Self> {
        let dims = Dims::new(array.shape())?;
        alloc::expect::<T>(array.len(), "a host tensor")?;
        let elements: Arc<[T]> = match array.as_slice() {
            Some(elements) => Arc::from(elements),
            None => array.iter().copied().collect(),
        };
        HostTensor::of(dims, elements)
    }
}

/// Copies an array in its logical order: see the conversion of a reference to one.
///
/// # Errors
/// If the array has more axes or elements than a tensor, or there is no memory for a copy.
impl<T: TensorElement, S: Data<Elem = T>, D: Dimension> TryFrom<ArrayBase<S, D>> for HostTensor {
    type Error = Error;

    fn try_from(array: ArrayBase<S, D>) -> Result<Self> {
        HostTensor::try_from(&array)
    }
}

/// Copies a tensor of elements of this type, in the order of its extents.
///
/// ```
/// use diptych::{Dims, HostTensor};
/// use ndarray::ArrayD;
///
/// let tensor = HostTensor::new(Dims::new(&[2, 3])?, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let array = ArrayD::<f32>::try_from(&tensor)?;
/// assert_eq!((array.shape(), array[[1, 0]]), (&[2, 3][..], 4.0));
/// let error = ArrayD::<i64>::try_from(&tensor).unwrap_err();
/// assert_eq!(error.to_string(), "host tensor: found elements of f32, wanted i64");
/// # Ok::<(), diptych::Error>(())
/// ```
///
/// # Errors
/// If the tensor's elements are of another type, or there is no memory for a copy.
impl<T: TensorElement> TryFrom<&HostTensor> for ArrayD<T> {
    type Error = Error;

    fn try_from(tensor: &HostTensor) -> Result<Self> {
        let elements = tensor.elements_in_nhwc::<T>()?;
        let extents = IxDyn(tensor.dims().extents());
        ArrayD::from_shape_vec(extents, elements).map_err(|error| Error::Internal(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::shape::Shape;
    use ndarray::{Array, Array1, Array2, arr0, s};

    #[test]
    fn arrays_come_back_of_every_rank_and_order() {
        for rank in 0..=crate::dims::MAX_RANK {
            let extents = &[2, 3, 1, 2, 1, 2][..rank];
            let count = extents.iter().product::<usize>();
            let array = Array::from_iter((0..count).map(|index| index as f32 - 3.5));
            let array = array.into_shape_with_order(IxDyn(extents)).expect("as many");
            let tensor = HostTensor::try_from(&array).expect("a tensor");
            assert_eq!(tensor.dims().extents(), extents);
            assert_eq!(&*tensor.to_f32(), array.as_slice().expect("one piece"));
            assert_eq!(ArrayD::<f32>::try_from(&tensor).expect("an array"), array);
            // With the axes in another order the elements are, too.
            let turned = array.reversed_axes();
            let tensor = HostTensor::try_from(&turned).expect("a tensor");
            assert_eq!(ArrayD::<f32>::try_from(&tensor).expect("an array"), turned);
        }
        let scalar = HostTensor::try_from(arr0(2.5_f32)).expect("a scalar");
        assert_eq!((scalar.dims(), &*scalar.to_f32()), (Dims::SCALAR, &[2.5][..]));
    }

    #[test]
    fn views_and_other_types_are_copied() {
        let array = Array2::from_shape_fn((4, 5), |(row, column)| (10 * row + column) as i64);
        let tensor = HostTensor::try_from(array.slice(s![1..;2, ..;-2])).expect("a tensor");
        assert_eq!(tensor.dims().extents(), [2, 3]);
        assert_eq!(tensor.elements::<i64>(), Some(&[14, 12, 10, 34, 32, 30][..]));
        let empty = HostTensor::try_from(Array2::<f32>::zeros((3, 0))).expect("without elements");
        assert_eq!(empty.dims().extents(), [3, 0]);
        assert_eq!(ArrayD::<f32>::try_from(&empty).expect("an array").shape(), [3, 0]);
        let truths = HostTensor::try_from(Array1::from(vec![true, false])).expect("a tensor");
        assert_eq!(truths.elements::<bool>(), Some(&[true, false][..]));
    }

    #[test]
    fn planes_become_an_array_in_the_order_of_the_extents() {
        let shape = Shape::nhwc(1, 1, 2, 3);
        let planes = HostTensor::with_layout(shape, Layout::Nchw, vec![0.0, 1.0, 10.0, 11.0, 20.0, 21.0]);
        let array = ArrayD::<f32>::try_from(&planes.expect("six values")).expect("an array");
        assert_eq!((array.shape(), array[[0, 0, 1, 2]]), (&[1, 1, 2, 3][..], 21.0));
        assert_eq!(array.as_slice(), Some(&[0.0, 10.0, 20.0, 1.0, 11.0, 21.0][..]));
    }

    #[test]
    fn another_type_and_too_many_axes_are_refused() {
        let ids = HostTensor::of(Dims::new(&[2]).expect("small"), vec![1_i64, 2]).expect("two");
        let error = ArrayD::<f32>::try_from(&ids).expect_err("integers").to_string();
        assert_eq!(error, "host tensor: found elements of i64, wanted f32");
        let error = HostTensor::try_from(ArrayD::<f32>::zeros(IxDyn(&[1; 7]))).expect_err("seven axes");
        assert!(error.to_string().contains("rank 7"), "{error}");
    }
}
