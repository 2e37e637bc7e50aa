//! Sessions, and what goes in and comes out.

use crate::errors::{Failure, diptych_status, guard, wrong};
use crate::options::diptych_options;
use crate::pixels::PixelsOf;
use diptych::{
    Caches, Context, DType, Database, Dims, Error, FastestOptions, LoadOptions, ModelFile, Port, Precision,
    Session, SessionOptions, SharedDatabase, Tuning,
};
use diptych_pointers::{c_text, out, shared, slice, text};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// The most axes that a tensor has.
pub const DIPTYCH_MAX_RANK: usize = 6;

const _: () = assert!(DIPTYCH_MAX_RANK == diptych::MAX_RANK);

/// What threads take turns with.
pub(crate) struct Running {
    pub(crate) session: Session,
    /// Whether a run decided the extents that the file leaves open.
    pub(crate) decided: bool,
}

/// A network that is ready to run, on a device.
pub struct diptych_session {
    running: Mutex<Running>,
    names: [Vec<CString>; 2],
    /// The names of each input's axes; nothing where an extent is fixed.
    axes: Vec<Vec<Option<CString>>>,
    device: CString,
    pub(crate) context: Context,
    pub(crate) file: ModelFile,
    pub(crate) pixels: PixelsOf,
    pub(crate) precision: Precision,
    pub(crate) record: (SharedDatabase, Option<PathBuf>),
}

/// The type of an element. More may be added.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum diptych_dtype {
    /// A float of 32 bits: float.
    F32 = 0,
    /// A float of 16 bits, IEEE 754 binary16.
    F16 = 1,
    /// int64_t. On a GPU inputs that do not fit 32 bits are refused; the CPU has all 64.
    I64 = 2,
    /// int32_t.
    I32 = 3,
    /// int16_t.
    I16 = 4,
    /// int8_t.
    I8 = 5,
    /// uint32_t.
    U32 = 6,
    /// uint16_t.
    U16 = 7,
    /// uint8_t.
    U8 = 8,
    /// A byte: 0 is false, anything else true. Outputs have 0 and 1.
    Bool = 9,
}

impl diptych_dtype {
    pub(crate) fn of(dtype: DType) -> Result<Self, Failure> {
        Ok(match dtype {
            DType::F32 => diptych_dtype::F32,
            DType::F16 => diptych_dtype::F16,
            DType::I64 => diptych_dtype::I64,
            DType::I32 => diptych_dtype::I32,
            DType::I16 => diptych_dtype::I16,
            DType::I8 => diptych_dtype::I8,
            DType::U32 => diptych_dtype::U32,
            DType::U16 => diptych_dtype::U16,
            DType::U8 => diptych_dtype::U8,
            DType::Bool => diptych_dtype::Bool,
            other => {
                return Err(Error::Internal(format!("the header has no name for the type {other}")).into());
            }
        })
    }
}

impl From<diptych_dtype> for DType {
    fn from(dtype: diptych_dtype) -> Self {
        match dtype {
            diptych_dtype::F32 => DType::F32,
            diptych_dtype::F16 => DType::F16,
            diptych_dtype::I64 => DType::I64,
            diptych_dtype::I32 => DType::I32,
            diptych_dtype::I16 => DType::I16,
            diptych_dtype::I8 => DType::I8,
            diptych_dtype::U32 => DType::U32,
            diptych_dtype::U16 => DType::U16,
            diptych_dtype::U8 => DType::U8,
            diptych_dtype::Bool => DType::Bool,
        }
    }
}

/// An input or an output of a session or of a batch. The last axis is the fastest. An extent that each run decides
/// (diptych_input_axis) is that of the last run, and 1 before the first one.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_port {
    /// Its name, which lives as long as the session or the batch.
    pub name: *const c_char,
    /// How many axes it has.
    pub rank: usize,
    /// Their extents; 1 beyond the rank.
    pub extents: [usize; DIPTYCH_MAX_RANK],
    /// How many elements it has.
    pub elements: usize,
    /// Their type.
    pub dtype: diptych_dtype,
    /// How many bytes they have in this type, as diptych_run_typed takes and gives them.
    pub bytes: usize,
}

impl diptych_session {
    fn open(
        options: Option<&diptych_options>,
        load: impl Fn(&LoadOptions) -> Result<ModelFile, Error>,
    ) -> Result<Self, Failure> {
        let defaults = diptych_options::default();
        let options = options.unwrap_or(&defaults);
        let named = match options.fastest {
            true => None,
            false => Some(Context::builder().device(options.device.clone()).open()?),
        };
        let file = options.read(load)?;
        let pixels = options.pixels_of(&file)?;
        let database = match &options.record {
            Some(folder) => Database::open(folder)?,
            None => Database::in_memory(),
        };
        let database = Arc::new(Mutex::new(database));
        let context = match named {
            Some(context) => context,
            None => {
                let precision = if options.f16 { Precision::F16Storage } else { Precision::F32 };
                let tuning = Tuning::Database(Arc::clone(&database));
                let session =
                    SessionOptions { precision, tuning, cpu_threads: options.threads, ..Default::default() };
                file.fastest(&FastestOptions { session, ..Default::default() })?.context
            }
        };
        let precision = options.precision(std::slice::from_ref(&context));
        let tuning = Tuning::Database(Arc::clone(&database));
        let (seed, cpu_threads) = (options.seed, options.threads);
        let own = SessionOptions { precision, tuning, seed, cpu_threads, ..Default::default() };
        let mut session = file.session(&context, own)?;
        if let Some(places) = options.caches {
            session.cache(&Caches::new(&file.cache_pairs(), places))?;
        }
        let names = |ports: &[Port]| ports.iter().map(|port| c_text(&port.name)).collect();
        let axes = |port: &Port| {
            let name = |axis| port.open.iter().find(|open| open.axis == axis).map(|open| c_text(&open.name));
            (0..port.dims.rank()).map(name).collect()
        };
        Ok(diptych_session {
            names: [names(session.inputs()), names(session.outputs())],
            axes: session.inputs().iter().map(axes).collect(),
            running: Mutex::new(Running { session, decided: false }),
            device: c_text(&context.info().to_string()),
            context,
            file,
            pixels,
            precision,
            record: (database, options.record.clone()),
        })
    }

    /// The session, this thread's for now.
    pub(crate) fn turn(&self) -> Result<MutexGuard<'_, Running>, Failure> {
        let broken = || Error::Internal("an earlier call on this session panicked".to_owned());
        Ok(self.running.lock().map_err(|_| broken())?)
    }
}

impl Running {
    /// The inputs and outputs, with the extents of the last run.
    pub(crate) fn ports(&self) -> (Vec<Port>, Vec<Port>) {
        (self.session.inputs().to_vec(), self.session.outputs().to_vec())
    }
}

/// The extents of the last run, by the names of their axes; nothing before the first one.
pub(crate) fn extents(running: &Running) -> BTreeMap<String, usize> {
    let ports = running.session.inputs().iter().filter(|_| running.decided);
    let open = ports.flat_map(|port| port.open.iter().map(move |open| (port, open)));
    open.filter_map(|(port, open)| Some((open.name.clone(), *port.dims.extents().get(open.axis)?))).collect()
}

/// Extents as the header has them.
pub(crate) fn padded(dims: Dims) -> [usize; DIPTYCH_MAX_RANK] {
    let mut extents = [1; DIPTYCH_MAX_RANK];
    extents.iter_mut().zip(dims.extents()).for_each(|(extent, own)| *extent = *own);
    extents
}

pub(crate) fn port(
    what: &str,
    ports: &[Port],
    names: &[CString],
    index: usize,
) -> Result<diptych_port, Failure> {
    let (Some(port), Some(name)) = (ports.get(index), names.get(index)) else {
        return Err(wrong(what, format!("number {index}"), format!("a number below {}", ports.len())));
    };
    let elements = port.dims.elements();
    Ok(diptych_port {
        name: name.as_ptr(),
        rank: port.dims.rank(),
        extents: padded(port.dims),
        elements,
        dtype: diptych_dtype::of(port.dtype)?,
        bytes: elements * port.dtype.bytes(),
    })
}

/// The library's version. Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn diptych_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Opens a TensorFlow Lite or ONNX file; its contents say which it is. `options` may be NULL. Where the file leaves
/// extents of inputs open, each run of diptych_run_tensors decides them. The session is the caller's, who closes it; on
/// failure it is NULL.
///
/// # Safety
/// `path` is text, `options` are NULL, or those of diptych_options_new and not freed, and `session` points to a pointer
/// that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_open_file(
    path: *const c_char,
    options: *const diptych_options,
    session: *mut *mut diptych_session,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `path` is text, that `options` are NULL or of diptych_options_new and not freed,
        // and that `session` points to a pointer that nothing else uses; NULL is refused here, but of `options` it means
        // the defaults.
        let (path, options, session) =
            unsafe { (text("path", path), options.as_ref(), out("session", session)?) };
        session.write(std::ptr::null_mut());
        let path = path?;
        let opened = diptych_session::open(options, |load| ModelFile::load(path, load))?;
        session.write(Box::into_raw(Box::new(opened)));
        Ok(())
    })
}

/// Opens a TensorFlow Lite or ONNX file that is in memory. The bytes may be freed afterwards. `options` may be NULL.
/// The session is the caller's, who closes it; on failure it is NULL.
///
/// # Safety
/// `bytes` points to `length` bytes, `options` are NULL, or those of diptych_options_new and not freed, and `session`
/// points to a pointer that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_open_bytes(
    bytes: *const u8,
    length: usize,
    options: *const diptych_options,
    session: *mut *mut diptych_session,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `bytes` points to `length` bytes, that `options` are NULL or of
        // diptych_options_new and not freed, and that `session` points to a pointer that nothing else uses; NULL is refused
        // here, but of `options` it means the defaults.
        let (bytes, options, session) =
            unsafe { (slice("bytes", bytes, length), options.as_ref(), out("session", session)?) };
        session.write(std::ptr::null_mut());
        let bytes: Arc<[u8]> = bytes?.into();
        let opened = diptych_session::open(options, |load| ModelFile::from_bytes(Arc::clone(&bytes), load))?;
        session.write(Box::into_raw(Box::new(opened)));
        Ok(())
    })
}

/// Closes a session and frees it. NULL is allowed.
///
/// # Safety
/// `session` is NULL, or of an open function, in no call of another thread's, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_close(session: *mut diptych_session) {
    if !session.is_null() {
        // SAFETY: it comes from `Box::into_raw`, and is freed once. What a panic would end is the session's own.
        let session = unsafe { Box::from_raw(session) };
        guard(|| {
            drop(session);
            Ok(())
        });
    }
}

/// Sets what one run leaves to the next back to what it is in the first run: states, and the keys and values of
/// diptych_options_caches.
///
/// # Safety
/// `session` is of an open function and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_reset(session: *mut diptych_session) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `session` is of an open function and not closed; `shared` refuses NULL.
        unsafe { shared("session", session) }?.turn()?.session.reset()?;
        Ok(())
    })
}

/// Goes back to the first `places` of the keys and values of diptych_options_caches: a run behind this call gives what it
/// would have given without the runs that filled the others. More than are filled are refused.
///
/// # Safety
/// `session` is of an open function and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_truncate(session: *mut diptych_session, places: usize) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `session` is of an open function and not closed; `shared` refuses NULL.
        unsafe { shared("session", session) }?.turn()?.session.truncate(places)?;
        Ok(())
    })
}

/// The device that a session runs on, and why it is this one. Lives as long as the session; NULL if that is NULL.
///
/// # Safety
/// `session` is NULL, or of an open function and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_device(session: *const diptych_session) -> *const c_char {
    // SAFETY: the caller promises that `session` is NULL, or of an open function and not closed; `as_ref` checks for NULL.
    unsafe { session.as_ref() }.map_or(std::ptr::null(), |session| session.device.as_ptr())
}

/// How many inputs a session has; 0 if it is NULL.
///
/// # Safety
/// `session` is NULL, or of an open function and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_input_count(session: *const diptych_session) -> usize {
    // SAFETY: the caller promises that `session` is NULL, or of an open function and not closed; `as_ref` checks for NULL.
    unsafe { session.as_ref() }.map_or(0, |session| session.names[0].len())
}

/// How many outputs a session has; 0 if it is NULL.
///
/// # Safety
/// `session` is NULL, or of an open function and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_output_count(session: *const diptych_session) -> usize {
    // SAFETY: the caller promises that `session` is NULL, or of an open function and not closed; `as_ref` checks for NULL.
    unsafe { session.as_ref() }.map_or(0, |session| session.names[1].len())
}

/// An input, by its number.
///
/// # Safety
/// `session` is of an open function and not closed, and `input` points to a port that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_input(
    session: *const diptych_session,
    index: usize,
    input: *mut diptych_port,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `session` is of an open function and not closed, and that `input` points to a
        // port that nothing else uses; NULL is refused here.
        let (session, input) = unsafe { (shared("session", session)?, out("input", input)?) };
        input.write(port("input", session.turn()?.session.inputs(), &session.names[0], index)?);
        Ok(())
    })
}

/// The name of an axis of an input whose extent each run decides, as diptych_options_dimension takes it; NULL if the
/// extent is fixed. Lives as long as the session.
///
/// # Safety
/// `session` is of an open function and not closed, and `name` points to a pointer that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_input_axis(
    session: *const diptych_session,
    index: usize,
    axis: usize,
    name: *mut *const c_char,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `session` is of an open function and not closed, and that `name` points to a
        // pointer that nothing else uses; NULL is refused here.
        let (session, name) = unsafe { (shared("session", session)?, out("name", name)?) };
        name.write(std::ptr::null());
        let below = |what, found: usize, count| {
            wrong(what, format!("number {found}"), format!("a number below {count}"))
        };
        let axes = session.axes.get(index).ok_or_else(|| below("input", index, session.axes.len()))?;
        let own = axes.get(axis).ok_or_else(|| below("axis", axis, axes.len()))?;
        name.write(own.as_ref().map_or(std::ptr::null(), |own| own.as_ptr()));
        Ok(())
    })
}

/// An output, by its number.
///
/// # Safety
/// `session` is of an open function and not closed, and `output` points to a port that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_output(
    session: *const diptych_session,
    index: usize,
    output: *mut diptych_port,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `session` is of an open function and not closed, and that `output` points to a
        // port that nothing else uses; NULL is refused here.
        let (session, output) = unsafe { (shared("session", session)?, out("output", output)?) };
        output.write(port("output", session.turn()?.session.outputs(), &session.names[1], index)?);
        Ok(())
    })
}
