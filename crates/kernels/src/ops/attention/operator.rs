//! An attention as a node of a graph: `Query`, `Key`, `Value`, and where given `Bias`, `Mask`, `Begins` and `Ends`.

use super::{Added, Attention, AttentionOp, OP, RowStrides, Rules, Sizes};
use crate::dims::Dims;
use crate::dtype::{DType, Precision};
use crate::emit::{Bits, Operand};
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options, WithoutElements};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An attention whose operands' rows lie anywhere in what it is given: what passes over a network make.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Strided {
    pub sizes: Sizes,
    pub query: RowStrides,
    pub key: RowStrides,
    pub value: RowStrides,
    pub dst: RowStrides,
    pub bias: Option<Added>,
    pub mask: Option<Added>,
    pub rules: Rules,
    /// How many parts keys are taken in.
    pub parts: usize,
    pub output: Dims,
}

impl Strided {
    /// Elements behind a row of a part: its logarithm, in a vec4 where rows are of those.
    pub(crate) fn tail(&self) -> usize {
        let Sizes { depth, width, .. } = self.sizes;
        let places = [&self.query, &self.key, &self.value];
        let wide = [depth, width].iter().all(|features| features.is_multiple_of(4));
        if wide && places.iter().all(|place| place.is_whole(4)) { 4 } else { 1 }
    }

    /// The attention with keys in `parts`, whose results [`AttentionJoin`](crate::ops::attention_join::AttentionJoin) makes one.
    ///
    /// # Errors
    /// If there are more elements than a tensor may have.
    pub fn in_parts(&self, parts: usize) -> Result<Strided> {
        let Sizes { batch, heads, group, rows, width, .. } = self.sizes;
        let row = width + self.tail();
        let dst =
            RowStrides { first: 0, steps: [heads * group * rows * row, group * rows * row, rows * row, row] };
        let output = Dims::new(&[parts, batch * heads * group * rows, row])?;
        Ok(Strided { dst: dst.reduced(self.sizes.of(Operand::Dst)), parts, output, ..self.clone() })
    }
}

impl Attention {
    /// The attention with the place of each operand's rows.
    pub(crate) fn strided(&self, arguments: Arguments<'_>) -> Result<Strided> {
        let places = |operand: Operand| {
            let dims = arguments.need(OP, operand)?;
            match (dims.extents(), self.places_first) {
                (&[batch, heads, places, depth], false) | (&[batch, places, heads, depth], true) => {
                    Ok((dims, [batch, heads, places, depth]))
                }
                _ => {
                    let wanted = if self.places_first {
                        "batch places heads depth"
                    } else {
                        "batch heads places depth"
                    };
                    Err(Error::shape(OP, format!("a {} of {dims}", operand.name()), wanted))
                }
            }
        };
        let (q_dims, [batch, many, rows, depth]) = places(Operand::Query)?;
        let (k_dims, [k_batch, heads, keys, k_depth]) = places(Operand::Key)?;
        let (v_dims, [v_batch, v_heads, v_keys, width]) = places(Operand::Value)?;
        let alike =
            k_batch == batch && k_depth == depth && [v_batch, v_heads, v_keys] == [batch, heads, keys];
        if heads == 0 && many > 0 || !many.is_multiple_of(heads.max(1)) || !alike {
            let found = format!("queries {q_dims}, keys {k_dims} and values {v_dims}");
            return Err(Error::shape(
                OP,
                found,
                "one batch, heads that share those of keys, and as many values as keys",
            ));
        }
        let group = many / heads.max(1);
        let sizes = Sizes { batch, heads, group, rows, keys, depth, width };
        let place = |heads: usize, group: usize, places: usize, features: usize| {
            let (head, row) = match self.places_first {
                true => (features, heads * group * features),
                false => (places * features, features),
            };
            RowStrides { first: 0, steps: [heads * group * places * features, head * group, head, row] }
        };
        let output = match self.places_first {
            true => Dims::new(&[batch, rows, many, width])?,
            false => Dims::new(&[batch, many, rows, width])?,
        };
        let added = |operand: Operand| {
            arguments.get(operand).map(|dims| Added::broadcast(operand, &sizes, &dims)).transpose()
        };
        let scale = self.scale.unwrap_or(Bits(1.0 / (depth as f32).sqrt()));
        Ok(Strided {
            sizes,
            query: place(heads, group, rows, depth).reduced(sizes.of(Operand::Query)),
            key: place(heads, 1, keys, depth).reduced(sizes.of(Operand::Key)),
            value: place(heads, 1, keys, width).reduced(sizes.of(Operand::Value)),
            dst: place(heads, group, rows, width).reduced(sizes.of(Operand::Dst)),
            bias: added(Operand::Bias)?,
            mask: added(Operand::Mask)?,
            rules: Rules {
                scale,
                softcap: self.softcap,
                before: self.before,
                behind: self.behind,
                begin: self.begin,
                mask: self.mask,
                mask_adds: false,
                nan_if_nothing: self.nan_if_nothing,
            },
            parts: 1,
            output,
        })
    }
}

/// What a node is given, by operand. Booleans and narrow integers lie in rows as numbers.
fn given(arguments: Arguments<'_>) -> BTreeMap<Operand, (Dims, DType)> {
    let all = arguments.inputs.iter();
    crate::sorted::map(all.map(|argument| (argument.operand, (argument.dims, argument.dtype.word()))))
}

impl Options for Strided {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        Ok(Lowered::Op(Arc::new(AttentionOp::new(self, given(arguments), precision)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, _op: &dyn Op) -> Vec<Dims> {
        vec![self.output]
    }
}

impl Options for Attention {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, precision: Precision) -> Result<Lowered> {
        let op = AttentionOp::new(&self.strided(arguments)?, given(arguments), precision)?;
        Ok(Lowered::Op(Arc::new(op)))
    }

    fn without_elements(&self, _arguments: Arguments<'_>) -> Option<WithoutElements> {
        Some(WithoutElements::Number(if self.nan_if_nothing { f32::NAN } else { 0.0 }))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<AttentionOp>().map(|op| op.output).into_iter().collect()
    }
}
