//! A network's outputs as metadata of the buffer that they were computed from: [`TensorMeta`], an API that the plugin registers as
//! `GstDiptychTensorMetaAPI`. `include/gstdiptych.h` has its layout for C.

use diptych::{DType, HostTensor};
use gst::glib;
use gst::glib::translate::{IntoGlib, from_glib};
use gst::prelude::*;
use gst_video::video_meta::VideoMetaTransformScale;
use std::ffi::{CString, c_char, c_void};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// An output of a network.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// Its name in the model's file.
    pub name: String,
    /// Its type, dimensions and elements.
    pub data: HostTensor,
    /// The names of the classes that its numbers are about, if the model's file says which they are.
    pub labels: Arc<[String]>,
}

/// Where the network looked: its input's and the frame's extents, and the map from one to the other.
///
/// Coordinates are continuous: pixel `(i, j)` covers `i..i+1` and `j..j+1`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// Width and height of the network's input, in pixels.
    pub input: [u32; 2],
    /// Width and height of the frame, in pixels.
    pub frame: [u32; 2],
    /// The two rows of the affine map from the input to the frame: factors of `x` and `y`, and what is added.
    pub to_frame: [[f64; 3]; 2],
}

impl View {
    /// Where a place of the network's input lies in the frame, in pixels.
    pub fn frame_place(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        self.to_frame.map(|[of_x, of_y, of_one]| of_x * x + of_y * y + of_one)
    }

    /// Where a place of the frame lies in the network's input, in pixels.
    pub fn input_place(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [[a, b, c], [d, e, f]] = self.to_frame;
        let (determinant, x, y) = (a * e - b * d, x - c, y - f);
        [(e * x - b * y) / determinant, (a * y - d * x) / determinant]
    }

    /// The view in a frame of extents `frame`, into which this frame was scaled as a whole.
    fn scaled(&self, frame: [u32; 2]) -> Self {
        let [[a, b, c], [d, e, f]] = self.to_frame;
        let factor = |axis: usize| f64::from(frame[axis]) / f64::from(self.frame[axis].max(1));
        let (x, y) = (factor(0), factor(1));
        View { frame, to_frame: [[a * x, b * x, c * x], [d * y, e * y, f * y]], ..*self }
    }
}

/// The outputs of one run for one frame. Copies of a buffer share them.
#[derive(Clone)]
pub struct Tensors(Arc<Shared>);

/// What the metadata of C point to lives as long as this.
struct Shared {
    network: String,
    is_planar: bool,
    tensors: Vec<Tensor>,
    network_text: CString,
    /// The names and dimensions that `in_c` points to.
    _texts: Vec<CString>,
    _dims: Vec<Vec<u64>>,
    in_c: Vec<InC>,
}

/// `GstDiptychTensor`.
#[repr(C)]
struct InC {
    name: *const c_char,
    dtype: i32,
    rank: u32,
    dims: *const u64,
    data: *const c_void,
    size: u64,
}

// SAFETY: the pointers of `in_c` lead to memory that this owns, and that nobody writes to.
unsafe impl Send for Shared {}
// SAFETY: the same.
unsafe impl Sync for Shared {}

/// The number of a type, as `GstTensorDataType` of GStreamer 1.26 and later has it.
pub(crate) fn type_number(dtype: DType) -> i32 {
    match dtype {
        DType::I8 => 1,
        DType::I16 => 2,
        DType::I32 => 3,
        DType::I64 => 4,
        DType::U8 => 6,
        DType::U16 => 7,
        DType::U32 => 8,
        DType::F16 => 10,
        DType::F32 => 11,
        DType::Bool => 15,
        _ => -1,
    }
}

/// A text without zero bytes.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

impl Tensors {
    /// The outputs of the network of the element `network`. `is_planar` says that its input has its channels in planes, as its
    /// maps then have too.
    pub fn new(network: &str, is_planar: bool, tensors: Vec<Tensor>) -> Self {
        let texts: Vec<CString> = tensors.iter().map(|tensor| c_text(&tensor.name)).collect();
        let extents = |tensor: &Tensor| {
            tensor.data.dims().extents().iter().map(|&extent| extent as u64).collect::<Vec<u64>>()
        };
        let dims: Vec<Vec<u64>> = tensors.iter().map(extents).collect();
        let in_c = tensors.iter().zip(&texts).zip(&dims).map(|((tensor, text), dims)| InC {
            name: text.as_ptr(),
            dtype: type_number(tensor.data.dtype()),
            rank: dims.len() as u32,
            dims: dims.as_ptr(),
            data: tensor.data.bytes().as_ptr().cast(),
            size: tensor.data.bytes().len() as u64,
        });
        let in_c = in_c.collect();
        let network_text = c_text(network);
        let network = network.to_owned();
        Tensors(Arc::new(Shared {
            network,
            is_planar,
            tensors,
            network_text,
            _texts: texts,
            _dims: dims,
            in_c,
        }))
    }

    /// The name of the element that ran the network.
    pub fn network(&self) -> &str {
        &self.0.network
    }

    /// Whether the network's maps have their channels in planes.
    pub fn is_planar(&self) -> bool {
        self.0.is_planar
    }

    /// The outputs, in the model's order.
    pub fn all(&self) -> &[Tensor] {
        &self.0.tensors
    }
}

impl fmt::Debug for Tensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensors")
            .field("network", &self.0.network)
            .field("is_planar", &self.0.is_planar)
            .field("tensors", &self.0.tensors)
            .finish()
    }
}

/// `GstDiptychTensorMeta`.
#[doc(hidden)]
#[repr(C)]
pub struct MetaInC {
    meta: gst::ffi::GstMeta,
    network: *const c_char,
    input_width: u32,
    input_height: u32,
    frame_width: u32,
    frame_height: u32,
    to_frame: [f64; 6],
    n_tensors: u64,
    tensors: *const InC,
    shared: *const Shared,
}

/// A network's outputs for the frame that a buffer holds.
///
/// Copies of the buffer share them, and where a frame is scaled [`TensorMeta::view`] follows. In a pipeline from the command line
/// `diptychinfer` adds it and `diptychdecode` reads it; a program reads it in a pad's probe or from an `appsink`:
///
/// ```
/// use gstdiptych::TensorMeta;
/// use gstdiptych::gst;
///
/// fn print(buffer: &gst::BufferRef) {
///     for meta in buffer.iter_meta::<TensorMeta>() {
///         for tensor in meta.tensors().all() {
///             println!("{}: {} {}", meta.tensors().network(), tensor.name, tensor.data.dims());
///         }
///     }
/// }
/// ```
#[repr(transparent)]
pub struct TensorMeta(MetaInC);

// SAFETY: what its pointers lead to is owned by `Tensors`, which may be shared between threads.
unsafe impl Send for TensorMeta {}
// SAFETY: the same.
unsafe impl Sync for TensorMeta {}

/// What a new one is made of.
struct Parts {
    tensors: Tensors,
    view: View,
}

impl TensorMeta {
    /// Adds a network's outputs to a buffer.
    pub fn add(
        buffer: &mut gst::BufferRef,
        tensors: Tensors,
        view: View,
    ) -> gst::MetaRefMut<'_, Self, gst::meta::Standalone> {
        let mut parts = Some(Parts { tensors, view });
        let info = META_INFO.0;
        // SAFETY: `init` is called before this returns, and takes a pointer to such parts; what it leaves is a whole `MetaInC`.
        unsafe {
            let parts: *mut Option<Parts> = &mut parts;
            let meta = gst::ffi::gst_buffer_add_meta(buffer.as_mut_ptr(), info, parts.cast());
            Self::from_mut_ptr(buffer, meta.cast())
        }
    }

    /// The outputs.
    pub fn tensors(&self) -> Tensors {
        // SAFETY: `init` stored what `Arc::into_raw` gave, and `free`, which takes it back, was not called yet.
        Tensors(unsafe {
            Arc::increment_strong_count(self.0.shared);
            Arc::from_raw(self.0.shared)
        })
    }

    /// Where the network looked.
    pub fn view(&self) -> View {
        let [a, b, c, d, e, f] = self.0.to_frame;
        View {
            input: [self.0.input_width, self.0.input_height],
            frame: [self.0.frame_width, self.0.frame_height],
            to_frame: [[a, b, c], [d, e, f]],
        }
    }

    fn set(meta: &mut MetaInC, view: View) {
        let [[a, b, c], [d, e, f]] = view.to_frame;
        [meta.input_width, meta.input_height] = view.input;
        [meta.frame_width, meta.frame_height] = view.frame;
        meta.to_frame = [a, b, c, d, e, f];
    }
}

impl fmt::Debug for TensorMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorMeta").field("view", &self.view()).field("tensors", &self.tensors()).finish()
    }
}

// SAFETY: the type is the one that `META_INFO` is registered with, and `TensorMeta` is transparent over what it makes.
unsafe impl MetaAPI for TensorMeta {
    type GstType = MetaInC;

    fn meta_api() -> glib::Type {
        static API: LazyLock<glib::Type> = LazyLock::new(|| {
            let name = &NAMES[0];
            // Elements that scale frames hand on what has these tags and no other.
            let tags = [c"video".as_ptr(), c"size".as_ptr(), std::ptr::null()];
            // SAFETY: both are texts of C that are only read; the list ends in NULL.
            unsafe {
                from_glib(gst::ffi::gst_meta_api_type_register(name.as_ptr(), tags.as_ptr().cast_mut()))
            }
        });
        *API
    }
}

/// The names by which GStreamer knows the metadata's API and its implementation. Another copy of this crate in the process, such as a
/// plugin's file in a program that links the crate, may lay the metadata out differently, so that this copy then takes other names.
static NAMES: LazyLock<[CString; 2]> = LazyLock::new(|| {
    let api = "GstDiptychTensorMetaAPI";
    let own = match glib::Type::from_name(api) {
        Some(_) => format!("-{:p}", &raw const NAMES),
        None => String::new(),
    };
    [api, "GstDiptychTensorMeta"].map(|name| c_text(&format!("{name}{own}")))
});

struct Info(*const gst::ffi::GstMetaInfo);

// SAFETY: GStreamer does not change what is registered.
unsafe impl Send for Info {}
// SAFETY: the same.
unsafe impl Sync for Info {}

static META_INFO: LazyLock<Info> = LazyLock::new(|| {
    // SAFETY: the functions are for metadata of this size, and the type is registered.
    Info(unsafe {
        gst::ffi::gst_meta_register(
            TensorMeta::meta_api().into_glib(),
            NAMES[1].as_ptr(),
            size_of::<MetaInC>(),
            Some(init),
            Some(free),
            Some(transform),
        )
    })
});

unsafe extern "C" fn init(
    meta: *mut gst::ffi::GstMeta,
    parameters: glib::ffi::gpointer,
    _buffer: *mut gst::ffi::GstBuffer,
) -> glib::ffi::gboolean {
    // SAFETY: GStreamer gives memory of the registered size, and `TensorMeta::add` alone adds such metadata.
    let (meta, parts) = unsafe { (&mut *meta.cast::<MetaInC>(), &mut *parameters.cast::<Option<Parts>>()) };
    let Some(Parts { tensors, view }) = parts.take() else { return glib::ffi::GFALSE };
    TensorMeta::set(meta, view);
    meta.network = tensors.0.network_text.as_ptr();
    meta.n_tensors = tensors.0.in_c.len() as u64;
    meta.tensors = tensors.0.in_c.as_ptr();
    meta.shared = Arc::into_raw(tensors.0);
    glib::ffi::GTRUE
}

unsafe extern "C" fn free(meta: *mut gst::ffi::GstMeta, _buffer: *mut gst::ffi::GstBuffer) {
    // SAFETY: `init` stored what `Arc::into_raw` gave, and GStreamer calls this once.
    drop(unsafe { Arc::from_raw((*meta.cast::<MetaInC>()).shared) });
}

/// Copies go with copies of the buffer, and follow a change of scale.
unsafe extern "C" fn transform(
    to: *mut gst::ffi::GstBuffer,
    meta: *mut gst::ffi::GstMeta,
    _from: *mut gst::ffi::GstBuffer,
    kind: glib::ffi::GQuark,
    data: glib::ffi::gpointer,
) -> glib::ffi::gboolean {
    // SAFETY: the metadata are ours, and the buffer is the caller's to write to.
    let (meta, to) = unsafe { (&*meta.cast::<TensorMeta>(), gst::BufferRef::from_mut_ptr(to)) };
    // SAFETY: the quark is that of a text.
    let kind = unsafe { from_glib::<_, glib::Quark>(kind) };
    let view = if kind.as_str() == "gst-copy" {
        meta.view()
    } else if kind == <VideoMetaTransformScale<'_> as gst::meta::MetaTransform<'_>>::quark() {
        // SAFETY: the kind says what the data are, and that they have descriptions of two frames.
        let out = unsafe { &*(*data.cast::<gst_video::ffi::GstVideoMetaTransform>()).out_info };
        meta.view().scaled([out.width, out.height].map(|extent| extent.max(0) as u32))
    } else {
        return glib::ffi::GFALSE;
    };
    TensorMeta::add(to, meta.tensors(), view);
    glib::ffi::GTRUE
}

/// The offsets of the fields that `include/gstdiptych.h` declares, for its test: of the metadata and of a tensor.
#[doc(hidden)]
pub fn offsets() -> ([usize; 10], [usize; 7]) {
    use std::mem::offset_of;
    let meta = [
        offset_of!(MetaInC, network),
        offset_of!(MetaInC, input_width),
        offset_of!(MetaInC, input_height),
        offset_of!(MetaInC, frame_width),
        offset_of!(MetaInC, frame_height),
        offset_of!(MetaInC, to_frame),
        offset_of!(MetaInC, n_tensors),
        offset_of!(MetaInC, tensors),
        offset_of!(MetaInC, shared),
        size_of::<MetaInC>(),
    ];
    let tensor = [
        offset_of!(InC, name),
        offset_of!(InC, dtype),
        offset_of!(InC, rank),
        offset_of!(InC, dims),
        offset_of!(InC, data),
        offset_of!(InC, size),
        size_of::<InC>(),
    ];
    (meta, tensor)
}
