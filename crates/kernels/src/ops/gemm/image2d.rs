//! `image2d`: as `micro`, with `B` in an image: row `term` is a row of pixels.

use super::GemmOp;
use super::arguments::{SQUARE, TILES, preference};
use crate::emit::{Binding, Element, Operand};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, Ordinary, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, unsigned};

#[derive(Debug)]
pub(super) struct Image2d;

impl Kernel<GemmOp> for Image2d {
    fn entry(&self) -> VariantEntry {
        VariantEntry::image("image2d", crate::emit::text!("../../../shaders/gemm/image2d.wgsl"))
            .listed_as(Layout::Image2d)
            .with_ordinary(Ordinary::Size(SQUARE))
    }

    fn offers(&self, op: &GemmOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() { Vec::new() } else { offers(preference::IMAGE, TILES) }
    }

    fn grid(&self, op: &GemmOp, tile: [u32; 3]) -> [u32; 3] {
        op.grid_of(tile, [4, 1, 1])
    }

    fn obstacle(&self, op: &GemmOp, limits: &Limits) -> Option<String> {
        let Some([width, height]) = limits.max_image else {
            return Some("the device takes no images as kernel arguments".to_owned());
        };
        let matrices = if op.shared_b { 1 } else { op.batch };
        let image = [op.n.div_ceil(4), op.k * matrices];
        if op.transpose_b {
            return Some("image2d reads B as it is stored, not transposed".to_owned());
        }
        if image[0] > width as usize || image[1] > height as usize {
            return Some(format!(
                "B as an image is {} x {} pixels, the device allows {width} x {height}",
                image[0], image[1]
            ));
        }
        let apart = op.places.is_some().then(|| "its matrices lie within other values".to_owned());
        apart.or_else(|| op.scalar_obstacle(limits))
    }

    fn form(&self, _op: &GemmOp, operand: Operand, _choice: &Choice) -> Option<Form> {
        Some(if operand == Operand::B { Form::Image } else { Form::Rows })
    }

    fn bindings(&self, op: &GemmOp, _choice: &Choice) -> Vec<Binding> {
        let storage = op.precision.storage();
        op.bindings_of(Element::Scalar(storage), Element::Image2d(storage))
    }

    fn params(&self, op: &GemmOp, _choice: &Choice) -> Params {
        let rows = if op.shared_b { 0 } else { op.k };
        [op.scalar_params(), vec![("n4", unsigned(op.n.div_ceil(4))), ("b_batch", unsigned(rows))]].concat()
    }

    fn untuned(&self, _op: &GemmOp, _limits: &Limits) -> bool {
        true
    }

    fn constants(&self, op: &GemmOp, choice: &Choice, _limits: &Limits) -> Constants {
        op.constants(choice)
    }
}
