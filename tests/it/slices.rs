//! Runs on the caller's slices, and runs that are waited for later, on every backend.

use crate::machine::{everywhere, noise};
use diptych::{Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};

const IMAGE: Shape = Shape::nhwc(1, 3, 5, 6);

/// An input's name and elements.
type Given<'a> = (&'a str, &'a [f32]);

/// Two heads of two inputs.
fn network() -> Graph {
    let mut graph = Graph::new();
    for (index, name) in ["left", "right"].into_iter().enumerate() {
        let x = graph.input(name, IMAGE).expect("an input");
        let weights = noise(Shape::nhwc(4 + index, 1, 1, 6), 1 + index as u32);
        let y = graph.pointwise(&format!("{name} head"), x, weights, Extras::default(), Pointwise::default());
        graph.output(y.expect("a head")).expect("an output");
    }
    graph
}

fn elements(tensor: &HostTensor) -> Vec<f32> {
    tensor.to_f32().into_owned()
}

#[test]
fn a_run_on_slices_is_the_same_run() {
    let (left, right) = (noise(IMAGE, 3), noise(IMAGE, 4));
    for context in &everywhere() {
        let mut session = Session::new(context, &network(), SessionOptions::default()).expect("a session");
        let wanted: Vec<Vec<f32>> =
            session.run(&[("left", &left), ("right", &right)]).expect("a run").iter().map(elements).collect();
        let (l, r) = (left.to_f32(), right.to_f32());
        let mut found: Vec<Vec<f32>> = wanted.iter().map(|output| vec![f32::NAN; output.len()]).collect();
        let [first, second] = &mut found[..] else { panic!("two heads") };
        session
            .run_slices(
                &[("right", &*r), ("left", &*l)],
                &mut [("right head", second.as_mut_slice()), ("left head", first.as_mut_slice())],
            )
            .expect("a run");
        assert_eq!(found, wanted, "{}", context.info());
    }
}

#[test]
fn runs_that_were_started_are_by_themselves() {
    let frames: Vec<[HostTensor; 2]> =
        (0..4u32).map(|frame| [noise(IMAGE, 10 + frame), noise(IMAGE, 20 + frame)]).collect();
    for context in &everywhere() {
        let mut session = Session::new(context, &network(), SessionOptions::default()).expect("a session");
        let mut wanted = Vec::new();
        for [left, right] in &frames {
            let outputs = session.run(&[("left", left), ("right", right)]).expect("a run");
            wanted.push(outputs.iter().map(elements).collect::<Vec<_>>());
        }
        let mut memory = [elements(&frames[0][0]), elements(&frames[0][1])];
        let mut started = Vec::new();
        for [left, right] in &frames {
            memory[0].copy_from_slice(&left.to_f32());
            memory[1].copy_from_slice(&right.to_f32());
            let inputs = [("left", memory[0].as_slice()), ("right", memory[1].as_slice())];
            started.push(session.submit(&inputs).expect("a flight"));
            // What was read may be written.
            memory.iter_mut().flatten().for_each(|element| *element = f32::NAN);
        }
        let other = session.run(&[("left", &frames[0][0]), ("right", &frames[0][1])]).expect("another run");
        assert_eq!(other.iter().map(elements).collect::<Vec<_>>(), wanted[0], "{}", context.info());
        drop(session);
        // In any order, one of them never.
        started.swap(0, 3);
        drop(started.pop());
        for (run, wanted) in started.into_iter().zip([&wanted[3], &wanted[1], &wanted[2]]) {
            let mut outputs: Vec<Vec<f32>> =
                wanted.iter().map(|output| vec![f32::NAN; output.len()]).collect();
            let [left, right] = &mut outputs[..] else { panic!("two heads") };
            run.wait_into(&mut [("left head", left.as_mut_slice()), ("right head", right.as_mut_slice())])
                .expect("outputs");
            assert_eq!(outputs, *wanted, "{}", context.info());
        }
    }
}

#[test]
fn slices_that_do_not_fit_are_refused_by_name() {
    let image = vec![0.5; IMAGE.elements()];
    for context in &everywhere() {
        let mut session = Session::new(context, &network(), SessionOptions::default()).expect("a session");
        let cases: [(&[Given<'_>], &str); 4] = [
            (&[("left", &image)], "input \"right\": found nothing, wanted shape 1x3x5x6"),
            (&[("left", &image), ("right", &image[1..])], "input \"right\": found a slice of 89 elements"),
            (&[("left", &image), ("left", &image)], "input \"left\": found two slices, wanted one"),
            (&[("left", &image), ("middle", &image)], "input: found \"middle\", wanted one of"),
        ];
        for (inputs, wanted) in cases {
            let error = session.submit(inputs).expect_err(wanted).to_string();
            assert!(error.starts_with(wanted), "{error}");
            let error = session.run_slices(inputs, &mut []).expect_err(wanted).to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
        let inputs: [(&str, &[f32]); 2] = [("left", &image), ("right", &image)];
        let mut short = [7.0; 3];
        let started = session.submit(&inputs).expect("a flight");
        let error = started.wait_into(&mut [("left head", &mut short)]).expect_err("three of sixty");
        assert!(error.to_string().contains("a slice of 3 elements, wanted 60"), "{error}");
        assert_eq!(short, [7.0; 3]);
    }
}

#[test]
fn a_flight_is_awaited_and_its_outputs_stay_as_they_are() {
    let frames: Vec<[HostTensor; 2]> =
        (0..3u32).map(|frame| [noise(IMAGE, 30 + frame), noise(IMAGE, 40 + frame)]).collect();
    for context in &everywhere() {
        let mut session = Session::new(context, &network(), SessionOptions::default()).expect("a session");
        let mut held = Vec::new();
        for [left, right] in &frames {
            let wanted = session.run(&[("left", left), ("right", right)]).expect("a run");
            let flight = session.submit(&[("left", left), ("right", right)]).expect("a flight");
            held.push((pollster::block_on(async { flight.await }).expect("outputs"), wanted));
        }
        drop(session);
        // Other runs have not written over what is held.
        for (outputs, wanted) in &held {
            assert_eq!((outputs.len(), outputs.ports().len()), (wanted.len(), wanted.len()));
            for (index, wanted) in wanted.iter().enumerate() {
                assert_eq!(outputs.get(index).expect("an output"), &*wanted.to_f32(), "{}", context.info());
                let named = outputs.named(&outputs.ports()[index].name);
                assert_eq!(named.expect("an output"), &*wanted.to_f32());
            }
            assert_eq!(outputs.tensors().expect("copies"), *wanted, "{}", context.info());
            let mut copies: Vec<Vec<f32>> =
                outputs.iter().map(|output| vec![f32::NAN; output.len()]).collect();
            let names = outputs.ports().iter().map(|port| port.name.as_str());
            let mut targets: Vec<(&str, &mut [f32])> =
                names.zip(copies.iter_mut().map(Vec::as_mut_slice)).collect();
            outputs.copy_into(&mut targets).expect("copies");
            assert_eq!(copies, outputs.iter().map(<[f32]>::to_vec).collect::<Vec<_>>());
            assert!(outputs.get(outputs.len()).is_err() && outputs.named("no output").is_err());
        }
    }
}
