//! `y = (x - m) / sqrt(v + epsilon) * scale[c] + bias[c]`, `m` and `v` the mean and the variance over some axes of
//! `x`, `c` the place along the last; or `y = x / sqrt(q + epsilon) * scale[c] + bias[c]`, `q` the mean of `x^2`
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `x` | any | rows, or C4 where the channels stay |
//! | `scale`, `bias` | the last extent of `x`, or `n 1 1 c` where they are computed | |
//! | `r` | that of `x` | C4 |
//! | `y` | that of `x` | as `x` |
//!
//! A layer normalisation is one over the last axis, an instance normalisation one over height and width. The
//! variance is the mean of `(x - m)^2`. One that is not centred divides by the root of the mean square (Zhang and Sennrich,
//! *Root mean square layer normalization*, 2019); kernels compute it as one whose `m` is 0. Sums are in f32 in every
//! precision. They are of distances from the first of the values, so that a mean that is much larger than the deviation
//! takes no bits of it.
//!
//! An instance normalisation of a feature map may have factors that are computed, an activation and a residual
//! (`f(y) + r` or `f(y + r)`).
//!
//! A NaN or an infinity makes all that is normalised with it NaN; where the mean is not subtracted, an infinity makes the
//! others 0.

mod arguments;
mod examples;
mod finished;
mod kept;
mod nest;
mod operator;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};
pub use finished::Finished;

use crate::dims::{Dims, MAX_RANK};
use crate::dtype::Precision;
use crate::emit::{Activation, Bits, Epilogue, Residual};
use crate::error::{Error, Result};
use crate::ops::reduce::{Merged, named};

const OP: &str = "normalize";

/// Options of a normalisation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Normalize {
    /// The axes over which mean and variance are taken. Negative ones count from the last.
    pub axes: Vec<isize>,
    /// What is added to the variance, or to the mean square, finite and larger than 0.
    pub epsilon: Bits,
    /// Whether the mean is subtracted. Otherwise `x` is divided by the root of the mean of `x^2`, as in an RMS
    /// normalisation.
    ///
    /// ```
    /// use diptych::nn::Normalize;
    /// use diptych::{Dims, Graph, HostTensor};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[7, 4])?)?;
    /// let options = Normalize { centred: false, ..Normalize::default() };
    /// let scale = Some(HostTensor::vector(vec![1.0; 4])?);
    /// let y = graph.normalize("norm", x, options, scale, None)?;
    /// assert_eq!(graph.dims(y)?.extents(), [7, 4]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub centred: bool,
}

impl Default for Normalize {
    /// A layer normalisation: over the last axis, with an epsilon of 1e-5.
    fn default() -> Self {
        Normalize { axes: vec![-1], epsilon: Bits(1e-5), centred: true }
    }
}

/// A factor or a summand of each channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Vector {
    None,
    /// Packed once: `Weights` or `Bias`.
    Constant,
    /// Computed at each run, for each image: `Arg(0)` or `Arg(1)`.
    Given,
}

impl Vector {
    const fn constant(has: bool) -> Self {
        if has { Vector::Constant } else { Vector::None }
    }
}

/// A normalisation of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NormalizeOp {
    dims: Dims,
    normalized: [bool; MAX_RANK],
    epsilon: Bits,
    centred: bool,
    scale: Vector,
    bias: Vector,
    epilogue: Epilogue,
    precision: Precision,
}

impl NormalizeOp {
    /// Checks the axes and `epsilon`; `scale` and `bias` say whether there are such factors and summands.
    ///
    /// # Errors
    /// If an axis is beyond the rank, the shape too large, or `epsilon` not larger than 0.
    pub fn new(
        dims: Dims,
        options: &Normalize,
        scale: bool,
        bias: bool,
        precision: Precision,
    ) -> Result<Self> {
        dims.checked_or_empty(OP)?;
        let normalized = named(OP, &options.axes, dims.rank())?;
        let epsilon = options.epsilon.0;
        if !epsilon.is_finite() || epsilon < f32::MIN_POSITIVE {
            return Err(Error::shape(OP, format!("an epsilon of {epsilon}"), "one larger than 0"));
        }
        let precision = precision.with_f32_sums();
        let [scale, bias] = [scale, bias].map(Vector::constant);
        let Normalize { epsilon, centred, .. } = *options;
        let epilogue = Epilogue::default();
        Ok(NormalizeOp { dims, normalized, epsilon, centred, scale, bias, epilogue, precision })
    }

    /// The instance normalisation with a scale and a bias that are `given` at each run, an activation and a residual.
    ///
    /// # Errors
    /// If it is over other axes than height and width of a feature map, a scale or a bias is there already, or the
    /// activation has slopes.
    pub fn finished(
        self,
        given: [bool; 2],
        activation: Activation,
        residual: impl Into<Residual>,
    ) -> Result<Self> {
        let refuse = |found: String, wanted: &str| Err(Error::shape(OP, found, wanted));
        if !self.is_over_pixels() {
            return refuse(format!("a normalisation of {}", self.dims), "one over height and width of a map");
        }
        if activation == Activation::PRelu {
            return refuse("an activation with slopes".to_owned(), "one without");
        }
        let mut vectors = [self.scale, self.bias];
        for (vector, given) in vectors.iter_mut().zip(given) {
            match (*vector, given) {
                (Vector::None, true) => *vector = Vector::Given,
                (_, false) => {}
                (_, true) => return refuse("two scales or biases".to_owned(), "one of each"),
            }
        }
        let epilogue = Epilogue::new(false, activation, residual.into());
        Ok(NormalizeOp { scale: vectors[0], bias: vectors[1], epilogue, ..self })
    }

    /// Whether only kernels of feature maps compute it.
    fn is_finished(&self) -> bool {
        self.epilogue != Epilogue::default() || self.scale == Vector::Given || self.bias == Vector::Given
    }

    /// Whether it is over height and width of a feature map.
    pub fn is_over_pixels(&self) -> bool {
        self.dims.rank() == 4 && self.normalized[..4] == [false, true, true, false]
    }

    /// The axes that kernels of rows loop over; those that are normalised are called reduced.
    fn merged(&self) -> Merged {
        Merged::of(&self.dims, self.normalized)
    }

    fn channels(&self) -> usize {
        self.dims.shape().c
    }
}
