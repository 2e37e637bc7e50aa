//! Draws a node for the values that there are.

use crate::generate::{Draft, MOST_ELEMENTS};
use crate::random::Kind;
use crate::recipe::{Make, Origin, Own, Part, Step, Tensor};
use diptych::{
    Activation, Bits, Border, Conv2d, Depthwise, Function, Gemm, Padding, Pointwise, Pool, Pooling,
    Reduction, Resize, ResizeMode, Softmax,
    nn::{AxisRange, CumSum, Normalize, OneHot, PadMode, Suppress, TransposedConv2d},
};

const EXTENTS: [usize; 12] = [1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13];
const CHANNELS: [usize; 12] = [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17];

/// Dimensions of a rank with few elements.
fn dims(draft: &mut Draft, rank: usize) -> Vec<usize> {
    let mut dims: Vec<usize> = (0..rank).map(|_| draft.random.pick(&EXTENTS)).collect();
    if rank == 4 {
        dims[0] = draft.random.pick(&[1, 1, 1, 2, 3]);
        dims[3] = draft.random.pick(&CHANNELS);
    }
    while dims.iter().product::<usize>() > MOST_ELEMENTS / 4 {
        let axis = draft.random.below(rank);
        dims[axis] = dims[axis].div_ceil(2);
    }
    dims
}

fn kind(draft: &mut Draft) -> Kind {
    draft.random.pick(&[
        Kind::Noise,
        Kind::Noise,
        Kind::Noise,
        Kind::Fine,
        Kind::Positive,
        Kind::Whole(3),
        Kind::Wide,
    ])
}

/// The first input.
pub(crate) fn first(draft: &mut Draft) {
    let rank = draft.random.pick(&[4, 4, 4, 4, 4, 4, 3, 2, 1, 0, 5, 6]);
    let (dims, kind) = (dims(draft, rank), kind(draft));
    let values = draft.random.values(kind, dims.iter().product());
    draft.given(&dims, values, Origin::Input);
}

fn activation(draft: &mut Draft, slopes: bool) -> Activation {
    use Activation::{HardSigmoid, HardSwish, LeakyRelu, None, PRelu, Relu, Relu6, Sigmoid, Tanh};
    let found = draft.random.pick(&[
        None,
        None,
        None,
        None,
        Relu,
        Relu,
        Relu6,
        LeakyRelu(Bits(0.125)),
        PRelu,
        Sigmoid,
        Tanh,
        HardSwish,
        HardSigmoid,
    ]);
    if found == PRelu && !slopes { None } else { found }
}

fn padding(draft: &mut Draft) -> Padding {
    let mut side = || draft.random.below(3);
    let explicit = Padding::Explicit { top: side(), bottom: side(), left: side(), right: side() };
    draft.random.pick(&[Padding::Same, Padding::Same, Padding::Valid, explicit])
}

/// A feature map.
pub(crate) fn map(draft: &mut Draft) -> usize {
    if let Some(found) = draft.fitting(|draft, value| draft.dims(value).len() == 4)
        && !draft.random.one_in(12)
    {
        return found;
    }
    let (dims, kind) = (dims(draft, 4), kind(draft));
    draft.source(&dims, kind)
}

fn tensor(draft: &mut Draft, dims: &[usize]) -> Tensor {
    let kind = draft.random.pick(&[Kind::Small, Kind::Small, Kind::Fine]);
    Tensor { dims: dims.to_vec(), values: draft.random.values(kind, dims.iter().product()), halves: false }
}

/// Weights, and what goes with a sum over `channels` results.
fn weighted(
    draft: &mut Draft,
    make: Make,
    x: usize,
    weights: &[usize],
    channels: usize,
    prelu: bool,
) -> Step {
    let mut step = Step::of(make, vec![x]);
    step.weights = Some(tensor(draft, weights));
    if draft.random.below(3) > 0 {
        step.bias = Some(draft.random.values(Kind::Noise, channels));
    }
    if prelu {
        step.slope = Some(draft.random.values(Kind::Noise, channels));
    }
    step
}

/// Adds a residual of the step's shape, if there is such a value.
fn residual(draft: &mut Draft, mut step: Step, shape: &[usize]) -> Step {
    if draft.random.one_in(4) {
        let found = draft.fitting(|draft, value| draft.dims(value) == shape);
        let value = match found {
            Some(found) => found,
            None => draft.source(shape, Kind::Noise),
        };
        step.arguments.push(value);
        step.residual = true;
    }
    step
}

fn conv2d(draft: &mut Draft) -> Step {
    let x = map(draft);
    let [_, h, w, c] = draft.dims(x)[..] else { return pool(draft) };
    let groups: Vec<usize> = (1..=c).filter(|groups| c % groups == 0).collect();
    let groups = if draft.random.one_in(3) { draft.random.pick(&groups) } else { 1 };
    let oc = groups
        * draft.random.pick(&[1, 1, 2, 3, 4, 5]).max(if groups == 1 {
            draft.random.pick(&CHANNELS)
        } else {
            1
        });
    let activation = activation(draft, true);
    let (kh, kw) =
        if draft.random.one_in(2) { (3, 3) } else { (draft.random.within(1, 5), draft.random.within(1, 5)) };
    let stride = draft.random.pick(&[[1, 1], [1, 1], [2, 2], [1, 2], [3, 1]]);
    let options = Conv2d {
        stride,
        dilation: draft.random.pick(&[[1, 1], [1, 1], [1, 1], [2, 2], [1, 2]]),
        padding: padding(draft),
        border: draft.random.pick(&[
            Border::Zeros,
            Border::Zeros,
            Border::Zeros,
            Border::Reflect,
            Border::Symmetric,
            Border::Edge,
        ]),
        groups,
        activation,
    };
    let step = weighted(
        draft,
        Make::Conv2d(options),
        x,
        &[oc, kh, kw, c / groups],
        oc,
        activation == Activation::PRelu,
    );
    if stride == [1, 1] && options.padding == Padding::Same {
        let n = draft.dims(x)[0];
        return residual(draft, step, &[n, h, w, oc]);
    }
    step
}

fn depthwise(draft: &mut Draft) -> Step {
    let x = map(draft);
    let [n, h, w, c] = draft.dims(x)[..] else { return pool(draft) };
    let channels = c * draft.random.pick(&[1, 1, 1, 2, 3]);
    let activation = activation(draft, true);
    let stride = draft.random.pick(&[[1, 1], [1, 1], [2, 2], [1, 2]]);
    let options = Depthwise {
        stride,
        dilation: draft.random.pick(&[[1, 1], [1, 1], [2, 2], [1, 3]]),
        padding: padding(draft),
        activation,
    };
    let window = [1, draft.random.within(1, 5), draft.random.within(1, 5), channels];
    let step =
        weighted(draft, Make::Depthwise(options), x, &window, channels, activation == Activation::PRelu);
    if stride == [1, 1] && options.padding == Padding::Same {
        return residual(draft, step, &[n, h, w, channels]);
    }
    step
}

fn pointwise(draft: &mut Draft) -> Step {
    let x = map(draft);
    let [n, h, w, c] = draft.dims(x)[..] else { return pool(draft) };
    let oc = draft.random.pick(&CHANNELS);
    let activation = activation(draft, true);
    let make = Make::Pointwise(Pointwise { activation });
    let step = weighted(draft, make, x, &[oc, 1, 1, c], oc, activation == Activation::PRelu);
    residual(draft, step, &[n, h, w, oc])
}

fn transposed_conv2d(draft: &mut Draft) -> Step {
    let x = map(draft);
    let c = draft.dims(x).last().copied().unwrap_or(1);
    let oc = draft.random.pick(&[1, 2, 3, 4, 5, 8]);
    let activation = activation(draft, true);
    let options = TransposedConv2d {
        stride: draft.random.pick(&[[1, 1], [2, 2], [1, 2], [3, 2]]),
        padding: padding(draft),
        output: None,
        activation,
    };
    let weights = [oc, draft.random.within(1, 4), draft.random.within(1, 4), c];
    weighted(draft, Make::TransposedConv2d(options), x, &weights, oc, activation == Activation::PRelu)
}

fn pool(draft: &mut Draft) -> Step {
    let x = map(draft);
    let (h, w) = (draft.dims(x)[1], draft.dims(x)[2]);
    let whole = draft.random.one_in(5);
    let window = if whole { [h, w] } else { [draft.random.within(1, 4), draft.random.within(1, 4)] };
    let options = Pool {
        pooling: draft.random.pick(&[Pooling::Max, Pooling::Average]),
        window,
        stride: draft.random.pick(&[[1, 1], [2, 2], [1, 2], window]),
        padding: if whole { Padding::Valid } else { padding(draft) },
        activation: if draft.random.one_in(3) { activation(draft, false) } else { Activation::None },
    };
    Step::of(Make::Pool(options), vec![x])
}

fn gemm(draft: &mut Draft) -> Option<Step> {
    let is_matrix = |dims: &[usize]| matches!(dims, [_, _] | [_, _, _] | [_, 1, _, _]);
    let x = match draft.fitting(|draft, value| is_matrix(&draft.dims(value))) {
        Some(found) if !draft.random.one_in(5) => found,
        _ => {
            let rank = draft.random.pick(&[2, 2, 3]);
            let dims = dims(draft, rank);
            draft.source(&dims, Kind::Noise)
        }
    };
    let dims = draft.dims(x);
    let (transpose_a, transpose_b) = (draft.random.one_in(4), draft.random.one_in(3));
    let [rows, columns] = *dims.last_chunk::<2>()?;
    let (m, k) = if transpose_a { (columns, rows) } else { (rows, columns) };
    let n = draft.random.pick(&CHANNELS);
    let own = if transpose_b { [n, k] } else { [k, n] };
    let activation = activation(draft, true);
    let alpha = Bits(draft.random.pick(&[1.0, 1.0, 0.5, -0.75]));
    let options = Gemm { alpha, transpose_a, transpose_b, activation, ..Gemm::default() };
    let batch = &dims[..dims.len() - 2];
    let mut step = if draft.random.one_in(2) {
        weighted(draft, Make::Gemm(options), x, &own, n, activation == Activation::PRelu)
    } else {
        let right: Vec<usize> = if draft.random.one_in(2) { own.to_vec() } else { [batch, &own].concat() };
        let right = match draft.fitting(|draft, value| draft.dims(value) == right) {
            Some(found) => found,
            None => draft.source(&right, Kind::Small),
        };
        let mut step = weighted(draft, Make::Gemm(options), x, &own, n, activation == Activation::PRelu);
        (step.weights, step.arguments) = (None, vec![x, right]);
        step
    };
    if draft.random.one_in(3) {
        step = residual(draft, step, &[batch, &[m, n]].concat());
    }
    Some(step)
}

/// Functions that are drawn, the usual ones often.
fn function(draft: &mut Draft) -> Function {
    use Function::{Add, Div, Mul, Relu, Sigmoid, Sub, Tanh};
    if draft.random.one_in(2) {
        return draft.random.pick(&[Add, Add, Mul, Mul, Sub, Div, Relu, Sigmoid, Tanh]);
    }
    draft.random.pick(Function::ALL)
}

/// Dimensions that fit `dims` by numpy's rule.
fn beside(draft: &mut Draft, dims: &[usize]) -> Vec<usize> {
    let dropped = if draft.random.one_in(3) { draft.random.below(dims.len() + 1) } else { 0 };
    let mut own = dims[dropped..].to_vec();
    if draft.random.one_in(2) {
        for extent in &mut own {
            if draft.random.one_in(2) {
                *extent = 1;
            }
        }
    }
    own
}

fn fits(a: &[usize], b: &[usize]) -> bool {
    a.iter().rev().zip(b.iter().rev()).all(|(a, b)| a == b || *a == 1 || *b == 1)
}

fn elementwise(draft: &mut Draft) -> Step {
    let (function, x) = (function(draft), draft.any());
    let (mut parts, mut arguments) = (Vec::new(), vec![x]);
    let leaky = function == Function::LeakyRelu;
    let first = if leaky { 0 } else { draft.random.below(function.arity()) };
    for place in 0..function.arity() {
        if place == first {
            parts.push(Part::Argument(0));
            continue;
        }
        if leaky || draft.random.one_in(4) {
            parts.push(Part::Number(draft.random.pick(&[0.5, 2.0, -1.0, 1.0, 3.0, 0.1, 0.0])));
            continue;
        }
        let dims = draft.dims(x);
        let other = draft.fitting(|draft, value| fits(&draft.dims(value), &dims));
        let other = match other {
            Some(other) if !draft.random.one_in(3) => other,
            _ => {
                let (dims, kind) = (beside(draft, &dims), kind(draft));
                draft.source(&dims, kind)
            }
        };
        parts.push(Part::Argument(arguments.len()));
        arguments.push(other);
    }
    Step::of(Make::Elementwise(function, parts), arguments)
}

fn axis(draft: &mut Draft, rank: usize) -> isize {
    let axis = draft.random.below(rank.max(1)) as isize;
    if draft.random.one_in(2) { axis - rank.max(1) as isize } else { axis }
}

/// The factors of a count, in so many extents.
fn reshape(draft: &mut Draft) -> Step {
    let x = draft.any();
    let mut rest: usize = draft.dims(x).iter().product();
    let rank = draft.random.pick(&[1, 2, 3, 4, 4, 4, 5, 6]);
    let mut target = Vec::new();
    for _ in 1..rank {
        let factors: Vec<usize> = (1..=rest).filter(|factor| rest.is_multiple_of(*factor)).collect();
        let factor = draft.random.pick(&factors);
        target.push(factor);
        rest /= factor;
    }
    let place = draft.random.below(target.len() + 1);
    target.insert(place, rest);
    if target == [1] && draft.random.one_in(2) {
        target.clear();
    }
    Step::of(Make::Reshape(target), vec![x])
}

fn slice(draft: &mut Draft) -> Option<Step> {
    let x = draft.any();
    let dims = draft.dims(x);
    let axis = dims.iter().position(|&extent| extent > 1)?;
    let begin = draft.random.below(dims[axis]);
    let end = draft.random.within(begin + 1, dims[axis]);
    Some(Step::of(Make::Slice(axis, [begin, end]), vec![x]))
}

fn strided_slice(draft: &mut Draft) -> Step {
    let x = draft.any();
    let mut ranges = Vec::new();
    for extent in draft.dims(x) {
        let begin = draft.random.below(extent) as isize;
        let end = draft.random.within(begin as usize + 1, extent) as isize;
        let step = draft.random.pick(&[1, 1, 2, 3]);
        let minus = -draft.random.pick(&[1, 1, 2]);
        ranges.push(match draft.random.below(5) {
            0 | 1 => AxisRange::ALL,
            2 => AxisRange { begin: Some(begin), end: Some(end), step },
            3 => AxisRange { begin: Some(begin - extent as isize), end: None, step },
            _ => AxisRange { begin: None, end: None, step: minus },
        });
    }
    Step::of(Make::StridedSlice(ranges), vec![x])
}

fn each(draft: &mut Draft, x: usize, of: &[usize]) -> Vec<usize> {
    draft.dims(x).iter().map(|_| draft.random.pick(of)).collect()
}

fn move_of(draft: &mut Draft) -> Option<Step> {
    let x = draft.any();
    let dims = draft.dims(x);
    let rank = dims.len();
    Some(match draft.random.below(9) {
        0 => Step::of(Make::Transpose(draft.random.permutation(rank)), vec![x]),
        1 => {
            let modes = [
                PadMode::Constant(Bits(0.0)),
                PadMode::Constant(Bits(-1.5)),
                PadMode::Reflect,
                PadMode::Symmetric,
                PadMode::Edge,
            ];
            let (before, after) = (each(draft, x, &[0, 0, 1, 2]), each(draft, x, &[0, 0, 1, 2]));
            Step::of(Make::Pad(before, after, draft.random.pick(&modes)), vec![x])
        }
        2 => Step::of(Make::Tile(each(draft, x, &[1, 1, 2, 3])), vec![x]),
        3 => {
            let mut target = dims.clone();
            target
                .iter_mut()
                .filter(|extent| **extent == 1)
                .for_each(|extent| *extent = draft.random.within(1, 4));
            while target.len() < 6 && draft.random.one_in(3) {
                target.insert(0, draft.random.within(1, 3));
            }
            Step::of(Make::BroadcastTo(target), vec![x])
        }
        4 => {
            let axes: Vec<isize> = (0..rank as isize).filter(|_| draft.random.one_in(2)).collect();
            Step::of(Make::Reverse(axes), vec![x])
        }
        5 => strided_slice(draft),
        6 => {
            let x = map(draft);
            let block = draft.random.pick(&[1, 2, 2, 3]);
            Step::of(draft.random.pick(&[Make::DepthToSpace(block), Make::SpaceToDepth(block)]), vec![x])
        }
        7 => {
            let x = map(draft);
            let dims = draft.dims(x);
            let block = [draft.random.pick(&[1, 2, 2, 3]), draft.random.pick(&[1, 2, 2, 3])];
            let whole = |axis: usize| (block[axis] - dims[1 + axis] % block[axis]) % block[axis];
            let after = vec![whole(0), whole(1)];
            Step::of(Make::SpaceToBatch(block.to_vec(), vec![0; 2], after), vec![x])
        }
        _ => {
            let block = vec![draft.random.pick(&[1, 2]), draft.random.pick(&[1, 2, 3])];
            let n: usize = block.iter().product();
            let x = draft.fitting(|draft, value| {
                let dims = draft.dims(value);
                dims.len() >= 3 && dims[0].is_multiple_of(n)
            })?;
            let cuts = || vec![0; 2];
            let (mut before, after) = (cuts(), cuts());
            before[0] = draft.random.below(2);
            Step::of(Make::BatchToSpace(block, before, after), vec![x])
        }
    })
}

fn joined(draft: &mut Draft) -> Option<Step> {
    let x = draft.any();
    let dims = draft.dims(x);
    if dims.is_empty() || draft.random.one_in(4) {
        let same = draft.fitting(|draft, value| draft.dims(value) == dims)?;
        let axis = axis(draft, dims.len() + 1);
        return Some(Step::of(Make::Stack(axis), vec![x, same]));
    }
    let axis = axis(draft, dims.len());
    let at = axis.rem_euclid(dims.len() as isize) as usize;
    if draft.random.one_in(3) {
        let first = draft.random.within(1, dims[at]);
        let sizes = if first == dims[at] { vec![first] } else { vec![first, dims[at] - first] };
        let which = draft.random.below(sizes.len());
        return Some(Step::of(Make::Split(axis, sizes, which), vec![x]));
    }
    let mut arguments = vec![x];
    for _ in 0..draft.random.pick(&[1, 1, 2, 3, 8]) {
        let alike = |own: &[usize]| {
            own.len() == dims.len()
                && own.iter().zip(&dims).enumerate().all(|(axis, (a, b))| axis == at || a == b)
        };
        let found = draft.fitting(|draft, value| alike(&draft.dims(value)));
        arguments.push(match found {
            Some(found) if !draft.random.one_in(3) => found,
            _ => {
                let mut own = dims.clone();
                own[at] = draft.random.within(1, 5);
                draft.source(&own, Kind::Noise)
            }
        });
    }
    let turned = draft.random.permutation(arguments.len());
    Some(Step::of(Make::Concat(axis), turned.into_iter().map(|at| arguments[at]).collect()))
}

fn looked_up(draft: &mut Draft) -> Option<Step> {
    let x = draft.any();
    let dims = draft.dims(x);
    match draft.random.below(3) {
        0 if !dims.is_empty() => {
            let axis = axis(draft, dims.len());
            let at = axis.rem_euclid(dims.len() as isize) as usize;
            let batch_dims = if at > 0 && draft.random.one_in(3) { 1 } else { 0 };
            let mut own = dims[..batch_dims].to_vec();
            for _ in 0..draft.random.below(3) {
                own.push(draft.random.within(1, 4));
            }
            let extent = dims[at] + usize::from(draft.random.one_in(4));
            let indices = draft.source(&own, Kind::Index(extent));
            Some(Step::of(Make::Gather(axis, batch_dims), vec![x, indices]))
        }
        1 if !dims.is_empty() => {
            let axes = draft.random.within(1, dims.len());
            let rows = draft.random.within(1, 5);
            let extent = dims[..axes].iter().copied().min().unwrap_or(1);
            let indices = draft.source(&[rows, axes], Kind::Index(extent));
            Some(Step::of(Make::GatherNd, vec![x, indices]))
        }
        _ => {
            let depth = draft.random.within(1, 6);
            let whole = draft.fitting(|draft, value| draft.is_exact(value) && draft.dims(value).len() < 6);
            let indices = match whole {
                Some(found) if draft.random.one_in(3) => found,
                _ => {
                    let dims = self::dims(draft, 2);
                    draft.source(&dims, Kind::Index(depth))
                }
            };
            let axis = axis(draft, draft.dims(indices).len() + 1);
            let (on, off) = (Bits(draft.random.pick(&[1.0, 2.5])), Bits(draft.random.pick(&[0.0, -1.0])));
            Some(Step::of(Make::OneHot(OneHot { depth, on, off, axis }), vec![indices]))
        }
    }
}

/// Boxes apart from each other by more than rounding, and scores that differ.
fn suppress(draft: &mut Draft) -> Step {
    let (rows, n) = (draft.random.within(1, 3), draft.random.within(1, 9));
    let boxes: Vec<f32> = draft.random.values(Kind::Whole(6), rows * n * 4);
    let order = draft.random.permutation(rows * n);
    let scores: Vec<f32> = order.into_iter().map(|place| (place as f32 + 1.0) / 32.0).collect();
    let boxes = draft.given(&[rows, n, 4], boxes, Origin::Input);
    let scores = draft.given(&[rows, n], scores, Origin::Input);
    let options = Suppress {
        count: draft.random.within(1, n),
        overlap: Bits(draft.random.pick(&[0.3721, 0.5117])),
        score: Bits(draft.random.pick(&[0.0, 0.171875, 0.26])),
        sigma: Bits(0.0),
        strict: draft.random.one_in(2),
    };
    Step::of(Make::Suppress(options), vec![boxes, scores])
}

fn over_axes(draft: &mut Draft) -> Option<Step> {
    let x = draft.any();
    let rank = draft.dims(x).len();
    if rank == 0 {
        return None;
    }
    let along = axis(draft, rank);
    let some: Vec<isize> = (0..rank as isize).filter(|_| draft.random.one_in(2)).collect();
    let keep = draft.random.one_in(2);
    Some(match draft.random.below(8) {
        0 | 1 => {
            let reduction = draft.random.pick(&Reduction::ALL[..]);
            Step::of(Make::Reduce(reduction, some, keep), vec![x])
        }
        2 => {
            let beta = Bits(draft.random.pick(&[1.0, 1.0, 0.5, 2.0]));
            Step::of(Make::Softmax(Softmax { axis: along, beta, log: draft.random.one_in(3) }), vec![x])
        }
        3 => Step::of(Make::Arg(draft.random.one_in(2), along, keep), vec![x]),
        4 => {
            let options =
                CumSum { axis: along, exclusive: draft.random.one_in(2), reverse: draft.random.one_in(2) };
            Step::of(Make::CumSum(options), vec![x])
        }
        5 => {
            let last = draft.dims(x).last().copied().unwrap_or(1);
            Step::of(Make::TopK(draft.random.within(1, last), draft.random.one_in(2)), vec![x])
        }
        _ => {
            let maps = rank == 4 && draft.random.one_in(2);
            let axes = if maps {
                vec![1, 2]
            } else if draft.random.one_in(2) {
                vec![-1]
            } else {
                some
            };
            let epsilon = Bits(draft.random.pick(&[1e-5, 1e-3, 1.0]));
            let channels = draft.dims(x).last().copied().unwrap_or(1);
            let mut step = Step::of(
                Make::Normalize(Normalize { axes, epsilon, centred: !draft.random.one_in(3) }),
                vec![x],
            );
            if draft.random.one_in(2) {
                step.weights = Some(tensor(draft, &[channels]));
            }
            if draft.random.one_in(2) {
                step.bias = Some(draft.random.values(Kind::Noise, channels));
            }
            step
        }
    })
}

fn resize(draft: &mut Draft) -> Step {
    let x = map(draft);
    let mode = draft.random.pick(&[ResizeMode::Nearest, ResizeMode::Bilinear]);
    let size = [draft.random.within(1, 11), draft.random.within(1, 11)];
    let mut options = Resize::new(mode, size);
    match draft.random.below(3) {
        0 => options.align_corners = true,
        1 => options.half_pixel_centers = true,
        _ => {}
    }
    Step::of(Make::Resize(options), vec![x])
}

/// A node that the library may take.
pub(crate) fn step(draft: &mut Draft) -> Option<Step> {
    match draft.random.below(27) {
        26 => Some(Step::of(Make::Custom(Own::identity().ok()?), vec![draft.any()])),
        0 | 1 => Some(conv2d(draft)),
        2 | 3 => Some(depthwise(draft)),
        4 | 5 => Some(pointwise(draft)),
        6 => Some(transposed_conv2d(draft)),
        7 => Some(pool(draft)),
        8 | 9 => gemm(draft),
        10..=14 => Some(elementwise(draft)),
        15 => Some(reshape(draft)),
        16 => slice(draft),
        17 | 18 => move_of(draft),
        19 => joined(draft),
        20 => looked_up(draft),
        21 => Some(suppress(draft)),
        22 => Some(resize(draft)),
        _ => over_axes(draft),
    }
}

/// A constant of these dimensions.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn constant_of(draft: &mut Draft, dims: &[usize]) -> usize {
    let values = draft.random.values(Kind::Noise, dims.iter().product());
    draft.given(dims, values, Origin::Constant)
}
