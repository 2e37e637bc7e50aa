//! Flags that several commands share.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use diptych::{Backend, Context, DeviceSelector, Dims, Family, HostTensor, MaliArchitecture};

/// Three numbers `X,Y,Z`.
pub(crate) fn triple(text: &str) -> Result<[u32; 3], String> {
    let numbers = numbers(text)?;
    <[u32; 3]>::try_from(&numbers[..]).map_err(|_| format!("found {} numbers, wanted X,Y,Z", numbers.len()))
}

/// Whole numbers separated by commas.
pub(crate) fn numbers(text: &str) -> Result<Vec<u32>, String> {
    text.split(',')
        .map(|number| {
            number.trim().parse().map_err(|error| format!("{number:?} is no whole number: {error}"))
        })
        .collect()
}

/// An extent that a model's file leaves open, and what it is to be: `NAME=EXTENT`.
pub(crate) fn dimension(text: &str) -> Result<(String, usize), String> {
    let parsed =
        text.rsplit_once('=').and_then(|(name, extent)| Some((name.to_owned(), extent.parse().ok()?)));
    parsed
        .filter(|(name, extent)| !name.is_empty() && *extent > 0)
        .ok_or_else(|| "wanted NAME=EXTENT".to_owned())
}

/// An input that is known while a model is read, and its numbers: `NAME=NUMBER`, or `NAME=NUMBER,NUMBER` for a list.
pub(crate) fn value(text: &str) -> Result<(String, HostTensor), String> {
    let wanted = || format!("found {text:?}, wanted NAME=NUMBER or NAME=NUMBER,NUMBER");
    let (name, list) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wanted)?;
    let numbers: Option<Vec<f32>> = list.split(',').map(|number| number.trim().parse().ok()).collect();
    let numbers = numbers.ok_or_else(wanted)?;
    let dims = if numbers.len() == 1 {
        Dims::SCALAR
    } else {
        Dims::new(&[numbers.len()]).map_err(|error| error.to_string())?
    };
    HostTensor::new(dims, numbers).map(|tensor| (name.to_owned(), tensor)).map_err(|error| error.to_string())
}

/// What a network runs on.
#[derive(Debug, clap::Args)]
pub(crate) struct On {
    /// The backend.
    #[arg(
        long,
        default_value = "auto",
        value_parser = PossibleValuesParser::new(["auto", "wgpu", "opencl", "cpu"])
            .try_map(|text| text.parse::<Backend>())
    )]
    pub(crate) backend: Backend,

    /// The device instead: a PCI address, a UUID, a part of its name or its number, alone or after `wgpu:` or `opencl:`.
    /// Without either, DIPTYCH_DEVICE says which.
    #[arg(long, value_name = "DEVICE", conflicts_with = "backend")]
    pub(crate) device: Option<DeviceSelector>,
}

impl On {
    pub(crate) fn context(&self) -> diptych::Result<Context> {
        context(self.backend, self.device.as_ref())
    }
}

/// The device that the flags name.
fn context(backend: Backend, device: Option<&DeviceSelector>) -> diptych::Result<Context> {
    let builder = Context::builder().backend(backend);
    match device {
        Some(device) => builder.device(device.clone()).open(),
        None => builder.open(),
    }
}

/// The device that the flags name; without any, the best of each API that has one.
pub(crate) fn contexts(
    backend: Option<Backend>,
    device: Option<&DeviceSelector>,
) -> diptych::Result<Vec<Context>> {
    if backend.is_some() || device.is_some() {
        return Ok(vec![context(backend.unwrap_or_default(), device)?]);
    }
    let mut found = Vec::new();
    for backend in [Backend::Wgpu, Backend::OpenCl] {
        match Context::new(backend) {
            Ok(context) => found.push(context),
            Err(error) => eprintln!("{backend}: {error}"),
        }
    }
    Ok(found)
}

/// The GPU families that rules distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FamilyName {
    /// Qualcomm Adreno, 4xx and later.
    Adreno,
    /// Qualcomm Adreno 3xx.
    Adreno3xx,
    /// Arm Mali.
    Mali,
    /// NVIDIA.
    Nvidia,
    /// AMD.
    Amd,
    /// A driver that runs kernels on the CPU.
    Cpu,
    /// Any other GPU.
    Default,
}

impl FamilyName {
    pub(crate) fn family(self) -> Family {
        match self {
            // No model: the rules look only at the series.
            FamilyName::Adreno => Family::Adreno(0),
            FamilyName::Adreno3xx => Family::Adreno(300),
            FamilyName::Mali => Family::Mali(MaliArchitecture::Unknown),
            FamilyName::Nvidia => Family::Nvidia,
            FamilyName::Amd => Family::Amd,
            FamilyName::Cpu => Family::CpuDriver,
            FamilyName::Default => Family::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_are_three_whole_numbers() {
        assert_eq!(triple("8,4,1"), Ok([8, 4, 1]));
        assert_eq!(triple("8, 4, 4294967295"), Ok([8, 4, u32::MAX]));
        for (text, words) in [
            ("8,4", "found 2 numbers, wanted X,Y,Z"),
            ("8,4,1,1", "found 4 numbers"),
            ("8,x,1", "\"x\" is no whole number"),
            ("8,-4,1", "\"-4\" is no whole number"),
            ("8,4,4294967296", "number too large"),
            ("", "is no whole number"),
        ] {
            let error = triple(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn dimensions_are_names_and_extents() {
        assert_eq!(dimension("image.1=320"), Ok(("image.1".to_owned(), 320)));
        assert_eq!(dimension("a=b=2"), Ok(("a=b".to_owned(), 2)));
        for wrong in ["batch", "=3", "batch=0", "batch=x"] {
            assert!(dimension(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_names_and_numbers() {
        let (name, tensor) = value("sr=16000").expect("a number");
        assert_eq!((&name[..], tensor.dims().rank(), &*tensor.to_f32()), ("sr", 0, &[16000.0][..]));
        let (name, tensor) = value("a=b=1, -2.5").expect("a list");
        assert_eq!((&name[..], tensor.dims().rank(), &*tensor.to_f32()), ("a=b", 1, &[1.0, -2.5][..]));
        for wrong in ["sr", "=3", "sr=", "sr=x", "sr=1,,2"] {
            assert!(value(wrong).is_err(), "{wrong}");
        }
    }
}
