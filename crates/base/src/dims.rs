//! Extents of tensors of rank 0 to 6, some of them named.

use crate::error::{Error, Result};
use crate::shape::Shape;
use std::collections::BTreeMap;
use std::fmt;

/// The highest rank of a tensor.
pub const MAX_RANK: usize = 6;

/// The extents of a tensor, the last one varying fastest in memory. Rank 0 is a scalar.
///
/// ```
/// use diptych::{Dims, Shape};
///
/// let dims = Dims::new(&[8, 4420, 4])?;
/// assert_eq!((dims.rank(), dims.elements()), (3, 141_440));
/// // Kernels see any tensor as a feature map whose channels are the last extent.
/// assert_eq!(dims.shape(), Shape::nhwc(1, 8, 4420, 4));
/// assert_eq!(Dims::from(Shape::nhwc(1, 9, 9, 17)).to_string(), "1x9x9x17");
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dims {
    /// Ones beyond the rank.
    extents: [usize; MAX_RANK],
    rank: u8,
}

impl Dims {
    /// The dimensions of a scalar: rank 0, one element.
    pub const SCALAR: Dims = Dims { extents: [1; MAX_RANK], rank: 0 };

    /// Dimensions of these extents. A tensor with an extent of 0 has no elements: a cache before the first token, a list
    /// of boxes of which none was found.
    ///
    /// ```
    /// use diptych::{Dims, HostTensor};
    ///
    /// assert_eq!(Dims::new(&[2, 3, 5])?.to_string(), "2x3x5");
    /// let past = HostTensor::new(Dims::new(&[1, 8, 0, 64])?, vec![])?;
    /// assert_eq!((past.dims().elements(), past.dims().to_string().as_str()), (0, "1x8x0x64"));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more than [`MAX_RANK`], or those that are not 0 are together more elements than a kernel can index
    /// ([`Shape::check`]).
    pub fn new(extents: &[usize]) -> Result<Self> {
        if extents.len() > MAX_RANK {
            return Err(Error::shape("tensor", format!("rank {}", extents.len()), "rank 0 to 6"));
        }
        let mut dims = Dims::SCALAR;
        dims.extents[..extents.len()].copy_from_slice(extents);
        dims.rank = extents.len() as u8;
        dims.checked_or_empty("tensor")?;
        Ok(dims)
    }

    /// The extents, as many as the rank.
    ///
    /// ```
    /// use diptych::Dims;
    ///
    /// assert_eq!(Dims::new(&[2, 3])?.extents(), [2, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn extents(&self) -> &[usize] {
        &self.extents[..self.rank()]
    }

    /// The number of extents.
    ///
    /// ```
    /// use diptych::Dims;
    ///
    /// assert_eq!((Dims::SCALAR.rank(), Dims::new(&[2, 3])?.rank()), (0, 2));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub const fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The number of elements.
    ///
    /// ```
    /// use diptych::Dims;
    ///
    /// assert_eq!((Dims::SCALAR.elements(), Dims::new(&[2, 3])?.elements()), (1, 6));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub const fn elements(&self) -> usize {
        let e = &self.extents;
        e[0] * e[1] * e[2] * e[3] * e[4] * e[5]
    }

    /// The shape of a feature map with these elements in this order: missing leading extents are 1, and of
    /// more than four the leading ones are multiplied into the batch.
    ///
    /// ```
    /// use diptych::{Dims, Shape};
    ///
    /// assert_eq!(Dims::new(&[5, 3])?.shape(), Shape::nhwc(1, 1, 5, 3));
    /// assert_eq!(Dims::new(&[2, 3, 4, 5, 6])?.shape(), Shape::nhwc(6, 4, 5, 6));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub const fn shape(&self) -> Shape {
        let e = &self.extents;
        match self.rank {
            0 => Shape::nhwc(1, 1, 1, 1),
            1 => Shape::nhwc(1, 1, 1, e[0]),
            2 => Shape::nhwc(1, 1, e[0], e[1]),
            3 => Shape::nhwc(1, e[0], e[1], e[2]),
            4 => Shape::nhwc(e[0], e[1], e[2], e[3]),
            5 => Shape::nhwc(e[0] * e[1], e[2], e[3], e[4]),
            _ => Shape::nhwc(e[0] * e[1] * e[2], e[3], e[4], e[5]),
        }
    }

    /// The shape of a batch of matrices (see [`Shape::matrix`]): rank 2 is one matrix, rank 3 a batch of them, and
    /// rank 4 has height 1. `None` for other dimensions.
    ///
    /// ```
    /// use diptych::{Dims, Shape};
    ///
    /// assert_eq!(Dims::new(&[8, 2, 3])?.matrices(), Some(Shape::matrix(8, 2, 3)));
    /// assert_eq!(Dims::new(&[3])?.matrices(), None);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub const fn matrices(&self) -> Option<Shape> {
        let e = &self.extents;
        match (self.rank, e[1]) {
            (2, _) => Some(Shape::matrix(1, e[0], e[1])),
            (3, _) => Some(Shape::matrix(e[0], e[1], e[2])),
            (4, 1) => Some(Shape::matrix(e[0], e[2], e[3])),
            _ => None,
        }
    }

    /// The axis that `axis` is; a negative one counts from the last.
    #[doc(hidden)]
    pub fn axis(&self, op: &'static str, axis: isize) -> Result<usize> {
        let rank = self.rank();
        let place = if axis < 0 { axis.checked_add_unsigned(rank) } else { Some(axis) };
        let found = place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place < rank);
        found.ok_or_else(|| {
            Error::shape(op, format!("axis {axis} of {self}"), format!("-{rank} to {rank}, without {rank}"))
        })
    }

    /// Whether a kernel can index as many elements as there are with 1 for each extent of 0; the error names `op`.
    #[doc(hidden)]
    pub fn checked_or_empty(&self, op: &'static str) -> Result<()> {
        let ones = Dims { extents: self.extents.map(|extent| extent.max(1)), rank: self.rank };
        ones.checked(op).map_err(|_| {
            let wanted = format!("at most {} elements (32-bit indices)", i32::MAX);
            Error::shape(op, self.to_string(), wanted)
        })
    }

    /// Whether every extent is at least 1 and a kernel can index the elements; the error names `op`.
    #[doc(hidden)]
    pub fn checked(&self, op: &'static str) -> Result<()> {
        let product = self.extents.iter().try_fold(1usize, |product, &e| product.checked_mul(e));
        let fits = product.is_some_and(|elements| elements > 0 && elements <= i32::MAX as usize);
        if !fits {
            let wanted = format!("extents of at least 1, at most {} elements (32-bit indices)", i32::MAX);
            return Err(Error::shape(op, self.to_string(), wanted));
        }
        self.shape().check(op)
    }
}

impl From<Shape> for Dims {
    /// Rank 4, whatever the extents.
    fn from(shape: Shape) -> Self {
        Dims { extents: [shape.n, shape.h, shape.w, shape.c, 1, 1], rank: 4 }
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rank == 0 {
            return f.write_str("scalar");
        }
        for (index, extent) in self.extents().iter().enumerate() {
            write!(f, "{}{extent}", if index == 0 { "" } else { "x" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dims({self})")
    }
}

/// One extent of a graph's input, or of the target of a reshape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dim {
    /// So many elements.
    Fixed(usize),
    /// What the graph's dimension of this name is ([`Graph::dimension`](struct.Graph.html#method.dimension)).
    Named(String),
    /// The extent that the number of elements leaves: at most once, and only in the target of a reshape.
    Rest,
}

impl Dim {
    /// The extent where named ones are `dimensions`, nothing for [`Dim::Rest`]; the name if it is not among them.
    #[doc(hidden)]
    pub fn resolved(&self, dimensions: &BTreeMap<String, usize>) -> Result<Option<usize>, &str> {
        match self {
            Dim::Fixed(extent) => Ok(Some(*extent)),
            Dim::Named(name) => dimensions.get(name).copied().map(Some).ok_or(name),
            Dim::Rest => Ok(None),
        }
    }
}

impl From<usize> for Dim {
    fn from(extent: usize) -> Self {
        Dim::Fixed(extent)
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Self {
        Dim::Named(name.to_owned())
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(extent) => write!(f, "{extent}"),
            Dim::Named(name) => write!(f, "{name:?}"),
            Dim::Rest => f.write_str("rest"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_its_elements_as_a_feature_map() {
        let extents = [2, 3, 4, 5, 6, 7];
        for rank in 0..=MAX_RANK {
            let dims = Dims::new(&extents[..rank]).expect("small");
            assert_eq!(dims.elements(), extents[..rank].iter().product::<usize>());
            assert_eq!(dims.shape().elements(), dims.elements(), "rank {rank}");
            assert_eq!(dims.extents(), &extents[..rank]);
        }
        assert_eq!(Dims::SCALAR.to_string(), "scalar");
    }

    #[test]
    fn too_many_extents_and_overflow_are_refused() {
        assert!(Dims::new(&[1; 7]).expect_err("rank 7").to_string().contains("rank 7"));
        assert!(Dims::new(&[usize::MAX, 0, 2]).is_err());
        assert!(Dims::new(&[usize::MAX, 2]).is_err());
        assert!(Dims::new(&[1 << 20, 1 << 20]).is_err());
    }

    #[test]
    fn a_tensor_of_an_extent_of_0_has_no_elements() {
        let dims = Dims::new(&[3, 0, 5]).expect("no elements");
        assert_eq!((dims.elements(), dims.shape().elements(), dims.to_string().as_str()), (0, 0, "3x0x5"));
        assert!(dims.checked("op").expect_err("no elements").to_string().contains("3x0x5"));
        assert!(dims.checked_or_empty("op").is_ok());
    }

    #[test]
    fn matrices_are_rank_two_three_or_four() {
        let of = |extents: &[usize]| Dims::new(extents).expect("small").matrices();
        assert_eq!(of(&[3, 5]), Some(Shape::matrix(1, 3, 5)));
        assert_eq!(of(&[2, 3, 5]), Some(Shape::matrix(2, 3, 5)));
        assert_eq!(of(&[2, 1, 3, 5]), Some(Shape::matrix(2, 3, 5)));
        assert_eq!(of(&[2, 2, 3, 5]), None);
        assert_eq!(of(&[4]), None);
    }
}
