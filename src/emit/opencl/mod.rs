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
//! | `module` | constants, arguments, functions |
//! | `analysis` | (decides) which values get a variable, and where variables are declared |
//! | `statements`, `loops` | blocks, assignments, control flow |
//! | `expressions`, `places` | values, and what they are read from |
//! | `arithmetic`, `conversions`, `math`, `packing` | operators and built-in functions |
//! | `images` | textures |
//! | `types`, `names` | types, identifiers |

mod analysis;
mod arithmetic;
mod conversions;
mod expressions;
mod images;
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
        Err(_) if options.halves && uses_halves(module) => module::print(module, info, entry, options),
        stored => stored,
    };
    printed.map_err(|refusal| Error::Compile {
        kernel: label.to_owned(),
        api: "OpenCL C",
        log: refusal.say(wgsl),
        source_text: numbered(wgsl),
    })
}

fn uses_halves(module: &naga::Module) -> bool {
    module.types.iter().any(|(_, ty)| ty.inner.scalar_width() == Some(2))
}

/// OpenCL C of a kernel of this crate's own.
pub(crate) fn translate(source: &KernelSource) -> Result<KernelSource> {
    let fixed_work_group = depends_on_work_group(&source.text);
    let options = Options { checked: false, halves: true, fixed_work_group };
    let Printed { text, entry, .. } = print(&source.label, &source.text, &source.entry, options)?;
    Ok(KernelSource { dialect: Dialect::OpenClC, text, entry, ..source.clone() })
}

/// Whether a text in WGSL says more of the work-group than that it has one.
fn depends_on_work_group(wgsl: &str) -> bool {
    let shared = ["var<workgroup>", "local_invocation", "workgroup_id"];
    wgsl.lines()
        .filter(|line| !line.starts_with("const WG_") && !line.starts_with("@compute @workgroup_size("))
        .any(|line| line.contains("WG_") || shared.iter().any(|word| line.contains(word)))
}

type Outcome<T> = std::result::Result<T, Refusal>;

/// What cannot be printed, and where it stands.
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
