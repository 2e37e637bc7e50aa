//! An application that owns its OpenCL context and queue: Diptych enqueues between its own work.

use anyhow::Context as _;
use diptych::opencl3::command_queue::CommandQueue;
use diptych::opencl3::context::Context as ClContext;
use diptych::opencl3::device::{CL_DEVICE_TYPE_ALL, Device, get_all_devices};
use diptych::{Context, HostTensor, Pointwise, Shape};

fn main() -> anyhow::Result<()> {
    // Finds the library where the system keeps it, and says what was tried if it is not there.
    Context::load_opencl()?;

    // The application's own set-up.
    let id = *get_all_devices(CL_DEVICE_TYPE_ALL)?.first().context("no OpenCL device")?;
    let device = Device::new(id);
    let cl_context = ClContext::from_device(&device)?;
    let queue = CommandQueue::create_default(&cl_context, 0)?;

    let context = Context::from_opencl(&cl_context, &device, &queue)?;
    println!("{}", context.info());
    let x = HostTensor::new(Shape::nhwc(1, 1, 2, 3), vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    let sums = HostTensor::new(Shape::nhwc(2, 1, 1, 3), vec![1.0, 1.0, 1.0, 1.0, 0.0, -1.0])?;
    let y = context.pointwise(&x, &sums, None, &Pointwise::default())?;
    println!("sums and differences: {:?}", y.to_f32());
    anyhow::ensure!(*y.to_f32() == [6.0, -2.0, 15.0, -2.0], "wrong sums");
    Ok(())
}
