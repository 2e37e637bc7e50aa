//! A network of every op, every extra and both kinds of matrix product, on every backend.

use crate::machine::{everywhere, noise};
use crate::oracle;
use diptych::{
    Activation, Backend, Bits, Context, Conv2d, Depthwise, Extras, Gemm, Graph, HostTensor, Layout, Padding,
    Pointwise, Precision, Right, Session, SessionOptions, Shape,
};
use diptych_kernels::ops::Choice;

fn network() -> Graph {
    let mut graph = Graph::new();
    let image = graph.input("image", Shape::nhwc(2, 9, 7, 6)).expect("an input");
    let other = graph.input("other", Shape::matrix(1, 8, 5)).expect("an input");
    let vector = |channels: usize, seed| noise(Shape::nhwc(1, 1, 1, channels), seed);

    let grouped =
        Conv2d { groups: 2, padding: Padding::Same, activation: Activation::PRelu, ..Default::default() };
    let extras = Extras { bias: Some(vector(8, 1)), slope: Some(vector(8, 2)), residual: None };
    let a =
        graph.conv2d("grouped", image, noise(Shape::nhwc(8, 3, 3, 3), 3), extras, grouped).expect("conv2d");

    let depthwise =
        Depthwise { padding: Padding::Same, activation: Activation::HardSwish, ..Default::default() };
    let b = graph
        .depthwise("depthwise", a, noise(Shape::nhwc(1, 3, 3, 8), 4), Extras::bias(vector(8, 5)), depthwise)
        .expect("depthwise");

    // The block's input is added after the activation, and lives until then.
    let extras = Extras { bias: Some(vector(8, 6)), residual: Some(a), ..Default::default() };
    let leaky = Pointwise { activation: Activation::LeakyRelu(Bits(0.1)) };
    let c = graph.pointwise("add", b, noise(Shape::nhwc(8, 1, 1, 8), 7), extras, leaky).expect("pointwise");

    // One row of pixels is a matrix of pixels by channels.
    let row = Conv2d { stride: [9, 1], ..Default::default() };
    let d = graph
        .conv2d("row", c, noise(Shape::nhwc(8, 9, 1, 8), 8), Extras::default(), row)
        .expect("a row of 7 pixels");
    let e = graph
        .gemm(
            "constant",
            d,
            Right::Constant(noise(Shape::matrix(1, 8, 8), 9)),
            Extras::default(),
            Gemm::default(),
        )
        .expect("gemm");
    let extras = Extras { bias: Some(vector(5, 10)), ..Default::default() };
    let sigmoid = Gemm { activation: Activation::Sigmoid, ..Default::default() };
    let f = graph.gemm("value", e, Right::Value(other), extras, sigmoid).expect("gemm");
    for output in [f, c, e] {
        graph.output(output).expect("an output");
    }
    graph
}

#[test]
fn a_network_of_every_op_is_what_the_oracles_make_of_it_on_every_backend() {
    let graph = network();
    let (image, other) = (noise(Shape::nhwc(2, 9, 7, 6), 20), noise(Shape::matrix(1, 8, 5), 21));
    let wanted = oracle::outputs(&graph, &[("image", &image), ("other", &other)]);
    for context in &everywhere() {
        let mut session = Session::new(context, &graph, SessionOptions::default()).expect("a session");
        // Twice: nothing of a run is left to the next.
        session.run(&[("other", &other), ("image", &other_image())]).expect("a run");
        let found = session.run(&[("other", &other), ("image", &image)]).expect("a run");
        assert_eq!(found[0].shape(), Shape::matrix(2, 7, 5));
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found.shape().elements(), wanted.len());
            for (found, wanted) in found.to_f32().iter().zip(wanted) {
                let error = (found - wanted).abs();
                assert!(error <= 1e-4 * wanted.abs().max(1.0), "{}: {found} {wanted}", context.info());
            }
        }
    }
}

#[test]
fn products_by_one_matrix_keep_it_once() {
    let matrix = || noise(Shape::matrix(1, 64, 64), 30);
    let one = matrix();
    let chain = |steps: usize, weights: &dyn Fn() -> HostTensor| {
        let mut graph = Graph::new();
        let mut x = graph.input("x", Shape::matrix(1, 3, 64)).expect("an input");
        for step in 0..steps {
            let (name, right) = (format!("step {step}"), Right::Constant(weights()));
            x = graph.gemm(&name, x, right, Extras::default(), Gemm::default()).expect("a product");
        }
        graph.output(x).expect("an output");
        graph
    };
    let x = noise(Shape::matrix(1, 3, 64), 31);
    for context in &everywhere() {
        let run = |graph: &Graph| {
            let mut session = Session::new(context, graph, SessionOptions::default()).expect("a session");
            let found = session.run(&[("x", &x)]).expect("a run");
            (found[0].to_f32().into_owned(), session.memory().constants)
        };
        let (_, least) = run(&chain(1, &|| one.clone()));
        let (shared, few) = run(&chain(5, &|| one.clone()));
        let (apart, many) = run(&chain(5, &matrix));
        assert_eq!(shared, apart, "{}", context.info());
        assert_eq!([few, many], [least, 5 * least], "{}", context.info());
    }
}

#[test]
fn a_matrix_that_kernels_read_as_it_is_is_stored_once() {
    let matrix = noise(Shape::matrix(1, 64, 64), 30);
    // At each step the same matrix is a constant of its own.
    let products = |steps: usize| {
        let mut graph = Graph::new();
        let x = graph.input("x", Shape::matrix(1, 64, 64)).expect("an input");
        for step in 0..steps {
            let right = Right::Value(graph.constant("matrix", matrix.clone()));
            let name = format!("step {step}");
            let product = graph.gemm(&name, x, right, Extras::default(), Gemm::default()).expect("a product");
            graph.output(product).expect("an output");
        }
        graph
    };
    let x = noise(Shape::matrix(1, 64, 64), 31);
    for context in &everywhere() {
        let [one, five] = [1, 5].map(|steps| {
            let graph = products(steps);
            let mut session = Session::new(context, &graph, SessionOptions::default()).expect("a session");
            let found = session.run(&[("x", &x)]).expect("a run");
            let wanted = oracle::outputs(&graph, &[("x", &x)]);
            for (found, wanted) in found.iter().zip(&wanted) {
                for (found, wanted) in found.to_f32().iter().zip(wanted) {
                    let error = (found - wanted).abs();
                    assert!(error <= 1e-3 * wanted.abs().max(1.0), "{}: {found} {wanted}", context.info());
                }
            }
            session.memory()
        });
        let outputs = 4 * 4 * x.dims().elements() as u64;
        assert!(five.planned <= one.planned + outputs, "{}: {one:?} {five:?}", context.info());
        assert_eq!(one.constants, five.constants, "{}", context.info());
    }
}

fn other_image() -> HostTensor {
    noise(Shape::nhwc(2, 9, 7, 6), 99)
}

#[test]
fn a_run_into_the_callers_memory_is_the_same_run() {
    let graph = network();
    let (image, other) = (noise(Shape::nhwc(2, 9, 7, 6), 20), noise(Shape::matrix(1, 8, 5), 21));
    let inputs = [("other", &other), ("image", &image)];
    for context in &everywhere() {
        let mut session = Session::new(context, &graph, SessionOptions::default()).expect("a session");
        let wanted = session.run(&inputs).expect("a run");
        session.run(&[("other", &other), ("image", &other_image())]).expect("another run");
        let lengths: Vec<usize> = session.outputs().iter().map(|port| port.shape.elements()).collect();
        let names: Vec<String> = session.outputs().iter().map(|port| port.name.clone()).collect();
        // In another order than the graph's, each at an odd place of a larger slice.
        let mut found: Vec<Vec<f32>> = lengths.iter().map(|length| vec![f32::NAN; length + 2]).collect();
        let [value, add, constant] = &mut found[..] else { panic!("{names:?}") };
        let mut outputs = [
            (names[2].as_str(), &mut constant[1..=lengths[2]]),
            (names[0].as_str(), &mut value[1..=lengths[0]]),
            (names[1].as_str(), &mut add[1..=lengths[1]]),
        ];
        session.run_into(&inputs, &mut outputs).expect("a run");
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found[1..found.len() - 1], *wanted.to_f32(), "{}", context.info());
            assert!(found[0].is_nan() && found[found.len() - 1].is_nan(), "{}", context.info());
        }
    }
}

#[test]
fn what_a_run_into_memory_is_given_must_be_its_outputs() {
    let graph = heads(1);
    let image = noise(Shape::nhwc(1, 5, 7, 6), 1);
    for context in &everywhere() {
        let mut session = Session::new(context, &graph, SessionOptions::default()).expect("a session");
        let ports = session.outputs().to_vec();
        let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        let lengths: Vec<usize> = ports.iter().map(|port| port.shape.elements()).collect();
        let mut refused = |names: &[&str], lengths: &[usize]| {
            let mut memory: Vec<Vec<f32>> = lengths.iter().map(|&length| vec![7.0; length]).collect();
            let mut outputs: Vec<(&str, &mut [f32])> =
                names.iter().zip(&mut memory).map(|(name, memory)| (*name, memory.as_mut_slice())).collect();
            let error = session.run_into(&[("image", &image)], &mut outputs).expect_err("other outputs");
            assert!(memory.iter().flatten().all(|&value| value == 7.0), "something was written");
            error.to_string()
        };
        let missing = refused(&names[1..], &lengths[1..]);
        assert!(missing.contains(&format!("output {:?}: found nothing", names[0])), "{missing}");
        let unknown = refused(&["nobody"], &[1]);
        assert!(unknown.contains("\"nobody\"") && unknown.contains(names[0]), "{unknown}");
        let twice = refused(&[names[0], names[0]], &[lengths[0], lengths[0]]);
        assert!(twice.contains("two slices"), "{twice}");
        for other in [lengths[0] - 1, lengths[0] + 1, 0] {
            let long = refused(&names[..1], &[other]);
            assert!(long.contains(&format!("{other} elements, wanted {}", lengths[0])), "{long}");
        }
    }
}

#[test]
fn a_run_in_stages_is_the_same_run() {
    let graph = network();
    let (image, other) = (noise(Shape::nhwc(2, 9, 7, 6), 20), noise(Shape::matrix(1, 8, 5), 21));
    for context in &everywhere() {
        let mut session = Session::new(context, &graph, SessionOptions::default()).expect("a session");
        let wanted = session.run(&[("other", &other), ("image", &image)]).expect("a run");
        session.run(&[("other", &other), ("image", &other_image())]).expect("another run");
        let (found, times) = session.run_in_stages(&[("other", &other), ("image", &image)]).expect("a run");
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found.to_f32(), wanted.to_f32());
        }
        let on_device = context.device().is_some();
        assert_eq!([!times.upload.is_zero(), !times.download.is_zero()], [on_device; 2], "{times:?}");
        assert!(!times.network.is_zero());
        session.run_in_stages(&[("image", &image)]).expect_err("an input is missing");
    }
}

#[test]
fn a_picture_in_nchw_is_the_same_picture() {
    let graph = network();
    let (image, other) = (noise(Shape::nhwc(2, 9, 7, 6), 20), noise(Shape::matrix(1, 8, 5), 21));
    let shape = image.shape();
    let mut planes = vec![0.0; shape.elements()];
    for (index, value) in image.to_f32().iter().enumerate() {
        let (c, w) = (index % shape.c, index / shape.c % shape.w);
        let (h, n) = (index / shape.c / shape.w % shape.h, index / shape.c / shape.w / shape.h);
        planes[Layout::Nchw.index(&shape, n, h, w, c)] = *value;
    }
    let planes = HostTensor::with_layout(shape, Layout::Nchw, planes).expect("planes");
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let rows = session.run(&[("other", &other), ("image", &image)]).expect("a run");
        assert_eq!(rows, session.run(&[("other", &other), ("image", &planes)]).expect("a run"));
    }
}

#[test]
fn halves_are_within_their_rounding_and_missing_arithmetic_is_an_error() {
    let graph = network();
    let (image, other) = (noise(Shape::nhwc(2, 9, 7, 6), 20), noise(Shape::matrix(1, 8, 5), 21));
    for context in everywhere() {
        let Some(device) = context.device() else { continue };
        let run = |precision| {
            let options = SessionOptions { precision, ..Default::default() };
            let mut session = Session::new(&context, &graph, options)?;
            session.run(&[("other", &other), ("image", &image)])
        };
        let wanted = run(Precision::F32).expect("f32");
        let close = |found: &[HostTensor]| {
            found.iter().zip(&wanted).all(|(found, wanted)| {
                // Some hundred terms below 1, each rounded to 2^-11: a tenth is far beyond them.
                found.to_f32().iter().zip(wanted.to_f32().iter()).all(|(a, b)| (a - b).abs() < 0.1)
            })
        };
        assert!(close(&run(Precision::F16Storage).expect("f16 storage")), "{}", context.info());
        match run(Precision::F16) {
            Ok(found) => assert!(device.info().limits.native_half && close(&found), "{}", context.info()),
            Err(error) => {
                assert!(!device.info().limits.native_half, "{}: {error}", context.info());
                // Of the session, not of the first node that would compute with halves.
                assert!(error.is_unsupported() && error.node().is_none(), "{error}");
                for part in ["native half", "Precision::F16Storage", &device.info().name] {
                    assert!(error.to_string().contains(part), "{error}");
                }
            }
        }
    }
}

/// Heads of one feature map with channel counts that share no slice, marked out of order, one of
/// them without a bias; and one that another node reads, which stays itself.
fn heads(batch: usize) -> Graph {
    let mut graph = Graph::new();
    let image = graph.input("image", Shape::nhwc(batch, 5, 7, 6)).expect("an input");
    let weights = |channels: usize, seed| noise(Shape::nhwc(channels, 1, 1, 6), seed);
    let sigmoid = Pointwise { activation: Activation::Sigmoid };
    let mut values = Vec::new();
    for (index, channels) in [17, 34, 32, 3].into_iter().enumerate() {
        let bias = (index != 2).then(|| noise(Shape::nhwc(1, 1, 1, channels), 40 + index as u32));
        let extras = Extras { bias, ..Default::default() };
        let name = format!("head {index}");
        let weights = weights(channels, 30 + index as u32);
        values.push(graph.pointwise(&name, image, weights, extras, sigmoid).expect("a head"));
    }
    let read = graph.pointwise("read", image, weights(6, 50), Extras::default(), sigmoid).expect("a node");
    let reader = graph
        .pointwise("reader", read, weights(5, 51), Extras::default(), Pointwise::default())
        .expect("its reader");
    for value in [values[2], reader, values[0], read, values[3], values[1]] {
        graph.output(value).expect("an output");
    }
    graph
}

#[test]
fn heads_of_one_map_run_as_one_and_leave_as_themselves() {
    for batch in [1, 3] {
        let graph = heads(batch);
        let image = noise(Shape::nhwc(batch, 5, 7, 6), 60);
        let wanted = oracle::outputs(&graph, &[("image", &image)]);
        for context in &everywhere() {
            let mut session = Session::new(context, &graph, SessionOptions::default()).expect("a session");
            let found = session.run(&[("image", &image)]).expect("a run");
            if context.device().is_some() {
                let names: Vec<String> = session.steps().iter().map(|step| step.name.clone()).collect();
                assert!(names.contains(&"head 0 + head 1 + head 2 + head 3".to_owned()), "{names:?}");
                assert!(names.contains(&"read".to_owned()), "{names:?}");
            }
            for (found, port) in found.iter().zip(session.outputs()) {
                assert_eq!(found.shape(), port.shape);
            }
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_eq!(found.shape().elements(), wanted.len());
                for (found, wanted) in found.to_f32().iter().zip(wanted) {
                    assert!((found - wanted).abs() <= 1e-5, "{}: {found} {wanted}", context.info());
                }
            }
        }
    }
}

#[test]
fn a_head_with_a_kernel_of_its_own_stays_itself() {
    let graph = heads(1);
    for context in everywhere() {
        if context.device().is_none() {
            continue;
        }
        let choice = Choice::new("direct", [1, 1, 1], [8, 4, 1]);
        let options =
            SessionOptions { choices: [("head 1".to_owned(), choice)].into(), ..Default::default() };
        let session = Session::new(&context, &graph, options).expect("a session");
        let steps = session.steps();
        let own = steps.iter().find(|step| step.name == "head 1").expect("a step of its own");
        assert!(own.kernel.contains("direct") && own.source == "by hand", "{own:?}");
        assert!(steps.iter().any(|step| step.name == "head 0 + head 2 + head 3"), "{steps:?}");
    }
}

/// Frames of [`heads`] and what each gives alone.
fn frames(session: &mut Session, count: u32) -> Vec<(HostTensor, Vec<HostTensor>)> {
    (0..count)
        .map(|seed| {
            let image = noise(session.inputs()[0].shape, 100 + seed);
            let outputs = session.run(&[("image", &image)]).expect("a run");
            (image, outputs)
        })
        .collect()
}

#[test]
fn a_stream_gives_what_single_runs_give_in_their_order() {
    for context in everywhere() {
        let mut session = Session::new(&context, &heads(1), SessionOptions::default()).expect("a session");
        let frames = frames(&mut session, 7);
        for in_flight in [0, 1, 2, 3, 20] {
            let images = frames.iter().map(|(image, _)| [("image", image.clone())]);
            let stream = session.stream(images).in_flight(in_flight);
            assert_eq!(stream.size_hint(), (7, Some(7)));
            let found: Vec<Vec<HostTensor>> = stream.map(|outputs| outputs.expect("a frame")).collect();
            assert_eq!(found.len(), 7);
            for (found, (_, wanted)) in found.iter().zip(&frames) {
                assert_eq!(found, wanted, "{}, {in_flight} in flight", context.info());
            }
        }
    }
}

#[test]
fn a_stream_takes_no_more_frames_than_it_has_room_for() {
    for context in everywhere() {
        let mut session = Session::new(&context, &heads(1), SessionOptions::default()).expect("a session");
        let image = noise(Shape::nhwc(1, 5, 7, 6), 1);
        let taken = std::cell::Cell::new(0);
        let endless = std::iter::repeat_with(|| {
            taken.set(taken.get() + 1);
            [("image", image.clone())]
        });
        let mut stream = session.stream(endless).in_flight(3);
        assert_eq!(taken.get(), 0, "nothing is taken before it is asked for");
        for asked in 1..=4 {
            stream.next().expect("there is always one more").expect("a frame");
            assert_eq!(taken.get(), asked + 2);
        }
        // Two frames are under way.
        drop(stream);
        session.run(&[("image", &image)]).expect("the session goes on");
    }
}

#[test]
fn an_error_stays_in_its_frames_place() {
    for context in everywhere() {
        let mut session = Session::new(&context, &heads(1), SessionOptions::default()).expect("a session");
        let frames = frames(&mut session, 5);
        let wrong = noise(Shape::nhwc(1, 5, 6, 6), 1);
        let images = frames.iter().enumerate().map(|(index, (image, _))| match index {
            1 => vec![("image", wrong.clone())],
            3 => vec![],
            _ => vec![("image", image.clone())],
        });
        let found: Vec<_> = session.stream(images).in_flight(3).collect();
        assert_eq!(found.len(), 5);
        for (index, found) in found.iter().enumerate() {
            match (index, found) {
                (1, Err(error)) => assert!(error.to_string().contains("1x5x6x6"), "{error}"),
                (3, Err(error)) => assert!(error.to_string().contains("nothing"), "{error}"),
                (_, found) => assert_eq!(found.as_ref().expect("a frame"), &frames[index].1),
            }
        }
    }
}

#[test]
fn a_batch_of_any_size_is_its_images_one_by_one() {
    let alone = heads(1);
    for context in everywhere() {
        let mut single = Session::new(&context, &alone, SessionOptions::default()).expect("a session");
        for batch in [1, 2, 5] {
            let graph = alone.with_batch(batch).expect("a batch");
            let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
            let images = noise(Shape::nhwc(batch, 5, 7, 6), 7);
            let together = session.run(&[("image", &images)]).expect("a run");
            for index in 0..batch {
                let part = |tensor: &HostTensor| {
                    let shape = Shape { n: 1, ..tensor.shape() };
                    let from = index * shape.elements();
                    let values = tensor.to_f32()[from..from + shape.elements()].to_vec();
                    HostTensor::new(shape, values).expect("an image")
                };
                let wanted = single.run(&[("image", &part(&images))]).expect("a run");
                for (found, wanted) in together.iter().map(part).zip(&wanted) {
                    assert_eq!(found.shape(), wanted.shape());
                    for (found, wanted) in found.to_f32().iter().zip(wanted.to_f32().iter()) {
                        assert!((found - wanted).abs() <= 1e-5, "{}: {found} {wanted}", context.info());
                    }
                }
            }
        }
    }
    assert!(alone.with_batch(0).is_err());
    let twice = alone.with_batch(2).expect("a batch").with_batch(3).expect("a batch of batches");
    assert_eq!(twice.shape(twice.inputs()[0]).expect("a shape"), Shape::nhwc(6, 5, 7, 6));
}

#[test]
fn compiled_kernels_are_kept() {
    let graph = heads(1);
    let image = noise(Shape::nhwc(1, 5, 7, 6), 3);
    for backend in [Backend::OpenCl, Backend::Wgpu] {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("kernels");
        let files = || -> Vec<(std::path::PathBuf, Vec<u8>)> {
            let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
            let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
            paths.sort();
            paths.into_iter().map(|path| (path.clone(), std::fs::read(&path).expect("a file"))).collect()
        };
        // A device of its own each time: a device remembers what it compiled.
        let outputs = || -> Option<Vec<HostTensor>> {
            let context = Context::new(backend).ok()?;
            context.keep_kernels(Some(directory.path()));
            let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
            Some(session.run(&[("image", &image)]).expect("a run"))
        };
        let Some(wanted) = outputs() else { continue };
        let kept = files();
        println!("{backend}: {} files", kept.len());
        // One, where the kernels are one program.
        assert!(backend != Backend::OpenCl || !kept.is_empty(), "{backend} keeps nothing");
        assert_eq!(outputs().expect("a device"), wanted, "{backend}, from the disk");
        let names = |files: &[(std::path::PathBuf, Vec<u8>)]| -> Vec<_> {
            files.iter().map(|(path, _)| path.clone()).collect()
        };
        assert_eq!(names(&files()), names(&kept), "{backend}: nothing was compiled anew");
        // Whatever is done to the files, the kernels are right, and so are the files afterwards.
        for damage in [&b""[..], b"diptych kernel 1 and then nonsense", &[0; 4096]] {
            for (path, _) in &kept {
                std::fs::write(path, damage).expect("damage");
            }
            assert_eq!(outputs().expect("a device"), wanted, "{backend}, damaged");
            assert_eq!(names(&files()), names(&kept));
            assert!(files().iter().all(|(_, bytes)| bytes != damage), "{backend}: a damaged file stayed");
        }
    }
}

#[test]
fn a_run_after_one_that_was_not_awaited_to_its_end_is_right() {
    let graph = network();
    let inputs =
        [("image", noise(Shape::nhwc(2, 9, 7, 6), 20)), ("other", noise(Shape::matrix(1, 8, 5), 21))];
    let inputs: Vec<(&str, &HostTensor)> = inputs.iter().map(|(name, tensor)| (*name, tensor)).collect();
    for context in everywhere() {
        let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
        let wanted = session.run(&inputs).expect("a run");
        let mut task = std::task::Context::from_waker(std::task::Waker::noop());
        for _ in 0..8 {
            {
                let future = std::pin::pin!(session.run_async(&inputs));
                let _ = std::future::Future::poll(future, &mut task);
            }
            assert_eq!(session.run(&inputs).expect("a run"), wanted, "{}", context.info());
            let awaited = pollster::block_on(session.run_async(&inputs)).expect("a run");
            assert_eq!(awaited, wanted, "{}", context.info());
        }
    }
}
