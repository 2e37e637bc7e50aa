//! Weights of bytes of operators on floats, which are rounded to bytes at each run (dynamic range quantization).
//!
//! TensorFlow Lite does so wherever an operator reads floats and has int8 weights, and XNNPACK with a scale and a zero point for each
//! row of a product and each image of a convolution: so do these.

use super::import::{Import, Op};
use super::names::element;
use super::slots::Slot;
use super::stored::is_quantised;
use crate::model::build::{Kind, Operand, Ranged, RunWeights};
use crate::model::constant::Constant;
use crate::model::reason::Reason;

impl<'a> Import<'a> {
    /// Whether the floats that an operator reads at input `x` are rounded to bytes at each run: it has constant weights of int8 or
    /// int4 around 0 at input 1.
    pub(super) fn rounds_at_run(&self, op: &Op<'a>, x: usize) -> Result<bool, Reason> {
        let input = op.input(x)?;
        let [x, position] = [input, op.input(1)?].map(|input| self.tensors.position(input));
        let (x, position) = (x?, position?);
        let untouched = matches!(self.slots.get(position), Some(Slot::Untouched));
        let computed = !matches!(self.slots.get(x), Some(Slot::Untouched | Slot::Constant(_)));
        if !self.integers || !untouched || !computed || self.depth > 0 || self.tensors.steps(x)?.is_some() {
            return Ok(false);
        }
        let tensor = self.tensors.tensor(position)?;
        let of_bits = [element::INT8, element::INT4].contains(&tensor.element_type());
        let plain = is_quantised(&tensor) && tensor.sparsity().is_none() && !tensor.is_variable();
        let zeros = tensor.quantization().and_then(|quantization| quantization.zero_point());
        let around_zero = zeros.is_none_or(|zeros| zeros.iter().all(|zero| zero == 0));
        let float = self.kind(input)? == Kind::F32;
        Ok(of_bits && plain && around_zero && float && self.tensors.data(position)?.is_some())
    }

    /// The weights at input 1 of an operator that rounds floats at each run, if they are int8 with a scale for all or for each
    /// output.
    pub(super) fn run_weights(
        &mut self,
        op: &Op<'a>,
        extents: [usize; 4],
    ) -> Result<Option<RunWeights>, Reason> {
        if !self.rounds_at_run(op, 0)? {
            return Ok(None);
        }
        let position = self.tensors.position(op.input(1)?)?;
        let tensor = self.tensors.tensor(position)?;
        let (scales, [outputs, ..]) = (self.tensors.scales(position)?, extents);
        let of_outputs = scales.len() == outputs && tensor.quantization().is_some_and(|own| own.axis() == 0);
        let elements = extents.iter().product::<usize>();
        if tensor.element_type() != element::INT8 || !(scales.len() == 1 || of_outputs) || elements == 0 {
            return Ok(None);
        }
        let place = self.tensors.data(position)?.map(<[u8]>::as_ptr);
        let name = format!("words {place:?} {} {extents:?}", tensor.0.loc());
        let known = self.build.kept.as_ref().and_then(|kept| kept.known(&name));
        if let Some([(Constant::Floats(words), _), (Constant::Floats(scale), _)]) = known.as_deref() {
            return Ok(Some(RunWeights { words: words.clone(), extents, scale: scale.clone() }));
        }
        let Some(values) = self.frame.tensors.centred_integers(position, &mut self.build.budget)? else {
            return Ok(None);
        };
        let values: Option<Vec<i8>> = values.into_iter().map(|value| i8::try_from(value).ok()).collect();
        let Some(values) = values.filter(|values| values.len() == elements) else { return Ok(None) };
        let weights = RunWeights::of(&values, extents, &scales)?;
        if let Some(kept) = &self.build.kept {
            let both = [&weights.words, &weights.scale];
            kept.keep_all(name, &both.map(|tensor| (Constant::Floats(tensor.clone()), Kind::F32)));
        }
        Ok(Some(weights))
    }

    /// Input `index` of an operator on floats, which is `x`, as the floats that the bytes which it is rounded to stand for; itself if
    /// it is not rounded.
    pub(super) fn rounded_input(
        &mut self,
        op: &Op<'a>,
        (index, x): (usize, Operand),
        ranged: Ranged,
    ) -> Result<Operand, Reason> {
        if !self.rounds_at_run(op, index)? {
            return Ok(x);
        }
        self.begin(op, 0)?.within("x", |b| b.rounded_at_run(x, ranged))
    }
}
