//! Sessions: a model on a device.

use crate::environment::{Environment, Logging};
use crate::identity;
use crate::info::Info;
use crate::memory::{host, not_aliased};
use crate::options::SessionOptions;
use crate::pointers::{hand_out, own, put, put_text};
use crate::status::{Failure, calls, unsupported, wrong};
use diptych::{
    Caches, Context, Database, DeviceSelector, Error, FileInput, LoadOptions, ModelFile, ModelInfo, Port,
    Tuning,
};
use diptych_pointers::{out_slice, slice, texts};
use ort_sys::{
    OrtAllocator, OrtEnv, OrtLoggingLevel, OrtMemoryInfo, OrtPrepackedWeightsContainer, OrtSession,
    OrtSessionOptions, OrtTypeInfo, os_char,
};
use std::ffi::{c_char, c_void};
use std::io::Read;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// An input or an output.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    info: Info,
}

/// What computes the outputs.
#[derive(Debug)]
pub(crate) enum Engine {
    /// A network, on a device. Threads take turns.
    Network {
        session: Box<Mutex<diptych::Session>>,
        device: DeviceSelector,
        /// Whether one run leaves keys and values to the next.
        keeps: bool,
    },
    /// The one output is the one input.
    Copy,
}

#[derive(Debug)]
pub(crate) struct Session {
    /// The inputs that each run wants.
    pub(crate) inputs: Vec<Place>,
    /// The inputs for which the file has values, which a run may replace.
    pub(crate) initializers: Vec<Place>,
    pub(crate) outputs: Vec<Place>,
    pub(crate) engine: Engine,
    pub(crate) about: ModelInfo,
    pub(crate) environment: Arc<Environment>,
    logging: Logging,
    /// Whether a message said that numbers are rounded.
    has_told: AtomicBool,
}

/// What is said of an input that is given doubles.
fn rounding(name: &str) -> String {
    format!("input {name:?}: found elements of double, which are rounded to float")
}

fn input(input: &FileInput) -> Result<Place, Failure> {
    let info = Info::of_port(&input.name, input.dtype, input.extents.clone(), &input.open)?;
    Ok(Place { name: input.name.clone(), info })
}

fn output(port: &Port) -> Result<Place, Failure> {
    let extents = port.dims.extents().iter().enumerate();
    let is_open = |axis| port.open.iter().any(|open| open.axis == axis);
    let extents = extents.map(|(axis, &extent)| (!is_open(axis)).then_some(extent)).collect();
    let info = Info::of_port(&port.name, port.dtype, Some(extents), &port.open)?;
    Ok(Place { name: port.name.clone(), info })
}

impl Session {
    /// Says once that an input's numbers are rounded: ONNX Runtime refuses doubles for floats, and computes with doubles.
    pub(crate) fn tell_rounding(&self, name: &str) {
        if !self.has_told.swap(true, Ordering::Relaxed) {
            let level = OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING;
            self.environment.log(self.logging, level, &rounding(name));
        }
    }

    fn open(
        environment: &Arc<Environment>,
        options: &SessionOptions,
        load: impl FnOnce(&LoadOptions) -> Result<ModelFile, Error>,
    ) -> Result<Self, Failure> {
        options.goes_on()?;
        let config = &options.config;
        let file = load(&LoadOptions {
            dimensions: options.dimensions.clone(),
            values: options.values.clone(),
            signature: config.signature.clone(),
            dequantize: config.dequantize,
            ..LoadOptions::default()
        })?;
        options.goes_on()?;
        let device = options.device();
        environment.on(&device, |context| Session::of(environment, options, file, &device, context))
    }

    /// A file's session on a device.
    fn of(
        environment: &Arc<Environment>,
        options: &SessionOptions,
        file: ModelFile,
        device: &DeviceSelector,
        context: &Context,
    ) -> Result<Self, Failure> {
        let config = &options.config;
        let tuning = match &config.record {
            Some(folder) => Tuning::Database(Arc::new(Mutex::new(Database::open(folder)?))),
            None => Tuning::Default,
        };
        let threads = if options.shares_threads { environment.threads } else { options.threads };
        let mut session = file.session(
            context,
            diptych::SessionOptions {
                precision: config.precision,
                tuning,
                seed: config.seed,
                cpu_threads: threads,
                plans: config.plans,
                ..Default::default()
            },
        )?;
        let (mut taken, mut given) = (file.inputs(), file.outputs());
        if let Some(places) = config.caches {
            let pairs = file.cache_pairs();
            session.cache(&Caches::new(&pairs, places))?;
            taken.retain(|input| pairs.iter().all(|(_, past)| *past != input.name));
            given.retain(|port| pairs.iter().all(|(present, _)| *present != port.name));
        }
        options.goes_on()?;
        environment.log(
            options.logging,
            OrtLoggingLevel::ORT_LOGGING_LEVEL_INFO,
            &format!("session on {}", context.info()),
        );
        for name in &options.rounded {
            let level = OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING;
            environment.log(options.logging, level, &rounding(name));
        }
        let (initializers, inputs): (Vec<_>, Vec<_>) = taken.iter().partition(|input| input.is_optional);
        Ok(Session {
            inputs: inputs.into_iter().map(input).collect::<Result<_, _>>()?,
            initializers: initializers.into_iter().map(input).collect::<Result<_, _>>()?,
            outputs: given.iter().map(output).collect::<Result<_, _>>()?,
            engine: Engine::Network {
                session: Box::new(Mutex::new(session)),
                device: device.clone(),
                keeps: config.caches.is_some(),
            },
            about: file.info().clone(),
            environment: Arc::clone(environment),
            logging: options.logging,
            has_told: AtomicBool::new(false),
        })
    }

    fn of_bytes(
        environment: &Arc<Environment>,
        bytes: &[u8],
        options: &SessionOptions,
    ) -> Result<Self, Failure> {
        let Some(element) = identity::element(bytes)? else {
            return Session::open(environment, options, |load| ModelFile::from_bytes(bytes, load));
        };
        let place = |name: &str| Place { name: name.to_owned(), info: Info::of_any(element) };
        Ok(Session {
            inputs: vec![place("input")],
            initializers: Vec::new(),
            outputs: vec![place("output")],
            engine: Engine::Copy,
            about: ModelInfo::default(),
            environment: Arc::clone(environment),
            logging: options.logging,
            has_told: AtomicBool::new(false),
        })
    }

    fn of_file(
        environment: &Arc<Environment>,
        path: &PathBuf,
        options: &SessionOptions,
    ) -> Result<Self, Failure> {
        // What cannot be read, and what is no file, as a pipe is, is reported by what reads it in earnest.
        if path.is_file() {
            let mut head = Vec::new();
            let read = std::fs::File::open(path).and_then(|file| file.take(8).read_to_end(&mut head));
            if read.is_ok() {
                identity::element(&head)?;
            }
        }
        Session::open(environment, options, |load| ModelFile::load(path, load))
    }
}

/// The path that C gives.
///
/// # Safety
/// `path` is NULL, or characters that end with a zero.
unsafe fn path(path: *const os_char) -> Result<PathBuf, Failure> {
    if path.is_null() {
        return Err(wrong("model path", "NULL", "a pointer"));
    }
    #[cfg(not(windows))]
    {
        // SAFETY: the caller promises that `path` is NULL, or characters that end with a zero; it is not NULL (checked
        // above).
        let bytes = unsafe { std::ffi::CStr::from_ptr(path) }.to_bytes();
        #[cfg(unix)]
        return Ok(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes).into());
        #[cfg(not(unix))]
        return Ok(String::from_utf8_lossy(bytes).into_owned().into());
    }
    #[cfg(windows)]
    {
        // SAFETY: the caller's promise: the place of the zero is the first one that is not read.
        let length = (0..).take_while(|&at| unsafe { path.add(at).read() } != 0).count();
        // SAFETY: so many characters were read a line ago.
        let characters = unsafe { std::slice::from_raw_parts(path, length) };
        Ok(<std::ffi::OsString as std::os::windows::ffi::OsStringExt>::from_wide(characters).into())
    }
}

fn at<'a>(what: &str, places: &'a [Place], index: usize) -> Result<&'a Place, Failure> {
    let wanted = || wrong(what, format!("number {index}"), format!("a number below {}", places.len()));
    places.get(index).ok_or_else(wanted)
}

calls! {
    fn CreateSession(
        env: *const OrtEnv,
        model: *const os_char,
        options: *const OrtSessionOptions,
        out: *mut *mut OrtSession,
    ) {
        let session = Session::of_file(own(env)?, &path(model)?, own_or_default(options, &SessionOptions::default()))?;
        hand_out(out, session)
    }

    fn CreateSessionFromArray(
        env: *const OrtEnv,
        model: *const c_void,
        length: usize,
        options: *const OrtSessionOptions,
        out: *mut *mut OrtSession,
    ) {
        let bytes = slice("model", model.cast::<u8>(), length)?;
        let session = Session::of_bytes(own(env)?, bytes, own_or_default(options, &SessionOptions::default()))?;
        hand_out(out, session)
    }

    fn CreateSessionWithPrepackedWeightsContainer(
        env: *const OrtEnv,
        model: *const os_char,
        options: *const OrtSessionOptions,
        container: *mut OrtPrepackedWeightsContainer,
        out: *mut *mut OrtSession,
    ) {
        own(container)?;
        let session = Session::of_file(own(env)?, &path(model)?, own_or_default(options, &SessionOptions::default()))?;
        hand_out(out, session)
    }

    fn CreateSessionFromArrayWithPrepackedWeightsContainer(
        env: *const OrtEnv,
        model: *const c_void,
        length: usize,
        options: *const OrtSessionOptions,
        container: *mut OrtPrepackedWeightsContainer,
        out: *mut *mut OrtSession,
    ) {
        own(container)?;
        let bytes = slice("model", model.cast::<u8>(), length)?;
        let session = Session::of_bytes(own(env)?, bytes, own_or_default(options, &SessionOptions::default()))?;
        hand_out(out, session)
    }

    fn SessionGetInputCount(session: *const OrtSession, out: *mut usize) {
        put("out", out, own(session)?.inputs.len())
    }

    fn SessionGetOutputCount(session: *const OrtSession, out: *mut usize) {
        put("out", out, own(session)?.outputs.len())
    }

    fn SessionGetOverridableInitializerCount(session: *const OrtSession, out: *mut usize) {
        put("out", out, own(session)?.initializers.len())
    }

    fn SessionGetInputTypeInfo(session: *const OrtSession, index: usize, out: *mut *mut OrtTypeInfo) {
        hand_out(out, at("input", &own(session)?.inputs, index)?.info.clone())
    }

    fn SessionGetOutputTypeInfo(session: *const OrtSession, index: usize, out: *mut *mut OrtTypeInfo) {
        hand_out(out, at("output", &own(session)?.outputs, index)?.info.clone())
    }

    fn SessionGetOverridableInitializerTypeInfo(
        session: *const OrtSession,
        index: usize,
        out: *mut *mut OrtTypeInfo,
    ) {
        hand_out(out, at("initializer", &own(session)?.initializers, index)?.info.clone())
    }

    fn SessionGetInputName(
        session: *const OrtSession,
        index: usize,
        allocator: *mut OrtAllocator,
        out: *mut *mut c_char,
    ) {
        put_text(out, allocator, &at("input", &own(session)?.inputs, index)?.name)
    }

    fn SessionGetOutputName(
        session: *const OrtSession,
        index: usize,
        allocator: *mut OrtAllocator,
        out: *mut *mut c_char,
    ) {
        put_text(out, allocator, &at("output", &own(session)?.outputs, index)?.name)
    }

    fn SessionGetOverridableInitializerName(
        session: *const OrtSession,
        index: usize,
        allocator: *mut OrtAllocator,
        out: *mut *mut c_char,
    ) {
        let place = at("initializer", &own(session)?.initializers, index)?;
        put_text(out, allocator, &place.name)
    }

    fn SessionGetMemoryInfoForInputs(
        session: *const OrtSession,
        infos: *mut *const OrtMemoryInfo,
        count: usize,
    ) {
        let info = match own(session)?.engine {
            Engine::Network { .. } => host(),
            Engine::Copy => not_aliased(),
        };
        out_slice("memory information", infos, count)?.fill(MaybeUninit::new(info));
        Ok(())
    }

    fn SessionGetMemoryInfoForOutputs(
        session: *const OrtSession,
        infos: *mut *const OrtMemoryInfo,
        count: usize,
    ) {
        own(session)?;
        out_slice("memory information", infos, count)?.fill(MaybeUninit::new(host()));
        Ok(())
    }

    /// The workload's type changes nothing here.
    fn SetEpDynamicOptions(
        session: *mut OrtSession,
        keys: *const *const c_char,
        values: *const *const c_char,
        count: usize,
    ) {
        own(session)?;
        texts("values", values, count)?;
        match texts("keys", keys, count)?.into_iter().find(|&key| key != "ep.dynamic.workload_type") {
            Some(key) => Err(unsupported(format!("the option {key:?}"), "there is ep.dynamic.workload_type alone")),
            None => Ok(()),
        }
    }
}

/// Options, which may be NULL.
///
/// # Safety
/// `options` is NULL, or of this table and not released during the call.
unsafe fn own_or_default(options: *const OrtSessionOptions, default: &SessionOptions) -> &SessionOptions {
    // SAFETY: the caller promises that `options` is NULL, or of this table and not released during the call; `own` refuses
    // NULL.
    unsafe { own(options) }.unwrap_or(default)
}
