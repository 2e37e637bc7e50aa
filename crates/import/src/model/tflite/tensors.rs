//! Tensors of a file: shapes and constants.

use super::constant::{Constant, Integers, elements_of};
use super::names::{self, element};
use super::schema::{Buffer, Tensor};
use super::stored::{Stored, decode, is_quantised, read};
use super::tables::{Tables, at};
use flatbuffers::Vector;
use std::collections::HashMap;

use crate::emit::Bits;
pub(super) use crate::model::budget::Budget;
use crate::model::build::Builder;
use crate::model::constant_cache;
use crate::model::reason::Reason;
use crate::ops::quantization::Quantization;

/// The largest rank that TensorFlow Lite knows.
const MAX_RANK: usize = 8;

/// An extent as a file declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Fixed(usize),
    /// Left open; what the file puts in its place.
    Free(usize),
}

/// Floats that integers stand for: `scale` times the integers of a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Steps {
    pub(super) scale: f32,
    pub(super) range: [i64; 2],
    /// The stored integer that stands for 0.
    pub(super) zero: i64,
}

impl Steps {
    /// The integers and what they stand for, if f32 holds them.
    pub(super) fn quantization(&self) -> Option<Quantization> {
        let of = |integer: i64| i32::try_from(integer).ok();
        let [low, high] = self.range.map(|end| end + self.zero);
        let (zero, low, high) = (of(self.zero)?, of(low)?, of(high)?);
        let own = Quantization { scale: Bits(self.scale), zero, low, high };
        own.check("steps").is_ok().then_some(own)
    }

    /// Whether the integers are stored in a byte, as those of `other` are.
    pub(super) fn are_bytes_like(&self, other: &Steps) -> bool {
        let stored = |steps: &Steps| steps.range.map(|end| end + steps.zero);
        stored(self) == stored(other) && [[-128, 127], [0, 255]].contains(&stored(self))
    }
}

/// The tensors of a file and the buffers behind them.
pub(super) struct Tensors<'a> {
    tensors: Tables<'a, Tensor<'a>>,
    buffers: Option<Tables<'a, Buffer<'a>>>,
    /// The whole file.
    file: &'a [u8],
    /// The constants that were read, by buffer, extents and type, and by tensor where that says how the elements are stored.
    constants: HashMap<(u32, Vec<usize>, i8, Option<usize>), Constant>,
    /// What inputs and outputs of the network are that have no name in the file.
    ends: HashMap<usize, String>,
}

impl<'a> Tensors<'a> {
    pub(super) fn new(
        tensors: Tables<'a, Tensor<'a>>,
        (buffers, file): (Option<Tables<'a, Buffer<'a>>>, &'a [u8]),
        [inputs, outputs]: [&[i32]; 2],
    ) -> Self {
        let named = |what: &'static str| {
            move |(index, tensor): (usize, &i32)| {
                usize::try_from(*tensor).ok().map(|position| (position, format!("{what} {index}")))
            }
        };
        let outputs = outputs.iter().enumerate().filter_map(named("output"));
        let ends = outputs.chain(inputs.iter().enumerate().filter_map(named("input"))).collect();
        Tensors { tensors, buffers, file, constants: HashMap::new(), ends }
    }

    pub(super) fn len(&self) -> usize {
        self.tensors.len()
    }

    /// The position of a tensor that an operator or the network names by `index`.
    pub(super) fn position(&self, index: i32) -> Result<usize, Reason> {
        usize::try_from(index).ok().filter(|&index| index < self.len()).ok_or_else(|| {
            format!("found tensor index {index}, wanted one from 0 to {}", self.len().saturating_sub(1))
                .into()
        })
    }

    pub(super) fn tensor(&self, position: usize) -> Result<Tensor<'a>, Reason> {
        at(self.tensors, position)
            .ok_or_else(|| format!("found tensor index {position}, wanted one below {}", self.len()).into())
    }

    /// The name a tensor has in the file, which may be empty.
    pub(super) fn name(&self, position: usize) -> &'a str {
        at(self.tensors, position).and_then(|tensor| tensor.name()).unwrap_or("")
    }

    /// A tensor for a message.
    pub(super) fn describe(&self, position: usize) -> String {
        match (self.name(position), self.ends.get(&position)) {
            ("", None) => format!("tensor {position}"),
            ("", Some(end)) => format!("tensor {position} (the network's {end}, which has no name)"),
            (name, _) => format!("tensor {position} ({name:?})"),
        }
    }

    /// Refuses a tensor that is not computed in f32 and given anew at each run.
    pub(super) fn check_activation(&self, position: usize) -> Result<(), Reason> {
        let tensor = self.tensor(position)?;
        if tensor.is_variable() {
            return refused!(
                "{}: found a variable, which keeps its value between runs, wanted a constant or a value",
                self.describe(position)
            );
        }
        match tensor.element_type() {
            _ if is_quantised(&tensor) => self.steps(position).map(|_| ()),
            element::FLOAT32
            | element::FLOAT16
            | element::INT32
            | element::INT64
            | element::INT8
            | element::UINT8
            | element::INT16
            | element::UINT16
            | element::UINT32
            | element::BOOL
            | element::RESOURCE
            | element::VARIANT
            | element::COMPLEX64 => Ok(()),
            other => refused!(
                "{}: found {}, wanted floats of 16 or 32 bits, integers or BOOL",
                self.describe(position),
                names::element_type(other)
            ),
        }
    }

    /// The floats that a value's integers stand for, if they do.
    pub(super) fn steps(&self, position: usize) -> Result<Option<Steps>, Reason> {
        let tensor = self.tensor(position)?;
        let Some(quantization) = tensor.quantization().filter(|_| is_quantised(&tensor)) else {
            return Ok(None);
        };
        let scales: Vec<f32> =
            quantization.scale().into_iter().flat_map(|scales| scales.iter().take(2)).collect();
        let zero = quantization.zero_point().and_then(|zeros| at(zeros, 0)).unwrap_or(0);
        let range = match tensor.element_type() {
            element::INT8 => Some([-128, 127]),
            element::UINT8 => Some([0, 255]),
            element::INT16 => Some([-32_768, 32_767]),
            // Of more than 24 bits f32 has the upper ones.
            element::INT32 => Some([i64::from(i32::MIN), i64::from(i32::MAX)]),
            _ => None,
        };
        match (&scales[..], range) {
            (&[scale], Some([low, high]))
                if scale.is_finite() && scale > 0.0 && zero.unsigned_abs() < 1 << 20 =>
            {
                Ok(Some(Steps { scale, range: [low - zero, high - zero], zero }))
            }
            _ => refused!(
                "{}: found quantised {} of scales {scales:?} and zero {zero}, wanted INT8, UINT8, INT16 or INT32 of one scale",
                self.describe(position),
                names::element_type(tensor.element_type())
            ),
        }
    }

    /// The scales of a tensor.
    pub(super) fn scales(&self, position: usize) -> Result<Vec<f32>, Reason> {
        let scales = self.tensor(position)?.quantization().and_then(|quantization| quantization.scale());
        Ok(scales.into_iter().flat_map(|scales| scales.iter()).collect())
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
        // Large files have their constants behind the FlatBuffer, from which 0 and 1 are too few.
        if buffer.offset() > 1 {
            let own = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.size()).ok());
            let own = own.and_then(|(first, size)| self.file.get(first..first.checked_add(size)?));
            let Some(own) = own else {
                return refused!(
                    "{}: found a buffer of {} bytes at offset {} of the file, wanted one within its {} bytes",
                    self.describe(position),
                    buffer.size(),
                    buffer.offset(),
                    self.file.len()
                );
            };
            return Ok(Some(own).filter(|bytes| !bytes.is_empty()));
        }
        Ok(buffer.data().map(|data| data.bytes()).filter(|bytes| !bytes.is_empty()))
    }

    /// The elements of a constant: floats as they are stored, integers with scales as the floats that they
    /// stand for, other integers as integers.
    pub(super) fn constant(&mut self, position: usize, build: &mut Builder) -> Result<Constant, Reason> {
        let tensor = self.tensor(position)?;
        let explain = |reason: Reason| reason.behind(format_args!("{}: ", self.describe(position)));
        if tensor.is_variable() {
            return Err(explain("found a variable, wanted a constant".into()));
        }
        let extents = self.extents(position)?;
        let own = (is_quantised(&tensor) || tensor.sparsity().is_some()).then_some(position);
        let key = (tensor.buffer(), extents, tensor.element_type(), own);
        if let Some(known) = self.constants.get(&key) {
            return Ok(known.clone());
        }
        let Some(bytes) = self.data(position)? else {
            // A tensor of no elements has no bytes.
            return match elements_of(&key.1).map_err(explain)? == 0 {
                true => Ok(Constant::Integers(Integers::new(key.1, Vec::new()))),
                false => Err(explain("wanted a constant, found no data".into())),
            };
        };
        // A tensor that says how its elements are stored has a place of its own in the file.
        let (begin, table) = (bytes.as_ptr(), own.map(|_| tensor.0.loc()));
        let name = format!("bytes {begin:?} {} {:?} {} {table:?}", bytes.len(), key.1, key.2);
        let kept = build.kept.clone().filter(|_| bytes.len() > constant_cache::FEW);
        let known = kept.as_ref().and_then(|kept| kept.known(&name)?.into_iter().next());
        let constant = match known {
            Some((known, _)) => known,
            None => {
                let constant = read(&tensor, &key.1, bytes, &mut build.budget).map_err(explain)?;
                let kind = names::kind(tensor.element_type());
                kept.into_iter().for_each(|kept| kept.keep_read(name.clone(), &(constant.clone(), kind)));
                constant
            }
        };
        self.constants.insert(key, constant.clone());
        Ok(constant)
    }

    /// The integers of a constant less their zero points, as the file stores them; `None` if it has no such integers.
    pub(super) fn centred_integers(
        &self,
        position: usize,
        budget: &mut Budget,
    ) -> Result<Option<Vec<i64>>, Reason> {
        let tensor = self.tensor(position)?;
        let kind = tensor.element_type();
        let known = [element::INT8, element::UINT8, element::INT4, element::INT32].contains(&kind);
        let (Some(bytes), true, None) = (self.data(position)?, known, tensor.sparsity()) else {
            return Ok(None);
        };
        let elements = elements_of(&self.extents(position)?)?;
        let Stored::Integers(mut values) = decode(kind, bytes, elements, budget)? else { return Ok(None) };
        let zeros = tensor.quantization().and_then(|quantization| quantization.zero_point());
        let zeros: Vec<i64> = zeros.map_or_else(Vec::new, |zeros| zeros.iter().collect());
        let zero = zeros.first().copied().unwrap_or(0);
        if zeros.iter().any(|&other| other != zero) || values.len() != elements {
            return Ok(None);
        }
        values.iter_mut().for_each(|value| *value = value.saturating_sub(zero));
        Ok(Some(values))
    }

    /// The extents of a tensor as the file declares them, each of which is known.
    pub(super) fn extents(&self, position: usize) -> Result<Vec<usize>, Reason> {
        let extents = self.declared(position)?;
        let fixed: Option<Vec<usize>> = extents
            .iter()
            .map(|extent| match extent {
                Extent::Fixed(extent) => Some(*extent),
                Extent::Free(_) => None,
            })
            .collect();
        fixed.ok_or_else(|| {
            format!("{}: found the dynamic shape {extents:?}, wanted fixed extents", self.describe(position))
                .into()
        })
    }

    /// The extents of a tensor as the file declares them.
    pub(super) fn declared(&self, position: usize) -> Result<Vec<Extent>, Reason> {
        let tensor = self.tensor(position)?;
        let (shape, signature) = (tensor.shape(), tensor.shape_signature());
        for extents in [shape, signature].into_iter().flatten() {
            if extents.len() > MAX_RANK {
                return refused!(
                    "{}: found rank {}, wanted at most {MAX_RANK}",
                    self.describe(position),
                    extents.len()
                );
            }
        }
        let shape: Vec<i32> = shape.map_or_else(Vec::new, |shape| shape.iter().collect());
        let signature: Vec<i32> = signature.map_or_else(Vec::new, |signature| signature.iter().collect());
        // A signature of another rank says nothing.
        let free = |axis: usize| {
            shape[axis] < 0 || (signature.len() == shape.len() && signature.get(axis).is_some_and(|&e| e < 0))
        };
        let extent = |axis: usize| {
            let extent = usize::try_from(shape[axis]).unwrap_or(1);
            if free(axis) { Extent::Free(extent) } else { Extent::Fixed(extent) }
        };
        Ok((0..shape.len()).map(extent).collect())
    }
}

/// A vector of tensor indices, empty where the file has none.
pub(super) fn indices(vector: Option<Vector<'_, i32>>, budget: &mut Budget) -> Result<Vec<i32>, Reason> {
    let Some(vector) = vector else { return Ok(Vec::new()) };
    budget.spend(4 * vector.len())?;
    Ok(vector.iter().collect())
}
