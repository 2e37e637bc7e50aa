//! The kernel that stages its input in local memory: the part that the windows of a work-group touch.

use super::OP;
use crate::emit::Value;
use crate::error::Result;
use crate::limits::Limits;
use crate::ops::Convolution;
use crate::ops::plan::Choice;
use crate::ops::spec::{extent, reject};

/// Columns and rows of an invocation.
pub(super) const TILES: [[usize; 2]; 4] = [[1, 2], [2, 2], [1, 4], [1, 1]];

/// The work-groups that the kernel is made for, the default first. One slice is staged at a time.
pub(super) fn work_groups() -> Vec<[u32; 3]> {
    [[16, 8], [8, 8], [32, 4], [16, 4], [8, 4]].map(|[x, y]| [x, y, 1]).to_vec()
}

/// Columns and rows of the input that the windows of a work-group span.
fn staged(problem: &Convolution, choice: &Choice) -> [u32; 2] {
    let span = |axis: usize, outputs: u32| {
        let [stride, dilation, taps] =
            [problem.stride, problem.dilation, problem.kernel].map(|of| extent(of[axis]));
        (outputs.saturating_sub(1)).saturating_mul(stride).saturating_add((taps - 1) * dilation + 1)
    };
    let outputs = |axis: usize| choice.work_group[axis].saturating_mul(choice.tile[axis]);
    [span(1, outputs(0)), span(0, outputs(1))]
}

/// The constants of the kernel.
pub(super) fn constants(problem: &Convolution, choice: &Choice) -> [(&'static str, Value); 4] {
    let [columns, rows] = staged(problem, choice);
    [("TILE_X", choice.tile[0]), ("TILE_Y", choice.tile[1]), ("STAGED_W", columns), ("STAGED_H", rows)]
        .map(|(name, value)| (name, Value::U32(value)))
}

/// Rejects a work-group that is deeper than the one slice that is staged, and more input than local
/// memory holds.
pub(super) fn check(problem: &Convolution, choice: &Choice, limits: &Limits) -> Result<()> {
    let depth = choice.work_group[2];
    if depth != 1 {
        return reject(OP, choice, format!("the work-group is {depth} deep, and one slice is staged"));
    }
    let [columns, rows] = staged(problem, choice).map(u64::from);
    let bytes = (4 * problem.precision.accumulator().bytes() as u64).saturating_mul(columns * rows);
    if bytes > u64::from(limits.local_memory) {
        let most = limits.local_memory;
        return reject(OP, choice, format!("{bytes} bytes of local memory, the device has {most}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::Op;
    use crate::ops::depthwise::{Depthwise, DepthwiseOp};
    use crate::shape::{Padding, Shape};

    #[test]
    fn windows_of_a_work_group_are_staged_with_their_halo_or_refused() {
        let options =
            Depthwise { stride: [2, 1], dilation: [1, 2], padding: Padding::Same, ..Default::default() };
        let (input, weights) = (Shape::nhwc(1, 40, 40, 8), Shape::nhwc(1, 3, 3, 8));
        let op = DepthwiseOp::new(input, weights, &options, false, false, Precision::F32).expect("valid");
        let choice = Choice::new("local", [2, 4, 1], [8, 4, 1]);
        // 16 columns one apart and five taps wide; 16 rows two apart and three taps high.
        assert_eq!(staged(&op.0, &choice), [20, 33]);
        let limits = Limits { local_memory: 10_000, ..Limits::webgpu() };
        let refused = |choice| op.fits(&choice, &limits).expect_err("refused").to_string();
        let choice = Choice::new("local", [2, 2, 1], [16, 8, 1]);
        // 36 x 33 vec4s.
        assert!(refused(choice).contains("19008 bytes of local memory, the device has 10000"));
        assert!(refused(Choice { work_group: [4, 4, 2], ..choice }).contains("2 deep"));
        assert!(op.fits(&Choice { work_group: [8, 4, 1], ..choice }, &limits).is_ok());
    }
}
