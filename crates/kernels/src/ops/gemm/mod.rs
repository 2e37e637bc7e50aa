//! `C = f(alpha * op(A) * op(B) + beta * C + bias) + R`, one product per matrix of a batch.
//!
//! | operand | stored as | leading dimension |
//! |---|---|---|
//! | `A` | `m x k`, or `k x m` if `transpose_a`; row-major | `lda` |
//! | `B` | `k x n`, or `n x k` if `transpose_b`; row-major | `ldb` |
//! | `C` | `m x n`; row-major | `ldc` |
//! | `bias`, `slope` | one value per column, `n` | |
//! | `R` | `m x n`; row-major | `ldc` |
//!
//! Matrix `i` of a batch begins `i * batch_stride` elements after the first; a stride of 0 shares
//! one matrix. With `beta = 0`, `C` is not read: NaN in it does not matter (BLAS's rule).
//!
//! With [`Places`] the matrices of each operand lie within another value: as the heads of an attention lie side by side in the
//! rows of one matrix.
//!
//! A NaN or an infinity of `A` reaches its row of `C`, one of `B` its column: 0 times an infinity is NaN.

mod arguments;
mod cpu;
mod effort;
mod examples;
mod image2d;
mod matrix;
mod micro;
mod operator;
mod oracle;
mod places;
mod plan;
mod split;
mod staged;
mod staging;
mod subgroup;
mod thin;
mod tiled;
mod vec4;
mod wgmma;
mod wide;

pub(super) use examples::{NUMBERS, examples};
pub use places::{Place, PlacedGemm, Places};

use crate::dtype::Precision;
use crate::emit::{Activation, Bits, Epilogue};
use crate::error::{Error, Result};
use crate::shape::Shape;

const OP: &str = "gemm";

/// Options of a matrix product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gemm {
    /// Factor of the product.
    pub alpha: Bits,
    /// Factor of what `C` held.
    pub beta: Bits,
    /// `A` is stored transposed.
    pub transpose_a: bool,
    /// `B` is stored transposed.
    pub transpose_b: bool,
    /// Elements from one stored row of `A` to the next; `None` packs the rows.
    pub lda: Option<usize>,
    /// Elements from one stored row of `B` to the next; `None` packs the rows.
    pub ldb: Option<usize>,
    /// Elements from one stored row of `C` to the next; `None` packs the rows.
    pub ldc: Option<usize>,
    /// Applied to the biased sum.
    pub activation: Activation,
}

impl Default for Gemm {
    fn default() -> Self {
        Gemm {
            alpha: Bits(1.0),
            beta: Bits(0.0),
            transpose_a: false,
            transpose_b: false,
            lda: None,
            ldb: None,
            ldc: None,
            activation: Activation::None,
        }
    }
}

/// A matrix product of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GemmOp {
    /// Rows of the result.
    #[doc(hidden)]
    pub m: usize,
    /// Columns of the result.
    #[doc(hidden)]
    pub n: usize,
    /// Terms of each sum.
    #[doc(hidden)]
    pub k: usize,
    /// Number of products.
    #[doc(hidden)]
    pub batch: usize,
    /// `B` is shared by all products of the batch.
    #[doc(hidden)]
    pub shared_b: bool,
    /// `A` is stored transposed.
    #[doc(hidden)]
    pub transpose_a: bool,
    /// `B` is stored transposed.
    #[doc(hidden)]
    pub transpose_b: bool,
    /// Elements from one stored row of `A` to the next.
    #[doc(hidden)]
    pub lda: usize,
    /// Elements from one stored row of `B` to the next.
    #[doc(hidden)]
    pub ldb: usize,
    /// Elements from one stored row of `C` to the next.
    #[doc(hidden)]
    pub ldc: usize,
    /// Factor of the product.
    #[doc(hidden)]
    pub alpha: Bits,
    /// Factor of what `C` held.
    #[doc(hidden)]
    pub beta: Bits,
    /// What happens to the sum.
    #[doc(hidden)]
    pub epilogue: Epilogue,
    /// Storage and arithmetic.
    #[doc(hidden)]
    pub precision: Precision,
    /// Where its matrices lie within other values, if they do: what [`GemmOp::at`] checked.
    places: Option<Places>,
}

impl GemmOp {
    /// Checks the extents and leading dimensions of `batch` products of `m x k` by `k x n`.
    ///
    /// ```
    /// use diptych::{Gemm, GemmOp, Precision};
    ///
    /// let op = GemmOp::new(5, 2, 3, 1, &Gemm::default(), false, false, Precision::F32)?; // m n k, one matrix
    /// assert_eq!((op.m(), op.n(), op.k(), op.batch()), (5, 2, 3, 1));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an extent is 0, a leading dimension is shorter than its row, or an operand has more
    /// elements than 32-bit indices reach.
    #[expect(clippy::too_many_arguments, reason = "the extents of a matrix product are what they are")]
    pub fn new(
        m: usize,
        n: usize,
        k: usize,
        batch: usize,
        options: &Gemm,
        bias: bool,
        residual: bool,
        precision: Precision,
    ) -> Result<Self> {
        for (name, extent) in [("m", m), ("n", n), ("k", k), ("batch", batch)] {
            if extent == 0 {
                return Err(Error::shape(OP, format!("{name} = 0"), format!("{name} at least 1")));
            }
        }
        GemmOp::of_extents([m, n, k, batch], options, [bias, residual], precision)
    }

    /// [`GemmOp::new`] of extents that may be 0: a product of no terms, or without results.
    fn of_extents(
        [m, n, k, batch]: [usize; 4],
        options: &Gemm,
        [bias, residual]: [bool; 2],
        precision: Precision,
    ) -> Result<Self> {
        let row_a = if options.transpose_a { m } else { k };
        let row_b = if options.transpose_b { k } else { n };
        let leading = |name: &str, given: Option<usize>, row: usize| match given {
            Some(ld) if ld < row => {
                Err(Error::shape(OP, format!("{name} = {ld}"), format!("{name} of at least {row}")))
            }
            Some(ld) => Ok(ld),
            None => Ok(row),
        };
        let op = GemmOp {
            m,
            n,
            k,
            batch,
            shared_b: false,
            transpose_a: options.transpose_a,
            transpose_b: options.transpose_b,
            lda: leading("lda", options.lda, row_a)?,
            ldb: leading("ldb", options.ldb, row_b)?,
            ldc: leading("ldc", options.ldc, n)?,
            alpha: options.alpha,
            beta: options.beta,
            epilogue: Epilogue::new(bias, options.activation, residual.into()),
            precision,
            places: None,
        };
        // What a kernel's 32-bit indices must reach, and what keeps every product of extents from
        // overflowing: rows and columns are at most an operand's elements, with 1 in the place of 0.
        for (name, rows, ld) in
            [("A", op.stored_rows_a(), op.lda), ("B", op.stored_rows_b(), op.ldb), ("C", m, op.ldc)]
        {
            let [rows, ld, batch] = [rows, ld, batch].map(|extent| extent.max(1));
            let elements = rows.checked_mul(ld).and_then(|matrix| matrix.checked_mul(batch));
            if elements.is_none_or(|elements| elements > i32::MAX as usize) {
                return Err(Error::shape(
                    OP,
                    format!("{name} of {batch} x {rows} x {ld}"),
                    format!("at most {} elements (32-bit indices)", i32::MAX),
                ));
            }
        }
        Ok(op)
    }

    /// Rows of the result.
    ///
    /// ```
    /// use diptych::{Gemm, GemmOp, Precision};
    ///
    /// let op = GemmOp::new(5, 2, 3, 1, &Gemm::default(), false, false, Precision::F32)?; // m n k, one matrix
    /// assert_eq!(op.m(), 5);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub const fn m(&self) -> usize {
        self.m
    }

    /// Columns of the result.
    ///
    /// ```
    /// use diptych::{Gemm, GemmOp, Precision};
    ///
    /// let op = GemmOp::new(5, 2, 3, 1, &Gemm::default(), false, false, Precision::F32)?; // m n k, one matrix
    /// assert_eq!(op.n(), 2);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub const fn n(&self) -> usize {
        self.n
    }

    /// Terms of each sum.
    ///
    /// ```
    /// use diptych::{Gemm, GemmOp, Precision};
    ///
    /// let op = GemmOp::new(5, 2, 3, 1, &Gemm::default(), false, false, Precision::F32)?; // m n k, one matrix
    /// assert_eq!(op.k(), 3);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub const fn k(&self) -> usize {
        self.k
    }

    /// Number of products.
    ///
    /// ```
    /// use diptych::{Gemm, GemmOp, Precision};
    ///
    /// let op = GemmOp::new(5, 2, 3, 1, &Gemm::default(), false, false, Precision::F32)?; // m n k, one matrix
    /// assert_eq!(op.batch(), 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub const fn batch(&self) -> usize {
        self.batch
    }

    /// What happens to the sum.
    #[doc(hidden)]
    pub const fn epilogue(&self) -> Epilogue {
        self.epilogue
    }

    /// The product with one `B` for all products of the batch.
    ///
    /// ```
    /// use diptych::{Gemm, GemmOp, Precision};
    ///
    /// let op = GemmOp::new(5, 2, 3, 8, &Gemm::default(), false, false, Precision::F32)?; // m n k, eight matrices
    /// assert_eq!((op.elements_b(), op.with_shared_b().elements_b()), (48, 6));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub const fn with_shared_b(self) -> Self {
        GemmOp { shared_b: true, ..self }
    }

    /// The product with another factor of what `C` held.
    ///
    /// ```
    /// use diptych::{Bits, Gemm, GemmOp, Precision};
    ///
    /// let op = GemmOp::new(5, 2, 3, 1, &Gemm::default(), false, false, Precision::F32)?; // m n k, one matrix
    /// let adds = op.with_beta(Bits(1.0)); // C = A B + C
    /// # let _ = adds;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub const fn with_beta(self, beta: Bits) -> Self {
        GemmOp { beta, ..self }
    }

    /// Rows of `A` as stored.
    #[doc(hidden)]
    pub const fn stored_rows_a(&self) -> usize {
        if self.transpose_a { self.k } else { self.m }
    }

    /// Rows of `B` as stored.
    #[doc(hidden)]
    pub const fn stored_rows_b(&self) -> usize {
        if self.transpose_b { self.n } else { self.k }
    }

    /// Elements from one matrix `A` of the batch to the next.
    #[doc(hidden)]
    pub const fn batch_stride_a(&self) -> usize {
        if let Some(places) = self.places {
            return places.a.outer;
        }
        self.stored_rows_a() * self.lda
    }

    /// Elements from one matrix `B` of the batch to the next; 0 if it is shared.
    #[doc(hidden)]
    pub const fn batch_stride_b(&self) -> usize {
        if let Some(places) = self.places {
            return places.b.outer;
        }
        if self.shared_b { 0 } else { self.stored_rows_b() * self.ldb }
    }

    /// Elements from one matrix `C` of the batch to the next.
    #[doc(hidden)]
    pub const fn batch_stride_c(&self) -> usize {
        if let Some(places) = self.places {
            return places.c.outer;
        }
        self.m * self.ldc
    }

    /// Elements that `A` must hold: the last row of the last matrix may be short.
    ///
    /// ```
    /// use diptych::{Gemm, GemmOp, Precision};
    ///
    /// let op = GemmOp::new(5, 2, 3, 1, &Gemm::default(), false, false, Precision::F32)?; // m n k, one matrix
    /// assert_eq!(op.elements_a(), 15);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub const fn elements_a(&self) -> usize {
        let row = if self.transpose_a { self.m } else { self.k };
        self.batch * self.batch_stride_a() - (self.lda - row)
    }

    /// Elements that `B` must hold.
    ///
    /// ```
    /// use diptych::{Gemm, GemmOp, Precision};
    ///
    /// let op = GemmOp::new(5, 2, 3, 1, &Gemm::default(), false, false, Precision::F32)?; // m n k, one matrix
    /// assert_eq!(op.elements_b(), 6);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub const fn elements_b(&self) -> usize {
        let row = if self.transpose_b { self.k } else { self.n };
        let matrices = if self.shared_b { 1 } else { self.batch };
        matrices * self.stored_rows_b() * self.ldb - (self.ldb - row)
    }

    /// Elements that `C` must hold.
    ///
    /// ```
    /// use diptych::{Gemm, GemmOp, Precision};
    ///
    /// let op = GemmOp::new(5, 2, 3, 1, &Gemm::default(), false, false, Precision::F32)?; // m n k, one matrix
    /// assert_eq!(op.elements_c(), 10);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub const fn elements_c(&self) -> usize {
        self.batch * self.batch_stride_c() - (self.ldc - self.n)
    }

    /// Index of `op(A)[row, term]` of matrix `b`.
    #[doc(hidden)]
    pub const fn index_a(&self, b: usize, row: usize, term: usize) -> usize {
        b * self.batch_stride_a()
            + if self.transpose_a { term * self.lda + row } else { row * self.lda + term }
    }

    /// Index of `op(B)[term, column]` of matrix `b`.
    #[doc(hidden)]
    pub const fn index_b(&self, b: usize, term: usize, column: usize) -> usize {
        b * self.batch_stride_b()
            + if self.transpose_b { column * self.ldb + term } else { term * self.ldb + column }
    }

    /// Index of `C[row, column]` of matrix `b`.
    #[doc(hidden)]
    pub const fn index_c(&self, b: usize, row: usize, column: usize) -> usize {
        b * self.batch_stride_c() + row * self.ldc + column
    }
}

impl GemmOp {
    /// The product of packed matrices of these shapes (see [`Shape::matrix`]); one right
    /// matrix may serve a batch of left ones.
    ///
    /// ```
    /// use diptych::{Gemm, GemmOp, Precision, Shape};
    ///
    /// let (a, b) = (Shape::matrix(1, 5, 3), Shape::matrix(1, 3, 2));
    /// let op = GemmOp::of_matrices(a, b, &Gemm::default(), false, false, Precision::F32)?;
    /// assert_eq!((op.m(), op.n()), (5, 2));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit each other, or the options ask for leading dimensions or `beta`.
    pub fn of_matrices(
        a: Shape,
        b: Shape,
        options: &Gemm,
        bias: bool,
        residual: bool,
        precision: Precision,
    ) -> Result<Self> {
        let (m, k) = if options.transpose_a { (a.c, a.w) } else { (a.w, a.c) };
        let (k_b, n) = if options.transpose_b { (b.c, b.w) } else { (b.w, b.c) };
        if a.h != 1 || b.h != 1 || k != k_b || (b.n != a.n && b.n != 1) {
            return Err(Error::shape(
                OP,
                format!("A {a} and B {b} (batch 1 rows columns)"),
                format!("matrices that share k (found {k} and {k_b}) and the batch, or one B"),
            ));
        }
        if (options.lda, options.ldb, options.ldc) != (None, None, None) || options.beta != Bits(0.0) {
            return Err(Error::shape(
                OP,
                format!(
                    "lda {:?} ldb {:?} ldc {:?} beta {}",
                    options.lda, options.ldb, options.ldc, options.beta.0
                ),
                "packed operands and beta 0 for matrices of known shape",
            ));
        }
        let mut op = GemmOp::of_extents([m, n, k, a.n], options, [bias, residual], precision)?;
        op.shared_b = b.n == 1;
        Ok(op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::ops::{Offered, Op};

    /// How many kernels of `op` are launched, in grids that a device has.
    fn launched(op: &GemmOp, limits: &Limits) -> usize {
        let of = |(kernel, tile): Offered<'_>| {
            let work_group = kernel.work_groups(tile).first().copied().unwrap_or([8, 8, 1]);
            kernel.plan(&kernel.choice(tile, work_group), limits).ok()
        };
        let kernels = op.kernels();
        let launches = kernels.space(limits).into_iter().filter_map(of);
        let within = |(groups, most): (u32, u32)| groups >= 1 && groups <= most;
        launches
            .inspect(|launch| {
                let mut groups = launch.groups().into_iter().zip(limits.max_groups);
                assert!(groups.all(within), "{op:?} {launch:?}");
                let [x, y, z] = launch.grid.map(u64::from);
                assert!(x * 64 >= op.n as u64 / 4 && z >= op.batch as u64 && y > 0, "{op:?} {launch:?}");
            })
            .count()
    }

    /// What used to reach kernels by way of public fields, and the largest extents.
    #[test]
    fn no_construction_has_an_extent_that_indices_do_not_reach() {
        let huge = [0, 1, 2, 1 << 15, 1 << 16, 1 << 31, 1 << 32, 1 << 62, 1 << 63, usize::MAX];
        let (mut accepted, mut launches) = (0, 0);
        for m in huge {
            for n in huge {
                for k in huge {
                    for (lda, ldb, ldc) in
                        [(None, None, None), (Some(m), Some(n), Some(k)), (Some(k), Some(k), Some(n))]
                    {
                        for transpose in [false, true] {
                            let options = Gemm {
                                lda,
                                ldb,
                                ldc,
                                transpose_a: transpose,
                                transpose_b: transpose,
                                ..Gemm::default()
                            };
                            let Ok(op) = GemmOp::new(m, n, k, 2, &options, true, true, Precision::F32) else {
                                continue;
                            };
                            accepted += 1;
                            let op = op.with_shared_b().with_beta(Bits(1.0));
                            for elements in [op.elements_a(), op.elements_b(), op.elements_c()] {
                                assert!((1..=i32::MAX as usize).contains(&elements), "{op:?}");
                            }
                            let row = if transpose { op.m } else { op.k };
                            assert!(op.lda >= row && op.ldc >= op.n, "{op:?}");
                            assert!(op.flops() > 0);
                            for limits in [Limits::webgpu(), Limits::opencl()] {
                                launches += launched(&op, &limits);
                            }
                        }
                    }
                }
            }
        }
        assert!(accepted > 20 && launches > 100, "{accepted} products, {launches} launches");
    }
}
