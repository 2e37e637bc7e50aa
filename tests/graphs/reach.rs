//! Where results lie, as `Precision::Auto` works it out: nothing that the oracles compute lies elsewhere, and what is not
//! finite is said to be possible.

use crate::generate;
use crate::oracle::{self, Arithmetic, Known};
use crate::random::{Kind, Random};
use crate::recipe::Origin;
use crate::run;
use diptych::{Context, DType, Graph, Operand, Precision, Session, SessionOptions, Value};
use diptych_kernels::ops::operator::{Argument, Arguments, Lowered};
use diptych_kernels::ops::{self, Answer, Op, Operands, Reach, Role};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What rounding may add, in proportion.
const ROUNDED: f64 = 1e-4;

/// What lies beyond `reach`, if something does.
fn beyond(reach: Reach, values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let slack = 1e-6 + ROUNDED * if reach.magnitude().is_finite() { reach.magnitude() } else { 0.0 };
    let widened = Reach { lo: reach.lo - slack, hi: reach.hi + slack };
    values.into_iter().find(|value| value.is_finite() && !widened.contains(*value))
}

/// Numbers for the operands of `op`, those of floats up to `scale`.
fn given(op: &dyn Op, scale: f32, random: &mut Random) -> Operands<'static> {
    let mut operands = Operands::new();
    for info in op.operands().iter().filter(|info| info.role != Role::Output) {
        let noise: Vec<f32> =
            random.values(Kind::Small, info.words()).iter().map(|value| 2.0 * value).collect();
        let usual = op.usual(info.operand, noise.clone());
        let is_free = info.dtype == DType::F32 && usual == noise;
        let values = if is_free { usual.into_iter().map(|value| value * scale).collect() } else { usual };
        operands.insert(info.operand, Cow::Owned(values));
    }
    operands
}

#[test]
fn every_op_stays_within_its_reach() {
    let (mut checked, mut wrong) = (BTreeMap::new(), Vec::new());
    for entry in ops::all() {
        let examples = (entry.examples)(Precision::F32).expect("examples");
        for (number, op) in examples.iter().enumerate() {
            // Integers are never in halves.
            if !op.operands().iter().all(|info| info.dtype.is_float()) {
                continue;
            }
            for (at, scale) in [0.01f32, 1.0, 256.0].into_iter().enumerate() {
                let operands = given(&**op, scale, &mut Random::new((8 * number + at) as u64));
                let Ok(reference) = op.reference(&operands, Answer::Exact) else { continue };
                let is_constant = |operand: Operand| {
                    op.operands().iter().any(|info| info.operand == operand && info.role == Role::Constant)
                };
                let constants: Operands<'_> = operands
                    .iter()
                    .filter(|(operand, _)| is_constant(**operand))
                    .map(|(k, v)| (*k, v.clone()))
                    .collect();
                let of =
                    |operand| operands.get(&operand).map_or(Reach::around(0.0), |values| Reach::of(values));
                let reach = op.reach(&of, &constants);
                let key = op.problem_key();
                let found = beyond(reach, reference.value().iter().copied());
                if let Some(found) = found {
                    wrong.push(format!("{} {key} of up to {scale}: {found} beyond {reach:?}", entry.name));
                }
                // A query without an attended key is NaN where that is asked for.
                let floats = ops::outputs(&**op).all(|info| info.dtype == DType::F32);
                let is_none = floats && reference.value().iter().any(|value| value.is_nan());
                let promised = entry.name.starts_with("attention");
                assert!(
                    !is_none || promised || op.is_singular(&of),
                    "{} {key}: a NaN of numbers",
                    entry.name
                );
                *checked.entry(entry.name).or_insert(0) += usize::from(reach.magnitude().is_finite());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{checked:?}");
    for name in [
        "conv2d",
        "depthwise",
        "pointwise",
        "gemm",
        "normalize",
        "mlp",
        "squeeze",
        "softmax",
        "pool",
        "reduce",
    ] {
        assert!(checked.get(name).is_some_and(|count| *count > 0), "{name} is not bounded in any example");
    }
}

/// Where each value of `graph` lies if its inputs lie in `inputs`.
fn reaches(graph: &Graph, inputs: &BTreeMap<Value, Reach>) -> Result<BTreeMap<Value, Reach>, String> {
    let text = |error: diptych::Error| error.to_string();
    let mut known = inputs.clone();
    for node in graph.nodes() {
        let mut arguments = Vec::new();
        let mut each: BTreeMap<Operand, Reach> = BTreeMap::new();
        let mut constants = Operands::new();
        for &(operand, value) in node.inputs() {
            arguments.push(Argument { operand, dims: graph.dims(value).map_err(text)?, dtype: DType::F32 });
            let reach = match graph.tensor(value).map_err(text)? {
                Some(tensor) => {
                    constants.insert(operand, Cow::Owned(tensor.to_nhwc().into_owned()));
                    Reach::of(&tensor.to_nhwc())
                }
                None => known.get(&value).copied().unwrap_or(Reach::ALL),
            };
            each.insert(operand, reach);
        }
        let given = Arguments { inputs: &arguments, dimensions: graph.dimensions(), narrow: false };
        let reach = match node.operator().lower(given, Precision::F32).map_err(text)? {
            Lowered::Op(op) => {
                let role =
                    |operand| op.operands().iter().find(|info| info.operand == operand).map(|info| info.role);
                constants.retain(|operand, _| role(*operand) == Some(Role::Constant));
                op.reach(&|operand| each.get(&operand).copied().unwrap_or(Reach::around(0.0)), &constants)
            }
            _ => each.values().copied().reduce(Reach::hull).unwrap_or(Reach::ALL),
        };
        for &output in node.outputs() {
            known.insert(output, reach);
        }
    }
    Ok(known)
}

#[test]
fn values_of_random_graphs_stay_within_their_reach() {
    let (mut bounded, mut all) = (0, 0);
    for seed in 0..150 {
        let recipe = generate::recipe(seed);
        let built = recipe.build().expect("a graph");
        let mut inputs = BTreeMap::new();
        let mut first = BTreeMap::new();
        for (source, &value) in recipe.sources.iter().zip(&built.values) {
            let values = run::elements(source, false);
            if source.origin == Origin::Input {
                inputs.insert(value, Reach::of(&values));
            }
            first.insert(value, Known::exact(values));
        }
        let known = oracle::values(&built.graph, &first, Arithmetic::F32).expect("values");
        let reaches = reaches(&built.graph, &inputs).expect("what bounds values");
        for node in built.graph.nodes() {
            for output in node.outputs() {
                let (Some(reach), Some(known)) = (reaches.get(output), known.get(output)) else { continue };
                // What is not known exactly, and depends on a choice, is left out.
                let each = known.value.iter().zip(&known.error).filter(|(_, error)| **error < 1e-3);
                let found = beyond(*reach, each.map(|(&value, _)| value.into()));
                assert_eq!(found, None, "{} of graph {seed}: beyond {reach:?}", node.name());
                bounded += usize::from(reach.magnitude().is_finite());
                all += 1;
            }
        }
    }
    println!("{bounded} of {all} values are bounded");
    assert!(2 * bounded > all, "{bounded} of {all} values are bounded");
}

/// The outputs of a run.
fn outputs(
    context: &Context,
    graph: &Graph,
    inputs: &[(&str, &diptych::HostTensor)],
    precision: Precision,
) -> Vec<Vec<f32>> {
    let options = SessionOptions { precision, ..SessionOptions::default() };
    let mut session = Session::new(context, graph, options).expect("a session");
    let found = session.run(inputs).expect("a run");
    found.iter().map(|tensor| tensor.to_nhwc().into_owned()).collect()
}

#[test]
fn auto_gives_numbers_where_f32_does_in_random_graphs() {
    for (backend, context) in crate::contexts() {
        if backend == diptych::Backend::Cpu {
            continue;
        }
        for seed in 500..500 + 2 * crate::number("DIPTYCH_GRAPHS").unwrap_or(crate::FEW) as u64 {
            let built = generate::recipe(seed).build().expect("a graph");
            let given: Vec<_> = built.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
            let [exact, rounded] = [Precision::F32, Precision::Auto]
                .map(|precision| outputs(&context, &built.graph, &given, precision));
            for (exact, rounded) in exact.iter().flatten().zip(rounded.iter().flatten()) {
                let same = !exact.is_finite() || rounded.is_finite();
                assert!(same, "graph {seed} on {backend}: {rounded}, in f32 {exact}");
            }
        }
    }
}
