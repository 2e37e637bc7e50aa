//! Rules of concatenations, selections and random numbers.

use super::along::Along;
use super::along::extent_of;
use super::inputs::{Inputs, find};
use super::{Own, Samples};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Node;
use crate::ops::concat::Concat;
use crate::ops::gather::{Gather, GatherNd};
use std::sync::Arc;

impl Samples<'_> {
    /// Values one behind the other along an axis; each sample has a copy of what all share.
    pub(super) fn joined(
        &mut self,
        node: &Node,
        inputs: Inputs<'_>,
        axis: isize,
    ) -> Result<Option<Vec<Own>>> {
        let dims = self.output_dims(node)?;
        let (rank, axis) = (dims.rank(), dims.axis("concat", axis)?);
        let all_at = |place: &usize| inputs.iter().all(|(_, own)| own.is_at(*place, rank));
        let best = (0..rank).filter(|&place| place != axis).find(all_at);
        let first = || inputs.iter().find_map(|(_, own)| own.at).unwrap_or(0);
        let (at, is_merged) = match best {
            Some(place) => (place, true),
            None if Self::has_room(rank) => ((0..rank).find(all_at).unwrap_or_else(first), false),
            None => return Ok(None),
        };
        let mut given = Vec::with_capacity(inputs.len());
        for &(operand, own) in inputs {
            given.push((operand, if is_merged { self.merged(own, at)? } else { self.apart(own, at)? }));
        }
        let axis = (axis + usize::from(!is_merged && axis >= at)) as isize;
        self.one_output(Arc::new(Concat { axis }), &given, dims, at)
    }

    pub(super) fn gather(
        &mut self,
        node: &Node,
        inputs: Inputs<'_>,
        options: Gather,
    ) -> Result<Option<Vec<Own>>> {
        let (Some(x), Some(indices)) = (find(inputs, Operand::Src), find(inputs, Operand::Arg(0))) else {
            return Ok(None);
        };
        let axis = x.dims.axis("gather", options.axis)?;
        let dims = self.output_dims(node)?;
        if options.batch_dims == 0 && x.at.is_none() {
            let at = indices.at.filter(|&at| at < indices.rank()).unwrap_or(0);
            let value = self.merged(indices, at)?;
            let given = [(Operand::Src, x.value), (Operand::Arg(0), value)];
            return self.one_output(Arc::new(options), &given, dims, axis + at);
        }
        if options.batch_dims == 0 && indices.at.is_none() {
            let behind = indices.rank();
            let along = Along {
                touched: (0..x.rank()).map(|own| own == axis).collect(),
                merged: Box::new(move |_| Arc::new(Gather { axis: axis as isize, ..options })),
                apart: Some(Box::new(move |at| {
                    Arc::new(Gather { axis: (axis + usize::from(axis >= at)) as isize, ..options })
                })),
                out: Box::new(move |at| if at > axis { at + behind - 1 } else { at }),
            };
            return self.along(node, inputs, x, &along);
        }
        if !Self::has_room(x.rank()) || !Self::has_room(indices.rank()) || !Self::has_room(dims.rank()) {
            return Ok(None);
        }
        let given = [(Operand::Src, self.apart(x, 0)?), (Operand::Arg(0), self.apart(indices, 0)?)];
        let operator = Gather { axis: axis as isize + 1, batch_dims: options.batch_dims + 1 };
        self.one_output(Arc::new(operator), &given, dims, 0)
    }

    pub(super) fn gather_nd(&mut self, node: &Node, inputs: Inputs<'_>) -> Result<Option<Vec<Own>>> {
        let (Some(x), Some(indices)) = (find(inputs, Operand::Src), find(inputs, Operand::Arg(0))) else {
            return Ok(None);
        };
        if x.at.is_some() || !Self::has_room(indices.rank()) {
            return Ok(None);
        }
        let (value, dims) = (self.apart(indices, 0)?, self.output_dims(node)?);
        let given = [(Operand::Src, x.value), (Operand::Arg(0), value)];
        self.one_output(Arc::new(GatherNd), &given, dims, 0)
    }

    /// Random numbers, one for each element of another value.
    pub(super) fn like(&mut self, node: &Node, inputs: Inputs<'_>) -> Result<Option<Vec<Own>>> {
        let (Some(key), Some(like)) = (find(inputs, Operand::Src), find(inputs, Operand::Arg(0))) else {
            return Ok(None);
        };
        let at = like.at.filter(|&at| at < like.rank().max(1)).unwrap_or(0);
        let value = self.merged(like, at)?;
        let given = [(Operand::Src, key.value), (Operand::Arg(0), value)];
        let dims = self.output_dims(node)?;
        self.one_output(Arc::clone(&node.operator), &given, dims, at)
    }

    /// Two operands whose rows belong together, those of each sample to each other.
    pub(super) fn rows_of_both(
        &mut self,
        node: &Node,
        inputs: Inputs<'_>,
        operands: [Operand; 2],
    ) -> Result<Option<Vec<Own>>> {
        let mut given = Vec::with_capacity(inputs.len());
        for operand in operands {
            let Some(own) = find(inputs, operand) else { return Ok(None) };
            if !Self::has_room(own.rank()) {
                return Ok(None);
            }
            given.push((operand, self.apart(own, 0)?));
        }
        let dims = self.output_dims(node)?;
        self.one_output(Arc::clone(&node.operator), &given, dims, 0)
    }

    /// Boxes that are chosen row by row.
    pub(super) fn suppress(&mut self, node: &Node, inputs: Inputs<'_>) -> Result<Option<Vec<Own>>> {
        let (Some(boxes), Some(scores)) = (find(inputs, Operand::Arg(0)), find(inputs, Operand::Arg(1)))
        else {
            return Ok(None);
        };
        let [of_boxes, of_scores] = [boxes, scores].map(|own| extent_of(own.dims.extents(), 0));
        let shared = boxes.at.is_none() && of_boxes == 1;
        if !shared && of_boxes != of_scores {
            return Ok(None);
        }
        let all = if shared { boxes.value } else { self.merged(boxes, 0)? };
        let given = [(Operand::Arg(0), all), (Operand::Arg(1), self.merged(scores, 0)?)];
        let dims = self.output_dims(node)?;
        self.one_output(Arc::clone(&node.operator), &given, dims, 0)
    }
}
