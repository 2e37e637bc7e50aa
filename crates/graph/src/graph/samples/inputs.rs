//! What is known of the operands of a node.

use super::Own;
use crate::emit::Operand;

/// The operands of the current node, with what is known of them.
pub(super) type Inputs<'i> = &'i [(Operand, Own)];

pub(super) fn find(inputs: Inputs<'_>, operand: Operand) -> Option<Own> {
    inputs.iter().find(|(own, _)| *own == operand).map(|(_, own)| *own)
}
