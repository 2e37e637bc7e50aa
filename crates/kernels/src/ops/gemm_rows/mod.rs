//! `y = nest(C, r0, ...)` of `C = f(alpha A B + bias) + R`, as one kernel: a matrix product and what a nest makes of each of its rows
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `A` (`mat_a`) | `m x k` | rows |
//! | `B` (`mat_b`) | `k x n` | rows |
//! | `bias`, `slope` | `n` | |
//! | `R` (`residual`) | `m x n` | rows |
//! | `r0`, ... (`read0`, ...) | as the sources of the nest | rows |
//! | `y` (`dst`, `dst1`, ...) | as the results of the nest | rows |
//!
//! The [`Nest`](super::loops::Nest) has reductions, such as the mean and the variance of a normalisation or the sum of a softmax, and
//! each of its rows reads one row of `C`, which a work-group keeps in local memory: `C` is no operand. A nest that writes what it
//! reads of `C` stores it for others.
//!
//! `C` is summed in f32. A NaN or an infinity of `A` reaches its row of `C`, one of `B` its column of `C`.

mod cpu;
mod direct;
mod examples;
mod matrix;
mod operator;
mod oracle;
mod plan;
mod sharing;

pub(super) use examples::{NUMBERS, examples};
pub use operator::GemmRows;

use super::gemm::GemmOp;
use super::loops::LoopsOp;
use crate::emit::Operand;
use crate::error::{Error, Result};
use std::sync::Arc;

const OP: &str = "gemm_rows";

/// A matrix product and a nest of its rows, of concrete shapes.
#[derive(Debug, Clone)]
pub struct GemmRowsOp {
    product: GemmOp,
    /// The nest, which reads the product as [`Operand::C`] and the rest as [`Operand::Read`].
    nest: Arc<LoopsOp>,
    /// Which source of the nest the product is.
    source: usize,
}

impl GemmRowsOp {
    /// The product, and `nest` with its result as source `source`.
    ///
    /// # Errors
    /// If the product's kernels read no whole vec4s, it is no plain one of one matrix `B`, or a row of the nest is not made of one row
    /// of the product.
    fn new(product: GemmOp, nest: &LoopsOp, source: usize) -> Result<Self> {
        let refuse =
            |found: String, wanted: &str| Err(Error::unsupported(OP, format!("{found}, wanted {wanted}")));
        let Some(product) = product.as_rows() else {
            let wanted = "one of packed rows of whole vec4s and one B, which adds to nothing";
            return refuse(format!("a product {}", product.problem()), wanted);
        };
        let nest = nest.with_product(source, Operand::C);
        if let Some(found) = nest.obstacle_of_product(source, [product.m(), product.n()]) {
            return refuse(found, "a nest whose rows are each made of one row of the product");
        }
        if product.epilogue.activation.call().is_some() && !nest.kinds_of_product().0 {
            let found = "an activation that is a function before a nest of single elements".to_owned();
            return refuse(found, "a nest of four elements at once");
        }
        Ok(GemmRowsOp { product, nest: Arc::new(nest), source })
    }
}
