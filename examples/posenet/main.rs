//! PoseNet on a photograph: finds people, and draws their skeletons.
//!
//! ```text
//! cargo run --release --example posenet -- --model posenet.tflite --image photo.jpg
//! ```
//!
//! | file | does |
//! |---|---|
//! | `options.rs` | the command line |
//! | `picture.rs` | photograph to network input |
//! | `heads.rs` | which output is which |
//! | `decode.rs`, `multi.rs` | outputs to one pose, or to several |
//! | `skeleton.rs` | names of the parts, and how they hang together |
//! | `draw.rs` | poses onto the photograph |
//! | `tuning.rs` | the tuner's record, read or made |
//! | `report.rs`, `progress.rs` | what is told afterwards, and meanwhile |

mod decode;
mod draw;
mod heads;
mod multi;
mod options;
mod picture;
mod progress;
mod report;
mod skeleton;
mod tuning;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser as _;
use diptych::{Context, Graph, HostTensor, Session, SessionOptions, Shape, Tuning, tflite};
use heads::{Heads, Map, Roles};
use multi::Settings;
use options::Options;
use picture::Picture;
use report::{Latency, NodeRow, Report};
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("posenet: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes, leaving out causes that were told already.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            text += if text.is_empty() { "" } else { ": " };
            text += &cause;
        }
    }
    text
}

fn run(options: &Options) -> Result<()> {
    let start = Instant::now();
    let picture = Picture::open(&options.image)?;
    check_output(options)?;
    let graph = tflite::load(&options.model)?;
    let model = Model::of(&graph).with_context(|| format!("{}", options.model.display()))?;
    let values = picture.input(model.size)?;
    let input = HostTensor::new(Shape::nhwc(1, model.size[0], model.size[1], 3), values)?;
    let inputs = [(model.input.as_str(), &input)];

    let context = Context::new(options.backend)?;
    let tuning = tuning::tuning(options, &context, &graph)?;
    let by_record = !matches!(tuning, Tuning::Default);
    let mut session = progress::spinner("preparing the network", || {
        Session::new(&context, &graph, SessionOptions { tuning, ..Default::default() })
    })?;
    if by_record {
        eprintln!("posenet: {}", tuning::told(&session));
    }
    // The first run warms the device up; its outputs are as good as any.
    let outputs = progress::spinner("running the network", || session.run(&inputs))?;
    eprintln!("posenet: first result after {:.2} s", start.elapsed().as_secs_f64());
    let heads = model.heads(&outputs)?;

    let poses = if options.multi {
        let settings = Settings { max_poses: options.max_poses, ..Default::default() };
        multi::multi(&heads, &settings)?
    } else {
        vec![decode::single(&heads)]
    };
    let to_picture = |position| picture.position(model.size, position);
    let poses: Vec<_> = poses.iter().map(|pose| pose.map(to_picture)).collect();

    let latency = match options.runs {
        Some(runs) => latency(&mut session, &inputs, runs.get())?,
        None => None,
    };
    let profile = if options.profile { Some(profile(&mut session, &inputs)?) } else { None };

    draw::write(&draw::draw(&picture.pixels, &poses, options.min_score)?, &options.output)?;
    let report = Report {
        model: &options.model,
        image: &options.image,
        image_size: picture.pixels.dimensions(),
        input_size: model.size,
        device: context.info().to_string(),
        multi: options.multi,
        poses: &poses,
        latency,
        profile: profile.as_deref(),
        output: &options.output,
    };
    let text = if options.json { format!("{:#}\n", report.json()) } else { report.text() };
    std::io::stdout().write_all(text.as_bytes()).context("writing to standard output")
}

/// Looks before the long work whether the drawing has a place, and not that of what it is made from.
fn check_output(options: &Options) -> Result<()> {
    if let Some(folder) = options.output.parent()
        && !folder.as_os_str().is_empty()
    {
        ensure!(folder.is_dir(), "--output: there is no folder {}", folder.display());
    }
    let Ok(output) = options.output.canonicalize() else {
        return Ok(()); // It does not exist yet.
    };
    for source in [&options.image, &options.model] {
        if source.canonicalize().is_ok_and(|source| source == output) {
            bail!("--output would overwrite {}", source.display());
        }
    }
    Ok(())
}

/// How a graph is used as a PoseNet.
struct Model {
    input: String,
    /// Height and width of the input.
    size: [usize; 2],
    roles: Roles,
}

impl Model {
    fn of(graph: &Graph) -> Result<Self> {
        let &[input] = graph.inputs() else {
            bail!("not a PoseNet: found {} inputs, wanted one", graph.inputs().len());
        };
        let shape = graph.shape(input)?;
        let name = graph.name(input)?.to_owned();
        ensure!(shape.n == 1 && shape.c == 3, "not a PoseNet: input {name:?} is {shape}, wanted 1xHxWx3");
        let mut outputs = Vec::new();
        for &output in graph.outputs() {
            outputs.push((graph.name(output)?.to_owned(), extents(graph.shape(output)?)));
        }
        let roles = Roles::find(&outputs)?;
        let [_, h, w, _] = outputs[roles.heatmap].1;
        heads::output_stride([shape.h, shape.w], [h, w])?;
        Ok(Model { input: name, size: [shape.h, shape.w], roles })
    }

    fn heads(&self, outputs: &[HostTensor]) -> Result<Heads> {
        let map = |what: &str, index: usize| {
            let tensor = outputs.get(index).with_context(|| format!("the run returned no {what}"))?;
            Map::new(what, extents(tensor.shape()), tensor.to_nhwc().into_owned())
        };
        let displacements = match self.roles.displacements {
            Some([forward, backward]) => {
                Some([map("displacement_fwd", forward)?, map("displacement_bwd", backward)?])
            }
            None => None,
        };
        Heads::new(
            self.size,
            map("heatmap", self.roles.heatmap)?,
            map("offset", self.roles.offset)?,
            displacements,
        )
    }
}

fn extents(shape: Shape) -> [usize; 4] {
    [shape.n, shape.h, shape.w, shape.c]
}

fn latency(session: &mut Session, inputs: &[(&str, &HostTensor)], runs: u32) -> Result<Option<Latency>> {
    let bar = progress::bar("measuring", runs.into());
    let mut times = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        session.run(inputs)?;
        times.push(start.elapsed());
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Latency::of(&times))
}

fn profile(session: &mut Session, inputs: &[(&str, &HostTensor)]) -> Result<Vec<NodeRow>> {
    let profile = progress::spinner("profiling", || session.profile(inputs))?;
    let rows = profile.nodes.iter().map(|node| NodeRow {
        name: node.name.clone(),
        op: node.op.to_owned(),
        kernel: node.kernel.clone(),
        work_group: node.work_group,
        ms: report::milliseconds(node.time),
    });
    Ok(rows.collect())
}
