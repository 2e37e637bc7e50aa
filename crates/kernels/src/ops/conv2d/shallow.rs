//! `shallow`: inputs of up to four channels, read as NHWC rows in f32 as a network's inputs are. Pixels of a
//! row and slices per invocation, on a grid of tiles of a plane x slices.
//!
//! Weights are packed as `[slice][kh][kw][channel][4]`.

use super::Conv2dOp;
use super::arguments::{SHARE, columns, is_long, pack_terms, params};
use crate::dtype::DType;
use crate::emit::{Binding, Element, Operand, Scalar, Value};
use crate::layout::Form;
use crate::limits::{Family, Limits};
use crate::ops::convolution::Convolution;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, extent};
use crate::ops::split;

/// The most terms of a sum, which are unrolled: a 7x7 window over three channels, and for compilers of GPUs a 9x9 one.
const MAX_TERMS: usize = 147;
const MAX_TERMS_OF_GPUS: usize = 243;

/// The most terms of GPUs' kernels that are wholly unrolled. NVIDIA's compiler for Vulkan spills registers beyond: 147 terms
/// took nine times as long as the same text in OpenCL C. AMD's kernels follow; they were not measured.
pub const MAX_UNROLLED: usize = 64;

/// The most terms of Adreno's kernels that are wholly unrolled: Mesa's compiler for an Adreno 630 has all loads of 27 unrolled
/// terms under way together and spills hundreds of registers, and that for later ones does so of 75.
const MAX_UNROLLED_OF_ADRENO: usize = 9;

/// The most input columns that are kept in registers.
const MAX_COLUMNS: usize = 16;

#[derive(Debug)]
pub(super) struct Shallow;

/// Whether it computes `problem`, as far as the terms of a sum are concerned.
pub(super) fn takes(problem: &Convolution, limits: &Limits) -> bool {
    let most = if split::first(limits) { MAX_TERMS_OF_GPUS } else { MAX_TERMS };
    problem.groups == 1 && problem.input.c <= 4 && problem.terms() <= most
}

impl Kernel<Conv2dOp> for Shallow {
    fn entry(&self) -> VariantEntry {
        // A warp of one slice, whose invocations share its weights.
        VariantEntry::wgsl("shallow", crate::emit::text!("../../../shaders/conv2d/shallow.wgsl"))
            .with_ordinary(Ordinary::Size([32, 2, 1]))
    }

    fn offers(&self, op: &Conv2dOp, limits: &Limits) -> Vec<Offer> {
        let problem = &op.0;
        let few = takes(problem, limits);
        let tiles = if limits.compiles_slowly() {
            [[1, 1], [1, 2], [2, 2], [4, 1], [4, 2]]
        } else if split::first(limits) && is_long(problem) {
            // Each pixel more of a long row spares the loads of all taps.
            [[4, 2], [4, 1], [2, 2], [1, 2], [1, 1]]
        } else {
            [[2, 2], [1, 2], [1, 1], [4, 2], [4, 1]]
        };
        let fits = |[pixels, _]: &[usize; 2]| few && columns(problem, *pixels) <= MAX_COLUMNS;
        let tiles = tiles.into_iter().filter(fits);
        offers(1, tiles.map(|[pixels, slices]| [extent(pixels), 1, extent(slices)]))
    }

    fn grid(&self, op: &Conv2dOp, tile: [u32; 3]) -> [u32; 3] {
        let output = op.0.output;
        [
            extent(output.w).div_ceil(tile[0]) * extent(output.h),
            extent(output.slices()).div_ceil(tile[2]) * extent(output.n),
            1,
        ]
    }

    fn counted(&self, op: &Conv2dOp, choice: &Choice) -> u64 {
        let share = if is_long(&op.0) { SHARE } else { 1 };
        share * self.grid(op, choice.tile).iter().map(|&extent| u64::from(extent)).product::<u64>()
    }

    /// See [`Family::spills_windows`].
    fn untuned(&self, _op: &Conv2dOp, limits: &Limits) -> bool {
        !limits.family.spills_windows()
    }

    fn form(&self, _op: &Conv2dOp, operand: Operand, _choice: &Choice) -> Option<Form> {
        Some(if operand == Operand::Src { Form::Rows } else { Form::C4 })
    }

    fn bindings(&self, op: &Conv2dOp, choice: &Choice) -> Vec<Binding> {
        let mut bindings = spec::bindings(op, choice);
        let source = bindings.iter_mut().filter(|binding| binding.operand == Operand::Src);
        source.for_each(|binding| binding.element = Element::Scalar(DType::F32));
        bindings
    }

    fn params(&self, op: &Conv2dOp, choice: &Choice) -> Params {
        let tiles = extent(op.0.output.w).div_ceil(choice.tile[0]);
        let mut params = params(&op.0, choice.tile, &["src_c4", "src_slices"]);
        params.push(("tiles_w", Scalar::U32(tiles)));
        params
    }

    fn constants(&self, op: &Conv2dOp, choice: &Choice, limits: &Limits) -> Constants {
        let most = match limits.family {
            Family::Adreno(_) => MAX_UNROLLED_OF_ADRENO,
            _ if split::first(limits) => MAX_UNROLLED,
            _ => usize::MAX,
        };
        let rolled = op.0.terms() > most || limits.compiles_slowly();
        let own = [
            ("CHANNELS", extent(op.0.input.c)),
            ("TILE_X", choice.tile[0]),
            ("TILE_Z", choice.tile[2]),
            ("ROLLED", u32::from(rolled)),
        ];
        [spec::window_constants(&op.0), own.map(|(name, value)| (name, Value::U32(value))).to_vec()].concat()
    }

    fn pack(&self, op: &Conv2dOp, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        pack_terms(&op.0, choice.tile, operand, data)
    }
}
