//! Random numbers by a seed: the same on every backend, to the bit, and distributed as they should be.

use crate::machine::{contexts, everywhere};
use diptych::nn::Random;
use diptych::{
    Backend, Batch, BatchOptions, Context, Dim, Function, Graph, HostTensor, Precision, Session,
    SessionOptions, Shape,
};

const NONE: [(&str, &HostTensor); 0] = [];

/// Uniform, normal and Gumbel's numbers, as many of each, which is no multiple of four.
fn graph(count: usize) -> Graph {
    let mut graph = Graph::new();
    let all = [
        ("uniform", Random::uniform(-1.0, 3.0)),
        ("normal", Random::normal(0.5, 2.0)),
        ("gumbel", Random::gumbel()),
    ];
    for (name, options) in all {
        let drawn = graph.random(name, options, &[Dim::Fixed(count)]).expect("a distribution");
        graph.output(drawn).expect("an output");
    }
    graph
}

fn seeded(context: &Context, graph: &Graph, seed: u64) -> Session {
    let options = SessionOptions { seed, ..Default::default() };
    Session::new(context, graph, options).expect("a session")
}

fn bits(tensors: &[HostTensor]) -> Vec<Vec<u32>> {
    tensors.iter().map(|tensor| tensor.to_f32().iter().map(|number| number.to_bits()).collect()).collect()
}

fn runs(session: &mut Session, count: usize) -> Vec<Vec<Vec<u32>>> {
    (0..count).map(|_| bits(&session.run(&NONE).expect("a run"))).collect()
}

#[test]
fn every_backend_draws_the_same_bits_and_each_run_draws_anew() {
    let graph = graph(40_003);
    let cpu = contexts(&[Backend::Cpu]);
    let wanted = runs(&mut seeded(&cpu[0], &graph, 7), 3);
    assert!(wanted[0] != wanted[1] && wanted[1] != wanted[2], "a run draws what the one before drew");
    let other = runs(&mut seeded(&cpu[0], &graph, 8), 3);
    assert!(other.iter().all(|run| !wanted.contains(run)), "another seed draws the same");
    // Hardly any element of one run, node or seed is what another one has there.
    let same = |a: &[u32], b: &[u32]| a.iter().zip(b).filter(|(a, b)| a == b).count();
    for output in 0..3 {
        assert!(same(&wanted[0][output], &wanted[1][output]) < 20);
        assert!(same(&wanted[0][output], &other[0][output]) < 20);
    }
    for context in everywhere() {
        let backend = context.info().backend;
        let mut session = seeded(&context, &graph, 7);
        for round in 0..2 {
            assert!(runs(&mut session, 3) == wanted, "{backend}, round {round}");
            session.reset().expect("a reset");
        }
        let mut again = seeded(&context, &graph, 7);
        let flights = [(); 3].map(|()| again.submit(&NONE).expect("a run"));
        let again =
            flights.map(|flight| bits(&flight.wait().and_then(|outputs| outputs.tensors()).expect("a run")));
        assert!(again[..] == wanted, "{backend}, several in flight");
    }
}

#[test]
fn the_default_seed_is_a_seed_like_others() {
    let cpu = contexts(&[Backend::Cpu]);
    let graph = graph(64);
    let mut unset = Session::new(&cpu[0], &graph, SessionOptions::default()).expect("a session");
    assert_eq!(runs(&mut unset, 2), runs(&mut seeded(&cpu[0], &graph, 0), 2));
}

#[test]
fn nodes_draw_for_themselves() {
    let mut graph = Graph::new();
    let options = Random::uniform(0.0, 1.0);
    let extents = [Dim::Fixed(100)];
    // Of one name, of one seed, of neither.
    for (name, options) in
        [("a", options), ("a", options), ("b", options), ("a", options.seed(1)), ("b", options.seed(1))]
    {
        let drawn = graph.random(name, options, &extents).expect("a distribution");
        graph.output(drawn).expect("an output");
    }
    for context in everywhere() {
        let drawn = bits(&seeded(&context, &graph, 1).run(&NONE).expect("a run"));
        for (index, one) in drawn.iter().enumerate() {
            assert!(!drawn[..index].contains(one), "{}, node {index}", context.info().backend);
        }
    }
}

#[test]
fn the_cpu_draws_the_same_within_a_session_of_a_device() {
    let graph = graph(1003);
    for context in everywhere() {
        let wanted = runs(&mut seeded(&context, &graph, 3), 2);
        let on_cpu = ["uniform", "normal", "random key/next"].map(str::to_owned).into();
        let options = SessionOptions { seed: 3, on_cpu, ..Default::default() };
        let mut session = Session::new(&context, &graph, options).expect("a session");
        assert!(runs(&mut session, 2) == wanted, "{}", context.info().backend);
    }
}

#[test]
fn numbers_are_as_many_as_a_value_has_elements() {
    let mut graph = Graph::new();
    graph.dimension("rows", 2).expect("a dimension");
    let x = graph.input_of("x", &["rows".into(), Dim::Fixed(5)]).expect("an input");
    let like = graph.random_like("like", Random::normal(0.0, 1.0), x).expect("noise");
    let noisy = graph.elementwise("noisy", Function::Add, &[x.into(), like.into()]).expect("a sum");
    let rows = graph.random("rows", Random::uniform(0.0, 1.0), &["rows".into()]).expect("rows");
    graph.output(noisy).expect("an output");
    graph.output(rows).expect("an output");
    let wide = graph.with_dimensions(&[("rows", 7)]).expect("seven rows");
    assert_eq!(wide.dims(like).expect("a value").extents(), [7, 5]);
    for context in everywhere() {
        let run = |graph: &Graph, rows: usize| {
            let x = HostTensor::new(diptych::Dims::new(&[rows, 5]).expect("small"), vec![0.0; rows * 5]);
            let found = seeded(&context, graph, 5).run(&[("x", &x.expect("as many"))]).expect("a run");
            found.iter().map(|tensor| tensor.to_f32().into_owned()).collect::<Vec<_>>()
        };
        let (few, many) = (run(&graph, 2), run(&wide, 7));
        assert_eq!((many[0].len(), many[1].len()), (35, 7));
        // Elements have their numbers by their places.
        assert_eq!(few[0], many[0][..10]);
        assert_eq!(few[1], many[1][..2]);
    }
    let unknown = graph.random("z", Random::gumbel(), &["columns".into()]).expect_err("no such dimension");
    assert!(unknown.to_string().contains("columns"), "{unknown}");
    let none = Graph::new().random("z", Random::uniform(1.0, 0.0), &[Dim::Fixed(1)]);
    assert!(none.expect_err("refused").to_string().contains("from 1 to 0"));
}

#[test]
fn a_part_of_a_graph_draws_too() {
    let graph = graph(8);
    let part = graph.part(&[], &graph.outputs()[1..2]).expect("a part");
    for context in everywhere() {
        let whole = bits(&seeded(&context, &graph, 2).run(&NONE).expect("a run"));
        assert_eq!(bits(&seeded(&context, &part, 2).run(&NONE).expect("a run"))[0], whole[1]);
    }
}

#[test]
fn halves_do_not_change_what_is_drawn() {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 8, 8, 6)).expect("an input");
    let noise = graph.random_like("noise", Random::normal(0.0, 1.0), x).expect("noise");
    let noisy = graph.elementwise("noisy", Function::Add, &[x.into(), noise.into()]).expect("a sum");
    graph.output(noisy).expect("an output");
    let x = HostTensor::new(Shape::nhwc(1, 8, 8, 6), vec![0.0; 384]).expect("zeros");
    for context in everywhere() {
        let run = |precision| {
            let options = SessionOptions { precision, ..Default::default() };
            let mut session = Session::new(&context, &graph, options).expect("a session");
            session.run(&[("x", &x)]).expect("a run")[0].to_nhwc().into_owned()
        };
        for (exact, rounded) in run(Precision::F32).into_iter().zip(run(Precision::F16Storage)) {
            assert!((exact - rounded).abs() <= exact.abs() / 1024.0 + 1e-6, "{exact} {rounded}");
        }
    }
}

#[test]
fn requests_of_many_tasks_cannot_draw() {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 1, 1, 6)).expect("an input");
    let noise = graph.random_like("noise", Random::normal(0.0, 1.0), x).expect("noise");
    graph.output(noise).expect("an output");
    let cpu = contexts(&[Backend::Cpu]);
    let refused = Batch::new(&cpu[0], &graph, BatchOptions::default()).expect_err("refused").to_string();
    assert!(refused.contains("\"random key\", which belongs to one sequence of runs"), "{refused}");
}

/// The error function (Abramowitz and Stegun, 7.1.26), off by at most 1.5e-7.
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let terms = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let sum = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    (1.0 - sum * (-x * x).exp()) * x.signum()
}

/// The largest distance between the shares of `numbers` and a distribution, times the root of how many there are
/// (Kolmogorov and Smirnov): beyond 1.95 once in a thousand times.
fn distance(numbers: &[f32], distribution: impl Fn(f64) -> f64) -> f64 {
    let mut sorted: Vec<f64> = numbers.iter().map(|&number| number.into()).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let off = |(at, &number): (usize, &f64)| {
        let wanted = distribution(number);
        (wanted - at as f64 / count).abs().max((wanted - (at + 1) as f64 / count).abs())
    };
    sorted.iter().enumerate().map(off).fold(0.0, f64::max) * count.sqrt()
}

/// How far the mean and the variance of `numbers` are from these, in units of their own deviation.
fn moments(numbers: &[f32], mean: f64, variance: f64, kurtosis: f64) -> [f64; 2] {
    let count = numbers.len() as f64;
    let sum: f64 = numbers.iter().map(|&number| f64::from(number)).sum();
    let squares: f64 = numbers.iter().map(|&number| (f64::from(number) - mean).powi(2)).sum();
    let of_squares = variance * ((kurtosis - 1.0) / count).sqrt();
    [(sum / count - mean) / (variance / count).sqrt(), (squares / count - variance) / of_squares]
}

#[test]
fn numbers_have_their_distribution() {
    let cpu = contexts(&[Backend::Cpu]);
    let mut session = seeded(&cpu[0], &graph(200_000), 2026);
    for run in 0..3 {
        let drawn = session.run(&NONE).expect("a run");
        let drawn: Vec<_> = drawn.iter().map(|tensor| tensor.to_f32().into_owned()).collect();
        let normal = |x: f64| 0.5 + 0.5 * erf((x - 0.5) / 2.0 / std::f64::consts::SQRT_2);
        let distances = [
            distance(&drawn[0], |x| (x + 1.0) / 4.0),
            distance(&drawn[1], normal),
            distance(&drawn[2], |x| (-(-x).exp()).exp()),
        ];
        assert!(distances.iter().all(|distance| (0.3..1.95).contains(distance)), "run {run}: {distances:?}");
        let pi = std::f64::consts::PI;
        let moments = [
            moments(&drawn[0], 1.0, 16.0 / 12.0, 1.8),
            moments(&drawn[1], 0.5, 4.0, 3.0),
            moments(&drawn[2], 0.577_215_664_9, pi * pi / 6.0, 5.4),
        ];
        assert!(moments.iter().flatten().all(|off| off.abs() < 4.0), "run {run}: {moments:?}");
        assert!(drawn[0].iter().all(|x| (-1.0..3.0).contains(x)), "beyond its ends");
        assert!(drawn.iter().flatten().all(|x| x.is_finite()));
        // Neighbours of a block, of the next blocks, and the same places of two nodes depend on each other no more.
        for lag in [1, 2, 3, 4, 5, 64, 1000] {
            let uniform = drawn[0].iter().map(|x| (f64::from(*x) - 1.0) / (16.0f64 / 12.0).sqrt());
            let later = drawn[1].iter().skip(lag).map(|x| (f64::from(*x) - 0.5) / 2.0);
            let own = drawn[1].iter().map(|x| (f64::from(*x) - 0.5) / 2.0);
            let count = (drawn[1].len() as f64).sqrt();
            let of_neighbours: f64 = own.zip(later.clone()).map(|(a, b)| a * b).sum::<f64>() / count;
            let of_nodes: f64 = uniform.zip(later).map(|(a, b)| a * b).sum::<f64>() / count;
            assert!(of_neighbours.abs() < 4.0 && of_nodes.abs() < 4.0, "{lag}: {of_neighbours} {of_nodes}");
        }
    }
}
