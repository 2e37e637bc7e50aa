//! The networks: files with what they are given, and what another engine makes of it where that is known.

use crate::compare::Wanted;
use crate::npy;
use diptych::{DType, Dims, Graph, HostTensor, LoadOptions, ModelFile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is given in one run.
pub(crate) type Feeds = Vec<(String, HostTensor)>;

pub(crate) enum Source {
    File(Box<ModelFile>),
    Graph(Box<Graph>),
}

/// A run of a network.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) feeds: Feeds,
    /// What another engine or float64 computed, for each output; nothing where that is not known.
    pub(crate) goldens: Vec<Wanted>,
}

impl Sample {
    /// The beginning of a message about it.
    pub(crate) fn title(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!("{}, ", self.name) }
    }
}

/// Which backends and precisions a network is run on where not all are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// All.
    Every,
    /// The CPU in f32, and one of the others by the network's place.
    Turns,
    /// None: it takes minutes where the library is not optimised.
    Full,
    /// Halves and `Auto` on one API, by the network's place, against the goldens alone: other tests have the rest.
    Halves,
}

pub(crate) struct Network {
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) samples: Vec<Sample>,
    pub(crate) effort: Effort,
}

/// A network, or why there is none, with its name.
pub(crate) type Found = Result<Network, String>;

/// Numbers as an input of a type: integers of 32 and 64 bits as those of 64.
pub(crate) fn given(shape: &[usize], dtype: DType, values: &[f64]) -> Result<HostTensor, String> {
    let text = |error: diptych::Error| error.to_string();
    let dims = Dims::new(shape).map_err(text)?;
    match dtype {
        DType::I64 | DType::I32 | DType::U32 => {
            HostTensor::of(dims, values.iter().map(|&value| value as i64).collect::<Vec<i64>>())
        }
        _ => HostTensor::new(dims, values.iter().map(|&value| value as f32).collect::<Vec<f32>>()),
    }
    .map_err(text)
}

/// A folder of the shared files, if it is there.
pub(crate) fn shared(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("DIPTYCH_SHARED").map_or_else(|| "../shared".into(), PathBuf::from);
    let folder = root.join(part);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: {} is not there", folder.display());
    None
}

/// The models of a folder, by name.
fn models(folder: &Path) -> BTreeMap<String, PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let models = paths.filter(|path| path.extension().is_some_and(|end| end == "onnx" || end == "tflite"));
    models.map(|path| (path.file_stem().expect("a name").to_string_lossy().into_owned(), path)).collect()
}

fn load(path: &Path, dequantize: bool) -> Result<Box<ModelFile>, String> {
    let options = LoadOptions { dequantize, ..Default::default() };
    ModelFile::load(path, &options).map(Box::new).map_err(|error| error.to_string())
}

/// The tensors of files `BEGIN...END` of a folder, by what stands between.
fn files(folder: &Path, begin: &str, end: &str) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if let Some(middle) = name.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end)) {
            found.insert(middle.to_owned(), path);
        }
    }
    found
}

/// Feeds from files, each for the input of its name, or else of its place.
fn feeds<'a>(file: &ModelFile, named: impl Iterator<Item = (&'a str, &'a PathBuf)>) -> Result<Feeds, String> {
    let declared = file.inputs();
    let mut feeds = Vec::new();
    for (place, (port, path)) in named.enumerate() {
        let own = declared.iter().find(|own| own.name == port).or(declared.get(place));
        let own = own.ok_or_else(|| format!("{}: the model has no such input", path.display()))?;
        let (shape, values) = npy::read(path);
        feeds.push((own.name.clone(), given(&shape, own.dtype, &values)?));
    }
    Ok(feeds)
}

/// The files `BEGIN0END`, `BEGIN1END` and so on.
fn in_order(folder: &Path, begin: &str, end: &str) -> Vec<PathBuf> {
    let paths = (0..).map(|place| folder.join(format!("{begin}{place}{end}")));
    paths.take_while(|path| path.exists()).collect()
}

/// Small models with their inputs (`NAME.in.PORT.npy`) and outputs (`NAME.outI.npy`) beside them.
pub(crate) fn cases(folder: &Path, name: &str, effort: Effort) -> Vec<(String, Found)> {
    let case = |(case, path): (String, PathBuf)| {
        let network = || -> Found {
            let file = load(&path, false)?;
            let inputs = files(folder, &format!("{case}.in"), ".npy");
            let named = inputs.iter().map(|(port, path)| (port.trim_start_matches('.'), path));
            let feeds = feeds(&file, named)?;
            let goldens = in_order(folder, &format!("{case}.out"), ".npy");
            let goldens = goldens.iter().map(|path| Wanted::case(path)).collect();
            let samples = vec![Sample { name: String::new(), feeds, goldens }];
            Ok(Network { name: format!("{name}/{case}"), source: Source::File(file), samples, effort })
        };
        (format!("{name}/{case}"), network())
    };
    models(folder).into_iter().map(case).collect()
}

/// TensorFlow Lite's models of `models/`, with goldens by XNNPACK; those with weights of bytes also with floats.
pub(crate) fn tflite(folder: &Path) -> Vec<(String, Found)> {
    let mut found = Vec::new();
    for (model, path) in models(folder) {
        let golden = folder.join("golden").join(&model);
        let has_bytes = golden.join("output0.dequantised.npy").exists();
        for dequantize in if has_bytes { vec![false, true] } else { vec![false] } {
            let name = format!("models/{model}{}", if dequantize { " with floats" } else { "" });
            let network = || -> Found {
                let file = load(&path, dequantize)?;
                let mut samples = Vec::new();
                for folder in [golden.clone(), golden.join("photo")] {
                    let inputs = in_order(&folder, "input", ".npy");
                    if inputs.is_empty() {
                        continue;
                    }
                    let feeds = feeds(&file, inputs.iter().map(|path| ("", path)))?;
                    let kind = if dequantize { ".dequantised.npy" } else { ".xnnpack.npy" };
                    let goldens = in_order(&folder, "output", kind);
                    let goldens = goldens.iter().map(|path| Wanted::golden(path)).collect();
                    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
                    samples.push(Sample { name: name.unwrap_or_default(), feeds, goldens });
                }
                let effort = match model.as_str() {
                    "style_transfer_f16_384" => Effort::Full,
                    "deeplabv3_257_mv_gpu"
                    | "face_detection_short_range"
                    | "hand_landmark_lite"
                    | "pose_detection"
                    | "selfie_segmentation"
                    | "unet_deconv"
                    | "vit_tiny_4blk" => Effort::Turns,
                    _ => Effort::Every,
                };
                Ok(Network { name: name.clone(), source: Source::File(file), samples, effort })
            };
            found.push((name.clone(), network()));
        }
    }
    found
}

/// The models of `models/onnx/`, with goldens by ONNX Runtime.
pub(crate) fn onnx(folder: &Path) -> Vec<(String, Found)> {
    let model = |(model, path): (String, PathBuf)| {
        let name = format!("models/onnx/{model}");
        let network = || -> Found {
            let file = load(&path, false)?;
            let golden = folder.join("golden").join(&model);
            let inputs = files(&golden, "", ".input.npy");
            let named = inputs.iter().filter_map(|(stem, path)| Some((stem.split_once('.')?.1, path)));
            let feeds = feeds(&file, named)?;
            let outputs = files(&golden, "", ".output.npy");
            let place = |stem: &str| stem.split_once('.')?.0.parse::<usize>().ok();
            let ordered: BTreeMap<usize, &PathBuf> =
                outputs.iter().filter_map(|(stem, path)| Some((place(stem)?, path))).collect();
            let goldens = ordered.into_values().map(|path| Wanted::golden(path)).collect();
            let samples = vec![Sample { name: String::new(), feeds, goldens }];
            let long =
                ["ch_PP-OCRv4_det_infer", "ch_ppocr_mobile_v2.0_cls_infer", "version-RFB-320_simplified"];
            let effort = if long.contains(&model.as_str()) { Effort::Turns } else { Effort::Every };
            Ok(Network { name: name.clone(), source: Source::File(file), samples, effort })
        };
        (name.clone(), network())
    };
    models(folder).into_iter().map(model).collect()
}

/// The PoseNets of `posenet/`, with goldens in float64. That of 513 x 513 has none, and gets what the smaller ones do not.
pub(crate) fn posenets(folder: &Path) -> Vec<(String, Found)> {
    let model = |(model, path): (String, PathBuf)| {
        let name = format!("posenet/{model}");
        let network = || -> Found {
            let file = load(&path, false)?;
            let golden = folder.join("golden").join(&model).join("test_couple");
            let mut samples = Vec::new();
            if golden.is_dir() {
                let feeds = feeds(&file, [("", &golden.join("input.npy"))].into_iter())?;
                let parts = ["heatmaps", "offsets", "fwd", "bwd"];
                let goldens =
                    parts.map(|part| Wanted::golden(&golden.join(format!("{part}.f64.npy")))).into();
                samples.push(Sample { name: "test_couple".to_owned(), feeds, goldens });
            } else {
                samples.push(crate::examples::waves(&file)?);
            }
            let effort = if model.contains("513") { Effort::Full } else { Effort::Turns };
            Ok(Network { name: name.clone(), source: Source::File(file), samples, effort })
        };
        (name.clone(), network())
    };
    models(folder).into_iter().map(model).collect()
}
