//! The method that adds a matrix product with quantized weights.

use super::{Extras, Graph, Value};
use crate::dims::Dims;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::ops::quantized_gemm::{QuantizedGemm, pack, packed_words};
use std::sync::Arc;

/// A constant matrix of integers of 2, 4 or 8 bits, with scales and zero points: integer `q` of a block stands for
/// `(q - zero) scale`.
///
/// A row holds the weights of one output. Its integers lie in words of 32 bits, the first in the lowest bits; the last word is
/// filled up.
#[derive(Debug, Clone)]
pub struct QuantizedMatrix {
    /// The words of each row, of type u32: `rows words`.
    pub words: HostTensor,
    /// The scales of each row, of type f32: `rows blocks`.
    pub scales: HostTensor,
    /// The zero points of each row: as f32, `rows blocks`, or packed as the integers are, `rows words`. Without them
    /// [`QuantizedGemm::zero`] is that of all.
    pub zeros: Option<HostTensor>,
}

impl QuantizedMatrix {
    /// Packs `rows x columns` integers of 2, 4 or 8 bits, row by row; bits beyond them are cut off. There are as many scales
    /// in each row as it has blocks.
    ///
    /// ```
    /// use diptych::QuantizedMatrix;
    ///
    /// // Two rows of four integers in blocks of two.
    /// let integers = [0, 1, 2, 3, 12, 13, 14, 15];
    /// let matrix = QuantizedMatrix::pack(4, [2, 4], &integers, vec![0.5, 0.25, 1.0, 2.0])?;
    /// assert_eq!(matrix.words.to_i64().as_deref(), Some(&[0x3210, 0xfedc][..]));
    /// assert_eq!(matrix.scales.dims().extents(), [2, 2]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are other bits, another number of integers, or scales that rows cannot have alike.
    pub fn pack(bits: usize, [rows, columns]: [usize; 2], integers: &[u8], scales: Vec<f32>) -> Result<Self> {
        if rows == 0 || scales.is_empty() || !scales.len().is_multiple_of(rows) {
            let found = format!("{} scales for {rows} rows", scales.len());
            return Err(Error::input("quantized matrix", found, "as many for each row"));
        }
        let blocks = scales.len() / rows;
        Ok(QuantizedMatrix {
            words: packed(bits, [rows, columns], integers)?,
            scales: HostTensor::new(Dims::new(&[rows, blocks])?, scales)?,
            zeros: None,
        })
    }

    /// Adds a zero point for each scale: `zeros` has them row by row, in as many bits as the weights.
    ///
    /// ```
    /// use diptych::QuantizedMatrix;
    ///
    /// let matrix = QuantizedMatrix::pack(4, [2, 4], &[7; 8], vec![0.5; 4])?.with_zeros(4, &[8, 7, 6, 5])?;
    /// assert_eq!(matrix.zeros.and_then(|zeros| zeros.to_i64().map(|zeros| zeros.to_vec())), Some(vec![0x78, 0x56]));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are other bits, or another number of zero points than of scales.
    pub fn with_zeros(self, bits: usize, zeros: &[u8]) -> Result<Self> {
        let &[rows, blocks] = self.scales.dims().extents() else {
            let found = format!("scales {}", self.scales.dims());
            return Err(Error::input("quantized matrix", found, "rows and blocks"));
        };
        Ok(QuantizedMatrix { zeros: Some(packed(bits, [rows, blocks], zeros)?), ..self })
    }
}

/// Rows of integers as a tensor of words.
fn packed(bits: usize, [rows, columns]: [usize; 2], integers: &[u8]) -> Result<HostTensor> {
    if ![2, 4, 8].contains(&bits) {
        return Err(Error::input("quantized matrix", format!("integers of {bits} bits"), "2, 4 or 8 bits"));
    }
    if rows.checked_mul(columns) != Some(integers.len()) {
        let found = format!("{} integers", integers.len());
        return Err(Error::input("quantized matrix", found, format!("{rows} rows of {columns}")));
    }
    HostTensor::of(Dims::new(&[rows, packed_words(bits, columns)])?, pack(bits, columns, integers))
}

impl Graph {
    /// Adds the product of `x`, `.. k`, and weights of 2, 4 or 8 bits, which stay packed in memory:
    /// `y[.., n] = f(sum_k x[.., k] (q[n, k] - zero[n, b]) scale[n, b] + bias[n]) + residual[.., n]`, `b` being the block of `k`.
    ///
    /// The result has the extents of `x`, but for the last, which is the rows of `weights`. Sums are in f32.
    ///
    /// ```
    /// use diptych::nn::QuantizedGemm;
    /// use diptych::{Backend, Context, Dims, Extras, Graph, HostTensor, QuantizedMatrix, Session, SessionOptions};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[1, 4])?)?;
    /// // Two rows of weights: those of 4 bits are from 0 to 15, and 8 stands for 0.
    /// let weights = QuantizedMatrix::pack(4, [2, 4], &[9, 8, 8, 10, 8, 0, 15, 8], vec![0.5, 2.0])?;
    /// let y = graph.quantized_gemm("y", x, weights, Extras::default(), QuantizedGemm::new(4))?;
    /// graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Auto)?, &graph, SessionOptions::default())?;
    /// let y = session.run(&[("x", &HostTensor::new(Dims::new(&[1, 4])?, vec![1.0, 2.0, 3.0, 4.0])?)])?;
    /// assert_eq!(*y[0].to_f32(), [4.5, 10.0]); // (1 + 4 * 2) / 2, (2 * -8 + 3 * 7) * 2
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the extents do not fit each other or the options; the error names the node.
    pub fn quantized_gemm(
        &mut self,
        name: &str,
        x: Value,
        weights: QuantizedMatrix,
        extras: Extras,
        options: QuantizedGemm,
    ) -> Result<Value> {
        let before = self.values.len();
        let QuantizedMatrix { words, scales, zeros } = weights;
        let own = [(Operand::Weights, Some(words)), (Operand::Scales, Some(scales)), (Operand::Zeros, zeros)];
        let mut inputs = vec![(Operand::Src, x)];
        for (operand, tensor) in own {
            if let Some(tensor) = tensor {
                inputs.push((operand, self.constant(&format!("{name}.{}", operand.name()), tensor)));
            }
        }
        let added = self.with_extras(name, Arc::new(options), inputs, extras);
        if added.is_err() {
            self.values.truncate(before);
        }
        added
    }
}
