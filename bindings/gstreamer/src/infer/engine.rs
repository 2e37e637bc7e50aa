//! A model on a device, and what goes into it and comes out of it.

use super::settings::Settings;
use crate::failure::Failure;
use crate::tensors::{Tensor, Tensors};
use diptych::{
    Colours, Context, DType, Dims, FileInput, Frame, Frames, Framing, HostTensor, ModelFile, ModelInfo,
    RunInput, Session,
};
use half::f16;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs a network on frames, as many at a time as `batch` says.
#[derive(Debug)]
pub(super) struct Engine {
    session: Session,
    input: String,
    dims: Dims,
    dtype: DType,
    /// Width and height of the network's picture.
    size: [u32; 2],
    is_planar: bool,
    batch: usize,
    colours: Colours,
    outputs: Vec<Output>,
    /// The names of the network's classes.
    labels: Arc<[String]>,
    device: String,
}

/// An output that goes to the buffers: its place among the session's, and its dimensions for one frame.
#[derive(Debug)]
struct Output {
    place: usize,
    name: String,
}

/// Which axes of an input are its height, width and channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axes {
    height: usize,
    width: usize,
    channels: usize,
}

impl Axes {
    /// The axes of an input of four axes with 1 to 4 channels, last or behind the batch; where either could be meant, they are last.
    fn of(extents: &[Option<usize>]) -> Option<Self> {
        let channels = |axis: usize| matches!(extents.get(axis), Some(Some(1..=4)));
        match extents.len() {
            4 if channels(3) => Some(Axes { height: 1, width: 2, channels: 3 }),
            4 if channels(1) => Some(Axes { height: 2, width: 3, channels: 1 }),
            _ => None,
        }
    }

    fn are_planar(self) -> bool {
        self.channels == 1
    }
}

impl Engine {
    /// Reads the model, opens the device and makes the network ready for its first run.
    pub(super) fn open(settings: &Settings) -> Result<Self, Failure> {
        let path = settings.model.as_deref().filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| {
            Failure::setting("model: found none, wanted the path of a TensorFlow Lite or ONNX file")
        })?;
        let file = ModelFile::load(path, &settings.load_options())?;
        let inputs: Vec<FileInput> = file.inputs().into_iter().filter(|input| !input.is_optional).collect();
        let [input] = inputs.as_slice() else {
            let names: Vec<_> = inputs.iter().map(|input| format!("{:?}", input.name)).collect();
            let found = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Failure::model(format!("{path}: inputs: found {found}, wanted one, a picture")));
        };
        let extents = input.extents.clone().unwrap_or_default();
        let axes = Axes::of(&extents).ok_or_else(|| not_a_picture(path, input, &extents))?;
        let batch = settings.batch.max(1) as usize;
        // An open batch is that of one frame, which the network is made for so many of.
        let model = file.model(&dimensions(path, input, axes, settings)?)?;
        let held = extents.first().copied().flatten().unwrap_or(1);
        let graph = match held {
            held if held == batch => model.graph,
            1 => model.graph.with_batch(batch)?,
            held => {
                let text = format!("batch: found {batch}, wanted {held}, which {path} is made for");
                return Err(Failure::setting(text));
            }
        };
        let options = settings.session_options()?;
        let context = settings.context(&graph, &options)?;
        let session = Session::new(&context, &graph, options)?;
        let ports = session.inputs();
        let port = ports.first().ok_or_else(|| Failure::model(format!("{path}: found no input")))?;
        let (name, dims, dtype) = (port.name.clone(), port.dims, port.dtype);
        let extent = |axis: usize| dims.extents().get(axis).copied().unwrap_or_default();
        let size = [extent(axes.width), extent(axes.height)].map(|extent| extent as u32);
        let colours = colours(path, settings, dtype, extent(axes.channels), file.info())?;
        let outputs = outputs(path, &session, settings, batch)?;
        let labels = labels(file.info());
        let device = device(&context);
        let is_planar = axes.are_planar();
        let input = name;
        Ok(Engine { session, input, dims, dtype, size, is_planar, batch, colours, outputs, labels, device })
    }

    /// The device and why it was chosen.
    pub(super) fn device(&self) -> &str {
        &self.device
    }

    /// Width and height of the network's picture.
    pub(super) fn size(&self) -> [u32; 2] {
        self.size
    }

    /// How many frames a run takes.
    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    /// The outputs of each of the frames, which are as many as a run takes at most. Where they are fewer the last one stands in
    /// the empty places.
    pub(super) fn run(
        &mut self,
        network: &str,
        frames: &[(Frame<&[u8]>, Framing)],
    ) -> Result<Vec<Tensors>, Failure> {
        let given = frames.len();
        let Some(&last) = frames.last() else { return Ok(Vec::new()) };
        let mut frames = frames.to_vec();
        frames.resize(self.batch, last);
        let frames = Frames::new(&frames, self.colours);
        let run = match self.dtype {
            DType::F32 => self.session.submit(&[(self.input.as_str(), RunInput::from(frames))])?,
            _ => {
                let tensor = rounded(&frames.to_tensor(self.dims)?, self.dtype)?;
                self.session.submit(&[(self.input.as_str(), &tensor)])?
            }
        };
        let results = run.wait()?.tensors()?;
        let mut all = vec![Vec::with_capacity(self.outputs.len()); given];
        for Output { place, name } in &self.outputs {
            let missing = || Failure::model(format!("a run gave no output {name:?}"));
            let result = results.get(*place).ok_or_else(missing)?;
            for (part, frame) in parts(result, self.batch)?.into_iter().zip(&mut all) {
                frame.push(Tensor { name: name.clone(), data: part, labels: Arc::clone(&self.labels) });
            }
        }
        let tensors = all.into_iter().map(|tensors| Tensors::new(network, self.is_planar, tensors));
        Ok(tensors.collect())
    }
}

fn device(context: &Context) -> String {
    let info = context.info();
    let device = info.device.as_ref().map_or_else(|| info.backend.to_string(), ToString::to_string);
    format!("{device}: {}", info.reason)
}

fn not_a_picture(path: &str, input: &FileInput, extents: &[Option<usize>]) -> Failure {
    let extents = extents.iter().map(|extent| extent.map_or("?".to_owned(), |extent| extent.to_string()));
    let found = extents.collect::<Vec<_>>().join("x");
    Failure::model(format!(
        "{path}: input {:?}: found {} of {found}, wanted NxHxWxC or NxCxHxW with 1 to 4 channels C",
        input.name, input.dtype
    ))
}

/// The extents that the file leaves open.
fn dimensions(
    path: &str,
    input: &FileInput,
    axes: Axes,
    settings: &Settings,
) -> Result<BTreeMap<String, usize>, Failure> {
    let mut dimensions = BTreeMap::new();
    for open in &input.open {
        let (what, extent) = match open.axis {
            0 => ("batch", 1),
            axis if axis == axes.width => ("input-width", settings.input_width as usize),
            axis if axis == axes.height => ("input-height", settings.input_height as usize),
            _ => continue,
        };
        if extent == 0 {
            let text =
                format!("{what}: found none, wanted one, for {path} leaves it open as {:?}", open.name);
            return Err(Failure::setting(text));
        }
        let before = dimensions.insert(open.name.clone(), extent);
        if let Some(before) = before.filter(|&before| before != extent) {
            return Err(Failure::setting(format!(
                "{what}: found {extent}, wanted {before}, for {path} has one extent for both, {:?}",
                open.name
            )));
        }
    }
    let fixed = [
        ("input-width", axes.width, settings.input_width),
        ("input-height", axes.height, settings.input_height),
    ];
    for (what, axis, found) in fixed {
        let held = input.extents.as_ref().and_then(|extents| extents.get(axis).copied().flatten());
        if let Some(held) = held.filter(|&held| found != 0 && held != found as usize) {
            return Err(Failure::setting(format!(
                "{what}: found {found}, wanted {held}, which {path} is made for"
            )));
        }
    }
    Ok(dimensions)
}

/// How colours become the network's numbers: as the properties say, or else the file.
fn colours(
    path: &str,
    settings: &Settings,
    dtype: DType,
    channels: usize,
    info: &ModelInfo,
) -> Result<Colours, Failure> {
    let range = Settings::some::<2>("range", &settings.range)?;
    let mean = Settings::some::<3>("mean", &settings.mean)?;
    let std = Settings::some::<3>("std", &settings.std)?;
    let is_byte = matches!(dtype, DType::U8 | DType::I8);
    let told = info.inputs.first().and_then(|input| match *input.normalisation.as_slice() {
        [one] => Some([one; 3]),
        [red, green, blue] => Some([red, green, blue]),
        _ => None,
    });
    let colours = match (range, mean, std) {
        (None, None, None) if dtype == DType::U8 => Colours::range(0.0, 255.0),
        (None, None, None) if dtype == DType::I8 => Colours::range(-128.0, 127.0),
        _ if is_byte => {
            let text = format!("range, mean, std: found numbers, wanted none, for {path} takes {dtype}");
            return Err(Failure::setting(text));
        }
        (Some([low, high]), None, None) => Colours::range(low, high),
        (None, Some(mean), Some(std)) => Colours::normalized(mean, std)?,
        (None, None, None) => match told {
            // Of values from 0 to 255.
            Some(told) => Colours::normalized(
                told.map(|(mean, _)| mean / 255.0),
                told.map(|(_, deviation)| deviation / 255.0),
            )?,
            None => {
                let wanted =
                    "range=\"<low,high>\", or mean=\"<r,g,b>\" and std=\"<r,g,b>\" of colours from 0 to 1";
                let text = format!("{path} does not say the range of its picture's numbers: wanted {wanted}");
                return Err(Failure::setting(text));
            }
        },
        (Some(_), _, _) => return Err(Failure::setting("range: found mean or std too, wanted either")),
        (None, _, _) => {
            return Err(Failure::setting("mean, std: found one of them, wanted both or neither"));
        }
    };
    let colours = match Settings::some::<3>("border", &settings.border)? {
        Some([r, g, b]) => colours.border([r, g, b, 1.0]),
        None => colours,
    };
    let colours = if settings.bgr { colours.bgr() } else { colours };
    Ok(if channels == 1 { colours.gray() } else { colours })
}

/// The outputs that the property names, or all.
fn outputs(path: &str, session: &Session, settings: &Settings, batch: usize) -> Result<Vec<Output>, Failure> {
    let ports = session.outputs();
    let wanted: Vec<&str> =
        settings.outputs.as_deref().unwrap_or_default().split(',').map(str::trim).collect();
    let wanted: Vec<&str> = wanted.into_iter().filter(|name| !name.is_empty()).collect();
    for name in &wanted {
        if !ports.iter().any(|port| port.name == *name) {
            let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
            let text = format!("outputs: found {name:?}, wanted some of {path}'s {}", names.join(", "));
            return Err(Failure::setting(text));
        }
    }
    let mut outputs = Vec::new();
    for (place, port) in ports.iter().enumerate() {
        if !wanted.is_empty() && !wanted.contains(&port.name.as_str()) {
            continue;
        }
        let outermost = port.dims.extents().first().copied().unwrap_or(1);
        if batch > 1 && !outermost.is_multiple_of(batch) {
            let text = format!(
                "batch: {path}: output {:?} has dimensions {}, wanted {batch} or a multiple of it outermost, a part for \
                 each frame",
                port.name, port.dims
            );
            return Err(Failure::setting(text));
        }
        outputs.push(Output { place, name: port.name.clone() });
    }
    Ok(outputs)
}

/// The names of the classes, where the file has them for one output: the file's order of outputs need not be the network's.
fn labels(info: &ModelInfo) -> Arc<[String]> {
    let mut told = info.outputs.iter().map(|output| &output.labels).filter(|labels| !labels.is_empty());
    match (told.next(), told.next()) {
        (Some(labels), None) => labels.as_slice().into(),
        _ => Arc::default(),
    }
}

/// A result cut along its outermost axis, a part for each frame.
fn parts(result: &HostTensor, batch: usize) -> Result<Vec<HostTensor>, Failure> {
    if batch == 1 {
        return Ok(vec![result.clone()]);
    }
    let mut extents = result.dims().extents().to_vec();
    if let Some(outermost) = extents.first_mut() {
        *outermost /= batch;
    }
    let (dims, dtype) = (Dims::new(&extents)?, result.dtype());
    let bytes = result.bytes();
    let length = bytes.len() / batch;
    let part = |bytes| Ok(HostTensor::from_bytes(dims, dtype, bytes)?);
    bytes.chunks_exact(length.max(1)).map(part).collect()
}

/// Numbers as the elements of an input that has no f32.
fn rounded(tensor: &HostTensor, dtype: DType) -> Result<HostTensor, Failure> {
    let (dims, numbers) = (tensor.dims(), tensor.to_f32());
    let numbers = numbers.iter().copied();
    // Casts of floats saturate.
    Ok(match dtype {
        DType::U8 => HostTensor::of(dims, numbers.map(|number| number.round() as u8).collect::<Vec<_>>())?,
        DType::I8 => HostTensor::of(dims, numbers.map(|number| number.round() as i8).collect::<Vec<_>>())?,
        DType::F16 => HostTensor::of(dims, numbers.map(f16::from_f32).collect::<Vec<_>>())?,
        other => {
            let text = format!("the network's picture: found {other}, wanted f32, f16, u8 or i8");
            return Err(Failure::model(text));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axes_of_a_picture_follow_from_its_channels() {
        let of =
            |extents: &[usize]| Axes::of(&extents.iter().map(|&extent| Some(extent)).collect::<Vec<_>>());
        let last = Axes { height: 1, width: 2, channels: 3 };
        let first = Axes { height: 2, width: 3, channels: 1 };
        assert_eq!([of(&[1, 257, 257, 3]), of(&[1, 3, 224, 224])], [Some(last), Some(first)]);
        // Either could be meant.
        assert_eq!(of(&[1, 3, 3, 3]), Some(last));
        assert_eq!([of(&[1, 1001]), of(&[1, 5, 5, 7])], [None, None]);
        assert_eq!(Axes::of(&[None, Some(3), None, None]), Some(first));
    }

    #[test]
    fn a_result_is_cut_along_its_outermost_axis() {
        let dims = Dims::new(&[4, 2]).expect("dimensions");
        let result = HostTensor::of(dims, (0..8i32).collect::<Vec<_>>()).expect("a tensor");
        let parts = parts(&result, 2).expect("two parts");
        let elements: Vec<_> = parts.iter().map(|part| part.elements::<i32>().expect("integers")).collect();
        assert_eq!(elements, [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert_eq!(parts[1].dims().extents(), [2, 2]);
    }

    #[test]
    fn bytes_are_rounded_and_saturate() {
        let dims = Dims::new(&[4]).expect("dimensions");
        let numbers = HostTensor::new(dims, vec![-0.4, 127.5, 254.6, 300.0]).expect("a tensor");
        let bytes = rounded(&numbers, DType::U8).expect("bytes");
        assert_eq!(bytes.elements::<u8>(), Some(&[0, 128, 255, 255][..]));
        let bytes = rounded(&numbers, DType::I8).expect("bytes");
        assert_eq!(bytes.elements::<i8>(), Some(&[0, 127, 127, 127][..]));
        assert!(rounded(&numbers, DType::I64).expect_err("integers").text.contains("found i64"));
    }
}
