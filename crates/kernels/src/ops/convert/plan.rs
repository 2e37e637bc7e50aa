//! What `convert` is, and its kernels.

use super::{ConvertOp, OP, cast, moves, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::ops::definition::Definition;
use crate::ops::halves::LARGEST_HALF;
use crate::ops::kernel::Kernel;
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::plan::Choice;
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::ops::tolerance::smallest_normal;
use crate::shape::Shape;

const NOTHING_TO_CONVERT: &str = "the CPU reads and writes host layouts and has nothing to convert";

impl Definition for ConvertOp {
    const NAME: &'static str = OP;
    const CPU_OBSTACLE: Option<&'static str> = Some(NOTHING_TO_CONVERT);

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[
            &moves::PACK,
            &moves::UNPACK,
            &moves::UNPACK_PARTS,
            &moves::PACK_IMAGE,
            &moves::UNPACK_IMAGE,
            &moves::TO_IMAGE,
            &moves::FROM_IMAGE,
            &moves::REPACK,
            &cast::Cast,
        ]
    }

    fn problem_key(&self) -> String {
        let Shape { n, h, w, c } = self.shape;
        let parts: String = self.ranges().map(|(_, channels)| format!(" p{channels}")).collect();
        let storage = match self.stored {
            [from, to] if from != to => format!(" {from}-to-{to}"),
            _ => String::new(),
        };
        let rows = if self.rows == DType::F16 { " half-rows" } else { "" };
        format!("n{n} h{h} w{w} c{c} {}-to-{}{storage}{rows}{parts}", self.from, self.to)
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn flops(&self) -> u64 {
        0
    }

    fn dst_depth(&self) -> u32 {
        extent(self.shape.slices())
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

    fn form(&self, operand: Operand, _choice: &Choice) -> Form {
        if operand == Operand::Src { self.from.form() } else { self.to.form() }
    }

    /// Exact in f32; where halves are stored, a value that is none is rounded once.
    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let src = operands::get(operands, Operand::Src).unwrap_or_default();
        let value: Vec<f64> = oracle::moved(self, src).into_iter().map(f64::from).collect();
        let halves = [self.precision.storage(), self.rows].contains(&DType::F16);
        let unit = 2.0 * DType::F16.unit_roundoff();
        let bound = |value: &f64| {
            let exact = !halves || half::f16::from_f64(*value).to_f64() == *value;
            let rounded = unit * value.abs() + smallest_normal(DType::F16);
            if exact { 0.0 } else { rounded.max(value.abs() - LARGEST_HALF) }
        };
        let bound = value.iter().map(bound).collect();
        Reference::Bounded { value, bound }
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Err(Error::unsupported("convert on the CPU", NOTHING_TO_CONVERT))
    }

    fn untunable(&self) -> Option<&'static str> {
        let images = self.from == Layout::Image2d || self.to == Layout::Image2d;
        let storage = self.stored[0] != self.stored[1];
        images
            .then_some("a conversion of images has one kernel")
            .or_else(|| storage.then_some("a change of storage has one kernel"))
    }
}
