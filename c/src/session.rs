//! Sessions, and what goes in and comes out.

use crate::errors::{Failure, diptych_status, guard, wrong};
use crate::options::diptych_options;
use crate::pointers::{c_text, changed, shared, slice, text};
use diptych::{
    Context, DType, Database, Error, Graph, LoadOptions, Model, Port, Precision, Session, SessionOptions,
    SharedDatabase, Tuning,
};
use std::ffi::{CString, c_char};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// The most axes that a tensor has.
pub const DIPTYCH_MAX_RANK: usize = 6;

const _: () = assert!(DIPTYCH_MAX_RANK == diptych::MAX_RANK);

/// A network that is ready to run, on a device.
pub struct diptych_session {
    running: Mutex<Session>,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    names: [Vec<CString>; 2],
    device: CString,
    pub(crate) context: Context,
    pub(crate) graph: Graph,
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
    fn of(port: &Port) -> Result<Self, Failure> {
        Ok(match port.dtype {
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

/// An input or an output of a session. The last axis is the fastest.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_port {
    /// Lives as long as the session.
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
        load: impl FnOnce(&LoadOptions) -> Result<Model, Error>,
    ) -> Result<Self, Failure> {
        let defaults = diptych_options::default();
        let options = options.unwrap_or(&defaults);
        let context = Context::builder().device(options.device.clone()).open()?;
        let graph = load(&options.load)?.graph;
        let database = match &options.record {
            Some(folder) => Database::open(folder)?,
            None => Database::in_memory(),
        };
        let database = Arc::new(Mutex::new(database));
        let halves = context.info().device.as_ref().is_some_and(|device| device.limits.native_half);
        let precision = match (options.f16, halves) {
            (false, _) => Precision::F32,
            (true, false) => Precision::F16Storage,
            (true, true) => Precision::F16,
        };
        let tuning = Tuning::Database(Arc::clone(&database));
        let session =
            Session::new(&context, &graph, SessionOptions { precision, tuning, ..Default::default() })?;
        let (inputs, outputs) = (session.inputs().to_vec(), session.outputs().to_vec());
        let names = |ports: &[Port]| ports.iter().map(|port| c_text(&port.name)).collect();
        Ok(diptych_session {
            names: [names(&inputs), names(&outputs)],
            inputs,
            outputs,
            running: Mutex::new(session),
            device: c_text(&context.info().to_string()),
            context,
            graph,
            precision,
            record: (database, options.record.clone()),
        })
    }

    /// The session, this thread's for now.
    pub(crate) fn turn(&self) -> Result<MutexGuard<'_, Session>, Failure> {
        let broken = || Error::Internal("an earlier call on this session panicked".to_owned());
        Ok(self.running.lock().map_err(|_| broken())?)
    }
}

fn port(what: &str, ports: &[Port], names: &[CString], index: usize) -> Result<diptych_port, Failure> {
    let (Some(port), Some(name)) = (ports.get(index), names.get(index)) else {
        return Err(wrong(what, format!("number {index}"), format!("a number below {}", ports.len())));
    };
    let mut extents = [1; DIPTYCH_MAX_RANK];
    for (extent, own) in extents.iter_mut().zip(port.dims.extents()) {
        *extent = *own;
    }
    let elements = port.dims.elements();
    Ok(diptych_port {
        name: name.as_ptr(),
        rank: port.dims.rank(),
        extents,
        elements,
        dtype: diptych_dtype::of(port)?,
        bytes: elements * port.dtype.bytes(),
    })
}

/// The library's version. Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn diptych_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Opens a TensorFlow Lite or ONNX file; its contents say which it is. `options` may be NULL. The session is the
/// caller's, who closes it; on failure it is NULL.
///
/// # Safety
/// `path` is text, `options` are NULL or those of diptych_options_new, and `session` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_open_file(
    path: *const c_char,
    options: *const diptych_options,
    session: *mut *mut diptych_session,
) -> diptych_status {
    guard(|| {
        // SAFETY: this function's own promise.
        let (path, options, session) =
            unsafe { (text("path", path), options.as_ref(), changed("session", session)?) };
        *session = std::ptr::null_mut();
        let path = path?;
        let opened = diptych_session::open(options, |load| Model::load(path, load))?;
        *session = Box::into_raw(Box::new(opened));
        Ok(())
    })
}

/// Opens a TensorFlow Lite or ONNX file that is in memory. The bytes may be freed afterwards. `options` may be NULL.
/// The session is the caller's, who closes it; on failure it is NULL.
///
/// # Safety
/// `bytes` points to `length` bytes, `options` are NULL or those of diptych_options_new, and `session` points to a
/// pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_open_bytes(
    bytes: *const u8,
    length: usize,
    options: *const diptych_options,
    session: *mut *mut diptych_session,
) -> diptych_status {
    guard(|| {
        // SAFETY: this function's own promise.
        let (bytes, options, session) =
            unsafe { (slice("bytes", bytes, length), options.as_ref(), changed("session", session)?) };
        *session = std::ptr::null_mut();
        let bytes = bytes?;
        let opened = diptych_session::open(options, |load| Model::from_bytes(bytes, load))?;
        *session = Box::into_raw(Box::new(opened));
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

/// The device that a session runs on, and why it is this one. Lives as long as the session; NULL if that is NULL.
///
/// # Safety
/// `session` is NULL, or of an open function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_device(session: *const diptych_session) -> *const c_char {
    // SAFETY: this function's own promise.
    unsafe { session.as_ref() }.map_or(std::ptr::null(), |session| session.device.as_ptr())
}

/// How many inputs a session has; 0 if it is NULL.
///
/// # Safety
/// `session` is NULL, or of an open function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_input_count(session: *const diptych_session) -> usize {
    // SAFETY: this function's own promise.
    unsafe { session.as_ref() }.map_or(0, |session| session.inputs.len())
}

/// How many outputs a session has; 0 if it is NULL.
///
/// # Safety
/// `session` is NULL, or of an open function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_output_count(session: *const diptych_session) -> usize {
    // SAFETY: this function's own promise.
    unsafe { session.as_ref() }.map_or(0, |session| session.outputs.len())
}

/// An input, by its number.
///
/// # Safety
/// `session` is of an open function, and `input` points to a port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_input(
    session: *const diptych_session,
    index: usize,
    input: *mut diptych_port,
) -> diptych_status {
    guard(|| {
        // SAFETY: this function's own promise.
        let (session, input) = unsafe { (shared("session", session)?, changed("input", input)?) };
        *input = port("input", &session.inputs, &session.names[0], index)?;
        Ok(())
    })
}

/// An output, by its number.
///
/// # Safety
/// `session` is of an open function, and `output` points to a port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_output(
    session: *const diptych_session,
    index: usize,
    output: *mut diptych_port,
) -> diptych_status {
    guard(|| {
        // SAFETY: this function's own promise.
        let (session, output) = unsafe { (shared("session", session)?, changed("output", output)?) };
        *output = port("output", &session.outputs, &session.names[1], index)?;
        Ok(())
    })
}
