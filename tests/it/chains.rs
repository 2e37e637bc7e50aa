//! Functions of each element as parts of what they follow: which, and with the same result on every backend.

use crate::machine::{everywhere, in_turns, noise};
use diptych::{
    Activation, Choice, Context, Conv2d, Depthwise, Dims, Extras, Function, Gemm, Graph, HostTensor, Padding,
    Pointwise, Pool, Pooling, Precision, Rewrite, Right, Session, SessionOptions, Shape, Term, Value,
};

const IMAGE: Shape = Shape::nhwc(2, 9, 7, 10);

fn vector(seed: u32) -> HostTensor {
    noise(Shape::nhwc(1, 1, 1, 10), seed)
}

/// A graph with its values by name.
struct Network {
    graph: Graph,
    values: Vec<(String, Value)>,
}

impl Network {
    fn new() -> (Self, Value) {
        let mut graph = Graph::new();
        let x = graph.input("x", IMAGE).expect("an input");
        (Network { graph, values: Vec::new() }, x)
    }

    fn keep(&mut self, name: &str, value: Value) -> Value {
        self.values.push((name.to_owned(), value));
        value
    }

    fn each(&mut self, name: &str, function: Function, terms: &[Term]) -> Value {
        let value = self.graph.elementwise(name, function, terms).expect("they fit");
        self.keep(name, value)
    }

    fn conv2d(&mut self, name: &str, x: Value, activation: Activation) -> Value {
        let options = Conv2d { padding: Padding::Same, activation, ..Default::default() };
        let weights = noise(Shape::nhwc(10, 3, 3, 10), 3);
        let value = self.graph.conv2d(name, x, weights, Extras::bias(vector(4)), options);
        self.keep(name, value.expect("a convolution"))
    }

    fn depthwise(&mut self, name: &str, x: Value) -> Value {
        let options = Depthwise { padding: Padding::Same, ..Default::default() };
        let weights = noise(Shape::nhwc(1, 3, 3, 10), 5);
        let value = self.graph.depthwise(name, x, weights, Extras::default(), options);
        self.keep(name, value.expect("a convolution"))
    }

    fn pointwise(&mut self, name: &str, x: Value) -> Value {
        let weights = noise(Shape::nhwc(10, 1, 1, 10), 6);
        let value = self.graph.pointwise(name, x, weights, Extras::default(), Pointwise::default());
        self.keep(name, value.expect("a convolution"))
    }

    /// The results of a run: those of `names`, everything else being joined where it can be.
    fn run(&self, context: &Context, names: &[&str], options: SessionOptions) -> (Vec<HostTensor>, Session) {
        let mut graph = self.graph.clone();
        for (_, value) in self.values.iter().filter(|(name, _)| names.contains(&name.as_str())) {
            graph.output(*value).expect("an output");
        }
        let mut session = Session::new(context, &graph, options).expect("a session");
        let found = session.run(&[("x", &noise(IMAGE, 20))]).expect("a run");
        (found, session)
    }

    /// Checks that the last value is the same whether what comes before it is joined or not, and that joined
    /// it takes the steps `wanted`.
    fn check(&self, wanted: &[&str]) {
        let every: Vec<&str> = self.values.iter().map(|(name, _)| name.as_str()).collect();
        let last = *every.last().expect("a value");
        for context in &in_turns() {
            let (apart, _) = self.run(context, &every, SessionOptions::default());
            for (precision, tolerance) in [(Precision::F32, 2e-5), (Precision::F16Storage, 1e-2)] {
                let without_rewrites = [Rewrite::Loops, Rewrite::Epilogues].into();
                let options = SessionOptions { precision, without_rewrites, ..Default::default() };
                let (joined, session) = self.run(context, &[last], options);
                let what = format!("{} {precision}", context.info());
                let moves = ["convert", "copy", "remap"];
                let steps = session.steps().into_iter().filter(|step| !moves.contains(&step.op));
                let steps: Vec<String> = steps.map(|step| step.name).collect();
                assert_eq!(steps, wanted, "{what}");
                let (joined, apart) = (joined[0].to_f32(), apart[every.len() - 1].to_f32());
                for (index, (found, wanted)) in joined.iter().zip(apart.iter()).enumerate() {
                    let off = (found - wanted).abs();
                    assert!(off <= tolerance * wanted.abs().max(1.0), "{what} {index}: {found} {wanted}");
                }
            }
        }
    }
}

#[test]
fn activations_are_computed_by_what_they_follow() {
    let (mut network, x) = Network::new();
    let slope = network.graph.constant("slope", vector(8));
    let a = network.conv2d("a", x, Activation::None);
    let b = network.each("b", Function::HardSwish, &[a.into()]);
    let c = network.depthwise("c", b);
    let d = network.each("d", Function::PRelu, &[c.into(), slope.into()]);
    let e = network.pointwise("e", d);
    let f = network.each("f", Function::LeakyRelu, &[e.into(), 0.3.into()]);
    let pool = Pool { padding: Padding::Same, ..Pool::new(Pooling::Average, [2, 3]) };
    let g = network.graph.pool("g", f, pool).expect("windows");
    let g = network.keep("g", g);
    network.each("h", Function::Tanh, &[g.into()]);
    network.check(&["a + b", "c + d", "e + f", "g + h"]);
}

#[test]
fn a_matrix_product_takes_its_activation_and_a_sum() {
    let (mut network, x) = Network::new();
    let rows = network.graph.reshape("rows", x, &[126.into(), 10.into()]).expect("a view");
    let right = Right::Constant(noise(Shape::nhwc(1, 1, 10, 10), 9));
    let right = match right {
        Right::Constant(tensor) => Right::Constant(
            HostTensor::new(Dims::new(&[10, 10]).expect("small"), tensor.to_f32().to_vec())
                .expect("a matrix"),
        ),
        other => other,
    };
    let a = network.graph.gemm("a", rows, right, Extras::default(), Gemm::default()).expect("a product");
    let a = network.keep("a", a);
    let b = network.each("b", Function::Sigmoid, &[a.into()]);
    network.each("c", Function::Add, &[rows.into(), b.into()]);
    network.check(&["a + b + c"]);
}

#[test]
fn a_sum_is_the_residual_of_the_later_of_two() {
    let (mut network, x) = Network::new();
    let a = network.pointwise("a", x);
    let b = network.conv2d("b", x, Activation::Relu);
    let c = network.each("c", Function::Add, &[b.into(), a.into()]);
    let d = network.each("d", Function::Mul, &[c.into(), x.into()]);
    network.each("e", Function::Add, &[d.into(), x.into()]);
    network.check(&["a", "b + c", "d + e"]);
}

#[test]
fn an_activation_behind_a_sum_is_the_last_of_a_convolution() {
    let (mut network, x) = Network::new();
    let a = network.conv2d("a", x, Activation::None);
    let b = network.each("b", Function::Add, &[x.into(), a.into()]);
    network.each("c", Function::Relu6, &[b.into()]);
    network.check(&["a + b + c"]);
}

#[test]
fn chains_are_one_program_and_read_each_value_once() {
    let (mut network, x) = Network::new();
    let scale = network.graph.constant("scale", vector(12));
    let column = network.graph.constant("column", noise(Shape::nhwc(1, 9, 1, 1), 13));
    let a = network.each("a", Function::Mul, &[x.into(), scale.into()]);
    let b = network.each("b", Function::Add, &[a.into(), column.into()]);
    let c = network.each("c", Function::Sigmoid, &[b.into()]);
    let d = network.each("d", Function::Sub, &[1.0.into(), c.into()]);
    let e = network.each("e", Function::Mul, &[scale.into(), d.into()]);
    network.each("f", Function::Div, &[e.into(), 3.0.into()]);
    network.check(&["a + b + c + d + e + f"]);
}

#[test]
fn what_is_read_twice_leaves_the_network_or_grows_stays_apart() {
    let (mut network, x) = Network::new();
    let a = network.conv2d("a", x, Activation::None);
    // Read twice, by no function that is an activation.
    let b = network.each("b", Function::Tanh, &[a.into()]);
    let c = network.each("c", Function::Mul, &[a.into(), b.into()]);
    let pool = Pool { padding: Padding::Same, ..Pool::new(Pooling::Max, [9, 7]) };
    let d = network.graph.pool("d", c, pool).expect("windows");
    let d = network.keep("d", d);
    // One value for each channel and image, of which a whole map is made.
    let e = network.each("e", Function::Exp, &[d.into()]);
    network.each("f", Function::Mul, &[c.into(), e.into()]);
    network.check(&["a", "b + c", "d", "e", "f"]);
    let context = &everywhere()[0];
    // Composition has one step write both, so it is left out.
    let options = SessionOptions {
        without_rewrites: [Rewrite::Loops, Rewrite::Epilogues].into(),
        ..Default::default()
    };
    let (_, session) = network.run(context, &["b", "f"], options);
    assert!(session.steps().iter().any(|step| step.name == "b"), "b leaves the network");
}

#[test]
fn a_node_chosen_by_hand_keeps_its_kernel() {
    let (mut network, x) = Network::new();
    let a = network.pointwise("a", x);
    network.each("b", Function::Relu, &[a.into()]);
    for context in &everywhere() {
        let direct = Choice::new("direct", [1, 1, 1], [2, 2, 2]);
        let choices = [("a".to_owned(), direct)].into_iter().collect();
        let options = SessionOptions { choices, ..Default::default() };
        let (_, session) = network.run(context, &["b"], options);
        assert!(session.steps().iter().any(|step| step.name == "a"), "{}", context.info());
    }
}

/// A dense layer as PyTorch writes it: the product of two matrices, seen as batch, tokens and channels by what adds the
/// bias and what came before.
#[test]
fn what_sees_a_product_in_other_dimensions_is_a_part_of_it() {
    let (mut network, x) = Network::new();
    let rows = network.graph.reshape("rows", x, &[126.into(), 10.into()]).expect("rows");
    let right = || Right::Constant(noise(Shape::matrix(1, 10, 10), 21));
    let dims = |extents: &[usize]| Dims::new(extents).expect("dimensions");
    let tokens: [diptych::Dim; 3] = [2.into(), 63.into(), 10.into()];
    let a = network.graph.gemm("a", rows, right(), Extras::default(), Gemm::default()).expect("a product");
    let seen = network.graph.reshape("seen", a, &tokens).expect("tokens");
    let bias = network.graph.constant("bias", vector(22).reshaped(dims(&[10])).expect("a vector"));
    let b = network.each("b", Function::Add, &[bias.into(), seen.into()]);
    let c = network.each("c", Function::Relu, &[b.into()]);
    let before = network.graph.reshape("before", x, &tokens).expect("tokens");
    let d = network.each("d", Function::Add, &[c.into(), before.into()]);
    // A part of a result, and numbers for each token, are no bias.
    let half = network.graph.slice("half", d, 0, 0..1).expect("a part");
    let column = network
        .graph
        .constant("column", noise(Shape::matrix(1, 63, 1), 23).reshaped(dims(&[63, 1])).expect("a column"));
    let e = network.each("e", Function::Add, &[half.into(), column.into()]);
    let matrix = network.graph.reshape("matrix", e, &[63.into(), 10.into()]).expect("rows");
    let f = network.graph.gemm("f", matrix, right(), Extras::default(), Gemm::default()).expect("a product");
    let f = network.keep("f", f);
    let seen = network.graph.reshape("seen again", f, &[1.into(), 63.into(), 10.into()]).expect("tokens");
    let g = network.each("g", Function::Add, &[seen.into(), column.into()]);
    let map = network.graph.reshape("map", g, &[1.into(), 9.into(), 7.into(), 10.into()]).expect("a map");
    let bias = network.graph.constant("another", vector(24));
    network.each("h", Function::Mul, &[map.into(), bias.into()]);
    network.check(&["a + b + c + d", "e", "f", "g + h"]);
}

#[test]
fn a_constant_for_each_channel_is_a_bias_where_there_is_none() {
    let (mut network, x) = Network::new();
    let number = network.graph.constant("number", vector(25));
    let a = network.depthwise("a", x);
    let b = network.each("b", Function::Add, &[a.into(), number.into()]);
    let c = network.pointwise("c", b);
    let d = network.each("d", Function::Relu, &[c.into()]);
    // Behind an activation, and where there is a bias, it is one more function.
    let e = network.each("e", Function::Add, &[d.into(), number.into()]);
    let f = network.conv2d("f", e, Activation::None);
    network.each("g", Function::Add, &[number.into(), f.into()]);
    network.check(&["a + b", "c + d", "e", "f", "g"]);
}
