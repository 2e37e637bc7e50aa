//! A network for several samples: each has the results that it has alone, whatever the network does along its batch's axis.

use crate::machine::{contexts, everywhere, gpus, noise};
use diptych::nn::{Attention, AxisRange, CumSum, Normalize, OneHot, PadMode};
use diptych::{
    AttentionInputs, Backend, Bits, Context, Conv2d, Custom, DType, Dim, Dims, Extras, Function, Gemm, Graph,
    HostTensor, LoadOptions, ModelFile, Padding, Pool, Pooling, Reduction, Right, Session, SessionOptions,
    Shape, Softmax, Term, Value,
};
use std::path::{Path, PathBuf};

const COUNT: usize = 3;

fn dims(extents: &[usize]) -> Dims {
    Dims::new(extents).expect("small")
}

fn random(extents: &[usize], seed: u32) -> HostTensor {
    let dims = dims(extents);
    let values = noise(Shape::nhwc(1, 1, 1, dims.elements()), seed).to_f32().into_owned();
    HostTensor::new(dims, values).expect("noise")
}

/// One input for a sample: whole numbers from 0 on where the network wants integers.
fn input_of(graph: &Graph, input: Value, seed: u32) -> HostTensor {
    let of = graph.tensor_type(input).expect("an input");
    let values = random(of.dims.extents(), seed).to_f32().into_owned();
    let values = match of.dtype.is_float() {
        true => values,
        false => values.iter().map(|value| (4.0 * (value + 0.5)).floor()).collect(),
    };
    HostTensor::new(of.dims, values).expect("an input")
}

/// Each sample's part of the outputs is what it has alone, within `tolerance` of the largest.
fn compare(context: &Context, graph: &Graph, count: usize, tolerance: f32) -> Result<(), String> {
    let told = |error: diptych::Error| error.to_string();
    let all = graph.with_batch(count).map_err(told)?;
    let options = SessionOptions::default;
    let mut alone = Session::new(context, graph, options()).map_err(told)?;
    let mut together = Session::new(context, &all, options()).map_err(told)?;
    let inputs: Vec<Vec<HostTensor>> = (0..count as u32)
        .map(|sample| {
            let each = graph.inputs().iter().zip(0u32..);
            each.map(|(&input, port)| input_of(graph, input, 1 + 100 * sample + port)).collect()
        })
        .collect();
    let names: Vec<String> =
        graph.inputs().iter().map(|&input| graph.name(input).expect("a name").to_owned()).collect();
    let joined: Vec<HostTensor> = (0..names.len())
        .map(|port| {
            let values: Vec<f32> =
                inputs.iter().flat_map(|sample| sample[port].to_f32().into_owned()).collect();
            HostTensor::new(all.dims(all.inputs()[port]).expect("dims"), values).expect("all of them")
        })
        .collect();
    let given: Vec<(&str, &HostTensor)> = names.iter().map(String::as_str).zip(&joined).collect();
    let found = together.run(&given).map_err(told)?;
    for (output, port) in together.outputs().iter().zip(alone.outputs()) {
        assert_eq!((&output.name, output.dtype), (&port.name, port.dtype));
    }
    for (sample, inputs) in inputs.iter().enumerate() {
        let given: Vec<(&str, &HostTensor)> = names.iter().map(String::as_str).zip(inputs).collect();
        let wanted = alone.run(&given).map_err(told)?;
        for (port, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            let one = wanted.dims().elements();
            if found.dims().elements() != count * one
                || found.dims().extents().first().copied().unwrap_or(1)
                    != count * wanted.dims().extents().first().copied().unwrap_or(1)
            {
                return Err(format!("output {port} of {} for {}", found.dims(), wanted.dims()));
            }
            let (found, wanted) = (found.to_f32(), wanted.to_f32());
            let found = &found[sample * one..(sample + 1) * one];
            let largest = wanted.iter().fold(0f32, |most, value| most.max(value.abs()));
            let off = found.iter().zip(wanted.iter()).map(|(found, wanted)| (found - wanted).abs());
            let off = off.fold(0f32, |most, off| if off.is_nan() { f32::INFINITY } else { most.max(off) });
            if off > tolerance * (1.0 + largest) {
                return Err(format!("sample {sample}, output {port}: off by {off} of {largest}"));
            }
        }
    }
    Ok(())
}

/// A network of one input of these extents.
fn of(extents: &[usize], build: impl FnOnce(&mut Graph, Value) -> diptych::Result<Value>) -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", dims(extents)).expect("an input");
    let y = build(&mut graph, x).expect("a network");
    graph.output(y).expect("an output");
    graph
}

fn fixed(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|&extent| Dim::Fixed(extent)).collect()
}

fn dense(graph: &mut Graph, name: &str, x: Value, k: usize, n: usize) -> diptych::Result<Value> {
    let seed = name.bytes().map(u32::from).sum();
    graph.gemm(name, x, Right::Constant(random(&[k, n], seed)), Extras::default(), Gemm::default())
}

/// Small networks, each with something that a batch of an exported network stumbles over.
fn networks() -> Vec<(&'static str, Graph)> {
    let all = AxisRange::ALL;
    vec![
        (
            "a classifier that flattens to 1 x 60",
            of(&[1, 4, 5, 3], |graph, x| {
                let filters = random(&[3, 3, 3, 3], 5);
                let options = Conv2d { padding: Padding::Same, ..Default::default() };
                let y = graph.conv2d("conv", x, filters, Extras::default(), options)?;
                let flat = graph.reshape("flat", y, &fixed(&[1, 60]))?;
                dense(graph, "dense", flat, 60, 7)
            }),
        ),
        (
            "1 x -1, and no batch at all in between",
            of(&[1, 4, 6], |graph, x| {
                let flat = graph.reshape("flat", x, &[Dim::Fixed(24)])?;
                let y =
                    graph.elementwise("scaled", Function::Mul, &[Term::Value(flat), Term::Number(3.0)])?;
                let y = graph.reshape("rows", y, &[Dim::Fixed(1), Dim::Rest])?;
                dense(graph, "dense", y, 24, 5)
            }),
        ),
        (
            "tokens and batch in one axis",
            of(&[1, 5, 8], |graph, x| {
                let rows = graph.reshape("rows", x, &fixed(&[5, 8]))?;
                let y = dense(graph, "dense", rows, 8, 6)?;
                let bias = graph.constant("bias", random(&[5, 6], 9));
                let y = graph.elementwise("biased", Function::Add, &[y.into(), bias.into()])?;
                graph.reshape("back", y, &fixed(&[1, 5, 6]))
            }),
        ),
        (
            "a class token, positions and attention with heads written out",
            of(&[1, 4, 6], |graph, x| {
                let token = graph.constant("token", random(&[1, 1, 6], 3));
                let token = graph.broadcast_to("spread", token, &fixed(&[1, 1, 6]))?;
                let x = graph.concat("tokens", &[token, x], 1)?;
                let places = graph.constant("places", random(&[1, 5, 6], 4));
                let x = graph.elementwise("placed", Function::Add, &[x.into(), places.into()])?;
                let x = graph.normalize("norm", x, Normalize::default(), None, None)?;
                let qkv = dense(graph, "qkv", x, 6, 18)?;
                let qkv = graph.reshape("split", qkv, &fixed(&[1, 5, 3, 2, 3]))?;
                let qkv = graph.transpose("first", qkv, &[2, 0, 3, 1, 4])?;
                let part = |graph: &mut Graph, name: &str, index: usize| {
                    let ranges = [AxisRange::new(index as isize, index as isize + 1), all, all, all, all];
                    let part = graph.strided_slice(&format!("{name} part"), qkv, &ranges)?;
                    graph.reshape(name, part, &fixed(&[2, 5, 3]))
                };
                let (q, k, v) = (part(graph, "q", 0)?, part(graph, "k", 1)?, part(graph, "v", 2)?);
                let scores = graph.gemm(
                    "scores",
                    q,
                    Right::Value(k),
                    Extras::default(),
                    Gemm { transpose_b: true, ..Gemm::default() },
                )?;
                let shares = graph.softmax("shares", scores, Softmax::default())?;
                let y = graph.gemm("mixed", shares, Right::Value(v), Extras::default(), Gemm::default())?;
                let y = graph.transpose("heads last", y, &[1, 0, 2])?;
                let y = graph.reshape("tokens again", y, &fixed(&[1, 5, 6]))?;
                let y = dense(graph, "out", y, 6, 6)?;
                let y = graph.strided_slice("class", y, &[all, AxisRange::new(0, 1), all])?;
                let y = graph.reshape("squeezed", y, &fixed(&[1, 6]))?;
                dense(graph, "head", y, 6, 4)
            }),
        ),
        (
            "attention",
            of(&[1, 2, 5, 8], |graph, x| {
                let k = graph.elementwise("k", Function::Mul, &[Term::Value(x), Term::Number(0.5)])?;
                let bias = graph.constant("bias", random(&[2, 5, 5], 8));
                let inputs = AttentionInputs { bias: Some(bias), ..AttentionInputs::default() };
                graph.attention("attention", [x, k, x], inputs, Attention::default())
            }),
        ),
        (
            "softmax over the batch's axis",
            of(&[1, 6], |graph, x| {
                let y = graph.softmax("soft", x, Softmax { axis: 0, ..Softmax::default() })?;
                graph.elementwise("both", Function::Add, &[y.into(), x.into()])
            }),
        ),
        (
            "a mean over the batch",
            of(&[1, 6, 5], |graph, x| {
                let mean = graph.reduce("mean", x, Reduction::Mean, &[0], true)?;
                graph.elementwise("centred", Function::Add, &[x.into(), mean.into()])
            }),
        ),
        (
            "a sum of everything",
            of(&[1, 6, 5], |graph, x| graph.reduce("sum", x, Reduction::Sum, &[0, 1, 2], false)),
        ),
        (
            "a mean of everything, in a product with it",
            of(&[1, 3, 4, 5], |graph, x| {
                let mean = graph.reduce("mean", x, Reduction::Mean, &[0, 1, 2, 3], false)?;
                let y = graph.elementwise("scaled", Function::Mul, &[x.into(), mean.into()])?;
                graph.normalize(
                    "norm",
                    y,
                    Normalize { axes: vec![0, 1, 2, 3], ..Normalize::default() },
                    None,
                    None,
                )
            }),
        ),
        ("a result that is the same for all", {
            let mut graph = Graph::new();
            let x = graph.input("x", dims(&[1, 4])).unwrap();
            let y = graph.elementwise("y", Function::Abs, &[x.into()]).unwrap();
            let priors = graph.constant("priors", random(&[1, 3, 2], 5));
            let twice = graph.elementwise("twice", Function::Add, &[priors.into(), priors.into()]).unwrap();
            graph.output(y).unwrap();
            graph.output(twice).unwrap();
            graph
        }),
        (
            "a result whose batch is its last axis",
            of(&[1, 4], |graph, x| {
                let y = graph.transpose("turned", x, &[1, 0])?;
                graph.elementwise("abs", Function::Abs, &[y.into()])
            }),
        ),
        (
            "matrices of the batch times each other",
            of(&[1, 4, 5], |graph, x| {
                let rows = graph.reshape("rows", x, &fixed(&[4, 5]))?;
                let options = Gemm { transpose_b: true, ..Gemm::default() };
                graph.gemm("gram", rows, Right::Value(rows), Extras::default(), options)
            }),
        ),
        (
            "a product with a transposed A",
            of(&[1, 4, 5], |graph, x| {
                let rows = graph.reshape("rows", x, &fixed(&[4, 5]))?;
                let options = Gemm { transpose_a: true, ..Gemm::default() };
                graph.gemm("turned", rows, Right::Constant(random(&[4, 3], 2)), Extras::default(), options)
            }),
        ),
        (
            "several matrices, each with its own constant one",
            of(&[1, 3, 4, 5], |graph, x| {
                let x = graph.reshape("heads", x, &fixed(&[3, 4, 5]))?;
                let right = graph.constant("right", random(&[3, 5, 2], 6));
                graph.gemm("each", x, Right::Value(right), Extras::default(), Gemm::default())
            }),
        ),
        (
            "a constant times what is computed",
            of(&[1, 5, 4], |graph, x| {
                let x = graph.reshape("rows", x, &fixed(&[5, 4]))?;
                let left = graph.constant("left", random(&[3, 5], 6));
                graph.gemm("left first", left, Right::Value(x), Extras::default(), Gemm::default())
            }),
        ),
        ("a residual of another rank than its product", {
            let mut graph = Graph::new();
            let x = graph.input("x", dims(&[2, 1, 3, 4])).unwrap();
            let residual = graph.input("residual", dims(&[2, 3, 5])).unwrap();
            let right = graph.constant("right", random(&[2, 4, 5], 6));
            let extras = Extras { residual: Some(residual), ..Extras::default() };
            let y = graph.gemm("y", x, Right::Value(right), extras, Gemm::default()).unwrap();
            graph.output(y).unwrap();
            graph
        }),
        (
            "dilation as blocks in the batch",
            of(&[1, 6, 8, 3], |graph, x| {
                let y = graph.space_to_batch("blocks", x, &[2, 2], &[0, 0], &[0, 0])?;
                let y = graph.conv2d(
                    "conv",
                    y,
                    random(&[4, 2, 2, 3], 3),
                    Extras::default(),
                    Conv2d::default(),
                )?;
                graph.batch_to_space("map", y, &[2, 2], &[0, 0], &[0, 0])
            }),
        ),
        (
            "moves along the batch's axis",
            of(&[1, 3, 4], |graph, x| {
                let y = graph.pad("padded", x, &[1, 0, 1], &[0, 2, 0], PadMode::Constant(Bits(2.0)))?;
                let y = graph.reverse("backwards", y, &[0, 2])?;
                let y = graph.tile("tiled", y, &[2, 1, 2])?;
                let y = graph.strided_slice("some", y, &[AxisRange::new(1, 4), AxisRange::new(0, 4), all])?;
                graph.cumsum("sums", y, CumSum { axis: 0, exclusive: false, reverse: true })
            }),
        ),
        (
            "a concatenation along the batch's axis",
            of(&[1, 3, 4], |graph, x| {
                let y = graph.elementwise("abs", Function::Abs, &[x.into()])?;
                let own = graph.constant("own", random(&[2, 3, 4], 6));
                let y = graph.concat("both", &[x, own, y], 0)?;
                graph.broadcast_to("spread", y, &fixed(&[2, 4, 3, 4]))
            }),
        ),
        (
            "the largest, where they are, and what lies there",
            of(&[1, 4, 6], |graph, x| {
                let [values, places] = graph.top_k("largest", x, 2)?;
                let most = graph.arg_max("most", x, 2, false)?;
                let hot = graph.one_hot(
                    "hot",
                    most,
                    OneHot { depth: 6, on: Bits(1.0), off: Bits(0.0), axis: -1 },
                )?;
                let found = graph.gather("found", x, places, 2, 2)?;
                let y = graph.concat("both", &[values, found, hot], 2)?;
                let map = graph.reshape("map", y, &fixed(&[1, 4, 10, 1]))?;
                graph.pool("pooled", map, Pool::new(Pooling::Max, [2, 2]))
            }),
        ),
        ("rows of a table, by a token", {
            let mut graph = Graph::new();
            let ids = graph.typed_input("ids", DType::I32, &fixed(&[1, 5])).unwrap();
            let x = graph.input("x", dims(&[1, 4, 3])).unwrap();
            let table = graph.constant("table", random(&[4, 6], 4));
            let rows = graph.gather("rows", table, ids, 0, 0).unwrap();
            let own = graph.gather("own", x, ids, 1, 1).unwrap();
            let flat = graph.reshape("flat", x, &fixed(&[4, 3])).unwrap();
            let line = graph.reshape("line", ids, &fixed(&[5])).unwrap();
            let theirs = graph.gather("theirs", flat, line, 0, 0).unwrap();
            for y in [rows, own, theirs] {
                graph.output(y).unwrap();
            }
            graph
        }),
        (
            "a function of the application, of all that it is given",
            of(&[1, 4, 2], |graph, x| {
                let centred = Custom::host(
                    "centred",
                    |inputs| Ok(inputs.to_vec()),
                    |inputs, outputs| {
                        let mean = inputs[0].iter().sum::<f32>() / inputs[0].len() as f32;
                        for (to, from) in outputs[0].iter_mut().zip(inputs[0]) {
                            *to = from - mean;
                        }
                        Ok(())
                    },
                );
                let y = graph.custom("centred", &centred, &[x])?;
                graph.elementwise("twice", Function::Mul, &[Term::Value(y[0]), Term::Number(2.0)])
            }),
        ),
    ]
}

#[test]
fn each_sample_has_the_results_that_it_has_alone() {
    let networks = networks();
    let mut wrong = Vec::new();
    for context in everywhere() {
        for (name, graph) in &networks {
            if let Err(error) = compare(&context, graph, COUNT, 1e-5) {
                wrong.push(format!("{}: {name}: {error}", context.info()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_step_of_many_samples_has_a_name_of_its_own() {
    let networks = networks();
    let (_, own) =
        networks.iter().find(|(name, _)| name.starts_with("a function of the application")).unwrap();
    // The node of the ninth sample comes after the join of the first eight.
    let all = own.with_batch(9).unwrap();
    for context in everywhere() {
        compare(&context, own, 9, 1e-5).unwrap();
        let session = Session::new(&context, &all, SessionOptions::default()).unwrap();
        let names: Vec<String> = session.steps().into_iter().map(|step| step.name).collect();
        let of_samples = (0..9).map(|sample| format!("centred.{sample}"));
        for name in of_samples {
            assert_eq!(names.iter().filter(|found| **found == name).count(), 1, "{name} in {names:?}");
        }
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len(), "{names:?}");
    }
}

/// How large the pictures are, or how long the sound, of files that leave it open.
const OPEN: [(&str, &[(&str, usize)]); 4] = [
    ("ch_PP-OCRv4_det_infer.onnx", &[("x.2", 64), ("x.3", 96)]),
    ("ch_ppocr_mobile_v2.0_cls_infer.onnx", &[("x.2", 48), ("x.3", 192)]),
    ("silero_vad_16k_op15.onnx", &[("input.1", 576), ("state.1", 1)]),
    ("yunet_n_dynamic.onnx", &[("input.2", 64), ("input.3", 96)]),
];

/// Files that take a device whose kernels a CPU runs longer than a test may.
const LONG: [&str; 5] = ["deeplabv3", "style_transfer", "unet", "pose_detection", "vit_tiny"];

/// The network of a file for one sample.
fn read(path: &Path) -> diptych::Result<Graph> {
    let mut options = LoadOptions::default();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let known = OPEN.iter().find(|(own, _)| *own == name);
    for (axis, extent) in known.iter().flat_map(|(_, extents)| extents.iter()) {
        options.dimensions.insert((*axis).to_owned(), *extent);
    }
    let file = ModelFile::load(path, &options)?;
    let open = |input: &diptych::FileInput| {
        let batch = input.extents.as_ref().is_some_and(|extents| extents.first() == Some(&None));
        batch.then(|| (format!("{}.0", input.name), 1))
    };
    let batch = file.inputs().iter().filter_map(open).collect();
    Ok(file.model(&batch)?.graph)
}

fn files(contexts: &[Context], skipped: &[&str]) {
    let root = std::env::var_os("DIPTYCH_SHARED").map_or_else(|| "../shared".into(), PathBuf::from);
    let mut paths = Vec::new();
    for folder in [root.join("models"), root.join("models/onnx")] {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            println!("skipped: {} is not there (set DIPTYCH_SHARED)", folder.display());
            continue;
        };
        paths.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "onnx" || kind == "tflite"));
    paths.sort();
    let mut wrong = Vec::new();
    for path in &paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if skipped.iter().any(|skipped| name.starts_with(skipped)) {
            continue;
        }
        let graph = read(path).unwrap_or_else(|error| panic!("{name}: {error}"));
        for context in contexts {
            let begun = std::time::Instant::now();
            let compared = compare(context, &graph, COUNT, 2e-4);
            println!("{}: {name}: {compared:?} in {:.1?}", context.info().backend, begun.elapsed());
            if let Err(error) = compared {
                wrong.push(format!("{}: {name}: {error}", context.info().backend));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_sample_of_a_file_has_the_results_that_it_has_alone_on_the_cpu() {
    files(&contexts(&[Backend::Cpu]), &["deeplabv3", "style_transfer"]);
}

#[test]
fn each_sample_of_a_file_has_the_results_that_it_has_alone_on_a_gpu() {
    files(&gpus(), &LONG);
}
