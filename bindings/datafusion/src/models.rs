//! Networks on a device, ready to be called.

use crate::failure::failure;
use crate::network::{Loaded, Network};
use datafusion::error::{DataFusionError, Result};
use diptych::{Batch, BatchOptions, Context, ContextBuilder, SessionOptions};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Which networks there are, and how they run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The device.
    pub device: ContextBuilder,
    /// The networks. `pose(image)` calls the one named `pose`. Unless set, that is the bundled one.
    pub networks: Vec<Network>,
    /// Pictures of one run at most; 8 unless set. There is a session for each power of two up to it, and for it.
    pub max_batch: usize,
    /// Pictures at most that are decoded at the same time, each on a thread of its own, for all queries together;
    /// unless set, as many as the machine has threads.
    pub threads: usize,
    /// How the sessions run.
    pub session: SessionOptions,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            device: Context::builder(),
            networks: vec![Network::figures("pose")],
            max_batch: 8,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            session: SessionOptions::default(),
        }
    }
}

/// Networks on one device, shared by all queries of a process: their pictures run together.
#[derive(Debug, Clone)]
pub struct Models(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    networks: BTreeMap<String, Arc<Loaded>>,
    options: BatchOptions,
    device: Mutex<Device>,
    decoding: Arc<Semaphore>,
    in_flight: usize,
}

/// A device and what was made on it.
#[derive(Debug)]
struct Device {
    context: Context,
    lost: bool,
    /// How often it was opened.
    opened: u64,
    batches: BTreeMap<String, Arc<Batch>>,
}

/// A network that is ready.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) network: Arc<Loaded>,
    pub(crate) batch: Arc<Batch>,
    opened: u64,
}

impl Models {
    /// Reads the files, opens the device and makes the sessions ready. It blocks meanwhile.
    ///
    /// # Errors
    /// If a file is no network of one picture, two have the same name, there is no such device, or what
    /// [`Batch::new`] says.
    pub fn open(options: Options) -> Result<Self> {
        let refused = |text: String| DataFusionError::Configuration(text);
        if options.threads == 0 {
            return Err(refused("threads: found 0, wanted at least 1".to_owned()));
        }
        let mut networks = BTreeMap::new();
        for network in options.networks {
            let loaded = Arc::new(network.load()?);
            if let Some(other) = networks.insert(loaded.name.clone(), loaded) {
                return Err(refused(format!("found two networks named {:?}", other.name)));
            }
        }
        let sizes = std::iter::successors(Some(1usize), |size| size.checked_mul(2));
        let max_batch = options.max_batch;
        let batch = BatchOptions {
            max_batch,
            max_waiting: max_batch.saturating_mul(4).max(32),
            sizes: sizes.take_while(|&size| size < max_batch).collect(),
            session: options.session,
            ..BatchOptions::default()
        };
        let context = options.device.open().map_err(failure)?;
        log::info!("{}", context.info());
        let device = Device { context, lost: false, opened: 1, batches: BTreeMap::new() };
        let models = Models(Arc::new(Inner {
            networks,
            options: batch,
            device: Mutex::new(device),
            decoding: Arc::new(Semaphore::new(options.threads.min(Semaphore::MAX_PERMITS))),
            in_flight: max_batch.saturating_mul(3).saturating_add(options.threads),
        }));
        for name in models.names().collect::<Vec<_>>() {
            models.ready_blocking(name)?;
        }
        Ok(models)
    }

    /// The networks' names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.networks.keys().map(String::as_str)
    }

    /// The device; after one was lost, the one that was opened instead.
    pub fn context(&self) -> Context {
        self.device().context.clone()
    }

    /// How often the device was opened: once, and once more each time it was used after it was lost.
    pub fn opened(&self) -> u64 {
        self.device().opened
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        self.0.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pictures of one call at most that are on their way.
    pub(crate) fn in_flight(&self) -> usize {
        self.0.in_flight
    }

    /// Runs `work` on a thread that may block, at most as many at once as pictures are decoded.
    ///
    /// # Errors
    /// If it panicked: with what it said.
    pub(crate) async fn on_a_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> std::result::Result<T, tokio::task::JoinError> {
        let permit = Arc::clone(&self.0.decoding).acquire_owned().await;
        tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        })
        .await
    }

    /// The network of this name, on a device that was not lost as far as is known.
    ///
    /// # Errors
    /// If there is none of this name, or no device.
    pub(crate) async fn ready(&self, name: &str) -> Result<Ready> {
        let (models, name) = (self.clone(), name.to_owned());
        // Sessions may have to be made again, which takes time.
        let ready = tokio::task::spawn_blocking(move || models.ready_blocking(&name)).await;
        ready.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
    }

    fn ready_blocking(&self, name: &str) -> Result<Ready> {
        let network = self.0.networks.get(name).ok_or_else(|| {
            let names = self.names().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            DataFusionError::Execution(format!("there is no network {name:?}, but {names}"))
        })?;
        let mut device = self.device();
        if device.lost {
            device.context = device.context.reopen().map_err(failure)?;
            device.lost = false;
            device.opened += 1;
            log::warn!("opened again: {}", device.context.info());
        }
        let batch = match device.batches.get(name) {
            Some(batch) => Arc::clone(batch),
            None => {
                let batch = Batch::new(&device.context, &network.graph, self.0.options.clone());
                if batch.as_ref().is_err_and(diptych::Error::is_device_lost) {
                    device.lost = true;
                }
                let batch = Arc::new(batch.map_err(failure)?);
                device.batches.insert(name.to_owned(), Arc::clone(&batch));
                batch
            }
        };
        Ok(Ready { network: Arc::clone(network), batch, opened: device.opened })
    }

    /// What an engine is told of a run's error. If the device was lost, the next call opens it anew.
    pub(crate) fn failed(&self, ready: &Ready, error: diptych::Error) -> DataFusionError {
        if error.is_device_lost() {
            let mut device = self.device();
            // Others may have noticed before.
            if device.opened == ready.opened && !device.lost {
                log::warn!("{error}");
                device.lost = true;
                let batches = std::mem::take(&mut device.batches);
                drop(device);
                // Their threads answer what they have taken before they end.
                drop(batches);
            }
        }
        failure(error)
    }
}
