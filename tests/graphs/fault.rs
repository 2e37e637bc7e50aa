//! A graph with a faulty kernel.

use crate::recipe::{IDENTITY, Make, Origin, Own, Part, Recipe, Source, Step, Tensor};
use crate::run::{self, Failure, Setting};
use crate::shrink::{self, Case};
use diptych::{Activation, Backend, Context, Conv2d, Custom, Function, Padding, Pool, Pooling};

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

pub(crate) fn step(number: usize, make: Make, arguments: &[usize]) -> Step {
    Step { number, ..Step::of(make, arguments.to_vec()) }
}

/// A convolution, a pool, the kernel, a sum, a product: three outputs.
pub(crate) fn network(fault: Custom) -> Recipe {
    let values = |count: usize| (0..count).map(|at| (at * 37 % 64) as f32 / 32.0 - 1.0).collect();
    let tensor =
        |dims: &[usize]| Tensor { dims: dims.to_vec(), values: values(dims.iter().product()), halves: false };
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
