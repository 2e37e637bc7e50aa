//! From source text to a kernel that is known to take the arguments it should.

use super::call::{Kernel, Owned, Program, check, failure};
use super::{Inner, arguments, cl, half, lock, retarget};
use crate::device::cache::CacheKey;
use crate::emit::check::check_foreign;
use crate::emit::depth::on_large_stack;
use crate::emit::{Dialect, KernelSource, opencl};
use crate::error::{Error, Result, numbered};
use cl3::program::CL_PROGRAM_BUILD_LOG;
use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::Arc;

/// How programs are built.
///
/// Fused multiply-add is allowed where it is fast. Relaxed mathematics is not: results are held
/// against tolerances that assume IEEE arithmetic. The argument info is what
/// [`super::arguments`] reads.
const OPTIONS: &CStr = c"-cl-std=CL1.2 -cl-mad-enable -cl-kernel-arg-info";

/// [`OPTIONS`] for NVIDIA's devices that have PTX's `dp4a`, with which the writer prints products of bytes.
const OPTIONS_WITH_DP4A: &CStr = c"-cl-std=CL1.2 -cl-mad-enable -cl-kernel-arg-info -D NAGA_OPENCL_DP4A";

/// The compute capability, times ten, from which on devices have `dp4a` (*PTX ISA*, section 9.7.1).
const DP4A: u32 = 61;

/// How programs are built for a device of this compute capability, times ten, where it is known.
pub(super) fn options(capability: Option<u32>) -> &'static CStr {
    match capability {
        Some(DP4A..) => OPTIONS_WITH_DP4A,
        _ => OPTIONS,
    }
}

/// A built program.
#[derive(Clone)]
pub(super) struct Compiled {
    pub(super) program: Arc<Owned<Program>>,
    /// What is added to the names of a text's kernels in it.
    pub(super) suffix: Arc<str>,
}

/// A built program, the name of the kernel in it, and the device they belong to.
#[derive(Clone)]
pub(crate) struct RawPipeline {
    program: Arc<Owned<Program>>,
    entry: Arc<CStr>,
    /// The bindings whose numbers of elements are the kernel's last arguments.
    lengths: Arc<[u32]>,
    device: Arc<Inner>,
}

impl std::fmt::Debug for RawPipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenCL kernel {:?}", self.entry)
    }
}

impl RawPipeline {
    /// Whether it was compiled for `inner`.
    pub(super) fn is_of(&self, inner: &Inner) -> bool {
        ptr::eq(Arc::as_ptr(&self.device), inner)
    }

    /// The bindings whose numbers of elements are the kernel's last arguments, in their order.
    pub(super) fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// A kernel object of its own. Arguments are part of the object, so each dispatch needs one.
    pub(super) fn kernel(&self) -> Result<Owned<Kernel>> {
        check("clCreateKernel", new_kernel(&self.program, &self.entry))
    }
}

/// The name of a kernel in a program of several texts.
pub(super) fn suffixed(entry: &CStr, suffix: &str) -> Result<CString> {
    let name = [entry.to_bytes(), suffix.as_bytes()].concat();
    CString::new(name).map_err(|error| Error::Internal(format!("the name of a kernel: {error}")))
}

pub(super) fn new_kernel(program: &Owned<Program>, entry: &CStr) -> std::result::Result<Owned<Kernel>, i32> {
    let raw = cl::create_kernel(program.raw(), entry)?;
    // SAFETY: the call made the kernel, and this is its only reference.
    Ok(unsafe { Owned::new(raw, program.hung()) })
}

/// Compiles text from outside the crate.
pub(super) fn compile_foreign(inner: &Arc<Inner>, source: &KernelSource) -> Result<RawPipeline> {
    // Drivers read a text as naga does: one call within another for what is nested.
    on_large_stack(&source.label, &source.text, || compile_checked(inner, source))
}

/// Compiles text from any source: WGSL, printed with checks.
pub(super) fn compile_checked(inner: &Arc<Inner>, source: &KernelSource) -> Result<RawPipeline> {
    if source.dialect != Dialect::Wgsl {
        let what = format!("kernel {} in {} with checks", source.label, source.dialect);
        let reason =
            "nothing keeps its pointers within its buffers: give it in WGSL, or see `compile_unchecked`";
        return Err(Error::unsupported(what, reason));
    }
    check_foreign(source, inner.info.limits.local_memory)?;
    let halves = inner.info.limits.native_half && source.text.contains("enable f16");
    let options = opencl::Options { halves, ..opencl::Options::checked() };
    let printed = opencl::print(&source.label, &source.text, &source.entry, options)?;
    let opencl::Kernel { text, entry, lengths } = printed;
    compile(inner, &KernelSource { dialect: Dialect::OpenClC, text, entry, ..source.clone() }, &lengths)
}

/// Compiles `source`, printed without checks if it is in WGSL, or takes the program compiled from the same
/// text before, and holds the kernel against the interface and the work-group of `source`. The kernel's last arguments are the
/// numbers of elements in the bindings `lengths`. A driver that is only believed to compute with halves
/// shows it first.
pub(super) fn compile(inner: &Arc<Inner>, source: &KernelSource, lengths: &[u32]) -> Result<RawPipeline> {
    if half::doubtful(inner, source) {
        half::check(inner)?;
    }
    compile_unasked(inner, source, lengths)
}

/// [`compile`], whatever the driver is believed to do.
pub(super) fn compile_unasked(
    inner: &Arc<Inner>,
    source: &KernelSource,
    lengths: &[u32],
) -> Result<RawPipeline> {
    let wrong =
        |found: String, wanted: String| Err(Error::input(format!("kernel {}", source.label), found, wanted));
    let name = match source.dialect {
        Dialect::OpenClC => source.entry.clone(),
        Dialect::Wgsl => opencl::entry_name(&source.entry),
    };
    let Ok(entry) = CString::new(name) else {
        return wrong(format!("{:?}", source.entry), "a function name without NUL".to_owned());
    };
    let identity = identity(source);
    arguments::check_work_group(&inner.info.limits, source)?;
    let cached = lock(&inner.programs).get(&*identity).cloned();
    let Compiled { program, suffix } = match cached {
        Some(compiled) => compiled,
        None => {
            // Not under the lock: other threads may compile other kernels meanwhile.
            let program = Arc::new(build(inner, source, &identity, &entry)?);
            let compiled = Compiled { program, suffix: "".into() };
            lock(&inner.programs).entry(identity.into_owned()).or_insert(compiled).clone()
        }
    };
    let entry = if suffix.is_empty() { entry } else { suffixed(&entry, &suffix)? };
    let kernel = match new_kernel(&program, &entry) {
        Ok(kernel) => kernel,
        Err(cl3::error_codes::CL_INVALID_KERNEL_NAME) => {
            return wrong("no such kernel in its text".to_owned(), source.entry.clone());
        }
        Err(code) => return Err(failure("clCreateKernel", code)),
    };
    arguments::check(&kernel, inner.id.id(), source, lengths.len())?;
    Ok(RawPipeline { program, entry: entry.into(), lengths: lengths.into(), device: Arc::clone(inner) })
}

/// What a program is known by: its text, or what it is printed from and by which writer, so that a kernel
/// that was kept need not be printed.
pub(super) fn identity(source: &KernelSource) -> Cow<'_, str> {
    match source.dialect {
        Dialect::OpenClC => Cow::Borrowed(&source.text),
        Dialect::Wgsl => Cow::Owned(format!("{}\n{}", opencl::revision(), source.without_work_group())),
    }
}

/// What the program that is known by `identity` is kept as on the disk.
fn key(inner: &Inner, identity: &str) -> CacheKey {
    let info = &inner.info;
    CacheKey::of(&[info.api, &info.name, &info.driver, &inner.options.to_string_lossy(), identity])
}

/// Whether there is a file of the program that is known by `identity`.
pub(super) fn kept(inner: &Inner, identity: &str) -> bool {
    lock(&inner.cache).as_ref().is_some_and(|disk| disk.has(key(inner, identity)))
}

/// The program of `source`, which is known by `identity`: from the disk if the driver takes what it gave
/// there and it has the kernel, else compiled.
fn build(inner: &Inner, source: &KernelSource, identity: &str, entry: &CStr) -> Result<Owned<Program>> {
    let Some(disk) = lock(&inner.cache).clone() else {
        return build_anew(inner, source);
    };
    let key = key(inner, identity);
    if let Some(binary) = disk.get(key) {
        let kept = build_binary(inner, &binary)
            .and_then(|program| check("clCreateKernel", new_kernel(&program, entry)).map(|_| program));
        match kept {
            Ok(program) => return Ok(program),
            Err(error) => tracing::warn!("kernel {}: the kept binary is refused: {error}", source.label),
        }
    }
    let program = build_anew(inner, source)?;
    match binary_of(&program) {
        Ok(binary) => disk.put(key, &binary),
        Err(error) => tracing::debug!("kernel {}: no binary to keep: {error}", source.label),
    }
    Ok(program)
}

/// The program of `source` by the driver's compiler, for one architecture where the text asks for it.
fn build_anew(inner: &Inner, source: &KernelSource) -> Result<Owned<Program>> {
    build_anew_with(inner, source, inner.options).map(|(program, _)| program)
}

/// Builds the program of `source` with these options, for one architecture where the text asks for it. Returns what the
/// compiler printed, too.
pub(super) fn build_anew_with(
    inner: &Inner,
    source: &KernelSource,
    options: &CStr,
) -> Result<(Owned<Program>, String)> {
    let source = &source.clone().into_opencl()?;
    let (program, printed) = build_text_with(inner, &source.label, &source.text, options)?;
    if !retarget::is_needed(&source.text) {
        return Ok((program, printed));
    }
    let text = retarget::retarget(&source.label, &binary_of(&program)?)?;
    build_binary_with(inner, text.as_bytes(), options).map_err(|error| match error {
        Error::OutOfMemory { .. } | Error::DeviceLost { .. } => error,
        error => Error::Compile {
            kernel: source.label.clone(),
            api: "OpenCL",
            log: format!("as PTX: {error}"),
            source_text: numbered(&text),
        },
    })
}

/// Whether the driver takes kernels for warp groups; it is asked only where the device may have them.
pub(super) fn takes_warp_groups(inner: &Inner, local_memory: u32) -> bool {
    let question = retarget::question(local_memory);
    let entry = c"takes_warp_groups";
    let built = build(inner, &question, &question.text, entry)
        .and_then(|program| check("clCreateKernel", new_kernel(&program, entry)));
    match built {
        Ok(_) => true,
        Err(error) => {
            tracing::debug!("{}: no kernels for warp groups: {error}", inner.info);
            false
        }
    }
}

/// What the driver made of a program for the context's only device.
pub(super) fn binary_of(program: &Owned<Program>) -> Result<Vec<u8>> {
    let binary = check("clGetProgramInfo", cl::get_program_binary(program.raw()))?;
    if binary.is_empty() {
        return Err(Error::unsupported("a program's binary", "the driver gives none for one device"));
    }
    Ok(binary)
}

pub(super) fn build_binary(inner: &Inner, binary: &[u8]) -> Result<Owned<Program>> {
    build_binary_with(inner, binary, inner.options).map(|(program, _)| program)
}

/// The program of a binary, and what the compiler printed.
pub(super) fn build_binary_with(
    inner: &Inner,
    binary: &[u8],
    options: &CStr,
) -> Result<(Owned<Program>, String)> {
    let device = inner.id.id();
    // SAFETY: the context is live, its device is given, and the binary, which is live during the
    // call, is one that this driver gave for this device: both are part of its key, and its hash
    // says that it is whole; or it is PTX that was made from such a one, which drivers check. Test: `compiled_kernels_are_kept`.
    let raw = unsafe { cl::create_program_with_binary(inner.context.raw(), device, binary) };
    // SAFETY: the call made the program, and this is its only reference.
    let program: Owned<Program> =
        unsafe { Owned::new(check("clCreateProgramWithBinary", raw)?, inner.context.hung()) };
    let built = cl::build_program(program.raw(), device, options);
    match built {
        Ok(()) => {
            let printed = build_log(&program, device).unwrap_or_default();
            Ok((program, printed))
        }
        Err(code) => {
            let log = build_log(&program, device).unwrap_or_default();
            let error = failure("clBuildProgram", code);
            let says_more = !log.is_empty() && !is_no_text(code);
            Err(if says_more { Error::unsupported(error.to_string(), log) } else { error })
        }
    }
}

/// Whether `code` of `clBuildProgram` says nothing of the text: there is no memory, or no device.
fn is_no_text(code: i32) -> bool {
    !matches!(failure("clBuildProgram", code), Error::Driver { .. })
}

fn build_log(
    program: &Owned<Program>,
    device: cl3::device::cl_device_id,
) -> std::result::Result<String, i32> {
    let log = cl::get_program_build_data(program.raw(), device, CL_PROGRAM_BUILD_LOG);
    log.map(|bytes| String::from_utf8_lossy(&bytes).trim_matches(['\0', '\n', ' ']).to_owned())
}

pub(super) fn build_text(inner: &Inner, label: &str, text: &str) -> Result<Owned<Program>> {
    build_text_with(inner, label, text, inner.options).map(|(program, _)| program)
}

/// A program, and what the compiler printed.
pub(super) fn build_text_with(
    inner: &Inner,
    label: &str,
    text: &str,
    options: &CStr,
) -> Result<(Owned<Program>, String)> {
    let raw = cl::create_program_with_source(inner.context.raw(), text);
    // SAFETY: the call made the program, and this is its only reference.
    let program: Owned<Program> =
        unsafe { Owned::new(check("clCreateProgramWithSource", raw)?, inner.context.hung()) };
    let device = inner.id.id();
    let built = cl::build_program(program.raw(), device, options);
    let log = build_log(&program, device);
    match built {
        Ok(()) => {
            let printed = log.unwrap_or_default();
            if !printed.is_empty() {
                tracing::debug!("kernel {label}: {printed}");
            }
            Ok((program, printed))
        }
        Err(code) if is_no_text(code) => Err(failure("clBuildProgram", code)),
        Err(code) => Err(Error::Compile {
            kernel: label.to_owned(),
            api: "OpenCL",
            log: match log {
                Ok(log) => format!("{}\n{log}", failure("clBuildProgram", code)),
                Err(no_log) => {
                    format!(
                        "{}\n{}",
                        failure("clBuildProgram", code),
                        failure("clGetProgramBuildInfo", no_log)
                    )
                }
            },
            source_text: numbered(text),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::opencl::OpenClDevice;
    use crate::device::{Device, Dispatch, Memory, Pipeline, handle};
    use crate::dtype::DType;
    use crate::emit::{Access, Binding, Element, Interface, Operand};

    #[test]
    fn a_kernel_is_reported_how_many_elements_its_buffers_have() {
        let Ok(device) = OpenClDevice::open(None) else {
            println!("skipped: no OpenCL device");
            return;
        };
        let binding = Binding::new;
        let source = KernelSource {
            label: "lengths".to_owned(),
            entry: "lengths".to_owned(),
            dialect: Dialect::OpenClC,
            text: "__kernel void lengths(
                __global const float4* src, __global float* dst, const uint dst_length, const uint length
            ) {
                if (get_global_id(0) < dst_length) dst[get_global_id(0)] = dst_length + 1000 * length;
            }"
            .to_owned(),
            interface: Interface {
                bindings: vec![
                    binding(Operand::Src, Element::Vec4(DType::F32), Access::Read),
                    binding(Operand::Dst, Element::Scalar(DType::F32), Access::Write),
                ],
                params: vec![],
            },
            work_group: [16, 1, 1],
        };
        let too_few = compile(&device.inner, &source, &[1]).expect_err("one argument is left");
        assert!(too_few.to_string().contains("4 arguments"), "{too_few}");
        let pipeline = Pipeline {
            raw: handle::RawPipeline::OpenCl(compile(&device.inner, &source, &[1, 0]).expect("a kernel")),
            label: source.label.clone(),
            interface: source.interface.clone(),
            work_group: source.work_group,
        };
        let buffer = || device.alloc(4096, Memory::Device).expect("a buffer");
        let (src, dst) = (buffer(), buffer());
        // Seven floats, and three whole vec4s.
        let parts = [src.slice(0, 60), dst.slice(0, 28)].map(|part| part.expect("a part"));
        let resources = parts.into_iter().map(Into::into).collect();
        let dispatch = Dispatch { pipeline, resources, params: vec![], groups: [4, 1, 1] };
        let recording = device.record(&[dispatch]).expect("a recording");
        let read = device.run(&[], &recording, &[&dst.slice(0, 32).expect("a part")]).expect("a run");
        let found: Vec<f32> = bytemuck::pod_collect_to_vec(&read[0]);
        assert_eq!(found, [3007.0, 3007.0, 3007.0, 3007.0, 3007.0, 3007.0, 3007.0, 0.0]);
    }
}
