//! The kernel of a step, taken from one session and given to another with another work-group.

use crate::machine::{gpus, noise};
use diptych::nn::PadMode;
use diptych::{Bits, Choice, Conv2d, Extras, Function, Graph, Session, SessionOptions, Shape, Step, Term};

/// A pad that becomes the convolution's padding, a function that runs with the convolution, and a node of its own.
fn network() -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 12, 10, 8)).expect("an input");
    let padded =
        graph.pad("border", x, &[0, 1, 1, 0], &[0, 1, 1, 0], PadMode::Constant(Bits(0.0))).expect("a pad");
    let weights = noise(Shape::nhwc(16, 3, 3, 8), 2);
    let conv =
        graph.conv2d("conv", padded, weights, Extras::default(), Conv2d::default()).expect("a convolution");
    let relu = graph.elementwise("relu", Function::Relu, &[Term::Value(conv)]).expect("a function");
    let last = noise(Shape::nhwc(8, 3, 3, 16), 3);
    let last = graph.conv2d("last", relu, last, Extras::default(), Conv2d::default()).expect("a convolution");
    graph.output(last).expect("an output");
    graph
}

fn nodes(session: &Session) -> Vec<Step> {
    session.steps().into_iter().filter(|step| !step.inserted).collect()
}

#[test]
fn a_steps_choice_runs_in_another_session_with_another_work_group() {
    let (graph, x) = (network(), noise(Shape::nhwc(1, 12, 10, 8), 1));
    for context in gpus() {
        let backend = context.info().backend;
        let mut untuned = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let wanted = untuned.run(&[("x", &x)]).expect("a run");
        let steps = nodes(&untuned);
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["conv + relu", "last"], "{backend}");
        let mut forced = 0;
        for step in &steps {
            let before = step.choice.expect("a kernel of the device");
            assert_eq!(before.work_group, step.work_group);
            // Those of a kernel that shares what it reads are given by its tile.
            let others = [
                [8, 2, 1],
                [4, 2, 1],
                [4, 8, 1],
                [4, 4, 8],
                [8, 4, 8],
                [4, 8, 8],
                [1, 1, 1],
                [64, 1, 1],
                [16, 8, 1],
            ];
            let built = others.into_iter().filter(|size| *size != before.work_group).find_map(|work_group| {
                let choice = Choice { work_group, ..before };
                let choices = [(step.name.clone(), choice)].into();
                let options = SessionOptions { choices, ..Default::default() };
                Some((choice, Session::new(&context, &graph, options).ok()?))
            });
            let Some((choice, mut session)) = built else { continue };
            forced += 1;
            let own = nodes(&session);
            let found: Vec<&str> = own.iter().map(|step| step.name.as_str()).collect();
            assert_eq!(found, names, "{backend}: what runs together stays together");
            let changed = own.iter().find(|own| own.name == step.name).expect("the step");
            assert_eq!((changed.choice, changed.source.as_str()), (Some(choice), "by hand"), "{backend}");
            let found = session.run(&[("x", &x)]).expect("a run");
            for (found, wanted) in found[0].to_f32().iter().zip(wanted[0].to_f32().iter()) {
                assert!((found - wanted).abs() <= 1e-4, "{backend}: {found} instead of {wanted}");
            }
        }
        assert!(forced > 0, "{backend}: no step takes another work-group");
    }
}

#[test]
fn what_is_no_step_is_refused() {
    let graph = network();
    for context in gpus() {
        let session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let choice = nodes(&session)[0].choice.expect("a kernel");
        for (name, words) in
            [("relu + last", "do not run as one step"), ("conv + nobody", "as Session::steps")]
        {
            let options =
                SessionOptions { choices: [(name.to_owned(), choice)].into(), ..Default::default() };
            let error = Session::new(&context, &graph, options).expect_err(name).to_string();
            assert!(error.contains(name) && error.contains(words), "{error}");
        }
    }
}
