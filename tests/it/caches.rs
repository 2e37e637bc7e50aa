//! Attention with caches: a sequence in several runs, each given what the last one kept, is that sequence in one run.
//!
//! `tests/cases/steps_*.onnx`: `x` is `batch rows features`, `pk` and `pv` what was kept, and `mask` of one more place for
//! each row.

use crate::machine::everywhere;
use diptych::{Context, Dims, HostTensor, LoadOptions, ModelFile, SessionOptions};

/// Rows of an input in each run.
const STEPS: [usize; 4] = [3, 1, 1, 2];
const FEATURES: usize = 6;

fn tensor(extents: &[usize], values: Vec<f32>) -> HostTensor {
    HostTensor::new(Dims::new_or_empty(extents).expect("extents"), values).expect("as many")
}

/// The outputs of runs of so many rows, one behind the other, and the last caches. Either the caller gives what the last
/// run kept, or the session carries it.
fn runs(context: &Context, name: &str, steps: &[usize], carries: bool) -> (Vec<f32>, Vec<Vec<f32>>) {
    let file = ModelFile::load(format!("tests/cases/{name}.onnx"), &LoadOptions::default()).expect("a file");
    let mut session = file.session(context, SessionOptions::default()).expect("a session");
    let declared = file.inputs();
    let cache = declared.iter().find(|input| input.name == "pk").expect("a cache");
    let [heads, depth] = [1, 3].map(|axis| cache.extents.as_ref().expect("a rank")[axis].expect("fixed"));
    let masks = declared.iter().any(|input| input.name == "mask");
    let outputs: Vec<String> = file.outputs().into_iter().map(|port| port.name).collect();
    if carries {
        session.carry(&[(&outputs[1], "pk"), (&outputs[2], "pv")]).expect("outputs and inputs");
    }
    let mut kept = [(); 2].map(|()| tensor(&[1, heads, 0, depth], Vec::new()));
    let (mut written, mut begin) = (Vec::new(), 0);
    for &rows in steps {
        let values = (begin * FEATURES..(begin + rows) * FEATURES).map(|at| (at as f32 * 0.7).sin());
        let x = tensor(&[1, rows, FEATURES], values.collect());
        begin += rows;
        let mask =
            HostTensor::of(Dims::new(&[1, begin]).expect("extents"), vec![1i64; begin]).expect("as many");
        let mut given = vec![("x", &x)];
        if !carries {
            given.extend([("pk", &kept[0]), ("pv", &kept[1])]);
        }
        if masks {
            given.push(("mask", &mask));
        }
        let mut found: Vec<HostTensor> = session.run(&given).expect("a run").to_vec();
        let last = found.split_off(1);
        written.extend_from_slice(&found[0].to_nhwc());
        kept = last.try_into().expect("two caches");
        assert_eq!(kept[0].dims().extents(), [1, heads, begin, depth], "{name}");
    }
    if carries {
        assert!(session.submit(&[("x", &kept[0])]).is_err(), "runs follow each other");
        session.reset().expect("reset");
        assert!(
            session.carry(&[("nothing", "pk")]).is_err() && session.carry(&[(&outputs[1], "pk")]).is_err()
        );
    }
    (written, kept.iter().map(|tensor| tensor.to_nhwc().into_owned()).collect())
}

#[test]
fn a_sequence_in_several_runs_is_that_in_one() {
    for context in everywhere() {
        for name in ["steps_grouped", "steps_heads", "steps_standard"] {
            let (once, kept) = runs(&context, name, &[STEPS.iter().sum()], false);
            let (steps, kept_in_steps) = runs(&context, name, &STEPS, false);
            assert_eq!(runs(&context, name, &STEPS, true), (steps.clone(), kept_in_steps.clone()), "{name}");
            let pairs =
                once.iter().zip(&steps).chain(kept.iter().flatten().zip(kept_in_steps.iter().flatten()));
            assert_eq!(once.len(), steps.len());
            for (at, (one, other)) in pairs.enumerate() {
                let backend = context.info().backend;
                assert!(
                    (one - other).abs() < 1e-5,
                    "{name} on {backend}: found {other} at {at}, wanted {one}"
                );
            }
        }
    }
}
