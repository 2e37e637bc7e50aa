//! The program of one op on operands that its caller writes and reads in place.

use super::choosing::Choosing;
use super::conversions::{conversion, moving};
use super::kernel::{BoundOperand, Kernel};
use super::program::Program;
use super::step::{OperandMemory, Part, StoredValue};
use super::stored_as::stored_bytes;
use crate::device::{DeviceInfo, Memory};
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::layout::{Form, Layout};
use crate::ops::{Op, OperandInfo, Role};
use crate::options::SessionOptions;
use crate::tune::key::DeviceKey;
use std::sync::Arc;

impl Program {
    /// One step, which computes an op of rows whose elements are of its precision's storage type. `asked` decides on its kernel,
    /// under the op's name. The program's inputs are the op's operands but for the constants, the results among them, in its
    /// order: each has a buffer in `memory`. Its setup makes images of those that the kernel reads so, whenever they changed.
    pub(crate) fn of_op(
        op: &Arc<dyn Op>,
        constants: &[(Operand, HostTensor)],
        memory: Memory,
        asked: &SessionOptions,
        info: &DeviceInfo,
    ) -> Result<Self> {
        let (device, limits) = (DeviceKey::of(info), &info.limits);
        let choosing = Choosing { options: asked, device: &device, limits, known: None };
        let (choice, by) = choosing.decided(op.name(), &**op, Layout::C4)?;
        let kernel = Kernel { op: Arc::clone(op), choice: Some(choice), by, storage: None };
        let planned = kernel.planned(limits)?;
        let mut program = Program::new(limits);
        let mut places = Vec::new();
        for info in op.operands().into_iter().filter(|info| info.role != Role::Constant) {
            let bytes = (info.elements() * op.precision().storage().bytes()).next_multiple_of(4);
            let part = program.store(StoredValue { memory, ..StoredValue::buffer(bytes as u64, true) });
            program.inputs.push(part);
            places.push((info.operand, part));
        }
        let missing = |operand: Operand| Error::Internal(format!("{} has no {}", op.name(), operand.name()));
        let mut sources = Vec::new();
        for bound in planned.operands()? {
            let (info, form, dtype) = match bound {
                BoundOperand::Scratch(bytes) => {
                    sources.push(OperandMemory::Stored(program.scratch(bytes)));
                    continue;
                }
                BoundOperand::Operand { info, form, dtype } => (info, form, dtype),
            };
            let operand = info.operand;
            if info.role == Role::Constant {
                let tensor = constants.iter().find(|(own, _)| *own == operand);
                let (_, tensor) = tensor.ok_or_else(|| missing(operand))?;
                program.constants.push(planned.constant(op.name(), operand, dtype, tensor.clone()));
                sources.push(OperandMemory::Constant(program.constants.len() - 1));
                continue;
            }
            let place = places.iter().find(|(own, _)| *own == operand);
            let (_, rows) = place.ok_or_else(|| missing(operand))?;
            sources.push(OperandMemory::Stored(match form {
                Form::Image => program.image(&**op, &info, *rows)?,
                _ => *rows,
            }));
        }
        program.steps.push(planned.step(op.name(), sources));
        Ok(program)
    }

    /// The image of an operand of `op` that lies in rows, and the step that makes it.
    fn image(&mut self, op: &dyn Op, info: &OperandInfo, rows: Part) -> Result<Part> {
        let OperandInfo { operand, map, pitch, .. } = *info;
        if op.precision().storage() != DType::F32 {
            return Err(Error::unsupported(
                format!("{} image2d in {}", op.name(), op.precision()),
                "the image is made from rows of f32",
            ));
        }
        if pitch != map.c {
            return Err(Error::unsupported(
                format!("{} image2d with rows of {} in {pitch} elements", op.name(), map.c),
                "the image is made from packed rows",
            ));
        }
        let [from, to] = [Form::Rows, Form::Image].map(|form| (form, map, DType::F32));
        let image = Some((Layout::image_extent(&map), DType::F32));
        let image = self.store(StoredValue { image, ..StoredValue::buffer(stored_bytes(to) as u64, true) });
        let (convert, what) = conversion(from, to, Precision::F32)?;
        let name = format!("{} ({what})", operand.name());
        let step = moving(name, &convert, [rows, image], &self.limits, None)?;
        self.setup.push(step);
        Ok(image)
    }
}
