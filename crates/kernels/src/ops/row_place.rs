//! A feature map that lies within a value of rows: its channels are some of each row.

use super::operands::{Operands, get};
use crate::emit::{Operand, Scalar};
use crate::error::{Error, Result};
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;
use std::borrow::Cow;

/// Where the pixels of a feature map lie within a value, in elements: all numbers are multiples of 4, so that vec4s are whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowPlace {
    /// Elements of the value.
    pub elements: usize,
    /// Where the first pixel begins.
    pub first: usize,
    /// From an image to the next.
    pub image: usize,
    /// From a pixel to the next.
    pub pixel: usize,
}

impl RowPlace {
    /// Checks that a map of `shape` lies there.
    ///
    /// # Errors
    /// If a pixel would lie beyond the value, or vec4s of channels are not whole.
    pub(super) fn check(&self, op: &'static str, shape: Shape) -> Result<()> {
        let RowPlace { elements, first, image, pixel } = *self;
        let last = |count: usize, apart: usize| count.checked_sub(1)?.checked_mul(apart);
        let end = || {
            let pixels = last(shape.h.checked_mul(shape.w)?, pixel)?;
            first.checked_add(last(shape.n, image)?)?.checked_add(pixels)?.checked_add(shape.c)
        };
        let whole = [elements, first, image, pixel, shape.c].iter().all(|number| number.is_multiple_of(4));
        if whole && pixel >= shape.c && end().is_some_and(|end| end <= elements.min(i32::MAX as usize)) {
            return Ok(());
        }
        let wanted = "whole vec4s of channels within the value";
        Err(Error::shape(op, format!("a map of {shape} at {self:?}"), wanted))
    }

    /// The scalars of a kernel, in vec4s.
    pub(super) fn params(&self) -> Params {
        let numbers = [("src_first", self.first), ("src_image", self.image), ("src_pixel", self.pixel)];
        numbers.map(|(name, number)| -> (&'static str, Scalar) { (name, unsigned(number / 4)) }).to_vec()
    }

    /// What is added to a problem's key.
    pub(super) fn key(&self) -> String {
        format!(" of{} at{}+{}+{}", self.elements, self.first, self.image, self.pixel)
    }

    /// The map of `shape`, of the value that holds it.
    pub(super) fn gathered(&self, shape: Shape, value: &[f32]) -> Vec<f32> {
        let pixels = shape.h * shape.w;
        let each = (0..shape.n * pixels).flat_map(|pixel| {
            let at = self.first + self.image * (pixel / pixels) + self.pixel * (pixel % pixels);
            value.get(at..at + shape.c).unwrap_or_default().iter().copied()
        });
        each.collect()
    }

    /// The operands with the map of `shape` in the place of the value that holds it.
    pub(super) fn packed<'a>(&self, shape: Shape, operands: &Operands<'a>) -> Operands<'a> {
        let map = self.gathered(shape, get(operands, Operand::Src).unwrap_or_default());
        let mut packed = operands.clone();
        packed.insert(Operand::Src, Cow::Owned(map));
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_beyond_its_value_is_refused() {
        let shape = Shape::nhwc(2, 3, 5, 8);
        let right = RowPlace { elements: 2 * 15 * 24, first: 8, image: 15 * 24, pixel: 24 };
        assert!(right.check("op", shape).is_ok());
        for wrong in [
            RowPlace { first: 20, ..right },
            RowPlace { first: 2, ..right },
            RowPlace { image: usize::MAX - 3, ..right },
            RowPlace { pixel: 4, ..right },
            RowPlace { elements: right.elements - 24, ..right },
        ] {
            assert!(wrong.check("op", shape).is_err(), "{wrong:?}");
        }
        let value: Vec<f32> = (0..right.elements).map(|element| element as f32).collect();
        let map = right.gathered(shape, &value);
        assert_eq!(map.len(), shape.elements());
        assert_eq!([map[0], map[8], map[15 * 8 + 1]], [8.0, 32.0, (15 * 24 + 9) as f32]);
    }
}
