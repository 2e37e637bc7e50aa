//! Makes a failing graph smaller, as long as it fails alike.

use crate::Instant;
use crate::oracle::{Arithmetic, Known};
use crate::recipe::{Make, Origin, Recipe, Source, Step, Tensor};
use crate::run::{Apart, Failure, Given, Setting};
use diptych::{Activation, Border, Padding, Precision};
use std::time::Duration;

/// The most attempts, and the longest time.
const ATTEMPTS: usize = 1500;
const TIME: Duration = Duration::from_secs(90);

/// What fails.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    pub(crate) recipe: Recipe,
    pub(crate) setting: Setting,
}

/// The smallest case found that `fails` says the same of, and what it says.
pub(crate) async fn smallest(
    case: Case,
    failure: Failure,
    fails: &impl AsyncFn(&Case) -> Option<Failure>,
) -> (Case, Failure) {
    let (mut best, mut why, mut attempts, begin) = (case, failure, 0, Instant::now());
    loop {
        let mut smaller = None;
        for candidate in candidates(&best) {
            if attempts >= ATTEMPTS || begin.elapsed() > TIME {
                return (best, why);
            }
            if candidate == best || candidate.recipe.outputs.is_empty() || candidate.recipe.build().is_err() {
                continue;
            }
            attempts += 1;
            if let Some(found) = fails(&candidate).await.filter(|found| found.is_like(&why)) {
                smaller = Some((candidate, found));
                break;
            }
        }
        match smaller {
            Some(found) => (best, why) = found,
            None => return (best, why),
        }
    }
}

/// Smaller cases, those that drop most first.
fn candidates(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let recipe = &case.recipe;
    let of = |recipe: Recipe| Case { recipe, setting: case.setting.clone() };
    if recipe.outputs.len() > 1 {
        all.extend(
            recipe
                .outputs
                .iter()
                .map(|&output| of(pruned(&Recipe { outputs: vec![output], ..recipe.clone() }))),
        );
        all.extend((0..recipe.outputs.len()).map(|place| {
            let mut fewer = recipe.clone();
            fewer.outputs.remove(place);
            of(fewer)
        }));
    }
    all.push(of(pruned(recipe)));
    let sources = recipe.sources.len();
    for step in (0..recipe.steps.len()).rev() {
        let outputs = vec![sources + step];
        if recipe.outputs != outputs {
            all.push(of(pruned(&Recipe { outputs, ..recipe.clone() })));
        }
    }
    let known = self::known(recipe);
    for step in (0..recipe.steps.len()).rev() {
        all.extend(
            known.as_ref().and_then(|known| replaced(recipe, step, known)).map(|recipe| of(pruned(&recipe))),
        );
        all.extend(bypassed(recipe, step).map(|recipe| of(pruned(&recipe))));
    }
    for setting in settings(&case.setting) {
        all.push(Case { recipe: recipe.clone(), setting });
    }
    for step in 0..recipe.steps.len() {
        all.extend(simpler(&recipe.steps[step]).into_iter().map(|simple| {
            let mut recipe = recipe.clone();
            recipe.steps[step] = simple;
            of(pruned(&recipe))
        }));
    }
    for (index, source) in recipe.sources.iter().enumerate() {
        if source.origin != Origin::Input {
            let mut plain = recipe.clone();
            plain.sources[index].origin = Origin::Input;
            all.push(of(plain));
        }
    }
    all.extend(shorter(recipe).into_iter().map(of));
    for (index, source) in recipe.sources.iter().enumerate() {
        for value in [1.0, 0.0] {
            let mut plain = recipe.clone();
            plain.sources[index].tensor.values = vec![value; source.tensor.values.len()];
            all.push(of(plain));
        }
    }
    for (index, step) in recipe.steps.iter().enumerate() {
        if let Some(weights) = &step.weights {
            let mut plain = recipe.clone();
            plain.steps[index].weights =
                Some(Tensor { values: vec![1.0; weights.values.len()], ..weights.clone() });
            all.push(of(plain));
        }
    }
    // An equal case would be taken for a smaller one for ever.
    all.retain(|smaller| smaller != case);
    all
}

fn settings(setting: &Setting) -> Vec<Setting> {
    let plain = setting.clone();
    vec![
        Setting { runs: 1, ..Setting::plain(setting.backend) },
        Setting { runs: 1, ..plain.clone() },
        Setting { given: Given::Rows, ..plain.clone() },
        Setting { without: Vec::new(), ..plain.clone() },
        Setting { on_cpu: None, ..plain.clone() },
        Setting { choice: None, ..plain.clone() },
        Setting { layout: None, ..plain.clone() },
        Setting { apart: Apart::No, ..plain.clone() },
        Setting { precision: Precision::F32, ..plain },
    ]
}

/// The values after a part of the sources and steps was left out; none if a value that is left reads one that is not.
fn without(recipe: &Recipe, kept: &dyn Fn(usize) -> bool) -> Option<Recipe> {
    let count = recipe.sources.len() + recipe.steps.len();
    let mut places = vec![None; count];
    let mut next = 0;
    for (value, place) in places.iter_mut().enumerate() {
        if kept(value) {
            *place = Some(next);
            next += 1;
        }
    }
    let at = |value: usize| places.get(value).copied().flatten();
    let mut left = Recipe::default();
    for (index, source) in recipe.sources.iter().enumerate().filter(|(index, _)| kept(*index)) {
        let mut source = source.clone();
        if let Origin::State(Some(value)) = source.origin {
            source.origin = Origin::State(at(value));
        }
        let _ = index;
        left.sources.push(source);
    }
    for (index, step) in recipe.steps.iter().enumerate() {
        if kept(recipe.sources.len() + index) {
            let mut step = step.clone();
            step.arguments = step.arguments.iter().map(|&value| at(value)).collect::<Option<_>>()?;
            left.steps.push(step);
        }
    }
    left.outputs = recipe.outputs.iter().map(|&value| at(value)).collect::<Option<_>>()?;
    Some(left)
}

/// Without what no output needs.
pub(crate) fn pruned(recipe: &Recipe) -> Recipe {
    let mut needed = recipe.outputs.clone();
    let mut at = 0;
    while at < needed.len() {
        let value = needed[at];
        at += 1;
        let reads = match value.checked_sub(recipe.sources.len()) {
            Some(step) => recipe.steps.get(step).map(|step| step.arguments.clone()).unwrap_or_default(),
            None => match recipe.sources[value].origin {
                Origin::State(Some(next)) => vec![next],
                _ => Vec::new(),
            },
        };
        needed.extend(reads.into_iter().filter(|read| !needed.contains(read)).collect::<Vec<_>>());
    }
    without(recipe, &|value| needed.contains(&value)).unwrap_or_else(|| recipe.clone())
}

/// With an input in the place of what a node writes.
fn replaced(recipe: &Recipe, step: usize, known: &[(Vec<usize>, Known)]) -> Option<Recipe> {
    let sources = recipe.sources.len();
    let (dims, known) = known.get(sources + step)?;
    let moved = |value: usize| match value {
        value if value == sources + step => sources,
        value if value < sources => value,
        value if value < sources + step => value + 1,
        value => value,
    };
    let mut other = recipe.clone();
    other.steps.remove(step);
    let tensor = Tensor { dims: dims.clone(), values: known.value.clone(), halves: false };
    other.sources.push(Source { origin: Origin::Input, tensor });
    other.outputs.iter_mut().for_each(|value| *value = moved(*value));
    for step in &mut other.steps {
        step.arguments.iter_mut().for_each(|value| *value = moved(*value));
    }
    for source in &mut other.sources {
        if let Origin::State(Some(next)) = &mut source.origin {
            *next = moved(*next);
        }
    }
    Some(other)
}

/// With a node's first argument in the place of what it writes.
fn bypassed(recipe: &Recipe, step: usize) -> Option<Recipe> {
    let own = recipe.sources.len() + step;
    let first = *recipe.steps[step].arguments.first()?;
    let mut other = recipe.clone();
    let moved = |value: &mut usize| {
        if *value == own {
            *value = first;
        }
    };
    other.outputs.iter_mut().for_each(moved);
    other.outputs.dedup();
    other.steps.iter_mut().for_each(|step| step.arguments.iter_mut().for_each(moved));
    Some(other)
}

/// The nodes that `step` becomes if one thing of it is left out or made smaller.
fn simpler(step: &Step) -> Vec<Step> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Step)| {
        let mut other = step.clone();
        change(&mut other);
        if other != *step {
            all.push(other);
        }
    };
    with(&|step| step.bias = None);
    with(&|step| {
        if std::mem::replace(&mut step.residual, false) {
            step.arguments.pop();
        }
    });
    with(&|step| {
        step.slope = None;
        match &mut step.make {
            Make::Conv2d(options) => options.activation = Activation::None,
            Make::Depthwise(options) => options.activation = Activation::None,
            Make::Pointwise(options) => options.activation = Activation::None,
            Make::TransposedConv2d(options) => options.activation = Activation::None,
            Make::Gemm(options) => options.activation = Activation::None,
            Make::Pool(options) => options.activation = Activation::None,
            _ => {}
        }
    });
    with(&|step| match &mut step.make {
        Make::Conv2d(options) => (options.stride, options.dilation) = ([1, 1], [1, 1]),
        Make::Depthwise(options) => (options.stride, options.dilation) = ([1, 1], [1, 1]),
        Make::TransposedConv2d(options) => options.stride = [1, 1],
        Make::Pool(options) => options.stride = [1, 1],
        Make::Normalize(_) => step.weights = None,
        _ => {}
    });
    with(&|step| match &mut step.make {
        Make::Conv2d(options) => (options.padding, options.border) = (Padding::Valid, Border::Zeros),
        Make::Depthwise(options) => options.padding = Padding::Valid,
        Make::TransposedConv2d(options) => options.padding = Padding::Valid,
        Make::Pool(options) => options.padding = Padding::Valid,
        Make::Concat(_) if step.arguments.len() > 1 => drop(step.arguments.pop()),
        _ => {}
    });
    with(&|step| {
        if let Make::Concat(_) = step.make
            && step.arguments.len() > 1
        {
            step.arguments.remove(0);
        }
    });
    if let Some(weights) = &step.weights {
        for axis in 0..weights.dims.len() {
            for extent in [1, weights.dims[axis] / 2, weights.dims[axis] - 1] {
                if extent > 0 && extent < weights.dims[axis] {
                    let mut dims = weights.dims.clone();
                    dims[axis] = extent;
                    with(&|step| step.weights = Some(weights.cropped(&dims)));
                }
            }
        }
    }
    all.into_iter().map(fitted).collect()
}

/// With as many biases and slopes as the weights have channels.
fn fitted(mut step: Step) -> Step {
    let dims = step.weights.as_ref().map(|weights| weights.dims.clone());
    let channels = match (&step.make, dims.as_deref()) {
        (Make::Depthwise(_) | Make::Normalize(_), Some([.., last])) => *last,
        (Make::Gemm(options), Some([rows, columns])) => {
            if options.transpose_b {
                *rows
            } else {
                *columns
            }
        }
        (Make::Conv2d(_) | Make::Pointwise(_) | Make::TransposedConv2d(_), Some([first, ..])) => *first,
        _ => return step,
    };
    for vector in [&mut step.bias, &mut step.slope].into_iter().flatten() {
        vector.resize(channels, 0.5);
    }
    step
}

/// With fewer elements along an axis of a source, or wherever an extent is.
fn shorter(recipe: &Recipe) -> Vec<Recipe> {
    let mut all = Vec::new();
    let mut extents: Vec<usize> = recipe
        .sources
        .iter()
        .flat_map(|source| source.tensor.dims.clone())
        .filter(|&extent| extent > 1)
        .collect();
    extents.sort_unstable();
    extents.dedup();
    let lesser = |extent: usize| {
        let mut lesser = vec![1, 2, extent / 2, extent - 1];
        lesser.retain(|&less| less > 0 && less < extent);
        lesser
    };
    for &extent in extents.iter().rev() {
        for less in lesser(extent) {
            let change = |dims: &mut Vec<usize>| {
                dims.iter_mut().filter(|own| **own == extent).for_each(|own| *own = less);
            };
            let mut other = recipe.clone();
            for source in &mut other.sources {
                let mut dims = source.tensor.dims.clone();
                change(&mut dims);
                source.tensor = source.tensor.cropped(&dims);
            }
            for step in &mut other.steps {
                if let Make::Reshape(target) | Make::BroadcastTo(target) = &mut step.make {
                    change(target);
                }
                if let Some(weights) = &step.weights {
                    let mut dims = weights.dims.clone();
                    change(&mut dims);
                    step.weights = Some(weights.cropped(&dims));
                }
                *step = fitted(step.clone());
            }
            all.push(other);
        }
    }
    for (index, source) in recipe.sources.iter().enumerate() {
        for axis in 0..source.tensor.dims.len() {
            for less in lesser(source.tensor.dims[axis]) {
                let mut dims = source.tensor.dims.clone();
                dims[axis] = less;
                let mut other = recipe.clone();
                other.sources[index].tensor = source.tensor.cropped(&dims);
                // The weights of what reads it, if they go along.
                for step in other.steps.iter_mut().filter(|step| step.arguments.first() == Some(&index)) {
                    let was = source.tensor.dims[axis];
                    if let Some(weights) = &step.weights
                        && let Some(own) = weights.dims.iter().rposition(|&extent| extent == was)
                    {
                        let mut dims = weights.dims.clone();
                        dims[own] = less;
                        step.weights = Some(weights.cropped(&dims));
                        *step = fitted(step.clone());
                    }
                }
                all.push(other);
                let mut alone = recipe.clone();
                alone.sources[index].tensor = source.tensor.cropped(&dims);
                all.push(alone.clone());
                alone.sources[index].tensor = source.tensor.last(&dims);
                all.push(alone);
            }
        }
    }
    all
}

/// What the oracle says of each value, with its dimensions.
pub(crate) fn known(recipe: &Recipe) -> Option<Vec<(Vec<usize>, Known)>> {
    let built = recipe.build().ok()?;
    let first = recipe.sources.iter().zip(&built.values);
    let first = first.map(|(source, &value)| (value, Known::exact(source.tensor.values.clone()))).collect();
    let values = crate::oracle::values(&built.graph, &first, Arithmetic::F32).ok()?;
    let each = built.values.iter().map(|value| {
        let dims = built.graph.dims(*value).ok()?.extents().to_vec();
        Some((dims, values.get(value)?.clone()))
    });
    each.collect()
}
