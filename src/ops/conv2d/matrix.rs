//! `matrix` and `matrix_ptx`: products of pixels and output channels by instructions that multiply small matrices
//! of halves (`ops/matrix.rs`), on a grid of channels x pixels of all images x layers.
//!
//! Weights are packed as the rows of a matrix, `[kh][kw][input slice][lane][slice][4]`, for `matrix_ptx` as its lanes read
//! them.

use super::Conv2dOp;
use super::arguments::{pack_rows, params};
use crate::dtype::Precision;
use crate::emit::{Operand, Value};
use crate::limits::Limits;
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::matrix::{self, Matrix};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, extent};

pub(super) const MATRIX: Matrix =
    Matrix::cooperative(crate::emit::text!("../../../shaders/conv2d/matrix.wgsl"));

pub(super) const MATRIX_PTX: Matrix = Matrix::ptx(include_str!("../../../cl/conv2d/matrix_ptx.cl"));

impl Kernel<Conv2dOp> for Matrix {
    fn entry(&self) -> VariantEntry {
        self.entry
    }

    fn offers(&self, op: &Conv2dOp, limits: &Limits) -> Vec<Offer> {
        // A first layer is better off with a kernel that reads the rows that a network is given.
        let preference = if op.0.input.c <= 4 { 2 } else { 0 };
        offers(preference, self.tiles(&op.0, limits))
    }

    fn grid(&self, op: &Conv2dOp, tile: [u32; 3]) -> [u32; 3] {
        Matrix::grid(*self, &op.0, tile)
    }

    fn obstacle(&self, op: &Conv2dOp, limits: &Limits) -> Option<String> {
        Matrix::obstacle(*self, &op.0, limits)
    }

    fn choice_obstacle(&self, op: &Conv2dOp, choice: &Choice, limits: &Limits) -> Option<String> {
        Matrix::choice_obstacle(*self, &op.0, choice, limits)
    }

    fn work_groups(&self, op: &Conv2dOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        Matrix::work_groups(*self, &op.0, tile)
    }

    fn precision(&self, _op: &Conv2dOp) -> Option<Precision> {
        Some(Precision::F16Storage)
    }

    fn counted(&self, op: &Conv2dOp, choice: &Choice) -> u64 {
        Matrix::counted(*self, &op.0, choice)
    }

    fn params(&self, op: &Conv2dOp, _choice: &Choice) -> Params {
        params(&op.0, [1; 3], &["dst_tiles", "src_slices", "src_c4"])
    }

    fn constants(&self, op: &Conv2dOp, choice: &Choice, limits: &Limits) -> Constants {
        let own = Matrix::constants(*self, &op.0, choice, limits);
        let sources = ("SOURCES", Value::U32(extent(op.0.input.slices())));
        [spec::window_constants(&op.0), vec![sources], own].concat()
    }

    fn pack(&self, op: &Conv2dOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        let slices = op.0.output.slices();
        if operand != Operand::Weights {
            return spec::pack_channels(data, slices);
        }
        let rows = pack_rows(&op.0, op.0.input.slices(), data);
        if self.cooperative { rows } else { matrix::pack_lanes(&rows, matrix::total4(&op.0), slices) }
    }

    fn effort(&self, op: &Conv2dOp, choice: &Choice, limits: &Limits) -> Option<Effort> {
        Matrix::effort(*self, &op.0, choice, limits)
    }
}
