//! The example `camera` in a window: each frame is one submission, the application's, from the camera's picture to the
//! skeleton on the screen, and the host sees none of it.
//!
//!     cargo run --release --package diptych-camera-window [-- FRAMES [PICTURE]]
//!
//! With FRAMES the window closes after so many. With PICTURE what it showed last is written there as a PNG, and compared
//! with the same frame drawn into a texture.

#[path = "../../camera/gpu.rs"]
mod gpu;
#[path = "../../camera/pose.rs"]
mod pose;

use anyhow::{Context as _, Result, bail, ensure};
use diptych::WgpuCalls;
use diptych::{Colours, Context, Fit, Framing, Pictures, Session, SessionOptions, wgpu};
use gpu::{Application, Scene};
use image::RgbaImage;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use winit::application::ApplicationHandler;
use winit::dpi::PhysicalSize;
use winit::event::WindowEvent;
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop};
use winit::window::{Window, WindowId};

/// Width and height of the camera's picture, upright like a telephone's.
const CAMERA: [u32; 2] = [390, 600];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let frames = arguments.next().map(|count| count.parse()).transpose().context("the number of frames")?;
    let picture = arguments.next().map(PathBuf::from);
    let mut camera = Camera { frames, picture, shown: None, failed: None };
    let event_loop = EventLoop::new().context("no window can be opened")?;
    event_loop.set_control_flow(ControlFlow::Poll);
    event_loop.run_app(&mut camera)?;
    camera.failed.map_or(Ok(()), Err)
}

/// The program: what it was asked for, and the window once there is one.
struct Camera {
    /// After how many frames it ends; never without.
    frames: Option<u32>,
    picture: Option<PathBuf>,
    shown: Option<Shown>,
    failed: Option<anyhow::Error>,
}

impl Camera {
    /// Ends the program where something went wrong.
    fn unless_failed(&mut self, event_loop: &ActiveEventLoop, result: Result<bool>) {
        match result {
            Ok(false) => {}
            Ok(true) => event_loop.exit(),
            Err(error) => {
                self.failed = Some(error);
                event_loop.exit();
            }
        }
    }

    /// One frame; whether it was the last.
    fn frame(&mut self) -> Result<bool> {
        let Some(shown) = &mut self.shown else { return Ok(false) };
        let is_last = self.frames.is_some_and(|frames| shown.frame + 1 >= frames);
        if !shown.draw(self.picture.as_deref().filter(|_| is_last))? {
            return Ok(false);
        }
        if is_last {
            shown.finish()?;
        }
        Ok(is_last)
    }
}

impl ApplicationHandler for Camera {
    fn resumed(&mut self, event_loop: &ActiveEventLoop) {
        if self.shown.is_some() {
            return;
        }
        let opened = Shown::new(event_loop).map(|shown| {
            self.shown = Some(shown);
            false
        });
        self.unless_failed(event_loop, opened);
    }

    fn window_event(&mut self, event_loop: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        match event {
            WindowEvent::CloseRequested => event_loop.exit(),
            WindowEvent::Resized(size) => {
                if let Some(shown) = &mut self.shown {
                    shown.resize(size);
                }
            }
            WindowEvent::RedrawRequested => {
                let drawn = self.frame();
                self.unless_failed(event_loop, drawn);
            }
            _ => {}
        }
    }

    fn about_to_wait(&mut self, _: &ActiveEventLoop) {
        if let Some(shown) = &self.shown {
            shown.window.request_redraw();
        }
    }
}

/// A window, and the device that draws into it.
struct Shown {
    window: Arc<Window>,
    surface: wgpu::Surface<'static>,
    configuration: wgpu::SurfaceConfiguration,
    application: Application,
    context: Context,
    session: Session,
    input: String,
    output: String,
    framing: Framing,
    frame: u32,
    /// After the first frame: when, and the library's calls until then.
    warm: Option<(Instant, Option<WgpuCalls>)>,
}

impl Shown {
    fn new(event_loop: &ActiveEventLoop) -> Result<Self> {
        let size = PhysicalSize::new(CAMERA[0], CAMERA[1]);
        let attributes = Window::default_attributes().with_title("Diptych").with_inner_size(size);
        let window = Arc::new(event_loop.create_window(attributes.with_resizable(false))?);
        let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("../posenet/data/people.png");
        let room = image::open(&room).with_context(|| room.display().to_string())?.to_rgba8();

        let instance = wgpu::Instance::default();
        let surface = instance.create_surface(Arc::clone(&window))?;
        let application =
            Application::new(&instance, Some(&surface), CAMERA, &room, &pose::LIMBS, pose::PARTS)?;
        let size = window.inner_size();
        let configuration =
            surface.get_default_config(&application.adapter, size.width.max(1), size.height.max(1));
        let mut configuration = configuration.context("the device cannot show anything in a window")?;
        configuration.format = application.screen.texture().format();
        // For the look at the last frame.
        let usages = surface.get_capabilities(&application.adapter).usages;
        configuration.usage |= usages & wgpu::TextureUsages::COPY_SRC;
        surface.configure(&application.device, &configuration);

        let context =
            Context::from_wgpu(&application.adapter, application.device.clone(), application.queue.clone())?;
        println!("{}", context.info());
        let (graph, input, looked_at) = pose::network()?;
        let session = Session::new(&context, &graph, SessionOptions::default())?;
        let output = session.outputs().last().context("no keypoints")?.name.clone();
        let framing = Framing::new(CAMERA, looked_at)?.fit(Fit::Letterbox);
        let (frame, warm) = (0, None);
        Ok(Shown {
            window,
            surface,
            configuration,
            application,
            context,
            session,
            input,
            output,
            framing,
            frame,
            warm,
        })
    }

    fn resize(&mut self, size: PhysicalSize<u32>) {
        self.configuration.width = size.width.max(1);
        self.configuration.height = size.height.max(1);
        self.surface.configure(&self.application.device, &self.configuration);
    }

    /// Draws a frame, and writes what the window shows to `picture`, if there is one. Whether the window took it.
    fn draw(&mut self, picture: Option<&Path>) -> Result<bool> {
        let shown = match self.surface.get_current_texture() {
            wgpu::CurrentSurfaceTexture::Success(shown) | wgpu::CurrentSurfaceTexture::Suboptimal(shown) => {
                shown
            }
            wgpu::CurrentSurfaceTexture::Timeout | wgpu::CurrentSurfaceTexture::Occluded => return Ok(false),
            wgpu::CurrentSurfaceTexture::Outdated | wgpu::CurrentSurfaceTexture::Lost => {
                self.surface.configure(&self.application.device, &self.configuration);
                return Ok(false);
            }
            wgpu::CurrentSurfaceTexture::Validation => bail!("the window's next picture is not to be had"),
        };
        let (application, screen) = (&self.application, shown.texture.create_view(&Default::default()));
        let mut encoder = application.encoder();
        application.draw_camera(&mut encoder, &Scene::new(pose::camera(self.frame, CAMERA), &self.framing));
        let pictures = [(&application.camera, self.framing)];
        let pictures = Pictures::new(&pictures, Colours::range(-1.0, 1.0));
        self.session.encode(
            &mut encoder,
            &[(&self.input, pictures)],
            &[(&self.output, &application.keypoints)],
        )?;
        application.draw_screen(&mut encoder, &screen);
        if picture.is_some() {
            application.draw_screen(&mut encoder, &application.screen);
        }
        application.queue.submit([encoder.finish()]);
        if let Some(target) = picture {
            save(application, &shown.texture, target)?;
        }
        self.window.pre_present_notify();
        application.queue.present(shown);
        if self.frame == 0 {
            application.device.poll(wgpu::PollType::wait_indefinitely())?;
            self.warm = Some((Instant::now(), self.context.wgpu_calls()));
        }
        self.frame += 1;
        Ok(true)
    }

    /// Says what the frames cost, and fails if the library did more than its dispatches or found no pose.
    fn finish(&self) -> Result<()> {
        self.application.device.poll(wgpu::PollType::wait_indefinitely())?;
        if let Some((begin, calls)) = self.warm.filter(|_| self.frame > 1) {
            println!("each frame but the first took {:.1?}", begin.elapsed() / (self.frame - 1));
            ensure!(self.context.wgpu_calls() == calls, "a frame cost more than its dispatches: {calls:?}");
        }
        pose::check(&self.application.read(&self.application.keypoints)?)
    }
}

/// Writes what the window shows, and compares it with the same frame in a texture.
fn save(application: &Application, shown: &wgpu::Texture, target: &Path) -> Result<()> {
    ensure!(shown.usage().contains(wgpu::TextureUsages::COPY_SRC), "the window's pictures cannot be copied");
    let screen = application.screen.texture();
    let (mut pixels, wanted) = (application.pixels(shown)?, application.pixels(screen)?);
    if shown.size() == screen.size() {
        let other = pixels.iter().zip(&wanted).filter(|(a, b)| a != b).count();
        ensure!(other == 0, "{other} of {} bytes are not those of the frame in a texture", pixels.len());
        println!("the window shows the frame that a texture has, byte for byte");
    }
    let blue_first = [wgpu::TextureFormat::Bgra8Unorm, wgpu::TextureFormat::Bgra8UnormSrgb];
    if blue_first.contains(&shown.format()) {
        pixels.chunks_exact_mut(4).for_each(|pixel| pixel.swap(0, 2));
    }
    let picture =
        RgbaImage::from_raw(shown.width(), shown.height(), pixels).context("as many pixels as the window")?;
    picture.save(target).with_context(|| target.display().to_string())?;
    println!("the last frame is {}", target.display());
    Ok(())
}
