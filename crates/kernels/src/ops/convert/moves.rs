//! The kernels of `convert`: each moves a vec4 of channels per invocation, on a grid of width x height x
//! slices. They differ in where it comes from and where it goes, and so in their text alone.

use super::{ConvertOp, MOST_PARTS};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, binding, extent, unsigned};

/// The constants that say where parts begin, and where the last ends.
const FIRSTS: [&str; MOST_PARTS + 1] =
    ["FIRST0", "FIRST1", "FIRST2", "FIRST3", "FIRST4", "FIRST5", "FIRST6", "FIRST7", "FIRST8"];

/// One side of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Host,
    Parts,
    C4,
    Image,
}

/// A kernel.
#[derive(Debug)]
pub(super) struct Move {
    entry: VariantEntry,
    from: Side,
    to: Side,
}

/// The text of a kernel.
macro_rules! text {
    ($name:literal) => {
        crate::emit::text!(concat!("../../../shaders/convert/", $name, ".wgsl"))
    };
}

impl Move {
    const fn new(entry: VariantEntry, from: Side, to: Side) -> Self {
        let place = match to {
            Side::Host | Side::Parts => Layout::Nhwc,
            Side::C4 => Layout::C4,
            Side::Image => Layout::Image2d,
        };
        Move { entry: entry.listed_as(place), from, to }
    }
}

pub(super) const PACK: Move = Move::new(VariantEntry::wgsl("pack", text!("pack")), Side::Host, Side::C4);
pub(super) const UNPACK: Move =
    Move::new(VariantEntry::wgsl("unpack", text!("unpack")), Side::C4, Side::Host);
pub(super) const UNPACK_PARTS: Move =
    Move::new(VariantEntry::wgsl("unpack_parts", text!("unpack_parts")), Side::C4, Side::Parts);
pub(super) const PACK_IMAGE: Move =
    Move::new(VariantEntry::image("pack_image2d", text!("pack_image2d")), Side::Host, Side::Image);
pub(super) const UNPACK_IMAGE: Move =
    Move::new(VariantEntry::image("unpack_image2d", text!("unpack_image2d")), Side::Image, Side::Host);
pub(super) const TO_IMAGE: Move =
    Move::new(VariantEntry::image("c4_to_image2d", text!("c4_to_image2d")), Side::C4, Side::Image);
pub(super) const FROM_IMAGE: Move =
    Move::new(VariantEntry::image("image2d_to_c4", text!("image2d_to_c4")), Side::Image, Side::C4);
pub(super) const REPACK: Move = Move::new(VariantEntry::wgsl("repack", text!("repack")), Side::C4, Side::C4);

fn side(op: &ConvertOp, layout: Layout) -> Side {
    match layout.form() {
        Form::Rows | Form::HalfRows if op.parts[0] > 0 => Side::Parts,
        Form::Rows | Form::HalfRows => Side::Host,
        Form::C4 => Side::C4,
        Form::Image => Side::Image,
    }
}

fn element(layout: Layout, stored: DType, rows: DType) -> Element {
    match layout.form() {
        Form::Rows | Form::HalfRows => Element::Scalar(rows),
        Form::C4 => Element::Vec4(stored),
        Form::Image => Element::Image2d(stored),
    }
}

impl Kernel<ConvertOp> for Move {
    fn entry(&self) -> VariantEntry {
        self.entry
    }

    fn offers(&self, op: &ConvertOp, limits: &Limits) -> Vec<Offer> {
        let serves = (self.from, self.to) == (side(op, op.from), side(op, op.to)) && !op.stays_in_rows();
        offers(0, (serves && self.obstacle(op, limits).is_none()).then_some([1, 1, 1]))
    }

    fn obstacle(&self, op: &ConvertOp, limits: &Limits) -> Option<String> {
        if op.from != Layout::Image2d && op.to != Layout::Image2d {
            return None;
        }
        let Some([width, height]) = limits.max_image else {
            return Some("the device takes no images as kernel arguments".to_owned());
        };
        let [w, h] = Layout::image_extent(&op.shape);
        (w > width as usize || h > height as usize)
            .then(|| format!("the image is {w} x {h} pixels, the device allows {width} x {height}"))
    }

    fn grid(&self, op: &ConvertOp, _tile: [u32; 3]) -> [u32; 3] {
        let shape = op.shape;
        [extent(shape.w), extent(shape.h), extent(shape.slices() * shape.n)]
    }

    fn bindings(&self, op: &ConvertOp, _choice: &Choice) -> Vec<Binding> {
        vec![
            binding(Operand::Src, element(op.from, op.stored[0], op.rows), Access::Read),
            binding(Operand::Dst, element(op.to, op.stored[1], op.rows), Access::Write),
        ]
    }

    fn params(&self, op: &ConvertOp, _choice: &Choice) -> Params {
        let shape = op.shape;
        let mut params = vec![
            ("dst_w", unsigned(shape.w)),
            ("dst_h", unsigned(shape.h)),
            ("dst_c4", unsigned(shape.slices())),
            ("batch", unsigned(shape.n)),
        ];
        let host = [op.from, op.to].into_iter().find(|side| matches!(side, Layout::Nhwc | Layout::Nchw));
        if let Some(host) = host.filter(|_| op.parts[0] == 0) {
            let [step_n, step_h, step_w, step_c] = match host {
                Layout::Nchw => [shape.c * shape.h * shape.w, shape.w, 1, shape.h * shape.w],
                _ => [shape.h * shape.w * shape.c, shape.w * shape.c, shape.c, 1],
            };
            params.extend([
                ("channels", unsigned(shape.c)),
                ("step_n", unsigned(step_n)),
                ("step_h", unsigned(step_h)),
                ("step_w", unsigned(step_w)),
                ("step_c", unsigned(step_c)),
            ]);
        }
        params
    }

    fn constants(&self, op: &ConvertOp, _choice: &Choice, _limits: &Limits) -> Constants {
        if op.parts[0] == 0 {
            return Vec::new();
        }
        let firsts = op.ranges().map(|(first, _)| first).chain([op.shape.c]);
        let mut constants: Constants =
            FIRSTS.into_iter().zip(firsts.map(|first| Value::U32(extent(first)))).collect();
        constants.push(("PARTS", Value::U32(extent(op.ranges().count()))));
        constants
    }
}
