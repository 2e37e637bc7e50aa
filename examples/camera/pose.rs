//! The bundled PoseNet with a node of ours behind it: from heatmaps to keypoints on the device.

use anyhow::{Context as _, Result};
use diptych::{Custom, Dims, Graph, Scalar, Shape, tflite};

/// Ours, trained on drawn figures (`examples/posenet/train/`).
const FIGURES: &[u8] = include_bytes!("../posenet/data/posenet_figures.tflite");

/// How many body parts PoseNet finds.
pub const PARTS: usize = 17;

/// The parts that a drawing joins: shoulders, hips, flanks, arms and legs.
pub const LIMBS: [[u32; 2]; 12] = [
    [5, 6],
    [11, 12],
    [5, 11],
    [6, 12],
    [5, 7],
    [7, 9],
    [6, 8],
    [8, 10],
    [11, 13],
    [13, 15],
    [12, 14],
    [14, 16],
];

/// For each part the cell with the highest logit, moved by that cell's offset: x, y, score and 0. Places are
/// continuous, so that the centre of the first pixel is (0.5, 0.5).
const DECODE: &str = "
struct Grid { width: u32, height: u32, stride: f32 }
@group(0) @binding(0) var<storage, read> heatmap: array<f32>;
@group(0) @binding(1) var<storage, read> offset: array<f32>;
@group(0) @binding(2) var<storage, read_write> keypoints: array<f32>;
@group(0) @binding(3) var<uniform> grid: Grid;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let part = id.x;
    if part >= 17u {
        return;
    }
    var best = heatmap[part];
    var cell = 0u;
    for (var i = 1u; i < grid.width * grid.height; i++) {
        let logit = heatmap[17u * i + part];
        if logit > best {
            best = logit;
            cell = i;
        }
    }
    let row = f32(cell / grid.width);
    let column = f32(cell % grid.width);
    keypoints[4u * part] = column * grid.stride + offset[34u * cell + 17u + part] + 0.5;
    keypoints[4u * part + 1u] = row * grid.stride + offset[34u * cell + part] + 0.5;
    keypoints[4u * part + 2u] = 1.0 / (1.0 + exp(-best));
    keypoints[4u * part + 3u] = 0.0;
}
";

/// The network, the name of its input, and width and height of what it looks at. Its last output is the keypoints.
pub fn network() -> Result<(Graph, String, [u32; 2])> {
    let mut graph = tflite::from_bytes(FIGURES)?;
    let input = *graph.inputs().first().context("no input")?;
    let (shape, name) = (graph.shape(input)?, graph.name(input)?.to_owned());
    let shapes = graph.outputs().iter().map(|&output| Ok((output, graph.shape(output)?)));
    let shapes: Vec<(_, Shape)> = shapes.collect::<diptych::Result<_>>()?;
    let of = |channels: usize| shapes.iter().find(|(_, shape)| shape.c == channels).context("no such head");
    let ((heatmap, cells), (offset, _)) = (*of(PARTS)?, *of(2 * PARTS)?);
    let stride = (shape.w - 1) as f32 / (cells.w - 1) as f32;
    let decode = Custom::new("keypoints", DECODE)?
        .outputs(|_| Ok(vec![Dims::new(&[PARTS, 4])?]))
        .grid(|_, _| [PARTS, 1, 1])
        .uniform(move |_: &[Dims], _: &[Dims]| {
            vec![
                ("width", Scalar::U32(cells.w as u32)),
                ("height", Scalar::U32(cells.h as u32)),
                ("stride", Scalar::F32(stride)),
            ]
        });
    for keypoints in graph.custom("keypoints", &decode, &[heatmap, offset])? {
        graph.output(keypoints)?;
    }
    Ok((graph, name, [u32::try_from(shape.w)?, u32::try_from(shape.h)?]))
}

/// Which part of the picture the camera sees at a moment: its middle, and the two steps to the next pixel.
pub fn camera(frame: u32, size: [u32; 2]) -> [[f32; 2]; 3] {
    let turn = frame as f32 * std::f32::consts::TAU / 60.0;
    let (sin, cos) = (0.06 * turn.sin()).sin_cos();
    let step = 400.0 / size[1] as f32 * (1.0 + 0.04 * (2.0 * turn).cos());
    let middle = [495.0 + 14.0 * turn.cos(), 278.0 + 8.0 * turn.sin()];
    [middle, [step * cos, step * sin], [-step * sin, step * cos]]
}

/// Says how sure the network was of a pose, and fails if it was not.
pub fn check(keypoints: &[f32]) -> Result<()> {
    let scores: Vec<f32> = keypoints.chunks_exact(4).map(|keypoint| keypoint[2]).collect();
    let mean = scores.iter().sum::<f32>() / scores.len() as f32;
    println!("{} keypoints of the last frame, with a mean score of {mean:.2}", scores.len());
    anyhow::ensure!(scores.len() == PARTS && mean > 0.5, "no pose was found: {scores:.2?}");
    Ok(())
}
