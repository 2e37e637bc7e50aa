//! Pictures as an input: textures of wgpu and images of OpenCL, by one kernel for each picture.

use super::Port;
use super::framing::{Colours, Framing};
use crate::device::{Buffer, Device, Dispatch, Image, Memory, Recording, Resource, compile_planned_async};
use crate::dtype::DType;
use crate::emit::{
    Access, Binding, Dialect, Element, Interface, KernelSource, Least, Operand, Param, ParamType, Scalar,
};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::lower::Arrangement;
use crate::shape::Shape;
use std::sync::Arc;

const TEXT: &str = include_str!("picture.wgsl");

/// The kernel's parameters, in their order: five whole numbers, then numbers.
const PARAMS: [&str; 35] = [
    "width",
    "height",
    "slot",
    "source_width",
    "source_height",
    "x_of_x",
    "x_of_y",
    "x_of_one",
    "y_of_x",
    "y_of_y",
    "y_of_one",
    "border_r",
    "border_g",
    "border_b",
    "border_a",
    "m00",
    "m01",
    "m02",
    "m03",
    "m04",
    "m10",
    "m11",
    "m12",
    "m13",
    "m14",
    "m20",
    "m21",
    "m22",
    "m23",
    "m24",
    "m30",
    "m31",
    "m32",
    "m33",
    "m34",
];

const WHOLE_NUMBERS: usize = 5;

const WORK_GROUP: [u32; 3] = [8, 8, 1];

/// Red, green, blue and alpha.
const MAX_CHANNELS: usize = 4;

/// Sets of pictures whose recordings are kept.
const MAX_SETS: usize = 8;

/// Pictures as an input of a network: one for each image of its batch, with the part of it that the network sees, and how
/// its colours become numbers. The port has one to four channels, which are its last axis (`n h w c`), or lie in planes behind the
/// batch as those of most ONNX files do (`n c h w`, or `c h w`); where either could be meant, it is the last axis. For a
/// port of one channel the colours say what that channel is: [`Colours::gray`] or [`Colours::first_channel`].
///
/// A pixel is interpolated between the four texels around its centre, as most networks were trained with; where a
/// picture shrinks to less than half, texels are skipped. Beyond the picture it is the border's colour.
///
/// For `encode` a picture is a `&wgpu::TextureView` of a two-dimensional texture with usage `TEXTURE_BINDING` in a
/// format of floats (`rgba8unorm`, `bgra8unorm`, their sRGB variants, `rgba16float` and others), for `enqueue` an
/// `&opencl3::memory::Image` of two dimensions whose channels are normalised or floats.
#[derive(Debug, Clone, Copy)]
pub struct Pictures<'p, V> {
    pub(super) pictures: &'p [(V, Framing)],
    pub(super) colours: Colours,
}

impl<'p, V> Pictures<'p, V> {
    /// These pictures.
    ///
    /// ```
    /// use diptych::{Colours, Fit, Framing, Pictures, wgpu};
    ///
    /// # fn frame(session: &mut diptych::Session, encoder: &mut wgpu::CommandEncoder, camera: &wgpu::TextureView,
    /// #     result: &wgpu::Buffer) -> diptych::Result<()> {
    /// let framing = Framing::new([1920, 1080], [257, 257])?.fit(Fit::Letterbox);
    /// let views = [(camera, framing)];
    /// let pictures = Pictures::new(&views, Colours::range(-1.0, 1.0));
    /// session.encode(encoder, &[("image", pictures)], &[("keypoints", result)])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(pictures: &'p [(V, Framing)], colours: Colours) -> Self {
        Pictures { pictures, colours }
    }
}

/// Pictures with the device's handles of them.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) pictures: Vec<(Image, Framing)>,
    pub(super) colours: Colours,
}

impl Shown {
    fn is(&self, other: &Shown) -> bool {
        let mut pairs = self.pictures.iter().zip(&other.pictures);
        self.colours == other.colours
            && self.pictures.len() == other.pictures.len()
            && pairs.all(|(one, two)| one.1 == two.1 && one.0.is(&two.0))
    }

    fn check(&self, port: &Port) -> Result<()> {
        let what = format!("pictures of {:?}", port.name);
        let places = Places::of(port).filter(|places| self.pictures.len() == places.pictures);
        let Some(Places { width, height, channels, .. }) = places else {
            let found = format!("{} pictures of 1 to 4 channels", self.pictures.len());
            return Err(Error::input(what, found, format!("dimensions {}", port.dims)));
        };
        if channels == 1 && !self.colours.have_one_channel() {
            let wanted = "`Colours::gray` for an input of one channel, or `Colours::first_channel` for a texture of one";
            return Err(Error::input(what, "colours of several channels", wanted));
        }
        for (image, framing) in &self.pictures {
            let target = framing.target().map(|extent| extent as usize);
            if target != [width, height] {
                let found = format!("a framing to {} x {} pixels", target[0], target[1]);
                return Err(Error::input(what, found, format!("{width} x {height}")));
            }
            let (found, wanted) = (image.extent(), framing.source().map(|extent| extent as usize));
            if found != wanted {
                let found = format!("a picture of {} x {} pixels", found[0], found[1]);
                let wanted = format!("the framing's {} x {}", wanted[0], wanted[1]);
                return Err(Error::input(what, found, wanted));
            }
        }
        Ok(())
    }
}

/// How the pictures of a port lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Places {
    pictures: usize,
    height: usize,
    width: usize,
    channels: usize,
    /// Whether each channel is a plane.
    planar: bool,
}

impl Places {
    fn of(port: &Port) -> Option<Self> {
        let Shape { n, h, w, c } = port.shape;
        if c <= MAX_CHANNELS {
            return Some(Places { pictures: n, height: h, width: w, channels: c, planar: false });
        }
        let (pictures, channels, height, width) = match *port.dims.extents() {
            [pictures, channels, height, width] => (pictures, channels, height, width),
            [channels, height, width] => (1, channels, height, width),
            _ => return None,
        };
        (channels <= MAX_CHANNELS).then_some(Places { pictures, height, width, channels, planar: true })
    }
}

/// The memory that the pictures of an input become, and the recordings that make them.
#[derive(Debug)]
pub(super) struct PictureInput {
    pub(super) buffer: Buffer,
    pub(super) arrangement: Arrangement,
    /// The latest last.
    kept: Vec<(Shown, Arc<Recording>)>,
}

impl PictureInput {
    /// For a port whose pixels are best so arranged.
    pub(super) fn new(device: &dyn Device, port: &Port, preferred: Arrangement) -> Result<Self> {
        let planar = Places::of(port).is_some_and(|places| places.planar);
        let arrangement = if planar { Arrangement::ROWS } else { preferred };
        let buffer = device.alloc(arrangement.bytes(&port.shape), Memory::Device)?;
        Ok(PictureInput { buffer, arrangement, kept: Vec::new() })
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }

    /// The recording that makes the input of these pictures.
    pub(super) async fn recording(
        &mut self,
        device: &dyn Device,
        port: &Port,
        shown: Shown,
    ) -> Result<Arc<Recording>> {
        if let Some(place) = self.kept.iter().position(|(kept, _)| kept.is(&shown)) {
            let known = self.kept.remove(place);
            let recording = Arc::clone(&known.1);
            self.kept.push(known);
            return Ok(recording);
        }
        shown.check(port)?;
        let missing = || Error::Internal("pictures that were checked do not fit".to_owned());
        let places = Places::of(port).ok_or_else(missing)?;
        let least = self.arrangement.bytes(&port.shape);
        let source = source(self.arrangement, places, least, device.info().limits.dialect);
        let pipeline = compile_planned_async(device, &source).await?;
        let dispatch = |(slot, (image, framing)): (usize, &(Image, Framing))| Dispatch {
            pipeline: pipeline.clone(),
            resources: vec![Resource::Image(image.clone()), Resource::from(&self.buffer)],
            params: params(framing, &shown.colours, slot),
            groups: [
                framing.target()[0].div_ceil(WORK_GROUP[0]),
                framing.target()[1].div_ceil(WORK_GROUP[1]),
                1,
            ],
        };
        let dispatches: Vec<Dispatch> = shown.pictures.iter().enumerate().map(dispatch).collect();
        let recording = Arc::new(device.record(&dispatches)?);
        if self.kept.len() >= MAX_SETS {
            self.kept.remove(0);
        }
        self.kept.push((shown, Arc::clone(&recording)));
        Ok(recording)
    }
}

fn params(framing: &Framing, colours: &Colours, slot: usize) -> Vec<Scalar> {
    let ([width, height], [source_width, source_height]) = (framing.target(), framing.source());
    let slot = u32::try_from(slot).unwrap_or(u32::MAX);
    let whole = [width, height, slot, source_width, source_height].map(Scalar::U32);
    let matrix = framing.matrix();
    let places = matrix.iter().flatten().map(|&number| number as f32);
    let rows = colours.rows();
    let numbers = places.chain(colours.border_colour()).chain(rows.into_iter().flatten());
    whole.into_iter().chain(numbers.map(Scalar::F32)).collect()
}

/// The kernel that writes pictures so arranged, to a buffer of `bytes` bytes, for a device of `dialect`.
fn source(arrangement: Arrangement, places: Places, bytes: u64, dialect: Dialect) -> KernelSource {
    let Places { channels, planar, .. } = places;
    // A view of wgpu's may be of a smaller level of its texture. An image of OpenCL has one, of the framing's size.
    let held = match dialect {
        Dialect::Wgsl => "textureDimensions(src)",
        Dialect::OpenClC => "vec2<u32>(params.source_width, params.source_height)",
    };
    // Lanes beyond the channels are zero.
    let [v0, v1, v2, v3] =
        std::array::from_fn(|lane| if lane < channels { format!("v{lane}") } else { "0.0".to_owned() });
    let (element, name, text, stored) = match (arrangement.layout, arrangement.dtype) {
        (Layout::C4, DType::F16) => {
            let text = format!(
                "dst[pixel] = vec2<u32>(pack2x16float(vec2<f32>({v0}, {v1})), pack2x16float(vec2<f32>({v2}, {v3})));"
            );
            (Element::Vec4(DType::F16), "c4_f16", text, "vec2<u32>")
        }
        (Layout::C4, _) => {
            let text = format!("dst[pixel] = vec4<f32>({v0}, {v1}, {v2}, {v3});");
            (Element::Vec4(DType::F32), "c4_f32", text, "vec4<f32>")
        }
        _ => {
            let line = |lane| match planar {
                true => {
                    let planes = format!("params.slot * {}u + {lane}u", channels - 1);
                    format!("dst[pixel + params.width * params.height * ({planes})] = v{lane};")
                }
                false => format!("dst[pixel * {channels}u + {lane}u] = v{lane};"),
            };
            let lines: Vec<String> = (0..channels).map(line).collect();
            let name = if planar { "planes_f32" } else { "rows_f32" };
            (Element::Scalar(DType::F32), name, lines.join("\n    "), "f32")
        }
    };
    let param = |(index, &name): (usize, &&'static str)| Param {
        name,
        ty: if index < WHOLE_NUMBERS { ParamType::U32 } else { ParamType::F32 },
    };
    KernelSource {
        label: format!("picture_{name}_c{channels}"),
        entry: "picture".to_owned(),
        dialect: Dialect::Wgsl,
        text: TEXT.replace("HELD", held).replace("ELEMENT", stored).replace("STORE", &text),
        interface: Interface {
            bindings: vec![
                Binding::new(Operand::Src, Element::Image2d(DType::F32), Access::Read),
                Binding { least: Least::Bytes(bytes), ..Binding::new(Operand::Dst, element, Access::Write) },
            ],
            params: PARAMS.iter().enumerate().map(param).collect(),
        },
        work_group: WORK_GROUP,
    }
}
