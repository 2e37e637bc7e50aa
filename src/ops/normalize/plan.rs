//! What `normalize` is, and its kernels.

use super::{NormalizeOp, OP, cpu, maps, oracle, rows};
use crate::cpu::CpuKernel;
use crate::dtype::Precision;
use crate::emit::{Operand, Scalar, Value};
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::kernel::{Constants, Kernel};
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::reference::Reference;
use crate::ops::spec::extent;

/// The constants that all kernels have.
pub(super) fn constants(op: &NormalizeOp) -> Constants {
    [("SCALED", u32::from(op.scale)), ("MOVED", u32::from(op.bias))]
        .map(|(name, value)| (name, Value::U32(value)))
        .to_vec()
}

/// The summand of the variance.
pub(super) fn epsilon(op: &NormalizeOp) -> (&'static str, Scalar) {
    ("epsilon", Scalar::F32(op.epsilon.0))
}

impl Definition for NormalizeOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&rows::Group, &rows::Serial, &maps::Maps]
    }

    fn problem_key(&self) -> String {
        let places = self.normalized.iter().enumerate().filter(|&(_, normalized)| *normalized);
        let axes: Vec<String> = places.map(|(axis, _)| axis.to_string()).collect();
        let [scale, bias] =
            [(self.scale, " scale"), (self.bias, " bias")].map(|(has, word)| if has { word } else { "" });
        format!("{} over{}{scale}{bias}", self.dims, axes.join(","))
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
        operands.extend(self.scale.then(|| OperandInfo::vector(Operand::Weights, channels)));
        operands.extend(self.bias.then(|| OperandInfo::vector(Operand::Bias, channels)));
        operands.push(OperandInfo::new(Operand::Dst, shape, Role::Output));
        operands
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
