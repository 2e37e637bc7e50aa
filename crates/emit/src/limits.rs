//! What a device allows and offers, as planning needs it. Filled in by `device`, read by `ops`.

use crate::emit::dialect::Dialect;
use faults::Faults;
use machine::Measured;
use std::fmt;

pub mod faults;
pub mod machine;

/// Vendor and architecture of a GPU, or the driver that runs kernels on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// Qualcomm Adreno; the model number, such as 630.
    Adreno(u32),
    /// Arm Mali.
    Mali(MaliArchitecture),
    /// Imagination PowerVR.
    PowerVr,
    /// Broadcom VideoCore, of the Raspberry Pi 4 and 5.
    VideoCore,
    /// NVIDIA.
    Nvidia,
    /// AMD.
    Amd,
    /// Intel.
    Intel,
    /// Apple.
    Apple,
    /// A driver that runs kernels on the CPU, such as lavapipe or PoCL.
    CpuDriver,
    /// Not recognised.
    Unknown,
}

/// The architecture of a Mali GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MaliArchitecture {
    /// T6xx, T7xx, T8xx.
    Midgard,
    /// G31 to G76.
    Bifrost,
    /// G57 and later.
    Valhall,
    /// A Mali whose model was not recognised.
    Unknown,
}

impl Family {
    /// Whether it is an Adreno of the first of the series 6xx. Mesa's compiler has all loads of unrolled windows under way
    /// together there, and spills hundreds of registers.
    #[doc(hidden)]
    pub const fn is_early_adreno(self) -> bool {
        matches!(self, Family::Adreno(600..=639))
    }

    /// Whether kernels with unrolled windows spill there, as all their loads are under way together.
    #[doc(hidden)]
    pub const fn spills_windows(self) -> bool {
        self.is_early_adreno() || self.has_few_registers()
    }

    /// Whether an invocation has so few registers that all of a kernel's loads that are under way together count.
    #[doc(hidden)]
    pub const fn has_few_registers(self) -> bool {
        matches!(self, Family::VideoCore | Family::Mali(MaliArchitecture::Bifrost))
    }

    /// Whether local memory is a memory of its own. Mobile GPUs and drivers that run on a CPU keep it
    /// where they keep everything, so that staging there costs and does not save.
    #[doc(hidden)]
    pub const fn has_local_memory(self) -> bool {
        !self.is_mobile() && !matches!(self, Family::CpuDriver)
    }

    /// Whether it is a GPU of phones and boards: small, with a cache of its own of a few hundred KiB.
    #[doc(hidden)]
    pub const fn is_mobile(self) -> bool {
        matches!(self, Family::Adreno(_) | Family::Mali(_) | Family::PowerVr | Family::VideoCore)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Family::Adreno(model) => write!(f, "Adreno {model}"),
            Family::Mali(architecture) => write!(f, "Mali {architecture:?}"),
            Family::PowerVr => f.write_str("PowerVR"),
            Family::VideoCore => f.write_str("VideoCore"),
            Family::Nvidia => f.write_str("NVIDIA"),
            Family::Amd => f.write_str("AMD"),
            Family::Intel => f.write_str("Intel"),
            Family::Apple => f.write_str("Apple"),
            Family::CpuDriver => f.write_str("CPU driver"),
            Family::Unknown => f.write_str("unknown"),
        }
    }
}

/// Instructions that multiply small matrices of halves and sum in f32, as the API offers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatrixUnit {
    /// WGSL's cooperative matrices of 16 x 16 (`enable wgpu_cooperative_matrix`).
    Cooperative {
        /// Invocations that share a matrix.
        subgroup: u32,
    },
    /// NVIDIA's `mma.sync`, `ldmatrix` and `cp.async` as inline assembly in OpenCL C.
    Ptx {
        /// Ten times the compute capability, at least 80.
        capability: u32,
        /// The driver takes Hopper's instructions of warp groups (`wgmma`), and a work-group's 192 KiB of
        /// local memory with them. An OpenCL device is asked when it is opened; until then it is `false`.
        warp_groups: bool,
    },
}

/// Bytes of local memory of a kernel for warp groups that has a multiprocessor for itself.
pub const WARP_GROUP_MEMORY: u32 = 192 << 10;

/// Bytes of local memory of an NVIDIA multiprocessor that the estimates take its OpenCL driver to share out to work-groups
/// side by side: fitted to matrix products on an H200, where there is more. Other cards were not measured.
const NVIDIA_OPENCL_LOCAL_MEMORY: u32 = 108 << 10;

/// What one device allows a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The language its kernels are written in.
    pub dialect: Dialect,
    /// Vendor and architecture.
    pub family: Family,
    /// Largest number of invocations in a work-group.
    pub max_invocations: u32,
    /// Largest work-group along x, y and z.
    pub max_work_group: [u32; 3],
    /// Largest number of work-groups along x, y and z.
    pub max_groups: [u32; 3],
    /// Work-group-local memory in bytes.
    pub local_memory: u32,
    /// Largest buffer binding in bytes.
    pub max_binding: u64,
    /// Alignment in bytes of a buffer binding's offset.
    pub binding_alignment: u64,
    /// Native half-float arithmetic.
    pub native_half: bool,
    /// Largest 2D image in pixels, where images can be kernel arguments.
    pub max_image: Option<[u32; 2]>,
    /// Matrix instructions, where the API offers them.
    pub matrix_unit: Option<MatrixUnit>,
    /// The smallest and the largest number of invocations in a subgroup, where kernels can exchange
    /// values within one.
    pub subgroup: Option<[u32; 2]>,
    /// Multiprocessors, where the driver reports them.
    pub compute_units: Option<u32>,
    /// Turns after which the driver ends the loops of an invocation, all of them counted together, without an error:
    /// 65,535 with Mesa's llvmpipe.
    pub max_turns: Option<u32>,
    /// What people reported of it: kernels that a report names do not fit.
    #[doc(hidden)]
    pub faults: Faults,
    /// How fast it was measured to be, where that was done (`diptych devices --measure`).
    #[doc(hidden)]
    pub measured: Option<Measured>,
}

impl Limits {
    /// Whether kernels in WGSL run on a CPU. Drivers that do so have an invocation in each lane of a vector: lanes beyond a
    /// grid are idle, and a barrier keeps what is in registers of every vector of a work-group. One work-group is one
    /// thread's, so that dividing a sum among its invocations gives no other thread work.
    #[doc(hidden)]
    pub fn has_lanes(&self) -> bool {
        self.family == Family::CpuDriver && self.dialect == Dialect::Wgsl
    }

    /// Whether that CPU driver is a browser's, which is SwiftShader and keeps no kernel from one visit to the next. It
    /// takes 450 ms to compile a sum of 16 vec4s and 60 ms for one of four, one kernel after the other.
    #[doc(hidden)]
    pub fn compiles_slowly(&self) -> bool {
        cfg!(target_family = "wasm") && self.has_lanes()
    }

    /// Whether kernels read and write halves one by one, so that rows of any length may be stored in them.
    #[doc(hidden)]
    pub fn has_half_rows(&self) -> bool {
        self.native_half || self.dialect == Dialect::OpenClC
    }

    /// 32-bit registers that an invocation of a work-group of so many can have, where that is known. Devices divide their
    /// registers among the invocations that run side by side. A work-group is never divided; on Adreno it is, unless its
    /// invocations wait for each other.
    #[doc(hidden)]
    pub fn registers(&self, invocations: u32, waits: bool) -> Option<u32> {
        let invocations = invocations.max(1);
        Some(match self.family {
            // As Mesa's compiler has it: 48 vec4s; or what the waves of a larger work-group share, of 64 vec4s and 128
            // invocations. Newer ones have half as many vec4s more.
            family if family.is_early_adreno() && waits && invocations <= 64 => 112,
            Family::Adreno(_) if invocations <= 64 || !waits => 192,
            // Beside what is under way there.
            family if family.is_early_adreno() => (4 * 64 * 128 / invocations.next_multiple_of(256)).min(112),
            Family::Adreno(_) => 4 * 64 * 128 / invocations.next_multiple_of(256),
            // 64 too. Mesa's compiler was seen to spill from counts of 47 on and not at 44: fitted to the networks of the tests.
            Family::Mali(MaliArchitecture::Bifrost) => 44,
            Family::Mali(_) => 64,
            // Mesa's compiler has no fewer than two threads share the 64 of a QPU. Kernels' counts have 16 for places and loops,
            // which seem to take none: it was seen to spill at counts of 52 and more, and not at 47. Fitted as well.
            Family::VideoCore => 48,
            // 4 KiB of each thread for 8, 16 or 32 invocations, and 56 threads; a third of them hold what messages to
            // memory are made of.
            Family::Intel if invocations <= 8 * 56 => 88,
            Family::Intel if invocations <= 16 * 56 => 44,
            Family::Intel => 22,
            // Of Vulkan's drivers, those whose waves can have 32 invocations have twice as many.
            Family::Amd => {
                let all = if self.subgroup.is_some_and(|[least, _]| least < 64) { 1 << 17 } else { 1 << 16 };
                (all / invocations).min(256)
            }
            // 208 KiB of a core of an M1, and 256 halves of an invocation.
            Family::Apple => ((208 << 10) / 4 / invocations).min(128),
            _ => return None,
        })
    }

    /// Bytes of local memory of a multiprocessor for work-groups side by side, where that was measured. NVIDIA's Vulkan
    /// driver gives all of them together what it allows one: on an H200, which has 228 KiB, three work-groups of 16 KiB
    /// run at a time, two of 24, and one of 25.
    pub(crate) fn local_memory_of_unit(&self) -> Option<u32> {
        match (self.family, self.dialect) {
            (Family::Nvidia, Dialect::Wgsl) => Some(self.local_memory),
            (Family::Nvidia, Dialect::OpenClC) => Some(NVIDIA_OPENCL_LOCAL_MEMORY),
            _ => None,
        }
    }

    /// The least that WebGPU promises: the limits of a device about which nothing is known.
    #[doc(hidden)]
    pub const fn webgpu() -> Self {
        Limits {
            dialect: Dialect::Wgsl,
            family: Family::Unknown,
            max_invocations: 256,
            max_work_group: [256, 256, 64],
            max_groups: [65535, 65535, 65535],
            local_memory: 16384,
            max_binding: 128 << 20,
            binding_alignment: 256,
            native_half: false,
            max_image: None,
            matrix_unit: None,
            subgroup: None,
            compute_units: None,
            max_turns: None,
            faults: Faults::NONE,
            measured: None,
        }
    }

    /// Typical limits of an OpenCL 1.2 device with images.
    #[doc(hidden)]
    pub const fn opencl() -> Self {
        Limits {
            dialect: Dialect::OpenClC,
            family: Family::Unknown,
            max_invocations: 256,
            max_work_group: [256, 256, 64],
            max_groups: [u32::MAX, u32::MAX, u32::MAX],
            local_memory: 32768,
            max_binding: 128 << 20,
            binding_alignment: 128,
            native_half: false,
            max_image: Some([8192, 8192]),
            matrix_unit: None,
            subgroup: None,
            compute_units: None,
            max_turns: None,
            faults: Faults::NONE,
            measured: None,
        }
    }
}
