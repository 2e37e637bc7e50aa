//! Finds a kernel's template and renders it.

use super::words::Words;
use super::{Dialect, KernelSource, KernelSpec, Value};
use crate::error::{Error, Result};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, context};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A template: op, variant, language, text.
type Template = (&'static str, &'static str, Dialect, &'static str);

macro_rules! pair {
    ($op:literal, $variant:literal) => {
        [solo!(wgsl, $op, $variant), solo!(cl, $op, $variant)]
    };
}

macro_rules! solo {
    (wgsl, $op:literal, $variant:literal) => {
        ($op, $variant, Dialect::Wgsl, include_str!(concat!("../../shaders/", $op, "/", $variant, ".wgsl")))
    };
    (cl, $op:literal, $variant:literal) => {
        ($op, $variant, Dialect::OpenClC, include_str!(concat!("../../cl/", $op, "/", $variant, ".cl")))
    };
}

/// Pairs that say the same in both languages.
const PAIRS: &[[Template; 2]] = &[
    pair!("conv2d", "direct"),
    pair!("conv2d", "grouped"),
    pair!("conv2d", "shallow"),
    pair!("conv2d", "split"),
    pair!("conv2d", "tiled"),
    pair!("conv2d", "winograd2"),
    pair!("conv2d", "winograd4"),
    pair!("convert", "pack"),
    pair!("convert", "unpack"),
    pair!("convert", "unpack_parts"),
    pair!("depthwise", "direct"),
    pair!("depthwise", "local"),
    pair!("depthwise", "micro"),
    pair!("depthwise", "multiplier"),
    pair!("depthwise", "rows"),
    pair!("gemm", "micro"),
    pair!("gemm", "thin"),
    pair!("gemm", "tiled"),
    pair!("gemm", "vec4"),
    pair!("pointwise", "direct"),
    pair!("pointwise", "micro"),
    pair!("pointwise", "split"),
    pair!("pointwise", "tiled"),
    pair!("separable", "staged"),
];

/// Kernels that only one language can say.
const SOLOS: &[Template] = &[
    solo!(cl, "convert", "c4_to_image2d"),
    solo!(cl, "convert", "image2d_to_c4"),
    solo!(cl, "convert", "pack_image2d"),
    solo!(cl, "convert", "unpack_image2d"),
    solo!(cl, "gemm", "image2d"),
    solo!(cl, "gemm", "matrix_ptx"),
    solo!(cl, "gemm", "matrix_split_ptx"),
    solo!(cl, "gemm", "wide"),
    solo!(cl, "gemm", "wgmma"),
    solo!(cl, "gemm", "wgmma_tf32"),
    solo!(wgsl, "gemm", "matrix"),
    solo!(wgsl, "gemm", "subgroup"),
];

/// Pieces that kernels include under the name `shared/<piece>`.
const SHARED: &[[Template; 2]] = &[
    pair!("shared", "add_splits"),
    pair!("shared", "multiply"),
    pair!("shared", "products"),
    pair!("shared", "store_pixels"),
    pair!("shared", "tile_loop"),
    pair!("shared", "tile_place"),
    pair!("shared", "winograd"),
    pair!("shared", "winograd_output"),
];

fn find(op: &str, variant: &str, dialect: Dialect) -> Option<&'static str> {
    PAIRS
        .iter()
        .flatten()
        .chain(SOLOS)
        .find(|(o, v, d, _)| (*o, *v, *d) == (op, variant, dialect))
        .map(|&(_, _, _, text)| text)
}

fn syntax() -> Result<SyntaxConfig, minijinja::Error> {
    SyntaxConfig::builder()
        .block_delimiters("/*%", "%*/")
        .variable_delimiters("${", "}")
        .comment_delimiters("/*#", "#*/")
        .line_statement_prefix("//%")
        .line_comment_prefix("//#")
        .keep_trailing_newline(true)
        .build()
}

fn plain(value: Value) -> minijinja::Value {
    match value {
        Value::U32(value) => value.into(),
        Value::I32(value) => value.into(),
        Value::F32(value) => value.0.into(),
    }
}

fn word(message: String) -> minijinja::Error {
    minijinja::Error::new(ErrorKind::InvalidOperation, message)
}

/// Gives the environment the vocabulary of `words`.
fn teach(env: &mut Environment<'_>, words: &Arc<Words>) {
    let w = Arc::clone(words);
    env.add_function("load4", move |name: String, index: String, extra: Kwargs| {
        let (column, row) = image_place(&extra)?;
        w.load4(&name, &index, &column, &row).map_err(word)
    });
    let w = Arc::clone(words);
    env.add_function("store4", move |name: String, index: String, value: String, extra: Kwargs| {
        let (column, row) = image_place(&extra)?;
        w.store4(&name, &index, &value, &column, &row).map_err(word)
    });
    let w = Arc::clone(words);
    env.add_function("load", move |name: String, index: String| w.load(&name, &index).map_err(word));
    let w = Arc::clone(words);
    env.add_function("store", move |name: String, index: String, value: String| {
        w.store(&name, &index, &value).map_err(word)
    });
    let w = Arc::clone(words);
    env.add_function("lane", move |name: String, index: String, lane: String| {
        w.lane(&name, &index, &lane).map_err(word)
    });
    let w = Arc::clone(words);
    env.add_function("set_lane", move |name: String, index: String, lane: String, value: String| {
        w.set_lane(&name, &index, &lane, &value)
    });
    let w = Arc::clone(words);
    env.add_function("param", move |name: String| w.param(&name));
    let w = Arc::clone(words);
    env.add_function("splat", move |x: String| w.splat(&x));
    let w = Arc::clone(words);
    env.add_function("fma4", move |a: String, b: String, c: String| w.fma4(&a, &b, &c));
    let w = Arc::clone(words);
    env.add_function("between", move |x: String, slice: String| w.between(&x, &slice).map_err(word));
    let w = Arc::clone(words);
    env.add_function("transform", move |which: String, results: usize, row: usize, prefix: String| {
        w.transform(&which, results, row, &prefix).map_err(word)
    });
    let w = Arc::clone(words);
    env.add_function("epilogue", move |x: String, slice: String, index: String, extra: Kwargs| {
        let (column, row) = image_place(&extra)?;
        w.epilogue(&x, &slice, &index, &column, &row).map_err(word)
    });
}

/// The `column` and `row` of an image access.
fn image_place(extra: &Kwargs) -> Result<(String, String), minijinja::Error> {
    let column: Option<String> = extra.get("column")?;
    let row: Option<String> = extra.get("row")?;
    extra.assert_all_used()?;
    Ok((column.unwrap_or_default(), row.unwrap_or_default()))
}

/// Renders `spec` in `dialect`.
pub(crate) fn render(spec: &KernelSpec, dialect: Dialect) -> Result<KernelSource> {
    let (folder, ending) = dialect.folder_and_ending();
    let name = format!("{folder}/{}/{}.{ending}", spec.op, spec.variant);
    let fail = |message: String| Error::Template { template: name.clone(), message };
    let text = find(spec.op, spec.variant, dialect).ok_or_else(|| {
        Error::unsupported(format!("kernel {} in {dialect}", spec.label()), format!("there is no {name}"))
    })?;

    let words = Arc::new(Words::new(spec, dialect));
    let mut env = Environment::new();
    env.set_syntax(syntax().map_err(|error| fail(error.to_string()))?);
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    teach(&mut env, &words);
    for (folder, piece, _, text) in SHARED.iter().flatten().filter(|(_, _, of, _)| *of == dialect) {
        env.add_template_owned(format!("{folder}/{piece}"), *text)
            .map_err(|error| fail(format!("{error:#}")))?;
    }

    let constants: BTreeMap<&str, minijinja::Value> =
        spec.constants.iter().map(|&(name, value)| (name, plain(value))).collect();
    let declarations = match dialect {
        Dialect::Wgsl => words.interface().map_err(fail)?,
        Dialect::OpenClC => String::new(),
    };
    let arguments = match dialect {
        Dialect::Wgsl => String::new(),
        Dialect::OpenClC => words.arguments().map_err(fail)?,
    };
    let body = env
        .render_named_str(
            &name,
            text,
            context! {
                interface => declarations,
                arguments => arguments,
                constants => words.constants(text),
                acc => words.acc(),
                barrier => words.barrier(),
                acc4 => words.acc4(),
                zero => words.zero(),
                zero4 => words.constant4(0.0),
                tile => spec.tile,
                residual => spec.epilogue.residual,
                images => spec.maps_are_images(),
                ..minijinja::Value::from(constants)
            },
        )
        .map_err(|error| fail(format!("{error:#}")))?;
    Ok(KernelSource {
        label: spec.label(),
        entry: spec.entry(),
        dialect,
        text: format!("{}{body}", words.enables()),
        interface: spec.interface.clone(),
        work_group: spec.work_group,
    })
}

/// The pairs' op and variant, for the tests that hold the twins against each other.
#[cfg(test)]
pub(crate) fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAIRS.iter().map(|[(op, variant, ..), _]| (*op, *variant))
}
