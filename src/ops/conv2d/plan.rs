//! The kernels of `conv2d`.
//!
//! Weights are packed as `[slice][kh][kw][input slice][lane][4]`: for each output slice and tap,
//! and each of the input slices that its channels' groups touch, four vec4s over the output
//! channels, one for each input lane. Products across groups have weight zero.

use super::Conv2dOp;
use crate::dtype::Precision;
use crate::emit::{Operand, Value};
use crate::error::Result;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::convolution::Convolution;
use crate::ops::plan::{Choice, Launch, Op};
use crate::ops::problem;
use crate::ops::spec::{self, extent, unsigned};

const OP: &str = "conv2d";

/// First input slice that output slice `slice` reads.
fn first_slice(problem: &Convolution, slice: usize) -> usize {
    4 * slice / problem.group_outputs() * problem.group_inputs() / 4
}

/// Input slices that every output slice reads: the most that any needs.
fn source_slices(problem: &Convolution) -> usize {
    (0..problem.output.slices())
        .map(|slice| {
            let last_output = (4 * slice + 3).min(problem.output.c - 1);
            let last_input = (last_output / problem.group_outputs() + 1) * problem.group_inputs() - 1;
            last_input / 4 + 1 - first_slice(problem, slice)
        })
        .max()
        .unwrap_or(0)
}

impl Op for Conv2dOp {
    fn name(&self) -> &'static str {
        OP
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

    fn space(&self, _limits: &Limits) -> Vec<(&'static str, [u32; 3])> {
        let mut tiles = vec![[4, 1, 1], [2, 1, 1], [1, 1, 1]];
        if self.0.groups == 1 {
            // Several output slices share an input slice only without groups.
            tiles.extend([[4, 1, 2], [2, 1, 2], [1, 1, 2], [2, 1, 4]]);
        }
        tiles.into_iter().map(|tile| ("direct", tile)).collect()
    }

    fn grid(&self, _variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        let output = self.0.output;
        let tiles = extent(output.slices()).div_ceil(tile[2]);
        [extent(output.w).div_ceil(tile[0]), extent(output.h), tiles * extent(output.n)]
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
        spec::check_choice(OP, choice, &self.space(limits), grid, self.0.precision, limits)
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
        constants.push(("GROUPED", Value::U32(u32::from(grouped))));
        constants.push(("TILE_X", Value::U32(choice.tile[0])));
        constants.push(("TILE_Z", Value::U32(choice.tile[2])));
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
        let slices = problem.output.slices().next_multiple_of(choice.tile[2].max(1) as usize);
        match operand {
            Operand::Bias | Operand::Slope => {
                spec::expect_len(OP, operand, data, problem.output.c)?;
                Ok(spec::pack_channels(data, slices))
            }
            Operand::Weights => {
                let [kernel_h, kernel_w] = problem.kernel;
                let (inputs, outputs) = (problem.group_inputs(), problem.group_outputs());
                spec::expect_len(OP, operand, data, problem.output.c * kernel_h * kernel_w * inputs)?;
                let sources = source_slices(problem);
                let taps = kernel_h * kernel_w;
                let mut out = vec![0.0; slices * taps * sources * 16];
                for o in 0..problem.output.c {
                    let (slice, first) = (o / 4, 4 * first_slice(problem, o / 4));
                    for tap in 0..taps {
                        for k in 0..inputs {
                            // The input channel, counted from the first slice that is read.
                            let channel = o / outputs * inputs + k - first;
                            let vec4 = ((slice * taps + tap) * sources + channel / 4) * 4 + channel % 4;
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
