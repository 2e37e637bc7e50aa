//! Frames as cameras and video decoders give them: bytes of luma and chroma in planes, and what they mean.
//!
//! | file | does |
//! |---|---|
//! | `format` | what a format's planes hold, and which byte of them a component is |
//! | `colour` | luma and chroma to red, green and blue; where the chroma samples lie |
//! | `layout` | size, offsets and strides, checked |
//! | `host` | the network's input from bytes, by the CPU |
//! | `upload` | the same by a device |

mod colour;
mod format;
#[cfg(feature = "cpu")]
mod host;
mod layout;
#[cfg(all(feature = "cpu", any(feature = "wgpu", feature = "opencl"), not(target_family = "wasm")))]
mod upload;

pub use colour::{ChromaSiting, ColourMatrix, ColourRange};
pub use format::PixelFormat;
pub use layout::{FrameLayout, FramePlane};

#[cfg(any(feature = "wgpu", feature = "opencl"))]
pub(super) use colour::{Conversion, MIDDLE};
#[cfg(any(feature = "wgpu", feature = "opencl"))]
pub(super) use format::{Components, Tap};

#[cfg(all(feature = "cpu", any(feature = "wgpu", feature = "opencl"), not(target_family = "wasm")))]
pub(super) use upload::Uploads;

use super::framing::{Colours, Framing};
use crate::error::{Error, Result};
use format::MAX_PLANES;

/// A frame: its memory and its layout. `P` is what holds the bytes.
///
/// | `P` | for | planes |
/// |---|---|---|
/// | `&[u8]` | [`Session::submit`](crate::Session::submit) (not in a browser), [`Frames::to_tensor`] | one memory, or one for each plane |
/// | `&wgpu::Buffer` with usage `STORAGE` | [`Session::encode`](crate::Session::encode) | the same |
/// | `&opencl3::memory::Buffer<u8>` | [`Session::enqueue`](crate::Session::enqueue) | the same |
/// | `&wgpu::TextureView` | `Session::encode` | one texture for each plane |
/// | `&opencl3::memory::Image` | `Session::enqueue` | one image for each plane |
///
/// Buffers are read in words of four bytes, so that they must reach to the end of the word in which the last byte of a plane
/// lies: 4 x 2 pixels of NV12 are 12 bytes, 3 x 3 are 17 and take a buffer of 20.
///
/// As textures and images the planes are normalised floats of 8 bits or more. Offsets and strides are then the driver's. An image of
/// OpenCL may have more channels than the table says, of which the first count: not every driver has images of one or two. One with
/// fewer is refused.
///
/// | format | textures |
/// |---|---|
/// | NV12, NV21 | `r8unorm` of the frame's size, and `rg8unorm` of half of it, rounded up; or views of the two planes of wgpu's `nv12` |
/// | I420 | three of `r8unorm`, the second and the third of half the size |
/// | YUYV, UYVY | one of `rgba8unorm`, half as wide: a texel is two pixels |
/// | Gray8 | one of `r8unorm` |
///
/// Textures of red, green and blue are [`Pictures`](crate::Pictures).
#[derive(Debug, Clone, Copy)]
pub struct Frame<P> {
    planes: [Option<P>; MAX_PLANES],
    layout: FrameLayout,
}

impl<P: Copy> Frame<P> {
    /// A frame whose planes lie in one memory.
    ///
    /// ```
    /// use diptych::{Frame, FrameLayout, PixelFormat};
    ///
    /// let layout = FrameLayout::new(PixelFormat::Nv12, [640, 480])?;
    /// let bytes = vec![128; layout.bytes() as usize];
    /// let frame = Frame::new(&bytes[..], layout);
    /// assert_eq!(frame.layout().bytes(), 640 * 480 * 3 / 2);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn new(memory: P, layout: FrameLayout) -> Self {
        let planes = std::array::from_fn(|plane| (plane < layout.format().planes()).then_some(memory));
        Frame { planes, layout }
    }

    /// A frame each of whose planes has memory of its own. Offsets count from the beginning of each plane's own memory, and
    /// are 0 unless [`FrameLayout::planes`] says otherwise.
    ///
    /// ```
    /// use diptych::{Frame, FrameLayout, PixelFormat};
    ///
    /// let layout = FrameLayout::new(PixelFormat::Nv12, [640, 480])?;
    /// let (luma, chroma) = (vec![128; 640 * 480], vec![128; 640 * 240]);
    /// let frame = Frame::of_planes(&[&luma[..], &chroma[..]], layout)?;
    /// assert_eq!(frame.layout().plane(1).map(|plane| plane.offset), Some(0));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are more or fewer than the format has planes.
    pub fn of_planes(planes: &[P], layout: FrameLayout) -> Result<Self> {
        let wanted = layout.format().planes();
        if planes.len() != wanted {
            let wanted = format!("{wanted} of {}", layout.format());
            return Err(Error::input("planes of a frame", planes.len().to_string(), wanted));
        }
        Ok(Frame { planes: std::array::from_fn(|plane| planes.get(plane).copied()), layout: layout.apart() })
    }

    /// How the frame lies in its memory.
    pub fn layout(&self) -> &FrameLayout {
        &self.layout
    }

    /// The memory of each plane.
    #[cfg(any(feature = "cpu", feature = "wgpu", feature = "opencl"))]
    pub(super) fn planes(&self) -> impl Iterator<Item = P> + '_ {
        self.planes.iter().copied().flatten()
    }
}

/// Frames as an input of a network: one for each image of its batch, with the part of it that the network sees, and how
/// its colours become numbers. They do for cameras' formats what [`Pictures`](crate::Pictures) does for textures of red, green and
/// blue, by the same kernel, which crops, turns, scales and normalises.
///
/// A pixel of the network is interpolated between the four luma samples around its place in the frame, and between the four
/// chroma samples around it, which lie where [`ChromaSiting`] says. Luma and chroma then become red, green and blue
/// ([`ColourMatrix`], [`ColourRange`]), which are clamped to `0..=1`, and those become the network's numbers ([`Colours`]).
///
/// ```
/// use diptych::{Backend, Colours, Context, Fit, Frame, FrameLayout, Frames, Framing, Function, Graph, PixelFormat};
/// use diptych::{Session, SessionOptions, Shape};
///
/// let mut graph = Graph::new();
/// let x = graph.input("image", Shape::nhwc(1, 4, 4, 3))?;
/// let y = graph.elementwise("same", Function::Maximum, &[x.into(), x.into()])?;
/// graph.output(y)?;
/// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
///
/// // 8 x 6 pixels of NV12, as a camera's driver gives them: white is 235, and 128 is no colour.
/// let layout = FrameLayout::new(PixelFormat::Nv12, [8, 6])?;
/// let mut bytes = vec![235; 8 * 6];
/// bytes.resize(layout.bytes() as usize, 128);
/// let framing = Framing::new([8, 6], [4, 4])?.fit(Fit::Fill);
/// let frames = [(Frame::new(&bytes[..], layout), framing)];
/// let flight = session.submit(&[("image", Frames::new(&frames, Colours::range(-1.0, 1.0)))])?;
/// assert!(flight.wait()?.get(0)?.iter().all(|number| (number - 1.0).abs() < 1e-5));
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Frames<'f, P> {
    pub(super) frames: &'f [(Frame<P>, Framing)],
    pub(super) colours: Colours,
}

impl<'f, P> Frames<'f, P> {
    /// These frames.
    ///
    /// ```
    /// use diptych::{Colours, Fit, Frame, FrameLayout, Frames, Framing, PixelFormat, wgpu};
    ///
    /// # fn frame(session: &mut diptych::Session, encoder: &mut wgpu::CommandEncoder, camera: &wgpu::Buffer,
    /// #     result: &wgpu::Buffer) -> diptych::Result<()> {
    /// // Rows of 1920 bytes begin every 2048.
    /// let layout = FrameLayout::new(PixelFormat::Nv12, [1920, 1080])?.stride(2048)?;
    /// let framing = Framing::new([1920, 1080], [257, 257])?.fit(Fit::Letterbox);
    /// let frames = [(Frame::new(camera, layout), framing)];
    /// let frames = Frames::new(&frames, Colours::range(-1.0, 1.0));
    /// session.encode(encoder, &[("image", frames)], &[("keypoints", result)])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(frames: &'f [(Frame<P>, Framing)], colours: Colours) -> Self {
        Frames { frames, colours }
    }
}
