//! How a session is opened.

use crate::config::{Config, PREFIX};
use crate::environment::{Logger, Logging, severity, threads};
use crate::pointers::{hand_out, own, own_mut, put};
use crate::status::{Failure, calls, unsupported, wrong};
use crate::tensor::Given;
use diptych::{DeviceSelector, HostTensor};
use diptych_pointers::{c_text, slice, text, texts};
use ort_sys::{
    ExecutionMode, GraphOptimizationLevel, OrtErrorCode, OrtExecutionProviderDevicePolicy,
    OrtLoggingFunction, OrtPrepackedWeightsContainer, OrtSessionOptions, OrtValue,
};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};

/// The names of what runs networks, for `ExecutionProvider::is_available` and `SessionOptionsAppendExecutionProvider`.
pub(crate) const PROVIDERS: [&str; 3] =
    ["DiptychExecutionProvider", "WebGpuExecutionProvider", "CPUExecutionProvider"];

/// Entries of ONNX Runtime's that would change results, or where a network runs: the value that does not, and why others are
/// refused.
const REFUSED: [(&str, &str, &str); 4] = [
    ("ep.enable_weightless", "0", "a session has the weights of its model"),
    (
        "session.disable_cpu_ep_fallback",
        "0",
        "the entry session.diptych.backend with the value gpu keeps off the CPU",
    ),
    ("session.gqa_value_layout", "BNSH", "the values of a cache lie as batch, heads, places, elements"),
    ("session.set_denormal_as_zero", "0", "each device treats denormal numbers in its own way"),
];

#[derive(Debug)]
pub(crate) struct SessionOptions {
    entries: BTreeMap<String, String>,
    pub(crate) config: Config,
    /// The device of the first execution provider.
    provider: Option<DeviceSelector>,
    policy: Option<DeviceSelector>,
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) shares_threads: bool,
    pub(crate) dimensions: BTreeMap<String, usize>,
    pub(crate) values: BTreeMap<String, HostTensor>,
    /// Which of them were rounded.
    pub(crate) rounded: Vec<String>,
    pub(crate) logging: Logging,
    canceled: AtomicBool,
    mode: ExecutionMode,
    reuses_memory: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            entries: BTreeMap::new(),
            config: Config::default(),
            provider: None,
            policy: None,
            threads: None,
            shares_threads: false,
            dimensions: BTreeMap::new(),
            values: BTreeMap::new(),
            rounded: Vec::new(),
            logging: Logging::default(),
            canceled: AtomicBool::new(false),
            mode: ExecutionMode::ORT_SEQUENTIAL,
            reuses_memory: true,
        }
    }
}

impl SessionOptions {
    fn copy(&self) -> Self {
        SessionOptions {
            entries: self.entries.clone(),
            config: self.config.clone(),
            provider: self.provider.clone(),
            policy: self.policy.clone(),
            threads: self.threads,
            shares_threads: self.shares_threads,
            dimensions: self.dimensions.clone(),
            values: self.values.clone(),
            rounded: self.rounded.clone(),
            logging: self.logging,
            canceled: AtomicBool::new(false),
            mode: self.mode,
            reuses_memory: self.reuses_memory,
        }
    }

    /// The device: that of the entry, else of the first execution provider, else of the policy, else any.
    pub(crate) fn device(&self) -> DeviceSelector {
        let own = [&self.config.backend, &self.provider, &self.policy];
        own.into_iter().flatten().next().cloned().unwrap_or_default()
    }

    /// An error if another thread wants no session anymore.
    pub(crate) fn goes_on(&self) -> Result<(), Failure> {
        if self.canceled.load(Ordering::Relaxed) {
            let message = "the application canceled the loading of the model";
            return Err(Failure::new(OrtErrorCode::ORT_MODEL_LOAD_CANCELED, message));
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        if let Some(name) = key.strip_prefix(PREFIX) {
            self.config.set(name, value)?;
        }
        if let Some((_, taken, reason)) = REFUSED.into_iter().find(|(own, ..)| *own == key)
            && value != taken
        {
            return Err(unsupported(format!("the entry {key} with the value {value:?}"), reason));
        }
        self.entries.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Registers an execution provider. It is checked always, and counts if it is the first one.
    fn append(&mut self, name: &str, options: &[(&str, &str)]) -> Result<(), Failure> {
        let mut config = self.config.clone();
        let device: DeviceSelector = match name {
            "CPUExecutionProvider" | "CPU" => "cpu".parse()?,
            "WebGpuExecutionProvider" | "WebGPU" => {
                // The others are of ONNX Runtime's implementation.
                match options.iter().find(|(key, _)| *key == "deviceId") {
                    Some((_, id)) => format!("wgpu:{id}").parse()?,
                    None => "wgpu".parse()?,
                }
            }
            "DiptychExecutionProvider" | "Diptych" => {
                config.backend = None;
                for (name, value) in options {
                    config.set(name, value)?;
                }
                config.backend.take().unwrap_or_default()
            }
            other => {
                let reason = format!("this is Diptych, which has {}", PROVIDERS.join(", "));
                return Err(unsupported(format!("execution provider {other:?}"), reason));
            }
        };
        if self.provider.is_none() {
            self.provider = Some(device);
            // The entry for the device counts more than a provider.
            self.config = Config { backend: self.config.backend.take(), ..config };
        }
        Ok(())
    }
}

calls! {
    fn CreateSessionOptions(out: *mut *mut OrtSessionOptions) {
        hand_out(out, SessionOptions::default())
    }

    fn CloneSessionOptions(options: *const OrtSessionOptions, out: *mut *mut OrtSessionOptions) {
        hand_out(out, own(options)?.copy())
    }

    /// Networks are lowered alike at each level.
    fn SetSessionGraphOptimizationLevel(options: *mut OrtSessionOptions, _level: GraphOptimizationLevel) {
        own_mut(options).map(|_| ())
    }

    fn SetSessionExecutionMode(options: *mut OrtSessionOptions, mode: ExecutionMode) {
        own_mut(options)?.mode = mode;
        Ok(())
    }

    fn GetSessionExecutionMode(options: *const OrtSessionOptions, out: *mut ExecutionMode) {
        put("out", out, own(options)?.mode)
    }

    fn EnableMemPattern(options: *mut OrtSessionOptions) {
        own_mut(options)?.reuses_memory = true;
        Ok(())
    }

    fn DisableMemPattern(options: *mut OrtSessionOptions) {
        own_mut(options)?.reuses_memory = false;
        Ok(())
    }

    fn GetMemPatternEnabled(options: *const OrtSessionOptions, out: *mut c_int) {
        put("out", out, own(options)?.reuses_memory.into())
    }

    /// Asks for the CPU: `ort` calls it for `ep::CPU` with an arena.
    fn EnableCpuMemArena(options: *mut OrtSessionOptions) {
        own_mut(options)?.append("CPUExecutionProvider", &[])
    }

    /// Asks for the CPU: `ort` calls it for `ep::CPU` without an arena.
    fn DisableCpuMemArena(options: *mut OrtSessionOptions) {
        own_mut(options)?.append("CPUExecutionProvider", &[])
    }

    fn SetSessionLogId(options: *mut OrtSessionOptions, id: *const c_char) {
        own_mut(options)?;
        text("log id", id)?;
        Ok(())
    }

    fn SetSessionLogVerbosityLevel(options: *mut OrtSessionOptions, _level: c_int) {
        own_mut(options).map(|_| ())
    }

    fn SetSessionLogSeverityLevel(options: *mut OrtSessionOptions, level: c_int) {
        own_mut(options)?.logging.severity = Some(severity(level)?);
        Ok(())
    }

    fn SetUserLoggingFunction(
        options: *mut OrtSessionOptions,
        function: OrtLoggingFunction,
        parameter: *mut c_void,
    ) {
        own_mut(options)?.logging.logger = Some(Logger::new(function, parameter));
        Ok(())
    }

    /// The threads of the CPU backend; 0 is as many as there are cores.
    fn SetIntraOpNumThreads(options: *mut OrtSessionOptions, count: c_int) {
        own_mut(options)?.threads = threads("intra-op threads", count)?;
        Ok(())
    }

    /// The nodes of a network run one after the other.
    fn SetInterOpNumThreads(options: *mut OrtSessionOptions, count: c_int) {
        own_mut(options)?;
        threads("inter-op threads", count).map(|_| ())
    }

    fn DisablePerSessionThreads(options: *mut OrtSessionOptions) {
        own_mut(options)?.shares_threads = true;
        Ok(())
    }

    /// A run gives the same bits each time on one device.
    fn SetDeterministicCompute(options: *mut OrtSessionOptions, _value: bool) {
        own_mut(options).map(|_| ())
    }

    fn AddFreeDimensionOverrideByName(options: *mut OrtSessionOptions, name: *const c_char, extent: i64) {
        let name = text("dimension", name)?;
        let extent = usize::try_from(extent)
            .map_err(|_| wrong(&format!("dimension {name:?}"), format!("{extent}"), "0 or more"))?;
        own_mut(options)?.dimensions.insert(name.to_owned(), extent);
        Ok(())
    }

    fn AddInitializer(options: *mut OrtSessionOptions, name: *const c_char, value: *const OrtValue) {
        own_mut(options)?.add_value(text("initializer", name)?, &own(value)?.0)
    }

    fn AddExternalInitializers(
        options: *mut OrtSessionOptions,
        names: *const *const c_char,
        values: *const *const OrtValue,
        count: usize,
    ) {
        let names = texts("initializers", names, count)?;
        for (name, &value) in names.into_iter().zip(slice("initializers", values, count)?) {
            own_mut(options)?.add_value(name, &own(value)?.0)?;
        }
        Ok(())
    }

    fn AddSessionConfigEntry(options: *mut OrtSessionOptions, key: *const c_char, value: *const c_char) {
        own_mut(options)?.set(text("key", key)?, text("value", value)?)
    }

    fn HasSessionConfigEntry(options: *const OrtSessionOptions, key: *const c_char, out: *mut c_int) {
        put("out", out, own(options)?.entries.contains_key(text("key", key)?).into())
    }

    /// `size` is that of `value`, with the zero byte at the end. Without `value` the size that it needs is written.
    fn GetSessionConfigEntry(
        options: *const OrtSessionOptions,
        key: *const c_char,
        value: *mut c_char,
        size: *mut usize,
    ) {
        let key = text("key", key)?;
        let found = own(options)?.entries.get(key);
        let found = found.ok_or_else(|| {
            Failure::new(OrtErrorCode::ORT_FAIL, format!("found no entry {key:?} in the session options"))
        })?;
        let found = c_text(found);
        let bytes = found.as_bytes_with_nul();
        let room = *diptych_pointers::shared("size", size.cast_const())?;
        put("size", size, bytes.len())?;
        if value.is_null() {
            return Ok(());
        }
        if room < bytes.len() {
            return Err(wrong("size", format!("{room}"), format!("at least {}", bytes.len())));
        }
        bytes.as_ptr().cast::<c_char>().copy_to_nonoverlapping(value, bytes.len());
        Ok(())
    }

    fn SessionOptionsAppendExecutionProvider(
        options: *mut OrtSessionOptions,
        name: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        count: usize,
    ) {
        let keys = texts("keys", keys, count)?;
        let values = texts("values", values, count)?;
        let entries: Vec<(&str, &str)> = keys.into_iter().zip(values).collect();
        own_mut(options)?.append(text("provider", name)?, &entries)
    }

    fn SessionOptionsSetEpSelectionPolicy(
        options: *mut OrtSessionOptions,
        policy: OrtExecutionProviderDevicePolicy,
    ) {
        use OrtExecutionProviderDevicePolicy as Policy;
        own_mut(options)?.policy = match policy {
            Policy::OrtExecutionProviderDevicePolicy_PREFER_CPU => Some("cpu".parse()?),
            Policy::OrtExecutionProviderDevicePolicy_PREFER_NPU => {
                return Err(unsupported("a policy that prefers NPUs", "Diptych runs on GPUs and on the CPU"));
            }
            // A GPU if there is one, else the CPU.
            _ => None,
        };
        Ok(())
    }

    /// Other threads call this while a session is made of the options.
    fn SessionOptionsSetLoadCancellationFlag(options: *mut OrtSessionOptions, cancel: bool) {
        own(options)?.canceled.store(cancel, Ordering::Relaxed);
        Ok(())
    }

    /// Sessions of one file and device share no weights by it.
    fn CreatePrepackedWeightsContainer(out: *mut *mut OrtPrepackedWeightsContainer) {
        hand_out(out, ())
    }
}

impl SessionOptions {
    /// Takes a value of an input that is known beforehand.
    ///
    /// # Safety
    /// Nobody writes the tensor meanwhile.
    unsafe fn add_value(&mut self, name: &str, tensor: &crate::tensor::Tensor) -> Result<(), Failure> {
        // SAFETY: the caller promises that nobody writes the tensor meanwhile; the floats are copied before this function
        // returns.
        let value = match unsafe { Given::of(name, tensor) }? {
            Given::Floats(dims, floats) => HostTensor::new(dims, floats)?,
            Given::Tensor(tensor) => tensor,
        };
        self.values.insert(name.to_owned(), value);
        if Given::rounds(tensor) {
            self.rounded.push(name.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(options: &SessionOptions) -> String {
        options.device().to_string()
    }

    #[test]
    fn the_first_provider_counts_and_the_entry_more() {
        let mut options = SessionOptions::default();
        assert_eq!(device(&options), "auto");
        options.append("CPUExecutionProvider", &[]).expect("a provider");
        options
            .append("DiptychExecutionProvider", &[("backend", "wgpu"), ("seed", "5")])
            .expect("a second provider");
        assert_eq!((device(&options).as_str(), options.config.seed), ("cpu", 0));
        options.append("DiptychExecutionProvider", &[("backend", "cpu:1")]).expect_err("checked as well");

        let mut options = SessionOptions::default();
        let own = [("backend", "opencl:1"), ("seed", "5"), ("precision", "f16")];
        options.append("DiptychExecutionProvider", &own).expect("a provider");
        options.append("WebGpuExecutionProvider", &[("deviceId", "2")]).expect("a second provider");
        assert_eq!((device(&options).as_str(), options.config.seed), ("opencl:1", 5));
        assert_eq!(options.copy().device().to_string(), "opencl:1");
        options.set("session.diptych.backend", "cpu").expect("an entry");
        assert_eq!(device(&options), "cpu");

        let mut options = SessionOptions::default();
        options.set("session.diptych.backend", "cpu").expect("an entry");
        options.append("DiptychExecutionProvider", &own).expect("a provider");
        assert_eq!((device(&options).as_str(), options.config.seed), ("cpu", 5));
    }

    #[test]
    fn a_provider_that_is_refused_leaves_nothing() {
        let mut options = SessionOptions::default();
        let own = [("precision", "f16"), ("backend", "wgpu"), ("speed", "1")];
        options.append("DiptychExecutionProvider", &own).expect_err("no such option");
        assert_eq!((device(&options).as_str(), options.config.precision), ("auto", Default::default()));
        options.append("CPUExecutionProvider", &[]).expect("the first one");
        assert_eq!(device(&options), "cpu");
    }

    #[test]
    fn entries_that_would_change_results_are_refused() {
        for (key, taken, other) in [
            ("ep.enable_weightless", "0", "1"),
            ("session.disable_cpu_ep_fallback", "0", "1"),
            ("session.gqa_value_layout", "BNSH", "BNHS"),
            ("session.set_denormal_as_zero", "0", "1"),
        ] {
            let mut options = SessionOptions::default();
            let failure = options.set(key, other).expect_err("refused");
            assert_eq!(failure.code, OrtErrorCode::ORT_NOT_IMPLEMENTED);
            let wanted = format!("the entry {key} with the value {other:?} is not supported: ");
            assert!(failure.message.starts_with(&wanted), "{}", failure.message);
            assert!(options.entries.is_empty());
            options.set(key, taken).expect("what is so anyway");
            assert_eq!(options.entries.len(), 1);
        }
    }
}
