//! What the kernels of `quantized_gemm` are given.

use super::{QuantizedGemmOp, Zeros};
use crate::dtype::DType;
use crate::emit::{Binding, Element, Operand, Scalar, Value};
use crate::ops::kernel::Constants;
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, extent, unsigned};

impl QuantizedGemmOp {
    /// Elements of a row of `x`, and of the result, that are read or written at once.
    fn widths(&self) -> [usize; 2] {
        [self.k, self.n].map(|extent| if extent.is_multiple_of(4) { 4 } else { 1 })
    }

    /// The arguments of a kernel that reads the weights as `weights`.
    pub(super) fn bindings(&self, weights: Element) -> Vec<Binding> {
        let stored = self.precision.storage();
        let of_width = |width| if width == 4 { Element::Vec4(stored) } else { Element::Scalar(stored) };
        let [src, dst] = self.widths().map(of_width);
        spec::bindings_as(self, |info| match info.operand {
            Operand::Src => src,
            Operand::Weights => weights,
            Operand::Bias | Operand::Slope => Element::Vec4(DType::F32),
            Operand::Residual | Operand::Dst => dst,
            _ => Element::Scalar(info.dtype),
        })
    }

    /// The scalars of every kernel; `words` are those of a row in what the kernel reads at once.
    pub(super) fn params(&self, words: usize) -> Params {
        let [src, dst] = self.widths();
        let mut params = vec![
            ("m", unsigned(self.m)),
            ("n", unsigned(self.n)),
            ("k_row", unsigned(self.k / src)),
            ("n_row", unsigned(self.n / dst)),
            ("words", unsigned(words)),
            ("blocks", unsigned(self.blocks())),
        ];
        match self.zeros {
            Zeros::Same(zero) => params.push(("zero", Scalar::F32(zero.0))),
            Zeros::Floats => {}
            Zeros::Packed => params.push(("zero_words", unsigned(self.zero_words()))),
        }
        params
    }

    /// What every text names, and `own`. A block is counted in words.
    pub(super) fn constants(&self, own: &[(&'static str, u32)]) -> Constants {
        let zeros = match self.zeros {
            Zeros::Same(_) => 0,
            Zeros::Floats => 1,
            Zeros::Packed => 2,
        };
        let [src, dst] = self.widths().map(|width| u32::from(width == 4));
        let shared = [
            ("WIDE_SRC", src),
            ("WIDE_DST", dst),
            ("BITS", extent(self.bits)),
            ("PER_WORD", extent(self.per_word())),
            ("MASK", self.mask()),
            ("ZEROS", zeros),
            ("BLOCK", if self.blocks() > 1 { extent(self.block_words()) } else { 0 }),
        ];
        shared.iter().chain(own).map(|&(name, value)| (name, Value::U32(value))).collect()
    }

    /// A constant of one value for each column, padded to whole tiles of `groups` of four columns.
    pub(super) fn pack_columns(&self, choice: &Choice, data: &[f32]) -> Vec<f32> {
        let slices = self.n.div_ceil(4).next_multiple_of(choice.tile[0].max(1) as usize);
        spec::pack_channels(data, slices)
    }
}
