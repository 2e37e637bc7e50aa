use super::*;
use crate::dims::Dim;
use crate::emit::Bits;
use crate::ops::op::Answer;
use crate::ops::operands::of;
use crate::ops::operator::{Argument, Operator, View};

fn lowered(operator: &dyn Operator, extents: &[usize]) -> Result<Lowered> {
    let inputs =
        [Argument { operand: Operand::Src, dims: Dims::new(extents).expect("small"), dtype: DType::F32 }];
    let dimensions = BTreeMap::from([("rows".to_owned(), 3)]);
    operator.lower(Arguments { inputs: &inputs, dimensions: &dimensions, narrow: false }, Precision::F32)
}

/// The extents and elements of the result of `0, 1, 2, ...`.
fn result(operator: &dyn Operator, extents: &[usize]) -> (Vec<usize>, Vec<f64>) {
    let inputs =
        [Argument { operand: Operand::Src, dims: Dims::new(extents).expect("small"), dtype: DType::F32 }];
    let dimensions = BTreeMap::new();
    let Ok(Lowered::Op(op)) = lowered(operator, extents) else { panic!("{operator:?} of {extents:?}") };
    let source: Vec<f32> = (0..inputs[0].dims.elements()).map(|value| value as f32).collect();
    let reference = op.reference(&of(&[(Operand::Src, &source)]), Answer::Exact).expect("an input");
    let dims = operator.outputs(Arguments { inputs: &inputs, dimensions: &dimensions, narrow: false }, &*op);
    (dims[0].extents().to_vec(), reference.value().to_vec())
}

fn view(operator: &dyn Operator, extents: &[usize]) -> Option<(Vec<usize>, usize)> {
    match lowered(operator, extents) {
        Ok(Lowered::View(View { dims, offset })) => Some((dims.extents().to_vec(), offset)),
        _ => None,
    }
}

fn refused(operator: &dyn Operator, extents: &[usize], wanted: &str) {
    let text = lowered(operator, extents).expect_err("refused").to_string();
    assert!(text.contains(operator.name()) && text.contains(wanted), "{text}");
}

#[test]
fn a_transpose_takes_its_axes_in_their_new_order() {
    let operator = Transpose { permutation: vec![2, 0, 1] };
    let wanted = vec![0.0, 3.0, 6.0, 9.0, 1.0, 4.0, 7.0, 10.0, 2.0, 5.0, 8.0, 11.0];
    assert_eq!(result(&operator, &[2, 2, 3]), (vec![3, 2, 2], wanted));
    let ones = Transpose { permutation: vec![1, 0, 3, 2] };
    assert_eq!(view(&ones, &[1, 5, 1, 7]), Some((vec![5, 1, 7, 1], 0)));
    refused(&Transpose { permutation: vec![0, 0] }, &[2, 3], "each axis once");
    refused(&Transpose { permutation: vec![0, 2] }, &[2, 3], "each axis once");
    refused(&Transpose { permutation: vec![0] }, &[2, 3], "one for each axis of 2x3");
}

#[test]
fn a_slice_has_its_ranges_and_is_a_view_if_it_is_one_piece() {
    let range = |begin, end, step| AxisRange { begin, end, step };
    let operator = StridedSlice { ranges: vec![range(None, None, -1), range(Some(1), None, 2)] };
    assert_eq!(result(&operator, &[2, 5]), (vec![2, 2], vec![6.0, 8.0, 1.0, 3.0]));
    let outer = StridedSlice { ranges: vec![AxisRange::ALL, AxisRange::new(1, 3), AxisRange::ALL] };
    assert_eq!(view(&outer, &[1, 4, 5]), Some((vec![1, 2, 5], 5)));
    assert_eq!(view(&outer, &[2, 4, 5]), None);
    assert_eq!(view(&StridedSlice { ranges: vec![AxisRange::new(3, 3)] }, &[5]), Some((vec![0], 0)));
    refused(&StridedSlice { ranges: vec![range(None, None, 0)] }, &[5], "step");
}

#[test]
fn a_pad_adds_what_its_mode_says() {
    let row = |mode| result(&Pad { before: vec![2], after: vec![1], mode }, &[3]).1;
    assert_eq!(row(PadMode::Constant(Bits(9.0))), [9.0, 9.0, 0.0, 1.0, 2.0, 9.0]);
    assert_eq!(row(PadMode::Reflect), [2.0, 1.0, 0.0, 1.0, 2.0, 1.0]);
    assert_eq!(row(PadMode::Symmetric), [1.0, 0.0, 0.0, 1.0, 2.0, 2.0]);
    assert_eq!(row(PadMode::Edge), [0.0, 0.0, 0.0, 1.0, 2.0, 2.0]);
    let none = Pad { before: vec![0, 0], after: vec![0, 0], mode: PadMode::Reflect };
    assert_eq!(view(&none, &[2, 3]), Some((vec![2, 3], 0)));
    refused(&Pad { before: vec![3], after: vec![0], mode: PadMode::Reflect }, &[3], "at most 2");
    refused(&Pad { before: vec![0], after: vec![4], mode: PadMode::Symmetric }, &[3], "at most 3");
    let most = Pad { before: vec![usize::MAX], after: vec![0], mode: PadMode::Edge };
    refused(&most, &[3], "before");
}

#[test]
fn copies_follow_each_other() {
    assert_eq!(result(&Tile { repeats: vec![1, 2] }, &[2, 2]).1, [0.0, 1.0, 0.0, 1.0, 2.0, 3.0, 2.0, 3.0]);
    assert_eq!(view(&Tile { repeats: vec![0] }, &[2]), Some((vec![0], 0)));
    refused(&Tile { repeats: vec![usize::MAX] }, &[2], "32 bits");
    let to = |target: &[Dim]| BroadcastTo { target: target.to_vec() };
    let (dims, values) = result(&to(&[2.into(), 2.into(), Dim::Rest]), &[2, 1]);
    assert_eq!((dims, values), (vec![2, 2, 1], vec![0.0, 1.0, 0.0, 1.0]));
    assert_eq!(result(&to(&["rows".into()]), &[1]).0, [3]);
    refused(&to(&[3.into()]), &[2], "2 to 3");
    refused(&to(&["columns".into()]), &[1], "columns");
    refused(&to(&[]), &[2], "extents");
    assert_eq!(result(&Reverse { axes: vec![-1] }, &[2, 3]).1, [2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
    refused(&Reverse { axes: vec![0, -2] }, &[2, 3], "each axis once");
    refused(&Reverse { axes: vec![2] }, &[2, 3], "axis 2 of 2x3");
}

#[test]
fn blocks_become_channels_or_images_and_back() {
    // The first channel of each pixel is its block's first row and column.
    let (dims, values) = result(&DepthToSpace { block: 2 }, &[1, 1, 2, 4]);
    assert_eq!((dims, values), (vec![1, 2, 4, 1], vec![0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]));
    let (dims, values) = result(&SpaceToDepth { block: 2 }, &[1, 2, 4, 1]);
    assert_eq!((dims, values), (vec![1, 1, 2, 4], vec![0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]));
    let (dims, values) = result(&SpaceToBatch { block: vec![2, 2] }, &[1, 2, 4, 1]);
    assert_eq!((dims, values), (vec![4, 1, 2, 1], vec![0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]));
    let (dims, values) = result(&BatchToSpace { block: vec![2, 2] }, &[4, 1, 2, 1]);
    assert_eq!((dims, values), (vec![1, 2, 4, 1], vec![0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]));
    refused(&DepthToSpace { block: 2 }, &[1, 1, 1, 6], "multiple of 4");
    refused(&DepthToSpace { block: 0 }, &[1, 1, 1, 6], "at least 1");
    refused(&SpaceToDepth { block: 2 }, &[1, 2, 3, 1], "multiple of 2");
    refused(&SpaceToDepth { block: usize::MAX }, &[1, 2, 3, 1], "multiple");
    refused(&SpaceToBatch { block: vec![0] }, &[1, 4], "multiple of 0");
    refused(&BatchToSpace { block: vec![3] }, &[4, 4], "multiple of 3");
    refused(&BatchToSpace { block: vec![1, 1] }, &[4, 4], "at least 2 axes");
}

/// What one operator moves, the other one moves back.
#[test]
fn inverses_are_inverse() {
    let pairs: [(&dyn Operator, &dyn Operator, &[usize]); 2] = [
        (&SpaceToDepth { block: 3 }, &DepthToSpace { block: 3 }, &[2, 6, 9, 2]),
        (&SpaceToBatch { block: vec![2, 3] }, &BatchToSpace { block: vec![2, 3] }, &[2, 4, 9, 2]),
    ];
    for (there, back, extents) in pairs {
        let (dims, values) = result(there, extents);
        let Ok(Lowered::Op(op)) = lowered(back, &dims) else { panic!("{back:?} of {dims:?}") };
        let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        let reference = op.reference(&of(&[(Operand::Src, &values)]), Answer::Exact).expect("an input");
        assert!(reference.value().iter().enumerate().all(|(at, value)| *value == at as f64), "{back:?}");
    }
}
