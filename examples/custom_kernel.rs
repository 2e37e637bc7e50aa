//! A compute shader of the application's own as a node of a graph: a picture becomes a pencil drawing.
//!
//!     cargo run --release --example custom_kernel [PICTURE [DRAWING]]
//!
//! The same WGSL runs through Vulkan and, printed as OpenCL C, through OpenCL, with every index checked. A
//! 1x1 convolution of the crate before it makes grey of the colours. The program compares each API's drawing with
//! the other's.

use anyhow::{Context as _, Result, ensure};
use diptych::{
    Backend, Context, Custom, Dims, Extras, Graph, HostTensor, Pointwise, Scalar, Session, SessionOptions,
    Shape,
};
use image::GrayImage;
use std::path::PathBuf;

/// One minus the length of the gradient (Sobel, 1968), with the picture's edge repeated beyond it.
const PENCIL: &str = "
struct Picture { width: u32, height: u32, strength: f32 }
@group(0) @binding(0) var<storage, read> grey: array<f32>;
@group(0) @binding(1) var<storage, read_write> drawing: array<f32>;
@group(0) @binding(2) var<uniform> picture: Picture;

fn at(x: i32, y: i32) -> f32 {
    let column = u32(clamp(x, 0, i32(picture.width) - 1));
    let row = u32(clamp(y, 0, i32(picture.height) - 1));
    return grey[row * picture.width + column];
}

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= picture.width || id.y >= picture.height {
        return;
    }
    let x = i32(id.x);
    let y = i32(id.y);
    let across = at(x + 1, y - 1) + 2.0 * at(x + 1, y) + at(x + 1, y + 1)
        - at(x - 1, y - 1) - 2.0 * at(x - 1, y) - at(x - 1, y + 1);
    let down = at(x - 1, y + 1) + 2.0 * at(x, y + 1) + at(x + 1, y + 1)
        - at(x - 1, y - 1) - 2.0 * at(x, y - 1) - at(x + 1, y - 1);
    let line = picture.strength * length(vec2<f32>(across, down));
    drawing[id.y * picture.width + id.x] = clamp(1.0 - line, 0.0, 1.0);
}
";

/// The picture's pixels to a drawing of one channel.
fn network(width: u32, height: u32) -> Result<Graph> {
    let mut graph = Graph::new();
    let shape = Shape::nhwc(1, height as usize, width as usize, 3);
    let picture = graph.input("picture", shape)?;
    // Luma of ITU-R BT.709.
    let weights = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![0.2126, 0.7152, 0.0722])?;
    let grey = graph.pointwise("grey", picture, weights, Extras::default(), Pointwise::default())?;
    let pencil = Custom::new("pencil", PENCIL)?
        .outputs(|inputs| Ok(vec![inputs[0]]))
        .grid(move |_, _| [width as usize, height as usize, 1])
        .uniform(move |_: &[Dims], _: &[Dims]| {
            vec![
                ("width", Scalar::U32(width)),
                ("height", Scalar::U32(height)),
                ("strength", Scalar::F32(0.8)),
            ]
        });
    for drawing in graph.custom("pencil", &pencil, &[grey])? {
        graph.output(drawing)?;
    }
    Ok(graph)
}

fn main() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let picture = arguments.next().unwrap_or_else(|| root.join("examples/posenet/data/people.png"));
    let target = arguments.next().unwrap_or_else(|| PathBuf::from("drawing.png"));
    let picture = image::open(&picture).with_context(|| picture.display().to_string())?.to_rgb8();
    let (width, height) = picture.dimensions();
    let pixels: Vec<f32> = picture.as_raw().iter().map(|&value| f32::from(value) / 255.0).collect();
    let input = HostTensor::new(Shape::nhwc(1, height as usize, width as usize, 3), pixels)?;

    let graph = network(width, height)?;
    let mut first: Option<(Backend, Vec<f32>)> = None;
    for backend in [Backend::Wgpu, Backend::OpenCl] {
        let context = match Context::new(backend) {
            Ok(context) => context,
            Err(error) => {
                println!("skipping {backend}: {error}");
                continue;
            }
        };
        println!("{}", context.info());
        let mut session = Session::new(&context, &graph, SessionOptions::default())?;
        let outputs = session.run(&[("picture", &input)])?;
        println!("{}", session.profile(&[("picture", &input)])?);
        let drawing = outputs[0].to_f32().into_owned();
        match &first {
            None => {
                let grey = drawing.iter().map(|value| (255.0 * value).round() as u8).collect();
                let image = GrayImage::from_raw(width, height, grey).context("as many pixels as values")?;
                image.save(&target).with_context(|| target.display().to_string())?;
                println!("drew {}", target.display());
                first = Some((backend, drawing));
            }
            Some((other, theirs)) => {
                let apart = drawing.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                println!("{backend} and {other} are at most {apart:.1e} apart");
                ensure!(apart < 1e-5, "{backend} draws something else than {other}: {apart} apart");
            }
        }
    }
    ensure!(first.is_some(), "no API of this machine has a device");
    Ok(())
}
