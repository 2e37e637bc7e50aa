//! The programs in `examples/` of `ort`'s repository, with their windows, tokenizers and downloads left out. What they do
//! with `ort` is as it is there; the networks are small ones with the same inputs and outputs.

use crate::onnx::{Extent::Fixed, Extent::Open, F32, File, I64};
use crate::{environment, session};
use ndarray::{Array, Axis, Ix2, s};
use ort::inputs;
use ort::session::builder::GraphOptimizationLevel;
use ort::session::{RunOptions, Session, SessionOutputs};
use ort::util::ArrayExt;
use ort::value::TensorRef;
use std::ops::Mul;

/// Words of four numbers each, and the scores of the next word: that which follows in a circle.
fn language_model() -> Vec<u8> {
    let one_hot: Vec<f32> = (0..16).map(|at| if at % 5 == 0 { 1.0 } else { 0.0 }).collect();
    let next: Vec<f32> = (0..16).map(|at| if (at / 4 + 1) % 4 == at % 4 { 1.0 } else { 0.0 }).collect();
    let open = [Open("batch"), Fixed(1), Open("tokens")];
    File::new()
        .input("input1", I64, &open)
        .floats("words", &[4, 4], &one_hot)
        .floats("next", &[4, 4], &next)
        .node("Gather", &["words", "input1"], &["embedded"])
        .node("MatMul", &["embedded", "next"], &["output1"])
        .output("output1", F32, &[Open("batch"), Fixed(1), Open("tokens"), Fixed(4)])
        .build()
}

#[test]
fn model_info() -> ort::Result<()> {
    let file = File::new()
        .about()
        .input("images", F32, &[Open("batch"), Fixed(3), Fixed(2)])
        .node("Relu", &["images"], &["positive"])
        .output("positive", F32, &[Open("batch"), Fixed(3), Fixed(2)]);
    let session = session(file);

    let mut said = Vec::new();
    let meta = session.metadata()?;
    if let Some(x) = meta.name() {
        said.push(format!("Name: {x}"));
    }
    if let Some(x) = meta.description() {
        said.push(format!("Description: {x}"));
    }
    if let Some(x) = meta.producer() {
        said.push(format!("Produced by {x}"));
    }
    if let Ok(custom_keys) = meta.custom_keys()
        && !custom_keys.is_empty()
    {
        for key in custom_keys {
            if let Some(value) = meta.custom(&key) {
                said.push(format!("{key}: {value}"));
            }
        }
    };
    for (i, input) in session.inputs().iter().enumerate() {
        said.push(format!("{i} {}: {}", input.name(), input.dtype()));
    }
    for (i, output) in session.outputs().iter().enumerate() {
        said.push(format!("{i} {}: {}", output.name(), output.dtype()));
    }
    assert_eq!(
        said,
        [
            "Name: small",
            "Description: adds numbers",
            "Produced by a test",
            "author: nobody",
            "labels: cat, dog",
            "0 images: Tensor<f32>(batch, 3, 2)",
            "0 positive: Tensor<f32>(batch, 3, 2)",
        ]
    );
    assert_eq!((meta.domain().as_deref(), meta.version()), (Some("ai.example"), Some(7)));
    assert_eq!(meta.custom("license"), None);
    Ok(())
}

#[test]
fn gpt2() -> ort::Result<()> {
    let mut session = Session::builder(environment())?
        .with_optimization_level(GraphOptimizationLevel::Level1)?
        .with_intra_threads(1)?
        .with_config_entry("session.diptych.backend", "cpu")?
        .commit_from_memory(&language_model())?;
    let mut tokens = vec![0i64, 1];
    for _ in 0..5 {
        let input = TensorRef::from_array_view((vec![1, 1, tokens.len() as i64], tokens.as_slice()))?;
        let outputs = session.run(inputs![input])?;
        let (dim, mut probabilities) = outputs["output1"].try_extract_tensor()?;
        let (seq_len, vocab_size) = (dim[2] as usize, dim[3] as usize);
        probabilities = &probabilities[(seq_len - 1) * vocab_size..];
        let mut probabilities: Vec<(usize, f32)> = probabilities.iter().copied().enumerate().collect();
        probabilities.sort_unstable_by(|a, b| b.1.partial_cmp(&a.1).unwrap_or(std::cmp::Ordering::Less));
        tokens.push(probabilities[0].0 as i64);
    }
    assert_eq!(tokens, [0, 1, 2, 3, 0, 1, 2]);
    Ok(())
}

#[test]
fn async_gpt2_api() -> ort::Result<()> {
    let mut session = Session::builder(environment())?
        .with_intra_threads(4)?
        .with_config_entry("session.diptych.backend", "cpu")?
        .commit_from_memory(&language_model())?;
    let mut tokens = vec![3i64];
    pollster::block_on(async {
        for _ in 0..3 {
            let shape = vec![1, 1, tokens.len() as i64];
            let input = ort::value::Tensor::from_array((shape, tokens.clone()))?;
            let options = RunOptions::new()?;
            let outputs = session.run_async(inputs![input], &options)?.await?;
            let (dim, probabilities) = outputs["output1"].try_extract_tensor::<f32>()?;
            let (seq_len, vocab_size) = (dim[2] as usize, dim[3] as usize);
            let last = &probabilities[(seq_len - 1) * vocab_size..];
            let token = last.iter().position(|&score| score == 1.0).expect("a word");
            tokens.push(token as i64);
        }
        assert_eq!(tokens, [3, 0, 1, 2]);
        // What goes wrong on the other thread comes back too.
        let wrong = ort::value::Tensor::from_array(([1usize, 1, 1], vec![9i64]))?;
        let options = RunOptions::new()?;
        options.terminate()?;
        let error = session.run_async(inputs![wrong], &options)?.await.map(drop).expect_err("ended");
        assert_eq!(error.message(), "the application terminated runs with these options");
        Ok(())
    })
}

#[test]
fn semantic_similarity() -> ort::Result<()> {
    // The mean of the words of a sentence, as far as the mask says.
    let words: Vec<f32> = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]].concat();
    let open = [Open("batch"), Open("sequence")];
    let file = File::new()
        .input("input_ids", I64, &open)
        .input("attention_mask", I64, &open)
        .floats("words", &[3, 2], &words)
        .integers("axes", &[1], &[1])
        .integers("last", &[1], &[2])
        .node("Gather", &["words", "input_ids"], &["token_embeddings"])
        .node_with("Cast", &["attention_mask"], &["mask"], &[("to", F32)])
        .node("Unsqueeze", &["mask", "last"], &["column"])
        .node("Mul", &["token_embeddings", "column"], &["masked"])
        .node_with("ReduceSum", &["masked", "axes"], &["sum"], &[("keepdims", 0)])
        .node_with("ReduceSum", &["mask", "axes"], &["count"], &[("keepdims", 1)])
        .node("Div", &["sum", "count"], &["sentence_embedding"])
        .output("token_embeddings", F32, &[Open("batch"), Open("sequence"), Fixed(2)])
        .output("sentence_embedding", F32, &[Open("batch"), Fixed(2)]);
    let mut session = session(file);

    let inputs = ["one", "another", "a third"];
    let ids = vec![0i64, 0, 1, 1, 2, 0];
    let mask = vec![1i64, 1, 1, 0, 1, 0];
    let a_ids = TensorRef::from_array_view(([inputs.len(), 2], &*ids))?;
    let a_mask = TensorRef::from_array_view(([inputs.len(), 2], &*mask))?;
    let outputs = session.run(ort::inputs![a_ids, a_mask])?;
    let embeddings = outputs[1].try_extract_array::<f32>()?.into_dimensionality::<Ix2>().unwrap();

    let query = embeddings.index_axis(Axis(0), 0);
    let mut similar = Vec::new();
    for embeddings in embeddings.axis_iter(Axis(0)).skip(1) {
        similar.push(query.iter().zip(embeddings.iter()).map(|(a, b)| a * b).sum::<f32>());
    }
    assert_eq!(similar, [0.0, 0.6]);
    Ok(())
}

#[test]
fn yolov8() -> ort::Result<()> {
    // Means over squares of 32 x 32 stand for the network: three boxes of two classes.
    let scale: Vec<f32> = [10.0, 10.0, 4.0, 4.0, 0.9, 0.1].repeat(3);
    let file = File::new()
        .input("images", F32, &[Fixed(1), Fixed(3), Fixed(64), Fixed(64)])
        .floats("boxes", &[3, 6], &scale)
        .integers("shape", &[3], &[1, 3, 1])
        .integers("order", &[1], &[0])
        .node("GlobalAveragePool", &["images"], &["means"])
        .node("Reshape", &["means", "shape"], &["column"])
        .node("Mul", &["column", "boxes"], &["rows"])
        .node("Transpose", &["rows"], &["turned"])
        .integers("back", &[3], &[1, 6, 3])
        .node("Reshape", &["turned", "back"], &["output0"])
        .output("output0", F32, &[Fixed(1), Fixed(6), Fixed(3)]);
    let mut model = session(file);

    let mut input = Array::zeros((1, 3, 64, 64));
    for (channel, value) in [1.0f32, 0.2, 1.0].into_iter().enumerate() {
        input.slice_mut(s![0, channel, .., ..]).fill(value);
    }
    let outputs: SessionOutputs = model.run(inputs!["images" => TensorRef::from_array_view(&input)?])?;
    let output = outputs["output0"].try_extract_array::<f32>()?.t().into_owned();

    let mut boxes = Vec::new();
    let output = output.slice(s![.., .., 0]);
    for row in output.axis_iter(Axis(0)) {
        let row: Vec<_> = row.iter().copied().collect();
        let (class_id, prob) = row
            .iter()
            .skip(4)
            .enumerate()
            .map(|(index, value)| (index, *value))
            .reduce(|accum, row| if row.1 > accum.1 { row } else { accum })
            .unwrap();
        if prob < 0.5 {
            continue;
        }
        boxes.push((class_id, row[0], row[3]));
    }
    assert_eq!(boxes, [(0, 10.0, 4.0), (0, 10.0, 4.0)]);
    Ok(())
}

#[test]
fn modnet() -> ort::Result<()> {
    let file = File::new()
        .input("input", F32, &[Open("batch_size"), Fixed(3), Open("height"), Open("width")])
        .floats("grey", &[1, 3, 1, 1], &[0.25, 0.5, 0.25])
        .node("Conv", &["input", "grey"], &["sum"])
        .node("Sigmoid", &["sum"], &["output"])
        .output("output", F32, &[Open("batch_size"), Fixed(1), Open("height"), Open("width")]);
    let mut session = session(file);

    let input = Array::from_shape_fn((1, 3, 8, 8), |(_, _, y, _)| if y < 4 { 20f32 } else { -20.0 });
    let outputs = session.run(inputs!["input" => TensorRef::from_array_view(input.view())?])?;
    let output = outputs["output"].try_extract_array::<f32>()?;
    let output = output.mul(255.0).map(|x| *x as u8);
    let (output, _) = output.into_raw_vec_and_offset();
    assert_eq!((output[0], output[63], output.len()), (255, 0, 64));
    Ok(())
}

/// The test of `ort`'s other backends.
#[test]
fn probabilities_by_ndarray() -> ort::Result<()> {
    let file = File::new()
        .input("input", F32, &[Fixed(1), Fixed(4)])
        .floats("weights", &[4, 3], &[1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0])
        .node("MatMul", &["input", "weights"], &["logits"])
        .output("logits", F32, &[Fixed(1), Fixed(3)]);
    let mut session = session(file);
    let array = Array::from_shape_fn((1, 4), |(_, at)| at as f32);
    let outputs = session.run(inputs![TensorRef::from_array_view(&array)?])?;
    let mut probabilities: Vec<(usize, f32)> =
        outputs[0].try_extract_array()?.softmax(Axis(1)).iter().copied().enumerate().collect();
    probabilities.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
    assert_eq!(probabilities[0].0, 2);
    Ok(())
}
