//! GPU families, from names and ids, and what is known about them.
//!
//! The numbers are read from the TensorFlow Lite / LiteRT GPU delegate
//! (`delegates/gpu/common/gpu_info.cc`, LiteRT commit f67457790c9c). Some are published by the
//! vendor, the others are the delegate's own estimates; they guide a first guess, never a limit.

use crate::limits::{Family, MaliArchitecture};

const NVIDIA: u32 = 0x10DE;
const AMD: [u32; 2] = [0x1002, 0x1022];
const INTEL: u32 = 0x8086;
const QUALCOMM: u32 = 0x5143;
const ARM: u32 = 0x13B5;
const IMAGINATION: u32 = 0x1010;
const APPLE: u32 = 0x106B;
const BROADCOM: u32 = 0x14E4;

/// Parts of names, in lower case, that only drivers for CPUs use.
const CPU_DRIVERS: [&str; 4] = ["llvmpipe", "swiftshader", "pthread-", "oclgrind"];

/// Parts of names that identify the family where the vendor id does not.
const NAMED: [(&str, Family); 17] = [
    ("nvidia", Family::Nvidia),
    ("geforce", Family::Nvidia),
    ("quadro", Family::Nvidia),
    ("tesla", Family::Nvidia),
    ("radeon", Family::Amd),
    ("amd ", Family::Amd),
    ("intel", Family::Intel),
    ("apple", Family::Apple),
    ("powervr", Family::PowerVr),
    ("rogue", Family::PowerVr),
    ("img axe", Family::PowerVr),
    ("img bxe", Family::PowerVr),
    ("img bxm", Family::PowerVr),
    ("img bxs", Family::PowerVr),
    ("v3d ", Family::VideoCore),
    ("videocore", Family::VideoCore),
    ("broadcom", Family::VideoCore),
];

/// The family of a device, from its name, its vendor's id, and whether its driver runs kernels
/// on the CPU.
///
/// The id decides where it is known; OpenCL drivers do not always give the PCI id, so the name
/// decides otherwise.
pub fn family(name: &str, vendor_id: u32, is_cpu: bool) -> Family {
    let name = name.to_ascii_lowercase();
    if is_cpu || name.starts_with("cpu-") || CPU_DRIVERS.iter().any(|part| name.contains(part)) {
        return Family::CpuDriver;
    }
    if vendor_id == QUALCOMM || name.contains("adreno") {
        return Family::Adreno(adreno_model(&name));
    }
    if vendor_id == ARM || name.contains("mali") || name.contains("immortalis") {
        return Family::Mali(mali(&name).map_or(MaliArchitecture::Unknown, |model| model.architecture));
    }
    match vendor_id {
        NVIDIA => return Family::Nvidia,
        INTEL => return Family::Intel,
        IMAGINATION => return Family::PowerVr,
        APPLE => return Family::Apple,
        BROADCOM => return Family::VideoCore,
        id if AMD.contains(&id) => return Family::Amd,
        _ => {}
    }
    if let Some((_, family)) = NAMED.iter().find(|(part, _)| name.contains(part)) {
        return *family;
    }
    // AMD's OpenCL names a device by its instruction set: gfx906, gfx1030.
    if name.strip_prefix("gfx").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit())) {
        return Family::Amd;
    }
    Family::Unknown
}

/// Invocations that run in lockstep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WaveSize {
    /// Where a kernel's registers allow full waves.
    pub full: u32,
    /// Where they allow only half waves.
    pub half: u32,
}

/// What is known about a GPU beyond what its driver says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Vendor and architecture.
    pub family: Family,
    /// Shader cores. Exact for the Adreno models listed, one estimate per architecture for Mali.
    pub compute_units: Option<u32>,
    /// Invocations that run in lockstep.
    pub wave_size: Option<WaveSize>,
    /// Waves one compute unit keeps in flight.
    pub max_waves: Option<u32>,
    /// Bytes of registers of one compute unit.
    pub register_bytes: Option<u32>,
}

/// Multiprocessors of some NVIDIA models, from their data sheets; longer names first. Slices of four QPUs of VideoCores, by
/// what is said of the Raspberry Pi 4 and 5 (32 and 76.8 GFLOP/s).
const UNITS: [(Family, &str, u32); 9] = [
    (Family::Nvidia, "H200", 132),
    (Family::Nvidia, "H100 PCIe", 114),
    (Family::Nvidia, "H100", 132),
    (Family::Nvidia, "A100", 108),
    (Family::Nvidia, "L40", 142),
    (Family::Nvidia, "V100", 80),
    (Family::Nvidia, "RTX 4090", 128),
    (Family::VideoCore, "V3D 4.", 2),
    (Family::VideoCore, "V3D 7.", 3),
];

/// What is known about the device called `name`, of family `family`.
pub fn facts(family: Family, name: &str) -> Facts {
    match family {
        Family::Adreno(model) => adreno_facts(model),
        Family::Mali(architecture) => Facts {
            family,
            compute_units: match (architecture, mali(&name.to_ascii_lowercase())) {
                (_, Some(MaliModel { name: "g57", .. })) => Some(6),
                (MaliArchitecture::Midgard | MaliArchitecture::Valhall, _) => Some(8),
                (MaliArchitecture::Bifrost, _) => Some(16),
                _ => None,
            },
            wave_size: None,
            max_waves: None,
            register_bytes: None,
        },
        _ => Facts {
            family,
            compute_units: UNITS
                .iter()
                .find(|(listed, part, _)| family == *listed && name.contains(part))
                .map(|(.., units)| *units),
            wave_size: None,
            max_waves: None,
            register_bytes: None,
        },
    }
}

/// Adreno models with the number of their compute units (shader processors).
const ADRENO_COMPUTE_UNITS: [(u32, u32); 36] = [
    (750, 6),
    (740, 6),
    (730, 4),
    (685, 4),
    (680, 4),
    (675, 4),
    (660, 3),
    (650, 3),
    (640, 2),
    (630, 2),
    (620, 1),
    (618, 1),
    (616, 1),
    (615, 1),
    (612, 1),
    (610, 1),
    (605, 1),
    (540, 4),
    (530, 4),
    (512, 2),
    (510, 2),
    (509, 2),
    (508, 1),
    (506, 1),
    (505, 1),
    (504, 1),
    (430, 4),
    (420, 4),
    (418, 2),
    (405, 1),
    (330, 4),
    (320, 2),
    (308, 1),
    (306, 1),
    (305, 1),
    (304, 1),
];

fn adreno_facts(model: u32) -> Facts {
    let series = model / 100;
    Facts {
        family: Family::Adreno(model),
        compute_units: ADRENO_COMPUTE_UNITS
            .iter()
            .find(|(listed, _)| *listed == model)
            .map(|(_, units)| *units),
        wave_size: match series {
            1..=3 => Some(WaveSize { full: 32, half: 16 }),
            4 | 5 => Some(WaveSize { full: 64, half: 32 }),
            6 | 7 => Some(WaveSize { full: 128, half: 64 }),
            _ => None,
        },
        max_waves: match (series, model) {
            (_, 640) => Some(30),
            (6 | 7, _) => Some(16),
            _ => None,
        },
        register_bytes: match (series, model) {
            (_, 640) => Some(288 << 10),
            (_, 620 | 650 | 660) => Some(128 << 10),
            (6 | 7, _) => Some(192 << 10),
            _ => None,
        },
    }
}

/// The model in a lower-case name: the first number of three digits or more after `adreno`, or 0.
fn adreno_model(name: &str) -> u32 {
    let Some((_, after)) = name.split_once("adreno") else { return 0 };
    after
        .split(|letter: char| !letter.is_ascii_digit())
        .find(|digits| digits.len() >= 3)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MaliModel {
    name: &'static str,
    architecture: MaliArchitecture,
}

const MALI_MIDGARD: &[&str] =
    &["t604", "t622", "t624", "t628", "t658", "t678", "t720", "t760", "t820", "t830", "t860", "t880"];
const MALI_BIFROST: &[&str] = &["g31", "g51", "g71", "g52", "g72", "g76"];
const MALI_VALHALL: &[&str] = &["g57", "g77", "g68", "g78", "g310", "g510", "g610", "g710", "g715"];

/// The model in a lower-case name.
///
/// Models are compared whole, letter and all digits: `g310` is not `g31`, and a later `g720` is
/// not `g72`.
fn mali(name: &str) -> Option<MaliModel> {
    let models = [
        (MALI_MIDGARD, MaliArchitecture::Midgard),
        (MALI_BIFROST, MaliArchitecture::Bifrost),
        (MALI_VALHALL, MaliArchitecture::Valhall),
    ];
    name.split(|letter: char| !letter.is_ascii_alphanumeric()).find_map(|word| {
        let digits = word.get(1..)?.chars().take_while(char::is_ascii_digit).count();
        let model = word.get(..1 + digits)?;
        models.iter().find_map(|(names, architecture)| {
            let name = names.iter().copied().find(|name| *name == model)?;
            Some(MaliModel { name, architecture: *architecture })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_tell_the_family() {
        use MaliArchitecture::{Bifrost, Midgard, Unknown, Valhall};
        let rows = [
            ("NVIDIA H200", NVIDIA, false, Family::Nvidia),
            ("Tesla T4", NVIDIA, false, Family::Nvidia),
            ("NVIDIA GeForce RTX 4090", 0, false, Family::Nvidia),
            ("Adreno (TM) 630", QUALCOMM, false, Family::Adreno(630)),
            ("QUALCOMM Adreno(TM) 630", 0xA03_0001, false, Family::Adreno(630)),
            ("QUALCOMM Adreno(TM) OpenCL C 2.0 Adreno(TM) 540", 0, false, Family::Adreno(540)),
            ("Turnip Adreno (TM) 740v3", QUALCOMM, false, Family::Adreno(740)),
            ("QUALCOMM Adreno(TM)", QUALCOMM, false, Family::Adreno(0)),
            ("Mali-G76", ARM, false, Family::Mali(Bifrost)),
            ("Mali-G76 r0p0", 0x7212_0000, false, Family::Mali(Bifrost)),
            ("Mali-T880 MP12", 0, false, Family::Mali(Midgard)),
            ("Mali-G31", 0, false, Family::Mali(Bifrost)),
            ("Mali-G310", 0, false, Family::Mali(Valhall)),
            ("Mali-G51", 0, false, Family::Mali(Bifrost)),
            ("Mali-G510", 0, false, Family::Mali(Valhall)),
            ("Mali-G71MP8", 0, false, Family::Mali(Bifrost)),
            ("Mali-G710", 0, false, Family::Mali(Valhall)),
            ("Mali-G715-Immortalis MC11", 0, false, Family::Mali(Valhall)),
            ("Mali-G720", 0, false, Family::Mali(Unknown)),
            ("llvmpipe (LLVM 15.0.7, 256 bits)", 0x10005, true, Family::CpuDriver),
            ("llvmpipe (LLVM 15.0.7, 256 bits)", 0x10005, false, Family::CpuDriver),
            ("pthread-skylake-avx512-Intel(R) Xeon(R)", INTEL, true, Family::CpuDriver),
            ("cpu-sapphirerapids-INTEL(R) XEON(R)", INTEL, false, Family::CpuDriver),
            ("Intel(R) UHD Graphics", INTEL, false, Family::Intel),
            ("Intel(R) Arc(tm) A770 Graphics", 0, false, Family::Intel),
            ("AMD Radeon RX 6800 (RADV NAVI21)", 0x1002, false, Family::Amd),
            ("gfx1030", 0x1002, false, Family::Amd),
            ("gfx906:sramecc+:xnack-", 0, false, Family::Amd),
            ("Apple M2", APPLE, false, Family::Apple),
            ("Apple M2", 0x0102_7F00, false, Family::Apple),
            ("PowerVR Rogue GE8320", IMAGINATION, false, Family::PowerVr),
            ("PowerVR B-Series BXM-8-256", 0, false, Family::PowerVr),
            ("V3D 4.2.14.0", BROADCOM, false, Family::VideoCore),
            ("V3D 7.1.10.2", 0, false, Family::VideoCore),
            ("gfxsomething", 0, false, Family::Unknown),
            ("", 0, false, Family::Unknown),
        ];
        let wrong: Vec<_> = rows
            .iter()
            .filter(|(name, id, cpu, wanted)| family(name, *id, *cpu) != *wanted)
            .map(|row| (row, family(row.0, row.1, row.2)))
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn adreno_facts_follow_model_and_series() {
        let rows = [
            (750, Some(6), Some(128), Some(16), Some(196_608)),
            (660, Some(3), Some(128), Some(16), Some(131_072)),
            (640, Some(2), Some(128), Some(30), Some(294_912)),
            (630, Some(2), Some(128), Some(16), Some(196_608)),
            (540, Some(4), Some(64), None, None),
            (330, Some(4), Some(32), None, None),
            (225, None, Some(32), None, None),
            (830, None, None, None, None),
            (0, None, None, None, None),
        ];
        for (model, units, wave, waves, registers) in rows {
            let facts = facts(Family::Adreno(model), "");
            assert_eq!(facts.compute_units, units, "{model}");
            assert_eq!(facts.wave_size.map(|size| size.full), wave, "{model}");
            assert_eq!(facts.wave_size.map(|size| size.half), wave.map(|full| full / 2), "{model}");
            assert_eq!(facts.max_waves, waves, "{model}");
            assert_eq!(facts.register_bytes, registers, "{model}");
        }
    }

    #[test]
    fn mali_compute_units_are_one_estimate_per_architecture() {
        for (name, units) in [
            ("Mali-T760", Some(8)),
            ("Mali-G76", Some(16)),
            ("Mali-G57", Some(6)),
            ("Mali-G78", Some(8)),
            ("Mali-G999", None),
        ] {
            let facts = facts(family(name, ARM, false), name);
            assert_eq!(facts.compute_units, units, "{name}");
        }
    }
}
