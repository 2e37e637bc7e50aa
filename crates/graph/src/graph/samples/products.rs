//! Rules of matrix products and of attention.

use super::along::extent_of;
use super::inputs::{Inputs, find};
use super::place::{grown, inserted};
use super::{Own, Samples};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::{Node, Value};
use crate::ops::gemm::Gemm;
use std::sync::Arc;

/// `A` and `B` of a product for all samples, and what its result is.
struct Operands {
    a: Value,
    b: Value,
    /// The extents of the result, and before which axis of a sample's the samples' axis lies.
    out: Vec<usize>,
    at: usize,
}

/// How many matrices these extents are.
fn matrices(own: &Own) -> usize {
    if own.rank() > 2 { extent_of(own.dims.extents(), 0) } else { 1 }
}

impl Samples<'_> {
    pub(super) fn product(
        &mut self,
        node: &Node,
        inputs: Inputs<'_>,
        options: Gemm,
    ) -> Result<Option<Vec<Own>>> {
        let each = [Operand::A, Operand::B, Operand::Residual];
        if inputs.iter().any(|(operand, own)| own.at.is_some() && !each.contains(operand)) {
            return Ok(None);
        }
        let (Some(a), Some(b)) = (find(inputs, Operand::A), find(inputs, Operand::B)) else {
            return Ok(None);
        };
        let dims = self.output_dims(node)?;
        let operands = match b.at {
            None => self.by_one_matrix(a, b, dims.extents(), options)?,
            Some(_) => self.by_own_matrices(a, b, dims.extents(), options)?,
        };
        let Some(Operands { a, b, out, at }) = operands else { return Ok(None) };
        let mut given = Vec::with_capacity(inputs.len());
        for &(operand, own) in inputs {
            let value = match operand {
                Operand::A => a,
                Operand::B => b,
                Operand::Residual => {
                    // It may have another rank than the result, whose axes `at` counts.
                    let of_result = match own.at {
                        Some(_) if own.dims != dims => {
                            Own { value: self.ordered(own, 0)?, dims, at: Some(0) }
                        }
                        _ => Own { dims, ..own },
                    };
                    let value = self.ordered(of_result, at)?;
                    self.shaped(value, &out)?
                }
                _ => own.value,
            };
            given.push((operand, value));
        }
        self.one_output(Arc::new(options), &given, dims, at)
    }

    /// Where all samples share `B`, theirs are more rows, or more matrices.
    fn by_one_matrix(&mut self, a: Own, b: Own, out: &[usize], options: Gemm) -> Result<Option<Operands>> {
        let rank = a.rank();
        let rows = rank.checked_sub(2).filter(|_| !options.transpose_a);
        let outermost = Some(0).filter(|_| rank > 2 && matrices(&b) == 1);
        // Where nothing has to be moved: as more matrices, or as more rows of each.
        let axes = [outermost, rows];
        let free = axes.iter().flatten().find(|&&axis| a.is_at(axis, rank));
        if let Some(&axis) = free.or(axes.iter().flatten().next()) {
            let value = self.merged(a, axis)?;
            let out = grown(out, axis, self.count);
            return Ok(Some(Operands { a: value, b: b.value, out, at: axis }));
        }
        if rank == 2 {
            let (value, out) = (self.apart(a, 0)?, inserted(out, 0, self.count));
            return Ok(Some(Operands { a: value, b: b.value, out, at: 0 }));
        }
        let out = grown(out, 0, self.count);
        Ok(Some(Operands { a: self.merged(a, 0)?, b: self.merged(b, 0)?, out, at: 0 }))
    }

    /// Where each sample has its own `B`.
    fn by_own_matrices(&mut self, a: Own, b: Own, out: &[usize], options: Gemm) -> Result<Option<Operands>> {
        let (of_a, of_b) = (matrices(&a), matrices(&b));
        let mut all = |own: Own| match own.rank() {
            2 => self.apart(own, 0),
            _ => self.merged(own, 0),
        };
        let values = (all(a)?, all(b)?);
        let count = self.count;
        if of_a == of_b {
            let out = if a.rank() == 2 { inserted(out, 0, count) } else { grown(out, 0, count) };
            return Ok(Some(Operands { a: values.0, b: values.1, out, at: 0 }));
        }
        if of_b != 1 || options.transpose_a {
            return Ok(None);
        }
        // One `B` for all matrices of a sample: they are one of more rows.
        let [.., rows, k] = *a.dims.extents() else { return Ok(None) };
        let [.., columns] = *out else { return Ok(None) };
        let a = self.shaped(values.0, &[count, of_a * rows, k])?;
        Ok(Some(Operands { a, b: values.1, out: vec![count, of_a * rows, columns], at: 0 }))
    }

    /// Attention, whose outermost axis is a batch.
    pub(super) fn attention(&mut self, node: &Node, inputs: Inputs<'_>) -> Result<Option<Vec<Own>>> {
        let whole = [Operand::Query, Operand::Key, Operand::Value];
        let batch = |own: &Own| extent_of(own.dims.extents(), 0);
        if whole.iter().any(|&operand| find(inputs, operand).is_none_or(|own| batch(&own) != 1)) {
            return Ok(None);
        }
        let mut given = Vec::with_capacity(inputs.len());
        for &(operand, own) in inputs {
            let value = match operand {
                operand if whole.contains(&operand) => self.merged(own, 0)?,
                Operand::Bias | Operand::Mask => self.merged_aligned(own, 0, 4)?,
                // One number, or one of each batch.
                _ if own.at.is_some() && own.dims.elements() == 1 => self.shaped(own.value, &[self.count])?,
                _ if own.at.is_some() => return Ok(None),
                _ => own.value,
            };
            given.push((operand, value));
        }
        let dims = self.output_dims(node)?;
        self.one_output(Arc::clone(&node.operator), &given, dims, 0)
    }
}
