//! Bias, activation and residual, applied to a block of rows while it is in cache.

use super::check_len;
use super::panels::Finish;
use super::tile::Tile;
use crate::emit::{Activation, Epilogue, Operand, Residual};
use crate::error::{Error, Result};
use pulp::{Arch, Simd, WithSimd};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Host values of an op's constants.
type Constants<'a> = BTreeMap<Operand, Cow<'a, [f32]>>;

/// What is done to every sum of a kernel, its constants expanded to one value per column.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    op: &'static str,
    activation: Activation,
    residual: Residual,
    /// Zeros where the op has no bias.
    bias: Vec<f32>,
    /// Zeros where the activation has no slopes.
    slope: Vec<f32>,
    /// Whether there is anything to do but a residual.
    changes: bool,
    arch: Arch,
}

impl Tail {
    /// Checks the constants against the epilogue; each has `columns` values.
    pub(crate) fn new(
        op: &'static str,
        epilogue: &Epilogue,
        columns: usize,
        bias: Option<&[f32]>,
        slope: Option<&[f32]>,
    ) -> Result<Self> {
        let wants_slope = epilogue.activation == Activation::PRelu;
        let one = |what: &str, given: Option<&[f32]>, wanted: bool| match (given, wanted) {
            (Some(values), true) => {
                check_len(op, what, values.len(), columns)?;
                Ok(values.to_vec())
            }
            (None, false) => Ok(vec![0.0; columns]),
            (Some(_), false) => {
                Err(Error::input(format!("{op} {what}"), format!("a {what}"), "none, as the op says"))
            }
            (None, true) => Err(Error::input(format!("{op} {what}"), "none", format!("{columns} values"))),
        };
        Ok(Tail {
            op,
            activation: epilogue.activation,
            residual: epilogue.residual,
            bias: one("bias", bias, epilogue.bias)?,
            slope: one("slope", slope, wants_slope)?,
            changes: epilogue.bias || epilogue.activation != Activation::None,
            arch: Arch::new(),
        })
    }

    /// As [`Tail::new`], the constants being those of `constants`.
    pub(crate) fn of(
        op: &'static str,
        epilogue: &Epilogue,
        columns: usize,
        constants: &Constants<'_>,
    ) -> Result<Self> {
        let get = |operand| constants.get(&operand).map(|values| &**values);
        Tail::new(op, epilogue, columns, get(Operand::Bias), get(Operand::Slope))
    }

    /// Checks that a residual is given exactly where the op has one, and its length.
    pub(crate) fn check_residual(&self, residual: Option<&[f32]>, wanted: usize) -> Result<()> {
        match (residual, self.residual.is_some()) {
            (Some(residual), true) => check_len(self.op, "residual", residual.len(), wanted),
            (None, false) => Ok(()),
            (found, _) => Err(Error::input(
                format!("{} residual", self.op),
                if found.is_some() { "a residual" } else { "none" },
                if self.residual.is_some() { "a residual" } else { "none, as the op says" },
            )),
        }
    }

    /// The bias, and the bounds that the activation comes down to, for a kernel that finishes its
    /// sums in registers; none where the activation is more than bounds.
    pub(crate) fn bounds(&self) -> Option<(&[f32], Option<[f32; 2]>)> {
        let bounds = match self.activation {
            Activation::None => None,
            Activation::Relu => Some([0.0, f32::INFINITY]),
            Activation::Relu6 => Some([0.0, 6.0]),
            _ => return None,
        };
        Some((&self.bias, bounds))
    }

    /// Whether a residual is added before the activation.
    fn adds_first(&self) -> bool {
        self.residual == Residual::BeforeActivation
    }

    /// Whether there is a residual.
    pub(crate) fn has_residual(&self) -> bool {
        self.residual.is_some()
    }

    /// Finishes the rows of `block`, `stride` apart; only the first columns of each are touched.
    /// `residual` is laid out as `block`.
    pub(crate) fn apply(&self, block: &mut [f32], stride: usize, residual: Option<&[f32]>) {
        if self.changes || residual.is_some() {
            self.arch.dispatch(Apply { tail: self, block, stride, column: 0, residual });
        }
    }

    /// What a kernel that began its sums with the bias does to them in registers; nothing where
    /// [`Tail::apply_after`] does it. `residual` holds the tile's first element first, its rows
    /// `stride` apart.
    pub(crate) fn finish<'a>(&self, residual: Option<&'a [f32]>, stride: usize) -> Finish<'a> {
        let first = self.adds_first();
        match self.bounds() {
            Some((_, bounds)) => Finish { bounds, residual, first, stride },
            None => Finish { bounds: None, residual: None, first, stride },
        }
    }

    /// Finishes a tile whose first column is `column` where that was more than registers allow.
    pub(crate) fn apply_after(
        &self,
        tile: &mut Tile<'_>,
        column: usize,
        residual: Option<&[f32]>,
        stride: usize,
    ) {
        if self.bounds().is_some() {
            return;
        }
        for row in 0..tile.rows() {
            let block = tile.row(row);
            let residual = residual.map(|all| all.get(row * stride..).unwrap_or_default());
            self.arch.dispatch(Apply { tail: self, stride: block.len(), block, column, residual });
        }
    }
}

/// `sum` within `bounds`, if there are any. What a NaN becomes, the instruction set says.
#[inline(always)]
pub(crate) fn bounded<S: Simd>(simd: S, sum: S::f32s, bounds: Option<[f32; 2]>) -> S::f32s {
    match bounds {
        Some([low, high]) => simd.min_f32s(simd.max_f32s(sum, simd.splat_f32s(low)), simd.splat_f32s(high)),
        None => sum,
    }
}

struct Apply<'a> {
    tail: &'a Tail,
    block: &'a mut [f32],
    stride: usize,
    /// The column of the block's first value.
    column: usize,
    residual: Option<&'a [f32]>,
}

impl WithSimd for Apply<'_> {
    type Output = ();

    /// One loop per activation, so that each is a straight line that the compiler vectorises for
    /// the instruction set it was dispatched to.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let slope = |slope| move |x: f32, _: f32| Activation::LeakyRelu(slope).apply(x, 0.0);
        match self.tail.activation {
            Activation::None => self.rows(|x, _| x),
            Activation::Relu => self.rows(|x, _| Activation::Relu.apply(x, 0.0)),
            Activation::Relu6 => self.rows(|x, _| Activation::Relu6.apply(x, 0.0)),
            Activation::LeakyRelu(value) => self.rows(slope(value)),
            Activation::PRelu => self.rows(|x, slope| Activation::PRelu.apply(x, slope)),
            Activation::Sigmoid => self.rows(|x, _| Activation::Sigmoid.apply(x, 0.0)),
            Activation::Tanh => self.rows(|x, _| Activation::Tanh.apply(x, 0.0)),
            Activation::HardSwish => self.rows(|x, _| Activation::HardSwish.apply(x, 0.0)),
        }
    }
}

impl Apply<'_> {
    #[inline(always)]
    fn rows(self, activation: impl Fn(f32, f32) -> f32) {
        let Apply { tail, block, stride, column, residual } = self;
        let bias = tail.bias.get(column..).unwrap_or_default();
        let slope = tail.slope.get(column..).unwrap_or_default();
        match residual {
            None => {
                for row in block.chunks_mut(stride) {
                    for ((y, &bias), &slope) in row.iter_mut().zip(bias).zip(slope) {
                        *y = activation(*y + bias, slope);
                    }
                }
            }
            Some(residual) if tail.adds_first() => {
                for (row, residual) in block.chunks_mut(stride).zip(residual.chunks(stride)) {
                    let constants = bias.iter().zip(slope);
                    for ((y, (&bias, &slope)), &residual) in row.iter_mut().zip(constants).zip(residual) {
                        *y = activation(*y + bias + residual, slope);
                    }
                }
            }
            Some(residual) => {
                for (row, residual) in block.chunks_mut(stride).zip(residual.chunks(stride)) {
                    let constants = bias.iter().zip(slope);
                    for ((y, (&bias, &slope)), &residual) in row.iter_mut().zip(constants).zip(residual) {
                        *y = activation(*y + bias, slope) + residual;
                    }
                }
            }
        }
    }
}
