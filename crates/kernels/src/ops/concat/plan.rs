//! What `concat` is, and its kernels.

use super::{ConcatOp, OP, operand, oracle};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::definition::Definition;
use crate::ops::halves::{Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::loops::{self, AsNest, OpNest};
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::plan::Choice;
use crate::ops::reference::Reference;
use crate::ops::rows::word_key;
use crate::ops::spec::extent;
use crate::shape::Shape;

impl Definition for ConcatOp {
    const NAME: &'static str = OP;
    const UNTUNABLE: Option<&'static str> = Some("each of its kernels serves another layout");

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[&AsNest::ELEMENTS_OF_MAPS, &AsNest::ELEMENTS]
    }

    fn problem_key(&self) -> String {
        let own: Vec<String> =
            self.inputs.iter().map(|input| input.extents()[self.axis].to_string()).collect();
        format!("to{} axis{} of {}{}", self.target, self.axis, own.join("+"), word_key(self.dtype))
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn flops(&self) -> u64 {
        0
    }

    fn dst_depth(&self) -> u32 {
        extent(self.target.shape().slices())
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let inputs = self.inputs.iter().enumerate();
        let inputs = inputs.map(|(index, dims)| OperandInfo::new(operand(index), dims.shape(), Role::Input));
        let infos = inputs.chain([OperandInfo::new(Operand::Dst, self.target.shape(), Role::Output)]);
        infos.map(|info| info.of(self.dtype)).collect()
    }

    fn nest(&self) -> Option<OpNest> {
        Some(OpNest::new(self.as_nest()?, (0..self.inputs.len()).map(operand).collect()))
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        oracle::oracle(self, operands)
    }

    fn cpu(&self, _constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        let operands: Vec<Operand> = (0..self.inputs.len()).map(operand).collect();
        loops::kernel(OP, self.nest_of_words(), &operands, self.target)
    }

    fn halves(&self) -> bool {
        self.dtype == DType::F32
    }

    fn reach(&self, inputs: &Reaches<'_>, _constants: &Operands<'_>) -> Reach {
        let infos = self.operands();
        let read = infos.iter().filter(|info| info.role != Role::Output).map(|info| inputs(info.operand));
        read.reduce(Reach::hull).unwrap_or(Reach::ALL)
    }

    fn joins(&self, choice: &Choice) -> Option<Vec<(Operand, usize)>> {
        let maps = choice.layout == Layout::C4;
        let in_one_piece = if maps {
            let shape = self.target.shape();
            // In the order of C4: batch, slices, height, width.
            match self.map_axis()? {
                0 => true,
                3 => shape.n == 1 && self.fills_slices(),
                1 => shape.n * shape.slices() == 1,
                _ => shape.n * shape.slices() * shape.h == 1,
            }
        } else {
            self.rows().0 == 1
        };
        let stored = |shape: &Shape| if maps { Layout::C4.elements(shape) } else { shape.elements() };
        let offsets = self.inputs.iter().enumerate().scan(0, |offset, (index, input)| {
            let own = *offset;
            *offset += stored(&input.shape());
            Some((operand(index), own))
        });
        in_one_piece.then(|| offsets.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;

    /// Where an input lies in the result is where its elements do.
    #[test]
    fn inputs_in_one_piece_lie_where_their_elements_do() {
        let mut pieces = 0;
        for (extents, axis) in [
            (&[[2, 3, 5, 4], [1, 3, 5, 4]][..], 0),
            (&[[1, 3, 5, 4], [1, 2, 5, 4]], 1),
            (&[[2, 3, 5, 4], [2, 2, 5, 4]], 1),
            (&[[1, 1, 5, 4], [1, 1, 7, 4]], 2),
            (&[[1, 3, 5, 8], [1, 3, 5, 4], [1, 3, 5, 3]], 3),
            (&[[1, 3, 5, 3], [1, 3, 5, 4]], 3),
            (&[[1, 1, 1, 3], [1, 1, 1, 4]], 3),
        ] {
            let dims: Vec<Dims> = extents.iter().map(|extents| Dims::new(extents).expect("small")).collect();
            let op = ConcatOp::new(&dims, axis, Precision::F32).expect("fits");
            let target = op.target.shape();
            for layout in [Layout::C4, Layout::Nhwc] {
                let choice = Choice::new("maps", [1; 3], [1; 3]).with_layout(layout);
                let mut begin = 0;
                let places = Definition::joins(&op, &choice);
                for (index, input) in dims.iter().map(Dims::shape).enumerate() {
                    let mut moved = true;
                    let offset = places.as_ref().map(|places| places[index].1);
                    for element in 0..input.elements() {
                        let (c, rest) = (element % input.c, element / input.c);
                        let (w, rest) = (rest % input.w, rest / input.w);
                        let mut at = [rest / input.h, rest % input.h, w, c];
                        let own = layout.index(&input, at[0], at[1], at[2], at[3]);
                        at[axis as usize] += begin;
                        let place = layout.index(&target, at[0], at[1], at[2], at[3]);
                        moved &= offset.is_none_or(|offset| offset + own == place);
                    }
                    assert!(moved, "{extents:?} along {axis} in {layout}: {places:?}");
                    begin += dims[index].extents()[axis as usize];
                }
                pieces += usize::from(places.is_some());
            }
        }
        assert_eq!(pieces, 8, "results in one piece");
    }
}
