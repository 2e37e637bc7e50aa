//! Problems of attention: every rule, orders of heads, and rows of whole vec4s and of others.

use crate::cases::Breadth;
use crate::problem::Problem;
use diptych::nn::{Attention, MaskRule};
use diptych::{Bits, DType, Dims, Precision};
use diptych_emit::emit::Operand;
use diptych_kernels::ops::attention::AttentionOp;
use diptych_kernels::ops::attention_join::AttentionJoinOp;
use diptych_kernels::ops::operator::{Argument, Arguments, Lowered, Operator};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Batch, heads of queries and of keys, queries, keys, and features of keys and of values.
type Extents = [usize; 7];

/// The problem of these extents; `more` are inputs beside queries, keys and values.
pub(crate) fn problem(
    extents: Extents,
    options: Attention,
    more: &[(Operand, &[usize], DType)],
    precision: Precision,
) -> Problem {
    let [batch, many, heads, rows, keys, depth, width] = extents;
    let ordered = |heads: usize, places: usize, features: usize| match options.places_first {
        true => [batch, places, heads, features],
        false => [batch, heads, places, features],
    };
    let own = [
        (Operand::Query, ordered(many, rows, depth)),
        (Operand::Key, ordered(heads, keys, depth)),
        (Operand::Value, ordered(heads, keys, width)),
    ];
    let argument = |operand: Operand, dims: &[usize], dtype: DType| Argument {
        operand,
        dims: Dims::new(dims).expect("a valid row"),
        dtype,
    };
    let mut inputs: Vec<Argument> =
        own.iter().map(|(operand, dims)| argument(*operand, dims, DType::F32)).collect();
    inputs.extend(more.iter().map(|&(operand, dims, dtype)| argument(operand, dims, dtype)));
    let arguments = Arguments { inputs: &inputs, dimensions: &BTreeMap::new(), narrow: true };
    match options.lower(arguments, precision) {
        Ok(Lowered::Op(op)) => op,
        found => panic!("{options:?} of {inputs:?} is {found:?}"),
    }
}

/// Scores that deviate by some 17, so that the largest of a row grows by far from one step of keys to the next.
pub(crate) fn steep(precision: Precision) -> Problem {
    problem(
        [1, 1, 1, 130, 100, 40, 40],
        Attention { scale: Some(Bits(8.0)), ..Attention::default() },
        &[],
        precision,
    )
}

/// Each problem with its name.
pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    let mut table: Vec<(String, Problem, Breadth)> = Vec::new();
    let mut push = |extents: Extents, options: Attention, more: &[(Operand, &[usize], DType)], breadth| {
        for precision in [Precision::F32, Precision::F16Storage] {
            let name = format!("{extents:?} {options:?} {more:?} {precision}");
            table.push((name, problem(extents, options, more, precision), breadth));
        }
    };
    use Breadth::{Groups, Tiles, Variants};
    let plain = Attention::default();
    let turned = Attention { places_first: true, ..plain };
    // Queries and keys that end within a work-group's and at its end, and features of each kind.
    for extents in [
        [1, 1, 1, 1, 1, 4, 4],
        [2, 3, 3, 64, 64, 8, 8],
        [1, 2, 2, 65, 129, 16, 20],
        [1, 2, 1, 5, 260, 32, 72],
        [2, 4, 2, 3, 300, 8, 4],
        [1, 1, 1, 7, 9, 3, 5],
        [1, 2, 2, 2, 33, 1, 300],
        [1, 1, 1, 33, 65, 64, 40],
    ] {
        push(extents, plain, &[], Groups);
        push(extents, turned, &[], Variants);
    }
    push([1, 1, 1, 130, 100, 40, 40], Attention { scale: Some(Bits(8.0)), ..plain }, &[], Groups);
    // Each tile, of rows that end within it.
    let matrices = [1, 2, 1, 130, 131, 40, 24];
    for extents in [[1, 2, 1, 67, 139, 16, 20], matrices, [1, 4, 2, 3, 301, 8, 4], [1, 1, 1, 7, 10, 3, 5]] {
        push(extents, plain, &[], Tiles);
        push(extents, Attention { behind: Some(1), ..turned }, &[], Tiles);
    }
    let causal = Attention { behind: Some(0), ..plain };
    let window = Attention { before: Some(4), behind: Some(2), ..turned };
    for extents in [[2, 2, 2, 21, 40, 8, 8], [1, 6, 2, 70, 70, 8, 12], [1, 2, 1, 6, 11, 5, 3]] {
        let [batch, many, _, rows, keys, ..] = extents;
        push(extents, Attention { begin: keys - rows, ..causal }, &[], Variants);
        push(extents, Attention { softcap: Bits(0.5), scale: Some(Bits(2.0)), ..window }, &[], Variants);
        let counts = [(Operand::Begins, &[batch][..], DType::I32), (Operand::Ends, &[1][..], DType::F32)];
        push(extents, causal, &counts, Variants);
        push(extents, Attention { nan_if_nothing: true, ..window }, &counts, Variants);
        let bias = [many, rows, keys];
        let mask = [batch, 1, 1, keys];
        let added = [(Operand::Bias, &bias[..], DType::F32), (Operand::Mask, &mask[..], DType::Bool)];
        push(extents, plain, &added, Variants);
        let hides = MaskRule { hides: true, fill: Bits(-1.0) };
        let added = [(Operand::Bias, &mask[..], DType::F32), (Operand::Mask, &bias[..], DType::F32)];
        push(extents, Attention { mask: hides, ..turned }, &added, Variants);
    }
    // Keys in parts, the last of them short or without any, and what joins them.
    for extents in [[1, 6, 2, 1, 300, 8, 12], [2, 4, 4, 3, 41, 5, 3], [1, 2, 1, 2, 9, 16, 4]] {
        let ends = [(Operand::Ends, &[1][..], DType::I32)];
        let causal = Attention { behind: Some(0), begin: 30, ..turned };
        for (parts, options, more) in
            [(2, plain, &[][..]), (7, turned, &[]), (5, causal, &[]), (3, plain, &ends)]
        {
            for precision in [Precision::F32, Precision::F16Storage] {
                let whole = problem(extents, options, more, precision);
                let whole = whole.as_any().downcast_ref::<AttentionOp>().expect("an attention");
                let name = format!("{extents:?} {options:?} {more:?} in {parts} {precision}");
                let in_parts: Problem = Arc::new(whole.in_parts(parts).expect("parts"));
                table.push((name.clone(), in_parts, Tiles));
                let nan = Attention { nan_if_nothing: true, ..options };
                let of = if precision == Precision::F32 { options } else { nan };
                let whole = problem(extents, of, more, precision);
                let whole = whole.as_any().downcast_ref::<AttentionOp>().expect("an attention");
                let join = AttentionJoinOp::of(whole, parts).expect("parts");
                table.push((format!("{name} joined"), Arc::new(join), Variants));
            }
        }
    }
    table
}

/// `parts` of the keys of few queries.
pub(crate) fn in_parts(parts: usize) -> Problem {
    let whole = problem([1, 2, 1, 2, 301, 8, 12], Attention::default(), &[], Precision::F32);
    let whole = whole.as_any().downcast_ref::<AttentionOp>().expect("an attention");
    Arc::new(whole.in_parts(parts).expect("parts"))
}

/// The join of `parts` of many queries.
pub(crate) fn join(parts: usize) -> Problem {
    let whole = problem(
        [2, 6, 2, 5, 90, 8, 12],
        Attention { places_first: true, ..Attention::default() },
        &[],
        Precision::F32,
    );
    let whole = whole.as_any().downcast_ref::<AttentionOp>().expect("an attention");
    Arc::new(AttentionJoinOp::of(whole, parts).expect("parts"))
}
