//! The method that adds an attention.

use super::{Extras, Graph, Value};
use crate::emit::Operand;
use crate::error::Result;
use crate::ops::attention::Attention;
use std::sync::Arc;

/// The inputs of an attention beside queries, keys and values.
///
/// ```
/// use diptych::nn::Attention;
/// use diptych::{AttentionInputs, Dims, Graph};
///
/// let mut graph = Graph::new();
/// let x = graph.input("x", Dims::new(&[1, 2, 7, 8])?)?; // batch heads places depth
/// let bias = graph.input("bias", Dims::new(&[7, 7])?)?; // of a query and a key
/// let inputs = AttentionInputs { bias: Some(bias), ..Default::default() };
/// let y = graph.attention("y", [x, x, x], inputs, Attention::default())?;
/// assert_eq!(graph.dims(y)?.extents(), [1, 2, 7, 8]);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttentionInputs {
    /// Numbers that are added to the scores. Its extents are `batch heads places keys`; each may be 1, and leading ones may be
    /// left out.
    pub bias: Option<Value>,
    /// Which keys a query attends, with extents as those of the bias. [`MaskRule`](nn/struct.MaskRule.html) says what its elements mean.
    pub mask: Option<Value>,
    /// The place of the first query among the keys: one number for all batches, or one for each. The options must say how many
    /// keys before or behind it a query attends.
    pub begins: Option<Value>,
    /// How many of the keys are there: one number for all batches, or one for each. Without it all are.
    pub ends: Option<Value>,
}

impl Graph {
    /// Adds the attention of queries, keys and values: `softmax(scale Q K^T + bias) V` for each head. [`Attention`] has the
    /// options. The matrix of scores is not stored. Queries may have several times as many heads as keys and values.
    ///
    /// ```
    /// use diptych::nn::Attention;
    /// use diptych::{AttentionInputs, Backend, Context, Dims, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let dims = Dims::new(&[1, 1, 2, 1])?; // batch heads places depth
    /// let [q, k, v] = ["q", "k", "v"].map(|name| graph.input(name, dims));
    /// let causal = Attention { behind: Some(0), ..Attention::default() };
    /// let y = graph.attention("y", [q?, k?, v?], AttentionInputs::default(), causal)?;
    /// graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Auto)?, &graph, SessionOptions::default())?;
    /// let of = |values: [f32; 2]| HostTensor::new(dims, values.to_vec());
    /// let (q, k, v) = (of([1.0, 0.0])?, of([5.0, -2.0])?, of([10.0, 20.0])?);
    /// let y = session.run(&[("q", &q), ("k", &k), ("v", &v)])?;
    /// assert_eq!(*y[0].to_f32(), [10.0, 15.0]); // the first attends itself alone, the second both alike
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the extents do not fit each other or the options, or if `begins` is given while [`Attention::before`] and
    /// [`Attention::behind`] are `None`.
    pub fn attention(
        &mut self,
        name: &str,
        [query, key, value]: [Value; 3],
        inputs: AttentionInputs,
        options: Attention,
    ) -> Result<Value> {
        let AttentionInputs { bias, mask, begins, ends } = inputs;
        let mut all = vec![(Operand::Query, query), (Operand::Key, key), (Operand::Value, value)];
        let more =
            [(Operand::Bias, bias), (Operand::Mask, mask), (Operand::Begins, begins), (Operand::Ends, ends)];
        all.extend(more.into_iter().filter_map(|(operand, value)| Some((operand, value?))));
        self.with_extras(name, Arc::new(options), all, Extras::default())
    }
}
