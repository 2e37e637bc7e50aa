//! What the kernels of `dynamic_conv2d` are given.

use super::DynamicConv2dOp;
use crate::dtype::DType;
use crate::emit::{Access, Activation, Binding, Element, Operand};
use crate::ops::spec::{Params, binding, unsigned};

impl DynamicConv2dOp {
    /// Channels of a pixel that are written at once.
    pub(super) fn width(&self) -> usize {
        if self.channels.is_multiple_of(4) { 4 } else { 1 }
    }

    pub(super) fn bindings(&self) -> Vec<Binding> {
        let dst = match self.width() {
            4 => Element::Vec4(self.dtype()),
            _ => Element::Scalar(self.dtype()),
        };
        let channel = Element::Vec4(DType::F32);
        let own = [
            Some((Operand::Src, Element::Scalar(DType::U32))),
            Some((Operand::Weights, Element::Vec4(DType::U32))),
            Some((Operand::Arg(0), Element::Scalar(DType::F32))),
            (!self.sums).then_some((Operand::Scale, channel)),
            self.epilogue.bias.then_some((Operand::Bias, channel)),
            (self.epilogue.activation == Activation::PRelu).then_some((Operand::Slope, channel)),
            self.epilogue.residual.is_some().then_some((Operand::Residual, dst)),
        ];
        let read =
            own.into_iter().flatten().map(|(operand, element)| binding(operand, element, Access::Read));
        read.chain([binding(Operand::Dst, dst, Access::Write)]).collect()
    }

    pub(super) fn params(&self) -> Params {
        let windows = &self.windows;
        vec![
            ("src_w", unsigned(windows.input.w)),
            ("src_h", unsigned(windows.input.h)),
            ("dst_w", unsigned(windows.output.w)),
            ("dst_h", unsigned(windows.output.h)),
            ("batch", unsigned(windows.output.n)),
            ("before_h", unsigned(windows.before[0])),
            ("before_w", unsigned(windows.before[1])),
            ("src_words", unsigned(windows.input.c)),
            ("dst_words", unsigned(windows.output.c)),
            ("channels", unsigned(self.channels)),
            ("span", unsigned(self.span())),
        ]
    }
}
