//! What `softmax` is, and its kernels.

use super::{OP, SoftmaxOp, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::Result;
use crate::limits::{Family, Limits};
use crate::ops::definition::Definition;
use crate::ops::halves::{Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::loops::{self, AsNest, OpNest};
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::reference::Reference;
use crate::ops::spec::extent;

/// Slices of many channels, and pixels that are few: of a device that runs kernels on a CPU, and of a GPU.
const LONG: usize = 32;
const FEW: [usize; 2] = [1024, 65536];

/// The largest exponent whose rounding to a half moves its power by a hundredth at most.
pub(in crate::ops) const LARGEST_EXPONENT: f64 = 16.0;

impl Definition for SoftmaxOp {
    const NAME: &'static str = OP;

    /// How far its results are off depends on how large exponents are: those of its input, or what a calibration sees.
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&AsNest::REDUCTIONS, &AsNest::ELEMENTS, &AsNest::REDUCTIONS_OF_MAPS, &AsNest::ELEMENTS_OF_MAPS]
    }

    fn problem_key(&self) -> String {
        let beta = if self.beta.0 == 1.0 { String::new() } else { format!(" beta{}", self.beta.0) };
        format!("{} along{}{beta}{}", self.dims, self.axis, if self.log { " log" } else { "" })
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    /// A maximum, a difference, a product, a power, a sum and a quotient.
    fn flops(&self) -> u64 {
        6 * self.dims.elements() as u64
    }

    fn dst_depth(&self) -> u32 {
        extent(self.dims.shape().slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let shape = self.dims.shape();
        vec![
            OperandInfo::new(Operand::Src, shape, Role::Input),
            OperandInfo::new(Operand::Dst, shape, Role::Output),
        ]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands::get(operands, Operand::Src).unwrap_or_default())
    }

    /// At most 1, unless the rounding of an exponent moves its power by more than a hundredth or so.
    fn reach(&self, inputs: &Reaches<'_>, _constants: &Operands<'_>) -> Reach {
        let exponent = f64::from(self.beta.0.abs()) * inputs(Operand::Src).magnitude();
        let lowest = 2.0 * exponent + (self.extents()[1] as f64).ln();
        match self.log {
            _ if exponent.is_nan() || exponent > LARGEST_EXPONENT => Reach::ALL,
            true => Reach::new(-lowest, 0.0),
            false => Reach::new(0.0, 1.0),
        }
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        loops::kernel(OP, self.as_nest(), &[Operand::Src], self.dims)
    }

    /// In maps it is along the channels, and of few of these where there are few pixels: a value in rows needs no step that
    /// changes its form.
    fn obstacle_in_maps(&self, limits: &Limits) -> Option<String> {
        let shape = self.dims.shape();
        let pixels = shape.n * shape.h * shape.w;
        match self.dims.rank() {
            rank @ (0 | 5..) => Some(format!("rank {rank}, feature maps have 1 to 4")),
            rank if self.axis + 1 != rank => {
                Some(format!("along axis {}, in maps along the channels", self.axis))
            }
            _ if shape.slices() >= LONG && pixels < FEW[usize::from(limits.family != Family::CpuDriver)] => {
                Some(format!("{pixels} pixels of {} channels each, rows have as many invocations", shape.c))
            }
            _ => None,
        }
    }

    fn nest(&self) -> Option<OpNest> {
        Some(OpNest::new(self.as_nest()?, vec![Operand::Src]))
    }
}
