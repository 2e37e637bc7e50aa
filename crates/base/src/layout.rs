//! How the elements of a feature map lie in memory.

use crate::shape::Shape;
use std::fmt;

/// The order of a feature map's elements.
///
/// | layout | element `(n, h, w, c)` lies at | where |
/// |---|---|---|
/// | `Nhwc` | `c + C*(w + W*(h + H*n))` | host and device buffers |
/// | `Nchw` | `w + W*(h + H*(c + C*n))` | host and device buffers |
/// | `C4` | lane `c%4` of vec4 `w + W*(h + H*(c/4 + S*n))`, `S = ceil(C/4)` | device buffers |
/// | `Image2d` | channel `c%4` of pixel `(w + W*(c/4), h + H*n)` | OpenCL images |
///
/// The lanes of the last slice beyond `C` are zero. `C4` is the layout of the TensorFlow Lite GL delegate,
/// `Image2d` that of Paddle-Lite's OpenCL backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Layout {
    /// Channels last.
    #[default]
    Nhwc,
    /// Channels before height and width.
    Nchw,
    /// Slices of four channels, each a plane of vec4.
    C4,
    /// Slices of four channels side by side in an RGBA image.
    Image2d,
}

impl Layout {
    /// Elements a buffer of this layout holds, the spare lanes of the last slice included.
    ///
    /// ```
    /// use diptych::{Layout, Shape};
    ///
    /// let three = Shape::nhwc(1, 2, 2, 3);
    /// assert_eq!((Layout::Nhwc.elements(&three), Layout::C4.elements(&three)), (12, 16));
    /// ```
    pub const fn elements(self, shape: &Shape) -> usize {
        match self {
            Layout::Nhwc | Layout::Nchw => shape.elements(),
            Layout::C4 | Layout::Image2d => shape.n * shape.h * shape.w * shape.slices() * 4,
        }
    }

    /// Width and height in pixels of the RGBA image that holds `shape` as [`Layout::Image2d`].
    #[doc(hidden)]
    pub const fn image_extent(shape: &Shape) -> [usize; 2] {
        [shape.w * shape.slices(), shape.h * shape.n]
    }

    /// Index of element `(n, h, w, c)`, counted in elements. For `Image2d` the pixels are counted
    /// row by row.
    ///
    /// ```
    /// use diptych::{Layout, Shape};
    ///
    /// let shape = Shape::nhwc(1, 2, 2, 3);
    /// assert_eq!(Layout::Nhwc.index(&shape, 0, 1, 0, 2), 8);
    /// assert_eq!(Layout::Nchw.index(&shape, 0, 1, 0, 2), 10);
    /// ```
    pub const fn index(self, shape: &Shape, n: usize, h: usize, w: usize, c: usize) -> usize {
        match self {
            Layout::Nhwc => c + shape.c * (w + shape.w * (h + shape.h * n)),
            Layout::Nchw => w + shape.w * (h + shape.h * (c + shape.c * n)),
            Layout::C4 => (w + shape.w * (h + shape.h * (c / 4 + shape.slices() * n))) * 4 + c % 4,
            Layout::Image2d => {
                (w + shape.w * (c / 4) + shape.w * shape.slices() * (h + shape.h * n)) * 4 + c % 4
            }
        }
    }
}

impl Layout {
    /// What a device's memory has it in.
    #[doc(hidden)]
    pub const fn form(self) -> Form {
        match self {
            Layout::Nhwc | Layout::Nchw => Form::Rows,
            Layout::C4 => Form::C4,
            Layout::Image2d => Form::Image,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layout::Nhwc => "nhwc",
            Layout::Nchw => "nchw",
            Layout::C4 => "c4",
            Layout::Image2d => "image2d",
        })
    }
}

/// How a value of a network lies in a device's memory. It may lie there in several forms at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Row by row, as on the host: inputs, outputs, matrices. An element is a word of 32 bits.
    Rows,
    /// Row by row in halves: what passes between kernels that store halves.
    HalfRows,
    /// [`Layout::C4`] in a buffer, of the op's storage type.
    C4,
    /// [`Layout::Image2d`] in an image, of the op's storage type (OpenCL).
    Image,
}

impl Form {
    /// Every form.
    pub const ALL: [Form; 4] = [Form::C4, Form::Image, Form::HalfRows, Form::Rows];

    /// The layout of a feature map in this form.
    pub const fn layout(self) -> Layout {
        match self {
            Form::Rows | Form::HalfRows => Layout::Nhwc,
            Form::C4 => Layout::C4,
            Form::Image => Layout::Image2d,
        }
    }

    /// Whether elements lie row by row, of whatever type.
    pub const fn is_rows(self) -> bool {
        matches!(self, Form::Rows | Form::HalfRows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_layout_places_each_element_once_within_its_size() {
        for shape in [Shape::nhwc(2, 3, 5, 7), Shape::nhwc(1, 1, 1, 1), Shape::nhwc(3, 2, 1, 8)] {
            for layout in [Layout::Nhwc, Layout::Nchw, Layout::C4, Layout::Image2d] {
                let mut seen = HashSet::new();
                for n in 0..shape.n {
                    for h in 0..shape.h {
                        for w in 0..shape.w {
                            for c in 0..shape.c {
                                let index = layout.index(&shape, n, h, w, c);
                                assert!(index < layout.elements(&shape), "{layout} {shape}: {index}");
                                assert!(seen.insert(index), "{layout} {shape}: {index} twice");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn an_image_is_as_wide_as_all_slices_and_as_high_as_the_batch() {
        assert_eq!(Layout::image_extent(&Shape::nhwc(2, 5, 3, 9)), [9, 10]);
    }
}
