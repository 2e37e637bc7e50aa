//! Faults that are planted: the comparison finds them, and what is left of the graph is the node at fault.

use crate::fault::{network, on_device, step};
use crate::recipe::{IDENTITY, Make, Origin, Own, Recipe, Source, Step, Tensor};
use crate::run::{self, Counts, Failure, Setting};
use crate::session;
use crate::shrink::{self, Case};
use diptych::{Backend, Context, Custom};
use pollster::block_on;

/// `y = x` on a GPU. On the CPU it is a little wrong from `from` on.
fn kernel(from: f32) -> Custom {
    Custom::new("nearly_the_same", IDENTITY).expect("a kernel").on_cpu(move |inputs, outputs| {
        for (y, x) in outputs[0].iter_mut().zip(inputs[0]) {
            *y = if *x > from { x * 1.0001 } else { *x };
        }
    })
}

#[test]
fn a_fault_of_a_device_is_found() {
    for (backend, context) in crate::contexts() {
        if backend != Backend::Cpu {
            block_on(on_device(&context, backend)).expect("a fault");
        }
    }
}

fn check(case: &Case) -> Result<Counts, Failure> {
    let context = Context::new(Backend::Cpu).expect("the CPU");
    block_on(run::check(&context, &case.recipe, &case.setting))
}

fn case(from: f32) -> Case {
    Case { recipe: network(kernel(from)), setting: Setting::plain(Backend::Cpu) }
}

#[test]
fn a_planted_fault_is_found_and_alone_is_left() {
    let failure = check(&case(0.25)).expect_err("a fault");
    assert!(matches!(failure, Failure::Off(_)), "{failure:?}");
    let fails = async |case: &Case| check(case).err();
    let (left, why) = block_on(shrink::smallest(case(0.25), failure, &fails));
    assert!(matches!(why, Failure::Off(_)), "{why:?}");
    let [Step { make: Make::Custom(_), .. }] = &left.recipe.steps[..] else {
        panic!("{:?}", left.recipe);
    };
    let dims: Vec<&[usize]> = left.recipe.sources.iter().map(|source| &source.tensor.dims[..]).collect();
    assert_eq!(dims, [[1, 1, 1, 1]], "{:?}", left.recipe);
}

#[test]
fn a_fault_that_one_of_many_elements_shows_is_made_small() {
    let mut values = vec![0.0; 700];
    (values[400], values[555], values[699]) = (1.0, f32::NAN, f32::NAN);
    let tensor = Tensor { dims: vec![7, 100], values, halves: false };
    let sources = vec![Source { origin: Origin::Input, tensor }];
    let steps = vec![step(1, Make::Custom(Own(kernel(0.5))), &[0])];
    let case =
        Case { recipe: Recipe { sources, steps, outputs: vec![1] }, setting: Setting::plain(Backend::Cpu) };
    let failure = check(&case).expect_err("a fault");
    let fails = async |case: &Case| check(case).err();
    let (left, _) = block_on(shrink::smallest(case, failure, &fails));
    assert_eq!(left.recipe.sources[0].tensor, Tensor { dims: vec![1, 1], values: vec![1.0], halves: false });
}

#[test]
fn the_same_graph_without_a_fault_agrees() {
    let counts = check(&case(f32::INFINITY)).expect("no fault");
    assert_eq!((counts.elements, counts.compared), (360, 360));
    assert!(counts.sharply > 300, "{counts:?}");
}

#[test]
fn a_case_is_written_as_a_test() {
    let recipe = shrink::pruned(&Recipe { outputs: vec![3], ..network(kernel(0.0)) });
    let text = session::written(&Case { recipe, setting: Setting::plain(Backend::Wgpu) }, 7);
    for words in [
        "fn graph_7_agrees_with_the_oracle()",
        "let v0 = graph.input(\"x0\", x0.dims())?;",
        "let v1 = graph.conv2d(\"n2\", v0, tensor(&[5, 3, 3, 3], vec![-1.0, 0.15625",
        "activation: diptych::Activation::Relu })?;",
        "let v2 = graph.pool(\"n3\", v1, diptych::nn::Pool { pooling: diptych::Pooling::Max, window: [2, 2]",
        "graph.output(v2)?;",
        ".backend(diptych::Backend::Wgpu)",
        "session.run(&[(\"x0\", &x0)])?;",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}
