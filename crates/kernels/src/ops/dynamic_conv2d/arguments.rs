//! What the kernels of `dynamic_conv2d` are given.

use super::DynamicConv2dOp;
use crate::dtype::DType;
use crate::emit::{Binding, Element, Operand};
use crate::ops::bytes;
use crate::ops::spec::{Params, bindings_as, unsigned};

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
        bindings_as(self, |info| match info.operand {
            Operand::Src => Element::Scalar(DType::U32),
            Operand::Weights => Element::Vec4(DType::U32),
            Operand::Arg(_) => Element::Scalar(DType::F32),
            Operand::Residual | Operand::Dst => dst,
            _ => Element::Vec4(DType::F32),
        })
    }

    pub(super) fn params(&self) -> Params {
        let windows = &self.windows;
        let own = [
            ("src_words", unsigned(windows.input.c)),
            ("dst_words", unsigned(windows.output.c)),
            ("channels", unsigned(self.channels)),
            ("span", unsigned(self.span())),
        ];
        [bytes::window_params(windows), own.to_vec()].concat()
    }
}
