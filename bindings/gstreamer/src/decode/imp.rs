//! `diptychdecode` as a subclass of `GstBaseTransform`.

use super::{OutputFormat, read, regions};
use crate::failure::{Failure, Kind};
use crate::tensors::TensorMeta;
use diptych_decode::{Decoded, Limits};
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::BaseTransformMode;
use gst_base::subclass::prelude::*;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// What the properties say.
#[derive(Debug, Clone)]
struct Settings {
    format: OutputFormat,
    network: Option<String>,
    labels: Option<String>,
    threshold: f32,
    overlap: f32,
    count: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let limits = Limits::default();
        Settings {
            format: OutputFormat::default(),
            network: None,
            labels: None,
            threshold: limits.score_threshold,
            overlap: limits.iou_threshold,
            count: limits.count as u32,
        }
    }
}

#[derive(Default)]
pub struct Decode {
    settings: Mutex<Settings>,
    /// The lines of the file of labels.
    labels: Mutex<Arc<[String]>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[glib::object_subclass]
impl ObjectSubclass for Decode {
    const NAME: &'static str = "GstDiptychDecode";
    type Type = super::Decode;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for Decode {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let defaults = Settings::default();
            let share = |name: &'static str, blurb: &'static str, default: f32| {
                glib::ParamSpecFloat::builder(name)
                    .blurb(blurb)
                    .minimum(0.0)
                    .maximum(1.0)
                    .default_value(default)
                    .mutable_playing()
                    .build()
            };
            vec![
                glib::ParamSpecEnum::builder_with_default("format", OutputFormat::default())
                    .blurb("What the network's outputs are")
                    .mutable_ready()
                    .build(),
                glib::ParamSpecString::builder("network")
                    .blurb("The name of the diptychinfer whose outputs are decoded; the last one's unless set")
                    .mutable_ready()
                    .build(),
                glib::ParamSpecString::builder("labels")
                    .blurb("The path of a file with the name of a class in each line; those of the model's file unless set")
                    .mutable_ready()
                    .build(),
                share("threshold", "The least score of what counts as found", defaults.threshold),
                share(
                    "iou-threshold",
                    "Boxes whose intersection over union is more are about the same thing",
                    defaults.overlap,
                ),
                glib::ParamSpecUInt::builder("max-detections")
                    .blurb("How many are found at most; with 1 a PoseNet looks for one person, without displacements")
                    .minimum(1)
                    .default_value(defaults.count)
                    .mutable_playing()
                    .build(),
            ]
        });
        &PROPERTIES
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        let mut settings = lock(&self.settings);
        match pspec.name() {
            "format" => settings.format = value.get().unwrap_or_default(),
            "network" => settings.network = value.get().unwrap_or_default(),
            "labels" => settings.labels = value.get().unwrap_or_default(),
            "threshold" => settings.threshold = value.get().unwrap_or_default(),
            "iou-threshold" => settings.overlap = value.get().unwrap_or_default(),
            "max-detections" => settings.count = value.get().unwrap_or(1),
            _ => {}
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        let settings = lock(&self.settings);
        match pspec.name() {
            "format" => settings.format.to_value(),
            "network" => settings.network.to_value(),
            "labels" => settings.labels.to_value(),
            "threshold" => settings.threshold.to_value(),
            "iou-threshold" => settings.overlap.to_value(),
            "max-detections" => settings.count.to_value(),
            _ => pspec.default_value().clone(),
        }
    }
}

impl GstObjectImpl for Decode {}

impl ElementImpl for Decode {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Diptych decoder of networks' outputs",
                "Filter/Analyzer/Video",
                "Makes boxes, keypoints and masks of the outputs that diptychinfer adds",
                "The authors of Diptych",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            // It looks at no pixel.
            let caps = gst::Caps::builder("video/x-raw").any_features().build();
            crate::pad_templates(&caps)
        });
        &TEMPLATES
    }
}

impl BaseTransformImpl for Decode {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let path = lock(&self.settings).labels.clone().filter(|path| !path.is_empty());
        *lock(&self.labels) = match path {
            None => Arc::default(),
            Some(path) => {
                let text = std::fs::read_to_string(&path).map_err(|error| {
                    Failure { kind: Kind::Missing, text: format!("labels: {path}: {error}") }.message()
                })?;
                text.lines().map(|line| line.trim().to_owned()).collect()
            }
        };
        Ok(())
    }

    fn transform_ip(&self, buffer: &mut gst::BufferRef) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.decode(buffer).map_err(|failure| failure.post(self))?;
        Ok(gst::FlowSuccess::Ok)
    }
}

impl Decode {
    fn decode(&self, buffer: &mut gst::BufferRef) -> Result<(), Failure> {
        let settings = lock(&self.settings).clone();
        let is_wanted = |network: &str| settings.network.as_deref().is_none_or(|wanted| wanted == network);
        let metas = buffer.iter_meta::<TensorMeta>().map(|meta| (meta.tensors(), meta.view()));
        // What another decoder found is no output of a network.
        let is_found = |tensors: &crate::Tensors| {
            let mut names = tensors.all().iter().map(|tensor| tensor.name.as_str());
            names.all(|name| name == regions::MASK || name == regions::REGIONS)
        };
        let found = metas.filter(|(tensors, _)| is_wanted(tensors.network()) && !is_found(tensors)).last();
        // A frame that no network saw goes on as it is.
        let Some((tensors, view)) = found else { return Ok(()) };
        let own = Arc::clone(&lock(&self.labels));
        let labels = match own.is_empty() {
            true => tensors.all().first().map(|tensor| Arc::clone(&tensor.labels)).unwrap_or_default(),
            false => own,
        };
        let limits = Limits {
            score_threshold: settings.threshold,
            iou_threshold: settings.overlap,
            count: settings.count as usize,
        };
        let name = self.obj().name();
        match read(&tensors, &view, settings.format, labels.len(), &limits)? {
            Decoded::Detections(detections) => {
                let _added = regions::add_detections(buffer, &name, &detections, view, labels)?;
                #[cfg(feature = "v1_24")]
                crate::analytics::add_regions(buffer, &_added, view.frame)?;
            }
            Decoded::Mask(mask) => regions::add_mask(buffer, &name, mask, view, labels)?,
        }
        Ok(())
    }
}
