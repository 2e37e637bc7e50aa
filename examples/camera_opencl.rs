//! The example `camera` on OpenCL: on the application's own context and queue, with its own images and buffers, a moving
//! picture is drawn, PoseNet runs on it, and the skeleton is drawn from the keypoints. Nothing waits and nothing is read
//! before the last frame.
//!
//!     cargo run --release --example camera_opencl [-- FRAMES [PICTURE]]

#[path = "camera/pose.rs"]
mod pose;

use anyhow::{Context as _, Result, anyhow};
use diptych::opencl3::command_queue::CommandQueue;
use diptych::opencl3::context::Context as ClContext;
use diptych::opencl3::device::{CL_DEVICE_TYPE_ALL, Device, get_all_devices};
use diptych::opencl3::kernel::{ExecuteKernel, Kernel};
use diptych::opencl3::memory::{
    Buffer, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, CL_RGBA,
    CL_UNORM_INT8, Image,
};
use diptych::opencl3::program::Program;
use diptych::opencl3::types::{CL_BLOCKING, cl_float, cl_image_desc, cl_image_format, cl_uchar, cl_uint};
use diptych::{Colours, Context, Fit, Framing, Pictures, Session, SessionOptions};
use image::RgbaImage;
use std::path::PathBuf;
use std::ptr;
use std::time::Instant;

/// Width and height of the camera's picture.
const CAMERA: [u32; 2] = [390, 600];

/// The application's own drawing: what the camera sees, and a skeleton over it.
const DRAWING: &str = "
__constant sampler_t linear = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;

__kernel void seen(__read_only image2d_t room, __write_only image2d_t camera, float8 view) {
    int2 pixel = (int2)(get_global_id(0), get_global_id(1));
    float2 from_middle = convert_float2(pixel) + 0.5f - 0.5f * view.s67;
    float2 at = view.s01 + view.s23 * from_middle.x + view.s45 * from_middle.y;
    write_imagef(camera, pixel, read_imagef(room, linear, at));
}

__kernel void skeleton(__read_only image2d_t camera, __global const float4* keypoints, __global const uint2* limbs,
                       uint count, float8 to_screen, __global uchar4* screen) {
    int2 pixel = (int2)(get_global_id(0), get_global_id(1));
    float2 here = convert_float2(pixel) + 0.5f;
    float4 colour = read_imagef(camera, pixel);
    for (uint i = 0; i < count; i++) {
        float4 a = keypoints[limbs[i].x], b = keypoints[limbs[i].y];
        float2 from = a.x * to_screen.s04 + a.y * to_screen.s15 + to_screen.s26;
        float2 to = b.x * to_screen.s04 + b.y * to_screen.s15 + to_screen.s26;
        float2 along = to - from;
        float part = clamp(dot(here - from, along) / max(dot(along, along), 1e-6f), 0.0f, 1.0f);
        if (min(a.z, b.z) > 0.3f && distance(here, from + part * along) < 2.5f)
            colour = (limbs[i].x & limbs[i].y & 1) ? (float4)(1.0f, 0.35f, 0.2f, 1.0f) : (float4)(0.1f, 0.9f, 1.0f, 1.0f);
    }
    screen[pixel.x + get_global_size(0) * pixel.y] = convert_uchar4_sat_rte(255.0f * colour);
}
";

/// An image of four bytes a pixel.
fn picture(context: &ClContext, flags: u64, [width, height]: [u32; 2]) -> Result<Image> {
    let format = cl_image_format { image_channel_order: CL_RGBA, image_channel_data_type: CL_UNORM_INT8 };
    let shape = cl_image_desc {
        image_type: CL_MEM_OBJECT_IMAGE2D,
        image_width: width as usize,
        image_height: height as usize,
        image_depth: 0,
        image_array_size: 0,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: ptr::null_mut(),
    };
    // SAFETY: no host memory is handed over.
    Ok(unsafe { Image::create(context, flags, &format, &shape, ptr::null_mut()) }?)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let frames: u32 =
        arguments.next().map_or(Ok(60), |count| count.parse()).context("the number of frames")?;
    let target = arguments.next().map_or_else(|| PathBuf::from("camera_opencl.png"), PathBuf::from);
    let room = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/posenet/data/people.png");
    let mut room = image::open(&room).with_context(|| room.display().to_string())?.to_rgba8();

    // The application's own set-up.
    Context::load_opencl()?;
    let device = Device::new(*get_all_devices(CL_DEVICE_TYPE_ALL)?.first().context("no OpenCL device")?);
    let cl_context = ClContext::from_device(&device)?;
    let queue = CommandQueue::create_default(&cl_context, 0)?;
    let program = Program::create_and_build_from_source(&cl_context, DRAWING, "");
    let program = program.map_err(|log| anyhow!("the drawing does not compile: {log}"))?;
    let (seen, skeleton) = (Kernel::create(&program, "seen")?, Kernel::create(&program, "skeleton")?);
    let mut room_image = picture(&cl_context, CL_MEM_READ_ONLY, room.dimensions().into())?;
    let camera = picture(&cl_context, CL_MEM_READ_WRITE, CAMERA)?;
    let (origin, region) = ([0, 0, 0], [room.width() as usize, room.height() as usize, 1]);
    let from = room.as_flat_samples_mut().samples.as_mut_ptr().cast();
    // SAFETY: the write waits, and the pixels are as many as the region has.
    unsafe {
        queue.enqueue_write_image(
            &mut room_image,
            CL_BLOCKING,
            origin.as_ptr(),
            region.as_ptr(),
            0,
            0,
            from,
            &[],
        )
    }?;
    let pixels = (CAMERA[0] * CAMERA[1]) as usize;
    // SAFETY: no host memory is handed over.
    let (keypoints, mut limbs, screen) = unsafe {
        (
            Buffer::<cl_float>::create(&cl_context, CL_MEM_READ_WRITE, 4 * pose::PARTS, ptr::null_mut())?,
            Buffer::<cl_uint>::create(&cl_context, CL_MEM_READ_ONLY, 2 * pose::LIMBS.len(), ptr::null_mut())?,
            Buffer::<cl_uchar>::create(&cl_context, CL_MEM_WRITE_ONLY, 4 * pixels, ptr::null_mut())?,
        )
    };
    // SAFETY: the write waits.
    unsafe { queue.enqueue_write_buffer(&mut limbs, CL_BLOCKING, 0, pose::LIMBS.as_flattened(), &[]) }?;

    let context = Context::from_opencl(&cl_context, &device, &queue)?;
    println!("{}", context.info());
    let (graph, input, looked_at) = pose::network()?;
    let mut session = Session::new(&context, &graph, SessionOptions::default())?;
    let output = session.outputs().last().context("no keypoints")?.name.clone();
    let framing = Framing::new(CAMERA, looked_at)?.fit(Fit::Letterbox);
    let [[ax, bx, cx], [ay, by, cy]] = framing.matrix();
    let to_screen = [ax, bx, cx, 0.0, ay, by, cy, 0.0].map(|number| number as f32);
    let size = CAMERA.map(|extent| extent as usize);

    let (start, mut warm) = (Instant::now(), Instant::now());
    for frame in 0..frames.max(1) {
        let [middle, across, down] = pose::camera(frame, CAMERA);
        let extent = CAMERA.map(|extent| extent as f32);
        let numbers: Vec<f32> = [middle, across, down, extent].concat();
        let view: [f32; 8] = numbers.try_into().map_err(|_| anyhow!("eight numbers"))?;
        // SAFETY: the arguments are those of the kernel, and the images live as long as the queue's work.
        unsafe {
            let mut drawing = ExecuteKernel::new(&seen);
            drawing.set_arg(&room_image).set_arg(&camera).set_arg(&view);
            drawing.set_global_work_sizes(&size).enqueue_nd_range(&queue)?;
        }
        let pictures = [(&camera, framing)];
        let pictures = Pictures::new(&pictures, Colours::range(-1.0, 1.0));
        session.enqueue(&[(&input, pictures)], &[(&output, &keypoints)])?;
        let count = pose::LIMBS.len() as cl_uint;
        // SAFETY: as above.
        unsafe {
            let mut drawing = ExecuteKernel::new(&skeleton);
            drawing.set_arg(&camera).set_arg(&keypoints).set_arg(&limbs).set_arg(&count).set_arg(&to_screen);
            drawing.set_arg(&screen).set_global_work_sizes(&size).enqueue_nd_range(&queue)?;
        }
        if frame == 0 {
            queue.finish()?;
            warm = Instant::now();
        }
    }
    queue.finish()?;
    println!(
        "the first frame took {:.1?}, the other {} {:.1?}",
        warm - start,
        frames.saturating_sub(1),
        warm.elapsed()
    );

    // The film is over: now the host looks.
    let (mut found, mut shown) = (vec![0.0; 4 * pose::PARTS], vec![0; 4 * pixels]);
    // SAFETY: the reads wait.
    unsafe {
        queue.enqueue_read_buffer(&keypoints, CL_BLOCKING, 0, &mut found, &[])?;
        queue.enqueue_read_buffer(&screen, CL_BLOCKING, 0, &mut shown, &[])?;
    }
    let shown = RgbaImage::from_raw(CAMERA[0], CAMERA[1], shown).context("as many pixels as the screen")?;
    shown.save(&target).with_context(|| target.display().to_string())?;
    println!("the last frame is {}", target.display());
    pose::check(&found)
}
