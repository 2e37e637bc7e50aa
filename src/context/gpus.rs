//! Each card once.

use super::{Backend, ContextBuilder, DeviceListing, devices};
use crate::device::DeviceInfo;

/// A card, with the APIs that reach it. Made by [`gpus`].
///
/// ```
/// for gpu in diptych::gpus() {
///     for (backend, place, device) in &gpu.devices {
///         println!("{backend} {place}: {device}");
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gpu {
    /// The card as each API lists it, with its place in the list of [`devices`]: wgpu's first.
    pub devices: Vec<(Backend, usize, DeviceInfo)>,
}

impl Gpu {
    /// Opens it through this API, or through the first that reaches it with [`Backend::Auto`] and [`Backend::Gpu`]. Nothing,
    /// if the API does not reach it.
    ///
    /// ```
    /// use diptych::Backend;
    ///
    /// for gpu in diptych::gpus() {
    ///     if let Some(builder) = gpu.builder(Backend::Auto) {
    ///         println!("{}", builder.open()?.info());
    ///     }
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn builder(&self, backend: Backend) -> Option<ContextBuilder> {
        let mut devices = self.devices.iter();
        let (backend, index, info) =
            devices.find(|(own, ..)| matches!(backend, Backend::Auto | Backend::Gpu) || *own == backend)?;
        let builder = ContextBuilder::default().backend(*backend);
        Some(match (info.pci, info.uuid) {
            (Some(address), _) => builder.pci(address),
            (None, Some(uuid)) => builder.uuid(uuid),
            (None, None) => builder.index(*index),
        })
    }
}

/// Every GPU of this machine once, however many APIs reach it; drivers that run kernels on the CPU are left out.
///
/// Two entries of different APIs are one card if they have the same PCI address or the same UUID. Where a driver reports
/// neither, they are taken for one if each API has no other entry without them, and the names are equal.
///
/// ```
/// println!("{} GPUs", diptych::gpus().len());
/// ```
pub fn gpus() -> Vec<Gpu> {
    merged(&devices())
}

fn merged(listings: &[DeviceListing]) -> Vec<Gpu> {
    let mut gpus: Vec<Gpu> = Vec::new();
    for listing in listings {
        let Ok(devices) = &listing.devices else { continue };
        let anonymous = |info: &DeviceInfo| info.pci.is_none() && info.uuid.is_none() && !info.is_cpu;
        let only = |list: &[DeviceInfo], info: &DeviceInfo| {
            anonymous(info) && list.iter().filter(|other| anonymous(other)).count() == 1
        };
        for (index, info) in devices.iter().enumerate().filter(|(_, info)| !info.is_cpu) {
            let is = |gpu: &&mut Gpu| {
                gpu.devices.iter().any(|(backend, _, known)| {
                    let others = listings.iter().find(|other| other.backend == *backend);
                    let list = others.and_then(|other| other.devices.as_deref().ok()).unwrap_or_default();
                    let alone = *backend != listing.backend && only(list, known) && only(devices, info);
                    known.is_same_card(info) || (alone && known.name == info.name)
                })
            };
            let entry = (listing.backend, index, info.clone());
            match gpus.iter_mut().find(is) {
                Some(gpu) => gpu.devices.push(entry),
                None => gpus.push(Gpu { devices: vec![entry] }),
            }
        }
    }
    gpus
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceUuid;
    use crate::limits::Limits;

    fn info(name: &str, bus: Option<u8>, uuid: Option<u8>) -> DeviceInfo {
        DeviceInfo {
            api: "Vulkan",
            name: name.to_owned(),
            driver: String::new(),
            pci: bus.and_then(|bus| format!("{bus:02x}:00.0").parse().ok()),
            uuid: uuid.map(|byte| DeviceUuid([byte; 16])),
            limits: Limits::webgpu(),
            is_cpu: name == "llvmpipe",
            timestamps: false,
        }
    }

    fn places(listings: [Vec<DeviceInfo>; 2]) -> Vec<Vec<(Backend, usize)>> {
        let [wgpu, opencl] = listings;
        let listings = [
            DeviceListing { backend: Backend::Wgpu, devices: Ok(wgpu) },
            DeviceListing { backend: Backend::OpenCl, devices: Ok(opencl) },
        ];
        let places = |gpu: Gpu| gpu.devices.iter().map(|(backend, index, _)| (*backend, *index)).collect();
        merged(&listings).into_iter().map(places).collect()
    }

    #[test]
    fn a_card_of_two_apis_is_one() {
        use Backend::{OpenCl, Wgpu};
        let wgpu = vec![
            info("H200", Some(1), Some(1)),
            info("H200", Some(2), Some(2)),
            info("llvmpipe", None, Some(9)),
        ];
        let opencl =
            vec![info("H200", None, Some(2)), info("H200", Some(1), None), info("Other", Some(3), None)];
        assert_eq!(
            places([wgpu, opencl]),
            [vec![(Wgpu, 0), (OpenCl, 1)], vec![(Wgpu, 1), (OpenCl, 0)], vec![(OpenCl, 2)]]
        );
        // Phones' drivers have neither sign: one GPU on each API, or nobody knows.
        let one = || info("Mali-G76", None, None);
        assert_eq!(places([vec![one()], vec![one()]]), [vec![(Wgpu, 0), (OpenCl, 0)]]);
        assert_eq!(places([vec![one()], vec![info("Mali-G78", None, None)]]).len(), 2);
        assert_eq!(places([vec![one(), one()], vec![one()]]).len(), 3);
    }
}
