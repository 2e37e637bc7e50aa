//! `staged`: as `tiled`, of operands that are read element by element: of any extents, transposed or not.
//!
//! The tile is as there; a work-group is as deep as the splits of the sum.

use super::arguments::{preference, staged};
use super::staging::{Fetching, Staging, tile_obstacle, work_groups};
use super::{GemmOp, effort};
use crate::emit::Binding;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::Params;

/// Groups of four columns, rows, and splits of the sum; the largest reuse first.
const TILES: [[u32; 3]; 8] =
    [[2, 8, 1], [2, 4, 1], [1, 4, 1], [2, 4, 2], [1, 4, 2], [2, 4, 4], [1, 4, 4], [1, 4, 8]];

/// The least rows and columns of a product that is worth staging.
const WORTH: usize = 16;

#[derive(Debug)]
pub(super) struct Staged;

/// Elements that an invocation brings for each step, of A and of B.
fn loads(choice: &Choice) -> [u32; 2] {
    let ([columns4, rows, _], [x, y, _]) = (choice.tile, choice.work_group);
    [Staging::STEP * rows / x.max(1), 4 * Staging::STEP * columns4 / y.max(1)]
}

impl Kernel<GemmOp> for Staged {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("staged", crate::emit::text!("../../../shaders/gemm/staged.wgsl"))
            .listed_as(Layout::Nhwc)
            .by_estimate()
    }

    /// Where whole vec4s cannot be read, of products that are no strips.
    fn offers(&self, op: &GemmOp, limits: &Limits) -> Vec<Offer> {
        let wanted = self.obstacle(op, limits).is_none()
            && op.vec4_obstacle().is_some()
            && op.m.min(op.n) >= WORTH
            && op.k >= Staging::STEP as usize;
        let tiles = TILES.into_iter().filter(|_| wanted);
        let long = tiles.filter(|tile| tile[2] == 1 || op.k >= (2 * Staging::STEP * tile[2]) as usize);
        offers(staged(preference::STAGED, limits), long)
    }

    fn registers(&self, _op: &GemmOp, choice: &Choice, _limits: &Limits) -> Option<Registers> {
        let staging = Staging::of(choice.tile, choice.work_group)?;
        Some(Registers::with_barriers(
            24 + registers::of_staged(choice.tile[0], choice.tile[1], staging.loads),
        ))
    }

    fn grid(&self, op: &GemmOp, tile: [u32; 3]) -> [u32; 3] {
        op.grid_of(tile, [4, 1, 1])
    }

    fn obstacle(&self, op: &GemmOp, limits: &Limits) -> Option<String> {
        op.scalar_obstacle(limits)
    }

    fn choice_obstacle(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<String> {
        tile_obstacle(op, choice, limits)
    }

    fn work_groups(&self, _op: &GemmOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        work_groups(tile)
    }

    fn effort(&self, op: &GemmOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        effort::tiled(op, choice)
    }

    fn untuned(&self, op: &GemmOp, limits: &Limits) -> bool {
        limits.family.has_local_memory() && !op.is_for_matrix_unit(limits)
    }

    fn bindings(&self, op: &GemmOp, _choice: &Choice) -> Vec<Binding> {
        op.element_bindings()
    }

    fn params(&self, op: &GemmOp, _choice: &Choice) -> Params {
        op.element_params()
    }

    fn constants(&self, op: &GemmOp, choice: &Choice, limits: &Limits) -> Constants {
        let ([columns4, rows, splits], [x, y, _]) = (choice.tile, choice.work_group);
        let Some(staging) = Staging::of(choice.tile, choice.work_group) else { return Vec::new() };
        let staging = Staging { loads: loads(choice), ..staging };
        let ragged = !op.k.is_multiple_of((Staging::STEP * splits) as usize);
        let shared = staging.constants(choice, ragged, Fetching::one(limits));
        let own = [
            ("ROWS", rows * y),
            ("COLUMNS", 4 * columns4 * x),
            ("TRANSPOSE_A", u32::from(op.transpose_a)),
            ("TRANSPOSE_B", u32::from(op.transpose_b)),
        ];
        op.constants_and(choice, &[&shared[..], &own].concat())
    }
}
