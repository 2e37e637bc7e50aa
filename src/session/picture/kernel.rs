//! The kernel that makes an input of a picture: one text from pieces for what the picture lies in and what it becomes.

use crate::dtype::DType;
use crate::emit::{
    Access, Binding, Dialect, Element, Interface, KernelSource, Least, Operand, Param, ParamType,
};
use crate::layout::Layout;
use crate::lower::Arrangement;
use crate::session::frame::{Components, FrameLayout, MIDDLE, PixelFormat, Tap};
use crate::session::pixel_layout::PixelLayout;

const TEXT: &str = include_str!("picture.wgsl");
const COLOURS: &str = include_str!("colours.wgsl");
const LUMA: &str = include_str!("luma.wgsl");
const CHROMA: &str = include_str!("chroma.wgsl");

/// The parameters of every picture: whole numbers, and numbers.
const WHOLE: [&str; 5] = ["width", "height", "slot", "source_width", "source_height"];
#[rustfmt::skip]
const NUMBERS: [&str; 30] = [
    "x_of_x", "x_of_y", "x_of_one", "y_of_x", "y_of_y", "y_of_one",
    "border_r", "border_g", "border_b", "border_a",
    "m00", "m01", "m02", "m03", "m04", "m10", "m11", "m12", "m13", "m14",
    "m20", "m21", "m22", "m23", "m24", "m30", "m31", "m32", "m33", "m34",
];

/// Whole numbers of each plane of a frame in buffers.
const PLANES: [[&str; 2]; 3] = [["offset0", "stride0"], ["offset1", "stride1"], ["offset2", "stride2"]];

/// Numbers of a frame with luma.
const CONVERSION: [&str; 12] =
    ["r_y", "r_cb", "r_cr", "r_one", "g_y", "g_cb", "g_cr", "g_one", "b_y", "b_cb", "b_cr", "b_one"];

pub(super) const WORK_GROUP: [u32; 3] = [8, 8, 1];

/// What a picture lies in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::session) enum Medium {
    /// A texture of red, green and blue.
    Texture,
    /// Textures of a frame's planes.
    Planes(FrameLayout),
    /// Buffers of a frame's planes.
    Buffers(FrameLayout),
}

impl Medium {
    pub(super) fn layout(&self) -> Option<&FrameLayout> {
        match self {
            Medium::Texture => None,
            Medium::Planes(layout) | Medium::Buffers(layout) => Some(layout),
        }
    }

    fn bindings(&self) -> usize {
        self.layout().map_or(1, |layout| layout.format().planes())
    }

    pub(super) fn has_luma(&self) -> bool {
        let of = |layout: &FrameLayout| layout.format().components();
        self.layout().is_some_and(|layout| !matches!(of(layout), Components::Colours(..)))
    }

    /// The parameters' names: whole numbers, and numbers.
    fn names(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let (mut whole, mut numbers) = (WHOLE.to_vec(), NUMBERS.to_vec());
        if let Medium::Buffers(layout) = self {
            whole.extend(PLANES.iter().take(layout.format().planes()).flatten());
        }
        if self.has_luma() {
            numbers.extend(CONVERSION);
        }
        (whole, numbers)
    }
}

/// The kernel that writes pictures of such media so arranged, to a buffer of `bytes` bytes, for a device of `dialect`.
pub(super) fn source(
    medium: &Medium,
    arrangement: Arrangement,
    places: PixelLayout,
    bytes: u64,
    dialect: Dialect,
) -> KernelSource {
    let (element, stored, store, written) = stored(arrangement, places);
    let (read, functions, sample) = sampled(medium, dialect);
    let (whole, numbers) = medium.names();
    let param = |ty| move |&name: &&'static str| Param { name, ty };
    let params: Vec<Param> =
        whole.iter().map(param(ParamType::U32)).chain(numbers.iter().map(param(ParamType::F32))).collect();
    let declared = params.iter().map(|param| match param.ty {
        ParamType::U32 => format!("{}: u32,", param.name),
        _ => format!("{}: f32,", param.name),
    });
    let declared: Vec<String> = declared.collect();
    let (operand, ty) = match medium {
        Medium::Buffers(_) => (Element::Scalar(DType::U32), "var<storage, read> arg: array<u32>"),
        _ => (Element::Image2d(DType::F32), "var arg: texture_2d<f32>"),
    };
    let count = medium.bindings();
    let mut texts: Vec<String> = (0..count)
        .map(|plane| {
            let variable = ty.replace("arg", &format!("arg{plane}"));
            format!("@group(0) @binding({plane}) {variable};")
        })
        .collect();
    texts.push(format!("@group(0) @binding({count}) var<storage, read_write> dst: array<{stored}>;"));
    texts.push(format!("@group(0) @binding({}) var<uniform> params: Params;", count + 1));
    let mut bindings: Vec<Binding> =
        (0..count).map(|plane| Binding::new(Operand::Arg(plane as u8), operand, Access::Read)).collect();
    bindings
        .push(Binding { least: Least::Bytes(bytes), ..Binding::new(Operand::Dst, element, Access::Write) });
    KernelSource {
        label: format!("picture_{read}_{written}_c{}", places.channels),
        entry: "picture".to_owned(),
        dialect: Dialect::Wgsl,
        text: TEXT
            .replace("PARAMS", &declared.join("\n    "))
            .replace("BINDINGS", &texts.join("\n"))
            .replace("FUNCTIONS", &functions)
            .replace("SAMPLE", sample.trim_end())
            .replace("STORE", &store),
        interface: Interface { bindings, params },
        work_group: WORK_GROUP,
    }
}

/// How pixels are written: the buffer's elements, their type in the text, the statements, and a name for it.
fn stored(arrangement: Arrangement, places: PixelLayout) -> (Element, &'static str, String, &'static str) {
    let PixelLayout { channels, planar, .. } = places;
    // Lanes beyond the channels are zero.
    let [v0, v1, v2, v3] =
        std::array::from_fn(|lane| if lane < channels { format!("v{lane}") } else { "0.0".to_owned() });
    match (arrangement.layout, arrangement.dtype) {
        (Layout::C4, DType::F16) => {
            let text = format!(
                "dst[pixel] = vec2<u32>(pack2x16float(vec2<f32>({v0}, {v1})), pack2x16float(vec2<f32>({v2}, {v3})));"
            );
            (Element::Vec4(DType::F16), "vec2<u32>", text, "c4_f16")
        }
        (Layout::C4, _) => {
            let text = format!("dst[pixel] = vec4<f32>({v0}, {v1}, {v2}, {v3});");
            (Element::Vec4(DType::F32), "vec4<f32>", text, "c4_f32")
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
            (Element::Scalar(DType::F32), "f32", lines.join("\n    "), name)
        }
    }
}

/// How a picture is read: a name for it, functions that read a sample, and statements that compute the colour `p`.
fn sampled(medium: &Medium, dialect: Dialect) -> (String, String, String) {
    let Some(layout) = medium.layout() else {
        let text = function("colour_at", "vec4<f32>", &texel(0, "x", "y", dialect));
        return ("texture".to_owned(), text, COLOURS.to_owned());
    };
    let (format, (_, _, siting)) = (layout.format(), layout.colour());
    let textures = matches!(medium, Medium::Planes(_));
    let held = if textures { "textures" } else { "buffers" };
    let name = format!("{}_{held}", format.to_string().to_lowercase());
    let tap = |tap: Tap| byte(tap);
    match format.components() {
        Components::Colours([r, g, b], alpha) => {
            let alpha = alpha.map_or("1.0".to_owned(), tap);
            let colour = format!("vec4<f32>({}, {}, {}, {alpha})", tap(r), tap(g), tap(b));
            let text = byte_functions(format) + &function("colour_at", "vec4<f32>", &colour);
            (name, text, COLOURS.to_owned())
        }
        Components::Luma(luma) => {
            let luma = if textures { texel(0, "x", "y", dialect) + ".x" } else { tap(luma) };
            let bytes = if textures { String::new() } else { byte_functions(format) };
            let chroma = format!("let chroma: vec2<f32> = vec2<f32>({MIDDLE:?});");
            (name, bytes + &function("luma_at", "f32", &luma), LUMA.replace("CHROMA", &chroma))
        }
        Components::Chroma { luma, cb, cr, rows } => {
            let (bytes, luma, chroma) = match textures {
                true => {
                    let [luma, chroma] = texels(format, dialect);
                    (String::new(), luma, chroma)
                }
                false => {
                    let chroma = format!("vec2<f32>({}, {})", tap(cb), tap(cr));
                    (byte_functions(format), tap(luma), chroma)
                }
            };
            let [shift_x, shift_y] = siting.shift();
            let (height, t) = match rows {
                2 => ("(params.source_height + 1u) / 2u", format!("v * 0.5 - {shift_y:?}")),
                _ => ("params.source_height", "v - 0.5".to_owned()),
            };
            let chroma_text = CHROMA
                .replace("CHROMA_HEIGHT", height)
                .replace("CHROMA_T", &t)
                .replace("SHIFT_X", &format!("{shift_x:?}"));
            let sample = LUMA.replace("CHROMA", chroma_text.trim_end());
            let functions =
                bytes + &function("luma_at", "f32", &luma) + &function("chroma_at", "vec2<f32>", &chroma);
            (name, functions, sample)
        }
    }
}

/// A function of a sample's column and row.
fn function(name: &str, result: &str, value: &str) -> String {
    format!("fn {name}(x: u32, y: u32) -> {result} {{\n    return {value};\n}}\n\n")
}

/// A texel. A view of wgpu's may be of a smaller level of its texture; an image of OpenCL has one level.
fn texel(plane: usize, x: &str, y: &str, dialect: Dialect) -> String {
    let place = format!("vec2<u32>({x}, {y})");
    let place = match dialect {
        Dialect::Wgsl => format!("min({place}, textureDimensions(arg{plane}) - vec2<u32>(1u))"),
        Dialect::OpenClC => place,
    };
    format!("textureLoad(arg{plane}, {place}, 0)")
}

/// Luma, and Cb and Cr, of a format's textures.
fn texels(format: PixelFormat, dialect: Dialect) -> [String; 2] {
    let at = |plane| texel(plane, "x", "y", dialect);
    let pair = |even: &str, odd: &str, chroma: &str| {
        let luma = texel(0, "x / 2u", "y", dialect);
        [format!("select({luma}.{even}, {luma}.{odd}, (x & 1u) == 1u)"), at(0) + chroma]
    };
    match format {
        PixelFormat::Yuyv => pair("x", "z", ".yw"),
        PixelFormat::Uyvy => pair("y", "w", ".xz"),
        PixelFormat::I420 => [at(0) + ".x", format!("vec2<f32>({}.x, {}.x)", at(1), at(2))],
        PixelFormat::Nv21 => [at(0) + ".x", at(1) + ".yx"],
        _ => [at(0) + ".x", at(1) + ".xy"],
    }
}

/// A component of a sample in a buffer.
fn byte(Tap { plane, lane, step }: Tap) -> String {
    let place = if step == 1 { "x".to_owned() } else { format!("x * {step}u") };
    let place = if lane == 0 { place } else { format!("{place} + {lane}u") };
    format!("byte{plane}({place}, y)")
}

/// Functions of a byte's place in its row and of the row, for each plane.
fn byte_functions(format: PixelFormat) -> String {
    let of = |plane: usize| {
        format!(
            "fn byte{plane}(x: u32, y: u32) -> f32 {{\n    \
             let at: u32 = params.offset{plane} + y * params.stride{plane} + x;\n    \
             return f32((arg{plane}[at / 4u] >> ((at % 4u) * 8u)) & 255u) * (1.0 / 255.0);\n}}\n\n"
        )
    };
    (0..format.planes()).map(of).collect()
}
