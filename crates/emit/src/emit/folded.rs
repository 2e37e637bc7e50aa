//! Grids of more work-groups along an axis than a device launches: they are launched in lines, and each work-group
//! finds out which one of the grid it is.

use super::KernelSpec;
use std::fmt::Write;

/// A grid that is launched in lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Folded {
    /// Work-groups along x, y and z of the grid.
    pub grid: [u32; 3],
    /// Work-groups of a line.
    pub line: u32,
}

impl Folded {
    /// How `grid` is launched where at most `most` work-groups are launched along each axis; `None` where it is too
    /// large for that, or for a number of 32 bits.
    pub fn new(grid: [u32; 3], most: [u32; 3]) -> Option<Self> {
        let folded = Folded { grid, line: most[0] };
        let total: u64 = grid.iter().map(|&groups| u64::from(groups)).try_fold(1, u64::checked_mul)?;
        // The last line may be launched whole.
        let launched = total.checked_next_multiple_of(u64::from(most[0]))?;
        let lines = launched / u64::from(most[0]);
        (launched <= u64::from(u32::MAX) && lines <= u64::from(most[1])).then_some(folded)
    }

    fn total(&self) -> u32 {
        self.grid.iter().product()
    }

    /// Work-groups to launch along x, y and z.
    pub fn launched(&self) -> [u32; 3] {
        [self.line, self.total().div_ceil(self.line), 1]
    }
}

/// What the parameters of an entry point that say where an invocation is have in front of their names.
const BUILTINS: [&str; 2] = ["@builtin(workgroup_id) ", "@builtin(global_invocation_id) "];

/// The kernel `text` of `spec` for a grid that is launched in lines: what says where an invocation is becomes a variable
/// that is found from where it was launched.
///
/// # Errors
/// If the text has no entry point as our kernels have it.
pub(super) fn folded(text: &str, spec: &KernelSpec, folded: Folded) -> Result<String, String> {
    let entry = spec.entry();
    let wanted = || format!("found no function {entry} with a place in the grid");
    let begin = text.find(&format!("fn {entry}(")).ok_or_else(wanted)?;
    let (before, rest) = text.split_at(begin);
    let (signature, body) = rest.split_once(") {\n").ok_or_else(wanted)?;
    let mut signature = signature.to_owned();
    let mut lines = String::new();
    let Folded { grid: [x, y, _], line } = folded;
    let [wx, wy, wz] = spec.work_group;
    for (builtin, scale) in BUILTINS.into_iter().zip([false, true]) {
        let Some((_, after)) = signature.split_once(builtin) else { continue };
        let name: String = after.chars().take_while(|&letter| letter != ':').collect();
        signature = signature.replace(&format!("{builtin}{name}:"), &format!("{builtin}{name}_launched:"));
        let group = format!("vec3<u32>({wx}u, {wy}u, {wz}u)");
        let (own, whole) = if scale {
            (format!("{name}_launched / {group}"), format!(" * {group} + {name}_launched % {group}"))
        } else {
            (format!("{name}_launched"), String::new())
        };
        let at = format!("{name}_number");
        // Writing to a string does not fail.
        let _ = write!(
            lines,
            "    let {name}_place: vec3<u32> = {own};\n    let {at}: u32 = {name}_place.x + {line}u * {name}_place.y;\n"
        );
        if !lines.contains("return;") {
            let _ = write!(lines, "    if ({at} >= {}u) {{\n        return;\n    }}\n", folded.total());
        }
        let of = format!("vec3<u32>({at} % {x}u, {at} / {x}u % {y}u, {at} / {}u)", x * y);
        let _ = writeln!(lines, "    let {name}: vec3<u32> = {of}{whole};");
    }
    if lines.is_empty() {
        return Err(wanted());
    }
    Ok(format!("{before}{signature}) {{\n{lines}{body}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_launched_in_lines_that_hold_it() {
        let most = [65535; 3];
        let folded = Folded::new([1, 2, 70_000], most).expect("two lines and a bit");
        assert_eq!(folded.launched(), [65535, 3, 1]);
        assert_eq!(Folded::new([65535, 65535, 1], most).expect("all lines").launched(), [65535, 65535, 1]);
        assert_eq!(Folded::new([65535, 65536, 1], most), None);
        assert_eq!(Folded::new([u32::MAX; 3], most), None);
    }
}
