//! Random graphs for several samples at once: each sample's outputs are within the bounds that they have alone.

use crate::generate;
use crate::recipe::{Origin, Recipe};
use crate::run::{self, Counts, RUNS, Setting};
use crate::{contexts, number};
use diptych::{Backend, Context, HostTensor, Session};

/// Graphs of a short run.
const FEW: usize = 24;

/// Runs the graph once for the samples that it otherwise has run by run.
fn compare(context: &Context, backend: Backend, recipe: &Recipe) -> Result<Counts, String> {
    let told = |error: diptych::Error| error.to_string();
    let built = recipe.build().map_err(told)?;
    let setting = Setting::plain(backend);
    let all = built.graph.with_batch(RUNS).map_err(told)?;
    let mut session = Session::new(context, &all, setting.options(&all)).map_err(told)?;
    let arithmetic = run::arithmetic(&setting, &session);
    let mut counts = Counts::default();
    let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
    if arithmetic.otherwise && !recipe.sources.iter().all(|source| finite(&source.tensor.values)) {
        return Ok(counts);
    }
    let samples = run::wanted(recipe, &built, &setting, arithmetic)?;
    let sources = recipe.sources.iter().filter(|source| source.origin == Origin::Input);
    let mut inputs = Vec::new();
    for ((source, (name, _)), &input) in sources.zip(&built.inputs).zip(all.inputs()) {
        let values: Vec<f32> =
            (0..RUNS).flat_map(|sample| run::elements(source, setting.is_backwards(sample))).collect();
        let tensor = HostTensor::new(all.dims(input).map_err(told)?, values).map_err(told)?;
        inputs.push((name.as_str(), tensor));
    }
    let given: Vec<(&str, &HostTensor)> = inputs.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let outputs = session.run(&given).map_err(told)?;
    for (sample, wanted) in samples.iter().enumerate() {
        for (place, (output, wanted)) in outputs.iter().zip(wanted).enumerate() {
            let (values, one) = (output.to_f32(), wanted.value.len());
            let own = values.get(sample * one..(sample + 1) * one).unwrap_or_default();
            let text = |text| format!("sample {sample}, output {place} {}: {text}", output.dims());
            counts.output(own, wanted, arithmetic).map_err(text)?;
        }
    }
    Ok(counts)
}

#[test]
fn each_sample_is_within_the_bounds_that_it_has_alone() {
    let (first, count) =
        (number("DIPTYCH_GRAPHS_SEED").unwrap_or(0), number("DIPTYCH_GRAPHS").unwrap_or(FEW));
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let thread = thread.spawn(move || {
        let contexts = contexts();
        let (mut graphs, mut compared, mut wrong) = (0, 0, Vec::new());
        for seed in first..first + count {
            let recipe = generate::recipe(seed as u64);
            if recipe.has_states() || recipe.sources.iter().all(|source| source.origin != Origin::Input) {
                continue;
            }
            let Ok(_) = recipe.build() else { continue };
            // Each backend has its turn.
            let (backend, context) = &contexts[graphs % contexts.len()];
            match compare(context, *backend, &recipe) {
                Ok(counts) => compared += counts.compared,
                Err(text) => wrong.push(format!("graph {seed} on {backend}: {text}")),
            }
            graphs += 1;
        }
        (graphs, compared, wrong)
    });
    let (graphs, compared, wrong) = thread.expect("a thread").join().expect("no panic");
    println!("{graphs} graphs, {compared} elements compared");
    assert!(wrong.is_empty(), "{} of {graphs} graphs differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(graphs > 0 && compared > 0, "{compared} elements of {graphs} graphs");
}
