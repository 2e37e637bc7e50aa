//! What it takes to change the layout of a feature map between buffers and images, which only OpenCL has.

use crate::clock::Instant;
use crate::device::{Device, Dispatch, Memory, Resource, compile_planned};
use crate::dtype::Precision;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::Op;
use crate::ops::convert::ConvertOp;
use crate::shape::Shape;
use crate::tune::work_group::{WorkGroup, untuned};
use std::time::Duration;

/// Measures what it takes to change the layout of a feature map of `shape`: C4 to image, and back.
pub(crate) fn change_times(device: &dyn Device, shape: Shape, precision: Precision) -> Result<[Duration; 2]> {
    let limits = &device.info().limits;
    let dtype = precision.storage();
    let bytes = (Layout::C4.elements(&shape) * dtype.bytes()) as u64;
    let buffer = Resource::from(&device.alloc(bytes, Memory::Device)?);
    let [width, height] = Layout::image_extent(&shape);
    let image = Resource::from(&device.alloc_image(width, height, dtype)?);
    let time = |from: Layout, to: Layout, resources: [&Resource; 2]| -> Result<Duration> {
        let op = ConvertOp::new(shape, from, to, precision)?;
        let choice = untuned(&op, WorkGroup::Table, limits)?;
        let launch = op.kernel(choice.variant)?.plan(&choice, limits)?;
        let recording = device.record(&[Dispatch {
            pipeline: compile_planned(device, &launch.spec.render_written(limits.dialect)?)?,
            resources: resources.map(Resource::clone).to_vec(),
            groups: launch.groups(),
            params: launch.params,
        }])?;
        let mut fastest = Duration::MAX;
        // The first warms up; outliers are slow, never fast.
        for _ in 0..6 {
            let start = Instant::now();
            let time = if device.info().timestamps {
                device.time(&recording)?.into_iter().sum()
            } else {
                device.submit(&recording)?;
                device.wait()?;
                start.elapsed()
            };
            fastest = fastest.min(time);
        }
        Ok(fastest)
    };
    Ok([
        time(Layout::C4, Layout::Image2d, [&buffer, &image])?,
        time(Layout::Image2d, Layout::C4, [&image, &buffer])?,
    ])
}
