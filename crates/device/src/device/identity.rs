//! What tells one card from another, on every API.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Where a device sits on the PCI bus, as in `0000:41:00.0`: domain, bus, device, function.
///
/// The same for one GPU on every API, which its name is not where there are several of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// The domain, 0 on most machines.
    pub domain: u32,
    /// The bus.
    pub bus: u8,
    /// The device on the bus.
    pub device: u8,
    /// The device's function.
    pub function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PciAddress { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl FromStr for PciAddress {
    type Err = Error;

    /// Reads `domain:bus:device.function` in hexadecimal digits; without the domain it is 0.
    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (place, function) = text.trim().rsplit_once('.')?;
            let (place, device) = place.rsplit_once(':')?;
            let (domain, bus) = place.rsplit_once(':').unwrap_or(("0", place));
            Some(PciAddress {
                domain: u32::from_str_radix(domain, 16).ok()?,
                bus: u8::from_str_radix(bus, 16).ok()?,
                device: u8::from_str_radix(device, 16).ok().filter(|&device| device < 32)?,
                function: u8::from_str_radix(function, 16).ok().filter(|&function| function < 8)?,
            })
        };
        parse().ok_or_else(|| {
            let wanted = "domain:bus:device.function in hexadecimal, such as 0000:41:00.0";
            Error::input("PCI address", format!("{text:?}"), wanted)
        })
    }
}

/// The identifier that a driver gives one card, as in `GPU-1c5e1f0a-7d0b-5f6e-9a3c-2b1d4e6f8a90`: Vulkan's `deviceUUID`,
/// OpenCL's `CL_DEVICE_UUID_KHR`, and what `nvidia-smi -L` prints of NVIDIA's cards.
///
/// The drivers of one vendor give a card one identifier on all of their APIs; drivers of different vendors for one card
/// need not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceUuid(pub [u8; 16]);

/// The bytes of each group of digits.
const GROUPS: [usize; 5] = [4, 2, 2, 2, 6];

impl fmt::Display for DeviceUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.0.iter();
        f.write_str("GPU")?;
        for group in GROUPS {
            f.write_str("-")?;
            bytes.by_ref().take(group).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        Ok(())
    }
}

impl FromStr for DeviceUuid {
    type Err = Error;

    /// Reads 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12, after `GPU-` or without it.
    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let trimmed = text.trim();
            let digits = trimmed.strip_prefix("GPU-").unwrap_or(trimmed);
            let groups: Vec<&str> = digits.split('-').collect();
            if !groups.iter().map(|group| group.len()).eq(GROUPS.map(|bytes| 2 * bytes)) {
                return None;
            }
            let whole = groups.concat();
            // A sign is no digit.
            if !whole.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            Some(DeviceUuid(u128::from_str_radix(&whole, 16).ok()?.to_be_bytes()))
        };
        parse().ok_or_else(|| {
            let wanted = "hexadecimal digits in groups of 8-4-4-4-12, such as nvidia-smi -L prints";
            Error::input("UUID", format!("{text:?}"), wanted)
        })
    }
}

/// What is known of which card a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Identity {
    pub(crate) pci: Option<PciAddress>,
    pub(crate) uuid: Option<DeviceUuid>,
}

impl Identity {
    /// Whether both are known to be one card.
    pub(crate) fn is(&self, other: &Identity) -> bool {
        fn same<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.is_some() && one == other
        }
        same(self.pci, other.pci) || same(self.uuid, other.uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pci_address_reads_back_from_its_text_and_nothing_else() {
        let address = PciAddress { domain: 0x10000, bus: 0x41, device: 0x1f, function: 7 };
        assert_eq!(address.to_string(), "10000:41:1f.7");
        assert_eq!(address.to_string().parse::<PciAddress>().expect("its own text"), address);
        let short = "41:00.0".parse::<PciAddress>().expect("without a domain");
        assert_eq!(short.to_string(), "0000:41:00.0");
        for wrong in
            ["", "41", "41:00", "0000:41:20.0", "0000:41:00.8", "0000:141:00.0", "g:0.0", "1:2:3:4.0"]
        {
            let error = wrong.parse::<PciAddress>().expect_err(wrong).to_string();
            assert!(error.contains(&format!("{wrong:?}")) && error.contains("0000:41:00.0"), "{error}");
        }
    }

    #[test]
    fn a_uuid_reads_back_from_its_text_and_nothing_else() {
        let text = "GPU-0123abcd-45ef-6789-0a1b-2c3d4e5f6071";
        let uuid: DeviceUuid = text.parse().expect("a UUID");
        assert_eq!((uuid.0[0], uuid.0[15]), (0x01, 0x71));
        assert_eq!(uuid.to_string(), text);
        assert_eq!(text.trim_start_matches("GPU-").parse::<DeviceUuid>().expect("without a prefix"), uuid);
        for wrong in [
            "",
            "GPU-",
            "GPU-0123abcd",
            "0123abcd45ef67890a1b2c3d4e5f6071",
            "0123abcd-45ef-6789-0a1b-2c3d4e5f60712",
            "+123abcd-45ef-6789-0a1b-2c3d4e5f6071",
            "g123abcd-45ef-6789-0a1b-2c3d4e5f6071",
        ] {
            let error = wrong.parse::<DeviceUuid>().expect_err(wrong).to_string();
            assert!(error.contains(&format!("{wrong:?}")) && error.contains("8-4-4-4-12"), "{error}");
        }
    }

    #[test]
    fn one_card_is_recognised_by_either_sign_and_not_by_what_is_missing() {
        let pci: Option<PciAddress> = "41:00.0".parse().ok();
        let uuid = Some(DeviceUuid([7; 16]));
        let of = |pci, uuid| Identity { pci, uuid };
        assert!(of(pci, None).is(&of(pci, uuid)) && of(None, uuid).is(&of(pci, uuid)));
        assert!(!of(pci, None).is(&of(None, uuid)) && !of(None, None).is(&of(None, None)));
    }
}
