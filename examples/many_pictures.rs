//! Many pictures through one network on all GPUs of this machine: how many a second one device does, two, four and all
//! of them; how many the host decodes; and how many go all the way, from a picture's bytes to the outputs.
//!
//! `cargo run --release --example many_pictures -- --help`

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use diptych::{
    Backend, BatchOptions, Context, DevicePool, DeviceSelector, Graph, HostTensor, LoadOptions, Model,
    SessionOptions,
};
use diptych_decode::picture::Picture;
use std::collections::VecDeque;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The bundled picture and network.
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/posenet/data/people.png");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/posenet/data/posenet_figures.tflite");

/// Pictures of different contents, so that no cache of the host holds the one that is read next.
const DIFFERENT: usize = 64;

/// Pictures a second: one device, two, four, all; decoding; and both.
#[derive(Debug, Parser)]
struct Options {
    /// A TensorFlow Lite or ONNX model with one picture as input, in values from -1 to 1
    #[arg(long, value_name = "FILE", default_value = MODEL)]
    model: PathBuf,

    /// The picture
    #[arg(long, value_name = "FILE", default_value = PICTURE)]
    image: PathBuf,

    /// A device: may be given several times. Every GPU if it is left out, the CPU if there is none
    #[arg(long, value_name = "DEVICE")]
    device: Vec<DeviceSelector>,

    /// The API of the GPUs, where no device is given: auto, wgpu or opencl
    #[arg(long, default_value = "auto")]
    backend: Backend,

    /// Pictures of a run at most
    #[arg(long, default_value_t = 32)]
    batch: usize,

    /// Seconds of each measurement
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,

    /// Measurements of each kind, in turns
    #[arg(long, default_value_t = 5)]
    rounds: usize,

    /// Threads that decode; all of the machine's if it is left out
    #[arg(long)]
    threads: Option<usize>,
}

/// The devices that were named, or every GPU.
fn contexts(options: &Options) -> Result<Vec<Context>> {
    let open = |selector: &DeviceSelector| Ok(Context::builder().device(selector.clone()).open()?);
    if !options.device.is_empty() {
        return options.device.iter().map(open).collect();
    }
    let gpus = diptych::gpus().into_iter().filter_map(|gpu| gpu.builder(options.backend));
    let found: Vec<Context> = gpus.map(|builder| Ok(builder.open()?)).collect::<Result<_>>()?;
    Ok(if found.is_empty() { vec![Context::new(Backend::Cpu)?] } else { found })
}

/// What is measured.
struct Subject<'a> {
    name: &'a str,
    size: [usize; 2],
    bytes: &'a [u8],
    tensors: &'a [HostTensor],
    seconds: f64,
    threads: usize,
}

impl Subject<'_> {
    fn decoded(&self) -> Result<HostTensor> {
        let picture = Picture::read("the picture", Cursor::new(self.bytes))?;
        let [height, width] = self.size;
        let shape = diptych::Shape::nhwc(1, height, width, 3);
        Ok(HostTensor::new(shape, picture.input(self.size)?)?)
    }

    /// Pictures a second of tensors that are there.
    fn devices(&self, pool: &DevicePool) -> Result<f64> {
        let begun = Instant::now();
        let end = Duration::try_from_secs_f64(self.seconds)?;
        let frames = self.tensors.iter().cycle().take_while(|_| begun.elapsed() < end);
        let mut done = 0;
        for outputs in pool.map(frames.map(|tensor| [(self.name, tensor.clone())])) {
            outputs?;
            done += 1;
        }
        Ok(f64::from(done) / begun.elapsed().as_secs_f64())
    }

    /// What `work` does a second on all threads.
    fn on_threads(&self, work: impl Fn(&mut VecDeque<diptych::Ticket>) -> Result<()> + Sync) -> Result<f64> {
        let (begun, done) = (Instant::now(), AtomicUsize::new(0));
        let one = || {
            let mut tickets = VecDeque::new();
            while begun.elapsed().as_secs_f64() < self.seconds {
                work(&mut tickets)?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            for ticket in tickets {
                ticket.wait()?;
            }
            Ok::<(), anyhow::Error>(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads).map(|_| scope.spawn(one)).collect();
            threads.into_iter().try_for_each(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        Ok(done.into_inner() as f64 / begun.elapsed().as_secs_f64())
    }

    /// Pictures that are decoded in a second.
    fn decoding(&self) -> Result<f64> {
        self.on_threads(|_| self.decoded().map(drop))
    }

    /// Pictures that are decoded and run in a second.
    fn both(&self, pool: &DevicePool) -> Result<f64> {
        self.on_threads(|tickets| {
            tickets.push_back(pool.batch().submit([(self.name, self.decoded()?)])?);
            if tickets.len() > 4
                && let Some(oldest) = tickets.pop_front()
            {
                oldest.wait()?;
            }
            Ok(())
        })
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The only input, and its height and width.
fn input_of(graph: &Graph) -> Result<(String, [usize; 2])> {
    let [input] = graph.inputs() else {
        anyhow::bail!("the network has {} inputs, wanted 1", graph.inputs().len())
    };
    let dims = graph.dims(*input)?;
    let [1, height, width, 3] = dims.extents() else {
        anyhow::bail!("the network's input is {dims}, wanted one picture of 3 channels")
    };
    Ok((graph.name(*input)?.to_owned(), [*height, *width]))
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.rounds > 0 && options.seconds > 0.0, "--rounds and --seconds: wanted more than 0");
    let contexts = contexts(&options)?;
    let graph = Model::load(&options.model, &LoadOptions::default())?.graph;
    let (name, size) = input_of(&graph)?;
    let bytes =
        std::fs::read(&options.image).with_context(|| format!("reading {}", options.image.display()))?;
    let threads =
        options.threads.or_else(|| Some(std::thread::available_parallelism().ok()?.get())).unwrap_or(1);
    let mut subject =
        Subject { name: &name, size, bytes: &bytes, tensors: &[], seconds: options.seconds, threads };
    let first = subject.decoded()?;
    let shifted = |index: usize| {
        let values: Vec<f32> =
            first.to_f32().iter().map(|value| value * (1.0 - index as f32 / 1024.0)).collect();
        Ok(HostTensor::new(first.dims(), values)?)
    };
    let tensors = (0..DIFFERENT).map(shifted).collect::<Result<Vec<_>>>()?;
    subject.tensors = &tensors;

    let mut counts: Vec<usize> = [1, 2, 4].into_iter().filter(|&count| count < contexts.len()).collect();
    counts.push(contexts.len());
    let of = |count: usize| {
        let batch = BatchOptions {
            max_batch: options.batch,
            max_waiting: 4 * count * options.batch,
            sizes: vec![1, options.batch.div_ceil(4), options.batch.div_ceil(2)],
            session: SessionOptions::default(),
            ..BatchOptions::default()
        };
        let chosen = contexts.get(..count).unwrap_or_default();
        Ok((count, DevicePool::new(chosen, &graph, batch)?))
    };
    let pools: Vec<(usize, DevicePool)> = counts.into_iter().map(of).collect::<Result<_>>()?;
    for context in &contexts {
        println!("{}", context.info());
    }
    println!(
        "{} of {} x {}, batches of {}, {threads} threads",
        options.model.display(),
        size[0],
        size[1],
        options.batch
    );

    // The first round is not counted.
    let (mut runs, mut decoding, mut both) = (vec![Vec::new(); pools.len()], Vec::new(), Vec::new());
    for round in 0..=options.rounds {
        for ((_, pool), rates) in pools.iter().zip(&mut runs) {
            rates.push(subject.devices(pool)?);
        }
        decoding.push(subject.decoding()?);
        both.push(subject.both(&pools[pools.len() - 1].1)?);
        if round == 0 {
            runs.iter_mut().chain([&mut decoding, &mut both]).for_each(Vec::clear);
        }
    }
    let medians: Vec<f64> = runs.iter_mut().map(|rates| median(rates)).collect();
    for ((count, _), rate) in pools.iter().zip(&medians) {
        let what = if *count == 1 { "1 device".to_owned() } else { format!("{count} devices") };
        println!("{what:25} {rate:8.0} pictures/s, {:.2} of one", rate / medians[0]);
    }
    println!("{:25} {:8.0} pictures/s", "decoding alone", median(&mut decoding));
    println!("{:25} {:8.0} pictures/s", "decoding and all devices", median(&mut both));
    for device in pools[pools.len() - 1].1.devices() {
        let time = device.time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e6);
        println!("{}: {} requests, {time:.1} us each of late", device.context, device.requests);
    }
    Ok(())
}
