//! An application's kernel on the CPU: a function of its own.

use super::Host;
use crate::cpu::{CpuKernel, check_len};
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::OperandInfo;
use crate::sorted;
use crate::unwind::caught;
use std::fmt;
use std::sync::Arc;

pub(super) struct HostKernel {
    pub(super) name: Arc<str>,
    pub(super) run: Arc<Host>,
    pub(super) operands: Vec<OperandInfo>,
}

impl fmt::Debug for HostKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostKernel").field("operands", &self.operands).finish_non_exhaustive()
    }
}

impl CpuKernel for HostKernel {
    fn run(&self, inputs: &[(Operand, &[f32])], outputs: &mut [(Operand, &mut [f32])]) -> Result<()> {
        let missing = |info: &OperandInfo| Error::input(info.operand.name(), "none", "values");
        let (mut read, mut written): (Vec<&[f32]>, Vec<&mut [f32]>) = (Vec::new(), Vec::new());
        let reads = self.operands.iter().filter(|info| !info.role.writes());
        for info in reads {
            let found = inputs.iter().find(|(operand, _)| *operand == info.operand);
            let (_, values) = found.ok_or_else(|| missing(info))?;
            check_len("custom", info.operand.name(), values.len(), info.elements())?;
            read.push(values);
        }
        sorted::sort_by_key(outputs, |(operand, _)| *operand);
        for (operand, values) in outputs.iter_mut() {
            let info = self.operands.iter().find(|info| info.operand == *operand && info.role.writes());
            let wanted = info.map_or(0, |info| info.elements());
            check_len("custom", operand.name(), values.len(), wanted)?;
            written.push(values);
        }
        let wanted = self.operands.iter().filter(|info| info.role.writes()).count();
        check_len("custom", "outputs", written.len(), wanted)?;
        caught(format!("the function on the CPU of kernel {:?}", self.name), || {
            (self.run)(&read, &mut written)
        })?
    }
}
