//! Measures what a device does in a second, by a few kernels that do nothing else. The model of times (`ops/cost.rs`) uses
//! these figures in place of those of the device's family.
//!
//! | figure | kernel |
//! |---|---|
//! | a launch | one work-group that stores one vec4 |
//! | copy | 64 MiB from buffer to buffer, or what a binding may have; bytes read and written are both counted |
//! | multiply-adds | chains in registers that do not wait for each other, of f32, halves, and bytes by `dot4I8Packed` |
//! | cached reads | each invocation reads vec4s of the same 4 KiB of a buffer, at places that differ |
//! | local memory | each invocation reads vec4s of its work-group's local memory, at places that differ |
//! | the least work-group | the multiply-adds of f32 in work-groups of 1, 2, 4 to 64 invocations; the first within a fifth of the best |
//!
//! Every result is checked: a device that computes nothing has no figures.

use super::clock::Clock;
use super::quirks::Policy;
use super::statistics::median;
use crate::device::{Buffer, Device, Dispatch, Memory, Recording};
use crate::dtype::DType;
use crate::emit::{
    Access, Binding, Dialect, Element, Interface, KernelSource, Operand, Param, ParamType, Scalar,
};
use crate::error::{Error, Result};
use crate::limits::Family;
pub use crate::limits::machine::Measured;
use std::time::Duration;

/// What all texts begin with.
const HEAD: &str = "
struct Params { steps: u32, stride: u32 }
@group(0) @binding(0) var<storage, read> src: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> dst: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;
";

const COPY: &str = "
@compute @workgroup_size(WIDTH)
fn facts(@builtin(global_invocation_id) id: vec3<u32>) {
    let v0: vec4<f32> = src[id.x];
    let v1: vec4<f32> = src[id.x + params.stride];
    let v2: vec4<f32> = src[id.x + 2u * params.stride];
    let v3: vec4<f32> = src[id.x + 3u * params.stride];
    dst[id.x] = v0;
    dst[id.x + params.stride] = v1;
    dst[id.x + 2u * params.stride] = v2;
    dst[id.x + 3u * params.stride] = v3;
}
";

/// `x = a x + b` in eight chains of vec4s. The numbers come from a buffer, so that no compiler knows them.
const CHAINS: &str = "
@compute @workgroup_size(WIDTH)
fn facts(@builtin(global_invocation_id) id: vec3<u32>) {
    let a: vec4<KIND> = vec4<KIND>(src[0]);
    let b: vec4<KIND> = vec4<KIND>(src[1]);
    let x: vec4<KIND> = vec4<KIND>(src[2]);
    var x0: vec4<KIND> = x;
    var x1: vec4<KIND> = x + b;
    var x2: vec4<KIND> = x + b + b;
    var x3: vec4<KIND> = x - b;
    var x4: vec4<KIND> = x - b - b;
    var x5: vec4<KIND> = x * a;
    var x6: vec4<KIND> = x * a + b;
    var x7: vec4<KIND> = x * a - b;
    for (var step: u32 = 0u; step < params.steps; step += 1u) {
        x0 = fma(a, x0, b);
        x1 = fma(a, x1, b);
        x2 = fma(a, x2, b);
        x3 = fma(a, x3, b);
        x4 = fma(a, x4, b);
        x5 = fma(a, x5, b);
        x6 = fma(a, x6, b);
        x7 = fma(a, x7, b);
    }
    dst[id.x] = vec4<f32>(x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7);
}
";

/// Sums of products of bytes in eight chains of four.
const BYTES: &str = "
@compute @workgroup_size(WIDTH)
fn facts(@builtin(global_invocation_id) id: vec3<u32>) {
    let word: vec4<u32> = vec4<u32>(src[3]);
    var x: vec4<i32> = vec4<i32>(0);
    var y: vec4<i32> = vec4<i32>(0);
    for (var step: u32 = 0u; step < params.steps; step += 1u) {
        let other: u32 = (0x01010101u * step) & 0x7f7f7f7fu;
        x.x += dot4I8Packed(word.x, other);
        x.y += dot4I8Packed(word.y, other);
        x.z += dot4I8Packed(word.z, other);
        x.w += dot4I8Packed(word.w, other);
        y.x += dot4I8Packed(word.y, other);
        y.y += dot4I8Packed(word.z, other);
        y.z += dot4I8Packed(word.w, other);
        y.w += dot4I8Packed(word.x, other);
    }
    dst[id.x] = vec4<f32>(x) + vec4<f32>(y);
}
";

const CACHED: &str = "
@compute @workgroup_size(WIDTH)
fn facts(@builtin(global_invocation_id) id: vec3<u32>) {
    var x0: vec4<f32> = vec4<f32>(0.0f);
    var x1: vec4<f32> = vec4<f32>(0.0f);
    var x2: vec4<f32> = vec4<f32>(0.0f);
    var x3: vec4<f32> = vec4<f32>(0.0f);
    var at: u32 = id.x;
    for (var step: u32 = 0u; step < params.steps; step += 1u) {
        x0 += src[4u + (at & 255u)];
        x1 += src[4u + ((at + 64u) & 255u)];
        x2 += src[4u + ((at + 128u) & 255u)];
        x3 += src[4u + ((at + 192u) & 255u)];
        at += params.stride;
    }
    dst[id.x] = x0 + x1 + x2 + x3;
}
";

const LOCAL: &str = "
var<workgroup> kept: array<vec4<f32>, 256>;
@compute @workgroup_size(WIDTH)
fn facts(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) own: vec3<u32>) {
    for (var i: u32 = own.x; i < 256u; i += WIDTHu) {
        kept[i] = src[2];
    }
    workgroupBarrier();
    var x0: vec4<f32> = vec4<f32>(0.0f);
    var x1: vec4<f32> = vec4<f32>(0.0f);
    var x2: vec4<f32> = vec4<f32>(0.0f);
    var x3: vec4<f32> = vec4<f32>(0.0f);
    var at: u32 = own.x;
    for (var step: u32 = 0u; step < params.steps; step += 1u) {
        x0 += kept[at & 255u];
        x1 += kept[(at + 64u) & 255u];
        x2 += kept[(at + 128u) & 255u];
        x3 += kept[(at + 192u) & 255u];
        at += params.stride;
    }
    dst[id.x] = x0 + x1 + x2 + x3;
}
";

/// Multiply-adds, or reads, of an invocation in one step of each text.
const OF_CHAINS: u64 = 8 * 4;
const OF_BYTES: u64 = 8 * 4;
const OF_LOCAL: u64 = 4;

/// Invocations of a work-group where nothing else is measured.
const WIDTH: u32 = 64;
/// Bytes that are copied: on large GPUs and on small ones.
const COPIED: [u64; 2] = [256 << 20, 32 << 20];
/// Invocations that compute, likewise.
const INVOCATIONS: [u32; 2] = [1 << 18, 1 << 13];
/// Work-groups of one invocation: no device refuses as many.
const SINGLE: u32 = 1 << 14;
/// About how long a timed run should take, and how many there are.
const LONG_ENOUGH: Duration = Duration::from_millis(4);
const RUNS: usize = 5;
const MOST_STEPS: u32 = 1 << 16;
/// How much longer a work-group may take than the best and still be as fast.
const AS_FAST: f64 = 1.2;
/// What the chains read: they converge to `b / (1 - a)`, which is what they begin with.
const NUMBERS: [[f32; 4]; 4] = [[0.5; 4], [1.0; 4], [2.0; 4], [1.0, 2.0, 3.0, 4.0]];

/// The figures of `device`.
///
/// # Errors
/// If a kernel cannot be compiled or run, or if what it computes is wrong.
pub fn measure(device: &dyn Device) -> Result<Measured> {
    let facts = Facts::on(device)?;
    let invocations = facts.invocations;
    let chains = |kind: &str, width: u32, invocations: u32| {
        facts.rate(&CHAINS.replace("KIND", kind), width, invocations, OF_CHAINS, &still)
    };
    let f32_rate = chains("f32", WIDTH, invocations)?;
    let f16_rate = device.info().limits.native_half.then(|| chains("f16", WIDTH, invocations)).transpose()?;
    let bytes = facts.rate(BYTES, WIDTH, invocations, OF_BYTES, &counted)?;
    let cached = facts.rate(CACHED, WIDTH, invocations, OF_LOCAL, &read)?;
    let local = facts.rate(LOCAL, WIDTH, invocations, OF_LOCAL, &added)?;
    let mut widths = Vec::new();
    for power in 0..=WIDTH.ilog2() {
        widths.push((1 << power, chains("f32", 1 << power, SINGLE)?));
    }
    let best = widths.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let least = widths.iter().find(|(_, rate)| rate * AS_FAST >= best).map_or(WIDTH, |(width, _)| *width);
    let millions = |rate: f64| (rate / 1e6).round().max(1.0) as u64;
    Ok(Measured {
        launch_ns: facts.launch()?,
        copy_mb: millions(facts.copy()?),
        cached_mb: millions(16.0 * cached),
        local_mb: millions(16.0 * local),
        f32_millions: millions(f32_rate),
        f16_millions: f16_rate.map(millions),
        i8_millions: Some(millions(bytes)),
        least_work_group: least,
    })
}

/// After sixteen steps, each of which halves what the chains are off by, none is off by more than rounding.
fn still(_steps: u32) -> [f32; 4] {
    [16.0; 4]
}

/// Each step multiplies the words 1, 2, 3 and 4, which have one byte, by its number.
fn counted(steps: u32) -> [f32; 4] {
    let times = (0..steps).sum::<u32>() as f32;
    [times * 3.0, times * 5.0, times * 7.0, times * 5.0]
}

fn read(steps: u32) -> [f32; 4] {
    [steps as f32; 4]
}

fn added(steps: u32) -> [f32; 4] {
    [8.0 * steps as f32; 4]
}

struct Facts<'a> {
    device: &'a dyn Device,
    clock: Clock,
    src: Buffer,
    dst: Buffer,
    invocations: u32,
}

impl<'a> Facts<'a> {
    fn on(device: &'a dyn Device) -> Result<Self> {
        let limits = &device.info().limits;
        let family = limits.family;
        let small = family.is_mobile() || matches!(family, Family::CpuDriver | Family::Unknown);
        let invocations = INVOCATIONS[usize::from(small)];
        let unit = u64::from(WIDTH) * 64;
        let most = COPIED[usize::from(small)].min(limits.max_binding);
        let bytes = most.min(u64::from(limits.max_groups[0]) * unit) / unit * unit;
        let [src, dst] = [device.alloc(bytes, Memory::Device)?, device.alloc(bytes, Memory::Device)?];
        let mut numbers = vec![0.25f32; (bytes / 4) as usize];
        for (to, from) in numbers.chunks_exact_mut(4).zip(NUMBERS) {
            to.copy_from_slice(&from);
        }
        device.write(&src.whole(), bytemuck::cast_slice(&numbers))?;
        let clock = Clock::of(device, Policy::of(limits.faults));
        Ok(Facts { device, clock, src, dst, invocations })
    }

    fn dispatch(&self, text: &str, width: u32, groups: u32, params: [u32; 2]) -> Result<Dispatch> {
        let vectors = Element::Vec4(DType::F32);
        let extensions = if text.contains("f16") { "enable f16;\n" } else { "" };
        let source = KernelSource {
            label: "facts".to_owned(),
            entry: "facts".to_owned(),
            dialect: Dialect::Wgsl,
            text: format!("{extensions}{HEAD}{}", text.replace("WIDTH", &width.to_string())),
            interface: Interface {
                bindings: vec![
                    Binding::new(Operand::Src, vectors, Access::Read),
                    Binding::new(Operand::Dst, vectors, Access::ReadWrite),
                ],
                params: ["steps", "stride"].map(|name| Param { name, ty: ParamType::U32 }).to_vec(),
            },
            work_group: [width, 1, 1],
        };
        Ok(Dispatch {
            pipeline: self.device.compile(&source)?,
            resources: vec![(&self.src).into(), (&self.dst).into()],
            params: params.map(Scalar::U32).to_vec(),
            groups: [groups, 1, 1],
        })
    }

    fn record(&self, dispatch: &Dispatch) -> Result<Recording> {
        self.device.record(std::slice::from_ref(dispatch))
    }

    /// The median time of some runs.
    fn time(&self, recording: &Recording) -> Result<f64> {
        let mut times = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            times.push(self.clock.measure(self.device, recording, 1)?.as_secs_f64());
        }
        Ok(median(&times).unwrap_or(0.0).max(1e-9))
    }

    /// What `text` does in a second: `each` times its steps, of all invocations.
    fn rate(
        &self,
        text: &str,
        width: u32,
        invocations: u32,
        each: u64,
        wanted: &dyn Fn(u32) -> [f32; 4],
    ) -> Result<f64> {
        let mut dispatch = self.dispatch(text, width, invocations / width, [16, 1])?;
        let mut steps = 16;
        loop {
            dispatch.params = [steps, 1].map(Scalar::U32).to_vec();
            let recording = self.record(&dispatch)?;
            let first = self.clock.measure(self.device, &recording, 1)?;
            if steps == 16 {
                self.check(invocations, wanted(steps))?;
            }
            if first >= LONG_ENOUGH || steps >= MOST_STEPS {
                return Ok((each * u64::from(steps) * u64::from(invocations)) as f64 / self.time(&recording)?);
            }
            // Half as long as it may become, because clocks rise.
            let times = LONG_ENOUGH.as_secs_f64() / first.as_secs_f64().max(1e-6);
            steps = ((f64::from(steps) * times.clamp(2.0, 16.0)) as u32).min(MOST_STEPS);
        }
    }

    fn check(&self, invocations: u32, wanted: [f32; 4]) -> Result<()> {
        let read = self.device.read(&self.dst.slice(0, 16 * u64::from(invocations))?)?;
        let found: Vec<[f32; 4]> = bytemuck::pod_collect_to_vec(&read);
        let off =
            |found: &[f32; 4]| found.iter().zip(wanted).any(|(found, wanted)| (found - wanted).abs() > 0.01);
        match found.iter().position(off).and_then(|at| Some((at, found.get(at)?))) {
            Some((at, found)) => Err(Error::Driver {
                api: self.device.info().api,
                call: "a kernel whose results are known",
                message: format!(
                    "result {at} is {found:?}, wanted {wanted:?}: the device, or its driver, computes wrongly or not at all"
                ),
            }),
            None => Ok(()),
        }
    }

    fn copy(&self) -> Result<f64> {
        let bytes = self.src.bytes();
        let groups = (bytes / 64 / u64::from(WIDTH)) as u32;
        let recording = self.record(&self.dispatch(COPY, WIDTH, groups, [0, groups * WIDTH])?)?;
        self.clock.measure(self.device, &recording, 1)?;
        self.check(1, NUMBERS[0])?;
        Ok(2.0 * bytes as f64 / self.time(&recording)?)
    }

    fn launch(&self) -> Result<u64> {
        let text = CHAINS.replace("KIND", "f32");
        let dispatch = self.dispatch(&text, WIDTH, 1, [0, 1])?;
        let many = self.device.record(&vec![dispatch; 64])?;
        self.clock.measure(self.device, &many, 64)?;
        let mut times = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            times.push(self.clock.measure(self.device, &many, 64)?.as_secs_f64() / 64.0);
        }
        Ok((median(&times).unwrap_or(0.0) * 1e9).round().max(1.0) as u64)
    }
}
