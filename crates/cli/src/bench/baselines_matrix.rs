//! What a device's matrix instructions can do at most: multiply-adds of small matrices of halves into
//! f32 sums, from registers to registers. The roof of the rows whose operands are stored as halves.
//!
//! Every operand is the same number. A chip that slows down by the power it draws draws less of it here
//! than in a product of other numbers, so the roof is one that no product need reach.

use super::baselines::{Baseline, SAMPLE, WORK_GROUP, binding, large, source};
use super::subject::Target;
use anyhow::{Result, ensure};
use diptych::internals::tune::clock::Clock;
use diptych::internals::tune::quirks::Policy;
use diptych::{Dialect, Limits, MatrixUnit, Memory};
use diptych_device::device::{Buffer, Device, Dispatch, Pipeline, Resource};
use diptych_emit::emit::{Access, Interface, Operand, Param, ParamType, Scalar};

/// Invocations: so many work-groups that the last ones, which do not fill a large GPU, do not count.
const INVOCATIONS: u32 = 1 << 20;
const WAVE: u32 = 32;
/// Operations of a wave in one step: eight products of 16 x 16 x 16.
const PER_STEP: u64 = 8 * 2 * 16 * 16 * 16;
/// A factor whose square and sums of it are exact.
const FACTOR: f32 = 0.5;

/// Whether a kernel here uses the matrix instructions of the device.
fn served(limits: &Limits) -> bool {
    large(limits)
        && match limits.matrix_unit {
            Some(MatrixUnit::Cooperative { subgroup }) => subgroup == WAVE,
            Some(MatrixUnit::Ptx { .. }) => true,
            _ => false,
        }
}

/// The kernel.
struct Matrices {
    pipeline: Pipeline,
    dst: Buffer,
}

impl Matrices {
    fn dispatch(&self, steps: u32) -> Dispatch {
        Dispatch {
            pipeline: self.pipeline.clone(),
            resources: vec![Resource::from(&self.dst)],
            params: vec![Scalar::U32(steps), Scalar::F32(FACTOR)],
            groups: [INVOCATIONS / WORK_GROUP, 1, 1],
        }
    }

    fn flops(&self, steps: u32) -> u64 {
        PER_STEP * u64::from(steps) * u64::from(INVOCATIONS / WAVE)
    }

    fn new(device: &dyn Device) -> Result<Self> {
        let interface = Interface {
            bindings: vec![binding(Operand::Dst, Access::Write)],
            params: vec![
                Param { name: "steps", ty: ParamType::U32 },
                Param { name: "factor", ty: ParamType::F32 },
            ],
        };
        let dialect = device.info().limits.dialect;
        let text = match dialect {
            Dialect::Wgsl => include_str!("kernels/mma.wgsl"),
            Dialect::OpenClC => include_str!("kernels/mma.cl"),
        };
        let source = source("mma", dialect, text, interface);
        // SAFETY: each invocation stores one vec4, and the grid has as many as the buffer.
        let pipeline = unsafe { device.compile_unchecked(&source) }?;
        Ok(Matrices { pipeline, dst: device.alloc(16 * u64::from(INVOCATIONS), Memory::Device)? })
    }
}

/// The baseline, checked and warmed up; none where the device has no such instructions.
///
/// # Errors
/// If the kernel does not compile or run, or gives a wrong result.
pub(super) fn matrices(target: &Target) -> Result<Option<Baseline>> {
    let device = target.device()?;
    if !served(&device.info().limits) {
        return Ok(None);
    }
    let kernel = Matrices::new(&*device)?;
    let info = device.info();
    let clock = Clock::of(&*device, Policy::of(info.limits.faults));
    // As many steps as take so long that starting the kernel does not count.
    let mut steps = 64;
    while steps < 1 << 15 {
        let recording = device.record(&[kernel.dispatch(steps)])?;
        clock.measure(&*device, &recording, 1)?;
        if clock.measure(&*device, &recording, 1)? >= SAMPLE / 4 {
            break;
        }
        steps *= 2;
    }
    for steps in [3, steps] {
        device.submit(&device.record(&[kernel.dispatch(steps)])?)?;
        let read: Vec<f32> = bytemuck::pod_collect_to_vec(&device.read(&kernel.dst.whole())?);
        // Eight sums of 16 products a step; whole numbers below 2^24, so that f32 is exact.
        let wanted = 8.0 * 16.0 * FACTOR * FACTOR * steps as f32;
        let wrong = read.iter().find(|found| **found != wanted);
        ensure!(wrong.is_none(), "wrong: the matrices' sum is {wrong:?}, wanted {wanted}");
    }
    let mut row = target.row("baseline", "mma f16", "device");
    row.precision = "f16s".to_owned();
    row.kernel = "bench_mma, 16 x 16 x 16".to_owned();
    row.checked = "every element, against the exact sum".to_owned();
    row.flops = kernel.flops(steps);
    Baseline::warm(device, kernel.dispatch(steps), row).map(Some)
}
