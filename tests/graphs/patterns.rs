//! Networks around what the library rewrites: each pattern with constants of floats and of halves, as they are and transposed,
//! cut or gathered; with operands behind moves; with what lies between read elsewhere or leaving the network; and near misses.

use crate::draw;
use crate::generate::Draft;
use crate::motifs::{self, binary, number, unary};
use crate::random::Kind;
use crate::recipe::{Make, Origin, Part, Recipe, Step, Tensor};
use diptych::{
    Activation, Bits, Conv2d, DType, Depthwise, Function, Gemm, Padding, Pointwise, Pool, Pooling, Reduction,
    Rewrite, Softmax,
    nn::{AxisRange, CumSum, IntegerFunction, Normalize, OneHot, PadMode, QuantizedGemm},
};

type Drawn = Option<usize>;

/// A pattern, and the rewrites that take it.
pub(crate) struct Pattern {
    pub(crate) name: &'static str,
    pub(crate) rewrites: &'static [Rewrite],
    draw: fn(&mut Draft) -> Drawn,
}

/// Every pattern.
pub(crate) const PATTERNS: [Pattern; 29] = [
    Pattern { name: "border", rewrites: &[Rewrite::Borders], draw: border },
    Pattern { name: "normalisation", rewrites: &[Rewrite::Normalisations], draw: normalisation },
    Pattern { name: "root mean square", rewrites: &[Rewrite::RootMeanSquares], draw: root_mean_square },
    Pattern { name: "softmax", rewrites: &[Rewrite::Softmax], draw: softmax },
    Pattern { name: "attention", rewrites: &[Rewrite::Attention], draw: scores },
    Pattern { name: "projections", rewrites: &[Rewrite::Projections], draw: projections },
    Pattern {
        name: "epilogue",
        rewrites: &[Rewrite::Biases, Rewrite::Scales, Rewrite::Activations, Rewrite::Residuals],
        draw: epilogue,
    },
    Pattern { name: "functions", rewrites: &[Rewrite::Functions], draw: functions },
    Pattern { name: "functions behind", rewrites: &[Rewrite::Epilogues], draw: behind },
    Pattern { name: "factors", rewrites: &[Rewrite::Factors], draw: factors },
    Pattern { name: "moves", rewrites: &[Rewrite::Loops], draw: moves },
    Pattern { name: "patches", rewrites: &[Rewrite::Patches], draw: patches },
    Pattern { name: "gate", rewrites: &[Rewrite::Gates], draw: gate },
    Pattern { name: "squeeze", rewrites: &[Rewrite::Squeezes], draw: squeeze },
    Pattern { name: "gated products", rewrites: &[Rewrite::GatedProducts], draw: gated },
    Pattern { name: "dense layers", rewrites: &[Rewrite::DenseLayers], draw: layers },
    Pattern { name: "loops", rewrites: &[Rewrite::Loops], draw: loops },
    Pattern { name: "loops of maps", rewrites: &[Rewrite::Loops], draw: loops_of_maps },
    Pattern { name: "loops of products", rewrites: &[Rewrite::Loops], draw: loops_of_products },
    Pattern { name: "loops of integers", rewrites: &[Rewrite::Loops], draw: loops_of_integers },
    Pattern { name: "loops of indices", rewrites: &[Rewrite::Loops], draw: loops_of_indices },
    Pattern { name: "loops of rows", rewrites: &[Rewrite::Loops], draw: loops_of_rows },
    Pattern { name: "stack", rewrites: &[Rewrite::Stacks], draw: stack },
    Pattern { name: "product rows", rewrites: &[Rewrite::ProductRows], draw: product_rows },
    Pattern { name: "prologues", rewrites: &[Rewrite::Prologues], draw: prologues },
    Pattern { name: "one row", rewrites: &[Rewrite::Stacks], draw: one_row },
    Pattern { name: "read rows", rewrites: &[Rewrite::ReadRows], draw: read_rows },
    Pattern { name: "parts", rewrites: &[Rewrite::Parts], draw: parts },
    Pattern { name: "concatenation", rewrites: &[Rewrite::Concatenations], draw: concatenation },
];

/// The pattern of a seed.
pub(crate) fn of(seed: usize) -> &'static Pattern {
    &PATTERNS[seed % PATTERNS.len()]
}

/// A network around the pattern of a seed; none if nothing came of it.
pub(crate) fn recipe(seed: u64) -> Option<Recipe> {
    let pattern = of(seed as usize);
    let mut draft = Draft::new(seed | 1 << 40);
    let first = draft.count();
    let drawn = (0..8).find_map(|_| (pattern.draw)(&mut draft));
    let last = drawn?;
    // What lies between is read elsewhere.
    if draft.random.one_in(4) {
        let between = first + draft.random.below(last - first + 1);
        unary(&mut draft, Function::Neg, between);
    }
    Some(draft.recipe())
}

fn tensor(draft: &mut Draft, dims: &[usize], kind: Kind) -> Tensor {
    let values = draft.random.values(kind, dims.iter().product());
    // Those numbers are halves as they are.
    let halves = kind != Kind::Fine && draft.random.one_in(2);
    Tensor { dims: dims.to_vec(), values, halves }
}

/// A constant in the graph, of floats or of halves.
fn constant(draft: &mut Draft, dims: &[usize], kind: Kind) -> usize {
    let tensor = tensor(draft, dims, kind);
    draft.tensor(tensor, Origin::Constant)
}

/// A value of these dimensions, which is given as it is, or behind a move or a function.
fn operand(draft: &mut Draft, dims: &[usize], kind: Kind, origin: Origin) -> Drawn {
    let source = |draft: &mut Draft, dims: &[usize]| match origin {
        Origin::Constant => constant(draft, dims, kind),
        origin => {
            let values = draft.random.values(kind, dims.iter().product());
            draft.given(dims, values, origin)
        }
    };
    let rank = dims.len();
    let long = dims.iter().position(|&extent| extent > 1);
    match (draft.random.below(12), long) {
        (0 | 1, _) if rank > 1 => {
            let permutation = draft.random.permutation(rank);
            let mut before = vec![0; rank];
            permutation.iter().zip(dims).for_each(|(&axis, &extent)| before[axis] = extent);
            let x = source(draft, &before);
            draft.add(Step::of(Make::Transpose(permutation), vec![x]))
        }
        (2, Some(axis)) => {
            let (mut before, mut ranges) = (dims.to_vec(), vec![AxisRange::ALL; rank]);
            let step = draft.random.pick(&[1isize, 2, -1]);
            before[axis] = dims[axis] * step.unsigned_abs() + 1;
            ranges[axis] = match step {
                -1 => AxisRange { begin: Some(-1), end: Some(0), step },
                1 => AxisRange { begin: Some(1), end: None, step },
                _ => AxisRange { begin: Some(0), end: Some(2 * dims[axis] as isize), step },
            };
            let x = source(draft, &before);
            draft.add(Step::of(Make::StridedSlice(ranges), vec![x]))
        }
        (3, Some(axis)) => {
            let x = source(draft, dims);
            let places = draft.random.permutation(dims[axis]);
            let places = places.into_iter().map(|place| place as f32).collect();
            let places = draft.given(&[dims[axis]], places, Origin::Constant);
            draft.add(Step::of(Make::Gather(axis as isize, 0), vec![x, places]))
        }
        (4, Some(axis)) => {
            let mut before = dims.to_vec();
            before[axis] = 1;
            let x = source(draft, &before);
            draft.add(Step::of(Make::BroadcastTo(dims.to_vec()), vec![x]))
        }
        (5, _) => {
            let x = source(draft, &[dims.iter().product()]);
            draft.add(Step::of(Make::Reshape(dims.to_vec()), vec![x]))
        }
        (6, _) => {
            let x = source(draft, dims);
            if draft.random.one_in(2) {
                unary(draft, Function::Neg, x)
            } else {
                number(draft, Function::Mul, x, 0.5)
            }
        }
        (7, Some(axis)) => {
            let mut before = dims.to_vec();
            before[axis] += 2;
            let x = source(draft, &before);
            draft.add(Step::of(Make::Slice(axis, [1, 1 + dims[axis]]), vec![x]))
        }
        _ => Some(source(draft, dims)),
    }
}

fn input(draft: &mut Draft, dims: &[usize]) -> Drawn {
    operand(draft, dims, Kind::Noise, Origin::Input)
}

/// A product of rows with a constant matrix, in one of the ways that networks have it, perhaps with a bias.
fn product(draft: &mut Draft, x: usize, n: usize, options: Gemm) -> Drawn {
    let k = draft.dims(x).last().copied()?;
    let dims = if options.transpose_b { [n, k] } else { [k, n] };
    let mut step = Step::of(Make::Gemm(options), vec![x]);
    if draft.random.one_in(3) {
        step.arguments.push(operand(draft, &dims, Kind::Small, Origin::Constant)?);
    } else {
        step.weights = Some(tensor(draft, &dims, Kind::Small));
    }
    step.bias = draft.random.one_in(2).then(|| draft.random.values(Kind::Noise, n));
    draft.add(step)
}

/// A product of rows with weights of 4 or 8 bits.
fn packed(draft: &mut Draft, x: usize, n: usize, bits: usize) -> Drawn {
    let k = draft.dims(x).last().copied()?;
    let block = draft.random.pick(&[None, Some(8)]);
    let mut step = Step::of(Make::Packed(QuantizedGemm { block, ..QuantizedGemm::new(bits) }), vec![x]);
    let values = draft.random.values(Kind::Index(1 << bits), n * k);
    step.weights = Some(Tensor { dims: vec![n, k], values, halves: false });
    step.bias = draft.random.one_in(2).then(|| draft.random.values(Kind::Noise, n));
    draft.add(step)
}

fn rows_or_columns(draft: &mut Draft) -> Gemm {
    Gemm { transpose_b: draft.random.one_in(2), ..Gemm::default() }
}

fn pointwise(draft: &mut Draft, x: usize, oc: usize, activation: Activation, bias: bool) -> Drawn {
    let c = draft.dims(x).last().copied()?;
    let mut step = Step::of(Make::Pointwise(Pointwise { activation }), vec![x]);
    step.weights = Some(tensor(draft, &[oc, 1, 1, c], Kind::Small));
    step.bias = bias.then(|| draft.random.values(Kind::Noise, oc));
    draft.add(step)
}

fn map(draft: &mut Draft) -> Drawn {
    let n = draft.random.pick(&[1, 1, 2, 3]);
    let (h, w) = (draft.random.pick(&[2, 3, 5, 8]), draft.random.pick(&[1, 3, 4, 7]));
    let c = draft.random.pick(&[1, 3, 4, 5, 8, 12]);
    input(draft, &[n, h, w, c])
}

fn border(draft: &mut Draft) -> Drawn {
    map(draft)?;
    motifs::bordered(draft)
}

fn reduced(draft: &mut Draft, reduction: Reduction, axes: &[isize], x: usize) -> Drawn {
    draft.add(Step::of(Make::Reduce(reduction, axes.to_vec(), true), vec![x]))
}

/// The axes of a near miss once in a while.
fn other_axes(draft: &mut Draft, axes: &[isize], rank: usize) -> Vec<isize> {
    if rank > 1 && draft.random.one_in(6) { vec![-2] } else { axes.to_vec() }
}

fn normalisation(draft: &mut Draft) -> Drawn {
    let rank = draft.random.pick(&[2, 3, 4]);
    let dims: Vec<usize> = (0..rank).map(|_| draft.random.pick(&[1, 2, 3, 5, 8])).collect();
    let x = input(draft, &dims)?;
    let axes = if rank == 4 && draft.random.one_in(2) { vec![1, 2] } else { vec![-1] };
    let mean = reduced(draft, Reduction::Mean, &axes, x)?;
    let (form, of_squares) = (draft.random.below(3), draft.random.below(3));
    // Where nothing reads the differences, the mean is not read by them either.
    let difference =
        if form < 2 || of_squares > 0 { Some(binary(draft, Function::Sub, x, mean)?) } else { None };
    let squares = match (of_squares, difference) {
        (1, Some(difference)) => unary(draft, Function::Square, difference)?,
        (2, Some(difference)) => binary(draft, Function::Mul, difference, difference)?,
        _ => binary(draft, Function::SquaredDifference, x, mean)?,
    };
    let axes = other_axes(draft, &axes, rank);
    let variance = reduced(draft, Reduction::Mean, &axes, squares)?;
    let moved = number(draft, Function::Add, variance, 1e-2)?;
    let c = *dims.last()?;
    let extents = if draft.random.one_in(3) { vec![1, c] } else { vec![c] };
    let y = match (form, difference) {
        (0, Some(difference)) => {
            let root = unary(draft, Function::Sqrt, moved)?;
            binary(draft, Function::Div, difference, root)?
        }
        (1, Some(difference)) => {
            let root = unary(draft, Function::Rsqrt, moved)?;
            binary(draft, Function::Mul, difference, root)?
        }
        _ => {
            let root = unary(draft, Function::Rsqrt, moved)?;
            let scale = operand(draft, &extents, Kind::Positive, Origin::Constant)?;
            let root = binary(draft, Function::Mul, root, scale)?;
            let scaled = binary(draft, Function::Mul, x, root)?;
            let mean = binary(draft, Function::Mul, mean, root)?;
            if draft.random.one_in(2) {
                binary(draft, Function::Sub, scaled, mean)?
            } else {
                let bias = operand(draft, &extents, Kind::Positive, Origin::Constant)?;
                let moved = binary(draft, Function::Sub, bias, mean)?;
                binary(draft, Function::Add, scaled, moved)?
            }
        }
    };
    affine(draft, y, &extents)
}

/// A scale and a bias of each channel, or only one of these, or none; of constants, or of values.
fn affine(draft: &mut Draft, mut y: usize, extents: &[usize]) -> Drawn {
    for function in [Function::Mul, Function::Add] {
        if draft.random.below(3) > 0 {
            let origin = draft.random.pick(&[Origin::Constant, Origin::Constant, Origin::Input]);
            let vector = operand(draft, extents, Kind::Positive, origin)?;
            let both = if draft.random.one_in(2) { [y, vector] } else { [vector, y] };
            y = binary(draft, function, both[0], both[1])?;
        }
    }
    Some(y)
}

fn root_mean_square(draft: &mut Draft) -> Drawn {
    let rank = draft.random.pick(&[2, 3]);
    let dims: Vec<usize> = (0..rank).map(|_| draft.random.pick(&[1, 2, 3, 5, 8, 32])).collect();
    let x = input(draft, &dims)?;
    let other = if draft.random.one_in(6) { input(draft, &dims)? } else { x };
    let squares = if other != x || draft.random.one_in(2) {
        binary(draft, Function::Mul, x, other)?
    } else {
        unary(draft, Function::Square, x)?
    };
    let axes = other_axes(draft, &[-1], rank);
    let mean = reduced(draft, Reduction::Mean, &axes, squares)?;
    let moved = number(draft, Function::Add, mean, if other == x { 1e-2 } else { 8.0 })?;
    let y = if draft.random.one_in(2) {
        let mut root = unary(draft, Function::Rsqrt, moved)?;
        // A scale is a part of the factor.
        if draft.random.one_in(2) {
            let scale = operand(draft, &[*dims.last()?], Kind::Positive, Origin::Constant)?;
            root = binary(draft, Function::Mul, root, scale)?;
        }
        binary(draft, Function::Mul, x, root)?
    } else {
        let root = unary(draft, Function::Sqrt, moved)?;
        binary(draft, Function::Div, x, root)?
    };
    affine(draft, y, &[*dims.last()?])
}

fn softmax(draft: &mut Draft) -> Drawn {
    let rank = draft.random.pick(&[2, 3]);
    let dims: Vec<usize> = (0..rank).map(|_| draft.random.pick(&[1, 2, 3, 5, 8])).collect();
    let x = input(draft, &dims)?;
    let axis = [draft.random.pick(&[-1, -1, 0])];
    let largest = reduced(draft, Reduction::Max, &axis, x)?;
    let moved = binary(draft, Function::Sub, x, largest)?;
    let powers = unary(draft, Function::Exp, moved)?;
    let axes = other_axes(draft, &axis, rank);
    let sum = reduced(draft, Reduction::Sum, &axes, powers)?;
    binary(draft, Function::Div, powers, sum)
}

/// What scores become before their softmax.
fn scored(draft: &mut Draft, mut y: usize) -> Drawn {
    let dims = draft.dims(y);
    if draft.random.one_in(2) {
        let function = draft.random.pick(&[Function::Mul, Function::Div]);
        y = number(draft, function, y, if function == Function::Mul { 0.5 } else { 2.0 })?;
    }
    if draft.random.one_in(6) {
        y = number(draft, Function::Mul, y, 0.5)?;
        y = unary(draft, Function::Tanh, y)?;
        y = number(draft, Function::Mul, y, 2.0)?;
    }
    for _ in 0..draft.random.pick(&[0, 1, 1, 2]) {
        let mut extents = dims.clone();
        for extent in extents.iter_mut() {
            *extent = if draft.random.one_in(4) { 1 } else { *extent };
        }
        let cut = draft.random.below(dims.len());
        let origin = draft.random.pick(&[Origin::Constant, Origin::Input]);
        let added = operand(draft, &extents[cut..], Kind::Noise, origin)?;
        y = binary(draft, Function::Add, y, added)?;
    }
    if draft.random.one_in(4) {
        let mut extents = dims.clone();
        extents[0] = if draft.random.one_in(2) { 1 } else { dims[0] };
        let told = operand(draft, &extents, Kind::Whole(1), Origin::Input)?;
        let parts = vec![Part::Argument(0), Part::Argument(1), Part::Number(-9.0)];
        let turned = vec![Part::Argument(0), Part::Number(-9.0), Part::Argument(1)];
        let parts = if draft.random.one_in(2) { parts } else { turned };
        y = draft.add(Step::of(Make::Elementwise(Function::Select, parts), vec![told, y]))?;
    }
    Some(y)
}

/// The attention of heads, which are the outermost axis of all.
fn attend(draft: &mut Draft, [q, k, v]: [usize; 3], transpose_b: bool) -> Drawn {
    let by = Gemm { transpose_b, ..Gemm::default() };
    let products = draft.add(Step::of(Make::Gemm(by), vec![q, k]))?;
    let scores = scored(draft, products)?;
    let axis = if draft.random.one_in(8) { 1 } else { -1 };
    let weights = draft.add(Step::of(Make::Softmax(Softmax { axis, ..Softmax::default() }), vec![scores]))?;
    draft.add(Step::of(Make::Gemm(Gemm::default()), vec![weights, v]))
}

fn scores(draft: &mut Draft) -> Drawn {
    let heads = draft.random.pick(&[1, 2, 3]);
    let (rows, keys) = (draft.random.pick(&[1, 3, 5]), draft.random.pick(&[2, 5, 7]));
    let (depth, width) = (draft.random.pick(&[1, 4, 7]), draft.random.pick(&[3, 4]));
    let transpose_b = draft.random.below(4) > 0;
    let q = input(draft, &[heads, rows, depth])?;
    let k = input(draft, &if transpose_b { [heads, keys, depth] } else { [heads, depth, keys] })?;
    let v = input(draft, &[heads, keys, width])?;
    attend(draft, [q, k, v], transpose_b)
}

/// Queries, keys and values from products of one input, split into heads, and merged again.
fn projections(draft: &mut Draft) -> Drawn {
    let (batch, rows) = (draft.random.pick(&[1, 1, 3]), draft.random.pick(&[1, 3, 4]));
    let (heads, depth) = (draft.random.pick(&[1, 2, 3]), draft.random.pick(&[2, 4]));
    let wide = heads * depth;
    let c = draft.random.pick(&[4, 5, 8]);
    let x = input(draft, &[batch, rows, c])?;
    let other = if draft.random.one_in(4) { input(draft, &[batch, rows, c])? } else { x };
    // The first row alone may ask.
    let queries = if draft.random.one_in(4) { 1 } else { rows };
    let first = match queries < rows {
        true => draft.add(Step::of(Make::Slice(1, [0, queries]), vec![x]))?,
        false => x,
    };
    let mut sides = Vec::new();
    for (from, rows) in [(first, queries), (other, rows), (other, rows)] {
        let turned = draft.random.one_in(4);
        let y = product(draft, from, wide, Gemm { transpose_b: turned, ..Gemm::default() })?;
        let heads_apart = vec![batch, rows, heads, depth];
        let y = draft.add(Step::of(Make::Reshape(heads_apart), vec![y]))?;
        let y = draft.add(Step::of(Make::Transpose(vec![0, 2, 1, 3]), vec![y]))?;
        sides.push(draft.add(Step::of(Make::Reshape(vec![batch * heads, rows, depth]), vec![y]))?);
    }
    let y = attend(draft, [sides[0], sides[1], sides[2]], true)?;
    let y = draft.add(Step::of(Make::Reshape(vec![batch, heads, queries, depth]), vec![y]))?;
    let y = draft.add(Step::of(Make::Transpose(vec![0, 2, 1, 3]), vec![y]))?;
    let y = draft.add(Step::of(Make::Reshape(vec![batch, queries, wide]), vec![y]))?;
    product(draft, y, c, Gemm::default())
}

/// A product or a convolution.
fn summed(draft: &mut Draft) -> Drawn {
    match draft.random.below(4) {
        0 => {
            let (m, k) = (draft.random.pick(&[1, 2, 6]), draft.random.pick(&[1, 4, 7]));
            let x = input(draft, &[m, k])?;
            let options = rows_or_columns(draft);
            let n = draft.random.pick(&[1, 4, 5, 8, m, m]);
            product(draft, x, n, options)
        }
        1 => {
            let x = map(draft)?;
            let rows = draft.dims(x)[1];
            let (oc, bias) = (draft.random.pick(&[1, 3, 4, 8, rows, rows]), draft.random.one_in(2));
            pointwise(draft, x, oc, Activation::None, bias)
        }
        2 => {
            let x = map(draft)?;
            let c = draft.dims(x)[3];
            let options = Conv2d { padding: Padding::Same, ..Conv2d::default() };
            let oc = draft.random.pick(&[1, 3, 4, 8]);
            let weights = tensor(draft, &[oc, 3, 3, c], Kind::Small);
            draft.add(Step { weights: Some(weights), ..Step::of(Make::Conv2d(options), vec![x]) })
        }
        _ => {
            let x = map(draft)?;
            let c = draft.dims(x)[3];
            let options = Depthwise { padding: Padding::Same, ..Depthwise::default() };
            let weights = tensor(draft, &[1, 3, 3, c], Kind::Small);
            draft.add(Step { weights: Some(weights), ..Step::of(Make::Depthwise(options), vec![x]) })
        }
    }
}

fn epilogue(draft: &mut Draft) -> Drawn {
    let y = summed(draft)?;
    let dims = draft.dims(y);
    let c = *dims.last()?;
    // A vector for each channel, or a near miss: one for each place of another axis.
    let extents = match draft.random.below(4) {
        0 if dims.len() == 2 => vec![dims[0], 1],
        0 if dims.len() == 4 => vec![dims[1], 1, 1],
        1 => [vec![1; dims.len() - 1], vec![c]].concat(),
        _ => vec![c],
    };
    let mut y = affine(draft, y, &extents)?;
    if draft.random.one_in(2) {
        y = motifs::activated(draft, y)?;
    }
    if draft.random.one_in(2) {
        let other = input(draft, &dims)?;
        let both = if draft.random.one_in(2) { [y, other] } else { [other, y] };
        let function = sum(draft);
        y = binary(draft, function, both[0], both[1])?;
    }
    if draft.random.one_in(2) { motifs::activated(draft, y) } else { Some(y) }
}

/// Functions of each element behind a product or a convolution that no epilogue has a place for: of numbers, of numbers for each
/// channel, of elements of the same places, and where the result is seen in other dimensions.
fn behind(draft: &mut Draft) -> Drawn {
    let mut y = summed(draft)?;
    if draft.random.one_in(2) {
        y = motifs::activated(draft, y)?;
    }
    let mut dims = draft.dims(y);
    if draft.random.one_in(3) {
        dims.insert(0, 1);
        y = draft.add(Step::of(Make::Reshape(dims.clone()), vec![y]))?;
    }
    let c = *dims.last()?;
    for _ in 0..draft.random.within(1, 3) {
        y = match draft.random.below(5) {
            0 => {
                let rectified = unary(draft, Function::Relu, y)?;
                let squared = unary(draft, Function::Square, rectified)?;
                let scaled = number(draft, Function::Mul, squared, 0.875)?;
                number(draft, Function::Sub, scaled, 0.375)?
            }
            1 => {
                // A number for each channel, or a near miss: one for each place of another axis.
                let miss = dims.len() > 1 && draft.random.one_in(6);
                let extents = if miss { vec![dims[dims.len() - 2], 1] } else { vec![c] };
                affine(draft, y, &extents)?
            }
            2 => {
                let other = input(draft, &dims)?;
                let function = draft.random.pick(&[Function::Add, Function::Sub, Function::Mul]);
                let both = if draft.random.one_in(2) { [y, other] } else { [other, y] };
                binary(draft, function, both[0], both[1])?
            }
            3 => number(draft, Function::Sub, y, 0.75)?,
            _ => motifs::activated(draft, y)?,
        };
    }
    Some(y)
}

/// A sum, or a near miss of one.
fn sum(draft: &mut Draft) -> Function {
    if draft.random.one_in(4) { Function::Sub } else { Function::Add }
}

fn functions(draft: &mut Draft) -> Drawn {
    let mut y = map(draft)?;
    let dims = draft.dims(y);
    for _ in 0..draft.random.within(2, 4) {
        y = match draft.random.below(4) {
            0 => motifs::activated(draft, y)?,
            1 => {
                let function = draft.random.pick(&[Function::Sub, Function::Div, Function::Sub]);
                let other = operand(draft, &dims, Kind::Positive, Origin::Input)?;
                let both =
                    if function == Function::Sub && draft.random.one_in(2) { [other, y] } else { [y, other] };
                binary(draft, function, both[0], both[1])?
            }
            2 => {
                let c = *dims.last()?;
                let other = operand(draft, &[c], Kind::Positive, Origin::Constant)?;
                binary(draft, Function::Sub, other, y)?
            }
            _ => number(draft, Function::Sub, y, 0.75)?,
        };
    }
    Some(y)
}

fn factors(draft: &mut Draft) -> Drawn {
    let (b, m, k, n) = (
        draft.random.pick(&[1, 2, 3]),
        draft.random.pick(&[1, 3, 4]),
        draft.random.pick(&[2, 5]),
        draft.random.pick(&[1, 4, 6]),
    );
    let mut sides = [input(draft, &[b, m, k])?, input(draft, &[b, n, k])?];
    for side in &mut sides {
        if draft.random.below(3) > 0 {
            let function = draft.random.pick(&[Function::Mul, Function::Div]);
            *side = number(draft, function, *side, 0.375)?;
        }
    }
    let turned = draft.random.one_in(2);
    if turned {
        sides[1] = draft.add(Step::of(Make::Transpose(vec![0, 2, 1]), vec![sides[1]]))?;
    }
    let options = Gemm { transpose_b: !turned, ..Gemm::default() };
    draft.add(Step::of(Make::Gemm(options), sides.to_vec()))
}

fn moves(draft: &mut Draft) -> Drawn {
    let rank = draft.random.pick(&[2, 3, 4]);
    let dims: Vec<usize> = (0..rank).map(|_| draft.random.pick(&[1, 2, 3, 5])).collect();
    let mut y = input(draft, &dims)?;
    for _ in 0..draft.random.within(2, 3) {
        let dims = draft.dims(y);
        let rank = dims.len();
        let make = match draft.random.below(4) {
            0 => Make::Transpose(draft.random.permutation(rank)),
            1 => {
                let mut turned = dims.clone();
                turned.rotate_left(1);
                Make::Reshape(turned)
            }
            2 => {
                let axis = draft.random.below(rank);
                let mut ranges = vec![AxisRange::ALL; rank];
                ranges[axis].step = draft.random.pick(&[2, -1, 1]);
                Make::StridedSlice(ranges)
            }
            _ => {
                let axis = draft.random.below(rank);
                let begin = draft.random.below(dims[axis]);
                Make::Slice(axis, [begin, dims[axis]])
            }
        };
        y = draft.add(Step::of(make, vec![y]))?;
    }
    Some(y)
}

/// Moves, functions, reductions and normalisations one behind the other, some of which several read.
fn loops(draft: &mut Draft) -> Drawn {
    let rank = draft.random.pick(&[2, 3, 3, 4]);
    let dims: Vec<usize> = (0..rank).map(|_| draft.random.pick(&[1, 2, 3, 4, 5, 8])).collect();
    let x = input(draft, &dims)?;
    let steps = draft.random.within(2, 6);
    chain(draft, x, steps)
}

/// So many moves, functions, reductions and normalisations one behind the other.
fn chain(draft: &mut Draft, x: usize, steps: usize) -> Drawn {
    let (mut y, mut before) = (x, x);
    for _ in 0..steps {
        let dims = draft.dims(y);
        let axis = draft.random.below(dims.len());
        let next = match draft.random.below(18) {
            // The last elements first, or elements twice.
            16 | 17 if dims[axis] > 1 => {
                let begin = draft.random.within(1, dims[axis] - 1);
                let end = if draft.random.one_in(4) { draft.random.within(1, dims[axis]) } else { begin };
                let last = draft.add(Step::of(Make::Slice(axis, [begin, dims[axis]]), vec![y]))?;
                let first = draft.add(Step::of(Make::Slice(axis, [0, end]), vec![y]))?;
                draft.add(Step::of(Make::Concat(axis as isize), vec![last, first]))
            }
            0 | 1 => {
                let permutation = draft.random.permutation(dims.len());
                draft.add(Step::of(Make::Transpose(permutation), vec![y]))
            }
            2 => {
                let mut turned = dims.clone();
                turned.rotate_left(1);
                draft.add(Step::of(Make::Reshape(turned), vec![y]))
            }
            3 => {
                let (mut first, mut last) = (vec![0; dims.len()], vec![0; dims.len()]);
                (first[axis], last[axis]) = (draft.random.below(3), draft.random.below(2));
                let mode = draft.random.pick(&[PadMode::Constant(Bits(0.5)), PadMode::Edge]);
                draft.add(Step::of(Make::Pad(first, last, mode), vec![y]))
            }
            4 => {
                let begin = draft.random.below(dims[axis]);
                draft.add(Step::of(Make::Slice(axis, [begin, dims[axis]]), vec![y]))
            }
            // A view that begins behind the first element.
            13..=15 if dims[0] > 1 => {
                let begin = draft.random.within(1, dims[0] - 1);
                draft.add(Step::of(Make::Slice(0, [begin, dims[0]]), vec![y]))
            }
            5 => unary(draft, Function::Sigmoid, y),
            6 => {
                let other =
                    draft.add(Step::of(Make::Reduce(Reduction::Mean, vec![axis as isize], true), vec![y]));
                other.and_then(|other| binary(draft, Function::Sub, y, other))
            }
            11 | 12 => {
                // A constant or an input, perhaps behind a transpose, a slice or a gather: for each place, or along one axis.
                let mut own = if draft.random.one_in(2) { dims.clone() } else { vec![1; dims.len()] };
                own[axis] = dims[axis];
                let origin = draft.random.pick(&[Origin::Constant, Origin::Constant, Origin::Input]);
                let other = operand(draft, &own, Kind::Positive, origin)?;
                let function = draft.random.pick(&[Function::Mul, Function::Sub]);
                binary(draft, function, y, other)
            }
            7 if draft.dims(before) == dims => binary(draft, Function::Mul, y, before),
            8 => draft
                .add(Step::of(Make::Softmax(Softmax { axis: axis as isize, ..Softmax::default() }), vec![y])),
            9 => {
                let centred = draft.random.one_in(2);
                let options = Normalize { axes: vec![axis as isize], epsilon: Bits(0.25), centred };
                draft.add(Step::of(Make::Normalize(options), vec![y]))
            }
            10 if dims.len() > 1 => {
                let reduction = draft.random.pick(&[Reduction::Sum, Reduction::Max, Reduction::Mean]);
                let keep_dims = draft.random.one_in(2);
                draft.add(Step::of(Make::Reduce(reduction, vec![axis as isize], keep_dims), vec![y]))
            }
            _ => unary(draft, Function::Tanh, y),
        }?;
        (before, y) = (y, next);
    }
    Some(y)
}

/// A convolution of `x`, a map: of pixels, of windows or of each channel.
fn convolution(draft: &mut Draft, x: usize) -> Drawn {
    let &[_, _, _, c] = &draft.dims(x)[..] else { return None };
    let oc = draft.random.pick(&[1, 3, 4, 6, 8]);
    match draft.random.below(3) {
        0 => pointwise(draft, x, oc, Activation::None, true),
        1 => {
            let options = Conv2d { padding: Padding::Same, ..Conv2d::default() };
            let weights = tensor(draft, &[oc, 3, 3, c], Kind::Small);
            draft.add(Step { weights: Some(weights), ..Step::of(Make::Conv2d(options), vec![x]) })
        }
        _ => {
            let options = Depthwise { padding: Padding::Same, ..Depthwise::default() };
            let weights = tensor(draft, &[1, 3, 3, c], Kind::Small);
            draft.add(Step { weights: Some(weights), ..Step::of(Make::Depthwise(options), vec![x]) })
        }
    }
}

/// Nests behind and before convolutions, some of parts of a map, some with other extents in between.
fn loops_of_maps(draft: &mut Draft) -> Drawn {
    let x = map(draft)?;
    let mut y = convolution(draft, x)?;
    for _ in 0..draft.random.within(1, 2) {
        let dims = draft.dims(y);
        let &[n, h, w, c] = &dims[..] else { return Some(y) };
        let steps = draft.random.within(1, 3);
        let mut next = match draft.random.below(4) {
            0 => {
                let rows = draft.add(Step::of(Make::Reshape(vec![n, h * w, c]), vec![y]))?;
                let rows = chain(draft, rows, steps)?;
                let whole = draft.dims(rows).iter().product::<usize>() == n * h * w * c;
                if whole { draft.add(Step::of(Make::Reshape(dims), vec![rows]))? } else { rows }
            }
            1 if c > 1 => {
                // Each half of the channels goes its own way.
                let half = c.div_ceil(2);
                let parts = vec![half, c - half];
                let [first, last] =
                    [0, 1].map(|part| draft.add(Step::of(Make::Split(3, parts.clone(), part), vec![y])));
                let (first, last) = (chain(draft, first?, steps)?, last?);
                let first = if draft.dims(first).len() == 4 { convolution(draft, first)? } else { first };
                let last = convolution(draft, last)?;
                let axis = 3;
                let [a, b] = [first, last].map(|value| draft.dims(value));
                if a.len() == 4 && a[..axis] == b[..axis] {
                    draft.add(Step::of(Make::Concat(axis as isize), vec![first, last]))?
                } else {
                    last
                }
            }
            _ => chain(draft, y, steps)?,
        };
        if draft.dims(next).len() == 4 {
            if draft.random.one_in(4) {
                // Another one reads the map as well.
                let other = convolution(draft, next)?;
                next = if draft.dims(other) == draft.dims(next) {
                    binary(draft, Function::Add, next, other)?
                } else {
                    next
                };
            }
            next = convolution(draft, next)?;
        }
        y = next;
    }
    Some(y)
}

/// One of several parts of rows, with its heads apart: rows of tokens, or columns of them if it is `turned`.
fn heads(draft: &mut Draft, x: usize, part: usize, [h, d]: [usize; 2], turned: bool) -> Drawn {
    let &[n, t, ..] = &draft.dims(x)[..] else { return None };
    let own = draft.add(Step::of(Make::Split(2, vec![h; 3], part), vec![x]))?;
    let permutation = if turned { vec![0, 2, 3, 1] } else { vec![0, 2, 1, 3] };
    let mut own = draft.add(Step::of(Make::Transpose(permutation), vec![own]))?;
    if draft.random.one_in(3) {
        own = chain(draft, own, 1).filter(|&next| draft.dims(next) == draft.dims(own)).unwrap_or(own);
    }
    let [rows, columns] = if turned { [d, t] } else { [t, d] };
    draft.add(Step::of(Make::Reshape(vec![n * h, rows, columns]), vec![own]))
}

/// Products of heads that lie side by side, and of what they give, which is put side by side again.
fn loops_of_products(draft: &mut Draft) -> Drawn {
    let (n, t) = (draft.random.pick(&[1, 1, 2]), draft.random.pick(&[3, 4, 8, 16]));
    let (h, d) = (draft.random.pick(&[1, 2, 3]), draft.random.pick(&[4, 5, 8, 16]));
    let x = input(draft, &[n, t, 3 * h * d])?;
    let x = if draft.random.one_in(2) { unary(draft, Function::Tanh, x)? } else { x };
    let x = draft.add(Step::of(Make::Reshape(vec![n, t, 3 * h, d]), vec![x]))?;
    // Scores of tokens, or of channels.
    let turned = draft.random.one_in(2);
    let a = heads(draft, x, 0, [h, d], turned)?;
    let transpose_b = draft.random.one_in(3);
    let b = heads(draft, x, 1, [h, d], turned == transpose_b)?;
    let product = |draft: &mut Draft, options: Gemm, a: usize, b: usize| {
        draft.add(Step::of(Make::Gemm(options), vec![a, b]))
    };
    let mut y = product(draft, Gemm { transpose_b, ..Gemm::default() }, a, b)?;
    let scores = if turned { d } else { t };
    if draft.random.one_in(3) {
        y = unary(draft, Function::Sigmoid, y)?;
    } else if draft.random.one_in(2) {
        y = draft.add(Step::of(Make::Softmax(Softmax { axis: -1, ..Softmax::default() }), vec![y]))?;
    }
    let mut columns = scores;
    if !draft.random.one_in(4) {
        let v = heads(draft, x, 2, [h, d], turned)?;
        y = if draft.random.one_in(4) && scores == if turned { d } else { t } {
            // The scores on the other side of columns of tokens.
            let v = heads(draft, x, 2, [h, d], !turned)?;
            let options = Gemm { transpose_b: true, ..Gemm::default() };
            product(draft, options, v, y).inspect(|_| columns = scores)?
        } else {
            columns = if turned { t } else { d };
            product(draft, Gemm::default(), y, v)?
        };
    }
    let rows = draft.dims(y)[1];
    let apart = draft.add(Step::of(Make::Reshape(vec![n, h, rows, columns]), vec![y]))?;
    let permutation = draft.random.pick(&[vec![0, 2, 1, 3], vec![0, 3, 1, 2], vec![2, 0, 1, 3]]);
    let y = draft.add(Step::of(Make::Transpose(permutation), vec![apart]))?;
    if draft.random.one_in(2) { unary(draft, Function::Tanh, y) } else { Some(y) }
}

/// Integers that follow from whole numbers, elements of a value where they say, and what is made of these.
fn loops_of_integers(draft: &mut Draft) -> Drawn {
    use IntegerFunction::{Add, Clamp, FloorMod, Less, Maximum, Mul, Neg, Rem, Select, Sub};
    let word = draft.random.pick(&[DType::I32, DType::I32, DType::I64]);
    let dims = draft.random.pick(&[vec![6], vec![3, 4], vec![2, 8]]);
    let values = draft.random.values(Kind::Whole(5), dims.iter().product());
    let floats = draft.given(&dims, values, Origin::Input);
    let mut x = draft.add(Step::of(Make::Cast(word), vec![floats]))?;
    let first = x;
    for _ in 0..draft.random.within(1, 4) {
        let rank = draft.dims(x).len();
        x = match draft.random.below(8) {
            0 => {
                let permutation = draft.random.permutation(rank);
                draft.add(Step::of(Make::Transpose(permutation), vec![x]))
            }
            1 => draft.add(Step::of(Make::Integers(Neg, None), vec![x])),
            2 if draft.dims(x) == draft.dims(first) => {
                let is_less = draft.add(Step::of(Make::Integers(Less, None), vec![x, first]))?;
                draft.add(Step::of(Make::Integers(Select, None), vec![is_less, first, x]))
            }
            3 if draft.dims(x) == draft.dims(first) => {
                let function = draft.random.pick(&[Sub, Mul, Maximum]);
                draft.add(Step::of(Make::Integers(function, None), vec![x, first]))
            }
            4 => {
                let axis = draft.random.below(rank);
                draft.add(Step::of(Make::Reverse(vec![axis as isize]), vec![x]))
            }
            5 => {
                let low = draft.add(Step::of(Make::Integers(Clamp, Some(3)), vec![x, first]));
                low.or(Some(x))
            }
            _ => {
                let function = draft.random.pick(&[Add, FloorMod, Rem, Mul]);
                let number = draft.random.pick(&[3, 5, -4, 7]);
                draft.add(Step::of(Make::Integers(function, Some(number)), vec![x]))
            }
        }?;
    }
    let rank = draft.random.within(1, 3);
    let own: Vec<usize> = (0..rank).map(|_| draft.random.pick(&[3, 4, 5, 8])).collect();
    let axis = draft.random.below(rank);
    let source = if draft.random.one_in(2) {
        operand(draft, &own, Kind::Noise, Origin::Constant)?
    } else {
        let source = input(draft, &own)?;
        if draft.random.one_in(2) { unary(draft, Function::Tanh, source)? } else { source }
    };
    let y = match draft.random.below(4) {
        0 => draft.add(Step::of(Make::Cast(DType::F32), vec![x])),
        1 if draft.dims(x).last().is_some_and(|&last| last <= rank) => {
            draft.add(Step::of(Make::GatherNd, vec![source, x]))
        }
        _ => draft.add(Step::of(Make::Gather(axis as isize, 0), vec![source, x])),
    }?;
    let steps = draft.random.below(4);
    chain(draft, y, steps)
}

/// Running sums, indices of the largest and the smallest of equals, and encodings of indices, between moves and functions.
fn loops_of_indices(draft: &mut Draft) -> Drawn {
    let rank = draft.random.within(1, 3);
    let dims: Vec<usize> = (0..rank).map(|_| draft.random.pick(&[1, 2, 3, 4, 5, 8, 36])).collect();
    let kind = draft.random.pick(&[Kind::Whole(3), Kind::Whole(3), Kind::Noise]);
    let values = draft.random.values(kind, dims.iter().product());
    let mut y = draft.given(&dims, values, Origin::Input);
    let steps = draft.random.within(2, 5);
    for step in 0..steps {
        let rank = draft.dims(y).len();
        let along = draft.random.below(rank.max(1)) as isize;
        y = match draft.random.below(8) {
            // Behind sums, which are rounded, indices are not known.
            0..=2 if rank > 0 && step + 2 > steps => {
                let (exclusive, reverse) = (draft.random.one_in(2), draft.random.one_in(2));
                draft.add(Step::of(Make::CumSum(CumSum { axis: along, exclusive, reverse }), vec![y]))
            }
            0..=2 if rank > 0 => {
                let (largest, keep) = (draft.random.one_in(2), draft.random.one_in(2));
                draft.add(Step::of(Make::Arg(largest, along, keep), vec![y]))
            }
            3..=5 if rank < 4 => {
                let (on, off) = draft.random.pick(&[(1.0, 0.0), (1.0, 0.0), (2.0, -1.0)]);
                let depth = draft.random.pick(&[3, 4, 8]);
                let options = OneHot { depth, on: Bits(on), off: Bits(off), axis: along };
                draft.add(Step::of(Make::OneHot(options), vec![y]))
            }
            6 if rank > 0 => {
                let permutation = draft.random.permutation(rank);
                draft.add(Step::of(Make::Transpose(permutation), vec![y]))
            }
            _ => {
                let function = draft.random.pick(&[Function::Neg, Function::Abs, Function::Floor]);
                unary(draft, function, y)
            }
        }?;
    }
    if draft.dims(y).is_empty() {
        return unary(draft, Function::Neg, y);
    }
    let steps = draft.random.below(3);
    chain(draft, y, steps)
}

/// Depthwise convolutions of what products write, or of some of its columns.
fn loops_of_rows(draft: &mut Draft) -> Drawn {
    let (n, h, w) = (draft.random.pick(&[1, 1, 2]), draft.random.within(1, 5), draft.random.within(2, 6));
    let (c, parts) = (draft.random.pick(&[4, 8, 12, 5]), draft.random.pick(&[1, 2, 3]));
    // Rows ahead of the map, such as that of a class.
    let ahead = draft.random.pick(&[0, 0, 1]);
    let x = input(draft, &[n, ahead + h * w, 8])?;
    let mut y = product(draft, x, c * parts, Gemm::default())?;
    if draft.random.one_in(4) {
        y = unary(draft, Function::Tanh, y)?;
    }
    if ahead > 0 {
        y = draft.add(Step::of(Make::Slice(1, [ahead, ahead + h * w]), vec![y]))?;
    }
    if parts > 1 {
        let begin = c * draft.random.below(parts);
        y = draft.add(Step::of(Make::Slice(2, [begin, begin + c]), vec![y]))?;
    }
    if draft.random.one_in(3) {
        // Channels first and last again, as a file has it.
        let turned = draft.add(Step::of(Make::Transpose(vec![0, 2, 1]), vec![y]))?;
        y = draft.add(Step::of(Make::Transpose(vec![0, 2, 1]), vec![turned]))?;
    }
    let map = draft.add(Step::of(Make::Reshape(vec![n, h, w, c]), vec![y]))?;
    let kernel = draft.random.pick(&[[3, 3], [1, 3], [5, 5]]);
    let stride = draft.random.pick(&[[1, 1], [1, 1], [2, 2]]);
    let activation = draft.random.pick(&[Activation::None, Activation::Relu, Activation::Gelu]);
    let options = Depthwise { padding: Padding::Same, stride, activation, ..Depthwise::default() };
    let weights = tensor(draft, &[1, kernel[0], kernel[1], c], Kind::Small);
    let bias = draft.random.one_in(2).then(|| draft.random.values(Kind::Noise, c));
    let mut y =
        draft.add(Step { weights: Some(weights), bias, ..Step::of(Make::Depthwise(options), vec![map]) })?;
    if stride == [1, 1] && draft.random.one_in(3) {
        y = binary(draft, Function::Add, y, map)?;
    }
    match draft.random.below(4) {
        0 => pointwise(draft, y, 4, Activation::None, true),
        1 => unary(draft, Function::Sigmoid, y),
        2 => Some(y),
        _ => {
            let rows = draft.dims(y)[1] * draft.dims(y)[2];
            let rows = draft.add(Step::of(Make::Reshape(vec![n, rows, c]), vec![y]))?;
            let rows = if draft.random.one_in(2) { unary(draft, Function::Tanh, rows)? } else { rows };
            product(draft, rows, 6, Gemm::default())
        }
    }
}

fn patches(draft: &mut Draft) -> Drawn {
    let n = draft.random.pick(&[1, 2]);
    let of_rows = draft.random.one_in(2);
    let (c, block) = match of_rows {
        true => (draft.random.pick(&[3, 5, 8, 12]), draft.random.pick(&[2, 3, 4])),
        false => (draft.random.pick(&[1, 2, 3, 4]), draft.random.pick(&[5, 6, 8])),
    };
    let (h, w) = (draft.random.within(1, 3), draft.random.within(1, 3));
    let over = if draft.random.one_in(6) { 1 } else { 0 };
    let dims = vec![n, h * block, w * block + over, c];
    let x = match of_rows {
        true => {
            let rows = input(draft, &[n, dims[1] * dims[2], 8])?;
            let mut rows = product(draft, rows, c, Gemm::default())?;
            if draft.random.one_in(2) {
                let options = Normalize { axes: vec![-1], epsilon: Bits(1e-2), centred: true };
                rows = draft.add(Step::of(Make::Normalize(options), vec![rows]))?;
            }
            draft.add(Step::of(Make::Reshape(dims), vec![rows]))?
        }
        false => input(draft, &dims)?,
    };
    let stride = if draft.random.one_in(6) { [block - 1, block] } else { [block, block] };
    let activation = draft.random.pick(&[Activation::None, Activation::Relu]);
    let options = Conv2d { stride, activation, ..Conv2d::default() };
    let oc = draft.random.pick(&[1, 4, 7]);
    let weights = tensor(draft, &[oc, block, block, c], Kind::Small);
    let bias = draft.random.one_in(2).then(|| draft.random.values(Kind::Noise, oc));
    let y = draft.add(Step { weights: Some(weights), bias, ..Step::of(Make::Conv2d(options), vec![x]) })?;
    match draft.random.below(5) {
        0 => pointwise(draft, y, 4, Activation::None, true),
        1 => unary(draft, Function::Tanh, y),
        2 => {
            let rows = draft.dims(y)[1] * draft.dims(y)[2];
            let rows = draft.add(Step::of(Make::Reshape(vec![n, rows, oc]), vec![y]))?;
            let product = product(draft, rows, oc, Gemm::default())?;
            binary(draft, Function::Add, product, rows)
        }
        3 => {
            let weights = tensor(draft, &[1, 3, 3, oc], Kind::Small);
            let options = Depthwise { padding: Padding::Same, ..Depthwise::default() };
            let y =
                draft.add(Step { weights: Some(weights), ..Step::of(Make::Depthwise(options), vec![y]) })?;
            unary(draft, Function::Sigmoid, y)
        }
        _ => Some(y),
    }
}

fn mean(draft: &mut Draft, x: usize) -> Drawn {
    let [_, h, w, _] = draft.dims(x)[..] else { return None };
    match draft.random.below(8) {
        0 => {
            let axis = draft.random.pick(&[1, 2]);
            reduced(draft, Reduction::Mean, &[axis], x)
        }
        1 => {
            let reduction = draft.random.pick(&[Reduction::Sum, Reduction::Max]);
            reduced(draft, reduction, &[1, 2], x)
        }
        2..=4 => draft.add(Step::of(Make::Pool(Pool::new(Pooling::Average, [h, w])), vec![x])),
        _ => reduced(draft, Reduction::Mean, &[1, 2], x),
    }
}

fn gate(draft: &mut Draft) -> Drawn {
    let x = map(draft)?;
    let c = draft.dims(x)[3];
    let pixel = mean(draft, x)?;
    let (hidden, bias) = (draft.random.pick(&[1, 3, 4, 8]), draft.random.one_in(2));
    let between = pointwise(draft, pixel, hidden, Activation::Relu, bias)?;
    let last = draft.random.pick(&[Activation::Sigmoid, Activation::None]);
    let mut factor = pointwise(draft, between, c, last, bias)?;
    if last == Activation::None {
        let function = draft.random.pick(&[Function::Sigmoid, Function::HardSigmoid, Function::Relu]);
        factor = unary(draft, function, factor)?;
    }
    let both = if draft.random.one_in(2) { [x, factor] } else { [factor, x] };
    let y = binary(draft, Function::Mul, both[0], both[1])?;
    if draft.random.one_in(2) {
        let dims = draft.dims(y);
        let other = input(draft, &dims)?;
        let function = sum(draft);
        return binary(draft, function, y, other);
    }
    Some(y)
}

fn squeeze(draft: &mut Draft) -> Drawn {
    let x = map(draft)?;
    let [n, _, _, c] = draft.dims(x)[..] else { return None };
    let pixel = mean(draft, x)?;
    let outputs = draft.random.pick(&[1, 3, 4, 10]);
    let all: usize = draft.dims(pixel).iter().product();
    if draft.random.one_in(2) || all != n * c {
        return pointwise(draft, pixel, outputs, Activation::Relu, true);
    }
    let flat = draft.add(Step::of(Make::Reshape(vec![n, c]), vec![pixel]))?;
    let options = rows_or_columns(draft);
    product(draft, flat, outputs, options)
}

fn gated(draft: &mut Draft) -> Drawn {
    let (m, k) = (draft.random.pick(&[1, 2, 6]), draft.random.pick(&[4, 7, 16, 16]));
    let n = draft.random.pick(&[1, 4, 5, 7, 12]);
    let dims = if draft.random.one_in(2) { vec![m, k] } else { vec![1, m, k] };
    let x = input(draft, &dims)?;
    if draft.random.one_in(4) {
        // One product, whose rows are taken apart.
        let options = rows_or_columns(draft);
        let both = product(draft, x, 2 * n, options)?;
        let axis = dims.len() as isize - 1;
        let mut halves = [0, 1];
        for half in &mut halves {
            *half = draft.add(Step::of(Make::Split(axis, vec![n, n], *half), vec![both]))?;
        }
        if draft.random.one_in(2) {
            halves.reverse();
        }
        let gate = motifs::activated(draft, halves[0])?;
        return binary(draft, Function::Sub, gate, halves[1]);
    }
    let other = if draft.random.one_in(8) { input(draft, &dims)? } else { x };
    let options = rows_or_columns(draft);
    let last = if draft.random.one_in(8) { rows_or_columns(draft) } else { options };
    let (gate, up) = if draft.random.one_in(4) && k.is_multiple_of(8) {
        let bits = draft.random.pick(&[4, 8]);
        (packed(draft, x, n, bits)?, packed(draft, other, n, bits)?)
    } else {
        (product(draft, x, n, options)?, product(draft, other, n, last)?)
    };
    let gate = if draft.random.below(4) > 0 { motifs::activated(draft, gate)? } else { gate };
    let function = draft.random.pick(&[Function::Mul, Function::Sub]);
    let both = if draft.random.one_in(2) { [gate, up] } else { [up, gate] };
    binary(draft, function, both[0], both[1])
}

/// Products of few rows of what moves and functions of each element give.
fn prologues(draft: &mut Draft) -> Drawn {
    let m = draft.random.pick(&[1, 1, 2, 4]);
    // Of many terms also where nothing is known of the device the kernel for few rows is taken.
    let (k, n) = draft.random.pick(&[(4, 4), (20, 8), (64, 36), (768, 256)]);
    let x = match draft.random.below(4) {
        // A gate beside what it lets through.
        0 => {
            let both = input(draft, &[m, 2 * k])?;
            let mut halves = [0, 1];
            for half in &mut halves {
                *half = draft.add(Step::of(Make::Split(1, vec![k, k], *half), vec![both]))?;
            }
            let gate = motifs::activated(draft, halves[0])?;
            binary(draft, Function::Mul, gate, halves[1])?
        }
        // Rows that lay the other way.
        1 => {
            let x = input(draft, &[k, m])?;
            let x = motifs::activated(draft, x)?;
            draft.add(Step::of(Make::Transpose(vec![1, 0]), vec![x]))?
        }
        2 => {
            let first = 4 * draft.random.below(k / 4);
            let (x, y) = (input(draft, &[m, k - first])?, input(draft, &[m, 1 + first])?);
            let y = draft.add(Step::of(Make::Slice(1, [0, first.max(1)]), vec![y]))?;
            let x = motifs::activated(draft, x)?;
            if first == 0 { x } else { draft.add(Step::of(Make::Concat(1), vec![y, x]))? }
        }
        _ => {
            let (x, y) = (input(draft, &[m, k])?, input(draft, &[m, k])?);
            let x = motifs::activated(draft, x)?;
            let function = draft.random.pick(&[Function::Add, Function::Mul, Function::Maximum]);
            binary(draft, function, x, y)?
        }
    };
    let y = product(draft, x, n, Gemm::default())?;
    if draft.random.one_in(2) { motifs::activated(draft, y) } else { Some(y) }
}

/// Products whose rows are normalised or become shares, which other values are added to before, scale or gate behind, and which another
/// node may read too.
fn product_rows(draft: &mut Draft) -> Drawn {
    let m = draft.random.pick(&[1, 6, 20, 36]);
    let (k, n) = draft.random.pick(&[(4, 8), (20, 16), (16, 48), (12, 20), (5, 8)]);
    let dims = draft.random.pick(&[vec![m, k], vec![1, m, k], vec![2, m, k]]);
    let x = input(draft, &dims)?;
    let options = rows_or_columns(draft);
    let first = product(draft, x, n, options)?;
    let rows = [&dims[..dims.len() - 1], &[n]].concat();
    let axis = -1;
    let mut y = first;
    if draft.random.one_in(2) {
        let other = input(draft, &rows)?;
        y = binary(draft, Function::Add, y, other)?;
    }
    let before = y;
    // Whoever reads the product, or what was added to it, comes before or behind what reads its rows.
    let early = match draft.random.below(6) {
        0 => Some(motifs::activated(draft, first)?),
        1 => Some(motifs::activated(draft, before)?),
        2 => Some(product(draft, before, n, Gemm::default())?),
        _ => None,
    };
    y = match draft.random.below(4) {
        0 => draft.add(Step::of(Make::Softmax(Softmax { axis, ..Softmax::default() }), vec![y]))?,
        1 => {
            let largest = draft.add(Step::of(Make::Reduce(Reduction::Max, vec![axis], true), vec![y]))?;
            binary(draft, Function::Sub, y, largest)?
        }
        _ => {
            let centred = draft.random.below(3) > 0;
            let options = Normalize { axes: vec![axis], epsilon: Bits(1e-2), centred };
            let mut step = Step::of(Make::Normalize(options), vec![y]);
            step.weights = (draft.random.below(3) > 0).then(|| tensor(draft, &[n], Kind::Positive));
            step.bias = draft.random.one_in(2).then(|| draft.random.values(Kind::Noise, n));
            draft.add(step)?
        }
    };
    match draft.random.below(4) {
        // Windows of two rows, side by side.
        0 if m.is_multiple_of(4) => {
            let outer: usize = dims[..dims.len() - 2].iter().product();
            let windows = draft.add(Step::of(Make::Reshape(vec![outer, m / 4, 2, 2, n]), vec![y]))?;
            y = draft.add(Step::of(Make::Transpose(vec![0, 2, 1, 3, 4]), vec![windows]))?;
            y = draft.add(Step::of(Make::Reshape(rows.clone()), vec![y]))?;
        }
        1 => y = motifs::activated(draft, y)?,
        _ => {}
    }
    if let Some(early) = early {
        return binary(draft, Function::Mul, y, early);
    }
    if draft.random.one_in(2) { binary(draft, Function::Add, y, before) } else { Some(y) }
}

/// Products of one row, mostly of one input, each read as it is or behind a move, by functions, products or moves.
fn one_row(draft: &mut Draft) -> Drawn {
    let k = draft.random.pick(&[4, 8, 16]);
    let dims = draft.random.pick(&[vec![1, k], vec![1, 1, k]]);
    let x = input(draft, &dims)?;
    let axis = dims.len() as isize - 1;
    let options = rows_or_columns(draft);
    let bits = draft.random.pick(&[0, 0, 4, 8]);
    let mut parts = Vec::new();
    for _ in 0..draft.random.pick(&[2, 3, 4]) {
        let from = if draft.random.one_in(8) { input(draft, &dims)? } else { x };
        let n = draft.random.pick(&[64, 64, 128, 192, 20]);
        let own = if draft.random.one_in(8) { rows_or_columns(draft) } else { options };
        let y = match bits {
            4 | 8 if k.is_multiple_of(8) => packed(draft, from, n, bits)?,
            _ => product(draft, from, n, own)?,
        };
        let y = match draft.random.below(4) {
            0 => motifs::activated(draft, y)?,
            1 => product(draft, y, 5, Gemm::default())?,
            2 => {
                let heads = [&dims[..dims.len() - 1], &[4, n / 4]].concat();
                let y = draft.add(Step::of(Make::Reshape(heads.clone()), vec![y]))?;
                let last = heads.len() - 1;
                let permutation: Vec<usize> = (0..last - 1).chain([last, last - 1]).collect();
                let y = draft.add(Step::of(Make::Transpose(permutation), vec![y]))?;
                draft.add(Step::of(Make::Reshape([&dims[..dims.len() - 1], &[n]].concat()), vec![y]))?
            }
            _ => y,
        };
        parts.push(y);
    }
    draft.add(Step::of(Make::Concat(axis), parts))
}

/// Queries, keys and values of `x`, and an attention of heads, perhaps with a number more for each pair of rows.
fn attended(draft: &mut Draft, x: usize, from: usize) -> Drawn {
    let &[batch, rows, c] = &draft.dims(x)[..] else { return None };
    let (heads, depth) = draft.random.pick(&[(1, 4), (2, 4), (2, 2)]);
    let mut sides = Vec::new();
    for x in [x, from, from] {
        let y = product(draft, x, heads * depth, Gemm::default())?;
        let y = draft.add(Step::of(Make::Reshape(vec![batch, rows, heads, depth]), vec![y]))?;
        let y = draft.add(Step::of(Make::Transpose(vec![0, 2, 1, 3]), vec![y]))?;
        sides.push(draft.add(Step::of(Make::Reshape(vec![batch * heads, rows, depth]), vec![y]))?);
    }
    let y = attend(draft, [sides[0], sides[1], sides[2]], true)?;
    let y = draft.add(Step::of(Make::Reshape(vec![batch, heads, rows, depth]), vec![y]))?;
    let y = draft.add(Step::of(Make::Transpose(vec![0, 2, 1, 3]), vec![y]))?;
    let y = draft.add(Step::of(Make::Reshape(vec![batch, rows, heads * depth]), vec![y]))?;
    product(draft, y, c, Gemm::default())
}

/// Layers of which some rows are read.
fn read_rows(draft: &mut Draft) -> Drawn {
    let (batch, rows) = (draft.random.pick(&[1, 1, 2, 3]), draft.random.pick(&[2, 5, 8, 33]));
    let c = draft.random.pick(&[4, 8, 16, 5]);
    let x = input(draft, &[batch, rows, c])?;
    let mut y = x;
    for _ in 0..draft.random.pick(&[1, 2, 3, 4]) {
        let before = y;
        y = match draft.random.below(8) {
            0 => draft.add(Step::of(Make::Softmax(Softmax { axis: -1, ..Softmax::default() }), vec![y]))?,
            1 | 2 => {
                let options =
                    Normalize { axes: vec![-1], epsilon: Bits(1e-2), centred: draft.random.one_in(2) };
                let mut step = Step::of(Make::Normalize(options), vec![y]);
                step.weights = draft.random.one_in(2).then(|| tensor(draft, &[c], Kind::Positive));
                draft.add(step)?
            }
            3 => motifs::activated(draft, y)?,
            4 => {
                let dims = draft.random.pick(&[
                    vec![batch, rows, c],
                    vec![1, rows, c],
                    vec![c],
                    vec![batch, rows, 1],
                ]);
                let other = input(draft, &dims)?;
                binary(draft, Function::Mul, y, other)?
            }
            5 | 6 => {
                let from = if draft.random.one_in(4) { x } else { before };
                attended(draft, y, from)?
            }
            _ => {
                let wide = draft.random.pick(&[8, 12]);
                let options = rows_or_columns(draft);
                let hidden = match c % 8 {
                    0 if draft.random.one_in(3) => packed(draft, y, wide, 4)?,
                    _ => product(draft, y, wide, options)?,
                };
                let hidden = motifs::activated(draft, hidden)?;
                product(draft, hidden, c, Gemm::default())?
            }
        };
        if draft.random.one_in(2) {
            y = binary(draft, Function::Add, y, before)?;
        }
    }
    let begin = draft.random.below(rows);
    let end = draft.random.pick(&[begin + 1, rows]);
    let y = match draft.random.below(4) {
        0 if batch == 1 => draft.add(Step::of(Make::Slice(1, [begin, end]), vec![y]))?,
        // Some rows of all batches one behind the other.
        1 => {
            let all = draft.add(Step::of(Make::Reshape(vec![batch * rows, c]), vec![y]))?;
            draft.add(Step::of(Make::Slice(0, [begin, end]), vec![all]))?
        }
        2 if batch == 1 => {
            let other = draft.random.below(rows);
            let some = draft.add(Step::of(Make::Slice(1, [begin, begin + 1]), vec![y]))?;
            let more = draft.add(Step::of(Make::Slice(1, [other, other + 1]), vec![y]))?;
            binary(draft, Function::Sub, some, more)?
        }
        _ => {
            let some = AxisRange::new(begin as isize, end as isize);
            draft.add(Step::of(Make::StridedSlice(vec![AxisRange::ALL, some, AxisRange::ALL]), vec![y]))?
        }
    };
    if draft.random.one_in(3) { Some(y) } else { product(draft, y, 6, Gemm::default()) }
}

fn layers(draft: &mut Draft) -> Drawn {
    let (m, k) = (draft.random.pick(&[1, 2, 3, 4]), draft.random.pick(&[4, 5, 8]));
    let mut y = input(draft, &[m, k])?;
    if draft.random.below(3) > 0 {
        let centred = draft.random.one_in(2);
        let options = Normalize { axes: vec![-1], epsilon: Bits(1e-2), centred };
        let mut step = Step::of(Make::Normalize(options), vec![y]);
        step.weights = (draft.random.below(3) > 0).then(|| tensor(draft, &[k], Kind::Positive));
        step.bias = draft.random.one_in(2).then(|| draft.random.values(Kind::Noise, k));
        y = draft.add(step)?;
    }
    let options = rows_or_columns(draft);
    let hidden = draft.random.pick(&[3, 4, 8]);
    y = product(draft, y, hidden, options)?;
    if draft.random.one_in(3) {
        return Some(y);
    }
    if draft.random.below(3) > 0 {
        y = motifs::activated(draft, y)?;
    }
    let options = rows_or_columns(draft);
    let n = draft.random.pick(&[1, 4, 5]);
    product(draft, y, n, options)
}

fn stack(draft: &mut Draft) -> Drawn {
    let mut x = map(draft)?;
    if draft.random.one_in(2) {
        x = reduced(draft, Reduction::Mean, &[1, 2], x)?;
    }
    let activation = draft.random.pick(&[Activation::None, Activation::Relu]);
    let mut heads = Vec::new();
    for _ in 0..draft.random.within(2, 4) {
        let (oc, bias) = (draft.random.pick(&[1, 2, 3, 4, 8, 12]), draft.random.one_in(2));
        heads.push(pointwise(draft, x, oc, activation, bias)?);
    }
    if draft.random.one_in(2) {
        heads = heads.into_iter().map(|head| motifs::activated(draft, head)).collect::<Option<_>>()?;
    }
    heads.last().copied()
}

fn parts(draft: &mut Draft) -> Drawn {
    if draft.random.one_in(2) {
        return motifs::large(draft);
    }
    let heads = draft.random.pick(&[1, 2]);
    let (rows, keys, depth) = (draft.random.pick(&[1, 2]), draft.random.pick(&[512, 771]), 2);
    let q = input(draft, &[heads, rows, depth])?;
    let [k, v] = [(); 2].map(|()| draft.source(&[heads, keys, depth], Kind::Noise));
    attend(draft, [q, k, v], true)
}

fn concatenation(draft: &mut Draft) -> Drawn {
    // Parts begin where a binding may if a slice of four channels is as long as that.
    let x = if draft.random.one_in(2) { input(draft, &[1, 4, 4, 8])? } else { map(draft)? };
    let axis = draft.random.pick(&[1, 2, 3]);
    let mut all = Vec::new();
    for _ in 0..draft.random.within(2, 3) {
        let oc = draft.random.pick(&[4, 8, 3]);
        let oc = if axis == 3 || all.is_empty() { oc } else { draft.dims(all[0])[3] };
        // Products of one input become one.
        let dims = draft.dims(x);
        let own = if draft.random.one_in(2) { input(draft, &dims)? } else { x };
        let y = pointwise(draft, own, oc, Activation::Relu, true)?;
        all.push(if draft.random.one_in(3) { unary(draft, Function::Tanh, y)? } else { y });
    }
    if draft.random.one_in(4) {
        let dims = draft.dims(all[0]);
        all.push(draw::constant_of(draft, &dims));
    }
    let y = draft.add(Step::of(Make::Concat(axis), all))?;
    if draft.random.one_in(2) { pointwise(draft, y, 4, Activation::None, true) } else { Some(y) }
}
