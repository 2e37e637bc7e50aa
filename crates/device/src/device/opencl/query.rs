//! Which devices there are, and what each allows.

use super::call::{check, failure};
use super::{cl, loader, lock};
use crate::device::choice::DeviceChoice;
use crate::device::identity::{DeviceUuid, Identity, PciAddress};
use crate::device::options::DeviceOptions;
use crate::device::{DeviceInfo, family};
use crate::emit::Dialect;
use crate::error::{Error, Result};
use crate::limits::faults::{Faults, Identified};
use crate::limits::{Limits, MatrixUnit};
use crate::sorted;
use cl3::device::{
    CL_DEVICE_ADDRESS_BITS, CL_DEVICE_AVAILABLE, CL_DEVICE_COMPILER_AVAILABLE,
    CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, CL_DEVICE_EXTENSIONS,
    CL_DEVICE_HOST_UNIFIED_MEMORY, CL_DEVICE_IMAGE_SUPPORT, CL_DEVICE_IMAGE2D_MAX_HEIGHT,
    CL_DEVICE_IMAGE2D_MAX_WIDTH, CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_MAX_COMPUTE_UNITS,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_MAX_WORK_ITEM_SIZES,
    CL_DEVICE_MEM_BASE_ADDR_ALIGN, CL_DEVICE_NAME, CL_DEVICE_OPENCL_C_VERSION, CL_DEVICE_PCI_BUS_ID_NV,
    CL_DEVICE_PCI_BUS_INFO_KHR, CL_DEVICE_PCI_SLOT_ID_NV, CL_DEVICE_PLATFORM, CL_DEVICE_TYPE,
    CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU,
    CL_DEVICE_UUID_KHR, CL_DEVICE_VENDOR_ID, CL_DEVICE_VERSION, CL_DRIVER_VERSION, cl_device_id,
};
use cl3::platform::{CL_PLATFORM_NAME, cl_platform_id};
use opencl3::device::Device;
use std::sync::Mutex;

/// The PCI domain in NVIDIA's `cl_nv_device_attribute_query`, which `cl3` does not name.
const CL_DEVICE_PCI_DOMAIN_ID_NV: u32 = 0x400A;

/// What `clGetPlatformIDs` of the usual loader answers where no driver is installed.
const NO_PLATFORM: i32 = -1001;

/// A device that was found.
pub(super) struct FoundDevice {
    pub(super) device: Device,
    pub(super) platform: String,
    /// What it is; or why it cannot be used.
    pub(super) info: Result<DeviceInfo>,
    /// GPUs before accelerators before CPUs, memory of its own before memory of the host.
    rank: u8,
}

impl FoundDevice {
    fn name(&self) -> String {
        match &self.info {
            Ok(info) => info.name.clone(),
            Err(_) => text(self.device.id(), CL_DEVICE_NAME).unwrap_or_else(|_| "unnamed device".to_owned()),
        }
    }
}

/// What the library knows.
pub(super) struct Devices {
    /// The devices, the best first.
    pub(super) found: Vec<FoundDevice>,
    /// Platforms that do not say which devices they have, and why.
    failed: Vec<String>,
}

/// Every device of every platform, the best first.
pub(super) fn devices(options: &DeviceOptions) -> Result<Devices> {
    // Loaders and drivers set themselves up in these calls, and not all of them take two threads
    // in there at once: PoCL then answers that it has no device.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = lock(&ONE_AT_A_TIME);
    loader::load(options.opencl_library.as_deref())?;
    let platforms = match cl::get_platform_ids() {
        Ok(platforms) => platforms,
        Err(NO_PLATFORM) => Vec::new(),
        Err(code) => return Err(failure("clGetPlatformIDs", code)),
    };
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for id in platforms {
        let platform = platform_name(id)?;
        // One broken driver must not hide the others.
        let devices = match cl::get_device_ids(id, CL_DEVICE_TYPE_ALL) {
            Ok(devices) => devices,
            Err(code) => {
                let failure = format!("platform {platform}: {}", failure("clGetDeviceIDs", code));
                tracing::warn!("{failure}");
                failed.push(failure);
                continue;
            }
        };
        for device in devices.into_iter().map(Device::new) {
            let rank = rank(device.id());
            found.push(FoundDevice {
                device,
                info: describe(device.id(), options),
                platform: platform.clone(),
                rank,
            });
        }
    }
    sorted::sort_by_key(&mut found, |device: &FoundDevice| std::cmp::Reverse(device.rank));
    Ok(Devices { found, failed })
}

/// The best usable device that is wanted, by its own or its platform's name.
pub(super) fn best(choice: &DeviceChoice, options: &DeviceOptions) -> Result<(Device, DeviceInfo)> {
    let Devices { found, failed: mut tried } = devices(options)?;
    let mut index = 0;
    for found in found {
        let title = format!("{} ({})", found.name(), found.platform);
        let info = match found.info {
            Ok(info) => info,
            Err(error) => {
                tried.push(format!("{title}: {error}"));
                continue;
            }
        };
        match choice.obstacle(index, &title, info.identity(), info.is_cpu) {
            None => return Ok((found.device, info)),
            Some(obstacle) => tried.push(format!("{title}: {obstacle}")),
        }
        index += 1;
    }
    if tried.is_empty() {
        tried.push("no device that the library knows".to_owned());
    }
    Err(Error::NoDevice { backend: "OpenCL".to_owned(), wanted: choice.to_string(), tried })
}

/// Whether the device has memory that is not the host's.
pub(super) fn own_memory(device: cl_device_id) -> bool {
    !truth(device, CL_DEVICE_HOST_UNIFIED_MEMORY).unwrap_or(true)
}

fn rank(device: cl_device_id) -> u8 {
    let kind = number(device, CL_DEVICE_TYPE).unwrap_or(0);
    let own_memory = u8::from(own_memory(device));
    if kind & CL_DEVICE_TYPE_GPU != 0 {
        4 + own_memory
    } else if kind & CL_DEVICE_TYPE_ACCELERATOR != 0 {
        2
    } else {
        u8::from(kind & CL_DEVICE_TYPE_CPU != 0)
    }
}

fn platform_name(id: cl_platform_id) -> Result<String> {
    let bytes = check("clGetPlatformInfo", cl::get_platform_data(id, CL_PLATFORM_NAME))?;
    Ok(clean(&String::from_utf8_lossy(&bytes)))
}

/// A string as drivers pad it, without padding.
fn clean(text: &str) -> String {
    text.trim_matches(|letter: char| letter == '\0' || letter.is_whitespace()).to_owned()
}

/// The answer of a device query.
fn bytes(device: cl_device_id, what: u32) -> Result<Vec<u8>> {
    check("clGetDeviceInfo", cl::get_device_data(device, what))
}

/// The text of an answer, as it is.
fn raw_text(device: cl_device_id, what: u32) -> Result<String> {
    Ok(String::from_utf8_lossy(&bytes(device, what)?).trim_end_matches('\0').to_owned())
}

fn text(device: cl_device_id, what: u32) -> Result<String> {
    Ok(clean(&raw_text(device, what)?))
}

/// The number of an answer: of 32 bits, or as wide as an address.
fn number(device: cl_device_id, what: u32) -> Result<u64> {
    let bytes = bytes(device, what)?;
    cl::number(&bytes).ok_or_else(|| Error::Internal(format!("clGetDeviceInfo({what:#x}) gave no number")))
}

fn truth(device: cl_device_id, what: u32) -> Result<bool> {
    Ok(number(device, what)? != 0)
}

/// What the device offers beyond the version of its language.
pub(super) fn extensions(device: cl_device_id) -> Result<String> {
    raw_text(device, CL_DEVICE_EXTENSIONS)
}

/// The platform of a device.
pub(super) fn platform(device: cl_device_id) -> Result<cl_platform_id> {
    let platform = usize::try_from(number(device, CL_DEVICE_PLATFORM)?);
    let platform = platform.map_err(|_| Error::Internal("clGetDeviceInfo gave no platform".to_owned()))?;
    Ok(std::ptr::with_exposed_provenance_mut(platform))
}

/// The nearest `u32`.
fn clamp(value: impl TryInto<u32>) -> u32 {
    value.try_into().unwrap_or(u32::MAX)
}

/// Asks `device` what it is and what it allows.
///
/// # Errors
/// If it cannot run OpenCL C 1.2 kernels, or a query fails.
pub(super) fn describe(device: cl_device_id, options: &DeviceOptions) -> Result<DeviceInfo> {
    let name = text(device, CL_DEVICE_NAME)?;
    let refuse = |reason: String| Err(Error::unsupported(format!("OpenCL device {name}"), reason));
    let version = text(device, CL_DEVICE_VERSION)?;
    if !at_least_1_2(&version) {
        return refuse(format!("it offers {version:?}, the kernels need OpenCL 1.2"));
    }
    if !truth(device, CL_DEVICE_AVAILABLE)? {
        return refuse("its driver says that it is not available".to_owned());
    }
    if !truth(device, CL_DEVICE_COMPILER_AVAILABLE)? {
        return refuse("its driver has no compiler".to_owned());
    }
    let platform = platform_name(platform(device)?)?;
    let is_cpu = number(device, CL_DEVICE_TYPE)? & CL_DEVICE_TYPE_CPU != 0;
    // Adreno drivers report the model only in the version of the language.
    let full_name = match name.to_ascii_lowercase().contains("adreno") {
        true => format!("{name} {}", text(device, CL_DEVICE_OPENCL_C_VERSION)?),
        false => name.clone(),
    };
    let sizes = bytes(device, CL_DEVICE_MAX_WORK_ITEM_SIZES)?;
    let sizes: Vec<usize> = sizes.as_chunks().0.iter().map(|size| usize::from_ne_bytes(*size)).collect();
    let size = |axis: usize| clamp(sizes.get(axis).copied().unwrap_or(1));
    let max_image = match truth(device, CL_DEVICE_IMAGE_SUPPORT)? {
        true => {
            let [width, height] = [CL_DEVICE_IMAGE2D_MAX_WIDTH, CL_DEVICE_IMAGE2D_MAX_HEIGHT];
            Some([clamp(number(device, width)?), clamp(number(device, height)?)])
        }
        false => None,
    };
    let extensions = extensions(device)?;
    let family = family::family(&full_name, clamp(number(device, CL_DEVICE_VENDOR_ID)?), is_cpu);
    let driver = format!("{platform} {}", text(device, CL_DRIVER_VERSION)?);
    let faults = Faults::of(&Identified { family, name: &full_name, api: "OpenCL", driver: &driver });
    let limits = Limits {
        dialect: Dialect::OpenClC,
        family,
        max_invocations: clamp(number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE)?),
        max_work_group: [size(0), size(1), size(2)],
        max_groups: [u32::MAX; 3],
        local_memory: clamp(number(device, CL_DEVICE_LOCAL_MEM_SIZE)?),
        max_binding: number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
        // The driver counts bits.
        binding_alignment: number(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN)?.div_ceil(8).max(1),
        native_half: half_arithmetic(device, &extensions, options.unlisted_halves),
        max_image,
        matrix_unit: capability(device, &extensions)
            .filter(|&capability| capability >= 80)
            .map(|capability| MatrixUnit::Ptx { capability, warp_groups: false }),
        // No kernel in OpenCL C asks for them.
        subgroup: None,
        compute_units: Some(clamp(number(device, CL_DEVICE_MAX_COMPUTE_UNITS)?)),
        max_turns: faults.turns(),
        faults,
        measured: None,
    };
    let limits = match options.checked_kernels {
        // What can be checked is WGSL, which has neither images here nor inline assembly.
        true => Limits { dialect: Dialect::Wgsl, max_image: None, matrix_unit: None, ..limits },
        false => limits,
    };
    let Identity { pci, uuid } = identity(device, &extensions);
    Ok(DeviceInfo { api: "OpenCL", name, driver, pci, uuid, limits, is_cpu, timestamps: true })
}

/// Whether kernels may compute with halves: where the driver promises it and, if that is asked for, on
/// NVIDIA's GPUs that have the instructions. Its OpenCL takes half arithmetic without listing it; the
/// kernels bring the functions along that it lacks (`emit/halves.rs`), and before the first of them a tiny
/// one shows that it is so ([`super::half`]).
fn half_arithmetic(device: cl_device_id, extensions: &str, unlisted: bool) -> bool {
    let able = || capability(device, extensions).is_some_and(|capability| capability >= 53);
    lists_halves(extensions) || (unlisted && able())
}

/// Whether the driver promises half arithmetic.
pub(super) fn lists_halves(extensions: &str) -> bool {
    clean(extensions).split_whitespace().any(|extension| extension == "cl_khr_fp16")
}

/// Ten times the compute capability of an NVIDIA device whose driver reports it
/// (`cl_nv_device_attribute_query`).
pub(super) fn capability(device: cl_device_id, extensions: &str) -> Option<u32> {
    let told = extensions.split_whitespace().any(|extension| extension == "cl_nv_device_attribute_query");
    if !told {
        return None;
    }
    let part = |what| number(device, what).ok();
    let (major, minor) =
        (part(CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV)?, part(CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV)?);
    Some(clamp(10 * major + minor))
}

/// Which card the device is.
fn identity(device: cl_device_id, extensions: &str) -> Identity {
    let listed = extensions.split_whitespace().any(|extension| extension == "cl_khr_device_uuid");
    let uuid = || {
        let bytes = cl::get_device_data(device, CL_DEVICE_UUID_KHR).ok()?;
        Some(DeviceUuid(bytes.try_into().ok()?))
    };
    Identity { pci: pci_address(device, extensions), uuid: listed.then(uuid).flatten() }
}

/// Where the device sits on the PCI bus, by either of two extensions.
fn pci_address(device: cl_device_id, extensions: &str) -> Option<PciAddress> {
    let listed = |name: &str| extensions.split_whitespace().any(|extension| extension == name);
    let words = |what: u32| -> Option<Vec<u32>> {
        let bytes = cl::get_device_data(device, what).ok()?;
        Some(bytes.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word)).collect())
    };
    let byte = |word: u32| u8::try_from(word).ok();
    if listed("cl_khr_pci_bus_info") {
        let [domain, bus, device, function] = words(CL_DEVICE_PCI_BUS_INFO_KHR)?.try_into().ok()?;
        return Some(PciAddress {
            domain,
            bus: byte(bus)?,
            device: byte(device)?,
            function: byte(function)?,
        });
    }
    if !listed("cl_nv_device_attribute_query") {
        return None;
    }
    let word = |what: u32| words(what)?.first().copied();
    let slot = word(CL_DEVICE_PCI_SLOT_ID_NV)?;
    Some(PciAddress {
        // Older drivers do not know it.
        domain: word(CL_DEVICE_PCI_DOMAIN_ID_NV).unwrap_or(0),
        bus: byte(word(CL_DEVICE_PCI_BUS_ID_NV)?)?,
        device: byte(slot >> 3)?,
        function: byte(slot & 7)?,
    })
}

/// Whether a version string, `OpenCL <major>.<minor> <vendor's text>`, is at least 1.2.
fn at_least_1_2(version: &str) -> bool {
    let numbers = version.strip_prefix("OpenCL ").and_then(|rest| rest.split_whitespace().next());
    let parsed = numbers.and_then(|numbers| {
        let (major, minor) = numbers.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    });
    parsed.is_some_and(|version| version >= (1, 2))
}

/// Width in bits of the device's addresses, which bounds the number of invocations.
pub(super) fn address_bits(device: cl_device_id) -> Result<u32> {
    Ok(clamp(number(device, CL_DEVICE_ADDRESS_BITS)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, enough) in [
            ("OpenCL 1.2", true),
            ("OpenCL 1.1 Mesa", false),
            ("OpenCL 1.10", true),
            ("OpenCL 3.0 PoCL HSTR: pthread", true),
            ("OpenCL 2.0 Adreno(TM) 540", true),
            ("OpenCL", false),
            ("", false),
        ] {
            assert_eq!(at_least_1_2(version), enough, "{version:?}");
        }
    }

    #[test]
    fn padding_is_removed() {
        assert_eq!(clean("  Mali-G76 \0\0"), "Mali-G76");
    }
}
