//! Random graphs whose inputs' outermost extents each run decides: a session that met other extents before gives what a
//! session of these extents alone gives, to the bit.

use crate::generate;
use crate::recipe::{Origin, Recipe};
use crate::{contexts, number};
use diptych::{Context, Dims, Graph, HostTensor, Result, Session, SessionOptions};

/// Graphs of a short run.
const FEW: usize = 16;

/// What is added to the outermost extents, run by run; 0 are the recipe's own.
const ADDED: [usize; 6] = [0, 1, 4, 0, 2, 1];

/// The extents of a run. Those of 1 stay: they may fit any other.
fn extent(own: usize, added: usize) -> usize {
    if own == 1 { 1 } else { own + added }
}

/// The inputs of a run, and the extents of its dimensions.
type Turn = (Vec<(String, HostTensor)>, Vec<(String, usize)>);

fn turn(recipe: &Recipe, added: usize) -> Result<Turn> {
    let (mut inputs, mut dimensions) = (Vec::new(), Vec::new());
    for (index, source) in recipe.sources.iter().enumerate() {
        if source.origin != Origin::Input {
            continue;
        }
        let mut dims = source.tensor.dims.clone();
        if let Some(outermost) = dims.first_mut() {
            *outermost = extent(*outermost, added);
            dimensions.push((format!("x{index}.0"), *outermost));
        }
        inputs.push((format!("x{index}"), source.tensor.cropped(&dims).host()?));
    }
    Ok((inputs, dimensions))
}

fn run(session: &mut Session, inputs: &[(String, HostTensor)]) -> Result<Vec<(Dims, Vec<u32>)>> {
    let given: Vec<(&str, &HostTensor)> =
        inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let bits = |value: &f32| if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() };
    let outputs = session.run(&given)?;
    Ok(outputs.iter().map(|output| (output.dims(), output.to_f32().iter().map(bits).collect())).collect())
}

/// How many runs were compared.
fn compared(recipe: &Recipe, graph: &Graph, context: &Context) -> usize {
    let open = graph.dimensions().keys().map(|name| (name.clone(), None)).collect();
    let options = SessionOptions { open, ..SessionOptions::default() };
    let Ok(mut session) = Session::new(context, graph, options) else { return 0 };
    let mut compared = 0;
    for added in ADDED {
        let (inputs, dimensions) = turn(recipe, added).expect("small tensors");
        let extents: Vec<(&str, usize)> =
            dimensions.iter().map(|(name, extent)| (name.as_str(), *extent)).collect();
        let backend = context.info().backend;
        let found = run(&mut session, &inputs);
        let fresh = graph.with_dimensions(&extents);
        let wanted = fresh.and_then(|graph| Session::new(context, &graph, SessionOptions::default()));
        match wanted.and_then(|mut session| run(&mut session, &inputs)) {
            Ok(wanted) => {
                let found = found.unwrap_or_else(|error| panic!("{backend} +{added}: {error}"));
                assert!(found == wanted, "{backend}: other results behind other extents, {extents:?}");
                compared += 1;
            }
            // What does not fit, does not fit here either, and the session goes on.
            Err(error) => assert!(found.is_err(), "{backend} +{added}: only a fresh session says {error}"),
        }
    }
    compared
}

#[test]
fn one_session_at_several_extents_is_as_many_sessions() {
    let (first, count) =
        (number("DIPTYCH_GRAPHS_SEED").unwrap_or(0), number("DIPTYCH_GRAPHS").unwrap_or(FEW));
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let thread = thread.spawn(move || {
        let contexts = contexts();
        let (mut graphs, mut runs) = (0, 0);
        for seed in first..first + count {
            let recipe = generate::recipe(seed as u64);
            let Ok(built) = recipe.build() else { continue };
            if recipe.has_states() || built.graph.dimensions().is_empty() {
                continue;
            }
            // Each backend has its turn.
            let (_, context) = &contexts[graphs % contexts.len()];
            let compared = compared(&recipe, &built.graph, context);
            println!("graph {seed}: {compared} runs on {}", context.info().backend);
            (graphs, runs) = (graphs + 1, runs + compared);
        }
        (graphs, runs)
    });
    let (graphs, runs) = thread.expect("a thread").join().expect("no difference");
    println!("{graphs} graphs, {runs} runs compared");
    assert!(graphs > 0 && runs >= 2 * graphs, "{runs} of {graphs} graphs");
}
