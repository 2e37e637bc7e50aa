//! What `one_hot` is: its kernels, on the CPU too, are those of its nest.

use super::{OP, OneHotOp, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::{Bits, Operand};
use crate::error::Result;
use crate::ops::definition::Definition;
use crate::ops::elementwise::Function;
use crate::ops::kernel::Kernel;
use crate::ops::loops::{self, AsNest, Index, Nest, Node, Nodes, OpNest, OperandSet};
use crate::ops::operands::{OperandInfo, Operands, Role, get};
use crate::ops::reference::Reference;

impl OneHotOp {
    /// Whether the index equals the place along the new axis, or the values of either.
    fn as_nest(&self) -> Option<Nest> {
        let (depth, inner) = (self.depth(), self.inner());
        let extents = vec![self.indices.elements() / inner.max(1), depth, inner];
        let mut nodes = Nodes::default();
        let index = nodes.read(0, Index::axis(2).plus(&Index::axis(0), inner as i64));
        let place = nodes.add(Node::Place(Index::axis(1)));
        let mut value = nodes.apply(Function::Equal, &[index, place]);
        if [self.on, self.off] != [Bits(1.0), Bits(0.0)] {
            let (on, off) = (nodes.number(self.on.0), nodes.number(self.off.0));
            value = nodes.apply(Function::Select, &[value, on, off]);
        }
        Nest::new(extents, vec![0, 1, 2], vec![self.indices], nodes, value, self.target).ok()
    }
}

impl Definition for OneHotOp {
    const NAME: &'static str = OP;
    const ROWS: bool = true;
    const UNTUNABLE: Option<&'static str> = Some("it has one kernel");

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&AsNest::ELEMENTS]
    }

    fn problem_key(&self) -> String {
        format!("from{} to{} axis{} on{} off{}", self.indices, self.target, self.axis, self.on.0, self.off.0)
    }

    /// An index is exact.
    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn flops(&self) -> u64 {
        0
    }

    fn dst_depth(&self) -> u32 {
        1
    }

    fn operands(&self) -> Vec<OperandInfo> {
        vec![
            OperandInfo::new(Operand::Src, self.indices.shape(), Role::Input),
            OperandInfo::new(Operand::Dst, self.target.shape(), Role::Output),
        ]
    }

    fn nest(&self) -> Option<OpNest> {
        Some(OpNest::new(self.as_nest()?, vec![Operand::Src]).with_halves(OperandSet::NONE))
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, get(operands, Operand::Src).unwrap_or_default())
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        loops::kernel(OP, self.as_nest(), &[Operand::Src], self.target)
    }
}
