//! The geometry of the `matrix` and `matrix_ptx` kernels of `pointwise` and `conv2d`: products of pixels and output
//! channels by instructions that multiply small matrices of halves and sum in f32.
//!
//! A wave of 32 invocations sums `tile[1]` times 16 pixels by `tile[0]` times 16 (`matrix`) or 8 (`matrix_ptx`)
//! output channels, and `tile[2]` layers of the work-group sum a part of the terms each. A work-group of `32 x`
//! by `y` by layers is `x` by `y` waves in each layer.

use super::convolution::Convolution;
use super::effort::{self, Effort};
use super::kernel::VariantEntry;
use super::plan::Choice;
use super::spec::extent;
use super::text_arguments::TextArguments;
use crate::dtype::Precision;
use crate::emit::Value;
use crate::limits::{Limits, MatrixUnit};
use crate::shape::Border;

/// Invocations that work on one small matrix together.
const WAVE: u32 = 32;

/// The most invocations of a work-group: what drivers compile kernels for.
const INVOCATIONS: u32 = 256;

/// Vec4s of halves that keep the rows of a staged operand in different banks, and at 16 bytes.
const PADDING4: u32 = 2;

/// Vec4s of halves that an invocation has on their way to local memory.
const LOADS: u32 = 16;

/// Slices of terms that `matrix_ptx` takes at a step.
const PTX_STEP4: u32 = 8;

/// Matrices of a wave and layers, the largest reuse first.
const TILES: [[u32; 2]; 5] = [[2, 4], [2, 2], [2, 1], [1, 2], [1, 1]];
const PTX_TILES: [[u32; 2]; 5] = [[8, 4], [4, 4], [8, 2], [4, 2], [4, 1]];
const LAYERS: [u32; 4] = [1, 2, 4, 8];

/// The most layers of sums in f32 that a work-group passes through local memory, in vec4s of an invocation.
const PASSED: u32 = 64;

/// Products of halves that a matrix unit sums while one of f32 is.
const SPEED: u64 = 8;

/// A kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix {
    /// Its text.
    pub(super) entry: VariantEntry,
    /// By cooperative matrices, or by PTX.
    pub(super) cooperative: bool,
    pub(super) given: TextArguments,
}

impl Matrix {
    /// By cooperative matrices.
    pub(super) const fn cooperative(text: &'static str, given: TextArguments) -> Self {
        let entry =
            VariantEntry::vulkan("matrix", text, "OpenCL C has no cooperative matrices").with_native_half();
        Matrix { entry, cooperative: true, given }
    }

    /// By inline assembly.
    pub(super) const fn ptx(text: &'static str, given: TextArguments) -> Self {
        let entry = VariantEntry::opencl("matrix_ptx", text, "WGSL has no inline assembly");
        Matrix { entry, cooperative: false, given }
    }

    /// Output channels of a small matrix.
    const fn columns(self) -> u32 {
        if self.cooperative { 16 } else { 8 }
    }

    /// Why it cannot serve `problem` on such a device, if it cannot.
    pub(super) fn obstacle(self, problem: &Convolution, limits: &Limits) -> Option<String> {
        if problem.precision.storage() != Precision::F16Storage.storage() {
            return Some(format!("it multiplies halves, the precision is {}", problem.precision));
        }
        if problem.border != Border::Zeros {
            return Some(format!("it has zeros around a map, wanted {:?}", problem.border));
        }
        match (self.cooperative, limits.matrix_unit) {
            (true, Some(MatrixUnit::Cooperative { subgroup: WAVE })) if limits.native_half => None,
            (true, Some(MatrixUnit::Cooperative { subgroup })) => {
                Some(format!("it is made for halves in subgroups of {WAVE}, the device has {subgroup}"))
            }
            (false, Some(MatrixUnit::Ptx { .. })) => None,
            _ => Some("the device does not offer matrix instructions to this API".to_owned()),
        }
    }

    /// The tiles for `problem`: none where most of a small matrix would be zeros.
    pub(super) fn tiles(self, problem: &Convolution, limits: &Limits) -> Vec<[u32; 3]> {
        let few = problem.terms() < 16 || problem.output.c < 8;
        if problem.groups > 1 || few || self.obstacle(problem, limits).is_some() {
            return Vec::new();
        }
        let steps = total4(problem).div_ceil(PTX_STEP4);
        let matrices = if self.cooperative { TILES } else { PTX_TILES };
        let layers = LAYERS.into_iter().filter(|&layers| layers == 1 || layers <= steps);
        let all = layers.flat_map(|layers| matrices.map(|[x, y]| [x, y, layers]));
        // No tile of which half would lie beyond the channels or pixels.
        let (channels, pixels) = (extent(problem.output.c), pixels(problem));
        let across = |x: u32| x == matrices[4][0] || self.columns() * x < 2 * channels;
        let down = |y: u32| y == 1 || 16 * y < 2 * pixels;
        let small = |[x, y, layers]: &[u32; 3]| *layers == 1 || x * y * layers <= PASSED;
        all.filter(|tile| across(tile[0]) && down(tile[1]) && small(tile)).collect()
    }

    /// Invocations along channels, pixels of all images and layers.
    pub(super) fn grid(self, problem: &Convolution, tile: [u32; 3]) -> [u32; 3] {
        let across = extent(problem.output.c).div_ceil(self.columns() * tile[0]);
        [WAVE * across, pixels(problem).div_ceil(16 * tile[1]), tile[2]]
    }

    /// The work-groups of `tile`: as many waves as a work-group may have first, never more than there is work for.
    pub(super) fn work_groups(self, problem: &Convolution, tile: [u32; 3]) -> Vec<[u32; 3]> {
        let [across, down, layers] = self.grid(problem, tile);
        let most = INVOCATIONS / WAVE / layers.max(1);
        let sizes = [[2, 2], [4, 1], [1, 4], [2, 4], [4, 2], [2, 1], [1, 2], [1, 1]];
        let fit = |[x, y]: &[u32; 2]| x * y <= most && *x <= across / WAVE && *y <= down;
        sizes.into_iter().filter(fit).map(|[x, y]| [WAVE * x, y, layers]).collect()
    }

    /// Why it cannot run as `choice`, if it cannot.
    pub(super) fn choice_obstacle(
        self,
        problem: &Convolution,
        choice: &Choice,
        limits: &Limits,
    ) -> Option<String> {
        let ([x, y, z], layers) = (choice.work_group, choice.tile[2]);
        if !x.is_multiple_of(WAVE) || z != layers {
            return Some(format!("{x} x {y} x {z} invocations are not waves of {WAVE} in {layers} layers"));
        }
        let bytes = self.staging(problem, choice, limits.local_memory).map(|staging| staging.bytes());
        let none = bytes.is_none_or(|bytes| bytes > limits.local_memory);
        none.then(|| {
            format!("the invocations do not share the loads, or need more than {} bytes", limits.local_memory)
        })
    }

    /// `None` if the invocations do not share the loads evenly.
    fn staging(self, problem: &Convolution, choice: &Choice, local: u32) -> Option<Staging> {
        let ([x, y, _], [columns, pixels, layers]) = (choice.work_group, choice.tile);
        let (waves_x, threads) = (x / WAVE, x * y);
        let (rows, columns4) = (16 * pixels * y, self.columns() / 4 * columns * waves_x);
        let whole =
            Staging { waves_x, threads, rows, columns4, layers, step4: PTX_STEP4, ..Staging::default() };
        if !self.cooperative {
            // The sums of all layers, a vec4 of four channels of a pixel each.
            let passed = if layers > 1 { layers * threads * columns * pixels } else { 0 };
            return Some(Staging { passed, ..whole });
        }
        let passed = 2 * columns * threads * layers;
        let of_step = |step4: u32| {
            let counts = [rows * step4, 4 * step4 * columns4];
            let even = counts.iter().all(|count| count.is_multiple_of(threads));
            let loads = counts.map(|count| count / threads);
            let steps = total4(problem).div_ceil(step4 * layers);
            let staged = layers * (rows * (step4 + PADDING4) + 4 * step4 * (columns4 + PADDING4));
            let staging = Staging { step4, loads, staged, passed, ..whole };
            let fits = even && loads[0] + loads[1] <= LOADS && staging.bytes() <= local;
            (fits && (step4 == 4 || steps > 1)).then_some(staging)
        };
        [16, 8, 4].into_iter().find_map(of_step)
    }

    /// The constants of the text; `choice` fits.
    pub(super) fn constants(
        self,
        problem: &Convolution,
        choice: &Choice,
        limits: &Limits,
    ) -> Vec<(&'static str, Value)> {
        let Some(staging) = self.staging(problem, choice, limits.local_memory) else {
            return Vec::new();
        };
        let [columns, pixels, layers] = choice.tile;
        let Staging { waves_x, threads, rows, columns4, step4, loads, staged, passed, .. } = staging;
        let mut constants = vec![("TILE_X", columns), ("TILE_Y", pixels), ("LAYERS", layers)];
        if self.cooperative {
            let (a_row, b_row) = (step4 + PADDING4, columns4 + PADDING4);
            constants.extend([
                ("RAGGED", u32::from(!total4(problem).is_multiple_of(step4 * layers))),
                ("STEP4", step4),
                ("WAVES_X", waves_x),
                ("THREADS", threads),
                ("ROWS", rows),
                ("COLUMNS4", columns4),
                ("A_ROW", a_row),
                ("B_ROW", b_row),
                ("B_FIRST", rows * a_row),
                ("LAYER", rows * a_row + 4 * step4 * b_row),
                ("LOADS_A", loads[0]),
                ("LOADS_B", loads[1]),
                ("STAGED", staged),
                ("PASSED", passed),
            ]);
        } else {
            constants.push(("RAGGED", u32::from(!total4(problem).is_multiple_of(PTX_STEP4))));
            if layers > 1 {
                constants.extend([("THREADS", threads), ("PARTS", passed)]);
            }
        }
        constants.into_iter().map(|(name, value)| (name, Value::U32(value))).collect()
    }

    /// What the kernel asks of a device; `None` if it does not fit.
    pub(super) fn effort(self, problem: &Convolution, choice: &Choice, limits: &Limits) -> Option<Effort> {
        let staging = self.staging(problem, choice, limits.local_memory)?;
        let [columns, pixels, layers] = choice.tile;
        let steps = total4(problem).div_ceil(staging.step4 * layers);
        // Matrices of 16 terms; one of f32 sums is a vec4 and a half or two of an invocation.
        let sixteens = u64::from(steps * staging.step4 / 4);
        let sums = columns * pixels * self.columns() / 8;
        let fragments = 4 * (2 * pixels + columns * self.columns() / 8);
        let halves = if self.cooperative {
            u64::from((staging.loads[0] + staging.loads[1]) * steps)
        } else {
            u64::from(2 * pixels + columns) * sixteens
        };
        let staged = u64::from(pixels + columns) * sixteens;
        let covers = u64::from(staging.rows + 4 * staging.columns4);
        Some(Effort {
            groups: effort::groups(self.grid(problem, choice.tile), choice.work_group),
            invocations: choice.work_group.iter().product(),
            registers: 40
                + 4 * sums
                + if self.cooperative { fragments / 2 + 2 * LOADS } else { 2 * fragments },
            local_bytes: staging.bytes(),
            steps,
            ahead: true,
            barriers: if self.cooperative { 2 * steps } else { 0 },
            multiplies: 64 * u64::from(sums) * sixteens / SPEED,
            loads: halves.div_ceil(2),
            staged: if self.cooperative { staged } else { 0 },
            added: if layers > 1 { u64::from(sums) } else { 0 },
            reads: 8 * u64::from(total4(problem)) * covers,
            traffic: effort::traffic(problem),
        })
    }

    /// How many ordinary invocations keep a device as busy: a matrix unit needs fewer.
    pub(super) fn counted(self, problem: &Convolution, choice: &Choice) -> u64 {
        4 * self.grid(problem, choice.tile).iter().map(|&extent| u64::from(extent)).product::<u64>()
    }
}

/// Pixels of all images of the output.
fn pixels(problem: &Convolution) -> u32 {
    extent(problem.output.n * problem.output.h * problem.output.w)
}

/// Slices of input channels at all taps.
pub(super) fn total4(problem: &Convolution) -> u32 {
    extent(problem.kernel[0] * problem.kernel[1] * problem.input.slices())
}

/// What a work-group keeps; lengths are in vec4s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Staging {
    /// Waves along the channels, and invocations, of a layer.
    waves_x: u32,
    threads: u32,
    /// Pixels and slices of the work-group.
    rows: u32,
    columns4: u32,
    layers: u32,
    /// Slices of terms at a time.
    step4: u32,
    /// What an invocation brings of pixels and of weights for each step.
    loads: [u32; 2],
    /// Halves in local memory, and sums.
    staged: u32,
    passed: u32,
}

impl Staging {
    const fn bytes(&self) -> u32 {
        8 * self.staged + 16 * self.passed
    }
}

/// Weights that were packed as the rows of a matrix, `[term][slice][4]` with four terms for each of `total4`
/// slices, as the lanes of a warp read them: `[32 terms][8 channels][lane][8]`. Lane `l` has channel `l / 4` of
/// four terms of slice `l % 4` and of four of the fourth after it.
pub(super) fn pack_lanes(rows: &[f32], total4: u32, slices: usize) -> Vec<f32> {
    let (terms, steps, columns) =
        (4 * total4 as usize, total4.div_ceil(PTX_STEP4) as usize, slices.div_ceil(2));
    let mut out = Vec::with_capacity(steps * columns * 256);
    for step in 0..steps {
        for column in 0..columns {
            for lane in 0..32 {
                let channel = 8 * column + lane / 4;
                for i in 0..8 {
                    let term = 32 * step + 16 * (i / 4) + 4 * (lane % 4) + i % 4;
                    let inside = term < terms && channel < 4 * slices;
                    let value = rows.get(4 * slices * term + channel).filter(|_| inside);
                    out.push(value.copied().unwrap_or_default());
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::Shape;

    const GIVEN: TextArguments = TextArguments { windows: false, params: |_, _| Vec::new() };
    const MATRIX: Matrix = Matrix::cooperative("", GIVEN);
    const MATRIX_PTX: Matrix = Matrix::ptx("", GIVEN);

    #[test]
    fn no_tile_lies_mostly_beyond_the_channels() {
        let units = [
            (MATRIX, Limits::webgpu(), MatrixUnit::Cooperative { subgroup: 32 }),
            (MATRIX_PTX, Limits::opencl(), MatrixUnit::Ptx { capability: 80, warp_groups: false }),
        ];
        for (kernel, base, unit) in units {
            let limits = Limits { matrix_unit: Some(unit), native_half: true, local_memory: 49152, ..base };
            for (c, oc) in [(16, 16), (24, 72), (512, 512)] {
                let (input, weights) = (Shape::nhwc(1, 17, 17, c), Shape::nhwc(oc, 1, 1, c));
                let halves = Precision::F16Storage;
                let op = PointwiseOp::new(input, weights, &Pointwise::default(), true, false, halves);
                let problem = *op.expect("an op").convolution();
                let tiles = kernel.tiles(&problem, &limits);
                assert!(!tiles.is_empty(), "{c} {oc}");
                for tile in tiles {
                    let covers = kernel.columns() * tile[0];
                    assert!(covers < 2 * extent(oc) || covers == 32, "{c} {oc}: {tile:?}");
                    assert!(!kernel.work_groups(&problem, tile).is_empty());
                }
            }
            let f32 = PointwiseOp::new(
                Shape::nhwc(1, 4, 4, 64),
                Shape::nhwc(64, 1, 1, 64),
                &Pointwise::default(),
                true,
                false,
                Precision::F32,
            );
            assert!(kernel.tiles(f32.expect("an op").convolution(), &limits).is_empty());
        }
    }

    #[test]
    fn lanes_have_the_terms_of_their_slice() {
        // Nine terms' slices and three slices of channels: value = 1000 * term + channel.
        let (total4, slices) = (9, 3);
        let rows: Vec<f32> = (0..36).flat_map(|t| (0..12).map(move |c| (1000 * t + c) as f32)).collect();
        let packed = pack_lanes(&rows, total4, slices);
        assert_eq!(packed.len(), 2 * 2 * 256);
        let of = |step: usize, column: usize, lane: usize| {
            packed[256 * (2 * step + column) + 8 * lane..][..8].to_vec()
        };
        assert_eq!(of(0, 0, 6), [8001., 9001., 10001., 11001., 24001., 25001., 26001., 27001.]);
        assert_eq!(of(1, 1, 0), [32008., 33008., 34008., 35008., 0., 0., 0., 0.]);
        // Channels 12 to 15 are beyond the last slice.
        assert_eq!(of(0, 1, 16), [0.0; 8]);
    }
}
