//! About how long a kernel takes, from what it asks for ([`Effort`]) and what the device has ([`Machine`]).
//!
//! A device is some units, each of which keeps as many work-groups as its registers, local memory and invocations allow, and
//! runs its share of all so many at a time. `r` of them compute for `r` times what one multiplies or loads, whichever takes
//! longer, and wait for every round of loads once; few waves leave a unit idle now and then. In the end all is bounded by what
//! the last-level cache and the memory deliver, and begins with the cost of a launch. Invocations beyond a grid count as
//! others do: they keep their place until their work-group is done.
//!
//! The constants rank kernels and predict no time. Of 1,100 convolutions on an NVIDIA H200 the estimates of good kernels are
//! off by 13 %; of 10,000 measurements there of convolutions, products and attention, the kernels with the least estimates
//! take 1.09 times as long as the fastest (geometric mean over 60 shapes).

use super::effort::Effort;
use crate::limits::machine::Machine;

/// Multiply-adds of a wave in the time of its vec4 that layers add up.
const PER_ADDED_VEC4: f64 = 5.6 * 4.0;
/// Clocks that a round of loads takes where nothing else is done meanwhile but by others.
const CLOCKS_PER_ROUND_AHEAD: f64 = 763.0;
/// Waves that keep a unit busy, for each whose multiply-adds it does in a clock, and what fewer lose.
const BUSY_WAVES: f64 = 21.2 / 4.0;
const IDLE_EXPONENT: f64 = 0.153;
/// How much of the shorter of two costs does not hide behind the longer: of loads and products, of
/// computing and waiting, of a unit's time and the memory's.
const EXPOSED_LOADS: f64 = 0.13;
const EXPOSED_WAIT: f64 = 0.59;
const EXPOSED_TIME: f64 = 0.39;
/// Invocations of the most work-groups that a unit keeps, if each has one wave.
const MOST_RESIDENT: u32 = 1024;

/// The estimate, in clocks of a unit.
pub(crate) fn clocks(effort: &Effort, machine: &Machine) -> f64 {
    let waves = effort.invocations.div_ceil(machine.wave).max(1);
    let invocations = waves * machine.wave;
    let registers = effort.registers.clamp(1, 255).next_multiple_of(8);
    let resident = (machine.registers / registers.saturating_mul(invocations))
        .min(machine.local_memory / effort.local_bytes.max(1))
        .min(machine.invocations / invocations)
        .clamp(1, MOST_RESIDENT / machine.wave);
    let per_wave = |count: u64, multiplies: f64| f64::from(waves) * count as f64 * multiplies / machine.rate;
    let multiply = per_wave(effort.multiplies, 1.0);
    let to = if effort.ahead { machine.to_local } else { machine.to_registers };
    let load = f64::from(waves) * (effort.staged as f64 * machine.staged + effort.loads as f64 * to);
    let both = multiply.max(load) + EXPOSED_LOADS * multiply.min(load);
    let steps = f64::from(effort.steps.max(1));
    let barriers = machine.barrier * f64::from(effort.barriers);
    let (busy, waits, exposed) = if effort.ahead {
        (both, CLOCKS_PER_ROUND_AHEAD * steps + barriers, EXPOSED_WAIT)
    } else {
        (both * machine.unstaged, machine.latency * steps, 1.0)
    };
    let added = per_wave(effort.added, PER_ADDED_VEC4);
    // `count` work-groups side by side on one unit.
    let together = |count: u64| {
        // Each of a unit's parts multiplies for one wave in a clock: fewer waves leave some without work.
        let parts = count as f64 * f64::from(waves) / machine.rate;
        let idle = (parts / BUSY_WAVES).min(1.0).powf(IDLE_EXPONENT) * parts.min(1.0);
        let compute = count as f64 * busy / idle;
        let wait = waits + busy / idle / if effort.ahead { steps } else { 1.0 };
        compute.max(wait) + exposed * compute.min(wait) + added
    };
    let units = u64::from(machine.units);
    let share = effort.groups.div_ceil(units);
    let (full, rest) = (share / u64::from(resident), share % u64::from(resident));
    let run = full as f64 * together(resident.into()) + if rest > 0 { together(rest) } else { 0.0 };
    let cache = effort.groups as f64 * effort.reads as f64 / units as f64 / machine.cache_bytes;
    let memory = cache.max(effort.traffic as f64 / machine.memory_bytes);
    machine.launch + run.max(memory) + EXPOSED_TIME * run.min(memory)
}

#[cfg(test)]
mod tests {
    use crate::dtype::Precision;
    use crate::limits::{Family, Limits};
    use crate::ops::Choice;

    fn h100(base: Limits) -> Limits {
        Limits { family: Family::Nvidia, compute_units: Some(132), local_memory: 49152, ..base }
    }

    /// The estimate of a choice, in microseconds of a card with this clock in GHz.
    fn estimate(name: &str, extents: &[usize], choice: &Choice, limits: &Limits, clock: f64) -> f64 {
        let entry = crate::ops::all().iter().find(|entry| entry.name == name).expect("the op");
        let op = (entry.numbers.op)(extents, None, Precision::F32).expect("extents");
        let kernel = op.kernel(choice.variant).expect("a kernel");
        kernel.estimate(choice, limits).expect("an estimate") / (1000.0 * clock)
    }

    #[test]
    fn an_h200s_times_of_products_are_met_within_a_half() {
        let limits = h100(Limits::opencl());
        // n, tile, work-group, microseconds measured through OpenCL.
        for (n, tile, work_group, measured) in [
            (4096, [2, 16, 1], [16, 8, 1], 2732.0),
            (4096, [2, 8, 1], [16, 16, 1], 2846.0),
            (2048, [2, 16, 1], [16, 8, 1], 347.0),
            (1024, [2, 8, 2], [16, 8, 2], 56.1),
            (1024, [2, 8, 2], [8, 8, 2], 58.9),
            (512, [2, 4, 4], [8, 8, 4], 14.1),
            (512, [2, 8, 4], [8, 4, 4], 15.5),
            (512, [1, 4, 4], [8, 8, 4], 15.0),
        ] {
            let choice = Choice::new("tiled", tile, work_group);
            let ratio = estimate("gemm", &[n, n, n], &choice, &limits, 1.85) / measured;
            assert!((0.67..1.5).contains(&ratio), "{n} {choice}: {ratio}");
        }
    }

    #[test]
    fn the_drivers_share_of_local_memory_decides() {
        // Microseconds of two choices, measured on an H200: work-groups of 25 KiB that run alone through Vulkan and in
        // pairs through OpenCL, and smaller ones.
        let large = Choice::new("tiled", [2, 8, 4], [8, 4, 4]);
        let small = Choice::new("tiled", [2, 4, 2], [8, 8, 2]);
        for (base, measured) in [(Limits::webgpu(), [45.3, 37.7]), (Limits::opencl(), [27.7, 31.0])] {
            let limits = h100(base);
            let [large, small] =
                [large, small].map(|choice| estimate("gemm", &[197, 2304, 768], &choice, &limits, 1.85));
            assert_eq!(large < small, measured[0] < measured[1], "{:?}: {large} {small}", limits.dialect);
        }
    }

    #[test]
    fn an_h100s_times_of_attention_are_met_within_a_half() {
        let [vulkan, opencl] = [Limits::webgpu(), Limits::opencl()].map(h100);
        // Heads, queries, keys and features; microseconds measured.
        for (extents, kernel, tile, size, measured, limits) in [
            ([6, 1500, 1500, 64], "tiled", [1, 4, 1], [16, 8, 1], 179.6, &opencl),
            ([6, 1500, 1500, 64], "tiled", [1, 4, 1], [16, 8, 1], 231.4, &vulkan),
            ([6, 1500, 1500, 64], "tiled", [1, 2, 1], [16, 8, 1], 221.5, &opencl),
            ([6, 1500, 1500, 64], "tiled", [2, 4, 1], [8, 8, 1], 204.7, &opencl),
            ([6, 1500, 1500, 64], "tiled", [2, 2, 1], [8, 16, 1], 208.7, &opencl),
            ([6, 1500, 1500, 64], "tiled", [1, 4, 1], [8, 16, 1], 268.7, &vulkan),
            ([12, 197, 197, 64], "tiled", [1, 2, 1], [16, 4, 1], 19.1, &opencl),
            ([12, 197, 197, 64], "tiled", [1, 4, 1], [16, 8, 1], 20.4, &opencl),
            ([12, 197, 197, 64], "row", [128, 4, 1], [128, 1, 1], 22.3, &opencl),
            ([12, 1, 512, 64], "row", [256, 1, 1], [256, 1, 1], 14.5, &opencl),
            ([12, 1, 2048, 64], "row", [256, 1, 1], [256, 1, 1], 44.6, &opencl),
        ] {
            let choice = Choice::new(kernel, tile, size);
            let ratio = estimate("attention", &extents, &choice, limits, 1.755) / measured;
            assert!((0.67..1.5).contains(&ratio), "{extents:?} {choice}: {ratio}");
        }
    }
}
