//! Several nodes at once that a session turns into fewer, or into something else: what single nodes at random seldom
//! become together.

use crate::draw;
use crate::generate::Draft;
use crate::random::Kind;
use crate::recipe::{Make, Origin, Part, Step, Tensor};
use diptych::{
    Activation, Bits, Conv2d, Depthwise, Function, Gemm, Padding, Pointwise, Pool, Pooling, Reduction,
    Softmax,
    nn::{AxisRange, CumSum, Normalize, PadMode},
};

/// What was added, or none of it is of use.
type Drawn = Option<usize>;

pub(crate) fn unary(draft: &mut Draft, function: Function, x: usize) -> Drawn {
    draft.add(Step::of(Make::Elementwise(function, vec![Part::Argument(0)]), vec![x]))
}

pub(crate) fn binary(draft: &mut Draft, function: Function, a: usize, b: usize) -> Drawn {
    let parts = vec![Part::Argument(0), Part::Argument(1)];
    draft.add(Step::of(Make::Elementwise(function, parts), vec![a, b]))
}

pub(crate) fn number(draft: &mut Draft, function: Function, x: usize, number: f32) -> Drawn {
    let parts = vec![Part::Argument(0), Part::Number(number)];
    draft.add(Step::of(Make::Elementwise(function, parts), vec![x]))
}

fn constant(draft: &mut Draft, dims: &[usize]) -> usize {
    let values = draft.random.values(Kind::Positive, dims.iter().product());
    draft.given(dims, values, Origin::Constant)
}

fn weights(draft: &mut Draft, dims: &[usize]) -> Option<Tensor> {
    let values = draft.random.values(Kind::Small, dims.iter().product());
    let halves = draft.random.one_in(4);
    Some(Tensor { dims: dims.to_vec(), values, halves })
}

fn pointwise(draft: &mut Draft, x: usize, oc: usize, activation: Activation, bias: bool) -> Drawn {
    let c = draft.dims(x).last().copied()?;
    let mut step = Step::of(Make::Pointwise(Pointwise { activation }), vec![x]);
    step.weights = weights(draft, &[oc, 1, 1, c]);
    step.bias = bias.then(|| draft.random.values(Kind::Noise, oc));
    draft.add(step)
}

/// An activation as nodes.
pub(crate) fn activated(draft: &mut Draft, x: usize) -> Drawn {
    use Function::{Gelu, HardSigmoid, HardSwish, Relu, Relu6, Sigmoid, Tanh};
    match draft.random.below(6) {
        0 => {
            let factor = unary(draft, Sigmoid, x)?;
            binary(draft, Function::Mul, x, factor)
        }
        1 => {
            let moved = number(draft, Function::Add, x, 3.0)?;
            let cut = unary(draft, Relu6, moved)?;
            let product = binary(draft, Function::Mul, x, cut)?;
            number(draft, Function::Div, product, 6.0)
        }
        2 => number(draft, Function::LeakyRelu, x, 0.125),
        3 => {
            let c = draft.dims(x).last().copied()?;
            let slopes = constant(draft, &[c]);
            binary(draft, Function::PRelu, x, slopes)
        }
        _ => {
            let function = draft.random.pick(&[Relu, Relu6, Sigmoid, Tanh, HardSwish, HardSigmoid, Gelu]);
            unary(draft, function, x)
        }
    }
}

/// A sum over channels, its scale, its bias, its activation and a residual, each a node.
fn finished(draft: &mut Draft) -> Drawn {
    let x = draw::map(draft);
    let oc = draft.random.pick(&[1, 3, 4, 5, 8, 12]);
    let bias = draft.random.one_in(2);
    let mut y = match draft.random.below(3) {
        0 => pointwise(draft, x, oc, Activation::None, bias)?,
        1 => {
            let c = draft.dims(x)[3];
            let options = Conv2d { padding: Padding::Same, ..Conv2d::default() };
            let mut step = Step::of(Make::Conv2d(options), vec![x]);
            step.weights = weights(draft, &[oc, 3, 3, c]);
            draft.add(step)?
        }
        _ => {
            let c = draft.dims(x)[3];
            let options = Depthwise { padding: Padding::Same, ..Depthwise::default() };
            let mut step = Step::of(Make::Depthwise(options), vec![x]);
            step.weights = weights(draft, &[1, 3, 3, c]);
            draft.add(step)?
        }
    };
    let c = draft.dims(y)[3];
    for function in [Function::Mul, Function::Add] {
        if draft.random.below(3) > 0 {
            let rank = draft.random.pick(&[1, 4]);
            let dims = if rank == 1 { vec![c] } else { vec![1, 1, 1, c] };
            let vector = constant(draft, &dims);
            y = binary(draft, function, y, vector)?;
        }
    }
    if draft.random.one_in(2) {
        y = activated(draft, y)?;
    }
    if draft.random.one_in(2) {
        let dims = draft.dims(y);
        let other = draft.fitting(|draft, value| draft.dims(value) == dims)?;
        y = binary(draft, Function::Add, y, other)?;
    }
    if draft.random.one_in(2) { activated(draft, y) } else { Some(y) }
}

/// A dense layer whose result is seen in other dimensions, and then its bias and activation.
fn dense(draft: &mut Draft) -> Drawn {
    let (m, k, n) =
        (draft.random.pick(&[1, 2, 6, 12]), draft.random.within(1, 9), draft.random.pick(&[1, 4, 5, 8, 12]));
    let x = draft.source(&[m, k], Kind::Noise);
    let mut step = Step::of(Make::Gemm(Gemm::default()), vec![x]);
    step.weights = weights(draft, &[k, n]);
    let y = draft.add(step)?;
    let target = if m.is_multiple_of(2) { vec![2, m / 2, n] } else { vec![1, m, 1, n] };
    let y = draft.add(Step::of(Make::Reshape(target), vec![y]))?;
    let bias = constant(draft, &[n]);
    let y = binary(draft, Function::Add, y, bias)?;
    activated(draft, y)
}

/// A map weighted by what two convolutions make of its means.
fn gate(draft: &mut Draft) -> Drawn {
    let x = draw::map(draft);
    let [_, h, w, c] = draft.dims(x)[..] else { return None };
    let pixel = if draft.random.one_in(2) {
        draft.add(Step::of(Make::Reduce(Reduction::Mean, vec![1, 2], true), vec![x]))?
    } else {
        draft.add(Step::of(Make::Pool(Pool::new(Pooling::Average, [h, w])), vec![x]))?
    };
    let hidden = draft.random.pick(&[1, 2, 3, 4, 8, 8, 140]);
    let between = pointwise(draft, pixel, hidden, Activation::Relu, true)?;
    let last = draft.random.pick(&[Activation::Sigmoid, Activation::None]);
    let mut factor = pointwise(draft, between, c, last, true)?;
    if last == Activation::None && draft.random.one_in(3) {
        factor = number(draft, Function::Add, factor, 3.0)?;
        factor = unary(draft, Function::Relu6, factor)?;
        factor = number(draft, Function::Div, factor, 6.0)?;
    } else if last == Activation::None {
        let function = draft.random.pick(&[Function::Sigmoid, Function::Relu6, Function::HardSigmoid]);
        factor = unary(draft, function, factor)?;
    }
    let y = if draft.random.one_in(2) {
        binary(draft, Function::Mul, x, factor)?
    } else {
        binary(draft, Function::Mul, factor, x)?
    };
    if draft.random.one_in(2) {
        let dims = draft.dims(y);
        let other = draft.fitting(|draft, value| draft.dims(value) == dims)?;
        return binary(draft, Function::Add, y, other);
    }
    Some(y)
}

/// The head of a classifier, of a small map or of one that work-groups share.
fn head(draft: &mut Draft) -> Drawn {
    let x = if draft.random.one_in(3) {
        let (h, w) = (draft.random.pick(&[33, 64, 71]), draft.random.pick(&[61, 65]));
        let c = draft.random.pick(&[1, 2, 5]);
        let values = draft.random.values(Kind::Noise, h * w * c);
        draft.given(&[1, h, w, c], values, Origin::Input)
    } else {
        draw::map(draft)
    };
    let [n, h, w, c] = draft.dims(x)[..] else { return None };
    let outputs = draft.random.pick(&[1, 2, 3, 4, 10]);
    let mean = match draft.random.below(3) {
        0 => draft.add(Step::of(Make::Pool(Pool::new(Pooling::Average, [h, w])), vec![x]))?,
        which => draft.add(Step::of(Make::Reduce(Reduction::Mean, vec![1, 2], which == 1), vec![x]))?,
    };
    if draft.dims(mean).len() == 4 && draft.random.one_in(2) {
        return pointwise(draft, mean, outputs, Activation::Relu, true);
    }
    let flat = match draft.dims(mean).len() {
        4 => draft.add(Step::of(Make::Reshape(vec![n, c]), vec![mean]))?,
        _ => mean,
    };
    let transpose_b = draft.random.one_in(2);
    let mut step = Step::of(Make::Gemm(Gemm { transpose_b, ..Gemm::default() }), vec![flat]);
    step.weights = weights(draft, &if transpose_b { [outputs, c] } else { [c, outputs] });
    draft.add(step)
}

/// Two products of one input, and a function of both.
fn gated(draft: &mut Draft) -> Drawn {
    let (m, k) = (draft.random.pick(&[1, 2, 6]), draft.random.pick(&[4, 7, 33]));
    let n = draft.random.pick(&[1, 4, 5, 12, 36]);
    let dims = if draft.random.one_in(2) { vec![m, k] } else { vec![1, m, k] };
    let x = draft.source(&dims, Kind::Noise);
    let transpose_b = draft.random.one_in(2);
    let product = |draft: &mut Draft| {
        let mut step = Step::of(Make::Gemm(Gemm { transpose_b, ..Gemm::default() }), vec![x]);
        step.weights = weights(draft, &if transpose_b { [n, k] } else { [k, n] });
        step.bias = draft.random.one_in(2).then(|| draft.random.values(Kind::Noise, n));
        draft.add(step)
    };
    let (gate, up) = (product(draft)?, product(draft)?);
    let gate = activated(draft, gate)?;
    let up = if draft.random.one_in(4) { unary(draft, Function::Relu, up)? } else { up };
    match draft.random.below(3) {
        0 => binary(draft, Function::Mul, gate, up),
        1 => binary(draft, Function::Mul, up, gate),
        _ => binary(draft, Function::Sub, up, gate),
    }
}

/// A normalisation as a converter writes it out.
fn normalisation(draft: &mut Draft) -> Drawn {
    let x = draft.any();
    let rank = draft.dims(x).len();
    if rank == 0 {
        return None;
    }
    let axes = if rank == 4 && draft.random.one_in(2) { vec![1, 2] } else { vec![-1] };
    let reduced = |draft: &mut Draft, x: usize| {
        draft.add(Step::of(Make::Reduce(Reduction::Mean, axes.clone(), true), vec![x]))
    };
    if draft.random.one_in(3) {
        return root_mean_square(draft, x, &reduced);
    }
    let mean = reduced(draft, x)?;
    let squares = if draft.random.one_in(2) {
        binary(draft, Function::SquaredDifference, x, mean)?
    } else {
        let difference = binary(draft, Function::Sub, x, mean)?;
        unary(draft, Function::Square, difference)?
    };
    let variance = reduced(draft, squares)?;
    let moved = number(draft, Function::Add, variance, 1e-3)?;
    let root = unary(draft, Function::Rsqrt, moved)?;
    let c = draft.dims(x).last().copied()?;
    let root = if draft.random.one_in(2) {
        let scale = constant(draft, &[c]);
        binary(draft, Function::Mul, root, scale)?
    } else {
        root
    };
    if draft.random.one_in(2) {
        let difference = binary(draft, Function::Sub, x, mean)?;
        return binary(draft, Function::Mul, difference, root);
    }
    let (scaled, mean) = (binary(draft, Function::Mul, x, root)?, binary(draft, Function::Mul, mean, root)?);
    if draft.random.one_in(2) {
        return binary(draft, Function::Sub, scaled, mean);
    }
    let bias = constant(draft, &[c]);
    let bias = binary(draft, Function::Sub, bias, mean)?;
    binary(draft, Function::Add, scaled, bias)
}

/// A normalisation without the mean as a converter writes it out, with means that `reduced` adds.
fn root_mean_square(
    draft: &mut Draft,
    x: usize,
    reduced: &dyn Fn(&mut Draft, usize) -> Option<usize>,
) -> Drawn {
    let squares = match draft.random.one_in(2) {
        true => unary(draft, Function::Square, x)?,
        false => binary(draft, Function::Mul, x, x)?,
    };
    let mean = reduced(draft, squares)?;
    let moved = number(draft, Function::Add, mean, 1e-3)?;
    let y = match draft.random.below(3) {
        0 => {
            let root = unary(draft, Function::Rsqrt, moved)?;
            binary(draft, Function::Mul, x, root)?
        }
        1 => {
            let root = unary(draft, Function::Sqrt, moved)?;
            let root = unary(draft, Function::Reciprocal, root)?;
            binary(draft, Function::Mul, root, x)?
        }
        _ => {
            let root = unary(draft, Function::Sqrt, moved)?;
            binary(draft, Function::Div, x, root)?
        }
    };
    if draft.random.one_in(3) {
        return Some(y);
    }
    let c = draft.dims(x).last().copied()?;
    let scale = constant(draft, &[c]);
    binary(draft, Function::Mul, scale, y)
}

/// A softmax as a converter writes it out.
fn softmax(draft: &mut Draft) -> Drawn {
    let x = draft.any();
    if draft.dims(x).is_empty() {
        return None;
    }
    let reduced = |draft: &mut Draft, reduction, x: usize| {
        draft.add(Step::of(Make::Reduce(reduction, vec![-1], true), vec![x]))
    };
    let largest = reduced(draft, Reduction::Max, x)?;
    let moved = binary(draft, Function::Sub, x, largest)?;
    let powers = unary(draft, Function::Exp, moved)?;
    let sum = reduced(draft, Reduction::Sum, powers)?;
    binary(draft, Function::Div, powers, sum)
}

/// Several convolutions of one input, alone or one behind the other.
fn siblings(draft: &mut Draft) -> Drawn {
    let mut x = draw::map(draft);
    if draft.random.one_in(2) {
        x = draft.add(Step::of(Make::Reduce(Reduction::Mean, vec![1, 2], true), vec![x]))?;
    }
    let mut heads = Vec::new();
    let activation = draft.random.pick(&[Activation::None, Activation::Relu]);
    for _ in 0..draft.random.within(2, 4) {
        let (oc, bias) = (draft.random.pick(&[1, 2, 3, 4, 6, 8]), draft.random.one_in(2));
        heads.push(pointwise(draft, x, oc, activation, bias)?);
    }
    if draft.random.one_in(2) {
        // What stays in the network.
        heads = heads.into_iter().map(|head| activated(draft, head)).collect::<Option<_>>()?;
    }
    if draft.random.one_in(2) {
        let axis = draft.random.pick(&[-1, 3]);
        return draft.add(Step::of(Make::Concat(axis), heads));
    }
    heads.last().copied()
}

/// A border, and a window over it.
pub(crate) fn bordered(draft: &mut Draft) -> Drawn {
    let x = draw::map(draft);
    let mode = draft.random.pick(&[
        PadMode::Constant(Bits(0.0)),
        PadMode::Constant(Bits(0.0)),
        PadMode::Constant(Bits(1.0)),
        PadMode::Reflect,
        PadMode::Symmetric,
        PadMode::Edge,
    ]);
    let mut sides = || vec![0, draft.random.below(3), draft.random.below(3), 0];
    let (before, after) = (sides(), sides());
    let padded = draft.add(Step::of(Make::Pad(before, after, mode), vec![x]))?;
    let c = draft.dims(padded)[3];
    let step = match draft.random.below(3) {
        0 => Step::of(
            Make::Pool(Pool::new(draft.random.pick(&[Pooling::Max, Pooling::Average]), [2, 2])),
            vec![padded],
        ),
        1 => Step {
            weights: weights(draft, &[1, 3, 3, c]),
            ..Step::of(Make::Depthwise(Depthwise::default()), vec![padded])
        },
        _ => Step {
            weights: weights(draft, &[3, 3, 3, c]),
            ..Step::of(Make::Conv2d(Conv2d::default()), vec![padded])
        },
    };
    draft.add(step)
}

/// A depthwise convolution and a 1x1 convolution behind it.
fn separable(draft: &mut Draft) -> Drawn {
    let x = draw::map(draft);
    let c = draft.dims(x)[3];
    let activation = draft.random.pick(&[Activation::None, Activation::Relu6, Activation::HardSwish]);
    let stride = draft.random.pick(&[[1, 1], [2, 2]]);
    let options = Depthwise { padding: Padding::Same, activation, stride, ..Depthwise::default() };
    let mut step = Step::of(Make::Depthwise(options), vec![x]);
    step.weights = weights(draft, &[1, 3, 3, c]);
    step.bias = Some(draft.random.values(Kind::Noise, c));
    let between = draft.add(step)?;
    let (oc, last) =
        (draft.random.pick(&[c, c, 1, 4, 7, 8]), draft.random.pick(&[Activation::None, Activation::Relu]));
    let y = pointwise(draft, between, oc, last, true)?;
    if draft.dims(x) == draft.dims(y) { binary(draft, Function::Add, y, x) } else { Some(y) }
}

/// Parts of a value, each changed, joined again.
fn parted(draft: &mut Draft) -> Drawn {
    let x = draft.any();
    let dims = draft.dims(x);
    let axis = dims.iter().rposition(|&extent| extent > 1)?;
    let first = draft.random.within(1, dims[axis] - 1);
    let sizes = vec![first, dims[axis] - first];
    let mut parts = Vec::new();
    for which in 0..2 {
        let part = draft.add(Step::of(Make::Split(axis as isize, sizes.clone(), which), vec![x]))?;
        parts.push(if draft.random.one_in(2) { activated(draft, part)? } else { part });
    }
    if draft.random.one_in(2) {
        parts.reverse();
    }
    draft.add(Step::of(Make::Concat(axis as isize), parts))
}

/// Attention: weights from products, and their product with values.
fn attention(draft: &mut Draft) -> Drawn {
    let (heads, rows, depth) =
        (draft.random.within(1, 3), draft.random.within(1, 7), draft.random.within(1, 8));
    let dims = [heads, rows, depth];
    let [q, k, v] = [(); 3].map(|()| draft.source(&dims, Kind::Noise));
    let by = Gemm { transpose_b: true, ..Gemm::default() };
    let products = draft.add(Step::of(Make::Gemm(by), vec![q, k]))?;
    let scaled = number(draft, Function::Mul, products, 0.5)?;
    let weights = draft.add(Step::of(Make::Softmax(Softmax::default()), vec![scaled]))?;
    draft.add(Step::of(Make::Gemm(Gemm::default()), vec![weights, v]))
}

/// Something between two transpositions.
fn turned(draft: &mut Draft) -> Drawn {
    let x = draw::map(draft);
    let planes = draft.add(Step::of(Make::Transpose(vec![0, 3, 1, 2]), vec![x]))?;
    let y = if draft.random.one_in(2) {
        activated(draft, planes)?
    } else {
        let halves = AxisRange { begin: None, end: None, step: 2 };
        let ranges = vec![AxisRange::ALL, AxisRange::ALL, halves, AxisRange::ALL];
        draft.add(Step::of(Make::StridedSlice(ranges), vec![planes]))?
    };
    draft.add(Step::of(Make::Transpose(vec![0, 2, 3, 1]), vec![y]))
}

/// A normalisation of a map that two kernels share.
pub(crate) fn large(draft: &mut Draft) -> Drawn {
    if draft.random.one_in(3) {
        return long_rows(draft);
    }
    let (h, w) = (draft.random.pick(&[97, 101, 128]), draft.random.pick(&[96, 103]));
    let c = draft.random.pick(&[1, 1, 2, 3]);
    let values = draft.random.values(Kind::Noise, h * w * c);
    let x = draft.given(&[1, h, w, c], values, Origin::Input);
    let mut step = Step::of(
        Make::Normalize(Normalize { axes: vec![1, 2], epsilon: Bits(1e-3), centred: draft.random.one_in(2) }),
        vec![x],
    );
    step.weights = weights(draft, &[c]);
    let y = draft.add(step)?;
    let y = if draft.random.one_in(2) { unary(draft, Function::Relu, y)? } else { y };
    draft.add(Step::of(Make::Pool(Pool::new(Pooling::Max, [9, 11])), vec![y]))
}

/// Few long rows or columns, which are normalised or reduced in parts, with functions around.
fn long_rows(draft: &mut Draft) -> Drawn {
    let (few, long) = (draft.random.pick(&[1, 2, 3, 4]), draft.random.pick(&[9600, 9999, 10_240]));
    let columns = draft.random.one_in(2);
    let dims = if columns { [long, few] } else { [few, long] };
    let values = draft.random.values(Kind::Noise, few * long);
    let x = draft.given(&dims, values, Origin::Input);
    let x = if draft.random.one_in(2) { unary(draft, Function::Tanh, x)? } else { x };
    let axes = vec![if columns { 0 } else { 1 }];
    if draft.random.one_in(2) {
        let reduction = draft.random.pick(&[Reduction::Mean, Reduction::Sum, Reduction::Max, Reduction::Min]);
        let keeps = draft.random.one_in(2);
        let y = draft.add(Step::of(Make::Reduce(reduction, axes, keeps), vec![x]))?;
        return unary(draft, Function::Neg, y);
    }
    let options = Normalize { axes: axes.clone(), epsilon: Bits(1e-3), centred: draft.random.one_in(2) };
    let mut step = Step::of(Make::Normalize(options), vec![x]);
    step.weights = weights(draft, &[dims[1]]);
    let y = draft.add(step)?;
    let y = if draft.random.one_in(2) { unary(draft, Function::Relu, y)? } else { y };
    draft.add(Step::of(Make::Reduce(Reduction::Max, axes, false), vec![y]))
}

/// A product or convolution of many channels, for kernels that split sums, or have tiles or matrix units.
fn wide(draft: &mut Draft) -> Drawn {
    let [c, oc] = [(); 2].map(|()| draft.random.pick(&[16, 24, 31, 32, 33, 48, 64, 96, 128]));
    let rows = draft.random.pick(&[1, 4, 8, 16, 31, 64, 128]);
    match draft.random.below(3) {
        0 => {
            let x = draft.source(&[rows, c], Kind::Small);
            let (transpose_b, right) = (draft.random.one_in(2), draft.random.one_in(2));
            let options = Gemm { transpose_b, ..Gemm::default() };
            let dims = if transpose_b { [oc, c] } else { [c, oc] };
            let mut step = Step::of(Make::Gemm(options), vec![x]);
            if right {
                step.arguments.push(draft.source(&dims, Kind::Small));
            } else {
                step.weights = weights(draft, &dims);
            }
            draft.add(step)
        }
        1 => {
            let x = draft.source(&[1, rows.div_ceil(8), 8.min(rows), c], Kind::Small);
            pointwise(draft, x, oc, Activation::Relu, true)
        }
        _ => {
            let x = draft.source(&[1, rows.min(9), 6, c.min(32)], Kind::Small);
            let (c, oc) = (c.min(32), oc.min(48));
            let groups = if c % 2 + oc % 2 == 0 { draft.random.pick(&[1, 1, 1, 2]) } else { 1 };
            let options =
                Conv2d { padding: Padding::Same, groups, activation: Activation::Relu, ..Conv2d::default() };
            let mut step = Step::of(Make::Conv2d(options), vec![x]);
            step.weights = weights(draft, &[oc, 3, 3, c / groups]);
            step.bias = Some(draft.random.values(Kind::Noise, oc));
            draft.add(step)
        }
    }
}

/// A row of many elements, for kernels in which a work-group shares one.
fn long(draft: &mut Draft) -> Drawn {
    let extent = draft.random.pick(&[129, 255, 256, 257, 500, 1000]);
    let rows = draft.random.within(1, 3);
    let kind = draft.random.pick(&[Kind::Noise, Kind::Fine, Kind::Whole(3)]);
    let x = draft.source(&[rows, extent], kind);
    let reduction = draft.random.pick(&Reduction::ALL[..]);
    let make = match draft.random.below(6) {
        0 => Make::Softmax(Softmax { log: draft.random.one_in(2), ..Softmax::default() }),
        1 => Make::Arg(draft.random.one_in(2), 1, true),
        2 => Make::Reduce(reduction, vec![1], true),
        3 => Make::Normalize(Normalize {
            axes: vec![-1],
            epsilon: Bits(1e-3),
            centred: draft.random.one_in(2),
        }),
        4 => Make::TopK(draft.random.within(1, 9), draft.random.one_in(2)),
        _ => Make::CumSum(CumSum {
            axis: 1,
            exclusive: draft.random.one_in(2),
            reverse: draft.random.one_in(2),
        }),
    };
    draft.add(Step::of(make, vec![x]))
}

/// Adds some nodes; none if the library refused the first of them.
pub(crate) fn add(draft: &mut Draft) -> Drawn {
    match draft.random.below(36) {
        0..=4 => finished(draft),
        5 | 6 => dense(draft),
        7 | 8 => gate(draft),
        9..=11 => normalisation(draft),
        12 | 13 => softmax(draft),
        14..=16 => siblings(draft),
        17 | 18 => bordered(draft),
        19 | 20 => separable(draft),
        21 | 22 => parted(draft),
        23 => attention(draft),
        24 | 25 => turned(draft),
        26..=28 => wide(draft),
        29 | 30 => long(draft),
        31 | 32 => head(draft),
        33 | 34 => gated(draft),
        _ if draft.random.one_in(3) => large(draft),
        _ => None,
    }
}
