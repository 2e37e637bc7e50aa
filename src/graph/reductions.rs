//! The methods that add nodes which reduce, normalise and resize.

use super::{Graph, Value};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::Extras;
use crate::ops::resize::Resize;
use std::sync::Arc;

impl Graph {
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
