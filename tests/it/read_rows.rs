//! Only those rows of a result are computed that are read.

use crate::machine::everywhere;
use crate::one_row::{Stored, check, count, product, tensor};
use diptych::{
    AttentionInputs, Backend, Bits, Context, Dims, Extras, Function, Gemm, Graph, HostTensor, Rewrite, Right,
    Session, SessionOptions, Value, nn::Attention, nn::AxisRange, nn::Normalize,
};

const ROWS: usize = 12;
const WIDE: usize = 32;

/// A layer of a decoder or an encoder: attention of a few heads, and two products with a function between, each behind a
/// normalisation and added to what was before.
fn layer(
    graph: &mut Graph,
    x: Value,
    batch: usize,
    stored: Stored,
    (inputs, attention): (AttentionInputs, Attention),
) -> diptych::Result<Value> {
    let normalised = |graph: &mut Graph, name: &str, x: Value| {
        let options = Normalize { axes: vec![-1], epsilon: Bits(1e-3), centred: true };
        graph.normalize(name, x, options, Some(tensor(&[WIDE], 4)), Some(tensor(&[WIDE], 6)))
    };
    let normal = normalised(graph, "first normal", x)?;
    let side = |graph: &mut Graph, name: &str| {
        let y = product(graph, name, normal, [WIDE, WIDE], stored, true)?;
        let y = graph.reshape(name, y, &[batch, ROWS, 2, WIDE / 2].map(Into::into))?;
        graph.transpose(name, y, &[0, 2, 1, 3])
    };
    let sides = [side(graph, "q")?, side(graph, "k")?, side(graph, "v")?];
    let y = graph.attention("attention", sides, inputs, attention)?;
    let y = graph.transpose("merged", y, &[0, 2, 1, 3])?;
    let y = graph.reshape("flat", y, &[batch, ROWS, WIDE].map(Into::into))?;
    let y = product(graph, "projection", y, [WIDE, WIDE], stored, true)?;
    let x = graph.elementwise("attended", Function::Add, &[x.into(), y.into()])?;
    let normal = normalised(graph, "second normal", x)?;
    let up = product(graph, "up", normal, [WIDE, 2 * WIDE], stored, true)?;
    let up = graph.elementwise("function", Function::Gelu, &[up.into()])?;
    let down = product(graph, "down", up, [2 * WIDE, WIDE], stored, false)?;
    graph.elementwise("layer", Function::Add, &[x.into(), down.into()])
}

/// The scores of `y`.
fn scores(graph: &mut Graph, y: Value) -> diptych::Result<Value> {
    let weights = tensor(&[WIDE, 48], 8);
    graph.gemm("scores", y, Right::Constant(weights), Extras::default(), Gemm::default())
}

/// A decoder's layer, whose queries attend what is before them, with a mask or a bias or both.
fn decoder(stored: Stored, masked: bool, read: std::ops::Range<usize>) -> diptych::Result<Graph> {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[1, ROWS, WIDE])?)?;
    let mut inputs = AttentionInputs::default();
    if masked {
        inputs.mask = Some(graph.input("mask", Dims::new(&[1, 1, ROWS, ROWS])?)?);
        inputs.bias = Some(graph.constant("bias", tensor(&[2, ROWS, ROWS], 11)));
    }
    let attention = Attention { behind: (!masked).then_some(0), ..Attention::default() };
    let y = layer(&mut graph, x, 1, stored, (inputs, attention))?;
    let y = scores(&mut graph, y)?;
    let last = graph.slice("last", y, 1, read)?;
    graph.output(last)?;
    Ok(graph)
}

/// Which keys each query attends: those before it, and not the second one.
fn mask(run: usize) -> HostTensor {
    let attends = |row: usize, key: usize| f32::from(key <= row && key != 1 + run);
    let values: Vec<f32> = (0..ROWS * ROWS).map(|place| attends(place / ROWS, place % ROWS)).collect();
    HostTensor::new(Dims::new(&[1, 1, ROWS, ROWS]).expect("small"), values).expect("as many")
}

#[test]
fn the_scores_behind_some_tokens_are_computed_alone() -> diptych::Result<()> {
    for (stored, masked, read) in [
        (Stored::Floats, false, ROWS - 1..ROWS),
        (Stored::Halves, true, ROWS - 1..ROWS),
        (Stored::Bits(4), true, 3..7),
    ] {
        let graph = decoder(stored, masked, read.clone())?;
        let inputs = |run: usize| {
            let mut all = vec![("x", tensor(&[1, ROWS, WIDE], run as u32 + 3))];
            if masked {
                all.push(("mask", mask(run)));
            }
            all
        };
        check(&graph, Rewrite::ReadRows, &inputs, &|ops, precision, without| {
            assert!(count(ops, "attention") > 0, "{stored:?} {precision} {without}: {ops:?}");
        })?;
        fewer_operations(&graph, read.len() as f64 / ROWS as f64)?;
    }
    Ok(())
}

/// That every context does so much of the work behind the keys and values, which are a quarter of all at most.
fn fewer_operations(graph: &Graph, share: f64) -> diptych::Result<()> {
    for context in everywhere() {
        let operations = |without: bool| {
            let without_rewrites = without.then_some(Rewrite::ReadRows).into_iter().collect();
            let options = SessionOptions { without_rewrites, ..SessionOptions::default() };
            let session = Session::new(&context, graph, options)?;
            Ok::<_, diptych::Error>(session.steps().iter().map(|step| step.flops).sum::<u64>() as f64)
        };
        let (all, some) = (operations(true)?, operations(false)?);
        let most = 0.25 + 0.8 * share;
        assert!(some <= most * all, "{}: {some} of {all}, {most} wanted", context.info());
    }
    Ok(())
}

#[test]
fn the_first_token_of_each_picture_is_computed_alone() -> diptych::Result<()> {
    for (batch, stored) in [(1, Stored::Transposed), (3, Stored::Halves)] {
        let mut graph = Graph::new();
        let x = graph.input("x", Dims::new(&[batch, ROWS, WIDE])?)?;
        let attention = (AttentionInputs::default(), Attention::default());
        let y = layer(&mut graph, x, batch, stored, attention)?;
        let first = AxisRange::new(0, 1);
        let y = graph.strided_slice("class", y, &[AxisRange::ALL, first, AxisRange::ALL])?;
        let y = scores(&mut graph, y)?;
        graph.output(y)?;
        let inputs = |run: usize| vec![("x", tensor(&[batch, ROWS, WIDE], run as u32 + 3))];
        check(&graph, Rewrite::ReadRows, &inputs, &|_, _, _| {})?;
        fewer_operations(&graph, 1.0 / ROWS as f64)?;
    }
    Ok(())
}

#[test]
fn what_is_read_whole_stays_whole() -> diptych::Result<()> {
    let mut graph = Graph::new();
    let x = graph.input("x", Dims::new(&[1, ROWS, WIDE])?)?;
    let y = product(&mut graph, "product", x, [WIDE, WIDE], Stored::Floats, true)?;
    let last = graph.slice("last", y, 1, ROWS - 1..ROWS)?;
    graph.output(last)?;
    graph.output(y)?;
    check(
        &graph,
        Rewrite::ReadRows,
        &|run| vec![("x", tensor(&[1, ROWS, WIDE], run as u32))],
        &|_, _, _| {},
    )?;
    let session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    assert_eq!(session.steps().len(), 1);
    assert!(session.steps()[0].flops >= 2 * (ROWS * WIDE * WIDE) as u64);
    Ok(())
}
