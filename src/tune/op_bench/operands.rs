//! The operands of a problem as the candidates' kernels take them.

use super::OpBench;
use crate::alloc;
use crate::device::{Memory, Resource, Wait};
use crate::dtype::DType;
use crate::emit::{Access, Binding, Element, Operand};
use crate::error::{Error, Result};
use crate::ops::{Choice, Op, OperandInfo, Operands, Role};
use crate::task::Turns;
use crate::tune::problem::{Expectation, operands};
use half::f16;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What an operand's resources are found by. A constant's layout depends on the candidate's kernel
/// and tile; its content says which it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) operand: Operand,
    pub(super) access: Access,
    element: Element,
    pub(super) dtype: DType,
    image: bool,
    content: u64,
    /// Which inputs: 0 are those that candidates are timed with.
    set: u64,
}

/// What an op reads, and what is expected of it.
#[derive(Debug)]
pub(super) struct Inputs {
    /// The number of the set.
    set: u64,
    operands: Operands<'static>,
    expected: Expectation,
    /// What is expected of kernels that sum other terms than the op's own, by variant.
    variants: HashMap<&'static str, Option<Expectation>>,
    /// What is expected of results beside the last.
    others: Vec<(Operand, Expectation)>,
}

impl Inputs {
    /// The inputs of number `set`, with what the op must make of them. All sets have the same constants.
    pub(super) fn new(op: &dyn Op, set: u64) -> Result<Self> {
        let operands = operands(op, set);
        let expected = Expectation::new(op, &operands)?;
        let other = |(operand, op): (Operand, Box<dyn Op>)| Ok((operand, Expectation::new(&*op, &operands)?));
        let others = op.others().into_iter().map(other).collect::<Result<_>>()?;
        Ok(Inputs { set, operands, expected, variants: HashMap::new(), others })
    }

    /// Works out once what is expected of `variant`.
    pub(super) fn expect(&mut self, op: &dyn Op, variant: &'static str) -> Result<()> {
        if !self.variants.contains_key(variant) {
            let own = Expectation::of_kernel(op, &self.operands, variant)?;
            self.variants.insert(variant, own);
        }
        Ok(())
    }

    pub(super) fn others(&self) -> &[(Operand, Expectation)] {
        &self.others
    }

    pub(super) fn expected(&self, choice: &Choice) -> &Expectation {
        self.variants.get(choice.variant).and_then(Option::as_ref).unwrap_or(&self.expected)
    }
}

pub(super) fn encode(values: &[f32], dtype: DType) -> Vec<u8> {
    let mut bytes = match dtype {
        DType::F16 => values.iter().flat_map(|&value| f16::from_f32(value).to_ne_bytes()).collect(),
        _ => bytemuck::cast_slice(values).to_vec(),
    };
    // Whole vec4s, so that a kernel may bind the range as such.
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    bytes
}

pub(super) fn decode(bytes: &[u8], dtype: DType) -> Vec<f32> {
    match dtype {
        DType::F16 => bytemuck::pod_collect_to_vec::<u8, f16>(bytes).into_iter().map(f16::to_f32).collect(),
        _ => bytemuck::pod_collect_to_vec(bytes),
    }
}

impl OpBench {
    /// The stored values of `binding` before a run, of an image those that C4 has. The destination is
    /// full of NaN, so that an element that is not written is seen.
    pub(super) fn stored(&self, inputs: &Inputs, choice: &Choice, binding: &Binding) -> Result<Vec<f32>> {
        let operand = binding.operand;
        let given = || {
            let values = inputs.operands.get(&operand);
            values.ok_or_else(|| Error::Internal(format!("no {} to tune with", operand.name())))
        };
        let kernel = self.op.kernel(choice.variant)?;
        let Some(form) = kernel.form(operand, choice) else {
            return kernel.pack(choice, operand, given()?);
        };
        let info = self.info(operand)?;
        // A kernel may keep something there meanwhile.
        match (binding.access, info.role) {
            (Access::Write, _) | (_, Role::Output) => Ok(vec![f32::NAN; info.stored_elements(form)]),
            (Access::Read | Access::ReadWrite, _) => info.stored(form, given()?, 0.0),
        }
    }

    /// The operand's extents.
    pub(super) fn info(&self, operand: Operand) -> Result<OperandInfo> {
        let infos = self.op.operands();
        let info = infos.into_iter().find(|info| info.operand == operand);
        info.ok_or_else(|| Error::Internal(format!("{} has no {}", self.op.name(), operand.name())))
    }

    /// The resources of `binding`, one per set of operands; of an input beside those that candidates are timed with there is
    /// one.
    pub(super) async fn resources(
        &mut self,
        wait: Wait,
        other: Option<&Inputs>,
        choice: &Choice,
        binding: &Binding,
    ) -> Result<Key> {
        if let Some(bytes) = binding.scratch_bytes() {
            return self.scratch(binding, bytes);
        }
        let role = self.info(binding.operand)?.role;
        let constant = role == Role::Constant;
        let mut key = Key {
            operand: binding.operand,
            access: binding.access,
            element: binding.element,
            dtype: binding.element.dtype(),
            image: matches!(binding.element, Element::Image2d(_)),
            content: 0,
            set: other.filter(|_| role == Role::Input).map_or(0, |other| other.set),
        };
        if !constant && self.resources.contains_key(&key) {
            return Ok(key);
        }
        let layout = (choice.variant, choice.tile, binding.operand, binding.element);
        if let Some(key) = self.packed.get(&layout) {
            return Ok(key.clone());
        }
        let values = self.stored(other.unwrap_or(&self.inputs), choice, binding)?;
        if constant {
            let mut hasher = DefaultHasher::new();
            bytemuck::cast_slice::<f32, u8>(&values).hash(&mut hasher);
            key.content = hasher.finish();
        }
        if !self.resources.contains_key(&key) {
            let count = if key.set == 0 { self.sets } else { 1 };
            let (mut made, mut turns) = (Vec::with_capacity(count), Turns::begin());
            for _ in 0..count {
                made.push(match key.image {
                    true => self.image(wait, &key, &values).await?,
                    false => self.buffer(&values, key.dtype)?,
                });
                turns.pass().await;
            }
            self.resources.insert(key.clone(), made);
        }
        if constant {
            self.packed.insert(layout, key.clone());
        }
        Ok(key)
    }

    /// Scratch memory, which each run leaves as zeros for the next one: one for all sets.
    fn scratch(&mut self, binding: &Binding, bytes: u64) -> Result<Key> {
        let Binding { operand, access, element, .. } = *binding;
        let key =
            Key { operand, access, element, dtype: element.dtype(), image: false, content: bytes, set: 0 };
        if !self.resources.contains_key(&key) {
            let zeros = alloc::zeros::<f32>(bytes.div_ceil(4) as usize, "scratch memory")?;
            let made = self.buffer(&zeros, key.dtype)?;
            self.resources.insert(key.clone(), vec![made; self.sets]);
        }
        Ok(key)
    }

    pub(super) fn buffer(&self, values: &[f32], dtype: DType) -> Result<Resource> {
        let bytes = encode(values, dtype);
        let slice = self.device.alloc(bytes.len() as u64, Memory::Device)?.whole();
        self.device.write(&slice, &bytes)?;
        Ok(slice.into())
    }
}
