//! A graph as plain data: it is drawn at random, made smaller, built and written down as a program.

use diptych::{
    Conv2d, Custom, DType, Depthwise, Dim, Dims, Extras, Function, Gemm, Graph, HostTensor, Pointwise, Pool,
    QuantizedMatrix, Reduction, Resize, Right, Softmax, Term, Value,
    nn::{
        AxisRange, CumSum, IntegerFunction, Normalize, OneHot, PadMode, QuantizedGemm, Suppress,
        TransposedConv2d,
    },
};

/// Dimensions and elements.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub(crate) dims: Vec<usize>,
    pub(crate) values: Vec<f32>,
    /// Whether a constant is stored in halves, which these values are.
    pub(crate) halves: bool,
}

impl PartialEq for Tensor {
    /// To the bit: a NaN is the same as itself.
    fn eq(&self, other: &Self) -> bool {
        let bits = |tensor: &Tensor| tensor.values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        self.dims == other.dims && self.halves == other.halves && bits(self) == bits(other)
    }
}

impl Tensor {
    pub(crate) fn host(&self) -> diptych::Result<HostTensor> {
        let dims = Dims::new(&self.dims)?;
        match self.halves {
            true => HostTensor::of(
                dims,
                self.values.iter().map(|&it| half::f16::from_f32(it)).collect::<Vec<_>>(),
            ),
            false => HostTensor::new(dims, self.values.clone()),
        }
    }

    /// The last elements along each axis.
    pub(crate) fn last(&self, dims: &[usize]) -> Tensor {
        let backwards = |tensor: &Tensor| {
            let values = tensor.values.iter().rev().copied().collect();
            Tensor { dims: tensor.dims.clone(), values, halves: tensor.halves }
        };
        backwards(&backwards(self).cropped(dims))
    }

    /// The first elements along each axis; of an axis that becomes longer, the elements begin again.
    pub(crate) fn cropped(&self, dims: &[usize]) -> Tensor {
        let count: usize = dims.iter().product();
        let element = |at: usize| {
            let (mut rest, mut place, mut stride) = (at, 0, 1);
            for (&new, &old) in dims.iter().zip(&self.dims).rev() {
                place += rest % new % old * stride;
                rest /= new;
                stride *= old;
            }
            self.values[place]
        };
        Tensor { dims: dims.to_vec(), values: (0..count).map(element).collect(), halves: self.halves }
    }
}

/// What a value is that no node writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Input,
    Constant,
    /// What it is in the next run is value `.0`, if there is one.
    State(Option<usize>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    pub(crate) tensor: Tensor,
}

/// An argument of a function of each element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Part {
    /// An argument of the node.
    Argument(usize),
    Number(f32),
}

/// What a node computes. Weights are the node's first constant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Make {
    Elementwise(Function, Vec<Part>),
    Conv2d(Conv2d),
    Depthwise(Depthwise),
    Pointwise(Pointwise),
    TransposedConv2d(TransposedConv2d),
    /// With a right matrix that is a constant, or the second argument.
    Gemm(Gemm),
    /// With weights of so many bits in blocks: integers, row by row.
    #[cfg_attr(target_family = "wasm", expect(dead_code, reason = "patterns of rewrites alone have it"))]
    Packed(QuantizedGemm),
    Pool(Pool),
    Reshape(Vec<usize>),
    Slice(usize, [usize; 2]),
    Transpose(Vec<usize>),
    StridedSlice(Vec<AxisRange>),
    Pad(Vec<usize>, Vec<usize>, PadMode),
    Tile(Vec<usize>),
    BroadcastTo(Vec<usize>),
    Reverse(Vec<isize>),
    DepthToSpace(usize),
    SpaceToDepth(usize),
    SpaceToBatch(Vec<usize>, Vec<usize>, Vec<usize>),
    BatchToSpace(Vec<usize>, Vec<usize>, Vec<usize>),
    Concat(isize),
    Stack(isize),
    /// Part `.2` of a split.
    Split(isize, Vec<usize>, usize),
    /// A value in another type.
    #[cfg_attr(target_family = "wasm", expect(dead_code, reason = "patterns of rewrites alone have it"))]
    Cast(DType),
    /// A function of integers, perhaps with a number behind its arguments.
    #[cfg_attr(target_family = "wasm", expect(dead_code, reason = "patterns of rewrites alone have it"))]
    Integers(IntegerFunction, Option<i64>),
    Gather(isize, usize),
    GatherNd,
    OneHot(OneHot),
    CumSum(CumSum),
    /// The elements, or their indices.
    TopK(usize, bool),
    Suppress(Suppress),
    Reduce(Reduction, Vec<isize>, bool),
    Resize(Resize),
    Softmax(Softmax),
    Arg(bool, isize, bool),
    Normalize(Normalize),
    /// A kernel of a test's own, `y = x`.
    Custom(Own),
}

/// A kernel of a test's own, with a closure for the CPU.
#[derive(Debug, Clone)]
pub(crate) struct Own(pub(crate) Custom);

impl PartialEq for Own {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// `y = x` in WGSL.
pub(crate) const IDENTITY: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&x) { y[id.x] = x[id.x]; }
    }
";

impl Own {
    /// `y = x` everywhere.
    pub(crate) fn identity() -> diptych::Result<Self> {
        let kernel = Custom::new("identity", IDENTITY)?;
        Ok(Own(kernel.on_cpu(|inputs, outputs| outputs[0].copy_from_slice(inputs[0]))))
    }
}

/// A node: what it computes, of which values, with which constants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    /// Part of its name, whatever becomes of the nodes before it.
    pub(crate) number: usize,
    pub(crate) make: Make,
    /// Values, counted from the first source on. A residual is the last.
    pub(crate) arguments: Vec<usize>,
    pub(crate) weights: Option<Tensor>,
    pub(crate) bias: Option<Vec<f32>>,
    pub(crate) slope: Option<Vec<f32>>,
    pub(crate) residual: bool,
}

impl Step {
    pub(crate) fn of(make: Make, arguments: Vec<usize>) -> Self {
        Step { number: 0, make, arguments, weights: None, bias: None, slope: None, residual: false }
    }

    pub(crate) fn name(&self) -> String {
        format!("n{}", self.number)
    }

    fn extras(&self, values: &[Value]) -> diptych::Result<Extras> {
        let vector = |values: &Option<Vec<f32>>| values.clone().map(HostTensor::vector).transpose();
        let residual = self.arguments.last().filter(|_| self.residual).and_then(|&last| values.get(last));
        Ok(Extras { bias: vector(&self.bias)?, slope: vector(&self.slope)?, residual: residual.copied() })
    }

    /// Adds the node to a graph; `values` are those before it.
    pub(crate) fn add(&self, graph: &mut Graph, values: &[Value]) -> diptych::Result<Value> {
        let name = &self.name();
        let missing = || diptych::Error::Internal("a recipe without an operand".to_owned());
        let all: Vec<Value> = self.arguments.iter().filter_map(|&value| values.get(value)).copied().collect();
        let x = *all.first().ok_or_else(missing)?;
        let second = || all.get(1).copied().ok_or_else(missing);
        let weights = || self.weights.as_ref().ok_or_else(missing)?.host();
        let (extras, g) = (self.extras(values)?, graph);
        match &self.make {
            Make::Elementwise(function, parts) => {
                let term = |part: &Part| match part {
                    Part::Argument(index) => all.get(*index).map(|&value| Term::Value(value)),
                    Part::Number(number) => Some(Term::Number(*number)),
                };
                let terms: Option<Vec<Term>> = parts.iter().map(term).collect();
                g.elementwise(name, *function, &terms.ok_or_else(missing)?)
            }
            Make::Conv2d(options) => g.conv2d(name, x, weights()?, extras, *options),
            Make::Depthwise(options) => g.depthwise(name, x, weights()?, extras, *options),
            Make::Pointwise(options) => g.pointwise(name, x, weights()?, extras, *options),
            Make::TransposedConv2d(options) => g.transposed_conv2d(name, x, weights()?, extras, *options),
            Make::Gemm(options) => {
                let right = match &self.weights {
                    Some(tensor) => Right::Constant(tensor.host()?),
                    None => Right::Value(second()?),
                };
                g.gemm(name, x, right, extras, *options)
            }
            Make::Packed(options) => {
                let weights = self.weights.as_ref().ok_or_else(missing)?;
                let &[n, k] = weights.dims.as_slice() else { return Err(missing()) };
                let integers: Vec<u8> = weights.values.iter().map(|&value| value as u8).collect();
                let scales = scales(options, n, k);
                let weights = QuantizedMatrix::pack(options.bits, [n, k], &integers, scales)?;
                g.quantized_gemm(name, x, weights, extras, *options)
            }
            Make::Pool(options) => g.pool(name, x, *options),
            Make::Reshape(target) => g.reshape(name, x, &fixed(target)),
            Make::Slice(axis, [begin, end]) => g.slice(name, x, *axis, *begin..*end),
            Make::Transpose(permutation) => g.transpose(name, x, permutation),
            Make::StridedSlice(ranges) => g.strided_slice(name, x, ranges),
            Make::Pad(before, after, mode) => g.pad(name, x, before, after, *mode),
            Make::Tile(repeats) => g.tile(name, x, repeats),
            Make::BroadcastTo(target) => g.broadcast_to(name, x, &fixed(target)),
            Make::Reverse(axes) => g.reverse(name, x, axes),
            Make::DepthToSpace(block) => g.depth_to_space(name, x, *block),
            Make::SpaceToDepth(block) => g.space_to_depth(name, x, *block),
            Make::SpaceToBatch(block, before, after) => g.space_to_batch(name, x, block, before, after),
            Make::BatchToSpace(block, before, after) => g.batch_to_space(name, x, block, before, after),
            Make::Concat(axis) => g.concat(name, &all, *axis),
            Make::Stack(axis) => g.stack(name, &all, *axis),
            Make::Split(axis, sizes, which) => {
                g.split(name, x, *axis, sizes)?.get(*which).copied().ok_or_else(missing)
            }
            Make::Cast(to) => g.cast(name, x, *to),
            Make::Integers(function, number) => {
                let values = all.iter().map(|&value| Term::Value(value));
                let terms: Vec<Term> = values.chain(number.map(Term::Integer)).collect();
                g.integer(name, *function, &terms)
            }
            Make::Gather(axis, batch_dims) => g.gather(name, x, second()?, *axis, *batch_dims),
            Make::GatherNd => g.gather_nd(name, x, second()?),
            Make::OneHot(options) => g.one_hot(name, x, *options),
            Make::CumSum(options) => g.cumsum(name, x, *options),
            Make::TopK(k, indices) => Ok(g.top_k(name, x, *k)?[usize::from(*indices)]),
            Make::Suppress(options) => g.suppress(name, x, second()?, *options),
            Make::Reduce(reduction, axes, keep_dims) => g.reduce(name, x, *reduction, axes, *keep_dims),
            Make::Resize(options) => g.resize(name, x, *options),
            Make::Softmax(options) => g.softmax(name, x, *options),
            Make::Arg(true, axis, keep_dims) => g.arg_max(name, x, *axis, *keep_dims),
            Make::Arg(false, axis, keep_dims) => g.arg_min(name, x, *axis, *keep_dims),
            Make::Normalize(options) => {
                let scale = self.weights.as_ref().map(Tensor::host).transpose()?;
                g.normalize(name, x, options.clone(), scale, extras.bias)
            }
            Make::Custom(kernel) => g.custom(name, &kernel.0, &all)?.first().copied().ok_or_else(missing),
        }
    }
}

pub(crate) fn fixed(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|&extent| Dim::Fixed(extent)).collect()
}

/// A scale for each block of a packed matrix's rows.
pub(crate) fn scales(options: &QuantizedGemm, n: usize, k: usize) -> Vec<f32> {
    let blocks = k.div_ceil(options.block.unwrap_or(k));
    (0..n * blocks).map(|place| (1 + place % 7) as f32 / (1 << (options.bits + 2)) as f32).collect()
}

/// A graph: values are its sources and then what its nodes write.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Recipe {
    pub(crate) sources: Vec<Source>,
    pub(crate) steps: Vec<Step>,
    pub(crate) outputs: Vec<usize>,
}

/// A recipe as a graph, with its inputs.
#[derive(Debug, Clone)]
pub(crate) struct Built {
    pub(crate) graph: Graph,
    pub(crate) values: Vec<Value>,
    pub(crate) inputs: Vec<(String, HostTensor)>,
}

impl Recipe {
    /// The graph.
    ///
    /// # Errors
    /// Those of the library.
    pub(crate) fn build(&self) -> diptych::Result<Built> {
        let mut built = Built { graph: Graph::new(), values: Vec::new(), inputs: Vec::new() };
        for source in &self.sources {
            built.source(source)?;
        }
        for step in &self.steps {
            built.step(step)?;
        }
        let at = |value: usize| {
            let missing = || diptych::Error::Internal("a recipe without a value".to_owned());
            built.values.get(value).copied().ok_or_else(missing)
        };
        let mut graph = built.graph.clone();
        for (index, source) in self.sources.iter().enumerate() {
            if let Origin::State(Some(next)) = source.origin {
                graph.update(at(index)?, at(next)?)?;
            }
        }
        for &output in &self.outputs {
            graph.output(at(output)?)?;
        }
        Ok(Built { graph, ..built })
    }

    /// Whether a run leaves something to the next.
    pub(crate) fn has_states(&self) -> bool {
        self.sources.iter().any(|source| matches!(source.origin, Origin::State(_)))
    }
}

impl Built {
    /// Adds a value that no node writes.
    ///
    /// # Errors
    /// Those of the library.
    pub(crate) fn source(&mut self, source: &Source) -> diptych::Result<Value> {
        let (name, tensor) = (format!("x{}", self.values.len()), source.tensor.host()?);
        let value = match source.origin {
            Origin::Input => {
                self.inputs.push((name.clone(), tensor.clone()));
                let mut dims: Vec<Dim> =
                    tensor.dims().extents().iter().map(|&extent| extent.into()).collect();
                if let Some(outermost) = dims.first_mut() {
                    let dimension = format!("{name}.0");
                    self.graph.dimension(&dimension, tensor.dims().extents()[0])?;
                    *outermost = Dim::Named(dimension);
                }
                self.graph.input_of(&name, &dims)?
            }
            Origin::Constant => self.graph.constant(&name, tensor),
            Origin::State(_) => self.graph.state(&name, tensor),
        };
        self.values.push(value);
        Ok(value)
    }

    /// Adds a node.
    ///
    /// # Errors
    /// Those of the library; the graph is as it was then.
    pub(crate) fn step(&mut self, step: &Step) -> diptych::Result<Value> {
        let value = step.add(&mut self.graph, &self.values)?;
        self.values.push(value);
        Ok(value)
    }
}
