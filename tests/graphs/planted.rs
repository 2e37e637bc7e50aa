//! Faults that are planted: the comparison finds them, and what is left of the graph is the node at fault.

use crate::recipe::{IDENTITY, Make, Origin, Own, Part, Recipe, Source, Step, Tensor};
use crate::run::{self, Counts, Failure, Setting};
use crate::session;
use crate::shrink::{self, Case};
use diptych::{Activation, Backend, Context, Conv2d, Custom, Function, Padding, Pool, Pooling};
use pollster::block_on;

/// `y = x` on a GPU. On the CPU it is a little wrong from `from` on.
fn kernel(from: f32) -> Custom {
    Custom::new("nearly_the_same", IDENTITY).expect("a kernel").on_cpu(move |inputs, outputs| {
        for (y, x) in outputs[0].iter_mut().zip(inputs[0]) {
            *y = if *x > from { x * 1.0001 } else { *x };
        }
    })
}

/// `y = x` on the CPU. On a GPU it is a little wrong from 0.25 on.
fn kernel_of_gpus() -> Custom {
    let text = IDENTITY.replace("= x[id.x];", "= x[id.x] * select(1.0, 1.0001, x[id.x] > 0.25);");
    let kernel = Custom::new("nearly_the_same", &text).expect("a kernel");
    kernel.on_cpu(|inputs, outputs| outputs[0].copy_from_slice(inputs[0]))
}

/// Plants a fault in a kernel of a device, and makes the graph smaller.
///
/// # Errors
/// If the fault is not found, or what is left is not smaller.
pub(crate) async fn on_device(context: &Context, backend: Backend) -> Result<(), String> {
    let case = Case { recipe: network(kernel_of_gpus()), setting: Setting::plain(backend) };
    let nodes = case.recipe.steps.len();
    let found = run::check(context, &case.recipe, &case.setting).await;
    let Err(failure @ Failure::Off(_)) = found else { return Err(format!("the fault: {found:?}")) };
    let fails = async |case: &Case| run::check(context, &case.recipe, &case.setting).await.err();
    let (left, why) = shrink::smallest(case, failure, &fails).await;
    let has_fault = left.recipe.steps.iter().any(|step| matches!(step.make, Make::Custom(_)));
    let smaller = left.recipe.steps.len() < nodes;
    if has_fault && smaller && matches!(why, Failure::Off(_)) {
        Ok(())
    } else {
        Err(format!("{why:?} of {:?}", left.recipe))
    }
}

#[test]
fn a_fault_of_a_device_is_found() {
    for (backend, context) in crate::contexts() {
        if backend != Backend::Cpu {
            block_on(on_device(&context, backend)).expect("a fault");
        }
    }
}

fn step(number: usize, make: Make, arguments: &[usize]) -> Step {
    Step { number, ..Step::of(make, arguments.to_vec()) }
}

/// A convolution, a pool, the kernel, a sum, a product: three outputs.
fn network(fault: Custom) -> Recipe {
    let values = |count: usize| (0..count).map(|at| (at * 37 % 64) as f32 / 32.0 - 1.0).collect();
    let tensor = |dims: &[usize]| Tensor { dims: dims.to_vec(), values: values(dims.iter().product()) };
    let source = |dims: &[usize]| Source { origin: Origin::Input, tensor: tensor(dims) };
    let options = Conv2d { padding: Padding::Same, activation: Activation::Relu, ..Conv2d::default() };
    let convolution = Step {
        weights: Some(tensor(&[5, 3, 3, 3])),
        bias: Some(values(5)),
        ..step(2, Make::Conv2d(options), &[0])
    };
    let pool = step(3, Make::Pool(Pool::new(Pooling::Max, [2, 2])), &[2]);
    let fault = step(4, Make::Custom(Own(fault)), &[3]);
    let both = vec![Part::Argument(0), Part::Argument(1)];
    let sum = step(5, Make::Elementwise(Function::Add, both.clone()), &[4, 1]);
    let product = step(6, Make::Elementwise(Function::Mul, both), &[5, 3]);
    let sources = vec![source(&[1, 6, 8, 3]), source(&[5])];
    Recipe { sources, steps: vec![convolution, pool, fault, sum, product], outputs: vec![6, 3, 5] }
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
    let tensor = Tensor { dims: vec![7, 100], values };
    let sources = vec![Source { origin: Origin::Input, tensor }];
    let steps = vec![step(1, Make::Custom(Own(kernel(0.5))), &[0])];
    let case =
        Case { recipe: Recipe { sources, steps, outputs: vec![1] }, setting: Setting::plain(Backend::Cpu) };
    let failure = check(&case).expect_err("a fault");
    let fails = async |case: &Case| check(case).err();
    let (left, _) = block_on(shrink::smallest(case, failure, &fails));
    assert_eq!(left.recipe.sources[0].tensor, Tensor { dims: vec![1, 1], values: vec![1.0] });
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
        "let v2 = graph.pool(\"n3\", v1, diptych::Pool { pooling: diptych::Pooling::Max, window: [2, 2]",
        "graph.output(v2)?;",
        ".backend(diptych::Backend::Wgpu)",
        "session.run(&[(\"x0\", &x0)])?;",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}
