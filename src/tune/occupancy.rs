//! About how long a kernel takes, from what it asks for and what the device has.
//!
//! A device is `units` multiprocessors; each keeps as many work-groups as its registers, local memory
//! and invocations allow, and takes `groups / units` of them, so many at a time. While `r` are
//! resident, they compute for `r * busy` clocks, where `busy` is what they multiply or what they load,
//! whichever takes longer; or they wait for `steps` rounds of loads, whichever takes longer. Few waves
//! do not keep a multiprocessor busy. In the end it is all bounded by what the caches and the memory
//! deliver, and begins with the cost of a launch.
//!
//! The constants were fitted to 560 measurements of 1x1 and 3x3 convolutions on an NVIDIA H200 (OpenCL;
//! the logarithms of times, the best kernels counting most): the estimates are off by 15 % on
//! average. They rank kernels, and are no prediction of a time.

use crate::limits::{Family, Limits};
use crate::ops::Effort;

/// Invocations that run in lockstep.
const WAVE: u32 = 32;
/// Registers, bytes of local memory and invocations of a multiprocessor.
const REGISTERS: u32 = 65536;
const LOCAL_BYTES: u32 = 220 << 10;
const INVOCATIONS: u32 = 2048;
const GROUPS: u32 = 32;
/// Multiply-adds of a wave per clock.
const MULTIPLIES: f64 = 4.0;
/// Clocks of a wave's vec4 from local memory, and from the first-level cache.
const STAGED: f64 = 2.2;
const LOADED: f64 = 1.0;
/// Clocks that a round of loads waits, and a barrier.
const LATENCY: f64 = 590.0;
const BARRIER: f64 = 117.0;
/// Clocks of a wave's vec4 that is added up at the end.
const ADDED: f64 = 1.6;
/// Waves that keep a multiprocessor busy, and what fewer lose.
const WAVES: f64 = 16.4;
const FEWER: f64 = 0.15;
/// How much of the shorter of two costs does not hide behind the longer.
const EXPOSED_LOADS: f64 = 0.18;
const EXPOSED_COMPUTE: f64 = 0.6;
const EXPOSED_TIME: f64 = 0.35;
/// Bytes per clock, of a multiprocessor from the second-level cache and of the device from memory.
const CACHE: f64 = 19.5;
const MEMORY: f64 = 860.0;
/// Clocks of a launch.
const LAUNCH: f64 = 8700.0;

/// Multiprocessors where neither driver nor name tells.
const UNITS: u32 = 64;

/// Whether the estimate is made for such a device.
pub(super) fn knows(limits: &Limits) -> bool {
    matches!(limits.family, Family::Nvidia | Family::Amd)
}

/// The estimate, in clocks.
pub(super) fn clocks(effort: &Effort, limits: &Limits) -> f64 {
    let units = u64::from(limits.compute_units.unwrap_or(UNITS).max(1));
    let waves = effort.invocations.div_ceil(WAVE).max(1);
    let registers = effort.registers.min(255).next_multiple_of(8) * waves * WAVE;
    let resident = (REGISTERS / registers.max(1))
        .min(LOCAL_BYTES / effort.local_bytes.max(1))
        .min(INVOCATIONS / (waves * WAVE))
        .clamp(1, GROUPS);
    let per_wave = |count: u64, clocks: f64| f64::from(waves) * count as f64 * clocks;
    let multiply = per_wave(effort.multiplies, 1.0 / MULTIPLIES);
    let load = per_wave(effort.staged, STAGED) + per_wave(effort.loads, LOADED);
    let busy = multiply.max(load) + EXPOSED_LOADS * multiply.min(load);
    let end = per_wave(effort.added, ADDED);
    let round = LATENCY + BARRIER * f64::from(effort.barriers);
    // `count` work-groups side by side on one multiprocessor.
    let together = |count: u64| {
        let utilised = (count as f64 * f64::from(waves) / WAVES).min(1.0).powf(FEWER);
        let compute = count as f64 * busy / utilised;
        let own = busy / utilised / if effort.ahead { f64::from(effort.steps.max(1)) } else { 1.0 };
        let wait = f64::from(effort.steps) * round + own;
        compute.max(wait) + EXPOSED_COMPUTE * compute.min(wait) + end
    };
    let each = effort.groups.div_ceil(units);
    let (full, rest) = (each / u64::from(resident), each % u64::from(resident));
    let run = full as f64 * together(resident.into()) + if rest > 0 { together(rest) } else { 0.0 };
    let cache = effort.groups as f64 * effort.reads as f64 / units as f64 / CACHE;
    let memory = cache.max(effort.traffic as f64 / MEMORY);
    LAUNCH + run.max(memory) + EXPOSED_TIME * run.min(memory)
}
