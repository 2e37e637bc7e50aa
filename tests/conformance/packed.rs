//! Rows of the table, and planted mistakes, of products with quantized weights: bits, blocks, zero points, and rows that end
//! within what a kernel reads at once.

use crate::cases::Breadth;
use crate::planted::Mistake;
use crate::problem::Problem;
use diptych::nn::QuantizedGemm;
use diptych::{Activation, Bits, DType, Dims, Layout, Precision};
use diptych_emit::emit::Operand;
use diptych_kernels::ops::operator::{Argument, Arguments, Lowered, Operator};
use std::collections::BTreeMap;

/// How zero points are given.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Zeros {
    Same,
    Floats,
    Packed,
}

/// The problem of rows `m k` and weights of `n` rows, with a bias and a residual if they are wanted.
fn problem(
    [m, n, k]: [usize; 3],
    options: QuantizedGemm,
    zeros: Zeros,
    [bias, residual]: [bool; 2],
    precision: Precision,
) -> Problem {
    let words = |count: usize| count.div_ceil(32 / options.bits);
    let blocks = options.block.map_or(1, |block| k.div_ceil(block));
    let given = [
        Some((Operand::Src, vec![m, k], DType::F32)),
        Some((Operand::Weights, vec![n, words(k)], DType::U32)),
        Some((Operand::Scales, vec![n, blocks], DType::F32)),
        match zeros {
            Zeros::Same => None,
            Zeros::Floats => Some((Operand::Zeros, vec![n, blocks], DType::F32)),
            Zeros::Packed => Some((Operand::Zeros, vec![n, words(blocks)], DType::U32)),
        },
        bias.then(|| (Operand::Bias, vec![n], DType::F32)),
        residual.then(|| (Operand::Residual, vec![m, n], DType::F32)),
    ];
    let argument = |(operand, dims, dtype): (Operand, Vec<usize>, DType)| Argument {
        operand,
        dims: Dims::new(&dims).expect("a valid row"),
        dtype,
    };
    let inputs: Vec<Argument> = given.into_iter().flatten().map(argument).collect();
    let arguments = Arguments { inputs: &inputs, dimensions: &BTreeMap::new(), narrow: true };
    match options.lower(arguments, precision) {
        Ok(Lowered::Op(op)) => op,
        found => panic!("{options:?} of {inputs:?} is {found:?}"),
    }
}

fn blocks(bits: usize, block: usize) -> QuantizedGemm {
    QuantizedGemm { block: Some(block), ..QuantizedGemm::new(bits) }
}

/// Each problem with its name.
pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    use Breadth::{Groups, Tiles, Variants};
    let mut table: Vec<(String, Problem, Breadth)> = Vec::new();
    let mut push = |extents: [usize; 3], options: QuantizedGemm, zeros: Zeros, extras: [bool; 2], breadth| {
        for precision in [Precision::F32, Precision::F16Storage] {
            let name = format!("{extents:?} {options:?} {zeros:?} {extras:?} {precision}");
            table.push((name, problem(extents, options, zeros, extras, precision), breadth));
        }
    };
    let (none, both) = ([false, false], [true, true]);
    // Rows of whole and of other vec4s; more of them than a tile has, and one.
    for extents in
        [[1, 1, 1], [1, 8, 64], [1, 67, 512], [5, 20, 36], [9, 13, 77], [17, 36, 260], [67, 131, 96]]
    {
        push(extents, QuantizedGemm::new(4), Zeros::Same, none, Groups);
        push(extents, QuantizedGemm::new(8), Zeros::Same, both, Variants);
    }
    // Each tile, of few rows and of many, in blocks that are read at once and in others.
    for (bits, block) in [(4, 32), (4, 8), (8, 32), (8, 4), (2, 64), (2, 16)] {
        for extents in [[1, 12, 2048], [3, 21, 290], [40, 44, 320]] {
            push(extents, blocks(bits, block), Zeros::Packed, both, Tiles);
            push(extents, blocks(bits, block), Zeros::Floats, none, Variants);
        }
    }
    // A row of another number, which has another third of the tiles.
    push([40, 44, 64], blocks(4, 32), Zeros::Packed, both, Tiles);
    push([2, 25, 2100], blocks(4, 32), Zeros::Packed, none, Tiles);
    // A block that a row ends within, one of three words, and one that is longer than a row.
    for block in [24, 56, 4096] {
        push([2, 9, 100], blocks(4, block), Zeros::Packed, none, Variants);
        push(
            [33, 12, 100],
            QuantizedGemm { zero: Bits(-2.5), ..blocks(4, block) },
            Zeros::Same,
            both,
            Variants,
        );
    }
    for activation in crate::cases::ACTIVATIONS {
        let options = QuantizedGemm { activation, ..blocks(4, 32) };
        push([3, 10, 64], options, Zeros::Same, both, Variants);
    }
    table
}

/// Wrong texts.
pub(crate) fn mistakes() -> Vec<Mistake> {
    let of = |extents, options, zeros| problem(extents, options, zeros, [true, true], Precision::F32);
    let few = || of([3, 22, 1100], blocks(4, 32), Zeros::Packed);
    let wide = || of([3, 24, 1024], blocks(4, 32), Zeros::Floats);
    let many = || of([37, 22, 300], blocks(4, 8), Zeros::Packed);
    let relu = QuantizedGemm { activation: Activation::Relu, ..blocks(8, 16) };
    // A residual beyond the last element would be the canary, and so would the sum.
    let bare = |m, n| problem([m, n, 64], blocks(4, 32), Zeros::Same, [true, false], Precision::F32);
    let bytes = || of([37, 72, 96], relu, Zeros::Same);
    #[expect(clippy::type_complexity, reason = "a table row, named by the struct it becomes")]
    let rows: Vec<(&str, Problem, &str, [u32; 3], &str, &str)> = vec![
        ("a unit for two", few(), "row", [1, 4, 32], "unit += SHARING", "unit += 2u * SHARING"),
        ("integers of the next place", few(), "row", [1, 4, 32], "5u * BITS", "6u * BITS"),
        ("zero points of the first block", few(), "row", [1, 4, 32], "(block2 % PER_WORD)", "(0u * block2)"),
        ("zero points of the first word", few(), "row", [1, 4, 32], "block2 / PER_WORD", "0u * block2"),
        ("the scale of another column", few(), "row", [2, 4, 32], "column5 + block5]", "column4 + block5]"),
        ("the scale of another block", wide(), "row", [1, 4, 32], "(UNIT * unit) / BLOCK", "unit / BLOCK"),
        (
            "the first word for the second",
            wide(),
            "row",
            [1, 4, 32],
            "vec4<u32>(word1.y)",
            "vec4<u32>(word1.x)",
        ),
        ("a zero point left out", wide(), "row", [1, 4, 32], "- zero3;", "- 0.0f * zero3;"),
        ("a sum not added", wide(), "row", [1, 4, 32], "step > 0u;", "step > 1u;"),
        (
            "columns of the first group",
            wide(),
            "row",
            [2, 4, 32],
            "kept[1u * SIZE + SHARING",
            "kept[0u * SIZE + SHARING",
        ),
        ("x beyond its row", few(), "row", [1, 4, 32], "< @k_row)", "< 4294967295u)"),
        ("a row beyond the last", bare(3, 24), "row", [1, 4, 8], "(row + 3u) < @m &&", "true &&"),
        ("a column beyond the last", bare(3, 22), "row", [1, 4, 8], "(column + 0u) + 2u < @n", "true"),
        ("the last step dropped", many(), "tiled", [1, 4, 1], "step < @steps;", "step + 1u < @steps;"),
        ("a step too early", many(), "tiled", [1, 4, 1], "min(step + 1u, @steps - 1u)", "step"),
        (
            "words of the first column",
            many(),
            "tiled",
            [1, 2, 1],
            "@words * w_from0 + at_0",
            "@words * column + at_0",
        ),
        (
            "rows of a neighbour",
            many(),
            "tiled",
            [1, 4, 1],
            "rows[PITCH * (lid.y + 2u * WG_Y)",
            "rows[PITCH * (lid.y + 1u * WG_Y)",
        ),
        (
            "columns of a neighbour",
            bytes(),
            "tiled",
            [2, 4, 1],
            "(2u * TILE_X * WG_X + lid.x + 1u",
            "(1u * TILE_X * WG_X + lid.x + 1u",
        ),
        ("a scale left out", bytes(), "tiled", [1, 8, 1], "= w_scale0 * ", "= "),
        ("a step not waited for", bytes(), "tiled", [1, 8, 1], "four < 8u;", "four < 7u;"),
        ("terms beyond the last", many(), "tiled", [1, 1, 1], "< @k_row)", "< 4294967295u)"),
        ("a row beyond the last", bare(37, 24), "tiled", [1, 8, 1], "(row + lid.y + 4u * WG_Y) < @m", "true"),
        ("a forgotten residual", bytes(), "tiled", [1, 1, 1], "sum0_0 = sum0_0 + residual[to_sum0_0];", ""),
    ];
    let rows = rows.into_iter().map(|(what, problem, variant, tile, from, to)| Mistake {
        what,
        problem,
        variant,
        tile,
        layout: Layout::C4,
        from,
        to,
    });
    rows.collect()
}
