//! What a model is run on: files, pictures, random numbers.

use crate::npy;
use crate::output::say;
use anyhow::{Context as _, Result, bail, ensure};
use diptych::{DType, Dims, Graph, HostTensor, Quantised, TensorType};
use diptych_base::alloc::shared;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// An `--input`: a file, and the name of the input that it feeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) name: Option<String>,
    pub(crate) path: PathBuf,
}

impl Input {
    /// A name is text; a path may be anything that the system takes.
    pub(super) fn parse(argument: OsString) -> Result<Self, &'static str> {
        let (name, path) = match split_at_equals(&argument) {
            Some((name, path)) => (Some(name.to_str().ok_or("wanted a NAME of UTF-8")?), path),
            None => (None, argument.clone()),
        };
        if path.is_empty() || name == Some("") {
            return Err("wanted FILE or NAME=FILE");
        }
        Ok(Input { name: name.map(str::to_owned), path: path.into() })
    }
}

/// What is before the first `=` and what is after it, if there is one.
#[cfg(unix)]
fn split_at_equals(argument: &OsStr) -> Option<(&OsStr, OsString)> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = argument.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    Some((OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..]).to_owned()))
}

/// What is before the first `=` and what is after it, if there is one. A path that is no Unicode needs
/// to go without a name: elsewhere such strings cannot be split.
#[cfg(not(unix))]
fn split_at_equals(argument: &OsStr) -> Option<(&OsStr, OsString)> {
    let (name, path) = argument.to_str()?.split_once('=')?;
    Some((OsStr::new(name), path.into()))
}

/// What black and white are in a picture's tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pixels {
    black: f32,
    white: f32,
}

impl Pixels {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<f32>> = text
            .split(',')
            .map(|number| number.trim().parse().ok().filter(|it: &f32| it.is_finite()))
            .collect();
        match numbers.as_deref() {
            Some(&[black, white]) => Ok(Pixels { black, white }),
            _ => Err(format!("found {text:?}, wanted two numbers BLACK,WHITE")),
        }
    }
}

/// How the bytes of a picture become an input's numbers.
#[derive(Debug)]
enum Scale<'a> {
    /// They stay as they are.
    Bytes,
    Range(Pixels),
    /// The file's metadata say what numbers the bytes become.
    File(&'a diptych::Pixels),
}

impl<'a> Scale<'a> {
    /// Chooses what the flag says, or else what the file says. For an input of integers, bytes stay as they are unless the flag
    /// says otherwise.
    fn of(dtype: DType, range: Option<Pixels>, by_file: Option<&'a diptych::Pixels>) -> Result<Self> {
        match (range, by_file) {
            (Some(range), _) => Ok(Scale::Range(range)),
            (None, _) if !dtype.is_float() => Ok(Scale::Bytes),
            (None, Some(pixels)) => Ok(Scale::File(pixels)),
            (None, None) => bail!(
                "found a picture for an input of floats, of which the file does not say what numbers they are, wanted \
                 --range BLACK,WHITE as well: that with which the network was trained, such as 0,1 or -1,1 or 0,255"
            ),
        }
    }
}

/// An input of a model.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) name: String,
    /// Its type and dimensions.
    pub(super) of: TensorType,
}

/// The inputs in the graph's order.
pub(super) fn ports(graph: &Graph) -> Result<Vec<Port>> {
    let port = |&input| Ok(Port { name: graph.name(input)?.to_owned(), of: graph.tensor_type(input)? });
    graph.inputs().iter().map(port).collect()
}

/// Random numbers for each input of a graph, by its name.
pub(crate) fn all_random(graph: &Graph) -> Result<Vec<(String, HostTensor)>> {
    let each = ports(graph)?.into_iter().enumerate();
    each.map(|(index, port)| Ok((port.name, random(port.of, index as u64)?))).collect()
}

/// What feeds an input.
#[derive(Debug, PartialEq)]
pub(super) enum InputFile<'a> {
    /// A tensor in a file.
    Tensor(&'a Path),
    /// A picture in a file.
    Picture(&'a Path),
}

/// What feeds each input of the model, in the model's order; `None` for random numbers.
pub(super) fn bind<'a>(
    names: &[&str],
    tensors: &'a [Input],
    pictures: &'a [Input],
) -> Result<Vec<Option<InputFile<'a>>>> {
    let mut sources: Vec<Option<InputFile<'a>>> = names.iter().map(|_| None).collect();
    let known = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let tensors = tensors.iter().map(|input| ("--input", input, InputFile::Tensor(&input.path)));
    let pictures = pictures.iter().map(|input| ("--image", input, InputFile::Picture(&input.path)));
    for (flag, input, source) in tensors.chain(pictures) {
        let path = input.path.display();
        let place = match &input.name {
            Some(name) => names
                .iter()
                .zip(&mut sources)
                .find_map(|(own, place)| (own == name).then_some(place))
                .with_context(|| format!("the model has no input {name:?}; it has {known}"))?,
            None => match &mut sources[..] {
                [only] => only,
                _ => bail!("{flag} {path} needs a name, as NAME={path}: the model's inputs are {known}"),
            },
        };
        ensure!(place.is_none(), "{flag} {path} feeds an input that another flag feeds already");
        *place = Some(source);
    }
    Ok(sources)
}

/// The tensors of the inputs. Pictures are scaled by the range, or else as the file says of an input.
pub(super) fn read(
    ports: &[Port],
    sources: &[Option<InputFile<'_>>],
    (range, by_file): (Option<Pixels>, &BTreeMap<String, diptych::Pixels>),
    seed: u64,
) -> Result<Vec<HostTensor>> {
    let tensors = ports.iter().zip(sources).enumerate().map(|(index, (port, source))| {
        let read = match source {
            Some(InputFile::Tensor(path)) => npy::read(path, port.of),
            Some(InputFile::Picture(path)) => {
                let scale = Scale::of(port.of.dtype, range, by_file.get(&port.name));
                let read = scale.and_then(|scale| picture(path, port.of, scale));
                read.with_context(|| format!("{}", path.display()))
            }
            None => random(port.of, seed.wrapping_add(index as u64)),
        };
        read.with_context(|| format!("input {:?}", port.name))
    });
    tensors.collect()
}

/// Takes integers of files for inputs that the model's file keeps as integers for these, if they are `stored`, and else says
/// that they are not.
pub(super) fn dequantise(
    tensors: &mut [HostTensor],
    (ports, sources): (&[Port], &[Option<InputFile<'_>>]),
    quantised: &BTreeMap<String, Quantised>,
    stored: bool,
) -> Result<()> {
    let mut any = false;
    for ((port, source), tensor) in ports.iter().zip(sources).zip(tensors) {
        let (Some(InputFile::Tensor(path)), Some(own)) = (source, quantised.get(&port.name)) else {
            continue;
        };
        if tensor.dtype().is_float() {
            continue;
        }
        any = true;
        let Quantised { scale, zero, .. } = own;
        match stored {
            true => *tensor = own.floats(tensor)?,
            false => say(format_args!(
                "input {:?}: the integers of {} are taken as numbers, not as the integers that the model's file stores \
                 ({scale} times the integer less {zero}): --stored takes them so",
                port.name,
                path.display()
            )),
        }
    }
    ensure!(
        any || !stored,
        "--stored: found no --input of integers for an input that the model's file keeps as integers"
    );
    Ok(())
}

/// Numbers spread evenly over [0, 1), the same for the same seed. For integers and booleans they are 0 and 1, which are
/// ids in every vocabulary and what masks consist of.
fn random(TensorType { dtype, dims }: TensorType, seed: u64) -> Result<HostTensor> {
    // Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014 (SplitMix64).
    let number = |index: u64| {
        let mut z = (index.wrapping_add(seed << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u32 << 24) as f32
    };
    let numbers = (0..dims.elements()).map(|index| number(index as u64 + 1));
    let values = match dtype.is_float() {
        true => shared(numbers, "random numbers")?,
        false => shared(numbers.map(f32::round), "random numbers")?,
    };
    Ok(HostTensor::new(dims, values)?)
}

/// How a picture of 1, 3 or 4 channels lies in a tensor: images, rows, columns, channels, and whether each channel is a
/// plane, as in most ONNX files. Where either could be meant, channels are last.
fn places(dims: Dims) -> Option<([usize; 4], bool)> {
    match *dims.extents() {
        [n, h, w, c @ (1 | 3 | 4)] => Some(([n, h, w, c], false)),
        [n, c @ (1 | 3 | 4), h, w] => Some(([n, h, w, c], true)),
        _ => None,
    }
}

/// A picture as a tensor, the same in each image of a batch. One channel is the luma. Integers are the nearest.
fn picture(path: &Path, of: TensorType, scale: Scale<'_>) -> Result<HostTensor> {
    let TensorType { dtype, dims } = of;
    let Some(([n, h, w, c], planar)) = places(dims) else {
        bail!(
            "found an input of shape {dims}, wanted n h w c or n c h w of 1, 3 or 4 channels for a picture"
        );
    };
    // Reads no more than regular files, and of them no more than pictures have.
    let bytes = diptych_base::file::read(path, 1 << 28)?;
    let picture = image::load_from_memory(&bytes)?;
    let (width, height) = (u32::try_from(w)?, u32::try_from(h)?);
    let sized = picture.resize_exact(width, height, image::imageops::FilterType::Triangle);
    let values = match c {
        1 => sized.to_luma8().into_raw(),
        3 => sized.to_rgb8().into_raw(),
        _ => sized.to_rgba8().into_raw(),
    };
    let bytes: Vec<u8> = match planar {
        false => values,
        true => (0..c)
            .flat_map(|plane| (0..h * w).map(move |pixel| pixel * c + plane))
            .map(|at| values[at])
            .collect(),
    };
    let (black, white) = match scale {
        Scale::File(pixels) => {
            return Ok(pixels.floats(&HostTensor::of(dims, bytes.repeat(n))?)?);
        }
        Scale::Range(Pixels { black, white }) => (black, white),
        Scale::Bytes => (0.0, 255.0),
    };
    let scaled = |byte: &u8| black + f32::from(*byte) / 255.0 * (white - black);
    let value = |byte: &u8| if dtype.is_float() { scaled(byte) } else { scaled(byte).round() };
    let values: Vec<f32> = bytes.iter().map(value).collect();
    Ok(HostTensor::new(dims, values.repeat(n))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::Shape;

    fn given(inputs: &[&str]) -> Vec<Input> {
        inputs.iter().map(|text| Input::parse(text.into()).expect("a valid input")).collect()
    }

    fn floats(dims: impl Into<Dims>) -> TensorType {
        TensorType { dtype: DType::F32, dims: dims.into() }
    }

    #[test]
    fn files_are_bound_by_name_in_the_models_order() {
        let (tensors, pictures) = (given(&["b=y.npy"]), given(&["a=x.png"]));
        let bound = bind(&["a", "b", "c"], &tensors, &pictures).expect("bound");
        let wanted =
            [Some(InputFile::Picture(Path::new("x.png"))), Some(InputFile::Tensor(Path::new("y.npy"))), None];
        assert_eq!(bound, wanted);
        let tensors = given(&["x.npy"]);
        let bound = bind(&["image"], &tensors, &[]).expect("bound");
        assert_eq!(bound, [Some(InputFile::Tensor(Path::new("x.npy")))]);
    }

    #[test]
    fn wrong_bindings_list_the_models_inputs() {
        for (names, tensors, pictures, words) in [
            (&["a", "b"][..], &["x.npy"][..], &[][..], "--input x.npy needs a name, as NAME=x.npy"),
            (&["a", "b"], &[], &["x.png"], "--image x.png needs a name, as NAME=x.png"),
            (&["a", "b"], &["x.npy"], &[], "\"a\", \"b\""),
            (&["a"], &["c=x.npy"], &[], "the model has no input \"c\"; it has \"a\""),
            (&["a"], &["x.npy", "a=y.npy"], &[], "--input y.npy feeds an input that another"),
            (&["a"], &["x.npy"], &["y.png"], "--image y.png feeds an input that another"),
        ] {
            let (tensors, pictures) = (given(tensors), given(pictures));
            let error = bind(names, &tensors, &pictures).expect_err("a wrong binding");
            let text = format!("{error:#}");
            assert!(text.contains(words), "no {words:?} in: {text}");
        }
    }

    #[test]
    fn random_numbers_follow_from_the_seed_and_fill_the_range() {
        let typed = |dtype, seed| {
            let of = TensorType { dtype, ..floats(Shape::nhwc(1, 10, 10, 10)) };
            random(of, seed).expect("small").to_f32().into_owned()
        };
        let of = |seed| typed(DType::F32, seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let (values, mean) = (of(7), of(7).iter().sum::<f32>() / 1000.0);
        assert!(values.iter().all(|value| (0.0..1.0).contains(value)));
        assert!((0.45..0.55).contains(&mean), "{mean}");
        for dtype in [DType::I64, DType::U8, DType::Bool] {
            let values = typed(dtype, 7);
            let ones = values.iter().filter(|&&value| value == 1.0).count();
            let zeros = values.iter().filter(|&&value| value == 0.0).count();
            assert!(ones + zeros == 1000 && (400..600).contains(&ones), "{dtype}: {ones}");
        }
    }

    #[test]
    fn a_picture_is_resized_and_scaled() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("half.png");
        let mut drawn = image::RgbImage::new(8, 8);
        drawn.enumerate_pixels_mut().filter(|(x, ..)| *x > 3).for_each(|(.., pixel)| pixel.0 = [255, 0, 255]);
        drawn.save(&path).expect("written");
        let range = Pixels::parse("-1,1").expect("two numbers");
        let tensor = picture(&path, floats(Shape::nhwc(2, 1, 2, 3)), Scale::Range(range)).expect("read");
        let found = tensor.to_f32().into_owned();
        let (left, right) = ([-1.0f32; 3], [1.0, -1.0, 1.0]);
        for (found, wanted) in found.iter().zip([left, right, left, right].concat()) {
            assert!((found - wanted).abs() < 0.3, "{found} for {wanted}");
        }
        let planes = Dims::new(&[1, 3, 2, 5]).expect("dimensions");
        let planar = picture(&path, floats(planes), Scale::Range(range)).expect("read").to_f32().into_owned();
        let tensor = picture(&path, floats(Shape::nhwc(1, 2, 5, 3)), Scale::Range(range)).expect("read");
        let last: Vec<f32> = tensor.to_f32().into_owned();
        for (at, value) in planar.iter().enumerate() {
            assert_eq!(*value, last[at % 10 * 3 + at / 10], "{at}");
        }
        let error = picture(&path, floats(Shape::nhwc(1, 6, 2, 5)), Scale::Range(range))
            .expect_err("five or six channels");
        assert!(error.to_string().contains("1x6x2x5"), "{error}");
        let bytes = TensorType { dtype: DType::U8, ..floats(Shape::nhwc(1, 8, 8, 3)) };
        let whole = picture(&path, bytes, Scale::Bytes).expect("read").to_f32().into_owned();
        assert!(whole.iter().all(|value| [0.0, 255.0].contains(value)), "{whole:?}");
        let own = diptych::Pixels::normalized(&[(255.0, 1.0), (0.0, 2.0), (0.0, 0.5)]).expect("numbers");
        let of = TensorType { dtype: DType::F32, dims: bytes.dims };
        let found = picture(&path, of, Scale::File(&own)).expect("read").to_f32().into_owned();
        for (found, byte) in found.chunks(3).zip(whole.chunks(3)) {
            assert_eq!(found, [byte[0] - 255.0, byte[1] / 2.0, byte[2] * 2.0]);
        }
        std::fs::write(&path, b"no picture").expect("written");
        assert!(picture(&path, floats(Shape::nhwc(1, 1, 2, 3)), Scale::Range(range)).is_err());
        for wrong in ["1", "0,x", "0,1,2", "0,inf", ""] {
            assert!(Pixels::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_picture_for_floats_is_scaled_by_the_flag_or_by_the_file_or_refused() {
        let (range, own) = (Pixels::parse("-1,1").ok(), diptych::Pixels::range(0.0, 1.0).expect("numbers"));
        for dtype in [DType::F32, DType::F16] {
            assert!(matches!(Scale::of(dtype, range, Some(&own)), Ok(Scale::Range(_))));
            assert!(matches!(Scale::of(dtype, None, Some(&own)), Ok(Scale::File(_))));
            let error = Scale::of(dtype, None, None).expect_err("nobody says").to_string();
            assert!(error.contains("--range BLACK,WHITE"), "{error}");
        }
        assert!(matches!(Scale::of(DType::U8, None, None), Ok(Scale::Bytes)));
        assert!(matches!(Scale::of(DType::U8, range, None), Ok(Scale::Range(_))));
    }
}
