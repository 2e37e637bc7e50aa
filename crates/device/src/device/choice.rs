//! Which of several devices is opened.

use super::identity::{DeviceUuid, Identity, PciAddress};
use std::fmt;

/// Which of an API's devices is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The best one.
    #[default]
    Best,
    /// The best one that does not run kernels on the CPU.
    Gpu,
    /// The one at this place of the API's list, the best first, counted from 0.
    Index(usize),
    /// The best whose name contains this, in any case.
    Name(String),
    /// The one that sits there.
    Pci(PciAddress),
    /// The one with this identifier.
    Uuid(DeviceUuid),
}

impl DeviceChoice {
    /// Whether it says which device it is about, and not where it is on a list.
    #[cfg(any(feature = "wgpu", test))]
    pub(crate) const fn is_of_one(&self) -> bool {
        matches!(self, DeviceChoice::Name(_) | DeviceChoice::Pci(_) | DeviceChoice::Uuid(_))
    }

    /// Why the device at `index`, known as `title`, is not wanted, if it is not. `is_cpu`: whether its driver runs kernels
    /// on the CPU.
    pub(crate) fn obstacle(
        &self,
        index: usize,
        title: &str,
        identity: Identity,
        is_cpu: bool,
    ) -> Option<String> {
        match self {
            DeviceChoice::Best => None,
            DeviceChoice::Gpu => is_cpu.then(|| "its driver runs kernels on the CPU".to_owned()),
            DeviceChoice::Index(wanted) => (index != *wanted).then(|| format!("it is number {index}")),
            DeviceChoice::Name(wanted) => (!title.to_lowercase().contains(&wanted.to_lowercase()))
                .then(|| format!("its name does not contain {wanted:?}")),
            DeviceChoice::Pci(wanted) => match identity.pci {
                Some(found) => (found != *wanted).then(|| format!("its PCI address is {found}")),
                None => Some("its driver does not report its PCI address".to_owned()),
            },
            DeviceChoice::Uuid(wanted) => match identity.uuid {
                Some(found) => (found != *wanted).then(|| format!("its UUID is {found}")),
                None => Some("its driver does not report its UUID".to_owned()),
            },
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Best => f.write_str("the best device"),
            DeviceChoice::Gpu => f.write_str("the best GPU"),
            DeviceChoice::Index(index) => write!(f, "device number {index}"),
            DeviceChoice::Name(name) => write!(f, "the best device whose name contains {name:?}"),
            DeviceChoice::Pci(address) => write!(f, "the device at PCI address {address}"),
            DeviceChoice::Uuid(uuid) => write!(f, "the device with UUID {uuid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_takes_its_device_and_says_why_not_another() {
        let at = |text: &str| text.parse::<PciAddress>().expect("an address");
        let devices = [
            ("Some GPU", Some(at("0000:01:00.0"))),
            ("Other GPU", Some(at("0000:41:00.0"))),
            ("llvmpipe", None),
        ];
        let uuid = DeviceUuid([1; 16]);
        let identity = |pci: Option<PciAddress>| Identity { pci, uuid: pci.map(|_| uuid) };
        let taken = |choice: DeviceChoice| -> Vec<usize> {
            let of = |&index: &usize| {
                choice.obstacle(index, devices[index].0, identity(devices[index].1), index == 2).is_none()
            };
            (0..devices.len()).filter(of).collect()
        };
        let of = |choice: &DeviceChoice, index: usize| {
            choice.obstacle(index, devices[index].0, identity(devices[index].1), index == 2)
        };
        // A driver that is not conformant is not for these.
        let of_one = [DeviceChoice::Name("gpu".into()), DeviceChoice::Uuid(uuid)];
        assert!(of_one.iter().all(DeviceChoice::is_of_one));
        let any = [DeviceChoice::Best, DeviceChoice::Gpu, DeviceChoice::Index(0)];
        assert!(!any.iter().any(DeviceChoice::is_of_one));
        assert_eq!(taken(DeviceChoice::Best), [0, 1, 2]);
        assert_eq!(taken(DeviceChoice::Gpu), [0, 1]);
        assert_eq!(of(&DeviceChoice::Gpu, 2).as_deref(), Some("its driver runs kernels on the CPU"));
        assert_eq!(taken(DeviceChoice::Index(1)), [1]);
        assert_eq!(taken(DeviceChoice::Name("gpu".to_owned())), [0, 1]);
        assert_eq!(taken(DeviceChoice::Pci(at("41:00.0"))), [1]);
        let pci = DeviceChoice::Pci(at("41:00.0"));
        let reasons = [0, 2].map(|index| of(&pci, index));
        assert_eq!(reasons[0].as_deref(), Some("its PCI address is 0000:01:00.0"));
        assert_eq!(reasons[1].as_deref(), Some("its driver does not report its PCI address"));
        assert_eq!(taken(DeviceChoice::Uuid(uuid)), [0, 1]);
        let other = DeviceChoice::Uuid(DeviceUuid([2; 16]));
        assert_eq!(of(&other, 0), Some(format!("its UUID is {uuid}")));
        assert_eq!(of(&other, 2).as_deref(), Some("its driver does not report its UUID"));
    }
}
