//! Work-group tables as data: sizes by GPU family and workload.
//!
//! Source: the TensorFlow Lite / LiteRT GL delegate at commit f67457790c9c
//! (`delegates/gpu/gl/kernels/conv.cc` and `gl/workgroups/default_calculator.cc`). Its convolution
//! table is the one that the article behind this project found too small: it knows Adreno, and
//! gives every other GPU of the world the last column.

use crate::limits::Family;

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
}
