//! OpenCL C from a kernel in WGSL, by `naga-opencl`.

use super::{Dialect, KernelSource, check};
use crate::error::{Error, Result, numbered};
#[cfg(feature = "opencl")]
pub use naga_opencl::{HALF_ARITHMETIC, entry_name, revision};
pub use naga_opencl::{Kernel, Options};

/// Writes the entry point `entry` of `wgsl`.
///
/// # Errors
/// [`Error::Compile`] if naga refuses the text, or OpenCL C 1.2 has no equivalent of something in it: the log names the
/// construct and its line.
pub fn print(label: &str, wgsl: &str, entry: &str, options: Options) -> Result<Kernel> {
    let (module, info) = check::parse(label, wgsl)?;
    naga_opencl::write(&module, &info, entry, options).map_err(|error| Error::Compile {
        kernel: label.to_owned(),
        api: "OpenCL C",
        log: error.in_source(wgsl),
        source_text: numbered(wgsl),
    })
}

/// OpenCL C of a kernel of this crate's own.
pub(crate) fn translate(source: &KernelSource) -> Result<KernelSource> {
    let fixed_work_group = source.depends_on_work_group();
    let options = Options { checked: false, halves: true, fixed_work_group };
    let Kernel { text, entry, .. } = print(&source.label, &source.text, &source.entry, options)?;
    Ok(KernelSource { dialect: Dialect::OpenClC, text, entry, ..source.clone() })
}
