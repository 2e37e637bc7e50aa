//! What `quantized_pool` is as an op of rows: a word of four bytes per invocation.

use super::{OP, QuantizedPoolOp, QuantizedPooling};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::dtype::DType;
use crate::emit::{Operand, Scalar, Value};
use crate::ops::bytes::{LANES, bytes, bytes_mut, numbers};
use crate::ops::kernel::Constants;
use crate::ops::operands::{Operands, get};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::ops::spec::{self, Params, unsigned};
use crate::shape::Shape;

/// Channels that are summed at a time.
const CHUNK: usize = 64;

impl QuantizedPoolOp {
    /// What a window of `count` elements is, of the largest of its bytes or of their sum.
    fn finished(&self, value: i32, count: i32) -> u8 {
        let byte = match self.pooling {
            QuantizedPooling::Max => value,
            QuantizedPooling::Mean(origin) => {
                let origin = i32::from(origin);
                let sum = value - count * origin;
                let half = if sum > 0 { count / 2 } else { -(count / 2) };
                (sum + half) / count + origin
            }
            QuantizedPooling::Scaled { zero, factor } => {
                return self.range.of((value - count * i32::from(zero)) as f32 * factor.0);
            }
        };
        byte.clamp(self.range.least.into(), self.range.most.into()) as u8
    }

    /// Output pixel `index`, counted through all images.
    #[inline(always)]
    fn pixel(&self, src: &[u8], index: usize, dst: &mut [u8]) {
        let (x, y) = (self.windows.windows().input, self.windows.windows().output);
        let (image, row, column) = (index / (y.h * y.w), index / y.w % y.h, index % y.w);
        let [rows, columns] = [self.windows.inside(0, row), self.windows.inside(1, column)];
        let (bytes, count) = (LANES * x.c, (rows.len() * columns.len()) as i32);
        for (chunk, dst) in dst.chunks_mut(CHUNK).enumerate() {
            let mut values = [0; CHUNK];
            for at in rows.clone() {
                for across in columns.clone() {
                    let first = ((image * x.h + at) * x.w + across) * bytes + chunk * CHUNK;
                    let src = src.get(first..first + dst.len()).unwrap_or_default();
                    let values = values.iter_mut().zip(src);
                    if self.pooling == QuantizedPooling::Max {
                        values.for_each(|(value, &byte)| *value = i32::from(byte).max(*value));
                    } else {
                        values.for_each(|(value, &byte)| *value += i32::from(byte));
                    }
                }
            }
            dst.iter_mut().zip(values).for_each(|(byte, value)| *byte = self.finished(value, count));
        }
    }
}

impl RowsOp for QuantizedPoolOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/quantized_pool/rows.wgsl");

    fn problem_key(&self) -> String {
        let pooling = match self.pooling {
            QuantizedPooling::Max => "max".to_owned(),
            QuantizedPooling::Mean(origin) => format!("mean{origin}"),
            QuantizedPooling::Scaled { zero, factor } => format!("zero{zero} times{}", factor.0),
        };
        format!("{} {pooling} {}", problem::convolution(self.windows.windows(), "words"), self.range.key())
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, self.windows.windows().input)]
    }

    fn output(&self) -> Shape {
        self.windows.windows().output
    }

    fn dtype(&self, _operand: Operand) -> DType {
        DType::U32
    }

    fn params(&self) -> Params {
        let windows = self.windows.windows();
        let mut params = vec![
            ("elements", unsigned(windows.output.elements())),
            ("words", unsigned(windows.output.c)),
            ("src_w", unsigned(windows.input.w)),
            ("src_h", unsigned(windows.input.h)),
            ("dst_w", unsigned(windows.output.w)),
            ("dst_h", unsigned(windows.output.h)),
            ("before_h", unsigned(windows.before[0])),
            ("before_w", unsigned(windows.before[1])),
        ];
        params.extend(self.range.params());
        match self.pooling {
            QuantizedPooling::Max => {}
            QuantizedPooling::Mean(origin) => params.push(("origin", Scalar::I32(origin.into()))),
            QuantizedPooling::Scaled { zero, factor } => {
                params.extend([("origin", Scalar::I32(zero.into())), ("factor", Scalar::F32(factor.0))]);
            }
        }
        params
    }

    fn constants(&self) -> Constants {
        let rule = match self.pooling {
            QuantizedPooling::Max => 0,
            QuantizedPooling::Mean(_) => 1,
            QuantizedPooling::Scaled { .. } => 2,
        };
        let mut constants = spec::window_constants(self.windows.windows());
        constants.retain(|(name, _)| !name.starts_with("DILATION"));
        constants.push(("MEAN", Value::U32(rule)));
        constants
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let src = bytes(get(operands, Operand::Src).unwrap_or_default());
        let output = self.output();
        let mut dst = vec![0; LANES * output.elements()];
        for (index, dst) in dst.chunks_mut(LANES * output.c).enumerate() {
            self.pixel(src, index, dst);
        }
        Reference::exact(numbers(&dst).into_iter())
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[src] = inputs else { return };
        let (src, words) = (bytes(src), self.output().c);
        let taps: usize = self.windows.windows().kernel.iter().product();
        let block = independent_rows(dst.len() / words, MOVED * words * taps);
        let arch = Arch::new();
        each(dst.chunks_mut(block * words).enumerate(), |(part, dst)| {
            arch.dispatch(|| {
                for (pixel, dst) in dst.chunks_mut(words).enumerate() {
                    self.pixel(src, part * block + pixel, bytes_mut(dst));
                }
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::emit::{Bits, Operand};
    use crate::ops::bytes::ByteRange;
    use crate::ops::operands::of;
    use crate::ops::quantized_pool::{QuantizedPool, QuantizedPoolOp, QuantizedPooling};
    use crate::ops::rows::RowsOp;
    use crate::shape::{Padding, Shape};
    use crate::word;

    #[test]
    fn windows_have_their_largest_byte_or_their_mean() {
        let found = |pooling, padding| {
            let range = ByteRange { zero: 100, least: 3, most: 250 };
            let options = QuantizedPool { pooling, window: [1, 2], stride: [1, 2], padding, range };
            let op = QuantizedPoolOp::new(Shape::nhwc(1, 1, 3, 1), &options).expect("fits");
            let words = [[1, 127, 126, 255], [2, 128, 129, 255], [9, 9, 9, 9]];
            let words = words.map(|bytes| i64::from(u32::from_le_bytes(bytes)));
            let words = word::of_integers(DType::U32, words.into_iter());
            let found = op.oracle(&of(&[(Operand::Src, &words)]));
            found.value().iter().map(|&word| (word as u32).to_le_bytes()).collect::<Vec<_>>()
        };
        assert_eq!(found(QuantizedPooling::Max, Padding::Same), [[3, 128, 129, 250], [9; 4]]);
        // 1.5, 127.5 and 127.5 away from 128.
        assert_eq!(found(QuantizedPooling::Mean(128), Padding::Same), [[3, 127, 127, 250], [9; 4]]);
        assert_eq!(found(QuantizedPooling::Mean(0), Padding::Same), [[3, 128, 128, 250], [9; 4]]);
        // Sums less 200, halves of them to even numbers.
        let scaled = QuantizedPooling::Scaled { zero: 100, factor: Bits(0.5) };
        assert_eq!(found(scaled, Padding::Valid), [[3, 128, 128, 250]]);
    }

    #[test]
    fn a_change_of_scale_needs_whole_windows() {
        let pooling = QuantizedPooling::Scaled { zero: 0, factor: Bits(1.0) };
        let (range, window) = (ByteRange::all(0), [2, 2]);
        let options = QuantizedPool { pooling, window, stride: window, padding: Padding::Same, range };
        assert!(QuantizedPoolOp::new(Shape::nhwc(1, 3, 3, 1), &options).is_err());
        assert!(QuantizedPoolOp::new(Shape::nhwc(1, 4, 4, 1), &options).is_ok());
    }
}
