//! Rules of operators that treat the elements of some axes apart from each other.

use super::inputs::{Inputs, find};
use super::{Own, Samples};
use crate::dims::Dim;
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Node;
use crate::ops::operator::Operator;
use crate::ops::remap::{BatchToSpace, BroadcastTo, SpaceToBatch};
use std::sync::Arc;

/// An operator by an axis of the samples.
type ByAxis = Box<dyn Fn(usize) -> Arc<dyn Operator>>;

/// How an operator goes along the axes of its input.
pub(super) struct Along {
    /// Along which axes it moves or mixes elements.
    pub(super) touched: Vec<bool>,
    /// The operator where the samples lie along this axis.
    pub(super) merged: ByAxis,
    /// The operator where the samples have an axis of their own before this one, if there is one.
    pub(super) apart: Option<ByAxis>,
    /// Before which axis of its output what lies before this one of its input is.
    pub(super) out: Box<dyn Fn(usize) -> usize>,
}

impl Samples<'_> {
    /// What lies along axes that the operator does not touch; other operands are the same for all samples, or a residual.
    pub(super) fn along(
        &mut self,
        node: &Node,
        inputs: Inputs<'_>,
        x: Own,
        along: &Along,
    ) -> Result<Option<Vec<Own>>> {
        let others = || inputs.iter().filter(|(operand, _)| *operand != Operand::Src);
        if others().any(|(operand, own)| own.at.is_some() && *operand != Operand::Residual) {
            return Ok(None);
        }
        // What only a residual has of each sample's own.
        let x = Own { at: x.at.or(Some(0)), value: self.own_of(x)?, ..x };
        let (dims, rank) = (self.output_dims(node)?, x.rank());
        let extents = x.dims.extents();
        let free = |axis: &usize| x.is_at(*axis, rank) && along.touched.get(*axis) == Some(&false);
        let best = (0..rank).filter(free).find(|&axis| extents.get(axis) == Some(&1));
        let best = best.or_else(|| x.at.filter(free)).or_else(|| (0..rank).find(free));
        let (value, operator, at, merged) = match (best, &along.apart) {
            (Some(axis), _) => (self.merged(x, axis)?, (along.merged)(axis), axis, true),
            (None, Some(apart)) if Self::has_room(rank) => {
                let at = x.at.filter(|&at| at < rank).unwrap_or(0);
                (self.apart(x, at)?, apart(at), at, false)
            }
            (None, _) => {
                let Some(axis) = along.touched.iter().position(|touched| !touched) else { return Ok(None) };
                (self.merged(x, axis)?, (along.merged)(axis), axis, true)
            }
        };
        let out = (along.out)(at);
        let mut given = vec![(Operand::Src, value)];
        for &(operand, own) in others() {
            let value = match (operand, merged) {
                (Operand::Residual, true) => self.merged(own, out)?,
                (Operand::Residual, false) => self.apart(own, out)?,
                _ => own.value,
            };
            given.push((operand, value));
        }
        self.one_output(operator, &given, dims, out)
    }

    /// A value of each sample, made of one that all share where it must.
    fn own_of(&mut self, own: Own) -> Result<crate::graph::Value> {
        if own.at.is_some() { Ok(own.value) } else { self.ordered(own, 0) }
    }

    /// Feature maps, each of which is computed by itself: any order of those along the outermost axis is right.
    pub(super) fn maps(&mut self, node: &Node, inputs: Inputs<'_>, x: Own) -> Result<Option<Vec<Own>>> {
        let each = [Operand::Src, Operand::Residual, Operand::Arg(0)];
        let odd = |(operand, own): &&(Operand, Own)| own.at.is_some() && !each.contains(operand);
        if x.rank() != 4 || inputs.iter().any(|input| odd(&input)) {
            return Ok(None);
        }
        // The ranges of a run belong to neighbouring pixels, those of each sample to its own.
        let ranged = find(inputs, Operand::Arg(0)).is_some();
        let at = usize::from(!ranged && x.at.is_some() && !x.is_at(0, 4) && x.is_at(1, 4));
        let mut given = Vec::with_capacity(inputs.len());
        for &(operand, own) in inputs {
            let value = if each.contains(&operand) {
                let value = self.ordered(own, at)?;
                let extents = own.dims.extents();
                // One range for a whole sample is one for each of its maps.
                let is_range = operand == Operand::Arg(0) && own.rank() == 1;
                let wanted = match is_range {
                    true => super::place::inserted(extents, 0, self.count),
                    false => super::place::grown(extents, 0, self.count),
                };
                self.shaped(value, &wanted)?
            } else {
                own.value
            };
            given.push((operand, value));
        }
        let dims = self.output_dims(node)?;
        self.one_output(Arc::clone(&node.operator), &given, dims, at)
    }

    /// Operands by numpy's rule for extents that differ.
    pub(super) fn broadcast(&mut self, node: &Node, inputs: Inputs<'_>) -> Result<Option<Vec<Own>>> {
        let dims = self.output_dims(node)?;
        let rank = dims.rank();
        let owns = || inputs.iter().map(|(_, own)| own);
        let all_at = |axis: usize| owns().all(|own| own.is_at(axis, rank));
        let extent = |own: &Own, axis: usize| own.aligned(rank).get(axis).copied().unwrap_or(1);
        let is_batch = |axis: usize| extent_of(dims.extents(), axis) == 1;
        // What all samples share goes with each of them where it has one element along the axis.
        let is_alike = |axis: usize| {
            owns().all(|own| match own.at {
                Some(_) => extent(own, axis) == extent_of(dims.extents(), axis),
                None => extent(own, axis) == 1,
            })
        };
        let merged = (0..rank.max(1)).filter(|&axis| all_at(axis)).collect::<Vec<_>>();
        let best = merged.iter().find(|&&axis| is_batch(axis));
        let best = best.or_else(|| merged.iter().find(|&&axis| is_alike(axis))).copied();
        let apart = (0..=rank).find(|&axis| all_at(axis));
        let first =
            || owns().find_map(|own| own.at.map(|at| at + rank.saturating_sub(own.rank()))).unwrap_or(0);
        let (at, is_merged) = match best {
            Some(axis) => (axis, true),
            None if Self::has_room(rank) => (apart.unwrap_or_else(first), false),
            None => return Ok(None),
        };
        let mut given = Vec::with_capacity(inputs.len());
        for &(operand, own) in inputs {
            let value = match is_merged {
                true => self.merged_aligned(own, at, rank)?,
                false => self.apart_aligned(own, at, rank)?,
            };
            given.push((operand, value));
        }
        self.one_output(Arc::clone(&node.operator), &given, dims, at)
    }

    /// Operands of the same extents, element by element.
    pub(super) fn elements(&mut self, node: &Node, inputs: Inputs<'_>) -> Result<Option<Vec<Own>>> {
        let dims = self.output_dims(node)?;
        let mut given = Vec::with_capacity(inputs.len());
        for &(operand, own) in inputs {
            if own.dims != dims {
                return Ok(None);
            }
            given.push((operand, self.merged(own, 0)?));
        }
        self.one_output(Arc::clone(&node.operator), &given, dims, 0)
    }

    pub(super) fn broadcast_to(&mut self, node: &Node, x: Own, target: &[Dim]) -> Result<Option<Vec<Own>>> {
        let dims = self.output_dims(node)?;
        let rank = dims.rank();
        let own = x.aligned(rank);
        let stays = |axis: &usize| x.is_at(*axis, rank) && own.get(*axis) == dims.extents().get(*axis);
        let mut target = target.to_vec();
        if let Some(axis) = (0..rank).find(stays) {
            let value = self.merged_aligned(x, axis, rank)?;
            if let Some(dim) = target.get_mut(axis) {
                *dim = Dim::Fixed(extent_of(dims.extents(), axis) * self.count);
            }
            return self.one_output(Arc::new(BroadcastTo { target }), &[(Operand::Src, value)], dims, axis);
        }
        if !Self::has_room(rank) {
            return Ok(None);
        }
        let at = x.at.unwrap_or(0) + rank.saturating_sub(x.rank());
        let value = self.apart_aligned(x, at, rank)?;
        target.insert(at.min(target.len()), Dim::Fixed(self.count));
        self.one_output(Arc::new(BroadcastTo { target }), &[(Operand::Src, value)], dims, at)
    }

    /// The blocks of a map, one behind the other: of each block all samples.
    pub(super) fn space_to_batch(
        &mut self,
        node: &Node,
        x: Own,
        options: &SpaceToBatch,
    ) -> Result<Option<Vec<Own>>> {
        if extent_of(x.dims.extents(), 0) != 1 || x.rank() < 2 {
            return Ok(None);
        }
        let (value, dims) = (self.merged(x, 0)?, self.output_dims(node)?);
        self.one_output(Arc::new(options.clone()), &[(Operand::Src, value)], dims, 1)
    }

    pub(super) fn batch_to_space(
        &mut self,
        node: &Node,
        x: Own,
        options: &BatchToSpace,
    ) -> Result<Option<Vec<Own>>> {
        let dims = self.output_dims(node)?;
        if extent_of(dims.extents(), 0) != 1 || x.rank() < 2 {
            return Ok(None);
        }
        let value = self.ordered(x, 1)?;
        let value = self.shaped(value, &super::place::grown(x.dims.extents(), 0, self.count))?;
        self.one_output(Arc::new(options.clone()), &[(Operand::Src, value)], dims, 0)
    }
}

pub(super) fn extent_of(extents: &[usize], axis: usize) -> usize {
    extents.get(axis).copied().unwrap_or(1)
}
