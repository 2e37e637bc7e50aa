//! The methods that add nodes which reduce, normalise and resize.

use super::{Graph, Value};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Extras;
use crate::ops::reduce::{Reduce, Reduction};
use crate::ops::resize::Resize;
use std::sync::Arc;

impl Graph {
    /// Adds a sum, mean, maximum, ... over `axes`, of which negative ones are counted from the end. With
    /// `keep_dims` they stay, with one element each.
    ///
    /// ```
    /// use diptych::{Dims, Graph, Reduction, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 7, 7, 1024))?;
    /// let y = graph.reduce("pooled", x, Reduction::Mean, &[1, 2], false)?;
    /// assert_eq!(graph.dims(y)?, Dims::new(&[1, 1024])?);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an axis is beyond the rank of `x`.
    pub fn reduce(
        &mut self,
        name: &str,
        x: Value,
        reduction: Reduction,
        axes: &[isize],
        keep_dims: bool,
    ) -> Result<Value> {
        let operator = Arc::new(Reduce { reduction, axes: axes.to_vec(), keep_dims });
        self.with_extras(name, operator, vec![(Operand::Src, x)], Extras::default())
    }

    /// Adds a change of a feature map's height and width.
    ///
    /// ```
    /// use diptych::{Graph, Resize, ResizeMode, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 33, 33, 21))?;
    /// let y = graph.resize("y", x, Resize::new(ResizeMode::Bilinear, [257, 257]))?;
    /// assert_eq!(graph.shape(y)?, Shape::nhwc(1, 257, 257, 21));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `x` is not of rank 4, or the options contradict each other.
    pub fn resize(&mut self, name: &str, x: Value, options: Resize) -> Result<Value> {
        self.with_extras(name, Arc::new(options), vec![(Operand::Src, x)], Extras::default())
    }
}
