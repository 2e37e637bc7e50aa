//! Frames of cameras as inputs.

use crate::errors::{diptych_status, guard, wrong};
use diptych::{
    ChromaSiting, ColourMatrix, ColourRange, Colours, Dims, Fit, Frame, FrameLayout, Frames, Framing,
};
use diptych_pointers::{fill_from, out_slice, shared, slice, text};
use std::ffi::c_char;

/// How bytes are a frame, and what a network sees of it. A frame of zeros is a start: set the format, the size and the deviation;
/// for the other fields 0 is the common case.
#[repr(C)]
#[derive(Debug)]
pub struct diptych_frame {
    /// "NV12", "NV21", "I420", "YUYV", "UYVY", "Gray8", "RGB8", "BGR8", "RGBA8" or "BGRA8". Planes follow each other.
    pub format: *const c_char,
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Bytes from one row of the first plane to the next; 0 if rows follow each other.
    pub stride: u32,
    /// The matrix: 0 for BT.601, 1 for BT.709, 2 for BT.2020.
    pub matrix: u32,
    /// Whether 0 is black and 255 white; else 16 and 235.
    pub full_range: bool,
    /// Where chroma lies: 0 in the centre of its pixels, 1 at the left, 2 at the top left.
    pub siting: u32,
    /// How it is fitted to the network's input: 0 stretches it, 1 shows all of it with borders, 2 covers the input.
    pub fit: u32,
    /// Colours from 0 to 1 become (colour - mean) / deviation, each of red, green and blue by its own.
    pub mean: [f32; 3],
    /// 1 leaves the scale as it is; 0 is an error.
    pub deviation: [f32; 3],
}

/// Makes an input of 1 x height x width x 3 floats of a frame, on the CPU: `elements` points to 3 * width * height
/// floats, for diptych_run.
///
/// # Safety
/// `frame` points to a frame whose format is text, `data` to `bytes` bytes that no other thread writes, and `elements` to
/// `length` floats that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_frame_input(
    frame: *const diptych_frame,
    data: *const u8,
    bytes: usize,
    width: u32,
    height: u32,
    elements: *mut f32,
    length: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `frame` points to a frame; `shared` refuses NULL.
        let own = unsafe { shared("frame", frame) }?;
        // SAFETY: the caller promises that the frame's format is text and that `data` points to `bytes` bytes that no other
        // thread writes; NULL is refused here, of `data` unless there are none.
        let (format, data) = unsafe { (text("format", own.format)?, slice("data", data, bytes)?) };
        // SAFETY: the caller promises that `elements` points to memory for `length` floats that nothing else uses; `out_slice` refuses
        // NULL and addresses that are not aligned.
        let elements = unsafe { out_slice("elements", elements, length) }?;
        let number = |what: &str, found: u32| wrong(what, found.to_string(), "0, 1 or 2");
        let matrices = [ColourMatrix::Bt601, ColourMatrix::Bt709, ColourMatrix::Bt2020];
        let sitings = [ChromaSiting::Centre, ChromaSiting::Left, ChromaSiting::TopLeft];
        let fits = [Fit::Stretch, Fit::Letterbox, Fit::Fill];
        let matrix = matrices.get(own.matrix as usize).ok_or_else(|| number("matrix", own.matrix))?;
        let siting = sitings.get(own.siting as usize).ok_or_else(|| number("siting", own.siting))?;
        let fit = fits.get(own.fit as usize).ok_or_else(|| number("fit", own.fit))?;
        let layout = FrameLayout::new(format.parse()?, [own.width, own.height])?;
        let layout = if own.stride == 0 { layout } else { layout.stride(own.stride)? };
        let range = if own.full_range { ColourRange::Full } else { ColourRange::Video };
        let layout = layout.matrix(*matrix).range(range).siting(*siting);
        let framing = Framing::new(layout.size(), [width, height])?.fit(*fit);
        let dims = Dims::new(&[1, height as usize, width as usize, 3])?;
        if length != dims.elements() {
            return Err(wrong(
                "elements",
                format!("{length} floats"),
                format!("{} for {dims}", dims.elements()),
            ));
        }
        let frames = [(Frame::new(data, layout), framing)];
        let tensor = Frames::new(&frames, Colours::normalized(own.mean, own.deviation)?).to_tensor(dims)?;
        fill_from(elements, tensor.to_f32().iter().copied());
        Ok(())
    })
}
