//! What a session makes of a network before it chooses kernels, so that each rewrite can be left out.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A rewrite: what a session makes of one or several nodes, so that fewer or faster kernels run.
///
/// Each gives the same results within rounding. [`SessionOptions::without_rewrites`](crate::SessionOptions::without_rewrites)
/// leaves some out: to find which one is at fault where a result is wrong, and to compare one with what it replaces.
/// [`Session::compare_rewrites`](crate::Session::compare_rewrites) does that, and `diptych check MODEL --rewrites`.
///
/// ```
/// use diptych::{Rewrite, SessionOptions};
///
/// let plain = SessionOptions { without_rewrites: Rewrite::ALL.into(), ..Default::default() };
/// assert!(plain.without_rewrites.contains(&"attention".parse()?));
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rewrite {
    /// A border of zeros or mirror images becomes the padding of what reads it.
    Borders,
    /// `(x - m) / sqrt(v + e)`, written out, becomes a normalisation.
    Normalisations,
    /// `x / sqrt(mean(x^2) + e)`, written out, becomes a normalisation.
    RootMeanSquares,
    /// `e / sum(e)` of `e = exp(x - max(x))`, written out, becomes a softmax.
    Softmax,
    /// `softmax(s Q K^T + b) V` becomes an attention, and one reads and writes where moves would put its operands and its result.
    Attention,
    /// `x + b` of a constant for each channel becomes the bias of what writes `x`.
    Biases,
    /// `x s` of a constant for each channel goes into the constants of the product that writes `x`.
    Scales,
    /// An activation becomes a part of what it follows.
    Activations,
    /// `x + y` becomes the residual of what writes `x`.
    Residuals,
    /// A function of each element becomes a part of the one that it follows or that follows it.
    Functions,
    /// If only some rows of a result are read, such as the row of one token behind the last layer, only these rows are computed.
    ReadRows,
    /// `(s A) B` and `A (s B)` become `s (A B)`.
    Factors,
    /// The products that an attention reads become one product, if they read one input.
    Projections,
    /// On devices: a convolution whose windows touch without overlapping becomes a move and a product, or a 1x1 convolution.
    Patches,
    /// On devices: a map weighted by what two 1x1 convolutions make of a pixel becomes two kernels.
    Gates,
    /// On devices: a global mean and the product behind it become one kernel.
    Squeezes,
    /// On devices: a function of two products of one input becomes one product and a gated linear unit.
    GatedProducts,
    /// On devices: two dense layers of few rows, or a normalisation and a dense layer, become one kernel.
    DenseLayers,
    /// On devices: moves, functions of each element, reductions, softmax and normalisations of rows become one kernel with those
    /// that read what they write, where that takes less time.
    Loops,
    /// On devices: a normalisation, a softmax or another reduction of a product's rows becomes a part of that product.
    ProductRows,
    /// On devices: a function of each element becomes a part of the convolution or the product that it follows.
    Epilogues,
    /// On devices: moves and functions of each element become a part of the product of few rows that reads them, or of the update of a
    /// state.
    Prologues,
    /// On devices: several products of one input become one product.
    Stacks,
    /// On devices: a normalisation of a large map, or an attention of few queries to many keys, becomes one of parts and
    /// their join.
    Parts,
    /// On devices: what writes an input of a concatenation writes it where it belongs in the result.
    Concatenations,
    /// A state is changed in place instead of computed anew and copied.
    Updates,
}

impl Rewrite {
    /// Every rewrite.
    pub const ALL: [Rewrite; 26] = [
        Rewrite::Borders,
        Rewrite::Normalisations,
        Rewrite::RootMeanSquares,
        Rewrite::Softmax,
        Rewrite::Attention,
        Rewrite::Biases,
        Rewrite::Scales,
        Rewrite::Activations,
        Rewrite::Residuals,
        Rewrite::Functions,
        Rewrite::ReadRows,
        Rewrite::Factors,
        Rewrite::Projections,
        Rewrite::Patches,
        Rewrite::Gates,
        Rewrite::Squeezes,
        Rewrite::GatedProducts,
        Rewrite::DenseLayers,
        Rewrite::Loops,
        Rewrite::ProductRows,
        Rewrite::Epilogues,
        Rewrite::Prologues,
        Rewrite::Stacks,
        Rewrite::Parts,
        Rewrite::Concatenations,
        Rewrite::Updates,
    ];

    /// Its name, in lower case with `_` between words.
    pub const fn name(self) -> &'static str {
        match self {
            Rewrite::Borders => "borders",
            Rewrite::Normalisations => "normalisations",
            Rewrite::RootMeanSquares => "root_mean_squares",
            Rewrite::Softmax => "softmax",
            Rewrite::Attention => "attention",
            Rewrite::Biases => "biases",
            Rewrite::Scales => "scales",
            Rewrite::Activations => "activations",
            Rewrite::Residuals => "residuals",
            Rewrite::Functions => "functions",
            Rewrite::ReadRows => "read_rows",
            Rewrite::Factors => "factors",
            Rewrite::Projections => "projections",
            Rewrite::Patches => "patches",
            Rewrite::Gates => "gates",
            Rewrite::Squeezes => "squeezes",
            Rewrite::GatedProducts => "gated_products",
            Rewrite::DenseLayers => "dense_layers",
            Rewrite::Loops => "loops",
            Rewrite::ProductRows => "product_rows",
            Rewrite::Epilogues => "epilogues",
            Rewrite::Prologues => "prologues",
            Rewrite::Stacks => "stacks",
            Rewrite::Parts => "parts",
            Rewrite::Concatenations => "concatenations",
            Rewrite::Updates => "updates",
        }
    }
}

impl fmt::Display for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Rewrite {
    type Err = Error;

    /// The rewrite of this name.
    fn from_str(name: &str) -> Result<Self> {
        let found = Rewrite::ALL.into_iter().find(|rewrite| rewrite.name() == name);
        found.ok_or_else(|| {
            let names = Rewrite::ALL.map(Rewrite::name).join(", ");
            Error::input("rewrite", format!("{name:?}"), format!("one of {names}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rewrite_has_a_name_of_its_own() {
        for rewrite in Rewrite::ALL {
            assert_eq!(rewrite.name().parse::<Rewrite>().expect("its name"), rewrite);
        }
        let error = "atention".parse::<Rewrite>().expect_err("no rewrite").to_string();
        assert!(error.contains("\"atention\"") && error.contains("attention, biases"), "{error}");
    }
}
