//! `maps`: one vec4 of channels per invocation, on a grid of pixels x slices; `maps_group`: one per work-group,
//! whose size is `tile[0]`, on a grid of pixels x slices.

use super::ReduceOp;
use super::arguments::constants;
use super::groups::{group_sizes, pays};
use crate::dims::{Dims, MAX_RANK};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, binding, extent, unsigned};

/// Outputs of a channel from which on an invocation for each keeps any device busy.
const MANY_OUTPUTS: usize = 65536;

/// Batch, height and width of a feature map, as kernels loop over them.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Pixels {
    /// Extents of those that stay, 1 in place of the others.
    pub(in crate::ops) kept: [usize; 3],
    /// Extents of those that are reduced, 1 in place of the others.
    pub(in crate::ops) reduced: [usize; 3],
}

impl Pixels {
    /// The pixels of a map of `dims`, of which the axes that `reduced` names are reduced; the channels stay.
    pub(in crate::ops) fn of(dims: &Dims, reduced: [bool; MAX_RANK]) -> Self {
        let shape = dims.shape();
        let extents = [shape.n, shape.h, shape.w];
        let missing = 4 - dims.rank().min(4);
        let is_reduced = |axis: usize| axis >= missing && reduced[axis - missing];
        let of =
            |wanted| std::array::from_fn(|axis| if is_reduced(axis) == wanted { extents[axis] } else { 1 });
        Pixels { kept: of(false), reduced: of(true) }
    }

    /// Whether what becomes one lies side by side: all of height and width of one map.
    pub(in crate::ops) fn whole(&self) -> bool {
        self.reduced[0] == 1 && self.kept[1] == 1 && self.kept[2] == 1
    }

    /// How many remain.
    pub(in crate::ops) fn outputs(&self) -> usize {
        self.kept.iter().product()
    }
}

/// Why the axes of a tensor that `reduced` names cannot be reduced in a feature map, if they cannot.
pub(in crate::ops) fn obstacle(dims: &Dims, reduced: [bool; MAX_RANK]) -> Option<String> {
    match dims.rank() {
        rank @ (0 | 5..) => Some(format!("rank {rank}, feature maps have 1 to 4")),
        rank if reduced[rank - 1] => Some("the channels are reduced, in maps they stay".to_owned()),
        _ => None,
    }
}

fn pixels(op: &ReduceOp) -> Pixels {
    Pixels::of(&op.input, op.reduced)
}

fn bindings(op: &ReduceOp) -> Vec<Binding> {
    let map = Element::Vec4(op.precision.storage());
    vec![binding(Operand::Src, map, Access::Read), binding(Operand::Dst, map, Access::Write)]
}

fn params(op: &ReduceOp) -> Params {
    let (Pixels { kept, reduced }, x, y) = (pixels(op), op.input.shape(), op.output.shape());
    vec![
        ("src_w", unsigned(x.w)),
        ("src_plane", unsigned(x.h * x.w)),
        ("dst_plane", unsigned(y.h * y.w)),
        ("slices", unsigned(x.slices())),
        ("outputs", unsigned(kept.iter().product())),
        ("kept_h", unsigned(kept[1])),
        ("kept_w", unsigned(kept[2])),
        ("reduced_n", unsigned(reduced[0])),
        ("reduced_h", unsigned(reduced[1])),
        ("reduced_w", unsigned(reduced[2])),
    ]
}

#[derive(Debug)]
pub(super) struct Maps;

impl Kernel<ReduceOp> for Maps {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("maps", crate::emit::text!("../../../shaders/reduce/maps.wgsl"))
            .with_ordinary(Ordinary::Size([16, 4, 1]))
    }

    fn offers(&self, op: &ReduceOp, _limits: &Limits) -> Vec<Offer> {
        if op.dtype != DType::F32 || obstacle(&op.input, op.reduced).is_some() {
            Vec::new()
        } else {
            offers(0, [[1, 1, 1]])
        }
    }

    fn grid(&self, op: &ReduceOp, _tile: [u32; 3]) -> [u32; 3] {
        [extent(pixels(op).outputs()), extent(op.input.shape().slices()), 1]
    }

    fn obstacle(&self, op: &ReduceOp, _limits: &Limits) -> Option<String> {
        obstacle(&op.input, op.reduced)
    }

    fn bindings(&self, op: &ReduceOp, _choice: &Choice) -> Vec<Binding> {
        bindings(op)
    }

    fn params(&self, op: &ReduceOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &ReduceOp, _choice: &Choice, _limits: &Limits) -> Constants {
        constants(op.reduction)
    }
}

#[derive(Debug)]
pub(super) struct MapsGroup;

impl Kernel<ReduceOp> for MapsGroup {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("maps_group", crate::emit::text!("../../../shaders/reduce/maps_group.wgsl"))
            .of_tile()
    }

    fn offers(&self, op: &ReduceOp, limits: &Limits) -> Vec<Offer> {
        if op.dtype != DType::F32 || obstacle(&op.input, op.reduced).is_some() {
            return Vec::new();
        }
        offers(1, group_sizes(op.merged().count(), limits))
    }

    fn untuned(&self, op: &ReduceOp, limits: &Limits) -> bool {
        pixels(op).outputs() < MANY_OUTPUTS && pays(op.merged().count(), limits)
    }

    fn grid(&self, op: &ReduceOp, tile: [u32; 3]) -> [u32; 3] {
        [extent(pixels(op).outputs()).saturating_mul(tile[0]), extent(op.input.shape().slices()), 1]
    }

    fn obstacle(&self, op: &ReduceOp, _limits: &Limits) -> Option<String> {
        obstacle(&op.input, op.reduced)
    }

    fn bindings(&self, op: &ReduceOp, _choice: &Choice) -> Vec<Binding> {
        bindings(op)
    }

    fn params(&self, op: &ReduceOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &ReduceOp, choice: &Choice, _limits: &Limits) -> Constants {
        let mut constants = constants(op.reduction);
        let whole = pixels(op).whole();
        constants.extend(
            [("SIZE", choice.tile[0]), ("WHOLE", whole.into())]
                .map(|(name, value)| (name, Value::U32(value))),
        );
        constants
    }
}
