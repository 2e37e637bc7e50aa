//! What an OpenCL driver says of a kernel that it compiled: `clGetKernelWorkGroupInfo`, and what NVIDIA's compiler prints.

use super::call::check;
use super::{Inner, cl, compile};
use crate::device::report::{CompiledProgram, CompilerReport, Statistic};
use crate::emit::{Dialect, KernelSource, opencl};
use crate::error::{Error, Result};
use crate::limits::Family;
use cl3::kernel::{
    CL_KERNEL_LOCAL_MEM_SIZE, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, CL_KERNEL_PRIVATE_MEM_SIZE,
    CL_KERNEL_WORK_GROUP_SIZE,
};
use std::ffi::CString;
use std::str::FromStr;
use std::sync::Arc;

/// What every driver is asked for, as the specification calls it, and what that is.
const ASKED: [(u32, &str, &str); 4] = [
    (
        CL_KERNEL_WORK_GROUP_SIZE,
        "CL_KERNEL_WORK_GROUP_SIZE",
        "the largest work-group that the kernel can be launched with",
    ),
    (
        CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
        "CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE",
        "what work-groups are best a multiple of",
    ),
    (CL_KERNEL_LOCAL_MEM_SIZE, "CL_KERNEL_LOCAL_MEM_SIZE", "bytes of local memory of a work-group"),
    (
        CL_KERNEL_PRIVATE_MEM_SIZE,
        "CL_KERNEL_PRIVATE_MEM_SIZE",
        "bytes of memory of an invocation, where spilled registers are too",
    ),
];

/// What NVIDIA's compiler prints only if it is told to.
const VERBOSE: &str = " -cl-nv-verbose";

/// How the numbers in what it prints are written, and what they are.
const PRINTED: [(&str, &str, &str); 6] = [
    ("registers", "Used {} registers", "registers of an invocation"),
    ("spill stores", "{} bytes spill stores", "bytes of registers that are written to memory"),
    ("spill loads", "{} bytes spill loads", "bytes of registers that are read from memory"),
    ("stack frame", "{} bytes stack frame", "bytes of memory of an invocation"),
    ("shared memory", "{} bytes smem", "bytes of local memory of a work-group"),
    ("barriers", "used {} barriers", "barriers"),
];

/// Compiles `source` as the ops' kernels are and asks the driver.
pub(super) fn examine(inner: &Arc<Inner>, source: &KernelSource) -> Result<CompilerReport> {
    let name = match source.dialect {
        Dialect::OpenClC => source.entry.clone(),
        Dialect::Wgsl => opencl::entry_name(&source.entry),
    };
    let entry = CString::new(name).map_err(|error| Error::Internal(format!("a kernel's name: {error}")))?;
    let verbose = inner.info.limits.family == Family::Nvidia;
    let options = match verbose {
        true => &*CString::new(format!("{}{VERBOSE}", inner.options.to_string_lossy()))
            .map_err(|error| Error::Internal(format!("a program's options: {error}")))?,
        false => inner.options,
    };
    let (program, log) = compile::build_anew_with(inner, source, options)?;
    let kernel = check("clCreateKernel", compile::new_kernel(&program, &entry))?;
    let mut statistics = Vec::new();
    for (parameter, name, description) in ASKED {
        let value = cl::get_kernel_work_group_data(kernel.raw(), inner.id.id(), parameter);
        let value = value.ok().and_then(|bytes| cl::number(&bytes));
        statistics.extend(value.map(|value| Statistic::new(name, description, value as f64)));
    }
    if verbose {
        statistics.extend(printed(&log));
    }
    let program = CompiledProgram { name: source.entry.clone(), subgroup: 0, statistics };
    let means = if verbose { "-cl-nv-verbose" } else { "clGetKernelWorkGroupInfo" };
    Ok(CompilerReport { means: Some(means), programs: vec![program], log })
}

/// The numbers in what NVIDIA's compiler printed of a program of one kernel.
fn printed(log: &str) -> Vec<Statistic> {
    let found = PRINTED.iter().filter_map(|(name, pattern, description)| {
        Some(Statistic::new(name, description, f64::from(written(log, pattern)?)))
    });
    found.collect()
}

/// The number that stands for `{}` in the first place of `text` that is written like `pattern`.
fn written(text: &str, pattern: &str) -> Option<u32> {
    let (before, after) = pattern.split_once("{}")?;
    if before.is_empty() {
        let (head, _) = text.split_once(after)?;
        let digits = head.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
        return u32::from_str(&head[digits..]).ok();
    }
    let (_, tail) = text.split_once(before)?;
    let digits: String = tail.chars().take_while(char::is_ascii_digit).collect();
    u32::from_str(&digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `ptxas -v` prints about a kernel; NVIDIA's driver passes it on.
    const LOG: &str = "ptxas info    : 0 bytes gmem\n\
        ptxas info    : Compiling entry function 'pointwise_micro' for 'sm_90'\n\
        ptxas info    : Function properties for pointwise_micro\n\
        ptxas         .     16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n\
        ptxas info    : Used 56 registers, used 1 barriers, 16 bytes cumulative stack size, 4096 bytes smem";

    #[test]
    fn what_nvidia_prints_is_read() {
        let found: Vec<(String, f64)> =
            printed(LOG).into_iter().map(|found| (found.name, found.value)).collect();
        let wanted = [
            ("registers", 56.0),
            ("spill stores", 12.0),
            ("spill loads", 20.0),
            ("stack frame", 16.0),
            ("shared memory", 4096.0),
            ("barriers", 1.0),
        ];
        assert_eq!(found, wanted.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(printed("no such thing"), []);
        assert_eq!(printed("x bytes smem"), []);
    }
}
