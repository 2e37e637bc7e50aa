//! Choosing a device, and how it is opened.

#[cfg(doc)]
use super::devices;
use super::{Backend, Context, DeviceSelector, Engine};
use crate::device::choice::DeviceChoice;
use crate::device::options::{DeviceOptions, KeepKernels, environment};
use crate::device::visible::Visible;
use crate::device::{DeviceInfo, DeviceUuid, PciAddress};
use crate::error::{Error, Result};
use crate::limits::Family;
use crate::task::Awaited;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Which device, where the code does not say.
const DEVICE_VARIABLE: &str = "DIPTYCH_DEVICE";

/// Which device a context runs on, and how it is opened. Made by [`Context::builder`].
///
/// Of [`index`](Self::index), [`name`](Self::name), [`pci`](Self::pci), [`uuid`](Self::uuid) and
/// [`device`](Self::device) the last one counts. An environment variable that is set overrides what the code chose, where
/// a method names one.
///
/// Where none of them was called, `DIPTYCH_DEVICE` chooses, as a [`DeviceSelector`]. If it names a backend, it counts where the
/// code asks for this one or for [`Backend::Auto`]. Where the code asks for [`Backend::Gpu`], `wgpu` and `opencl` count too, and
/// the device must be a GPU. Of NVIDIA's cards only those are seen that `CUDA_VISIBLE_DEVICES` lists, on wgpu too, in the order
/// of that list.
///
/// ```
/// use diptych::{Backend, Context};
///
/// let context = Context::builder().backend(Backend::Cpu).open()?;
/// assert_eq!(context.info().backend, Backend::Cpu);
///
/// // A device that is not there is an error, which lists those that are.
/// let error = Context::builder().backend(Backend::Cpu).name("Some GPU").open().unwrap_err();
/// assert!(error.to_string().contains("Some GPU"), "{error}");
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct ContextBuilder {
    backend: Backend,
    choice: DeviceChoice,
    pub(super) options: DeviceOptions,
}

impl ContextBuilder {
    /// The backend; [`Backend::Auto`] if not said.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let context = Context::builder().backend(Backend::Cpu).open()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn backend(self, backend: Backend) -> Self {
        ContextBuilder { backend, ..self }
    }

    /// The device at this place of the backend's list in [`devices`], counted from 0; of all lists, one
    /// after the other, with [`Backend::Auto`].
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// if let Err(error) = Context::builder().backend(Backend::Wgpu).index(1000).open() {
    ///     assert!(error.is_no_device());
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn index(self, index: usize) -> Self {
        ContextBuilder { choice: DeviceChoice::Index(index), ..self }
    }

    /// The best device whose name contains `name`, in any case; on OpenCL, whose own or platform's name.
    ///
    /// Overridden by `DIPTYCH_WGPU_ADAPTER` and `DIPTYCH_OPENCL_DEVICE`.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// match Context::builder().backend(Backend::OpenCl).name("NVIDIA").open() {
    ///     Ok(context) => println!("{}", context.info()),
    ///     Err(error) => println!("{error}"),
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn name(self, name: impl Into<String>) -> Self {
        ContextBuilder { choice: DeviceChoice::Name(name.into()), ..self }
    }

    /// The device that sits there: the same GPU on every API, which a name is not where there are several
    /// of a kind.
    ///
    /// ```
    /// use diptych::{Backend, Context, PciAddress};
    ///
    /// let address: PciAddress = "0000:41:00.0".parse()?;
    /// match Context::builder().backend(Backend::Wgpu).pci(address).open() {
    ///     Ok(context) => println!("{}", context.info()),
    ///     Err(error) => println!("{error}"),
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn pci(self, address: PciAddress) -> Self {
        ContextBuilder { choice: DeviceChoice::Pci(address), ..self }
    }

    /// The card with this UUID: the same on every API of its driver.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let uuid = "GPU-0123abcd-45ef-6789-0a1b-2c3d4e5f6071".parse()?;
    /// match Context::builder().uuid(uuid).open() {
    ///     Ok(context) => println!("{}", context.info()),
    ///     Err(error) => assert!(error.is_no_device()),
    /// }
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn uuid(self, uuid: DeviceUuid) -> Self {
        ContextBuilder { choice: DeviceChoice::Uuid(uuid), ..self }
    }

    /// The device that a text names, and its backend, if the text names one.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let context = Context::builder().device("cpu".parse()?).open()?;
    /// assert_eq!(context.info().backend, Backend::Cpu);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn device(self, selector: DeviceSelector) -> Self {
        let backend = if selector.backend == Backend::Auto { self.backend } else { selector.backend };
        ContextBuilder { backend, choice: selector.choice, ..self }
    }

    /// Whether the ops' kernels keep bounds checks and loop bounds on wgpu, which cost time. Kernels from
    /// outside the crate always have them. Not, if not said; overridden by `DIPTYCH_CHECKED_SHADERS`.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let context = Context::builder().backend(Backend::Cpu).checked_kernels(true).open()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn checked_kernels(mut self, checked: bool) -> Self {
        self.options.checked_kernels = checked;
        self
    }

    /// Whether work-group memory is zeroed before the ops' kernels on wgpu, which write theirs before they
    /// read it. Not, if not said; overridden by `DIPTYCH_ZEROED_MEMORY`.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let context = Context::builder().backend(Backend::Cpu).zeroed_memory(true).open()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn zeroed_memory(mut self, zeroed: bool) -> Self {
        self.options.zeroed_memory = zeroed;
        self
    }

    /// Keeps compiled kernels in this directory from one start to the next, not beside the tuner's record.
    /// Overridden by `DIPTYCH_CACHE_DIR`.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// let context = Context::builder().backend(Backend::Cpu).kernel_cache(folder.path()).open()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn kernel_cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.options.keep_kernels = KeepKernels::In(directory.into());
        self
    }

    /// Keeps no compiled kernels.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let context = Context::builder().backend(Backend::Cpu).without_kernel_cache().open()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn without_kernel_cache(mut self) -> Self {
        self.options.keep_kernels = KeepKernels::Nowhere;
        self
    }

    /// Loads this OpenCL library and looks for no other. Its code is run: it must be an OpenCL driver or
    /// loader. A process loads one, so that this counts until a device was opened or listed. Overridden by
    /// `DIPTYCH_OPENCL_LIBRARY`.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let library = "/opt/driver/libOpenCL.so.1";
    /// let context = Context::builder().backend(Backend::Cpu).opencl_library(library).open()?; // the CPU loads none
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn opencl_library(mut self, path: impl Into<String>) -> Self {
        self.options.opencl_library = Some(path.into());
        self
    }

    /// Whether NVIDIA's GPUs compute with halves through OpenCL, whose driver takes half arithmetic without
    /// listing `cl_khr_fp16`; a kernel that tries it runs first. Not, if not said; overridden by
    /// `DIPTYCH_UNLISTED_HALVES`.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let context = Context::builder().backend(Backend::Cpu).unlisted_halves(true).open()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn unlisted_halves(mut self, used: bool) -> Self {
        self.options.unlisted_halves = used;
        self
    }

    /// Whether OpenCL runs copy their inputs and outputs through pinned memory. If not said, they do where
    /// the device has memory of its own.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let context = Context::builder().backend(Backend::Cpu).pinned_copies(false).open()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn pinned_copies(mut self, pinned: bool) -> Self {
        self.options.pinned_copies = Some(pinned);
        self
    }

    /// Whether a recording is one command on OpenCL devices that offer `cl_khr_command_buffer`. It is, if
    /// not said.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let context = Context::builder().backend(Backend::Cpu).command_buffers(false).open()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn command_buffers(mut self, used: bool) -> Self {
        self.options.command_buffers = Some(used);
        self
    }

    /// Whether the device's driver is to say what it makes of each kernel (`Device::examine`), where it can.
    #[doc(hidden)]
    pub fn compiler_statistics(mut self, wanted: bool) -> Self {
        self.options.statistics = wanted;
        self
    }

    /// How long a wait for the device may take: then the call fails with [`Error::TimedOut`](crate::Error::TimedOut)
    /// instead of waiting for a kernel that does not end. Without a limit, if not said; overridden by
    /// `DIPTYCH_TIME_LIMIT`, in seconds.
    ///
    /// The device goes on: a run that was only slow does not disturb the next ones, and one that hangs holds up all that
    /// follows on this device until the system resets it. [`Context::reopen`] opens another one. What the device may still
    /// write to is never freed before it is done. Compilation and the CPU backend have no limit, nor has a browser.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// use std::time::Duration;
    /// let context = Context::builder().backend(Backend::Cpu).time_limit(Duration::from_secs(10)).open()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.options.time_limit = Some(limit);
        self
    }

    /// Opens the device.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// let context = Context::builder().backend(Backend::Cpu).open()?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such device: the error lists those that were found, and says why each was not taken.
    /// A request for a GPU never falls back on the CPU backend, and [`Backend::Gpu`] takes no driver that runs kernels on
    /// the CPU; [`Backend::Auto`] without a wanted device always succeeds.
    #[cfg(not(target_family = "wasm"))]
    pub fn open(self) -> Result<Context> {
        crate::task::block_on(self.open_async())
    }

    /// Opens the device, awaited. In a browser nothing else does. Elsewhere a driver that is loaded for the first time
    /// keeps the thread for as long as that takes.
    ///
    /// ```
    /// use diptych::{Backend, Context};
    ///
    /// # pollster::block_on(async {
    /// let context = Context::builder().backend(Backend::Cpu).open_async().await?;
    /// # Ok::<(), diptych::Error>(())
    /// # })?;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such device: the error lists those that were found, and says why each was not taken.
    /// A request for a GPU never falls back on the CPU backend, and [`Backend::Gpu`] takes no driver that runs kernels on
    /// the CPU; [`Backend::Auto`] without a wanted device always succeeds.
    pub async fn open_async(self) -> Result<Context> {
        // Its type ends here: wgpu's are so deep that an application's own futures would meet the compiler's limit.
        let opened: Awaited<'_, Result<Context>> = Box::pin(self.opened());
        let context = opened.await?;
        Ok(Context { opened: Some(Arc::new(self)), ..context })
    }

    async fn opened(&self) -> Result<Context> {
        let options = self.options.clone().overridden_by_environment();
        let by_environment = match self.choice {
            DeviceChoice::Best => match environment(DEVICE_VARIABLE) {
                Some(text) => self.of_environment(&text)?,
                None => None,
            },
            _ => None,
        };
        if let Some((backend, choice)) = by_environment {
            let context = Self::opened_as(backend, &choice, &options).await?;
            let context = if self.backend == Backend::Gpu { on_gpu(context, &choice)? } else { context };
            let reason = format!("{}, as {DEVICE_VARIABLE} says", context.info.reason);
            return Ok(context.because(reason));
        }
        Self::opened_as(self.backend, &self.choice, &options).await
    }

    /// Which device it asks for.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn selector(&self) -> DeviceSelector {
        DeviceSelector { backend: self.backend, choice: self.choice.clone() }
    }

    /// One for each backend that the crate was built with; for the one alone that `DIPTYCH_DEVICE` names, if it names one.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn of_each_backend() -> Result<Vec<Self>> {
        let on = |backend| ContextBuilder::default().backend(backend);
        let named = match environment(DEVICE_VARIABLE) {
            Some(text) => on(Backend::Auto).of_environment(&text)?,
            None => None,
        };
        if let Some((backend, choice)) = named
            && (backend, &choice) != (Backend::Auto, &DeviceChoice::Best)
        {
            return Ok(vec![on(Backend::Auto).device(DeviceSelector { backend, choice })]);
        }
        let built = [
            (Backend::Wgpu, cfg!(feature = "wgpu")),
            (Backend::OpenCl, cfg!(feature = "opencl")),
            (Backend::Cpu, cfg!(feature = "cpu")),
        ];
        Ok(built.into_iter().filter(|(_, built)| *built).map(|(backend, _)| on(backend)).collect())
    }

    /// What a selector in the environment chooses, if it concerns this backend.
    fn of_environment(&self, text: &str) -> Result<Option<(Backend, DeviceChoice)>> {
        let selector: DeviceSelector = text.parse().map_err(|error| match error {
            Error::Input { found, wanted, .. } => Error::input(DEVICE_VARIABLE, found, wanted),
            other => other,
        })?;
        let backend = match (self.backend, selector.backend) {
            (Backend::Cpu, _) => return Ok(None),
            (Backend::Gpu, Backend::Cpu) => return Ok(None),
            (Backend::Gpu, Backend::Auto) => Backend::Gpu,
            (Backend::Auto | Backend::Gpu, named) | (named, Backend::Auto) => named,
            (own, named) if own == named => own,
            _ => return Ok(None),
        };
        let choice = match (self.backend, selector.choice) {
            (Backend::Gpu, DeviceChoice::Best) if backend != Backend::Gpu => DeviceChoice::Gpu,
            (_, choice) => choice,
        };
        Ok(Some((backend, choice)))
    }

    async fn opened_as(backend: Backend, choice: &DeviceChoice, options: &DeviceOptions) -> Result<Context> {
        match (backend, choice) {
            (Backend::Cpu, DeviceChoice::Best) => on_cpu("the CPU was asked for".to_owned()),
            (Backend::Cpu, choice) => Err(Error::NoDevice {
                backend: Backend::Cpu.to_string(),
                wanted: choice.to_string(),
                tried: vec!["the CPU backend, which runs on all threads and has no devices".to_owned()],
            }),
            (Backend::Auto, DeviceChoice::Best) => match gpu(options).await {
                Ok(context) => Ok(context),
                Err(passed_over) => on_cpu(format!("no GPU: {}", passed_over.join("; "))),
            },
            (Backend::Gpu, DeviceChoice::Best) => gpu(options).await.map_err(|passed_over| Error::NoDevice {
                backend: Backend::Gpu.to_string(),
                wanted: DeviceChoice::Gpu.to_string(),
                tried: passed_over,
            }),
            (Backend::Auto, choice) => wanted(Backend::Auto, choice, options).await,
            (Backend::Gpu, choice) => on_gpu(wanted(Backend::Gpu, choice, options).await?, choice),
            (backend, choice) => open_on(backend, choice, options).await,
        }
    }
}

/// The context, unless its device's driver runs kernels on the CPU, though a GPU was asked for.
fn on_gpu(context: Context, choice: &DeviceChoice) -> Result<Context> {
    let tried = match &context.info.device {
        Some(device) if !device.is_cpu => return Ok(context),
        Some(device) => vec![format!("{}: its driver runs kernels on the CPU", device.name)],
        None => vec!["the CPU backend, which is no GPU".to_owned()],
    };
    let (backend, wanted) = (Backend::Gpu.to_string(), choice.to_string());
    Err(Error::NoDevice { backend, wanted, tried })
}

/// What an environment variable chooses on `backend`, with the variable's name.
fn chosen_by_environment(backend: Backend) -> Option<(DeviceChoice, &'static str)> {
    match backend {
        #[cfg(feature = "wgpu")]
        Backend::Wgpu => {
            let choice = crate::device::wgpu::WgpuDevice::choice_of_environment()?;
            Some((choice, "DIPTYCH_WGPU_ADAPTER"))
        }
        #[cfg(feature = "opencl")]
        Backend::OpenCl => {
            let choice = crate::device::opencl::OpenClDevice::choice_of_environment()?;
            Some((choice, "DIPTYCH_OPENCL_DEVICE"))
        }
        _ => None,
    }
}

/// Opens a device of one GPU backend.
async fn open_on(backend: Backend, choice: &DeviceChoice, options: &DeviceOptions) -> Result<Context> {
    let by_environment = chosen_by_environment(backend);
    let choice = by_environment.as_ref().map_or(choice, |(choice, _)| choice);
    let engine = match backend {
        #[cfg(feature = "wgpu")]
        Backend::Wgpu => Engine::Wgpu(crate::device::wgpu::WgpuDevice::open_with(choice, options).await?),
        #[cfg(feature = "opencl")]
        Backend::OpenCl => Engine::OpenCl(crate::device::opencl::OpenClDevice::open_with(choice, options)?),
        backend => {
            let reason = format!("the crate was built without feature `{backend}`");
            return Err(Error::unsupported(format!("backend {backend}"), reason));
        }
    };
    let by = by_environment.as_ref().map(|(_, variable)| format!(", as {variable} says")).unwrap_or_default();
    let context = Context::with(engine, format!("{backend} was asked for: {choice}{by}"));
    Ok(visible_said(context))
}

/// Says so, where only some of NVIDIA's cards could be chosen.
fn visible_said(context: Context) -> Context {
    let nvidia = |device: &DeviceInfo| device.limits.family == Family::Nvidia;
    match Visible::from_environment() {
        Some(visible) if context.info.device.as_ref().is_some_and(nvidia) => {
            let reason = format!("{}; of NVIDIA's cards those of {}", context.info.reason, visible.told());
            context.because(reason)
        }
        _ => context,
    }
}

/// The CPU, and why.
fn on_cpu(reason: String) -> Result<Context> {
    if cfg!(feature = "cpu") {
        return Ok(Context::cpu(reason));
    }
    Err(Error::unsupported("backend cpu", format!("the crate was built without feature `cpu`; {reason}")))
}

/// A GPU, or why each API has none.
async fn gpu(options: &DeviceOptions) -> std::result::Result<Context, Vec<String>> {
    let mut passed_over = Vec::new();
    let built = [(Backend::Wgpu, cfg!(feature = "wgpu")), (Backend::OpenCl, cfg!(feature = "opencl"))];
    // What was left out of the crate is nothing that its user could mend.
    for backend in built.into_iter().filter(|(_, built)| *built).map(|(backend, _)| backend) {
        // A driver that runs kernels on the CPU is not opened: that takes time, and some print warnings.
        match open_on(backend, &DeviceChoice::Gpu, options).await {
            Ok(context) => match &context.info().device {
                Some(device) if !device.is_cpu => {
                    let mut reason = format!("the first GPU: {backend} before opencl before cpu");
                    if !passed_over.is_empty() {
                        reason = format!("the first GPU; {}", passed_over.join("; "));
                    }
                    return Ok(visible_said(Context::with(context.engine, reason)));
                }
                Some(device) => {
                    passed_over.push(format!("{backend} offers only {}, a CPU driver", device.name));
                }
                None => {}
            },
            Err(Error::NoDevice { tried, .. }) => {
                passed_over.push(format!("{backend} has no GPU: {}", tried.join(", ")));
            }
            Err(error) => passed_over.push(format!("{backend}: {error}")),
        }
    }
    if passed_over.is_empty() {
        passed_over.push("the crate was built without a GPU's API".to_owned());
    }
    Err(passed_over)
}

/// The device that is wanted, whichever API has it; `asked` is the backend in the error.
async fn wanted(asked: Backend, choice: &DeviceChoice, options: &DeviceOptions) -> Result<Context> {
    let mut tried = Vec::new();
    let mut before = 0;
    for backend in [Backend::Wgpu, Backend::OpenCl] {
        // The lists of all backends are counted as one.
        let of_backend = match choice {
            DeviceChoice::Index(index) => match index.checked_sub(before) {
                Some(index) => DeviceChoice::Index(index),
                None => break,
            },
            other => other.clone(),
        };
        match open_on(backend, &of_backend, options).await {
            Ok(context) => return Ok(context),
            Err(Error::NoDevice { tried: found, .. }) => {
                tried.extend(found.into_iter().map(|found| format!("{backend}: {found}")));
            }
            Err(error) => tried.push(format!("{backend}: {error}")),
        }
        if matches!(choice, DeviceChoice::Index(_)) {
            before += listed(backend).await;
        }
    }
    Err(Error::NoDevice { backend: asked.to_string(), wanted: choice.to_string(), tried })
}

/// How many devices a backend has.
async fn listed(backend: Backend) -> usize {
    match backend {
        #[cfg(feature = "wgpu")]
        Backend::Wgpu => crate::device::wgpu::WgpuDevice::list_async().await.len(),
        #[cfg(feature = "opencl")]
        Backend::OpenCl => crate::device::opencl::OpenClDevice::list().map_or(0, |devices| devices.len()),
        _ => 0,
    }
}
