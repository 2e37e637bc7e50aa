//! GPU families, from names and ids.

use crate::limits::{Family, MaliArchitecture};

/// The family of a device, from its name, its PCI vendor id (0 if unknown), and whether its driver
/// runs kernels on the CPU.
pub fn family(_name: &str, vendor_id: u32, is_cpu: bool) -> Family {
    match vendor_id {
        _ if is_cpu => Family::CpuDriver,
        0x10DE => Family::Nvidia,
        0x1002 => Family::Amd,
        0x8086 => Family::Intel,
        0x5143 => Family::Adreno(0),
        0x13B5 => Family::Mali(MaliArchitecture::Unknown),
        0x1010 => Family::PowerVr,
        0x106B => Family::Apple,
        _ => Family::Unknown,
    }
}
