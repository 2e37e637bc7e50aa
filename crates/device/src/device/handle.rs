//! Handles to a device's memory, kernels and recorded work. All are cheap to clone.

use crate::emit::{Binding, Interface, Least, Scalar};
use crate::error::{Error, Result};

#[cfg(feature = "opencl")]
use super::opencl as cl;
#[cfg(feature = "wgpu")]
use super::wgpu as wg;

/// Device memory.
#[derive(Debug, Clone)]
pub struct Buffer {
    pub(crate) raw: RawBuffer,
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum RawBuffer {
    #[cfg(feature = "wgpu")]
    Wgpu(wg::RawBuffer),
    #[cfg(feature = "opencl")]
    OpenCl(cl::RawBuffer),
}

impl Buffer {
    /// Whether it is the same buffer as `other`.
    #[cfg(any(feature = "wgpu", feature = "opencl"))]
    pub fn is(&self, other: &Buffer) -> bool {
        match (&self.raw, &other.raw) {
            #[cfg(feature = "wgpu")]
            (RawBuffer::Wgpu(one), RawBuffer::Wgpu(other)) => one == other,
            #[cfg(feature = "opencl")]
            (RawBuffer::OpenCl(one), RawBuffer::OpenCl(other)) => one.address() == other.address(),
            #[cfg(all(feature = "wgpu", feature = "opencl"))]
            _ => false,
        }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The whole buffer.
    pub fn whole(&self) -> Slice {
        Slice { buffer: self.clone(), offset: 0, bytes: self.bytes }
    }

    /// `bytes` bytes from `offset` on.
    ///
    /// # Errors
    /// If they do not lie within the buffer.
    pub fn slice(&self, offset: u64, bytes: u64) -> Result<Slice> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes && bytes > 0 => Ok(Slice { buffer: self.clone(), offset, bytes }),
            _ => Err(Error::input(
                "buffer slice",
                format!("{bytes} bytes from offset {offset}"),
                format!("at least one byte, within the buffer's {}", self.bytes),
            )),
        }
    }
}

/// A part of a buffer.
#[derive(Debug, Clone)]
pub struct Slice {
    pub buffer: Buffer,
    pub offset: u64,
    pub bytes: u64,
}

impl Slice {
    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// An RGBA image.
#[derive(Debug, Clone)]
pub struct Image {
    pub(crate) raw: RawImage,
    pub(crate) extent: [usize; 2],
    pub channels: Channels,
}

/// What the channels of an image hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// How many bytes of a texel are read in the order in which they lie: none where blue or alpha comes first.
    pub own: usize,
    /// How many of red, green and blue are read as they are meant, from red on: those of luminance are all three.
    pub colours: usize,
}

impl Channels {
    pub(crate) fn new(own: usize) -> Self {
        Channels { own, colours: own.min(3) }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum RawImage {
    /// A view of an application's texture, which is read.
    #[cfg(feature = "wgpu")]
    Wgpu(wg::RawTexture),
    #[cfg(feature = "opencl")]
    OpenCl(cl::RawImage),
}

impl Image {
    /// Whether it is the same image as `other`.
    #[cfg(any(feature = "wgpu", feature = "opencl"))]
    pub fn is(&self, other: &Image) -> bool {
        match (&self.raw, &other.raw) {
            #[cfg(feature = "wgpu")]
            (RawImage::Wgpu(one), RawImage::Wgpu(other)) => one == other,
            #[cfg(feature = "opencl")]
            (RawImage::OpenCl(one), RawImage::OpenCl(other)) => one.address() == other.address(),
            #[cfg(all(feature = "wgpu", feature = "opencl"))]
            _ => false,
        }
    }

    /// Width and height in pixels.
    pub fn extent(&self) -> [usize; 2] {
        self.extent
    }
}

/// What a binding is given.
#[derive(Debug, Clone)]
pub enum Resource {
    /// A part of a buffer.
    Buffer(Slice),
    /// An image.
    Image(Image),
}

impl From<Slice> for Resource {
    fn from(slice: Slice) -> Self {
        Resource::Buffer(slice)
    }
}

impl From<&Buffer> for Resource {
    fn from(buffer: &Buffer) -> Self {
        Resource::Buffer(buffer.whole())
    }
}

impl From<&Image> for Resource {
    fn from(image: &Image) -> Self {
        Resource::Image(image.clone())
    }
}

/// A compiled kernel.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub(crate) raw: RawPipeline,
    pub(crate) label: String,
    pub interface: Interface,
    #[cfg_attr(not(feature = "opencl"), expect(dead_code, reason = "only OpenCL takes it at launch"))]
    pub(crate) work_group: [u32; 3],
}

#[derive(Debug, Clone)]
pub(crate) enum RawPipeline {
    #[cfg(feature = "wgpu")]
    Wgpu(wg::RawPipeline),
    #[cfg(feature = "opencl")]
    OpenCl(cl::RawPipeline),
}

impl Pipeline {
    /// The kernel's label.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The arguments it takes.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }
}

/// A kernel with its arguments and the number of work-groups.
#[derive(Debug, Clone)]
pub struct Dispatch {
    /// The kernel.
    pub pipeline: Pipeline,
    /// One resource per binding of its interface, in order.
    pub resources: Vec<Resource>,
    /// One value per parameter of its interface, in order.
    pub params: Vec<Scalar>,
    /// Work-groups along x, y and z.
    pub groups: [u32; 3],
}

impl Dispatch {
    /// Checks that the resources and parameters are those of the kernel's interface.
    pub(crate) fn check(&self) -> Result<()> {
        let interface = &self.pipeline.interface;
        let wrong = |found: String, wanted: String| {
            Err(Error::input(format!("kernel {}", self.pipeline.label), found, wanted))
        };
        if self.resources.len() != interface.bindings.len() {
            return wrong(
                format!("{} resources", self.resources.len()),
                format!("{}", interface.bindings.len()),
            );
        }
        if !self.params.iter().map(|value| value.ty()).eq(interface.params.iter().map(|param| param.ty)) {
            return wrong(format!("parameters {:?}", self.params), format!("{:?}", interface.params));
        }
        for (binding, resource) in interface.bindings.iter().zip(&self.resources) {
            use crate::emit::Element;
            let fits = matches!(
                (binding.element, resource),
                (Element::Image2d(_), Resource::Image(_))
                    | (Element::Scalar(_) | Element::Vec4(_) | Element::Atomic, Resource::Buffer(_))
            );
            let name = binding.operand.name();
            if !fits {
                return wrong(format!("{resource:?} for {name}"), format!("{:?}", binding.element));
            }
            if let Some(reason) = too_small(binding, resource) {
                return Err(Error::Reject { kernel: self.pipeline.label.clone(), reason });
            }
        }
        Ok(())
    }
}

/// Why `resource` holds less than the kernel reads or writes, if it does.
fn too_small(binding: &Binding, resource: &Resource) -> Option<String> {
    let name = binding.operand.name();
    match (resource, binding.least) {
        (Resource::Buffer(slice), Least::Bytes(least)) if slice.bytes < least => {
            Some(format!("{name} has {} bytes, the kernel reaches {least}", slice.bytes))
        }
        (Resource::Buffer(slice), _) => {
            let element = binding.element.bytes() as u64;
            (slice.bytes < element)
                .then(|| format!("{name} has {} bytes, one element has {element}", slice.bytes))
        }
        (Resource::Image(image), Least::Pixels([width, height])) => {
            let [found_width, found_height] = image.extent;
            (found_width < width || found_height < height).then(|| {
                let reached = format!("the kernel reaches {width} x {height}");
                format!("{name} has {found_width} x {found_height} pixels, {reached}")
            })
        }
        (Resource::Image(_), _) => None,
    }
}

/// Dispatches with their arguments bound, to submit as often as wanted.
#[derive(Debug, Clone)]
pub struct Recording {
    pub(crate) raw: RawRecording,
    pub(crate) labels: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum RawRecording {
    #[cfg(feature = "wgpu")]
    Wgpu(wg::RawRecording),
    #[cfg(feature = "opencl")]
    OpenCl(cl::RawRecording),
}

impl Recording {
    /// The label of each dispatch.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }
}

/// The error for a handle that belongs to another API's device.
#[cfg(all(feature = "wgpu", feature = "opencl"))]
pub(crate) fn foreign(what: &str, api: &str) -> Error {
    Error::input(what, "a handle of another device", format!("a handle of this {api} device"))
}
