//! Bias, activation and residual, applied to a block of rows while it is in cache.

use super::arch::Arch;
use super::check_len;
use super::finish::{After, Finish};
use super::panels::{Panels, Weights};
use super::shelf::Shelf;
use super::tile::Tile;
use crate::emit::{Activation, Epilogue, Operand, Residual};
use crate::error::{Error, Result};
use pulp::{Simd, WithSimd};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// Host values of an op's constants.
type Constants<'a> = BTreeMap<Operand, Cow<'a, [f32]>>;

/// Columns of rows that are finished several at a time.
const FEW_COLUMNS: usize = 64;

/// What is done to every sum of a kernel, its constants expanded to one value per column.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    op: &'static str,
    activation: Activation,
    residual: Residual,
    columns: usize,
    /// Zeros where the op has no bias. Few columns' values come again and again, for vectors over several rows.
    bias: Vec<f32>,
    /// The slopes, as many as `bias` has values; zeros where the activation has no slopes.
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
        let repeated = |values: Vec<f32>| match FEW_COLUMNS / columns.max(1) {
            0 => values,
            times => values.repeat(times),
        };
        Ok(Tail {
            op,
            activation: epilogue.activation,
            residual: epilogue.residual,
            columns,
            bias: repeated(one("bias", bias, epilogue.bias)?),
            slope: repeated(one("slope", slope, wants_slope)?),
            changes: epilogue.bias || epilogue.activation != Activation::None,
            arch: Arch::new(),
        })
    }

    /// `tail`, each column of which comes `times` times after the others.
    pub(crate) fn repeated(op: &'static str, epilogue: &Epilogue, tail: &Tail, times: usize) -> Result<Self> {
        let (bias, slope) = (tail.bias().repeat(times), tail.slopes().repeat(times));
        let slopes = epilogue.activation == Activation::PRelu;
        Tail::new(op, epilogue, bias.len(), epilogue.bias.then_some(&bias), slopes.then_some(&slope))
    }

    /// The tail of an op with `epilogue` whose bias and slopes are in `constants`: [`Tail::new`] checks them.
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

    /// The bias, and what the activation does to a sum in registers; none where that is more than a few
    /// instructions.
    pub(crate) fn in_registers(&self) -> Option<(&[f32], After)> {
        let after = match self.activation {
            Activation::None => After::Nothing,
            Activation::Relu => After::Bounds([0.0, f32::INFINITY]),
            Activation::Relu6 => After::Bounds([0.0, 6.0]),
            Activation::LeakyRelu(slope) => After::Slope(slope.0),
            Activation::PRelu => After::Slopes,
            Activation::HardSwish => After::HardSwish,
            Activation::Sigmoid
            | Activation::HardSigmoid
            | Activation::Tanh
            | Activation::Silu
            | Activation::Gelu
            | Activation::GeluTanh => return None,
        };
        Some((self.bias(), after))
    }

    /// The bias of each column; zeros where there is none.
    fn bias(&self) -> &[f32] {
        self.bias.get(..self.columns).unwrap_or_default()
    }

    /// The slope of each column; zeros where the activation has none.
    pub(crate) fn slopes(&self) -> &[f32] {
        self.slope.get(..self.columns).unwrap_or_default()
    }

    /// `depth x columns` weights, from column `first` on those of the whole, as panels whose sums begin with the
    /// bias where they are finished in registers.
    pub(crate) fn panels<'w, W: Into<Weights<'w>>>(
        &self,
        depth: usize,
        [first, columns]: [usize; 2],
        weights: impl FnOnce() -> W,
        shelf: (Shelf<'_>, &str),
    ) -> Panels {
        let part = |values: &'_ [f32]| values.get(first..first + columns).unwrap_or_default().to_vec();
        match self.in_registers() {
            None => Panels::new([depth, columns], weights, None, shelf),
            Some((bias, after)) => {
                let panels = Panels::new([depth, columns], weights, Some(&part(bias)), shelf);
                if after == After::Slopes { panels.with_slopes(&part(self.slopes())) } else { panels }
            }
        }
    }

    /// Whether a residual is added before the activation.
    pub(crate) fn adds_first(&self) -> bool {
        self.residual == Residual::BeforeActivation
    }

    /// Finishes the rows of `block`, `stride` apart; only the first columns of each are touched.
    /// `residual` is laid out as `block`.
    pub(crate) fn apply(&self, block: &mut [f32], stride: usize, residual: Option<&[f32]>) {
        if self.changes || residual.is_some() {
            // Rows without gaps are one run of values.
            let all = if stride == self.columns { self.bias.len() } else { self.columns };
            let stride = stride.max(all);
            self.arch.dispatch(Apply { tail: self, block, stride, columns: 0..all, residual });
        }
    }

    /// Finishes whole rows without gaps, or columns of one row from `column` on. `residual` is laid out as `block`.
    pub(crate) fn apply_from(&self, column: usize, block: &mut [f32], residual: Option<&[f32]>) {
        if column == 0 && block.len().is_multiple_of(self.columns.max(1)) {
            return self.apply(block, self.columns, residual);
        }
        if self.changes || residual.is_some() {
            let columns = column..column + block.len();
            self.arch.dispatch(Apply { tail: self, stride: block.len().max(1), block, columns, residual });
        }
    }

    /// What a kernel that began its sums with the bias does to them in registers; nothing where
    /// [`Tail::apply_after`] does it. `residual` holds the tile's first element first, its rows
    /// `stride` apart.
    pub(crate) fn finish<'a>(&self, residual: Option<&'a [f32]>, stride: usize) -> Finish<'a> {
        let first = self.adds_first();
        match self.in_registers() {
            Some((_, after)) => Finish { after, residual, first, stride },
            None => Finish { after: After::Nothing, residual: None, first, stride },
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
        if self.in_registers().is_some() {
            return;
        }
        if let (Tile::Rows { data, columns }, 0) = (&mut *tile, column)
            && *columns == stride
        {
            return self.apply(data, stride, residual);
        }
        for row in 0..tile.rows() {
            let block = tile.row(row);
            let residual = residual.map(|all| all.get(row * stride..).unwrap_or_default());
            let columns = column..column + block.len();
            self.arch.dispatch(Apply { tail: self, stride: block.len(), block, columns, residual });
        }
    }
}

struct Apply<'a> {
    tail: &'a Tail,
    block: &'a mut [f32],
    stride: usize,
    /// The columns of each row.
    columns: Range<usize>,
    residual: Option<&'a [f32]>,
}

impl WithSimd for Apply<'_> {
    type Output = ();

    /// One loop per activation, so that each is a straight line that the compiler vectorises for
    /// the instruction set it was dispatched to.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        match self.tail.activation {
            Activation::None => self.rows(Activation::None),
            Activation::Relu => self.rows(Activation::Relu),
            Activation::Relu6 => self.rows(Activation::Relu6),
            Activation::LeakyRelu(slope) => self.rows(Activation::LeakyRelu(slope)),
            Activation::PRelu => self.rows(Activation::PRelu),
            Activation::Sigmoid => self.rows(Activation::Sigmoid),
            Activation::Tanh => self.rows(Activation::Tanh),
            Activation::HardSwish => self.rows(Activation::HardSwish),
            Activation::HardSigmoid => self.rows(Activation::HardSigmoid),
            Activation::Silu => self.rows(Activation::Silu),
            Activation::Gelu => self.rows(Activation::Gelu),
            Activation::GeluTanh => self.rows(Activation::GeluTanh),
        }
    }
}

impl Apply<'_> {
    #[inline(always)]
    fn rows(self, activation: Activation) {
        let Apply { tail, block, stride, columns, residual } = self;
        let bias = tail.bias.get(columns.clone()).unwrap_or_default();
        let slope = tail.slope.get(columns).unwrap_or_default();
        // Indices, not iterators: whether those are inlined depends on the profile.
        for (index, row) in block.chunks_mut(stride).enumerate() {
            let len = row.len().min(bias.len()).min(slope.len());
            let (row, bias, slope) = (&mut row[..len], &bias[..len], &slope[..len]);
            let Some(residual) = residual else {
                for column in 0..len {
                    row[column] = activation.apply(row[column] + bias[column], slope[column]);
                }
                continue;
            };
            let start = index * stride;
            let Some(residual) = residual.get(start..start + len) else { return };
            if tail.adds_first() {
                for column in 0..len {
                    let sum = row[column] + bias[column] + residual[column];
                    row[column] = activation.apply(sum, slope[column]);
                }
            } else {
                for column in 0..len {
                    row[column] =
                        activation.apply(row[column] + bias[column], slope[column]) + residual[column];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::products::store;

    /// What becomes of each value in the first lane.
    struct Finished(After, [f32; 5]);

    impl WithSimd for Finished {
        type Output = [f32; 5];

        fn with_simd<S: Simd>(self, simd: S) -> [f32; 5] {
            let Finished(after, values) = self;
            values.map(|value| {
                let mut lanes = [0.0; 16];
                let finished = after.apply(simd, simd.splat_f32s(value), simd.splat_f32s(0.5));
                store(simd, &mut lanes, 0, 1, finished);
                lanes[0]
            })
        }
    }

    #[test]
    fn a_nan_stays_in_vectors_and_without_them() {
        let inf = f32::INFINITY;
        let values = [f32::NAN, -inf, inf, -2.0, 7.0];
        for (after, wanted) in [
            (After::Bounds([0.0, 6.0]), [f32::NAN, 0.0, 6.0, 0.0, 6.0]),
            (After::Bounds([0.0, inf]), [f32::NAN, 0.0, inf, 0.0, 7.0]),
            (After::Slope(0.25), [f32::NAN, -inf, inf, -0.5, 7.0]),
            (After::Slopes, [f32::NAN, -inf, inf, -1.0, 7.0]),
        ] {
            let vectors = crate::cpu::arch::Arch::new().dispatch(Finished(after, values));
            let scalars = Finished(after, values).with_simd(pulp::Scalar::new());
            for found in [vectors, scalars] {
                assert!(found[0].is_nan() && found[1..] == wanted[1..], "{after:?}: {found:?}");
            }
        }
    }
}
