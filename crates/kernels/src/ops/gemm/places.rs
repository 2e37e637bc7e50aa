//! Products whose matrices lie within other values: heads side by side, windows, one of several parts.
//!
//! Matrix `i` of a batch begins at `first + outer * (i / within) + inner * (i % within)` of its value, and its rows lie the
//! leading dimension apart. So a product reads and writes where a transpose of outer axes would bring its operands.

use super::GemmOp;
use crate::cpu::{CpuKernel, check_len, input, output};
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::operands::{OperandInfo, Operands, Role, get};
use crate::ops::reference::Reference;
use crate::shape::Shape;
use std::borrow::Cow;

/// Where the matrices of an operand lie within a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Elements of the value.
    pub elements: usize,
    /// Where the first matrix begins.
    pub first: usize,
    /// Elements from a matrix to the one `within` further.
    pub outer: usize,
    /// Elements from a matrix to the next within these.
    pub inner: usize,
}

impl Place {
    const fn matrix(&self, index: usize, within: usize) -> usize {
        self.first + self.outer * (index / within) + self.inner * (index % within)
    }

    /// An element behind all those of `batch` matrices: the next one, where `within` divides their number. None if a machine word
    /// does not hold it, or there is no matrix.
    fn end(&self, batch: usize, within: usize, [rows, columns, leading]: [usize; 3]) -> Option<usize> {
        let last = batch.checked_sub(1)?;
        let outer = self.outer.checked_mul(last.checked_div(within)?)?;
        let inner = self.inner.checked_mul(last.min(within.checked_sub(1)?))?;
        let row = rows.checked_sub(1)?.checked_mul(leading)?.checked_add(columns)?;
        self.first.checked_add(outer)?.checked_add(inner)?.checked_add(row)
    }
}

/// Where the matrices of a product lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Places {
    /// Matrices that follow each other at the inner distances.
    pub within: usize,
    /// `A`, whose rows lie `lda` apart.
    pub a: Place,
    /// `B`, whose rows lie `ldb` apart.
    pub b: Place,
    /// `C`, whose rows lie `ldc` apart: the matrices fill its value.
    pub c: Place,
}

impl Places {
    pub(super) const fn all(&self) -> [(&'static str, Place); 3] {
        [("a", self.a), ("b", self.b), ("c", self.c)]
    }

    /// What is added to the problem's key.
    pub(super) fn key(&self) -> String {
        let each = self.all().map(|(name, Place { elements, first, outer, inner })| {
            format!("{name}{elements}:{first}+{outer}+{inner}")
        });
        format!(" within{} {}", self.within, each.join(" "))
    }
}

impl GemmOp {
    /// The product with its operands within other values, and these leading dimensions.
    ///
    /// # Errors
    /// If an element would lie beyond a value, the matrices of `C` do not fill theirs, or the product has a residual, reads `C`
    /// or has an operand that is transposed or shared.
    #[doc(hidden)]
    pub fn at(self, places: Places, [lda, ldb, ldc]: [usize; 3]) -> Result<Self> {
        let op = GemmOp { lda, ldb, ldc, places: Some(places), ..self };
        if op.transpose_a
            || op.transpose_b
            || (op.shared_b && op.batch > 1)
            || op.reads_c()
            || op.epilogue.residual.is_some()
        {
            return Err(Error::unsupported(super::OP, format!("places of {}", op.problem())));
        }
        let sizes = [(places.a, op.m, op.k, lda), (places.b, op.k, op.n, ldb), (places.c, op.m, op.n, ldc)];
        let within = |&(place, rows, columns, leading): &(Place, usize, usize, usize)| {
            let end = place.end(op.batch, places.within, [rows, columns, leading]);
            leading >= columns && end.is_some_and(|end| end <= place.elements.min(i32::MAX as usize))
        };
        if !sizes.iter().all(within) {
            let found = format!("{places:?} with rows {lda}, {ldb} and {ldc} apart");
            return Err(Error::shape(super::OP, found, "matrices within their values".to_owned()));
        }
        if op.order_of_c().is_none() {
            return Err(Error::shape(super::OP, format!("{:?}", places.c), "each element once".to_owned()));
        }
        Ok(op)
    }

    /// The product of the same matrices one behind the other.
    pub(super) fn packed_like(&self) -> GemmOp {
        GemmOp { lda: self.k, ldb: self.n, ldc: self.n, places: None, ..*self }
    }

    /// For each stretch of `n` elements of the value of `C` which row of all products it is; none if they do not fill it.
    fn order_of_c(&self) -> Option<Vec<usize>> {
        let Places { within, c, .. } = self.places?;
        if self.batch * self.m * self.n != c.elements {
            return None;
        }
        let mut order = vec![usize::MAX; self.batch * self.m];
        for row in 0..self.batch * self.m {
            let at = c.matrix(row / self.m, within) + row % self.m * self.ldc;
            let slot = order.get_mut(at / self.n).filter(|_| at.is_multiple_of(self.n))?;
            *slot = row;
        }
        order.iter().all(|&row| row != usize::MAX).then_some(order)
    }

    /// The operands of a product with places.
    pub(super) fn placed_infos(&self, places: &Places) -> [OperandInfo; 3] {
        let info = |(operand, place, role): (Operand, Place, Role)| {
            OperandInfo::new(operand, Shape::nhwc(1, 1, 1, place.elements), role)
        };
        [
            (Operand::A, places.a, Role::Input),
            (Operand::B, places.b, Role::Input),
            (Operand::C, places.c, Role::Output),
        ]
        .map(info)
    }

    /// Matrices of an operand one behind the other.
    fn gathered(&self, values: &[f32], place: Place, [rows, columns, leading]: [usize; 3]) -> Vec<f32> {
        let within = self.places.map_or(1, |places| places.within);
        let each = (0..self.batch * rows).flat_map(|row| {
            let at = place.matrix(row / rows, within) + row % rows * leading;
            values.get(at..at + columns).unwrap_or_default().iter().copied()
        });
        each.collect()
    }

    fn gathered_ab(&self, places: &Places, a: &[f32], b: &[f32]) -> [Vec<f32>; 2] {
        [
            self.gathered(a, places.a, [self.m, self.k, self.lda]),
            self.gathered(b, places.b, [self.k, self.n, self.ldb]),
        ]
    }

    /// The operands as those of the product of matrices one behind the other.
    pub(super) fn packed_operands<'a>(&self, places: &Places, operands: &Operands<'a>) -> Operands<'a> {
        let value = |operand| get(operands, operand).unwrap_or_default();
        let [a, b] = self.gathered_ab(places, value(Operand::A), value(Operand::B));
        let mut packed = operands.clone();
        packed.insert(Operand::A, Cow::Owned(a));
        packed.insert(Operand::B, Cow::Owned(b));
        packed
    }

    /// A result of matrices one behind the other in the order of the value of `C`.
    pub(super) fn placed(&self, packed: &Reference) -> Reference {
        packed.rows(&self.order_of_c().unwrap_or_default(), self.n)
    }
}

/// A product with places on the CPU.
#[derive(Debug)]
pub(super) struct PlacedKernel {
    op: GemmOp,
    places: Places,
    /// For each stretch of the result, its row among those of all products.
    order: Vec<usize>,
    packed: Box<dyn CpuKernel>,
}

impl PlacedKernel {
    /// The kernel of `op`, which has places; `packed` computes the product of the same matrices one behind the other.
    pub(super) fn new(op: &GemmOp, packed: Box<dyn CpuKernel>) -> Result<Self> {
        let missing = || Error::Internal("a product without places".to_owned());
        let places = op.places.ok_or_else(missing)?;
        let order = op.order_of_c().ok_or_else(missing)?;
        Ok(PlacedKernel { op: *op, places, order, packed })
    }
}

impl CpuKernel for PlacedKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let (op, places) = (&self.op, &self.places);
        let (a, b) = (input(super::OP, inputs, Operand::A)?, input(super::OP, inputs, Operand::B)?);
        check_len(super::OP, "a", a.len(), places.a.elements)?;
        check_len(super::OP, "b", b.len(), places.b.elements)?;
        let [a, b] = op.gathered_ab(places, a, b);
        let mut c = vec![0.0; op.batch * op.m * op.n];
        self.packed.run(&[(Operand::A, &a), (Operand::B, &b)], &mut [(Operand::C, &mut c)])?;
        let dst = output(super::OP, outputs, Operand::C)?;
        check_len(super::OP, "c", dst.len(), places.c.elements)?;
        for (to, row) in dst.chunks_mut(op.n).zip(&self.order) {
            to.copy_from_slice(&c[row * op.n..(row + 1) * op.n]);
        }
        Ok(())
    }
}

/// A product with places as a node of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedGemm {
    pub(super) op: GemmOp,
    /// The dimensions of the result.
    pub(super) target: Dims,
}

impl PlacedGemm {
    /// The node of `op`, which has places, with a result of these dimensions.
    ///
    /// # Errors
    /// If it has none, or the result has other elements.
    #[doc(hidden)]
    pub fn new(op: GemmOp, target: Dims) -> Result<Self> {
        match op.places {
            Some(places) if places.c.elements == target.elements() => Ok(PlacedGemm { op, target }),
            places => {
                Err(Error::shape(super::OP, format!("{places:?}"), format!("the elements of {target}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::gemm::Gemm;

    #[test]
    fn what_lies_beyond_a_value_is_refused() {
        // Two matrices of 3 x 4 by 4 x 2, one behind the other.
        let op = GemmOp::new(3, 2, 4, 2, &Gemm::default(), false, false, Precision::F32).expect("small");
        let place = |elements, matrix| Place { elements, first: 0, outer: matrix, inner: 0 };
        let right = Places { within: 1, a: place(24, 12), b: place(16, 8), c: place(12, 6) };
        let rows = [4, 2, 2];
        assert!(op.at(right, rows).is_ok());
        let first = |place: Place, first| Place { first, ..place };
        for wrong in [
            Places { a: first(right.a, 1), ..right },
            Places { a: first(right.a, usize::MAX), ..right },
            Places { b: place(15, 8), ..right },
            Places { b: place(16, usize::MAX), ..right },
            Places { c: place(13, 6), ..right },
            Places { c: place(12, 0), ..right },
            Places { within: 0, ..right },
        ] {
            assert!(op.at(wrong, rows).is_err(), "{wrong:?}");
        }
        assert!(op.at(right, [3, 2, 2]).is_err() && op.at(right, [usize::MAX, 2, 2]).is_err());
    }
}
