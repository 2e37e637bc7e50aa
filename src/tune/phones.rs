//! The model of times against what others measured on GPUs of phones and boards.

use super::tables;
use super::work_group::{WorkGroup, table, untuned};
use crate::dtype::Precision;
use crate::limits::machine::Measured;
use crate::limits::{Family, Limits, MaliArchitecture};
use crate::ops::Op;
use crate::ops::conv2d::{Conv2d, Conv2dOp};
use crate::ops::pointwise::{Pointwise, PointwiseOp};
use crate::shape::{Padding, Shape};

/// A GPU of each kind that the model tells apart, but NVIDIA's.
const FAMILIES: [Family; 11] = [
    Family::Adreno(630),
    Family::Adreno(730),
    Family::Mali(MaliArchitecture::Midgard),
    Family::Mali(MaliArchitecture::Bifrost),
    Family::Mali(MaliArchitecture::Valhall),
    Family::PowerVr,
    Family::VideoCore,
    Family::Intel,
    Family::Apple,
    Family::Amd,
    Family::Unknown,
];

/// A 1x1 convolution of a square map.
fn pointwise([side, c, o]: [usize; 3]) -> PointwiseOp {
    let (input, weights) = (Shape::nhwc(1, side, side, c), Shape::nhwc(o, 1, 1, c));
    PointwiseOp::new(input, weights, &Pointwise::default(), true, false, Precision::F32)
        .expect("a convolution")
}

/// PoseNet of width 1.00 at 257 x 257: the 1x1 convolutions, by their number among its 31 nodes.
const PRODUCTS: [(usize, [usize; 3]); 17] = [
    (2, [129, 32, 64]),
    (4, [65, 64, 128]),
    (6, [65, 128, 128]),
    (8, [33, 128, 256]),
    (10, [33, 256, 256]),
    (12, [17, 256, 512]),
    (14, [17, 512, 512]),
    (16, [17, 512, 512]),
    (18, [17, 512, 512]),
    (20, [17, 512, 512]),
    (22, [17, 512, 512]),
    (24, [9, 512, 1024]),
    (26, [9, 1024, 1024]),
    (27, [9, 1024, 17]),
    (28, [9, 1024, 34]),
    (29, [9, 1024, 32]),
    (30, [9, 1024, 32]),
];

/// Milliseconds of those nodes on a Vivante GC7000 by the OpenGL delegate of TensorFlow Lite, with work-groups of (8,4,8) and
/// of (1,1,1), on a Coral Dev Board: the article that this project began with.
const ARTICLE: [[f64; 2]; 17] = [
    [20.0, 19.14],
    [20.46, 18.75],
    [39.43, 35.69],
    [25.74, 18.98],
    [53.44, 36.46],
    [32.78, 19.92],
    [64.51, 38.55],
    [64.63, 38.5],
    [64.55, 38.46],
    [64.53, 38.51],
    [64.48, 38.55],
    [45.75, 22.18],
    [90.25, 43.07],
    [3.05, 2.12],
    [4.47, 2.8],
    [3.63, 2.63],
    [3.61, 2.58],
];

/// A GPU that no table knows, on which a work-group of one invocation wastes nothing. Its figures stand in for what
/// `diptych devices --measure` would find. That of cached reads is the article's own: node 26 reads five vec4s for each sixteen
/// multiply-adds, 10 GB/s in 43 ms. So is that of a launch: nodes 27 to 30 take 0.04 ms for each channel more than 1.4 ms. The ratios do not depend on it, as long as it is what the kernel waits for.
fn vivante() -> Limits {
    let measured = Measured {
        launch_ns: 1_400_000,
        copy_mb: 6000,
        cached_mb: 10_000,
        local_mb: 40_000,
        f32_millions: 12_000,
        f16_millions: None,
        i8_millions: None,
        least_work_group: 1,
    };
    Limits { family: Family::Unknown, compute_units: Some(1), measured: Some(measured), ..Limits::opencl() }
}

fn estimate(op: &dyn Op, size: [u32; 3], limits: &Limits) -> f64 {
    let kernel = op.kernel("direct").expect("the article's kernel");
    kernel.estimate(&kernel.choice([1, 1, 1], size), limits).expect("an estimate")
}

/// Places in the order of the values.
fn ranks(values: &[f64]) -> Vec<f64> {
    let less = |value: &f64| values.iter().filter(|other| *other < value).count() as f64;
    let equal = |value: &f64| values.iter().filter(|other| *other == value).count() as f64;
    values.iter().map(|value| less(value) + (equal(value) - 1.0) / 2.0).collect()
}

/// Pearson's correlation.
fn correlation(first: &[f64], second: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (one, two) = (mean(first), mean(second));
    let sum = |f: &dyn Fn(f64, f64) -> f64| {
        first.iter().zip(second).map(|(&a, &b)| f(a - one, b - two)).sum::<f64>()
    };
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

#[test]
fn the_articles_ratios_are_met_node_by_node() {
    let limits = vivante();
    let (mut found, mut wanted) = (Vec::new(), Vec::new());
    let mut sums = [[0.0; 2]; 2];
    for ((node, shape), [table, single]) in PRODUCTS.into_iter().zip(ARTICLE) {
        let op = pointwise(shape);
        let [by_table, by_single] = [[8, 4, 8], [1, 1, 1]].map(|size| estimate(&op, size, &limits));
        let (ratio, measured) = (by_table / by_single, table / single);
        // The heads have fewer invocations than the device keeps: more are lost than these lose.
        let most = if node > 26 { 2.0 } else { 1.25 };
        assert!((0.8..most).contains(&(ratio / measured)), "node {node}: {ratio:.2}, measured {measured:.2}");
        found.push(ratio);
        wanted.push(measured);
        for (sum, [table, single]) in sums.iter_mut().zip([[by_table, by_single], [table, single]]) {
            sum[0] += table;
            sum[1] += single;
        }
    }
    let heads = PRODUCTS.iter().position(|(node, _)| *node > 26).expect("heads");
    let rank = correlation(&ranks(&found[..heads]), &ranks(&wanted[..heads]));
    let [model, article] = sums.map(|[table, single]| table / single);
    println!(
        "rank correlation {rank:.3}; of all nodes (8,4,8) takes {model:.2} times as long, measured {article:.2}"
    );
    assert!(rank > 0.95, "{rank}: {found:.2?} {wanted:.2?}");
    assert!((0.9..1.1).contains(&(model / article)), "{model} {article}");
}

#[test]
fn a_device_measured_to_have_no_waves_takes_sizes_that_fit() {
    let limits = vivante();
    let unmeasured = Limits { measured: None, ..limits.clone() };
    let mut times = [0.0; 3];
    for (_, shape) in PRODUCTS {
        let op = pointwise(shape);
        let kernel = op.kernel("direct").expect("the article's kernel");
        let known = table(&*kernel, [1, 1, 1], &limits);
        let unknown = table(&*kernel, [1, 1, 1], &unmeasured);
        for (time, size) in times.iter_mut().zip([[8, 4, 8], unknown, known]) {
            *time += estimate(&op, size, &limits);
        }
    }
    // As the article found, by the size of the work-groups alone; part of it without any measurement.
    let [gl, unknown, known] = times;
    println!("(8,4,8) {gl:.0}, unmeasured {unknown:.0}, measured {known:.0}");
    assert!(gl / known > 1.4 && unknown < gl && known <= unknown, "{times:?}");
}

/// LiteRT's tables for Adreno are its authors' measurements (`tables.rs`): the model has them near its best, and far from work-groups
/// of one invocation.
#[test]
fn what_was_best_on_adreno_is_estimated_to_be_near_the_best() {
    let mut worst: f64 = 1.0;
    let mut ratios = Vec::new();
    for model in [630, 540, 510, 509, 508] {
        let limits = Limits { family: Family::Adreno(model), ..Limits::opencl() };
        for (_, shape) in PRODUCTS {
            let op = pointwise(shape);
            let Some(size) = tables::gl_ideal(limits.family, false, &op.0) else { continue };
            let measured_best = estimate(&op, size, &limits);
            let sizes = [
                [8, 4, 8],
                [4, 8, 4],
                [8, 4, 4],
                [4, 4, 8],
                [8, 8, 2],
                [16, 4, 4],
                [4, 4, 16],
                [2, 8, 16],
                [16, 16, 1],
            ];
            let best =
                sizes.into_iter().map(|size| estimate(&op, size, &limits)).fold(f64::INFINITY, f64::min);
            worst = worst.max(measured_best / best);
            ratios.push(measured_best / best);
            let single = estimate(&op, [1, 1, 1], &limits);
            assert!(single > 2.0 * measured_best, "Adreno {model} {shape:?}: {single} {measured_best}");
        }
    }
    let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
    println!(
        "the tables' sizes take {:.2} times as long as the best estimate, {worst:.2} at most",
        mean.exp()
    );
    assert!(mean.exp() < 1.25 && worst < 2.5, "{} {worst}", mean.exp());
}

/// No family's untuned choice has work-groups most of whose invocations lie beyond the grid, or in waves that are nearly empty.
#[test]
fn untuned_work_groups_are_whole_waves_that_lie_on_the_grid() {
    for family in FAMILIES {
        for base in [Limits::webgpu(), Limits::opencl()] {
            let limits = Limits { family, local_memory: 32768, ..base };
            for (node, shape) in PRODUCTS {
                let op = pointwise(shape);
                let choice = untuned(&op, WorkGroup::Table, &limits).expect("a choice");
                let kernel = op.kernel(choice.variant).expect("the kernel");
                let padded = kernel.grid(choice.tile).into_iter().zip(choice.work_group);
                let used =
                    padded.map(|(extent, size)| f64::from(extent) / f64::from(extent.next_multiple_of(size)));
                let used = used.product::<f64>();
                assert!(used > 0.4, "{family} node {node}: {choice} uses {used:.2} of its invocations");
                assert!(choice.work_group.iter().product::<u32>() >= 8, "{family} node {node}: {choice}");
            }
        }
    }
}

#[test]
fn a_first_convolution_is_estimated_too() {
    let options = Conv2d { stride: [2, 2], padding: Padding::Same, ..Default::default() };
    let (input, weights) = (Shape::nhwc(1, 257, 257, 3), Shape::nhwc(32, 3, 3, 3));
    let op = Conv2dOp::new(input, weights, &options, true, false, Precision::F32).expect("a convolution");
    let limits = vivante();
    let ratio = estimate(&op, [8, 4, 8], &limits) / estimate(&op, [1, 1, 1], &limits);
    // The article's node 0: 17.83 and 17.14 ms.
    assert!((0.85..1.2).contains(&(ratio / (17.83 / 17.14))), "{ratio}");
}

/// No device is left without a kernel for what networks need, for want of registers or of local memory.
#[test]
fn every_family_has_a_kernel_for_products_convolutions_and_attention() {
    for family in FAMILIES {
        for base in [Limits::webgpu(), Limits::opencl()] {
            let limits = Limits { family, local_memory: 16384, ..base };
            for (op, numbers) in [
                ("gemm", &[197, 768, 768][..]),
                ("gemm", &[1, 1000, 1280]),
                ("gemm", &[7, 5, 3]),
                ("attention", &[12, 197, 197, 64]),
                ("attention", &[6, 1500, 1500, 64]),
                ("attention", &[8, 1, 512, 128]),
                ("conv2d", &[1, 56, 56, 64, 64, 3, 3, 1]),
                ("conv2d", &[1, 224, 224, 3, 64, 7, 7, 2]),
            ] {
                let entry = crate::ops::all().iter().find(|entry| entry.name == op).expect("the op");
                let problem = (entry.numbers.op)(numbers, None, Precision::F32).expect("extents");
                let choice = untuned(&*problem, WorkGroup::Table, &limits);
                assert!(choice.is_ok(), "{family} {op} {numbers:?}: {choice:?}");
            }
        }
    }
}
