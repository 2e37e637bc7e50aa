//! Products with weights of few bits in networks: what follows joins them, and what a session keeps is as small as they are.

use crate::machine::{everywhere, in_turns, noise};
use diptych::nn::QuantizedGemm;
use diptych::{
    Activation, Backend, Bits, Context, Dim, Dims, Extras, Function, Gemm, Graph, HostTensor, LoadOptions,
    ModelFile, Precision, QuantizedMatrix, Right, Session, SessionOptions, Shape, Softmax, Value,
};

const K: usize = 96;
const N: usize = 40;
const BLOCK: usize = 32;

fn tensor(extents: &[usize], seed: u32) -> HostTensor {
    let dims = Dims::new(extents).expect("small");
    noise(Shape::nhwc(1, 1, 1, dims.elements()), seed).reshaped(dims).expect("as many")
}

/// Integers of so many bits.
fn integers(bits: usize, count: usize) -> Vec<u8> {
    (0..count).map(|index| ((index * 2_654_435_761) >> 7) as u8 & ((1u16 << bits) - 1) as u8).collect()
}

/// The weights with zero points, and what they stand for, `k n`.
fn weights(bits: usize) -> (QuantizedMatrix, HostTensor) {
    let blocks = K / BLOCK;
    let (own, zeros) = (integers(bits, N * K), integers(bits, N * blocks + 5)[5..].to_vec());
    let scales: Vec<f32> = tensor(&[N * blocks], 3).to_f32().iter().map(|scale| scale / 16.0).collect();
    let weight = |(k, n): (usize, usize)| {
        let block = n * blocks + k / BLOCK;
        (f32::from(own[n * K + k]) - f32::from(zeros[block])) * scales[block]
    };
    let floats: Vec<f32> = (0..K).flat_map(|k| (0..N).map(move |n| (k, n))).map(weight).collect();
    let matrix = QuantizedMatrix::pack(bits, [N, K], &own, scales).expect("packed");
    let matrix = matrix.with_zeros(bits, &zeros).expect("as many");
    (matrix, HostTensor::matrix(1, K, N, floats).expect("as many"))
}

/// `relu(x W + b) + residual` written out, with weights of so many bits or what they stand for.
fn network(bits: usize, packed: bool) -> Graph {
    let mut graph = Graph::new();
    graph.dimension("tokens", 3).expect("a dimension");
    let x = graph.input_of("x", &["tokens".into(), Dim::Fixed(K)]).expect("an input");
    let residual = graph.input_of("residual", &["tokens".into(), Dim::Fixed(N)]).expect("an input");
    let (matrix, floats) = weights(bits);
    let y = if packed {
        let options = QuantizedGemm { block: Some(BLOCK), ..QuantizedGemm::new(bits) };
        graph.quantized_gemm("product", x, matrix, Extras::default(), options)
    } else {
        let floats = floats.reshaped(Dims::new(&[K, N]).expect("small")).expect("as many");
        graph.gemm("product", x, Right::Constant(floats), Extras::default(), Gemm::default())
    };
    let bias = graph.constant("bias", tensor(&[N], 5));
    let sum = |graph: &mut Graph, name: &str, a: Value, b: Value| {
        graph.elementwise(name, Function::Add, &[a.into(), b.into()]).expect("a sum")
    };
    let y = sum(&mut graph, "biased", y.expect("a product"), bias);
    let y = graph.elementwise("relu", Function::Relu, &[y.into()]).expect("a function");
    let y = sum(&mut graph, "sum", y, residual);
    graph.output(y).expect("an output");
    graph
}

fn close(found: &HostTensor, wanted: &HostTensor, tolerance: f32, what: &str) {
    assert_eq!(found.dims(), wanted.dims(), "{what}");
    for (index, (found, wanted)) in found.to_f32().iter().zip(wanted.to_f32().iter()).enumerate() {
        assert!((found - wanted).abs() <= tolerance, "{what}, {index}: {found} for {wanted}");
    }
}

#[test]
fn what_follows_a_product_joins_it_and_results_are_those_of_floats() {
    for context in everywhere() {
        for bits in [2, 4, 8] {
            let [packed, floats] = [true, false].map(|packed| network(bits, packed));
            for tokens in [3, 40] {
                let inputs = [tensor(&[tokens, K], 7), tensor(&[tokens, N], 8)];
                let [found, wanted] = [&packed, &floats].map(|graph| {
                    let graph = graph.with_dimensions(&[("tokens", tokens)]).expect("a dimension");
                    let mut session =
                        Session::new(&context, &graph, SessionOptions::default()).expect("a session");
                    let ops: Vec<&str> = session.steps().iter().map(|step| step.op).collect();
                    assert!(matches!(ops[..], ["quantized_gemm"] | ["gemm"]), "{ops:?}");
                    let y = session.run(&[("x", &inputs[0]), ("residual", &inputs[1])]).expect("a run");
                    y[0].clone()
                });
                close(&found, &wanted, 2e-4, &format!("{bits} bits, {tokens} tokens, {}", context.info()));
            }
        }
    }
}

#[test]
fn products_run_with_rows_of_halves() {
    for context in in_turns() {
        for precision in [Precision::F16Storage, Precision::Auto] {
            let inputs = [tensor(&[3, K], 7), tensor(&[3, N], 8)];
            let [found, wanted] = [(true, precision), (false, Precision::F32)].map(|(packed, precision)| {
                let options = SessionOptions { precision, ..SessionOptions::default() };
                let mut session = Session::new(&context, &network(4, packed), options).expect("a session");
                session.run(&[("x", &inputs[0]), ("residual", &inputs[1])]).expect("a run")[0].clone()
            });
            close(&found, &wanted, 2e-2, &format!("{precision}, {}", context.info()));
        }
    }
}

#[test]
fn rows_are_rounded_on_the_cpu_where_that_is_asked_for() {
    let cpu = Context::builder().backend(Backend::Cpu).open().expect("the CPU");
    for bits in [2, 4, 8] {
        let graph = network(bits, true);
        let run = |context: &Context, rounded: bool| {
            let options = SessionOptions::default().with_rounded_activations(rounded);
            let mut session = Session::new(context, &graph, options).expect("a session");
            session.run(&[("x", &tensor(&[3, K], 7)), ("residual", &tensor(&[3, N], 8))]).expect("a run")[0]
                .clone()
        };
        let (exact, rounded) = (run(&cpu, false), run(&cpu, true));
        // A number is off by at most 1/254 of the largest of 32.
        let largest = exact.to_f32().iter().fold(0.0, |most: f32, value| most.max(value.abs()));
        close(&rounded, &exact, 0.02 * largest, &format!("{bits} bits"));
        let differs = exact.to_f32() != rounded.to_f32();
        let multiplies_bytes = cfg!(target_arch = "x86_64") && bits != 2;
        assert_eq!(differs, multiplies_bytes, "{bits} bits");
        // GPUs multiply floats.
        for context in in_turns().into_iter().filter(|context| context.info().backend != Backend::Cpu) {
            assert_eq!(run(&context, true), run(&context, false), "{bits} bits, {}", context.info());
        }
    }
}

/// A product of weights of 1 MiB as floats.
fn large(bits: Option<usize>) -> Graph {
    let (n, k) = (512, 512);
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[1, k]).expect("small")).expect("an input");
    let y = match bits {
        None => {
            let weights = noise(Shape::matrix(1, k, n), 1).reshaped(Dims::new(&[k, n]).expect("small"));
            let weights = Right::Constant(weights.expect("as many"));
            graph.gemm("product", x, weights, Extras::default(), Gemm::default())
        }
        Some(bits) => {
            let scales = vec![0.01; n * k / BLOCK];
            let matrix = QuantizedMatrix::pack(bits, [n, k], &integers(bits, n * k), scales).expect("packed");
            let options = QuantizedGemm {
                block: Some(BLOCK),
                activation: Activation::Relu,
                ..QuantizedGemm::new(bits)
            };
            graph.quantized_gemm("product", x, matrix, Extras::default(), options)
        }
    };
    graph.output(y.expect("a product")).expect("an output");
    graph
}

#[test]
fn constants_take_the_bits_of_their_weights() {
    for context in everywhere() {
        let constants = |bits: Option<usize>| {
            let planned = Session::plan_memory(&context, &large(bits), &SessionOptions::default());
            let session = Session::new(&context, &large(bits), SessionOptions::default()).expect("a session");
            assert_eq!(planned.expect("a plan"), session.memory(), "{}", context.info());
            session.memory().constants
        };
        let scales = 4 * 512 * 512 / BLOCK as u64;
        let floats = constants(None);
        assert!(floats >= 1 << 20, "{floats}");
        for bits in [2, 4, 8] {
            let (found, wanted) = (constants(Some(bits)), 512 * 512 * bits as u64 / 8 + scales);
            assert!(
                (wanted..wanted + 1024).contains(&found),
                "{bits} bits: {found} for {wanted}, {}",
                context.info()
            );
        }
    }
}

/// Attention written out, whose projections have weights of so many bits or what they stand for.
fn attention(packed: bool) -> Graph {
    let (tokens, heads, each) = (9, 5, N / 5);
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[tokens, K]).expect("small")).expect("an input");
    let [q, k, v] = [("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2])].map(|(name, order)| {
        let (matrix, floats) = weights(4);
        let rows = if packed {
            let options = QuantizedGemm { block: Some(BLOCK), ..QuantizedGemm::new(4) };
            graph.quantized_gemm(name, x, matrix, Extras::default(), options)
        } else {
            let floats = floats.reshaped(Dims::new(&[K, N]).expect("small")).expect("as many");
            graph.gemm(name, x, Right::Constant(floats), Extras::default(), Gemm::default())
        };
        let dims = [tokens.into(), heads.into(), each.into()];
        let apart = graph.reshape(&format!("{name} heads"), rows.expect("a product"), &dims).expect("a view");
        graph.transpose(&format!("{name} order"), apart, &order).expect("a transpose")
    });
    let product = |graph: &mut Graph, name: &str, a: Value, b: Value, options: Gemm| {
        graph.gemm(name, a, Right::Value(b), Extras::default(), options).expect("a product")
    };
    let scores = product(&mut graph, "scores", q, k, Gemm { alpha: Bits(0.02), ..Gemm::default() });
    let shares = graph.softmax("shares", scores, Softmax::default()).expect("a softmax");
    let mixed = product(&mut graph, "mixed", shares, v, Gemm::default());
    let rows = graph.transpose("order", mixed, &[1, 0, 2]).expect("a transpose");
    let rows = graph.reshape("rows", rows, &[tokens.into(), N.into()]).expect("a view");
    graph.output(rows).expect("an output");
    graph
}

#[test]
fn attention_is_recognised_behind_packed_projections() {
    for context in in_turns() {
        let x = tensor(&[9, K], 7);
        let [found, wanted] = [true, false].map(|packed| {
            let options = SessionOptions::default();
            let mut session = Session::new(&context, &attention(packed), options).expect("a session");
            let ops: Vec<&str> = session.steps().iter().map(|step| step.op).collect();
            if packed {
                let mut wanted = vec!["quantized_gemm"; 3];
                wanted.push("attention");
                assert_eq!(ops, wanted, "{}", context.info());
            }
            session.run(&[("x", &x)]).expect("a run")[0].clone()
        });
        close(&found, &wanted, 2e-3, &context.info().to_string());
    }
}

/// The steps of a file of `tests/cases` on the CPU, whose results are compared there.
#[cfg(feature = "onnx")]
fn steps(case: &str) -> (Vec<&'static str>, u64) {
    let graph = diptych::onnx::load(format!("tests/cases/{case}.onnx")).expect("a network");
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
    (session.steps().iter().map(|step| step.op).collect(), session.memory().constants)
}

#[cfg(feature = "onnx")]
#[test]
fn matrices_of_files_stay_packed_for_products_alone() {
    // Integers of `k n` with scales and zero points, in bytes.
    for (case, k, n, bits, scales, zeros, bias) in [
        ("dequantized_int8_tensor", 36, 20, 8, 20, 0, 0),
        ("dequantized_int8_axis_gemm", 40, 12, 8, 12, 0, 12),
        ("dequantized_uint8_axis_gemm_transposed", 40, 9, 8, 9, 9, 0),
        ("dequantized_int4_blocks", 64, 24, 4, 24 * 4, 24, 0),
        ("dequantized_uint4_blocks_transposed", 64, 10, 4, 10 * 2, 10, 0),
        ("nbits_4_many_rows", 80, 36, 4, 36 * 3, 36, 0),
    ] {
        let (ops, constants) = steps(case);
        assert_eq!(ops[0], "quantized_gemm", "{case}");
        // Words of a row's weights and zero points are whole.
        let wanted = k * n * bits / 8 + 4 * (scales + zeros + bias);
        assert!((wanted..wanted + 256).contains(&constants), "{case}: {constants} bytes, wanted {wanted}");
    }
    // What is summed up is known while the file is read.
    assert_eq!(steps("dequantized_uint4_axis_and_sum").0, ["quantized_gemm"]);
    // A word would have several scales.
    assert_eq!(steps("dequantized_int4_uneven_blocks").0, ["gemm"]);
}

/// A file that is read for each number of rows anew has its packed weights once.
#[cfg(feature = "onnx")]
#[test]
fn all_extents_of_a_file_share_its_packed_weights() {
    let file = ModelFile::load("tests/cases/dequantized_int4_open.onnx", &LoadOptions::default());
    let file = file.expect("a file");
    for context in everywhere() {
        let mut session = file.session(&context, SessionOptions::default()).expect("a session");
        let x = tensor(&[40, 256], 7);
        let whole = session.run(&[("x", &x)]).expect("a run")[0].to_f32().into_owned();
        let constants = session.memory().constants;
        let wanted = 256 * 128 / 2 + 4 * (256 / 32) * 128;
        assert!((wanted..wanted + 1024).contains(&constants), "{constants} for {wanted}");
        for rows in [3, 20] {
            let values = x.to_f32()[..rows * 256].to_vec();
            let part = HostTensor::new(Dims::new(&[rows, 256]).expect("small"), values).expect("as many");
            let y = session.run(&[("x", &part)]).expect("a run");
            for (found, wanted) in y[0].to_f32().iter().zip(&whole) {
                assert!((found - wanted).abs() < 1e-4, "{found} {wanted}");
            }
        }
        assert_eq!(session.memory().constants, constants, "{}", context.info());
    }
}

#[test]
fn what_does_not_fit_names_the_node_and_leaves_the_graph_as_it_was() {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[2, K + 1]).expect("small")).expect("an input");
    let options = QuantizedGemm { block: Some(BLOCK), ..QuantizedGemm::new(4) };
    let found = graph.quantized_gemm("dense", x, weights(4).0, Extras::default(), options);
    let found = found.expect_err("another number of columns").to_string();
    assert!(found.contains("dense") && found.contains("wanted 13 words"), "{found}");
    assert!(graph.nodes().is_empty() && graph.output(x).is_ok());
    assert!(QuantizedMatrix::pack(3, [1, 8], &[0; 8], vec![1.0]).is_err());
    assert!(QuantizedMatrix::pack(4, [1, 8], &[0; 7], vec![1.0]).is_err());
    assert!(QuantizedMatrix::pack(4, [2, 4], &[0; 8], vec![1.0; 3]).is_err());
    assert!(weights(4).0.with_zeros(4, &[1]).is_err());
}
