//! Renders a kernel's template.

use super::words::Words;
use super::{Dialect, KernelSource, KernelSpec, Template, Value};
use crate::error::{Error, Result};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, context};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

macro_rules! piece {
    ($name:literal) => {
        ($name, include_str!(concat!("../../shaders/", $name, ".wgsl")))
    };
    ($name:literal, opencl) => {
        ($name, include_str!(concat!("../../cl/", $name, ".cl")))
    };
}

/// Pieces that kernels include.
const SHARED: &[(&str, &str)] = &[
    piece!("shared/add_splits"),
    piece!("shared/border"),
    piece!("shared/coordinate"),
    piece!("shared/functions"),
    piece!("shared/group_sum"),
    piece!("shared/matrix"),
    piece!("shared/matrix_ptx", opencl),
    piece!("shared/matrix_ptx_words", opencl),
    piece!("shared/multiply"),
    piece!("shared/normalized"),
    piece!("shared/place"),
    piece!("shared/products"),
    piece!("shared/reduction"),
    piece!("shared/store_columns"),
    piece!("shared/store_pixels"),
    piece!("shared/tile_loop"),
    piece!("shared/tile_place"),
    piece!("shared/winograd"),
    piece!("shared/winograd_output"),
];

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

/// The kernel of `spec` as it is written: in `dialect`, or in WGSL, from which OpenCL C is printed.
pub(crate) fn render_written(spec: &KernelSpec, dialect: Dialect) -> Result<KernelSource> {
    match spec.template {
        Some(Template { dialect: Dialect::Wgsl, text }) => render_template(spec, Dialect::Wgsl, text),
        Some(Template { dialect: own, text }) if own == dialect => render_template(spec, dialect, text),
        _ => {
            let kernel = format!("kernel {} in {dialect}", spec.label());
            Err(Error::unsupported(kernel, "it is not written in that language"))
        }
    }
}

/// An environment that knows the shared pieces and the kernels that were rendered before: to read a template
/// takes longer than to render it.
static READ: Mutex<Option<Environment<'static>>> = Mutex::new(None);

/// An environment with the template of `name`, which is `text`.
fn environment(name: &str, text: &'static str) -> Result<Environment<'static>, minijinja::Error> {
    // Templates are added whole: one that a panic interrupted is not there.
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let env = match &mut *read {
        Some(env) => env,
        none => {
            let mut env = Environment::new();
            env.set_syntax(syntax()?);
            env.set_undefined_behavior(UndefinedBehavior::Strict);
            env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
            for (name, text) in SHARED {
                env.add_template(name, text)?;
            }
            none.insert(env)
        }
    };
    if env.get_template(name).map_or(true, |known| known.source() != text) {
        env.add_template_owned(name.to_owned(), text)?;
    }
    Ok(env.clone())
}

fn render_template(spec: &KernelSpec, dialect: Dialect, text: &'static str) -> Result<KernelSource> {
    let (folder, ending) = dialect.folder_and_ending();
    let name = format!("{folder}/{}/{}.{ending}", spec.op, spec.variant);
    let fail = |message: String| Error::Template { template: name.clone(), message };
    let words = Arc::new(Words::new(spec, dialect));
    let mut env = environment(&name, text).map_err(|error| fail(format!("{error:#}")))?;
    teach(&mut env, &words);

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
        .get_template(&name)
        .and_then(|template| {
            template.render(context! {
                interface => declarations,
                arguments => arguments,
                constants => words.constants(text),
                acc => words.acc(),
                barrier => words.barrier(),
                acc4 => words.acc4(),
                zero => words.zero(),
                zero4 => words.constant4(0.0),
                tile => spec.tile,
                residual => spec.epilogue.residual.is_some(),
                images => spec.maps_are_images(),
                statements => spec.body.statements.clone(),
                calls => spec.body.calls.clone(),
                ..minijinja::Value::from(constants)
            })
        })
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
