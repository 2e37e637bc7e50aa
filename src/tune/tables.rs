//! Work-group tables as data: sizes by GPU family and workload.
//!
//! Source: the TensorFlow Lite / LiteRT GL delegate at commit f67457790c9c
//! (`delegates/gpu/gl/kernels/conv.cc` and `gl/workgroups/{default_calculator,
//! ideal_workgroup_picker}.cc`). Its convolution table is the one that the article behind this
//! project found too small: it knows Adreno, and gives every other GPU of the world the last
//! column.

use crate::limits::Family;
use crate::ops::Convolution;

/// A row: from this much work on, this work-group. The last row that is reached wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The least slices of output channels (convolutions) or grid depth (others).
    pub at_least: u32,
    /// Invocations along x, y and z.
    pub size: [u32; 3],
}

const fn row(at_least: u32, size: [u32; 3]) -> Row {
    Row { at_least, size }
}

/// Convolutions on Adreno, by slices of output channels.
pub const GL_CONV_ADRENO: [Row; 6] = [
    row(0, [16, 16, 1]),
    row(2, [8, 8, 2]),
    row(4, [4, 8, 4]),
    row(8, [4, 4, 8]),
    row(32, [4, 4, 16]),
    row(64, [2, 8, 16]),
];

/// Convolutions on every other GPU, by slices of output channels.
pub const GL_CONV_DEFAULT: [Row; 6] = [
    row(0, [16, 16, 1]),
    row(2, [16, 8, 2]),
    row(4, [16, 4, 4]),
    row(8, [8, 4, 8]),
    row(32, [8, 4, 8]),
    row(64, [8, 4, 8]),
];

/// Other kernels on Mali, by the grid's depth.
pub const GL_WORKLOAD_MALI: [Row; 6] = [
    row(0, [16, 8, 1]),
    row(2, [8, 8, 2]),
    row(4, [8, 4, 4]),
    row(8, [4, 4, 8]),
    row(16, [4, 2, 16]),
    row(32, [2, 2, 32]),
];

/// Other kernels on every other GPU, by the grid's depth.
pub const GL_WORKLOAD_DEFAULT: [Row; 7] = [
    row(0, [32, 32, 1]),
    row(2, [32, 16, 2]),
    row(4, [16, 16, 4]),
    row(8, [16, 8, 8]),
    row(16, [8, 8, 16]),
    row(32, [8, 4, 32]),
    row(64, [4, 4, 64]),
];

fn last_reached(rows: &[Row], work: u32) -> [u32; 3] {
    rows.iter().rev().find(|row| row.at_least <= work).map_or([1, 1, 1], |row| row.size)
}

/// The GL delegate's work-group for a convolution with `dst_depth` slices of output channels.
pub fn gl_conv(family: Family, dst_depth: u32) -> [u32; 3] {
    match family {
        Family::Adreno(_) => last_reached(&GL_CONV_ADRENO, dst_depth),
        _ => last_reached(&GL_CONV_DEFAULT, dst_depth),
    }
}

/// The GL delegate's work-group for a kernel other than a convolution, whose grid is `depth` deep.
pub fn gl_workload(family: Family, depth: u32) -> [u32; 3] {
    match family {
        Family::Mali(_) => last_reached(&GL_WORKLOAD_MALI, depth),
        _ => last_reached(&GL_WORKLOAD_DEFAULT, depth),
    }
}

/// A convolution with the work-group that was measured to be among the best for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// Depthwise, or else a plain convolution.
    pub depthwise: bool,
    /// Taps along height and width, and the window's step: `None` for all of the kind.
    pub window: Option<([u32; 2], [u32; 2])>,
    /// Invocations along x, y and z.
    pub size: [u32; 3],
}

const fn kind(depthwise: bool, size: [u32; 3]) -> Case {
    Case { depthwise, window: None, size }
}

const fn case(depthwise: bool, kernel: u32, stride: u32, size: [u32; 3]) -> Case {
    Case { depthwise, window: Some(([kernel; 2], [stride; 2])), size }
}

const ADRENO_630: &[Case] = &[
    case(false, 1, 1, [4, 8, 4]),
    case(false, 3, 2, [8, 4, 4]),
    case(true, 1, 1, [8, 4, 4]),
    case(true, 3, 2, [4, 4, 4]),
    kind(false, [4, 8, 4]),
    kind(true, [4, 4, 8]),
];

const ADRENO_540: &[Case] = &[kind(false, [8, 2, 2]), kind(true, [8, 8, 2])];

const ADRENO_510: &[Case] = &[
    case(false, 1, 1, [4, 2, 8]),
    case(false, 3, 2, [8, 2, 8]),
    case(true, 1, 1, [8, 4, 8]),
    case(true, 3, 2, [4, 4, 8]),
    kind(false, [8, 4, 4]),
    kind(true, [8, 4, 4]),
];

const ADRENO_509: &[Case] = &[kind(false, [8, 4, 8]), kind(true, [8, 8, 2])];

const ADRENO_508: &[Case] = &[kind(false, [8, 4, 8]), kind(true, [8, 4, 8])];

/// Measured work-groups by Adreno model. Of a model's cases the first that fits is taken; those of
/// one window stand before those of a whole kind.
pub const GL_IDEAL: [(u32, &[Case]); 9] = [
    (630, ADRENO_630),
    (540, ADRENO_540),
    (510, ADRENO_510),
    (509, ADRENO_509),
    (508, ADRENO_508),
    (506, ADRENO_508),
    (505, ADRENO_508),
    (418, ADRENO_508),
    (405, ADRENO_508),
];

/// The GL delegate's measured work-group for a convolution, if it has one: for the Adreno models
/// of [`GL_IDEAL`], at least 32 output channels, and more than 5 rows and columns of input.
/// Otherwise its table decides: see [`gl_conv`].
pub fn gl_ideal(family: Family, depthwise: bool, problem: &Convolution) -> Option<[u32; 3]> {
    let Family::Adreno(model) = family else { return None };
    // Because the delegate's authors found that the sizes do not carry over to small problems.
    if problem.output.c < 32 || problem.input.h <= 5 || problem.input.w <= 5 {
        return None;
    }
    let same = |extents: [u32; 2], found: [usize; 2]| extents.map(|extent| extent as usize) == found;
    let (_, cases) = GL_IDEAL.iter().find(|(known, _)| *known == model)?;
    let serves = |case: &&Case| {
        case.depthwise == depthwise
            && case
                .window
                .is_none_or(|(kernel, stride)| same(kernel, problem.kernel) && same(stride, problem.stride))
    };
    cases.iter().find(serves).map(|case| case.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MaliArchitecture;

    #[test]
    fn the_articles_node_27_gets_the_size_that_the_article_found_slow() {
        // 1024 output channels are 256 slices.
        assert_eq!(gl_conv(Family::Unknown, 256), [8, 4, 8]);
        assert_eq!(gl_conv(Family::Adreno(630), 256), [2, 8, 16]);
    }

    #[test]
    fn thresholds_are_inclusive() {
        let adreno = Family::Adreno(540);
        let sizes = [1, 2, 3, 4, 7, 8, 31, 32, 63, 64].map(|depth| gl_conv(adreno, depth));
        assert_eq!(
            sizes,
            [
                [16, 16, 1],
                [8, 8, 2],
                [8, 8, 2],
                [4, 8, 4],
                [4, 8, 4],
                [4, 4, 8],
                [4, 4, 8],
                [4, 4, 16],
                [4, 4, 16],
                [2, 8, 16],
            ]
        );
        assert_eq!(gl_conv(Family::Nvidia, 4), [16, 4, 4]);
        assert_eq!(gl_workload(Family::Mali(MaliArchitecture::Bifrost), 33), [2, 2, 32]);
        assert_eq!(gl_workload(Family::Nvidia, 15), [16, 8, 8]);
    }

    fn window(input: [usize; 3], output_channels: usize, kernel: usize, stride: usize) -> Convolution {
        use crate::ops::conv2d::{Conv2d, Conv2dOp};
        use crate::shape::Shape;
        let [h, w, c] = input;
        let options = Conv2d { stride: [stride; 2], ..Default::default() };
        let weights = Shape::nhwc(output_channels, kernel, kernel, c);
        let precision = crate::dtype::Precision::F32;
        Conv2dOp::new(Shape::nhwc(1, h, w, c), weights, &options, false, false, precision).expect("valid").0
    }

    #[test]
    fn a_measured_window_goes_before_its_kind() {
        let at = |model, depthwise, kernel, stride| {
            gl_ideal(Family::Adreno(model), depthwise, &window([33, 33, 32], 64, kernel, stride))
        };
        // Adreno 630: 3x3 stride 2 has a case of its own, 3x3 stride 1 and 5x5 stride 2 do not.
        assert_eq!(at(630, false, 3, 2), Some([8, 4, 4]));
        assert_eq!(at(630, false, 3, 1), Some([4, 8, 4]));
        assert_eq!(at(630, true, 3, 2), Some([4, 4, 4]));
        assert_eq!(at(630, true, 5, 2), Some([4, 4, 8]));
        assert_eq!(at(510, false, 1, 1), Some([4, 2, 8]));
        // Adreno 540 has no cases; 405 has the sizes of 508; 640 was not measured.
        assert_eq!(at(540, false, 1, 1), Some([8, 2, 2]));
        assert_eq!(at(405, true, 3, 2), Some([8, 4, 8]));
        assert_eq!(at(640, false, 1, 1), None);
        assert_eq!(gl_ideal(Family::Nvidia, false, &window([33, 33, 32], 64, 1, 1)), None);
    }

    #[test]
    fn measured_sizes_are_for_32_channels_and_6_rows_and_columns_or_more() {
        let at = |input, channels| gl_ideal(Family::Adreno(630), false, &window(input, channels, 1, 1));
        assert_eq!(at([6, 6, 8], 32), Some([4, 8, 4]));
        for (input, channels) in [([6, 6, 8], 31), ([5, 6, 8], 32), ([6, 5, 8], 32)] {
            assert_eq!(at(input, channels), None, "{input:?} to {channels} channels");
        }
    }
}
