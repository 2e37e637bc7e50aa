//! What a network's outputs mean: found from their shapes.

use crate::detectors::{DETECTORS, Detector, SAME};
use crate::fit::{Border, Fit, Part, Wanted, Window, range};
use crate::found::Found;
use crate::options::Task;
use crate::{hand, segment};
use anyhow::{Context as _, Result, bail};
use diptych::tflite::Model;
use diptych::{HostTensor, Port};
use diptych_decode::anchors::{self, Anchor};
use diptych_decode::classification::{best, probabilities};
use diptych_decode::{
    Detection, Limits, mediapipe, non_maximum_suppression, ssd, weighted_non_maximum_suppression, yunet,
};
use image::RgbImage;

/// How outputs are read. Numbers are places among the outputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Reader {
    /// A probability for each pixel of height x width.
    Mask { size: [usize; 2] },
    /// A score for each pixel and class.
    Classes { size: [usize; 3] },
    /// The joints of a hand, its score and its side.
    Hand { joints: usize, score: usize, side: Option<usize> },
    /// Boxes measured from anchors.
    Anchored { rows: usize, logits: usize, detector: &'static Detector, anchors: Vec<Anchor> },
    /// YuNet's faces.
    Yunet { rows: usize, classes: usize, overlaps: usize, priors: Vec<Anchor> },
    /// YuNet's faces, measured from cells: for each stride the places of classes, overlaps, boxes and points.
    Cells { places: [(usize, [usize; 4]); 3], width: usize },
    /// Boxes that the file has chosen itself.
    Processed { areas: usize, classes: usize, scores: usize, count: usize, size: [usize; 2] },
    /// A score for each class; of a face those are its genders. Files with channels first are PyTorch's.
    Scores { count: usize, gender: bool, planar: bool },
    /// A picture; the other input has this many numbers.
    Style { size: [usize; 2], numbers: usize },
}

/// The parts of YuNet's face.
pub const YUNET: [&str; 5] = ["rightEye", "leftEye", "noseTip", "rightMouthCorner", "leftMouthCorner"];

/// YuNet's least score and largest overlap, as OpenCV's example has them.
const YUNET_LEAST: f32 = 0.6;
const YUNET_SAME: f32 = 0.3;

/// The least score of boxes and hands whose authors name no other.
const LEAST: f32 = 0.5;

/// Extents without the leading ones.
fn core(port: &Port) -> &[usize] {
    let extents = port.dims.extents();
    let ones = extents.iter().take_while(|&&extent| extent == 1).count();
    // A lone number keeps one.
    &extents[ones.min(extents.len().saturating_sub(1))..]
}

fn elements(port: &Port) -> usize {
    port.dims.extents().iter().product()
}

/// The height and width of a picture that an input or output is: 1 x height x width x 3, or 1 x 3 x height x width.
pub fn picture_size(port: &Port) -> Option<[usize; 2]> {
    match *port.dims.extents() {
        [1, height, width, 3] | [1, 3, height, width] if height > 1 && width > 1 => Some([height, width]),
        _ => None,
    }
}

/// Whether a picture has its channels first, as ONNX files have them.
pub fn is_planar(port: &Port) -> bool {
    matches!(*port.dims.extents(), [_, 3, _, last] if last != 3)
}

/// The input that is a picture, the first of several.
pub fn picture_input(model: &Model) -> Option<usize> {
    model.inputs.iter().position(|input| picture_size(input).is_some())
}

impl Reader {
    /// How the outputs of a model are read for a task.
    ///
    /// # Errors
    /// If they do not fit; with what they are and what the task knows.
    pub fn find(task: Task, model: &Model) -> Result<Self> {
        let refuse = |wanted: &str| {
            let list = |ports: &[Port]| {
                let told = ports.iter().map(|port| format!("{} ({:?})", port.dims, port.name));
                told.collect::<Vec<_>>().join(", ")
            };
            let (inputs, outputs) = (list(&model.inputs), list(&model.outputs));
            format!(
                "not a model for --task {task}: found inputs {inputs} and outputs {outputs}, wanted {wanted}"
            )
        };
        let picture = picture_input(model).and_then(|index| picture_size(&model.inputs[index]));
        let Some(size) = picture else { bail!(refuse("an input 1xHxWx3 or 1x3xHxW, a picture")) };
        let planar = picture_input(model).is_some_and(|index| is_planar(&model.inputs[index]));
        let one = (model.inputs.len() == 1).then_some(&model.outputs[..]);
        let (found, wanted) = match task {
            Task::Segment => {
                (one.and_then(segmented), "one output 1xHxWx1 (a mask) or 1xHxWxC (C classes)".to_owned())
            }
            Task::Hands => (
                one.and_then(joints),
                "63 numbers (21 joints), a score, and perhaps a side and more".to_owned(),
            ),
            Task::Faces => (
                one.and_then(|outputs| {
                    let found = anchored(outputs, size, Some("face"));
                    found.or_else(|| priors(outputs, size)).or_else(|| cells(outputs, size))
                }),
                format!(
                    "{}, or Nx2, Nx1 and Nx14, or for strides 8, 16 and 32 Nx1, Nx1, Nx4 and Nx10 (YuNet)",
                    known(Some("face"))
                ),
            ),
            Task::Detect => (
                one.and_then(|outputs| anchored(outputs, size, None).or_else(|| processed(outputs, size))),
                format!("{}, or 1xNx4, 1xN, 1xN and 1 (TFLite_Detection_PostProcess)", known(None)),
            ),
            Task::Classify => (
                one.and_then(|outputs| scores(outputs, size, planar)),
                "one output of a score for each class".to_owned(),
            ),
            Task::Style => {
                (styled(model), "another input of numbers (the style) and one output 1xHxWx3".to_owned())
            }
        };
        found.with_context(|| refuse(&wanted))
    }

    /// What the authors give the network, if its file does not say how values are normalised; and who says so.
    pub fn wanted(&self, size: [usize; 2]) -> (Wanted, &'static str) {
        // As MediaPipe's graphs do it; the others differ in what they say.
        let plain = Wanted {
            size,
            fit: Fit::Whole,
            border: Border::Black,
            smooth: false,
            normalise: range(0.0, 1.0),
            bgr: false,
        };
        match self {
            // selfie_segmentation_cpu.pbtxt: keep_aspect_ratio: false, 0 to 1.
            Reader::Mask { .. } => (Wanted { fit: Fit::Stretch, ..plain }, "MediaPipe's graph"),
            // The demo of DeepLab keeps the proportions and makes pictures smaller with antialiasing; the mobile
            // network takes -1 to 1.
            Reader::Classes { .. } => {
                (Wanted { smooth: true, normalise: range(-1.0, 1.0), ..plain }, "DeepLab's authors")
            }
            // hand_landmark_cpu.pbtxt: 0 to 1, no border_mode.
            Reader::Hand { .. } => (Wanted { border: Border::Nearest, ..plain }, "MediaPipe's graph"),
            Reader::Anchored { detector, .. } => {
                (Wanted { normalise: detector.normalisation(), ..plain }, "MediaPipe's graph")
            }
            // OpenCV's FaceDetectorYN gives blue, green and red from 0 to 255. A file of one size has the picture
            // stretched to it.
            Reader::Yunet { .. } | Reader::Cells { .. } => {
                let (fit, border) = (Fit::Stretch, Border::Nearest);
                (Wanted { fit, border, normalise: range(0.0, 255.0), bgr: true, ..plain }, "YuNet's authors")
            }
            // The float models of TensorFlow's object detection: stretched, -1 to 1.
            Reader::Processed { .. } => {
                let (fit, border) = (Fit::Stretch, Border::Nearest);
                (
                    Wanted { fit, border, normalise: range(-1.0, 1.0), ..plain },
                    "TensorFlow's object detection",
                )
            }
            // The application of the gender network stretches and divides by 255.
            Reader::Scores { gender: true, .. } => (
                Wanted { fit: Fit::Stretch, border: Border::Nearest, ..plain },
                "the gender network's authors",
            ),
            // As torchvision evaluates its classifiers: the middle of the picture, normalised by ImageNet's means and
            // deviations.
            Reader::Scores { planar: true, .. } => {
                let normalise = [(123.675, 58.395), (116.28, 57.12), (103.53, 57.375)];
                let (fit, border) = (Fit::Middle, Border::Nearest);
                (Wanted { fit, border, smooth: true, normalise, ..plain }, "torchvision's authors")
            }
            // MobileNet as Keras has it: stretched, -1 to 1.
            Reader::Scores { .. } => {
                let (fit, border) = (Fit::Stretch, Border::Nearest);
                (
                    Wanted { fit, border, smooth: true, normalise: range(-1.0, 1.0), ..plain },
                    "MobileNet's authors",
                )
            }
            // 0 to 1; stretched, and the result back to the picture's proportions.
            Reader::Style { .. } => {
                let (fit, border) = (Fit::Stretch, Border::Nearest);
                (Wanted { fit, border, smooth: true, ..plain }, "Magenta's example")
            }
        }
    }

    /// Names of classes that everybody knows for such outputs.
    pub fn labels(&self) -> Vec<String> {
        let names: &[&str] = match self {
            Reader::Classes { size: [.., 21] } => &segment::VOC,
            Reader::Scores { gender: true, .. } => &["male", "female"],
            Reader::Anchored { detector, .. } => std::slice::from_ref(&detector.what),
            Reader::Yunet { .. } | Reader::Cells { .. } => &["face"],
            _ => &[],
        };
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// What a run found in a part of a picture.
    pub fn read(&self, outputs: &[HostTensor], look: &Look<'_>) -> Result<Found> {
        let values = |index: usize| {
            let tensor = outputs.get(index).with_context(|| format!("the run returned no output {index}"))?;
            Ok::<_, anyhow::Error>(tensor.to_nhwc())
        };
        let size = look.picture.dimensions();
        let Look { part, window, .. } = *look;
        let least = |authors: f32| look.least.unwrap_or(authors);
        let boxed = |found: Vec<Detection>, to: &dyn Fn([f32; 2]) -> [f32; 2], points: &[&'static str]| {
            let detections = found.iter().map(|one| one.map(to)).collect();
            Found::Boxes { detections, points: points.to_vec() }
        };
        Ok(match self {
            Reader::Mask { size: of } => {
                let map = segment::mask(&values(0)?, *of, size, part, &window);
                Found::Mask { map, least: least(LEAST) }
            }
            Reader::Classes { size: of } => {
                Found::Classes(segment::classes(&values(0)?, *of, size, part, &window))
            }
            Reader::Hand { joints, score, side } => {
                let score = values(*score)?.first().copied().unwrap_or(0.0);
                let side = match side {
                    Some(side) => values(*side)?.first().copied(),
                    None => None,
                };
                let options = (least(LEAST), look.mirrored);
                Found::Hand(hand::read(&values(*joints)?, score, side, &window, options))
            }
            Reader::Anchored { rows, logits, detector, anchors } => {
                let least = least(detector.least);
                let found = mediapipe::decode(&values(*rows)?, &values(*logits)?, anchors, least);
                boxed(
                    weighted_non_maximum_suppression(found, SAME),
                    &|at| window.to_picture(at),
                    detector.points,
                )
            }
            Reader::Yunet { rows, classes, overlaps, priors } => {
                let (rows, classes, overlaps) = (values(*rows)?, values(*classes)?, values(*overlaps)?);
                let found = yunet::decode_priors(&rows, &classes, &overlaps, priors, least(YUNET_LEAST));
                boxed(
                    non_maximum_suppression(found, YUNET_SAME, usize::MAX),
                    &|at| window.to_picture(at),
                    &YUNET,
                )
            }
            Reader::Cells { places, width } => {
                let mut found = Vec::new();
                for (stride, [classes, overlaps, areas, points]) in places {
                    let (classes, overlaps) = (values(*classes)?, values(*overlaps)?);
                    let (areas, points) = (values(*areas)?, values(*points)?);
                    let cells = yunet::Cells {
                        stride: *stride,
                        columns: width / stride,
                        classes: &classes,
                        overlaps: &overlaps,
                        boxes: &areas,
                        points: &points,
                    };
                    found.extend(yunet::decode_cells(&cells, least(YUNET_LEAST)));
                }
                boxed(
                    non_maximum_suppression(found, YUNET_SAME, usize::MAX),
                    &|at| window.to_picture(at),
                    &YUNET,
                )
            }
            Reader::Processed { areas, classes, scores, count, size: [height, width] } => {
                let count = values(*count)?.first().map_or(0, |&count| count.max(0.0) as usize);
                let (areas, classes, scores) = (values(*areas)?, values(*classes)?, values(*scores)?);
                let limits = Limits { score_threshold: least(LEAST), count, ..Limits::default() };
                let found = ssd::decode(&areas, &classes, &scores, count, [*height, *width], &limits);
                boxed(found, &|at| window.to_picture(at), &[])
            }
            Reader::Scores { .. } => Found::Scores(best(&probabilities(&values(0)?), look.top)),
            Reader::Style { size: [height, width], .. } => {
                let bytes =
                    values(0)?.iter().map(|value| (value * 255.0).round().clamp(0.0, 255.0) as u8).collect();
                let styled = RgbImage::from_raw(*width as u32, *height as u32, bytes).context("a picture")?;
                // Back to the part's own proportions.
                let [w, h] = [part.width, part.height].map(|extent| extent.round().max(1.0) as u32);
                Found::Styled(image::imageops::resize(&styled, w, h, image::imageops::FilterType::Triangle))
            }
        })
    }
}

/// Where was looked, and how results are to be read.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    pub picture: &'a RgbImage,
    pub part: Part,
    pub window: Window,
    /// The least score, if not the authors'.
    pub least: Option<f32>,
    /// Whether the picture is as a mirror shows it.
    pub mirrored: bool,
    /// How many classes are reported.
    pub top: usize,
}

/// The detectors of one kind, or all, in words.
fn known(what: Option<&str>) -> String {
    let of_kind = DETECTORS.iter().filter(|detector| what.is_none_or(|what| detector.what == what));
    of_kind.map(Detector::describe).collect::<Vec<_>>().join(", ")
}

fn segmented(outputs: &[Port]) -> Option<Reader> {
    let [output] = outputs else { return None };
    match *output.dims.extents() {
        [1, height, width, 1] => Some(Reader::Mask { size: [height, width] }),
        [1, height, width, classes] if height > 1 && width > 1 && classes <= usize::from(u16::MAX) => {
            Some(Reader::Classes { size: [height, width, classes] })
        }
        _ => None,
    }
}

fn joints(outputs: &[Port]) -> Option<Reader> {
    let joints = outputs.iter().position(|output| elements(output) == 63)?;
    let mut single = outputs.iter().enumerate().filter(|(_, output)| elements(output) == 1);
    let (score, _) = single.next()?;
    Some(Reader::Hand { joints, score, side: single.next().map(|(side, _)| side) })
}

fn anchored(outputs: &[Port], size: [usize; 2], what: Option<&str>) -> Option<Reader> {
    let of_kind = DETECTORS.iter().filter(|detector| what.is_none_or(|what| detector.what == what));
    let mut fitting = of_kind.filter(|detector| size == [detector.size; 2] && outputs.len() == 2);
    fitting.find_map(|detector| {
        let anchors = detector.anchors();
        let place = |coordinates: usize| {
            outputs.iter().position(|output| core(output) == [anchors.len(), coordinates])
        };
        let (rows, logits) = (place(detector.coordinates())?, place(1)?);
        Some(Reader::Anchored { rows, logits, detector, anchors })
    })
}

fn priors(outputs: &[Port], size: [usize; 2]) -> Option<Reader> {
    let priors = anchors::yunet(size);
    let place = |numbers: usize| outputs.iter().position(|output| core(output) == [priors.len(), numbers]);
    let (rows, classes, overlaps) = (place(14)?, place(2)?, place(1)?);
    (outputs.len() == 3).then_some(Reader::Yunet { rows, classes, overlaps, priors })
}

/// The outputs of the file are called by their strides: `cls_8`, `obj_8`, `bbox_8`, `kps_8`.
fn cells(outputs: &[Port], [height, width]: [usize; 2]) -> Option<Reader> {
    if outputs.len() != 12 {
        return None;
    }
    let places = [8, 16, 32].map(|stride| {
        let count = height / stride * (width / stride);
        let place = |name: &str, numbers: usize| {
            let fits = |output: &Port| elements(output) == count * numbers;
            outputs.iter().position(|output| output.name == format!("{name}_{stride}") && fits(output))
        };
        Some((stride, [place("cls", 1)?, place("obj", 1)?, place("bbox", 4)?, place("kps", 10)?]))
    });
    let [Some(fine), Some(middle), Some(coarse)] = places else { return None };
    Some(Reader::Cells { places: [fine, middle, coarse], width })
}

/// The operator's order is boxes, classes, scores, count; files of TensorFlow 2 have scores, boxes, count, classes.
fn processed(outputs: &[Port], size: [usize; 2]) -> Option<Reader> {
    let extents = |index: usize| outputs[index].dims.extents();
    let order = match outputs.len() {
        4 if extents(0).len() == 3 => [0, 1, 2, 3],
        4 if extents(1).len() == 3 => [1, 3, 0, 2],
        _ => return None,
    };
    let [areas, classes, scores, count] = order;
    let boxes = elements(&outputs[classes]);
    let counted = elements(&outputs[scores]) == boxes && elements(&outputs[count]) == 1;
    let fits = counted && *extents(areas) == [1, boxes, 4];
    fits.then_some(Reader::Processed { areas, classes, scores, count, size })
}

fn scores(outputs: &[Port], size: [usize; 2], planar: bool) -> Option<Reader> {
    let [output] = outputs else { return None };
    let count = elements(output);
    // Known by its numbers: two classes of a picture of 128 x 128.
    let gender = count == 2 && size == [128, 128];
    // Trailing ones are those of a map of one pixel.
    let line = output.dims.extents().iter().filter(|&&extent| extent > 1).count() == 1;
    (count > 1 && line).then_some(Reader::Scores { count, gender, planar })
}

fn styled(model: &Model) -> Option<Reader> {
    let ([first, second], [output]) = (&model.inputs[..], &model.outputs[..]) else { return None };
    let style = if picture_input(model) == Some(0) { second } else { first };
    let numbers = elements(style);
    let fits = core(style) == [numbers];
    picture_size(output).filter(|_| fits).map(|size| Reader::Style { size, numbers })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(dims: &[&[usize]]) -> Vec<Port> {
        let port = |dims: &&[usize]| {
            let dims = diptych::Dims::new(dims).expect("few");
            let (shape, dtype) = (dims.shape(), diptych::DType::F32);
            Port { name: "port".to_owned(), shape, dims, dtype, open: Vec::new() }
        };
        dims.iter().map(port).collect()
    }

    #[test]
    fn outputs_are_distinguished_by_their_shapes_in_any_order() {
        let face = ports(&[&[1, 896, 1], &[1, 896, 16]]);
        let found = anchored(&face, [128, 128], Some("face"));
        assert!(matches!(found, Some(Reader::Anchored { rows: 1, logits: 0, .. })), "{found:?}");
        assert_eq!(anchored(&face, [192, 192], None), None);
        assert_eq!(anchored(&face, [128, 128], Some("person")), None);
        let found = priors(&ports(&[&[1, 1076, 14], &[1076, 1], &[1076, 2]]), [120, 160]);
        assert!(matches!(found, Some(Reader::Yunet { rows: 0, classes: 2, overlaps: 1, .. })), "{found:?}");
        let found = joints(&ports(&[&[1, 1], &[1, 63], &[1, 1], &[1, 63]]));
        assert_eq!(found, Some(Reader::Hand { joints: 1, score: 0, side: Some(2) }));
        let wanted = |[areas, classes, scores, count]: [usize; 4]| {
            Some(Reader::Processed { areas, classes, scores, count, size: [300, 300] })
        };
        let found = processed(&ports(&[&[1, 10, 4], &[1, 10], &[1, 10], &[1]]), [300, 300]);
        assert_eq!(found, wanted([0, 1, 2, 3]));
        let found = processed(&ports(&[&[1, 25], &[1, 25, 4], &[1], &[1, 25]]), [300, 300]);
        assert_eq!(found, wanted([1, 3, 0, 2]));
        assert_eq!(processed(&ports(&[&[1, 10, 4], &[1, 9], &[1, 10], &[1]]), [300, 300]), None);
        assert_eq!(
            scores(&ports(&[&[1, 1, 1, 1001]]), [224, 224], false),
            Some(Reader::Scores { count: 1001, gender: false, planar: false })
        );
        assert_eq!(scores(&ports(&[&[1, 2, 1001]]), [224, 224], false), None);
        assert!(scores(&ports(&[&[1, 1000, 1, 1]]), [224, 224], true).is_some());
        let mut named = ports(&[&[1, 8, 4], &[1, 8, 10], &[1, 8, 1], &[1, 8, 1], &[1, 32, 1], &[1, 32, 1]]);
        named.extend(ports(&[&[1, 32, 4], &[1, 32, 10], &[1, 2, 1], &[1, 2, 1], &[1, 2, 4], &[1, 2, 10]]));
        let names = ["bbox_16", "kps_16", "cls_16", "obj_16", "cls_8", "obj_8"];
        let names = names.into_iter().chain(["bbox_8", "kps_8", "cls_32", "obj_32", "bbox_32", "kps_32"]);
        for (port, name) in named.iter_mut().zip(names) {
            port.name = name.to_owned();
        }
        let places = [(8, [4, 5, 6, 7]), (16, [2, 3, 0, 1]), (32, [8, 9, 10, 11])];
        assert_eq!(cells(&named, [32, 64]), Some(Reader::Cells { places, width: 64 }));
        assert_eq!(cells(&named, [64, 64]), None);
        assert_eq!(segmented(&ports(&[&[1, 144, 256, 1]])), Some(Reader::Mask { size: [144, 256] }));
        assert_eq!(segmented(&ports(&[&[1, 1, 1, 1001]])), None);
    }
}
