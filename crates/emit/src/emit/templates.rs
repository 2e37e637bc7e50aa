//! Renders a kernel's template.

use super::folded::folded;
use super::template::{self, Functions, Value};
use super::turns;
use super::words::Words;
use super::{Dialect, KernelSource, KernelSpec, Template};
use crate::error::{Error, Result};

macro_rules! piece {
    ($name:literal) => {
        ($name, super::text!(concat!("../../shaders/", $name, ".wgsl")))
    };
    // No page has OpenCL, nor cooperative matrices.
    ($name:literal, opencl) => {
        (
            $name,
            if cfg!(target_family = "wasm") { "" } else { include_str!(concat!("../../cl/", $name, ".cl")) },
        )
    };
    ($name:literal, vulkan) => {
        (
            $name,
            if cfg!(target_family = "wasm") {
                ""
            } else {
                include_str!(concat!("../../shaders/", $name, ".wgsl"))
            },
        )
    };
}

/// Pieces that kernels include.
const SHARED: &[(&str, &str)] = &[
    piece!("shared/add_splits"),
    piece!("shared/arrival"),
    piece!("shared/attended"),
    piece!("shared/border"),
    piece!("shared/activations", opencl),
    piece!("shared/coordinate"),
    piece!("shared/exact"),
    piece!("shared/functions"),
    piece!("shared/group_sum"),
    piece!("shared/hyperbolic"),
    piece!("shared/key"),
    piece!("shared/matrix", vulkan),
    piece!("shared/matrix_ptx", opencl),
    piece!("shared/matrix_ptx_finish", opencl),
    piece!("shared/matrix_ptx_words", opencl),
    piece!("shared/multiply"),
    piece!("shared/normalized"),
    piece!("shared/pixel_product"),
    piece!("shared/product_loop"),
    piece!("shared/products"),
    piece!("shared/quantized"),
    piece!("shared/reduction"),
    piece!("shared/row_normalized"),
    piece!("shared/row_stored"),
    piece!("shared/row_sums"),
    piece!("shared/scaled"),
    piece!("shared/searches"),
    piece!("shared/share_sum"),
    piece!("shared/store_columns"),
    piece!("shared/store_pixels"),
    piece!("shared/tile_loop"),
    piece!("shared/tile_place"),
    piece!("shared/winograd"),
    piece!("shared/winograd_output"),
];

fn plain(value: super::Value) -> Value {
    match value {
        super::Value::U32(value) => i64::from(value).into(),
        super::Value::I32(value) => i64::from(value).into(),
        super::Value::F32(value) => format!("{:?}", value.0).into(),
    }
}

/// What texts call: the vocabulary, with the arguments as text.
impl Functions for Words {
    fn call(
        &self,
        name: &str,
        arguments: &[Value],
        named: &[(&str, Value)],
    ) -> std::result::Result<Value, String> {
        let texts: Vec<String> = arguments.iter().map(Value::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let place = |wanted: &str| {
            named
                .iter()
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| value.to_string())
                .unwrap_or_default()
        };
        let (column, row) = (place("column"), place("row"));
        Ok(match (name, &*texts) {
            ("load4", [name, index]) => self.load4(name, index, &column, &row)?.into(),
            ("store4", [name, index, value]) => self.store4(name, index, value, &column, &row)?.into(),
            ("load", [name, index]) => self.load(name, index)?.into(),
            ("stored", [name, index]) => self.stored(name, index)?.into(),
            ("store", [name, index, value]) => self.store(name, index, value)?.into(),
            ("lane", [name, index, lane]) => self.lane(name, index, lane)?.into(),
            ("set_lane", [name, index, lane, value]) => self.set_lane(name, index, lane, value).into(),
            ("param", [name]) => self.param(name).into(),
            ("apart", [name, place]) => self.apart(name, place).into(),
            ("splat", [x]) => self.splat(x).into(),
            ("fma4", [a, b, c]) => self.fma4(a, b, c).into(),
            ("between", [x, slice]) => self.between(x, slice)?.into_iter().collect(),
            ("transform", [which, results, row, prefix]) => {
                let count = |text: &str| text.parse().map_err(|_| format!("found {text}, wanted a count"));
                self.transform(which, count(results)?, count(row)?, prefix)?.into()
            }
            ("epilogue", [x, slice, index]) => {
                self.epilogue(x, slice, index, &column, &row)?.into_iter().collect()
            }
            _ => return Err(format!("the function {name} of {} arguments is unknown", texts.len())),
        })
    }
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

/// How many bytes of a text are the directives that it begins with.
fn enabled(text: &str) -> usize {
    text.split_inclusive('\n').take_while(|line| line.starts_with("enable ")).map(str::len).sum()
}

/// A function in OpenCL C, with what it calls.
#[cfg(feature = "shaders")]
fn printed(function: &super::ElementFunction, called: &str) -> Result<String> {
    function.opencl(called)
}

#[cfg(not(feature = "shaders"))]
fn printed(_: &super::ElementFunction, _: &str) -> Result<String> {
    Err(Error::unsupported("a function in OpenCL C", "no GPU backend is compiled in"))
}

fn render_template(spec: &KernelSpec, dialect: Dialect, text: &'static str) -> Result<KernelSource> {
    let (folder, ending) = dialect.folder_and_ending();
    let name = format!("{folder}/{}/{}.{ending}", spec.op, spec.variant);
    let fail = |message: String| Error::Template { template: name.clone(), message };
    let words = Words::new(spec, dialect);
    let (interface, arguments) = match dialect {
        Dialect::Wgsl => (words.interface().map_err(fail)?, String::new()),
        Dialect::OpenClC => (String::new(), words.arguments().map_err(fail)?),
    };
    let mut names: Vec<(&str, Value)> = vec![
        ("interface", interface.into()),
        ("arguments", arguments.into()),
        ("constants", words.constants(text).into()),
        ("acc", words.acc().into()),
        ("barrier", words.barrier().into()),
        ("acc4", words.acc4().into()),
        ("zero", words.zero().into()),
        ("zero4", words.constant4(0.0).into()),
        ("tile", spec.tile.into_iter().map(i64::from).collect()),
        ("residual", spec.epilogue.residual.is_some().into()),
        ("images", spec.maps_are_images().into()),
        ("entry", spec.entry().into()),
        ("statements", spec.body.statements.iter().map(String::as_str).collect()),
        ("calls", spec.body.calls.iter().copied().collect()),
    ];
    let epilogues = [spec.between, Some(spec.epilogue)].into_iter().flatten();
    let mut calls: Vec<&str> = epilogues.filter_map(|epilogue| epilogue.activation.call()).collect();
    // Where statements have vec4s, as epilogues do, one declaration of a function serves both.
    let is_wide = spec.constants.contains(&("WIDE", super::Value::U32(1)));
    let declared = is_wide && !calls.is_empty();
    names.push(("declared", declared.into()));
    if declared {
        calls.extend(&spec.body.calls);
    }
    names.extend(spec.constants.iter().map(|&(name, value)| (name, plain(value))));
    let piece = |wanted: &str| SHARED.iter().find(|(name, _)| *name == wanted).map(|&(_, text)| text);
    let body = template::render(text, names, &words, piece).map_err(fail)?;
    calls.extend(spec.prologue.iter().flat_map(|own| &own.calls));
    let shared = |text: &str, calls: &[&str]| {
        if calls.is_empty() {
            return Ok(String::new());
        }
        let names = vec![
            ("calls", calls.iter().copied().collect()),
            ("wide", true.into()),
            ("declared", false.into()),
        ];
        template::render(piece(text).unwrap_or_default(), names, &words, piece).map_err(fail)
    };
    let functions = match (&spec.function, dialect) {
        (None, Dialect::Wgsl) => shared("shared/functions", &calls)?,
        (None, Dialect::OpenClC) => shared("shared/activations", &calls)?,
        (Some(function), Dialect::Wgsl) => {
            calls.extend(&function.calls);
            shared("shared/functions", &calls)? + &function.wgsl()
        }
        (Some(function), Dialect::OpenClC) => {
            let own = printed(function, &shared("shared/functions", &function.calls)?)?;
            shared("shared/activations", &calls)? + &own
        }
    };
    let prologue = match (&spec.prologue, dialect) {
        (None, _) => String::new(),
        (Some(own), Dialect::Wgsl) => own.wgsl(),
        (Some(_), Dialect::OpenClC) => {
            return Err(fail("it computes no operand, wanted one in WGSL".to_owned()));
        }
    };
    let functions = functions + &prologue;
    let body = match &spec.copies {
        Some(copies) => turns::unrolled(&body, &spec.entry(), copies),
        None => body,
    };
    let body = match spec.folded {
        Some(grid) => folded(&body, spec, grid).map_err(fail)?,
        None => body,
    };
    // What the text itself enables comes before functions as well.
    let (enabled, body) = body.split_at(enabled(&body));
    Ok(KernelSource {
        label: spec.label(),
        entry: spec.entry(),
        dialect,
        text: format!("{}{enabled}{functions}{body}", words.enables()),
        interface: spec.interface.clone(),
        work_group: spec.work_group,
    })
}
