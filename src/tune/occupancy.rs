//! About how long a kernel takes, from what it asks for and what the device has.
//!
//! A device is some multiprocessors, each of which keeps as many work-groups as its registers, local
//! memory and invocations allow, and runs its share of all so many at a time. `r` of them compute for
//! `r` times what one multiplies or loads, whichever takes longer, and wait for every round of loads
//! once; few waves leave a multiprocessor idle now and then. In the end all is bounded by what the
//! second-level cache and the memory deliver, and begins with the cost of a launch.
//!
//! The constants were fitted to 1,100 measurements of 1x1 and 3x3 convolutions on an NVIDIA H200, half
//! of them through each API: the estimates of good kernels are off by 13 %. They rank kernels and
//! predict no time.

use crate::emit::Dialect;
use crate::limits::{Family, Limits};
use crate::ops::Effort;

/// Invocations that run in lockstep.
const WAVE_INVOCATIONS: u32 = 32;
/// Registers and invocations of a multiprocessor.
const REGISTERS_PER_UNIT: u32 = 65536;
const INVOCATIONS_PER_UNIT: u32 = 2048;
/// Multiply-adds of waves per clock.
const WAVE_MULTIPLIES_PER_CLOCK: f64 = 4.0;
/// Clocks of a wave's vec4: from local memory; from memory to local memory; from memory to registers.
const CLOCKS_PER_STAGED_VEC4: f64 = 1.91;
const CLOCKS_PER_VEC4_TO_LOCAL: f64 = 0.77;
const CLOCKS_PER_VEC4_TO_REGISTERS: f64 = 0.9;
/// Clocks of a wave's vec4 that layers add up.
const CLOCKS_PER_ADDED_VEC4: f64 = 5.6;
/// Clocks that a round of loads takes where nothing else is done meanwhile but by others.
const CLOCKS_PER_ROUND_AHEAD: f64 = 763.0;
/// Waves that keep a multiprocessor busy, and what fewer lose.
const BUSY_WAVES: f64 = 21.2;
const IDLE_EXPONENT: f64 = 0.153;
/// How much of the shorter of two costs does not hide behind the longer: of loads and products, of
/// computing and waiting, of a multiprocessor's time and the memory's.
const EXPOSED_LOADS: f64 = 0.13;
const EXPOSED_WAIT: f64 = 0.59;
const EXPOSED_TIME: f64 = 0.39;
/// Bytes per clock, of a multiprocessor from the second-level cache and of the device from memory.
const CACHE_BYTES_PER_CLOCK: f64 = 29.0;
const MEMORY_BYTES_PER_CLOCK: f64 = 956.0;
/// Clocks of a launch.
const LAUNCH_CLOCKS: f64 = 10_950.0;
/// Multiprocessors where neither driver nor name gives them.
const ASSUMED_UNITS: u32 = 64;

/// What a driver makes of a multiprocessor.
struct Driver {
    /// Clocks of a barrier.
    barrier: f64,
    /// Clocks that a round of loads is waited for, if nothing was loaded ahead.
    latency: f64,
    /// What a kernel that loads into registers computes for, against what was counted.
    unstaged: f64,
}

const VULKAN: Driver = Driver { barrier: 176.0, latency: 674.0, unstaged: 0.79 };
const OPENCL: Driver = Driver { barrier: 2.0, latency: 345.0, unstaged: 1.29 };

/// Whether estimates are made for such a device.
pub(super) fn knows(limits: &Limits) -> bool {
    limits.family == Family::Nvidia
}

/// The estimate, in clocks.
pub(super) fn clocks(effort: &Effort, limits: &Limits) -> f64 {
    let driver = if limits.dialect == Dialect::Wgsl { VULKAN } else { OPENCL };
    let units = u64::from(limits.compute_units.unwrap_or(ASSUMED_UNITS).max(1));
    let waves = effort.invocations.div_ceil(WAVE_INVOCATIONS).max(1);
    let resident = (REGISTERS_PER_UNIT
        / (effort.registers.clamp(1, 255).next_multiple_of(8) * waves * WAVE_INVOCATIONS))
        .min(limits.local_memory_of_unit().unwrap_or(u32::MAX) / effort.local_bytes.max(1))
        .min(INVOCATIONS_PER_UNIT / (waves * WAVE_INVOCATIONS))
        .clamp(1, 32);
    let per_wave = |count: u64, clocks: f64| f64::from(waves) * count as f64 * clocks;
    let multiply = per_wave(effort.multiplies, 1.0 / WAVE_MULTIPLIES_PER_CLOCK);
    let load = per_wave(effort.staged, CLOCKS_PER_STAGED_VEC4)
        + per_wave(
            effort.loads,
            if effort.ahead { CLOCKS_PER_VEC4_TO_LOCAL } else { CLOCKS_PER_VEC4_TO_REGISTERS },
        );
    let both = multiply.max(load) + EXPOSED_LOADS * multiply.min(load);
    let (busy, round, exposed) = if effort.ahead {
        (both, CLOCKS_PER_ROUND_AHEAD + driver.barrier * f64::from(effort.barriers), EXPOSED_WAIT)
    } else {
        (both * driver.unstaged, driver.latency, 1.0)
    };
    let steps = f64::from(effort.steps.max(1));
    // `count` work-groups side by side on one multiprocessor.
    let together = |count: u64| {
        let idle = (count as f64 * f64::from(waves) / BUSY_WAVES).min(1.0).powf(IDLE_EXPONENT);
        let compute = count as f64 * busy / idle;
        let wait = steps * round + busy / idle / if effort.ahead { steps } else { 1.0 };
        compute.max(wait) + exposed * compute.min(wait) + per_wave(effort.added, CLOCKS_PER_ADDED_VEC4)
    };
    let share = effort.groups.div_ceil(units);
    let (full, rest) = (share / u64::from(resident), share % u64::from(resident));
    let run = full as f64 * together(resident.into()) + if rest > 0 { together(rest) } else { 0.0 };
    let cache = effort.groups as f64 * effort.reads as f64 / units as f64 / CACHE_BYTES_PER_CLOCK;
    let memory = cache.max(effort.traffic as f64 / MEMORY_BYTES_PER_CLOCK);
    LAUNCH_CLOCKS + run.max(memory) + EXPOSED_TIME * run.min(memory)
}
