//! `matrix` and `matrix_ptx`: products of pixels and output channels by instructions that multiply small matrices
//! of halves (`ops/matrix.rs`), on a grid of channels x pixels of all images x layers.
//!
//! Weights are packed as the rows of a matrix, `[input slice][lane][slice][4]`, for `matrix_ptx` as its lanes read
//! them.

use super::PointwiseOp;
use super::micro::{params, slices};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::limits::Limits;
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::matrix::{self, Matrix};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params};

pub(super) const MATRIX: Matrix =
    Matrix::cooperative(crate::emit::text!("../../../shaders/pointwise/matrix.wgsl"));

pub(super) const MATRIX_PTX: Matrix = Matrix::ptx(include_str!("../../../cl/pointwise/matrix_ptx.cl"));

impl Kernel<PointwiseOp> for Matrix {
    fn entry(&self) -> VariantEntry {
        self.entry
    }

    fn offers(&self, op: &PointwiseOp, limits: &Limits) -> Vec<Offer> {
        offers(0, self.tiles(&op.0, limits))
    }

    fn grid(&self, op: &PointwiseOp, tile: [u32; 3]) -> [u32; 3] {
        Matrix::grid(*self, &op.0, tile)
    }

    fn obstacle(&self, op: &PointwiseOp, limits: &Limits) -> Option<String> {
        Matrix::obstacle(*self, &op.0, limits)
    }

    fn choice_obstacle(&self, op: &PointwiseOp, choice: &Choice, limits: &Limits) -> Option<String> {
        Matrix::choice_obstacle(*self, &op.0, choice, limits)
    }

    fn work_groups(&self, op: &PointwiseOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        Matrix::work_groups(*self, &op.0, tile)
    }

    fn precision(&self, _op: &PointwiseOp) -> Option<Precision> {
        Some(Precision::F16Storage)
    }

    fn counted(&self, op: &PointwiseOp, choice: &Choice) -> u64 {
        Matrix::counted(*self, &op.0, choice)
    }

    fn params(&self, op: &PointwiseOp, _choice: &Choice) -> Params {
        params(op)
    }

    fn constants(&self, op: &PointwiseOp, choice: &Choice, limits: &Limits) -> Constants {
        Matrix::constants(*self, &op.0, choice, limits)
    }

    fn pack(&self, op: &PointwiseOp, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        let slices = slices(&op.0, 1);
        if operand != Operand::Weights {
            return spec::pack_channels(data, slices);
        }
        let rows = spec::pack_rows(data, op.0.input.c, slices, op.0.input.slices());
        if self.cooperative { rows } else { matrix::pack_lanes(&rows, matrix::total4(&op.0), slices) }
    }

    fn effort(&self, op: &PointwiseOp, choice: &Choice, limits: &Limits) -> Option<Effort> {
        Matrix::effort(*self, &op.0, choice, limits)
    }
}
