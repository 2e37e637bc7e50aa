//! What a decoder's next token is made of: products of one row, what they read, and what is kept of it.

use crate::machine::{everywhere, noise};
use diptych::nn::QuantizedGemm;
use diptych::{
    Backend, Context, DType, Dim, Dims, Extras, Function, Gemm, Graph, HostTensor, Precision,
    QuantizedMatrix, Reduction, Rewrite, Right, Session, SessionOptions, Term, Value, nn::AxisRange,
};
use half::f16;

pub(crate) fn tensor(extents: &[usize], seed: u32) -> HostTensor {
    let dims = Dims::new(extents).expect("small");
    HostTensor::new(dims, noise(dims.shape(), seed).to_f32().to_vec()).expect("as many")
}

/// The numbers as halves.
pub(crate) fn halves(of: &HostTensor) -> HostTensor {
    let values: Vec<f16> = of.to_f32().iter().map(|&value| f16::from_f32(value)).collect();
    HostTensor::of(of.dims(), values).expect("as many")
}

/// How weights are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Stored {
    Floats,
    Transposed,
    Halves,
    Bits(usize),
}

const STORED: [Stored; 5] =
    [Stored::Floats, Stored::Transposed, Stored::Halves, Stored::Bits(4), Stored::Bits(8)];

/// The product of `x`, rows of `k`, with weights of `n` columns.
pub(crate) fn product(
    graph: &mut Graph,
    name: &str,
    x: Value,
    [k, n]: [usize; 2],
    stored: Stored,
    bias: bool,
) -> diptych::Result<Value> {
    let extras = if bias { Extras::bias(tensor(&[n], 9)) } else { Extras::default() };
    let transpose_b = stored == Stored::Transposed;
    let weights = tensor(&if transpose_b { [n, k] } else { [k, n] }, n as u32);
    if let Stored::Bits(bits) = stored {
        let integers: Vec<u8> = (0..n * k).map(|place| (7 * place + n % 11) as u8 % 16).collect();
        let scales = tensor(&[n * k / 16], 5).to_f32().to_vec();
        let weights = QuantizedMatrix::pack(bits, [n, k], &integers, scales)?;
        let options = QuantizedGemm { block: Some(16), ..QuantizedGemm::new(bits) };
        return graph.quantized_gemm(name, x, weights, extras, options);
    }
    let weights = if stored == Stored::Halves { halves(&weights) } else { weights };
    graph.gemm(name, x, Right::Constant(weights), extras, Gemm { transpose_b, ..Gemm::default() })
}

/// That all backends, with and without `rewrite`, find in several runs what the CPU does without it, within `most` of the largest
/// number in f32 and within the rounding of a few halves in f16 storage; what a device runs is shown to `look`.
pub(crate) fn check(
    graph: &Graph,
    rewrite: Rewrite,
    inputs: &dyn Fn(usize) -> Vec<(&'static str, HostTensor)>,
    look: &dyn Fn(&[String], Precision, bool),
) -> diptych::Result<()> {
    let results = |context: &Context, precision: Precision, without: bool| {
        let without_rewrites = without.then_some(rewrite).into_iter().collect();
        let options = SessionOptions { precision, without_rewrites, ..SessionOptions::default() };
        let mut session = Session::new(context, graph, options)?;
        let mut all = Vec::new();
        for run in 0..3 {
            let given = inputs(run);
            let given: Vec<(&str, &HostTensor)> =
                given.iter().map(|(name, tensor)| (*name, tensor)).collect();
            for output in session.run(&given)? {
                all.extend_from_slice(&output.to_f32());
            }
        }
        let ops = session.steps().iter().map(|step| step.op.to_owned()).collect::<Vec<String>>();
        Ok::<_, diptych::Error>((all, ops))
    };
    let cpu = Context::builder().backend(Backend::Cpu).open()?;
    let (wanted, _) = results(&cpu, Precision::F32, true)?;
    let largest = wanted.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
    for context in everywhere() {
        let backend = context.info().backend;
        for (precision, most) in [(Precision::F32, 1e-5), (Precision::F16Storage, 8.0 / 2048.0)] {
            for without in [false, true] {
                let (found, ops) = results(&context, precision, without)?;
                if backend != Backend::Cpu {
                    look(&ops, precision, without);
                }
                let off = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(found.len() == wanted.len(), "{backend} {precision}: {} numbers", found.len());
                assert!(
                    off <= most * largest,
                    "{backend} {precision} without: {without}: {off} of {largest}"
                );
            }
        }
    }
    Ok(())
}

pub(crate) fn count(ops: &[String], wanted: &str) -> usize {
    ops.iter().filter(|op| op.contains(wanted)).count()
}

#[test]
fn products_of_one_row_that_read_one_input_are_one() -> diptych::Result<()> {
    for stored in STORED {
        let mut graph = Graph::new();
        let x = graph.input("x", Dims::new(&[1, 32])?)?;
        let mut parts = Vec::new();
        for (name, n, bias) in [("q", 256, true), ("k", 128, false), ("v", 20, true)] {
            let y = product(&mut graph, name, x, [32, n], stored, bias)?;
            let y = match name {
                "q" => graph.elementwise("exp", Function::Exp, &[y.into()])?,
                "k" => {
                    let heads = graph.reshape("heads", y, &[4.into(), 32.into()])?;
                    let turned = graph.transpose("turned", heads, &[1, 0])?;
                    graph.reshape("flat", turned, &[1.into(), 128.into()])?
                }
                _ => graph.elementwise("neg", Function::Neg, &[y.into()])?,
            };
            parts.push(y);
        }
        let all = graph.concat("all", &parts, 1)?;
        graph.output(all)?;
        let x = |run: usize| vec![("x", tensor(&[1, 32], run as u32 + 3))];
        check(&graph, Rewrite::Stacks, &x, &|ops, precision, without| {
            let products = count(ops, "gemm");
            assert_eq!(products, if without { 3 } else { 1 }, "{stored:?} {precision}: {ops:?}");
        })?;
    }
    Ok(())
}

/// `x` with halves of its rows exchanged and turned by angles that a table has for place `at`: as a rotary embedding does.
fn rotated(graph: &mut Graph, x: Value, at: Value, in_halves: bool) -> diptych::Result<Value> {
    let half = |graph: &mut Graph, name: &str, from: isize, to: isize| {
        let all = AxisRange::ALL;
        graph.strided_slice(name, x, &[all, all, all, AxisRange::new(from, to)])
    };
    let (first, second) = (half(graph, "first", 0, 8)?, half(graph, "second", 8, 16)?);
    let minus = graph.elementwise("minus", Function::Neg, &[second.into()])?;
    let exchanged = graph.concat("exchanged", &[minus, first], 3)?;
    let mut factors = Vec::new();
    for (name, seed) in [("cos", 21), ("sin", 22)] {
        let table = tensor(&[8, 16], seed);
        let table = graph.constant(name, if in_halves { halves(&table) } else { table });
        let table = graph.cast(&format!("{name} in f32"), table, DType::F32)?;
        factors.push(graph.gather(&format!("{name} of the place"), table, at, 0, 0)?);
    }
    let straight = graph.elementwise("straight", Function::Mul, &[x.into(), factors[0].into()])?;
    let across = graph.elementwise("across", Function::Mul, &[exchanged.into(), factors[1].into()])?;
    graph.elementwise("rotated", Function::Add, &[straight.into(), across.into()])
}

#[test]
fn what_a_state_becomes_is_computed_where_it_is_written() -> diptych::Result<()> {
    for in_halves in [false, true] {
        let mut graph = Graph::new();
        let x = graph.input("x", Dims::new(&[1, 1, 2, 16])?)?;
        let at = graph.typed_input("at", DType::I32, &[Dim::Fixed(1)])?;
        // Heads come before places in the cache.
        let turned = graph.transpose("turned", x, &[0, 2, 1, 3])?;
        let keys = rotated(&mut graph, turned, at, in_halves)?;
        let cache = graph.state("cache", HostTensor::new(Dims::new(&[1, 2, 4, 16])?, vec![0.25; 128])?);
        let next = graph.update_slice("next", cache, keys, at, 2)?;
        graph.update(cache, next)?;
        let sum = graph.reduce("sum", next, Reduction::Sum, &[2], false)?;
        let shown = graph.elementwise("shown", Function::Mul, &[sum.into(), Term::Number(2.0)])?;
        graph.output(shown)?;
        let inputs = |run: usize| {
            let place = HostTensor::of(Dims::new(&[1]).expect("small"), vec![run as i32]).expect("one");
            vec![("x", tensor(&[1, 1, 2, 16], run as u32 + 3)), ("at", place)]
        };
        check(&graph, Rewrite::Prologues, &inputs, &|ops, precision, without| {
            let others = ops.iter().position(|op| op == "update_slice").map(|at| count(&ops[..at], "loops"));
            assert_eq!(others, Some(usize::from(without)), "{in_halves} {precision}: {ops:?}");
        })?;
    }
    Ok(())
}

#[test]
fn what_a_product_of_few_rows_reads_is_a_part_of_it() -> diptych::Result<()> {
    for (stored, m) in [(Stored::Floats, 1), (Stored::Halves, 1), (Stored::Floats, 2)] {
        let mut graph = Graph::new();
        let x = graph.input("x", Dims::new(&[m, 1536])?)?;
        let parts = graph.split("parts", x, 1, &[768, 768])?;
        let gate = graph.elementwise("gate", Function::Sigmoid, &[parts[0].into()])?;
        let y = graph.elementwise("gated", Function::Mul, &[gate.into(), parts[1].into()])?;
        let y = product(&mut graph, "product", y, [768, 256], stored, true)?;
        graph.output(y)?;
        let x = |run: usize| vec![("x", tensor(&[m, 1536], run as u32 + 3))];
        // Which devices take the kernel for few rows is another rule: with it there is one step.
        check(&graph, Rewrite::Prologues, &x, &|ops, _, without| {
            assert!(!without || count(ops, "gemm") == 1 && ops.len() > 1, "{ops:?}");
        })?;
    }
    Ok(())
}
