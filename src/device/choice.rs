//! Which of several devices is opened.

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

/// Which of an API's devices is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum DeviceChoice {
    /// The best one.
    #[default]
    Best,
    /// The one at this place of the API's list, the best first, counted from 0.
    Index(usize),
    /// The best whose name contains this, in any case.
    Name(String),
    /// The one that sits there.
    Pci(PciAddress),
}

impl DeviceChoice {
    /// Why the device at `index`, known as `title`, is not wanted, if it is not.
    pub(crate) fn obstacle(&self, index: usize, title: &str, pci: Option<PciAddress>) -> Option<String> {
        match self {
            DeviceChoice::Best => None,
            DeviceChoice::Index(wanted) => (index != *wanted).then(|| format!("it is number {index}")),
            DeviceChoice::Name(wanted) => (!title.to_lowercase().contains(&wanted.to_lowercase()))
                .then(|| format!("its name does not contain {wanted:?}")),
            DeviceChoice::Pci(wanted) => match pci {
                Some(found) => (found != *wanted).then(|| format!("its PCI address is {found}")),
                None => Some("its driver does not report its PCI address".to_owned()),
            },
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Best => f.write_str("the best device"),
            DeviceChoice::Index(index) => write!(f, "device number {index}"),
            DeviceChoice::Name(name) => write!(f, "the best device whose name contains {name:?}"),
            DeviceChoice::Pci(address) => write!(f, "the device at PCI address {address}"),
        }
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
    fn a_choice_takes_its_device_and_says_why_not_another() {
        let at = |text: &str| text.parse::<PciAddress>().expect("an address");
        let devices = [
            ("Some GPU", Some(at("0000:01:00.0"))),
            ("Other GPU", Some(at("0000:41:00.0"))),
            ("llvmpipe", None),
        ];
        let taken = |choice: DeviceChoice| -> Vec<usize> {
            let of = |&index: &usize| choice.obstacle(index, devices[index].0, devices[index].1).is_none();
            (0..devices.len()).filter(of).collect()
        };
        assert_eq!(taken(DeviceChoice::Best), [0, 1, 2]);
        assert_eq!(taken(DeviceChoice::Index(1)), [1]);
        assert_eq!(taken(DeviceChoice::Name("gpu".to_owned())), [0, 1]);
        assert_eq!(taken(DeviceChoice::Pci(at("41:00.0"))), [1]);
        let pci = DeviceChoice::Pci(at("41:00.0"));
        let reasons = [0, 2].map(|index| pci.obstacle(index, devices[index].0, devices[index].1));
        assert_eq!(reasons[0].as_deref(), Some("its PCI address is 0000:01:00.0"));
        assert_eq!(reasons[1].as_deref(), Some("its driver does not report its PCI address"));
    }
}
