//! The steps of stacks: where each part of a stacked result lies.

use super::builder::Builder;
use super::kernel::Kernel;
use super::step::Part;
use super::stored_as::{Kind, stored_bytes};
use super::unit::Unit;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::layout::Form;
use crate::ops::OperandInfo;
use crate::ops::convert::ConvertOp;

impl Builder<'_, '_> {
    /// The step of a stack, and one that gives each of its parts its rows.
    pub(super) fn stack(&mut self, unit: &Unit, kernel: Kernel) -> Result<()> {
        let infos: Vec<OperandInfo> = crate::ops::outputs(&*kernel.op).collect();
        let [info] = infos[..] else {
            return Err(Error::Internal("a stack without a single output".to_owned()));
        };
        let shapes = unit.outputs.iter().map(|&value| Ok(self.network.dims(value)?.shape()));
        let shapes = shapes.collect::<Result<Vec<_>>>()?;
        let channels: Vec<usize> = shapes.iter().map(|shape| shape.c).collect();
        let map = Self::kind(&*kernel.op, &info, Form::C4);
        if unit.multiple() > 1 {
            return self.pieces(unit, kernel, info.operand, map);
        }
        let precision = kernel.op.precision();
        let whole = self.own(stored_bytes(map), false);
        let rows = self.own(4 * info.shape.elements(), true);
        self.launch(unit, kernel, &mut |_, operand| (operand == info.operand).then_some(whole))?;
        let op = ConvertOp::parts(info.shape, &channels, precision)?;
        let step = self.single(format!("{} (rows)", unit.name), &op, whole, rows)?;
        self.program.steps.push(step);
        let mut offset = 0;
        for (&value, shape) in unit.outputs.iter().zip(shapes) {
            let bytes = 4 * shape.elements() as u64;
            let kind = self.rows(value)?;
            self.places.entry(value).or_default().push((kind, Part { stored: rows.stored, offset, bytes }));
            offset += bytes;
        }
        Ok(())
    }

    /// The step of a stack of pixels, of which each part is a piece.
    fn pieces(&mut self, unit: &Unit, kernel: Kernel, operand: Operand, map: Kind) -> Result<()> {
        let whole = self.own(stored_bytes(map), false);
        self.launch(unit, kernel, &mut |_, own| (own == operand).then_some(whole))?;
        let mut channel = 0;
        for &value in &unit.outputs {
            let kind = (Form::C4, self.network.dims(value)?.shape(), map.2);
            let (offset, bytes) = ((channel * map.2.bytes()) as u64, stored_bytes(kind) as u64);
            let part = Part { stored: whole.stored, offset, bytes };
            self.places.entry(value).or_default().push((kind, part));
            channel += kind.1.c.next_multiple_of(unit.multiple());
        }
        Ok(())
    }
}
