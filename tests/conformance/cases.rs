//! The table of problems: primes, single pixels, non-square maps, strides longer than the kernel,
//! dilation, groups, multipliers, 1 to 1030 channels, odd matrices, transposition, leading
//! dimensions, batches, every activation, residuals, and extents one off a tile.
//!
//! Window constants are baked into a kernel's text and extents are not, so the table holds many
//! extents and few windows: compiling is what a run costs.

use crate::problem::Problem;
use diptych::{
    Activation, Bits, Border, Conv2d, DType, Depthwise, Dialect, Gemm, Layout, Limits, MatrixUnit, Padding,
    Pointwise, Pool, Pooling, Precision, Shape,
};
use diptych_emit::emit::Residual;
use diptych_kernels::ops::conv2d::Conv2dOp;
use diptych_kernels::ops::convert::ConvertOp;
use diptych_kernels::ops::copy::CopyOp;
use diptych_kernels::ops::depthwise::{DepthwiseOp, RowPlace};
use diptych_kernels::ops::gemm::GemmOp;
use diptych_kernels::ops::pointwise::PointwiseOp;
use diptych_kernels::ops::pool::PoolOp;
use diptych_kernels::ops::{BoundKernel, Choice, Op};

use std::collections::BTreeSet;
use std::sync::Arc;

/// How many kernels a case is run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breadth {
    /// The first tile of each variant, in the default work-group.
    Variants,
    /// Every tile of each variant, in the default work-group.
    Tiles,
    /// The first tile of each variant, in several work-groups.
    Groups,
}

/// A row of the table.
pub(crate) struct Case {
    /// Its place in the table.
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) problem: Problem,
    pub(crate) breadth: Breadth,
}

/// Operations that an invocation makes at least.
const OPERATIONS: u64 = 32;

/// Work-groups of kernels that are made for none, the default first.
pub(crate) const GROUPS: [[u32; 3]; 4] = [[8, 4, 1], [1, 1, 1], [3, 5, 2], [8, 4, 8]];

impl Case {
    /// The kernels to try, some of which may not fit the device.
    pub(crate) fn choices(&self, limits: &Limits) -> Vec<Choice> {
        let mut seen = Vec::new();
        let mut choices = Vec::new();
        let kernels = self.problem.kernels();
        for (index, (kernel, tile)) in kernels.space(limits).into_iter().enumerate() {
            let variant = kernel.name();
            let first = !seen.contains(&variant);
            seen.push(variant);
            let groups = match self.breadth {
                Breadth::Tiles => &GROUPS[..1],
                Breadth::Variants if first => &GROUPS[..1],
                Breadth::Groups if first => &GROUPS[..],
                _ => &[],
            };
            let made_for = made_for(kernel, tile, limits);
            // Many tiles with long texts: each case meets the first and every third, the next case the
            // thirds beside them. Few cases are offered the deepest tiles.
            let thinned = variant == "tiled" && !first && tile[2] < 8;
            if thinned && !(index + self.number).is_multiple_of(3) {
                continue;
            }
            if made_for.is_empty() {
                choices.extend(groups.iter().map(|&work_group| kernel.choice(tile, work_group)));
            } else {
                choices.extend(made_for.into_iter().take(groups.len()));
            }
        }
        // Where matrix units may round, only the kernels that do: the others are those of f32.
        let (op, precision) = (&*self.problem, self.problem.precision());
        let another =
            |choice: &Choice| op.plan(choice, limits).is_ok_and(|launch| launch.spec.precision != precision);
        choices.retain(|choice| !another(choice));
        // The same kernels with their values in other layouts, where they can have them: images with OpenCL.
        let others = choices.iter().flat_map(|choice| {
            let kernel = kernels.iter().find(|kernel| kernel.name() == choice.variant);
            let layouts = kernel.map_or(&[][..], |kernel| kernel.entry().layouts).iter();
            let others = layouts.filter(|&&layout| layout != choice.layout);
            others.map(|&layout| choice.with_layout(layout)).collect::<Vec<_>>()
        });
        let there = |choice: &Choice| choice.layout != Layout::Image2d || limits.dialect == Dialect::OpenClC;
        let others: Vec<Choice> = others.filter(there).collect();
        choices.extend(others);
        choices
    }

    /// The most operations of one of its kernels. One that reduces few elements has many invocations with nothing
    /// to do.
    fn work(&self, limits: &Limits) -> u64 {
        let invocations = self.choices(limits).into_iter().filter_map(|choice| {
            let launch = self.problem.plan(&choice, limits).ok()?;
            let sizes = launch.groups().into_iter().chain(choice.work_group);
            Some(sizes.map(u64::from).product::<u64>())
        });
        self.problem.flops().max(OPERATIONS * invocations.max().unwrap_or(0))
    }

    /// The kernels that it is run with: op, variant, layout of the feature maps, precision.
    pub(crate) fn kernels(&self, limits: &Limits) -> Vec<String> {
        let (op, precision) = (&*self.problem, self.problem.precision());
        let fitting = self.choices(limits).into_iter().filter(|choice| op.fits(choice, limits).is_ok());
        fitting
            .map(|choice| format!("{}_{} {} {precision}", op.name(), choice.variant, choice.layout))
            .collect()
    }
}

/// The choices with the work-groups that a kernel is made for and that fit the device.
fn made_for(kernel: &dyn BoundKernel, tile: [u32; 3], limits: &Limits) -> Vec<Choice> {
    let choices = kernel.work_groups(tile).into_iter();
    let choices = choices.map(|work_group| kernel.choice(tile, work_group));
    choices.filter(|choice| kernel.fits(choice, limits).is_ok()).collect()
}

/// The choice with the first work-group that the kernel is made for, or with this one where it is made for none.
pub(crate) fn choice(
    op: &dyn Op,
    variant: &'static str,
    tile: [u32; 3],
    work_group: [u32; 3],
    limits: &Limits,
) -> Choice {
    let kernel = op.kernel(variant).expect("a kernel of the op");
    made_for(&*kernel, tile, limits).first().copied().unwrap_or_else(|| kernel.choice(tile, work_group))
}

/// A fifth of the table, without rows that take an interpreter long, and for each kernel, layout and precision that
/// there is the row of least work.
pub(crate) fn small_table() -> Vec<Case> {
    /// The work of a row for an interpreter of kernels, which runs it with every tile.
    const MOST_WORK: u64 = 2 << 20;
    let limits = widest();
    let table = full_table();
    let work: Vec<u64> = table.iter().map(|case| case.work(&limits)).collect();
    let mut by_work: Vec<usize> = (0..table.len()).collect();
    by_work.sort_by_key(|&index| work[index]);
    let mut met = BTreeSet::new();
    let mut wanted = vec![false; table.len()];
    for index in by_work {
        let before = met.len();
        met.extend(table[index].kernels(&limits));
        wanted[index] = index.is_multiple_of(5) && work[index] <= MOST_WORK || met.len() > before;
    }
    table.into_iter().zip(wanted).filter_map(|(case, wanted)| wanted.then_some(case)).collect()
}

/// An OpenCL device that runs every kernel of that language.
pub(crate) fn widest() -> Limits {
    let mut limits = Limits::opencl();
    limits.native_half = true;
    limits.local_memory = 49152;
    limits.matrix_unit = Some(MatrixUnit::Ptx { capability: 90, warp_groups: true });
    limits
}

/// The op that `DIPTYCH_CONFORMANCE` names, alone or with the beginning of a variant.
fn asked_op() -> Option<&'static str> {
    let asked = crate::asked();
    let begins =
        |name: &&str| asked.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
    diptych_kernels::ops::all().iter().map(|entry| entry.name).find(begins)
}

/// Whether `variant` of `op` is among what `DIPTYCH_CONFORMANCE` asks for by its beginning.
pub(crate) fn is_asked_for(op: &str, variant: &str) -> bool {
    if asked_op().is_some_and(|asked| asked != op) {
        return false;
    }
    let asked = crate::asked();
    let rest = asked.strip_prefix(op).and_then(|rest| rest.strip_prefix('_'));
    rest.is_none_or(|wanted| variant.starts_with(wanted))
}

/// A WebGPU device that runs every kernel of that language.
pub(crate) fn widest_wgsl() -> Limits {
    let mut limits = Limits::webgpu();
    limits.native_half = true;
    limits.local_memory = 49152;
    limits.subgroup = Some([32, 32]);
    limits.matrix_unit = Some(MatrixUnit::Cooperative { subgroup: 32 });
    limits
}

/// Whether every kernel of each row is wanted, and not only those of few texts.
pub(crate) fn wants_every_kernel() -> bool {
    !matches!(crate::asked().as_str(), "" | "small")
}

/// Whether both APIs are tested, so that one may show what the other does not.
pub(crate) fn in_turns() -> bool {
    matches!(std::env::var("DIPTYCH_CONFORMANCE").as_deref(), Err(_) | Ok(""))
}

/// The table, or the part of it that `DIPTYCH_CONFORMANCE` asks for: `small`, an op, or variants.
pub(crate) fn table() -> Vec<Case> {
    let full = full_table();
    let asked = crate::asked();
    if asked == "small" {
        return small_table();
    }
    if let Some(op) = asked_op() {
        return full.into_iter().filter(|case| case.problem.name() == op).collect();
    }
    full
}

/// Every case.
pub(crate) fn full_table() -> Vec<Case> {
    let mut table = Table(Vec::new());
    table.conv2d();
    table.depthwise();
    table.depthwise_in_rows();
    table.pointwise();
    table.pool();
    table.gemm();
    table.convert();
    table.copy();
    for (name, problem, breadth) in crate::elementwise::rows() {
        table.push(name, problem, breadth);
    }
    table.resize();
    table.reduce();
    for (name, problem, breadth) in crate::attention::rows() {
        table.push(name, problem, breadth);
    }
    for (name, problem, breadth) in crate::packed::rows() {
        table.push(name, problem, breadth);
    }
    for (name, problem, breadth) in crate::loops::rows() {
        table.push(name, problem, breadth);
    }
    for (name, problem, breadth) in crate::moves::rows() {
        table.push(name, problem, breadth);
    }
    for (name, problem, breadth) in crate::gates::rows() {
        table.push(name, problem, breadth);
    }
    for (name, problem, breadth) in crate::squeezes::rows().into_iter().chain(crate::mlps::rows()) {
        table.push(name, problem, breadth);
    }
    for (name, problem, breadth) in crate::composed::rows() {
        table.push(name, problem, breadth);
    }
    for (name, problem, breadth) in crate::quantized::rows().into_iter().chain(crate::dynamic::rows()) {
        table.push(name, problem, breadth);
    }
    table.softmax();
    table.arg();
    table.transposed_conv2d();
    table.normalize();
    table.0
}

pub(crate) const ACTIVATIONS: [Activation; 12] = [
    Activation::None,
    Activation::Relu,
    Activation::Relu6,
    Activation::LeakyRelu(Bits(0.125)),
    Activation::PRelu,
    Activation::Sigmoid,
    Activation::Tanh,
    Activation::HardSwish,
    Activation::HardSigmoid,
    Activation::Silu,
    Activation::Gelu,
    Activation::GeluTanh,
];

/// Extents around the tiles: each tile of 1, 2, 4 and 8 is met, missed by one and exceeded by one.
pub(crate) const EXTENTS: [[usize; 3]; 14] = [
    [1, 1, 1],
    [1, 1, 2],
    [1, 3, 1],
    [1, 1, 17],
    [1, 19, 1],
    [1, 2, 3],
    [1, 4, 5],
    [1, 5, 4],
    [1, 7, 8],
    [1, 8, 9],
    [2, 9, 7],
    [3, 11, 13],
    [1, 16, 15],
    [1, 23, 17],
];

/// Pairs of input and output channels.
pub(crate) const CHANNELS: [[usize; 2]; 16] = [
    [1, 1],
    [1, 5],
    [2, 3],
    [3, 8],
    [4, 4],
    [5, 1],
    [7, 9],
    [8, 16],
    [13, 17],
    [16, 15],
    [31, 33],
    [64, 24],
    [127, 6],
    [6, 131],
    [1030, 3],
    [3, 1030],
];

pub(crate) struct Table(Vec<Case>);

impl Table {
    pub(crate) fn push(&mut self, name: String, problem: Problem, breadth: Breadth) {
        let number = self.0.len();
        self.0.push(Case { number, name: format!("{} {name}", problem.name()), problem, breadth });
    }

    fn conv2d_row(
        &mut self,
        input: [usize; 4],
        weights: [usize; 3],
        options: Conv2d,
        residual: impl Into<Residual>,
        precision: Precision,
        breadth: Breadth,
    ) {
        let residual = residual.into();
        let [n, h, w, c] = input;
        let [oc, kh, kw] = weights;
        let weights = Shape::nhwc(oc, kh, kw, c / options.groups);
        let op = Conv2dOp::new(Shape::nhwc(n, h, w, c), weights, &options, true, residual, precision)
            .expect("a valid row");
        let Conv2d { stride: [sh, sw], dilation: [dh, dw], padding, border, groups, activation } = options;
        let name = format!(
            "{n}x{h}x{w}x{c} to {oc} k{kh}x{kw} s{sh}x{sw} d{dh}x{dw} {padding:?} {border:?} g{groups} {activation:?} \
             add={residual:?} {precision}"
        );
        self.push(name, Arc::new(op), breadth);
    }

    fn conv2d(&mut self) {
        use Breadth::{Groups, Tiles, Variants};
        const F32: Precision = Precision::F32;
        let same = Conv2d { padding: Padding::Same, ..Default::default() };
        for [n, h, w] in EXTENTS {
            self.conv2d_row([n, h, w, 5], [7, 3, 3], same, false, F32, Tiles);
        }
        for [c, oc] in CHANNELS {
            let (h, w) = if c * oc > 1000 { (2, 3) } else { (5, 7) };
            // Sums are split where there are many terms.
            let breadth = if c >= 64 { Tiles } else { Variants };
            self.conv2d_row([1, h, w, c], [oc, 3, 3], same, false, F32, breadth);
        }
        // Windows: each is a text of its own.
        let explicit = Padding::Explicit { top: 2, bottom: 0, left: 1, right: 3 };
        let windows = [
            ([3, 3], [2, 2], [1, 1], Padding::Same),
            ([1, 1], [3, 2], [1, 1], Padding::Valid),
            ([2, 3], [1, 3], [1, 1], Padding::Valid),
            ([1, 1], [1, 1], [1, 1], explicit),
            ([3, 3], [1, 1], [2, 3], Padding::Same),
            ([5, 4], [2, 1], [1, 1], explicit),
            ([2, 2], [4, 5], [2, 1], explicit),
            ([7, 1], [1, 2], [1, 1], Padding::Same),
        ];
        for (kernel, stride, dilation, padding) in windows {
            for input in [[1, 9, 11, 3], [2, 7, 8, 6], [1, 14, 17, 9]] {
                let options = Conv2d { stride, dilation, padding, ..Default::default() };
                let breadth = if input[3] == 3 { Tiles } else { Variants };
                self.conv2d_row(input, [10, kernel[0], kernel[1]], options, false, F32, breadth);
            }
        }
        // Long rows of a window: of few columns and of as many as registers hold, one pixel and several.
        for (input, [kh, kw], stride, dilation) in [
            ([1, 9, 23, 6], [9, 9], [1, 1], [1, 1]),
            ([2, 7, 17, 9], [3, 5], [2, 2], [1, 1]),
            ([1, 5, 6, 12], [2, 4], [1, 3], [2, 2]),
            ([1, 12, 13, 3], [5, 7], [1, 1], [1, 1]),
        ] {
            let options = Conv2d { stride, dilation, ..same };
            self.conv2d_row(input, [3, kh, kw], options, true, F32, Tiles);
            let options = Conv2d { border: Border::Symmetric, ..options };
            self.conv2d_row(input, [7, kh, kw], options, false, Precision::F16Storage, Tiles);
        }
        // Mirror images as large as they may be, on one side, and where tiles hang over.
        for border in [Border::Reflect, Border::Symmetric, Border::Edge] {
            let wide = Conv2d {
                padding: Padding::Explicit { top: 4, bottom: 3, left: 2, right: 4 },
                border,
                ..same
            };
            for input in [[1, 5, 5, 3], [2, 6, 7, 9], [1, 11, 13, 20]] {
                self.conv2d_row(input, [10, 3, 3], wide, true, F32, Tiles);
                self.conv2d_row(input, [6, 5, 4], Conv2d { stride: [2, 3], ..wide }, false, F32, Variants);
            }
            let dilated = Conv2d { dilation: [2, 1], padding: Padding::Same, ..wide };
            self.conv2d_row([1, 6, 9, 6], [7, 3, 2], dilated, false, F32, Variants);
            for (groups, c, oc) in [(2, 6, 10), (2, 8, 16)] {
                self.conv2d_row([2, 5, 6, c], [oc, 3, 3], Conv2d { groups, ..wide }, false, F32, Tiles);
            }
            self.conv2d_row([1, 5, 6, 8], [9, 3, 3], wide, true, Precision::F16Storage, Tiles);
        }
        for (groups, c, oc) in [
            (2, 6, 10),
            (3, 9, 3),
            (4, 8, 8),
            (5, 5, 15),
            (7, 7, 7),
            (2, 34, 26),
            (2, 8, 12),
            (3, 9, 24),
            (2, 16, 16),
            (3, 12, 12),
        ] {
            let options = Conv2d { groups, ..same };
            self.conv2d_row([1, 5, 6, c], [oc, 3, 3], options, false, F32, Tiles);
        }
        for activation in ACTIVATIONS {
            let options = Conv2d { activation, ..same };
            self.conv2d_row([1, 5, 5, 3], [6, 3, 3], options, true, F32, Variants);
        }
        self.conv2d_row([2, 7, 9, 5], [13, 3, 3], same, true, F32, Groups);
        let relu = Conv2d { activation: Activation::Relu, ..same };
        for precision in [F32, Precision::F16Storage] {
            self.conv2d_row([1, 5, 6, 6], [7, 3, 3], relu, Residual::BeforeActivation, precision, Variants);
        }
        // Tiles of 2x2 and 4x4 outputs that hang over, borders on each side alone, many work-groups.
        for (input, oc, padding) in [
            ([2, 13, 10, 6], 9, Padding::Valid),
            ([1, 3, 3, 9], 6, Padding::Valid),
            ([1, 6, 11, 8], 20, Padding::Explicit { top: 2, bottom: 0, left: 0, right: 3 }),
            ([3, 10, 23, 19], 35, Padding::Same),
        ] {
            let options = Conv2d { padding, activation: Activation::Relu6, ..Default::default() };
            self.conv2d_row(input, [oc, 3, 3], options, true, F32, Tiles);
            self.conv2d_row(input, [oc, 3, 3], options, false, Precision::F16Storage, Groups);
        }
        for (input, oc, stride) in [([2, 11, 9, 70], 90, [1, 1]), ([1, 12, 17, 32], 72, [2, 3])] {
            // Terms and results enough for the matrix kernels' layers and tiles.
            let options =
                Conv2d { stride, padding: Padding::Same, activation: Activation::Relu, ..Default::default() };
            self.conv2d_row(input, [oc, 3, 3], options, true, Precision::F16Storage, Tiles);
        }
        let halves = [Precision::F16Storage, Precision::F16];
        for precision in halves {
            let grouped = Conv2d { groups: 2, stride: [2, 1], ..same };
            for (c, oc) in [(6, 10), (8, 6), (10, 8)] {
                self.conv2d_row([2, 7, 6, c], [oc, 3, 3], grouped, true, precision, Tiles);
            }
            self.conv2d_row([1, 7, 6, 5], [9, 3, 3], same, true, precision, Tiles);
            self.conv2d_row([1, 7, 6, 3], [9, 3, 3], same, true, precision, Tiles);
        }
    }

    fn depthwise_row(
        &mut self,
        input: [usize; 4],
        weights: [usize; 3],
        options: Depthwise,
        residual: impl Into<Residual>,
        precision: Precision,
        breadth: Breadth,
    ) {
        let residual = residual.into();
        let [n, h, w, c] = input;
        let [multiplier, kh, kw] = weights;
        let weights = Shape::nhwc(1, kh, kw, c * multiplier);
        let op = DepthwiseOp::new(Shape::nhwc(n, h, w, c), weights, &options, true, residual, precision)
            .expect("a valid row");
        let Depthwise { stride: [sh, sw], dilation: [dh, dw], padding, activation } = options;
        let name = format!(
            "{n}x{h}x{w}x{c} times {multiplier} k{kh}x{kw} s{sh}x{sw} d{dh}x{dw} {padding:?} {activation:?} \
             add={residual:?} {precision}"
        );
        self.push(name, Arc::new(op), breadth);
    }

    fn depthwise(&mut self) {
        use Breadth::{Groups, Tiles, Variants};
        const F32: Precision = Precision::F32;
        let same = Depthwise { padding: Padding::Same, ..Default::default() };
        for [n, h, w] in EXTENTS {
            self.depthwise_row([n, h, w, 6], [1, 3, 3], same, false, F32, Tiles);
        }
        for c in [1, 2, 3, 4, 5, 8, 31, 33, 127, 1030] {
            self.depthwise_row([1, 5, 4, c], [1, 3, 3], same, false, F32, Variants);
        }
        let explicit = Padding::Explicit { top: 1, bottom: 2, left: 3, right: 0 };
        let windows = [
            ([3, 3], [2, 2], [1, 1], Padding::Same),
            ([5, 5], [1, 1], [1, 1], Padding::Same),
            ([1, 2], [3, 3], [1, 1], Padding::Valid),
            ([3, 2], [1, 2], [2, 3], explicit),
            ([4, 5], [2, 1], [1, 1], explicit),
        ];
        for (kernel, stride, dilation, padding) in windows {
            for input in [[1, 9, 11, 3], [2, 8, 13, 6], [1, 17, 12, 9]] {
                let options = Depthwise { stride, dilation, padding, ..Default::default() };
                let breadth = if input[3] == 3 { Tiles } else { Variants };
                self.depthwise_row(input, [1, kernel[0], kernel[1]], options, false, F32, breadth);
            }
        }
        for (c, multiplier) in [(1, 2), (3, 2), (1, 9), (5, 3), (4, 4), (2, 67)] {
            let options = Depthwise { stride: [2, 1], ..same };
            self.depthwise_row([1, 7, 5, c], [multiplier, 3, 3], options, false, F32, Tiles);
        }
        for activation in ACTIVATIONS {
            let options = Depthwise { activation, ..same };
            self.depthwise_row([1, 5, 5, 5], [1, 3, 3], options, true, F32, Variants);
        }
        self.depthwise_row([2, 7, 9, 10], [1, 3, 3], same, true, F32, Groups);
        let prelu = Depthwise { activation: Activation::PRelu, ..same };
        for precision in [F32, Precision::F16Storage] {
            self.depthwise_row(
                [1, 5, 6, 6],
                [1, 3, 3],
                prelu,
                Residual::BeforeActivation,
                precision,
                Variants,
            );
        }
        // Several work-groups of each size along both axes.
        let steps = Depthwise { stride: [2, 1], dilation: [1, 2], ..same };
        self.depthwise_row([2, 37, 41, 6], [1, 3, 3], steps, false, F32, Groups);
        for precision in [Precision::F16Storage, Precision::F16] {
            self.depthwise_row([1, 7, 6, 5], [1, 3, 3], same, true, precision, Tiles);
            self.depthwise_row([1, 7, 6, 5], [2, 3, 3], same, true, precision, Tiles);
        }
    }

    /// Maps that are some channels of rows.
    fn depthwise_in_rows(&mut self) {
        let same = Depthwise { padding: Padding::Same, ..Default::default() };
        let steps = Depthwise { stride: [2, 1], dilation: [1, 2], ..same };
        let wide = Depthwise { activation: Activation::Gelu, ..same };
        for (input, kernel, options, residual, precision) in [
            (Shape::nhwc(1, 9, 11, 8), [3, 3], same, true, Precision::F32),
            (Shape::nhwc(2, 7, 9, 12), [5, 5], wide, false, Precision::F32),
            (Shape::nhwc(2, 37, 41, 4), [3, 3], steps, false, Precision::F32),
            (Shape::nhwc(1, 5, 6, 132), [1, 7], same, true, Precision::F32),
            (Shape::nhwc(2, 7, 6, 8), [3, 3], same, true, Precision::F16Storage),
            (Shape::nhwc(2, 7, 6, 8), [3, 3], steps, false, Precision::F16),
        ] {
            let weights = Shape::nhwc(1, kernel[0], kernel[1], input.c);
            let op = DepthwiseOp::new(input, weights, &options, true, residual, precision);
            let op = op.expect("a valid row");
            let pixels = input.h * input.w;
            for (first, pixel) in [(0, input.c), (8, input.c + 20)] {
                let image = pixel * pixels + 4;
                let place = RowPlace { elements: image * input.n + 16, first, image, pixel };
                let op = op.in_rows(place).expect("a valid place");
                self.push(op.problem_key() + &format!(" {precision}"), Arc::new(op), Breadth::Tiles);
            }
        }
    }

    fn pointwise_row(
        &mut self,
        input: [usize; 4],
        oc: usize,
        activation: Activation,
        residual: impl Into<Residual>,
        precision: Precision,
        breadth: Breadth,
    ) {
        let residual = residual.into();
        let [n, h, w, c] = input;
        let options = Pointwise { activation };
        let weights = Shape::nhwc(oc, 1, 1, c);
        let op = PointwiseOp::new(Shape::nhwc(n, h, w, c), weights, &options, true, residual, precision)
            .expect("a valid row");
        let name = format!("{n}x{h}x{w}x{c} to {oc} {activation:?} add={residual:?} {precision}");
        self.push(name, Arc::new(op), breadth);
    }

    fn pointwise(&mut self) {
        use Breadth::{Groups, Tiles, Variants};
        const F32: Precision = Precision::F32;
        for [n, h, w] in EXTENTS {
            self.pointwise_row([n, h, w, 6], 13, Activation::None, false, F32, Tiles);
        }
        for [c, oc] in CHANNELS {
            self.pointwise_row([1, 3, 5, c], oc, Activation::None, false, F32, Tiles);
        }
        for activation in ACTIVATIONS {
            self.pointwise_row([1, 3, 7, 9], 10, activation, true, F32, Variants);
        }
        self.pointwise_row([2, 7, 9, 10], 21, Activation::None, true, F32, Groups);
        for activation in [Activation::Relu6, Activation::Sigmoid] {
            self.pointwise_row([1, 5, 6, 9], 10, activation, Residual::BeforeActivation, F32, Variants);
        }
        let halves = Precision::F16Storage;
        self.pointwise_row([1, 5, 6, 9], 10, Activation::Relu6, Residual::BeforeActivation, halves, Variants);
        for precision in [Precision::F16Storage, Precision::F16] {
            self.pointwise_row([1, 7, 6, 5], 11, Activation::None, true, precision, Tiles);
        }
        // Fewer pixels, channels and steps than the largest tiles of the matrix kernels have at once, and more.
        self.pointwise_row([3, 1, 1, 17], 8, Activation::Sigmoid, false, halves, Variants);
        self.pointwise_row([1, 16, 3, 37], 41, Activation::PRelu, false, halves, Variants);
        self.pointwise_row([1, 9, 9, 256], 64, Activation::None, false, halves, Groups);
        self.pointwise_row([2, 13, 11, 300], 150, Activation::Relu6, true, halves, Tiles);
    }

    fn pool_row(&mut self, [n, h, w, c]: [usize; 4], options: Pool, precision: Precision, breadth: Breadth) {
        let op = PoolOp::new(Shape::nhwc(n, h, w, c), &options, precision).expect("a valid row");
        let Pool { pooling, window: [kh, kw], stride: [sh, sw], padding, activation } = options;
        let name = format!(
            "{n}x{h}x{w}x{c} {pooling:?} k{kh}x{kw} s{sh}x{sw} {padding:?} {activation:?} {precision}"
        );
        self.push(name, Arc::new(op), breadth);
    }

    fn pool(&mut self) {
        use Breadth::{Groups, Tiles, Variants};
        const F32: Precision = Precision::F32;
        for pooling in [Pooling::Max, Pooling::Average] {
            let same = Pool { stride: [2, 1], padding: Padding::Same, ..Pool::new(pooling, [3, 2]) };
            for [n, h, w] in EXTENTS {
                self.pool_row([n, h, w, 6], same, F32, Tiles);
            }
            for c in [1, 3, 4, 33, 1030] {
                self.pool_row([1, 5, 4, c], same, F32, Variants);
            }
            let explicit = Padding::Explicit { top: 1, bottom: 2, left: 3, right: 0 };
            for (window, stride, padding) in [
                ([1, 1], [3, 2], Padding::Valid),
                ([7, 5], [7, 5], Padding::Valid),
                ([4, 5], [2, 1], explicit),
                ([7, 7], [1, 1], Padding::Same),
            ] {
                self.pool_row(
                    [2, 11, 13, 5],
                    Pool { stride, padding, ..Pool::new(pooling, window) },
                    F32,
                    Tiles,
                );
            }
            for activation in ACTIVATIONS.into_iter().filter(|activation| *activation != Activation::PRelu) {
                self.pool_row([1, 5, 5, 5], Pool { activation, ..same }, F32, Variants);
            }
            self.pool_row([2, 7, 9, 10], same, F32, Groups);
            for precision in [Precision::F16Storage, Precision::F16] {
                self.pool_row([1, 7, 6, 5], same, precision, Tiles);
            }
        }
    }

    fn gemm_row(
        &mut self,
        extents: [usize; 4],
        options: Gemm,
        shared_b: bool,
        extras: bool,
        precision: Precision,
        breadth: Breadth,
    ) {
        let [batch, m, n, k] = extents;
        let op = GemmOp::new(m, n, k, batch, &options, extras, extras, precision).expect("a valid row");
        let op = if shared_b { op.with_shared_b() } else { op };
        let Gemm { alpha, beta, transpose_a, transpose_b, lda, ldb, ldc, activation } = options;
        let name = format!(
            "{batch} of {m}x{n}x{k} alpha {} beta {} ta={transpose_a} tb={transpose_b} ld {lda:?} {ldb:?} \
             {ldc:?} shared={shared_b} {activation:?} extras={extras} {precision}",
            alpha.0, beta.0
        );
        self.push(name, Arc::new(op), breadth);
    }

    fn gemm(&mut self) {
        use Breadth::{Groups, Tiles, Variants};
        const F32: Precision = Precision::F32;
        let plain = Gemm::default();
        let odd = [
            [1, 1, 1, 1],
            [1, 1, 1, 7],
            [1, 1, 5, 3],
            [1, 5, 1, 2],
            [1, 2, 3, 1],
            [1, 7, 9, 5],
            [1, 8, 8, 8],
            [1, 9, 4, 4],
            [1, 8, 7, 9],
            [1, 16, 12, 4],
            [1, 17, 19, 23],
            [1, 31, 33, 13],
            [1, 3, 3, 1030],
            [1, 1030, 3, 2],
            [1, 2, 1030, 3],
            [1, 1, 63, 288],
            [2, 12, 1, 130],
            [1, 64, 64, 32],
            [1, 67, 132, 40],
            [2, 130, 68, 100],
            [2, 5, 7, 3],
            [3, 4, 8, 12],
            [2, 49, 50, 37],
            [1, 67, 131, 270],
            [1, 36, 40, 520],
            [1, 20, 36, 576],
        ];
        for extents in odd {
            self.gemm_row(extents, plain, false, false, F32, Tiles);
        }
        for (transpose_a, transpose_b) in [(false, true), (true, false), (true, true)] {
            for extents in [[1, 7, 9, 5], [2, 13, 6, 11], [1, 8, 16, 4], [2, 3, 10, 300]] {
                let options = Gemm { transpose_a, transpose_b, ..plain };
                self.gemm_row(extents, options, false, false, F32, Tiles);
                let (row_a, row_b) = (extents[1].max(extents[3]), extents[2].max(extents[3]));
                let options =
                    Gemm { lda: Some(row_a + 3), ldb: Some(row_b + 1), ldc: Some(extents[2] + 5), ..options };
                self.gemm_row(extents, options, false, false, F32, Variants);
            }
            let options = Gemm { transpose_a, transpose_b, ..plain };
            self.gemm_row([2, 33, 38, 70], options, false, true, F32, Tiles);
        }
        let wide = Gemm { lda: Some(12), ldb: Some(20), ldc: Some(24), ..plain };
        let factors = Gemm { alpha: Bits(-0.5), beta: Bits(1.5), ..plain };
        for extents in [[1, 9, 16, 8], [2, 5, 16, 12], [3, 7, 13, 11]] {
            self.gemm_row(extents, wide, false, false, F32, Tiles);
            self.gemm_row(extents, factors, false, false, F32, Tiles);
            self.gemm_row(extents, Gemm { beta: Bits(2.0), ..wide }, false, true, F32, Variants);
            self.gemm_row(extents, plain, true, false, F32, Variants);
            self.gemm_row(extents, Gemm { alpha: Bits(3.0), ..wide }, true, true, F32, Variants);
        }
        for activation in ACTIVATIONS {
            self.gemm_row([1, 5, 12, 8], Gemm { activation, ..plain }, false, true, F32, Variants);
            self.gemm_row([1, 8, 16, 8], Gemm { activation, ..plain }, false, true, F32, Variants);
            self.gemm_row([1, 17, 19, 9], Gemm { activation, ..plain }, false, true, F32, Variants);
        }
        self.gemm_row([2, 19, 24, 12], factors, false, true, F32, Groups);
        self.gemm_row([2, 11, 13, 7], plain, false, true, F32, Groups);
        for extents in [[1, 40, 48, 40], [2, 130, 136, 104], [1, 17, 8, 16]] {
            self.gemm_row(extents, plain, false, false, Precision::F16Storage, Tiles);
            self.gemm_row(extents, factors, false, true, Precision::F16Storage, Variants);
        }
        // More rows, columns and steps than the largest tiles of the matrix kernels have at once.
        self.gemm_row([1, 140, 264, 320], plain, false, false, Precision::F16Storage, Tiles);
        // Terms enough for four layers of a work-group, and no whole steps of them.
        self.gemm_row([1, 35, 36, 532], plain, false, false, Precision::F16Storage, Tiles);
        self.gemm_row([1, 270, 140, 160], plain, false, false, Precision::Tf32, Tiles);
        for precision in [Precision::Tf32, Precision::SplitF16] {
            for extents in [[1, 40, 48, 40], [2, 130, 136, 104], [1, 17, 8, 16], [3, 7, 12, 4]] {
                self.gemm_row(extents, plain, false, false, precision, Tiles);
                self.gemm_row(extents, factors, false, true, precision, Variants);
            }
            self.gemm_row([2, 9, 16, 8], wide, true, false, precision, Groups);
            self.gemm_row([1, 260, 268, 1028], plain, false, true, precision, Variants);
        }
        for precision in [Precision::F16Storage, Precision::F16] {
            self.gemm_row([2, 9, 12, 8], plain, false, true, precision, Tiles);
            self.gemm_row([1, 9, 7, 5], plain, false, true, precision, Tiles);
            self.gemm_row([1, 9, 8, 4], factors, false, false, precision, Variants);
        }
    }

    fn convert(&mut self) {
        let directions = [
            (Layout::Nhwc, Layout::C4),
            (Layout::Nchw, Layout::C4),
            (Layout::C4, Layout::Nhwc),
            (Layout::C4, Layout::Nchw),
            (Layout::Nhwc, Layout::Image2d),
            (Layout::Nchw, Layout::Image2d),
            (Layout::Image2d, Layout::Nhwc),
            (Layout::Image2d, Layout::Nchw),
            (Layout::C4, Layout::Image2d),
            (Layout::Image2d, Layout::C4),
        ];
        let shapes = [
            [1, 1, 1, 1],
            [1, 1, 2, 3],
            [2, 3, 5, 7],
            [1, 8, 4, 4],
            [3, 13, 11, 5],
            [1, 2, 3, 1030],
            [1, 9, 1, 8],
        ];
        for (from, to) in directions {
            for [n, h, w, c] in shapes {
                let shape = Shape::nhwc(n, h, w, c);
                let breadth = if c == 7 { Breadth::Groups } else { Breadth::Variants };
                let op = ConvertOp::new(shape, from, to, Precision::F32).expect("a valid row");
                self.push(format!("{shape} {from} to {to}"), Arc::new(op), breadth);
            }
            for precision in [Precision::F16Storage, Precision::F16] {
                let shape = Shape::nhwc(2, 3, 5, 7);
                let op = ConvertOp::new(shape, from, to, precision).expect("a valid row");
                self.push(format!("{shape} {from} to {to} {precision}"), Arc::new(op), Breadth::Variants);
            }
        }
        for (from, to) in [(DType::F32, DType::F16), (DType::F16, DType::F32)] {
            for [n, h, w, c] in shapes {
                let shape = Shape::nhwc(n, h, w, c);
                let breadth = if c == 7 { Breadth::Groups } else { Breadth::Variants };
                let op = ConvertOp::storage(shape, from, to).expect("a valid row");
                self.push(format!("{shape} {from} to {to}"), Arc::new(op), breadth);
            }
        }
        // Rows of halves.
        for (from, to) in directions {
            if from != Layout::Nhwc && to != Layout::Nhwc {
                continue;
            }
            for ([n, h, w, c], precision) in [
                ([2, 3, 5, 7], Precision::F16Storage),
                ([1, 2, 3, 1030], Precision::F16Storage),
                ([1, 9, 1, 8], Precision::F16),
                ([1, 1, 1, 1], Precision::F16Storage),
                ([2, 3, 5, 6], Precision::F32),
            ] {
                let shape = Shape::nhwc(n, h, w, c);
                let op = ConvertOp::new(shape, from, to, precision).expect("a valid row").with_half_rows();
                let name = format!("{shape} {from} to {to} {precision} rows of halves");
                self.push(name, Arc::new(op), Breadth::Variants);
            }
        }
        for (from, to) in [(DType::F32, DType::F16), (DType::F16, DType::F32)] {
            for [n, h, w, c] in shapes {
                let shape = Shape::nhwc(n, h, w, c);
                let breadth = if c == 7 { Breadth::Groups } else { Breadth::Variants };
                let op = ConvertOp::of_rows(shape, from, to).expect("a valid row");
                self.push(format!("{shape} rows {from} to {to}"), Arc::new(op), breadth);
            }
        }
        for (channels, precision) in [
            (&[1, 1][..], Precision::F32),
            (&[17, 34, 32, 32], Precision::F32),
            (&[1, 2, 3, 4, 5, 6, 7, 8], Precision::F32),
            (&[3, 1030], Precision::F16Storage),
            (&[5, 9, 2], Precision::F16),
        ] {
            let shape = Shape::nhwc(2, 3, 5, channels.iter().sum());
            let op = ConvertOp::parts(shape, channels, precision).expect("a valid row");
            self.push(format!("{shape} in {channels:?} {precision}"), Arc::new(op), Breadth::Groups);
        }
    }

    fn copy(&mut self) {
        for [n, h, w, c] in
            [[1, 1, 1, 1], [1, 1, 1, 7], [2, 3, 5, 7], [1, 13, 11, 5], [3, 1, 257, 3], [1, 1, 5, 1030]]
        {
            let source = Shape::nhwc(n, h, w, c);
            let all = source.elements();
            // All, the first, the last, and what begins and ends within.
            for (first, elements) in
                [(0, all), (0, 1), (all - 1, 1), (all / 3, all - all / 3), (all / 5, 1 + all / 2)]
            {
                let target = Shape::nhwc(1, 1, 1, elements);
                let op = CopyOp::new(source, first, target).expect("a valid row");
                let breadth = if elements == all { Breadth::Groups } else { Breadth::Variants };
                let name = format!("{elements} of {source} from {first}, {}", self.0.len());
                self.push(format!("{name} halves"), Arc::new(op.of(DType::F16)), Breadth::Variants);
                self.push(name, Arc::new(op), breadth);
            }
        }
    }
}
