//! `diptych candidates`: the work-groups that a rule gives.

use crate::flags::{FamilyName, triple};
use anyhow::{Result, bail};
use clap::ValueEnum;
use diptych::internals::tune::generators::{Bounds, paddle, tflite_exhaustive, tflite_fast};
use diptych::internals::tune::tables;
use std::io::{BufWriter, Write};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The rule.
    #[arg(long)]
    generator: Generator,

    /// Invocations with work along x, y and z.
    #[arg(long, value_name = "X,Y,Z", value_parser = triple)]
    grid: [u32; 3],

    /// The most invocations of a work-group, for this kernel on this device [tflite-*, paddle].
    #[arg(long, value_name = "N", default_value_t = 256)]
    max_size: u32,

    /// The most invocations along x, y and z [tflite-exhaustive, tflite-unaligned; tflite-conv-fast
    /// looks at z].
    #[arg(long, value_name = "X,Y,Z", value_parser = triple, default_value = "256,256,64")]
    max_dims: [u32; 3],

    /// The GPU [gl-conv, gl-default, tflite-conv-fast].
    #[arg(long, default_value = "default")]
    family: FamilyName,

    /// Slices of four output channels; the grid's depth if left out [gl-conv].
    #[arg(long, value_name = "D")]
    dst_depth: Option<u32>,

    /// Divides the maximum; 0 and 1 leave it as it is [paddle].
    #[arg(long, value_name = "D", default_value_t = 2)]
    divisor: u32,

    /// Shrink z before x [paddle].
    #[arg(long)]
    reverse: bool,

    /// A maximum of your own, where it is smaller; 0 is none [paddle].
    #[arg(long, value_name = "N", default_value_t = 0)]
    user_max: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Generator {
    /// TensorFlow Lite's GL delegate: convolutions, by slices of output channels.
    GlConv,
    /// TensorFlow Lite's GL delegate: other kernels, by the grid's depth.
    GlDefault,
    /// TensorFlow Lite's OpenCL delegate, FAST: kernels other than convolutions.
    TfliteFast,
    /// TensorFlow Lite's OpenCL delegate, FAST: convolutions.
    TfliteConvFast,
    /// TensorFlow Lite's OpenCL delegate, EXHAUSTIVE: divisors of the grid.
    TfliteExhaustive,
    /// TensorFlow Lite's OpenCL delegate, EXHAUSTIVE: work-groups that reach up to 5 beyond the grid.
    TfliteUnaligned,
    /// Paddle-Lite's default: the grid, halved until it fits.
    Paddle,
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    let mut sizes = sizes(arguments).peekable();
    if sizes.peek().is_none() {
        let [x, y, z] = arguments.grid;
        bail!(
            "the rule has no work-group for grid {x},{y},{z} with at most {} invocations",
            arguments.max_size
        );
    }
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    for [x, y, z] in sizes {
        writeln!(stdout, "{x} {y} {z}")?;
    }
    Ok(stdout.flush()?)
}

fn sizes(arguments: &Arguments) -> Box<dyn Iterator<Item = [u32; 3]>> {
    let &Arguments { grid, max_size, max_dims, divisor, reverse, user_max, .. } = arguments;
    let bounds = Bounds { max_size, max_dims };
    let family = arguments.family.family();
    let one = match arguments.generator {
        Generator::GlConv => Some(tables::gl_conv(family, arguments.dst_depth.unwrap_or(grid[2]))),
        Generator::GlDefault => Some(tables::gl_workload(family, grid[2])),
        Generator::TfliteFast => tflite_fast::ordinary(grid, max_size),
        Generator::TfliteConvFast => {
            tflite_fast::conv(grid, max_size, tflite_fast::conv_z_limit(family, max_dims[2]))
        }
        Generator::TfliteExhaustive => return Box::new(tflite_exhaustive::aligned(grid, bounds)),
        Generator::TfliteUnaligned => return Box::new(tflite_exhaustive::unaligned(grid, bounds)),
        Generator::Paddle => {
            paddle::default_size(grid, max_size, paddle::Options { divisor, reverse, user_max })
        }
    };
    Box::new(one.into_iter())
}
