//! The kernels of a session on the CPU.

use super::{Holder, Places, ValuePlace};
use crate::cpu::shelf::Shelf;
use crate::cpu::{CpuKernel, Held};
use crate::emit::Operand;
use crate::error::Result;
use crate::host::HostTensor;
use crate::layout::Layout as Order;
use crate::lower::{Input as Read, Unit};
use crate::ops::Op;
use std::sync::Arc;

/// What a kernel is made of: its op in words, and each constant's operand and place in memory.
pub(super) type Making = (String, Vec<(Operand, (usize, Order))>);

/// A kernel, and the inputs that it has laid out for itself: its runs are not given these.
#[derive(Debug, Clone)]
pub(super) struct MadeKernel {
    pub(super) kernel: Arc<dyn CpuKernel>,
    pub(super) held: Arc<[Operand]>,
}

/// Constants of fewer elements are not worth looking for a kernel that was made with them already.
const MIN_SHARED: usize = 1024;

impl Places<'_> {
    /// Where the words of a constant are.
    pub(super) fn of_constant(&mut self, tensor: HostTensor) -> Result<ValuePlace> {
        let words = match self.words.get(&tensor.place()) {
            Some(known) => Arc::clone(known),
            None => {
                let words = match self.shelves {
                    Some(shelves) => shelves.words(&tensor)?,
                    None => tensor.clone().into_words()?,
                };
                self.words.insert(tensor.place(), Arc::clone(&words));
                self.shelved.push(tensor);
                words
            }
        };
        let elements = words.len();
        self.constants.push(words);
        let holder = Holder::Constant(self.constants.len() - 1);
        Ok(ValuePlace { holder, first: 0, elements })
    }

    /// The kernel of a unit: one that was made already of the same op and constants, as the passes of a loop that was
    /// unrolled have, which would lay out the same weights again.
    pub(super) fn kernel(
        &mut self,
        unit: &Unit,
        op: &dyn Op,
        inputs: &[(Operand, &HostTensor)],
    ) -> Result<MadeKernel> {
        let constants = || {
            unit.inputs.iter().filter_map(|(operand, input)| match input {
                Read::Constant(tensor, _) => Some((*operand, tensor)),
                Read::Value(value) => Some((*operand, self.network.constant(*value)?)),
            })
        };
        let elements: usize = constants().map(|(_, tensor)| tensor.dims().elements()).sum();
        // The network holds the tensors as long as this lives: no place is another one's later.
        let parts = constants().map(|(operand, tensor)| (operand, tensor.place()));
        let words = if elements < MIN_SHARED { None } else { op.words() };
        let making = words.map(|words| (words, parts.collect()));
        if let Some(known) = making.as_ref().and_then(|making| self.kernels.get(making)) {
            return Ok(known.clone());
        }
        let largest = constants().map(|(_, tensor)| tensor).max_by_key(|tensor| tensor.dims().elements());
        let largest = largest.filter(|tensor| tensor.dims().elements() >= MIN_SHARED);
        let identity =
            largest.map_or_else(String::new, |tensor| format!("{} {:?}", op.name(), tensor.place()));
        let shelf = match (self.shelves, largest) {
            (Some(shelves), Some(tensor)) => {
                self.shelved.push(tensor.clone());
                shelves.of(&identity)
            }
            _ => Shelf::default(),
        };
        let mut kernel = op.cpu_on(&unit.constants(op)?, shelf)?;
        let mut held = Vec::new();
        for (operand, tensor) in inputs {
            if kernel.hold(*operand, &Held::new(tensor), shelf)? {
                held.push(*operand);
            }
        }
        let made = MadeKernel { kernel: Arc::from(kernel), held: held.into() };
        if let Some(making) = making {
            self.kernels.insert(making, made.clone());
        }
        Ok(made)
    }
}
