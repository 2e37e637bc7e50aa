//! Every rewrite against what it replaces: networks around each pattern (`patterns.rs`) run with all rewrites and with none, on
//! every backend, in f32 and with halves stored, and each result is within the bound that follows from the graph. Where one is
//! not, the rewrites are named without which it is.
//!
//! | variable | |
//! |---|---|
//! | `DIPTYCH_REWRITES` | how many networks; a few of each pattern without it |
//! | `DIPTYCH_GRAPHS_SEED`, `_SECONDS`, `_BACKENDS`, `_OUT` | as of random graphs |
//! | `DIPTYCH_REWRITES_OF` | the patterns whose names contain it |
//! | `DIPTYCH_MISTAKE` | a mistake that is planted (`scripts/mistakes`): the first difference ends the run |

use crate::patterns::{self, PATTERNS, Pattern};
use crate::recipe::Recipe;
use crate::run::{self, Counts, Failure, Setting};
use crate::session::keep;
use crate::shrink::{self, Case};
use crate::{Instant, contexts, number};
use diptych::{Backend, Context, Precision, Rewrite, Session, SessionOptions};
use diptych_kernels::ops::Op;
use pollster::block_on;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Networks of each pattern in a short run.
const FEW: usize = 4;

/// What became of the networks.
#[derive(Default)]
struct Report {
    networks: BTreeMap<&'static str, usize>,
    runs: usize,
    counts: Counts,
    failures: Vec<String>,
}

/// The options of each run of a network: without and with rewrites. Networks take turns at f32 and halves on devices.
fn settings(backend: Backend, seed: usize) -> Vec<Setting> {
    let halves = backend != Backend::Cpu && seed / PATTERNS.len() % 2 == 1;
    let precision = if halves { Precision::F16Storage } else { Precision::F32 };
    let all = Setting { precision, runs: 1, ..Setting::plain(backend) };
    vec![Setting { without: Rewrite::ALL.to_vec(), ..all.clone() }, all]
}

/// The steps that a device would run of a network without some rewrites: what each computes, of which nodes.
fn planned(context: &Context, recipe: &Recipe, without: &[Rewrite]) -> Option<Vec<String>> {
    let graph = recipe.build().ok()?.graph;
    let options =
        SessionOptions { without_rewrites: without.iter().copied().collect(), ..Default::default() };
    let steps = Session::planned_steps(context, &graph, &options).ok()?;
    let op = |unit: Option<Arc<dyn Op>>| unit.map_or(String::new(), |unit| unit.problem_key());
    Some(steps.into_iter().map(|step| format!("{} {}", step.name, op(step.unit))).collect())
}

/// The rewrites without which the case is right.
fn at_fault(context: &Context, case: &Case) -> Vec<Rewrite> {
    let mends = |rewrite: &Rewrite| {
        let setting = Setting { without: vec![*rewrite], ..case.setting.clone() };
        block_on(run::check(context, &case.recipe, &setting)).is_ok()
    };
    Rewrite::ALL.into_iter().filter(|rewrite| case.setting.without.is_empty() && mends(rewrite)).collect()
}

fn failed(context: &Context, case: Case, failure: Failure, pattern: &Pattern, seed: usize) -> String {
    let fault = at_fault(context, &case);
    let fails = async |case: &Case| run::check(context, &case.recipe, &case.setting).await.err();
    let (case, why) = block_on(shrink::smallest(case, failure.clone(), &fails));
    let rewritten = if case.setting.without.is_empty() { "with" } else { "without" };
    let text = keep(&case, seed);
    format!(
        "network {seed} of {}, {} {}, {rewritten} rewrites, at fault {fault:?}: {failure:?}, and made smaller {why:?}\n{text}",
        pattern.name, case.setting.backend, case.setting.precision
    )
}

fn check(first: usize, count: usize, seconds: usize) -> Report {
    let (mut report, begin, contexts) = (Report::default(), Instant::now(), contexts());
    let wanted = std::env::var("DIPTYCH_REWRITES_OF").unwrap_or_default();
    let planted = std::env::var("DIPTYCH_MISTAKE").is_ok();
    for seed in first..first + count {
        if begin.elapsed().as_secs() >= seconds as u64 {
            break;
        }
        let pattern = patterns::of(seed);
        if !pattern.name.contains(&wanted) {
            continue;
        }
        let recipe = patterns::recipe(seed as u64).filter(|recipe| !recipe.outputs.is_empty());
        let Some(recipe) = recipe else { continue };
        *report.networks.entry(pattern.name).or_default() += 1;
        for (backend, context) in &contexts {
            for setting in settings(*backend, seed) {
                let case = Case { recipe: recipe.clone(), setting };
                report.runs += 1;
                match block_on(run::check(context, &case.recipe, &case.setting)) {
                    Ok(counts) => report.counts.add(&counts),
                    // A planted mistake is found.
                    Err(failure) if planted => {
                        report.failures.push(format!("network {seed} of {}: {failure:?}", pattern.name));
                        return report;
                    }
                    Err(failure) => {
                        let text = failed(context, case, failure, pattern, seed);
                        crate::say(&text);
                        report.failures.push(text);
                    }
                }
            }
        }
    }
    report
}

#[test]
fn rewrites_agree_with_what_they_replace() {
    let count = number("DIPTYCH_REWRITES").unwrap_or(FEW * PATTERNS.len());
    let first = number("DIPTYCH_GRAPHS_SEED").unwrap_or(0);
    let seconds = number("DIPTYCH_GRAPHS_SECONDS").unwrap_or(usize::MAX);
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let thread = thread.spawn(move || check(first, count, seconds)).expect("a thread");
    let report = thread.join().expect("a report");
    let Counts { elements, compared, sharply, .. } = report.counts;
    let part = |of: usize| 100.0 * of as f64 / elements.max(1) as f64;
    println!(
        "rewrites: {:?}; runs: {}; differences: {}; elements: {elements}, with a bound {:.2} %, with a small one {:.2} %",
        report.networks,
        report.runs,
        report.failures.len(),
        part(compared),
        part(sharply)
    );
    report
        .failures
        .first()
        .into_iter()
        .for_each(|failure| println!("first difference: {}", failure.lines().next().unwrap_or_default()));
    assert!(report.failures.is_empty(), "{} of {} runs differ", report.failures.len(), report.runs);
}

#[test]
fn every_rewrite_has_a_pattern() {
    let named: BTreeSet<Rewrite> = PATTERNS.iter().flat_map(|pattern| pattern.rewrites).copied().collect();
    // States that change in place are looked at where decoders run.
    let absent: Vec<Rewrite> = Rewrite::ALL
        .into_iter()
        .filter(|rewrite| !named.contains(rewrite) && *rewrite != Rewrite::Updates)
        .collect();
    assert!(absent.is_empty(), "{absent:?}");
}

/// Networks of a pattern among which each of its rewrites takes one.
const SOME: usize = 100;

#[test]
fn every_rewrite_changes_networks_of_its_pattern() {
    let contexts = contexts();
    let Some((_, context)) = contexts.iter().find(|(backend, _)| *backend != Backend::Cpu) else { return };
    let mut idle = Vec::new();
    for (place, pattern) in PATTERNS.iter().enumerate() {
        let mut left: Vec<Rewrite> = pattern.rewrites.to_vec();
        for turn in 0..SOME {
            let Some(recipe) = patterns::recipe((turn * PATTERNS.len() + place) as u64) else { continue };
            let all = planned(context, &recipe, &[]);
            left.retain(|&rewrite| planned(context, &recipe, &[rewrite]) == all);
            if left.is_empty() {
                break;
            }
        }
        idle.extend(left.into_iter().map(|rewrite| format!("{rewrite} of {}", pattern.name)));
    }
    assert!(idle.is_empty(), "no network shows {}", idle.join(", "));
}
