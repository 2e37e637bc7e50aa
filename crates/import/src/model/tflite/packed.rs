//! Weights of 4 and 8 bits, which rows of floats are multiplied by as they are stored.
//!
//! Rows that TensorFlow Lite rounds to 8 bits at each run are rounded before them ([`super::at_run`]).

use super::import::{Import, Op};
use super::names::element;
use super::slots::Slot;
use super::stored::is_quantised;
use super::tables::at;
use crate::model::build::{Packed, Quantised, Shared};
use crate::model::reason::Reason;
use std::sync::Arc;

impl<'a> Import<'a> {
    /// Input `index`, a constant matrix of integers of 4 or 8 bits with a scale for each row or one for all, packed by rows;
    /// `None` if it is none, or if what it multiplies, input 0, is no float.
    pub(super) fn packed(&mut self, op: &Op<'a>, index: usize) -> Result<Option<Packed>, Reason> {
        let [x, position] = [op.input(0)?, op.input(index)?].map(|input| self.tensors.position(input));
        let (x, position) = (x?, position?);
        let untouched = matches!(self.slots.get(position), Some(Slot::Untouched));
        if !untouched || self.depth > 0 || self.tensors.steps(x)?.is_some() {
            return Ok(None);
        }
        let tensor = self.tensors.tensor(position)?;
        let (bits, more) = match tensor.element_type() {
            element::INT4 => (4, 8),
            element::INT8 => (8, 128),
            element::UINT8 => (8, 0),
            _ => return Ok(None),
        };
        let (extents, stored) = (self.tensors.extents(position)?, self.tensors.data(position)?);
        let (&[rows, columns], Some(bytes)) = (&extents[..], stored) else { return Ok(None) };
        let plain = is_quantised(&tensor) && tensor.sparsity().is_none() && !tensor.is_variable();
        let count =
            rows.checked_mul(columns).filter(|count| *count > 0 && (count * bits).div_ceil(8) == bytes.len());
        let (true, Some(count), Some(quantization)) = (plain, count, tensor.quantization()) else {
            return Ok(None);
        };
        self.build.budget.spend(count.saturating_mul(4))?;
        let scales: Vec<f32> = quantization.scale().map_or_else(Vec::new, |scales| scales.iter().collect());
        let zeros = quantization.zero_point();
        let shared = match scales.len() {
            1 => Shared::All,
            of_rows if of_rows == rows && quantization.axis() == 0 => Shared::Index(0),
            _ => return Ok(None),
        };
        let zero = |place: usize| match zeros.map_or(0, |zeros| zeros.len()) {
            0 => Some(0),
            1 => zeros.and_then(|zeros| at(zeros, 0)),
            _ => zeros.and_then(|zeros| at(zeros, place)),
        };
        let most = (1i64 << bits) - 1;
        let of_bits = |zero: Option<i64>| {
            let moved = zero?.checked_add(more)?;
            u8::try_from(moved).ok().filter(|zero| i64::from(*zero) <= most)
        };
        let zeros: Option<Vec<u8>> = (0..scales.len()).map(|place| of_bits(zero(place))).collect();
        let Some(zeros) = zeros else { return Ok(None) };
        let make = || {
            // The sign is the upper bit: turned over, it is the integer from 0 on.
            let integers: Vec<u8> = match bits {
                4 => bytes
                    .iter()
                    .flat_map(|byte| [byte & 15, byte >> 4])
                    .map(|half| half ^ 8)
                    .take(count)
                    .collect(),
                _ => bytes.iter().map(|byte| byte ^ more as u8).collect(),
            };
            Quantised::new([rows, columns], bits, integers, shared, scales, Some(zeros))
                .map(|made| Some(Arc::new(made)))
        };
        // A tensor that says how its elements are stored has a place of its own in the file.
        let made = match &self.build.kept {
            Some(kept) => kept.quantised(format!("bytes {:?} {}", bytes.as_ptr(), tensor.0.loc()), make)?,
            None => make()?,
        };
        Ok(made.and_then(|made| made.packed(0)))
    }
}
