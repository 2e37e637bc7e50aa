//! The networks of the examples: the bundled files, and the graphs that the programs make.

use crate::networks::{Effort, Feeds, Found, Network, Sample, Source, given};
use diptych::{
    Activation, Conv2d, Dims, Extras, Graph, HostTensor, LoadOptions, ModelFile, Padding, Pointwise, Shape,
};

/// Waves from -1 to 1 for each input of a file of fixed extents.
pub(crate) fn waves(file: &ModelFile) -> Result<Sample, String> {
    let mut feeds = Feeds::new();
    for input in file.inputs() {
        let extents = input.extents.into_iter().flatten().collect::<Option<Vec<usize>>>();
        let extents = extents.ok_or_else(|| format!("input {:?} has open extents", input.name))?;
        let count = extents.iter().product::<usize>();
        let values: Vec<f64> = (0..count).map(|at| (at as f64 * 0.37).sin()).collect();
        feeds.push((input.name, given(&extents, input.dtype, &values)?));
    }
    Ok(Sample { name: "waves".to_owned(), feeds, goldens: Vec::new() })
}

fn bundled(path: &str) -> Result<Box<ModelFile>, String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    ModelFile::load(path, &LoadOptions::default()).map(Box::new).map_err(|error| error.to_string())
}

/// `posenet`, `camera`, `frames`, `many_pictures`, `soak`: the bundled network on the bundled picture.
fn posenet() -> Found {
    let file = bundled("examples/posenet/data/posenet_figures.tflite")?;
    let picture = image::load_from_memory(include_bytes!("../data/posenet_figures.png"));
    let picture = picture.map_err(|error| error.to_string())?.to_rgb8();
    let extents = [1, picture.height() as usize, picture.width() as usize, 3];
    let values: Vec<f64> = picture.as_raw().iter().map(|&byte| f64::from(byte) / 127.5 - 1.0).collect();
    let [input] = &file.inputs()[..] else { return Err("the network has not one input".to_owned()) };
    let feeds = vec![(input.name.clone(), given(&extents, input.dtype, &values)?)];
    let samples = vec![Sample { name: "figures".to_owned(), feeds, goldens: Vec::new() }];
    let name = "examples/posenet".to_owned();
    Ok(Network { name, source: Source::File(file), samples, effort: Effort::Every })
}

/// `generate`: the bundled decoder, on a beginning and without a past.
fn decoder() -> Found {
    let file = bundled("examples/generate/data/decoder.onnx")?;
    let prompt: Vec<i64> = b"The session ".iter().map(|&byte| i64::from(byte)).collect();
    let text = |error: diptych::Error| error.to_string();
    let row = |values: Vec<i64>| HostTensor::of(Dims::new(&[1, values.len()])?, values);
    let mut feeds = Feeds::new();
    for input in file.inputs() {
        let tensor = match input.name.as_str() {
            "input_ids" => row(prompt.clone()).map_err(text)?,
            "attention_mask" => row(vec![1; prompt.len()]).map_err(text)?,
            "position_ids" => row((0..prompt.len() as i64).collect()).map_err(text)?,
            _ => {
                let axes = input.extents.unwrap_or_default();
                let batch = |(axis, extent): (usize, Option<usize>)| extent.unwrap_or(usize::from(axis == 0));
                let extents: Vec<usize> = axes.into_iter().enumerate().map(batch).collect();
                given(&extents, input.dtype, &[])?
            }
        };
        feeds.push((input.name, tensor));
    }
    let samples = vec![Sample { name: "beginning".to_owned(), feeds, goldens: Vec::new() }];
    let name = "examples/generate".to_owned();
    Ok(Network { name, source: Source::File(file), samples, effort: Effort::Every })
}

/// `embed_wgpu`'s mean filter and `custom_kernel`'s grey of a picture, one behind the other.
fn filters() -> Found {
    let graph = || -> diptych::Result<(Graph, HostTensor)> {
        let shape = Shape::nhwc(1, 64, 64, 3);
        let mut graph = Graph::new();
        let x = graph.input("picture", shape)?;
        let weights = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![0.2126, 0.7152, 0.0722])?;
        let grey = graph.pointwise("grey", x, weights, Extras::default(), Pointwise::default())?;
        let mean = HostTensor::new(Shape::nhwc(1, 3, 3, 1), vec![1.0 / 9.0; 9])?;
        let options = Conv2d { padding: Padding::Same, activation: Activation::Relu, ..Default::default() };
        let y = graph.conv2d("mean", grey, mean, Extras::default(), options)?;
        graph.output(grey)?;
        graph.output(y)?;
        let pixels: Vec<f32> = (0..shape.elements()).map(|i| ((i / 64) as f32 * 0.04).sin()).collect();
        Ok((graph, HostTensor::new(shape, pixels)?))
    };
    let (graph, picture) = graph().map_err(|error| error.to_string())?;
    let feeds = vec![("picture".to_owned(), picture)];
    let samples = vec![Sample { name: "waves".to_owned(), feeds, goldens: Vec::new() }];
    let name = "examples/filters".to_owned();
    Ok(Network { name, source: Source::Graph(Box::new(graph)), samples, effort: Effort::Every })
}

pub(crate) fn all() -> Vec<(String, Found)> {
    let named = [("posenet", posenet()), ("generate", decoder()), ("filters", filters())];
    named.into_iter().map(|(name, found)| (format!("examples/{name}"), found)).collect()
}
