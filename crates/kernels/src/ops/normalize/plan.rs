//! What `normalize` is, and its kernels.

use super::{NormalizeOp, OP, Vector, kept, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::{Epilogue, Operand};
use crate::error::Result;
use crate::limits::Limits;
use crate::ops::convolution;
use crate::ops::definition::Definition;
use crate::ops::halves::{self, Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::loops::{self, AsNest, LoopsKernel, OpNest};
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::problem;
use crate::ops::reduce::pixels;
use crate::ops::reference::Reference;
use crate::ops::spec::extent;
use crate::shape::Shape;

impl Definition for NormalizeOp {
    const NAME: &'static str = OP;

    /// Its sums are in f32, but nothing bounds by how much a small deviation magnifies the rounding of what is read:
    /// a calibration finds out.
    const HALVES: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[
            &AsNest::REDUCTIONS,
            &AsNest::ELEMENTS,
            &kept::Kept,
            &AsNest::REDUCTIONS_OF_MAPS,
            &AsNest::ELEMENTS_OF_MAPS,
        ]
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
        let squares = if self.centred { "" } else { " uncentred" };
        let epilogue = problem::epilogue(&self.epilogue);
        format!("{} over{}{squares}{scale}{bias}{epilogue}", self.dims, axes.join(","))
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    /// Two sums, a difference, a square, and three operations for the result; or a sum, a square, and the three.
    fn flops(&self) -> u64 {
        let each = if self.centred { 7 } else { 5 };
        each * self.dims.elements() as u64
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

    fn cpu(&self, constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        let OpNest { nest, operands, .. } = match self.as_nest() {
            Some(own) => own,
            None => return loops::kernel(OP, None, &[], self.dims),
        };
        for info in Definition::operands(self).iter().filter(|info| info.role == Role::Constant) {
            operands::need(OP, constants, info.operand)?;
        }
        Ok(Box::new(LoopsKernel::new(OP, &nest, &operands).with_constants(constants)?))
    }

    /// What is divided by its standard deviation, or the root of its mean square, is at most the root of the number of
    /// terms.
    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        let scale = match self.scale {
            Vector::None => 1.0,
            Vector::Constant => {
                operands::get(constants, Operand::Weights).map_or(Reach::ALL, Reach::of).magnitude()
            }
            Vector::Given => inputs(Operand::Arg(0)).magnitude(),
        };
        let normalized = Reach::around((self.merged().count() as f64).sqrt() * scale);
        // A constant bias is added with what finishes any sum.
        let sum = match self.bias {
            Vector::None | Vector::Constant => normalized,
            Vector::Given => normalized.plus(inputs(Operand::Arg(1))),
        };
        halves::finished(&self.epilogue, sum, inputs, constants)
    }

    fn obstacle_in_maps(&self, _limits: &Limits) -> Option<String> {
        pixels::obstacle(&self.dims, self.normalized)
    }

    /// None of a map that other kernels normalise faster than a nest does.
    fn nest(&self) -> Option<OpNest> {
        if self.is_finished() { None } else { self.as_nest() }
    }

    fn nest_of_kernels(&self) -> Option<OpNest> {
        self.as_nest()
    }
}
