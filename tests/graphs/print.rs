//! A recipe as the text of a Rust test.

use crate::recipe::{Make, Origin, Part, Recipe, Step, Tensor};
use crate::run::{Given, Setting, are_halves};
use std::fmt::{Debug, Write};

/// A number as Rust has it.
fn number(value: f32) -> String {
    match value {
        value if value.is_nan() => "f32::NAN".to_owned(),
        f32::INFINITY => "f32::INFINITY".to_owned(),
        f32::NEG_INFINITY => "f32::NEG_INFINITY".to_owned(),
        value => format!("{value:?}"),
    }
}

fn numbers(values: &[f32]) -> String {
    match values {
        [first, ..] if values.len() > 4 && values.iter().all(|value| value.to_bits() == first.to_bits()) => {
            format!("vec![{}; {}]", number(*first), values.len())
        }
        _ => format!("vec![{}]", values.iter().map(|&value| number(value)).collect::<Vec<_>>().join(", ")),
    }
}

fn tensor(tensor: &Tensor) -> String {
    let name = if tensor.halves { "halves" } else { "tensor" };
    format!("{name}(&{:?}, {})", tensor.dims, numbers(&tensor.values))
}

/// Options as an expression: the names of enumerations are put before their variants.
fn options(options: &dyn Debug) -> String {
    let mut text = format!("{options:?}");
    for (field, path) in [
        ("padding: ", "diptych::Padding::"),
        ("border: ", "diptych::Border::"),
        ("activation: ", "diptych::Activation::"),
        ("pooling: ", "diptych::Pooling::"),
        ("mode: ", "diptych::ResizeMode::"),
    ] {
        text = text.replace(field, &format!("{field}{path}"));
    }
    text.replace("axes: [", "axes: vec![").replace("Bits(", "diptych::Bits(")
}

fn extras(step: &Step) -> String {
    let vector = |name: &str, values: &Option<Vec<f32>>| {
        values.as_ref().map(|values| format!("{name}: Some(HostTensor::vector({})?)", numbers(values)))
    };
    let residual = step.arguments.last().filter(|_| step.residual);
    let residual = residual.map(|value| format!("residual: Some(v{value})"));
    let parts: Vec<String> =
        [vector("bias", &step.bias), vector("slope", &step.slope), residual].into_iter().flatten().collect();
    match parts.len() {
        0 => "Extras::default()".to_owned(),
        3 => format!("Extras {{ {} }}", parts.join(", ")),
        _ => format!("Extras {{ {}, ..Extras::default() }}", parts.join(", ")),
    }
}

/// The call that adds a node.
fn call(step: &Step, name: &str) -> String {
    let all: Vec<String> = step.arguments.iter().map(|value| format!("v{value}")).collect();
    let (x, list) = (all.first().cloned().unwrap_or_default(), all.join(", "));
    let second = || all.get(1).cloned().unwrap_or_default();
    let weights = || step.weights.as_ref().map(tensor).unwrap_or_default();
    let window = |method: &str, of: &dyn Debug| {
        format!("{method}({name:?}, {x}, {}, {}, diptych::{})?", weights(), extras(step), options(of))
    };
    let with = |method: &str, rest: String| format!("{method}({name:?}, {x}, {rest})?");
    let dims = |extents: &[usize]| {
        let each = extents.iter().map(|extent| format!("{extent}.into()"));
        format!("&[{}]", each.collect::<Vec<_>>().join(", "))
    };
    match &step.make {
        Make::Elementwise(function, parts) => {
            let term = |part: &Part| match part {
                Part::Argument(index) => format!("{}.into()", all[*index]),
                Part::Number(value) => format!("({}).into()", number(*value)),
            };
            let terms: Vec<String> = parts.iter().map(term).collect();
            format!("elementwise({name:?}, diptych::Function::{function:?}, &[{}])?", terms.join(", "))
        }
        Make::Conv2d(of) => window("conv2d", of),
        Make::Depthwise(of) => window("depthwise", of),
        Make::Pointwise(of) => window("pointwise", of),
        Make::TransposedConv2d(of) => window("transposed_conv2d", of),
        Make::Gemm(of) => {
            let right = match &step.weights {
                Some(right) => format!("diptych::Right::Constant({})", tensor(right)),
                None => format!("diptych::Right::Value({})", second()),
            };
            with("gemm", format!("{right}, {}, diptych::{}", extras(step), options(of)))
        }
        Make::Packed(of) => {
            let integers = step.weights.iter().flat_map(|weights| &weights.values).map(|&value| value as u8);
            let dims = step.weights.as_ref().map_or(&[][..], |weights| &weights.dims);
            let &[n, k] = dims else { return String::new() };
            let matrix = format!(
                "diptych::QuantizedMatrix::pack({}, [{n}, {k}], &{:?}, vec!{:?})?",
                of.bits,
                integers.collect::<Vec<u8>>(),
                crate::recipe::scales(of, n, k)
            );
            with("quantized_gemm", format!("{matrix}, {}, diptych::nn::{}", extras(step), options(of)))
        }
        Make::Pool(of) => with("pool", format!("diptych::nn::{}", options(of))),
        Make::Reshape(target) => with("reshape", dims(target)),
        Make::Slice(axis, [begin, end]) => with("slice", format!("{axis}, {begin}..{end}")),
        Make::Transpose(permutation) => with("transpose", format!("&{permutation:?}")),
        Make::StridedSlice(ranges) => {
            let ranges = format!("{ranges:?}").replace("AxisRange {", "diptych::nn::AxisRange {");
            with("strided_slice", format!("&{ranges}"))
        }
        Make::Pad(before, after, mode) => {
            with("pad", format!("&{before:?}, &{after:?}, diptych::nn::PadMode::{}", options(mode)))
        }
        Make::Tile(repeats) => with("tile", format!("&{repeats:?}")),
        Make::BroadcastTo(target) => with("broadcast_to", dims(target)),
        Make::Reverse(axes) => with("reverse", format!("&{axes:?}")),
        Make::DepthToSpace(block) => with("depth_to_space", block.to_string()),
        Make::SpaceToDepth(block) => with("space_to_depth", block.to_string()),
        Make::SpaceToBatch(block, before, after) => {
            with("space_to_batch", format!("&{block:?}, &{before:?}, &{after:?}"))
        }
        Make::BatchToSpace(block, before, after) => {
            with("batch_to_space", format!("&{block:?}, &{before:?}, &{after:?}"))
        }
        Make::Concat(axis) => format!("concat({name:?}, &[{list}], {axis})?"),
        Make::Stack(axis) => format!("stack({name:?}, &[{list}], {axis})?"),
        Make::Split(axis, sizes, which) => format!("split({name:?}, {x}, {axis}, &{sizes:?})?[{which}]"),
        Make::Cast(to) => with("cast", format!("diptych::DType::{to:?}")),
        Make::Integers(function, number) => {
            let values = all.iter().map(|value| format!("{value}.into()"));
            let number = number.map(|number| format!("diptych::Term::Integer({number})"));
            let terms: Vec<String> = values.chain(number).collect();
            let function = format!("diptych::nn::IntegerFunction::{function:?}");
            format!("integer({name:?}, {function}, &[{}])?", terms.join(", "))
        }
        Make::Gather(axis, batch_dims) => with("gather", format!("{}, {axis}, {batch_dims}", second())),
        Make::GatherNd => with("gather_nd", second()),
        Make::OneHot(of) => with("one_hot", format!("diptych::nn::{}", options(of))),
        Make::CumSum(of) => with("cumsum", format!("diptych::nn::{of:?}")),
        Make::TopK(k, indices) => format!("top_k({name:?}, {x}, {k})?[{}]", usize::from(*indices)),
        Make::Suppress(of) => with("suppress", format!("{}, diptych::nn::{}", second(), options(of))),
        Make::Reduce(reduction, axes, keep) => {
            with("reduce", format!("diptych::Reduction::{reduction:?}, &{axes:?}, {keep}"))
        }
        Make::Resize(of) => with("resize", format!("diptych::nn::{}", options(of))),
        Make::Softmax(of) => with("softmax", format!("diptych::nn::{}", options(of))),
        Make::Arg(largest, axis, keep) => {
            with(if *largest { "arg_max" } else { "arg_min" }, format!("{axis}, {keep}"))
        }
        Make::Normalize(of) => {
            let scale =
                step.weights.as_ref().map_or("None".to_owned(), |scale| format!("Some({})", tensor(scale)));
            let bias = step.bias.as_ref();
            let bias = bias
                .map_or("None".to_owned(), |bias| format!("Some(HostTensor::vector({})?)", numbers(bias)));
            with("normalize", format!("diptych::nn::{}, {scale}, {bias}", options(of)))
        }
        Make::Custom(_) => format!("custom({name:?}, &kernel, &[{list}])?[0]"),
    }
}

/// A tensor as a session is given it.
fn as_given(given: Given, name: &str, tensor: &Tensor) -> String {
    match (given, Given::planes(&tensor.dims)) {
        (Given::Planes, Some(places)) => format!(
            "let {name} = HostTensor::with_layout({name}.dims(), diptych::Layout::Nchw, \
             {places:?}.map(|at: usize| {name}.to_f32()[at]).to_vec())?;"
        ),
        (Given::Halves, _) if are_halves(&tensor.values) => format!(
            "let {name} = HostTensor::from_f16({name}.dims(), diptych::Layout::Nhwc, \
             {name}.to_f32().iter().map(|&x| half::f16::from_f32(x)).collect::<Vec<_>>())?;"
        ),
        _ => String::new(),
    }
}

/// The test: it wants `wanted`, each output's values with their bounds.
pub(crate) fn test(
    recipe: &Recipe,
    setting: &Setting,
    title: &str,
    wanted: &[(Vec<f32>, Vec<f64>)],
) -> String {
    let mut text = String::new();
    let mut line = |indent: usize, words: String| {
        if words.is_empty() {
            return;
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}{words}", "    ".repeat(indent));
    };
    line(0, "#[test]".to_owned());
    line(0, format!("fn {title}() -> diptych::Result<()> {{"));
    line(1, "use diptych::{Dims, Extras, Graph, HostTensor};".to_owned());
    line(1, "let tensor = |dims: &[usize], values: Vec<f32>| {".to_owned());
    line(
        2,
        "HostTensor::new(Dims::new(dims).expect(\"dimensions\"), values).expect(\"a tensor\")".to_owned(),
    );
    line(1, "};".to_owned());
    let constants = recipe.sources.iter().map(|source| &source.tensor);
    let mut constants = constants.chain(recipe.steps.iter().filter_map(|step| step.weights.as_ref()));
    if constants.any(|tensor| tensor.halves) {
        line(1, "let halves = |dims: &[usize], values: Vec<f32>| {".to_owned());
        line(
            2,
            "let values: Vec<half::f16> = values.into_iter().map(half::f16::from_f32).collect();".to_owned(),
        );
        line(
            2,
            "HostTensor::of(Dims::new(dims).expect(\"dimensions\"), values).expect(\"a tensor\")".to_owned(),
        );
        line(1, "};".to_owned());
    }
    line(1, "let mut graph = Graph::new();".to_owned());
    if recipe.steps.iter().any(|step| matches!(step.make, Make::Custom(_))) {
        let text = crate::recipe::IDENTITY.replace("\n    ", "\n");
        line(1, format!("let kernel = diptych::Custom::new(\"identity\", r#\"{text}\"#)?"));
        line(2, ".on_cpu(|inputs, outputs| outputs[0].copy_from_slice(inputs[0]));".to_owned());
    }
    let mut given = Vec::new();
    for (index, source) in recipe.sources.iter().enumerate() {
        let made = tensor(&source.tensor);
        match source.origin {
            Origin::Input => {
                line(1, format!("let x{index} = {made};"));
                line(1, format!("let v{index} = graph.input(\"x{index}\", x{index}.dims())?;"));
                given.push(format!("(\"x{index}\", &x{index})"));
            }
            Origin::Constant => line(1, format!("let v{index} = graph.constant(\"x{index}\", {made});")),
            Origin::State(_) => line(1, format!("let v{index} = graph.state(\"x{index}\", {made});")),
        }
    }
    for (place, step) in recipe.steps.iter().enumerate() {
        let index = recipe.sources.len() + place;
        line(1, format!("let v{index} = graph.{};", call(step, &step.name())));
    }
    for (index, source) in recipe.sources.iter().enumerate() {
        if let Origin::State(Some(next)) = source.origin {
            line(1, format!("graph.update(v{index}, v{next})?;"));
        }
    }
    for output in &recipe.outputs {
        line(1, format!("graph.output(v{output})?;"));
    }
    for words in setting.text() {
        line(1, words);
    }
    line(1, "let mut session = diptych::Session::new(&context, &graph, options)?;".to_owned());
    if setting.runs > 1 {
        for (index, source) in
            recipe.sources.iter().enumerate().filter(|(_, source)| source.origin == Origin::Input)
        {
            let values = numbers(&crate::run::elements(source, true));
            line(1, format!("let y{index} = tensor(&{:?}, {values});", source.tensor.dims));
        }
    }
    for (index, source) in
        recipe.sources.iter().enumerate().filter(|(_, source)| source.origin == Origin::Input)
    {
        for letter in if setting.runs > 1 { vec!["x", "y"] } else { vec!["x"] } {
            line(1, as_given(setting.given, &format!("{letter}{index}"), &source.tensor));
        }
    }
    for run in 0..setting.runs - 1 {
        let given = given.join(", ");
        let given = if setting.is_backwards(run) { given.replace("&x", "&y") } else { given };
        line(1, format!("session.run(&[{given}])?;"));
    }
    line(1, format!("let outputs = session.run(&[{}])?;", given.join(", ")));
    line(1, "let wanted: &[&[(f32, f64)]] = &[".to_owned());
    for (values, errors) in wanted {
        let pair = |(value, error): (&f32, &f64)| {
            let error = if error.is_finite() { format!("{error:e}") } else { "f64::INFINITY".to_owned() };
            format!("({}, {error})", number(*value))
        };
        let pairs: Vec<String> = values.iter().zip(errors).map(pair).collect();
        line(2, format!("&[{}],", pairs.join(", ")));
    }
    line(1, "];".to_owned());
    line(1, "for (found, wanted) in outputs.iter().zip(wanted) {".to_owned());
    line(2, "assert_eq!(found.to_f32().len(), wanted.len());".to_owned());
    line(
        2,
        "for (at, (&found, &(value, error))) in found.to_f32().iter().zip(*wanted).enumerate() {".to_owned(),
    );
    line(3, "let off = (f64::from(found) - f64::from(value)).abs();".to_owned());
    line(3, "let same = found == value || found.is_nan() && value.is_nan();".to_owned());
    line(
        3,
        "assert!(same || off <= error || error.is_infinite(), \"{at}: {found} instead of {value} +- {error}\");"
            .to_owned(),
    );
    line(2, "}".to_owned());
    line(1, "}".to_owned());
    line(1, "Ok(())".to_owned());
    line(0, "}".to_owned());
    text
}
