//! Whether a driver that does not list half arithmetic computes with halves all the same.
//!
//! NVIDIA's compiler takes it (driver 580). Where `DIPTYCH_UNLISTED_HALVES=1` asks for it,
//! [`Limits::native_half`](crate::Limits::native_half) says yes for its GPUs from what they are. Before the first kernel that relies on it, a tiny one is compiled and run,
//! and its results are compared to the bit. A device that fails it refuses every such kernel; nothing
//! is asked of devices that list `cl_khr_fp16`, nor of sessions that do not use it.

use super::{Inner, compile, query, record, run};
use crate::device::{Dispatch, Memory, Pipeline, Recording, handle};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Dialect, Element, Interface, KernelSource, Operand, opencl};
use crate::error::{Error, Result};
use half::f16;
use std::sync::Arc;

/// `mad` rounds once to a half, `clamp` keeps within bounds, and f32 comes back as it went.
const BODY: &str = "\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void half_probe(__global const half4* restrict src, __global half4* restrict dst) {
    const half4 sum = mad(load_half4(src, 0u), load_half4(src, 1u), (half4)(1.0h));
    const half4 kept = clamp(sum, (half4)(0.0h), (half4)(6.0h));
    dst[0] = sum;
    dst[1] = convert_half4((float4)(convert_float(kept.x), convert_float(kept.y), 0.5f, convert_float(kept.w)));
}
";
const INPUT: [f32; 8] = [1.5, -2.0, 0.25, 2048.0, 2.0, 3.0, -8.0, 1.0];
/// 2049 lies between two halves, and the even one is 2048.
const WANTED: [f32; 8] = [4.0, -5.0, -1.0, 2048.0, 4.0, 0.0, 0.5, 6.0];

/// Whether `source` computes with halves on a device that does not list it.
pub(super) fn doubtful(inner: &Inner, source: &KernelSource) -> bool {
    let uses = source.text.starts_with(opencl::HALF_ARITHMETIC) || source.text.contains("vec4<f16>");
    uses && !query::extensions(inner.id.id()).is_ok_and(|listed| query::lists_halves(&listed))
}

/// Refuses unless the driver computes with halves; found out once.
pub(super) fn check(inner: &Arc<Inner>) -> Result<()> {
    let found = inner.halves.get_or_init(|| match probe(inner) {
        Ok(found) if found == WANTED.map(f16::from_f32) => Ok(()),
        Ok(found) => Err(format!("gives {found:?} for {WANTED:?}")),
        Err(error) => Err(format!("fails at it: {error}")),
    });
    found.clone().map_err(|why| {
        let what = format!("half arithmetic on {}", inner.info);
        Error::unsupported(what, format!("its driver does not list cl_khr_fp16, and {why}"))
    })
}

fn probe(inner: &Arc<Inner>) -> Result<Vec<f16>> {
    let binding = |operand, access| Binding::new(operand, Element::Vec4(DType::F16), access);
    let interface = Interface {
        bindings: vec![binding(Operand::Src, Access::Read), binding(Operand::Dst, Access::Write)],
        params: vec![],
    };
    let source = KernelSource {
        label: "half_probe".to_owned(),
        entry: "half_probe".to_owned(),
        dialect: Dialect::OpenClC,
        text: format!("{}{BODY}", opencl::HALF_ARITHMETIC),
        interface: interface.clone(),
        work_group: [1; 3],
    };
    let pipeline = Pipeline {
        raw: handle::RawPipeline::OpenCl(compile::compile_unasked(inner, &source, &[])?),
        label: source.label.clone(),
        interface,
        work_group: source.work_group,
    };
    let buffer = || {
        let (raw, bytes) = super::memory::alloc(inner, 16, Memory::Device)?;
        Ok::<_, Error>(crate::device::Buffer { raw: handle::RawBuffer::OpenCl(raw), bytes })
    };
    let (src, dst) = (buffer()?, buffer()?);
    let resources = vec![(&src).into(), (&dst).into()];
    let dispatch = Dispatch { pipeline, resources, params: vec![], groups: [1; 3] };
    let recording = Recording {
        raw: handle::RawRecording::OpenCl(record::record(inner, std::slice::from_ref(&dispatch))?),
        labels: vec![source.label],
    };
    let input: Vec<u8> = INPUT.iter().flat_map(|&value| f16::from_f32(value).to_ne_bytes()).collect();
    let read = run::run(inner, &[(&src.whole(), &input)], &recording, &[&dst.whole()])?;
    Ok(read.parts().into_iter().flat_map(bytemuck::pod_collect_to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::opencl::OpenClDevice;

    #[test]
    fn a_driver_computes_with_halves_or_says_that_it_does_not() {
        let Ok(device) = OpenClDevice::open(None) else {
            println!("skipped: no OpenCL device");
            return;
        };
        let listed = query::extensions(device.inner.id.id()).is_ok_and(|listed| query::lists_halves(&listed));
        match check(&device.inner) {
            Ok(()) => assert_eq!(probe(&device.inner).expect("once more"), WANTED.map(f16::from_f32)),
            Err(error) => {
                assert!(!listed, "{error}");
                assert!(error.to_string().contains("cl_khr_fp16"), "{error}");
            }
        }
    }
}
