//! Several kernels compiled as one program, for drivers that compile one program at a time and take long to begin.

use super::call::{Owned, Program, check};
use super::compile::{Compiled, binary_of, build_binary, build_text, identity, kept, new_kernel, suffixed};
use super::{Inner, lock, retarget};
use crate::device::cache::CacheKey;
use crate::emit::{Dialect, KernelSource};
use crate::error::Result;
use crate::limits::Family;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::sync::Arc;

/// Kernels from which on a program of them all is made.
const MIN_KERNELS: usize = 2;

/// What the name of PoCL's driver begins with.
const POCL: &str = "Portable Computing Language";

/// Whether the driver takes less time for one program than for its kernels side by side. NVIDIA's 580.159 on an H200:
/// the 31 kernels of PoseNet, 0.6 to 0.7 s against 1.1. PoCL, which reads its own headers for each program: the first run
/// of a MobileNet V3 of 64 kernels, 8.4 and 9.4 s against 12.0 and 11.3 (3.1, two cores), 6.4 against 9.9 (5.0, 32 cores).
/// Other drivers were not measured.
pub(super) fn pays(inner: &Inner) -> bool {
    inner.info.limits.family == Family::Nvidia || inner.info.driver.starts_with(POCL)
}

/// Compiles those of `sources` that nobody has compiled yet, so that [`super::compile::compile`] finds them. What cannot
/// be joined, or goes wrong, is left to that.
pub(super) fn compile(inner: &Arc<Inner>, sources: &[&KernelSource]) {
    let mut seen = BTreeSet::new();
    let mut missing = Vec::new();
    for &source in sources {
        let identity = identity(source).into_owned();
        let known = lock(&inner.programs).contains_key(&identity) || kept(inner, &identity);
        if !known && seen.insert(identity.clone()) {
            missing.push((identity, source));
        }
    }
    let printed = crate::parallel::map(&missing, |(_, source)| (*source).clone().into_opencl().ok());
    let mut parts = Vec::new();
    for ((identity, _), source) in missing.into_iter().zip(printed) {
        if let Some(part) = source.and_then(|source| Part::of(identity, &source, parts.len())) {
            parts.push(part);
        }
    }
    if parts.len() < MIN_KERNELS {
        return;
    }
    match build(inner, &parts) {
        Ok(program) => {
            let program = Arc::new(program);
            for Part { identity, suffix, .. } in parts {
                let compiled = Compiled { program: Arc::clone(&program), suffix: suffix.into() };
                lock(&inner.programs).entry(identity).or_insert(compiled);
            }
        }
        Err(error) => tracing::debug!("{} kernels as one program: {error}", parts.len()),
    }
}

/// A kernel among others.
struct Part {
    identity: String,
    /// What its functions' names end in.
    suffix: String,
    /// The kernel's name among them.
    entry: CString,
    text: String,
}

impl Part {
    /// Nothing, if the text declares more than macros and functions.
    fn of(identity: String, source: &KernelSource, number: usize) -> Option<Self> {
        if source.dialect != Dialect::OpenClC || retarget::is_needed(&source.text) {
            return None;
        }
        let names = Names::of(&source.text)?;
        let suffix = format!("_k{number}");
        let mut text = String::with_capacity(source.text.len() + 64 * names.functions.len());
        for name in &names.functions {
            text.push_str(&format!("#define {name} {name}{suffix}\n"));
        }
        text.push_str(&source.text);
        text.push('\n');
        for name in names.functions.iter().chain(&names.macros) {
            text.push_str(&format!("#undef {name}\n"));
        }
        names.functions.contains(source.entry.as_str()).then_some(())?;
        let entry = suffixed(&CString::new(source.entry.as_str()).ok()?, &suffix).ok()?;
        Some(Part { identity, suffix, entry, text })
    }
}

/// What a text declares, outside of functions.
struct Names<'t> {
    functions: BTreeSet<&'t str>,
    macros: BTreeSet<&'t str>,
}

impl<'t> Names<'t> {
    /// Nothing, where there is anything else, or a line that is not understood: what begins in the first column is a
    /// macro, a comment, a pragma, or the head or end of a function.
    fn of(text: &'t str) -> Option<Self> {
        let mut names = Names { functions: BTreeSet::new(), macros: BTreeSet::new() };
        let word = |text: &'t str| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with([' ', '\t'])) {
            if let Some(rest) = line.strip_prefix("#define ") {
                names.macros.insert(word(rest.trim_start()).filter(|name| !name.is_empty())?);
            } else if line.starts_with("//")
                || line.starts_with("#pragma ")
                || line.starts_with(['}', ')', '{'])
            {
                // `} name;` ends the declaration of a type.
                (!line.ends_with(';')).then_some(())?;
            } else {
                let head = line.split('(').next().unwrap_or(line);
                let name = head.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
                let is_function = line.contains('(') && !line.contains('=') && !line.ends_with(';');
                (is_function && !name.is_empty()).then_some(())?;
                if !name.starts_with("__") {
                    names.functions.insert(name);
                }
            }
        }
        Some(names)
    }
}

/// The program of all parts: from the disk if it was compiled before.
fn build(inner: &Inner, parts: &[Part]) -> Result<Owned<Program>> {
    let whole = |program: &Owned<Program>| {
        parts.iter().try_for_each(|part| check("clCreateKernel", new_kernel(program, &part.entry)).map(drop))
    };
    let text: String = parts.iter().map(|part| part.text.as_str()).collect();
    let disk = lock(&inner.cache).clone();
    let (info, options) = (&inner.info, inner.options.to_string_lossy());
    let key = CacheKey::of(&[info.api, &info.name, &info.driver, &options, "joined", &text]);
    if let Some(binary) = disk.as_ref().and_then(|disk| disk.get(key)) {
        match build_binary(inner, &binary).and_then(|program| whole(&program).map(|()| program)) {
            Ok(program) => return Ok(program),
            Err(error) => tracing::warn!("{} kernels: the kept binary is refused: {error}", parts.len()),
        }
    }
    let program = build_text(inner, "several kernels", &text)?;
    whole(&program)?;
    if let Some(disk) = disk {
        match binary_of(&program) {
            Ok(binary) => disk.put(key, &binary),
            Err(error) => tracing::debug!("{} kernels: no binary to keep: {error}", parts.len()),
        }
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::opencl::OpenClDevice;
    use crate::device::{Device, Dispatch, Memory};
    use crate::dtype::DType;
    use crate::emit::{Access, Binding, Element, Interface, Operand};

    /// Writes `value`, by way of a macro and a function that all of them have.
    fn writes(value: u32) -> KernelSource {
        KernelSource {
            label: format!("writes {value}"),
            entry: "write".to_owned(),
            dialect: Dialect::OpenClC,
            text: format!(
                "// A comment.\n#define VALUE {value}.0f\n\nfloat value(const uint at) {{\n    return VALUE + at;\n}}\n\n\
                 __kernel __attribute__((reqd_work_group_size(4, 1, 1)))\nvoid write(\n    __global float* dst\n) {{\n    \
                 dst[get_global_id(0)] = value(get_global_id(0));\n}}\n"
            ),
            interface: Interface {
                bindings: vec![Binding::new(Operand::Dst, Element::Scalar(DType::F32), Access::Write)],
                params: vec![],
            },
            work_group: [4, 1, 1],
        }
    }

    #[test]
    fn kernels_of_one_program_keep_their_own_names_and_values() {
        let Ok(device) = OpenClDevice::open(None) else {
            println!("skipped: no OpenCL device");
            return;
        };
        device.keep_kernels(None);
        let mut sources: Vec<KernelSource> = (1..=5).map(|value| writes(10 * value)).collect();
        // What declares a variable of the program stays by itself, and what does not compile harms no other.
        sources.push(KernelSource {
            text: format!("__constant float VALUES[2] = {{1.0f, 2.0f}};\n{}", sources[0].text),
            ..sources[0].clone()
        });
        compile(&device.inner, &sources.iter().collect::<Vec<_>>());
        assert_eq!(lock(&device.inner.programs).len(), 5);
        for (source, wanted) in sources.iter().zip([10.0, 20.0, 30.0, 40.0, 50.0, 10.0]) {
            // SAFETY: it writes four floats, of as many invocations.
            let pipeline = unsafe { device.compile_unchecked(source) }.expect("a kernel");
            let dst = device.alloc(16, Memory::Device).expect("a buffer");
            let dispatch =
                Dispatch { pipeline, resources: vec![(&dst).into()], params: vec![], groups: [1, 1, 1] };
            let recording = device.record(&[dispatch]).expect("a recording");
            let read = device.run(&[], &recording, &[&dst.whole()]).expect("a run");
            let found: Vec<f32> = bytemuck::pod_collect_to_vec(&read[0]);
            assert_eq!(found, [wanted, wanted + 1.0, wanted + 2.0, wanted + 3.0]);
        }
        let text = writes(1).text.replace("VALUE +", "nothing +");
        let broken = KernelSource { text, ..writes(1) };
        compile(&device.inner, &[&broken, &writes(2)]);
        assert_eq!(lock(&device.inner.programs).len(), 6);
        // SAFETY: it does not compile.
        let error = unsafe { device.compile_unchecked(&broken) }.expect_err("nonsense");
        assert!(error.to_string().contains("writes 1"), "{error}");
    }

    #[test]
    fn a_program_of_several_kernels_is_kept() {
        let Ok(device) = OpenClDevice::open(None) else {
            println!("skipped: no OpenCL device");
            return;
        };
        let directory = tempfile::tempdir().expect("a directory");
        let sources = [writes(1), writes(2)];
        let both = [&sources[0], &sources[1]];
        let count = || std::fs::read_dir(directory.path().join("kernels")).map_or(0, Iterator::count);
        for _ in 0..2 {
            device.keep_kernels(Some(crate::device::cache::KernelCache::within(directory.path())));
            lock(&device.inner.programs).clear();
            compile(&device.inner, &both);
            assert_eq!((lock(&device.inner.programs).len(), count()), (2, 1));
        }
    }
}
