//! Problems of the ops that move elements: every rule and kind of move, of ranks 1 to 6, in rows and maps.

use crate::cases::Breadth;
use crate::problem::Problem;
use diptych::{
    Bits, Dims, Precision,
    nn::{
        AxisRange, BatchToSpace, BroadcastTo, CumSum, DepthToSpace, Gather, OneHot, Pad, PadMode, Random,
        Reverse, SpaceToBatch, SpaceToDepth, StridedSlice, Suppress, Tile, TopK, Transpose, UpdateSlice,
    },
};
use diptych_emit::emit::Operand;
use diptych_kernels::ops::concat::ConcatOp;
use diptych_kernels::ops::gather::GatherOp;
use diptych_kernels::ops::operator::{Argument, Arguments, Lowered, Operator};
use diptych_kernels::ops::random::RandomOp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Each problem with its name.
pub(crate) fn rows() -> Vec<(String, Problem, Breadth)> {
    let mut table = Table(Vec::new());
    table.remap();
    table.concat();
    table.gather();
    table.update_slice();
    table.chosen();
    table.suppress();
    table.random();
    table.0
}

struct Table(Vec<(String, Problem, Breadth)>);

impl Table {
    fn push(&mut self, name: String, problem: Problem, breadth: Breadth) {
        self.0.push((name, problem, breadth));
    }

    /// What `operator` is for a source of these extents.
    fn moved(&mut self, extents: &[usize], operator: &dyn Operator, precision: Precision, breadth: Breadth) {
        let problem = lowered(operator, &[(Operand::Src, extents)], precision);
        self.push(format!("{operator:?} of {extents:?} {precision}"), problem, breadth);
    }

    fn remap(&mut self) {
        use Breadth::{Groups, Variants};
        const F32: Precision = Precision::F32;
        for permutation in [&[1, 0][..], &[0, 2, 1], &[2, 1, 0], &[0, 3, 1, 2], &[0, 2, 1, 3], &[3, 2, 1, 0]]
        {
            let operator = Transpose { permutation: permutation.to_vec() };
            for extents in [[2, 3, 5, 7], [3, 8, 4, 12], [1, 67, 3, 33]] {
                self.moved(&extents[4 - permutation.len()..], &operator, F32, Variants);
            }
        }
        // Matrices of whole tiles and of parts of them, behind others and with elements in between.
        for extents in [[3, 32, 64], [2, 67, 33], [1, 8, 131], [2, 31, 9]] {
            self.moved(&extents, &Transpose { permutation: vec![0, 2, 1] }, F32, Variants);
            self.moved(&[extents[1], extents[2]], &Transpose { permutation: vec![1, 0] }, F32, Variants);
        }
        self.moved(&[9, 3, 11], &Transpose { permutation: vec![1, 2, 0] }, F32, Variants);
        self.moved(&[2, 3, 5, 4, 7], &Transpose { permutation: vec![4, 2, 0, 3, 1] }, F32, Variants);
        self.moved(&[2, 3, 2, 4, 3, 5], &Transpose { permutation: vec![5, 1, 3, 0, 4, 2] }, F32, Groups);
        self.moved(&[2, 3, 2, 4, 3, 4], &Transpose { permutation: vec![2, 1, 0, 4, 3, 5] }, F32, Variants);

        let range = |begin, end, step| AxisRange { begin, end, step };
        let all = AxisRange::ALL;
        for ranges in [
            vec![range(Some(1), None, 2), all, all, all],
            vec![all, range(Some(-1), None, -2), range(Some(1), Some(5), 3), all],
            vec![all, all, all, range(Some(4), Some(8), 1)],
            vec![all, range(Some(1), None, 1), all, range(Some(1), Some(-1), 1)],
            vec![all, all, range(None, None, 4), range(None, None, -3)],
            vec![all, range(None, Some(3), 1), all, range(None, None, 2)],
        ] {
            for extents in [[4, 5, 6, 11], [5, 4, 7, 16], [4, 3, 5, 9]] {
                self.moved(&extents, &StridedSlice { ranges: ranges.clone() }, F32, Variants);
            }
        }
        self.moved(&[13], &StridedSlice { ranges: vec![range(Some(-2), None, -3)] }, F32, Variants);

        let modes = [PadMode::Constant(Bits(-1.5)), PadMode::Reflect, PadMode::Symmetric, PadMode::Edge];
        for mode in modes {
            let pad = |before: &[usize], after: &[usize]| Pad {
                before: before.to_vec(),
                after: after.to_vec(),
                mode,
            };
            for extents in [[2, 3, 5, 4], [1, 7, 3, 9], [3, 5, 4, 16]] {
                for (before, after) in
                    [([0, 2, 1, 0], [0, 1, 2, 0]), ([1, 0, 0, 3], [0, 0, 0, 2]), ([0, 0, 2, 4], [0, 2, 0, 8])]
                {
                    let fits = |index: usize| before[index].max(after[index]) < extents[index];
                    let most = matches!(mode, PadMode::Constant(_) | PadMode::Edge);
                    if most || (0..4).all(fits) {
                        self.moved(&extents, &pad(&before, &after), F32, Variants);
                    }
                }
            }
            self.moved(&[7], &pad(&[6], &[3]), F32, Variants);
            self.moved(&[3, 12], &pad(&[0, 4], &[2, 8]), F32, Variants);
            self.moved(&[2, 2, 3, 2, 3, 5], &pad(&[1, 0, 2, 0, 1, 0], &[0, 1, 0, 1, 2, 3]), F32, Groups);
        }
        for (extents, repeats) in [
            (&[5][..], &[3][..]),
            (&[2, 3, 5, 7], &[1, 2, 3, 1]),
            (&[1, 3, 5, 8], &[2, 1, 1, 3]),
            (&[2, 1, 3, 3], &[1, 5, 1, 2]),
            (&[2, 1, 2, 3, 2, 3], &[2, 3, 1, 2, 2, 1]),
        ] {
            self.moved(extents, &Tile { repeats: repeats.to_vec() }, F32, Variants);
        }
        for (extents, target) in [
            (&[][..], &[2, 3, 5][..]),
            (&[7], &[2, 3, 5, 7]),
            (&[8], &[2, 3, 5, 8]),
            (&[2, 1, 5, 1], &[2, 3, 5, 7]),
            (&[1, 3, 1, 8], &[2, 3, 5, 8]),
            (&[2, 1, 3, 1, 2, 1], &[2, 2, 3, 3, 2, 3]),
        ] {
            let target = target.iter().map(|&extent| extent.into()).collect();
            self.moved(extents, &BroadcastTo { target }, F32, Variants);
        }
        for axes in [vec![1], vec![2, -1], vec![0, 3]] {
            for channels in [3, 8, 13] {
                self.moved(&[2, 5, 3, channels], &Reverse { axes: axes.clone() }, F32, Variants);
            }
        }
        for channels in [1, 3, 4, 8] {
            for block in [2, 3] {
                let deep = [2, 3, 5, channels * block * block];
                self.moved(&deep, &DepthToSpace { block }, F32, Variants);
                self.moved(&[2, 3 * block, 5 * block, channels], &SpaceToDepth { block }, F32, Variants);
            }
            self.moved(&[2, 4, 9, channels], &SpaceToBatch { block: vec![2, 3] }, F32, Variants);
            self.moved(&[12, 3, 5, channels], &BatchToSpace { block: vec![2, 3] }, F32, Variants);
        }
        self.moved(&[2, 6, 5], &SpaceToBatch { block: vec![3] }, F32, Variants);
        self.moved(&[16, 1, 2, 3, 2, 3], &BatchToSpace { block: vec![2, 2, 2] }, F32, Variants);
        for precision in [Precision::F16Storage, Precision::F16] {
            for channels in [5, 8] {
                let source = [2, 4, 6, channels];
                self.moved(&source, &Transpose { permutation: vec![0, 2, 1, 3] }, precision, Variants);
                for mode in modes {
                    let pad = Pad { before: vec![0, 1, 2, 3], after: vec![0, 2, 0, 1], mode };
                    self.moved(&source, &pad, precision, Variants);
                    let pad = Pad { before: vec![0, 1, 2, 0], after: vec![0, 2, 0, 0], mode };
                    self.moved(&source, &pad, precision, Variants);
                }
                self.moved(&source, &Tile { repeats: vec![2, 1, 2, 1] }, precision, Variants);
                self.moved(&source, &Reverse { axes: vec![1, 3] }, precision, Variants);
                self.moved(&source, &SpaceToDepth { block: 2 }, precision, Variants);
            }
        }
    }

    fn gather(&mut self) {
        for channels in [1, 7, 8] {
            for (axis, batch_dims, indices) in [
                (0, 0, &[][..]),
                (0, 0, &[13]),
                (1, 0, &[2, 3]),
                (2, 0, &[5]),
                (3, 0, &[4]),
                (1, 1, &[3, 2]),
                (3, 2, &[3, 5, 2]),
            ] {
                let [source, indices] = [&[3, 5, 7, channels][..], indices]
                    .map(|extents| Dims::new(extents).expect("a valid row"));
                let op = GatherOp::new(source, indices, Gather { axis, batch_dims }).expect("a valid row");
                let name = format!("{indices} of axis {axis} of {source}, {batch_dims} shared");
                let halves = op.clone().in_precision(Precision::F16Storage);
                self.push(format!("{name}, halves"), Arc::new(halves), Breadth::Variants);
                self.push(name, Arc::new(op), Breadth::Variants);
            }
            for (source, indices) in [
                (&[5, 7, channels][..], &[3, 2, 2][..]),
                (&[5, 2, 3, channels], &[11, 3]),
                (&[4, 3], &[2, 1]),
            ] {
                let [source, indices] =
                    [source, indices].map(|extents| Dims::new(extents).expect("a valid row"));
                let op = GatherOp::nd(source, indices).expect("a valid row");
                let name = format!("{indices} of the first axes of {source}, {channels}");
                self.push(name, Arc::new(op), Breadth::Groups);
            }
        }
    }

    /// Each in place, too.
    fn update_slice(&mut self) {
        for channels in [1, 7, 8] {
            for (axis, count, places) in [(0, 2, 1), (0, 9, 1), (1, 1, 1), (1, 3, 5), (2, 5, 5), (2, 1, 1)] {
                let whole = [5, 6, 7, channels];
                let mut part = whole;
                part[axis as usize] = count;
                let inputs =
                    [(Operand::Src, &whole[..]), (Operand::Arg(0), &part), (Operand::Arg(1), &[places])];
                for precision in [Precision::F32, Precision::F16Storage] {
                    let problem = lowered(&UpdateSlice { axis }, &inputs, precision);
                    let name =
                        format!("{count} rows of axis {axis} of {whole:?} at {places} places, {precision}");
                    let (in_place, _) = problem.in_place().expect("it may be in place");
                    self.push(format!("{name} in place"), in_place, Breadth::Groups);
                    self.push(name, problem, Breadth::Variants);
                }
            }
        }
    }

    fn suppress(&mut self) {
        for (boxes, scores, count) in [
            (&[1, 1, 4][..], &[1, 1][..], 1),
            (&[1, 67, 4], &[1, 67], 13),
            (&[3, 13, 4], &[3, 13], 5),
            (&[1, 257, 4], &[2, 257], 11),
            (&[1, 7, 4], &[5, 7], 9),
            (&[2, 64, 4], &[2, 64], 64),
            (&[1, 300, 4], &[1, 300], 3),
        ] {
            for (overlap, score, sigma, strict) in
                [(0.25, -0.5, 0.0, false), (0.05, 0.0, 0.0, true), (1.0, -0.25, 0.5, true)]
            {
                let [overlap, score, sigma] = [overlap, score, sigma].map(Bits);
                let options = Suppress { count, overlap, score, sigma, strict };
                let inputs = [(Operand::Arg(0), boxes), (Operand::Arg(1), scores)];
                let name = format!("{options:?} of {boxes:?}, {scores:?}");
                self.push(name, lowered(&options, &inputs, Precision::F32), Breadth::Variants);
            }
        }
    }

    fn random(&mut self) {
        let all = [Random::uniform(-1.0, 3.0), Random::normal(0.5, 2.0), Random::gumbel()];
        for (options, stream) in all.into_iter().zip([0, 1 << 40, u64::MAX]) {
            for extents in [&[][..], &[3], &[4], &[5], &[17, 19], &[2, 3, 5, 7, 11]] {
                let dims = Dims::new(extents).expect("a valid row");
                let problem: Problem =
                    Arc::new(RandomOp::new(options, stream, dims).expect("a distribution"));
                self.0.push((format!("random {}", problem.problem_key()), problem, Breadth::Groups));
            }
        }
    }

    fn chosen(&mut self) {
        use Breadth::Groups;
        const F32: Precision = Precision::F32;
        for extents in [&[][..], &[7], &[3, 5], &[2, 3, 4, 5]] {
            for (axis, depth) in [(0, 6), (-1, 6), (0, 1), (-1, 13), (0, 67), (-1, 4)] {
                let [on, off] = if depth == 6 { [1.0, 0.0] } else { [1.5, -0.5] }.map(Bits);
                let options = OneHot { depth, on, off, axis };
                self.moved(extents, &options, F32, Groups);
            }
        }
        for extents in [&[13][..], &[3, 5], &[2, 7, 3, 5]] {
            for axis in 0..extents.len() as isize {
                for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
                    self.moved(extents, &CumSum { axis, exclusive, reverse }, F32, Groups);
                }
            }
        }
        let few: [(&[usize], usize); 10] = [
            (&[1], 1),
            (&[67], 13),
            (&[3, 5, 33], 33),
            (&[11, 2], 1),
            (&[2], 2),
            (&[7, 13], 5),
            (&[2, 3, 2, 5], 4),
            (&[1, 127], 1),
            (&[5, 64], 64),
            (&[2, 2, 2, 2, 3], 2),
        ];
        for (extents, k) in few {
            for indices in [false, true] {
                self.moved(extents, &TopK { k, largest: k != 4, indices }, F32, Groups);
            }
        }
        // Rows of many elements, with equals among them, and all of them sorted.
        for (extents, k) in [(&[2, 4999][..], 100), (&[1, 4103], 4103)] {
            self.moved(extents, &TopK { k, largest: true, indices: true }, F32, Breadth::Tiles);
        }
        self.moved(&[2, 4999], &TopK { k: 100, largest: false, indices: true }, F32, Breadth::Tiles);
    }

    /// Inputs of `extents`, of which each has one of `sizes` along `axis`.
    fn joined(
        &mut self,
        extents: &[usize],
        axis: usize,
        sizes: &[usize],
        precision: Precision,
        breadth: Breadth,
    ) {
        let own = |&size: &usize| {
            let mut own = extents.to_vec();
            own[axis] = size;
            Dims::new(&own).expect("a valid row")
        };
        let inputs: Vec<Dims> = sizes.iter().map(own).collect();
        let op = ConcatOp::new(&inputs, axis as isize, precision).expect("a valid row");
        self.push(format!("{sizes:?} of {extents:?} along {axis} {precision}"), Arc::new(op), breadth);
    }

    fn concat(&mut self) {
        use Breadth::{Groups, Variants};
        const F32: Precision = Precision::F32;
        for channels in [5, 8] {
            for axis in 0..3 {
                for sizes in [&[1, 1][..], &[3, 5, 2], &[1, 2, 3, 4, 5, 6, 7]] {
                    self.joined(&[2, 3, 5, channels], axis, sizes, F32, Variants);
                }
            }
        }
        for sizes in [&[4, 8][..], &[8, 3], &[3, 8], &[1, 1, 1], &[33, 4, 30], &[1, 2, 3, 4, 5, 6, 7]] {
            self.joined(&[2, 7, 3, 1], 3, sizes, F32, Groups);
        }
        self.joined(&[1], 0, &[3, 5], F32, Variants);
        self.joined(&[3, 1], 1, &[4, 8, 4], F32, Variants);
        self.joined(&[3, 1, 2, 4, 3], 0, &[2, 1], F32, Variants);
        self.joined(&[2, 1, 3, 4, 5], 1, &[2, 3], F32, Variants);
        self.joined(&[2, 3, 2, 1, 3, 5], 3, &[2, 1, 4], F32, Variants);
        for precision in [Precision::F16Storage, Precision::F16] {
            for (axis, sizes) in [(0, [1, 2]), (1, [3, 4]), (2, [5, 1]), (3, [8, 5]), (3, [7, 6])] {
                self.joined(&[2, 3, 5, 6], axis, &sizes, precision, Variants);
            }
        }
    }
}

/// What `operator` is for inputs of these extents.
pub(crate) fn lowered(
    operator: &dyn Operator,
    inputs: &[(Operand, &[usize])],
    precision: Precision,
) -> Problem {
    let argument = |&(operand, extents): &(Operand, &[usize])| Argument {
        operand,
        dtype: diptych::DType::F32,
        dims: Dims::new(extents).expect("a valid row"),
    };
    let inputs: Vec<Argument> = inputs.iter().map(argument).collect();
    let arguments = Arguments { inputs: &inputs, dimensions: &BTreeMap::new(), narrow: false };
    match operator.lower(arguments, precision) {
        Ok(Lowered::Op(op)) => op,
        found => panic!("{operator:?} of {inputs:?} is {found:?}"),
    }
}
