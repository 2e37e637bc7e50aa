//! What `update_slice` is as an op of rows: one element per invocation, or four where rows are of whole vec4s.

use super::{OP, Sizes, UpdateSliceOp};
use crate::cpu::blocks::{MOVED, independent_rows};
use crate::cpu::workers::each;
use crate::dtype::{DType, Precision};
use crate::emit::{Operand, Value};
use crate::ops::kernel::Constants;
use crate::ops::op::Op;
use crate::ops::operands::{Operands, Role, get};
use crate::ops::reference::Reference;
use crate::ops::rows::{RowsOp, word_key};
use crate::ops::spec::{Params, unsigned};
use crate::shape::Shape;
use crate::word::numbers;
use std::sync::Arc;

impl UpdateSliceOp {
    /// Elements that every invocation moves at once.
    fn width(&self) -> usize {
        if self.sizes().inner.is_multiple_of(4) { 4 } else { 1 }
    }

    /// What an invocation is for.
    fn moved(&self) -> usize {
        if self.in_place { self.part.elements() } else { self.whole.elements() }
    }
}

impl RowsOp for UpdateSliceOp {
    const NAME: &'static str = OP;
    const TEXT: &'static str = crate::emit::text!("../../../shaders/update_slice/rows.wgsl");

    fn problem_key(&self) -> String {
        let UpdateSliceOp { whole, part, places, axis, in_place, dtype, .. } = self;
        let place = if *in_place { " in_place" } else { "" };
        format!("into{whole} of{part} at{places} axis{axis}{place}{}", word_key(*dtype))
    }

    fn inputs(&self) -> Vec<(Operand, Shape)> {
        let parts = [(Operand::Arg(0), self.part.shape()), (Operand::Arg(1), self.places.shape())];
        let whole = (!self.in_place).then_some((Operand::Src, self.whole.shape()));
        whole.into_iter().chain(parts).collect()
    }

    fn output(&self) -> Shape {
        self.whole.shape()
    }

    fn output_role(&self) -> Role {
        if self.in_place { Role::Update } else { Role::Output }
    }

    fn in_place(&self) -> Option<(Arc<dyn Op>, Operand)> {
        (!self.in_place).then(|| (Arc::new(self.updating()) as Arc<dyn Op>, Operand::Src))
    }

    /// Rows that are written, of which each element is loaded once.
    fn takes_prologue(&self, operand: Operand) -> bool {
        operand == Operand::Arg(0) && self.width() == 4 && self.dtype == DType::F32
    }

    fn invocations(&self) -> usize {
        self.moved() / self.width()
    }

    fn dtype(&self, operand: Operand) -> DType {
        if operand == Operand::Arg(1) { DType::I32 } else { self.dtype }
    }

    fn precision(&self) -> Precision {
        if self.dtype == DType::F32 && self.width() == 4 { self.precision } else { Precision::F32 }
    }

    fn stored(&self, operand: Operand) -> DType {
        match self.dtype(operand) {
            DType::F32 => RowsOp::precision(self).storage(),
            other => other,
        }
    }

    fn is_wide(&self, operand: Operand) -> bool {
        self.width() == 4 && operand != Operand::Arg(1)
    }

    /// Elements are counted in vec4s where they are moved.
    fn params(&self) -> Params {
        let (width, Sizes { outer, extent, rows, inner }) = (self.width(), self.sizes());
        vec![
            ("elements", unsigned(self.moved() / width)),
            ("outer", unsigned(outer)),
            ("extent", unsigned(extent)),
            ("rows", unsigned(rows)),
            ("inner", unsigned(inner / width)),
        ]
    }

    fn constants(&self) -> Constants {
        vec![("LANES", Value::U32(self.width() as u32)), ("IN_PLACE", Value::U32(u32::from(self.in_place)))]
    }

    /// Each element by itself.
    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        let values = |operand| numbers(self.dtype(operand), get(operands, operand).unwrap_or_default());
        let before = values(if self.in_place { Operand::Dst } else { Operand::Src });
        let (part, places) = (values(Operand::Arg(0)), values(Operand::Arg(1)));
        let Sizes { outer, extent, rows, inner } = self.sizes();
        Reference::exact(before.iter().enumerate().map(|(element, &value)| {
            let (column, line) = (element % inner, element / inner);
            let (row, line) = (line % extent, line / extent);
            let begin = places.get(line / outer).copied().unwrap_or_default();
            let from = row as f64 - begin;
            if from < 0.0 || from >= rows as f64 {
                return value;
            }
            part.get((line * rows + from as usize) * inner + column).copied().unwrap_or(f64::NAN)
        }))
    }

    /// The rows of each line that are within it, in one piece.
    fn compute(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let (whole, part, places) = match *inputs {
            [part, places] => (None, part, places),
            [whole, part, places] => (Some(whole), part, places),
            _ => return,
        };
        let Sizes { outer, extent, rows, inner } = self.sizes();
        let inner = inner * self.dtype.words();
        let [line, update] = [extent, rows].map(|rows| rows * inner);
        let moved = if whole.is_some() { line + update } else { update };
        let block = independent_rows(dst.len() / line, MOVED * moved);
        each(dst.chunks_mut(block * line).enumerate(), |(index, dst)| {
            for (number, dst) in dst.chunks_exact_mut(line).enumerate() {
                let number = index * block + number;
                if let Some(whole) = whole {
                    dst.copy_from_slice(&whole[number * line..(number + 1) * line]);
                }
                let begin = i64::from(places[number / outer].to_bits() as i32);
                let [first, end] = [begin, begin + rows as i64].map(|at| at.clamp(0, extent as i64));
                let (first, end) = (first as usize, end as usize);
                if first < end {
                    let from = number * update + (first as i64 - begin) as usize * inner;
                    let length = (end - first) * inner;
                    dst[first * inner..end * inner].copy_from_slice(&part[from..from + length]);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::ops::expected::on_cpu;
    use crate::ops::operands::of;
    use crate::ops::update_slice::UpdateSlice;

    #[test]
    fn rows_are_written_where_they_belong_and_left_out_elsewhere() {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let options = UpdateSlice { axis: 1 };
        let op = UpdateSliceOp::new(dims(&[2, 3, 1]), dims(&[2, 2, 1]), dims(&[2]), options).expect("fits");
        let whole = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let part = [10.0, 11.0, 12.0, 13.0];
        for (places, wanted) in [
            ([0, 1], [10.0, 11.0, 2.0, 3.0, 12.0, 13.0]),
            ([-1, 2], [11.0, 1.0, 2.0, 3.0, 4.0, 12.0]),
            ([3, -2], whole),
            ([i32::MAX, i32::MIN], whole),
        ] {
            let places = places.map(|place| f32::from_bits(place as u32));
            let parts = [(Operand::Arg(0), &part[..]), (Operand::Arg(1), &places)];
            for (op, before) in [(op, Operand::Src), (op.updating(), Operand::Dst)] {
                let given = of(&[&parts[..], &[(before, &whole)]].concat());
                assert_eq!(*op.oracle(&given).value(), wanted.map(f64::from), "{places:?}");
                assert_eq!(on_cpu(&op, &given).expect("runs"), wanted, "{places:?}");
            }
        }
    }
}
