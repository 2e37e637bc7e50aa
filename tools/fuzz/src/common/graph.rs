//! A graph that bytes describe, built through the public API.

use diptych::{
    Activation, Bits, Border, Conv2d, Depthwise, Dim, Dims, Extras, Function, Gemm, Graph, HostTensor,
    Padding, Pointwise, Pool, Pooling, Reduction, Resize, ResizeMode, Result, Right, Softmax, Term, Value,
    nn::{AxisRange, CumSum, Normalize, OneHot, Pad, PadMode, Suppress, TransposedConv2d},
};

/// The most nodes of one graph.
const MOST_NODES: usize = 24;

/// Choices read from bytes, and zeros behind their end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first.into()
    }

    fn below(&mut self, bound: usize) -> usize {
        self.byte() % bound.max(1)
    }

    fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    /// Mostly small; now and then what no extent can be.
    fn extent(&mut self) -> usize {
        match self.byte() {
            byte @ 0..240 => byte % 9,
            byte @ 240..250 => byte - 200,
            250 => 1 << 16,
            251 => 1 << 31,
            252 => 1 << 33,
            253 => usize::MAX / 2,
            254 => usize::MAX - 1,
            _ => usize::MAX,
        }
    }

    fn signed(&mut self) -> isize {
        match self.byte() {
            byte @ 0..250 => byte as isize % 9 - 4,
            250 => isize::MIN,
            251 => isize::MAX,
            byte => byte as isize - 253,
        }
    }

    fn number(&mut self) -> f32 {
        match self.byte() {
            byte @ 0..240 => (byte as f32 - 120.0) / 16.0,
            240 => f32::NAN,
            241 => f32::INFINITY,
            242 => f32::MAX,
            243 => 1e-40,
            byte => byte as f32 * 100.0,
        }
    }

    fn several<T>(&mut self, most: usize, mut each: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(most + 1);
        (0..count).map(|_| each(self)).collect()
    }

    fn pair(&mut self) -> [usize; 2] {
        [self.extent(), self.extent()]
    }

    /// A window's step: mostly 1 or 2.
    fn steps(&mut self) -> [usize; 2] {
        if self.flag() { [1 + self.below(3), 1 + self.below(3)] } else { self.pair() }
    }

    fn padding(&mut self) -> Padding {
        match self.below(3) {
            0 => Padding::Same,
            1 => Padding::Valid,
            _ => {
                let [top, bottom] = self.pair();
                let [left, right] = self.pair();
                Padding::Explicit { top, bottom, left, right }
            }
        }
    }

    fn activation(&mut self) -> Activation {
        match self.below(9) {
            1 => Activation::Relu,
            2 => Activation::Relu6,
            3 => Activation::LeakyRelu(Bits(self.number())),
            4 => Activation::PRelu,
            5 => Activation::Sigmoid,
            6 => Activation::Tanh,
            7 => Activation::HardSwish,
            _ => Activation::None,
        }
    }

    fn border(&mut self) -> Border {
        [Border::Zeros, Border::Reflect, Border::Symmetric, Border::Edge][self.below(4)]
    }
}

/// The values of a network's input or of a constant.
pub fn values(count: usize) -> Vec<f32> {
    (0..count).map(|index| (index * 37 % 17) as f32 * 0.25 - 2.0).collect()
}

/// A tensor of these extents, if it is small.
fn tensor(extents: &[usize]) -> Option<HostTensor> {
    let dims = Dims::new(extents).ok()?;
    if dims.elements() > 1 << 14 {
        return None;
    }
    HostTensor::new(dims, values(dims.elements())).ok()
}

/// The graph that `bytes` describe. A node that is refused is left out.
pub fn graph(bytes: &[u8]) -> Graph {
    let mut choices = Choices(bytes);
    let c = &mut choices;
    let mut graph = Graph::new();
    let mut known: Vec<Value> = Vec::new();
    if c.flag() {
        let _ = graph.dimension("batch", c.extent());
    }
    for index in 0..1 + c.below(3) {
        let name = format!("input {index}");
        let mut extents: Vec<Dim> = c.several(5, |c| Dim::Fixed(c.extent()));
        if c.flag() && !extents.is_empty() {
            extents[0] = Dim::Named("batch".to_owned());
        }
        known.extend(graph.input_of(&name, &extents));
    }
    for index in 0..MOST_NODES {
        if c.0.is_empty() || known.is_empty() {
            break;
        }
        let name = format!("node {index}");
        if let Ok(values) = node(&mut graph, c, &name, &known) {
            known.extend(values);
        }
    }
    for _ in 0..1 + c.below(3) {
        // The last values have most behind them.
        let back = c.below(known.len().min(4));
        if let Some(&value) = known.get(known.len().saturating_sub(1 + back)) {
            let _ = graph.output(value);
        }
    }
    graph
}

fn one(c: &mut Choices<'_>, known: &[Value]) -> Value {
    // Half of the nodes follow the last one.
    let index = if c.flag() { known.len() - 1 } else { c.below(known.len()) };
    known[index]
}

fn extras(c: &mut Choices<'_>, channels: usize, known: &[Value]) -> Extras {
    Extras {
        bias: if c.flag() { tensor(&[channels]) } else { None },
        slope: if c.below(4) == 1 { tensor(&[channels]) } else { None },
        residual: (c.below(4) == 1).then(|| one(c, known)),
    }
}

fn node(graph: &mut Graph, c: &mut Choices<'_>, name: &str, known: &[Value]) -> Result<Vec<Value>> {
    let kind = c.byte();
    let x = one(c, known);
    let dims = graph.dims(x)?;
    let extents = dims.extents().to_vec();
    // What most weights are made for.
    let channels = if c.below(16) == 15 { c.extent() } else { extents.last().copied().unwrap_or(1) };
    let axis = if extents.is_empty() || c.below(8) == 7 {
        c.signed()
    } else {
        c.below(extents.len()) as isize - if c.flag() { extents.len() as isize } else { 0 }
    };
    let small = |extents: &[usize]| {
        tensor(extents).ok_or_else(|| diptych::Error::unsupported("a constant", "it is too large"))
    };
    let many = |c: &mut Choices<'_>| match c.flag() {
        true => extents.iter().map(|_| c.below(4)).collect(),
        false => c.several(5, Choices::extent),
    };
    let single = match kind % 36 {
        0 => {
            let groups = if c.flag() { 1 } else { c.extent() };
            let weights = small(&[c.extent(), c.below(5), c.below(5), channels / groups.max(1)])?;
            let options = Conv2d {
                stride: c.steps(),
                dilation: c.steps(),
                padding: c.padding(),
                border: c.border(),
                groups,
                activation: c.activation(),
            };
            let extras = extras(c, weights.dims().extents()[0], known);
            graph.conv2d(name, x, weights, extras, options)?
        }
        1 => {
            let weights = small(&[1, c.below(5), c.below(5), channels])?;
            let options = Depthwise {
                stride: c.steps(),
                dilation: c.steps(),
                padding: c.padding(),
                activation: c.activation(),
            };
            let extras = extras(c, channels, known);
            graph.depthwise(name, x, weights, extras, options)?
        }
        2 => {
            let weights = small(&[c.extent(), 1, 1, channels])?;
            let extras = extras(c, weights.dims().extents()[0], known);
            graph.pointwise(name, x, weights, extras, Pointwise { activation: c.activation() })?
        }
        3 => {
            let options = Gemm {
                alpha: Bits(c.number()),
                beta: Bits(c.number()),
                transpose_a: c.flag(),
                transpose_b: c.flag(),
                lda: c.flag().then(|| c.extent()),
                ldb: c.flag().then(|| c.extent()),
                ldc: c.flag().then(|| c.extent()),
                activation: c.activation(),
            };
            let columns = c.extent();
            let right = if c.flag() {
                Right::Value(one(c, known))
            } else {
                Right::Constant(small(&[1, 1, channels, columns])?)
            };
            let extras = extras(c, columns, known);
            graph.gemm(name, x, right, extras, options)?
        }
        4 => {
            let pooling = if c.flag() { Pooling::Max } else { Pooling::Average };
            let mut options = Pool::new(pooling, c.steps());
            options.stride = c.steps();
            options.padding = c.padding();
            options.activation = c.activation();
            graph.pool(name, x, options)?
        }
        5 => {
            let target = c.several(5, |c| if c.below(5) == 4 { Dim::Rest } else { Dim::Fixed(c.extent()) });
            graph.reshape(name, x, &target)?
        }
        6 => {
            let begin = c.extent();
            graph.slice(name, x, c.below(6), begin..begin.wrapping_add(c.extent()))?
        }
        7..=11 => {
            let function = Function::ALL[c.below(Function::ALL.len())];
            let terms: Vec<Term> = (0..if c.below(16) == 15 { c.below(4) } else { function.arity() })
                .map(|place| match (place, c.below(4)) {
                    (0, _) | (_, 1) => Term::Value(one(c, known)),
                    (_, 2) => Term::Value(x),
                    _ => Term::Number(c.number()),
                })
                .collect();
            graph.elementwise(name, function, &terms)?
        }
        12 => {
            let mut permutation: Vec<usize> = (0..extents.len()).collect();
            if !permutation.is_empty() {
                let (a, b) = (c.below(permutation.len()), c.below(permutation.len()));
                permutation.swap(a, b);
            }
            if c.below(8) == 7 {
                permutation = c.several(5, Choices::extent);
            }
            graph.transpose(name, x, &permutation)?
        }
        13 => {
            let optional = |c: &mut Choices<'_>| c.flag().then(|| c.signed());
            let ranges =
                c.several(5, |c| AxisRange { begin: optional(c), end: optional(c), step: c.signed() });
            graph.strided_slice(name, x, &ranges)?
        }
        14 => {
            let (before, after) = (many(c), many(c));
            let mode = match c.below(4) {
                0 => PadMode::Constant(Bits(c.number())),
                1 => PadMode::Reflect,
                2 => PadMode::Symmetric,
                _ => PadMode::Edge,
            };
            let pad = Pad { before, after, mode };
            graph.pad(name, x, &pad.before, &pad.after, pad.mode)?
        }
        15 => {
            let repeats = many(c);
            graph.tile(name, x, &repeats)?
        }
        16 => {
            let target = c.several(5, |c| Dim::Fixed(c.extent()));
            graph.broadcast_to(name, x, &target)?
        }
        17 => {
            let axes = c.several(4, Choices::signed);
            graph.reverse(name, x, &axes)?
        }
        18 => graph.depth_to_space(name, x, c.extent())?,
        19 => graph.space_to_depth(name, x, c.extent())?,
        20 => {
            let (block, before, after) =
                (c.several(3, Choices::extent), c.several(3, Choices::extent), c.several(3, Choices::extent));
            graph.space_to_batch(name, x, &block, &before, &after)?
        }
        21 => {
            let (block, before, after) =
                (c.several(3, Choices::extent), c.several(3, Choices::extent), c.several(3, Choices::extent));
            graph.batch_to_space(name, x, &block, &before, &after)?
        }
        22 => {
            let mut values = c.several(4, |c| one(c, known));
            values.push(x);
            if c.flag() { graph.concat(name, &values, axis)? } else { graph.stack(name, &values, axis)? }
        }
        23 => {
            let sizes = c.several(4, Choices::extent);
            return graph.split(name, x, axis, &sizes);
        }
        24 => {
            let indices = one(c, known);
            graph.gather(name, x, indices, axis, c.below(3))?
        }
        25 => {
            let indices = one(c, known);
            graph.gather_nd(name, x, indices)?
        }
        26 => {
            let options =
                OneHot { depth: c.extent(), on: Bits(c.number()), off: Bits(c.number()), axis: c.signed() };
            graph.one_hot(name, x, options)?
        }
        27 => graph.cumsum(name, x, CumSum { axis, exclusive: c.flag(), reverse: c.flag() })?,
        28 => return graph.top_k(name, x, c.extent()).map(Vec::from),
        29 => {
            let scores = one(c, known);
            let options = Suppress {
                count: c.extent(),
                overlap: Bits(c.number()),
                score: Bits(c.number()),
                sigma: Bits(c.number()),
                strict: c.flag(),
            };
            graph.suppress(name, x, scores, options)?
        }
        30 => {
            let reduction = Reduction::ALL[c.below(Reduction::ALL.len())];
            let axes = if c.flag() { vec![axis] } else { c.several(4, Choices::signed) };
            graph.reduce(name, x, reduction, &axes, c.flag())?
        }
        31 => {
            let mode = if c.flag() { ResizeMode::Nearest } else { ResizeMode::Bilinear };
            let mut options = Resize::new(mode, c.pair());
            options.align_corners = c.flag();
            options.half_pixel_centers = c.flag();
            graph.resize(name, x, options)?
        }
        32 => graph.softmax(name, x, Softmax { axis, beta: Bits(c.number()), log: c.flag() })?,
        33 => match c.flag() {
            true => graph.arg_max(name, x, axis, c.flag())?,
            false => graph.arg_min(name, x, axis, c.flag())?,
        },
        34 => {
            let weights = small(&[c.extent(), c.below(5), c.below(5), channels])?;
            let options = TransposedConv2d {
                stride: c.steps(),
                padding: c.padding(),
                output: c.flag().then(|| c.pair()),
                activation: c.activation(),
            };
            let extras = extras(c, weights.dims().extents()[0], known);
            graph.transposed_conv2d(name, x, weights, extras, options)?
        }
        _ => match c.below(3) {
            0 => {
                let axes = if c.flag() { vec![axis] } else { c.several(3, Choices::signed) };
                let options = Normalize { axes, epsilon: Bits(c.number()), centred: c.flag() };
                let (scale, bias) = (tensor(&[channels]), tensor(&[channels]));
                graph.normalize(name, x, options, scale.filter(|_| c.flag()), bias.filter(|_| c.flag()))?
            }
            1 => {
                let constant = small(&c.several(5, Choices::extent))?;
                graph.constant(name, constant)
            }
            _ => {
                let state = graph.state(name, small(&extents)?);
                graph.update(state, x)?;
                state
            }
        },
    };
    Ok(vec![single])
}
