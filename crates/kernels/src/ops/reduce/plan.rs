//! What `reduce` is, and its kernels.

use super::{OP, ReduceOp, Reduction, empty, integers, maps_last, oracle, pixels};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::limits::Limits;
use crate::ops::definition::Definition;
use crate::ops::halves::{Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::loops::{self, AsNest, OpNest, OperandSet};
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::reference::Reference;
use crate::ops::rows::word_key;
use crate::ops::spec::extent;

impl Definition for ReduceOp {
    const NAME: &'static str = OP;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[
            &AsNest::REDUCTIONS,
            &AsNest::ELEMENTS,
            &maps_last::MapsLast,
            &AsNest::REDUCTIONS_OF_MAPS,
            &AsNest::ELEMENTS_OF_MAPS,
        ]
    }

    fn problem_key(&self) -> String {
        let places = self.reduced.iter().enumerate().filter(|&(_, reduced)| *reduced);
        let axes: Vec<String> = places.map(|(axis, _)| axis.to_string()).collect();
        format!("{} over{} {}{}", self.input, axes.join(","), self.reduction.name(), word_key(self.dtype))
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn flops(&self) -> u64 {
        self.input.elements() as u64
    }

    fn dst_depth(&self) -> u32 {
        extent(self.output.shape().slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        vec![
            OperandInfo::new(Operand::Src, self.input.shape(), Role::Input).of(self.dtype),
            OperandInfo::new(Operand::Dst, self.output.shape(), Role::Output).of(self.dtype),
        ]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let src = operands::get(operands, Operand::Src).unwrap_or_default();
        if self.dtype == DType::F32 { oracle::oracle(self, src) } else { integers::oracle(self, src) }
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(match self.dtype {
            DType::F32 if self.input.elements() == 0 => Box::new(empty::EmptyKernel(*self)),
            DType::F32 => loops::kernel(OP, self.as_nest(), &[Operand::Src], self.output)?,
            _ => Box::new(integers::IntegerKernel(*self)),
        })
    }

    /// Means and choices are no larger than what is read, and sums are in f32; by how much a difference of means is
    /// off then, a calibration finds out.
    fn halves(&self) -> bool {
        self.dtype == DType::F32
            && matches!(self.reduction, Reduction::Mean | Reduction::Max | Reduction::Min)
    }

    fn reach(&self, inputs: &Reaches<'_>, _constants: &Operands<'_>) -> Reach {
        let Reach { lo, hi } = inputs(Operand::Src);
        let terms = self.input.elements() as f64 / self.output.elements().max(1) as f64;
        match self.reduction {
            Reduction::Mean | Reduction::Max | Reduction::Min => Reach { lo, hi },
            Reduction::Sum => Reach::new(terms * lo, terms * hi),
            Reduction::Any | Reduction::All => Reach::new(0.0, 1.0),
            Reduction::Product => Reach::ALL,
        }
    }

    fn obstacle_in_maps(&self, _limits: &Limits) -> Option<String> {
        pixels::obstacle(&self.input, self.reduced)
    }

    fn nest(&self) -> Option<OpNest> {
        let halves = if Definition::halves(self) { OperandSet::ALL } else { OperandSet::NONE };
        Some(OpNest::new(self.as_nest()?, vec![Operand::Src]).with_halves(halves))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::ops::Op;
    use crate::ops::reduce::Reduce;

    #[test]
    fn the_key_names_the_axes_once() {
        let options = Reduce { reduction: Reduction::Mean, axes: vec![-2, 1, 2], keep_dims: false };
        let op = ReduceOp::new(Dims::new(&[1, 7, 7, 9]).expect("small"), &options, Precision::F16);
        let op = op.expect("a reduction");
        assert_eq!(Op::problem_key(&op), "1x7x7x9 over1,2 mean");
        // Halves are stored, not summed.
        assert_eq!(Op::precision(&op), Precision::F16Storage);
        assert_eq!(op.output.extents(), [1, 9]);
    }
}
