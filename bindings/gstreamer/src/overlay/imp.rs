//! `diptychoverlay` as a subclass of `GstVideoFilter`.

use super::canvas::Canvas;
use super::draw::{self, Style};
use crate::decode::{MASK, regions};
use crate::planes;
use crate::tensors::TensorMeta;
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::BaseTransformMode;
use gst_base::subclass::prelude::*;
use gst_video::prelude::*;
use gst_video::subclass::prelude::*;
use gst_video::{VideoFormat, VideoFrameRef, VideoInfo};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

const FORMATS: [VideoFormat; 10] = [
    VideoFormat::Rgb,
    VideoFormat::Bgr,
    VideoFormat::Rgba,
    VideoFormat::Bgra,
    VideoFormat::Argb,
    VideoFormat::Abgr,
    VideoFormat::Rgbx,
    VideoFormat::Bgrx,
    VideoFormat::Xrgb,
    VideoFormat::Xbgr,
];

#[derive(Default)]
pub struct Overlay {
    style: Mutex<Style>,
    /// Width and height of a frame, as the caps say.
    size: Mutex<[usize; 2]>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Overlay {
    fn style(&self) -> MutexGuard<'_, Style> {
        lock(&self.style)
    }
}

#[glib::object_subclass]
impl ObjectSubclass for Overlay {
    const NAME: &'static str = "GstDiptychOverlay";
    type Type = super::Overlay;
    type ParentType = gst_video::VideoFilter;
}

impl ObjectImpl for Overlay {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let defaults = Style::default();
            let flag = |name: &'static str, blurb: &'static str| {
                glib::ParamSpecBoolean::builder(name)
                    .blurb(blurb)
                    .default_value(true)
                    .mutable_playing()
                    .build()
            };
            let number = |name: &'static str, blurb: &'static str, most: f32, default: f32| {
                glib::ParamSpecFloat::builder(name)
                    .blurb(blurb)
                    .minimum(0.0)
                    .maximum(most)
                    .default_value(default)
                    .mutable_playing()
                    .build()
            };
            vec![
                flag("boxes", "Whether boxes are drawn"),
                flag("keypoints", "Whether points are drawn, and the limbs of people"),
                flag("masks", "Whether masks are drawn"),
                number(
                    "line-width",
                    "In pixels; 0 for a width that suits the frame",
                    100.0,
                    defaults.line_width,
                ),
                number(
                    "keypoint-threshold",
                    "The least score of points that are drawn",
                    1.0,
                    defaults.threshold,
                ),
                number("mask-opacity", "1 hides what lies under a mask", 1.0, defaults.mask_opacity),
            ]
        });
        &PROPERTIES
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        let mut style = self.style();
        match pspec.name() {
            "boxes" => style.boxes = value.get().unwrap_or(true),
            "keypoints" => style.keypoints = value.get().unwrap_or(true),
            "masks" => style.masks = value.get().unwrap_or(true),
            "line-width" => style.line_width = value.get().unwrap_or_default(),
            "keypoint-threshold" => style.threshold = value.get().unwrap_or_default(),
            "mask-opacity" => style.mask_opacity = value.get().unwrap_or_default(),
            _ => {}
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        let style = self.style();
        match pspec.name() {
            "boxes" => style.boxes.to_value(),
            "keypoints" => style.keypoints.to_value(),
            "masks" => style.masks.to_value(),
            "line-width" => style.line_width.to_value(),
            "keypoint-threshold" => style.threshold.to_value(),
            "mask-opacity" => style.mask_opacity.to_value(),
            _ => pspec.default_value().clone(),
        }
    }
}

impl GstObjectImpl for Overlay {}

impl ElementImpl for Overlay {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Diptych overlay",
                "Filter/Editor/Video",
                "Draws the boxes, keypoints and masks that diptychdecode found",
                "The authors of Diptych",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            crate::pad_templates(&gst_video::VideoCapsBuilder::new().format_list(FORMATS).build())
        });
        &TEMPLATES
    }
}

impl BaseTransformImpl for Overlay {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn propose_allocation(
        &self,
        decided: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        self.parent_propose_allocation(decided, query)?;
        crate::refuse_crops(query);
        Ok(())
    }
}

impl VideoFilterImpl for Overlay {
    fn set_info(
        &self,
        _caps: &gst::Caps,
        info: &VideoInfo,
        _out_caps: &gst::Caps,
        _out: &VideoInfo,
    ) -> Result<(), gst::LoggableError> {
        *lock(&self.size) = [info.width() as usize, info.height() as usize];
        Ok(())
    }

    fn transform_frame_ip(
        &self,
        frame: &mut VideoFrameRef<&mut gst::BufferRef>,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let style = self.style().clone();
        let found = regions(frame.buffer());
        let metas = frame.buffer().iter_meta::<TensorMeta>();
        let masks: Vec<_> = metas.map(|meta| (meta.tensors(), meta.view())).collect();
        let info = frame.info().clone();
        let offsets = [0, 1, 2].map(|component| info.comp_poffset(component) as usize);
        let strides = (usize::try_from(info.comp_pstride(0)), frame.plane_stride().first().copied());
        let (Ok(step), Some(stride)) = strides else { return Err(gst::FlowError::NotSupported) };
        let stride = usize::try_from(stride).map_err(|_| gst::FlowError::NotSupported)?;
        // The mapped frame has the extents that the buffer's metadata tell, which may count padding.
        let [width, height] = *lock(&self.size);
        let data = planes::write(frame, 0).map_err(|failure| failure.post(self))?;
        let mut canvas = Canvas { data, stride, step, offsets, width, height };
        let masks = masks.iter().filter(|_| style.masks);
        for (tensors, view) in masks {
            for tensor in tensors.all().iter().filter(|tensor| tensor.name == MASK) {
                if let (&[height, width], Some(classes)) =
                    (tensor.data.dims().extents(), tensor.data.elements::<u8>())
                {
                    draw::mask(&mut canvas, classes, [height, width], view, &style);
                }
            }
        }
        // The surest comes last, on top.
        found.iter().rev().for_each(|region| draw::region(&mut canvas, region, &style));
        Ok(gst::FlowSuccess::Ok)
    }
}
