//! The bytes of a mapped frame's planes: as many as are mapped, whatever strides and offsets the buffer's metadata tell.

use crate::failure::Failure;
use gst_video::prelude::*;
use gst_video::{VideoFrameRef, ffi};

/// The first byte of a plane, and how many there are up to the end of its rows or of what is mapped.
fn mapped(frame: &ffi::GstVideoFrame, plane: usize, rows: u32) -> Result<(*mut u8, usize), Failure> {
    let told = frame.data.get(plane).zip(frame.info.stride.get(plane)).zip(frame.info.offset.get(plane));
    let lacking = |found: String| Failure::model(format!("plane {plane} of a frame: found {found}"));
    let Some(((&data, &stride), &offset)) = told.filter(|((data, _), _)| !data.is_null()) else {
        return Err(lacking("none, wanted one of the format's".to_owned()));
    };
    let stride = usize::try_from(stride);
    let stride = stride
        .map_err(|_| lacking(format!("a stride of {}, wanted a positive one", frame.info.stride[plane])))?;
    // With metadata of the buffer each plane is mapped by itself; else the first map has all of them.
    let map = match frame.map.get(plane).filter(|map| !map.data.is_null() && !frame.meta.is_null()) {
        Some(map) => map,
        None => &frame.map[0],
    };
    let begins = (data as usize).checked_sub(map.data as usize).filter(|&begins| begins <= map.size);
    let left = begins.map(|begins| map.size - begins);
    let left = left.ok_or_else(|| {
        lacking(format!("an offset of {offset} in {} bytes, wanted a smaller one", map.size))
    })?;
    Ok((data.cast(), left.min(stride.saturating_mul(rows as usize))))
}

/// A plane of a frame that is mapped to be read.
pub(crate) fn read<'a>(frame: &'a VideoFrameRef<&gst::BufferRef>, plane: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: the frame is mapped for as long as it is borrowed.
    let (raw, rows) = unsafe { (&*frame.as_ptr(), frame.plane_height(plane as u32)) };
    let (data, length) = mapped(raw, plane, rows)?;
    // SAFETY: so many bytes are mapped from there on, and nobody writes to them: the buffer is borrowed.
    Ok(unsafe { std::slice::from_raw_parts(data, length) })
}

/// A plane of a frame that is mapped to be written.
pub(crate) fn write<'a>(
    frame: &'a mut VideoFrameRef<&mut gst::BufferRef>,
    plane: usize,
) -> Result<&'a mut [u8], Failure> {
    // SAFETY: the frame is mapped for as long as it is borrowed.
    let (raw, rows) = unsafe { (&*frame.as_ptr(), frame.plane_height(plane as u32)) };
    let (data, length) = mapped(raw, plane, rows)?;
    // SAFETY: so many bytes are mapped to be written from there on, and the frame is borrowed by this alone.
    Ok(unsafe { std::slice::from_raw_parts_mut(data, length) })
}
