//! The properties of `diptychinfer`.

use crate::failure::{Failure, Kind};
use diptych::{
    Backend, Context, Database, DeviceSelector, Fit, Graph, LoadOptions, Precision, SessionOptions,
    SharedDatabase, Tuning,
};
use gst::glib;
use gst::prelude::*;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a frame is shown to a network whose picture has other proportions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstDiptychFit")]
#[repr(i32)]
pub enum FrameFit {
    /// Each axis has its own scale.
    #[default]
    #[enum_value(name = "Each axis has its own scale", nick = "stretch")]
    Stretch = 0,
    /// All of the frame is seen, with a border.
    #[enum_value(name = "All of the frame is seen, with a border", nick = "letterbox")]
    Letterbox = 1,
    /// The frame covers the network's picture, and what overhangs is cut off.
    #[enum_value(name = "What overhangs the network's picture is cut off", nick = "crop")]
    Crop = 2,
}

impl From<FrameFit> for Fit {
    fn from(fit: FrameFit) -> Self {
        match fit {
            FrameFit::Stretch => Fit::Stretch,
            FrameFit::Letterbox => Fit::Letterbox,
            FrameFit::Crop => Fit::Fill,
        }
    }
}

/// Storage and arithmetic on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstDiptychPrecision")]
#[repr(i32)]
pub enum NetworkPrecision {
    /// f32 storage and arithmetic.
    #[default]
    #[enum_value(name = "f32 storage and arithmetic", nick = "f32")]
    F32 = 0,
    /// f16 storage where a bound allows it.
    #[enum_value(name = "f16 storage where the operators' own bounds allow it", nick = "auto")]
    Auto = 1,
    /// f32 storage; matrix units may round to ten bits of mantissa.
    #[enum_value(name = "f32 storage; matrix units may round to ten bits of mantissa", nick = "tf32")]
    Tf32 = 2,
    /// f32 storage; matrix units may multiply sums of two halves.
    #[enum_value(name = "f32 storage; matrix units may multiply sums of two halves", nick = "splitf16")]
    SplitF16 = 3,
    /// f16 storage, f32 arithmetic.
    #[enum_value(name = "f16 storage, f32 arithmetic", nick = "f16s")]
    F16Storage = 4,
    /// f16 storage and arithmetic.
    #[enum_value(name = "f16 storage and arithmetic", nick = "f16")]
    F16 = 5,
}

impl From<NetworkPrecision> for Precision {
    fn from(precision: NetworkPrecision) -> Self {
        match precision {
            NetworkPrecision::F32 => Precision::F32,
            NetworkPrecision::Auto => Precision::Auto,
            NetworkPrecision::Tf32 => Precision::Tf32,
            NetworkPrecision::SplitF16 => Precision::SplitF16,
            NetworkPrecision::F16Storage => Precision::F16Storage,
            NetworkPrecision::F16 => Precision::F16,
        }
    }
}

/// What the properties say.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) model: Option<String>,
    pub(crate) backend: String,
    pub(crate) precision: NetworkPrecision,
    pub(crate) batch: u32,
    pub(crate) fit: FrameFit,
    pub(crate) range: Vec<f32>,
    pub(crate) mean: Vec<f32>,
    pub(crate) std: Vec<f32>,
    pub(crate) border: Vec<f32>,
    pub(crate) bgr: bool,
    pub(crate) input_width: u32,
    pub(crate) input_height: u32,
    pub(crate) outputs: Option<String>,
    pub(crate) dequantize: bool,
    pub(crate) record: Option<String>,
    pub(crate) tuning_time: f64,
    pub(crate) kernel_cache: Option<String>,
    pub(crate) threads: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            model: None,
            backend: "auto".to_owned(),
            precision: NetworkPrecision::default(),
            batch: 1,
            fit: FrameFit::default(),
            range: Vec::new(),
            mean: Vec::new(),
            std: Vec::new(),
            border: Vec::new(),
            bgr: false,
            input_width: 0,
            input_height: 0,
            outputs: None,
            dequantize: false,
            record: None,
            tuning_time: 0.0,
            kernel_cache: None,
            threads: 0,
        }
    }
}

/// The numbers of an array of integers and floats.
pub(crate) fn numbers(value: &glib::Value) -> Vec<f32> {
    let array = value.get::<gst::Array>().unwrap_or_default();
    let number = |value: &glib::SendValue| {
        let number = value.get::<f64>().map(|number| number as f32).or_else(|_| value.get::<f32>());
        // What is no number is refused where the numbers are read.
        number.or_else(|_| value.get::<i32>().map(|number| number as f32)).unwrap_or(f32::NAN)
    };
    array.as_slice().iter().map(number).collect()
}

/// Numbers as the array of a property.
pub(crate) fn array(numbers: &[f32]) -> glib::Value {
    gst::Array::new(numbers.iter().map(|&number| f64::from(number))).to_value()
}

impl Settings {
    /// Two or three numbers of a property, if it is set.
    pub(super) fn some<const N: usize>(name: &str, found: &[f32]) -> Result<Option<[f32; N]>, Failure> {
        if found.is_empty() {
            return Ok(None);
        }
        let numbers = <[f32; N]>::try_from(found).ok();
        let numbers = numbers.filter(|numbers| numbers.iter().all(|number| number.is_finite()));
        numbers.map(Some).ok_or_else(|| {
            Failure::setting(format!(
                "{name}: found {found:?}, wanted {N} numbers, as in {name}=\"<0.0, 1.0>\""
            ))
        })
    }

    /// The device, for the `backend` as other packages of Diptych name it, or by the kind of hardware or API.
    fn selector(&self) -> Result<DeviceSelector, Failure> {
        let text = self.backend.trim();
        let text = match text.split_once(':').unwrap_or((text, "")) {
            ("vulkan", "") if text == "vulkan" => "wgpu".to_owned(),
            ("vulkan", rest) => format!("wgpu:{rest}"),
            ("gpu", rest) if text != "gpu" => rest.to_owned(),
            _ => text.to_owned(),
        };
        text.parse().map_err(|_| {
            Failure::setting(format!(
                "backend: found {:?}, wanted auto, gpu, vulkan, wgpu, opencl, cpu or fastest, or the number, PCI address, UUID \
                 or a part of the name of one of several devices, as in vulkan:1",
                self.backend
            ))
        })
    }

    /// Opens the device; for `fastest`, the one that took the least time for the network.
    pub(super) fn context(&self, graph: &Graph, session: &SessionOptions) -> Result<Context, Failure> {
        let cache = self.kernel_cache.as_deref().filter(|folder| !folder.is_empty());
        if self.backend.trim() == "fastest" {
            if let Some(folder) = cache {
                let wanted = "wanted none with backend=fastest, whose devices have the user's own";
                return Err(Failure::setting(format!("kernel-cache: found {folder:?}, {wanted}")));
            }
            let options = diptych::FastestOptions { session: session.clone(), ..Default::default() };
            return Ok(Context::fastest(graph, &options)?.context);
        }
        let mut builder = Context::builder().device(self.selector()?);
        if let Some(folder) = cache {
            builder = builder.kernel_cache(folder);
        }
        let context = builder.open()?;
        let is_gpu_wanted = self.backend.trim().split(':').next() == Some("gpu");
        if is_gpu_wanted && context.info().backend == Backend::Cpu {
            let text = format!("backend: found no GPU, wanted one: {}", context.info().reason);
            return Err(Failure { kind: Kind::Missing, text });
        }
        Ok(context)
    }

    pub(super) fn load_options(&self) -> LoadOptions {
        LoadOptions { dequantize: self.dequantize, ..LoadOptions::default() }
    }

    /// How the session is to run.
    pub(super) fn session_options(&self) -> Result<SessionOptions, Failure> {
        let tuning = match &self.record {
            None if self.tuning_time > 0.0 => {
                return Err(Failure::setting(format!(
                    "record: found none, wanted a folder for what tuning-time={} finds",
                    self.tuning_time
                )));
            }
            None => Tuning::Default,
            Some(folder) => {
                let database = match folder.as_str() {
                    "" => Database::open(Database::default_dir()?)?,
                    folder => Database::open(folder)?,
                };
                let database: SharedDatabase = Arc::new(Mutex::new(database));
                match self.tuning_time > 0.0 {
                    true => Tuning::Online { database, budget: Duration::from_secs_f64(self.tuning_time) },
                    false => Tuning::Database(database),
                }
            }
        };
        Ok(SessionOptions {
            precision: self.precision.into(),
            tuning,
            cpu_threads: NonZeroUsize::new(self.threads as usize),
            ..SessionOptions::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_named_by_api_and_by_kind() {
        let selector = |text: &str| Settings { backend: text.to_owned(), ..Settings::default() }.selector();
        let names = [
            ("auto", "auto"),
            ("gpu", "gpu"),
            ("vulkan", "wgpu"),
            ("vulkan:1", "wgpu:1"),
            ("gpu:1", "1"),
            ("opencl:0000:41:00.0", "opencl:0000:41:00.0"),
            ("cpu", "cpu"),
        ];
        for (text, wanted) in names {
            assert_eq!(selector(text).expect(text).to_string(), wanted, "{text}");
        }
        let refused = selector("vulkan:").expect_err("nothing behind the colon");
        assert_eq!(refused.kind, Kind::Setting);
        assert!(
            refused.text.starts_with("backend: found \"vulkan:\", wanted auto, gpu, "),
            "{}",
            refused.text
        );
    }

    #[test]
    fn a_time_for_tuning_wants_a_record() {
        let settings = Settings { tuning_time: 2.5, ..Settings::default() };
        let refused = settings.session_options().expect_err("no record");
        assert_eq!(refused.text, "record: found none, wanted a folder for what tuning-time=2.5 finds");
        let folder = tempfile::tempdir().expect("a folder");
        let record = Some(folder.path().display().to_string());
        let options = Settings { record, ..settings }.session_options().expect("a record");
        assert!(matches!(options.tuning, Tuning::Online { budget, .. } if budget.as_millis() == 2500));
    }

    #[test]
    fn numbers_are_as_many_as_wanted() {
        assert_eq!(Settings::some::<2>("range", &[]), Ok(None));
        assert_eq!(Settings::some("range", &[-1.0, 1.0]), Ok(Some([-1.0, 1.0])));
        for found in [&[1.0][..], &[f32::NAN, 1.0], &[1.0, 2.0, 3.0]] {
            let refused = Settings::some::<2>("range", found).expect_err("others");
            assert!(refused.text.starts_with("range: found [") && refused.text.contains("wanted 2 numbers"));
        }
    }
}
