//! Wrong kernels that the harness must refuse: a harness that cannot fail proves nothing.

use crate::gpu;
use crate::moves::lowered;
use crate::problem::{Problem, compare, expected, operands};
use crate::quantized::RANGE;
use diptych::{
    Activation, Bits, Border, Choice, Conv2d, DType, Depthwise, Dims, Gemm, Layout, Operator, Padding,
    Pointwise, Pool, Pooling, Precision, Shape,
    nn::{
        Attention, AxisRange, CumSum, DynamicConv2d, Gather, OneHot, Pad, PadMode, QuantizedConv2d,
        QuantizedDepthwise, QuantizedFunction, QuantizedPooling, Random, RangeRule, StridedSlice, Suppress,
        TopK, Transpose, UpdateSlice,
    },
};
use diptych_device::device::Device;
use diptych_emit::emit::{Dialect, KernelSource, Operand};
use diptych_kernels::ops::concat::ConcatOp;
use diptych_kernels::ops::conv2d::Conv2dOp;
use diptych_kernels::ops::convert::ConvertOp;
use diptych_kernels::ops::depthwise::DepthwiseOp;
use diptych_kernels::ops::gather::GatherOp;
use diptych_kernels::ops::gemm::GemmOp;
use diptych_kernels::ops::pointwise::PointwiseOp;
use diptych_kernels::ops::pool::PoolOp;
use diptych_kernels::ops::random::RandomOp;
use std::sync::Arc;

/// A mistake in a kernel's text as it is written. `@` stands for WGSL's prefix of a parameter.
pub(crate) struct Mistake {
    pub(crate) what: &'static str,
    pub(crate) problem: Problem,
    pub(crate) variant: &'static str,
    pub(crate) tile: [u32; 3],
    /// The layout of the feature maps.
    pub(crate) layout: Layout,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

fn conv2d(options: Conv2d) -> Problem {
    conv2d_of(1, options)
}

fn conv2d_of(batch: usize, options: Conv2d) -> Problem {
    let op = Conv2dOp::new(
        Shape::nhwc(batch, 6, 7, 5),
        Shape::nhwc(9, 3, 3, 5),
        &options,
        true,
        false,
        Precision::F32,
    );
    Arc::new(op.expect("a valid op"))
}

/// The product among the examples whose key has this word.
fn composed(word: &str) -> Problem {
    let entry = diptych_kernels::ops::all().iter().find(|entry| entry.name == "gemm").expect("the op");
    let examples = (entry.examples)(Precision::F32).expect("examples").into_iter();
    let found =
        examples.filter(|op| op.problem_key().contains(word)).find(|op| !op.problem_key().starts_with("m1 "));
    Problem::from(found.expect("such an example"))
}

/// A product with a normalisation behind it.
fn product_rows() -> Problem {
    let entry = diptych_kernels::ops::all().iter().find(|entry| entry.name == "gemm_rows").expect("the op");
    let examples = (entry.examples)(Precision::F32).expect("examples").into_iter().next();
    Problem::from(examples.expect("an example"))
}

fn random() -> Problem {
    let dims = Dims::new(&[37]).expect("small");
    Arc::new(RandomOp::new(Random::uniform(0.0, 1.0), 5, dims).expect("a distribution"))
}

/// A row of seven taps.
fn long(options: Conv2d) -> Problem {
    let (input, weights) = (Shape::nhwc(2, 4, 11, 6), Shape::nhwc(7, 3, 7, 6));
    let op = Conv2dOp::new(input, weights, &options, true, false, Precision::F32);
    Arc::new(op.expect("a valid op"))
}

/// Two groups of three input channels each.
fn grouped(outputs: usize) -> Problem {
    let options = Conv2d { groups: 2, padding: Padding::Same, ..Default::default() };
    let (input, weights) = (Shape::nhwc(1, 5, 6, 6), Shape::nhwc(outputs, 3, 3, 3));
    let op = Conv2dOp::new(input, weights, &options, true, false, Precision::F32);
    Arc::new(op.expect("a valid op"))
}

/// An input of three channels, padded on all sides.
fn stem() -> Problem {
    let options = Conv2d { stride: [2, 1], padding: Padding::Same, ..Default::default() };
    let (input, weights) = (Shape::nhwc(1, 7, 6, 3), Shape::nhwc(9, 3, 3, 3));
    let op = Conv2dOp::new(input, weights, &options, true, false, Precision::F32);
    Arc::new(op.expect("a valid op"))
}

fn depthwise(multiplier: usize, stride: usize) -> Problem {
    let options = Depthwise { stride: [stride, 1], padding: Padding::Same, ..Default::default() };
    let weights = Shape::nhwc(1, 3, 3, 5 * multiplier);
    let op = DepthwiseOp::new(Shape::nhwc(1, 6, 7, 5), weights, &options, true, false, Precision::F32);
    Arc::new(op.expect("a valid op"))
}

fn pointwise(activation: Activation) -> Problem {
    pointwise_of(18, activation)
}

fn pointwise_of(inputs: usize, activation: Activation) -> Problem {
    let options = Pointwise { activation };
    let op = PointwiseOp::new(
        Shape::nhwc(1, 3, 7, inputs),
        Shape::nhwc(13, 1, 1, inputs),
        &options,
        true,
        false,
        Precision::F32,
    );
    Arc::new(op.expect("a valid op"))
}

fn pool(pooling: Pooling) -> Problem {
    let options = Pool { stride: [2, 1], padding: Padding::Same, ..Pool::new(pooling, [3, 3]) };
    let op = PoolOp::new(Shape::nhwc(2, 6, 7, 5), &options, Precision::F32);
    Arc::new(op.expect("a valid op"))
}

fn moved(operator: &dyn Operator, extents: &[usize]) -> Problem {
    lowered(operator, &[(Operand::Src, extents)], Precision::F32)
}

fn concat(extents: &[[usize; 4]]) -> Problem {
    let dims: Vec<Dims> = extents.iter().map(|extents| Dims::new(extents).expect("small")).collect();
    Arc::new(ConcatOp::new(&dims, 3, Precision::F32).expect("a valid op"))
}

fn gather() -> Problem {
    let [source, indices] = [&[2, 3, 5][..], &[2, 17]].map(|extents| Dims::new(extents).expect("small"));
    Arc::new(GatherOp::new(source, indices, Gather { axis: 1, batch_dims: 1 }).expect("a valid op"))
}

fn bytes() -> Problem {
    let options = QuantizedConv2d { padding: Padding::Same, ..QuantizedConv2d::new(131, RANGE) };
    crate::quantized::convolution(Shape::nhwc(1, 7, 9, 2), [33, 3, 3], options)
}

fn bytes_of_many() -> Problem {
    crate::quantized::convolution(Shape::nhwc(1, 3, 9, 19), [33, 1, 1], QuantizedConv2d::new(131, RANGE))
}

fn bytes_of_channels() -> Problem {
    let options = QuantizedDepthwise { padding: Padding::Same, ..QuantizedDepthwise::new(131, RANGE) };
    crate::quantized::depthwise(Shape::nhwc(1, 7, 9, 3), [3, 3], options)
}

fn bytes_added() -> Problem {
    crate::quantized::binary(QuantizedFunction::Add([Bits(0.7), Bits(0.4)]), &[2, 1, 1, 4])
}

fn bytes_averaged() -> Problem {
    crate::quantized::pool(QuantizedPooling::Mean(128), Padding::Same, [2, 3])
}

fn bytes_of_ranges() -> Problem {
    let options = DynamicConv2d { padding: Padding::Same, ..DynamicConv2d::new() };
    crate::dynamic::convolution(Shape::nhwc(2, 7, 9, 2), [36, 3, 3], 2, options)
}

fn quantized() -> Problem {
    crate::quantized::quantize(&[3, 9, 31], RANGE)
}

fn dequantized() -> Problem {
    crate::quantized::dequantize(&[3, 9, 8], 31)
}

fn update() -> Problem {
    let inputs = [(Operand::Src, &[5, 7, 3][..]), (Operand::Arg(0), &[5, 2, 3]), (Operand::Arg(1), &[5])];
    lowered(&UpdateSlice { axis: 1 }, &inputs, Precision::F32)
}

/// More keys than any work-group takes at a time.
fn attended(options: Attention) -> Problem {
    crate::attention::problem([1, 2, 1, 9, 301, 8, 12], options, &[], Precision::F32)
}

fn suppress() -> Problem {
    let options =
        Suppress { count: 9, overlap: Bits(0.1), score: Bits(-0.5), sigma: Bits(0.0), strict: false };
    let inputs = [(Operand::Arg(0), &[3, 67, 4][..]), (Operand::Arg(1), &[3, 67])];
    lowered(&options, &inputs, Precision::F32)
}

fn gemm([m, n, k]: [usize; 3], options: Gemm) -> Problem {
    Arc::new(GemmOp::new(m, n, k, 1, &options, false, false, Precision::F32).expect("a valid op"))
}

/// A product for a kernel that uses a matrix unit.
fn for_unit([m, n, k]: [usize; 3], precision: Precision) -> Problem {
    let scaled = Gemm { alpha: Bits(-0.5), ..Gemm::default() };
    Arc::new(GemmOp::new(m, n, k, 1, &scaled, false, false, precision).expect("a valid op"))
}

/// Mistakes in kernels for matrix units: each runs where its kernel does.
fn mistakes_on_matrix_units() -> Vec<Mistake> {
    let of = |precision| {
        let op = GemmOp::new(33, 40, 136, 1, &Gemm::default(), false, false, precision);
        let op: Problem = Arc::new(op.expect("a valid op"));
        op
    };
    let halves = || of(Precision::F16Storage);
    let split = || of(Precision::SplitF16);
    #[expect(clippy::type_complexity, reason = "a table row, named by the struct it becomes")]
    let rows: Vec<(&str, Problem, &str, [u32; 3], &str, &str)> = vec![
        ("the last step not multiplied", halves(), "matrix", [2, 2, 1], "done4 <= ", "done4 < "),
        (
            "columns of another matrix",
            halves(),
            "matrix",
            [2, 2, 1],
            "a0_1_0, b0_1_0, sum1_1",
            "a0_1_0, b0_0_0, sum1_1",
        ),
        (
            "the last step not copied",
            halves(),
            "matrix_ptx",
            [4, 2, 1],
            "term < k; term",
            "term + STEP < k; term",
        ),
        (
            "a small product left out",
            split(),
            "matrix",
            [2, 2, 1],
            "coopMultiplyAdd(a0_1_1, b0_1_0, low1_1)",
            "low1_1",
        ),
        ("the small sums left out", split(), "matrix", [2, 2, 1], "low0_1 * (1.0 / 2048.0)", "low0_1 * 0.0"),
        ("a rest of another size", split(), "matrix", [2, 2, 1], "- high) * 2048.0", "- high) * 1024.0"),
        ("the last step not multiplied", split(), "matrix_split_ptx", [4, 2, 1], "done4 <= ", "done4 < "),
        (
            "the rest left out",
            split(),
            "matrix_split_ptx",
            [4, 2, 1],
            "rest = (value - rest)",
            "rest = (value - value)",
        ),
        ("a small sum left out", split(), "matrix_split_ptx", [4, 2, 1], "+ low1_2.xy *", "+ 0.0f *"),
        ("a store of another row", split(), "matrix_split_ptx", [4, 2, 1], "lane / 4u + 8u", "lane / 4u"),
    ];
    let rows = rows.into_iter().map(|(what, problem, variant, tile, from, to)| Mistake {
        what,
        problem,
        variant,
        tile,
        layout: Layout::C4,
        from,
        to,
    });
    rows.collect()
}

/// Mistakes in the convolutions' kernels for matrix units.
fn mistakes_in_matrix_convolutions() -> Vec<Mistake> {
    let halves = Precision::F16Storage;
    let pointwise = || -> Problem {
        let (input, weights) = (Shape::nhwc(1, 7, 6, 72), Shape::nhwc(37, 1, 1, 72));
        Arc::new(
            PointwiseOp::new(input, weights, &Pointwise::default(), true, false, halves).expect("a valid op"),
        )
    };
    let conv2d = || -> Problem {
        let options = Conv2d { padding: Padding::Same, ..Default::default() };
        let (input, weights) = (Shape::nhwc(1, 7, 6, 12), Shape::nhwc(37, 3, 3, 12));
        Arc::new(Conv2dOp::new(input, weights, &options, true, false, halves).expect("a valid op"))
    };
    #[expect(clippy::type_complexity, reason = "a table row, named by the struct it becomes")]
    let rows: Vec<(&str, Problem, &str, [u32; 3], &str, &str)> = vec![
        ("the last step not multiplied", pointwise(), "matrix", [2, 1, 1], "done4 <= ", "done4 < "),
        ("a layer not added", pointwise(), "matrix", [1, 1, 2], "sum + passed", "sum + 0.0 * passed"),
        ("slices of another tap", conv2d(), "matrix", [2, 1, 1], "tap % KERNEL_W", "tap / KERNEL_W"),
        ("a pixel beyond the last", pointwise(), "matrix", [2, 1, 1], "i % 16u;", "(i + 1u) % 16u;"),
        (
            "the last step not multiplied",
            pointwise(),
            "matrix_ptx",
            [4, 1, 1],
            "step < steps; step",
            "step + 1u < steps; step",
        ),
        ("a layer not added", pointwise(), "matrix_ptx", [4, 1, 2], "sum0_1 += ", "sum0_1 += 0.0f * "),
        (
            "pairs of channels exchanged",
            pointwise(),
            "matrix_ptx",
            [4, 1, 1],
            "(taken, sum0_1.zw)",
            "(sum0_1.zw, taken)",
        ),
        ("terms of other slices", pointwise(), "matrix_ptx", [4, 2, 1], "b1.x, b1.y", "b1.y, b1.x"),
        ("slices of another tap", conv2d(), "matrix_ptx", [4, 1, 1], "tap % KERNEL_W", "tap / KERNEL_W"),
    ];
    let rows = rows.into_iter().map(|(what, problem, variant, tile, from, to)| Mistake {
        what,
        problem,
        variant,
        tile,
        layout: Layout::C4,
        from,
        to,
    });
    rows.collect()
}

/// Mistakes in the kernels for matrix units of attention, whose keys end within a work-group's, and of convolutions of bytes.
fn mistakes_in_other_matrices() -> Vec<Mistake> {
    let problem = || {
        crate::attention::problem(
            [1, 2, 1, 33, 131, 40, 24],
            Attention::default(),
            &[],
            Precision::F16Storage,
        )
    };
    let rows = [
        ("a key beyond the last", "matrix", [2, 1, 1], ">= end)", "> end)"),
        ("the last step left out", "matrix", [4, 1, 1], "first < until;", "first + KEYS < until;"),
        ("the largest of half a row", "matrix", [2, 1, 1], "subgroupShuffleXor(new0, 1u)", "new0"),
        ("features that lie beyond", "matrix", [2, 1, 1], "unit < 10u)", "true)"),
        ("a key beyond the last", "matrix_ptx", [2, 1, 1], ">= end ? none", "> end ? none"),
        ("the last step left out", "matrix_ptx", [4, 1, 1], "first < until;", "first + KEYS < until;"),
        (
            "earlier sums as they were",
            "matrix_ptx",
            [2, 2, 1],
            "out1_1 *= (float4)(smaller2,",
            "out1_1 *= (float4)(1.0f,",
        ),
        ("the largest of half a row", "matrix_ptx", [2, 1, 1], "(other, new1, 2)", "(other, new1, 1)"),
        (
            "values of other keys",
            "matrix_ptx",
            [4, 1, 1],
            "VALUE_ROW * (lane % 16u)",
            "VALUE_ROW * (lane % 8u)",
        ),
    ];
    // Their scores exceed earlier ones by far.
    let steep = [
        ("earlier sums as they were", [2, 2, 1], "*= smaller1;", "*= 1.0f;"),
        ("no wave's sums are scaled again", [2, 1, 1], "1.0f, grew && first", "0.0f, grew && first"),
        (
            "a share of no earlier score",
            [4, 1, 1],
            "let smaller0: f32 = exp(most0 - new0);",
            "let smaller0: f32 = 1.0f;",
        ),
    ];
    let steep = steep.map(|(what, tile, from, to)| {
        let (problem, layout) = (crate::attention::steep(Precision::F16Storage), Layout::Nhwc);
        Mistake { what, problem, variant: "matrix", tile, layout, from, to }
    });
    let bytes = [
        ("the last step left out", [4, 1, 1], "step < steps; step", "step + 1u < steps; step"),
        ("words of other lanes", [2, 1, 1], "4u * (lane % 4u)", "2u * (lane % 4u)"),
        ("pairs of channels exchanged", [1, 1, 1], "(taken, sum0_0.zw)", "(sum0_0.zw, taken)"),
        ("a layer not added", [4, 1, 2], "sum0_1 += ", "sum0_1 += 0 * "),
        ("zeros outside", [4, 2, 1], "(outside))", "(0u))"),
    ];
    let bytes = bytes.map(|(what, tile, from, to)| {
        let (problem, layout) = (crate::quantized::padded(), Layout::Nhwc);
        Mistake { what, problem, variant: "matrix_ptx", tile, layout, from, to }
    });
    let mistake = |(what, variant, tile, from, to)| {
        let (problem, layout) = (problem(), Layout::Nhwc);
        Mistake { what, problem, variant, tile, layout, from, to }
    };
    rows.map(mistake).into_iter().chain(steep).chain(bytes).collect()
}

/// Mistakes in the kernel that shuffles: each runs where subgroups are offered.
fn mistakes_in_subgroups() -> Vec<Mistake> {
    let problem = || gemm([9, 268, 68], Gemm::default());
    let rows = [
        ("terms of another lane", [1, 8, 1], "(own1, other)", "(own1, lane)"),
        ("the last terms of a step dropped", [1, 4, 1], "other < terms4;", "other + 1u < terms4;"),
        ("the first terms for every lane", [1, 8, 1], "done4 + lane,", "done4,"),
        ("columns of another group", [2, 8, 1], "column4 + 1u * WG_X, params.n4", "column4, params.n4"),
        ("a row beyond the last", [1, 4, 1], "row + 3u < @m", "true"),
        ("a column beyond the last", [1, 4, 1], "(column4 + 0u * WG_X < @n4)", "(true)"),
    ];
    let mistake = |(what, tile, from, to)| {
        let (problem, layout) = (problem(), Layout::C4);
        Mistake { what, problem, variant: "subgroup", tile, layout, from, to }
    };
    rows.map(mistake).into()
}

/// Mistakes in kernels for warp groups, and at the edges of those for matrix units.
fn mistakes_of_warp_groups() -> Vec<Mistake> {
    let halves = || for_unit([9, 16, 192], Precision::F16Storage);
    let floats = || for_unit([9, 16, 96], Precision::Tf32);
    let beyond = "to_row < m && to4 < n4";
    #[expect(clippy::type_complexity, reason = "a table row, named by the struct it becomes")]
    let rows: Vec<(&str, Problem, &str, [u32; 3], &str, &str)> = vec![
        ("a quarter of a step", halves(), "wgmma", [1, 1, 1], "MULTIPLY(a_now + 6ul, b_now + 384ul);", ""),
        ("chunks where they came from", halves(), "wgmma", [1, 1, 1], "(chunk ^ line % 8u)", "chunk"),
        (
            "rows of the first warp",
            for_unit([70, 16, 64], Precision::F16Storage),
            "wgmma",
            [2, 2, 1],
            "row + 16u * warp",
            "row",
        ),
        ("a row beyond the last", halves(), "wgmma", [1, 1, 1], beyond, "to4 < n4"),
        ("a forgotten factor", halves(), "wgmma", [4, 2, 1], "(alpha)", "(1.0f)"),
        (
            "a step too early",
            for_unit([9, 16, 640], Precision::F16Storage),
            "wgmma",
            [4, 2, 1],
            "b_now = DESCRIBE_B(base + now",
            "b_now = DESCRIBE_B(base + next",
        ),
        (
            "terms of the step's first half",
            floats(),
            "wgmma_tf32",
            [1, 1, 1],
            "b_high[now / 4u + 4u * COLUMNS]",
            "b_high[now / 4u]",
        ),
        (
            "chunks where they came from",
            floats(),
            "wgmma_tf32",
            [1, 1, 1],
            "(a_chunk ^ a_line % 8u)",
            "a_chunk",
        ),
        ("a row beyond the last", floats(), "wgmma_tf32", [1, 1, 1], beyond, "to4 < n4"),
        ("a step not multiplied", floats(), "wgmma_tf32", [2, 4, 1], "first4 = 0u;", "first4 = STEP / 4u;"),
        ("a row beyond the last", halves(), "matrix_ptx", [2, 2, 1], beyond, "to4 < n4"),
        (
            "columns of the first warp",
            for_unit([9, 64, 64], Precision::F16Storage),
            "matrix_ptx",
            [2, 2, 1],
            "2u * TILE_X * x + i",
            "i",
        ),
        ("a forgotten factor", halves(), "matrix_ptx", [4, 4, 1], "(alpha)", "(1.0f)"),
        (
            "a row beyond the last",
            halves(),
            "matrix",
            [1, 2, 1],
            "to_row < params.m && to4 < params.n4",
            "to4 < params.n4",
        ),
        ("a forgotten factor", halves(), "matrix", [4, 4, 1], "(params.alpha)", "(1.0f)"),
    ];
    let rows = rows.into_iter().map(|(what, problem, variant, tile, from, to)| Mistake {
        what,
        problem,
        variant,
        tile,
        layout: Layout::C4,
        from,
        to,
    });
    rows.collect()
}

fn mistakes() -> Vec<Mistake> {
    let same = Conv2d { padding: Padding::Same, ..Default::default() };
    let dilated = Conv2d { dilation: [1, 2], ..same };
    let mirrored = Conv2d { border: Border::Reflect, ..same };
    let wide = Gemm { ldc: Some(12), ..Default::default() };
    let scaled = Gemm { alpha: Bits(-0.5), ..Default::default() };
    let pack = ConvertOp::new(Shape::nhwc(1, 3, 5, 7), Layout::Nhwc, Layout::C4, Precision::F32);
    let pack: Problem = Arc::new(pack.expect("a valid op"));
    let repack = |from, to| -> Problem {
        Arc::new(ConvertOp::storage(Shape::nhwc(2, 3, 5, 7), from, to).expect("a valid op"))
    };
    let cast = |from, to| -> Problem {
        Arc::new(ConvertOp::of_rows(Shape::nhwc(2, 3, 5, 7), from, to).expect("a valid op"))
    };
    let (halved, doubled) = (cast(DType::F32, DType::F16), cast(DType::F16, DType::F32));
    let (narrow, widen) = (repack(DType::F32, DType::F16), repack(DType::F16, DType::F32));
    let plain = Activation::None;
    #[expect(clippy::type_complexity, reason = "a table row, named by the struct it becomes")]
    let rows: Vec<(&str, Problem, &str, [u32; 3], &str, &str)> = vec![
        ("a dropped tap", conv2d(same), "direct", [4, 1, 1], "kx < KERNEL_W;", "kx + 1u < KERNEL_W;"),
        ("a forgotten dilation", conv2d(dilated), "direct", [4, 1, 1], "kx * DILATION_W", "kx"),
        ("the edge twice", conv2d(mirrored), "direct", [4, 1, 1], "2 * (extent - 1)", "2 * (extent - 1) + 1"),
        ("the edge for its image", conv2d(mirrored), "split", [4, 1, 1], "abs(at)", "max(at, 0)"),
        (
            "rows that are not mirrored",
            conv2d(mirrored),
            "tiled",
            [2, 8, 1],
            "@before_h, @src_h",
            "0u, @src_h",
        ),
        ("a row around the map's end", long(same), "sliding", [4, 1, 1], "if (outside1)", "if (false)"),
        ("weights of the first slice", long(same), "sliding", [2, 1, 1], "ky + KERNEL_H * slice", "ky"),
        (
            "no check of the right border",
            conv2d(same),
            "direct",
            [4, 1, 1],
            "x2 < @src_w + @before_w",
            "true",
        ),
        ("a store beyond the row", conv2d(same), "direct", [4, 1, 1], "column + 3u < @dst_w", "true"),
        ("a store beyond the last slice", conv2d(same), "direct", [1, 1, 2], "slice + 1u < @dst_c4", "true"),
        ("a window of one row", conv2d(same), "tiled", [2, 8, 1], " * DILATION_H;", " * 0u;"),
        ("an outside not zero", conv2d(same), "tiled", [2, 4, 2], "if (!inside0)", "if (false)"),
        ("the first image for all", conv2d_of(2, same), "tiled", [2, 8, 1], " / area)", " * 0u)"),
        ("a window around the row's end", conv2d(same), "split", [4, 1, 1], "if (!inside2)", "if (false)"),
        ("a layer not added", conv2d(same), "split", [2, 2, 2], "q < SPLITS", "q < 1u"),
        ("a neighbour's group", grouped(10), "grouped", [2, 1, 1], "4u * slice + 1u", "4u * slice + 0u"),
        (
            "an input too few of a group",
            grouped(16),
            "grouped",
            [4, 1, 2],
            "k < @group_inputs",
            "k + 1u < @group_inputs",
        ),
        ("a factor of the wrong sign", conv2d(same), "winograd2", [4, 2, 2], "= -t1 + t2", "= t1 + t2"),
        ("a tap row beyond the input", conv2d(same), "winograd2", [2, 2, 2], "src_y0 + 3u < @src_h", "true"),
        ("a stack not added", conv2d(same), "winograd2", [4, 2, 1], "other < WG_Z", "other < POSITIONS"),
        (
            "a patch around the row's end",
            conv2d(same),
            "winograd4",
            [4, 2, 1],
            "src_x0 < @src_w &&",
            "src_x0 <= @src_w &&",
        ),
        ("a small factor forgotten", conv2d(same), "winograd4", [2, 2, 1], "8.0f * m3_3", "7.9f * m3_3"),
        ("a pixel beyond the row", conv2d(same), "winograd4", [4, 1, 1], "&& column + 3u < @dst_w", ""),
        ("no check of the left border", stem(), "shallow", [1, 1, 1], "off0 || outside0", "off0"),
        ("no check of the first row", stem(), "shallow", [2, 1, 2], "off0 || outside1", "outside1"),
        ("no check of the lower border", depthwise(1, 1), "micro", [1, 2, 1], "on3 && inside1", "inside1"),
        ("the last channels not multiplied", pointwise(plain), "tiled", [1, 4, 1], "done4 <= ", "done4 < "),
        (
            "the last channels twice",
            pointwise_of(20, plain),
            "tiled",
            [2, 4, 2],
            "last4) {",
            "last4 + 64u) {",
        ),
        ("a pixel beyond the last", pointwise(plain), "tiled", [1, 4, 1], "pixel3 < pixels", "true"),
        ("a slice beyond the last", pointwise(plain), "tiled", [2, 8, 1], "1u * WG_X < @dst_c4", "0u < 1u"),
        ("a pixel of another column", pointwise(plain), "split", [6, 1, 2], "t % TILE_X", "t / TILE_X"),
        ("exchanged lanes", pointwise(plain), "micro", [4, 2, 1], "(x0.x)", "(x0.y)"),
        ("a wrong activation", pointwise(Activation::Relu6), "micro", [4, 2, 1], "6.0f", "5.0f"),
        ("a part not added", pointwise(plain), "split", [1, 1, 2], "q < SPLITS", "q < 1u"),
        ("a subtracted bias", pointwise(plain), "direct", [1, 1, 1], "+ bias[", "- bias["),
        ("a pixel beyond the plane", pointwise(plain), "micro", [4, 2, 1], "pixel + 1u < @plane", "true"),
        ("nothing written", pointwise(plain), "micro", [4, 2, 1], "n >= @batch", "n < @batch"),
        (
            "a lane beyond the channels not zero",
            pointwise(Activation::Sigmoid),
            "micro",
            [4, 2, 1],
            "< vec4<u32>(@dst_channels)",
            "< vec4<u32>(@dst_channels + 3u)",
        ),
        (
            "an outside that counts",
            pool(Pooling::Average),
            "direct",
            [1, 1, 1],
            "(x_end - x_first)",
            "KERNEL_W",
        ),
        (
            "a window too short",
            pool(Pooling::Average),
            "direct",
            [1, 1, 1],
            "y < min(y_end",
            "y + 1u < min(y_end",
        ),
        (
            "a maximum not below zero",
            pool(Pooling::Max),
            "direct",
            [1, 1, 1],
            "v > pooled",
            "v > abs(pooled)",
        ),
        (
            "the first image for all",
            pool(Pooling::Max),
            "direct",
            [1, 1, 1],
            "@src_h * gid.z",
            "@src_h * (gid.z % 2u)",
        ),
        ("a forgotten stride", depthwise(1, 2), "rows", [2, 1, 1], "gid.y * STRIDE_H", "gid.y"),
        ("no lower border staged", depthwise(1, 1), "local", [1, 2, 1], "y < @src_h + @before_h", "true"),
        ("a stride not staged", depthwise(1, 2), "local", [2, 2, 1], "TILE_Y * STRIDE_H)", "TILE_Y)"),
        (
            "a wrong channel under a multiplier",
            depthwise(3, 1),
            "multiplier",
            [1, 1, 1],
            "(4u * slice + 3u) / @multiplier",
            "(4u * slice + 2u) / @multiplier",
        ),
        (
            "the last of 1030 terms dropped",
            gemm([9, 7, 1030], Gemm::default()),
            "micro",
            [1, 8, 1],
            "term < @k",
            "term + 1u < @k",
        ),
        (
            "what was summed before not made smaller",
            attended(Attention::default()),
            "tiled",
            [1, 1, 1],
            "sum0 = sum0 * smaller0;",
            "sum0 = sum0;",
        ),
        ("a key beyond the last", attended(Attention::default()), "tiled", [1, 1, 1], ">= end)", "> end)"),
        ("the first part's keys", crate::attention::in_parts(4), "row", [64, 1, 1], "start + done", "done"),
        (
            "a part without its end",
            crate::attention::in_parts(3),
            "row",
            [128, 1, 1],
            "min(until - start, @span)",
            "until - start",
        ),
        (
            "a key too many",
            attended(Attention { behind: Some(0), ..Attention::default() }),
            "tiled",
            [1, 2, 1],
            "> place0 + @behind",
            "> place0 + @behind + 1",
        ),
        (
            "values of one slice",
            attended(Attention::default()),
            "row",
            [64, 1, 1],
            "sums0_0 + joined[",
            "sums0_0 + 0.0f * joined[",
        ),
        (
            "the largest score of some",
            attended(Attention::default()),
            "row",
            [64, 1, 1],
            "i < SIZE; i += 16u",
            "i < 32u; i += 16u",
        ),
        ("a wrong step", gemm([9, 7, 5], wide), "micro", [1, 8, 1], "@b_step * term", "@a_step * term"),
        ("a store between the rows", gemm([9, 7, 5], wide), "micro", [1, 8, 1], "column + 3u < @n)", "true)"),
        ("a forgotten factor", gemm([9, 8, 4], scaled), "vec4", [1, 8, 1], "(@alpha)", "(1.0f)"),
        (
            "the last step not multiplied",
            gemm([9, 8, 16], scaled),
            "tiled",
            [2, 8, 1],
            "done4 <= ",
            "done4 < ",
        ),
        ("terms beyond the last", gemm([9, 8, 12], scaled), "tiled", [2, 8, 1], "@k4) {", "@k4 + 64u) {"),
        (
            "the other side's factors",
            gemm([9, 8, 32], scaled),
            "tiled",
            [2, 16, 1],
            "a_at1 + 0u * A_ROW + 0u",
            "a_at0 + 0u * A_ROW + 0u",
        ),
        (
            "a slice's own turn",
            gemm([9, 8, 64], scaled),
            "tiled",
            [2, 8, 2],
            "STEP / 4u * slice",
            "STEP / 4u",
        ),
        (
            "terms of A beyond the last",
            gemm([8, 8, 12], scaled),
            "thin",
            [1, 8, 8],
            ">= @k4)",
            ">= @k4 + 64u)",
        ),
        ("another row of A", gemm([8, 8, 64], scaled), "thin", [1, 8, 8], "+ 3u * WINDOW", "+ 2u * WINDOW"),
        ("a window not summed", gemm([4, 8, 64], scaled), "thin", [1, 4, 8], "@k4 + WINDOW", "@k4"),
        ("another number in the nest before", composed(" from "), "thin", [1, 4, 8], "@g0", "(0.5f * @g0)"),
        (
            "another number behind the sum",
            composed(" then"),
            "tiled",
            [2, 8, 1],
            "- vec4<f32>(f1)",
            "+ vec4<f32>(f1)",
        ),
        (
            "a group of terms twice",
            gemm([1, 8, 64], scaled),
            "thin",
            [1, 1, 8],
            "+ 1u * SPLITS",
            "+ 0u * SPLITS",
        ),
        (
            "a term of another slice",
            gemm([3, 7, 64], scaled),
            "split",
            [1, 4, 8],
            "term += SPLITS",
            "term += SPLITS + 1u",
        ),
        (
            "a split of few rows not added",
            gemm([2, 8, 64], scaled),
            "thin",
            [1, 2, 8],
            "(slice < 2u)",
            "(slice < 1u)",
        ),
        ("terms beyond the last", gemm([17, 18, 21], scaled), "staged", [1, 4, 1], "@k) {", "@k + 64u) {"),
        (
            "rows for terms",
            gemm([17, 18, 21], scaled),
            "staged",
            [1, 4, 1],
            "a_index0 % STEP",
            "a_index0 / STEP",
        ),
        (
            "a store between the rows",
            gemm([17, 18, 21], scaled),
            "staged",
            [1, 4, 1],
            "+ 3u < @n)",
            "< @n + 3u)",
        ),
        ("a split not added", gemm([9, 8, 64], scaled), "tiled", [1, 4, 4], "(slice < 2u)", "(slice < 1u)"),
        ("a row beyond the last", gemm([9, 8, 16], scaled), "tiled", [1, 4, 4], "row3 < @m", "true"),
        (
            "columns of another quarter",
            gemm([9, 32, 8], scaled),
            "wide",
            [2, 8, 1],
            "sum1_0.s4567",
            "sum1_0.s0123",
        ),
        (
            "a term twice",
            gemm([9, 32, 8], scaled),
            "wide",
            [2, 8, 1],
            "(4u * term4 + 3u)",
            "(4u * term4 + 2u)",
        ),
        ("a lane not zeroed", pack, "pack", [1, 1, 1], "channel + 3u < @channels", "true"),
        ("the pixel before", narrow, "repack", [1, 1, 1], "src[index]", "src[max(index, 1u) - 1u]"),
        ("the element before", doubled, "cast", [1, 1, 1], "src[i]", "src[max(i, 1u) - 1u]"),
        ("an element beyond the last", halved, "cast", [1, 1, 1], "i >= @elements", "i > @elements"),
        ("the first image for all", widen, "repack", [1, 1, 1], "@dst_h * gid.z", "@dst_h * (gid.z % 2u)"),
    ];
    // Kernels whose maps are images. Each still reads and writes within its image: what lies
    // beyond it is the driver's affair.
    let pair = conv2d_of(2, same);
    #[expect(clippy::type_complexity, reason = "a table row, named by the struct it becomes")]
    let images: Vec<(&str, Problem, &str, [u32; 3], &str, &str)> = vec![
        ("the first slice for all", depthwise(1, 2), "direct", [1, 1, 1], " + @src_w * slice,", ","),
        (
            "a row not moved by the border",
            depthwise(1, 2),
            "direct",
            [1, 1, 1],
            "y - @before_h + @src_h",
            "gid.y + @src_h",
        ),
        (
            "the first image's rows for all",
            pair,
            "direct",
            [4, 1, 1],
            "y - @before_h + @src_h * n)",
            "y - @before_h)",
        ),
        (
            "a slice stored in another's place",
            conv2d(same),
            "direct",
            [1, 1, 2],
            "column + 0u + @dst_w * (slice + 1u)",
            "column + 0u + @dst_w * slice",
        ),
    ];
    let planes = Transpose { permutation: vec![0, 3, 1, 2] };
    let border = |mode| Pad { before: vec![0, 2, 1, 0], after: vec![0, 1, 2, 0], mode };
    let cut =
        StridedSlice { ranges: [AxisRange::ALL; 3].into_iter().chain([AxisRange::new(0, 6)]).collect() };
    let filled = border(PadMode::Constant(Bits(0.5)));
    let of_rows = vec![
        (
            "another row of the product",
            product_rows(),
            "direct",
            [1, 4, 8],
            "slot / LANES, TILE_Y",
            "slot / LANES + 1u, TILE_Y",
        ),
        ("a residual of another row", product_rows(), "direct", [1, 4, 8], "@n4 * row1", "@n4 * row0"),
        (
            "parts alike",
            crate::attention::join(3),
            "rows",
            [1, 1, 1],
            "exp(src[at + UNITS].x - most)",
            "1.0f",
        ),
        (
            "rows of another head",
            crate::attention::join(3),
            "rows",
            [1, 1, 1],
            "@dst_head * h",
            "@dst_head * b",
        ),
        ("a row for all", moved(&planes, &[2, 3, 5, 7]), "rows", [1; 3], "* i2", "* (0u * i2)"),
        (
            "a tile not turned",
            moved(&Transpose { permutation: vec![1, 0] }, &[33, 40]),
            "transpose",
            [1; 3],
            "staged[(SIDE + 1u) * lid.x + dst_line1]",
            "staged[(SIDE + 1u) * dst_line1 + lid.x]",
        ),
        (
            "a row left out",
            moved(&Transpose { permutation: vec![1, 0] }, &[33, 40]),
            "transpose",
            [1; 3],
            "dst_row0 < @rows && dst_column < @columns",
            "dst_row0 + 1u < @rows && dst_column < @columns",
        ),
        (
            "a border of other numbers",
            moved(&filled, &[1, 3, 5, 7]),
            "rows",
            [1; 3],
            "= f32(@f0);",
            "= f32(0.0f * @f0);",
        ),
        (
            "the first row of an input for all",
            concat(&[[1, 2, 3, 5], [1, 2, 3, 2]]),
            "rows",
            [1; 3],
            "@n2 * i0 + a2",
            "a2",
        ),
    ];
    let mut rows = rows;
    let of_rows = of_rows.into_iter().chain([
        ("the first index for all", gather(), "rows", [1; 3], "arg0[", "arg0[0u * "),
        (
            "the last term left out",
            moved(&CumSum { axis: 0, exclusive: false, reverse: false }, &[5, 3]),
            "rows",
            [1; 3],
            "first + @inner * term",
            "first + @inner * (term - min(term, 1u))",
        ),
        (
            "the first place left out",
            moved(&TopK { k: 7, largest: true, indices: true }, &[13]),
            "rows",
            [1; 3],
            "other > own_key",
            "other >= own_key",
        ),
        (
            "the largest in the place of the smallest",
            moved(&TopK { k: 7, largest: false, indices: true }, &[13]),
            "rows",
            [1; 3],
            "key(value) ^ TURNED",
            "key(value)",
        ),
        (
            "the last one counted among the larger ones",
            moved(&TopK { k: 601, largest: true, indices: true }, &[5000]),
            "select",
            [256, 1, 1],
            "larger_own + select(0u, 1u, own > last)",
            "larger_own + select(0u, 1u, own >= last)",
        ),
        (
            "equals in any order",
            moved(&TopK { k: 3000, largest: true, indices: true }, &[5000]),
            "select",
            [256, 1, 1],
            "other < one",
            "other > one",
        ),
        (
            "a word of another tap",
            bytes(),
            "direct",
            [1, 4, 1],
            "@src_words * (ky * KERNEL_W + kx)",
            "@src_words * kx",
        ),
        ("zeros outside", bytes(), "direct", [2, 4, 1], "select(@outside, ", "select(0u, "),
        ("unsigned bytes as signed ones", bytes(), "direct", [1, 2, 1], " ^ 0x80808080u", ""),
        (
            "a sum left out",
            bytes_of_many(),
            "direct",
            [1, 4, 4],
            "other < SPLITS - 1u",
            "other < SPLITS - 2u",
        ),
        ("all words taken by each", bytes_of_many(), "direct", [1, 2, 8], "k: u32 = slice", "k: u32 = 0u"),
        ("no bias", bytes(), "direct", [1, 4, 1], "+ bias0", "+ 0 * bias0"),
        ("halves rounded down", bytes(), "direct", [1, 1, 1], "round(clamp(", "floor(clamp("),
        (
            "a word of another tap",
            bytes_of_channels(),
            "direct",
            [1, 2, 1],
            "(ky * KERNEL_W + kx)",
            "(kx * KERNEL_W + ky)",
        ),
        ("zeros outside", bytes_of_channels(), "direct", [1, 1, 1], "select(@outside, ", "select(0u, "),
        ("another row of b", bytes_added(), "rows", [1; 3], "i / @span * @row", "0u"),
        ("halves rounded down", bytes_added(), "rows", [1; 3], "+ half)", "+ 0 * half)"),
        (
            "what is outside counted",
            bytes_averaged(),
            "rows",
            [1; 3],
            "count = count + 1i",
            "count = i32(KERNEL_H * KERNEL_W)",
        ),
        (
            "halves towards zero",
            bytes_averaged(),
            "rows",
            [1; 3],
            "vec4<i32>(half), centred",
            "vec4<i32>(0), centred",
        ),
        ("the zero point subtracted", quantized(), "rows", [1; 3], "v6 + ", "v6 - "),
        ("zeros outside", bytes_of_ranges(), "direct", [1, 4, 1], "select(outside, ", "select(0u, "),
        (
            "the range of the first image",
            bytes_of_ranges(),
            "direct",
            [2, 4, 1],
            "3u * (pixel / @span)",
            "0u * pixel",
        ),
        (
            "the sums of other weights",
            bytes_of_ranges(),
            "direct",
            [1, 1, 1],
            "@src_words * @dst_words + word0",
            "0u",
        ),
        (
            "the range of the first row",
            crate::dynamic::quantize(&[7, 5], 7, false),
            "rows",
            [1; 3],
            "row / @span",
            "0u * row",
        ),
        (
            "the next word's channels",
            crate::dynamic::quantize(&[7, 5], 7, false),
            "rows",
            [1; 3],
            "4u * (i % words)",
            "4u * ((i + 1u) % words)",
        ),
        (
            "every second turn left out",
            crate::dynamic::range(&[7, 1500], RangeRule::Nearer),
            "group",
            [64, 1, 1],
            "i += SIZE",
            "i += 2u * SIZE",
        ),
        (
            "the least number taken for 0",
            crate::dynamic::range(&[7, 1500], RangeRule::Low),
            "group",
            [64, 1, 1],
            "highs[0] - lows[0]",
            "highs[0]",
        ),
        ("another byte of a word", dequantized(), "rows", [1; 3], "a1 % 4u", "a1 % 3u"),
        ("the place of the first batch", update(), "rows", [1; 3], "outer / @outer]", "0u * outer]"),
        (
            "all rows at one place, in place",
            update().in_place().expect("it may be in place").0,
            "rows",
            [1; 3],
            "i32(line % @rows)",
            "0i",
        ),
        (
            "the boxes of the first row",
            suppress(),
            "rows",
            [256, 1, 1],
            "4u * row * @box_step",
            "0u * row * @box_step",
        ),
        (
            "what overlaps is not suppressed",
            suppress(),
            "rows",
            [256, 1, 1],
            "overlap > @overlap || i == own",
            "i == own",
        ),
        (
            "an encoding of other rows",
            moved(&OneHot { depth: 4, on: Bits(1.0), off: Bits(0.0), axis: 0 }, &[3, 5]),
            "rows",
            [1; 3],
            "f32(i0)",
            "f32(i1)",
        ),
        ("a round too few", random(), "rows", [1; 3], "round < 10u", "round < 9u"),
        (
            "the words of another block",
            random(),
            "rows",
            [1; 3],
            "vec4<u32>(block, 0u",
            "vec4<u32>(block + 1u, 0u",
        ),
        ("an index beyond the axis", gather(), "rows", [1; 3], ">= 0.0f && ", ">= 0.0f || "),
    ]);
    rows.extend([
        (
            "a mirror image with the edge",
            moved(&border(PadMode::Reflect), &[1, 3, 5, 7]),
            "maps",
            [1; 3],
            "2 * i32(@n4 - 1u) - a4",
            "2 * i32(@n4 - 1u) + 1 - a4",
        ),
        ("channels that were cut off", moved(&cut, &[1, 3, 5, 8]), "maps", [1; 3], "a2 < @n3", "a2 < 9u"),
        (
            "the first lane for all",
            moved(&planes, &[2, 3, 5, 7]),
            "maps",
            [1; 3],
            "+ (i2 % @n0)",
            "+ 0u * (i2 % @n0)",
        ),
        (
            "slices of the first image",
            concat(&[[2, 2, 3, 3], [2, 2, 3, 6]]),
            "maps",
            [1; 3],
            "@n5 * i0",
            "0u * i0",
        ),
    ]);
    let rows = rows.into_iter().map(|row| (Layout::C4, row));
    let rows = rows.chain(of_rows.map(|row| (Layout::Nhwc, row)));
    let rows = rows.chain(images.into_iter().map(|row| (Layout::Image2d, row)));
    rows.map(|(layout, (what, problem, variant, tile, from, to))| Mistake {
        what,
        problem,
        variant,
        tile,
        layout,
        from,
        to,
    })
    .collect()
}

/// Mistakes in kernels of each element, some of them of rows.
fn mistakes_in_elements() -> Vec<Mistake> {
    let rows = crate::elementwise::mistakes().into_iter();
    let mistake = |(what, problem, variant, layout, from, to)| Mistake {
        what,
        problem,
        variant,
        tile: [1, 1, 1],
        layout,
        from,
        to,
    };
    rows.map(mistake).collect()
}

/// Whether both languages have the kernel.
fn is_in_both(op: &str, variant: &str) -> bool {
    let entry = diptych_kernels::ops::all().iter().find(|entry| entry.name == op).expect("an op");
    let entry = entry.variants().into_iter().find(|entry| entry.name == variant).expect("a kernel");
    Dialect::ALL.into_iter().all(|dialect| entry.speaks(dialect))
}

impl Mistake {
    /// The kernel that the mistake is planted in; nothing, with the reason printed, if `device` does not run it.
    fn choice(&self, device: &dyn Device) -> Option<Choice> {
        let Mistake { what, problem, variant, tile, layout, .. } = self;
        let info = device.info();
        if *layout == Layout::Image2d && info.limits.max_image.is_none() {
            println!("{info}: {what}: no images");
            return None;
        }
        if *variant == "wide"
            && problem.kernel(variant).is_ok_and(|kernel| kernel.offers(&info.limits).is_empty())
        {
            println!("{info}: {what}: no OpenCL on a CPU");
            return None;
        }
        let choice = crate::cases::choice(&**problem, variant, *tile, [8, 4, 1], &info.limits);
        let choice = choice.with_layout(*layout);
        // Some are for devices with matrix units or subgroups, and some for those whose buffers have single halves.
        if (variant.starts_with("matrix")
            || variant.starts_with("wgmma")
            || ["subgroup", "cast"].contains(variant))
            && let Err(error) = problem.fits(&choice, &info.limits)
        {
            println!("{info}: {what}: {error}");
            return None;
        }
        Some(choice)
    }

    /// Makes the mistake; whether there was something to change.
    fn plant(&self, source: &mut KernelSource) -> bool {
        let [from, to] = [self.from, self.to].map(|text| text.replace('@', "params."));
        let found = source.text.contains(&from);
        source.text = source.text.replace(&from, &to);
        found
    }
}

/// Plants each mistake of the kernels that `device` runs; of those that both APIs have, the ones whose number has its
/// turn here. What was not caught, and how many were.
pub(crate) async fn wrong_kernels(device: &dyn Device, turn: fn(usize) -> bool) -> (Vec<String>, usize) {
    let (mut failures, mut caught) = (Vec::new(), 0);
    let info = device.info();
    let planted: Vec<(Mistake, Choice)> = mistakes()
        .into_iter()
        .chain(mistakes_on_matrix_units())
        .chain(mistakes_of_warp_groups())
        .chain(mistakes_in_matrix_convolutions())
        .chain(mistakes_in_other_matrices())
        .chain(mistakes_in_subgroups())
        .chain(mistakes_in_elements())
        .chain(crate::reductions::mistakes())
        .chain(crate::gates::mistakes())
        .chain(crate::squeezes::mistakes())
        .chain(crate::mlps::mistakes())
        .chain(crate::packed::mistakes())
        .enumerate()
        .filter(|(number, mistake)| {
            // The harness is the same for both APIs.
            let its_turn = turn(*number);
            let op = mistake.problem.name();
            let alone = mistake.layout == Layout::Image2d || !is_in_both(op, mistake.variant);
            (its_turn || alone || crate::cases::wants_every_kernel())
                && crate::cases::is_asked_for(op, mistake.variant)
        })
        .filter_map(|(_, mistake)| mistake.choice(device).map(|choice| (mistake, choice)))
        .collect();
    for (number, (mistake, choice)) in planted.iter().enumerate() {
        // The right kernel and the wrong one; a browser compiles each by itself.
        if cfg!(not(target_family = "wasm")) && number.is_multiple_of(gpu::TOGETHER / 2) {
            let mut sources = Vec::new();
            for (mistake, choice) in planted.iter().skip(number).take(gpu::TOGETHER / 2) {
                let Ok(source) = gpu::written(device, &*mistake.problem, choice) else { continue };
                let mut wrong = source.clone();
                mistake.plant(&mut wrong);
                sources.extend([source, wrong]);
            }
            gpu::compile_ahead(device, &sources);
        }
        let Mistake { what, problem, from, .. } = mistake;
        let operands = operands(&**problem);
        let expected = expected(&**problem, &operands);
        let check = async |mutate: &dyn Fn(&mut KernelSource)| {
            gpu::check(device, &**problem, &operands, &expected, choice, mutate).await
        };
        if let Err(failure) = check(&|_| {}).await {
            failures.push(format!("{info}: the right kernel beside {what:?}: {failure}"));
        }
        let other = std::cell::RefCell::new(None);
        let plant = |source: &mut KernelSource| {
            let found = mistake.plant(source);
            *other.borrow_mut() = (!found).then(|| source.text.clone());
        };
        match (check(&plant).await, other.take()) {
            (_, Some(text)) => failures.push(format!("{info}: {what}: {from:?} is not in the text\n{text}")),
            (Ok(()), None) => failures.push(format!("{info}: {what} passed")),
            // A mistake must be seen in the result, not by the compiler.
            (Err(failure), None) if !failure.contains("element") && !failure.contains("canary") => {
                failures.push(format!("{info}: {what} did not run: {failure}"));
            }
            (Err(failure), None) => {
                caught += 1;
                println!("{info}: {what}: {failure}");
            }
        }
    }
    (failures, caught)
}

#[test]
fn a_wrong_result_is_refused() {
    for problem in [pointwise(Activation::None), conv2d(Conv2d::default()), gemm([3, 5, 4], Gemm::default())]
    {
        let operands = operands(&*problem);
        let expected = expected(&*problem, &operands);
        let mut result: Vec<f32> = expected.value().iter().map(|&value| value as f32).collect();
        compare(&*problem, &expected, &result).expect("the oracle's own values");
        for wrong in [f32::NAN, f32::INFINITY, result[3] + 1e-2] {
            let right = std::mem::replace(&mut result[3], wrong);
            let failure = compare(&*problem, &expected, &result).expect_err("a wrong element");
            assert!(failure.contains("1 of") && failure.contains("element 3"), "{failure}");
            result[3] = right;
        }
        result.pop();
        assert!(compare(&*problem, &expected, &result).is_err());
    }
}
