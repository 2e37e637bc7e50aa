//! A unit's kernel, and the step of a device that runs it.

use super::by::By;
use super::constants::Constant;
use super::step::{OperandMemory, Step, Work};
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::layout::Form;
use crate::limits::Limits;
use crate::ops::{Choice, Launch, Op, OperandInfo};
use std::sync::Arc;

/// A unit's op and the kernel that computes it.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    pub(crate) op: Arc<dyn Op>,
    /// None where the CPU computes it.
    pub(crate) choice: Option<Choice>,
    pub(crate) by: By,
    /// Why the unit is stored as it is, where that was decided for it.
    pub(crate) storage: Option<String>,
}

impl Kernel {
    /// What decided, in words.
    pub(super) fn why(&self) -> String {
        match &self.storage {
            Some(storage) => format!("{}; {storage}", self.by),
            None => self.by.to_string(),
        }
    }

    /// The choice of a kernel that a device runs.
    pub(super) fn choice(&self) -> Result<Choice> {
        self.choice.ok_or_else(|| Error::Internal(format!("{} is computed on the CPU", self.op.name())))
    }

    /// The kernel as a device with these limits launches it.
    pub(super) fn planned(self, limits: &Limits) -> Result<PlannedKernel> {
        let (choice, from) = (self.choice()?, self.why());
        let launch = self.op.plan(&choice, limits)?;
        Ok(PlannedKernel { op: self.op, by: self.by, choice, from, launch: Box::new(launch) })
    }
}

/// A kernel that is planned, and what it binds not yet known.
#[derive(Debug)]
pub(super) struct PlannedKernel {
    op: Arc<dyn Op>,
    by: By,
    choice: Choice,
    /// What decided on it, in words.
    from: String,
    launch: Box<Launch>,
}

/// What a kernel binds.
#[derive(Debug, Clone, Copy)]
pub(super) enum BoundOperand {
    /// So many bytes of scratch memory.
    Scratch(u64),
    /// An operand of the op: the form in which the kernel reads or writes it, and the type of its elements.
    Operand { info: OperandInfo, form: Form, dtype: DType },
}

impl PlannedKernel {
    /// What it binds, in order.
    pub(super) fn operands(&self) -> Result<Vec<BoundOperand>> {
        let (infos, own) = (self.op.operands(), self.op.kernel(self.choice.variant)?);
        let bindings = self.launch.spec.interface.bindings.iter();
        let bound = bindings.map(|binding| {
            if let Some(bytes) = binding.scratch_bytes() {
                return Ok(BoundOperand::Scratch(bytes));
            }
            let operand = binding.operand;
            let info = infos.iter().find(|info| info.operand == operand).ok_or_else(|| {
                Error::Internal(format!("a kernel of {} binds {}", self.op.name(), operand.name()))
            })?;
            let form = own.form(operand, &self.choice).unwrap_or(Form::Rows);
            Ok(BoundOperand::Operand { info: *info, form, dtype: binding.element.dtype() })
        });
        bound.collect()
    }

    /// A constant operand of the node, to be packed for it.
    pub(super) fn constant(
        &self,
        node: &str,
        operand: Operand,
        dtype: DType,
        tensor: HostTensor,
    ) -> Constant {
        let (node, op, choice) = (node.to_owned(), Arc::clone(&self.op), self.choice);
        Constant { node, op, choice, operand, tensor, dtype }
    }

    /// The step that runs it on these operands.
    pub(super) fn step(self, name: &str, sources: Vec<OperandMemory>) -> Step {
        let PlannedKernel { op, by, choice, from, launch } = self;
        Step {
            name: name.to_owned(),
            op: op.name(),
            flops: op.flops(),
            inserted: false,
            by,
            from,
            choice: Some(choice),
            unit: Some(op),
            work: Work::Device { launch, sources },
        }
    }
}
