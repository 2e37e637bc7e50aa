//! Files whose networks are made for the extents of each run.

use super::Model;
use super::head::{Head, WithHead};
use crate::context::Context;
use crate::device::Wait;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Graph, Sampling, Value};
use crate::nn::AxisRange;
use crate::options::SessionOptions;
use crate::parallel;
use crate::session::{BuildProgress, Session};
use crate::source::{GraphSource, OpenAxis, OpenInput, Port};
use diptych_import::model::{LoadOptions, ModelInfo, Pixels, Read, is_onnx, parse};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An input of a [`ModelFile`]: what is known of it before a run. Unlike a [`Port`] it may have extents, or a rank, that are
/// not known yet, and a run may do without it where it is optional.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileInput {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents, `None` for an axis whose extent each run decides. `None` as a whole if the file does not say the rank.
    pub extents: Option<Vec<Option<usize>>>,
    /// The names of the axes that each run decides.
    pub open: Vec<OpenAxis>,
    /// Whether a run may do without it, because the file has a value for it.
    pub is_optional: bool,
}

/// A TensorFlow Lite or an ONNX file. Each run of its session decides the extents that the file leaves open.
///
/// [`ModelFile::session`] makes the session. The first run with certain extents makes a plan for them: the session reads
/// the network for these extents, chooses kernels and compiles new ones. It keeps the plans of the last extents
/// ([`SessionOptions::plans`]), and a run with such extents makes no new plan. All plans share one copy of the weights.
///
/// Some operators need the values of an input to know the extents of their results: the sizes of a resize, the bounds of a
/// slice, the shape of a reshape. The session makes a plan for these values as well. In an ONNX file the extents of a result
/// may depend on computed values (`NonZero`, `NonMaxSuppression`, a loop that collects results). The session then runs
/// the nodes before that operator, computes the operator on the CPU, and makes a plan of the other nodes for the extents
/// that it found.
///
/// ```
/// use diptych::{Backend, Context, LoadOptions, ModelFile, SessionOptions};
///
/// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
/// for input in file.inputs() {
///     println!("{} {:?}", input.name, input.extents);
/// }
/// let session = file.session(&Context::new(Backend::Cpu)?, SessionOptions::default())?;
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ModelFile {
    source: Arc<dyn GraphSource>,
    info: ModelInfo,
    contents: Arc<Contents>,
    /// The heads behind its outputs.
    heads: Vec<Head>,
}

/// The file, and the options it was read with.
#[derive(Debug)]
struct Contents {
    name: String,
    bytes: Arc<[u8]>,
    path: Option<PathBuf>,
    options: LoadOptions,
    is_onnx: bool,
}

impl Contents {
    fn source(&self) -> Result<(Arc<dyn GraphSource>, ModelInfo)> {
        let _limited = parallel::Limited::to(self.options.threads);
        let (name, bytes, options) = (&self.name, Arc::clone(&self.bytes), &self.options);
        #[cfg(feature = "onnx")]
        if self.is_onnx {
            let path = self.path.as_deref();
            let (source, info) =
                diptych_import::model::onnx::OnnxSource::new(name, bytes, path, options, Session::prepare)?;
            return Ok((Arc::new(source), info));
        }
        #[cfg(feature = "tflite")]
        {
            let (source, info) =
                diptych_import::model::tflite::TfliteSource::new(name, bytes, options, Session::prepare)?;
            Ok((Arc::new(source), info))
        }
        #[cfg(not(feature = "tflite"))]
        {
            let _ = (bytes, options);
            Err(diptych_import::model::unknown_format(name))
        }
    }
}

impl ModelFile {
    /// Reads a file; its contents say which format it has. Weights that an ONNX file has in other files are read from its
    /// folder when a session first needs them.
    ///
    /// What `options` give is fixed: extents in [`LoadOptions::dimensions`], inputs in [`LoadOptions::values`].
    ///
    /// ```
    /// use diptych::{LoadOptions, ModelFile};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// assert_eq!(file.inputs().len(), 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the file cannot be read, and those of [`ModelFile::from_bytes`], which name the file.
    pub fn load(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Self> {
        let path = path.as_ref();
        let Read { name, bytes, named_onnx } = Read::file(path)?;
        ModelFile::of(&name, bytes.into(), Some(path), named_onnx, options)
    }

    /// Reads a model of the Hugging Face hub by its name, as [`Model::from_hub`] does.
    ///
    /// ```no_run
    /// use diptych::{LoadOptions, ModelFile};
    ///
    /// let file = ModelFile::from_hub("onnx-community/silero-vad:onnx/model.onnx", &LoadOptions::default())?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the file cannot be had, and those of [`ModelFile::load`].
    #[cfg(all(feature = "hub", not(target_family = "wasm")))]
    pub fn from_hub(name: &str, options: &LoadOptions) -> Result<Self> {
        ModelFile::load(super::fetched(name)?, options)
    }

    /// Reads a file that is in memory already.
    ///
    /// ```
    /// use diptych::{LoadOptions, ModelFile};
    ///
    /// let bytes = std::fs::read("examples/posenet/data/posenet_figures.tflite")?;
    /// let file = ModelFile::from_bytes(bytes, &LoadOptions::default())?;
    /// assert!(!file.inputs()[0].is_optional);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Model`] if the bytes are not a valid file, it needs operators that are not supported, or `options` name
    /// what it does not have.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>, options: &LoadOptions) -> Result<Self> {
        ModelFile::of("model", bytes.into(), None, false, options)
    }

    fn of(
        name: &str,
        bytes: Arc<[u8]>,
        path: Option<&Path>,
        named_onnx: bool,
        options: &LoadOptions,
    ) -> Result<Self> {
        let is_onnx = cfg!(feature = "onnx") && (named_onnx || is_onnx(&bytes));
        let (name, path, options) = (name.to_owned(), path.map(Path::to_owned), options.clone());
        let contents = Contents { name, bytes, path, options, is_onnx };
        let (source, info) = contents.source()?;
        Ok(ModelFile { source, info, contents: Arc::new(contents), heads: Vec::new() })
    }

    /// The file's bytes, and what it was read with.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn contents(&self) -> (&[u8], &LoadOptions) {
        (&self.contents.bytes, &self.contents.options)
    }

    /// The network for certain extents, as [`Model::load`] reads it: for what wants a graph, such as
    /// [`Batch`](crate::Batch) and the [`Tuner`](crate::Tuner). `dimensions` are extents by the names of
    /// [`FileInput::open`], beside those of the file's own options.
    ///
    /// ```
    /// use diptych::{LoadOptions, ModelFile};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// assert!(file.model(&[].into())?.graph.flops()? > 0);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Model::load`].
    pub fn model(&self, dimensions: &BTreeMap<String, usize>) -> Result<Model> {
        let Contents { name, bytes, path, options, is_onnx } = &*self.contents;
        let mut options = options.clone();
        options.dimensions.extend(dimensions.iter().map(|(name, &extent)| (name.clone(), extent)));
        let loaded = parse(name, bytes, path.as_deref(), *is_onnx, &options, Session::prepare)?;
        Model::with_heads(loaded, &self.heads)
    }

    /// Describes what is added behind its outputs, which its bytes do not have.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn describe_heads(&self, out: &mut dyn std::fmt::Write) -> std::fmt::Result {
        self.heads.iter().try_for_each(|head| head.describe(out))
    }

    /// The inputs, in the order of the file.
    ///
    /// ```
    /// use diptych::{LoadOptions, ModelFile};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// assert_eq!(file.inputs()[0].extents.as_ref().map(Vec::len), Some(4));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn inputs(&self) -> Vec<FileInput> {
        let input = |own: &OpenInput| FileInput {
            name: own.name.clone(),
            dtype: own.dtype,
            extents: own.extents.clone(),
            open: own.open.clone(),
            is_optional: own.is_optional,
        };
        self.source.inputs().iter().map(input).collect()
    }

    /// The description, labels and normalisation, as far as the file has them.
    ///
    /// ```
    /// use diptych::{LoadOptions, ModelFile};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// println!("{}", file.info().description);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// How the file says that pictures' bytes become the numbers of its inputs, by the inputs' names: of a TensorFlow Lite
    /// file whose metadata have a normalisation. One that cannot be, with a deviation of 0 or a number that is not finite, counts
    /// as none.
    ///
    /// ```
    /// use diptych::{LoadOptions, ModelFile};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// assert!(file.pixels().is_empty()); // it does not say so
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn pixels(&self) -> BTreeMap<String, Pixels> {
        let of_input = |input: &OpenInput| {
            let info = self.info.inputs.get(input.place)?;
            let pixels = Pixels::normalized(&info.normalisation).ok()?;
            Some((input.name.clone(), pixels))
        };
        self.source.inputs().iter().filter_map(of_input).collect()
    }

    /// The outputs, in the order of the file. An extent that is not known before a run is 1, and listed as open.
    ///
    /// ```
    /// use diptych::{LoadOptions, ModelFile};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// assert!(!file.outputs().is_empty());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn outputs(&self) -> Vec<Port> {
        self.source.outputs()
    }

    /// The file with a head: nodes behind one of its outputs, whose results replace that output. Each result has the name of the node
    /// that writes it. Only the results are read back from the device, for example one number in the place of thousands.
    ///
    /// `head` is called for each graph that is made of the file, and for trial graphs here. It must add the same nodes to each, and may
    /// ask the graph for the dimensions of its value.
    ///
    /// ```
    /// use diptych::{Backend, Context, LoadOptions, ModelFile, SessionOptions};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// let output = file.outputs()[0].name.clone();
    /// let file = file.with_head(&output, |graph, heatmaps| {
    ///     let best = graph.reduce("best", heatmaps, diptych::nn::Reduction::Max, &[1, 2], false)?;
    ///     Ok(vec![best])
    /// })?;
    /// assert_eq!(file.outputs()[0].name, "best");
    /// let session = file.session(&Context::new(Backend::Cpu)?, SessionOptions::default())?;
    /// assert_eq!(session.outputs()[0].dims.extents(), [1, 17]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such output, `head` fails or gives nothing, two outputs have one name then, or the results' names and ranks
    /// depend on extents.
    pub fn with_head<F>(&self, output: &str, head: F) -> Result<ModelFile>
    where
        F: Fn(&mut Graph, Value) -> Result<Vec<Value>> + Send + Sync + 'static,
    {
        let head = Head::new(output, Arc::new(head));
        let source = Arc::new(WithHead::new(Arc::clone(&self.source), head.clone())?);
        let heads = self.heads.iter().cloned().chain([head]).collect();
        Ok(ModelFile { source, heads, info: self.info.clone(), contents: Arc::clone(&self.contents) })
    }

    /// A decoder whose output `token` replaces its output `scores`, which are `batch places classes`. For each sequence of the batch
    /// [`Graph::sample`] draws a class by the scores of the last place. `token` is an integer for each sequence, `batch 1`. The scores of
    /// other places are not computed.
    ///
    /// ```
    /// use diptych::Sampling;
    /// use diptych::{Backend, Caches, Context, Dims, HostTensor, LoadOptions, ModelFile, SessionOptions};
    ///
    /// let file = ModelFile::load("examples/generate/data/decoder.onnx", &LoadOptions::default())?;
    /// let file = file.with_next_token("logits", "token", Sampling::new(0.7).with_top_k(40))?;
    /// let options = SessionOptions { seed: 1, ..SessionOptions::default() };
    /// let mut session = file.session(&Context::new(Backend::Cpu)?, options)?;
    /// session.cache(&Caches::new(&file.cache_pairs(), 64).with_fed(&[("token", "input_ids")]))?;
    ///
    /// let row = |values: Vec<i64>| HostTensor::of(Dims::new(&[1, values.len()])?, values);
    /// let mut text = b"The session ".to_vec();
    /// for run in 0..20 {
    ///     let ids = row(text.iter().map(|&byte| byte.into()).collect())?;
    ///     let mask = row(vec![1; text.len()])?;
    ///     let places = row((session.cached()..text.len()).map(|place| place as i64).collect())?;
    ///     let mut inputs = vec![("attention_mask", &mask), ("position_ids", &places)];
    ///     if run == 0 {
    ///         inputs.push(("input_ids", &ids)); // the prompt; later runs find their token on the device
    ///     }
    ///     text.push(session.run(&inputs)?[0].to_f32()[0] as u8);
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`ModelFile::with_head`] and [`Graph::sample`], or if the scores have fewer than two axes.
    pub fn with_next_token(&self, scores: &str, token: &str, sampling: Sampling) -> Result<ModelFile> {
        let token = token.to_owned();
        self.with_head(scores, move |graph, scores| {
            let dims = graph.dims(scores)?;
            let Some(places) = dims.rank().checked_sub(2) else {
                return Err(Error::shape("sample", format!("scores of {dims}"), "places and classes"));
            };
            let mut ranges = vec![AxisRange::ALL; dims.rank()];
            ranges[places] = AxisRange { begin: Some(-1), end: None, step: 1 };
            let last = graph.strided_slice(&format!("{token}/last"), scores, &ranges)?;
            let mut extents = dims.extents().to_vec();
            extents.remove(places);
            let extents: Vec<_> = extents.into_iter().map(Into::into).collect();
            let last = graph.reshape(&format!("{token}/scores"), last, &extents)?;
            Ok(vec![graph.sample(&token, last, sampling)?])
        })
    }

    /// The outputs that are inputs of the next run, with these inputs, as their names say: `present.0.key` and
    /// `past_key_values.0.key`, `present_0` and `past_0`. For [`Caches::new`](crate::Caches::new) and [`Session::carry`].
    ///
    /// ```
    /// use diptych::{LoadOptions, ModelFile};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// assert!(file.cache_pairs().is_empty()); // no decoder
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn cache_pairs(&self) -> Vec<(String, String)> {
        let outputs = self.source.outputs();
        let pair = |input: &OpenInput| {
            let rest = rest_of(&input.name, &["past_key_values", "past"])?;
            let output = outputs
                .iter()
                .find(|port| rest_of(&port.name, &["present_key_values", "present"]) == Some(rest))?;
            Some((output.name.clone(), input.name.clone()))
        };
        self.source.inputs().iter().filter_map(pair).collect()
    }

    /// A session whose runs take inputs of any extents that fit the file. Where the file leaves nothing open it is ready
    /// for its first run; else that run makes it so.
    ///
    /// ```
    /// use diptych::{Backend, Context, HostTensor, LoadOptions, ModelFile, SessionOptions};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// let mut session = file.session(&Context::new(Backend::Cpu)?, SessionOptions::default())?;
    /// let dims = session.inputs()[0].dims;
    /// let picture = HostTensor::new(dims, vec![0.0; dims.elements()])?;
    /// let name = session.inputs()[0].name.clone();
    /// let outputs = session.run(&[(&name, &picture)])?;
    /// assert_eq!(outputs.len(), file.outputs().len());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the network cannot run on the context's device, or an operator's options or shapes are not supported.
    #[cfg(not(target_family = "wasm"))]
    pub fn session(&self, context: &Context, options: SessionOptions) -> Result<Session> {
        let source = Arc::clone(&self.source);
        crate::task::block_on(Session::of_source(context, source, options, Wait::Blocks, &mut |_| {}))
    }

    /// [`ModelFile::session`], awaited.
    ///
    /// ```
    /// use diptych::{Backend, Context, LoadOptions, ModelFile, SessionOptions};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// let context = Context::new(Backend::Cpu)?;
    /// let session = pollster::block_on(file.session_async(&context, SessionOptions::default()))?;
    /// assert_eq!(session.inputs().len(), 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`ModelFile::session`].
    pub async fn session_async(&self, context: &Context, options: SessionOptions) -> Result<Session> {
        self.session_with_progress_async(context, options, &mut |_| {}).await
    }

    /// [`ModelFile::session_async`], and calls `progress` as [`Session::new_with_progress_async`] does, where the session is
    /// made ready for its first run.
    ///
    /// ```
    /// use diptych::{Backend, Context, LoadOptions, ModelFile, SessionOptions};
    ///
    /// let file = ModelFile::load("examples/posenet/data/posenet_figures.tflite", &LoadOptions::default())?;
    /// let context = Context::new(Backend::Cpu)?;
    /// let mut tell = |now: diptych::BuildProgress| println!("{} of {} kernels", now.compiled, now.kernels);
    /// let built = file.session_with_progress_async(&context, SessionOptions::default(), &mut tell);
    /// assert_eq!(pollster::block_on(built)?.inputs().len(), 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`ModelFile::session`].
    pub async fn session_with_progress_async(
        &self,
        context: &Context,
        options: SessionOptions,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<Session> {
        Session::of_source(context, Arc::clone(&self.source), options, Wait::Awaits, progress).await
    }

    /// The former name of [`ModelFile::session_async`].
    ///
    /// # Errors
    /// Those of [`ModelFile::session`].
    #[deprecated(since = "0.2.0", note = "renamed to `ModelFile::session_async`")]
    pub async fn build_session(&self, context: &Context, options: SessionOptions) -> Result<Session> {
        self.session_async(context, options).await
    }

    /// The former name of [`ModelFile::session_with_progress_async`].
    ///
    /// # Errors
    /// Those of [`ModelFile::session`].
    #[deprecated(since = "0.2.0", note = "renamed to `ModelFile::session_with_progress_async`")]
    pub async fn build_session_with_progress(
        &self,
        context: &Context,
        options: SessionOptions,
        progress: &mut impl FnMut(BuildProgress),
    ) -> Result<Session> {
        self.session_with_progress_async(context, options, progress).await
    }
}

/// What a name has behind the first of these words that it begins with.
fn rest_of<'n>(name: &'n str, words: &[&str]) -> Option<&'n str> {
    let rest = words.iter().find_map(|word| name.strip_prefix(word))?;
    Some(rest.trim_start_matches(['.', '_']))
}
