//! Layers by their usual names, and formulas: the values that they give, and that they add the nodes that they say.

use crate::graph::{check, dims, numbers};
use crate::machine::in_turns;
use diptych::nn::Normalize;
use diptych::{
    Bits, DType, Dim, Expression, Extras, Function, Gemm, Graph, HostTensor, Result, Right, Session,
    SessionOptions, Value,
};

type Add<'a> = &'a dyn Fn(&mut Graph) -> Result<Value>;

/// What adds a function of each element, and what it computes.
type Formula<'a> = (Add<'a>, fn(f64) -> f64);

/// The names and operators of a graph's nodes, and what they read.
fn nodes(graph: &Graph) -> Vec<String> {
    let node = |node: &diptych::Node| format!("{} {:?} {:?}", node.name(), node.operator(), node.inputs());
    graph.nodes().iter().map(node).collect()
}

/// The results of `graph`'s outputs on each backend against `wanted`, within `tolerance`.
fn near(graph: &Graph, inputs: &[(&str, &HostTensor)], wanted: &[f64], tolerance: f64) {
    for context in in_turns() {
        let backend = context.info().backend;
        let mut session = Session::new(&context, graph, SessionOptions::new()).expect("a session");
        let outputs = session.run(inputs).expect("a run");
        let found: Vec<f32> = outputs.iter().flat_map(|output| output.to_f32().into_owned()).collect();
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((f64::from(*found) - wanted).abs() <= tolerance, "{backend}: {found}, wanted {wanted}");
        }
    }
}

#[test]
fn named_layers_are_the_nodes_that_they_say() {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(&[2, 4, 3])).expect("an input");
    let ids = graph.typed_input("ids", DType::I64, &[Dim::Fixed(5)]).expect("an input");
    let rows = graph.input("rows", dims(&[2, 3, 6])).expect("an input");
    let (weights, table) = (numbers(dims(&[5, 3]), 1), numbers(dims(&[7, 2]), 2));
    let (scale, bias) = (numbers(dims(&[3]), 3), numbers(dims(&[5]), 4));
    let of = |function: Function| move |graph: &mut Graph| graph.elementwise("y", function, &[x.into()]);
    let two = |function: Function| {
        move |graph: &mut Graph| graph.elementwise("y", function, &[x.into(), 2.0.into()])
    };
    let transposed = Gemm { transpose_b: true, ..Gemm::default() };
    let options = || Normalize { axes: vec![-1], epsilon: Bits(0.5), centred: true };
    let right = || Right::Constant(weights.clone());
    let cases: [(&str, Add<'_>, Add<'_>); 14] = [
        ("relu", &|graph| graph.relu("y", x), &of(Function::Relu)),
        ("relu6", &|graph| graph.relu6("y", x), &of(Function::Relu6)),
        ("sigmoid", &|graph| graph.sigmoid("y", x), &of(Function::Sigmoid)),
        ("tanh", &|graph| graph.tanh("y", x), &of(Function::Tanh)),
        ("gelu", &|graph| graph.gelu("y", x), &of(Function::Gelu)),
        ("silu", &|graph| graph.silu("y", x), &|graph| {
            let sigmoid = graph.elementwise("y.0", Function::Sigmoid, &[x.into()])?;
            graph.elementwise("y", Function::Mul, &[x.into(), sigmoid.into()])
        }),
        ("plus", &|graph| graph.plus("y", x, 2.0), &two(Function::Add)),
        ("sub", &|graph| graph.sub("y", x, 2.0), &two(Function::Sub)),
        ("mul", &|graph| graph.mul("y", x, 2.0), &two(Function::Mul)),
        ("div", &|graph| graph.div("y", x, 2.0), &two(Function::Div)),
        ("matmul", &|graph| graph.matmul("y", x, rows), &|graph| {
            graph.gemm("y", x, Right::Value(rows), Extras::default(), Gemm::default())
        }),
        ("linear", &|graph| graph.linear("y", x, weights.clone(), Some(bias.clone())), &|graph| {
            graph.gemm("y", x, right(), Extras::bias(bias.clone()), transposed)
        }),
        ("layer_norm", &|graph| graph.layer_norm("y", x, Some(scale.clone()), None, 0.5), &|graph| {
            graph.normalize("y", x, options(), Some(scale.clone()), None)
        }),
        ("embedding", &|graph| graph.embedding("y", table.clone(), ids), &|graph| {
            let table = graph.constant("y.src", table.clone());
            graph.gather("y", table, ids, 0, 0)
        }),
    ];
    for (name, own, composed) in cases {
        let (mut found, mut wanted) = (graph.clone(), graph.clone());
        let y = own(&mut found).unwrap_or_else(|error| panic!("{name}: {error}"));
        composed(&mut wanted).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.name(y).expect("a name"), "y");
        let [mut own, mut composed] = [&found, &wanted].map(nodes);
        // Constants are told by their indices, which depend on the order in which they were added.
        if name == "embedding" {
            for nodes in [&mut own, &mut composed] {
                nodes[0].truncate(30);
            }
        }
        assert_eq!(own, composed, "{name}");
    }
}

#[test]
fn activations_are_what_their_formulas_give() {
    let given = [-7.5f32, -1.0, -0.25, 0.0, 0.5, 2.0, 6.5];
    let x = HostTensor::new(dims(&[7]), given.to_vec()).expect("seven");
    let formulas: [Formula<'_>; 5] = [
        (&|graph| graph.relu("y", graph.inputs()[0]), |x| x.max(0.0)),
        (&|graph| graph.relu6("y", graph.inputs()[0]), |x| x.clamp(0.0, 6.0)),
        (&|graph| graph.sigmoid("y", graph.inputs()[0]), |x| 1.0 / (1.0 + (-x).exp())),
        (&|graph| graph.tanh("y", graph.inputs()[0]), f64::tanh),
        (&|graph| graph.silu("y", graph.inputs()[0]), |x| x / (1.0 + (-x).exp())),
    ];
    for (add, formula) in formulas {
        let mut graph = Graph::new();
        graph.input("x", dims(&[7])).expect("an input");
        let y = add(&mut graph).expect("a node");
        graph.output(y).expect("an output");
        near(&graph, &[("x", &x)], &given.map(|x| formula(f64::from(x))), 1e-5);
        for context in in_turns() {
            let session = Session::new(&context, &graph, SessionOptions::new()).expect("a session");
            let steps = session.steps();
            assert_eq!(steps.iter().filter(|step| !step.inserted).count(), 1, "{steps:?}");
        }
    }
    let mut graph = Graph::new();
    let input = graph.input("x", dims(&[3])).expect("an input");
    let y = graph.gelu("y", input).expect("a node");
    graph.output(y).expect("an output");
    // x times the normal distribution's integral up to x: 0.158655, 0.5 and 0.977250.
    let x = HostTensor::new(dims(&[3]), vec![-1.0, 0.0, 2.0]).expect("three");
    near(&graph, &[("x", &x)], &[-0.158_655_25, 0.0, 1.954_499_74], 1e-5);
}

#[test]
fn dense_layers_products_and_rows_are_right() {
    let mut graph = Graph::new();
    let a = graph.input("a", dims(&[2, 3])).expect("an input");
    let b = graph.input("b", dims(&[3, 2])).expect("an input");
    let ids = graph.typed_input("ids", DType::I64, &[Dim::Fixed(2), Dim::Fixed(1)]).expect("an input");
    let weights = HostTensor::new(dims(&[2, 3]), vec![1.0, 0.0, -1.0, 2.0, 2.0, 2.0]).expect("weights");
    let bias = HostTensor::vector(vec![10.0, 20.0]).expect("a bias");
    let table = HostTensor::new(dims(&[3, 2]), vec![0.0, 1.0, 10.0, 11.0, 20.0, 21.0]).expect("a table");
    let outputs = [
        graph.matmul("product", a, b),
        graph.linear("dense", a, weights.clone(), Some(bias)),
        graph.linear("plain", a, weights, None),
        graph.embedding("rows", table, ids),
        graph.sub("from", 1.0, a),
        graph.div("share", a, a),
    ];
    outputs.into_iter().for_each(|value| graph.output(value.expect("a node")).expect("an output"));
    let of = |extents: &[usize], values: &[f32]| {
        HostTensor::new(dims(extents), values.to_vec()).expect("a tensor")
    };
    let (a, b) = (of(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), of(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]));
    let ids = HostTensor::of(dims(&[2, 1]), vec![2_i64, 0]).expect("ids");
    let wanted = [
        of(&[2, 2], &[4.0, 5.0, 10.0, 11.0]),
        of(&[2, 2], &[8.0, 32.0, 8.0, 50.0]),
        of(&[2, 2], &[-2.0, 12.0, -2.0, 30.0]),
        of(&[2, 1, 2], &[20.0, 21.0, 0.0, 1.0]),
        of(&[2, 3], &[0.0, -1.0, -2.0, -3.0, -4.0, -5.0]),
        of(&[2, 3], &[1.0; 6]),
    ];
    check(&graph, &SessionOptions::new(), &[("a", &a), ("b", &b), ("ids", &ids)], &wanted);
}

#[test]
fn a_layer_normalisation_is_over_the_last_axis() {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(&[2, 2])).expect("an input");
    let scale = HostTensor::vector(vec![1.0, 10.0]).expect("a scale");
    let bias = HostTensor::vector(vec![0.0, 5.0]).expect("a bias");
    let y = graph.layer_norm("norm", x, Some(scale), Some(bias), 3.0).expect("a node");
    graph.output(y).expect("an output");
    // The means are 2 and 0, the variances 1 and 6: the roots with epsilon are 2 and 3.
    let root = 6f32.sqrt();
    let x = HostTensor::new(dims(&[2, 2]), vec![1.0, 3.0, -root, root]).expect("four");
    let share = f64::from(root) / 3.0;
    near(&graph, &[("x", &x)], &[-0.5, 10.0, -share, 5.0 + 10.0 * share], 1e-4);
}

#[test]
fn a_formula_becomes_nodes_in_its_order() {
    let mut graph = Graph::new();
    let a = graph.input("a", dims(&[2, 3])).expect("an input");
    let b = graph.input("b", dims(&[3])).expect("an input");
    let formulas: [(&str, Expression); 6] = [
        ("sum", a + b),
        ("mixed", 2.0 * a - b / 4.0),
        ("nested", a * (b + 1.0 - (a - b))),
        ("negative", -(a + 1) * -b),
        ("numbers", 8 / (2 + b * b)),
        ("root", (a * a).apply(Function::Sqrt) - 1.0),
    ];
    for (name, formula) in formulas {
        let y = graph.expression(name, formula).expect("nodes");
        assert_eq!(graph.name(y).expect("a name"), name);
        graph.output(y).expect("an output");
    }
    let names: Vec<&str> = graph.nodes().iter().map(diptych::Node::name).collect();
    assert_eq!(
        names[..8],
        ["sum", "mixed.0", "mixed.1", "mixed", "nested.0", "nested.1", "nested.2", "nested"]
    );
    let (left, right) = ([-2.0f32, -1.0, 0.0, 1.0, 2.0, 3.0], [0.0f32, -1.0, 2.0]);
    let each = |f: fn(f64, f64) -> f64| {
        left.iter().zip(right.iter().cycle()).map(move |(a, b)| f((*a).into(), (*b).into()))
    };
    let wanted: Vec<f64> = each(|a, b| a + b)
        .chain(each(|a, b| 2.0 * a - b / 4.0))
        .chain(each(|a, b| a * (b + 1.0 - (a - b))))
        .chain(each(|a, b| (a + 1.0) * b))
        // Of `b` alone: one row.
        .chain(right.iter().map(|b| f64::from(8.0 / (2.0 + b * b))))
        .chain(each(|a, _| a.abs() - 1.0))
        .collect();
    let a = HostTensor::new(dims(&[2, 3]), left.to_vec()).expect("six");
    let b = HostTensor::new(dims(&[3]), right.to_vec()).expect("three");
    near(&graph, &[("a", &a), ("b", &b)], &wanted, 1e-5);
}

#[test]
fn a_formula_that_does_not_fit_leaves_the_graph_as_it_was() {
    let mut graph = Graph::new();
    let a = graph.input("a", dims(&[2, 3])).expect("an input");
    let b = graph.input("b", dims(&[4])).expect("an input");
    let before = format!("{graph:?}");
    let told = |found: Result<Value>, wanted: &[&str]| {
        let text = found.expect_err("it does not fit").to_string();
        assert!(wanted.iter().all(|wanted| text.contains(wanted)), "{text}");
    };
    told(graph.expression("y", a * 2.0 + b), &["y", "2x3", "4"]);
    told(graph.expression("y", a.into()), &["y", "no function"]);
    told(graph.expression("y", Expression::from(1.0) + 2.0), &["y"]);
    told(graph.expression("y", (a + 1.0).apply(Function::Add)), &["y", "add"]);
    let foreign = Graph::new().input("c", dims(&[2, 3])).expect("an input");
    told(graph.expression("y", a + 1.0 + foreign), &["another graph"]);
    told(graph.embedding("rows", numbers(dims(&[4]), 1), b), &["rows", "rank 2", "4"]);
    told(graph.linear("dense", a, numbers(dims(&[2, 4]), 1), None), &["dense", "3", "4"]);
    told(graph.matmul("product", a, b), &["product"]);
    told(graph.layer_norm("norm", a, None, None, 0.0), &["norm"]);
    told(graph.plus("sum", 1.0, 2.0), &["sum"]);
    assert_eq!(format!("{graph:?}"), before);
}

/// Neither adding a formula nor dropping it calls itself for each function.
#[test]
fn a_formula_may_be_long() {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(&[1])).expect("an input");
    let sum = (0..20_000).fold(x + 0.0, |sum, _| sum + 1.0);
    graph.expression("sum", sum).expect("nodes");
    assert_eq!(graph.nodes().len(), 20_001);
}
