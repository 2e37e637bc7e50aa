//! Launches for devices that end a kernel's loops after so many turns ([`Limits::max_turns`]).

use super::operands::OperandInfo;
use super::plan::Launch;
use crate::emit::turns::{Range, copies};
use crate::emit::{Dialect, Scalar};
use crate::error::{Error, Result};
use crate::limits::Limits;

/// How often an invocation reads an element of an operand at most. Where all are fewer, no text is looked at.
const READINGS: usize = 8;

/// Gives the loops of a kernel copies of their bodies where they may make more turns than the device takes.
///
/// # Errors
/// If that takes too many copies.
pub(super) fn limit(launch: &mut Launch, operands: &[OperandInfo], limits: &Limits) -> Result<()> {
    let Some(most) = limits.max_turns else { return Ok(()) };
    let elements = operands.iter().map(OperandInfo::elements).max().unwrap_or(0);
    if elements.saturating_mul(READINGS) <= most as usize {
        return Ok(());
    }
    let source = launch.spec.render_written(Dialect::Wgsl)?;
    let names = names(&source.text, launch, limits);
    let refuse = |turns: u64| Error::Reject {
        kernel: launch.spec.label(),
        reason: format!(
            "its loops may make {turns} turns in an invocation, and the device's driver ends them after {most}"
        ),
    };
    let copies = copies(&source.text, &source.entry, &|name| known(&names, name), u64::from(most));
    launch.spec.copies = copies.map_err(refuse)?;
    Ok(())
}

/// Names of a text, and between which numbers they are.
type Names = Vec<(String, Range)>;

fn known(names: &Names, name: &str) -> Option<Range> {
    names.iter().find(|(known, _)| known == name).map(|(_, range)| *range)
}

/// The parameters, and what the text calls the place of an invocation.
fn names(text: &str, launch: &Launch, limits: &Limits) -> Names {
    let mut names = places(text, launch);
    for (param, value) in launch.spec.interface.params.iter().zip(&launch.params) {
        if let Scalar::U32(value) = *value {
            let value = u64::from(value);
            names.push((format!("params.{}", param.name), Range { least: value, most: value }));
        }
    }
    if let (Some([least, most]), Some(name)) =
        (limits.subgroup, name_behind(text, "@builtin(subgroup_size) "))
    {
        names.push((name, Range { least: least.into(), most: most.into() }));
    }
    names
}

/// The name of the parameter that has `builtin` in front of it.
fn name_behind(text: &str, builtin: &str) -> Option<String> {
    let (_, after) = text.split_once(builtin)?;
    after.split(':').next().map(str::to_owned)
}

/// What the text calls the place of an invocation in its work-group, and the work-group's in the grid.
fn places(text: &str, launch: &Launch) -> Names {
    let size = launch.spec.work_group;
    let groups = launch.groups();
    let extents = [
        ("@builtin(local_invocation_id) ", size),
        ("@builtin(workgroup_id) ", groups),
        ("@builtin(global_invocation_id) ", [0, 1, 2].map(|axis| groups[axis].saturating_mul(size[axis]))),
    ];
    let below = |extent: u32| Range { least: 0, most: u64::from(extent.saturating_sub(1)) };
    let mut places = Vec::new();
    for (builtin, extents) in extents {
        let Some(name) = name_behind(text, builtin) else { continue };
        for (axis, extent) in ["x", "y", "z"].into_iter().zip(extents) {
            places.push((format!("{name}.{axis}"), below(extent)));
        }
    }
    if let Some(name) = name_behind(text, "@builtin(local_invocation_index) ") {
        places.push((name, below(size.iter().product())));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::emit::turns::longest;

    /// What is not known would be refused on such a device.
    #[test]
    fn every_loop_of_every_kernel_has_a_known_end() {
        let limits = Limits {
            max_turns: Some(65_535),
            subgroup: Some([8, 8]),
            native_half: true,
            local_memory: 49152,
            ..Limits::webgpu()
        };
        let (mut failures, mut kernels) = (Vec::new(), 0);
        for entry in crate::ops::all() {
            for op in (entry.examples)(Precision::F32).expect("examples") {
                for (kernel, tile) in op.kernels().space(&limits) {
                    let size = kernel.work_groups(tile).first().copied().unwrap_or([8, 4, 1]);
                    let choice = kernel.choice(tile, size);
                    let Ok(launch) = kernel.plan(&choice, &limits) else { continue };
                    let source = launch.spec.render_written(Dialect::Wgsl).expect("a text");
                    let names = names(&source.text, &launch, &limits);
                    let most = longest(&source.text, &source.entry, &|name| known(&names, name));
                    kernels += 1;
                    if most > 1 << 16 {
                        failures.push(format!("{}: {most} turns", source.label));
                    }
                }
            }
        }
        assert!(failures.is_empty() && kernels > 100, "{kernels} kernels: {}", failures.join("\n"));
    }
}
