//! The parts of a move as the kernels' texts name them (`shaders/shared/place.wgsl`).

use super::axes::Part;
use super::{MAX_AXES, RemapOp, Rule};
use crate::dtype::{DType, Precision};
use crate::emit::{Scalar, Value};
use crate::ops::kernel::Constants;
use crate::ops::spec::{Params, extent, unsigned};

const EXTENTS: [&str; MAX_AXES] =
    ["extent0", "extent1", "extent2", "extent3", "extent4", "extent5", "extent6", "extent7"];
const STRIDES: [&str; MAX_AXES] =
    ["stride0", "stride1", "stride2", "stride3", "stride4", "stride5", "stride6", "stride7"];
const STARTS: [&str; MAX_AXES] =
    ["start0", "start1", "start2", "start3", "start4", "start5", "start6", "start7"];
const STEPS: [&str; MAX_AXES] = ["step0", "step1", "step2", "step3", "step4", "step5", "step6", "step7"];
const SOURCES: [&str; MAX_AXES] =
    ["source0", "source1", "source2", "source3", "source4", "source5", "source6", "source7"];

/// The rule as the texts number it.
pub(super) const fn number(rule: &Rule) -> u32 {
    match rule {
        Rule::Within => 0,
        Rule::Fill(_) => 1,
        Rule::Reflect => 2,
        Rule::Symmetric => 3,
        Rule::Edge => 4,
        Rule::Wrap => 5,
    }
}

/// What a text has for an element without a source.
const NONE: u32 = u32::MAX;

/// A number of 32 bits, as [`RemapOp::new`] has made sure.
pub(super) fn signed(number: isize) -> Scalar {
    Scalar::I32(i32::try_from(number).unwrap_or(i32::MAX))
}

/// A number of 32 bits that a text adds to an unsigned one: in two's complement.
fn wrapping(number: isize) -> Scalar {
    Scalar::U32(i32::try_from(number).unwrap_or(i32::MAX).cast_unsigned())
}

impl RemapOp {
    /// What rows are moved in: integers as words of 32 bits in every precision.
    pub(super) fn precision_of_rows(&self) -> Precision {
        if self.dtype == DType::F32 { self.precision.with_f32_sums() } else { Precision::F32 }
    }

    /// The type of its rows.
    pub(super) fn stored(&self) -> DType {
        if self.dtype == DType::F32 { self.precision.storage() } else { self.dtype }
    }

    /// The parts, one of one element if there are none.
    fn text_parts(&self) -> Vec<Part> {
        let one = Part { extent: 1, stride: 0, start: 0, step: 1, source: 1 };
        if self.parts.is_empty() { vec![one] } else { self.parts.clone() }
    }

    /// The rule, if a part needs one.
    pub(super) fn text_rule(&self) -> u32 {
        if self.parts.iter().all(Part::is_linear) { 0 } else { number(&self.rule) }
    }

    /// Elements that can be moved at once: 4 where whole vec4s of the source become whole ones of the result.
    pub(super) fn width(&self) -> usize {
        let four = |number: isize| number % 4 == 0;
        let Some((inner, outer)) = self.parts.split_last() else { return 1 };
        let splits = matches!(self.rule, Rule::Fill(_) | Rule::Wrap);
        let moved = splits && inner.step == 1 && four(inner.start) && inner.source.is_multiple_of(4);
        let whole = inner.stride == 1
            && (inner.is_linear() || moved)
            && [inner.extent, self.first, self.source.elements()].iter().all(|number| number % 4 == 0)
            && outer.iter().all(|part| four(part.stride));
        if whole { 4 } else { 1 }
    }

    /// The parts, `width` elements counted as one.
    pub(super) fn part_params(&self, width: usize, storage: DType) -> Params {
        let parts = self.text_parts();
        let ruled = self.text_rule() != 0;
        let mut params = vec![("first", unsigned(self.first / width))];
        for (axis, part) in parts.iter().enumerate() {
            let inner = axis + 1 == parts.len();
            let (own, apart) = if inner { (width, 1) } else { (1, width) };
            params.push((EXTENTS[axis], unsigned(part.extent / own)));
            params.push((STRIDES[axis], wrapping(part.stride / apart as isize)));
            if ruled {
                params.push((STARTS[axis], signed(part.start / own as isize)));
                params.push((STEPS[axis], signed(part.step)));
                params.push((SOURCES[axis], signed((part.source / own) as isize)));
            }
        }
        params.extend(self.fill_param(storage, self.text_rule()));
        params
    }

    /// The fill value, if a text with this rule has one. A finite one is at most the largest half where halves are
    /// stored; an infinite one stays so.
    pub(super) fn fill_param(&self, storage: DType, rule: u32) -> Option<(&'static str, Scalar)> {
        let largest = half::f16::MAX.to_f32();
        let value = match storage {
            DType::F16 if self.fill().is_finite() => self.fill().clamp(-largest, largest),
            _ => self.fill(),
        };
        let word = self.fill_words().first().map_or(0, |word| word.to_bits());
        let scalar = match self.dtype {
            DType::U32 => Scalar::U32(word),
            DType::I32 => Scalar::I32(word.cast_signed()),
            _ => Scalar::F32(value),
        };
        (rule == 1).then_some(("fill", scalar))
    }

    pub(super) fn part_constants(&self) -> Constants {
        vec![
            ("AXES", Value::U32(extent(self.text_parts().len()))),
            ("RULE", Value::U32(self.text_rule())),
            ("NONE", Value::U32(NONE)),
        ]
    }
}
