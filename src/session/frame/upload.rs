//! Frames of bytes as inputs of a session on a device: the bytes are uploaded, and a kernel makes the input of them.

use super::{Frame, FrameLayout, FramePlane};
use crate::device::adopt::Adopted;
use crate::device::{Buffer, Device, Memory, Slice};
use crate::error::{Error, Result};
use crate::lower::Arrangement;
use crate::session::input::Input;
use crate::session::picture::{PictureInput, PictureMedia, ShownPictures};
use crate::sync::{Mutex, lock};
use std::collections::BTreeMap;

/// What the inputs of a session that are frames lie in, by their places.
#[derive(Debug, Default)]
pub(in crate::session) struct Uploads(Mutex<BTreeMap<usize, FrameBuffers>>);

#[derive(Debug)]
struct FrameBuffers {
    input: PictureInput,
    /// Memory for each piece of the frames' bytes.
    pieces: Vec<Buffer>,
}

/// A layout, and for each memory of a frame the bytes that it needs of it.
struct Pieces<'a> {
    layout: FrameLayout,
    bytes: Vec<&'a [u8]>,
}

impl<'a> Pieces<'a> {
    fn of(frame: &Frame<&'a [u8]>) -> Result<Self> {
        let layout = *frame.layout();
        let planes: Vec<&[u8]> = frame.planes().collect();
        let places: Vec<FramePlane> = (0..planes.len()).filter_map(|plane| layout.plane(plane)).collect();
        let missing = || Error::Internal("bytes of a frame that was checked are missing".to_owned());
        let part =
            |memory: &'a [u8], from: u64, to: u64| memory.get(from as usize..to as usize).ok_or_else(missing);
        let moved = |place: &FramePlane, by: u64| FramePlane::new(place.offset - by, place.stride);
        let first = planes.first().copied().unwrap_or_default();
        let begin = places.iter().map(|place| place.offset).min().unwrap_or(0);
        let own =
            places.iter().enumerate().map(|(plane, place)| layout.end(plane) - place.offset).sum::<u64>();
        // What lies between planes that are far apart is not uploaded.
        let close = layout.bytes() - begin <= 2 * own;
        if close && planes.iter().all(|plane| std::ptr::eq(*plane, first)) {
            let places: Vec<FramePlane> = places.iter().map(|place| moved(place, begin)).collect();
            let bytes = vec![part(first, begin, layout.bytes())?];
            return Ok(Pieces { layout: layout.planes(&places)?, bytes });
        }
        let bytes = planes.iter().zip(&places).enumerate();
        let bytes = bytes.map(|(plane, (memory, place))| part(memory, place.offset, layout.end(plane)));
        let bytes = bytes.collect::<Result<_>>()?;
        let places: Vec<FramePlane> = places.iter().map(|place| moved(place, place.offset)).collect();
        Ok(Pieces { layout: layout.planes(&places)?, bytes })
    }
}

impl Uploads {
    /// Lets go of the memory, and of that of the inputs.
    pub(in crate::session) fn clear(&self) {
        lock(&self.0).clear();
    }

    /// Makes the inputs that are frames, in `targets`.
    pub(in crate::session) async fn make(
        &self,
        device: &dyn Device,
        targets: &[Option<Slice>],
        inputs: &[Input<'_>],
    ) -> Result<()> {
        for (index, (target, input)) in targets.iter().zip(inputs).enumerate() {
            let Some(target) = target else { continue };
            let Input::Frames(given) = input else { continue };
            let (frames, port) = &**given;
            let known = lock(&self.0).remove(&index).filter(|own| own.input.is_of(target));
            let mut own = known.unwrap_or_else(|| FrameBuffers {
                input: PictureInput::of(target.clone(), Arrangement::ROWS),
                pieces: Vec::new(),
            });
            let alignment = device.info().limits.binding_alignment;
            let (mut place, mut pictures) = (0, Vec::with_capacity(frames.frames.len()));
            for (frame, framing) in frames.frames {
                let Pieces { layout, bytes } = Pieces::of(frame)?;
                let mut buffers = Vec::with_capacity(bytes.len());
                for bytes in bytes {
                    let buffer = piece(device, &mut own.pieces, place, bytes.len() as u64)?;
                    place += 1;
                    device.write(&buffer.whole(), bytes)?;
                    buffers.push(buffer);
                }
                let planes = (0..layout.format().planes())
                    .filter_map(|plane| buffers.get(plane.min(buffers.len() - 1)))
                    .map(|buffer| Ok(Adopted::own(buffer.clone())));
                pictures.push((PictureMedia::buffers(&port.name, planes, layout, alignment)?, *framing));
            }
            let shown = ShownPictures { pictures, colours: frames.colours };
            let recording = own.input.recording(device, port, shown).await;
            lock(&self.0).insert(index, own);
            device.submit(&*recording?)?;
        }
        Ok(())
    }
}

/// The memory of a piece, of at least so many bytes.
fn piece(device: &dyn Device, pieces: &mut Vec<Buffer>, place: usize, bytes: u64) -> Result<Buffer> {
    match pieces.get(place) {
        Some(known) if known.bytes() >= bytes => Ok(known.clone()),
        _ => {
            let fresh = device.alloc(bytes, Memory::Device)?;
            match pieces.get_mut(place) {
                Some(small) => *small = fresh.clone(),
                None => pieces.push(fresh.clone()),
            }
            Ok(fresh)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::frame::PixelFormat;

    /// The pieces' bytes, and where each plane begins in its piece.
    fn pieces(frame: &Frame<&[u8]>) -> (Vec<usize>, Vec<u64>) {
        let Pieces { layout, bytes } = Pieces::of(frame).expect("pieces");
        let begins = (0..layout.format().planes()).filter_map(|plane| layout.plane(plane));
        (bytes.iter().map(|bytes| bytes.len()).collect(), begins.map(|place| place.offset).collect())
    }

    #[test]
    fn a_gap_between_planes_is_not_uploaded() {
        let layout = FrameLayout::new(PixelFormat::Nv12, [8, 4]).expect("a layout");
        let memory = vec![1; 1 << 12];
        let placed = |first, second| {
            let places = [FramePlane::new(first, 8), FramePlane::new(second, 8)];
            pieces(&Frame::new(&memory[..], layout.planes(&places).expect("a layout")))
        };
        // Rows that pad the luma go along; 48 bytes are the planes' own.
        assert_eq!(placed(0, 32), (vec![48], vec![0, 32]));
        assert_eq!(placed(100, 180), (vec![96], vec![0, 80]));
        // In either order.
        assert_eq!(placed(181, 100), (vec![32, 16], vec![0, 0]));
        assert_eq!(placed(0, 4080), (vec![32, 16], vec![0, 0]));
    }
}
