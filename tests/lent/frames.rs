//! Frames of cameras as inputs, in bytes, buffers and textures, held against the same computation in f64.
//!
//! The bound follows from f32: a place in the frame is off by the rounding of the framing's map, a sample that is interpolated
//! there by that (neighbours differ by at most 1) and by its own roundings, a colour by the factors of luma and chroma times
//! those, and a number of the network by the factors of the colours times that.

use crate::app::{App, ClApp, WgpuApp, apps};
use crate::pictures::{Read, network};
use diptych::opencl3::memory::{
    CL_BGRA, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, CL_R, CL_RGBA, CL_UNORM_INT8, Image,
};
use diptych::opencl3::types::{CL_BLOCKING, cl_image_desc, cl_image_format};
use diptych::{
    Backend, ChromaSiting, ColourMatrix, ColourRange, Colours, Context, Fit, Frame, FrameLayout, FramePlane,
    Frames, Framing, Function, Graph, Pictures, PixelFormat, Result, Session, SessionOptions, Shape, wgpu,
};
use std::ptr;

/// Half of the distance between 1 and the next f32.
const UNIT: f64 = 1.0 / (1 << 24) as f64;

/// What a frame is given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Bytes,
    /// One buffer.
    Whole,
    /// A buffer for each plane.
    Apart,
    Textures,
}

/// Frames of one layout, and how a network sees them.
pub(crate) struct Shown<'a> {
    layout: FrameLayout,
    /// Whole words of each frame's bytes.
    frames: &'a [Vec<u8>],
    framings: &'a [Framing],
    colours: Colours,
}

impl Shown<'_> {
    /// What a plane of a frame is in its memory, and the rest of a word.
    fn plane(&self, frame: &[u8], plane: usize) -> Vec<u8> {
        let own = self.layout.plane(plane).expect("a plane");
        let end = self.layout.plane(plane + 1).map_or(frame.len(), |next| next.offset as usize);
        let mut bytes = frame[own.offset as usize..end].to_vec();
        bytes.resize(bytes.len().next_multiple_of(4), 0xa5);
        bytes
    }

    fn planes(&self) -> usize {
        self.layout.format().planes()
    }

    /// The layout of planes that have memory of their own.
    fn apart(&self) -> FrameLayout {
        let first = |plane| FramePlane::new(0, self.layout.plane(plane).expect("a plane").stride);
        self.layout.planes(&(0..self.planes()).map(first).collect::<Vec<_>>()).expect("a layout")
    }

    /// Columns, rows and channels of a plane's texels, and its bytes without padding.
    fn texels(&self, frame: &[u8], plane: usize) -> ([u32; 2], u32, Vec<u8>) {
        let [width, height] = self.layout.size();
        let half = [width.div_ceil(2), height.div_ceil(2)];
        let (size, channels) = match (self.layout.format(), plane) {
            (PixelFormat::Yuyv | PixelFormat::Uyvy, _) => ([half[0], height], 4),
            (PixelFormat::Nv12 | PixelFormat::Nv21, 1) => (half, 2),
            (PixelFormat::I420, 1 | 2) => (half, 1),
            _ => ([width, height], 1),
        };
        let stride = self.layout.plane(plane).expect("a plane").stride as usize;
        let rows = self.plane(frame, plane);
        let row = (size[0] * channels) as usize;
        (
            size,
            channels,
            rows.chunks(stride).take(size[1] as usize).flat_map(|line| &line[..row]).copied().collect(),
        )
    }
}

/// The session's output for bytes.
fn on_bytes(session: &mut Session, shown: &Shown<'_>, way: Way) -> Result<Vec<f32>> {
    let planes = contents(shown, way);
    let planes: Vec<Vec<&[u8]>> = planes.iter().map(|all| all.iter().map(Vec::as_slice).collect()).collect();
    let frames = framed(shown, &planes, way);
    let flight = session.submit(&[("x", Frames::new(&frames, shown.colours))])?;
    Ok(flight.wait()?.get(0)?.to_vec())
}

/// A frame of a memory, or of a memory for each plane.
fn framed<P: Copy>(shown: &Shown<'_>, memories: &[Vec<P>], way: Way) -> Vec<(Frame<P>, Framing)> {
    let of = |(planes, framing): (&Vec<P>, &Framing)| {
        let frame = match way {
            Way::Whole | Way::Bytes => Frame::new(planes[0], shown.layout),
            _ => Frame::of_planes(planes, shown.apart()).expect("a frame"),
        };
        (frame, *framing)
    };
    memories.iter().zip(shown.framings).map(of).collect()
}

/// The contents of each frame's buffers.
fn contents(shown: &Shown<'_>, way: Way) -> Vec<Vec<Vec<u8>>> {
    let of = |frame: &Vec<u8>| match way {
        Way::Whole | Way::Bytes => vec![frame.clone()],
        _ => (0..shown.planes()).map(|plane| shown.plane(frame, plane)).collect(),
    };
    shown.frames.iter().map(of).collect()
}

/// In place of a number of channels: four, of which the first is blue.
const FROM_BLUE: u32 = 5;

impl WgpuApp {
    fn plane(&self, (size, channels, bytes): ([u32; 2], u32, Vec<u8>)) -> wgpu::TextureView {
        let format = match channels {
            1 => wgpu::TextureFormat::R8Unorm,
            2 => wgpu::TextureFormat::Rg8Unorm,
            FROM_BLUE => wgpu::TextureFormat::Bgra8Unorm,
            _ => wgpu::TextureFormat::Rgba8Unorm,
        };
        let extent = wgpu::Extent3d { width: size[0], height: size[1], depth_or_array_layers: 1 };
        let texture = self.device.create_texture(&wgpu::TextureDescriptor {
            label: None,
            size: extent,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
            view_formats: &[],
        });
        let rows = wgpu::TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(channels.min(4) * size[0]),
            rows_per_image: None,
        };
        self.queue.write_texture(texture.as_image_copy(), &bytes, rows, extent);
        texture.create_view(&wgpu::TextureViewDescriptor::default())
    }

    pub(crate) fn show_frames(&self, session: &mut Session, shown: &Shown<'_>, way: Way) -> Result<Vec<f32>> {
        use wgpu::BufferUsages as Usage;
        let bytes = 4 * session.outputs()[0].shape.elements();
        let result = self.buffer(Usage::STORAGE | Usage::COPY_SRC, &vec![0; bytes]);
        let mut encoder = self.encoder();
        let outputs = [("y", &result)];
        if way == Way::Textures {
            let textures = |frame: &Vec<u8>| -> Vec<wgpu::TextureView> {
                (0..shown.planes()).map(|plane| self.plane(shown.texels(frame, plane))).collect()
            };
            let textures: Vec<Vec<wgpu::TextureView>> = shown.frames.iter().map(textures).collect();
            let views: Vec<Vec<&wgpu::TextureView>> =
                textures.iter().map(|all| all.iter().collect()).collect();
            let frames = framed(shown, &views, way);
            session.encode(&mut encoder, &[("x", Frames::new(&frames, shown.colours))], &outputs)?;
        } else {
            let buffers: Vec<Vec<wgpu::Buffer>> = contents(shown, way)
                .iter()
                .map(|planes| planes.iter().map(|bytes| self.buffer(Usage::STORAGE, bytes)).collect())
                .collect();
            let lent: Vec<Vec<&wgpu::Buffer>> = buffers.iter().map(|all| all.iter().collect()).collect();
            let frames = framed(shown, &lent, way);
            session.encode(&mut encoder, &[("x", Frames::new(&frames, shown.colours))], &outputs)?;
        }
        Ok(bytemuck::pod_collect_to_vec(&self.finish(encoder, &[&result])[0]))
    }
}

impl ClApp {
    fn plane(&self, (size, channels, mut bytes): ([u32; 2], u32, Vec<u8>)) -> Image {
        // PoCL has no images of two channels.
        if channels == 2 {
            bytes = bytes.chunks(2).flat_map(|pair| [pair[0], pair[1], 0xa5, 0xa5]).collect();
        }
        let order = match channels {
            1 => CL_R,
            FROM_BLUE => CL_BGRA,
            _ => CL_RGBA,
        };
        let format = cl_image_format { image_channel_order: order, image_channel_data_type: CL_UNORM_INT8 };
        let [width, height] = size.map(|extent| extent as usize);
        let shape = cl_image_desc {
            image_type: CL_MEM_OBJECT_IMAGE2D,
            image_width: width,
            image_height: height,
            image_depth: 0,
            image_array_size: 0,
            image_row_pitch: 0,
            image_slice_pitch: 0,
            num_mip_levels: 0,
            num_samples: 0,
            buffer: ptr::null_mut(),
        };
        // SAFETY: no host memory is handed over.
        let image =
            unsafe { Image::create(&self.context, CL_MEM_READ_ONLY, &format, &shape, ptr::null_mut()) };
        let mut image = image.expect("an image");
        let (origin, region, from) = ([0, 0, 0], [width, height, 1], bytes.as_mut_ptr().cast());
        // SAFETY: the write waits, and the bytes are those of the region.
        let written = unsafe {
            let (origin, region) = (origin.as_ptr(), region.as_ptr());
            self.queue.enqueue_write_image(&mut image, CL_BLOCKING, origin, region, 0, 0, from, &[])
        };
        written.expect("a write");
        image
    }

    pub(crate) fn show_frames(&self, session: &mut Session, shown: &Shown<'_>, way: Way) -> Result<Vec<f32>> {
        let bytes = 4 * session.outputs()[0].shape.elements();
        let result = self.buffer(CL_MEM_READ_WRITE, &vec![0; bytes]);
        let outputs = [("y", &result)];
        if way == Way::Textures {
            let images = |frame: &Vec<u8>| -> Vec<Image> {
                (0..shown.planes()).map(|plane| self.plane(shown.texels(frame, plane))).collect()
            };
            let images: Vec<Vec<Image>> = shown.frames.iter().map(images).collect();
            let lent: Vec<Vec<&Image>> = images.iter().map(|all| all.iter().collect()).collect();
            let frames = framed(shown, &lent, way);
            session.enqueue(&[("x", Frames::new(&frames, shown.colours))], &outputs)?;
        } else {
            let buffers: Vec<Vec<_>> = contents(shown, way)
                .iter()
                .map(|planes| planes.iter().map(|bytes| self.buffer(CL_MEM_READ_ONLY, bytes)).collect())
                .collect();
            let lent: Vec<Vec<_>> = buffers.iter().map(|all| all.iter().collect()).collect();
            let frames = framed(shown, &lent, way);
            session.enqueue(&[("x", Frames::new(&frames, shown.colours))], &outputs)?;
        }
        Ok(bytemuck::pod_collect_to_vec(&self.read(&result)))
    }
}

/// A sum, and how far f32 may be off.
#[derive(Debug, Clone, Copy)]
struct Near {
    value: f64,
    off: f64,
}

impl Near {
    /// `sum factor_i value_i + one` of rounded factors.
    fn sum(terms: &[(f64, Near)], one: f64) -> Near {
        let value = terms.iter().map(|(factor, near)| factor * near.value).sum::<f64>() + one;
        let magnitude =
            terms.iter().map(|(factor, near)| (factor * near.value).abs()).sum::<f64>() + one.abs();
        let carried: f64 = terms.iter().map(|(factor, near)| factor.abs() * near.off).sum();
        // A factor's rounding, a product's, and one for each sum.
        Near { value, off: carried + (terms.len() as f64 + 2.0) * UNIT * magnitude }
    }
}

/// `value` between its neighbours at a place that is off by `off` along each axis.
fn between(at: impl Fn(usize, usize) -> f64, [s, t]: [f64; 2], [width, height]: [u32; 2], off: f64) -> Near {
    let [right, bottom] = [width - 1, height - 1].map(f64::from);
    let (s, t) = (s.clamp(0.0, right), t.clamp(0.0, bottom));
    let (x, y) = (s.floor() as usize, t.floor() as usize);
    let (x1, y1) = ((x + 1).min(width as usize - 1), (y + 1).min(height as usize - 1));
    let (fx, fy) = (s - x as f64, t - y as f64);
    let above = at(x, y) * (1.0 - fx) + at(x1, y) * fx;
    let below = at(x, y1) * (1.0 - fx) + at(x1, y1) * fx;
    // Two axes, of slope 1; a byte's quotient (2, and 2 more by a texture's unit) and three roundings in each of two
    // interpolations, of numbers up to 2.
    Near { value: above * (1.0 - fy) + below * fy, off: 2.0 * off + 16.0 * UNIT }
}

/// What the oracle computes; each is a mistake but the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Right,
    OtherMatrix,
    OtherRange,
    OtherSiting,
    SwappedChroma,
    NextPlaneRow,
}

/// The colour of a frame at a continuous place that is off by `off`.
fn colour(layout: &FrameLayout, bytes: &[u8], [u, v]: [f64; 2], off: f64, kind: Kind) -> [Near; 4] {
    use PixelFormat::{Bgr8, Bgra8, Gray8, I420, Nv12, Nv21, Rgb8, Rgba8, Uyvy, Yuyv};
    let (size, format) = (layout.size(), layout.format());
    let byte = |plane: usize, row: usize, at: usize| {
        let FramePlane { offset, stride } = layout.plane(plane).expect("a plane");
        let later = usize::from(kind == Kind::NextPlaneRow && plane > 0);
        let place = offset as usize + row * stride as usize + at + later;
        f64::from(bytes[place.min(bytes.len() - 1)]) / 255.0
    };
    let one = Near { value: 1.0, off: 0.0 };
    let whole = |plane, lane: usize, step: usize| {
        between(|x, y| byte(plane, y, x * step + lane), [u - 0.5, v - 0.5], size, off)
    };
    let colours = |[r, g, b]: [usize; 3], step| [r, g, b].map(|lane| whole(0, lane, step));
    let rgb = match format {
        Rgb8 => colours([0, 1, 2], 3),
        Bgr8 => colours([2, 1, 0], 3),
        Rgba8 => colours([0, 1, 2], 4),
        Bgra8 => colours([2, 1, 0], 4),
        _ => {
            let (mut matrix, mut range, mut siting) = layout.colour();
            match kind {
                Kind::OtherMatrix if matrix == ColourMatrix::Bt709 => matrix = ColourMatrix::Bt601,
                Kind::OtherMatrix => matrix = ColourMatrix::Bt709,
                Kind::OtherRange if range == ColourRange::Full => range = ColourRange::Video,
                Kind::OtherRange => range = ColourRange::Full,
                Kind::OtherSiting if siting == ChromaSiting::Left => siting = ChromaSiting::Centre,
                Kind::OtherSiting => siting = ChromaSiting::Left,
                _ => {}
            }
            // The continuous coordinate of the first chroma sample's centre, along x and y.
            let first = match siting {
                ChromaSiting::Left => [0.5, 1.0],
                ChromaSiting::TopLeft => [0.5, 0.5],
                _ => [1.0, 1.0],
            };
            let quarter = matches!(format, Nv12 | Nv21 | I420);
            let extent = [size[0].div_ceil(2), if quarter { size[1].div_ceil(2) } else { size[1] }];
            let place = [(u - first[0]) / 2.0, if quarter { (v - first[1]) / 2.0 } else { v - 0.5 }];
            let half = |plane, lane: usize, step: usize| {
                between(|x, y| byte(plane, y, x * step + lane), place, extent, off)
            };
            let grey = Near { value: 128.0 / 255.0, off: UNIT };
            let (y, cb, cr) = match format {
                Nv12 => (whole(0, 0, 1), half(1, 0, 2), half(1, 1, 2)),
                Nv21 => (whole(0, 0, 1), half(1, 1, 2), half(1, 0, 2)),
                I420 => (whole(0, 0, 1), half(1, 0, 1), half(2, 0, 1)),
                Yuyv => (whole(0, 0, 2), half(0, 1, 4), half(0, 3, 4)),
                Uyvy => (whole(0, 1, 2), half(0, 0, 4), half(0, 2, 4)),
                Gray8 => (whole(0, 0, 1), grey, grey),
                other => panic!("{other} has no oracle"),
            };
            let (cb, cr) = if kind == Kind::SwappedChroma { (cr, cb) } else { (cb, cr) };
            // ITU-R BT.601 and its successors: y' = (255 y - 16) / 219, c' = (255 c - 128) / 224.
            let [kr, kb] = matrix.weights();
            let (black, white, span) = match range {
                ColourRange::Full => (0.0, 255.0, 255.0),
                _ => (16.0, 235.0, 224.0),
            };
            let of_y = 255.0 / (white - black);
            let zero = -black / (white - black);
            let (of_c, middle) = (255.0 / span, -128.0 / span);
            let [r, b] = [2.0 * (1.0 - kr), 2.0 * (1.0 - kb)];
            let green = [-kb * b / (1.0 - kr - kb), -kr * r / (1.0 - kr - kb)];
            let row = |by_cb: f64, by_cr: f64| {
                let added = zero + (by_cb + by_cr) * middle;
                let sum = Near::sum(&[(of_y, y), (by_cb * of_c, cb), (by_cr * of_c, cr)], added);
                Near { value: sum.value.clamp(0.0, 1.0), ..sum }
            };
            [row(0.0, r), row(green[0], green[1]), row(b, 0.0)]
        }
    };
    let alpha = if matches!(format, Rgba8 | Bgra8) { whole(0, 3, 4) } else { one };
    [rgb[0], rgb[1], rgb[2], alpha]
}

const BORDER: [f32; 4] = [0.25, 0.5, 0.75, 1.0];

/// What a pixel of the network's input is; nothing where rounding decides whether it lies in the frame.
fn pixel(shown: &Shown<'_>, slot: usize, [x, y]: [usize; 2], kind: Kind) -> Option<[Near; 4]> {
    let framing = &shown.framings[slot];
    let [width, height] = shown.layout.size().map(f64::from);
    let place = [x as f64 + 0.5, y as f64 + 0.5];
    let [u, v] = framing.to_source(place);
    let off = framing
        .matrix()
        .map(|[a, b, c]| ((a * place[0]).abs() + (b * place[1]).abs() + c.abs()) * 5.0 * UNIT);
    let off = off[0].max(off[1]);
    let edge =
        [u, v, u - width, v - height].into_iter().fold(f64::INFINITY, |least, one| least.min(one.abs()));
    if edge < 2.0 * off + 1e-9 {
        return None;
    }
    let inside = u > 0.0 && v > 0.0 && u < width && v < height;
    let colour = match inside {
        true => colour(&shown.layout, &shown.frames[slot], [u, v], off, kind),
        false => BORDER.map(|value| Near { value: f64::from(value), off: 0.0 }),
    };
    Some(shown.colours.rows().map(|row| {
        let terms: Vec<(f64, Near)> =
            row.iter().zip(colour).map(|(factor, near)| (f64::from(*factor), near)).collect();
        Near::sum(&terms, f64::from(row[4]))
    }))
}

/// The pixels that are further off than f32 allows, and how many were compared.
fn wrong(found: &[f32], shape: Shape, shown: &Shown<'_>, kind: Kind) -> (Vec<String>, usize) {
    let (mut failures, mut compared) = (Vec::new(), 0);
    for slot in 0..shape.n {
        for (y, x) in (0..shape.h).flat_map(|y| (0..shape.w).map(move |x| (y, x))) {
            let Some(wanted) = pixel(shown, slot, [x, y], kind) else { continue };
            for (channel, wanted) in wanted.iter().take(shape.c).enumerate() {
                compared += 1;
                let found = f64::from(found[((slot * shape.h + y) * shape.w + x) * shape.c + channel]);
                let near = (found - wanted.value).abs() <= wanted.off;
                if !near {
                    failures
                        .push(format!("frame {slot} at ({x}, {y}), {channel}: {found}, wanted {wanted:?}"));
                }
            }
        }
    }
    (failures, compared)
}

fn bytes(layout: &FrameLayout, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..layout.bytes().next_multiple_of(4)).map(next).collect()
}

fn framings(source: [u32; 2], target: [u32; 2]) -> Vec<[Framing; 2]> {
    let all = Framing::new(source, target).expect("a framing");
    let [width, height] = source.map(f64::from);
    // Pixel for pixel from an odd one on, and between pixels.
    let odd = all.crop([1.0 + 4.0, 1.0 + 3.0], [8.0, 6.0]).expect("a crop");
    let turned =
        all.crop([width * 0.4, height * 0.45], [7.0, 4.5]).expect("a crop").rotate(0.6).expect("an angle");
    vec![[all, all.fit(Fit::Letterbox)], [odd, turned.fit(Fit::Letterbox)], [all.fit(Fit::Fill), turned]]
}

/// Layouts of every format, with odd extents, padding, and matrices, ranges and sitings.
fn layouts() -> Vec<FrameLayout> {
    use ChromaSiting::{Centre, Left, TopLeft};
    use ColourMatrix::{Bt601, Bt709, Bt2020};
    use ColourRange::{Full, Video};
    use PixelFormat::{Bgr8, Bgra8, Gray8, I420, Nv12, Nv21, Rgb8, Rgba8, Uyvy, Yuyv};
    let mut all = Vec::new();
    for (format, size, padding, colour) in [
        (Nv12, [13, 9], 0, (Bt601, Video, Centre)),
        (Nv12, [13, 9], 0, (Bt601, Video, Left)),
        (Nv12, [16, 10], 0, (Bt709, Video, Left)),
        (Nv12, [13, 8], 6, (Bt709, Full, Centre)),
        (Nv12, [12, 9], 5, (Bt2020, Video, TopLeft)),
        (Nv12, [1, 1], 0, (Bt601, Full, Left)),
        (Nv21, [12, 9], 3, (Bt601, Full, Centre)),
        (I420, [13, 9], 0, (Bt601, Video, Left)),
        (I420, [14, 10], 7, (Bt709, Full, Centre)),
        (Yuyv, [13, 9], 0, (Bt601, Video, Centre)),
        (Yuyv, [14, 9], 5, (Bt709, Video, Left)),
        (Yuyv, [14, 9], 0, (Bt709, Full, Centre)),
        (Uyvy, [12, 7], 4, (Bt601, Full, Left)),
        (Gray8, [13, 9], 2, (Bt601, Video, Centre)),
        (Rgb8, [13, 9], 1, (Bt601, Video, Centre)),
        (Bgr8, [12, 9], 0, (Bt601, Video, Centre)),
        (Rgba8, [13, 9], 0, (Bt601, Video, Centre)),
        (Bgra8, [13, 9], 8, (Bt601, Video, Centre)),
    ] {
        let (matrix, range, siting) = colour;
        let layout =
            FrameLayout::new(format, size).expect("a layout").matrix(matrix).range(range).siting(siting);
        // A row of chroma has a byte more than one of luma, where the width is odd.
        let row =
            layout.plane(0).expect("a plane").stride.max(layout.plane(1).map_or(0, |plane| plane.stride));
        let layout = if padding > 0 { layout.stride(row + padding).expect("a stride") } else { layout };
        all.push(layout);
    }
    all
}

fn ways(layout: &FrameLayout) -> Vec<Way> {
    use PixelFormat::{Bgr8, Bgra8, Rgb8, Rgba8};
    let mut ways = vec![Way::Bytes, Way::Whole];
    if layout.format().planes() > 1 {
        ways.push(Way::Apart);
    }
    if !matches!(layout.format(), Rgb8 | Bgr8 | Rgba8 | Bgra8) {
        ways.push(Way::Textures);
    }
    ways
}

/// Compares what `run` gives for every layout and way with the oracle.
fn check(
    name: &str,
    context: &Context,
    mut run: impl FnMut(&mut Session, &Shown<'_>, Way) -> Option<Result<Vec<f32>>>,
) {
    let target = [8, 6];
    let mut failures = Vec::new();
    for (channels, read) in [(3, Read::Rows), (3, Read::Maps), (3, Read::Planes), (1, Read::Rows)] {
        let shape = Shape::nhwc(2, 6, 8, channels);
        let mut session =
            Session::new(context, &network(shape, read), SessionOptions::default()).expect("a session");
        let colours = Colours::normalized([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]).expect("colours");
        let colours = if channels == 1 { colours.gray() } else { colours.bgr() }.border(BORDER);
        for (index, layout) in layouts().into_iter().enumerate() {
            // The other networks differ in what is written alone.
            if read != Read::Rows && index > 1 || channels == 1 && index % 4 != 0 {
                continue;
            }
            let frames = [bytes(&layout, 1 + index as u32), bytes(&layout, 90 + index as u32)];
            for framings in framings(layout.size(), target) {
                let shown = Shown { layout, frames: &frames, framings: &framings, colours };
                for way in ways(&layout) {
                    let Some(found) = run(&mut session, &shown, way) else { continue };
                    let found = found.unwrap_or_else(|error| panic!("{name} {way:?} {layout:?}: {error}"));
                    let (wrong, compared) = wrong(&found, shape, &shown, Kind::Right);
                    assert!(
                        compared > channels * shape.h,
                        "{name} {layout:?}: {compared} numbers were compared"
                    );
                    failures.extend(wrong.first().map(|first| {
                        format!("{name} {way:?} {read:?} {layout:?}: {} wrong, {first}", wrong.len())
                    }));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} cases:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn frames_on_devices_are_what_the_oracle_says() {
    for app in apps() {
        check(app.name(), app.context(), |session, shown, way| {
            Some(match way {
                Way::Bytes => on_bytes(session, shown, Way::Bytes),
                way => app.frames(session, shown, way),
            })
        });
    }
}

/// A network that begins on the CPU: both the CPU and the device read the input, which the CPU makes.
#[test]
fn frames_of_a_network_that_begins_on_the_cpu_are_what_the_oracle_says() {
    let shape = Shape::nhwc(1, 6, 8, 3);
    let mut graph = Graph::new();
    let x = graph.input("x", shape).expect("an input");
    let y = graph.elementwise("first", Function::Maximum, &[x.into(), x.into()]).expect("itself");
    let y = graph.elementwise("y", Function::Maximum, &[x.into(), y.into()]).expect("itself");
    graph.output(y).expect("an output");
    let options = SessionOptions { on_cpu: ["first".to_owned()].into(), ..Default::default() };
    for app in apps() {
        let mut session = Session::new(app.context(), &graph, options.clone()).expect("a session");
        for (index, layout) in layouts().into_iter().take(2).enumerate() {
            let frames = [bytes(&layout, 7 + index as u32)];
            let framings = [framings(layout.size(), [8, 6])[1][0]];
            let shown =
                Shown { layout, frames: &frames, framings: &framings, colours: Colours::range(-1.0, 1.0) };
            for way in [Way::Bytes, Way::Apart] {
                let found = on_bytes(&mut session, &shown, way).expect("a run");
                let (wrong, compared) = wrong(&found, shape, &shown, Kind::Right);
                assert!(wrong.is_empty() && compared > 18, "{} {way:?}: {wrong:?}", app.name());
            }
        }
    }
}

#[test]
fn frames_on_the_cpu_are_what_the_oracle_says() {
    let context = Context::new(Backend::Cpu).expect("the CPU");
    check("CPU", &context, |session, shown, way| match way {
        Way::Bytes => Some(on_bytes(session, shown, Way::Bytes)),
        Way::Apart => Some(on_bytes(session, shown, Way::Apart)),
        Way::Whole | Way::Textures => None,
    });
}

/// The bound is tight enough to tell mistakes: each of these, in the oracle, is far off.
#[test]
fn mistakes_are_told_apart() {
    let context = Context::new(Backend::Cpu).expect("the CPU");
    let shape = Shape::nhwc(2, 6, 8, 3);
    let mut session =
        Session::new(&context, &network(shape, Read::Rows), SessionOptions::default()).expect("a session");
    for format in [PixelFormat::Nv12, PixelFormat::I420, PixelFormat::Yuyv] {
        let layout = FrameLayout::new(format, [13, 9]).expect("a layout");
        let frames = [bytes(&layout, 1), bytes(&layout, 2)];
        let framings = framings(layout.size(), [8, 6])[1];
        let shown = Shown { layout, frames: &frames, framings: &framings, colours: Colours::default() };
        let found = on_bytes(&mut session, &shown, Way::Bytes).expect("a run");
        for kind in
            [Kind::OtherMatrix, Kind::OtherRange, Kind::OtherSiting, Kind::SwappedChroma, Kind::NextPlaneRow]
        {
            let (failures, compared) = wrong(&found, shape, &shown, kind);
            let one_plane = kind == Kind::NextPlaneRow && format.planes() == 1;
            let told = failures.len() * 4 > compared;
            assert!(told || one_plane, "{format} {kind:?}: {} of {compared} are off", failures.len());
        }
    }
}

/// A part of a larger buffer, at an offset that no device binds.
#[test]
fn planes_lie_anywhere_in_a_buffer() {
    for app in apps() {
        let shape = Shape::nhwc(2, 6, 8, 3);
        let mut session = Session::new(app.context(), &network(shape, Read::Rows), SessionOptions::default())
            .expect("a session");
        let layout = FrameLayout::new(PixelFormat::Nv12, [13, 9]).expect("a layout");
        let layout = layout.planes(&[FramePlane::new(301, 17), FramePlane::new(1027, 15)]).expect("a layout");
        let frames = [bytes(&layout, 7), bytes(&layout, 8)];
        let framings = framings(layout.size(), [8, 6])[1];
        let shown = Shown {
            layout,
            frames: &frames,
            framings: &framings,
            colours: Colours::range(-1.0, 1.0).border(BORDER),
        };
        for way in [Way::Whole, Way::Bytes] {
            let found = match way {
                Way::Bytes => on_bytes(&mut session, &shown, Way::Bytes),
                way => app.frames(&mut session, &shown, way),
            };
            let (failures, _) = wrong(&found.expect("a run"), shape, &shown, Kind::Right);
            assert!(failures.is_empty(), "{} {way:?}: {}", app.name(), failures.join("\n"));
        }
    }
}

#[test]
fn frames_that_do_not_fit_are_refused() {
    for app in apps() {
        let shape = Shape::nhwc(1, 6, 8, 3);
        let mut session = Session::new(app.context(), &network(shape, Read::Rows), SessionOptions::default())
            .expect("a session");
        let layout = FrameLayout::new(PixelFormat::Nv12, [12, 9]).expect("a layout");
        let mut refused = |layout: FrameLayout, length: usize, source: [u32; 2], way: Way, words: &[&str]| {
            let framings = [Framing::new(source, [8, 6]).expect("a framing")];
            let frames = [vec![7; length]];
            let shown = Shown { layout, frames: &frames, framings: &framings, colours: Colours::default() };
            let found = match way {
                Way::Bytes => on_bytes(&mut session, &shown, Way::Bytes),
                way => app.frames(&mut session, &shown, way),
            };
            let error = found.expect_err("refused").to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{} {way:?}: {error}", app.name());
        };
        let size = layout.size();
        // 12 * 9 and 12 * 5 bytes.
        for way in [Way::Bytes, Way::Whole] {
            refused(layout, 164, size, way, &["164 bytes", "168", "12 x 9", "plane 1"]);
            refused(layout, 168, [12, 8], way, &["12 x 9", "12 x 8", "\"x\""]);
        }
        let odd = FrameLayout::new(PixelFormat::Gray8, [3, 3]).expect("a layout");
        let framings = [Framing::new([3, 3], [8, 6]).expect("a framing")];
        let shown =
            Shown { layout: odd, frames: &[vec![0; 9]], framings: &framings, colours: Colours::default() };
        assert!(on_bytes(&mut session, &shown, Way::Bytes).is_ok(), "bytes need no whole words");
    }
    let layout = FrameLayout::new(PixelFormat::Nv12, [12, 9]).expect("a layout");
    let error = Frame::of_planes(&[&[0u8; 108][..]], layout).expect_err("one plane").to_string();
    assert!(error.contains("found 1") && error.contains("2 of NV12"), "{error}");
}

#[test]
fn a_buffer_without_the_usage_is_refused() {
    if !apps().iter().any(|app| app.name() == "wgpu") {
        return;
    }
    let app = WgpuApp::new();
    let mut session =
        Session::new(app.context(), &network(Shape::nhwc(1, 6, 8, 3), Read::Rows), SessionOptions::default())
            .expect("a session");
    let layout = FrameLayout::new(PixelFormat::Yuyv, [8, 6]).expect("a layout");
    let buffer = app.buffer(wgpu::BufferUsages::COPY_SRC, &[0; 96]);
    let result = app.buffer(wgpu::BufferUsages::STORAGE, &[0; 576]);
    let frames = [(Frame::new(&buffer, layout), Framing::new([8, 6], [8, 6]).expect("a framing"))];
    let frames = Frames::new(&frames, Colours::default());
    let error = session.encode(&mut app.encoder(), &[("x", frames)], &[("y", &result)]);
    let error = error.expect_err("refused").to_string();
    assert!(error.contains("STORAGE") && error.contains("COPY_SRC"), "{error}");
}

/// Textures of fewer channels than the planes or the colours would be read as zeros.
#[test]
fn textures_of_too_few_channels_are_refused() {
    let size = [8, 6];
    let framing = Framing::new(size, size).expect("a framing");
    let layout = |format| FrameLayout::new(format, size).expect("a layout");
    let (nv12, yuyv) = (layout(PixelFormat::Nv12), layout(PixelFormat::Yuyv));
    // Extents that the planes have, each with one channel.
    let flat = |size: [u32; 2]| (size, 1, vec![7; (size[0] * size[1]) as usize]);
    let from_blue = || ([4, 6], FROM_BLUE, vec![7; 4 * 4 * 6]);
    let few = ["a texture of 1 channel for plane", "channels or more"];
    let other = ["whose first channel is not red for plane 0", "4 channels or more"];
    let told = |found: Result<()>, words: [&str; 2]| {
        let error = found.expect_err("refused").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    for app in apps() {
        let network = network(Shape::nhwc(1, 6, 8, 3), Read::Rows);
        if app.name() == "wgpu" {
            let app = WgpuApp::new();
            let mut session =
                Session::new(app.context(), &network, SessionOptions::default()).expect("a session");
            let [luma, chroma, pairs] = [size, [4, 3], [4, 6]].map(|size| app.plane(flat(size)));
            let result = app.buffer(wgpu::BufferUsages::STORAGE, &[0; 576]);
            let frames = [
                Frame::of_planes(&[&luma, &chroma], nv12).expect("a frame"),
                Frame::of_planes(&[&pairs], yuyv).expect("a frame"),
            ];
            for frame in frames {
                let frames = [(frame, framing)];
                let frames = Frames::new(&frames, Colours::default());
                told(session.encode(&mut app.encoder(), &[("x", frames)], &[("y", &result)]), few);
            }
            let swapped = app.plane(from_blue());
            let swapped = [(Frame::of_planes(&[&swapped], yuyv).expect("a frame"), framing)];
            let frames = Frames::new(&swapped, Colours::default());
            told(session.encode(&mut app.encoder(), &[("x", frames)], &[("y", &result)]), other);
            let pictures = [(&luma, framing)];
            for (colours, words) in [
                (Colours::default(), ["colours have 1 channel", "3 channels"]),
                (Colours::default().bgr(), ["colours have 1 channel", "first_channel"]),
            ] {
                let pictures = Pictures::new(&pictures, colours);
                told(session.encode(&mut app.encoder(), &[("x", pictures)], &[("y", &result)]), words);
            }
        } else {
            let app = ClApp::new();
            let mut session =
                Session::new(app.context(), &network, SessionOptions::default()).expect("a session");
            let [luma, chroma, pairs] = [size, [4, 3], [4, 6]].map(|size| app.plane(flat(size)));
            let result = app.buffer(CL_MEM_READ_WRITE, &[0; 576]);
            let frames = [
                Frame::of_planes(&[&luma, &chroma], nv12).expect("a frame"),
                Frame::of_planes(&[&pairs], yuyv).expect("a frame"),
            ];
            for frame in frames {
                let frames = [(frame, framing)];
                let frames = Frames::new(&frames, Colours::default());
                told(session.enqueue(&[("x", frames)], &[("y", &result)]), few);
            }
            let swapped = app.plane(from_blue());
            let swapped = [(Frame::of_planes(&[&swapped], yuyv).expect("a frame"), framing)];
            let frames = Frames::new(&swapped, Colours::default());
            told(session.enqueue(&[("x", frames)], &[("y", &result)]), other);
            let pictures = [(&luma, framing)];
            let pictures = Pictures::new(&pictures, Colours::default());
            told(
                session.enqueue(&[("x", pictures)], &[("y", &result)]),
                ["colours have 1 channel", "3 channels"],
            );
        }
    }
}

/// What is no dma-buf never reaches a driver.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_no_dmabuf_is_refused() {
    let file = tempfile::tempfile().expect("a file");
    file.set_len(1 << 16).expect("a length");
    let cpu = Context::new(Backend::Cpu).expect("the CPU");
    let told = |context: &Context, bytes: u64| {
        let texture = wgpu::TextureFormat::R8Unorm;
        // SAFETY: a file that is no dma-buf has no memory to be read.
        let texture = unsafe { context.dmabuf_texture(&file, texture, [16, 16], 0, 256, 0) };
        let wgpu = context.dmabuf_buffer(&file, bytes).expect_err("refused").to_string();
        let opencl = context.dmabuf_opencl_buffer(&file, bytes).expect_err("refused").to_string();
        [wgpu, texture.expect_err("refused").to_string(), opencl]
    };
    let [wgpu, texture, opencl] = told(&cpu, 4096);
    assert!(wgpu.contains("not wgpu") && texture.contains("not wgpu") && opencl.contains("not OpenCL"));
    for app in apps() {
        let [wgpu, texture, opencl] = told(app.context(), 4096);
        let none = "which is none, wanted a dma-buf";
        if app.name() == "wgpu" {
            for said in [&wgpu, &texture] {
                assert!(said.contains(none), "{said}");
            }
            assert!(opencl.contains("not OpenCL"), "{opencl}");
        } else {
            assert!(opencl.contains(none), "{opencl}");
        }
    }
}

/// One texture of wgpu's that has both planes, by views of each.
#[test]
fn a_texture_of_two_planes_is_read_by_its_views() {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()));
    let Some(adapter) = adapter.ok().filter(|_| apps().iter().any(|app| app.name() == "wgpu")) else {
        return;
    };
    let needed = wgpu::Features::TEXTURE_FORMAT_NV12;
    if !adapter.features().contains(needed) {
        println!("skipped: {} has no textures of two planes", adapter.get_info().name);
        return;
    }
    let (features, required_limits) = Context::wgpu_requirements(&adapter);
    let required_features = features | needed;
    let descriptor = wgpu::DeviceDescriptor { required_features, required_limits, ..Default::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).expect("a device");
    let context = Context::from_wgpu(&adapter, device.clone(), queue.clone()).expect("a context");
    let shape = Shape::nhwc(1, 6, 8, 3);
    let mut session =
        Session::new(&context, &network(shape, Read::Rows), SessionOptions::default()).expect("a session");
    let layout = FrameLayout::new(PixelFormat::Nv12, [12, 10]).expect("a layout");
    let frames = [bytes(&layout, 3)];
    let framings = [framings(layout.size(), [8, 6])[1][0]];
    let shown = Shown {
        layout,
        frames: &frames,
        framings: &framings,
        colours: Colours::range(-1.0, 1.0).border(BORDER),
    };
    let size = wgpu::Extent3d { width: 12, height: 10, depth_or_array_layers: 1 };
    let texture = device.create_texture(&wgpu::TextureDescriptor {
        label: None,
        size,
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::NV12,
        usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
        view_formats: &[],
    });
    let planes = [
        (wgpu::TextureAspect::Plane0, wgpu::TextureFormat::R8Unorm, size),
        (
            wgpu::TextureAspect::Plane1,
            wgpu::TextureFormat::Rg8Unorm,
            wgpu::Extent3d { width: 6, height: 5, ..size },
        ),
    ];
    let views = [0, 1].map(|plane| {
        let (aspect, format, size) = planes[plane];
        let to = wgpu::TexelCopyTextureInfo { aspect, ..texture.as_image_copy() };
        let rows = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(12), rows_per_image: None };
        queue.write_texture(to, &shown.texels(&frames[0], plane).2, rows, size);
        texture.create_view(&wgpu::TextureViewDescriptor {
            format: Some(format),
            aspect,
            ..Default::default()
        })
    });
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let app = WgpuApp::of(instance, context, device, queue);
    let result = app.buffer(usage, &vec![0; 4 * shape.elements()]);
    let frame = Frame::of_planes(&[&views[0], &views[1]], layout).expect("a frame");
    let mut encoder = app.encoder();
    let given = [(frame, framings[0])];
    let given = Frames::new(&given, shown.colours);
    session.encode(&mut encoder, &[("x", given)], &[("y", &result)]).expect("a run");
    let found: Vec<f32> = bytemuck::pod_collect_to_vec(&app.finish(encoder, &[&result])[0]);
    let (failures, _) = wrong(&found, shape, &shown, Kind::Right);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
