//! Operands in images, which the host writes and reads through conversions on the device.

use super::operands::decode;
use super::{Key, OpBench, Prepared, Problem, WorkGroup};
use crate::device::{Dispatch, Memory, Resource, compile_planned};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::Op;
use crate::ops::convert::{self, ConvertOp};
use crate::shape::Shape;
use crate::tune::work_group::untuned;

impl OpBench {
    /// `values`, as a buffer of the operand would hold them, in an image: a feature map, or a
    /// product's right operand, whose row `term` is a row of pixels.
    pub(super) fn image(&self, key: &Key, values: &[f32]) -> Result<Resource> {
        let precision = self.problem.precision();
        let (shape, rows) = match (&self.problem, self.problem.convolution()) {
            (Problem::Gemm(op), _) => {
                let matrices = if op.shared_b { 1 } else { op.batch };
                let rows: Vec<f32> = (0..matrices * op.k)
                    .flat_map(|row| (0..op.n).map(move |column| (row, column)))
                    .filter_map(|(row, column)| {
                        values.get(op.index_b(row / op.k, row % op.k, column)).copied()
                    })
                    .collect();
                (Shape::nhwc(matrices, op.k, 1, op.n), rows)
            }
            (_, Some(conv)) => {
                let shape = if key.operand == Operand::Src { conv.input } else { conv.output };
                let nhwc = ConvertOp::new(shape, Layout::C4, Layout::Nhwc, precision)?;
                (shape, convert::oracle(&nhwc, values))
            }
            _ => return Err(Error::Internal(format!("{} as an image", key.operand.name()))),
        };
        let [width, height] = Layout::image_extent(&shape);
        let image = Resource::from(&self.device.alloc_image(width, height, key.dtype)?);
        let op = ConvertOp::new(shape, Layout::Nhwc, Layout::Image2d, precision)?;
        let dispatch = self.conversion(&op, self.buffer(&rows, DType::F32)?, image.clone())?;
        self.device.submit(&self.device.record(&[dispatch])?)?;
        self.device.wait()?;
        Ok(image)
    }

    fn conversion(&self, op: &ConvertOp, from: Resource, to: Resource) -> Result<Dispatch> {
        let limits = &self.device.info().limits;
        let launch = op.plan(&untuned(op, WorkGroup::Table, limits)?, limits)?;
        Ok(Dispatch {
            pipeline: compile_planned(&*self.device, &launch.spec.render(limits.dialect)?)?,
            resources: vec![from, to],
            groups: launch.groups(),
            params: launch.params,
        })
    }

    /// Runs a kernel whose destination is `image`, first filled with `before`, and returns what it
    /// stored, in C4.
    pub(super) fn run_on_image(
        &self,
        prepared: &Prepared,
        image: &Resource,
        before: &[f32],
        dtype: DType,
    ) -> Result<Vec<f32>> {
        let Some(conv) = self.problem.convolution() else {
            return Err(Error::Internal("an image that is no feature map as a destination".to_owned()));
        };
        let precision = self.problem.precision();
        let buffer =
            self.device.alloc((Layout::C4.elements(&conv.output) * dtype.bytes()) as u64, Memory::Device)?;
        let fill = ConvertOp::new(conv.output, Layout::C4, Layout::Image2d, precision)?;
        let fill = self.conversion(&fill, self.buffer(before, dtype)?, image.clone())?;
        let fetch = ConvertOp::new(conv.output, Layout::Image2d, Layout::C4, precision)?;
        let fetch = self.conversion(&fetch, image.clone(), buffer.whole().into())?;
        for recording in [self.device.record(&[fill])?, self.record(prepared, 0, 1)?] {
            self.device.submit(&recording)?;
        }
        let whole = buffer.whole();
        let read = self.device.run(&[], &self.device.record(&[fetch])?, &[&whole])?;
        Ok(decode(read.first().map_or(&[], Vec::as_slice), dtype))
    }
}
