//! The kernels of `convert`.

use super::{ConvertOp, MOST_PARTS, OP, oracle};
use crate::cpu::CpuKernel;
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Element, Epilogue, Operand, Value};
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::plan::{Choice, Launch, Op};
use crate::ops::reference::Reference;
use crate::ops::spec::{self, binding, extent, unsigned};
use crate::ops::tolerance::smallest_normal;
use crate::shape::Shape;
use std::any::Any;
use std::sync::Arc;

const NOTHING_TO_CONVERT: &str = "the CPU reads and writes host layouts and has nothing to convert";

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

    fn as_any(&self) -> &dyn Any {
        self
    }

    /// A map in C4 or an image is NHWC on the host; the others are as they lie.
    fn operands(&self) -> Vec<OperandInfo> {
        let Shape { n, h, w, c } = self.shape;
        let shape = |layout| match layout {
            Layout::Nchw => Shape::nhwc(n, c, h, w),
            _ => self.shape,
        };
        vec![
            OperandInfo::new(Operand::Src, shape(self.from), Role::Input),
            OperandInfo::new(Operand::Dst, shape(self.to), Role::Output),
        ]
    }

    fn form(&self, operand: Operand, _choice: &Choice) -> Option<Form> {
        let layout = if operand == Operand::Src { self.from } else { self.to };
        Some(match layout {
            Layout::Nhwc | Layout::Nchw => Form::Rows,
            Layout::C4 => Form::C4,
            Layout::Image2d => Form::Image,
        })
    }

    /// Exact in f32; where the device stores halves, a value that is none is rounded once.
    fn oracle(&self, operands: &Operands<'_>) -> Result<Reference> {
        operands::check(self, operands)?;
        let src = operands::get(operands, Operand::Src).unwrap_or_default();
        let value: Vec<f64> = oracle::moved(self, src).into_iter().map(f64::from).collect();
        let half = |value: &f64| half::f16::from_f64(*value).to_f64() != *value;
        let rounds = |value: &f64| self.precision.storage() == DType::F16 && half(value);
        let unit = 2.0 * DType::F16.unit_roundoff();
        let bound = |value: &f64| {
            if rounds(value) { unit * value.abs() + smallest_normal(DType::F16) } else { 0.0 }
        };
        let bound = value.iter().map(bound).collect();
        Ok(Reference::Bounded { value, bound })
    }

    fn cpu(&self, _constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Err(Error::unsupported("convert on the CPU", NOTHING_TO_CONVERT))
    }

    fn cpu_obstacle(&self) -> Option<&'static str> {
        Some(NOTHING_TO_CONVERT)
    }

    fn with_precision(&self, precision: Precision) -> Arc<dyn Op> {
        Arc::new(ConvertOp { precision: precision.without_matrix_units(), ..*self })
    }

    fn untunable(&self) -> Option<&'static str> {
        let images = self.from == Layout::Image2d || self.to == Layout::Image2d;
        images.then_some("a conversion of images has one kernel")
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
