//! Video frames as the library takes them. This is the only place that knows which formats it has.

use crate::failure::Failure;
use crate::planes;
use diptych::{ChromaSiting, ColourMatrix, ColourRange, Frame, FrameLayout, FramePlane, PixelFormat};
use gst_video::prelude::*;
use gst_video::{VideoChromaSite, VideoColorMatrix, VideoColorRange, VideoFormat, VideoFrameRef, VideoInfo};

/// What `diptychinfer` takes. The library reads luma and chroma where they lie, so that no `videoconvert` is needed for them.
pub(super) const FORMATS: [(VideoFormat, PixelFormat); 12] = [
    (VideoFormat::Rgb, PixelFormat::Rgb8),
    (VideoFormat::Bgr, PixelFormat::Bgr8),
    (VideoFormat::Rgba, PixelFormat::Rgba8),
    (VideoFormat::Bgra, PixelFormat::Bgra8),
    (VideoFormat::Rgbx, PixelFormat::Rgba8),
    (VideoFormat::Bgrx, PixelFormat::Bgra8),
    (VideoFormat::Nv12, PixelFormat::Nv12),
    (VideoFormat::Nv21, PixelFormat::Nv21),
    (VideoFormat::I420, PixelFormat::I420),
    (VideoFormat::Yuy2, PixelFormat::Yuyv),
    (VideoFormat::Uyvy, PixelFormat::Uyvy),
    (VideoFormat::Gray8, PixelFormat::Gray8),
];

/// How frames of these caps lie in memory, and what their luma and chroma mean.
pub(super) fn layout(info: &VideoInfo) -> Result<FrameLayout, Failure> {
    let found = FORMATS.iter().find(|(format, _)| *format == info.format());
    let (_, format) = found.ok_or_else(|| {
        let wanted: Vec<_> = FORMATS.iter().map(|(format, _)| format.to_str().as_str()).collect();
        Failure::setting(format!("format: found {}, wanted one of {}", info.format(), wanted.join(", ")))
    })?;
    let colorimetry = info.colorimetry();
    let matrix = match colorimetry.matrix() {
        VideoColorMatrix::Bt709 | VideoColorMatrix::Smpte240m => ColourMatrix::Bt709,
        VideoColorMatrix::Bt2020 => ColourMatrix::Bt2020,
        _ => ColourMatrix::Bt601,
    };
    // GRAY8 has full range unless the caps say otherwise.
    let range = match (colorimetry.range(), format) {
        (VideoColorRange::Range0_255, _) | (VideoColorRange::Unknown, PixelFormat::Gray8) => {
            ColourRange::Full
        }
        _ => ColourRange::Video,
    };
    let site = info.chroma_site();
    let siting = match (site.contains(VideoChromaSite::H_COSITED), site.contains(VideoChromaSite::V_COSITED))
    {
        (true, true) => ChromaSiting::TopLeft,
        (true, false) => ChromaSiting::Left,
        _ => ChromaSiting::Centre,
    };
    let layout = FrameLayout::new(*format, [info.width(), info.height()])?;
    Ok(layout.matrix(matrix).range(range).siting(siting))
}

/// A mapped frame of such a layout. Each plane begins where the buffer says, with the strides that it says.
pub(super) fn frame<'a>(
    frame: &'a VideoFrameRef<&gst::BufferRef>,
    layout: FrameLayout,
) -> Result<Frame<&'a [u8]>, Failure> {
    let count = layout.format().planes();
    let strides = frame.plane_stride().iter().take(count).map(|&stride| {
        let stride = u32::try_from(stride);
        stride.map(|stride| FramePlane::new(0, stride)).map_err(|_| {
            let found = frame.plane_stride();
            Failure::setting(format!("strides: found {found:?}, wanted positive numbers of bytes"))
        })
    });
    let strides = strides.collect::<Result<Vec<_>, _>>()?;
    let planes = (0..count).map(|plane| planes::read(frame, plane)).collect::<Result<Vec<_>, _>>()?;
    Ok(Frame::of_planes(&planes, layout.planes(&strides)?)?)
}
