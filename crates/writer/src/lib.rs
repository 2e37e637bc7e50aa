//! Writes OpenCL C 1.2 from a [`naga`] module: a compute shader in, the text of a kernel out.
//!
//! naga reads WGSL, SPIR-V or GLSL and validates it; this crate prints what naga understood as a kernel that a GPU
//! programmer can read. It needs no driver and has no other dependency.
//!
//! ```
//! let shader = "
//!     struct Params { count: u32, factor: f32 }
//!     @group(0) @binding(0) var<storage, read> src: array<f32>;
//!     @group(0) @binding(1) var<storage, read_write> dst: array<f32>;
//!     @group(0) @binding(2) var<uniform> params: Params;
//!     @compute @workgroup_size(64)
//!     fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
//!         if id.x < params.count { dst[id.x] = src[id.x] * params.factor; }
//!     }
//! ";
//! let module = naga::front::wgsl::parse_str(shader)?;
//! let info = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty())
//!     .validate(&module)?;
//! let kernel = naga_opencl::write(&module, &info, "scale", naga_opencl::Options::default())?;
//! assert_eq!(kernel.text, "\
//! __kernel __attribute__((reqd_work_group_size(64, 1, 1)))
//! void scale(
//!     __global const float* restrict src,
//!     __global float* restrict dst,
//!     const uint count,
//!     const float factor
//! ) {
//!     const uint3 id = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
//!     if (id.x < count) {
//!         dst[id.x] = src[id.x] * factor;
//!     }
//! }
//! ");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Arguments of a kernel
//!
//! | in the shader | argument, in the order of the bindings |
//! |---|---|
//! | storage buffer of an array | `__global T* restrict`, `const` where the shader only reads it |
//! | uniform struct of scalars | one scalar argument for each member |
//! | texture that is read or written | `image2d_t` (not with [`Options::checked`]) |
//! | length of a buffer, where the text needs it | `uint`, after all others, in the order of [`Kernel::lengths`] |
//!
//! Two buffers of one launch must not overlap where the shader writes to one of them: the pointers are `restrict`.
//!
//! # What is kept of the shader
//!
//! Names stay as they are, unless OpenCL C reserves them. The meaning stays that of WGSL where OpenCL C's is another or
//! undefined: integers wrap, a division by zero gives the dividend, a conversion to an integer saturates, a shift counts
//! modulo the width, and what an expression reads is read before the next statement writes. Two guards cost time and
//! are written only with [`Options::checked`]: an index is clamped to its array, and an integer divisor is compared
//! with zero. `fma` becomes `mad`, because devices without the instruction emulate OpenCL's `fma`.
//!
//! What OpenCL C 1.2 cannot say is an [`Error`] that names the construct and its place.
//!
//! naga and this crate call themselves for each expression and block within another. A shader from an untrusted source may
//! nest deeply enough to end the process: limit its depth, or read and write it on a thread with a large stack.
//!
//! # Files
//!
//! | file | what it writes |
//! |---|---|
//! | `module`, `entry` | arguments, functions, how the kernel begins |
//! | `usage`, `analysis`, `kept`, `declarations` | nothing: what is used, which values get a variable, where variables are declared |
//! | `statements`, `loops` | blocks, assignments, control flow |
//! | `expressions`, `places`, `values` | values, what they are read from, constants |
//! | `arithmetic`, `conversions`, `math`, `packing` | operators and built-in functions |
//! | `images` | textures |
//! | `types`, `names` | types, identifiers |

#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]
#![warn(clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented, clippy::unwrap_used)]

mod analysis;
mod arithmetic;
mod conversions;
mod declarations;
mod entry;
mod expressions;
mod halves;
mod images;
mod kept;
mod loops;
mod math;
mod module;
mod names;
mod packing;
mod places;
mod statements;
#[cfg(test)]
mod tests;
mod types;
mod usage;
mod values;

pub use halves::HALF_ARITHMETIC;

use naga::valid::ModuleInfo;
use naga::{Module, Span};
use std::fmt;
use std::sync::OnceLock;

/// How a kernel is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Clamps every index to its array, guards every integer division, and sets the work-group's memory to zeros
    /// before anything else. A shader from an untrusted source then reaches only its own buffers.
    pub checked: bool,
    /// The device computes with halves (`cl_khr_fp16`). Otherwise a kernel may load and store them, and no more.
    pub halves: bool,
    /// Requires the work-group that the shader names. Without it a launch may use any work-group, and the result must
    /// not depend on it.
    pub fixed_work_group: bool,
}

impl Options {
    /// What a shader from an untrusted source is written with.
    pub const fn checked() -> Self {
        Options { checked: true, halves: false, fixed_work_group: true }
    }
}

impl Default for Options {
    /// No checks, no arithmetic with halves, the shader's own work-group.
    fn default() -> Self {
        Options { checked: false, halves: false, fixed_work_group: true }
    }
}

/// A kernel in OpenCL C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The text.
    pub text: String,
    /// The name of the kernel: the entry point's, unless OpenCL C reserves that, as it does `main`.
    pub entry: String,
    /// The bindings whose lengths, in elements, are the last arguments: of type `uint`, in this order.
    pub lengths: Vec<u32>,
}

/// A shader that cannot be written in OpenCL C 1.2.
#[derive(Debug, Clone)]
pub struct Error {
    span: Option<Span>,
    message: String,
}

impl Error {
    /// Where the construct is in the source that naga read, if naga knows it.
    pub fn span(&self) -> Option<Span> {
        self.span.filter(Span::is_defined)
    }

    /// The error with the line of `source`, the text that naga read.
    ///
    /// ```
    /// let shader = "override n: u32;\n@compute @workgroup_size(1) fn main() { _ = n; }";
    /// let module = naga::front::wgsl::parse_str(shader)?;
    /// let info = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty())
    ///     .validate(&module)?;
    /// let error = naga_opencl::write(&module, &info, "main", naga_opencl::Options::default()).unwrap_err();
    /// assert_eq!(error.in_source(shader), "line 1: OpenCL C 1.2 has no equivalent of an override");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_source(&self, source: &str) -> String {
        match self.span() {
            Some(span) => format!("line {}: {self}", span.location(source).line_number),
            None => self.to_string(),
        }
    }

    /// The error at `span`, unless it has a place already.
    fn at(mut self, span: Span) -> Self {
        self.span = self.span().or(Some(span));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Writes the entry point `entry` of a module that naga validated as `info`.
///
/// # Errors
/// If the module has no compute shader of this name, or OpenCL C 1.2 has no equivalent of something in it.
pub fn write(module: &Module, info: &ModuleInfo, entry: &str, options: Options) -> Result<Kernel, Error> {
    // Halves that are only loaded and stored need no arithmetic, which some drivers offer by a prelude.
    match module::write(module, info, entry, Options { halves: false, ..options }) {
        Err(_) if options.halves => module::write(module, info, entry, options),
        stored => stored,
    }
}

/// The name of the kernel that the entry point `entry` becomes.
///
/// ```
/// assert_eq!(naga_opencl::entry_name("scale"), "scale");
/// assert_eq!(naga_opencl::entry_name("main"), "main_");
/// ```
pub fn entry_name(entry: &str) -> String {
    names::Names::default().claim(entry)
}

/// Which writer this is, for keys of caches: another revision may write another text for the same module.
pub fn revision() -> &'static str {
    static REVISION: OnceLock<String> = OnceLock::new();
    REVISION.get_or_init(|| {
        // FNV-1a, 64 bits.
        let hash = SOURCES
            .iter()
            .flat_map(|source| source.bytes())
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{hash:016x}")
    })
}

/// All that decides what is written.
const SOURCES: &[&str] = &[
    include_str!("analysis.rs"),
    include_str!("arithmetic.rs"),
    include_str!("conversions.rs"),
    include_str!("declarations.rs"),
    include_str!("entry.rs"),
    include_str!("expressions.rs"),
    include_str!("halves.rs"),
    include_str!("images.rs"),
    include_str!("kept.rs"),
    include_str!("lib.rs"),
    include_str!("loops.rs"),
    include_str!("math.rs"),
    include_str!("module.rs"),
    include_str!("names.rs"),
    include_str!("packing.rs"),
    include_str!("places.rs"),
    include_str!("statements.rs"),
    include_str!("types.rs"),
    include_str!("usage.rs"),
    include_str!("values.rs"),
];

type Outcome<T> = Result<T, Error>;

/// Refuses a construct.
fn refuse<T>(span: Option<Span>, construct: impl fmt::Display) -> Outcome<T> {
    Err(Error { span, message: format!("OpenCL C 1.2 has no equivalent of {construct}") })
}

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
