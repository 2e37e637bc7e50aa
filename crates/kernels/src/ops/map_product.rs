//! The kernels of `conv2d` and `pointwise` that are matrix products of pixels and output channels: `matrix` and `matrix_ptx`
//! (`ops/matrix.rs`), `tiled` (`ops/tiled.rs`) and `split` (`ops/split.rs`).
//!
//! Weights are packed as the rows of a matrix, `[kh][kw][input slice][lane][slice][4]`, for `matrix_ptx` as its lanes read them, and for
//! `split` with input slices of zeros up to a whole number of steps.

use super::convolution::Convolution;
use super::effort::Effort;
use super::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use super::matrix::{self, Matrix};
use super::plan::Choice;
use super::registers::Registers;
use super::spec::{self, Params, extent};
use super::split;
use super::text_arguments::TextArguments;
use super::tiled::{self, Extents};
use super::windowed::{ConvolutionOptions, Windowed};
use crate::dtype::Precision;
use crate::emit::{Operand, Value};
use crate::limits::Limits;

/// The kernel `tiled` of an op.
#[derive(Debug)]
pub(super) struct Tiled {
    pub(super) entry: VariantEntry,
    /// Its preference where work-groups are scarce, and elsewhere.
    pub(super) preference: [u32; 2],
    pub(super) given: TextArguments,
    /// The axis of the tile to whose multiples constants of channels are padded.
    pub(super) padded: usize,
}

/// The kernel `split` of an op.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) entry: VariantEntry,
    /// Its preference where work-groups are scarce, and elsewhere.
    pub(super) preference: [u32; 2],
    /// Pixels and slices per invocation, the most useful first.
    pub(super) tiles: &'static [[u32; 2]],
    /// Those for a few pixels and channels, as in a network's last layer.
    pub(super) small_tiles: &'static [[u32; 2]],
    pub(super) given: TextArguments,
    /// The axis of the tile to whose multiples constants of channels are padded.
    pub(super) padded: usize,
}

/// Whether a product takes `problem`: not groups, nor windows of a single slice of input channels.
fn takes(problem: &Convolution, given: TextArguments) -> bool {
    problem.groups == 1 && !(given.windows && problem.input.slices() == 1)
}

/// A constant: weights as rows with slices of zeros up to `sources`, others up to whole tiles of `tile` slices.
fn pack(problem: &Convolution, sources: usize, tile: u32, operand: Operand, data: &[f32]) -> Vec<f32> {
    if operand == Operand::Weights {
        return pack_rows(problem, sources, data);
    }
    spec::pack_channels(data, problem.output.slices().next_multiple_of(tile.max(1) as usize))
}

/// Weights as the rows of a matrix, with slices of zeros up to `sources`.
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

impl<O: ConvolutionOptions> Kernel<Windowed<O>> for Matrix {
    fn entry(&self) -> VariantEntry {
        self.entry
    }

    fn offers(&self, op: &Windowed<O>, limits: &Limits) -> Vec<Offer> {
        // A first layer is better off with a kernel that reads the rows that a network is given.
        let preference = if op.0.input.c <= 4 { 2 } else { 0 };
        offers(preference, self.tiles(&op.0, limits))
    }

    fn grid(&self, op: &Windowed<O>, tile: [u32; 3]) -> [u32; 3] {
        Matrix::grid(*self, &op.0, tile)
    }

    fn obstacle(&self, op: &Windowed<O>, limits: &Limits) -> Option<String> {
        Matrix::obstacle(*self, &op.0, limits)
    }

    fn choice_obstacle(&self, op: &Windowed<O>, choice: &Choice, limits: &Limits) -> Option<String> {
        Matrix::choice_obstacle(*self, &op.0, choice, limits)
    }

    fn work_groups(&self, op: &Windowed<O>, tile: [u32; 3]) -> Vec<[u32; 3]> {
        Matrix::work_groups(*self, &op.0, tile)
    }

    fn precision(&self, _op: &Windowed<O>) -> Option<Precision> {
        Some(Precision::F16Storage)
    }

    fn counted(&self, op: &Windowed<O>, choice: &Choice) -> u64 {
        Matrix::counted(*self, &op.0, choice)
    }

    fn params(&self, op: &Windowed<O>, choice: &Choice) -> Params {
        (self.given.params)(&op.0, choice.tile)
    }

    fn constants(&self, op: &Windowed<O>, choice: &Choice, limits: &Limits) -> Constants {
        let sources = vec![("SOURCES", Value::U32(extent(op.0.input.slices())))];
        self.given.constants(&op.0, sources, Matrix::constants(*self, &op.0, choice, limits))
    }

    fn pack(&self, op: &Windowed<O>, _choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        let packed = pack(&op.0, op.0.input.slices(), 1, operand, data);
        if self.cooperative || operand != Operand::Weights {
            return packed;
        }
        matrix::pack_lanes(&packed, matrix::total4(&op.0), op.0.output.slices())
    }

    fn effort(&self, op: &Windowed<O>, choice: &Choice, limits: &Limits) -> Option<Effort> {
        Matrix::effort(*self, &op.0, choice, limits)
    }
}

impl<O: ConvolutionOptions> Kernel<Windowed<O>> for Tiled {
    fn entry(&self) -> VariantEntry {
        self.entry
    }

    fn offers(&self, op: &Windowed<O>, limits: &Limits) -> Vec<Offer> {
        let tiles = tiled::tiles(Extents::of(&op.0)).into_iter().filter(|_| takes(&op.0, self.given));
        offers(self.preference[usize::from(!split::first(limits))], tiles)
    }

    /// Slices x pixels of all images x layers.
    fn grid(&self, op: &Windowed<O>, tile: [u32; 3]) -> [u32; 3] {
        tiled::grid(tile, Extents::of(&op.0))
    }

    fn choice_obstacle(&self, op: &Windowed<O>, choice: &Choice, limits: &Limits) -> Option<String> {
        tiled::obstacle(choice, Extents::of(&op.0), op.0.precision, limits)
    }

    fn work_groups(&self, op: &Windowed<O>, tile: [u32; 3]) -> Vec<[u32; 3]> {
        tiled::work_groups(tile, Extents::of(&op.0))
    }

    fn untuned(&self, _op: &Windowed<O>, limits: &Limits) -> bool {
        !limits.has_lanes()
    }

    fn params(&self, op: &Windowed<O>, choice: &Choice) -> Params {
        (self.given.params)(&op.0, choice.tile)
    }

    fn constants(&self, op: &Windowed<O>, choice: &Choice, limits: &Limits) -> Constants {
        let (extents, windows) = (Extents::of(&op.0), self.given.windows);
        let own = tiled::constants(choice, extents, op.0.precision, windows, limits);
        self.given.constants(&op.0, Vec::new(), own)
    }

    fn pack(&self, op: &Windowed<O>, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        pack(&op.0, op.0.input.slices(), choice.tile[self.padded], operand, data)
    }

    fn effort(&self, op: &Windowed<O>, choice: &Choice, limits: &Limits) -> Option<Effort> {
        tiled::effort(choice, &op.0, limits)
    }
}

impl<O: ConvolutionOptions> Kernel<Windowed<O>> for Split {
    fn entry(&self) -> VariantEntry {
        self.entry
    }

    fn offers(&self, op: &Windowed<O>, limits: &Limits) -> Vec<Offer> {
        if !takes(&op.0, self.given) {
            return Vec::new();
        }
        let preference = self.preference[usize::from(!split::first(limits))];
        let tiles = |tiles| split::tiles(tiles, op.0.input.slices());
        [offers(preference, tiles(self.tiles)), offers(3, tiles(self.small_tiles))].concat()
    }

    /// Pixels x slices x (layers * batch).
    fn grid(&self, op: &Windowed<O>, tile: [u32; 3]) -> [u32; 3] {
        split::grid(&op.0, tile)
    }

    fn choice_obstacle(&self, op: &Windowed<O>, choice: &Choice, limits: &Limits) -> Option<String> {
        split::obstacle(choice, op.0.precision, limits)
    }

    fn work_groups(&self, _op: &Windowed<O>, tile: [u32; 3]) -> Vec<[u32; 3]> {
        split::work_groups(tile[2])
    }

    fn untuned(&self, _op: &Windowed<O>, limits: &Limits) -> bool {
        !limits.has_lanes()
    }

    fn params(&self, op: &Windowed<O>, choice: &Choice) -> Params {
        (self.given.params)(&op.0, choice.tile)
    }

    fn constants(&self, op: &Windowed<O>, choice: &Choice, _limits: &Limits) -> Constants {
        let own = split::constants(op.0.input.slices(), choice);
        self.given.constants(&op.0, Vec::new(), own)
    }

    fn pack(&self, op: &Windowed<O>, choice: &Choice, operand: Operand, data: &[f32]) -> Vec<f32> {
        let sources = split::padded(op.0.input.slices(), choice.tile);
        pack(&op.0, sources, choice.tile[self.padded], operand, data)
    }

    fn registers(&self, op: &Windowed<O>, choice: &Choice, limits: &Limits) -> Option<Registers> {
        self.effort(op, choice, limits).map(|effort| split::registers(choice, &effort, limits))
    }

    fn effort(&self, op: &Windowed<O>, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        Some(split::effort(choice, &op.0, split::grid(&op.0, choice.tile)))
    }
}
