//! Nests beside the ops that they stand for, and beside several of them one behind the other.

use super::cpu::LoopsKernel;
use super::nest::word_of;
use super::{Index, LoopsOp, Nest, Nodes, OpNest, OperandSet, ReadFrom, SourceAt, Sources};
use crate::cpu::CpuKernel;
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::{Bits, Operand};
use crate::layout::Layout;
use crate::ops::arg::{ArgOp, ArgReduce};
use crate::ops::cumsum::{CumSum, CumSumOp};
use crate::ops::elementwise::{ElementwiseOp, Function, Program, Source};
use crate::ops::normalize::{Normalize, NormalizeOp};
use crate::ops::one_hot::OneHot;
use crate::ops::op::{Answer, Op};
use crate::ops::operands::{Operands, of};
use crate::ops::operator::{Argument, Arguments, Lowered, Operator};
use crate::ops::reduce::{Reduce, ReduceOp, Reduction};
use crate::ops::remap::{AxisRange, Pad, PadMode, StridedSlice, Transpose};
use crate::ops::softmax::{Softmax, SoftmaxOp};
use crate::word;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Different numbers between -1 and 1.
fn noise(seed: usize, len: usize) -> Vec<f32> {
    let step = |index: usize| ((index * 7919 + seed * 104_729 + 13) % 1009) as f32 / 504.5 - 1.0;
    (0..len).map(step).collect()
}

/// That the nest computes `wanted` within its bound, which has room for a rounding to f32 behind each node: by its oracle and on
/// the CPU.
fn agrees(nest: &Nest, sources: &[Vec<f32>], wanted: &[f64], what: &str) {
    let op = LoopsOp::new(Arc::new(nest.clone()), OperandSet::ALL, OperandSet::NONE, Precision::F32)
        .expect("an op");
    let given: Vec<(Operand, &[f32])> =
        sources.iter().enumerate().map(|(place, values)| (Operand::Arg(place as u8), &values[..])).collect();
    let reference = Op::reference(&op, &of(&given), Answer::Exact).expect("operands of the op");
    let run = |kernel: &dyn CpuKernel| {
        let mut found = vec![f32::NAN; wanted.len()];
        kernel.run(&given, &mut [(Operand::Dst, &mut found)]).expect("it runs");
        word::numbers(word_of(nest.result_type(0)), &found)
    };
    let cpu = run(&*Op::cpu(&op, &Operands::new()).expect("a kernel"));
    let in_tiles = if nest.has_integers() { cpu.clone() } else { run(&LoopsKernel::of_small_tiles(nest)) };
    assert_eq!(reference.value().len(), wanted.len(), "{what}");
    for (place, &wanted) in wanted.iter().enumerate() {
        let (exact, bound) = (reference.value()[place], reference.tolerance(place, Precision::F32));
        let on_cpu = [("the CPU", &cpu), ("the CPU in small tiles", &in_tiles)];
        let on_cpu = on_cpu.map(|(by, found)| (by, found[place]));
        for (by, found) in [("the oracle", exact)].into_iter().chain(on_cpu) {
            let same = found == wanted || found.is_nan() && wanted.is_nan();
            // The oracle's value and `wanted` are each as far from what is found as the bound allows.
            assert!(
                same || (found - wanted).abs() <= 2.0 * bound,
                "{what}: {by} has {found} +- {bound} at {place}, wanted {wanted}"
            );
        }
    }
    // What is long was looked at before.
    if wanted.len() <= 4096 {
        agrees_in_maps(nest, sources, what);
    }
}

/// Whether numbers are the same but for sums in another order.
fn alike(one: &[f32], other: &[f32]) -> bool {
    let same =
        |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-5 * (1.0 + a.abs());
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// Rows as they lie in slices of four channels.
fn in_slices(rows: &[f32], dims: Dims) -> Vec<f32> {
    let shape = dims.shape();
    let mut slices = vec![0.0; Layout::C4.elements(&shape)];
    for (row, pixel) in rows.chunks(shape.c).enumerate() {
        let [n, h, w] = [row / shape.w / shape.h, row / shape.w % shape.h, row % shape.w];
        for (c, &value) in pixel.iter().enumerate() {
            slices[Layout::C4.index(&shape, n, h, w, c)] = value;
        }
    }
    slices
}

/// That the nest with each of its operands, and with all of them, in slices of four channels gives the same elements.
fn agrees_in_maps(nest: &Nest, sources: &[Vec<f32>], what: &str) {
    let run = |nest: Nest, sources: &[Vec<f32>]| {
        let (none, elements) = (OperandSet::NONE, nest.target.elements());
        let op = LoopsOp::new(Arc::new(nest), none, none, Precision::F32).expect("an op");
        let operand = |(place, values): (usize, &Vec<f32>)| (Operand::Arg(place as u8), values.clone());
        let given: Vec<(Operand, Vec<f32>)> = sources.iter().enumerate().map(operand).collect();
        let given: Vec<(Operand, &[f32])> = given.iter().map(|(own, values)| (*own, &values[..])).collect();
        let reference = Op::reference(&op, &of(&given), Answer::Exact).expect("operands of the op");
        assert_eq!(reference.value().len(), elements);
        reference.value().iter().map(|&value| value as f32).collect::<Vec<f32>>()
    };
    let rows = run(nest.clone(), sources);
    for (of, results) in [0b1, 0b10, u32::MAX].into_iter().flat_map(|of| [(of, 0), (of, 1)]) {
        let maps = OperandSet { sources: of, results };
        // Along too many axes it stays in rows.
        let Ok(stored) = nest.in_maps(maps) else { continue };
        let source = |(place, values): (usize, &Vec<f32>)| match maps.has_source(place) {
            true => in_slices(values, nest.sources[place]),
            false => values.clone(),
        };
        let found = run(stored, &sources.iter().enumerate().map(source).collect::<Vec<_>>());
        let wanted = if maps.has_result(0) { in_slices(&rows, nest.target) } else { rows.clone() };
        let same =
            |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-5 * a.abs();
        assert_eq!(found.len(), wanted.len(), "{what} {maps:?}");
        assert!(found.iter().zip(&wanted).all(same), "{what} {maps:?}: {found:?} and not {wanted:?}");
    }
}

/// That a nest with several results gives on the CPU, and in slices of four channels, what nests of each alone give.
fn several_agree(nest: &Nest, sources: &[Vec<f32>], what: &str) {
    let given: Vec<(Operand, &[f32])> =
        sources.iter().enumerate().map(|(place, values)| (Operand::Arg(place as u8), &values[..])).collect();
    let run_with = |kernel: &dyn CpuKernel, nest: &Nest| {
        let lens: Vec<usize> = nest.targets().map(|target| target.elements()).collect();
        let mut written: Vec<Vec<f32>> = lens.iter().map(|&len| vec![0.0; len]).collect();
        let mut outputs: Vec<(Operand, &mut [f32])> = written
            .iter_mut()
            .enumerate()
            .map(|(result, values)| (super::result_operand(result), &mut values[..]))
            .collect();
        kernel.run(&given, &mut outputs).expect("it runs");
        let numbers = |(result, words): (usize, &Vec<f32>)| {
            let numbers = word::numbers(word_of(nest.result_type(result)), words);
            numbers.into_iter().map(|number| number as f32).collect()
        };
        written.iter().enumerate().map(numbers).collect::<Vec<Vec<f32>>>()
    };
    let run = |nest: &Nest| {
        let none = OperandSet::NONE;
        let op = LoopsOp::new(Arc::new(nest.clone()), none, none, Precision::F32).expect("an op");
        run_with(&*Op::cpu(&op, &Operands::new()).expect("a kernel"), nest)
    };
    let all = run(nest);
    let in_tiles =
        if nest.has_integers() { all.clone() } else { run_with(&LoopsKernel::of_small_tiles(nest), nest) };
    for (result, (found, wanted)) in in_tiles.iter().zip(&all).enumerate() {
        assert!(alike(found, wanted), "{what}: result {result} in small tiles");
    }
    for (result, found) in all.iter().enumerate() {
        assert!(alike(&run(&nest.only(result))[0], found), "{what}: result {result}");
        let maps = OperandSet { sources: 0, results: 1 << result };
        if let Ok(stored) = nest.in_maps(maps) {
            let target = nest.targets().nth(result).expect("as many results");
            let found = in_slices(found, target);
            assert!(alike(&run(&stored)[result], &found), "{what}: result {result} in slices");
        }
    }
}

/// Numbers of an operand: logarithms and roots are of positive ones, integers are beyond axes too.
fn usual(seed: usize, elements: usize, dtype: DType) -> Vec<f32> {
    let noise = noise(seed, elements);
    match dtype {
        DType::F32 => noise.iter().map(|value| value.abs() + 0.25).collect(),
        integer => word::of_integers(integer, noise.iter().map(|value| (value * 9.0) as i64)),
    }
}

#[test]
fn nests_of_ops_compute_what_the_ops_compute() {
    let mut found = 0;
    for entry in crate::ops::all() {
        for example in (entry.examples)(Precision::F32).expect("examples") {
            let Some(OpNest { nest, operands, .. }) = example.nest() else { continue };
            let infos = example.operands();
            let values = |operand: &Operand| {
                let info = infos.iter().find(|info| info.operand == *operand).expect("an operand of the op");
                usual(operands.len(), info.elements(), info.dtype)
            };
            let sources: Vec<Vec<f32>> = operands.iter().map(values).collect();
            let given: Vec<(Operand, &[f32])> =
                operands.iter().zip(&sources).map(|(operand, values)| (*operand, &values[..])).collect();
            let wanted = example.reference(&of(&given), Answer::Exact).expect("a result");
            let what = format!("{} {}", entry.name, example.problem_key());
            agrees(&nest.only(0), &sources, wanted.value(), &what);
            if !nest.further.is_empty() {
                several_agree(&nest, &sources, &what);
            }
            found += 1;
        }
    }
    assert!(found > 100, "{found} nests");
}

/// `y[l, c] = relu(v[l, c]) sum_l(k[l, c] softmax_l(q[l]))` with `q`, `k` and `v` beside each other: what the shares sum up and find
/// depends on no axis of a row, of which there are as many as columns.
#[test]
fn what_is_reduced_alike_for_all_columns_is_known_once() {
    for [places, columns] in [[16, 256], [7, 64], [64, 192], [3, 5]] {
        let row = 1 + 2 * columns;
        let at = |first: usize, axis: Option<usize>| {
            let begin = Index::axis(0).times(row as i64).plus(&Index::number(first as i64), 1);
            axis.map_or(begin.clone(), |axis| begin.plus(&Index::axis(axis), 1))
        };
        let mut nodes = Nodes::default();
        let q = nodes.read(0, at(0, None));
        let [k, v] = [1, 1 + columns].map(|first| nodes.read(0, at(first, Some(1))));
        let largest = nodes.reduce(Reduction::Max, q, 1);
        let distance = nodes.apply(Function::Sub, &[q, largest]);
        let power = nodes.apply(Function::Exp, &[distance]);
        let sum = nodes.reduce(Reduction::Sum, power, 1);
        let share = nodes.apply(Function::Div, &[power, sum]);
        let weighted = nodes.apply(Function::Mul, &[k, share]);
        let context = nodes.reduce(Reduction::Sum, weighted, 1);
        let v = nodes.apply(Function::Relu, &[v]);
        let y = nodes.apply(Function::Mul, &[v, context]);
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let [source, target] = [dims(&[places, row]), dims(&[places, columns])];
        let nest =
            Nest::new(vec![places, columns], vec![0, 1], vec![source], nodes, y, target).expect("a nest");
        let x = noise(3, places * row);
        let number = |place: usize, at: usize| f64::from(x[place * row + at]);
        let powers: Vec<f64> = (0..places).map(|place| number(place, 0).exp()).collect();
        let all: f64 = powers.iter().sum();
        let context = |column: usize| {
            (0..places).map(|place| number(place, 1 + column) * powers[place] / all).sum::<f64>()
        };
        let contexts: Vec<f64> = (0..columns).map(context).collect();
        let element = |index: usize| {
            let (place, column) = (index / columns, index % columns);
            number(place, 1 + columns + column).max(0.0) * contexts[column]
        };
        let wanted: Vec<f64> = (0..places * columns).map(element).collect();
        agrees(&nest, &[x], &wanted, &format!("{places} places of {columns} columns"));
    }
}

#[test]
fn the_first_of_equals_is_found_and_nan_before_numbers() {
    let dims = Dims::new(&[3, 70, 5, 4]).expect("small");
    let mut values: Vec<f32> = noise(3, dims.elements()).iter().map(|value| (4.0 * value).round()).collect();
    let mut integers = values.clone();
    values.iter_mut().step_by(41).for_each(|value| *value = f32::NAN);
    values[..350].fill(f32::NEG_INFINITY);
    integers.iter_mut().for_each(|value| *value = f32::from_bits(*value as i32 as u32));
    for (axis, largest) in (0..4).flat_map(|axis| [(axis, true), (axis, false)]) {
        let op = ArgOp::new(dims, &ArgReduce { largest, axis, keep_dims: false }).expect("an axis");
        for (op, src) in [(op, &values), (op.of(DType::I32), &integers)] {
            let nest = Op::nest(&op).expect("a nest").nest;
            let wanted = Op::reference(&op, &of(&[(Operand::Src, src)]), Answer::Exact).expect("indices");
            agrees(&nest, std::slice::from_ref(src), wanted.value(), &Op::problem_key(&op));
        }
    }
}

/// Whether two nests along the same axes are one, and it gives what each does.
fn beside(nest: &Nest, sources: &[Vec<f32>]) -> bool {
    let first = nest.sources.len();
    let all: Vec<Dims> = nest.sources.iter().chain(&nest.sources).copied().collect();
    let from: Vec<SourceAt> = (first..all.len()).map(SourceAt::whole).collect();
    let Ok(both) = nest.beside(nest, &all, &from) else { return false };
    let more = sources.iter().zip(&nest.types).map(|(values, &dtype)| match dtype {
        DType::F32 => values.iter().map(|value| value * 0.5 + 0.25).collect(),
        integer => usual(3, values.len(), integer),
    });
    let values: Vec<Vec<f32>> = sources.iter().cloned().chain(more).collect();
    several_agree(&both, &values, &nest.key());
    // The other one's axes in another order.
    let mut turned = nest.clone();
    turned.written.reverse();
    if let Ok(both) = turned.checked().and_then(|turned| nest.beside(&turned, &all, &from)) {
        several_agree(&both, &values, &nest.key());
    }
    true
}

#[test]
fn nests_with_an_axis_more_are_one_with_others() {
    let dims = Dims::new(&[6, 4, 5]).expect("small");
    let sum = |axes: &[isize]| {
        let reduce = Reduce { reduction: Reduction::Sum, axes: axes.to_vec(), keep_dims: false };
        let op = ReduceOp::new(dims, &reduce, Precision::F32).expect("a reduction");
        op.nest().expect("a nest").nest
    };
    // Rows along one axis of 24 places, and the same rows transposed, along two.
    let rows = sum(&[2]);
    let turned = {
        let mut nest = rows.clone().split(0, 4);
        nest.written.reverse();
        nest.checked().expect("a nest")
    };
    let values = vec![noise(1, 120), noise(2, 120)];
    for (one, other) in [(&rows, &turned), (&turned, &rows)] {
        let both = one.beside(other, &[dims, dims], &[SourceAt::whole(1)]).expect("one nest");
        several_agree(&both, &values, &both.key());
        let alone = LoopsOp::new(Arc::new(other.clone()), OperandSet::NONE, OperandSet::NONE, Precision::F32);
        let reference =
            Op::reference(&alone.expect("an op"), &of(&[(Operand::Arg(0), &values[1][..])]), Answer::Exact);
        agrees(&both.only(1), &values, reference.expect("a result").value(), "the other one");
    }
}

#[test]
fn nests_beside_each_other_are_one() {
    let mut found = 0;
    for entry in crate::ops::all() {
        for example in (entry.examples)(Precision::F32).expect("examples") {
            let Some(OpNest { nest, .. }) = example.nest() else { continue };
            let source = |(dims, &dtype): (&Dims, &DType)| usual(7, dims.elements(), dtype);
            if nest.target.elements() <= 1024 && nest.further.is_empty() {
                let sources: Vec<Vec<f32>> = nest.sources.iter().zip(&nest.types).map(source).collect();
                found += usize::from(beside(&nest, &sources));
            }
        }
    }
    assert!(found > 50, "{found} nests");
}

/// An op that one of several others may follow.
#[derive(Debug, Clone)]
enum Kind {
    /// A function of the value, and of a second one where it takes two: of each place, or one for each of the last axis.
    Function(Function, bool),
    /// With a number for each place of the last axis, or for each row.
    Broadcast(Function, bool),
    Transpose(usize),
    Pad(PadMode, usize, usize),
    Slice(usize, usize, isize),
    Reduce(Reduction, usize, bool),
    Arg(usize, bool),
    OneHot(usize),
    CumSum(usize, bool, bool),
    Softmax(usize),
    Normalize(usize, bool),
    /// The elements in other extents.
    Reshape(usize),
}

fn kind() -> impl Strategy<Value = Kind> {
    let functions = [Function::Sigmoid, Function::Neg, Function::Square, Function::Tanh, Function::Floor];
    let binary = [Function::Mul, Function::Add, Function::Sub, Function::Maximum];
    let reductions = [Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Min];
    prop_oneof![
        2 => (0usize..5).prop_map(move |index| Kind::Function(functions[index], false)),
        2 => (0usize..4).prop_map(move |index| Kind::Function(binary[index], true)),
        2 => (0usize..4, any::<bool>()).prop_map(move |(index, rows)| Kind::Broadcast(binary[index], rows)),
        3 => (1usize..6).prop_map(Kind::Transpose),
        2 => (0usize..4, 0usize..3, 0usize..3).prop_map(|(mode, before, axis)| {
            let mode = [PadMode::Constant(Bits(0.5)), PadMode::Reflect, PadMode::Symmetric, PadMode::Edge][mode];
            Kind::Pad(mode, before, axis)
        }),
        2 => (0usize..3, 0usize..2, prop_oneof![Just(-1isize), Just(1), Just(2)])
            .prop_map(|(axis, start, step)| Kind::Slice(axis, start, step)),
        2 => (0usize..4, 0usize..3, any::<bool>())
            .prop_map(move |(index, axis, keep)| Kind::Reduce(reductions[index], axis, keep)),
        2 => (0usize..3, any::<bool>()).prop_map(|(axis, largest)| Kind::Arg(axis, largest)),
        1 => (0usize..3).prop_map(Kind::OneHot),
        1 => (0usize..3, any::<bool>(), any::<bool>())
            .prop_map(|(axis, exclusive, reverse)| Kind::CumSum(axis, exclusive, reverse)),
        1 => (0usize..3).prop_map(Kind::Softmax),
        1 => (0usize..3, any::<bool>()).prop_map(|(axis, centred)| Kind::Normalize(axis, centred)),
        2 => (0usize..6).prop_map(Kind::Reshape),
    ]
}

/// The op that `operator` is for a value of these extents.
fn lowered(operator: &dyn Operator, dims: Dims) -> Option<Lowered> {
    let inputs = [Argument { operand: Operand::Src, dims, dtype: crate::dtype::DType::F32 }];
    let arguments = Arguments { inputs: &inputs, dimensions: &BTreeMap::new(), narrow: false };
    operator.lower(arguments, Precision::F32).ok()
}

/// What comes of a value by one op: the op, its other sources, and the value's extents.
struct Next {
    op: Arc<dyn Op>,
    others: Vec<Vec<f32>>,
    dims: Dims,
    offset: usize,
}

enum Step {
    Op(Next),
    /// Elements seen in other extents, from one of them on.
    View(Dims, usize),
    None,
}

impl Kind {
    fn step(&self, dims: Dims, seed: usize) -> Step {
        let rank = dims.rank();
        let op = |op: Arc<dyn Op>, dims: Dims| Step::Op(Next { op, others: Vec::new(), dims, offset: 0 });
        let moved = |operator: &dyn Operator, target: Option<Vec<usize>>| {
            let Some(target) = target.and_then(|extents| Dims::new(&extents).ok()) else { return Step::None };
            match lowered(operator, dims) {
                Some(Lowered::Op(moved)) => op(moved, target),
                Some(Lowered::View(view)) => Step::View(view.dims, view.offset),
                None => Step::None,
            }
        };
        match *self {
            Kind::Function(function, two) => {
                let arguments = (0..if two { 2 } else { 1 }).map(Source::Input).collect();
                let program = Program::of(function, arguments).expect("a program");
                let inputs = vec![dims; if two { 2 } else { 1 }];
                let own = ElementwiseOp::new(program, &inputs, Precision::F32).expect("they fit");
                let others = if two { vec![noise(seed, dims.elements())] } else { Vec::new() };
                Step::Op(Next { op: Arc::new(own), others, dims, offset: 0 })
            }
            Kind::Broadcast(function, rows) => {
                let program =
                    Program::of(function, vec![Source::Input(0), Source::Input(1)]).expect("a program");
                let mut extents = dims.extents().to_vec();
                for (axis, extent) in extents.iter_mut().enumerate() {
                    if (axis + 1 == rank) == rows {
                        *extent = 1;
                    }
                }
                let other = Dims::new(&extents).expect("small");
                let own = ElementwiseOp::new(program, &[dims, other], Precision::F32).expect("they fit");
                let others = vec![noise(seed, other.elements())];
                Step::Op(Next { op: Arc::new(own), others, dims, offset: 0 })
            }
            Kind::Transpose(turn) => {
                let mut permutation: Vec<usize> = (0..rank).collect();
                permutation.rotate_left(turn % rank.max(1));
                if turn > 2 && rank > 1 {
                    permutation.swap(0, 1);
                }
                let extents = permutation.iter().map(|&axis| dims.extents()[axis]).collect();
                moved(&Transpose { permutation }, Some(extents))
            }
            Kind::Pad(mode, first, axis) => {
                let (mut before, mut after) = (vec![0; rank], vec![0; rank]);
                let Some(own) = before.get_mut(axis) else { return Step::None };
                (*own, after[axis]) = (first, 1);
                let mut extents = dims.extents().to_vec();
                extents[axis] += first + 1;
                moved(&Pad { before, after, mode }, Some(extents))
            }
            Kind::Slice(axis, start, step) => {
                let Some(&extent) = dims.extents().get(axis) else { return Step::None };
                let mut ranges = vec![AxisRange::ALL; rank];
                let count =
                    if step < 0 { extent } else { extent.saturating_sub(start).div_ceil(step as usize) };
                ranges[axis] = AxisRange { begin: (step > 0).then_some(start as isize), end: None, step };
                let mut extents = dims.extents().to_vec();
                extents[axis] = count;
                moved(&StridedSlice { ranges }, Some(extents).filter(|_| count > 0))
            }
            Kind::Reduce(reduction, axis, keep_dims) => {
                let options = Reduce { reduction, axes: vec![axis as isize], keep_dims };
                let Ok(own) = ReduceOp::new(dims, &options, Precision::F32) else { return Step::None };
                let mut extents = dims.extents().to_vec();
                if keep_dims {
                    extents[axis] = 1;
                } else {
                    extents.remove(axis);
                }
                op(Arc::new(own), Dims::new(&extents).expect("small"))
            }
            Kind::Arg(axis, largest) => {
                let options = ArgReduce { largest, axis: axis as isize, keep_dims: true };
                let Ok(own) = ArgOp::new(dims, &options) else { return Step::None };
                let mut extents = dims.extents().to_vec();
                extents[axis] = 1;
                op(Arc::new(own), Dims::new(&extents).expect("small"))
            }
            Kind::CumSum(axis, exclusive, reverse) => {
                let options = CumSum { axis: axis as isize, exclusive, reverse };
                CumSumOp::new(dims, options).map_or(Step::None, |own| op(Arc::new(own), dims))
            }
            Kind::OneHot(axis) => {
                let options = OneHot { depth: 4, on: Bits(1.0), off: Bits(-0.25), axis: axis as isize };
                let mut extents = dims.extents().to_vec();
                if axis >= rank || rank > 3 {
                    return Step::None;
                }
                extents.insert(axis, 4);
                moved(&options, Some(extents))
            }
            Kind::Softmax(axis) => {
                let options = Softmax { axis: axis as isize, beta: Bits(0.5), log: false };
                SoftmaxOp::new(dims, &options, Precision::F32)
                    .map_or(Step::None, |own| op(Arc::new(own), dims))
            }
            Kind::Normalize(axis, centred) => {
                let options = Normalize { axes: vec![axis as isize], epsilon: Bits(0.25), centred };
                let own = NormalizeOp::new(dims, &options, false, false, Precision::F32);
                own.map_or(Step::None, |own| op(Arc::new(own), dims))
            }
            Kind::Reshape(index) => {
                let all = dims.elements();
                let divisors: Vec<usize> = (1..=all).filter(|n| all.is_multiple_of(*n)).collect();
                let first = divisors[index % divisors.len()];
                Step::View(Dims::new(&[first, all / first]).expect("small"), 0)
            }
        }
    }
}

/// Checks ops one behind the other, views in between, beside the nest that they are; how many begin a nest anew.
fn chain(extents: [usize; 3], kinds: &[Kind]) -> usize {
    let dims = Dims::new(&extents).expect("small");
    let mut value = noise(1, dims.elements());
    let mut nest: Option<(Nest, Vec<Vec<f32>>)> = None;
    let (mut dims, mut offset, mut refused) = (dims, 0, 0);
    for (seed, kind) in kinds.iter().enumerate() {
        let next = match kind.step(dims, seed + 2) {
            Step::Op(next) => next,
            Step::View(seen, first) => {
                (dims, offset) = (seen, offset + first);
                continue;
            }
            Step::None => continue,
        };
        let OpNest { nest: own, operands, .. } = next.op.nest().expect("a nest");
        let shown = value[offset..offset + dims.elements()].to_vec();
        // The value is the first operand.
        let mut sources: Vec<Vec<f32>> = vec![shown];
        sources.extend(next.others.iter().cloned());
        let given: Vec<(Operand, &[f32])> =
            operands.iter().zip(&sources).map(|(operand, values)| (*operand, &values[..])).collect();
        let wanted = next.op.reference(&of(&given), Answer::Exact).expect("a result").value().to_vec();
        let whole = match nest.take() {
            None => (own, sources),
            Some((before, inputs)) => {
                let mut all: Vec<Dims> = before.sources().to_vec();
                let first = all.len();
                all.extend(&own.sources()[1..]);
                let from = |place: usize| match place.checked_sub(1) {
                    Some(own) => ReadFrom::Source(SourceAt::whole(first + own)),
                    None => ReadFrom::Written(offset),
                };
                let reader: Vec<ReadFrom> = (0..own.sources().len()).map(from).collect();
                let writer: Vec<SourceAt> = (0..first).map(SourceAt::whole).collect();
                let sources = Sources { all: &all, reader: &reader, writer: &writer, keeps: false };
                if let Ok(kept) = own.after(&before, &Sources { keeps: true, ..sources }) {
                    let all: Vec<Vec<f32>> = inputs.iter().chain(&next.others).cloned().collect();
                    let what = format!("{kinds:?} from {extents:?}: {}", kept.key());
                    let values: Vec<f64> = value.iter().map(|&value| f64::from(value)).collect();
                    let results = kept.targets().count();
                    agrees(&kept.only(0), &all, &wanted, &what);
                    agrees(&kept.only(results - 1), &all, &values, &what);
                    several_agree(&kept, &all, &what);
                }
                match own.after(&before, &sources) {
                    Ok(both) => (both, inputs.into_iter().chain(next.others).collect()),
                    // A loop within a loop begins anew.
                    Err(_) => {
                        refused += 1;
                        (own, sources_of(&value, offset, dims, next.others))
                    }
                }
            }
        };
        agrees(&whole.0, &whole.1, &wanted, &format!("{kinds:?} from {extents:?}: {}", whole.0.key()));
        value = wanted.iter().map(|&value| value as f32).collect();
        (dims, offset) = (next.dims, next.offset);
        nest = Some(whole);
    }
    refused
}

#[test]
fn usual_chains_are_one_nest() {
    let pad = Kind::Pad(PadMode::Constant(Bits(0.5)), 2, 1);
    let chains: [&[Kind]; 5] = [
        &[
            Kind::Broadcast(Function::Mul, false),
            Kind::Softmax(2),
            Kind::Transpose(1),
            Kind::Function(Function::Add, true),
        ],
        &[pad, Kind::Reshape(3), Kind::Transpose(1), Kind::Function(Function::Tanh, false)],
        &[
            Kind::Function(Function::Square, false),
            Kind::Reduce(Reduction::Mean, 1, true),
            Kind::Function(Function::Sigmoid, false),
        ],
        &[
            Kind::Normalize(2, true),
            Kind::Broadcast(Function::Mul, false),
            Kind::Transpose(4),
            Kind::Slice(0, 1, 1),
        ],
        &[Kind::Transpose(2), Kind::Reshape(2), Kind::Slice(0, 1, 1), Kind::Normalize(1, false)],
    ];
    for kinds in chains {
        assert_eq!(chain([4, 6, 5], kinds), 0, "{kinds:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    /// Several ops one behind the other are what their nest is, or begin a nest anew.
    #[test]
    fn a_chain_of_ops_is_one_nest(
        extents in prop::array::uniform3(1usize..7),
        kinds in prop::collection::vec(kind(), 2..6),
    ) {
        // Sums in another order may be on the other side of a whole number.
        let adds = |kind: &Kind| matches!(kind, Kind::Reduce(Reduction::Sum | Reduction::Mean, ..)
            | Kind::CumSum(..) | Kind::Softmax(_) | Kind::Normalize(..));
        let first = kinds.iter().position(adds).unwrap_or(kinds.len());
        let is_floor = |kind: &Kind| matches!(kind, Kind::Function(Function::Floor, _));
        let kept = kinds.into_iter().enumerate().filter(|(place, kind)| *place < first || !is_floor(kind));
        chain(extents, &kept.map(|(_, kind)| kind).collect::<Vec<_>>());
    }
}

fn sources_of(value: &[f32], offset: usize, dims: Dims, others: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
    let shown = value[offset..offset + dims.elements()].to_vec();
    std::iter::once(shown).chain(others).collect()
}
