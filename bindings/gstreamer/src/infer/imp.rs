//! `diptychinfer` as a subclass of `GstBaseTransform`.

use super::engine::Engine;
use super::picture;
use super::settings::{FrameFit, NetworkPrecision, Settings, array, numbers};
use crate::failure::Failure;
use crate::tensors::{TensorMeta, Tensors, View};
use diptych::{FrameLayout, Framing};
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::BaseTransformMode;
use gst_base::subclass::base_transform::GenerateOutputSuccess;
use gst_base::subclass::prelude::*;
use gst_video::{VideoFrameRef, VideoInfo};
use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

static CATEGORY: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("diptychinfer", gst::DebugColorFlags::empty(), Some("Neural networks"))
});

/// What belongs to a stream.
#[derive(Default)]
struct State {
    engine: Option<Engine>,
    fit: FrameFit,
    format: Option<Format>,
    /// Buffers whose frames wait for a run.
    waiting: Vec<gst::Buffer>,
    /// Buffers that have their tensors.
    ready: VecDeque<gst::Buffer>,
}

/// What the caps say.
struct Format {
    info: VideoInfo,
    layout: FrameLayout,
    framing: Framing,
}

#[derive(Default)]
pub struct Infer {
    settings: Mutex<Settings>,
    state: Mutex<State>,
    device: Mutex<Option<String>>,
    /// How long a frame waits at most until its run has all of its frames.
    latency: Mutex<gst::ClockTime>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[glib::object_subclass]
impl ObjectSubclass for Infer {
    const NAME: &'static str = "GstDiptychInfer";
    type Type = super::Infer;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for Infer {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(properties);
        &PROPERTIES
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        let mut settings = lock(&self.settings);
        match pspec.name() {
            "model" => settings.model = value.get().unwrap_or_default(),
            "backend" => {
                settings.backend = value.get::<Option<String>>().ok().flatten().unwrap_or("auto".to_owned());
            }
            "precision" => settings.precision = value.get().unwrap_or_default(),
            "batch" => settings.batch = value.get().unwrap_or(1),
            "fit" => settings.fit = value.get().unwrap_or_default(),
            "range" => settings.range = numbers(value),
            "mean" => settings.mean = numbers(value),
            "std" => settings.std = numbers(value),
            "border" => settings.border = numbers(value),
            "bgr" => settings.bgr = value.get().unwrap_or_default(),
            "input-width" => settings.input_width = value.get().unwrap_or_default(),
            "input-height" => settings.input_height = value.get().unwrap_or_default(),
            "outputs" => settings.outputs = value.get().unwrap_or_default(),
            "dequantize" => settings.dequantize = value.get().unwrap_or_default(),
            "record" => settings.record = value.get().unwrap_or_default(),
            "tuning-time" => settings.tuning_time = value.get().unwrap_or_default(),
            "kernel-cache" => settings.kernel_cache = value.get().unwrap_or_default(),
            "threads" => settings.threads = value.get().unwrap_or_default(),
            other => gst::error!(CATEGORY, imp = self, "there is no property {other} to set"),
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        let settings = lock(&self.settings);
        match pspec.name() {
            "model" => settings.model.to_value(),
            "backend" => settings.backend.to_value(),
            "precision" => settings.precision.to_value(),
            "batch" => settings.batch.to_value(),
            "fit" => settings.fit.to_value(),
            "range" => array(&settings.range),
            "mean" => array(&settings.mean),
            "std" => array(&settings.std),
            "border" => array(&settings.border),
            "bgr" => settings.bgr.to_value(),
            "input-width" => settings.input_width.to_value(),
            "input-height" => settings.input_height.to_value(),
            "outputs" => settings.outputs.to_value(),
            "dequantize" => settings.dequantize.to_value(),
            "record" => settings.record.to_value(),
            "tuning-time" => settings.tuning_time.to_value(),
            "kernel-cache" => settings.kernel_cache.to_value(),
            "threads" => settings.threads.to_value(),
            "device" => lock(&self.device).to_value(),
            _ => pspec.default_value().clone(),
        }
    }
}

fn properties() -> Vec<glib::ParamSpec> {
    let text = |name: &'static str, blurb: &'static str| {
        glib::ParamSpecString::builder(name).blurb(blurb).mutable_ready().build()
    };
    let list = |name: &'static str, blurb: &'static str| {
        gst::ParamSpecArray::builder(name).blurb(blurb).mutable_ready().build()
    };
    let count = |name: &'static str, blurb: &'static str| {
        glib::ParamSpecUInt::builder(name).blurb(blurb).mutable_ready()
    };
    let flag = |name: &'static str, blurb: &'static str| {
        glib::ParamSpecBoolean::builder(name).blurb(blurb).mutable_ready().build()
    };
    vec![
        text("model", "The path of a TensorFlow Lite or ONNX file"),
        glib::ParamSpecString::builder("backend")
            .blurb(
                "The device: auto (a GPU, else the CPU), gpu, vulkan, opencl, cpu or fastest; one of several by its number, PCI \
                 address, UUID or a part of its name, as in vulkan:1",
            )
            .default_value(Some("auto"))
            .mutable_ready()
            .build(),
        glib::ParamSpecEnum::builder_with_default("precision", NetworkPrecision::default())
            .blurb("Storage and arithmetic on a GPU")
            .mutable_ready()
            .build(),
        count("batch", "How many frames one run takes; the first waits for the last")
            .minimum(1)
            .maximum(1024)
            .default_value(1)
            .build(),
        glib::ParamSpecEnum::builder_with_default("fit", FrameFit::default())
            .blurb("How a frame is shown to a network whose picture has other proportions")
            .mutable_ready()
            .build(),
        list("range", "<low, high>: what black and white are in the network's picture"),
        list("mean", "<r, g, b>: what is taken from colours from 0 to 1, before they are divided by std"),
        list("std", "<r, g, b>: the standard deviations of colours from 0 to 1"),
        list("border", "<r, g, b>: the colour from 0 to 1 beside the frame, black unless set"),
        flag("bgr", "Whether the network's first channel is blue"),
        count("input-width", "The width of the network's picture where the model leaves it open").build(),
        count("input-height", "The height of the network's picture where the model leaves it open").build(),
        text("outputs", "The names of the outputs that buffers get, with commas between them; all unless set"),
        flag("dequantize", "Whether quantized operators are computed on floats"),
        text("record", "The folder of the tuner's record, as diptych tune writes it; empty for the user's own"),
        glib::ParamSpecDouble::builder("tuning-time")
            .blurb("Seconds at most for tuning what the record does not have, while the element starts")
            .minimum(0.0)
            .maximum(86_400.0)
            .mutable_ready()
            .build(),
        text("kernel-cache", "The folder of compiled kernels; the user's own unless set"),
        count("threads", "Threads of the CPU backend; 0 for as many as there are cores").build(),
        glib::ParamSpecString::builder("device")
            .blurb("The device that runs the network, and why it was chosen; none before the element starts")
            .read_only()
            .build(),
    ]
}

impl GstObjectImpl for Infer {}

impl ElementImpl for Infer {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Diptych inference",
                "Filter/Analyzer/Video",
                "Runs a neural network on each frame, on Vulkan, OpenCL or the CPU, and adds its outputs as metadata",
                "The authors of Diptych",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let formats = picture::FORMATS.into_iter().map(|(format, _)| format);
            crate::pad_templates(&gst_video::VideoCapsBuilder::new().format_list(formats).build())
        });
        &TEMPLATES
    }
}

impl BaseTransformImpl for Infer {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        let engine = Engine::open(&settings).map_err(|failure| failure.message())?;
        gst::info!(CATEGORY, imp = self, "{}", engine.device());
        *lock(&self.device) = Some(engine.device().to_owned());
        *lock(&self.state) = State { engine: Some(engine), fit: settings.fit, ..State::default() };
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.state) = State::default();
        *lock(&self.device) = None;
        *lock(&self.latency) = gst::ClockTime::ZERO;
        Ok(())
    }

    fn set_caps(&self, caps: &gst::Caps, _out: &gst::Caps) -> Result<(), gst::LoggableError> {
        let refused = |failure: Failure| gst::loggable_error!(CATEGORY, "{}", failure.text);
        let info = VideoInfo::from_caps(caps)
            .map_err(|error| gst::loggable_error!(CATEGORY, "caps {caps}: {error}"))?;
        let mut state = lock(&self.state);
        let Some(engine) = &state.engine else {
            return Err(gst::loggable_error!(CATEGORY, "caps came before the element started"));
        };
        let layout = picture::layout(&info).map_err(refused)?;
        let framing = Framing::new([info.width(), info.height()], engine.size());
        let framing = framing.map_err(|error| refused(error.into()))?.fit(state.fit.into());
        let waits = engine.batch() > 1;
        *lock(&self.latency) = waiting_time(engine.batch(), info.fps());
        state.format = Some(Format { info, layout, framing });
        drop(state);
        if waits {
            // Frames that wait for others come later.
            self.post_message(gst::message::Latency::builder().src(&*self.obj()).build());
        }
        Ok(())
    }

    fn query(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        if direction == gst::PadDirection::Src
            && let gst::QueryViewMut::Latency(latency) = query.view_mut()
        {
            let mut upstream = gst::query::Latency::new();
            if !self.obj().sink_pad().peer_query(&mut upstream) {
                return false;
            }
            let (is_live, least, most) = upstream.result();
            // A run may be under way, which holds the state.
            let own = *lock(&self.latency);
            let own_most = most.map(|most| most.saturating_add(own));
            latency.set(is_live, least.saturating_add(own), own_most);
            return true;
        }
        // Upstream wants its buffers back.
        if direction == gst::PadDirection::Sink && query.type_() == gst::QueryType::Drain {
            self.drain().unwrap_or_default();
        }
        BaseTransformImplExt::parent_query(self, direction, query)
    }

    fn propose_allocation(
        &self,
        decided: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        self.parent_propose_allocation(decided, query)?;
        crate::refuse_crops(query);
        // Buffers of frames that wait are kept. A pool that cannot have so many more is not offered.
        let kept = lock(&self.settings).batch.saturating_sub(1);
        let pools: Vec<_> = query.allocation_pools().collect();
        for (place, (pool, size, least, most)) in pools.into_iter().enumerate() {
            let least = least.saturating_add(kept);
            let pool = pool.filter(|_| most == 0 || most >= least);
            let most = if pool.is_some() { most } else { 0 };
            query.set_nth_allocation_pool(place as u32, pool.as_ref(), size, least, most);
        }
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        match event.type_() {
            gst::EventType::FlushStop => {
                let mut state = lock(&self.state);
                state.waiting.clear();
                state.ready.clear();
            }
            // What comes behind frames stays behind them. Who is told of an error: the application of the element's own, and
            // upstream of another element's with the next buffer.
            _ if event.is_serialized() => self.drain().unwrap_or_default(),
            _ => {}
        }
        self.parent_sink_event(event)
    }

    fn generate_output(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        let queued = self.take_queued_buffer();
        let mut state = lock(&self.state);
        if let Some(buffer) = queued {
            state.waiting.push(buffer);
            let batch = state.engine.as_ref().map_or(1, Engine::batch);
            if state.waiting.len() >= batch {
                let result = self.infer(&mut state);
                drop(state);
                // Whoever is told may ask this element something.
                result.map_err(|failure| failure.post(self))?;
                state = lock(&self.state);
            }
        }
        Ok(state.ready.pop_front().map_or(GenerateOutputSuccess::NoOutput, GenerateOutputSuccess::Buffer))
    }
}

impl Infer {
    /// Runs the network on the frames that wait.
    fn infer(&self, state: &mut State) -> Result<(), Failure> {
        let buffers = std::mem::take(&mut state.waiting);
        if buffers.is_empty() {
            return Ok(());
        }
        let (Some(engine), Some(format)) = (&mut state.engine, &state.format) else {
            return Err(Failure::model("found a frame before its caps, wanted caps of raw video"));
        };
        let tensors = run(engine, format, &self.obj().name(), &buffers)?;
        let [width, height] = engine.size();
        let view = View {
            input: [width, height],
            frame: format.framing.source(),
            to_frame: format.framing.matrix(),
        };
        for (mut buffer, tensors) in buffers.into_iter().zip(tensors) {
            let target = buffer.make_mut();
            #[cfg(feature = "v1_26")]
            crate::analytics::add_tensors(target, &tensors);
            TensorMeta::add(target, tensors, view);
            state.ready.push_back(buffer);
        }
        Ok(())
    }

    /// Runs the network on the frames that wait for others, and sends all on.
    fn drain(&self) -> Result<(), gst::FlowError> {
        let mut state = lock(&self.state);
        let result = self.infer(&mut state);
        let ready = std::mem::take(&mut state.ready);
        drop(state);
        result.map_err(|failure| failure.post(self))?;
        ready.into_iter().try_for_each(|buffer| self.obj().src_pad().push(buffer).map(|_| ()))
    }
}

/// How long the first of `batch` frames waits for the last. A stream without a rate has no latency that is known.
fn waiting_time(batch: usize, fps: gst::Fraction) -> gst::ClockTime {
    match (u64::try_from(fps.numer()), u64::try_from(fps.denom())) {
        (Ok(numer), Ok(denom)) if numer > 0 => {
            let frame = gst::ClockTime::SECOND.mul_div_round(denom, numer).unwrap_or_default();
            frame.saturating_mul((batch as u64).saturating_sub(1))
        }
        _ => gst::ClockTime::ZERO,
    }
}

fn run(
    engine: &mut Engine,
    format: &Format,
    name: &str,
    buffers: &[gst::Buffer],
) -> Result<Vec<Tensors>, Failure> {
    let mut mapped = Vec::with_capacity(buffers.len());
    for buffer in buffers {
        let frame = VideoFrameRef::from_buffer_ref_readable(buffer, &format.info).map_err(|error| {
            let (found, info) = (buffer.size(), &format.info);
            Failure::model(format!("a buffer of {found} bytes, wanted a frame of {info:?}: {error}"))
        })?;
        mapped.push(frame);
    }
    let frame = |frame| Ok((picture::frame(frame, format.layout)?, format.framing));
    let frames = mapped.iter().map(frame).collect::<Result<Vec<_>, Failure>>()?;
    engine.run(name, &frames)
}
