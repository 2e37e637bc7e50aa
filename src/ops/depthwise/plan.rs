//! The kernels of `depthwise`.
//!
//! Weights are packed as `[slice][kh][kw][4]` over the output channels.

use super::{DepthwiseOp, OP, cpu, local, oracle};
use crate::cpu::CpuKernel;
use crate::dtype::Precision;
use crate::emit::{Operand, Scalar, Value};
use crate::error::Result;
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::convolution;
use crate::ops::expected;
use crate::ops::operands::{self, OperandInfo, Operands};
use crate::ops::plan::{Choice, Launch, Op};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::{self, extent, unsigned};
use crate::shape::Shape;
use std::any::Any;
use std::sync::Arc;

/// The most input columns that `rows` and `micro` keep in registers.
const MAX_COLUMNS: usize = 16;

/// The most taps of a window that `micro` keeps in registers.
const MAX_WEIGHTS: usize = 25;

impl Op for DepthwiseOp {
    fn name(&self) -> &'static str {
        OP
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let [kernel_h, kernel_w] = self.0.kernel;
        self.0.operands(Shape::nhwc(1, kernel_h, kernel_w, self.0.output.c))
    }

    fn form(&self, operand: Operand, choice: &Choice) -> Option<Form> {
        convolution::form(operand, choice)
    }

    fn oracle(&self, operands: &Operands<'_>) -> Result<Reference> {
        operands::check(self, operands)?;
        Ok(Reference::Sum(oracle::oracle(self, operands)))
    }

    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        operands::check(self, operands)?;
        let (problem, plain) = (&self.0, DepthwiseOp(self.0.plain()));
        expected::of_sum(self, &plain, problem.terms(), &problem.epilogue, operands, Vec::new())
    }

    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::kernel(self, constants)?))
    }

    fn with_precision(&self, precision: Precision) -> Arc<dyn Op> {
        Arc::new(DepthwiseOp(self.0.with_precision(precision)))
    }

    fn problem_key(&self) -> String {
        problem::convolution(&self.0, &format!("mult{}", self.multiplier()))
    }

    fn precision(&self) -> Precision {
        self.0.precision
    }

    fn flops(&self) -> u64 {
        self.0.flops()
    }

    /// `multiplier` serves channel multipliers above 1; the others serve 1. `micro` covers the
    /// tiles of a plane x slices, its tile being columns and rows; the others cover width x height x
    /// slices, the tile of `rows` being pixels of a row, that of `local` columns and rows.
    fn space(&self, _limits: &Limits) -> Vec<(&'static str, [u32; 3])> {
        if self.multiplier() > 1 {
            return vec![("multiplier", [1, 1, 1])];
        }
        let problem = &self.0;
        let span = |axis: usize, outputs: usize| {
            (outputs - 1) * problem.stride[axis] + (problem.kernel[axis] - 1) * problem.dilation[axis] + 1
        };
        // Because the window is unrolled, and its weights and a row of the input are registers.
        let weights = problem.kernel[0] * problem.kernel[1];
        let in_registers = |&[columns, rows]: &[usize; 2]| {
            weights <= MAX_WEIGHTS && span(1, columns) <= MAX_COLUMNS && span(0, rows) <= MAX_COLUMNS
        };
        let tile = |[columns, rows]: [usize; 2]| [extent(columns), extent(rows), 1];
        let micro = [[1, 2], [2, 2], [2, 1], [1, 4], [1, 1]].into_iter().filter(in_registers);
        let mut space: Vec<_> = micro.map(|micro| ("micro", tile(micro))).collect();
        if problem.dilation == [1, 1] {
            for pixels in [2, 4, 1] {
                // Because each column is a register and the window is unrolled along the row.
                if span(1, pixels) <= MAX_COLUMNS {
                    space.push(("rows", [extent(pixels), 1, 1]));
                }
            }
        }
        space.push(("direct", [1, 1, 1]));
        // Last: it pays where caches are poor, and that a measurement says.
        let staged = local::TILES.into_iter().filter(in_registers);
        space.extend(staged.map(|staged| ("local", tile(staged))));
        space
    }

    fn grid(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        let output = self.0.output;
        if variant == "micro" {
            let tiles = extent(output.w).div_ceil(tile[0]) * extent(output.h).div_ceil(tile[1]);
            return [tiles, extent(output.slices()) * extent(output.n), 1];
        }
        let slices = extent(output.slices()) * extent(output.n);
        [extent(output.w).div_ceil(tile[0]), extent(output.h).div_ceil(tile[1]), slices]
    }

    fn work_groups(&self, variant: &'static str, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        if variant == "local" { local::work_groups() } else { Vec::new() }
    }

    fn layouts(&self, variant: &'static str) -> &'static [Layout] {
        if variant == "direct" { spec::MAPS } else { &[Layout::C4] }
    }

    fn dst_depth(&self) -> u32 {
        extent(self.0.output.slices())
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        let grid = self.grid(choice.variant, choice.tile.map(|extent| extent.max(1)));
        spec::check_maps(OP, choice, self.layouts(choice.variant), &self.0, limits)?;
        spec::check_choice(OP, choice, &self.space(limits), grid, self.0.precision, limits)?;
        if choice.variant == "local" { local::check(&self.0, choice, limits) } else { Ok(()) }
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let problem = &self.0;
        let mut params = vec![
            ("src_w", unsigned(problem.input.w)),
            ("src_h", unsigned(problem.input.h)),
            ("dst_w", unsigned(problem.output.w)),
            ("dst_h", unsigned(problem.output.h)),
            ("dst_c4", unsigned(problem.output.slices())),
            ("batch", unsigned(problem.output.n)),
            ("before_h", unsigned(problem.before[0])),
            ("before_w", unsigned(problem.before[1])),
        ];
        if choice.variant == "multiplier" {
            params.push(("src_c", unsigned(problem.input.c)));
            params.push(("src_c4", unsigned(problem.input.slices())));
            params.push(("multiplier", unsigned(self.multiplier())));
        }
        let mut constants = spec::window_constants(problem);
        if choice.variant == "micro" {
            params.push(("tiles_w", Scalar::U32(extent(problem.output.w).div_ceil(choice.tile[0]))));
            constants.push(("TILE_X", Value::U32(choice.tile[0])));
            constants.push(("TILE_Y", Value::U32(choice.tile[1])));
        }
        if choice.variant == "local" {
            constants.extend(local::constants(problem, choice));
        }
        if choice.variant == "rows" {
            constants.push(("TILE_X", Value::U32(choice.tile[0])));
        }
        let interface = spec::interface(spec::convolution_bindings(problem, choice), &params);
        Ok(Launch {
            spec: spec::kernel(OP, choice, constants, problem.precision, problem.epilogue, interface),
            params: params.into_iter().map(|(_, value)| value).collect(),
            grid: self.grid(choice.variant, choice.tile),
        })
    }

    fn pack(&self, _choice: &Choice, operand: Operand, data: &[f32]) -> Result<Vec<f32>> {
        let problem = &self.0;
        let (channels, slices) = (problem.output.c, problem.output.slices());
        match operand {
            Operand::Bias | Operand::Slope => {
                spec::expect_len(OP, operand, data, channels)?;
                Ok(spec::pack_channels(data, slices))
            }
            Operand::Weights => {
                let taps = problem.kernel[0] * problem.kernel[1];
                spec::expect_len(OP, operand, data, taps * channels)?;
                Ok(spec::pack_window(data, taps, channels))
            }
            _ => spec::no_constant(OP, operand),
        }
    }
}
