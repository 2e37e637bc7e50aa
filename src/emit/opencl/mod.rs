//! OpenCL C 1.2 from WGSL.
//!
//! naga parses and validates the WGSL; what it understood is printed here as a kernel that a GPU
//! programmer can read. The names are those of the WGSL. A storage buffer is a pointer argument, in the
//! order of the bindings; the members of the uniform struct follow as scalar arguments; the lengths of
//! buffers that the text needs come last ([`Printed::lengths`]).
//!
//! WGSL's meaning is kept where OpenCL C's differs or is undefined: integers wrap, a division by zero
//! gives the dividend, a conversion to an integer saturates, a shift counts modulo the width, and what an
//! expression reads is read before the next statement writes. Two things cost time and are left out for
//! kernels that are known not to need them: indices are clamped and integer divisors guarded only where
//! [`Options::checked`] asks for it. `fma` is `mad`, because OpenCL's `fma` is emulated where the hardware
//! rounds twice.
//!
//! | file | what it prints |
//! |---|---|
//! | `module`, `entry` | arguments, functions, how the kernel begins |
//! | `usage`, `analysis`, `kept`, `declarations` | nothing: what is used, which values get a variable, where variables are declared |
//! | `statements`, `loops` | blocks, assignments, control flow |
//! | `expressions`, `places`, `values` | values, what they are read from, constants |
//! | `arithmetic`, `conversions`, `math`, `packing` | operators and built-in functions |
//! | `images` | textures |
//! | `types`, `names` | types, identifiers |

mod analysis;
mod arithmetic;
mod conversions;
mod declarations;
mod entry;
mod expressions;
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

use super::{Dialect, KernelSource, check};
use crate::error::{Error, Result, numbered};
use naga::Span;
use naga::valid::ModuleInfo;

/// How a kernel is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Every index is clamped to its array, integer divisors are guarded, and the work-group's memory
    /// starts as zeros.
    pub checked: bool,
    /// The device computes with halves. Otherwise they are loaded and stored, and no more.
    pub halves: bool,
    /// The kernel requires the work-group that it names. Without, it serves any, and may not depend on it.
    pub fixed_work_group: bool,
}

impl Options {
    /// What a text by someone else is printed with.
    pub const fn checked() -> Self {
        Options { checked: true, halves: false, fixed_work_group: true }
    }
}

/// A kernel in OpenCL C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The text.
    pub text: String,
    /// The name of the kernel: the entry point's, unless that is OpenCL C's own, as `main` is.
    pub entry: String,
    /// The bindings whose lengths, in elements, are the last arguments: of type `uint`, in this order.
    pub lengths: Vec<u32>,
}

/// Prints the entry point `entry` of `wgsl`.
///
/// # Errors
/// [`Error::Compile`] if naga refuses the text, or it says what cannot be said in OpenCL C 1.2: the log
/// names the construct and its line.
pub fn print(label: &str, wgsl: &str, entry: &str, options: Options) -> Result<Printed> {
    let (module, info) = check::parse(label, wgsl)?;
    print_module(label, wgsl, &module, &info, entry, options)
}

/// [`print()`] of what naga made of `wgsl`.
pub(crate) fn print_module(
    label: &str,
    wgsl: &str,
    module: &naga::Module,
    info: &ModuleInfo,
    entry: &str,
    options: Options,
) -> Result<Printed> {
    // Halves that are only loaded and stored need no arithmetic, which some drivers offer by a prelude.
    let stored = module::print(module, info, entry, Options { halves: false, ..options });
    let printed = match stored {
        Err(_) if options.halves && wgsl.contains("enable f16") => {
            module::print(module, info, entry, options)
        }
        stored => stored,
    };
    printed.map_err(|refusal| Error::Compile {
        kernel: label.to_owned(),
        api: "OpenCL C",
        log: refusal.say(wgsl),
        source_text: numbered(wgsl),
    })
}

/// OpenCL C of a kernel of this crate's own.
pub(crate) fn translate(source: &KernelSource) -> Result<KernelSource> {
    let fixed_work_group = source.depends_on_work_group();
    let options = Options { checked: false, halves: true, fixed_work_group };
    let Printed { text, entry, .. } = print(&source.label, &source.text, &source.entry, options)?;
    Ok(KernelSource { dialect: Dialect::OpenClC, text, entry, ..source.clone() })
}

/// The name of the kernel that an entry point becomes.
#[cfg(feature = "opencl")]
pub(crate) fn entry_name(entry: &str) -> String {
    names::Names::default().claim(entry)
}

/// Which writer this is: a text that another one printed may be another text.
#[cfg(feature = "opencl")]
pub(crate) fn revision() -> &'static str {
    static REVISION: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    REVISION.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        SOURCES.iter().for_each(|source| {
            hasher.update(source.as_bytes());
        });
        hasher.finalize().to_hex().to_string()
    })
}

/// All that decides what is printed.
#[cfg(feature = "opencl")]
const SOURCES: &[&str] = &[
    include_str!("analysis.rs"),
    include_str!("arithmetic.rs"),
    include_str!("conversions.rs"),
    include_str!("declarations.rs"),
    include_str!("entry.rs"),
    include_str!("expressions.rs"),
    include_str!("images.rs"),
    include_str!("kept.rs"),
    include_str!("loops.rs"),
    include_str!("math.rs"),
    include_str!("mod.rs"),
    include_str!("module.rs"),
    include_str!("names.rs"),
    include_str!("packing.rs"),
    include_str!("places.rs"),
    include_str!("statements.rs"),
    include_str!("types.rs"),
    include_str!("usage.rs"),
    include_str!("values.rs"),
    crate::emit::halves::ARITHMETIC,
];

type Outcome<T> = std::result::Result<T, Refusal>;

/// What cannot be printed, and where it is.
#[derive(Debug, Clone)]
struct Refusal {
    span: Option<Span>,
    what: String,
}

impl Refusal {
    fn say(&self, wgsl: &str) -> String {
        let line = self.span.filter(Span::is_defined).map(|span| span.location(wgsl).line_number);
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        format!("{line}{} cannot be said in OpenCL C 1.2", self.what)
    }

    /// The refusal at `span`, unless it says a place already.
    fn at(mut self, span: Span) -> Self {
        self.span = self.span.filter(Span::is_defined).or(Some(span));
        self
    }
}

fn refuse<T>(span: Option<Span>, what: impl Into<String>) -> Outcome<T> {
    Err(Refusal { span, what: what.into() })
}
