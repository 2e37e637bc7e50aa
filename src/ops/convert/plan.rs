//! The kernels of `convert`.

use super::{ConvertOp, MOST_PARTS};
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Element, Epilogue, Operand, Value};
use crate::error::Result;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::plan::{Choice, Launch, Op};
use crate::ops::spec::{self, binding, extent, unsigned};
use crate::shape::Shape;

const OP: &str = "convert";

/// The constants that say where parts begin, and where the last ends.
const FIRSTS: [&str; MOST_PARTS + 1] =
    ["FIRST0", "FIRST1", "FIRST2", "FIRST3", "FIRST4", "FIRST5", "FIRST6", "FIRST7", "FIRST8"];

impl ConvertOp {
    /// The only kernel that makes this conversion.
    fn variant(&self) -> &'static str {
        match (self.from, self.to) {
            (Layout::C4, Layout::Image2d) => "c4_to_image2d",
            (Layout::Image2d, Layout::C4) => "image2d_to_c4",
            (_, Layout::C4) => "pack",
            (Layout::C4, _) if self.parts[0] > 0 => "unpack_parts",
            (Layout::C4, _) => "unpack",
            (_, Layout::Image2d) => "pack_image2d",
            _ => "unpack_image2d",
        }
    }

    fn element(&self, layout: Layout) -> Element {
        match layout {
            Layout::Nhwc | Layout::Nchw => Element::Scalar(DType::F32),
            Layout::C4 => Element::Vec4(self.precision.storage()),
            Layout::Image2d => Element::Image2d(self.precision.storage()),
        }
    }

    fn obstacle(&self, limits: &Limits) -> Option<String> {
        if self.from != Layout::Image2d && self.to != Layout::Image2d {
            return None;
        }
        let Some([width, height]) = limits.max_image else {
            return Some("the device takes no images as kernel arguments".to_owned());
        };
        let [w, h] = Layout::image_extent(&self.shape);
        (w > width as usize || h > height as usize)
            .then(|| format!("the image is {w} x {h} pixels, the device allows {width} x {height}"))
    }
}

impl Op for ConvertOp {
    fn name(&self) -> &'static str {
        OP
    }

    fn problem_key(&self) -> String {
        let Shape { n, h, w, c } = self.shape;
        let parts: String = self.ranges().map(|(_, channels)| format!(" p{channels}")).collect();
        format!("n{n} h{h} w{w} c{c} {}-to-{}{parts}", self.from, self.to)
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn flops(&self) -> u64 {
        0
    }

    fn space(&self, limits: &Limits) -> Vec<(&'static str, [u32; 3])> {
        match self.obstacle(limits) {
            None => vec![(self.variant(), [1, 1, 1])],
            Some(_) => Vec::new(),
        }
    }

    fn grid(&self, _variant: &'static str, _tile: [u32; 3]) -> [u32; 3] {
        let shape = self.shape;
        [extent(shape.w), extent(shape.h), extent(shape.slices() * shape.n)]
    }

    fn dst_depth(&self) -> u32 {
        extent(self.shape.slices())
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        if let Some(reason) = self.obstacle(limits) {
            return spec::reject(OP, choice, reason);
        }
        let grid = self.grid(choice.variant, choice.tile);
        spec::check_choice(OP, choice, &self.space(limits), grid, self.precision, limits)
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let shape = self.shape;
        let mut params = vec![
            ("dst_w", unsigned(shape.w)),
            ("dst_h", unsigned(shape.h)),
            ("dst_c4", unsigned(shape.slices())),
            ("batch", unsigned(shape.n)),
        ];
        let host = [self.from, self.to].into_iter().find(|side| matches!(side, Layout::Nhwc | Layout::Nchw));
        let mut constants = Vec::new();
        if self.parts[0] > 0 {
            let firsts = self.ranges().map(|(first, _)| first).chain([shape.c]);
            constants.extend(FIRSTS.into_iter().zip(firsts.map(|first| Value::U32(extent(first)))));
            constants.push(("PARTS", Value::U32(extent(self.ranges().count()))));
        } else if let Some(host) = host {
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
        let bindings = vec![
            binding(Operand::Src, self.element(self.from), Access::Read),
            binding(Operand::Dst, self.element(self.to), Access::Write),
        ];
        let interface = spec::interface(bindings, &params);
        Ok(Launch {
            spec: spec::kernel(OP, choice, constants, self.precision, Epilogue::default(), interface),
            params: params.into_iter().map(|(_, value)| value).collect(),
            grid: self.grid(choice.variant, choice.tile),
        })
    }

    fn pack(&self, _choice: &Choice, operand: Operand, _data: &[f32]) -> Result<Vec<f32>> {
        spec::no_constant(OP, operand)
    }
}
