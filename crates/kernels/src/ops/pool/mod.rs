//! `y[n,i,j,c] = f(max_{a,b} x[n, i*s+a-p, j*s+b-p, c])`, or the mean instead of the maximum
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | `n h w c` | C4 on the device |
//! | `y` | `n oh ow c` | C4 on the device |
//!
//! What lies outside the input does not take part: the mean is over the elements inside, as in TensorFlow
//! Lite. A NaN in a window makes its maximum or mean NaN, and the largest of negative infinities is
//! one.

mod cpu;
mod direct;
mod examples;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};

use crate::dtype::Precision;
use crate::emit::{Activation, Epilogue};
use crate::error::{Error, Result};
use crate::ops::convolution::{Convolution, WindowOptions};
use crate::shape::{Border, Padding, Shape};

const OP: &str = "pool";

/// What a pooling computes of each window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// The largest element.
    Max,
    /// The mean of the elements.
    Average,
}

/// Options of a pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pool {
    /// The maximum or the mean.
    pub pooling: Pooling,
    /// Extent of the window along height and width.
    pub window: [usize; 2],
    /// Step of the window along height and width.
    pub stride: [usize; 2],
    /// How far windows go beyond the input. Each must contain an element of it.
    pub padding: Padding,
    /// Applied to the maximum or mean. PReLU is refused, because it has a slope for each channel.
    pub activation: Activation,
}

impl Pool {
    /// Windows side by side, without padding and activation.
    ///
    /// ```
    /// use diptych::{Pool, Pooling};
    ///
    /// let pool = Pool::new(Pooling::Max, [2, 2]);
    /// assert_eq!(pool.stride, [2, 2]); // windows touch
    /// ```
    pub const fn new(pooling: Pooling, window: [usize; 2]) -> Self {
        Pool { pooling, window, stride: window, padding: Padding::Valid, activation: Activation::None }
    }
}

/// A pooling of concrete shapes: the windows are those of a [`Convolution`] of each channel by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolOp {
    pooling: Pooling,
    windows: Convolution,
}

impl PoolOp {
    /// Checks the shape and the windows.
    ///
    /// # Errors
    /// If the windows do not fit the input, one of them lies outside it, or the activation has slopes.
    pub fn new(input: Shape, options: &Pool, precision: Precision) -> Result<Self> {
        let Pool { pooling, window, stride, padding, activation } = *options;
        if activation == Activation::PRelu {
            return Err(Error::unsupported(OP, "slopes per channel behind a pooling"));
        }
        let windows = Convolution::new(
            OP,
            input,
            window,
            input.c,
            input.c,
            WindowOptions { stride, dilation: [1, 1], padding, border: Border::Zeros },
            Epilogue { activation, ..Epilogue::default() },
            precision,
        )?;
        for (axis, (outputs, extent)) in
            [(windows.output.h, input.h), (windows.output.w, input.w)].into_iter().enumerate()
        {
            let last = outputs.saturating_sub(1) * stride[axis];
            if windows.before[axis] >= window[axis] || last >= extent + windows.before[axis] {
                return Err(Error::shape(
                    OP,
                    format!("{padding:?} for windows of {} in {extent} along axis {axis}", window[axis]),
                    "an element in every window",
                ));
            }
        }
        Ok(PoolOp { pooling, windows })
    }

    /// Its windows, as those of a convolution.
    pub(in crate::ops) const fn windows(&self) -> &Convolution {
        &self.windows
    }

    /// Whether all windows have all of their elements.
    pub(in crate::ops) fn is_inside(&self) -> bool {
        let Convolution { output, kernel, .. } = self.windows;
        [output.h, output.w].into_iter().enumerate().all(|(axis, outputs)| {
            [0, outputs - 1].into_iter().all(|out| self.inside(axis, out).len() == kernel[axis])
        })
    }

    /// Elements of a window.
    fn taps(&self) -> usize {
        self.windows.kernel[0] * self.windows.kernel[1]
    }

    /// Whether the only window of an image is the image.
    fn is_whole(&self) -> bool {
        let (x, y) = (self.windows.input, self.windows.output);
        [y.h, y.w] == [1, 1] && self.inside(0, 0) == (0..x.h) && self.inside(1, 0) == (0..x.w)
    }

    /// The elements inside of window `out` along axis 0 (height) or 1 (width).
    #[inline(always)]
    pub(in crate::ops) fn inside(&self, axis: usize, out: usize) -> std::ops::Range<usize> {
        let extent = [self.windows.input.h, self.windows.input.w][axis];
        let (first, before) = (out * self.windows.stride[axis], self.windows.before[axis]);
        first.saturating_sub(before)..(first + self.windows.kernel[axis]).saturating_sub(before).min(extent)
    }
}
