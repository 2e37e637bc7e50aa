//! What may be chosen when a device is opened.

use super::cache::{KernelCache, default_dir};
use std::path::PathBuf;
use std::time::Duration;

/// Where compiled kernels are kept from one start to the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeepKernels {
    /// Beside the tuner's record, in the user's cache directory or where `DIPTYCH_CACHE_DIR` says.
    #[default]
    Standard,
    /// This directory.
    In(PathBuf),
    /// Nowhere.
    Nowhere,
}

/// How a device is opened. A field that is `None` is left to the device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceOptions {
    /// Whether the ops' kernels keep bounds checks and loop bounds: `DIPTYCH_CHECKED_SHADERS`.
    pub checked_kernels: bool,
    /// Whether work-group memory is zeroed before the ops' kernels: `DIPTYCH_ZEROED_MEMORY`.
    pub zeroed_memory: bool,
    /// Where compiled kernels are kept: `DIPTYCH_CACHE_DIR`.
    pub keep_kernels: KeepKernels,
    /// The OpenCL library, and no other: `DIPTYCH_OPENCL_LIBRARY`.
    pub opencl_library: Option<String>,
    /// Whether NVIDIA's OpenCL is asked to compute with halves, which it does not list:
    /// `DIPTYCH_UNLISTED_HALVES`.
    pub unlisted_halves: bool,
    /// Whether OpenCL runs copy through pinned memory; by default where the device has memory of its own.
    pub pinned_copies: Option<bool>,
    /// Whether `cl_khr_command_buffer` is used; by default where it is offered.
    pub command_buffers: Option<bool>,
    /// Whether the device's driver is to say what it makes of each kernel, where it can.
    pub statistics: bool,
    /// How long a wait for the device may take; without a limit if not said: `DIPTYCH_TIME_LIMIT`, in seconds.
    pub time_limit: Option<Duration>,
}

impl DeviceOptions {
    /// The defaults, overridden by the environment.
    pub(crate) fn from_environment() -> Self {
        Self::default().overridden(environment)
    }

    /// These options, overridden by the environment.
    pub fn overridden_by_environment(self) -> Self {
        self.overridden(environment)
    }

    fn overridden(self, read: impl Fn(&str) -> Option<String>) -> Self {
        let switch = |name: &str| match read(name)?.as_str() {
            "1" => Some(true),
            "0" => Some(false),
            other => {
                tracing::warn!("{name} is {other:?}, wanted 0 or 1: it is ignored");
                None
            }
        };
        let seconds = |name: &str| {
            let value = read(name)?;
            let limit = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let limit = limit.filter(|limit| !limit.is_zero());
            if limit.is_none() {
                tracing::warn!("{name} is {value:?}, wanted seconds: it is ignored");
            }
            limit
        };
        let keep_kernels = match (self.keep_kernels, read("DIPTYCH_CACHE_DIR")) {
            (KeepKernels::Standard | KeepKernels::In(_), Some(_)) => KeepKernels::Standard,
            (chosen, _) => chosen,
        };
        DeviceOptions {
            checked_kernels: switch("DIPTYCH_CHECKED_SHADERS").unwrap_or(self.checked_kernels),
            zeroed_memory: switch("DIPTYCH_ZEROED_MEMORY").unwrap_or(self.zeroed_memory),
            keep_kernels,
            opencl_library: read("DIPTYCH_OPENCL_LIBRARY").or(self.opencl_library),
            unlisted_halves: switch("DIPTYCH_UNLISTED_HALVES").unwrap_or(self.unlisted_halves),
            pinned_copies: self.pinned_copies,
            command_buffers: self.command_buffers,
            statistics: self.statistics,
            time_limit: seconds("DIPTYCH_TIME_LIMIT").or(self.time_limit),
        }
    }

    /// The compiled kernels on disk; none where they are not kept, or the platform has no such place.
    pub(crate) fn kernel_cache(&self) -> Option<KernelCache> {
        match &self.keep_kernels {
            KeepKernels::In(directory) => Some(KernelCache::within(directory)),
            KeepKernels::Nowhere => None,
            KeepKernels::Standard => match default_dir() {
                Ok(directory) => Some(KernelCache::within(&directory)),
                Err(error) => {
                    tracing::debug!("compiled kernels are not kept: {error}");
                    None
                }
            },
        }
    }
}

/// The value of an environment variable, if it is set, not empty, and text. A browser has none, and need not have what
/// reads them.
pub fn environment(name: &str) -> Option<String> {
    if cfg!(target_family = "wasm") {
        return None;
    }
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_overrides_its_field_and_no_other() {
        let chosen = DeviceOptions {
            zeroed_memory: true,
            keep_kernels: KeepKernels::In("there".into()),
            opencl_library: Some("libone.so".to_owned()),
            pinned_copies: Some(true),
            ..Default::default()
        };
        assert_eq!(chosen.clone().overridden(|_| None), chosen);
        let set = |variables: &'static [(&str, &str)]| {
            move |name: &str| {
                variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
            }
        };
        let variables = &[
            ("DIPTYCH_CHECKED_SHADERS", "1"),
            ("DIPTYCH_ZEROED_MEMORY", "0"),
            ("DIPTYCH_CACHE_DIR", "elsewhere"),
            ("DIPTYCH_OPENCL_LIBRARY", "libtwo.so"),
            ("DIPTYCH_UNLISTED_HALVES", "yes"),
            ("DIPTYCH_TIME_LIMIT", "2.5"),
        ];
        let wanted = DeviceOptions {
            checked_kernels: true,
            zeroed_memory: false,
            keep_kernels: KeepKernels::Standard,
            opencl_library: Some("libtwo.so".to_owned()),
            unlisted_halves: false,
            time_limit: Some(Duration::from_millis(2500)),
            ..chosen.clone()
        };
        assert_eq!(chosen.clone().overridden(set(variables)), wanted);
        for wrong in ["0", "-1", "soon", "inf", "NaN"] {
            let options =
                chosen.clone().overridden(|name| (name == "DIPTYCH_TIME_LIMIT").then(|| wrong.to_owned()));
            assert_eq!(options, chosen);
        }
        let nowhere = DeviceOptions { keep_kernels: KeepKernels::Nowhere, ..Default::default() };
        assert_eq!(nowhere.clone().overridden(set(&[("DIPTYCH_CACHE_DIR", "elsewhere")])), nowhere);
    }
}
