//! `y[i] = sum_j p[i, j] v[j]` with `p[i, ..] = softmax of s[i, ..]` and `s[i, j] = scale q[i] . k[j] + bias[i, j]`, for each head
//!
//! | operand | shape | order |
//! |---|---|---|
//! | `q` (`query`) | `batch heads places depth`, or `batch places heads depth` | rows |
//! | `k` (`key`) | the same with other places, and as many heads or a divisor of them | rows |
//! | `v` (`value`) | that of `k`, of another depth | rows |
//! | `bias` | `batch heads places keys`, any of them 1 | rows |
//! | `mask` | the same; where it is 0 (or, by an option, where it is not) a score becomes `fill` | rows |
//! | `begins` | one number, or one of each batch: the place of the first query among the keys | rows of i32, or of f32 |
//! | `ends` | one number, or one of each batch: how many keys there are | rows of i32, or of f32 |
//! | `y` | as `q`, of the depth of `v` | rows |
//!
//! With a soft cap, `s` becomes `cap tanh(s / cap)` before the bias is added. With `before` and `behind`, a query at place `i` attends
//! the keys from `i - before` to `i + behind`; causal attention has `behind = 0`. Query heads that share a key head are
//! consecutive.
//!
//! The matrix of scores is not stored. A kernel takes some keys at a time, and scales its earlier sums down when a score is larger
//! than all scores before it (Milakov and Gimelshein, *Online normalizer calculation for softmax*, 2018; Dao et al.,
//! *FlashAttention*, 2022). Sums are in f32. With f16 storage, `q`, `k`, `v` and `y` are rows of halves.
//!
//! Keys in parts, which the lowering makes: `y` has a row of each part and query, in the order part, batch,
//! head, query. It is the attention to the keys of that part, and behind it the logarithm of the sum of the exponentials of the
//! part's scores; `attention_join` makes one result of them.
//!
//! A NaN among the scores of a query makes its row of `y` NaN, and so does a score of positive infinity. A key whose score is
//! negative infinity has the share 0. If all scores of a query are negative infinity, its row is 0, or NaN if
//! [`Attention::nan_if_nothing`] asks for that. An infinity or a NaN in `v` may reach every row of its head, even rows that do not
//! attend its key. It reaches no other head.

mod along;
mod arguments;
mod cpu;
mod effort;
mod estimate;
mod examples;
mod matrix;
mod operator;
mod oracle;
mod places;
mod plan;
mod queries;
mod row;
mod tiled;

pub(super) use examples::{NUMBERS, examples};
pub use operator::Strided;
pub use places::{Added, RowStrides, Sizes};
pub use queries::SomeQueries;

use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::{Bits, Operand};
use crate::error::{Error, Result};
use std::collections::BTreeMap;

const OP: &str = "attention";

/// Parts of keys, at most.
pub const MOST_PARTS: usize = 64;

/// The logarithm of the sum of a part of which no key is attended.
pub(crate) const NO_KEY: f32 = f32::MIN;

/// Options of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attention {
    /// The factor of the products `q . k`; `None` means one over the square root of the depth.
    pub scale: Option<Bits>,
    /// The soft cap: a score `s` becomes `cap tanh(s / cap)`. 0 means none.
    pub softcap: Bits,
    /// How many keys before its own place a query attends; `None` means all of them.
    pub before: Option<usize>,
    /// How many keys behind its own place a query attends; `None` means all of them, and 0 is causal attention.
    pub behind: Option<usize>,
    /// The place of the first query among the keys, unless an input gives it.
    pub begin: usize,
    /// Whether the axes are `batch places heads depth`, and not `batch heads places depth`.
    pub places_first: bool,
    /// What a mask means, if the node has one.
    pub mask: MaskRule,
    /// Whether the result of a query that attends no key is NaN, as that of a softmax, and not 0.
    pub nan_if_nothing: bool,
}

impl Default for Attention {
    /// Every query attends every key; heads before places.
    fn default() -> Self {
        Attention {
            scale: None,
            softcap: Bits(0.0),
            before: None,
            behind: None,
            begin: 0,
            places_first: false,
            mask: MaskRule::default(),
            nan_if_nothing: false,
        }
    }
}

/// How a mask changes scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MaskRule {
    /// Whether elements other than 0 mark the keys that are not attended. Otherwise they mark those that are.
    pub hides: bool,
    /// The score of a key that is not attended.
    pub fill: Bits,
}

impl Default for MaskRule {
    /// Elements other than 0 mark the keys that are attended; the score of the others is negative infinity.
    fn default() -> Self {
        MaskRule { hides: false, fill: Bits(f32::NEG_INFINITY) }
    }
}

/// What is done to the scores, of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rules {
    pub scale: Bits,
    pub softcap: Bits,
    pub(crate) before: Option<usize>,
    pub(crate) behind: Option<usize>,
    pub(crate) begin: usize,
    pub mask: MaskRule,
    /// Whether the mask's numbers are added, as the bias's are.
    pub mask_adds: bool,
    pub(crate) nan_if_nothing: bool,
}

impl Rules {
    /// The rules of plain products times `scale`, a softmax and sums.
    pub fn plain(scale: f32) -> Self {
        Rules {
            scale: Bits(scale),
            softcap: Bits(0.0),
            before: None,
            behind: None,
            begin: 0,
            mask: MaskRule::default(),
            mask_adds: false,
            nan_if_nothing: true,
        }
    }
}

/// An attention of concrete shapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttentionOp {
    sizes: Sizes,
    /// Where queries, keys, values and results lie.
    query: RowStrides,
    key: RowStrides,
    value: RowStrides,
    dst: RowStrides,
    bias: Option<Added>,
    mask: Option<Added>,
    rules: Rules,
    /// How many parts keys are taken in; each has a result of its own.
    parts: usize,
    /// The extents of what is read, and the type of its words.
    given: BTreeMap<Operand, (Dims, DType)>,
    /// The extents of the result.
    output: Dims,
    precision: Precision,
}

impl AttentionOp {
    /// Checks that all that is read lies within what is given.
    ///
    /// # Errors
    /// If it does not, or the options do not fit each other.
    pub(crate) fn new(
        strided: &Strided,
        given: BTreeMap<Operand, (Dims, DType)>,
        precision: Precision,
    ) -> Result<Self> {
        let precision = precision.with_f32_sums();
        let Strided { sizes, query, key, value, dst, bias, mask, rules, parts, output } = strided.clone();
        let op =
            AttentionOp { sizes, query, key, value, dst, bias, mask, rules, parts, given, output, precision };
        // No kernel reads or writes any of it.
        if !op.sizes.are_empty() {
            op.check()?;
        }
        Ok(op)
    }

    /// The attention with keys in `parts`, each with a result of its own.
    ///
    /// # Errors
    /// If there are other than 2 to 64 parts, or more elements than a tensor may have.
    pub fn in_parts(&self, parts: usize) -> Result<Self> {
        AttentionOp::new(&self.strided().in_parts(parts)?, self.given.clone(), self.precision)
    }

    /// Where all that it reads and writes lies, and what it does.
    pub fn strided(&self) -> Strided {
        let &AttentionOp { sizes, query, key, value, dst, bias, mask, rules, parts, output, .. } = self;
        Strided { sizes, query, key, value, dst, bias, mask, rules, parts, output }
    }

    /// From the number that an operand says for one batch to the next one's.
    fn count_step(&self, operand: Operand) -> usize {
        self.given.get(&operand).map_or(0, |(dims, _)| usize::from(dims.elements() > 1))
    }

    fn has(&self, operand: Operand) -> bool {
        self.given.contains_key(&operand)
    }

    /// Refuses what does not lie within what is given, and options that do not fit each other.
    fn check(&self) -> Result<()> {
        let refuse = |found: String, wanted: &str| Err(Error::shape(OP, found, wanted));
        self.sizes.check()?;
        let Sizes { batch, .. } = self.sizes;
        let Rules { scale, softcap, before, behind, begin, .. } = self.rules;
        if !scale.0.is_finite() {
            return refuse(format!("a scale of {}", scale.0), "a finite one");
        }
        if !softcap.0.is_finite() || softcap.0 < 0.0 {
            return refuse(format!("a soft cap of {}", softcap.0), "one from 0 on, 0 for none");
        }
        let most = i32::MAX as usize / 4;
        if [before.unwrap_or(0), behind.unwrap_or(0), begin].iter().any(|&number| number > most) {
            return refuse(
                format!("{before:?} places before, {behind:?} behind, {begin} past"),
                "at most 2^29",
            );
        }
        if self.has(Operand::Begins) && before.is_none() && behind.is_none() {
            return refuse(
                "begins without a reach".to_owned(),
                "places before or behind that a query attends",
            );
        }
        for operand in [Operand::Query, Operand::Key, Operand::Value] {
            let Some((dims, dtype)) = self.given.get(&operand) else {
                return refuse(format!("no input {}", operand.name()), "queries, keys and values");
            };
            if *dtype != DType::F32 {
                return refuse(format!("an input {} of {dtype}", operand.name()), "f32");
            }
            self.place(operand).within(operand, self.sizes.of(operand), dims)?;
        }
        for (operand, added) in [(Operand::Bias, self.bias), (Operand::Mask, self.mask)] {
            match (self.given.get(&operand), added) {
                (Some((dims, dtype)), Some(added)) if *dtype == DType::F32 => {
                    added.within(operand, &self.sizes, dims)?;
                }
                (None, None) => {}
                (Some((_, dtype)), Some(_)) => {
                    return refuse(format!("an input {} of {dtype}", operand.name()), "f32 or booleans");
                }
                (found, _) => {
                    let found =
                        format!("{} input {}", if found.is_some() { "an" } else { "no" }, operand.name());
                    return refuse(found, "the inputs for which the operator has places");
                }
            }
        }
        for operand in [Operand::Begins, Operand::Ends] {
            let Some((dims, dtype)) = self.given.get(&operand) else { continue };
            let count = dims.elements();
            if count != 1 && count != batch || !matches!(dtype, DType::I32 | DType::I64 | DType::F32) {
                let found = format!("{count} {} of {dtype}", operand.name());
                return refuse(found, &format!("1 or {batch} of i32 or f32"));
            }
        }
        if self.parts != 1 {
            let count = self.parts * self.part_step();
            let fits = (2..=MOST_PARTS).contains(&self.parts) && self.output.elements() == count;
            let wanted = format!("2 to {MOST_PARTS} parts of {} elements each", self.part_step());
            return if fits {
                Ok(())
            } else {
                refuse(format!("{} parts in {}", self.parts, self.output), &wanted)
            };
        }
        self.dst.fills(self.sizes.of(Operand::Dst), &self.output)
    }

    /// Keys of a part, but for the last.
    fn span(&self) -> usize {
        self.sizes.keys.div_ceil(self.parts)
    }

    /// Elements of the results of a part: rows, each with the logarithm behind it.
    fn part_step(&self) -> usize {
        let Sizes { batch, heads, width, .. } = self.sizes;
        batch * heads * self.all_rows() * (width + self.strided().tail())
    }

    fn place(&self, operand: Operand) -> &RowStrides {
        match operand {
            Operand::Query => &self.query,
            Operand::Key => &self.key,
            Operand::Value => &self.value,
            _ => &self.dst,
        }
    }

    /// Whether rows begin at multiples of `unit` elements and are of whole ones.
    fn is_whole(&self, unit: usize) -> bool {
        let Sizes { depth, width, .. } = self.sizes;
        let places = [&self.query, &self.key, &self.value, &self.dst];
        let features = [depth, width].iter().all(|features| features.is_multiple_of(unit));
        features && places.iter().all(|place| place.is_whole(unit))
    }

    /// Whether rows are of whole vec4s.
    fn is_wide(&self) -> bool {
        self.is_whole(4)
    }

    /// Rows of queries that share a head of keys.
    fn all_rows(&self) -> usize {
        self.sizes.group * self.sizes.rows
    }
}
