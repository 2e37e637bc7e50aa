//! Which device, said in one text.

use super::Backend;
use crate::device::choice::DeviceChoice;
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Which device is wanted, as people write it: for flags, configurations and `DIPTYCH_DEVICE`.
///
/// | text | device |
/// |---|---|
/// | `auto`, `wgpu`, `opencl`, `cpu` | the backend's best |
/// | `gpu` | the best GPU of any API; an error where there is none, never the CPU |
/// | `0000:41:00.0`, `41:00.0` | the card at this PCI address |
/// | `GPU-0123abcd-45ef-6789-0a1b-2c3d4e5f6071` | the card with this UUID |
/// | `1` | the one at this place of the list of devices, counted from 0 |
/// | `H200` | the best one whose name contains this, in any case |
/// | `wgpu:` or `opencl:` and one of the last four | the same, on this backend |
///
/// ```
/// use diptych::{Context, DeviceSelector};
///
/// let selector: DeviceSelector = "cpu".parse()?;
/// println!("{}", Context::builder().device(selector).open()?.info());
/// assert_eq!("OpenCL:41:00.0".parse::<DeviceSelector>()?.to_string(), "opencl:0000:41:00.0");
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceSelector {
    pub(super) backend: Backend,
    pub(super) choice: DeviceChoice,
}

impl DeviceSelector {
    /// The backend that it names; [`Backend::Auto`] if it names none.
    ///
    /// ```
    /// use diptych::{Backend, DeviceSelector};
    ///
    /// let selector: DeviceSelector = "opencl:41:00.0".parse()?;
    /// assert_eq!(selector.backend(), Backend::OpenCl);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn backend(&self) -> Backend {
        self.backend
    }
}

impl FromStr for DeviceSelector {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wanted = "auto, gpu, cpu, wgpu or opencl, or a number, a PCI address, a UUID or a part of a name, alone or after \
                      wgpu: or opencl:";
        let refused = || Error::input("device", format!("{text:?}"), wanted);
        let trimmed = text.trim();
        if let Ok(backend) = trimmed.to_ascii_lowercase().parse() {
            return Ok(DeviceSelector { backend, choice: DeviceChoice::Best });
        }
        let named = trimmed.split_once(':').and_then(|(backend, rest)| {
            Some((backend.trim().to_ascii_lowercase().parse::<Backend>().ok()?, rest.trim()))
        });
        let (backend, rest) = named.unwrap_or((Backend::Auto, trimmed));
        if rest.is_empty() || matches!(backend, Backend::Cpu | Backend::Gpu) {
            return Err(refused());
        }
        let choice = if rest.bytes().all(|letter| letter.is_ascii_digit()) {
            DeviceChoice::Index(rest.parse().map_err(|_| refused())?)
        } else if let Ok(address) = rest.parse() {
            DeviceChoice::Pci(address)
        } else if let Ok(uuid) = rest.parse() {
            DeviceChoice::Uuid(uuid)
        } else {
            DeviceChoice::Name(rest.to_owned())
        };
        Ok(DeviceSelector { backend, choice })
    }
}

impl fmt::Display for DeviceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.choice, self.backend) {
            (DeviceChoice::Best, backend) => return write!(f, "{backend}"),
            (_, Backend::Auto) => {}
            (_, backend) => write!(f, "{backend}:")?,
        }
        match &self.choice {
            DeviceChoice::Best | DeviceChoice::Gpu => Ok(()),
            DeviceChoice::Index(index) => write!(f, "{index}"),
            DeviceChoice::Name(name) => f.write_str(name),
            DeviceChoice::Pci(address) => write!(f, "{address}"),
            DeviceChoice::Uuid(uuid) => write!(f, "{uuid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_backend_and_device_and_reads_back() {
        let uuid = "GPU-0123abcd-45ef-6789-0a1b-2c3d4e5f6071";
        for (text, backend, choice) in [
            ("auto", Backend::Auto, DeviceChoice::Best),
            (" CPU ", Backend::Cpu, DeviceChoice::Best),
            ("GPU", Backend::Gpu, DeviceChoice::Best),
            ("wgpu", Backend::Wgpu, DeviceChoice::Best),
            ("3", Backend::Auto, DeviceChoice::Index(3)),
            ("opencl:0", Backend::OpenCl, DeviceChoice::Index(0)),
            ("0000:41:00.0", Backend::Auto, DeviceChoice::Pci("41:00.0".parse().expect("an address"))),
            ("wgpu:41:00.0", Backend::Wgpu, DeviceChoice::Pci("41:00.0".parse().expect("an address"))),
            (uuid, Backend::Auto, DeviceChoice::Uuid(uuid.parse().expect("a UUID"))),
            ("Wgpu: llvmpipe", Backend::Wgpu, DeviceChoice::Name("llvmpipe".to_owned())),
            ("auto:H200", Backend::Auto, DeviceChoice::Name("H200".to_owned())),
            ("a: name", Backend::Auto, DeviceChoice::Name("a: name".to_owned())),
        ] {
            let selector: DeviceSelector = text.parse().expect(text);
            assert_eq!(selector, DeviceSelector { backend, choice }, "{text}");
            assert_eq!(selector.to_string().parse::<DeviceSelector>().expect("its own text"), selector);
        }
        for wrong in ["", " ", "wgpu:", "cpu:0", "gpu:0", "99999999999999999999999"] {
            let error = wrong.parse::<DeviceSelector>().expect_err(wrong).to_string();
            assert!(error.contains(&format!("device: found {wrong:?}")), "{error}");
        }
    }
}
