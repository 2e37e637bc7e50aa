//! Operands in images, which the host writes and reads through conversions on the device.

use super::operands::decode;
use super::{Key, OpBench, WorkGroup};
use crate::device::{Dispatch, Memory, Recording, Resource, Slice, Wait, compile_planned_async};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::Op;
use crate::ops::convert::ConvertOp;
use crate::tune::problem::output;
use crate::tune::work_group::untuned;

impl OpBench {
    /// `values`, in C4, in an image of the operand.
    pub(super) async fn image(&self, wait: Wait, key: &Key, values: &[f32]) -> Result<Resource> {
        let map = self.info(key.operand)?.map;
        let [width, height] = Layout::image_extent(&map);
        let image = Resource::from(&self.device.alloc_image(width, height, key.dtype)?);
        let op = ConvertOp::new(map, Layout::C4, Layout::Image2d, self.op.precision())?;
        let dispatch = self.conversion(&op, self.buffer(values, key.dtype)?, image.clone()).await?;
        self.device.submit(&self.device.record(&[dispatch])?)?;
        wait.wait(&*self.device).await?;
        Ok(image)
    }

    async fn conversion(&self, op: &ConvertOp, from: Resource, to: Resource) -> Result<Dispatch> {
        let limits = &self.device.info().limits;
        let choice = untuned(op, WorkGroup::Table, limits)?;
        let launch = op.kernel(choice.variant)?.plan(&choice, limits)?;
        Ok(Dispatch {
            pipeline: compile_planned_async(&*self.device, &launch.spec.render_written(limits.dialect)?)
                .await?,
            resources: vec![from, to],
            groups: launch.groups(),
            params: launch.params,
        })
    }

    /// What fills `image` with what `before` holds in C4, what copies it to a buffer in C4, and that buffer.
    pub(super) async fn around_image(
        &self,
        before: &Slice,
        image: Resource,
    ) -> Result<(Dispatch, Dispatch, Slice)> {
        let (map, precision) = (output(&*self.op)?.map, self.op.precision());
        let stored = self.device.alloc(before.bytes(), Memory::Device)?.whole();
        let fill = ConvertOp::new(map, Layout::C4, Layout::Image2d, precision)?;
        let fill = self.conversion(&fill, before.clone().into(), image.clone()).await?;
        let fetch = ConvertOp::new(map, Layout::Image2d, Layout::C4, precision)?;
        let fetch = self.conversion(&fetch, image, stored.clone().into()).await?;
        Ok((fill, fetch, stored))
    }

    /// Runs a `recording` that writes `image`, first filled with `before`, and returns what it stored, in C4.
    pub(super) async fn run_on_image(
        &self,
        wait: Wait,
        recording: &Recording,
        image: &Resource,
        before: &[f32],
        dtype: DType,
    ) -> Result<Vec<f32>> {
        let (map, precision) = (output(&*self.op)?.map, self.op.precision());
        let buffer = self.device.alloc((Layout::C4.elements(&map) * dtype.bytes()) as u64, Memory::Device)?;
        let fill = ConvertOp::new(map, Layout::C4, Layout::Image2d, precision)?;
        let fill = self.conversion(&fill, self.buffer(before, dtype)?, image.clone()).await?;
        let fetch = ConvertOp::new(map, Layout::Image2d, Layout::C4, precision)?;
        let fetch = self.conversion(&fetch, image.clone(), buffer.whole().into()).await?;
        self.device.submit(&self.device.record(&[fill])?)?;
        self.device.submit(recording)?;
        let whole = buffer.whole();
        let read = wait.run(&*self.device, &[], &self.device.record(&[fetch])?, &[&whole]).await?;
        Ok(decode(read.first().map_or(&[], Vec::as_slice), dtype))
    }
}
