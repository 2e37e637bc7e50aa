//! What a device can do at most, measured by two kernels that do nothing else: a copy from buffer
//! to buffer, and chains of multiply-adds in registers. Together they are the roofline of Williams,
//! Waterman and Patterson (*Roofline: An Insightful Visual Performance Model*, 2009).
//!
//! The copy moves two buffers of [`COPY`] bytes each, more than any cache holds, and counts both.
//! The multiply-adds are f32. Rows whose operands are stored as halves have the roof of the device's matrix
//! instructions, where it has some (`baselines_matrix.rs`).

use super::row::Row;
use super::subject::{Subject, Target};
use anyhow::{Result, bail, ensure};
use diptych::internals::tune::clock::Clock;
use diptych::internals::tune::quirks::Policy;
use diptych::{DType, Dialect, Family, Limits, Memory};
use diptych_device::device::{Buffer, Device, Dispatch, Pipeline, Recording, Resource};
use diptych_emit::emit::{
    Access, Binding, Element, Interface, KernelSource, Operand, Param, ParamType, Scalar,
};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of each buffer of the copy: on a large GPU, and where memory is scarce.
const COPY: [u64; 2] = [256 << 20, 64 << 20];
pub(super) const WORK_GROUP: u32 = 256;
/// Invocations of the multiply-adds: enough for any GPU, and a CPU's driver.
const INVOCATIONS: [u32; 2] = [1 << 19, 1 << 12];
/// Multiply-adds of a lane in one step: four of each of eight chains.
const PER_STEP: u64 = 4 * 8;
/// The type of a chain: its name, its lanes, and its declaration. Most GPUs do not mind; compilers for
/// CPUs like one or the other.
const FORMS: [(&str, u64, &str); 2] =
    [("vec4", 4, "alias T = vec4<f32>;\n"), ("scalar", 1, "alias T = f32;\n")];
const FACTOR: f32 = 0.999;
const ADDEND: f32 = 0.5;
/// About how long a sample lasts.
pub(super) const SAMPLE: Duration = Duration::from_millis(5);

/// One of the two, on one device.
pub(super) struct Baseline {
    device: Arc<dyn Device>,
    clock: Clock,
    recording: Recording,
    row: Row,
}

pub(super) fn source(name: &str, dialect: Dialect, text: &str, interface: Interface) -> KernelSource {
    KernelSource {
        label: format!("bench_{name}"),
        entry: format!("bench_{name}"),
        dialect,
        text: text.to_owned(),
        interface,
        work_group: [WORK_GROUP, 1, 1],
    }
}

pub(super) fn binding(operand: Operand, access: Access) -> Binding {
    Binding::new(operand, Element::Vec4(DType::F32), access)
}

pub(super) fn large(limits: &Limits) -> bool {
    !limits.family.is_mobile() && limits.family != Family::CpuDriver
}

/// The pattern of the copied buffer.
fn pattern(index: usize) -> f32 {
    (index % 8191) as f32
}

impl Baseline {
    /// Both, checked and warmed up.
    ///
    /// # Errors
    /// If a kernel does not compile or run, or gives a wrong result.
    pub(super) fn both(target: &mut Target) -> Result<Vec<Self>> {
        Ok(vec![Self::copy(target)?, Self::multiply_add(target)?])
    }

    fn copy(target: &Target) -> Result<Self> {
        let device = target.device()?;
        let limits = &device.info().limits;
        let wanted = if large(limits) { COPY[0] } else { COPY[1] };
        // Each invocation copies four vec4s of 16 bytes; the grid covers the buffers exactly.
        let unit = u64::from(WORK_GROUP) * 64;
        let bytes = wanted.min(limits.max_binding).min(u64::from(limits.max_groups[0]) * unit) / unit * unit;
        let interface = Interface {
            bindings: vec![binding(Operand::Src, Access::Read), binding(Operand::Dst, Access::Write)],
            params: vec![Param { name: "stride", ty: ParamType::U32 }],
        };
        let source = source("copy", Dialect::Wgsl, include_str!("kernels/copy.wgsl"), interface);
        // SAFETY: the grid covers the buffers exactly, four vec4s for each invocation.
        let pipeline = unsafe { device.compile_unchecked(&source) }?;
        let [src, dst] = [device.alloc(bytes, Memory::Device)?, device.alloc(bytes, Memory::Device)?];
        let values: Vec<f32> = (0..bytes as usize / 4).map(pattern).collect();
        device.write(&src.whole(), bytemuck::cast_slice(&values))?;
        let dispatch = Dispatch {
            pipeline,
            resources: vec![Resource::from(&src), Resource::from(&dst)],
            params: vec![Scalar::U32(u32::try_from(bytes / 64)?)],
            groups: [u32::try_from(bytes / unit)?, 1, 1],
        };
        device.submit(&device.record(std::slice::from_ref(&dispatch))?)?;
        let read: Vec<f32> = bytemuck::pod_collect_to_vec(&device.read(&dst.whole())?);
        if let Some(at) = (0..values.len()).find(|at| read.get(*at) != values.get(*at)) {
            bail!("wrong: the copy has {:?} at {at}, wanted {:?}", read.get(at), values.get(at));
        }
        let mut row = target.row("baseline", "copy f32", "device");
        row.kernel = "bench_copy".to_owned();
        row.checked = "every element, against what was written".to_owned();
        row.bytes = 2 * bytes;
        Self::warm(device, dispatch, row)
    }

    fn multiply_add(target: &mut Target) -> Result<Self> {
        let device = target.device()?;
        let (form, steps) = match target.multiply_add {
            Some(known) => known,
            None => *target.multiply_add.insert(fastest(&*device)?),
        };
        let chains = Chains::new(&*device, form)?;
        // A few steps, which depend on where a chain began, and those that are timed.
        for steps in [16, steps] {
            device.submit(&device.record(&[chains.dispatch(steps)])?)?;
            let read: Vec<f32> = bytemuck::pod_collect_to_vec(&device.read(&chains.dst.whole())?);
            for (at, found) in read.iter().enumerate() {
                let wanted = sum((at / 4 % 256) as f64, steps);
                // The chains converge, so that rounding does not add up: 1 / (1 - f) times a unit.
                ensure!(
                    (f64::from(*found) - wanted).abs() <= 5e-4 * wanted.abs(),
                    "wrong: the multiply-adds give {found} at {at}, wanted {wanted}"
                );
            }
        }
        let mut row = target.row("baseline", "fma f32", "device");
        row.kernel = format!("bench_fma, {}", FORMS[form].0);
        row.checked = "every element, against the sum in f64".to_owned();
        row.flops = chains.flops(steps);
        Self::warm(device, chains.dispatch(steps), row)
    }

    pub(super) fn warm(device: Arc<dyn Device>, dispatch: Dispatch, mut row: Row) -> Result<Self> {
        let info = device.info();
        let mut clock = Clock::of(&*device, Policy::of(info.limits.faults));
        let one = device.record(std::slice::from_ref(&dispatch))?;
        clock.calibrate(&*device, &device.record(&vec![dispatch.clone(); 4])?, &one)?;
        let estimate = clock.measure(&*device, &one, 1)?;
        row.repeats = clock.repeats(estimate, SAMPLE);
        row.work_group = [WORK_GROUP, 1, 1];
        row.clock = clock.kind().to_string();
        let recording = device.record(&vec![dispatch; row.repeats as usize])?;
        let mut baseline = Baseline { device, clock, recording, row };
        // A first sample, not kept: clocks rise.
        baseline.round()?;
        baseline.row.summarise();
        baseline.row.samples.clear();
        Ok(baseline)
    }

    /// The first sample's row, before any round.
    pub(super) fn estimate(&self) -> &Row {
        &self.row
    }
}

/// The kernel of the multiply-adds.
struct Chains {
    pipeline: Pipeline,
    dst: Buffer,
    lanes: u64,
}

impl Chains {
    fn new(device: &dyn Device, form: usize) -> Result<Self> {
        let limits = &device.info().limits;
        let invocations = if large(limits) { INVOCATIONS[0] } else { INVOCATIONS[1] };
        let interface = Interface {
            bindings: vec![binding(Operand::Dst, Access::Write)],
            params: vec![
                Param { name: "steps", ty: ParamType::U32 },
                Param { name: "factor", ty: ParamType::F32 },
                Param { name: "addend", ty: ParamType::F32 },
            ],
        };
        let (_, lanes, head) = FORMS[form];
        let mut source = source("fma", Dialect::Wgsl, include_str!("kernels/fma.wgsl"), interface);
        source.text.insert_str(0, head);
        let dst = device.alloc(16 * u64::from(invocations), Memory::Device)?;
        // SAFETY: each invocation stores one vec4, and the grid has as many as the buffer.
        let pipeline = unsafe { device.compile_unchecked(&source) }?;
        Ok(Chains { pipeline, dst, lanes })
    }

    fn dispatch(&self, steps: u32) -> Dispatch {
        Dispatch {
            pipeline: self.pipeline.clone(),
            resources: vec![Resource::from(&self.dst)],
            params: vec![Scalar::U32(steps), Scalar::F32(FACTOR), Scalar::F32(ADDEND)],
            groups: [(self.dst.bytes() / 16) as u32 / WORK_GROUP, 1, 1],
        }
    }

    fn flops(&self, steps: u32) -> u64 {
        2 * PER_STEP * self.lanes * u64::from(steps) * (self.dst.bytes() / 16)
    }
}

/// The faster form on this device, and as many steps as take so long that starting the kernel does
/// not count.
fn fastest(device: &dyn Device) -> Result<(usize, u32)> {
    let info = device.info();
    let clock = Clock::of(device, Policy::of(info.limits.faults));
    let mut best = (0.0, (0, 16));
    for form in 0..FORMS.len() {
        let chains = Chains::new(device, form)?;
        let mut steps = 16;
        loop {
            let recording = device.record(&[chains.dispatch(steps)])?;
            clock.measure(device, &recording, 1)?;
            let time = clock.measure(device, &recording, 1)?;
            if time < SAMPLE / 4 && steps < 1 << 16 {
                steps *= 2;
                continue;
            }
            let rate = chains.flops(steps) as f64 / time.as_secs_f64().max(1e-9);
            if rate > best.0 {
                best = (rate, (form, steps));
            }
            break;
        }
    }
    Ok(best.1)
}

/// The sum of the eight chains that begin at `seed + 0..8`, in f64: each is
/// `x = f^n x0 + a (1 - f^n) / (1 - f)` after `n` multiply-adds.
fn sum(seed: f64, steps: u32) -> f64 {
    let (factor, addend) = (f64::from(FACTOR), f64::from(ADDEND));
    let shrunk = factor.powf(4.0 * f64::from(steps));
    (0..8).map(|chain| shrunk * (seed + f64::from(chain)) + addend * (1.0 - shrunk) / (1.0 - factor)).sum()
}

impl Subject for Baseline {
    fn round(&mut self) -> Result<()> {
        let time = self.clock.measure(&*self.device, &self.recording, self.row.repeats)?;
        self.row.samples.push(time.as_secs_f64() * 1e6 / f64::from(self.row.repeats));
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        vec![self.row.clone()]
    }
}
