//! Which rule a node has.

use super::along::Along;
use super::inputs::{Inputs, find};
use super::{Own, Samples};
use crate::dims::{Dim, Dims};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Node;
use crate::ops::arg::ArgReduce;
use crate::ops::attention::Attention;
use crate::ops::concat::Concat;
use crate::ops::cumsum::CumSum;
use crate::ops::dequantize::Dequantize;
use crate::ops::dynamic_quantize::DynamicQuantize;
use crate::ops::dynamic_range::DynamicRange;
use crate::ops::elementwise::Elementwise;
use crate::ops::gather::{Gather, GatherNd};
use crate::ops::gemm::Gemm;
use crate::ops::integer::Integer;
use crate::ops::normalize::Normalize;
use crate::ops::one_hot::OneHot;
use crate::ops::operator::Operator;
use crate::ops::quantize::Quantize;
use crate::ops::quantized_binary::QuantizedBinary;
use crate::ops::quantized_gemm::QuantizedGemm;
use crate::ops::quantized_lookup::QuantizedLookup;
use crate::ops::random::Numbered;
use crate::ops::reduce::Reduce;
use crate::ops::remap::{
    AxisRange, BatchToSpace, BroadcastTo, DepthToSpace, Pad, Reverse, SpaceToBatch, SpaceToDepth,
    StridedSlice, Tile, Transpose,
};
use crate::ops::softmax::Softmax;
use crate::ops::suppress::Suppress;
use crate::ops::top_k::TopK;
use crate::ops::view::{Reshape, Slice};
use std::any::Any;
use std::sync::Arc;

/// The axes as places among the extents; none if one is not there.
pub(super) fn places(dims: Dims, axes: &[isize]) -> Option<Vec<usize>> {
    axes.iter().map(|&axis| dims.axis("axes", axis).ok()).collect()
}

fn marked(rank: usize, axes: &[usize]) -> Vec<bool> {
    (0..rank).map(|axis| axes.contains(&axis)).collect()
}

/// Axes as they are behind a new one before axis `at`.
fn shifted(axes: &[usize], at: usize) -> Vec<isize> {
    axes.iter().map(|&axis| (axis + usize::from(axis >= at)) as isize).collect()
}

fn signed(axes: &[usize]) -> Vec<isize> {
    axes.iter().map(|&axis| axis as isize).collect()
}

fn with<T: Clone>(all: &[T], at: usize, new: T) -> Vec<T> {
    let (before, behind) = all.split_at(at.min(all.len()));
    [before, &[new], behind].concat()
}

impl Samples<'_> {
    /// The outputs of a node of which an operand is each sample's own; nothing if there is no rule for it.
    pub(super) fn by_rule(&mut self, node: &Node, inputs: Inputs<'_>) -> Result<Option<Vec<Own>>> {
        let operator: &dyn Any = &*node.operator;
        if operator.is::<Elementwise>() || operator.is::<Integer>() {
            return self.broadcast(node, inputs);
        }
        if operator.is::<QuantizedBinary>() {
            return self.elements(node, inputs);
        }
        if let Some(Concat { axis }) = operator.downcast_ref() {
            return self.joined(node, inputs, *axis);
        }
        if let Some(options) = operator.downcast_ref::<Gemm>() {
            return self.product(node, inputs, *options);
        }
        if operator.is::<Attention>() {
            return self.attention(node, inputs);
        }
        if operator.is::<Numbered>() {
            return self.like(node, inputs);
        }
        if let Some(options) = operator.downcast_ref::<Gather>() {
            return self.gather(node, inputs, *options);
        }
        if operator.is::<GatherNd>() {
            return self.gather_nd(node, inputs);
        }
        if operator.is::<DynamicQuantize>() {
            return self.rows_of_both(node, inputs, [Operand::Src, Operand::Arg(0)]);
        }
        if operator.is::<Suppress>() {
            return self.suppress(node, inputs);
        }
        let Some(x) = find(inputs, Operand::Src) else { return Ok(None) };
        if is_of_maps(&*node.operator) {
            return self.maps(node, inputs, x);
        }
        if let Some(Reshape { target }) = operator.downcast_ref() {
            return self.reshape(node, x, target);
        }
        if let Some(BroadcastTo { target }) = operator.downcast_ref() {
            return self.broadcast_to(node, x, target);
        }
        if let Some(options) = operator.downcast_ref::<SpaceToBatch>() {
            return self.space_to_batch(node, x, options);
        }
        if let Some(options) = operator.downcast_ref::<BatchToSpace>() {
            return self.batch_to_space(node, x, options);
        }
        match axes(operator, x.dims, self.output_dims(node)?) {
            Some(along) => self.along(node, inputs, x, &along),
            None => Ok(None),
        }
    }
}

/// Whether it computes each of the maps of an input of rank 4 by itself.
fn is_of_maps(operator: &dyn Operator) -> bool {
    let convolutions = ["conv2d", "pointwise", "depthwise", "transposed_conv2d"];
    let of_bytes = ["quantized_conv2d", "quantized_depthwise", "quantized_pool", "dynamic_conv2d"];
    let name = operator.name();
    convolutions.contains(&name) || of_bytes.contains(&name) || ["pool", "resize"].contains(&name)
}

/// Along which axes of its input an operator moves or mixes elements, if it treats those of the other axes apart from each
/// other.
fn axes(operator: &dyn Any, dims: Dims, output: Dims) -> Option<Along> {
    let rank = dims.rank();
    let last = rank.checked_sub(1)?;
    let alike = |touched: Vec<bool>, operator: Arc<dyn Operator>| Along {
        touched,
        merged: Box::new({
            let operator = Arc::clone(&operator);
            move |_| Arc::clone(&operator)
        }),
        apart: Some(Box::new(move |_| Arc::clone(&operator))),
        out: Box::new(|at| at),
    };
    let on_axis = |axis: usize, at: Box<dyn Fn(isize) -> Arc<dyn Operator>>| {
        let at: Arc<dyn Fn(isize) -> Arc<dyn Operator>> = Arc::from(at);
        let of_merged = Arc::clone(&at);
        Along {
            touched: marked(rank, &[axis]),
            merged: Box::new(move |_| of_merged(axis as isize)),
            apart: Some(Box::new(move |place| at((axis + usize::from(axis >= place)) as isize))),
            out: Box::new(|at| at),
        }
    };
    if let Some(own) = operator.downcast_ref::<Softmax>() {
        let (own, axis) = (*own, dims.axis("softmax", own.axis).ok()?);
        return Some(on_axis(axis, Box::new(move |axis| Arc::new(Softmax { axis, ..own }))));
    }
    if let Some(own) = operator.downcast_ref::<CumSum>() {
        let (own, axis) = (*own, dims.axis("cumsum", own.axis).ok()?);
        return Some(on_axis(axis, Box::new(move |axis| Arc::new(CumSum { axis, ..own }))));
    }
    if let Some(own) = operator.downcast_ref::<ArgReduce>() {
        let (own, axis) = (*own, dims.axis("arg", own.axis).ok()?);
        let along = on_axis(axis, Box::new(move |axis| Arc::new(ArgReduce { axis, ..own })));
        let removed = usize::from(!own.keep_dims);
        return Some(Along { out: Box::new(move |at| if at > axis { at - removed } else { at }), ..along });
    }
    if let Some(own) = operator.downcast_ref::<TopK>() {
        return Some(alike(marked(rank, &[last]), Arc::new(*own)));
    }
    if let Some(own) = operator.downcast_ref::<Quantize>() {
        return Some(alike(marked(rank, &[last]), Arc::new(*own)));
    }
    if let Some(own) = operator.downcast_ref::<Dequantize>() {
        return Some(alike(marked(rank, &[last]), Arc::new(*own)));
    }
    if let Some(own) = operator.downcast_ref::<DynamicRange>() {
        return Some(alike(marked(rank, &[last]), Arc::new(*own)));
    }
    if let Some(own) = operator.downcast_ref::<QuantizedGemm>() {
        return Some(alike(marked(rank, &[last]), Arc::new(*own)));
    }
    if let Some(own) = operator.downcast_ref::<QuantizedLookup>() {
        return Some(alike(marked(rank, &[]), Arc::new(*own)));
    }
    if let Some(own) = operator.downcast_ref::<Reduce>() {
        let axes = places(dims, &own.axes)?;
        let of = |own: &Reduce, axes: Vec<isize>| Arc::new(Reduce { axes, ..own.clone() });
        let (same, apart, gone) = (of(own, signed(&axes)), own.clone(), axes.clone());
        let keeps = own.keep_dims;
        return Some(Along {
            touched: marked(rank, &axes),
            merged: Box::new(move |_| same.clone()),
            apart: Some(Box::new(move |at| of(&apart, shifted(&axes, at)))),
            out: Box::new(move |at| {
                let removed = (0..at).filter(|axis| !keeps && gone.contains(axis)).count();
                at - removed
            }),
        });
    }
    if let Some(own) = operator.downcast_ref::<Normalize>() {
        let axes = places(dims, &own.axes)?;
        // A scale and a bias are those of the last axis.
        let touched = marked(rank, &[&axes[..], &[last]].concat());
        let of = |own: &Normalize, axes: Vec<isize>| Arc::new(Normalize { axes, ..own.clone() });
        let (same, apart) = (of(own, signed(&axes)), own.clone());
        return Some(Along {
            touched,
            merged: Box::new(move |_| same.clone()),
            apart: Some(Box::new(move |at| of(&apart, shifted(&axes, at)))),
            out: Box::new(|at| at),
        });
    }
    if let Some(own) = operator.downcast_ref::<OneHot>() {
        let (own, axis) = (*own, output.axis("one_hot", own.axis).ok()?);
        return Some(Along {
            touched: marked(rank, &[]),
            merged: Box::new(move |_| Arc::new(OneHot { axis: axis as isize, ..own })),
            apart: None,
            out: Box::new(move |at| at + usize::from(axis <= at)),
        });
    }
    moves(operator, dims, output)
}

/// [`axes`] of what only moves elements.
fn moves(operator: &dyn Any, dims: Dims, output: Dims) -> Option<Along> {
    let rank = dims.rank();
    if let Some(own) = operator.downcast_ref::<Transpose>() {
        let (own, permutation) = (own.clone(), own.permutation.clone());
        return Some(Along {
            touched: marked(rank, &[]),
            merged: Box::new(move |_| Arc::new(own.clone())),
            apart: None,
            out: Box::new(move |at| permutation.iter().position(|&axis| axis == at).unwrap_or(at)),
        });
    }
    if let Some(own) = operator.downcast_ref::<StridedSlice>() {
        let whole = |(axis, range): (usize, &AxisRange)| {
            range.step == 1 && dims.extents().get(axis) == output.extents().get(axis)
        };
        let touched: Vec<bool> = own.ranges.iter().enumerate().map(|place| !whole(place)).collect();
        return Some(of_ranges(own.ranges.clone(), touched));
    }
    if let Some(&Slice { axis, begin, end }) = operator.downcast_ref() {
        let mut ranges = vec![AxisRange::ALL; rank];
        *ranges.get_mut(axis)? = AxisRange::new(begin.try_into().ok()?, end.try_into().ok()?);
        let touched = marked(rank, if dims == output { &[] } else { std::slice::from_ref(&axis) });
        return Some(of_ranges(ranges, touched));
    }
    if let Some(own) = operator.downcast_ref::<Pad>() {
        let (same, apart) = (own.clone(), own.clone());
        return Some(Along {
            touched: own.before.iter().zip(&own.after).map(|(before, after)| before + after > 0).collect(),
            merged: Box::new(move |_| Arc::new(same.clone())),
            apart: Some(Box::new(move |at| {
                let (before, after) = (with(&apart.before, at, 0), with(&apart.after, at, 0));
                Arc::new(Pad { before, after, mode: apart.mode })
            })),
            out: Box::new(|at| at),
        });
    }
    if let Some(own) = operator.downcast_ref::<Tile>() {
        let (same, apart) = (own.clone(), own.clone());
        return Some(Along {
            touched: own.repeats.iter().map(|&repeats| repeats > 1).collect(),
            merged: Box::new(move |_| Arc::new(same.clone())),
            apart: Some(Box::new(move |at| Arc::new(Tile { repeats: with(&apart.repeats, at, 1) }))),
            out: Box::new(|at| at),
        });
    }
    if let Some(own) = operator.downcast_ref::<Reverse>() {
        let mut axes = places(dims, &own.axes)?;
        axes.retain(|&axis| dims.extents().get(axis) != Some(&1));
        let same = signed(&axes);
        return Some(Along {
            touched: marked(rank, &axes),
            merged: Box::new(move |_| Arc::new(Reverse { axes: same.clone() })),
            apart: Some(Box::new(move |at| Arc::new(Reverse { axes: shifted(&axes, at) }))),
            out: Box::new(|at| at),
        });
    }
    let own: Arc<dyn Operator> = match operator.downcast_ref::<DepthToSpace>() {
        Some(own) => Arc::new(*own),
        None => Arc::new(*operator.downcast_ref::<SpaceToDepth>()?),
    };
    let touched = (0..rank).map(|axis| axis > 0).collect();
    Some(Along { touched, merged: Box::new(move |_| Arc::clone(&own)), apart: None, out: Box::new(|at| at) })
}

fn of_ranges(ranges: Vec<AxisRange>, touched: Vec<bool>) -> Along {
    let apart = ranges.clone();
    Along {
        touched,
        merged: Box::new(move |at| {
            let mut ranges = ranges.clone();
            ranges.iter_mut().skip(at).take(1).for_each(|range| *range = AxisRange::ALL);
            Arc::new(StridedSlice { ranges })
        }),
        apart: Some(Box::new(move |at| Arc::new(StridedSlice { ranges: with(&apart, at, AxisRange::ALL) }))),
        out: Box::new(|at| at),
    }
}

impl Samples<'_> {
    /// Shows elements in other extents: the samples' axis is where as many elements lie before it.
    fn reshape(&mut self, node: &Node, x: Own, target: &[Dim]) -> Result<Option<Vec<Own>>> {
        let dims = self.output_dims(node)?;
        let Some(at) = x.at else { return Ok(None) };
        let elements = |extents: Option<&[usize]>| extents.map_or(1, super::place::elements);
        let before = elements(x.dims.extents().get(..at));
        let place = (0..dims.rank().max(1)).find(|&axis| elements(dims.extents().get(..axis)) == before);
        let (value, place) = match place {
            Some(place) => (self.ordered(x, at)?, place),
            None => (self.ordered(x, 0)?, 0),
        };
        let mut target = target.to_vec();
        let grown = dims.extents().get(place).copied().unwrap_or(1) * self.count;
        match target.get_mut(place) {
            Some(Dim::Rest) => {}
            Some(dim) => *dim = Dim::Fixed(grown),
            None => target.push(Dim::Fixed(grown)),
        }
        self.one_output(Arc::new(Reshape { target }), &[(Operand::Src, value)], dims, place)
    }

    /// The one output of the current node, with the samples before axis `at` of the dimensions that it has for one.
    pub(super) fn one_output(
        &mut self,
        operator: Arc<dyn Operator>,
        inputs: &[(Operand, crate::graph::Value)],
        dims: Dims,
        at: usize,
    ) -> Result<Option<Vec<Own>>> {
        let written = self.add(operator, inputs)?;
        Ok(Some(written.into_iter().map(|value| Own { value, dims, at: Some(at) }).collect()))
    }
}
