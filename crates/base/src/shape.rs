//! Shapes of feature maps, and the padding rules of a sliding window.

use crate::error::{Error, Result};
use std::fmt;

/// The shape of a feature map: batch, height, width, channels.
///
/// A matrix is a feature map of one row: see [`Shape::matrix`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Batch.
    pub n: usize,
    /// Height.
    pub h: usize,
    /// Width.
    pub w: usize,
    /// Channels.
    pub c: usize,
}

impl Shape {
    /// A feature map of `n` images, `h` rows, `w` columns and `c` channels.
    ///
    /// ```
    /// use diptych::Shape;
    ///
    /// let picture = Shape::nhwc(1, 480, 640, 3);
    /// assert_eq!((picture.h, picture.w), (480, 640));
    /// ```
    pub const fn nhwc(n: usize, h: usize, w: usize, c: usize) -> Self {
        Shape { n, h, w, c }
    }

    /// A batch of row-major matrices: `w` counts rows and `c` counts columns, so that the NHWC
    /// order of the elements is the row-major order of each matrix.
    ///
    /// ```
    /// use diptych::Shape;
    ///
    /// let matrix = Shape::matrix(1, 2, 3); // one matrix of 2 rows and 3 columns
    /// assert_eq!((matrix.w, matrix.c), (2, 3));
    /// ```
    pub const fn matrix(batch: usize, rows: usize, columns: usize) -> Self {
        Shape { n: batch, h: 1, w: rows, c: columns }
    }

    /// Number of elements, `n * h * w * c`.
    ///
    /// ```
    /// use diptych::Shape;
    ///
    /// assert_eq!(Shape::nhwc(1, 257, 257, 3).elements(), 198_147);
    /// ```
    pub const fn elements(&self) -> usize {
        self.n * self.h * self.w * self.c
    }

    /// Number of slices of four channels, `ceil(c / 4)`.
    #[doc(hidden)]
    pub const fn slices(&self) -> usize {
        self.c.div_ceil(4)
    }

    /// Whether there are no elements.
    #[doc(hidden)]
    pub const fn is_empty(&self) -> bool {
        self.elements() == 0
    }

    /// [`Shape::check`] of what may have no elements: 1 is taken for each extent of 0.
    #[doc(hidden)]
    pub fn check_or_empty(&self, op: &'static str) -> Result<()> {
        let Shape { n, h, w, c } = *self;
        let ones = Shape { n: n.max(1), h: h.max(1), w: w.max(1), c: c.max(1) };
        ones.check(op).map_err(|_| {
            let wanted = format!("at most {} elements (32-bit indices)", i32::MAX);
            Error::shape(op, format!("{self}"), wanted)
        })
    }

    /// Refuses an empty shape and one whose element count, padded to slices of four channels,
    /// does not fit 32-bit indices, which the kernels use.
    #[doc(hidden)]
    pub fn check(&self, op: &'static str) -> Result<()> {
        let padded = [self.n, self.h, self.w, self.slices(), 4]
            .iter()
            .try_fold(1usize, |product, &extent| product.checked_mul(extent));
        match padded {
            Some(0) => Err(Error::shape(op, format!("{self}"), "every extent at least 1")),
            Some(elements) if elements <= i32::MAX as usize => Ok(()),
            _ => Err(Error::shape(
                op,
                format!("{self}"),
                format!("at most {} elements (32-bit indices)", i32::MAX),
            )),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}x{}", self.n, self.h, self.w, self.c)
    }
}

/// How a sliding window treats the border of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Padding {
    /// Output extent `ceil(input / stride)`; zeros are added at both ends, the odd one at the end
    /// (TensorFlow's `SAME`).
    Same,
    /// No padding: output extent `floor((input - window) / stride) + 1` (TensorFlow's `VALID`).
    #[default]
    Valid,
    /// Zeros added before and after each spatial axis.
    Explicit {
        /// Rows added above.
        top: usize,
        /// Rows added below.
        bottom: usize,
        /// Columns added on the left.
        left: usize,
        /// Columns added on the right.
        right: usize,
    },
}

/// What lies around the input of a sliding window, where its padding adds elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Border {
    /// Zeros.
    #[default]
    Zeros,
    /// The mirror image without the edge: fewer elements than the axis has.
    Reflect,
    /// The mirror image with the edge: no more elements than the axis has.
    Symmetric,
    /// The nearest element.
    Edge,
}

impl Border {
    /// The place in `0..extent` whose element stands at `at`; none of a zero.
    #[doc(hidden)]
    pub fn coordinate(self, at: isize, extent: usize) -> Option<usize> {
        let last = isize::try_from(extent).ok()? - 1;
        let mirrored = |before: isize, after: isize| match at {
            at if at < 0 => before - at,
            at if at > last => after - at,
            at => at,
        };
        let at = match self {
            Border::Zeros => at,
            Border::Reflect => mirrored(0, 2 * last),
            Border::Symmetric => mirrored(-1, 2 * last + 1),
            Border::Edge => at.clamp(0, last),
        };
        usize::try_from(at).ok().filter(|at| *at < extent)
    }

    /// Its name in the texts of problems.
    #[doc(hidden)]
    pub const fn name(self) -> &'static str {
        match self {
            Border::Zeros => "zeros",
            Border::Reflect => "reflect",
            Border::Symmetric => "symmetric",
            Border::Edge => "edge",
        }
    }

    /// Its rule in `shaders/shared/coordinate.wgsl`; none of zeros, which no text names.
    #[doc(hidden)]
    pub const fn rule(self) -> Option<u32> {
        match self {
            Border::Zeros => None,
            Border::Reflect => Some(2),
            Border::Symmetric => Some(3),
            Border::Edge => Some(4),
        }
    }

    /// The most elements that it has on a side of an axis of `extent`; none of as many as wanted.
    #[doc(hidden)]
    pub const fn most(self, extent: usize) -> Option<usize> {
        match self {
            Border::Zeros | Border::Edge => None,
            Border::Reflect => Some(extent.saturating_sub(1)),
            Border::Symmetric => Some(extent),
        }
    }
}

/// A window along one axis: its extent over the output, and the zeros before the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// Output extent.
    pub output: usize,
    /// Zeros before the first input element.
    pub before: usize,
}

impl Padding {
    /// The padding with so many more zeros above, below, left and right of the input. `None` for SAME, which depends on
    /// the input's extents, and where a sum overflows.
    #[doc(hidden)]
    pub fn with_border(self, [above, below, before, after]: [usize; 4]) -> Option<Self> {
        let (top, bottom, left, right) = match self {
            Padding::Same => return None,
            Padding::Valid => (0, 0, 0, 0),
            Padding::Explicit { top, bottom, left, right } => (top, bottom, left, right),
        };
        Some(Padding::Explicit {
            top: top.checked_add(above)?,
            bottom: bottom.checked_add(below)?,
            left: left.checked_add(before)?,
            right: right.checked_add(after)?,
        })
    }

    /// The output extent of a window of `kernel` taps, `dilation` apart, moved by `stride` over
    /// `input` elements.
    ///
    /// The window covers `(kernel - 1) * dilation + 1` elements.
    #[doc(hidden)]
    pub fn window(
        self,
        op: &'static str,
        axis: Axis,
        input: usize,
        kernel: usize,
        stride: usize,
        dilation: usize,
    ) -> Result<Window> {
        for (what, value) in [("kernel", kernel), ("stride", stride), ("dilation", dilation)] {
            if value == 0 || value > i16::MAX as usize {
                return Err(Error::shape(
                    op,
                    format!("{what} {value} along {axis}"),
                    format!("{what} from 1 to {}", i16::MAX),
                ));
            }
        }
        if input == 0 && self == Padding::Same {
            return Ok(Window { output: 0, before: 0 });
        }
        let span = (kernel - 1) * dilation + 1;
        let (before, after) = match (self, axis) {
            (Padding::Valid, _) => (0, 0),
            (Padding::Same, _) => {
                let output = input.div_ceil(stride);
                let total = ((output.saturating_sub(1)) * stride + span).saturating_sub(input);
                (total / 2, total - total / 2)
            }
            (Padding::Explicit { top, bottom, .. }, Axis::Height) => (top, bottom),
            (Padding::Explicit { left, right, .. }, Axis::Width) => (left, right),
        };
        if before > i16::MAX as usize || after > i16::MAX as usize {
            return Err(Error::shape(
                op,
                format!("padding {before} and {after} along {axis}"),
                format!("padding up to {}", i16::MAX),
            ));
        }
        let padded = input + before + after;
        if padded < span {
            return Err(Error::shape(
                op,
                format!("{padded} elements along {axis} (padding included)"),
                format!("at least {span}, the span of {kernel} taps {dilation} apart"),
            ));
        }
        Ok(Window { output: (padded - span) / stride + 1, before })
    }
}

/// A spatial axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Rows.
    Height,
    /// Columns.
    Width,
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Axis::Height => "height",
            Axis::Width => "width",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(padding: Padding, input: usize, kernel: usize, stride: usize, dilation: usize) -> Window {
        padding.window("conv2d", Axis::Width, input, kernel, stride, dilation).expect("a valid window")
    }

    #[test]
    fn borders_are_those_worked_out_by_hand() {
        let around = |border: Border| (-3..7).map(|at| border.coordinate(at, 4)).collect::<Vec<_>>();
        let places = |all: [usize; 10]| all.map(Some).to_vec();
        assert_eq!(around(Border::Reflect), places([3, 2, 1, 0, 1, 2, 3, 2, 1, 0]));
        assert_eq!(around(Border::Symmetric), places([2, 1, 0, 0, 1, 2, 3, 3, 2, 1]));
        assert_eq!(around(Border::Edge), places([0, 0, 0, 0, 1, 2, 3, 3, 3, 3]));
        assert_eq!([-1, 0, 3, 4].map(|at| Border::Zeros.coordinate(at, 4)), [None, Some(0), Some(3), None]);
    }

    #[test]
    fn same_padding_follows_tensorflow() {
        // PoseNet's stem: 257 -> 129, one zero on each side.
        assert_eq!(window(Padding::Same, 257, 3, 2, 1), Window { output: 129, before: 1 });
        // An even input puts the odd zero at the end.
        assert_eq!(window(Padding::Same, 224, 3, 2, 1), Window { output: 112, before: 0 });
        assert_eq!(window(Padding::Same, 9, 3, 1, 2), Window { output: 9, before: 2 });
        // A stride longer than the window needs no padding.
        assert_eq!(window(Padding::Same, 7, 1, 3, 1), Window { output: 3, before: 0 });
    }

    #[test]
    fn valid_padding_drops_the_tail() {
        assert_eq!(window(Padding::Valid, 10, 3, 2, 1), Window { output: 4, before: 0 });
        assert_eq!(window(Padding::Valid, 10, 3, 2, 2), Window { output: 3, before: 0 });
    }

    #[test]
    fn a_window_longer_than_its_input_is_an_error() {
        let error = Padding::Valid.window("conv2d", Axis::Height, 2, 3, 1, 1).expect_err("too short");
        let text = error.to_string();
        assert!(text.contains("2 elements along height") && text.contains("at least 3"), "{text}");
    }

    #[test]
    fn zero_strides_and_overflowing_shapes_are_errors() {
        assert!(Padding::Same.window("conv2d", Axis::Width, 8, 3, 0, 1).is_err());
        assert!(Shape::nhwc(1, 0, 3, 4).check("conv2d").is_err());
        assert!(Shape::nhwc(usize::MAX, 2, 3, 4).check("conv2d").is_err());
        assert!(Shape::nhwc(1, 257, 257, 3).check("conv2d").is_ok());
    }
}
