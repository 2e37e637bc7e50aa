//! What composition makes of convolutions among products, and of integers that say where elements are.

use crate::machine::{everywhere, in_turns, noise};
use diptych::{
    Backend, Context, DType, Depthwise, Dims, Extras, Function, Gemm, Graph, HostTensor, Padding, Precision,
    Reduction, Rewrite, Right, Session, SessionOptions, Softmax, Term, Value,
    nn::{AxisRange, ByteRange, IntegerFunction},
};
use half::f16;
use std::collections::BTreeSet;

fn tensor(dims: &[usize], seed: u32) -> HostTensor {
    let dims = Dims::new(dims).expect("small");
    HostTensor::new(dims, noise(dims.shape(), seed).to_f32().to_vec()).expect("as many")
}

fn run(
    context: &Context,
    graph: &Graph,
    inputs: &[(&str, &HostTensor)],
    options: SessionOptions,
) -> (Vec<f32>, Vec<String>) {
    let mut session = Session::new(context, graph, options).expect("a session");
    let steps = session.steps().iter().map(|step| step.op.to_owned()).collect();
    (session.run(inputs).expect("a run")[0].to_f32().to_vec(), steps)
}

/// That all backends find what the CPU does without composition, devices in steps of these ops.
fn check(graph: &Graph, inputs: &[(&str, &HostTensor)], ops: &[&str]) {
    let cpu = Context::builder().backend(Backend::Cpu).open().expect("the CPU");
    let apart = SessionOptions { without_rewrites: [Rewrite::Loops].into(), ..Default::default() };
    let (wanted, _) = run(&cpu, graph, inputs, apart);
    for context in in_turns() {
        let (found, steps) = run(&context, graph, inputs, SessionOptions::default());
        if context.info().backend != Backend::Cpu {
            assert_eq!(steps, ops, "{}", context.info().backend);
        }
        let off = found.iter().zip(&wanted).map(|(found, wanted)| (found - wanted).abs()).fold(0.0, f32::max);
        assert!(found.len() == wanted.len() && off <= 1e-4, "{}: {off} off", context.info().backend);
    }
}

/// The second 12 of 24 columns of a product as a map of 3 x 6 pixels.
fn columns(graph: &mut Graph) -> diptych::Result<Value> {
    let x = graph.input("x", Dims::new(&[1, 18, 8])?)?;
    let right = Right::Constant(tensor(&[8, 24], 1));
    let product = graph.gemm("product", x, right, Extras::default(), Gemm::default())?;
    let ranges = [AxisRange::ALL, AxisRange::ALL, AxisRange::new(12, 24)];
    let part = graph.strided_slice("part", product, &ranges)?;
    graph.reshape("map", part, &[1.into(), 3.into(), 6.into(), 12.into()])
}

#[test]
fn a_convolution_of_some_columns_of_a_product_is_one_step() -> diptych::Result<()> {
    for adds in [false, true] {
        let mut graph = Graph::new();
        let map = columns(&mut graph)?;
        let options = Depthwise { padding: Padding::Same, ..Depthwise::default() };
        let mut y = graph.depthwise("conv", map, tensor(&[1, 3, 3, 12], 2), Extras::default(), options)?;
        if adds {
            // The map itself is read too, so that it is there.
            y = graph.elementwise("sum", Function::Add, &[y.into(), map.into()])?;
        }
        let rows = graph.reshape("rows", y, &[1.into(), 18.into(), 12.into()])?;
        let right = Right::Constant(tensor(&[12, 8], 3));
        let y = graph.gemm("last", rows, right, Extras::default(), Gemm::default())?;
        graph.output(y)?;
        let x = tensor(&[1, 18, 8], 4);
        let steps: &[&str] =
            if adds { &["gemm", "remap", "depthwise", "gemm"] } else { &["gemm", "depthwise", "gemm"] };
        check(&graph, &[("x", &x)], steps);
    }
    Ok(())
}

#[test]
fn elements_where_integers_say_are_one_step() -> diptych::Result<()> {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[2, 5])?)?;
    let table = graph.input("table", Dims::new(&[7, 12])?)?;
    // Some places are negative, and some beyond the table.
    let scaled = graph.elementwise("scaled", Function::Mul, &[x.into(), Term::Number(9.0)])?;
    let floor = graph.elementwise("floor", Function::Floor, &[scaled.into()])?;
    let whole = graph.cast("whole", floor, DType::I32)?;
    let place = graph.integer("place", IntegerFunction::Add, &[Term::Value(whole), Term::Integer(3)])?;
    let rows = graph.gather("rows", table, place, 0, 0)?;
    let turned = graph.transpose("turned", rows, &[2, 0, 1])?;
    let y = graph.elementwise("y", Function::Sigmoid, &[turned.into()])?;
    graph.output(y)?;
    check(&graph, &[("x", &tensor(&[2, 5], 5)), ("table", &tensor(&[7, 12], 6))], &["loops"]);
    Ok(())
}

/// Places as a constant of this type: one of them is beyond the table's seven rows.
fn places(word: DType) -> diptych::Result<HostTensor> {
    let (dims, all) = (Dims::new(&[2, 3])?, [4i32, 0, 6, 2, 9, 1]);
    match word {
        DType::I32 => HostTensor::of(dims, all.to_vec()),
        DType::I64 => HostTensor::of(dims, all.map(i64::from).to_vec()),
        DType::U32 => HostTensor::of(dims, all.map(i32::cast_unsigned).to_vec()),
        _ => HostTensor::of(dims, all.map(|place| place as f32).to_vec()),
    }
}

#[test]
fn constants_of_every_type_say_where_elements_are() -> diptych::Result<()> {
    let words = [DType::F32, DType::I32, DType::U32, DType::I64];
    for (word, halves) in words.into_iter().flat_map(|word| [(word, false), (word, true)]) {
        for turned in [false, true] {
            let mut graph = Graph::new();
            let x = graph.input("x", Dims::new(&[7, 12])?)?;
            let numbers = tensor(&[7, 12], 6).to_f32().to_vec();
            let table = match halves {
                true => HostTensor::of(
                    Dims::new(&[7, 12])?,
                    numbers.into_iter().map(f16::from_f32).collect::<Vec<_>>(),
                ),
                false => HostTensor::of(Dims::new(&[7, 12])?, numbers),
            };
            let table = graph.constant("table", table?);
            let table = graph.cast("floats", table, DType::F32)?;
            let sum = graph.elementwise("sum", Function::Mul, &[table.into(), x.into()])?;
            let index = graph.constant("index", places(word)?);
            let index = if turned { graph.transpose("index/turned", index, &[1, 0])? } else { index };
            // What is computed is a step of its own: an element of it is read where a constant says.
            let rows = graph.gather("rows", sum, index, 0, 0)?;
            let direct = graph.gather("direct", table, index, 0, 0)?;
            let both = graph.elementwise("both", Function::Sub, &[rows.into(), direct.into()])?;
            let y = graph.transpose("y", both, &[2, 1, 0])?;
            graph.output(y)?;
            let x = tensor(&[7, 12], 5);
            let cpu = Context::builder().backend(Backend::Cpu).open()?;
            let apart = SessionOptions { without_rewrites: [Rewrite::Loops].into(), ..Default::default() };
            let (wanted, _) = run(&cpu, &graph, &[("x", &x)], apart);
            for context in in_turns() {
                for (precision, most) in [(Precision::F32, 1e-5), (Precision::F16Storage, 5e-3)] {
                    let of = |without: BTreeSet<Rewrite>| -> diptych::Result<Vec<f32>> {
                        let options = SessionOptions {
                            precision,
                            without_rewrites: without,
                            ..SessionOptions::default()
                        };
                        let mut session = Session::new(&context, &graph, options)?;
                        Ok(session.run(&[("x", &x)])?[0].to_f32().to_vec())
                    };
                    for found in [of(BTreeSet::new())?, of([Rewrite::Loops].into())?] {
                        let off = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                        let what =
                            format!("{word} {halves} {turned} {precision} on {}", context.info().backend);
                        assert!(found.len() == wanted.len() && off <= most, "{what}: {off} off");
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn bytes_are_read_where_they_begin_and_as_words_beside() -> diptych::Result<()> {
    for channels in [8, 5] {
        let dims = Dims::new(&[4, channels])?;
        let mut graph = Graph::new();
        let x = graph.input("x", dims)?;
        let bytes = graph.quantize("bytes", x, 0.02, ByteRange::all(128))?;
        // Rows behind the first one, and the words of all, which are moved.
        let part = graph.slice("part", bytes, 0, 1..3)?;
        let numbers = graph.dequantize("numbers", part, 0.02, 128, channels)?;
        let y = graph.elementwise("shares", Function::Sigmoid, &[numbers.into()])?;
        let turned = graph.transpose("turned", bytes, &[1, 0])?;
        let back = graph.transpose("back", turned, &[1, 0])?;
        let last = graph.slice("last", back, 0, 2..4)?;
        let last = graph.dequantize("numbers of words", last, 0.02, 128, channels)?;
        let y = graph.elementwise("y", Function::Add, &[y.into(), last.into()])?;
        graph.output(y)?;
        let x = tensor(&[4, channels], 9);
        let step = |value: f32| (value / 0.02).round_ties_even().clamp(-128.0, 127.0) * 0.02;
        let rows: Vec<f32> = x.to_f32().iter().map(|&value| step(value)).collect();
        for context in in_turns() {
            for without in [BTreeSet::new(), [Rewrite::Loops].into()] {
                let options = SessionOptions { without_rewrites: without, ..SessionOptions::default() };
                let (found, steps) = run(&context, &graph, &[("x", &x)], options);
                for (place, found) in found.iter().enumerate() {
                    let wanted = 1.0 / (1.0 + (-rows[channels + place]).exp()) + rows[2 * channels + place];
                    let what = format!("{} {channels} channels, {place}, {steps:?}", context.info().backend);
                    assert!((found - wanted).abs() <= 1e-5, "{what}: {found} for {wanted}");
                }
            }
        }
    }
    Ok(())
}

/// `relu(v) sum_l(k softmax_l(q))` of rows that hold `q`, `k` and `v` beside each other.
fn linear_attention([groups, places, channels]: [usize; 3]) -> diptych::Result<Graph> {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[1, groups, places, 1 + 2 * channels])?)?;
    let part = |graph: &mut Graph, name: &str, from: usize, to: usize| {
        let ranges =
            [AxisRange::ALL, AxisRange::ALL, AxisRange::ALL, AxisRange::new(from as isize, to as isize)];
        graph.strided_slice(name, x, &ranges)
    };
    let q = part(&mut graph, "q", 0, 1)?;
    let k = part(&mut graph, "k", 1, 1 + channels)?;
    let v = part(&mut graph, "v", 1 + channels, 1 + 2 * channels)?;
    let shares = graph.softmax("shares", q, Softmax { axis: 2, ..Softmax::default() })?;
    let weighted = graph.elementwise("weighted", Function::Mul, &[k.into(), shares.into()])?;
    let sum = graph.reduce("sum", weighted, Reduction::Sum, &[2], true)?;
    let v = graph.elementwise("relu", Function::Relu, &[v.into()])?;
    let y = graph.elementwise("y", Function::Mul, &[v.into(), sum.into()])?;
    graph.output(y)?;
    Ok(graph)
}

#[test]
fn sums_of_channels_by_shares_of_rows_are_right() -> diptych::Result<()> {
    for extents in [[1, 4, 16], [2, 7, 12], [4, 64, 64], [1, 16, 256], [1, 64, 192], [4, 128, 192]] {
        let graph = linear_attention(extents)?;
        let [groups, places, channels] = extents;
        let x = tensor(&[1, groups, places, 1 + 2 * channels], 5);
        check(&graph, &[("x", &x)], &["loops"]);
    }
    Ok(())
}

#[test]
fn products_in_several_forms_are_one_behind_the_other() -> diptych::Result<()> {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[1, 4])?)?;
    let right = graph.input("right", Dims::new(&[4, 192])?)?;
    let z = graph.input("z", Dims::new(&[1, 1])?)?;
    let wide = graph.gemm("wide", x, Right::Value(right), Extras::default(), Gemm::default())?;
    let options = Gemm { transpose_b: true, ..Gemm::default() };
    let narrow = graph.gemm("narrow", z, Right::Constant(tensor(&[4, 1], 1)), Extras::default(), options)?;
    let both = graph.concat("both", &[wide, narrow], 1)?;
    graph.output(both)?;
    let (x, right, z) = (tensor(&[1, 4], 2), tensor(&[4, 192], 3), tensor(&[1, 1], 4));
    let inputs = [("x", &x), ("right", &right), ("z", &z)];
    let cpu = Context::builder().backend(Backend::Cpu).open()?;
    let (wanted, _) = run(&cpu, &graph, &inputs, SessionOptions::default());
    for context in everywhere() {
        for precision in [Precision::F32, Precision::F16Storage] {
            let options = SessionOptions { precision, ..Default::default() };
            let (found, _) = run(&context, &graph, &inputs, options);
            let off =
                found.iter().zip(&wanted).map(|(found, wanted)| (found - wanted).abs()).fold(0.0, f32::max);
            assert!(
                found.len() == wanted.len() && off <= 4e-3,
                "{} {precision}: {off}",
                context.info().backend
            );
        }
    }
    Ok(())
}
