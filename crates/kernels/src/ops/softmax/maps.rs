//! `maps`: the channels of one pixel per invocation.

use super::SoftmaxOp;
use crate::emit::{Access, Binding, Element, Operand, Scalar, Value};
use crate::limits::{Family, Limits};
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, binding, extent, unsigned};

/// Slices that take an invocation long, and pixels that are too few to keep a device busy meanwhile: one that runs
/// kernels on a CPU, and a GPU. In a Whisper encoder 9,000 pixels of 375 slices took an H100 five times as long as rows
/// of f32.
const LONG: usize = 32;
const FEW: [usize; 2] = [1024, 65536];

#[derive(Debug)]
pub(super) struct Maps;

impl Kernel<SoftmaxOp> for Maps {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("maps", crate::emit::text!("../../../shaders/softmax/maps.wgsl"))
            .with_ordinary(Ordinary::Size([16, 4, 1]))
    }

    fn offers(&self, op: &SoftmaxOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() { Vec::new() } else { offers(0, [[1, 1, 1]]) }
    }

    fn grid(&self, op: &SoftmaxOp, _tile: [u32; 3]) -> [u32; 3] {
        let shape = op.dims.shape();
        [extent(shape.w), extent(shape.h), extent(shape.n)]
    }

    fn obstacle(&self, op: &SoftmaxOp, limits: &Limits) -> Option<String> {
        let shape = op.dims.shape();
        let pixels = shape.n * shape.h * shape.w;
        match op.dims.rank() {
            rank @ (0 | 5..) => Some(format!("rank {rank}, feature maps have 1 to 4")),
            rank if op.axis + 1 != rank => {
                Some(format!("along axis {}, in maps along the channels", op.axis))
            }
            _ if shape.slices() >= LONG && pixels < FEW[usize::from(limits.family != Family::CpuDriver)] => {
                Some(format!("{pixels} invocations for {} channels each, rows have work-groups", shape.c))
            }
            _ => None,
        }
    }

    fn bindings(&self, op: &SoftmaxOp, _choice: &Choice) -> Vec<Binding> {
        let map = Element::Vec4(op.precision.storage());
        vec![binding(Operand::Src, map, Access::Read), binding(Operand::Dst, map, Access::Write)]
    }

    fn params(&self, op: &SoftmaxOp, _choice: &Choice) -> Params {
        let shape = op.dims.shape();
        vec![
            ("width", unsigned(shape.w)),
            ("height", unsigned(shape.h)),
            ("batch", unsigned(shape.n)),
            ("slices", unsigned(shape.slices())),
            ("channels", unsigned(shape.c)),
            ("beta", Scalar::F32(op.beta.0)),
        ]
    }

    fn constants(&self, op: &SoftmaxOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![("LOG", Value::U32(u32::from(op.log)))]
    }
}
