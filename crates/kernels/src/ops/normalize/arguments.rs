//! What the kernels of `normalize` are given.

use super::{NormalizeOp, Vector};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand, Scalar, Value};
use crate::ops::definition::Definition;
use crate::ops::kernel::Constants;
use crate::ops::operands::OperandInfo;
use crate::ops::spec::{Params, binding, unsigned};

/// The constants that all kernels have.
pub(super) fn constants(op: &NormalizeOp) -> Constants {
    let number = |vector: Vector| match vector {
        Vector::None => 0,
        Vector::Constant => 1,
        Vector::Given => 2,
    };
    [("CENTRED", u32::from(op.centred)), ("SCALED", number(op.scale)), ("MOVED", number(op.bias))]
        .map(|(name, value)| (name, Value::U32(value)))
        .to_vec()
}

/// The bindings of a kernel of feature maps.
pub(super) fn bindings(op: &NormalizeOp) -> Vec<Binding> {
    let map = Element::Vec4(op.precision.storage());
    let infos = Definition::operands(op);
    let binding = |info: &OperandInfo| match info.operand {
        Operand::Weights | Operand::Bias => binding(info.operand, Element::Vec4(DType::F32), Access::Read),
        Operand::Dst => binding(Operand::Dst, map, Access::Write),
        operand => binding(operand, map, Access::Read),
    };
    infos.iter().map(binding).collect()
}

/// Where an instance normalisation of a feature map is, for kernels that compute nothing else.
pub(super) fn params(op: &NormalizeOp) -> Params {
    let x = op.dims.shape();
    vec![("plane", unsigned(x.h * x.w)), ("slices", unsigned(x.slices())), epsilon(op)]
}

/// The summand of the variance.
pub(super) fn epsilon(op: &NormalizeOp) -> (&'static str, Scalar) {
    ("epsilon", Scalar::F32(op.epsilon.0))
}
