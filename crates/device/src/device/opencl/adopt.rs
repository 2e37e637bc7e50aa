//! An application's memory objects, and work that is enqueued behind its own without a wait.

use super::call::{Memory as MemoryObject, Owned, Want, check};
use super::memory::{Range, RawBuffer, RawImage};
use super::{OpenClDevice, cl, loader, record};
use crate::device::adopt::{Adopted, Transfer};
use crate::device::handle::Channels;
use crate::device::{Buffer, Image, Recording, handle};
use crate::error::{Error, Result};
use cl3::memory::{
    CL_A, CL_ARGB, CL_BGRA, CL_DEPTH, CL_FLOAT, CL_HALF_FLOAT, CL_IMAGE_FORMAT, CL_IMAGE_HEIGHT,
    CL_IMAGE_WIDTH, CL_INTENSITY, CL_LUMINANCE, CL_MEM_ASSOCIATED_MEMOBJECT, CL_MEM_CONTEXT, CL_MEM_FLAGS,
    CL_MEM_OBJECT_BUFFER, CL_MEM_OBJECT_IMAGE2D, CL_MEM_OFFSET, CL_MEM_READ_ONLY, CL_MEM_SIZE, CL_MEM_TYPE,
    CL_MEM_WRITE_ONLY, CL_R, CL_RA, CL_RG, CL_RGB, CL_RGBx as CL_RGBX, CL_RGx as CL_RGX, CL_Rx as CL_RX,
    CL_SNORM_INT8, CL_SNORM_INT16, CL_UNORM_INT8, CL_UNORM_INT16, CL_sRGB as CL_SRGB, CL_sRGBx as CL_SRGBX,
};
use opencl3::memory::ClMem;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// Refuses an application's objects where `opencl3`, which made them, calls another library than this crate: one library knows
/// nothing of the other's handles.
pub(super) fn check_library(what: &str) -> Result<()> {
    static SAME: OnceLock<()> = OnceLock::new();
    if SAME.get().is_some() {
        return Ok(());
    }
    let own = check("clGetPlatformIDs", cl::get_platform_ids())?;
    let theirs = opencl3::platform::get_platforms().unwrap_or_default();
    if theirs.iter().map(|platform| platform.id()).eq(own) {
        SAME.get_or_init(|| ());
        return Ok(());
    }
    let path = loader::loaded().map_or("its library", |loaded| loaded.path);
    let why = format!(
        "opencl3 calls another OpenCL library than {path}; set OPENCL_DYLIB_PATH={path} before either is used"
    );
    Err(Error::unsupported(what, why))
}

/// A buffer or an image that an application lends, whatever its elements are called.
#[derive(Debug, Clone, Copy)]
pub struct LentBuffer<'b> {
    raw: cl3::types::cl_mem,
    buffer: PhantomData<&'b ()>,
}

impl<'b, T> From<&'b opencl3::memory::Buffer<T>> for LentBuffer<'b> {
    fn from(buffer: &'b opencl3::memory::Buffer<T>) -> Self {
        LentBuffer { raw: buffer.get(), buffer: PhantomData }
    }
}

impl<'b> From<&'b opencl3::memory::Image> for LentBuffer<'b> {
    fn from(image: &'b opencl3::memory::Image) -> Self {
        LentBuffer { raw: image.get(), buffer: PhantomData }
    }
}

/// What the driver says of a memory object, as a number.
fn ask(raw: cl3::types::cl_mem, what: u32) -> Result<u64> {
    let bytes = check("clGetMemObjectInfo", cl::get_mem_object_data(raw, what))?;
    cl::number(&bytes).ok_or_else(|| Error::Internal("clGetMemObjectInfo gave no number".to_owned()))
}

/// The channels of an image of this `cl_channel_order`.
fn channels(order: u32) -> Channels {
    match order {
        CL_A => Channels { own: 0, colours: 0 },
        CL_BGRA | CL_ARGB => Channels { own: 0, colours: 3 },
        CL_LUMINANCE | CL_INTENSITY => Channels { own: 1, colours: 3 },
        CL_R | CL_RX | CL_RA | CL_DEPTH => Channels::new(1),
        CL_RG | CL_RGX => Channels::new(2),
        CL_RGB | CL_RGBX | CL_SRGB | CL_SRGBX => Channels::new(3),
        _ => Channels::new(4),
    }
}

impl OpenClDevice {
    /// A handle of an application's buffer, which it retains.
    ///
    /// # Errors
    /// If it is none, or of another context.
    pub fn adopt(&self, lent: LentBuffer<'_>) -> Result<Adopted> {
        let raw = lent.raw;
        check_library("an application's OpenCL buffer")?;
        if ask(raw, CL_MEM_TYPE)? != u64::from(CL_MEM_OBJECT_BUFFER) {
            return Err(Error::input("OpenCL memory object", "an image", "a buffer"));
        }
        self.same_context(raw)?;
        let (bytes, flags) = (ask(raw, CL_MEM_SIZE)?, ask(raw, CL_MEM_FLAGS)?);
        // Parts of a part are made of the buffer itself, which the part keeps alive.
        let whole = ask(raw, CL_MEM_ASSOCIATED_MEMOBJECT)?;
        let (raw, first) =
            if whole == 0 { (raw, 0) } else { (whole as usize as _, ask(raw, CL_MEM_OFFSET)?) };
        let all = ask(raw, CL_MEM_SIZE)?;
        let [read_only, write_only] = [CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY].map(|flag| flags & flag != 0);
        // SAFETY: the application's handle is live during this call, because it is borrowed; the reference that is
        // taken here is given back by `Owned`. Test: `outputs_are_those_of_a_run_in_every_layout_and_type`.
        let memory: Owned<MemoryObject> = unsafe {
            check("clRetainMemObject", cl::retain_mem_object(raw))?;
            Owned::new(raw, self.inner.context.hung())
        };
        let said = match (read_only, write_only) {
            (true, _) => "CL_MEM_READ_ONLY",
            (_, true) => "CL_MEM_WRITE_ONLY",
            _ => "CL_MEM_READ_WRITE",
        };
        let raw_buffer = RawBuffer::lent(memory, &self.inner);
        Ok(Adopted {
            buffer: Buffer { raw: handle::RawBuffer::OpenCl(raw_buffer), bytes: all },
            kernels: [!write_only, !write_only && !read_only],
            copies: [true; 2],
            part: (first, bytes),
            said: said.to_owned(),
        })
    }

    fn same_context(&self, raw: cl3::types::cl_mem) -> Result<()> {
        let (found, own) = (ask(raw, CL_MEM_CONTEXT)?, self.inner.context.raw() as usize as u64);
        if found == own {
            return Ok(());
        }
        let wanted = format!("one of the session's context, {own:#x}");
        Err(Error::input("OpenCL memory object", format!("one of context {found:#x}"), wanted))
    }

    /// A handle of an application's image, which it retains.
    ///
    /// # Errors
    /// If it is none that kernels read floats from, or of another context.
    pub fn adopt_image(&self, lent: LentBuffer<'_>) -> Result<Image> {
        let raw = lent.raw;
        check_library("an application's OpenCL image")?;
        self.same_context(raw)?;
        if ask(raw, CL_MEM_TYPE)? != u64::from(CL_MEM_OBJECT_IMAGE2D) {
            return Err(Error::input("OpenCL memory object", "no image of two dimensions", "one"));
        }
        if ask(raw, CL_MEM_FLAGS)? & CL_MEM_WRITE_ONLY != 0 {
            return Err(Error::input("OpenCL image", "CL_MEM_WRITE_ONLY", "one that kernels may read"));
        }
        let number = |what| {
            let bytes = check("clGetImageInfo", cl::get_image_data(raw, what))?;
            let bytes =
                bytes.try_into().map_err(|_| Error::Internal("clGetImageInfo gave no size".to_owned()))?;
            Ok(usize::from_ne_bytes(bytes))
        };
        // Two words: the order of the channels, and their type.
        let format = check("clGetImageInfo", cl::get_image_data(raw, CL_IMAGE_FORMAT))?;
        let word = |first: usize| {
            let bytes = format.get(first..first + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_ne_bytes)
        };
        let (order, kind) = (word(0).unwrap_or(0), word(4));
        let floats = [CL_UNORM_INT8, CL_UNORM_INT16, CL_SNORM_INT8, CL_SNORM_INT16, CL_HALF_FLOAT, CL_FLOAT];
        if !kind.is_some_and(|kind| floats.contains(&kind)) {
            let found = format!("channels of type {:#x}", kind.unwrap_or(0));
            return Err(Error::input("OpenCL image", found, "channels that are normalised or floats"));
        }
        let extent = [number(CL_IMAGE_WIDTH)?, number(CL_IMAGE_HEIGHT)?];
        // SAFETY: as in `adopt`. Test: `a_picture_is_what_its_framing_says`.
        let memory: Owned<MemoryObject> = unsafe {
            check("clRetainMemObject", cl::retain_mem_object(raw))?;
            Owned::new(raw, self.inner.context.hung())
        };
        let raw = handle::RawImage::OpenCl(RawImage::lent(memory, &self.inner));
        Ok(Image { raw, extent, channels: channels(order) })
    }

    /// Enqueues copies, a recording, and copies, and returns: nothing is waited for, and nothing is flushed.
    pub fn enqueue(&self, before: &[Transfer], recordings: &[&Recording], after: &[Transfer]) -> Result<()> {
        let inner = &self.inner;
        let copy = |Transfer { from, to }: &Transfer| {
            let (from, to) = (Range::new(inner, from)?, Range::new(inner, to)?);
            inner.lane().copy(from.place(), to.place(), from.len(), Want::Nothing).map(drop)
        };
        let _order = inner.order.enter()?;
        before.iter().try_for_each(copy)?;
        recordings.iter().try_for_each(|recording| record::enqueue(inner, recording))?;
        after.iter().try_for_each(copy)
    }
}
