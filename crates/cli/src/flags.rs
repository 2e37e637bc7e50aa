//! Flags that several commands share.

use crate::output::say;
use anyhow::{Result, ensure};
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use diptych::{
    Backend, Context, DeviceSelector, Dims, Family, Fastest, FastestOptions, HostTensor, LoadOptions,
    MaliArchitecture, SessionOptions, Tuning,
};
use std::num::NonZeroUsize;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

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

/// A step's name and a work-group: `STEP=X,Y,Z`.
pub(crate) fn work_group(text: &str) -> Result<(String, [u32; 3]), String> {
    let (name, size) =
        text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or("wanted STEP=X,Y,Z")?;
    let size = triple(size)?;
    if size.contains(&0) {
        Err("wanted extents of at least 1".to_owned())
    } else {
        Ok((name.to_owned(), size))
    }
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
///
/// They are f32, or integers where f32 does not hold them.
pub(crate) fn value(text: &str) -> Result<(String, HostTensor), String> {
    let wanted = || format!("found {text:?}, wanted NAME=NUMBER or NAME=NUMBER,NUMBER");
    let (name, list) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wanted)?;
    let numbers = || list.split(',').map(str::trim);
    let floats: Vec<f32> =
        numbers().map(|number| number.parse().ok()).collect::<Option<_>>().ok_or_else(wanted)?;
    let integers: Option<Vec<i64>> = numbers().map(|number| number.parse().ok()).collect();
    let rounded =
        |integers: &Vec<i64>| integers.iter().any(|&integer| integer as f32 as i128 != i128::from(integer));
    let dims = match floats.len() {
        1 => Dims::SCALAR,
        count => Dims::new(&[count]).map_err(|error| error.to_string())?,
    };
    let tensor = match integers.filter(rounded) {
        Some(integers) => HostTensor::of(dims, integers),
        None => HostTensor::new(dims, floats),
    };
    tensor.map(|tensor| (name.to_owned(), tensor)).map_err(|error| error.to_string())
}

/// What a model's file leaves open.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Load {
    /// A dimension without a fixed extent in the file: `batch`, or `INPUT.AXIS` as in `image.1`.
    #[arg(long, value_name = "NAME=EXTENT", value_parser = dimension)]
    pub(crate) dimension: Vec<(String, usize)>,

    /// An input that is known while the model is read: a number, or numbers as a list; integers of 64 bits are exact. A
    /// model that computes shapes or branches from an input wants it.
    #[arg(long, value_name = "NAME=NUMBER[,..]", value_parser = value)]
    pub(crate) value: Vec<(String, HostTensor)>,

    /// An input to which an ONNX file gives a value of its own, and that is to be an input all the same.
    #[arg(long, value_name = "NAME")]
    pub(crate) open_input: Vec<String>,

    /// The signature of a TensorFlow Lite file whose network is meant [default: the file's first network].
    #[arg(long, value_name = "NAME")]
    pub(crate) signature: Option<String>,

    /// Compute quantized operators on the floats that their integers stand for, and not on the integers.
    #[arg(long)]
    pub(crate) dequantize: bool,

    /// How many threads read the file, prepare the network, and run it on the CPU, at most [default: all].
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<NonZeroUsize>,
}

impl Load {
    pub(crate) fn options(&self) -> LoadOptions {
        LoadOptions {
            dimensions: self.dimension.iter().cloned().collect(),
            values: self.value.iter().cloned().collect(),
            inputs: self.open_input.iter().cloned().collect(),
            signature: self.signature.clone(),
            dequantize: self.dequantize,
            threads: self.threads,
            ..LoadOptions::default()
        }
    }
}

/// What one of the `left` of `all` devices that are still to be tuned has of a budget for all, of which `spent` is over. What the
/// others left is shared; what they took too much is not taken from it.
pub(crate) fn share(budget: Duration, spent: Duration, left: usize, all: usize) -> Duration {
    let part = |of: Duration, among: usize| of / u32::try_from(among.max(1)).unwrap_or(u32::MAX);
    part(budget.saturating_sub(spent), left).max(part(budget, all))
}

/// A number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("found {text:?}, wanted a number of seconds"))
}

/// What a network runs on.
#[derive(Debug, clap::Args)]
pub(crate) struct On {
    /// The backend.
    #[arg(
        long,
        default_value = "auto",
        value_parser = PossibleValuesParser::new(["auto", "gpu", "wgpu", "opencl", "cpu"])
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

/// A backend, or the fastest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackendChoice {
    One(Backend),
    Fastest,
}

impl FromStr for BackendChoice {
    type Err = diptych::Error;

    fn from_str(text: &str) -> diptych::Result<Self> {
        if text == "fastest" { Ok(BackendChoice::Fastest) } else { text.parse().map(BackendChoice::One) }
    }
}

/// What a network runs on, which may be measured.
#[derive(Debug, clap::Args)]
pub(crate) struct OnFastest {
    /// The backend. `fastest` measures this model on wgpu, OpenCL and the CPU, and keeps the verdict in the tuner's record,
    /// where it is found from then on.
    #[arg(
        long,
        default_value = "auto",
        value_parser = PossibleValuesParser::new(["auto", "gpu", "wgpu", "opencl", "cpu", "fastest"])
            .try_map(|text| text.parse::<BackendChoice>())
    )]
    pub(crate) backend: BackendChoice,

    /// The device instead: a PCI address, a UUID, a part of its name or its number, alone or after `wgpu:` or `opencl:`.
    /// Without either, DIPTYCH_DEVICE says which.
    #[arg(long, value_name = "DEVICE", conflicts_with = "backend")]
    pub(crate) device: Option<DeviceSelector>,

    /// With `--backend fastest`: measure although the record has a verdict, as after tuning.
    #[arg(long)]
    pub(crate) anew: bool,
}

impl OnFastest {
    /// The device that the flags name. If the fastest is wanted, `find` finds it for a session of these options and
    /// inputs; its record is the one at `record`, or the default one.
    pub(crate) fn context(
        &self,
        session: &SessionOptions,
        inputs: &[(&str, &HostTensor)],
        record: Option<&Path>,
        find: impl FnOnce(&FastestOptions) -> diptych::Result<Fastest>,
    ) -> Result<Context> {
        let backend = match self.backend {
            BackendChoice::One(backend) => backend,
            BackendChoice::Fastest => {
                let record = match session.tuning {
                    // It is that of the session.
                    Tuning::Database(_) => None,
                    _ => Some(Arc::new(Mutex::new(crate::tune::record(record)?.0))),
                };
                let inputs = inputs.iter().map(|&(name, tensor)| (name.to_owned(), tensor.clone())).collect();
                let session = session.clone();
                let options =
                    FastestOptions { session, record, inputs, anew: self.anew, ..Default::default() };
                return Ok(find(&options)?.context);
            }
        };
        ensure!(!self.anew, "--anew measures anew: wanted --backend fastest too");
        Ok(context(backend, self.device.as_ref())?)
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

/// The GPUs that kernels are timed on.
#[derive(Debug, clap::Args)]
pub(crate) struct Gpus {
    /// The backend [default: both GPU APIs, one after the other].
    #[arg(
        long,
        value_parser = PossibleValuesParser::new(["wgpu", "opencl"])
            .try_map(|text| text.parse::<Backend>())
    )]
    pub(crate) backend: Option<Backend>,

    /// The device instead: a PCI address, a UUID, a part of its name or its number, alone or after `wgpu:` or `opencl:`.
    /// Without either, DIPTYCH_DEVICE says which.
    #[arg(long, value_name = "DEVICE", conflicts_with = "backend")]
    pub(crate) device: Option<DeviceSelector>,
}

impl Gpus {
    /// The device that the flags name; without any, the best of each API that has one.
    ///
    /// # Errors
    /// If there is no such device, or none at all.
    pub(crate) fn contexts(&self) -> Result<Vec<Context>> {
        if self.backend.is_some() || self.device.is_some() {
            return Ok(vec![context(self.backend.unwrap_or_default(), self.device.as_ref())?]);
        }
        let mut found = Vec::new();
        for backend in [Backend::Wgpu, Backend::OpenCl] {
            match Context::new(backend) {
                Ok(context) => found.push(context),
                Err(error) => say(format_args!("{backend}: {error}")),
            }
        }
        ensure!(!found.is_empty(), "no GPU API of this machine has a device");
        Ok(found)
    }
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
    fn devices_share_a_budget_and_what_others_leave_of_it() {
        let [none, second] = [0, 1].map(Duration::from_secs);
        assert_eq!(share(10 * second, none, 2, 2), 5 * second);
        assert_eq!(share(10 * second, 2 * second, 1, 2), 8 * second);
        assert_eq!(share(10 * second, 11 * second, 1, 2), 5 * second, "the first one took too long");
        assert_eq!(share(none, none, 0, 0), none);
        assert_eq!(seconds("0.5"), Ok(second / 2));
        for wrong in ["", "x", "-1", "inf", "1e40"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn work_groups_are_of_steps() {
        assert_eq!(work_group("a=b + c=8,4,1"), Ok(("a=b + c".to_owned(), [8, 4, 1])));
        for wrong in ["8,4,1", "=8,4,1", "a=8,4", "a=8,0,1"] {
            assert!(work_group(wrong).is_err(), "{wrong}");
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
        // Ids beyond 24 bits are what they are.
        let (_, tensor) = value("ids=16777217,-9223372036854775808").expect("a list");
        assert_eq!(tensor.elements::<i64>(), Some(&[16_777_217, i64::MIN][..]));
        for wrong in ["sr", "=3", "sr=", "sr=x", "sr=1,,2"] {
            assert!(value(wrong).is_err(), "{wrong}");
        }
    }
}
