//! `dst = beta * dst + alpha * lhs * rhs` on slices: the only use of the `gemm` crate, which the feature `gemm` brings.

use crate::error::{Error, Result};

/// A matrix in a slice: element `(row, column)` lies at `row * strides[0] + column * strides[1]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) strides: [usize; 2],
}

/// Factors of the product and of what the destination held; with `beta = 0` the destination is
/// not read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Factors {
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
}

/// Extents `m`, `n` and `k` of a product.
pub(crate) type Extents = [usize; 3];

/// `dst = beta * dst + alpha * lhs * rhs` with `lhs` of `m x k`, `rhs` of `k x n` and `dst` of
/// `m x n`, its rows `dst_stride` apart.
///
/// # Errors
/// [`Error::Internal`] if a matrix does not lie within its slice, or rows of `dst` overlap.
pub(crate) fn multiply(
    [m, n, k]: Extents,
    dst: &mut [f32],
    dst_stride: usize,
    lhs: Matrix<'_>,
    rhs: Matrix<'_>,
    factors: Factors,
) -> Result<()> {
    let sides = [
        ("dst", dst.len(), m, n, [dst_stride, 1]),
        ("lhs", lhs.data.len(), m, k, lhs.strides),
        ("rhs", rhs.data.len(), k, n, rhs.strides),
    ];
    for (name, len, rows, columns, strides) in sides {
        let last = last_index(rows, columns, strides);
        if last.is_none_or(|last| last >= len || isize::try_from(last).is_err()) {
            return Err(Error::Internal(format!(
                "{name} of {rows} x {columns}, strides {strides:?}, in a slice of {len}"
            )));
        }
    }
    if dst_stride < n && m > 1 {
        return Err(Error::Internal(format!("rows of {n} overlap at stride {dst_stride}")));
    }
    compute([m, n, k], dst, dst_stride, lhs, rhs, factors);
    Ok(())
}

/// [`multiply`] of matrices within their slices.
#[cfg(feature = "gemm")]
fn compute(
    [m, n, k]: Extents,
    dst: &mut [f32],
    dst_stride: usize,
    lhs: Matrix<'_>,
    rhs: Matrix<'_>,
    factors: Factors,
) {
    // All strides are at most an index that fits `isize`, or belong to an axis of extent 1.
    let signed = |stride: usize| isize::try_from(stride).unwrap_or(0);
    // SAFETY: the loop of `multiply`, the only caller, holds the last element of each matrix, and so
    // all of them, within its slice; `dst` is borrowed mutably, so it overlaps neither operand, and its rows do not overlap
    // each other. Tests in `cpu::gemm` run odd extents and leading dimensions against the oracle.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            dst.as_mut_ptr(),
            1,
            signed(dst_stride),
            factors.beta != 0.0,
            lhs.data.as_ptr(),
            signed(lhs.strides[1]),
            signed(lhs.strides[0]),
            rhs.data.as_ptr(),
            signed(rhs.strides[1]),
            signed(rhs.strides[0]),
            factors.beta,
            factors.alpha,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// [`multiply`] of matrices within their slices: a row of the destination gathers one row of `rhs` after the other.
#[cfg(not(feature = "gemm"))]
fn compute(
    [m, n, k]: Extents,
    dst: &mut [f32],
    dst_stride: usize,
    lhs: Matrix<'_>,
    rhs: Matrix<'_>,
    Factors { alpha, beta }: Factors,
) {
    for row in 0..m {
        let sums = &mut dst[row * dst_stride..][..n];
        if beta == 0.0 {
            sums.fill(0.0);
        } else {
            sums.iter_mut().for_each(|sum| *sum *= beta);
        }
        for step in 0..k {
            let factor = alpha * lhs.data[row * lhs.strides[0] + step * lhs.strides[1]];
            let from = &rhs.data[step * rhs.strides[0]..];
            if rhs.strides[1] == 1 {
                sums.iter_mut().zip(from).for_each(|(sum, value)| *sum += factor * value);
            } else {
                let place = (0..n).map(|column| column * rhs.strides[1]);
                sums.iter_mut().zip(place).for_each(|(sum, place)| *sum += factor * from[place]);
            }
        }
    }
}

/// The index of the last element; `None` if there is none or it overflows.
fn last_index(rows: usize, columns: usize, strides: [usize; 2]) -> Option<usize> {
    let row = rows.checked_sub(1)?.checked_mul(strides[0])?;
    let column = columns.checked_sub(1)?.checked_mul(strides[1])?;
    row.checked_add(column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_beyond_its_slice_is_refused() {
        let short = Matrix { data: &[0.0; 5], strides: [3, 1] };
        let whole = Matrix { data: &[0.0; 6], strides: [2, 1] };
        let factors = Factors { alpha: 1.0, beta: 0.0 };
        let product = |lhs, rhs, dst: &mut [f32], stride| multiply([2, 2, 3], dst, stride, lhs, rhs, factors);
        assert!(product(short, whole, &mut [0.0; 4], 2).is_err());
        let lhs = Matrix { data: &[1.0; 6], strides: [3, 1] };
        assert!(product(lhs, whole, &mut [0.0; 3], 2).is_err());
        assert!(product(lhs, whole, &mut [0.0; 4], 1).is_err());
        assert!(product(lhs, whole, &mut [0.0; 4], 2).is_ok());
        let huge = Matrix { data: &[1.0; 6], strides: [usize::MAX, 2] };
        assert!(product(huge, whole, &mut [0.0; 4], 2).is_err());
    }
}
