//! `vec4`: a tile of columns and rows per invocation, in registers, from operands read as whole vec4s.

use super::arguments::{SQUARE, TILES, preference};
use super::{GemmOp, effort};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};

#[derive(Debug)]
pub(super) struct Vec4;

impl Kernel<GemmOp> for Vec4 {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("vec4", crate::emit::text!("../../../shaders/gemm/vec4.wgsl"))
            .listed_as(Layout::Nhwc)
            .with_ordinary(Ordinary::Size(SQUARE))
            .by_estimate()
    }

    fn offers(&self, op: &GemmOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() { Vec::new() } else { offers(preference::VEC4, TILES) }
    }

    fn grid(&self, op: &GemmOp, tile: [u32; 3]) -> [u32; 3] {
        op.grid_of(tile, [4, 1, 1])
    }

    fn obstacle(&self, op: &GemmOp, _limits: &Limits) -> Option<String> {
        op.vec4_obstacle()
    }

    fn registers(&self, _op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<Registers> {
        Some(Registers::alone(registers::of_loads(choice.tile[0], choice.tile[1], limits)))
    }

    fn effort(&self, op: &GemmOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        Some(effort::alone(op, choice))
    }

    fn constants(&self, op: &GemmOp, choice: &Choice, _limits: &Limits) -> Constants {
        op.constants(choice)
    }
}
