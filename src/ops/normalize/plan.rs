//! What `normalize` is, and its kernels.

use super::{NormalizeOp, OP, Vector, cpu, kept, maps, oracle, parts, rows};
use crate::cpu::CpuKernel;
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Binding, Element, Epilogue, Operand, Scalar, Value};
use crate::error::Result;
use crate::ops::convolution;
use crate::ops::definition::Definition;
use crate::ops::kernel::{Constants, Kernel};
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::{Params, binding, extent, unsigned};
use crate::shape::Shape;

/// The constants that all kernels have.
pub(super) fn constants(op: &NormalizeOp) -> Constants {
    let number = |vector: Vector| match vector {
        Vector::None => 0,
        Vector::Constant => 1,
        Vector::Given => 2,
    };
    [("SCALED", number(op.scale)), ("MOVED", number(op.bias))]
        .map(|(name, value)| (name, Value::U32(value)))
        .to_vec()
}

/// The bindings of a kernel of feature maps.
pub(super) fn bindings(op: &NormalizeOp) -> Vec<Binding> {
    let map = Element::Vec4(op.precision.storage());
    let infos = Definition::operands(op);
    let binding = |info: &OperandInfo| match info.operand {
        Operand::Weights | Operand::Bias | Operand::Arg(2) => {
            binding(info.operand, Element::Vec4(DType::F32), Access::Read)
        }
        Operand::Dst => binding(Operand::Dst, map, Access::Write),
        operand => binding(operand, map, Access::Read),
    };
    infos.iter().map(binding).collect()
}

/// Where an instance normalisation of a feature map is, for kernels that compute nothing else.
pub(super) fn params(op: &NormalizeOp) -> Params {
    let x = op.dims.shape();
    vec![("plane", unsigned(x.h * x.w)), ("slices", unsigned(x.slices())), epsilon(op)]
}

/// The summand of the variance.
pub(super) fn epsilon(op: &NormalizeOp) -> (&'static str, Scalar) {
    ("epsilon", Scalar::F32(op.epsilon.0))
}

impl Definition for NormalizeOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&rows::Group, &rows::Serial, &maps::Maps, &kept::Kept, &parts::Parts]
    }

    fn problem_key(&self) -> String {
        let places = self.normalized.iter().enumerate().filter(|&(_, normalized)| *normalized);
        let axes: Vec<String> = places.map(|(axis, _)| axis.to_string()).collect();
        let [scale, bias] = [(self.scale, " scale", " scaled"), (self.bias, " bias", " moved")].map(
            |(vector, constant, given)| match vector {
                Vector::None => "",
                Vector::Constant => constant,
                Vector::Given => given,
            },
        );
        let parts = if self.parts { " parts" } else { "" };
        let epilogue = problem::epilogue(&self.epilogue);
        format!("{} over{}{scale}{bias}{parts}{epilogue}", self.dims, axes.join(","))
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    /// Two sums, a difference, a square, and three operations for the result.
    fn flops(&self) -> u64 {
        7 * self.dims.elements() as u64
    }

    fn dst_depth(&self) -> u32 {
        extent(self.dims.shape().slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let (shape, channels) = (self.dims.shape(), self.channels());
        let mut operands = vec![OperandInfo::new(Operand::Src, shape, Role::Input)];
        let given = Shape::nhwc(shape.n, 1, 1, shape.c);
        for (vector, constant, input) in
            [(self.scale, Operand::Weights, Operand::Arg(0)), (self.bias, Operand::Bias, Operand::Arg(1))]
        {
            operands.extend(match vector {
                Vector::None => None,
                Vector::Constant => Some(OperandInfo::vector(constant, channels)),
                Vector::Given => Some(OperandInfo::new(input, given, Role::Input)),
            });
        }
        let moments = || OperandInfo::new(Operand::Arg(2), self.moments().shape(), Role::Input);
        operands.extend(self.parts.then(moments));
        operands.extend(convolution::extras(&self.epilogue, channels, shape));
        operands.push(OperandInfo::new(Operand::Dst, shape, Role::Output));
        operands
    }

    fn epilogue(&self) -> Epilogue {
        self.epilogue
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::NormalizeKernel::new(self, constants)?))
    }

    fn with_precision(&self, precision: Precision) -> Self {
        NormalizeOp { precision: precision.with_f32_sums(), ..*self }
    }

    fn network_precision(wanted: Precision) -> Precision {
        wanted.with_f32_sums()
    }

    /// Its sums are in f32, but nothing bounds by how much a small deviation magnifies the rounding of what is read:
    /// a calibration finds out.
    fn halves(&self) -> bool {
        true
    }
}
