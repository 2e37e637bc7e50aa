//! `diptych emit`: the text of a kernel.

use crate::flags::{FamilyName, numbers, triple};
use crate::output::print;
use crate::tune::PrecisionName;
use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;
use diptych::internals::tune::work_group;
use diptych::{Limits, Precision, WorkGroup};
use diptych_kernels::ops::{self, BoundKernel, Launch, Op, OpEntry};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The op.
    #[arg(value_parser = op_names())]
    op: &'static OpEntry,

    /// The language.
    #[arg(long)]
    backend: Language,

    /// The kernel variant.
    #[arg(long, value_name = "V")]
    variant: Option<String>,

    /// Outputs per invocation along the grid's axes; what they count, each kernel says.
    #[arg(long, value_name = "X,Y,Z", value_parser = triple)]
    tile: Option<[u32; 3]>,

    /// Invocations per work-group.
    #[arg(long, value_name = "X,Y,Z", value_parser = triple)]
    work_group: Option<[u32; 3]>,

    /// Storage and arithmetic.
    #[arg(long, value_enum, default_value_t = PrecisionName::F32)]
    precision: PrecisionName,

    /// The GPU whose table is used.
    #[arg(long, default_value = "default")]
    family: FamilyName,

    #[arg(long, value_name = "NUMBERS", help = shape_help())]
    shape: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// WGSL.
    Wgsl,
    /// OpenCL C.
    Opencl,
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    print(emit(arguments)?.trim_end())
}

fn emit(arguments: &Arguments) -> Result<String> {
    let precision = arguments.precision.precision();
    ensure!(
        precision != Precision::Auto,
        "--precision auto chooses for each node of a network; wanted one precision"
    );
    let least = match arguments.backend {
        Language::Wgsl => Limits::webgpu(),
        Language::Opencl => Limits::opencl(),
    };
    let native_half = precision == Precision::F16;
    let limits = Limits { family: arguments.family.family(), native_half, ..least };
    let (shape, variant) = (arguments.shape.as_deref(), arguments.variant.as_deref());
    let problem = problem(arguments.op, shape, variant, precision)?;
    let launch = launch(&*problem, arguments, &limits)?;
    let source = launch.spec.render(limits.dialect)?;
    let [x, y, z] = source.work_group;
    // Both languages have this comment.
    Ok(format!("// {}, work-group ({x},{y},{z})\n{}", source.label, source.text))
}

/// The kernel that the flags leave: an untuned session's if they say nothing of variant and tile,
/// else the first that fits of those they allow.
fn launch(op: &dyn Op, arguments: &Arguments, limits: &Limits) -> Result<Launch> {
    let given = arguments.work_group.map_or(WorkGroup::Table, WorkGroup::Fixed);
    if arguments.variant.is_none() && arguments.tile.is_none() {
        let layout = work_group::layouts(op, limits).first().copied().unwrap_or_default();
        let choice = work_group::untuned_in(op, given, layout, limits)?;
        return Ok(op.plan(&choice, limits)?);
    }
    let wanted = arguments.variant.as_deref();
    let variants: Vec<&'static str> =
        arguments.op.variants().into_iter().map(|variant| variant.name).collect();
    if let Some(name) = wanted.filter(|name| !variants.contains(name)) {
        bail!("{} has no variant {name:?}; it has {}", op.name(), variants.join(", "));
    }
    let kernels = op.kernels();
    let allowed = |kernel: &dyn BoundKernel| wanted.is_none_or(|wanted| wanted == kernel.name());
    let mut offered = kernels.space(limits);
    offered.retain(|(kernel, tile)| allowed(*kernel) && arguments.tile.is_none_or(|wanted| wanted == *tile));
    if offered.is_empty() {
        // Asked all the same, because a kernel says best why it does not offer them.
        let tile = arguments.tile.unwrap_or([1; 3]);
        offered = kernels.iter().filter(|kernel| allowed(*kernel)).map(|kernel| (kernel, tile)).collect();
    }
    let mut refused = Vec::new();
    for (kernel, tile) in offered {
        let work_group = match given {
            WorkGroup::Fixed(size) => size,
            // Not every tile that is asked for can be divided by.
            WorkGroup::Table => work_group::table(kernel, tile.map(|extent| extent.max(1)), limits),
            other => bail!("work-groups by {other:?} are not for one kernel"),
        };
        match kernel.plan(&kernel.choice(tile, work_group), limits) {
            Ok(launch) => return Ok(launch),
            Err(error) => refused.push(error.to_string()),
        }
    }
    bail!("{}", refused.join("; "))
}

/// The op of `shape`, or of its usual shape. The variant decides the direction of a conversion.
pub(crate) fn problem(
    op: &OpEntry,
    shape: Option<&str>,
    variant: Option<&str>,
    precision: Precision,
) -> Result<Arc<dyn Op>> {
    let extents = match shape {
        None => op.numbers.usual.to_vec(),
        Some(text) => numbers(text)
            .and_then(|numbers| {
                numbers.into_iter().map(|n| usize::try_from(n).map_err(|error| error.to_string())).collect()
            })
            .map_err(|error| anyhow::anyhow!("--shape {text}: {error}"))?,
    };
    (op.numbers.op)(&extents, variant, precision)
        .with_context(|| format!("--shape {}", shape.unwrap_or("left out")))
}

/// The op that is called `name`.
pub(crate) fn op_named(name: &str) -> Option<&'static OpEntry> {
    ops::all().iter().find(|entry| entry.name == name)
}

/// A parser of the names of ops.
fn op_names() -> impl clap::builder::TypedValueParser<Value = &'static OpEntry> {
    use clap::builder::{PossibleValuesParser, TypedValueParser as _};
    let names = PossibleValuesParser::new(ops::all().iter().map(|entry| entry.name));
    names.try_map(|name| op_named(&name).ok_or_else(|| format!("no op is called {name}")))
}

fn shape_help() -> String {
    let line = |entry: &OpEntry| {
        let usual: Vec<String> = entry.numbers.usual.iter().map(usize::to_string).collect();
        format!("  {:<10} {:<24} ({})", entry.name, entry.numbers.names, usual.join(","))
    };
    let lines: Vec<String> = ops::all().iter().map(line).collect();
    format!(
        "The problem, as numbers with commas; if left out, the one in parentheses:\n{}\nConvolutions have \
         SAME padding, a bias and ReLU6; products are plain; convert goes from NHWC to C4 unless the variant \
         says otherwise.",
        lines.join("\n")
    )
}
