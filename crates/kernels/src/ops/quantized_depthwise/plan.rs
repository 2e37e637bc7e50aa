//! What `quantized_depthwise` is, and its kernels.

use super::{QuantizedDepthwise, QuantizedDepthwiseOp, cpu, direct, oracle};
use crate::cpu::CpuKernel;
use crate::error::Result;
use crate::ops::byte_windows::ByteOptions;
use crate::ops::bytes::LANES;
use crate::ops::kernel::Kernel;
use crate::ops::operands::Operands;
use crate::ops::reference::Reference;
use crate::shape::Shape;

impl ByteOptions for QuantizedDepthwise {
    fn kernels() -> &'static [&'static dyn Kernel<QuantizedDepthwiseOp>] {
        &[&direct::Direct]
    }

    fn op(&self, [input, weights]: [Shape; 2]) -> Result<QuantizedDepthwiseOp> {
        QuantizedDepthwiseOp::new(input, weights, self)
    }

    fn weights(op: &QuantizedDepthwiseOp) -> Shape {
        let [h, w] = op.windows.kernel;
        Shape::nhwc(1, h, w, op.windows.input.c)
    }

    fn channels(_op: &QuantizedDepthwiseOp) -> String {
        "words".to_owned()
    }

    fn flops(op: &QuantizedDepthwiseOp) -> u64 {
        LANES as u64 * op.windows.flops()
    }

    fn oracle(op: &QuantizedDepthwiseOp, operands: &Operands<'_>) -> Reference {
        oracle::oracle(op, operands)
    }

    fn cpu(op: &QuantizedDepthwiseOp, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        cpu::kernel(op, constants)
    }
}
