//! What the model of times (`ops/cost.rs`) knows of a GPU: how many units of what width it has, what they keep, and what it
//! costs to bring them operands.
//!
//! The costs of NVIDIA's were fitted to 1,100 measurements of 1x1 and 3x3 convolutions on an H200, half of them through each
//! API. Those of other families follow from them by the width of a unit, as no card of theirs was measured: a vec4 from
//! memory costs as many multiply-adds everywhere, and memory brings as many bytes for each of them. Widths, waves and
//! registers are the vendors', as their documents and LiteRT's GPU delegate (`device/family.rs`) have them. Figures that were
//! measured on a device ([`Measured`]) replace these, except on NVIDIA's GPUs.

use super::{Family, Limits, MaliArchitecture};
use crate::emit::Dialect;

/// A GPU. Times are in clocks of a unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Units that have work-groups of their own: multiprocessors, compute units, shader cores.
    pub units: u32,
    /// Invocations that run in lockstep.
    pub wave: u32,
    /// Multiply-adds of whole waves, per clock of a unit.
    pub rate: f64,
    /// 32-bit registers of a unit.
    pub registers: u32,
    /// Invocations that a unit keeps.
    pub invocations: u32,
    /// Bytes of local memory of a unit.
    pub local_memory: u32,
    /// Whether it is known what local memory costs: it is a memory of its own, or was measured.
    pub local_is_known: bool,
    /// Clocks of a wave's vec4 from local memory, from memory to local memory, and from memory to registers.
    pub staged: f64,
    pub to_local: f64,
    pub to_registers: f64,
    /// Clocks of a barrier.
    pub barrier: f64,
    /// Clocks that a round of loads is waited for, if nothing was loaded ahead.
    pub latency: f64,
    /// What a kernel that loads into registers computes for, against what was counted.
    pub unstaged: f64,
    /// Bytes per clock that a unit gets of the last-level cache, and all units of memory.
    pub cache_bytes: f64,
    pub memory_bytes: f64,
    /// Clocks of a launch.
    pub launch: f64,
}

/// What the tuner measured on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Measured {
    /// Nanoseconds of a launch that has next to nothing to do.
    pub launch_ns: u64,
    /// Millions of bytes a second that a copy in memory reads and writes.
    pub copy_mb: u64,
    /// Millions of bytes a second that all invocations together read of a few KiB, which caches keep.
    pub cached_mb: u64,
    /// Millions of bytes a second that all work-groups together read of their local memory.
    pub local_mb: u64,
    /// Millions of multiply-adds a second: of f32, and of halves and of bytes (four at a time) where kernels can have them.
    pub f32_millions: u64,
    /// Millions of multiply-adds of halves a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f16_millions: Option<u64>,
    /// Millions of multiply-adds of bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub i8_millions: Option<u64>,
    /// The fewest invocations of a work-group that compute as fast as larger ones do.
    pub least_work_group: u32,
}

/// Costs on an NVIDIA unit, from which those of other families follow: multiply-adds of a wave in the time of its vec4 from local
/// memory, from memory to local memory, and from memory to registers.
const PER_STAGED: f64 = 1.91 * 4.0;
const PER_VEC4_TO_LOCAL: f64 = 0.77 * 4.0;
const PER_VEC4_TO_REGISTERS: f64 = 0.9 * 4.0;
/// Bandwidth of the last-level cache, as a part of that of the units' own caches.
const OF_LAST_LEVEL: f64 = 0.25;
/// Bytes of the last-level cache and of memory for each lane of a unit and clock.
const CACHE_BYTES_PER_LANE: f64 = 29.0 / 128.0;
const MEMORY_BYTES_PER_LANE: f64 = 956.0 / 132.0 / 128.0;
const LAUNCH_CLOCKS: f64 = 10_950.0;

/// Width of a family's units: invocations of a wave, waves' multiply-adds per clock, registers and invocations of a unit, and
/// units where neither driver nor name gives them.
struct Width {
    wave: u32,
    rate: f64,
    registers: u32,
    invocations: u32,
    units: u32,
}

const fn width(wave: u32, rate: f64, registers: u32, invocations: u32, units: u32) -> Width {
    Width { wave, rate, registers, invocations, units }
}

fn of_family(limits: &Limits) -> Width {
    let narrow = limits.subgroup.is_some_and(|[least, _]| least < 64);
    match limits.family {
        Family::Nvidia => width(32, 4.0, 1 << 16, 2048, 128),
        // RDNA: two vector units of 32 lanes; GCN: four of 16.
        Family::Amd if narrow => width(32, 2.0, 1 << 16, 1024, 40),
        Family::Amd => width(64, 1.0, 1 << 16, 2560, 40),
        // 16 execution units of 8 lanes and 7 threads of 4 KiB. OpenCL counts execution units.
        Family::Intel => width(16, 8.0, 7 << 14, 1792, 6),
        Family::Apple => width(32, 4.0, 52 << 10, 1024, 8),
        // Half waves. `register_bytes` and `max_waves` of the delegate, and twice 128 lanes.
        Family::Adreno(600..) => width(64, 4.0, 48 << 10, 2048, 2),
        Family::Adreno(_) => width(32, 2.0, 32 << 10, 1024, 1),
        Family::Mali(MaliArchitecture::Midgard) => width(1, 8.0, 8 << 10, 256, 8),
        Family::Mali(MaliArchitecture::Bifrost) => width(8, 3.0, 24 << 10, 768, 16),
        Family::Mali(_) => width(16, 2.0, 32 << 10, 1024, 8),
        Family::PowerVr => width(32, 2.0, 32 << 10, 512, 2),
        // A slice has four QPUs of four lanes, which have 64 registers for up to four threads of 16 invocations.
        Family::VideoCore => width(16, 1.0, 4 << 10, 256, 2),
        Family::CpuDriver | Family::Unknown => width(32, 2.0, 32 << 10, 1024, 8),
    }
}

impl Machine {
    /// What is known of the device; `None` if kernels run on a CPU.
    pub fn of(limits: &Limits) -> Option<Self> {
        if limits.family == Family::CpuDriver {
            return None;
        }
        let Width { wave, rate, registers, invocations, units } = of_family(limits);
        let counted = match (limits.family, limits.compute_units) {
            (Family::Intel, Some(units)) => Some(units.div_ceil(16)),
            (_, units) => units,
        };
        let units = counted.unwrap_or(units).max(1);
        let lanes = f64::from(wave) * rate;
        // Drivers of NVIDIA's: of Vulkan and of OpenCL. Others are taken to lie between.
        let (barrier, latency, unstaged) = match (limits.family, limits.dialect) {
            (Family::Nvidia, Dialect::Wgsl) => (176.0, 674.0, 0.79),
            (Family::Nvidia, Dialect::OpenClC) => (2.0, 345.0, 1.29),
            _ => (40.0, 500.0, 1.0),
        };
        let machine = Machine {
            units,
            wave,
            rate,
            registers,
            invocations,
            local_memory: limits.local_memory_of_unit().unwrap_or(2 * limits.local_memory),
            local_is_known: limits.family.has_local_memory(),
            staged: PER_STAGED / rate,
            to_local: PER_VEC4_TO_LOCAL / rate,
            to_registers: PER_VEC4_TO_REGISTERS / rate,
            barrier,
            latency,
            unstaged,
            cache_bytes: (CACHE_BYTES_PER_LANE * lanes).max(16.0),
            memory_bytes: MEMORY_BYTES_PER_LANE * lanes * f64::from(units),
            launch: LAUNCH_CLOCKS,
        };
        // What was fitted to kernels is nearer to them than what was measured with kernels that do nothing else.
        let measured = limits.measured.filter(|_| limits.family != Family::Nvidia);
        Some(measured.map_or(machine, |measured| machine.with(&measured)))
    }

    /// Multiply-adds of a unit per clock.
    pub fn lanes(&self) -> f64 {
        f64::from(self.wave) * self.rate
    }

    /// Invocations that keep all units busy, roughly.
    pub fn busy(&self) -> u64 {
        (4.0 * self.lanes() * f64::from(self.units)) as u64
    }

    /// The machine with figures that were measured. Its clock follows from how many multiply-adds its units did.
    fn with(self, measured: &Measured) -> Self {
        let lanes = self.lanes() * f64::from(self.units);
        let clocks_per_second = (measured.f32_millions.max(1) as f64) * 1e6 / lanes;
        let per_clock = |millions: u64| millions.max(1) as f64 * 1e6 / clocks_per_second;
        let wave = measured.least_work_group.clamp(1, 128);
        let of_wave = 16.0 * f64::from(wave) * f64::from(self.units);
        let to_registers = of_wave / per_clock(measured.cached_mb);
        Machine {
            wave,
            local_is_known: true,
            rate: self.rate * f64::from(self.wave) / f64::from(wave),
            staged: of_wave / per_clock(measured.local_mb),
            to_local: to_registers * PER_VEC4_TO_LOCAL / PER_VEC4_TO_REGISTERS,
            to_registers,
            cache_bytes: OF_LAST_LEVEL * per_clock(measured.cached_mb) / f64::from(self.units),
            memory_bytes: per_clock(measured.copy_mb),
            launch: measured.launch_ns as f64 * 1e-9 * clocks_per_second,
            ..self
        }
    }
}
