//! The methods that add nodes which move elements.

use super::{Extras, Graph, Value};
use crate::dims::Dim;
use crate::emit::{Bits, Operand};
use crate::error::{Error, Result};
use crate::ops::concat::{Concat, MAX_INPUTS};
use crate::ops::cumsum::CumSum;
use crate::ops::gather::{Gather, GatherNd};
use crate::ops::one_hot::OneHot;
use crate::ops::operator::Operator;
use crate::ops::remap::{
    AxisRange, BatchToSpace, BroadcastTo, DepthToSpace, Pad, PadMode, Reverse, SpaceToBatch, SpaceToDepth,
    StridedSlice, Tile, Transpose,
};
use crate::ops::suppress::Suppress;
use crate::ops::top_k::TopK;
use crate::ops::update_slice::UpdateSlice;
use std::sync::Arc;

impl Graph {
    /// `x` with its axes in another order: axis `i` of the result is axis `permutation[i]` of `x`. No kernel
    /// runs where only axes of one element change places.
    ///
    /// ```
    /// use diptych::{Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 7, 9, 16))?;
    /// let y = graph.transpose("planes", x, &[0, 3, 1, 2])?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 16, 7, 9]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the permutation does not have each axis once.
    pub fn transpose(&mut self, name: &str, x: Value, permutation: &[usize]) -> Result<Value> {
        self.moved(name, x, Transpose { permutation: permutation.to_vec() })
    }

    /// Some of the elements along each axis; the result has the rank of `x`. No kernel runs where they lie in
    /// one piece.
    ///
    /// ```
    /// use diptych::nn::AxisRange;
    /// use diptych::{Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 7, 9, 16))?;
    /// let odd = AxisRange { begin: Some(1), end: None, step: 2 };
    /// let y = graph.strided_slice("y", x, &[AxisRange::ALL, odd, AxisRange::new(0, -1), AxisRange::ALL])?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 3, 8, 16]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is not one range for each axis, or one of them has step 0.
    pub fn strided_slice(&mut self, name: &str, x: Value, ranges: &[AxisRange]) -> Result<Value> {
        self.moved(name, x, StridedSlice { ranges: ranges.to_vec() })
    }

    /// `x` with elements before and after those of each axis.
    ///
    /// ```
    /// use diptych::nn::PadMode;
    /// use diptych::{Bits, Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 4, 4, 2])?)?;
    /// let y = graph.pad("y", x, &[0, 1, 1, 0], &[0, 1, 1, 0], PadMode::Constant(Bits(0.0)))?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 6, 6, 2]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is not one number for each axis, or the mode does not have so many elements.
    pub fn pad(
        &mut self,
        name: &str,
        x: Value,
        before: &[usize],
        after: &[usize],
        mode: PadMode,
    ) -> Result<Value> {
        self.moved(name, x, Pad { before: before.to_vec(), after: after.to_vec(), mode })
    }

    /// `x` several times along each axis.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[2, 3])?)?;
    /// let y = graph.tile("y", x, &[2, 1])?;
    /// assert_eq!(graph.dims(y)?.extents(), [4, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is not one number for each axis.
    pub fn tile(&mut self, name: &str, x: Value, repeats: &[usize]) -> Result<Value> {
        self.moved(name, x, Tile { repeats: repeats.to_vec() })
    }

    /// `x` with axes of one element as often as wanted, and further axes in front. [`Dim::Rest`] stands for an
    /// extent of `x`, any number of times.
    ///
    /// ```
    /// use diptych::{Dim, Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 3])?)?;
    /// let y = graph.broadcast_to("y", x, &[2.into(), 5.into(), Dim::Rest])?;
    /// assert_eq!(graph.dims(y)?.extents(), [2, 5, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an axis of several elements would have another extent.
    pub fn broadcast_to(&mut self, name: &str, x: Value, target: &[Dim]) -> Result<Value> {
        self.moved(name, x, BroadcastTo { target: target.to_vec() })
    }

    /// `x` backwards along some axes; negative ones count from the last.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[2, 3])?)?;
    /// let y = graph.reverse("y", x, &[-1])?;
    /// assert_eq!(graph.dims(y)?.extents(), [2, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` does not have such an axis, or one is named twice.
    pub fn reverse(&mut self, name: &str, x: Value, axes: &[isize]) -> Result<Value> {
        self.moved(name, x, Reverse { axes: axes.to_vec() })
    }

    /// Groups of channels of `x` as blocks of pixels, `block` rows and columns each: see [`DepthToSpace`].
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 4, 4, 12])?)?;
    /// let y = graph.depth_to_space("y", x, 2)?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 8, 8, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` is not of rank 4, or does not have that many groups of channels.
    pub fn depth_to_space(&mut self, name: &str, x: Value, block: usize) -> Result<Value> {
        self.moved(name, x, DepthToSpace { block })
    }

    /// Blocks of pixels of `x` as groups of channels: the inverse of [`Graph::depth_to_space`].
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 8, 8, 3])?)?;
    /// let y = graph.space_to_depth("y", x, 2)?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 4, 4, 12]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` is not of rank 4, or not made of whole blocks.
    pub fn space_to_depth(&mut self, name: &str, x: Value, block: usize) -> Result<Value> {
        self.moved(name, x, SpaceToDepth { block })
    }

    /// Blocks of elements along the axes behind the batch as images of their own, zeros added before and after
    /// these axes: see [`SpaceToBatch`]. A border is a node of its own, `{name}.pad`.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 7, 8, 3])?)?;
    /// let y = graph.space_to_batch("y", x, &[2, 2], &[0, 0], &[1, 0])?;
    /// assert_eq!(graph.dims(y)?.extents(), [4, 4, 4, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `block`, `before` and `after` have different lengths, there are fewer axes, or blocks are not whole.
    pub fn space_to_batch(
        &mut self,
        name: &str,
        x: Value,
        block: &[usize],
        before: &[usize],
        after: &[usize],
    ) -> Result<Value> {
        let operator = SpaceToBatch { block: block.to_vec() };
        check_lengths("space_to_batch", block, [before, after]).map_err(|error| error.at_node(name))?;
        if before.iter().chain(after).all(|&added| added == 0) {
            return self.moved(name, x, operator);
        }
        let rank = self.info(x)?.dims.rank();
        let all = |own: &[usize]| {
            let behind = rank.saturating_sub(1 + own.len());
            [&[0][..], own, &vec![0; behind]].concat()
        };
        let (before, after) = (all(before), all(after));
        let mode = PadMode::Constant(Bits(0.0));
        self.both(name, x, ("pad", Arc::new(Pad { before, after, mode })), ("", Arc::new(operator)))
    }

    /// The inverse of [`Graph::space_to_batch`], from whose result elements are cut before and after each axis
    /// of a block. Such a cut is a node of its own, and the blocks are `{name}.blocks`.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[4, 4, 4, 3])?)?;
    /// let y = graph.batch_to_space("y", x, &[2, 2], &[0, 0], &[1, 0])?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 7, 8, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `block` and the cuts have different lengths, there are fewer axes, or the batch is not made of whole
    /// blocks.
    pub fn batch_to_space(
        &mut self,
        name: &str,
        x: Value,
        block: &[usize],
        crops_before: &[usize],
        crops_after: &[usize],
    ) -> Result<Value> {
        let operator = BatchToSpace { block: block.to_vec() };
        check_lengths("batch_to_space", block, [crops_before, crops_after])
            .map_err(|error| error.at_node(name))?;
        if crops_before.iter().chain(crops_after).all(|&cut| cut == 0) {
            return self.moved(name, x, operator);
        }
        let dims = self.info(x)?.dims;
        let crops = crops_before.iter().zip(crops_after).zip(block).zip(dims.extents().iter().skip(1));
        for (((&before, &after), &block), &extent) in crops {
            if before.saturating_add(after) > extent.saturating_mul(block) {
                let found =
                    format!("crops of {before} and {after} of {} elements", extent.saturating_mul(block));
                return Err(Error::shape("batch_to_space", found, "no more than there are").at_node(name));
            }
        }
        let rank = dims.rank();
        let mut ranges = vec![AxisRange::ALL; rank.max(1 + crops_before.len().max(crops_after.len()))];
        for (range, &cut) in ranges.iter_mut().skip(1).zip(crops_before) {
            range.begin = Some(cut.min(i32::MAX as usize) as isize);
        }
        for (range, &cut) in ranges.iter_mut().skip(1).zip(crops_after).filter(|(_, cut)| **cut > 0) {
            range.end = Some(-(cut.min(i32::MAX as usize) as isize));
        }
        self.both(name, x, ("blocks", Arc::new(operator)), ("", Arc::new(StridedSlice { ranges })))
    }

    /// Values one behind the other along an axis; a negative one counts from the last. Of more than 7, several
    /// are joined first, in nodes `{name}.0` and so on. Where the values lie in the result in one piece, they
    /// are written there, and no kernel runs.
    ///
    /// ```
    /// use diptych::{Graph, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let a = graph.input("a", Shape::nhwc(1, 7, 9, 16))?;
    /// let b = graph.input("b", Shape::nhwc(1, 7, 9, 5))?;
    /// let y = graph.concat("y", &[a, b, a], -1)?;
    /// assert_eq!(graph.dims(y)?.extents(), [1, 7, 9, 37]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no values, or their extents differ along another axis.
    pub fn concat(&mut self, name: &str, values: &[Value], axis: isize) -> Result<Value> {
        self.or_nothing(|graph| {
            let (mut values, mut count) = (graph.of_one_word(values)?, 0);
            while values.len() > MAX_INPUTS {
                let mut joined = Vec::with_capacity(values.len().div_ceil(MAX_INPUTS));
                for some in values.chunks(MAX_INPUTS) {
                    match some {
                        [one] => joined.push(*one),
                        _ => joined.push(graph.joined(&format!("{name}.{count}"), some, axis)?),
                    }
                    count += 1;
                }
                values = joined;
            }
            graph.joined(name, &values, axis)
        })
    }

    /// Values of the same dimensions along a new axis, counted in the result: [`Graph::concat`] behind nodes
    /// `{name}.x0` and so on that give each value this axis.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[2, 3])?)?;
    /// let y = graph.stack("y", &[x, x], 0)?;
    /// assert_eq!(graph.dims(y)?.extents(), [2, 2, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no values, their dimensions differ, or the result has no such axis.
    pub fn stack(&mut self, name: &str, values: &[Value], axis: isize) -> Result<Value> {
        self.or_nothing(|graph| {
            let mut rows = Vec::with_capacity(values.len());
            for (index, &value) in values.iter().enumerate() {
                let dims = graph.info(value)?.dims;
                let rank = dims.rank() as isize;
                let place = if axis < 0 { axis.saturating_add(rank + 1) } else { axis };
                let place = usize::try_from(place).ok().filter(|place| *place <= dims.rank());
                let place = place.ok_or_else(|| {
                    let wanted = format!("-{0} to {rank}", rank + 1);
                    Error::shape("stack", format!("axis {axis} for {dims}"), wanted).at_node(name)
                })?;
                let mut target: Vec<Dim> = dims.extents().iter().map(|&extent| extent.into()).collect();
                target.insert(place, Dim::Fixed(1));
                rows.push(graph.reshape(&format!("{name}.x{index}"), value, &target)?);
            }
            graph.concat(name, &rows, axis)
        })
    }

    /// `x` in parts of these sizes along an axis, nodes `{name}.0` and so on.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[2, 5])?)?;
    /// let parts = graph.split("y", x, 1, &[2, 3])?;
    /// assert_eq!(graph.dims(parts[1])?.extents(), [2, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` does not have the axis, or the sizes are not its extent together.
    pub fn split(&mut self, name: &str, x: Value, axis: isize, sizes: &[usize]) -> Result<Vec<Value>> {
        let dims = self.info(x)?.dims;
        let place = dims.axis("split", axis).map_err(|error| error.at_node(name))?;
        let whole = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
        if whole != Some(dims.extents()[place]) {
            let wanted = format!("sizes that are {} together", dims.extents()[place]);
            let found = format!("{sizes:?} of axis {axis} of {dims}");
            return Err(Error::shape("split", found, wanted).at_node(name));
        }
        self.or_nothing(|graph| {
            let mut begin = 0;
            let parts = sizes.iter().enumerate().map(|(index, &size)| {
                let mut ranges = vec![AxisRange::ALL; dims.rank()];
                ranges[place] = AxisRange::new(begin, begin + size as isize);
                begin += size as isize;
                graph.strided_slice(&format!("{name}.{index}"), x, &ranges)
            });
            parts.collect()
        })
    }

    /// Elements of `x` along an axis by their indices, whose axes stand in its place in the result. The first
    /// `batch_dims` axes of both are the same: each element of these has its own indices. Where an index, an
    /// integer held by an f32, is not within the axis, the elements are zero.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let table = graph.input("table", Dims::new(&[1000, 64])?)?;
    /// let words = graph.input("words", Dims::new(&[1, 128])?)?;
    /// let rows = graph.gather("rows", table, words, 0, 0)?;
    /// assert_eq!(graph.dims(rows)?.extents(), [1, 128, 64]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` does not have the axis, the shared axes differ or lie behind it, or the result has too many.
    pub fn gather(
        &mut self,
        name: &str,
        x: Value,
        indices: Value,
        axis: isize,
        batch_dims: usize,
    ) -> Result<Value> {
        let operator = Arc::new(Gather { axis, batch_dims });
        self.with_extras(
            name,
            operator,
            vec![(Operand::Src, x), (Operand::Arg(0), indices)],
            Extras::default(),
        )
    }

    /// Elements of `x` by rows of indices, one for each of its first axes: see [`Graph::gather`].
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[4, 5, 3])?)?;
    /// let places = graph.input("places", Dims::new(&[7, 2])?)?;
    /// let y = graph.gather_nd("y", x, places)?;
    /// assert_eq!(graph.dims(y)?.extents(), [7, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the rows are longer than `x` has axes.
    pub fn gather_nd(&mut self, name: &str, x: Value, indices: Value) -> Result<Value> {
        let inputs = vec![(Operand::Src, x), (Operand::Arg(0), indices)];
        self.with_extras(name, Arc::new(GatherNd), inputs, Extras::default())
    }

    /// `x` with rows of `part` along an axis in the place of its own, from `at` on: an i32, or one for each element of the
    /// first axis of `x`. Rows that would lie outside of `x` are left out.
    ///
    /// A state that becomes the result ([`Graph::update`]), and that nothing else reads, is changed in place: the keys and
    /// values of a decoder grow like that without being copied.
    ///
    /// ```
    /// use diptych::{Backend, Context, DType, Dim, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let new = graph.input("new", Dims::new(&[1, 2])?)?;
    /// let at = graph.typed_input("at", DType::I32, &[Dim::Fixed(1)])?;
    /// let cache = graph.state("cache", HostTensor::new(Dims::new(&[3, 2])?, vec![0.0; 6])?);
    /// let next = graph.update_slice("next", cache, new, at, 0)?;
    /// graph.update(cache, next)?;
    /// graph.output(next)?;
    /// let mut session = Session::new(&Context::new(Backend::Auto)?, &graph, SessionOptions::default())?;
    /// let row = |values: [f32; 2]| HostTensor::new(Dims::new(&[1, 2])?, values.to_vec());
    /// let place = |at: i32| HostTensor::of(Dims::new(&[1])?, vec![at]);
    /// session.run(&[("new", &row([1.0, 2.0])?), ("at", &place(0)?)])?;
    /// let outputs = session.run(&[("new", &row([3.0, 4.0])?), ("at", &place(1)?)])?;
    /// assert_eq!(*outputs[0].to_f32(), [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `part` has other extents than `x` along another axis or another type, or there are not as many places.
    pub fn update_slice(
        &mut self,
        name: &str,
        x: Value,
        part: Value,
        at: Value,
        axis: isize,
    ) -> Result<Value> {
        let inputs = vec![(Operand::Src, x), (Operand::Arg(0), part), (Operand::Arg(1), at)];
        self.with_extras(name, Arc::new(UpdateSlice { axis }), inputs, Extras::default())
    }

    /// Values at the indices of `x` along a new axis, others elsewhere.
    ///
    /// ```
    /// use diptych::nn::OneHot;
    /// use diptych::{Bits, Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[5])?)?;
    /// let options = OneHot { depth: 10, on: Bits(1.0), off: Bits(0.0), axis: -1 };
    /// let y = graph.one_hot("y", x, options)?;
    /// assert_eq!(graph.dims(y)?.extents(), [5, 10]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the result does not have such an axis.
    pub fn one_hot(&mut self, name: &str, x: Value, options: OneHot) -> Result<Value> {
        self.moved(name, x, options)
    }

    /// Sums of the elements of `x` up to each of them, along an axis.
    ///
    /// ```
    /// use diptych::nn::CumSum;
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[2, 5])?)?;
    /// let y = graph.cumsum("y", x, CumSum { axis: 1, exclusive: false, reverse: false })?;
    /// assert_eq!(graph.dims(y)?.extents(), [2, 5]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` does not have the axis.
    pub fn cumsum(&mut self, name: &str, x: Value, options: CumSum) -> Result<Value> {
        self.moved(name, x, options)
    }

    /// The `k` largest elements of each row of `x`, in descending order, and their indices: nodes `{name}` and
    /// `{name}.indices`.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[2, 5])?)?;
    /// let [values, indices] = graph.top_k("best", x, 3)?;
    /// assert_eq!(graph.dims(values)?.extents(), [2, 3]);
    /// assert_eq!(graph.dims(indices)?.extents(), [2, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a row does not have so many.
    pub fn top_k(&mut self, name: &str, x: Value, k: usize) -> Result<[Value; 2]> {
        self.extreme_k(name, x, k, true)
    }

    /// The `k` smallest elements of each row of `x`, in ascending order, and their indices: nodes `{name}` and
    /// `{name}.indices`. A NaN is larger than anything.
    ///
    /// ```
    /// use diptych::{Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let distances = graph.input("distances", Dims::new(&[2, 5])?)?;
    /// let [values, indices] = graph.bottom_k("nearest", distances, 3)?;
    /// assert_eq!(graph.dims(values)?.extents(), [2, 3]);
    /// assert_eq!(graph.dims(indices)?.extents(), [2, 3]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a row does not have so many.
    pub fn bottom_k(&mut self, name: &str, x: Value, k: usize) -> Result<[Value; 2]> {
        self.extreme_k(name, x, k, false)
    }

    fn extreme_k(&mut self, name: &str, x: Value, k: usize, largest: bool) -> Result<[Value; 2]> {
        let values = self.moved(name, x, TopK { k, largest, indices: false })?;
        let indices = self.moved(&format!("{name}.indices"), x, TopK { k, largest, indices: true })?;
        Ok([values, indices])
    }

    /// For each row of `scores` (`r n`) the boxes with the largest scores, without those of `boxes` (`r n 4`, or
    /// `1 n 4` for all rows) that overlap one of them: places and scores, as [`Suppress`] says.
    ///
    /// ```
    /// use diptych::nn::Suppress;
    /// use diptych::{Bits, Dims, Graph};
    ///
    /// let mut graph = Graph::new();
    /// let boxes = graph.input("boxes", Dims::new(&[1, 100, 4])?)?;
    /// let scores = graph.input("scores", Dims::new(&[1, 100])?)?;
    /// let options = Suppress { count: 10, overlap: Bits(0.5), score: Bits(0.3), sigma: Bits(0.0), strict: false };
    /// let kept = graph.suppress("kept", boxes, scores, options)?;
    /// assert_eq!(graph.dims(kept)?.extents(), [1, 2 * 10 + 100]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not fit, or the options are none.
    pub fn suppress(&mut self, name: &str, boxes: Value, scores: Value, options: Suppress) -> Result<Value> {
        let inputs = vec![(Operand::Arg(0), boxes), (Operand::Arg(1), scores)];
        self.with_extras(name, Arc::new(options), inputs, Extras::default())
    }

    /// Joins as many values as one node can.
    fn joined(&mut self, name: &str, values: &[Value], axis: isize) -> Result<Value> {
        let operand = |(index, &value): (usize, &Value)| (Operand::Arg(index.min(255) as u8), value);
        let inputs = values.iter().enumerate().map(operand).collect();
        self.with_extras(name, Arc::new(Concat { axis }), inputs, Extras::default())
    }

    /// What `add` adds, or nothing if it fails.
    pub(super) fn or_nothing<T>(&mut self, add: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (values, nodes, states) = (self.values.len(), self.nodes.len(), self.states.len());
        let draws = self.draws.clone();
        let added = add(self);
        if added.is_err() {
            self.values.truncate(values);
            self.nodes.truncate(nodes);
            self.states.truncate(states);
            self.draws = draws;
            if let Some(casts) = &mut self.casts {
                casts.retain(|_, cast| cast.index < values);
            }
        }
        added
    }

    /// Adds two nodes, or none.
    fn both(
        &mut self,
        name: &str,
        x: Value,
        first: (&str, Arc<dyn Operator>),
        second: (&str, Arc<dyn Operator>),
    ) -> Result<Value> {
        self.or_nothing(|graph| {
            let mut value = x;
            for (part, operator) in [first, second] {
                let name = if part.is_empty() { name.to_owned() } else { format!("{name}.{part}") };
                value = graph.with_extras(&name, operator, vec![(Operand::Src, value)], Extras::default())?;
            }
            Ok(value)
        })
    }

    fn moved(&mut self, name: &str, x: Value, operator: impl Operator) -> Result<Value> {
        self.with_extras(name, Arc::new(operator), vec![(Operand::Src, x)], Extras::default())
    }
}

/// Refuses numbers around a block of which there is not one for each of its extents.
fn check_lengths(op: &'static str, block: &[usize], around: [&[usize]; 2]) -> Result<()> {
    match around.iter().find(|own| own.len() != block.len()) {
        None => Ok(()),
        Some(own) => {
            let found = format!("{own:?} around blocks of {block:?}");
            Err(Error::shape(op, found, "one number for each extent of a block"))
        }
    }
}
