//! The kernels of `pointwise`.
//!
//! Weights are packed as `[slice][input slice][lane][4]`: four vec4s over the output channels, one
//! for each input lane. For `split` and `tiled` they are the rows of a matrix,
//! `[input slice][lane][slice][4]`, for `split` with rows of zeros up to a whole number of its steps.

use super::{OP, Pointwise, PointwiseOp, cpu, oracle};
use crate::cpu::CpuKernel;
use crate::dtype::Precision;
use crate::emit::{Dialect, Epilogue, Operand, Value};
use crate::error::Result;
use crate::layout::{Form, Layout};
use crate::limits::{Family, Limits};
use crate::ops::convolution::{self, Convolution};
use crate::ops::effort::Effort;
use crate::ops::expected;
use crate::ops::operands::{self, OperandInfo, Operands};
use crate::ops::plan::{Choice, Launch, Op};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::{self, extent, unsigned};
use crate::ops::split;
use crate::ops::tiled::{self, Extents};
use crate::shape::Shape;
use std::any::Any;
use std::sync::Arc;

/// Pixels and slices per invocation of `split`, the most useful first. Odd extents leave neighbours
/// in different banks and a map of few pixels less ragged: measured on an H200, maps of 9 to 129
/// pixels a side.
const SPLIT_TILES: [[u32; 2]; 5] = [[6, 1], [3, 1], [6, 2], [5, 1], [4, 1]];

impl Op for PointwiseOp {
    fn name(&self) -> &'static str {
        OP
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn operands(&self) -> Vec<OperandInfo> {
        self.0.operands(Shape::nhwc(self.0.output.c, 1, 1, self.0.input.c))
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
        let (problem, plain) = (&self.0, PointwiseOp(self.0.plain()));
        expected::of_sum(self, &plain, problem.terms(), &problem.epilogue, operands, Vec::new())
    }

    /// 1x1 convolutions of one input with one activation and no residual are one with their weights
    /// stacked.
    fn stack(&self, parts: &[&dyn Op]) -> Option<Arc<dyn Op>> {
        let part = |part: &&dyn Op| {
            let problem = part.as_any().downcast_ref::<PointwiseOp>()?.0;
            let Epilogue { activation, residual, .. } = problem.epilogue;
            let kin = problem.input == self.0.input && problem.precision == self.0.precision;
            let same = kin && activation == self.0.epilogue.activation && !residual;
            same.then_some((problem.output.c, problem.epilogue.bias))
        };
        let parts: Option<Vec<(usize, bool)>> = parts.iter().map(part).collect();
        let parts = parts.filter(|_| !self.0.epilogue.residual)?;
        let channels: usize = parts.iter().map(|(channels, _)| channels).sum();
        let Convolution { input, precision, epilogue: Epilogue { activation, .. }, .. } = self.0;
        let (options, weights) = (Pointwise { activation }, Shape::nhwc(channels, 1, 1, input.c));
        let bias = parts.iter().any(|(_, bias)| *bias);
        let op = PointwiseOp::new(input, weights, &options, bias, false, precision);
        Some(Arc::new(op.ok()?))
    }

    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::kernel(self, constants)?))
    }

    fn with_precision(&self, precision: Precision) -> Arc<dyn Op> {
        Arc::new(PointwiseOp(self.0.with_precision(precision)))
    }

    fn problem_key(&self) -> String {
        problem::convolution(&self.0, &format!("o{}", self.0.output.c))
    }

    fn precision(&self) -> Precision {
        self.0.precision
    }

    fn flops(&self) -> u64 {
        self.0.flops()
    }

    /// `direct` covers width x height x slices; `micro` covers pixels x slices x batch, its tile
    /// being pixels and slices. `split` covers pixels x slices x (layers * batch): its tile's third
    /// extent is the number of layers that share the sum, and the work-group must be as deep.
    /// `tiled` covers slices x pixels of all images x layers, its tile being the same.
    ///
    /// An untuned session takes the first entry that fills the device, so the order says what is
    /// worth most.
    fn space(&self, limits: &Limits) -> Vec<(&'static str, [u32; 3])> {
        let micro =
            |tiles: &[[u32; 2]]| -> Vec<_> { tiles.iter().map(|&[x, y]| ("micro", [x, y, 1])).collect() };
        // A driver that runs WGSL on a CPU keeps an invocation's lane in each element of a vector, so
        // that every load is a gather: eight pixels share those of the weights. Measured on llvmpipe in
        // CPU time, four maps of 9 to 129 pixels a side: 5 to 20 % less.
        let gathers = limits.family == Family::CpuDriver && limits.dialect == Dialect::Wgsl;
        let large = if gathers {
            micro(&[[8, 2], [4, 2], [4, 4], [4, 1], [2, 2], [8, 1]])
        } else {
            micro(&[[4, 2], [4, 1], [2, 2], [8, 1], [8, 2], [4, 4]])
        };
        let splits = split::space(&SPLIT_TILES, self.0.input.slices());
        let tiled = tiled::space(Extents::of(&self.0));
        let parts = if split::first(limits) { [splits, tiled, large] } else { [large, splits, tiled] };
        let mut space = parts.concat();
        // For a few pixels and channels, as in a network's last layer.
        space.extend(split::space(&[[1, 1]], self.0.input.slices()));
        space.extend(micro(&[[2, 1], [1, 1]]));
        space.push(("direct", [1, 1, 1]));
        space
    }

    fn grid(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        let output = self.0.output;
        let slices = extent(output.slices());
        match variant {
            "direct" => [extent(output.w), extent(output.h), slices * extent(output.n)],
            "tiled" => tiled::grid(tile, Extents::of(&self.0)),
            // A split's work-group is as deep as its tile; `micro` has depth 1.
            _ => [
                extent(output.w * output.h).div_ceil(tile[0]),
                slices.div_ceil(tile[1]),
                tile[2] * extent(output.n),
            ],
        }
    }

    fn layouts(&self, variant: &'static str) -> &'static [Layout] {
        if variant == "direct" { spec::MAPS } else { &[Layout::C4] }
    }

    fn work_groups(&self, variant: &'static str, tile: [u32; 3]) -> Vec<[u32; 3]> {
        match variant {
            "split" => split::work_groups(tile[2]),
            "tiled" => tiled::work_groups(tile, Extents::of(&self.0)),
            _ => Vec::new(),
        }
    }

    fn dst_depth(&self) -> u32 {
        extent(self.0.output.slices())
    }

    fn effort(&self, choice: &Choice, limits: &Limits) -> Option<Effort> {
        match choice.variant {
            "tiled" => tiled::effort(choice, &self.0, limits),
            "split" => Some(split::effort(choice, &self.0, self.grid(choice.variant, choice.tile))),
            _ => None,
        }
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        let grid = self.grid(choice.variant, choice.tile.map(|extent| extent.max(1)));
        spec::check_maps(OP, choice, self.layouts(choice.variant), &self.0, limits)?;
        spec::check_choice(OP, choice, &self.space(limits), grid, self.0.precision, limits)?;
        match choice.variant {
            "split" => split::check(OP, choice, self.0.precision, limits),
            "tiled" => tiled::check(OP, choice, Extents::of(&self.0), self.0.precision, limits),
            _ => Ok(()),
        }
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let problem = &self.0;
        let slices = [
            ("src_c4", unsigned(problem.input.slices())),
            ("dst_c4", unsigned(problem.output.slices())),
            ("batch", unsigned(problem.output.n)),
        ];
        let (params, constants): (spec::Params, _) = match choice.variant {
            "direct" => {
                let plane = [("dst_w", unsigned(problem.output.w)), ("dst_h", unsigned(problem.output.h))];
                (plane.into_iter().chain(slices).collect(), Vec::new())
            }
            _ => {
                let plane = [("plane", unsigned(problem.output.w * problem.output.h))];
                let tile = match choice.variant {
                    "split" => split::constants(problem.input.slices(), choice),
                    "tiled" => {
                        tiled::constants(choice, Extents::of(problem), problem.precision, false, limits)
                    }
                    _ => vec![("TILE_X", Value::U32(choice.tile[0])), ("TILE_Y", Value::U32(choice.tile[1]))],
                };
                (plane.into_iter().chain(slices).collect(), tile)
            }
        };
        let interface = spec::interface(spec::convolution_bindings(problem, choice), &params);
        Ok(Launch {
            spec: spec::kernel(OP, choice, constants, problem.precision, problem.epilogue, interface),
            params: params.into_iter().map(|(_, value)| value).collect(),
            grid: self.grid(choice.variant, choice.tile),
        })
    }

    fn pack(&self, choice: &Choice, operand: Operand, data: &[f32]) -> Result<Vec<f32>> {
        let problem = &self.0;
        // Whole tiles of slices, so that the kernel reads zeros beyond the last.
        let tile = if choice.variant == "tiled" { choice.tile[0] } else { choice.tile[1] };
        let slices = problem.output.slices().next_multiple_of(tile.max(1) as usize);
        match operand {
            Operand::Bias | Operand::Slope => {
                spec::expect_len(OP, operand, data, problem.output.c)?;
                Ok(spec::pack_channels(data, slices))
            }
            Operand::Weights => {
                let inputs = problem.input.c;
                spec::expect_len(OP, operand, data, problem.output.c * inputs)?;
                let sources = problem.input.slices();
                if matches!(choice.variant, "split" | "tiled") {
                    let slices = problem.output.slices();
                    let rows = match choice.variant {
                        "split" => split::padded(sources, choice.tile),
                        _ => sources,
                    };
                    return Ok(spec::pack_rows(data, inputs, slices, rows));
                }
                let mut out = vec![0.0; slices * sources * 16];
                for (o, row) in data.chunks_exact(inputs).enumerate() {
                    let first = 16 * sources * (o / 4) + o % 4;
                    for (k, &weight) in row.iter().enumerate() {
                        out[first + 4 * k] = weight;
                    }
                }
                Ok(out)
            }
            _ => spec::no_constant(OP, operand),
        }
    }
}
