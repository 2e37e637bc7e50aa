//! An application that owns its wgpu device and submits itself: Diptych only records.
//!
//! The application's picture is already in a GPU buffer, which the network reads where it lies; one command encoder
//! carries the network, and a copy of the result into a buffer that the host maps.

use anyhow::Context as _;
use diptych::{
    Activation, Context, Conv2d, Extras, Graph, HostTensor, Padding, Session, SessionOptions, Shape, wgpu,
};

fn main() -> anyhow::Result<()> {
    // The application's own set-up.
    let instance = wgpu::Instance::default();
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))?;
    let (required_features, required_limits) = Context::wgpu_requirements(&adapter);
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("the application's device"),
        required_features,
        required_limits,
        ..Default::default()
    }))?;

    // A network: a 3x3 mean filter over one channel, then a rectifier.
    let shape = Shape::nhwc(1, 64, 64, 1);
    let mut graph = Graph::new();
    let x = graph.input("picture", shape)?;
    let mean = HostTensor::new(Shape::nhwc(1, 3, 3, 1), vec![1.0 / 9.0; 9])?;
    let options = Conv2d { padding: Padding::Same, activation: Activation::Relu, ..Default::default() };
    let y = graph.conv2d("mean", x, mean, Extras::default(), options)?;
    graph.output(y)?;

    let context = Context::from_wgpu(&adapter, device.clone(), queue.clone())?;
    println!("{}", context.info());
    let mut session = Session::new(&context, &graph, SessionOptions::default())?;

    // The application's buffers and its one submission.
    let bytes = 4 * shape.elements() as u64;
    let buffer = |label, usage| {
        let descriptor =
            wgpu::BufferDescriptor { label: Some(label), size: bytes, usage, mapped_at_creation: false };
        device.create_buffer(&descriptor)
    };
    // The picture is bound as it is. A buffer that the host maps cannot be, so the result is copied there.
    let picture = buffer("picture", wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST);
    let result = buffer("result", wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ);
    let pixels: Vec<f32> = (0..shape.elements()).map(|i| ((i / 64) as f32 * 0.04).sin()).collect();
    queue.write_buffer(&picture, 0, bytemuck::cast_slice(&pixels));
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    session.encode(&mut encoder, &[("picture", &picture)], &[("mean", &result)])?;
    queue.submit([encoder.finish()]);

    // The application waits when it wants to.
    result.slice(..).map_async(wgpu::MapMode::Read, |_| {});
    device.poll(wgpu::PollType::wait_indefinitely())?;
    let view = result.slice(..).get_mapped_range()?;
    let values: Vec<f32> = bytemuck::pod_collect_to_vec(&view);
    let middle = values.get(32 * 64 + 32).context("a pixel in the middle")?;
    let wanted = ([31.0f32, 32.0, 33.0].iter().map(|row| (row * 0.04).sin()).sum::<f32>() / 3.0).max(0.0);
    anyhow::ensure!((middle - wanted).abs() < 1e-5, "the middle is {middle}, wanted {wanted}");
    println!("the mean in the middle is {middle:.6}, as it should be");
    Ok(())
}
