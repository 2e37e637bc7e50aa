//! Values of integer types, on every backend: exact, or refused with the reason.

use crate::machine::{everywhere, gpus};
use diptych::nn::IntegerFunction;
use diptych::{
    Backend, Batch, BatchOptions, DType, Dim, Dims, Error, Function, Graph, HostTensor, Session,
    SessionOptions, TensorElement, Term, Value,
};

fn dims(extents: &[usize]) -> Dims {
    Dims::new(extents).expect("small")
}

fn tensor<T: TensorElement>(extents: &[usize], values: Vec<T>) -> HostTensor {
    HostTensor::of(dims(extents), values).expect("as many")
}

fn input(graph: &mut Graph, name: &str, dtype: DType, extents: &[usize]) -> Value {
    let extents: Vec<Dim> = extents.iter().map(|&extent| Dim::Fixed(extent)).collect();
    graph.typed_input(name, dtype, &extents).expect("an input")
}

/// Runs `graph` on every backend and compares its outputs to the bit.
fn is_everywhere(graph: &Graph, inputs: &[(&str, &HostTensor)], wanted: &[HostTensor]) {
    for context in everywhere() {
        let mut session = Session::new(&context, graph, SessionOptions::default()).expect("a session");
        let outputs = session.run(inputs).expect("a run");
        assert_eq!(outputs, wanted, "{}", context.info());
    }
}

#[test]
fn ids_beyond_24_bits_are_hashed_and_look_up_their_rows() {
    let mut graph = Graph::new();
    let ids = input(&mut graph, "ids", DType::I64, &[4]);
    let product =
        graph.elementwise("product", Function::Mul, &[ids.into(), 1_000_003.into()]).expect("a node");
    let bucket =
        graph.elementwise("bucket", Function::FloorMod, &[product.into(), 65_536.into()]).expect("a node");
    let rows: Vec<f32> = (0..65_536).map(|row| row as f32 / 8.0).collect();
    let table = graph.constant("table", HostTensor::new(dims(&[65_536, 1]), rows).expect("rows"));
    let found = graph.gather("found", table, bucket, 0, 0).expect("a node");
    [bucket, found].into_iter().for_each(|value| graph.output(value).expect("an output"));
    let given = vec![1000i64, 1, 2000, 17];
    let wanted: Vec<i64> = given.iter().map(|id| id * 1_000_003 % 65_536).collect();
    let rows = wanted.iter().map(|&row| row as f32 / 8.0).collect::<Vec<f32>>();
    let outputs = [tensor(&[4], wanted), tensor(&[4, 1], rows)];
    is_everywhere(&graph, &[("ids", &tensor(&[4], given.clone()))], &outputs);
    // Whole numbers in f32 are taken for integers, as before there were types.
    let floats = HostTensor::new(dims(&[4]), given.iter().map(|&id| id as f32).collect::<Vec<_>>());
    is_everywhere(&graph, &[("ids", &floats.expect("four"))], &outputs);
}

#[test]
fn integers_move_as_they_are() {
    let mut graph = Graph::new();
    let x = input(&mut graph, "x", DType::I64, &[2, 3]);
    let turned = graph.transpose("turned", x, &[1, 0]).expect("a node");
    let twice = graph.concat("twice", &[turned, turned], 1).expect("a node");
    let padded = graph
        .pad("padded", twice, &[1, 0], &[0, 1], diptych::nn::PadMode::Constant(diptych::Bits(-1.0)))
        .expect("a node");
    let tiled = graph.tile("tiled", x, &[1, 2]).expect("a node");
    let some = graph.slice("some", tiled, 0, 1..2).expect("a node");
    [padded, some].into_iter().for_each(|value| graph.output(value).expect("an output"));
    // Bits that are a NaN, a subnormal number and more than an f32 holds.
    let [a, b, c, d, e, f] = [0x7fc0_0001, 1, (1 << 24) + 1, -1, i64::from(i32::MIN), 0x7f80_0001];
    let wanted = vec![-1, -1, -1, -1, -1, a, d, a, d, -1, b, e, b, e, -1, c, f, c, f, -1];
    let given = tensor(&[2, 3], vec![a, b, c, d, e, f]);
    let outputs = [tensor(&[4, 5], wanted), tensor(&[1, 6], vec![d, e, f, d, e, f])];
    is_everywhere(&graph, &[("x", &given)], &outputs);
}

#[test]
fn every_cast_is_that_of_the_type() {
    let values = [0i32, 1, -1, 127, 128, 255, 256, -129, 70_000, i32::MAX, i32::MIN];
    for to in DType::ALL {
        let mut graph = Graph::new();
        let x = input(&mut graph, "x", DType::I32, &[values.len()]);
        let y = graph.cast("y", x, to).expect("a cast");
        graph.output(y).expect("an output");
        let n = &[values.len()][..];
        macro_rules! cast {
            ($ty:ty) => {
                tensor(n, values.iter().map(|&value| value as $ty).collect::<Vec<$ty>>())
            };
        }
        let wanted = match to {
            DType::F32 => cast!(f32),
            DType::I64 => cast!(i64),
            DType::I32 => cast!(i32),
            DType::I16 => cast!(i16),
            DType::I8 => cast!(i8),
            // A negative number is kept by its bits.
            DType::U32 => cast!(u32),
            DType::U16 => cast!(u16),
            DType::U8 => cast!(u8),
            DType::Bool => tensor(n, values.iter().map(|&value| value != 0).collect()),
            _ => continue,
        };
        for context in everywhere() {
            let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
            let given = tensor(n, values.to_vec());
            let output = session.run(&[("x", &given)]).expect("a run").remove(0);
            assert_eq!(output.dtype(), to, "{}", context.info());
            assert_eq!(output, wanted, "i32 to {to} on {}", context.info());
        }
    }
}

#[test]
fn floats_are_cut_off_and_narrow_integers_wrap() {
    let values = vec![2.7f32, -2.7, 300.0, -1.0, 65_537.5];
    let of = |to: DType| {
        let mut graph = Graph::new();
        let x = input(&mut graph, "x", DType::F32, &[5]);
        let y = graph.cast("y", x, to).expect("a cast");
        graph.output(y).expect("an output");
        graph
    };
    let given = tensor(&[5], values.clone());
    is_everywhere(&of(DType::U8), &[("x", &given)], &[tensor(&[5], vec![2u8, 254, 44, 255, 1])]);
    is_everywhere(&of(DType::I8), &[("x", &given)], &[tensor(&[5], vec![2i8, -2, 44, -1, 1])]);
    is_everywhere(&of(DType::I64), &[("x", &given)], &[tensor(&[5], vec![2i64, -2, 300, -1, 65_537])]);
    is_everywhere(&of(DType::Bool), &[("x", &given)], &[tensor(&[5], vec![true; 5])]);
}

#[test]
fn a_mask_of_positions_chooses_between_integers() {
    let mut graph = Graph::new();
    let positions = input(&mut graph, "positions", DType::I64, &[1, 5]);
    let length = input(&mut graph, "length", DType::I64, &[1, 1]);
    let inside =
        graph.elementwise("inside", Function::Less, &[positions.into(), length.into()]).expect("a node");
    let chosen = graph
        .elementwise("chosen", Function::Select, &[inside.into(), positions.into(), Term::Integer(-1)])
        .expect("a node");
    [inside, chosen].into_iter().for_each(|value| graph.output(value).expect("an output"));
    let given = [tensor(&[1, 5], vec![0i64, 1, 2, 3, 4]), tensor(&[1, 1], vec![3i64])];
    let wanted =
        [tensor(&[1, 5], vec![true, true, true, false, false]), tensor(&[1, 5], vec![0i64, 1, 2, -1, -1])];
    is_everywhere(&graph, &[("positions", &given[0]), ("length", &given[1])], &wanted);
}

#[test]
fn sixty_four_bits_are_exact_on_the_cpu_and_refused_elsewhere_with_their_place() {
    let mut graph = Graph::new();
    let x = input(&mut graph, "x", DType::I64, &[3]);
    let y = graph.integer("y", IntegerFunction::BitXor, &[x.into(), Term::Integer(1)]).expect("a node");
    let z = graph.reverse("z", y, &[0]).expect("a node");
    graph.output(z).expect("an output");
    let large = tensor(&[3], vec![1i64 << 40, -7, i64::MAX]);
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let small = session.run(&[("x", &tensor(&[3], vec![4i64, -7, 8]))]).expect("a run");
        assert_eq!(small, [tensor(&[3], vec![9i64, -8, 5])], "{}", context.info());
        let found = session.run(&[("x", &large)]);
        if context.info().backend == Backend::Cpu {
            assert_eq!(found.expect("a run"), [tensor(&[3], vec![i64::MAX ^ 1, -8, (1 << 40) + 1])]);
        } else {
            let error = found.expect_err("too large");
            assert!(matches!(error, Error::Input { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("\"x\"") && text.contains("1099511627776 at element 0"), "{text}");
            assert!(text.contains("the CPU has 64"), "{text}");
        }
    }
    // A constant, too.
    let table = graph.constant("offsets", large);
    let sum = graph.elementwise("sum", Function::Add, &[x.into(), table.into()]).expect("a node");
    graph.output(sum).expect("an output");
    for context in gpus() {
        let text =
            Session::new(&context, &graph, SessionOptions::default()).expect_err("a constant").to_string();
        assert!(text.contains("offsets") && text.contains("1099511627776"), "{text}");
    }
}

#[test]
fn numbers_beyond_32_bits_are_exact_on_the_cpu_and_refused_elsewhere() {
    let of = |function, terms: &dyn Fn(Value) -> Vec<Term>| {
        let mut graph = Graph::new();
        let x = input(&mut graph, "x", DType::I64, &[3]);
        let y = graph.integer("y", function, &terms(x)).expect("fits");
        graph.output(y).expect("an output");
        graph
    };
    let large = 1i64 << 40;
    let x = tensor(&[3], vec![7i64, -8, i64::from(i32::MAX)]);
    // A bound beyond all of them bounds nothing.
    let bounds: [(_, &dyn Fn(Value) -> Vec<Term>, _); 3] = [
        (
            IntegerFunction::Minimum,
            &|x| vec![x.into(), Term::Integer(large)],
            vec![7i64, -8, i64::from(i32::MAX)],
        ),
        (
            IntegerFunction::Maximum,
            &|x| vec![Term::Integer(-large), x.into()],
            vec![7, -8, i64::from(i32::MAX)],
        ),
        (
            IntegerFunction::Clamp,
            &|x| vec![x.into(), Term::Integer(0), Term::Integer(i64::MAX)],
            vec![7, 0, i64::from(i32::MAX)],
        ),
    ];
    for (function, terms, wanted) in bounds {
        is_everywhere(&of(function, terms), &[("x", &x)], &[tensor(&[3], wanted)]);
    }
    let graph = of(IntegerFunction::Add, &|x| vec![x.into(), Term::Integer(large)]);
    for context in everywhere() {
        let session = Session::new(&context, &graph, SessionOptions::default());
        if context.info().backend == Backend::Cpu {
            let found = session.expect("a session").run(&[("x", &x)]).expect("a run");
            assert_eq!(
                found[0].elements::<i64>(),
                Some(&[large + 7, large - 8, large + i64::from(i32::MAX)][..])
            );
            continue;
        }
        let error = session.expect_err("a constant beyond 32 bits").to_string();
        for word in ["\"y\"", "1099511627776", "32 bits"] {
            assert!(error.contains(word), "no {word} in: {error}");
        }
    }
}

#[test]
fn types_that_do_not_fit_are_refused_when_a_node_is_added() {
    let mut graph = Graph::new();
    let x = input(&mut graph, "x", DType::I32, &[1, 1, 1, 4]);
    let y = input(&mut graph, "y", DType::I64, &[1, 1, 1, 4]);
    let text = graph.softmax("s", x, diptych::nn::Softmax::default()).expect_err("integers").to_string();
    assert!(text.contains("i32") && text.contains("Graph::cast"), "{text}");
    let text =
        graph.elementwise("t", Function::Add, &[x.into(), y.into()]).expect_err("two types").to_string();
    assert!(text.contains("i32 and i64"), "{text}");
    let text = graph.elementwise("u", Function::Exp, &[x.into()]).expect_err("no such function").to_string();
    assert!(text.contains("exp of i32"), "{text}");
    let text = graph.elementwise("v", Function::Add, &[x.into(), 0.5.into()]).expect_err("half").to_string();
    assert!(text.contains("0.5 beside integers"), "{text}");
    assert!(graph.nodes().is_empty());
}

#[test]
fn a_state_of_integers_counts_beyond_24_bits() {
    let mut graph = Graph::new();
    let step = input(&mut graph, "step", DType::I64, &[1]);
    let count = graph.state("count", tensor(&[1], vec![(1i64 << 24) - 1]));
    let next = graph.elementwise("next", Function::Add, &[count.into(), step.into()]).expect("a node");
    graph.update(count, next).expect("a state");
    graph.output(next).expect("an output");
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let one = tensor(&[1], vec![1i64]);
        for run in 0..3 {
            let found = session.run(&[("step", &one)]).expect("a run").remove(0);
            assert_eq!(found.to_i64().as_deref(), Some(&[(1 << 24) + run][..]), "{}", context.info());
        }
        session.reset().expect("a reset");
        let outputs = session.submit(&[("step", &one)]).expect("a flight").wait().expect("a run");
        assert_eq!(outputs.integers(0).expect("integers"), [1 << 24]);
        assert!(outputs.get(0).expect_err("no floats").to_string().contains("integers"));
    }
}

#[test]
fn constants_of_integers_are_folded_exactly() {
    let mut graph = Graph::new();
    let x = input(&mut graph, "x", DType::I64, &[2]);
    let one = graph.constant("one", tensor(&[2, 2], vec![1i64 << 30, 3, 5, -7]));
    let turned = graph.transpose("turned", one, &[1, 0]).expect("a node");
    let row = graph.slice("row", turned, 0, 0..1).expect("a node");
    let row = graph.reshape("flat", row, &[Dim::Fixed(2)]).expect("a node");
    let less = graph.elementwise("less", Function::Sub, &[row.into(), 1.into()]).expect("a node");
    let sum = graph.elementwise("sum", Function::Add, &[x.into(), less.into()]).expect("a node");
    graph.output(sum).expect("an output");
    let given = tensor(&[2], vec![1i64, 1]);
    is_everywhere(&graph, &[("x", &given)], &[tensor(&[2], vec![1i64 << 30, 5])]);
}

#[test]
fn requests_of_integers_are_gathered_into_batches() {
    let mut graph = Graph::new();
    let ids = input(&mut graph, "ids", DType::I64, &[1, 3]);
    let next = graph.elementwise("next", Function::Add, &[ids.into(), 1.into()]).expect("a node");
    graph.output(next).expect("an output");
    for context in everywhere() {
        let options = BatchOptions { max_batch: 4, ..BatchOptions::default() };
        let batch = Batch::new(&context, &graph, options).expect("a batch");
        let of = |request: i64| tensor(&[1, 3], vec![(1i64 << 24) + request, -request, 7]);
        let tickets: Vec<_> =
            (0..9).map(|request| batch.submit([("ids", of(request))]).expect("room")).collect();
        for (request, ticket) in (0..9).zip(tickets) {
            let wanted = tensor(&[1, 3], vec![(1i64 << 24) + request + 1, 1 - request, 8]);
            assert_eq!(ticket.wait().expect("a run"), [wanted], "{}", context.info());
        }
        let large = batch.run([("ids", tensor(&[1, 3], vec![0i64, 1 << 50, 0]))]);
        match context.info().backend {
            Backend::Cpu => {
                assert_eq!(large.expect("a run"), [tensor(&[1, 3], vec![1i64, (1 << 50) + 1, 1])])
            }
            _ => assert!(large.expect_err("too large").to_string().contains("at element 1")),
        }
    }
}

#[test]
fn integers_of_few_bits_take_their_own_numbers_alone() {
    let mut graph = Graph::new();
    let x = input(&mut graph, "x", DType::U8, &[3]);
    let turned = graph.reverse("turned", x, &[0]).expect("a node");
    graph.output(turned).expect("an output");
    let wanted = [tensor(&[3], vec![255u8, 1, 0])];
    for given in [
        tensor(&[3], vec![0u8, 1, 255]),
        tensor(&[3], vec![0i64, 1, 255]),
        tensor(&[3], vec![0f32, 1.0, 255.0]),
    ] {
        is_everywhere(&graph, &[("x", &given)], &wanted);
    }
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        for (given, found) in [
            (tensor(&[3], vec![0i64, 256, 255]), "256 at element 1"),
            (tensor(&[3], vec![0i8, 1, -1]), "-1 at element 2"),
            (tensor(&[3], vec![0.5f32, 1.0, 2.0]), "0.5 at element 0"),
        ] {
            let text = session.run(&[("x", &given)]).expect_err("not of u8").to_string();
            assert!(text.contains("\"x\"") && text.contains(found) && text.contains("u8"), "{text}");
        }
        let text = session.submit(&[("x", &[1.0f32, 2.0, 300.0])]).expect_err("a slice").to_string();
        assert!(text.contains("300 at element 2"), "{text}");
    }
}
