//! The kernels of `conv2d`.
//!
//! Weights are packed as `[slice][kh][kw][input slice][lane][4]`: for each output slice and tap,
//! and each of the input slices of its group, four vec4s over the output channels, one for each input
//! lane. `split`, `tiled` and `shallow` have their own: [`pack_rows`], [`pack_shallow`]; `grouped`,
//! `winograd2` and `winograd4` too: [`grouped`], [`winograd`].

use super::{Conv2dOp, OP, cpu, grouped, oracle, winograd, winograd_bound};
use crate::cpu::CpuKernel;
use crate::dtype::{DType, Precision};
use crate::emit::{Element, Operand, Scalar, Value};
use crate::error::Result;
use crate::layout::{Form, Layout};
use crate::limits::Limits;
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

/// Input slices that every output slice reads: those of a group, which are whole ones if there are
/// several.
fn source_slices(problem: &Convolution) -> usize {
    problem.group_inputs().div_ceil(4)
}

/// Pixels and slices per invocation of `split`, the most useful first.
const SPLIT_TILES: [[u32; 2]; 3] = [[4, 1], [4, 2], [2, 2]];

/// The most terms of a sum that `shallow` unrolls: a 7x7 window over three channels.
const MAX_TERMS: usize = 147;

/// The most input columns that `shallow` keeps in registers.
const MAX_COLUMNS: usize = 16;

/// Input slices of each tap in the weights of `split`.
fn split_slices(problem: &Convolution, choice: &Choice) -> usize {
    split::padded(problem.input.slices(), choice.tile)
}

/// The weights of `split` and `tiled`: `[kh][kw][input slice][lane][slice][4]`, with slices of zeros
/// up to `sources`.
fn pack_rows(problem: &Convolution, sources: usize, data: &[f32]) -> Vec<f32> {
    let (inputs, slices) = (problem.input.c, problem.output.slices());
    let taps = problem.kernel[0] * problem.kernel[1];
    let rows = 4 * sources;
    let mut out = vec![0.0; taps * rows * slices * 4];
    for (o, window) in data.chunks_exact(taps * inputs).enumerate() {
        for (tap, row) in window.chunks_exact(inputs).enumerate() {
            for (k, &weight) in row.iter().enumerate() {
                out[4 * slices * (rows * tap + k) + o] = weight;
            }
        }
    }
    out
}

/// The weights of `shallow`: `[slice][kh][kw][channel][4]`, `slices` slices of them.
fn pack_shallow(problem: &Convolution, slices: usize, data: &[f32]) -> Vec<f32> {
    let terms = problem.kernel[0] * problem.kernel[1] * problem.input.c;
    let mut out = vec![0.0; slices * terms * 4];
    for (o, window) in data.chunks_exact(terms).enumerate() {
        for (term, &weight) in window.iter().enumerate() {
            out[4 * (o / 4 * terms + term) + o % 4] = weight;
        }
    }
    out
}

impl Op for Conv2dOp {
    fn name(&self) -> &'static str {
        OP
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let [kernel_h, kernel_w] = self.0.kernel;
        self.0.operands(Shape::nhwc(self.0.output.c, kernel_h, kernel_w, self.0.group_inputs()))
    }

    fn form(&self, operand: Operand, choice: &Choice) -> Option<Form> {
        match (operand, choice.variant) {
            // NHWC rows in f32, as a network's inputs are.
            (Operand::Src, "shallow") => Some(Form::Rows),
            _ => convolution::form(operand, choice),
        }
    }

    fn oracle(&self, operands: &Operands<'_>) -> Result<Reference> {
        operands::check(self, operands)?;
        Ok(Reference::Sum(oracle::oracle(self, operands)))
    }

    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        operands::check(self, operands)?;
        let (problem, plain) = (&self.0, Conv2dOp(self.0.plain()));
        expected::of_sum(self, &plain, problem.terms(), &problem.epilogue, operands, Vec::new())
    }

    fn sums_otherwise(&self, variant: &str) -> bool {
        winograd::results(variant).is_some()
    }

    fn reference_of(
        &self,
        variant: &str,
        operands: &Operands<'_>,
        reference: Reference,
    ) -> Result<Reference> {
        operands::check(self, operands)?;
        let Reference::Sum(exact) = &reference else { return Ok(reference) };
        let own = winograd_bound::reference(self, variant, operands, exact);
        Ok(own.map_or(reference, Reference::Sum))
    }

    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        cpu::kernel(self, constants)
    }

    fn with_precision(&self, precision: Precision) -> Arc<dyn Op> {
        Arc::new(Conv2dOp(self.0.with_precision(precision)))
    }

    fn problem_key(&self) -> String {
        let channels = match self.0.groups {
            1 => format!("o{}", self.0.output.c),
            groups => format!("o{} groups{groups}", self.0.output.c),
        };
        problem::convolution(&self.0, &channels)
    }

    fn precision(&self) -> Precision {
        self.0.precision
    }

    fn flops(&self) -> u64 {
        self.0.flops()
    }

    /// `direct` covers width x height x slices, its tile being pixels of a row and slices; `shallow`
    /// the same for inputs of up to four channels, its grid tiles of a plane x slices. `split` covers
    /// pixels x slices x (layers * batch), its tile being pixels, slices and the layers that share
    /// the sum; the work-group must be as deep. `tiled` covers slices x pixels of all images x layers,
    /// its tile being the same.
    fn space(&self, limits: &Limits) -> Vec<(&'static str, [u32; 3])> {
        let problem = &self.0;
        let mut tiles = vec![[4, 1, 1], [2, 1, 1], [1, 1, 1]];
        let mut space = Vec::new();
        if problem.groups == 1 {
            // Several output slices share an input slice only without groups.
            tiles.extend([[4, 1, 2], [2, 1, 2], [1, 1, 2], [2, 1, 4]]);
            let terms = problem.kernel[0] * problem.kernel[1] * problem.input.c;
            for [pixels, slices] in [[2, 2], [1, 2], [1, 1], [4, 2]] {
                let columns =
                    (pixels - 1) * problem.stride[1] + (problem.kernel[1] - 1) * problem.dilation[1] + 1;
                if problem.input.c <= 4 && terms <= MAX_TERMS && columns <= MAX_COLUMNS {
                    space.push(("shallow", [extent(pixels), 1, extent(slices)]));
                }
            }
        }
        if problem.groups > 1 && grouped::shares(problem, 2) {
            tiles.extend([[4, 1, 2], [2, 1, 2], [1, 1, 2]]);
        }
        if problem.groups > 1 && !grouped::whole_slices(problem) {
            return grouped::space(problem);
        }
        let direct: Vec<_> = tiles.into_iter().map(|tile| ("direct", tile)).collect();
        if problem.groups > 1 || problem.input.slices() == 1 {
            space.extend(direct);
            return space;
        }
        let splits = split::space(&SPLIT_TILES, problem.input.slices());
        let tiled = tiled::space(Extents::of(&self.0));
        let parts = if split::first(limits) { [splits, tiled, direct] } else { [direct, splits, tiled] };
        space.extend(parts.concat());
        let winograd = winograd::space(problem);
        if winograd::untuned(problem, "winograd2", limits) { [winograd, space] } else { [space, winograd] }
            .concat()
    }

    fn grid(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        let output = self.0.output;
        if let Some(results) = winograd::results(variant) {
            return winograd::grid(&self.0, results, tile);
        }
        match variant {
            "tiled" => return tiled::grid(tile, Extents::of(&self.0)),
            "split" => {
                return [
                    extent(output.w * output.h).div_ceil(tile[0]),
                    extent(output.slices()).div_ceil(tile[1]),
                    tile[2] * extent(output.n),
                ];
            }
            "shallow" => {
                return [
                    extent(output.w).div_ceil(tile[0]) * extent(output.h),
                    extent(output.slices()).div_ceil(tile[2]) * extent(output.n),
                    1,
                ];
            }
            _ => {}
        }
        let tiles = extent(output.slices()).div_ceil(tile[2]);
        [extent(output.w).div_ceil(tile[0]), extent(output.h), tiles * extent(output.n)]
    }

    fn layouts(&self, variant: &'static str) -> &'static [Layout] {
        if variant == "direct" { spec::MAPS } else { &[Layout::C4] }
    }

    fn work_groups(&self, variant: &'static str, tile: [u32; 3]) -> Vec<[u32; 3]> {
        if let Some(results) = winograd::results(variant) {
            return winograd::work_groups(&self.0, results, tile);
        }
        match variant {
            "split" => split::work_groups(tile[2]),
            "tiled" => tiled::work_groups(tile, Extents::of(&self.0)),
            _ => Vec::new(),
        }
    }

    fn untuned(&self, variant: &str, limits: &Limits) -> bool {
        winograd::untuned(&self.0, variant, limits)
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
        if choice.variant == "direct" && self.0.groups > 1 && !grouped::whole_slices(&self.0) {
            let (inputs, outputs) = (self.0.group_inputs(), self.0.group_outputs());
            let found = format!("groups of {inputs} input and {outputs} output channels");
            return spec::reject(OP, choice, format!("{found}, direct needs multiples of 4"));
        }
        spec::check_choice(OP, choice, &self.space(limits), grid, self.0.precision, limits)?;
        match choice.variant {
            "split" => split::check(OP, choice, self.0.precision, limits),
            "tiled" => tiled::check(OP, choice, Extents::of(&self.0), self.0.precision, limits),
            "winograd2" | "winograd4" => winograd::check(OP, choice, self.0.precision, limits),
            _ => Ok(()),
        }
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let problem = &self.0;
        let grouped = problem.groups > 1;
        let mut params = vec![
            ("src_w", unsigned(problem.input.w)),
            ("src_h", unsigned(problem.input.h)),
            ("src_c4", unsigned(problem.input.slices())),
            ("src_slices", unsigned(source_slices(problem))),
            ("dst_w", unsigned(problem.output.w)),
            ("dst_h", unsigned(problem.output.h)),
            ("dst_c4", unsigned(problem.output.slices())),
            ("dst_tiles", unsigned(problem.output.slices().div_ceil(choice.tile[2] as usize))),
            ("batch", unsigned(problem.output.n)),
            ("before_h", unsigned(problem.before[0])),
            ("before_w", unsigned(problem.before[1])),
        ];
        if grouped {
            params.push(("group_inputs", unsigned(problem.group_inputs())));
            params.push(("group_outputs", unsigned(problem.group_outputs())));
        }
        let mut constants = spec::window_constants(problem);
        let mut bindings = spec::convolution_bindings(problem, choice);
        match choice.variant {
            "split" => {
                constants.extend(split::constants(problem.input.slices(), choice));
                params.retain(|(name, _)| *name != "dst_tiles" && *name != "src_slices");
                params.push(("src_slices", unsigned(split_slices(problem, choice))));
            }
            "tiled" => {
                let extents = Extents::of(problem);
                constants.extend(tiled::constants(choice, extents, problem.precision, true, limits));
                params.retain(|(name, _)| !matches!(*name, "dst_tiles" | "src_slices" | "src_c4"));
            }
            "shallow" => {
                constants.push(("CHANNELS", Value::U32(extent(problem.input.c))));
                constants.push(("TILE_X", Value::U32(choice.tile[0])));
                constants.push(("TILE_Z", Value::U32(choice.tile[2])));
                params.retain(|(name, _)| *name != "src_c4" && *name != "src_slices");
                params.push(("tiles_w", Scalar::U32(extent(problem.output.w).div_ceil(choice.tile[0]))));
                // NHWC rows in f32, as a network's inputs are.
                bindings[0].element = Element::Scalar(DType::F32);
            }
            "grouped" => {
                constants.extend(grouped::constants(problem, choice.tile));
                params.retain(|(name, _)| *name != "src_slices");
                params.push(("dst_c", unsigned(problem.output.c)));
            }
            "winograd2" | "winograd4" => {
                let results = winograd::results(choice.variant).unwrap_or_default();
                constants = winograd::constants(results, choice);
                params = winograd::params(problem, results, choice.tile);
            }
            _ => {
                params.retain(|(name, _)| *name != "group_inputs");
                constants.push(("GROUPED", Value::U32(u32::from(grouped))));
                constants.push(("TILE_X", Value::U32(choice.tile[0])));
                constants.push(("TILE_Z", Value::U32(choice.tile[2])));
            }
        }
        let interface = spec::interface(bindings, &params);
        Ok(Launch {
            spec: spec::kernel(OP, choice, constants, problem.precision, problem.epilogue, interface),
            params: params.into_iter().map(|(_, value)| value).collect(),
            grid: self.grid(choice.variant, choice.tile),
        })
    }

    fn pack(&self, choice: &Choice, operand: Operand, data: &[f32]) -> Result<Vec<f32>> {
        let problem = &self.0;
        // Whole tiles of slices, so that the kernel reads zeros beyond the last.
        let slices = problem.output.slices().next_multiple_of(choice.tile[2].max(1) as usize);
        match operand {
            Operand::Bias | Operand::Slope => {
                spec::expect_len(OP, operand, data, problem.output.c)?;
                Ok(spec::pack_channels(data, slices))
            }
            Operand::Weights => {
                let [kernel_h, kernel_w] = problem.kernel;
                let inputs = problem.group_inputs();
                spec::expect_len(OP, operand, data, problem.output.c * kernel_h * kernel_w * inputs)?;
                let taps = kernel_h * kernel_w;
                match choice.variant {
                    "split" => return Ok(pack_rows(problem, split_slices(problem, choice), data)),
                    "tiled" => return Ok(pack_rows(problem, problem.input.slices(), data)),
                    "shallow" => return Ok(pack_shallow(problem, slices, data)),
                    "grouped" => return Ok(grouped::pack(problem, slices, data)),
                    "winograd2" => return Ok(winograd::pack(problem, 2, choice.tile, data)),
                    "winograd4" => return Ok(winograd::pack(problem, 4, choice.tile, data)),
                    _ => {}
                }
                let sources = source_slices(problem);
                let mut out = vec![0.0; slices * taps * sources * 16];
                for o in 0..problem.output.c {
                    for tap in 0..taps {
                        for k in 0..inputs {
                            let vec4 = ((o / 4 * taps + tap) * sources + k / 4) * 4 + k % 4;
                            out[4 * vec4 + o % 4] = data[(o * taps + tap) * inputs + k];
                        }
                    }
                }
                Ok(out)
            }
            _ => spec::no_constant(OP, operand),
        }
    }
}
