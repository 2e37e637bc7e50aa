//! Files with operators that draw: `tests/random`, which `models.py` there writes.

use crate::machine::{contexts, everywhere};
use diptych::{
    Backend, Context, DType, Dims, HostTensor, LoadOptions, Model, ModelFile, Session, SessionOptions,
};

fn path(name: &str) -> String {
    format!("tests/random/{name}.onnx")
}

fn options(seed: u64) -> SessionOptions {
    SessionOptions { seed, ..Default::default() }
}

/// A session of a file for the extents of each run.
fn opened(context: &Context, name: &str, seed: u64) -> Session {
    let file = ModelFile::load(path(name), &LoadOptions::default()).expect("a file");
    file.session(context, options(seed)).expect("a session")
}

fn floats(extents: &[usize], value: impl Fn(usize) -> f32) -> HostTensor {
    let dims = Dims::new(extents).expect("small");
    HostTensor::new(dims, (0..dims.elements()).map(value).collect::<Vec<f32>>()).expect("as many")
}

fn numbers(tensor: &HostTensor) -> Vec<f32> {
    match tensor.to_i64() {
        Some(integers) => integers.iter().map(|&integer| integer as f32).collect(),
        None => tensor.to_nhwc().into_owned(),
    }
}

/// The outputs of runs on each backend, which are the same to the bit: those of the CPU.
fn everywhere_the_same(name: &str, seed: u64, runs: &[Vec<(&str, HostTensor)>]) -> Vec<Vec<HostTensor>> {
    let mut wanted: Option<Vec<Vec<HostTensor>>> = None;
    for context in everywhere() {
        let mut session = opened(&context, name, seed);
        let mut all = Vec::new();
        for feeds in runs {
            let feeds: Vec<(&str, &HostTensor)> =
                feeds.iter().map(|(name, tensor)| (*name, tensor)).collect();
            all.push(session.run(&feeds).expect("a run"));
        }
        let same = wanted.get_or_insert_with(|| all.clone());
        for (run, (found, same)) in all.iter().zip(&*same).enumerate() {
            for (output, (found, same)) in found.iter().zip(same).enumerate() {
                let [found, same] = [numbers(found), numbers(same)];
                let bits = |numbers: &[f32]| numbers.iter().map(|it| it.to_bits()).collect::<Vec<_>>();
                let backend = context.info().backend;
                assert!(bits(&found) == bits(&same), "{name} on {backend}: output {output} of run {run}");
            }
        }
    }
    wanted.expect("a backend")
}

/// Whether about `wanted` of `count` are, by four deviations.
fn about(found: usize, wanted: f64, count: usize) -> bool {
    let count = count as f64;
    (found as f64 - wanted * count).abs() <= 4.0 * (count * wanted * (1.0 - wanted)).sqrt()
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64
}

#[test]
fn operators_draw_what_they_say() {
    // Rows of odds from 0 to 1, both ends among them; logarithms of weights, one of them of none.
    let p = floats(&[40, 25], |at| (at % 25) as f32 / 24.0);
    let weights = [1.0, 2.0, 3.0, 4.0, 0.0, 5.0, 1.0, 4.0f32];
    let feeds = || {
        let ids = HostTensor::of(Dims::new(&[7]).expect("small"), vec![0_i64; 7]).expect("seven");
        vec![("p", p.clone()), ("ids", ids), ("logs", floats(&[2, 4], |at| weights[at].ln() + 7.0))]
    };
    let runs = everywhere_the_same("operators", 11, &[feeds(), feeds()]);
    let types: Vec<DType> = runs[0].iter().map(HostTensor::dtype).collect();
    let extents: Vec<Vec<usize>> = runs[0].iter().map(|tensor| tensor.dims().extents().to_vec()).collect();
    use DType::{Bool, F16, F32, I32, I64};
    assert_eq!(types, [F32, F32, F32, F16, F32, F32, I64, Bool, I32, I64]);
    let like = vec![40, 25];
    let wanted = [vec![200, 50], vec![200, 50], like.clone(), like.clone(), vec![7]];
    assert_eq!(extents[..5], wanted);
    assert_eq!(extents[5..], [like.clone(), like.clone(), like, vec![2, 3000], vec![2, 1]]);
    for (index, (first, second)) in runs[0].iter().zip(&runs[1]).enumerate() {
        assert!(index == 9 || numbers(first) != numbers(second), "output {index} is the same in both runs");
    }
    let first: Vec<Vec<f32>> = runs[0].iter().map(numbers).collect();
    assert!((mean(&first[0]) - 2.0).abs() < 4.0 * 0.5 / 100.0);
    assert!((mean(&first[1]) - 1.0).abs() < 4.0 * (16.0f64 / 12.0).sqrt() / 100.0);
    assert!(mean(&first[2]).abs() < 4.0 / 1000f64.sqrt());
    assert!((mean(&first[3]) - 0.5).abs() < 4.0 * (1.0 / 12.0f64).sqrt() / 1000f64.sqrt());
    assert!(first[3].iter().all(|x| half::f16::from_f32(*x).to_f32() == *x), "not halves");
    for (output, drawn) in first.iter().enumerate().skip(5).take(3) {
        let mut ones = 0;
        for (at, &truth) in drawn.iter().enumerate() {
            assert!(truth == 0.0 || truth == 1.0, "{truth}");
            assert!(at % 25 != 0 || truth == 0.0, "drawn with odds of 0");
            assert!(at % 25 != 24 || truth == 1.0, "not drawn with odds of 1");
            ones += usize::from(truth == 1.0);
        }
        assert!(about(ones, 0.5, 1000), "output {output}: {ones} of 1000");
    }
    assert!(first[5] != first[6] && first[6] != first[7], "nodes draw alike");
    for row in 0..2 {
        for class in 0..4 {
            let drawn = &first[8][row * 3000..(row + 1) * 3000];
            let count = drawn.iter().filter(|&&it| it == class as f32).count();
            assert!(about(count, f64::from(weights[row * 4 + class]) / 10.0, 3000), "{row} {class}: {count}");
        }
    }
}

#[test]
fn what_is_drawn_of_constants_is_drawn_at_each_run() {
    let runs = everywhere_the_same("constants", 1, &[vec![], vec![], vec![]]);
    for (run, outputs) in runs.iter().enumerate() {
        for earlier in &runs[..run] {
            for (index, (one, other)) in outputs.iter().zip(earlier).enumerate() {
                assert_ne!(numbers(one), numbers(other), "output {index}");
            }
        }
        // Two nodes of one seed and shape.
        assert_ne!(numbers(&outputs[2]), numbers(&outputs[3]));
    }
    // A graph of fixed extents too.
    let model = Model::load(path("constants"), &LoadOptions::default()).expect("a model");
    for context in everywhere() {
        let mut session = Session::new(&context, &model.graph, options(1)).expect("a session");
        for run in &runs {
            let none: [(&str, &HostTensor); 0] = [];
            assert_eq!(&session.run(&none).expect("a run"), run, "{}", context.info().backend);
        }
    }
}

#[test]
fn dropout_in_training_scales_what_it_keeps() {
    let count = 2 * 3 * 20 * 30;
    let feeds = |ratio: f32, training: bool| {
        let truth = HostTensor::of(Dims::SCALAR, vec![training]).expect("one");
        let x = floats(&[2, 3, 20, 30], |at| 1.0 + (at % 17) as f32);
        vec![
            ("x", x),
            ("ratio", HostTensor::new(Dims::SCALAR, vec![ratio]).expect("one")),
            ("training", truth),
        ]
    };
    let all = [feeds(0.5, true), feeds(0.5, true), feeds(0.25, false), feeds(0.0, true), feeds(0.75, true)];
    let runs = everywhere_the_same("dropout", 4, &all);
    for (run, (outputs, ratio)) in runs.iter().zip([0.5, 0.5, 0.0, 0.0, 0.75f32]).enumerate() {
        let outputs: Vec<Vec<f32>> = outputs.iter().map(numbers).collect();
        let [map, y, mask, z, other, last, half] = &outputs[..] else { panic!("seven outputs") };
        assert_eq!(z, last);
        for (y, mask, ratio) in [(y, mask, ratio), (z, other, 0.25)] {
            for at in 0..count {
                let wanted = if mask[at] == 1.0 { map[at] / (1.0 - ratio) } else { 0.0 };
                assert!((y[at] - wanted).abs() <= 1e-6 * wanted, "run {run}: {} for {wanted}", y[at]);
            }
            let kept = mask.iter().filter(|&&kept| kept == 1.0).count();
            assert!(about(kept, f64::from(1.0 - ratio), count), "run {run}: {kept} of {count} kept");
        }
        let dropped = half.iter().filter(|&&it| it == 0.0).count();
        assert!(about(dropped, 0.5, count), "run {run}: {dropped} of {count} dropped");
    }
    assert_ne!(numbers(&runs[0][2]), numbers(&runs[1][2]), "the mask of the run before");
    let types: Vec<DType> = runs[0].iter().map(HostTensor::dtype).collect();
    assert_eq!((types[2], types[4]), (DType::Bool, DType::Bool));
}

#[test]
fn each_turn_of_a_loop_draws_anew() {
    let runs = everywhere_the_same("loop", 2, &[vec![], vec![]]);
    let mut turns: Vec<Vec<f32>> = Vec::new();
    for outputs in &runs {
        let all = numbers(&outputs[2]);
        turns.extend(all.chunks(5).map(<[f32]>::to_vec));
        assert_eq!((&all[15..], &all[10..15]), (&*numbers(&outputs[0]), &*numbers(&outputs[1])));
    }
    // Turns that are counted at each run.
    let feeds = |turns: i64| vec![("turns", HostTensor::of(Dims::SCALAR, vec![turns]).expect("one"))];
    let runs = everywhere_the_same("turns", 2, &[feeds(2), feeds(3), feeds(2)]);
    for outputs in &runs {
        turns.extend(outputs.iter().map(numbers));
    }
    for (index, turn) in turns.iter().enumerate() {
        assert!(turn.iter().all(|x| (0.0..1.0).contains(x)));
        assert!(!turns[..index].contains(turn), "turn {index} draws what one before it drew");
    }
    let other = everywhere_the_same("turns", 3, &[feeds(2)]);
    assert_ne!(other[0], runs[0], "another seed draws the same");
}

#[test]
fn runs_of_other_extents_go_on_with_the_sequence() {
    let feeds = |count: usize| vec![("x", floats(&[count], |_| 0.0))];
    let extents = [8, 8, 16, 8, 4, 16, 0, 16];
    let all: Vec<_> = extents.iter().map(|&count| feeds(count)).collect();
    let runs = everywhere_the_same("extents", 6, &all);
    let drawn = runs.iter().map(|run| numbers(&run[0])).filter(|drawn| !drawn.is_empty());
    let begins: Vec<Vec<f32>> = drawn.map(|drawn| drawn[..4].to_vec()).collect();
    for (index, begin) in begins.iter().enumerate() {
        assert!(!begins[..index].contains(begin), "run {index} draws what one before it drew");
    }
    // As one that has the largest extents always.
    let always = everywhere_the_same("extents", 6, &vec![feeds(16); extents.len()]);
    for ((run, always), count) in runs.iter().zip(&always).zip(extents) {
        assert_eq!(numbers(&run[0]), numbers(&always[0])[..count]);
    }
    let cpu = contexts(&[Backend::Cpu]);
    let mut session = opened(&cpu[0], "extents", 6);
    for _ in 0..2 {
        for (feeds, wanted) in all.iter().zip(&runs).take(3) {
            assert_eq!(&session.run(&[("x", &feeds[0].1)]).expect("a run"), wanted);
        }
        session.reset().expect("a reset");
    }
}

#[test]
fn extents_may_depend_on_what_is_drawn() {
    let feeds = |count: usize| vec![("x", floats(&[count], |_| 0.0))];
    let extents = [40, 40, 7, 40, 100];
    let all: Vec<_> = extents.iter().map(|&count| feeds(count)).collect();
    let runs = everywhere_the_same("open", 5, &all);
    let mut seen: Vec<Vec<f32>> = Vec::new();
    for (run, count) in runs.iter().zip(extents) {
        let (noise, places, last) = (numbers(&run[0]), numbers(&run[1]), numbers(&run[2]));
        let wanted: Vec<f32> = (0..count).filter(|&at| noise[at] < 0.5).map(|at| at as f32).collect();
        assert_eq!(places, wanted);
        assert_eq!(last.len(), places.len());
        assert!(!seen.contains(&noise[..3].to_vec()) && !seen.contains(&last[..1].to_vec()), "drawn before");
        seen.extend([noise[..3].to_vec(), last[..1].to_vec()]);
    }
}
