//! `direct`: one vec4 of output channels per invocation, on a grid of width x height x slices. The shape of
//! the TensorFlow Lite GL delegate's kernel.

use super::PointwiseOp;
use crate::limits::Limits;
use crate::ops::effort::{self, Effort};
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::Registers;
use crate::ops::spec::{Params, extent, unsigned};

#[derive(Debug)]
pub(super) struct Direct;

impl Kernel<PointwiseOp> for Direct {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("direct", crate::emit::text!("../../../shaders/pointwise/direct.wgsl"))
            .in_maps()
            .with_ordinary(Ordinary::Convolution)
    }

    fn offers(&self, _op: &PointwiseOp, _limits: &Limits) -> Vec<Offer> {
        offers(5, [[1, 1, 1]])
    }

    fn grid(&self, op: &PointwiseOp, _tile: [u32; 3]) -> [u32; 3] {
        let output = op.0.output;
        [extent(output.w), extent(output.h), extent(output.slices()) * extent(output.n)]
    }

    /// Not known well enough to refuse a choice: compilers keep more or fewer loads under way.
    fn registers(&self, _op: &PointwiseOp, _choice: &Choice, _limits: &Limits) -> Option<Registers> {
        None
    }

    fn effort(&self, op: &PointwiseOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        let [x, y, z] = choice.work_group;
        Some(effort::of_map(&op.0, choice, [1, 1], [x * y, z], self.grid(op, choice.tile)))
    }

    fn params(&self, op: &PointwiseOp, _choice: &Choice) -> Params {
        let problem = &op.0;
        vec![
            ("dst_w", unsigned(problem.output.w)),
            ("dst_h", unsigned(problem.output.h)),
            ("src_c4", unsigned(problem.input.slices())),
            ("dst_c4", unsigned(problem.output.slices())),
            ("batch", unsigned(problem.output.n)),
        ]
    }

    fn constants(&self, _op: &PointwiseOp, _choice: &Choice, _limits: &Limits) -> Constants {
        Vec::new()
    }
}
