//! `micro`: a tile of columns and rows per invocation, in registers, from operands read element by element.

use super::arguments::{SQUARE, TILES, preference};
use super::{GemmOp, effort};
use crate::emit::Binding;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::Params;

#[derive(Debug)]
pub(super) struct Micro;

impl Kernel<GemmOp> for Micro {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("micro", crate::emit::text!("../../../shaders/gemm/micro.wgsl"))
            .listed_as(Layout::Nhwc)
            .with_ordinary(Ordinary::Size(SQUARE))
            .by_estimate()
    }

    fn offers(&self, op: &GemmOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() { Vec::new() } else { offers(preference::MICRO, TILES) }
    }

    fn grid(&self, op: &GemmOp, tile: [u32; 3]) -> [u32; 3] {
        op.grid_of(tile, [4, 1, 1])
    }

    fn obstacle(&self, op: &GemmOp, limits: &Limits) -> Option<String> {
        op.scalar_obstacle(limits)
    }

    fn registers(&self, _op: &GemmOp, choice: &Choice, limits: &Limits) -> Option<Registers> {
        Some(Registers::alone(registers::of_loads(choice.tile[0], choice.tile[1], limits)))
    }

    fn effort(&self, op: &GemmOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        Some(effort::alone(op, choice))
    }

    fn bindings(&self, op: &GemmOp, _choice: &Choice) -> Vec<Binding> {
        op.element_bindings()
    }

    fn params(&self, op: &GemmOp, _choice: &Choice) -> Params {
        op.element_params()
    }

    fn constants(&self, op: &GemmOp, choice: &Choice, _limits: &Limits) -> Constants {
        op.constants(choice)
    }
}
