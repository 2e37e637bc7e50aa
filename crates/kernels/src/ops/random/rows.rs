//! What `random` is as an op of rows: four elements per invocation.

use super::philox::philox;
use super::{Draw, OP, RandomOp, exact, words};
use crate::cpu::blocks::independent_rows;
use crate::cpu::workers::each;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::{Bits, Operand, Scalar, Value};
use crate::ops::kernel::Constants;
use crate::ops::operands::Operands;
use crate::ops::reference::Reference;
use crate::ops::rows::RowsOp;
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;

/// Elements that one counter gives.
const BLOCK: usize = 4;

/// What a block costs, in multiply-adds: some ten for each of ten rounds, and two logarithms, roots and angles.
const WORK: usize = 256;

impl RandomOp {
    /// The four elements of a block.
    fn block(&self, block: usize, key: [u32; 4]) -> [f32; BLOCK] {
        let stream = words(self.stream);
        let own = [key[0] ^ stream[0], key[1] ^ stream[1]];
        let drawn = philox([block as u32, 0, key[2], key[3]], own);
        match self.draw {
            Draw::Uniform { low: Bits(low), high: Bits(high) } => {
                let (span, end) = (high - low, Self::end(low, high));
                drawn.map(|word| (exact::uniform(word) * span + low).min(end))
            }
            Draw::Normal { mean: Bits(mean), deviation: Bits(deviation) } => {
                let [[a, b], [c, d]] =
                    [exact::normals(drawn[0], drawn[1]), exact::normals(drawn[2], drawn[3])];
                [a, b, c, d].map(|own| own * deviation + mean)
            }
            Draw::Gumbel => drawn.map(exact::gumbel),
            Draw::Next => {
                let [low, high] = words((u64::from(key[3]) << 32 | u64::from(key[2])).wrapping_add(1));
                [key[0], key[1], low, high].map(f32::from_bits)
            }
        }
    }
}

impl RowsOp for RandomOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/random/rows.wgsl");

    fn problem_key(&self) -> String {
        let draw = match self.draw {
            Draw::Next => return "next key".to_owned(),
            Draw::Uniform { low: Bits(low), high: Bits(high) } => format!("uniform{low}_{high}"),
            Draw::Normal { mean: Bits(mean), deviation: Bits(deviation) } => {
                format!("normal{mean}_{deviation}")
            }
            Draw::Gumbel => "gumbel".to_owned(),
        };
        format!("{draw} to{} stream{:016x}", self.output, self.stream)
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        vec![(Operand::Src, Dims::from(Shape::nhwc(1, 1, 1, super::KEY)).shape())]
    }

    fn output(&self) -> Shape {
        self.output.shape()
    }

    fn invocations(&self) -> usize {
        self.output.elements().div_ceil(BLOCK)
    }

    fn dtype(&self, operand: Operand) -> DType {
        let words = operand == Operand::Src || self.draw == Draw::Next;
        if words { DType::U32 } else { DType::F32 }
    }

    fn params(&self) -> Params {
        let mut params = vec![("elements", unsigned(self.output.elements()))];
        if self.draw == Draw::Next {
            return params;
        }
        let [low, high] = words(self.stream);
        params.extend([("stream0", Scalar::U32(low)), ("stream1", Scalar::U32(high))]);
        params.push(("zero", Scalar::U32(0)));
        match self.draw {
            Draw::Uniform { low: Bits(low), high: Bits(high) } => params.extend([
                ("low", Scalar::F32(low)),
                ("span", Scalar::F32(high - low)),
                ("end", Scalar::F32(Self::end(low, high))),
            ]),
            Draw::Normal { mean: Bits(mean), deviation: Bits(deviation) } => {
                params.extend([("mean", Scalar::F32(mean)), ("deviation", Scalar::F32(deviation))]);
            }
            Draw::Next | Draw::Gumbel => (),
        }
        params
    }

    fn constants(&self) -> Constants {
        let draw = match self.draw {
            Draw::Next => 0,
            Draw::Uniform { .. } => 1,
            Draw::Normal { .. } => 2,
            Draw::Gumbel => 3,
        };
        vec![("DRAW", Value::U32(draw))]
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        self.answer(operands)
    }

    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let &[key] = inputs else { return };
        let key = std::array::from_fn(|word| key.get(word).map_or(0, |word| word.to_bits()));
        let blocks = independent_rows(dst.len().div_ceil(BLOCK), WORK);
        each(dst.chunks_mut(blocks * BLOCK).enumerate(), |(part, dst)| {
            for (index, dst) in dst.chunks_mut(BLOCK).enumerate() {
                let drawn = self.block(part * blocks + index, key);
                dst.iter_mut().zip(drawn).for_each(|(to, own)| *to = own);
            }
        });
    }
}
