//! Tensors of a file: shapes and constants.

use super::names::{self, element};
use super::schema::{Buffer, Tables, Tensor, at};
use crate::dtype::DType;
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::shape::Shape;
use flatbuffers::Vector;
use half::f16;
use std::collections::HashMap;
use std::sync::Arc;

/// What was found and what was wanted, before it is known where.
pub(super) type Reason = String;

/// The largest rank that TensorFlow Lite knows.
const MAX_RANK: usize = 8;

/// The work that a file may cause, in bytes read and copied.
///
/// Offsets may make many parts of a file share the same bytes. A valid file does so now and then;
/// a hostile one could make a small file stand for terabytes.
pub(super) struct Budget {
    left: u64,
    whole: u64,
}

impl Budget {
    pub(super) fn new(file_bytes: usize) -> Self {
        let whole = 4 * file_bytes as u64 + (1 << 16);
        Budget { left: whole, whole }
    }

    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), Reason> {
        self.left = self.left.checked_sub(bytes as u64).ok_or_else(|| {
            format!(
                "the parts of the file add up to more than {} bytes, wanted at most four times its length",
                self.whole
            )
        })?;
        Ok(())
    }
}

/// The tensors of a file and the buffers behind them.
pub(super) struct Tensors<'a> {
    tensors: Tables<'a, Tensor<'a>>,
    buffers: Option<Tables<'a, Buffer<'a>>>,
    constants: HashMap<(u32, Shape, DType), HostTensor>,
}

impl<'a> Tensors<'a> {
    pub(super) fn new(tensors: Tables<'a, Tensor<'a>>, buffers: Option<Tables<'a, Buffer<'a>>>) -> Self {
        Tensors { tensors, buffers, constants: HashMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.tensors.len()
    }

    /// The position of a tensor that an operator or the network names by `index`.
    pub(super) fn position(&self, index: i32) -> Result<usize, Reason> {
        usize::try_from(index).ok().filter(|&index| index < self.len()).ok_or_else(|| {
            format!("found tensor index {index}, wanted one from 0 to {}", self.len().saturating_sub(1))
        })
    }

    fn tensor(&self, position: usize) -> Result<Tensor<'a>, Reason> {
        at(self.tensors, position)
            .ok_or_else(|| format!("found tensor index {position}, wanted one below {}", self.len()))
    }

    /// The name a tensor has in the file, which may be empty.
    pub(super) fn name(&self, position: usize) -> &'a str {
        at(self.tensors, position).and_then(|tensor| tensor.name()).unwrap_or("")
    }

    /// A tensor for a message.
    pub(super) fn describe(&self, position: usize) -> String {
        match self.name(position) {
            "" => format!("tensor {position}"),
            name => format!("tensor {position} ({name:?})"),
        }
    }

    /// The shape of a feature map; refuses all but dense float32 of rank 4 and fixed extents.
    pub(super) fn feature_map(&self, position: usize) -> Result<Shape, Reason> {
        let tensor = self.tensor(position)?;
        if self.dense_float(position, tensor)? != DType::F32 {
            return Err(format!("{}: found FLOAT16, wanted FLOAT32", self.describe(position)));
        }
        self.rank4(position, tensor)
    }

    /// The bytes of a tensor, if it is a constant.
    pub(super) fn data(&self, position: usize) -> Result<Option<&'a [u8]>, Reason> {
        let number = self.tensor(position)?.buffer();
        let buffers = self.buffers.map_or(0, |buffers| buffers.len());
        if number == 0 && buffers == 0 {
            return Ok(None);
        }
        let buffer = self.buffers.and_then(|buffers| at(buffers, number as usize)).ok_or_else(|| {
            format!("{}: found buffer index {number}, wanted one below {buffers}", self.describe(position))
        })?;
        if buffer.offset() != 0 || buffer.size() != 0 {
            return Err(format!(
                "{}: found a buffer of {} bytes at offset {} outside the FlatBuffer, wanted one inside it",
                self.describe(position),
                buffer.size(),
                buffer.offset()
            ));
        }
        Ok(buffer.data().map(|data| data.bytes()).filter(|bytes| !bytes.is_empty()))
    }

    /// A constant of rank 4.
    pub(super) fn constant(&mut self, position: usize, budget: &mut Budget) -> Result<HostTensor, Reason> {
        let tensor = self.tensor(position)?;
        let shape = self.rank4(position, tensor)?;
        self.read(position, shape, budget)
    }

    /// A constant of any rank as one value per channel, in f32.
    pub(super) fn vector(&mut self, position: usize, budget: &mut Budget) -> Result<HostTensor, Reason> {
        let tensor = self.tensor(position)?;
        let extents = self.extents(position, tensor)?;
        let elements = extents.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
        let shape = Shape::nhwc(1, 1, 1, elements.unwrap_or(usize::MAX));
        let values = self.read(position, shape, budget)?;
        if values.dtype() == DType::F32 {
            return Ok(values);
        }
        budget.spend(4 * shape.c)?;
        HostTensor::vector(values.to_f32().into_owned()).map_err(|error| error.to_string())
    }

    /// Refuses a DEQUANTIZE that is not the widening of a float16 constant.
    pub(super) fn check_widening(&self, from: usize, to: usize) -> Result<(), Reason> {
        let (source, target) = (self.tensor(from)?, self.tensor(to)?);
        if self.dense_float(from, source)? != DType::F16 || self.data(from)?.is_none() {
            return Err(format!("{}: wanted a FLOAT16 constant", self.describe(from)));
        }
        if self.dense_float(to, target)? != DType::F32 {
            return Err(format!("{}: found FLOAT16, wanted FLOAT32", self.describe(to)));
        }
        let (found, wanted) = (self.extents(to, target)?, self.extents(from, source)?);
        if found != wanted {
            return Err(format!("{}: found shape {found:?}, wanted {wanted:?}", self.describe(to)));
        }
        Ok(())
    }

    fn read(&mut self, position: usize, shape: Shape, budget: &mut Budget) -> Result<HostTensor, Reason> {
        let tensor = self.tensor(position)?;
        let dtype = self.dense_float(position, tensor)?;
        let explain = |error: crate::Error| format!("{}: {error}", self.describe(position));
        shape.check("constant").map_err(explain)?;
        let key = (tensor.buffer(), shape, dtype);
        if let Some(known) = self.constants.get(&key) {
            return Ok(known.clone());
        }
        let Some(bytes) = self.data(position)? else {
            return Err(format!("{}: wanted a constant, found no data", self.describe(position)));
        };
        let wanted = shape.elements() * dtype.bytes();
        if bytes.len() != wanted {
            return Err(format!(
                "{}: found {} bytes, wanted {wanted} for shape {shape} in {dtype}",
                self.describe(position),
                bytes.len()
            ));
        }
        budget.spend(bytes.len())?;
        let (fours, twos) = (bytes.as_chunks::<4>().0, bytes.as_chunks::<2>().0);
        let values = match dtype {
            DType::F32 => {
                let values: Arc<[f32]> = fours.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
                HostTensor::new(shape, values)
            }
            DType::F16 => {
                let values: Arc<[f16]> = twos.iter().map(|&bytes| f16::from_le_bytes(bytes)).collect();
                HostTensor::from_f16(shape, Layout::Nhwc, values)
            }
        };
        let values = values.map_err(explain)?;
        self.constants.insert(key, values.clone());
        Ok(values)
    }

    fn dense_float(&self, position: usize, tensor: Tensor<'a>) -> Result<DType, Reason> {
        if let Some(sparsity) = tensor.sparsity() {
            let levels = sparsity.traversal_order().map_or(0, |order| order.len());
            return Err(format!(
                "{}: found a sparse tensor of {levels} levels, wanted a dense one",
                self.describe(position)
            ));
        }
        if tensor.is_variable() {
            return Err(format!(
                "{}: found a variable, which keeps its value between runs, wanted a constant or a feature map",
                self.describe(position)
            ));
        }
        match tensor.element_type() {
            element::FLOAT32 => Ok(DType::F32),
            element::FLOAT16 => Ok(DType::F16),
            other => {
                let scales = tensor.quantization().and_then(|quantization| quantization.scale());
                let quantised =
                    if scales.is_some_and(|scales| !scales.is_empty()) { "quantised " } else { "" };
                Err(format!(
                    "{}: found {quantised}{}, wanted FLOAT32 (or FLOAT16 in constants)",
                    self.describe(position),
                    names::element_type(other)
                ))
            }
        }
    }

    fn rank4(&self, position: usize, tensor: Tensor<'a>) -> Result<Shape, Reason> {
        let extents = self.extents(position, tensor)?;
        let [n, h, w, c] = extents[..] else {
            return Err(format!("{}: found shape {extents:?}, wanted rank 4", self.describe(position)));
        };
        let shape = Shape::nhwc(n, h, w, c);
        shape.check("tensor").map_err(|error| format!("{}: {error}", self.describe(position)))?;
        Ok(shape)
    }

    fn extents(&self, position: usize, tensor: Tensor<'a>) -> Result<Vec<usize>, Reason> {
        let shape = tensor.shape();
        for extents in [shape, tensor.shape_signature()].into_iter().flatten() {
            if extents.len() > MAX_RANK {
                return Err(format!(
                    "{}: found rank {}, wanted at most {MAX_RANK}",
                    self.describe(position),
                    extents.len()
                ));
            }
            if extents.iter().any(|extent| extent < 0) {
                let extents: Vec<i32> = extents.iter().collect();
                return Err(format!(
                    "{}: found the dynamic shape {extents:?}, wanted fixed extents",
                    self.describe(position)
                ));
            }
        }
        let extents = shape.into_iter().flat_map(|shape| shape.iter());
        Ok(extents.map(|extent| usize::try_from(extent).unwrap_or(0)).collect())
    }
}

/// A vector of tensor indices, empty where the file has none.
pub(super) fn indices(vector: Option<Vector<'_, i32>>, budget: &mut Budget) -> Result<Vec<i32>, Reason> {
    let Some(vector) = vector else { return Ok(Vec::new()) };
    budget.spend(4 * vector.len())?;
    Ok(vector.iter().collect())
}
